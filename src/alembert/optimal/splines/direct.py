"""Small functions called often, by CasADi's virtual machine."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

Array = np.ndarray


class Direct:
    """A CasADi function with dense results on arrays, without the conversions of its own call (0.1 ms each)."""

    def __init__(self, function: ca.Function) -> None:
        self._function = function
        buffer: Any
        buffer, self._run = function.buffer()
        self._given = [np.zeros(function.nnz_in(k)) for k in range(function.n_in())]
        self._found = [np.zeros(function.numel_out(k)) for k in range(function.n_out())]
        self._kept = buffer
        for k, array in enumerate(self._given):
            buffer.set_arg(k, memoryview(array.data))
        for k, array in enumerate(self._found):
            buffer.set_res(k, memoryview(array.data))

    def __call__(self, *arguments: Any) -> list[Array]:
        for array, value in zip(self._given, arguments, strict=True):
            array[:] = value
        self._run()
        shapes = [self._function.size_out(k) for k in range(len(self._found))]
        return [x.reshape(shape, order="F").copy() for x, shape in zip(self._found, shapes, strict=True)]

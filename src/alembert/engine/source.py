"""What kernels are made from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import casadi as ca

from alembert.engine import codegen, program
from alembert.engine.codegen import Code
from alembert.engine.target import Target


class Source(Protocol):
    """The content of a kernel, for any number of lanes."""

    @property
    def input_sizes(self) -> Sequence[int]: ...

    @property
    def output_sizes(self) -> Sequence[int]: ...

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        """IR of `void NAME(ptr in0, ..., ptr out0, ..., ptr workspace)` on packed data, and what it calls."""
        ...


class FunctionSource:
    """A CasADi function, unrolled.

    Input and output k of the function is a matrix for a two-dimensional argument, a column for a
    one-dimensional one, and a column in C order for more dimensions. Arrays are in C order; sparse
    outputs are filled with zeros. `interleave` computes all outputs side by side, first entries first, where they share
    most of their operands; `chunk` bounds the functions that the code is cut into. With more than `longest` values, code
    for many lanes is made quickly rather than well.
    """

    def __init__(
        self,
        function: ca.Function,
        *,
        chunk: int | None = None,
        interleave: bool = False,
        longest: int | None = None,
    ):
        self.function, self._chunk, self._interleave, self._longest = function, chunk, interleave, longest
        self.input_sizes = [function.numel_in(k) for k in range(function.n_in())]
        self.output_sizes = [function.numel_out(k) for k in range(function.n_out())]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        read = program.interleaved if self._interleave else program.from_casadi
        instructions = read(self.function, fuse=target.fused)
        chunk, quick = self._chunk or codegen.CHUNK, False
        if self._longest is not None and lanes > 1 and sum(instructions.needed()) > self._longest:
            chunk, quick = codegen.QUICK_CHUNK, True
        code = codegen.emit_function(name, instructions, lanes, target, chunk=chunk)
        return dataclasses.replace(code, quick=quick)

"""Batches of states, and the constraint terms at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class States:
    """A batch of states, flat: B of them, with the shape to give results."""

    shape: tuple[int, ...]
    q: Array
    vectors: tuple[Array, ...]
    parameters: Array | None

    def __len__(self) -> int:
        return len(self.q)

    def at(self, k: Any) -> States:
        """One state, or some, as a batch."""
        rows = slice(k, k + 1) if isinstance(k, int | np.integer) else k
        parameters = None if self.parameters is None else self.parameters[rows]
        return States((), self.q[rows], tuple(x[rows] for x in self.vectors), parameters)

    def with_q(self, q: Array) -> States:
        return States(self.shape, q, self.vectors, self.parameters)

    def given(self, *arrays: Array, extra: int = 0) -> tuple[Array, ...]:
        """Arguments of a kernel, with the parameters last where the model has any."""
        if self.parameters is None:
            return arrays
        return (*arrays, self.parameters[:, None] if extra else self.parameters)


def states(
    model: Model, function: str, q: Any, vectors: Mapping[str, Any], parameters: Mapping[str, Any] | None
) -> States:
    """Check the arguments of a function and bring them to one batch."""
    arrays = [model.compute.numbers(function, "q", q, model.nq)]
    arrays += [model.compute.numbers(function, name, x, model.nv) for name, x in vectors.items()]
    if model.parameters:
        arrays.append(model.compute.parameter_array(function, parameters))
    elif parameters:
        raise ArgumentError(f"{function}: parameters are given, but the model has none")
    try:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    except ValueError:
        listed = ", ".join(
            f"{name} {x.shape[:-1]}" for name, x in zip(["q", *vectors, "parameters"], arrays, strict=False)
        )
        raise ArgumentError(f"{function}: the batch dimensions do not go together: {listed}") from None
    flat = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in arrays]
    for name, x in zip(["q", *vectors], flat, strict=False):
        if not np.all(np.isfinite(x)):
            k, entry = np.argwhere(~np.isfinite(x))[0]
            labels = model.coordinate_names if name == "q" else model.speed_names
            raise NumericalError(f"{function}: {name} is {x[k, entry]} at entry {entry} ({labels[entry]})")
    count = 1 + len(vectors)
    return States(shape, flat[0], tuple(flat[1:count]), flat[-1] if model.parameters else None)


@dataclass(frozen=True, eq=False)
class Terms:
    """The active rows at B states; `scale` is the size of each row's group, `slack` how far the states are off."""

    residual: Array
    jacobian: Array
    bias: Array
    basis: Array
    scale: Array
    slack: Array

"""Batches of states, and the constraint rows at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms.evaluation import all_finite
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class States:
    """A batch of states, flat: B of them, with the shape to give results; `forces`: wrenches on the nodes, or none.

    `function` is the public one that messages name.
    """

    function: str
    shape: tuple[int, ...]
    q: Array
    vectors: tuple[Array, ...]
    parameters: Array | None
    forces: Array | None = None

    def __len__(self) -> int:
        return len(self.q)

    def at(self, k: Any) -> States:
        """One state, or some, as a batch."""
        rows = slice(k, k + 1) if isinstance(k, int | np.integer) else k
        parameters, forces = (None if x is None else x[rows] for x in (self.parameters, self.forces))
        return States(
            self.function, (), self.q[rows], tuple(x[rows] for x in self.vectors), parameters, forces
        )

    def with_q(self, q: Array) -> States:
        return States(self.function, self.shape, q, self.vectors, self.parameters, self.forces)

    def moving(self, *vectors: Array) -> States:
        """The same configurations with other vectors."""
        return States(self.function, self.shape, self.q, vectors, self.parameters, self.forces)

    @property
    def last(self) -> tuple[Array, ...]:
        """The last argument of kernels: the parameters, where the model has any."""
        return () if self.parameters is None else (self.parameters,)

    @property
    def pushes(self) -> tuple[Array, ...]:
        """The argument of kernels before it: the wrenches, where there are any."""
        return () if self.forces is None else (self.forces,)

    def shaped(self, *arrays: Array) -> Any:
        """(B, ...) as (..., ...): one array, or several."""
        found = tuple(x.reshape((*self.shape, *x.shape[1:])) for x in arrays)
        return found[0] if len(found) == 1 else found

    def position(self, k: int) -> Any:
        where = np.unravel_index(k, self.shape)
        return tuple(int(i) for i in where) if len(where) > 1 else int(where[0])

    def which(self, k: Any) -> str:
        """Of a batch, the number of a state."""
        return f" (state {self.position(int(k))})" if self.shape else ""


def states(
    model: Model,
    function: str,
    q: Any,
    vectors: Mapping[str, Any],
    parameters: Mapping[str, Any] | None,
    forces: Array | None = None,
    others: Mapping[str, tuple[int, ...]] | None = None,
) -> States:
    """Check the arguments of a function and bring them to one batch; `forces` (..., nodes, 6) are wrenches.

    `others` are the batches of other arguments.
    """
    given = {"q": model.compute.numbers(function, "q", q, model.nq)}
    given |= {name: model.compute.numbers(function, name, x, model.nv) for name, x in vectors.items()}
    if model.parameters:
        given["parameters"] = model.compute.parameter_array(function, parameters)
    elif parameters:
        raise ArgumentError(f"{function}: parameters are given, but the model has none")
    batches = {name: x.shape[:-1] for name, x in given.items()} | dict(others or {})
    if forces is not None:
        batches["q"] = common_batch(function, {"q": batches["q"], "wrenches": forces.shape[:-2]})
    shape = common_batch(function, batches)
    flat = {
        name: (x if x.shape[:-1] == shape else np.broadcast_to(x, (*shape, x.shape[-1]))).reshape(
            -1, x.shape[-1]
        )
        for name, x in given.items()
    }
    own = flat.pop("parameters", None)
    if own is not None and not finite(own):
        k, entry = np.argwhere(~np.isfinite(own))[0]
        raise NumericalError(f"{function}: parameter {model.parameters[entry][0]!r} is {own[k, entry]}")
    for name, x in flat.items():
        if not finite(x):
            k, entry = np.argwhere(~np.isfinite(x))[0]
            labels = model.coordinate_names if name == "q" else model.speed_names
            raise NumericalError(f"{function}: {name} is {x[k, entry]} at entry {entry} ({labels[entry]})")
    for o in model.space.restricted:
        problem = o.type.problem(flat["q"][:, o.q])
        if problem:
            raise NumericalError(f"{function}: joint {o.name!r}: {problem}")
    if forces is not None:
        if not np.isfinite(forces).all():
            raise NumericalError(f"{function}: wrenches has entries that are not finite")
        forces = np.broadcast_to(forces, (*shape, *forces.shape[-2:]))
        forces = np.ascontiguousarray(forces).reshape(-1, *forces.shape[-2:])
    return States(function, shape, flat.pop("q"), tuple(flat.values()), own, forces)


def finite(*arrays: Array) -> bool:
    """Whether all numbers are; quick where they are, and their squares too."""
    return all_finite(arrays) or all(np.isfinite(x).all() for x in arrays)


def at_states(kernel: Callable[..., Any], *given: Array) -> Any:
    """A kernel on a batch of states (B, ...); a single one goes the short way."""
    if len(given[0]) != 1:
        return kernel(*given)
    found = kernel(*(x[0] for x in given))
    return tuple(x[None] for x in found) if type(found) is tuple else found[None]


def common_batch(function: str, batches: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    first, *others = batches.values()
    if all(batch == first for batch in others):
        return first
    try:
        return np.broadcast_shapes(first, *others)
    except ValueError:
        listed = ", ".join(f"{name} {batch}" for name, batch in batches.items())
        raise ArgumentError(f"{function}: the batch dimensions do not go together: {listed}") from None


@dataclass(frozen=True, eq=False)
class RowTerms:
    """The active rows at B states; `scale` is the size of each row's group, `slack` how far the states are off."""

    residual: Array
    jacobian: Array
    bias: Array
    basis: Array
    scale: Array
    slack: Array

    def at(self, k: Any) -> RowTerms:
        """Of one state, or some."""
        rows = slice(k, k + 1) if isinstance(k, int | np.integer) else k
        return RowTerms(*(getattr(self, f.name)[rows] for f in fields(self)))

    @classmethod
    def none(cls, count: int, nv: int) -> RowTerms:
        """Where no constraint is active."""
        none = np.zeros((count, 0))
        return cls(none, np.zeros((count, 0, nv)), none, np.zeros((count, 0, 6)), none, np.zeros(count))

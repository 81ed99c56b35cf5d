"""Linear systems whose matrices have uncertain elements, and what is joined of them.

[A B; C D] is one `Uncertain`: the elements of Delta are outside of the dynamics,

    x' = A x + B_w w + B u,     z = C_z x + D_zw w + D_zu u,     y = C x + D_yw w + D u,     w = Delta z              (1)

(x+ in the place of x' for sampled systems). Products, sums and feedback are those of (1) with all elements side by side;
uses of one element that come together are reduced as far as its kind allows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.arguments import is_number
from alembert.control import arguments
from alembert.control.arguments import takes_systems
from alembert.control.interconnection import (
    append,
    close,
    common_dt,
    feedback,
    lft,
    parallel,
    product,
    static,
)
from alembert.control.mu_bounds import DeltaBlock
from alembert.control.robustness import MuPeak, mu_peak, worst_case_gain
from alembert.control.statespace import StateSpace
from alembert.control.uncertain_lft import Uncertain, merged, stacked, uncertain
from alembert.errors import ArgumentError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class UncertainSystem:
    """x' = A x + B u, y = C x + D u with matrices that have uncertain elements: [A B; C D] is one `Uncertain`."""

    matrix: Uncertain
    order: int
    dt: float = 0.0
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    input_units: tuple[str, ...] = ()
    output_units: tuple[str, ...] = ()
    """signals, as a `StateSpace` has them; left out, they are u0, y0 and so on, without units"""

    is_uncertain = True
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        for kind, letter, count in (("output", "y", self.shape[0]), ("input", "u", self.shape[1])):
            for what, checked in (("names", arguments.names), ("units", arguments.units)):
                argument = f"{kind}_{what}"
                given = getattr(self, argument) or None
                extra = (letter,) if what == "names" else ()
                found = checked("UncertainSystem", argument, given, count, *extra)
                object.__setattr__(self, argument, found)

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, inputs)"""
        return self.matrix.shape[0] - self.order, self.matrix.shape[1] - self.order

    @property
    def blocks(self) -> list[DeltaBlock]:
        """Delta, as `mu_peak` and `dksyn` take it."""
        return self.matrix.blocks

    def at(self, **values: Any) -> StateSpace:
        """The system for some values of the elements; those left out have their means."""
        n, M = self.order, self.matrix.at(**values)
        return StateSpace(M[:n, :n], M[:n, n:], M[n:, :n], M[n:, n:], self.dt, **self._signals())

    def _signals(self) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name in ("input_names", "output_names", "input_units", "output_units")
        }

    def __getitem__(self, key: Any) -> UncertainSystem:
        """Outputs and inputs by name, number, slice or list, as of a `StateSpace`."""
        if not isinstance(key, tuple) or len(key) != 2:
            raise ArgumentError(f"UncertainSystem: [{key!r}] is not understood, expected [outputs, inputs]")
        rows = arguments.picked("UncertainSystem", "outputs", self.output_names, key[0])
        columns = arguments.picked("UncertainSystem", "inputs", self.input_names, key[1])
        U, states = self.matrix, range(self.order)
        i, j = [*states, *(self.order + k for k in rows)], [*states, *(self.order + k for k in columns)]
        return UncertainSystem(
            U.with_parts(U.M11, U.M12[:, j], U.M21[i], U.M22[np.ix_(i, j)]).reduced(),
            self.order,
            self.dt,
            arguments.distinct(self.input_names[k] for k in columns),
            arguments.distinct(self.output_names[k] for k in rows),
            tuple(self.input_units[k] for k in columns),
            tuple(self.output_units[k] for k in rows),
        )

    def renamed(
        self, *, inputs: Sequence[str] | str | None = None, outputs: Sequence[str] | str | None = None
    ) -> UncertainSystem:
        """The same system with other names of signals."""
        return dataclasses.replace(
            self,
            input_names=self.input_names if inputs is None else inputs,  # type: ignore[arg-type]
            output_names=self.output_names if outputs is None else outputs,  # type: ignore[arg-type]
        )

    def samples(self, count: int, *, seed: int = 0) -> list[StateSpace]:
        """The systems at the values that `matrix.sampled(count)` gives: corners first, then random ones."""
        return [self.at(**values) for values in self.matrix.sampled(count, seed=seed)]

    def open(self) -> StateSpace:
        """(1): the system from (w, u) to (z, y) that w = Delta z closes; `mu_peak` and `dksyn` take it with `blocks`."""
        n, U = self.order, self.matrix
        return StateSpace(
            U.M22[:n, :n],
            np.hstack([U.M21[:n], U.M22[:n, n:]]),
            np.vstack([U.M12[:, :n], U.M22[n:, :n]]),
            np.block([[U.M11, U.M12[:, n:]], [U.M21[n:], U.M22[n:, n:]]]),
            self.dt,
        )

    @takes_systems(gains=True)
    def closed(self, controller: StateSpace) -> StateSpace:
        """From w to z with u = K y, where y and u are the last outputs and inputs."""
        if controller.order and controller.dt != self.dt:
            rates = [f"sampled every {x:g} s" if x else "continuous" for x in (controller.dt, self.dt)]
            raise ArgumentError(
                f"closed: the controller is {rates[0]}, the system {rates[1]}; use `c2d` or `d2c` first"
            )
        return lft(self.open(), StateSpace(*controller.matrices, self.dt))

    # --- analysis ---------------------------------------------------------------------------------------------------

    def mu(self, *, tolerance: float = 1e-2) -> MuPeak:
        """Robust stability: below one, the system is stable for all elements within their bounds."""
        k = len(self.matrix.M11)
        return mu_peak(self.open()[:k, :k], self.blocks, tolerance=tolerance)

    def worst_gain(self, *, tolerance: float = 1e-2) -> tuple[float, float]:
        """Bounds of the largest gain from inputs to outputs, over all elements within bounds; see `worst_case_gain`."""
        return worst_case_gain(self.open(), self.blocks, tolerance=tolerance)

    # --- algebra ----------------------------------------------------------------------------------------------------

    def __mul__(self, other: Any) -> UncertainSystem:
        """`other` first."""
        if is_number(other):
            return self * (np.eye(self.shape[1]) * other)
        made: Any = product(as_uncertain_system(other), self)  # type: ignore[arg-type]
        return made

    def __rmul__(self, other: Any) -> UncertainSystem:
        return self * other if is_number(other) else as_uncertain_system(other) * self

    def __add__(self, other: Any) -> UncertainSystem:
        made: Any = parallel(self, np.full(self.shape, other) if is_number(other) else other)  # type: ignore[arg-type]
        return made

    __radd__ = __add__

    def __neg__(self) -> UncertainSystem:
        return self * -1.0

    def __sub__(self, other: Any) -> UncertainSystem:
        return self + (-other if is_number(other) else -as_uncertain_system(other))

    def __rsub__(self, other: Any) -> UncertainSystem:
        return -self + other

    def __truediv__(self, number: float) -> UncertainSystem:
        if not is_number(number) or number == 0:
            raise ArgumentError(f"UncertainSystem: divided by {number!r}, expected a number other than zero")
        return self * (1.0 / number)

    def feedback(self, K: Any = 1.0, *, sign: int = -1) -> UncertainSystem:
        """u = r + sign K y around this system; negative feedback unless `sign` is 1. From r to y."""
        made: Any = feedback(self, K, sign=sign)  # type: ignore[arg-type]
        return made

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{name} ({self.matrix.kinds.get(name, 'real')})" for name, n in self.matrix.copies.items() if n
        )
        return f"<UncertainSystem: {self.order} states, shape {self.shape}, {listed or 'no elements'}>"


def as_uncertain_system(value: Any) -> UncertainSystem:
    """A system, an `Uncertain` matrix or numbers, as a system with elements."""
    if isinstance(value, UncertainSystem):
        return value
    for conversion in ("to_uncertain_system", "to_statespace"):
        if hasattr(value, conversion):
            return as_uncertain_system(getattr(value, conversion)())
    if isinstance(value, StateSpace):
        A, B, C, D = value.matrices
        return UncertainSystem(
            uncertain(np.block([[A, B], [C, D]])),
            value.order,
            value.dt,
            value.input_names,
            value.output_names,
            value.input_units,
            value.output_units,
        )
    return UncertainSystem(uncertain(value), 0)


def uncertain_system(
    A: Any,
    B: Any,
    C: Any,
    D: Any = None,
    *,
    dt: float = 0.0,
    inputs: Sequence[str] | str = (),
    outputs: Sequence[str] | str = (),
) -> UncertainSystem:
    """From matrices of numbers and `Uncertain`s, continuous or sampled every `dt` seconds; copies that do nothing are taken
    out of the whole. `inputs` and `outputs` name the signals."""
    a, b, c = (uncertain(X) for X in (A, B, C))
    d = uncertain(np.zeros((c.shape[0], b.shape[1])) if D is None else D)
    n = a.shape[0]
    if a.shape != (n, n) or b.shape[0] != n or c.shape[1] != n or d.shape != (c.shape[0], b.shape[1]):
        raise ArgumentError(
            f"uncertain_system: A, B, C and D have shapes {a.shape}, {b.shape}, {c.shape} and {d.shape}, which do not fit"
        )
    whole = stacked([stacked([a, b], 1), stacked([c, d], 1)], 0).reduced()
    named = ((x,) if isinstance(x, str) else tuple(x) for x in (inputs, outputs))
    return UncertainSystem(whole, n, static(1.0, dt=dt).dt, *named)


# --- pieces -----------------------------------------------------------------------------------------------------


def joined(
    function: str, systems: Sequence[UncertainSystem], F: Array, E: Array, L: Array, tap: Array | None = None
) -> UncertainSystem:
    """Systems side by side with u = F y + E r, from r to L y (+ `tap` u); elements are pulled out, and put back."""
    common_dt(function, systems)
    both = append(*(G.open() for G in systems))
    # inputs (w_1, u_1, w_2, u_2, ...), outputs (z_1, y_1, ...)
    own = {"w": [], "u": [], "y": []}  # type: dict[str, list[int]]
    row = column = 0
    for G in systems:
        k, (p, m) = len(G.matrix.M11), G.shape
        own["w"] += range(column, column + k)
        own["u"] += range(column + k, column + k + m)
        own["y"] += range(row + k, row + k + p)
        row, column = row + k + p, column + k + m
    elements = np.setdiff1d(np.arange(row), own["y"])
    k = len(elements)
    Fs, Es = np.zeros((column, row)), np.zeros((column, k + E.shape[1]))
    Fs[np.ix_(own["u"], own["y"])] = F
    Es[own["w"], :k] = np.eye(k)
    Es[own["u"], k:] = E
    P = close(function, both, Fs, Es, tap=True)
    whole_L = np.zeros((k + len(L), row + column))
    whole_L[:k][:, elements] = np.eye(k)
    whole_L[k:, own["y"]] = L
    if tap is not None:
        whole_L[k:, [row + i for i in own["u"]]] = tap
    C, D = whole_L @ P.C, whole_L @ P.D
    M = (
        D[:k, :k],
        np.hstack([C[:k], D[:k, k:]]),
        np.vstack([P.B[:, :k], D[k:, :k]]),
        np.block([[P.A, P.B[:, k:]], [C[k:], D[k:, k:]]]),
    )
    return UncertainSystem(merged(*M, *(G.matrix for G in systems)), P.order, P.dt)

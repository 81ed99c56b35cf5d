"""Constrained inverse dynamics by compiled code, for rows and independent speeds that served one state.

(2) and (3) of `reduced_symbols` from the efforts r of the tree, with a status that tells whether the choice serves a state:

    status = (serves, slack, other)                                                                    (1)

serves: 1 where, with the pivots U of the dependent columns R_d and the pivots P of B B^T,

    |U_kk| > CLEAR |column k of R_d|,   P_k > CLEAR^2 (B B^T)_kk,   P_k > REGULAR max (B B^T)_jj       (2)
    |D E| <= (RANK + 10 slack) (1 + |E|) scale                   the rows D left out follow from R     (3)

the acceleration keeps the constraints and all is finite; slack and other as in `compiled`. What a choice does not serve
is computed state by state, by a choice for each; the first of these are compiled as well (`dynamics.inverse`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints import reduced_symbols
from alembert.constraints.compiled import Symbols, largest, scales
from alembert.constraints.tolerances import OFF, RANK
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel

if TYPE_CHECKING:
    from alembert.constraints.system import ConstraintSystem
    from alembert.model import Model

Array = np.ndarray
Chosen = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
CLEAR = 1e-2
"""smallest pivots in (2): errors are some eps / CLEAR^2"""
REGULAR = 1e-10
MOST = 4
"""choices that are compiled for one set of drives"""


class Drives:
    """Some driven speeds, and the choices of rows and independent speeds that served them. Kept by a thread."""

    def __init__(self, system: ConstraintSystem, driven: Array) -> None:
        self._system, self.driven, self.equal = system, driven, np.ones(len(driven))
        self._choices: list[Chosen] = []
        self.current: Chosen | None = None
        self._kernel: Kernel | None = None

    def learn(self, rows: Array, free: Array) -> Chosen | None:
        """The choice of a state becomes the current one, unless there are too many, or it is too large to compile."""
        small = 0 < len(rows) <= reduced_symbols.MOST and len(free) and len(self.driven)
        if not small or self._system.all.solution is None:
            return None
        picked = self._system.picked
        first, second, third = (tuple(int(i) for i in x) for x in (picked[rows], free, self.driven))
        chosen = (first, second, third)
        if chosen not in self._choices:
            if len(self._choices) == MOST:
                return None
            self._choices.append(chosen)
        self._kernel = self._system.all.drives(chosen, tuple(picked.tolist()))
        self.current = chosen
        return chosen

    @property
    def slopes(self) -> Kernel:
        """Derivatives by the current choice."""
        assert self.current is not None
        return self._system.all.drive_slopes(self.current)

    def solve(self, given: Sequence[Any], r: Array, root: Array, last: Sequence[Array]) -> Any:
        """Efforts, forces of all rows, wrenches, mu and (1) for q, v, a and the tree's efforts, by the current choice."""
        assert self._kernel is not None
        return self._kernel(*given, r, root, *last)


def all_served(status: Array, closed: float, *, unique: bool) -> bool:
    """Whether it serves all states; with `unique`, forces count: there must be no choice among them."""
    if status.ndim > 1:
        return bool(np.all(served(status, closed, unique=unique)))
    serves, slack, other = status.tolist()
    return bool(serves == 1.0 and slack <= closed and not (unique and other > RANK**2))


def served(status: Array, closed: float, *, unique: bool) -> Array:
    """Which states of a batch."""
    good = (status[..., 0] == 1.0) & (status[..., 1] <= closed)
    return good & (status[..., 2] <= RANK**2) if unique else good


def kernel(
    model: Model,
    slices: Sequence[slice],
    graph: Callable[[], Symbols],
    chosen: Chosen,
    active: tuple[int, ...],
) -> Kernel:
    """(q, v, a, r, root[, parameters]) -> efforts, f, T f by loops, mu of `inverse_derivatives`, (1)."""
    rows, free, driven = chosen
    speeds = [Argument(name, (model.nv,)) for name in ("v", "a", "r")]
    inputs = [Argument("q", (model.nq,)), *speeds, Argument("root", (len(driven),))]
    if model.parameters:
        inputs.append(Argument("parameters", (len(model.parameters),)))
    results = [
        Argument("efforts", (model.nv,)),
        Argument("f", (slices[-1].stop,)),
        Argument("wrenches", (max(1, len(model.loops)), 6)),
        Argument("mu", (model.nv,)),
        Argument("status", (3,)),
    ]

    def build() -> KernelSource:
        at = graph()
        a, r, root = (
            ca.SX.sym(name, n) for name, n in (("a", model.nv), ("r", model.nv), ("root", len(driven)))
        )
        found = at.found
        by = reduced_symbols.basis(found, rows, free)
        solved = reduced_symbols.efforts(model, slices, found, by, chosen, root, r)
        slack, good = reduced_symbols.on_surface(found, slices, active, at.v, a)
        scale = scales(found.jacobian, slices)
        total = sum((ca.sumsqr(x) for x in (at.q, at.v, a, r, solved.u, solved.f)), ca.SX(0))
        good = ca.logic_and(good, total < 1e300)  # not where one is not a number
        good = ca.logic_and(good, by.quality > CLEAR)
        highest = largest(solved.diagonal)
        for k in range(solved.D.numel()):
            good = ca.logic_and(good, solved.D[k] > CLEAR**2 * solved.diagonal[k])
            good = ca.logic_and(good, solved.D[k] > REGULAR * highest)
        dropped = [i for i in active if i not in set(rows)]
        other = ca.SX(0)
        if dropped:
            D = found.jacobian[dropped, :]
            follows = largest(ca.vec((D @ by.E) / ca.repmat(ca.sqrt(scale[dropped]), 1, len(free))))
            allowed = (RANK + ca.fmin(10 * slack, OFF)) * (1 + largest(ca.vec(by.E)))
            good = ca.logic_and(good, follows <= allowed)
            other = largest(ca.sum2(D * D) / scale[dropped])
        status = ca.vertcat(good, slack, other)
        values = [at.q, at.v, a, r, root, *([at.parameters] if model.parameters else [])]
        outputs = [solved.u, solved.f, solved.wrenches, solved.mu, status]
        return FunctionSource(ca.Function("drives", values, [ca.densify(x) for x in outputs]))

    key = f"{model.fingerprint}:drives:{chosen}:{active}"
    return Kernel("constrained_inverse_dynamics", inputs, results, key=key, build=build)

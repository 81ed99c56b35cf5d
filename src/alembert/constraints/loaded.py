"""Reactions under efforts that depend on them, compiled: a step of Newton's method.

By the rows of a minimal set the forces of constraints are affine in the efforts, f = f0 + K u. Where efforts u(r) read some
reactions r = S f (entries of the wrenches of loops, forces of couplings and equations), r solves

    h = S (f0 + K u(r)) - r = 0,        (1 - S K u'(r)) dr = h                                          (1)

Laws of friction and creep are piecewise linear in the normal force, so that a few steps are enough. Where 1 - S K u' is
singular there is no solution, or more than one: friction jams the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca

from alembert.constraints.compiled import Held, moving, terms_and_solution
from alembert.constraints.drives import upper_solution
from alembert.constraints.factors import Admittance, largest
from alembert.engine.kernel import Kernel
from alembert.sensitivity.mass_factor import Pattern

if TYPE_CHECKING:
    from alembert.constraints.rows import ConstraintRows

Read = tuple[str, int]
"""a constraint, and the entry of its reaction"""


def width(rows: ConstraintRows, name: str) -> int:
    """How many numbers the reaction of a constraint has."""
    s = rows.slices[name]
    return 6 if rows.kinds[name] == "loop" else s.stop - s.start


def newton_kernel(rows: ConstraintRows, reads: Sequence[Read], held: Held = ()) -> Kernel:
    """(q, v, factor, rest[, a of held speeds], u, u', r, chosen, active[, parameters]) -> the next r; |h| and size of r."""
    nv, count = rows.model.nv, len(reads)

    def solution(rows: ConstraintRows, x: dict[str, ca.SX]) -> list[ca.SX]:
        """(1)"""
        by = Admittance(Pattern(rows.model.compute.tree), rows.slice_list, x["factor"], x["chosen"], x["G"])
        S = selected(rows, x["T"], reads)

        def forces(b: ca.SX, bias: ca.SX | float = 0.0) -> ca.SX:
            return by.solve(-(bias + by.weighted.T @ by.inward(b)))

        found = S @ forces(x["rest"] + moving(x["u"], held), x["gamma"])
        slope = ca.reshape(x["slope"], nv, count)
        columns = [S @ forces(moving(slope[:, j], held)) for j in range(count)]
        Q, U = ca.qr(ca.densify(ca.SX.eye(count) - ca.horzcat(*columns)))
        step = upper_solution(U, Q.T @ (found - x["read"]))
        return [x["read"] + step, ca.vertcat(largest(found - x["read"]), largest(found) + largest(x["read"]))]

    given = ("factor", "rest", "a_held") if held else ("factor", "rest")
    more = {"u": nv, "slope": nv * count, "read": count}
    results = {"next": (count,), "status": (2,)}
    content = f"reactions:{list(reads)}"
    return terms_and_solution(
        rows, "constraint_solution", (*given, *more), results, solution, held, more=more, content=content
    )


def selected(rows: ConstraintRows, T: ca.SX, reads: Sequence[Read]) -> ca.SX:
    """S of (1); T has the wrenches of loops by rows"""
    S = ca.SX(len(reads), rows.count)
    for k, (name, entry) in enumerate(reads):
        s = rows.slices[name]
        if rows.kinds[name] == "loop":
            S[k, s] = T[s, entry].T
        else:
            S[k, s.start + entry] = 1.0
    return S

"""The algorithms of models with loops, couplings or equations, on expressions: a minimal set of constraint rows is held."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from alembert.algorithms.algorithm import Algorithm, GraphInputs, Results
from alembert.constraints import compiled, drives
from alembert.constraints.equations import equations


def _constrained(s: GraphInputs) -> Results:
    """Constrained accelerations, the forces of all rows, and the wrenches of loops."""
    rows = s.tree.model.constrained_compute.rows
    masks = np.zeros((2, rows.count))
    masks[0, list(s.options.chosen)] = 1.0
    masks[1, list(s.options.active)] = 1.0
    given = dict(s.given)
    if s.wrenches:
        given["wrench"] = s.wrench_rows
    a, f, wrenches = compiled.symbolic_solution(
        rows, (masks[0], masks[1]), given, s.p, guarded=s.options.guarded
    )
    return {"a": a, "forces": f, "wrenches": wrenches}


def _accelerations(s: GraphInputs) -> Results:
    return {"a": _constrained(s)["a"]}


def _hybrid(s: GraphInputs) -> Results:
    """From a = a_0 + A_p tau_p, affine in the efforts of the prescribed speeds, A_pp tau_p = a_p - a_0p.

    What is prescribed is in the options; the input `free` changes nothing.
    """
    assert s.options.free is not None
    p = [k for k, free in enumerate(s.options.free) if not free]
    tau, unknown = ca.SX(s.given["tau"]), ca.SX.sym("unknown", len(p))
    tau[p] = unknown
    a = _constrained(replace(s, given={**s.given, "tau": tau}))["a"]
    if not p:
        return {"a": a, "effort": tau}
    A_p = ca.densify(ca.jacobian(a, unknown))
    a_0 = ca.substitute(a, unknown, ca.SX.zeros(len(p)))
    D, LT, order = ca.ldl(A_p[p, :])
    found = ca.ldl_solve(s.given["a"][p] - a_0[p], D, LT, order)
    tau[p] = found
    return {"a": a_0 + A_p @ found, "effort": tau}


def _inverse(s: GraphInputs) -> Results:
    """Efforts, the forces of all rows, and the wrenches of loops."""
    o = s.options
    given = dict(s.given) | ({"wrench": s.wrench_rows} if s.wrenches else {})
    rows = s.tree.model.constrained_compute.rows
    u, f, wrenches = drives.symbolic_inverse(
        rows, (o.chosen, o.active, o.independent), o.drives, given, s.p, guarded=o.guarded
    )
    return {"efforts": u, "forces": f, "wrenches": wrenches}


def _efforts(s: GraphInputs) -> Results:
    return {"efforts": _inverse(s)["efforts"]}


def _independent(s: GraphInputs) -> Results:
    found = equations(s.tree, s.given["q"], s.given["v"], s.p)
    rows = list(s.options.chosen)
    by = drives.basis(found.jacobian[rows, :], found.bias[rows], s.options.independent)
    return {"E": by.E, "rate": by.rate}


_ENTRIES = (
    Algorithm("constrained_dynamics", ("q", "v", "tau"), graph=_constrained, takes_wrenches=True),
    Algorithm(
        "constrained_accelerations",
        ("q", "v", "tau"),
        graph=_accelerations,
        takes_wrenches=True,
        is_method=False,
    ),
    Algorithm(
        "constrained_hybrid",
        ("q", "v", "tau", "a", "free"),
        graph=_hybrid,
        has_kernel=False,
        takes_wrenches=True,
        is_method=False,
    ),
    Algorithm("constrained_inverse_dynamics", ("q", "v", "a"), graph=_inverse, takes_wrenches=True),
    Algorithm("constrained_efforts", ("q", "v", "a"), graph=_efforts, takes_wrenches=True, is_method=False),
    Algorithm("independent_coordinates", ("q", "v"), graph=_independent, has_kernel=False),
)
CONSTRAINED: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in _ENTRIES}

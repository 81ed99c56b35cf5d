"""How constraints and the tree's inverse dynamics depend on named parameters, at a fixed motion and fixed forces.

    (G^T f)_p,   (G a + gamma)_p,   phi_p,   r_p = (inverse dynamics)_p                               (1)

They are the right-hand sides of the derivatives with respect to parameters in `derivatives` and `inverse_derivatives`. Where
a parameter changes the geometry of a loop, a state that was closed is so no longer: derivatives at fixed q and v are those
of the solution of the chosen rows there, and a closed state moves along with the parameter by

    H dq = -phi_p dp,     G dv = -((G v)_p dp + (G v)_q dq)                                           (2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints.states import States
from alembert.constraints.system import ConstraintSystem
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel

if TYPE_CHECKING:
    from alembert.constraints.compiled import Symbols
    from alembert.model import Model

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ParameterSlopes:
    """(1) for some parameters: (B, nv, k), (B, m, k) and (B, m, k), over the active rows."""

    push: Array
    row: Array
    residual: Array


def constraint_slopes(
    system: ConstraintSystem, s: States, a: Array, f: Array, chosen: Sequence[int]
) -> ParameterSlopes:
    """At speeds `s.vectors[0]`, accelerations a (B, nv) and forces f (B, all rows)."""
    assert s.parameters is not None
    found = system.all.parameter_slopes(s.q, s.vectors[0], a, f, s.parameters)
    push, row, residual = (x[..., list(chosen)] for x in found)
    return ParameterSlopes(push, row[:, system.picked], residual[:, system.picked])


def effort_slopes(
    system: ConstraintSystem, s: States, a: Array, wrenches: Mapping[str, Any] | None, chosen: Sequence[int]
) -> Array:
    """r_p (B, nv, k), wrenches on frames included."""
    forces = {frame: np.asarray(x, dtype=float) for frame, x in (wrenches or {}).items()}
    q, v, a, values = (
        x.reshape(*s.shape, x.shape[-1]) for x in (s.q, s.vectors[0], a, np.asarray(s.parameters))
    )
    found = system.all.unconstrained.compute.effort_slopes(q, v, a, values, forces, chosen)
    return found.reshape(-1, *found.shape[-2:])


def kernel(model: Model, count: int, graph: Callable[[], Symbols]) -> Kernel:
    """(q, v, a, f, parameters) -> (G^T f)_p, (G a + gamma)_p, phi_p of all rows."""
    size = len(model.parameters)
    inputs = [
        Argument("q", (model.nq,)),
        Argument("v", (model.nv,)),
        Argument("a", (model.nv,)),
        Argument("f", (count,)),
        Argument("parameters", (size,)),
    ]
    results = [
        Argument("push_p", (model.nv, size)),
        Argument("row_p", (count, size)),
        Argument("phi_p", (count, size)),
    ]

    def build() -> FunctionSource:
        given = graph()
        a, f, found = ca.SX.sym("a", model.nv), ca.SX.sym("f", count), given.found
        changing = [found.jacobian.T @ f, found.jacobian @ a + found.bias, found.residual]
        outputs = [ca.densify(ca.jacobian(x, given.parameters)) for x in changing]
        return FunctionSource(
            ca.Function("parameter_slopes", [given.q, given.v, a, f, given.parameters], outputs)
        )

    key = f"{model.fingerprint}:constraint_parameter_slopes"
    return Kernel("constraint_parameter_slopes", inputs, results, key=key, build=build)

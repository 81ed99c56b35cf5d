"""Linear models in tangent coordinates, by the exact derivatives of the dynamics.

About a nominal motion (q0, v0) under the efforts tau0, with x = (e; dv), e = difference(q0, q), dv = v - v0:

    e'  = N e + dv                                                                        (1)
    dv' = (da/dq) e + (da/dv) dv + M^-1 G du + (da/dp) dp,    tau = tau0 + G du            (2)
    dy  = (h_q + h_a da/dq) e + (h_v + h_a da/dv) dv + h_a M^-1 G du + (h_p + h_a da/dp) dp  (3)
    da/dp = -M^-1 (dtau/dp)  of inverse dynamics at the accelerations a0                  (4)

Where loops, couplings or equations hold, e = E_q e_i and dv = E_v dv_i + W e_i (see `constraints.tangent`), and the
states are e_i and dv_i: displacements and speeds of independent degrees of freedom,

    A <- P A T,    B <- P B,    C <- C T,    T = [E_q 0; W E_v],  P picks the independent entries          (5)
    E <- P (A X + E),   F <- C X + F,        X = [dq/dp; dv/dp] of the dependent ones: loops stay closed    (6)

N is that of `Space.error_rate`, zero at rest and for joints whose coordinates add. Lin and Yae (1989) have (2) as
M^-1 P2, M^-1 P1 and M^-1 P3.

Design points of mechanisms: what `alembert.control.codesign` varies are named parameters of a model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import casadi as ca
import numpy as np

from alembert import arguments
from alembert.arguments import check_known, mapping
from alembert.control.codesign import DesignPoint
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import evaluate, names_in
from alembert.linear import quantities
from alembert.linear.linear_model import LinearModel
from alembert.linear.quantities import differentiate
from alembert.linear.quantities import outputs as output_rows
from alembert.linear.uncertain import UncertainLinearModel, uncertain_linear_model
from alembert.model import Model
from alembert.model.model import check_model

Array = np.ndarray


@overload
def linearize(
    model: Model,
    q: Any,
    v: Any = None,
    tau: Any = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] = (),
    parameters: Sequence[str] = (),
    parameter_values: Mapping[str, Any] | None = None,
    wrenches: Mapping[str, Any] | None = None,
    forces: quantities.ForcesOfState | None = None,
    t: float = 0.0,
    uncertain: None = None,
) -> LinearModel: ...


@overload
def linearize(
    model: Model,
    q: Any,
    v: Any = None,
    tau: Any = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] = (),
    parameters: Sequence[str] = (),
    parameter_values: Mapping[str, Any] | None = None,
    wrenches: Mapping[str, Any] | None = None,
    forces: quantities.ForcesOfState | None = None,
    t: float = 0.0,
    uncertain: Mapping[str, Any],
) -> UncertainLinearModel: ...


def linearize(
    model: Model,
    q: Any,
    v: Any = None,
    tau: Any = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] = (),
    parameters: Sequence[str] = (),
    parameter_values: Mapping[str, Any] | None = None,
    wrenches: Mapping[str, Any] | None = None,
    forces: quantities.ForcesOfState | None = None,
    t: float = 0.0,
    uncertain: Mapping[str, Any] | None = None,
) -> LinearModel | UncertainLinearModel:
    """The linear model about an equilibrium, any state, or every state of a batch (a trajectory).

    Args:
        model: a tree, or one with loops: its states then are those of independent degrees of freedom.
        q: configurations (..., nq).
        v: speeds (..., nv); zero when left out.
        tau: efforts (..., nv); zero when left out.
        inputs: names of actuators, joints or degrees of freedom; by default the actuators of the model, or all
            efforts where it has none. An actuator's input is its effort over its gear. `wrench:tool` (or `wrench:tool.fz`)
            are changes of a wrench on a frame: the columns of B are then those of a disturbance, or of a thruster.
        outputs: names, see `alembert.linear.quantities`; by default the whole state.
        parameters: names of parameters for the columns of E and F, at fixed q, v and tau.
        parameter_values: where not at their defaults.
        wrenches: on frames, (..., 6) each, moment and force in the frame's axes, in which they stay fixed.
        forces: what else acts on the model, `al.simulate.Forces(model, [...])`: springs, drag, gravity in orbit; their
            efforts are not part of `tau`.
        t: the time at which `forces` are taken [s].
        uncertain: parameters of the model and their ranges, `{"payload": (1, 5)}`: an `UncertainLinearModel` for all values
            in them, about the same state; `tau` belongs to `parameter_values` and defaults, at other values the inputs give
            as much more as the same accelerations take.
    """
    check_model("linearize", model)
    q, v, tau = _state(model, q, v, tau)
    quantities.check_forces(model, forces, "linearize")
    if model.is_constrained and not min(q.size, v.size, tau.size):
        raise ArgumentError(
            "linearize: takes at least one state of a model with loops or couplings, to choose independent states at"
        )
    if uncertain is not None:
        if wrenches or forces is not None or parameters:
            raise UnsupportedError(
                "linearize: uncertain does not go together with wrenches, forces or parameters; leave them out"
            )

        def at(tau: Any, given: Mapping[str, Any]) -> LinearModel:
            return linearize(model, q, v, tau, inputs=inputs, outputs=outputs, parameter_values=given)

        fixed = mapping("linearize", "parameter_values", parameter_values)
        return uncertain_linear_model(model, uncertain, at, q, v, tau, fixed, outputs)
    values = {**model.parameter_values, **mapping("linearize", "parameter_values", parameter_values)}
    pushes = quantities.wrenches(model, wrenches, "linearize")
    given = quantities.inputs(model, inputs, values, "linearize", q)
    rows = output_rows(model, outputs, "linearize")
    chosen = _chosen(model, parameters, given, tau)
    n = model.nv

    d: Any
    p = model.compute.parameter_array("linearize", parameter_values)
    names = [model.parameters[k][0] for k in chosen]
    total = tau
    if forces is not None:
        if chosen:
            raise UnsupportedError(
                f"linearize: forces and derivatives for parameters ({names[0]!r}) do not go together; leave one of them out"
            )
        total = tau + forces.efforts(q, v, t=t, parameters=parameter_values)
    d = model.forward_dynamics_derivatives(
        q, v, total, wrenches=pushes or None, parameters=parameter_values, sensitive_to=names
    )
    da_dq, da_dv = d.dq, d.dv
    if forces is not None:
        slopes = forces.derivatives(q, v, t=t, parameters=parameter_values)
        da_dq, da_dv = d.dq + d.dtau @ slopes.dq, d.dv + d.dtau @ slopes.dv
    da_dp = np.zeros((*d.acceleration.shape, 0))
    if chosen:
        da_dp = np.stack([d.dparameters[name] for name in names], axis=-1)  # (4)
    batch = d.acceleration.shape[:-1]
    da_du = d.dtau @ given.matrix
    h = differentiate(model, rows, q, v, d.acceleration, p)

    A = np.zeros((*batch, 2 * n, 2 * n))
    A[..., :n, :n] = _error_rate(model, q, v)  # (1)
    A[..., :n, n:] = np.eye(n)
    A[..., n:, :n], A[..., n:, n:] = da_dq, da_dv  # (2)
    above = np.zeros((*batch, n, 1))
    linear = LinearModel(
        model=model,
        q=np.broadcast_to(q, (*batch, model.nq)),
        v=np.broadcast_to(v, (*batch, n)),
        tau=np.broadcast_to(tau, (*batch, n)),
        a=d.acceleration,
        y=np.broadcast_to(h.y, (*batch, len(rows))),
        A=A,
        B=np.concatenate([np.repeat(above, len(given.names), axis=-1), da_du], axis=-2),
        C=np.concatenate([h.dq + h.da @ da_dq, h.dv + h.da @ da_dv], axis=-1),  # (3)
        D=h.da @ da_du,
        E=np.concatenate([np.repeat(above, len(chosen), axis=-1), da_dp], axis=-2),
        F=h.dp[..., chosen] + h.da @ da_dp,
        G=np.broadcast_to(given.matrix, (*batch, *given.matrix.shape[-2:])),
        state_names=tuple(f"{kind}:{name}" for kind in "qv" for name in model.speed_names),
        state_units=(*quantities.displacement_units(model), *quantities.speed_units(model)),
        input_names=given.names,
        input_units=given.units,
        output_names=tuple(row.name for row in rows),
        output_units=tuple(row.unit for row in rows),
        parameter_names=tuple(model.parameters[k][0] for k in chosen),
        parameter_values=dict(parameter_values or {}),
        mass_matrix=np.linalg.inv(d.dtau) if not model.is_constrained else np.zeros((*batch, 0, 0)),
        displacements=tuple(range(n)),
        rates=tuple(range(n)),
        wrenches={frame: np.broadcast_to(F, (*batch, 6)) for frame, F in pushes.items()},
        wrench_inputs=given.wrenches,
    )
    return _reduced(linear, parameter_values, chosen) if model.is_constrained else linear


def _reduced(linear: LinearModel, parameters: Mapping[str, Any] | None, chosen: Sequence[int]) -> LinearModel:
    """(5) and (6)"""
    model, n = linear.model, linear.model.nv
    flat = [x.reshape(-1, x.shape[-1]) for x in (linear.q, linear.v)]
    tangents = model.constrained_compute.constraint_tangents(
        "linearize", flat[0], flat[1], parameters, chosen
    )
    q_dofs, v_dofs = tangents[0].q_dofs, tangents[0].v_dofs
    pick = np.concatenate([q_dofs, n + v_dofs])
    T = np.zeros((len(tangents), 2 * n, len(pick)))
    for k, t in enumerate(tangents):
        T[k, :n, : len(q_dofs)] = t.E_q
        T[k, n:, : len(q_dofs)] = t.W
        T[k, n:, len(q_dofs) :] = t.E_v
    X = np.array([np.vstack([t.q_parameters, t.v_parameters]) for t in tangents])
    masses = [
        t.E_v.T @ M @ t.E_v
        for t, M in zip(tangents, model.mass_matrix(flat[0], parameters=parameters), strict=True)
    ]
    batch = linear.batch
    T, X = T.reshape(*batch, *T.shape[1:]), X.reshape(*batch, *X.shape[1:])
    return dataclasses.replace(
        linear,
        A=(linear.A @ T)[..., pick, :],
        B=linear.B[..., pick, :],
        C=linear.C @ T,
        E=(linear.A @ X + linear.E)[..., pick, :],
        F=linear.C @ X + linear.F,
        state_names=tuple(linear.state_names[k] for k in pick),
        state_units=tuple(linear.state_units[k] for k in pick),
        mass_matrix=np.array(masses).reshape(*batch, len(v_dofs), len(v_dofs)),
        displacements=tuple(int(k) for k in q_dofs),
        rates=tuple(int(k) for k in v_dofs),
    )


def _state(model: Model, q: Any, v: Any, tau: Any) -> tuple[Array, Array, Array]:
    found = []
    for name, x, width in (("q", q, model.nq), ("v", v, model.nv), ("tau", tau, model.nv)):
        found.append(np.zeros(width) if x is None else model.compute.numbers("linearize", name, x, width))
    model.space.check("linearize", found[0])
    return found[0], found[1], found[2]


def _chosen(model: Model, names: Sequence[str], given: quantities.InputColumns, tau: Array) -> list[int]:
    """The indices of the parameters."""
    if isinstance(names, Mapping):
        raise ArgumentError(
            "linearize: parameters is a mapping, expected the names of the parameters to differentiate for; values go "
            "into parameter_values"
        )
    names = arguments.names("linearize", "parameters", names, or_one=True)
    known = list(model.parameter_values)
    for name in names:
        check_known("linearize: parameters: no parameter", name, known)
        for actuator in given.actuators:
            if name in names_in(actuator.gear) and np.any(tau[..., quantities.driven(model, actuator)]):
                raise UnsupportedError(
                    f"linearize: the gear of the input {actuator.name!r} depends on the parameter {name!r} and "
                    "drives a joint under effort: whether the effort or the input stays fixed is open. Linearise "
                    f"with inputs=['tau:{actuator.joint}'], or without that parameter"
                )
    return [known.index(name) for name in names]


def _error_rate(model: Model, q: Array, v: Array) -> Array:
    """N of (1), (..., nv, nv)."""
    if model.space.is_vector_space:
        batch = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
        return np.zeros((*batch, model.nv, model.nv))

    def make() -> ca.Function:
        at_q, at_v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
        N = ca.densify(model.space.error_rate(at_q, at_v))
        return ca.Function("error_rate", [at_q, at_v], [N])

    given, n = {"q": (model.nq,), "v": (model.nv,)}, model.nv
    return np.asarray(model.compute.function_kernel("error_rate", given, {"N": (n, n)}, make)(q, v))


def design_point(
    model: Model,
    q: Any,
    *,
    controls: Sequence[str],
    disturbances: Sequence[str],
    weighed: Mapping[str, float],
    effort: Any = 1.0,
    measured: Sequence[str] = (),
    sensor: Any = None,
    structure: Callable[..., float] | None = None,
    parameter_values: Mapping[str, Any] | None = None,
) -> Callable[..., DesignPoint]:
    """A function of named parameters of the model, for `control.codesign` and `control.pareto`.

    Args:
        model, q: what is designed, and the configuration it is held in, against gravity and springs.
        controls: inputs of the controller, as `linearize` names them.
        disturbances: inputs (efforts, or `wrench:frame.fx`) that are white noise of unit intensity.
        weighed: outputs whose mean squares count, with their weights: `{"q:tip": 1.0}`.
        effort: the weight R of the controls.
        measured: outputs that the controller gets (output feedback, LQG), `sensor` the intensity of their noise.
        structure: the cost of the structure as a function of the parameters; the mass of the model when left out.
        parameter_values: of those parameters that stay as they are.
    """
    if not controls or not disturbances or not weighed:
        raise ArgumentError(
            f"design_point: controls {list(controls)}, disturbances {list(disturbances)}, weighed {list(weighed)}; expected "
            "names in each"
        )
    named = list(dict.fromkeys([*weighed, *measured]))

    def make(**values: float) -> DesignPoint:
        given = {**(parameter_values or {}), **values}
        rest = np.zeros(model.nv)
        if model.is_constrained:
            tau = model.gravity_forces(q, parameters=given)
        else:  # springs are held as well
            tau = model.inverse_dynamics(q, rest, rest, parameters=given)
        linear, pushed = (
            linearize(model, q, None, tau, inputs=list(names), outputs=named, parameter_values=given)
            for names in (controls, disturbances)
        )
        G = linear.to_statespace()
        rows = [G.output_names.index(name) for name in weighed]
        if np.any(G.D) or np.any(pushed.D):
            raise ArgumentError(
                "design_point: an output follows the inputs directly (an acceleration); weigh and measure displacements and "
                "speeds"
            )
        C = G.C[rows]
        Q = C.T @ np.diag([float(weighed[name]) for name in weighed]) @ C
        plant = G[list(measured), :] if measured else G
        known = {**model.parameter_values, **given}
        mass = sum(float(evaluate(body.inertia.mass, known)) for body in model.bodies)
        cost = mass if structure is None else structure(**values)
        return DesignPoint(plant, pushed.B, Q, effort, float(cost), sensor)

    return make

"""Identities of energy, power and momentum on random trees."""

import casadi as ca
import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    RATE,
    RATE_REASON,
    ROUNDING,
    ROUNDING_REASON,
    TREES,
    friction_effort,
    rate_along,
    relative,
    states,
    times,
    tree,
    wrenches_on,
)


@case(
    source="T = 1/2 v^T M v; M symmetric and positive definite",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 64},
)
def identity_kinetic_energy(count: int) -> Items:
    """Kinetic energy from the mass matrix and from the velocities of the bodies."""
    for name in TREES:
        model = tree(name)
        q, v, _ = states(model, count)
        M, T = model.mass_matrix(q), model.kinetic_energy(q, v)
        error = np.max(np.abs(np.sum(v * times(M, v), axis=-1) / 2 / T - 1))
        yield Check(f"{name}: relative difference", error, 0.0, ROUNDING, ROUNDING_REASON)
        skew = np.max(np.abs(M - np.swapaxes(M, -1, -2))) / np.max(np.abs(M))
        yield Check(f"{name}: asymmetry of M", skew, 0.0, ROUNDING, ROUNDING_REASON)
        yield Check(
            f"{name}: M positive definite", float(np.linalg.eigvalsh(M).min() > 0), 1.0, 0, "yes or no"
        )


@case(
    source="v . c(q, v) = 1/2 v . (dM/dt) v: dM/dt - 2C is skew",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 32},
)
def identity_coriolis_power(count: int) -> Items:
    """Coriolis forces do the work of the changing mass matrix."""
    for name in TREES:
        model = tree(name)
        q, v, _ = states(model, count)
        half = rate_along(lambda q, v, m=model: m.mass_matrix(q), model, q, v, 0 * v) / 2
        expected = np.sum(v * times(half, v), axis=-1)
        scale = np.sum(np.abs(v) * times(np.abs(half), np.abs(v)), axis=-1)
        error = np.max(np.abs(np.sum(v * model.coriolis_forces(q, v), axis=-1) - expected) / scale)
        yield Check(f"{name}: residual / terms", error, 0.0, RATE, RATE_REASON)


@case(
    source="Virtual work: a wrench at a frame is the effort J^T F",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 32},
)
def identity_jacobian_power(count: int) -> Items:
    """External wrenches act as the transposed Jacobians of their frames."""
    for name in TREES:
        model = tree(name)
        q, v, a = states(model, count)
        wrenches = wrenches_on(model, count)
        tau = model.inverse_dynamics(q, v, a)
        difference = tau - model.inverse_dynamics(q, v, a, wrenches=wrenches)
        expected = sum(times(np.swapaxes(model.frame_jacobian(q, f), -1, -2), F) for f, F in wrenches.items())
        yield Check(
            f"{name}: residual / efforts",
            relative(difference - expected, np.abs(tau)),
            0.0,
            ROUNDING,
            ROUNDING_REASON,
        )


@case(
    source="dE/dt = tau . v + sum F . V - friction . v",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 8},
)
def identity_power_balance(count: int) -> Items:
    """The energy changes by the power of efforts, wrenches and friction; its rate by automatic differentiation."""
    for name in TREES:
        model = tree(name)
        q, v, tau = states(model, count)
        wrenches = wrenches_on(model, count)
        a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
        x, y, z = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv), ca.SX.sym("a", model.nv)
        s = model.symbolic
        dT = ca.jtimes(s.kinetic_energy(x, y), ca.vertcat(x, y), ca.vertcat(s.rate(x, y), z))
        dU = ca.jtimes(s.potential_energy(x), x, s.rate(x, y))
        function = ca.Function("dE", [x, y, z], [ca.vertcat(dT, dU)])
        rates = np.array([function(*state).full().ravel() for state in zip(q, v, a, strict=True)])
        power = model.power(q, v, tau, wrenches=wrenches) - np.sum(friction_effort(model, v) * v, axis=-1)
        # dT/dt is v . M a + 1/2 v . dM/dt v: terms of that size cancel
        terms = np.sum(np.abs(v) * np.abs(model.multiply_mass_matrix(q, a)), axis=-1)
        terms += np.sum(np.abs(v) * np.abs(model.coriolis_forces(q, v)), axis=-1) + np.abs(rates).sum(axis=-1)
        error = np.max(np.abs(rates.sum(axis=-1) - power) / terms)
        yield Check(f"{name}: residual / terms", error, 0.0, ROUNDING, ROUNDING_REASON)


@case(
    source="Newton and Euler: the momentum of a floating tree changes by external wrenches and weight",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 32},
)
def identity_momentum_rate(count: int) -> Items:
    """Rate of momentum: wrenches about the origin + weight at the centre of mass; inner forces have no part in it."""
    model = tree("floating")
    q, v, tau = states(model, count)
    tau[:, :6] = 0.0
    wrenches = wrenches_on(model, count)
    a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
    A = model.momentum_matrix(q, about="world")
    rate = times(A, a) + rate_along(lambda q, v: model.momentum(q, v, about="world"), model, q, v, 0 * v)
    weight = model.mass * np.array(model.gravity)
    total = np.concatenate([np.cross(model.center_of_mass(q), weight), np.tile(weight, (count, 1))], axis=-1)
    for frame, F in wrenches.items():
        X = model.frame_pose(q, frame)
        n, f = times(X.rotation, F[:, :3]), times(X.rotation, F[:, 3:])
        total += np.concatenate([n + np.cross(X.translation, f), f], axis=-1)
    scale = np.linalg.norm(A, axis=(-1, -2))[:, None] * np.linalg.norm(a, axis=-1)[:, None] + np.abs(rate)
    yield Check("residual / terms", relative(rate - total, scale), 0.0, RATE, RATE_REASON)


@case(
    source="""Lagrange's equations d/dt dT/dv - dT/dq + dU/dq = tau by automatic differentiation of the energies""",
    kind="independent program",
    tags=("tree", "random"),
    parameters={"seed": 6, "bodies": 6, "count": 5},
)
def identity_lagrange(seed: int, bodies: int, count: int) -> Items:
    """Inverse dynamics against Lagrange's equations of the two energies, on joints whose coordinates add."""
    kinds = ("revolute", "prismatic", "screw", "cylindrical", "universal", "translational", "gimbal")
    model = library.random_tree(seed, bodies=bodies, kinds=kinds)
    n = model.nv
    q, v, a = (ca.SX.sym(x, n) for x in "qva")
    s = model.symbolic
    T, U = s.kinetic_energy(q, v), s.potential_energy(q)
    p = ca.gradient(T, v)
    tau = ca.jtimes(p, ca.vertcat(q, v), ca.vertcat(v, a)) - ca.gradient(T, q) + ca.gradient(U, q)
    function = ca.Function("lagrange", [q, v, a], [tau])
    worst = 0.0
    for x in zip(*states(model, count), strict=True):
        expected, found = function(*x).full().ravel(), model.inverse_dynamics(*x)
        worst = max(worst, float(np.max(np.abs(found - expected)) / np.max(np.abs(expected))))
    yield Check(
        "relative difference", worst, 0.0, 1e-12, "rounding of a gradient of some thousand operations"
    )

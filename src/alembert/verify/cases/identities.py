"""Identities of forward, inverse and hybrid dynamics on random models.

Identities of derivatives, regressors and configurations on random trees.

Identities of energy, power and momentum on random trees.
"""

import casadi as ca
import numpy as np

from alembert import library
from alembert.check import derivatives as check_derivatives
from alembert.identify import regressor
from alembert.joints import REGISTRY
from alembert.verify.case import SOHL_BOBROW, Check, Items, acc1989, family
from alembert.verify.random_models import (
    LOOP_KINDS,
    RATE,
    RATE_REASON,
    ROUNDING,
    ROUNDING_REASON,
    TREES,
    closed,
    dense_solution,
    friction_effort,
    possible_speeds,
    rate_along,
    relative,
    states,
    times,
    tree,
    trees,
    wrenches_on,
)

case = family("random")


@case(
    source="""Inverse dynamics of forward dynamics gives the efforts back; trees with every joint type of the
    registry""",
    kind="identity",
    tags=("tree",),
)
def identity_forward_inverse(count: int = 64) -> Items:
    """ID(FD(tau)) = tau, with external wrenches, springs, friction, armature and rotors."""
    for name, model, q, v, tau in trees(count):
        wrenches = wrenches_on(model, count)
        a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
        back = model.inverse_dynamics(q, v, a, wrenches=wrenches)
        terms = np.abs(model.multiply_mass_matrix(q, a)) + np.abs(model.bias_forces(q, v, wrenches=wrenches))
        yield Check(f"{name}: residual / terms", relative(back - tau, terms), 0.0, ROUNDING, ROUNDING_REASON)


@case(
    source="""M(q) a + bias = inverse dynamics; three algorithms: composite bodies, Newton-Euler with and without
    accelerations""",
    kind="identity",
    tags=("tree",),
)
def identity_equation_of_motion(count: int = 64) -> Items:
    """Mass matrix, bias and inverse dynamics agree."""
    for name, model, q, v, a in trees(count):
        wrenches = wrenches_on(model, count)
        product, bias = times(model.mass_matrix(q), a), model.bias_forces(q, v, wrenches=wrenches)
        tau = model.inverse_dynamics(q, v, a, wrenches=wrenches)
        error = relative(product + bias - tau, np.abs(product) + np.abs(bias))
        yield Check(f"{name}: residual / terms", error, 0.0, ROUNDING, ROUNDING_REASON)


@case(
    source=acc1989("Fijany, Jain", "forward dynamics in O(n), O(n^2) and O(n^3) agree"),
    kind="identity",
    tags=("tree", "acc1989"),
)
def identity_three_methods(count: int = 32) -> Items:
    """Articulated bodies, conjugate gradients and factorisation of the mass matrix."""
    for name, model, q, v, tau in trees(count):
        expected = model.forward_dynamics(q, v, tau)
        condition = np.linalg.cond(model.mass_matrix(q))
        for method in ("factorise", "conjugate_gradients"):
            found = model.forward_dynamics(q, v, tau, method=method)
            error = np.linalg.norm(found - expected, axis=-1) / np.linalg.norm(expected, axis=-1)
            reason = "rounding times the condition number of M"
            yield Check(
                f"{name}, {method}: error / condition", np.max(error / condition), 0.0, ROUNDING, reason
            )


@case(source=f"{SOHL_BOBROW}, section 3: against the full linear system", kind="identity", tags=("tree",))
def identity_hybrid_dynamics(count: int = 32) -> Items:
    """Hybrid dynamics for any choice of prescribed degrees of freedom, another in every state."""
    for name, model, q, v, tau in trees(count):
        rng = np.random.default_rng(3)
        given = rng.normal(size=(count, model.nv))
        free = rng.random((count, model.nv)) < np.linspace(0.02, 0.98, count)[:, None]
        a, effort = model.compile("hybrid_dynamics", batch=True)(q, v, tau, given, free.astype(float))
        M, bias = model.mass_matrix(q), model.bias_forces(q, v)
        worst = 0.0
        for k in range(count):
            f = free[k]
            unknown = np.zeros(
                (model.nv, model.nv)
            )  # columns: accelerations of the free, efforts of the others
            unknown[:, f] = M[k][:, f]
            unknown[~f, ~f] = -1.0
            x = np.linalg.solve(unknown, np.where(f, tau[k], 0.0) - bias[k] - M[k][:, ~f] @ given[k][~f])
            expected = np.where(f, x, given[k])
            size = np.linalg.cond(M[k]) * np.linalg.norm(expected)
            worst = max(worst, float(np.linalg.norm(a[k] - expected) / size))
        yield Check(
            f"{name}: error / condition", worst, 0.0, ROUNDING, "rounding times the condition number of M"
        )
        product = times(M, a)
        error = relative(product + bias - effort, np.abs(product) + np.abs(bias))
        yield Check(f"{name}: residual / terms", error, 0.0, ROUNDING, ROUNDING_REASON)


@case(
    source="""Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra (1992), steps A-F, against the dense
    equations [M G^T; G 0]""",
    kind="identity",
    tags=("loops",),
    slow=True,
)
def identity_closed_loops() -> Items:
    """Accelerations of a floating tree with one loop of each joint type, closed one at a time and in pairs."""
    model, q = closed()
    sets = [(kind,) for kind in LOOP_KINDS] + [("revolute", "spherical"), ("cylindrical", "planar", "gimbal")]
    tau = np.random.default_rng(5).normal(size=model.nv)
    errors, powers = [], []
    for active in sets:
        v = possible_speeds(model, q, active)
        found = model.constrained_dynamics(q, v, tau, active=active)
        expected, _ = dense_solution(model, q, v, tau, active)
        errors.append(float(np.linalg.norm(found.accelerations - expected) / np.linalg.norm(expected)))
        G, gamma = model.constraint_jacobian(q, active=active), model.constraint_bias(q, v, active=active)
        size = np.linalg.norm(G) * np.linalg.norm(found.accelerations)
        powers.append(float(np.max(np.abs(G @ found.accelerations + gamma)) / size))
    yield Check(
        "relative differences",
        errors,
        np.zeros(len(sets)),
        1e-10,
        "rounding times the condition of the loops, up to 1e5",
    )
    yield Check("G a + gamma / size", powers, np.zeros(len(sets)), 1e-12, "rounding")


@case(
    source="One state alone, in a batch, from the specialised and from the rolled kernel",
    kind="identity",
    tags=("tree",),
)
def identity_lanes_and_lowerings(count: int = 33) -> Items:
    """A state gives bitwise the same result alone and in any lane of a batch; rolled code agrees to rounding."""
    model = library.arm7()
    q, v, tau = states(model, count)
    batch = model.forward_dynamics(q, v, tau)
    alone = np.array([model.forward_dynamics(*state) for state in zip(q, v, tau, strict=True)])
    yield Check("bits that differ", int(np.sum(batch != alone)), 0, 0, "lanes use the same operations")
    rolled = model.compile("forward_dynamics", batch=True, lowering="rolled")(q, v, tau)
    error = np.max(np.abs(rolled - batch) / np.max(np.abs(batch), axis=-1, keepdims=True))
    yield Check(
        "rolled: relative difference",
        error,
        0.0,
        1e-11,
        "another order of operations; condition number some 1e3",
    )


@case(
    source="""Derivatives of inverse, forward and hybrid dynamics (Sohl, Bobrow 2001; Singh, Russell, Wensing
    2022) against automatic differentiation""",
    kind="identity",
    tags=("tree", "sensitivity"),
    slow=True,
)
def identity_derivatives(seed: int = 4, samples: int = 2) -> Items:
    """Closed-form derivatives, tangent and adjoint products, on trees that have every joint type between them."""
    kinds = tuple(REGISTRY)
    for part in range(2):
        model = library.random_tree(seed + part, bodies=6, kinds=kinds[part::2], attachments=True)
        found = check_derivatives(
            model, ["inverse_dynamics", "forward_dynamics", "hybrid_dynamics"], states=samples, show=False
        )
        reason = "relative to the derivative; some hundred operations more than the function, rounding 1e-12"
        yield Check(f"tree {part + 1}: largest relative error", found.largest, 0.0, 1e-9, reason)


@case(
    source="Forces of gravity and springs are the gradient of the potential energy",
    kind="identity",
    tags=("tree",),
)
def identity_gravity_gradient(count: int = 4) -> Items:
    """The bias at rest is the gradient of the potential energy, in tangent coordinates."""
    for name, model, q, _, _ in trees(count):
        v = np.eye(model.nv)[:, None, :]
        gradient = rate_along(lambda q, v, m=model: m.potential_energy(q), model, q, v, 0 * v).T
        bias = model.bias_forces(q, np.zeros(model.nv))
        energy = np.abs(model.potential_energy(q))[
            :, None
        ]  # its rounding is what the differences divide by h
        error = np.max(np.abs(gradient - bias) / (np.abs(bias).max(axis=-1, keepdims=True) + energy))
        yield Check(f"{name}: residual / terms", error, 0.0, RATE, RATE_REASON)


@case(
    source="""Inverse dynamics is linear in masses, moments, inertias, friction, armature (Atkeson, An, Hollerbach
    1986)""",
    kind="identity",
    tags=("tree", "sensitivity"),
)
def identity_regressor(count: int = 20) -> Items:
    """Y(q, v, a) pi = tau."""
    for name, model, q, v, a in trees(count, TREES[:2]):
        tau = model.inverse_dynamics(q, v, a)
        found = regressor(model, q, v, a)
        error = np.max(np.abs(found.predict() - tau)) / np.max(np.abs(tau))
        yield Check(
            f"{name}: relative difference", error, 0.0, 1e-11, "rounding of sums over some 100 parameters"
        )


@case(
    source="Configurations form a manifold: integrate and difference undo each other",
    kind="identity",
    tags=("tree",),
)
def identity_manifold(count: int = 64) -> Items:
    """Configurations: q + (q' - q) = q', and (q + v) - q = v, for every joint type."""
    model = tree("plain")
    q, v, _ = states(model, count)
    v = 0.9 * v / np.max(np.abs(v))
    moved = model.integrate(q, v)
    reason = "rounding of exponential and logarithm, angles up to 2 pi"
    yield Check("difference of integrate", np.max(np.abs(model.difference(q, moved) - v)), 0.0, 1e-13, reason)
    other = states(model, count, seed=1)[0]
    back = model.integrate(q, model.difference(q, other))
    yield Check("integrate of difference", np.max(np.abs(model.difference(back, other))), 0.0, 1e-12, reason)


@case(source="T = 1/2 v^T M v; M symmetric and positive definite", kind="identity", tags=("tree",))
def identity_kinetic_energy(count: int = 64) -> Items:
    """Kinetic energy from the mass matrix and from the velocities of the bodies."""
    for name, model, q, v, _ in trees(count):
        M, T = model.mass_matrix(q), model.kinetic_energy(q, v)
        error = np.max(np.abs(np.sum(v * times(M, v), axis=-1) / 2 / T - 1))
        yield Check(f"{name}: relative difference", error, 0.0, ROUNDING, ROUNDING_REASON)
        skew = np.max(np.abs(M - np.swapaxes(M, -1, -2))) / np.max(np.abs(M))
        yield Check(f"{name}: asymmetry of M", skew, 0.0, ROUNDING, ROUNDING_REASON)
        yield Check.holds(f"{name}: M positive definite", np.linalg.eigvalsh(M).min() > 0, "yes or no")


@case(source="v . c(q, v) = 1/2 v . (dM/dt) v: dM/dt - 2C is skew", kind="identity", tags=("tree",))
def identity_coriolis_power(count: int = 32) -> Items:
    """Coriolis forces do the work of the changing mass matrix."""
    for name, model, q, v, _ in trees(count):
        half = rate_along(lambda q, v, m=model: m.mass_matrix(q), model, q, v, 0 * v) / 2
        expected = np.sum(v * times(half, v), axis=-1)
        scale = np.sum(np.abs(v) * times(np.abs(half), np.abs(v)), axis=-1)
        error = np.max(np.abs(np.sum(v * model.coriolis_forces(q, v), axis=-1) - expected) / scale)
        yield Check(f"{name}: residual / terms", error, 0.0, RATE, RATE_REASON)


@case(source="Virtual work: a wrench at a frame is the effort J^T F", kind="identity", tags=("tree",))
def identity_jacobian_power(count: int = 32) -> Items:
    """External wrenches act as the transposed Jacobians of their frames."""
    for name, model, q, v, a in trees(count):
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


@case(source="dE/dt = tau . v + sum F . V - friction . v", kind="identity", tags=("tree",))
def identity_power_balance(count: int = 8) -> Items:
    """The energy changes by the power of efforts, wrenches and friction; its rate by automatic differentiation."""
    for name, model, q, v, tau in trees(count):
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
    tags=("tree",),
)
def identity_momentum_rate(count: int = 32) -> Items:
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
    tags=("tree",),
)
def identity_lagrange(seed: int = 6, bodies: int = 6, count: int = 5) -> Items:
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

"""Identities of forward, inverse and hybrid dynamics on random models."""

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989
from alembert.verify.random_models import (
    LOOP_KINDS,
    ROUNDING,
    ROUNDING_REASON,
    TREES,
    closed,
    dense_solution,
    possible_speeds,
    relative,
    states,
    times,
    tree,
    wrenches_on,
)


@case(
    source="""Inverse dynamics of forward dynamics gives the efforts back; trees with every joint type of the
    registry""",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 64},
)
def identity_forward_inverse(count: int) -> Items:
    """ID(FD(tau)) = tau, with external wrenches, springs, friction, armature and rotors."""
    for name in TREES:
        model = tree(name)
        q, v, tau = states(model, count)
        wrenches = wrenches_on(model, count)
        a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
        back = model.inverse_dynamics(q, v, a, wrenches=wrenches)
        terms = np.abs(model.multiply_mass_matrix(q, a)) + np.abs(model.bias_forces(q, v, wrenches=wrenches))
        yield Check(f"{name}: residual / terms", relative(back - tau, terms), 0.0, ROUNDING, ROUNDING_REASON)


@case(
    source="""M(q) a + bias = inverse dynamics; three algorithms: composite bodies, Newton-Euler with and without
    accelerations""",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 64},
)
def identity_equation_of_motion(count: int) -> Items:
    """Mass matrix, bias and inverse dynamics agree."""
    for name in TREES:
        model = tree(name)
        q, v, a = states(model, count)
        wrenches = wrenches_on(model, count)
        product, bias = times(model.mass_matrix(q), a), model.bias_forces(q, v, wrenches=wrenches)
        tau = model.inverse_dynamics(q, v, a, wrenches=wrenches)
        error = relative(product + bias - tau, np.abs(product) + np.abs(bias))
        yield Check(f"{name}: residual / terms", error, 0.0, ROUNDING, ROUNDING_REASON)


@case(
    source=acc1989(
        "Fijany, Jain",
        "forward dynamics in O(n), O(n^2) and O(n^3) agree",
    ),
    kind="identity",
    tags=("tree", "random", "acc1989"),
    parameters={"count": 32},
)
def identity_three_methods(count: int) -> Items:
    """Articulated bodies, conjugate gradients and factorisation of the mass matrix."""
    for name in TREES:
        model = tree(name)
        q, v, tau = states(model, count)
        expected = model.forward_dynamics(q, v, tau)
        condition = np.linalg.cond(model.mass_matrix(q))
        for method in ("factorise", "conjugate_gradients"):
            found = model.forward_dynamics(q, v, tau, method=method)
            error = np.linalg.norm(found - expected, axis=-1) / np.linalg.norm(expected, axis=-1)
            reason = "rounding times the condition number of M"
            yield Check(
                f"{name}, {method}: error / condition", np.max(error / condition), 0.0, ROUNDING, reason
            )


@case(
    source="""Sohl, Bobrow, A recursive multibody dynamics and sensitivity algorithm for branched kinematic chains
    (2001), section 3: against the full linear system""",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 32},
)
def identity_hybrid_dynamics(count: int) -> Items:
    """Hybrid dynamics for any choice of prescribed degrees of freedom, another in every state."""
    for name in TREES:
        model = tree(name)
        q, v, tau = states(model, count)
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
    tags=("loops", "random"),
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
    tags=("tree", "random"),
    parameters={"count": 33},
)
def identity_lanes_and_lowerings(count: int) -> Items:
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

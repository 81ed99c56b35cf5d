"""Trees with flexible bodies: identities, conservation, and the equations of point masses, over every joint type.

Bodies are random points with random shapes, so that every integral matters. Tolerances: rounding (1e-15) times the size of
the numbers (up to 1e2) times the condition of the elimination (1e2).
"""

import dataclasses
import functools
import warnings

import casadi as ca
import numpy as np
import pytest
from particles import Account, rigid_points

import alembert as al
from alembert.flexible import beam
from alembert.joints import REGISTRY
from alembert.library import example_joint
from alembert.sweeps import CORRECTION, expressions
from alembert.verify.random_models import random_modal_body as random_body

CLOSE = 1e-11
NODE = "p2"
MOVING = [kind for kind in REGISTRY if example_joint(kind, 0).nv]


def chain(kind, *, foreshortening=False, clamped=False, rigid=False, seed=0):
    """A rigid base, a flexible body on a joint of the kind (or clamped), another on one at an interior node, a rigid tip.

    With `rigid` the bodies are those without modes, and what hangs on nodes hangs where they are at rest.
    """
    rng = np.random.default_rng(seed)
    points = {}

    def at(body, node, offset=(0.0, 0.0, 0.0)):
        place = body.node_array(node, "position") + offset if rigid else offset
        return {"placement": tuple(place)} | ({} if rigid else {"node": node})

    def made(body):
        return body.undeformed() if rigid else body

    builder = al.ModelBuilder("flexible chain", gravity=(1.0, 2.0, -9.81))
    base, points["base"] = rigid_points(rng)
    builder.body("base", base, joint=al.Free(), joint_name="float")
    one, points["one"] = random_body(rng, foreshortening=foreshortening)
    builder.body(
        "one",
        made(one),
        joint=al.Fixed() if clamped else example_joint(kind, rng),
        joint_name="first",
        parent="base",
        placement=(0.1, 0.2, -0.3),
    )
    two, points["two"] = random_body(rng, 4, 3, foreshortening=foreshortening)
    second = example_joint(kind, rng)
    builder.body("two", made(two), joint=second, joint_name="second", parent="one", **at(one, NODE))
    tip, points["tip"] = rigid_points(rng)
    builder.body(
        "tip", tip, joint=al.Fixed(), joint_name="weld", parent="two", **at(two, "p1", (0.1, 0.0, 0.2))
    )
    builder.frame("eye", "one", **at(one, "p3", (0.0, 0.1, 0.0)))
    return builder.build(), points


def state(model, rng):
    """Modes at a third of a metre: far from small."""
    q, v, a = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    for owner in model.space.of_bodies.values():
        q[owner.q] *= 0.3
    return q, v, a


def numbers(model, name, *arguments):
    """An algorithm on symbols, evaluated by CasADi: nothing is compiled."""
    symbols = [ca.SX.sym(f"x{k}", len(x)) for k, x in enumerate(arguments)]
    found = getattr(model.symbolic, name)(*symbols)
    return np.asarray(ca.Function(name, symbols, [ca.densify(found)])(*arguments)).squeeze()


@pytest.mark.parametrize("kind", MOVING)
def test_inverse_dynamics_of_point_masses(kind):
    model, points = chain(kind)
    rng = np.random.default_rng(1)
    account = Account(model, points)
    for _ in range(3):
        q, v, a = state(model, rng)
        expected = np.asarray(account.efforts(q, v, a)).ravel()
        np.testing.assert_allclose(
            numbers(model, "inverse_dynamics", q, v, a), expected, atol=CLOSE * np.abs(expected).max()
        )


@pytest.mark.parametrize("kind", MOVING)
def test_bodies_without_modes_are_the_rigid_ones(kind):
    """Modes at rest: joints and frames are those of rigid bodies, at any motion of the joints."""
    flexible, _ = chain(kind, foreshortening=True)
    rigid, _ = chain(kind, foreshortening=True, rigid=True)
    rng = np.random.default_rng(7)
    q, v, a = state(rigid, rng)
    whole = [flexible.neutral(), np.zeros(flexible.nv), np.zeros(flexible.nv)]
    joints = np.concatenate([np.arange(flexible.nv)[flexible.v_slice(joint.name)] for joint in rigid.joints])
    for joint in rigid.joints:
        whole[0][flexible.q_slice(joint.name)] = q[rigid.q_slice(joint.name)]
    whole[1][joints], whole[2][joints] = v, a
    expected = numbers(rigid, "inverse_dynamics", q, v, a)
    found = numbers(flexible, "inverse_dynamics", *whole)[joints]
    np.testing.assert_allclose(found, expected, atol=CLOSE * np.abs(expected).max())
    M = numbers(rigid, "mass_matrix", q)
    held = numbers(flexible, "mass_matrix", whole[0])[np.ix_(joints, joints)]
    np.testing.assert_allclose(held, M, atol=CLOSE * np.abs(M).max())


@pytest.mark.parametrize("foreshortening", [False, True])
@pytest.mark.parametrize("kind", MOVING)
def test_forward_and_inverse_dynamics_are_inverse(kind, foreshortening):
    model, _ = chain(kind, foreshortening=foreshortening)
    q, v, a = state(model, np.random.default_rng(2))
    tau = numbers(model, "inverse_dynamics", q, v, a)
    np.testing.assert_allclose(numbers(model, "forward_dynamics", q, v, tau), a, atol=1e-9)


@pytest.mark.parametrize("kind", MOVING)
def test_mass_matrix_energy_and_momentum(kind):
    model, _ = chain(kind, foreshortening=True)
    q, v, a = state(model, np.random.default_rng(3))
    M = numbers(model, "mass_matrix", q)
    np.testing.assert_allclose(M, M.T, atol=CLOSE)
    zero = np.zeros(model.nv)
    at_rest = numbers(model, "inverse_dynamics", q, zero, zero)
    np.testing.assert_allclose(
        M @ a, numbers(model, "inverse_dynamics", q, zero, a) - at_rest, atol=1e-11 * np.abs(M).max()
    )
    assert numbers(model, "kinetic_energy", q, v) == pytest.approx(v @ M @ v / 2, rel=1e-12)
    np.testing.assert_allclose(
        numbers(model, "momentum_matrix", q) @ v,
        numbers(model, "momentum", q, v),
        atol=1e-11 * np.abs(M).max(),
    )


@pytest.mark.parametrize("foreshortening", [False, True])
def test_power_and_momentum_balance(foreshortening):
    """d(T + U)/dt is what the damping takes, and the momentum changes by the weight: to rounding, at large deflections."""
    model, _ = chain("universal", foreshortening=foreshortening)
    nq, nv = model.nq, model.nv
    q, v = ca.SX.sym("q", nq), ca.SX.sym("v", nv)
    a = model.symbolic.forward_dynamics(q, v, ca.SX.zeros(nv))
    rate = model.space.rate(q, v)

    def change(x):
        return ca.jtimes(x, q, rate) + ca.jtimes(x, v, a)

    lost = sum(
        ca.dot(v[o.v], ca.DM(model.body(name).flexible.array("damping")) @ v[o.v])
        for name, o in model.space.of_bodies.items()
    )
    energy = model.symbolic.energy(q, v)
    momentum = model.symbolic.momentum(q, v, about="world")
    center = model.symbolic.center_of_mass(q)
    weight = model.mass * ca.DM(np.array(model.gravity, dtype=float))
    balance = ca.Function(
        "balance",
        [q, v],
        [change(energy) + lost, change(momentum) - ca.vertcat(ca.cross(center, weight), weight)],
    )
    rng = np.random.default_rng(4)
    for _ in range(5):
        x, y, _ = state(model, rng)
        power, force = balance(x, y)
        assert abs(float(power)) < 1e-9
        np.testing.assert_allclose(np.asarray(force), 0.0, atol=1e-9)


def test_frames_and_wrenches_at_deformed_nodes():
    model, _ = chain("revolute", foreshortening=True)
    rng = np.random.default_rng(5)
    q, v, a = state(model, rng)
    h = 1e-6
    for frame in ("eye", "tip", "two"):
        J = model.frame_jacobian(q, frame)
        np.testing.assert_allclose(J @ v, model.frame_velocity(q, v, frame), atol=CLOSE * 10)
        ahead, behind = (model.frame_pose(model.integrate(q, s * h * v), frame).translation for s in (1, -1))
        aligned = model.frame_velocity(q, v, frame, reference="local_world_aligned")[3:]
        np.testing.assert_allclose((ahead - behind) / (2 * h), aligned, atol=1e-8)  # h^2 and rounding / h
        np.testing.assert_allclose(
            J @ a + model.frame_jacobian_rate(q, v, frame),
            model.frame_acceleration(q, v, a, frame),
            atol=1e-9,
        )
        F = rng.normal(size=6)
        change = model.inverse_dynamics(q, v, a) - model.inverse_dynamics(q, v, a, wrenches={frame: F})
        np.testing.assert_allclose(change, J.T @ F, atol=1e-10)


def test_compiled_and_symbolic_agree_and_batches_are_bitwise():
    model, _ = chain("spherical", foreshortening=True, clamped=True)
    rng = np.random.default_rng(6)
    q, v, tau = (np.array(x) for x in zip(*(state(model, rng) for _ in range(9)), strict=True))
    a = model.forward_dynamics(q, v, tau)
    np.testing.assert_array_equal(a[4], model.forward_dynamics(q[4], v[4], tau[4]))
    np.testing.assert_allclose(
        a[0], numbers(model, "forward_dynamics", q[0], v[0], tau[0]), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(model.inverse_dynamics(q, v, a), tau, atol=1e-9)


def test_loops_over_nodes():
    """Rolled code of bodies with 2 and 3 modes, one clamped, a joint at a node, a welded body and a frame."""
    model, _ = chain("revolute", foreshortening=True, clamped=True)
    q, v, x = state(model, np.random.default_rng(11))
    for name, count in (
        ("forward_dynamics", 3),
        ("inverse_dynamics", 3),
        ("mass_matrix", 1),
        ("potential_energy", 1),
    ):
        rolled = model.compile(name, lowering="rolled")(*(q, v, x)[:count])
        expected = numbers(model, name, *(q, v, x)[:count])
        np.testing.assert_allclose(
            np.squeeze(rolled), expected, atol=1e-9 * np.abs(expected).max(), err_msg=name
        )


def test_a_chain_of_many_beams():
    """Products, tangents and adjoints of 24 beams as loops against the identities."""
    builder = al.ModelBuilder("beams")
    link = beam(1.0, 1.0, EI_z=200.0, bending_y=2)
    for k in range(24):
        where = {"parent": f"b{k - 1}", "node": "tip"} if k else {}
        builder.body(f"b{k}", link, joint=al.Revolute((0, 0, 1)), joint_name=f"j{k}", **where)
    model = builder.build()
    rng = np.random.default_rng(12)
    q, v, a = (0.01 * rng.normal(size=model.nv) for _ in range(3))
    tau = model.inverse_dynamics(q, v, a)
    # rounding 1e-16 times the largest effort 1e3 times the condition of M, 1e6 for 24 links
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, atol=1e-7)
    d = rng.normal(size=model.nv)
    zero = np.zeros(model.nv)
    _, change = model.jvp("inverse_dynamics", (q, v, a), (d, zero, zero))
    h = 1e-6
    numeric = (model.inverse_dynamics(q + h * d, v, a) - model.inverse_dynamics(q - h * d, v, a)) / (2 * h)
    np.testing.assert_allclose(change, numeric, atol=1e-7 * np.abs(numeric).max())
    gradient, _, back = model.vjp("inverse_dynamics", (q, v, a), d)
    np.testing.assert_allclose(gradient @ d, change @ d, atol=1e-10 * np.abs(change).max())
    np.testing.assert_allclose(back, model.mass_matrix(q) @ d, atol=1e-10 * np.abs(back).max())


def test_derivatives():
    """Columns of tangents against differences of the function, and against the products."""
    builder = al.ModelBuilder("arm")
    link = beam(1.0, 1.0, EI_z=2.0, EI_y=3.0, bending_y=1, bending_z=1, rhoI_y=0.02, rhoI_z=0.02)
    builder.body("upper", link, joint=al.Spherical(), joint_name="shoulder")
    builder.body("lower", link, joint=al.Revolute((0, 0, 1)), joint_name="elbow", parent="upper", node="tip")
    model = builder.build()
    rng = np.random.default_rng(7)
    q, v, x = state(model, rng)
    for owner in model.space.of_bodies.values():
        q[owner.q] *= 0.3  # a tenth of a metre: more makes the mass matrix of slender beams indefinite
    d = rng.normal(size=model.nv)
    for name, last in (("inverse_dynamics", "da"), ("forward_dynamics", "dtau")):
        function, found = getattr(model, name), getattr(model, f"{name}_derivatives")(q, v, x)
        h = 1e-6
        numeric = (function(model.integrate(q, h * d), v, x) - function(model.integrate(q, -h * d), v, x)) / (
            2 * h
        )
        np.testing.assert_allclose(found.dq @ d, numeric, atol=1e-7 * np.abs(numeric).max())
        zero = np.zeros(model.nv)
        for matrix, direction in (
            (found.dq, (d, zero, zero)),
            (found.dv, (zero, d, zero)),
            (getattr(found, last), (zero, zero, d)),
        ):
            _, product = model.jvp(name, (q, v, x), direction)
            np.testing.assert_allclose(matrix @ d, product, atol=1e-11 * np.abs(matrix).max())
        rolled = model.compile(f"{name}_derivatives", lowering="rolled")(q, v, x)  # by rows of adjoints
        for matrix, row_wise in zip((found.dq, found.dv, getattr(found, last)), rolled[-3:], strict=True):
            np.testing.assert_allclose(row_wise, matrix, atol=1e-11 * np.abs(matrix).max())
    w = rng.normal(size=model.nv)
    gradients = model.vjp("forward_dynamics", (q, v, x), w)
    np.testing.assert_allclose(gradients[0], found.dq.T @ w, atol=1e-10 * np.abs(found.dq).max())


def test_prescribed_joints_with_free_modes():
    """Flexible inverse dynamics: the joints move as told, the modes answer; the efforts are those of the motion."""
    model, _ = chain("revolute")
    q, v, a = state(model, np.random.default_rng(8))
    given = {"first": a[model.v_slice("first")], "second": a[model.v_slice("second")]}
    found = model.hybrid_dynamics(q, v, accelerations=given)
    np.testing.assert_allclose(found.accelerations[model.v_slice("first")], given["first"])
    free = np.ones(model.nv, dtype=bool)
    for name in given:
        free[model.v_slice(name)] = False
    required = model.inverse_dynamics(q, v, found.accelerations)
    np.testing.assert_allclose(required[free], 0.0, atol=1e-9)
    np.testing.assert_allclose(found.efforts[~free], required[~free], atol=1e-9)
    held = model.hybrid_dynamics(q, v, accelerations={"one": np.zeros(2)})
    np.testing.assert_allclose(held.accelerations[model.space.of_bodies["one"].v], 0.0, atol=1e-12)


def test_hybrid_derivatives():
    """Joints as told, modes free: the slopes of accelerations and efforts against differences."""
    builder = al.ModelBuilder("arm")
    link = beam(1.0, 1.0, EI_z=2.0, EI_y=3.0, bending_y=1, bending_z=1)
    builder.body("upper", link, joint=al.Spherical(), joint_name="shoulder")
    builder.body("lower", link, joint=al.Revolute((0, 0, 1)), joint_name="elbow", parent="upper", node="tip")
    model = builder.build()
    q, v, x = state(model, np.random.default_rng(14))
    given = {"shoulder": x[:3], "elbow": x[model.v_slice("elbow")]}
    found = model.hybrid_dynamics_derivatives(q, v, accelerations=given)
    d, h = np.random.default_rng(15).normal(size=model.nv), 1e-6

    def both(step):
        ahead = model.hybrid_dynamics(model.integrate(q, step * d), v, accelerations=given)
        faster = model.hybrid_dynamics(q, v + step * d, accelerations=given)
        return np.array([ahead.accelerations, ahead.efforts, faster.accelerations, faster.efforts])

    numeric = (both(h) - both(-h)) / (2 * h)
    slopes = (*found.dq, *found.dv)
    for matrix, expected in zip(slopes, numeric, strict=True):
        np.testing.assert_allclose(matrix @ d, expected, atol=1e-7 * np.abs(numeric).max())


def test_jacobians_of_points():
    model, _ = chain("revolute", foreshortening=True)
    rng = np.random.default_rng(16)
    q, v, _ = state(model, rng)
    place = np.array([0.3, -0.2, 0.1])
    for frame in ("eye", "two"):
        X, h = model.frame_pose(q, frame), 1e-6

        def at(step, frame=frame):
            moved = model.frame_pose(model.integrate(q, step * v), frame)
            return moved.translation + moved.rotation @ place

        J = model.frame_jacobian(q, frame, point=place, reference="local_world_aligned")
        np.testing.assert_allclose(J[3:] @ v, (at(h) - at(-h)) / (2 * h), atol=1e-8)
        local = model.frame_jacobian(np.stack([q, q]), frame, point=place)
        np.testing.assert_allclose(X.rotation @ local[1, 3:], J[3:], atol=1e-12)


def test_a_stiff_body_tends_to_the_rigid_one():
    """The modes follow quasi-statically: what is left of the joints' accelerations shrinks like 1/K."""

    def arm(EI, flexible=True):
        builder = al.ModelBuilder("arm")
        body = beam(1.0, 2.0, EI_z=EI, bending_y=3)
        builder.body(
            "link", body if flexible else body.undeformed(), joint=al.Revolute((0, 0, 1)), joint_name="pin"
        )
        return builder.build()

    rigid = arm(1.0, flexible=False).forward_dynamics([0.2], [1.5], [0.7])
    errors = []
    for EI in (1e4, 1e5):
        model = arm(EI)
        q, v = np.array([0.2, 0, 0, 0]), np.array([1.5, 0, 0, 0])
        # the modes at the deflection that the motion needs
        for _ in range(3):
            found = model.hybrid_dynamics(q, v, torques={"pin": 0.7}, accelerations={"link": np.zeros(3)})
            K = model.body("link").flexible.array("stiffness")
            q[1:] -= np.linalg.solve(K, found.efforts[1:])
        errors.append(abs(found.accelerations[0] - rigid[0]))
    assert errors[1] < 0.2 * errors[0] + 1e-12


def test_parameters_of_beams():
    """EI, density, length and damping as the model's parameters, and exact derivatives with respect to them."""
    builder = al.ModelBuilder("arm")
    values = {"L": 1.2, "rhoA": 0.7, "EI": 3.0, "zeta": 0.02}
    L, r, EI, zeta = (builder.parameter(name, x) for name, x in values.items())
    link = beam(L, r, EI_z=EI, bending_y=2, damping_ratio=zeta)
    builder.body("link", link, joint=al.Revolute((0, 0, 1)), joint_name="pin")
    builder.body(
        "load",
        al.Inertia.sphere(0.5, 0.1),
        joint=al.Revolute((0, 0, 1)),
        joint_name="wrist",
        parent="link",
        node="tip",
    )
    model = builder.build()
    fixed = al.ModelBuilder("fixed")
    numbers = beam(1.2, 0.7, EI_z=3.0, bending_y=2, damping_ratio=0.02)
    fixed.body("link", numbers, joint=al.Revolute((0, 0, 1)), joint_name="pin")
    fixed.body(
        "load",
        al.Inertia.sphere(0.5, 0.1),
        joint=al.Revolute((0, 0, 1)),
        joint_name="wrist",
        parent="link",
        node="tip",
    )
    q, v, tau = (
        np.array([0.3, 0.05, -0.02, 0.4]),
        np.array([1.0, 0.3, -0.2, 0.5]),
        np.array([0.2, 0.0, 0.0, 0.1]),
    )
    same = fixed.build().forward_dynamics(q, v, tau)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), same, rtol=1e-8)
    stiffer = model.forward_dynamics(q, v, tau, parameters={"EI": 6.0})
    assert np.abs(stiffer - same).max() > 1e-2
    found = model.forward_dynamics_derivatives(q, v, tau, sensitive_to=list(values)).dparameters
    for name, x in values.items():
        h = 1e-5 * x
        up, down = (model.forward_dynamics(q, v, tau, parameters={name: x + d}) for d in (h, -h))
        size = np.abs(found[name]).max()
        # differences: h^2 of the third derivative, and rounding of accelerations of 1e2 over h
        np.testing.assert_allclose((up - down) / (2 * h), found[name], atol=1e-6 * size, err_msg=name)


def test_stiffening_levels():
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=2)

    def spun(level):
        builder = al.ModelBuilder("spun", gravity=(0, 0, 0))
        builder.body("link", dataclasses.replace(body, stiffening=level), joint=al.Revolute((0, 0, 1)))
        return builder.build().inverse_dynamics([0.0, 0.1, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0])

    consistent, inconsistent, ruthless = (spun(x) for x in ("consistent", "inconsistent", "ruthless"))
    # modal force: K q + W^2 (chi term - Me) q, then without chi, then at q = 0 in the inertia
    K = body.array("stiffness")[0, 0] * 0.1
    Me = body.modal_mass()[0, 0] * 0.1
    Tr = body.array("foreshortening_products")[0, 0, 0, 0] * 0.1
    assert consistent[1] == pytest.approx(K - 16 * (Me + Tr), rel=1e-9)
    assert inconsistent[1] == pytest.approx(K - 16 * Me, rel=1e-9)
    assert ruthless[1] == pytest.approx(K, rel=1e-9)


def test_models_on_flexible_nodes_and_merging():
    """What is mounted on a node moves with it; merging would lose the modes."""
    model, _ = chain("revolute")
    hand = al.ModelBuilder("hand")
    hand.body("finger", al.Inertia.sphere(0.3, 0.1), joint=al.Revolute(), joint_name="knuckle")
    together = model.attach(hand.build(), to="eye")
    assert together.joint("knuckle").node == "p3"
    assert "1 + 3 modes" in str(together)
    with pytest.raises(al.UnsupportedError, match="merge_fixed: body 'one' is flexible"):
        model.merge_fixed()
    for convert in (al.convert.to_pinocchio, al.convert.to_mujoco):
        with pytest.raises(al.UnsupportedError, match="body 'one' is flexible"):
            convert(model, model.neutral(), np.zeros(model.nv))


def test_messages():
    body, _ = random_body(np.random.default_rng(0))
    builder = al.ModelBuilder("m")
    builder.body("one", body, joint=al.Free())
    builder.body("two", al.Inertia.sphere(1.0, 0.1), joint=al.Fixed(), parent="one", node="p9")
    with pytest.raises(
        al.ModelError, match=r"joint 'two_joint' is at the node 'one.p9'; did you mean 'one.p"
    ):
        builder.build()
    builder = al.ModelBuilder("m")
    builder.body("one", al.Inertia.sphere(1.0, 0.1), joint=al.Free())
    builder.frame("eye", "one", node="tip")
    with pytest.raises(
        al.ModelError, match=r"frame 'eye' is at the node 'tip' of 'one', which is no flexible body"
    ):
        builder.build()
    model, _ = chain("revolute")
    with pytest.raises(al.ModelError, match=r"body 'one': flexible is 3, expected a ModalBody"):
        model.replace_body("one", flexible=3)
    with pytest.raises(
        al.UnsupportedError, match=r"regressor: body 'one' is flexible; .* take named parameters"
    ):
        al.identify.regressor(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv))


INTEGRATORS = ("rk4", "midpoint", "variational", "generalised_alpha", "radau", "bdf", "dop853")


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_every_integrator_takes_modes(integrator):
    """A falling two-link arm of beams: the same motion to the order of the step, energy kept."""
    builder = al.ModelBuilder("arm")
    link = beam(1.0, 1.0, EI_z=20.0, EI_y=20.0, bending_y=1, bending_z=1)
    builder.body("upper", link, joint=al.Revolute((0, 1, 0)), joint_name="shoulder")
    builder.body("lower", link, joint=al.Revolute((0, 1, 0)), joint_name="elbow", parent="upper", node="tip")
    model = builder.build()
    steps = {} if integrator in ("radau", "bdf", "dop853") else {"step": 1e-3}
    run = al.simulate(
        model, model.configuration({"shoulder": 0.5}), duration=0.3, integrator=integrator, **steps
    )
    assert run.report.energy_error < 1e-5
    # second order: (h omega)^2 / 12 of the fastest mode's amplitude, (0.13)^2 / 12 of 1e-2
    np.testing.assert_allclose(run.q[-1], _reference(model), atol=5e-4)


def test_the_correction_of_implicit_steps():
    """One sweep solves (M + gamma C + beta K) da = tau - inverse_dynamics(q, v, a), as dense matrices say it."""
    builder = al.ModelBuilder("arm")
    rng = np.random.default_rng(13)
    one, two = (random_body(rng, modes=n, foreshortening=True)[0] for n in (2, 3))
    rotor = al.Rotor(50.0, 1e-2, (0, 0, 1))
    builder.body("one", one, joint=al.Spherical(), joint_name="shoulder")
    friction = al.Friction(viscous=(0.2,), coulomb=(0.1,), smoothing=0.5)
    more = {"spring": al.Spring((40.0,)), "friction": friction, "rotors": (rotor,)}
    builder.body(
        "two", two, joint=al.Revolute((0, 0, 1)), joint_name="elbow", parent="one", node="p1", **more
    )
    model = builder.build()
    (q, v, a), (beta, gamma) = state(model, rng), (0.3, 0.7)
    tau = rng.normal(size=model.nv)
    tree = model.compute.tree
    x = {
        name: ca.SX.sym(name, n) for name, n in (("q", model.nq), *((k, model.nv) for k in ("v", "a", "tau")))
    }
    given = {**x, "beta": ca.SX(np.full(model.nv, beta)), "gamma": ca.SX(np.full(model.nv, gamma))}
    found = expressions(CORRECTION, tree, given, ca.SX(0, 1))["da"]
    da = np.asarray(ca.Function("da", list(x.values()), [found])(q, v, a, tau)).ravel()
    J = numbers(model, "mass_matrix", q)
    for name, body in (("one", one), ("two", two)):
        s = model.space.of_bodies[name].v
        J[s, s] += gamma * body.array("damping") + beta * body.array("stiffness")
    s = model.v_slice("elbow")
    slope = 0.1 * 0.5**2 / (v[s] ** 2 + 0.5**2) ** 1.5  # of Coulomb's friction
    J[s, s] += gamma * (0.2 + slope) + beta * 40.0
    np.testing.assert_allclose(
        da, np.linalg.solve(J, tau - numbers(model, "inverse_dynamics", q, v, a)), atol=1e-9
    )


def spinning(stiffening):
    builder = al.ModelBuilder("boom", gravity=(0, 0, 0))
    boom = beam(1.0, 1.0, EI_z=100.0, EA=1e6, bending_y=1, axial=1, stiffening=stiffening)
    builder.body("boom", boom, joint=al.Revolute((0, 0, 1)), joint_name="hub")
    return builder.build()


def test_a_warning_where_stiffening_is_left_out():
    """The first frequency is 35 rad/s; at 3 rad/s nothing is said, at 5 the body and the numbers are."""
    slow, fast = np.array([3.0, 0, 0]), np.array([5.0, 0, 0])
    settings = {"duration": 0.02, "step": 1e-4, "integrator": "rk4"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        al.simulate(spinning("inconsistent"), np.zeros(3), slow, **settings)
        al.simulate(spinning("consistent"), np.zeros(3), fast, **settings)
    with pytest.warns(
        al.AlembertWarning, match=r"body 'boom' turns at up to 5 rad/s, which is 0\.14 of its first"
    ):
        al.simulate(spinning("inconsistent"), np.zeros(3), fast, **settings)


def test_levels_of_a_model():
    model = spinning("consistent")
    assert al.flexible.with_stiffening(model, "inconsistent") == spinning("inconsistent")
    assert al.flexible.with_stiffening(model, "ruthless", ["boom"]) == spinning("ruthless")
    with pytest.raises(al.ArgumentError, match=r"no flexible body 'bom'; did you mean 'boom'"):
        al.flexible.with_stiffening(model, "ruthless", ["bom"])
    with pytest.raises(al.ArgumentError, match=r"'two_link' has no flexible bodies"):
        al.flexible.with_stiffening(al.library.two_link(), "ruthless")
    with pytest.raises(al.ModelError, match="stiffening is 'none', expected"):
        al.flexible.with_stiffening(model, "none")


def test_the_automatic_choice_of_stiff_modes():
    model = spinning("consistent")
    run = al.simulate(model, np.zeros(3), np.array([1.0, 0, 0]), duration=0.1, step=1e-2)
    assert run.integrator == "generalised_alpha"
    assert "the mode 'boom.axial_1' at 1.57e+03 rad/s is too fast for explicit steps of 0.01 s" in str(
        run.report
    )
    assert al.simulate(model, np.zeros(3), duration=0.01, step=1e-4).integrator == "variational"


def test_rotors_on_bodies_that_deform():
    """The rotor turns with the node: energy is kept at large deflections."""
    rng = np.random.default_rng(17)
    builder = al.ModelBuilder("drive", gravity=(0, 0, -9.81))
    body, _ = random_body(rng, foreshortening=True)
    still = dataclasses.replace(body, damping=np.zeros((2, 2)))
    builder.body("arm", still, joint=al.Spherical(), joint_name="base")
    rotor = al.Rotor(20.0, 0.01, (0.6, 0.0, 0.8))
    wheel = al.Inertia.sphere(1.0, 0.3)
    builder.body(
        "wheel",
        wheel,
        joint=al.Revolute((0, 0, 1)),
        joint_name="axle",
        parent="arm",
        node="p2",
        rotors=(rotor,),
    )
    model = builder.build()
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    a = model.symbolic.forward_dynamics(q, v, ca.SX.zeros(model.nv))
    energy = model.symbolic.energy(q, v)
    power = ca.jtimes(energy, q, model.space.rate(q, v)) + ca.jtimes(energy, v, a)
    x, y, _ = state(model, rng)
    assert abs(float(ca.Function("power", [q, v], [power])(x, y))) < 1e-9


def test_operators_and_the_linear_quadratic_twin():
    """Blocks of bodies with modes are 6 + n wide: factors of M, Jacobians, admittances, and accelerations as inputs."""
    model, _ = chain("universal", foreshortening=True, clamped=True)
    rng = np.random.default_rng(18)
    q, v, tau = state(model, rng)
    ops, M = al.operators(model, q), model.mass_matrix(q)
    close = {"atol": 1e-11 * np.abs(M).max()}
    np.testing.assert_allclose(ops.mass_matrix.dense(), M, **close)
    np.testing.assert_allclose((ops.H @ ops.phi @ ops.M @ ops.phi.T @ ops.H.T).dense(), M, **close)
    np.testing.assert_allclose(ops.mass_matrix.inverse.dense() @ M, np.eye(model.nv), atol=1e-10)
    frames = ("eye", "tip", "one", "base")
    J, B = ops.jacobian(frames).dense(), ops.B(frames)
    np.testing.assert_allclose(J, np.vstack([model.frame_jacobian(q, frame) for frame in frames]), atol=1e-11)
    expected = J @ np.linalg.solve(M, J.T)
    np.testing.assert_allclose((B.T @ ops.Omega @ B).dense(), expected, atol=1e-10 * np.abs(expected).max())
    for block, (k, _) in zip(ops.Upsilon.entries.values(), ops.Upsilon.entries, strict=True):
        start = sum(ops.M.rows[:k])
        own = slice(start, start + ops.M.rows[k])
        np.testing.assert_allclose(block, ops.Omega.dense()[own, own], atol=1e-10 * np.abs(block).max())
    problem = al.forward_dynamics_as_lq(model, q, v, tau)
    a = model.forward_dynamics(q, v, tau)
    inputs = np.concatenate(al.solve_lq(problem).inputs)
    np.testing.assert_allclose(inputs, a, atol=1e-9 * np.abs(a).max())
    cost = a @ M @ a / 2 - a @ (tau - model.bias_forces(q, v))
    assert problem.cost([a[s] for s in model.compute.tree.v_slices]) == pytest.approx(cost, rel=1e-10)
    far = q.copy()
    far[model.space.of_bodies["one"].q] = 30.0
    with pytest.raises(
        al.NumericalError, match="operators: the result is not finite; body 'one' is deflected"
    ):
        al.operators(model, far)


def test_innovations_and_admittance():
    """M = L D L', T = 1/2 n' D n, and J M^-1 J' of frames on one body, on branches and on the body's own frame."""
    model, _ = chain("universal", foreshortening=True, clamped=True)
    rng = np.random.default_rng(18)
    q, v, _ = state(model, rng)
    M = model.mass_matrix(q)
    found = al.innovations(model, q)
    np.testing.assert_allclose(found.L @ found.D @ found.L.T, M, atol=1e-11 * np.abs(M).max())
    n = al.operators.diagonalising_velocities(model, q, v)
    assert n @ found.D @ n / 2 == pytest.approx(v @ M @ v / 2, rel=1e-11)
    np.testing.assert_allclose(al.operators.velocities_from_diagonal(model, q, n), v, atol=1e-10)
    frames = ("eye", "tip", "one", "base")
    J = np.vstack([model.frame_jacobian(q, frame) for frame in frames])
    expected = J @ np.linalg.solve(M, J.T)
    np.testing.assert_allclose(al.admittance(model, q, frames), expected, atol=1e-10 * np.abs(expected).max())


@functools.cache
def _reference(model):
    start = model.configuration({"shoulder": 0.5})
    return al.simulate(model, start, duration=0.3, integrator="dop853", tolerance=1e-11).q[-1]

"""Closed loops with flexible bodies: against a dense solution made of the tree's mass matrix and frame Jacobians.

Tolerances: rounding (1e-15) times numbers up to 1e3 times the condition of the dense system (1e3), unless said.
"""

import numpy as np
import pytest
from particles import rigid_points

import alembert as al
from alembert.flexible import beam
from alembert.simulate import Bushing
from alembert.verify.random_models import random_modal_body as random_body

CLOSE = 1e-9


def spatial(loops=True):
    """Two branches on different nodes of one flexible body, the second flexible too; a point of each is held together.

    A strut keeps two nodes of the first body at their distance.
    """
    rng = np.random.default_rng(0)
    builder = al.ModelBuilder("closed", gravity=(1.0, 2.0, -9.81))
    one = random_body(rng, 5, 2, foreshortening=True, size=0.1)[0]
    two = random_body(rng, 4, 1, foreshortening=True, size=0.1)[0]
    builder.body("one", one, joint=al.Revolute((0, 1, 0)), joint_name="first")
    builder.body("two", two, joint=al.Spherical(), joint_name="second", parent="one", node="p1")
    builder.body(
        "three", rigid_points(rng)[0], joint=al.Spherical(), joint_name="third", parent="one", node="p2"
    )
    builder.frame("a", "two", (0.1, 0.2, 0.0), node="p3")
    builder.frame("b", "three", (1.5, 0.0, 0.1))
    builder.frame("c", "one", node="p3")
    builder.frame("d", "one", node="p4")
    if loops:
        apart = np.linalg.norm(np.array(one.node("p3").position) - np.array(one.node("p4").position))
        builder.loop("ball", al.Spherical(), "a", "b")
        builder.loop("strut", al.Distance(float(apart)), "c", "d")
    return builder.build()


def rows(tree, q, v):
    """G and gamma from the frames of the tree alone: points of a and b together, c and d at a distance."""

    def point(frame):
        J = tree.frame_jacobian(q, frame, reference="local_world_aligned")[3:]
        bias = tree.frame_jacobian_rate(q, v, frame, reference="local_world_aligned")[3:]
        return tree.frame_pose(q, frame).translation, J, bias

    (_, Ja, ba), (_, Jb, bb), (pc, Jc, bc), (pd, Jd, bd) = (point(x) for x in "abcd")
    r, J = pd - pc, Jd - Jc
    return (
        np.vstack([Jb - Ja, r @ J]),
        np.concatenate([bb - ba, [r @ (bd - bc) + (J @ v) @ (J @ v)]]),
    )


@pytest.fixture(scope="module")
def closed():
    model = spatial()
    rng = np.random.default_rng(3)
    start = model.random_configuration(rng)
    for owner in model.space.of_bodies.values():
        start[owner.q] *= 0.3
    state = model.assemble(start, rng.normal(size=model.nv))
    assert state.residual < 1e-12
    return model, spatial(loops=False), state.q, state.v


def test_constrained_dynamics_against_a_dense_solution(closed):
    model, tree, q, v = closed
    rng = np.random.default_rng(2)
    tau, F = rng.normal(size=model.nv), rng.normal(size=6)
    G, gamma = rows(tree, q, v)
    M = tree.mass_matrix(q)
    wrenches = {"c": F}
    rest = tau - tree.inverse_dynamics(q, v, np.zeros(model.nv), wrenches=wrenches)
    m = len(G)
    system = np.block([[M, -G.T], [G, np.zeros((m, m))]])
    expected = np.linalg.solve(system, np.concatenate([rest, -gamma]))
    found = model.constrained_dynamics(q, v, tau, wrenches=wrenches)
    size = np.abs(expected).max()
    np.testing.assert_allclose(found.accelerations, expected[: model.nv], atol=CLOSE * size)
    R = tree.frame_pose(q, "b").rotation
    np.testing.assert_allclose(R @ found.reactions["ball"][3:], expected[model.nv : -1], atol=CLOSE * size)
    # efforts for that motion, and no others where they are the only ones
    back = model.constrained_inverse_dynamics(q, v, found.accelerations, wrenches=wrenches)
    again = model.constrained_dynamics(q, v, back.efforts, wrenches=wrenches)
    np.testing.assert_allclose(again.accelerations, found.accelerations, atol=CLOSE * size)
    # impulse: the same system for speeds
    bare = rng.normal(size=model.nv)
    after = np.linalg.solve(system, np.concatenate([M @ bare, np.zeros(m)]))[: model.nv]
    np.testing.assert_allclose(model.impulse(q, bare).velocities, after, atol=CLOSE * np.abs(after).max())
    batch = model.constrained_dynamics(np.array([q, q]), np.array([v, v]), tau).accelerations
    np.testing.assert_array_equal(batch[0], batch[1])


def test_derivatives_through_loops(closed):
    """Along motions that keep the loops closed: differences of h^2 and rounding / h."""
    model, _, q, v = closed
    tau = np.random.default_rng(3).normal(size=model.nv)
    found = model.forward_dynamics_derivatives(q, v, tau)
    h = 1e-5
    d = v / np.linalg.norm(v)
    ends = []
    for sign in (1, -1):
        at = model.project(model.integrate(q, sign * h * d), v)
        ends.append((at.q, at.v, model.forward_dynamics(at.q, at.v, tau)))
    dq, dv = model.difference(ends[1][0], ends[0][0]), ends[0][1] - ends[1][1]
    change = ends[0][2] - ends[1][2]
    predicted = found.dq @ dq + found.dv @ dv
    np.testing.assert_allclose(predicted / h, change / h, atol=1e-6 * np.abs(change / h).max())
    pushed = np.random.default_rng(4).normal(size=model.nv)
    np.testing.assert_allclose(
        found.dtau @ pushed,
        model.forward_dynamics(q, v, tau + pushed) - model.forward_dynamics(q, v, tau),
        atol=1e-9 * np.abs(pushed).max() * np.abs(found.dtau).max(),
    )


def slider_crank(*, closed, EI=2.0):
    """A rigid crank, a flexible rod whose tip slides along x."""
    builder = al.ModelBuilder("slider-crank")
    builder.body(
        "crank", al.Inertia.rod(0.5, (0, 0, 0), (0.2, 0, 0)), joint=al.Revolute((0, 0, 1)), joint_name="shaft"
    )
    rod = beam(0.5, 0.6, EI_z=EI, bending_y=1, ends="craig-bampton", damping=(0.0, 1e-3))
    builder.body(
        "rod", rod, joint=al.Revolute((0, 0, 1)), joint_name="pin", parent="crank", placement=(0.2, 0, 0)
    )
    builder.body("slider", al.Inertia.point(0.3), joint=al.Prismatic((1, 0, 0)), joint_name="slide")
    builder.frame("end", "rod", node="tip")
    builder.frame("seat", "slider")
    if closed:
        builder.loop("wrist", al.Revolute((0, 0, 1)), "end", "seat")
    return builder.build()


def test_slider_crank_with_a_flexible_rod():
    """The rod bends; energy and loop hold; the same with the loop opened by stiff springs, the stiffer the nearer."""
    model = slider_crank(closed=True)
    start = model.assemble(
        model.configuration({"shaft": 0.6, "slide": 0.65}), model.velocity({"shaft": 8.0}), fixed=["shaft"]
    )
    modes = model.space.of_bodies["rod"].q
    np.testing.assert_allclose(start.q[modes], 0.0, atol=1e-6)  # it closes without bending
    run = al.simulate(model, start.q, start.v, duration=0.5, tolerance=1e-9, interval=0.01)
    assert run.report.energy_error < 1e-7
    residual = model.constraint_residual(run.q)
    assert np.abs(residual).max() < 1e-9
    assert np.abs(run.q[:, modes]).max() > 1e-3
    opened = slider_crank(closed=False)
    errors = []
    for k in (1e5, 1e6):
        spring = Bushing("end", "seat", (0, 0, 0, k, k, k), (0, 0, 0, 10.0, 10.0, 10.0))
        soft = al.simulate(
            opened, start.q, start.v, duration=0.1, forces=[spring], tolerance=1e-8, interval=0.01
        )
        errors.append(np.abs(soft.q - run.q[: len(soft.q)]).max())
    assert errors[1] < 0.2 * errors[0]
    assert errors[1] < 1e-3


def test_stiff_modes_in_loops_take_implicit_steps():
    """The slider-crank with a rod so stiff that it hardly bends moves as the rigid one, in steps of a hundred periods."""

    def crank(rod):
        builder = al.ModelBuilder("slider-crank", gravity=(0, 0, 0))
        arm = al.Inertia.rod(0.5, (0, 0, 0), (0.2, 0, 0))
        builder.body("crank", arm, joint=al.Revolute((0, 0, 1)), joint_name="shaft")
        builder.body(
            "rod", rod, joint=al.Revolute((0, 0, 1)), joint_name="pin", parent="crank", placement=(0.2, 0, 0)
        )
        builder.body("slider", al.Inertia.point(0.3), joint=al.Prismatic((1, 0, 0)), joint_name="slide")
        if isinstance(rod, al.ModalBody):
            builder.frame("end", "rod", node="tip")
        else:
            builder.frame("end", "rod", (0.5, 0, 0))
        builder.loop("wrist", al.Revolute((0, 0, 1)), "end", "slider")
        model = builder.build()
        guess, rate = model.configuration({"shaft": 0.6, "slide": 0.6}), model.velocity({"shaft": 8.0})
        return model, model.assemble(guess, rate, fixed=["shaft"])

    model, state = crank(beam(0.5, 0.6, EI_z=2e6, ends="craig-bampton"))
    run = al.simulate(model, state.q, state.v, duration=0.2, step=1e-3)
    assert run.integrator == "variational"
    assert "the mode 'rod.bending_y_slope' at" in run.report.reason
    assert "is too fast for explicit steps of 0.001 s" in run.report.reason
    stiff, start = crank(al.Inertia.rod(0.3, (0, 0, 0), (0.5, 0, 0)))
    rigid = al.simulate(stiff, start.q, start.v, duration=0.2, step=1e-3, integrator="variational")
    # inertia forces of 10 N bend it by 10 N (0.5 m)^3 / EI = 6e-7 m
    np.testing.assert_allclose(run.channel("shaft").values, rigid.channel("shaft").values, atol=1e-5)
    short = al.simulate(model, state.q, state.v, duration=1e-5, step=1e-6)
    assert short.integrator == "rk4"
    slow = al.simulate(model, state.q, state.v, duration=1e-5, step=1e-5, stabilisation="baumgarte")
    assert slow.integrator == "radau"


def test_propped_cantilever():
    """The support takes 3/8 of the weight (exact for the static shapes), and the beam is clamped and pinned."""
    builder = al.ModelBuilder("propped", gravity=(0, -0.01, 0))
    builder.body("beam", beam(1.0, 1.0, EI_z=1.0, bending_y=4, ends="craig-bampton"), joint=al.Fixed())
    builder.frame("tip", "beam", node="tip")
    builder.equation("support", "y", {"y": "tip.y"})
    model = builder.build()
    rest = al.trim(model)
    force = model.constrained_dynamics(rest.q, np.zeros(model.nv), np.zeros(model.nv)).reactions["support"]
    # the tip moves along x by second order of a deflection of 1e-4
    assert force[0] == pytest.approx(0.01 * 3 / 8, rel=1e-6)
    frequencies = al.linearize(model, np.zeros(model.nq)).modes().frequencies
    np.testing.assert_allclose(frequencies[:2], [15.4182057170, 49.9648620318], rtol=1e-3)  # four modes


def test_equations_of_modal_coordinates():
    """Two arms that are made to bend alike."""
    builder = al.ModelBuilder("alike", gravity=(0, -1, 0))
    for name, EI in (("left", 1.0), ("right", 3.0)):
        builder.body(name, beam(1.0, 1.0, EI_z=EI, bending_y=1), joint=al.Fixed())
    builder.equation("alike", "a - b", {"a": "left.bending_y_1", "b": "right.bending_y_1"})
    model = builder.build()
    a = model.forward_dynamics(np.zeros(2), np.zeros(2), np.array([1.0, 0.0]))
    assert a[0] == pytest.approx(a[1], abs=1e-12)
    rest = al.trim(model)
    K = sum(model.body(name).flexible.array("stiffness")[0, 0] for name in ("left", "right"))
    S = sum(model.body(name).flexible.array("shape_moments")[0, 1] for name in ("left", "right"))
    assert rest.q[0] == pytest.approx(-S / K, rel=1e-4)  # foreshortening adds the square of the slope


def test_messages():
    builder = al.ModelBuilder("m")
    builder.body("arm", beam(1.0, 1.0, EI_z=1.0, bending_y=1), joint=al.Revolute(), joint_name="pin")
    builder.frame("one", "arm", node="tip")
    builder.frame("two", "arm", (0.1, 0, 0), node="tip")
    builder.loop("loop", al.Spherical(), "one", "two")
    with pytest.raises(
        al.ModelError, match="loop 'loop' joins two frames of node 'tip' of the same body 'arm'"
    ):
        builder.build()
    builder = al.ModelBuilder("m")
    builder.body("arm", beam(1.0, 1.0, EI_z=1.0, bending_y=1), joint=al.Revolute(), joint_name="pin")
    builder.coupling("gear", "pin", ["arm.bending_y_1"], [2.0])
    with pytest.raises(al.ModelError, match=r"'arm\.bending_y_1', which is no joint of one degree"):
        builder.build()


def test_constrained_motion_with_an_indefinite_mass_matrix_is_told():
    """Compiled and dense routes; the fourth shape is bent far, and the third so that the tip stays on its line."""
    builder = al.ModelBuilder("propped", gravity=(0, 0, 0))
    builder.body(
        "boom", beam(1.0, 1.0, EI_z=1.0, bending_y=4), joint=al.Prismatic((1, 0, 0)), joint_name="slide"
    )
    builder.frame("tip", "boom", node="tip")
    builder.equation("line", "y", {"y": "tip.y"})
    model = builder.build()
    tip = np.array(model.body("boom").flexible.node("tip").shapes)[:, 1]
    q, zero = model.neutral(), np.zeros(model.nv)
    q[model.space.of_bodies["boom"].q] = [0, 0, 0.06, -0.06 * tip[2] / tip[3]]
    assert np.linalg.eigvalsh(model.mass_matrix(q))[0] < 0
    for call in (
        lambda: model.constrained_dynamics(q, zero, zero),
        lambda: model.impulse(q, zero + 1),
        lambda: al.admittance(model, q, ["tip"]),
    ):
        with pytest.raises(al.NumericalError, match="body 'boom' is deflected too far for its modes"):
            call()

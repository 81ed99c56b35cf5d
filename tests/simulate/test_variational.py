"""The variational integrator: momentum maps, energy over long times, forces, Legendre transforms, failure."""

import casadi as ca
import numpy as np
import pytest
from simulate_helpers import model, slope, state

import alembert as al
from alembert.errors import NumericalError, UnsupportedError
from alembert.simulate import Event, simulate
from alembert.simulate.step_code import StepModel
from alembert.simulate.variational import DiscreteMechanics
from alembert.spatial import Ad_dual

EPS = float(np.finfo(float).eps)


def test_momentum_of_a_free_craft_is_kept():
    run = simulate(model("craft"), *state("craft"), duration=10.0, step=0.01, integrator="variational")
    h = run.momentum
    # 1000 steps, each solved to rounding; errors add up like a random walk
    assert np.max(np.abs(h - h[0])) < 1e-12 * max(1.0, np.max(np.abs(h)))


def test_internal_torques_leave_the_momentum_of_a_satellite():
    m = al.library.satellite()
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    u = ca.vertcat(ca.SX.zeros(6), 5 * ca.sin(t), 3 * ca.cos(2 * t) - v[7], -2 * v[8] + 10 * q[5])
    law = ca.Function("law", [t, q, v], [u])
    v0 = np.r_[0.1, -0.2, 0.05, 0.02, 0.0, 0.01, 1.0, 2.0, 3.0]
    run = simulate(m, m.neutral(), v0, duration=10.0, step=0.01, controller=law, integrator="variational")
    h = run.momentum
    assert np.ptp(run.v[:, 0]) > 0.01  # the body is turned by the rotors
    assert np.max(np.abs(h - h[0])) < 1e-12 * np.max(np.abs(h))
    assert max(run.report.momentum_error) < 1e-12


def test_change_of_momentum_is_the_impulse_of_the_wrenches():
    """A wrench that follows the body: half of its impulse acts at either node of a step."""
    m, (q0, v0) = model("craft"), state("craft")
    wrench = np.array([0.3, -0.2, 0.5, 1.0, 2.0, -0.7])
    h = 0.02
    run = simulate(m, q0, v0, duration=4.0, step=h, wrenches={"boom": wrench}, integrator="variational")
    pose = [m.frame_pose(q, "boom") for q in run.q]
    world = np.array([Ad_dual(X) @ wrench for X in pose])
    impulse = np.concatenate([np.zeros((1, 6)), np.cumsum(h / 2 * (world[1:] + world[:-1]), axis=0)])
    change = run.momentum - run.momentum[0]
    assert np.max(np.abs(change)) > 3.0
    assert np.max(np.abs(change - impulse)) < 1e-12 * np.max(np.abs(run.momentum))


def test_change_of_momentum_is_the_impulse_of_the_efforts():
    """A body on a revolute joint without gravity: its angular momentum about the axis."""
    builder = al.ModelBuilder("wheel", gravity=(0, 0, 0))
    builder.body("wheel", al.Inertia.box(2.0, (0.3, 0.4, 0.1)), joint=al.Revolute((0, 0, 1)))
    builder.body("arm", al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute((0, 0, 1)), parent="wheel",
                 placement=(0.3, 0, 0))  # fmt: skip
    m = builder.build()
    run = simulate(
        m, [0.1, 0.2], [1.0, -2.0], duration=5.0, step=0.01, efforts=[0.7, 0.4], integrator="variational"
    )
    expected = run.momentum[0, 2] + 0.7 * run.time
    np.testing.assert_allclose(run.momentum[:, 2], expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


def test_energy_stays_bounded_over_a_long_time():
    """A symplectic scheme: the error swings but does not grow, unlike that of an explicit one."""
    m = al.library.two_link()
    options = {"duration": 200.0, "step": 0.01, "interval": 0.05}
    run = simulate(m, [-0.9, 0.4], integrator="variational", **options)
    error = np.abs(run.energy - run.energy[0])
    quarter = len(error) // 4
    assert np.max(error[-quarter:]) < 2 * np.max(error[:quarter])
    other = simulate(m, [-0.9, 0.4], integrator="midpoint", **options)
    drift = np.abs(other.energy - other.energy[0])
    assert np.max(drift[-quarter:]) > 3 * np.max(drift[:quarter])


def test_initial_and_final_speeds_are_legendre_transforms():
    """Speeds come back from momenta: v(0) as given; at the end to second order."""
    m, (q0, v0) = model("ball"), state("ball")
    reference = simulate(m, q0, v0, duration=0.4, step=1e-4, interval=0.4, integrator="rk4").v[-1]
    steps = [0.02, 0.01, 0.005]
    errors = []
    for h in steps:
        run = simulate(m, q0, v0, duration=0.4, step=h, integrator="variational")
        np.testing.assert_allclose(run.v[0], v0, rtol=0, atol=1e-13)
        errors.append(np.linalg.norm(run.v[-1] - reference))
    assert slope(errors, steps) == pytest.approx(2, abs=0.2)


def test_python_controllers_keep_the_order():
    """Asked once per step at the expected middle."""
    m, (q0, v0) = model("ball"), state("ball")

    def law(t, q, v):
        return np.array([0.5, 0.1, -0.3, 0.2]) * np.sin(3 * t) - 0.2 * v

    steps = [0.02, 0.01, 0.005]
    reference = simulate(
        m, q0, v0, duration=0.4, step=5e-4, interval=0.4, controller=law, integrator="rk4"
    ).v[-1]
    errors = []
    for h in steps:
        run = simulate(m, q0, v0, duration=0.4, step=h, controller=law, integrator="variational")
        errors.append(np.linalg.norm(run.v[-1] - reference))
    assert slope(errors, steps) == pytest.approx(2, abs=0.2)


def test_symbolic_controllers_keep_the_order():
    m, (q0, v0) = model("ball"), state("ball")
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    law = ca.Function("law", [t, q, v], [0.5 * ca.sin(3 * t) - 0.4 * v])
    steps = [0.02, 0.01, 0.005]
    reference = simulate(
        m, q0, v0, duration=0.4, step=5e-4, interval=0.4, controller=law, integrator="rk4"
    ).v[-1]
    errors = [
        np.linalg.norm(
            simulate(m, q0, v0, duration=0.4, step=h, controller=law, integrator="variational").v[-1]
            - reference
        )
        for h in steps
    ]
    assert slope(errors, steps) == pytest.approx(2, abs=0.2)


def test_a_step_without_solution_is_refused():
    m = al.library.two_link()
    with pytest.raises(
        NumericalError,
        match=r"simulate: the motion is not finite after t = 0 s, in steps of 1 s; .* smaller step",
    ):
        simulate(m, [0.1, 0.2], [300.0, -400.0], duration=10.0, step=1.0, integrator="variational")


def test_prescribed_motion_is_refused():
    m = al.library.two_link()
    with pytest.raises(UnsupportedError, match="prescribed motion and integrator 'variational'"):
        simulate(m, [0, 0], duration=1.0, step=0.1, prescribed={"elbow": 0.0}, integrator="variational")


def test_events_within_steps():
    """The pendulum passes the bottom after a quarter period, to second order in the step."""
    m = al.library.pendulum()
    bottom = Event(lambda t, q, v: q[0], "bottom")
    run = simulate(m, [-np.pi / 2], duration=2.0, step=1e-3, integrator="variational", events=bottom)
    assert run.events[0].time == pytest.approx(2.3678419475762 / 4, abs=1e-6)


@pytest.mark.parametrize("integrator", ["variational", "generalised_alpha"])
def test_rest_stays_rest(integrator):
    """At an equilibrium unknowns are rounding themselves, and must pass for solved."""
    m = al.library.two_link()
    run = simulate(m, [-np.pi / 2, 0.0], duration=5.0, step=0.01, integrator=integrator)
    np.testing.assert_allclose(run.q, np.broadcast_to([-np.pi / 2, 0.0], run.q.shape), rtol=0, atol=1e-12)
    floating = model("craft")
    run = simulate(floating, floating.neutral(), duration=1.0, step=0.01, integrator=integrator)
    np.testing.assert_allclose(run.v, 0, atol=1e-12)


def test_generalised_alpha_damps_what_is_too_fast():
    """A stiff spring of 1000 rad/s, steps of 10 ms: its swing dies out, a slow pendulum next to it keeps going."""
    builder = al.ModelBuilder("stiff")
    builder.body("rod", al.Inertia.point(1.0, (0, 0, -1)), joint=al.Revolute((0, 1, 0)))
    builder.body("mass", al.Inertia.point(0.01, (0, 0, 0)), joint=al.Prismatic((0, 0, 1)), parent="rod",
                 spring=al.Spring((1e4,)))  # fmt: skip
    m = builder.build()
    run = simulate(m, [0.3, 1e-4], duration=5.0, step=0.01, integrator="generalised_alpha")
    settled = np.abs(run.q[-100:, 1])
    assert np.max(settled) < 2e-5  # what weight and swing ask of the spring; it was released at 1e-4
    assert np.max(np.abs(run.q[-300:, 0])) == pytest.approx(0.3, abs=0.003)
    with pytest.raises(UnsupportedError, match="prescribed motion and integrator 'generalised_alpha'"):
        simulate(
            m, [0, 0], duration=1.0, step=0.1, prescribed={"mass_joint": 0.0}, integrator="generalised_alpha"
        )


def test_condition_does_not_depend_on_the_step():
    """Unlike that of the scheme with multipliers: the Jacobian tends to the mass matrix over the step."""
    m, (q0, v0) = model("craft"), state("craft")
    mechanics = DiscreteMechanics(StepModel(m), ca.SX(0, 1), None)
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    q, p, e = (ca.SX.sym(name, n) for name, n in (("q", m.nq), ("p", m.nv), ("e", m.nv)))
    residual = mechanics.residual(t, q, p, e, h, ca.SX.zeros(m.nv))
    jacobian = ca.Function("jacobian", [t, q, p, e, h], [ca.jacobian(residual, e)])
    steps = (1e-2, 1e-4, 1e-6)
    found = [np.linalg.cond(np.asarray(jacobian(0, q0, np.zeros(m.nv), h * v0, h))) for h in steps]
    expected = np.linalg.cond(m.mass_matrix(q0))
    np.testing.assert_allclose(found, expected, rtol=0.05)
    assert found[-1] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["free", "spherical"])
@pytest.mark.parametrize("geared", ["armature", "rotors", "rotors on two"])
def test_gears_on_speeds_that_are_no_rates(kind, geared):
    """Their momentum does not turn with the body: the motion is that of the equations of motion, to second order."""
    builder = al.ModelBuilder("geared")
    builder.body(
        "carrier", al.Inertia.box(3.0, (0.3, 0.4, 0.5)), joint=al.Revolute((0, 1, 0)), joint_name="pivot"
    )
    joint = al.Spherical() if kind == "spherical" else al.Free()
    builder.body(
        "rotor", al.Inertia.box(1.0, (0.3, 0.2, 0.1)), parent="carrier", joint=joint, joint_name="ball"
    )
    model = builder.build()
    n = model.joint("ball").type.nv
    if geared == "armature":
        model = model.replace_joint("ball", armature=(0.01, 0.02, 0.03, 0.1, 0.2, 0.3)[:n])
    else:
        model = model.replace_joint("ball", rotors=(al.Rotor(10.0, 2e-4, (0.6, 0.0, 0.8), 1),))
    if geared == "rotors on two":
        model = model.replace_joint(
            "pivot", type=al.Spherical(), rotors=(al.Rotor(-5.0, 3e-3, (0.0, 0.6, 0.8), 2),)
        )
    v = 2 * np.random.default_rng(1).normal(size=model.nv)
    right = al.simulate(model, v0=v, duration=0.4, integrator="dop853")
    ends = [al.simulate(model, v0=v, duration=0.4, integrator="variational", step=h) for h in (4e-3, 2e-3)]
    errors = [
        np.linalg.norm(np.r_[model.difference(right.q[-1], x.q[-1]), right.v[-1] - x.v[-1]]) for x in ends
    ]
    assert 0.23 < errors[1] / errors[0] < 0.27  # a quarter, and higher orders: it tends to zero

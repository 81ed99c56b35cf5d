"""Loops kept by projection or by feedback, and the flyball governor."""

import numpy as np
import pytest

import alembert as al
from alembert import simulate


def four_bar():
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("crank", rod, joint=al.Revolute())
    builder.body("coupler", rod, joint=al.Revolute(), parent="crank", placement=(1, 0, 0))
    builder.body("rocker", rod, joint=al.Revolute(), placement=(1, 0, 0))
    builder.frame("end of coupler", "coupler", (1, 0, 0))
    builder.frame("end of rocker", "rocker", (1.2, 0, 0))  # no parallelogram, which no step opens
    builder.loop("pin", al.Revolute(), "end of coupler", "end of rocker")
    return builder.build()


MODEL = four_bar()
START = MODEL.assemble([1.2, -1.2, 1.2], [1.0, -1.0, 1.0])


def drift(run):
    return max(np.abs(MODEL.constraint_residual(q)).max() for q in run.q)


def test_three_ways_to_stay_closed():
    runs = {
        name: al.simulate(
            MODEL, START.q, START.v, duration=1.0, step=2e-3, integrator="rk4", stabilisation=name
        )
        for name in ("projection", "baumgarte", "ggl")
    }
    found = {name: drift(run) for name, run in runs.items()}
    assert found["projection"] < 1e-12
    # feedback leaves what a step breaks: rk4's local error (some (w h)^5), held there by the rate
    assert 1e-15 < found["baumgarte"] < 1e-7
    assert 1e-15 < found["ggl"] < 1e-7
    for run in runs.values():
        np.testing.assert_allclose(run.q[-1], runs["projection"].q[-1], atol=1e-7)


@pytest.mark.parametrize("method", ["baumgarte", "ggl"])
def test_feedback_closes_what_is_open_at_its_rate(method):
    """From a state that is off by 1e-4, residuals decay like (1 + r t) e^(-r t) or e^(-r t)."""
    off = START.q + np.array([0.0, 1e-4, 0.0])
    system_rate = 10.0
    run = al.simulate(
        MODEL, START.q, START.v, duration=0.01, step=1e-2, integrator="rk4", stabilisation=method
    )
    assert run.q.shape[0] == 2
    from alembert.simulate.inputs import Stabilisation

    x, y = MODEL.constrained_compute.constraint_corrections(off, START.v, None, None)
    G, phi = MODEL.constraint_jacobian(off), MODEL.constraint_residual(off)
    np.testing.assert_allclose(G @ x, -phi, atol=1e-7)
    np.testing.assert_allclose(G @ y, -G @ START.v, atol=1e-9)
    a = MODEL.constrained_dynamics(off, START.v, np.zeros(3)).accelerations
    dq, dv = Stabilisation(method, system_rate).rates(START.v, a, x, y)
    if method == "ggl":
        np.testing.assert_allclose(G @ (dq - START.v), -system_rate * phi, atol=1e-6)
    else:
        gamma = MODEL.constraint_bias(off, START.v)
        expected = -(2 * system_rate * G @ START.v + system_rate**2 * phi)
        np.testing.assert_allclose(G @ dv + gamma, expected, atol=1e-5)


def test_refusals():
    pendulum = (
        al.ModelBuilder("p").body("b", al.Inertia.point(1, (0, 0, 1)), joint=al.Revolute((1, 0, 0))).build()
    )
    for options, kind, message in (
        ({"stabilisation": "glue"}, al.ArgumentError, r"^simulate: no stabilisation 'glue'; "),
        (
            {"stabilisation_rate": 0.0},
            al.ArgumentError,
            r"^simulate: stabilisation_rate is 0.0, expected a positive rate in 1/s$",
        ),
        (
            {"stabilisation": "baumgarte"},
            al.ArgumentError,
            r"^simulate: stabilisation 'baumgarte', but the model has no constraints$",
        ),
    ):
        with pytest.raises(kind, match=message):
            al.simulate(pendulum, [0.1], duration=0.1, step=0.01, integrator="rk4", **options)
    with pytest.raises(
        al.UnsupportedError,
        match=r"^simulate: stabilisation 'ggl' and integrator 'dop853' do not go together",
    ):
        al.simulate(MODEL, START.q, START.v, duration=0.1, stabilisation="ggl", integrator="dop853")


def governor():
    """IFToMM A05: a shaft with two arms and balls, a slider, and stiff spring-dampers from the arms to it."""
    builder = al.ModelBuilder("governor", gravity=(0, 0, -9.81))
    builder.body(
        "shaft",
        al.Inertia.box(0.3, (0.01, 0.01, 1.0), center=(0, 0, 0.5)),
        joint=al.Revolute(),
        joint_name="spin",
    )
    builder.body(
        "slider",
        al.Inertia.box(3.0, (0.1, 0.1, 0.1)),
        joint=al.Prismatic((0, 0, 1)),
        parent="shaft",
        joint_name="slide",
    )
    for k, sign in enumerate((1.0, -1.0)):
        rod = al.Inertia.box(0.3, (1.0, 0.01, 0.01), center=(0.5 * sign, 0, 0)) + al.Inertia.point(
            5.0, (sign, 0, 0)
        )
        builder.body(
            f"arm{k}",
            rod,
            joint=al.Revolute((0, sign, 0)),
            parent="shaft",
            joint_name=f"hinge{k}",
            placement=(0.05 * sign, 0, 1.0),
        )
        builder.frame(f"middle{k}", f"arm{k}", (0.5 * sign, 0, 0))
        builder.frame(f"side{k}", "slider", (0.05 * sign, 0, 0))
    return builder.build()


def test_the_flyball_governor_keeps_its_angular_momentum():
    """Stiff: the spring-dampers decay within microseconds."""
    model = governor()
    springs = [
        simulate.SpringDamper(f"middle{k}", f"side{k}", stiffness=8e5, damping=4e4, length=0.5)
        for k in (0, 1)
    ]
    q0 = np.array(
        [0.0 if n == "spin" else 0.5 if n == "slide" else np.radians(30) for n in model.coordinate_names]
    )
    v0 = np.array([2 * np.pi if n == "spin" else 0.0 for n in model.speed_names])
    run = al.simulate(model, q0, v0, duration=0.5, integrator="radau", forces=springs, tolerance=1e-8)
    spin = model.momentum(run.q, run.v, about="world")[..., 2]
    np.testing.assert_allclose(spin, spin[0], rtol=1e-6)  # of a scheme with error control at 1e-8 a step
    left, right = (run.q[:, model.q_slice(f"hinge{k}").start] for k in (0, 1))
    np.testing.assert_allclose(left, right, atol=1e-6)  # it stays symmetric
    # the springs are as good as rods of 0.5 m: the slider follows the arms
    rod = [
        np.linalg.norm(model.frame_pose(q, "middle0").translation - model.frame_pose(q, "side0").translation)
        for q in run.q[::50]
    ]
    np.testing.assert_allclose(rod, 0.5, atol=2e-4)  # weights of 80 N on 8e5 N/m: 1e-4 m
    assert np.ptp(run.q[:, 1]) > 0.05


def test_the_variational_scheme_refuses_feedback():
    builder = al.ModelBuilder("gear", gravity=(0, 0, 0))
    for name in "ab":
        builder.body(
            name, al.Inertia.cylinder(1.0, 0.5, 0.1, (0, 0, 1)), joint=al.Revolute((0, 0, 1)), joint_name=name
        )
    m = builder.build().replace(couplings=(al.Coupling("gear", "b", ("a",), (-2.0,)),))
    with pytest.raises(
        al.UnsupportedError, match="stabilisation 'baumgarte' and integrator 'variational' do not go"
    ):
        simulate(m, [0.1, -0.2], duration=1.0, step=0.1, integrator="variational", stabilisation="baumgarte")

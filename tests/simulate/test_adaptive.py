"""Error control: accuracy follows the tolerance, stiff systems, records between steps, exact Jacobians."""

import sys

import casadi as ca
import numpy as np
import pytest
from simulate_helpers import distance, model, slope, state

import alembert as al
from alembert.errors import NumericalError, UnsupportedError
from alembert.simulate import Drive, Event, simulate
from alembert.simulate.actuators import Lags
from alembert.simulate.adaptive import ADAPTIVE, Counters, _balance, _jacobian, pieces
from alembert.simulate.chart_equation import Flow
from alembert.simulate.inputs import Inputs
from alembert.simulate.simulation import Simulation
from alembert.simulate.step_code import chart_kernel


@pytest.fixture(scope="module")
def reference():
    run = simulate(model("craft"), *state("craft"), duration=2.0, step=5e-4, interval=2.0, integrator="rk4")
    return run.q[-1], run.v[-1]


@pytest.mark.parametrize("integrator", ADAPTIVE)
def test_accuracy_follows_the_tolerance(reference, integrator):
    m = model("craft")
    errors = []
    for tolerance in (1e-4, 1e-7):
        run = simulate(
            m, *state("craft"), duration=2.0, interval=0.5, integrator=integrator,
            tolerance=tolerance, absolute_tolerance=0.1 * tolerance,
        )  # fmt: skip
        errors.append(distance(m, run, *reference))
    assert errors[1] < 1e-4
    assert errors[1] < 0.05 * errors[0]


@pytest.mark.parametrize(("integrator", "order"), [("rk45", 5), ("dop853", 8)])
def test_order_of_one_step_formulas(integrator, order):
    """By regression, with steps held at a length: in the chart they are the classical methods."""
    m, (q0, v0) = model("ball"), state("ball")
    end = 0.8

    def final(name, h, tolerance):
        counters = Counters(step=h)
        loose = {"tolerance": tolerance, "absolute": tolerance, "longest": h, "counters": counters}
        for piece in pieces(name, flow(m), 0.0, q0, v0, np.zeros(0), end, **loose):  # noqa: B007
            pass
        return piece.at(end)

    q, v = final("dop853", np.inf, 1e-13)
    errors, steps = [], [end / n for n in ((4, 5, 6) if order == 8 else (6, 9, 12))]
    for h in steps:
        q1, v1 = final(integrator, h, 1e3)
        errors.append(np.linalg.norm(np.r_[m.difference(q, q1), v1 - v]))
    assert slope(errors, steps) == pytest.approx(order, abs=0.8)


@pytest.mark.parametrize("integrator", ADAPTIVE)
def test_error_is_proportional_to_the_tolerance(reference, integrator):
    """By regression; formulas of variable order choose orders as well as steps, which scatters."""
    m = model("craft")
    tolerances = [1e-4, 1e-5, 1e-6, 1e-7]
    errors = []
    for tolerance in tolerances:
        run = simulate(
            m, *state("craft"), duration=2.0, interval=2.0, integrator=integrator,
            tolerance=tolerance, absolute_tolerance=0.1 * tolerance,
        )  # fmt: skip
        errors.append(distance(m, run, *reference))
    assert slope(errors, tolerances) == pytest.approx(1.0, abs=0.35)


def driven(m):
    """With a controller, and drives with lags, limits and both."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    law = ca.Function("law", [t, q, v], [-0.3 * v * ca.sin(t + 1) - 0.2 * ca.sum1(q)])
    drives = {
        m.speed_names[0]: Drive(lag=0.2),
        m.speed_names[1]: Drive(frequency=3.0, damping_ratio=0.7),
        m.speed_names[2]: Drive(lag=0.1, rate=1e-3),  # as fast as it can
        m.speed_names[3]: Drive(limit=1e-3),
    }
    return flow(m, law, drives), np.array([0.03, -0.02, 0.01, 0.05])


def flow(m, law=None, drives=None):
    system = Simulation(m, Inputs(controller=law, drives=drives), ())
    zero = np.zeros(m.nv)
    return Flow(system, zero, 0.0, lags=None if drives is None else Lags(system.drives), command=zero)


@pytest.mark.parametrize("with_drives", [False, True])
def test_ida_uses_inverse_dynamics_exactly(with_drives):
    """Its Jacobian against differences, with a controller and what drives remember."""
    m, (q, v) = model("bench"), state("bench")
    a = np.random.default_rng(0).normal(size=m.nv)
    equations, z = driven(m) if with_drives else (flow(m), np.zeros(0))
    residual, jacobian = _balance(equations, q, Counters())
    y, yp = np.r_[np.full(m.nv, 0.1), v, z], np.r_[v, a, z]
    found = jacobian(0.0, y, yp, 2.5)
    for k in range(len(y)):
        d = np.zeros(len(y))
        d[k] = 1e-6
        numeric = (residual(0.0, y + d, yp + 2.5 * d) - residual(0.0, y - d, yp - 2.5 * d)) / 2e-6
        np.testing.assert_allclose(found[:, k], numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("integrator", ["cvode", "ida"])
def test_stiff_controller_with_sundials(integrator):
    """A stiff symbolic controller: the exact Jacobian has it."""
    m = al.library.two_link()
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    law = ca.Function("law", [t, q, v], [-2e4 * (q - ca.DM([0.3, -0.2])) - 1e4 * v])
    run = simulate(m, [0.0, 0.0], duration=60.0, controller=law, integrator=integrator, tolerance=1e-6)
    assert run.steps < 1500  # explicit formulas would take more than 1e5
    hold = m.inverse_dynamics([0.3, -0.2], [0, 0], [0, 0])
    np.testing.assert_allclose(run.q[-1], [0.3, -0.2] - hold / 2e4, rtol=0, atol=1e-4)
    stop = Event(lambda t, q, v: q[0] - 0.2, "there")
    stopped = simulate(m, [0.0, 0.0], duration=60.0, controller=law, integrator=integrator, events=stop)
    assert stopped.q[-1, 0] == pytest.approx(0.2, abs=1e-9)


def test_sundials_refusals(monkeypatch):
    m = al.library.two_link()
    with pytest.raises(UnsupportedError, match="integrator 'ida' and prescribed motion do not go together"):
        simulate(m, [0, 0], duration=1.0, prescribed={"elbow": 0.0}, integrator="ida")

    def wild(t, q, v):
        return 1e3 * v**2 + 1e3

    with pytest.raises(NumericalError, match=r"simulate: cvode cannot go on at t = .* s: "):
        simulate(m, [0, 0], duration=10.0, controller=wild, integrator="cvode")
    monkeypatch.setitem(sys.modules, "sksundae.cvode", None)
    with pytest.raises(
        UnsupportedError, match=r'integrator \'ida\' needs SUNDIALS; pip install "alembert\[stiff'
    ):
        simulate(m, [0, 0], duration=1.0, integrator="ida")


def test_records_between_steps_are_as_good_as_steps():
    """Dense output of order 7: records do not shorten the steps, and are as exact as they."""
    m = al.library.pendulum()
    run = simulate(m, [-1.2], duration=3.0, interval=0.01, integrator="dop853", tolerance=1e-10)
    fine = simulate(m, [-1.2], duration=3.0, step=1e-3, interval=0.01, integrator="rk4")
    assert run.steps < 60
    np.testing.assert_allclose(run.q, fine.q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.time, fine.time, rtol=0, atol=1e-12)


@pytest.mark.parametrize("integrator", ADAPTIVE)
def test_charts_change_on_the_way(integrator):
    """Many turns of a free body: q stays a unit quaternion, and the axis of a symmetric body stays where it is."""
    builder = al.ModelBuilder("disc", gravity=(0, 0, 0))
    builder.body("disc", al.Inertia.cylinder(1.0, 0.5, 0.1, (0, 0, 1)), joint=al.Free())
    m = builder.build()
    run = simulate(m, m.neutral(), [0, 0, 4.0, 0.5, 0, 0], duration=5.0, integrator=integrator, interval=0.05)
    assert run.report.quaternion_error < 1e-15
    np.testing.assert_allclose(
        np.abs(run.q[-1][[3, 6]]), np.abs([np.cos(10.0), np.sin(10.0)]), rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(run.q[:, 4:6], 0, atol=1e-12)


def test_stiff_damper():
    """A strong viscous damper on a light wheel next to a slow pendulum: few implicit steps do."""
    builder = al.ModelBuilder("stiff")
    builder.body("rod", al.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)), joint=al.Revolute((0, 1, 0)))
    builder.body("wheel", al.Inertia.box(0.01, (0.02, 0.02, 0.02)), joint=al.Revolute((0, 1, 0)), parent="rod",
                 friction=al.Friction(viscous=(0.05,)))  # fmt: skip
    m = builder.build()
    run = simulate(m, [0.5, 0.0], [0.0, 1.0], duration=5.0, tolerance=1e-6)
    assert run.integrator == "radau"
    assert run.reason.startswith("stiff: motions decay within")
    assert run.steps < 600
    period = 2 * np.pi * np.sqrt(2 / (3 * 9.81))
    assert run.q[int(1000 * period / 5.0), 0] == pytest.approx(0.5, abs=0.02)  # somewhat longer for 0.5 rad


@pytest.mark.parametrize("with_drives", [False, True])
def test_jacobian_is_exact(with_drives):
    m, (q, v) = model("ball"), state("ball")
    equations, z = driven(m) if with_drives else (flow(m), np.zeros(0))
    rate = chart_kernel(m, "chart_rate")

    def derivative(y):
        e, w = y[: m.nv], y[m.nv : 2 * m.nv]
        return np.r_[rate(e, w), *equations.slope(0.0, m.integrate(q, e), w, y[2 * m.nv :])]

    y = np.r_[0.3, -0.5, 0.4, 0.2, v, z]
    step = 1e-6
    columns = [(derivative(y + step * x) - derivative(y - step * x)) / (2 * step) for x in np.eye(len(y))]
    # central differences: step^2 of the third derivative, and rounding over the step, 1e-10 of the largest slope
    np.testing.assert_allclose(
        _jacobian(equations, q, Counters())(0.0, y), np.array(columns).T, rtol=0, atol=1e-7
    )


def test_symbolic_controllers_have_a_part_in_the_jacobian():
    """A stiff controller: without its derivatives Newton's method would fail or crawl."""
    m = al.library.two_link()
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    law = ca.Function("law", [t, q, v], [-1e4 * (q - 0.3) - 1e4 * v])
    run = simulate(m, [0.0, 0.0], duration=2.0, controller=law, integrator="radau", tolerance=1e-6)
    assert run.steps < 200
    assert run.q[-1] == pytest.approx([0.26, 0.26], abs=0.03)  # it creeps with the time constant of 1 s


def test_failure_is_explained():
    """Towards a gimbal lock, which acts like a wall."""
    builder = al.ModelBuilder("lock", gravity=(0, 0, 0))
    builder.body("top", al.Inertia.box(1.0, (0.1, 0.2, 0.3)), joint=al.Gimbal("zyx"))
    m = builder.build()
    with pytest.raises(
        NumericalError, match=r"(simulate: dop853 cannot go on at t = 0\.|the result is not finite)"
    ):
        simulate(m, [0, np.pi / 2 - 0.5, 0], [0.0, 1.0, 0.0], duration=1.0, integrator="dop853", tolerance=1e-3,
                 absolute_tolerance=1e-3, controller=lambda t, q, v: [0, 1 / (0.5 - t) ** 3, 0])  # fmt: skip

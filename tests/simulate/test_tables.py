"""Tables over time: what lies between the instants, and motions in closed form."""

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import alembert as al
from alembert.errors import ArgumentError
from alembert.simulate import Table, inputs, simulate

TIMES = [0.0, 0.5, 0.8, 1.5, 2.0]
VALUES = [1.0, -2.0, 0.5, 3.0, -1.0]


def slider():
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="rail")
    return builder.build()


@pytest.mark.parametrize("outside", ["hold", "zero"])
@pytest.mark.parametrize("interpolation", ["hold", "linear", "cubic"])
def test_values(interpolation, outside):
    table = Table(TIMES, VALUES, interpolation, outside)
    t = ca.SX.sym("t")
    symbolic = ca.Function("table", [t], [table.symbolic(t)])
    inside = np.linspace(0.0, 1.999, 57)
    expected = {
        "hold": np.array(VALUES)[np.searchsorted(TIMES, inside, side="right") - 1],
        "linear": np.interp(inside, TIMES, VALUES),
        "cubic": CubicSpline(TIMES, VALUES)(inside),
    }[interpolation]
    np.testing.assert_allclose([table(x)[0] for x in inside], expected, rtol=0, atol=1e-13)
    for x in (*inside, -1.0, 2.5):
        assert float(symbolic(x)) == pytest.approx(table(x)[0], abs=1e-14)
    assert table(-1.0)[0] == (1.0 if outside == "hold" else 0.0)
    assert table(2.5)[0] == (-1.0 if outside == "hold" else 0.0)


def area(times, values, t):
    """Position of a mass at rest at 0 under a force that is linear between instants, by exact quadrature."""
    x = v = 0.0
    for a, b, f, g in zip(times, times[1:], values, values[1:], strict=False):
        h = min(b, t) - a
        if h <= 0:
            break
        slope = (g - f) / (b - a)
        x += v * h + f * h**2 / 2 + slope * h**3 / 6
        v += f * h + slope * h**2 / 2
    return x, v


@pytest.mark.parametrize("integrator", ["rk4", "dop853", "variational", "adams_bashforth2"])
def test_linear_table_of_efforts(integrator):
    run = simulate(
        slider(),
        [0.0],
        duration=2.0,
        step=0.01,
        integrator=integrator,
        efforts={"rail": Table(TIMES, VALUES)},
    )
    x, v = area(TIMES, VALUES, 2.0)
    # exact but for the kinks within steps of methods that look back
    tolerance = 1e-3 if integrator in ("variational", "adams_bashforth2") else 1e-12
    assert (run.q[-1, 0], run.v[-1, 0]) == pytest.approx((x, v), abs=tolerance)
    np.testing.assert_allclose(run.efforts[:, 0], np.interp(run.time, TIMES, VALUES), atol=1e-12)
    assert run.report.energy_error < 1e-3


@pytest.mark.parametrize("integrator", ["rk4", "dop853", "variational", "generalised_alpha", "radau"])
def test_a_table_that_holds(integrator):
    """Piecewise constant forces, exact in every scheme since they change between steps only."""
    x = v = 0.0
    for h, f in zip(np.diff(TIMES), VALUES, strict=False):
        x, v = x + v * h + f * h**2 / 2, v + f * h
    table = Table(TIMES, VALUES, "hold")
    run = simulate(slider(), [0.0], duration=2.0, step=0.1, integrator=integrator, efforts={"rail": table})
    tolerance = 1e-9 if integrator in ("radau", "dop853") else 1e-12
    if integrator == "generalised_alpha":
        tolerance = 0.2  # its accelerations are means over steps
    assert (run.q[-1, 0], run.v[-1, 0]) == pytest.approx((x, v), abs=tolerance)
    assert run.efforts[3, 0] == 1.0
    assert run.efforts[5, 0] == -2.0
    assert run.report.energy_error < max(10 * tolerance, 1e-9)
    if integrator == "rk4":
        again = run.resume(1.0, time=1.0)
        np.testing.assert_array_equal(again.q, run.q[10:])


def test_a_table_that_holds_may_have_changed_before_the_run_at_any_time():
    arm = al.library.two_link()
    table = {arm.joints[0].name: Table([-0.0123, 0.1], [3.0, -2.0], "hold")}
    run = simulate(arm, duration=0.2, step=0.01, integrator="rk4", efforts=table)
    assert np.array_equal(run.efforts[[0, 9, 10], 0], [3.0, 3.0, -2.0])


@pytest.mark.parametrize("interpolation", ["hold", "linear", "cubic"])
@pytest.mark.parametrize("integrator", ["rk4", "dop853", "variational"])
def test_wrenches(interpolation, integrator):
    """On a free body along x, the same as efforts on a slider."""
    builder = al.ModelBuilder("free", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.sphere(1.0, 0.1), joint=al.Free())
    m = builder.build()
    values = np.zeros((5, 6))
    values[:, 3] = VALUES
    options = {"duration": 2.0, "step": 0.01, "integrator": integrator}
    pushed = simulate(m, m.neutral(), wrenches={"mass": Table(TIMES, values, interpolation)}, **options)
    driven = simulate(slider(), [0.0], efforts={"rail": Table(TIMES, VALUES, interpolation)}, **options)
    np.testing.assert_allclose(
        pushed.q[:, 0], driven.q[:, 0], rtol=0, atol=1e-3 if integrator == "variational" else 1e-9
    )
    if interpolation == "cubic":
        assert pushed.report.energy_error < 1e-3


@pytest.mark.parametrize("integrator", ["rk4", "dop853", "variational"])
def test_long_tables_are_looked_up(integrator, monkeypatch):
    options = {
        "duration": 2.0,
        "step": 0.01,
        "integrator": integrator,
        "efforts": {"rail": Table(TIMES, VALUES, "cubic")},
    }
    compiled = simulate(slider(), [0.0], **options)
    monkeypatch.setattr(inputs, "MOST_COMPILED", 3)
    looked_up = simulate(slider(), [0.0], **options)
    np.testing.assert_allclose(looked_up.q, compiled.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(looked_up.efforts, compiled.efforts, rtol=0, atol=1e-12)


@pytest.mark.parametrize("most", [3, 400])
def test_prescribed_motion(most, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_COMPILED", most)
    m = al.library.two_link()
    name = m.joints[0].name
    times = np.linspace(0, 1, 21)
    table = Table(times, np.sin(3 * times), "cubic")
    run = simulate(
        m, [0.0, 0.4], [3.0, 0.0], duration=1.0, step=0.01, integrator="rk4", prescribed={name: table}
    )
    np.testing.assert_allclose(run.q[:, 0], [table(t)[0] for t in run.time], atol=1e-13)
    np.testing.assert_allclose(run.v[:, 0], 3 * np.cos(3 * run.time), atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Table("ab", [1.0]), "expected numbers"),
        (
            lambda: Table(TIMES, VALUES, "spline"),
            "interpolation is 'spline', expected one of hold, linear, cubic",
        ),
        (lambda: Table(TIMES, VALUES, outside="wrap"), "outside is 'wrap'"),
        (lambda: Table([0.0], [1.0]), "expected at least 2 instants"),
        (lambda: Table(TIMES, VALUES[:-1]), r"values have shape \(4,\)"),
        (lambda: Table([0, np.nan], [1, 2]), "expected finite numbers"),
        (lambda: Table([0, 1, 1], [1, 2, 3]), "times 1 and 1, expected ascending"),
    ],
)
def test_messages(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"efforts": {"rail": Table(TIMES, VALUES)}, "duration": 3.0}, "goes from 0 to 2 s, the run from 0 to 3 s"),
        ({"efforts": {"rail": Table([0.0, 0.55], [1, 2], "hold")}}, "changes at 0.55 s, expected a multiple of the step"),
        ({"efforts": {"rial": Table(TIMES, VALUES)}}, "no joint or degree of freedom 'rial'"),
        ({"efforts": {"rail": Table(TIMES, np.zeros((5, 2)))}}, "the table for 'rail' has width 2, expected 1"),
        ({"wrenches": {"mass": Table(TIMES, VALUES)}}, "has width 1, expected 6"),
        ({"wrenches": {"world": Table(TIMES, np.zeros((5, 6)))}}, "which does not move"),
        ({"prescribed": {"rail": Table(TIMES, VALUES)}}, "speeds must not jump"),
    ],
)  # fmt: skip
def test_messages_of_runs(options, message):
    with pytest.raises(ArgumentError, match=message):
        simulate(slider(), [0.0], **{"duration": 1.0, "step": 0.1, "integrator": "rk4", **options})


def test_tables_are_told_apart_by_their_content():
    same = [Table(TIMES, VALUES), Table(np.array(TIMES), VALUES)]
    assert same[0].fingerprint == same[1].fingerprint
    for other in (
        Table(TIMES, VALUES, "cubic"),
        Table(TIMES, VALUES[::-1]),
        Table(TIMES, VALUES, outside="zero"),
    ):
        assert other.fingerprint != same[0].fingerprint


@pytest.mark.parametrize("what", ["linear", "sampled"])
def test_the_work_where_loads_bend_or_jump_between_other_steps_than_every_second(what):
    """An event, and a table's bends or a law's samples, cut the run into stretches of odd numbers of steps."""
    arm = al.library.two_link()
    first, second = (joint.name for joint in arm.joints)
    t = ca.SX.sym("t")
    motion = ca.Function("motion", [t], [0.3 + 0.2 * ca.sin(3 * t)])
    if what == "linear":
        acting = {
            "efforts": {second: Table(np.arange(0, 0.3, 0.013), np.tile([8.0, -8.0], 12), outside="hold")}
        }
    else:
        acting = {
            "controller": al.simulate.Sampled(lambda t, q, v: {second: 20 * np.cos(40 * t)}, period=0.013)
        }
    event = al.simulate.Event(lambda t, q, v: t - 0.0255, "mark", 1, "note")
    run = simulate(
        arm,
        [0.3, 0.2],
        [0.6, 0.0],
        duration=0.26,
        step=5e-4,
        integrator="rk4",
        prescribed={first: motion},
        events=event,
        **acting,
    )
    change = run.energy - run.energy[0] - run.work
    # Simpson's rule over smooth stretches: h^3 of the power's second derivative (1e5 W/s^2) where one of them has an odd
    # number of steps, 1e-6; across a bend or a jump it loses h^2 or h of the power
    assert np.abs(change).max() < 2e-6

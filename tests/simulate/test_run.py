"""Runs as a whole: batches, bitwise continuation, the choice of an integrator, what a result offers, messages."""

import warnings
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from simulate_helpers import model, state

import alembert as al
from alembert.errors import AlembertWarning, ArgumentError, NumericalError, UnsupportedError
from alembert.library import random_tree
from alembert.simulate import Drive, Event, Sampled, Table, integrators, records, simulate
from alembert.simulate.choice import INTEGRATORS
from alembert.simulate.schemes import SCHEMES

FIXED = [*SCHEMES, "variational", "generalised_alpha"]


# --- batches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", FIXED)
def test_a_motion_has_the_same_bits_alone_and_in_a_batch(integrator):
    m = model("ball")
    states = [state("ball", seed) for seed in range(11)]
    q0, v0 = (np.array(x) for x in zip(*states, strict=True))
    options = {"duration": 0.4, "step": 0.01, "interval": 0.02, "integrator": integrator}
    batch = simulate(m, q0, v0, efforts=np.array([0.1, 0.2, -0.1, 0.3]), **options)
    assert batch.q.shape == (11, 21, m.nq)
    for k in (0, 7, 10):
        alone = simulate(m, q0[k], v0[k], efforts=[0.1, 0.2, -0.1, 0.3], **options)
        np.testing.assert_array_equal(batch.q[k], alone.q)
        np.testing.assert_array_equal(batch.v[k], alone.v)


def test_batches_over_parameters():
    m = random_tree(3, bodies=4, kinds=("revolute", "spherical"), attachments=True, parameters=True)
    name, value = m.parameters[0]
    values = value * np.linspace(0.8, 1.2, 9)
    options = {"duration": 0.1, "step": 0.01}
    for integrator in ("rk4", "variational"):
        batch = simulate(m, m.neutral(), parameters={name: values}, integrator=integrator, **options)
        alone = simulate(m, m.neutral(), parameters={name: values[4]}, integrator=integrator, **options)
        np.testing.assert_array_equal(batch.q[4], alone.q)
        assert np.max(np.abs(batch.q[0] - batch.q[8])) > 0
        assert batch.energy.shape == (9, 11)
        np.testing.assert_allclose(batch.energy[4], alone.energy, rtol=1e-12)
        assert batch.report.energy_error < 0.1


def test_batches_with_controllers_and_more_dimensions():
    m = al.library.two_link()
    q0 = np.random.default_rng(0).uniform(-1, 1, (2, 3, 2))
    control = [lambda t, q, v: -3 * v, Sampled(lambda t, q, v: -q, 0.05)]
    options = {"duration": 0.2, "step": 0.01, "integrator": "rk4", "drives": {"elbow": Drive(limit=1.0)}}
    batch = simulate(m, q0, controller=control, **options)
    assert batch.q.shape == (2, 3, 21, 2)
    alone = simulate(m, q0[1, 2], controller=control, **options)
    np.testing.assert_array_equal(batch.q[1, 2], alone.q)
    np.testing.assert_array_equal(batch.efforts[1, 2], alone.efforts)
    assert batch.accelerations.shape == batch.v.shape


def test_large_trees_are_stepped_in_rolled_code():
    m = al.library.chain(45)
    run = simulate(m, np.full(m.nq, 0.02), duration=0.01, step=1e-3, integrator="rk4")
    assert run.report.energy_error < 1e-6


# --- continuation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", FIXED)
def test_continuation_is_bitwise_equal(integrator):
    m, (q0, v0) = model("ball"), state("ball")
    options = {"step": 0.01, "interval": 0.02, "integrator": integrator, "efforts": [0.1, 0.2, 0.3, 0.4]}
    whole = simulate(m, q0, v0, duration=0.6, **options)
    for at in (0.02, 0.28):  # the first is before a multistep scheme has its past
        rest = simulate(m, q0, v0, duration=0.28, **options).resume(0.6 - at, time=at)
        np.testing.assert_array_equal(rest.q, whole.q[-len(rest.q) :])
        np.testing.assert_array_equal(rest.v, whole.v[-len(rest.v) :])
        np.testing.assert_array_equal(rest.time, whole.time[-len(rest.q) :])


def test_continuation_with_sampled_controllers_and_drives():
    m = al.library.two_link()
    control = Sampled(lambda t, q, v: [5 * np.sin(t) - q[0], -v[1]], period=0.05, delay=0.03)
    for drives in ({}, {"shoulder": Drive(lag=0.05, rate=20.0)}):
        options = {"step": 0.01, "controller": control, "drives": drives, "integrator": "rk4"}
        whole = simulate(m, [0.1, 0.2], duration=1.0, **options)
        rest = simulate(m, [0.1, 0.2], duration=0.5, **options).resume(0.68, time=0.32)
        np.testing.assert_array_equal(rest.q, whole.q[32:])
        np.testing.assert_array_equal(rest.efforts, whole.efforts[32:])


def test_continuation_with_error_control():
    m = al.library.pendulum()
    whole = simulate(m, [1.0], duration=2.0, interval=0.1)
    rest = simulate(m, [1.0], duration=1.0, interval=0.1).resume(1.0)
    np.testing.assert_allclose(rest.time, whole.time[10:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(rest.q, whole.q[10:], rtol=0, atol=1e-7)
    with pytest.raises(ArgumentError, match=r"resume: no record at t = 0.55 s; the nearest is at 0.[56] s"):
        whole.resume(1.0, time=0.55)


# --- the choice of an integrator -------------------------------------------------------------------------------


def test_auto_says_why():
    m = al.library.pendulum()
    run = simulate(m, [1.0], duration=1.0, step=0.01)
    assert (run.integrator, run.reason[:34]) == ("variational", "nothing feeds energy in or takes i")
    run = simulate(m, [1.0], duration=1.0, step=0.01, efforts=[1.0])
    assert (run.integrator, run.reason) == ("rk4", "a step is given and something drives or damps the motion")
    assert simulate(m, [1.0], duration=1.0).integrator == "dop853"
    stiff = al.library.pendulum(damping=1000.0)
    run = simulate(stiff, [1.0], duration=1.0, step=0.01)
    assert run.integrator == "radau"
    assert (
        run.reason == "the fastest eigenvalue at the start, 1e+03/s, is too fast for explicit steps of 0.01 s"
    )


# --- results ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run():
    return simulate(model("craft"), *state("craft"), duration=1.0, step=0.01, interval=0.05)


def test_what_a_run_offers(run):
    m = model("craft")
    np.testing.assert_allclose(
        run.accelerations[3], m.forward_dynamics(run.q[3], run.v[3], np.zeros(m.nv)), rtol=1e-12
    )
    np.testing.assert_allclose(run.energy, m.energy(run.q, run.v))
    assert run.momentum.shape == (21, 6)
    assert repr(run) == "<Run of 'craft': 0 to 1 s, 21 records, variational>"
    text = str(run.report)
    assert "variational: nothing feeds energy in" in text
    assert "steps: 100" in text
    assert "momentum kept to" in text
    assert "unit quaternions to" in text
    assert max(run.report.momentum_error) < 1e-12


def test_work_balance():
    """Friction and efforts: energy and work balance to the order of Simpson's rule."""
    m = model("bench")
    run = simulate(
        m, *state("bench"), duration=0.2, step=2e-4, efforts=np.linspace(-1, 1, m.nv), integrator="rk4"
    )
    assert abs(run.energy[-1] - run.energy[0]) > 0.01
    assert run.report.energy_error < 1e-8
    assert "balance to" in str(run.report)
    wrenches = {"tip": [0.1, 0.2, 0.3, 1.0, -1.0, 0.5]}
    run = simulate(
        model("ball"), *state("ball"), duration=0.5, step=1e-3, wrenches=wrenches, integrator="rk4"
    )
    assert run.report.energy_error < 1e-9


@pytest.mark.parametrize("integrator", ["rk4", "variational", "dop853"])
def test_work_of_held_efforts(integrator):
    """Records far apart from the samples: what is held does its work from sample to sample all the same."""
    m = al.library.two_link()
    control = Sampled(lambda t, q, v: [20 * np.sin(30 * t), -v[1]], period=0.02)
    options = {"duration": 1.0, "step": 0.001, "interval": 0.1, "integrator": integrator}
    run = simulate(m, [-1.0, 0.2], controller=control, **options)
    assert abs(run.report.work) > 0.1
    assert (
        run.report.energy_error < 1e-4
    )  # of order 2 in the step; in records far apart Simpson's rule would see nothing


@pytest.mark.parametrize("interval", [0.01, 1.0])
@pytest.mark.parametrize(
    "more",
    [
        {"controller": lambda t, q, v: [3 * np.sin(3 * t), -2 * v[1]]},
        {"controller": Sampled(lambda t, q, v: [3 * np.sin(3 * t), -2 * v[1]], period=0.05)},
        {"efforts": {"shoulder": Table([0.0, 1.0, 3.0], [0.0, 4.0, 1.0], "linear")}},
        {"efforts": {"shoulder": Table([0.0, 1.0, 3.0], [0.0, 4.0, 1.0], "linear")}, "integrator": "radau"},
        {"wrenches": {"tip": lambda t, q, v: [0, 0, 0, np.sin(t), 0, q[0]]}},
        {"prescribed": {"elbow": lambda t: (np.sin(t), np.cos(t), -np.sin(t))}, "v0": [0.0, 1.0]},
        {
            "controller": lambda t, q, v: [3 * np.sin(3 * t), 0.0],
            "drives": {"shoulder": Drive(lag=0.1)},
            "events": Event(lambda t, q, v: t - 1.234, "kick", action=lambda t, q, v: (q, v + 0.5)),
        },
    ],
    ids=["continuous", "sampled", "table", "radau", "wrench", "prescribed", "lag and jump"],
)
def test_work_does_not_depend_on_the_records(more, interval):
    """With error control it is added up along the steps: the balance is of the order of the tolerance."""
    m = al.library.two_link()
    for joint in m.joints:
        m = m.replace_joint(joint.name, friction=al.Friction(viscous=(0.3,)))
    options = {"integrator": "dop853", "tolerance": 1e-9, "v0": [0.0, 0.0], **more}
    run = simulate(m, [0.5, 0.0], duration=3.0, interval=interval, **options)
    assert abs(run.report.work) > 0.1
    # dense output is of order 7, and radau's of order 3, of which friction sees the square of speeds
    assert run.report.energy_error < (1e-5 if run.integrator == "radau" else 3e-7)
    again = run.resume(1.0, time=run.time[len(run.time) // 3])
    assert again.report.energy_error < (1e-5 if run.integrator == "radau" else 3e-7)
    assert again.work[0] == 0


def test_coarse_records_of_fixed_steps():
    """The work is that of the steps, however far apart the records are."""
    m = al.library.two_link()
    options = {"duration": 3.0, "step": 1e-3, "integrator": "rk4", "efforts": [1.0, -0.5]}
    for interval in (None, 0.25):
        report = simulate(m, [0.5, 0.0], interval=interval, **options).report
        assert report.energy_error < 1e-7  # of order 4: 0.001 s, some 10 rad/s
        assert report.work_error is None
        assert "summed" not in str(report)


def test_limits_that_were_passed_are_told():
    builder = al.ModelBuilder("limited", gravity=(0, 0, 0))
    limits = al.Limits(lower=(-0.5,), upper=(0.5,), velocity=(2.0,), effort=(3.0,))
    ball = al.Inertia.sphere(1.0, 0.5)
    for name in ("a", "b"):
        builder.body(name, ball, joint=al.Revolute(), joint_name=name, limits=limits)
    builder.actuator("motor", "a", gear=2.0, limits=(-1.0, 1.0))
    m = builder.build()
    run = simulate(m, [0.0, 0.4], duration=0.2, step=0.01, efforts=[4.0, 1.0])
    turned = 0.5 * 4.0 / 0.1 * 0.2**2  # the inertia is 0.1 kg m^2
    expected = {"a": turned - 0.5, "b": turned / 4 - 0.1, "v:a": 6.0, "tau:a": 1.0, "actuator:motor": 1.0}
    assert run.report.beyond_limits == pytest.approx(expected, abs=1e-12)
    assert "limits of the model were passed: a by 0.3, b by 0.1, v:a by 6, tau:a by 1, actuator" in str(
        run.report
    )
    kept = simulate(m, [0.0, 0.0], duration=0.2, step=0.01, efforts=[0.0, 1.0])
    assert kept.report.beyond_limits == {}
    assert "limits" not in str(kept.report)


def test_work_of_drives_with_memory():
    m = al.library.two_link()
    options = {"duration": 1.0, "step": 0.001, "interval": 0.05, "integrator": "rk4"}
    drives = {"shoulder": Drive(lag=0.05, rate=100.0)}
    run = simulate(
        m, [-1.0, 0.2], controller=lambda t, q, v: [20 * np.sin(10 * t), 0], drives=drives, **options
    )
    assert run.report.energy_error < 1e-4


def test_csv(run, tmp_path):
    path = run.save(tmp_path / "run.csv")
    lines = path.read_text().splitlines()
    assert lines[0].startswith("time [s],q.base.x [m],q.base.y [m],q.base.z [m],q.base.qw,")
    assert "tau.base.wx [N m]" in lines[0]
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    m = run.model
    np.testing.assert_array_equal(table[:, 0], run.time)
    np.testing.assert_array_equal(table[:, 1 : 1 + m.nq], run.q)
    np.testing.assert_array_equal(table[:, 1 + m.nq : 1 + m.nq + m.nv], run.v)


def test_xarray(run, tmp_path):
    xarray = pytest.importorskip("xarray")
    data = run.to_xarray()
    np.testing.assert_array_equal(data.q.sel(coordinate="base.x"), run.q[:, 0])
    assert data.time.attrs["units"] == "s"
    assert data.attrs["integrator"] == "variational"
    path = run.save(tmp_path / "run.nc")
    with xarray.open_dataset(path) as again:
        np.testing.assert_array_equal(again.v.values, run.v)
    batch = simulate(al.library.pendulum(), [[0.1], [0.2]], duration=0.1, step=0.01)
    assert batch.to_xarray().q.dims == ("motion", "time", "coordinate")
    with pytest.raises(ArgumentError, match="to_csv: the run is a batch of motions"):
        batch.to_csv(tmp_path / "batch.csv")


def test_plot(run, tmp_path):
    pytest.importorskip("matplotlib")
    figure = run.plot("base", path=tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 5000
    assert sum(len(axis.lines) for axis in figure.axes) == 7 + 6  # coordinates and speeds, by their units
    assert [axis.get_ylabel() for axis in figure.axes][:2] == ["positions [m]", "quaternions"]
    with pytest.raises(ArgumentError, match="plot: no joint 'bas'"):
        run.plot("bas")
    with pytest.raises(ArgumentError, match=r"save: run.txt ends with '.txt', expected .nc or .csv"):
        run.save(tmp_path / "run.txt")


# --- messages --------------------------------------------------------------------------------------------------

LAW = ca.Function("law", [ca.SX.sym("t"), ca.SX.sym("q", 1)], [ca.SX(2, 1)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "rk3"}, "simulate: no integrator 'rk3'"),
        ({"duration": -1.0}, "simulate: duration is -1.0, expected a positive time in seconds"),
        ({"duration": "1"}, "simulate: duration is '1', expected a positive time in seconds"),
        ({"step": [0.01]}, "simulate: step is [0.01], expected a positive time in seconds"),
        ({"start": np.nan}, "simulate: start is nan, expected a time in seconds"),
        ({"tolerance": np.nan}, "simulate: tolerance is nan, expected a number of at least 2.3e-14"),
        ({"tolerance": -1e-6}, "simulate: tolerance is -1e-06, expected a number of at least 2.3e-14"),
        ({"tolerance": None}, "simulate: tolerance is None, expected a number of at least 2.3e-14"),
        ({"absolute_tolerance": -1.0}, "simulate: absolute_tolerance is -1.0, expected a positive number"),
        ({"duration": None}, "simulate: duration is None, expected a positive time in seconds"),
        ({"wrenches": [1.0]}, "simulate: wrenches is [1.0], expected a mapping from names to arrays"),
        ({"prescribed": "elbow"}, "simulate: prescribed is 'elbow', expected a mapping from names to arrays"),
        ({"parameters": [1.0]}, "simulate: parameters is [1.0], expected a mapping from names to arrays"),
        ({"locked": 3}, "simulate: locked is 3, expected a list of names"),
        ({"record": 3}, "simulate: record is 3, expected a list of names"),
        ({"stabilisation_rate": None}, "simulate: stabilisation_rate is None, expected a positive rate in 1/s"),
        ({"step": 0.03}, "simulate: the duration 1 s is not a multiple of the step 0.03 s; the nearest are 0.99 and 1.02 s"),
        ({"interval": 0.015}, "simulate: the interval 0.015 s is not a multiple of the step 0.01 s"),
        ({"step": None, "integrator": "rk4"}, "simulate: integrator 'rk4' needs a step; give step=..., in seconds"),
        ({"q0": [0, 0, 0]}, "simulate: q0 has shape (3,), expected (..., 2); the model has 2 coordinates"),
        ({"v0": [0]}, "simulate: v0 has shape (1,), expected (..., 2); the model has 2 degrees of freedom"),
        ({"q0": [0, np.nan]}, "simulate: q0 is not finite at entry 1 (elbow)"),
        ({"events": [3]}, "simulate: events has 3, expected Event(function, ...)"),
        ({"controller": 3}, "simulate: controller is 3, expected a function u(t, q, v), a casadi.Function, a StateSpace,"),
        ({"controller": LAW}, "simulate: controller maps sizes [1, 1] to [2], expected a casadi.Function of t (1)"),
        ({"controller": lambda t, q, v: [1.0]}, "simulate: a controller returned shape (1,), expected (..., 2) efforts"),
        ({"controller": Sampled(print, 0.013)}, "simulate: a sampled controller has period 0.013 s, expected a multiple of"),
        ({"drives": {"elbow": 3}}, "simulate: drives['elbow'] is 3, expected a Drive"),
        ({"prescribed": {"elbo": 0.0}}, "simulate: prescribed: no joint 'elbo'"),
        ({"prescribed": {"elbow": LAW}}, "simulate: prescribed 'elbow' maps sizes [1, 1] to [2], expected a casadi"),
        ({"prescribed": {"elbow": lambda t: 0.0}}, "simulate: the prescribed motion of 'elbow' returned 0.0, expected"),
        ({"parameters": {"m": 1.0}}, "simulate: parameters are given, but the model has none"),
        ({"q0": np.zeros((3, 2)), "v0": np.zeros((4, 2))}, "simulate: the batch dimensions of q0 (3,), v0 (4,) and"),
        ({"wrenches": {"tipp": np.zeros(6)}}, "model 'two_link' has no frame 'tipp'"),
    ],
)  # fmt: skip
def test_arguments_are_checked(options, message):
    given = {"q0": [0.1, 0.2], "v0": None, "duration": 1.0, "step": 0.01} | options
    q0, v0 = given.pop("q0"), given.pop("v0")
    with pytest.raises(ArgumentError) as caught:
        simulate(al.library.two_link(), q0, v0, **given)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Sampled(3, 0.1),
            "Sampled: law is 3, expected a function of t, q and v, or a sampled system",
        ),
        (
            lambda: simulate("arm.toml", duration=1.0),
            "simulate: model is a str, expected a Model; al.load reads one from a file",
        ),
        (lambda: Sampled(print, 0.0), "Sampled: period is 0.0, expected a positive time in seconds"),
        (lambda: Sampled(print, "1"), "Sampled: period is '1', expected a positive time in seconds"),
        (
            lambda: Sampled(print, 0.1, delay=None),
            "Sampled: delay is None, expected zero or a positive number",
        ),
        (lambda: Sampled(print, 0.1, reads=3), "Sampled: reads is 3, expected a list of names"),
        (
            lambda: Sampled(print, 0.1, posts=3),
            "Sampled: posts is 3, expected a mapping from names to arrays",
        ),
        (
            lambda: Sampled(print, 0.1, delay=-1.0),
            "Sampled: delay is -1.0, expected zero or a positive number",
        ),
        (lambda: Drive(limit=0.0), "Drive: limit is 0.0, expected a positive number"),
        (lambda: Drive(lag=-1.0), "Drive: lag is -1.0, expected zero or a time in seconds"),
    ],
)
def test_controllers_are_checked(make, message):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert str(caught.value) == message


def test_quaternions_are_checked():
    with pytest.raises(
        ArgumentError, match=r"simulate: q0: joint 'ball': the quaternion \(w, x, y, z\) has length 2"
    ):
        simulate(model("ball"), [2, 0, 0, 0, 0], duration=1.0)


def test_what_does_not_go_together():
    m = al.library.two_link()
    q = np.zeros((3, 2))
    with pytest.raises(UnsupportedError, match="integrator 'dop853' and a batch of motions"):
        simulate(m, q, duration=1.0)
    with pytest.raises(UnsupportedError, match="events and a batch of motions"):
        simulate(m, q, duration=1.0, step=0.1, events=Event(print))
    with pytest.raises(
        UnsupportedError, match="prescribed motion of joint 'ball' and joint type 'spherical'"
    ):
        simulate(model("ball"), state("ball")[0], duration=1.0, prescribed={"ball": 0.0})


def test_a_motion_that_blows_up_is_named():
    m = al.library.two_link()
    with pytest.raises(
        NumericalError, match=r"simulate: the motion is not finite after t = .* s; .* a smaller step may help"
    ):
        simulate(m, [0.1, 0.2], [1e3, -1e3], duration=20.0, step=0.2, integrator="midpoint")
    with pytest.warns(AlembertWarning, match="simulate: 1 of 2 motions are not finite to the end"):
        run = simulate(
            m, [-np.pi / 2, 0], [[0.0, 0.0], [1e3, -1e3]], duration=20.0, step=0.2, integrator="midpoint"
        )
    assert np.isfinite(run.q[0]).all()


def test_the_report_of_a_batch_tells_of_the_motions_that_end():
    builder = al.ModelBuilder("gears")
    for name in ("driver", "driven"):
        builder.body(
            name,
            al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)),
            joint=al.Revolute(axis=(0, 1, 0)),
            joint_name=name,
        )
    gears = builder.coupling("mesh", "driven", ["driver"], [-2.0]).build()
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    grows = ca.Function("grows", [t, q, v], [100.0 * v**3])
    v0 = np.array([[0.01, -0.02], [1.0, -2.0]])
    options = {"duration": 0.1, "step": 0.01, "integrator": "semi_implicit_euler", "controller": grows}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both = simulate(gears, np.zeros((2, 2)), v0, **options).report
    alone = simulate(gears, np.zeros(2), v0[0], **options).report
    assert (both.unfinished, alone.unfinished) == (1, 0)
    assert "NOT FINITE TO THE END: 1" in str(both)
    assert both.energy_error == alone.energy_error
    assert both.constraint_error == alone.constraint_error


# --- the rest --------------------------------------------------------------------------------------------------


def test_the_table_of_integrators():
    rows = integrators()
    assert {row[0] for row in rows} == set(INTEGRATORS)
    assert all(choose and keeps for _, _, _, keeps, choose in rows)


def test_large_models_get_an_explicit_scheme():
    m = al.library.chain(61)
    run = simulate(m, m.neutral(), duration=0.002, step=0.001)
    assert (run.integrator, run.reason[:42]) == ("rk4", "a step is given; the variational scheme co")


def test_a_run_may_start_at_any_time():
    m = al.library.pendulum()
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    law = ca.Function("law", [t, q, v], [ca.sin(t)])
    for integrator in ("rk4", "variational", "dop853"):
        options = {"step": 0.01, "controller": law, "integrator": integrator}
        whole = simulate(m, [0.1], duration=2.0, **options)
        rest = simulate(m, whole.q[100], whole.v[100], duration=1.0, start=1.0, **options)
        np.testing.assert_allclose(rest.time, whole.time[100:], rtol=0, atol=1e-12)
        limit = (
            1e-4 if integrator == "variational" else 1e-8
        )  # where the mean speed of the last step is not known
        np.testing.assert_allclose(rest.q, whole.q[100:], rtol=0, atol=limit)


def test_a_stopped_run_goes_on():
    m = al.library.pendulum()
    stop = Event(lambda t, q, v: q[0], "bottom")
    run = simulate(m, [-1.0], duration=2.0, step=0.01, integrator="rk4", events=stop)
    rest = run.resume(0.5)
    whole = simulate(m, [-1.0], duration=3.0, step=0.01, integrator="rk4")
    assert rest.time[0] == run.events[0].time
    expected = np.interp(rest.time[-1], whole.time, whole.q[:, 0])
    assert rest.q[-1, 0] == pytest.approx(expected, abs=1e-3)


def test_a_model_that_cannot_move():
    builder = al.ModelBuilder("rock")
    builder.body("rock", al.Inertia.point(1.0, (0, 0, 0)), joint=al.Fixed())
    run = simulate(builder.build(), [], duration=1.0, step=0.1, integrator="rk4")
    assert run.q.shape == (11, 0)


def test_progress_is_shown_after_a_moment(monkeypatch, capsys):
    monkeypatch.setattr(records, "SHOWN_AFTER", 0.0)
    with records.Progress("falling", shown=True) as bar:
        bar._last = -1.0
        bar.at(0.3)
        assert bar._bar.tasks[0].completed == 0.3
        assert bar._bar.tasks[0].description == "falling"
    with records.Progress("falling") as bar:  # no terminal
        bar._last = -1.0
        bar.at(0.5)
        assert bar._bar is None


def test_the_table_of_integrators_in_the_documentation_is_current():
    page = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")
    for name, order, kind, keeps, use in integrators():
        assert f"| `{name}` | {order} | {kind} | {keeps} | {use} |" in page


def test_a_start_by_joint():
    m = al.library.satellite()
    named = simulate(m, {"spin_x": 0.3}, {"attitude.wy": 0.2}, duration=0.1, step=0.01)
    q, v = m.configuration({"spin_x": 0.3}), m.velocity({"attitude.wy": 0.2})
    np.testing.assert_array_equal(named.q, simulate(m, q, v, duration=0.1, step=0.01).q)
    assert np.array_equal(simulate(m, duration=0.1, step=0.01).q[0], m.neutral())
    several = al.ensemble(m, {"v0": np.zeros((2, m.nv))}, q0={"spin_x": 0.3}, duration=0.1, step=0.01)
    np.testing.assert_array_equal(several.q[0, 0], q)

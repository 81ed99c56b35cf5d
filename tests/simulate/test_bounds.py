"""Runs that cannot end are refused before they begin, or soon; long ones can be interrupted."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, NumericalError
from alembert.simulate import fixed_run, records


@pytest.fixture(scope="module")
def model():
    return al.library.pendulum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"duration": 1e300, "step": 0.01},
            r"simulate: 1e\+300 s in steps of 0.01 s are 1e\+302 steps, more than can be counted",
        ),
        (
            {"duration": 1.0, "step": 1e-300, "integrator": "rk4", "interval": 1.0},
            r"simulate: 1 s in steps of 1e-300 s are 1e\+300 steps, more than can be counted",
        ),
        (
            {"duration": 1e300, "step": 1e-300, "integrator": "rk4"},
            "simulate: 1e.300 s in steps of 1e-300 s are inf steps",
        ),
        (
            {"duration": 1e12, "step": 1e-3},
            r"simulate: 1e\+15 records, 0.001 s apart, take .* PiB of memory, this machine has .*iB; give a larger interval",
        ),
        (
            {"duration": 1e3, "interval": 1e-12},
            r"simulate: 1e\+15 records, 1e-12 s apart, take .* PiB of memory",
        ),
    ],
)
def test_too_many(model, options, message):
    with pytest.raises(ArgumentError, match=message):
        al.simulate(model, [1.0], **options)


def test_ensembles(model):
    with pytest.raises(
        ArgumentError,
        match=r"ensemble: .* records, 0.001 s apart, take .*interval=...\), fewer members, or keep=False",
    ):
        al.ensemble(model, {"q0": [[1.0], [2.0]]}, duration=1e12, step=1e-3, interval=1e-3)
    with pytest.raises(ArgumentError, match=r"ensemble: .* more than can be counted"):
        al.ensemble(model, {"q0": [[1.0], [2.0]]}, duration=1e300, step=1e-3)
    with pytest.raises(ArgumentError, match="ensemble: duration is -1, expected a positive time in seconds"):
        al.ensemble(model, {"q0": [[1.0], [2.0]]}, duration=-1, step=1e-3)


def test_pace(model, monkeypatch):
    """Fifty steps, and hardly any of the time has passed; or the motion grows without bound on the way."""
    monkeypatch.setattr(records, "TRIED", 50)
    with pytest.raises(
        NumericalError,
        match=r"dop853 made the last 50 of 50 steps for .* s of 1e\+200 s: at this pace it never ends \('pivot' moves at",
    ):
        al.simulate(model, [1.0], duration=1e200)
    monkeypatch.setattr(records, "PATIENCE", 1e4)
    with pytest.raises(NumericalError, match=r"at 0.\d* s of 2 s: at this pace it never ends .* rad/s"):
        al.simulate(model, [1.0], duration=2.0, integrator="dop853", controller=lambda t, q, v: 300 * v + 1)
    resting = al.simulate(model, [0.0], duration=1e30)  # its steps grow
    assert resting.q[-1, 0] == 0.0


def test_a_pace_at_which_nothing_ends_is_told_early(model):
    with pytest.raises(NumericalError, match=r"dop853 made the last 1000 of 1000 steps .* of 1e\+300 s"):
        al.simulate(model, [1.0], duration=1e300)
    with pytest.raises(NumericalError, match=r"give a shorter duration, or a larger tolerance$"):
        al.simulate(model, [1.0], duration=1e300, integrator="radau")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of SciPy, for 1e160 m
def test_what_falls_beyond_all_numbers_is_told():
    builder = al.ModelBuilder("falling")
    builder.body("box", al.Inertia.box(1.0, (0.1, 0.2, 0.3)), joint=al.Free())
    builder.body(
        "arm", al.Inertia.box(1.0, (0.1, 0.2, 0.3)), joint=al.Spherical(), parent="box", placement=(1, 0, 0)
    )
    with pytest.raises(NumericalError, match=r"not finite|cannot go on"):
        al.simulate(builder.build(), duration=1e300, integrator="dop853")


def test_slow_runs_are_told(model, monkeypatch):
    monkeypatch.setattr(records, "TRIED", 20)
    monkeypatch.setattr(records, "SLOW", 30)
    with pytest.warns(
        al.AlembertWarning, match=r"dop853 made 20 steps for the first .* s of 10 s: .* more follow"
    ):
        al.simulate(model, [1.0], duration=10.0)
    monkeypatch.setattr(records, "LONG", 99)
    with pytest.warns(al.AlembertWarning, match=r"1 s in steps of 0.01 s are 1e\+02 steps, which take hours"):
        al.simulate(model, [1.0], duration=1.0, step=0.01)
    monkeypatch.setattr(records, "LONG", 299)
    for step, told in (
        (0.01, r"3 members of 1e\+02 steps each, 3e\+02 in all"),
        (None, "3 members of at least one"),
    ):
        with pytest.warns(al.AlembertWarning, match=f"ensemble: {told}.* take hours or days"):
            al.simulate.ensemble(model, lambda rng: {}, members=3, duration=1.0, step=step,
                                 integrator="rk4" if step else "dop853", keep=False)  # fmt: skip


def test_periods_that_no_grid_has(model):
    law = al.simulate.Sampled(lambda t, q, v: -v, 1e-12)
    with pytest.raises(
        ArgumentError, match="simulate: instants are 1e-12 s apart, expected a nanosecond or more"
    ):
        al.simulate(model, [1.0], duration=1.0, controller=law)
    with pytest.raises(ArgumentError, match=r"has period 1e-12 s, expected a multiple of the step 0.001 s"):
        al.simulate(model, [1.0], duration=1.0, step=1e-3, controller=law)
    with pytest.raises(
        ArgumentError, match=r"is not a multiple of the step 0.01 s; the nearest are 0.01 and 0.02 s"
    ):
        al.simulate(model, [1.0], duration=1e-3, step=1e-2, integrator="rk4")


def test_periods_with_hardly_a_common_part(model):
    """No steps of picoseconds: error control from instant to instant, as exact as its tolerance."""
    laws = [
        al.simulate.Sampled(lambda t, q, v: -0.3 * v, 0.05),
        al.simulate.Sampled(lambda t, q, v: -0.2 * q, 0.05 * np.sqrt(2)),
    ]
    run = al.simulate(model, [1.0], duration=0.5, controller=laws)
    assert run.integrator == "dop853"
    q, v, held, t, next_ = np.array([1.0]), np.array([0.0]), [0.0, 0.0], 0.0, [0.0, 0.0]
    while t < 0.5:
        for k, law in enumerate(laws):
            if next_[k] <= t + 1e-12:
                held[k], next_[k] = law.law(t, q, v), next_[k] + law.period
        end = min(*next_, 0.5)
        part = al.simulate(model, q, v, duration=end - t, efforts=held[0] + held[1], integrator="dop853")
        q, v, t = part.q[-1], part.v[-1], end
    assert np.allclose(run.q[-1], q, atol=1e-8)  # of tolerances 1e-9


@pytest.mark.parametrize("batch", [(), (3,)])
def test_long_calls_are_cut_with_equal_bits(model, monkeypatch, batch):
    q0 = np.full((*batch, 1), 1.0)
    options = {
        "duration": 1.0,
        "step": 0.01,
        "integrator": "adams_bashforth4",
        "controller": al.simulate.Sampled(lambda t, q, v: -v, 0.3),
    }
    runs = [al.simulate(model, q0, interval=0.5, **options)]
    for most in (7, 60):
        monkeypatch.setattr(fixed_run, "steps_at_a_time", lambda batch, most=most: most)
        runs.append(al.simulate(model, q0, interval=0.5, **options))
        every = al.simulate(model, q0, **options)
        np.testing.assert_array_equal(every.q[..., ::50, :], runs[0].q)
    for run in runs[1:]:
        np.testing.assert_array_equal(run.q, runs[0].q)
        np.testing.assert_array_equal(run.time, runs[0].time)
    assert (
        records.steps_at_a_time(())
        == records.steps_at_a_time((8,))
        > 1000 * records.steps_at_a_time((100, 100))
    )


def test_memory_is_known(monkeypatch):
    assert records.memory() > 2**28
    monkeypatch.delattr(records.os, "sysconf", raising=False)
    assert records.memory() == 2**40

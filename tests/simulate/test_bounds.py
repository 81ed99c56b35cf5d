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
        ArgumentError, match=r"ensemble: .* records, 0.001 s apart, take .*interval=...\), or keep=False"
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

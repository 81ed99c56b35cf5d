"""Ctrl-C amid a run: the exception has the run until then, wherever it came, and that run goes on."""

import contextlib
import os
import signal
import sys

import casadi as ca
import numpy as np
import pytest
from typer.testing import CliRunner

import alembert as al
from alembert.cli import app
from alembert.simulate import Drive, Event, Sampled, adaptive_run, event_search, fixed_run, records

FILES = {module.__file__ for module in (fixed_run, adaptive_run, records, event_search)}


def law(t, q, v):
    return -4.0 * q - v


def sampled():
    return {"controller": Sampled(law, period=0.02, delay=0.004), "drives": {"elbow": Drive(frequency=30.0)}}


def bouncing():
    return {"events": [Event(lambda t, q, v: q[1] - 0.1, "turn", action=lambda t, q, v: (q, 0.9 * v))]}


RUNS = {
    "machine code": lambda: {"step": 1e-3, "interval": 0.01, "integrator": "rk4"},
    "sampled law": lambda: {"step": 2e-3, "integrator": "rk4", **sampled()},
    "records apart": lambda: {"step": 2e-3, "interval": 0.02, "integrator": "rk4", "controller": law},
    "events": lambda: {"step": 2e-3, "interval": 0.02, "integrator": "rk4", **bouncing()},
    "implicit": lambda: {"step": 0.01, "integrator": "variational", "controller": law},
    "batch": lambda: {"step": 1e-3, "interval": 0.01, "integrator": "rk4", **sampled()},
    "error control": lambda: {"interval": 0.01, "integrator": "dop853", **sampled()},
    "error control, events": lambda: {"interval": 0.01, "integrator": "dop853", **bouncing()},
    "stiff": lambda: {"interval": 0.01, "integrator": "radau", "controller": law},
}


def simulated(name):
    start = [[0.4, -0.2], [0.1, 0.3]] if name == "batch" else [0.4, -0.2]
    return al.simulate(al.library.two_link(), start, duration=0.4, progress=False, **RUNS[name]())


def interrupted(call, line):
    """What `call()` raises if Ctrl-C comes at one of the lines of `FILES` that it runs; None if it has fewer."""
    left = line

    def local(frame, event, _):
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return local

    before = sys.gettrace()
    sys.settrace(lambda frame, event, _: local if frame.f_code.co_filename in FILES else None)
    try:
        call()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(before)
    return None


@pytest.mark.parametrize("name", RUNS)
def test_the_run_until_then(name):
    """Its records have the bits of the whole run, and so has its continuation."""
    whole, kept = simulated(name), 0
    for line in np.unique(np.geomspace(10, 20_000, 40).astype(int)).tolist():
        error = interrupted(lambda: simulated(name), line)
        if error is None:
            break
        if not hasattr(error, "run"):
            continue
        run, kept = error.run, kept + 1
        assert f"until t = {run.time[-1]:.9g} s" in error.__notes__[0]
        n = len(run.time)
        assert n > 1
        for what in ("time", "q", "v", "efforts", "work"):
            axis = 0 if what == "time" else (-1 if what == "work" else -2)
            expected = np.take(getattr(whole, what), range(n), axis=axis)
            if what == "work" and run.step is not None:
                # Simpson's rule at the end of a shorter run takes other points: of order h^4
                assert np.allclose(run.work, expected, rtol=1e-3, atol=1e-6)
            else:
                assert np.array_equal(getattr(run, what), expected), (line, what)
        assert [e.time for e in run.events] == [e.time for e in whole.events if e.time <= run.time[-1]]
        rest = run.resume(whole.time[-1] - run.time[-1]) if n < len(whole.time) else None
        if rest is not None:
            assert np.array_equal(rest.q, whole.q[..., n - 1 :, :]), line
    assert kept > 3


def test_pressed_for_real_where_casadi_swallows_it():
    """In a conversion that CasADi tries: the run ends at its next step, not after hours."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    f = ca.Function("f", [x := ca.SX.sym("x", 2)], [-x])
    seen = []

    class Slow:
        def __DM__(self):
            os.kill(os.getpid(), signal.SIGINT)
            return ca.DM([0, 0])

    def asked(t, q, v):
        seen.append(t)
        if 0.2 <= t < 0.2 + 1e-9:
            with contextlib.suppress(NotImplementedError):  # what CasADi makes of it
                f(Slow())
        return -q

    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            al.simulate(
                al.library.two_link(),
                [0.4, -0.2],
                duration=1.0,
                step=0.01,
                controller=Sampled(asked, period=0.01),
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert 0.18 < caught.value.run.time[-1] < 0.22
    assert max(seen) < 0.25


def test_an_ensemble_says_what_is_kept(tmp_path):
    def pressed(t, q, v):
        raise KeyboardInterrupt

    members = {"q0": np.zeros((4, 2))}
    for options, told in (({}, "nothing is kept"), ({"checkpoint": tmp_path / "blocks"}, "call again")):
        with pytest.raises(KeyboardInterrupt) as caught:
            al.ensemble(
                al.library.two_link(),
                members,
                duration=0.1,
                step=0.01,
                controller=pressed,
                backend="batch",
                **options,
            )
        assert told in caught.value.__notes__[0]
        assert not hasattr(caught.value, "run")


def test_the_command_writes_what_there_is(tmp_path, monkeypatch):
    """And its exit code says that it is not the whole."""
    own = sys.modules["alembert.simulate"].simulate

    def stopped(*given, **options):
        interrupted = KeyboardInterrupt()
        interrupted.run = own(*given, **{**options, "duration": 0.5})
        raise interrupted

    monkeypatch.setattr(sys.modules["alembert.simulate"], "simulate", stopped)
    path = tmp_path / "part.csv"
    found = CliRunner().invoke(
        app, ["simulate", "acrobot", "--time", "2", "--step", "0.1", "--save", str(path)]
    )
    assert found.exit_code == 1
    assert "interrupted: this is the motion until 0.5 s of 2 s" in found.output
    assert len(path.read_text().splitlines()) == 7

    def at_once(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["alembert.simulate"], "simulate", at_once)
    assert CliRunner().invoke(app, ["simulate", "acrobot"]).exit_code == 130

"""Ctrl-C, pressed for real while a problem is solved: never lost, also where CasADi swallows exceptions."""

import faulthandler
import os
import signal
import threading
import time

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import interrupts_kept
from alembert.optimal import Problem, nlp, running
from alembert.optimal.solve import Transcribed

ENDS = {"start": {"q": [-np.pi / 2, 0], "v": 0}, "end": {"q": [np.pi / 2, 0], "v": 0}}


@pytest.fixture(autouse=True)
def interrupts_heard():
    """Also where the tests run in the background, for which shells switch Ctrl-C off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def problem():
    return Problem(al.library.acrobot(), 4.0, **ENDS)


def test_pressed_while_a_solution_is_judged(monkeypatch):
    """CasADi takes the exception for a failed conversion; it is raised all the same."""

    def pressed(solution):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        except KeyboardInterrupt:
            return None  # as CasADi does

    monkeypatch.setattr("alembert.optimal.solution.judged", pressed)
    with pytest.raises(KeyboardInterrupt):
        problem().solve(20).accuracy


@pytest.mark.parametrize(
    "options", [{}, {"solver": "ipopt"}, {"solver": "fatrop"}, {"transcription": "splines"}]
)
def test_pressed_at_any_time(options):
    """At shares of the time that a solve takes: it raises KeyboardInterrupt, or returns with the status "interrupted"."""
    before = signal.getsignal(signal.SIGINT)
    problem().solve(20, **options)
    began = time.perf_counter()
    problem().solve(20, **options)
    lasts = time.perf_counter() - began
    for share in np.linspace(0.05, 0.8, 6):
        pressed = []

        def press(delay=share * lasts, pressed=pressed):
            time.sleep(delay)
            pressed.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        own, thread = problem(), threading.Thread(target=press)
        try:
            thread.start()
            try:
                status, ended = own.solve(20, **options).status, time.perf_counter()
            finally:
                thread.join()
            time.sleep(0.05)
        except KeyboardInterrupt:
            continue
        assert status == "interrupted" or ended < pressed[0]
    assert signal.getsignal(signal.SIGINT) is before


def test_fatrop_ends_wherever_it_is_stopped(monkeypatch):
    """At one evaluation or another, of matrices as well: it once searched for ever for a regular one."""
    evaluated, calls, last = nlp.Called.eval_buffer, 0, 0

    def counted(self, *given):
        nonlocal calls
        calls += 1
        if calls == last:
            self._log.stop = True
        return evaluated(self, *given)

    monkeypatch.setattr(nlp.Called, "eval_buffer", counted)
    own = problem()
    faulthandler.dump_traceback_later(120, exit=True)  # machine code that does not end hears no signal
    try:
        for place in (38, 98, *range(146, 151)):
            calls, last = 0, place
            assert own.solve(20, solver="fatrop").status == "interrupted"
    finally:
        faulthandler.cancel_dump_traceback_later()


def test_what_casadi_swallows_is_raised():
    """An argument whose conversion is interrupted counts for CasADi as one of a wrong type."""

    class Slow:
        def __float__(self):
            os.kill(os.getpid(), signal.SIGINT)
            return 1.0

        def __SX__(self):
            os.kill(os.getpid(), signal.SIGINT)
            return ca.SX(1)

    with pytest.raises(KeyboardInterrupt), interrupts_kept():
        ca.sin(Slow())
    with pytest.raises(KeyboardInterrupt), interrupts_kept():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
        except KeyboardInterrupt:
            pass  # as CasADi does
    with pytest.raises(KeyboardInterrupt), interrupts_kept():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
        except KeyboardInterrupt:
            raise NotImplementedError("wrong type of argument") from None
    with pytest.raises(NotImplementedError), interrupts_kept():
        raise NotImplementedError("an error of its own")


def test_handlers_of_the_user_stay():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with interrupts_kept():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_pressed_in_a_function_of_a_problem():
    """While the functions of a problem are tried, before anything is solved."""

    def swallowed(s):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
        except KeyboardInterrupt:
            pass  # as CasADi does
        return s.v[0] ** 2

    with pytest.raises(KeyboardInterrupt):
        Problem(al.library.acrobot(), 4.0, cost=running(swallowed), **ENDS)


def test_swallowed_before_the_iterations(monkeypatch):
    """Then the solver does not begin."""
    begun = []

    def compiled(self, *given, **options):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
        except KeyboardInterrupt:
            pass  # as CasADi does
        return own(self, *given, **options)

    own = Transcribed.__init__
    monkeypatch.setattr(Transcribed, "__init__", compiled)
    with pytest.raises(KeyboardInterrupt):
        problem().solve(20, progress=begun.append)
    assert not begun


@pytest.mark.parametrize("options", [{}, {"solver": "ipopt"}, {"transcription": "splines"}])
def test_pressed_while_it_iterates(options):
    """The best iterate comes back; within a run, which has no use for half a plan, the run ends too."""

    def press(iteration):
        if iteration.number == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    assert problem().solve(20, progress=press, **options).status == "interrupted"

    def planning(t, q, v):
        if t > 0.1:
            problem().solve(20, progress=press, **options)
        return [0.0, 0.0]

    with pytest.raises(KeyboardInterrupt) as caught:
        law = al.simulate.Sampled(planning, period=0.05)
        al.simulate(al.library.acrobot(), duration=1.0, step=0.01, controller=law)
    assert 0.0 < caught.value.run.time[-1] < 0.3

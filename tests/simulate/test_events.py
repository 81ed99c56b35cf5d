"""Events: where they are, what they do, and what they refuse."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, NumericalError
from alembert.simulate import Event, simulate
from alembert.simulate.schemes import SCHEMES

G = 9.81


@pytest.fixture(scope="module")
def ball():
    builder = al.ModelBuilder("ball")
    builder.body("ball", al.Inertia.point(1.0, (0, 0, 0)), joint=al.Prismatic((0, 0, 1)))
    return builder.build()


def bounce(t, q, v):
    return np.maximum(q, 0.0), -0.5 * v


def floor(action, **options):
    return Event(lambda t, q, v: q[0], "floor", direction=-1, action=action, **options)


@pytest.mark.parametrize("integrator", [*SCHEMES, "variational", "dop853", "radau"])
def test_fall_to_the_floor(ball, integrator):
    """Located to the tolerance, but for the scheme's own error (first order for semi-implicit Euler)."""
    run = simulate(ball, [1.0], duration=1.0, step=0.01, integrator=integrator, events=floor("stop"))
    limit = 0.02 if integrator == "semi_implicit_euler" else 1e-9
    assert run.events[0].time == pytest.approx(np.sqrt(2 / G), abs=limit)
    assert run.time[-1] == run.events[0].time
    assert run.q[-1, 0] == pytest.approx(0.0, abs=1e-9)
    assert len(run.time) == (46 if integrator == "semi_implicit_euler" else 47)
    assert np.all(np.diff(run.time) > 0)


@pytest.mark.parametrize("integrator", ["rk4", "adams_bashforth4", "variational", "dop853"])
def test_bounces(ball, integrator):
    """Restitution 0.5: closed form of the instants; the grid of records stays as it is."""
    run = simulate(ball, [1.0], duration=1.3, step=0.01, integrator=integrator, events=floor(bounce))
    first = np.sqrt(2 / G)
    expected = first * np.array([1.0, 2.0, 2.5, 2.75, 2.875])
    times = [event.time for event in run.events[:5]]
    assert times == pytest.approx(expected[: len(times)], abs=1e-8)
    assert len(times) >= 4
    np.testing.assert_allclose(run.time, 0.01 * np.arange(131), rtol=0, atol=1e-12)
    after = run.time[60] - first
    speed = 0.5 * G * first
    assert run.q[60, 0] == pytest.approx(speed * after - G / 2 * after**2, abs=1e-8)
    assert run.events[0].v_after == pytest.approx(-0.5 * run.events[0].v)


def test_notes_do_not_disturb_the_motion():
    m = al.library.two_link()
    level = Event(lambda t, q, v: np.sin(q[0] + q[1]), "level", action="note")
    for integrator in ("rk4", "variational", "adams_bashforth2"):
        options = {"duration": 3.0, "step": 0.01, "integrator": integrator}
        with_events, without = (simulate(m, [0.1, 0.2], events=e, **options) for e in (level, ()))
        np.testing.assert_array_equal(with_events.q, without.q)
        assert len(with_events.events) > 2
        for event in with_events.events:
            assert np.sin(event.q.sum()) == pytest.approx(0.0, abs=1e-8)


def test_direction():
    m = al.library.pendulum()
    counts = {}
    for direction in (-1, 0, 1):
        bottom = Event(lambda t, q, v: q[0], "bottom", direction=direction, action="note")
        run = simulate(m, [0.3], duration=10.0, step=0.01, integrator="rk4", events=[bottom])
        counts[direction] = len(run.events)
        signs = {np.sign(event.v[0]) for event in run.events}
        assert signs == ({-1.0, 1.0} if direction == 0 else {float(direction)})
    assert counts[0] == counts[1] + counts[-1]


@pytest.mark.parametrize("integrator", ["rk4", "variational", "dop853"])
def test_events_that_accumulate_are_refused(ball, integrator):
    """The ball comes to rest after 3 sqrt(2/g) s, having bounced for ever."""
    with pytest.raises(
        NumericalError, match=r"event 'floor' happens at ever shorter intervals .* at t = 1\.354\d* s"
    ):
        simulate(ball, [1.0], duration=2.0, step=0.01, integrator=integrator, events=floor(bounce))


def test_too_many_events_in_a_step_are_refused(ball):
    """Elastic bounces from a millionth of a metre: every 0.9 ms, in steps of half a second."""
    with pytest.raises(
        NumericalError, match="more than 100 events within one step, the last 'floor' at t = "
    ):
        simulate(
            ball, [1e-6], duration=0.5, step=0.5, integrator="rk4", events=floor(lambda t, q, v: (abs(q), -v))
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Event(3), "Event: function is 3, expected a function of t, q and v"),
        (lambda: Event(lambda t, q, v: 0.0, direction=2), "Event: direction is 2, expected -1, 0 or 1"),
        (
            lambda: Event(lambda t, q, v: 0.0, action="go"),
            "Event: action is 'go', expected 'stop', 'note', a function, Lock(...), Release(...), Attach(...) or Dock(...)",
        ),
        (lambda: Event(lambda t, q, v: 0.0, tolerance=0), "Event: tolerance is 0, expected a positive time"),
    ],
)
def test_messages(make, message):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert str(caught.value) == message


def test_an_action_must_return_a_state(ball):
    with pytest.raises(
        ArgumentError, match=r"the action of event 'floor' returned 3, expected None or a state \(q, v\)"
    ):
        simulate(ball, [1.0], duration=1.0, step=0.01, events=floor(lambda t, q, v: 3))


def test_an_event_must_not_be_nan(ball):
    with pytest.raises(NumericalError, match="event 'odd' gave NaN at t = 0 s"):
        simulate(ball, [1.0], duration=1.0, step=0.01, events=Event(lambda t, q, v: np.nan, "odd"))


def test_what_comes_and_goes_in_one_long_step_is_seen():
    """Free motion takes steps of any length; a zone of 2 s is met all the same, where records are 0.5 s apart."""
    builder = al.ModelBuilder("sled", gravity=(0, 0, 0))
    builder.body("sled", al.Inertia.point(1.0, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)))
    zone = Event(lambda t, q, v: abs(q[0] - 730.0) - 1.0, "zone", action="note")
    run = simulate(
        builder.build(), [0.0], [1.0], duration=1000.0, interval=0.5, integrator="dop853", events=zone
    )
    assert [round(e.time, 6) for e in run.events] == [729.0, 731.0]

"""Events that coincide, or nearly: none is lost, ties come in declared order, contacts have one impact together."""

import itertools

import numpy as np
import pytest

import alembert as al
from alembert.simulate import Event, JointStops, Lock, PlaneImpact, Release, simulate
from alembert.simulate.impacts import impact
from alembert.simulate.inputs import Inputs
from alembert.simulate.simulation import Simulation

G = 9.81
INTEGRATORS = ["rk4", "adams_bashforth2", "variational", "dop853", "radau", "bdf"]

SWITCHING = [name for name in INTEGRATORS if name != "variational"]


def masses(count, lower=0.0, upper=np.inf, gravity=True):
    """Independent masses on vertical slides."""
    builder = al.ModelBuilder("masses", gravity=(0, 0, -G if gravity else 0))
    for k in range(count):
        joint = al.Prismatic((0, 0, 1))
        limits = al.Limits(lower=(lower,), upper=(upper,))
        builder.body(
            f"body{k}",
            al.Inertia.point(1.0 + 0.3 * k, (0, 0, 0)),
            joint=joint,
            joint_name=f"m{k}",
            limits=limits,
        )
    return builder.build()


def options(integrator):
    return {"integrator": integrator, "step": 0.01, "duration": 1.0}


@pytest.mark.parametrize("integrator", SWITCHING)
@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-7, 1e-6, 1e-4])
def test_two_masses_reach_their_stops_together(integrator, apart):
    """They fall from heights whose times differ by `apart`; each comes to rest at zero."""
    m = masses(2)
    heights = G / 2 * np.array([0.4, 0.4 + apart]) ** 2
    run = simulate(m, heights, events=JointStops(0.0), **options(integrator))
    assert sorted(e.name for e in run.events) == ["m0 at its lower limit", "m1 at its lower limit"]
    np.testing.assert_allclose(run.q[-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-9)


def ballistic(height, speed, end, restitution, kicks, rest_speed):
    """The height of one mass over the floor, by brute force: from instant to instant in closed form."""
    t, z, w, resting = 0.0, height, speed, False
    for instant, kick in [*sorted(kicks), (end, 0.0)]:
        while not resting:
            fall = (w + np.sqrt(w * w + 2 * G * z)) / G
            if t + fall > instant:
                break
            t, z, w = t + fall, 0.0, restitution * np.sqrt(w * w + 2 * G * z)
            resting = w < rest_speed
            w = 0.0 if resting else w
        if not resting:
            z, w = z + w * (instant - t) - G / 2 * (instant - t) ** 2, w - G * (instant - t)
        t, w = instant, w + kick
        resting = resting and w <= 0
    return z


@pytest.mark.parametrize("integrator", SWITCHING)
def test_random_coincident_impacts_and_kicks(integrator):
    """Of all bounces and kicks some coincide exactly, others up to a microsecond apart; against closed forms.

    The tolerance is that of the instants (1e-10 s) times the speeds (some m/s), amplified by later bounces; that of bdf is
    its error over a second.
    """
    rng = np.random.default_rng(5)
    for _ in range(4 if integrator in ("radau", "bdf", "adams_bashforth2") else 10):
        count = int(rng.integers(2, 5))
        m = masses(count)
        common = 0.2 + 0.2 * rng.random()
        offsets = rng.choice([0.0, 1e-10, 1e-8, 1e-6, 0.07], count)
        heights = G / 2 * (common + offsets) ** 2
        restitution = float(rng.choice([0.0, 0.5, 0.8]))
        kicks = {k: [] for k in range(count)}
        for _ in range(int(rng.integers(1, 5))):
            t = float(rng.choice([common / 2, common / 2 + 1e-6, common + 0.013, common + 0.013 + 1e-9]))
            kicks[int(rng.integers(count))].append((t, float(rng.uniform(0.1, 1.0))))

        def kick(k, t, speed):
            def act(_, q, v):
                v[k] += speed
                return q, v

            return Event(lambda now, q, v: now - t, f"kick of {k}", 1, act)

        events = [JointStops(restitution)]
        events += [kick(k, *x) for k, found in kicks.items() for x in found]
        run = simulate(m, heights, events=events, **options(integrator))
        expected = [ballistic(heights[k], 0.0, 1.0, restitution, kicks[k], 1e-3) for k in range(count)]
        np.testing.assert_allclose(run.q[-1], expected, atol=1e-5 if integrator == "bdf" else 1e-7)
        assert sum(e.name.startswith("kick") for e in run.events) == sum(map(len, kicks.values()))


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("later", [0.0, 1e-10, 1e-6, 1e-5])
def test_release_and_a_kick_a_moment_later(integrator, later):
    m = masses(1, lower=-np.inf)

    def kick(t, q, v):
        return q, v + 3.0

    events = [
        Event(lambda t, q, v: t - 0.5, "go", 1, Release("m0")),
        Event(lambda t, q, v: t - 0.5 - later, "kick", 1, kick),
    ]
    if integrator in ("radau", "bdf", "variational"):  # these do not switch constraints
        events[0] = Event(lambda t, q, v: t - 0.5, "go", 1, lambda t, q, v: (q, np.zeros(1)))
        run = simulate(m, [1.0], events=events, **options(integrator))
        start = 1.0 - G / 8
    else:
        run = simulate(m, [1.0], events=events, locked="m0", **options(integrator))
        start = 1.0
    assert [e.name for e in run.events] == ["go", "kick"]
    assert run.q[-1, 0] == pytest.approx(
        start + 3.0 * (0.5 - later) - G / 8, abs=1e-5 if integrator == "bdf" else 1e-8
    )


@pytest.mark.parametrize("integrator", ["rk4", "dop853", "variational"])
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_a_box_lands_flat_on_two_planes(integrator, restitution):
    """Without turning, as a point of its mass would."""
    builder = al.ModelBuilder("box")
    builder.body("box", al.Inertia.box(2.0, (1.0, 1.0, 0.2)), joint=al.Planar())
    m = builder.build()
    for name, x in (("left", -0.5), ("right", 0.5)):
        m = m.replace(frames=(*m.frames, al.Frame(name, "box", al.Placement((x, 0, 0)))))
    m = m.replace(gravity=(0, -G, 0))
    planes = [PlaneImpact(name, (0, 1, 0), restitution=restitution) for name in ("left", "right")]
    run = simulate(m, [0.0, 0.5, 0.0][: m.nq], events=planes, **options(integrator))
    first = np.sqrt(2 * 0.5 / G)
    assert [e.name for e in run.events[:2]] == ["left on the plane", "right on the plane"]
    assert run.events[0].time == run.events[1].time == pytest.approx(first, abs=1e-8)
    if not restitution:
        assert run.time[-1] == pytest.approx(first, abs=1e-8)
        return
    assert run.report.energy_error < 1e-3
    impulses = [e.quantities["impulse"] for e in run.events[:2]]
    np.testing.assert_allclose(impulses, 1.6 * G * first, rtol=1e-6)
    w, t = 0.6 * G * first, first + 0.2
    k = int(np.argmin(np.abs(run.time - t)))
    dt = run.time[k] - first
    height = [run.model.frame_pose(run.q[k], name).translation[1] for name in ("left", "right")]
    np.testing.assert_allclose(height, w * dt - G / 2 * dt**2, atol=1e-6)


def test_ties_come_in_declared_order():
    m = masses(1, lower=-np.inf)
    seen = []

    def say(name):
        return Event(lambda t, q, v: t - 0.3, name, 1, lambda t, q, v: seen.append(name))

    for integrator in ("rk4", "dop853"):
        seen.clear()
        simulate(m, [1.0], events=[say("c"), say("a"), say("b")], **options(integrator))
        assert seen == ["c", "a", "b"]


def test_what_an_action_carries_through_zero_happens_too():
    """The kick turns the speed around: the event of the speed happens at the same instant, after it."""
    m = masses(1, lower=-np.inf)
    events = [
        Event(lambda t, q, v: v[0], "turns", 1, "note"),
        Event(lambda t, q, v: t - 0.305, "kick", 1, lambda t, q, v: (q, v + 10.0)),
    ]
    for integrator in ("rk4", "dop853"):
        run = simulate(m, [1.0], [-1.0], events=events, **options(integrator))
        assert [e.name for e in run.events] == ["kick", "turns"]
        assert run.events[0].time == run.events[1].time == pytest.approx(0.305, abs=1e-9)


def test_a_bounce_that_brings_about_a_push_into_the_stop_again():
    """Each happens once at the instant: the ball leaves at the speed of the second impact."""
    m = masses(1, lower=0.0, gravity=False)
    events = [JointStops(1.0), Event(lambda t, q, v: v[0] - 1.0, "push", 1, lambda t, q, v: (q, v - 5.0))]
    for integrator in ("rk4", "dop853"):
        run = simulate(m, [1.0], [-3.0], events=events, **options(integrator))
        assert [e.name for e in run.events] == ["m0 at its lower limit", "push", "m0 at its lower limit"]
        assert run.v[-1, 0] == pytest.approx(2.0)


def chain(rng):
    """Three slides on top of each other, in random directions."""
    builder = al.ModelBuilder("chain", gravity=(0, 0, 0))
    parent = "world"
    for k in range(3):
        limits = al.Limits(lower=(0.0,), upper=(np.inf,))
        inertia = al.Inertia.point(float(rng.uniform(0.5, 2.0)), (0, 0, 0))
        x = rng.normal(size=3)
        axis = tuple(x / np.linalg.norm(x))
        builder.body(
            f"b{k}", inertia, parent=parent, joint=al.Prismatic(axis), joint_name=f"b{k}", limits=limits
        )
        parent = f"b{k}"
    return builder.build()


def test_impacts_of_several_contacts_against_all_sets():
    """Of all sets of contacts that push, the one that fulfils the conditions gives the same speeds."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        m = chain(rng)
        e = float(rng.uniform(0.1, 1.0))
        stops = JointStops(e, rest_speed=1e-12)
        system = Simulation(m, Inputs(events=stops), ())
        contacts = [x.action for x in stops.events(system) if "limit" in x.name and "leaves" not in x.name]
        q, v = np.zeros(3), rng.normal(size=3)
        M = m.mass_matrix(q)
        A, w = np.linalg.inv(M), v + e * np.minimum(v, 0)
        found = []
        for size in range(4):
            for some in map(list, itertools.combinations(range(3), size)):
                p = np.zeros(3)
                p[some] = np.linalg.solve(A[np.ix_(some, some)], -w[some])
                if (p >= -1e-12).all() and (A @ p + w >= -1e-12).all():
                    found.append(v + A @ p)
        got = impact(system, 0.0, q, v, contacts)
        np.testing.assert_allclose(got.v, found[0], atol=1e-9)
        assert all(np.allclose(x, found[0], atol=1e-9) for x in found)
        energy = 0.5 * got.v @ M @ got.v - 0.5 * v @ M @ v
        assert np.sum(got.energies(v)) == pytest.approx(energy, abs=1e-10)


def test_a_locked_joint_and_a_stop_at_one_instant():
    """The lock and the impact of another mass both hold afterwards."""
    m = masses(2)
    heights = G / 2 * np.array([0.3, 0.3]) ** 2 + np.array([0.0, 0.4])
    events = [
        Event(lambda t, q, v: q[1] - 0.4, "hold", -1, Lock("m1")),
        JointStops(0.0),
    ]
    for integrator in ("rk4", "dop853"):
        run = simulate(m, heights, events=events, **options(integrator))
        assert [e.name for e in run.events] == ["hold", "m0 at its lower limit"]
        np.testing.assert_allclose(run.q[-1], [0.0, 0.4], atol=1e-8)

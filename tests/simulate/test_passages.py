"""Singular places of loops: motions that go through them keep their energy and their branch, at every tolerance."""

import functools
import sys

import numpy as np
import pytest

import alembert as al
from alembert.errors import NumericalError
from alembert.model import Placement
from alembert.simulate import chart_equation, load_run, result, simulate
from alembert.simulate.simulation import Simulation
from alembert.simulate.stepper import Stepper
from alembert.verify.mechanisms import four_bars, parallelogram


@functools.cache
def sarrus():
    """Two legs in planes across each other let a plate move up and down; flat, and stretched, it could do more."""
    builder = al.ModelBuilder("sarrus", gravity=(0, 0, -9.81))
    rod, other = (
        al.Inertia.box(1.0, size).at(Placement(at))
        for size, at in (((1, 0.1, 0.1), (0.5, 0, 0)), ((0.1, 1, 0.1), (0, 0.5, 0)))
    )
    plate = al.Inertia.box(2.0, (0.5, 0.5, 0.1)).at(Placement((-0.3, 0, 0)))
    x, y = al.Revolute((1, 0, 0)), al.Revolute((0, 1, 0))
    builder.body("a1", rod, joint=y, joint_name="a1", placement=(0.3, 0, 0))
    builder.body("a2", rod, joint=y, joint_name="a2", parent="a1", placement=(1, 0, 0))
    builder.body("plate", plate, joint=y, joint_name="a3", parent="a2", placement=(1, 0, 0))
    builder.body("b1", other, joint=x, joint_name="b1", placement=(0, 0.3, 0))
    builder.body("b2", other, joint=x, joint_name="b2", parent="b1", placement=(0, 1, 0))
    builder.frame("end", "b2", (0, 1, 0)).frame("side", "plate", (-0.3, 0.3, 0))
    builder.loop("close", x, "side", "end")
    return builder.build()


def folded(model, angle):
    """The legs at an angle above the ground."""
    knee = np.pi - 2 * angle
    return model.configuration({"a1": -angle, "a2": -knee, "a3": np.pi - angle, "b1": angle, "b2": knee})


@pytest.mark.filterwarnings("ignore:constrained_dynamics. the reactions are not unique")
@pytest.mark.parametrize(("tolerance", "kept"), [(1e-9, 1e-5), (1e-12, 1e-7)])
def test_sarrus_linkage_goes_through_flat(tolerance, kept):
    """Flat after 0.56 s, stretched below after 0.84 s, flat again, all at 80 J; both legs stay alike.

    The energy is kept to some hundred times the tolerance of speeds of 10 rad/s, and to the rounding that 1/c^2 leaves.
    """
    model = sarrus()
    run = simulate(
        model,
        folded(model, 1.0),
        duration=1.3,
        tolerance=tolerance,
        absolute_tolerance=tolerance / 100,
        interval=0.05,
    )
    assert np.abs(run.energy - run.energy[0]).max() < kept
    np.testing.assert_allclose(run.passages, [0.56, 0.84, 1.115], atol=0.01)
    angles = run.q[:, list(model.coordinate_names).index("a1")]
    assert angles[-1] > 1.0  # below the ground, on the way back
    np.testing.assert_allclose(run.q[:, 0], -run.q[:, 3], atol=1e-6)
    assert "went through 3 singular places" in str(run.report)
    assert run.report.is_balanced


@pytest.mark.parametrize("windows", [2, 40])
def test_four_bars_in_line(windows):
    """IFToMM A02, past the first two places; the posts turn like one pendulum with I t'' = g s sin t."""
    model = four_bars(windows)
    energy = (windows + 1) * (1 / 6 + 9.81 / 2) + windows * (1 / 2 + 9.81)
    q, v = parallelogram(model, 0.0, -1.0)
    run = simulate(model, q, v, duration=1.4, tolerance=1e-10, absolute_tolerance=1e-12, interval=0.1)
    assert len(run.passages) == 2
    assert np.abs(run.energy - energy).max() < 3e-9 * energy
    # all posts are parallel, on the branch of the start
    posts = [k for k, name in enumerate(model.coordinate_names) if name.startswith("foot")]
    np.testing.assert_allclose(run.q[:, posts], run.q[:, posts[:1]] * np.ones(windows + 1), atol=1e-8)


def test_resumed_before_a_passage_with_the_same_bits(tmp_path):
    model = four_bars(2)
    q, v = parallelogram(model, 0.0, -1.0)
    whole = simulate(model, q, v, duration=1.0, tolerance=1e-8, interval=0.1)
    part = simulate(model, q, v, duration=0.6, tolerance=1e-8, interval=0.1)
    np.testing.assert_array_equal(part.resume(0.4).q[-1], whole.q[-1])
    pytest.importorskip("xarray")
    part.save(tmp_path / "run.nc")
    np.testing.assert_array_equal(load_run(tmp_path / "run.nc").resume(0.4).q[-1], whole.q[-1])


def test_collocation_has_its_order_and_refuses_what_it_cannot_do():
    """y' = y: the error falls like the sixteenth power; a slope that jumps everywhere does not converge."""
    y, scale = np.array([1.0]), lambda y: 1e-12 + 1e-12 * np.abs(y)
    found = chart_equation.across(lambda t, y: y, 0.0, y, 1.0, None, scale)
    np.testing.assert_allclose(found.end, np.e, rtol=1e-13)
    np.testing.assert_allclose(found(np.array([0.0, 0.5, 1.0]))[0], np.exp([0.0, 0.5, 1.0]), rtol=1e-9)
    rng = np.random.default_rng(1)
    assert chart_equation.across(lambda t, y: rng.normal(size=1), 0.0, y, 1.0, None, scale) is None
    assert chart_equation.across(lambda t, y: y * np.nan, 0.0, y, 1.0, None, scale) is None


def test_a_place_that_cannot_be_passed_is_told(monkeypatch):
    model = four_bars(2)
    q, v = parallelogram(model, 0.0, -1.0)
    monkeypatch.setattr(chart_equation, "across", lambda *_: None)
    with pytest.raises(NumericalError, match=r"lose rank at about t = 0.7.*cannot be followed through"):
        simulate(model, q, v, duration=1.0, tolerance=1e-8)


def test_a_lost_balance_of_loops_is_an_error(monkeypatch):
    """Without passages the energy goes; a run that has lost more than the limit is refused."""
    model = four_bars(2)
    q, v = parallelogram(model, 0.0, -1.0)
    monkeypatch.setattr(chart_equation.Approach, "ahead", np.inf)
    monkeypatch.setattr(chart_equation.Approach, "near", False)
    monkeypatch.setattr(result, "KEPT", 1e-12)
    monkeypatch.setattr(result, "KEPT_BY_STEPS", 1e-12)
    monkeypatch.setattr(sys.modules["alembert.simulate.run"], "LOST", 1e-12)
    with pytest.raises(NumericalError, match="the energy is not kept: by t = "):
        simulate(model, q, v, duration=1.0, tolerance=1e-6)


@pytest.mark.parametrize("integrator", ["variational", "rk4"])
def test_fixed_steps_go_through(integrator):
    """A smaller step is a better one: order 2 has an error of (w h)^2 / 24 with rates w of some 6/s, order 4 less."""
    model = four_bars(2)
    q, v = parallelogram(model, 0.0, -1.0)
    errors = []
    for step in (0.01, 0.002):
        run = simulate(model, q, v, duration=1.4, step=step, integrator=integrator)
        errors.append(np.abs(run.energy - 35.835).max())
    assert errors[0] < 0.02
    assert errors[1] < errors[0] / 15


@pytest.mark.parametrize("integrator", ["variational", "rk4"])
def test_a_step_over_the_place_by_collocation(integrator):
    """What a step that fails falls back to: from just before all bars are in line to just behind, like a short run."""
    model = four_bars(2)
    t, h = 0.714, 0.004
    before = simulate(model, *parallelogram(model, 0.0, -1.0), duration=t + h, tolerance=1e-11, interval=t)
    inputs = before._system.inputs
    stepper = Stepper(Simulation(model, inputs, ()), integrator, h, t, held=False)
    state = stepper.initial(before.q[1], before.v[1])
    following = stepper._through(state, np.zeros(model.nv))
    np.testing.assert_allclose(stepper.q(following), before.q[2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(stepper.v(following), before.v[2], rtol=0, atol=1e-7)

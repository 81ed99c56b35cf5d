"""Structure and control at once: slopes against differences, agreement of the kinds of feedback, mechanisms, fronts."""

import dataclasses

import numpy as np
import pytest

import alembert as al
from alembert import library
from alembert.control import DesignPoint, DesignSlope, StateSpace, codesign, lightest, pareto
from alembert.control.codesign import _Codesign, _Lightest
from alembert.errors import ArgumentError, NumericalError
from alembert.joints import Spring
from alembert.linear import design_point

RANGE = {"k": (0.05, 10.0)}


def two_masses(k, c=0.02, *, outputs=((0, 1, 0, 0),), sensor=None):
    A = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [-k, k, -c, c], [k, -k, c, -c]])
    plant = StateSpace(A, [[0], [0], [1], [0]], np.array(outputs, dtype=float))
    return DesignPoint(plant, np.array([[0.0], [0], [0], [1]]), [0, 1, 0, 0], 0.1, k + 20 * c, sensor)


@pytest.mark.parametrize("feedback", ["state", "lqg", "output"])
def test_slopes_are_those_of_the_cost(feedback):
    def make(k, c):
        return two_masses(k, c, outputs=np.eye(4), sensor=[0.01, 0.02, 0.03, 0.01])

    problem = _Codesign(make, {"k": (0.5, 2.0), "c": (0.01, 0.5)}, 0.7, feedback, [[3.0, 0.1, 2.5, 3.0]])
    x = problem.start({"k": 1.2, "c": 0.1})
    slopes = problem.cost(x)[1]
    for k in range(len(x)):
        h = 1e-5
        d = np.zeros_like(x)
        d[k] = h
        expected = (problem.cost(x + d)[0] - problem.cost(x - d)[0]) / (2 * h)
        # central differences: h^2 of curvature, and rounding over h
        assert slopes[k] == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("feedback", ["state", "lqg", "output"])
def test_exact_slopes_agree_with_differences(feedback):
    dA = np.zeros((2, 4, 4))
    dA[0, 2:, :2] = dA[1, 2:, 2:] = [[-1, 1], [1, -1]]

    def make(k, c):
        point = two_masses(k, c, outputs=np.eye(4), sensor=[0.01, 0.02, 0.03, 0.01])
        point = dataclasses.replace(point, Q=[0, k**2, 0, 0], R=0.1 * k)
        return dataclasses.replace(point, slopes={
            "k": DesignSlope(dA[0], Q=[0, 2 * k, 0, 0], R=0.1, structure=1.0),
            "c": DesignSlope(dA[1], structure=20.0),
        })  # fmt: skip

    ranges = {"k": (0.5, 2.0), "c": (0.01, 0.5)}
    exact, plain = (
        _Codesign(f, ranges, 0.7, feedback, [[3.0, 0.1, 2.5, 3.0]])
        for f in (make, lambda **p: dataclasses.replace(make(**p), slopes=None))
    )
    found, expected = (p.cost(p.start({"k": 1.2, "c": 0.1}))[1] for p in (exact, plain))
    # differences of fourth order in 1e-4 of a range: rounding over the step, 1e-12
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("slopes", "sentence"),
    [
        ({}, "codesign: slopes: there is no parameter 'k'"),
        ({"k": DesignSlope(np.eye(3))}, r"the slope of A in 'k' has shape \(3, 3\), expected \(4, 4\)"),
    ],
)
def test_slopes_that_do_not_fit(slopes, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        codesign(lambda k: dataclasses.replace(two_masses(k), slopes=slopes), RANGE)


def whole_state(k, c):
    return two_masses(k, c, outputs=np.eye(4))


SPRINGS = {"k": (0.5, 4.0), "c": (0.01, 0.5)}
GAIN = [[3.0, 0.1, 2.5, 3.0]]


@pytest.mark.parametrize("feedback", ["state", "output"])
def test_slopes_of_mean_squares(feedback):
    problem = _Codesign(whole_state, SPRINGS, 0.5, feedback, GAIN)
    x = problem.start({"k": 1.2, "c": 0.1})
    found = _Lightest(problem, 2.0, 0.3)
    x = x if feedback == "output" else np.append(x, 0.2)
    slopes = found(x)[1]
    for k in range(len(x)):
        d = np.zeros_like(x)
        d[k] = 1e-5
        expected = (found(x + d)[0] - found(x - d)[0]) / 2e-5
        # central differences: h^2 of curvature, and rounding over h
        np.testing.assert_allclose(slopes[:, k], expected, rtol=1e-6, atol=1e-8)


def test_lightest_structure_within_limits():
    """Gains on all states cannot do better than those of the Riccati equation, nor worse: the same weight, by two ways."""
    given = {"effort": 0.9, "response": 1.2, "start": {"k": 2.0, "c": 0.2}}
    state = lightest(whole_state, SPRINGS, **given)
    output = lightest(whole_state, SPRINGS, feedback="output", gain=GAIN, **given)
    assert output.structure == pytest.approx(state.structure, rel=1e-4)  # ftol 1e-9: its root, in both
    for found in (state, output):
        assert found.effort <= 0.9 * 1.001
        assert found.response <= 1.2 * 1.001
    with pytest.raises(
        NumericalError, match=r"the limits are not met after \d+ iterations \(the response is"
    ):
        lightest(whole_state, SPRINGS, effort=1e-4, response=1e-4)
    with pytest.raises(NumericalError, match="has not ended after 1 iterations"):
        lightest(whole_state, SPRINGS, effort=1e4, response=1e4, iterations=1)


def test_output_feedback_of_the_whole_state_is_state_feedback():
    def whole(k):
        return two_masses(k, outputs=np.eye(4))

    state = codesign(two_masses_of_k, RANGE)
    output = codesign(whole, RANGE, feedback="output", gain=[[3, 0.1, 2.5, 3]])
    assert output.cost == pytest.approx(state.cost, rel=1e-9)
    # the cost is flat there: the gains have half of its digits
    assert np.allclose(output.controller.D, state.controller.D, rtol=1e-3, atol=1e-3)
    assert state.slope < 1e-6
    assert "k = 1.08" in repr(state)


def two_masses_of_k(k):
    return two_masses(k)


def test_a_front_has_no_better_member_and_is_drawn(tmp_path):
    front = pareto(two_masses_of_k, RANGE, shares=[0.2, 0.5, 0.8])
    assert np.all(np.diff(front.structure) > 0)
    assert np.all(np.diff(front.control) < 0)
    pytest.importorskip("matplotlib")
    front.plot(path=tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 10_000


def test_named_parameters_of_a_mechanism():
    """The spring of two sliders, in joint coordinates: the same optimum as by hand, without damping."""
    builder = al.ModelBuilder("sliders", gravity=(0, 0, 0))
    k = builder.parameter("k", 1.0)
    point = al.Inertia.point(1.0, (0, 0, 0))
    builder.body("a", point, joint=al.Prismatic((1, 0, 0)), joint_name="a")
    builder.body("b", point, joint=al.Prismatic((1, 0, 0)), joint_name="b", parent="a", spring=Spring((k,)))
    builder.frame("tip", "b", (0, 0, 0))
    options = dict(controls=["a"], disturbances=["wrench:tip.fx"], effort=0.1)
    make = design_point(
        builder.build(), [0, 0], weighed={"tip.position.x": 1.0}, structure=lambda k: k, **options
    )
    found = codesign(make, RANGE)

    def by_hand(k):
        plain = two_masses(k, 0.0)
        return DesignPoint(plain.plant, plain.disturbance, plain.Q, plain.R, k)

    assert found.cost == pytest.approx(codesign(by_hand, RANGE).cost, rel=1e-9)
    weighed = {"tip.position.x": 1.0}
    assert design_point(builder.build(), [0, 0], weighed=weighed, **options)(k=1.0).structure == 2.0
    both = design_point(builder.build(), [0, 0], controls=["a"], disturbances=["a"], weighed=weighed)(k=1.0)
    np.testing.assert_array_equal(both.disturbance, both.plant.B)  # noise of the actuator
    with pytest.raises(ArgumentError, match=r"design_point: controls \[\], disturbances"):
        design_point(builder.build(), [0, 0], controls=[], disturbances=["a"], weighed={"q:a": 1.0})
    with pytest.raises(ArgumentError, match=r"an output follows the inputs directly"):
        design_point(builder.build(), [0, 0], weighed={"a:a": 1.0}, **options)(k=1.0)


def test_a_joint_of_many_degrees_of_freedom_is_many_controls():
    craft = library.satellite()
    options = dict(controls=["attitude"], disturbances=["motor_x"], weighed={"q:attitude.wx": 1.0})
    point = design_point(craft, craft.neutral(), structure=lambda: 1.0, **options)()
    assert point.plant.input_names == craft.speed_names[:6]
    assert point.disturbance.shape == (18, 1)


def test_a_point_is_held_against_springs_too():
    """An arm that is held away from its spring's rest: nothing is added to A by accelerations."""
    builder = al.ModelBuilder("held")
    k = builder.parameter("k", 50.0)
    rod = al.Inertia.point(2.0, (0.5, 0, 0))
    builder.body("one", rod, joint=al.Revolute((0, 1, 0)), joint_name="one", spring=Spring((k,)))
    builder.body(
        "two", rod, joint=al.Revolute((0, 1, 0)), joint_name="two", parent="one", placement=(0.5, 0, 0)
    )
    model, q = builder.build(), np.array([0.3, 0.9])
    options = dict(controls=["two"], disturbances=["one"], weighed={"q:two": 1.0}, structure=lambda k: k)
    found = design_point(model, q, **options)(k=80.0).plant.A[2:, :2]
    # M(q) d2q = -d(gravity + spring): by differences of what holds the arm
    h, rest = 1e-5, np.zeros(2)
    held = [
        (model.inverse_dynamics(q + h * e, rest, rest, parameters={"k": 80.0})
         - model.inverse_dynamics(q - h * e, rest, rest, parameters={"k": 80.0})) / (2 * h)
        for e in np.eye(2)
    ]  # fmt: skip
    expected = -np.linalg.solve(model.mass_matrix(q), np.stack(held, axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # h^2, and rounding over h


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: codesign(two_masses_of_k, RANGE, feedback="best"),
            "feedback is 'best', expected one of 'state'",
        ),
        (lambda: codesign(two_masses_of_k, RANGE, share=2.0), "share is 2.0, expected a number from 0 to 1"),
        (lambda: codesign(two_masses_of_k, {"k": (2, 1)}), r"the range of 'k' is \(2, 1\), expected"),
        (lambda: codesign(two_masses_of_k, {}), "ranges is empty"),
        (lambda: codesign(two_masses_of_k, RANGE, start={"m": 1.0}), "start: there is no parameter 'm'"),
        (
            lambda: codesign(two_masses_of_k, RANGE, feedback="output"),
            "with this gain the loop is not stable",
        ),
        (lambda: codesign(two_masses_of_k, RANGE, feedback="lqg"), "needs the sensors' noise"),
        (lambda: codesign(lambda k: k, RANGE), "make gave float, expected a DesignPoint"),
        (
            lambda: codesign(
                lambda k: DesignPoint(StateSpace([[-k]], [[1]], [[1]], [[1]]), np.eye(1), 1, 1, k), RANGE
            ),
            "the plant is sampled or has a direct part",
        ),
        (
            lambda: lightest(two_masses_of_k, RANGE, effort=0.0, response=1.0),
            "effort is 0.0, expected a limit above zero",
        ),
        (
            lambda: lightest(two_masses_of_k, RANGE, effort=1.0, response=1.0, feedback="lqg"),
            "feedback is 'lqg', expected 'state' or 'output'",
        ),
        (lambda: codesign(two_masses_of_k, RANGE, start={"k": 99.0}), "start: 'k' is 99.0, expected"),
        (lambda: lightest(lambda k: k, RANGE, effort=1.0, response=1.0), "^lightest: make gave float"),
        (lambda: pareto(lambda k: k, RANGE), "^pareto: make gave float"),
        (
            lambda: codesign(
                lambda k: DesignPoint(StateSpace([[-k]], [[1]], [[1]]), np.eye(1), 1, 1, np.nan), RANGE
            ),
            "the cost of the structure is nan at k = ",
        ),
        (lambda: pareto(two_masses_of_k, RANGE, shares=[0.5, 0.1]), "shares are .* expected ascending"),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make()


def test_a_mode_out_of_reach_is_told():
    def stuck(k):
        return DesignPoint(StateSpace([[-k, 0], [0, 0.1]], [[1], [0]], [[1, 0]]), np.eye(2), 1.0, 1.0, k)

    with pytest.raises(NumericalError, match=r"the inputs \(u0\) do not reach the pole 0.1"):
        codesign(stuck, RANGE)


def test_a_front_goes_on_with_the_gain_it_has_found():
    """x' = k x + u, u = -K x: K = k + sqrt(k^2 + Q/R) is best. The gain of the start holds k = 0.5 only, k goes near 3."""

    def growing(k):
        return DesignPoint(StateSpace([[k]], [[1]], [[1]]), np.eye(1), 1.0, 0.1, (3 - k) ** 2)

    front = pareto(
        growing, {"k": (0.1, 3.0)}, shares=(0.05, 0.3), feedback="output", gain=1.0, start={"k": 0.5}
    )
    for design in front.designs:
        k = design.values["k"]
        assert k > 2.9
        np.testing.assert_allclose(
            design.controller.D, -(k + np.sqrt(k**2 + 10)), rtol=1e-6
        )  # slopes of 1e-10


@pytest.mark.parametrize("feedback", ["state", "output"])
def test_units_of_states_inputs_and_outputs_do_not_matter(feedback):
    """Places in 0.1 mm beside speeds in 10 km/s, forces in uN: mean squares were negative, costs -2608, 3.5 and 15.9. Output
    feedback has several minima, 5 % apart."""
    costs, masses = [], []
    for x, u, y in (([1, 1, 1, 1], 1.0, 1.0), ([1, 1e4, 1, 1e-4], 1.0, 1e-4), ([1, 1, 1, 1], 1e6, 1e3)):
        x = np.array(x, dtype=float)

        def make(k, m, x=x, u=u, y=y):
            A = [
                [0, 0, 1, 0],
                [0, 0, 0, 1],
                [-(k + 0.5) / m, k / m, -0.02 / m, 0.02 / m],
                [k, -k - 0.5, 0.02, -0.02],
            ]
            B, C, G = np.array([[0, 0], [0, 0], [1 / m, 0], [0, 0.5]]), np.eye(4)[2:], np.eye(4)[:, 3:]
            plant = StateSpace(A * x[:, None] / x, B * x[:, None] / u, y * C / x)
            weights = {"Q": np.array([0.2, 1, 0, 0]) / x**2, "R": 0.1 / u**2}
            return DesignPoint(plant, G * x[:, None], **weights, structure=k + m, sensor=0.001 * y**2)

        ranges = {"k": (0.05, 10), "m": (0.2, 3)}
        gain = np.zeros((2, 2)) if feedback == "output" else None
        costs.append(codesign(make, ranges, feedback=feedback, gain=gain).cost)
        found = lightest(make, ranges, effort=0.3, response=2.0, feedback=feedback, gain=gain)
        masses.append([found.structure, found.effort, found.response])
    np.testing.assert_allclose(costs, costs[0], rtol=0.05 if feedback == "output" else 1e-9)
    np.testing.assert_allclose(masses, np.tile(masses[0], (3, 1)), rtol=1e-5)

"""What is refused before solving."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError
from alembert.optimal import Problem, System, duration, effort, running, terminal, tracking

ARM = al.library.two_link()
START, END = {"q": [-np.pi / 2, 0], "v": 0}, {"q": [0.3, 0.2], "v": 0}


def height(s):
    return s.frame("tip").translation[2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"end": END | {"tip": (height, 1.9)}}, "the end has 'tip' = 0.774946, outside the condition's 1.9"),
        (
            {"start": START | {"tip": (height, (0, 1))}},
            "the start has 'tip' = -2, outside the condition's 0 .. 1",
        ),
        (
            {"end": {"low": (height, 1.0), "high": (height, (1.5, 2))}},
            "at the end 'low' is 1 and 'high', the same function, 1.5 .. 2; nothing can satisfy both",
        ),
        (
            {"end": {"low": (height, 1.0)}, "path": {"h": (height, -3.0, 0.5)}},
            "at the end 'low' is 1 and 'h', the same function, -3 .. 0.5",
        ),
        ({"limits": {"rate": (5, -5)}}, "limits rate of 'shoulder': 5 is above -5"),
        (
            {"limits": {"v": 0.1}},
            "'shoulder' has to move by 1.8708 within 1 s, a mean speed of 1.8708, outside",
        ),
        (
            {"periodic": True, "start": {"q": {"elbow": (0, 1)}}, "end": {"q": {"elbow": (2, 3)}}},
            "periodic, but 'q elbow' starts at 0 .. 1 and ends at 2 .. 3",
        ),
        ({"start": {"q": [np.inf, 0]}}, "start q of 'shoulder' is .*inf.*, expected a number"),
        ({"start": [0, 0]}, "start is .*, expected a dictionary by names"),
        (
            {"start": {"load": (lambda s: s.tau[0], 1.0)}},
            "start 'load' depends on the controls, .* `limits` or",
        ),
        ({"end": {"load": (lambda s: s.tau[0], 1.0)}}, "end 'load' depends on the controls"),
        ({"cost": terminal(lambda s: s.tau[0])}, "the terminal cost depends on the controls"),
        (
            {"cost": running(lambda s: s.torque)},
            "the running cost: there is no quantity 'torque'; there is t, q",
        ),
        (
            {"cost": running(lambda s: 1.0 if s.q[0] > 0 else 0.0)},
            "the running cost: Cannot compute the truth value .* For a choice write casadi.if_else",
        ),
        ({"path": {"h": (lambda s: s.q[0] + "up", 0, 1)}}, "path 'h': .*Functions get CasADi expressions"),
    ],
)
def test_refused(given, message):
    with pytest.raises(ArgumentError, match=f"Problem: .*{message}"):
        Problem(ARM, 1.0, **{"start": START, "end": END} | given)


def test_quaternions_have_norm_one():
    model = al.library.satellite()
    q = model.neutral()
    q[3:7] = [2, 0, 0, 0]
    with pytest.raises(ArgumentError, match="start q of 'attitude' has a quaternion of norm 2, expected 1"):
        Problem(model, 1.0, start={"q": q})


def test_what_agrees_is_accepted():
    """Conditions that repeat others, limits that are just wide enough."""
    tip = {"tip": (height, float(np.sin(0.3) + np.sin(0.5)))}
    Problem(ARM, 1.0, start=START, end=END | tip)
    Problem(ARM, 1.0, start={"q": [0, 0]}, end={"q": [1, 0]}, limits={"v": 1.0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0}, "tolerance is 0, expected a number between 0 and 1"),
        ({"iterations": -1}, "iterations is -1, expected a whole number, 0 or more"),
        (
            {"guess": {"time": [0, 1], "q": np.zeros((2, 3))}},
            r"the guess has q of shape \(2, 3\), expected \(2, 2\)",
        ),
        ({"guess": {"time": [0, 1], "q": [[0, 0], [0, np.nan]]}}, "the q of the guess are not finite at 1 s"),
        (
            {"guess": {"time": [0, 1], "q": np.zeros((2, 2)), "controls": np.full((2, 2), np.inf)}},
            "the controls of the guess are not finite at 0 s",
        ),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ArgumentError, match=message):
        Problem(ARM, 1.0, start=START, end=END).solve(5, **options)


def test_a_system_says_which_quantities_it_has():
    system = System(["x"], ["u"], lambda s: [s.u])
    with pytest.raises(ArgumentError, match="the running cost: there is no quantity 'pace'"):
        Problem(system, 1.0, cost=running(lambda s: ca.fabs(s.pace)))


@pytest.mark.parametrize("transcription", ["dmoc", "midpoint-momenta"])
def test_a_function_may_ask_whether_there_is_a_quantity(transcription):
    problem = Problem(ARM, 1.0, start=START, end=END, cost=effort() + running(lambda s: ca.sumsqr(s.v)))
    asking = Problem(
        ARM, 1.0, start=START, end=END, cost=effort() + running(lambda s: ca.sumsqr(getattr(s, "pace", s.v)))
    )
    costs = [p.solve(4, transcription=transcription, progress=False).cost for p in (problem, asking)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)  # the same graphs, but for their order


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": {"q": "upright"}}, "start q is 'upright', expected 2 numbers, 0 or a dictionary by joint"),
        ({"limits": {"tau": -1}}, "limits tau is -1; one number bounds both sides, .* so it is 0 or more"),
        ({"cost": running(lambda s: -ca.sumsqr(s.tau))}, "the cost falls without end as 'shoulder' grows"),
        ({"cost": -1 * effort()}, "the cost falls without end as 'shoulder' grows, which has no limits"),
        ({"actuated": [1]}, "Problem: actuated has 1, expected names"),
        (
            {"prescribed": {"elbow": lambda t: ca.sqrt(0.5 - t)}, "start": {}, "end": {}},
            "the prescribed motion of 'elbow' or its speed is not finite at 0.5",
        ),
        ({"cost": running(lambda s: [][1])}, "the running cost: list index out of range"),
    ],
)
def test_more_that_cannot_be(given, message):
    with pytest.raises(ArgumentError, match=message):
        Problem(ARM, 1.0, **({"start": START, "end": END} | given))


def test_a_system_that_is_too_slow_is_refused():
    """The rate of x is linear in v, that of v in the control: their limits say how far they can come."""
    cart = System(["x", "v"], ["a"], lambda s: [2 * s.v - 0.1, s.a / s.mass], parameters={"mass": 2.0})
    given = {"start": {"x": 0, "v": 0}, "end": {"x": 5, "v": 1}}
    message = "'x' has to move by 5 within 2 s, a mean speed of 2.5, outside its limits -2.1 .. 1.9"
    with pytest.raises(ArgumentError, match=message):
        Problem(cart, 2.0, limits={"v": 1}, **given)
    message = "'v' has to move by 1 within 2 s, a mean speed of 0.5, outside its limits -0.4 .. 0.4"
    with pytest.raises(ArgumentError, match=message):
        Problem(cart, 2.0, limits={"a": 0.8}, **given)
    Problem(cart, (1.0, 4.0), limits={"v": 1, "a": 0.8}, **given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: effort(-1), "effort: weight is -1, expected 0 or more"),
        (lambda: effort({"elbow": -2.0}), "effort: weight is -2.0, expected 0 or more"),
        (lambda: effort("much"), "effort: weight is 'much', expected a number"),
        (lambda: duration(np.nan), "duration: weight is nan, expected a number"),
        (lambda: effort() * np.inf, "cost: factor is inf, expected a number"),
        (lambda: tracking(3), "tracking: q is 3, expected a function of the time"),
        (lambda: tracking(lambda t: t, q_weight=None), "tracking: q_weight is None, expected a number"),
        (lambda: System(["x"], ["u"], lambda s: [s.w]), "System: the rate: there is no quantity 'w'"),
        (
            lambda: System(["x"], ["u"], lambda s: [s.x + "u"]),
            "System: the rate: .* returns one for each state",
        ),
        (lambda: System(["x", 1], ["u"], lambda s: [s.x]), "System: states has 1, expected names"),
    ],
)
def test_costs_and_systems_that_cannot_be(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_one_name_alone_is_one_name():
    assert System("speed", "force", lambda s: [s.force]).states == ("speed",)
    assert Problem(ARM, 1.0, actuated="elbow").plant.controls == ("elbow",)


def test_zero_is_the_neutral_configuration():
    rows = Problem(ARM, 1.0, start={"q": 0, "v": 0}).start
    assert [(row.name, row.lower) for row in rows] == [
        *(("q shoulder", 0.0), ("q elbow", 0.0)),
        *(("v shoulder", 0.0), ("v elbow", 0.0)),
    ]
    tumbling = al.library.satellite()
    base = next(row for row in Problem(tumbling, 1.0, start={"q": 0}).start if row.point is not None)
    assert base.point[-4:].tolist() == [1, 0, 0, 0]

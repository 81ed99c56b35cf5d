"""What is refused before solving, and how."""

import math
import re
import warnings

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import AlembertWarning, ArgumentError, UnsupportedError
from alembert.model import Sensor
from alembert.optimal import Phases, Problem, System, effort, running, terminal, tracking

LINE = System(["x", "v"], ["a"], lambda s: [s.v, s.a], parameters={"mass": 1.0})
MODEL = al.library.two_link()
ENDS = {"start": {"q": [-np.pi / 2, 0.0], "v": 0}, "end": {"q": [np.pi / 2, 0.0], "v": 0}}


def refused(message, *given, kind=ArgumentError, **options):
    with pytest.raises(kind, match=re.escape(message)):
        Problem(*given, **options)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("Problem: start: no state 'y'; there is x, v", {"start": {"y": 1}}),
        ("Problem: start 'x' is 'far', expected a number or a pair", {"start": {"x": "far"}}),
        ("Problem: start 'x': 2 is above 1", {"start": {"x": (2, 1)}}),
        ("Problem: limits: no quantity 'b'", {"limits": {"b": 1}}),
        ("Problem: limits is 3, expected 'model', None or a dictionary", {"limits": 3}),
        ("Problem: limits rate: no control 'b'", {"limits": {"rate": {"b": 1}}}),
        ("Problem: limits of 'x': 1 is above 0", {"limits": {"x": (1, 0)}}),
        ("Problem: integral 'way': 2 is above 1", {"integrals": {"way": (lambda s: s.x, 2, 1)}}),
        ("outside its limits -1 .. 1; nothing can satisfy both", {"end": {"x": 2}, "limits": {"x": 1}}),
        ("Problem: path 'p' is 3, expected (function of a moment, lower, upper)", {"path": {"p": 3}}),
        ("Problem: 'far' has shape (2, 1), expected one number", {"end": {"far": (lambda s: s.states, 1)}}),
        ("Problem: cost is a int; make one with effort()", {"cost": 3}),
        ("Problem: the cost has no terms", {"cost": al.optimal.Cost()}),
        ("the terminal cost depends on the controls", {"cost": terminal(lambda s: s.a)}),
        ("cost: a running term has shape (2, 1)", {"cost": running(lambda s: s.states)}),
        ("effort: there is no control 'b'; controls are a", {"cost": effort({"b": 1.0})}),
        ("Problem: no parameter 'm'", {"parameters": {"m": 1}}),
        ("Problem: `actuated` is for models", {"actuated": ["a"]}),
        (
            "periodic, but 'x' starts at 0 and ends at 1",
            {"start": {"x": 0}, "end": {"x": 1}, "periodic": True},
        ),
    ],
)
def test_bad_problem_of_a_system(message, options):
    refused(message, LINE, 1.0, **options)


@pytest.mark.parametrize("duration", [0.0, -1, (2, 1), "long", np.inf, (1, 2, 3)])
def test_bad_duration(duration):
    refused("Problem: duration is", LINE, duration)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("Problem: start q has shape (3,), expected (2,)", {"start": {"q": [1, 2, 3]}}),
        ("Problem: start q: no joint 'ebow'; did you mean 'elbow'?", {"start": {"q": {"ebow": 1}}}),
        ("Problem: start: 'w' is neither 'q' nor 'v'", {"start": {"w": 1}}),
        ("Problem: start q of 'elbow' has 2 entries, expected 1", {"start": {"q": {"elbow": [1, 2]}}}),
        ("Problem: no joint or actuator 'ebow'", {"actuated": ["ebow"]}),
        (
            "Problem: the start is stated, and there are no controls, no `design` and no free duration",
            {"actuated": [], "start": ENDS["start"]},
        ),
        (
            "the running cost has a NaN in it: functions of `math`",
            {"cost": running(lambda s: math.sqrt(s.tau[0]))},
        ),
        ("Problem: limits tau: no control 'ebow'", {"limits": {"tau": {"ebow": 1}}}),
    ],
)
def test_bad_problem_of_a_model(message, options):
    refused(message, MODEL, 1.0, **options)


def test_bad_conditions_on_manifolds():
    satellite, pitcher = al.library.satellite(), al.library.pitcher()
    refused("Problem: end q of 'attitude' has shape (3,)", satellite, 1.0, end={"q": {"attitude": [0, 0, 0]}})
    refused("no part 'turn'", satellite, 1.0, end={"q": {"attitude": {"turn": [1, 0, 0, 0]}}})
    refused("orientation has shape (3,)", satellite, 1.0, end={"q": {"attitude": {"orientation": [1, 0, 0]}}})
    refused("parts are for joints", pitcher, 1.0, end={"q": {"shoulder": {"orientation": [1, 0, 0, 0]}}})
    refused("joint has no coordinate to bound", pitcher, 1.0, limits={"q": {"shoulder": 1.0}})


def test_other_refusals():
    refused("Problem: the plant is a int, expected a Model or a System", 3, 1.0)
    with pytest.raises(ArgumentError, match="tracking: expected q or v"):
        tracking()
    with pytest.raises(ArgumentError, match="is no function; expected one that takes a moment"):
        running(3)
    for states, message in (
        ([], "there are no states"),
        (["x", "x"], "'x' is given twice"),
        (["t"], "no name"),
    ):
        with pytest.raises(ArgumentError, match=message):
            System(states, [], lambda s: [])
    with pytest.raises(ArgumentError, match="the rate has 1 entries, expected 2"):
        System(["x", "v"], ["a"], lambda s: [s.v])
    with pytest.raises(ArgumentError, match="expected one CasADi expression per state"):
        System(["x", "v"], ["a"], lambda s: ["fast", "slow"])
    with pytest.raises(ArgumentError, match="System: the rate: there is no quantity 'spin'"):
        System(["x"], ["u"], lambda s: [s.spin])


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("solve: no transcription 'dmox'; did you mean 'dmoc'?", {"transcription": "dmox"}),
        ("solve: no solver 'snopt'", {"solver": "snopt"}),
        ("solve: no hessian 'bfgs'", {"hessian": "bfgs"}),
        ("solve: guess is a int, expected a solution", {"guess": 3}),
        ("solve: nodes has shape (3,), expected 11 increasing fractions", {"nodes": [0, 0.5, 1]}),
        ("solve: nodes is 'even', expected 11 increasing", {"nodes": "even"}),
        ("solve: nodes: 0.5 is followed by nan, expected 11", {"nodes": [0, 0.5, *[np.nan] * 8, 1]}),
        ("solve: nodes: 0 .. 2, expected 11 increasing", {"nodes": np.linspace(0, 2, 11)}),
        ("solve: progress is 'yes', expected True, False or a function", {"progress": "yes"}),
        ("solve: the guess has no quantity 'tau'; there is time, q", {"guess": {"time": [0, 1], "tau": 1}}),
        ("solve: guess lacks 'time'", {"guess": {"q": 1}}),
        ("solve: the times of the guess are not increasing", {"guess": {"time": [1, 0], "q": 1}}),
        (
            "solve: the guess has points of shape (2, 5), expected (2, 4)",
            {"guess": {"time": [0, 1], "q": np.zeros((2, 2)), "v": np.zeros((2, 3))}},
        ),
        (
            "solve: the guess has controls of shape (2, 5), expected (2, 2)",
            {"guess": {"time": [0, 1], "q": np.zeros((2, 2)), "controls": np.zeros((2, 5))}},
        ),
    ],
)
def test_bad_options_of_solve(message, options):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Problem(MODEL, 1.0, **ENDS).solve(10, **options)


@pytest.mark.parametrize("steps", [0, 1.5, True])
def test_bad_number_of_steps(steps):
    with pytest.raises(ArgumentError, match="expected a positive number of intervals"):
        Problem(MODEL, 1.0, **ENDS).solve(steps)


def test_other_solvers_take_exact_hessians():
    with pytest.raises(UnsupportedError, match="ipopt takes exact Hessians only"):
        Problem(LINE, 1.0).solve(10, solver="ipopt", hessian="gauss-newton")


def test_transcriptions_for_models():
    with pytest.raises(UnsupportedError, match="'dmoc' is for models of bodies and joints"):
        Problem(LINE, 1.0).solve(10, transcription="dmoc")
    with pytest.raises(UnsupportedError, match="a System has no momenta"):
        Problem(LINE, 1.0).solve(10, transcription="radau-momenta")


def test_angles_that_look_like_degrees_are_told():
    ends = {"start": {"q": [0, 180], "v": 0}, "end": {"q": [0, 0], "v": 0}}
    told = r"Problem: start: 'hinge' is at 180 rad; angles are in radians: 180 degrees are 3.142"
    with pytest.warns(AlembertWarning, match=told):
        Problem(al.library.cart_pole(), 2.0, **ends)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Problem(
            al.library.cart_pole(), 2.0, start={"q": [20.0, 7 * np.pi], "v": 0}, limits=None
        )  # 20 m, and turns of a wheel


def test_functions_of_numpy_make_expressions():
    """As users write them: without the notice of CasADi's, which tells of another version of it."""
    system = System(["x", "v"], ["u"], lambda s: [s.v, s.u - np.sin(s.x)])
    cost = running(lambda s: np.exp(s.x) + s.u**2) + terminal(lambda s: np.cos(s.x))
    ends = {"start": {"x": 0, "v": 0}, "end": {"reach": (lambda s: np.tanh(s.x), 0.5)}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = Problem(
            system, 1.0, **ends, cost=cost, path={"p": (lambda s: np.sqrt(4 + s.x), 0, 9)}
        ).solve(20)
    assert solution.success
    assert solution.x[-1, 0] == pytest.approx(np.arctanh(0.5))


def test_what_sensors_read():
    """Without errors, and so what the frames say of which they are sensors."""
    model = al.library.two_link()
    ends = {"start": {"q": [0.3, -0.3], "v": 0}, "end": {"q": [1.2, 0.3], "v": 0}}
    camera, gyro = Sensor("camera", "point", "tip"), Sensor("gyro", "gyro", "tip")
    bound = {"height": (lambda s: s.frame("tip").translation[2], 0.29, 1.94)}
    read = {"height": (lambda s: s.reading(al.simulate.Measured(camera, 0.1, noise=1.0))[2], 0.29, 1.94)}
    by_frame, by_sensor = (Problem(model, 1.0, **ends, path=path).solve(30) for path in (bound, read))
    assert by_sensor.success
    assert by_sensor.cost == by_frame.cost
    assert by_sensor.cost > 1.001 * Problem(model, 1.0, **ends).solve(30).cost  # the bound matters
    turn = Problem(model, 1.0, **ends, cost=running(lambda s: ca.sumsqr(s.reading(gyro)))).solve(30)
    both = Problem(model, 1.0, **ends, cost=running(lambda s: (s.v[0] + s.v[1]) ** 2)).solve(30)
    assert turn.cost == pytest.approx(both.cost, rel=1e-6)  # of one plane


@pytest.mark.parametrize(
    ("sensor", "said"),
    [
        (
            Sensor("acc", "accelerometer", "tip"),
            "sensor 'acc' depends on accelerations or on what happens in a run",
        ),
        ("imu", "no sensor 'imu'"),
        (3, "sensor is 3, expected a name or a Sensor"),
    ],
)
def test_sensors_that_are_no_functions_of_the_state(sensor, said):
    with pytest.raises((ArgumentError, UnsupportedError), match=re.escape(said)):
        Problem(al.library.two_link(), 1.0, cost=running(lambda s: s.reading(sensor)[0]))
    with pytest.raises(ArgumentError, match="sensors are those of a model"):
        Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0, cost=running(lambda s: s.reading(sensor)))


@pytest.mark.parametrize("transcription", ["hermite-simpson", "rk4", "radau"])
def test_only_the_start_is_to_be_found(transcription):
    """Without controls: which x(0) >= 0 of x' = -x keeps nearest to 1, and where a fall begins that ends so."""
    falling = System(["x"], [], lambda s: [-s.x])
    nearest = Problem(falling, 1.0, start={"x": (0, 2)}, cost=running(lambda s: (s.x - 1) ** 2))
    solution = nearest.solve(20, transcription=transcription)
    assert solution.success
    best = 2 / (1 + np.exp(-1))  # int x / int x^2 of e^-t
    assert solution.x[0, 0] == pytest.approx(best, abs=1e-5)  # order 4 and bounds in their barrier
    ends = Problem(falling, 1.0, end={"x": 1}, cost=running(lambda s: s.x**2))
    whole = Phases({"a": ends.replace(duration=0.5, end=None), "b": ends.replace(duration=0.5)})
    for found in (ends.solve(20, transcription=transcription), whole.solve(10, transcription=transcription)):
        assert found.success
        assert found.cost == pytest.approx((np.e**2 - 1) / 2, rel=1e-5)
    with pytest.raises(ArgumentError, match="a start that is stated, so that nothing is to be chosen"):
        ends.replace(start={"x": 1}, end=None).solve(5)

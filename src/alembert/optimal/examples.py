"""Problems of the literature and some of our own, as examples, tests and cases of `alembert.verify` solve them.

    solution = al.optimal.examples.goddard().solve()

Each is a function of its data that gives an `Example`: the problem, and how it is solved by default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from alembert import library
from alembert.joints import Revolute
from alembert.model import Capsule, Inertia, Model, ModelBuilder, Placement, Visual
from alembert.optimal.conditions import duration, effort, running, terminal
from alembert.optimal.plant import System
from alembert.optimal.problem import Problem
from alembert.optimal.solution import Solution

HANGING, UPRIGHT = (-np.pi / 2, 0.0), (np.pi / 2, 0.0)


@dataclass(frozen=True)
class Example:
    """`options` are those of `solve`; a guess may be a function of the number of steps."""

    problem: Problem
    steps: int
    options: dict[str, Any] = field(default_factory=dict)
    published: float = np.nan
    """the cost, where it is known"""

    def solve(self, steps: int | None = None, **more: Any) -> Solution:
        """Solve it, with other options than its own where these are given."""
        options = self.options | more
        steps = self.steps if steps is None else steps
        if callable(options.get("guess")):
            options["guess"] = options["guess"](steps)
        return self.problem.solve(steps, **options)


def _rest_to_rest(model: Model, time: float, start: Any, end: Any, **more: Any) -> Problem:
    return Problem(model, time, start={"q": start, "v": 0}, end={"q": end, "v": 0}, **more)


def _through(time: float, way: Any) -> dict[str, Any]:
    """A guess through postures at equal intervals."""
    return {"time": np.linspace(0.0, time, len(way)), "q": np.array(way)}


def swing_up() -> Example:
    """Two driven links swing up in 1 s, folded (Leyendecker et al. 2009, section 7.1)."""
    guess = _through(1.0, [HANGING, [-1.9, 2.2], [-0.4, 2.9], [0.9, 2.0], UPRIGHT])
    return Example(_rest_to_rest(library.two_link(), 1.0, HANGING, UPRIGHT), 100, {"guess": guess})


def arm() -> Example:
    """The same arm from lying to standing in 2 s: it swings down first (Sohl and Bobrow 2001, section 5.1)."""
    guess = _through(2.0, [[0.0, 0.0], [-3.1, 3.5], UPRIGHT])
    return Example(_rest_to_rest(library.two_link(), 2.0, [0.0, 0.0], UPRIGHT), 100, {"guess": guess})


def acrobot(first: float = HANGING[0]) -> Example:
    """Only the elbow is driven: 4 s to swing up from hanging (Sohl and Bobrow 2001, section 5.2).

    It has many optima, each with a swing of its own. Postures on the way to one of the cheaper ones choose it; from
    other angles `first` the guess is straight.
    """
    problem = _rest_to_rest(library.acrobot(lengths=(1.0, 1.0)), 4.0, [first, 0.0], UPRIGHT)
    way = ACROBOT.get(first)
    return Example(
        problem, 200, {} if way is None else {"guess": _through(4.0, [[first, 0.0], *way, UPRIGHT])}
    )


ACROBOT: dict[float, list[list[float]]] = {
    HANGING[0]: [
        *([-2.0, 1.9], [-1.8, 2.1], [-0.9, -1.2], [-1.6, -2.7], [-2.1, -1.7], [-2.3, 2.5], [0.4, 2.5]),
        *([1.1, 1.3], [1.4, 0.6]),
    ],
    -1.0: [
        *([-1.3, 0.6], [-1.6, 0.9], [-1.4, -0.5], [-1.5, -2.0], [-2.0, -2.4], [-2.3, -2.4], [-2.2, -2.1]),
        *([-2.0, -1.3], [-2.4, 1.6], [-1.1, 2.8], [0.2, 2.5], [0.8, 1.6], [1.2, 0.8], [1.4, 0.3], [1.5, 0.2]),
        *([1.5, 0.1], [1.5, 0.2], [1.5, 0.2], [1.5, 0.1]),
    ],
    -1.3: [
        *([-1.1, -0.9], [-2.1, 1.5], [-2.3, 3.9], [-2.7, 7.2], [-1.5, 7.2], [0.4, 3.3], [1.0, 1.4]),
        *([1.4, 0.3], [1.5, 0.0], [1.6, 0.0], [1.6, 0.1]),
    ],
}
"""postures at equal intervals, by the angle at which it starts; from -1.3 the second link goes round"""


def acrobot_from_1_0() -> Example:
    """The acrobot from q1 = -1.0, as published."""
    return acrobot(-1.0)


def acrobot_from_1_3() -> Example:
    """The acrobot from q1 = -1.3, as published."""
    return acrobot(-1.3)


def branched_acrobot() -> Example:
    """A trunk on a passive joint, lifted by two legs, from q1 = -1.0 (Sohl and Bobrow 2001, section 5.3)."""
    problem = _rest_to_rest(library.branched_acrobot(), 4.0, [-1.0, 0.0, 0.0], {"base": np.pi / 2})
    way = [
        *([-1.0, 0.0, 0.0], [-1.8, 1.8, 1.8], [-2.6, 2.2, 2.2], [-2.1, -0.1, -0.1], [-1.0, -2.6, -2.8]),
        *([-0.2, -2.3, -3.3], [-1.0, 0.5, -3.1], [-2.4, 2.7, -1.9], [-3.3, 2.0, 1.7], [-1.6, -2.2, 3.0]),
        *([0.4, -3.1, 2.1], [1.3, -2.8, 0.4], [np.pi / 2, -2.4, -0.3]),
    ]
    return Example(problem, 200, {"guess": _through(4.0, way)})


def obstacle(radius: float = 0.3) -> Example:
    """The arm reaches round a disc, which is in the way of its cheapest motion: a bound on the path."""

    def clearance(s: Any) -> Any:
        return ca.sumsqr(s.frame("tip").translation - np.array([0.3, 0.0, 0.45]))

    path = {"clearance": (clearance, radius**2, np.inf)}
    return Example(_rest_to_rest(library.two_link(), 1.0, [-0.3, 0.5], [1.2, 0.3], path=path), 50)


def four_bar() -> Example:
    """A closed loop: the crank of a four-bar linkage lifts its coupler and comes to rest."""
    builder = ModelBuilder("four_bar", gravity=(0.0, 0.0, -9.81))
    hinge, lengths = Revolute((0.0, -1.0, 0.0)), {"crank": 0.4, "coupler": 1.1, "rocker": 0.9}
    places = {"crank": ("world", "drive", 0.0), "coupler": ("crank", "knee", 0.4)}
    places["rocker"] = ("world", "pivot", 1.2)
    colors = {"crank": (0.88, 0.48, 0.18, 1.0), "coupler": (0.16, 0.38, 0.68, 1.0)}
    for name, length in lengths.items():
        parent, joint, x = places[name]
        along = Placement.from_rpy((0.0, np.pi / 2, 0.0), (length / 2, 0.0, 0.0))
        shown = Visual(Capsule(0.03, length), along, colors.get(name, (0.5, 0.55, 0.6, 1.0)))
        rod = Inertia.rod(2.0 * length, (0, 0, 0), (length, 0, 0))
        builder.body(
            *(name, rod), joint=hinge, joint_name=joint, parent=parent, placement=(x, 0, 0), visuals=[shown]
        )
        builder.frame(f"{name}_end", name, (length, 0, 0))
    builder.loop("pin", hinge, "coupler_end", "rocker_end").actuator("motor", "drive")
    model = builder.build()
    start = model.assemble([0.0, 0.8, 1.8], fixed=["drive"]).q
    return Example(_rest_to_rest(model, 1.0, start, {"drive": 2.5}, actuated=["drive"]), 50)


def satellite(rotors: int = 3) -> Example:
    """Wheels turn a free body by the rotation vector (pi/14)(1, 2, 3) in 5 s (Leyendecker et al. 2009, 7.2)."""
    model = library.satellite(rotors=rotors, torque=1e3)
    axis = np.pi / 14 * np.array([1.0, 2.0, 3.0])
    angle = np.linalg.norm(axis)
    wxyz = np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis / angle]
    return Example(_rest_to_rest(model, 5.0, model.neutral(), {"attitude": {"orientation": wxyz}}), 50)


def two_wheels() -> Example:
    """The same without the wheel about z, from the motion with three."""

    def guess(steps: int) -> dict[str, Any]:
        full = satellite().solve(steps)
        given = {"q": full.q, "v": full.v, "controls": full.controls}
        return {"time": full.time, **{name: value[:, :-1] for name, value in given.items()}}

    found = satellite(rotors=2)
    return Example(found.problem, found.steps, {"guess": guess})


def pitcher() -> Example:
    """A pitch: the largest speed of the hand along y, at a time that is free (Leyendecker et al. 2009, 7.3).

    As there, every joint is limited as in a body, and the guess goes through postures of a pitch: without limits of the
    shoulder the arm whirls, in as many ways as there are solvers.
    """
    model = library.pitcher()

    def upper_arm(s: Any) -> tuple[Any, Any, Any]:
        """Its direction in the collarbone: outwards, forwards, up."""
        w, x, y, z = ca.vertsplit(s.position("shoulder"))
        return -2 * (x * z + w * y), 2 * (w * x - y * z), 2 * (x * x + y * y) - 1

    def twist(s: Any) -> Any:
        """Above zero beyond a quarter turn about its length."""
        w, _, _, z = ca.vertsplit(s.position("shoulder"))
        return z * z - w * w

    way = np.array(
        [
            [0.0, 1.0, 0.0, 0.0, 0.0, np.pi / 4],
            [-0.3, 0.98, 0.1, 0.0, 0.2, 0.3],
            [-0.7, 0.93, 0.0, 0.21, -0.31, 0.6],
            [-0.9, 0.88, -0.2, 0.2, -0.39, 1.6],
            [-1.1, 0.83, -0.21, -0.1, -0.52, 1.9],
            [-1.2, 0.7, 0.0, -0.4, -0.6, 1.2],
            [-1.2, 0.53, 0.21, -0.63, -0.53, 0.1],
            [-1.2, 0.49, 0.2, -0.69, -0.49, 0.0],
            [-1.2, 0.39, 0.29, -0.78, -0.39, 0.0],
            [-1.2, 0.48, 0.29, -0.77, -0.29, 0.3],
            [-1.2, 0.5, 0.7, 0.0, -0.5, 1.5],
            [-0.3, 0.89, 0.2, 0.3, -0.3, 2.4],
        ]
    )
    way[:, 1:5] /= np.linalg.norm(way[:, 1:5], axis=1, keepdims=True)
    problem = Problem(
        model,
        (0.1, 0.5),
        start={"q": way[0], "v": 0},
        end={
            "hand forward": (lambda s: s.frame("hand").translation[1], (0.0, np.inf)),
            "hand up": (lambda s: s.frame("hand").translation[2], (0.0, np.inf)),
        },
        path={
            "arm across": (lambda s: upper_arm(s)[0], -0.5, np.inf),
            "arm behind": (lambda s: upper_arm(s)[1], -0.5, np.inf),
            "arm overhead": (lambda s: upper_arm(s)[2], -np.inf, 0.87),
            "arm twisted": (twist, -np.inf, 0.0),
        },
        limits={
            "q": {"torso": (-1.2, 1.6), "elbow": (0.0, 2.5)},
            "v": 40.0,
            "tau": {"torso": 150.0, "shoulder": 100.0, "elbow": 60.0},
        },
        cost=terminal(lambda s: -s.velocity("hand")[1]) + 1e-3 * effort(),
    )
    return Example(problem, 35, {"guess": _through(0.498, way)})


def brachistochrone(
    gravity: float = 9.80665, start: tuple[float, float] = (0.0, 10.0), end: tuple[float, float] = (10.0, 5.0)
) -> Example:
    """The fastest slide from (0, 10) to (10, 5): 1.8016031225 s (an arc of a cycloid)."""
    slide = System(
        ["x", "y", "v"],
        ["slope"],
        lambda s: [s.v * ca.cos(s.slope), s.v * ca.sin(s.slope), -gravity * ca.sin(s.slope)],
    )
    (x0, y0), (x1, y1) = start, end
    first = {"x": x0, "y": y0, "v": 0}
    problem = Problem(slide, (0.1, 5.0), start=first, end={"x": x1, "y": y1}, cost=duration())
    last = float(np.sqrt(2 * gravity * (y0 - y1)))  # and the time of a straight slide, to begin with
    time = 2 * float(np.hypot(x1 - x0, y1 - y0)) / last
    guess = {"time": [0, time], "x": [[x0, y0, 0], [x1, y1, last]], "controls": [[-1.0], [0.3]]}
    published = 1.8016031225 if (gravity, start, end) == (9.80665, (0.0, 10.0), (10.0, 5.0)) else np.nan
    return Example(problem, 100, {"guess": guess}, published)


def bryson_denham(limit: float = 1 / 9) -> Example:
    """A mass that may not go beyond 1/9: cost 4, or 4/(9 l) with another limit (Bryson, Denham, Dreyfus 1963)."""
    cart = System(["x", "v"], ["a"], lambda s: [s.v, s.a])
    problem = Problem(cart, 1.0, start={"x": 0, "v": 1}, end={"x": 0, "v": -1}, limits={"x": (0, limit)})
    return Example(problem, 100, published=4 / (9 * limit))


def hager() -> Example:
    """Hager's problem (2000): 0.3807970780. Its parameter, the gain of the control, is 1."""
    system = System(["y"], ["u"], lambda s: [s.y / 2 + s.gain * s.u], parameters={"gain": 1.0})
    cost = running(lambda s: (1.25 * s.y**2 + s.y * s.u + s.u**2) / 2)
    exact = float(np.e**2 * np.sinh(2) / (1 + np.e**2) ** 2)
    return Example(Problem(system, 1.0, start={"y": 1}, cost=cost), 50, published=exact)


def hypersensitive() -> Example:
    """Nothing happens for most of 10000 s (Betts, example 10.7): 6.7241. Nodes lie where something does."""
    system = System(["y"], ["u"], lambda s: [-(s.y**3) + s.u])
    cost = running(lambda s: s.y**2 + s.u**2)
    problem = Problem(system, 10000.0, start={"y": 1}, end={"y": 1.5}, cost=cost)
    half = np.concatenate([np.linspace(0, 15, 301)[:-1], np.geomspace(15, 5000, 60)]) / 1e4
    nodes = np.concatenate([half, 1 - half[-2::-1]])
    guess = {"time": [0, 5, 9995, 10000], "x": [[1], [0], [0], [1.5]]}
    options = {"nodes": nodes, "transcription": "radau", "guess": guess}
    return Example(problem, len(nodes) - 1, options, published=6.7241)


def goddard() -> Example:
    """The greatest height of a rocket (COPS 3.0): 1.01283.

    The mass cannot fall below that at the end, since thrust only takes from it; COPS says so by a bound as well, whose
    multipliers would not be determined.
    """
    rocket = System(
        ["h", "v", "m"],
        ["thrust"],
        lambda s: [
            s.v,
            (s.thrust - 310 * s.v**2 * ca.exp(500 * (1 - s.h))) / s.m - 1 / s.h**2,
            -s.thrust / 0.5,
        ],
    )
    problem = Problem(
        rocket,
        (0.01, 1.0),
        start={"h": 1, "v": 0, "m": 1},
        end={"m": 0.6},
        limits={"thrust": (0, 3.5), "v": (0, np.inf), "h": (1, np.inf), "m": (0.5, 1)},
        cost=terminal(lambda s: -s.h),
    )
    guess = {"time": [0, 0.2], "x": [[1, 0.05, 1], [1.01, 0.05, 0.6]], "controls": [[1.7], [1.7]]}
    return Example(problem, 200, {"transcription": "trapezoidal", "guess": guess}, published=-1.01283)


def van_der_pol() -> Example:
    """The damped oscillator: 2.86696."""
    oscillator = System(["x1", "x2"], ["u"], lambda s: [(1 - s.x2**2) * s.x1 - s.x2 + s.u, s.x1])
    cost = running(lambda s: s.x1**2 + s.x2**2 + s.u**2)
    return Example(Problem(oscillator, 5.0, start={"x1": 0, "x2": 1}, cost=cost), 100, published=2.86696)


EXAMPLES: dict[str, Callable[[], Example]] = {
    make.__name__.replace("_", " "): make
    for make in (
        *(swing_up, arm, acrobot, acrobot_from_1_0, acrobot_from_1_3, branched_acrobot, obstacle, four_bar),
        *(satellite, two_wheels, pitcher, brachistochrone, bryson_denham, hager, hypersensitive, goddard),
        van_der_pol,
    )
}
"""all of them, by name"""

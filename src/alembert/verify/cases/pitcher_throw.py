"""A pitch."""

import numpy as np

from alembert import library
from alembert.optimal import Problem, effort, terminal
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Leyendecker, Ober-Blöbaum, Marsden, Ortiz, Discrete mechanics and optimal control for constrained systems "
    "(2009/2010), section 7.3: the optimal pitch, Figures 15 and 16",
    kind="published",
    tags=("optimal", "tree"),
    slow=True,
    missing="masses, sizes and bounds: T = 0.41545 s and the momentum 24.502 cannot be compared",
)
def pitcher_throw() -> Items:
    """In a time that is found, within bounds: the momentum about the vertical changes by the torso's torque alone."""
    model = library.pitcher()
    q = model.neutral()
    q[-1] = np.pi / 4
    problem = Problem(
        model,
        (0.1, 1.0),
        start={"q": q, "v": 0},
        end={
            "hand forward": (lambda s: s.frame("hand").translation[1], (0.0, np.inf)),
            "hand up": (lambda s: s.frame("hand").translation[2], (0.0, np.inf)),
        },
        limits={
            "q": {"torso": (-1.2, 1.6), "elbow": (0.0, 2.5)},
            "v": 40.0,
            "tau": {"torso": 150.0, "shoulder": 100.0, "elbow": 60.0},
        },
        cost=terminal(lambda s: -s.velocity("hand")[1]) + 1e-3 * effort(),
    )
    back, forward = model.neutral(), model.neutral()
    back[0], back[-1] = -0.8, 1.8
    forward[0], forward[1:5], forward[-1] = 1.0, (0.8, 0.6, 0.0, 0.0), 0.3
    guess = {"time": [0.0, 0.3, 0.5], "q": np.array([q, back, forward])}
    solution = problem.solve(35, guess=guess)
    yield Check("solved", float(solution.success), 1.0, 0.0, "the solver says so")
    step = solution.duration / 35
    about_vertical = solution.momenta[:, 0]
    lost = np.abs(np.diff(about_vertical) - step * solution.efforts[:, 0]).max()
    yield Check(
        "momentum less impulse [N m s]", lost, 0.0, 1e-9, "the published claim; rounding of some 10 N m s"
    )
    torque = np.abs(solution.efforts[:, 0]).max()
    yield Check("torque of the torso within 150 N m", max(0.0, torque - 150), 0.0, 1e-5, "bounds are kept")
    elbow = solution.q[:, -1]
    bent = max(0.0, -elbow.min(), elbow.max() - 2.5)
    yield Check("the elbow bends one way [rad]", bent, 0.0, 1e-6, "bounds are kept")
    lines = tuple(Line(n, solution.time, solution.q[:, k]) for k, n in ((0, "torso"), (-1, "elbow")))
    yield Plot("t [s]", "q [rad]", lines)

"""A regulator by the sweep in time."""

import numpy as np
from scipy.linalg import solve_discrete_are

from alembert.sweeps.linear_quadratic import LQProblem, Stage, solve_lq
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Discrete-time regulator of a double integrator: the stationary Riccati equation (Bryson, Ho, Applied
    Optimal Control, 1975, ch. 5)""",
    kind="closed form",
    tags=("operators",),
    parameters={"step": 0.1, "stages": 60},
)
def double_integrator_regulator(step: float, stages: int) -> Items:
    """The sweep that gives accelerations along bodies gives feedback gains along time."""
    A, B = np.array([[1.0, step], [0.0, 1.0]]), np.array([[step**2 / 2], [step]])
    Q, R = np.diag([1.0, 0.1]), np.array([[0.01]])
    solution = solve_lq(LQProblem([Stage(A, B, Q, R=R)] * stages, initial=[1.0, 0.0]))
    P = solve_discrete_are(A, B, Q, R)
    K = np.linalg.solve(B.T @ P @ B + R, B.T @ P @ A)
    reason = "the closed loop forgets the end by 0.8 per stage: 0.8^120 = 2e-12"
    yield Check("gain of the first stage", solution.gains[0], K, 1e-9, reason)
    yield Check("cost to go of the first stage", solution.P[0], P, 1e-8, reason)
    x = np.array(solution.states)
    t = step * np.arange(1, len(x) + 1)
    yield Plot("t [s]", "state", (Line("place", t, x[:, 0]), Line("speed", t, x[:, 1])))

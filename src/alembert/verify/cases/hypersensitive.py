"""Nothing happens for most of the time."""

import numpy as np

from alembert.optimal import Problem, System, running
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Betts, Practical methods for optimal control using nonlinear programming, example 10.7; cost 6.7241, and "
    "6.724113810 computed independently on an infinite horizon",
    kind="published",
    tags=("optimal",),
)
def hypersensitive() -> Items:
    """The equation y' = -y^3 + u over 10000 s, of which only the first and the last few matter."""
    system = System(["y"], ["u"], lambda s: [-(s.y**3) + s.u])
    cost = running(lambda s: s.y**2 + s.u**2)
    problem = Problem(system, 10000.0, start={"y": 1}, end={"y": 1.5}, cost=cost)
    half = np.concatenate([np.linspace(0, 15, 301)[:-1], np.geomspace(15, 5000, 60)]) / 1e4
    nodes = np.concatenate([half, 1 - half[-2::-1]])
    guess = {"time": [0, 5, 9995, 10000], "x": [[1], [0], [0], [1.5]]}
    solution = problem.solve(len(nodes) - 1, nodes=nodes, transcription="radau", guess=guess)
    yield Check("cost", solution.cost, 6.7241, 1e-4, "the last digit in print")
    begin = solution.time < 10
    yield Plot("t [s]", "y", (Line("", solution.time[begin], solution.state("y")[begin]),))

"""Wheels turn a satellite at the least effort."""

import numpy as np

from alembert.optimal import Problem, examples
from alembert.optimal.forms import dimensions
from alembert.optimal.schemes import scheme
from alembert.optimal.stages import cut
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Leyendecker, Ober-Blöbaum, Marsden, Ortiz, Discrete mechanics and optimal control for constrained systems "
    "(2009/2010), section 7.2: satellite with three rotors, Remark 7.1",
    kind="published",
    tags=("optimal", "tree"),
    slow=True,
    missing="inertias are not stated: the control effort 2.8242e6 cannot be compared",
)
def satellite_reorientation() -> Items:
    """To the rotation vector (pi/14)(1, 2, 3) in 5 s, h = 0.1, from rest to rest: the momentum stays zero."""
    solution = examples.satellite().solve()
    model = solution.model
    assert model is not None
    yield Check("solved", float(solution.success), 1.0, 0.0, "the solver says so")
    momentum = np.abs(model.momentum(solution.q, solution.v, about="center_of_mass")).max()
    yield Check("total momentum [N m s]", momentum, 0.0, 1e-10, "rounding of 50 steps of momenta of order 10")
    rest = {"q": model.neutral(), "v": 0}
    everything = [joint.name for joint in model.joints]
    full = Problem(model, 5.0, start=rest, end=rest, actuated=everything, limits=None)
    counts = dimensions(cut(full, scheme("dmoc"), 50))
    yield Check("variables", counts[0], 909, 0, "counts, with a force on every joint as the paper has it")
    yield Check("equations", counts[1], 477, 0, "counts")
    yield Plot(
        "t [s]",
        "torque [N m]",
        tuple(Line(n, solution.time[:-1], solution.control(n)) for n in solution.problem.plant.controls),
    )

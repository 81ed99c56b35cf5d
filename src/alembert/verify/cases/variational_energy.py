"""A variational scheme over a long time."""

import numpy as np

from alembert import library
from alembert.simulate import simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Leyendecker, Ober-Blöbaum, Marsden, Ortiz (2010), section 3; Hairer, Lubich, Wanner, Geometric
    Numerical Integration (2006), ch. VI: no drift of the energy, error of order h^2""",
    kind="published",
    tags=("tree", "simulation"),
    parameters={"duration": 200.0, "step": 0.02},
)
def variational_energy(duration: float, step: float) -> Items:
    """The energy of a double pendulum over ten thousand steps: bounded, without drift, of order h^2."""
    model = library.two_link()
    worst = []
    for h in (step, step / 2):
        run = simulate(
            model,
            [-1.2, 0.3],
            duration=duration,
            step=h,
            interval=0.2,
            integrator="variational",
            progress=False,
        )
        error = run.energy - run.energy[0]
        half = len(error) // 2
        worst.append(float(np.max(np.abs(error))))
        drift = abs(float(np.mean(error[half:]) - np.mean(error[:half]))) / worst[-1]
        yield Check(
            f"h = {h:g}: drift of the mean / error", drift, 0.0, 0.1, "no trend: the two halves agree"
        )
    order = np.log2(worst[0] / worst[1])
    yield Check("order", order, 2.0, 0.2, "from two steps")
    yield Plot("t [s]", "change of energy [J]", (Line("", run.time, error),))

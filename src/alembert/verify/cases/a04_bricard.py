"""IFToMM A04."""

import numpy as np

from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import bricard
from alembert.verify.motion import runge_kutta


@case(
    source="""IFToMM library of computational benchmark problems, A04 (Bricard): one freedom, redundant
    constraints, constant energy""",
    kind="published",
    tags=("loops", "simulation", "iftomm"),
    parameters={"duration": 2.0, "steps": 400},
)
def a04_bricard(duration: float, steps: int) -> Items:
    """Bricard's mechanism moves although the count of its constraints says that it cannot."""
    model = bricard()
    q = np.zeros(5)
    found = model.constraint_analysis(q)
    counts = (found.rows, found.rank, found.degrees_of_freedom)
    yield Check("rows, rank, freedoms", counts, (5, 4, 1), 0, "integers")
    energies = [float(model.energy(q, np.zeros(5)))]
    q, _ = runge_kutta(
        model,
        q,
        np.zeros(5),
        duration=duration,
        steps=steps,
        each=lambda q, v: energies.append(float(model.energy(q, v))),
    )
    drift = np.array(energies) - energies[0]
    yield Check(
        "change of energy [J]",
        np.max(np.abs(drift)),
        0.0,
        1e-6,
        "order 4 at h = 5 ms; kinetic energy some 10 J",
    )
    yield Check("loop", np.max(np.abs(model.constraint_residual(q))), 0.0, 1e-12, "after projection")
    yield Check("rank after the motion", model.constraint_analysis(q).rank, 4, 0, "integer")
    yield Plot("t [s]", "change of energy [J]", (Line("", np.linspace(0, duration, steps + 1), drift),))

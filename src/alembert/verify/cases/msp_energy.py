"""Chen and Ou 1989, validation (I)."""

import numpy as np

from alembert.simulate import simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import RRC_MISSING, rrc_arm
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Chen, Ou",
        "validation (I), seven-link RRC arm",
    ),
    kind="published",
    tags=("tree", "simulation", "acc1989"),
    parameters={"duration": 1.0, "step": 5e-4},
    missing=RRC_MISSING,
)
def msp_energy(duration: float, step: float) -> Items:
    """Without torques the energy of a geared arm is constant."""
    model = rrc_arm(oblique=True)
    q0 = [0.2, 0.4, -0.6, 0.8, 0.3, -0.5, 0.7]
    v0 = [0.3, -0.5, 0.8, 1.0, -0.7, 0.9, 1.2]
    run = simulate(
        model, q0, v0, duration=duration, step=step, integrator="rk4", interval=0.01, progress=False
    )
    drift = (run.energy - run.energy[0]) / np.max(run.kinetic_energy)
    yield Check("drift / kinetic energy", np.max(np.abs(drift)), 0.0, 1e-8, "order 4 at h = 0.5 ms")
    yield Check("change of the speeds > 0.3", float(np.max(np.abs(run.v[-1] - v0)) > 0.3), 1.0, 0, "it moves")
    yield Plot("t [s]", "drift / kinetic energy", (Line("", run.time, drift),))

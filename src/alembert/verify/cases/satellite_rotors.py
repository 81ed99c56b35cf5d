"""Leyendecker, Ober-Blöbaum, Marsden and Ortiz 2010."""

import numpy as np

from alembert import library
from alembert.simulate import simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Leyendecker, Ober-Blöbaum, Marsden, Ortiz, Discrete mechanics and optimal control for constrained
    systems (2009/2010), section 7.2: satellite with rotors under internal torques""",
    kind="published",
    tags=("tree", "simulation"),
    parameters={"duration": 5.0, "step": 0.005},
    missing="masses and sizes; those of alembert.library",
)
def satellite_rotors(duration: float, step: float) -> Items:
    """Internal torques leave the total angular momentum of a satellite, to rounding with the variational scheme.

    The momentum map is that about a fixed point; about the centre of mass it differs by c x p, and c follows p/m to the
    order of the scheme only.
    """
    model = library.satellite()
    v0 = np.r_[0.1, -0.2, 0.05, np.zeros(3), 1.0, 2.0, 3.0]
    efforts = {"spin_x": 2.0, "spin_y": -3.0, "spin_z": 1.0}
    lines = []
    for integrator, limit in (("variational", 1e-12), ("rk4", 1e-9)):
        run = simulate(
            model,
            model.neutral(),
            v0,
            duration=duration,
            step=step,
            efforts=efforts,
            integrator=integrator,
            progress=False,
        )
        h = run.momentum[:, :3]
        drift = np.max(np.abs(h - h[0]), axis=1) / np.max(np.abs(h))
        reason = "exact but for rounding over 1000 steps" if limit < 1e-10 else "order 4 at h = 5 ms"
        yield Check(f"{integrator}: drift / momentum", np.max(drift), 0.0, limit, reason)
        lines.append(Line(integrator, run.time[1:], np.maximum(drift[1:], 1e-18)))
    yield Check("the body turns", float(np.ptp(run.v[:, 2]) > 0.01), 1.0, 0, "something happens")
    yield Plot("t [s]", "drift / momentum", tuple(lines), log_y=True)

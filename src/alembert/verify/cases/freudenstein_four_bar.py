"""Freudenstein's equation."""

import numpy as np

from alembert.joints import Revolute
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Freudenstein, Approximate synthesis of four-bar linkages, Trans. ASME 77 (1955): the displacement
    equation""",
    kind="published",
    tags=("loops",),
    parameters={"crank": 0.4, "coupler": 1.1, "rocker": 0.9, "ground": 1.0},
)
def freudenstein_four_bar(crank: float, coupler: float, rocker: float, ground: float) -> Items:
    """Assembled four-bars satisfy Freudenstein's equation around the turn of the crank."""
    a, b, c, d = crank, coupler, rocker, ground
    z = (0.0, 0.0, 1.0)
    builder = ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    builder.body("crank", Inertia.rod(1.0, (0, 0, 0), (a, 0, 0)), joint=Revolute(z), joint_name="in")
    bar = Inertia.rod(1.0, (0, 0, 0), (b, 0, 0))
    builder.body("coupler", bar, joint=Revolute(z), joint_name="pin", parent="crank", placement=(a, 0, 0))
    bar = Inertia.rod(1.0, (0, 0, 0), (c, 0, 0))
    builder.body("rocker", bar, joint=Revolute(z), joint_name="out", placement=(d, 0, 0))
    builder.frame("end", "coupler", (b, 0, 0)).frame("head", "rocker", (c, 0, 0))
    builder.loop("joint", Revolute(z), "head", "end")
    model = builder.build()
    turns = np.linspace(0, 2 * np.pi, 13)
    residuals, rockers = [], []
    for t in turns:
        q = model.assemble([t, 0.5 - t, 1.5], fixed=["in"]).q
        left = d / a * np.cos(q[2]) - d / c * np.cos(t) + (a * a - b * b + c * c + d * d) / (2 * a * c)
        residuals.append(left - np.cos(t - q[2]))
        rockers.append(q[2])
    yield Check(
        "residual of the equation", residuals, np.zeros(13), 1e-11, "loops closed to 1e-12, sines of angles"
    )
    yield Plot("crank [rad]", "rocker [rad]", (Line("", turns, np.unwrap(rockers)),))

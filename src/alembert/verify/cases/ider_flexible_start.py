"""Ider 1989, joint drives for flexible robots: the rigid limit."""

import numpy as np

from alembert.joints import Revolute
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Ider (joint drives)",
        "place of the point A at the start",
    ),
    kind="published",
    tags=("tree", "acc1989"),
    parameters={"link1": 1.0, "point": 1.8, "angles_deg": (80.0, -160.0), "m": (30.0, 15.0)},
    missing="""area moment of link 2, boundary conditions of the modes, gravity: only the rigid kinematics are
    used; L2 in (30)-(31) is read as the distance of A""",
)
def ider_flexible_start(
    link1: float, point: float, angles_deg: tuple[float, float], m: tuple[float, float]
) -> Items:
    """The point A on the second link at the start of the path."""
    builder = ModelBuilder("ider_flexible", gravity=(0, 0, 0))
    builder.body("one", Inertia.rod(m[0], (0, 0, 0), (link1, 0, 0)), joint=Revolute(), joint_name="theta1")
    rod = Inertia.rod(m[1], (0, 0, 0), (2.7, 0, 0))
    builder.body("two", rod, joint=Revolute(), joint_name="theta2", parent="one", placement=(link1, 0, 0))
    model = builder.frame("A", "two", (point, 0, 0)).build()
    place = model.frame_pose(np.deg2rad(angles_deg), "A").translation
    yield Check("x, y of A [m]", place[:2], (0.4862, -0.7878), 5e-5, "four printed digits")

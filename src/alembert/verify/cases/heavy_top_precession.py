"""Steady precession of a heavy top."""

import numpy as np

from alembert.joints import Spherical
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.motion import motion
from alembert.verify.programs import Program


@case(
    source="""Lagrange's top: steady precession, (I1 - I3) W^2 cos(theta) - I3 s W + m g l = 0 with s the spin
    (Goldstein, Classical Mechanics, sec. 5.7)""",
    kind="closed form",
    tags=("tree",),
    parameters={
        "mass": 2.0,
        "distance": 0.3,
        "across": 0.25,
        "along": 0.1,
        "tilt": 1.0,
        "precession": 1.7,
        "duration": 3.0,
    },
)
def heavy_top_precession(
    program: Program,
    mass: float,
    distance: float,
    across: float,
    along: float,
    tilt: float,
    precession: float,
    duration: float,
) -> Items:
    """A top spun at the right rate keeps its tilt and turns about the vertical evenly."""
    builder = ModelBuilder("lagrange_top")
    own = across - mass * distance**2  # about the centre of mass
    builder.body("top", Inertia(mass, (0, 0, distance), (own, 0, own, 0, 0, along)), joint=Spherical())
    model = builder.build()
    W = precession
    # I3 w3 = [m g l + I1 W^2 cos(tilt)]/W with w3 = s + W cos(tilt)
    w3 = (mass * 9.81 * distance + across * W**2 * np.cos(tilt)) / (along * W)
    q0 = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0])  # about x: the axis leans to -y
    v0 = np.array([0.0, W * np.sin(tilt), w3])
    t, q, _ = motion(model, program.load(model), q0, v0, duration=duration)
    axis = np.array([model.frame_pose(x, "top").rotation[:, 2] for x in q])
    reason = "error control at 1e-13 over some 80 turns of the spin"
    yield Check("cosine of the tilt", axis[:, 2], np.full(len(t), np.cos(tilt)), 1e-9, reason)
    turned = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    yield Check("angle of precession [rad]", turned[-1] - turned[0], W * duration, 1e-8, reason)
    yield Plot(
        "t [s]",
        "place of the axis",
        (Line("x", t, axis[:, 0]), Line("y", t, axis[:, 1]), Line("z", t, axis[:, 2])),
    )

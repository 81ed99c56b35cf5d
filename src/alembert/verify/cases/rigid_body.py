"""A single body: Euler's equations, Lagrange's top, a throw."""

import numpy as np

from alembert.joints import Free, Spherical
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import heavy_top, rigid_body
from alembert.verify.motion import motion
from alembert.verify.programs import DynamicsProgram


@case(
    source="Galilei's parabola and the conservation of momentum, for a body thrown with spin",
    kind="closed form",
    tags=("tree",),
    parameters={"duration": 2.0},
)
def projectile(program: DynamicsProgram, duration: float) -> Items:
    """The centre of mass of a thrown, spinning body follows a parabola, its angular momentum stays."""
    builder = ModelBuilder("thrown")
    builder.body("body", Inertia.box(2.0, (0.1, 0.3, 0.6)), joint=Free())
    model = builder.build()
    v0 = np.array([1.0, -2.0, 0.5, 3.0, 1.0, 6.0])
    t, q, v = motion(model, program.load(model), model.neutral(), v0, duration=duration)
    expected = v0[3:] * duration + np.array([0, 0, -9.81]) * duration**2 / 2
    yield Check("place [m]", q[-1, :3], expected, 1e-10, "error control at 1e-13")
    h = np.array([model.momentum(x, y)[:3] for x, y in zip(q, v, strict=True)])
    yield Check("angular momentum [kg m^2/s]", h, np.tile(h[0], (len(t), 1)), 1e-11, "error control at 1e-13")
    yield Plot("t [s]", "height [m]", (Line("", t, q[:, 2]),))


@case(
    source="""Euler's equations of a symmetric body: w turns about the axis at (I3 - I1)/I1 w3 (Goldstein,
    Classical Mechanics, sec. 5.6)""",
    kind="closed form",
    tags=("tree",),
    parameters={"across": 1.2, "along": 2.0, "start": (0.5, 0.0, 3.0), "duration": 5.0},
)
def symmetric_body(
    program: DynamicsProgram, across: float, along: float, start: tuple[float, ...], duration: float
) -> Items:
    """The angular velocity of a free symmetric body turns about its axis evenly."""
    model = rigid_body((across, across, along))
    t, _, w = motion(model, program.load(model), model.neutral(), start, duration=duration)
    rate = (along - across) / across * start[2]
    expected = np.column_stack(
        [start[0] * np.cos(rate * t), start[0] * np.sin(rate * t), np.full(len(t), start[2])]
    )
    yield Check("angular velocity [rad/s]", w, expected, 1e-10, "error control at 1e-13")
    yield Plot("t [s]", "[rad/s]", (Line("w1", t, w[:, 0]), Line("w2", t, w[:, 1])))


@case(
    source="""Euler's equations of a free body, Jacobi's elliptic functions: half a period of the unstable middle
    axis""",
    kind="closed form",
    tags=("tree",),
    parameters={"moments": (1.0, 2.0, 3.0), "start": (0.01, 2.0, 0.01), "flip": 10.977572939663},
)
def dzhanibekov_flip(
    program: DynamicsProgram, moments: tuple[float, float, float], start: tuple[float, ...], flip: float
) -> Items:
    """A body spinning about its middle axis turns over at the time of the closed form (Dzhanibekov)."""
    model = rigid_body(moments)
    t, _, w = motion(model, program.load(model), model.neutral(), start, duration=flip)
    reason = "error control at 1e-13; the unstable motion multiplies errors by some 1e3 before the flip"
    yield Check("angular velocity [rad/s]", w[-1], (-0.01, -2.0, 0.01), 1e-9, reason)
    yield Plot("t [s]", "[rad/s]", tuple(Line(f"w{k + 1}", t, w[:, k]) for k in range(3)))


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
    program: DynamicsProgram,
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


@case(
    source="""Heavy top of the Lie-group integrator literature (Brüls, Cardona, Arnold 2012, sec. 5); attitude
    computed independently, eight digits""",
    kind="reference",
    tags=("tree",),
    parameters={"duration": 0.2, "spin": (0.0, 150.0, -4.61538)},
)
def heavy_top_attitude(program: DynamicsProgram, duration: float, spin: tuple[float, ...]) -> Items:
    """Attitude of a fast heavy top after 0.2 s."""
    model = heavy_top()
    t, q, _ = motion(model, program.load(model), model.neutral(), spin, duration=duration)
    expected = np.array([-0.70827915, 0.43878109, 0.54572840, 0.08939975])
    found = q[-1] * np.sign(q[-1] @ expected)  # a quaternion and its negative are one attitude
    yield Check("quaternion (w, x, y, z)", found, expected, 1e-8, "eight digits")
    yield Plot("t [s]", "quaternion", tuple(Line(name, t, q[:, k]) for k, name in enumerate("wxyz")))

"""Published mechanisms and arms, as models; each docstring names the source of the data.

Motions for cases: any program's accelerations, integrated here, so that only they are compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from alembert.errors import NumericalError
from alembert.joints import Free, JointType, Prismatic, Revolute, Rotor, Spherical
from alembert.model import WORLD, Inertia, Model, ModelBuilder, Placement
from alembert.verify.programs import Dynamics

Array = np.ndarray
Z = (0.0, 0.0, 1.0)


@functools.cache
def four_bars(windows: int) -> Model:
    """IFToMM A02: `windows` squares of 1 m bars side by side on the ground, in the plane of gravity."""
    builder = ModelBuilder(f"four_bars_{windows}", gravity=(0.0, -9.81, 0.0))
    upright, beam = Inertia.rod(1.0, (0, 0, 0), (0, 1, 0)), Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    for i in range(windows + 1):
        builder.body(
            f"post{i}", upright, joint=Revolute(Z), joint_name=f"foot{i}", placement=(float(i), 0, 0)
        )
        builder.frame(f"top{i}", f"post{i}", (0.0, 1.0, 0.0))
    for i in range(windows):
        builder.body(
            f"beam{i}",
            beam,
            joint=Revolute(Z),
            joint_name=f"knee{i}",
            parent=f"post{i}",
            placement=(0, 1.0, 0),
        )
        builder.frame(f"end{i}", f"beam{i}", (1.0, 0.0, 0.0))
        builder.loop(f"window{i}", Revolute(Z), f"top{i + 1}", f"end{i}")
    return builder.build()


def parallelogram(model: Model, angle: float, rate: float) -> tuple[Array, Array]:
    """All posts of `four_bars` at one angle (0: upright), beams level."""
    q = np.array([angle if name.startswith("foot") else -angle for name in model.coordinate_names])
    v = np.array([rate if name.startswith("foot") else -rate for name in model.speed_names])
    return q, v


@functools.cache
def bricard() -> Model:
    """IFToMM A04: five rods of 1 m through the corners of a cube's hexagon, axes y z x y z x."""
    points = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
    axes = np.array([(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)], dtype=float)
    builder = ModelBuilder("bricard", gravity=(0, -9.81, 0))
    parent, origin = WORLD, np.zeros(3)
    for k in range(5):
        along = points[k + 1] - points[k]
        size = np.where(along != 0, 1.0, 0.1)
        rod = Inertia.box(1.0, tuple(size)).at(Placement(tuple(along / 2)))
        builder.body(
            f"rod{k}",
            rod,
            joint=Revolute(tuple(axes[k])),
            joint_name=f"hinge{k}",
            parent=parent,
            placement=tuple(points[k] - origin),
        )
        parent, origin = f"rod{k}", points[k]
    builder.frame("end", parent, tuple(points[5] - origin)).frame("wall", WORLD, tuple(points[5]))
    builder.loop("last", Revolute(tuple(axes[5])), "wall", "end")
    return builder.build()


SQUEEZER_START = {
    "beta": -0.0617138900142764496,
    "theta": 0.0,
    "gamma": 0.455279819163070380,
    "phi": 0.222668390165885885,
    "delta": 0.487364979543842550,
    "omega": -0.222668390165885885,
    "epsilon": 1.23054744454982119,
}
SQUEEZER_DRIVE = 0.033  # N m
_STIFFNESS, _LENGTH, _END = 4530.0, 0.07785, np.array([0.014, 0.072, 0.0])  # of the spring


@functools.cache
def squeezer() -> Model:
    """Andrews' squeezer as seven bodies in a tree with three loops (data: test set for IVP solvers)."""
    builder = ModelBuilder("squeezer", gravity=(0, 0, 0))
    m = [0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498]
    I = [2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5]
    xa, ya, xb, yb = -0.06934, -0.00227, -0.03635, 0.03273
    d, da, e, ea, rr, ra = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
    ss, sa, sb, sc, sd, ta, tb = 0.035, 0.01874, 0.01043, 0.018, 0.02, 0.02308, 0.00916
    u, ua, ub, zf, zt, fa = 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421

    def hinge(
        name: str, k: int, com: tuple[float, float], parent: str, at: tuple[float, float], angle: float = 0.0
    ) -> None:
        builder.body(
            f"K{k + 1}",
            Inertia(m[k], (*com, 0.0), (I[k], 0, I[k], 0, 0, I[k])),
            joint=Revolute(Z),
            joint_name=name,
            parent=parent,
            placement=Placement.from_rpy((0, 0, angle), (*at, 0.0)),
        )

    # the crank along x at beta = 0; the rod points back from the pin by pi: -d cos(beta + theta)
    hinge("beta", 0, (ra, 0), WORLD, (0, 0))
    hinge("theta", 1, (-da, 0), "K1", (rr, 0))
    # body 3 at B: its point at ss (sin g, -cos g) meets the rod's end
    hinge("gamma", 2, (sb, -sa), WORLD, (xb, yb))
    # bodies 4/5 from A: end of 5 at zt (cos de, sin de), then 4 by e (sin(ph+de), -cos(ph+de))
    hinge("delta", 4, (ta, tb), WORLD, (xa, ya))
    hinge("phi", 3, (e - ea, 0), "K5", (zt, 0), -np.pi / 2)
    # bodies 7/6 from A: end of 7 at u (sin ep, -cos ep), then 6 by zf (cos(om+ep), sin(om+ep))
    hinge("epsilon", 6, (-ub, -ua), WORLD, (xa, ya))
    hinge("omega", 5, (zf - fa, 0), "K7", (0, -u))
    builder.frame("rod_end", "K2", (-d, 0, 0)).frame("gamma_end", "K3", (0, -ss, 0))
    builder.frame("spring", "K3", (sd, -sc, 0))
    builder.frame("phi_end", "K4", (e, 0, 0)).frame("omega_end", "K6", (zf, 0, 0))
    for end in ("gamma_end", "phi_end", "omega_end"):
        builder.loop(end, Revolute(Z), "rod_end", end)
    return builder.build()


def squeezer_spring(q: Array) -> tuple[Array, float]:
    """The wrench of the spring on its frame of body 3, and its energy."""
    X = squeezer().frame_pose(q, "spring")
    pull = _END - X.translation
    length = np.linalg.norm(pull)
    stretch = float(length - _LENGTH)
    force = X.rotation.T @ (_STIFFNESS * stretch / length * pull)
    return np.concatenate([np.zeros(3), force]), float(_STIFFNESS * stretch**2 / 2)


def squeezer_accelerations(q: Array, v: Array) -> Array:
    """Under the drive of the crank and the spring."""
    model = squeezer()
    tau = np.where(np.array(model.speed_names) == "beta", SQUEEZER_DRIVE, 0.0)
    return model.forward_dynamics(q, v, tau, wrenches={"spring": squeezer_spring(q)[0]})


NIKRAVESH_PRINTED = np.sqrt(2) * np.array([[0, 0, -1, -1], [0, 0, -1, -1], [0, -1, -1, 0]])
NIKRAVESH_AXIS = np.array([1.0, -1.0, 0.0]) / np.sqrt(2)


@functools.cache
def nikravesh() -> Model:
    """Nikravesh, Gim, Arabyan and Rein (1989): a prismatic joint and four parallel revolutes, cut at the last.

    D* B is printed, the geometry is not; the columns u x d determine it: u is normal to all of them, and d = c x u.
    """
    u = NIKRAVESH_AXIS
    at = [
        -np.cross(NIKRAVESH_PRINTED[:, k], u) for k in range(1, 4)
    ]  # R2, R3, R4, with the cut at the origin
    builder = ModelBuilder("nikravesh")
    block = Inertia.box(1.0, (0.2, 0.2, 0.2))
    builder.body("carriage", block, joint=Prismatic((1, 0, 0)), joint_name="T1")
    previous, origin = "carriage", np.zeros(3)
    for k in range(3):
        builder.body(
            f"link{k + 2}",
            block,
            joint=Revolute(tuple(u)),
            joint_name=f"R{k + 2}",
            parent=previous,
            placement=tuple(at[k] - origin),
        )
        previous, origin = f"link{k + 2}", at[k]
    builder.frame("cut", previous, tuple(-origin))
    builder.loop("R5", Revolute(tuple(u)), "carriage", "cut")
    return builder.build()


@functools.cache
def lin_yae_two_link() -> Model:
    """The two-link of Lin and Yae (1989).

    Their figure with the data is lost; the printed matrices determine M = [[30, 50], [50, 140]] and the stiffness
    g [[10, 10], [10, 40]] in the order (theta2, theta1), which these links have. Their torques act the other way round.
    """
    builder = ModelBuilder("two_link", gravity=(0.0, 0.0, -9.80665))
    link = Inertia(10.0, (0.0, 0.0, -1.0), (20.0, 0.0, 20.0, 0.0, 0.0, 20.0))
    builder.body("first", link, joint=Revolute((0.0, -1.0, 0.0)), joint_name="theta1")
    builder.body(
        "second",
        link,
        joint=Revolute((0.0, -1.0, 0.0)),
        joint_name="theta2",
        parent="first",
        placement=(0.0, 0.0, -2.0),
    )
    return builder.actuator("T2", "theta2", gear=-1.0).actuator("T1", "theta1", gear=-1.0).build()


# --- the seven-link arm of Chen and Ou ------------------------------------------------------------------------

_RRC_MASSES = (104.2, 55.4, 28.8, 20.4, 11.1, 4.7, 4.7)
_RRC_MOMENTS = (
    (2.05, 2.05, 0.7),
    (0.4, 0.4, 0.3),
    (0.6, 0.6, 0.2),
    (0.2, 0.2, 0.2),
    (0.1, 0.1, 0.04),
    (0.03, 0.03, 0.03),
    (0.03, 0.03, 0.03),
)
_RRC_OFFSETS = (
    (0, 0, 0),
    (0, 0, 0.5),
    (0.3, 0.1, 0),
    (0.1, 0, 0.3),
    (0.3, -0.1, 0),
    (0.08, 0, 0.4),
    (0.19, -0.08, 0),
)
_RRC_RATIOS = (160.0, 160.0, 200.0, 200.0, 200.0, 200.0, 160.0)
_RRC_ROTORS = (0.003, 0.003, 0.0003, 0.0003, 0.0002, 0.0002, 0.0002)
_RRC_AXES = ((0, 0, 1), (1, 0, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0))
RRC_MISSING = """orientations of the links (a figure): all link frames are parallel at q = 0, and each joint turns about
the axis of its rotor"""


@functools.cache
def rrc_arm(
    *,
    first_ratio: float = _RRC_RATIOS[0],
    oblique: bool = False,
    gravity: float = -9.81,
    center: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Model:
    """Chen and Ou (1989), "MSP": masses, inertias, joint offsets and rotors of their seven-link arm.

    The orientations of its links are in a figure only: here all link frames are parallel at q = 0 and each joint turns
    about the axis of its rotor. `oblique` gives the rotors (but the first) axes of their own, off the joint axes.
    """
    rng = np.random.default_rng(1)
    builder = ModelBuilder("rrc", gravity=(0.0, 0.0, gravity))
    for i in range(7):
        axis = np.array(_RRC_AXES[i], dtype=float)
        if oblique and i:
            axis = rng.normal(size=3)
        ratio = _RRC_RATIOS[i] if i else first_ratio
        xx, yy, zz = _RRC_MOMENTS[i]
        builder.body(
            f"link{i + 1}",
            Inertia(_RRC_MASSES[i], center, (xx, 0.0, yy, 0.0, 0.0, zz)),
            joint=Revolute(_RRC_AXES[i]),
            joint_name=f"joint{i + 1}",
            parent=f"link{i}" if i else WORLD,
            placement=_RRC_OFFSETS[i],
            rotors=(Rotor(ratio, _RRC_ROTORS[i], tuple(axis / np.linalg.norm(axis))),),
        )
    return builder.build()


def principal(mass: float, moments: Any, center: tuple[float, ...] = (0.0, 0.0, 0.0)) -> Inertia:
    """A body with these moments about its centre of mass, along its axes."""
    xx, yy, zz = moments
    return Inertia(mass, center, (xx, 0.0, yy, 0.0, 0.0, zz))


def one_body(
    name: str,
    inertia: Inertia,
    joint: JointType | None = None,
    joint_name: str = "flight",
    gravity: float = 0.0,
) -> ModelBuilder:
    """A body that flies, or on another joint; gravity along -z."""
    builder = ModelBuilder(name, gravity=(0, 0, -gravity))
    return builder.body(name, inertia, joint=joint or Free(), joint_name=joint_name)


@functools.cache
def heavy_top() -> Model:
    """The fast top of the Lie-group literature: m = 15, centre of mass at (0, 1, 0) from the fixed point."""
    inertia = principal(15.0, (0.234375, 0.46875, 0.234375), (0, 1, 0))
    return one_body("top", inertia, Spherical(), gravity=9.81).build()


@functools.cache
def rigid_body(moments: tuple[float, float, float]) -> Model:
    """A body turning freely about its centre of mass, without gravity."""
    return one_body("body", principal(1.0, moments), Spherical()).build()


Efforts = Callable[[float, Array, Array], Array]


def motion(
    model: Model,
    dynamics: Dynamics,
    q0: Any,
    v0: Any = None,
    *,
    duration: float,
    efforts: Efforts | None = None,
    records: int = 201,
    tolerance: float = 1e-13,
) -> tuple[Array, Array, Array]:
    """Times (records,), configurations (records, nq) and speeds (records, nv) by DOP853 on (q, v).

    dq/dt is the rate of the model's coordinates: unit quaternions stay so to the tolerance.
    """
    q = np.asarray(q0, dtype=float)
    v = np.zeros(model.nv) if v0 is None else np.asarray(v0, dtype=float)
    zero = np.zeros(model.nv)

    def slope(t: float, x: Array) -> Array:
        q, v = x[: model.nq], x[model.nq :]
        tau = zero if efforts is None else efforts(t, q, v)
        return np.concatenate([model.rate(q, v), dynamics.forward_dynamics(q, v, tau)])

    found = scipy.integrate.solve_ivp(
        slope,
        (0.0, duration),
        np.concatenate([q, v]),
        method="DOP853",
        t_eval=np.linspace(0.0, duration, records),
        rtol=tolerance,
        atol=tolerance,
    )
    if not found.success:
        raise NumericalError(f"motion: {found.message}")
    return found.t, found.y[: model.nq].T, found.y[model.nq :].T


def runge_kutta(
    model: Model,
    q: Array,
    v: Array,
    *,
    duration: float,
    steps: int,
    accelerations: Callable[[Array, Array], Array] | None = None,
    each: Callable[[Array, Array], None] | None = None,
) -> tuple[Array, Array]:
    """The classical method for a model with loops, each step followed by a projection; `each` sees every state."""
    h = duration / steps
    zero = np.zeros(model.nv)
    a = accelerations or (lambda q, v: model.forward_dynamics(q, v, zero))
    for _ in range(steps):
        a1 = a(q, v)
        v2, q2 = v + h / 2 * a1, q + h / 2 * v
        a2 = a(q2, v2)
        v3, q3 = v + h / 2 * a2, q + h / 2 * v2
        a3 = a(q3, v3)
        v4, q4 = v + h * a3, q + h * v3
        a4 = a(q4, v4)
        state = model.project(q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4))
        q, v = state.q, np.asarray(state.v)
        if each is not None:
            each(q, v)
    return q, v

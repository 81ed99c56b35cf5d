"""A single body: Euler's equations, Lagrange's top, a throw.

A body that a rod, a screw, the ground or an incline guides; a bicycle on the road.

Pendulums in closed form.
"""

import casadi as ca
import numpy as np
import scipy

from alembert.joints import Free, Prismatic, Revolute, RollingDisc, RollingSphere, Rotor, Screw, Spherical
from alembert.linear import linearize, trim
from alembert.model import WORLD, Inertia, Model, ModelBuilder, Placement
from alembert.simulate import Event, simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import heavy_top, motion, one_body, principal, rigid_body
from alembert.verify.programs import DynamicsProgram
from alembert.verify.random_models import ROUNDING_REASON, states


@case(
    source="Galilei's parabola and the conservation of momentum, for a body thrown with spin",
    kind="closed form",
    tags=("tree",),
)
def projectile(program: DynamicsProgram, duration: float = 2.0) -> Items:
    """The centre of mass of a thrown, spinning body follows a parabola, its angular momentum stays."""
    model = one_body("body", Inertia.box(2.0, (0.1, 0.3, 0.6)), gravity=9.81).build()
    v0 = np.array([1.0, -2.0, 0.5, 3.0, 1.0, 6.0])
    t, q, v = motion(model, program.load(model), model.neutral(), v0, duration=duration)
    expected = v0[3:] * duration + np.array([0, 0, -9.81]) * duration**2 / 2
    yield Check("place [m]", q[-1, :3], expected, 1e-10, "error control at 1e-13")
    h = np.array([model.momentum(x, y)[:3] for x, y in zip(q, v, strict=True)])
    yield Check("angular momentum [kg m^2/s]", h, np.tile(h[0], (len(t), 1)), 1e-11, "error control at 1e-13")
    yield Plot.line("t [s]", "height [m]", t, q[:, 2])


@case(
    source="""Euler's equations of a symmetric body: w turns about the axis at (I3 - I1)/I1 w3 (Goldstein,
    Classical Mechanics, sec. 5.6)""",
    kind="closed form",
    tags=("tree",),
)
def symmetric_body(
    program: DynamicsProgram,
    across: float = 1.2,
    along: float = 2.0,
    start: tuple[float, ...] = (0.5, 0.0, 3.0),
    duration: float = 5.0,
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
)
def dzhanibekov_flip(
    program: DynamicsProgram,
    moments: tuple[float, float, float] = (1.0, 2.0, 3.0),
    start: tuple[float, ...] = (0.01, 2.0, 0.01),
    flip: float = 10.977572939663,
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
)
def heavy_top_precession(
    program: DynamicsProgram,
    mass: float = 2.0,
    distance: float = 0.3,
    across: float = 0.25,
    along: float = 0.1,
    tilt: float = 1.0,
    precession: float = 1.7,
    duration: float = 3.0,
) -> Items:
    """A top spun at the right rate keeps its tilt and turns about the vertical evenly."""
    own = across - mass * distance**2  # about the centre of mass
    top = principal(mass, (own, own, along), (0, 0, distance))
    model = one_body("top", top, Spherical(), gravity=9.81).build()
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
)
def heavy_top_attitude(
    program: DynamicsProgram, duration: float = 0.2, spin: tuple[float, ...] = (0.0, 150.0, -4.61538)
) -> Items:
    """Attitude of a fast heavy top after 0.2 s."""
    model = heavy_top()
    t, q, _ = motion(model, program.load(model), model.neutral(), spin, duration=duration)
    expected = np.array([-0.70827915, 0.43878109, 0.54572840, 0.08939975])
    found = q[-1] * np.sign(q[-1] @ expected)  # a quaternion and its negative are one attitude
    yield Check("quaternion (w, x, y, z)", found, expected, 1e-8, "eight digits")
    yield Plot("t [s]", "quaternion", tuple(Line(name, t, q[:, k]) for k, name in enumerate("wxyz")))


@case(
    source="A bead on a rod that is turned evenly: r = r0 cosh(w t); the torque on the rod 2 m w r r'",
    kind="closed form",
    tags=("tree", "simulation"),
)
def bead_on_a_rod(rate: float = 2.0, start: float = 0.1, mass: float = 0.5, duration: float = 1.5) -> Items:
    """Prescribed rotation of a joint, and the torque that it takes (hybrid dynamics)."""
    builder = ModelBuilder("bead", gravity=(0, 0, 0))
    builder.body("rod", Inertia.rod(1.0, (-1, 0, 0), (1, 0, 0)), joint=Revolute(), joint_name="hub")
    builder.body("bead", Inertia.point(mass), joint=Prismatic((1, 0, 0)), joint_name="slide", parent="rod")
    model = builder.build()
    t = ca.SX.sym("t")
    turn = ca.Function("turn", [t], [rate * t])
    run = simulate(
        model,
        [0.0, start],
        [rate, 0.0],
        duration=duration,
        prescribed={"hub": turn},
        integrator="dop853",
        tolerance=1e-12,
        absolute_tolerance=1e-13,
    )
    r = start * np.cosh(rate * run.time)
    yield Check("distance [m]", run.q[:, 1], r, 1e-10, "error control at 1e-12, growing as cosh(3)")
    end = model.hybrid_dynamics(run.q[-1], run.v[-1], accelerations={"hub": 0.0}, torques={"slide": 0.0})
    torque = 2 * mass * rate * r[-1] * start * rate * np.sinh(rate * duration)
    yield Check("torque at the end [N m]", end.efforts[0], torque, 1e-10, "as the motion")
    yield Plot.line("t [s]", "distance [m]", run.time, run.q[:, 1])


@case(
    source="""A nut that runs down a screw without friction: a = g / (1 + I / (m h^2)), h the advance per radian""",
    kind="closed form",
    tags=("tree",),
)
def screw_descent(
    program: DynamicsProgram,
    mass: float = 0.8,
    moment: float = 2e-3,
    advance: float = 0.05,
    gravity: float = 9.81,
) -> Items:
    """Acceleration of a nut on a vertical screw."""
    inertia = principal(mass, (moment, moment, moment))
    model = one_body("nut", inertia, Screw((0, 0, 1), advance), gravity=gravity).build()
    a = program.load(model).forward_dynamics(np.array([0.7]), np.array([2.0]), np.zeros(1))
    yield Check(
        "acceleration [m/s^2]",
        advance * a[0],
        -gravity / (1 + moment / (mass * advance**2)),
        1e-13,
        "rounding",
    )


@case(
    source="A ball dropped from h with restitution e: bounces at sqrt(2h/g) (1 + 2 e + 2 e^2 + ...)",
    kind="closed form",
    tags=("tree", "simulation"),
)
def bouncing_ball(
    height: float = 1.0, restitution: float = 0.7, gravity: float = 9.81, bounces: int = 6
) -> Items:
    """Instants of bounces, located as events that change the velocity."""
    ball = Inertia.box(1.0, (0.1, 0.1, 0.1))
    model = one_body("ball", ball, Prismatic((0, 0, 1)), gravity=gravity).build()
    first = np.sqrt(2 * height / gravity)
    steps = np.concatenate([[1.0], 2 * restitution ** np.arange(1, bounces)])
    expected = first * np.cumsum(steps)
    end = expected[-1] + first * restitution**bounces  # half-way to the next
    floor = Event(
        lambda t, q, v: q[0],
        "floor",
        direction=-1,
        action=lambda t, q, v: (q, -restitution * v),
        tolerance=1e-12,
    )
    run = simulate(model, [height], duration=end, events=floor, integrator="dop853")
    found = np.array([event.time for event in run.events])
    yield Check("instants [s]", found, expected, 1e-9, "each located to 1e-12; parabolas are exact")
    yield Plot.line("t [s]", "height [m]", run.time, run.q[:, 0])


@case(
    source="""A ball that rolls down an incline: a = 5/7 g sin(slope), friction 2/7 m g sin(slope) (Goldstein,
    Classical Mechanics, sec. 2.4)""",
    kind="closed form",
    tags=("loops",),
)
def rolling_ball(mass: float = 0.7, radius: float = 0.1, slope: float = 0.4, gravity: float = 9.81) -> Items:
    """Acceleration of a rolling ball, and that it rolls (nonholonomic rows)."""
    builder = ModelBuilder("ball", gravity=(gravity * np.sin(slope), 0.0, -gravity * np.cos(slope)))
    builder.body("ball", Inertia.sphere(mass, radius), joint=Free(), joint_name="ball")
    builder.loop("incline", RollingSphere(radius), WORLD, "ball")
    model = builder.build()
    q = np.array([0.0, 0.0, radius, 1.0, 0.0, 0.0, 0.0])
    v = np.array([0.0, 1.0 / radius, 0.0, 1.0, 0.0, 0.0])  # rolling at 1 m/s
    yield Check("sliding [m/s]", np.max(np.abs(model.constraint_jacobian(q) @ v)), 0.0, 1e-14, "rounding")
    a = model.forward_dynamics(q, v, np.zeros(6))
    down = 5 / 7 * gravity * np.sin(slope)
    yield Check("acceleration [m/s^2]", a[3] + v[1] * v[5] - v[2] * v[4], down, 1e-12, "rounding")
    yield Check("angular acceleration [rad/s^2]", a[1], down / radius, 1e-11, "rounding")


@case(
    source="Huygens, Horologium oscillatorium (1673), part V: the conical pendulum, w^2 = g / (l cos(angle))",
    kind="closed form",
    tags=("tree", "linearisation"),
)
def conical_pendulum(angle: float = 0.6, length: float = 1.0, gravity: float = 9.81) -> Items:
    """The rate at which a pendulum turns steadily, found by trimming."""
    builder = ModelBuilder("conical")
    builder.body("shaft", Inertia.box(0.1, (0.1, 0.1, 0.1)), joint=Revolute(), joint_name="spin")
    bob = Inertia.point(1.0, (0, 0, -length))
    builder.body("bob", bob, joint=Revolute((0.0, 1.0, 0.0)), joint_name="tilt", parent="shaft")
    model = builder.build()
    found = trim(model, v=[3.0, 0.0], fixed={"tilt": angle, "v:tilt": 0.0}, free=["v:spin"])
    expected = np.sqrt(gravity / (length * np.cos(angle)))
    yield Check("rate [rad/s]", found.v[0], expected, 1e-11, "Newton's method to rounding")


@case(
    source="""Spherical pendulum: z'^2 l^2 = 2 (E - g z)(l^2 - z^2) - h^2, period by an elliptic integral
    (Whittaker, Analytical Dynamics, sec. 55)""",
    kind="closed form",
    tags=("tree", "simulation"),
)
def spherical_pendulum(
    length: float = 1.0, tilt: float = 0.8, rate: float = 2.0, gravity: float = 9.81
) -> Items:
    """Period of the height of a spherical pendulum, and its angular momentum."""
    builder = ModelBuilder("spherical_pendulum")
    builder.body("shaft", Inertia.box(1e-9, (0.1, 0.1, 0.1)), joint=Revolute(), joint_name="spin")
    bob = Inertia.point(1.0, (0, 0, -length))
    builder.body("bob", bob, joint=Revolute((0.0, 1.0, 0.0)), joint_name="tilt", parent="shaft")
    model = builder.build()
    z0 = -length * np.cos(tilt)
    h = length**2 * np.sin(tilt) ** 2 * rate
    E = (length * np.sin(tilt) * rate) ** 2 / 2 + gravity * z0
    # z' = 0 at the roots of 2 (E - g z)(l^2 - z^2) - h^2
    roots = np.sort(np.roots([2 * gravity, -2 * E, -2 * gravity * length**2, 2 * E * length**2 - h**2]).real)
    k2 = (roots[1] - roots[0]) / (roots[2] - roots[0])
    period = 2 * length * scipy.special.ellipk(k2) / np.sqrt(gravity / 2 * (roots[2] - roots[0]))
    top = Event(lambda t, q, v: v[1], "turn", direction=0, action="note", tolerance=1e-12)
    run = simulate(
        model,
        [0.0, tilt],
        [rate, 0.0],
        duration=3.2 * period,
        events=top,
        tolerance=1e-12,
        absolute_tolerance=1e-13,
    )
    turns = np.array([event.time for event in run.events])
    turns = turns[turns > 1e-6][:6]
    reason = "events to 1e-12, motion to 1e-12; the shaft's 1e-9 kg"
    yield Check("instants of turning [s]", turns, period / 2 * np.arange(1, 7), 1e-8, reason)
    momentum = run.v[:, 0] * (length * np.sin(run.q[:, 1])) ** 2
    yield Check("momentum / start", np.max(np.abs(momentum / momentum[0] - 1)), 0.0, 1e-8, reason)
    yield Plot.line("t [s]", "height [m]", run.time, -length * np.cos(run.q[:, 1]))


@case(
    source="""Two point masses on massless rods, Lagrange's equations (Landau, Lifshitz, Mechanics, section 5,
    problem 1)""",
    kind="closed form",
    tags=("tree",),
)
def double_pendulum_equations(
    program: DynamicsProgram,
    m: tuple[float, float] = (1.3, 0.7),
    l: tuple[float, float] = (0.9, 1.4),
    gravity: float = 9.81,
    count: int = 20,
) -> Items:
    """Mass matrix, inverse dynamics and potential of the double pendulum, in relative angles."""
    builder = ModelBuilder("double")
    axis = (0.0, -1.0, 0.0)
    builder.body("one", Inertia.point(m[0], (0, 0, -l[0])), joint=Revolute(axis), joint_name="a")
    tip = Inertia.point(m[1], (0, 0, -l[1]))
    builder.body("two", tip, joint=Revolute(axis), joint_name="b", parent="one", placement=(0, 0, -l[0]))
    model = builder.build()
    dynamics = program.load(model)
    M = np.empty((2, count, 2, 2))
    tau = np.empty((2, count, 2))
    U = np.empty((2, count))
    for k, (q, v, a) in enumerate(zip(*states(model, count), strict=True)):
        c, s = np.cos(q[1]), np.sin(q[1])
        cross = m[1] * l[0] * l[1]
        inner = m[1] * l[1] ** 2 + cross * c
        M[0, k] = [
            [(m[0] + m[1]) * l[0] ** 2 + m[1] * l[1] ** 2 + 2 * cross * c, inner],
            [inner, m[1] * l[1] ** 2],
        ]
        coriolis = np.array([-cross * s * (2 * v[0] * v[1] + v[1] ** 2), cross * s * v[0] ** 2])
        weight = m[1] * l[1] * np.sin(q[0] + q[1])
        tau[0, k] = (
            M[0, k] @ a
            + coriolis
            + gravity * np.array([(m[0] + m[1]) * l[0] * np.sin(q[0]) + weight, weight])
        )
        U[0, k] = -gravity * ((m[0] + m[1]) * l[0] * np.cos(q[0]) + m[1] * l[1] * np.cos(q[0] + q[1]))
        M[1, k], tau[1, k], U[1, k] = (
            dynamics.mass_matrix(q),
            dynamics.inverse_dynamics(q, v, a),
            dynamics.potential_energy(q),
        )
    yield Check("mass matrices", M[1], M[0], 1e-13, ROUNDING_REASON)
    yield Check("inverse dynamics", tau[1], tau[0], 1e-12, ROUNDING_REASON)
    yield Check("potential energies", U[1], U[0], 1e-13, ROUNDING_REASON)


@case(
    source="""A pendulum driven through a gear of ratio n by a rotor J: (m l^2 + n^2 J) a = n T - m g l sin(angle)""",
    kind="closed form",
    tags=("tree",),
)
def geared_pendulum(
    mass: float = 1.5,
    length: float = 0.6,
    ratio: float = 50.0,
    rotor: float = 2e-4,
    torque: float = 0.1,
    gravity: float = 9.81,
) -> Items:
    """Acceleration of a pendulum whose motor stands on the ground."""
    builder = ModelBuilder("geared")
    axis = (0.0, -1.0, 0.0)
    bob = Inertia.point(mass, (0, 0, -length))
    builder.body("bob", bob, joint=Revolute(axis), rotors=[Rotor(ratio, rotor, axis)])
    model = builder.build()
    angle = 0.9
    a = model.forward_dynamics([angle], [0.4], [ratio * torque])
    moment = ratio * torque - mass * gravity * length * np.sin(angle)
    yield Check(
        "acceleration [rad/s^2]", a[0], moment / (mass * length**2 + ratio**2 * rotor), 1e-13, "rounding"
    )


@case(
    source="""N equal point masses on equal links: w^2 = g/l times the roots of Laguerre's polynomial L_N
    (Bernoulli 1733; Cannon, Dostrovsky, The Evolution of Dynamics, 1981)""",
    kind="closed form",
    tags=("linearisation",),
)
def laguerre_pendulum(count: int = 6, length: float = 0.4, mass: float = 0.7, gravity: float = 9.81) -> Items:
    """Frequencies of a hanging chain of point masses."""
    builder = ModelBuilder("hanging")
    parent = WORLD
    for k in range(count):
        builder.body(
            f"m{k}",
            Inertia.point(mass, (0, 0, -length)),
            joint=Revolute((0, -1, 0)),
            parent=parent,
            placement=(0, 0, -length if k else 0.0),
        )
        parent = f"m{k}"
    model = builder.build()
    found = linearize(model, np.zeros(count)).modes()
    expected = np.sqrt(gravity / length * np.sort(scipy.special.roots_laguerre(count)[0]))
    yield Check(
        "frequencies [rad/s]", found.frequencies, expected, 1e-9, "rounding times the condition of the modes"
    )
    shapes = np.array([np.real(mode.shape) for mode in found])
    lines = tuple(
        Line(
            f"{w:.3g} rad/s",
            np.arange(1, count + 1),
            np.cumsum(np.cumsum(s)) / np.max(np.abs(np.cumsum(np.cumsum(s)))),
        )
        for w, s in zip(found.frequencies[:3], shapes[:3], strict=True)
    )
    yield Plot("mass", "displacement", lines)


def _bicycle(wheelbase: float, trail: float, tilt: float, rear: float, front: float) -> Model:
    """The benchmark bicycle, x forward and z down, its origin at the rear contact."""

    def inertia(m: float, center: tuple[float, float, float], moments: tuple[float, ...]) -> Inertia:
        xx, yy, zz, xz = moments
        return Inertia(m, center, (xx, 0.0, yy, xz, 0.0, zz))

    builder = ModelBuilder("bicycle", gravity=(0.0, 0.0, 9.81))
    builder.body(
        "frame", inertia(85.0, (0.3, 0, -0.9), (9.2, 11.0, 2.8, 2.4)), joint=Free(), joint_name="frame"
    )
    builder.body(
        "rear wheel", inertia(2.0, (0, 0, 0), (0.0603, 0.12, 0.0603, 0.0)),
        joint=Revolute((0, 1, 0)), joint_name="rear", parent="frame", placement=(0, 0, -rear),
    )  # fmt: skip
    foot = wheelbase + trail  # where the steering axis meets the road
    builder.body(
        "fork", inertia(4.0, (0.9 - foot, 0, -0.7), (0.05892, 0.06, 0.00708, -0.00756)),
        joint=Revolute((np.sin(tilt), 0, np.cos(tilt))), joint_name="steer", parent="frame", placement=(foot, 0, 0),
    )  # fmt: skip
    builder.body(
        "front wheel", inertia(3.0, (0, 0, 0), (0.1405, 0.28, 0.1405, 0.0)),
        joint=Revolute((0, 1, 0)), joint_name="front", parent="fork", placement=(-trail, 0, -front),
    )  # fmt: skip
    builder.frame("road", WORLD, Placement.from_rpy((np.pi, 0, 0)))
    builder.loop("rear contact", RollingDisc(rear), "road", "rear wheel")
    builder.loop("front contact", RollingDisc(front), "road", "front wheel")
    return builder.build()


@case(
    source="""Meijaard, Papadopoulos, Ruina, Schwab, Linearized dynamics equations for the balance and steer of a bicycle:
    a benchmark and review, Proc. R. Soc. A 463 (2007): table 1, matrices of section 5a, eigenvalues of table 2""",
    kind="published",
    tags=("loops", "linearisation"),
)
def benchmark_bicycle(
    wheelbase: float = 1.02,
    trail: float = 0.08,
    tilt: float = np.pi / 10,
    rear: float = 0.3,
    front: float = 0.35,
) -> Items:
    """A bicycle with rider, riding straight on: lean and steer about a motion with two rolling wheels."""
    model = _bicycle(wheelbase, trail, tilt, rear, front)
    M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
    C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
    K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
    K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
    speeds = np.array([0.0, 1.0, 3.0, 5.0, 8.0])
    q, v = model.neutral(), np.zeros((len(speeds), model.nv))
    v[:, 3] = speeds
    v[:, model.v_slice("rear")] = -speeds[:, None] / rear
    v[:, model.v_slice("front")] = -speeds[:, None] / front
    poles = linearize(model, np.broadcast_to(q, (len(speeds), model.nq)), v).poles()
    moving = [
        p[np.argsort(-np.abs(p))][:4] for p in poles
    ]  # besides place, heading, wheels and speed: six zeros
    for speed, found in zip(speeds, moving, strict=True):
        A = np.block(
            [
                [np.zeros((2, 2)), np.eye(2)],
                [-np.linalg.solve(M, 9.81 * K0 + speed**2 * K2), -np.linalg.solve(M, speed * C1)],
            ]
        )
        expected = np.linalg.eigvals(A)
        yield Check(
            f"M, C1, K0, K2: poles at {speed:g} m/s [1/s]",
            np.sort_complex(found).view(float),
            np.sort_complex(expected).view(float),
            1e-11,
            "fourteen digits in print, the fastest pole 20/s",
        )
    weave = -0.77534188219585 + 4.46486771378823j
    expected = np.sort_complex([weave, np.conj(weave), -0.32286642900409, -14.07838969279822])
    yield Check(
        "table 2: poles at 5 m/s [1/s]",
        np.sort_complex(moving[3]).view(float),
        expected.view(float),
        1e-12,
        "half a unit of the last digit",
    )

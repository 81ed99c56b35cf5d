"""Pendulums in closed form."""

import numpy as np
from scipy.special import ellipk, roots_laguerre

from alembert.joints import Revolute, Rotor
from alembert.linear import linearize, trim
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.simulate import Event, simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.programs import DynamicsProgram
from alembert.verify.random_models import ROUNDING_REASON, states


@case(
    source="Huygens, Horologium oscillatorium (1673), part V: the conical pendulum, w^2 = g / (l cos(angle))",
    kind="closed form",
    tags=("tree", "linearisation"),
    parameters={"angle": 0.6, "length": 1.0, "gravity": 9.81},
)
def conical_pendulum(angle: float, length: float, gravity: float) -> Items:
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
    parameters={"length": 1.0, "tilt": 0.8, "rate": 2.0, "gravity": 9.81},
)
def spherical_pendulum(length: float, tilt: float, rate: float, gravity: float) -> Items:
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
    period = 2 * length * ellipk(k2) / np.sqrt(gravity / 2 * (roots[2] - roots[0]))
    top = Event(lambda t, q, v: v[1], "turn", direction=0, action="note", tolerance=1e-12)
    run = simulate(
        model,
        [0.0, tilt],
        [rate, 0.0],
        duration=3.2 * period,
        events=top,
        tolerance=1e-12,
        absolute_tolerance=1e-13,
        progress=False,
    )
    turns = np.array([event.time for event in run.events])
    turns = turns[turns > 1e-6][:6]
    reason = "events to 1e-12, motion to 1e-12; the shaft's 1e-9 kg"
    yield Check("instants of turning [s]", turns, period / 2 * np.arange(1, 7), 1e-8, reason)
    momentum = run.v[:, 0] * (length * np.sin(run.q[:, 1])) ** 2
    yield Check("momentum / start", np.max(np.abs(momentum / momentum[0] - 1)), 0.0, 1e-8, reason)
    yield Plot("t [s]", "height [m]", (Line("", run.time, -length * np.cos(run.q[:, 1])),))


@case(
    source="""Two point masses on massless rods, Lagrange's equations (Landau, Lifshitz, Mechanics, section 5,
    problem 1)""",
    kind="closed form",
    tags=("tree",),
    parameters={"m": (1.3, 0.7), "l": (0.9, 1.4), "gravity": 9.81, "count": 20},
)
def double_pendulum_equations(
    program: DynamicsProgram, m: tuple[float, float], l: tuple[float, float], gravity: float, count: int
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
    parameters={"mass": 1.5, "length": 0.6, "ratio": 50.0, "rotor": 2e-4, "torque": 0.1, "gravity": 9.81},
)
def geared_pendulum(
    mass: float, length: float, ratio: float, rotor: float, torque: float, gravity: float
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
    parameters={"count": 6, "length": 0.4, "mass": 0.7, "gravity": 9.81},
)
def laguerre_pendulum(count: int, length: float, mass: float, gravity: float) -> Items:
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
    expected = np.sqrt(gravity / length * np.sort(roots_laguerre(count)[0]))
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

"""IFToMM's planar benchmarks: the pendulum (A01), the N-four-bar (A02), Andrews' squeezer (A03).

IFToMM's spatial benchmarks: Bricard's mechanism (A04), the flyball governor (A05).
"""

import casadi as ca
import numpy as np
import scipy

from alembert import library
from alembert.joints import Fixed, Prismatic, Revolute
from alembert.model import Inertia, Model, ModelBuilder
from alembert.simulate import Event, simulate
from alembert.verify.case import IFTOMM, Check, Items, Line, Plot, family
from alembert.verify.mechanisms import (
    SQUEEZER_DRIVE,
    SQUEEZER_START,
    bricard,
    four_bars,
    motion,
    parallelogram,
    runge_kutta,
    squeezer,
    squeezer_accelerations,
    squeezer_spring,
)
from alembert.verify.programs import DynamicsProgram

case = family("iftomm")


@case(
    source=f"{IFTOMM}, A01; closed form 4 K(1/2) sqrt(l/g)",
    kind="closed form",
    tags=("tree", "simulation"),
)
def a01_pendulum_period(mass: float = 1.0, length: float = 1.0, gravity: float = 9.81) -> Items:
    """Period of a pendulum released horizontally, from the instants at which it rests."""
    model = library.pendulum(mass=mass, length=length)
    period = 4 * scipy.special.ellipk(0.5) * np.sqrt(length / gravity)
    yield Check("4 K(1/2) sqrt(l/g) [s]", period, 2.3678419475762, 1e-12, "fourteen digits of print")
    rest = Event(lambda t, q, v: v[0], "rest", direction=1, action="note", tolerance=1e-12)
    run = simulate(
        model, [-np.pi / 2], duration=4.5 * period, events=rest, tolerance=1e-12, absolute_tolerance=1e-13
    )
    found = np.array([event.time for event in run.events])
    expected = period * np.arange(1, 5)
    yield Check(
        "four periods [s]", found, expected, 1e-9, "events located to 1e-12, motion to 1e-12 per step"
    )
    yield Plot.line("t [s]", "angle [rad]", run.time, run.q[:, 0])


@case(source=f"{IFTOMM}, A01; closed form by elliptic functions", kind="closed form", tags=("tree",))
def a01_pendulum_position(
    program: DynamicsProgram,
    mass: float = 1.0,
    length: float = 1.0,
    start: float = -np.pi / 2,
    duration: float = 10.0,
) -> Items:
    """Position of a pendulum, released horizontally, after 10 s."""
    model = library.pendulum(mass=mass, length=length)
    t, q, _ = motion(model, program.load(model), [start], duration=duration)
    x, y = length * np.sin(q[:, 0]), -length * np.cos(q[:, 0])
    yield Check(
        "x, y [m]",
        (x[-1], y[-1]),
        (-0.275087462576, -0.961419205099),
        1e-10,
        "error control at 1e-13 over four periods; twelve digits of the closed form",
    )
    yield Plot("t [s]", "[m]", (Line("x", t, x), Line("y", t, y)))


@case(source=f"{IFTOMM}, A02 (N-four-bar), N = 2: energy at the start", kind="published", tags=("loops",))
def a02_four_bars_start(windows: int = 2) -> Items:
    """Energy, and the velocity of B0, at the start of the N-four-bar mechanism."""
    model = four_bars(windows)
    q, v = parallelogram(model, 0.0, -1.0)
    speed = model.frame_velocity(q, v, "top0", reference="local_world_aligned")[3:]
    yield Check("energy [J]", model.energy(q, v), 35.835, 1e-12, "exact data; rounding of some ten terms")
    yield Check("velocity of B0 [m/s]", speed, (1.0, 0.0, 0.0), 1e-14, "given; rounding")
    yield Check("loops", model.constraint_residual(q), np.zeros(5 * windows), 1e-15, "closed by the data")


@case(
    source=f"{IFTOMM}, A02 (N-four-bar), N = 2; ten digits computed independently",
    kind="reference",
    tags=("loops", "simulation"),
    slow=True,
)
def a02_four_bars_motion(windows: int = 2, duration: float = 10.0, steps: int = 4000) -> Items:
    """B0 after 10 s, through the singular positions with all bars in line."""
    model = four_bars(windows)
    places: list[np.ndarray] = []
    q, v = parallelogram(model, 0.0, -1.0)
    q, v = runge_kutta(model, q, v, duration=duration, steps=steps, each=lambda q, v: places.append(q[0]))
    place = model.frame_pose(q, "top0").translation[:2]
    speed = model.frame_velocity(q, v, "top0", reference="local_world_aligned")[3:5]
    reason = "order 4 at h = 2.5 ms: some 1e-9 by halving the step; the reference has ten digits"
    yield Check("B0 [m]", place, (0.3284581115, 0.9445185382), 3e-9, reason)
    yield Check(
        "velocity of B0 [m/s]", speed, (1.4230514702, -0.4948688455), 3e-8, reason + "; times the rates"
    )
    yield Check("energy [J]", model.energy(q, v), 35.835, 3.6e-8, "1e-9 relative, by the order of the scheme")
    yield Check("loops", np.max(np.abs(model.constraint_residual(q))), 0.0, 1e-12, "after projection")
    t = np.linspace(duration / steps, duration, steps)
    yield Plot.line("t [s]", "angle of the first bar [rad]", t, np.array(places))


@case(
    source=f"{IFTOMM}, A02 (N-four-bar), N = 40; all posts turn alike: I t'' = g s sin t",
    kind="closed form",
    tags=("loops",),
    slow=True,
)
def a02_four_bars_forty(windows: int = 40, angle: float = 0.6, rate: float = -1.3) -> Items:
    """Accelerations of forty four-bars, which move like one pendulum."""
    model = four_bars(windows)
    q, v = parallelogram(model, angle, rate)
    found = model.forward_dynamics(q, v, np.zeros(model.nv))
    posts, beams = windows + 1, windows
    expected = 9.81 * (posts / 2 + beams) * np.sin(angle) / (posts / 3 + beams)
    yield Check(
        "accelerations [rad/s^2]",
        found,
        parallelogram(model, 0.0, expected)[1],
        1e-9,
        "rounding times the condition of 200 constraint rows, some 1e4",
    )


@case(
    source="Test set for IVP solvers, Andrews' squeezing mechanism (IFToMM A03): consistent initial values",
    kind="published",
    tags=("loops",),
)
def a03_squeezer_start() -> Items:
    """Initial accelerations of Andrews' squeezer."""
    model = squeezer()
    q = np.array([SQUEEZER_START[name] for name in model.coordinate_names])
    a = dict(zip(model.speed_names, squeezer_accelerations(q, np.zeros(7)), strict=True))
    found = model.constraint_analysis(q)
    yield Check("loops [m]", np.max(np.abs(model.constraint_residual(q))), 0.0, 1e-15, "16 printed digits")
    yield Check("rank, freedoms", (found.rank, found.degrees_of_freedom), (6, 1), 0, "integers")
    reason = "twelve digits: those of the printed coordinates times the condition of the loops"
    yield Check("beta'' [rad/s^2]", a["beta"], 14222.4439199541, 1.5e-8, reason)
    yield Check("Theta'' [rad/s^2]", a["theta"], -10666.8329399656, 1.1e-8, reason)


PUBLISHED = {
    "beta": 15.81077119629904,
    "theta": -15.75637105984298,
    "gamma": 0.04082224013073101,
    "phi": -0.5347301163226948,
    "delta": 0.5244099658805304,
    "omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}


@case(
    source="""Test set for IVP solvers, Andrews' squeezing mechanism (IFToMM A03): reference solution at 0.03 s""",
    kind="published",
    tags=("loops", "simulation"),
)
def a03_squeezer_motion(duration: float = 0.03, steps: int = 1200) -> Items:
    """Andrews' squeezer at 0.03 s, and the balance of energy with the work of its drive."""
    model = squeezer()
    start = np.array([SQUEEZER_START[name] for name in model.coordinate_names])
    path = [start]
    q, v = runge_kutta(
        model,
        start,
        np.zeros(7),
        duration=duration,
        steps=steps,
        accelerations=squeezer_accelerations,
        each=lambda q, v: path.append(q),
    )
    expected = [PUBLISHED[name] for name in model.coordinate_names]
    yield Check("coordinates [rad]", q, expected, 1e-7, "order 4: 1000 steps give 2e-8, 2000 give 2e-9")
    work = SQUEEZER_DRIVE * (q - start)[model.coordinate_names.index("beta")]
    gained = model.kinetic_energy(q, v) + squeezer_spring(q)[1] - squeezer_spring(start)[1]
    yield Check(
        "energy - work [J]", gained - work, 0.0, 5e-8, "1e-7 of the work 0.52 J, by the order of the scheme"
    )
    t, x = np.linspace(0, duration, steps + 1), np.array(path)
    names = ("gamma", "phi", "delta", "epsilon")
    columns = [model.coordinate_names.index(name) for name in names]
    lines = tuple(Line(name, t, x[:, k]) for name, k in zip(names, columns, strict=True))
    yield Plot("t [s]", "[rad]", lines)


@case(
    source=f"{IFTOMM}, A04 (Bricard): one freedom, redundant constraints, constant energy",
    kind="published",
    tags=("loops", "simulation"),
)
def a04_bricard(duration: float = 2.0, steps: int = 400) -> Items:
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
    yield Plot.line("t [s]", "change of energy [J]", np.linspace(0, duration, steps + 1), drift)


RADIUS, HEIGHT, LENGTH = 0.05, 1.0, 1.0
STIFFNESS, DAMPING, REST = 8e5, 4e4, 0.5
ARM, BALL, SLIDER, CUBE = 0.3, 5.0, 3.0, 0.1
ROD = ARM * (LENGTH**2 + 0.01**2) / 12  # across
THIN = ARM * (0.01**2 + 0.01**2) / 12  # along


def governor() -> Model:
    """The tree: the springs are efforts of the case."""
    builder = ModelBuilder("governor", gravity=(0, 0, -9.81))
    builder.body("shaft", Inertia.box(0.3, (0.01, 0.01, HEIGHT)), joint=Revolute(), joint_name="spin")
    for side, sign in (("right", 1.0), ("left", -1.0)):
        rod = Inertia(ARM, (sign * LENGTH / 2, 0, 0), (THIN, 0, ROD, 0, 0, ROD))
        builder.body(
            f"{side}_arm",
            rod,
            joint=Revolute((0.0, sign, 0.0)),  # positive angles are below the horizontal
            joint_name=side,
            parent="shaft",
            placement=(sign * RADIUS, 0.0, HEIGHT),
        )
        builder.body(
            f"{side}_ball",
            Inertia.point(BALL),
            joint=Fixed(),
            parent=f"{side}_arm",
            placement=(sign * LENGTH, 0.0, 0.0),
        )
    cube = Inertia.box(SLIDER, (CUBE, CUBE, CUBE))
    builder.body("slider", cube, joint=Prismatic((0, 0, 1)), joint_name="slide", parent="shaft")
    return builder.build()


def spring(angle: ca.SX, height: ca.SX) -> ca.SX:
    """Length from the middle of an arm to the slider."""
    across = RADIUS + LENGTH / 2 * ca.cos(angle) - RADIUS
    return ca.sqrt(across**2 + (HEIGHT - LENGTH / 2 * ca.sin(angle) - height) ** 2)


def law(model: Model) -> ca.Function:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    at = {name: model.q_slice(name).start for name in ("right", "left", "slide")}
    tau = ca.SX.zeros(4)
    for side in ("right", "left"):
        l = spring(q[at[side]], q[at["slide"]])
        force = STIFFNESS * (l - REST) + DAMPING * ca.jtimes(l, q, v)
        tau -= force * ca.gradient(l, q)
    return ca.Function("springs", [t, q, v], [tau])


def by_lagrange(duration: float) -> tuple[float, float, float]:
    """Spin, angle and height at the end, from the energies of the symmetric motion."""
    x, w = ca.SX.sym("x", 3), ca.SX.sym("w", 3)  # spin angle, arm angle, height; their rates
    radius = RADIUS + LENGTH * ca.cos(x[1])
    middle = RADIUS + LENGTH / 2 * ca.cos(x[1])
    about = ROD * ca.cos(x[1]) ** 2 + THIN * ca.sin(x[1]) ** 2
    arm = ARM * (middle**2 * w[0] ** 2 + (LENGTH / 2 * w[1]) ** 2) + about * w[0] ** 2 + ROD * w[1] ** 2
    ball = BALL * (radius**2 * w[0] ** 2 + (LENGTH * w[1]) ** 2)
    shaft = 0.3 * 2 * 0.01**2 / 12 + SLIDER * 2 * CUBE**2 / 12
    T = (shaft * w[0] ** 2 + 2 * arm + 2 * ball + SLIDER * w[2] ** 2) / 2
    weight = -2 * 9.81 * (ARM * LENGTH / 2 + BALL * LENGTH) * ca.sin(x[1]) + SLIDER * 9.81 * x[2]
    l = spring(x[1], x[2])
    U = weight + STIFFNESS * (l - REST) ** 2
    lost = -2 * DAMPING * ca.jtimes(l, x, w) * ca.gradient(l, x)
    p = ca.gradient(T, w)
    a = ca.solve(ca.jacobian(p, w), ca.gradient(T, x) - ca.gradient(U, x) + lost - ca.jtimes(p, x, w))
    slope = ca.Function("slope", [x, w], [ca.vertcat(w, a)])
    jacobian = ca.Function("j", [x, w], [ca.jacobian(ca.vertcat(w, a), ca.vertcat(x, w))])
    found = scipy.integrate.solve_ivp(
        lambda t, y: slope(y[:3], y[3:]).full().ravel(),
        (0.0, duration),
        [0.0, np.pi / 6, 0.5, 2 * np.pi, 0.0, 0.0],
        method="Radau",
        rtol=1e-10,
        atol=1e-12,
        jac=lambda t, y: jacobian(y[:3], y[3:]).full(),
    )
    return float(found.y[3, -1]), float(found.y[1, -1]), float(found.y[2, -1])


@case(
    source=f"{IFTOMM}, A05 (flyball governor, stiff); Lagrange's equations of the symmetric motion",
    kind="independent program",
    tags=("tree", "simulation"),
    slow=True,
)
def a05_governor(duration: float = 3.0) -> Items:
    """Spin, arms and slider of a stiff governor, and its angular momentum.

    The tree has spin, two arms and a slider, and springs by a controller; the comparison writes the symmetric motion
    with three coordinates, from the energies.
    """
    model = governor()
    q, v = model.neutral(), np.zeros(4)
    for side in ("right", "left"):
        q[model.q_slice(side)] = np.pi / 6
    q[model.q_slice("slide")] = 0.5
    v[model.v_slice("spin")] = 2 * np.pi
    run = simulate(
        model,
        q,
        v,
        duration=duration,
        integrator="radau",
        controller=law(model),
        tolerance=1e-9,
        absolute_tolerance=1e-11,
        interval=duration / 300,
    )
    spin, angle, height = by_lagrange(duration)
    end = {name: float(run.q[-1][model.q_slice(name)][0]) for name in ("right", "left", "slide")}
    reason = "both by Radau with error control at 1e-9 and 1e-10, some hundred steps"
    yield Check("spin [rad/s]", run.v[-1][model.v_slice("spin")][0], spin, 1e-5, reason)
    yield Check("arms [rad]", (end["right"], end["left"]), (angle, angle), 1e-6, reason)
    yield Check("height of the slider [m]", end["slide"], height, 1e-6, reason)
    h = run.momentum[:, 2]
    yield Check("change of momentum / momentum", np.max(np.abs(h - h[0])) / h[0], 0.0, 1e-7, reason)
    s = model.q_slice("slide").start
    yield Plot.line("t [s]", "height of the slider [m]", run.time, run.q[:, s])

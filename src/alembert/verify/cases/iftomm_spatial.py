"""IFToMM's spatial benchmarks: Bricard's mechanism (A04), the flyball governor (A05)."""

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from alembert.joints import Fixed, Prismatic, Revolute
from alembert.model import Inertia, Model, ModelBuilder
from alembert.simulate import simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import bricard
from alembert.verify.motion import runge_kutta


@case(
    source="""IFToMM library of computational benchmark problems, A04 (Bricard): one freedom, redundant
    constraints, constant energy""",
    kind="published",
    tags=("loops", "simulation", "iftomm"),
    parameters={"duration": 2.0, "steps": 400},
)
def a04_bricard(duration: float, steps: int) -> Items:
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
    yield Plot("t [s]", "change of energy [J]", (Line("", np.linspace(0, duration, steps + 1), drift),))


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
    found = solve_ivp(
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
    source="""IFToMM library of computational benchmark problems, A05 (flyball governor, stiff); Lagrange's
    equations of the symmetric motion""",
    kind="independent program",
    tags=("tree", "simulation", "iftomm"),
    parameters={"duration": 3.0},
    slow=True,
)
def a05_governor(duration: float) -> Items:
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
        progress=False,
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
    yield Plot("t [s]", "height of the slider [m]", (Line("", run.time, run.q[:, s]),))

"""Spacecraft without external torques: wheels, rotors, booms, docking.

Motion in orbit and near it.
"""

import numpy as np

from alembert import library
from alembert.joints import Fixed, Free, Revolute, Spring, Translational
from alembert.model import Frame, Inertia, LoopJoint, ModelBuilder, Placement
from alembert.simulate import CentralGravity, GravityGradient, Table, simulate
from alembert.verify.case import DMOC, Check, Items, Line, Plot, acc1989, case
from alembert.verify.mechanisms import one_body, principal
from alembert.verify.random_models import ROUNDING_REASON


@case(
    source="""Conservation of angular momentum: a body of inertia B turns by -W/(B + W) of the angle of its wheel""",
    kind="closed form",
    tags=("tree", "simulation"),
)
def reaction_wheel(
    body: float = 4.0, wheel: float = 0.3, torque: float = 0.5, duration: float = 4.0
) -> Items:
    """Angle of a body that turns against its wheel, with the variational scheme."""
    builder = ModelBuilder("bus", gravity=(0, 0, 0))
    builder.body(
        "bus", Inertia(10.0, (0, 0, 0), (body, 0, body, 0, 0, body)), joint=Revolute(), joint_name="turn"
    )
    disc = Inertia(1.0, (0, 0, 0), (wheel * 0.6, 0, wheel * 0.6, 0, 0, wheel))
    builder.body("wheel", disc, joint=Revolute(), joint_name="spin", parent="bus", placement=(0, 0, 0.2))
    model = builder.build()
    run = simulate(
        model, [0.0, 0.0], duration=duration, step=0.01, efforts={"spin": torque}, integrator="variational"
    )
    yield Check(
        "body / wheel",
        run.q[-1, 0] / run.q[-1, 1],
        -wheel / (body + wheel),
        1e-12,
        "momentum kept to rounding",
    )
    spin = torque * (1 / wheel + 1 / body) * duration
    yield Check(
        "rate of the wheel [rad/s]", run.v[-1, 1], spin, 1e-10, "constant torque: the midpoint rule is exact"
    )
    yield Plot("t [s]", "[rad]", (Line("body", run.time, run.q[:, 0]), Line("wheel", run.time, run.q[:, 1])))


@case(
    source=f"{DMOC}, section 7.2: satellite with rotors under internal torques",
    kind="published",
    tags=("tree", "simulation"),
    missing="masses and sizes; those of alembert.library",
)
def satellite_rotors(duration: float = 5.0, step: float = 0.005) -> Items:
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
            model, model.neutral(), v0, duration=duration, step=step, efforts=efforts, integrator=integrator
        )
        h = run.momentum[:, :3]
        drift = np.max(np.abs(h - h[0]), axis=1) / np.max(np.abs(h))
        reason = "exact but for rounding over 1000 steps" if limit < 1e-10 else "order 4 at h = 5 ms"
        yield Check(f"{integrator}: drift / momentum", np.max(drift), 0.0, limit, reason)
        lines.append(Line(integrator, run.time[1:], np.maximum(drift[1:], 1e-18)))
    yield Check.holds("the body turns", np.ptp(run.v[:, 2]) > 0.01, "something happens")
    yield Plot("t [s]", "drift / momentum", tuple(lines), log_y=True)


@case(
    source=acc1989("Keat", "first study: a hub with four booms, turned by one cycle of a sine torque"),
    kind="closed form",
    tags=("tree", "simulation", "acc1989"),
    missing="all data; these are ours, and booms are hinged and sprung instead of flexible",
)
def dart_reorientation(period: float = 40.0, amplitude: float = 20.0, stiffness: float = 4e4) -> Items:
    """A hub with four booms turns by A T^2/(2 pi J) under one cycle of a sine torque, and stands still again."""
    builder = ModelBuilder("hub", gravity=(0, 0, 0))
    builder.body("hub", Inertia.cylinder(500.0, 1.0, 1.0, (0, 0, 1)), joint=Revolute(), joint_name="turn")
    boom = Inertia.rod(10.0, (0, 0, 0), (5, 0, 0))
    for k in range(4):
        c, s = np.cos(k * np.pi / 2), np.sin(k * np.pi / 2)
        builder.body(
            f"boom{k}",
            boom,
            joint=Revolute(),
            parent="hub",
            placement=Placement.from_rpy((0, 0, k * np.pi / 2), (c, s, 0)),
            spring=Spring((stiffness,)),
        )
    model = builder.build()
    times = np.linspace(0, period, 201)
    torque = Table(times, amplitude * np.sin(2 * np.pi * times / period), "cubic", outside="zero")
    run = simulate(
        model,
        np.zeros(5),
        duration=1.1 * period,
        step=0.02,
        interval=0.2,
        integrator="rk4",
        efforts={"turn": torque},
    )
    turn = amplitude * period**2 / (2 * np.pi * model.mass_matrix(np.zeros(5))[0, 0])
    reason = "booms bend by 1e-4 rad; the spline of the torque is good to (2 pi/200)^4/384"
    yield Check("angle / rigid body's", run.q[-1, 0] / turn, 1.0, 1e-3, reason)
    h = run.momentum[:, 2]
    yield Check(
        "momentum at the end / largest", h[-1] / np.abs(h).max(), 0.0, 1e-8, "a full cycle has no impulse"
    )
    yield Check(
        "balance of energy",
        run.report.energy_error,
        0.0,
        1e-4,
        "order 4 at h = 0.02 s, and the work's quadrature",
    )
    yield Plot.line("t [s]", "angle of the hub [rad]", run.time, run.q[:, 0])


@case(
    source="""Plastic impact of two free bodies: momentum stays, kinetic energy falls by 1/2 d^T (J M^-1 J^T)^-1 d
    of the relative velocity d (Pfeiffer, Glocker 1996)""",
    kind="closed form",
    tags=("loops", "random"),
)
def docking(seed: int = 2) -> Items:
    """Momentum and energy when two free bodies are joined rigidly in flight."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder("docking", gravity=(0, 0, 0))
    for name, mass in (("craft", 5.0), ("target", 2.0)):
        builder.body(
            name,
            Inertia.box(mass, tuple(rng.uniform(0.3, 1.0, 3)), (0.1, 0, 0.05)),
            joint=Free(),
            joint_name=name,
        )
    tree_ = builder.build()
    q, v = tree_.random_configuration(rng), rng.normal(size=12)
    X = tree_.frame_pose(q, "target").inverse() @ tree_.frame_pose(q, "craft")
    model = tree_.replace(
        frames=(*tree_.frames, Frame("port", "target", Placement.from_pose(X))),
        loops=(LoopJoint("dock", Fixed(), "port", "craft"),),
    )
    after = np.asarray(model.impulse(q, v).velocities)
    M, G = tree_.mass_matrix(q), model.constraint_jacobian(q)
    h = [tree_.momentum(q, x, about="world") for x in (v, after)]
    scale = float(np.max(np.abs(h[0])))
    yield Check(
        "change of momentum / momentum", np.max(np.abs(h[1] - h[0])) / scale, 0.0, 1e-13, ROUNDING_REASON
    )
    d = G @ v
    lost = d @ np.linalg.solve(G @ np.linalg.solve(M, G.T), d) / 2
    found = (v @ M @ v - after @ M @ after) / 2
    yield Check("lost / expected", found / lost, 1.0, 1e-11, "rounding times the condition of 6 x 6")
    yield Check("relative velocity", np.max(np.abs(G @ after)), 0.0, 1e-13, ROUNDING_REASON)


@case(
    source="""Kepler's laws: period 2 pi sqrt(a^3/mu), and the anomaly from M = E - e sin E (Curtis, Orbital
    Mechanics, ch. 3)""",
    kind="closed form",
    tags=("tree", "simulation"),
)
def kepler_orbit(semi_axis: float = 1.0, eccentricity: float = 0.5, mu: float = 1.0) -> Items:
    """A point on an elliptic orbit, a quarter of the period and a whole one after the pericentre."""
    model = one_body("craft", principal(1.0, (1e-9, 1e-9, 1e-9)), Translational()).build()
    a, e = semi_axis, eccentricity
    period = 2 * np.pi * np.sqrt(a**3 / mu)
    run = simulate(
        model,
        [a * (1 - e), 0, 0],
        [0, np.sqrt(mu / a * (1 + e) / (1 - e)), 0],
        duration=period,
        interval=period / 200,
        integrator="dop853",
        gravity=CentralGravity(mu),
        tolerance=1e-12,
        absolute_tolerance=1e-13,
    )
    E = np.pi / 2
    for _ in range(50):  # Newton's method on Kepler's equation
        E -= (E - e * np.sin(E) - np.pi / 2) / (1 - e * np.cos(E))
    quarter = (a * (np.cos(E) - e), a * np.sqrt(1 - e**2) * np.sin(E))
    reason = "error control at 1e-12; errors along the track grow as 3 pi of that of the energy"
    yield Check("a quarter of the period on", run.q[50, :2], quarter, 1e-9, reason)
    yield Check("back after a period", run.q[-1, :2], (a * (1 - e), 0.0), 1e-9, reason)
    yield Plot.line("x", "y", run.q[:, 0], run.q[:, 1])


@case(
    source="""Clohessy, Wiltshire, Terminal guidance system for satellite rendezvous, J. Aerospace Sci. 27 (1960):
    a push along the track""",
    kind="published",
    tags=("tree", "simulation"),
)
def clohessy_wiltshire(rate: float = 1.1e-3, push: float = 0.3) -> Items:
    """Relative motion after a push along a circular orbit, in axes that do not turn."""
    model = one_body("bus", Inertia.box(10.0, (1, 1, 1)), Translational()).build()
    run = simulate(
        model,
        [0, 0, 0],
        [0, push, 0],
        duration=2 * np.pi / rate,
        gravity=GravityGradient(rate),
        tolerance=1e-11,
        absolute_tolerance=1e-12,
    )
    t, n = run.time, rate
    x, y = 2 * push / n * (1 - np.cos(n * t)), push / n * (4 * np.sin(n * t) - 3 * n * t)
    c, s = np.cos(n * t), np.sin(n * t)
    expected = np.stack([c * x - s * y, s * x + c * y], axis=-1)
    yield Check("place [m]", run.q[:, :2], expected, 1e-6, "error control at 1e-11 of some 5 km")
    yield Plot.line(
        "radial [m]",
        "along the track [m]",
        c * run.q[:, 0] + s * run.q[:, 1],
        c * run.q[:, 1] - s * run.q[:, 0],
    )


@case(
    source="""Pitch of a satellite in the gravity gradient: frequency n sqrt(3 (Jx - Jz)/Jy) (Hughes, Spacecraft
    Attitude Dynamics, sec. 9.2)""",
    kind="closed form",
    tags=("tree", "simulation"),
)
def gravity_gradient_libration(
    rate: float = 1e-3, moments: tuple[float, float, float] = (30.0, 12.0, 20.0), small: float = 1e-3
) -> Items:
    """Small pitch of a body that looks down, over a period of its libration."""
    xx, yy, zz = moments  # z along the orbit's normal, y away from the centre
    model = one_body("bus", principal(10.0, moments), Revolute()).build()
    w = rate * np.sqrt(3 * (xx - yy) / zz)
    run = simulate(
        model,
        [small],
        [rate],
        duration=2 * np.pi / w,
        gravity=GravityGradient(rate, radial=(0, 1, 0)),
        tolerance=1e-11,
        absolute_tolerance=1e-14,
    )
    pitch = run.q[:, 0] - rate * run.time
    expected = small * np.cos(w * run.time)
    yield Check(
        "pitch [rad]",
        pitch,
        expected,
        2 * small**3 + 1e-8 * small,
        "the nonlinear period is longer by 1/16 of the angle's square",
    )
    yield Plot.line("t [s]", "pitch [rad]", run.time, pitch)

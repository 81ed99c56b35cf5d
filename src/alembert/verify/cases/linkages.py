"""Linkages and gears in closed form.

Ider 1989: control forces for kinematical constraints, joint drives for flexible robots.

Inverse kinematics whose answer is known: an arm with a redundant elbow, and a bay of a variable-geometry truss.
"""

from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.joints import Distance, Free, Prismatic, Revolute, TouchingSurfaces, Translational
from alembert.library import truss_arm
from alembert.model import WORLD, Box, Coupling, Inertia, Model, ModelBuilder, Placement, Visual
from alembert.reach import ReferenceCurve, distance, reach, track_curve
from alembert.simulate import ContactFriction, SpringDamper, simulate
from alembert.verify.case import SCRIPT, Check, Items, Line, Plot, acc1989, case


@case(
    source="Slider-crank with point masses: x = r cos t + sqrt(l^2 - r^2 sin^2 t) and Newton's law",
    kind="closed form",
    tags=("loops",),
)
def slider_crank(
    crank: float = 0.3,
    rod: float = 1.0,
    mass: float = 2.0,
    angle: float = 0.7,
    rate: float = 3.0,
    torque: float = 0.8,
) -> Items:
    """Assembly, accelerations and the force in the rod of a slider-crank."""
    r, l, t, w = crank, rod, angle, rate
    builder = ModelBuilder("slider_crank", gravity=(0, 0, 0))
    z = (0.0, 0.0, 1.0)
    builder.body("crank", Inertia.point(1.0, (r, 0, 0)), joint=Revolute(z), joint_name="crank")
    light = Inertia.point(1e-9, (l, 0, 0))
    builder.body("rod", light, joint=Revolute(z), joint_name="pin", parent="crank", placement=(r, 0, 0))
    builder.body("slider", Inertia.box(mass, (0.1, 0.1, 0.1)), joint=Prismatic((1, 0, 0)), joint_name="slide")
    builder.frame("eye", "rod", (l, 0, 0))
    builder.loop("gudgeon", Revolute(z), "slider", "eye")
    model = builder.build()
    root = np.sqrt(l**2 - (r * np.sin(t)) ** 2)
    x = r * np.cos(t) + root
    dx = -r * np.sin(t) - r**2 * np.sin(t) * np.cos(t) / root
    ddx = -r * np.cos(t) - r**2 * (np.cos(2 * t) / root + (r * np.sin(t) * np.cos(t)) ** 2 / root**3)
    beta = -np.arcsin(r * np.sin(t) / l) - t
    state = model.assemble([t, beta + 0.1, x - 0.05], [w, 0, 0], fixed=["crank"])
    yield Check("assembled pin, slider", state.q[1:], (beta, x), 1e-12, "Newton's method to rounding")
    yield Check("speed of the slider [m/s]", np.asarray(state.v)[2], dx * w, 1e-11, "rounding")
    dw = (torque - mass * dx * ddx * w**2) / (1.0 * r**2 + mass * dx**2)
    found = model.constrained_dynamics(state.q, state.v, [torque, 0, 0])
    reason = "the rod's 1e-9 kg"
    yield Check(
        "crank, slider accelerations", found.accelerations[[0, 2]], (dw, ddx * w**2 + dx * dw), 1e-6, reason
    )
    force = -found.reactions["gudgeon"][3] * np.cos(t + state.q[1])
    yield Check("force on the slider [N]", force, mass * (ddx * w**2 + dx * dw), 1e-6, reason)
    turns = np.linspace(0, 2 * np.pi, 181)
    yield Plot.line(
        "crank [rad]", "slider [m]", turns, r * np.cos(turns) + np.sqrt(l**2 - (r * np.sin(turns)) ** 2)
    )


@case(
    source="""Freudenstein, Approximate synthesis of four-bar linkages, Trans. ASME 77 (1955): the displacement
    equation""",
    kind="published",
    tags=("loops",),
)
def freudenstein_four_bar(
    crank: float = 0.4, coupler: float = 1.1, rocker: float = 0.9, ground: float = 1.0
) -> Items:
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
    yield Plot.line("crank [rad]", "rocker [rad]", turns, np.unwrap(rockers))


@case(
    source="Two wheels with a ratio r: (I1 + r^2 I2) a = T",
    kind="closed form",
    tags=("loops", "simulation"),
)
def gear_coupling(ratio: float = -2.0, torque: float = 1.0, duration: float = 1.0) -> Items:
    """Two wheels with a gear between them turn like one."""
    builder = ModelBuilder("gear", gravity=(0, 0, 0))
    wheel = Inertia.cylinder(1.0, 0.5, 0.1, (0, 0, 1))
    for name in "ab":
        builder.body(name, wheel, joint=Revolute(), joint_name=name)
    model = builder.build().replace(couplings=(Coupling("gear", "b", ("a",), (ratio,)),))
    run = simulate(model, [0.1, 0.1 * ratio], duration=duration, step=0.05, efforts={"a": torque})
    inertia = 0.125 * (1 + ratio**2)
    expected = 0.1 + run.time**2 * torque / (2 * inertia)
    yield Check(
        "angle of the first [rad]", run.q[:, 0], expected, 1e-12, "constant acceleration: order 4 is exact"
    )
    yield Check("angle of the second [rad]", run.q[:, 1], ratio * run.q[:, 0], 1e-12, "projection")


@case(
    source="""Mazzia, Magherini, Test Set for Initial Value Problem Solvers, release 2.4 (2008), II-3: car axis problem,
    reference solution at 3 s (found with GAMD in quadruple precision)""",
    kind="published",
    tags=("loops", "simulation"),
)
def car_axis() -> Items:
    """A chassis on two springs over a bumpy road: one end of the axle follows the road, in a mechanism with a loop."""
    eps, mass, length, rest, bump, rate = 1e-2, 10.0, 1.0, 0.5, 0.1, 10.0
    builder = ModelBuilder("car_axis", gravity=(0, -1, 0))
    builder.body("axle", Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)), joint=Revolute(), joint_name="road")
    end = Inertia.point(mass * eps**2 / 2)
    builder.body("left", end, joint=Prismatic((0, 1, 0)), joint_name="guide", parent="axle")
    builder.body("right", end, joint=Translational(), joint_name="flight")
    builder.frame("tyre", "axle", (length, 0, 0)).frame("hub", "world", (0, 0, 0))
    builder.loop("chassis", Distance(length), "left", "right")
    model = builder.build()
    t = ca.SX.sym("t")
    road = ca.Function("road", [t], [ca.asin(bump * ca.sin(rate * t) / length)])
    springs = [SpringDamper("hub", "left", 1.0, length=rest), SpringDamper("tyre", "right", 1.0, length=rest)]

    def at(steps: int) -> np.ndarray:
        run = simulate(
            model, [0, rest, length, rest, 0], [rate * bump / length, 0, -0.5, 0, 0], duration=3.0, step=3.0 / steps,
            interval=3.0, integrator="rk4", prescribed={"road": road}, forces=springs,
        )  # fmt: skip
        q, v = run.q[-1], run.v[-1]
        return np.r_[model.frame_pose(q, "left").translation[:2], q[2:4], v[2:4]]

    published = [0.0493455784275402809122, 0.496989460230171153861, 1.04174252488542151681]
    published += [0.373911027265361256927, 0.0175568157537232222276, 0.770341043779251976443]
    names = "both ends of the chassis, and the velocity of the right one"
    yield Check.converging(names, at, 3000, published, 1e-12, order=3)


@case(
    source="""Klingel, Ueber den Lauf der Eisenbahnwagen auf gerader Bahn, Organ fuer die Fortschritte des Eisenbahnwesens 38
    (1883): wavelength 2 pi sqrt(r a / cone) of a wheelset that rolls freely""",
    kind="closed form",
    tags=("loops", "simulation"),
)
def klingel_wheelset(
    radius: float = 0.45, half_gauge: float = 0.75, cone: float = 0.05, rail: float = 0.3, speed: float = 4.0
) -> Items:
    """A wheelset of two cones on two round rails, held by surfaces that touch and driven by creep alone, hunts."""
    builder = ModelBuilder("wheelset")
    inertia = Inertia(1000.0, (0, 0, 0), (500.0, 0, 100.0, 0, 0, 500.0))
    builder.body("wheelset", inertia, joint=Free(), joint_name="at")
    for side, sign in (("left", 1), ("right", -1)):
        at = sign * half_gauge
        r = f"({radius} + {cone} * ({half_gauge} - {sign} * w))"
        builder.loop(
            side,
            TouchingSurfaces(
                ("u", f"{at} + {rail} * sin(w)", f"{rail} * (cos(w) - 1)"), (f"{r} * sin(u)", "w", f"-{r} * cos(u)"),
                (-1.0, -0.5), (1.0, 0.5), (-3.0, at - 0.03), (3.0, at + 0.03), samples=8,
            ),
            "world",
            "wheelset",
        )  # fmt: skip
    model = builder.build()
    q = model.neutral()
    q[1:3] = 0.003, radius
    start = model.assemble(q, [0, speed / radius, 0, speed, 0, 0])
    creep = [ContactFriction(side, 0.3, creep=2e5 * speed, travel=speed) for side in ("left", "right")]
    length = 2 * np.pi * np.sqrt(radius * half_gauge / cone)
    duration = np.ceil(80 * length / speed) / 100
    run = simulate(
        model, start.q, start.v, duration=duration, step=1e-3, integrator="rk4", forces=creep, interval=1e-2
    )
    x, y = run.q[:, 0], run.q[:, 1]
    k = np.flatnonzero(y[:-1] * y[1:] < 0)
    crossings = x[k] + (x[k + 1] - x[k]) * y[k] / (y[k] - y[k + 1])
    reason = (
        "half of cone (radius + rail) / half gauge: roll moves the contacts, which the formula leaves out"
    )
    yield Check(
        "wavelength [m]",
        2 * np.diff(crossings)[0],
        length,
        cone * (radius + rail) / half_gauge / 2 * length,
        reason,
    )


@case(
    source=acc1989(
        "Naccarato, Hughes", "sections 3 and 4, equations (12), (29), (38), (39); members in closed form"
    ),
    kind="closed form",
    tags=("loops", "acc1989"),
    missing="""geometry of the arm, of the obstacles and of the path, and the run times, which are in a figure: a truss
    of double octahedra here, whose bays are mirror images about the plane of the actuated triangle""",
)
def variable_geometry_truss(
    bays: int = 5, steps: int = 50, way: tuple[float, ...] = (3.5, 1.0, -2.5), clearance: float = 0.6
) -> Items:
    """A truss of five bays follows a reference curve past two cubes in 50 steps."""
    arm = truss_arm(bays)
    tip = arm.frame_pose(arm.neutral(), "tip").translation
    ends = tip + np.linspace(0, 1, steps)[:, None] * way
    cubes = [Visual(Box((1.0, 1.0, 1.0)), Placement(at)) for at in ((2.2, -0.2, 3.2), (-0.9, 0.4, 4.5))]
    first = ReferenceCurve.straight(tip, vertices=6)
    curves = first.reach(ends, length=(0.6 * tip[2], 1.15 * tip[2]), avoid=cubes, clearance=clearance)
    frames = [f"bay{k}.top" for k in range(1, bays + 1)]
    found = track_curve(arm, curves, frames)
    # each section to 1e-9; the error of one is in the base of the next, turned but not enlarged much
    few = bays * 1e-8
    reached = arm.frame_pose(found.q, "tip").translation
    yield Check("end effector on its path [m]", reached, ends, few, "tolerance 1e-9 of each bay")
    yield Check(
        "fixed members and pins [m]",
        arm.constraint_residual(found.q),
        0.0,
        1e-8,
        "tolerance 1e-9 of each bay",
    )
    near = np.array([curves.clearance(cube) for cube in cubes])
    # at 30 places of a curve of 8.2 m: between two of them it may come nearer by 1 - cos of its turn there, 0.14 m at 15 deg
    short = np.maximum(clearance - near, 0.0)
    yield Check("clearance that is missing [m]", short, 0.0, 0.05, "kept at 30 places of the curve")
    hinges, lengths = [], []
    base = [(np.eye(3), np.zeros(3))] * steps
    for k in range(1, bays + 1):
        X = arm.frame_pose(found.q, f"bay{k}.top")
        chords = [R.T @ (x - p) for (R, p), x in zip(base, X.translation, strict=True)]
        hinges.append([_mirrored(chord) for chord in chords])
        base = [(X.rotation[i], X.translation[i]) for i in range(steps)]
    angles = np.moveaxis(np.array(hinges), 1, 0)
    ours = found.q[:, [arm.q_slice(f"bay{k}.lower{j}").start for k in range(1, bays + 1) for j in (1, 2, 3)]]
    yield Check("hinges below the nodes [rad]", ours, angles.reshape(steps, -1), few, "tolerance of each bay")
    for k in range(1, bays + 1):
        lengths.append(found.distance(f"bay{k}.node1", f"bay{k}.node2"))
    at = np.linspace(0, 1, steps)
    yield Plot(
        "part of the way",
        "actuated member [m]",
        tuple(Line(f"bay {k + 1}", at, x) for k, x in enumerate(lengths)),
    )


def _mirrored(p: np.ndarray) -> list[float]:
    """The hinges of a bay, of unit members, whose top is at p: its nodes are in the plane that mirrors 0 onto p."""
    out = 1 / (2 * np.sqrt(3))
    height = np.sqrt(3) / 2
    stands = np.arctan2(np.sqrt(height**2 - out**2), out)
    n, found = p / np.linalg.norm(p), []
    for k in range(3):
        a = np.pi / 3 + 2 * np.pi * k / 3
        e = np.array([np.cos(a), np.sin(a), 0.0])
        # n . (out e + height (cos t e + sin t z)) = |p| / 2
        x, y = height * n @ e, height * n[2]
        c = (np.linalg.norm(p) / 2 - out * n @ e) / np.hypot(x, y)
        roots = np.arctan2(y, x) + np.array([1, -1]) * np.arccos(c)
        found.append(float(roots[np.argmin(np.abs(roots - stands))] - stands))
    return found


def three_link(lengths: tuple[float, ...], masses: tuple[float, ...], moments: tuple[float, ...]) -> Model:
    builder = ModelBuilder("ider", gravity=(0, 0, 0))
    parent, at = WORLD, 0.0
    for k, (l, m, moment) in enumerate(zip(lengths, masses, moments, strict=True)):
        link = Inertia(m, (l / 2, 0, 0), (moment, 0, moment, 0, 0, moment))
        builder.body(
            f"link{k + 1}",
            link,
            joint=Revolute(),
            joint_name=f"joint{k + 1}",
            parent=parent,
            placement=(at, 0, 0),
        )
        parent, at = f"link{k + 1}", l
    builder.frame("A", parent, (at, 0, 0))
    return builder.equation("path", ["x - 1.9088", "y - 0.9893"], {"x": "A.x", "y": "A.y"}).build()


@case(
    source=acc1989(
        "Ider (control forces)", "equations (17)-(19), three-link example; end values computed independently"
    ),
    kind="reference",
    tags=("loops", "simulation", "acc1989"),
    missing="""places of the mass centres (middle of the links here) and gravity (none here); curves only in
    figures; h in (22) is misprinted and was derived anew""",
)
def ider_three_link(
    lengths: tuple[float, ...] = (1.0, 1.0, 1.0),
    masses: tuple[float, ...] = (30.0, 18.0, 18.0),
    moments: tuple[float, ...] = (10.0, 8.64, 8.64),
    start_deg: tuple[float, ...] = (60.0, -10.0, -90.0),
    rates: tuple[float, ...] = (0.386, 0.0, -0.9618),
    speed: float = -1.0,
) -> Items:
    """A prescribed end-effector path, with reactions along the constraint and with two motors only."""
    model = three_link(lengths, masses, moments)
    q0, v0 = np.deg2rad(start_deg), np.array(rates)
    place = model.frame_pose(q0, "A").translation[:2]
    yield Check("start of the path [m]", place, (1.9088, 0.9893), 5e-5, "four printed digits")
    J = model.frame_jacobian(q0, "A", reference="local_world_aligned")[3:5]
    yield Check("velocity at the start [m/s]", J @ v0, (speed, 0.0), 2e-4, "four digits of the printed rates")
    v0 = v0 + np.linalg.pinv(J) @ (np.array([speed, 0.0]) - J @ v0)

    def solve(q: np.ndarray, v: np.ndarray, motors: Any) -> tuple[np.ndarray, np.ndarray]:
        """(17): M y' + Q + Z^T nu = F with B y' = h; Z = B, or the directions of the motors."""
        found = model.control_forces(q, v, motions={"path": [0.0, 0.0]}, actuators=motors)
        return found.accelerations, found.efforts

    published = {
        "reactions": (None, (80.731, -12.507, -136.090), (-12.771, -5.752, 1.169)),
        "two motors": (["joint2", "joint3"], (87.136, -23.201, -129.133), (0.0, -7.563, 1.557)),
    }
    lines = []
    for name, (directions, angles, moments_0) in published.items():
        found = scipy.integrate.solve_ivp(
            lambda t, y, d=directions: np.concatenate([y[3:], solve(y[:3], y[3:], d)[0]]),
            (0.0, 1.0),
            np.concatenate([q0, v0]),
            rtol=1e-11,
            atol=1e-12,
            method="DOP853",
            t_eval=np.linspace(0, 1, 51),
        )
        q = found.y[:3].T
        digits = "three printed decimals; the start differs by the four digits of the printed rates"
        yield Check(f"{name}: angles at 1 s [deg]", np.rad2deg(q[-1]), angles, 2e-2, digits)
        yield Check(
            f"{name}: moments at the start [N m]", solve(q0, v0, directions)[1], moments_0, 5e-3, digits
        )
        reduced = model.control_forces(
            q[25], found.y[3:, 25], motions={"path": [0.0, 0.0]}, actuators=directions, method="reduced"
        )
        both = np.max(np.abs(reduced.efforts - solve(q[25], found.y[3:, 25], directions)[1]))
        yield Check(f"{name}: (17) and (18) at 0.5 s [N m]", both, 0.0, 1e-10, "rounding")
        tip = model.frame_pose(q[-1], "A").translation[:2]
        yield Check(
            f"{name}: end of the path [m]",
            tip,
            place + np.array([speed, 0.0]),
            1e-9,
            "constraints on accelerations, integrated",
        )
        lines.append(Line(f"{name}: joint 1", found.t, np.rad2deg(q[:, 0])))
    yield Plot("t [s]", "[deg]", tuple(lines))


@case(
    source=acc1989("Ider (joint drives)", "place of the point A at the start"),
    kind="published",
    tags=("tree", "acc1989"),
    missing="""area moment of link 2, boundary conditions of the modes, gravity: only the rigid kinematics are
    used; L2 in (30)-(31) is read as the distance of A""",
)
def ider_flexible_start(
    link1: float = 1.0,
    point: float = 1.8,
    angles_deg: tuple[float, float] = (80.0, -160.0),
    m: tuple[float, float] = (30.0, 15.0),
) -> Items:
    """The point A on the second link at the start of the path."""
    builder = ModelBuilder("ider_flexible", gravity=(0, 0, 0))
    builder.body("one", Inertia.rod(m[0], (0, 0, 0), (link1, 0, 0)), joint=Revolute(), joint_name="theta1")
    rod = Inertia.rod(m[1], (0, 0, 0), (2.7, 0, 0))
    builder.body("two", rod, joint=Revolute(), joint_name="theta2", parent="one", placement=(link1, 0, 0))
    model = builder.frame("A", "two", (point, 0, 0)).build()
    place = model.frame_pose(np.deg2rad(angles_deg), "A").translation
    yield Check("x, y of A [m]", place[:2], (0.4862, -0.7878), 5e-5, "four printed digits")


@case(
    source=f"An arm with a ball at shoulder and wrist (links 0.36, 0.42, 0.4, 0.126 m): {SCRIPT}",
    kind="reference",
    tags=("tree",),
)
def elbow_circle() -> Items:
    """Where the hand of a redundant arm is, and the circle about the line from shoulder to wrist that its elbow stays on."""
    y, z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    axes = (z, y, z, (0.0, -1.0, 0.0), z, y, z)
    lengths = {1: 0.36, 3: 0.42, 5: 0.4}  # below the joints of shoulder, elbow and wrist
    builder = ModelBuilder("arm", gravity=(0, 0, 0))
    parent = "world"
    for k, axis in enumerate(axes):
        builder.body(
            f"link{k + 1}",
            Inertia.sphere(1.0, 0.05),
            joint=Revolute(axis),
            joint_name=f"q{k + 1}",
            parent=parent,
            placement=(0.0, 0.0, lengths.get(k, 0.0)),
        )
        parent = f"link{k + 1}"
    builder.frame("hand", parent, (0.0, 0.0, 0.126))
    model = builder.build()
    target = model.frame_pose(np.array([0.3, 0.6, -0.4, -1.2, 0.5, 0.8, -0.2]), "hand")
    published = (0.690204467943, 0.058247845803, 0.530584630682)
    yield Check("hand [m]", target.translation, published, 1e-12, "half a unit of the last digit printed")
    starts = np.random.default_rng(0).uniform(-1.5, 1.5, (20, model.nq))
    found = [reach(model, {"hand": target}, start=q) for q in starts]
    q = np.array([one.q for one in found])
    missed = max(
        np.abs(X.translation - target.translation).max()
        for X in (model.frame_pose(one.q, "hand") for one in found)
    )
    yield Check("reached from 20 places, off by [m]", missed, 0.0, 1e-9, "what the search is asked for")
    shoulder, elbow, wrist = (model.frame_pose(q, f"link{k}").translation for k in (2, 4, 6))
    along = (wrist - shoulder) / np.linalg.norm(wrist - shoulder, axis=-1, keepdims=True)
    radius = np.linalg.norm(np.cross(elbow - shoulder, along), axis=-1)
    reason = (
        "a hand within 1e-9 m and 1e-9 rad: the wrist 1e-9 m off, and the elbow up to three times as much"
    )
    yield Check("circle of the elbow [m]", radius, np.full(len(q), 0.231333493403), 4e-9, reason)


@case(
    source="""A bay of the truss of Naccarato and Hughes (1989), base and longerons 1 m: the nodes of a triangle of side s
    are at the height sqrt(1 - (1 + s^2 - s)/3)""",
    kind="closed form",
    tags=("loops",),
)
def octahedral_bay() -> Items:
    """Three members of a truss are made 0.8 or 1.2 m long: how high their nodes stand."""
    model = truss_arm(1)
    nodes = [f"bay1.node{k}" for k in (1, 2, 3)]
    for side, height in ((0.8, 0.848528137), (1.2, 0.765941686)):
        members = [
            distance(a, side, relative_to=b) for a, b in zip(nodes, nodes[1:] + nodes[:1], strict=True)
        ]
        q = reach(model, members).q
        reason = "half a unit of the last digit printed, and lengths to 1e-9 m"
        found = [model.frame_pose(q, node).translation[2] for node in nodes]
        yield Check(f"side {side:g} m: heights [m]", found, [height] * 3, 2e-9, reason)

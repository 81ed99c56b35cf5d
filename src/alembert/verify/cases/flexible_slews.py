"""What modes carry, whether they are enough, and flexible arms and satellites that move: early inputs, slews, a crane."""

import functools

import casadi as ca
import numpy as np

from alembert.flexible import (
    CrossSection,
    Member,
    beam,
    completeness,
    craig_bampton,
    effective_masses,
    framework,
    normal_modes,
    stable_inversion,
    structure_body,
)
from alembert.joints import Fixed, Revolute
from alembert.linear import linearize
from alembert.model import Inertia, ModalBody, Model, ModelBuilder, Placement
from alembert.optimal import Problem, Solution, duration, effort
from alembert.simulate import Table, simulate
from alembert.verify.case import JPL1989, Check, Items, family
from alembert.verify.cases.flexible_beams import HUB, on_a_hub
from alembert.verify.cases.flexible_structures import MESH, straight

case = family("flexible")

Array = np.ndarray


@case(
    source="Cantilever modes: effective masses 4 s^2/x^2, s = (sinh x - sin x)/(cosh x + cos x), cos x cosh x = -1",
    kind="closed form",
)
def effective_masses_of_a_cantilever() -> Items:
    """The share of each mode in the mass that a moving root moves; half the mass beyond the first mode is in few more."""
    fe = straight(40)
    x = np.array([1.875104068711961, 4.694091132974175, 7.854757438237613, 10.99554073487547])
    s = (np.sinh(x) - np.sin(x)) / (np.cosh(x) + np.cos(x))
    found = effective_masses(fe, normal_modes(fe, 4, held=0), 0)[:, 1]
    yield Check("effective masses", found, 4 * s**2 / x**2, 1e-5, MESH)


def _two_links(elbow: float, modes: int, stiffness: float) -> tuple[Model, Array]:
    """The arm of Table 1, its shoulder at rest."""
    builder = ModelBuilder("two links", gravity=(0, 0, 0))
    first = beam(0.9144, 1.33937, EI_z=stiffness, bending_y=modes)
    second = beam(0.9144, 0.669685, EI_z=stiffness, bending_y=modes)

    def rotor(mass: float, inertia: float) -> Inertia:
        return Inertia(mass, (0, 0, 0), (inertia, 0, inertia, 0, 0, inertia))

    builder.body("inner", first, joint=Revolute((0, 0, 1)), joint_name="shoulder", placement=(0.0762, 0, 0))
    builder.body(
        "hinge", rotor(14.0, 0.03), joint=Fixed(), parent="inner", node="tip", placement=(0.0762, 0, 0)
    )
    builder.body("turn", Inertia.point(1e-6), joint=Revolute((0, 0, 1)), joint_name="elbow", parent="hinge")
    builder.body("outer", second, joint=Fixed(), parent="turn", placement=(0.0127, 0, 0))
    builder.body(
        "hand", rotor(2.0, 0.01), joint=Fixed(), parent="outer", node="tip", placement=(0.0508, 0, 0)
    )
    model = builder.build()
    q = model.neutral()
    q[model.q_slice("elbow")] = elbow
    return model, q


@case(
    source=f"Padilla and von Flotow, Nonlinear strain-displacement relations, {JPL1989}, Table 1: locked-joint frequencies",
    kind="published",
    tags=("tree", "acc1989"),
    missing="EI of the links (taken as equal; its size does not matter here) and the offsets of the elbow's mass centres",
)
def modes_of_a_two_link_arm() -> Items:
    """From 3 rad/s stretched to 4 rad/s folded; two modes a link give the first frequency within 3 % of four.

    In print the second frequency is within 3 % too. With links of equal stiffness it is off by 6 %: how their stiffnesses
    compare is missing, and is not fitted here.
    """
    model, q = _two_links(0.0, 4, 1.0)
    angles = np.radians(np.linspace(0.0, 135.0, 10))
    every = np.tile(q, (10, 1))
    every[:, model.q_slice("elbow")] = angles[:, None]
    found = completeness(model, {"inner": 2, "outer": 2}, every, modes=1)
    yield Check("error of two modes a link", found.worst[0], 0.0, 0.03, "the sentence in print")
    # frequencies go with the root of EI: the ratio is known without it
    ratio = found.full[-1, 0] / found.full[0, 0]
    yield Check("folded over stretched", ratio, 4.0 / 3.0, 0.3, "3 and 4 rad/s are printed with one digit")


@case(
    source="Hub of inertia 0.1 with a beam: the least real zero from torque to tip, +11.186642724, by two methods",
    kind="reference",
    tags=("control", "linearisation"),
)
def early_start() -> Items:
    """The input for a prescribed tip begins before the motion, and grows as the zero in the right half plane says."""
    model = on_a_hub(beam(1.0, 1.0, EI_z=1.0, bending_y=6, damping=(0.0, 1e-4)), hub=HUB)
    G = linearize(model, model.neutral(), inputs=["shaft"], outputs=["frame:tip.position"]).to_statespace()
    tip = type(G)(G.A, G.B, G.C[[1]], G.D[[1]])
    t = np.linspace(0.0, 1.0, 801)
    a = 1000 * t**3 * (1 - t) ** 3 * (1 - 2 * t)
    found = stable_inversion(tip, t, a, before=1.0, after=2.0)
    early = (found.t > -0.5) & (found.t < -0.3)  # faster zeros have died out, and rounding is far
    slope = np.polyfit(found.t[early], np.log(np.abs(found.u[early, 0])), 1)[0]
    yield Check("growth before the start [1/s]", slope, 11.186642724, 0.03, "six modes; damping of 1e-4 K")
    y = tip.simulate(found.t, found.u, hold="first").y[-1, 0]
    power = np.polynomial.Polynomial([0, 1])
    whole = (1000 * power**3 * (1 - power) ** 3 * (1 - 2 * power)).integ(2)(1.0)
    yield Check(
        "where the tip ends [m]", y, whole, 2e-3 * abs(whole), "inputs joined by lines, 1/800 s apart"
    )


@case(
    source=f"Ider, Joint drives for stable end-effector motion in flexible robots, {JPL1989}: the arm of the example",
    kind="identity",
    tags=("loops", "acc1989"),
    missing="the area moment of link 2 (a square section here), modes, gravity; curves of the figures are not compared",
)
def flexible_joint_drives() -> Items:
    """Two joints alone accelerate a point of a link that bends as prescribed; nothing acts on the modes."""
    EI = 68.95e9 * 0.0005**2 / 12
    builder = ModelBuilder("ider", gravity=(0, 0, 0))
    link = Inertia(30.0, (0.5, 0, 0), (10.0, 0, 10.0, 0, 0, 10.0))
    builder.body("one", link, joint=Revolute((0, 0, 1)), joint_name="joint1")
    outer = beam(2.7, 15 / 2.7, EI_z=EI, bending_y=2, nodes={"A": 1.8 / 2.7})
    builder.body(
        "two", outer, joint=Revolute((0, 0, 1)), joint_name="joint2", parent="one", placement=(1.0, 0, 0)
    )
    builder.frame("A", "two", node="A")
    tree = builder.build()
    model = builder.equation("path", ["x", "y"], {"x": "A.x", "y": "A.y"}).build()
    q = np.array([np.radians(80.0), np.radians(-160.0), 0.02, -0.005])
    wanted = [1.5, -0.3]
    still = np.zeros(4)
    found = model.control_forces(q, still, motions={"path": wanted}, actuators=["joint1", "joint2"])
    J = model.frame_jacobian(q, "A", reference="local_world_aligned")[3:5]
    yield Check(
        "acceleration of A [m/s^2]",
        J @ found.accelerations,
        wanted,
        1e-9,
        "rounding times the condition of M, 1e5",
    )
    tau = tree.inverse_dynamics(q, still, found.accelerations)
    yield Check("forces on the modes [N]", tau[2:], [0.0, 0.0], 1e-8, "rounding of efforts of 1e3 N")
    yield Check("drives [N m]", tau[:2], found.efforts[:2], 1e-8, "the same")


def _satellite(modes: int) -> Model:
    """A hub that turns, and two panels; what turns it bends both alike."""
    builder = ModelBuilder("slew", gravity=(0, 0, 0))
    hub = Inertia(1.0, (0, 0, 0), (0.4, 0, 0.4, 0, 0, 0.4))
    builder.body("hub", hub, joint=Revolute((0, 0, 1)), joint_name="pin")
    for name, angle in (("right", 0.0), ("left", np.pi)):
        panel, turned = beam(1.0, 1.0, EI_z=1.0, bending_y=modes), Placement.from_rpy((0, 0, angle))
        builder.body(name, panel, joint=Fixed(), parent="hub", placement=turned)
    return builder.build()


@case(
    source="Slew of a satellite with two panels from rest to rest at least effort, planned with two modes, flown with six",
    kind="identity",
    tags=("optimal",),
)
def slew_without_vibration() -> Items:
    """What is left of the energy after a slew: nothing by the modes of the plan, little by the others."""
    span, angle, steps = 2.0, 0.2, 80
    plan = _satellite(2)
    # the other panel moves alike: its conditions would repeat those of the right one
    end = {"q": {"pin": angle, "right": 0}, "v": {"pin": 0, "right": 0}}
    found = Problem(plan, span, start={"q": 0, "v": 0}, end=end, cost=effort()).solve(
        steps, transcription="rk4"
    )
    inertia = 0.4 + 2.0 / 3.0
    middle = (np.arange(steps) + 0.5) / steps
    stiff = (
        6 * inertia * angle / span**2 * (1 - 2 * middle)[:, None]
    )  # the least effort for panels that are rigid

    def left(model: Model, torque: Array) -> float:
        """Energy of the elastic motion at the end, small motion, torques held over each step."""
        G = linearize(model, model.neutral(), inputs=["pin"]).to_statespace()
        t = span / steps * np.arange(steps + 1)
        x = G.simulate(t, np.vstack([torque, torque[-1:]])).x[-1]
        q, v = x[: model.nv], x[model.nv :]
        M = model.mass_matrix(model.neutral())
        panel = model.body("right").flexible
        assert panel is not None
        K = np.kron(np.eye(2), panel.array("stiffness"))
        v = v - (M[0] @ v) / M[0, 0] * np.eye(model.nv)[0]  # without the motion of the whole
        return float(v @ M @ v + q[1:] @ K @ q[1:]) / 2

    worst = left(_satellite(6), stiff)
    reason = "rotation stiffens by (0.2/6)^2 of the stiffness, which the linear check leaves out; RK4 of steps of 1/40 s"
    yield Check(
        "left by the plan's modes, of the rigid plan's", left(plan, found.controls) / worst, 0.0, 1e-4, reason
    )
    reason = (
        "modes that the plan does not know are at 62 rad/s and above: (6/62)^2 of the excitation, squared"
    )
    yield Check("left by six modes", left(_satellite(6), found.controls) / worst, 0.0, 1e-2, reason)


LINE = 1.13
"""x + y on the way of the tip, m"""


def eisler_arm(EI: float, modes: int = 0) -> Model:
    """Brackets are rods; of the 5.415 kg at the elbow 0.83 kg are its bracket, as beyond it, the rest is a point."""
    builder = ModelBuilder("two-link arm", gravity=(0, 0, 0))

    def link(length: float, mass: float) -> ModalBody:
        return beam(length, mass / length, EI_z=EI, bending_y=modes, ends="craig-bampton")

    def bracket(length: float, mass: float) -> Inertia:
        return Inertia.rod(mass, (0, 0, 0), (length, 0, 0))

    builder.body("base", bracket(0.0635, 0.545), joint=Revolute((0, 0, 1)), joint_name="shoulder")
    builder.body("inner", link(0.504, 0.64), joint=Fixed(), parent="base", placement=(0.0635, 0, 0))
    motor = bracket(0.107, 0.83) + Inertia.point(5.415 - 0.83, (0.107, 0, 0))
    builder.body("motor", motor, joint=Fixed(), parent="inner", node="tip")
    turn, at = Revolute((0, 0, 1)), (0.107, 0, 0)
    builder.body("fork", bracket(0.104, 0.83), joint=turn, joint_name="elbow", parent="motor", placement=at)
    builder.body("outer", link(0.489, 0.313), joint=Fixed(), parent="fork", placement=(0.104, 0, 0))
    builder.frame("tip", "outer", node="tip")
    return builder.build()


def _at_rest(model: Model, turned: float) -> Array:
    """With the tip on the y axis, turned from there."""
    inner, outer = 0.0635 + 0.504 + 0.107, 0.104 + 0.489
    elbow = -np.arccos((LINE**2 - inner**2 - outer**2) / (2 * inner * outer))
    shoulder = np.pi / 2 - np.arctan2(outer * np.sin(elbow), inner + outer * np.cos(elbow))
    return model.configuration({"shoulder": shoulder + turned, "elbow": elbow})


def eisler_slew(EI: float, steps: int, quarter: float, guess: Solution | None = None) -> Solution:
    """Least time; torques take `quarter` of a second from zero to their bounds."""
    model = eisler_arm(EI)
    most = {"shoulder": 16.0, "elbow": 4.0}
    slack = 0.005 * np.sqrt(2)
    problem = Problem(
        model,
        (0.8, 3.0),
        start={"q": _at_rest(model, 0.0), "v": 0},
        end={"q": _at_rest(model, -np.pi / 2), "v": 0},
        # a little effort decides about torques that time leaves open
        cost=duration() + 1e-4 * effort(),
        limits={"tau": most, "rate": {name: x / quarter for name, x in most.items()}},
        path={"line": (lambda s: ca.sum1(s.frame("tip").translation[:2]) - LINE, -slack, slack)},
    )
    return problem.solve(steps, transcription="dmoc", guess=guess)


def _flown(model: Model, found: Solution) -> tuple[Array, float]:
    """Place of the tip at the end, and what energy is left over the largest on the way."""
    count = len(found.controls)
    times = found.duration / count * np.arange(count)
    run = simulate(
        model,
        _at_rest(model, 0.0),
        duration=found.duration,
        efforts={
            name: Table(times, found.controls[:, k], "hold") for k, name in enumerate(("shoulder", "elbow"))
        },
        integrator="generalised_alpha",
        step=found.duration / count / 100,
        interval=found.duration / count,
    )
    energy = model.kinetic_energy(run.q, run.v) + model.potential_energy(run.q)
    return np.asarray(model.frame_pose(run.q[-1], "tip").translation[:2]), float(energy[-1] / energy.max())


@case(
    source=f"Eisler, Segalman, Robinett, Approximate minimum-time trajectories for 2-link flexible manipulators, {JPL1989}",
    kind="published",
    tags=("optimal", "acc1989"),
    missing="""point inertias of the brackets (rods here), how 5.415 kg are shared (0.83 kg of bracket here), and how fast
    torques may change: their tables of 21 values were stopped on the way to the optimum. A quarter of a second from zero to
    the bound is taken here, which was fitted to the printed time on 20 steps: that the times agree shows no more than that
    such a limit explains them. Without it the least time is about 1.25 s, and on 40 steps it is 1.413 s with it: the errors
    of 20 intervals are worth much of the time (status "coarse"), as those of the printed tables must be.""",
)
def slew_of_a_two_link_arm(steps: int = 20, quarter: float = 0.25) -> Items:
    """Along a line within 5 mm, from rest to rest, torques within 16 and 4 N m; EI 1000, and from there 100 N m^2."""
    stiff = eisler_slew(1000.0, steps, quarter)
    found = eisler_slew(100.0, steps, quarter, stiff)
    solved = stiff.converged and found.converged
    yield Check.holds("both are solved on this mesh", solved, "status of the solver")
    reason = "print: 1.505 s, to which the rate of torques is fitted. A step in torques at 20 instants is 3 % of the time"
    yield Check("time, EI 100 [s]", found.duration, 1.505, 0.045, reason)
    yield Check("over that of EI 1000", found.duration / stiff.duration, 1.0, 0.06, "slightly greater")
    # the plan has two shapes a link and 20 steps, of 75 ms; the bending that goes with the elbow is at some 3 Hz
    tip, left = _flown(eisler_arm(100.0, 1), found)
    reason = "steps of a quarter of the slowest period, flown exactly with a mode more a link"
    yield Check("tip at the end of the flight [m]", tip, [LINE, 0.0], 0.03, reason)
    yield Check("energy left, of the largest", left, 0.0, 0.05, "the same, squared")


@functools.cache
def crane_boom(bays: int = 8, pitch: float = 6.0, radius: float = 1.5) -> ModalBody:
    """A mast of three longerons, with modes that bend in its plane, and the shapes of its end."""
    tube = CrossSection.tube(E=70e9, rho=2700.0, radius=0.04, thickness=0.003)
    nodes = {
        f"{bay}{c}": (bay * pitch, radius * np.cos(angle), radius * np.sin(angle))
        for bay in range(bays + 1)
        for c, angle in zip("abc", np.radians([0, 120, 240]), strict=True)
    }
    members = []
    for bay in range(bays + 1):
        for i, j in ("ab", "bc", "ca"):
            members.append(Member(f"{bay}{i}", f"{bay}{j}", tube))
            if bay < bays:
                members += [Member(f"{bay}{i}", f"{bay + 1}{k}", tube) for k in (i, j)]
    fe = framework(nodes, members)
    root, tip = ([f"{bay}{c}" for c in "abc"] for bay in (0, bays))
    shapes = craig_bampton(fe, root, {"tip": tip}, 0).only([1, 5])  # across, in the plane, and its slope
    return structure_body(fe, shapes, attachment=root, nodes={"tip": tip})


def space_crane() -> Model:
    """Two booms of 48 m on a hinged base, and a payload of 2000 kg."""
    builder = ModelBuilder("space crane", gravity=(0, 0, 0))
    boom, axis = crane_boom(), Revolute((0, 0, 1))
    builder.body("inner", boom, joint=axis, joint_name="base")
    builder.body("outer", boom, joint=axis, joint_name="elbow", parent="inner", node="tip")
    load = Inertia.box(2000.0, (3.0, 3.0, 3.0))
    builder.body("payload", load, joint=Fixed(), parent="outer", node="tip")
    builder.frame("hook", "outer", node="tip")
    return builder.build()


@case(
    source=f"Chen, Housner, Wu, Chang, Flexible space crane (LATDYN), {JPL1989}: actuation profile and dynamics envelope",
    kind="identity",
    tags=("simulation", "acc1989"),
    missing="all data: only the abstract is printed; booms of 48 m, a payload of 2000 kg and the path are our own",
)
def space_crane_along_a_path(span: float = 60.0) -> Items:
    """Joints follow a path from rest to rest: what the drives give, and how far the hook is from that of rigid booms."""
    model = space_crane()
    joints = [model.v_slice(name).start for name in ("base", "elbow")]
    bends = [k for k in range(model.nv) if k not in joints]
    stiffness = model.inverse_dynamics_derivatives(
        model.neutral(), np.zeros(model.nv), np.zeros(model.nv)
    ).dq[np.ix_(bends, bends)]

    def flown(whole: float) -> tuple[float, float, float, float]:
        """The envelope, that of slow motion, how far work and energy are apart, and torques from those of rigid booms."""
        t = ca.SX.sym("t")
        x = t / whole
        share = x**3 * (10 - 15 * x + 6 * x**2)
        ways = {"base": np.pi / 3 * share, "elbow": np.pi / 2 - np.pi / 3 * share}
        run = simulate(
            model,
            model.configuration({"elbow": np.pi / 2}),
            duration=whole,
            prescribed={name: ca.Function(name, [t], [way]) for name, way in ways.items()},
            interval=whole / 120,
            integrator="rk4",
            step=0.0125,
        )
        rigid, slow = run.q.copy(), run.q.copy()
        rigid[:, bends] = 0.0
        v, a = run.v.copy(), np.zeros_like(run.v)
        v[:, bends] = 0.0
        at = run.time / whole
        bend = (60 * at - 180 * at**2 + 120 * at**3) / whole**2
        a[:, joints] = bend[:, None] * np.array([np.pi / 3, -np.pi / 3])
        efforts = model.inverse_dynamics(rigid, v, a)
        slow[:, bends] = -np.linalg.solve(stiffness, efforts[:, bends].T).T  # what inertia bends, slowly
        ends = [model.frame_pose(q, "hook").translation for q in (rigid, run.q, slow)]
        off, still = (np.linalg.norm(place - ends[0], axis=-1) for place in ends[1:])
        given = run.required_efforts[:, joints]
        work = float(np.trapezoid(np.sum(given * run.v[:, joints], axis=1), run.time))
        most = float(np.max(model.kinetic_energy(run.q, run.v)))
        left = float(model.kinetic_energy(run.q[-1], run.v[-1]) + model.potential_energy(run.q[-1]))
        more = float(np.abs(given - efforts[:, joints]).max() / np.abs(efforts[:, joints]).max())
        return float(off.max()), float(still.max()), (work - left) / most, more

    off, still, work, more = flown(span)
    less, slow, _, less_more = flown(2 * span)
    reason = "the lowest mode is at 0.085 Hz, the path at 1/60 Hz: 4 % more, and what its ends excite"
    yield Check("envelope, of that of slow motion", off / still, 1.0, 0.1, reason)
    yield Check("at half the speed, slow motion [m]", slow, still / 4, 1e-2 * still, "inertia: rates squared")
    yield Check("envelope at half the speed", off / less, 4.0, 0.4, "the same, and what swings")
    yield Check("work of the drives less energy, of the most", work, 0.0, 1e-3, "120 records, trapezia")
    what = "torques beyond those of rigid booms, half the speed: less"
    yield Check.holds(what, less_more < more / 2, "it swings less")

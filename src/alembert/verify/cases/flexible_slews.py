"""Slews of flexible arms: minimum time with bounded torques, and a crane along a path."""

import functools

import casadi as ca
import numpy as np

from alembert.flexible import CrossSection, Member, beam, craig_bampton, framework, structure_body
from alembert.joints import Fixed, Revolute
from alembert.model import Inertia, ModalBody, Model, ModelBuilder
from alembert.optimal import Problem, Solution, duration, effort
from alembert.simulate import Table, simulate
from alembert.verify.case import Check, Items, case
from alembert.verify.cases.flexible_structures import ACC1989

Array = np.ndarray
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
        progress=False,
    )
    energy = model.kinetic_energy(run.q, run.v) + model.potential_energy(run.q)
    return np.asarray(model.frame_pose(run.q[-1], "tip").translation[:2]), float(energy[-1] / energy.max())


@case(
    source=f"Eisler, Segalman, Robinett, Approximate minimum-time trajectories for 2-link flexible manipulators, {ACC1989}",
    kind="published",
    tags=("flexible", "optimal", "acc1989"),
    missing="""point inertias of the brackets (rods here), how 5.415 kg are shared (0.83 kg of bracket here), and how fast
    torques may change: their tables of 21 values were stopped on the way to the optimum. A quarter of a second from zero to
    the bound is taken here, which was fitted to the printed time on 20 steps: that the times agree shows no more than that
    such a limit explains them. Without it the least time is about 1.25 s, and on 40 steps it is 1.413 s with it.""",
    parameters={"steps": 20, "quarter": 0.25},
)
def slew_of_a_two_link_arm(steps: int, quarter: float) -> Items:
    """Along a line within 5 mm, from rest to rest, torques within 16 and 4 N m; EI 1000, and from there 100 N m^2."""
    stiff = eisler_slew(1000.0, steps, quarter)
    found = eisler_slew(100.0, steps, quarter, stiff)
    solved = float(stiff.success and found.success)
    yield Check("both are solved", solved, 1.0, 0.0, "status of the solver")
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
    source=f"Chen, Housner, Wu, Chang, Flexible space crane (LATDYN), {ACC1989}: actuation profile and dynamics envelope",
    kind="identity",
    tags=("flexible", "simulation", "acc1989"),
    missing="all data: only the abstract is printed; booms of 48 m, a payload of 2000 kg and the path are our own",
    parameters={"span": 60.0},
)
def space_crane_along_a_path(span: float) -> Items:
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
            progress=False,
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
    less_more = float(less_more < more / 2)
    yield Check(
        "torques beyond those of rigid booms, half the speed: less", less_more, 1.0, 0.0, "it swings less"
    )

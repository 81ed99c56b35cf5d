"""Flexible bodies far from rest: large deflections by segments, spin-ups, a beam that flies.

References are solutions of the differential equations of the elastica and of Cosserat beams by two methods, to the digits
shown, or conservation laws.
"""

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import AlembertWarning
from alembert.flexible import beam
from alembert.joints import Fixed, Planar, Revolute
from alembert.model import Model, ModelBuilder, Placement
from alembert.model.modal import Stiffening
from alembert.simulate import ForceElement, simulate
from alembert.spatial import Pose
from alembert.verify.case import Check, Items, family
from alembert.verify.cases.flexible_beams import clamped
from alembert.verify.cases.flexible_loads import frequencies

case = family("flexible")

Array = np.ndarray


class Statics:
    """Equilibria under a dead force on the frame `tip`, and under a moment about z (where all turns about z add)."""

    def __init__(self, model: Model, force: Array, turns: Array | None = None) -> None:
        q, s = ca.SX.sym("q", model.nq), ca.SX.sym("s")
        self.tip = model.symbolic.frame_pose(q, "tip")
        work: ca.SX = ca.dot(ca.SX(force), self.tip.translation)
        if turns is not None:
            work = ca.dot(ca.SX(turns), q)
        H, g = ca.hessian(model.symbolic.potential_energy(q) - s * work, q)
        self._slopes = ca.Function("slopes", [q, s], [g, H])
        self._pose = ca.Function("pose", [q], [self.tip.translation, self.tip.rotation])
        self.q = np.zeros(model.nq)

    def load(self, share: float, steps: int = 4) -> tuple[Array, Array]:
        """Newton's method in steps of the load; place and axes of the tip."""
        start = getattr(self, "_share", 0.0)
        for at in np.linspace(start, share, steps + 1)[1:]:
            for _ in range(50):
                g, H = (np.asarray(x) for x in self._slopes(self.q, at))
                step = np.linalg.solve(H, -g).ravel()
                size = float(np.abs(step).max())
                self.q = self.q + step * min(1.0, 0.5 / max(size, 1e-300))
                if size < 1e-11:
                    break
        self._share = share
        p, R = (np.asarray(x) for x in self._pose(self.q))
        return p.ravel(), R


def cantilever(segments: int, rigid: bool = False) -> Model:
    return clamped(beam(1.0, 1.0, EI_z=1.0, segments=segments, rigid=rigid))


@case(
    source="Euler's elastica: a cantilever under a dead force across, P L^2 / EI = 1, 2, 5, 10; elliptic integrals",
    kind="closed form",
    tags=("tree",),
)
def elastica(segments: int = 12) -> Items:
    """Deflection of the tip, and how far it comes back; segments converge with the third power of their number."""
    references = {
        1.0: (0.3017207738, 0.0564332363),
        2.0: (0.4934574804, 0.1606417208),
        5.0: (0.7137915236, 0.3876283607),
        10.0: (0.8106090249, 0.5549955978),
    }
    statics = {k: Statics(cantilever(k), np.array([0.0, 1.0, 0.0])) for k in (segments // 2, segments)}

    def deflection(k: int, load: float) -> list[float]:
        tip, _ = statics[k].load(load)
        return [tip[1], 1 - tip[0]]

    for load, expected in references.items():
        at = functools.partial(deflection, load=load)
        yield Check.converging(f"tip, load {load:g}", at, segments, expected, 1e-10)

    def rigid(k: int) -> list[float]:
        tip, _ = Statics(cantilever(k, rigid=True), np.array([0.0, 1.0, 0.0])).load(1.0)
        return [tip[1], 1 - tip[0]]

    yield Check.converging("tip by rigid segments, load 1", rigid, segments, references[1.0], 1e-10, order=1)
    for what, found, order in (("", functools.partial(deflection, load=1.0), 3.0), ("rigid ", rigid, 2.0)):
        errors = [abs(found(k)[0] - references[1.0][0]) for k in (segments // 2, segments)]
        reason = f"from {segments // 2} to {segments}; what is left of the next order is 1 / {segments}"
        yield Check(f"order of {what}segments", float(np.log2(errors[0] / errors[1])), order, 0.2, reason)
    tip, _ = Statics(cantilever(1), np.array([0.0, 1.0, 0.0])).load(10.0)
    far = tip[1] - references[10.0][0] > 1.0
    yield Check.holds("one segment is off by more than the length", far, "a body of small deflections")


@case(
    source="A cantilever under a moment at its tip bends to a circle: moment pi and 2 pi EI / L",
    kind="closed form",
    tags=("tree",),
)
def roll_up(segments: int = 16) -> Items:
    """A beam rolled up to half a circle and to a whole one."""
    statics = {}
    for k in (segments // 2, segments):
        model = cantilever(k)
        turns = np.array([name.endswith("_slope") for name in model.coordinate_names], dtype=float)
        statics[k] = Statics(model, np.zeros(3), turns)
    for what, moment, expected in (
        ("half a circle", np.pi, [0.0, 2 / np.pi]),
        ("a whole circle", 2 * np.pi, [0.0, 0.0]),
    ):
        ends = {k: statics[k].load(moment) for k in statics}
        yield Check.converging(
            what, {k: end[0][:2] for k, end in ends.items()}.__getitem__, segments, expected, 1e-12
        )
    R = ends[segments][1]
    yield Check("turn of the tip", R[0, 0], 1.0, 1e-9, "turns of segments add exactly")
    model = cantilever(segments // 2, rigid=True)
    half, whole = (Statics(model, np.zeros(3), np.ones(model.nv)).load(x)[0][1] for x in (np.pi, 2 * np.pi))
    # sides of h of a regular polygon; of half of it the ends are h / sin(pi h / 2) apart, less the arrows of two half sides
    h = 1 / (segments // 2)
    yield Check("rigid segments, half a circle", half, h / np.tan(np.pi * h / 2), 1e-12, "a regular polygon")
    yield Check("rigid segments, a whole circle", whole, 0.0, 1e-12, "a regular polygon is closed")


@case(
    source="Bathe and Bolourchi (1979): 45-degree bend, radius 100, tip force 300 and 600 across its plane; Cosserat beam",
    kind="reference",
    tags=("tree",),
)
def bent_cantilever(segments: int = 8) -> Items:
    """Bending and torsion in space at large rotations, by straight segments, chords of the arc."""
    EI = 1e7 / 12
    stiff: dict[str, Any] = {"EI_y": EI, "EI_z": EI, "GJ": EI, "EA": 1e7, "kGA_y": 5e6, "kGA_z": 5e6}

    def bend(count: int) -> Statics:
        angle = np.pi / 4 / count
        length = 2 * 100.0 * np.sin(angle / 2)
        piece = beam(length, 1.0, **stiff, rhoI_y=0.1, rhoI_z=0.1, ends="craig-bampton")
        builder = ModelBuilder("bend", gravity=(0, 0, 0))
        for k in range(count):
            before: dict[str, Any] = {"parent": f"piece{k - 1}", "node": "tip"} if k else {}
            turn = Placement.from_rpy((0, 0, angle if k else angle / 2))
            builder.body(f"piece{k}", piece, joint=Fixed(), placement=turn, **before)
        builder.frame("tip", f"piece{count - 1}", node="tip")
        return Statics(builder.build(), np.array([0.0, 0.0, 1.0]))

    statics = {k: bend(k) for k in (segments // 2, segments)}
    away = 100.0 * (1 - np.cos(np.pi / 8 / segments))
    for force, expected in (
        (300.0, [58.77912249, 22.24478095, 40.19189167]),
        (600.0, [47.15043857, 15.68480053, 53.47485879]),
    ):
        few, ours = (statics[k].load(force, steps=3)[0] for k in statics)
        yield Check(f"tip, force {force:g}", ours, expected, away, "how far the chords are from the arc")
        left = float(np.linalg.norm(ours - expected) / np.linalg.norm(few - expected))
        reason = "a quarter of the error with half as many, and what the next order leaves"
        yield Check(f"convergence, force {force:g}", left, 0.0, 0.3, reason)


@case(
    source="Princeton beam experiment (Dowell and Traybar 1975): aluminium, 8.896 N at 45 degrees; Cosserat beam",
    kind="reference",
    tags=("tree",),
)
def princeton_beam(segments: int = 6) -> Items:
    """A flat beam bends both ways and twists; the torsion of a segment has a shape besides the linear one."""
    L, width, thick, E, G = 0.508, 12.3777e-3, 3.2024e-3, 71.7e9, 71.7e9 / 2.62
    A = width * thick
    across, along = E * thick * width**3 / 12, E * width * thick**3 / 12
    rho = 2700.0
    shear = 5 / 6 * G * A
    stiff: dict[str, Any] = {
        "EI_z": across,
        "EI_y": along,
        "GJ": G * 1.13407e-10,
        "kGA_y": shear,
        "kGA_z": shear,
    }
    inertia: dict[str, Any] = {"rhoI_z": rho * across / E, "rhoI_y": rho * along / E}

    @functools.cache
    def tip(count: int) -> Array:
        """Along width and thickness, in millimetres, and the twist in degrees."""
        model = clamped(beam(L, rho * A, **stiff, **inertia, torsion=1, segments=count))
        p, R = Statics(model, np.array([0.0, np.sqrt(0.5), np.sqrt(0.5)])).load(8.896)
        return np.array([1e3 * p[1], 1e3 * p[2], np.degrees(np.arctan2(-R[2, 1], R[1, 1]))])

    expected = np.array([8.8873962, 109.0358771, 1.66482])
    what = "along width and thickness [mm], twist [deg]"
    yield Check.converging(what, tip, segments, expected, np.array([1e-7, 1e-7, 1e-5]))
    few, ours = (np.abs(tip(k) - expected) for k in (segments // 2, segments))
    reason = f"from {segments // 2} to {segments}; what is left of the next order is 1 / {segments}, and digits of the twist"
    yield Check("order of segments", np.log2(few / ours), [3.0] * 3, 0.4, reason)


def spin(
    length: float, line: float, EI: float, rate: float, modes: int, level: Stiffening, duration: float
) -> tuple[Array, Array]:
    """Times and deflections of the tip while a beam is spun up in 15 s."""
    body = beam(length, line, EI_z=EI, bending_y=modes, stiffening=level)
    builder = ModelBuilder("spin-up", gravity=(0, 0, 0))
    builder.body("beam", body, joint=Revolute((0, 0, 1)), joint_name="hub")
    model = builder.build()
    t = ca.SX.sym("t")
    angle = rate / 15 * (t**2 / 2 + (7.5 / np.pi) ** 2 * (ca.cos(np.pi * t / 7.5) - 1))
    with warnings.catch_warnings():
        if level != "consistent":  # it says that stiffening is left out
            warnings.simplefilter("ignore", AlembertWarning)
        run = simulate(
            model,
            model.neutral(),
            duration=duration,
            prescribed={"hub": ca.Function("turn", [t], [angle])},
            interval=0.002,
            tolerance=1e-9,
        )
    return run.time, run.q[:, 1:] @ body.node_array("tip", "shapes")[:, 1]


@case(
    source="Spin-up after Kane, Ryan, Banerjee (1987), 6 rad/s in 15 s; peak with three modes computed by two methods",
    kind="closed form",
    tags=("simulation",),
)
def spin_up(modes: int = 3) -> Items:
    """The tip of a beam that is spun up lags, comes back, and does not diverge; without foreshortening it does."""
    time, tip = spin(10.0, 1.2, 1.4e4, 6.0, modes, "consistent", 8.0)
    k = int(np.argmin(tip))
    yield Check("peak deflection [m]", tip[k], -0.57444275, 1e-6, "records every 2 ms next to a smooth peak")
    yield Check("instant [s]", time[k], 6.7620, 2.1e-3, "the interval of records")
    _, tip = spin(10.0, 1.2, 1.4e4, 6.0, modes, "inconsistent", 12.0)
    far = np.log10(np.abs(tip[-1]))
    yield Check("inconsistent, at 12 s [log10 of m]", far, 5.0, 0.5, "1e5 m, the only digit of the reference")


@case(
    source="Spin-up of a beam, L 10, rhoA 1.2, EI 1.4e4, to 6 rad/s in 15 s with 1 and 2 modes; computed by two methods",
    kind="reference",
    tags=("simulation",),
)
def spin_up_by_modes() -> Items:
    """Peak deflection with few modes; without foreshortening the beam diverges without bound."""
    for modes, expected in ((1, -0.57826037), (2, -0.57354939), (5, -0.57437980)):
        time, tip = spin(10.0, 1.2, 1.4e4, 6.0, modes, "consistent", 7.5)
        yield Check(
            f"{modes} modes [m]", tip.min(), expected, 2e-6, "records every 2 ms next to a smooth peak"
        )
        if modes == 5:
            reason = "the interval of records"
            yield Check("instant, 5 modes [s]", time[int(np.argmin(tip))], 6.7620, 2.1e-3, reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says what is wrong
        _, tip = spin(10.0, 1.2, 1.4e4, 6.0, 1, "inconsistent", 12.0)
    yield Check.holds("inconsistent, exceeds 100 m", np.abs(tip).max() > 100.0, "it diverges")


@case(
    source="Kane, Ryan, Banerjee (1987), data of that kind: L 8, EI 566.7095928, rhoA 0.20187837656, to 4 rad/s in 15 s",
    kind="reference",
    tags=("simulation",),
)
def spin_up_of_a_slender_beam() -> Items:
    """The peak of a slender beam with five modes."""
    time, tip = spin(8.0, 0.20187837656, 566.7095928, 4.0, 5, "consistent", 7.5)
    k = int(np.argmin(tip))
    yield Check("peak [m]", tip[k], -0.53440297, 2e-6, "records every 2 ms next to a smooth peak")
    yield Check("instant [s]", time[k], 6.76573, 2.1e-3, "the interval of records")
    # without foreshortening it has the stiffness w^2 - rate^2 of a mode, negative once it turns faster than w = 2.91 rad/s
    _, tip = spin(8.0, 0.20187837656, 566.7095928, 4.0, 1, "inconsistent", 12.0)
    yield Check.holds("inconsistent, exceeds its length", np.abs(tip).max() > 8.0, "it diverges")


@case(
    source="Simo and Vu-Quoc (1986): flying beam, L 10, EA = GA = 1e4, EI 500, rhoA 1, rhoI 10; momentum of the loads",
    kind="closed form",
    tags=("simulation",),
)
def flying_spaghetti() -> Items:
    """A free beam thrown by a force of 8 and a moment of 80 at its end for 2.5 s: its centre of mass flies on at 2 m/s."""
    body = beam(10.0, 1.0, EI_z=500.0, rhoI_z=10.0, kGA_y=1e4, EA=1e4, segments=4)
    builder = ModelBuilder("spaghetti", gravity=(0, 0, 0))
    builder.body("beam", body, joint=Planar(), joint_name="float")
    builder.frame("end", "beam", node="tip")
    model = builder.build()

    def throw(t: ca.SX, poses: Sequence[Pose], velocities: Sequence[ca.SX]) -> ca.SX:
        """A dead force and a moment."""
        return ca.SX([0, 0, -80, 8, 0, 0])

    thrown = ForceElement(("end",), wrenches=throw)
    options: dict[str, Any] = {"duration": 2.5, "step": 2.5e-3, "interval": 0.25, "integrator": "rk4"}
    first = simulate(model, model.neutral(), forces=[thrown], **options)
    second = simulate(model, first.q[-1], first.v[-1], **options)
    centers = [float(model.center_of_mass(q)[0]) for q in (first.q[0], first.q[-1], second.q[-1])]
    moved = [x - centers[0] for x in centers[1:]]
    yield Check("momentum [N s]", second.momentum[-1][3:5], [20.0, 0.0], 1e-6, "error of the steps")
    yield Check("moved by 2.5 s, 5 s [m]", moved, [2.5, 7.5], 1e-5, "error of the steps")
    yield Check("energy kept in flight", second.report.energy_error, 0.0, 1e-5, "error of the steps")
    slopes = [name.endswith("_slope") for name in model.coordinate_names]
    turned = float(np.abs(first.q[:, slopes].sum(axis=1)).max())
    yield Check.holds("bends by more than 1 rad", turned > 1.0, "large deflection")


@case(
    source="Free-free beam, cos x cosh x = 1; centre of mass of a free body under a dead force",
    kind="closed form",
    tags=("tree", "simulation"),
)
def flying_beam() -> Items:
    """A free beam: its elastic frequencies, and momentum under a force at its tip."""
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=3, ends="free")
    builder = ModelBuilder("flying", gravity=(0, 0, 0))
    builder.body("beam", body, joint=Planar(), joint_name="float")
    builder.frame("tip", "beam", node="tip")
    model = builder.build()
    found = frequencies(model, model.neutral())
    yield Check("free-free [rad/s]", found[:2], [22.3732854481, 61.6728228679], 2e-8, "shapes to ten digits")
    force = {"tip": np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.0])}
    a = model.forward_dynamics(model.neutral(), np.zeros(model.nv), np.zeros(model.nv), wrenches=force)
    rate = model.momentum_matrix(model.neutral()) @ a
    yield Check("rate of momentum [N]", rate[3:], [0.0, 0.3, 0.0], 1e-12, "rounding")

"""Flexible bodies: beams alone, in motion, under load and in assemblies.

L = EI = rhoA = 1 unless said. References are roots of characteristic equations, or solutions of the differential equations
by two methods, to the digits shown.
"""

import functools

import casadi as ca
import numpy as np
import scipy.linalg

from alembert.flexible import beam, with_stiffening
from alembert.joints import Fixed, JointType, Planar, Prismatic, Revolute
from alembert.model import Inertia, Model, ModelBuilder, Placement
from alembert.simulate import simulate
from alembert.verify.case import Check, Items, case
from alembert.verify.cases.flexible_beams import rates, small_motion

DIGITS = "digits of the reference"


def frequencies(
    model: Model, q: np.ndarray, v: np.ndarray | None = None, held: tuple[str, ...] = ()
) -> np.ndarray:
    """Of small motion about q (and steady speeds v), with some joints held; rad/s, ascending, without those at rest."""
    v = np.zeros(model.nv) if v is None else v
    d = model.inverse_dynamics_derivatives(q, v, np.zeros(model.nv))
    free = np.ones(model.nv, dtype=bool)
    for name in held:
        free[model.v_slice(name)] = False
    M, C, K = (x[np.ix_(free, free)] for x in (d.da, d.dv, d.dq))
    n = len(M)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    found = np.sort(scipy.linalg.eigvals(A).imag)
    return found[found > 1e-3]


def small(model: Model) -> np.ndarray:
    """Frequencies about the neutral configuration, from matrices on symbols: nothing is compiled."""
    return rates(*small_motion(model))


@case(
    source="Bernoulli and Euler's cantilever, cos x cosh x = -1; with a point mass at the tip: its characteristic equation",
    kind="closed form",
    tags=("flexible", "tree"),
)
def cantilever() -> Items:
    """Frequencies of a clamped beam, alone and with a point mass at its tip that is a body of its own."""
    builder = ModelBuilder("cantilever", gravity=(0, 0, 0))
    builder.body("beam", beam(1.0, 1.0, EI_z=1.0, bending_y=4), joint=Fixed())
    alone = frequencies(builder.build(), np.zeros(4))
    yield Check("clamped [rad/s]", alone[:3], [3.5160152685, 22.0344915647, 61.6972144135], 2e-9, DIGITS)

    def loaded(n: int) -> np.ndarray:
        builder = ModelBuilder("loaded", gravity=(0, 0, 0))
        builder.body("beam", beam(1.0, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton"), joint=Fixed())
        builder.body("mass", Inertia.point(1.0), joint=Fixed(), parent="beam", node="tip")
        return small(builder.build())[:3]

    expected = [1.5572978612, 16.2500851582, 50.8958428312]
    yield Check.converging("with a tip mass [rad/s]", loaded, 6, expected, 1e-9)


@case(
    source="Flap and lag of a beam on a spinning hub, lag^2 = flap^2 - rate^2; flap with six modes, computed by two methods",
    kind="closed form",
    tags=("flexible", "tree"),
    parameters={"rate": 12.0, "modes": 6},
)
def spinning_beam(rate: float, modes: int) -> Items:
    """Motion-induced stiffness: flap with six modes, and lag^2 = flap^2 - rate^2."""
    builder = ModelBuilder("spinning", gravity=(0, 0, 0))
    body = beam(1.0, 1.0, EI_y=1.0, EI_z=1.0, bending_y=modes, bending_z=modes)
    builder.body("beam", body, joint=Revolute((0, 0, 1)), joint_name="hub")
    model = builder.build()
    v = model.velocity({"hub": rate})
    found = frequencies(model, np.zeros(model.nq), v, held=("hub",))
    flap = found[np.argmin(np.abs(found - 13.17))]
    yield Check("flap [rad/s]", flap, 13.1728102, 1e-6, DIGITS)
    yield Check("lag [rad/s]", found[0], np.sqrt(13.1728102**2 - rate**2), 1e-6, DIGITS)
    soft = with_stiffening(model, "inconsistent")
    d = soft.inverse_dynamics_derivatives(np.zeros(model.nq), v, np.zeros(model.nv))
    K = np.linalg.solve(d.da[1:, 1:], d.dq[1:, 1:])
    least = np.sort(np.linalg.eigvals(K).real)[0]
    # flap is that at rest, lag has w^2 - rate^2: it diverges
    yield Check("lag^2, inconsistent", least, 3.5160152685**2 - rate**2, 1e-6, "without foreshortening")


@case(
    source="Hub of inertia 0.1 with a clamped beam: characteristic equation of the pinned hub",
    kind="closed form",
    tags=("flexible", "tree"),
)
def hub_with_a_beam() -> Items:
    """Poles of a hinged hub that carries a beam."""
    hub = Inertia(1.0, (0, 0, 0), (0.1, 0, 0.1, 0, 0, 0.1))

    def poles(n: int) -> np.ndarray:
        builder = ModelBuilder("hub", gravity=(0, 0, 0))
        builder.body("hub", hub, joint=Revolute((0, 0, 1)), joint_name="pin")
        builder.body("beam", beam(1.0, 1.0, EI_z=1.0, bending_y=n), joint=Fixed(), parent="hub")
        return small(builder.build())[:3]

    expected = [6.9639235527, 22.9802389667, 62.0259092751]
    yield Check.converging("poles [rad/s]", poles, 12, expected, 1e-9)


@case(
    source="Satellite with two panels: beams on a hub of mass 4, and of inertia 2 and radius 0.2 (characteristic equations)",
    kind="closed form",
    tags=("flexible", "tree"),
)
def satellite_with_panels() -> Items:
    """Symmetric modes move the hub sideways, antisymmetric ones turn it."""
    turned = Inertia(1.0, (0, 0, 0), (2.0, 0, 2.0, 0, 0, 2.0))
    slide, turn = (Inertia.point(4.0), Prismatic((0, 1, 0)), 0.0), (turned, Revolute((0, 0, 1)), 0.2)

    def symmetric(n: int, hub: tuple[Inertia, JointType, float], near: list[float]) -> list[float]:
        inertia, joint, radius = hub
        builder = ModelBuilder("satellite", gravity=(0, 0, 0))
        builder.body("hub", inertia, joint=joint, joint_name="float")
        for name, angle in (("right", 0.0), ("left", np.pi)):
            placement = Placement.from_rpy((0, 0, angle), (radius * np.cos(angle), 0, 0))
            panel = beam(1.0, 1.0, EI_z=1.0, bending_y=n)
            builder.body(name, panel, joint=Fixed(), parent="hub", placement=placement)
        found = small(builder.build())
        return [found[np.argmin(np.abs(found - x))] for x in near]

    for hub, what, expected in (
        (slide, "translation [rad/s]", [3.9406777361, 22.9597824025]),
        (turn, "rotation [rad/s]", [4.3090240393, 22.3779523463]),
    ):
        at = functools.partial(symmetric, hub=hub, near=expected)
        yield Check.converging(what, at, 10, expected, 1e-9)


@case(
    source="L-frame: two equal inextensible beams at a right angle, the first clamped (characteristic equation)",
    kind="closed form",
    tags=("flexible", "tree"),
)
def right_angled_frame() -> Items:
    """A flexible body that hangs on the tip of another."""

    def found(n: int) -> np.ndarray:
        body = beam(1.0, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton")
        builder = ModelBuilder("L", gravity=(0, 0, 0))
        builder.body("first", body, joint=Fixed())
        corner = Placement.from_rpy((0, 0, np.pi / 2))
        builder.body("second", body, joint=Fixed(), parent="first", node="tip", placement=corner)
        return small(builder.build())[:4]

    expected = [1.1717806401, 3.1909256822, 15.7545938168, 23.0911956822]
    yield Check.converging("frequencies [rad/s]", found, 6, expected, 1e-9)


@case(
    source="Greenhill (1881): a column under its own weight buckles at rho g L^3 / EI = 7.8373; at g = 5 hanging, standing",
    kind="closed form",
    tags=("flexible", "tree"),
)
def standing_column() -> Items:
    """Weight along a beam softens or stiffens it."""

    def first(gravity: float, n: int = 8) -> float:
        builder = ModelBuilder("column", gravity=(gravity, 0, 0))
        builder.body("beam", beam(1.0, 1.0, EI_z=1.0, bending_y=n), joint=Fixed())
        return float(small(builder.build())[0])

    for what, gravity, expected in (("hanging", 5.0, 4.4943130), ("standing", -5.0, 2.1184859)):
        yield Check.converging(f"{what} [rad/s]", functools.partial(first, gravity), 8, expected, 1e-7)

    def critical(n: int) -> float:
        """The least load rho g L^3 / EI at which the stiffness of the column is singular."""
        body = beam(1.0, 1.0, EI_z=1.0, bending_y=n)
        shortened = -body.array("foreshortening_moments")[:, :, 0]
        return 1 / float(scipy.linalg.eigh(shortened, body.array("stiffness"), eigvals_only=True)[-1])

    yield Check.converging("buckling load", critical, 8, 7.8373474389, 1e-10)
    for gravity in (5.0, -5.0):
        builder = ModelBuilder("column", gravity=(gravity, 0, 0))
        soft = beam(1.0, 1.0, EI_z=1.0, bending_y=4, stiffening="inconsistent")
        builder.body("beam", soft, joint=Fixed())
        what = f"inconsistent, gravity {gravity:g} [rad/s]"
        yield Check(what, small(builder.build())[0], 3.5160152685, 1e-8, "weight does nothing to it")
    yield Check("buckling load, one mode", critical(1), 7.8697148175, 1e-8, "shapes to ten digits")


@case(
    source="Spin-up after Kane, Ryan, Banerjee (1987), 6 rad/s in 15 s; peak with three modes computed by two methods",
    kind="closed form",
    tags=("flexible", "simulation"),
    parameters={"modes": 3},
)
def spin_up(modes: int) -> Items:
    """The tip of a beam that is spun up lags, comes back, and does not diverge."""
    body = beam(10.0, 1.2, EI_z=1.4e4, bending_y=modes)
    builder = ModelBuilder("spin-up", gravity=(0, 0, 0))
    builder.body("beam", body, joint=Revolute((0, 0, 1)), joint_name="hub")
    model = builder.build()
    t = ca.SX.sym("t")
    angle = 6 / 15 * (t**2 / 2 + (7.5 / np.pi) ** 2 * (ca.cos(np.pi * t / 7.5) - 1))
    turn = ca.Function("turn", [t], [angle])
    run = simulate(
        model,
        model.neutral(),
        duration=8.0,
        prescribed={"hub": turn},
        interval=0.002,
        tolerance=1e-10,
        progress=False,
    )
    tip = run.q[:, 1:] @ np.array(body.node("tip").shapes)[:, 1]
    k = int(np.argmin(tip))
    yield Check("peak deflection [m]", tip[k], -0.57444275, 1e-6, "records every 2 ms next to a smooth peak")
    yield Check("instant [s]", run.time[k], 6.7620, 2.1e-3, "the interval of records")


@case(
    source="Free-free beam, cos x cosh x = 1; centre of mass of a free body under a dead force",
    kind="closed form",
    tags=("flexible", "tree", "simulation"),
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

"""Flexible bodies in assemblies and under loads: hubs, panels, frames, weight, buckling, follower forces, absorbers.

L = EI = rhoA = 1 unless said. References are roots of characteristic equations, or solutions of the differential equations
by two methods, to the digits shown.
"""

import functools
from collections.abc import Callable

import numpy as np
import scipy

from alembert.control import SecondOrder
from alembert.flexible import (
    CrossSection,
    FiniteElements,
    LumpedMass,
    Member,
    beam,
    campbell,
    framework,
    guyan,
    stability_boundary,
    tuned_absorber,
    with_proof_mass,
    with_stiffening,
)
from alembert.joints import Fixed, JointType, Prismatic, Revolute
from alembert.model import Inertia, Model, ModelBuilder, Placement
from alembert.verify.case import JPL1989, Check, Items, family
from alembert.verify.cases.flexible_beams import HUB, clamped, on_a_hub, rates, small_motion, spun
from alembert.verify.cases.flexible_structures import straight

case = family("flexible")

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
    return rates(*(x[np.ix_(free, free)] for x in (d.da, d.dv, d.dq)))


def small(model: Model) -> np.ndarray:
    """Frequencies about the neutral configuration, from matrices on symbols: nothing is compiled."""
    return rates(*small_motion(model))


@case(
    source="Bernoulli and Euler's cantilever, cos x cosh x = -1; with a point mass at the tip: its characteristic equation",
    kind="closed form",
    tags=("tree",),
)
def cantilever() -> Items:
    """Frequencies of a clamped beam, alone and with a point mass at its tip that is a body of its own."""
    alone = frequencies(clamped(beam(1.0, 1.0, EI_z=1.0, bending_y=4)), np.zeros(4))
    yield Check("clamped [rad/s]", alone[:3], [3.5160152685, 22.0344915647, 61.6972144135], 2e-9, DIGITS)

    def loaded(n: int) -> np.ndarray:
        builder = ModelBuilder("loaded", gravity=(0, 0, 0))
        builder.body("beam", beam(1.0, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton"), joint=Fixed())
        builder.body("mass", Inertia.point(1.0), joint=Fixed(), parent="beam", node="tip")
        return small(builder.build())[:3]

    expected = [1.5572978612, 16.2500851582, 50.8958428312]
    yield Check.converging("with a tip mass [rad/s]", loaded, 6, expected, 1e-9)

    def lumped(n: int) -> float:
        chain = clamped(beam(1.0, 1.0, EI_z=1.0, segments=n, rigid=True))
        return abs(float(small(chain)[0]) - 3.5160152685)

    reason = "a chain of rigid links with springs: N^-2, and what is left of the next order"
    yield Check("order of 8 and 16 links", float(np.log2(lumped(8) / lumped(16))), 2.0, 0.1, reason)


@case(
    source="Flap and lag of a beam on a spinning hub, lag^2 = flap^2 - rate^2; flap with six modes, computed by two methods",
    kind="closed form",
    tags=("tree",),
)
def spinning_beam(rate: float = 12.0, modes: int = 6) -> Items:
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
    tags=("tree",),
)
def hub_with_a_beam() -> Items:
    """Poles of a hinged hub that carries a beam."""

    def poles(n: int) -> np.ndarray:
        return small(on_a_hub(beam(1.0, 1.0, EI_z=1.0, bending_y=n), hub=HUB))[:3]

    expected = [6.9639235527, 22.9802389667, 62.0259092751]
    yield Check.converging("poles [rad/s]", poles, 12, expected, 1e-9)


@case(
    source="Satellite with two panels: beams on a hub of mass 4, and of inertia 2 and radius 0.2 (characteristic equations)",
    kind="closed form",
    tags=("tree",),
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
    tags=("tree",),
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
    tags=("tree",),
)
def standing_column() -> Items:
    """Weight along a beam softens or stiffens it."""

    def first(gravity: float, n: int = 8) -> float:
        return float(small(clamped(beam(1.0, 1.0, EI_z=1.0, bending_y=n), gravity))[0])

    for what, gravity, expected in (("hanging", 5.0, 4.4943130), ("standing", -5.0, 2.1184859)):
        yield Check.converging(f"{what} [rad/s]", functools.partial(first, gravity), 8, expected, 1e-7)

    def critical(n: int) -> float:
        """The least load rho g L^3 / EI at which the stiffness of the column is singular."""
        body = beam(1.0, 1.0, EI_z=1.0, bending_y=n)
        shortened = -body.array("foreshortening_moments")[:, :, 0]
        return 1 / float(scipy.linalg.eigh(shortened, body.array("stiffness"), eigvals_only=True)[-1])

    yield Check.converging("buckling load", critical, 8, 7.8373474389, 1e-10)
    for gravity in (5.0, -5.0):
        soft = clamped(beam(1.0, 1.0, EI_z=1.0, bending_y=4, stiffening="inconsistent"), gravity)
        what = f"inconsistent, gravity {gravity:g} [rad/s]"
        yield Check(what, small(soft)[0], 3.5160152685, 1e-8, "weight does nothing to it")
    yield Check("buckling load, one mode", critical(1), 7.8697148175, 1e-8, "shapes to ten digits")


Array = np.ndarray


def _column(count: int, follows: bool) -> Callable[[float], SecondOrder]:
    """A clamped column under a force p at its tip, which keeps its direction or follows the tip."""
    fe: FiniteElements = straight(count, planar=False)
    pull = np.zeros(fe.size)
    pull[fe.unknowns(count, "x")] = -1.0
    geometric = fe.geometric(fe.static(pull, fe.unknowns(0)))  # type: ignore[misc]
    free = np.concatenate([fe.unknowns(range(1, count + 1), "y rz")])
    M, K, G = (A[free][:, free].toarray() for A in (fe.M, fe.K, geometric))
    if follows:  # the force turns with the tip: -p theta along y
        tip, turn = (np.flatnonzero(free == fe.unknowns(count, d)[0])[0] for d in ("y", "rz"))
        G[tip, turn] += 1.0
    zero, one = np.zeros_like(M), np.eye(len(M))
    return lambda p: SecondOrder(M, zero, K + p * G, one, one)


@case(
    source="Euler, De curvis elasticis (1744): a clamped column buckles at pi^2 EI / (4 L^2)",
    kind="closed form",
)
def column_under_a_dead_load() -> Items:
    """Geometric stiffness of finite elements: where divergence begins."""
    found = stability_boundary(_column(8, False), 0.0, 5.0)
    assert found is not None
    reason = "eight cubic elements: 1e-6; growth counts from 1e-5 of a frequency, 1e-9 in the load"
    yield Check("buckling load", found.value, np.pi**2 / 4, 1e-5, reason)
    yield Check.holds("divergence", found.kind == "divergence", "a load that keeps its direction")


@case(
    source="Beck, ZAMP 3 (1952): a clamped column under a force that follows its tip flutters at 20.0509535 EI/L^2",
    kind="published",
)
def column_under_a_follower_force() -> Items:
    """A load without potential: two frequencies meet."""
    found = stability_boundary(_column(16, True), 0.0, 30.0)
    assert found is not None
    yield Check(
        "flutter load",
        found.value,
        20.0509535,
        1e-3,
        "16 cubic elements: some (w h^2)^2/720 of the load, w = 11",
    )
    yield Check.holds("flutter", found.kind == "flutter", "frequencies meet away from zero")


@case(
    source="Flap of a spinning beam at 2, 6 and 12 rad/s, computed by two methods; lag^2 = flap^2 - rate^2",
    kind="reference",
    tags=("tree", "linearisation"),
)
def campbell_diagram() -> Items:
    """Frequencies of a blade over its rate."""
    model = on_a_hub(beam(1.0, 1.0, EI_y=1.0, EI_z=1.0, bending_y=6, bending_z=6), 0.0)
    found = campbell(model, "shaft", [2.0, 6.0, 12.0], modes=2)
    expected = np.array([4.13731957, 7.36037302, 13.17015049])
    lag = np.sqrt(expected**2 - found.rates**2)
    yield Check("flap [rad/s]", found.frequencies[:, 1], expected, 3e-3, "six modes each way")
    yield Check("lag [rad/s]", found.frequencies[:, 0], lag, 7e-3, "the same error in the squares")


@case(
    source=f"Padilla and von Flotow, Nonlinear strain-displacement relations, {JPL1989}: one beam in three fidelities",
    kind="published",
    tags=("tree", "acc1989"),
)
def three_fidelities(rate: float = 2.0, radius: float = 0.5) -> Items:
    """Constant spin, one mode: H + W^2 (b mu + eta - G) consistent, H - W^2 G inconsistent, H ruthless."""
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=1)
    first = 3.5160152685**2
    expected = {
        "consistent": first + rate**2 * (0.19334 + 1.57088 * radius),
        "inconsistent": first - rate**2,
        "ruthless": first,
    }
    model = on_a_hub(body, radius)
    for level, square in expected.items():
        at = model if level == "consistent" else with_stiffening(model, level)  # type: ignore[arg-type]
        found = rates(*small_motion(at, at.velocity({"shaft": rate}), held=("shaft",)))
        yield Check(f"{level} [rad/s]", found[0], np.sqrt(square), 2e-5, "printed digits of mu and eta")
    yield Check(
        "spun() alike", spun(body, rate, radius)[0], np.sqrt(expected["consistent"]), 2e-5, "the same"
    )


_MINAS_CORRECTED = (
    1.045, 3.467, 8.050, 19.894, 21.746, 22.077, 30.468, 39.268, 48.524, 51.746, 58.645, 71.169, 72.090, 80.741
)  # fmt: skip
_MINAS_REDUCED = (
    1.039, 3.469, 8.051, 19.902, 21.750, 22.087, 30.477, 39.326, 48.552, 51.842, 58.718, 71.275, 72.285, 80.920
)  # fmt: skip
_MINAS_LOADED = {
    8: (0.97, 2.94, 8.00, 16.42, 21.44, 22.06, 28.53, 39.12, 46.40, 51.45, 58.52, 70.71, 72.28, 80.74),
    2: (0.93, 3.39, 7.71, 18.25, 21.74, 21.98, 30.09, 39.17, 45.12, 51.67, 54.15, 68.85, 71.87, 80.44),
    3: (0.93, 3.40, 7.66, 18.41, 21.45, 22.07, 30.02, 38.15, 46.65, 49.02, 57.71, 68.34, 72.26, 80.13),
    4: (0.92, 2.94, 7.65, 17.47, 20.17, 21.77, 29.60, 37.87, 48.35, 49.76, 58.47, 70.27, 72.26, 80.69),
    5: (0.98, 2.96, 7.95, 15.54, 21.75, 21.96, 27.79, 36.87, 48.35, 50.89, 58.54, 70.62, 72.09, 80.67),
    6: (0.98, 3.41, 7.93, 19.84, 20.52, 21.94, 30.07, 39.30, 43.27, 49.56, 58.60, 67.91, 71.67, 79.27),
    7: (0.98, 3.40, 7.95, 19.88, 20.24, 21.75, 30.43, 38.92, 45.40, 51.40, 56.68, 68.31, 72.23, 79.27),
    10: (1.01, 3.42, 7.28, 19.52, 20.52, 22.00, 29.83, 37.06, 43.03, 51.83, 56.07, 68.53, 71.34, 77.81),
}
"""Table 3: the node that carries the mass, and frequencies in Hz"""


def planar_truss() -> FiniteElements:
    """16 nodes and 29 links of 7.335 kg that bend out of their plane, 15 and 16 held; the rest is our own."""
    nodes = {k: (0.25 * k, np.sqrt(0.1875) * (k % 2), 0.0) for k in range(1, 17)}
    tube = CrossSection.of(70e9, 2700.0, 3e-5, I_y=1e-9, I_z=1e-9, J=2e-9)
    links = [Member(k, k + d, tube) for d in (1, 2) for k in range(1, 17 - d)]
    joint = (7.335 - 29 * 0.5 * 2700.0 * 3e-5) / 16
    masses = [LumpedMass(k, Inertia.point(joint)) for k in nodes]
    fixed = {k: "x y rz" for k in range(1, 15)} | dict.fromkeys((15, 16), "x y z rx ry rz")
    return framework(nodes, links, masses=masses, fixed=fixed)


def _beyond(loaded: Array, bare: Array) -> float:
    """How far frequencies with a mass at one unknown are outside those without, each between itself and the one below."""
    return float(max((loaded - bare).max(), (bare[:-1] - loaded[1:]).max(), 0.0))


@case(
    source=f"Minas, Garcia, Inman, Control of a flexible planar truss using proof mass actuators, {JPL1989}: Tables 1 to 3",
    kind="published",
    tags=("acc1989",),
    missing="""the figure with the geometry, sections, parasitic mass and damping: frequencies are not computed. What holds
    of every structure is checked on the printed ones and on a truss with as many nodes and links. The first frequency of 14
    unknowns, 1.039 Hz, is below that of all, 1.045 Hz, which no reduction by Guyan gives: a misprint""",
)
def planar_truss_with_a_dead_mass(mass: float = 0.4) -> Items:
    """Guyan's reduction only raises frequencies; a mass at one place lowers each, at most to the one below."""
    raised = (np.array(_MINAS_REDUCED) - _MINAS_CORRECTED)[1:]
    yield Check(
        "Table 1, lowered by the reduction [Hz]", max(0.0, -raised.min()), 0.0, 5e-4, "printed digits"
    )
    printed = [_beyond(np.array(row), np.array(_MINAS_REDUCED)) for row in _MINAS_LOADED.values()]
    yield Check("Table 3, outside the bounds [Hz]", printed, [0.0] * len(printed), 5e-3, "printed digits")
    fe = planar_truss()
    yield Check("unknowns, mass [kg]", [fe.size, fe.points.mass.sum()], [42.0, 7.335], 1e-9, "printed")
    kept = fe.unknowns(range(1, 15), "z")
    reduced = guyan(fe, kept)
    whole, few = (
        np.sqrt(scipy.linalg.eigh(x.K.toarray(), x.M.toarray(), eigvals_only=True)) for x in (fe, reduced)
    )
    share = few / whole[:14] - 1
    yield Check("raised here, least", min(float(share.min()), 0.0), 0.0, 1e-9, "rounding")
    yield Check(
        "raised here, most", float(share.max()), 0.0, 0.01, "joints carry most: 0.3 % at most in print"
    )
    outside = []
    for node in _MINAS_LOADED:
        M = reduced.M.toarray()
        at = reduced.unknowns(node, "z")[0]
        M[at, at] += mass
        outside.append(_beyond(np.sqrt(scipy.linalg.eigh(reduced.K.toarray(), M, eigvals_only=True)), few))
    yield Check("outside the bounds here [rad/s]", outside, [0.0] * len(outside), 1e-7, "rounding")


@case(
    source="Den Hartog, Mechanical Vibrations (1956), chapter 3: fixed points of an absorber at equal heights",
    kind="closed form",
    tags=("control",),
)
def tuned_proof_mass(ratio: float = 0.05) -> Items:
    """A mass on a spring with a proof mass: both fixed points at sqrt(1 + 2/mu), and the peak of the response there."""
    plain = SecondOrder([[1.0]], [[0.0]], [[1.0]], [[1.0]], [[1.0]])
    k, c = tuned_absorber(1.0, 1.0, ratio)
    system = with_proof_mass(plain, 0, ratio, k, c)
    # fixed points: the response without damping and with infinite damping have the same size
    f2 = k / ratio
    a, b = (2 + ratio), -2 * (1 + f2 + ratio * f2)
    squares = np.roots([a, b, 2 * f2]).real
    heights = np.abs(system.frequency_response(np.sqrt(np.sort(squares))).response[:, 0, 0])
    top = np.sqrt(1 + 2 / ratio)
    yield Check("heights of the fixed points", heights, [top, top], 1e-9, "rounding")
    w = np.linspace(0.8, 1.2, 2001)
    peak = np.abs(system.frequency_response(w).response[:, 0, 0]).max()
    reason = "his damping is a mean of two that make one peak flat each; peaks pass the points by some tenths of a percent"
    yield Check("peak of the response", peak / top, 1.0, 0.01, reason)

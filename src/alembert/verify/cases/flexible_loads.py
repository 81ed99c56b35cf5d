"""Structures under loads: buckling, follower forces, spinning, absorbers; three levels of stiffening on one beam."""

from collections.abc import Callable

import numpy as np
import scipy.linalg

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
from alembert.model import Inertia
from alembert.verify.case import Check, Items, case
from alembert.verify.cases.flexible_beams import on_a_hub, rates, small_motion, spun
from alembert.verify.cases.flexible_structures import ACC1989, straight

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
    tags=("flexible",),
)
def column_under_a_dead_load() -> Items:
    """Geometric stiffness of finite elements: where divergence begins."""
    found = stability_boundary(_column(8, False), 0.0, 5.0)
    assert found is not None
    reason = "eight cubic elements: 1e-6; growth counts from 1e-5 of a frequency, 1e-9 in the load"
    yield Check("buckling load", found.value, np.pi**2 / 4, 1e-5, reason)
    yield Check("divergence", float(found.kind == "divergence"), 1.0, 0.0, "a load that keeps its direction")


@case(
    source="Beck, ZAMP 3 (1952): a clamped column under a force that follows its tip flutters at 20.0509535 EI/L^2",
    kind="published",
    tags=("flexible",),
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
    yield Check("flutter", float(found.kind == "flutter"), 1.0, 0.0, "frequencies meet away from zero")


@case(
    source="Flap of a spinning beam at 2, 6 and 12 rad/s, computed by two methods; lag^2 = flap^2 - rate^2",
    kind="reference",
    tags=("flexible", "tree", "linearisation"),
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
    source=f"Padilla and von Flotow, Nonlinear strain-displacement relations, {ACC1989}: one beam in three fidelities",
    kind="published",
    tags=("flexible", "tree", "acc1989"),
    parameters={"rate": 2.0, "radius": 0.5},
)
def three_fidelities(rate: float, radius: float) -> Items:
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
    source=f"Minas, Garcia, Inman, Control of a flexible planar truss using proof mass actuators, {ACC1989}: Tables 1 to 3",
    kind="published",
    tags=("flexible", "acc1989"),
    missing="""the figure with the geometry, sections, parasitic mass and damping: frequencies are not computed. What holds
    of every structure is checked on the printed ones and on a truss with as many nodes and links. The first frequency of 14
    unknowns, 1.039 Hz, is below that of all, 1.045 Hz, which no reduction by Guyan gives: a misprint""",
    parameters={"mass": 0.4},
)
def planar_truss_with_a_dead_mass(mass: float) -> Items:
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
    tags=("flexible", "control"),
    parameters={"ratio": 0.05},
)
def tuned_proof_mass(ratio: float) -> Items:
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

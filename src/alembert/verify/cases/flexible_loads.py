"""Structures under loads: buckling, follower forces, spinning, absorbers; three levels of stiffening on one beam."""

from collections.abc import Callable

import numpy as np

from alembert.control import SecondOrder
from alembert.flexible import (
    FiniteElements,
    beam,
    campbell,
    stability_boundary,
    tuned_absorber,
    with_proof_mass,
    with_stiffening,
)
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

"""Linear systems: norms, gramians, zeros, sampling and reduction."""

import numpy as np

from alembert import control
from alembert.verify import control_plants as plants
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.programs import SystemsProgram

DIGITS = "half a unit of the last digit that is known"


@case(
    source="""SLICOT library, example of AB13DD: a system with three weakly damped modes (Benner, Mehrmann, Sima,
    Van Huffel, Varga 1999)""",
    kind="reference",
    tags=("control",),
)
def control_weakly_damped_modes() -> Items:
    """Peak gain of modes with damping ratios down to 7e-7."""
    G = plants.three_modes()
    peak = G.hinf_norm()
    yield Check("largest gain", peak.gain, 500000.0001, 1e-4, DIGITS)
    yield Check("its frequency [rad/s]", peak.frequency, 1.4142135624, 1e-10, DIGITS)
    yield Check("H2 norm", G.h2_norm(), 526.7826889, 6e-8, DIGITS)
    w = np.geomspace(0.3, 3, 2000)
    yield Plot(
        "frequency [rad/s]",
        "gain",
        (Line("on a grid", w, G.frequency_response(w).singular_values[:, 0]),),
        True,
        True,
    )


@case(
    source="SLICOT library, examples of AB09AD, AB09BD, AB09CD and AB09HD: a power system (Varga)",
    kind="reference",
    tags=("control",),
)
def control_power_system_reduction() -> Items:
    """Hankel and stochastic singular values, and the errors of order 5."""
    G = plants.power_system()
    expected = [2.51387937, 2.08456252, 1.91779535, 0.76664150, 0.54728542, 0.02526614, 0.02458239]
    yield Check("Hankel singular values", G.hankel_singular_values(), expected, 6e-9, DIGITS)
    yield Check("largest gain", G.hinf_norm().gain, 4.2327751327, 6e-11, DIGITS)
    yield Check(
        "error of balanced truncation",
        control.balanced_truncation(G, 5).error().gain,
        0.0505322821,
        1e-10,
        DIGITS,
    )
    best = (G - control.hankel_optimal(G, 5).system).hankel_singular_values()[0]
    yield Check(
        "Hankel norm of the best error",
        best,
        expected[5],
        6e-9,
        "it is the sixth singular value (Glover 1984)",
    )
    stochastic = control.stochastic_truncation(G, 5, absolute=1.0).singular_values
    printed = [0.8803, 0.8506, 0.8038, 0.4494, 0.3973, 0.0214, 0.0209]
    yield Check("stochastic singular values", stochastic, printed, 6e-5, DIGITS)


@case(
    source="""Chiang, Safonov, Robust-Control Toolbox demonstrations, Third Annual Conference on Aerospace
    Computational Control 1989""",
    kind="reference",
    tags=("control", "acc1989"),
)
def control_relative_error_reduction() -> Items:
    """Balanced stochastic truncation of a system whose gain spans five decades."""
    G = plants.chiang_safonov_seven()
    expected = [2.2931741, 1.9140107, 0.6608891, 0.2489057, 0.0919034, 0.0012274]
    yield Check("Hankel singular values", G.hankel_singular_values()[:6], expected, 6e-8, DIGITS)
    found = control.balanced_truncation(G, 3)
    yield Check("error of balanced truncation", found.error().gain, 0.3450965, 6e-8, DIGITS)
    yield Check("its bound", found.bound, 0.684074, 6e-7, DIGITS)
    found = control.stochastic_truncation(G, 3)
    phase = [0.999734088, 0.998194307, 0.973417907, 0.714604787, 0.558417029, 0.00260446849]
    yield Check(
        "singular values of the phase matrix",
        found.singular_values[:6],
        phase,
        1e-8,
        "40-digit arithmetic, nine shown",
    )
    relative = control.linf_norm(G.inverse() * (G - found.system)).gain
    yield Check("relative error", relative, 4.2, 0.05, DIGITS)


@case(
    source="""SLICOT library, examples of AB09ID and SB16AD: a controller reduced with the loop as a weight
    (Varga)""",
    kind="reference",
    tags=("control",),
)
def control_controller_reduction() -> Items:
    """A controller with an unstable pole, from three states to two."""
    G = control.StateSpace([[-1, 0, 4], [0, 2, 0], [0, 0, -3]], [[1], [1], [1]], [[1, 1, 1]])
    A = [[-26.4, 6.4023, 4.3868], [32, 0, 0], [0, 8, 0]]
    K = control.StateSpace(A, [[16], [0], [0]], [[9.2994, 1.1624, 0.1090]])
    found = control.reduce_controller(K, G, 2, sign=-1)
    yield Check("weighted singular values", found.singular_values, [3.8253, 0.2005], 6e-5, DIGITS)
    yield Check(
        "poles of the reduced controller", found.system.poles().real, [-34.5297, 9.1900], 6e-5, DIGITS
    )


@case(
    source="""Meyer, Srinivasan, Balancing and model reduction for second-order form linear systems, IEEE Trans.
    Aut. Control 41 (1996)""",
    kind="reference",
    tags=("control",),
)
def control_second_order_chain() -> Items:
    """Position singular values of a chain of ten masses, and a reduced chain that is mechanical again."""
    S = plants.mass_chain(10)
    expected = [0.19350926, 0.12833534, 0.08443601, 0.05707717, 0.03854163, 0.02526469]
    yield Check("position singular values", S.position_singular_values()[:6], expected, 6e-9, DIGITS)
    G = S.to_statespace()
    hankel = [0.19438975, 0.19260731, 0.12913911, 0.12746145]
    yield Check("Hankel singular values", G.hankel_singular_values()[:4], hankel, 6e-9, DIGITS)
    w = np.geomspace(1, 30, 300)
    small = S.reduced(5)
    lines = [
        Line(name, w, np.abs(H.frequency_response(w).response[:, 0, 0]))
        for name, H in (("10", S), ("5", small))
    ]
    yield Plot("frequency [rad/s]", "gain at the first mass", tuple(lines), True, True)


@case(
    source="Skogestad, Postlethwaite, Multivariable Feedback Control, 2nd edition 2005, example 3.8",
    kind="published",
    tags=("control",),
)
def control_transmission_zero(systems: SystemsProgram) -> Items:
    """A zero of the transfer matrix that is in none of its entries."""
    G = control.tf([[1, 1], [[2, 1], 2]], np.polymul([0.2, 1], [1, 1]))
    yield Check("zero", systems.load().zeros(G).real, [0.5], 1e-10, "rounding of the staircase")


@case(
    source="Van Loan, Computing integrals involving the matrix exponential, IEEE Trans. Aut. Control 23 (1978)",
    kind="reference",
    tags=("control",),
)
def control_sampled_cost() -> Items:
    """A continuous cost made least by a sampled controller of a double integrator."""
    found = control.sampled_lqr(control.StateSpace([[0, 1], [0, 0]], [[0], [1]], np.eye(2)), 0.1, 1.0, 1.0)
    yield Check("gain", found.K, [[0.91779524, 1.63644083]], 6e-9, DIGITS)
    yield Check("cost", found.X, [[1.73301298, 1.00125033], [1.00125033, 1.73373564]], 6e-9, DIGITS)
    pole = found.poles[1]
    yield Check("closed-loop pole", [pole.real, pole.imag], [0.91588347, 0.04585152], 6e-9, DIGITS)

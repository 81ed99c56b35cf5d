"""Structured singular values, margins, and controllers of fixed structure."""

import numpy as np

from alembert import control
from alembert.control import DeltaBlock, tf
from alembert.verify import control_plants as plants
from alembert.verify.case import Check, Items, Line, Plot, case

DIGITS = "half a unit of the last digit that is known"
SCALAR = DeltaBlock("complex")


@case(
    source="SLICOT library, example of AB13MD: mixed real and complex blocks",
    kind="reference",
    tags=("control",),
)
def control_mixed_mu() -> Items:
    """Upper bound with scalings D and G; the lower bound meets it."""
    rows = [
        [-1 + 6j, 2 - 3j, 3 + 8j, 3 + 8j, -5 - 9j, -6 + 2j],
        [4 + 2j, -2 + 5j, -6 - 7j, -4 + 11j, 8 - 7j, 12 - 1j],
        [5 - 4j, -4 - 8j, 1 - 3j, -6 + 14j, 2 - 5j, 4 + 16j],
    ]
    found = control.mu(
        np.array(rows * 2), [DeltaBlock("real"), DeltaBlock("real"), DeltaBlock("full", 2), SCALAR, SCALAR]
    )
    yield Check("upper bound", found.upper, 41.74753408, 1e-7, DIGITS)
    yield Check("lower bound", found.lower, 41.74753408, 1e-4, "a power iteration")


@case(
    source="""Packard, Doyle, The complex structured singular value, Automatica 29 (1993), section 9.2, after
    Morton""",
    kind="published",
    tags=("control",),
)
def control_mu_gap() -> Items:
    """Four complex numbers: the bound is one, mu is 0.872."""
    al, be = 3 + np.sqrt(3), np.sqrt(3) - 1
    a, b, d, f = np.sqrt(2 / al), 1 / np.sqrt(al), -np.sqrt(be / al), (1 + 1j) / np.sqrt(al * be)
    U = np.array([[a, 0], [b, b], [b, 1j * b], [d, f]])
    V = np.array([[0, a], [b, -b], [b, -1j * b], [-1j * f, -d]])
    found = control.mu(U @ V.conj().T, [SCALAR] * 4)
    yield Check("upper bound", found.upper, 1.0, 1e-9, "exactly one")
    yield Check("lower bound", found.lower, 0.8723592394, 1e-8, DIGITS)


@case(
    source="""Seiler, Packard, Gahinet, An introduction to disk margins, IEEE Control Systems 40 (2020): spinning
    satellite""",
    kind="published",
    tags=("control",),
)
def control_disk_margins() -> Items:
    """Each loop by itself may have any gain; both together hardly ten per cent."""
    G = control.StateSpace([[0, 10], [-10, 0]], np.eye(2), [[1, 10], [-10, 1]])
    yield Check("one loop", [one.margin for one in control.disk_margins(G)], [2.0, 2.0], 1e-8, "exactly two")
    both = control.multiloop_disk_margin(G)
    yield Check("both loops", both.margin, 0.0997512, 6e-8, DIGITS)
    yield Check("gains", [both.gain_down, both.gain], [0.9049876, 1.1049876], 6e-8, DIGITS)
    yield Check("phase [deg]", both.phase_deg, 5.710593, 6e-7, DIGITS)


@case(
    source="""Chiang, Safonov, Robust-Control Toolbox demonstrations, Third Annual Conference on Aerospace
    Computational Control 1989""",
    kind="published",
    tags=("control", "acc1989"),
)
def control_diagonal_margin() -> Items:
    """Singular values promise a margin of 1/12; for diagonal perturbations it is 2."""
    across = np.polyadd(np.polymul([4, 0], [1, 8]), np.polymul([8, 0], [1, 4]))
    G = tf([[[4], 0], [across, [8]]], [[[1, 4], 1], [[1, 12, 32], [1, 8]]])
    T = G * control.feedback(control.static(np.eye(2)), G)
    yield Check("by singular values", 1 / control.linf_norm(T).gain, 1 / 12, 1e-9, "exactly")
    yield Check("diagonal", 1 / control.mu_peak(T, [SCALAR] * 2).peak, 2.0, 1e-8, "exactly")


@case(
    source="""Skogestad, Postlethwaite, Multivariable Feedback Control, 2nd edition 2005, example 8.12:
    distillation column""",
    kind="published",
    tags=("control",),
)
def control_distillation() -> Items:
    """Inverse-based control: nominally good, robustly bad (0.5, 0.53 and 5.77 in the book)."""
    gains, P = plants.distillation()
    blocks = [SCALAR, SCALAR, DeltaBlock("full", 2)]
    K = control.series(control.static(np.linalg.inv(gains)), control.append(*[0.7 * tf([75, 1], [1, 0])] * 2))
    M = control.lft(P, K).minimal(tolerance=1e-9)
    yield Check("nominal performance", control.hinf_norm(M[2:, 2:]).gain, 0.5, 1e-8, "exactly")
    yield Check(
        "robust stability", control.mu_peak(M[:2, :2], blocks[:2]).peak, 0.5261584824, 1e-9, "closed form"
    )
    found = control.mu_peak(M, blocks)
    yield Check("robust performance", found.peak, 5.7818282, 6e-7, DIGITS)
    yield Check("its frequency [rad/s]", found.frequency, 1.4635, 6e-5, DIGITS)
    best = control.hinfsyn(P, controls=2, measurements=2, tolerance=1e-8)
    yield Check("least H-infinity norm", best.upper, 1.1797779, 1e-6, DIGITS)
    w = np.geomspace(1e-3, 100, 60)
    bounds = control.mu_response(M, blocks, w, starts=2)
    yield Plot(
        "frequency [rad/s]",
        "mu",
        (Line("upper bound", w, bounds.upper), Line("lower bound", w, bounds.lower)),
        True,
    )


@case(
    source="Balas, Doyle, Glover, Packard, Smith, mu-Analysis and Synthesis Toolbox manual: HIMAT",
    kind="reference",
    tags=("control",),
)
def control_himat() -> Items:
    """The H-infinity step of mu synthesis for an aircraft."""
    found = control.hinfsyn(plants.himat(), controls=2, measurements=2, tolerance=1e-9)
    yield Check("least level", found.upper, 1.6751696913, 1e-8, DIGITS)


@case(
    source="Leibfritz, COMPleib: constraint matrix optimization problem library, 2004: static output feedback",
    kind="reference",
    tags=("control",),
)
def control_static_output_feedback() -> Items:
    """Local optima by nonsmooth optimisation with exact gradients."""
    for name, value in (("NN2", 2.22158329), ("AC4", 0.9354753), ("AC17", 6.6124279)):
        P, m, p = plants.compleib(name)
        found = control.tune(P, 0, controls=m, measurements=p, starts=1)
        yield Check(name, found.value, value, 1e-3 * value, "a local optimum")


@case(
    source="""Ly, Robust control design using nonlinear constrained optimization, ACC 1989: gust alleviation of a
    B767 model""",
    kind="reference",
    tags=("control", "acc1989"),
    missing="the entry A(3,4) of the printed matrix; zero, as in the model AC8 of COMPleib",
)
def control_gust_alleviation() -> Items:
    """A controller with six parameters: H2 alone, and H2 with H-infinity."""
    P, structure = plants.gust_alleviation()
    h2 = control.Goal("h2", 1e4, 2.0)
    found = control.tune(
        P, structure, controls=1, measurements=2, goals=[h2], start=[-1, -0.1, 0.1, 0.1, 0.1, 0.1], starts=0
    )
    yield Check("H2 norm squared", found.value / 1e4, 1.36055828e-4, 1e-11, DIGITS)
    peak = found.closed_loops[0].hinf_norm().gain
    yield Check("H-infinity norm there", peak, 0.0268444, 6e-8, DIGITS)
    goals = [h2, control.Goal("hinf", 1e4, 2.0)]
    both = control.tune(
        P, structure, controls=1, measurements=2, goals=goals, start=found.parameters, starts=0
    )
    yield Check("sum of squares", both.value / 1e4, 5.98728780e-4, 1e-8, "a local optimum")
    yield Check(
        "lower peak [%]",
        100 * (both.closed_loops[0].hinf_norm().gain / peak - 1),
        -20.8,
        0.1,
        "printed: 20 %",
    )


@case(
    source="Miminis, Deflation in eigenvalue assignment by output feedback, ACC 1989: examples 1 and 2",
    kind="published",
    tags=("control", "acc1989"),
)
def control_output_placement() -> Items:
    """Poles by output feedback; in the second example the gain is unique."""
    G, wanted = plants.miminis_first()
    yield Check(
        "poles of example 1",
        control.place_by_outputs(G, wanted).poles.real,
        np.sort(wanted),
        1e-10,
        "he has 3e-12",
    )
    G, wanted = plants.miminis_second()
    found = control.place_by_outputs(G, wanted)
    yield Check("gain of example 2", found.K[:, 0], [-2.053475126112, -6.466096811958], 1e-10, DIGITS)
    yield Check("third pole of example 2", found.poles[2].real, 1.707616832510, 1e-10, DIGITS)

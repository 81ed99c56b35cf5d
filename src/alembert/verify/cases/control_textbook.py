"""Linear systems whose results are known in closed form, posed to other programs too."""

import numpy as np

from alembert.control import StateSpace, tf
from alembert.verify.case import Check, Items, case
from alembert.verify.programs import SystemsProgram

ROUNDING = "rounding of an invariant subspace: 1e-12 of entries of some tens"


@case(
    source="""Benner, Laub, Mehrmann, A collection of benchmark examples for the numerical solution of algebraic
    Riccati equations I, Chemnitz 1995, examples 1.1 and 1.2""",
    kind="closed form",
    tags=("control",),
)
def control_riccati_benchmarks(systems: SystemsProgram) -> Items:
    """Regulators of a double integrator, and of a plant with an unstable pole that the cost does not see."""
    program = systems.load()
    G = StateSpace([[0, 1], [0, 0]], [[0], [1]], np.eye(2))
    yield Check("double integrator", program.lqr(G, np.diag([1.0, 2.0]), [[1.0]]), [[1, 2]], 1e-12, ROUNDING)
    G = StateSpace([[4, 3], [-4.5, -3.5]], [[1], [-1]], np.eye(2))
    expected = (1 + np.sqrt(2)) * np.array([[3.0, 2.0]])
    found = program.lqr(G, np.array([[9.0, 6.0], [6.0, 4.0]]), [[1.0]])
    yield Check("second example", found, expected, 1e-10, f"{ROUNDING}; the cost has rank one")


@case(
    source="""Benner, Laub, Mehrmann, A collection of benchmark examples for the numerical solution of algebraic
    Riccati equations II: discrete-time case, Chemnitz 1995, example 1.1""",
    kind="closed form",
    tags=("control",),
)
def control_sampled_riccati_benchmark(systems: SystemsProgram) -> Items:
    """A sampled regulator: X is the golden section times the weight."""
    A, B = np.array([[4, 3], [-4.5, -3.5]]), np.array([[1.0], [-1.0]])
    Q, golden = np.array([[9.0, 6.0], [6.0, 4.0]]), (1 + np.sqrt(5)) / 2
    X = golden * Q
    expected = np.linalg.solve(1.0 + B.T @ X @ B, B.T @ X @ A)
    found = systems.load().lqr(StateSpace(A, B, np.eye(2), dt=1.0), Q, [[1.0]])
    yield Check("gain", found, expected, 1e-10, f"{ROUNDING}; the cost has rank one")


@case(
    source="Doyle, Francis, Tannenbaum, Feedback Control Theory, 1992, chapter 2: norms",
    kind="closed form",
    tags=("control",),
)
def control_norm_of_an_oscillator(systems: SystemsProgram) -> Items:
    """Mean square response of lightly damped oscillators, w = 1 .. 100, damping down to 1e-4."""
    program = systems.load()
    for w, damping in ((1.0, 0.5), (10.0, 1e-2), (100.0, 1e-4)):
        found = program.h2_norm(tf([1], [1, 2 * damping * w, w * w]))
        expected = np.sqrt(1 / (4 * damping * w**3))
        reason = "1e-12 over the damping: the condition of the Lyapunov equation"
        yield Check(f"w = {w:g}, damping {damping:g}", found / expected, 1.0, 1e-12 / damping, reason)


@case(
    source="Ogata, Modern Control Engineering, 5th edition 2010, chapter 7: stability margins",
    kind="closed form",
    tags=("control",),
)
def control_margins_of_three_poles(systems: SystemsProgram) -> Items:
    """Loops k / (s (s + 1)^2): the gain margin is 2 / k; for k = 1/2 the phase margin follows from a cubic."""
    program = systems.load()
    for k in (0.1, 0.5, 1.0):
        gain, phase = program.crossover_margins(tf([k], [1, 2, 1, 0]))
        w = next(x.real for x in np.roots([1, 0, 1, -k]) if abs(x.imag) < 1e-9)  # w (w^2 + 1) = k
        expected = 90.0 - 2 * np.degrees(np.arctan(w))
        reason = "a root of a polynomial of order six, found to 1e-8 at the worst"
        yield Check(f"gain margin, k = {k:g}", gain, 2 / k, 1e-7, reason)
        yield Check(f"phase margin [deg], k = {k:g}", phase, expected, 1e-6, reason)


@case(
    source="Franklin, Powell, Workman, Digital Control of Dynamic Systems, 3rd edition 1998, section 4.3",
    kind="closed form",
    tags=("control",),
)
def control_sampled_double_integrator(systems: SystemsProgram) -> Items:
    """Held inputs: z-transform of a double integrator, and of a lag."""
    program, dt = systems.load(), 0.3
    found = program.sampled(StateSpace([[0, 1], [0, 0]], [[0], [1]], [[1, 0]]), dt)
    yield Check("A", found.A, [[1, dt], [0, 1]], 1e-15, "rounding")
    yield Check("B", found.B, [[dt * dt / 2], [dt]], 1e-15, "rounding")
    found = program.sampled(StateSpace([[-2.0]], [[1.0]], [[1.0]]), dt)
    yield Check(
        "lag", [found.A[0, 0], found.B[0, 0]], [np.exp(-0.6), (1 - np.exp(-0.6)) / 2], 1e-15, "rounding"
    )

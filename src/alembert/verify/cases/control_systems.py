"""Linear systems whose results are known in closed form, posed to other programs too; and linear models of mechanisms.

Norms, gramians, zeros, sampling and reduction; frequencies and poles of linear models, and a bound on pointing errors; from
mechanisms to uncertain linear models, and controllers flown in them.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import scipy

from alembert import control, library
from alembert.control import StateSpace, parameter, tf
from alembert.joints import Prismatic, Revolute, Spring
from alembert.linear import linearize
from alembert.model import WORLD, Inertia, Model, ModelBuilder
from alembert.simulate import simulate
from alembert.verify import control_plants as plants
from alembert.verify.case import CHIANG_SAFONOV, SKOGESTAD, Check, Items, Line, Plot, acc1989, case
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


@case(source=CHIANG_SAFONOV, kind="reference", tags=("control", "acc1989"))
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


@case(source=f"{SKOGESTAD}, example 3.8", kind="published", tags=("control",))
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


@case(
    source="""Pendulum on a cart: w^2 = g (M + m) / (M l) hanging, poles +-w upright (Friedland, Control System
    Design, 1986, example 2E)""",
    kind="closed form",
    tags=("linearisation",),
)
def cart_pole_poles(
    cart: float = 1.0, pole: float = 0.3, length: float = 0.5, gravity: float = 9.81
) -> Items:
    """Poles of a cart-pole, hanging and upright."""
    model = library.cart_pole(cart_mass=cart, pole_mass=pole, pole_length=length)
    w = np.sqrt(gravity * (cart + pole) / (cart * length))
    hanging = linearize(model, [0.0, 0.0])
    upright = linearize(model, [0.0, np.pi])
    reason = "a double pole at zero: sqrt(eps) for it, rounding for the others"
    yield Check("hanging: imaginary part", np.max(np.linalg.eigvals(hanging.A).imag), w, 1e-12, reason)
    yield Check(
        "upright: real parts", np.sort(np.linalg.eigvals(upright.A).real)[[0, -1]], (-w, w), 1e-7, reason
    )


def _row(count: int, mass: float, stiffness: float) -> Model:
    """Masses from a wall on, a spring before each."""
    builder = ModelBuilder("row", gravity=(0, 0, 0))
    parent = WORLD
    for k in range(count):
        body = Inertia.box(mass, (0.1, 0.1, 0.1))
        builder.body(f"m{k}", body, joint=Prismatic((1, 0, 0)), parent=parent, spring=Spring((stiffness,)))
        parent = f"m{k}"
    return builder.build()


@case(
    source="""A fixed-free chain of equal masses and springs: w_j = 2 sqrt(k/m) sin((2j - 1) pi / (4N + 2))
    (Routh, Advanced Rigid Dynamics, ch. IX)""",
    kind="closed form",
    tags=("linearisation",),
)
def spring_chain(count: int = 8, mass: float = 0.5, stiffness: float = 30.0) -> Items:
    """Frequencies of masses and springs in a row."""
    found = linearize(_row(count, mass, stiffness), np.zeros(count)).modes().frequencies
    j = np.arange(1, count + 1)
    expected = 2 * np.sqrt(stiffness / mass) * np.sin((2 * j - 1) * np.pi / (4 * count + 2))
    yield Check("frequencies [rad/s]", found, expected, 1e-11, "rounding times the condition of the modes")
    yield Plot("mode", "[rad/s]", (Line("closed form", j, expected), Line("ours", j, found, "points")))


@case(source=acc1989("Balakrishnan", "(3.4)"), kind="published", tags=("linearisation", "acc1989"))
def balakrishnan_bound(
    actuator_noise: float = 0.02,
    sensor_noise: float = 0.005,
    masses: int = 5,
    mass: float = 1.3,
    stiffness: float = 40.0,
) -> Items:
    """Mean square response under rate feedback: sqrt(d_s d_o) times the static compliance.

    Direct feedback u = -sqrt(d_s/d_o) v reaches the bound; (3.4) is printed with the response squared. On a chain of
    masses and springs instead of the paper's beam, by Lyapunov's equation of the linear model.
    """
    model = _row(masses, mass, stiffness)
    linear = linearize(model, model.neutral())
    tip = np.ones(masses)  # a force on the last mass does work on every relative displacement
    gain = np.sqrt(actuator_noise / sensor_noise)
    force = np.concatenate([np.zeros(masses), np.linalg.solve(model.mass_matrix(model.neutral()), tip)])
    rate = np.concatenate([np.zeros(masses), tip])
    closed = linear.A - gain * np.outer(force, rate)
    intensity = actuator_noise + gain**2 * sensor_noise
    P = scipy.linalg.solve_continuous_lyapunov(closed, -intensity * np.outer(force, force))
    place = np.concatenate([tip, np.zeros(masses)])
    expected = np.sqrt(actuator_noise * sensor_noise) * masses / stiffness
    yield Check(
        "mean square of the tip [m^2]",
        place @ P @ place,
        expected,
        1e-13,
        "Lyapunov's equation of ten states; rounding",
    )


EXACT = "rounding times the condition of the mass matrix"
WHOLE = "a whole number"
BELCASTRO = """Belcastro, Chang, Fischl, A methodology for formulating a minimal uncertainty model for robust control
    system design and analysis, Third Annual Conference on Aerospace Computational Control, 1989: example """


def _slide(
    builder: ModelBuilder, name: str, mass: object, parent: str = "world", spring: object = None
) -> None:
    builder.body(
        name,
        Inertia.point(mass),  # type: ignore[arg-type]
        joint=Prismatic((1, 0, 0)),
        joint_name=name,
        parent=parent,
        spring=None if spring is None else Spring((spring,)),  # type: ignore[arg-type]
    )


def _compared(found: object, model: Model) -> Items:
    yield Check("largest difference from linear models", found.certificate.error, 0.0, 1e-10, EXACT)  # type: ignore[attr-defined]


@case(
    source="Least copies of named parameters, by the rank of Loewner matrices: pendulum",
    kind="identity",
    tags=("control",),
)
def control_copies_pendulum() -> Items:
    """A pendulum, m l^2 q'' + m g l q = u: the mass once, the length twice."""
    builder = ModelBuilder("pendulum")
    m, length = builder.parameter("m", 1.0), builder.parameter("l", 1.0)
    builder.body(
        "bob", Inertia.point(m, (0, 0, -1.0 * length)), joint=Revolute((0, 1, 0)), joint_name="hinge"
    )
    model = builder.build()
    found = linearize(model, [0.0], uncertain={"m": (0.5, 2.0), "l": (0.5, 1.5)})
    yield Check("copies of m and l", [found.copies["m"], found.copies["l"]], [1, 2], 0, WHOLE)
    yield from _compared(found, model)


@case(
    source="Least copies of named parameters, by the rank of Loewner matrices: two masses",
    kind="identity",
    tags=("control",),
)
def control_copies_two_masses() -> Items:
    """Both masses and the spring once."""
    builder = ModelBuilder("masses", gravity=(0, 0, 0))
    m1, m2, k = (builder.parameter(name, 1.0) for name in ("m1", "m2", "k"))
    _slide(builder, "first", m1)
    _slide(builder, "second", m2, "first", k)
    model = builder.build()
    ranges = {name: (0.5, 2.0) for name in ("m1", "m2", "k")}
    found = linearize(model, [0.0, 0.0], inputs=["first"], outputs=["q"], uncertain=ranges)
    yield Check("copies of m1, m2 and k", [found.copies[name] for name in ranges], [1, 1, 1], 0, WHOLE)
    yield from _compared(found, model)


@case(
    source="Least copies of named parameters, by the rank of Loewner matrices: cart and pole",
    kind="identity",
    tags=("control",),
)
def control_copies_cart_pole() -> Items:
    """Upright, the force on the cart: cart, pole and length once."""
    builder = ModelBuilder("cart_pole")
    M, m, length = builder.parameter("M", 1.0), builder.parameter("m", 0.3), builder.parameter("l", 0.5)
    _slide(builder, "cart", M)
    builder.body(
        "pole", Inertia.point(m, (0, 0, length)), joint=Revolute((0, 1, 0)), joint_name="hinge", parent="cart"
    )
    model = builder.build()
    ranges = {"M": (0.5, 2.0), "m": (0.1, 0.5), "l": (0.3, 0.7)}
    found = linearize(model, [0.0, 0.0], inputs=["cart"], outputs=["q"], uncertain=ranges)
    yield Check("copies of M, m and l", [found.copies[name] for name in ranges], [1, 1, 1], 0, WHOLE)
    yield from _compared(found, model)


@case(
    source="Least copies of named parameters, by the rank of Loewner matrices: chain of six masses",
    kind="identity",
    tags=("control",),
)
def control_copies_chain() -> Items:
    """Six masses and six springs from a wall on: twelve numbers, each once."""
    builder = ModelBuilder("chain", gravity=(0, 0, 0))
    masses = [builder.parameter(f"m{k}", 1.0) for k in range(6)]
    springs = [builder.parameter(f"k{k}", 1.0) for k in range(6)]
    parent = "world"
    for k in range(6):
        _slide(builder, f"mass{k}", masses[k], parent, springs[k])
        parent = f"mass{k}"
    model = builder.build()
    ranges = {f"{x}{k}": (0.5, 2.0) for x in "mk" for k in range(6)}
    found = linearize(model, np.zeros(6), inputs=["mass5"], outputs=["q"], uncertain=ranges)
    yield Check("copies of each", [found.copies[name] for name in ranges], [1] * 12, 0, WHOLE)
    yield from _compared(found, model)


@case(source=BELCASTRO + "7.3", kind="published", tags=("control",))
def control_belcastro_oscillator() -> Items:
    """An oscillator, 1/(s^2 + 2 sigma s + omega^2): sigma once, omega twice."""
    sigma, omega = parameter("sigma", 0.1, 0.3), parameter("omega", 0.8, 1.4)
    found = control.uncertain_system([[0, 1], [-1 * omega * omega, -2 * sigma]], [[0], [1]], [[1, 0]])
    copies = [found.matrix.copies["sigma"], found.matrix.copies["omega"]]
    yield Check("copies of sigma and omega", copies, [1, 2], 0, WHOLE)
    made = found.at(sigma=0.13, omega=1.31)
    yield Check("A", made.A, [[0, 1], [-(1.31**2), -0.26]], 1e-12, "rounding")


@case(source=BELCASTRO + "7.2", kind="published", tags=("control",))
def control_belcastro_pole_pair() -> Items:
    """A pair of poles, (b1 s^2 + b2 s + b3) / ((s + t1)(s + t2)), with five parameters: six copies."""
    t1, t2 = parameter("t1", 0.5, 1.5), parameter("t2", 2.0, 3.0)
    b1, b2, b3 = (parameter(f"b{k}", 0.8, 1.2) for k in (1, 2, 3))
    x1, x2, u = np.eye(3)[:, None, :]
    both = t2 * x1 + x2  # (s + t2) x1, of which t1 is used once
    rate = -1 * (t1 * both) - t2 * x2 + u
    y = b1 * rate + b2 * x2 + b3 * x1
    found = control.uncertain([[x2], [rate], [y]])
    names = ("t1", "t2", "b1", "b2", "b3")
    yield Check("copies in all", sum(found.copies.values()), 6, 0, WHOLE)
    p = {"t1": 0.7, "t2": 2.9, "b1": 0.9, "b2": 1.1, "b3": 0.83}
    A = np.array([[0, 1], [-p["t1"] * p["t2"], -p["t1"] - p["t2"]]])
    C = [p["b3"] + p["b1"] * A[1, 0], p["b2"] + p["b1"] * A[1, 1], p["b1"]]
    yield Check("A and C", found.at(**p)[1:, :2], [A[1], C[:2]], 1e-12, "rounding")
    yield Check("parameters", len(names), 5, 0, WHOLE)


@case(source=BELCASTRO + "7.1", kind="published", tags=("control",))
def control_belcastro_factors() -> Items:
    """Belcastro's example 7.1, a product of factors with eleven parameters: each is needed once.

    (e1 s + e2)(e3 s + e4)(b1 s^2 + b2 s + b3) / ((s + l1)(s + l2)(s^2 + a1 s + a2))
    """
    names = ("l1", "l2", "a1", "a2", "e1", "e2", "e3", "e4", "b1", "b2", "b3")
    l1, l2, a1, a2, e1, e2, e3, e4, b1, b2, b3 = (
        parameter(name, 1.0 + 0.1 * k, 1.4 + 0.1 * k) for k, name in enumerate(names)
    )
    x1, x2, x3, x4, u = np.eye(5)[:, None, :]
    r1 = u - l1 * x1
    first = e1 * r1 + e2 * x1  # what the first factor gives
    r2 = first - l2 * x2
    second = e3 * r2 + e4 * x2
    r4 = second - a1 * x4 - a2 * x3
    found = control.uncertain([[r1], [r2], [x4], [r4], [b1 * r4 + b2 * x4 + b3 * x3]])
    yield Check("copies of each", [found.copies[name] for name in names], [1] * 11, 0, WHOLE)
    p = {name: 1.05 + 0.13 * k for k, name in enumerate(names)}
    made = found.at(**p)
    s = np.array([0.3j, 1.0 + 2.0j, -0.4 + 0.7j])
    response = [
        made[4, :4] @ np.linalg.solve(x * np.eye(4) - made[:4, :4], made[:4, 4]) + made[4, 4] for x in s
    ]
    above = (p["e1"] * s + p["e2"]) * (p["e3"] * s + p["e4"]) * (p["b1"] * s**2 + p["b2"] * s + p["b3"])
    below = (s + p["l1"]) * (s + p["l2"]) * (s**2 + p["a1"] * s + p["a2"])
    yield Check("response / formula", np.abs(response / (above / below)), np.ones(3), 1e-12, "rounding")


def _masses() -> Model:
    builder = ModelBuilder("masses", gravity=(0, 0, 0))
    k = builder.parameter("k", 1.0)
    _slide(builder, "first", 1.0)
    _slide(builder, "second", 1.0, "first", k)
    builder.frame("end", "second")
    return builder.build()


def _design(plant: control.StateSpace) -> control.StateSpace:
    T = np.array(
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1.0]]
    )  # places from relative coordinates
    through = np.linalg.solve(T, np.array([[0.0], [0], [0], [1]]))
    return control.lqg(plant, T.T @ np.diag([0.0, 1, 0, 0]) @ T, 0.1, 1.0, 0.01, through=through).controller


@case(
    source="""Two-mass-spring benchmark (Wie, Bernstein, American Control Conference 1992), LQG with weights of its own:
    the stiffness as a named parameter of the mechanism""",
    kind="reference",
    tags=("control",),
)
def control_real_parameter_margin() -> Items:
    """The peak of mu for one real parameter is where the loop loses its stability, at k = 0.9421823041."""
    model = _masses()
    family = linearize(
        model, [0.0, 0.0], inputs=["first"], outputs=["end.position.x"], uncertain={"k": (0.9, 1.1)}
    )
    K = _design(family.nominal.to_statespace())
    peak = family.mu(K, tolerance=0.01)
    expected = 0.1 / (1 - 0.9421823041)
    yield Check(
        "peak of mu",
        peak.upper,
        expected * 1.01,
        0.011 * expected,
        "the tolerance of the peak, and its steps of 0.5 %",
    )
    yield Check.holds("what is proven is true", peak.upper >= expected, WHOLE)


@case(
    source="Exponential of the closed loop: two masses under LQG, flown", kind="identity", tags=("control",)
)
def control_flown_continuously() -> Items:
    """An exactly linear mechanism with its controller follows the exponential of the closed loop."""
    model = _masses()
    plant = linearize(model, [0.0, 0.0], inputs=["first"], outputs=["end.position.x"]).to_statespace()
    K = _design(plant)
    run = simulate(model, [0.2, 0.1], duration=5.0, step=0.01, controller=K, integrator="rk4", interval=0.5)
    A = np.block([[plant.A, plant.B @ K.C], [K.B @ plant.C, K.A]])
    start = np.concatenate([[0.2, 0.1], np.zeros(6)])
    there = np.array([scipy.linalg.expm(A * t) @ start for t in run.time])
    assert run.controller_states is not None
    found = np.hstack([run.q, run.v, run.controller_states])
    yield Check(
        "states of plant and controller", found, there, 1e-6, "500 steps of order 4 with poles of size 3"
    )


@case(
    source="Powers of the sampled closed loop: two masses under sampled LQG, flown",
    kind="identity",
    tags=("control",),
)
def control_flown_in_samples() -> Items:
    """What is held between samples makes the mechanism an exactly sampled system."""
    model, h = _masses(), 0.1
    plant = control.c2d(
        linearize(model, [0.0, 0.0], inputs=["first"], outputs=["end.position.x"]).to_statespace(), h
    )
    K = _design(plant)
    run = simulate(model, [0.2, 0.1], duration=5.0, controller=K, integrator="dop853", interval=h)
    A = np.block([[plant.A, plant.B @ K.C], [K.B @ plant.C, K.A]])
    start = np.concatenate([[0.2, 0.1], np.zeros(6)])
    there = reduce(lambda rows, _: [*rows, A @ rows[-1]], range(50), [start])
    expected = np.array(there)[:, :4]
    yield Check(
        "states of the plant",
        np.hstack([run.q, run.v]),
        expected,
        1e-7,
        "a hundred times the tolerance of a step",
    )

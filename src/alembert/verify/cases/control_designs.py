"""Designs from responses alone, of low order, and along sliding surfaces.

Structure and control at once, families of polynomials, nonlinear elements, filters by square roots.
"""

import math

import casadi as ca
import numpy as np

from alembert import control
from alembert.control.codesign import DesignPoint, codesign
from alembert.control.uncertain_systems import as_uncertain_system
from alembert.flexible import CrossSection
from alembert.joints import Free
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import simulate
from alembert.spacecraft import sliding_design
from alembert.verify.case import JPL1989, Check, Items, Line, Plot, family
from alembert.verify.cases.flexible_structures import straight
from alembert.verify.control_plants import two_masses

case = family("control")


@case(source="State-space LQG of the same plant: two Riccati equations", kind="independent program")
def control_wiener_hopf() -> Items:
    """Two inputs and outputs from 512 samples of responses: cost and controller of the Riccati equations."""
    plant = control.StateSpace(
        [[-0.5, 1, 0], [-1, -0.5, 0.3], [0, 0, -2]], [[0, 1], [1, 0], [1, 1]], [[1, 0, 1], [0, 1, 0]]
    )
    shape = control.StateSpace([[-1, 0], [0, -3]], [[1, 0.4], [0, 2]], [[1, 0], [0.5, 1]])
    found = control.wiener_hopf(plant, shape, effort=0.2, sensor=0.4, samples=512)
    A, B = np.zeros((5, 5)), np.zeros((5, 2))
    A[:3, :3], A[3:, 3:], B[:3] = plant.A, shape.A, plant.B
    both = control.StateSpace(A, B, np.hstack([plant.C, shape.C]))
    noise = np.vstack([np.zeros((3, 2)), shape.B])
    design = control.lqg(both, both.C.T @ both.C, 0.2, 1.0, 0.4, through=noise)
    K = design.regulator.K
    cost = np.trace(design.regulator.X @ noise @ noise.T) + 0.2 * np.trace(K @ design.filter.P @ K.T)
    why = "errors fall geometrically with the samples: rounding of both"
    yield Check("cost", found.cost, cost, 1e-10, why)
    response = -design.controller.frequency_response(found.frequency).response
    yield Check("controller", np.abs(found.controller - response).max(), 0.0, 1e-9, why)


@case(
    source=f"Bennett, Frequency-response modelling and control, {JPL1989}: beam on two pins; its modes in closed form",
    kind="published",
    tags=("flexible", "acc1989"),
    missing="the spectra of Fig. 4.2; another disturbance is taken, and the optimum compared with LQG on modes",
)
def control_wiener_hopf_beam() -> Items:
    """From the formula of a damped beam, which no finite system has, to its best controller."""
    length, damping, place = 10.0, 0.01, 7.0
    turn = damping + 1j * math.sqrt(1 - damping**2)

    def response(w: np.ndarray) -> np.ndarray:
        s = 1j * w
        a, b = np.sqrt(-np.conj(turn) * s) * length, np.sqrt(turn * s) * length
        # sines and hyperbolic sines over those of the whole length: no overflow at high frequency
        first = _ratio(1j * a, place / length)
        return length**2 * (_ratio(b, place / length) - first) / (a**2 + b**2)

    def modes(n: int) -> control.StateSpace:
        k = np.arange(1, n + 1) * np.pi / length
        shape = 2 / length * k * (-1.0) ** np.arange(1, n + 1)
        return control.SecondOrder(
            np.eye(n), np.diag(2 * damping * k**2), np.diag(k**4), shape[:, None], np.sin(k * place)[None]
        ).to_statespace()

    yield Check(
        "static deflection",
        response(np.array([1e-5]))[0].real,
        -5.95,
        1e-6,
        "z^3/(6 L) - L z/6; the square of 1e-5 / 0.0987",
    )
    w = np.array([0.05, 0.2, 1.0])
    yield Check.converging(
        "response [modes]",
        lambda n: np.abs(modes(n).frequency_response(w).response[:, 0, 0]),
        64,
        np.abs(response(w)),
        1e-9,
    )
    shape = control.tf([0.5], [1, 0.3])
    found = control.wiener_hopf(response, shape, effort=2.0, sensor=0.05, samples=2**14, scale=0.3)

    def cost(n: int) -> float:
        plant = modes(n)
        size = plant.order + 1
        A, B, noise = np.zeros((size, size)), np.zeros((size, 1)), np.zeros((size, 1))
        A[:-1, :-1], A[-1, -1], B[:-1], noise[-1] = plant.A, -0.3, plant.B, 1.0
        both = control.StateSpace(A, B, np.hstack([plant.C, [[0.5]]]))
        design = control.lqg(both, both.C.T @ both.C, 2.0, 1.0, 0.05, through=noise)
        K = design.regulator.K
        return float(design.regulator.X[-1, -1] + 2.0 * (K @ design.filter.P @ K.T)[0, 0])

    yield Check.converging("cost [modes]", cost, 12, found.cost, 1e-6 * found.cost + found.accuracy)
    yield Plot(
        "frequency [rad/s]",
        "gain",
        (
            Line("beam", found.frequency[:4000], np.abs(response(found.frequency[:4000]))),
            Line("controller", found.frequency[:4000], np.abs(found.controller[:4000, 0, 0])),
        ),
        True,
    )


def _ratio(x: np.ndarray, part: float) -> np.ndarray:
    """sinh(part x) / sinh(x)"""
    x = np.where(x.real < 0, -x, x)
    return np.asarray(np.exp((part - 1) * x) * (1 - np.exp(-2 * part * x)) / (1 - np.exp(-2 * x)))


@case(
    source="""Hyland, Bernstein, The optimal projection equations for fixed-order dynamic compensation, IEEE Trans. Aut.
    Control 29 (1984)""",
    kind="independent program",
)
def control_optimal_projection() -> Items:
    """Controllers of low order for two masses: the projection equations hold, another optimiser finds the same cost."""
    plant = two_masses(1.0, 0.02)
    noise = np.array([[0.0], [0], [0], [1]])
    Q = np.diag([0, 1.0, 0, 0])
    P = control.StateSpace(
        plant.A,
        np.hstack([noise, np.zeros((4, 1)), plant.B]),
        np.vstack([[0, 1, 0, 0], np.zeros(4), plant.C]),
        [[0, 0, 0], [0, 0, math.sqrt(0.1)], [0, 0.1, 0]],
    )
    costs = []
    for order in (2, 3, 4):
        found = control.reduced_lqg(plant, order, Q, 0.1, 1.0, 0.01, through=noise)
        costs.append(found.cost)
        yield Check(
            f"left of the projection equation, order {order}", found.residual, 0.0, 1e-6,
            "slopes of 1e-12, times the condition of the covariances, some 1e5",
        )  # fmt: skip
    yield Check("full order: LQG", costs[-1], found.full_cost, 1e-9, "the same minimum, quadratic in 1e-8")
    structure = control.fixed_order(2, 1, 1, free=[[False]])
    other = control.tune(
        P, structure, controls=1, measurements=1, goals=[control.Goal("h2")], starts=4, iterations=150
    )
    yield Check(
        "order 2: cost", costs[0], other.value**2, 1e-4, "the other optimiser ends at 1e-5 of its value"
    )
    yield Check("less with each state", np.diff(costs) < 0, [True, True], 0, "more freedom costs no more")


@case(
    source="""Dwyer, Sira-Ramirez, Variable-structure control of spacecraft attitude maneuvers, J. Guidance 11 (1988): motion
    on the surface""",
    kind="closed form",
    tags=("spacecraft", "simulation"),
)
def sliding_slew(angle: float = 2.0) -> Items:
    """A slew with another inertia than the law knows, and a torque from outside: within what the design proves."""
    known, error = np.diag([120.0, 150.0, 60.0]), 15.0
    design = sliding_design(
        known, slope=0.2, reach=20.0, accuracy=0.005, angle=angle, inertia_error=error, disturbance=0.02
    )
    builder = ModelBuilder("craft", gravity=(0, 0, 0))
    off = 0.577 * error  # off the diagonal: its size as a matrix is 0.82 of the error
    J = known + off * np.array([[0, 1.0, 0], [1, 0, 1], [0, 1, 0]])
    builder.body("hub", Inertia.from_matrix(100.0, (0, 0, 0), J), joint=Free())
    model = builder.build()

    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 7), ca.SX.sym("v", 6)
    push = ca.vertcat(0.02 * ca.sin(0.3 * t), 0, 0)
    law = ca.Function("law", [t, q, v], [ca.vertcat(design.law(q[3:7], v[:3]) + push, 0, 0, 0)])
    half = angle / 2
    times = np.linspace(0.0, 80.0, 161)
    run = simulate(
        model, [0, 0, 0, math.cos(half), math.sin(half), 0, 0],
        [-design.slope * math.sin(half), 0, 0, 0, 0, 0],
        duration=80.0, step=2e-3, interval=0.5, integrator="rk4", controller=law,
    )  # fmt: skip
    found = 2 * np.arcsin(np.clip(np.linalg.norm(run.q[:, 4:7], axis=1), 0, 1))
    ideal = 4 * np.arctan(math.tan(angle / 4) * np.exp(-design.slope * times / 2))
    yield Check(
        "angle on the surface [rad]",
        found,
        ideal,
        2 * design.accuracy,
        "off the surface by what is proven, to both sides",
    )
    yield Check("angle at the end [rad]", found[-1], 0.0, design.accuracy, "proven")
    rate = float(np.linalg.norm(run.v[:, :3], axis=1).max())
    yield Check.holds("rates within the bound", rate <= design.rate, "proven")
    yield Plot("time [s]", "angle [rad]", (Line("with errors", times, found), Line("ideal", times, ideal)))


DIGITS = "half a unit of the last digit that is known"


def _two_masses(k: float, sensor: object = None) -> DesignPoint:
    return DesignPoint(two_masses(k, 0.02), np.array([[0.0], [0], [0], [1]]), [0, 1, 0, 0], 0.1, k, sensor)


@case(
    source="Two masses, the spring and its control chosen at once: scalar search, and by slopes of Lyapunov equations",
    kind="reference",
)
def control_codesign_two_masses() -> Items:
    """J = (1 - s) k + s J_c with the best state feedback, and with LQG."""
    expected = {0.3: (0.7115033, 0.9894622), 0.5: (1.0875563, 1.0744304), 0.8: (2.0632809, 0.8643492)}
    for share, (k, cost) in expected.items():
        found = codesign(_two_masses, {"k": (0.05, 10.0)}, share=share)
        yield Check(
            f"k, share {share}", found.values["k"], k, 1e-6, "flat at the optimum: root of its digits"
        )
        yield Check(f"cost, share {share}", found.cost, cost, 1e-7, DIGITS)
    noisy = codesign(lambda k: _two_masses(k, 0.01), {"k": (0.05, 10.0)}, feedback="lqg")
    yield Check("k with LQG", noisy.values["k"], 1.2546443, 1e-6, "flat at the optimum: root of its digits")
    yield Check("cost with LQG", noisy.cost, 1.3527046, 1e-7, DIGITS)


@case(
    source="""Balakrishnan, Minimum attainable RMS attitude error using co-located rate sensors, Third Annual Conference on
    Aerospace Computational Control, 1989, equation 3.5""",
    kind="published",
)
def control_rate_feedback_of_a_beam() -> Items:
    """A cantilever with a tip mass, noise of actuator and rate sensor at the tip: sqrt(d_s d_o) L^3/(3 EI), any elements."""
    L, EI, mass, elements = 2.0, 3.0, 0.7, 6
    d_s, d_o = 0.02, 0.005
    fe = straight(elements, length=L, section=CrossSection(1.0, 1e6, EI, EI, 1.0), tip=mass)
    free = fe.unknowns(range(1, elements + 1), "y rz")
    M, K = (x[free][:, free].toarray() for x in (fe.M, fe.K))
    tip = (free == fe.unknowns(elements, "y")).astype(float)[:, None]
    plant = control.SecondOrder(M, 0 * K, K, tip, 0 * tip.T, tip.T).to_statespace()
    expected = np.sqrt(d_s * d_o) * L**3 / (3 * EI)
    gain = np.sqrt(d_s / d_o)
    closed = control.StateSpace(
        plant.A - gain * plant.B @ plant.C,
        np.hstack([np.sqrt(d_s) * plant.B, -gain * np.sqrt(d_o) * plant.B]),
        plant.C,
    )
    P = control.gramians(closed)[0]
    at = int(np.argmax(tip))
    yield Check(
        "mean square, rate feedback", float(P[at, at]), expected, 1e-8, "light damping of the last modes"
    )
    filtered = control.lqe(plant, d_s, d_o).P
    yield Check(
        "error of the best filter", float(filtered[at, at]), expected, 1e-8, "that of a Riccati equation"
    )


@case(source="Kharitonov 1978; Routh's condition a b > c of a cubic", kind="identity")
def control_interval_polynomial() -> Items:
    """The cubic s^3 + a s^2 + b s + c, all within +-r: stable for (3 - r)(2 - r) > 1 + r, that is, r < 1."""
    exact = 3 - np.sqrt(4.0)  # r^2 - 6 r + 5 > 0
    low, high = 0.0, 1.9
    while high - low > 1e-10:
        r = (low + high) / 2
        stable = bool(control.interval_polynomial([1, 3 - r, 2 - r, 1 - r], [1, 3 + r, 2 + r, 1 + r]))
        low, high = (r, high) if stable else (low, r)
    yield Check("largest radius", low, exact, 1e-9, "bisection, and roots next to the axis")


@case(
    source="Two masses under LQG: the range of springs in which the loop is stable, by eigenvalues and by edges",
    kind="reference",
)
def control_edges_of_two_masses() -> Items:
    """The characteristic polynomial is affine in k: one edge decides."""
    noise = [[0], [0], [0], [1]]
    K = control.lqg(two_masses(1.0), [0, 1, 0, 0], 0.1, 1.0, 0.01, through=noise).controller

    def polynomial(k: float) -> np.ndarray:
        G = two_masses(k)
        return np.poly(np.block([[G.A, G.B @ K.C], [K.B @ G.C, K.A]]))

    base, slope = polynomial(0.0), polynomial(1.0) - polynomial(0.0)
    yield Check("lowest spring", _edge(base, slope, 0.5), 0.9421823041, 1e-8, DIGITS)
    yield Check("highest spring", _edge(base, slope, 2.0), 1.3452287536, 1e-8, DIGITS)


def _edge(base: np.ndarray, slope: np.ndarray, outside: float) -> float:
    inside, other = 1.0, outside
    while abs(other - inside) > 1e-11:
        middle = (inside + other) / 2
        stable = bool(control.affine_polynomial(base, {"k": slope}, {"k": sorted((1.0, middle))}))
        inside, other = (middle, other) if stable else (inside, middle)
    return inside


@case(source="Zero exclusion of a multilinear family, against Routh's condition", kind="identity")
def control_multilinear_polynomial() -> Items:
    """Cubics s^3 + (a + b) s^2 + (a b + 1) s + c a b: stable for (a + b)(a b + 1) > c a b; in [1, 2]^2 up to c = 4."""
    for c, stable in ((3.95, True), (4.05, False)):
        found = control.multilinear_polynomial(
            lambda a, b, c=c: [1, a + b, a * b + 1, c * a * b], {"a": (1, 2), "b": (1, 2)}
        )
        yield Check(f"stable with c = {c}", float(found.stable is True), float(stable), 0.0, "yes or no")


@case(source="Circle criterion: 1/(s^2 + s + 1) around a nonlinearity", kind="identity")
def control_circle_criterion() -> Items:
    """Re G >= -1/3, so that every nonlinearity between 0 and 3 is harmless; both bounds of mu's peak say so."""
    G = control.tf([1], [1, 1, 1])
    for slope in (2.0, 2.9, 3.1):
        loop = as_uncertain_system(G) * control.sector("f", 0.0, slope)
        found = loop.feedback(1.0).mu(tolerance=1e-3)
        # scaled to one, the sector is a complex number of size one around its middle slope: a bilinear map of -1/Re G
        m = slope / 2
        w = np.linspace(0, 5, 4001)
        g = G.frequency_response(w).response[:, 0, 0]
        yield Check(
            f"mu, slopes to {slope}", found.peak, float(np.abs(m * g / (1 + m * g)).max()), 1e-5, "a grid"
        )


@case(source="Riccati equation and square-root filter of a sampled plant", kind="identity")
def control_square_root_filter() -> Items:
    """From any start, the root comes to that of the stationary covariance; with sensors of 1e-8 as with those of one."""
    plant = control.c2d(control.tf([1], [1, 3, 6, 5, 3]), 0.2)
    for noise in (1.0, 1e-16):
        steady = control.lqe(plant, 1.0, noise)
        found = control.SquareRootKalman(plant, 1.0, noise)
        now = found.start(np.zeros(4), 1.0)
        for _ in range(300):
            now = found.predict(found.correct(now, [0.0])[0])
        size = np.abs(steady.P).max()
        yield Check(
            f"covariance, noise {noise:g}", now.P / size, steady.P / size, 1e-7, "that of a Riccati equation"
        )


@case(
    source="""Tekawy, Safonov, Chiang, Multivariable stability margin, Third Annual Conference on Aerospace Computational
    Control, 1989: one-sided and two-sided""",
    kind="identity",
)
def control_safonov_margins() -> Items:
    """The loop 2/(s + 1)^3: complex changes of its gain up to one over the peak of T; one-sided ones may be larger."""
    L = control.tf([2], [1, 3, 3, 1])
    T = control.feedback(L, 1.0)
    block = [control.DeltaBlock("complex")]
    two = control.stability_margin(-T, block)
    yield Check("two-sided", two.guaranteed, 1 / T.hinf_norm().gain, 2e-3, "the tolerance of the proof")
    # one-sided, complex: 1/K_m is the largest real part of -T (equation 3 of the paper, one block)
    w = np.linspace(0, 10, 20001)
    largest = float((-T.frequency_response(w).response[:, 0, 0].real).max())
    at = int(np.argmax(-T.frequency_response(w).response[:, 0, 0].real))
    size = float(abs(T.frequency_response(w[at]).response[0, 0, 0])) / largest
    t = 2e-3
    one = control.stability_margin(-T, block, signs=1, tolerance=t)
    # |N| < 1/(1 + t) is k Re(-T) < 1 - t k^2 |T|^2/2, and bisection stops at 2 t
    bound = (t * size**2 / 2 + 2 * t) / largest
    yield Check(
        "one-sided", one.guaranteed, 1 / largest, bound, "the tolerances of proof and bisection, derived"
    )

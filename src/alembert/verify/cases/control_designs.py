"""Designs from responses alone, of low order, and along sliding surfaces."""

import math

import casadi as ca
import numpy as np

from alembert import control
from alembert.joints import Free
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import simulate
from alembert.spacecraft import sliding_design
from alembert.verify.case import Check, Items, Line, Plot, case

ACC1989 = "Proc. 3rd Annual Conf. Aerospace Computational Control (JPL 89-45), 1989"


@case(
    source="State-space LQG of the same plant: two Riccati equations",
    kind="independent program",
    tags=("control",),
)
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
    source=f"Bennett, Frequency-response modelling and control, {ACC1989}: beam on two pins; its modes in closed form",
    kind="published",
    tags=("control", "flexible", "acc1989"),
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
    tags=("control",),
)
def control_optimal_projection() -> Items:
    """Controllers of low order for two masses: the projection equations hold, another optimiser finds the same cost."""
    A = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [-1, 1, -0.02, 0.02], [1, -1, 0.02, -0.02]])
    plant = control.StateSpace(A, [[0], [0], [1], [0]], [[0, 1, 0, 0]])
    noise = np.array([[0.0], [0], [0], [1]])
    Q = np.diag([0, 1.0, 0, 0])
    P = control.StateSpace(
        A,
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
    tags=("control", "spacecraft", "simulation"),
    parameters={"angle": 2.0},
)
def sliding_slew(angle: float) -> Items:
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
        duration=80.0, step=2e-3, interval=0.5, integrator="rk4", controller=law, progress=False,
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
    yield Check("rates within the bound", rate <= design.rate, True, 0, "proven")
    yield Plot("time [s]", "angle [rad]", (Line("with errors", times, found), Line("ideal", times, ideal)))

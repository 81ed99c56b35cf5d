"""Design parameters, integrals, forces of elements and jumps between phases, against closed forms."""

from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg as sl
from scipy.integrate import simpson, solve_ivp
from scipy.optimize import brentq, least_squares

from alembert.joints import Prismatic
from alembert.model import Inertia, Model, ModelBuilder
from alembert.optimal import Cases, Phases, Problem, System, effort, running, terminal
from alembert.simulate import SpringDamper
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.papers import acc1989

ENDS: dict[str, Any] = {"start": {"q": [0], "v": 0}, "end": {"q": [1], "v": 0}}


def _slider(mass: float) -> Model:
    builder = ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", Inertia.point(mass), joint=Prismatic((1.0, 0, 0)), joint_name="slide")
    builder.frame("wall", "world", (0, 0, 0))
    return builder.build()


def _cart(price: float, way: float) -> Problem:
    system = System(["x", "v"], ["u"], lambda s: [s.v, s.u / s.m], parameters={"m": 1.0})
    return Problem(
        system,
        1.0,
        start={"x": 0, "v": 0},
        end={"x": way, "v": 0},
        design={"m": (0.1, 5.0)},
        cost=effort() + terminal(lambda s: price / s.m),
    )


@case(
    source="Closed form: 1/2 int u^2 = 6 m^2, so that 6 m^2 + 3/m is least at m^3 = 1/4",
    kind="closed form",
    tags=("optimal",),
    parameters={"price": 3.0},
)
def best_mass(price: float) -> Items:
    """The mass of a cart that is pushed from rest to rest, where light carts are dear; found with the motion."""
    solution = _cart(price, 1.0).solve(8)
    mass = (price / 12) ** (1 / 3)
    yield Check(
        "mass",
        solution.design["m"],
        mass,
        1e-6,
        "the root of the tolerance 1e-8 would be 1e-4; Newton's last step",
    )
    yield Check(
        "cost", solution.cost, 6 * mass**2 + price / mass, 1e-7, "Hermite-Simpson is exact for parabolas"
    )
    yield Plot("t [s]", "x [m]", (Line("", solution.time, solution.state("x")),))


@case(
    source="Closed form: 6 m^2 (1 + 4) + (1 + 3)/m for ways of 1 and 2, least at m^3 = 4/60",
    kind="closed form",
    tags=("optimal",),
)
def one_mass_for_two_ways() -> Items:
    """One design for two motions, whose costs add."""
    solution = Cases({"short": _cart(1.0, 1.0), "long": _cart(3.0, 2.0)}).solve(6)
    mass = (4 / 60) ** (1 / 3)
    yield Check("mass", solution.design["m"], mass, 1e-6, "as for one motion")
    yield Check(
        "cost", solution.cost, 30 * mass**2 + 4 / mass, 1e-7, "Hermite-Simpson is exact for parabolas"
    )


@case(
    source="Closed form: x'' = -k x takes (1, 0) to (-1, 0) in 1 s by itself for k = pi^2",
    kind="closed form",
    tags=("optimal",),
)
def tuned_spring() -> Items:
    """The stiffness with which a swing takes no effort."""
    system = System(["x", "v"], ["u"], lambda s: [s.v, -s.k * s.x + s.u], parameters={"k": 6.0})
    ends: dict[str, Any] = {"start": {"x": 1, "v": 0}, "end": {"x": -1, "v": 0}}
    solution = Problem(system, 1.0, **ends, design={"k": (5.0, 15.0)}, cost=effort()).solve(30)
    yield Check("stiffness", solution.design["k"], np.pi**2, 1e-5, "order 4: (pi/30)^4/24 of it and less")
    yield Check("effort", solution.cost, 0.0, 1e-10, "the square of what is missing")


@case(
    source="Closed form: the widest bow x(t) over [0, 1] with int x'^2 = 1 is a parabola, of area 1/sqrt(12)",
    kind="closed form",
    tags=("optimal",),
)
def widest_bow() -> Items:
    """An integral that is given, as in Dido's problem."""
    bow = System(["x"], ["u"], lambda s: [s.u])
    energy = {"energy": (lambda s: s.u**2, 1.0, 1.0)}
    problem = Problem(bow, 1.0, start={"x": 0}, end={"x": 0}, integrals=energy, cost=running(lambda s: -s.x))
    solution = problem.solve(8)
    yield Check(
        "area",
        -solution.cost,
        1 / np.sqrt(12),
        1e-7,
        "Simpson's rule is exact for parabolas and their squares",
    )
    yield Check("largest x", solution.state("x").max(), np.sqrt(3) / 4, 1e-6, "the same")
    yield Plot("t", "x", (Line("", solution.time, solution.state("x")),))


@case(
    source="Closed form: the Gramian W of (A, B) over [0, 1], least effort 1/2 d' W^-1 d",
    kind="closed form",
    tags=("optimal",),
    parameters={"mass": 2.0, "stiffness": 8.0, "steps": 30},
)
def reach_against_a_spring(mass: float, stiffness: float, steps: int) -> Items:
    """A force element of `al.simulate` acts on the model: a mass is brought 1 m away from rest to rest."""
    spring = SpringDamper("wall", "mass", stiffness=stiffness)
    problem = Problem(_slider(mass), 1.0, **ENDS, forces=[spring])
    solution = problem.solve(steps, transcription="hermite-simpson")
    A, B = np.array([[0, 1], [-stiffness / mass, 0]]), np.array([[0], [1 / mass]])
    block = np.block([[-A, B @ B.T], [np.zeros((2, 2)), A.T]])
    grown = sl.expm(block)
    W = grown[2:, 2:].T @ grown[:2, 2:]
    d = np.array([1.0, 0.0])
    exact = float(d @ np.linalg.solve(W, d)) / 2
    yield Check("effort", solution.cost, exact, 1e-5 * exact, "order 4: (2/30)^4 and less")
    yield Plot("t [s]", "force [N]", (Line("", solution.time[:-1], solution.controls[:, 0]),))


@case(
    source="Closed form: 1/2 int u^2 of cubics, 2 v^2 - 6 v + 6 on the way there and v^2/2 - 3 v + 6 back, least at v = 1.8",
    kind="closed form",
    tags=("optimal",),
    parameters={"restitution": 0.5},
)
def thrown_at_a_wall(restitution: float) -> Items:
    """A mass reaches a wall, comes back with half of its speed and has to be home at rest: two phases of one model."""
    model = _slider(1.0)
    bounce = Phases(
        {
            "there": Problem(model, 1.0, start={"q": [0], "v": 0}, end={"q": [1]}),
            "back": Problem(model, 1.0, end={"q": [0], "v": 0}),
        },
        links={"back": {"v slide": lambda s: -restitution * s.v[0]}},
    )
    solution = bounce.solve(10, transcription="hermite-simpson")
    r = restitution
    v = (6 + 6 * r) / (4 + 4 * r**2)
    exact = 2 * v**2 - 6 * v + 6 + 2 * (r * v) ** 2 - 6 * r * v + 6
    reason = "Hermite-Simpson is exact for cubics"
    yield Check("effort", solution.cost, exact, 1e-6, reason)
    yield Check("speed at the wall", float(solution["there"].v[-1, 0]), v, 1e-6, reason)


@case(
    source="Closed form: x' = u with int x^2 + u^2 over T costs tanh(T), with the feedback -tanh(T - t) x",
    kind="closed form",
    tags=("optimal",),
    parameters={"time": 2.0},
)
def regulator(time: float) -> Items:
    """The linear-quadratic regulator of one state, and its gain at the start from the sweep."""
    system = System(["x"], ["u"], lambda s: [s.u])
    solution = Problem(system, time, start={"x": 1}, cost=running(lambda s: s.x**2 + s.u**2)).solve(
        40, transcription="rk4"
    )
    h = time / 40
    yield Check("cost", solution.cost, np.tanh(time), h**2, "controls held over steps of h")
    gain = np.tanh(time - h / 2)
    yield Check(
        "gain of the first step",
        float(solution.gains[0, 0, 0]),
        gain,
        h,
        "the mean of a step, x at its start",
    )
    yield Plot("t", "x", (Line("", solution.time, solution.state("x")),))


SHORT_PERIOD = (-0.8, -4.0, -1.0, -6.0)
"""Z_alpha, M_alpha, M_q, M_delta [1/s, 1/s^2]"""
FEEDBACK, DEFLECTION_RATE, LAG = np.radians(4.0), np.radians(26.0), 0.05
"""limit of the pitch rate that is fed back [rad/s], of the elevator's rate [rad/s], and its lag [s]"""


def _damped(
    alpha: Any, q: Any, delta: Any, fit: Any, rate: Any, gain: Any, w: Any, zeta: float, tanh: Any
) -> list[Any]:
    """Short period with a pitch damper of limited feedback and elevator, beside an oscillator of the damping asked for."""
    Z, M_alpha, M_q, M_delta = SHORT_PERIOD
    asked = gain * FEEDBACK * tanh(q / FEEDBACK)
    moved = DEFLECTION_RATE * tanh((asked - delta) / (LAG * DEFLECTION_RATE))
    pitch = M_alpha * alpha + M_q * q + M_delta * delta
    return [Z * alpha + q, pitch, moved, rate, -2 * zeta * w * rate - w**2 * fit]


@case(
    source=acc1989(
        "Lan, Ge",
        "pitch damper for a damping of 0.65, found on simulated responses, within limits of the elevator",
    ),
    kind="closed form",
    tags=("optimal", "acc1989"),
    parameters={"zeta": 0.65, "disturbance_deg": 8.0},
    missing="""the aerodynamic tables of the F-5A (its gain is 4.36); used are the method, the limits of rates, and a short
    period of our own. Without limits the gain follows from the characteristic equation, with them from simulations within
    least squares of SciPy""",
)
def pitch_damper(zeta: float, disturbance_deg: float) -> Items:
    """A gain and the frequency of the response that fits best, found together as design parameters of a simulation."""
    Z, M_alpha, M_q, M_delta = SHORT_PERIOD
    bounds: dict[str, Any] = {"gain": (0.0, 5.0), "w": (0.5, 6.0)}

    def matrix(gain: float) -> Any:
        return np.array([[Z, 1.0], [M_alpha, M_q + M_delta * gain]])

    def damping(gain: float) -> float:
        A = matrix(gain)
        return float(-np.trace(A) / 2 / np.sqrt(np.linalg.det(A)))

    exact = float(brentq(lambda gain: damping(gain) - zeta, 0.0, 1.0))
    linear = System(
        ["alpha", "q", "fit", "rate"],
        [],
        lambda s: [
            Z * s.alpha + s.q,
            M_alpha * s.alpha + (M_q + M_delta * s.gain) * s.q,
            s.rate,
            -2 * zeta * s.w * s.rate - s.w**2 * s.fit,
        ],
        parameters={"gain": 0.1, "w": 2.0},
    )
    start = {"alpha": 0.1, "q": 0, "fit": 0.1, "rate": Z * 0.1}
    off = running(lambda s: (s.alpha - s.fit) ** 2)
    found = Problem(linear, 5.0, start=start, design=bounds, cost=off).solve(30, transcription="radau")
    reason = "order 5 with 30 steps; the cost is 0 at the solution, so that a tolerance of 1e-8 in slopes is 1e-7 in them"
    yield Check("gain without limits", found.design["gain"], exact, 1e-6, reason)
    yield Check("frequency [rad/s]", found.design["w"], np.sqrt(np.linalg.det(matrix(exact))), 1e-6, reason)

    size = float(np.radians(disturbance_deg))
    aircraft = System(
        ["alpha", "q", "delta", "fit", "rate"],
        [],
        lambda s: _damped(s.alpha, s.q, s.delta, s.fit, s.rate, s.gain, s.w, zeta, ca.tanh),
        parameters={"gain": 0.1, "w": 2.0},
    )
    begin = {"alpha": size, "q": 0, "delta": 0, "fit": size, "rate": Z * size}
    relative = running(lambda s: ((s.alpha - s.fit) / size) ** 2)
    limited = Problem(aircraft, 5.0, start=begin, design=bounds, cost=relative).solve(
        30, transcription="radau"
    )
    direct, cost = _by_simulation(np.array(list(begin.values()), dtype=float), zeta)
    reason = "both to 1e-7 of a flat minimum: its square root, and Simpson's rule on 201 points"
    yield Check("gain with limits", limited.design["gain"], direct[0], 2e-4, reason)
    yield Check("frequency [rad/s]", limited.design["w"], direct[1], 1e-3, reason)
    yield Check(
        "what is left of the fit, relative", limited.cost / cost, 1.0, 5e-3, "Simpson's rule on 201 points"
    )
    lines = [
        Line(name, limited.time, np.degrees(limited.state(key)))
        for name, key in (("alpha", "alpha"), ("fit", "fit"))
    ]
    yield Plot("t [s]", "alpha [deg]", tuple(lines))


def _by_simulation(begin: Any, zeta: float) -> tuple[Any, float]:
    """The same by simulations within an optimiser, as in the paper: gain and frequency, and the cost."""
    t = np.linspace(0, 5, 201)
    weights = np.sqrt(simpson(np.eye(201), x=t))

    def off(p: Any) -> Any:
        def rates(_: float, x: Any) -> Any:
            return _damped(x[0], x[1], x[2], x[3], x[4], p[0], p[1], zeta, np.tanh)

        y = solve_ivp(rates, (0, 5), begin, t_eval=t, rtol=1e-8, atol=1e-11).y
        return weights * (y[0] - y[3]) / begin[0]

    found = least_squares(off, [0.1, 2.0], xtol=1e-10, ftol=1e-12, gtol=1e-12)
    return found.x, float(2 * found.cost)

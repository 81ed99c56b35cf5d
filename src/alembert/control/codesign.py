"""Structure and control designed at once.

A structure with parameters p costs J_s(p) (its mass, say); a disturbance w of unit intensity and a controller make

    x' = A x + B u + G w,    y = C x + v,    J_c = E (x^T Q x + u^T R u),        J = (1 - s) J_s + s J_c             (1)

all of whose matrices may depend on p. With the loop closed, x' = F x + H w for the states of both, cost weight S = S(p):

    F^T P + P F + S = 0,    F L + L F^T + H H^T = 0,    J_c = tr(P H H^T)
    dJ_c = 2 tr(P dF L) + tr(dS L) + tr(P d(H H^T))                                                                  (2)

P and L are each other's adjoint, so that one pair of Lyapunov equations gives the slopes in all parameters and all gains
(McLaren and Slater 1989, "A disturbance model for control/structure optimization with output feedback control"; Salama,
Milman, Bruno, Scheid and Gibson 1989, "Combined control-structure optimization"). Where the controller is the best one for
each p (state feedback, LQG), (2) with the controller held is already the whole slope. With output feedback u = -K y the
gains are variables like p.

`pareto` follows the minima from s = 0 on, each started from the one before (the homotopy of Salama and others).

`lightest` is the lightest structure whose response and control effort stay within limits (McLaren and Slater):

    min J_s(p)   where   E u^T R u <= b,   E x^T Q x <= a,     x' = A x + B u + G w                                    (3)

The loop closed, x' = F x + G w, F X + X F^T + G G^T = 0, so that a mean square is tr(S X) with S = Q or C^T K^T R K C, and,
with F^T Y + Y F + S = 0,

    d tr(S X) = tr(dS X) + 2 tr(Y dF X) + tr(Y d(G G^T))                                                               (4)

Output feedback u = -K y: the gains are variables like p. State feedback: K = (l R/b)^-1 B^T L of the Riccati equation with
Q/a, l a variable; how L moves with p is one more Lyapunov equation each,

    F^T dL + dL F + (dA - dB K)^T L + L (dA - dB K) + dQ/a + K^T (l dR/b) K = 0                                        (5)

Both are solved by sequential quadratic programming with these slopes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from alembert.arguments import check_known, choice, is_number, real
from alembert.control import arguments
from alembert.control.gramian import Lyapunov
from alembert.control.interconnection import static
from alembert.control.quadratic import lqg, lqr
from alembert.control.riccati import care
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
FEEDBACK = ("state", "output", "lqg")
SHARES = tuple(k / 20 for k in range(1, 20))
_WORDS = (
    "A",
    "B",
    "C",
    "disturbance",
    "Q",
    "R",
    "sensor",
    "structure",
)  # of `Matrices`, as a point calls them
_LIMIT = 9  # of SLSQP: the limit of iterations
_STEP = 1e-4  # of a range; differences of fourth order: errors of 1e-12 by rounding, and by curvature no more


@dataclass(frozen=True, eq=False)
class DesignSlope:
    """Derivatives of a `DesignPoint` in one parameter: of A, B, C, G, Q, R and J_s; what is left out does not change."""

    A: Any = 0.0
    B: Any = 0.0
    C: Any = 0.0
    disturbance: Any = 0.0
    Q: Any = 0.0
    R: Any = 0.0
    structure: float = 0.0


@dataclass(frozen=True, eq=False)
class DesignPoint:
    """(1) at some values of the parameters: the plant from u to y, G, Q, R, J_s, and the intensity of the sensors' noise."""

    plant: StateSpace
    disturbance: Array
    Q: Any
    R: Any
    structure: float
    sensor: Any = None
    """needed for "lqg". Of output feedback, the noise comes in with the gains; J_c counts the effort K C x, not K v"""
    slopes: Mapping[str, DesignSlope] | None = None
    """exact derivatives in the parameters, by name; without them they come from differences of points"""


@dataclass(frozen=True, eq=False)
class Design:
    """The least J of (1) that was found: values of the parameters, both costs, and the controller u = K y."""

    values: Mapping[str, float]
    share: float
    structure: float
    control: float
    controller: StateSpace
    slope: float
    """the largest slope of J that is left, in ranges of the parameters, where no bound holds it"""

    @property
    def cost(self) -> float:
        return (1 - self.share) * self.structure + self.share * self.control

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} = {x:.6g}" for name, x in self.values.items())
        return f"<Design: {listed}; structure {self.structure:.6g}, control {self.control:.6g}>"


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Designs for shares from the structure's to the control's: no other one is better in both costs nearby."""

    designs: tuple[Design, ...]

    @property
    def shares(self) -> Array:
        return np.array([d.share for d in self.designs])

    @property
    def structure(self) -> Array:
        return np.array([d.structure for d in self.designs])

    @property
    def control(self) -> Array:
        return np.array([d.control for d in self.designs])

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """Control over structure, and the parameters over the share; needs matplotlib. `path` saves it."""
        from alembert.control import plots

        return plots.pareto(self, path)


def codesign(
    make: Callable[..., DesignPoint],
    ranges: Mapping[str, Any],
    *,
    share: float = 0.5,
    feedback: str = "state",
    start: Mapping[str, float] | None = None,
    gain: Any = None,
) -> Design:
    """The parameters within `ranges`, and the controller, of least J.

    `make(**values)` gives the `DesignPoint`; `al.linear.design_point` makes one of a mechanism. `share` is s of (1).
    `feedback` is "state" (u = -K x), "lqg" (of the noisy outputs) or "output" (u = -K y with constant gains, from a
    stabilising `gain`). `start` are values to begin with, by default the middle of the ranges.
    """
    problem = _Codesign(make, ranges, share, feedback, gain)
    return problem.solve(problem.start(start))


def pareto(
    make: Callable[..., DesignPoint],
    ranges: Mapping[str, Any],
    *,
    shares: Sequence[float] = SHARES,
    feedback: str = "state",
    start: Mapping[str, float] | None = None,
    gain: Any = None,
) -> ParetoFront:
    """Designs for several shares, each begun at the one before."""
    given = [float(s) for s in shares]
    if not given or np.any(np.diff(given) <= 0):
        raise ArgumentError(f"pareto: shares are {shares!r}, expected ascending numbers")
    found: list[Design] = []
    for s in given:
        if found:
            start, gain = found[-1].values, -found[-1].controller.D
        problem = _Codesign(make, ranges, s, feedback, gain, "pareto")
        found.append(problem.solve(problem.start(start)))
    return ParetoFront(tuple(found))


class Matrices(NamedTuple):
    """Of (1); V is the noise of the sensors, zero without one."""

    A: Array
    B: Array
    C: Array
    G: Array
    Q: Array
    R: Array
    V: Array
    structure: float


class _Codesign:
    """The function of shares of ranges, and of gains of output feedback behind them."""

    def __init__(
        self, make: Any, ranges: Any, share: float, feedback: str, gain: Any, function: str = "codesign"
    ) -> None:
        self.function = function
        choice(function, "feedback", feedback, FEEDBACK)
        real(function, "share", share, "a number from 0 to 1", least=0.0, most=1.0)
        self.make, self.share, self.feedback = make, float(share), feedback
        self.names = list(ranges)
        limits = []
        for name, given in ranges.items():
            pair = np.asarray(given, dtype=float)
            if pair.shape != (2,) or not pair[0] < pair[1]:
                raise ArgumentError(
                    f"{self.function}: the range of {name!r} is {given!r}, expected (low, high)"
                )
            limits.append(pair)
        if not limits:
            raise ArgumentError(f"{self.function}: ranges is empty, expected parameters with (low, high)")
        self.low, self.width = np.array(limits)[:, 0], np.diff(np.array(limits))[:, 0]
        self.gain, self.unit = gain, np.ones((0, 0))

    def start(self, given: Mapping[str, float] | None) -> Array:
        x = np.full(len(self.names), 0.5)
        for name, value in (given or {}).items():
            check_known(f"{self.function}: start: there is no parameter", name, self.names)
            k = self.names.index(name)
            share = (value - self.low[k]) / self.width[k]
            if not -1e-9 <= share <= 1 + 1e-9:
                low, high = self.low[k], self.low[k] + self.width[k]
                raise ArgumentError(
                    f"{self.function}: start: {name!r} is {value!r}, expected {low:g} to {high:g}"
                )
            x[k] = np.clip(share, 0.0, 1.0)
        if self.feedback != "output":
            return x
        plant = self._point(x).plant
        p, m = plant.shape
        K = (
            np.zeros((m, p))
            if self.gain is None
            else arguments.matrix(self.function, "gain", self.gain, m, p)
        )
        if not np.all(np.linalg.eigvals(plant.A - plant.B @ K @ plant.C).real < 0):
            raise ArgumentError(
                f"{self.function}: with this gain the loop is not stable at the start; give gain= one that makes it so "
                "(`tune` or `place_by_outputs` find some)"
            )
        # in sizes of the effort's weight and of what is measured at the start, so that their units do not matter
        own = self.matrices(self._point(x))
        F, HH, *_ = self._closed(own, static(-K))
        variance = np.diag(own.C @ Lyapunov(F).solve(HH) @ own.C.T)
        self.unit = 1 / np.sqrt(np.outer(np.diag(own.R), np.where(variance > 0, variance, 1.0)))
        return np.concatenate([x, (K / self.unit).ravel()])

    def gains(self, x: Array) -> Array:
        """K of output feedback u = -K y."""
        return np.asarray(x[len(self.names) :].reshape(self.unit.shape) * self.unit)

    def _values(self, x: Array) -> dict[str, float]:
        return dict(zip(self.names, (self.low + self.width * x[: len(self.names)]).tolist(), strict=True))

    def _point(self, x: Array) -> DesignPoint:
        values = self._values(x)
        point = self.make(**values)
        if not isinstance(point, DesignPoint):
            raise ArgumentError(f"{self.function}: make gave {type(point).__name__}, expected a DesignPoint")
        if point.plant.is_discrete or np.any(point.plant.D):
            raise ArgumentError(
                f"{self.function}: the plant is sampled or has a direct part, expected x' = A x + B u, y = C x"
            )
        if not is_number(point.structure):
            listed = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
            raise ArgumentError(
                f"{self.function}: the cost of the structure is {point.structure!r} at {listed}, expected a finite number"
            )
        return point

    def _controller(self, point: DesignPoint, x: Array) -> StateSpace:
        """u = K y (of the state for "state")."""
        G = point.plant
        if self.feedback == "output":
            return static(-self.gains(x), inputs=G.output_names, outputs=G.input_names)
        if self.feedback == "state":
            return static(-lqr(G, point.Q, point.R).K, inputs=G.state_names, outputs=G.input_names)
        if point.sensor is None:
            raise ArgumentError(
                f"{self.function}: feedback 'lqg' needs the sensors' noise, DesignPoint(sensor=...)"
            )
        W = np.eye(np.shape(point.disturbance)[1])
        return lqg(G, point.Q, point.R, W, point.sensor, through=point.disturbance).controller

    def matrices(self, point: DesignPoint) -> Matrices:
        """Those of (1), checked."""
        G = point.plant
        noise = 0.0 if point.sensor is None else point.sensor
        return Matrices(
            G.A,
            G.B,
            np.eye(G.order) if self.feedback == "state" else G.C,
            arguments.matrix(self.function, "disturbance", point.disturbance, rows=G.order),
            arguments.weight(self.function, "Q", point.Q, G.state_names),
            arguments.weight(self.function, "R", point.R, G.input_names, definite=True),
            arguments.weight(self.function, "sensor", noise, G.output_names),
            float(point.structure),
        )

    def _closed(self, m: Matrices, K: StateSpace) -> tuple[Array, Array, Array, float]:
        """F, H H^T and S of (2), and J_s."""
        n = len(m.A)
        F = np.block([[m.A + m.B @ K.D @ m.C, m.B @ K.C], [K.B @ m.C, K.A]])
        U = np.hstack([K.D @ m.C, K.C])
        S = U.T @ m.R @ U
        S[:n, :n] += m.Q
        HH = np.zeros_like(F)
        HH[:n, :n] = m.G @ m.G.T
        if self.feedback != "state":
            into = np.vstack([m.B @ K.D, K.B])
            HH += into @ m.V @ into.T
        return F, HH, S, m.structure

    def cost(self, x: Array) -> tuple[float, Array, DesignPoint, float, StateSpace]:
        """J and its slopes by (2)."""
        point = self._point(x)
        K = self._controller(point, x)
        m = self.matrices(point)
        F, HH, S, _ = self._closed(m, K)
        if np.linalg.eigvals(F).real.max() >= 0:
            return np.inf, np.zeros_like(x), point, np.inf, K
        equation = Lyapunov(F)
        P, L = equation.adjoint(S), equation.solve(HH)
        control = float(np.trace(P @ HH))
        slopes = np.zeros_like(x)
        for k in range(len(self.names)):
            dF, dHH, dS, dJ = self.slopes(x, k, point, lambda m: self._closed(m, K))
            dc = 2 * np.sum((P @ dF) * L) + np.sum(dS * L) + np.sum(P * dHH)
            slopes[k] = (1 - self.share) * dJ + self.share * dc
        if self.feedback == "output":
            gain = -K.D
            dK = 2 * (m.R @ gain @ m.C - m.B.T @ P) @ L @ m.C.T + 2 * m.B.T @ P @ m.B @ gain @ m.V
            slopes[len(self.names) :] = self.share * (dK * self.unit).ravel()
        J = (1 - self.share) * point.structure + self.share * control
        return J, slopes, point, control, K

    def slopes(
        self, x: Array, k: int, point: DesignPoint, parts: Callable[[Matrices], Sequence[Any]]
    ) -> list[Any]:
        """Of parts of the matrices of (1) in the parameter k, per range; parts are polynomials of degree four at most.

        With exact slopes of the matrices, differences of fourth order along these are those of the polynomials: exact
        with a step of any size, and without loss of digits with one of the size of what moves.
        """
        if point.slopes is not None:
            return _difference(parts, *self._along(point, k))
        # within the range, on one side where it ends
        h = _STEP if x[k] + 2 * _STEP <= 1 or x[k] - 2 * _STEP >= 0 else 0.1
        side = 0 if 2 * h <= x[k] <= 1 - 2 * h else 1 if x[k] < 0.5 else -1

        def at(s: float) -> Matrices:
            moved = x.copy()
            moved[k] += s
            return self.matrices(self._point(moved))

        return _difference(parts, h, at, side)

    def _along(self, point: DesignPoint, k: int) -> tuple[float, Callable[[float], Matrices]]:
        """A step, in ranges, of the size of what moves, and the matrices along their slopes in the parameter k."""
        assert point.slopes is not None
        name = self.names[k]
        check_known(f"{self.function}: slopes: there is no parameter", name, point.slopes)
        d, now = point.slopes[name], [np.asarray(x) for x in self.matrices(point)]
        given = (
            d.A,
            d.B,
            0.0 if self.feedback == "state" else d.C,
            d.disturbance,
            d.Q,
            d.R,
            0.0,
            d.structure,
        )
        moved = [self.width[k] * np.asarray(x, dtype=float) for x in given]
        for i in (4, 5):  # weights: a matrix, its diagonal, or one number
            size = len(now[i])
            moved[i] = moved[i] if moved[i].ndim == 2 else np.diag(np.broadcast_to(moved[i], (size,)))
        for what, x, y in zip(_WORDS, moved, now, strict=True):
            if x.ndim and x.shape != np.shape(y):
                raise ArgumentError(
                    f"{self.function}: the slope of {what} in {name!r} has shape {x.shape}, expected {np.shape(y)}"
                )
        sizes = [np.abs(y).max(initial=0.0) for y in now]
        rates = [np.abs(x).max(initial=0.0) / size for x, size in zip(moved, sizes, strict=True) if size > 0]
        return 1 / max(*rates, 1e-12), lambda s: Matrices(
            *(y + s * x for x, y in zip(moved, now, strict=True))
        )

    def solve(self, x: Array) -> Design:
        n = len(self.names)
        bounds = [(0.0, 1.0)] * n + [(None, None)] * (len(x) - n)
        first = self.cost(x)[0]
        if not np.isfinite(first):
            raise NumericalError(f"{self.function}: the closed loop is not stable at the start")
        scale = max(abs(first), 1e-300)

        def value(x: Array) -> tuple[float, Array]:
            J, slopes, *_ = self.cost(x)
            return (J / scale, slopes / scale) if np.isfinite(J) else (1e10, np.zeros_like(x))

        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500, "maxls": 40}
        for _ in range(3):  # begun anew, the memory of curvature is that of the end
            x = scipy.optimize.minimize(
                value, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            ).x
        _, slopes, point, control, K = self.cost(x)
        free = [(0 < a < 1) if k < n else True for k, a in enumerate(x)]
        slope = float(np.abs(slopes[np.array(free)]).max(initial=0.0)) / scale
        return Design(self._values(x), self.share, float(point.structure), control, K, slope)


def _difference(
    parts: Callable[[Matrices], Sequence[Any]], h: float, at: Callable[[float], Matrices], side: int = 0
) -> list[Any]:
    """Of fourth order in a step h, about zero, or on one side of it."""
    offsets: tuple[int, ...] = (-2, -1, 1, 2)
    weights = np.array([1, -8, 8, -1]) / 12
    if side:
        offsets, weights = (0, 1, 2, 3, 4), np.array([-25, 48, -36, 16, -3]) / 12
    found: list[Any] = []
    for i, weight in zip(offsets, weights, strict=True):
        step = (side or 1) * h
        added = [weight / step * np.asarray(part) for part in parts(at(i * step))]
        found = [a + b for a, b in zip(found, added, strict=True)] if found else added
    return found


@dataclass(frozen=True, eq=False)
class LightestDesign:
    """The least J_s of (3) that was found, where both mean squares end, and the controller u = K y (of the state: K x)."""

    values: Mapping[str, float]
    structure: float
    effort: float
    response: float
    controller: StateSpace
    iterations: int


def lightest(
    make: Callable[..., DesignPoint],
    ranges: Mapping[str, Any],
    *,
    effort: float,
    response: float,
    feedback: str = "state",
    start: Mapping[str, float] | None = None,
    gain: Any = None,
    iterations: int = 200,
) -> LightestDesign:
    """The parameters within `ranges`, and the controller, of least J_s with E u^T R u <= effort, E x^T Q x <= response.

    `make(**values)` gives the `DesignPoint`, whose Q and R weigh both mean squares; `feedback` is "state", or "output" from
    a stabilising `gain`, zero by default. `start` are values to begin with. What is found is a minimum nearby: trusses have
    many.
    """
    for name, value in (("effort", effort), ("response", response)):
        real("lightest", name, value, "a limit above zero", over=0.0)
    choice("lightest", "feedback", feedback, ("state", "output"))
    return _Lightest(_Codesign(make, ranges, 0.5, feedback, gain, "lightest"), effort, response).solve(
        start, iterations
    )


def _parts(m: Matrices) -> tuple[Any, ...]:
    """A, B, C, Q, R, G G^T and J_s."""
    return m.A, m.B, m.C, m.Q, m.R, m.G @ m.G.T, m.structure


class _Lightest:
    """J_s and the two limits, of shares of ranges and, behind them, gains or log l."""

    def __init__(self, problem: _Codesign, effort: float, response: float) -> None:
        self.problem, self.limits = problem, (response, effort)
        self.n = len(problem.names)
        self.output = problem.feedback == "output"
        self._known: tuple[bytes, Any] = (b"", None)

    def __call__(self, x: Array) -> tuple[Array, Array, Array] | None:
        """J_s, both mean squares, their slopes, and K; None where the loop is not stable."""
        key = x.tobytes()
        if self._known[0] != key:
            self._known = key, self._evaluated(x)
        return self._known[1]

    def _evaluated(self, x: Array) -> Any:
        problem, n = self.problem, self.n
        point = problem._point(x)
        A, B, C, Q, R, W, structure = _parts(problem.matrices(point))
        if self.output:
            K = problem.gains(x)
        else:
            weight = np.exp(x[n]) * R / self.limits[1]
            solution = care(A, B, Q / self.limits[0], weight)
            K, L = solution.K, solution.X
        F = A - B @ K @ C
        if not np.all(np.isfinite(F)) or np.linalg.eigvals(F).real.max() >= 0:
            return None
        equation = Lyapunov(F)
        X = equation.solve(W)
        KC = K @ C
        Y = [equation.adjoint(S) for S in (Q, KC.T @ R @ KC)]
        squares = np.array([np.sum(Q * X), np.sum((KC.T @ R @ KC) * X)])
        slopes = np.zeros((3, len(x)))
        # in the gains: F moves by -B dK C, S_u by C^T (dK^T R K + K^T R dK) C
        in_gains = np.array([-2 * B.T @ Y[0] @ X @ C.T, 2 * (R @ KC - B.T @ Y[1]) @ X @ C.T])
        for k in range(n):
            dA, dB, dC, dQ, dR, dW, dJ = problem.slopes(x, k, point, _parts)
            held = dA - dB @ KC - B @ K @ dC
            slopes[0, k] = dJ
            effort = KC.T @ dR @ KC + (K @ dC).T @ R @ KC + KC.T @ R @ (K @ dC)
            for i, dS in ((0, dQ), (1, effort)):
                slopes[i + 1, k] = np.sum(dS * X) + 2 * np.sum((Y[i] @ held) * X) + np.sum(Y[i] * dW)
            if not self.output:  # (5)
                dR = np.exp(x[n]) * dR / self.limits[1]
                moved = held.T @ L
                dL = equation.adjoint(moved + moved.T + dQ / self.limits[0] + K.T @ dR @ K)
                dK = np.linalg.solve(weight, dB.T @ L + B.T @ dL - dR @ K)
                slopes[1:, k] += np.sum(in_gains * dK, axis=(1, 2))
        if self.output:
            slopes[1:, n:] = (in_gains * problem.unit).reshape(2, -1)
        else:
            dL = equation.adjoint(K.T @ weight @ K)
            slopes[1:, n] = np.sum(in_gains * (np.linalg.solve(weight, B.T @ dL) - K), axis=(1, 2))
        return np.array([float(structure), *squares]), slopes, K

    def solve(self, start: Mapping[str, float] | None, iterations: int) -> LightestDesign:
        n = self.n
        x = self.problem.start(start)
        if not self.output:
            x = np.append(x, 0.0)
        first = self(x)
        if first is None:
            raise NumericalError("lightest: the closed loop is not stable at the start")
        scale = max(abs(first[0][0]), 1e-300)
        lost = np.array([10 * scale, 1e3 * self.limits[0], 1e3 * self.limits[1]])

        def value(x: Array) -> tuple[Array, Array]:
            found = self(x)
            return (lost, np.zeros((3, len(x)))) if found is None else (found[0], found[1])

        limits = np.array(self.limits)
        bounds = [(0.0, 1.0)] * n + [(None, None)] * (len(x) - n)
        end = scipy.optimize.minimize(
            lambda x: (value(x)[0][0] / scale, value(x)[1][0] / scale),
            x,
            jac=True,
            method="SLSQP",
            bounds=bounds,
            constraints={
                "type": "ineq",
                "fun": lambda x: 1 - value(x)[0][1:] / limits,
                "jac": lambda x: -value(x)[1][1:] / limits[:, None],
            },
            options={"maxiter": iterations, "ftol": 1e-9},
        )
        found = self(end.x)
        if found is None or np.any(found[0][1:] > limits * (1 + 1e-3)):
            told = "the loop is not stable" if found is None else _told(found[0][1:] / limits)
            raise NumericalError(
                f"lightest: the limits are not met after {end.nit} iterations ({told}); widen the ranges or the limits, or "
                "begin nearer"
            )
        if end.status == _LIMIT:
            raise NumericalError(
                f"lightest: the limits are met, but the search has not ended after {iterations} iterations, with J_s = "
                f"{found[0][0]:.6g}; give more iterations="
            )
        (structure, response, effort), _, K = found
        point = self.problem._point(end.x)
        names = point.plant.output_names if self.output else point.plant.state_names
        law = static(-K, inputs=names, outputs=point.plant.input_names)
        values = self.problem._values(end.x)
        return LightestDesign(values, float(structure), float(effort), float(response), law, int(end.nit))


def _told(ratios: Array) -> str:
    return f"the response is {ratios[0]:.4g} of its limit, the effort {ratios[1]:.4g}"

"""Linear quadratic regulators, Kalman filters, and both together (LQG).

    J = int x^T Q x + 2 x^T S u + u^T R u,      u = -K x                                                            (1)
    x' = A x + B u + G w,   y = C x + D u + v,  E w w^T = W,  E v v^T = V,   x^' = A x^ + B u + L (y - C x^ - D u)   (2)

K comes from the Riccati equation of (A, B, Q, R, S), L from that of (A^T, C^T, G W G^T, V). A cost in continuous time
with an input that is held for h seconds is the sum of sampled costs with (Van Loan 1978, "Computing integrals
involving the matrix exponential")

    exp [-F^T  M; 0  F] h = [* E12; 0 E22],   F = [A B; 0 0],   M = [Q S; S^T R],   [Q_h S_h; S_h^T R_h] = E22^T E12  (3)

for a step so short that exp(-F^T h) does not grow; with P = exp(F h), W_2h = W_h + P^T W_h P then doubles it. The noise of a
continuous process, gathered from sample to sample, is the dual of (3).

Loop transfer recovery (Doyle and Stein 1979, "Robustness with observers") adds q B V_u B^T to the process noise; with
growing q the loop at the plant's input becomes that of the state feedback, where the plant has no zeros in the right
half-plane.

Kalman filters can carry a root S of the covariance, P = S S^T, instead of P itself. One orthogonal transformation of an
array does a measurement y = C x + v (Kaminski, Bryson and Schmidt 1971, "Discrete square root filtering: a survey"; in this
array form Morf and Kailath 1975): with R = E v v^T = N N^T,

    [Y  N]           [S_y  0 ]
    [X  0]  Theta =  [K'   S+],      K = K' S_y^-1,      X X^T = P,   Y = C X                                        (4)

where the right side is lower triangular: S_y is the root of the innovation's covariance, S+ that of what is left. A step
x+ = A x + G w makes S+ from [A S, G Q^(1/2)] in the same way. No difference of covariances is ever formed, so that P stays
positive, and half of the digits suffice. X need not be square: columns of deviations of sigma points do as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.arguments import choice, numbers, positive, real
from alembert.control import arguments
from alembert.control.arguments import takes_systems
from alembert.control.gramian import semidefinite_root
from alembert.control.interconnection import common_dt, feedback
from alembert.control.reachability import describe_unreached
from alembert.control.responses import c2d
from alembert.control.riccati import RiccatiSolution, care, dare
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class StateFeedback:
    """u = -K x, with the cost-to-go x^T X x, the poles of the closed loop and the residual of the Riccati equation."""

    plant: StateSpace
    K: Array
    X: Array
    poles: Array
    residual: float

    @property
    def controller(self) -> StateSpace:
        """u = -K x, as a system from the states to the inputs, by their names."""
        G = self.plant
        return StateSpace(
            np.zeros((0, 0)),
            None,
            None,
            -self.K,
            G.dt,
            input_names=G.state_names,
            output_names=G.input_names,
            input_units=G.state_units,
            output_units=G.input_units,
        )

    def closed_loop(self) -> StateSpace:
        """From an additional input to the outputs."""
        G = self.plant
        return G.with_matrices(G.A - G.B @ self.K, G.B, G.C - G.D @ self.K)

    def loop(self) -> StateSpace:
        """K (s - A)^-1 B, broken at the plant's inputs."""
        G = self.plant
        zero = np.zeros((G.shape[1], G.shape[1]))
        return StateSpace(G.A, G.B, self.K, zero, G.dt, G.input_names, G.input_names, G.state_names)


@dataclass(frozen=True, eq=False)
class KalmanFilter:
    """The gain L of (2), the covariance P of the error, the poles of the observer, and the residual.

    For sampled plants L takes the estimate from one sample to the next (x^+ = A x^ + B u + L (y - C x^ - D u)).
    """

    plant: StateSpace
    L: Array
    P: Array
    poles: Array
    residual: float
    M: Array | None = None
    """of sampled plants: takes a sample in, x^ + M (y - C x^ - D u)"""


@dataclass(frozen=True, eq=False)
class LQG:
    """A controller u = K(s) y, made of a state feedback and a filter."""

    controller: StateSpace
    regulator: StateFeedback
    filter: KalmanFilter

    @property
    def poles(self) -> Array:
        """Of the closed loop: those of the regulator and those of the filter."""
        return np.sort_complex(np.concatenate([self.regulator.poles, self.filter.poles]))

    def closed_loop(self) -> StateSpace:
        """From a disturbance at the plant's inputs to its outputs."""
        return feedback(self.regulator.plant, self.controller, sign=1)


@takes_systems()
def lqr(
    plant: StateSpace, Q: Any, R: Any = 1.0, *, cross: Any = None, weigh: str = "states"
) -> StateFeedback:
    """State feedback of least cost (1), continuous or sampled as the plant is.

    `Q` and `R` are matrices, diagonals or numbers, `cross` is S. With `weigh="outputs"` Q and S weigh y = C x + D u instead
    of x: y^T Q y + 2 y^T S u + u^T R u.
    """
    return _regulator("lqr", plant, *_cost("lqr", plant, Q, R, cross, weigh))


def _regulator(function: str, plant: StateSpace, Q: Array, R: Array, S: Array) -> StateFeedback:
    found = _solved(
        function, plant, plant.A, plant.B, Q, R, S, "the inputs", "do not reach", plant.input_names
    )
    return StateFeedback(plant, found.K, found.X, found.poles, found.residual)


@takes_systems()
def sampled_lqr(
    plant: StateSpace, dt: float, Q: Any, R: Any = 1.0, *, cross: Any = None, weigh: str = "states"
) -> StateFeedback:
    """The cost (1) in continuous time, made least by an input that is held for `dt` seconds; (3)."""
    return _sampled_regulator("sampled_lqr", plant, dt, Q, R, cross, weigh)


def _sampled_regulator(
    function: str, plant: StateSpace, dt: float, Q: Any, R: Any, cross: Any, weigh: str
) -> StateFeedback:
    sampled, n, m = _with_hold(function, plant, dt), *plant.B.shape
    Q, R, S = _cost(function, plant, Q, R, cross, weigh)
    F = np.zeros((n + m, n + m))
    F[:n, :n], F[:n, n:] = plant.A, plant.B
    W = _gathered(F, np.block([[Q, S], [S.T, R]]), dt)
    return _regulator(function, sampled, W[:n, :n], W[n:, n:], W[:n, n:])


def _with_hold(function: str, plant: StateSpace, dt: float) -> StateSpace:
    """The plant, with inputs that are held for `dt` seconds."""
    if plant.is_discrete:
        raise ArgumentError(
            f"{function}: the plant is sampled already; use {function.removeprefix('sampled_')}"
        )
    return c2d(plant, positive(function, "dt", dt))


def _gathered(F: Array, M: Array, h: float) -> Array:
    """int_0^h exp(F t)^T M exp(F t) dt, by (3)."""
    n = len(F)
    doublings = max(0, int(np.ceil(np.log2(max(float(np.linalg.norm(F, 1)) * h, 1e-300)))))
    E = scipy.linalg.expm(np.block([[-F.T, M], [np.zeros_like(F), F]]) * h / 2**doublings)
    P = E[n:, n:]
    W = P.T @ E[:n, n:]
    for _ in range(doublings):
        W, P = W + P.T @ W @ P, P @ P
    return np.asarray((W + W.T) / 2)


@takes_systems()
def lqe(plant: StateSpace, process: Any, sensor: Any, *, through: Any = None) -> KalmanFilter:
    """The filter (2): `process` is W, `sensor` V (matrices, diagonals or numbers), `through` is G.

    Without `through` the noise of the process comes in with the inputs, G = B.
    """
    return _filter("lqe", plant, _noise("lqe", plant, process, through), sensor)


@takes_systems()
def sampled_lqe(
    plant: StateSpace, dt: float, process: Any, sensor: Any, *, through: Any = None
) -> KalmanFilter:
    """The filter of a continuous plant whose outputs are sampled every `dt` seconds.

    `process` is the intensity W in continuous time, gathered exactly from sample to sample; `sensor` is the covariance of
    one sample's noise.
    """
    return _sampled_filter("sampled_lqe", plant, dt, process, sensor, through)


def _sampled_filter(
    function: str, plant: StateSpace, dt: float, process: Any, sensor: Any, through: Any
) -> KalmanFilter:
    sampled = _with_hold(function, plant, dt)
    return _filter(
        function, sampled, _gathered(plant.A.T, _noise(function, plant, process, through), dt), sensor
    )


def _noise(function: str, plant: StateSpace, process: Any, through: Any) -> Array:
    G, W = arguments.process_noise(function, plant, process, through)
    return np.asarray(G @ W @ G.T)


def _filter(function: str, plant: StateSpace, noise: Array, sensor: Any) -> KalmanFilter:
    V = arguments.weight(function, "sensor", sensor, plant.output_names, definite=True)
    found = _solved(
        function,
        plant,
        plant.A.T,
        plant.C.T,
        noise,
        V,
        np.zeros((plant.order, len(V))),
        "the outputs",
        "do not see",
        plant.output_names,
    )
    P, C = found.X, plant.C
    M = np.linalg.solve(C @ P @ C.T + V, C @ P).T if plant.is_discrete else None
    return KalmanFilter(plant, found.K.T, P, found.poles, found.residual, M)


def observer_controller(
    regulator: StateFeedback, filter: KalmanFilter, *, current: bool = False
) -> StateSpace:
    """u = -K x^ with the estimate of (2), as a system from y to u.

    Of sampled plants x^ is what was expected of the state before the sample y came in, so that u answers one sample late;
    with `current` x^ has y in it.
    """
    return _observer_controller("observer_controller", regulator, filter, current)


def _observer_controller(
    function: str, regulator: StateFeedback, filter: KalmanFilter, current: bool = False
) -> StateSpace:
    G, K, L = regulator.plant, regulator.K, filter.L
    common_dt(function, [G, filter.plant])
    if G.order != filter.plant.order or not np.array_equal(G.A, filter.plant.A):
        raise ArgumentError(
            f"{function}: the regulator is of a plant with {G.order} states, the filter of another with "
            f"{filter.plant.order}, expected the same plant"
        )
    law = G.A - G.B @ K - L @ (G.C - G.D @ K), L, -K, np.zeros((G.shape[1], G.shape[0]))
    if current:
        if filter.M is None or np.any(G.D):
            which = "has a direct part D" if G.is_discrete else "is continuous"
            raise ArgumentError(
                f"{function}: current is for sampled plants without a direct part D; this one {which}"
            )
        stays, M = np.eye(G.order) - filter.M @ G.C, filter.M
        law = (G.A - G.B @ K) @ stays, (G.A - G.B @ K) @ M, -K @ stays, -K @ M
    return StateSpace(
        *law,
        G.dt,
        input_names=G.output_names,
        output_names=G.input_names,
        input_units=G.output_units,
        output_units=G.input_units,
        state_names=tuple(f"{name}^" for name in G.state_names),
    )


@takes_systems()
def lqg(
    plant: StateSpace,
    Q: Any,
    R: Any,
    process: Any,
    sensor: Any,
    *,
    through: Any = None,
    cross: Any = None,
    weigh: str = "states",
    current: bool = False,
) -> LQG:
    """Regulator and filter, joined; see `lqr` and `lqe` for the weights, and `observer_controller` for `current`."""
    regulator = _regulator("lqg", plant, *_cost("lqg", plant, Q, R, cross, weigh))
    found = _filter("lqg", plant, _noise("lqg", plant, process, through), sensor)
    return LQG(_observer_controller("lqg", regulator, found, current), regulator, found)


@takes_systems()
def sampled_lqg(
    plant: StateSpace,
    dt: float,
    Q: Any,
    R: Any,
    process: Any,
    sensor: Any,
    *,
    through: Any = None,
    cross: Any = None,
    weigh: str = "states",
    current: bool = False,
) -> LQG:
    """A sampled controller of a continuous plant: `sampled_lqr` and `sampled_lqe`, joined. It answers one sample late, or
    with `current` at once, where the computer is fast enough."""
    regulator = _sampled_regulator("sampled_lqg", plant, dt, Q, R, cross, weigh)
    found = _sampled_filter("sampled_lqg", plant, dt, process, sensor, through)
    return LQG(_observer_controller("sampled_lqg", regulator, found, current), regulator, found)


@takes_systems()
def ltr(
    regulator: StateFeedback | Any,
    recovery: float,
    process: Any,
    sensor: Any,
    *,
    plant: StateSpace | None = None,
    through: Any = None,
) -> LQG:
    """A filter whose process noise has recovery * B B^T on top, so that the loop at the inputs nears that of K.

    `regulator` comes from `lqr`, or is a gain K together with `plant`. Recovery at the outputs: `output_ltr`.
    """
    if not isinstance(regulator, StateFeedback):
        if plant is None:
            raise ArgumentError("ltr: a gain K needs plant=")
        K = arguments.matrix("ltr", "regulator", regulator, plant.shape[1], plant.order)
        poles = np.sort_complex(np.linalg.eigvals(plant.A - plant.B @ K))
        regulator = StateFeedback(plant, K, np.full((plant.order, plant.order), np.nan), poles, np.nan)
    G = regulator.plant
    real("ltr", "recovery", recovery, "a number of zero or more", least=0.0)
    way, W = arguments.process_noise("ltr", G, process, through)
    found = _filter("ltr", G, way @ W @ way.T + recovery * G.B @ G.B.T, sensor)
    _check_held("ltr", "regulator", "A - B K", regulator)
    return LQG(observer_controller(regulator, found), regulator, found)


@takes_systems()
def output_ltr(
    filter: KalmanFilter | Any,
    recovery: float,
    Q: Any = 0.0,
    R: Any = 1.0,
    *,
    plant: StateSpace | None = None,
) -> LQG:
    """A regulator whose cost has recovery * C^T C on top, so that the loop at the outputs nears C (s - A)^-1 L.

    `filter` comes from `lqe`, or is a gain L together with `plant`; Q and R as for `lqr`. The dual of `ltr`.
    """
    if not isinstance(filter, KalmanFilter):
        if plant is None:
            raise ArgumentError("output_ltr: a gain L needs plant=")
        L = arguments.matrix("output_ltr", "filter", filter, plant.order, plant.shape[0])
        poles = np.sort_complex(np.linalg.eigvals(plant.A - L @ plant.C))
        filter = KalmanFilter(plant, L, np.full((plant.order, plant.order), np.nan), poles, np.nan)
    G = filter.plant
    real("output_ltr", "recovery", recovery, "a number of zero or more", least=0.0)
    cost, R, S = _cost("output_ltr", G, Q, R, None, "states")
    regulator = _regulator("output_ltr", G, cost + recovery * G.C.T @ G.C, R, S)
    _check_held("output_ltr", "filter", "A - L C", filter)
    return LQG(observer_controller(regulator, filter), regulator, filter)


def _check_held(function: str, name: str, matrix: str, given: StateFeedback | KalmanFilter) -> None:
    """Refuse a gain that does not hold the plant."""
    poles = given.poles
    growth = np.abs(poles) - 1 if given.plant.is_discrete else poles.real
    if np.any(growth >= 0):
        raise ArgumentError(
            f"{function}: {matrix} with the gain {name} has the pole {poles[np.argmax(growth)]:.6g}, expected stable ones; "
            "is its sign right?"
        )


def _cost(
    function: str, plant: StateSpace, Q: Any, R: Any, cross: Any, weigh: str
) -> tuple[Array, Array, Array]:
    choice(function, "weigh", weigh, ("states", "outputs"))
    weighed = plant.output_names if weigh == "outputs" else plant.state_names
    shape = len(weighed), plant.shape[1]
    S = np.zeros(shape) if cross is None else arguments.matrix(function, "cross", cross, *shape)
    Q = arguments.weight(function, "Q", Q, weighed)
    R = arguments.weight(function, "R", R, plant.input_names, definite=weigh == "states")
    if cross is not None:
        least, most = np.linalg.eigvalsh(np.block([[Q, S], [S.T, R]]))[[0, -1]]
        if least < -1e-12 * most:
            raise ArgumentError(
                f"{function}: with cross the cost [Q S; S^T R] has the eigenvalue {least:.4g}, expected none below zero"
            )
    if weigh == "outputs":
        C, D = plant.C, plant.D
        R = arguments.weight(
            function, "R", R + D.T @ Q @ D + D.T @ S + S.T @ D, plant.input_names, definite=True
        )
        Q, S = C.T @ Q @ C, C.T @ (Q @ D + S)
    return Q, R, S


def _solved(
    function: str,
    plant: StateSpace,
    A: Array,
    B: Array,
    Q: Array,
    R: Array,
    S: Array,
    who: str,
    fails: str,
    signals: tuple[str, ...],
) -> RiccatiSolution:
    if not plant.order:
        raise ArgumentError(f"{function}: the plant has no states, expected some")
    try:
        return (dare if plant.is_discrete else care)(A, B, Q, R, S, function=function)
    except NumericalError:
        lost = describe_unreached(A, B, plant.state_names, plant.dt)
        if lost:
            raise NumericalError(f"{function}: {who} ({', '.join(signals)}) {fails} {lost}") from None
        if unseen := describe_unreached((A - B @ np.linalg.solve(R, S.T)).T, Q, plant.state_names, plant.dt):
            what = (
                "the cost Q does not see"
                if who == "the inputs"
                else "the noise of the process does not reach"
            )
            raise NumericalError(f"{function}: {what} {unseen}, so that nothing damps it") from None
        raise


def triangular_root(columns: Array) -> Array:
    """The lower triangular S, its diagonal not negative, with S S^T = columns columns^T."""
    R = np.asarray(np.linalg.qr(columns.T, mode="r"))
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    root = (R * signs[:, None]).T
    rows, found = columns.shape[0], root.shape[1]
    return root if found == rows else np.hstack([root, np.zeros((rows, rows - found))])


def covariance_root(function: str, name: str, value: Any, signals: Any) -> Array:
    """A root of a covariance: given as a matrix, as its diagonal, or as one number."""
    return triangular_root(semidefinite_root(arguments.weight(function, name, value, signals)))


@dataclass(frozen=True, eq=False)
class Correction:
    """What a measurement does, by (4): the change of the state, the root that is left, and how likely the innovation was."""

    change: Array
    S: Array
    innovation: Array
    S_y: Array
    """root of the covariance of the innovation"""

    @property
    def nis(self) -> float:
        """The innovation squared, in units of its covariance: of a filter that fits, on average as many as measurements."""
        return float(np.sum(scipy.linalg.solve_triangular(self.S_y, self.innovation, lower=True) ** 2))


def correction(X: Array, Y: Array, N: Array, innovation: Array) -> Correction:
    """(4)"""
    n, m = len(X), len(Y)
    root = triangular_root(np.block([[Y, N], [X, np.zeros((n, N.shape[1]))]]))
    S_y, gain = root[:m, :m], root[m:, :m]
    if m and np.min(np.diag(S_y)) <= 1e-14 * max(float(np.abs(S_y).max()), 1e-300):
        raise NumericalError(
            "correction: a measurement has no noise and is known already, its innovation has no covariance; give the "
            "sensors some noise"
        )
    weights = scipy.linalg.solve_triangular(S_y, innovation, lower=True) if m else innovation
    return Correction(gain @ weights, root[m:, m:], innovation, S_y)


@dataclass(frozen=True, eq=False)
class LinearEstimate:
    """An estimate x of a state, and the root S of its covariance."""

    x: Array
    S: Array

    @property
    def P(self) -> Array:
        return self.S @ self.S.T

    @property
    def deviations(self) -> Array:
        """Standard deviations of the states."""
        return np.linalg.norm(self.S, axis=1)

    def nees(self, truth: Any) -> float:
        """The error squared, in units of its covariance: of a filter that fits, on average as many as states."""
        error = arguments.numbers("nees", "truth", truth) - self.x
        return float(np.sum(np.linalg.lstsq(self.S, error, rcond=None)[0] ** 2))


@dataclass(frozen=True, eq=False)
class SquareRootKalman:
    """The Kalman filter of a sampled plant from sample to sample, from any start: x+ = A x + B u + G w, y = C x + D u + v.

    `process` and `sensor` are covariances of w and v (matrices, diagonals or numbers), `through` is G, as in `lqe`, whose
    gain this filter comes to in time.
    """

    plant: StateSpace
    process: Any
    sensor: Any
    through: Any = None

    def __post_init__(self) -> None:
        what = "SquareRootKalman"
        G = arguments.read_system(what, "plant", self.plant)
        object.__setattr__(self, "plant", G)
        if not G.is_discrete:
            raise ArgumentError(
                f"{what}: the plant is continuous, expected a sampled one; al.control.c2d(plant, dt) makes it"
            )
        way, W = arguments.process_noise(what, G, self.process, self.through)
        object.__setattr__(self, "through", way)
        object.__setattr__(self, "process", way @ semidefinite_root(W))
        object.__setattr__(self, "sensor", covariance_root(what, "sensor", self.sensor, G.output_names))

    def start(self, x: Any, covariance: Any) -> LinearEstimate:
        """What is known before the first sample."""
        G = self.plant
        x = arguments.numbers("start", "x", x)
        if x.shape != (G.order,):
            raise ArgumentError(f"start: x has shape {x.shape}, expected ({G.order},)")
        return LinearEstimate(x, covariance_root("start", "covariance", covariance, G.state_names))

    def correct(self, estimate: LinearEstimate, y: Any, u: Any = None) -> tuple[LinearEstimate, Correction]:
        """The estimate with a sample y taken in; those that are NaN were lost."""
        G = self.plant
        y = np.atleast_1d(numbers("correct", "y", y))
        if y.shape != (G.shape[0],):
            raise ArgumentError(f"correct: y has shape {y.shape}, expected ({G.shape[0]},)")
        there = np.isfinite(y)
        C, left = G.C[there], y - G.C @ estimate.x - G.D @ self._input("correct", u)
        noise = triangular_root(self.sensor[there])
        found = correction(estimate.S, C @ estimate.S, noise, left[there])
        return LinearEstimate(estimate.x + found.change, found.S), found

    def predict(self, estimate: LinearEstimate, u: Any = None) -> LinearEstimate:
        """The estimate one sample later."""
        G = self.plant
        x = G.A @ estimate.x + G.B @ self._input("predict", u)
        return LinearEstimate(x, triangular_root(np.hstack([G.A @ estimate.S, self.process])))

    def filtered(self, start: LinearEstimate, y: Any, u: Any = None) -> tuple[list[LinearEstimate], Array]:
        """Estimates after each of the samples y (times, outputs), and the innovations squared (times,)."""
        y = _along("y", numbers("filtered", "y", y), self.plant.shape[0])
        given = (
            [None] * len(y) if u is None else _along("u", numbers("filtered", "u", u), self.plant.shape[1])
        )
        if len(given) != len(y):
            raise ArgumentError(f"filtered: u has {len(given)} samples, expected {len(y)}, as y")
        found, squares, now = [], [], start
        for sample, effort in zip(y, given, strict=True):
            after, told = self.correct(now, sample, effort)
            found.append(after)
            squares.append(told.nis)
            now = self.predict(after, effort)
        return found, np.array(squares)

    def _input(self, function: str, u: Any) -> Array:
        m = self.plant.shape[1]
        u = np.zeros(m) if u is None else np.atleast_1d(arguments.numbers(function, "u", u))
        if u.shape != (m,):
            raise ArgumentError(f"{function}: u has shape {u.shape}, expected ({m},)")
        return u


def _along(name: str, x: Array, width: int) -> Array:
    """Samples (times, width); of one signal also (times,)."""
    x = x[:, None] if x.ndim == 1 and width == 1 else x
    if x.ndim != 2 or x.shape[1] != width:
        raise ArgumentError(f"filtered: {name} has shape {x.shape}, expected (times, {width})")
    return x

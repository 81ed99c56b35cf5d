"""The lightest structure whose response and control effort stay within limits.

After McLaren and Slater (1989), "A disturbance model for control/structure optimization with output feedback control":

    min J_s(p)   where   E u^T R u <= b,   E x^T Q x <= a,     x' = A x + B u + G w                                    (1)

The loop closed, x' = F x + G w, F X + X F^T + G G^T = 0, so that a mean square is tr(S X) with S = Q or C^T K^T R K C, and,
with F^T Y + Y F + S = 0,

    d tr(S X) = tr(dS X) + 2 tr(Y dF X) + tr(Y d(G G^T))                                                               (2)

Output feedback u = -K y: the gains are variables like p. State feedback: K = (l R/b)^-1 B^T L of the Riccati equation with
Q/a, l a variable; how L moves with p is one more Lyapunov equation each,

    F^T dL + dL F + (dA - dB K)^T L + L (dA - dB K) + dQ/a + K^T (l dR/b) K = 0                                        (3)

Both are solved by sequential quadratic programming with these slopes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.control.codesign import DesignPoint, Matrices, _Codesign, _static
from alembert.control.gramian import Lyapunov
from alembert.control.riccati import care
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
_LIMIT = 9  # of SLSQP: the limit of iterations


@dataclass(frozen=True, eq=False)
class LightestDesign:
    """The least J_s of (1) that was found, where both mean squares end, and the controller u = K y (of the state: K x)."""

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
        if not (np.isfinite(value) and value > 0):
            raise ArgumentError(f"lightest: {name} is {value!r}, expected a limit above zero")
    if feedback not in ("state", "output"):
        raise ArgumentError(f"lightest: feedback is {feedback!r}, expected 'state' or 'output'")
    return _Lightest(_Codesign(make, ranges, 0.5, feedback, gain), effort, response).solve(start, iterations)


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
            K = x[n:].reshape(B.shape[1], -1)
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
            if not self.output:  # (3)
                dR = np.exp(x[n]) * dR / self.limits[1]
                moved = held.T @ L
                dL = equation.adjoint(moved + moved.T + dQ / self.limits[0] + K.T @ dR @ K)
                dK = np.linalg.solve(weight, dB.T @ L + B.T @ dL - dR @ K)
                slopes[1:, k] += np.sum(in_gains * dK, axis=(1, 2))
        if self.output:
            slopes[1:, n:] = in_gains.reshape(2, -1)
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
        law = _static(-K, names, point.plant.input_names)
        values = self.problem._values(end.x)
        return LightestDesign(values, float(structure), float(effort), float(response), law, int(end.nit))


def _told(ratios: Array) -> str:
    return f"the response is {ratios[0]:.4g} of its limit, the effort {ratios[1]:.4g}"

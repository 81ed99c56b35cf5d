"""State feedback about a point of linearisation.

With P2 = M da/dq and P1 = M da/dv, so that M dv' = P2 e + P1 dv + G du, the feedback du = -K_P e - K_V dv with

    G K_P = M L2 + P2,    G K_V = M L1 + P1,    L2 = diag(omega^2),  L1 = diag(2 zeta omega)        (1)

makes every degree of freedom an oscillator of its own, e'' + L1 e' + L2 e = 0. Lin and Yae (1989), equations
36-38, have the signs of P1 and P2 the other way round: there they stand on the left-hand side.

The least of the integral of x^T Q x + u^T R u over all time is reached by

    u = -R^-1 B^T P x,    A^T P + P A - P B R^-1 B^T P + Q = 0                                      (2)

with the P for which A - B K is stable (Kalman 1960, "Contributions to the theory of optimal control").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.control.arguments import weight
from alembert.control.gramian import semidefinite_root
from alembert.control.reachability import reachability
from alembert.control.riccati import care
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.linear import quantities, reduction
from alembert.linear.linear_model import LinearModel
from alembert.linear.linearization import linearize
from alembert.model import Model

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Regulator:
    """u = -K x about the point of `linear`; `simulate` takes it as a controller."""

    linear: LinearModel
    K: Array

    @property
    def K_P(self) -> Array:
        """Gains of the displacements, (..., inputs, nv)."""
        return self.K[..., : len(self.linear.displacements)]

    @property
    def K_V(self) -> Array:
        """Gains of the speeds."""
        return self.K[..., len(self.linear.displacements) :]

    def poles(self) -> Array:
        """Of the closed loop."""
        return np.sort_complex(np.linalg.eigvals(self.linear.A - self.linear.B @ self.K))

    def inputs(self, q: Any, v: Any) -> Array:
        """The change of the inputs at a state, (..., inputs)."""
        at = self.linear
        v = at.model.compute.numbers("Regulator.inputs", "v", v, at.model.nv)
        e, dv = np.broadcast_arrays(at.model.difference(at.q, q), v - at.v)
        x = np.concatenate([e[..., list(at.displacements)], dv[..., list(at.rates)]], axis=-1)
        return -(self.K @ x[..., None])[..., 0]

    def __call__(self, t: float, q: Any, v: Any) -> Array:
        """A controller's answer: the efforts at a state, whatever the time."""
        return self.efforts(q, v)

    def efforts(self, q: Any, v: Any) -> Array:
        """tau at a state, (..., nv): that of the point and what the feedback adds.

        Inputs that are wrenches count as the efforts that they are worth there; the wrenches of the point itself
        (`linear.wrenches`) are none of the regulator's: `simulate(..., wrenches=)` takes them.
        """
        at = self.linear
        u = self.inputs(q, v)
        G = at.G
        if at.wrench_inputs:
            q = at.model.compute.numbers("Regulator.efforts", "q", q, at.model.nq)
            G = np.array(np.broadcast_to(G, (*u.shape[:-1], *G.shape[-2:])))
            for k, frame, component in at.wrench_inputs:
                values = at.model.parameter_values | dict(at.parameter_values)
                G[..., k] = quantities.wrench_efforts(at.model, frame, q, values)[..., component]
        return at.tau + (G @ u[..., None])[..., 0]


def decoupled_pd(
    system: LinearModel | Model,
    frequency: Any,
    damping: Any,
    *,
    q: Any = None,
    v: Any = None,
    tau: Any = None,
) -> Regulator:
    """The gains (1) of Lin and Yae; `frequency` [rad/s] and `damping` are numbers or one per degree of freedom.

    `system` is a linear model, or a model with the point (q, v, tau) to linearise it about. It takes one independent
    input per degree of freedom.
    """
    if isinstance(system, Model):
        if q is None:
            raise ArgumentError("decoupled_pd: a Model needs the configuration to linearise about, q=")
        linear = linearize(system, q, v, tau)
    elif q is not None or v is not None or tau is not None:
        raise ArgumentError(
            "decoupled_pd: q, v and tau are those of the linear model; do not give them again"
        )
    else:
        linear = system
        _check_linear("decoupled_pd", "system", linear)
    n = len(linear.rates)
    if linear.whole is not None and not linear.has_modes:
        raise UnsupportedError(
            "decoupled_pd: the part has displacements without their speeds, or speeds without displacements; use place_poles"
        )
    if len(linear.displacements) != n:
        raise UnsupportedError(
            f"decoupled_pd: something rolls: {len(linear.displacements)} displacements and {n} speeds are independent; use "
            "place_poles"
        )
    omega, zeta = (
        np.broadcast_to(_per_dof(linear.model, name, x, n), (n,))
        for name, x in (("frequency", frequency), ("damping", damping))
    )
    if not np.all((omega > 0) & np.isfinite(omega)):
        raise ArgumentError(f"decoupled_pd: frequency is {frequency!r}, expected positive numbers")
    if not np.all((zeta >= 0) & np.isfinite(zeta)):
        raise ArgumentError(f"decoupled_pd: damping is {damping!r}, expected numbers of zero or more")
    if np.any(linear.A[..., :n, :n]):
        raise UnsupportedError(
            "decoupled_pd: joints that turn in three dimensions are in motion at the point, so that e' is not dv; "
            "linearise at rest, or use place_poles"
        )
    B = linear.B[..., n:, :]
    if B.shape[-1] != n or np.any(np.linalg.matrix_rank(B) < n):
        raise ArgumentError(
            f"decoupled_pd: {B.shape[-1]} inputs ({', '.join(linear.input_names)}) for {n} degrees of freedom; it "
            "takes one independent input for each. Linearise with other inputs=, or use place_poles"
        )
    wanted = np.concatenate([np.diag(omega**2), np.diag(2 * zeta * omega)], axis=-1)
    return Regulator(linear, np.linalg.solve(B, wanted + linear.A[..., n:, :]))


def place_poles(linear: LinearModel, poles: Sequence[complex], *, method: str = "YT") -> Regulator:
    """The state feedback that puts the poles there, robustly.

    `method` is "YT" (Tits and Yang) or "KNV0" (Kautsky, Nichols and Van Dooren, real poles only) of
    `scipy.signal.place_poles`. No pole may be repeated more often than there are inputs.
    """
    _check_linear("place_poles", "linear", linear)
    linear._one("place_poles")
    reached = linear.controllable()
    if not reached:
        raise ArgumentError(
            f"place_poles: the inputs do not reach all of the state: {reduction.advice(linear, reached)}"
        )
    try:
        wanted = np.asarray(poles).astype(complex)
        found = scipy.signal.place_poles(
            linear.A, linear.B, wanted if np.any(wanted.imag) else wanted.real, method=method
        )
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"place_poles: {error}") from None
    return Regulator(linear, found.gain_matrix)


def lqr(linear: LinearModel, Q: Any, R: Any = 1.0) -> Regulator:
    """The linear quadratic regulator (2): state feedback that makes the integral of x^T Q x + u^T R u least.

    `Q` weighs the states (`linear.state_names`), `R` the inputs: a matrix, a number for each, or one number.
    """
    _check_linear("lqr", "linear", linear)
    linear._one("lqr")
    if not linear.input_names or not linear.state_names:
        raise ArgumentError("lqr: the linear model has no inputs, or no states")
    A, B = linear.A, linear.B
    weights = (
        weight("lqr", "Q", Q, linear.state_names),
        weight("lqr", "R", R, linear.input_names, definite=True),
    )
    try:
        return Regulator(linear, care(A, B, *weights, function="lqr").K)
    except NumericalError:
        reached = linear.controllable()
        why = f"the inputs do not reach all of the state: {reduction.advice(linear, reached, stable=True)}"
        if reached:
            seen = reachability(A.T, semidefinite_root(weights[0]), linear.state_names, 1e-10)
            why = f"Q does not see all modes: {seen}"
        raise ArgumentError(f"lqr: no feedback of least cost is stable: {why}") from None


def _check_linear(function: str, argument: str, linear: Any) -> None:
    if isinstance(linear, LinearModel):
        return
    kind = type(linear).__name__
    hint = "al.linearize(model, q, v, tau) makes one of a model, or linearize() of what al.trim has found"
    raise ArgumentError(
        f"{function}: {argument} is {'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}, expected a LinearModel; {hint}"
    )


def _per_dof(model: Model, name: str, x: Any, count: int) -> Array:
    values = model.compute.numbers("decoupled_pd", name, x)
    if values.shape not in ((), (1,), (count,)):
        raise ArgumentError(f"decoupled_pd: {name} has shape {values.shape}, expected a number or ({count},)")
    return values

"""SUNDIALS' solvers (extra `stiff`) behind the interface of SciPy's: `step`, `dense_output`, `t`, `y`, `status`.

CVODE solves y' = f(t, y), with BDF or Adams formulas. IDA solves F(t, y, y') = 0, here the equations of motion as
inverse dynamics gives them, so that nothing is ever divided by the mass matrix:

    e' - T(e) v = 0,    inverse_dynamics(q, v, v') - tau(t, q, v) = 0               (1)

with y = (e, v) as in `alembert.simulate.adaptive`, and the exact Jacobian dF/dy + c dF/dy',

    [ c - d(T v)/de            -T                    ]
    [ (id_q - tau_q) T^-1      id_v - tau_v + c M    ]                              (2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from alembert.errors import UnsupportedError

Array = np.ndarray
SOLVERS = {"cvode": "BDF", "cvode_adams": "Adams", "ida": ""}
SMALLEST, PATIENCE = 1e-14, 30
"""a step, relative to the time; and how many such may follow one another: the first steps of IDA grow from there"""


class Sundials:
    """`derivative(t, y)` is asked by CVODE, `residual(t, y, y')` by IDA; `jacobian(t, y)` or `(t, y, y', c)`."""

    def __init__(
        self,
        name: str,
        t: float,
        y: Array,
        end: float,
        *,
        derivative: Callable[[float, Array], Array],
        residual: Callable[[float, Array, Array], Array] | None,
        jacobian: Callable[..., Array] | None,
        **options: Any,
    ) -> None:
        try:
            from sksundae.cvode import CVODE
            from sksundae.ida import IDA
        except ImportError:
            raise UnsupportedError(
                f'simulate: integrator {name!r} needs SUNDIALS; pip install "alembert[stiff]"'
            ) from None
        self.t_old, self.t, self.y = t, t, y
        self.status, self.h_abs = "running", 0.0
        self._end, self._looked, self._small = end, False, 0
        given = {**options, "max_step": 0.0 if np.isinf(options["max_step"]) else options["max_step"]}
        self._solver: Any
        if name == "ida":
            assert residual is not None
            self._solver = IDA(_fills(residual, 3), jacfn=_fills_ida(jacobian), **given)
            found = self._solver.init_step(t, y, derivative(t, y))
        else:
            self._solver = CVODE(
                _fills(derivative, 2), jacfn=_fills_cvode(jacobian), method=SOLVERS[name], **given
            )
            found = self._solver.init_step(t, y)
        self._check(found)

    def step(self) -> str | None:
        if self._looked:  # back from where dense output has left it
            self._solver.step(self.t, method="normal")
            self._looked = False
        found = self._solver.step(self._end, method="onestep", tstop=self._end)
        self.t_old, self.t, self.y = self.t, float(found.t), np.array(found.y, dtype=float).ravel()
        self.h_abs = self.t - self.t_old
        message = self._check(found)
        if message is None and not np.isfinite(self.y).all():
            message = "the motion is not finite"
        self._small = self._small + 1 if self.h_abs <= SMALLEST * max(abs(self.t), 1e-3) else 0
        if message is None and self._small > PATIENCE:
            message = "the step has become too small"
        if message is not None:
            self.status = "failed"
        elif self.t >= self._end:
            self.status = "finished"
        return message

    def _check(self, found: Any) -> str | None:
        return None if found.success else str(found.message)

    def dense_output(self) -> Callable[[Any], Array]:
        """The formula's own polynomial over the last step; it holds until the next one."""
        newest = self.t

        def at(times: Any) -> Array:
            assert self.t == newest
            self._looked = self._looked or bool(np.any(np.ravel(times) != newest))
            flat = [
                self.y
                if t == newest
                else np.array(self._solver.step(float(t), method="normal").y, dtype=float).ravel()
                for t in np.ravel(times)
            ]
            return np.stack(flat, axis=-1).reshape(len(self.y), *np.shape(times))

        return at


def _fills(function: Callable[..., Array], count: int) -> Callable[..., None]:
    if count == 2:

        def derivative(t: float, y: Array, out: Array) -> None:
            out[:] = function(t, y.copy())

        return derivative

    def residual(t: float, y: Array, yp: Array, out: Array) -> None:
        out[:] = function(t, y.copy(), yp.copy())

    return residual


def _fills_cvode(jacobian: Callable[..., Array] | None) -> Any:
    if jacobian is None:
        return None

    def fill(t: float, y: Array, yp: Array, out: Array) -> None:
        out[:] = jacobian(t, y.copy())

    return fill


def _fills_ida(jacobian: Callable[..., Array] | None) -> Any:
    if jacobian is None:
        return None

    def fill(t: float, y: Array, yp: Array, res: Array, c: float, out: Array) -> None:
        out[:] = jacobian(t, y.copy(), yp.copy(), c)

    return fill

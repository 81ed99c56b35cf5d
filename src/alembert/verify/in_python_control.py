"""Questions on linear systems, put to Alembert and to python-control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from alembert import control
from alembert.control import StateSpace
from alembert.errors import UnsupportedError

Array = np.ndarray
T = TypeVar("T")


class InAlembert:
    """What `alembert.control` answers."""

    def lqr(self, G: StateSpace, Q: Any, R: Any) -> Array:
        return control.lqr(G, Q, R).K

    def filter_gain(self, G: StateSpace, W: Any, V: Any) -> Array:
        """Of noise with the intensity W at the inputs, and V at the outputs."""
        return control.lqe(G, W, V).L

    def h2_norm(self, G: StateSpace) -> float:
        return G.h2_norm()

    def hinf_norm(self, G: StateSpace) -> float:
        return G.hinf_norm().gain

    def hankel_singular_values(self, G: StateSpace) -> Array:
        return G.hankel_singular_values()

    def zeros(self, G: StateSpace) -> Array:
        return G.zeros()

    def sampled(self, G: StateSpace, dt: float) -> StateSpace:
        return G.sampled(dt)

    def crossover_margins(self, G: StateSpace) -> tuple[float, float]:
        """Gain (a factor) and phase [deg]."""
        found = control.margins(G)
        return found.gain, found.phase_deg


class InPythonControl:
    """What python-control answers; some of it needs slycot."""

    def __init__(self) -> None:
        import control as ct

        self._ct: Any = ct

    def _system(self, G: StateSpace) -> Any:
        return self._ct.ss(G.A, G.B, G.C, G.D, G.dt)

    def _asked(self, what: str, question: Callable[[], T]) -> T:
        """Its own errors of what is not there."""
        try:
            return question()
        except (NotImplementedError, ImportError, self._ct.ControlArgument) as error:
            raise UnsupportedError(f"python-control: {what}: {error}") from error

    def lqr(self, G: StateSpace, Q: Any, R: Any) -> Array:
        sampled = self._ct.dlqr if G.dt else self._ct.lqr
        return np.asarray(sampled(self._system(G), Q, R)[0])

    def filter_gain(self, G: StateSpace, W: Any, V: Any) -> Array:
        return np.asarray(self._ct.lqe(G.A, G.B, G.C, W, V)[0])

    def h2_norm(self, G: StateSpace) -> float:
        return float(self._asked("H2 norm", lambda: self._ct.norm(self._system(G), 2)))

    def hinf_norm(self, G: StateSpace) -> float:
        return float(self._asked("H-infinity norm", lambda: self._ct.norm(self._system(G), "inf")))

    def hankel_singular_values(self, G: StateSpace) -> Array:
        return np.asarray(self._asked("Hankel singular values", lambda: self._ct.hsvd(self._system(G))))

    def zeros(self, G: StateSpace) -> Array:
        return np.asarray(self._asked("zeros", lambda: self._system(G).zeros()))

    def sampled(self, G: StateSpace, dt: float) -> StateSpace:
        found = self._ct.c2d(self._system(G), dt)
        return StateSpace(found.A, found.B, found.C, found.D, dt)

    def crossover_margins(self, G: StateSpace) -> tuple[float, float]:
        gain, phase, *_ = self._ct.margin(self._system(G))
        return float(gain), float(phase)

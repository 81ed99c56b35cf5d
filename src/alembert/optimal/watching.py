"""Watching solvers from CasADi: a line per iteration, and Ctrl-C that ends them with the best iterate so far."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.line_search import KEPT
from alembert.optimal.sweep import Iteration

Array = np.ndarray
DETAILS = ("inf_du", "mu", "alpha_pr", "regularization_size")
"""what IPOPT calls the slope of the Lagrangian, the barrier, the length of the step and the shift"""


class Watch(ca.Callback):
    """For CasADi's option `iteration_callback`: reports every iteration, and asks for a stop when interrupted."""

    def __init__(
        self, sizes: tuple[int, int], lower: Array, upper: Array, report: Callable[[Iteration], Any] | None
    ) -> None:
        super().__init__()
        self._sizes, self._lower, self._upper, self._report = sizes, lower, upper, report
        self.history: list[Iteration] = []
        self.stop = False
        self.best: tuple[Array, Array] | None = None
        """unknowns and multipliers of the best iterate: the cheapest of those that keep all to 1e-6, or the nearest to it"""
        self._rank = (np.inf, np.inf)
        self.latest: Array | None = None
        self.failure: BaseException | None = None
        """what was raised on the way"""
        self._began = time.perf_counter()
        self.solver: ca.Function | None = None
        """IPOPT, which tells slope, barrier, step and shift while it runs"""
        self.construct("watch", {})

    def get_n_in(self) -> int:
        return ca.nlpsol_n_out()

    def get_n_out(self) -> int:
        return 1

    def get_name_in(self, k: int) -> str:
        return ca.nlpsol_out(k)

    def get_sparsity_in(self, k: int) -> Any:
        x, g = self._sizes
        size = {"f": 1, "x": x, "lam_x": x, "g": g, "lam_g": g}.get(ca.nlpsol_out(k), 0)
        return ca.Sparsity.dense(size, 1) if size else ca.Sparsity(0, 0)

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arguments: Any, results: Any) -> int:
        given = {ca.nlpsol_out(k): array(value) for k, value in enumerate(arguments)}
        self.see(float(given["f"][0]), given["g"], given["x"], given["lam_g"])
        array(results[0])[:] = self.stop
        return 0

    def see(self, cost: float, g: Array, x: Array, y: Array, slope: float = np.nan) -> None:
        """An iteration with this cost and these rows, at unknowns x with multipliers y, and the slope of the Lagrangian."""
        off = float(np.max(np.maximum(self._lower - g, g - self._upper), initial=0.0))
        rank = (off if off > KEPT else 0.0, cost)
        if np.isfinite(cost) and rank < self._rank:
            self._rank = rank
            self.best = x.copy(), y.copy()
        self.latest = x.copy()
        now = time.perf_counter() - self._began
        self.history.append(Iteration(len(self.history), cost, off, *self._details(slope), now))
        if self._report is not None:
            try:
                self._report(self.history[-1])
            except KeyboardInterrupt:
                self.stop = True
            except BaseException as error:  # must not pass through the solver's machine code
                self.stop, self.failure = True, error

    def _details(self, slope: float) -> tuple[float, float, float, float]:
        if self._report is None or self.solver is None:  # nobody looks, or nothing is known
            return slope, np.nan, np.nan, np.nan
        told = self.solver.stats().get("iterations", {})
        slope, barrier, step, shift = (
            float(told[name][-1]) if told.get(name) else np.nan for name in DETAILS
        )
        return slope, barrier, step, shift


def array(buffer: Any) -> Array:
    """What CasADi hands to a callback, where it is."""
    return np.frombuffer(buffer) if buffer is not None and len(buffer) else np.empty(0)


@contextmanager
def interruptible(watch: Watch) -> Iterator[None]:
    """Ctrl-C stops the solver after its iteration, instead of an exception in the middle of machine code."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: Any) -> None:
        watch.stop = True

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

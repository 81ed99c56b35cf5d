"""The conditions of a problem as rows over the unknowns of its splines: lower <= g(z) <= upper.

In this order: the start, the end, what a periodic motion must return to, bounds at every node, and rates of controls
over every interval. Rows have names and times, so that whatever is wrong with one can be said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.closure import returning
from alembert.optimal.row import FREE, Row
from alembert.optimal.splines.shooting import Motion, Shooting
from alembert.optimal.splines.slopes import Adjoint, Slopes, Tangents, Weights

Array = np.ndarray


class Rows:
    """Values, Jacobians and the slope of the Lagrangian; keeps what was evaluated last."""

    def __init__(self, shooting: Shooting, *, by_adjoint: bool | None = None) -> None:
        self.shooting, self.slopes = shooting, Slopes(shooting)
        self._last: tuple[Array, Motion] | None = None
        self._tangents: tuple[Motion, Tangents] | None = None
        s, problem = shooting, shooting.problem
        self._back = self._returning()
        self._rates = [k for k, pair in enumerate(problem.rates) if pair != FREE]
        names = problem.plant.tangent_names
        nodes, controls = s.steps + 1, problem.plant.controls
        blocks = {
            "start": ([f"start {r.name}" for r in s.start_rows], _bounds(s.start_rows)),
            "end": ([f"end {r.name}" for r in s.end_rows], _bounds(s.end_rows)),
            "back": ([f"periodic {names[k]}" for k in self._back], [(0.0, 0.0)] * len(self._back)),
            "path": ([f"bound on {r.name}" for r in s.path_rows] * nodes, _bounds(s.path_rows) * nodes),
            "rates": (
                [f"rate of {controls[k]}" for k in self._rates] * s.steps,
                [problem.rates[k] for k in self._rates] * s.steps,
            ),
        }
        self.names = [name for own, _ in blocks.values() for name in own]
        bounds = np.array([pair for _, own in blocks.values() for pair in own], dtype=float).reshape(-1, 2)
        self.lower, self.upper = bounds[:, 0].copy(), bounds[:, 1].copy()
        sizes = np.cumsum([0, *(len(own) for own, _ in blocks.values())])
        self.at = {name: slice(*sizes[k : k + 2]) for k, name in enumerate(blocks)}
        self.fractions = np.concatenate(
            [
                *(np.zeros(len(s.start_rows)), np.ones(len(s.end_rows) + len(self._back))),
                np.repeat(np.arange(nodes) / s.steps, len(s.path_rows)),
                np.repeat(np.arange(s.steps) / s.steps, len(self._rates)),
            ]
        )
        """where rows hold, as shares of the duration"""
        results = 1 + len(self.names) - len(s.start_rows)
        self.by_adjoint = results < s.unknowns if by_adjoint is None else by_adjoint
        """whether Jacobians come from backward sweeps: results are fewer than unknowns"""
        x, y = (ca.SX.sym(name, len(s.first)) for name in "xy")
        e, f = (ca.SX.sym(name, s.n) for name in "ef")
        around = s.local(s.retract(x, e), s.retract(y, f))
        at_rest = [ca.SX.zeros(s.n), ca.SX.zeros(s.n)]
        found = [ca.densify(w) for w in (around, ca.jacobian(around, e), ca.jacobian(around, f))]
        self._around = ca.Function("around", [x, y], ca.substitute(found, [e, f], at_rest))

    def _returning(self) -> list[int]:
        """Of the tangent vectors of the plant, which are to be at the end as at the start."""
        s, problem, plant = self.shooting, self.shooting.problem, self.shooting.plant
        if not problem.periodic:
            return []
        x, held = ca.SX.sym("x", plant.chart.point), ca.SX.sym("held", plant.chart.point)
        p = ca.SX.sym("p", len(problem.parameters))
        back = returning(problem, plant, plant.chart.local(held, x), x, p)
        names = plant.tangent_names
        both = [{r.component for r in rows if r.is_equation} for rows in (problem.start, s.end_rows)]
        return [k for k in back if not all(names[k] in stated for stated in both)]

    # --- values --------------------------------------------------------------------------------------------------

    def motion(self, z: Array) -> Motion:
        if self._last is None or not np.array_equal(self._last[0], z):
            self._last = np.array(z), self.shooting.motion(z)
        return self._last[1]

    def tangents(self, z: Array) -> Tangents:
        motion = self.motion(z)
        if self._tangents is None or self._tangents[0] is not motion:
            self._tangents = motion, self.slopes.tangents(motion)
        return self._tangents[1]

    def values(self, z: Array) -> Array:
        """g(z)."""
        found = self.motion(z)
        rates = np.diff(found.controls[:, self._rates], axis=0) * self.shooting.steps / found.T
        return np.concatenate(
            [found.start, found.end, self._ends_meet(found)[0], found.path.ravel(), rates.ravel()]
        )

    def _ends_meet(self, motion: Motion) -> tuple[Array, Array, Array, Array]:
        """Periodic rows, and their derivatives along z directly, and along the passive tangent at start and end."""
        s = self.shooting
        n, nv, K = s.n, s.model.nv, s.control_points
        count = len(self._back)
        values, direct = np.zeros(count), np.zeros((count, s.unknowns))
        first, last = np.zeros((count, n)), np.zeros((count, n))
        if not count:
            return values, direct, first, last
        around, by_first, by_last = (w.full() for w in self._around(motion.x[0], motion.x[-1]))
        for i, k in enumerate(self._back):
            rate, dof = divmod(k, nv)
            if dof in s.driven:
                j = s.driven.index(dof)
                step = s.basis[rate, -1] - s.basis[rate, 0]
                scale = 1 / motion.T**rate
                values[i] = step @ motion.coefficients[j] * scale
                direct[i, j * K : (j + 1) * K] = step * scale
                if rate and s.problem.is_free:
                    direct[i, -1] = -values[i] / motion.T
            else:
                j = s.passive.index(dof) + rate * len(s.passive)
                values[i], first[i], last[i] = around[j, 0], by_first[j], by_last[j]
        return values, direct, first, last

    def infeasibility(self, z: Array) -> float:
        off = self.off(z)
        largest = np.max(off, initial=0.0)
        return float(largest) if np.isfinite(off).all() else np.inf

    def off(self, z: Array) -> Array:
        """How far each row is outside its bounds; 0 within, not finite where it is not."""
        values = self.values(z)
        return np.maximum(np.maximum(self.lower - values, values - self.upper), 0.0)

    # --- slopes --------------------------------------------------------------------------------------------------

    def gradient(self, z: Array) -> Array:
        """Of the cost."""
        if not self.by_adjoint:
            return self.tangents(z).cost
        motion = self.motion(z)
        return self.slopes.adjoint(motion, replace(self.slopes.none(motion), cost=1.0)).z

    def jacobian(self, z: Array) -> Array:
        """Of g."""
        return self._by_adjoints(z) if self.by_adjoint else self._by_tangents(z)

    def _by_tangents(self, z: Array) -> Array:
        motion, found = self.motion(z), self.tangents(z)
        _, direct, first, last = self._ends_meet(motion)
        back = direct + first @ found.x[0] + last @ found.x[-1]
        N, T = self.shooting.steps, motion.T
        rates = np.diff(found.controls[:, self._rates], axis=0) * N / T
        if self.shooting.problem.is_free:
            rates[:, :, -1] -= np.diff(motion.controls[:, self._rates], axis=0) * N / T**2
        blocks = [found.start, found.end, back, found.path, rates]
        return np.concatenate([block.reshape(-1, len(z)) for block in blocks])

    def _by_adjoints(self, z: Array) -> Array:
        motion, count = self.motion(z), len(self.names)
        J = np.empty((count, len(z)))
        J[self.at["start"]] = self.slopes.start(motion)
        for k in range(self.at["start"].stop, count):
            unit = np.zeros(count)
            unit[k] = 1.0
            J[k] = self.lagrangian(z, 0.0, unit).z
        return J

    def lagrangian(self, z: Array, sigma: float, y: Array) -> Adjoint:
        """The slope of sigma J + y' g, by one backward sweep."""
        motion, s = self.motion(z), self.shooting
        _, direct, first, last = self._ends_meet(motion)
        back = y[self.at["back"]]
        controls = np.zeros_like(motion.controls)
        rates = y[self.at["rates"]].reshape(s.steps, -1) * s.steps / motion.T
        controls[1:, self._rates] += rates
        controls[:-1, self._rates] -= rates
        weights = Weights(
            cost=float(sigma),
            start=y[self.at["start"]],
            end=y[self.at["end"]],
            path=y[self.at["path"]].reshape(motion.path.shape),
            controls=controls,
            x_first=back @ first,
            x_last=back @ last,
        )
        found = self.slopes.adjoint(motion, weights)
        slope = found.z + back @ direct
        if s.problem.is_free:
            slope[-1] -= np.sum(rates * np.diff(motion.controls[:, self._rates], axis=0)) / motion.T
        return replace(found, z=slope)


def _bounds(rows: list[Row]) -> list[Any]:
    return [(row.lower, row.upper) for row in rows]

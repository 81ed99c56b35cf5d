"""What spline shooting gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from alembert.optimal.diagnosis import Dependencies, Violation, badly_scaled, violated
from alembert.optimal.outcome import Iteration
from alembert.optimal.solution import Solution
from alembert.optimal.splines.conditions import Adjoint, SplineRows
from alembert.optimal.splines.shooting import Shooting, SplineMotion

Array = np.ndarray
MESSAGES = {
    "solved": "converged",
    "acceptable": "converged to ten times the tolerance, beyond which rounding does not let it",
    "iterations": "not converged; raise `iterations`, or give a better `guess`",
    "interrupted": "interrupted; this is the best iterate that was reached",
    "stalled": "no step makes progress; try another `guess`, or a larger `tolerance`",
    "infeasible": "no step brings the conditions nearer; they may contradict each other: try another `guess`, or more "
    "`control_points`",
}


@dataclass(frozen=True, eq=False)
class Found:
    """What a search ends with: unknowns, multipliers of the rows, why it ended, and its way."""

    z: Array
    y: Array
    status: str
    history: list[Iteration]


class SplineSolution(Solution):
    """The motion at the nodes, and the splines: `coefficients` (driven, control points) on `knots` of the share t/T.

    `controls` are means over the intervals as in other solutions; `node_controls` and `control_at(t)` have them
    at the nodes and in between. `slopes` says whether slopes came from "tangent" or "adjoint" sweeps.
    """

    def __init__(self, rows: SplineRows, found: Found, seconds: dict[str, float]) -> None:
        shooting = rows.shooting
        self.problem, self._shooting, self._rows = shooting.problem, shooting, rows
        self.solver, self.transcription, self.hessian = "trust region", "splines", "differences"
        self.slopes = "adjoint" if rows.by_adjoint else "tangent"
        self.unknowns, self._multipliers = found.z, found.y
        self.knots, self.degree = shooting.knots, shooting.degree
        self._motion = motion = rows.motion(found.z)
        self.coefficients, self._duration = motion.coefficients, motion.T
        self.cost, self.infeasibility = motion.cost, rows.infeasibility(found.z)
        self.seconds, self.history = seconds, found.history
        self.node_controls = motion.controls
        self._states = shooting.configurations(motion)
        self._status, self._message = found.status, MESSAGES[found.status]
        if not self.success:
            self._message += f" (conditions off by {self.infeasibility:.1e})"

    @property
    def steps(self) -> int:
        return self._shooting.steps

    @property
    def duration(self) -> float:
        """[s]"""
        return self._duration

    @cached_property
    def time(self) -> Array:
        """(N + 1,) [s]"""
        return np.arange(self.steps + 1) / self.steps * self.duration

    def control_at(self, t: Any) -> Array:
        """The controls at any time, interpolated between the nodes."""
        return np.asarray(self._between(np.clip(np.asarray(t, dtype=float) / self.duration, 0, 1)))

    @property
    def q(self) -> Array:
        """(N + 1, nq)"""
        return self._states[0]

    @property
    def v(self) -> Array:
        """(N + 1, nv)"""
        return self._states[1]

    @cached_property
    def momenta(self) -> Array:
        """Generalised momenta M(q) v, (N + 1, nv)."""
        return np.einsum(
            "kij,kj->ki", self._tree.mass_matrix(self.q, parameters=self.problem.parameter_values), self.v
        )

    @cached_property
    def _between(self) -> CubicSpline:
        """Efforts over the shares of the time, from those at the nodes."""
        return CubicSpline(np.arange(self.steps + 1) / self.steps, self.node_controls)

    @cached_property
    def controls(self) -> Array:
        """(N, m): means over the intervals."""
        return np.diff(self._between.antiderivative()(self._between.x), axis=0) * self.steps

    @cached_property
    def efforts(self) -> Array:
        """(N, nv): of all degrees of freedom, means over the intervals [N m, N]."""
        tau = np.zeros((self.steps, self._shooting.model.nv))
        tau[:, self._shooting.driven] = self.controls
        return tau

    def control_within(self, k: Any, share: Any) -> Array:
        """The controls in interval k, at a share from 0 to 1 of it."""
        return np.asarray(self._between((np.asarray(k) + share) / self.steps))

    def dimensions(self) -> tuple[int, int]:
        """Unknowns and equations."""
        return len(self.unknowns), int(np.sum(self._rows.lower == self._rows.upper))

    # --- what else is known --------------------------------------------------------------------------------------------

    @cached_property
    def _adjoint(self) -> Adjoint:
        """Of the Lagrangian."""
        return self._rows.lagrangian(self.unknowns, 1.0, self._multipliers)

    @property
    def costates(self) -> Array:
        """(N, passive q and v): how the cost depends on the passive joints at each next node."""
        return self._adjoint.costates[1:]

    @property
    def multipliers(self) -> dict[str, Array]:
        """Of conditions at the ends, and of bounds at the nodes (positive at the upper one, negative at the lower one)."""
        found: dict[str, list[float]] = {}
        for name, y in zip(self._rows.names, self._multipliers, strict=True):
            found.setdefault(name.removeprefix("bound on "), []).append(y)
        ends = ("start ", "end ", "periodic ")
        return {name: np.array(own[0] if name.startswith(ends) else own) for name, own in found.items()}

    def sensitivities(self) -> dict[str, float]:
        """How the optimal cost changes with each parameter: the slope of the Lagrangian."""
        names = [name for name, _ in self.problem.plant.parameters]
        return dict(zip(names, map(float, self._adjoint.parameters), strict=True))

    # --- checks --------------------------------------------------------------------------------------------------------

    def violations(self, tolerance: float = 1e-6) -> list[Violation]:
        """Conditions and limits that are off by more than `tolerance`, the worst first."""
        rows = self._rows
        off = rows.off(self.unknowns)
        found = [
            Violation(name, float(share * self.duration), float(w) if np.isfinite(w) else np.inf)
            for name, share, w in zip(rows.names, rows.fractions, off, strict=True)
            if not w <= tolerance
        ]
        return sorted(found, key=lambda w: -w.amount)

    def diagnosis(self, most: int = 8) -> str:
        """In words: what is violated where by how much, where the motion runs away, which conditions repeat or contradict
        others or cannot be reached, and which are badly scaled."""
        rows = self._rows
        lines = [f"{self.status}: {self.message}"]
        where = runs_away(self._shooting, self._motion)
        if where:
            lines.append(f"the motion is not finite: {where}")
        violations = self.violations()
        lines += violated(violations, most)
        J, values = rows.jacobian(self.unknowns), rows.values(self.unknowns)
        if np.isfinite(J).all() and np.isfinite(values).all():
            lines += self._dependencies(J, values)[:most]
            lines += self._scales(J)[:most]
        active = {
            name: y for name, y in self.multipliers.items() if y.ndim and np.abs(y).max(initial=0.0) > 1e-4
        }
        if active:
            lines.append(f"bounds that hold somewhere: {', '.join(active)}")
        if not self.success and not violations and not where:
            lines.append("the motion is feasible but not optimal: raise `iterations`, or loosen `tolerance`")
        return "\n".join(lines)

    def _dependencies(self, J: Array, values: Array) -> list[str]:
        """Equations that repeat others at the start, and those that no control point reaches apart from others."""
        rows, found = self._rows, Dependencies()
        equations = np.flatnonzero(rows.lower == rows.upper)
        first = equations[equations < rows.at["start"].stop]
        names = np.array(rows.names, dtype=object)
        off = values - rows.lower
        named = found.add(list(names[first]), J[first], off[first], 0.0)
        rest = np.array([k for k in equations if k not in set(first[named])], dtype=int)
        if not self.success:
            found.add(list(names[rest]), J[rest], off[rest], self.duration, reached=True)
        return found.sentences()

    def _scales(self, J: Array) -> list[str]:
        rows = self._rows
        sizes: dict[str, tuple[float, float]] = {}
        for name, share, length in zip(rows.names, rows.fractions, np.linalg.norm(J, axis=1), strict=True):
            if length > sizes.get(name, (0.0, 0.0))[0]:
                sizes[name] = float(length), float(share * self.duration)
        return badly_scaled(sizes)


def runs_away(shooting: Shooting, motion: SplineMotion) -> str:
    """Where a motion stops being finite; "" if it is all along."""
    parts = [
        ("", shooting.passive_names, motion.x[:, -shooting.n :] if shooting.n else motion.x[:, :0]),
        ("effort of ", shooting.plant.controls, motion.controls),
        ("", [row.name for row in shooting.path_rows], motion.path),
    ]
    times = np.arange(shooting.steps + 1) / shooting.steps * motion.T
    for k, t in enumerate(times):
        for what, names, values in parts:
            bad = np.flatnonzero(~np.isfinite(values[k]))
            if len(bad):
                return f"{what}{names[bad[0]]} from t = {t:.4g} s on"
    return "" if np.isfinite(motion.cost) else "the cost"

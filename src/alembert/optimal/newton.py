"""An iterate of the interior point method, what is known there, and steps from it.

`Newton` keeps every array of a solve where it is, with the compiled functions of `alembert.optimal.evaluation` and
the sweep in time bound to them. From an iterate there are

- the Newton step, with the least shift of the Hessian for which the sweep finds a minimum (`step`);
- second-order corrections of it, for the residuals that a trial left (`correct`): with c the residuals at the
  iterate and c(alpha) those of the trial, the right-hand side is alpha c + c(alpha)               (1)
- the multipliers that make the slope of the Lagrangian least in the sense of least squares (`estimate_multipliers`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from alembert.optimal import tuning
from alembert.optimal.barrier import Bounds, Merit
from alembert.optimal.evaluation import Evaluation, bound, end_row_kernels, fold
from alembert.optimal.outcome import NO_SLOPE, Iterate, Residuals, Warm
from alembert.optimal.scaling import Units, cost_size, measure
from alembert.optimal.search_graphs import BOUNDS, bound_decisions
from alembert.optimal.stages import Stages
from alembert.optimal.time_sweep import Conditions, Indefinite, LinearStages, Reach, TimeSweep, together

Array = np.ndarray


class Newton:
    """See the module."""

    def __init__(
        self,
        stages: Stages,
        evaluation: Evaluation,
        x: Array,
        u: Array,
        z: Array,
        mu: float,
        *,
        scaled: bool = True,
        units: Units | None = None,
    ) -> None:
        """`units`: known ones, instead of those that are measured; then `begin` is called next."""
        self._bounds_of: tuple[Any, ...] = (None,) * 4
        """limits that `_bounds` are made of"""
        self._bounds_mu = mu
        self._bounds: tuple[Array, ...] = ()
        self.stages, self.units = stages, Units.ones(stages)
        self._p, self._s = stages.parameters.copy(), stages.numbers.copy()
        self._ps = [part.stages.parameters.copy() for part in stages.parts]
        N, (n, m, nz, nd) = stages.count, stages.sizes
        first, last, rows = len(stages.start_names), len(stages.end_names), len(stages.end_bounded)
        self._taken = np.ones(1)
        self._numbers, self.numbers, self.decide = bound_decisions()
        self._alpha, self._mu, self._scale, self._dual = (
            self.numbers[name] for name in ("alpha", "mu", "scale", "dual")
        )
        self.inner = np.ones(1)
        """whether trials settle z, or leave it where the step puts it"""
        self._place(x.shape, u.shape, z.shape)
        self.linear = LinearStages(
            *(np.zeros((N, n, n)), np.zeros((N, n, m)), np.zeros((N, n)), np.zeros((N + 1, n, n))),
            *(np.zeros((N, n, m)), np.zeros((N, m, m)), np.zeros((N + 1, n)), np.zeros((N, m))),
            *(np.zeros((N, nd, n + m)), np.zeros((N, nd))),
        )
        self.first = Conditions(np.zeros((first, n)), np.zeros(first))
        self.last = Conditions(np.zeros((last, n)), np.zeros(last))
        self.sweep = TimeSweep(self.linear, self.first, self.last)
        self._last_step, self._new_duals = self.sweep.x[N], self.sweep.found[-self._duals.size :]
        self._step, (self._dz, self._ds, self._dlow, self._dhigh, self._end_ds) = together(
            (N, nz), (N, nd), (N, nd), (N, nd), (rows,)
        )
        self._bind(evaluation)
        self.restart(stages, x, u, z, mu, scaled=scaled, units=units)

    def restart(
        self,
        stages: Stages,
        x: Array,
        u: Array,
        z: Array,
        mu: float,
        *,
        scaled: bool = True,
        units: Units | None = None,
    ) -> None:
        """As if it were new, for other numbers of the same stages: nothing of what was solved before is left."""
        self.stages = stages
        self.seconds = {"functions": 0.0, "sweep": 0.0}
        self._numbers[...] = 0.0
        self.numbers["rho"][0] = 1e2
        N, nd = self._d.shape
        self.numbers["settings"][1:] = mu, self._duals.size, N * nd, len(self.last.c) > 0
        self.sweep.reach = Reach()
        for name in (self._here, self._there, self._duals, self._step, self.sweep.found):
            name[...] = 0.0
        for name in (self._scale, self._dual, self._taken, self.inner):
            name[...] = 1.0
        self.units.reset()
        for name in (self.linear.push, self._gained, self._end_gained, self._d_used):
            name[...] = 0.0
        self._end_dlow[...], self._end_dhigh[...] = 0.0, 0.0
        self._mu[0], self.units.cost = mu, 1.0
        self._p[...], self._s[...] = stages.parameters, stages.numbers
        for p, part in zip(self._ps, stages.parts, strict=True):
            p[...] = part.stages.parameters
        it = self.it
        it.x[...], it.u[...], it.z[...] = x, u, z
        limits = (stages.lower, stages.upper, stages.end_lower, stages.end_upper)
        if any(a is not b for a, b in zip(limits, self._bounds_of, strict=True)) or mu != self._bounds_mu:
            low, high = (np.concatenate([a.ravel(), b]) for a, b in (limits[::2], limits[1::2]))
            self.bounds.take(Bounds.within(self.bounds.slack, low, high, mu))
            self.has_equations = bool(self.bounds.held.any())
            self._end_held = bool(it.last.held.any())
            self._bounds_of, self._bounds_mu = limits, mu
            self._bounds = tuple(a.copy() for a in self.bounds.arrays)
        else:
            for a, value in zip(self.bounds.arrays, self._bounds, strict=True):
                a[...] = value
        if units is not None:
            self.units.copy(units)
        elif scaled:
            self._measure_units()
        self.scale = self._scale[0] = self.units.cost
        for b, own in ((it.path, self.units.d), (it.last, self.units.bounded)):
            b.lower /= own
            b.upper /= own
            b.slack /= own
        if units is not None:  # `begin` follows
            self._look()
            return
        if self.bounds.slack.size:
            self._enter()

    def _measure_units(self) -> None:
        """Units and the scale of the cost, where the functions are finite."""
        marks = (self.bounds.held, self.bounds.has_lower, self.bounds.has_upper)
        kept = [mark.copy() for mark in marks]
        for mark in marks:
            mark[...] = 0.0
        self.linearise()
        lin = self.linear
        known = (lin.A, lin.B, lin.D, lin.Q, lin.R, self._g, self._G, self._Z)
        with np.errstate(invalid="ignore"):
            is_finite = math.isfinite(sum(float(a.sum()) for a in known))
        if is_finite:
            measure(self)
            size = cost_size(self)
            self.units.cost = tuning.COST / size if np.isfinite(size) and size > 0 else 1.0
        for mark, value in zip(marks, kept, strict=True):
            mark[...] = value

    def _place(self, *points: tuple[int, ...]) -> None:
        """Room for the iterate, and beside it for a trial, each in one piece."""
        stages = self.stages
        N, (n, _, nz, nd) = stages.count, stages.sizes
        first, last, rows = len(stages.start_names), len(stages.end_names), len(stages.end_bounded)
        residuals = ((N, n), (N, nz), (N, nd), (rows,))
        shapes = (*points, *[(N, nd), (rows,)] * 3, *residuals)  # of bounds, and at the end
        self._here, here = together(*shapes)
        self._there, self._new = together(*shapes)
        self._gap, self._implicit, self._d, self._rows = here[9:]
        self._missed, self._missed_by = together(*residuals, (first,), (last,))
        self._duals, (costates, sigma, eta) = together((N + 1, n), (first,), (last,))
        count, before = N * nd + rows, sum(math.prod(shape) for shape in points)
        both = [self._here[before + k * count :][:count] for k in range(3)]
        self.bounds = Bounds(*both, *np.zeros((5, count)))
        self._bounded, self._new_bounded = (a[len(a) - count :] for a in (self._here, self._there))
        marks = self.bounds.arrays[3:]
        path = Bounds(*here[3:9:2], *(a[: N * nd].reshape(N, nd) for a in marks))
        final = Bounds(*here[4:9:2], *(a[N * nd :] for a in marks))
        self.it = Iterate(here[0], here[1], here[2], path, final, costates, sigma, eta)

    def _enter(self) -> None:
        """Slacks at the values of the guess, pushed off their bounds."""
        self._look()
        self.bounds.begin(self._bounded, self.mu)

    def _look(self) -> None:
        """What is bounded, at the guess."""
        self.try_(0.0)
        self._bounded[...] = self._new_bounded

    def multipliers(self, warm: Warm) -> tuple[Array, ...]:
        """Costates, sigma, eta, low and high along the path and at the end, as the iterate has them."""
        scale, units, costates = self.scale, self.units, warm.costates
        if self._chart is not None:
            self._chart()
            costates = np.matmul(costates[:, None, :], self._in_chart)[:, 0]
        ends = (scale * units.start * warm.sigma, scale * units.end * warm.eta)
        of_d, of_rows = scale * units.d, scale * units.bounded
        bounds = (of_d * warm.low, of_d * warm.high, of_rows * warm.end_low, of_rows * warm.end_high)
        return (scale * units.x * costates, *ends, *bounds)

    def begin(self, warm: Warm) -> bool:
        """Multipliers as expected, and a barrier that suits the errors that are left; False where these are not better
        than without."""
        it = self.it
        costates, sigma, eta, low, high, end_low, end_high = self.multipliers(warm)
        it.costates[...], it.sigma[...], it.eta[...] = costates, sigma, eta

        self.mu = least = self.tolerance / 11
        self.enter(low, high, end_low, end_high)
        self.linearise()
        self.try_(0.0)
        self._measure()
        self.decide["first_barrier"]()
        if not self.numbers["is_warm"].item():
            self._enter()
        elif self.mu != least:
            self.enter(low, high, end_low, end_high)
        return bool(self.numbers["is_warm"].item())

    def enter(self, low: Array, high: Array, end_low: Array, end_high: Array) -> None:
        """Slacks for these multipliers of bounds, and the barrier."""
        expected = np.concatenate([low.ravel(), end_low]), np.concatenate([high.ravel(), end_high])
        self.bounds.begin(self._bounded, self.mu, expected)

    def _bind(self, e: Evaluation) -> None:
        stages, it, lin, sweep, new = self.stages, self.it, self.linear, self.sweep, self._new
        N, (n, m, nz, nd) = stages.count, stages.sizes
        rows = len(stages.end_bounded)
        self._parts, self._clocks = e.parts, stages.clocks
        self._slopes, self._g = (np.zeros((N, n)), np.zeros((N, m))), np.zeros((N, n + m + nz))
        self._Z, self._z_0, self._d_0 = np.zeros((N, nz, n + m)), np.zeros((N, nz)), np.zeros((N, nd))
        self._G, self._F_z = np.zeros((N, nz, nz)), np.zeros((N, n, nz))
        self._H_z, self._D_z = np.zeros((N, nz, n + m)), np.zeros((N, nd, nz))
        self._d_used, self._gained, self._end_gained = np.zeros((N, nd)), np.zeros((N, nd)), np.zeros(rows)
        self._in_chart, self._from_chart = np.zeros((N + 1, n, n)), np.zeros((N + 1, n, n))
        limits, longest = np.zeros((N, 3)), np.zeros((N + 1, 3))
        totals, total = np.zeros((N, 4)), np.zeros((N + 1, 4))
        found, errors = np.zeros((N, 7)), np.zeros((N + 1, 7))
        barriers, all_barriers = np.zeros((N, 1)), np.zeros((N + 1, 1))
        self._longest, self._total, self._errors = longest[N], total[N], errors[N]
        self._all_barriers, self._Q_0 = all_barriers[N], lin.Q[0]

        shared = {"alpha": self._alpha, "inner": self.inner, "dual": self._dual, "mu": self._mu}
        shared["scale"] = self._scale
        at: dict[str, Array] = dict(zip(BOUNDS, it.path.arrays, strict=True)) | {
            **{"x": it.x[:-1], "u": it.u, "z": it.z, "after": it.x[1:], "s": self._s},
            **{"costate": it.costates[1:], "dx": sweep.x[:-1], "du": sweep.u, "dz": self._dz},
            **{"dafter": sweep.x[1:], "ds": self._ds},
        }
        left = {
            **{"A": lin.A, "B": lin.B, "b": lin.b, "Q": lin.Q[:N], "N": lin.N, "R": lin.R, "q": lin.q[:N]},
            **{"r": lin.r, "slope_x": self._slopes[0], "slope_u": self._slopes[1], "Z": self._Z},
            **{"z_0": self._z_0, "D": lin.D, "d_0": self._d_0, "g": self._g, "G": self._G},
            **{"F_z": self._F_z, "H_z": self._H_z, "D_z": self._D_z, "x_new": new[0][:N]},
            **{"u_new": new[1], "z_new": new[2], "slack_new": new[3], "gap": new[9], "implicit": new[10]},
            **{"path": new[11], "total": totals},
        }
        condensing, charting, trying = [], [], []
        wheres = [part.where for part in stages.parts]
        for own, where, units, p in zip(e.parts, wheres, self.units.parts, self._ps, strict=True):
            own_at = shared | {"units": units.stage, "p": p} | {name: a[where] for name, a in at.items()}
            own_left = {name: a[where] for name, a in left.items()}
            count = len(own_at["x"])
            condensing.append(own.condense(count, own_at, own_left))
            trying.append(bound(own.trial, count, own_at, own_left))
            nodes = slice(where.start, where.stop + int(where.stop == N))
            slopes = {"J": self._in_chart[nodes], "inverse": self._from_chart[nodes]}
            charting.append(bound(own.chart, len(it.x[nodes]), {"x": it.x[nodes], "p": p}, slopes))
        self._condense, self._trial = _all(condensing), _all(trying)
        self._chart = None if e.is_plain else _all(charting)

        known = shared | at | left | {"d": self._d_used, "gained": self._gained}
        steps = {"dz": self._dz, "ds": self._ds, "dlow": self._dlow, "dhigh": self._dhigh, "limits": limits}
        self._steps = bound(e.steps, N, known, steps)
        here = known | {"d": self._d, "costate": it.costates[:-1]}
        measuring = bound(e.measure, N, here, {"found": found})
        self._measuring = _all([measuring, fold(">>>>+++").bind(N, [found, errors, errors])])
        self._fold_limits = fold("<<+").bind(N, [limits, longest, longest])
        self._fold_totals = fold("+++>").bind(N, [totals, total, total])
        self._push = self._settle = None
        if nd:
            self._push = bound(e.push, N, known, {"push": lin.push})
            moved = known | steps | {"alpha": self._taken, "slack": new[3]}
            self._settle = bound(e.settle, N, moved, {"low_new": new[5], "high_new": new[7]})

        self._gradient, self._end_D, self._start_H = np.zeros(n), np.zeros((rows, n)), np.zeros((n, n))
        self._end_values = np.zeros(rows)
        self._end_dlow, self._end_dhigh = np.zeros(rows), np.zeros(rows)
        self._new_start, self._new_end = np.zeros_like(self.first.c), np.zeros_like(self.last.c)
        steps = {"ds": self._end_ds, "dlow": self._end_dlow, "dhigh": self._end_dhigh, "limits": longest[0]}
        known = shared | {"p": self._p, "units": self.units.ends}
        known |= {"x_0": it.x[:1], "s_0": self._s[:1], "x": it.x[-1:], "s": self._s[-1:]}
        known |= {"costate_0": it.costates[:1], "costate": it.costates[-1:], "dx_0": sweep.x[:1]}
        known |= {"dx": sweep.x[-1:], "sigma": it.sigma[None], "eta": it.eta[None], "D": self._end_D[None]}
        known |= {"gradient": self._gradient[None], "g": self._gradient[None], "d": self._end_values[None]}
        known |= {"gained": self._end_gained[None], **{name: a[None] for name, a in steps.items()}}
        known |= {name: a[None] for name, a in zip(BOUNDS, it.last.arrays, strict=True)}
        found_there = {"c_0": self.first.c, "C_0": self.first.C, "H_0": self._start_H, "c": self.last.c}
        found_there |= {"C": self.last.C, "slope": self._gradient, "D": self._end_D, "H": lin.Q[N]}
        self._ends = bound(e.ends, 1, known, _alone(found_there | {"found": errors[0]}))
        trial = {"x_new": new[0][-1], "slack_new": new[4], "starts": self._new_start}
        trial |= {"equations": self._new_end, "rows": new[12], "total": total[0]}
        self._ends_trial = bound(e.ends_trial, 1, known, _alone(trial))
        barrier: list[Callable[[], Any]] = []
        if rows:
            slope, step, settle, end_barrier = end_row_kernels(n, rows)
            self._slope_at_end = bound(slope, 1, known, {"q": lin.q[N:]})
            self._end_steps = bound(step, 1, known, _alone(steps))
            moved = known | {"alpha": self._taken, "slack": new[4][None]}
            self._settle_end = bound(settle, 1, moved, _alone({"low_new": new[6], "high_new": new[8]}))
            barrier.append(bound(end_barrier, 1, known, {"barrier": all_barriers[:1]}))
        else:
            longest[0, :2] = 1e300
        if nd:
            barrier.append(bound(e.barrier, N, shared | at, {"barrier": barriers}))
        if nd or rows:
            barrier.append(fold("+").bind(N, [barriers, all_barriers, all_barriers]))
        self._barrier = _all(barrier)

    # --- at the iterate -------------------------------------------------------------------------------------------

    @property
    def mu(self) -> float:
        return float(self._mu[0])

    @mu.setter
    def mu(self, value: float) -> None:
        self._mu[0] = value

    @property
    def tolerance(self) -> float:
        """Of the error of all conditions, at which a solve ends."""
        return float(self.numbers["settings"][0])

    @tolerance.setter
    def tolerance(self, value: float) -> None:
        self.numbers["settings"][0] = value

    @property
    def shift(self) -> float:
        """Of the Hessian, in the last step."""
        return float(self.numbers["shift"][0])

    def linearise(self) -> None:
        began = time.perf_counter()
        self._condense()
        self._ends()
        self._Q_0 += self._start_H
        self.seconds["functions"] += time.perf_counter() - began

    def _measure(self) -> None:
        self._measuring()
        self.numbers["errors"][...] = self._errors

    def judge(self, merit: Merit) -> tuple[float, float]:
        """The largest slope of the Lagrangian and the error of all conditions, at the iterate with this `merit`.

        Where that is small enough for it, the barrier is lowered; `with_barrier` is the iterate then.
        """
        self.numbers["here"][...] = merit
        self._measure()
        self.decide["judge"]()
        return self.numbers["steepest"].item(), self.numbers["error"].item()

    def with_barrier(self) -> Merit:
        """The iterate with the barrier as it is now."""
        self._barrier()
        self.numbers["barrier"][...] = self._all_barriers
        self.decide["with_barrier"]()
        return Merit(*self.numbers["here"].tolist())

    @property
    def residuals(self) -> Residuals:
        """In the units of the problem."""
        units = self.units
        return Residuals(units.after * self._gap, units.c * self._implicit, units.d * self._d)

    def stated(self) -> Iterate:
        """The iterate with multipliers in the units of the problem, for its own cost."""
        it, units, scale = self.it, self.units, self.scale
        path, last = it.path.in_units(units.d, scale), it.last.in_units(units.bounded, scale)
        costates, sigma, eta = it.costates / units.x, it.sigma / units.start, it.eta / units.end
        x, u, z = it.x.copy(), it.u.copy(), it.z.copy()
        return Iterate(x, u, z, path, last, costates / scale, sigma / scale, eta / scale)

    def gains(self, stated: Iterate) -> Array:
        """Those of the last sweep; they, and the costates of `stated`, in the coordinates of the stages' chart."""
        x, u, _ = self.units.of_stages
        gains = u[..., :, None] * self.sweep.gains / x[..., None, :]
        if self._chart is None or not np.isfinite(gains).all():
            return gains
        self._chart()
        stated.costates[...] = np.matmul(stated.costates[:, None, :], self._from_chart)[:, 0]
        return np.matmul(gains, self._from_chart[:-1])

    # --- steps ----------------------------------------------------------------------------------------------------

    def step(self, merit: Merit, least: float = 0.0) -> bool:
        """The Newton step, with a shift of at least `least`; False when no shift helps."""
        began = time.perf_counter()
        numbers, self.options = self.numbers, {"damping": min(1e-3, 1e-2 * merit.worst**2)}
        self._d_used[...] = self._d
        self._end_slope(self._rows)
        numbers["shift"][0], numbers["definite"][0] = least, 0.0
        found = None
        while not found and self.shift <= tuning.LARGEST_SHIFT:
            if found is not None:
                self.decide["next_shift"]()
            self.options["shift"], self.options["rho"] = self.shift, numbers["rho"].item()
            found = self._solve() if found is None else self._swept()
        numbers["is_minimum"][0] = found
        if self.shift:
            numbers["remembered"][0] = self.shift
        self.sweep.reach.give_way()
        if found and self.has_equations:
            self._meet_equations(merit.worst)
        elif found and numbers["steep"].item():
            self.sweep.refine(**self.options)
        self.seconds["sweep"] += time.perf_counter() - began
        return bool(found)

    def _meet_equations(self, worst: float) -> None:
        """(3) of `alembert.optimal.barrier` again from its result, until what the linearised equations leave is small
        against the residuals, whose largest is `worst`."""
        path, last = self.it.path, self.it.last
        first = None
        for _ in range(tuning.ROUNDS):
            self._steps()
            more = np.where(path.held > 0, self._dhigh - self._gained, 0.0)
            off = max(more.max(initial=0.0), -more.min(initial=0.0))
            if self._end_held:
                self._end_steps()
                end_more = np.where(last.held > 0, self._end_dhigh - self._end_gained, 0.0)
                off = max(off, np.abs(end_more).max())
            off /= tuning.HELD
            first = off if first is None else first
            if not tuning.ENOUGH * max(first, worst) < off <= first:
                break
            self._gained += more
            self.linear.push += more
            if self._end_held:
                self._end_gained += end_more
                self.linear.q[-1] += self._end_D.T @ end_more
            self.sweep.refine(**self.options)

    def _solve(self) -> bool:
        if self._push is not None:
            self._push()
        if self.has_equations:
            self._gained[...], self._end_gained[...] = 0.0, 0.0
        return self._swept()

    def _swept(self) -> bool:
        try:
            self.sweep.solve(**self.options)
        except Indefinite:
            return False
        return math.isfinite(sum(self._last_step.tolist()))

    def _end_slope(self, rows: Array) -> None:
        """The slope of the cost at the end, with bounds there whose values are `rows`."""
        if not len(rows):
            self.linear.q[-1] = self._gradient
            return
        self._end_values[...] = rows
        self._slope_at_end()

    def longest(self) -> list[float]:
        """The longest steps of the unknowns and of the multipliers, and the slope of the objective along the step."""
        self._steps()
        if len(self._end_ds):
            self._end_steps()
        self._fold_limits()
        self.numbers["longest"][...] = self._longest
        if not len(self._end_ds):
            self.numbers["longest"][2] += self._gradient @ self._last_step
        for k, j in self._clocks:
            self.numbers["change"][0] = self.units.x[k, j] * self.sweep.x[k, j]
            self.numbers["span"][0] = self.it.x[k, self.stages.point_place(k, j)]
            self.decide["in_time"]()
        longest: list[float] = self.numbers["longest"].tolist()
        return longest

    def lengths(self) -> tuple[float, float]:
        """Those of both at which a search begins."""
        self.longest()
        self.decide["lengths"]()
        return self._alpha.item(), self._dual.item()

    def direction(self) -> Array:
        """The step of states, controls and multipliers in one piece."""
        step = self.sweep.found.copy()
        step[-self._duals.size :] -= self._duals
        return step

    def redirect(self, step: Array) -> None:
        self.sweep.found[...] = step
        self._new_duals += self._duals

    def keep(self) -> tuple[Array, Array]:
        """The step, for `again`."""
        return self.sweep.found.copy(), self._step.copy()

    def again(self, kept: tuple[Array, Array]) -> None:
        self.sweep.found[...], self._step[...] = kept

    def state(self) -> tuple[Array, ...]:
        """The iterate, for `return_to`."""
        return self._here.copy(), self._duals.copy()

    def return_to(self, state: tuple[Array, ...]) -> None:
        self._here[...], self._duals[...] = state

    def begin_corrections(self) -> None:
        it = self.it
        self._missed[...] = 0.0
        self._miss(self._here, it.path.slack, it.last.slack, self.first.c, self.last.c)

    def _miss(self, point: Array, slack: Array, end_slack: Array, start: Array, end: Array) -> None:
        """The residuals of the iterate, or of a trial, are added to those that a correction is for."""
        _, _, path, rows, at_start, at_end = self._missed_by
        count = len(self._missed) - len(start) - len(end)
        self._missed[:count] += point[len(point) - count :]
        path -= slack
        rows -= end_slack
        at_start += start
        at_end += end

    def correct(self, alpha: float) -> bool:
        """Solve for (1), where the last trial was at `alpha`."""
        began = time.perf_counter()
        self._missed *= alpha
        self._miss(self._there, self._new[3], self._new[4], self._new_start, self._new_end)
        gap, implicit, path, rows, start, end = self._missed_by
        lin, n = self.linear, self.linear.A.shape[1]
        lin.b[...], self.first.c[...], self.last.c[...] = gap, start, end
        if implicit.shape[1]:
            z_0 = self._steps_of_z(implicit)
            change = np.einsum("ki,kij->kj", z_0 - self._z_0, self._H_z)
            lin.q[:-1] += change[:, :n]
            lin.r += change[:, n:]
            self._z_0[...], self._d_0[...] = z_0, 0.0
            if z_0.any():
                lin.b += np.einsum("kij,kj->ki", self._F_z, z_0)
                self._d_0[...] = np.einsum("kij,kj->ki", self._D_z, z_0)
        self._d_used[...] = self.it.path.slack + path
        self._end_slope(self.it.last.slack + rows)
        found = self._solve()
        self.seconds["sweep"] += time.perf_counter() - began
        return found

    def _steps_of_z(self, implicit: Array) -> Array:
        """z_0 = -G^-1 c; a trial has brought c to nearly zero already, unless its stages are large."""
        if max(implicit.max(), -implicit.min()) <= tuning.SETTLED * max(
            self.linear.b.max(), -self.linear.b.min()
        ):
            return np.zeros(implicit.shape)
        return -np.linalg.solve(self._G, implicit[:, :, None])[:, :, 0]

    def with_cost(self, mu: float) -> Merit:
        """The iterate of a restoration, as the problem itself has it with the barrier `mu`."""
        self._scale[0], self.mu = self.scale, mu
        return self.try_(0.0)

    def estimate_multipliers(self) -> None:
        """Those of least squares, for the slopes that the cost and the bounds have at the iterate."""
        lin, n = self.linear, self.linear.A.shape[1]
        self._duals[...] = 0.0
        self.bounds.high[self.bounds.held > 0] = 0.0
        self.linearise()
        lin.Q[...], lin.N[...], lin.R[...] = np.eye(n), 0.0, np.eye(lin.R.shape[1])
        held, end_held = self.it.path.held, self.it.last.held
        if self.has_equations:  # their multipliers are unknowns as well
            H = np.matmul(np.swapaxes(lin.D, 1, 2), held[:, :, None] * lin.D)
            lin.Q[:-1] += H[:, :n, :n]
            lin.N += H[:, :n, n:]
            lin.R += H[:, n:, n:]
            lin.Q[-1] += self._end_D.T @ (end_held[:, None] * self._end_D)
        lin.q[:-1], lin.r[...] = self._slopes
        lin.q[-1] = self._gradient + self._end_D.T @ self.it.last.y
        lin.b[...], lin.push[...], self.first.c[...], self.last.c[...] = 0.0, 0.0, 0.0, 0.0
        try:
            self.sweep.solve()
        except Indefinite:
            return
        found, y = self._new_duals, np.zeros(len(self.bounds.high))
        if self.has_equations:
            w = np.concatenate([self.sweep.x[:-1], self.sweep.u], axis=1)[:, :, None]
            with np.errstate(invalid="ignore"):  # what is not finite is named after this
                moved = np.concatenate([np.matmul(lin.D, w).ravel(), self._end_D @ self._last_step])
                y = self.bounds.held * moved
        if max(np.abs(a).max(initial=0.0) for a in (found, y)) <= tuning.LARGEST_ESTIMATE:
            self._duals[...] = found
            self.bounds.high += y

    # --- along a step ---------------------------------------------------------------------------------------------

    def try_(self, alpha: float) -> Merit:
        """The iterate at `alpha` of the step."""
        began = time.perf_counter()
        self._alpha[0] = alpha
        self._trial()
        self._ends_trial()
        self._fold_totals()
        self.numbers["trial"][...] = self._total
        self.seconds["functions"] += time.perf_counter() - began
        return Merit(*self._total.tolist())

    def accept(self, alpha: float, dual: float) -> None:
        """Go to the trial, with the multipliers of the step at `alpha`, those of bounds at `dual`."""
        self._taken[0], self._dual[0] = alpha, dual
        if self._settle is not None:
            self._settle()
        if len(self._end_ds):
            self._settle_end()
        self._here[...] = self._there
        if alpha:
            self._duals += alpha * (self._new_duals - self._duals)

    def locate(self) -> str:
        """Where the functions are not finite, and the first of them by name."""
        lin, stages = self.linear, self.stages
        for part in stages.parts:
            own, where = part.stages, part.where
            states = [f"motion of {name}" for name in own.x_names]
            bounds = [f"bound on {name}" for name in own.path_names]
            blocks: list[tuple[list[str], Array]] = [
                (states, self._gap),
                (list(own.z_names), self._implicit),
                (bounds, self._d),
                ([f"the slope of {name}" for name in states], np.concatenate([lin.A, lin.B], axis=2)),
                ([f"the slope of {name}" for name in bounds], lin.D),
                (["the slope of the cost"], self._g[:, None]),
                (["the curvature"], lin.R.reshape(stages.count, 1, -1)),
                (["the motion"], lin.b[:, None]),
            ]
            for names, block in blocks:
                if not block.size:
                    continue
                bad = ~np.isfinite(block[where].reshape(own.count, len(names), -1)).all(axis=2)
                if bad.any():
                    k, row = (int(i) for i in np.argwhere(bad)[0])
                    when = stages.when(where.start + k, self.it.x)
                    hint = NO_SLOPE if names[row].startswith("the slope") else ""
                    return f"the functions are not finite in {when} (first {names[row]}){hint}"
        return "the functions are not finite"


def _alone(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Those of a single state."""
    return {name: a[None] for name, a in arrays.items()}


def _all(runs: list[Callable[[], Any]]) -> Callable[[], Any]:
    """One after the other."""
    if len(runs) == 1:
        return runs[0]

    def run() -> None:
        for one in runs:
            one()

    return run

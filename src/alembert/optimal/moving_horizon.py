"""Moving-horizon estimation: the motion over the last samples that fits sensors and model best, as a prepared problem.

Of the window's samples y_0 ... y_N with the efforts tau_k that were given between them, the estimate is the end of the
motion that makes

    1/2 |x_0 - x^|^2 (P^-1) + sum_k 1/2 |(u_k - tau_k) / process|^2 + sum_k 1/2 |(y_k - h(x_k)) / noise|^2           (1)

least, within `limits`; u_k - tau_k is an effort that nobody knows, held from sample to sample as in `StateFilter`, and all
differences are displacements. What is known of x_0 (x^ and P, the arrival cost) comes from an extended filter that follows
the window's beginning. For a linear model without limits (1) is the Kalman filter; with limits and nonlinear models it
uses what filters cannot: that the whole motion keeps its bounds, and that later samples correct earlier linearisations.
(Rao, Rawlings and Mayne, IEEE Trans. Automat. Contr. 48, 2003.)

While the window fills, its last intervals have no length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import whole
from alembert.errors import ArgumentError, NumericalError, UnsupportedError, interrupts_kept
from alembert.model import Model, Sensor
from alembert.model.printing import unknown
from alembert.optimal.conditions import Cost
from alembert.optimal.guess import Guess
from alembert.optimal.plant import Mechanics, Moment, depends_on_time
from alembert.optimal.problem import Problem
from alembert.optimal.schemes import TABLEAUS, Interval, RungeKutta, Stretch
from alembert.optimal.solve import SolverOptions, Transcribed
from alembert.optimal.stages import Ends
from alembert.simulate import Measured, Sampled, StateFilter
from alembert.simulate.controllers import Estimating, efforts_from
from alembert.simulate.elements import Places
from alembert.simulate.sensors import Instrument
from alembert.simulate.state_filters import StateEstimate, held_efforts
from alembert.spatial import quaternion

Array = np.ndarray


@dataclass(frozen=True)
class SampledCost(RungeKutta):
    """Runge and Kutta's method, with a cost that is a sum over nodes instead of an integral."""

    def interval(self, on: Stretch) -> Interval:
        return replace(super().interval(on), cost=on.problem.integrands(on.moment(on.t, on.x, on.u[0])))


@dataclass(frozen=True, eq=False)
class WindowEstimate:
    """The estimate (q, v), and the window that it comes from."""

    q: Array
    v: Array
    first: StateEstimate
    """what is known of the window's beginning, before its first sample"""
    last: StateEstimate
    """that of an extended filter for the same time, whose covariance is taken"""
    readings: tuple[Mapping[str, Array], ...] = ()
    efforts: tuple[Array, ...] = ()
    points: Array | None = None
    """(N + 1, nq + nv): the motion in the window"""
    controls: Array | None = None
    """(N, ...): the efforts that fit it"""
    status: str = "start"

    @property
    def deviations(self) -> Array:
        """Standard deviations of displacements and speeds."""
        return self.last.deviations


class MovingHorizonEstimator:
    """An estimator over a window of samples, used as `StateFilter`: `start`, `correct`, `predict`, or `controller`.

    Args:
        model: what moves; a tree, with any joints and flexible bodies.
        sensors: `Measured` sensors as `al.simulate` takes them, one period and one offset for all, with their `noise`; those
            of joints, gyros, points and frames.
        process: intensity of the white effort on each degree of freedom, as for `StateFilter`; those where it is zero are
            never pushed.
        window: intervals between samples in the window.
        limits: of the motion in the window, as `Problem` takes them: `{"q": ..., "v": ...}`; "tau" bounds known and unknown
            efforts together.
        parameters, gravity, forces: of the model in flight, as `al.simulate` takes them; they must not depend on the time.
        tolerance, iterations: of each solve; one that is not solved ends with a `NumericalError`.
    """

    def __init__(
        self,
        model: Model,
        sensors: Sequence[Measured] | Measured,
        *,
        process: Any,
        window: int = 20,
        limits: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        gravity: Any = None,
        forces: Any = (),
        tolerance: float = 1e-8,
        iterations: int = 100,
    ) -> None:
        whole("MovingHorizonEstimator", "window", window, "intervals from 1 on")
        self._options = SolverOptions(tolerance=tolerance, iterations=iterations, progress=False)
        if isinstance(limits, Mapping) and "rate" in limits:
            raise UnsupportedError(
                "MovingHorizonEstimator: limits: 'rate' bounds how fast controls change, which efforts that nobody knows do "
                "at will; bound 'tau'"
            )
        given: dict[str, Any] = {"parameters": parameters, "gravity": gravity, "forces": forces}
        try:
            self.filter = StateFilter(model, sensors, process=process, **given)
        except ArgumentError as error:
            raise ArgumentError(str(error).replace("StateFilter:", "MovingHorizonEstimator:")) from None
        self.model, self.dt, self.window = self.filter.model, self.filter.dt, window
        self._instruments = [self._exact(x) for x in self.filter.instruments]
        self._noisy = np.flatnonzero(self.filter.process)
        if not len(self._noisy):
            raise ArgumentError(
                "MovingHorizonEstimator: process is zero for all degrees of freedom, so that the motion follows from its "
                "start alone; give an intensity of unknown efforts"
            )
        self._sizes = [x.entries or 0 for x in self._instruments]
        n, N = 2 * self.model.nv, window
        inputs = {
            "samples": np.zeros((N + 1) * sum(self._sizes)),
            "there": np.zeros((N + 1) * len(self._instruments)),
            "given_efforts": np.zeros(N * len(self._noisy)),
            "prior": np.concatenate([self.model.neutral(), np.zeros(self.model.nv)]),
            "information": np.eye(n).ravel(),
        }
        names = self.model.speed_names
        self.problem = Problem(
            model,
            N * self.dt,
            cost=Cost((self._stage_cost,), (lambda s: self._misfit(s, N),)),
            limits=limits,
            actuated=[names[k] for k in self._noisy],
            parameters=parameters,
            inputs=inputs,
            forces=forces or None,
            gravity=gravity,
        )
        assert isinstance(self.problem.plant, Mechanics)
        if depends_on_time(self.problem.plant):
            raise UnsupportedError(
                "MovingHorizonEstimator: forces or gravity depend on the time, which begins at 0 in every window; leave "
                "them to the unknown efforts (`process`)"
            )
        with interrupts_kept():
            way = SampledCost("rk4", TABLEAUS["rk4"])
            self._transcribed = Transcribed(self.problem, way, N, None, at_run_time=True)

    # --- the cost ---------------------------------------------------------------------------------------------------

    def _exact(self, given: Instrument) -> Instrument:
        if not given.is_symbolic:
            raise UnsupportedError(
                f"MovingHorizonEstimator: {given.name!r} is an accelerometer, which reads the unknown efforts themselves; "
                "StateFilter takes it"
            )
        return Instrument.of(self.model, replace(given.given, quantum=0.0), ())

    def _of(self, s: Moment, name: str, k: int, size: int) -> ca.SX:
        """Record k of an input."""
        return getattr(s, name)[k * size : (k + 1) * size] if size else ca.SX(0, 1)

    def _stage_cost(self, s: Moment) -> ca.SX:
        """(1) at a sample of the window but the last one."""
        N, m = self.window, len(self._noisy)
        number = s.t / s.duration * N
        turns = [ca.fabs(number - k) < 0.5 for k in range(N)]

        def chosen(name: str, size: int) -> ca.SX:
            found = ca.SX.zeros(size)
            for k, turn in enumerate(turns):
                found += ca.if_else(turn, self._of(s, name, k, size), ca.SX.zeros(size))
            return found

        known = chosen("given_efforts", m)
        unknown_efforts = (s.controls - known) / ca.SX(self.filter.process[self._noisy])
        samples, there = chosen("samples", sum(self._sizes)), chosen("there", len(self._instruments))
        return (
            ca.sumsqr(unknown_efforts) / 2
            + self._of_readings(s, samples, there)
            + ca.if_else(turns[0], self._arrival(s), 0)
        )

    def _misfit(self, s: Moment, k: int) -> ca.SX:
        samples = self._of(s, "samples", k, sum(self._sizes))
        return self._of_readings(s, samples, self._of(s, "there", k, len(self._instruments)))

    def _arrival(self, s: Moment) -> ca.SX:
        nq, n = self.model.nq, 2 * self.model.nv
        d = ca.vertcat(self.model.space.difference(s.prior[:nq], s.q), s.v - s.prior[nq:])
        return ca.sumsqr(ca.reshape(s.information, n, n).T @ d) / 2

    def _of_readings(self, s: Moment, samples: ca.SX, there: ca.SX) -> ca.SX:
        p = s.model_parameters
        at = Places(self.model, s.t, s.q, s.v, ca.SX(0, 1) if p is None else p)
        total, start = ca.SX(0), 0
        for k, (one, size) in enumerate(zip(self._instruments, self._sizes, strict=True)):
            y = one.expression(at, ca.SX.zeros(one.width), ca.SX(1))
            off = self._apart(one, y, samples[start : start + size]) / ca.SX(one.noise)
            total += ca.if_else(there[k], ca.sumsqr(off) / 2, 0)
            start += size
        return total

    def _apart(self, one: Instrument, y: ca.SX, read: ca.SX) -> ca.SX:
        """From what a sensor should read to what it reads, as its errors are."""
        assert isinstance(one.sensor, Sensor)
        if one.sensor.kind == "frame":
            turn = quaternion.log(quaternion.multiply(quaternion.conjugate(y[3:]), read[3:]))
            return ca.SX(ca.vertcat(turn, read[:3] - y[:3]))
        if one.sensor.kind == "joint_position":
            return ca.SX(ca.vertcat(self.model.joint(one.sensor.target).type.difference(y, read)))
        return read - y

    # --- use --------------------------------------------------------------------------------------------------------

    def start(self, q: Any = None, v: Any = None, *, deviations: Any) -> WindowEstimate:
        """What is known before the first sample, as for `StateFilter.start`."""
        first = self.filter.start(q, v, deviations=deviations)
        return WindowEstimate(first.q, first.v, first, first)

    def correct(self, now: WindowEstimate, readings: Mapping[str, Any]) -> WindowEstimate:
        """With the samples of this time: by sensor, those that are missing or NaN were lost."""
        names = [x.name for x in self._instruments]
        if not isinstance(readings, Mapping):
            raise ArgumentError(f"correct: readings is {readings!r}, expected numbers by sensor")
        for name in readings:
            if name not in names:
                raise ArgumentError(unknown("correct: no sensor", str(name), names))
        taken = {}
        for name, x in readings.items():
            try:
                taken[name] = np.ravel(np.asarray(x, dtype=float))
            except (TypeError, ValueError):
                raise ArgumentError(f"correct: sensor {name!r} reads {x!r}, expected numbers") from None
        for name, size in zip(names, self._sizes, strict=True):
            if name in taken and len(taken[name]) != size:
                raise ArgumentError(
                    f"correct: sensor {name!r} reads {len(taken[name])} numbers, expected {size}"
                )
        if len(now.readings) > len(now.efforts):
            raise ArgumentError("correct: this sample was taken in already; predict() leads to the next one")
        last, _ = self.filter.correct(now.last, taken)
        return self._solved(replace(now, readings=(*now.readings, taken), last=last))

    def predict(self, now: WindowEstimate, efforts: Any = None) -> WindowEstimate:
        """One sample later, under efforts that are held."""
        model, N = self.model, self.window
        tau = held_efforts(model, efforts, "predict")
        if np.any(tau[self.filter.process == 0]):
            k = int(np.flatnonzero((self.filter.process == 0) & (tau != 0))[0])
            raise UnsupportedError(
                f"predict: {model.speed_names[k]!r} has an effort, and no unknown one (process is zero there); give a small "
                "intensity"
            )
        if len(now.readings) == len(now.efforts):
            now = replace(now, readings=(*now.readings, {}))  # no sample came
        first, readings, given = now.first, now.readings, (*now.efforts, tau)
        points, controls = now.points, now.controls
        if len(given) > N:
            one, _ = self.filter.correct(first, readings[0])
            first, readings, given = self.filter.predict(one, given[0]), readings[1:], given[1:]
            if points is not None and controls is not None:
                points, controls = (
                    np.vstack([points[1:], points[-1:]]),
                    np.vstack([controls[1:], controls[-1:]]),
                )
        moved = self.filter.predict(replace(now.last, q=now.q, v=now.v), tau)
        if points is not None and controls is not None:
            count = len(given)
            points, controls = points.copy(), controls.copy()
            points[count:] = np.concatenate([moved.q, moved.v])
            controls[count - 1 :] = tau[self._noisy]
        last = self.filter.predict(now.last, tau)
        return replace(
            now,
            q=moved.q,
            v=moved.v,
            first=first,
            last=last,
            readings=readings,
            efforts=given,
            points=points,
            controls=controls,
        )

    def controller(self, start: WindowEstimate, law: Any = None, *, name: str = "estimate") -> Sampled:
        """The estimator as a controller of `al.simulate`, as `StateFilter.controller`: at every sample `law(t, q, v)` is
        asked with the estimated state for efforts. `run.measurements` has the estimates under `name`."""
        if law is not None and not callable(law):
            raise ArgumentError(
                f"MovingHorizonEstimator.controller: law is {law!r}, expected a function u(t, q, v) or a Regulator"
            )
        memory = f"{name}.memory"
        read = [x.name for x in self._instruments]
        shape = self._packed(start)

        def sample(t: float, given: Mapping[str, Array]) -> dict[str, Any]:
            now = self.correct(self._unpacked(given[memory]), {key: given[key] for key in read})
            tau = np.zeros(self.model.nv)
            if law is not None:
                tau = efforts_from(self.model, law(t, now.q, now.v), "a law on estimates")
            return {
                "efforts": tau,
                name: np.concatenate([now.q, now.v]),
                f"{name}.deviations": now.deviations,
                memory: self._packed(self.predict(now, tau)),
            }

        first = {
            name: np.concatenate([start.q, start.v]),
            f"{name}.deviations": start.deviations,
            memory: shape,
        }
        estimating = Estimating(sample, {x.name: x for x in self.filter.instruments})
        return Sampled(estimating, self.dt, offset=self.filter.offset, reads=(*read, memory), posts=first)

    # --- solving ----------------------------------------------------------------------------------------------------

    def _samples(self, readings: Mapping[str, Array]) -> tuple[Array, Array]:
        """Numbers of all sensors, and which have delivered; those that have not, as anything that is finite."""
        found, there = [], []
        for one, size, neutral in zip(self._instruments, self._sizes, self._neutral, strict=True):
            x = readings.get(one.name)
            good = x is not None and bool(np.all(np.isfinite(x)))
            found.append(x if good and x is not None else neutral[:size])
            there.append(float(good))
        return np.concatenate(found), np.array(there)

    @property
    def _neutral(self) -> list[Array]:
        """Readings that no expression fails at: a pose has an orientation."""
        found = []
        for one, size in zip(self._instruments, self._sizes, strict=True):
            assert isinstance(one.sensor, Sensor)
            x = np.zeros(size)
            if one.sensor.kind == "frame":
                x[3] = 1.0
            elif one.sensor.kind == "joint_position":
                x = np.asarray(self.model.joint(one.sensor.target).type.neutral(), dtype=float)
            found.append(x)
        return found

    def _solved(self, now: WindowEstimate) -> WindowEstimate:
        """The end of the motion of (1)."""
        N, count, problem = self.window, len(now.efforts), self.problem
        told = [self._samples(x) for x in now.readings]
        nothing = self._samples({})
        along = [
            *told[:-1],
            *[nothing] * (N - count),
            told[-1],
        ]  # the last sample is at the end of the window
        efforts = np.zeros((N, len(self._noisy)))
        if count:
            efforts[:count] = np.array(now.efforts)[:, self._noisy]
        given = {
            "samples": np.concatenate([x for x, _ in along]),
            "there": np.concatenate([x for _, x in along]),
            "given_efforts": efforts.ravel(),
            "prior": np.concatenate([now.first.q, now.first.v]),
            "information": self._information(now.first.S).ravel(),
        }
        problem = problem.with_inputs(given)
        stages = self._transcribed.stages
        numbers = stages.numbers.copy()
        numbers[count:, 1] = 0.0
        parameters = np.concatenate([problem.parameters, Ends(problem).values()])
        stages = replace(stages, problem=problem, parameters=parameters, numbers=numbers)
        points, controls = now.points, now.controls
        if points is None or controls is None:
            points = np.tile(np.concatenate([now.q, now.v]), (N + 1, 1))
            controls = efforts
        fraction = np.arange(N + 1) / N
        guess = Guess(fraction, points, np.vstack([controls, controls[-1:]]), N * self.dt)
        with interrupts_kept():
            found = self._transcribed.solve(problem, stages, guess, self._options, is_judged=False)
        if not found.converged:
            raise NumericalError(
                f"MovingHorizonEstimator: the motion of the last {count + 1} samples was not found: {found.status}: "
                f"{found.message}"
            )
        x = found.x
        nq = self.model.nq
        return replace(
            now,
            q=x[-1, :nq].copy(),
            v=x[-1, nq:].copy(),
            points=x,
            controls=found.controls,
            status=found.status,
        )

    @staticmethod
    def _information(S: Array) -> Array:
        """The inverse of a root of the covariance."""
        sizes = np.linalg.norm(S, axis=1)
        if not np.all(sizes > 0):
            raise ArgumentError(
                "MovingHorizonEstimator: deviations at the start are zero for some errors; expected positive ones"
            )
        return np.linalg.inv(S / sizes[:, None]) / sizes

    # --- memory of a controller ---------------------------------------------------------------------------------------

    def _packed(self, x: WindowEstimate) -> Array:
        """All of an estimate as numbers, as long whatever is in the window."""
        model, N = self.model, self.window
        rows = np.full((N + 1, sum(self._sizes)), np.inf)  # as a sample that was lost
        for k, readings in enumerate(x.readings):
            rows[k] = np.concatenate(
                [
                    readings.get(one.name, np.full(size, np.inf))
                    for one, size in zip(self._instruments, self._sizes, strict=True)
                ]
            )
        efforts = np.zeros((N, model.nv))
        if x.efforts:
            efforts[: len(x.efforts)] = x.efforts
        points = np.zeros((N + 1, model.nq + model.nv)) if x.points is None else x.points
        controls = np.zeros((N, len(self._noisy))) if x.controls is None else x.controls
        counts = [len(x.readings), len(x.efforts), float(x.points is not None)]
        known = [part for e in (x.first, x.last) for part in (e.q, e.v, e.S.ravel())]
        parts = (rows, efforts, points, controls)
        return np.concatenate([counts, x.q, x.v, *known, *(part.ravel() for part in parts)])

    def _unpacked(self, flat: Array) -> WindowEstimate:
        model, N, n = self.model, self.window, 2 * self.model.nv
        nq, nv = model.nq, model.nv
        one = (nq, nv, n * n)
        sizes = (3, nq, nv, *one, *one, (N + 1) * sum(self._sizes), N * nv, (N + 1) * (nq + nv))
        counts, q, v, *rest = np.split(flat, np.cumsum(sizes))
        known = [StateEstimate(rest[k], rest[k + 1], np.zeros(0), rest[k + 2].reshape(n, n)) for k in (0, 3)]
        rows, efforts = rest[6].reshape(N + 1, -1), rest[7].reshape(N, nv)
        readings = []
        for row in rows[: int(counts[0])]:
            parts = np.split(row, np.cumsum(self._sizes)[:-1])
            readings.append({x.name: part for x, part in zip(self._instruments, parts, strict=True)})
        has = bool(counts[2])
        return WindowEstimate(
            q,
            v,
            known[0],
            known[1],
            tuple(readings),
            tuple(efforts[: int(counts[1])]),
            points=rest[8].reshape(N + 1, -1) if has else None,
            controls=rest[9].reshape(N, -1) if has else None,
        )

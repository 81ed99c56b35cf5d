"""Kalman filters for the state of a model, from its own sensors: extended and unscented, in tangent space, by square roots.

The error of an estimate (q, v) is a displacement in tangent space, so that quaternions stay quaternions:

    x = (q, v, p),      x + d = (q + d_q, v + d_v, p + d_p),      d ~ N(0, S S^T)                                    (1)

p are parameters of the model that are estimated along (a payload, a friction), as random walks. The process noise is an
effort on each degree of freedom, held over a step, of variance process^2/dt: white noise of intensity `process`^2. Both
filters send deviations through the model's own step (rk4) and sensors, and take the root of what comes back by an orthogonal
transformation (`alembert.control.quadratic`):

    extended      tangents: central differences along the columns of S, so small that they are derivatives             (2)
    unscented     points x +- c S_i, c^2 = N/(1 - w_0), of weights (1 - w_0)/2N, and w_0 in the middle; all weights are
                  positive, so that no root is ever downdated                                                           (3)

(Julier and Uhlmann 2004, "Unscented filtering and nonlinear estimation"; van der Merwe and Wan 2001, "The square-root
unscented Kalman filter"; on manifolds Hertzberg and others 2013.) After a correction the root is carried to the tangent
space of the new estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.arguments import check_known, numbers, real, unknown, whole
from alembert.control.quadratic import Correction, covariance_root, triangular_root
from alembert.control.quadratic import correction as corrected
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.model import Model, Sensor
from alembert.simulate.adaptive import coordinate_sizes
from alembert.simulate.controllers import Estimating, Sampled, efforts_from, told_law
from alembert.simulate.inputs import Inputs
from alembert.simulate.schemes import SCHEMES, Now, StatePoint
from alembert.simulate.sensors import Instrument, Measured
from alembert.simulate.simulation import Simulation
from alembert.simulate.step_code import SchemeManifold
from alembert.spatial import quaternion

Array = np.ndarray
KINDS = ("extended", "unscented")
SMALL = 1e-5
"""of the differences (2), in sizes of what is moved: an error of 1e-10 by curvature, and of 1e-11 by rounding"""
_MEANS = 20


@dataclass(frozen=True, eq=False)
class StateEstimate:
    """q, v and estimated parameters p, and the root S of the covariance of their errors, (1)."""

    q: Array
    v: Array
    p: Array
    S: Array

    @property
    def P(self) -> Array:
        return self.S @ self.S.T

    @property
    def deviations(self) -> Array:
        """Standard deviations: of displacements, speeds, and parameters."""
        return np.linalg.norm(self.S, axis=1)


def held_efforts(model: Model, given: Any, who: str) -> Array:
    """Of all degrees of freedom, which act from a sample to the next; none where they are not given."""
    tau = np.zeros(model.nv) if given is None else efforts_from(model, given, who)
    if not np.isfinite(tau).all():
        raise ArgumentError(f"{who}: efforts is {given!r}, expected finite numbers")
    return tau


class StateFilter:
    """A filter that knows the model; `correct` and `predict` alone, or `controller` for `al.simulate`.

    Args:
        model: what moves; a tree, with any joints and flexible bodies.
        sensors: `Measured` sensors as `al.simulate` takes them, one period and one offset for all, which are those of the
            filter; their `noise` is what the filter expects.
        process: intensity of the white effort on each degree of freedom [N m sqrt(s), N sqrt(s)]: a number, (nv,), or by
            joint.
        kind: "extended" or "unscented".
        estimate: parameters of the model that are estimated along.
        drift: how fast these walk, per square root of a second, by name; zero for constants.
        center: the weight w_0 of the middle point of (3), from 0 to less than 1.
        steps: of rk4 from sample to sample.
        parameters, gravity, forces: of the model in flight, as `al.simulate` takes them.
    """

    def __init__(
        self,
        model: Model,
        sensors: Sequence[Measured] | Measured,
        *,
        process: Any,
        kind: str = "extended",
        estimate: Sequence[str] = (),
        drift: Mapping[str, float] | None = None,
        center: float = 0.0,
        steps: int = 1,
        parameters: Mapping[str, Any] | None = None,
        gravity: Any = None,
        forces: Any = (),
    ) -> None:
        if kind not in KINDS:
            raise ArgumentError(f"StateFilter: kind is {kind!r}, expected one of {', '.join(KINDS)}")
        if model.is_constrained:
            held = model.constrained_compute.rows.names[0]
            raise UnsupportedError(
                f"StateFilter: a model with loops, couplings or equations ({held!r}): its speeds are not independent, and "
                "neither are their errors. Estimate the tree without them, or describe the mechanism in independent "
                "coordinates"
            )
        if not 0 <= center < 1:
            raise ArgumentError(f"StateFilter: center is {center!r}, expected a weight from 0 to less than 1")
        whole("StateFilter", "steps", steps, "a whole number from 1")
        inputs = Inputs(parameters=parameters, gravity=gravity, forces=forces)
        self.model = inputs.model(model)
        self.kind, self.center, self.steps = kind, float(center), steps
        self._given = dict(parameters or {})
        self.estimated = (estimate,) if isinstance(estimate, str) else tuple(estimate)
        for name in self.estimated:
            if name not in self.model.parameter_values:
                raise ArgumentError(
                    unknown("StateFilter: estimate: no parameter", str(name), self.model.parameter_values)
                )
        _once("estimate", self.estimated)
        self._drift = self._walks(drift or {})
        self._system = Simulation(self.model, inputs, ())
        listed = (sensors,) if isinstance(sensors, Measured) else tuple(sensors)
        self.instruments = tuple(self._instrument(given) for given in listed)
        _once("sensors", [x.name for x in self.instruments])
        periods = sorted({x.given.period for x in self.instruments})
        if len(periods) != 1:
            told = ", ".join(f"{x.name!r} {x.given.period:g} s" for x in self.instruments) or "none"
            raise ArgumentError(f"StateFilter: the periods of the sensors are {told}; expected one for all")
        self.dt = periods[0]
        offsets = [x.given.offset for x in self.instruments]
        if min(offsets) < max(offsets):
            told = ", ".join(f"{x.name!r} {x.given.offset:g} s" for x in self.instruments)
            raise ArgumentError(f"StateFilter: the offsets of the sensors are {told}; expected one for all")
        self.offset = offsets[0]
        self._noise = np.concatenate([x.noise for x in self.instruments])
        self.process = self._intensities(process) / np.sqrt(self.dt)
        """(nv,): standard deviations of the unknown efforts that are held over a step"""
        self._manifold = SchemeManifold(self.model)
        self._curved = bool(np.any(self.model.space.curved))

    # --- reading ----------------------------------------------------------------------------------------------------

    def _walks(self, drift: Mapping[str, float]) -> Array:
        for name, value in drift.items():
            if name not in self.estimated:
                raise ArgumentError(
                    unknown("StateFilter: drift: no estimated parameter", str(name), self.estimated)
                )
            real("StateFilter", f"drift of {name!r}", value, "zero or a positive number", least=0.0)
        return np.array([float(drift.get(name, 0.0)) for name in self.estimated])

    def _instrument(self, given: Any) -> Instrument:
        if not isinstance(given, Measured):
            raise ArgumentError(f"StateFilter: sensors has {given!r}, expected Measured(sensor, period, ...)")
        found = Instrument.of(self.model, given, ())
        if not isinstance(found.sensor, Sensor):
            raise UnsupportedError(
                f"StateFilter: {found.name!r} is a sensor of its own kind, which the filter cannot foretell; take sensors "
                "of the model"
            )
        if given.delay:
            raise UnsupportedError(
                f"StateFilter: {found.name!r} delivers {given.delay:g} s late; the filter takes samples as they are made. "
                "Leave the delay out, or delay the law (Sampled(..., delay=...))"
            )
        if not np.all(found.noise > 0):
            raise ArgumentError(
                f"StateFilter: {found.name!r} has no noise; give Measured(noise=...) its standard deviation"
            )
        return found

    def _intensities(self, process: Any) -> Array:
        model = self.model
        if isinstance(process, Mapping):
            found = model.velocity(
                {name: numbers("StateFilter", f"process[{name!r}]", x) for name, x in process.items()}
            )
        else:
            found = model.compute.numbers("StateFilter", "process", process)
            found = np.full(model.nv, float(found)) if found.ndim == 0 else found
        if found.shape != (model.nv,) or not np.all(np.isfinite(found)) or np.any(found < 0):
            raise ArgumentError(
                f"StateFilter: process is {process!r}, expected zero or positive: a number, {model.nv} numbers, or by joint"
            )
        return found

    # --- states -----------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of errors: displacements, speeds and estimated parameters."""
        return 2 * self.model.nv + len(self.estimated)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the errors."""
        speeds = self.model.speed_names
        return (*(f"q:{x}" for x in speeds), *(f"v:{x}" for x in speeds), *self.estimated)

    def start(self, q: Any = None, v: Any = None, *, deviations: Any, **parameters: float) -> StateEstimate:
        """What is known before the first sample: standard deviations of all errors (a number, or one each), or their
        covariance matrix; estimated parameters have their values, or those given by name."""
        model = self.model
        q = model.neutral() if q is None else model.configuration(q) if isinstance(q, Mapping) else q
        v = np.zeros(model.nv) if v is None else model.velocity(v) if isinstance(v, Mapping) else v
        q = model.compute.numbers("start", "q", q, model.nq)
        v = model.compute.numbers("start", "v", v, model.nv)
        for name in parameters:
            check_known("start: no estimated parameter", name, self.estimated)
        known = {**self.model.parameter_values, **self._given, **parameters}
        given = numbers("start", "deviations", deviations)
        if given.ndim < 2 and np.any(given < 0):
            raise ArgumentError(f"start: deviations is {deviations!r}, expected numbers from zero on")
        S = covariance_root("start", "deviations", given if given.ndim == 2 else given**2, self.names)
        return StateEstimate(q, v, np.array([float(known[name]) for name in self.estimated]), S)

    def error(self, estimate: StateEstimate, q: Any, v: Any, p: Any = ()) -> Array:
        """d of (1) that leads from the estimate to a true state."""
        return self._away(estimate, (np.asarray(q), np.asarray(v), np.asarray(p, dtype=float)))

    def nees(self, estimate: StateEstimate, q: Any, v: Any, p: Any = ()) -> float:
        """The error squared, in units of its covariance: of a filter that fits, on average as many as `size`."""
        return float(np.sum(np.linalg.lstsq(estimate.S, self.error(estimate, q, v, p), rcond=None)[0] ** 2))

    # --- the two halves of a filter -----------------------------------------------------------------------------------

    def predict(self, estimate: StateEstimate, efforts: Any = None, *, t: float = 0.0) -> StateEstimate:
        """The estimate one sample later, under efforts that are held."""
        nv, k = self.model.nv, len(self.estimated)
        tau = held_efforts(self.model, efforts, "StateFilter.predict")
        noisy = np.flatnonzero(self.process)
        root = np.zeros((self.size + len(noisy), self.size + len(noisy)))
        root[: self.size, : self.size] = estimate.S
        root[self.size :, self.size :] = np.diag(self.process[noisy])

        def step(d: Array) -> tuple[Array, Array, Array]:
            push = np.zeros((*d.shape[:-1], nv))
            push[..., noisy] = d[..., self.size :]
            return self._step(self._moved(estimate, d[..., : self.size]), tau + push, t)

        pushes = np.diag(self.model.mass_matrix(estimate.q, parameters=self._values(estimate.p)))
        sizes = self._sizes(estimate)
        # an effort that changes the speed by its size within a step: the motion is linear in efforts
        sizes = np.concatenate([sizes, (np.abs(pushes) * sizes[nv : 2 * nv] / self.dt)[noisy]])
        columns, middle = self._spread(root, step, sizes)
        mean: Any
        if self.kind == "extended":
            mean, deviations = middle, self._slopes(columns, lambda x: self._away_from(middle, x))
        else:
            points, weights = columns
            mean = tuple(x[0] for x in points)
            for _ in range(_MEANS):
                away = self._away_from(mean, points)
                shift = weights @ away
                mean = self._shifted(mean, shift)
                if np.abs(shift).max() <= 1e-13 * (1 + np.abs(mean[1]).max(initial=0.0)):
                    break
            deviations = (np.sqrt(weights)[:, None] * self._away_from(mean, points)).T
        walk = np.zeros((self.size, k))
        walk[2 * nv :] = np.diag(self._drift * np.sqrt(self.dt))
        q, v, p = mean
        return StateEstimate(q, v, p, triangular_root(np.hstack([deviations, walk])))

    def correct(
        self, estimate: StateEstimate, readings: Mapping[str, Any], *, efforts: Any = None, t: float = 0.0
    ) -> tuple[StateEstimate, Correction]:
        """The estimate with samples taken in: by sensor, as it delivers them; those that are missing or NaN were lost."""
        for name in readings:
            if name not in [x.name for x in self.instruments]:
                raise ArgumentError(
                    unknown("correct: no sensor", str(name), [x.name for x in self.instruments])
                )
        known = {name: numbers("correct", f"the sample of {name!r}", x) for name, x in readings.items()}
        there = [x for x in self.instruments if x.name in known and np.all(np.isfinite(known[x.name]))]
        if not there:
            nothing = Correction(np.zeros(self.size), estimate.S, np.zeros(0), np.zeros((0, 0)))
            return estimate, nothing
        tau = held_efforts(self.model, efforts, "StateFilter.correct")
        about = self._told(there, (estimate.q, estimate.v, estimate.p), tau, t)

        def told(d: Array) -> Array:
            return self._apart(there, about, self._told(there, self._moved(estimate, d), tau, t))

        read = [known[x.name] for x in there]
        for one, given, expected in zip(there, read, about, strict=True):
            if given.size != np.size(expected):
                raise ArgumentError(
                    f"correct: sensor {one.name!r} reads shape {given.shape}, expected {np.shape(expected)}"
                )
        innovation = self._apart(
            there, about, [x.reshape(np.shape(y)) for x, y in zip(read, about, strict=True)]
        )
        columns, _ = self._spread(estimate.S, told, self._sizes(estimate))
        if self.kind == "extended":
            X, Y = estimate.S, self._slopes(columns, lambda y: y)
        else:
            points, weights = columns
            mean = weights @ points
            innovation = innovation - mean
            Y = (np.sqrt(weights)[:, None] * (points - mean)).T
            X = estimate.S @ (np.sqrt(weights)[:, None] * self._directions(self.size)).T
        noise = np.diag(np.concatenate([x.noise for x in there]))
        found = corrected(X, Y, noise, innovation)
        after = self._shifted((estimate.q, estimate.v, estimate.p), found.change)
        S = found.S
        if self._curved:  # the root in the tangent space of the new estimate
            columns = self._small(S, self._sizes(estimate))

            def carried(sign: int) -> Array:
                moved = self._moved(estimate, found.change + sign * columns[0].T)
                return self._away_from(after, moved)

            S = triangular_root(((carried(1) - carried(-1)) / (2 * columns[1][:, None])).T)
        return StateEstimate(*after, S), found

    def controller(self, start: StateEstimate, law: Any = None, *, name: str = "estimate") -> Sampled:
        """The filter as a controller of `al.simulate`: at every sample it takes the sensors in, asks
        `law(t, q, v)` with the *estimated* state for efforts (none without a law), and foretells the next sample.

        `run.measurements` has the estimates (q, v, parameters) under `name`, and the standard deviations of their errors
        under `name.deviations`. Give `al.simulate` the same sensors.
        """
        if law is not None and not callable(law):
            raise ArgumentError(
                f"StateFilter.controller: law is {told_law(law)}, expected a function u(t, q, v), or a Regulator as "
                "al.linear.lqr and al.linear.place_poles make it"
            )
        memory = f"{name}.memory"
        read = [x.name for x in self.instruments]

        def sample(t: float, given: Mapping[str, Array]) -> dict[str, Any]:
            now, held = self._unpacked(given[memory])
            now, _ = self.correct(now, {key: given[key] for key in read}, efforts=held, t=t)
            tau = np.zeros(self.model.nv)
            if law is not None:
                tau = efforts_from(self.model, law(t, now.q, now.v), "a law on estimates")
            return {
                "efforts": tau,
                name: np.concatenate([now.q, now.v, now.p]),
                f"{name}.deviations": now.deviations,
                memory: self._packed(self.predict(now, tau, t=t), tau),
            }

        first = {
            name: np.concatenate([start.q, start.v, start.p]),
            f"{name}.deviations": start.deviations,
            memory: self._packed(start, np.zeros(self.model.nv)),
        }
        estimating = Estimating(sample, {x.name: x for x in self.instruments})
        return Sampled(estimating, self.dt, offset=self.offset, reads=(*read, memory), posts=first)

    # --- pieces -----------------------------------------------------------------------------------------------------

    def _packed(self, x: StateEstimate, tau: Array) -> Array:
        return np.concatenate([x.q, x.v, x.p, tau, x.S[np.tril_indices(self.size)]])

    def _unpacked(self, flat: Array) -> tuple[StateEstimate, Array]:
        nq, nv, k = self.model.nq, self.model.nv, len(self.estimated)
        q, v, p, tau, root = np.split(flat, np.cumsum([nq, nv, k, nv]))
        S = np.zeros((self.size, self.size))
        S[np.tril_indices(self.size)] = root
        return StateEstimate(q, v, p, S), tau

    def _spread(self, root: Array, function: Any, sizes: Array) -> tuple[Any, Any]:
        """Values of a function of deviations: (plus, minus, lengths) of tangents and the middle, or points and weights."""
        if self.kind == "extended":
            columns, lengths = self._small(root, sizes)
            moved = np.concatenate([columns.T, -columns.T, np.zeros((1, len(root)))])
            found = function(moved)
            parts = found if isinstance(found, tuple) else (found,)
            n = len(lengths)
            split = [tuple(x[a:b] for x in parts) for a, b in ((0, n), (n, 2 * n))]
            middle = tuple(x[-1] for x in parts)
            plain = [x if isinstance(found, tuple) else x[0] for x in split]
            return (plain[0], plain[1], lengths), middle
        directions = self._directions(len(root))
        n = len(root)
        weights = np.full(2 * n, (1 - self.center) / (2 * n))
        if self.center:
            weights = np.concatenate([[self.center], weights])
        return (function(directions @ root.T), weights), None

    def _directions(self, n: int) -> Array:
        c = np.sqrt(n / (1 - self.center))
        middle = np.zeros((1 if self.center else 0, n))
        return np.concatenate([middle, c * np.eye(n), -c * np.eye(n)])

    def _sizes(self, x: StateEstimate) -> Array:
        """Of displacements, speeds and parameters, on which differences are seen: one, or an orbit's radius and speed."""
        model = self.model
        places = coordinate_sizes(model, x.q)
        speeds = np.maximum(1.0, 1e-2 * places)  # what they move within a step is seen on places too
        for o in model.space:
            units = np.array([unit for _, unit in o.type.speeds])
            for unit in set(units.tolist()):
                here = np.flatnonzero(units == unit) + o.v.start
                speeds[here] = np.maximum(speeds[here], np.abs(x.v[here]).max())
        return np.concatenate([np.maximum(places, 1.0), speeds, np.where(x.p != 0, np.abs(x.p), 1.0)])

    def _small(self, root: Array, sizes: Array) -> tuple[Array, Array]:
        """Columns made so short that differences are derivatives, and by how much."""
        largest = (np.abs(root) / sizes[:, None]).max(axis=0)
        lengths = SMALL / np.where(largest > 0, largest, 1.0)
        return root * lengths, lengths

    def _slopes(self, columns: Any, away: Any) -> Array:
        plus, minus, lengths = columns
        return np.asarray(((away(plus) - away(minus)) / (2 * lengths[:, None])).T)

    def _moved(self, x: StateEstimate, d: Array) -> tuple[Array, Array, Array]:
        return self._shifted((x.q, x.v, x.p), d)

    def _shifted(self, x: Any, d: Array) -> tuple[Array, Array, Array]:
        nv = self.model.nv
        e = np.ascontiguousarray(d[..., :nv])
        return self.model.integrate(x[0], e), x[1] + d[..., nv : 2 * nv], x[2] + d[..., 2 * nv :]

    def _away(self, x: StateEstimate, y: Any) -> Array:
        return self._away_from((x.q, x.v, x.p), y)

    def _away_from(self, x: Any, y: Any) -> Array:
        q = np.ascontiguousarray(y[0])
        return np.concatenate([self.model.difference(x[0], q), y[1] - x[1], y[2] - x[2]], axis=-1)

    def _values(self, p: Array) -> dict[str, Any] | None:
        found = {**self._given, **{name: p[..., k].copy() for k, name in enumerate(self.estimated)}}
        return found or None

    def _step(self, x: Any, tau: Array, t: float) -> tuple[Array, Array, Array]:
        """The model's own step, on a batch of states."""
        q, v, p = x
        system, h = self._system, self.dt / self.steps
        system.own_parameters = self._values(p)
        for n in range(self.steps):
            q, v, _ = SCHEMES["rk4"].step(Now(t + n * h, q, v, ()), h, self._at(tau), self._manifold)
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise NumericalError(
                f"StateFilter: a step of {h:g} s from t = {t:g} s is not finite: the estimate has gone astray, or the step "
                "is too long; take more steps= or larger deviations at the start"
            )
        return q, v, np.broadcast_to(p, (*q.shape[:-1], p.shape[-1]))

    def _at(self, tau: Array) -> Any:
        return lambda t, q, v: StatePoint(t, q, v, self._system.point(t, q, v, tau).a)

    def _told(self, instruments: Sequence[Instrument], x: Any, tau: Array, t: float) -> list[Array]:
        """What sensors read at a batch of states."""
        q, v, p = x
        self._system.own_parameters = self._values(p)
        return [one.truth(self._system, t, q, v, tau) for one in instruments]

    def _apart(self, instruments: Sequence[Instrument], a: list[Array], b: list[Array]) -> Array:
        """From readings a to readings b, (..., errors)."""
        parts = []
        for one, x, y in zip(instruments, a, b, strict=True):
            assert isinstance(one.sensor, Sensor)
            if one.sensor.kind == "frame":
                parts.append(_pose_error(x, y))
            elif one.sensor.kind == "joint_position":
                parts.append(self._joint_error(one.sensor.target, x, y))
            else:
                parts.append(y - x)
        return np.concatenate(parts, axis=-1)

    def _joint_error(self, joint: str, x: Array, y: Array) -> Array:
        model = self.model
        if model.joint(joint).type.is_vector_space:
            return y - x
        a, b = (np.array(np.broadcast_to(model.neutral(), (*z.shape[:-1], model.nq))) for z in (x, y))
        a[..., model.q_slice(joint)], b[..., model.q_slice(joint)] = x, y
        return np.asarray(model.difference(a, b)[..., model.v_slice(joint)])


def _once(what: str, names: Sequence[str]) -> None:
    """What is there twice would count twice."""
    for name in names:
        if list(names).count(name) > 1:
            raise ArgumentError(f"StateFilter: {what} has {name!r} more than once")


def _pose_error(x: Array, y: Array) -> Array:
    """Small rotation in the moved frame, and translation, as sensors of frames have errors."""
    batch = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    a, b = (np.broadcast_to(z, (*batch, 7)).reshape(-1, 7) for z in (x, y))
    turns = [
        quaternion.log(quaternion.multiply(quaternion.conjugate(m), n))
        for m, n in zip(a[:, 3:], b[:, 3:], strict=True)
    ]
    return np.concatenate([np.array(turns).reshape(*batch, 3), y[..., :3] - x[..., :3]], axis=-1)

"""A controller with states (`DynamicController`) on a model: which quantity of the model each of its
inputs reads, where its outputs act, and all of it as one CasADi function for the compiled loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known, unknown
from alembert.control.scheduling import GainSchedule
from alembert.control.statespace import StateSpace
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import Expression, evaluate
from alembert.linear import quantities
from alembert.linear.quantities import Output, expressions, find
from alembert.model import Model, Sensor
from alembert.simulate.actuators import JointDrives
from alembert.simulate.controllers import DynamicController, tracking_gain
from alembert.simulate.elements import Places, function_kernel, state_symbols
from alembert.simulate.inputs import Table
from alembert.simulate.sensors import Measured
from alembert.spatial import quaternion, so3

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LawAlone:
    """`function(t, y, r, x)` gives outputs u and x' or the next x; y by name with units, set points r with their numbers."""

    function: ca.Function
    measured: Mapping[str, str]
    set_points: Mapping[str, float]


class BoundController:
    """A controller on a model: which row of outputs, reading or reference each input is, and where outputs act."""

    def __init__(
        self, controller: DynamicController, model: Model, drives: JointDrives | None, sensors: Sequence[Any]
    ) -> None:
        self.controller, self.model, self.drives = controller, model, drives
        self.about = controller.about
        self.size = len(controller.states)
        self.q0 = model.neutral() if self.about is None else self.about.q
        if len(self.q0) != model.nq:
            raise ArgumentError(
                f"simulate: {controller.name!r}: about is a linear model of {self.about.model.name!r} with "  # type: ignore[union-attr]
                f"{len(self.q0)} coordinates, expected one of {model.name!r} with {model.nq}"
            )
        self.measured = {x.name: x for x in sensors if isinstance(x, Measured)}
        self.rows: dict[str, Output] = {}
        self.reads: list[str] = []
        """sensors whose samples it takes"""
        self._sort_inputs()
        self._sort_outputs()

    # --- signals ------------------------------------------------------------------------------------------------

    def _sort_inputs(self) -> None:
        K = self.controller
        units = getattr(K.law, "input_units", None) or getattr(K.law, "systems", [None])[0]
        units = getattr(units, "input_units", units) or ("",) * len(K.inputs)
        names = list(K.inputs)
        if isinstance(K.law, GainSchedule) and K.law.signal != "t":
            names.append(K.law.signal)
        self._names = tuple(dict.fromkeys(names))
        """of the inputs, and of what a schedule goes by"""
        for k, name in enumerate(names):
            row = self._row(name)
            if row is None:
                if name in K.references:
                    continue
                known = [
                    *K.references,
                    *(f"q:{x}" for x in self.model.speed_names),
                    *(s.name for s in self.model.sensors),
                ]
                sentence = f"simulate: {K.name!r} reads what is no output of the model and no reference:"
                hint = "; its .renamed(inputs=[...], outputs=[...]) names them after the model's"
                raise ArgumentError(unknown(sentence, name, known) + hint)
            self._check_row(name, row)
            unit = units[k] if k < len(K.inputs) else ""
            if unit and row.unit and unit != row.unit:
                raise ArgumentError(
                    f"simulate: {K.name!r} takes {name!r} in {unit}, the model gives it in {row.unit}; scale the "
                    "controller's input, or correct its input_units"
                )
            self.rows[name] = row
        for name in K.references:
            check_known(f"simulate: {K.name!r}: references: it has no input", name, names)

    def _row(self, name: str) -> Output | None:
        row = find(self.model, name, "simulate")
        if row is not None:
            return row
        for sensor in (x.sensor for x in self.measured.values() if isinstance(x.sensor, Sensor)):
            row = find(self._with_sensor(sensor), name, "simulate")
            if row is not None:
                return row
        return None

    def _with_sensor(self, sensor: Sensor) -> Model:
        return self.model.replace(sensors=(*self.model.sensors, sensor))

    def _sensor_of(self, name: str) -> str | None:
        """The sensor whose samples an input takes."""
        for sensor in sorted(self.measured, key=len, reverse=True):
            if name in (sensor, f"sensor:{sensor}") or name.removeprefix("sensor:").startswith(f"{sensor}."):
                return sensor
        return None

    def _check_row(self, name: str, row: Output) -> None:
        K, sensor = self.controller, self._sensor_of(name)
        if sensor is not None:
            given = self.measured[sensor]
            if not K.is_sampled:
                raise ArgumentError(
                    f"simulate: {K.name!r} is continuous, the sensor {sensor!r} gives a sample every {given.period:g} s; "
                    f"take al.control.c2d(K, {given.period:g}), or leave the sensor out of sensors="
                )
            if given.period > K.dt * (1 + 1e-9):
                raise ArgumentError(
                    f"simulate: {K.name!r} takes a sample every {K.dt:g} s, the sensor {sensor!r} gives one every "
                    f"{given.period:g} s; design the controller at the sensor's rate"
                )
            if sensor not in self.reads:
                self.reads.append(sensor)
        elif row.quantity in ("acceleration", "specific_force") or row.kind == "a":
            raise UnsupportedError(
                f"simulate: {K.name!r} takes the acceleration {name!r} as it acts on it at the same moment; sample the "
                "controller and give the sensor in sensors=[Measured(...)]"
            )

    def _sort_outputs(self) -> None:
        """Where outputs act: (degree of freedom, gear) or (frame, component)."""
        K, model = self.controller, self.model
        units = getattr(K.law, "output_units", None) or getattr(K.law, "systems", [None])[0]
        units = getattr(units, "output_units", units) or ("",) * len(K.outputs)
        known = quantities.actuators(model)
        self.targets: list[tuple[Any, Any]] = []
        values = dict(model.parameter_values)
        for name, unit in zip(K.outputs, units, strict=True):
            found = None
            for candidate in (name, f"wrench:{name}"):
                try:
                    found = quantities.inputs(model, [candidate], values, "simulate", self.q0)
                    break
                except ArgumentError:
                    continue
            if found is None or len(found.names) != 1:
                names = [*known, *model.space.joint_speed_names]
                raise ArgumentError(
                    unknown(
                        f"simulate: {K.name!r} acts on what is no actuator, degree of freedom or wrench:",
                        name,
                        names,
                    )
                )
            if unit and found.units[0] and unit != found.units[0]:
                raise ArgumentError(
                    f"simulate: {K.name!r} gives {name!r} in {unit}, the model takes it in {found.units[0]}; scale the "
                    "controller's output, or correct its output_units"
                )
            if found.wrenches:
                self.targets.append(found.wrenches[0][1:])
            else:
                gear = found.actuators[0].gear if found.actuators else 1.0
                k = int(np.flatnonzero(found.matrix[:, 0])[0]) if np.any(found.matrix) else 0
                self.targets.append((k, gear))
        for name in K.limits:
            check_known(f"simulate: {K.name!r}: limits: it has no output", name, K.outputs)

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """(low, high) of the outputs, the efforts of the point included."""
        K = self.controller
        high = np.full(len(K.outputs), np.inf)
        if self.drives is not None:
            for j, (where, gear) in enumerate(self.targets):
                if isinstance(where, int) and isinstance(gear, int | float):
                    high[j] = self.drives.limit[where] / abs(gear)
        low = -high
        for name, given in K.limits.items():
            j = tuple(K.outputs).index(name)
            try:
                pair = np.asarray(given, dtype=float)
            except (TypeError, ValueError):
                pair = np.zeros(3)
            pair = np.array([-pair, pair]) if pair.ndim == 0 else pair
            if pair.shape != (2,) or not pair[0] < pair[1]:
                raise ArgumentError(
                    f"simulate: {K.name!r}: the limit of {name!r} is {given!r}, expected a positive number or (low, high)"
                )
            low[j], high[j] = pair
        return low, high

    @property
    def breaks(self) -> Array:
        """Times at which it jumps."""
        K = self.controller
        found = [x.breaks for x in K.references.values() if isinstance(x, Table)]
        if isinstance(K.law, GainSchedule) and K.law.signal == "t":
            found.append(K.law.values)
        return np.unique(np.concatenate([np.zeros(0), *found]))

    # --- the law as a function --------------------------------------------------------------------------------------

    @cached_property
    def function(self) -> ca.Function:
        """(t, q, v, x, parameters, readings) -> efforts (nv), and x' or the next x."""
        given = self.parts.sx_in()
        asked, pushed, rate = self.parts(*given)
        return ca.Function("controller", given, [asked + pushed, rate])

    @cached_property
    def parts(self) -> ca.Function:
        """The same with efforts that are asked of drives and those of wrenches on frames, which no drive carries out."""
        model, K = self.model, self.controller
        t, q, v, p = state_symbols(model)
        x = ca.SX.sym("x", self.size)
        readings = {name: ca.SX.sym(name, self._reading_size(name)) for name in self.reads}
        names = list(self.rows)
        own = [name for name in names if self._sensor_of(name) not in readings]
        signals = dict(
            zip(own, expressions(model, [self.rows[n] for n in own], q, v, p, about=self.q0), strict=True)
        )
        signals |= {name: self._reading(name, readings) for name in names if name not in signals}
        zero = self._point(names)
        given = {name: self._reference(name, t, p) for name in self._names if name in K.references}
        u0, rest = self._offset()
        w, rate = self._step(t, self._fed(signals, given, zero), x, u0, self._schedule(t, given | signals))
        asked, pushed = self._efforts(w, t, q, v, p)
        flat = ca.vertcat(ca.SX(0, 1), *readings.values())
        results = [ca.densify(y) for y in (asked + rest, pushed, rate)]
        return ca.Function("controller", [t, q, v, x, p, flat], results)

    def _fed(self, signals: Mapping[str, Any], given: Mapping[str, Any], zero: Mapping[str, Any]) -> ca.SX:
        """What the law takes: of what is measured its deviation from a set point that is `given`, or from the point."""
        y = [
            signals[name] - (given[name] if name in given else zero[name])
            if name in self.rows
            else given[name]
            for name in self.controller.inputs
        ]
        return ca.vertcat(ca.SX(0, 1), *y)

    def _schedule(self, t: ca.SX, signals: Mapping[str, Any]) -> Any:
        """The signal of a schedule of gains."""
        law = self.controller.law
        if not isinstance(law, GainSchedule):
            return None
        return t if law.signal == "t" else signals[law.signal]

    def alone(self) -> LawAlone:
        """The law without the model, for a controller that runs elsewhere: of what is measured, and of its set points."""
        K = self.controller
        t, x = ca.SX.sym("t"), ca.SX.sym("x", self.size)
        zero, p = self._point(list(self.rows)), ca.DM(self.model.compute.parameter_defaults)
        measured = {name: ca.SX.sym("y") for name in self.rows}
        points: dict[str, tuple[ca.SX, float]] = {}
        given = {}
        for name in self._names:
            value = K.references.get(name)
            if isinstance(value, int | float | np.number):
                points[name] = (ca.SX.sym("r"), float(value))
                given[name] = points[name][0]
            elif name in K.references:
                given[name] = self._reference(name, t, ca.SX(p))
        u0, _ = self._offset()
        w, following = self._step(
            t, self._fed(measured, given, zero), x, u0, self._schedule(t, given | measured)
        )
        arguments = {
            "t": t,
            "y": ca.vertcat(ca.SX(0, 1), *measured.values()),
            "r": ca.vertcat(ca.SX(0, 1), *(r for r, _ in points.values())),
            "x": x,
        }
        function = ca.Function(
            "law",
            list(arguments.values()),
            [ca.densify(w), ca.densify(following)],
            list(arguments),
            ["u", "x_next"],
        )
        return LawAlone(
            function,
            {name: row.unit for name, row in self.rows.items()},
            {name: value for name, (_, value) in points.items()},
        )

    def _point(self, names: Sequence[str]) -> dict[str, float]:
        """What is measured at the point."""
        if self.about is None:
            return dict.fromkeys(names, 0.0)
        model, p = self.model, ca.SX.sym("p", len(self.model.parameters))
        q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
        plain = [name for name in names if self.rows[name].quantity not in ("acceleration", "specific_force")]
        found = expressions(model, [self.rows[n] for n in plain], q, v, p, about=self.q0)
        at = ca.Function("point", [q, v, p], [ca.vertcat(ca.SX(0, 1), *found)])
        values = np.array(at(self.q0, self.about.v, model.compute.parameter_array("simulate", self._values)))
        zero = dict(zip(plain, values.ravel().tolist(), strict=True))
        for name in names:
            if name not in zero:
                if name not in self.about.output_names:
                    raise ArgumentError(
                        f"simulate: {self.controller.name!r}: about has no output {name!r}; its value at the point is needed"
                    )
                zero[name] = float(self.about.y[self.about.output_names.index(name)])
        return zero

    @property
    def _values(self) -> dict[str, Any] | None:
        given = dict(self.about.parameter_values) if self.about is not None else {}
        return given or None

    def _reference(self, name: str, t: ca.SX, p: ca.SX) -> ca.SX:
        given = self.controller.references[name]
        if isinstance(given, Expression):
            return ca.SX(given.evaluate({key: p[k] for k, (key, _) in enumerate(self.model.parameters)}))
        if isinstance(given, Table) and given.width == 1:
            return given.symbolic(t)
        if isinstance(given, ca.Function) and given.n_in() == given.n_out() == 1 and given.numel_out(0) == 1:
            return ca.SX(given(t))
        if isinstance(given, int | float | np.number) and np.isfinite(given):
            return ca.SX(float(given))
        raise ArgumentError(
            f"simulate: {self.controller.name!r}: the reference {name!r} is {given!r}, expected a number, a formula "
            "of the model's parameters, a Table of width 1 or a casadi.Function of t"
        )

    def _offset(self) -> tuple[Array, Array]:
        """The efforts of the point: as outputs of the law where those act, and the others."""
        u0, rest = np.zeros(len(self.targets)), np.zeros(self.model.nv)
        if self.about is None:
            return u0, rest
        rest = np.array(self.about.tau, dtype=float)
        values = {**self.model.parameter_values, **(self._values or {})}
        for j, (where, gear) in enumerate(self.targets):
            if isinstance(where, int):
                u0[j] = rest[where] / float(evaluate(gear, values))
                rest[where] = 0.0
        return u0, rest

    def _efforts(self, w: ca.SX, t: ca.SX, q: ca.SX, v: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Of joints and actuators, and of wrenches on frames."""
        model = self.model
        values = {name: p[k] for k, (name, _) in enumerate(model.parameters)}
        tau = ca.SX.zeros(model.nv)
        pushes: dict[str, list[ca.SX]] = {}
        for j, (where, what) in enumerate(self.targets):
            if isinstance(where, int):
                tau[where] = tau[where] + ca.SX(evaluate(what, values)) * w[j]
            else:
                pushes.setdefault(where, [ca.SX(0.0)] * 6)[what] += w[j]
        if not pushes:
            return tau, ca.SX.zeros(model.nv)
        places = Places(model, t, q, v, p)
        turned = []
        for frame, F in pushes.items():
            R = places.pose(frame).rotation
            turned.append((frame, ca.vertcat(R @ ca.vertcat(*F[:3]), R @ ca.vertcat(*F[3:]))))
        return tau, places.efforts(turned)

    def _step(self, t: ca.SX, y: ca.SX, x: ca.SX, u0: Array, signal: ca.SX | None) -> tuple[ca.SX, ca.SX]:
        """w and x' of (1)."""
        K = self.controller
        if isinstance(K.law, ca.Function):
            law = K.law if K.law.is_a("SXFunction") else K.law.expand()
            u, rate = (ca.SX(part) for part in law(t, y, x))
            w = self._clipped(u + u0)
            if not isinstance(K.anti_windup, str):
                rate = rate + ca.DM(np.asarray(K.anti_windup, dtype=float)) @ (w - u - u0)
            return w, rate
        if isinstance(K.law, StateSpace):
            u, rate = _linear(K.law.matrices, y, x)
            w = self._clipped(u + u0)
            return w, rate + self._tracking(K.law) @ (w - u - u0)
        assert signal is not None
        if K.law.interpolation == "linear":
            matrices = [
                _interpolated(K.law.values, list(Ms), signal)
                for Ms in zip(*(S.matrices for S in K.law.systems), strict=True)
            ]
            u, rate = _linear(matrices, y, x)
            w = self._clipped(u + u0)
            gains = _interpolated(K.law.values, [self._tracking(S) for S in K.law.systems], signal)
            return w, rate + gains @ (w - u - u0)
        parts, first = [], 0
        for S in K.law.systems:
            parts.append((S, *_linear(S.matrices, y, x[first : first + S.order])))
            first += S.order
        u = parts[0][1]
        for value, part in zip(K.law.values[1:], parts[1:], strict=True):
            u = ca.if_else(signal >= float(value), part[1], u)
        w = self._clipped(u + u0)
        rates = [rate + self._tracking(S, always=True) @ (w - own - u0) for S, own, rate in parts]
        return w, ca.vertcat(ca.SX(0, 1), *rates)

    def _clipped(self, u: ca.SX) -> ca.SX:
        low, high = self.limits
        rows = []
        for j in range(len(low)):
            w = u[j]
            w = ca.if_else(w > float(high[j]), float(high[j]), w) if np.isfinite(high[j]) else w
            rows.append(ca.if_else(w < float(low[j]), float(low[j]), w) if np.isfinite(low[j]) else w)
        return ca.vertcat(ca.SX(0, 1), *rows)

    def _tracking(self, system: StateSpace, *, always: bool = False) -> ca.DM:
        """L of (1)."""
        given = self.controller.anti_windup
        if not isinstance(given, str) and isinstance(self.controller.law, StateSpace):
            return ca.DM(np.asarray(given, dtype=float))
        bounded = np.isfinite(np.concatenate(self.limits)).any()
        if (given == "off" or not bounded) and not always:
            return ca.DM.zeros(system.order, system.shape[0])
        return ca.DM(tracking_gain(system, conditioned=not always))

    # --- readings ---------------------------------------------------------------------------------------------------

    def _sensor(self, name: str) -> Sensor:
        given = self.measured[name].sensor
        return given if isinstance(given, Sensor) else next(x for x in self.model.sensors if x.name == given)

    def _reading_size(self, name: str) -> int:
        sensor = self._sensor(name)
        if sensor.kind == "frame":
            return 7
        if not sensor.of_joint:
            return 3
        kind = self.model.joint(sensor.target).type
        return kind.nq if sensor.kind == "joint_position" else kind.nv

    def _reading(self, name: str, readings: Mapping[str, ca.SX]) -> ca.SX:
        """The row as the sensor tells it; rotations from those of the point on."""
        row, key = self.rows[name], self._sensor_of(name)
        assert key is not None
        sensor, x = self._sensor(key), readings[key]
        if sensor.kind == "frame":
            if row.quantity == "position":
                return x[row.index]
            R0 = ca.DM(self.model.frame_pose(self.q0, sensor.target).rotation)
            return so3.log(ca.densify(R0.T @ quaternion.to_matrix(x[3:7])))[row.index]
        if not sensor.of_joint:
            return x[row.index]
        k = row.index - self.model.v_slice(sensor.target).start
        kind = self.model.joint(sensor.target).type
        if sensor.kind == "joint_position" and not kind.is_vector_space:
            return kind.difference(ca.SX(self.q0[self.model.q_slice(sensor.target)]), x)[k]
        return x[k]

    # --- as numbers -------------------------------------------------------------------------------------------------

    @cached_property
    def kernel(self) -> Kernel:
        """Arguments as `function` has them."""
        f = self.function
        names = ("t", "q", "v", "x", "parameters", "readings")
        given = {name: f.numel_in(k) or None for k, name in enumerate(names)}
        results = {"u": self.model.nv, "rate": self.size or None}
        return function_kernel("controller", f"simulate:sampled:{f.serialize()}", given, results, lambda: f)

    def sample(
        self, t: float, q: Array, v: Array, x: Array, parameters: Array, readings: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """Efforts and the next states at an instant."""
        given = [
            np.array([float(t)]),
            q,
            v,
            *([x] if self.size else []),
            *([parameters] if self.model.parameters else []),
        ]
        if self.reads:
            batch = q.shape[:-1]
            parts = [
                np.broadcast_to(readings[name], (*batch, np.shape(readings[name])[-1])) for name in self.reads
            ]
            given.append(np.ascontiguousarray(np.concatenate(parts, axis=-1)))
        found = self.kernel(*given)
        return found if self.size else (found, x)


def _linear(matrices: Sequence[Any], y: ca.SX, x: ca.SX) -> tuple[ca.SX, ca.SX]:
    A, B, C, D = (M if isinstance(M, ca.SX) else ca.DM(M) for M in matrices)
    return _product(C, x) + _product(D, y), _product(A, x) + _product(B, y)


def _product(M: Any, x: ca.SX) -> ca.SX:
    if not x.numel():
        return ca.SX.zeros(M.shape[0])
    return ca.sparsify(ca.SX(M)) @ x


def _interpolated(values: Array, parts: Sequence[Any], s: ca.SX) -> ca.SX:
    """Along the signal, from piece to piece; the nearest outside."""
    found = ca.SX(ca.DM(parts[0]))
    for low, high, a, b in zip(values[:-1], values[1:], parts[:-1], parts[1:], strict=True):
        share = ca.fmin(ca.fmax((s - float(low)) / float(high - low), 0.0), 1.0)
        found = found + share * ca.SX(ca.DM(b) - ca.DM(a))
    return found

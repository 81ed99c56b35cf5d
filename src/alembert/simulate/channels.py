"""Recorded quantities by name, each at a rate of its own.

    q, v, a, tau                  all coordinates, speeds, accelerations, efforts
    q:elbow, v:elbow, ...         of a joint, or of one coordinate or degree of freedom; a bare `elbow` is `q:elbow`
    actuator:motor                what an actuator gives, before its gear
    frame:hand.position           and .orientation (quaternion), .velocity, .angular_velocity, .acceleration
    gyro1, sensor:gyro1           what a sensor of the model would show without errors
    strain_energy:boom            of a flexible body, in its stiffness
    section:boom.0.5              of a beam at a node: moment and force that the part beyond it exerts, in the axes of the
                                  section, from its equilibrium (of bodies whose nodes have `loads` only, by their strains)
    reaction:loop1                of a loop: the wrench on its second frame; of a coupling or an equation: its efforts
    controller, controller:x0     states of controllers: all, of a controller, or one
    energy, kinetic_energy, potential_energy, work, momentum, center_of_mass

The grammar is that of `alembert.linear.quantities`: position, velocity and acceleration of a frame's origin in world axes,
the angular velocity in its own. `NAME@50` records 50 times a second, otherwise at every record of the run.

Loads in sections of beams along a run: the equilibrium of the part beyond, with all that acts in the run.

With the cut coordinates c of `alembert.flexible.section_loads` the load is -Q_c, and

    Q = ID(q, v, a) - Q_elements - J' f,      J' f = ID(q, v, a) - Q_elements - tau    in the uncut model      (1)

J are the Jacobians of constraints, of the cut model in the first and of the uncut one in the second, f their forces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import check_known, unknown
from alembert.errors import ArgumentError, UnsupportedError
from alembert.flexible.section_loads import cut_at
from alembert.linear import quantities
from alembert.model import Model
from alembert.simulate.elements import Elements
from alembert.spatial import quaternion

if TYPE_CHECKING:
    from alembert.simulate.result import Run


Array = np.ndarray


def balanced(run: Run, body: str, node: str, parameters: Mapping[str, float]) -> Array:
    """(..., N, 6): moment and force that the part of a beam beyond a node exerts, in the axes of the section."""
    system, model = run._system, run.model
    if system.switches:
        raise UnsupportedError(
            f"simulate: record: section:{body}.{node} and a changing topology do not go together: its equilibrium needs the "
            "forces of all constraints"
        )
    _check_places(run, body, f"{body}.{node}")
    cut = cut_at(model, body, node, tuple(parameters.items()))
    values = parameters or None
    wrenches = run._wrenches
    q, v = cut.widened(run.q, "q"), cut.widened(run.v, "v")
    Q = cut.hold(run.q, run.v, run.accelerations, wrenches, values)
    if system.loads.elements is not None:
        given = [run.time[:, None], q, v]
        if model.parameters:
            given.append(np.array([parameters[name] for name, _ in model.parameters]))
        kept, other, _, _ = Elements(cut.model, system.loads.elements.elements, None).kernel("numbers")(
            *given
        )
        Q = Q - kept - other
    if model.is_constrained:
        tau = np.where(system.prescribed, run.required_efforts, run.efforts)
        Q, _ = cut.without_reactions(Q, run.q, tau, values)
    return cut.load(Q, run.q, parameters)


def _check_places(run: Run, body: str, section: str) -> None:
    """Refuse forces of which only the efforts are known: they may act on this side of the section or beyond."""
    system = run._system
    laws = [*system.feedback.dynamic, *system.feedback.sampled_systems.values()]
    pushes = any(not isinstance(where, int) for law in laws for where, _ in getattr(law, "targets", ()))
    for what, found in (
        ("forces that read reactions", system.loads.reading is not None),
        ("a MassFlow", bool(system.feedback.flows)),
        ("a controller that pushes at a frame", pushes),
        (
            f"efforts on the modes of {body!r}",
            bool(np.any(run.efforts[..., run.model.space.of_bodies[body].v])),
        ),
    ):
        if found:
            raise UnsupportedError(
                f"simulate: record: section:{section} and {what} do not go together: where along the beam they act is not "
                "known; give forces as wrenches=... or as force elements"
            )


KINDS = (
    "q",
    "v",
    "a",
    "tau",
    "actuator",
    "frame",
    "sensor",
    "reaction",
    "strain_energy",
    "section",
    "controller",
)
WRENCH = ("moment.x", "moment.y", "moment.z", "force.x", "force.y", "force.z")
States = Sequence[tuple[str, str, str]]
"""(controller, state, unit) of the states of a run's controllers"""
OF_FRAMES = ("position", "orientation", "velocity", "angular_velocity", "acceleration", "specific_force")
OF_SENSORS = {"point": ("position",), "frame": ("position", "orientation"), "gyro": ("angular_velocity",)}
WHOLE: dict[str, tuple[tuple[str, ...], str]] = {
    "energy": ((), "J"),
    "kinetic_energy": ((), "J"),
    "potential_energy": ((), "J"),
    "work": ((), "J"),
    "momentum": (("angular.x", "angular.y", "angular.z", "linear.x", "linear.y", "linear.z"), ""),
    "center_of_mass": (("x", "y", "z"), "m"),
}
_UNITS = {
    "position": "m",
    "orientation": "",
    "velocity": "m/s",
    "angular_velocity": "rad/s",
    "acceleration": "m/s^2",
    "specific_force": "m/s^2",
}


@dataclass(frozen=True, eq=False)
class Channel:
    """A recorded quantity: `time` (N,), `values` (..., N, n), with a name and a unit for each of the n components."""

    name: str
    time: Array = field(repr=False)
    values: Array = field(repr=False)
    components: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """A name, the rate at which it is wanted [1/s] if it has one, and how it is computed from a run."""

    text: str
    name: str
    rate: float | None
    components: tuple[str, ...]
    units: tuple[str, ...]
    values: Callable[[Run], Array] = field(repr=False)

    def rows(self, time: Array) -> Array:
        """The records at multiples of the period, from the start of the run."""
        if self.rate is None:
            return np.arange(len(time))
        counts = (time - time[0]) * self.rate
        found = np.flatnonzero(np.abs(counts - np.round(counts)) < 1e-6)
        if len(np.unique(np.round(counts[found]))) != int(counts[-1] + 1e-6) + 1:
            interval = float(time[1] - time[0])
            raise ArgumentError(
                f"simulate: record: {self.text!r}: the run has a record every {interval:g} s, expected a rate that divides "
                f"{1 / interval:g} per second"
            )
        return found

    def channel(self, run: Run) -> Channel:
        rows = self.rows(run.time)
        x = self.values(run)
        x = x[..., None] if not self.components else x
        return Channel(
            self.name, run.time[rows], x[..., rows, :], self.components or (self.name,), self.units
        )

    def of_members(self, time: Array, parts: Sequence[Array]) -> Channel:
        """Of an ensemble: from values (members, records, components) of its blocks."""
        components = self.components or (self.name,)
        return Channel(self.name, time[self.rows(time)], np.concatenate(parts), components, self.units)


def requests(model: Model, record: Any, states: States = ()) -> tuple[Request, ...]:
    """Check what is to be recorded."""
    if not (record is None or isinstance(record, Iterable)):
        raise ArgumentError(f"simulate: record is {record!r}, expected a list of names")
    listed = [record] if isinstance(record, str) else list(() if record is None else record)
    found = [request(model, name, states) for name in listed]
    for one in found:
        if [other.name for other in found].count(one.name) > 1:
            raise ArgumentError(f"simulate: record: {one.name!r} is named twice")
    return tuple(found)


def request(model: Model, text: Any, states: States = ()) -> Request:
    if not isinstance(text, str):
        raise ArgumentError(
            f"simulate: record has {text!r}, expected a name as 'q:elbow' or 'frame:hand.position@50'"
        )
    name, at, rate_text = text.partition("@")
    rate: float | None = None
    if at:
        try:
            rate = float(rate_text)
        except ValueError:
            rate = -1.0
        if not (np.isfinite(rate) and rate > 0):
            raise ArgumentError(
                f"simulate: record: {text!r} asks for {rate_text!r} records per second, expected a number"
            )
    return Request(text, name, rate, *_meaning(model, name, states))


Meaning = tuple[tuple[str, ...], tuple[str, ...], Callable[["Run"], Array]]


def _meaning(model: Model, name: str, states: States) -> Meaning:
    kind, rest = quantities.split(name, KINDS, "simulate", "record")
    sensors = {sensor.name: sensor for sensor in model.sensors}
    if not kind:
        if name in WHOLE:
            components, unit = WHOLE[name]
            units = ("N m s",) * 3 + ("N s",) * 3 if name == "momentum" else (unit,) * max(1, len(components))
            return components, units, lambda run: _whole(run, name)
        if name in ("q", "v", "a", "tau"):
            return _states(model, name, None)
        if name == "controller":
            return _of_controllers(states, "")
        if name in sensors:
            kind = "sensor"
        elif name in model.joint_indices or name in model.coordinate_names or name in model.space.of_bodies:
            kind = "q"
        else:
            known = [*WHOLE, *sensors, *model.joint_indices, *(f"{k}:" for k in KINDS)]
            frame = name.split(".")[0]
            places = (*(body.name for body in model.bodies), *(frame.name for frame in model.frames))
            hint = f"; for a frame write 'frame:{frame}.position'" if frame in places else ""
            raise ArgumentError(unknown("simulate: record: nothing is called", name, known) + hint)
    if kind in ("q", "v", "a", "tau"):
        return _states(model, kind, rest)
    if kind == "frame":
        frame, _, quantity = rest.rpartition(".")
        whole, _, inner = frame.rpartition(".")
        if quantity not in OF_FRAMES and inner in OF_FRAMES:
            model.frame(whole)  # a name that is wrong is told before its component is
        if not frame or quantity not in OF_FRAMES:
            raise ArgumentError(
                f"simulate: record: {name!r} is no quantity of a frame, expected 'frame:NAME.' and one of "
                f"{', '.join(OF_FRAMES)}"
            )
        model.frame(frame)
        return _of_frame(frame, (quantity,))
    if kind == "sensor":
        check_known("simulate: record: no sensor", rest, sensors)
        sensor = sensors[rest]
        if sensor.of_joint:
            return _states(model, "q" if sensor.kind == "joint_position" else "v", sensor.target)
        return _of_frame(sensor.target, OF_SENSORS.get(sensor.kind, ("specific_force",)))
    if kind == "actuator":
        return _actuator(model, rest)
    if kind in ("strain_energy", "section"):
        return _flexible(model, kind, rest)
    if kind == "controller":
        return _of_controllers(states, rest)
    return _reaction(model, rest)


def _states(model: Model, kind: str, name: str | None) -> Meaning:
    """Coordinates, speeds, accelerations or efforts: all, of a joint, or one of them."""
    labels = model.coordinate_names if kind == "q" else model.speed_names
    if name is None:
        entries = list(range(len(labels)))
    elif name in model.joint_indices:
        s = model.q_slice(name) if kind == "q" else model.v_slice(name)
        entries = list(range(s.start, s.stop))
    elif name in model.space.of_bodies:
        owner = model.space.of_bodies[name]
        s = owner.q if kind == "q" else owner.v
        entries = list(range(s.start, s.stop))
    elif name in labels:
        entries = [labels.index(name)]
    else:
        what = "joint or coordinate" if kind == "q" else "joint or degree of freedom"
        raise ArgumentError(unknown(f"simulate: record: no {what}", name, [*model.joint_indices, *labels]))
    coordinates = list(model.space.coordinate_units)
    speeds = quantities.speed_units(model)
    units = {
        "q": coordinates,
        "v": speeds,
        "a": [f"{u}^2" for u in speeds],
        "tau": quantities.effort_units(model),
    }
    source = {"q": "q", "v": "v", "a": "accelerations", "tau": "efforts"}[kind]
    return (
        tuple(labels[k] for k in entries),
        tuple(units[kind][k] for k in entries),
        lambda run: getattr(run, source)[..., entries],
    )


def _of_controllers(states: States, name: str) -> Meaning:
    """States of all controllers, of one of them, or a single one."""
    several = len({owner for owner, _, _ in states}) > 1
    labels = [f"{owner}.{state}" if several else state for owner, state, _ in states]
    rows = [k for k, (owner, _, _) in enumerate(states) if name in ("", owner, labels[k])]
    if not rows:
        if not states:
            raise ArgumentError("simulate: record: 'controller' is asked for, but no controller has states")
        raise ArgumentError(unknown("simulate: record: no state of a controller", name, labels))

    def values(run: Run) -> Array:
        assert run.controller_states is not None
        return run.controller_states[..., rows]

    return tuple(labels[k] for k in rows), tuple(states[k][2] for k in rows), values


def _of_frame(frame: str, parts: Sequence[str]) -> Meaning:
    components: list[str] = []
    units: list[str] = []
    for part in parts:
        axes = "wxyz" if part == "orientation" else "xyz"
        prefix = "" if len(parts) == 1 else f"{part}."
        components += [f"{prefix}{axis}" for axis in axes]
        units += [_UNITS[part]] * len(axes)

    def values(run: Run) -> Array:
        return np.concatenate([_frame(run, frame, part) for part in parts], axis=-1)

    return tuple(components), tuple(units), values


def _frame(run: Run, frame: str, part: str) -> Array:
    model, given = run.model, {"parameters": run.parameters}
    if part in ("position", "orientation"):
        X = model.frame_pose(run.q, frame, **given)
        if part == "position":
            return np.broadcast_to(X.translation, (*run.q.shape[:-1], 3))
        R = np.broadcast_to(X.rotation, (*run.q.shape[:-1], 3, 3))
        return _continuous(
            quaternion.from_scipy(scipy.spatial.transform.Rotation.from_matrix(R.reshape(-1, 3, 3))).reshape(
                *R.shape[:-2], 4
            )
        )
    if part in ("velocity", "angular_velocity"):
        local = part == "angular_velocity"
        V = model.frame_velocity(
            run.q, run.v, frame, reference="local" if local else "local_world_aligned", **given
        )
        return V[..., :3] if local else V[..., 3:]
    A = model.frame_acceleration(
        run.q, run.v, run.accelerations, frame, reference="local_world_aligned", **given
    )
    if part == "acceleration":
        return A[..., 3:]
    X = model.frame_pose(run.q, frame, **given)
    places = np.broadcast_to(X.translation, A[..., 3:].shape)
    falling = [run._system.gravity_at(float(t), places[..., k, :]) for k, t in enumerate(run.time)]
    felt = A[..., 3:] - np.stack(falling, axis=-2)
    R = np.broadcast_to(X.rotation, (*felt.shape, 3))
    return np.einsum("...ji,...j->...i", R, felt)


def _continuous(q_wxyz: Array) -> Array:
    """Of q and -q, the same orientation, the one next to the record before."""
    turned = np.sum(q_wxyz[..., 1:, :] * q_wxyz[..., :-1, :], axis=-1) < 0
    signs = np.where(np.cumsum(turned, axis=-1) % 2 == 1, -1.0, 1.0)
    return np.concatenate([q_wxyz[..., :1, :], signs[..., None] * q_wxyz[..., 1:, :]], axis=-2)


def _actuator(model: Model, name: str) -> Meaning:
    known = quantities.actuators(model)
    check_known("simulate: record: no actuator", name, known)
    actuator = known[name]
    k = quantities.driven(model, actuator)

    def values(run: Run) -> Array:
        gear = quantities.number(actuator.gear, {**model.parameter_values, **(run.parameters or {})})
        return (run.efforts[..., k] / gear)[..., None]

    unit = quantities.effort_units(model)[k] if actuator.gear == 1.0 else ""
    return (name,), (unit,), values


def _flexible(model: Model, kind: str, name: str) -> Meaning:
    """The strain energy of a flexible body, or the load in a section of it."""
    of_bodies = model.space.of_bodies
    body = name if kind == "strain_energy" else next((x for x in of_bodies if name.startswith(f"{x}.")), name)
    if body not in of_bodies:
        raise ArgumentError(unknown("simulate: record: no flexible body", body.partition(".")[0], of_bodies))
    flexible, q = model.body(body).flexible, of_bodies[body].q
    assert flexible is not None

    def given(run: Run) -> dict[str, Any]:
        values: dict[str, Any] = {**model.parameter_values, **(run._system.own_parameters or {})}
        if any(np.ndim(x) for x in values.values()):
            raise UnsupportedError(f"simulate: record: {kind} and parameters by batch do not go together")
        return {name: float(x) for name, x in values.items()}

    if kind == "strain_energy":

        def energy(run: Run) -> Array:
            x, K = run.q[..., q], flexible.array("stiffness", given(run))
            return np.einsum("...k,kl,...l->...", x, K, x)[..., None] / 2

        return (body,), ("J",), energy
    node = name[len(body) + 1 :]
    places = {p.name: p for p in flexible.nodes if p.loads is not None or p.beyond is not None}
    if node not in places:
        known = [f"{body}.{place}" for place in places]
        raise ArgumentError(unknown("simulate: record: no section of a beam", name, known))

    def section(run: Run) -> Array:
        if places[node].beyond is None:
            return run.q[..., q] @ flexible.node_array(node, "loads", given(run))
        return balanced(run, body, node, given(run))

    return WRENCH, ("N m",) * 3 + ("N",) * 3, section


def _reaction(model: Model, name: str) -> Meaning:
    rows = model.constrained_compute.rows
    check_known("simulate: record: no loop, coupling or equation", name, rows.names)
    components: tuple[str, ...]
    units: tuple[str, ...]
    if rows.kinds[name] == "loop":
        components = WRENCH
        units = ("N m",) * 3 + ("N",) * 3
    else:
        count = rows.slices[name].stop - rows.slices[name].start
        components = tuple(f"row{k}" for k in range(count)) if count > 1 else (name,)
        units = ("",) * count

    def values(run: Run) -> Array:
        if run._system.switches:
            raise UnsupportedError("simulate: record of reactions and a changing topology do not go together")
        found = [_reactions(run, k)[name] for k in range(len(run.time))]
        return np.stack(
            [x if np.ndim(x) > run.q.ndim - 2 else np.asarray(x)[..., None] for x in found], axis=-2
        )

    return components, units, values


def _reactions(run: Run, k: int) -> Any:
    system, q, v = run._system, run.q[..., k, :], run.v[..., k, :]
    tau = np.where(system.prescribed, run.required_efforts[..., k, :], run.efforts[..., k, :])
    if run._from_elements is not None:
        tau = tau + sum(x[..., k, :] for x in run._from_elements[:2])
    tau = tau + system.reading_efforts(float(run.time[k]), q, v, tau)
    wrenches = system.loads.wrenches_at(float(run.time[k]), q, v)
    return run.model.constrained_dynamics(
        q, v, tau, wrenches=wrenches, parameters=system.parameters
    ).reactions


def _whole(run: Run, name: str) -> Array:
    if name == "center_of_mass":
        return run.model.center_of_mass(run.q, parameters=run.parameters)
    return getattr(run, name)

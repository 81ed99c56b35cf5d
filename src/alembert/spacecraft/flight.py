"""Flight software next to the dynamics: tasks with rates, phases, priorities and delays, and the hardware they command.

A task is a pure function of the time and of messages: what sensors delivered, what other tasks wrote, what it wrote itself
before (its memory). Messages are kept by the run's schedule: a run has one course whatever its rates, and one that
is resumed, or
run again in an ensemble, goes the same way.

    def control(t, m):                       # m maps names to arrays
        u = quaternion_feedback(m["stars"], m["rate"], ...)
        return {"wheels": wheel_torques(wheels, u)}

    software = FlightSoftware([FlightTask("control", control, period=0.1, reads=("stars", "rate"), writes={"wheels":
    np.zeros(3)})])
    hardware = Hardware(model, {"wheels": wheels}, period=0.1)
    run = al.simulate(model, q0, v0, controller=software.controllers(hardware), sensors=[...], ...)

At one instant tasks run by priority, the highest first, then in the order in which they are given; what one writes without
delay the next ones read at once. The hardware comes last.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.simulate.controllers import Sampled
from alembert.spacecraft.devices import ControlMomentGyro, MagneticTorquer, ReactionWheel, Thruster
from alembert.spacecraft.magnetic import MagneticField

Array = np.ndarray
Messages = Mapping[str, Array]


@dataclass(frozen=True)
class FlightTask:
    """A law `function(t, messages)` that gives messages, asked every `period` [s] from `phase` on.

    `writes` has the first values of its messages; others read them `delay` [s] after the task was asked. `reads` are
    names of
    sensors, of messages of other tasks, or of its own. `duration` [s] is what it takes on the processor.
    """

    name: str
    function: Callable[[float, Messages], Messages]
    period: float
    reads: tuple[str, ...] = ()
    writes: Mapping[str, Any] = field(default_factory=dict)
    phase: float = 0.0
    delay: float = 0.0
    priority: int = 0
    duration: float = 0.0

    def __post_init__(self) -> None:
        who = f"FlightTask {self.name!r}"
        if not callable(self.function):
            raise ArgumentError(
                f"{who}: function is {self.function!r}, expected a function of t and messages"
            )
        object.__setattr__(self, "reads", (self.reads,) if isinstance(self.reads, str) else tuple(self.reads))
        if not (math.isfinite(self.period) and self.period > 0):
            raise ArgumentError(f"{who}: period is {self.period!r}, expected a positive time in seconds")
        for what in ("phase", "delay", "duration"):
            if not (math.isfinite(getattr(self, what)) and getattr(self, what) >= 0):
                raise ArgumentError(
                    f"{who}: {what} is {getattr(self, what)!r}, expected zero or more seconds"
                )
        if self.duration > self.period:
            raise ArgumentError(
                f"{who} takes {self.duration:g} s on the processor and is asked every {self.period:g} s: it never ends"
            )
        first = {name: np.atleast_1d(np.asarray(x, dtype=float)) for name, x in self.writes.items()}
        object.__setattr__(self, "writes", first)

    def __call__(self, t: float, messages: Messages) -> dict[str, Any]:
        answer = self.function(t, messages)
        if not isinstance(answer, Mapping):
            raise ArgumentError(f"FlightTask {self.name!r} returned {answer!r}, expected messages by name")
        for name in answer:
            if name not in self.writes:
                raise ArgumentError(
                    f"FlightTask {self.name!r} returned a message {name!r}, expected one that it writes: "
                    f"{', '.join(self.writes) or 'none'}"
                )
        return {name: np.atleast_1d(np.asarray(x, dtype=float)) for name, x in answer.items()}


@dataclass(frozen=True)
class Hardware:
    """What carries out commands: lists of devices by the name of the message that commands them.

    Every `period` [s] it reads the messages and acts on the true state: wheels give their motor torques [N m] within what
    they can (torque, and no further speed), gyros turn their gimbals at the rates asked for [rad/s] and hold their rotors'
    speed (with `variable_speed` a message has the rotors' torques behind the rates), torquers push with m x B [A
    m^2, in the
    field `magnetic`], thrusters fire as `pulses` say. It writes the messages `propellant` [kg used] and `saturated`
    (1 where a
    device could not do what it was asked).
    """

    model: Model
    devices: Mapping[str, Sequence[Any]]
    period: float
    magnetic: MagneticField | None = None
    servo: float = 0.0
    """time constant of gimbals [s]; three periods by default"""

    def __post_init__(self) -> None:
        known = (ReactionWheel, ControlMomentGyro, MagneticTorquer, Thruster)
        for name, group in self.devices.items():
            for device in group:
                if not isinstance(device, known):
                    raise ArgumentError(
                        f"Hardware: {name!r} has {device!r}, expected wheels, gyros, torquers or thrusters"
                    )
                if isinstance(device, MagneticTorquer) and self.magnetic is None:
                    raise ArgumentError(
                        f"Hardware: the torquer {device.name!r} needs a field; give magnetic=environment.magnetic_field()"
                    )
        if not (math.isfinite(self.period) and self.period > 0):
            raise ArgumentError(f"Hardware: period is {self.period!r}, expected a positive time in seconds")

    @staticmethod
    def width(group: Sequence[Any]) -> int:
        """Of the message that commands a list of devices."""
        return sum(
            3
            if isinstance(x, MagneticTorquer)
            else 2
            if isinstance(x, Thruster) or (isinstance(x, ControlMomentGyro) and x.variable_speed)
            else 1
            for x in group
        )

    def sampled(self) -> Sampled:
        """For `simulate`."""
        writes = {"propellant": np.zeros(1), "saturated": np.zeros(1)}
        reads = (*self.devices, "propellant")
        return Sampled(self.act, self.period, reads=reads, posts=writes, state=True)

    def act(self, t: float, messages: Messages, q: Array, v: Array) -> dict[str, Any]:
        """The efforts of all devices at a true state, and the messages."""
        model = self.model
        tau = np.zeros(model.nv)
        held: dict[str, float] = {}
        burnt, saturated = float(messages["propellant"][0]), 0.0
        for name, group in self.devices.items():
            command = np.asarray(messages[name], dtype=float)
            if command.shape != (self.width(group),):
                raise ArgumentError(
                    f"Hardware: the message {name!r} has {command.size} entries, expected {self.width(group)}"
                )
            place = 0
            for device in group:
                count = self.width([device])
                u, place = command[place : place + count], place + count
                if not np.all(np.isfinite(u)):
                    raise ArgumentError(
                        f"Hardware: {device.name!r} is commanded {u} at t = {t:.6g} s, expected numbers"
                    )
                if isinstance(device, ReactionWheel):
                    k = model.v_slice(device.name).start
                    tau[k], less = self._wheel(t, device, float(u[0]), float(v[k]))
                    saturated = max(saturated, less)
                elif isinstance(device, ControlMomentGyro):
                    k, r = model.v_slice(device.name).start, model.v_slice(device.rotor).start
                    rate = float(np.clip(u[0], -device.rate, device.rate))
                    saturated = max(saturated, float(rate != u[0]))
                    time = self.servo or 3 * self.period
                    held[device.name] = (rate - v[k]) / time
                    if device.variable_speed:
                        tau[r] = u[1]
                    else:
                        held[device.rotor] = (device.speed - v[r]) / time
                elif isinstance(device, MagneticTorquer):
                    m = np.clip(u, -device.dipole, device.dipole)
                    saturated = max(saturated, float(np.any(m != u)))
                    X = model.frame_pose(q, device.frame)
                    assert self.magnetic is not None
                    B = X.rotation.T @ self.magnetic.at(t, X.translation)
                    tau += model.frame_jacobian(q, device.frame)[:3].T @ np.cross(m, B)
                else:
                    share = open_share(device, u, t, self.period)
                    if share:
                        tau += share * (model.frame_jacobian(q, device.frame).T @ device.wrench)
                        burnt += share * self.period * device.flow
        if held:
            tau = self._servos(q, v, tau, held)
        return {"efforts": tau, "propellant": np.array([burnt]), "saturated": np.array([saturated])}

    def _wheel(self, t: float, wheel: ReactionWheel, u: float, speed: float) -> tuple[float, float]:
        if abs(speed) > 1.05 * wheel.speed:
            raise ArgumentError(
                f"Hardware: the wheel {wheel.name!r} turns at {speed:.6g} rad/s at t = {t:.6g} s, expected at most "
                f"{wheel.speed:g}; start it slower, or unload it"
            )
        given = min(max(u, -wheel.torque), wheel.torque)
        coming = speed + given * self.period / wheel.inertia
        if abs(coming) > wheel.speed and given * speed > 0:
            given = math.copysign(max(0.0, wheel.speed - abs(speed)) * wheel.inertia / self.period, u)
        return given, float(given != u)

    def _servos(self, q: Array, v: Array, tau: Array, accelerations: Mapping[str, float]) -> Array:
        """Gimbals follow their rates whatever loads them, as far as their motors can."""
        model = self.model
        free = {
            name: tau[k]
            for k, name in enumerate(model.speed_names)
            if tau[k] and not self._holds(k, accelerations)
        }
        found = model.hybrid_dynamics(q, v, accelerations=accelerations, torques=free)
        tau = tau.copy()
        limits = {
            g.name: g.torque
            for group in self.devices.values()
            for g in group
            if isinstance(g, ControlMomentGyro)
        }
        for name in accelerations:
            k = model.v_slice(name).start
            most = limits.get(name, math.inf)
            tau[k] = min(max(float(found.efforts[k]), -most), most)
        return tau

    def _holds(self, k: int, accelerations: Mapping[str, float]) -> bool:
        return any(self.model.v_slice(name).start == k for name in accelerations)


def pulses(t: float, times: Any) -> Array:
    """The message for thrusters: each fires for its time [s] from t on."""
    return np.stack(
        [np.atleast_1d(np.asarray(times, dtype=float)), np.full(np.size(times), float(t))], axis=-1
    ).ravel()


def open_share(thruster: Thruster, command: Array, t: float, period: float) -> float:
    """The part of the period from t on in which a thruster is open, 0 to 1."""
    duration, start = float(command[0]), float(command[1])
    if duration < max(thruster.minimum, 0.0) or duration <= 0:
        return 0.0
    share = (min(start + duration, t + period) - max(start, t)) / period
    return share if share > 1e-9 else 0.0


@dataclass(frozen=True)
class FlightSoftware:
    """Tasks on one processor. Contradictions are refused: two writers of a message, a message nobody writes, too
    much to do.
    """

    tasks: tuple[FlightTask, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", tuple(self.tasks))
        names = [task.name for task in self.tasks]
        for name in names:
            if names.count(name) > 1:
                raise ArgumentError(f"FlightSoftware: two tasks are called {name!r}")
        writers: dict[str, str] = {}
        for task in self.tasks:
            for message in task.writes:
                if message in writers:
                    raise ArgumentError(
                        f"FlightSoftware: the message {message!r} is written by {writers[message]!r} and {task.name!r}, "
                        "expected one writer"
                    )
                writers[message] = task.name
        if self.load > 1:
            listed = ", ".join(
                f"{x.name} {100 * x.duration / x.period:.0f} %" for x in self.tasks if x.duration
            )
            raise ArgumentError(
                f"FlightSoftware: the tasks take {100 * self.load:.0f} % of the processor ({listed}), expected at most 100 %"
            )

    @property
    def load(self) -> float:
        """The part of the processor's time that tasks take."""
        return sum(task.duration / task.period for task in self.tasks)

    @property
    def ordered(self) -> tuple[FlightTask, ...]:
        """As they run at one instant."""
        return tuple(sorted(self.tasks, key=lambda task: -task.priority))

    def controllers(self, hardware: Hardware | None = None, sensors: Sequence[Any] = ()) -> list[Sampled]:
        """For `simulate`; `sensors` (as given there) let names of messages be checked at once."""
        written = {name for task in self.tasks for name in task.writes} | {"propellant", "saturated"}
        if sensors:
            known = written | {x.name for x in sensors}
            for task in self.tasks:
                for name in task.reads:
                    if name not in known:
                        raise ArgumentError(
                            f"FlightSoftware: the task {task.name!r} reads {name!r}, which no sensor or task delivers; "
                            f"there is {', '.join(sorted(known))}"
                        )
        if hardware is not None:
            for name, group in hardware.devices.items():
                if name not in written:
                    raise ArgumentError(
                        f"FlightSoftware: no task writes {name!r}, which commands {group[0].name!r}"
                    )
        found = [
            Sampled(x, x.period, delay=x.delay, offset=x.phase, reads=x.reads, posts=x.writes)
            for x in self.ordered
        ]
        return found if hardware is None else [*found, hardware.sampled()]

    def latency(self, *chain: str) -> tuple[float, float]:
        """Shortest and longest age [s] of what the first task of a chain read, when the last task's message arrives.

        Each task must read a message of the one before. Counted over all phases of the periods.
        """
        known = {task.name: task for task in self.tasks}
        for name in chain:
            if name not in known:
                raise ArgumentError(f"latency: no task {name!r}; there is {', '.join(known)}")
        tasks = [known[name] for name in chain]
        for a, b in itertools.pairwise(tasks):
            if not set(a.writes) & set(b.reads):
                raise ArgumentError(f"latency: {b.name!r} reads no message of {a.name!r}")
        order = {task.name: k for k, task in enumerate(self.ordered)}
        periods = [Fraction(task.period).limit_denominator(10**6) for task in tasks]
        whole = Fraction(1)
        for p in periods:
            whole = Fraction(
                math.lcm(whole.numerator * p.denominator, p.numerator * whole.denominator),
                whole.denominator * p.denominator,
            )
        last = tasks[-1]
        start = 4 * float(whole) + max(task.phase + task.delay for task in tasks)
        ages = []
        for k in range(max(1, round(float(whole) / last.period))):
            t = last.phase + math.ceil((start - last.phase) / last.period) * last.period + k * last.period
            at = t
            for a, b in zip(reversed(tasks[:-1]), reversed(tasks), strict=False):
                latest = at - a.delay
                n = math.floor((latest - a.phase) / a.period + 1e-9)
                asked = a.phase + n * a.period
                if abs(asked + a.delay - at) < 1e-9 and a.delay == 0 and order[a.name] > order[b.name]:
                    asked -= a.period  # it runs later in the same instant
                at = asked
            ages.append(t + last.delay - at)
        return min(ages), max(ages)

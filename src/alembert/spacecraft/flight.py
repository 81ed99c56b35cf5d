"""Flight software next to the dynamics: tasks with rates, phases, priorities and delays, and the hardware they command.

A task is a pure function of the time and of messages: what sensors delivered, what other tasks wrote, what it wrote itself
before (its memory). Messages are kept by the run's schedule: a run has one course whatever its rates, and one that is
resumed, or run again in an ensemble, goes the same way.

    def control(t, m):                       # m maps names to arrays
        u = quaternion_feedback(m["stars"], m["rate"], ...)
        return {"wheels": wheel_torques(wheels, u)}

    task = FlightTask("control", control, period=0.1, reads=("stars", "rate"), writes={"wheels": np.zeros(3)})
    software = FlightSoftware([task])
    hardware = Hardware(model, {"wheels": wheels}, period=0.1)
    run = al.simulate(model, q0, v0, controller=software.controllers(hardware), sensors=[...], ...)

At one instant tasks run by priority, the highest first, then in the order in which they are given; what one writes without
delay the next ones read at once. The hardware comes last.

Flight tasks in C: functions of a shared library.

The function has the signature

    int task(double t, const double *in, double *out);

`in` has what the task reads, one message after the other in the order of `reads`, `out` what it writes, in the order of
`writes`, filled with what was written last. It returns 0, or a number that says what went wrong. It may keep nothing between
calls but in messages: a run that is resumed would not know of it.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import real, unknown
from alembert.errors import ArgumentError, NumericalError
from alembert.model import Model
from alembert.simulate.controllers import Sampled, SymbolicLaw
from alembert.simulate.elements import Places
from alembert.simulate.mass_flow import MassFlow
from alembert.spacecraft.devices import ControlMomentGyro, MagneticTorquer, ProofMass, ReactionWheel, Thruster
from alembert.spacecraft.fields import MagneticField
from alembert.spatial.arrays import clip

Array = np.ndarray

Messages = Mapping[str, Array]


@dataclass(frozen=True)
class FlightTask:
    """A law `function(t, messages)` that gives messages, asked every `period` [s] from `phase` on.

    It is a Python function of numbers, one of expressions in `alembert.simulate.SymbolicLaw(...)`, a `casadi.Function` of t
    and of what it reads, one by one, with results named after what it writes, or a `SharedFunction` of a C library.

    `writes` has the first values of its messages; others read them `delay` [s] after the task was asked. `reads` are names
    of sensors, of messages of other tasks, or of its own. `duration` [s] is what it takes on the processor. Of the sensors
    in `counts_once`, each sample counts once, as in a filter: their period has to be the task's.
    """

    name: str
    function: Any
    period: float
    reads: tuple[str, ...] = ()
    writes: Mapping[str, Any] = field(default_factory=dict)
    phase: float = 0.0
    delay: float = 0.0
    priority: int = 0
    duration: float = 0.0
    counts_once: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        who = f"FlightTask {self.name!r}"
        if not (callable(self.function) or isinstance(self.function, SymbolicLaw)):
            raise ArgumentError(
                f"{who}: function is {self.function!r}, expected a function of t and messages"
            )
        object.__setattr__(self, "reads", (self.reads,) if isinstance(self.reads, str) else tuple(self.reads))
        real(who, "period", self.period, "a positive time in seconds", over=0.0)
        for what in ("phase", "delay", "duration"):
            real(who, what, getattr(self, what), "zero or more seconds", least=0.0)
        if self.duration > self.period:
            raise ArgumentError(
                f"{who} takes {self.duration:g} s on the processor and is asked every {self.period:g} s: it never ends"
            )
        first = {name: np.atleast_1d(np.asarray(x, dtype=float)) for name, x in self.writes.items()}
        object.__setattr__(self, "writes", first)

    @property
    def is_symbolic(self) -> bool:
        return isinstance(self.function, SymbolicLaw | ca.Function)

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
    speed (with `variable_speed` a message has the rotors' torques behind the rates), torquers push with m x B [A m^2, in the
    field `magnetic`], proof masses are pushed [N], thrusters fire as `pulses` say. It writes the messages `propellant` [kg
    used] and `saturated` (1 where a device could not do what it was asked).

    With a `tank`, a parameter of the model that is a mass of propellant [kg], pulses make the model lighter: within a
    period its mass is the mean of those before and after the pulses, which is right to second order in what a period
    burns. Nothing leaves an empty tank. What the flow from the tank does to a craft that turns is left out (`MassFlow`
    has it).
    """

    model: Model
    devices: Mapping[str, Sequence[Any]]
    period: float
    magnetic: MagneticField | None = None
    servo: float = 0.0
    """time constant of gimbals [s]; three periods by default"""
    tank: str | None = None

    def __post_init__(self) -> None:
        known = (ReactionWheel, ControlMomentGyro, MagneticTorquer, Thruster, ProofMass)
        for name, group in self.devices.items():
            for device in group:
                if not isinstance(device, known):
                    raise ArgumentError(
                        f"Hardware: {name!r} has {device!r}, expected wheels, gyros, torquers, thrusters or proof masses"
                    )
                if isinstance(device, MagneticTorquer) and self.magnetic is None:
                    raise ArgumentError(
                        f"Hardware: the torquer {device.name!r} needs a field; give magnetic=environment.magnetic_field()"
                    )
        if self.tank is not None and not self.thrusters:
            raise ArgumentError(f"Hardware: tank is {self.tank!r}, and no thruster burns it")
        if self.tank is not None and self.tank not in self.model.parameter_values:
            raise ArgumentError(
                unknown("Hardware: tank: the model has no parameter", self.tank, self.model.parameter_values)
            )
        real("Hardware", "period", self.period, "a positive time in seconds", over=0.0)

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

    @property
    def thrusters(self) -> list[Thruster]:
        return [x for group in self.devices.values() for x in group if isinstance(x, Thruster)]

    def sampled(self) -> Sampled:
        """For `simulate`."""
        writes = {name: np.zeros(1) for name in ("propellant", "saturated")}
        reads = (*self.devices, "propellant")
        if self.tank is not None:
            writes[_BURNT] = np.zeros(1)
            reads = (*reads, _BURNT)
        law = SymbolicLaw(self.act, self.check)
        return Sampled(law, self.period, reads=reads, posts=writes, state=True)

    def controllers(self) -> list[Any]:
        """For `simulate`: what acts, and the mass that falls where there is a tank."""
        if self.tank is None:
            return [self.sampled()]
        return [self.sampled(), MassFlow(self.thrusters, self.tank, burnt=_BURNT)]

    def _commands(self, messages: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Devices, and what of the messages is for each."""
        for name, group in self.devices.items():
            command, place = messages[name], 0
            if command.shape[0] != self.width(group):
                raise ArgumentError(
                    f"Hardware: the message {name!r} has {command.shape[0]} entries, expected {self.width(group)}"
                )
            for device in group:
                count = self.width([device])
                yield device, command[place : place + count]
                place += count

    def check(self, t: float, messages: Messages, q: Array, v: Array) -> None:
        """Raise an error for commands that are no numbers, and for wheels that turn too fast."""
        for device, u in self._commands(messages):
            if not np.all(np.isfinite(u)):
                raise ArgumentError(
                    f"Hardware: {device.name!r} is commanded {u} at t = {t:.6g} s, expected numbers"
                )
            if isinstance(device, ReactionWheel):
                speed = float(v[self.model.v_slice(device.name).start])
                if abs(speed) > _BEYOND * device.speed:
                    raise ArgumentError(
                        f"Hardware: the wheel {device.name!r} turns at {speed:.6g} rad/s at t = {t:.6g} s, expected at most "
                        f"{device.speed:g}; start it slower, or unload it"
                    )

    def act(self, t: Any, messages: Mapping[str, Any], at: Places) -> dict[str, Any]:
        """The efforts of all devices at a true state, and the messages; all of it expressions."""
        model = at.model
        tau, wrenches = ca.SX.zeros(model.nv), []
        held: dict[str, Any] = {}
        before, burnt, saturated = messages["propellant"], ca.SX(0), ca.SX(0)
        supply = self._supply(t, messages, at)
        for device, u in self._commands(messages):
            if isinstance(device, ReactionWheel):
                k = model.v_slice(device.name).start
                tau[k] = self._wheel(device, u, at.v[k])
                saturated = ca.fmax(saturated, tau[k] != u)
            elif isinstance(device, ControlMomentGyro):
                k, r = model.v_slice(device.name).start, model.v_slice(device.rotor).start
                rate = _clip(u[0], device.rate)
                saturated = ca.fmax(saturated, rate != u[0])
                time = self.servo or 3 * self.period
                held[device.name] = (rate - at.v[k]) / time
                if device.variable_speed:
                    tau[r] = u[1]
                else:
                    held[device.rotor] = (device.speed - at.v[r]) / time
            elif isinstance(device, ProofMass):
                k, x = model.v_slice(device.name).start, at.q[model.q_slice(device.name)]
                given = _clip(u[0], device.force)
                outward = ca.logic_and(ca.fabs(x) >= device.stroke, given * x > 0)
                tau[k] = given if math.isinf(device.stroke) else ca.if_else(outward, 0.0, given)
                saturated = ca.fmax(saturated, tau[k] != u[0])
            elif isinstance(device, MagneticTorquer):
                assert self.magnetic is not None
                m = _clip(u, device.dipole)
                saturated = ca.fmax(saturated, ca.norm_inf(m - u) > 0)
                X = at.pose(device.frame)
                B = self.magnetic.inertial(t, self.magnetic.environment.place(t, X.translation))
                torque = ca.cross(ca.SX(X.rotation) @ m, B)
                wrenches.append((device.frame, ca.vertcat(torque, ca.SX.zeros(3))))
            else:
                share = supply * open_share(device, u, t, self.period)
                R, F = ca.SX(at.pose(device.frame).rotation), share * ca.DM(device.wrench)
                wrenches.append((device.frame, ca.vertcat(R @ F[:3], R @ F[3:])))
                burnt = burnt + share * self.period * device.flow
        if wrenches:
            tau = tau + at.efforts(wrenches)
        if held:
            tau = self._servos(at, tau, held)
        good = ca.sum1(ca.fabs(ca.vertcat(*(messages[name] for name in self.devices))) <= HUGE)
        count = sum(self.width(group) for group in self.devices.values())
        tau = ca.if_else(good == count, tau, ca.SX.nan(model.nv))
        found = {"efforts": tau, "propellant": before + burnt, "saturated": ca.fmax(saturated, supply < 1)}
        return found if self.tank is None else {**found, _BURNT: before + burnt / 2}

    def _supply(self, t: Any, messages: Mapping[str, Any], at: Places) -> ca.SX:
        """The part of what thrusters would burn in this period that there is."""
        if self.tank is None:
            return ca.SX(1)
        place = [name for name, _ in at.model.parameters].index(self.tank)
        left = at.parameters[place] + messages[_BURNT] - messages["propellant"]
        wanted = ca.SX(0)
        for device, u in self._commands(messages):
            if isinstance(device, Thruster):
                wanted = wanted + open_share(device, u, t, self.period) * self.period * device.flow
        return ca.if_else(wanted > left, ca.fmax(left, 0.0) / ca.fmax(wanted, 1e-300), 1.0)

    def _wheel(self, wheel: ReactionWheel, u: Any, speed: Any) -> Any:
        """What the motor gives; beyond the wheel's speed nothing that is a number."""
        given = _clip(u, wheel.torque)
        if math.isinf(wheel.speed):
            return given
        size = ca.fabs(speed)
        coming = ca.fabs(speed + given * (self.period / wheel.inertia))
        last = ca.sign(u) * ca.fmax(0.0, wheel.speed - size) * (wheel.inertia / self.period)
        given = ca.if_else(ca.logic_and(coming > wheel.speed, given * speed > 0), last, given)
        return ca.if_else(size > _BEYOND * wheel.speed, ca.SX.nan(1), given)

    def _servos(self, at: Places, tau: Any, accelerations: Mapping[str, Any]) -> Any:
        """Gimbals follow their rates whatever loads them, as far as their motors can."""
        model = at.model
        places = {name: model.v_slice(name).start for name in accelerations}
        free = {name: tau[k] for k, name in enumerate(model.speed_names) if k not in places.values()}
        more: dict[str, Any] = {"parameters": at.parameters} if model.parameters else {}
        found = model.symbolic.hybrid_dynamics(
            at.q, at.v, accelerations=accelerations, torques=free, **more
        ).efforts
        limits = {
            g.name: g.torque
            for group in self.devices.values()
            for g in group
            if isinstance(g, ControlMomentGyro)
        }
        for name, k in places.items():
            tau[k] = _clip(found[k], limits.get(name, math.inf))
        return tau


_BURNT = "burnt"
"""the message with the mass that is gone [kg], the mean over the period"""
_BEYOND = 1.05
"""times its speed: so fast a wheel does not turn"""
HUGE = 1e300
"""beyond it an entry of an expression is no number"""


def _clip(x: Any, most: float) -> Any:
    return x if math.isinf(most) else clip(x, most)


def pulses(t: float, times: Any) -> Array:
    """The message for thrusters: each fires for its time [s] from t on."""
    return np.stack(
        [np.atleast_1d(np.asarray(times, dtype=float)), np.full(np.size(times), float(t))], axis=-1
    ).ravel()


def open_share(thruster: Thruster, command: Any, t: Any, period: float) -> Any:
    """The part of the period from t on in which a thruster is open, 0 to 1, as an expression."""
    duration, start = command[0], command[1]
    share = (ca.fmin(start + duration, t + period) - ca.fmax(start, t)) / period
    given = ca.logic_and(duration > 0, duration >= thruster.minimum)
    return ca.if_else(ca.logic_and(given, share > 1e-9), share, 0.0)


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

    def controllers(self, hardware: Hardware | None = None, sensors: Sequence[Any] = ()) -> list[Any]:
        """For `simulate`; `sensors` (as given there) let names of messages be checked at once."""
        written = {name for task in self.tasks for name in task.writes}
        written |= {"propellant", "saturated", _BURNT}
        if sensors:
            periods = {x.name: x.period for x in sensors}
            known = written | set(periods)
            for task in self.tasks:
                for name in task.counts_once:
                    if name in periods and not math.isclose(periods[name], task.period, rel_tol=1e-9):
                        raise ArgumentError(
                            f"FlightSoftware: the task {task.name!r} is asked every {task.period:g} s and takes each sample "
                            f"of {name!r} once, which come every {periods[name]:g} s; expected the same period"
                        )
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
        found: list[Any] = [
            Sampled(
                x.function if x.is_symbolic else x,
                x.period,
                delay=x.delay,
                offset=x.phase,
                reads=x.reads,
                posts=x.writes,
            )
            for x in self.ordered
        ]
        return found if hardware is None else [*found, *hardware.controllers()]

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


_DOUBLES = ctypes.POINTER(ctypes.c_double)


@dataclass(frozen=True)
class SharedFunction:
    """A function of a library on disk (`.so`, `.dylib`, `.dll`), for `FlightTask`: `reads` and `writes` are the task's.

    `writes` has the first values of its messages. An instance can be copied to other processes that have the library.
    """

    library: str
    name: str
    reads: tuple[str, ...]
    writes: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "library", str(Path(self.library).resolve()))
        object.__setattr__(self, "reads", (self.reads,) if isinstance(self.reads, str) else tuple(self.reads))
        first = {name: np.atleast_1d(np.asarray(x, dtype=float)) for name, x in self.writes.items()}
        object.__setattr__(self, "writes", first)
        self._entry()

    def _entry(self) -> Any:
        try:
            found = getattr(ctypes.CDLL(self.library), self.name)
        except OSError as error:
            raise ArgumentError(f"SharedFunction: {self.library} cannot be loaded: {error}") from None
        except AttributeError:
            raise ArgumentError(
                f'SharedFunction: {self.library} has no function {self.name!r}; is it declared extern "C" and exported?'
            ) from None
        found.argtypes, found.restype = [ctypes.c_double, _DOUBLES, _DOUBLES], ctypes.c_int
        return found

    def __call__(self, t: float, messages: Mapping[str, Array]) -> dict[str, Array]:
        given = np.concatenate([np.zeros(0), *(np.ravel(messages[name]) for name in self.reads)])
        out = np.concatenate(
            [np.zeros(0), *(np.ravel(messages.get(name, first)) for name, first in self.writes.items())]
        )
        status = self._entry()(t, given.ctypes.data_as(_DOUBLES), out.ctypes.data_as(_DOUBLES))
        if status:
            raise NumericalError(
                f"{self.name} of {Path(self.library).name} returned {status} at t = {t:.6g} s"
            )
        ends = np.cumsum([0, *(x.size for x in self.writes.values())])
        return {name: out[ends[k] : ends[k + 1]] for k, name in enumerate(self.writes)}

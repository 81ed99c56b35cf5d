"""Sensors at work: what they measure, with errors, at instants, delivered later.

A sensor measures y at its instants t_k = offset + k period, and delivers, `delay` later,

    y + bias + w_k + noise n_k,  rounded to multiples of `quantum`;    w_{k+1} = w_k + walk sqrt(period) m_k      (1)

with n_k, m_k normal and independent. Where y is a configuration or a pose, errors are displacements (of rotations: small
rotations in the moved frame). The random numbers of a sample follow from the seed, the sensor's name and k alone, so
that a run that is resumed, or is one of a batch, sees the same. They are drawn in blocks of samples, each from a stream of
its own: that of SFC64 with these three numbers as its seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import casadi as ca
import numpy as np
import scipy

from alembert.arguments import check_known, numbers, real, unknown
from alembert.errors import ArgumentError, UnsupportedError, warn
from alembert.model import Model, Sensor
from alembert.simulate.controllers import Sampled, columns, to_multiples
from alembert.simulate.elements import Places, state_symbols
from alembert.spatial import quaternion

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray
_MIXED = 18
"""first numbers that are left out, in which the state becomes one that tells nothing of its seed (PractRand's seeding)"""
BLOCK = 512
"""samples whose random numbers are drawn at once"""


@runtime_checkable
class Observer(Protocol):
    """A sensor of another kind: `observe` gives samples (..., entries) with their errors (..., `width`).

    `chance` (...,) is uniform from 0 to 1, for samples that are lost by chance: those are NaN.
    """

    @property
    def name(self) -> str: ...

    @property
    def width(self) -> int: ...

    def check(self, model: Model) -> None: ...

    def observe(
        self, model: Model, t: float, q: Array, v: Array, error: Array, chance: Array, parameters: Any
    ) -> Array: ...


@runtime_checkable
class SymbolicObserver(Protocol):
    """A sensor that is an expression, and so can be part of machine code: samples of so many `entries`."""

    @property
    def name(self) -> str: ...

    @property
    def width(self) -> int: ...

    @property
    def entries(self) -> int: ...

    @property
    def is_lost_by_chance(self) -> bool: ...

    def check(self, model: Model) -> None: ...

    def expression(self, at: Places, error: ca.SX, chance: ca.SX) -> ca.SX:
        """A sample; `error` has `width` entries, `chance` is uniform from 0 to 1."""
        ...


@dataclass(frozen=True)
class HoldSwitch:
    """A sensor of the topology: 1 while one of the named constraints (what `Attach` and others hold) is on, otherwise 0."""

    name: str
    constraints: tuple[str, ...]

    width = 1
    entries = 1
    is_lost_by_chance = False

    def check(self, model: Model) -> None:
        """What may ever hold is known to a run alone."""

    def observe(
        self, model: Model, t: float, q: Array, v: Array, error: Array, chance: Array, parameters: Any
    ) -> Array:
        raise UnsupportedError(f"sensor {self.name!r} sees what holds in a run, expected one by al.simulate")

    def seen(self, system: Simulation) -> Array:
        model = system.model
        known = {x.name for x in model.loops} | {x.name for x in model.couplings}
        for name in self.constraints:
            check_known(f"sensor {self.name!r}: no event holds", name, known)
        return np.array([float(any(name in system.active for name in self.constraints))])


@dataclass(frozen=True)
class Measured:
    """A sensor of the model (by name), or one given here, every `period` [s] from `offset` on.

    `noise` is the standard deviation of a sample, `walk` that of the bias's random walk per square root of a second,
    both numbers or one per component, as is `bias`; `quantum` is a resolution and `delay` [s] the time until controllers
    get a sample. In a batch of motions noise needs a `seed` for each of them.
    """

    sensor: str | Sensor | Observer | SymbolicObserver
    period: float
    noise: Any = 0.0
    bias: Any = 0.0
    walk: Any = 0.0
    quantum: float = 0.0
    delay: float = 0.0
    offset: float = 0.0
    seed: Any = 0

    def __post_init__(self) -> None:
        if not isinstance(self.sensor, str | Sensor | Observer | SymbolicObserver):
            raise ArgumentError(f"Measured: sensor is {self.sensor!r}, expected a name or a Sensor")
        real("Measured", "period", self.period, "a positive time in seconds", over=0.0)
        for name in ("delay", "quantum", "offset"):
            real("Measured", name, getattr(self, name), "zero or a positive number", least=0.0)
        for name in ("noise", "bias", "walk"):
            x = np.atleast_1d(numbers("Measured", name, getattr(self, name)))
            if x.ndim != 1 or not np.isfinite(x).all() or (name != "bias" and np.any(x < 0)):
                raise ArgumentError(
                    f"Measured: {name} is {getattr(self, name)!r}, expected "
                    f"{'numbers' if name == 'bias' else 'zero or positive numbers'}"
                )
        seeds = np.asarray(self.seed)
        if seeds.dtype.kind not in "iu" or np.any(seeds < 0):
            raise ArgumentError(f"Measured: seed is {self.seed!r}, expected integers, zero or more")

    @property
    def name(self) -> str:
        return self.sensor if isinstance(self.sensor, str) else self.sensor.name


@dataclass(frozen=True, eq=False)
class SensorSamples:
    """What a sensor delivered in a run: `time` (K,) of measurement, and `values` (..., K, width)."""

    time: Array
    values: Array


class NewestSamples(dict[str, SensorSamples]):
    """Samples by name, of which some are left out: what was the newest at records that are further apart than samples.

    Whoever takes such samples out is told once.
    """

    def __init__(
        self, samples: Mapping[str, SensorSamples], taken: Mapping[str, int], interval: float
    ) -> None:
        super().__init__(samples)
        self._taken, self._interval = dict(taken), interval
        """how many samples there were, of those of which some are left out"""

    def __getitem__(self, name: str) -> SensorSamples:
        found = super().__getitem__(name)
        count = self._taken.pop(name, None)
        if count is not None:
            warn(
                f"simulate: measurements[{name!r}] has {len(found.time)} of {count} samples, the newest at each record: "
                f"records are {self._interval:g} s apart; leave interval= out to keep all"
            )
        return found


@dataclass(frozen=True, eq=False)
class Instrument:
    """A `Measured` sensor on a model: sizes, and how to read it."""

    given: Measured
    sensor: Sensor | Observer | SymbolicObserver
    model: Model
    width: int
    """of errors"""
    noise: Array
    bias: Array
    walk: Array
    key: int = field(default=0)

    @classmethod
    def of(cls, model: Model, given: Measured, batch: tuple[int, ...]) -> Instrument:
        sensor = given.sensor
        if isinstance(sensor, str):
            known = {x.name: x for x in model.sensors}
            check_known("simulate: sensors: no sensor", sensor, known)
            sensor = known[sensor]
        if not isinstance(sensor, Sensor):
            sensor.check(model)
            return cls._with_errors(model, given, sensor, sensor.width, batch)
        if sensor.of_joint and sensor.target not in model.joint_indices:
            raise ArgumentError(unknown("simulate: sensors: no joint", sensor.target, model.joint_indices))
        if not sensor.of_joint:
            model.frame(sensor.target)
        width = model.joint(sensor.target).type.nv if sensor.of_joint else 6 if sensor.kind == "frame" else 3
        found = cls._with_errors(model, given, sensor, width, batch)
        curved = sensor.kind == "frame" or (
            sensor.kind == "joint_position" and not model.joint(sensor.target).type.is_vector_space
        )
        if curved and given.quantum:
            raise UnsupportedError(
                f"simulate: sensors: a quantum and {sensor.name!r} do not go together: rotations have no multiples"
            )
        return found

    @classmethod
    def _with_errors(
        cls,
        model: Model,
        given: Measured,
        sensor: Sensor | Observer | SymbolicObserver,
        width: int,
        batch: tuple[int, ...],
    ) -> Instrument:
        errors = {}
        for name in ("noise", "bias", "walk"):
            x = np.atleast_1d(np.asarray(getattr(given, name), dtype=float))
            if len(x) not in (1, width):
                raise ArgumentError(
                    f"simulate: sensors: {name} of {sensor.name!r} has {len(x)} entries, expected 1 or {width}"
                )
            errors[name] = np.broadcast_to(x, (width,))
        random = bool(np.any(errors["noise"]) or np.any(errors["walk"]))
        lost = bool(getattr(sensor, "is_lost_by_chance", False))
        if batch and (random or lost) and np.shape(given.seed) != batch:
            what = "noise" if random else "samples lost by chance"
            raise UnsupportedError(
                f"simulate: sensors: {what} of {sensor.name!r} and a batch of {batch} motions: give a seed for "
                f"each, an array of shape {batch}"
            )
        return cls(given, sensor, model, width, key=zlib.crc32(sensor.name.encode()), **errors)

    @property
    def name(self) -> str:
        return self.sensor.name

    @property
    def entries(self) -> int | None:
        """Of a sample, where that is known."""
        if not isinstance(self.sensor, Sensor):
            return getattr(self.sensor, "entries", None)
        if self.sensor.of_joint:
            joint = self.model.joint(self.sensor.target).type
            return joint.nq if self.sensor.kind == "joint_position" else joint.nv
        return 7 if self.sensor.kind == "frame" else 3

    # --- random numbers ---------------------------------------------------------------------------------------------

    @cached_property
    def drawn(self) -> tuple[int, int, int]:
        """How many random numbers a sample takes: for noise, for the walk, and for chance."""
        by_chance = not isinstance(self.sensor, Sensor) and getattr(self.sensor, "is_lost_by_chance", True)
        return (
            self.width if np.any(self.noise) else 0,
            self.width if np.any(self.walk) else 0,
            int(by_chance),
        )

    def block(self, number: int, batch: tuple[int, ...]) -> Array:
        """(*batch, BLOCK, sum(drawn)): normal numbers of the samples from number * BLOCK on; chance is uniform."""
        if number in self._blocks:
            return self._blocks[number]
        count = sum(self.drawn)
        seeds = np.broadcast_to(np.asarray(self.given.seed, dtype=np.uint64), batch)
        found = np.empty((*batch, BLOCK, count))
        bits = np.random.SFC64(0)
        stream, state = np.random.Generator(bits), bits.state
        for k in np.ndindex(*batch):
            state["state"]["state"][:] = seeds[k], self.key, number, 1
            bits.state = state  # a new generator would take ten times as long
            bits.random_raw(_MIXED, output=False)
            stream.standard_normal(out=found[k])
        if self.drawn[2]:
            found[..., -1] = scipy.special.ndtr(found[..., -1])
        if len(self._blocks) > 1:
            self._blocks.pop(next(iter(self._blocks)))
        self._blocks[number] = found
        return found

    def drawn_from(self, first: int, count: int, batch: tuple[int, ...]) -> Array:
        """(*batch, count, sum(drawn)): the numbers of so many samples from the first on."""
        parts = []
        while count > 0:
            start = first % BLOCK
            part = self.block(first // BLOCK, batch)[..., start : start + count, :]
            parts.append(part)
            first, count = first + part.shape[-2], count - part.shape[-2]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-2)

    @cached_property
    def _blocks(self) -> dict[int, Array]:
        """Those used last."""
        return {}

    def draws(self, k: int, batch: tuple[int, ...]) -> tuple[Array, Array, Array]:
        """The normal numbers n_k and m_k of sample k, (..., width), and one that is uniform, (...,)."""
        n, m, c = self.drawn
        zero = np.zeros(self.width)
        if not n + m + c:
            return zero, zero, np.zeros(())
        row = self.block(k // BLOCK, batch)[..., k % BLOCK, :]
        return (
            row[..., :n] if n else zero,
            row[..., n : n + m] if m else zero,
            row[..., -1] if c else np.zeros(()),
        )

    # --- samples ----------------------------------------------------------------------------------------------------

    @property
    def is_symbolic(self) -> bool:
        """Whether it is an expression of the state."""
        if isinstance(self.sensor, Sensor):
            return self.sensor.kind != "accelerometer"
        return isinstance(self.sensor, SymbolicObserver)

    def expression(self, at: Places, error: ca.SX, chance: ca.SX) -> ca.SX:
        """A sample as an expression: the same as `measure` gives."""
        return to_multiples(self._unrounded(at, error, chance), self.given.quantum)

    def _unrounded(self, at: Places, error: ca.SX, chance: ca.SX) -> ca.SX:
        if isinstance(self.sensor, Sensor):
            return self._of_model(self.sensor, at, error)
        assert isinstance(self.sensor, SymbolicObserver)
        return self.sensor.expression(at, error, chance)

    def _of_model(self, sensor: Sensor, at: Places, error: ca.SX) -> ca.SX:
        model, target = at.model, sensor.target
        if sensor.kind == "joint_rate":
            return at.v[model.v_slice(target)] + error
        if sensor.kind == "joint_position":
            if model.joint(target).type.is_vector_space:
                return at.q[model.q_slice(target)] + error
            moved = ca.SX.zeros(model.nv)
            moved[model.v_slice(target)] = error
            return model.space.integrate(at.q, moved)[model.q_slice(target)]
        if sensor.kind == "gyro":
            return at.own_velocity(target)[:3] + error
        X = at.pose(target)
        if sensor.kind == "point":
            return X.translation + error
        turned = quaternion.multiply(at.attitude(target), quaternion.exp(error[:3]))
        return ca.vertcat(X.translation + error[3:], turned)

    @cached_property
    def _function(self) -> ca.Function:
        model = self.model
        t, q, v, p = state_symbols(model)
        error, chance = ca.SX.sym("error", self.width), ca.SX.sym("chance")
        y = self._unrounded(Places(model, t, q, v, p), error, chance)
        return ca.Function("sample", [t, q, v, p, error, chance], [ca.densify(y)])

    def measure(
        self, system: Simulation, t: float, q: Array, v: Array, effort: Array, error: Array, chance: Array
    ) -> Array:
        """y with its error."""
        if self.is_symbolic:
            y = self._numbers(system, t, q, v, error, chance)
        elif isinstance(self.sensor, Sensor):
            y = self._specific_force(system, t, q, v, effort) + error
        elif isinstance(self.sensor, HoldSwitch):
            y = self.sensor.seen(system) + error
        else:
            assert isinstance(self.sensor, Observer)
            y = self.sensor.observe(system.own, t, q, v, error, chance, system.own_parameters)
        return to_multiples(y, self.given.quantum)

    def check_fresh(self, made: Instrument) -> None:
        """Refuse to stand for the sensor an estimator was made for where samples would not be new when it takes them."""
        here, there = self.given, made.given
        every, since = there.period / here.period, (there.offset - here.offset) / here.period
        aligned = all(abs(x - round(x)) < 1e-6 for x in (every, since)) and since > -0.5
        if aligned and not here.delay and self.sensor == made.sensor:
            return

        def told(one: Instrument) -> str:
            x = one.given
            late = f", {x.delay:g} s late" if x.delay else ""
            return f"{one.sensor} every {x.period:g} s from {x.offset:g} s on{late}"

        raise ArgumentError(
            f"simulate: an estimator was made for {told(made)}; the run has {told(self)}. It would take old samples for new "
            "ones: give both the same sensors"
        )

    def truth(self, system: Simulation, t: float, q: Array, v: Array, effort: Array) -> Array:
        """y of a sensor of the model."""
        if self.is_symbolic:
            return self._numbers(system, t, q, v, np.zeros(self.width), np.ones(()))
        return self._specific_force(system, t, q, v, effort)

    def _numbers(
        self, system: Simulation, t: float, q: Array, v: Array, error: Array, chance: Array
    ) -> Array:
        p = system.own.compute.parameter_array("simulate", system.own_parameters)
        batch = np.broadcast_shapes(q.shape[:-1], error.shape[:-1], chance.shape)
        return columns(self._function, t, [q, v, p, error, chance[..., None]], batch)[0]

    def _specific_force(self, system: Simulation, t: float, q: Array, v: Array, effort: Array) -> Array:
        """What an accelerometer feels, which depends on all that acts."""
        assert isinstance(self.sensor, Sensor)
        model, target, given = system.own, self.sensor.target, {"parameters": system.own_parameters}
        X = model.frame_pose(q, target, **given)
        a = system.point(t, q, v, effort).a
        A = model.frame_acceleration(q, v, a, target, reference="local_world_aligned", **given)
        specific = A[..., 3:] - system.gravity_at(t, X.translation)
        return np.einsum("...ji,...j->...i", X.rotation, specific)


def instruments(
    model: Model, sensors: Sequence[Measured], laws: Sequence[Sampled], batch: tuple[int, ...]
) -> tuple[Instrument, ...]:
    """The sensors of a run at work, checked against what sampled laws read and post."""
    for given in sensors:
        if not isinstance(given, Measured):
            raise ArgumentError(f"simulate: sensors has {given!r}, expected Measured(sensor, period, ...)")
    found = tuple(Instrument.of(model, given, batch) for given in sensors)
    names = [x.name for x in found]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"simulate: sensors: {name!r} is given twice")
    posted = [name for law in laws for name in law.posts]
    for name in posted:
        if posted.count(name) > 1 or name in names:
            raise ArgumentError(
                f"simulate: {name!r} is posted twice, or is a sensor too; expected one source"
            )
    for law in laws:
        for name in law.reads:
            if name not in (*names, *posted):
                raise ArgumentError(
                    unknown("simulate: a sampled controller reads no sensor", name, [*names, *posted])
                )
        for name, made in getattr(law.law, "expects", {}).items():
            found[names.index(name)].check_fresh(made)
    return found

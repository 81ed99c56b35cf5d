"""Sensors of a spacecraft, as `Measured` ones for `simulate`: what they see, with errors, when they see it at all.

They are expressions: with flight software that is so too, they are part of the compiled loop.

A sample that is not there (blinded, in shadow, out of the field of view, dropped) is NaN in all entries: flight software
asks `np.isfinite`. Noise is given as a density: with N [unit/sqrt(Hz)] and a period h, a sample has the standard deviation
N/sqrt(h), and a bias that walks with K [unit/s/sqrt(Hz)] moves by K sqrt(h) from sample to sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, is_number
from alembert.errors import ArgumentError
from alembert.model import Model, Sensor
from alembert.simulate.elements import Places
from alembert.simulate.sensors import Measured
from alembert.spacecraft.astronomy import EQUATOR
from alembert.spacecraft.environment import Environment, sunlit
from alembert.spacecraft.fields import MagneticField
from alembert.spacecraft.orbits import origin_at
from alembert.spatial import quaternion

Sample = tuple[ca.SX, list[ca.SX]]


@dataclass(frozen=True)
class SpacecraftSensor:
    """What all of them have: a frame, the environment, a chance that a sample is lost, a field of view about an axis."""

    name: str
    frame: str
    environment: Environment = field(repr=False)
    dropout: float = 0.0
    boresight: tuple[float, ...] = (0.0, 0.0, 1.0)
    field_of_view: float = math.pi
    """half the angle of the cone in which it sees [rad]"""

    width = 3
    """of its errors"""
    entries = 3
    """of its samples"""

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ArgumentError(
                f"sensor {self.name!r}: dropout is {self.dropout!r}, expected a chance from 0 to 1"
            )
        b = np.asarray(self.boresight, dtype=float)
        if b.shape != (3,) or not np.linalg.norm(b) > 0:
            raise ArgumentError(
                f"sensor {self.name!r}: boresight is {self.boresight!r}, expected a direction"
            )
        if not 0 < self.field_of_view <= math.pi:
            raise ArgumentError(
                f"sensor {self.name!r}: field_of_view is {self.field_of_view!r}, expected half an angle, up to pi"
            )
        object.__setattr__(self, "boresight", tuple(float(x) for x in b / np.linalg.norm(b)))

    def check(self, model: Model) -> None:
        model.frame(self.frame)

    @property
    def is_lost_by_chance(self) -> bool:
        return self.dropout > 0

    def expression(self, at: Places, error: ca.SX, chance: ca.SX) -> ca.SX:
        """A sample with its error; `chance` is uniform."""
        value, seen = self.sample(at, error)
        if self.dropout:
            seen = [*seen, chance >= self.dropout]
        for condition in seen:
            value = ca.if_else(condition, value, ca.SX.nan(self.entries))
        return value

    def sample(self, at: Places, error: ca.SX) -> Sample:
        """One sample, and what must hold for it to be there."""
        raise NotImplementedError

    def axes(self, at: Places) -> ca.SX:
        """R, of the frame in the world."""
        return ca.SX(at.pose(self.frame).rotation)

    def place(self, at: Places) -> ca.SX:
        """Of the frame, from the Earth's centre."""
        return origin_at(self.environment.world, at)[0] + at.pose(self.frame).translation

    def sun(self, at: Places) -> ca.SX:
        return at.once(("sun", self.environment), lambda: self.environment.sun(at.t))

    def sees(self, direction: ca.SX) -> list[ca.SX]:
        """Whether a direction in the frame's axes is in the field of view."""
        if self.field_of_view == math.pi:
            return []
        return [ca.dot(direction, ca.DM(self.boresight)) >= math.cos(self.field_of_view)]

    def towards_sun(self, at: Places) -> ca.SX:
        return _unit(self.sun(at) - self.place(at))


def _unit(x: ca.SX) -> ca.SX:
    return x / ca.sqrt(ca.dot(x, x))


def _turned(direction: ca.SX, error: ca.SX) -> ca.SX:
    """A direction turned by a small rotation."""
    return quaternion.to_matrix(quaternion.exp(error)) @ direction


@dataclass(frozen=True)
class StarTracker(SpacecraftSensor):
    """The attitude of its frame in inertial axes, a unit quaternion (wxyz) with w >= 0.

    It is blind when the Sun, or the limb of the Earth, is within an angle [rad] of its boresight, or when it turns faster
    than `most_rate` [rad/s]. Errors are small rotations about its axes.
    """

    sun_exclusion: float = 0.0
    earth_exclusion: float = 0.0
    most_rate: float = math.inf
    entries = 4

    def sample(self, at: Places, error: ca.SX) -> Sample:
        seen = []
        look = self.axes(at) @ ca.DM(self.boresight)
        if math.isfinite(self.most_rate):
            w = at.own_velocity(self.frame)[:3]
            seen.append(ca.dot(w, w) <= self.most_rate**2)
        if self.sun_exclusion:
            seen.append(ca.dot(look, self.towards_sun(at)) <= math.cos(self.sun_exclusion))
        if self.earth_exclusion:
            r = self.place(at)
            d = ca.sqrt(ca.dot(r, r))
            limb = ca.fmin(ca.asin(ca.fmin(1.0, EQUATOR / d)) + self.earth_exclusion, math.pi)
            seen.append(-ca.dot(look, r) / d <= ca.cos(limb))
        found = quaternion.multiply(at.attitude(self.frame), quaternion.exp(error))
        return ca.if_else(found[0] < 0, -found, found), seen


@dataclass(frozen=True)
class SunSensor(SpacecraftSensor):
    """The direction to the Sun in its frame's axes; nothing in the Earth's shadow or outside its field of view."""

    def sample(self, at: Places, error: ca.SX) -> Sample:
        direction = self.axes(at).T @ self.towards_sun(at)
        light = sunlit(self.place(at), self.sun(at)) >= 0.5
        return _turned(direction, error), [*self.sees(direction), light]


@dataclass(frozen=True)
class EarthSensor(SpacecraftSensor):
    """The direction to the centre of the Earth in its frame's axes."""

    def sample(self, at: Places, error: ca.SX) -> Sample:
        direction = -(self.axes(at).T @ _unit(self.place(at)))
        return _turned(direction, error), self.sees(direction)


@dataclass(frozen=True)
class Magnetometer(SpacecraftSensor):
    """The magnetic field in its frame's axes [T]."""

    magnetic: MagneticField | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.magnetic is None:
            object.__setattr__(self, "magnetic", self.environment.magnetic_field())

    def sample(self, at: Places, error: ca.SX) -> Sample:
        assert self.magnetic is not None
        return self.axes(at).T @ self.magnetic.inertial(at.t, self.place(at)) + error, []


@dataclass(frozen=True)
class PositionFix(SpacecraftSensor):
    """What a receiver of satellite navigation gives: position [m] and velocity [m/s] from the Earth's centre,
    inertial axes.
    """

    width = 6
    entries = 6

    def sample(self, at: Places, error: ca.SX) -> Sample:
        v0 = origin_at(self.environment.world, at)[1]
        return ca.vertcat(self.place(at), v0 + at.velocity(self.frame)[3:]) + error, []


def _deviation(density: Any, period: float) -> Any:
    if not (is_number(period) and period > 0):
        return np.asarray(density, dtype=float)  # `Measured` tells
    return np.asarray(density, dtype=float) / math.sqrt(period)


def gyro(
    name: str,
    frame: str,
    *,
    period: float,
    noise_density: Numbers = 0.0,
    walk_density: Numbers = 0.0,
    **options: Any,
) -> Measured:
    """Angular rate [rad/s] in the frame's axes: angle random walk [rad/s/sqrt(Hz)] and rate random walk
    [rad/s^2/sqrt(Hz)].
    """
    return Measured(
        Sensor(name, "gyro", frame),
        period,
        noise=_deviation(noise_density, period),
        walk=walk_density,
        **options,
    )


def accelerometer(
    name: str,
    frame: str,
    *,
    period: float,
    noise_density: Numbers = 0.0,
    walk_density: Numbers = 0.0,
    **options: Any,
) -> Measured:
    """Specific force [m/s^2] in the frame's axes; noise [m/s^2/sqrt(Hz)]."""
    noise = _deviation(noise_density, period)
    return Measured(Sensor(name, "accelerometer", frame), period, noise=noise, walk=walk_density, **options)


_ERRORS = ("noise", "bias", "walk", "quantum", "delay", "offset", "seed")


def _measured(
    kind: type[SpacecraftSensor], name: str, frame: str, environment: Environment, period: float, options: Any
) -> Measured:
    errors = {key: options.pop(key) for key in _ERRORS if key in options}
    return Measured(kind(name, frame, environment, **options), period, **errors)


def star_tracker(
    name: str, frame: str, environment: Environment, *, period: float, **options: Any
) -> Measured:
    """Options are those of `StarTracker` and of `Measured` (noise: three small angles [rad], delay, ...)."""
    return _measured(StarTracker, name, frame, environment, period, options)


def sun_sensor(name: str, frame: str, environment: Environment, *, period: float, **options: Any) -> Measured:
    """Options are those of `SunSensor` and of `Measured`."""
    return _measured(SunSensor, name, frame, environment, period, options)


def earth_sensor(
    name: str, frame: str, environment: Environment, *, period: float, **options: Any
) -> Measured:
    """Options are those of `EarthSensor` and of `Measured`."""
    return _measured(EarthSensor, name, frame, environment, period, options)


def magnetometer(
    name: str, frame: str, environment: Environment, *, period: float, **options: Any
) -> Measured:
    """Options are those of `Magnetometer` and of `Measured` (noise in tesla)."""
    return _measured(Magnetometer, name, frame, environment, period, options)


def position_fix(
    name: str, frame: str, environment: Environment, *, period: float, **options: Any
) -> Measured:
    """Options are those of `PositionFix` and of `Measured` (noise: six numbers, m and m/s)."""
    return _measured(PositionFix, name, frame, environment, period, options)

"""What drives the joints: controllers, in continuous time or sampled, and the drives that carry out their commands.

A continuous controller is a function u(t, q, v) that gives efforts: an array (..., nv), or a mapping from
joints or degrees of freedom to efforts. A CasADi function is compiled into the loop. A `Sampled` controller
is asked at fixed instants only and its answer held, like flight software. All controllers add up. At equal
times they are asked in the order in which they are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model

Array = np.ndarray
Law = Callable[[float, Array, Array], Any]


@dataclass(frozen=True)
class Sampled:
    """A control law asked every `period` [s], from `offset` on; its answer acts `delay` [s] later, in steps of `quantum`.

    Before its first answer acts, it gives nothing.
    """

    law: Law
    period: float
    delay: float = 0.0
    quantum: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.law):
            raise ArgumentError(f"Sampled: law is {self.law!r}, expected a function of t, q and v")
        if not (math.isfinite(self.period) and self.period > 0):
            raise ArgumentError(f"Sampled: period is {self.period!r}, expected a positive time in seconds")
        for name in ("delay", "quantum", "offset"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ArgumentError(f"Sampled: {name} is {value!r}, expected zero or a positive number")


@dataclass(frozen=True)
class Drive:
    """How one joint's drive carries out a command: first a lag of first order, then its rate limit, then its saturation.

    `limit` bounds the effort [N m or N], `rate` how fast it changes [per second], `lag` is a time constant [s].
    """

    limit: float = math.inf
    rate: float = math.inf
    lag: float = 0.0

    def __post_init__(self) -> None:
        for name in ("limit", "rate"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"Drive: {name} is {getattr(self, name)!r}, expected a positive number")
        if not (math.isfinite(self.lag) and self.lag >= 0):
            raise ArgumentError(f"Drive: lag is {self.lag!r}, expected zero or a time in seconds")


@dataclass(frozen=True)
class Drives:
    """The drives of all degrees of freedom, as vectors over the speeds."""

    limit: Array
    rate: Array
    lag: Array

    @classmethod
    def of(cls, model: Model, drives: Mapping[str, Drive]) -> Drives:
        fields = {}
        for name, default in (("limit", np.inf), ("rate", np.inf), ("lag", 0.0)):
            given: dict[str, Array] = {}
            for joint, drive in drives.items():
                if not isinstance(drive, Drive):
                    raise ArgumentError(f"simulate: drives[{joint!r}] is {drive!r}, expected a Drive")
                width = model.joint(joint).type.nv if joint in model._joint_index else 1
                given[joint] = np.full(width, getattr(drive, name))
            named, values = model._by_name("simulate", given, "drives")
            fields[name] = np.where(named, values, default)
        return cls(**fields)

    @property
    def remember(self) -> bool:
        """Whether what a drive gives depends on what it gave before."""
        return bool(np.any(np.isfinite(self.rate)) or np.any(self.lag > 0))

    def saturate(self, command: Array) -> Array:
        return np.clip(command, -self.limit, self.limit)

    def advance(self, before: Array, command: Array, h: float) -> tuple[Array, Array]:
        """The mean effort over a step of h, and the effort at its end, from the effort at its start."""
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(self.lag > 0, h / np.where(self.lag > 0, self.lag, 1.0), np.inf)
            share = np.where(np.isfinite(x), -np.expm1(-x), 1.0)
            held = np.where(np.isfinite(x), share / x, 0.0)  # the mean of exp(-s/lag) over the step
        asked = self.saturate(command)
        end = before + share * (asked - before)
        reach = self.rate * h
        limited = np.clip(end, before - reach, before + reach)
        mean = np.where(limited == end, asked + held * (before - asked), (before + limited) / 2)
        return mean, limited


@dataclass
class Schedule:
    """The sampled controllers of a run on its grid of instants; `held` is what each of them gives at present."""

    controllers: tuple[Sampled, ...]
    periods: tuple[int, ...]
    delays: tuple[int, ...]
    offsets: tuple[int, ...]
    held: list[Array] = field(default_factory=list)
    pending: list[tuple[int, int, Array]] = field(default_factory=list)
    """(instant, controller, answer) still to act, by time"""
    asked: int = -1
    """the last instant that has been dealt with"""

    def copy(self) -> Schedule:
        return Schedule(
            self.controllers,
            self.periods,
            self.delays,
            self.offsets,
            list(self.held),
            list(self.pending),
            self.asked,
        )

    @classmethod
    def on_grid(cls, controllers: tuple[Sampled, ...], h: float) -> Schedule:
        def steps(value: float, name: str) -> int:
            count = round(value / h)
            if abs(value - count * h) > 1e-9 * max(value, h):
                raise ArgumentError(
                    f"simulate: a sampled controller has {name} {value:g} s, expected a multiple of the step {h:g} s"
                )
            return count

        return cls(
            controllers,
            tuple(max(1, steps(c.period, "period")) for c in controllers),
            tuple(steps(c.delay, "delay") for c in controllers),
            tuple(steps(c.offset, "offset") for c in controllers),
        )

    def next_instant(self, n: int) -> int:
        """The first instant after n at which something happens."""
        found = [self.pending[0][0]] if self.pending else []
        for period, offset in zip(self.periods, self.offsets, strict=True):
            found.append(offset if n < offset else n + period - (n - offset) % period)
        return min((k for k in found if k > n), default=n + 2**40)

    def update(self, n: int, t: float, q: Array, v: Array, model: Model) -> None:
        """Ask whoever is due at instant n, and let answers act whose time has come."""
        if not self.held:
            self.held = [np.zeros(model.nv) for _ in self.controllers]
        if n <= self.asked:
            return
        self.asked = n
        for k, controller in enumerate(self.controllers):
            if n >= self.offsets[k] and (n - self.offsets[k]) % self.periods[k] == 0:
                answer = efforts_from(model, controller.law(t, q, v), "a sampled controller")
                if controller.quantum:
                    answer = controller.quantum * np.round(answer / controller.quantum)
                self.pending.append((n + self.delays[k], k, answer))
        self.pending.sort(key=lambda entry: entry[:2])
        while self.pending and self.pending[0][0] <= n:
            _, k, answer = self.pending.pop(0)
            self.held[k] = answer

    def command(self) -> Array:
        return sum(self.held[1:], self.held[0])


def efforts_from(model: Model, answer: Any, who: str) -> Array:
    """What a controller returned, as an array (..., nv)."""
    if isinstance(answer, Mapping):
        return model._by_name("simulate", answer, f"efforts of {who}")[1]
    x = np.asarray(answer, dtype=float)
    if x.ndim == 0 and model.nv == 1:
        return x[None]
    if x.ndim == 0 or x.shape[-1] != model.nv:
        raise ArgumentError(
            f"simulate: {who} returned shape {x.shape}, expected (..., {model.nv}) efforts, or a mapping from "
            "joints to efforts"
        )
    return x

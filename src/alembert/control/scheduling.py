"""Gain schedules: one controller made of several, by a signal that says where the plant is.

Between the values at which systems were designed their matrices are interpolated,

    A(s) = A_k + (s - s_k) / (s_k+1 - s_k) (A_k+1 - A_k),      s_k <= s <= s_k+1                                    (1)

and so are B, C and D; outside, the nearest holds. That needs systems whose states mean the same, as those of one
structure do (PID, observers in the plant's coordinates): balanced or modal coordinates would be mixed up. With
`interpolation="switch"` each system runs from its value on up to the next, and those that wait follow what the one at
work does (`alembert.simulate.DynamicController`), so that taking over makes no bump as long as outputs change slowly for
their poles; they may differ in their states. What no state can make up for is a jump: gains D that differ, which want to be
interpolated within a short span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import choice
from alembert.control import arguments
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class GainSchedule:
    """Systems at ascending `values` of a signal: the name of something measured or of a reference, or "t" for time."""

    signal: str
    values: Array
    systems: tuple[StateSpace, ...]
    interpolation: str = "linear"

    if TYPE_CHECKING:

        def __init__(
            self, signal: str, values: Any, systems: Sequence[StateSpace], interpolation: str = "linear"
        ) -> None: ...

    def __post_init__(self) -> None:
        what = "GainSchedule"
        values = np.atleast_1d(arguments.numbers(what, "values", self.values))
        if isinstance(self.systems, StateSpace):
            raise ArgumentError(f"{what}: systems is one StateSpace, expected a list of them")
        systems = tuple(self.systems)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "systems", systems)
        if not isinstance(self.signal, str) or not self.signal:
            raise ArgumentError(f"{what}: signal is {self.signal!r}, expected a name, or 't' for time")
        choice(what, "interpolation", self.interpolation, ("linear", "switch"))
        for k, system in enumerate(systems):
            if not isinstance(system, StateSpace):
                raise ArgumentError(f"{what}: systems[{k}] is {system!r}, expected a StateSpace")
        if len(values) != len(systems) or len(values) < 1 or np.any(np.diff(values) <= 0):
            raise ArgumentError(
                f"{what}: values are {values.tolist()} for {len(systems)} systems, expected one for each, ascending"
            )
        first = systems[0]
        for k, system in enumerate(systems[1:], start=1):
            for name in ("dt", "input_names", "output_names", "input_units", "output_units"):
                if getattr(system, name) != getattr(first, name):
                    raise ArgumentError(
                        f"{what}: systems[{k}] has {name} {getattr(system, name)!r}, expected those of the first, "
                        f"{getattr(first, name)!r}"
                    )
            if self.interpolation == "linear" and system.order != first.order:
                raise ArgumentError(
                    f"{what}: systems[{k}] has {system.order} states and the first {first.order}: matrices of the same "
                    "size are interpolated; interpolation='switch' takes others"
                )

    @property
    def dt(self) -> float:
        return self.systems[0].dt

    @property
    def input_names(self) -> tuple[str, ...]:
        return self.systems[0].input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        return self.systems[0].output_names

    def at(self, value: float) -> StateSpace:
        """The system where the signal has this value."""
        x = float(arguments.numbers("GainSchedule.at", "value", value))
        if self.interpolation == "switch":
            return self.systems[max(int(np.searchsorted(self.values, x, side="right")) - 1, 0)]
        k = int(np.clip(np.searchsorted(self.values, x) - 1, 0, max(len(self.values) - 2, 0)))
        if len(self.values) == 1:
            return self.systems[0]
        low, high = self.values[k], self.values[k + 1]
        s = float(np.clip((x - low) / (high - low), 0.0, 1.0))
        parts = zip(self.systems[k].matrices, self.systems[k + 1].matrices, strict=True)
        return self.systems[k].with_matrices(*((1 - s) * a + s * b for a, b in parts))

    def __repr__(self) -> str:
        listed = ", ".join(f"{x:g}" for x in self.values)
        return (
            f"<GainSchedule: {len(self.systems)} systems at {self.signal} = {listed}, {self.interpolation}>"
        )

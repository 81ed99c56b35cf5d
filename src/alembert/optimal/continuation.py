"""Continuation: a family of problems, each solved from the solution of the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.optimal.problem import Problem
from alembert.optimal.solution import Solution

SMALLEST = 1 / 64
"""of the way between two values: shorter steps are not tried"""


@dataclass(frozen=True)
class Continuation:
    """`solutions` at `values`, as far as they were found; `success` if at all that were asked for."""

    values: tuple[Any, ...]
    solutions: tuple[Solution, ...]
    success: bool
    message: str
    solves: int
    """problems that were solved, with values in between"""

    @property
    def last(self) -> Solution:
        """The solution farthest along the way."""
        return self.solutions[-1]

    def __repr__(self) -> str:
        return f"<Continuation: {self.message}, {self.solves} problems solved>"


def continuation(
    make: Callable[[Any], Problem],
    values: Sequence[Any],
    steps: int = 100,
    *,
    guess: Any = None,
    **options: Any,
) -> Continuation:
    """Solve `make(value)` for each of `values`, each from the solution before.

    `make` returns a problem for a number (or an array): a radius of an obstacle, gravity, a duration. Where a
    solve does not succeed, values in between are tried, up to a 64th of the way. `guess` is for the first
    one; `options` are those of `alembert.optimal.solve`.
    """
    try:
        given = [float(v) if np.ndim(v) == 0 else np.asarray(v, dtype=float) for v in values]
    except (TypeError, ValueError):
        raise ArgumentError(f"continuation: values is {values!r}, expected numbers (or arrays)") from None
    if not given:
        raise ArgumentError(
            "continuation: values is empty, expected numbers to solve for, one after the other"
        )
    if not callable(make):
        raise ArgumentError(f"continuation: make is {make!r}, expected a function from a value to a Problem")
    count = 0

    def solve(value: Any, start: Any) -> Solution:
        nonlocal count
        count += 1
        problem = make(value)
        if not isinstance(problem, Problem):
            raise ArgumentError(
                f"continuation: make({value!r}) is a {type(problem).__name__}, expected a Problem"
            )
        return problem.solve(steps, guess=start, **options)

    found = [solve(given[0], guess)]
    if not found[0].success:
        message = f"no solution at the first value, {given[0]}: {found[0].message}"
        return Continuation((given[0],), tuple(found), False, message, count)
    for before, value in pairwise(given):
        here, share, last = 0.0, 1.0, found[-1]
        while here < 1.0:
            to = min(1.0, here + share)
            new = solve(value if to == 1.0 else before + to * (value - before), last)
            if new.success:
                here, last, share = to, new, 2 * share
                continue
            if new.status == "interrupted" or share <= SMALLEST:
                at = before + here * (value - before)
                message = f"stopped at {at} on the way to {value}: {new.message}"
                done = tuple(given[: len(found)])
                if here > 0:
                    found, done = [*found, last], (*done, at)
                return Continuation(done, tuple(found), False, message, count)
            share /= 2
        found.append(last)
    return Continuation(tuple(given), tuple(found), True, f"solved at all {len(given)} values", count)

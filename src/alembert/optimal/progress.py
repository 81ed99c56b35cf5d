"""A line per iteration."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from alembert.errors import ArgumentError
from alembert.optimal.sweep import Iteration


def reporter(progress: Any) -> Callable[[Iteration], Any] | None:
    """What to call with each iteration: `progress` itself, or a function that prints, by default on a terminal."""
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    if not isinstance(progress, bool):
        raise ArgumentError(
            f"solve: progress is {progress!r}, expected True, False or a function of an iteration"
        )
    if not progress:
        return None

    def show(i: Iteration) -> None:
        if i.number % 20 == 0:
            print(
                f"{'':>4}  {'cost':>14}  {'infeasible':>10}  {'slope':>9}  {'barrier':>8}  {'step':>8}",
                file=sys.stderr,
            )
        slope, barrier, step = _known(i.slope, "9.2e"), _known(i.barrier, "8.1e"), _known(i.step, "8.2e")
        print(
            f"{i.number:4d}  {i.cost:14.8g}  {i.infeasibility:10.2e}  {slope}  {barrier}  {step}",
            file=sys.stderr,
        )

    return show


def _known(value: float, form: str) -> str:
    """A number, or a dash where a solver does not tell it."""
    return f"{'-':>{form.split('.')[0]}}" if math.isnan(value) else f"{value:{form}}"

"""The pace of a run: refuse those that cannot end (more records than the memory holds, more steps than can be counted or
waited for), and show how far others are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from alembert.errors import ArgumentError, NumericalError

COUNTED = 2**53
"""steps; their number is kept as a double"""
TRIED = 10_000
"""steps with error control before the pace is judged"""
PATIENCE = 1e9
"""steps with error control that may be left then: a week or more"""
AT_A_TIME = 200_000
"""steps of one motion in machine code, which cannot be interrupted: less than a second, mostly"""


def check_steps(who: str, duration: float, step: float) -> None:
    count = duration / step
    if count > COUNTED:
        raise ArgumentError(
            f"{who}: {duration:g} s in steps of {step:g} s are {count:.2g} steps, more than can be counted ({COUNTED:.2g}); "
            "give a shorter duration or a larger step"
        )


def check_records(who: str, duration: float, interval: float, numbers: int, *, hint: str = "") -> None:
    """`numbers` are kept at each record."""
    count = duration / interval + 1
    needed, there = 8.0 * count * numbers, memory()
    if needed > there:
        raise ArgumentError(
            f"{who}: {count:.3g} records, {interval:g} s apart, take {_size(needed)} of memory, this machine has "
            f"{_size(there)}; give a larger interval between records (interval=...){hint}"
        )


class Pace:
    """Of error control: refuse to go on where the last `TRIED` steps say that the run never ends.

    A motion that grows without bound takes ever shorter steps.
    """

    def __init__(self, who: str) -> None:
        self._who, self._last = who, (0, 0.0)

    def check(self, steps: int, passed: float, duration: float, fastest: Callable[[], str]) -> None:
        """`steps` were made for the time `passed`; `fastest` says what moves fastest."""
        before, then = self._last
        if steps - before < TRIED:
            return
        self._last = (steps, passed)
        if (passed - then) * PATIENCE < (duration - passed) * (steps - before):
            raise NumericalError(
                f"simulate: {self._who} made the last {steps - before} of {steps} steps for {passed - then:.3g} s, at "
                f"{passed:.6g} s of {duration:g} s: at this pace it never ends ({fastest()}); give a shorter duration, a "
                "larger tolerance, or, if the motion is stiff, integrator='radau'"
            )


def steps_at_a_time(batch: Sequence[int]) -> int:
    """In one call of a kernel: so that it can be interrupted, and progress be shown, within some seconds."""
    motions = 1
    for n in batch:
        motions *= n
    return max(1, AT_A_TIME * 8 // max(8, motions))


def memory() -> float:
    """Of the machine [bytes]; where it does not tell, a lot."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2.0**40


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} PiB"


SHOWN_AFTER = 1.0  # s


class Progress:
    """`at(fraction)` shows how far the run is; the bar appears after `SHOWN_AFTER` and goes away at the end."""

    def __init__(self, what: str, *, shown: bool | None = None) -> None:
        self._what = what
        self._wanted = (sys.stderr is not None and sys.stderr.isatty()) if shown is None else shown
        self._start = self._last = monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def at(self, fraction: float, note: str = "") -> None:
        if not self._wanted:
            return
        now = monotonic()
        if now - self._last < 0.1:
            return
        self._last = now
        if self._bar is None and now - self._start > SHOWN_AFTER:
            from rich.console import Console
            from rich.progress import Progress as Bar
            from rich.progress import TextColumn

            columns = [*Bar.get_default_columns(), TextColumn("{task.fields[note]}")]
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=1.0, note=note)
        if self._bar is not None:
            self._bar.update(self._task, completed=fraction, note=note)

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

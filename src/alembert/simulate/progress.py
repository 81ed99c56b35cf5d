"""A bar for runs that take longer than a moment, on terminals only."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any

PATIENCE = 1.0  # s


class Progress:
    """`at(fraction)` shows how far the run is; the bar appears after `PATIENCE` and goes away at the end."""

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
        if self._bar is None and now - self._start > PATIENCE:
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

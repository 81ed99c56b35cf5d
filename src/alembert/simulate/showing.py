"""How a run is seen: plots, pages, films, tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from alembert.simulate.result import Run
    from alembert.view import Motion

Array = np.ndarray


class Showing:
    """Mixed into `Run`."""

    def plot(
        self: Run,
        *joints: str,
        show: Sequence[str] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> Figure:
        """Over time, for all joints or those named; needs matplotlib. `path` saves it.

        `show` lists some of "coordinates", "speeds", "efforts", "energy", "momentum" and "constraints" (the drift of
        loops and couplings), and names of `channel` as "frame:hand.position"; by default the first
        two, and efforts where there are any. Of a batch the first motion.
        """
        from alembert.simulate import plots

        return plots.figure(self, joints, [show] if isinstance(show, str) else show, path)

    def motion(self: Run, member: int | tuple[int, ...] = 0, *, title: str = "") -> Motion:
        """What `alembert.view` shows of this run; `member` chooses from a batch."""
        from alembert.simulate import plots
        from alembert.view import Motion

        index = self._index(member)
        wanted = ["efforts", "energy", "coordinates", "speeds"]
        shown = plots.panels(
            self, [*wanted, "constraints"] if self.model.is_constrained else wanted, (), index
        )
        shown = {t: x for t, x in shown.items() if t != "quaternions" and any(np.any(y) for y in x.values())}
        batch = self.q.shape[:-2]
        parameters = {
            name: float(np.broadcast_to(np.asarray(x, dtype=float), batch)[index])
            for name, x in (self._system.own_parameters or {}).items()
        }
        return Motion(
            self.model,
            self.time,
            self.q[index],
            efforts=self.efforts[index],
            series=shown,
            wrenches=self._wrenches(index),
            title=title or self.model.name,
            parameters=parameters or None,
        )

    def to_html(
        self: Run,
        path: str | os.PathLike[str],
        *,
        member: int | tuple[int, ...] = 0,
        title: str = "",
        theme: str = "auto",
    ) -> Path:
        """Write a page that shows the motion and its plots; it opens from disk, without network or server."""
        from alembert.view import write_page

        return write_page(path, [self.motion(member, title=title)], title=title, theme=theme)

    def to_film(
        self: Run, path: str | os.PathLike[str], *, member: int | tuple[int, ...] = 0, **options: Any
    ) -> Path:
        """Write the motion as a film (.gif, .webp, .mp4, .webm); `options` are those of `alembert.view.write_film`.

        Needs Chromium or Chrome, and Pillow or ffmpeg.
        """
        from alembert.view import write_film

        return write_film(path, self.motion(member), **options)

    def to_pandas(self: Run) -> DataFrame:
        """One row per record, times as index, a column per coordinate, speed and effort; one motion only."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError(
                'to_pandas: pandas is not installed; pip install "alembert[data]"'
            ) from None
        if self.q.ndim > 2:
            raise ArgumentError("to_pandas: the run is a batch of motions; to_xarray keeps them all")
        columns = self._columns()
        frame = pandas.DataFrame(
            {name: x for name, _, x in columns}, index=pandas.Index(self.time, name="time")
        )
        frame.attrs = {
            "model": self.model.name,
            "units": {name: unit for name, unit, _ in columns} | {"time": "s"},
        }
        return frame

    def _index(self: Run, member: int | tuple[int, ...]) -> tuple[int, ...]:
        """Where one motion is in the batch."""
        batch = self.q.shape[:-2]
        index = (member,) if isinstance(member, int) else tuple(member)
        if not batch and member == 0:
            return ()
        if isinstance(member, int) and -np.prod(batch) <= member < np.prod(batch):
            return tuple(int(k) for k in np.unravel_index(member % int(np.prod(batch)), batch))
        if len(index) != len(batch) or any(not -n <= k < n for k, n in zip(index, batch, strict=True)):
            raise ArgumentError(f"motion: member is {member!r}, expected one of a batch of shape {batch}")
        return index

    def _wrenches(self: Run, index: tuple[int, ...]) -> dict[str, Array]:
        """(N, 6) by frame, of one motion."""
        system, batch = self._system, self.q.shape[:-2]
        found: dict[str, list[Array]] = {}
        if system.wrenches or system.wrench_laws:
            for k, t in enumerate(self.time):
                acting = system.wrenches_at(float(t), self.q[..., k, :], self.v[..., k, :])
                for frame, F in (acting or {}).items():
                    found.setdefault(frame, []).append(
                        np.broadcast_to(np.asarray(F, dtype=float), (*batch, 6))[index]
                    )
        return {frame: np.array(F) for frame, F in found.items()}

    def _repr_html_(self: Run) -> str:
        """In notebooks: what it is, how well it kept energy and momentum, and a plot."""
        from alembert.view.notebook import run_html

        return run_html(self)

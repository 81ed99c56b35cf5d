"""Figures as files that are the same, bit for bit, each time they are made."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STILL: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def save(make: Callable[[], Any], path: Path) -> None:
    path.write_bytes(drawn(make(), path.suffix.removeprefix(".")))


def drawn(figure: Any, kind: str) -> bytes:
    """A figure as the content of a file, without dates and random names in it."""
    import matplotlib

    stream = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "alembert", "svg.fonttype": "path"}):
        figure.savefig(stream, format=kind, metadata=_STILL[kind], dpi=120)
    return stream.getvalue()


_STYLES = ("-", "--", "-.", ":")
_MOST_CURVES = 8


def bands(result: Any) -> Any:
    """Means of an ensemble with bands of a standard deviation."""
    from matplotlib.figure import Figure

    model = result.model
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    for axis, names, mean, width, label in zip(
        axes,
        (model.coordinate_names, model.speed_names),
        result.mean(),
        result.deviation(),
        ("coordinates", "speeds"),
        strict=True,
    ):
        for k, name in enumerate(names[:_MOST_CURVES]):
            (line,) = axis.plot(result.time, mean[:, k], label=name, linestyle=_STYLES[k % 4], linewidth=1.4)
            low, high = mean[:, k] - width[:, k], mean[:, k] + width[:, k]
            axis.fill_between(result.time, low, high, alpha=0.2, color=line.get_color(), linewidth=0)
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[1].set_xlabel("time [s]")
    axes[0].set_title(f"{model.name}: {len(result.q)} members")
    return figure

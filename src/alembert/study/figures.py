"""Figures as files that are the same, bit for bit, each time they are made."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from alembert.view import figures

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


def bands(result: Any) -> Any:
    """Means of an ensemble with bands of a standard deviation: a panel per unit, coordinates before speeds."""
    model = result.model
    drawn_panels: list[tuple[str, list[tuple[str, Any, Any]]]] = []
    for what, names, mean, width in zip(
        ("coordinates", "speeds"),
        (model.coordinate_names, model.speed_names),
        result.mean(),
        result.deviation(),
        strict=True,
    ):
        units = [unit for joint in model.joints for _, unit in getattr(joint.type, what)]
        for unit in dict.fromkeys(units):
            lines = [(name, mean[:, k], width[:, k]) for k, name in enumerate(names) if units[k] == unit]
            drawn_panels.append((f"{what} [{unit}]" if unit else what, lines))
    figure, axes = figures.panels("plot", len(drawn_panels))
    for axis, (label, lines) in zip(axes, drawn_panels, strict=True):
        figures.lines(axis, result.time, {name: mean for name, mean, _ in lines}, label)
        for k, (_, mean, width) in enumerate(lines):
            color = figures.style(k)["color"]
            axis.fill_between(result.time, mean - width, mean + width, alpha=0.2, color=color, linewidth=0)
    axes[-1].set_xlabel("time [s]")
    axes[0].set_title(f"{figures.plain(model.name)}: {len(result.q)} members, means and standard deviations")
    return figure

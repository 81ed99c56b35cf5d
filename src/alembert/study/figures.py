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


def poles(linear: Any) -> Any:
    """Poles in the plane, with lines of equal damping; crosses, so that it reads in black and white."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5), layout="constrained")
    axis = figure.subplots()
    at = linear.poles()
    reach = 1.2 * max(float(np.abs(at).max(initial=0.0)), 1e-3)
    axis.axhline(0.0, color="0.7", linewidth=0.8)
    axis.axvline(0.0, color="0.4", linewidth=1.2)
    for damping in (0.2, 0.4, 0.6, 0.8):
        angle = np.arccos(-damping)
        for sign in (1, -1):
            x, y = 2 * reach * np.cos(angle), 2 * sign * reach * np.sin(angle)
            axis.plot([0, x], [0, y], color="0.85", linewidth=0.7, linestyle=":")
    axis.plot(at.real, at.imag, "kx", markersize=9, markeredgewidth=1.8)
    axis.set_xlim(-reach, reach)
    axis.set_ylim(-reach, reach)
    axis.set_aspect("equal")
    axis.set_xlabel("real part [1/s]")
    axis.set_ylabel("imaginary part [rad/s]")
    axis.set_title(f"poles of {linear.model.name}")
    axis.grid(alpha=0.25)
    return figure


_STYLES = ("-", "--", "-.", ":")
_MOST_CURVES = 8


def bode(linear: Any) -> Any:
    """Magnitude and phase of the first responses, a column per input."""
    import numpy as np
    from matplotlib.figure import Figure

    sizes = np.abs(linear.poles())
    sizes = sizes[sizes > 1e-6 * max(float(sizes.max(initial=0.0)), 1e-9)]
    low, high = (float(sizes.min()), float(sizes.max())) if len(sizes) else (1.0, 1.0)
    frequency = np.geomspace(low / 30, high * 30, 1201) * (1 + 1e-9)  # beside undamped poles, not on them
    response = linear.frequency_response(frequency)
    columns = max(1, min(3, len(linear.input_names)))
    figure = Figure(figsize=(3 + 4.5 * columns, 6.5), layout="constrained")
    axes = np.atleast_2d(figure.subplots(2, columns, sharex=True, squeeze=False))
    for j in range(min(columns, len(linear.input_names))):
        for k, name in enumerate(linear.output_names[:_MOST_CURVES]):
            style = {"linestyle": _STYLES[k % 4], "linewidth": 1.4, "label": name}
            axes[0, j].semilogx(frequency, response.magnitude_db[:, k, j], **style)
            axes[1, j].semilogx(frequency, response.phase_deg[:, k, j], **style)
        axes[0, j].set_title(f"from {linear.input_names[j]}")
        axes[1, j].set_xlabel("frequency [rad/s]")
    axes[0, 0].set_ylabel("magnitude [dB]")
    axes[1, 0].set_ylabel("phase [deg]")
    for axis in axes.flat:
        axis.grid(alpha=0.3, which="both")
    if axes[0, -1].lines:
        axes[0, -1].legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


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

"""Plots as SVG text: axes, lines, points, and bars, drawn without any plotting package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from alembert.verify.case import Line, Plot
from alembert.verify.results import Quantity

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 72, 12, 12, 44
LEGEND = 150  # to the right of the frame, where lines have names
COLORS = ("#3f51b5", "#e65100", "#00796b", "#ad1457", "#6d4c41", "#455a64", "#7cb342", "#8e24aa")
MOST_POINTS = 600
FLOOR = 1e-20
STYLE = """
svg { width: 100%; max-width: 720px; margin-top: .6rem; background: #8881; border-radius: 6px }
.tick { font: 11px system-ui, sans-serif; fill: currentColor; opacity: .7 } .grid { stroke: #8884 }
.frame { fill: none; stroke: #8888 } .limit { stroke: #c62828; stroke-dasharray: 4 3 }
"""
"""for the page that the plots stand in"""


def plot(content: Plot) -> str:
    """Lines over two axes."""
    lines = [_finite(line, content) for line in content.lines]
    lines = [line for line in lines if len(line.x)]
    if not lines:
        return ""
    x = np.concatenate([np.asarray(line.x) for line in lines])
    y = np.concatenate([np.asarray(line.y) for line in lines])
    right = WIDTH - RIGHT - (LEGEND if any(line.label for line in lines) else 0)
    across = _Axis(x, content.log_x, LEFT, right)
    up = _Axis(y, content.log_y, HEIGHT - BOTTOM, TOP)
    parts = [_frame(right, across, up, content.x_label, content.y_label)]
    for k, line in enumerate(lines):
        color = COLORS[k % len(COLORS)]
        points = [(across(a), up(b)) for a, b in zip(line.x, line.y, strict=True)]
        if line.style == "points":
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>' for a, b in points]
        else:
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"/>')
    parts += _legend(right, [line.label for line in lines])
    return _svg(parts, HEIGHT)


def margins(quantities: Sequence[Quantity]) -> str:
    """How far each quantity is from its tolerance: bars on a logarithmic axis, the limit at one."""
    rows = 22
    height = 34 + rows * len(quantities)
    values = np.array([max(q.margin, FLOOR) if math.isfinite(q.margin) else 1e3 for q in quantities])
    low = min(1e-4, 10.0 ** math.floor(math.log10(values.min())))
    high = max(10.0, 10.0 ** math.ceil(math.log10(values.max())))
    across = _Axis(np.array([low, high]), True, 200, WIDTH - RIGHT)
    parts = []
    for tick in across.ticks():
        at = across(tick)
        parts.append(f'<line x1="{at:.1f}" y1="6" x2="{at:.1f}" y2="{height - 26}" class="grid"/>')
        parts.append(
            f'<text x="{at:.1f}" y="{height - 12}" class="tick" text-anchor="middle">{tick:g}</text>'
        )
    for k, (quantity, value) in enumerate(zip(quantities, values, strict=True)):
        y = 8 + rows * k
        color = "#2e7d32" if quantity.passed else "#c62828"
        width = max(across(value) - 200, 1.5)
        text = _short(quantity.what, 34)
        parts.append(f'<rect x="200" y="{y}" width="{width:.1f}" height="14" fill="{color}"/>')
        parts.append(f'<text x="194" y="{y + 11}" class="tick" text-anchor="end">{escape(text)}</text>')
    one = across(1.0)
    parts.append(f'<line x1="{one:.1f}" y1="2" x2="{one:.1f}" y2="{height - 26}" class="limit"/>')
    parts.append(
        f'<text x="{WIDTH - RIGHT}" y="{height - 1}" class="tick" text-anchor="end">difference / tolerance</text>'
    )
    return _svg(parts, height + 2)


class _Axis:
    """From values to places on the page."""

    def __init__(self, values: np.ndarray, log: bool, start: float, end: float) -> None:
        self.log = log
        self.start, self.end = start, end
        low, high = float(values.min()), float(values.max())
        if log:
            low, high = math.log10(low), math.log10(high)
        if high - low < 1e-12 * max(abs(high), abs(low), 1e-300):
            pad = max(abs(high) * 1e-3, 1e-12)
            low, high = low - pad, high + pad
        pad = 0.0 if log else 0.04 * (high - low)
        self.low, self.high = low - pad, high + pad

    def __call__(self, value: float) -> float:
        x = math.log10(value) if self.log else value
        return self.start + (x - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            every = max(1, math.ceil((last - first + 1) / 7))
            return [10.0**k for k in range(first, last + 1, every)]
        raw = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(f * power for f in (1, 2, 5, 10) if f * power >= raw)
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step) + 1)]

    def texts(self) -> list[str]:
        """Labels with as many digits as tell the ticks apart."""
        ticks = self.ticks()
        for digits in range(3, 16):
            found = [f"{tick:.{digits}g}" for tick in ticks]
            if len(set(found)) == len(found):
                return found
        return found


def _finite(line: Line, content: Plot) -> Line:
    """Without what cannot be drawn, and thinned to what can be seen."""
    x, y = np.asarray(line.x, dtype=float).ravel(), np.asarray(line.y, dtype=float).ravel()
    good = np.isfinite(x) & np.isfinite(y)
    if content.log_x:
        good &= x > 0
    if content.log_y:
        y = np.where(y == 0, FLOOR, y) if not np.any(y > 0) else y
        good &= y > 0
    x, y = x[good], y[good]
    every = max(1, math.ceil(len(x) / MOST_POINTS))
    return Line(line.label, x[::every], y[::every], line.style)


def _frame(right: float, across: _Axis, up: _Axis, x_label: str, y_label: str) -> str:
    bottom = HEIGHT - BOTTOM
    parts = [f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" class="frame"/>']
    for tick, text in zip(across.ticks(), across.texts(), strict=True):
        x = across(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" class="grid"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 14}" class="tick" text-anchor="middle">{text}</text>')
    for tick, text in zip(up.ticks(), up.texts(), strict=True):
        y = up(tick)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" class="tick" text-anchor="end">{text}</text>')
    middle = (LEFT + right) / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{HEIGHT - 8}" class="tick" text-anchor="middle">{escape(x_label)}</text>'
    )
    y = (TOP + bottom) / 2
    parts.append(
        f'<text transform="translate(13,{y:.0f}) rotate(-90)" class="tick" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )
    return "".join(parts)


def _legend(right: float, labels: Sequence[str]) -> list[str]:
    parts = []
    for k, text in enumerate(labels):
        if not text:
            continue
        y = TOP + 14 + 15 * k
        color = COLORS[k % len(COLORS)]
        parts.append(f'<rect x="{right + 8:.0f}" y="{y - 8}" width="10" height="9" fill="{color}"/>')
        parts.append(f'<text x="{right + 22:.0f}" y="{y}" class="tick">{escape(_short(text, 22))}</text>')
    return parts


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _svg(parts: Sequence[str], height: float) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img">{"".join(parts)}</svg>'

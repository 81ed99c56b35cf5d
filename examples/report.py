"""Small self-contained pages for the examples: text, tables, drawings as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

import numpy as np

COLORS = ("#1f5fa8", "#4c8fd6", "#9cc3ee", "#b4500f", "#e07b2e", "#f3b584")
STYLE = """
:root { --ink: #1c2430; --quiet: #66707d; --line: #d9dee5; --paper: #fff; --panel: #f5f7fa; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 56rem;
  margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.9rem; margin: 0 0 .25rem; } h2 { font-size: 1.25rem; margin: 2.25rem 0 .25rem; }
p { color: var(--quiet); margin: .25rem 0 .75rem; }
pre { background: var(--panel); border-radius: 6px; padding: .9rem 1.1rem; overflow-x: auto;
  font: 13px/1.35 ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; }
td { border-bottom: 1px solid var(--line); padding: .4rem .25rem; }
td:last-child { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; background: var(--panel); border-radius: 6px; }
svg text { font: 13px system-ui, sans-serif; fill: var(--quiet); }
"""


class Page:
    """Collects parts; `write` makes one HTML file of them."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.parts: list[str] = []

    def add(self, html: str) -> None:
        self.parts.append(html)

    def section(self, heading: str, lead: str) -> None:
        self.add(f"<h2>{escape(heading)}</h2>\n<p>{lead}</p>")

    def text(self, text: str) -> None:
        self.add(f"<pre>{escape(text)}</pre>")

    def table(self, rows: Iterable[tuple[str, str]]) -> None:
        cells = "\n".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in rows)
        self.add(f"<table>\n{cells}\n</table>")

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        head = (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<title>{escape(self.title)}</title>\n"
            f'<meta name="viewport" content="width=device-width">\n<style>{STYLE}</style>\n</head>\n'
        )
        body = "\n".join(self.parts)
        path.write_text(
            f"{head}<body>\n<h1>{escape(self.title)}</h1>\n<p>Alembert</p>\n{body}\n</body>\n</html>\n",
            encoding="utf-8",
        )
        return path


def polyline(points: np.ndarray, color: str, width: float, opacity: float = 1.0) -> str:
    listed = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    return (
        f'<polyline points="{listed}" fill="none" stroke="{color}" stroke-width="{width}" '
        f'opacity="{opacity:.2f}" stroke-linejoin="round" stroke-linecap="round"/>'
    )


def pendulum(t: np.ndarray, q: np.ndarray, tips: np.ndarray, *, frames: int = 240) -> str:
    """A double pendulum of two unit rods: the path of its tip, and the rods in motion (SVG animation)."""
    scale, cx, cy, width, height = 95.0, 400.0, 215.0, 800, 430
    every = max(1, len(t) // 1500)
    path = np.column_stack([cx + scale * tips[::every, 0], cy - scale * tips[::every, 1]])
    pick = np.linspace(0, len(t) - 1, frames).astype(int)
    timing = f'dur="{t[-1]:g}s" repeatCount="indefinite"'

    def turn(angles: np.ndarray, x: float) -> tuple[str, str]:
        degrees = -np.degrees(angles[pick])  # the screen's y axis points down
        values = ";".join(f"{d:.1f} {x:g} 0" for d in degrees)
        still = f'transform="rotate({degrees[0]:.1f} {x:g} 0)"'
        return (
            still,
            f'<animateTransform attributeName="transform" type="rotate" values="{values}" {timing}/>',
        )

    def rod(start: float, color: str) -> str:
        return (
            f'<line x1="{start:g}" y1="0" x2="{start + scale:g}" y2="0" stroke="{color}" stroke-width="9" '
            'stroke-linecap="round"/>'
        )

    (still1, move1), (still2, move2) = turn(q[:, 0], 0.0), turn(q[:, 1], scale)
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="the falling double pendulum">\n'
        + polyline(path, COLORS[4], 1.2, 0.55)
        + f'\n<g transform="translate({cx:g} {cy:g})">\n<g {still1}>{move1}{rod(0.0, COLORS[0])}\n'
        f"<g {still2}>{move2}{rod(scale, COLORS[1])}"
        f'<circle cx="{2 * scale:g}" cy="0" r="8" fill="{COLORS[3]}"/></g>\n'
        f'</g>\n<circle r="6" fill="#1c2430"/>\n</g>\n</svg>'
    )


def log_plot(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], *, x_label: str, y_label: str) -> str:
    """Curves over a logarithmic axis, with a legend at the right."""
    left, top, right, bottom, width, height = 70, 20, 590, 330, 800, 380
    x_high = max(float(x[-1]) for x, _ in curves.values())
    positive = np.concatenate([y[y > 0] for _, y in curves.values()])
    low, high = math.floor(np.log10(np.quantile(positive, 0.03))), math.ceil(np.log10(positive.max()))
    at_x = lambda x: left + (right - left) * x / x_high  # noqa: E731
    at_y = lambda y: bottom - (bottom - top) * (np.log10(np.maximum(y, 10.0**low)) - low) / (high - low)  # noqa: E731
    parts = [
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(y_label)} over {escape(x_label)}">'
    ]
    for exponent in range(low, high + 1):
        y = at_y(10.0**exponent)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d9dee5"/>')
        if (exponent - low) % 2 == 0:
            parts.append(
                f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">10'
                f'<tspan dy="-5" font-size="10">{exponent}</tspan></text>'
            )
    for x in np.linspace(0, x_high, 5):
        parts.append(f'<text x="{at_x(x):.1f}" y="{bottom + 20}" text-anchor="middle">{x:g}</text>')
    parts.append(
        f'<text x="{(left + right) / 2}" y="{height - 8}" text-anchor="middle">{escape(x_label)}</text>'
    )
    parts.append(
        f'<text transform="translate(18 {(top + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )
    for k, (label, (x, y)) in enumerate(curves.items()):
        color, every = COLORS[k % len(COLORS)], max(1, len(x) // 400)
        parts.append(polyline(np.column_stack([at_x(x), at_y(y)])[::every], color, 1.8))
        row = top + 14 + 24 * k
        parts.append(
            f'<line x1="{right + 16}" x2="{right + 40}" y1="{row}" y2="{row}" '
            f'stroke="{color}" stroke-width="3"/>'
        )
        parts.append(f'<text x="{right + 46}" y="{row + 4}">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>"])

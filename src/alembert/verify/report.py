"""The report: one page that needs nothing else, with a plot per case, or a page per area with an index.

Plots are SVG text: axes, lines, points, and bars, drawn without any plotting package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from alembert.verify.case import KINDS, Line, Plot
from alembert.verify.printing import number
from alembert.verify.results import CaseResult, Quantity, Results

PAGE_STYLE = """
:root { color-scheme: light dark; --line: #d5d8e0; --soft: #f5f6fa; --text: #1d2129; --quiet: #5b6270; }
@media (prefers-color-scheme: dark) { :root { --line: #3a4050; --soft: #20242e; --text: #e5e8ef; --quiet: #a2a9b8; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2rem auto; padding: 0 1rem; color: var(--text); }
h1 { font-size: 1.7rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin: 0 }
table { border-collapse: collapse; width: 100%; font-size: .86rem }
th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
section { border: 1px solid var(--line); border-radius: 8px; padding: 1rem; margin: 1rem 0 }
section p { margin: .3rem 0 } .quiet { color: var(--quiet); font-size: .88rem }
.badge { border-radius: 10px; padding: .05rem .6rem; font-size: .8rem; color: #fff; white-space: nowrap }
.passed { background: #2e7d32 } .failed, .error { background: #c62828 } .skipped { background: #b26a00 }
.scroll { overflow-x: auto }
a { color: inherit } code { background: var(--soft); padding: 0 .25rem; border-radius: 3px; overflow-wrap: anywhere }
"""


AREAS = {
    "flexible": "flexible",
    "spacecraft": "spacecraft",
    "optimal": "optimal control",
    "control": "control design",
    "loops": "closed loops",
    "operators": "spatial operators",
    "linearisation": "linear models",
    "sensitivity": "derivatives",
    "tree": "trees",
}
"""by tag; a case is in the first of them that it has, or among the others"""


def pages(results: Results) -> dict[str, str]:
    """A page for each area by the name of its file, and `index.html` that leads to them."""
    found: dict[str, list[CaseResult]] = {}
    for outcome in results.outcomes:
        found.setdefault(next((tag for tag in AREAS if tag in outcome.tags), "others"), []).append(outcome)
    shown = {f"{area}.html": page(results.only(found[area]), AREAS[area]) for area in AREAS if area in found}
    if "others" in found:
        shown["others.html"] = page(results.only(found["others"]), "others")
    rows = "".join(
        f'<tr><td><a href="{area}.html">{escape(AREAS.get(area, area))}</a></td>'
        f"<td>{escape(results.only(found[area]).summary)}</td></tr>"
        for area in (*AREAS, "others")
        if area in found
    )
    table = f"<table><thead><tr><th>area</th><th>cases</th></tr></thead><tbody>{rows}</tbody></table>"
    return {"index.html": _document(results, "", table), **shown}


def page(results: Results, area: str = "") -> str:
    """The HTML text; everything that comes from cases is escaped."""
    rows = "".join(_row(outcome) for outcome in results.outcomes)
    sections = "".join(_section(outcome) for outcome in results.outcomes)
    return _document(
        results,
        area,
        '<div class="scroll"><table><thead><tr><th>case</th><th>title</th><th>kind</th>'
        '<th class="n">difference / tolerance</th><th class="n">s</th><th>verdict</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{sections}",
    )


def _document(results: Results, area: str, content: str) -> str:
    """What all pages have: the heading, the run, the machine."""
    facts = " · ".join(escape(f"{key}: {value}") for key, value in results.machine.items())
    versions = " · ".join(escape(f"{key} {value}") for key, value in results.versions.items())
    title = escape(f"Verification of {results.program}" + (f": {area}" if area else ""))
    back = '<p><a href="index.html">all areas</a></p>' if area else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{PAGE_STYLE}{STYLE}</style></head><body>{back}<h1>{title}</h1>"
        f"<p><strong>{escape(results.summary)}</strong>, {escape(results.date)}</p>"
        f'<p class="quiet">{facts}<br>{versions}</p>'
        f'<p class="quiet">{escape("; ".join(f"{k}: {m}" for k, m in KINDS.items()))}.</p>'
        f"{content}</body></html>\n"
    )


def _badge(status: str) -> str:
    return f'<span class="badge {status}">{status}</span>'


def _row(outcome: CaseResult) -> str:
    worst = max((q.margin for q in outcome.quantities), default=None)
    shown = "" if worst is None else f"{worst:.1e}"
    return (
        f'<tr><td><a href="#{escape(outcome.name)}">{escape(outcome.name)}</a></td>'
        f"<td>{escape(outcome.title)}</td><td>{escape(outcome.kind)}</td>"
        f'<td class="n">{shown}</td><td class="n">{outcome.seconds:.1f}</td><td>{_badge(outcome.status)}</td></tr>'
    )


def _section(outcome: CaseResult) -> str:
    parts = [
        f'<section id="{escape(outcome.name)}"><h2>{escape(outcome.title)} {_badge(outcome.status)}</h2>',
        f'<p class="quiet"><code>{escape(outcome.name)}</code> · {escape(outcome.kind)} · '
        f"{escape(', '.join(outcome.tags))}</p>",
        f"<p>Source: {escape(outcome.source)}</p>",
    ]
    if outcome.details:
        parts += [f"<p>{escape(text)}</p>" for text in outcome.details.split("\n\n")]
    if outcome.missing:
        parts.append(f"<p><em>Incomplete source: {escape(outcome.missing)}</em></p>")
    if outcome.parameters:
        shown = ", ".join(f"{key} = {_value(value)}" for key, value in outcome.parameters.items())
        parts.append(f'<p class="quiet">Data: <code>{escape(shown)}</code></p>')
    if outcome.message:
        parts.append(f"<p>{escape(outcome.message)}</p>")
    if outcome.quantities:
        rows = "".join(_quantity(quantity) for quantity in outcome.quantities)
        parts.append(
            '<div class="scroll"><table><thead><tr><th>quantity</th><th>published</th><th>ours</th>'
            '<th class="n">difference</th><th class="n">tolerance</th><th>because</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        )
        drawn = [plot(one) for one in outcome.plots] or [margins(outcome.quantities)]
        parts += drawn
    return "".join([*parts, "</section>"])


def _quantity(quantity: Quantity) -> str:
    tolerance = float(np.max(np.asarray(quantity.tolerance, dtype=float)))
    mark = "" if quantity.passed else f" {_badge('failed')}"
    return (
        f"<tr><td>{escape(quantity.what)}{mark}</td><td>{escape(_array(quantity.published))}</td>"
        f'<td>{escape(_array(quantity.ours))}</td><td class="n">{quantity.difference:.1e}</td>'
        f'<td class="n">{tolerance:.1e}</td><td>{escape(quantity.reason)}</td></tr>'
    )


def _array(x: Any) -> str:
    values = np.asarray(x, dtype=float)
    if values.size > 16:
        return f"{' x '.join(map(str, values.shape))} numbers up to {np.max(np.abs(values)):.6g}"
    if values.ndim == 2:
        return "; ".join(", ".join(number(float(entry)) for entry in row) for row in values)
    return ", ".join(number(float(entry)) for entry in values.ravel())


def _value(x: Any) -> str:
    try:
        text = json.dumps(x)
    except TypeError:
        text = str(x)
    return text if len(text) <= 300 else text[:297] + "..."


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

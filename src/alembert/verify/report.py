"""The report: one page that needs nothing else, with a plot per case, or a page per area with an index."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import numpy as np

from alembert.verify import svg
from alembert.verify.case import KINDS
from alembert.verify.printing import number
from alembert.verify.results import CaseResult, Quantity, Results

STYLE = """
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
        f"<title>{title}</title><style>{STYLE}{svg.STYLE}</style></head><body>{back}<h1>{title}</h1>"
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
        drawn = [svg.plot(plot) for plot in outcome.plots] or [svg.margins(outcome.quantities)]
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

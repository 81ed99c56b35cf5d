"""The page of the flagship: all that `alembert.study.flagship.fly` has found, told in the order in which it was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from alembert import spacecraft as sc
from alembert.model import Model
from alembert.simulate import Ensemble
from alembert.study import report
from alembert.study.certificate import LoopCertificate
from alembert.study.orbiter import PHASE, SAMPLE, STEP, TRACKER, TURN, WHEELS, Turn
from alembert.study.parts import Grid
from alembert.verify.case import Line, Plot
from alembert.verify.svg import STYLE, plot
from alembert.view import Animation
from alembert.view.page import page

Array = np.ndarray
RIGID, BASILISK = "2.4 us", "32 us"
"""a rigid satellite of the same make-up in a period of 0.1 s with one step, on 18 November 2026, in both programs (Basilisk
2.12): docs/spacecraft.md, `python -m benchmarks --only mission`"""


@dataclass(frozen=True, eq=False)
class FlightStory:
    """All that the page tells."""

    model: Model
    few: Array
    many: Array
    certificate: LoopCertificate
    turns: Mapping[str, Turn]
    flights: Mapping[str, Any]
    worst: Mapping[str, float]
    worst_of: str
    dispersed: Ensemble
    balance: sc.MomentumBalance
    seconds: Mapping[str, float]
    alone: float
    """processor time of a sample of one flight, nothing left to compile [s]"""


def _error(model: Model, q: Array) -> Array:
    """Of the attitude [deg], (...,)."""
    turned = model.neutral()
    goal = model.integrate(turned, np.r_[TURN, np.zeros(model.nv - 1)])
    return np.degrees(np.linalg.norm(model.difference(q, goal)[..., :3], axis=-1))


def _estimate_error(model: Model, run: Any) -> tuple[Array, Array]:
    """Times, and the angle between the attitude that the filter knows and the true one [arc seconds]."""
    known = run.measurements["attitude"]
    rows = np.round(known.time / STEP).astype(int)
    true, seen = run.q[rows][:, model.q_slice("flight")][:, 3:], known.values[:, :4]
    apart = np.minimum(np.linalg.norm(seen - true, axis=1), np.linalg.norm(seen + true, axis=1))
    return known.time, np.degrees(4 * np.arcsin(apart / 2)) * 3600


def _bending(model: Model, q: Array) -> Array:
    """Largest deflection of a tip by the first modes [mm], (...,)."""
    columns = [model.coordinate_names.index(f"{side}.bending_z_1") for side in ("left", "right")]
    return 1e3 * np.abs(q[..., columns]).max(axis=-1)


def _quiet(time: Array) -> Array:
    """The part of a flight after the turn."""
    return np.asarray(time > 3 * PHASE + 1.0)


def summary(found: FlightStory) -> list[tuple[str, str]]:
    model, flights, certificate = found.model, found.flights, found.certificate
    planned, by_hand = flights["planned"], flights["by hand"]
    after = _quiet(planned.time)
    still, shaken = (_bending(model, x.q[after]).max() for x in (planned, by_hand))
    ends = _error(model, found.dispersed.q[:, -1])
    proven = (
        "nothing is proven" if certificate.mu is None else f"{1 / certificate.mu.upper:.2f} times the ranges"
    )
    return [
        ("proven stable for", proven),
        (
            "turn",
            f"{np.degrees(TURN):.0f} deg in {3 * PHASE:.0f} s, {_error(model, planned.q[-1]):.1e} deg left at the end",
        ),
        ("panels after it", f"shake by {still:.2f} mm; {shaken:.2f} mm after a turn planned by hand"),
        (
            f"{len(ends)} dispersed flights",
            f"error at the end: median {np.median(ends):.1e} deg, largest {ends.max():.1e} deg",
        ),
        (
            "balances",
            f"angular momentum to {found.balance.angular_error:.0e}, energy to {planned.report.energy_error:.0e}",
        ),
    ]


def tell(found: FlightStory) -> str:
    model, certificate = found.model, found.certificate
    held = "holds" if certificate.ok else "does not hold"
    parts = [
        f"<style>{STYLE}</style>",
        "<h1>A flexible satellite, from a model file to a controller that is proven and flown</h1>",
        "<p class=lead>Three wheels, two panels that bend, an antenna on a closed linkage. The numbers on this page come "
        "from the run that wrote it.</p>",
        _table("In short", ("", ""), summary(found), left=2),
        "<h2>The flight</h2>",
        _sentence(
            "Turn the picture with the mouse; the cursor of the plots is the time of the animation. The second tab is the "
            f"flight with the parameters {found.worst_of}, the third a turn planned by hand, after which the panels go on "
            "shaking."
        ),
        _framed(page([_animation(found, name) for name in ("planned", "worst", "by hand")], title="orbiter")),
        "<h2>The model</h2>",
        _sentence("Read from orbiter.toml, which stands beside this page."),
        f"<pre>{escape(str(model))}</pre>",
        "<h2>Modes</h2>",
        _sentence(
            "Frequencies of the whole satellite in rad/s, with two bending modes of each panel, as it flies, and with six."
        ),
        _table(
            "",
            ("mode", "two", "six", "change"),
            [
                [k + 1, f"{a:.4f}", f"{b:.4f}", f"{100 * (a / b - 1):+.2f} %"]
                for k, (a, b) in enumerate(zip(found.few, found.many, strict=False))
            ],
        ),
        f"<h2>The controller {held}</h2>",
        _sentence(
            f"Angles and rates, every {SAMPLE:g} s, to the three motors. Uncertain are "
            + "; ".join(
                f"{name}, {low:g} to {high:g}" for name, (low, high) in certificate.family.ranges.items()
            )
            + "."
        ),
        _list([*certificate.holds, *certificate.breaks, str(certificate.family.certificate)]),
        _sentence(
            "The proof takes angles and rates as known. In flight they come from the filter, whose errors are below; the "
            "effect of its delay is in the flights, not in the proof."
        ),
        *(grid.html() for grid in certificate.tables()),
        "<h2>The turn</h2>",
        _sentence(
            f"The plan uses a smaller model, which only rolls and has one mode in each panel. Three phases of {PHASE:g} s: "
            "spin up, coast with the motor off, stop; with the least effort, and the panels at rest at the end "
            f"({found.turns['planned'].iterations} iterations of DMOC). It is flown in the whole model, with two modes."
        ),
        _plot("torque on the hub [N m]", [Line(name, x.time, x.torque) for name, x in found.turns.items()]),
        _plot(
            "largest tip deflection [mm]",
            [Line(name, x.time, _bending(model, x.q)) for name, x in found.flights.items()],
        ),
        "<h2>Flight software</h2>",
        _sentence(
            f"Every {SAMPLE:g} s a Kalman filter takes a sample of the star tracker ({np.degrees(TRACKER) * 3600:.1f} arc "
            f"seconds of noise on each axis) and of the gyro. The law follows the planned turn, within the limits of the "
            "wheels. The error of the estimated attitude:"
        ),
        _plot(
            "error of the estimate [arc seconds]",
            [Line(name, *_estimate_error(model, x)) for name, x in found.flights.items()],
        ),
        "<h2>Dispersions</h2>",
        _sentence(
            f"{len(found.dispersed.q)} flights with random stiffness, antenna mass, initial rates and sensor noise. "
            "Finished blocks are kept in the folder members: a run that is stopped goes on from there."
        ),
        _envelope(found),
        "<h2>Balances</h2>",
        f"<pre>{escape(str(found.balance))}\n{escape(str(found.flights['planned'].report))}</pre>",
        "<h2>What it took</h2>",
        _table("", ("stage", "seconds"), [[k, f"{s:.1f}"] for k, s in found.seconds.items()]),
        _sentence("Wall clock, compiling included where this machine had not compiled it before."),
        _table(
            "",
            (f"{SAMPLE:g} s of flight, processor time", ""),
            [
                [
                    f"this satellite: panels that bend, closed linkage, filter; {round(SAMPLE / STEP)} steps",
                    f"{1e6 * found.alone:.0f} us",
                ],
                ["for comparison, a hub with three wheels and two rigid panels, one step: Alembert", RIGID],
                ["the same in Basilisk", BASILISK],
            ],
            left=2,
        ),
        _sentence(
            "The first line is from this run. The other two were measured side by side on 18 November 2026, by "
            "python -m benchmarks --only mission."
        ),
    ]
    return report.page("A flexible satellite", parts)


def _animation(found: FlightStory, name: str) -> Animation:
    model, run = found.model, found.flights[name]
    every = slice(None, None, 5)
    q, v = run.q[every], run.v[every]
    speeds = [model.v_slice(x).start for x in WHEELS]
    titles = {
        "planned": "Planned turn",
        "worst": "With the worst parameters",
        "by hand": "Turn planned by hand",
    }
    notes = {"left at the end": f"{_error(model, q[-1]):.1e} deg"}
    if name == "worst":
        notes |= {key: f"{value:.4g}" for key, value in found.worst.items()}
    here = q.copy()
    here[:, :3] = 0.0  # the picture goes with the satellite
    return Animation(
        model,
        run.time[every],
        here,
        series={
            "left to turn [deg]": {"angle": _error(model, q)},
            "tip deflection [mm]": {"largest": _bending(model, q)},
            "wheel speeds [rad/s]": dict(zip(WHEELS, v[:, speeds].T, strict=True)),
        },
        title=titles[name],
        notes=notes,
        trails=["left_tip", "right_tip", "focus"],
        parameters=found.worst if name == "worst" else None,
    )


def _envelope(found: FlightStory) -> str:
    runs, model = found.dispersed, found.model
    error, bend = _error(model, runs.q), _bending(model, runs.q)
    rows = []
    after = _quiet(runs.time)
    for what, x in (
        ("error at the end [deg]", error[:, -1]),
        ("panels after the turn [mm]", bend[:, after].max(axis=1)),
    ):
        rows.append([what, *(f"{np.quantile(x, p):.3g}" for p in (0.5, 0.95, 1.0))])
    lines = [
        Line(label, runs.time, np.quantile(bend, p, axis=0))
        for label, p in (("median", 0.5), ("95 %", 0.95), ("largest", 1.0))
    ]
    return _table("", ("", "median", "95 %", "largest"), rows) + _plot(
        "tip deflection of all flights [mm]", lines
    )


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], *, left: int = 1) -> str:
    return Grid.of(title, head, rows, left=left).html()


def _sentence(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _list(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def _plot(label: str, lines: Sequence[Line]) -> str:
    return f"<div>{plot(Plot('time [s]', label, tuple(lines)))}</div>"


def _framed(text: str) -> str:
    """A page within this one."""
    return f'<iframe title="animation" srcdoc="{escape(text)}" style="width:100%;height:44rem;border:0"></iframe>'

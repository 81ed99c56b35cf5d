"""One satellite, the whole way: from a model file to a controller that is proven, flown and dispersed, told on one page.

A hub with three wheels carries two panels that bend and an antenna on a four-bar linkage. It has to roll by 60 degrees in a
low orbit and point again without shaking its panels. `fly(folder)` does, one after the other, what an engineer would:

1. write the model to a file, and read it;
2. its modes, and what more modes of the panels would change;
3. linear models for all values of the panels' stiffness and the antenna's mass, as one transformation;
4. a sampled attitude controller, and a proof that it holds for these values (`al.certify`);
5. the turn: spin up, coast with the motors off, stop, with the least effort and still panels at the end (three phases);
6. the flight: gravity of the Earth with its gradient and drag; flight software with star tracker, gyro and a Kalman filter;
7. the same with the parameters that mu found worst, and a thousand times with random ones;
8. the balances of energy and momentum, which use none of the above.

Every number on the page comes from the run that wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from alembert import spacecraft as sc
from alembert.errors import made_folder, writing
from alembert.linear import linearize
from alembert.model import Model
from alembert.model.io import load, save
from alembert.simulate import DynamicController, Ensemble, ensemble, simulate
from alembert.study.certificate import LoopCertificate
from alembert.study.certification import certify
from alembert.study.flagship_page import FlightStory, summary, tell
from alembert.study.orbiter import (
    LENGTH,
    RANGES,
    SAMPLE,
    WHEELS,
    Mission,
    attitude_law,
    hurried,
    mission,
    plan,
    vehicle,
)

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Story:
    """What `fly` has found, and where its page is."""

    path: Path
    certificate: LoopCertificate
    flights: Mapping[str, Any]
    """runs by name: "planned", "by hand", "worst" """
    dispersed: Ensemble
    summary: Sequence[tuple[str, str]]
    """what -> value, for the terminal"""
    seconds: Mapping[str, float]
    """by stage, compiling included"""
    title: str = "A flexible satellite, proven and flown"


def fly(
    folder: str | Path,
    *,
    members: int = 1000,
    ranges: Mapping[str, tuple[float, float]] = RANGES,
    told: Callable[[str], None] | None = None,
) -> Story:
    """Fly the mission and write `orbiter.toml`, `orbiter.html` and the blocks of the ensemble into a folder.

    `ranges` are those of uncertain parameters; `told` is called with the name of each stage before it begins.
    """
    folder = made_folder(folder)
    clock = _Clock(told)
    with clock("the model, from a file"):
        save(vehicle(), folder / "orbiter.toml")
        model = load(folder / "orbiter.toml")
    with clock("modes"):
        few, many = (_frequencies(vehicle(n)) for n in (2, 6))
    with clock("controller and proof"):
        law, linear = attitude_law(model)
        certificate = certify(
            model,
            DynamicController(law, about=linear),
            ranges,
            members=min(20, members),
            disturbance=0.002,
            progress=False,
        )
    with clock("the turn"):
        turns = {"planned": plan(), "by hand": hurried()}
    missions = {name: mission(model, law, turn) for name, turn in turns.items()}
    with clock("flights"):
        flights = {name: simulate(model, x.q0, x.v0, **x.options) for name, x in missions.items()}
        worst_of, worst = _worst(certificate)
        there = missions["planned"]
        flights["worst"] = simulate(model, there.q0, there.v0, parameters=worst, **there.options)
        short, long = (_processor_time(there, length) for length in (SAMPLE, LENGTH))
        alone = (long - short) / (LENGTH / SAMPLE - 1)
    with clock("dispersions"):
        dispersed = _dispersed(there, ranges, members, folder / "members")
    with clock("balances"):
        balance = sc.momentum_balance(flights["planned"], there.sources)
    found = FlightStory(
        model,
        few,
        many,
        certificate,
        turns,
        flights,
        worst,
        worst_of,
        dispersed,
        balance,
        clock.seconds,
        alone,
    )
    path = folder / "orbiter.html"
    with clock("page"):
        text = tell(found)
    with writing(path):
        path.write_text(text, encoding="utf-8")
    return Story(path, certificate, flights, dispersed, summary(found), clock.seconds)


class _Clock:
    """Seconds by stage."""

    def __init__(self, told: Callable[[str], None] | None) -> None:
        self.told = told
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        if self.told is not None:
            self.told(stage)
        begin = perf_counter()
        yield
        self.seconds[stage] = perf_counter() - begin


def _frequencies(model: Model) -> Array:
    """Of the modes that are no rigid motion [rad/s]."""
    found = linearize(model, model.neutral(), inputs=list(WHEELS)).modes()
    return np.array(sorted(mode.frequency for mode in found if mode.frequency > 1e-3))


def _processor_time(there: Mission, duration: float) -> float:
    """Of a flight of this length [s]."""
    begin = process_time()
    simulate(there.model, there.q0, there.v0, **{**there.options, "duration": duration})
    return process_time() - begin


def _worst(certificate: LoopCertificate) -> tuple[str, dict[str, float]]:
    """The values that mu names, within the ranges; those of slowest decay where it names none."""
    for kind, values in zip(certificate.cases, certificate.values, strict=True):
        if kind.startswith("mu-worst"):
            return "that mu found worst", dict(values)
    return "of slowest decay", dict(certificate.worst)


def _dispersed(
    there: Mission, ranges: Mapping[str, tuple[float, float]], members: int, checkpoint: Path
) -> Ensemble:
    n = there.model.nv

    def vary(rng: np.random.Generator) -> dict[str, Any]:
        kick = np.zeros(n)
        kick[:3] = rng.normal(0.0, 5e-4, 3)
        values = {name: rng.uniform(*limits) for name, limits in ranges.items()}
        return {"parameters": values, "v0": there.v0 + kick}

    return ensemble(
        there.model,
        vary,
        members=members,
        q0=there.q0,
        interval=0.5,
        checkpoint=checkpoint,
        **there.options,
    )

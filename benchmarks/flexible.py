"""Flexible bodies: chains of beams and a satellite with panels, against LAPACK, Exudyn and Basilisk."""

from __future__ import annotations

from typing import Any

import numpy as np

import alembert as al
from benchmarks import timing
from benchmarks.robots import operations
from benchmarks.rows import Row, against
from benchmarks.simulation import STEP, Steps
from benchmarks.timing import Effort

BASILISK = 32.7e-6
"""seconds of an RK4 step of Basilisk 2.5 with a hub and two rigid hinged panels, measured once on this kind of machine"""
STATES = 512
LENGTH, WIDTH = 1.0, 0.04
YOUNG, POISSON, DENSITY = 2.1e9, 0.3, 1000.0


def beam() -> al.ModalBody:
    """A square bar with the six modes in which its tip moves against its root."""
    A, I = WIDTH**2, WIDTH**4 / 12
    return al.flexible.beam(
        LENGTH,
        DENSITY * A,
        EI_y=YOUNG * I,
        EI_z=YOUNG * I,
        GJ=0.1406 * WIDTH**4 * YOUNG / (2 * (1 + POISSON)),
        EA=YOUNG * A,
        rhoI_y=DENSITY * I,
        rhoI_z=DENSITY * I,
        ends="craig-bampton",
    )


def chain(count: int) -> al.Model:
    """Beams, each hinged about z to the tip of the one before."""
    builder = al.ModelBuilder(f"{count} beams", gravity=(0, -9.81, 0))
    link = beam()
    for k in range(count):
        where: dict[str, Any] = {"parent": f"beam{k - 1}", "node": "tip"} if k else {}
        builder.body(f"beam{k}", link, joint=al.Revolute((0, 0, 1)), joint_name=f"hinge{k}", **where)
    return builder.build()


def satellite() -> al.Model:
    """A hub with three wheels and two clamped panels of six modes."""
    builder = al.ModelBuilder("satellite", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(750.0, (1.5, 1.5, 1.5)), joint=al.Free())
    for axis, direction in zip("xyz", np.eye(3), strict=True):
        builder.body(
            f"wheel_{axis}", al.Inertia.sphere(9.0, 0.15), joint=al.Revolute(direction), parent="hub"
        )
    for side, sign in (("left", 1.0), ("right", -1.0)):
        panel = al.flexible.beam(
            *(5.0, 4.0),
            **{"EI_y": 500.0, "EI_z": 5000.0, "GJ": 200.0, "rhoI_y": 0.01, "rhoI_z": 0.2},
            **{"bending_z": 3, "bending_y": 1, "torsion": 2, "damping_ratio": 0.005},
        )
        turn = (1.0, 0.0, 0.0, 0.0) if sign > 0 else (0.0, 0.0, 0.0, 1.0)
        where = al.Placement((0.75 * sign, 0.0, 0.0), turn)
        builder.body(side, panel, joint=al.Fixed(), parent="hub", placement=where)
    return builder.build()


def states(model: al.Model, count: int) -> tuple[np.ndarray, ...]:
    """Configurations with small deflections, speeds and efforts."""
    rng = np.random.default_rng(2)
    q = np.stack([model.random_configuration(rng) for _ in range(count)])
    for owner in model.space.of_bodies.values():
        q[:, owner.q] = 1e-3 * rng.normal(size=(count, owner.type.nq))
    return q, 0.1 * rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def rows(effort: Effort, *, quick: bool, notes: dict[str, Any]) -> list[Row]:
    found: list[Row] = []
    steps: dict[int, float] = {}
    single: dict[int, float] = {}
    for n in (10, 80):
        model, name = chain(n), f"{n} beams"
        given = states(model, 8)
        single[n] = timing.machine_loop(model.compile("forward_dynamics"), given, 1, effort)
        if n == 10:
            found += _against_lapack(model, name, single[n], effort, notes)
        q, v = model.neutral(), np.zeros(model.nv)
        run = al.simulate(model, q, v, duration=0.05, step=STEP, integrator="generalised_alpha")
        # so few steps that a run is shorter than a slice of the scheduler
        steps[n] = Steps(model, "generalised_alpha", run.q[-1], run.v[-1], 12).time(effort)
        found += _against_exudyn(n, name, steps[n], quick, notes)
    slope = float(np.log(steps[80] / steps[10]) / np.log(8))
    label = "cost exponent in the number of bodies, 10 to 80 beams"
    found.append(
        Row(
            "flexible/exponent", f"{label}, implicit step", "beams", slope, unit="", measure="ours", goal=1.05
        )
    )
    slope = float(np.log(single[80] / single[10]) / np.log(8))
    found.append(
        Row(
            "flexible/exponent",
            f"{label}, forward dynamics",
            "beams",
            slope,
            unit="",
            measure="ours",
            goal=1.05,
        )
    )
    model = satellite()
    q, v, _ = (x[0] for x in states(model, 1))
    taken = Steps(model, "rk4", q, v, 200).time(effort)
    label = "RK4 step, hub, three wheels, two panels of six modes"
    peer = "Basilisk, two rigid hinged panels"
    found.append(against("flexible/satellite", label, "satellite", taken, peer, BASILISK, 4.0))
    return found


def _against_lapack(
    model: al.Model, name: str, single: float, effort: Effort, notes: dict[str, Any]
) -> list[Row]:
    given = states(model, STATES)
    one = [x[0] for x in given]
    batch = timing.machine_loop(model.compile("forward_dynamics"), given, timing.lanes(), effort)
    dense = timing.best(lambda: model.forward_dynamics(*one, method="factorise"), effort)
    many = timing.best(lambda: model.forward_dynamics(*given, method="factorise"), effort, STATES)
    counts = operations(model)
    notes.setdefault("operations", {})[name] = counts
    if "peak_gflops" not in notes:
        peak, notes["peak_width"] = timing.fma_peak(effort)
        notes["peak_gflops"] = peak / 1e9
    peer, label = "method='factorise', LAPACK", "forward dynamics, six modes each,"
    return [
        against("flexible/single", f"{label} one state", name, single, peer, dense, 5.0),
        against("flexible/batch", f"{label} batch of {STATES}, per state", name, batch, peer, many, 15.0),
        Row(
            "peak",
            "batch kernel, share of the measured peak",
            name,
            counts["arithmetic"] / batch,
            unit="share",
        ),
    ]


def _against_exudyn(n: int, name: str, ours: float, quick: bool, notes: dict[str, Any]) -> list[Row]:
    label = f"implicit step of {1e3 * STEP:g} ms, generalised-alpha"
    try:
        from benchmarks.exudyn_beams import Beams
    except ImportError:
        notes["without"] = "Exudyn is not installed (pip install exudyn); its rows are left out."
        return [Row("flexible/implicit", label, name, ours)]
    there, count = Beams(n, STEP), 10 if quick or n > 10 else 50
    full, kept = (there.time(count, modified=modified) for modified in (False, True))
    return [
        against("flexible/implicit", label, name, ours, "Exudyn FFRFreducedOrder", full, 50.0),
        against("flexible/implicit", label, name, ours, "the same, modified Newton", kept),
    ]

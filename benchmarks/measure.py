"""What is measured, with the goals that were set for it."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from alembert import save
from benchmarks import (
    chains,
    control,
    deploy,
    first_result,
    first_solve,
    flexible,
    loops,
    mission,
    models,
    optimal,
    pinocchio_cpp,
    reach,
    robots,
    simulation,
    starts,
    structures,
    timing,
)
from benchmarks.rows import BATCH, Results, Row, against
from benchmarks.timing import Effort

LARGE_BATCH = 65536
SATELLITE = "satellite with panels"


PARTS = (
    "robots",
    "threads",
    "chains",
    "simulation",
    "flexible",
    "structures",
    "mission",
    "loops",
    "optimal",
    "starts",
    "control",
    "reach",
    "deploy",
    "start",
    "first",
    "first_solve",
)


def measure(*, quick: bool, say: Callable[[str], None], only: str = "") -> Results:
    """All rows, or `only` those of one of the parts."""
    effort = timing.QUICK if quick else timing.FULL
    results = Results(
        date=time.strftime("%Y-%m-%d %H:%M", time.gmtime()) + " UTC",
        machine=_machine(),
        versions={
            name: importlib.metadata.version(name)
            for name in ("alembert", "pin", "mujoco", "casadi", "llvmlite", "numpy")
        },
        quick=quick,
        baseline="",
    )
    results.notes["load"] = _load()
    if only in ("", "robots", "chains"):
        say("compiling Pinocchio's loop, where there is a compiler")
        compiled = pinocchio_cpp.program() is not None
        results.baseline = "Pinocchio C++" if compiled else "pin.aba / pin.rnea from Python"
        if compiled:
            results.notes["flags"] = " ".join(pinocchio_cpp.FLAGS)
    parts: dict[str, Callable[[], list[Row]]] = {
        "robots": lambda: robots.rows(effort, results, say),
        "threads": lambda: _threads(effort),
        "chains": lambda: chains.rows(effort, results, chains.CHAINS[:5] if quick else chains.CHAINS),
        "simulation": lambda: simulation.rows(effort, quick=quick, notes=results.notes),
        "flexible": lambda: flexible.rows(effort, quick=quick, notes=results.notes),
        "structures": lambda: structures.rows(quick=quick),
        "mission": lambda: mission.rows(quick=quick, notes=results.notes),
        "loops": lambda: loops.rows(effort, notes=results.notes),
        "optimal": lambda: optimal.rows(effort, quick=quick, notes=results.notes),
        "starts": lambda: starts.rows(quick=quick),
        "control": lambda: list(control.rows(quick=quick)),
        "reach": lambda: list(reach.rows(quick=quick, notes=results.notes)),
        "deploy": lambda: list(deploy.rows(quick=quick, notes=results.notes)),
        "start": lambda: _first_calls(quick),
        "first": lambda: first_result.rows(quick=quick),
        "first_solve": lambda: first_solve.rows(notes=results.notes),
    }
    for name in PARTS:
        if only in ("", name):
            say(name)
            results.rows += parts[name]()
    for k, row in enumerate(results.rows):  # against the best peak of the run
        if row.key == "peak":
            share = row.ours / (1e9 * results.notes["peak_gflops"])
            results.rows[k] = dataclasses.replace(row, ours=share)
    results.notes["load"] = max(results.notes["load"], _load())
    return results


def _load() -> float:
    """Processes that wanted to run in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _threads(effort: Effort) -> list[Row]:
    rows = []
    for name in models.ROBOTS:
        model = models.alembert_model(name)
        repeat = LARGE_BATCH // BATCH
        q, v, tau = (np.tile(x, (repeat, 1)) for x in models.states(name, BATCH))
        out = np.empty_like(tau)
        kernel = model.compile("forward_dynamics", batch=True)
        # in many short turns: on a shared host both cores are free at the same time for a moment only
        short = dataclasses.replace(effort, repeats=max(1, effort.repeats // 10))
        one, two = timing.best_of_each(
            [
                lambda n=n: timing.best(lambda: kernel(q, v, tau, out=out, threads=n), short, LARGE_BATCH)  # type: ignore[misc]  # noqa: B023
                for n in (1, 2)
            ],
            20,
        )
        label = f"forward dynamics, batch of {LARGE_BATCH}, two threads, per state"
        rows.append(against("threads", label, name, two, "one thread", one, 1.8))
    return rows


def _first_calls(quick: bool) -> list[Row]:
    """The first calls of fresh processes: with an empty cache, then with the cache that those left."""
    goals = {"talos": 1.0, "chain100": 0.3, "chain1000": 0.3, SATELLITE: 1.5}
    rows = []
    names = ["panda7", "talos", "chain100", SATELLITE, *([] if quick else ["chain1000"])]
    repeats, again = (1, 1) if quick else (3, 2)  # what comes from the cache is short, and easily disturbed
    with tempfile.TemporaryDirectory() as bytecode:
        for name in names:
            cold, warm = [], []
            with tempfile.TemporaryDirectory() as folder:
                _write(name, Path(folder))
                _start(folder, "warm up", bytecode)
                for k in range(repeats):
                    cold.append(_start(folder, f"cache{k}", bytecode))
                    warm += [_start(folder, f"cache{k}", bytecode) for _ in range(again)]
            for kind, what in (("single", "first call of a process, one state"), ("batch", "then a batch")):
                label, taken = f"{what}, nothing cached", min(c[kind] for c in cold)
                rows.append(Row(f"compile/{kind}", label, name, taken, measure="ours", goal=goals.get(name)))
                label, taken = f"{what}, from the cache", min(w[kind] for w in warm)
                rows.append(Row(f"cached/{kind}", label, name, taken, measure="ours"))
            label, taken = "import and first call of a process, from the cache", min(w["whole"] for w in warm)
            rows.append(Row("cached/whole", label, name, taken, measure="ours", goal=0.4))
    rows.append(Row("import", "import alembert", "", min(w["import"] for w in warm)))
    return rows


def _write(name: str, folder: Path) -> None:
    """The model and its states as files, so that the timed process imports no other program."""
    model = flexible.satellite() if name == SATELLITE else models.alembert_model(name)
    save(model, folder / "model.toml")
    q, v, tau = flexible.states(model, 64) if name == SATELLITE else models.states(name, 64)
    np.savez(folder / "states.npz", q=q, v=v, tau=tau)


def _start(folder: str, cache: str, bytecode: str) -> dict[str, float]:
    environment = os.environ | {"ALEMBERT_CACHE": str(Path(folder) / cache)}
    # installed packages have their bytecode
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    script = Path(__file__).with_name("startup.py")
    files = [str(Path(folder) / file) for file in ("model.toml", "states.npz")]
    found = subprocess.run(
        [sys.executable, str(script), *files],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return json.loads(found.stdout.splitlines()[-1])


# --- the machine -----------------------------------------------------------------------------------------


def _machine() -> dict[str, Any]:
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": name,
        "cores": os.cpu_count(),
        "lanes": timing.lanes(),
        "system": platform.system(),
        "python": platform.python_version(),
    }

"""What is measured, with the goals that were set for it."""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import mujoco
import numpy as np
import pinocchio as pin

from alembert import save, sweeps
from alembert.engine.kernel import limit_threads
from benchmarks import loops, models, optimal, pinocchio_codegen, pinocchio_cpp, simulation, timing
from benchmarks.timing import Effort

BATCH, LARGE_BATCH = 4096, 65536
CACHE = 600_000  # bytes of results that stay in the second cache
CHAINS = (10, 20, 50, 100, 200, 500, 1000, 2000)
CHAIN_BODIES = 128_000  # in a batch, whatever the length: as much data comes and goes
PATIENCE = 30.0  # s of compiling after which longer chains are left out


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure of ours, one of a peer, and what was aimed at for `measure`."""

    key: str
    label: str
    model: str
    ours: float
    """seconds, unless `unit` says otherwise"""
    unit: str = "s"
    peer: str = ""
    theirs: float | None = None
    measure: str = ""
    """what the goal is about: `ratio` (theirs / ours, more is better) or `ours` (less is better)"""
    goal: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.theirs / self.ours

    @property
    def reached(self) -> bool | None:
        if self.goal is None:
            return None
        return self.ours <= self.goal if self.measure == "ours" else (self.ratio or 0.0) >= self.goal


@dataclass
class Results:
    """All of a run, as it is stored."""

    date: str
    machine: dict[str, Any]
    versions: dict[str, str]
    quick: bool
    baseline: str
    rows: list[Row] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        content = asdict(self)
        for row, stored in zip(self.rows, content["rows"], strict=True):
            stored |= {"ratio": row.ratio, "reached": row.reached}
        return json.dumps(content, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Results:
        content = json.loads(text)
        rows = [
            Row(**{k: v for k, v in r.items() if k not in ("ratio", "reached")}) for r in content.pop("rows")
        ]
        return cls(**content, rows=rows)


PARTS = ("robots", "threads", "chains", "simulation", "loops", "optimal", "start")


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
        "robots": lambda: _robots(effort, results, say),
        "threads": lambda: _threads(effort),
        "chains": lambda: _chains(effort, results, CHAINS[:5] if quick else CHAINS),
        "simulation": lambda: simulation.rows(effort, quick=quick, notes=results.notes),
        "loops": lambda: loops.rows(effort, notes=results.notes),
        "optimal": lambda: optimal.rows(effort, quick=quick, notes=results.notes),
        "start": lambda: _first_calls(quick, results.notes),
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


def _robots(effort: timing.Effort, results: Results, say: Callable[[str], None]) -> list[Row]:
    rows = []
    for name in models.ROBOTS:
        say(f"{name}: kernels")
        rows += _kernels(name, effort, results)
        say(f"{name}: from Python")
        rows += _from_python(name, effort)
    return rows


def _load() -> float:
    """Processes that wanted to run in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _against(
    key: str,
    label: str,
    model: str,
    ours: float,
    peer: str,
    theirs: float | None,
    goal: float | None = None,
) -> Row:
    return Row(key, label, model, ours, peer=peer, theirs=theirs, measure="ratio", goal=goal)


# --- one state, batches ----------------------------------------------------------------------------------


_PEERS = {
    "forward_dynamics": pin.aba,
    "inverse_dynamics": pin.rnea,
    "forward_dynamics_derivatives": pin.computeABADerivatives,
    "inverse_dynamics_derivatives": pin.computeRNEADerivatives,
}
_GOALS = {
    ("forward_dynamics", "single"): {"panda7": 5.0, "talos": 3.5},
    ("forward_dynamics", "batch"): {"panda7": 20.0, "talos": 14.0},
    ("inverse_dynamics", "batch"): {"panda7": 15.0, "talos": 10.0},
    ("forward_dynamics_derivatives", "single"): {"panda7": 3.0, "talos": 2.5},
    ("forward_dynamics_derivatives", "batch"): {"panda7": 12.0, "talos": 8.0},
    ("inverse_dynamics_derivatives", "single"): {"panda7": 3.0, "talos": 2.5},
    ("inverse_dynamics_derivatives", "batch"): {"panda7": 12.0, "talos": 8.0},
}


def _kernels(name: str, effort: Effort, results: Results) -> list[Row]:
    """Machine code in a loop of machine code, on both sides."""
    model, other = models.alembert_model(name), models.pinocchio_model(name)
    few, many = list(models.states(name, 64)), list(models.states(name, BATCH))
    data = other.createData()
    there = models.states_in_pinocchio(name, 64)
    W = timing.lanes()
    peers: dict[str, list[float]] = {algorithm: [] for algorithm in _PEERS}
    ours: dict[tuple[str, str], list[float]] = {}
    kernels = {algorithm: model.compile(algorithm) for algorithm in _PEERS}
    for _ in range(3):  # in turn, so that a busy moment does not meet one of them only
        found = pinocchio_cpp.run(name, effort)
        for algorithm, kernel in kernels.items():
            call = _PEERS[algorithm]
            if found is None:
                q, v, x = (part[0] for part in there)
                peers[algorithm].append(timing.best(lambda: call(other, data, q, v, x), effort))  # noqa: B023
            else:
                for key in (algorithm, f"{algorithm}/kept"):
                    if key in found:
                        peers.setdefault(key, []).append(found[key])
            ours.setdefault((algorithm, "single"), []).append(timing.machine_loop(kernel, few, 1, effort))
            ours.setdefault((algorithm, "batch"), []).append(timing.machine_loop(kernel, many, W, effort))
    if found is not None:
        _check_agreement(name, found["accelerations"])
    pool_time = _in_parallel(other, models.states_in_pinocchio(name, BATCH), effort)
    peak, width = max(timing.fma_peak(effort) for _ in range(3))
    peak = max(peak, 1e9 * results.notes.get("peak_gflops", 0.0))
    results.notes["peak_gflops"] = peak / 1e9
    rows = []
    for (algorithm, kind), taken in ours.items():
        goal = _GOALS.get((algorithm, kind), {}).get(name)
        label = {"single": "one state, kernel time", "batch": f"batch of {BATCH}, per state"}[kind]
        key = f"{algorithm}/{kind}"
        words = algorithm.replace("_", " ")
        peer = min(peers[algorithm])
        rows.append(_against(key, f"{words}, {label}", name, min(taken), results.baseline, peer, goal))
    batches = {algorithm: min(taken) for (algorithm, kind), taken in ours.items() if kind == "batch"}
    rows += _derivatives_in_memory(name, kernels, peers, batches, results, effort)
    rows += _generated(name, results, ours, effort)
    rows += _products(name, model, effort)
    batch = min(ours["forward_dynamics", "batch"])
    if pool_time is not None:
        label = f"forward dynamics, batch of {BATCH}, per state"
        peer_name = "pin.abaInParallel, 1 thread"
        rows.append(_against("forward_dynamics/batch/pool", label, name, batch, peer_name, pool_time))
    counts = _operations(model)
    results.notes.setdefault("operations", {})[name] = counts
    rate = counts["arithmetic"] / batch
    rows.append(Row("peak", "batch kernel, share of the measured peak", name, rate, unit="share"))
    results.notes["peak_width"] = width
    return rows


def _derivatives_in_memory(
    name: str,
    kernels: dict[str, Any],
    peers: dict[str, list[float]],
    batches: dict[str, float],
    results: Results,
    effort: Effort,
) -> list[Row]:
    """Derivatives into arrays that are used again, as Pinocchio does with its Data; those of a batch kept by both; and what
    memory allows at most."""
    rows = []
    size = sum(result.size for result in kernels["inverse_dynamics_derivatives"].results)
    count = CACHE // (8 * size) // 8 * 8
    chunk = list(models.states(name, count))
    for algorithm in (x for x in kernels if x.endswith("_derivatives")):
        loop = functools.partial(timing.machine_loop, kernels[algorithm], chunk, timing.lanes(), effort)
        ours = min(loop() for _ in range(3))
        label = f"{algorithm.replace('_', ' ')}, batches of {count} into the same arrays, per state"
        peer = min(peers[algorithm])
        rows.append(_against(f"{algorithm}/chunk", label, name, ours, results.baseline, peer))
        if kept := peers.get(f"{algorithm}/kept"):
            label = (
                f"{algorithm.replace('_', ' ')}, batch of {BATCH}, the results of all kept by both, per state"
            )
            batch = batches[algorithm]
            rows.append(_against(f"{algorithm}/kept", label, name, batch, results.baseline, min(kept)))
        label = (
            f"{algorithm.replace('_', ' ')}, batch of {BATCH} by the model's method, one thread, per state"
        )
        ours = _by_method(name, algorithm, effort)
        rows.append(_against(f"{algorithm}/method", label, name, ours, results.baseline, peer))
    label = f"zeroing the memory of {BATCH} results of derivatives past the caches, per state"
    rows.append(Row("memory", label, name, timing.zeroing(BATCH * size, effort) / BATCH))
    for kilobytes in (16, 256):
        label = f"the same while computing on {kilobytes} kB, share of the time that is hidden"
        share = timing.hidden_share(BATCH * size, effort, kilobytes * 128)
        rows.append(Row(f"memory/{kilobytes}", label, name, share, unit="share"))
    return rows


def _by_method(name: str, algorithm: str, effort: Effort) -> float:
    """As users call it: new arrays for the results, and checks."""
    method = getattr(models.alembert_model(name), algorithm)
    q, v, x = models.states(name, BATCH)
    with limit_threads(1):
        return timing.best(lambda: method(q, v, x), Effort(effort.seconds, min(effort.repeats, 20)), BATCH)


def _generated(
    name: str, results: Results, ours: dict[tuple[str, str], list[float]], effort: Effort
) -> list[Row]:
    """Against Pinocchio's robot-specific C, one state at a time."""
    found = pinocchio_codegen.run(name, effort)
    if found is None:
        results.notes["without_generated"] = (
            "Pinocchio's generated C was not measured: a compiler or the headers of Pinocchio or CasADi are missing."
        )
        return []
    _check_agreement(name, found.pop("accelerations"))
    rows = []
    for algorithm, theirs in found.items():
        label = f"{algorithm.replace('_', ' ')}, one state, kernel time"
        goal = 1.0 if algorithm == "forward_dynamics" else None
        mine = min(ours[algorithm, "single"])
        peer = f"Pinocchio's generated C, gcc {' '.join(pinocchio_codegen.FLAGS)}"
        rows.append(_against(f"{algorithm}/generated", label, name, mine, peer, theirs, goal))
    return rows


def _products(name: str, model: Any, effort: Effort) -> list[Row]:
    """Jacobian-vector and vector-Jacobian products, in units of the function itself, in turn with it."""
    states = list(models.states(name, 64))
    free = (np.arange(64 * model.nv).reshape(64, model.nv) % 3 > 0).astype(float)
    given = dict.fromkeys(("forward_dynamics", "inverse_dynamics"), states)
    given["hybrid_dynamics"] = [*states, np.ascontiguousarray(states[2][::-1]), free]
    rows = []
    for algorithm, at in given.items():
        kernels = {"function": model.compile(algorithm)}
        kernels |= {mode: model._directional_kernel(mode, algorithm) for mode in ("jvp", "vjp")}
        for lanes, how in ((1, ""), (timing.lanes(), f", batches of {len(free)}")):
            calls = []
            for kernel in kernels.values():
                more = [states[1][:, : a.size] for a in kernel.arguments[len(at) :]]
                arrays = [np.ascontiguousarray(x) for x in (*at, *more)]
                turn = Effort(effort.seconds, -(-effort.repeats // 5))
                calls.append(
                    functools.partial(timing.machine_loop, kernel.prepare(lanes), arrays, lanes, turn)
                )
            function, *taken = timing.best_of_each(calls, 5)
            for mode, seconds in zip(("jvp", "vjp"), taken, strict=True):
                label = f"{mode} of {algorithm.replace('_', ' ')}{how}, in units of the function"
                key = mode if algorithm == "forward_dynamics" and not how else f"{mode}/{algorithm}/{lanes}"
                rows.append(Row(key, label, name, seconds / function, unit="x", measure="ours", goal=4.0))
    return rows


def _check_agreement(name: str, theirs: Any) -> None:
    """The same physics is timed."""
    from alembert.model.io.convert import accelerations_to_pinocchio

    model = models.alembert_model(name)
    q, v, tau = (x[0] for x in models.states(name, 64))
    ours = accelerations_to_pinocchio(
        model, q, v, model.forward_dynamics(q, v, tau), pin_model=models.pinocchio_model(name)
    )
    if not np.allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max()):
        raise RuntimeError(f"{name}: the accelerations of the two programs differ:\n{ours}\n{theirs}")


def _in_parallel(model: Any, given: models.States, effort: Effort) -> float | None:
    if not hasattr(pin, "abaInParallel"):
        return None
    pool = pin.ModelPool(model, 1)
    q, v, tau = (np.asfortranarray(x.T) for x in given)
    return timing.best(lambda: pin.abaInParallel(1, pool, q, v, tau), effort, len(given.q))


def _operations(model: Any) -> dict[str, int]:
    """What one evaluation takes: additions, multiplications, divisions and roots; sines and cosines apart."""
    function = model.symbolic.function(sweeps.FORWARD_DYNAMICS, ("q", "v", "tau"))
    no_work = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_ASSIGN, ca.OP_PARAMETER}
    codes = [function.instruction_id(k) for k in range(function.n_instructions())]
    circular = sum(code in (ca.OP_SIN, ca.OP_COS) for code in codes)
    return {"arithmetic": sum(code not in no_work for code in codes) - circular, "sin and cos": circular}


# --- from Python, threads --------------------------------------------------------------------------------


def _from_python(name: str, effort: Effort) -> list[Row]:
    model, other = models.alembert_model(name), models.pinocchio_model(name)
    q, v, tau = (np.ascontiguousarray(x[0]) for x in models.states(name, 64))
    data = other.createData()
    p, w, u = (np.ascontiguousarray(x[0]) for x in models.states_in_pinocchio(name, 64))
    simulator = models.mujoco_model(name)
    state = mujoco.MjData(simulator)
    state.qpos[:] = q
    state.qvel[:] = v
    fast, out = model.compile("forward_dynamics").fast(), np.empty(model.nv)
    calls: list[Callable[[], Any]] = [
        lambda: model.forward_dynamics(q, v, tau),
        lambda: fast(q, v, tau, out),
        lambda: model.inverse_dynamics(q, v, tau),
        lambda: pin.aba(other, data, p, w, u),
        lambda: pin.rnea(other, data, p, w, u),
        lambda: mujoco.mj_forward(simulator, state),
    ]
    ours, handle, inverse, aba, rnea, forward = timing.best_of_each(
        [lambda call=call: timing.best(call, effort) for call in calls],  # type: ignore[misc]
        3,
    )
    goal = {"panda7": 1.5, "talos": 2.0}[name]
    forward_label = "forward dynamics, one call from Python"
    return [
        _against("python", forward_label, name, ours, "pin.aba from Python", aba, goal),
        _against("python/fast", "the same with the fast handle", name, handle, "pin.aba from Python", aba),
        _against("python/inverse", "inverse dynamics, one call", name, inverse, "pin.rnea from Python", rnea),
        _against("python/mujoco", forward_label, name, ours, "MuJoCo mj_forward", forward),
    ]


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
        rows.append(_against("threads", label, name, two, "one thread", one, 1.8))
    return rows


# --- chains ----------------------------------------------------------------------------------------------


def _chains(effort: Effort, results: Results, lengths: tuple[int, ...]) -> list[Row]:
    rows: list[Row] = []
    single: dict[int, float] = {}
    batch: dict[int, float] = {}
    again: dict[int, list[Callable[[], float]]] = {}
    W = timing.lanes()
    short = dataclasses.replace(effort, repeats=max(1, effort.repeats // 10))
    longest_compile = 0.0
    for n in lengths:
        if longest_compile > PATIENCE:
            results.notes.setdefault("left_out", []).append(n)
            continue
        name = f"chain{n}"
        model = models.alembert_model(name)
        start = time.perf_counter()
        kernel = model.compile("forward_dynamics")
        longest_compile = max(longest_compile, time.perf_counter() - start)
        few = list(models.states(name, 16))
        found = pinocchio_cpp.run(name, effort, 16)
        many = list(models.states(name, max(W, CHAIN_BODIES // n)))
        single[n] = min(timing.machine_loop(kernel, few, 1, effort) for _ in range(2))
        batch[n] = min(timing.machine_loop(kernel, many, W, effort) for _ in range(2))
        again[n] = [
            functools.partial(timing.machine_loop, kernel, few, 1, short),
            functools.partial(timing.machine_loop, kernel, many, W, short),
        ]
        if found is not None:
            twice = pinocchio_cpp.run(name, effort, 16) or found
            theirs = min(found["forward_dynamics"], twice["forward_dynamics"])
            _check_agreement_of_chain(name, found["accelerations"])
        else:
            theirs = None
        label, goal = f"forward dynamics, chain of {n}, one state", 2.5 if n == 1000 else None
        rows.append(_against("chain", label, name, single[n], results.baseline, theirs, goal))
        label = f"forward dynamics, chain of {n}, batch of {len(many[0])}, per state"
        rows.append(_against("chain", label, name, batch[n], results.baseline, theirs))
        if n == 100 and found is not None:
            for algorithm in (x for x in _PEERS if x.endswith("_derivatives")):
                kernel = model.compile(algorithm)
                ours = min(timing.machine_loop(kernel, few, 1, effort) for _ in range(2))
                label = f"{algorithm.replace('_', ' ')}, chain of {n}, one state"
                peer = min(found[algorithm], twice[algorithm])
                rows.append(_against(f"chain/{algorithm}", label, name, ours, results.baseline, peer))
    long = [n for n in single if n >= 100]
    if len(long) >= 3:
        # Once more, in turn: a busy minute is not to meet the short chains only, or the long ones.
        turns = timing.best_of_each([call for n in long for call in again[n]], 5)
        for k, (what, taken) in enumerate((("one state", single), ("batches", batch))):
            least = [min(x, taken[n]) for x, n in zip(turns[k::2], long, strict=True)]
            slope = float(np.polyfit(np.log(long), np.log(least), 1)[0])
            label = f"cost exponent in n, chains of {long[0]} to {long[-1]}, {what}"
            rows.append(Row("exponent", label, "chains", slope, unit="", measure="ours", goal=1.05))
    return rows


def _check_agreement_of_chain(name: str, theirs: Any) -> None:
    """Long chains are ill conditioned: compare the efforts that the accelerations take."""
    model = models.alembert_model(name)
    q, v, tau = (x[0] for x in models.states(name, 16))
    back = model.inverse_dynamics(q, v, np.asarray(theirs))
    size = np.abs(model.multiply_mass_matrix(q, theirs)).max() + np.abs(model.bias_forces(q, v)).max()
    if np.abs(back - tau).max() > 1e-8 * size:
        raise RuntimeError(f"{name}: the accelerations of the two programs differ")


# --- compiling -------------------------------------------------------------------------------------------


def _first_calls(quick: bool, notes: dict[str, Any]) -> list[Row]:
    """The first calls of fresh processes: with an empty cache, then with the cache that those left."""
    goals = {"talos": 1.0, "chain100": 0.3, "chain1000": 0.3}
    rows = []
    notes["first_call"] = {}
    names = ["panda7", "talos", "chain100", *([] if quick else ["chain1000"])]
    repeats, again = (1, 1) if quick else (3, 2)  # what comes from the cache is short, and easily disturbed
    with tempfile.TemporaryDirectory() as bytecode:
        for name in names:
            cold, warm, after, parts = [], [], [], []
            with tempfile.TemporaryDirectory() as folder:
                _write(name, Path(folder))
                _start(folder, "warm up", bytecode)
                for k in range(repeats):
                    cold.append(_start(folder, f"cache{k}", bytecode))
                    for _ in range(again):
                        warm.append(_start(folder, f"cache{k}", bytecode))
                        parts.append(_start(folder, f"cache{k}", bytecode, "parts"))
                        _start(folder, "warm up", bytecode, "after")
                        after.append(_start(folder, "warm up", bytecode, "after"))
            for kind, what in (("single", "first call of a process, one state"), ("batch", "then a batch")):
                label, taken = f"{what}, nothing cached", min(c[kind] for c in cold)
                rows.append(Row(f"compile/{kind}", label, name, taken, measure="ours", goal=goals.get(name)))
                label, taken = f"{what}, from the cache", min(w[kind] for w in warm)
                rows.append(Row(f"cached/{kind}", label, name, taken, measure="ours", goal=0.05))
            keys = [key for key in parts[0] if key not in ("import", "batch")]
            notes["first_call"][name] = {key: min(p[key] for p in parts) for key in keys}
            label = "one state from the cache, another model called before"
            rows.append(Row("cached/after", label, name, min(a["single"] for a in after)))
    label = "first call of a process, a pendulum, from the cache"
    rows.append(Row("engine", label, "pendulum", min(a["engine"] for a in after)))
    rows.append(Row("import", "import alembert", "", min(w["import"] for w in warm)))
    return rows


def _write(name: str, folder: Path) -> None:
    """The model and its states as files, so that the timed process imports no other program."""
    save(models.alembert_model(name), folder / "model.toml")
    q, v, tau = models.states(name, 64)
    np.savez(folder / "states.npz", q=q, v=v, tau=tau)


def _start(folder: str, cache: str, bytecode: str, *more: str) -> dict[str, float]:
    environment = os.environ | {"ALEMBERT_CACHE": str(Path(folder) / cache)}
    # installed packages have their bytecode
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    script = Path(__file__).with_name("startup.py")
    files = [str(Path(folder) / file) for file in ("model.toml", "states.npz")]
    found = subprocess.run(
        [sys.executable, str(script), *files, *more],
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

"""Kernels and calls from Python on the arm and the humanoid, against Pinocchio."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import casadi as ca
import mujoco
import numpy as np
import pinocchio as pin

from alembert import sweeps
from alembert.engine.kernel import limit_threads
from benchmarks import models, pinocchio_codegen, pinocchio_cpp, timing
from benchmarks.rows import BATCH, Results, Row, against
from benchmarks.timing import Effort

CACHE = 600_000  # bytes of results that stay in the second cache


def rows(effort: Effort, results: Results, say: Callable[[str], None]) -> list[Row]:
    found = []
    for name in models.ROBOTS:
        say(f"{name}: kernels")
        found += _kernels(name, effort, results)
        say(f"{name}: from Python")
        found += _from_python(name, effort)
    return found


PEERS = {
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
    peers: dict[str, list[float]] = {algorithm: [] for algorithm in PEERS}
    ours: dict[tuple[str, str], list[float]] = {}
    kernels = {algorithm: model.compile(algorithm) for algorithm in PEERS}
    for _ in range(3):  # in turn, so that a busy moment does not meet one of them only
        found = pinocchio_cpp.run(name, effort, kept=BATCH)
        for algorithm, kernel in kernels.items():
            call = PEERS[algorithm]
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
        rows.append(against(key, f"{words}, {label}", name, min(taken), results.baseline, peer, goal))
    batches = {algorithm: min(taken) for (algorithm, kind), taken in ours.items() if kind == "batch"}
    rows += _derivatives_in_memory(name, kernels, peers, batches, results, effort)
    rows += _generated(name, results, ours, effort)
    rows += _products(name, model, effort)
    batch = min(ours["forward_dynamics", "batch"])
    if pool_time is not None:
        label = f"forward dynamics, batch of {BATCH}, per state"
        peer_name = "pin.abaInParallel, 1 thread"
        rows.append(against("forward_dynamics/batch/pool", label, name, batch, peer_name, pool_time))
    counts = operations(model)
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
        rows.append(against(f"{algorithm}/chunk", label, name, ours, results.baseline, peer))
        if kept := peers.get(f"{algorithm}/kept"):
            label = (
                f"{algorithm.replace('_', ' ')}, batch of {BATCH}, the results of all kept by both, per state"
            )
            batch = batches[algorithm]
            rows.append(against(f"{algorithm}/kept", label, name, batch, results.baseline, min(kept)))
        label = (
            f"{algorithm.replace('_', ' ')}, batch of {BATCH} by the model's method, one thread, per state"
        )
        ours = _by_method(name, algorithm, effort)
        rows.append(against(f"{algorithm}/method", label, name, ours, results.baseline, peer))
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
        rows.append(against(f"{algorithm}/generated", label, name, mine, peer, theirs, goal))
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
        kernels |= {mode: model.compute.directional_kernel(mode, algorithm) for mode in ("jvp", "vjp")}
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


def operations(model: Any) -> dict[str, int]:
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
        against("python", forward_label, name, ours, "pin.aba from Python", aba, goal),
        against("python/fast", "the same with the fast handle", name, handle, "pin.aba from Python", aba),
        against("python/inverse", "inverse dynamics, one call", name, inverse, "pin.rnea from Python", rnea),
        against("python/mujoco", forward_label, name, ours, "MuJoCo mj_forward", forward),
    ]

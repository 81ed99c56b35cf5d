"""Steps of simulations and ensembles: ours, MuJoCo's and Exudyn's, in turn."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

import alembert as al
from alembert.engine.kernel import Kernel
from alembert.lowering.plan import RECORDS
from alembert.simulate.inputs import Inputs
from alembert.simulate.simulation import Simulation
from alembert.simulate.stepper import Stepper
from benchmarks import models, timing
from benchmarks.rows import Row, against
from benchmarks.timing import Effort

STEP = 1e-3
TURNS = 5
"""how often each program has its turn"""
LANES = 256
"""motions of a batch: enough for all lanes, few enough to stay in the cache"""
MEMBERS = 10_000
"""of the ensemble"""
SHORT, LONG = 40.0, 100.0
"""how long each lasts [s]: short against one core, since a shared host seldom leaves both cores alone for long; long for
Dask, whose start and messages cost the same for any length"""


def rows(effort: Effort, *, quick: bool, notes: dict[str, Any]) -> list[Row]:
    found = [row for name in models.ROBOTS for row in _against_mujoco(name, effort)]
    found += _variational(effort)
    for n in (10, 100):
        found += _against_exudyn(n, effort, notes)
    return found + _ensembles(quick, notes)


class Steps:
    """A fixed-step scheme in its compiled loop, from a state or a batch of states."""

    def __init__(self, model: al.Model, integrator: str, q: np.ndarray, v: np.ndarray, steps: int) -> None:
        _ = model.symbolic
        system = Simulation(model, Inputs(), q.shape[:-1])
        stepper = Stepper(system, integrator, STEP, 0.0, held=False)
        state = stepper.initial(q, v)
        self.kernel: Kernel = stepper._kernel
        self.out = np.empty((*state.shape[:-1], RECORDS, state.shape[-1]))
        self.given = stepper.given(state, 0.0, STEP, np.zeros(model.nv), None, steps, 1)
        self.count = steps * (len(q) if q.ndim > 1 else 1)
        self.single = q.ndim == 1
        self.stepper = stepper

    def run(self) -> np.ndarray:
        if self.single:
            self.kernel.fast()(*self.given, self.out)
        else:
            self.kernel(*self.given, out=self.out, threads=1)
        return self.stepper.q(self.out[..., 0, :])

    def time(self, effort: Effort) -> float:
        self.run()
        return timing.best(self.run, effort, self.count)


def _against_mujoco(name: str, effort: Effort) -> list[Row]:
    """MuJoCo's loop is `rollout`, in C; contacts and limits are off, its integrator is the same."""
    model, other = models.alembert_model(name), models.mujoco_model(name)
    other.opt.timestep = STEP
    data = mujoco.MjData(other)
    rng = np.random.default_rng(1)
    q = np.tile(model.neutral(), (LANES, 1))
    v = 0.3 * rng.normal(size=(LANES, model.nv))
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.zeros((1, mujoco.mj_stateSize(other, kind)))
    data.qpos[:], data.qvel[:] = q[0], _speeds_in_mujoco(model, v[0])
    mujoco.mj_getState(other, data, start[0], kind)
    steps = 200
    states = np.empty((1, steps, start.shape[1]))
    rollout = mujoco.rollout.Rollout(nthread=0)
    one = Steps(model, "semi_implicit_euler", q[0], v[0], steps)
    many = Steps(model, "semi_implicit_euler", q, v, 20)
    calls: list[Callable[[], float]] = [
        lambda: one.time(effort),
        lambda: many.time(effort),
        lambda: timing.best(
            lambda: rollout.rollout(other, data, start, nstep=steps, state=states), effort, steps
        ),
    ]
    single, batch, theirs = timing.best_of_each(calls, TURNS)
    ours, there = one.run(), states[0, -1, 1 : 1 + model.nq]
    # a free base: there its position follows the velocity in world axes, here its twist, which differs by O(step)
    if np.abs(ours - there).max() > (1e-6 if model.nq == model.nv else STEP):
        raise RuntimeError(f"{name}: the motions of the two programs differ:\n{ours}\n{there}")
    goals = {"panda7": (4.0, 15.0)}.get(name, (None, None))
    peer = "MuJoCo rollout of mj_step"
    label = f"semi-implicit step, batch of {LANES}, per motion, one core"
    return [
        against("step", "semi-implicit step, one motion", name, single, peer, theirs, goals[0]),
        against("step/batch", label, name, batch, peer, theirs, goals[1]),
    ]


def _speeds_in_mujoco(model: al.Model, v: np.ndarray) -> np.ndarray:
    """At the neutral configuration, where body and world axes are the same: a free joint's velocity first."""
    found = v.copy()
    for joint in model.joints:
        if isinstance(joint.type, al.Free):
            s = model.v_slice(joint.name)
            found[s] = np.r_[v[s][3:], v[s][:3]]
    return found


def _variational(effort: Effort) -> list[Row]:
    model = models.alembert_model("panda7")
    q, v = model.neutral(), np.full(model.nv, 0.1)
    implicit, explicit = (Steps(model, name, q, v, 100) for name in ("variational", "midpoint"))
    ours, midpoint = timing.best_of_each(
        [lambda: implicit.time(effort), lambda: explicit.time(effort)], TURNS
    )
    label = "variational step, in units of an explicit midpoint step"
    return [
        Row("step/variational", label, "panda7", ours / midpoint, unit="x", measure="ours", goal=10.0),
        Row("step/midpoint", "explicit midpoint step, one motion", "panda7", midpoint),
    ]


def _against_exudyn(n: int, effort: Effort, notes: dict[str, Any]) -> list[Row]:
    try:
        from benchmarks.exudyn_chain import Chain
    except ImportError:
        notes["without"] = "Exudyn is not installed (pip install exudyn); its rows are left out."
        return []
    model = models.alembert_model(f"chain{n}")
    q, v = np.full(model.nq, 0.1), np.zeros(model.nv)
    ours, theirs = Steps(model, "rk4", q, v, 20), Chain(model, q, STEP)
    there, here = theirs.positions(20), ours.run()
    if np.abs(here - there).max() > 1e-8 * max(1.0, np.abs(there - q).max()):
        raise RuntimeError(f"chain of {n}: the motions of the two programs differ:\n{here}\n{there}")
    steps = 100 if n <= 10 else 4  # some milliseconds: short enough not to be interrupted
    taken = timing.best_of_each(
        [lambda: ours.time(effort), *(lambda k=k: theirs.time(steps, k) for k in theirs.solvers)],  # type: ignore[misc]
        TURNS,
    )
    label = f"RK4 step, spatial pendulum chain of {n}"
    goal = {10: 15.0, 100: 50.0}[n]
    return [against("chain_step", label, f"chain{n}", taken[0], "Exudyn RK44", min(taken[1:]), goal)]


# --- ensembles ----------------------------------------------------------------------------------------------------


def _vary(rng: np.random.Generator) -> dict[str, Any]:
    return {"v0": np.r_[0.05 * rng.normal(size=3), 0.01 * rng.normal(size=3), rng.normal(size=3)]}


def _ensembles(quick: bool, notes: dict[str, Any]) -> list[Row]:
    """Whole runs, drawing included, in turn.

    Dask's cluster is up before its turns, with the code in the caches of its workers, and not while two threads are
    compared with one core: idle it takes an eighth of a core.
    """

    if (os.cpu_count() or 1) < 2:
        notes["without_threads"] = "There is one core: the rows of two threads are left out."
        return []
    model = al.library.satellite()
    short, long = (x / 10 if quick else x for x in (SHORT, LONG))

    def run(backend: str, workers: int, lasting: float, **more: Any) -> float:
        start = time.perf_counter()
        al.ensemble(
            model, _vary, members=MEMBERS, duration=lasting, step=0.02, backend=backend, workers=workers,
            progress=False, **more,
        )  # fmt: skip
        return time.perf_counter() - start

    run("threads", 2, 0.02)
    turns = 1 if quick else 7
    # one core is backend="batch": with one thread the driver would draw members on the other core
    one, two = timing.middle_turn(lambda: run("batch", 1, short), lambda: run("threads", 2, short), turns)
    alone, together = timing.middle_turn(*_steps_on_two_cores(model), turns)
    label = f"ensemble of {MEMBERS} members"
    found = [
        against("ensemble", f"{label}, {short:g} s each, two threads", "satellite", two, "one core", one, 1.8),
        against(
            "ensemble/ceiling", "its compiled steps alone, on two cores at once", "satellite", together, "one core", alone
        ),
    ]  # fmt: skip
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        return found
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        run("dask", 2, 0.02, cluster=client)
        two, dask = timing.middle_turn(
            lambda: run("threads", 2, long), lambda: run("dask", 2, long, cluster=client), 1 if quick else 3
        )
    label += f", {long:g} s each, two Dask workers"
    return [
        *found,
        against("ensemble/dask", label, "satellite", dask, "two threads", two, 1 / 1.1),
    ]


def _steps_on_two_cores(model: al.Model) -> tuple[Callable[[], float], Callable[[], float]]:
    """Seconds for the steps of two blocks of members: one after the other, and both at once. What the machine allows."""
    rng = np.random.default_rng(1)
    q = np.tile(model.neutral(), (LANES, 1))
    blocks = [Steps(model, "rk4", q, 0.1 * rng.normal(size=(LANES, model.nv)), 5000) for _ in range(2)]
    for block in blocks:
        block.run()
    pool = ThreadPoolExecutor(2)

    def alone() -> float:
        start = time.perf_counter()
        for block in blocks:
            block.run()
        return time.perf_counter() - start

    def together() -> float:
        start = time.perf_counter()
        list(pool.map(Steps.run, blocks))
        return time.perf_counter() - start

    return alone, together

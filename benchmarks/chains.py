"""Forward dynamics of chains of any length, against Pinocchio, and how the cost grows."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import models, pinocchio_cpp, timing
from benchmarks.robots import PEERS
from benchmarks.rows import Results, Row, against
from benchmarks.timing import Effort

CHAINS = (10, 20, 50, 100, 200, 500, 1000, 2000)
CHAIN_BODIES = 128_000  # in a batch, whatever the length: as much data comes and goes
PATIENCE = 30.0  # s of compiling after which longer chains are left out


def rows(effort: Effort, results: Results, lengths: tuple[int, ...]) -> list[Row]:
    measured: list[Row] = []
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
        measured.append(against("chain", label, name, single[n], results.baseline, theirs, goal))
        label = f"forward dynamics, chain of {n}, batch of {len(many[0])}, per state"
        measured.append(against("chain", label, name, batch[n], results.baseline, theirs))
        if n == 100 and found is not None:
            for algorithm in (x for x in PEERS if x.endswith("_derivatives")):
                kernel = model.compile(algorithm)
                ours = min(timing.machine_loop(kernel, few, 1, effort) for _ in range(2))
                label = f"{algorithm.replace('_', ' ')}, chain of {n}, one state"
                peer = min(found[algorithm], twice[algorithm])
                measured.append(against(f"chain/{algorithm}", label, name, ours, results.baseline, peer))
    long = [n for n in single if n >= 100]
    if len(long) >= 3:
        # Once more, in turn: a busy minute is not to meet the short chains only, or the long ones.
        turns = timing.best_of_each([call for n in long for call in again[n]], 5)
        for k, (what, taken) in enumerate((("one state", single), ("batches", batch))):
            least = [min(x, taken[n]) for x, n in zip(turns[k::2], long, strict=True)]
            slope = float(np.polyfit(np.log(long), np.log(least), 1)[0])
            label = f"cost exponent in n, chains of {long[0]} to {long[-1]}, {what}"
            measured.append(Row("exponent", label, "chains", slope, unit="", measure="ours", goal=1.05))
    return measured


def _check_agreement_of_chain(name: str, theirs: Any) -> None:
    """Long chains are ill conditioned: compare the efforts that the accelerations take."""
    model = models.alembert_model(name)
    q, v, tau = (x[0] for x in models.states(name, 16))
    back = model.inverse_dynamics(q, v, np.asarray(theirs))
    size = np.abs(model.multiply_mass_matrix(q, theirs)).max() + np.abs(model.bias_forces(q, v)).max()
    if np.abs(back - tau).max() > 1e-8 * size:
        raise RuntimeError(f"{name}: the accelerations of the two programs differ")

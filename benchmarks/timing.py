"""Times: the best of several repeats, each long enough for the clock."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.engine import loader
from alembert.engine.kernel import Kernel, layout_of
from alembert.engine.target import host


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    seconds: float
    """of one repeat"""
    repeats: int


# Repeats are shorter than a slice of the scheduler and many: the least of them is one that nobody interrupted.
FULL = Effort(0.002, 200)
QUICK = Effort(0.002, 20)


def best(call: Callable[[], Any], effort: Effort, per: int = 1) -> float:
    """Seconds per unit of `call`, which does `per` of them; the least of the repeats."""
    rounds = 1
    least = float("inf")
    done = 0
    while done < effort.repeats:
        start = time.perf_counter()
        for _ in range(rounds):
            call()
        took = time.perf_counter() - start
        if took < effort.seconds:
            rounds = max(2 * rounds, min(100 * rounds, int(rounds * effort.seconds / max(took, 1e-9))))
            continue
        least = min(least, took / (rounds * per))
        done += 1
    return least


def best_of_each(calls: Sequence[Callable[[], float]], times: int) -> list[float]:
    """The least of several measurements of each, in turn: a busy moment is not to meet one of them only."""
    taken = [[call() for call in calls] for _ in range(times)]
    return [min(column) for column in zip(*taken, strict=True)]


def middle_turn(first: Callable[[], float], second: Callable[[], float], times: int) -> tuple[float, float]:
    """Both, in turn; of the turns (an odd number), the one with the median of first / second.

    For work on one core and on several: the best of each would compare the best moment of one core with the best that
    all have at the same time, which is rarer on a shared host.
    """
    turns = sorted(((first(), second()) for _ in range(times)), key=lambda turn: turn[0] / turn[1])
    return turns[times // 2]


def machine_loop(kernel: Kernel, arrays: Sequence[np.ndarray], lanes: int, effort: Effort) -> float:
    """Seconds per state of the kernel's own loop over the arrays, `lanes` states at a time, on one thread.

    With one lane the results of a state overwrite those of the state before, as they do in the other programs' loops.
    """
    code = kernel._machine_code(lanes)
    count = len(arrays[0])
    outputs = [np.empty((count, *result.shape)) for result in kernel.results]
    table: list[int] = []
    for x, argument in zip([*arrays, *outputs], [*kernel.arguments, *kernel.results], strict=True):
        layout = layout_of(x, (count,), argument.shape)
        assert layout is not None
        table += layout
    if lanes == 1:
        between = 3 * len(arrays) + 1
        table[between::3] = [0] * len(outputs)
    fixed = (ctypes.c_int64 * len(table))(*table)
    return best(lambda: code.batch(fixed, 0, count), effort, count)


_ZEROS = """
declare <{W} x double> @llvm.fma.v{W}f64(<{W} x double>, <{W} x double>, <{W} x double>)
define void @zeros(ptr %out, i64 %count, ptr %data, i64 %mask) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{body}
  %next = add i64 %i, {W}
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  fence seq_cst
  ret void
}}
!0 = !{{i32 1}}
"""


def zeroing(count: int, effort: Effort) -> float:
    """Seconds to set so many doubles to zero by stores past the caches (the C library's are half as fast here)."""
    return _zeroing(count, effort, store=True, operations=0, data=8)


def hidden_share(count: int, effort: Effort, data: int) -> float:
    """Of the time of such stores, the share that passes while the core computes on so many doubles.

    After each store come products and sums with elements of the data, as many as take about as long.
    """
    stores, sums, both = (
        _zeroing(count, effort, store=store, operations=operations, data=data)
        for store, operations in ((True, 0), (False, 8), (True, 8))
    )
    return (stores + sums - both) / min(stores, sums)


def _zeroing(count: int, effort: Effort, *, store: bool, operations: int, data: int) -> float:
    W, target = lanes(), host()
    T = f"<{W} x double>"
    phis = [f"  %s{k} = phi {T} [ zeroinitializer, %entry ], [ %n{k}, %loop ]" for k in range(operations)]
    lines = [f"  %o = mul i64 %i, {operations}"]
    if store:
        lines.append("  %p = getelementptr double, ptr %out, i64 %i")
        lines.append(f"  store {T} zeroinitializer, ptr %p, align {8 * W}, !nontemporal !0")
    for k in range(operations):
        lines.append(f"  %a{k} = add i64 %o, {k * W}")
        lines.append(f"  %b{k} = and i64 %a{k}, %mask")
        lines.append(f"  %d{k} = getelementptr double, ptr %data, i64 %b{k}")
        lines.append(f"  %x{k} = load volatile {T}, ptr %d{k}, align {8 * W}")
        lines.append(f"  %n{k} = call {T} @llvm.fma.v{W}f64({T} %x{k}, {T} %x{k}, {T} %s{k})")
    text = _ZEROS.format(W=W, phis="\n".join(phis), body="\n".join(lines))
    library = loader.Library(loader.compile_ir(target.attributes + text, target), ["zeros"])
    types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    function = ctypes.CFUNCTYPE(None, *types)(library.addresses["zeros"])
    x, y = np.ones(count + 2 * W), np.ones(data + 2 * W)
    places = [-(-z.ctypes.data // 64) * 64 for z in (x, y)]
    call = functools.partial(function, places[0], count, places[1], data - 1)
    return best(call, Effort(effort.seconds, min(effort.repeats, 20)))


def lanes() -> int:
    return host().lanes


_PEAK = """
declare <{W} x double> @llvm.fma.v{W}f64(<{W} x double>, <{W} x double>, <{W} x double>)
define void @peak(ptr %out, i64 %count) #0 {{
entry:
  %a = load <{W} x double>, ptr %out, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{fmas}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
{sums}
  store <{W} x double> %s{last}, ptr %out, align 8
  ret void
}}
"""


def fma_peak(effort: Effort) -> tuple[float, int]:
    """Floating-point operations per second of one core, and the width that gives the most: chains of fused
    multiply-adds in registers."""
    results = []
    for W in sorted({4, host().lanes}):
        chains = 16 if W <= 4 else 24
        vector = f"<{W} x double>"
        phis = "\n".join(f"  %x{k} = phi {vector} [ %a, %entry ], [ %y{k}, %loop ]" for k in range(chains))
        fmas = "\n".join(
            f"  %y{k} = call {vector} @llvm.fma.v{W}f64({vector} %x{k}, {vector} %a, {vector} %a)"
            for k in range(chains)
        )
        sums = [f"  %s0 = fadd {vector} %y0, %y1"]
        sums += [f"  %s{k} = fadd {vector} %s{k - 1}, %y{k + 1}" for k in range(1, chains - 1)]
        text = host().attributes + _PEAK.format(
            W=W, phis=phis, fmas=fmas, sums="\n".join(sums), last=chains - 2
        )
        target = host()
        library = loader.Library(loader.compile_ir(text, target), ["peak"])
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.addresses["peak"])
        out = np.full(W, 0.5)
        count = 20_000
        seconds = best(functools.partial(function, out.ctypes.data, count), effort, count)
        results.append((2 * W * chains / seconds, W))
    return max(results)

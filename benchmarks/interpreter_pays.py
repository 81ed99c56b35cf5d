"""When machine code pays: what lists for the interpreter and machine code take to make and to run, by length of the code.

`python benchmarks/interpreter_pays.py` prints the table of "The engine", for forward dynamics of chains as straight code and
with an empty cache. Seconds are of the processor, the least of some runs. See `alembert.engine.loader.RUNS`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

BODIES = (2, 3, 4, 5, 7, 15, 30)
STATES = 64
"""computed in a call, so that the call itself takes little of the time"""


def rows() -> list[dict[str, Any]]:
    """By lanes and length: operations, milliseconds to make, microseconds of a run, runs after which both took as long."""
    from alembert.engine.target import host

    found = []
    for lanes in (1, host().lanes):
        _row(BODIES[0], lanes)  # the interpreter itself is compiled once
        found += [_row(n, lanes) for n in BODIES]
    return found


def _row(bodies: int, lanes: int) -> dict[str, Any]:
    import casadi as ca
    import numpy as np

    import alembert as al
    from alembert.engine import Argument, FunctionSource, Kernel, kernel

    kernel.FEWEST = 0
    model = al.library.chain(bodies)
    n, rng = model.nv, np.random.default_rng(0)
    symbols = [ca.SX.sym(name, n) for name in "qvt"]
    source = FunctionSource(ca.Function("f", symbols, [model.symbolic.forward_dynamics(*symbols)]))
    given, left = [rng.normal(size=(STATES, n)) for _ in symbols], [np.zeros((STATES, n))]
    taken: dict[str, Any] = {"lanes": lanes}
    for way, at_once in (("list", False), ("machine", True)):
        made = Kernel(
            *("f", [Argument(label, (n,)) for label in "qvt"], [Argument("a", (n,))]),
            key=f"interpreter pays {bodies} {way} {time.perf_counter_ns()}",
            build=lambda: source,
            alone=lanes == 1,
        )
        start = time.process_time()
        code = made._compiled[lanes] = made._made(lanes, at_once)
        taken[f"{way} made"] = 1e3 * (time.process_time() - start)
        taken["operations"], code.left = code.work, float("inf")  # it stays what it is
        taken[f"{way} run"] = 1e6 * _least(made.bind(STATES, given, left)) * lanes / STATES
    lost = taken["list run"] - taken["machine run"]
    taken["pays"] = 1e3 * (taken["machine made"] - taken["list made"]) / lost
    return taken


def _least(call: Callable[[], None]) -> float:
    """Seconds of a call."""
    best, calls = float("inf"), 100
    for _ in range(7):
        start = time.process_time()
        for _ in range(calls):
            call()
        best = min(best, (time.process_time() - start) / calls)
    return best


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ALEMBERT_CACHE"] = folder
        print(
            "| lanes | operations | list, ms | machine code, ms | list, us | machine code, us | pays after runs |"
        )
        print("|---|---|---|---|---|---|---|")
        for r in rows():
            made = f"{r['list made']:.1f} | {r['machine made']:.1f}"
            run = f"{r['list run']:.2f} | {r['machine run']:.2f}"
            print(f"| {r['lanes']} | {r['operations']} | {made} | {run} | {r['pays']:.0f} |")

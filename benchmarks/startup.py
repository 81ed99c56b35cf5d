"""Seconds until the first result, in a process of its own: `python -m benchmarks.startup MODEL`."""

from __future__ import annotations

import json
import sys
import time

start = time.perf_counter()
import alembert  # noqa: E402

imported = time.perf_counter() - start


def measure(name: str) -> dict[str, float]:
    from benchmarks.models import alembert_model, states

    model = alembert_model(name)
    q, v, tau = states(name, 64)
    taken = {"import": imported}
    # once per process, whatever the model: the modules of the algorithms, and LLVM's own start
    start = time.perf_counter()
    small = alembert.library.pendulum()
    small.forward_dynamics(small.neutral(), [0.0], [0.0])
    taken["engine"] = time.perf_counter() - start
    for key, arrays in (("single", (q[0], v[0], tau[0])), ("batch", (q, v, tau))):
        start = time.perf_counter()
        model.forward_dynamics(*arrays)
        taken[key] = time.perf_counter() - start
    return taken


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))

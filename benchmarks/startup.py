"""Seconds until the first result, in a process of its own: `python startup.py MODEL.toml STATES.npz [after] [parts]`.

Nothing but Alembert and NumPy is imported, as in a user's program; with `after`, a pendulum's call has started the
engine before; with `parts`, what the first call does is done and timed part by part.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

import numpy as np

start = time.perf_counter()
import alembert  # noqa: E402

imported = time.perf_counter() - start


def measure(file: str, states: str, *, after: bool, parts: bool) -> dict[str, float]:
    model = alembert.load(file)
    given = np.load(states)
    q, v, tau = (given[name] for name in ("q", "v", "tau"))
    taken = {"import": imported}
    if after:
        start = time.perf_counter()
        small = alembert.library.pendulum()
        small.forward_dynamics(small.neutral(), [0.0], [0.0])
        taken["engine"] = time.perf_counter() - start
    if parts:
        taken |= _parts(model)
    for key, arrays in (("single", (q[0], v[0], tau[0])), ("batch", (q, v, tau))):
        start = time.perf_counter()
        model.forward_dynamics(*arrays)
        taken[key] = time.perf_counter() - start
    return taken


def _parts(model: alembert.Model) -> dict[str, float]:
    """What is left for the first call is to read the machine code, and to run it."""
    from alembert.collector import no_collecting

    parts = {
        "algorithms": lambda: model.forward_dynamics,
        "source and processor": lambda: import_module("alembert.engine.host").host(),
        "digest of the model": lambda: model.fingerprint,
    }
    taken = {}
    with no_collecting():  # as the first call does it
        for name, part in parts.items():
            start = time.perf_counter()
            part()
            taken[name] = time.perf_counter() - start
    return taken


if __name__ == "__main__":
    print(
        json.dumps(
            measure(sys.argv[1], sys.argv[2], after="after" in sys.argv[3:], parts="parts" in sys.argv[3:])
        )
    )

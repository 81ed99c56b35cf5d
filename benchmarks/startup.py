"""Seconds until the first result, in a process of its own: `python startup.py MODEL.toml STATES.npz`.

Nothing but Alembert and NumPy is imported, as in a user's program.
"""

from __future__ import annotations

import json
import sys
import time

start = time.perf_counter()
import numpy as np  # noqa: E402

import alembert  # noqa: E402

imported = time.perf_counter() - start


def measure(file: str, states: str) -> dict[str, float]:
    """The import, the first call (one state) and then a batch; `whole` is the first two."""
    model = alembert.load(file)
    given = np.load(states)
    q, v, tau = (given[name] for name in ("q", "v", "tau"))
    taken = {"import": imported}
    for key, arrays in (("single", (q[0], v[0], tau[0])), ("batch", (q, v, tau))):
        start = time.perf_counter()
        model.forward_dynamics(*arrays)
        taken[key] = time.perf_counter() - start
    return taken | {"whole": imported + taken["single"]}


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))

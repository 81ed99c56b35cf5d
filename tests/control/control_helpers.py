"""Random systems; those of published cases are in `alembert.verify.control_plants`."""

import numpy as np

from alembert.control import StateSpace


def random_system(rng, n, m=1, p=1, *, stable=True, direct=True, dt=0.0):
    """Poles and couplings of order one; stable by a shift of A."""
    A = rng.normal(size=(n, n))
    if stable and dt == 0:
        A -= (np.linalg.eigvals(A).real.max() + rng.uniform(0.05, 1.0)) * np.eye(n)
    elif stable:
        A *= rng.uniform(0.3, 0.95) / np.abs(np.linalg.eigvals(A)).max()
    D = rng.normal(size=(p, m)) * direct
    return StateSpace(A, rng.normal(size=(n, m)), rng.normal(size=(p, n)), D, dt)

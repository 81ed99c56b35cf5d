"""Systems of the published cases, and random ones."""

import numpy as np
import scipy.linalg

from alembert.control import SecondOrder, StateSpace


def random_system(rng, n, m=1, p=1, *, stable=True, direct=True, dt=0.0):
    """Poles and couplings of order one; stable by a shift of A."""
    A = rng.normal(size=(n, n))
    if stable and dt == 0:
        A -= (np.linalg.eigvals(A).real.max() + rng.uniform(0.05, 1.0)) * np.eye(n)
    elif stable:
        A *= rng.uniform(0.3, 0.95) / np.abs(np.linalg.eigvals(A)).max()
    D = rng.normal(size=(p, m)) * direct
    return StateSpace(A, rng.normal(size=(n, m)), rng.normal(size=(p, n)), D, dt)


def three_modes():
    """SLICOT's example of AB13DD: damping of 1e-4, 1e-5 and 1e-6."""
    A = scipy.linalg.block_diag(*([[0, 1], [-k, -d]] for k, d in ((0.5, 2e-4), (1, 2e-5), (2, 2e-6))))
    b = np.array([1.0, 0, 1, 0, 1, 0])
    return StateSpace(A, b[:, None], b[None])


def power_system():
    """SLICOT's example of AB09AD to AB09ND: two areas of a power system."""
    A = np.zeros((7, 7))
    A[0, [0, 2, 3]] = -0.04165, 4.92, -4.92
    A[1, [0, 1]] = -5.21, -12.5
    A[2, [1, 2]] = 3.33, -3.33
    A[3, [0, 4]] = 0.545, -0.545
    A[4, [3, 4, 6]] = 4.92, -0.04165, 4.92
    A[5, [4, 5]] = -5.21, -12.5
    A[6, [5, 6]] = 3.33, -3.33
    return StateSpace(A, 12.5 * np.eye(7)[:, [1, 5]], np.eye(7)[[0, 3, 4]])


def chain(n=10):
    """Masses of one between springs of 100, damped in proportion; forces and positions at both ends."""
    K = 100 * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
    return SecondOrder(np.eye(n), 0.002 * K + 0.01 * np.eye(n), K, np.eye(n)[:, [0, -1]], np.eye(n)[[0, -1]])

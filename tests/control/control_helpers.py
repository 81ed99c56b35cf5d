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


# --- SLICOT's examples of SB10AD, SB10FD, SB10HD and SB10DD --------------------------------------------------

SB10_A = np.array(
    [
        [-1.0, 0, 4, 5, -3, -2],
        [-2, 4, -7, -2, 0, 3],
        [-6, 9, -5, 0, 2, -1],
        [-8, 4, 7, -1, -3, 0],
        [2, 5, 8, -9, 1, -4],
        [3, -5, 8, 0, 2, -6],
    ]
)
SB10_B = np.array(
    [
        [-3.0, -4, -2, 1, 0],
        [2, 0, 1, -5, 2],
        [-5, -7, 0, 7, -2],
        [4, -6, 1, 1, -2],
        [-3, 9, -8, 0, 5],
        [1, -2, 3, -6, -2],
    ]
)
SB10_C = np.array(
    [
        [1.0, -1, 2, -4, 0, -3],
        [-3, 0, 5, -1, 1, 1],
        [-7, 5, 0, -8, 2, -2],
        [9, -3, 4, 0, 3, 7],
        [0, 1, -2, 1, -6, -2],
    ]
)


def sb10fd():
    D = [[1, -2, -3, 0, 0], [0, 4, 0, 1, 0], [5, -3, -4, 0, 1], [0, 1, 0, 1, -3], [0, 0, 1, 7, 1]]
    return StateSpace(SB10_A, SB10_B, SB10_C, D)


def sb10hd():
    D = [[0, 0, 0, -4, -1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [3, 1, 0, 1, -3], [-2, 0, 1, 7, 1]]
    return StateSpace(SB10_A, SB10_B, SB10_C, D)


def sb10dd():
    A = [
        [-0.7, 0, 0.3, 0, -0.5, -0.1],
        [-0.6, 0.2, -0.4, -0.3, 0, 0],
        [-0.5, 0.7, -0.1, 0, 0, -0.8],
        [-0.7, 0, 0, -0.5, -1, 0],
        [0, 0.3, 0.6, -0.9, 0.1, -0.4],
        [0.5, -0.8, 0, 0, 0.2, -0.9],
    ]
    B = [
        [-1, -2, -2, 1, 0],
        [1, 0, 1, -2, 1],
        [-3, -4, 0, 2, -2],
        [1, -2, 1, 0, -1],
        [0, 1, -2, 0, 3],
        [1, 0, 3, -1, -2],
    ]
    C = [
        [1, -1, 2, -2, 0, -3],
        [-3, 0, 1, -1, 1, 0],
        [0, 2, 0, -4, 0, -2],
        [1, -3, 0, 0, 3, 1],
        [0, 1, -2, 1, 0, -2],
    ]
    D = [[1, -1, -2, 0, 0], [0, 1, 0, 1, 0], [2, -1, -3, 0, 1], [0, 1, 0, 1, -1], [0, 0, 1, 2, 1]]
    return StateSpace(A, B, C, D, 1.0)


# --- COMPleib (Leibfritz 2004) -------------------------------------------------------------------------------


def _compleib(A, B1, B, C1, C, D11=None, D12=None, D21=None):
    A, B1, B, C1, C, D12 = (np.array(x, dtype=float) for x in (A, B1, B, C1, C, D12))
    D11 = np.zeros((len(C1), B1.shape[1])) if D11 is None else D11
    D21 = np.zeros((len(C), B1.shape[1])) if D21 is None else D21
    D = np.block([[np.array(D11), D12], [np.array(D21), np.zeros((len(C), B.shape[1]))]])
    return StateSpace(A, np.hstack([B1, B]), np.vstack([C1, C]), D), B.shape[1], len(C)


def compleib(name):
    """(generalised plant, controls, measurements)"""
    if name == "NN2":
        return _compleib([[0, 1], [-1, 0]], np.eye(2), [[0], [1]], [[1, 0], [0, 0]], [[0, 1]], D12=[[0], [1]])
    if name == "AC4":
        return _compleib(
            [[-0.876, 1, -0.1209, 0], [8.9117, 0, -130.75, 0], [0, 0, -150, 0], [-1, 0, 0, -0.05]],
            [[0, 0], [0, 0], [0, 0], [0, 1]],
            [[0], [0], [150], [0]],
            [[-0.25, 0, 0, 3.487], [0, 0, -3, 0]],
            [[-1, 0, 0, 0], [0, -1, 0, 0]],
            [[0, 0.25], [0, 0]],
            [[0], [3]],
            [[0, 1], [0.01, 0]],
        )
    if name == "AC15":
        return _compleib(
            [
                [-0.037, 0.0123, 0.00055, -1],
                [0, 0, 1, 0],
                [-6.37, 0, -0.23, 0.0618],
                [1.25, 0, 0.016, -0.0457],
            ],
            np.eye(4),
            [[0.00084, 0.000236], [0, 0], [0.08, 0.804], [-0.0862, -0.0665]],
            np.eye(6, 4),
            np.eye(4)[1:],
            D12=np.eye(6, 2, k=-4),
        )
    if name == "AC17":
        return _compleib(
            [
                [-2.98, 0.93, 0, -0.034],
                [-0.99, -0.21, 0.035, -0.0011],
                [0, 0, 0, 1],
                [0.39, -5.555, 0, -1.89],
            ],
            np.eye(4),
            [[-0.032], [0], [0], [-1.6]],
            np.eye(4),
            np.eye(4)[2:],
            D12=[[0], [0], [0], [1]],
        )
    if name == "HE1":
        return _compleib(
            [
                [-0.0366, 0.0271, 0.0188, -0.4555],
                [0.0482, -1.01, 0.0024, -4.0208],
                [0.1002, 0.3681, -0.7070, 1.42],
                [0, 0, 1, 0],
            ],
            [[0.04678, 0], [0.04572, 0.00988], [0.04369, 0.00111], [-0.02179, 0]],
            [[0.4422, 0.1761], [3.5446, -7.5922], [-5.52, 4.49], [0, 0]],
            np.array([[2, 0, 0, 0], [0, 1, 0, 0]]) / np.sqrt(2),
            [[0, 1, 0, 0]],
            D12=np.eye(2) / np.sqrt(2),
        )
    assert name == "AC8"
    A = np.zeros((9, 9))
    A[0] = -0.01365, 0.178, 0.00017, -0.561, -0.03726, 0, 0.01365, -0.01311, 0
    A[1] = -0.01516, -0.752, 1.001, 0.00127, -0.06311, 0, 0.01516, 0.05536, 0
    A[2] = 0.00107, 0.07896, -0.8725, 0, -3.399, 0, -0.00107, -0.00581, 0
    A[3, 2] = 1
    A[4, 4:6] = -20, 10.72
    A[5, 5] = -50
    A[6, 6] = -0.4447
    A[7, 7:] = -0.4447, 0.0044
    A[8, 7:] = -0.0044, -0.4447
    C = np.zeros((5, 9))
    C[0] = 0.00646, 0.3203, -0.03358, 0, -0.1032, 0, -0.00646, -0.02358, 0
    C[1, [0, 6]] = 1, -1
    C[2] = A[0]
    C[3, [1, 3]] = -13.58, 13.58
    C[4, 2] = 1
    B1, D21 = np.zeros((9, 10)), np.zeros((5, 10))
    B1[[6, 7, 8, 0, 5], [0, 1, 1, 3, 4]] = 0.9431, 1.155, -48.82, 1, 50
    D21[range(5), [7, 5, 6, 9, 8]] = 1
    return _compleib(A, B1, 50 * np.eye(9)[:, [5]], C[:2] / 2, C, D12=[[0.5], [0.5]], D21=D21)

"""Plants of published control problems: what the cases and tests of `alembert.control` are computed on."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from alembert.control import ControllerStructure, SecondOrder, StateSpace, affine, append, series, static, tf

Array = np.ndarray


def three_modes() -> StateSpace:
    """SLICOT's example of AB13DD: damping of 1e-4, 1e-5 and 1e-6."""
    A = scipy.linalg.block_diag(*([[0, 1], [-k, -d]] for k, d in ((0.5, 2e-4), (1, 2e-5), (2, 2e-6))))
    b = np.array([1.0, 0, 1, 0, 1, 0])
    return StateSpace(A, b[:, None], b[None])


def power_system() -> StateSpace:
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


def mass_chain(n: int = 10) -> SecondOrder:
    """Masses of one between springs of 100, damped in proportion; forces and positions at both ends."""
    K = 100 * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
    return SecondOrder(np.eye(n), 0.002 * K + 0.01 * np.eye(n), K, np.eye(n)[:, [0, -1]], np.eye(n)[[0, -1]])


def chiang_safonov_seven() -> StateSpace:
    """Example F of Chiang and Safonov (1989): seven poles, a gain over five decades."""
    num = 0.05 * np.array([1, 801, 1024, 599, 451, 119, 49, 5.55])
    return tf(num, [1, 12.6, 53.48, 90.94, 71.83, 27.22, 4.75, 0.3])


def two_masses(k: float, d: float = 0.0) -> StateSpace:
    """Two masses of one, a spring k and a damper d between them; a force on the first, the place of the second."""
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [-k, k, -d, d], [k, -k, d, -d]]
    return StateSpace(A, [[0], [0], [1], [0]], [[0, 1, 0, 0]])


def uncertain_loop(G: StateSpace, W_input: StateSpace, W_performance: StateSpace) -> StateSpace:
    """From (perturbation, disturbance, u) to (W_I u, W_P y, -y) with y = G (u + perturbation) + disturbance."""
    n, I, Z = G.order, np.eye(2), np.zeros((2, 2))
    base = StateSpace(
        G.A,
        np.hstack([G.B, np.zeros((n, 2)), G.B]),
        np.vstack([np.zeros((2, n)), G.C, -G.C]),
        np.block([[Z, Z, I], [G.D, I, G.D], [-G.D, -I, -G.D]]),
    )
    return series(base, append(*[W_input] * 2, *[W_performance] * 2, static(I)))


def distillation() -> tuple[Array, StateSpace]:
    """Skogestad and Postlethwaite, example 8.12: gains of the column, and its uncertain loop."""
    gains = np.array([[87.8, -86.4], [108.2, -109.6]])
    G = series(append(*[tf([1], [75, 1])] * 2), static(gains))
    return gains, uncertain_loop(G, tf([1, 0.2], [0.5, 1]), tf([0.5, 0.05], [1, 1e-6]))


def himat() -> StateSpace:
    """The uncertain loop of an aircraft, after the manual of mu-Tools."""
    A = [[-0.0226, -36.6, -18.9, -32.1], [0, -1.9, 0.983, 0], [0.0123, -11.7, -2.63, 0], [0, 0, 1, 0]]
    B = [[0, 0], [-0.414, 0], [-77.8, 22.4], [0, 0]]
    G = StateSpace(A, B, 57.3 * np.array([[0, 1, 0, 0], [0, 0, 0, 1]]))
    return uncertain_loop(G, 50 * tf([1, 100], [1, 10000]), 0.5 * tf([1, 3], [1, 0.03]))


def gust_alleviation() -> tuple[StateSpace, ControllerStructure]:
    """Ly (1989): u = k q + (b2 s^2 + b1 s + b0)/(s^2 + a1 s + a0) nz."""
    A = [
        [-1.6750e-2, 1.1214e-1, 2.8e-4, -5.6083e-1, 1.6750e-2, -2.4320e-2],
        [-1.64e-2, -7.7705e-1, 9.9453e-1, 1.47e-3, 1.64e-2, -6.339e-2],
        [-4.167e-2, -3.6595, -9.5443e-1, 0, 4.167e-2, -3.6942],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, -0.4447, 0],
        [0, 0, 0, 0, 0, -15],
    ]
    B = np.zeros((6, 2))
    B[4, 0], B[5, 1] = 0.9431, 15
    q, nz = np.array([0, 0, 1, 0, 0, 0]), np.array([6.94e-3, 3.2795e-1, 2.31e-3, 0, -6.94e-3, 2.679e-2])
    P = StateSpace(A, B, np.array([np.sqrt(10) * nz, 0 * q, q, nz]), [[0, 0], [0, 1], [0, 0], [0, 0]])
    free = [[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]
    return P, affine([[0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]], free, order=2)


def miminis_first() -> tuple[StateSpace, list[float]]:
    """Five states, three inputs and outputs, and the poles that are wanted."""
    A, B, C = (
        [
            [0.581314086914, 0.504058837890, 0.559921264648, 0.741333007812, 0.303421020507],
            [0.166717529296, 0.157394409179, 0.665222167968, 0.933609008789, 0.144439697265],
            [0.353500366210, 0.441650390625, 0.373367309570, 0.771942138671, 0.078048706054],
            [0.836242675781, 0.200820922851, 0.072296142578, 0.598373413085, 0.638671875000],
            [0.244094848632, 0.936126708984, 0.607955932617, 0.154357910156, 0.154678344726],
        ],
        np.transpose(
            [
                [0.549163818359, 0.843856811523, 0.178649902343, 0.409255981445, 0.595489501953],
                [0.942672729492, 0.008666992187, 0.239028930664, 0.142791748046, 0.671371459960],
                [0.613098144531, 0.065872192382, 0.300445556640, 0.576828002929, 0.726318359375],
            ]
        ),
        [
            [0.561660766601, 0.332702636718, 0.355514526367, 0.279266357421, 0.531448364257],
            [0.427825927734, 0.648269653320, 0.666625976562, 0.572494506835, 0.972076416015],
            [0.455917358398, 0.134307861328, 0.497573852539, 0.212463378906, 0.653732299804],
        ],
    )
    wanted = [0.704589843750, 0.421768188476, 0.572113037109, 0.396102905273, 0.127380371093]
    return StateSpace(A, B, C), wanted


def miminis_second() -> tuple[StateSpace, list[float]]:
    """Three states, two inputs, one output; two poles can be assigned."""
    A = [
        [0.356336616284, -0.356626507847, -1.198870998736],
        [-0.210549376245, 2.165165719183, -0.882324378697],
        [-0.355939324751, -0.506195941988, 0.721098719251],
    ]
    B = [
        [1.606955436561, -0.407338058168],
        [0.062823512419, -0.595038063525],
        [-1.611627967397, 0.616657720777],
    ]
    return StateSpace(A, B, [[-1.182820557312, 0.343687857622, -0.357421120340]]), [
        -0.406648486670,
        -0.366406484747,
    ]


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


def sb10fd() -> StateSpace:
    D = [[1, -2, -3, 0, 0], [0, 4, 0, 1, 0], [5, -3, -4, 0, 1], [0, 1, 0, 1, -3], [0, 0, 1, 7, 1]]
    return StateSpace(SB10_A, SB10_B, SB10_C, D)


def sb10hd() -> StateSpace:
    D = [[0, 0, 0, -4, -1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [3, 1, 0, 1, -3], [-2, 0, 1, 7, 1]]
    return StateSpace(SB10_A, SB10_B, SB10_C, D)


def sb10dd() -> StateSpace:
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


def _compleib(
    A: Any, B1: Any, B: Any, C1: Any, C: Any, D11: Any = None, D12: Any = None, D21: Any = None
) -> tuple[StateSpace, int, int]:
    A, B1, B, C1, C, D12 = (np.array(x, dtype=float) for x in (A, B1, B, C1, C, D12))
    D11 = np.zeros((len(C1), B1.shape[1])) if D11 is None else D11
    D21 = np.zeros((len(C), B1.shape[1])) if D21 is None else D21
    D = np.block([[np.array(D11), D12], [np.array(D21), np.zeros((len(C), B.shape[1]))]])
    return StateSpace(A, np.hstack([B1, B]), np.vstack([C1, C]), D), B.shape[1], len(C)


def compleib(name: str) -> tuple[StateSpace, int, int]:
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

"""What controllers are designed on: a plant with disturbances w, performance z, controls u and measurements y.

    [z]   [P11 P12] [w]          x' = A x + B1 w + B2 u
    [y] = [P21 P22] [u]          z = C1 x + D11 w + D12 u         u = K y                                            (1)
                                 y = C2 x + D21 w + D22 u

Least mean square of z under white noise w (H2):

    X: (A, B2, C1^T C1, D12^T D12, C1^T D12),      F = -(D12^T D12)^-1 (B2^T X + D12^T C1)
    Y: (A^T, C2^T, B1 B1^T, D21 D21^T, B1 D21^T),  L = -(Y C2^T + B1 D21^T)(D21 D21^T)^-1
    K = (A + B2 F + L C2 + L D22 F, -L, F, 0)                                                                        (2)

In discrete time, with the Riccati equations of that kind, y acts at once: F x + F0 w is what u should be, L0 (y - C2 x^)
what y tells of it beyond the state x^ that was expected (D22 = 0),

    F, F0 = -(D12^T D12 + B2^T X B2)^-1 (B2^T X [A, B1] + D12^T [C1, D11])
    -L, L0 = ([A; F] Y C2^T + [B1; F0] D21^T)(D21 D21^T + C2 Y C2^T)^-1
    K = (A + B2 F + (L - B2 L0) C2, B2 L0 - L, F - L0 C2, L0)                                                        (3)

(Doyle, Glover, Khargonekar, Francis 1989). Both Riccati equations need: (i) controls reach all unstable modes, (ii)
measurements see them, (iii) D12 has full column rank, (iv) D21 full row rank, (v) P12 and (vi) P21 have no zeros on the
imaginary axis. What is violated is named, with the pole and the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.control import arguments
from alembert.control.interconnection import feedback, lft
from alembert.control.reachability import describe_unreached
from alembert.control.riccati import care, dare
from alembert.control.sampling import bilinear, from_bilinear
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Synthesis:
    """A controller u = K y, and what was found when the loop was closed with it."""

    controller: StateSpace
    closed_loop: StateSpace
    norm: float
    """of the closed loop from w to z, computed from it"""
    lower: float
    """no stabilising controller has a norm below this one; where `notes` tell of a change, the direct parts alone say so"""
    upper: float
    """the tests of existence hold at this level, to rounding: where the optimum is flat, that may be 1e-4 of it. What the
    controller was seen to reach is `norm`"""
    notes: tuple[str, ...] = ()
    """what was changed to make the problem regular"""


@dataclass(frozen=True, eq=False)
class Plant4:
    """(1), the matrices of a generalised plant in continuous time."""

    A: Array
    B1: Array
    B2: Array
    C1: Array
    C2: Array
    D11: Array
    D12: Array
    D21: Array
    D22: Array
    state_names: tuple[str, ...]
    control_names: tuple[str, ...]
    measurement_names: tuple[str, ...]


def ordered(
    function: str, P: StateSpace, controls: Any, measurements: Any, *, channel: bool = True
) -> StateSpace:
    """The plant with its controls and measurements last; given by name, or how many of the last ones. With `channel`
    something is left: disturbances w and outputs z, whose gain is made small."""
    columns = _last(function, "controls", P.input_names, controls)
    rows = _last(function, "measurements", P.output_names, measurements)
    left = P.shape[1] - count(P.input_names, controls), P.shape[0] - count(P.output_names, measurements)
    if channel and not all(left):
        raise ArgumentError(
            f"{function}: beside {controls!r} controls and {measurements!r} measurements, {left[0]} inputs w and {left[1]} "
            "outputs z are left, expected one of each at least; `augment` makes a plant with weights"
        )
    return P[rows, columns]


def divided(P: StateSpace, controls: int, measurements: int, *, scaled: bool = False) -> Plant4:
    """The blocks of (1); a sampled plant by its bilinear twin, the states `scaled` by powers of two on demand."""
    Q = bilinear(P) if P.is_discrete else P
    Q = Q.balanced_scales() if scaled else Q
    m1, p1 = P.shape[1] - controls, P.shape[0] - measurements
    A, B, C, D = Q.matrices
    return Plant4(
        A,
        B[:, :m1],
        B[:, m1:],
        C[:p1],
        C[p1:],
        D[:p1, :m1],
        D[:p1, m1:],
        D[p1:, :m1],
        D[p1:, m1:],
        P.state_names,
        P.input_names[m1:],
        P.output_names[p1:],
    )


def count(names: Sequence[str], given: Any) -> int:
    return (
        int(given)
        if isinstance(given, (int, np.integer))
        else len([given] if isinstance(given, str) else list(given))
    )


def finished(P: StateSpace, K: StateSpace) -> StateSpace:
    """The controller for the plant as it is: sampled if the plant is, and with its names."""
    if P.is_discrete and not K.is_discrete:
        K = from_bilinear(K, P.dt)
    p, m = K.shape[1], K.shape[0]
    return K.renamed(inputs=P.output_names[-p:] if p else (), outputs=P.input_names[-m:] if m else ())


def around(K: StateSpace, D22: Array) -> StateSpace:
    """The controller that takes the direct part of P22 into account: K (1 + D22 K)^-1."""
    return feedback(K, D22) if np.any(D22) else K


def violations(P: StateSpace, p: Plant4) -> dict[str, str]:
    """The assumptions (i) to (vi) of P, divided into p, that do not hold, each with its sentence."""
    found = {}
    m, r = p.B2.shape[1], len(p.C2)
    if lost := describe_unreached(P.A, P.B[:, -m:], P.state_names, P.dt):
        found["i"] = f"the controls ({', '.join(p.control_names)}) do not reach {lost}"
    if lost := describe_unreached(P.A.T, P.C[-r:].T, P.state_names, P.dt):
        found["ii"] = f"the measurements ({', '.join(p.measurement_names)}) do not see {lost}"
    if _rank(p.D12) < p.B2.shape[1]:
        found["iii"] = (
            f"D12 has rank {_rank(p.D12)}, and there are {p.B2.shape[1]} controls: not all of them cost something"
        )
    if _rank(p.D21) < len(p.C2):
        found["iv"] = (
            f"D21 has rank {_rank(p.D21)}, and there are {len(p.C2)} measurements: not all of them have noise"
        )
    for key, name, G in (
        ("v", "P12", (p.A, p.B2, p.C1, p.D12)),
        ("vi", "P21", (p.A.T, p.C2.T, p.B1.T, p.D21.T)),
    ):
        if (key == "v" and "iii" in found) or (key == "vi" and "iv" in found):
            continue
        z = _axis_zero(*G)
        if z is not None:
            found[key] = f"{name} has a zero on the imaginary axis, at {abs(z):.6g} rad/s"
    return found


def refuse(function: str, found: dict[str, str], which: Sequence[str]) -> None:
    if bad := [found[key] for key in which if key in found]:
        raise NumericalError(f"{function}: {'; '.join(bad)}")


@takes_systems()
def h2syn(P: StateSpace, *, controls: Any, measurements: Any) -> Synthesis:
    """The controller of least H2 norm from w to z, (2).

    `controls` and `measurements` are names of signals, or how many of the last ones.
    """
    P = ordered("h2syn", P, controls, measurements)
    m, r = count(P.input_names, controls), count(P.output_names, measurements)
    p = divided(P, m, r)
    if not P.is_discrete and np.any(p.D11):
        raise ArgumentError(
            "h2syn: D11 is not zero, white noise reaches z directly, and its mean square is infinite; weights of z, "
            "or of w, must fall off at high frequencies (hinfsyn takes others)"
        )
    refuse("h2syn", violations(P, p), ("i", "ii", "iii", "iv", "v", "vi"))
    if P.is_discrete:
        p = divided(StateSpace(*P.matrices), m, r)
        K = around(_sampled_h2_controller(p), p.D22)
        K = finished(P, StateSpace(*K.matrices, P.dt))
    else:
        K = finished(P, around(h2_controller(p), p.D22))
    closed = lft(P, K)
    norm = closed.h2_norm()
    return Synthesis(K, closed, norm, norm, norm)


def _sampled_h2_controller(p: Plant4) -> StateSpace:
    """(3), the matrices of a controller for D22 = 0; p holds those of the sampled plant."""
    X = dare(p.A, p.B2, p.C1.T @ p.C1, p.D12.T @ p.D12, p.C1.T @ p.D12).X
    Y = dare(p.A.T, p.C2.T, p.B1 @ p.B1.T, p.D21 @ p.D21.T, p.B1 @ p.D21.T).X
    right = p.B2.T @ X @ np.hstack([p.A, p.B1]) + p.D12.T @ np.hstack([p.C1, p.D11])
    F, F0 = np.hsplit(-np.linalg.solve(p.D12.T @ p.D12 + p.B2.T @ X @ p.B2, right), [len(p.A)])
    left = np.vstack([p.A, F]) @ Y @ p.C2.T + np.vstack([p.B1, F0]) @ p.D21.T
    gains = np.linalg.solve(p.D21 @ p.D21.T + p.C2 @ Y @ p.C2.T, left.T).T
    L, L0 = -gains[: len(p.A)], gains[len(p.A) :]
    return StateSpace(p.A + p.B2 @ F + (L - p.B2 @ L0) @ p.C2, p.B2 @ L0 - L, F - L0 @ p.C2, L0)


def h2_controller(p: Plant4) -> StateSpace:
    """(2), for D22 = 0."""
    X = care(p.A, p.B2, p.C1.T @ p.C1, p.D12.T @ p.D12, p.C1.T @ p.D12)
    Y = care(p.A.T, p.C2.T, p.B1 @ p.B1.T, p.D21 @ p.D21.T, p.B1 @ p.D21.T)
    F, L = -X.K, -Y.K.T
    return StateSpace(p.A + p.B2 @ F + L @ p.C2, -L, F)


def _last(function: str, argument: str, names: tuple[str, ...], given: Any) -> list[int]:
    n = len(names)
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if not 0 < given <= n:
            raise ArgumentError(f"{function}: {argument} is {given}, expected 1 to {n}")
        return list(range(n))
    last = arguments.picked(function, argument, names, given)
    return [k for k in range(n) if k not in last] + last


def _rank(D: Array) -> int:
    return int(np.linalg.matrix_rank(D, tol=1e-10 * max(1.0, float(np.abs(D).max(initial=0.0)))))


def _axis_zero(A: Array, B: Array, C: Array, D: Array) -> complex | None:
    """A zero of the system on the imaginary axis, where D has full column rank; also one that is a pole not seen by C."""
    n = len(A)
    # zeros of a system that is not square are those of the square one x' = (A - B D+ C) x, y = (1 - D D+) C x, if not seen
    D_plus = np.linalg.pinv(D)
    F, rest = A - B @ D_plus @ C, C - D @ D_plus @ C
    for value in np.linalg.eigvals(F) if n else []:
        if abs(value.real) < 1e-9 * max(1.0, abs(value)):
            M = np.vstack([F - 1j * value.imag * np.eye(n), rest])
            if np.linalg.svd(M, compute_uv=False)[-1] < 1e-9 * max(1.0, float(np.linalg.norm(M))):
                return complex(value)
    return None

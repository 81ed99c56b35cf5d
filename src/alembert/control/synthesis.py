"""What controllers are designed on: a plant with disturbances w, performance z, controls u and measurements y; and weights.

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

Mixed sensitivity is a plant with weights, as synthesis takes it:

    e = w - G u,      z = [W1 e; W2 u; W3 G u],      y = e                                                          (4)

so that z = [W1 S; W2 K S; W3 T] w with S = (1 + G K)^-1 and T = 1 - S, for u = K y. A W3 that is not proper
(s^2/40000, say) is a pair (numerator, denominator): its polynomial part acts on the states of G, s (C x) = C A x + C
B u and so on, as long as the product with G is proper.

Weights of LQG that depend on frequency make the cost E |W_y C x|^2 + |W_u u|^2 (Gupta 1980, "Frequency-shaped cost
functionals: extension of linear-quadratic-Gaussian design methods", J. Guidance and Control 3): `weighted_lqg`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.control import arguments
from alembert.control.arguments import takes_systems
from alembert.control.gramian import semidefinite_root
from alembert.control.interconnection import append, common_dt, feedback, lft, series, static
from alembert.control.reachability import describe_unreached
from alembert.control.responses import bilinear, from_bilinear
from alembert.control.riccati import care, dare
from alembert.control.statespace import StateSpace
from alembert.control.transfer import polynomial, tf, times_polynomial, weight_of
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
    for what, given in (("controls", controls), ("measurements", measurements)):
        if isinstance(given, bool) or not isinstance(given, int | np.integer | Iterable):
            raise ArgumentError(
                f"{function}: {what} is {given!r}, expected names of signals, or how many of the last ones"
            )
    columns = _last(function, "controls", P.input_names, controls)
    rows = _last(function, "measurements", P.output_names, measurements)
    left = P.shape[1] - count(controls), P.shape[0] - count(measurements)
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


def count(given: Any) -> int:
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
    m, r = count(controls), count(measurements)
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


@takes_systems()
def augment(G: StateSpace, W1: Any = None, W2: Any = None, W3: Any = None) -> StateSpace:
    """(4); a weight with one input and output is taken for every signal, None leaves its row of z out.

    The outputs of the result are z1, z2, z3 (numbered) and the measurements e; its inputs are w and the inputs of G.
    Controls and measurements of `hinfsyn` and `h2syn` are then `G.input_names` and how many outputs G has.
    """
    p, m = G.shape
    weights = [_weight(name, W, k) for name, W, k in (("W1", W1, p), ("W2", W2, m))]
    proper, extra = _split(W3, p, G)
    A, B, C, D = G.matrices
    rows_C, rows_D = (
        [-C, np.zeros((m, len(A))), C],
        [
            np.hstack([np.eye(p), -D]),
            np.hstack([np.zeros((m, p)), np.eye(m)]),
            np.hstack([np.zeros((p, p)), D]),
        ],
    )
    systems = [*weights, proper]
    keep = [k for k, W in enumerate(systems) if W is not None]
    chosen = [W for W in systems if W is not None]
    if not keep and extra is None:
        raise ArgumentError("augment: no weight was given, expected W1, W2 or W3")
    common_dt("augment", [G, *chosen])
    parts_C = [rows_C[k] for k in keep]
    parts_D = [rows_D[k] for k in keep]
    if extra is not None:
        parts_C.append(extra.C)
        parts_D.append(np.hstack([np.zeros((p, p)), extra.D]))
        chosen.append(static(np.eye(p), dt=G.dt))
    base = StateSpace(
        A,
        np.hstack([np.zeros((len(A), p)), B]),
        np.vstack([*parts_C, -C]),
        np.vstack([*parts_D, np.hstack([np.eye(p), -D])]),
        G.dt,
        state_names=G.state_names,
        input_names=tuple(
            [*(f"w{k}" for k in range(p)), *(f"u:{n}" if n.startswith("w") else n for n in G.input_names)]
        ),
    )
    found = series(base, append(*chosen, static(np.eye(p), dt=G.dt)))
    if extra is not None and proper is not None:  # both parts of W3 make one signal
        count = found.shape[0] - p
        join = np.eye(count + p)
        join[count - 2 * p : count - p, count - p : count] = np.eye(p)
        found = series(found, static(np.delete(join, np.s_[count - p : count], axis=0), dt=G.dt))
    names = [f"z{k}" for k in range(found.shape[0] - p)] + [f"e{k}" for k in range(p)]
    return found.renamed(outputs=names, inputs=base.input_names)


@takes_systems()
def weighted_lqg(
    plant: StateSpace,
    output_weight: Any,
    control_weight: Any,
    process: Any,
    sensor: Any,
    *,
    through: Any = None,
    disturbance: Any = None,
) -> Synthesis:
    """LQG with weights that depend on frequency: E |W_y C x|^2 + |W_u u|^2 is least (Gupta 1980).

    `output_weight` and `control_weight` are systems, (numerator, denominator), matrices or numbers; that of the controls
    must have a direct part. `process`, `sensor` and `through` are those of `lqe`; `disturbance` is a stable system that
    colours the noise of the process. An H2 problem (`h2syn`): the controller has the states of the weights too, and
    `norm` squared is the cost.
    """
    what = "weighted_lqg"
    n, (p, m) = plant.order, plant.shape
    G, W = arguments.process_noise(what, plant, process, through)
    k = len(W)
    V = arguments.weight(what, "sensor", sensor, plant.output_names, definite=True)
    given = (("output_weight", output_weight, p), ("control_weight", control_weight, m))
    Wy, Wu = (_system(what, name, x, size) for name, x, size in given)
    colour = _system(what, "disturbance", np.eye(k) if disturbance is None else disturbance, k)
    common_dt(what, [plant, Wy, Wu, colour])
    zero = np.zeros
    base = StateSpace(
        plant.A,
        np.hstack([G, zero((n, p)), plant.B]),
        np.vstack([plant.C, zero((m, n)), plant.C]),
        np.block(
            [
                [zero((p, k + p)), plant.D],
                [zero((m, k + p)), np.eye(m)],
                [zero((p, k)), semidefinite_root(V), plant.D],
            ]
        ),
        plant.dt,
        state_names=plant.state_names,
    )
    first = append(colour * static(semidefinite_root(W), dt=colour.dt), static(np.eye(p + m), dt=plant.dt))
    P = series(first, base, append(Wy, Wu, static(np.eye(p), dt=plant.dt)))
    inputs = [*(f"w{i}" for i in range(k)), *(f"v{i}" for i in range(p)), *plant.input_names]
    outputs = [*(f"z{i}" for i in range(P.shape[0] - p)), *plant.output_names]
    P = P.renamed(inputs=arguments.distinct(inputs), outputs=arguments.distinct(outputs))
    try:
        return h2syn(P, controls=m, measurements=p)
    except NumericalError as error:
        raise NumericalError(f"{what}: {str(error).partition(': ')[2]}") from None


def _weight(name: str, W: Any, size: int) -> StateSpace | None:
    return None if W is None else _system("augment", name, W, size)


def _system(function: str, name: str, W: Any, size: int) -> StateSpace:
    """A stable weight of `size` signals."""
    W = weight_of(function, name, W, size)
    if W.shape[1] != size:
        raise ArgumentError(f"{function}: {name} has {W.shape[1]} inputs, expected 1 or {size}")
    if not W.is_stable:
        pole = np.linalg.eigvals(W.A)[int(np.argmax(W.decay()))]
        raise ArgumentError(
            f"{function}: {name} is not stable, it has the pole {pole + 0.0:.6g}, which no controller reaches; move it to "
            "the left, 1/s to 1/(s + 1e-4), or shape the loop with it (`ncfsyn`)"
        )
    return W


def _split(W: Any, size: int, G: StateSpace) -> tuple[StateSpace | None, StateSpace | None]:
    """The proper part of W3, and its polynomial part times G."""
    if not isinstance(W, tuple):
        return _weight("W3", W, size), None
    num, den = (polynomial("augment", x) for x in W)
    if len(num) <= len(den):
        return _weight("W3", W, size), None
    if G.is_discrete:
        raise ArgumentError("augment: W3 is not proper, and the plant is sampled")
    quotient, rest = np.polydiv(num, den)
    try:
        extra = times_polynomial(G, quotient)
    except ArgumentError as error:
        raise ArgumentError(f"augment: W3 G is not proper: {str(error).partition(': ')[2]}") from None
    proper = _weight("W3", tf(rest, den), size) if np.any(rest) else None
    return proper, extra

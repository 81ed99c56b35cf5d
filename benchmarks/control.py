"""Linear systems: norms, responses, gramians, Riccati equations and synthesis, against SciPy and, where it is installed,
Slycot (`pip install slycot`), alone and through python-control."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg

from alembert import control
from alembert.control.gramian import lyapunov
from benchmarks.rows import Row, against

try:
    import slycot

    from control import hinfsyn as their_hinfsyn
    from control import ss
except ImportError:
    slycot = None


def chain(n: int, damping: float = 1e-3) -> control.StateSpace:
    """n states: n/2 masses between springs, lightly damped; forces and places at both ends."""
    k = n // 2
    K = 100 * (2 * np.eye(k) - np.eye(k, k=1) - np.eye(k, k=-1))
    return control.SecondOrder(
        np.eye(k), damping * K, K, np.eye(k)[:, [0, -1]], np.eye(k)[[0, -1]]
    ).to_statespace()


def rows(*, quick: bool) -> Iterator[Row]:
    repeats = 2 if quick else 5
    size = 200
    G = chain(size)
    w = np.geomspace(0.1, 100, 200)

    def dense() -> Any:
        return (
            G.C @ np.linalg.solve(1j * w[:, None, None] * np.eye(size) - G.A, G.B[None].astype(complex)) + G.D
        )

    yield Row(
        "control_response",
        "200 frequencies",
        f"chain, {size} states",
        _least(lambda: G.frequency_response(w), repeats),
        peer="NumPy, one solve a frequency",
        theirs=_least(dense, repeats),
        measure="ratio",
        goal=8.0,
    )
    for n, goal in ((200, None), (400 if quick else 1000, None if quick else 5.0)):
        H = chain(n)
        Q = H.B @ H.B.T
        yield Row(
            f"control_gramian_{n}",
            "gramian",
            f"chain, {n} states",
            _least(lambda H=H, Q=Q: lyapunov(H.A, Q), repeats),
            peer="SciPy",
            theirs=_least(lambda H=H, Q=Q: scipy.linalg.solve_continuous_lyapunov(H.A, -Q), 1),
            measure="ratio" if goal else "",
            goal=goal,
        )
    small = chain(50)
    for n, goal in ((50, None), (200 if quick else 1000, None if quick else 20.0)):
        H = chain(n)
        yield Row(
            f"control_care_{n}",
            "Riccati equation",
            f"chain, {n} states",
            _least(lambda H=H: control.lqr(H, 1.0, 1.0), repeats),
            peer="SciPy",
            theirs=_least(
                lambda H=H, n=n: scipy.linalg.solve_continuous_are(H.A, H.B, np.eye(n), np.eye(2)), 1
            ),
            measure="ratio" if goal else "",
            goal=goal,
        )
    M, blocks = _uncertain()
    yield Row(
        "control_mu",
        "mu, both bounds, a frequency",
        "10 states, 4 complex numbers and a full block",
        _least(lambda: control.mu_response(M, blocks, w), repeats) / len(w),
        measure="ours",
        goal=1e-3,
    )
    for name, told, uncertain in (
        ("real", "3 real and 3 complex numbers", [control.DeltaBlock(x) for x in ("real", "complex") * 3]),
        ("repeated", "2 real numbers on 3 copies each", [control.DeltaBlock("real", 3)] * 2),
    ):
        yield Row(
            f"control_mu_{name}",
            "mu, both bounds, a frequency",
            f"10 states, {told}",
            _least(lambda uncertain=uncertain: control.mu_response(M, uncertain, w), repeats) / len(w),
            measure="ours",
            goal=1e-3,
        )
    yield Row(
        "control_mu_peak",
        "peak of mu, proven",
        "10 states, a real number on 6 copies",
        _least(lambda: control.mu_peak(M, [control.DeltaBlock("real", 6)], tolerance=0.05), 1),
    )
    for n in (200, 400):
        yield _norm(f"oscillating, {n} states, dense", oscillating(n), repeats)
    yield _norm(f"chain, {size} states", G, repeats)
    P = _plant(small)
    taken = _least(lambda: control.hinfsyn(P, controls=1, measurements=1), 2)
    theirs = None
    if slycot and not quick:
        other = ss(P.A, P.B, P.C, P.D)
        theirs = _least(lambda: their_hinfsyn(other, 1, 1), 1)
    yield against(
        "control_hinf",
        "H-infinity controller",
        "chain, 50 states",
        taken,
        "python-control",
        theirs,
        10.0 if theirs else None,
    )


def oscillating(n: int) -> control.StateSpace:
    """Modes of 0.1 to 5 % damping, turned so that A is dense; three inputs and outputs."""
    rng = np.random.default_rng(n)
    w, zeta = np.geomspace(0.3, 100, n // 2), 10 ** rng.uniform(-3, np.log10(0.05), n // 2)
    A = scipy.linalg.block_diag(*([[0, x], [-x, -2 * z * x]] for x, z in zip(w, zeta, strict=True)))
    T = scipy.linalg.qr(rng.normal(size=(n, n)))[0]
    return control.StateSpace(T @ A @ T.T, T @ rng.normal(size=(n, 3)), rng.normal(size=(3, n)) @ T.T)


def _norm(model: str, G: control.StateSpace, repeats: int) -> Row:
    taken = _least(lambda: G.hinf_norm(), repeats)
    if not slycot:
        return Row("control_norm", "H-infinity norm", model, taken)
    n, (p, m) = G.order, G.D.shape

    def theirs() -> float:
        gain: float = slycot.ab13dd("C", "I", "N", "D", n, m, p, G.A, np.eye(n), G.B, G.C, G.D, 1e-9)[0]
        return gain

    if abs(theirs() / float(G.hinf_norm()) - 1) > 1e-6:
        raise RuntimeError(f"the two norms differ: {model}")
    return against("control_norm", "H-infinity norm", model, taken, "Slycot ab13dd", _least(theirs, 2), 5.0)


def _uncertain() -> tuple[control.StateSpace, list[control.DeltaBlock]]:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(10, 10))
    A -= (np.linalg.eigvals(A).real.max() + 0.2) * np.eye(10)
    blocks = [control.DeltaBlock("complex")] * 4 + [control.DeltaBlock("full", 2)]
    return control.StateSpace(A, rng.normal(size=(10, 6)), rng.normal(size=(6, 10))), blocks


def _plant(G: control.StateSpace) -> control.StateSpace:
    n = G.order
    return control.StateSpace(
        G.A,
        np.hstack([G.B[:, 1:], np.zeros((n, 1)), G.B[:, :1]]),
        np.vstack([G.C[1:], np.zeros((1, n)), G.C[1:]]),
        [[0, 0, 0], [0, 0, 1], [0, 0.1, 0]],
    )


def _least(call: Callable[[], Any], repeats: int) -> float:
    """Seconds, the least of some repeats: these calls are long."""
    found = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - start)
    return found

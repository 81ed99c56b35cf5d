"""Which modes inputs do not reach: for messages that name the pole and the states that take part in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Array = np.ndarray


def unreached(A: Array, B: Array, *, discrete: bool = False) -> list[tuple[complex, Array]]:
    """Poles that are not stable and that B does not reach, each with the left eigenvector (Popov, Belevitch, Hautus)."""
    values, vectors = np.linalg.eig(A.T)
    found = []
    size = max(1.0, float(np.abs(A).max(initial=0.0)))
    for pole, x in zip(values, vectors.T, strict=True):
        stable = abs(pole) < 1 - 1e-12 if discrete else pole.real < -1e-12 * size
        if stable or pole.imag < 0:
            continue
        M = np.hstack([A - pole * np.eye(len(A)), B])
        if np.linalg.svd(M, compute_uv=False)[-1] < 1e-10 * max(1.0, float(np.linalg.norm(M))):
            found.append((complex(pole), x))
    return found


def describe_unreached(A: Array, B: Array, names: Sequence[str], *, discrete: bool = False) -> str:
    """`the pole 0.2 (states a, b)`; empty where all unstable modes are reached."""
    parts = []
    for pole, x in unreached(A, B, discrete=discrete):
        share = np.abs(x) / np.abs(x).max()
        states = ", ".join(names[k] for k in np.argsort(-share)[:4] if share[k] > 0.1)
        value = f"{pole.real:.6g}" if pole.imag == 0 else f"{pole:.6g}"
        parts.append(f"the pole {value} (states {states})")
    return " and ".join(parts)

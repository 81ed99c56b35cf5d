"""Which modes inputs do not reach: for messages that name the pole and the states that take part in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Array = np.ndarray


def unreached(A: Array, B: Array, *, discrete: bool = False) -> list[tuple[complex, Array]]:
    """Poles that are not stable and that B does not reach, each once, with the size of every state's part in what is lost.

    Left null vectors of [A - pole, B] (Popov, Belevitch, Hautus): of a multiple pole, only the part that is not reached.
    """
    found: list[tuple[complex, Array]] = []
    size = max(1.0, float(np.abs(A).max(initial=0.0)))
    for pole in np.linalg.eigvals(A):
        stable = abs(pole) < 1 - 1e-12 if discrete else pole.real < -1e-12 * size
        # multiple poles are found as clusters, their radius a root of rounding
        if stable or pole.imag < 0 or any(abs(pole - other) <= 1e-6 * size for other, _ in found):
            continue
        U, s, _ = np.linalg.svd(np.hstack([A - pole * np.eye(len(A)), B]))
        lost = U[:, s < 1e-10 * max(1.0, float(s[0]))]
        if lost.shape[1]:
            found.append((complex(pole) + 0.0, np.linalg.norm(lost, axis=1)))
    return found


def describe_unreached(A: Array, B: Array, names: Sequence[str], *, discrete: bool = False) -> str:
    """`the pole 0.2 (states a, b)`; empty where all unstable modes are reached."""
    parts = []
    for pole, x in unreached(A, B, discrete=discrete):
        share = x / x.max()
        states = ", ".join(names[k] for k in np.argsort(-share, kind="stable")[:4] if share[k] > 0.1)
        value = f"{pole.real + 0.0:.6g}" if pole.imag == 0 else f"{pole:.6g}"
        parts.append(f"the pole {value} (states {states})")
    return " and ".join(parts)

"""Which modes inputs do not reach, for messages: the pole, what moves in it and how, and the states that take part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from alembert.errors import NumericalError

if TYPE_CHECKING:
    from alembert.control.statespace import StateSpace

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


def describe_unreached(A: Array, B: Array, names: Sequence[str], dt: float = 0.0) -> str:
    """`the pole 0.2 (states a, b: grows e-fold in 5 s)`; empty where all unstable modes are reached."""
    parts = []
    for pole, x in unreached(A, B, discrete=dt > 0):
        share = x / x.max()
        states = [names[k] for k in np.argsort(-share, kind="stable")[:4] if share[k] > 0.1]
        value = f"{pole.real + 0.0:.6g}" if pole.imag == 0 else f"{pole:.6g}"
        parts.append(f"the pole {value} (states {', '.join(states)}: {_motion(pole, states, dt)})")
    return " and ".join(parts)


def lost_modes(G: StateSpace) -> str:
    """What the inputs of G do not reach and what its outputs do not see, as one sentence; empty where nothing is lost."""
    parts = []
    if lost := describe_unreached(G.A, G.B, G.state_names, G.dt):
        parts.append(f"the inputs ({', '.join(G.input_names)}) do not reach {lost}")
    if lost := describe_unreached(G.A.T, G.C.T, G.state_names, G.dt):
        parts.append(f"the outputs ({', '.join(G.output_names)}) do not see {lost}")
    return "; ".join(parts)


def refuse_lost_modes(function: str, G: StateSpace, error: NumericalError) -> NumericalError:
    """The error of a Riccati equation of G, with the modes at its root where there are some."""
    return NumericalError(f"{function}: {lost_modes(G) or error}")


def _motion(pole: complex, states: Sequence[str], dt: float) -> str:
    """`a mode of 3 rad/s (0.477 Hz), damping ratio 0, of boom`"""
    if dt:
        pole = np.log(pole) / dt if pole else complex(-np.inf)
    size = abs(pole)
    # states of multibody models are called q:joint and v:joint
    joints = list(dict.fromkeys(name[2:] for name in states if name[:2] in ("q:", "v:")))
    of = f" of {', '.join(joints)}" if joints else ""
    if size < 1e-6:
        return f"free motion{of}"
    if abs(pole.imag) < 1e-9 * size:
        return f"{f'growth{of}' if of else 'grows'}, e-fold in {1 / size:.4g} s"
    damping = round(-pole.real / size, 9) + 0.0
    return f"a mode{of} at {size:.4g} rad/s ({size / (2 * np.pi):.3g} Hz), damping ratio {damping:.3g}"

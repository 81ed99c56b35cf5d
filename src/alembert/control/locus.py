"""The poles of a closed loop over its gain: u = -k K y, poles of A - B (1 + k K D)^-1 k K C.   (1)"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import NumericalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
_ROUNDS, _SMOOTH, _SEEN = (
    8,
    0.03,
    4.0,
)  # of halving; the longest piece of a branch, and the picture, in sizes of open-loop poles


@dataclass(frozen=True, eq=False)
class RootLocus:
    """`poles` (gains, states): each column follows one branch; some end at the `zeros` of the loop."""

    gains: Array
    poles: Array
    zeros: Array
    dt: float = 0.0
    """of a sampled loop [s], whose poles are to stay within the unit circle"""

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """The branches in the complex plane; needs matplotlib. `path` saves it."""
        from alembert.control import plots

        return plots.root_locus(self, path)


@takes_systems()
def root_locus(G: StateSpace, K: Any = 1.0, *, gains: Any = None) -> RootLocus:
    """(1) for the gains k; K is a matrix (inputs, outputs), or a number for a system with one of each."""
    K = arguments.matrix("root_locus", "K", K, G.shape[1], G.shape[0])
    k = None if gains is None else np.atleast_1d(arguments.numbers("root_locus", "gains", gains)).ravel()
    found = branches(*G.matrices, K, k)
    return RootLocus(found.gains, found.poles, found.zeros, G.dt)


def branches(A: Array, B: Array, C: Array, D: Array, K: Array, gains: Array | None) -> RootLocus:
    """(1); branches keep their columns by the assignment of least total distance."""
    if gains is not None:
        poles = np.array([_poles(A, B, C, D, K, k) for k in gains]).reshape(len(gains), len(A))
    else:
        gains, poles = _followed(A, B, C, D, K)
    poles = _in_columns(poles)
    zeros = StateSpace(A, B, K @ C, K @ D).zeros() if len(K) else np.zeros(0)
    return RootLocus(gains, poles, zeros)


def _followed(A: Array, B: Array, C: Array, D: Array, K: Array) -> tuple[Array, Array]:
    """Gains from 0 to 1000, closer where branches move fast: where they meet they move by the root of the gain."""
    gains = np.concatenate([[0.0], np.logspace(-3, 3, 200)])
    poles = np.array([_poles(A, B, C, D, K, k) for k in gains]).reshape(len(gains), len(A))
    size = np.abs(poles[0]).max(initial=0.0) or 1.0
    for _ in range(_ROUNDS):
        follow = _in_columns(poles)
        seen = np.abs(follow) < _SEEN * size
        moved = np.where(seen[1:] & seen[:-1], np.abs(np.diff(follow, axis=0)), 0.0)
        far = moved.max(axis=1, initial=0.0) > _SMOOTH * size
        if not far.any():
            break
        between = (gains[1:] + gains[:-1])[far] / 2
        added = np.array([_poles(A, B, C, D, K, k) for k in between])
        gains, poles = np.concatenate([gains, between]), np.concatenate([poles, added])
        order = np.argsort(gains)
        gains, poles = gains[order], poles[order]
    return gains, poles


def _in_columns(poles: Array) -> Array:
    poles = poles.copy()
    for i in range(1, len(poles)):
        poles[i] = poles[i][scipy.optimize.linear_sum_assignment(np.abs(poles[i - 1][:, None] - poles[i]))[1]]
    return poles


def _poles(A: Array, B: Array, C: Array, D: Array, K: Array, gain: float) -> Array:
    try:
        loop = np.linalg.solve(np.eye(len(K)) + gain * K @ D, gain * K @ C)
    except np.linalg.LinAlgError:
        raise NumericalError(
            f"root_locus: at the gain {gain:.6g} the direct part of the outputs feeds the inputs back to "
            "themselves, 1 + k K D is singular, and the poles are infinite"
        ) from None
    return np.sort_complex(np.linalg.eigvals(A - B @ loop))

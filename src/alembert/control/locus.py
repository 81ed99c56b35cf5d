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
    k = np.concatenate([[0.0], np.logspace(-3, 3, 200)]) if gains is None else gains
    poles = np.empty((len(k), len(A)), dtype=complex)
    for i, gain in enumerate(k):
        try:
            loop = np.linalg.solve(np.eye(len(K)) + gain * K @ D, gain * K @ C)
        except np.linalg.LinAlgError:
            raise NumericalError(
                f"root_locus: at the gain {gain:.6g} the direct part of the outputs feeds the inputs back to "
                "themselves, 1 + k K D is singular, and the poles are infinite"
            ) from None
        found = np.sort_complex(np.linalg.eigvals(A - B @ loop))
        if i:
            found = found[scipy.optimize.linear_sum_assignment(np.abs(poles[i - 1][:, None] - found))[1]]
        poles[i] = found
    zeros = StateSpace(A, B, K @ C, K @ D).zeros() if len(K) else np.zeros(0)
    return RootLocus(k, poles, zeros)

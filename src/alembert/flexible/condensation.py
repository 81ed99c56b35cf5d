"""Condensation of finite elements to a few of their unknowns, which stay unknowns: Guyan's and the improved reduction.

With the unknowns to keep (m) and the others (s), shapes are columns of T, and M, K become T' M T, T' K T:

    T = [1; -K_ss^-1 K_sm]                                 Guyan (1965): the others follow statically             (1)
    T + [0; K_ss^-1] M T (M_r^-1 K_r)                      IRS, O'Callahan (1989): with their inertia to first order (2)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from alembert.errors import ArgumentError
from alembert.flexible.finite_elements import FiniteElements, MassPoints, solver

Array = np.ndarray


def guyan(fe: FiniteElements, keep: Any) -> FiniteElements:
    """(1) for the unknowns with the numbers `keep` (`fe.unknowns(nodes, directions)`)."""
    return _restricted(fe, *_static(fe, keep, "guyan"))


def improved_reduction(fe: FiniteElements, keep: Any, *, held: Any = None) -> FiniteElements:
    """(2); frequencies are closer than Guyan's, but no bounds.

    The inertia is that of motions with the nodes `held` at rest, which should be those where the structure is attached.
    """
    T, kept = _static(fe, keep, "improved_reduction")
    others, _ = fe.held(kept)
    M, K = T.T @ (fe.M @ T), T.T @ (fe.K @ T)
    rates = np.zeros_like(K)
    moves = np.flatnonzero(~np.isin(kept, [] if held is None else fe.unknowns(held)))
    inner = np.ix_(moves, moves)
    try:
        rates[inner] = scipy.linalg.solve(M[inner], K[inner], assume_a="pos")
    except scipy.linalg.LinAlgError:
        raise ArgumentError(
            "improved_reduction: some of the unknowns to keep move no mass; leave them out, or choose guyan"
        ) from None
    T = T.copy()
    T[others] += solver(fe.K[others][:, others], "improved_reduction")((fe.M @ T)[others] @ rates)
    return _restricted(fe, T, kept)


def _static(fe: FiniteElements, keep: Any, what: str) -> tuple[Array, Array]:
    others, kept = fe.held(keep)
    if not len(kept):
        raise ArgumentError(f"{what}: no unknowns to keep")
    T = np.zeros((fe.size, len(kept)))
    T[kept, np.arange(len(kept))] = 1.0
    if len(others):
        T[others] = -solver(fe.K[others][:, others], what)(fe.K[others][:, kept].toarray())
    return T, kept


def _restricted(fe: FiniteElements, T: Array, kept: Array) -> FiniteElements:
    """The structure in the coordinates of the unknowns that are kept; its mass points and stresses follow."""
    whole, p = fe.geometric, fe.points
    points = MassPoints(
        p.mass,
        p.position,
        p.arm,
        scipy.sparse.csr_array(p.displacement @ T),
        scipy.sparse.csr_array(p.rotation @ T),
    )

    def geometric(u: Array) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(T.T @ (whole(T @ u) @ T))  # type: ignore[misc]

    node, d = fe.dofs[kept].T
    nodes = np.unique(node[node >= 0])  # others are no nodes any more
    return FiniteElements(
        scipy.sparse.csr_array(T.T @ (fe.M @ T)),
        scipy.sparse.csr_array(T.T @ (fe.K @ T)),
        fe.positions[nodes],
        np.column_stack([np.where(node < 0, -1, np.searchsorted(nodes, node)), d]),
        tuple(fe.names[k] for k in nodes),
        points if fe.own_points else None,  # type: ignore[arg-type]
        None if whole is None else geometric,
    )

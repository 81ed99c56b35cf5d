"""Linear systems whose matrices have uncertain elements, and what is joined of them.

[A B; C D] is one `Uncertain`: the elements of Delta are outside of the dynamics,

    x' = A x + B_w w + B u,     z = C_z x + D_zw w + D_zu u,     y = C x + D_yw w + D u,     w = Delta z              (1)

(x+ in the place of x' for sampled systems). Products, sums and feedback are those of (1) with all elements side by side;
uses of one element that come together are reduced as far as its kind allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.control.interconnection import append, close, lft, static
from alembert.control.mu_bounds import DeltaBlock
from alembert.control.robustness import MuPeak, mu_peak, worst_case_gain
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.control.uncertain_lft import Uncertain, merged, stacked, uncertain
from alembert.errors import ArgumentError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class UncertainSystem:
    """x' = A x + B u, y = C x + D u with matrices that have uncertain elements: [A B; C D] is one `Uncertain`."""

    matrix: Uncertain
    order: int
    dt: float = 0.0

    is_uncertain = True
    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, inputs)"""
        return self.matrix.shape[0] - self.order, self.matrix.shape[1] - self.order

    @property
    def blocks(self) -> list[DeltaBlock]:
        """Delta, as `mu_peak` and `dksyn` take it."""
        return self.matrix.blocks

    def at(self, **values: Any) -> StateSpace:
        """The system for some values of the elements; those left out have their means."""
        n, M = self.order, self.matrix.at(**values)
        return StateSpace(M[:n, :n], M[:n, n:], M[n:, :n], M[n:, n:], self.dt)

    def open(self) -> StateSpace:
        """(1): the system from (w, u) to (z, y) that w = Delta z closes; `mu_peak` and `dksyn` take it with `blocks`."""
        n, U = self.order, self.matrix
        return StateSpace(
            U.M22[:n, :n],
            np.hstack([U.M21[:n], U.M22[:n, n:]]),
            np.vstack([U.M12[:, :n], U.M22[n:, :n]]),
            np.block([[U.M11, U.M12[:, n:]], [U.M21[n:], U.M22[n:, n:]]]),
            self.dt,
        )

    @takes_systems(gains=True)
    def closed(self, controller: StateSpace) -> StateSpace:
        """From w to z with u = K y, where y and u are the last outputs and inputs."""
        if controller.order and controller.dt != self.dt:
            rates = [f"sampled every {x:g} s" if x else "continuous" for x in (controller.dt, self.dt)]
            raise ArgumentError(
                f"closed: the controller is {rates[0]}, the system {rates[1]}; use `c2d` or `d2c` first"
            )
        return lft(self.open(), StateSpace(*controller.matrices, self.dt))

    # --- analysis ---------------------------------------------------------------------------------------------------

    def mu(self, *, tolerance: float = 1e-2) -> MuPeak:
        """Robust stability: below one, the system is stable for all elements within their bounds."""
        k = len(self.matrix.M11)
        return mu_peak(self.open()[:k, :k], self.blocks, tolerance=tolerance)

    def worst_gain(self, *, tolerance: float = 1e-2) -> tuple[float, float]:
        """Bounds of the largest gain from inputs to outputs, over all elements within bounds; see `worst_case_gain`."""
        return worst_case_gain(self.open(), self.blocks, tolerance=tolerance)

    # --- algebra ----------------------------------------------------------------------------------------------------

    def __mul__(self, other: Any) -> UncertainSystem:
        """`other` first."""
        G = as_uncertain_system(other)
        return _wired("*", G, self, out=1)

    def __rmul__(self, other: Any) -> UncertainSystem:
        return as_uncertain_system(other) * self

    def __add__(self, other: Any) -> UncertainSystem:
        return _wired("+", self, as_uncertain_system(other), beside=True, out=2)

    __radd__ = __add__

    def __neg__(self) -> UncertainSystem:
        return as_uncertain_system(-np.eye(self.shape[0])) * self

    def __sub__(self, other: Any) -> UncertainSystem:
        return self + -as_uncertain_system(other)

    def __rsub__(self, other: Any) -> UncertainSystem:
        return as_uncertain_system(other) - self

    def feedback(self, K: Any = 1.0, *, sign: int = -1) -> UncertainSystem:
        """u = r + sign K y around this system; negative feedback unless `sign` is 1. From r to y."""
        if sign not in (-1, 1):
            raise ArgumentError(f"feedback: sign is {sign!r}, expected -1 or 1")
        p, m = self.shape
        K = np.eye(m, p) * K if np.ndim(K) == 0 and isinstance(K, int | float) and p == m else K
        return _wired("feedback", self, as_uncertain_system(K), back=sign, out=0)

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{name} ({self.matrix.kinds.get(name, 'real')})" for name, n in self.matrix.copies.items() if n
        )
        return f"<UncertainSystem: {self.order} states, shape {self.shape}, {listed or 'no elements'}>"


def as_uncertain_system(value: Any) -> UncertainSystem:
    """A system, an `Uncertain` matrix or numbers, as a system with elements."""
    if isinstance(value, UncertainSystem):
        return value
    if isinstance(value, StateSpace):
        A, B, C, D = value.matrices
        return UncertainSystem(uncertain(np.block([[A, B], [C, D]])), value.order, value.dt)
    return UncertainSystem(uncertain(value), 0)


def uncertain_system(A: Any, B: Any, C: Any, D: Any = None, *, dt: float = 0.0) -> UncertainSystem:
    """From matrices of numbers and `Uncertain`s, continuous or sampled every `dt` seconds; copies that do nothing are taken
    out of the whole."""
    a, b, c = (uncertain(X) for X in (A, B, C))
    d = uncertain(np.zeros((c.shape[0], b.shape[1])) if D is None else D)
    n = a.shape[0]
    if a.shape != (n, n) or b.shape[0] != n or c.shape[1] != n or d.shape != (c.shape[0], b.shape[1]):
        raise ArgumentError(
            f"uncertain_system: A, B, C and D have shapes {a.shape}, {b.shape}, {c.shape} and {d.shape}, which do not fit"
        )
    whole = stacked([stacked([a, b], 1), stacked([c, d], 1)], 0).reduced()
    return UncertainSystem(whole, n, static(1.0, dt=dt).dt)


# --- pieces -----------------------------------------------------------------------------------------------------


def _wired(
    function: str, G: UncertainSystem, K: UncertainSystem, *, back: int = 0, beside: bool = False, out: int
) -> UncertainSystem:
    """u_G = r + back y_K;  u_K = y_G, or r where it is `beside` G; the outputs are those of G (0), K (1) or both (2)."""
    (pg, mg), (pk, mk) = G.shape, K.shape
    wants = {"*": mk == pg, "+": (pg, mg) == (pk, mk), "feedback": (mk, pk) == (pg, mg)}
    if not wants[function]:
        raise ArgumentError(
            f"UncertainSystem: {function}: systems of shape {G.shape} and {K.shape} do not fit"
        )
    both = append(G.open(), K.open())
    a, b = len(G.matrix.M11), len(K.matrix.M11)
    # inputs (w_G, u_G, w_K, u_K), outputs (z_G, y_G, z_K, y_K)
    F = np.zeros((a + mg + b + mk, a + pg + b + pk))
    E = np.zeros((a + mg + b + mk, a + b + mg))
    E[:a, :a], E[a + mg : a + mg + b, a : a + b] = np.eye(a), np.eye(b)
    E[a : a + mg, a + b :] = np.eye(mg)
    if back:
        F[a : a + mg, a + pg + b :] = back * np.eye(mg)
    if beside:
        E[a + mg + b :, a + b :] = np.eye(mk)
    else:
        F[a + mg + b :, a : a + pg] = np.eye(mk)
    P = close(f"UncertainSystem: {function}", both, F, E)
    own, others = np.eye(pg, len(F[0]), a), np.eye(pk, len(F[0]), a + pg + b)
    picked = [own, others, own + others if pg == pk else own][out]
    L = np.vstack([np.eye(a, len(F[0])), np.eye(b, len(F[0]), a + pg), picked])
    C, D = L @ P.C, L @ P.D
    n, k = P.order, a + b
    whole = merged(
        D[:k, :k],
        np.hstack([C[:k], D[:k, k:]]),
        np.vstack([P.B[:, :k], D[k:, :k]]),
        np.block([[P.A, P.B[:, k:]], [C[k:], D[k:, k:]]]),
        G.matrix,
        K.matrix,
    )
    return UncertainSystem(whole, n, P.dt)

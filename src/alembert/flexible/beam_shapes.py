"""Shapes of uniform beams as polynomials, by Rayleigh and Ritz's method, (1)-(3) of `alembert.flexible.beam`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.polynomial import legendre

from alembert.model.inertia import Inertia

Array = np.ndarray
DEGREES = 16
"""polynomials beyond the number of modes: the n-th frequency is then right to some ten digits"""


@dataclass(frozen=True)
class Polynomials:
    """Legendre polynomials on [0, 1] at Gauss points: values, slopes and curvatures with respect to xi."""

    degree: int

    @property
    def points(self) -> tuple[Array, Array]:
        """xi and weights, exact for products of three polynomials"""
        return gauss(3 * self.degree // 2 + 4)

    def at(self, xi: Any, derivative: int = 0) -> Array:
        """points x polynomials"""
        found = legendre.legvander(2 * np.atleast_1d(np.asarray(xi, dtype=float)) - 1, self.degree)
        for _ in range(derivative):
            found = found @ _derivative(self.degree + 1)
        return found


@cache
def gauss(count: int) -> tuple[Array, Array]:
    """Places between 0 and 1, and weights."""
    x, w = legendre.leggauss(count)
    return (x + 1) / 2, w / 2


@dataclass(frozen=True)
class Shapes:
    """Modes of one family as polynomials, by columns: `w` the displacement, `turn` the rotation of the section."""

    kind: str
    names: tuple[str, ...]
    basis: Polynomials
    w: Array
    turn: Array
    """radians per unit of the mode"""
    stiffness: Array
    rigidity: float
    """EI, GJ or EA"""
    shear: float | None = None
    """kGA of a Timoshenko beam"""

    def at(self, xi: Any, L: float) -> tuple[Array, Array, Array, Array]:
        """points x modes x 3: displacement and rotation a of the section, da/dxi, strains along and across the section."""
        P = self.basis.at(xi)
        P1 = P @ _derivative(self.basis.degree + 1)
        strain = P1 @ self.w / L - P @ self.turn
        if self.kind != "axial" and self.shear is None:
            strain = 0 * strain
        displaces, turns = _DISPLACES[self.kind], _TURNS[self.kind]
        return (
            _along(displaces, P @ self.w),
            _along(turns, P @ self.turn),
            _along(turns, P1 @ self.turn),
            _along(displaces, strain),
        )

    def loads(self, xi: float, L: float) -> Array:
        """Moment and force in a section per unit of each mode (modes x 6): EI theta', kGA (w' - theta) or -(EI w'')', ..."""
        slope, bend, third = (
            (self.basis.at(xi, k) @ part)[0] for k, part in ((1, self.w), (1, self.turn), (3, self.w))
        )
        if self.kind == "axial":
            force, moment = self.rigidity * slope / L, 0 * bend
        elif self.kind == "torsion":
            force, moment = 0 * slope, self.rigidity * bend / L
        else:
            moment = self.rigidity * bend / L
            angle = slope / L - (self.basis.at(xi) @ self.turn)[0]
            force = -self.rigidity * third / L**3 if self.shear is None else self.shear * angle
        turns, displaces = (np.array(x[self.kind], dtype=float) for x in (_TURNS, _DISPLACES))
        return np.hstack([moment[:, None] * turns, force[:, None] * displaces])


_DISPLACES = {"bending_y": (0, 1, 0), "bending_z": (0, 0, 1), "torsion": (0, 0, 0), "axial": (1, 0, 0)}
_TURNS = {"bending_y": (0, 0, 1), "bending_z": (0, -1, 0), "torsion": (1, 0, 0), "axial": (0, 0, 0)}


def _along(axis: tuple[int, ...], values: Array) -> Array:
    return values[:, :, None] * np.array(axis, dtype=float)


def family_of(
    kind: str,
    n: int,
    stiffness: float,
    L: float,
    line: float,
    gyration: float,
    shear: float | None,
    ends: str,
    tip: Inertia | None,
) -> Shapes:
    """The modes of one family, (1)-(3)."""
    basis = Polynomials(n + DEGREES)
    xi, weights = basis.points
    P, P1, P2 = (basis.at(xi, k) for k in range(3))
    end, end1 = basis.at(1.0), basis.at(1.0, 1)
    root, root1 = basis.at(0.0), basis.at(0.0, 1)
    N = P.shape[1]

    def integral(a: Array, b: Array) -> Array:
        return (a.T * weights) @ b

    bends = kind.startswith("bending")
    if not bends:
        # one unknown: the angle, or the displacement
        K = stiffness / L * integral(P1, P1)
        M = (gyration if kind == "torsion" else line) * L * integral(P, P)
        if tip is not None:
            moment = float(np.asarray(tip.matrix())[0, 0]) if kind == "torsion" else float(tip.mass)  # type: ignore[arg-type]
            M = M + moment * end.T @ end
        held, moves, rigid = root, end, 1 if ends == "free" else 0
        w, turn = (np.zeros((N, N)), np.eye(N)) if kind == "torsion" else (np.eye(N), np.zeros((N, N)))
    elif shear is None:
        # w; theta = w'/L
        slope = P1 / L
        K = stiffness / L**3 * integral(P2, P2)
        M = line * L * integral(P, P) + gyration * L * integral(slope, slope)
        held, moves = np.vstack([root, root1]), np.vstack([end, end1 / L])
        if tip is not None:
            M = M + _tip_mass(tip, kind, end, end1 / L)
        rigid = {"free": 2, "pinned": 1}.get(ends, 0)
        w, turn = np.eye(N), _derivative(N) / L
    else:
        # w and theta L
        zero = np.zeros_like(P)
        bend, angle = np.hstack([zero, P1]) / L, np.hstack([P1, -P])
        K = stiffness / L * integral(bend, bend) + shear / L * integral(angle, angle)
        both, theta = np.hstack([P, zero]), np.hstack([zero, P]) / L
        M = line * L * integral(both, both) + gyration * L * integral(theta, theta)
        o = np.zeros_like(root)
        held = np.block([[root, o], [o, root]])
        moves = np.block([[end, o], [o, end / L]])
        if tip is not None:
            M = M + _tip_mass(tip, kind, np.hstack([end, o]), np.hstack([o, end / L]))
        rigid = {"free": 2, "pinned": 1}.get(ends, 0)
        w, turn = np.hstack([np.eye(N), np.zeros((N, N))]), np.hstack([np.zeros((N, N)), np.eye(N)]) / L
    conditions = {
        "clamped": held,
        "pinned": held[:1],
        "free": held[:0],
        "craig-bampton": np.vstack([held, moves]),
    }[ends]
    Z = scipy.linalg.null_space(conditions) if len(conditions) else np.eye(K.shape[0])
    _, vectors = scipy.linalg.eigh(Z.T @ K @ Z, Z.T @ M @ Z)
    found = Z @ vectors[:, rigid : rigid + n]
    names = [f"{kind}_{k + 1}" for k in range(n)]
    found = found / _largest(basis, (turn if kind == "torsion" else w) @ found)
    if ends == "craig-bampton":
        static = _static_shapes(K, held, moves)
        found = np.hstack([static, found])
        names = [f"{kind}_tip", f"{kind}_slope"][: len(moves)] + names
    return Shapes(
        kind, tuple(names), basis, w @ found, turn @ found, _symmetric(found.T @ K @ found), stiffness, shear
    )


def _tip_mass(tip: Inertia, kind: str, end: Array, angle: Array) -> Array:
    """Of a body at the tip that moves in the plane of bending."""
    m, offset = float(tip.mass), float(tip.com[0])  # type: ignore[arg-type]
    J = np.asarray(tip.matrix())[2, 2] if kind == "bending_y" else np.asarray(tip.matrix())[1, 1]
    moved = end + offset * angle
    return m * moved.T @ moved + J * angle.T @ angle


@cache
def _derivative(N: int) -> Array:
    """The matrix that differentiates a Legendre series with respect to xi."""
    D = np.zeros((N, N))
    for k in range(1, N):
        c = np.zeros(k + 1)
        c[k] = 1.0
        d = legendre.legder(c) * 2.0
        D[: len(d), k] = d
    return D


def _largest(basis: Polynomials, coefficients: Array) -> Array:
    """The largest value of each shape, with its sign."""
    values = basis.at(np.linspace(0.0, 1.0, 401)) @ coefficients
    # of values that are equal but for rounding, the one nearest to the tip
    size = np.abs(values)
    at = [int(np.flatnonzero(column >= (1 - 1e-6) * column.max())[-1]) for column in size.T]
    return values[at, np.arange(values.shape[1])]


def _static_shapes(K: Array, held: Array, moves: Array) -> Array:
    """Unit motions of the tip with the root held, at least energy."""
    conditions = np.vstack([held, moves])
    count = len(conditions)
    system = np.block([[K, conditions.T], [conditions, np.zeros((count, count))]])
    right = np.zeros((len(system), len(moves)))
    right[-len(moves) :] = np.eye(len(moves))
    return np.linalg.solve(system, right)[: len(K)]


def _symmetric(K: Array) -> Array:
    return (K + K.T) / 2

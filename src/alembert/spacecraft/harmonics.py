"""Spherical harmonics: one recursion for gravity and for the magnetic field.

With x, y, z in axes fixed to the Earth, r their length and a reference radius R (Cunningham 1970; Montenbruck and Gill,
Satellite Orbits, section 3.2):

    V_mm = (2m - 1) (x V - y W) R/r^2,   W_mm = (2m - 1) (x W + y V) R/r^2   of (m - 1, m - 1),   V_00 = R/r, W_00 = 0   (1)
    V_nm = (2n - 1)/(n - m) z R/r^2 V_(n-1)m - (n + m - 1)/(n - m) R^2/r^2 V_(n-2)m,  W likewise                        (2)

and the potential (GM/R) sum (C_nm V_nm + S_nm W_nm) has the gradient of `slope`. Coefficients are unnormalised
inside; tables
are read as they are published.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from importlib import resources
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers
from alembert.errors import ArgumentError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Harmonics:
    """Unnormalised coefficients C and S, (N + 1, N + 1), with the scale `parameter` and the `radius` they belong to."""

    parameter: float
    radius: float
    C: Array
    S: Array
    source: str = ""

    @property
    def degree(self) -> int:
        return len(self.C) - 1

    def truncated(self, degree: int, order: int, *, without: tuple[tuple[int, int], ...] = ()) -> Harmonics:
        """Up to a degree and an order, without some terms."""
        if not (0 <= order <= degree):
            raise ArgumentError(
                f"harmonics: degree {degree} and order {order}, expected 0 <= order <= degree"
            )
        if degree > self.degree:
            raise ArgumentError(
                f"harmonics: degree {degree} is asked for, the coefficients of "
                f"{self.source or 'the table'} go to {self.degree}"
            )
        C, S = self.C[: degree + 1, : degree + 1].copy(), self.S[: degree + 1, : degree + 1].copy()
        C[:, order + 1 :], S[:, order + 1 :] = 0.0, 0.0
        for n, m in without:
            if n <= degree:
                C[n, m] = S[n, m] = 0.0
        return Harmonics(self.parameter, self.radius, C, S, self.source)

    @property
    def orders(self) -> int:
        """The highest order that occurs."""
        used = np.flatnonzero(np.any((self.C != 0) | (self.S != 0), axis=0))
        return int(used[-1]) if len(used) else 0

    @property
    def is_zero(self) -> bool:
        return not (np.any(self.C) or np.any(self.S))

    def slope(self, position: Numbers) -> Any:
        """The gradient of the potential at an Earth-fixed position, an expression or numbers (3)."""
        if self.is_zero:
            return ca.DM.zeros(3)
        degree, orders, R = self.degree, self.orders, self.radius
        x, y, z = position[0], position[1], position[2]
        square = x * x + y * y + z * z
        k = R / square
        xs, ys, zs, rho = x * k, y * k, z * k, R * k
        V: dict[tuple[int, int], Any] = {(0, 0): R / ca.sqrt(square)}
        W: dict[tuple[int, int], Any] = {(0, 0): 0.0}
        for m in range(orders + 2):
            if m:
                v, w = V[m - 1, m - 1], W[m - 1, m - 1]
                V[m, m] = (2 * m - 1) * (xs * v - ys * w)  # (1)
                W[m, m] = (2 * m - 1) * (xs * w + ys * v)
            for n in range(m + 1, degree + 2):  # (2)
                a, b = (2 * n - 1) / (n - m), (n + m - 1) / (n - m)
                for T in (V, W):
                    T[n, m] = a * zs * T[n - 1, m] - (b * rho * T[n - 2, m] if n - 2 >= m else 0)
        g: list[Any] = [0.0, 0.0, 0.0]
        for n in range(degree + 1):
            for m in range(min(n, orders) + 1):
                C, S = float(self.C[n, m]), float(self.S[n, m])
                if C == 0 and S == 0:
                    continue
                if m == 0:
                    g[0] -= C * V[n + 1, 1]
                    g[1] -= C * W[n + 1, 1]
                else:
                    f = (n - m + 2) * (n - m + 1)
                    g[0] += (-C * V[n + 1, m + 1] - S * W[n + 1, m + 1]) / 2
                    g[0] += f * (C * V[n + 1, m - 1] + S * W[n + 1, m - 1]) / 2
                    g[1] += (-C * W[n + 1, m + 1] + S * V[n + 1, m + 1]) / 2
                    g[1] += f * (-C * W[n + 1, m - 1] + S * V[n + 1, m - 1]) / 2
                g[2] += (n - m + 1) * (-C * V[n + 1, m] - S * W[n + 1, m])
        return self.parameter / R**2 * ca.vertcat(*g)


def zonal(parameter: float, radius: float, J: dict[int, float]) -> Harmonics:
    """From J2, J3, ... by degree."""
    degree = max(J)
    C = np.zeros((degree + 1, degree + 1))
    for n, value in J.items():
        C[n, 0] = -value
    return Harmonics(parameter, radius, C, np.zeros_like(C), "the zonal terms given")


def _rows(name: str) -> list[list[str]]:
    text = resources.files("alembert.spacecraft").joinpath("data", name).read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


@functools.cache
def egm2008() -> Harmonics:
    """The gravity of the Earth to degree and order 20, EGM2008 (Pavlis et al. 2012), tide free.

    What is left out above degree 20 accelerates a satellite at 400 km by some 1e-5 m/s^2.
    """
    C, S = np.zeros((21, 21)), np.zeros((21, 21))
    for n_text, m_text, c, s in _rows("egm2008.txt"):
        n, m = int(n_text), int(m_text)
        scale = math.sqrt((2 - (m == 0)) * (2 * n + 1) * math.factorial(n - m) / math.factorial(n + m))
        C[n, m], S[n, m] = scale * float(c), scale * float(s)
    return Harmonics(3.986004415e14, 6378136.3, C, S, "EGM2008")


def igrf(year: float, degree: int = 13) -> Harmonics:
    """The magnetic field of the Earth at a year, IGRF-14 (IAGA 2024); the field in tesla is minus the `slope`.

    Of the main field the model is good to some 10 nT; currents in the ionosphere and magnetosphere, 20 to 1000 nT,
    are not in it.
    """
    head, *rows = _rows("igrf14.txt")
    years = np.array([float(x) for x in head[2:]])
    if not years[0] <= year <= years[-1]:
        raise ArgumentError(
            f"igrf: {year:.1f} is outside {years[0]:.0f} to {years[-1]:.0f}, for which there are coefficients"
        )
    if not 1 <= degree <= 13:
        raise ArgumentError(f"igrf: degree is {degree!r}, expected 1 (a dipole) to 13")
    C, S = np.zeros((degree + 1, degree + 1)), np.zeros((degree + 1, degree + 1))
    for row in rows:
        n, m = int(row[0]), int(row[1])
        if n <= degree:
            scale = math.sqrt((2 - (m == 0)) * math.factorial(n - abs(m)) / math.factorial(n + abs(m)))
            value = 1e-9 * scale * float(np.interp(year, years, [float(x) for x in row[2:]]))
            (S if m < 0 else C)[n, abs(m)] = value
    radius = 6371200.0
    return Harmonics(radius**2, radius, C, S, "IGRF-14")

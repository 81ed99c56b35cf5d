"""Where Sun and Moon are, by short series (Montenbruck and Gill, Satellite Orbits, section 3.3.2).

The Sun's mean elements are those of Simon et al. (1994), with the motion of its perigee, which the book leaves out.

The Sun is right to 0.01 deg and 0.02 % of its distance, the Moon to 0.1 deg and 500 km, from 1950 to 2050; held
against ERFA's
series in the tests. Positions are geocentric, in inertial axes, in metres. `days` are days of TDB since J2000, numbers or
expressions.
"""

from __future__ import annotations

import math
from typing import Any

import casadi as ca

from alembert.spacecraft.frames import ARCSECOND

SUN, MOON = 1.32712440041279e20, 4.9028001184575e12
"""gravitational parameters [m^3/s^2], DE440"""
ASTRONOMICAL_UNIT = 149597870700.0
SUN_RADIUS = 6.957e8
_OBLIQUITY = math.radians(23.43929111)


def _equatorial(longitude: Any, latitude: Any, distance: Any) -> Any:
    x = distance * ca.cos(longitude) * ca.cos(latitude)
    y = distance * ca.sin(longitude) * ca.cos(latitude)
    z = distance * ca.sin(latitude)
    c, s = math.cos(_OBLIQUITY), math.sin(_OBLIQUITY)
    return ca.vertcat(x, c * y - s * z, s * y + c * z)


def sun(days: Any) -> Any:
    """(3)"""
    T = days / 36525
    M = math.radians(357.5291) + math.radians(35999.0503) * T
    perigee = math.radians(282.9373) + math.radians(0.32257) * T
    longitude = perigee + M + (6892 * ca.sin(M) + 72 * ca.sin(2 * M)) * ARCSECOND
    distance = 149.619e9 - 2.499e9 * ca.cos(M) - 0.021e9 * ca.cos(2 * M)
    return _equatorial(longitude, 0.0, distance)


def moon(days: Any) -> Any:
    """(3)"""
    T, turn = days / 36525, 2 * math.pi
    L0 = turn * (0.606433 + 1336.851344 * T)
    l = turn * (0.374897 + 1325.552410 * T)
    lp = turn * (0.993133 + 99.997361 * T)
    D = turn * (0.827361 + 1236.853086 * T)
    F = turn * (0.259086 + 1342.227825 * T)
    sin, cos = ca.sin, ca.cos
    dL = 22640 * sin(l) - 4586 * sin(l - 2 * D) + 2370 * sin(2 * D) + 769 * sin(2 * l)
    dL += -668 * sin(lp) - 412 * sin(2 * F) - 212 * sin(2 * l - 2 * D) - 206 * sin(l + lp - 2 * D)
    dL += 192 * sin(l + 2 * D) - 165 * sin(lp - 2 * D) - 125 * sin(D) - 110 * sin(l + lp)
    dL += 148 * sin(l - lp) - 55 * sin(2 * F - 2 * D)
    S = F + (dL + 412 * sin(2 * F) + 541 * sin(lp)) * ARCSECOND
    h = F - 2 * D
    N = -526 * sin(h) + 44 * sin(l + h) - 31 * sin(-l + h) - 23 * sin(lp + h) + 11 * sin(-lp + h)
    N += -25 * sin(-2 * l + F) + 21 * sin(-l + F)
    distance = (
        385000e3 - 20905e3 * cos(l) - 3699e3 * cos(2 * D - l) - 2956e3 * cos(2 * D) - 570e3 * cos(2 * l)
    )
    distance += 246e3 * cos(2 * l - 2 * D) - 205e3 * cos(lp - 2 * D) - 171e3 * cos(l + 2 * D)
    distance += -152e3 * cos(l + lp - 2 * D)
    return _equatorial(L0 + dL * ARCSECOND, (18520 * sin(S) + N) * ARCSECOND, distance)

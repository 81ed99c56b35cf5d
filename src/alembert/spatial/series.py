"""The entire functions of x = t^2 that the exponential maps are made of.

Below x = 1 the power series is summed, above it the closed form in t = sqrt x is taken; the branch not taken is
evaluated at x = 1, so that values and derivatives of any order are right at zero. (The arguments are the less and the
greater of x and 1: CasADi carries choices into products with them, and makes one of each term of a series.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial

from alembert.spatial.arrays import Array, cos, greatest, least, sin, sqrt, where

_TERMS = range(12)  # the first term left out is below 1/25! at x = 1

_COSINE = [(-1) ** k / factorial(2 * k) for k in _TERMS]
_SINC = [(-1) ** k / factorial(2 * k + 1) for k in _TERMS]
_VERSINE = [(-1) ** k / factorial(2 * k + 2) for k in _TERMS]
_C3 = [(-1) ** k / factorial(2 * k + 3) for k in _TERMS]
_C3_OF_HALF = [4**k * c for k, c in enumerate(_C3)]  # in x/4; the first term left out is below 1e-20
_C4 = [(-1) ** k / factorial(2 * k + 4) for k in _TERMS]
_C5 = [(-1) ** k * (k + 1) / factorial(2 * k + 5) for k in _TERMS]
# Bernoulli numbers |B_2|, |B_4|, ...; the series converges as (x/4 pi^2)^k: 11 terms leave 1e-18 at x = 1
_BERNOULLI = [
    1 / 6,
    1 / 30,
    1 / 42,
    1 / 30,
    5 / 66,
    691 / 2730,
    7 / 6,
    3617 / 510,
    43867 / 798,
    174611 / 330,
    854513 / 138,
]
_COT = [b / factorial(2 * (k + 1)) for k, b in enumerate(_BERNOULLI)]


def horner(x: Array, coefficients: Sequence[float]) -> Array:
    total: Array = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = coefficient + x * total
    return total


def _blend(x: Array, coefficients: Sequence[float], closed: Callable[[Array], Array]) -> Array:
    return where(x < 1.0, horner(least(x, 1.0), coefficients), closed(sqrt(greatest(x, 1.0))))


def cosine(x: Array) -> Array:
    """cos t"""
    return _blend(x, _COSINE, cos)


def sinc(x: Array) -> Array:
    """sin t / t"""
    return _blend(x, _SINC, lambda t: sin(t) / t)


def versine(x: Array) -> Array:
    """(1 - cos t)/t^2"""
    return _blend(x, _VERSINE, lambda t: 2 * (sin(t / 2) / t) ** 2)


def c3(x: Array) -> Array:
    """(t - sin t)/t^3"""
    return _blend(x, _C3, lambda t: (t - sin(t)) / t**3)


def c4(x: Array) -> Array:
    """(t^2/2 - 1 + cos t)/t^4"""
    return _blend(x, _C4, lambda t: (t * t / 2 - 2 * sin(t / 2) ** 2) / t**4)


def c5(x: Array) -> Array:
    """(2 t - 3 sin t + t cos t)/(2 t^5)"""
    return _blend(x, _C5, lambda t: (2 * t - 3 * sin(t) + t * cos(t)) / (2 * t**5))


def cot(x: Array) -> Array:
    """(1 - (t/2) cot(t/2))/t^2"""
    return _blend(x, _COT, lambda t: (1 - t / 2 * cos(t / 2) / sin(t / 2)) / t**2)


def cot_slope(x: Array) -> Array:
    """The derivative of `cot` by x: with y = `cot`, (1/4 - 3 y + x y^2)/(2 x)."""

    def closed(t: Array) -> Array:
        z = 1 - t / 2 * cos(t / 2) / sin(t / 2)
        return (t * t / 4 - 3 * z + z * z) / (2 * t**4)

    return _blend(x, [k * b for k, b in enumerate(_COT)][1:], closed)


def half_turn(y: Array) -> tuple[Array, Array, Array]:
    """cos(t/2), sin(t/2)/(t/2) and (t - sin t)/t^3 at once, of y = t^2/4: what a displacement is made of."""
    small = y < 1.0
    within, beyond = least(y, 1.0), greatest(y, 1.0)
    h = sqrt(beyond)
    c, s = cos(h), sin(h) / h
    closed = (c, s, (1 - s * c) / (4 * beyond))
    summed = (horner(within, x) for x in (_COSINE, _SINC, _C3_OF_HALF))
    first, second, third = (where(small, a, b) for a, b in zip(summed, closed, strict=True))
    return first, second, third

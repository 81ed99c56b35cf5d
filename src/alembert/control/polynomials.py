"""Families of polynomials: are all of them stable (roots in the open left half-plane)?

    intervals      coefficients between bounds, each by itself: four polynomials decide (Kharitonov 1978)              (1)
    polytopes      coefficients that are affine in parameters: the edges decide (Bartlett, Hollot and Huang 1988), and an
                   edge a + t (b - a) loses stability where Im a(jw) conj b(jw) = 0 and Re a(jw) conj b(jw) <= 0, which
                   are roots of one real polynomial in w (segment lemma, Chapellat and Bhattacharyya 1989)              (2)
    multilinear    affine in each parameter while the others are held: the values p(jw) of a box lie in the convex hull
                   of those at its corners (Zadeh and Desoer 1963, mapping theorem). Where that hull leaves out zero for all
                   w, the family is stable if one member is (zero exclusion); where it does not, boxes and intervals of
                   frequency are cut in two                                                                            (3)

In (3) an interval [w - h, w + h] is done as a whole: over it p(jw) of a corner moves by at most sum_k |p^(k)(jw)| h^k / k!.

Coefficients go from the highest power down, as in `tf`. An answer is True or False with a witness, never a guess: what
cannot be decided within a number of boxes is None, and says so.
"""

from __future__ import annotations

import heapq
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

from alembert.control import arguments
from alembert.errors import ArgumentError

Array = np.ndarray
_MOST = 16  # parameters: with more there are too many corners to look at


@dataclass(frozen=True, eq=False)
class RobustPolynomial:
    """Whether all members of a family are stable; a member that is not, with its parameters and its worst root."""

    stable: bool | None
    reason: str
    polynomial: Array | None = None
    values: Mapping[str, float] | None = None
    root: complex | None = None
    boxes: int = 0

    def __bool__(self) -> bool:
        return self.stable is True

    def __str__(self) -> str:
        told = {True: "stable", False: "not stable", None: "not decided"}[self.stable]
        return f"{told}: {self.reason}"


def interval_polynomial(low: Any, high: Any) -> RobustPolynomial:
    """(1): coefficients, highest power first, each between `low` and `high`."""
    a, b = (arguments.numbers("interval_polynomial", name, x) for name, x in (("low", low), ("high", high)))
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2 or np.any(a > b):
        raise ArgumentError(
            f"interval_polynomial: low and high have shapes {a.shape} and {b.shape}, expected two lists of the same length, "
            "low nowhere above high"
        )
    _check_degree("interval_polynomial", a[0], b[0])
    up, down = a[::-1], b[::-1]  # from the constant on
    pattern = ((0, 0, 1, 1), (1, 1, 0, 0), (1, 0, 0, 1), (0, 1, 1, 0))
    for signs in pattern:
        p = np.array([(up, down)[signs[k % 4]][k] for k in range(len(a))])[::-1]
        root = _worst(p)
        if root.real >= 0:
            return RobustPolynomial(
                False, f"one of Kharitonov's four polynomials has the root {root:.6g}", p, None, root
            )
    return RobustPolynomial(True, "Kharitonov's four polynomials are stable")


def affine_polynomial(nominal: Any, parts: Mapping[str, Any], ranges: Mapping[str, Any]) -> RobustPolynomial:
    """(2): nominal + sum of value * parts[name], values within ranges; polynomials, highest power first."""
    what = "affine_polynomial"
    base = arguments.numbers(what, "nominal", nominal)
    names = list(parts)
    if base.ndim != 1 or not len(base) or not names or set(names) != set(ranges):
        raise ArgumentError(
            f"{what}: parts {names} and ranges {list(ranges)}, expected the same parameters, and nominal as a list"
        )
    rows = []
    for name in names:
        p = np.atleast_1d(arguments.numbers(what, f"parts[{name!r}]", parts[name]))
        if p.ndim != 1 or len(p) > len(base):
            raise ArgumentError(
                f"{what}: parts[{name!r}] has shape {p.shape}, expected coefficients of a degree that nominal has, "
                f"({len(base)},) at most"
            )
        rows.append(np.concatenate([np.zeros(len(base) - len(p)), p]))
    limits = _limits(what, ranges, names).tolist()
    leads = [
        base[0] + sum(r[0] * x for r, x in zip(rows, corner, strict=True))
        for corner in itertools.product(*limits)
    ]
    _check_degree(what, min(leads), max(leads))

    def at(values: Sequence[float]) -> Array:
        return base + sum(x * row for x, row in zip(values, rows, strict=True))

    count = 0
    for corner in itertools.product(*limits):
        p = at(corner)
        root = _worst(p)
        if root.real >= 0:
            told = dict(zip(names, corner, strict=True))
            return RobustPolynomial(
                False, f"the corner {_listed(told)} has the root {root:.6g}", p, told, root, count
            )
        for k in range(len(names)):
            if corner[k] != limits[k][0] or limits[k][0] == limits[k][1]:
                continue
            other = list(corner)
            other[k] = limits[k][1]
            count += 1
            share = _crossing(p, at(other))
            if share is not None:
                values = [x + share[0] * (y - x) for x, y in zip(corner, other, strict=True)]
                told = dict(zip(names, values, strict=True))
                reason = f"at {_listed(told)} a root crosses the axis at {share[1]:.6g} rad/s"
                return RobustPolynomial(False, reason, at(values), told, 1j * share[1], count)
    return RobustPolynomial(True, f"all {count} edges are stable", boxes=count)


def multilinear_polynomial(
    coefficients: Callable[..., Any], ranges: Mapping[str, Any], *, most_boxes: int = 20_000
) -> RobustPolynomial:
    """(3): `coefficients(**values)` gives the polynomial, affine in each parameter while the others are held."""
    what = "multilinear_polynomial"
    names = list(ranges)
    limits = _limits(what, ranges, names)
    try:
        inspect.signature(coefficients).bind(**ranges)
    except TypeError as error:
        raise ArgumentError(
            f"{what}: coefficients is called with the parameters {', '.join(names)} by name, and does not take them: {error}"
        ) from None

    def at(values: Any) -> Array:
        found = coefficients(**dict(zip(names, map(float, values), strict=True)))
        return arguments.numbers(what, "what coefficients returned", found)

    corners = np.array(list(itertools.product(*([(0, 1)] * len(names)))))
    listed = [at(np.where(c, limits[:, 1], limits[:, 0])) for c in corners]
    shapes = sorted({p.shape for p in listed})
    if len(shapes) > 1 or len(shapes[0]) != 1 or shapes[0][0] < 2:
        raise ArgumentError(
            f"{what}: coefficients returned shapes {', '.join(map(str, shapes))}, expected as many coefficients each time, "
            "highest power first, two or more"
        )
    table = np.array(listed)

    def members(low: Array, high: Array) -> Array:
        """The polynomials at the corners of a box, given in shares of the ranges, by interpolation."""
        X = table.reshape(*[2] * len(names), -1)
        for k, (a, b) in enumerate(zip(low, high, strict=True)):
            X = np.moveaxis(np.tensordot([[1 - a, a], [1 - b, b]], X, axes=(1, k)), 0, k)
        return X.reshape(table.shape)

    def member(shares: Array) -> Array:
        return np.asarray(np.prod(np.where(corners, shares, 1 - shares), axis=1) @ table)

    rng = np.random.default_rng(0)
    for shares in rng.uniform(size=(5, len(names))):
        p = at(limits[:, 0] + shares * (limits[:, 1] - limits[:, 0]))
        if np.abs(p - member(shares)).max() > 1e-9 * np.abs(table).max():
            raise ArgumentError(
                f"{what}: the coefficients are not multilinear: affine in each of {', '.join(names)} while others are held"
            )
    _check_degree(what, float(table[:, 0].min()), float(table[:, 0].max()))

    def told(shares: Array) -> dict[str, float]:
        return dict(zip(names, (limits[:, 0] + shares * (limits[:, 1] - limits[:, 0])).tolist(), strict=True))

    def unstable(shares: Array, boxes: int) -> RobustPolynomial | None:
        p = member(shares)
        root = _worst(p)
        if root.real < 0:
            return None
        values = told(shares)
        return RobustPolynomial(
            False, f"at {_listed(values)} there is the root {root:.6g}", p, values, root, boxes
        )

    for shares in [np.full(len(names), 0.5), *corners.astype(float)]:
        found = unstable(shares, 0)
        if found is not None:
            return found
    # beyond this frequency the leading term is larger than all others together (Cauchy)
    far = 1 + float(np.abs(table[:, 1:]).max() / np.abs(table[:, 0]).min())
    heap: list[tuple[float, int, Array, Array, float, float]] = []
    order = itertools.count()
    heapq.heappush(heap, (0.0, next(order), np.zeros(len(names)), np.ones(len(names)), 0.0, far))
    boxes = 0
    while heap:
        _, _, low, high, a, b = heapq.heappop(heap)
        boxes += 1
        if boxes > most_boxes:
            return RobustPolynomial(
                None, f"{most_boxes} boxes did not decide; give more, or narrower ranges", boxes=boxes
            )
        polynomials = members(low, high)
        w, h = (a + b) / 2, (b - a) / 2
        z, r = _moved(polynomials, w, h)
        if _leaves_out_zero(z, r):
            continue
        found = unstable((low + high) / 2, boxes)
        if found is not None:
            return found
        wide = np.hypot(np.ptp(z.real), np.ptp(z.imag))
        if 2 * r.max() > wide:
            cut = ((low, high, a, w), (low, high, w, b))
        else:
            middle = (low + high) / 2
            spans = [
                member(_with(middle, k, high)) - member(_with(middle, k, low)) for k in range(len(names))
            ]
            k = int(np.argmax([abs(np.polyval(p, 1j * w)) for p in spans]))
            at_k = (low[k] + high[k]) / 2
            cut = ((low, _put(high, k, at_k), a, b), (_put(low, k, at_k), high, a, b))
        for part in cut:
            heapq.heappush(heap, (float(boxes), next(order), *part))
    return RobustPolynomial(True, f"zero is outside of all values, in {boxes} boxes", boxes=boxes)


# --- pieces -----------------------------------------------------------------------------------------------------


def _worst(p: Array) -> complex:
    """The root farthest to the right; one that rounding of the coefficients moves onto the axis is there."""
    roots = np.roots(p)
    w = roots.imag
    rounding = 4 * len(p) * np.finfo(float).eps
    on_axis = np.abs(np.polyval(p, 1j * w)) <= rounding * np.polyval(np.abs(p), np.abs(w))
    roots = np.where(on_axis & (roots.real < 0), 1j * w, roots)
    return complex(roots[np.argmax(roots.real)]) if len(roots) else complex(-np.inf)


def _check_degree(function: str, low: float, high: float) -> None:
    if low <= 0 <= high:
        raise ArgumentError(
            f"{function}: the highest coefficient goes from {low:g} to {high:g}: at zero the degree drops, and a root comes "
            "from infinity; expected one sign"
        )


def _limits(function: str, ranges: Mapping[str, Any], names: Sequence[str]) -> Array:
    """(parameters, 2)"""
    if not 0 < len(names) <= _MOST:
        raise ArgumentError(
            f"{function}: ranges has {len(names)} parameters, expected 1 to {_MOST} with (low, high): all corners are "
            "looked at. `mu_peak` of an uncertain system takes more"
        )
    return np.array([_range(function, name, ranges[name]) for name in names])


def _range(function: str, name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (float(x) for x in given)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not (np.isfinite([low, high]).all() and low <= high):
        raise ArgumentError(f"{function}: the range of {name!r} is {given!r}, expected (low, high)")
    return low, high


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {x:.6g}" for name, x in values.items())


def _on_axis(p: Array) -> tuple[Array, Array]:
    """Real and imaginary part of p(jw), polynomials in w, highest power first."""
    turned = p * np.array([1, 1j, -1, -1j])[np.arange(len(p) - 1, -1, -1) % 4]
    return turned.real, turned.imag


def _crossing(a: Array, b: Array) -> tuple[float, float] | None:
    """(share t, frequency) at which a + t (b - a) has a root on the axis; both ends are stable.

    Of (2) Im a(jw) conj b(jw) is w times a polynomial in w^2; frequencies are counted in the mean size of the roots.
    """
    unit = abs(a[-1] / a[0]) ** (1 / (len(a) - 1)) if len(a) > 1 and a[-1] else 1.0
    a, b = (x * unit ** -np.arange(float(len(x))) for x in (a, b))
    (ra, ia), (rb, ib) = _on_axis(a), _on_axis(b)
    odd: Array = np.polysub(np.polymul(ia, rb), np.polymul(ra, ib))
    squares = np.roots(odd[::-1][1::2][::-1])
    real = squares[(np.abs(squares.imag) <= 1e-6 * np.abs(squares)) & (squares.real > 0)].real
    for w in np.concatenate([[0.0], np.sqrt(real)]):
        x, y = np.polyval(a, 1j * w), np.polyval(b, 1j * w)
        t = float(abs(x) / (abs(x) + abs(y))) if abs(x) + abs(y) else 0.0
        left, size = abs(x + t * (y - x)), np.polyval(np.abs(a) + np.abs(b), w)
        if (x * np.conj(y)).real <= 0 and left <= 1e-7 * size:
            return t, float(w * unit)
    return None


def _moved(polynomials: Array, w: float, h: float) -> tuple[Array, Array]:
    """p(jw), and how far it moves at most for frequencies within h."""
    p = polynomials.T
    z, r = np.polyval(p, 1j * w), np.zeros(len(polynomials))
    for k in range(1, len(p)):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)[:, None]
        r += np.abs(np.polyval(p, 1j * w)) * h**k / factorial(k)
    return z, r * (1 + 1e-12)


def _leaves_out_zero(z: Array, r: Array) -> bool:
    """Whether the convex hull of discs of radius r around z leaves out zero: some line separates them."""
    size = np.abs(z)
    if np.any(size <= r):
        return False
    angle = np.angle(z / z[0])
    direction = z[0] / size[0] * np.exp(0.5j * (angle.max() + angle.min()))
    return bool(np.all((z * np.conj(direction)).real > r))


def _put(x: Array, k: int, value: float) -> Array:
    found = x.copy()
    found[k] = value
    return found


def _with(x: Array, k: int, other: Array) -> Array:
    return _put(x, k, float(other[k]))

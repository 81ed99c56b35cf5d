"""Families of polynomials against roots of many members."""

import numpy as np
import pytest

from alembert.control import affine_polynomial, interval_polynomial, multilinear_polynomial
from alembert.errors import ArgumentError


def worst(p):
    return np.roots(p).real.max()


def test_intervals_are_decided_by_four():
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(60):
        p = np.poly(-rng.uniform(0.1, 1, 4) + 1j * np.array([1, -1, 3, -3]) * rng.uniform(0, 1)).real
        low, high = p * (1 - 0.4 * rng.uniform(size=5)), p * (1 + 0.4 * rng.uniform(size=5))
        found = interval_polynomial(low, high)
        members = low + rng.uniform(size=(60, 5)) ** 0.3 * (high - low)
        if found:
            assert max(worst(m) for m in members) < 0
        else:
            assert worst(found.polynomial) >= 0
            assert np.all((found.polynomial >= low) & (found.polynomial <= high))
        answers.append(bool(found))
    assert 5 < sum(answers) < 55


def test_edges_find_crossings_that_corners_do_not_show():
    """Both ends are stable, the middle is not: (s^2 + e s + 1)(s + 1) and others along a line."""
    a = np.polymul([1, 0.3, 1], [1, 0.1, 4])
    b = np.polymul([1, 0.1, 4], [1, 0.3, 9.0])
    found = affine_polynomial(a, {"t": b - a}, {"t": (0, 1)})
    shares = np.linspace(0, 1, 401)
    unstable = [t for t in shares if worst(a + t * (b - a)) >= 0]
    assert bool(found) == (not unstable)
    a, b = np.array([1, 0.4, 4.0, 1.5]), np.array([1, 3.0, 0.55, 1.5])
    assert worst(a) < 0
    assert worst(b) < 0
    found = affine_polynomial(a, {"t": b - a}, {"t": (0, 1)})
    unstable = [t for t in shares if worst(a + t * (b - a)) >= 0]
    assert bool(found) == (not unstable)
    plain = affine_polynomial([1, 2, 2, 1], {"a": [1, 0], "b": [1]}, {"a": (-0.4, 3), "b": (-0.5, 2)})
    assert plain
    assert str(plain) == "stable: all 4 edges are stable"
    # a b > c: 2 (2 - 0.6) = 2.8 < 3
    lost = affine_polynomial([1, 2, 2, 1], {"a": [1, 0], "b": [1]}, {"a": (-0.6, 3), "b": (-0.5, 2)})
    assert not lost
    assert lost.values["a"] == pytest.approx(-0.6)


def test_multilinear_families():
    def p(a, b, c):
        return [1, a + b + 1, a * b + c + 1, a * b * c + 0.5]

    found = multilinear_polynomial(p, {"a": (0.5, 1.5), "b": (0.5, 1.5), "c": (0.2, 0.8)})
    rng = np.random.default_rng(0)
    members = [p(*x) for x in rng.uniform([0.5, 0.5, 0.2], [1.5, 1.5, 0.8], (200, 3))]
    assert found.stable == (max(map(worst, members)) < 0)
    assert found.boxes > 0
    # stable at all corners and in the middle, and not within: (a - b)^2 small makes the damping negative
    hidden = multilinear_polynomial(
        lambda a, b: [1, 0.3 - a * (1 - b) - 0.2 * b, 1.0], {"a": (0, 0.29), "b": (0, 1)}
    )
    assert hidden.stable is True
    undecided = multilinear_polynomial(p, {"a": (0.5, 1.5), "b": (0.5, 1.5), "c": (0.2, 0.8)}, most_boxes=1)
    assert undecided.stable is None
    assert "1 boxes did not decide" in str(undecided)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: interval_polynomial([1, 2], [1]), r"low and high have shapes \(2,\) and \(1,\)"),
        (lambda: interval_polynomial([-1, 2], [1, 3]), "the highest coefficient goes from -1 to 1"),
        (lambda: affine_polynomial([1, 1], {"a": [1]}, {"b": (0, 1)}), r"parts \['a'\] and ranges \['b'\]"),
        (
            lambda: affine_polynomial([1, 1], {"a": [1, 1, 1]}, {"a": (0, 1)}),
            r"parts\['a'\] has shape \(3,\), expected coefficients of a degree that nominal has, \(2,\) at most",
        ),
        (lambda: affine_polynomial([1, 1], {"a": [1]}, {"a": (1, 0)}), r"the range of 'a' is \(1, 0\)"),
        (lambda: multilinear_polynomial(lambda: [1, 1], {}), "ranges has 0 parameters, expected 1 to 16"),
        (lambda: affine_polynomial([], {"a": []}, {"a": (0, 1)}), "nominal as a list"),
        (
            lambda: multilinear_polynomial(lambda b: [1, b], {"a": (0, 1)}),
            "does not take them: missing .* 'b'",
        ),
        (
            lambda: multilinear_polynomial(lambda a: [1, a] if a < 1 else [1, a, 1], {"a": (0, 1)}),
            r"returned shapes \(2,\), \(3,\), expected as many",
        ),
        (lambda: multilinear_polynomial(lambda a: a, {"a": (0, 1)}), r"returned shapes \(\), expected"),
        (
            lambda: multilinear_polynomial(lambda a: [1, 3 + a * a], {"a": (0, 1)}),
            "not multilinear: affine in each of a",
        ),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make()


def test_three_theorems_agree():
    """On independent coefficients intervals, edges and boxes say the same; so does any member."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = np.poly(-rng.uniform(0.05, 2, rng.integers(2, 6)))
        d = rng.uniform(0, 0.6) * np.abs(p) * rng.uniform(size=len(p))
        ranges = {f"c{k}": (-x, x) for k, x in enumerate(d)}
        found = interval_polynomial(p - d, p + d)
        parts = {name: row for name, row in zip(ranges, np.eye(len(p)), strict=True)}
        assert affine_polynomial(p, parts, ranges).stable == found.stable
        boxes = multilinear_polynomial(lambda p=p, **v: p + np.array(list(v.values())), ranges)
        assert boxes.stable in (found.stable, None)
        assert not found or worst(rng.uniform(p - d, p + d)) < 0


def test_many_parameters_of_a_multilinear_family():
    """Fourteen: 16 384 corners, each taken at once for a box."""
    found = multilinear_polynomial(
        lambda **k: [1, 3, 3 + sum(k.values()), 1], {f"p{i}": (0, 0.1) for i in range(14)}
    )
    assert found.stable is True


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e5])
def test_edges_in_any_unit_of_time(unit):
    """s^3 + (2 + p) s^2 + (2 + p) s + 4.05 + 4 p is stable where p^2 > 0.05 (Hurwitz): at both ends, not between them. In
    other units of time than seconds the polynomial that was told to lose stability was stable."""
    scale = unit ** np.arange(4.0)
    part = np.array([0, 1, 1, 4]) * scale
    found = affine_polynomial([1, 2, 2, 4.05] * scale, {"p": part}, {"p": (-1, 1)})
    at, crossed = found.values["p"], found.root / unit
    assert found.stable is False
    assert at == pytest.approx(np.copysign(np.sqrt(0.05), at), abs=1e-12)
    assert crossed == pytest.approx(1j * np.sqrt(2 + at), abs=1e-12)
    assert np.abs(np.roots(found.polynomial / scale) - crossed).min() < 1e-9
    assert affine_polynomial([1, 2, 2, 4.05] * scale, {"p": part}, {"p": (0.23, 1)})


def test_roots_on_the_axis_are_not_stable():
    """(s^2 + w^2) times stable factors: rounding put its roots to the left of the axis, and two in five were called stable.
    Damping of 1e-9, a million times rounding, is told from it."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        w = 10 ** rng.uniform(-3, 3)
        others = -w * 10 ** rng.uniform(-1, 1, rng.integers(0, 5))
        for damping in (0.0, 1e-9):
            p = np.polymul([1, 2 * damping * w, w * w], np.poly(others))
            assert interval_polynomial(p, p).stable is (damping > 0)
            family = [0.0] * (len(p) - 1) + [p[-1]]
            assert affine_polynomial(p, {"a": family}, {"a": (0, 0)}).stable is (damping > 0)

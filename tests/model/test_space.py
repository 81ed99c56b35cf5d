"""The one home of coordinates: places, names, limits, and the manifold of configurations with its charts."""

import casadi as ca
import numpy as np
import pytest

from alembert import library
from alembert.errors import ArgumentError
from alembert.joints import REGISTRY

MODEL = library.random_tree(seed=2, bodies=30, kinds=list(REGISTRY))
SPACE = MODEL.space


def state(seed=0):
    rng = np.random.default_rng(seed)
    return MODEL.random_configuration(rng), rng.normal(size=MODEL.nv), 0.1 * rng.normal(size=MODEL.nv)


def number(function, *given):
    """An expression of columns, evaluated."""
    symbols = [ca.SX.sym("x", len(x)) for x in given]
    found = ca.Function("f", symbols, [function(*symbols)])(*given).full()
    return found[:, 0] if found.shape[1] == 1 else found


def test_owners_lay_out_all_coordinates_in_order():
    assert [owner.name for owner in SPACE] == [joint.name for joint in MODEL.joints]
    for which, size in (("q", MODEL.nq), ("v", MODEL.nv)):
        places = [getattr(owner, which) for owner in SPACE]
        assert [k for s in places for k in range(s.start, s.stop)] == list(range(size))
    for owner in SPACE:
        assert owner.q == MODEL.q_slice(owner.name)
        assert owner.v == MODEL.v_slice(owner.name)
        assert SPACE.coordinate_names[owner.q] == owner.coordinate_names
        assert SPACE.speed_names[owner.v] == owner.speed_names
        assert SPACE.coordinate_units[owner.q] == tuple(unit for _, unit in owner.type.coordinates)
        assert SPACE.speed_units[owner.v] == tuple(unit for _, unit in owner.type.speeds)
    assert {owner.type.kind for owner in SPACE} == set(REGISTRY)


@pytest.mark.parametrize("name", ["integrate", "difference", "rate"])
def test_the_manifold_is_that_of_the_compiled_functions(name):
    """On numbers and on expressions; all do the same few operations, up to rounding."""
    q, v, e = state()
    x, y = {"integrate": (q, e), "difference": (q, MODEL.integrate(q, e)), "rate": (q, v)}[name]
    expected = getattr(MODEL, name)(x, y)
    np.testing.assert_allclose(getattr(SPACE, name)(x, y), expected, atol=1e-13)
    np.testing.assert_allclose(number(getattr(SPACE, name), x, y), expected, atol=1e-13)


def test_charts_follow_the_motion():
    """e' = T(e) v of the motion q(t), v from e(t) = difference(q0, q(t)), by central differences of step h: error h^2."""
    q, v, e = state(1)
    h, here = 1e-5, MODEL.integrate(q, e)
    ends = [MODEL.difference(q, MODEL.integrate(here, s * h * v)) for s in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * h)
    rate = number(SPACE.chart_rate, e, v)
    np.testing.assert_allclose(rate, slope, atol=1e-8)
    T_inverse = number(SPACE.chart_jacobian, e)
    np.testing.assert_allclose(T_inverse @ rate, v, atol=1e-12)
    p = np.random.default_rng(5).normal(size=MODEL.nv)
    np.testing.assert_allclose(number(SPACE.chart_rate_transposed, e, p) @ v, p @ rate, atol=1e-12)
    straight = ~SPACE.curved
    np.testing.assert_array_equal(rate[straight], v[straight])


def test_errors_of_motions_grow_as_the_space_is_curved():
    """e' = N e + O(e^2) at equal speeds: of two motions e apart, over a time h."""
    q, v, e = state(2)
    h, small = 1e-5, 1e-5 * e
    other = MODEL.integrate(q, small)
    ends = [MODEL.difference(*(MODEL.integrate(x, s * h * v) for x in (q, other))) for s in (1, -1)]
    N = number(SPACE.error_rate, q, v)
    np.testing.assert_allclose(N @ small, (ends[0] - ends[1]) / (2 * h), atol=1e-9)
    assert not np.any(N[~SPACE.curved])


def test_a_motion_in_the_chart_has_the_speeds_that_its_coordinates_show():
    phi, rate, second = (0.3 * np.random.default_rng(k).normal(size=MODEL.nv) for k in range(3))
    symbols = [ca.SX.sym("x", MODEL.nv) for _ in range(3)]
    motion = ca.Function("m", symbols, list(SPACE.chart_motion(*symbols)))

    def at(t):
        given = (phi + t * rate + t**2 / 2 * second, rate + t * second, second)
        return [x.full()[:, 0] for x in motion(*given)]

    h = 1e-5
    (q0, v0, _), (_, v, a), (q1, v1, _) = (at(t) for t in (-h, 0.0, h))
    np.testing.assert_allclose(MODEL.difference(q0, q1) / (2 * h), v, atol=1e-8)
    np.testing.assert_allclose((v1 - v0) / (2 * h), a, atol=1e-8)


def test_what_is_no_configuration_is_refused():
    q = SPACE.neutral()
    SPACE.check("f", q)
    with pytest.raises(ArgumentError, match=r"^f: q has shape \(1,\), expected"):
        SPACE.check("f", np.zeros(1))
    owner = next(owner for owner in SPACE if owner.type.nq > owner.type.nv)
    for value, sentence in ((np.nan, "q is not finite"), (0.0, "quaternion")):
        wrong = q.copy()
        wrong[owner.q] = value
        with pytest.raises(ArgumentError, match=f"^f: joint '{owner.name}': .*{sentence}"):
            SPACE.check("f", wrong)
        if value == 0.0:
            assert SPACE.trouble(wrong).startswith(f"joint '{owner.name}'")
    assert SPACE.singularity(q) is None or SPACE.singularity(q) == SPACE.trouble(q)


def test_limits_are_infinite_where_there_are_none():
    for which, size in (
        ("lower", MODEL.nq),
        ("upper", MODEL.nq),
        ("velocity", MODEL.nv),
        ("effort", MODEL.nv),
    ):
        found = SPACE.limits(which)
        assert found.shape == (size,)
        assert not found.flags.writeable
    assert np.all(SPACE.limits("lower") <= SPACE.limits("upper"))
    q = SPACE.random(np.random.default_rng(0))
    assert np.all((SPACE.limits("lower") <= q) & (q <= SPACE.limits("upper")))


def test_a_space_of_vectors_says_so():
    assert library.chain(3).space.is_vector_space
    assert not SPACE.is_vector_space

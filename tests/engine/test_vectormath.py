import casadi as ca
import numpy as np
import pytest
from engine_helpers import Lanes, same_bits

from alembert.engine.target import Target, host


@pytest.fixture(scope="module", params=[1, 2, 4, 8])
def sincos(request):
    x = ca.SX.sym("x")
    return Lanes(ca.Function("sincos", [x], [ca.sin(x), ca.cos(x)]), request.param)


def arguments() -> np.ndarray:
    rng = np.random.default_rng(1)
    small = rng.uniform(-1, 1, 2000) * 10.0 ** rng.uniform(-300, 0, 2000)
    normal = rng.uniform(-10, 10, 20000)
    large = rng.uniform(-1, 1, 20000) * 10.0 ** rng.uniform(0, 6, 20000)
    n = rng.integers(-(2**20), 2**20, 20000)
    near_multiples = n * (np.pi / 2) * (1 + rng.integers(-2, 3, n.size) * 2.0**-53)
    return np.concatenate([small, normal, large, near_multiples])


def ulps(value: np.ndarray, exact: np.ndarray) -> np.ndarray:
    error = np.abs(value.astype(np.longdouble) - exact)
    return (error / np.spacing(np.abs(exact.astype(float)))).astype(float)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="the reference needs extended precision")
def test_error_is_below_one_unit_in_the_last_place(sincos):
    # The reference has 11 more bits. The C library's long double functions reduce their argument exactly.
    x = arguments()
    sine, cosine = (y[:, 0] for y in sincos(x[:, None]))
    assert ulps(sine, np.sin(x.astype(np.longdouble))).max() < 1.0
    assert ulps(cosine, np.cos(x.astype(np.longdouble))).max() < 1.0


def test_special_and_huge_arguments_in_every_lane(sincos):
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e9, -1e9, 1e300, 5e-324, -5e-324, 1.6e6, 1.7e6, 0.5]
    rng = np.random.default_rng(2)
    for shift in range(9):  # a neighbour that takes the rare path must not disturb the others
        x = np.array([*special, *rng.uniform(-3, 3, 8 + shift)])
        rng.shuffle(x)
        sine, cosine = (y[:, 0] for y in sincos(x[:, None]))
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(sine, np.sin(x), rtol=3e-16, atol=0)
            np.testing.assert_allclose(cosine, np.cos(x), rtol=3e-16, atol=0)
        zero = x == 0
        assert np.array_equal(np.signbit(sine[zero]), np.signbit(x[zero]))


def test_sine_and_cosine_do_not_depend_on_the_lanes(sincos):
    x = np.concatenate([arguments()[::7], [0.0, -0.0, np.inf, np.nan, 1e7, 1e300]])[:, None]
    one = Lanes(ca.Function("sincos", [s := ca.SX.sym("x")], [ca.sin(s), ca.cos(s)]), 1)
    for y, reference in zip(sincos(x), one(x), strict=True):
        assert same_bits(y, reference)


def test_without_fused_multiply_adds():
    plain = Target(**{**host().__dict__, "fused": False})
    x = ca.SX.sym("x")
    sincos = Lanes(ca.Function("sincos", [x], [ca.sin(x), ca.cos(x)]), 2, target=plain)
    values = arguments()[::5]
    sine, cosine = (y[:, 0] for y in sincos(values[:, None]))
    np.testing.assert_allclose(sine, np.sin(values), rtol=4.5e-16, atol=0)
    np.testing.assert_allclose(cosine, np.cos(values), rtol=4.5e-16, atol=0)


def exponential(lanes: int, **options) -> Lanes:
    x = ca.SX.sym("x")
    return Lanes(ca.Function("exponential", [x], [ca.exp(x)]), lanes, **options)


def test_exponentials_are_within_a_unit_in_the_last_place_in_every_lane():
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [rng.uniform(-708, 708, 20000), rng.uniform(-1, 1, 20000), 10.0 ** rng.uniform(-300, 0, 2000)]
    )
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 709.7, 710.0, -720.0, -745.2, -1e300, 1e300])
    one = exponential(1)(x[:, None])[0][:, 0]
    if np.finfo(np.longdouble).nmant >= 63:
        assert ulps(one, np.exp(x.astype(np.longdouble))).max() < 1.0
    for lanes in (2, 8):
        wide = exponential(lanes)
        assert same_bits(wide(x[:, None])[0][:, 0], one)
        mixed = np.insert(rng.uniform(-3, 3, 40), rng.integers(0, 40, special.size), special)
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(wide(mixed[:, None])[0][:, 0], np.exp(mixed), rtol=3e-16, atol=0)
    plain = exponential(2, target=Target(**{**host().__dict__, "fused": False}))
    np.testing.assert_allclose(plain(x[:, None])[0][:, 0], np.exp(x), rtol=4.5e-16, atol=0)

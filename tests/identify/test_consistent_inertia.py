"""Log-Cholesky coordinates: any ten numbers are an inertia that a body can have."""

import numpy as np
import pytest

from alembert import ArgumentError, Inertia, library
from alembert.identify import (
    from_log_cholesky,
    is_consistent,
    log_cholesky_jacobian,
    pseudo_inertia,
    to_log_cholesky,
)
from alembert.identify.consistent import lifted, log_cholesky_curvature, ten_vector

RNG = np.random.default_rng(3)
THETA = RNG.normal(size=(50, 10))
REFERENCE = np.array(library.arm7().body("link5").inertia.ten_vector())


def test_the_pseudo_inertia_of_a_point_mass_is_its_second_moment():
    x = np.array([0.3, -0.2, 0.5, 1.0])
    ten = Inertia.point(2.0, x[:3]).ten_vector()
    np.testing.assert_allclose(pseudo_inertia(ten), 2.0 * np.outer(x, x), atol=1e-15)
    np.testing.assert_allclose(ten_vector(pseudo_inertia(ten)), ten, atol=1e-15)


@pytest.mark.parametrize("reference", [None, REFERENCE])
def test_round_trip(reference):
    ten = from_log_cholesky(THETA, reference=reference)
    # The condition number of J is up to e^8; its square root multiplies rounding.
    np.testing.assert_allclose(to_log_cholesky(ten, reference=reference), THETA, rtol=1e-9, atol=1e-9)


def test_every_theta_is_consistent():
    ten = from_log_cholesky(THETA)
    assert np.all(is_consistent(ten))
    for row in ten:
        assert Inertia.from_ten_vector(row).problem() is None


def test_the_reference_is_at_zero():
    np.testing.assert_allclose(from_log_cholesky(np.zeros(10), reference=REFERENCE), REFERENCE, atol=1e-14)
    np.testing.assert_allclose(to_log_cholesky(REFERENCE, reference=REFERENCE), 0, atol=1e-12)


@pytest.mark.parametrize("reference", [None, REFERENCE])
def test_jacobian(reference):
    """Central differences with h = 1e-5: truncation h^2 = 1e-10 and rounding eps / h = 2e-11, relative."""
    h = 1e-5
    for theta in THETA[:5]:
        steps = h * np.eye(10)
        ahead = from_log_cholesky(theta + steps, reference=reference)
        behind = from_log_cholesky(theta - steps, reference=reference)
        expected = ((ahead - behind) / (2 * h)).T
        found = log_cholesky_jacobian(theta, reference=reference)
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("reference", [None, REFERENCE])
def test_curvature(reference):
    """Central differences of the Jacobian, as above."""
    h, weight = 1e-5, RNG.normal(size=10)
    for theta in THETA[:5]:
        steps = h * np.eye(10)
        ahead, behind = (
            weight @ log_cholesky_jacobian(theta + sign * steps, reference=reference) for sign in (1, -1)
        )
        expected = (ahead - behind) / (2 * h)
        found = log_cholesky_curvature(theta, weight, reference=reference)
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_inertias_on_the_boundary_are_lifted():
    ten = np.array(
        [Inertia.point(1.0, (0, 0, -1)).ten_vector(), Inertia.rod(2.0, (0, 0, 0), (1, 0, 0)).ten_vector()],
        dtype=float,
    )
    with pytest.raises(
        ArgumentError, match="ten-vector is not physically consistent: its pseudo-inertia has"
    ):
        to_log_cholesky(ten)
    up = lifted(ten, floor=1e-3)
    assert np.all(is_consistent(up))
    np.testing.assert_allclose(up[:, :4], ten[:, :4], atol=1e-15)
    assert np.abs(up - ten).max() <= 2.001 * 2.0 * 1e-6  # two axes of 1e-6 m^2 times the mass
    np.testing.assert_allclose(lifted(REFERENCE), REFERENCE, rtol=1e-12, atol=1e-15)


def test_refusals():
    with pytest.raises(
        ArgumentError, match=r"pseudo_inertia: ten-vector has shape \(9,\), expected \(..., 10\)"
    ):
        pseudo_inertia(np.zeros(9))
    with pytest.raises(ArgumentError, match=r"from_log_cholesky: theta has shape \(2,\)"):
        from_log_cholesky(np.zeros(2))
    with pytest.raises(ArgumentError, match="lifted: mass is 0, expected a positive number"):
        lifted(np.zeros(10))

"""Square-root Kalman filters of linear plants."""

import numpy as np
import pytest
from scipy.stats import chi2

from alembert import control
from alembert.control.quadratic import SquareRootKalman, correction, triangular_root
from alembert.errors import ArgumentError, NumericalError

PLANT = control.c2d(control.tf([1], [1, 0.2, 4]), 0.1)


def test_the_covariance_comes_to_that_of_the_riccati_equation():
    steady = control.lqe(PLANT, 0.5, 0.01)
    found = SquareRootKalman(PLANT, 0.5, 0.01)
    now = found.start([0, 0], 1.0)
    for _ in range(200):
        now = found.predict(found.correct(now, [0.0])[0])
    # the error of a start goes down with the square of the closed loop's largest pole, 0.6^400 here: rounding is left
    assert np.allclose(now.P, steady.P, rtol=1e-10)
    # K of the filter leads from sample to sample, as L of lqe does
    gain = np.column_stack([found.predict(found.correct(now, [1.0])[0]).x - PLANT.A @ now.x])
    assert np.allclose(gain, steady.L, rtol=1e-9)


def test_errors_fit_their_covariance():
    found, rng = SquareRootKalman(PLANT, 0.5, 0.01), np.random.default_rng(0)
    last, squares = [], []
    for _ in range(60):
        start = found.start([0, 0], [0.2, 0.4])
        x = start.S @ rng.normal(size=2)
        samples, truth = [], []
        for _ in range(15):
            samples.append(PLANT.C @ x + 0.1 * rng.normal(size=1))
            truth.append(x)
            x = PLANT.A @ x + PLANT.B[:, 0] * np.sqrt(0.5) * rng.normal()
        estimates, nis = found.filtered(start, samples)
        last.append(estimates[-1].nees(truth[-1]))
        squares.append(nis)
    # sums of independent squares: chi-squared; each side of the bounds is left by chance once in 10^5
    low, high = chi2.ppf([1e-5, 1 - 1e-5], 2 * 60)
    assert low < np.sum(last) < high
    low, high = chi2.ppf([1e-5, 1 - 1e-5], 60 * 15)
    assert low < np.sum(squares) < high


def test_the_root_survives_where_the_covariance_does_not():
    """Two nearly parallel measurements, noise far below the square root of rounding (Kaminski and others 1971)."""
    e = 1e-9
    X, Y = np.eye(2), np.array([[1.0, 1.0], [1.0, 1.0 + e]])
    S = correction(X, Y, e * np.eye(2), np.zeros(2)).S
    assert np.linalg.cond(Y @ Y.T + e**2 * np.eye(2)) > 1e15  # the innovation's covariance has no digits left
    # exactly, P^-1 = 1 + C^T C / e^2 = [a b; b d]
    a, b, d = 1 + 2 / e**2, (2 + e) / e**2, 1 + (1 + (1 + e) ** 2) / e**2
    determinant = 1 / e**2 + (2 + (1 + (1 + e) ** 2)) / e**2 + 1  # a d - b^2 without its cancellation
    exact = np.array([[d, -b], [-b, a]]) / determinant
    # the root is as good as the condition of the array, 1/e, allows: 1e-16/1e-9
    assert np.allclose(S @ S.T, exact, rtol=1e-5)


def test_lost_samples_and_fewer_columns():
    found = SquareRootKalman(PLANT, 0.5, 0.01)
    start = found.start([1, 0], 1.0)
    after, told = found.correct(start, [np.nan])
    assert np.allclose(after.x, start.x)
    assert np.allclose(after.P, start.P)
    assert told.nis == 0.0
    assert np.allclose(after.deviations, 1.0)
    root = triangular_root(np.array([[3.0], [4.0]]))
    assert np.allclose(root @ root.T, [[9, 12], [12, 16]])
    assert root.shape == (2, 2)


def test_refusals():
    found = SquareRootKalman(PLANT, 0.5, 0.01)
    start = found.start([0, 0], 1.0)
    with pytest.raises(
        ArgumentError, match=r"SquareRootKalman: the plant is continuous, expected a sampled one"
    ):
        SquareRootKalman(control.tf([1], [1, 1]), 1.0, 1.0)
    with pytest.raises(ArgumentError, match=r"start: x has shape \(3,\), expected \(2,\)"):
        found.start([0, 0, 0], 1.0)
    with pytest.raises(ArgumentError, match=r"correct: y has shape \(2,\), expected \(1,\)"):
        found.correct(start, [0, 0])
    with pytest.raises(ArgumentError, match=r"correct: y is 'a', expected numbers"):
        found.correct(start, "a")
    with pytest.raises(ArgumentError, match=r"filtered: u has 3 samples, expected 4, as y"):
        found.filtered(start, np.zeros(4), np.zeros((3, 1)))
    with pytest.raises(ArgumentError, match=r"filtered: y has shape \(4, 2\), expected \(times, 1\)"):
        found.filtered(start, np.zeros((4, 2)))
    with pytest.raises(ArgumentError, match=r"predict: u has shape \(2,\), expected \(1,\)"):
        found.predict(start, [0, 0])
    with pytest.raises(NumericalError, match=r"a measurement has no noise and is known already"):
        correction(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1))

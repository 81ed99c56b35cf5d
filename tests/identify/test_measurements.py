"""Data as they are given, and from recorded time series."""

import numpy as np
import pytest

from alembert import ArgumentError, library
from alembert.identify import Measurements

MODEL = library.two_link()
TIME = np.arange(0, 4, 0.002)
FREQUENCY = 2 * np.pi * np.array([0.7, 1.1])


def motion(t):
    w = FREQUENCY * t[:, None]
    return np.sin(w), FREQUENCY * np.cos(w), -(FREQUENCY**2) * np.sin(w)


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        # |H|^2 of the filter in both directions, order 4, misses 1 by 2 (1.1 / 20)^8 < 1e-9; it starts up with
        # errors of some percent, of which exp(-0.38 * 4 pi) = 1 % are left after the samples that are dropped.
        ({"cutoff": 20.0}, 1e-3),
        # A polynomial of degree 4 over half a window h = 0.03 s misses the derivative by about (w h)^4 / 100 = 2e-5.
        ({"filter": "savitzky_golay", "window": 31, "degree": 4}, 1e-4),
    ],
)
def test_derivatives_of_clean_series(options, tolerance):
    q, v, a = motion(TIME)
    tau = MODEL.inverse_dynamics(q, v, a)
    data = Measurements.from_time_series(MODEL, TIME, q, tau, **options)
    expected = motion(data.time)
    for found, exact in zip((data.q, data.v, data.a), expected, strict=True):
        assert np.abs(found - exact).max() < tolerance * np.abs(exact).max()
    assert np.array_equal(data.tau, tau[np.searchsorted(TIME, data.time)])


def test_measured_speeds_are_used():
    q, v, a = motion(TIME)
    data = Measurements.from_time_series(MODEL, TIME, q, 0 * q, v=v, cutoff=20.0)
    assert np.abs(data.a - motion(data.time)[2]).max() < 1e-3 * np.abs(a).max()


@pytest.mark.parametrize("options", [{"cutoff": 15.0}, {"filter": "savitzky_golay"}])
def test_quaternions(options):
    """A free body: integrate a known velocity finely, then get velocity and acceleration back."""
    model = library.random_tree(0, bodies=1, kinds=["free"])
    t = np.arange(0, 3, 0.002)
    w = np.array([1.0, 1.3, 0.8, 1.1, 0.9, 1.2]) * 3
    v, a = np.sin(w * t[:, None]), w * np.cos(w * t[:, None])
    q = [model.neutral()]
    for k in range(len(t) - 1):  # the midpoint of each step: error h^2 / 24 of the second derivative, 1e-6
        q.append(model.integrate(q[-1], 0.002 * np.sin(w * (t[k] + 0.001))))
    data = Measurements.from_time_series(model, t, np.array(q), 0 * v, **options)
    keep = np.searchsorted(t, data.time)
    assert np.abs(data.v - v[keep]).max() < 1e-3
    assert np.abs(data.a - a[keep]).max() < 2e-3 * np.abs(a).max()
    model.check_configuration(data.q)


def test_filtered_efforts_are_thinned():
    q, v, a = motion(TIME)
    tau = MODEL.inverse_dynamics(q, v, a)
    data = Measurements.from_time_series(MODEL, TIME, q, tau, cutoff=25.0, filter_efforts=True)
    assert np.diff(data.time) == pytest.approx(0.02)  # twice the cutoff
    assert len(Measurements.from_time_series(MODEL, TIME, q, tau, cutoff=25.0, thin=100)) < 25


def test_noise_may_be_one_number():
    x = np.zeros((5, 2))
    assert np.array_equal(Measurements(x, x, x, x, noise=0.5).noise, [0.5, 0.5])


X = np.zeros((5, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, X, X, np.zeros(5)), r"tau has shape \(5,\), expected two dimensions"),
        ((X, X, X[:3], X), r"the numbers of samples differ: q 5, v 5, a 3, tau 5"),
        ((X, X, np.where(np.arange(2) == 1, np.nan, X), X), "a is nan at sample 0, column 1"),
        ((X, "speeds", X, X), "v is a str, expected numbers"),
    ],
)
def test_bad_arrays_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=f"Measurements: {message}"):
        Measurements(*arguments)


def test_bad_noise_and_time_are_refused():
    with pytest.raises(ArgumentError, match=r"noise is \[ 1. -1.\], expected 2 positive standard deviations"):
        Measurements(X, X, X, X, noise=[1.0, -1.0])
    with pytest.raises(ArgumentError, match=r"time has shape \(4,\), expected \(5,\)"):
        Measurements(X, X, X, X, time=np.zeros(4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"cutoff is None, expected a frequency below half the sampling rate, 250 Hz"),
        ({"cutoff": 300.0}, r"cutoff is 300.0, expected a frequency below"),
        ({"filter": "median"}, r"filter is 'median', expected 'butterworth' or 'savitzky_golay'"),
        ({"filter": "savitzky_golay", "window": 30}, r"window is 30 and degree 4, expected an odd window"),
        ({"cutoff": 20.0, "thin": 0}, r"thin is 0, expected a positive integer"),
        ({"cutoff": 20.0, "v": X}, r"v has shape \(5, 2\), expected \(2000, 2\)"),
        ({"time": TIME**2}, r"the steps of time are .* expected even ones"),
        ({"time": TIME[:7]}, r"time has shape \(7,\), expected \(T,\) with T at least 20"),
        ({"q": X}, r"q has shape \(5, 2\), expected \(2000, 2\)"),
    ],
)
def test_bad_series_are_refused(changes, message):
    q = motion(TIME)[0]
    given = {"time": TIME, "q": q, "tau": 0 * q} | changes
    with pytest.raises(ArgumentError, match=f"from_time_series: {message}"):
        Measurements.from_time_series(MODEL, **given)

"""Data that are not of the model: what `identify` says about them; odd arguments of what leads there."""

import warnings

import numpy as np
import pytest

import alembert as al
from alembert import library
from alembert.errors import AlembertWarning, ArgumentError, ModelError, NumericalError
from alembert.identify import (
    Measurements,
    exciting_trajectory,
    from_log_cholesky,
    lifted,
    pseudo_inertia,
    to_log_cholesky,
)

MODEL = library.acrobot()


def motion(count=200):
    t = np.linspace(0, 10, count)
    phases = [(1.0, 0.0, 1.0), (1.37, 1.0, 1.3)]
    q = np.column_stack([s * np.sin(w * t + p) + 0.4 * np.cos(2.3 * t + p) for w, p, s in phases])
    v = np.column_stack([s * w * np.cos(w * t + p) - 0.92 * np.sin(2.3 * t + p) for w, p, s in phases])
    a = np.column_stack([-s * w**2 * np.sin(w * t + p) - 2.116 * np.cos(2.3 * t + p) for w, p, s in phases])
    rng = np.random.default_rng(0)
    return q, v, a, MODEL.inverse_dynamics(q, v, a) + 0.02 * rng.normal(size=q.shape)


def test_good_data_raise_no_doubt():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        al.identify(MODEL, Measurements(*motion()))


def test_efforts_of_the_wrong_sign():
    q, v, a, tau = motion()
    with pytest.raises(NumericalError) as caught:
        al.identify(MODEL, Measurements(q, v, a, -tau))
    text = str(caught.value)
    assert text.startswith("identify: no bodies come near the parameters that fit best (")
    assert "lower.Iyy = -1.33" in text
    assert "Are signs, units, zeros of coordinates and gear ratios of the data those of the model?" in text


def test_one_joint_of_the_wrong_sign():
    """Friction alone: least squares fits with a negative one, the consistent estimate holds it at zero."""
    builder = al.ModelBuilder("wheel", gravity=(0, 0, 0))
    wheel = al.Inertia.cylinder(1.0, 0.3, 0.1)
    builder.body("wheel", wheel, joint=al.Revolute(), joint_name="axle", friction=al.Friction(viscous=0.5))
    model = builder.build()
    t = np.linspace(0, 10, 200)[:, None]
    q, v, a = np.sin(t), np.cos(t), -np.sin(t)
    tau = 0.045 * a - 0.1 * v + 0.001 * np.random.default_rng(0).normal(size=q.shape)
    with pytest.warns(AlembertWarning, match=r"efforts of 'axle' \(R\^2 = .*Are signs, units"):
        al.identify(model, Measurements(q, v, a, tau))
    with pytest.warns(
        AlembertWarning, match=r"no bodies have the parameters that fit best \(axle.viscous = -0.1"
    ):
        al.identify(model, Measurements(q, v, a, tau + a))


def test_units_that_are_not_the_models():
    q, v, a, tau = motion()
    with pytest.warns(AlembertWarning, match=r"does not explain the efforts of 'shoulder' \(R\^2 = -"):
        al.identify(MODEL, Measurements(np.degrees(q), np.degrees(v), np.degrees(a), tau))


def test_noise_that_is_known_to_be_large_raises_no_doubt():
    q, v, a, tau = motion()
    noisy = tau + np.random.default_rng(1).normal(size=tau.shape) * 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        al.identify(MODEL, Measurements(q, v, a, noisy, noise=[100.0, 100.0]))


def test_as_many_equations_as_parameters_leave_nothing_to_estimate_the_noise_from():
    q, v, a, tau = (x[::70] for x in motion())
    assert tau.size == 6
    with pytest.raises(ArgumentError) as caught:
        al.identify(MODEL, Measurements(q, v, a, tau))
    assert str(caught.value) == (
        "identify: 3 samples of 2 efforts are 6 equations, expected more than 6, one per base parameter, since the "
        "noise is to be estimated too; or give noise="
    )
    al.identify(MODEL, Measurements(q, v, a, tau, noise=0.02))
    with pytest.raises(ArgumentError, match=r"4 equations, expected at least 6, one per base parameter$"):
        al.identify(MODEL, Measurements(q[:2], v[:2], a[:2], tau[:2], noise=0.02))
    with pytest.raises(ArgumentError, match="identify: all efforts are zero; were they recorded"):
        al.identify(MODEL, Measurements(*motion()[:3], 0 * motion()[3]))


def test_one_name_may_stand_alone():
    data = Measurements(*motion())
    assert "upper.mass" not in {
        al.identify(MODEL, data, fixed="upper").names[k] for k in al.identify(MODEL, data, fixed="upper").free
    }
    assert "elbow.viscous" in al.identify(MODEL, data, include="viscous").names
    assert "elbow.viscous" in al.identify.regressor(MODEL, [0, 0], [0, 0], [0, 0], include="viscous").names
    assert "elbow.viscous" in al.identify.base_parameters(MODEL, include="viscous").names


def test_unphysical_least_squares_say_what_to_do():
    found = al.identify(MODEL, Measurements(*motion()), method="least_squares")
    with pytest.raises(ModelError, match=r"gives parameters that no body has: body .*method='consistent'"):
        _ = found.model


def test_what_is_shown_of_data_and_motions():
    assert repr(Measurements(*motion(20))) == "<Measurements: 20 samples of 2 efforts, noise not given>"
    assert "noise [0.1 0.1]" in repr(Measurements(*motion(20), noise=0.1))
    found = exciting_trajectory(MODEL, duration=4.0, iterations=1)
    assert repr(found).startswith("<ExcitingTrajectory of 'acrobot': 4 s, fourier, condition number ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duration": "a"}, "duration is 'a', expected a number"),
        ({"functions": 2.5}, "functions is 2.5, expected an integer, zero or more"),
        ({"seed": -1}, "seed is -1, expected an integer, zero or more"),
        ({"noise": "a"}, "noise is 'a', expected numbers"),
        ({"noise": [np.inf, np.inf]}, "noise is [inf, inf], expected 2 positive standard deviations"),
    ],
)
def test_odd_arguments_of_exciting_trajectory(options, message):
    with pytest.raises(ArgumentError) as caught:
        exciting_trajectory(MODEL, **options)
    assert str(caught.value) == f"exciting_trajectory: {message}"


def test_an_effort_that_is_not_measured_does_not_count():
    found = exciting_trajectory(MODEL, noise=[np.inf, 1.0], iterations=1)
    assert 1 <= found.condition < 1e3


def test_odd_times():
    found = exciting_trajectory(MODEL, duration=4.0, iterations=0, basis="bspline", functions=8)
    assert [x.shape for x in found.sample([])] == [(0, 2)] * 3
    for times, message in (
        ("a", "sample: times is 'a', expected numbers"),
        ([np.nan], "sample: times are not all finite"),
    ):
        with pytest.raises(ArgumentError) as caught:
            found.sample(times)
        assert str(caught.value) == message


def test_a_motion_that_leaves_the_limits_between_samples_is_told():
    limits = al.Limits(lower=-1.0, upper=1.0, velocity=1.0)
    builder = al.ModelBuilder("narrow", gravity=(0, 0, 0))
    for name in ("a", "b"):
        rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
        builder.body(
            name,
            rod,
            joint=al.Revolute(),
            joint_name=name,
            limits=limits,
            parent="world" if name == "a" else "a",
        )
    with pytest.warns(
        AlembertWarning, match=r"between the samples the motion is beyond the limits: speed of '"
    ):
        exciting_trajectory(builder.build(), functions=9, samples=20, margin=1.0, iterations=30)


def test_odd_arguments_of_time_series():
    q, _, _, tau = motion()
    t = np.linspace(0, 10, 200)
    for options, message in (
        ({"cutoff": "8"}, "cutoff is '8', expected a frequency below half the sampling rate, 9.95 Hz"),
        ({"cutoff": 3, "order": 0}, "order is 0, expected a positive integer"),
    ):
        with pytest.raises(ArgumentError) as caught:
            Measurements.from_time_series(MODEL, t, q, tau, **options)
        assert str(caught.value) == f"from_time_series: {message}"
    assert len(Measurements.from_time_series(MODEL, t, q, tau, cutoff=np.int64(3), order=np.int64(4)))


def test_log_cholesky_of_what_is_not_finite():
    for function in (to_log_cholesky, from_log_cholesky, pseudo_inertia):
        with pytest.raises(
            ArgumentError, match=r": (ten-vector|theta) is nan somewhere, expected finite numbers"
        ):
            function(np.full(10, np.nan))
    rod = lifted(
        [1.0, 0.5, 0, 0, 0, 0, 0.3333334, 0, 0, 0.3333334]
    )  # as the message of `to_log_cholesky` says
    assert np.all(np.isfinite(to_log_cholesky(rod)))


def test_configurations_are_refused_in_the_name_of_identify():
    model = library.pitcher()
    n, rng = 20, np.random.default_rng(0)
    q = 2 * np.array([model.random_configuration(rng) for _ in range(n)])
    with pytest.raises(ArgumentError, match=r"^identify: joint 'shoulder': the quaternion"):
        al.identify(model, Measurements(q, *rng.normal(size=(3, n, model.nv))))


@pytest.mark.parametrize(
    ("frequency", "damping", "message"),
    [
        (np.nan, 0.7, "frequency is nan, expected positive numbers"),
        (3.0, -0.7, "damping is -0.7, expected numbers of zero or more"),
        (3.0, np.nan, "damping is nan, expected numbers of zero or more"),
    ],
)
def test_gains_of_nonsense_are_refused(frequency, damping, message):
    with pytest.raises(ArgumentError) as caught:
        al.linear.decoupled_pd(library.two_link(), frequency, damping, q=[0.0, 0.0])
    assert str(caught.value) == f"decoupled_pd: {message}"

"""Motions within the limits that show the parameters well."""

import numpy as np
import pytest

from alembert import ArgumentError, Limits, library
from alembert.identify import exciting_trajectory


def arm():
    model = library.two_link()
    for name in ("shoulder", "elbow"):
        model = model.replace_joint(name, limits=Limits((-1.5,), (1.0,), (4.0,), (60.0,)))
    return model


@pytest.mark.parametrize(("basis", "functions"), [("fourier", 4), ("bspline", 12)])
@pytest.mark.parametrize("criterion", ["information", "condition"])
def test_better_than_the_start_and_within_the_limits(basis, functions, criterion):
    model = arm()
    found = exciting_trajectory(
        model,
        duration=4.0,
        basis=basis,
        functions=functions,
        criterion=criterion,
        iterations=15,
        samples=60,
        include=("viscous",),
        progress=False,
    )
    if criterion == "condition":
        assert found.condition < 0.9 * found.initial_condition
    t = np.linspace(0, 4, 997)  # between the samples it was made from
    q, v, a = found.sample(t)
    tau = model.inverse_dynamics(q, v, a)
    assert np.all(q >= model.lower_limits)
    assert np.all(q <= model.upper_limits)
    assert np.all(np.abs(v) <= model.velocity_limits)
    assert np.all(np.abs(tau) <= model.effort_limits)
    np.testing.assert_allclose(v[[0, -1]], 0, atol=1e-9)
    np.testing.assert_allclose(a[[0, -1]], 0, atol=1e-8)
    step = 1e-5
    ahead, behind = (found.sample(np.array([1.7 + s]))[0] for s in (step, -step))
    np.testing.assert_allclose((ahead - behind) / (2 * step), found.sample(np.array([1.7]))[1], atol=1e-7)


def test_more_iterations_give_more_information():
    options = {"duration": 4.0, "functions": 4, "samples": 60, "progress": False}
    few = exciting_trajectory(arm(), iterations=1, **options)
    many = exciting_trajectory(arm(), iterations=15, **options)
    assert many.information > few.information + 0.3


def test_a_series_is_periodic_and_a_spline_ends():
    found = exciting_trajectory(arm(), duration=4.0, functions=3, iterations=1, progress=False)
    np.testing.assert_allclose(found.sample(np.array([1.0]))[0], found.sample(np.array([5.0]))[0], atol=1e-12)
    spline = exciting_trajectory(
        arm(), duration=4.0, basis="bspline", functions=10, iterations=1, progress=False
    )
    with pytest.raises(ArgumentError, match="sample: times go from 0 to 5 s, expected 0 to 4 s"):
        spline.sample([0.0, 5.0])


def test_joints_without_limits_get_modest_ones():
    found = exciting_trajectory(library.two_link(), duration=4.0, iterations=2, progress=False)
    q, v, _ = found.sample(np.linspace(0, 4, 300))
    assert np.abs(q).max() < np.pi / 2
    assert np.abs(v).max() < 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"basis": "wavelet"}, "basis is 'wavelet', expected 'fourier' or 'bspline'"),
        ({"criterion": "trace"}, "criterion is 'trace', expected 'information' or 'condition'"),
        ({"functions": 1}, "functions is 1, expected at least 2"),
        ({"functions": 7, "basis": "bspline"}, "functions is 7, expected at least 8"),
        ({"margin": 1.5}, "margin 1.5"),
        ({"noise": [1.0]}, r"noise is \[1.0\], expected 2 positive standard deviations"),
    ],
)
def test_bad_options_are_refused(changes, message):
    with pytest.raises(ArgumentError, match=f"exciting_trajectory: .*{message}"):
        exciting_trajectory(arm(), progress=False, **changes)


def test_an_arm_that_cannot_hold_itself_is_refused():
    model = arm()
    for name in ("shoulder", "elbow"):
        model = model.replace_joint(name, limits=Limits((-1.5,), (1.0,), (4.0,), (0.01,)))
    with pytest.raises(ArgumentError, match="keeps within the effort limits"):
        exciting_trajectory(model, progress=False)


@pytest.mark.parametrize("kind", ["free", "spherical"])
def test_spherical_and_free_joints_move_in_their_charts(kind):
    """v and a are those of q: by differences on the manifold, h^2 of a motion with rates up to 10/s."""
    model = library.random_tree(0, bodies=2, kinds=[kind, "revolute"])
    assert any(joint.type.kind == kind for joint in model.joints)
    found = exciting_trajectory(model, duration=4.0, functions=2, samples=40, iterations=3, progress=False)
    assert found.information > -np.inf
    t, h = np.linspace(0.0, 4.0, 41), 1e-4
    q, v, a = found.sample(t)
    assert q.shape == (41, model.nq)
    model.check_configuration(q)
    ahead, behind = found.sample(t + h), found.sample(t - h)
    v_ = (model.difference(q, ahead[0]) - model.difference(q, behind[0])) / (2 * h)
    np.testing.assert_allclose(v, v_, atol=1e-5)
    np.testing.assert_allclose(a, (ahead[1] - behind[1]) / (2 * h), atol=1e-4)
    np.testing.assert_allclose(v[[0, -1]], 0, atol=1e-9)
    limits = np.where(np.isfinite(model.velocity_limits), model.velocity_limits, 3.0)
    assert np.all(np.abs(v) <= limits)
    more = exciting_trajectory(model, duration=4.0, functions=2, samples=40, iterations=8, progress=False)
    assert more.information > found.information

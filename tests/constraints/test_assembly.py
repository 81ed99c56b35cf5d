"""Assembly and projection: loops close, what is fixed stays, and nothing nearer would do."""

import numpy as np
import pytest
from constraint_helpers import KINDS, closed, four_bars, parallelogram, possible_speeds, tree_of

from alembert import NumericalError

CLOSURE = 1e-12


@pytest.mark.parametrize(
    "active", [(kind,) for kind in KINDS] + [("revolute", "spherical"), ("universal", "planar")], ids="+".join
)
def test_assembly_closes_loops_from_rough_guesses(active):
    model, q = closed()
    rng = np.random.default_rng(0)
    guess = model.integrate(q, 0.2 * rng.normal(size=model.nv))
    v_guess = rng.normal(size=model.nv)
    state = model.assemble(guess, v_guess, active=active)
    model.check_configuration(state.q)
    residual = model.constraint_residual(state.q, active=active)
    G = model.constraint_jacobian(state.q, active=active)
    assert state.residual == np.max(np.abs(residual)) < CLOSURE
    assert state.velocity_residual < 1e-12 * np.linalg.norm(G) * np.linalg.norm(v_guess)
    assert state.iterations < 200
    # nearest speeds: the change is normal to all possible speeds
    null = np.linalg.svd(G)[2][np.linalg.matrix_rank(G) :]
    assert np.max(np.abs(null @ (state.v - v_guess))) < 1e-9
    # the way from the guess is (nearly: SE(3) has no metric that fits) normal to the surface
    d = model.difference(guess, state.q)
    assert np.linalg.norm(null @ d) < 0.1 * np.linalg.norm(d)
    assert np.linalg.norm(d) <= 1.01 * np.linalg.norm(model.difference(guess, q))


def test_assembly_is_nearest_where_distance_is_plain():
    """A four-bar chain of vectors: the nearest point to the guess, by comparison with a search along the surface."""
    model = four_bars(1)
    guess = np.array([0.5, -0.3, 0.9])
    state = model.assemble(guess)
    distance = np.linalg.norm(state.q - guess)
    for angle in np.linspace(state.q[0] - 0.05, state.q[0] + 0.05, 21):
        other = model.assemble([angle, state.q[1], state.q[2]], fixed=["foot0"])
        assert np.linalg.norm(other.q - guess) >= distance - 1e-9
    heavy = model.assemble(guess, weights={"foot0": 1e6})
    assert abs(heavy.q[0] - guess[0]) < 1e-5 < abs(state.q[0] - guess[0])


def test_fixed_joints_stay():
    model = four_bars(2)
    state = model.assemble(np.array([0.4, -0.2, 0.3, -0.1, 0.2]), [1.0, 0, 0, 0, 0], fixed=["foot0"])
    expected = parallelogram(model, 0.4, 1.0)
    np.testing.assert_allclose(state.q, expected[0], atol=1e-12)
    np.testing.assert_allclose(state.v, expected[1], atol=1e-12)
    assert state.q[0] == 0.4
    assert state.v[0] == 1.0


def test_assembly_that_fails_names_the_loop():
    model = four_bars(2)
    guess = np.zeros(5)
    with pytest.raises(
        NumericalError,
        match=r"^assemble: loop 'window0' cannot be closed from this guess with 'foot0', 'knee0', 'foot1' fixed: its "
        r"residual stays at 0\.\d+ \(m, rad\)\. Start from a guess that is nearer, or fix fewer joints$",
    ):
        model.assemble(guess + np.array([0.5, 0, 0, 0, 0]), fixed=["foot0", "foot1", "knee0"])
    with pytest.raises(
        NumericalError,
        match=r"^assemble: no speeds satisfy loop 'window\d' with 'foot0', 'foot1' fixed: it opens at .*",
    ):
        model.assemble(guess, [1.0, 0, 0.5, 0, 0], fixed=["foot0", "foot1"])


def test_projection_returns_to_the_surface():
    model, q = closed()
    active = ("revolute", "universal", "gimbal")
    v = possible_speeds(model, q, active)
    rng = np.random.default_rng(3)
    drifted = model.integrate(q, 1e-4 * rng.normal(size=(2, 3, model.nv)))
    speeds = v + 1e-3 * rng.normal(size=(2, 3, model.nv))
    state = model.project(drifted, speeds, active=active)
    assert state.q.shape == drifted.shape
    assert np.max(np.abs(model.constraint_residual(state.q, active=active))) == state.residual < CLOSURE
    G = model.constraint_jacobian(state.q, active=active)
    assert np.max(np.abs(G @ state.v[..., None])) == pytest.approx(state.velocity_residual)
    assert state.velocity_residual < 1e-11
    assert state.iterations <= 4
    # the change of the speeds is what constraint impulses can do: M dv = G^T f
    M = tree_of(model).mass_matrix(state.q[1, 1])
    pushed = M @ (state.v - speeds)[1, 1]
    f = np.linalg.lstsq(G[1, 1].T, pushed, rcond=None)[0]
    np.testing.assert_allclose(G[1, 1].T @ f, pushed, atol=1e-9 * np.linalg.norm(pushed))
    # what is on the surface stays there, to the last digits
    again = model.project(state.q, state.v, active=active)
    np.testing.assert_allclose(model.difference(state.q, again.q), 0, atol=1e-12)
    assert np.max(np.abs(model.project(q, active=active).v)) == 0.0


def test_projection_from_afar_is_refused():
    model = four_bars(1)
    with pytest.raises(
        NumericalError, match=r"^project: loop 'window0' stays open by .* after \d+ steps of Newton's method"
    ):
        model.project(np.array([0.0, np.pi / 2, np.pi]))


def test_batches_of_guesses():
    model = four_bars(2)
    q, v = parallelogram(model, 0.3, 1.0)
    guesses = q + 0.05 * np.random.default_rng(0).normal(size=(2, 3, model.nq))
    found = model.assemble(guesses, v, fixed=["foot0"])
    assert found.q.shape == (2, 3, model.nq)
    one = model.assemble(guesses[1, 2], v, fixed=["foot0"])
    np.testing.assert_array_equal(found.q[1, 2], one.q)
    np.testing.assert_array_equal(found.v[1, 2], one.v)
    assert np.abs(model.constraint_residual(found.q)).max() < 1e-12
    stuck = np.stack([q, q + np.array([0, 0, 3.0, 0, 0])])
    with pytest.raises(NumericalError, match=r"cannot be closed from this guess .*\(state 1\)$"):
        model.assemble(stuck, fixed=[name for name in model.speed_names])

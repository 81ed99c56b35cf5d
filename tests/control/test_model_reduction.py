"""Reduction of systems: published singular values and errors, and the bounds on random systems."""

import numpy as np
import pytest
import scipy
from control_helpers import random_system

from alembert.control import (
    ReducedSystem,
    StateSpace,
    balanced_truncation,
    feedback,
    hankel_optimal,
    linf_norm,
    modal_truncation,
    reduce_controller,
    split_stable,
    static,
    stochastic_truncation,
    tf,
    weighted_truncation,
)
from alembert.errors import ArgumentError, NumericalError
from alembert.verify.control_plants import chiang_safonov_seven, mass_chain, power_system


def test_power_system():
    """SLICOT's AB09AD, AB09BD, AB09CD and AB09HD with order 5."""
    G = power_system()
    found = balanced_truncation(G, 5)
    assert found.error().gain == pytest.approx(0.0505322821, rel=1e-8)
    assert found.error().gain <= found.bound
    at_rest = balanced_truncation(G, 5, keep_dc=True)
    np.testing.assert_allclose(at_rest.system.dc_gain(), G.dc_gain(), atol=1e-12)
    assert at_rest.error().gain <= at_rest.bound
    best = hankel_optimal(G, 5)
    s = G.hankel_singular_values()
    assert (G - best.system).hankel_singular_values()[0] == pytest.approx(s[5], rel=1e-8)
    assert s[5] <= best.error().gain <= best.bound
    assert best.error().gain <= 0.0487013  # what AB09CD's choice of D gives
    assert best.system.order == 5
    expected = [0.8803, 0.8506, 0.8038, 0.4494, 0.3973, 0.0214, 0.0209]
    np.testing.assert_allclose(stochastic_truncation(G, 5, absolute=1.0).singular_values, expected, atol=6e-5)


def test_relative_error_of_chiang_and_safonov():
    """The phase matrix to nine digits (40-digit arithmetic); a plain Schur method has 0.71487 and 0.55877."""
    G = chiang_safonov_seven()
    expected = [2.2931741, 1.9140107, 0.6608891, 0.2489057, 0.0919034, 0.0012274]
    np.testing.assert_allclose(G.hankel_singular_values()[:6], expected, atol=6e-8)
    relative = lambda found: linf_norm(G.inverse() * (G - found.system)).gain  # noqa: E731
    plain = balanced_truncation(G, 3)
    assert plain.error().gain == pytest.approx(0.3450965, abs=6e-8)
    assert plain.bound == pytest.approx(0.684074, abs=6e-7)
    assert relative(plain) == pytest.approx(92.1, abs=0.06)
    found = stochastic_truncation(G, 3)
    expected = [0.999734088, 0.998194307, 0.973417907, 0.714604787, 0.558417029, 0.00260446849]
    np.testing.assert_allclose(found.singular_values[:6], expected, atol=1e-8)
    assert relative(found) == pytest.approx(4.2, abs=0.05)
    assert relative(found) <= found.bound == pytest.approx(20.3, abs=0.1)


def test_controller_reduction_of_slicot():
    """SB16AD: singular values 3.8253 and 0.2005; the unstable pole of the controller stays."""
    G = StateSpace([[-1, 0, 4], [0, 2, 0], [0, 0, -3]], [[1], [1], [1]], [[1, 1, 1]])
    K = StateSpace(
        [[-26.4, 6.4023, 4.3868], [32, 0, 0], [0, 8, 0]], [[16], [0], [0]], [[9.2994, 1.1624, 0.1090]]
    )
    found = reduce_controller(K, G, 2, sign=-1)
    np.testing.assert_allclose(found.singular_values, [3.8253, 0.2005], atol=6e-5)
    np.testing.assert_allclose(found.system.poles(), [-34.5297, 9.1900], atol=6e-5)
    assert feedback(G, found.system).is_stable
    with pytest.raises(ArgumentError, match="expected 1 to 3; 1 poles are not stable"):
        reduce_controller(K, G, 0, sign=-1)
    with pytest.raises(NumericalError, match="with order 1 the closed loop is not stable"):
        reduce_controller(K, G, 1, sign=-1)


@pytest.mark.parametrize("dt", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_on_random_systems(seed, dt):
    G = random_system(np.random.default_rng(seed), 7, 2, 2, dt=dt)
    values = G.hankel_singular_values()
    for order in (2, 5):
        for found in (
            balanced_truncation(G, order),
            balanced_truncation(G, order, keep_dc=True),
            hankel_optimal(G, order),
        ):
            assert found.system.order == order
            assert found.system.is_stable
            assert values[order] * (1 - 1e-9) <= found.error().gain <= found.bound * (1 + 1e-7)
        exact = hankel_optimal(G, order).system
        assert (G - exact).hankel_singular_values()[0] == pytest.approx(values[order], rel=1e-6)
        np.testing.assert_allclose(
            balanced_truncation(G, order, keep_dc=True).system.dc_gain(), G.dc_gain(), atol=1e-9
        )
    few = balanced_truncation(G, tolerance=2.1 * values[-1])
    assert few.system.order <= 6
    assert few.error().gain <= 2.1 * values[-1]
    assert balanced_truncation(G, 7).error().gain < 1e-10


def test_bound_of_the_hankel_optimum():
    """The sum of the values left out bounds the error for another D; of one in twelve of such systems it was too small."""
    rng = np.random.default_rng(5)
    for _ in range(25):
        w, ratio = 10 ** rng.uniform(-1, 1, 3), 10 ** rng.uniform(-3, -1, 3)
        modes = [[[0, a], [-a, -2 * b * a]] for a, b in zip(w, ratio, strict=True)]
        G = StateSpace(scipy.linalg.block_diag(*modes), rng.normal(size=(6, 1)), rng.normal(size=(1, 6)))
        found = hankel_optimal(G, 2)
        assert found.error().gain <= found.bound * (1 + 1e-7)


def test_error_beside_a_pole_that_is_far_away():
    """One state of a pair at rest leaves a pole far to the left, beside which the other pair seemed undamped."""
    slow, fast = 1e-6, 1e7
    G = StateSpace([[0, 1, 0], [-1, -2 * slow, 0], [0, 0, -1]], [[1], [1], [1]], [[1, 0, 1]])
    H = StateSpace([[0, 1, 0], [-1, -2 * slow, 0], [0, 0, -fast]], [[1], [1], [fast]], [[1, 0, 1]])
    found = ReducedSystem(H, G, np.zeros(3), np.nan).error()
    # 1 / (s + 1) - fast / (s + fast)
    assert found.gain == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("dt", [0.0, 0.1])
def test_modal_truncation_keeps_poles_and_its_bound(dt):
    G = mass_chain(4).to_statespace() * 1.0 + static(0.5 * np.eye(2))
    G = G.sampled(dt) if dt else G
    for keep_dc in (False, True):
        found = modal_truncation(G, 4, keep_dc=keep_dc)
        assert found.system.order == 4
        assert found.error().gain <= found.bound * (1 + 1e-9)
        # each kept pole is one of G, to rounding over the distance of poles
        assert np.abs(found.system.poles()[:, None] - G.poles()).min(axis=1).max() < 1e-9
    np.testing.assert_allclose(found.system.dc_gain(), G.dc_gain(), atol=1e-9)
    few = modal_truncation(G, tolerance=found.bound / 2)  # pairs of like gains are left out without keep_dc
    assert few.bound <= found.bound / 2 * (1 + 1e-12)
    assert modal_truncation(G, 8).error().gain < 1e-9
    with pytest.raises(ArgumentError, match="order is 3, which splits a pair of poles; take 2 or 4 states"):
        modal_truncation(G, 3)
    with pytest.raises(ArgumentError, match="modal_truncation: order is 9, expected 0 to 8"):
        modal_truncation(G, 9)
    with pytest.raises(NumericalError, match="poles are multiple or nearly so, and modes are not told apart"):
        modal_truncation(tf([1], [1, 2, 1]), 1)


def test_poles_that_are_not_stable_are_kept():
    """An integrator, an undamped mode and an unstable pole next to stable dynamics."""
    fast = random_system(np.random.default_rng(5), 6)
    G = fast + tf([1], [1, 0]) + tf([1], [1, 0, 4]) + tf([1], [1, -1])
    stable, rest = split_stable(G)
    assert stable.order == 6
    assert rest.order == 4
    for s in (0.3 + 1j, 2.0):
        np.testing.assert_allclose(stable.at(s) + rest.at(s), G.at(s), atol=1e-9)
    found = balanced_truncation(G, 6)
    kept = found.system.poles()
    for pole in (0, 2j, -2j, 1):
        assert np.abs(kept - pole).min() < 1e-9
    assert found.error().gain <= found.bound * (1 + 1e-9)


def test_weights_move_the_error():
    """A low-pass weight makes the reduction better at low frequencies, where it counts."""
    G = random_system(np.random.default_rng(8), 8, direct=False)
    W = tf([1], [10, 1]) * tf([1], [10, 1])
    plain, weighted = (
        balanced_truncation(G, 3).system,
        weighted_truncation(G, 3, output_weight=W, input_weight=W).system,
    )
    cost = lambda H: linf_norm(W * (G - H) * W).gain  # noqa: E731
    assert cost(weighted) < cost(plain)
    assert np.isnan(weighted_truncation(G, 3).bound)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda G: balanced_truncation(G), "give either order or tolerance"),
        (lambda G: balanced_truncation(G, 9), "order is 9, expected 0 to 7"),
        (lambda G: balanced_truncation(tf([1], [1, -1]), 1), "no stable poles"),
        (lambda G: stochastic_truncation(G, 3), "D has not full row rank"),
        (lambda G: weighted_truncation(G, 3, input_weight=tf([1], [1, -1])), "input_weight is not stable"),
        (
            lambda G: balanced_truncation(StateSpace(-np.eye(2), np.eye(2), np.eye(2)), 1),
            "singular values 1 and 2 are equal .0.5.; take 0 or 2 states",
        ),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make(power_system())


def test_static_part():
    assert split_stable(static(2.0))[1].order == 0

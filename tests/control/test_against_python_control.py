"""A differential test: random systems, computed here and by python-control."""

import os

import numpy as np
import pytest
from control_helpers import random_system

from alembert import control as ours

theirs = pytest.importorskip("control")
PER_SEED = int(os.environ.get("ALEMBERT_SYSTEMS", "400")) // 20


@pytest.mark.parametrize("seed", range(20))
def test_random_systems_agree(seed):
    """400 systems in all (`make differential`: 1000): algebra, responses, poles, zeros, norms and regulators."""
    rng = np.random.default_rng(seed)
    for _ in range(PER_SEED):
        n, m = int(rng.integers(1, 6)), int(rng.integers(1, 3))
        dt = float(rng.choice([0.0, 0.1]))
        G, H = (random_system(rng, n, m, m, dt=dt) for _ in range(2))
        g, h = (theirs.ss(*X.matrices, dt) for X in (G, H))
        w = rng.uniform(0.05, 20.0, size=3)
        pairs = [
            (G * H, g * h),
            (G + H, g + h),
            (2 * G - H, 2 * g - h),
            (ours.append(G, H), theirs.append(g, h)),
        ]
        loop = np.eye(m) + G.D @ H.D
        if np.linalg.cond(loop) < 1e6:
            pairs.append((ours.feedback(G, H), theirs.feedback(g, h)))
        for mine, other in pairs:
            s = np.exp(1j * w * dt) if dt else 1j * w
            expected = np.moveaxis(np.atleast_3d(other(s, squeeze=False)), -1, 0)
            scale = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(mine.frequency_response(w).response, expected, atol=1e-7 * scale)
        np.testing.assert_allclose(_sorted(G.poles()), _sorted(g.poles()), atol=1e-7)
        if np.linalg.cond(G.D) < 1e4:
            z, expected = _sorted(G.zeros()), _sorted(g.zeros())
            assert len(z) == len(expected)
            np.testing.assert_allclose(z, expected, atol=1e-5 * max(1.0, np.abs(expected).max(initial=0.0)))
        np.testing.assert_allclose(
            G.dc_gain(), np.atleast_2d(g.dcgain()), atol=1e-7 * max(1, np.abs(G.dc_gain()).max())
        )
        _compare_norms(G, g)
        _compare_regulators(G, g, rng)


def _sorted(x):
    return np.sort_complex(np.round(np.asarray(x, dtype=complex), 9))


def _compare_norms(G, g):
    if G.dt == 0:
        strict = ours.StateSpace(G.A, G.B, G.C)
        expected = theirs.norm(theirs.ss(*strict.matrices), 2, print_warning=False)
        assert strict.h2_norm() == pytest.approx(expected, rel=1e-6)
        peak = theirs.norm(g, "inf", tol=1e-7, print_warning=False)
        assert G.hinf_norm().gain == pytest.approx(peak, rel=1e-5)


def _compare_regulators(G, g, rng):
    n, m = G.B.shape
    Q, R = np.diag(rng.uniform(0.1, 2.0, n)), np.diag(rng.uniform(0.1, 2.0, m))
    solve = theirs.dlqr if G.dt else theirs.lqr
    K, X, _ = solve(G.A, G.B, Q, R)
    found = ours.lqr(G, Q, R)
    np.testing.assert_allclose(found.K, K, atol=1e-7 * max(1.0, np.abs(K).max()))
    np.testing.assert_allclose(found.X, X, atol=1e-7 * max(1.0, np.abs(X).max()))
    if G.dt == 0:
        sampled = theirs.sample_system(g, 0.05)
        np.testing.assert_allclose(G.sampled(0.05).A, sampled.A, atol=1e-9)
        np.testing.assert_allclose(G.sampled(0.05).B, sampled.B, atol=1e-9)

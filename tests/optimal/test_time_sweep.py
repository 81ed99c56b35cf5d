"""The sweep in time against the dense system of the same problem."""

import numpy as np
import pytest

from alembert.optimal import time_sweep
from alembert.optimal.time_sweep import Conditions, Indefinite, LinearStages, TimeSweep


def problem(rng, N, n, m, bounds=0):
    """Random stages with a convex cost."""

    def positive(k):
        X = rng.normal(size=(k, k))
        return X @ X.T + np.eye(k)

    return LinearStages(
        A=np.eye(n) + 0.3 * rng.normal(size=(N, n, n)),
        B=rng.normal(size=(N, n, m)),
        b=rng.normal(size=(N, n)),
        Q=np.array([positive(n) for _ in range(N + 1)]),
        N=0.1 * rng.normal(size=(N, n, m)),
        R=np.array([positive(m) for _ in range(N)]),
        q=rng.normal(size=(N + 1, n)),
        r=rng.normal(size=(N, m)),
        D=rng.normal(size=(N, bounds, n + m)),
        push=rng.normal(size=(N, bounds)),
    )


def dense(s, start, end, shift):
    """x, u and all multipliers from the system of the conditions for a minimum."""
    N, n, m = s.sizes
    size = (N + 1) * n + N * m

    def state(k):
        return slice(k * n, (k + 1) * n)

    def control(k):
        return slice((N + 1) * n + k * m, (N + 1) * n + (k + 1) * m)

    H, g = np.zeros((size, size)), np.zeros(size)
    rows = N * n + len(start.c) + len(end.c)
    C, c = np.zeros((rows, size)), np.zeros(rows)
    for k in range(N):
        x, u = state(k), control(k)
        H[x, x] += s.Q[k] + shift * np.eye(n)
        H[x, u] += s.N[k]
        H[u, x] += s.N[k].T
        H[u, u] += s.R[k] + shift * np.eye(m)
        force = s.D[k].T @ s.push[k]
        g[x], g[u] = s.q[k] + force[:n], s.r[k] + force[n:]
        here = slice(k * n, (k + 1) * n)
        C[here, x], C[here, u], C[here, state(k + 1)], c[here] = s.A[k], s.B[k], -np.eye(n), s.b[k]
    H[state(N), state(N)] += s.Q[N] + shift * np.eye(n)
    g[state(N)] = s.q[N]
    first = slice(N * n, N * n + len(start.c))
    C[first, state(0)], c[first] = start.C, start.c
    C[first.stop :, state(N)], c[first.stop :] = end.C, end.c
    kkt = np.block([[H, C.T], [C, np.zeros((rows, rows))]])
    found = np.linalg.solve(kkt, -np.concatenate([g, c]))
    w, y = found[:size], found[size:]
    return w[: (N + 1) * n].reshape(N + 1, n), w[(N + 1) * n :].reshape(N, m), y


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize(
    ("n", "m", "first", "last", "bounds"),
    [(3, 2, 3, 3, 0), (3, 1, 1, 2, 2), (2, 2, 0, 0, 1), (4, 2, 4, 1, 0)],
)
def test_step_solves_the_dense_system(n, m, first, last, bounds, shift):
    rng = np.random.default_rng(n + 10 * m + first)
    N = 6
    stages = problem(rng, N, n, m, bounds)
    start = Conditions(rng.normal(size=(first, n)), rng.normal(size=first))
    end = Conditions(rng.normal(size=(last, n)), rng.normal(size=last))
    x, u, y = dense(stages, start, end, shift)
    sweep = TimeSweep(stages, start, end)
    sweep.solve(shift=shift)
    scale = max(1.0, np.abs(y).max())  # errors follow the largest multiplier
    np.testing.assert_allclose(sweep.x, x, atol=1e-10 * scale)
    np.testing.assert_allclose(sweep.u, u, atol=1e-10 * scale)
    np.testing.assert_allclose(sweep.costates[1:], y[: N * n].reshape(N, n), atol=1e-9 * scale)
    np.testing.assert_allclose(sweep.start, y[N * n : N * n + first], atol=1e-9 * scale)
    np.testing.assert_allclose(sweep.end, y[N * n + first :], atol=1e-9 * scale)
    assert max(np.abs(part).max(initial=0) for part in sweep.residual(shift)) < 1e-9 * scale


@pytest.mark.parametrize(
    ("n", "m", "last", "bounds"), [(6, 3, 4, 2), (14, 7, 0, 0), (9, 8, 9, 1), (16, 2, 5, 3), (60, 20, 8, 2)]
)
def test_stages_in_vectors_solve_the_dense_system(n, m, last, bounds):
    rng = np.random.default_rng(n + m)
    stages = problem(rng, 5, n, m, bounds)
    stages.A *= 0.3  # keeps the multipliers small
    start, end = (
        Conditions(np.eye(n), rng.normal(size=n)),
        Conditions(rng.normal(size=(last, n)), rng.normal(size=last)),
    )
    x, u, y = dense(stages, start, end, 0.2)
    sweep = TimeSweep(stages, start, end)
    assert n + m > time_sweep.LARGEST_SCALAR
    sweep.solve(shift=0.2)
    scale = max(1.0, np.abs(y).max())
    np.testing.assert_allclose(sweep.x, x, atol=1e-10 * scale)
    np.testing.assert_allclose(sweep.u, u, atol=1e-10 * scale)
    np.testing.assert_allclose(sweep.end, y[5 * n + n :], atol=1e-9 * scale)
    stages.R[2] -= 1e6 * np.eye(m)
    with pytest.raises(Indefinite) as caught:
        sweep.solve()
    assert caught.value.stage == 2


def test_large_systems_at_the_ends_are_solved_on_arrays_and_agree(monkeypatch):
    rng = np.random.default_rng(3)
    stages = problem(rng, 5, 3, 2, 2)
    start, end = (
        Conditions(np.eye(3), rng.normal(size=3)),
        Conditions(rng.normal(size=(2, 3)), rng.normal(size=2)),
    )
    compiled = TimeSweep(stages, start, end)
    compiled.solve(shift=0.1)
    monkeypatch.setattr(time_sweep, "LARGEST_END", 0)
    arrays = TimeSweep(stages, start, end)
    arrays.solve(shift=0.1)
    for name in ("x", "u", "costates", "gains", "end", "start"):
        np.testing.assert_allclose(getattr(arrays, name), getattr(compiled, name), atol=1e-10, err_msg=name)


@pytest.mark.parametrize("limit", [0, 50])
def test_negative_curvature_names_its_stage(limit, monkeypatch):
    """In straight code, and in loops."""
    monkeypatch.setattr(time_sweep, "LARGEST_SCALAR", limit)
    time_sweep.inward_loop.cache_clear()
    stages = problem(np.random.default_rng(0), 5, 2, 1)
    stages.R[3] = -1e3
    none = Conditions(np.empty((0, 2)), np.empty(0))
    with pytest.raises(Indefinite) as caught:
        TimeSweep(stages, none, none).solve()
    assert caught.value.stage == 3


def test_repeated_conditions_get_the_smallest_multipliers():
    rng = np.random.default_rng(5)
    stages = problem(rng, 4, 3, 2)
    start = Conditions(np.eye(3), np.zeros(3))
    row, value = rng.normal(size=(1, 3)), np.array([0.7])
    once = TimeSweep(stages, start, Conditions(row, value))
    twice = TimeSweep(stages, start, Conditions(np.vstack([row, row]), np.tile(value, 2)))
    once.solve()
    twice.solve()
    np.testing.assert_allclose(twice.x, once.x, atol=1e-10)
    np.testing.assert_allclose(twice.end, np.tile(once.end / 2, 2), atol=1e-9)


def test_refinement_restores_what_steep_weights_cost():
    """A weight of 1e12 along one state leaves few digits in P; one correction brings the residual back."""
    rng = np.random.default_rng(7)
    stages = problem(rng, 20, 3, 1)
    stages.Q[5:15, 0, 0] += 1e12
    start, end = Conditions(np.eye(3), np.zeros(3)), Conditions(np.eye(3)[:1], np.ones(1))
    sweep = TimeSweep(stages, start, end)
    sweep.solve()
    options = {"shift": 0.0, "rho": 1.0, "damping": 0.0}
    before = max(np.abs(part).max() for part in sweep.residual(0.0))
    sweep.refine(**options)
    after = max(np.abs(part).max() for part in sweep.residual(0.0))
    assert after < 1e-2 * before + 1e-12

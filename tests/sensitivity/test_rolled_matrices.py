"""Products with derivatives of matrices over the speeds, as loops over the bodies and their pairs."""

import numpy as np
import pytest

import alembert as al
from alembert.algorithms import directional_kernels


def made_of_loops(model, mode, name, monkeypatch, most):
    """For models of more than `most` bodies."""
    monkeypatch.setattr(directional_kernels, "MOST_NODES", most)
    monkeypatch.setattr(directional_kernels, "MOST_NODES_TWICE", most)
    options = directional_kernels.options(
        model, mode, name, wrenches=(), frame=None, reference=None, about=None
    )
    if mode == "hessian":
        return directional_kernels.hessian_kernel(model, name, options)
    return directional_kernels.kernel(model, mode, name, options)


@pytest.mark.parametrize("mode", ["jvp", "vjp", "hessian"])
@pytest.mark.parametrize("name", ["mass_matrix", "inverse_mass_matrix", "innovations"])
def test_matrices_against_straight_code(mode, name, monkeypatch):
    """Batches and one state; for the gradients, parameters in masses, placements, axes and armatures."""
    model = al.library.random_tree(
        6, bodies=3, kinds=("revolute", "universal"), attachments=True, parameters=mode == "vjp"
    )
    rng = np.random.default_rng(1)
    loops = made_of_loops(model, mode, name, monkeypatch, 0)
    straight = made_of_loops(model, mode, name, monkeypatch, 1000)
    given = []
    for a in loops.arguments:
        if a.name == "q":
            given.append(np.array([model.random_configuration(rng) for _ in range(9)]))
        elif a.name == "parameters":
            given.append(np.array([value for _, value in model.parameters]))
        else:
            given.append(rng.normal(size=(9, *a.shape)))
    found, expected = loops(*given), straight(*given)
    first = loops(*(x[0] if x.ndim > 1 else x for x in given))
    if not isinstance(found, tuple):
        found, expected, first = (found,), (expected,), (first,)
    for x, y, one in zip(found, expected, first, strict=True):
        # sums in another order: rounding, amplified by the condition of the mass matrix where it is inverted
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * max(np.abs(y).max(), 1e-12))
        np.testing.assert_array_equal(one, x[0])


@pytest.mark.parametrize("name", ["mass_matrix", "inverse_mass_matrix", "innovations"])
def test_gradients_of_a_chain_of_200(name):
    """weight . d(matrix) along a direction, against a tangent sweep."""
    model = al.library.chain(200, axes=((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)))
    rng = np.random.default_rng(2)
    q, d = rng.normal(size=(2, 200))
    _, change = model.jvp(name, (q,), (d,))
    changes = change if isinstance(change, tuple) else (change,)
    weights = tuple(rng.normal(size=x.shape) for x in changes)
    (gradient,) = model.vjp(name, (q,), weights if len(weights) > 1 else weights[0])
    expected = sum(np.sum(w * x) for w, x in zip(weights, changes, strict=True))
    size = np.sqrt(sum(np.sum((w * x) ** 2) for w, x in zip(weights, changes, strict=True)))
    # rounding of sums over some 200 bodies, of the size of a random walk through all entries; where the mass matrix is
    # inverted, amplified by its condition
    scale = 30 * np.linalg.cond(model.mass_matrix(q)) if name == "inverse_mass_matrix" else 200 * 200
    assert abs(gradient @ d - expected) < scale * 2.2e-16 * size


def test_the_mass_matrix_of_a_chain_of_500_against_differences():
    model = al.library.chain(500, axes=((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)))
    rng = np.random.default_rng(3)
    q, d = rng.normal(size=(2, 500))
    weight = rng.normal(size=(500, 500))
    (gradient,) = model.vjp("mass_matrix", (q,), weight)
    h = 1e-4
    near, far = (
        np.sum(weight * (model.mass_matrix(q + s * d) - model.mass_matrix(q - s * d))) for s in (h, 2 * h)
    )
    # fourth order: h^4 times a fifth derivative along d, larger by powers of the bodies that a turn moves
    assert abs(gradient @ d - (8 * near - far) / (12 * h)) < 1e-6 * np.linalg.norm(gradient) * np.linalg.norm(
        d
    )


@pytest.mark.parametrize("name", ["power", "difference"])
def test_what_depends_on_few_inputs_in_large_models(name):
    """Gradients that vanish, and configurations under other names, of models whose products are loops."""
    model = al.library.random_tree(1, bodies=26, kinds=("revolute", "spherical"))
    rng = np.random.default_rng(4)
    if name == "power":
        q, v, tau = model.random_configuration(rng), *rng.normal(size=(2, model.nv))
        zero, by_v, by_tau = model.vjp(name, (q, v, tau), 2.0)
        np.testing.assert_array_equal(zero, np.zeros(model.nv))
        np.testing.assert_allclose(by_v, 2 * tau)
        np.testing.assert_allclose(by_tau, 2 * v)
        H = model.hessian(name, (q, v, tau), 2.0)
        expected = np.zeros_like(H)
        n = model.nv
        expected[n : 2 * n, 2 * n :] = expected[2 * n :, n : 2 * n] = 2 * np.eye(n)
        np.testing.assert_allclose(H, expected, atol=1e-15)
    else:
        q0, q1 = model.random_configuration(rng), model.random_configuration(rng)
        d0, d1, weight = rng.normal(size=(3, model.nv))
        value, change = model.jvp(name, (q0, q1), (d0, d1))
        np.testing.assert_allclose(value, model.difference(q0, q1), rtol=1e-12)
        by_0, by_1 = model.vjp(name, (q0, q1), weight)
        assert abs(by_0 @ d0 + by_1 @ d1 - weight @ change) < 1e-12 * np.abs(change).sum()

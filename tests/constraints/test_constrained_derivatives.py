"""Derivatives of constrained dynamics against differences of the dense solution, and along the surface."""

import functools
import pickle

import numpy as np
import pytest
from constraint_helpers import close, closed, four_bars, parallelogram, possible_speeds, tree_of

from alembert import library
from alembert.constraints import kernels
from alembert.model import Coupling

KINDS = ("revolute", "universal", "screw")
STEP = 1e-5


def held(model, q, v, tau, active, rows):
    """Accelerations with the rows of one minimal set, at any state."""
    tree = tree_of(model)
    R = model.constraint_jacobian(q, active=active)[rows]
    gamma = model.constraint_bias(q, v, active=active)[rows]
    M, bias = tree.mass_matrix(q), tree.bias_forces(q, v)
    matrix = np.block([[M, -R.T], [R, np.zeros((len(R), len(R)))]])
    return np.linalg.solve(matrix, np.r_[tau - bias, -gamma])[: model.nv]


def check(model, q, v, tau, active, rows):
    d = model.constrained_dynamics_derivatives(q, v, tau, active=active)
    np.testing.assert_allclose(
        d.acceleration, held(model, q, v, tau, active, rows), atol=1e-9 * np.linalg.norm(d.acceleration)
    )
    directions = np.random.default_rng(0).normal(size=(3, model.nv))
    for x in directions:
        x = x / np.linalg.norm(x)
        for found, moved in (
            (d.dq @ x, lambda h, x=x: held(model, model.integrate(q, h * x), v, tau, active, rows)),
            (d.dv @ x, lambda h, x=x: held(model, q, v + h * x, tau, active, rows)),
            (d.dtau @ x, lambda h, x=x: held(model, q, v, tau + h * x, active, rows)),
        ):
            difference = (8 * (moved(STEP) - moved(-STEP)) - (moved(2 * STEP) - moved(-2 * STEP))) / (
                12 * STEP
            )
            # rounding of a over the step: 1e-13 |a| / 1e-5; truncation of order 4 is below
            scale = np.linalg.norm(d.acceleration) + np.linalg.norm(difference)
            np.testing.assert_allclose(found, difference, atol=1e-6 * scale)


@functools.cache
def chain(kind):
    """Seven bodies in a row, closed to the world or to one another."""
    tree = library.random_tree(2, bodies=7, kinds=("revolute", "universal", "prismatic"), branching=0)
    return close(tree, (kind,))


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_the_dense_solution(kind):
    model, q = chain(kind)
    v = possible_speeds(model, q)
    tau = np.random.default_rng(2).normal(size=model.nv)
    m = len(model.constraint_residual(q))
    assert model.constraint_analysis(q).rank == m
    check(model, q, v, tau, None, np.arange(m))


def test_large_derivatives_are_interpreted(monkeypatch):
    model, q = chain("universal")
    v, tau = possible_speeds(model, q), np.ones(model.nv)
    compiled = model.constrained_dynamics_derivatives(q, v, tau)
    monkeypatch.setattr(kernels, "LARGEST", 0)
    other = pickle.loads(pickle.dumps(model))
    found = other.constrained_dynamics_derivatives(np.stack([q, q]), v, tau)
    np.testing.assert_allclose(found.dq[1], compiled.dq, rtol=1e-10, atol=1e-9)


def test_a_planar_mechanism_and_its_one_equation():
    """t'' = k sin t: along the surface the derivative is k cos t."""
    model = four_bars(2)
    q, v = parallelogram(model, 0.6, -1.3)
    d = model.forward_dynamics_derivatives(q, v, np.zeros(model.nv))
    k = 9.81 * 3.5 / 3
    direction = parallelogram(model, 0.0, 1.0)[1]
    np.testing.assert_allclose(d.acceleration, k * np.sin(0.6) * direction, rtol=1e-11)
    np.testing.assert_allclose(d.dq @ direction, k * np.cos(0.6) * direction, rtol=1e-10)
    np.testing.assert_allclose(d.dv @ direction, 0, atol=1e-11)
    inertia = 3.0  # of the one degree of freedom
    np.testing.assert_allclose(d.dtau, np.outer(direction, direction) / inertia, atol=1e-13)
    batch = model.forward_dynamics_derivatives(np.stack([q, q]), v, np.zeros(model.nv))
    assert batch.dq.shape == (2, 5, 5)
    np.testing.assert_allclose(batch.dq[1], d.dq, rtol=1e-12, atol=1e-12)


def test_couplings_wrenches_and_parameters():
    kinds = ("revolute", "prismatic", "spherical")
    tree = library.random_tree(3, bodies=8, kinds=kinds, branching=0, parameters=True, attachments=True)
    model, q = close(tree, ("spherical",), seed=3)
    first, second = [joint.name for joint in tree.joints if joint.type.nv == 1][:2]
    at = dict(zip(model.coordinate_names, q, strict=True))
    gear = Coupling("gear", second, (first,), (2.0,), at[second] - 2 * at[first])
    model = model.replace(couplings=(gear,))
    v = possible_speeds(model, q)
    tau, push = np.random.default_rng(1).normal(size=model.nv), np.arange(6.0)
    d = model.constrained_dynamics_derivatives(q, v, tau, wrenches={"tip4": push})
    a = model.constrained_dynamics(q, v, tau, wrenches={"tip4": push}).accelerations
    np.testing.assert_allclose(d.acceleration, a, atol=1e-9 * np.linalg.norm(a))
    # along the surface: project the moved state, and compare
    E = model.independent_coordinates(q).E
    x = E @ np.ones(E.shape[1])
    x /= np.linalg.norm(x)
    h = 1e-4

    def at(step):
        state = model.project(model.integrate(q, step * x), v)
        return model.constrained_dynamics(state.q, state.v, tau, wrenches={"tip4": push}).accelerations, state

    (up, s_up), (down, s_down) = at(h), at(-h)
    dq, dv = model.difference(s_down.q, s_up.q), s_up.v - s_down.v
    expected = (up - down) / (2 * h)
    found = (d.dq @ dq + d.dv @ dv) / (2 * h)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.linalg.norm(expected))


def test_no_active_constraint_is_the_tree():
    model, q = closed()
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=(2, model.nv))
    d = model.constrained_dynamics_derivatives(q, v, tau, active=[])
    expected = tree_of(model).forward_dynamics_derivatives(q, v, tau)
    for name in ("acceleration", "dq", "dv", "dtau"):
        scale = np.linalg.norm(getattr(expected, name))
        np.testing.assert_allclose(getattr(d, name), getattr(expected, name), atol=1e-9 * scale)

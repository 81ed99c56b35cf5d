"""Many constraints: code whose size is linear in their number, and the same numbers where they are too many to compile."""

import dataclasses

import numpy as np
import pytest
from constraint_helpers import closed, dense_solution, four_bars, parallelogram, possible_speeds

from alembert import library
from alembert.constraints import factors
from alembert.model import Coupling


@pytest.fixture
def too_many(monkeypatch):
    monkeypatch.setattr(factors, "LARGEST", 0)


@pytest.mark.parametrize("active", [["revolute"], ["spherical", "universal"], ["planar"]])
def test_dynamics_and_projection_without_compiling(too_many, active):
    model, q = closed()
    large = model.replace(name="large")
    v = possible_speeds(model, q, active)
    tau = np.random.default_rng(1).normal(size=model.nv)
    a, forces = dense_solution(model, q, v, tau, active=active)
    for _ in range(2):  # the first call chooses a minimal set
        found = large.constrained_dynamics(q, v, tau, active=active)
        np.testing.assert_allclose(found.accelerations, a, atol=1e-8 * np.linalg.norm(a))
    assert large.constrained_compute.rows.solution is None
    G = large.constraint_jacobian(q, active=active)
    f = np.concatenate([found.reactions[name] for name in active])
    assert np.all(np.isfinite(f))
    assert np.linalg.norm(forces - G.T @ np.linalg.lstsq(G.T, forces, rcond=None)[0]) < 1e-8 * np.linalg.norm(
        forces
    )
    off = large.integrate(q, 1e-4 * np.random.default_rng(2).normal(size=model.nv))
    state, expected = (m.project(off, v + 1e-3, active=active) for m in (large, model))
    np.testing.assert_allclose(state.q, expected.q, atol=1e-10)
    np.testing.assert_allclose(state.v, expected.v, atol=1e-8)
    batch = large.constrained_dynamics(np.stack([q, q]), v, tau, active=active)
    np.testing.assert_allclose(batch.accelerations[1], a, atol=1e-8 * np.linalg.norm(a))


def test_couplings_and_armature_without_compiling(too_many):
    tree = library.random_tree(2, bodies=7, kinds=("revolute", "prismatic", "spherical"), attachments=True)
    joints = tuple(_without_rotors(joint) for joint in tree.joints)
    single = [joint.name for joint in joints if joint.type.nv == 1]
    gear = Coupling("gear", single[0], (single[1],), (2.0,), 0.1)
    model = tree.replace(joints=joints, couplings=(gear,))
    q = model.assemble(model.random_configuration(0)).q
    v = possible_speeds(model, q)
    tau = np.random.default_rng(1).normal(size=model.nv)
    a, _ = dense_solution(model, q, v, tau)
    for _ in range(2):
        np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, atol=1e-9 * np.linalg.norm(a))


def _without_rotors(joint):
    return dataclasses.replace(joint, rotors=(), armature=(0.1,) * joint.type.nv)


def test_cost_is_linear_in_the_number_of_loops():
    """Multiplications of the elimination per loop, and the motion, which has a closed form for any number."""
    models = {n: four_bars(n) for n in (25, 100, 400)}
    cost = {n: m.constrained_compute.rows.cost / n for n, m in models.items()}
    np.testing.assert_allclose([cost[100], cost[400]], cost[25], rtol=0.1)
    assert 400 * cost[400] < factors.LARGEST
    model = models[100]
    q, v = parallelogram(model, 0.3, 1.0)
    a = (101 / 2 + 100) * 9.81 * np.sin(0.3) / (101 / 3 + 100)
    for _ in range(2):
        found = model.forward_dynamics(q, v, np.zeros(model.nv))
        np.testing.assert_allclose(np.abs(found), a, rtol=1e-9)
    state = model.project(q + 1e-5 * np.sin(np.arange(model.nv)), v)
    assert np.abs(model.constraint_residual(state.q)).max() < 1e-12

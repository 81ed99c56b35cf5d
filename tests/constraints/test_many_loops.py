"""Constraints in loops over data: the same numbers as unrolled code, at a cost linear in their number."""

import numpy as np
import pytest
from constraint_helpers import closed, dense_solution, four_bars, parallelogram, possible_speeds

from alembert import library
from alembert.constraints import system
from alembert.constraints.looped import Looped
from alembert.model import Coupling


@pytest.fixture
def in_loops(monkeypatch):
    monkeypatch.setattr(system, "MANY", 1)
    monkeypatch.setattr(system, "MOST", 0)


def test_all_kinds_of_loops_agree_with_unrolled_code(in_loops):
    model, q = closed()
    looped = model.replace(name="looped")
    v = possible_speeds(model, q)
    for x in (q, model.integrate(q, 0.05 * np.random.default_rng(0).normal(size=model.nv))):
        rows = looped.constrained_compute.rows if hasattr(looped, "is_constrained") else None
        assert rows.looped is not None
        for found, expected in zip(
            rows.terms(x[None], v[None]), _unrolled(model).terms(x[None], v[None]), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-11)


def _unrolled(model):
    rows = system.ConstraintRows(model)
    rows.__dict__["looped"] = None
    return rows


@pytest.mark.parametrize("active", [["revolute"], ["spherical", "universal"], ["planar"]])
def test_dynamics_and_projection_in_loops(in_loops, active):
    model, q = closed()
    looped = model.replace(name="looped")
    v = possible_speeds(model, q, active)
    tau = np.random.default_rng(1).normal(size=model.nv)
    a, forces = dense_solution(model, q, v, tau, active=active)
    for _ in range(2):  # the first call chooses the minimal set, the second the elimination
        found = looped.constrained_dynamics(q, v, tau, active=active)
        np.testing.assert_allclose(found.accelerations, a, atol=1e-8 * np.linalg.norm(a))
    assert looped.constrained_compute.rows.solution is None
    G = looped.constraint_jacobian(q, active=active)
    f = np.concatenate([found.reactions[name] for name in active])
    assert np.all(np.isfinite(f))
    assert np.linalg.norm(forces - G.T @ np.linalg.lstsq(G.T, forces, rcond=None)[0]) < 1e-8 * np.linalg.norm(
        forces
    )
    off = looped.integrate(q, 1e-4 * np.random.default_rng(2).normal(size=model.nv))
    state, expected = (m.project(off, v + 1e-3, active=active) for m in (looped, model))
    np.testing.assert_allclose(state.q, expected.q, atol=1e-10)
    np.testing.assert_allclose(state.v, expected.v, atol=1e-8)
    batch = looped.constrained_dynamics(np.stack([q, q]), v, tau, active=active)
    np.testing.assert_allclose(batch.accelerations[1], a, atol=1e-8 * np.linalg.norm(a))


def test_couplings_and_armature_in_loops(in_loops):
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
    import dataclasses

    return dataclasses.replace(joint, rotors=(), armature=(0.1,) * joint.type.nv)


def test_cost_is_linear_to_four_hundred_loops():
    """Instructions of the elimination per loop, and the motion, which has a closed form for any number."""
    counts = {}
    for n in (25, 100, 400):
        model = four_bars(n)
        rows = system.ConstraintRows(model) if hasattr(model, "is_constrained") else None
        elimination = Looped(model, rows.primary, list(rows.slices.values())).elimination
        counts[n] = len(elimination.source()) / n
    np.testing.assert_allclose([counts[100], counts[400]], counts[25], rtol=0.1)
    q, v = parallelogram(model, 0.3, 1.0)
    a = (401 / 2 + 400) * 9.81 * np.sin(0.3) / (401 / 3 + 400)
    for _ in range(2):
        found = model.forward_dynamics(q, v, np.zeros(model.nv))
        np.testing.assert_allclose(np.abs(found), a, rtol=1e-9)
    state = model.project(q + 1e-5 * np.sin(np.arange(model.nv)), v)
    assert np.abs(model.constraint_residual(state.q)).max() < 1e-12

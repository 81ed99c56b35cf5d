"""Hybrid dynamics: some speeds follow given accelerations, the rest given efforts."""

import numpy as np
import pytest
from dynamics_helpers import ROUNDING, TREES, relative, states, tree

from alembert import library
from alembert.engine.kernel import Kernel

BATCH = 64


@pytest.fixture(params=TREES)
def model(request):
    return tree(request.param)


def full_solution(M, bias, tau, a, free):
    """M a + bias = tau with `a` known where not free, from the dense linear system."""
    nv = len(bias)
    unknown = np.zeros((nv, nv))  # columns: accelerations of the free, efforts of the others
    unknown[:, free] = M[:, free]
    unknown[~free, ~free] = -1.0
    right = np.where(free, tau, 0.0) - bias - M[:, ~free] @ a[~free]
    x = np.linalg.solve(unknown, right)
    return np.where(free, x, a), np.where(free, tau, x), np.linalg.cond(M)


def test_against_the_full_linear_system_for_any_mask(model):
    """Another mask, down to single degrees of freedom of multi-dof joints, in every state of a batch."""
    q, v, tau = states(model, BATCH)
    rng = np.random.default_rng(3)
    a_given = rng.normal(size=(BATCH, model.nv))
    free = rng.random((BATCH, model.nv)) < np.linspace(0.02, 0.98, BATCH)[:, None]
    kernel = model.compile("hybrid_dynamics", batch=True)
    a, effort = kernel(q, v, tau, a_given, free.astype(float))
    np.testing.assert_array_equal(a[~free], a_given[~free])
    np.testing.assert_array_equal(effort[free], tau[free])
    M, bias = model.mass_matrix(q), model.bias_forces(q, v)
    product = (M @ a[..., None])[..., 0]
    assert relative(product + bias - effort, np.abs(product) + np.abs(bias)) < ROUNDING
    for k in range(BATCH):
        expected_a, expected_effort, condition = full_solution(M[k], bias[k], tau[k], a_given[k], free[k])
        size = np.linalg.norm(expected_a)
        assert np.linalg.norm(a[k] - expected_a) < ROUNDING * condition * size
        scale = np.linalg.norm(M[k], 2) * condition * size + np.linalg.norm(bias[k])
        assert np.linalg.norm(effort[k] - expected_effort) < ROUNDING * scale


def test_extremes_are_forward_and_inverse_dynamics(model):
    q, v, x = states(model, 8)
    wrenches = {"tip4": np.arange(6.0), "body9": np.ones(6)}
    everything = {joint.name: x[:, model.v_slice(joint.name)] for joint in model.joints if joint.type.nv}
    forward = model.hybrid_dynamics(q, v, torques=everything, wrenches=wrenches)
    np.testing.assert_array_equal(forward.efforts, x)
    expected = model.forward_dynamics(q, v, x, wrenches=wrenches)
    condition = np.linalg.cond(model.mass_matrix(q))
    error = np.linalg.norm(forward.accelerations - expected, axis=-1) / np.linalg.norm(expected, axis=-1)
    assert np.max(error / condition) < ROUNDING
    inverse = model.hybrid_dynamics(q, v, accelerations=everything, wrenches=wrenches)
    np.testing.assert_array_equal(inverse.accelerations, x)
    expected = model.inverse_dynamics(q, v, x, wrenches=wrenches)
    terms = np.abs(model.multiply_mass_matrix(q, x)) + np.abs(model.bias_forces(q, v, wrenches=wrenches))
    assert relative(inverse.efforts - expected, terms) < ROUNDING


def test_by_name_of_joint_or_single_degree_of_freedom():
    model = tree("floating")
    q, v, _ = states(model, 4)
    several = next(joint for joint in model.joints[1:] if joint.type.nv == 3)
    s = model.v_slice(several.name)
    single = model.speed_names[s.start + 1]
    result = model.hybrid_dynamics(q, v, accelerations={single: 2.0, "joint1": np.zeros(6)})
    np.testing.assert_array_equal(result.accelerations[:, s.start + 1], 2.0)
    np.testing.assert_array_equal(result.accelerations[:, :6], 0.0)
    assert np.all(result.efforts[:, [s.start, s.start + 2]] == 0.0)
    assert np.all(result.efforts[:, s.start + 1] != 0.0)
    # values may differ over the batch, and joint and speeds may be mixed
    values = np.arange(4.0)
    mixed = model.hybrid_dynamics(
        q, v, accelerations={single: values}, torques={model.speed_names[s.start]: 1.0}
    )
    np.testing.assert_array_equal(mixed.accelerations[:, s.start + 1], values)
    np.testing.assert_array_equal(mixed.efforts[:, s.start], 1.0)


def test_a_base_held_still_by_its_efforts_is_a_fixed_base():
    """The accelerations of the joints are those that they have on a fixed base."""
    model = tree("floating")
    q, v, tau = states(model, 8)
    v[:, :6] = 0.0
    torques = {joint.name: tau[:, model.v_slice(joint.name)] for joint in model.joints[1:] if joint.type.nv}
    result = model.hybrid_dynamics(q, v, accelerations={"joint1": np.zeros(6)}, torques=torques)
    M, bias = model.mass_matrix(q)[:, 6:, 6:], model.bias_forces(q, v)[:, 6:]
    expected = np.linalg.solve(M, (tau[:, 6:] - bias)[..., None])[..., 0]
    error = np.linalg.norm(result.accelerations[:, 6:] - expected, axis=-1) / np.linalg.norm(
        expected, axis=-1
    )
    assert np.max(error / np.linalg.cond(M)) < ROUNDING


def test_another_mask_compiles_nothing(monkeypatch):
    model = tree("attached")
    q, v, _ = states(model, 1)
    model.hybrid_dynamics(q[0], v[0])
    built = []
    made = Kernel._made
    monkeypatch.setattr(Kernel, "_made", lambda self, *a: built.append(self) or made(self, *a))
    for name in model.speed_names:
        model.hybrid_dynamics(q[0], v[0], accelerations={name: 1.0})
    assert built == []


def test_a_number_for_each_state_of_a_batch_that_ends_in_one():
    """Accelerations (3, 1) for states (3, 1, nq) are one for each, not nine."""
    model = library.two_link()
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 3, 1, 2))
    a = rng.normal(size=(3, 1))
    found = model.hybrid_dynamics(q, v, accelerations={"elbow": a})
    assert found.accelerations.shape == (3, 1, 2)
    np.testing.assert_array_equal(found.accelerations[..., 1], a)
    flat = model.hybrid_dynamics(q[:, 0], v[:, 0], accelerations={"elbow": a})
    np.testing.assert_array_equal(flat.accelerations, found.accelerations[:, 0])
    d = model.hybrid_dynamics_derivatives(q, v, accelerations={"elbow": a})
    assert d.dq.shape == (3, 1, 2, 2, 2)

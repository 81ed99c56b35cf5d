"""Identities that hold for every tree, joint type and attachment.

The equation of motion, energies, power, momentum and wrenches are the cases `identity_*` of `alembert.verify`, on the
same trees; `tests/verify` runs them.
"""

import numpy as np
import pytest
from dynamics_helpers import (
    RATE,
    ROUNDING,
    TREES,
    friction_effort,
    rate_along,
    relative,
    states,
    tree,
)

from alembert import REGISTRY
from alembert.errors import AlembertWarning, NumericalError
from alembert.verify.random_models import times, wrenches_on

BATCH = 32


@pytest.fixture(params=TREES)
def model(request):
    return tree(request.param)


def test_the_trees_have_every_joint_type_and_attachment():
    for name in TREES:
        assert {joint.type.kind for joint in tree(name).joints} == set(REGISTRY)
    for name in ("attached", "floating"):
        for part in ("spring", "friction", "armature", "rotors"):
            assert sum(bool(getattr(joint, part)) for joint in tree(name).joints) >= 3


def test_mass_matrix_applied_and_solved_without_forming_it(model):
    q, x, _ = states(model, BATCH)
    M = model.mass_matrix(q)
    product = model.multiply_mass_matrix(q, x)
    assert relative(product - times(M, x), np.linalg.norm(M, axis=-1)) < ROUNDING
    solution = model.solve_mass_matrix(q, x)
    residual = times(M, solution) - x
    assert (
        relative(residual, np.linalg.norm(M, axis=-1) * np.abs(solution).max(axis=-1, keepdims=True))
        < ROUNDING
    )


def test_inverse_mass_matrix(model):
    q, _, _ = states(model, 3)
    M, inverse = model.mass_matrix(q), model.inverse_mass_matrix(q)
    size = np.linalg.norm(M, axis=(-1, -2)) * np.linalg.norm(inverse, axis=(-1, -2))  # >= condition number
    assert np.max(np.linalg.norm(M @ inverse - np.eye(model.nv), axis=(-1, -2)) / size) < ROUNDING
    asymmetry = np.abs(inverse - np.swapaxes(inverse, -1, -2)).max(axis=(-1, -2))
    assert np.max(asymmetry / (np.linalg.norm(inverse, axis=(-1, -2)) * size)) < ROUNDING


@pytest.mark.parametrize("method", ["factorise", "conjugate_gradients"])
def test_other_methods_agree_with_the_sweep(model, method):
    q, v, tau = states(model, BATCH)
    wrenches = wrenches_on(model, BATCH)
    expected = model.forward_dynamics(q, v, tau, wrenches=wrenches)
    out = np.empty_like(tau)
    found = model.forward_dynamics(q, v, tau, wrenches=wrenches, method=method, out=out)
    assert found is out
    # both solve M a = tau - bias; conjugate gradients stop at 1e-14 of the right-hand side
    condition = np.linalg.cond(model.mass_matrix(q))
    error = np.linalg.norm(found - expected, axis=-1) / np.linalg.norm(expected, axis=-1)
    assert np.max(error / condition) < ROUNDING
    one = model.forward_dynamics(
        q[0], v[0], tau[0], wrenches={k: w[0] for k, w in wrenches.items()}, method=method
    )
    assert np.linalg.norm(one - found[0]) / np.linalg.norm(one) < ROUNDING * condition[0]


def test_coriolis_forces_are_quadratic(model):
    q, v, _ = states(model, BATCH)
    c = model.coriolis_forces(q, v)
    np.testing.assert_allclose(
        model.coriolis_forces(q, -2 * v), 4 * c, rtol=0, atol=ROUNDING * 4 * np.abs(c).max()
    )


def test_gravity_forces_are_the_bias_at_rest_without_springs():
    model = tree("plain")
    q, _, _ = states(model, 4)
    bias = model.bias_forces(q, np.zeros(model.nv))
    np.testing.assert_allclose(model.gravity_forces(q), bias, rtol=0, atol=ROUNDING * np.abs(bias).max())


def test_bias_is_coriolis_and_gravity_less_own_effort(model):
    q, v, _ = states(model, BATCH)
    bias, coriolis = model.bias_forces(q, v), model.coriolis_forces(q, v)
    at_rest = model.bias_forces(q, 0 * v)  # gravity and springs
    parts = coriolis + at_rest + friction_effort(model, v)
    assert relative(bias - parts, np.abs(coriolis) + np.abs(at_rest)) < ROUNDING


def test_forces_of_springs_alone(model):
    """Without gravity and at rest, bias is theirs: linear in the displacement of vector joints."""
    weightless = model.replace(gravity=(0.0, 0.0, 0.0))
    q, _, _ = states(model, 4)
    bias = weightless.bias_forces(q, np.zeros(model.nv))
    for joint in model.joints:
        if joint.type.nv == 0 or not joint.type.is_vector_space:
            continue
        found = bias[:, model.v_slice(joint.name)]
        if joint.spring is None:
            np.testing.assert_array_equal(found, 0 * found)
        else:
            rest = joint.spring.rest or joint.type.neutral()
            expected = np.array(joint.spring.stiffness) * (q[:, model.q_slice(joint.name)] - np.array(rest))
            np.testing.assert_allclose(found, expected, rtol=0, atol=20 * 4 * np.pi * ROUNDING)


def test_momentum(model):
    q, v, _ = states(model, BATCH)
    for about in ("world", "center_of_mass"):
        h, A = model.momentum(q, v, about=about), model.momentum_matrix(q, about=about)
        assert A.shape == (BATCH, 6, model.nv)
        assert relative(h - times(A, v), np.linalg.norm(A, axis=-1)) < ROUNDING
    # linear momentum is the mass times the velocity of the centre of mass
    mass = sum(model.compute.tree.ten_vectors[k][0] for k in range(len(model.compute.tree)))
    velocity = rate_along(lambda q, v: model.center_of_mass(q), model, q, v, 0 * v)
    np.testing.assert_allclose(h[:, 3:], mass * velocity, rtol=0, atol=RATE * np.abs(h[:, 3:]).max())
    moved = model.momentum(q, v, about="world")
    c = model.center_of_mass(q)
    np.testing.assert_allclose(
        h[:, :3], moved[:, :3] - np.cross(c, moved[:, 3:]), rtol=0, atol=ROUNDING * np.abs(moved).max()
    )


def test_potential_energy_is_that_of_the_mass_at_its_centre():
    model = tree("plain")
    q, _, _ = states(model, BATCH)
    mass = sum(ten[0] for ten in model.compute.tree.ten_vectors)
    expected = -mass * model.center_of_mass(q) @ np.array(model.gravity)
    np.testing.assert_allclose(
        model.potential_energy(q), expected, rtol=ROUNDING, atol=mass * 9.81 * ROUNDING
    )


def test_one_wrench_for_all_states_and_wrenches_on_the_same_body_add():
    model = tree("plain")
    q, v, tau = states(model, 4)
    F = np.arange(1.0, 7.0)
    a = model.forward_dynamics(q, v, tau, wrenches={"body3": F, "body5": F})
    tiled = model.forward_dynamics(q, v, tau, wrenches={"body3": np.tile(F, (4, 1)), "body5": F})
    np.testing.assert_array_equal(a, tiled)
    one = model.forward_dynamics(q[0], v[0], tau[0], wrenches={"body3": F, "body5": np.stack([F, 2 * F])})
    assert one.shape == (2, model.nv)
    np.testing.assert_array_equal(one[0], a[0])


@pytest.mark.parametrize("method", ["factorise", "conjugate_gradients"])
def test_other_methods_pass_no_bad_number_on(method):
    model = tree("plain")
    q, v, tau = states(model, 3)
    expected = model.forward_dynamics(q, v, tau, method=method)
    tau[1, 4] = np.nan
    with pytest.warns(
        AlembertWarning, match="forward_dynamics: 1 of 3 states .* the first at 1; tau is nan at entry 4"
    ):
        a = model.forward_dynamics(q, v, tau, method=method)
    assert np.isnan(a[1]).all()
    scale = np.abs(expected[[0, 2]]).max() * np.linalg.cond(model.mass_matrix(q)).max()
    np.testing.assert_allclose(a[[0, 2]], expected[[0, 2]], rtol=0, atol=ROUNDING * scale)
    with pytest.raises(
        NumericalError, match="forward_dynamics: the result is not finite; tau is nan at entry 4"
    ):
        model.forward_dynamics(q[1], v[1], tau[1], method=method)

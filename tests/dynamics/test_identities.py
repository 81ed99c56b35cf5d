"""Physical identities that hold for every tree, joint type and attachment."""

import casadi as ca
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

BATCH = 32


@pytest.fixture(params=TREES)
def model(request):
    return tree(request.param)


def wrenches_on(model, count, seed=7):
    rng = np.random.default_rng(seed)
    return {frame: rng.normal(size=(count, 6)) for frame in ("tip2", "tip7", "body13", "tip13")}


def times(M, x):
    return (M @ x[..., None])[..., 0]


def test_the_trees_have_every_joint_type_and_attachment():
    for name in TREES:
        assert {joint.type.kind for joint in tree(name).joints} == set(REGISTRY)
    for name in ("attached", "floating"):
        for part in ("spring", "friction", "armature", "rotors"):
            assert sum(bool(getattr(joint, part)) for joint in tree(name).joints) >= 3


def test_forward_and_inverse_dynamics_undo_each_other(model):
    q, v, tau = states(model, BATCH)
    wrenches = wrenches_on(model, BATCH)
    a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
    back = model.inverse_dynamics(q, v, a, wrenches=wrenches)
    # backward stable: the error is that of the terms which cancel to give tau
    terms = np.abs(model.multiply_mass_matrix(q, a)) + np.abs(model.bias_forces(q, v, wrenches=wrenches))
    assert relative(back - tau, terms) < ROUNDING


def test_equation_of_motion(model):
    q, v, a = states(model, BATCH)
    wrenches = wrenches_on(model, BATCH)
    M = model.mass_matrix(q)
    bias = model.bias_forces(q, v, wrenches=wrenches)
    tau = model.inverse_dynamics(q, v, a, wrenches=wrenches)
    assert relative(times(M, a) + bias - tau, np.abs(times(M, a)) + np.abs(bias)) < ROUNDING


def test_mass_matrix_is_symmetric_positive_definite_and_gives_the_kinetic_energy(model):
    q, v, _ = states(model, BATCH)
    M = model.mass_matrix(q)
    assert np.max(np.abs(M - np.swapaxes(M, -1, -2))) <= ROUNDING * np.max(np.abs(M))
    assert np.linalg.eigvalsh(M).min() > 0
    T = model.kinetic_energy(q, v)
    assert T.min() > 0
    np.testing.assert_allclose(np.sum(v * times(M, v), axis=-1) / 2, T, rtol=ROUNDING)


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


def test_energy_balance_along_the_motion(model):
    """dE/dt = tau . v + sum F . V - friction . v, the left side by automatic differentiation of E(q, v)."""
    q, v, tau = states(model, 8)
    wrenches = wrenches_on(model, 8)
    a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
    x, y, z = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv), ca.SX.sym("a", model.nv)
    s = model.symbolic
    dT = ca.jtimes(s.kinetic_energy(x, y), ca.vertcat(x, y), ca.vertcat(s.rate(x, y), z))
    dU = ca.jtimes(s.potential_energy(x), x, s.rate(x, y))
    function = ca.Function("dE", [x, y, z], [ca.vertcat(dT, dU)])
    rates = np.array([function(*state).full().ravel() for state in zip(q, v, a, strict=True)])
    power = model.power(q, v, tau, wrenches=wrenches) - np.sum(friction_effort(model, v) * v, axis=-1)
    # dT/dt is v . M a + 1/2 v . dM/dt v: terms of that size cancel
    terms = np.sum(np.abs(v) * np.abs(model.multiply_mass_matrix(q, a)), axis=-1)
    terms += np.sum(np.abs(v) * np.abs(model.coriolis_forces(q, v)), axis=-1) + np.abs(rates).sum(axis=-1)
    assert np.max(np.abs(rates.sum(axis=-1) - power) / terms) < ROUNDING


def test_coriolis_forces_are_quadratic_and_do_the_work_of_the_changing_mass_matrix(model):
    """v . c(q, v) = 1/2 v . (dM/dt) v, which is dT/dt at a = 0."""
    q, v, _ = states(model, BATCH)
    c = model.coriolis_forces(q, v)
    np.testing.assert_allclose(
        model.coriolis_forces(q, -2 * v), 4 * c, rtol=0, atol=ROUNDING * 4 * np.abs(c).max()
    )
    half = rate_along(lambda q, v: model.mass_matrix(q), model, q, v, 0 * v) / 2
    expected = np.sum(v * times(half, v), axis=-1)
    scale = np.sum(np.abs(v) * times(np.abs(half), np.abs(v)), axis=-1)
    assert np.max(np.abs(np.sum(v * c, axis=-1) - expected) / scale) < RATE


def test_gravity_forces_are_the_gradient_of_the_potential_energy(model):
    """Springs are part of the potential; at rest friction is not there, and bias is gravity and springs."""
    q, _, _ = states(model, 4)
    v = np.eye(model.nv)[:, None, :]
    gradient = rate_along(lambda q, v: model.potential_energy(q), model, q, v, 0 * v).T
    bias = model.bias_forces(q, np.zeros(model.nv))
    energy = np.abs(model.potential_energy(q))[:, None]  # its rounding is what the differences divide by h
    assert np.max(np.abs(gradient - bias) / (np.abs(bias).max(axis=-1, keepdims=True) + energy)) < RATE
    if not any(joint.spring for joint in model.joints):
        gravity = model.gravity_forces(q)
        np.testing.assert_allclose(gravity, bias, rtol=0, atol=ROUNDING * np.abs(bias).max())


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
    mass = sum(model._tree.ten_vectors[k][0] for k in range(len(model._tree)))
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
    mass = sum(ten[0] for ten in model._tree.ten_vectors)
    expected = -mass * model.center_of_mass(q) @ np.array(model.gravity)
    np.testing.assert_allclose(
        model.potential_energy(q), expected, rtol=ROUNDING, atol=mass * 9.81 * ROUNDING
    )


def test_external_wrenches_and_gravity_change_the_momentum_of_a_floating_tree():
    """dh/dt = sum of wrenches about the origin + (c x m g; m g); inner forces have no part in it."""
    model = tree("floating")
    q, v, tau = states(model, BATCH)
    tau[:, :6] = 0.0
    wrenches = wrenches_on(model, BATCH)
    a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
    A = model.momentum_matrix(q, about="world")
    rate = times(A, a) + rate_along(lambda q, v: model.momentum(q, v, about="world"), model, q, v, 0 * v)
    weight = model.mass * np.array(model.gravity)
    total = np.concatenate([np.cross(model.center_of_mass(q), weight), np.tile(weight, (BATCH, 1))], axis=-1)
    for frame, F in wrenches.items():
        X = model.frame_pose(q, frame)
        n, f = times(X.rotation, F[:, :3]), times(X.rotation, F[:, 3:])
        total += np.concatenate([n + np.cross(X.translation, f), f], axis=-1)
    scale = np.linalg.norm(A, axis=(-1, -2))[:, None] * np.linalg.norm(a, axis=-1)[:, None] + np.abs(rate)
    assert relative(rate - total, scale) < RATE


def test_wrenches_act_as_the_transposed_jacobian(model):
    q, v, a = states(model, BATCH)
    wrenches = wrenches_on(model, BATCH)
    difference = model.inverse_dynamics(q, v, a) - model.inverse_dynamics(q, v, a, wrenches=wrenches)
    expected = sum(
        times(np.swapaxes(model.frame_jacobian(q, frame), -1, -2), F) for frame, F in wrenches.items()
    )
    assert relative(difference - expected, np.abs(model.inverse_dynamics(q, v, a))) < ROUNDING


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

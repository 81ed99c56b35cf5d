"""Residual, Jacobian and bias of loops and couplings are derivatives of one another, for every joint type."""

import numpy as np
import pytest
from constraint_helpers import EPS, KINDS, closed, possible_speeds

from alembert import ModelError, UnsupportedError, library
from alembert.model import Coupling, Frame, LoopJoint

STEP = 2e-4
RATE = 1e-9  # fourth order differences: (w h)^4 w/30 + 1.5 eps/h for speeds w of some rad/s


def rate_along(function, model, q, v, a):
    at = lambda k: function(model.integrate(q, k * STEP * v), v + k * STEP * a)  # noqa: E731
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_loop_has_no_residual(kind):
    model, q = closed()
    # the frames were placed by composing poses: rounding of metres over a few products
    np.testing.assert_allclose(model.constraint_residual(q, active=[kind]), 0, atol=100 * EPS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_removes_what_its_joint_blocks(kind):
    model, q = closed()
    found = model.constraint_analysis(q, active=[kind])
    nv = next(loop.type.nv for loop in model.loops if loop.name == kind)
    assert found.rows == found.rank == 6 - nv
    assert found.degrees_of_freedom == model.nv - (6 - nv)
    assert found.redundant == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_jacobian_is_the_derivative_of_the_residual(kind, seed):
    model, q = closed()
    v = np.random.default_rng(seed).normal(size=model.nv)
    rate = rate_along(lambda q, v: model.constraint_residual(q, active=[kind]), model, q, v, 0 * v)
    G = model.constraint_jacobian(q, active=[kind])
    np.testing.assert_allclose(rate, G @ v, atol=RATE * 100 * np.linalg.norm(v))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["closed", "open"])
def test_the_bias_is_the_rest_of_the_acceleration(kind, where):
    """d/dt (G v) = G v' + gamma, on the surface and off it."""
    model, q = closed()
    rng = np.random.default_rng(2)
    v, a = rng.normal(size=(2, model.nv))
    if where == "open":
        q = model.integrate(q, 0.05 * rng.normal(size=model.nv))
    rate = rate_along(lambda q, v: model.constraint_jacobian(q, active=[kind]) @ v, model, q, v, a)
    G, gamma = model.constraint_jacobian(q, active=[kind]), model.constraint_bias(q, v, active=[kind])
    scale = np.linalg.norm(G) * (np.linalg.norm(a) + v @ v)
    np.testing.assert_allclose(rate, G @ a + gamma, atol=RATE * scale)


def test_rows_of_possible_speeds_vanish_and_batches_agree():
    model, q = closed()
    v = possible_speeds(model, q, ["revolute"])
    G = model.constraint_jacobian(q, active=["revolute"])
    assert np.max(np.abs(G @ v)) < 100 * EPS * np.linalg.norm(G) * np.linalg.norm(v)
    qs = model.integrate(q, 0.1 * np.random.default_rng(0).normal(size=(2, 3, model.nv)))
    batch = model.constraint_residual(qs), model.constraint_jacobian(qs), model.constraint_bias(qs, v)
    m = sum(6 - loop.type.nv for loop in model.loops)
    assert [x.shape for x in batch] == [(2, 3, m), (2, 3, m, model.nv), (2, 3, m)]
    one = (
        model.constraint_residual(qs[1, 2]),
        model.constraint_jacobian(qs[1, 2]),
        model.constraint_bias(qs[1, 2], v),
    )
    for many, single in zip(batch, one, strict=True):
        np.testing.assert_allclose(many[1, 2], single, rtol=1e-13, atol=1e-13)


def test_parameters_reach_frames_axes_and_ratios():
    tree = library.random_tree(3, bodies=6, kinds=("revolute", "prismatic"), parameters=True)
    ends = [joint.name for joint in tree.joints][:2]
    axis_of = next(j for j in tree.joints if any(not isinstance(x, float) for x in j.type.constants()))
    from alembert import Cylindrical, Expression

    axis = axis_of.type.axis
    name = (
        next(iter(Expression(str(axis[0])).names))
        if not isinstance(axis[0], float)
        else tree.parameters[0][0]
    )
    model = tree.replace(
        loops=(LoopJoint("loop", Cylindrical(axis), "tip3", "tip6"),),
        couplings=(Coupling("gear", ends[0], (ends[1],), (Expression(f"2 * {name}"),), Expression(name)),),
    )
    q = tree.random_configuration(1)
    v = np.random.default_rng(1).normal(size=model.nv)
    changed = {key: value * 1.1 + 0.01 for key, value in model.parameters}
    other = model.replace(parameters=changed)
    for function, arguments in (
        ("constraint_residual", (q,)),
        ("constraint_jacobian", (q,)),
        ("constraint_bias", (q, v)),
    ):
        at_run_time = getattr(model, function)(*arguments, parameters=changed)
        np.testing.assert_allclose(at_run_time, getattr(other, function)(*arguments), rtol=1e-12, atol=1e-13)
        assert (
            np.max(np.abs(at_run_time - getattr(model, function)(*arguments))) > 1e-4
            or function == "constraint_bias"
        )


def test_couplings_are_rows_with_constant_coefficients():
    tree = library.random_tree(0, bodies=4, kinds=("revolute",), branching=0)
    gear = Coupling("gear", "joint2", ("joint1", "joint4"), (2.0, -0.5), 0.1)
    model = tree.replace(couplings=(gear,))
    q = np.array([0.3, -0.7, 0.2, 1.1])
    np.testing.assert_allclose(model.constraint_residual(q), [-0.7 - 0.1 - 0.6 + 0.55], atol=4 * EPS)
    np.testing.assert_array_equal(model.constraint_jacobian(q), [[-2.0, 1.0, 0.0, 0.5]])
    np.testing.assert_array_equal(model.constraint_bias(q, q), [0.0])


def test_a_free_loop_joint_constrains_nothing():
    from alembert import Free

    tree = library.random_tree(0, bodies=4, kinds=("revolute",), branching=0)
    model = tree.replace(loops=(LoopJoint("none", Free(), "world", "tip4"),))
    q, v, tau = np.random.default_rng(0).normal(size=(3, 4))
    assert model.constraint_residual(q).shape == (0,)
    assert (
        str(model.constraint_analysis(q))
        == "0 constraint rows of rank 0, 4 degrees of freedom left; none is redundant"
    )
    np.testing.assert_array_equal(model.forward_dynamics(q, v, tau), tree.forward_dynamics(q, v, tau))
    np.testing.assert_array_equal(model.constrained_dynamics(q, v, tau).reactions["none"], np.zeros(6))
    assert model.independent_coordinates(q).names == tree.speed_names
    np.testing.assert_array_equal(model.impulse(q, v).velocities, v)
    np.testing.assert_array_equal(model.project(q, v).v, v)
    np.testing.assert_array_equal(model.assemble(q, v).v, v)
    np.testing.assert_allclose(
        model.constrained_inverse_dynamics(q, v, tau).efforts, tree.inverse_dynamics(q, v, tau), atol=1e-12
    )


def test_what_cannot_be_a_constraint():
    from alembert.library.random_tree import example_joint

    tree = library.random_tree(0, bodies=4, kinds=("revolute",), branching=0)
    model = tree.replace(loops=(LoopJoint("roll", example_joint("custom", 0), "world", "tip4"),))
    with pytest.raises(
        UnsupportedError, match=r"^loop 'roll': this custom joint cannot close a loop; it has no closed form"
    ):
        model.constraint_residual(np.zeros(4))
    twice = tree.replace(
        frames=(*tree.frames, Frame("hook", "body4")),
        loops=(LoopJoint("x", example_joint("spherical"), "world", "hook"),),
        couplings=(Coupling("x", "joint1", ("joint2",), (1.0,)),),
    )
    with pytest.raises(ModelError, match=r"^a loop and a coupling are both called 'x'; .*: rename one$"):
        twice.constraint_residual(np.zeros(4))

"""What joints need to close loops: coordinates from poses, and the wrenches that they transmit."""

import casadi as ca
import numpy as np
import pytest

from alembert import UnsupportedError
from alembert.joints import REGISTRY, Gimbal, Screw
from alembert.library.random_tree import SEQUENCES, example_joint
from alembert.spatial import Pose, se3

EPS = float(np.finfo(float).eps)
EXAMPLES = [example_joint(kind, seed) for kind in REGISTRY if kind != "custom" for seed in range(4)]
EXAMPLES += [Gimbal(sequence) for sequence in (*SEQUENCES, "xyx", "zyz", "yzx", "yxz", "xzx")]

every_joint = pytest.mark.parametrize("joint", EXAMPLES, ids=lambda joint: joint.kind)


def configuration(joint, seed=3):
    rng = np.random.default_rng(seed)
    return joint.random(rng, np.full(joint.nq, -np.inf), np.full(joint.nq, np.inf))


def symbolic(joint, function, *arguments):
    symbols = [ca.SX.sym("x", *np.atleast_2d(argument.T).T.shape) for argument in arguments]
    value = ca.Function("f", symbols, [ca.densify(function(*symbols))])(*arguments)
    return np.asarray(value)


@every_joint
@pytest.mark.parametrize("seed", range(4))
def test_fit_gives_the_coordinates_of_a_placement(joint, seed):
    X = joint.placement(configuration(joint, seed))
    again = joint.placement(joint.fit(X))
    # atan2 and back: some rounding of the entries, times the pitch's or the quaternion's few operations
    np.testing.assert_allclose(again.rotation, X.rotation, atol=50 * EPS)
    np.testing.assert_allclose(again.translation, X.translation, atol=50 * EPS)


@every_joint
def test_fit_and_constraint_subspace_on_symbols(joint):
    q = configuration(joint)
    X = joint.placement(q)
    fitted = symbolic(joint, lambda R, p: joint.fit(Pose(R, p)), X.rotation, X.translation)
    np.testing.assert_allclose(fitted.ravel(), joint.fit(X), atol=20 * EPS)
    T = symbolic(joint, joint.constraint_subspace, q)
    np.testing.assert_allclose(T, joint.constraint_subspace(q), atol=20 * EPS)


@every_joint
@pytest.mark.parametrize("seed", range(4))
def test_the_constraint_subspace_complements_the_motion(joint, seed):
    q = configuration(joint, seed)
    S, T = joint.subspace(q), joint.constraint_subspace(q)
    assert T.shape == (6, 6 - joint.nv)
    np.testing.assert_allclose(T.T @ S, 0, atol=20 * EPS)
    np.testing.assert_allclose(T.T @ T, np.eye(6 - joint.nv), atol=20 * EPS)


@every_joint
def test_fit_is_the_nearest_placement(joint):
    """Off the joint's surface by x, what is left over is of the size of x, and T sees it to first order."""
    rng = np.random.default_rng(5)
    q = configuration(joint)
    T = joint.constraint_subspace(q)
    step = 1e-5
    for _ in range(3):
        x = rng.normal(size=6 - joint.nv)
        X = joint.placement(q) @ se3.exp(step * T @ x)
        left = se3.log(joint.placement(joint.fit(X)).inverse() @ X)
        # second order in the step, times the few that products of unit vectors can give
        np.testing.assert_allclose(T.T @ left, step * x, atol=20 * step**2)


def test_a_screw_counts_its_turns():
    screw = Screw((0.0, 0.0, 1.0), 0.1)
    for turns in (-25.3, -1.5, 0.4, 3.6, 12.0):
        q = np.array([2 * np.pi * turns])
        # the turns are multiplied by 2 pi again: relative rounding
        np.testing.assert_allclose(screw.fit(screw.placement(q)), q, rtol=1e-12)
    flat = Screw((0.0, 0.0, 1.0), 0.0)
    np.testing.assert_allclose(flat.fit(flat.placement(np.array([1.0]))), [1.0], rtol=4 * EPS)


def test_a_custom_joint_without_a_fit_cannot_close_a_loop():
    joint = example_joint("custom", 0)
    assert not joint.closes_loops
    with pytest.raises(UnsupportedError) as refused:
        joint.fit(Pose.identity())
    assert str(refused.value) == "fit: a custom joint cannot give its coordinates for a pose"


@pytest.mark.parametrize("seed", range(4))
def test_a_complement_without_a_closed_form(seed):
    """For joints that give no basis of their own: by reflections, from S."""
    joint = example_joint("custom", seed)
    q = np.random.default_rng(seed).normal(size=joint.nq)
    S, T = joint.subspace(q), joint.constraint_subspace(q)
    assert T.shape == (6, 6 - joint.nv)
    np.testing.assert_allclose(T.T @ S, 0, atol=10 * EPS)
    np.testing.assert_allclose(T.T @ T, np.eye(6 - joint.nv), atol=10 * EPS)

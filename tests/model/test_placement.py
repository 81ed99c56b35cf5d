import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from alembert.expression import Expression
from alembert.model import Placement
from alembert.spatial import Pose, so3
from refusals import model_refusal as refusal

EPS = np.finfo(float).eps


def random_placement(seed):
    rng = np.random.default_rng(seed)
    q_wxyz = rng.normal(size=4)
    return Placement(rng.normal(size=3), q_wxyz / np.linalg.norm(q_wxyz))


def assert_same(X, Y, atol=20 * EPS):
    np.testing.assert_allclose(X.rotation, Y.rotation, atol=atol)
    np.testing.assert_allclose(X.translation, Y.translation, atol=atol)


def test_constructors_agree():
    rpy, p = (0.3, -1.1, 2.5), (1.0, 2.0, 3.0)
    R = Rotation.from_euler("xyz", rpy)
    expected = Pose(R.as_matrix(), np.array(p))
    assert_same(Placement.from_rpy(rpy, p).pose(), expected)
    assert_same(Placement.from_rotation_vector(R.as_rotvec(), p).pose(), expected)
    assert_same(Placement.from_matrix(R.as_matrix(), p).pose(), expected)
    assert_same(Placement.from_pose(expected).pose(), expected)
    assert_same(Placement(p, R.as_quat(scalar_first=True)).pose(), expected)


def test_quarter_turns_are_exact():
    R = Placement.from_rpy((np.pi / 2, 0, -np.pi / 2)).pose().rotation
    assert set(np.abs(R).ravel()) == {0.0, 1.0}


def test_compose_and_inverse_are_those_of_poses():
    for seed in range(5):
        a, b = random_placement(seed), random_placement(seed + 100)
        assert_same((a @ b).pose(), a.pose() @ b.pose())
        assert_same(a.inverse().pose(), a.pose().inverse())
        assert_same((a @ a.inverse()).pose(), Pose.identity())
    assert Placement().is_identity
    assert (Placement() @ Placement()).is_identity
    assert not random_placement(0).is_identity


def test_expressions_are_carried_along():
    values = {"a": 0.7, "l": 1.3, "h": -0.2}
    a, l, h = (Expression(name) for name in values)
    first = Placement.from_rpy((a, 0.1, h * 2), (l, 0.0, h))
    second = Placement.from_rpy((0.2, a / 2, 0.0), (0.0, l * h, 1.0))

    def numbers(placement):
        X = placement.pose(values)
        return Placement.from_pose(X)

    assert_same((first @ second).pose(values), numbers(first).pose() @ numbers(second).pose(), 50 * EPS)
    assert_same(first.inverse().pose(values), numbers(first).pose().inverse(), 50 * EPS)
    plain = random_placement(1)
    assert_same((plain @ first).pose(values), plain.pose() @ first.pose(values), 50 * EPS)
    assert_same((first @ plain).pose(values), first.pose(values) @ plain.pose(), 50 * EPS)


def test_symbolic_pose_agrees_and_keeps_zeros():
    import casadi as ca

    a = ca.SX.sym("a")
    for placement in (
        random_placement(2),
        Placement.from_rpy((np.pi / 2, 0, 0), (Expression("a"), 0, 0)),
        Placement.from_rpy((Expression("a"), 0.3, 0), (0, Expression("2 * a"), 1)),
    ):
        X = placement.symbolic_pose({"a": a})
        R, p = ca.Function("f", [a], [ca.densify(X.rotation), ca.densify(X.translation)])(0.4)
        assert_same(Pose(np.asarray(R), np.asarray(p).ravel()), placement.pose({"a": 0.4}))
    X = Placement.from_rpy((np.pi / 2, 0, 0), (1.0, 0, 0)).symbolic_pose({})
    assert (X.rotation.nnz(), X.translation.nnz()) == (3, 1)


def test_numbers_are_written_alike_when_equal():
    assert repr(Placement((0, -0.0, 1), (1, 0, 0, 0))) == repr(Placement(np.array([0.0, 0.0, 1.0])))


def test_refusals():
    assert refusal(Placement, (0, 0)) == "translation has 2 entries, expected 3"
    assert refusal(Placement, (0, 0, float("nan"))) == "translation[2] is nan, expected a finite number"
    assert refusal(Placement, (0, 0, 0), (1, 0, 0)) == "quaternion has 3 entries, expected 4"
    assert refusal(Placement, (0, 0, 0), (1, 1, 0, 0)) == (
        "quaternion (w, x, y, z) (1.0, 1.0, 0.0, 0.0) has length 1.41421, expected 1"
    )
    assert refusal(Placement.from_rpy, (0, 0)) == "rpy has 2 entries, expected 3"
    assert refusal(Placement.from_rotation_vector, (0, 0)) == "rotation vector has 2 entries, expected 3"
    assert refusal(Placement.from_rotation_vector, (Expression("a"), 0, 0)).endswith(
        "depends on parameters, expected numbers; use from_rpy"
    )
    assert refusal(Placement.from_matrix, 2 * np.eye(3)).startswith("not a rotation matrix:\n[[2. 0. 0.]")
    assert refusal(Placement.from_matrix, -np.eye(3)).startswith("not a rotation matrix:")
    assert refusal(Placement.from_matrix, np.eye(2)).startswith("not a rotation matrix:")
    assert refusal(Placement.from_matrix, "eye") == "not a rotation matrix: 'eye'"
    assert refusal(Placement.from_pose, Pose(np.zeros((3, 3)), np.zeros(3))).startswith(
        "not a rotation matrix:"
    )


def test_normalising_twice_changes_nothing():
    for seed in range(200):
        once = Placement(quaternion=np.round(random_placement(seed).quaternion, 6)).quaternion
        assert Placement(quaternion=once).quaternion == once


def test_written_digits_are_normalised():
    q_wxyz = np.array(Placement(quaternion=(0.70711, 0.70711, 0, 0)).quaternion)
    assert abs(np.linalg.norm(q_wxyz) - 1) <= 2 * EPS
    R = np.round(so3.exp(np.array([0.1, 0.2, 0.3])), 7)
    assert np.linalg.norm(Placement.from_matrix(R).quaternion) == pytest.approx(1, abs=2 * EPS)

"""Identities that every joint type of the registry keeps, on NumPy and on SX."""

import pickle

import casadi as ca
import numpy as np
import pytest

from alembert.joints import REGISTRY
from alembert.joints.joint import JointType
from alembert.library.random_tree import FACTORIES, SEQUENCES, Gimbal, example_joint
from alembert.spatial import quaternion, se3
from alembert.spatial.arrays import skew

EPS = np.finfo(float).eps
# step of the central differences: truncation H^2 ~ 1e-10 and rounding EPS/H ~ 2e-11, times small constants
H = 1e-5
DIFFERENCED = 1e-8
EXAMPLES = [example_joint(kind, seed) for kind in REGISTRY for seed in range(4)]
EXAMPLES += [Gimbal(sequence) for sequence in SEQUENCES]

every_joint = pytest.mark.parametrize("joint", EXAMPLES, ids=lambda joint: joint.kind)
every_moving_joint = pytest.mark.parametrize(
    "joint", [joint for joint in EXAMPLES if joint.nv], ids=lambda joint: joint.kind
)


def unlimited(joint):
    return np.full(joint.nq, -np.inf), np.full(joint.nq, np.inf)


def state(joint, seed=7):
    rng = np.random.default_rng(seed)
    return joint.random(rng, *unlimited(joint)), rng.normal(size=joint.nv)


def symbolic(function, *arguments):
    """The same function on SX symbols, evaluated."""
    symbols = [ca.SX.sym(f"x{k}", len(argument)) for k, argument in enumerate(arguments)]
    return np.asarray(ca.densify(ca.Function("f", symbols, [function(*symbols)])(*arguments)))


def motion(before, after):
    """The displacement between two poses, in the frame of the first."""
    return se3.log(before.inverse() @ after)


def bias(joint, q, v):
    value = joint.bias(q, v)
    return np.zeros(6) if value is None else value


def test_every_registered_kind_has_an_example():
    assert set(FACTORIES) == set(REGISTRY)


@every_joint
def test_is_registered_under_its_kind(joint):
    assert REGISTRY[joint.kind] is type(joint)
    assert type(joint).__doc__
    assert not type(joint).__doc__.startswith(f"{type(joint).__name__}(")


@every_joint
def test_sizes_and_labels(joint):
    assert joint.nq == len(joint.coordinates)
    assert joint.nv == len(joint.speeds) <= joint.nq
    assert len({label for label, _ in joint.coordinates}) == joint.nq
    q, v = state(joint)
    assert joint.neutral().shape == q.shape == (joint.nq,)
    assert joint.rate(q, v).shape == (joint.nq,)
    assert joint.subspace(q).shape == (6, joint.nv)
    assert joint.placement(q).rotation.shape == (3, 3)
    assert joint.placement(q).translation.shape == (3,)


@every_joint
def test_compares_hashes_and_pickles_by_content(joint):
    copy = pickle.loads(pickle.dumps(joint))
    assert copy == joint
    assert hash(copy) == hash(joint)
    assert repr(copy) == repr(joint)


@every_joint
def test_placement_is_a_pose(joint):
    q, _ = state(joint)
    R = joint.placement(q).rotation
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=20 * EPS)
    assert np.linalg.det(R) > 0


@every_moving_joint
def test_subspace_is_the_derivative_of_the_placement(joint):
    q, v = state(joint)
    symbols = ca.SX.sym("q", joint.nq), ca.SX.sym("v", joint.nv)
    X = joint.placement(symbols[0])
    rate = joint.rate(*symbols)
    dR = ca.jtimes(ca.vec(X.rotation), symbols[0], rate)
    dp = ca.jtimes(X.translation, symbols[0], rate)
    dR, dp = (np.asarray(x) for x in ca.Function("f", list(symbols), [ca.reshape(dR, 3, 3), dp])(q, v))
    V = joint.subspace(q) @ v
    R = joint.placement(q).rotation
    np.testing.assert_allclose(R.T @ dR, skew(V[:3]), atol=100 * EPS)
    np.testing.assert_allclose(R.T @ dp.ravel(), V[3:], atol=100 * EPS)


@every_moving_joint
def test_subspace_is_the_motion_of_a_small_step(joint):
    q, v = state(joint)
    before, after = (joint.placement(joint.integrate(q, sign * H * v)) for sign in (-1, 1))
    here = joint.placement(q)
    moved = (motion(here, after) - motion(here, before)) / (2 * H)
    np.testing.assert_allclose(joint.subspace(q) @ v, moved, atol=DIFFERENCED * (1 + v @ v) ** 1.5)


@every_moving_joint
def test_bias_is_the_derivative_of_the_subspace_along_the_motion(joint):
    q, v = state(joint)
    before, after = (joint.subspace(joint.integrate(q, sign * H * v)) @ v for sign in (-1, 1))
    expected = (after - before) / (2 * H)
    np.testing.assert_allclose(bias(joint, q, v), expected, atol=DIFFERENCED * (1 + v @ v) ** 2)


@every_moving_joint
def test_subspace_is_constant_where_there_is_no_bias(joint):
    q, v = state(joint)
    if joint.bias(q, v) is None:
        other, _ = state(joint, seed=8)
        np.testing.assert_array_equal(joint.subspace(q), joint.subspace(other))


@every_moving_joint
def test_subspace_has_full_rank(joint):
    q, _ = state(joint)
    assert np.linalg.matrix_rank(joint.subspace(q)) == joint.nv


@every_moving_joint
def test_rate_is_the_derivative_of_integrate(joint):
    q, v = state(joint)
    before, after = (joint.integrate(q, sign * H * v) for sign in (-1, 1))
    expected = (after - before) / (2 * H)
    np.testing.assert_allclose(joint.rate(q, v), expected, atol=DIFFERENCED * (1 + v @ v) ** 1.5)
    if joint.is_vector_space:
        np.testing.assert_array_equal(joint.rate(q, v), v)


@every_moving_joint
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 1.0, 3.0])
def test_difference_inverts_integrate(joint, size):
    q, v = state(joint)
    dv = size * v / np.linalg.norm(v)  # below pi, so that the shortest way is the way taken
    reached = joint.integrate(q, dv)
    np.testing.assert_allclose(joint.difference(q, reached), dv, atol=50 * EPS * (1 + np.linalg.norm(q)))


@every_moving_joint
def test_integrate_inverts_difference(joint):
    q, _ = state(joint)
    other, _ = state(joint, seed=8)
    reached = joint.placement(joint.integrate(q, joint.difference(q, other)))
    # the left Jacobian and its inverse at an angle near pi: a few tens of roundings
    np.testing.assert_allclose(motion(joint.placement(other), reached), np.zeros(6), atol=200 * EPS)


@every_moving_joint
def test_difference_of_a_configuration_from_itself_is_zero_with_unit_slope(joint):
    q, _ = state(joint)
    dv = ca.SX.sym("dv", joint.nv)
    round_trip = joint.difference(ca.SX(q), joint.integrate(ca.SX(q), dv))
    slope = ca.Function("f", [dv], [ca.jacobian(round_trip, dv)])(np.zeros(joint.nv))
    np.testing.assert_allclose(np.asarray(slope), np.eye(joint.nv), atol=50 * EPS)


@every_moving_joint
def test_shorter_displacements_have_the_same_first_and_second_derivatives(joint):
    """What is differentiated at no displacement may leave out what is of third order in it."""
    q, e = joint.random(np.random.default_rng(3), *unlimited(joint)), ca.SX.sym("e", joint.nv)
    c = ca.DM(np.random.default_rng(4).normal(size=joint.nq)).T
    moved = joint.integrate(ca.SX(q), e)
    for exact, near in (
        (c @ moved, c @ joint.integrate_near(ca.SX(q), e)),
        (
            c[: joint.nv] @ joint.difference(ca.SX(q), moved),
            c[: joint.nv] @ joint.difference_near(ca.SX(q), moved),
        ),
    ):
        H, slope = ca.hessian(exact - near, e)
        found = ca.Function("off", [e], [exact - near, slope, H])(np.zeros(joint.nv))
        # entries of q and of rotations are of size 1; derivatives of series cancel to rounding
        assert max(float(ca.norm_inf(ca.vec(x))) for x in found) < 100 * EPS * max(1, np.abs(q).max())


@every_moving_joint
@pytest.mark.parametrize("size", [1e-4, 0.5, 2.5])
def test_rate_of_a_chart_is_that_of_the_difference(joint, size):
    """Closed forms of `chart_rate` against the differentiated `difference`, up to nearly half a turn."""
    e, v = np.random.default_rng(5).normal(size=(2, joint.nv))
    e *= size / np.linalg.norm(e)
    exact = symbolic(lambda e, v: JointType.chart_rate(joint, e, v), e, v)
    np.testing.assert_allclose(symbolic(joint.chart_rate, e, v), exact, rtol=0, atol=1e-12)


@every_moving_joint
def test_configurations_stay_on_the_manifold(joint):
    q, _ = state(joint)
    rng = np.random.default_rng(3)
    for _ in range(200):
        q = joint.integrate(q, rng.normal(size=joint.nv))
    assert joint.problem(q) is None
    R = joint.placement(q).rotation
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=20 * EPS)  # normalised at each step: no drift


@every_joint
def test_numbers_and_symbols_agree(joint):
    q, v = state(joint)
    other, _ = state(joint, seed=8)
    X = joint.placement(q)
    tight = {"atol": 100 * EPS, "rtol": 0}
    if joint.nq == 0:  # CasADi takes no empty vectors as arguments; the graph has no inputs
        empty = ca.SX(0, 1)
        np.testing.assert_array_equal(np.asarray(ca.DM(joint.placement(empty).rotation)), X.rotation)
        assert joint.subspace(empty).shape == (6, 0)
        return
    np.testing.assert_allclose(symbolic(lambda q: joint.placement(q).rotation, q), X.rotation, **tight)
    p = symbolic(lambda q: joint.placement(q).translation, q).ravel()
    np.testing.assert_allclose(p, X.translation, **tight)
    np.testing.assert_allclose(symbolic(joint.subspace, q), joint.subspace(q), **tight)
    np.testing.assert_allclose(symbolic(joint.rate, q, v).ravel(), joint.rate(q, v), **tight)
    np.testing.assert_allclose(symbolic(joint.integrate, q, v).ravel(), joint.integrate(q, v), **tight)
    np.testing.assert_allclose(
        symbolic(joint.difference, q, other).ravel(), joint.difference(q, other), **tight
    )
    if joint.bias(q, v) is None:
        assert joint.bias(ca.SX(q), ca.SX(v)) is None
    else:
        np.testing.assert_allclose(symbolic(joint.bias, q, v).ravel(), joint.bias(q, v), **tight)


@every_joint
def test_constants_round_trip(joint):
    assert joint.with_constants(joint.constants()) == joint


@every_moving_joint
def test_constants_may_be_symbols(joint):
    values = np.array(joint.constants(), dtype=float)
    if values.size == 0:
        return
    q, _ = state(joint)
    c = ca.SX.sym("c", values.size)
    same = joint.with_constants(c)
    X = same.placement(ca.SX(q))
    outputs = [ca.densify(x) for x in (X.rotation, X.translation, same.subspace(ca.SX(q)))]
    R, p, S = (np.asarray(x) for x in ca.Function("f", [c], outputs)(values))
    np.testing.assert_allclose(R, joint.placement(q).rotation, atol=20 * EPS)
    np.testing.assert_allclose(p.ravel(), joint.placement(q).translation, atol=20 * EPS)
    np.testing.assert_allclose(S, joint.subspace(q), atol=20 * EPS)


@every_joint
def test_neutral_is_a_regular_configuration(joint):
    assert joint.problem(joint.neutral()) is None
    assert joint.singularity(joint.neutral()) is None
    np.testing.assert_array_equal(joint.placement(joint.neutral()).translation.shape, (3,))


@every_joint
def test_random_configurations_are_valid_and_within_the_limits(joint):
    rng = np.random.default_rng(2)
    bounded = np.array([bool(unit) for _, unit in joint.coordinates], dtype=bool)  # not quaternions
    for _ in range(50):
        low = np.where(rng.random(joint.nq) < 0.6, rng.uniform(-9, 0, joint.nq), -np.inf)
        high = np.where(rng.random(joint.nq) < 0.6, rng.uniform(0, 9, joint.nq), np.inf)
        q = joint.random(rng, low, high)
        assert joint.problem(q) is None
        assert np.isfinite(q).all()
        assert np.all((low <= q)[bounded])
        assert np.all((q <= high)[bounded])


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_quaternion_joints_move_in_body_axes(kind):
    joint = example_joint(kind)
    q = joint.neutral()
    q[-4:] = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]  # x of the body is y of the parent
    dv = np.zeros(joint.nv)
    dv[0] = 0.1
    reached = joint.integrate(q, dv)
    expected = quaternion.multiply(quaternion.exp(np.array([0.0, 0.1, 0.0])), q[-4:])
    np.testing.assert_allclose(reached[-4:], expected, atol=4 * EPS)


def test_free_joint_velocity_is_in_body_axes():
    joint = example_joint("free")
    q = np.r_[1.0, 2.0, 3.0, np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    np.testing.assert_allclose(joint.rate(q, np.r_[0, 0, 0, 1.0, 0, 0])[:3], [0.0, 1.0, 0.0], atol=4 * EPS)


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_quaternions_that_are_not_unit_are_named(kind):
    joint = example_joint(kind)
    q = np.stack([joint.neutral()] * 3)
    assert joint.problem(q) is None
    q[1, -4:] *= 1.001
    assert joint.problem(q) == (
        "the quaternion (w, x, y, z) has length 1.001, expected 1; divide by its length"
    )


@pytest.mark.parametrize(
    ("sequence", "angle", "shown"),
    [("zyx", np.pi / 2, "90"), ("xyz", -np.pi / 2, "-90"), ("zxz", 0.0, "0"), ("yxy", np.pi, "180")],
)
def test_gimbal_lock_is_named(sequence, angle, shown):
    joint = Gimbal(sequence)
    q = np.array([[0.1, joint.neutral()[1], 0.2], [0.3, angle, 0.4]])
    assert joint.singularity(q[0]) is None
    assert np.linalg.matrix_rank(joint.subspace(q[1]), tol=1e-9) == 2
    assert joint.singularity(q) == (
        f"gimbal lock: the middle angle of the sequence {sequence!r} is {shown} degrees; "
        "stay away from it or use a spherical joint"
    )
    assert joint.singularity(q[1] + [0.0, 1e-5, 0.0]) is None

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import RigidTransform, Rotation

from alembert.spatial import Ad, Ad_dual, Pose, ad, ad_dual, quaternion, se3, series, so3
from alembert.spatial.arrays import skew

ANGLES = [
    0.0,
    1e-300,
    1e-160,
    1e-12,
    1e-8,
    1e-4,
    0.01,
    0.099,
    0.101,
    0.5,
    0.999999,
    1.000001,
    2.0,
    3.0,
    np.pi - 1e-9,
]
EPS = np.finfo(float).eps


def axes(rng, count=5):
    a = rng.normal(size=(count, 3))
    return [*(a / np.linalg.norm(a, axis=1)[:, None]), *np.eye(3), -np.eye(3)[1]]


def rotation_vectors(angles=ANGLES):
    rng = np.random.default_rng(1)
    return [angle * axis for angle in angles for axis in axes(rng)]


def symbolic(function, *arguments):
    """The same function evaluated by CasADi."""
    symbols = [ca.SX.sym(f"x{k}", *np.atleast_2d(np.asarray(a).T).T.shape) for k, a in enumerate(arguments)]
    value = ca.Function("f", symbols, [function(*symbols)])(*arguments)
    return np.asarray(value).squeeze()


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_agrees_with_the_matrix_exponential(angle):
    for w in rotation_vectors([angle]):
        # a few roundings of numbers of size one
        np.testing.assert_allclose(so3.exp(w), expm(skew(w)), atol=20 * EPS)
        np.testing.assert_allclose(symbolic(so3.exp, w), expm(skew(w)), atol=20 * EPS)
        np.testing.assert_allclose(quaternion.to_matrix(quaternion.exp(w)), expm(skew(w)), atol=20 * EPS)


def test_log_inverts_exp_below_pi():
    for w in rotation_vectors():
        # the rounding of R turns into an angle; near pi the quaternion keeps it well conditioned
        np.testing.assert_allclose(so3.log(so3.exp(w)), w, atol=40 * EPS)
        np.testing.assert_allclose(quaternion.log(quaternion.exp(w)), w, rtol=20 * EPS, atol=0)
        np.testing.assert_allclose(symbolic(lambda x: so3.log(so3.exp(x)), w), w, atol=40 * EPS)


def test_log_at_pi_gives_a_rotation_vector_of_the_same_rotation():
    for axis in axes(np.random.default_rng(2), 20):
        w = so3.log(so3.exp(np.pi * axis))
        np.testing.assert_allclose(np.linalg.norm(w), np.pi, rtol=4 * EPS)
        np.testing.assert_allclose(so3.exp(w), so3.exp(np.pi * axis), atol=20 * EPS)


def test_quaternions_agree_with_scipy():
    rng = np.random.default_rng(3)
    for _ in range(50):
        a, b = Rotation.random(rng=rng), Rotation.random(rng=rng)
        qa, qb = a.as_quat(scalar_first=True), b.as_quat(scalar_first=True)
        np.testing.assert_allclose(quaternion.to_matrix(qa), a.as_matrix(), atol=10 * EPS)
        product = quaternion.to_matrix(quaternion.multiply(qa, qb))
        np.testing.assert_allclose(product, (a * b).as_matrix(), atol=10 * EPS)
        np.testing.assert_allclose(
            quaternion.multiply(qa, quaternion.conjugate(qa)), quaternion.identity(), atol=4 * EPS
        )
        back = quaternion.from_matrix(a.as_matrix())
        np.testing.assert_allclose(back * np.sign(back @ qa), qa, atol=10 * EPS)


@pytest.mark.parametrize("angle", ANGLES)
def test_jacobians_of_so3_against_automatic_differentiation_of_exp(angle):
    x, dx = ca.SX.sym("x", 3), ca.SX.sym("dx", 3)
    body_rate = ca.jtimes(so3.exp(x), x, dx)
    f = ca.Function("f", [x, dx], [so3.exp(x).T @ body_rate, body_rate @ so3.exp(x).T])
    for w in rotation_vectors([angle]):
        for k, e in enumerate(np.eye(3)):
            right, left = (np.asarray(value) for value in f(w, e))
            np.testing.assert_allclose(skew(so3.right_jacobian(w)[:, k]), right, atol=50 * EPS)
            np.testing.assert_allclose(skew(so3.left_jacobian(w)[:, k]), left, atol=50 * EPS)
        for J, J_inverse in (
            (so3.left_jacobian(w), so3.left_jacobian_inverse(w)),
            (so3.right_jacobian(w), so3.right_jacobian_inverse(w)),
        ):
            np.testing.assert_allclose(J @ J_inverse, np.eye(3), atol=50 * EPS)


def test_second_derivative_of_exp_is_exact_at_zero():
    x = ca.SX.sym("x", 3)
    H, _ = ca.hessian(so3.exp(x)[0, 1], x)
    # exp w = 1 + w~ + w~w~/2 + ...: (w~w~)_{01} = w0 w1
    np.testing.assert_allclose(ca.Function("h", [x], [H])([0, 0, 0]), [[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])


def random_twists(rng):
    return [np.r_[w, v] for w in rotation_vectors() for v in (rng.normal(size=3),)]


def test_se3_exp_log_and_jacobians():
    rng = np.random.default_rng(4)
    for V in random_twists(rng):
        T = np.zeros((4, 4))
        T[:3, :3], T[:3, 3] = skew(V[:3]), V[3:]
        X = se3.exp(V)
        np.testing.assert_allclose(X.matrix(), expm(T), atol=200 * EPS)
        np.testing.assert_allclose(se3.log(X), V, atol=200 * EPS)
        # J_l dV = log(exp(V + dV) exp(V)^-1) to first order; central difference, error h^2
        h = 1e-5
        if np.linalg.norm(V[:3]) < 3.0:
            for k, e in enumerate(np.eye(6)):
                plus = se3.log(se3.exp(V + h * e) @ X.inverse())
                minus = se3.log(se3.exp(V - h * e) @ X.inverse())
                np.testing.assert_allclose(se3.left_jacobian(V)[:, k], (plus - minus) / (2 * h), atol=1e-9)
                plus = se3.log(X.inverse() @ se3.exp(V + h * e))
                minus = se3.log(X.inverse() @ se3.exp(V - h * e))
                np.testing.assert_allclose(se3.right_jacobian(V)[:, k], (plus - minus) / (2 * h), atol=1e-9)
        J = se3.left_jacobian(V) @ se3.left_jacobian_inverse(V)
        np.testing.assert_allclose(J, np.eye(6), atol=200 * EPS)
        J = se3.right_jacobian(V) @ se3.right_jacobian_inverse(V)
        np.testing.assert_allclose(J, np.eye(6), atol=200 * EPS)


def test_adjoints_are_a_representation_and_dual_to_each_other():
    rng = np.random.default_rng(5)
    for _ in range(20):
        X, Y = se3.exp(rng.normal(size=6)), se3.exp(rng.normal(size=6))
        V, W = rng.normal(size=6), rng.normal(size=6)
        np.testing.assert_allclose(Ad(X @ Y), Ad(X) @ Ad(Y), atol=100 * EPS)
        np.testing.assert_allclose(Ad_dual(X), np.linalg.inv(Ad(X)).T, atol=100 * EPS)
        np.testing.assert_allclose(Ad(se3.exp(V)), expm(ad(V)), atol=1000 * EPS)
        np.testing.assert_allclose(ad(Ad(X) @ V) @ Ad(X) @ W, Ad(X) @ ad(V) @ W, atol=1000 * EPS)
        np.testing.assert_allclose(ad_dual(V), -ad(V).T)


def test_displacements_by_half_turns_and_rotations_by_quaternions():
    """Of what free joints make their steps of: the same as the exponential and its Jacobian."""
    u, q = np.array([0.3, -2.0, 0.7]), np.array([0.3, -0.5, 0.2, 0.9])
    # sums of three terms of at most 10
    np.testing.assert_allclose(quaternion.rotate(q, u), quaternion.to_matrix(q) @ u, rtol=0, atol=20 * EPS)
    for w in rotation_vectors([*ANGLES, 1.9999, 2.0001, 6.0]):
        c, s, rest = series.half_turn(w @ w / 4)
        np.testing.assert_allclose(np.r_[c, s / 2 * w], quaternion.exp(w), rtol=0, atol=4 * EPS)
        moved = u + s * s / 2 * np.cross(w, u) + rest * np.cross(w, np.cross(w, u))
        np.testing.assert_allclose(moved, so3.left_jacobian(w) @ u, rtol=0, atol=60 * EPS)


def test_scipy_round_trips():
    rng = np.random.default_rng(6)
    transform = RigidTransform.from_components(rng.normal(size=3), Rotation.random(rng=rng))
    X = Pose.from_scipy(transform)
    np.testing.assert_allclose(X.to_scipy().as_matrix(), transform.as_matrix(), atol=4 * EPS)
    rotation = Rotation.random(rng=rng)
    back = quaternion.to_scipy(quaternion.from_scipy(rotation))
    np.testing.assert_allclose(back.as_matrix(), rotation.as_matrix(), atol=4 * EPS)
    np.testing.assert_allclose(
        quaternion.to_matrix(quaternion.from_scipy(rotation)), rotation.as_matrix(), atol=4 * EPS
    )
    point = rng.normal(size=3)
    np.testing.assert_allclose(X.point(point), transform.apply(point), atol=20 * EPS)

import numpy as np

from alembert.spatial import Ad, Ad_dual, ArticulatedInertia, Force, Motion, RigidInertia, ad, ad_dual, se3
from alembert.spatial.arrays import skew

EPS = np.finfo(float).eps


def random_rigid(rng):
    L = rng.normal(size=(3, 3))
    return RigidInertia.from_com(rng.uniform(0.5, 2), rng.normal(size=3), L @ L.T)


def random_articulated(rng):
    L = rng.normal(size=(6, 6))
    return ArticulatedInertia.from_matrix(L @ L.T)


def test_rigid_inertia_has_the_energy_of_its_mass_points():
    rng = np.random.default_rng(1)
    points, masses = rng.normal(size=(8, 3)), rng.uniform(0.1, 1, 8)
    mass, com = masses.sum(), masses @ points / masses.sum()
    about_com = sum(-m * skew(r - com) @ skew(r - com) for m, r in zip(masses, points, strict=True))
    M = RigidInertia.from_com(mass, com, about_com)
    V = Motion(rng.normal(size=3), rng.normal(size=3))
    speeds = [V.linear + np.cross(V.angular, r) for r in points]
    energy = sum(0.5 * m * u @ u for m, u in zip(masses, speeds, strict=True))
    np.testing.assert_allclose(M.kinetic_energy(V), energy, rtol=50 * EPS)
    momentum = sum(m * u for m, u in zip(masses, speeds, strict=True))
    np.testing.assert_allclose((M @ V).linear, momentum, rtol=100 * EPS)


def test_transforms_and_products_agree_with_their_matrices():
    rng = np.random.default_rng(2)
    for make in (random_rigid, random_articulated):
        for _ in range(10):
            M, X = make(rng), se3.exp(rng.normal(size=6))
            Ad_inverse = np.linalg.inv(Ad(X))
            expected = Ad_inverse.T @ M.matrix() @ Ad_inverse
            np.testing.assert_allclose(M.transform(X).matrix(), expected, atol=1e-12)
            V = rng.normal(size=6)
            np.testing.assert_allclose((M @ Motion.from_vector(V)).vector(), M.matrix() @ V, atol=1e-13)
            other = make(rng)
            np.testing.assert_allclose((M + other).matrix(), M.matrix() + other.matrix())


def test_pose_acts_on_motions_and_forces_as_the_adjoints():
    rng = np.random.default_rng(3)
    X, V, F = se3.exp(rng.normal(size=6)), rng.normal(size=6), rng.normal(size=6)
    motion, force = Motion.from_vector(V), Force.from_vector(F)
    np.testing.assert_allclose(X.motion(motion).vector(), Ad(X) @ V, atol=1e-14)
    np.testing.assert_allclose(X.motion_inverse(X.motion(motion)).vector(), V, atol=1e-14)
    np.testing.assert_allclose(X.force(force).vector(), Ad_dual(X) @ F, atol=1e-14)
    np.testing.assert_allclose(X.force_inverse(X.force(force)).vector(), F, atol=1e-14)
    np.testing.assert_allclose(X.motion(motion).dot(X.force(force)), V @ F, atol=1e-13)
    W = rng.normal(size=6)
    np.testing.assert_allclose(motion.cross(Motion.from_vector(W)).vector(), ad(V) @ W, atol=1e-14)
    np.testing.assert_allclose(motion.cross_force(force).vector(), ad_dual(V) @ F, atol=1e-14)

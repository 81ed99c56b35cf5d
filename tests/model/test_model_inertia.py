"""Inertias of shapes against closed forms and sums over point clouds; sums, shifts, ten-vectors; refusals."""

import numpy as np
import pytest

from alembert.expression import Expression
from alembert.model import Inertia, Placement
from alembert.spatial import RigidInertia
from refusals import model_refusal as refusal

EPS = np.finfo(float).eps
# Gauss-Legendre points of order 8 integrate the polynomials of second degree of every shape below exactly
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def cloud(mass, points, weights):
    """The inertia of point masses, by the definition."""
    weights = mass * weights / weights.sum()
    com = weights @ points / mass
    d = points - com
    tensor = np.einsum("k,kij->ij", weights, np.einsum("ki,ki->k", d, d)[:, None, None] * np.eye(3))
    return Inertia.from_matrix(mass, com, tensor - np.einsum("k,ki,kj->ij", weights, d, d))


def grid(*lengths):
    axes = [length / 2 * NODES for length in lengths]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(lengths))
    weights = np.prod(np.stack(np.meshgrid(*[WEIGHTS] * len(lengths), indexing="ij"), axis=-1), axis=-1)
    return points, weights.ravel()


def assert_same(a, b, atol=1e-14):
    np.testing.assert_allclose(a.mass, b.mass, rtol=1e-15)
    np.testing.assert_allclose(a.com, b.com, atol=atol)
    np.testing.assert_allclose(a.tensor, b.tensor, atol=atol)


def random_inertia(seed):
    rng = np.random.default_rng(seed)
    return cloud(rng.uniform(0.5, 3), rng.normal(size=(6, 3)), rng.uniform(0.5, 1, size=6))


def random_placement(seed):
    rng = np.random.default_rng(seed)
    q_wxyz = rng.normal(size=4)
    return Placement(rng.normal(size=3), q_wxyz / np.linalg.norm(q_wxyz))


def test_box():
    points, weights = grid(0.3, 0.5, 0.8)
    center = np.array([0.1, -0.2, 0.4])
    assert_same(Inertia.box(2.0, (0.3, 0.5, 0.8), center), cloud(2.0, points + center, weights))


def test_rod():
    points, weights = grid(1.0)
    start, end = np.array([0.1, 0.2, 0.3]), np.array([-0.4, 0.9, 1.3])
    along = start + (points + 0.5) * (end - start)
    assert_same(Inertia.rod(1.7, start, end), cloud(1.7, along, weights))
    pendulum = Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)).ten_vector()
    assert pendulum == pytest.approx((1, 0, 0, -0.5, 1 / 3, 0, 1 / 3, 0, 0, 0))


def test_cylinder():
    radius, length, axis = 0.3, 0.9, np.array([2.0, -1.0, 2.0]) / 3
    r, a, z = np.meshgrid(
        radius * (NODES + 1) / 2, 2 * np.pi * np.arange(8) / 8, length / 2 * NODES, indexing="ij"
    )
    weights = (WEIGHTS[:, None, None] * r * WEIGHTS[None, None, :]).ravel()
    e1 = np.cross(axis, [0, 0, 1.0])
    e1 /= np.linalg.norm(e1)
    e2 = np.cross(axis, e1)
    points = (r * np.cos(a))[..., None] * e1 + (r * np.sin(a))[..., None] * e2 + z[..., None] * axis
    expected = cloud(1.4, points.reshape(-1, 3) + np.array([0.0, 0.0, 1.0]), weights)
    assert_same(Inertia.cylinder(1.4, radius, length, axis, (0, 0, 1)), expected)


def test_sphere_and_point():
    r, u, a = np.meshgrid(0.4 * (NODES + 1) / 2, NODES, 2 * np.pi * np.arange(8) / 8, indexing="ij")
    weights = (WEIGHTS[:, None, None] * r**2 * WEIGHTS[None, :, None]).ravel()
    s = np.sqrt(1 - u**2)
    points = np.stack([r * s * np.cos(a), r * s * np.sin(a), r * u], axis=-1).reshape(-1, 3)
    assert_same(Inertia.sphere(1.1, 0.4), cloud(1.1, points, weights))
    assert Inertia.point(2.0, (1, 2, 3)) == Inertia(2.0, (1.0, 2.0, 3.0))


def test_sum_of_two_halves_is_the_whole():
    half = (0.5, 1.0, 2.0)
    left, right = (Inertia.box(1.5, half, (x, 0, 0)) for x in (-0.25, 0.25))
    assert_same(left + right, Inertia.box(3.0, (1.0, 1.0, 2.0)))
    assert left + Inertia() == left
    assert Inertia() + left == left


def test_sum_and_shift_are_those_of_spatial_inertias():
    a, b, X = random_inertia(1), random_inertia(2), random_placement(3)

    def spatial(inertia):
        return RigidInertia.from_com(inertia.mass, np.array(inertia.com), inertia.matrix())

    np.testing.assert_allclose(spatial(a + b).matrix(), spatial(a).matrix() + spatial(b).matrix(), atol=1e-13)
    moved = spatial(a).transform(X.pose()).matrix()
    np.testing.assert_allclose(spatial(a.at(X)).matrix(), moved, atol=1e-13)
    assert_same(a.at(X).at(X.inverse()), a, atol=1e-13)


def test_ten_vector_round_trip():
    a = random_inertia(4)
    assert_same(Inertia.from_ten_vector(a.ten_vector()), a, atol=1e-13)
    assert Inertia.from_ten_vector(np.zeros(10)) == Inertia()
    m, hx, _, _, *about_origin = a.ten_vector()
    assert hx == pytest.approx(m * a.com[0])
    C = np.cross(np.eye(3), a.com)
    expected = a.matrix() + m * C @ C.T
    np.testing.assert_allclose(about_origin, expected[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]], atol=1e-13)


def test_scaled_is_another_density():
    assert_same(Inertia.sphere(1.0, 0.3).scaled(2.5), Inertia.sphere(2.5, 0.3))


def test_helpers_take_expressions():
    values = {"m": 1.3, "l": 0.7, "r": 0.2}
    m, l, r = (Expression(name) for name in values)

    def at_values(inertia):
        numbers = [x.evaluate(values) if isinstance(x, Expression) else x for x in (*inertia.com,)]
        mass = inertia.mass.evaluate(values) if isinstance(inertia.mass, Expression) else inertia.mass
        return Inertia.from_matrix(mass, numbers, inertia.matrix(values))

    for make in (
        lambda m, l, r: Inertia.rod(m, (0, 0, 0), (l, r, 0)),
        lambda m, l, r: Inertia.box(m, (l, r, 0.1), (l / 2, 0, 0)),
        lambda m, l, r: Inertia.cylinder(m, r, l, (0, 0.6, 0.8)),
        lambda m, l, r: Inertia.sphere(m, r) + Inertia.point(2 * m, (l, 0, 0)),
        lambda m, l, r: Inertia.rod(m, (0, 0, 0), (l, 0, 0)).at(Placement.from_rpy((0.3, l, 0), (r, 0, 1))),
        lambda m, l, r: Inertia.box(1.0, (l, r, 0.1)).scaled(m),
    ):
        assert_same(at_values(make(m, l, r)), make(*values.values()))


def test_problems_are_told_with_the_numbers():
    assert random_inertia(5).problem() is None
    assert Inertia().problem() is None
    assert Inertia.rod(1, (0, 0, 0), (1, 0, 0)).problem() is None  # one moment is zero
    assert Inertia(-1.5).problem() == "mass is -1.5, expected a positive number"
    assert Inertia(0.0, tensor=(1, 0, 1, 0, 0, 1)).problem() == (
        "mass is 0 but the principal moments are (1, 1, 1)"
    )
    assert Inertia(1.0, tensor=(-0.1, 0, 1, 0, 0, 1)).problem() == (
        "inertia is not positive: principal moments (-0.1, 1, 1)"
    )
    assert Inertia(1.0, tensor=(1, 0, 1, 0, 0, 3)).problem() == (
        "inertia violates the triangle inequality: principal moments (1, 1, 3), 3 > 1 + 1"
    )
    assert Inertia(1.0, tensor=(1, 0, 1, 0, 0, 2.0001)).problem() is None  # written digits


def test_refusals():
    assert refusal(Inertia, "heavy") == "mass is 'heavy', expected a number or an Expression"
    assert refusal(Inertia, 1.0, (0, 0)) == "centre of mass has 2 entries, expected 3"
    assert refusal(Inertia, 1.0, tensor=(1, 1, 1)) == "inertia tensor has 3 entries, expected 6"
    assert refusal(Inertia, float("nan")) == "mass is nan, expected a finite number"
    assert refusal(Inertia.rod, 1.0, (0, 0), (1, 0, 0)) == "rod start has 2 entries, expected 3"
    assert refusal(Inertia.rod, 1.0, (0, 0, 0), 1) == "rod end is 1, expected 3 numbers"
    assert refusal(Inertia.box, 1.0, (1, 2)) == "box size has 2 entries, expected 3"
    assert refusal(Inertia.cylinder, 1.0, 1.0, 1.0, (1, 1, 0)).startswith("cylinder axis is (1.0, 1.0, 0.0)")
    skewed = [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]
    assert refusal(Inertia.from_matrix, 1.0, (0, 0, 0), skewed).startswith(
        "inertia tensor is not a symmetric 3x3 matrix:\n[[1. "
    )
    assert refusal(Inertia.from_matrix, 1.0, (0, 0, 0), "I") == (
        "inertia tensor is 'I', expected a 3x3 matrix of numbers"
    )
    assert refusal(Inertia.from_ten_vector, range(9)) == "ten-vector has 9 entries, expected 10"
    assert refusal(Inertia.from_ten_vector, [0, 1, *[0] * 8]).endswith("has moments without mass")
    assert refusal(Inertia.from_ten_vector, [Expression("m"), *[0] * 9]).endswith(
        "depends on parameters, expected numbers"
    )
    massless = Inertia(0.0, tensor=(1, 0, 1, 0, 0, 1))
    assert refusal(lambda: massless + massless) == (
        "the sum of two massless inertias with moments has no centre of mass"
    )


def test_a_matrix_for_the_six_entries_names_who_takes_it():
    message = refusal(lambda: Inertia(1.0, (0, 0, 0), np.eye(3)))
    assert message.startswith("inertia tensor is a 3 x 3 matrix, expected (Ixx, Ixy, Iyy, Ixz, Iyz, Izz)")
    assert message.endswith("Inertia.from_matrix takes matrices")
    assert Inertia.from_matrix(1.0, (0, 0, 0), np.eye(3)) == Inertia(1.0, (0, 0, 0), (1, 0, 1, 0, 0, 1))

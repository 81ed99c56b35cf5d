"""Uncertain matrices: exact at corners, and no more copies than the function needs."""

import numpy as np
import pytest

from alembert.control import (
    UncertainSystem,
    least_copies,
    mu_peak,
    parameter,
    uncertain,
    uncertain_system,
)
from alembert.errors import ArgumentError, NumericalError

G = 9.81


def check(matrix, function, copies):
    """The copies expected (as few as the Loewner rank says, where that is reached), and exact at corners and inside."""
    assert dict(matrix.copies) == copies
    for values in matrix.sampled(50):
        np.testing.assert_allclose(matrix.at(**values), function(**values), atol=1e-10)
    least = least_copies(function, matrix.ranges)
    assert all(least[name] <= n for name, n in copies.items())
    return least


def test_belcastro_oscillator():
    """Example 7.3: 1/(s^2 + 2 sigma s + omega^2) has Delta = diag(d_sigma, d_omega, d_omega)."""
    sigma, omega = parameter("sigma", 0.1, 0.3), parameter("omega", 1, 2)
    found = uncertain_system([[0, 1], [-(omega**2), -2 * sigma]], [[0], [1]], [[1, 0]])
    function = lambda sigma, omega: [[0, 1, 0], [-(omega**2), -2 * sigma, 1], [1, 0, 0]]  # noqa: E731
    copies = {"sigma": 1, "omega": 2}
    assert check(found.matrix, function, copies) == copies
    assert [(b.kind, b.rows) for b in found.blocks] == [(b.kind, b.rows) for b in found.matrix.blocks]


def test_belcastro_inseparable_poles():
    """Example 7.2: (b1 s^2 + b2 s + b3)/((s + t1)(s + t2)) with six copies."""
    t1, t2 = parameter("t1", 1, 2), parameter("t2", 3, 4)
    b1, b2, b3 = parameter("b1", 0.5, 1.5), parameter("b2", 1, 3), parameter("b3", 2, 5)
    x1, x2, u = np.eye(3)[:, None, :]
    acceleration = u - t1 * (t2 * x1 + x2) - t2 * x2
    # the acceleration is made once, for the state and for the output
    whole = uncertain([[0, 1, 0], [1, 0, 0], [b1, 0, 1]]) @ uncertain(
        [[acceleration], [x2], [uncertain([[b3, b2, 0]])]]
    )
    function = lambda t1, t2, b1, b2, b3: [  # noqa: E731
        [0, 1, 0],
        [-t1 * t2, -(t1 + t2), 1],
        [b3 - t1 * t2 * b1, b2 - (t1 + t2) * b1, b1],
    ]
    check(whole, function, {"b1": 1, "t1": 1, "t2": 2, "b3": 1, "b2": 1})
    assert sum(whole.copies.values()) == 6


def test_pendulum():
    """m l^2 q'' + c q' + m g l q = u: one copy of m, two of l."""
    m, l = parameter("m", 0.5, 2), parameter("l", 0.5, 1.5)
    q, v, u = np.eye(3)[:, None, :]
    matrix = uncertain([[v], [(1 / l) * (-G * q + (1 / l) * (1 / m) * (u - 0.1 * v))], [q]])
    function = lambda m, l: [[0, 1, 0], [-G / l, -0.1 / (m * l * l), 1 / (m * l * l)], [1, 0, 0]]  # noqa: E731
    copies = {"l": 2, "m": 1}
    assert check(matrix, function, copies) == copies


def test_two_masses_and_cart_pole():
    """One copy of each parameter."""
    m1, m2, k = parameter("m1", 0.5, 2), parameter("m2", 0.5, 2), parameter("k", 0.5, 2)
    x1, x2, v1, v2, u = np.eye(5)[:, None, :]
    force = k * (x2 - x1)
    matrix = uncertain([[v1], [v2], [(1 / m1) * (force + u)], [-(1 / m2) * force], [x2]])

    def masses(m1, m2, k):
        return [
            [0, 0, 1, 0, 0],
            [0, 0, 0, 1, 0],
            [-k / m1, k / m1, 0, 0, 1 / m1],
            [k / m2, -k / m2, 0, 0, 0],
            [0, 1, 0, 0, 0],
        ]

    copies = {"m1": 1, "k": 1, "m2": 1}
    assert check(matrix, masses, copies) == copies
    M, m, l = parameter("M", 1, 3), parameter("m", 0.1, 0.5), parameter("l", 0.3, 1)
    x, angle, v, rate, u = np.eye(5)[:, None, :]
    cart = (1 / M) * (u - m * (G * angle))
    matrix = uncertain([[v], [rate], [cart], [(1 / l) * (G * angle - cart)], [x], [angle]])

    def cart_pole(M, m, l):
        top = [0, -m * G / M, 0, 0, 1 / M]
        return [
            [0, 0, 1, 0, 0],
            [0, 0, 0, 1, 0],
            top,
            [0, (G + m * G / M) / l, 0, 0, -1 / (M * l)],
            [1, 0, 0, 0, 0],
            [0, 1, 0, 0, 0],
        ]

    copies = {"M": 1, "m": 1, "l": 1}
    assert check(matrix, cart_pole, copies) == copies


def test_chain_of_six():
    """Six masses and six springs: twelve parameters, one copy each."""
    n = 6
    masses = [parameter(f"m{i}", 0.5, 2) for i in range(n)]
    springs = [parameter(f"k{i}", 50, 200) for i in range(n)]
    rows = np.eye(2 * n + 1)[:, None, :]
    q, u = rows[:n], rows[2 * n]
    forces = [springs[i] * (q[i] - (q[i - 1] if i else 0 * q[0])) for i in range(n)]
    # each spring pulls at two masses: its force is made once
    pull = uncertain([[f] for f in forces] + [[u]])
    spread = np.zeros((n, n + 1))
    for i in range(n):
        spread[i, i], spread[i, i + 1] = -1, 1
    inverse = uncertain([[1 / masses[i] if i == j else 0 for j in range(n)] for i in range(n)])
    matrix = inverse @ (spread @ pull)
    assert sorted(matrix.copies.values()) == [1] * 12
    values = matrix.sampled(60)[-1]
    K = np.zeros((n, n))
    for i in range(n):
        K[i, i] += values[f"k{i}"]
        if i:
            K[i - 1, i - 1] += values[f"k{i}"]
            K[i, i - 1] -= values[f"k{i}"]
            K[i - 1, i] -= values[f"k{i}"]
    mass = np.array([values[f"m{i}"] for i in range(n)])
    np.testing.assert_allclose(matrix.at(**values)[:, :n], -K / mass[:, None], atol=1e-9)


def test_algebra_is_that_of_matrices():
    rng = np.random.default_rng(0)
    a, b = parameter("a", 1, 2), parameter("b", -1, 3)
    X = uncertain([[a, 1], [b, a * b + 3]])
    Y = rng.normal(size=(2, 2))
    for values in X.sampled(12):
        x = np.array([[values["a"], 1], [values["b"], values["a"] * values["b"] + 3]])
        for found, expected in (
            (X + Y, x + Y),
            (Y - X, Y - x),
            (X @ Y, x @ Y),
            (Y @ X, Y @ x),
            (2 * X, 2 * x),
            (X * a, x * values["a"]),
            (X / a, x / values["a"]),
            (-X, -x),
            (X.inverse(), np.linalg.inv(x)),
            (X @ X.inverse(), np.eye(2)),
        ):
            np.testing.assert_allclose(found.at(**values) if found.copies else found.M22, expected, atol=1e-9)
    assert sum((a - a).copies.values()) == 0


def test_robust_stability_of_an_uncertain_oscillator():
    """x'' + d x' + k x = 0 with d between 0.2 and 1: the parameters may grow by what makes d zero."""
    d, k = parameter("d", 0.2, 1.0), parameter("k", 1.0, 3.0)
    system = uncertain_system([[0, 1], [-k, -d]], [[0], [1]], [[1, 0]])
    assert isinstance(system, UncertainSystem)
    M = system.open()
    n = sum(b.rows for b in system.blocks)
    peak = mu_peak(M[:n, :n], system.blocks)
    # unstable at d = 0: 0.6 - 0.4 t = 0, t = 1.5, or at k = 0: t = 2
    assert peak.margin <= 1.5 * (1 + 1e-6)
    assert peak.margin > 1.0
    np.testing.assert_allclose(system.at(d=0.3, k=2.0).A, [[0, 1], [-2, -0.3]], atol=1e-12)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda a: parameter("x", 2, 1), ArgumentError, "'x' is between 2 and 1, expected a range"),
        (lambda a: a + parameter("a", 0, 1), ArgumentError, r"'a' has the ranges"),
        (lambda a: a.at(b=1.0), ArgumentError, "there is no parameter 'b'; there is a"),
        (lambda a: a**0.5, ArgumentError, "power 0.5"),
        (lambda a: (a - 1.5).inverse(), ArgumentError, "singular at the means"),
        (lambda a: (1 / a).at(a=0.0), NumericalError, "the matrix is infinite"),
        (lambda a: a @ uncertain(np.ones((2, 2))), ArgumentError, "do not multiply"),
        (lambda a: a + uncertain(np.ones((2, 2))), ArgumentError, "do not add"),
        (lambda a: uncertain([[a, 1], [a]]), ArgumentError, "do not fit"),
        (lambda a: uncertain_system([[a]], [[1], [2]], [[1]]), ArgumentError, "which do not fit"),
    ],
)
def test_refusals(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make(parameter("a", 1, 2))

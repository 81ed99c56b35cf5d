"""Every lemma and identity on the spatial operators (Rodriguez, Jain, Kreutz-Delgado 1992), and their algebra."""

import itertools

import numpy as np
import pytest
from operator_helpers import ALL, PLAIN, ROUNDING, assert_equal, case, evaluate, norm

from alembert import REGISTRY, Placement, library, sweeps
from alembert.errors import ArgumentError
from alembert.operators import (
    Blocks,
    I,
    Recursion,
    admittance,
    diagonalising_velocities,
    innovations,
    operators,
    velocities_from_diagonal,
)
from alembert.spatial import Motion, RigidInertia, ad_dual
from alembert.sweeps import operators as steps

plain = pytest.mark.parametrize("name", PLAIN)
every = pytest.mark.parametrize("name", ALL)


def test_the_trees_meet_every_joint_type():
    for name in ALL:
        assert {joint.type.kind for joint in case(name).model.joints} == set(REGISTRY)


# --- definitions and kinematics -----------------------------------------------------------------------------


@every
def test_phi_is_the_sum_of_the_powers_of_a_nilpotent_shift(name):
    """phi = (I - E_phi)^-1 = I + E_phi + ... ; E_phi^n = 0 with n the depth of the tree."""
    c = case(name)
    E, depth = c.ops.E_phi.dense(), max(len(chain) for chain in c.tree.ancestors)
    powers = [np.linalg.matrix_power(E, k) for k in range(depth + 1)]
    assert not np.any(powers[depth])
    assert np.any(powers[depth - 1])
    assert_equal(c.ops.phi, sum(powers[:depth]), c.ops.phi, c.ops.phi)
    assert_equal(c.ops.phi.inverse @ c.ops.phi, np.eye(len(E)), c.ops.phi.inverse, c.ops.phi)


@every
def test_velocities_and_accelerations(name):
    """V = phi^T H^T v, and A - A_0 = phi^T H^T a (3.3 of the notes)."""
    c = case(name)
    o = c.ops
    V = evaluate(sweeps.VELOCITIES, c.model, q=c.q, v=c.v)["V"].ravel()
    assert_equal(o.phi.T @ (o.H.T @ c.v), V, o.phi, o.H, c.v)
    A = evaluate(sweeps.ACCELERATIONS, c.model, q=c.q, v=c.v, a=c.a)["A"].ravel()
    A_0 = evaluate(sweeps.ACCELERATIONS, c.model, q=c.q, v=c.v, a=0 * c.a)["A"].ravel()
    # the difference of two accelerations rounds like the larger of them
    assert_equal(o.phi.T @ (o.H.T @ c.a), A - A_0, A)


@plain
def test_newton_euler_factorisation(name):
    """MM = H phi M phi^T H^T."""
    c = case(name)
    o = c.ops
    assert_equal(o.H @ o.phi @ o.M @ o.phi.T @ o.H.T, c.mass_matrix, o.H @ o.phi, o.M, o.phi.T @ o.H.T)


@every
def test_newton_euler_factorisation_with_armature_and_rotors(name):
    """MM = H phi M phi^T H^T + J_r + H phi R + R^T phi^T H^T."""
    c = case(name)
    o = c.ops
    X = o.H @ o.phi
    M = X @ o.M @ X.T + o.J_r + X @ o.R + o.R.T @ X.T
    assert_equal(M, c.mass_matrix, X, o.M, X)
    assert (name in PLAIN) == (norm(o.J_r) == 0) == (norm(o.R) == 0)


@plain
def test_coriolis_forces(name):
    """CC = H phi (M phi^T a + b), a the bias accelerations and b = V x* M V."""
    c = case(name)
    o = c.ops
    V = o.phi.T @ (o.H.T @ c.v)
    A_0 = evaluate(sweeps.ACCELERATIONS, c.model, q=c.q, v=c.v, a=0 * c.a)["A"].ravel()
    b = np.concatenate(
        [ad_dual(x) @ f for x, f in zip(*(y.reshape(-1, 6) for y in (V, o.M @ V)), strict=True)]
    )
    force = o.M @ (o.phi.T @ (o.phi.T.inverse @ A_0)) + b
    expected = evaluate(sweeps.CORIOLIS_FORCES, c.model, q=c.q, v=c.v)["tau"].ravel()
    assert_equal(o.H @ (o.phi @ force), expected, o.H @ o.phi, o.M, A_0)


@every
def test_body_inertias(name):
    c = case(name)
    for k, ten in enumerate(c.tree.ten_vectors):
        mass, *rest = (float(x) for x in ten)
        xx, xy, yy, xz, yz, zz = rest[3:]
        I_O = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        M = RigidInertia(mass, np.array(rest[:3]), I_O)
        V = np.arange(6.0)
        assert_equal(c.ops.M.entries[k, k] @ V, (M @ Motion(V[:3], V[3:])).vector(), M.matrix(), V)


# --- articulated bodies -------------------------------------------------------------------------------------


@every
def test_riccati_equation(name):
    """(0.25): M = P - E_phi P E_phi^T + K D K^T, which is 002's form where K = E_phi G."""
    o = case(name).ops
    assert_equal(o.P - o.E_phi @ o.P @ o.E_phi.T + o.K @ o.D @ o.K.T, o.M, o.E_phi, o.P, o.E_phi)
    if name in PLAIN:
        reduced = o.P - o.P @ o.H.T @ o.D.inverse @ o.H @ o.P
        assert_equal(o.P - o.E_phi @ reduced @ o.E_phi.T, o.M, o.E_phi, o.P, o.G, o.H, o.E_phi)


@every
def test_definitions(name):
    """(0.26): D, G, K, tau_bar, E_psi, psi."""
    o = case(name).ops
    assert_equal(o.D, o.H @ o.P @ o.H.T + o.J_r, o.H, o.P, o.H)
    assert_equal(o.G @ o.D, o.P @ o.H.T, o.P, o.H, o.D, o.D.inverse)
    assert_equal(o.K @ o.D, o.E_phi @ o.P @ o.H.T + o.R, o.E_phi, o.P, o.H, o.D, o.D.inverse)
    assert_equal(o.tau_bar, I - o.G @ o.H, o.G, o.H)
    assert_equal(o.E_psi, o.E_phi - o.K @ o.H, o.K, o.H)
    assert_equal(o.psi, np.linalg.inv(np.eye(o.psi.shape[0]) - o.E_psi.dense()), o.psi, o.psi.inverse, o.psi)
    if name in PLAIN:
        assert_equal(o.K, o.E_phi @ o.G, o.E_phi, o.G, o.D, o.D.inverse)
        assert_equal(o.E_psi, o.E_phi @ o.tau_bar, o.E_phi, o.G, o.H, o.D, o.D.inverse)


@plain
def test_projections(name):
    """tau_bar P tau^T = 0, tau_bar P = tau_bar P tau_bar^T, tau_bar P H^T = 0, E_psi P H^T = 0."""
    o = case(name).ops
    tau = o.G @ o.H
    zero = np.zeros(o.P.shape)
    factors = (o.tau_bar, o.P, tau, o.D, o.D.inverse)  # G solves with D
    assert_equal(o.tau_bar @ o.P @ tau.T, zero, *factors)
    assert_equal(o.tau_bar @ o.P, o.tau_bar @ o.P @ o.tau_bar.T, *factors)
    assert_equal(o.tau_bar @ o.P @ o.H.T, np.zeros(o.H.T.shape), *factors)
    assert_equal(o.E_psi @ o.P @ o.H.T, np.zeros(o.H.T.shape), o.E_phi, *factors)


@every
def test_lemma_01_innovations_factorisation(name):
    c = case(name)
    o = c.ops
    L = I + o.H @ o.phi @ o.K
    assert_equal(L @ o.D @ L.T, c.mass_matrix, L, o.D, L)
    assert_equal(o.mass_matrix, c.mass_matrix, L, o.D, L)
    blocks = list(itertools.product(enumerate(c.tree.v_slices), repeat=2))
    assert all(not np.any(L.dense()[r, s]) for (i, r), (j, s) in blocks if i > j)  # upper, unit diagonal
    assert all(np.array_equal(L.dense()[s, s], np.eye(s.stop - s.start)) for s in c.tree.v_slices)


@every
def test_lemma_02_inverse_of_the_factor(name):
    o = case(name).ops
    L, X = I + o.H @ o.phi @ o.K, I - o.H @ o.psi @ o.K
    assert_equal(L @ X, np.eye(L.shape[0]), L, X)
    assert_equal(L.inverse, X, L, X)
    assert_equal(X.inverse, L, L, X)
    assert_equal(L.T.inverse, X.T, L, X)


@every
def test_lemma_03_inverse_of_the_mass_matrix(name):
    c = case(name)
    o = c.ops
    X = I - o.H @ o.psi @ o.K
    inverse = X.T @ o.D.inverse @ X
    assert_equal(inverse @ c.mass_matrix, np.eye(c.model.nv), X, o.D.inverse, X, c.mass_matrix)
    assert_equal(o.mass_matrix.inverse, inverse, X, o.D.inverse, X)
    solved = evaluate(sweeps.SOLVE_MASS_MATRIX, c.model, q=c.q, tau=c.tau)["a"].ravel()
    assert_equal(o.mass_matrix.inverse @ c.tau, solved, X, o.D.inverse, X, c.tau)


@every
def test_lemma_04(name):
    o = case(name).ops
    assert_equal((I - o.H @ o.psi @ o.K) @ o.H @ o.phi, o.H @ o.psi, o.H, o.psi, o.K, o.H, o.phi)


@every
def test_free_accelerations_are_a_by_product(name):
    """phi^T H^T MM^-1 T = psi^T H^T D^-1 [I - H psi K] T (step B)."""
    c = case(name)
    o = c.ops
    nu = o.D.inverse @ ((I - o.H @ o.psi @ o.K) @ c.tau)
    alpha = o.psi.T @ (o.H.T @ nu)
    assert_equal(
        alpha, o.phi.T @ (o.H.T @ (o.mass_matrix.inverse @ c.tau)), o.phi, o.mass_matrix.inverse, c.tau
    )
    # the outward half of (A.2): beta' = nu - K^T alpha of the parent
    assert_equal(nu - o.K.T @ alpha, o.mass_matrix.inverse @ c.tau, o.K, o.psi, nu)


@plain
def test_lemma_6(name):
    """M = P - E_psi P E_psi^T."""
    o = case(name).ops
    assert_equal(o.P - o.E_psi @ o.P @ o.E_psi.T, o.M, o.E_phi, o.tau_bar, o.P, o.tau_bar, o.E_phi)


@every
def test_lemma_6_with_armature_and_rotors(name):
    """M + K J_r K^T - K R^T - R K^T = P - E_psi P E_psi^T (ours: Joseph's form of the Riccati equation)."""
    o = case(name).ops
    left = o.M + o.K @ o.J_r @ o.K.T - o.K @ o.R.T - o.R @ o.K.T
    assert_equal(o.P - o.E_psi @ o.P @ o.E_psi.T, left, o.E_phi, o.tau_bar, o.P, o.tau_bar, o.E_phi)


@every
def test_lemma_7a_and_c(name):
    o = case(name).ops
    tilde = o.psi - I
    for product in (o.psi @ o.E_psi, o.E_psi @ o.psi):
        assert_equal(product, tilde, o.psi, o.E_psi)
    assert_equal(o.psi.inverse, o.phi.inverse + o.K @ o.H, o.K, o.H)
    assert_equal(o.psi.inverse @ o.phi, I + o.K @ o.H @ o.phi, o.psi.inverse, o.phi)
    assert_equal(o.phi @ o.psi.inverse, I + o.phi @ o.K @ o.H, o.phi, o.psi.inverse)
    assert_equal(
        (I + o.phi @ o.K @ o.H).inverse, o.psi @ o.phi.inverse, o.psi, o.phi.inverse, o.psi, o.K, o.H
    )


@plain
def test_lemma_7b_and_d(name):
    """psi M psi^T = P + psi~ P + P psi~^T, and H psi M psi^T H^T = D."""
    o = case(name).ops
    tilde = o.psi - I
    assert_equal(o.psi @ o.M @ o.psi.T, o.P + tilde @ o.P + o.P @ tilde.T, o.psi, o.P, o.psi)
    assert_equal(o.H @ o.psi @ o.M @ o.psi.T @ o.H.T, o.D, o.H, o.psi, o.P, o.psi, o.H)


# --- admittance ---------------------------------------------------------------------------------------------


def test_lemma_5_on_a_chain():
    """Omega = Y + psi~^T Y + Y psi~, H^T D^-1 H = Y - E_psi^T Y E_psi."""
    o = case("chain").ops
    tilde = o.psi - I
    assert_equal(o.Omega, o.Upsilon + tilde.T @ o.Upsilon + o.Upsilon @ tilde, o.psi, o.Upsilon, o.psi)
    assert_equal(
        o.H.T @ o.D.inverse @ o.H, o.Upsilon - o.E_psi.T @ o.Upsilon @ o.E_psi, o.E_psi, o.Upsilon, o.E_psi
    )


def test_lemma_5_fails_where_branches_share_a_moving_body():
    """002 states it for trees; there E_psi^T Y E_psi is not block diagonal, nor Omega of branches zero."""
    o = case("branched").ops
    tilde = o.psi - I
    printed = (o.Upsilon + tilde.T @ o.Upsilon + o.Upsilon @ tilde).dense()
    assert np.max(np.abs(printed - o.Omega.dense())) > 0.1


@every
def test_omega_from_upsilon(name):
    """Omega(k, m) = psi^T(c, k) Y(c) psi(c, m), c the outermost body that carries both k and m; else zero."""
    c = case(name)
    o = c.ops
    Omega, psi = o.Omega.dense(), o.psi.dense()
    for k, m in itertools.product(range(len(c.tree)), repeat=2):
        common = next((j for j in c.tree.ancestors[k] if j in c.tree.ancestors[m]), None)
        expected = np.zeros((6, 6))
        if common is not None:
            part = [psi[6 * common : 6 * common + 6, 6 * j : 6 * j + 6] for j in (k, m)]
            expected = part[0].T @ o.Upsilon.entries[common, common] @ part[1]
        assert_equal(Omega[6 * k : 6 * k + 6, 6 * m : 6 * m + 6], expected, o.psi, o.Upsilon, o.psi)
    parts = (o.E_psi.T @ o.Upsilon @ o.E_psi).dense()
    for k in range(len(c.tree)):
        s = slice(6 * k, 6 * k + 6)
        own = o.H.T @ o.D.inverse @ o.H
        assert_equal(own.entries[k, k], o.Upsilon.entries[k, k] - parts[s, s], o.E_psi, o.Upsilon, o.E_psi)


def frames_of(model):
    """Three frames that name every case: a tip, a place on a body, and another tip."""
    return ["tip13", ("body7", Placement.from_rpy((0.3, -0.2, 0.5), (0.1, 0.2, 0.3))), "tip4"]


@every
def test_admittance_of_frames(name):
    """Lambda = B^T Omega B = J MM^-1 J^T, with the Jacobian from the world's columns."""
    c = case(name)
    o, frames = c.ops, frames_of(c.model)
    B, J = o.B(frames), o.jacobian(frames).dense()
    dense = J @ np.linalg.solve(c.mass_matrix, J.T)
    # solving with MM loses its condition number
    factors = (J, np.linalg.inv(c.mass_matrix), J, np.array([[np.linalg.cond(c.mass_matrix)]]))
    assert_equal(B.T @ o.Omega @ B, dense, *factors)
    J_tip = c.model.frame_jacobian(c.q, "tip13")
    assert_equal(J[:6], J_tip, o.phi, o.H)


@pytest.mark.parametrize("name", ["branched", "floating_attached"])
def test_compiled_admittance(name):
    c = case(name)
    frames = [*frames_of(c.model), "world"]
    result = admittance(c.model, c.q, frames)
    B = c.ops.B(frames)
    assert_equal(result, B.T @ c.ops.Omega @ B, B, c.ops.psi, c.ops.Upsilon, c.ops.psi, B)
    assert not np.any(result[18:])
    assert np.max(np.abs(result[:6, 12:18])) > 1e-3  # branches that share a moving body do couple


@every
def test_step_e(name):
    """-MM^-1 J^T f = -[I - H psi K]^T D^-1 H psi B f; (.44) of [RJK] has K x for x in z = psi z + x."""
    c = case(name)
    o, frames = c.ops, frames_of(c.model)
    f = np.linspace(-1, 1, 18)
    x = -(o.B(frames) @ f)
    z = o.psi @ x
    nu = o.D.inverse @ (o.H @ z)
    beta = nu - o.K.T @ (o.psi.T @ (o.H.T @ nu))
    expected = -(o.mass_matrix.inverse @ (o.jacobian(frames).T @ f))
    assert_equal(beta, expected, o.phi, o.mass_matrix.inverse, o.phi, f)


# --- factors and velocities ---------------------------------------------------------------------------------


@every
def test_innovations_program(name):
    c = case(name)
    found = evaluate(steps.INNOVATIONS, c.model, q=c.q)
    L = I + c.ops.H @ c.ops.phi @ c.ops.K
    # the program works about the world's origin, some metres away: larger lever arms than those of phi
    assert_equal(found["L"], L, L, c.ops.phi)
    assert_equal(found["D"], c.ops.D, c.ops.D)


@every
def test_diagonalising_velocities(name):
    """n = [I + H phi K]^T v, T = 1/2 n^T D n, and back."""
    c = case(name)
    o = c.ops
    n = evaluate(steps.DIAGONALISING_VELOCITIES, c.model, q=c.q, v=c.v)["n"].ravel()
    L = I + o.H @ o.phi @ o.K
    assert_equal(n, L.T @ c.v, L, c.v)
    T = evaluate(sweeps.KINETIC_ENERGY, c.model, q=c.q, v=c.v)["T"].item()
    assert n @ (o.D @ n) / 2 == pytest.approx(T, rel=ROUNDING)
    back = evaluate(steps.VELOCITIES_FROM_DIAGONAL, c.model, q=c.q, n=n)["speeds"].ravel()
    assert_equal(back, c.v, L.inverse, L, c.v)


def test_compiled_over_a_batch_and_with_parameters():
    model = library.random_tree(
        5, bodies=4, kinds=("revolute", "spherical", "prismatic"), attachments=True, parameters=True
    )
    rng = np.random.default_rng(0)
    q = np.stack([model.random_configuration(rng) for _ in range(6)]).reshape(2, 3, -1)
    v = rng.normal(size=(2, 3, model.nv))
    factors = innovations(model, q)
    M = factors.L @ factors.D @ np.swapaxes(factors.L, -1, -2)
    np.testing.assert_allclose(M, model.mass_matrix(q), rtol=0, atol=ROUNDING * np.max(np.abs(M)))
    n = diagonalising_velocities(model, q, v)
    assert n.shape == v.shape
    T = np.einsum("...i,...ij,...j->...", n, factors.D, n) / 2
    np.testing.assert_allclose(T, model.kinetic_energy(q, v), rtol=ROUNDING)
    L = np.linalg.norm(factors.L, ord=2, axis=(-1, -2)).max()
    np.testing.assert_allclose(velocities_from_diagonal(model, q, n), v, atol=ROUNDING * L**2)
    Lam = admittance(model, q, ["tip2", "tip4"])
    assert Lam.shape == (2, 3, 12, 12)
    B = operators(model, q[1, 2]).B(["tip2", "tip4"])
    expected = (B.T @ operators(model, q[1, 2]).Omega @ B).dense()
    np.testing.assert_allclose(Lam[1, 2], expected, atol=ROUNDING * np.max(np.abs(expected)))


# --- the algebra --------------------------------------------------------------------------------------------


def test_operators_act_on_columns_rows_and_matrices():
    c = case("floating_attached")
    o = c.ops
    L = I + o.H @ o.phi @ o.K
    rng = np.random.default_rng(1)
    for op in (o.H, o.phi, o.psi.T, o.tau_bar, L, L.T, o.mass_matrix, o.Omega, 2.5 * o.phi - o.psi, -L):
        rows, columns = op.shape
        dense = op.dense()
        assert dense.shape == (rows, columns)
        x, X, y = rng.normal(size=columns), rng.normal(size=(columns, 3)), rng.normal(size=rows)
        assert_equal(op.apply(x), dense @ x, dense, x)
        assert_equal(op @ X, dense @ X, dense, X)
        assert_equal(y @ op, y @ dense, dense, y)
        assert_equal(op.T.dense(), dense.T, dense)


def test_sums_products_and_scalars():
    o = case("branched").ops
    phi, psi, P = o.phi.dense(), o.psi.dense(), o.P.dense()
    assert_equal(2 * o.phi @ o.P - o.psi * 3.0, 2 * phi @ P - 3 * psi, phi, P, psi)
    assert_equal(I - o.phi, np.eye(len(phi)) - phi, phi)
    assert_equal(o.phi - I, phi - np.eye(len(phi)), phi)
    assert_equal(I + (o.phi + o.psi), np.eye(len(phi)) + phi + psi, phi, psi)
    assert_equal(-(o.phi + o.P), -(phi + P), phi, P)
    assert o.phi @ I is o.phi
    assert I @ o.phi is o.phi
    assert repr(I) == "I"
    assert isinstance(o.E_phi @ o.tau_bar, Blocks)  # products of few blocks stay few blocks
    assert isinstance((I - o.E_phi).inverse, Recursion)


def test_inverses_of_triangular_blocks():
    """D + N with N strictly triangular: by a recursion, upper and lower."""
    o = case("branched").ops
    X = o.P + o.E_phi
    for op in (X, X.T):
        assert_equal(op.inverse @ op, np.eye(X.shape[0]), op.inverse, op)
    assert_equal(o.P.inverse, np.linalg.inv(o.P.dense()), o.P.inverse, o.P, o.P.inverse)


def test_application_is_linear_in_the_number_of_bodies():
    """The recursion visits each block once, and composition forms no dense matrix."""
    counts = []
    for n in (10, 20, 40):
        o = operators(library.chain(n), np.full(n, 0.1))
        factors = (o.mass_matrix.inverse).factors
        counts.append(sum(_blocks(factor) for factor in factors))
    assert counts[1] - 2 * counts[0] == pytest.approx(0, abs=20)
    assert counts[2] - 2 * counts[1] == pytest.approx(0, abs=20)


def _blocks(op):
    parts = getattr(op, "factors", None) or getattr(op, "terms", None)
    return sum(map(_blocks, parts)) if parts else len(op._moves)


def test_refusals():
    c = case("branched")
    o, n, nv = c.ops, len(c.tree), c.model.nv
    with pytest.raises(
        ArgumentError, match=rf"shape \({nv}, {6 * n}\): x has shape \({nv},\), expected \({6 * n},"
    ):
        o.H @ np.ones(nv)
    with pytest.raises(ArgumentError, match="do not compose"):
        o.H @ o.H
    with pytest.raises(ArgumentError, match="do not add"):
        o.H + o.phi
    for op in (o.H, o.phi + o.psi, o.E_phi @ o.E_phi.T + o.E_phi, o.H @ o.phi):
        with pytest.raises(ArgumentError, match="no inverse"):
            op.inverse
    with pytest.raises(ArgumentError, match="not strictly triangular"):
        Recursion(o.P)
    with pytest.raises(ArgumentError, match=r"operators: q has shape \(3,\), expected"):
        operators(c.model, np.zeros(3))
    with pytest.raises(ArgumentError, match="admittance: frames is 'tip1', expected a list"):
        admittance(c.model, c.q, "tip1")
    with pytest.raises(ArgumentError, match=r"B: frames is \[\]"):
        o.B([])
    with pytest.raises(ArgumentError, match="no frame 'tipp1'"):
        admittance(c.model, c.q, ["tipp1"])

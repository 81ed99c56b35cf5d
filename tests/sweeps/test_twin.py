"""Forward dynamics as optimal control (D'Eleuterio and Damaren 1991): one sweep for both, Gibbs' function as the cost."""

import re
from pathlib import Path

import numpy as np
import pytest
from operator_helpers import ALL, PLAIN, ROUNDING, assert_equal, case, evaluate
from scipy.linalg import block_diag, solve_discrete_are

from alembert import sweeps
from alembert.errors import ArgumentError, NumericalError
from alembert.sweeps import dynamics, linear_quadratic
from alembert.sweeps.linear_quadratic import LQProblem, Stage, solve_lq
from alembert.sweeps.twin import forward_dynamics_as_lq, gibbs_function

every = pytest.mark.parametrize("name", ALL)


def by_kkt(problem):
    """Inputs, states and costates by the dense optimality conditions, (35)-(37), and their matrix."""
    n = np.cumsum([0, *(len(s.M) for s in problem.stages)])
    m = np.cumsum([0, *(s.B.shape[1] for s in problem.stages)])
    M = block_diag(*(s.M for s in problem.stages))
    R = block_diag(*(s.R for s in problem.stages))
    N, A = np.zeros((n[-1], m[-1])), np.eye(n[-1])
    B, c = np.zeros((n[-1], m[-1])), np.concatenate([s.c for s in problem.stages])
    h, t = (np.concatenate([getattr(s, name) for s in problem.stages]) for name in "ht")
    for k, s in enumerate(problem.stages):
        x, u = slice(n[k], n[k + 1]), slice(m[k], m[k + 1])
        B[x, u] = s.B
        if s.parent < 0:
            c[x] += s.A @ problem.initial
            t[u] -= s.N.T @ problem.initial
        else:
            parent = slice(n[s.parent], n[s.parent + 1])
            A[x, parent] = -s.A
            N[parent, u] = s.N
    zero = np.zeros((n[-1], n[-1]))
    kkt = np.block([[M, N, A.T], [N.T, R, -B.T], [A, -B, zero]])
    solution = np.linalg.solve(kkt, np.concatenate([-h, t, c]))
    x, u, costates = np.split(solution, [n[-1], n[-1] + m[-1]])
    return u, x, costates, kkt


def twin(name):
    c = case(name)
    wrench = np.random.default_rng(8).normal(size=(len(c.tree), 6))
    return c, wrench, forward_dynamics_as_lq(c.model, c.q, c.v, c.tau, wrench=wrench)


def stacked(parts):
    return np.concatenate(parts)


# --- forward dynamics ---------------------------------------------------------------------------------------


def test_the_steps_are_those_of_forward_dynamics():
    assert linear_quadratic.eliminate is dynamics.eliminate
    assert linear_quadratic.respond is dynamics.respond
    steps = [sweep.step for sweep in sweeps.FORWARD_DYNAMICS.sweeps]
    assert steps[-2:] == [linear_quadratic.eliminate, linear_quadratic.respond]


@every
def test_the_inputs_are_the_accelerations(name):
    c, wrench, problem = twin(name)
    solution = solve_lq(problem)
    a = evaluate(sweeps.FORWARD_DYNAMICS, c.model, q=c.q, v=c.v, tau=c.tau, wrench=wrench)["a"].ravel()
    # both solve with MM; what they solve for are sums of forces of the size of MM a
    assert_equal(stacked(solution.inputs), a, c.ops.mass_matrix.inverse, c.mass_matrix, a)
    u, x, costates, kkt = by_kkt(problem)
    accuracy = np.array([[np.linalg.cond(kkt)]])
    assert_equal(stacked(solution.inputs), u, accuracy, np.concatenate([u, x, costates]))
    assert_equal(stacked(solution.states), x, accuracy, np.concatenate([u, x, costates]))
    assert_equal(stacked(solution.costates), costates, accuracy, np.concatenate([u, x, costates]))


@every
def test_the_states_and_costates_are_accelerations_and_forces(name):
    """x = A - A_0 of the bodies; -lambda is what each joint transmits, as inverse dynamics finds it."""
    c, wrench, problem = twin(name)
    solution = solve_lq(problem)
    a = stacked(solution.inputs)
    A, A_0 = (
        evaluate(sweeps.ACCELERATIONS, c.model, q=c.q, v=c.v, a=x)["A"].ravel() for x in (a, np.zeros_like(a))
    )
    assert_equal(stacked(solution.states), A - A_0, A)
    program = sweeps.Program(
        "forces", sweeps.INVERSE_DYNAMICS.given, sweeps.INVERSE_DYNAMICS.sweeps, {"f": "node"}
    )
    f = evaluate(program, c.model, q=c.q, v=c.v, a=a, wrench=wrench)["f"].ravel()
    assert_equal(-stacked(solution.costates), f, c.ops.phi, c.ops.M, A)


@every
def test_the_cost_to_go_is_the_articulated_inertia(name):
    """S_k of the paper is P, its gain K_k is K^T of [RJK]."""
    c, _, problem = twin(name)
    solution = solve_lq(problem)
    for k, parent in enumerate(c.tree.parents):
        assert_equal(solution.P[k], c.ops.P.entries[k, k], c.ops.P)
        if parent >= 0:
            assert_equal(solution.gains[k], c.ops.K.entries[parent, k].T, c.ops.K, c.ops.D, c.ops.D.inverse)


@pytest.mark.parametrize("name", PLAIN)
def test_joseph_form(name):
    """(42): S_P = M_P + sum (A - B K)^T S (A - B K)."""
    c, _, problem = twin(name)
    solution = solve_lq(problem)
    expected = [s.M.copy() for s in problem.stages]
    for s, S, K in zip(problem.stages, solution.P, solution.gains, strict=True):
        if s.parent >= 0:
            expected[s.parent] += (s.A - s.B @ K).T @ S @ (s.A - s.B @ K)
    for S, other in zip(solution.P, expected, strict=True):
        assert_equal(S, other, c.ops.E_phi, c.ops.tau_bar, c.ops.P, c.ops.tau_bar, c.ops.E_phi)


# --- Gibbs' function ----------------------------------------------------------------------------------------


def size_of_terms(c, a):
    """The cost is a sum of terms A^T M A, larger than itself, with A the accelerations against gravity."""
    A = evaluate(sweeps.ACCELERATIONS, c.model, q=c.q, v=c.v, a=a)["A"].reshape(-1, 6)
    A[:, 3:] += 10.0
    return float(np.abs(A.ravel()) @ np.abs(c.ops.M.dense()) @ np.abs(A.ravel()))


@every
def test_gibbs_function_is_least_at_the_true_accelerations(name):
    """J(a) = 1/2 a^T MM a - a^T (tau - bias), so J(a) - J(a*) = 1/2 (a - a*)^T MM (a - a*)."""
    c, wrench, problem = twin(name)
    solution = solve_lq(problem)
    a_true = stacked(solution.inputs)

    def gibbs(a):
        return gibbs_function(c.model, c.q, c.v, a, c.tau, wrench=wrench)

    size = size_of_terms(c, a_true)
    bias = evaluate(sweeps.INVERSE_DYNAMICS, c.model, q=c.q, v=c.v, wrench=wrench)["tau"].ravel()
    assert gibbs(0 * c.a) == 0
    assert gibbs(a_true) == solution.cost
    assert gibbs(a_true) == pytest.approx(-a_true @ c.mass_matrix @ a_true / 2, abs=ROUNDING * size)
    assert gibbs(c.a) == pytest.approx(
        c.a @ c.mass_matrix @ c.a / 2 - c.a @ (c.tau - bias), abs=ROUNDING * size
    )
    for scale in (1e-2, 1.0, 10.0):
        d = scale * c.a
        expected = d @ c.mass_matrix @ d / 2
        assert expected > 0
        assert gibbs(a_true + d) - gibbs(a_true) == pytest.approx(expected, abs=ROUNDING * size)


@every
def test_the_gradient_of_gibbs_function_is_the_equation_of_motion(name):
    """dJ/da = ID(a) - tau; the central difference of a quadratic is exact but for rounding."""
    c, wrench, problem = twin(name)
    slices = c.tree.v_slices
    cost = lambda a: problem.cost([a[s] for s in slices])  # noqa: E731
    residual = (
        evaluate(sweeps.INVERSE_DYNAMICS, c.model, q=c.q, v=c.v, a=c.a, wrench=wrench)["tau"].ravel() - c.tau
    )
    gradient = np.array([(cost(c.a + e) - cost(c.a - e)) / 2 for e in np.eye(c.model.nv)])
    np.testing.assert_allclose(gradient, residual, rtol=0, atol=ROUNDING * size_of_terms(c, c.a))


# --- in time ------------------------------------------------------------------------------------------------


def double_integrator(steps, *, dt=0.1):
    A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([[dt**2 / 2], [dt]])
    return A, B, LQProblem([Stage(A, B, np.diag([1.0, 0.1]), R=[[0.01]])] * steps, initial=[1.0, 0.0])


def test_regulator_of_a_double_integrator():
    A, B, problem = double_integrator(60)
    solution = solve_lq(problem)
    u, x, _, kkt = by_kkt(problem)
    accuracy = ROUNDING * np.linalg.cond(kkt)
    np.testing.assert_allclose(stacked(solution.inputs), u, atol=accuracy)
    np.testing.assert_allclose(stacked(solution.states), x, atol=accuracy)
    # far from the end the gain is that of the infinite horizon; the closed loop forgets by 0.8 per step
    P = solve_discrete_are(A, B, np.diag([1.0, 0.1]), np.array([[0.01]]))
    K = np.linalg.solve(B.T @ P @ B + 0.01, B.T @ P @ A)
    np.testing.assert_allclose(solution.gains[0], K, rtol=1e-9)
    np.testing.assert_allclose(solution.P[0], P, rtol=1e-9)
    assert solution.cost == pytest.approx(problem.cost(solution.inputs))
    assert np.linalg.norm(solution.states[-1]) < 1e-3


def random_problem(seed, parents, sizes, *, coupled):
    """Everything there is in (2), with dimensions that change from stage to stage."""
    rng = np.random.default_rng(seed)
    start = rng.normal(size=3)
    stages = []
    for parent, (n, m) in zip(parents, sizes, strict=True):
        width = 3 if parent < 0 else sizes[parent][0]
        W, Q = rng.normal(size=(n, n)), rng.normal(size=(m, m))
        stages.append(
            Stage(
                A=rng.normal(size=(n, width)),
                B=rng.normal(size=(n, m)),
                M=W @ W.T,
                h=rng.normal(size=n),
                t=rng.normal(size=m),
                R=Q @ Q.T + np.eye(m),
                N=0.1 * rng.normal(size=(width, m)) if coupled else None,
                c=rng.normal(size=n),
                parent=parent,
            )
        )
    return LQProblem(stages, start)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("parents", [(-1, 0, 1, 2, 3), (-1, 0, 0, 2, 2, 1, -1)], ids=["chain", "tree"])
def test_stages_of_any_size_with_all_terms(parents, coupled):
    sizes = [(2, 1), (4, 2), (3, 3), (1, 1), (5, 0), (2, 4), (3, 2)][: len(parents)]
    problem = random_problem(len(parents), parents, sizes, coupled=coupled)
    solution = solve_lq(problem)
    u, x, costates, kkt = by_kkt(problem)
    accuracy = ROUNDING * np.linalg.cond(kkt) * np.max(np.abs(np.concatenate([u, x, costates])))
    np.testing.assert_allclose(stacked(solution.inputs), u, atol=accuracy)
    np.testing.assert_allclose(stacked(solution.states), x, atol=accuracy)
    np.testing.assert_allclose(
        stacked(solution.states), stacked(problem.states(solution.inputs)), atol=accuracy
    )
    if not coupled:
        np.testing.assert_allclose(stacked(solution.costates), costates, atol=accuracy)
    for k, s in enumerate(problem.stages):
        x_P = problem.parent_state(s, solution.states)
        np.testing.assert_allclose(
            solution.inputs[k], solution.offsets[k] - solution.gains[k] @ x_P, atol=accuracy
        )


def test_the_minimum_is_one():
    problem = random_problem(4, (-1, 0, 1, 1), [(2, 1), (3, 2), (2, 2), (3, 1)], coupled=True)
    solution = solve_lq(problem)
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = [u + 1e-3 * rng.normal(size=u.shape) for u in solution.inputs]
        assert problem.cost(other) > solution.cost


def test_refusals():
    eye = np.eye(2)
    with pytest.raises(
        ArgumentError, match=r"stage 0: h has shape \(3,\), expected \(2,\); x_P, x and u have 2"
    ):
        LQProblem([Stage(eye, eye, eye, h=np.zeros(3))])
    with pytest.raises(ArgumentError, match=r"stage 1: A has shape \(2, 3\), expected \(2, 2\)"):
        LQProblem([Stage(eye, eye, eye), Stage(np.zeros((2, 3)), eye, eye)])
    with pytest.raises(ArgumentError, match="stage 0: M is not symmetric"):
        LQProblem([Stage(eye, eye, np.array([[1.0, 2.0], [0.0, 1.0]]))])
    with pytest.raises(ArgumentError, match="stage 0 hangs from stage 3, expected -1 or an earlier one"):
        LQProblem([Stage(eye, eye, eye, parent=3)])
    with pytest.raises(ArgumentError, match=r"A and B have shapes \(2, 2\) and \(2,\), not matrices"):
        LQProblem([Stage(eye, np.zeros(2), eye)])
    with pytest.raises(NumericalError, match=r"stage 0: .* no minimum over the input: .* eigenvalue -1"):
        solve_lq(LQProblem([Stage(eye, eye, -eye)]))
    with pytest.raises(ArgumentError, match="stage 0: M is not finite"):
        LQProblem([Stage(eye, eye, np.diag([1.0, np.inf]))])
    with pytest.raises(NumericalError, match="stage 1: the cost is not finite"):
        solve_lq(LQProblem([Stage(eye, eye, eye), Stage(eye, 1e200 * eye, 1e200 * eye)]))
    c = case("chain")
    nv = c.model.nv
    with pytest.raises(
        ArgumentError, match=rf"forward_dynamics_as_lq: tau has shape \(1,\), expected \({nv},\)"
    ):
        forward_dynamics_as_lq(c.model, c.q, c.v, [1.0])
    with pytest.raises(ArgumentError, match=rf"gibbs_function: a has shape \(2,\), expected \({nv},\)"):
        gibbs_function(c.model, c.q, c.v, [1.0, 2.0], c.tau)


def test_the_examples_in_the_docs_run():
    page = Path(__file__).parents[2] / "docs" / "theory-sweeps.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    exec("\n".join(blocks), {})

"""Optimal control of flexible bodies: a boom turned from rest to rest without leaving it shaking."""

import numpy as np
import pytest

import alembert as al
from alembert.flexible import beam
from alembert.optimal import Problem, effort, lagrange_form


@pytest.fixture(scope="module")
def model():
    builder = al.ModelBuilder("slew", gravity=(0, 0, 0))
    hub = al.Inertia(1.0, (0, 0, 0), (0.2, 0, 0.2, 0, 0, 0.2))
    builder.body("hub", hub, joint=al.Revolute((0, 0, 1)), joint_name="pin")
    builder.body("boom", beam(1.0, 1.0, EI_z=1.0, bending_y=1), joint=al.Fixed(), parent="hub")
    return builder.build()


@pytest.fixture(scope="module")
def problem(model):
    end = model.configuration({"pin": 0.2})
    return Problem(model, 2.0, start={"q": 0, "v": 0}, end={"q": end, "v": 0}, cost=effort())


def test_rest_to_rest(model, problem):
    """Only the joint is driven. The least effort is that of the linear system, by its reachability Gramian."""
    assert problem.plant.controls == ("pin",)
    M, K = model.mass_matrix(np.zeros(2)), np.zeros((2, 2))
    K[1, 1] = model.body("boom").flexible.array("stiffness")[0, 0]
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, K), np.zeros((2, 2))]])
    B = np.concatenate([np.zeros(2), np.linalg.solve(M, [1.0, 0.0])])[:, None]
    import scipy.linalg

    # the Gramian by the exponential of a block matrix (Van Loan)
    block = scipy.linalg.expm(2.0 * np.block([[-A, B @ B.T], [np.zeros((4, 4)), A.T]]))
    W = block[4:, 4:].T @ block[:4, 4:]
    goal = np.array([0.2, 0, 0, 0])
    least = goal @ np.linalg.solve(W, goal) / 2
    for transcription, error in (
        ("rk4", 2e-2),
        ("dmoc", 2e-2),
    ):  # of second order in the step, (0.1 * 6)^2 / 24
        found = problem.solve(40, transcription=transcription)
        assert found.success
        # rotation stiffens the boom by the square of 0.2 rad/s over that of 6 rad/s
        assert found.cost == pytest.approx(least, rel=error)
        np.testing.assert_allclose(found.q[-1], [0.2, 0.0], atol=1e-6)
        np.testing.assert_allclose(found.v[-1], 0.0, atol=1e-6)


def test_conditions_and_limits_by_name(model):
    stated = Problem(
        model,
        2.0,
        start={"q": 0, "v": 0},
        end={"q": {"pin": 0.2, "boom": 0.0}, "v": {"pin": 0.0}},
        limits={"q": {"boom": 0.1}},
    )
    assert {row.name for row in stated.end} >= {"q boom.bending_y_1", "q pin", "v pin"}


def test_messages(model, problem):
    with pytest.raises(al.ArgumentError, match=r"no joint or actuator 'boom\.bending_y_1'"):
        Problem(model, 1.0, actuated=["boom.bending_y_1"])
    with pytest.raises(
        al.UnsupportedError, match="'dmocc' does not take flexible bodies, as 'boom' is; choose 'dmoc'"
    ):
        problem.solve(4, transcription="dmocc")
    with pytest.raises(al.UnsupportedError, match="lagrange_form does not take flexible bodies"):
        lagrange_form(problem, 4)
    builder = al.ModelBuilder("named")
    builder.body("boom", beam(1.0, 1.0, EI_z=1.0, bending_y=1), joint=al.Revolute(), joint_name="boom")
    with pytest.raises(al.ModelError, match="a joint is called 'boom' as the flexible body is"):
        builder.build()

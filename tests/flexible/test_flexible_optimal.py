"""Optimal control of flexible bodies: a boom turned from rest to rest without leaving it shaking."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.flexible import beam
from alembert.optimal import Problem, effort, lagrange_form
from alembert.optimal.dmoc import Dmoc, Dmocc


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
        ("dmocc", 2e-2),
    ):  # of second order in the step, (0.1 * 6)^2 / 24
        found = problem.solve(40, transcription=transcription)
        assert found.success
        # rotation stiffens the boom by the square of 0.2 rad/s over that of 6 rad/s
        assert found.cost == pytest.approx(least, rel=error)
        np.testing.assert_allclose(found.q[-1], [0.2, 0.0], atol=1e-6)
        np.testing.assert_allclose(found.v[-1], 0.0, atol=1e-6)


def test_directors_of_bodies_that_deform():
    """Momenta of a discrete step by directors and by the joints' own coordinates differ by the order of both, two.

    Half the step then leaves a quarter of the difference; the next order, of steps of 0.01 at speeds of 1, is some percent.
    """
    builder = al.ModelBuilder("two clouds", gravity=(1.0, 2.0, -9.81))
    builder.body("one", al.flexible.random_particles(1), joint=al.Revolute((0, 1, 0)), joint_name="a")
    builder.body("link", al.Inertia.point(0.3, (0.2, 0, 0)), joint=al.Revolute(), parent="one", node="p3")
    builder.body("two", al.flexible.random_particles(2), joint=al.Fixed(), parent="link")
    cloud = builder.build()
    plant = Dmoc().plant(Problem(cloud, 1.0, start={"q": 0, "v": 0}))
    q, e, tau = (ca.SX.sym(name, cloud.nv) for name in ("q", "e", "tau"))
    h, none = ca.SX.sym("h"), ca.SX(0, 1)
    momenta = [
        ca.Function(
            "momenta", [q, e, h, tau], [ca.horzcat(*way.momenta(plant, none, q, e, h, tau, none)[:2])]
        )
        for way in (Dmoc(), Dmocc())
    ]
    rng = np.random.default_rng(0)
    q0, v, force = 0.2 * rng.normal(size=cloud.nv), *rng.normal(size=(2, cloud.nv))
    before_and_after, impulse = [], []
    for step in (0.01, 0.005):
        one, two = (np.asarray(way(q0, step * v, step, force)) for way in momenta)
        before_and_after.append(np.abs(one - two).max())
        impulse.append(np.abs(np.diff(one - two)).max() / step)
    assert before_and_after[0] / before_and_after[1] == pytest.approx(4.0, rel=0.1)
    assert impulse[0] / impulse[1] == pytest.approx(4.0, rel=0.1)


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
    soft = al.flexible.with_stiffening(model, "ruthless")
    with pytest.raises(al.UnsupportedError, match=r"ruthless body 'boom' have no energy.*choose 'dmoc'"):
        Problem(soft, 2.0, start={"q": 0, "v": 0}).solve(4, transcription="dmocc")
    with pytest.raises(al.UnsupportedError, match="lagrange_form does not take flexible bodies"):
        lagrange_form(problem, 4)
    builder = al.ModelBuilder("named")
    builder.body("boom", beam(1.0, 1.0, EI_z=1.0, bending_y=1), joint=al.Revolute(), joint_name="boom")
    with pytest.raises(al.ModelError, match="a joint is called 'boom' as the flexible body is"):
        builder.build()


def test_modes_too_fast_for_explicit_steps_are_told():
    """Steps of 0.1 s, where those of the explicit scheme are stable up to 2.8 / omega."""
    builder = al.ModelBuilder("stiff", gravity=(0, 0, 0))
    body = beam(1.0, 1.0, EI_z=100.0, bending_y=2)
    builder.body("boom", body, joint=al.Revolute((0, 0, 1)), joint_name="pin")
    model = builder.build()
    rest = {"q": {"pin": 1.0}, "v": {"pin": 0.0}}
    stiff = Problem(model, 1.0, start={"q": 0, "v": 0}, end=rest, cost=effort())
    lost = stiff.solve(10, transcription="rk4")
    assert not lost.success
    words = "the mode 'boom.bending_y_2' at 220 rad/s is too fast for explicit steps of 0.1 s ('rk4'): take"
    assert words in lost.message
    assert stiff.solve(10, transcription="radau").converged

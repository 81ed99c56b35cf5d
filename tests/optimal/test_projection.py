"""Loops and prescribed joints in transcriptions that project their steps."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.optimal import SCHEMES, Problem, System, effort, running
from alembert.optimal.stages import cut
from alembert.verify.mechanisms import four_bars, parallelogram


def linkage():
    """A four-bar of unequal bars, driven at its crank."""
    builder = al.ModelBuilder("four_bar", gravity=(0.0, 0.0, -9.81))
    hinge = al.Revolute((0.0, -1.0, 0.0))
    lengths = {"crank": 0.4, "coupler": 1.1, "rocker": 0.9}
    rods = {name: al.Inertia.rod(2.0 * l, (0, 0, 0), (l, 0, 0)) for name, l in lengths.items()}
    builder.body("crank", rods["crank"], joint=hinge, joint_name="drive")
    builder.body(
        "coupler", rods["coupler"], joint=hinge, joint_name="knee", parent="crank", placement=(0.4, 0, 0)
    )
    builder.body("rocker", rods["rocker"], joint=hinge, joint_name="pivot", placement=(1.2, 0, 0))
    builder.frame("coupler_end", "coupler", (1.1, 0, 0)).frame("rocker_end", "rocker", (0.9, 0, 0))
    builder.loop("pin", hinge, "coupler_end", "rocker_end").actuator("motor", "drive")
    return builder.build()


def lifted(**more):
    model = linkage()
    q = model.assemble([0.0, 0.8, 1.8], fixed=["drive"]).q
    given = {"start": {"q": q, "v": 0}, "end": {"q": {"drive": 1.0}, "v": 0}} | more
    return Problem(model, 1.0, **given)


@pytest.mark.parametrize("name", [name for name in SCHEMES if not name.startswith("dmoc")])
def test_steps_end_on_the_loop(name):
    """Steps of 0.025 and 0.05 s from a moving four-bar with a torque: closed in position and speed to rounding.

    The multipliers of the projection are of the size of the scheme's error: twice the step, 2^(order + 1) times as
    large (half of that is asked for).
    """
    problem = lifted()
    model = problem.model
    q = model.assemble([0.3, 0.8, 1.8], fixed=["drive"]).q
    v = model.assemble(q, [1.0, 0.0, 0.0], fixed=["drive"]).v
    sizes = []
    for steps in (40, 20):
        stages = cut(problem, SCHEMES[name], steps)
        momenta = stages.plant.momenta
        own = np.concatenate([q, stages.plant.tree.mass_matrix(q) @ v if momenta else v])
        x = np.concatenate([own, np.full(stages.memory, 3.0)])
        u, p = np.full(len(stages.u_names), 3.0), stages.parameters
        z = ca.SX.sym("z", len(stages.z_names))
        after, _, c, _ = stages.stage(x, u, z, stages.numbers[0], p)
        solve = ca.rootfinder("solve", "newton", {"x": z, "g": c}, {"abstol": 1e-13})
        found = solve(x0=np.zeros(z.numel()))["x"]
        point = ca.Function("after", [z], [after])(found).full()[:, 0]
        q1, rest = point[: model.nq], point[model.nq : model.nq + model.nv]
        v1 = stages.plant.tree.solve_mass_matrix(q1, rest) if momenta else rest
        assert np.abs(model.constraint_residual(q1)).max() < 1e-12
        assert np.abs(model.constraint_jacobian(q1) @ v1).max() < 1e-11
        sizes.append(np.abs(found.full()[-2:]).max())
    assert np.log2(sizes[1] / sizes[0]) > stages.scheme.order


def test_a_parallelogram_is_a_single_body_also_for_runge_and_kutta():
    """Its angles are equal and opposite also in the middle of a step, so the steps are those of one angle."""
    model = four_bars(1)
    q, _ = parallelogram(model, 0.5, 0)
    problem = Problem(
        model,
        1.0,
        start={"q": q, "v": 0},
        end={"q": {"foot0": -0.5}, "v": 0},
        actuated=["foot0"],
    )
    single = System(["q", "w"], ["tau"], lambda s: [s.w, (s.tau + 2 * 9.81 * ca.sin(s.q)) / (5 / 3)])
    reference = Problem(single, 1.0, start={"q": 0.5, "w": 0}, end={"q": -0.5, "w": 0})
    closed, alone = (p.solve(20, transcription="rk4") for p in (problem, reference))
    assert closed.cost == pytest.approx(alone.cost, rel=1e-10)
    np.testing.assert_allclose(closed.state("q foot0"), alone.state("q"), atol=1e-9)
    assert closed.check.largest < 1e-3  # order 4, and the upright is unstable


def test_the_optimum_is_that_of_dmocc_with_many_steps():
    """Order 2 of DMOCC against order 4: its error falls by four when the steps are halved."""
    accurate = lifted().solve(40, transcription="hermite-simpson", solver="ipopt")
    assert accurate.success
    assert np.abs(accurate.model.constraint_residual(accurate.q)).max() < 1e-8  # of the solver
    coarse, fine = (lifted().solve(N, transcription="dmocc", guess=accurate) for N in (20, 40))
    off = [abs(s.cost / accurate.cost - 1) for s in (coarse, fine)]
    assert off[1] < 1e-3
    assert 3.3 < off[0] / off[1] < 4.7
    np.testing.assert_allclose(fine.q, accurate.q, atol=5e-3)


def test_periodic_motion_of_a_linkage():
    """It ends as it starts, with one equation for its one freedom and one for the speed."""
    model = linkage()
    cost = effort(0.01) + running(lambda s: 50 * (s.q[0] - 0.5 * ca.sin(2 * np.pi * s.t)) ** 2)
    near = {"q": {"drive": (-1, 1), "knee": (-2, 4), "pivot": (0, 4)}}
    solution = Problem(model, 1.0, start=near, cost=cost, periodic=True).solve(20)
    assert solution.success
    assert solution.stages.end_names == ("periodic q drive", "periodic p drive")
    np.testing.assert_allclose(solution.q[-1], solution.q[0], atol=1e-9)
    np.testing.assert_allclose(solution.v[-1], solution.v[0], atol=1e-8)
    assert np.ptp(solution.q[:, 0]) > 0.5


def test_prescribed_joints_are_where_they_should_be():
    """Steps of order 2 and 4, joints exact at the nodes."""
    problem = Problem(
        al.library.two_link(),
        1.0,
        prescribed={"shoulder": lambda t: 0.5 * ca.sin(3 * t)},
        start={"q": {"elbow": 0}, "v": {"elbow": 0}},
        end={"q": {"elbow": 1.0}, "v": {"elbow": 0}},
    )
    solution = problem.solve(20, transcription="trapezoidal")
    assert solution.success
    np.testing.assert_allclose(solution.q[:, 0], 0.5 * np.sin(3 * solution.time), atol=1e-12)
    np.testing.assert_allclose(solution.v[:, 0], 1.5 * np.cos(3 * solution.time), atol=1e-12)

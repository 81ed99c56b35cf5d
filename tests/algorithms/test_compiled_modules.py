"""How many modules LLVM makes: none for a second model of the same joints, nor for new numbers in a solved problem."""

import dataclasses

import numpy as np
import pytest
import scipy.linalg

import alembert as al
from alembert.constraints import kernels
from alembert.engine import loader
from alembert.optimal import evaluation
from alembert.sweeps import form
from alembert.verify.mechanisms import four_bars, parallelogram


@pytest.fixture
def unknown(monkeypatch, tmp_path):
    """Nothing is known from other tests or processes."""
    monkeypatch.setenv("ALEMBERT_CACHE", str(tmp_path))
    monkeypatch.setattr(form, "_FORMS", {})
    monkeypatch.setattr(evaluation, "_KERNELS", {})


@pytest.fixture
def compiled(monkeypatch, unknown):
    """The lengths of the modules of kernels; nothing is compiled again because it runs often."""
    found: list[int] = []
    original = loader.compile_ir

    def counted(text, target, **options):
        if "@alembert_kernel(" in text or "alembert_stage" in text:
            found.append(len(text))
        return original(text, target, **options)

    monkeypatch.setattr(loader, "compile_ir", counted)
    monkeypatch.setattr(loader, "RUNS", 10**12)
    monkeypatch.setattr(loader, "PER_CHARACTER", 10**12)
    return found


def another(arm: al.Model) -> al.Model:
    """Other masses and moments of inertia."""
    bodies = tuple(
        dataclasses.replace(
            body,
            inertia=dataclasses.replace(
                body.inertia,
                mass=1.3 * body.inertia.mass,
                tensor=tuple(1.4 * x for x in body.inertia.tensor),
            ),
        )
        for body in arm.bodies
    )
    return arm.replace(bodies=bodies)


def test_a_second_arm_of_the_same_joints_compiles_nothing(compiled):
    first = al.library.make("arm7")
    x = np.full(7, 0.1)
    for k, arm in enumerate((first, another(first))):
        arm.forward_dynamics(x, x, x)
        arm.inverse_dynamics(x, x, x)
        arm.forward_dynamics_derivatives(x, x, x)
        al.simulate(arm, x, x, duration=0.01, step=1e-3, integrator="rk4")
        al.simulate(arm, x, x, duration=0.01, step=1e-3, integrator="variational")
        if k == 0:
            assert 3 <= len(compiled) <= 5  # lists of operations need none
            assert (
                max(compiled) < 50_000
            )  # characters: no straight code of the model, which has 150 000 and more
            compiled.clear()
    assert compiled == []


def test_new_numbers_in_a_solved_problem_compile_nothing(compiled):
    model = al.library.make("acrobot")
    q = model.neutral()

    def solve(duration=1.0, start=0.0, goal=0.1, most=1000.0, weight=1.0, steps=10):
        problem = al.optimal.Problem(
            model,
            duration,
            start={"q": q + start, "v": 0 * q},
            end={"q": q + goal, "v": 0 * q},
            cost=weight * al.optimal.effort(),
            limits={"tau": {"shoulder": most, "elbow": most}},
            actuated=["shoulder", "elbow"],
        )
        problem.solve(steps)

    solve()
    assert compiled
    compiled.clear()
    solve(duration=1.2)
    solve(steps=13)
    solve(start=0.05)
    solve(goal=0.12)
    solve(most=900.0)
    solve(weight=2.5)
    assert compiled == []


@pytest.fixture
def made(monkeypatch, unknown):
    """The titles of kernels for which expressions are made or read."""
    found: list[str] = []
    original = loader.in_steps

    def counted(key, lanes, title, build, names, **options):
        def noted(target):
            found.append(title)
            return build(target)

        return original(key, lanes, title, noted, names, **options)

    monkeypatch.setattr(loader, "in_steps", counted)
    return found


def moved(model: al.Model) -> al.Model:
    """Other masses and, where joints are apart, other distances."""
    joints = tuple(
        dataclasses.replace(
            joint,
            placement=dataclasses.replace(
                joint.placement,
                translation=tuple(1.0 if abs(x) == 1.0 else 1.03 * x for x in joint.placement.translation),
            ),
        )
        for joint in model.joints
    )
    return another(model).replace(joints=joints)


@pytest.mark.parametrize("name", ["arm7", "satellite"])
def test_a_second_model_of_one_form_makes_no_stages(made, name):
    """Stages of optimal control are made once for a form; the solutions are those of each model."""
    costs = []
    for model in (first := al.library.make(name), moved(first), first):
        q = model.neutral()
        problem = al.optimal.Problem(
            model,
            1.0,
            start={"q": q, "v": 0},
            end={"q": model.integrate(q, np.full(model.nv, 0.1)), "v": 0},
            cost=al.optimal.effort(),
            limits=None,
            actuated=list(model.speed_names),
        )
        solution = problem.solve(6, progress=False)
        assert solution.success
        costs.append(solution.cost)
        if len(costs) == 1:
            assert any(title.startswith("optimal control") for title in made)
            made.clear()
    assert not [title for title in made if title.startswith("optimal control")]
    assert costs[1] > 1.1 * costs[0]  # heavier
    assert costs[2] == pytest.approx(costs[0], rel=1e-9)  # nothing of the other model is left


@pytest.mark.parametrize("name", ["arm7", "humanoid"])
def test_a_second_model_of_one_form_makes_no_variational_steps(made, name):
    """The motion is that of the model, not of the first of its form, as another integrator has it."""
    ends = []
    for k, model in enumerate((first := al.library.make(name), moved(first))):
        v = np.full(model.nv, 0.3)
        q = model.integrate(model.neutral(), v)
        options = {"duration": 0.1, "step": 1e-3}
        run = al.simulate(model, q, v, **options, integrator="variational")
        assert ("simulate" in made) == (k == 0)
        ends.append(run.q[-1])
        other = al.simulate(model, q, v, **options, integrator="rk4")
        assert np.abs(run.q[-1] - other.q[-1]).max() < 1e-5  # order 2: h^2 is 1e-6
        made.clear()
    assert np.abs(ends[0] - ends[1]).max() > 1e-4


def test_a_second_model_with_loops_makes_no_equations(compiled, monkeypatch):
    """Neither constraints nor the equations of the tree under them; the motion is that of the model."""
    graphs = []
    original = kernels.graph
    monkeypatch.setattr(kernels, "graph", lambda model: graphs.append(model) or original(model))
    found = []
    for k, model in enumerate((first := another(four_bars(3)), another(first))):
        q, v = parallelogram(model, 0.4, 0.7)
        tau = np.linspace(-1.0, 1.0, model.nv)
        a = model.forward_dynamics(q, v, tau)
        model.forward_dynamics_derivatives(q, v, tau)
        al.simulate(model, q, v, duration=0.01, step=1e-3, integrator="rk4")
        run = al.simulate(model, q, v, duration=0.01, step=1e-3, integrator="variational")
        assert np.abs(model.constraint_residual(run.q)).max() < 1e-12  # closed at every node, to rounding
        assert len(graphs) == 1
        if k:
            assert not compiled
        # on motions that keep the loops closed, nothing but the efforts works
        G = model.constraint_jacobian(q)
        N = scipy.linalg.null_space(G, rcond=1e-9)
        tree = model.constrained_compute.rows.unconstrained
        left = N.T @ (tree.inverse_dynamics(q, v, a) - tau)
        assert (
            np.abs(left).max() < 1e-10 * np.abs(tree.inverse_dynamics(q, v, a)).max()
        )  # rounding, times 1e5
        found.append(a)
        compiled.clear()
    assert np.abs(found[0] - found[1]).max() > 1e-2

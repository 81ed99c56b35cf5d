"""How many modules LLVM makes: none for a second model of the same joints, nor for new numbers in a solved problem."""

import dataclasses

import numpy as np
import pytest

import alembert as al
from alembert.engine import loader


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The lengths of the modules of kernels; with an empty cache, and nothing compiled again because it runs often."""
    found: list[int] = []
    original = loader.compile_ir

    def counted(text, target, **options):
        if "@alembert_kernel(" in text or "alembert_stage" in text:
            found.append(len(text))
        return original(text, target, **options)

    monkeypatch.setattr(loader, "compile_ir", counted)
    monkeypatch.setattr(loader, "RUNS", 10**12)
    monkeypatch.setattr(loader, "PER_CHARACTER", 10**12)
    monkeypatch.setenv("ALEMBERT_CACHE", str(tmp_path))
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
            assert 5 <= len(compiled) <= 8  # one for each, and what a variational run starts with
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

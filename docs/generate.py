"""Write the tables of docs/joints.md: from the joint registry, and by running all algorithms on all joints.

`make docs` runs it; `tests/test_docs_generated.py` holds the page to it. Text between `<!-- generated: NAME -->`
and `<!-- end -->` is replaced, the rest of the page is written by hand.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import alembert as al
from alembert import operators
from alembert.joints import REGISTRY
from alembert.library import example_joint

PAGE = Path(__file__).parent / "joints.md"
SECTION = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

GROUPS = [list(REGISTRY)[k : k + 2] for k in range(0, len(REGISTRY), 2)]
"""joint types that go into one model"""
State = tuple[np.ndarray, np.ndarray, np.ndarray]
"""q, v, and a third vector over the speeds."""


def _last(model: al.Model) -> str:
    return model.bodies[-1].name


def _export(model: al.Model, state: State) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        model.export_c("forward_dynamics", folder)
    return 0.0


ALGORITHMS: dict[str, Callable[[al.Model, State], Any]] = {
    "forward_dynamics": lambda m, x: m.forward_dynamics(*x),
    'forward_dynamics(method="factorise")': lambda m, x: m.forward_dynamics(*x, method="factorise"),
    'forward_dynamics(method="conjugate_gradients")': lambda m, x: m.forward_dynamics(
        *x, method="conjugate_gradients"
    ),
    "inverse_dynamics": lambda m, x: m.inverse_dynamics(*x),
    "hybrid_dynamics": lambda m, x: (
        m.hybrid_dynamics(
            x[0], x[1], accelerations={j: x[2][m.v_slice(j)] for j in m.joint_indices if j != "first"}
        ).efforts
    ),
    "bias_forces": lambda m, x: m.bias_forces(x[0], x[1]),
    "gravity_forces": lambda m, x: m.gravity_forces(x[0]),
    "coriolis_forces": lambda m, x: m.coriolis_forces(x[0], x[1]),
    "mass_matrix": lambda m, x: m.mass_matrix(x[0]),
    "inverse_mass_matrix": lambda m, x: m.inverse_mass_matrix(x[0]),
    "multiply_mass_matrix": lambda m, x: m.multiply_mass_matrix(x[0], x[2]),
    "solve_mass_matrix": lambda m, x: m.solve_mass_matrix(x[0], x[2]),
    "frame_pose": lambda m, x: m.frame_pose(x[0], _last(m)).translation,
    "frame_velocity": lambda m, x: m.frame_velocity(x[0], x[1], _last(m)),
    "frame_acceleration": lambda m, x: m.frame_acceleration(*x, _last(m)),
    "frame_jacobian": lambda m, x: m.frame_jacobian(x[0], _last(m)),
    "frame_jacobian_rate": lambda m, x: m.frame_jacobian_rate(x[0], x[1], _last(m)),
    "center_of_mass": lambda m, x: m.center_of_mass(x[0]),
    "momentum": lambda m, x: m.momentum(x[0], x[1]),
    "momentum_matrix": lambda m, x: m.momentum_matrix(x[0]),
    "kinetic_energy": lambda m, x: m.kinetic_energy(x[0], x[1]),
    "potential_energy": lambda m, x: m.potential_energy(x[0]),
    "energy": lambda m, x: m.energy(x[0], x[1]),
    "power": lambda m, x: m.power(*x),
    "integrate": lambda m, x: m.integrate(x[0], x[1]),
    "difference": lambda m, x: m.difference(m.neutral(), x[0]),
    "rate": lambda m, x: m.rate(x[0], x[1]),
    "inverse_dynamics_derivatives": lambda m, x: m.inverse_dynamics_derivatives(*x).dq,
    "forward_dynamics_derivatives": lambda m, x: m.forward_dynamics_derivatives(*x).dq,
    "hybrid_dynamics_derivatives": lambda m, x: (
        m.hybrid_dynamics_derivatives(x[0], x[1], accelerations={"first": 1.0}).dq
    ),
    "jvp": lambda m, x: m.jvp("forward_dynamics", x, (x[1], x[1], x[2]))[1],
    "vjp": lambda m, x: m.vjp("forward_dynamics", x, x[2])[0],
    "hessian": lambda m, x: m.hessian("inverse_dynamics", x, x[2]),
    "second_derivatives": lambda m, x: m.second_derivatives("inverse_dynamics", x),
    "export_c": _export,
    "symbolic": lambda m, x: np.asarray(m.symbolic.forward_dynamics(*x)),
    "operators.operators": lambda m, x: operators.operators(m, x[0]).mass_matrix.dense(),
    "operators.innovations": lambda m, x: operators.innovations(m, x[0]).L,
    "operators.diagonalising_velocities": lambda m, x: operators.diagonalising_velocities(m, x[0], x[1]),
    "operators.velocities_from_diagonal": lambda m, x: operators.velocities_from_diagonal(m, x[0], x[1]),
    "operators.admittance": lambda m, x: operators.admittance(m, x[0], ["first_body", _last(m)]),
}


def model_with(*kinds: str) -> al.Model:
    """A chain that begins with a hinge and goes on with joints of these kinds."""
    builder = al.ModelBuilder(f"with_{'_'.join(kinds)}")
    solid = al.Inertia.box(1.0, (0.1, 0.2, 0.3), (0.1, 0.05, 0.0))
    builder.body("first_body", solid, joint=al.Revolute(), joint_name="first")
    parent = "first_body"
    for kind in kinds:
        name = f"{kind}_body"
        builder.body(
            name,
            solid,
            joint=example_joint(kind, 1),
            joint_name=kind,
            parent=parent,
            placement=(0.1, 0.0, 0.3),
        )
        parent = name
    return builder.build()


def columns(*kinds: str) -> dict[str, list[str]]:
    """What each algorithm does with these joint types: `yes`, or the error.

    What takes all of them in one model takes each.
    """
    model = model_with(*kinds)
    rng = np.random.default_rng(0)
    start = model.integrate(model.neutral(), rng.uniform(-0.5, 0.5, size=model.nv))
    v, x = rng.normal(size=(2, model.nv))
    found = [_outcome(run, model, (start, v, x)) for run in ALGORITHMS.values()]
    if len(kinds) == 1 or set(found) == {"yes"}:
        return dict.fromkeys(kinds, found)
    return {kind: columns(kind)[kind] for kind in kinds}


def _outcome(run: Callable[[al.Model, State], Any], model: al.Model, state: State) -> str:
    try:
        result = run(model, state)
    except al.UnsupportedError as error:
        return str(error)
    if not np.all(np.isfinite(result)):
        raise AssertionError(f"{model.name}: an algorithm gives {result}")
    return "yes"


def joint_types() -> str:
    """One line per joint type."""
    rows = []
    for kind, cls in REGISTRY.items():
        joint = example_joint(kind, 1)
        q, v = np.full(joint.nq, 0.3), np.full(joint.nv, 0.7)
        constant = joint.nv == 0 or joint.bias(q, v) is None or not np.any(np.abs(joint.bias(q, v)) > 1e-12)
        rows.append(
            [
                f"`{kind}`",
                f"`{cls.__name__}`",
                str(joint.nq),
                str(joint.nv),
                _entries(joint.coordinates),
                _entries(joint.speeds),
                "yes" if constant else "no",
                "add" if joint.is_vector_space else "compose",
            ]
        )
    head = ["kind", "class", "nq", "nv", "coordinates q", "speeds v", "S constant", "displacements"]
    return _table(head, rows)


def _entries(entries: tuple[tuple[str, str], ...]) -> str:
    """`x, y [m], angle [rad]`: a unit stands after the last of those that have it."""
    parts = []
    for k, (label, unit) in enumerate(entries):
        last = k + 1 == len(entries) or entries[k + 1][1] != unit
        parts.append(f"{label} [{unit}]" if last and unit else label)
    return ", ".join(parts)


def joint_algorithms(columns: dict[str, list[str]]) -> str:
    head = ["", *columns]
    rows = [[f"`{name}`", *(columns[kind][k] for kind in columns)] for k, name in enumerate(ALGORITHMS)]
    return _table(head, rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell or ' ' for cell in line)} |\n" for line in lines)


def sections(text: str) -> dict[str, str]:
    """The generated parts of a page by their names."""
    return {
        name: body
        for _, name, body in re.findall(r"(<!-- generated: (\w+) -->\n)(.*?)<!-- end -->", text, re.DOTALL)
    }


def filled(text: str, parts: dict[str, str]) -> str:
    return SECTION.sub(lambda match: match[1] + parts[match[2]] + match[3], text)


NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?")


def steady(before: str, now: str) -> str:
    """The new text, but with the lines of the old one that differ by rounding: those are not news."""
    old, new = before.splitlines(keepends=True), now.splitlines(keepends=True)
    if len(old) != len(new):
        return now
    return "".join(x if _alike(x, y) else y for x, y in zip(old, new, strict=True))


def _alike(x: str, y: str) -> bool:
    if NUMBER.sub("#", x) != NUMBER.sub("#", y):
        return False
    pairs = zip(NUMBER.findall(x), NUMBER.findall(y), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-11) for a, b in pairs)


if __name__ == "__main__":
    found = {
        "joint_types": joint_types(),
        "joint_algorithms": joint_algorithms(
            {kind: found for kinds in GROUPS for kind, found in columns(*kinds).items()}
        ),
    }
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")

"""Steps reach their parents through the attachment of their node only; a rigid body is carried through it unchanged."""

import ast
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import alembert
from alembert import flexible, library, sensitivity, sweeps
from alembert.sensitivity import inverse_dynamics, products, regressor
from alembert.spatial import Force, Motion
from alembert.sweeps import Program, Tree, expressions, twin
from alembert.sweeps import operators as spatial_operators
from alembert.sweeps import program as programs
from alembert.sweeps.kinds import kinds
from alembert.sweeps.node import Node, Record, RigidAttachment

MODULES = (sweeps, sensitivity, spatial_operators, twin, inverse_dynamics, regressor)
PROGRAMS = {
    program.name: program
    for module in MODULES
    for program in vars(module).values()
    if isinstance(program, Program)
}
for dynamics in ("inverse_dynamics", "forward_dynamics", "hybrid_dynamics"):
    for derived in (products.tangent, products.adjoint):
        named = derived(PROGRAMS[dynamics], tuple(PROGRAMS[dynamics].given))[0]
        PROGRAMS[named.name] = named


class ModalAttachment(RigidAttachment):
    """To a parent with no modes, by the formulas for any number of them: V + T v, and (F, T^T F)."""

    T = ca.SX(6, 0)

    def receive(self, record, name):
        value = super().receive(record, name)
        if isinstance(value, Motion):
            value = Motion.from_vector(value.vector() + self.T @ ca.SX(0, 1))
        return value

    def deliver(self, record, contributions):
        for value in contributions.values():
            if isinstance(value, Force):
                assert (self.T.T @ value.vector()).shape == (0, 1)
        super().deliver(record, contributions)


def model():
    """Every type of joint, springs, friction, armature and rotors."""
    return library.random_tree(5, bodies=11, attachments=True)


def function(program, tree):
    model = tree.model
    sizes = {"q": (model.nq,), "v": (model.nv,), "node6": (len(tree), 6)}
    given = {name: ca.SX.sym(name, *sizes[extent]) for name, extent in program.given.items()}
    found = expressions(program, tree, given, tree.parameter_symbols)
    return ca.Function("f", [*given.values()], [ca.densify(value) for value in found.values()])


def instructions(f):
    return [
        (f.instruction_id(k), f.instruction_input(k), f.instruction_output(k))
        for k in range(f.n_instructions())
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rigid_body_through_the_interface(name, monkeypatch):
    """The same instructions, hence the same bits at the same speed."""
    tree = Tree.of(model())
    direct = function(PROGRAMS[name], tree)
    monkeypatch.setattr(Node, "attachment", ModalAttachment())
    monkeypatch.setattr(programs, "GRAPHS", {})
    through = function(PROGRAMS[name], tree)
    assert instructions(through) == instructions(direct)
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=direct.size_in(k)) for k in range(direct.n_in())]
    for one, other in zip(direct.call(inputs), through.call(inputs), strict=True):
        np.testing.assert_array_equal(one.full(), other.full())


def test_an_attachment_can_answer_otherwise(monkeypatch):
    """A parent that turns the places where its children hang: seen in their motion, felt in its own load."""

    class Spinning(RigidAttachment):
        def receive(self, record, name):
            value = super().receive(record, name)
            if name == "V" and record.parent.has("node"):
                value = value + Motion(ca.SX([0.0, 0.0, 2.0]), ca.SX(3, 1))
            return value

    chain = library.arm7()
    tree = Tree.of(chain)
    velocities = function(sweeps.VELOCITIES, tree)
    inputs = [np.zeros(chain.nq), np.zeros(chain.nv)]
    assert not np.any(velocities(*inputs).full())
    monkeypatch.setattr(Node, "attachment", Spinning())
    monkeypatch.setattr(programs, "GRAPHS", {})
    found = function(sweeps.VELOCITIES, tree)(*inputs).full()
    assert not np.any(found[0])  # hangs from the world
    assert np.isclose(np.linalg.norm(found[1, :3]), 2.0)


def test_nodes_on_different_carriers_are_of_different_kinds():
    """Revolute joints on rigid bodies, and on a node of a flexible one."""
    builder = alembert.ModelBuilder("chain")
    boom = flexible.beam(1.0, 1.0, EI_z=1.0, bending_y=2)
    hinge = alembert.Revolute((0.0, 1.0, 0.0))
    builder.body("a", alembert.Inertia.sphere(1.0, 0.1), joint=hinge)
    builder.body("b", alembert.Inertia.sphere(1.0, 0.1), joint=hinge, parent="a")
    builder.body("boom", boom, joint=hinge, parent="b")
    builder.body("c", alembert.Inertia.sphere(1.0, 0.1), joint=hinge, parent="boom", node="tip")
    tree = Tree.of(builder.build())
    found = kinds(tree)
    on_modes = {tree.joints[k].name for kind in found if kind.structure.carrier.modes for k in kind.nodes}
    assert on_modes == {"c_joint"}
    assert {tree.joints[k].name for kind in found if kind.structure.stiffening for k in kind.nodes} == {
        "boom"
    }


def test_steps_name_their_parents_nowhere():
    """`b.parent` is for attachments and for those who make the records."""
    root = Path(alembert.__file__).parent
    own = {"program.py", "node.py", "attachment.py"}
    for path in [*root.glob("sweeps/*.py"), *root.glob("sensitivity/*.py")]:
        if path.name in own:
            continue
        for function_ in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function_, ast.FunctionDef):
                continue
            first = function_.args.args[:1]
            steps = [
                a for a in first if isinstance(a.annotation, ast.Name) and a.annotation.id == Record.__name__
            ]
            for step in steps:
                reached = [
                    node.lineno
                    for node in ast.walk(function_)
                    if isinstance(node, ast.Attribute)
                    and node.attr == "parent"
                    and isinstance(node.value, ast.Name)
                    and node.value.id == step.arg
                ]
                assert not reached, f"{path.name}:{reached}: {function_.name} reaches its parent by hand"

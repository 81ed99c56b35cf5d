"""Graphs of steps: what a step leaves is made once for a structure, and copied for other nodes and models."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.sensitivity.inverse_dynamics import INVERSE_DYNAMICS_AND_DERIVATIVES
from alembert.sweeps import FORWARD_DYNAMICS, Tree, expressions
from alembert.sweeps import program as programs
from alembert.sweeps.node import Record

PROGRAMS = {"forward": FORWARD_DYNAMICS, "derivatives": INVERSE_DYNAMICS_AND_DERIVATIVES}


def function(program, model):
    tree = Tree.of(model)
    sizes = {"q": (model.nq,), "v": (model.nv,), "node6": (len(tree), 6)}
    given = {name: ca.SX.sym(name, *sizes[extent]) for name, extent in program.given.items()}
    found = expressions(program, tree, given, tree.parameter_symbols)
    return ca.Function(
        "f", [*given.values(), tree.parameter_symbols], [ca.densify(x) for x in found.values()]
    )


@pytest.fixture
def graphs(monkeypatch):
    """None are known at the beginning."""
    monkeypatch.setattr(programs, "GRAPHS", {})
    return lambda: sum(map(len, programs.GRAPHS.values()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_copies_are_what_the_steps_leave(name, graphs, monkeypatch):
    """On trees with every joint and bodies with modes, and the code is as long.

    Sums are in the same order and simplifications the same up to the order of factors, so that the results differ by
    some roundings of the largest entry.
    """
    for model in (al.library.random_tree(5, bodies=11, attachments=True), al.library.satellite()):
        copied = function(PROGRAMS[name], model)
        with monkeypatch.context() as patch:
            patch.setattr(programs, "apply", lambda step, *records: step(*records))
            made = function(PROGRAMS[name], model)
        rng = np.random.default_rng(6)
        inputs = [rng.normal(size=made.size_in(k)) for k in range(made.n_in())]
        inputs[0] = model.random_configuration(rng)
        for one, other in zip(copied.call(inputs), made.call(inputs), strict=True):
            scale = np.max(np.abs(other.full()), initial=1.0)
            np.testing.assert_allclose(one.full(), other.full(), rtol=0, atol=1e-10 * scale)
        assert copied.n_instructions() <= 1.02 * made.n_instructions() + 5


def test_known_joints_need_no_new_graphs(graphs):
    """A longer chain, and an arm with other masses and lengths."""
    chain, arm = al.library.chain(6), al.library.arm7()
    function(FORWARD_DYNAMICS, chain)
    function(FORWARD_DYNAMICS, arm)
    known = graphs()
    function(FORWARD_DYNAMICS, al.library.chain(8))
    heavier = [
        replace(b, inertia=replace(b.inertia, mass=1.5 * b.inertia.mass, com=(0.1, 0.2, 0.3)))
        for b in arm.bodies
    ]
    longer = [
        replace(j, placement=replace(j.placement, translation=(0.1, 0.0, 0.4))) if k else j
        for k, j in enumerate(arm.joints)
    ]
    function(FORWARD_DYNAMICS, arm.replace(bodies=tuple(heavier), joints=tuple(longer)))
    assert graphs() == known


def test_steps_that_know_more_than_they_read_are_run(graphs):
    """A step made within a function may hold what no record shows."""
    factor = 3.0

    def scale(b):
        b.E = factor * b.q[0]

    tree = Tree.of(al.library.two_link())
    record = Record(node=tree.nodes(ca.SX(0, 1))[0], q=ca.SX.sym("q", 1))
    programs.apply(scale, record)
    assert record.has("E")
    assert not graphs()


def test_as_many_graphs_as_there_is_room_for(graphs, monkeypatch):
    monkeypatch.setattr(programs, "MOST_GRAPHS", 3)
    function(FORWARD_DYNAMICS, al.library.chain(3))
    assert 0 < graphs() <= 3

"""Records, steps and programs."""

import casadi as ca
import numpy as np
import pytest

from alembert import library, sweeps
from alembert.sweeps import Program, Tree, expressions
from alembert.sweeps.dynamics import unit_columns
from alembert.sweeps.node import Record
from alembert.sweeps.program import inward, outward


def test_a_missing_field_says_that_no_step_made_it():
    with pytest.raises(AttributeError, match="no step before this one has left 'velocity'"):
        Record().velocity


def test_contributions_add_up():
    record = Record(z=1)
    record.add(z=2, P=5)
    record.add(P=6)
    assert (record.z, record.P) == (3, 11)
    assert record.has("P")
    assert not record.has("F")


def test_a_program_of_ones_own():
    """Depth of a body outward, number of bodies outboard inward, in the order of the nodes."""

    def deepen(b):
        b.depth = (b.receive("depth") if b.is_offered("depth") else ca.SX(0)) + 1

    def count(b):
        b.count = (b.count if b.has("count") else ca.SX(0)) + 1
        b.deliver(count=b.count)

    model = library.random_tree(8, bodies=9, kinds=["revolute", "free", "planar"])
    program = Program(
        "survey",
        {"q": "q"},
        (outward(deepen), inward(count)),
        {"depth": "node", "count": "node"},
        total=("count",),
    )
    q = ca.SX.sym("q", model.nq)
    found = expressions(program, Tree.of(model), {"q": q}, ca.SX(0, 1))
    bodies = [body.name for body in model.bodies]
    assert set(found) == {"depth", "count"}
    depth = np.array(ca.DM(found["depth"]).full().ravel())
    np.testing.assert_array_equal(depth, [model.depth(body) for body in bodies])
    assert float(ca.DM(found["count"])) == 9  # the total takes the place of the column of the same name


@pytest.mark.parametrize(
    "program", [p for p in vars(sweeps).values() if isinstance(p, Program)], ids=lambda p: p.name
)
def test_inputs_left_out_are_zero(program):
    model = library.random_tree(2, bodies=4, kinds=["revolute", "spherical", "screw"], attachments=True)
    tree = Tree.of(model)
    sizes = {"q": (model.nq, 1), "v": (model.nv, 1), "node6": (len(tree), 6)}
    if not set(program.given.values()) <= set(sizes):
        pytest.skip("takes other inputs")
    q = ca.DM(model.neutral())
    given = {name: ca.SX.zeros(*sizes[extent]) for name, extent in program.given.items()} | {"q": ca.SX(q)}
    if "free" in given:
        given["free"] = ca.SX.ones(model.nv)
    needed = {name: value for name, value in given.items() if name in ("q", "free")}
    p = ca.SX(0, 1)
    full, short = expressions(program, tree, given, p), expressions(program, tree, needed, p)
    assert set(full) == set(short)
    for name in full:
        np.testing.assert_array_equal(ca.DM(full[name]).full(), ca.DM(short[name]).full())


def test_constants_are_folded_and_unused_ones_cost_nothing():
    """A planar chain about one axis needs fewer operations than one with oblique axes."""
    count = lambda m: m.symbolic.function(sweeps.FORWARD_DYNAMICS, ("q", "v", "tau")).n_instructions()  # noqa: E731
    aligned, oblique = library.chain(6), library.chain(6, axes=[(0.6, 0.0, 0.8), (0.0, 0.6, 0.8)])
    assert count(aligned) < 0.8 * count(oblique)


def test_cost_grows_linearly_with_the_chain():
    function = lambda n, p, names: library.chain(n).symbolic.function(p, names).n_instructions()  # noqa: E731
    for program, names in (
        (sweeps.FORWARD_DYNAMICS, ("q", "v", "tau")),
        (sweeps.INVERSE_DYNAMICS, ("q", "v", "a")),
    ):
        n8, n16, n32 = (function(n, program, names) for n in (8, 16, 32))
        assert n32 - n16 == 2 * (n16 - n8)


def test_unit_columns():
    S = ca.SX(6, 3)
    S[2, 0] = 1
    S[4, 1] = ca.SX.sym("c")
    S[5, 2] = 1
    S[1, 2] = ca.SX.sym("s")
    assert unit_columns(S) == [(0, 2)]

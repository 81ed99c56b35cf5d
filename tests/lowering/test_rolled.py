"""Loops over the nodes against the same programs unrolled, evaluated by CasADi."""

import casadi as ca
import numpy as np
import pytest
from lowering_helpers import same_bits

from alembert import WORLD, ModelBuilder, library
from alembert.algorithms import kernels
from alembert.algorithms.table import TABLE
from alembert.engine.target import host
from alembert.errors import ArgumentError, UnsupportedError
from alembert.joints import REGISTRY, Revolute
from alembert.lowering import rolled_emitter
from alembert.lowering.rolled import RolledSource
from alembert.model import Inertia, Placement
from alembert.sweeps import FORWARD_DYNAMICS, HYBRID_DYNAMICS, Program, Tree
from alembert.sweeps.kinds import LIMIT, STRUCTURES, kinds
from alembert.sweeps.program import inward, outward

PROGRAMS = {name: entry.sweeps for name, entry in TABLE.items() if entry.program}

# Both lowerings do the same operations in nearly the same order; some thousand roundings of eps, amplified by
# the condition of the articulated inertias, stay below this part of the largest entry.
TOLERANCE = 1e-12
STATES = 9  # more than half the lanes of any machine: the vector code runs


def rolled(model, name, *, wrenches=False):
    program, names = PROGRAMS[name]
    names = (*names, "wrench") if wrenches else names
    return kernels.program_kernel(model, Tree.of(model), program, names, name=name, lowering="rolled")


def states(model, kernel, seed=0, count=STATES):
    """Random arguments of a kernel, one row per state."""
    rng = np.random.default_rng(seed)
    found = []
    for argument in kernel.arguments:
        if argument.name == "q":
            found.append(np.array([model.random_configuration(rng) for _ in range(count)]))
        elif argument.name == "free":
            found.append(rng.integers(0, 2, size=(count, *argument.shape)).astype(float))
        elif argument.name == "parameters":
            defaults = np.array([value for _, value in model.parameters])
            found.append(defaults * rng.uniform(0.9, 1.1, size=(count, *argument.shape)))
        else:
            found.append(rng.standard_normal((count, *argument.shape)))
    return found


def unrolled(model, name, arguments, *, wrenches=False):
    program, names = PROGRAMS[name]
    names = (*names, "wrench") if wrenches else names
    tree = Tree.of(model)
    inputs = kernels.arguments(model, tree, program, names)
    function = kernels.function(name, inputs, tree, kernels.program_graph(tree, program, names))
    shapes = [result.shape for result in kernels.results(model, tree, program)]
    rows = [function.call([ca.DM(x) for x in state]) for state in zip(*arguments, strict=True)]
    return [np.array([np.array(row[k]).reshape(shape) for row in rows]) for k, shape in enumerate(shapes)]


def listed(results):
    return list(results) if isinstance(results, tuple) else [results]


def check(model, name, *, wrenches=False):
    kernel = rolled(model, name, wrenches=wrenches)
    arguments = states(model, kernel)
    expected = unrolled(model, name, [x[:3] for x in arguments], wrenches=wrenches)
    for x, y in zip(listed(kernel(*arguments)), expected, strict=True):
        assert np.max(np.abs(x[:3] - y)) <= TOLERANCE * max(1.0, np.max(np.abs(y))), name


@pytest.fixture(scope="module")
def every_joint():
    """Every joint type, with springs, friction, armature and rotors on some, branched."""
    return library.random_tree(3, bodies=len(REGISTRY) + 2, attachments=True)


@pytest.fixture(scope="module")
def with_parameters():
    kinds_ = ("revolute", "prismatic", "spherical", "screw")
    return library.random_tree(4, bodies=6, kinds=kinds_, floating=True, attachments=True, parameters=True)


@pytest.fixture(scope="module")
def branched():
    return library.random_tree(6, bodies=9, kinds=("revolute", "spherical"), attachments=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_on_every_joint(every_joint, name):
    check(every_joint, name)


@pytest.mark.parametrize("name", ["forward_dynamics", "hybrid_dynamics", "inverse_dynamics"])
def test_wrenches(branched, name):
    check(branched, name, wrenches=True)


@pytest.mark.parametrize(
    "name", ["forward_dynamics", "inverse_dynamics", "mass_matrix", "potential_energy", "world_momentum_rows"]
)
def test_parameters_at_run_time(with_parameters, name):
    check(with_parameters, name)


@pytest.mark.parametrize("name", ["forward_dynamics", "mass_matrix", "world_momentum", "subspaces"])
def test_lanes_and_threads_give_the_same_bits(branched, name):
    kernel = rolled(branched, name)
    arguments = states(branched, kernel, count=2 * host().lanes + 3)
    batch = listed(kernel(*arguments))
    threaded = listed(kernel(*arguments, threads=2))
    single = [listed(kernel(*state)) for state in zip(*arguments, strict=True)]
    for k, x in enumerate(batch):
        assert same_bits(x, np.array([results[k] for results in single]))
        assert same_bits(x, threaded[k])


def test_parameters_of_each_lane(with_parameters):
    kernel = rolled(with_parameters, "forward_dynamics")
    arguments = states(with_parameters, kernel)
    single = [kernel(*state) for state in zip(*arguments, strict=True)]
    assert same_bits(kernel(*arguments), np.array(single))


def test_huge_angles_beside_others():
    """Beyond the range of the vector code sines come from the C library; they take the place of the angles."""
    model = library.chain(12)
    q = np.random.default_rng(0).uniform(-3, 3, size=(9, 12))
    q[::2, 5] = [1e9, -1e12, 1e6, 1.7e6, 1e300]
    q[1, 3], q[2, 7] = np.nan, np.inf
    kernel = rolled(model, "mass_matrix")
    found = kernel(q)
    bad = np.isnan(found).any(axis=(1, 2))
    assert bad.tolist() == [False, True, True] + 6 * [False]
    for k in np.flatnonzero(~bad):
        expected = unrolled(model, "mass_matrix", [q[None, k]])[0][0]
        np.testing.assert_allclose(found[k], expected, atol=TOLERANCE * np.abs(expected).max())
        assert same_bits(found[k], kernel(q[k]))


@pytest.mark.parametrize("n", [1, 2, 100])
def test_chains(n):
    check(library.chain(n), "forward_dynamics")


def test_long_chain_is_consistent():
    """At n = 1000: tau(a) = M a + tau(0), T = v'M v / 2, M symmetric."""
    model = library.chain(1000)
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-1, 1, size=(3, model.nv))
    M = rolled(model, "mass_matrix")(q)
    tau = rolled(model, "inverse_dynamics")(q, v, a)
    bias = rolled(model, "bias_forces")(q, v)
    # thousand terms in each sum
    assert np.max(np.abs(M @ a + bias - tau)) < 1e-11 * np.max(np.abs(M) @ np.abs(a) + np.abs(bias))
    assert rolled(model, "kinetic_energy")(q, v)[0] == pytest.approx(v @ M @ v / 2, rel=1e-11)
    assert np.array_equal(M, M.T)


def test_code_does_not_grow_with_the_chain():
    def code(n):
        source = RolledSource(FORWARD_DYNAMICS, Tree.of(library.chain(n)), ("q", "v", "tau"))
        return [
            line
            for line in source.emit("f", 1, host()).text.splitlines()
            if not (line.startswith("@") or "i32 0" in line)
        ]

    assert len(code(300)) <= len(code(60)) + 16  # angles are padded to whole registers


def test_a_serial_chain_needs_two_slots():
    """What grows with the chain is what is kept for the way back, not what is passed along.

    Of a hinge's forces, c and z, of 4 and 6 entries, only c is read on the way out again; what the way in keeps, W
    without its unit entry and D^-1 e, 6 entries, takes the place of z.
    """
    source = RolledSource(FORWARD_DYNAMICS, Tree.of(library.chain(100)), ("q", "v", "tau"))
    slots = sum(2 * (len(loop.world) + loop.gathered) for loop in source.trace.loops)
    assert source.memory.end <= 10 * 101 + slots + len(source.memory.prologue) + 8


def test_memory_is_given_to_one_at_a_time(every_joint):
    """Follow the visits: nobody writes what somebody has still to read, or what the visit itself reads."""
    source = RolledSource(HYBRID_DYNAMICS, Tree.of(every_joint), PROGRAMS["hybrid_dynamics"][1])
    memory, owner = source.memory, {}
    for i, k in (visit for run in memory.runs for visit in run.visits):
        visit = source.trace.loops[i].visits[memory.kind[k]]
        for piece, sizes in source.pieces.items():
            places = range(memory.own[piece.label][k], memory.own[piece.label][k] + sizes[memory.kind[k]])
            if piece.label in visit.inputs:
                assert all(owner[p] == (piece, k) for p in places)
        for piece, sizes in source.pieces.items():
            places = range(memory.own[piece.label][k], memory.own[piece.label][k] + sizes[memory.kind[k]])
            if piece.written == i:
                assert all(p not in owner or owner[p][0].last < i or owner[p][1] != k for p in places)
                assert not any(
                    p in owner and owner[p][0].label in visit.inputs and owner[p][1] == k for p in places
                )
                owner.update(dict.fromkeys(places, (piece, k)))


def test_branches_are_left_before_the_next_begins(every_joint):
    """Every node once in every loop, outward after its parent, inward after its children and its own visit outward."""
    source = RolledSource(HYBRID_DYNAMICS, Tree.of(every_joint), PROGRAMS["hybrid_dynamics"][1])
    loops, parents, n = source.trace.loops, source.tree.parents, len(source.tree)
    visits = [visit for run in source.memory.runs for visit in run.visits]
    assert sorted(visits) == [(i, k) for i in range(len(loops)) for k in range(n)]
    when = {visit: place for place, visit in enumerate(visits)}
    for i, k in visits:
        outward = loops[i].direction == "outward"
        if parents[k] >= 0:
            assert (when[i, parents[k]] < when[i, k]) == outward
        assert not i or when[i - 1, k] < when[i, k]
    together = source.memory.runs[0]
    assert [loops[i].direction for i in together.loops] == ["outward", "inward"]
    leaf = max(set(range(n)) - set(parents))  # the last comes first, and goes back at once
    assert together.visits.index((1, leaf)) == together.visits.index((0, leaf)) + 1


# -- fusing sweeps -----------------------------------------------------------------------------------------------


def start(b):
    b.gravity = b.receive("gravity") * b.q[0]


def double(b):
    b.gravity = 2 * b.gravity


def look(b):
    b.seen = b.receive("gravity") + b.q[0]


def renew(b):
    b.gravity = 3 * b.receive("gravity")


@pytest.mark.parametrize(
    ("sweeps", "loops"),
    [
        ((outward(start), outward(look)), 1),
        ((outward(start), inward(double), inward(look)), 3),  # looks at a parent that doubles later
        ((outward(start), inward(look), inward(double)), 2),
        ((outward(start), outward(look), outward(double)), 2),  # looks before the parent doubles
        ((outward(start), inward(double), outward(look), outward(renew)), 4),  # looks before it is renewed
    ],
)
def test_sweeps_share_a_loop_only_where_that_changes_nothing(sweeps, loops):
    model = library.random_tree(2, bodies=7, kinds=("revolute",))
    tree = Tree.of(model)
    program = Program("look", {"q": "q"}, sweeps, {"seen": "node"})
    source = RolledSource(program, tree, ("q",))
    assert len(source.trace.loops) == loops
    inputs = kernels.arguments(model, tree, program, ("q",))
    kernel = kernels.Kernel(
        "look", inputs, [kernels.Argument("seen", (7, 3))], key=str(sweeps), build=lambda: source
    )
    q = np.random.default_rng(0).uniform(0.5, 1.0, size=7)
    function = kernels.function("look", inputs, tree, kernels.program_graph(tree, program, ("q",)))
    np.testing.assert_allclose(kernel(q), np.array(function(q)), rtol=1e-14)


def gather(b):
    b.below = b.gravity * b.q[0] + (b.h if b.has("h") else 0)
    b.deliver(h=b.below)


def gather_in_place(b):
    b.deliver(gravity=b.q[0] * b.gravity)


def look_after_gathering(b):
    b.seen = b.receive("gravity") * b.below + b.gravity


def look_at_own(b):
    b.seen = 2 * b.gravity


def begin(b):
    b.h = b.gravity + b.q[0]


def add(b):
    b.seen = b.h
    b.deliver(h=b.h * b.q[0])


def add_again(b):
    b.deliver(h=b.gravity)


def note(b):
    b.seen = b.seen + b.h


@pytest.mark.parametrize(
    "sweeps",
    [
        (outward(start), inward(gather), outward(look_after_gathering)),
        (outward(start), inward(gather), outward(renew), outward(look_after_gathering)),
        (outward(start), inward(gather_in_place), outward(look_at_own)),
        (outward(start), inward(begin), inward(add)),  # children add after the parent has begun
        (outward(start), inward(begin), inward(add), inward(add_again), inward(note)),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_outward_after_gathering_on_forests(sweeps, seed):
    model = library.random_tree(seed, bodies=9, kinds=("revolute", "prismatic"), branching=0.9)
    tree = Tree.of(model)
    assert tree.parents.count(-1) > 2
    program = Program("look", {"q": "q"}, sweeps, {"seen": "node"})
    source = RolledSource(program, tree, ("q",))
    inputs = kernels.arguments(model, tree, program, ("q",))
    results = [kernels.Argument("seen", (9, 3))]
    kernel = kernels.Kernel("look", inputs, results, key=f"{sweeps}{seed}", build=lambda: source)
    q = np.random.default_rng(seed).uniform(0.5, 1.0, size=(3, 9))
    function = kernels.function("look", inputs, tree, kernels.program_graph(tree, program, ("q",)))
    for state in q:
        np.testing.assert_allclose(kernel(state), np.array(function(state)), rtol=1e-14)


def test_refused_reading_of_what_roots_add_to_the_world():
    """Unrolled, roots see in the world what they added to it; loops keep what the world is at the start."""
    tree = Tree.of(library.random_tree(0, bodies=5, kinds=("revolute",), branching=0.9))
    for reading in (look, renew):
        sweeps = (outward(start), inward(gather_in_place), outward(reading))
        with pytest.raises(UnsupportedError, match="reads 'gravity' of the parent, to which children add"):
            RolledSource(Program("look", {"q": "q"}, sweeps, {"gravity": "node"}), tree, ("q",))
    twice = (outward(start), inward(gather), outward(look_at_own), inward(gather))
    with pytest.raises(UnsupportedError, match="twice: children add to 'h' in several loops"):
        RolledSource(Program("twice", {"q": "q"}, twice, total=("h",)), tree, ("q",))


def test_refused_steps():
    def push(b):
        b.deliver(x=b.q[0])

    def peek(b):
        b.y = b.receive("V").angular

    tree = Tree.of(library.chain(3))
    with pytest.raises(UnsupportedError, match="push: an outward step adds to its parent"):
        RolledSource(Program("push", {"q": "q"}, (outward(push),)), tree, ("q",))
    with pytest.raises(UnsupportedError, match="peek: a step reads 'V' of the parent, which no step sets"):
        RolledSource(Program("peek", {"q": "q"}, (outward(peek),), {"y": "node"}), tree, ("q",))


# -- kinds of nodes ----------------------------------------------------------------------------------------------


def chain_of(placements, axes):
    builder = ModelBuilder("chain")
    for k, (placement, axis) in enumerate(zip(placements, axes, strict=True)):
        builder.body(
            f"b{k}",
            Inertia.box(1.0 + k, (0.1, 0.2, 0.3 + 0.01 * k), (0.1 * k, 0.2, 0.3)),
            joint=Revolute(axis),
            parent=f"b{k - 1}" if k else WORLD,
            placement=placement,
        )
    return Tree.of(builder.build())


def test_kinds_partition_the_nodes():
    tree = Tree.of(library.random_tree(6, bodies=12, kinds=("revolute", "spherical", "screw")))
    found = kinds(tree)
    assert sorted(k for kind in found for k in kind.nodes) == list(range(len(tree)))
    assert len(found) <= max(LIMIT, len(set(tree.structures)))
    for kind in found:
        for row, k in zip(kind.values, kind.nodes, strict=True):
            numbers = np.array([np.nan if x is None else x for x in kind.numbers])
            numbers[kind.read] = row
            assert tree.structures[k] == kind.structure
            np.testing.assert_array_equal(numbers, np.array(ca.DM(tree.constants(k, {}))).ravel())


def test_many_structures_are_united():
    """By joint type; what a joint does not have, is there with no effect."""
    model = library.random_tree(7, bodies=40, kinds=("revolute", "spherical"), attachments=True)
    tree = Tree.of(model)
    assert len(set(tree.structures)) > STRUCTURES
    found = kinds(tree)
    assert len(found) <= LIMIT
    assert len({kind.structure for kind in found}) == 2
    check(model, "forward_dynamics")


def test_aligned_axes_are_folded_and_a_deviating_root_is_not_a_kind_of_its_own():
    placements = [Placement((0.0, 0.0, 0.0)), *(Placement((0.5 + 0.1 * k, 0.0, 0.0)) for k in range(9))]
    tree = chain_of(placements, [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0)] * 5)
    found = kinds(tree)
    assert len(found) == 2
    for kind in found:
        assert None not in kind.numbers[:9]  # the rotation
        assert kind.numbers[10:12] == (0.0, 0.0)  # the translation, but along x
        assert None not in kind.numbers[22:25]  # the axis


def test_many_patterns_are_served_by_few_kinds():
    rng = np.random.default_rng(0)
    axes = [tuple(np.roll((float(rng.choice((-1, 1))), 0.0, 0.0), rng.integers(3))) for _ in range(60)]
    placements = []
    for _ in axes:
        turns = rng.integers(-1, 3, size=3) * (np.pi / 2)
        placements.append(Placement.from_rpy(turns, tuple(rng.integers(-1, 2, size=3).astype(float))))
    tree = chain_of(placements, axes)
    assert len(kinds(tree)) <= LIMIT


def test_parameters_make_computed_constants(with_parameters):
    tree = Tree.of(with_parameters)
    found = kinds(tree)
    assert any(len(kind.computed) for kind in found)
    for kind in found:
        assert not set(kind.read) & set(kind.computed)


# -- the choice ----------------------------------------------------------------------------------------------------


def test_large_trees_are_rolled():
    program, _ = PROGRAMS["forward_dynamics"]
    pairs, _ = PROGRAMS["mass_matrix"]
    small, medium, large = (
        Tree.of(library.chain(n)) for n in (10, kernels.MOST_NODES, kernels.MOST_NODES + 1)
    )
    assert [kernels.is_rolled(tree, program, "auto") for tree in (small, medium, large)] == [
        False,
        False,
        True,
    ]
    assert not kernels.is_rolled(small, pairs, "auto")
    assert kernels.is_rolled(small, program, "rolled")
    assert not kernels.is_rolled(large, program, "specialised")


def test_lowering_is_checked():
    model = library.chain(2)
    with pytest.raises(
        ArgumentError, match="lowering is 'fast', expected one of 'auto', 'specialised', 'rolled'"
    ):
        model.compile("forward_dynamics", lowering="fast")


def test_compile_takes_a_lowering():
    model = library.chain(3)
    q, v, tau = np.random.default_rng(0).standard_normal((3, 3))
    both = [model.compile("forward_dynamics", lowering=x)(q, v, tau) for x in ("specialised", "rolled")]
    np.testing.assert_allclose(*both, rtol=1e-12)


def test_steps_of_known_kinds_are_read_and_written_once(monkeypatch):
    """A chain of other lengths and masses has the same kinds: its loops differ in tables and constants alone."""
    source = RolledSource(FORWARD_DYNAMICS, Tree.of(library.chain(50)), ("q", "v", "tau"))
    source.emit("f", 1, host())
    for name in ("from_casadi", "codegen"):
        monkeypatch.setattr(rolled_emitter, name, None)
    longer = RolledSource(FORWARD_DYNAMICS, Tree.of(library.chain(55, mass=2.0)), ("q", "v", "tau"))
    assert longer.emit("f", 1, host()).work > 0

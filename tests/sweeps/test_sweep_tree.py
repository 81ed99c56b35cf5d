"""The tree of moving bodies that sweeps run over."""

import casadi as ca
import numpy as np

from alembert import Fixed, Inertia, ModelBuilder, Placement, Revolute, library
from alembert.sweeps import Tree


def fixed_on_fixed():
    """world = plate - arm = bracket = lamp - shade, and world = lid; = is fixed, - moves."""
    box = Inertia.box(1.0, (0.1, 0.2, 0.3), (0.1, 0.0, 0.0))
    turn = Placement.from_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    builder = ModelBuilder("bench")
    builder.body("plate", box, joint=Fixed(), placement=turn)
    builder.body("arm", box, joint=Revolute((0, 0, 1)), parent="plate", placement=turn)
    builder.body("bracket", box, joint=Fixed(), parent="arm", placement=turn)
    builder.body("lamp", box, joint=Fixed(), parent="bracket", placement=turn)
    builder.body("shade", box, joint=Revolute((0, 1, 0)), parent="lamp", placement=turn)
    builder.body("lid", box, joint=Fixed(), placement=turn)
    return builder.build(), turn


def test_fixed_bodies_are_made_one_with_their_carrier():
    model, turn = fixed_on_fixed()
    tree = Tree.of(model)
    assert len(tree) == 2
    assert tree.parents == (-1, 0)
    assert [joint.name for joint in tree.joints] == ["arm_joint", "shade_joint"]
    masses = [model.value(ten[0]) for ten in tree.ten_vectors]
    assert masses == [3.0, 1.0]  # plate and lid do not move
    nodes = dict(zip([body.name for body in model.bodies], [node for node, _ in tree.carriers], strict=True))
    assert nodes == {"plate": -1, "arm": 0, "bracket": 0, "lamp": 0, "shade": 1, "lid": -1}
    where = dict(zip([body.name for body in model.bodies], [at for _, at in tree.carriers], strict=True))
    X, once = where["lamp"].pose({}), turn.pose({})
    twice = once @ once
    np.testing.assert_allclose(X.rotation, twice.rotation, atol=1e-15)
    np.testing.assert_allclose(X.translation, twice.translation, atol=1e-15)
    placed = tree.placements[1].pose({})
    np.testing.assert_allclose(placed.translation, (twice @ once).translation, atol=1e-15)


def test_the_merged_inertia_is_that_of_the_parts():
    model, _ = fixed_on_fixed()
    expected = model.total_inertia_of("arm").ten_vector()
    np.testing.assert_allclose(Tree.of(model).ten_vectors[0], expected, atol=1e-14)


def test_merged_and_unmerged_models_move_alike():
    model, _ = fixed_on_fixed()
    merged = model.merge_fixed()
    q, v, tau = [0.3, -0.8], [1.0, 2.0], [0.5, -0.5]
    np.testing.assert_allclose(
        model.forward_dynamics(q, v, tau), merged.forward_dynamics(q, v, tau), rtol=1e-13, atol=1e-13
    )


def test_ancestors_and_support():
    model = library.random_tree(4, bodies=10)
    tree = Tree.of(model)
    for k, chain in enumerate(tree.ancestors):
        assert chain[0] == k
        for inner, outer in zip(chain[1:], chain[:-1], strict=True):
            assert tree.parents[outer] == inner
        assert tree.parents[chain[-1]] == -1
        moved = np.zeros(model.nv, dtype=bool)
        for j in chain:
            moved[tree.v_slices[j]] = True
        np.testing.assert_array_equal(tree.support[k], moved)
    assert not tree.support[-1].any()


def test_structure_holds_no_numbers_and_constants_hold_all():
    model = library.random_tree(6, bodies=13, attachments=True)
    tree = Tree.of(model)
    for k, structure in enumerate(tree.structures):
        constants = tree.constants(k, {})
        assert constants.shape == (structure.size, 1)
        assert constants.is_constant()
        assert all(entry == 0.0 for entry in structure.joint.constants())


def test_equal_joints_with_other_numbers_share_a_structure():
    model = library.chain(5, axes=[(0.0, 0.0, 1.0), (1.0, 0.0, 0.0)])
    assert len(set(Tree.of(model).structures)) == 1


def test_parameters_stay_symbols():
    model = library.random_tree(3, bodies=5, kinds=["revolute", "prismatic"], parameters=True)
    tree = Tree.of(model)
    symbols = tree.parameter_symbols
    used = {s.name() for k in range(len(tree)) for s in ca.symvar(tree.constants(k, tree.named(symbols)))}
    used |= {s.name() for s in ca.symvar(tree.gravity(symbols))}
    assert used <= set(model.parameter_values)
    assert {"g"} < used

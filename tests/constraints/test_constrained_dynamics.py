"""Constrained dynamics against dense solutions, and what reactions and impulses must satisfy."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from constraint_helpers import (
    EPS,
    KINDS,
    close,
    closed,
    dense_solution,
    four_bars,
    opposite,
    possible_speeds,
    tree_of,
)

from alembert import library
from alembert.model import Coupling, Frame, LoopJoint

SETS = [(kind,) for kind in KINDS] + [
    ("revolute", "spherical"),
    ("universal", "gimbal", "planar"),
    ("prismatic", "translational"),
    ("fixed", "cylindrical"),
]
# Lambda of the random mechanisms has condition numbers up to some 1e6: what is left of 16 digits, with room
SOLVED = 1e-8


def state(active, seed=3):
    model, q = closed()
    rng = np.random.default_rng(seed)
    return model, q, possible_speeds(model, q, active), rng.normal(size=model.nv)


@pytest.mark.parametrize("active", SETS, ids="+".join)
def test_accelerations_solve_the_dense_equations(active):
    model, q, v, tau = state(active)
    found = model.constrained_dynamics(q, v, tau, active=active)
    a, _ = dense_solution(model, q, v, tau, active)
    scale = np.linalg.norm(a)
    np.testing.assert_allclose(found.accelerations, a, atol=SOLVED * scale)
    G, gamma = model.constraint_jacobian(q, active=active), model.constraint_bias(q, v, active=active)
    np.testing.assert_allclose(G @ found.accelerations + gamma, 0, atol=SOLVED * scale * np.linalg.norm(G))


@pytest.mark.parametrize("active", SETS, ids="+".join)
def test_reactions_are_wrenches_on_the_two_frames(active):
    """The tree alone, pushed by the reactions at the loop's two frames, moves just so."""
    model, q, v, tau = state(active)
    found = model.constrained_dynamics(q, v, tau, active=active)
    assert tuple(found.reactions) == tuple(name for name in KINDS if name in active)
    wrenches = {}
    power = 0.0
    for loop in model.loops:
        if loop.name in active:
            F = found.reactions[loop.name]
            wrenches[loop.frame_b] = F
            if loop.frame_a != "world" and model.frame(loop.frame_a).body != "world":
                wrenches[loop.frame_a] = opposite(model, q, loop, F)
    a = tree_of(model).forward_dynamics(q, v, tau, wrenches=wrenches)
    np.testing.assert_allclose(a, found.accelerations, atol=SOLVED * np.linalg.norm(a))
    for frame, F in wrenches.items():
        power += model.frame_velocity(q, v, frame) @ F
    size = sum(np.linalg.norm(F) for F in wrenches.values()) * np.linalg.norm(v)
    assert abs(power) < 1e-12 * size


def test_the_joint_carries_no_load_along_its_motion():
    for kind in KINDS:
        model, q, v, tau = state((kind,))
        F = model.constrained_dynamics(q, v, tau, active=(kind,)).reactions[kind]
        loop = next(x for x in model.loops if x.name == kind)
        X = model.frame_pose(q, loop.frame_a).inverse() @ model.frame_pose(q, loop.frame_b)
        S = loop.type.subspace(loop.type.fit(X))
        np.testing.assert_allclose(S.T @ F, 0, atol=1e-12 * np.linalg.norm(F))


def test_batches_and_wrenches():
    model, q, v, _ = state(("revolute", "spherical"))
    active = ["spherical", "revolute"]
    rng = np.random.default_rng(0)
    taus = rng.normal(size=(2, 3, model.nv))
    push = rng.normal(size=(3, 6))
    found = model.constrained_dynamics(q, v, taus, wrenches={"tip3": push}, active=active)
    assert found.accelerations.shape == (2, 3, model.nv)
    assert found.reactions["spherical"].shape == (2, 3, 6)
    for i, j in itertools.product(range(2), range(3)):
        one = model.constrained_dynamics(q, v, taus[i, j], wrenches={"tip3": push[j]}, active=active)
        np.testing.assert_allclose(found.accelerations[i, j], one.accelerations, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(
            found.reactions["revolute"][i, j], one.reactions["revolute"], rtol=1e-9, atol=1e-9
        )
        dense, _ = dense_solution(model, q, v, taus[i, j], active, wrenches={"tip3": push[j]})
        np.testing.assert_allclose(one.accelerations, dense, atol=SOLVED * np.linalg.norm(dense))


def test_no_active_constraint_is_the_tree():
    model, q, v, tau = state(())
    found = model.constrained_dynamics(q, v, tau, active=[])
    np.testing.assert_array_equal(found.accelerations, tree_of(model).forward_dynamics(q, v, tau))
    assert found.reactions == {}


def test_forward_dynamics_holds_the_loops():
    model, q = closed()
    model = model.replace(loops=tuple(x for x in model.loops if x.name in ("revolute", "spherical")))
    v, tau = possible_speeds(model, q), np.random.default_rng(1).normal(size=model.nv)
    a = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(a, model.constrained_dynamics(q, v, tau).accelerations, rtol=1e-12, atol=1e-12)
    out = np.empty(model.nv)
    assert model.forward_dynamics(q, v, tau, out=out) is out
    np.testing.assert_array_equal(out, a)


def test_identical_loops_share_the_reaction():
    """Two equal loops are redundant: each carries half, the smallest sum of squares."""
    model, q = closed()
    loop = next(x for x in model.loops if x.name == "spherical")
    twin = LoopJoint("twin", loop.type, loop.frame_a, loop.frame_b)
    both = model.replace(loops=(loop, twin))
    v, tau = possible_speeds(both, q), np.random.default_rng(1).normal(size=model.nv)
    alone = model.constrained_dynamics(q, v, tau, active=["spherical"])
    with pytest.warns(
        UserWarning, match="the reactions are not unique: 3 of the 3 rows of 'twin' follow|rows of 'spher"
    ):
        found = both.constrained_dynamics(q, v, tau)
    np.testing.assert_allclose(
        found.accelerations, alone.accelerations, atol=SOLVED * np.linalg.norm(alone.accelerations)
    )
    half = alone.reactions["spherical"] / 2
    for name in ("spherical", "twin"):
        np.testing.assert_allclose(found.reactions[name], half, atol=1e-8 * np.linalg.norm(half))
    both.constrained_dynamics(q, v, tau)  # told once
    analysis = both.constraint_analysis(q)
    assert (analysis.rows, analysis.rank) == (6, 3)
    assert sum(analysis.redundant.values()) == 3


def test_an_impulse_conserves_momentum_and_closes_the_velocities():
    model, q = closed()
    active = ("revolute", "gimbal")
    inside = [
        x for x in model.loops if "world" not in (model.frame(x.frame_a).body, model.frame(x.frame_b).body)
    ]
    rng = np.random.default_rng(2)
    v = rng.normal(size=model.nv)
    found = model.impulse(q, v, active=active)
    G = model.constraint_jacobian(q, active=active)
    assert np.max(np.abs(G @ found.velocities)) < 1e-10 * np.linalg.norm(G) * np.linalg.norm(v)
    # M (v+ - v) = G^T f, and the energy lost is that of the lost speeds (Carnot)
    tree = tree_of(model)
    M = tree.mass_matrix(q)
    jump = found.velocities - v
    forces = np.linalg.lstsq(G.T, M @ jump, rcond=None)
    assert np.linalg.norm(G.T @ forces[0] - M @ jump) < 1e-9 * np.linalg.norm(M @ jump)
    lost = tree.kinetic_energy(q, v) - tree.kinetic_energy(q, found.velocities)
    np.testing.assert_allclose(lost, jump @ M @ jump / 2, rtol=1e-8)
    # a floating base: the loops inside the system cannot change the total momentum, those to the world do just so
    name = next(x.name for x in inside)
    inner = model.impulse(q, v, active=[name])
    before, after = (model.momentum(q, x, about="world") for x in (v, inner.velocities))
    assert len(tree.children("world")) == 1
    np.testing.assert_allclose(after, before, atol=1e-10 * np.linalg.norm(before))
    assert found.impulses["revolute"].shape == (6,)


def test_impulses_between_floating_bodies_conserve_momentum():
    """Two free bodies that dock: their momentum is that of the rigid pair afterwards."""
    from alembert import Fixed, Free, Inertia, ModelBuilder

    builder = ModelBuilder("docking", gravity=(0, 0, 0))
    for name, mass in (("chaser", 2.0), ("target", 5.0)):
        builder.body(name, Inertia.box(mass, (0.5, 0.4, 0.3)), joint=Free())
    builder.frame("probe", "chaser", (0.5, 0, 0)).frame("port", "target", (-0.5, 0, 0))
    builder.loop("dock", Fixed(), "port", "probe")
    model = builder.build()
    q = np.r_[-0.5, 0, 0, 1, 0, 0, 0, 0.5, 0, 0, 1, 0, 0, 0]
    v = np.random.default_rng(0).normal(size=12)
    found = model.impulse(q, v)
    before, after = (model.momentum(q, x, about="world") for x in (v, found.velocities))
    np.testing.assert_allclose(after, before, atol=1e-14 * 100)
    relative = model.frame_velocity(q, found.velocities, "probe") - model.frame_velocity(
        q, found.velocities, "port"
    )
    np.testing.assert_allclose(relative, 0, atol=1e-13)
    J = found.impulses["dock"]
    np.testing.assert_allclose(J[3:], 2.0 * (found.velocities[3:6] - v[3:6]), atol=1e-12)


def test_a_mimic_joint_is_the_eliminated_coordinate():
    """A coupling against the same motion with the coordinate written out by hand: v = N v_free."""
    tree = library.random_tree(7, bodies=5, kinds=("revolute", "prismatic"), attachments=True)
    names = [joint.name for joint in tree.joints]
    model = tree.replace(couplings=(Coupling("mimic", names[3], (names[0], names[2]), (1.5, -0.7), 0.2),))
    rng = np.random.default_rng(0)
    free = [0, 1, 2, 4]
    N = np.zeros((5, 4))
    N[free, range(4)] = 1
    N[3] = [1.5, 0, -0.7, 0]
    q = N @ rng.normal(size=4) + np.array([0, 0, 0, 0.2, 0])
    v, tau = N @ rng.normal(size=4), rng.normal(size=5)
    M, bias = tree.mass_matrix(q), tree.bias_forces(q, v)
    a = N @ np.linalg.solve(N.T @ M @ N, N.T @ (tau - bias))
    found = model.constrained_dynamics(q, v, tau)
    np.testing.assert_allclose(found.accelerations, a, atol=1e-12 * np.linalg.norm(a))
    effort = found.reactions["mimic"]
    assert np.shape(effort) == ()
    expected = M @ a + bias - tau
    np.testing.assert_allclose(
        expected, effort * np.array([-1.5, 0, 0.7, 1, 0]), atol=1e-11 * np.linalg.norm(expected)
    )
    # the coordinates of the tree need not be vectors for this: the reduced mass matrix is N^T M N
    reduced = model.reduced_mass_matrix(q, independent=[names[k] for k in free])
    np.testing.assert_allclose(reduced, N.T @ M @ N, atol=1e-13 * np.linalg.norm(M))


def test_inverse_dynamics_with_a_chosen_set():
    model, q = closed()
    active = ("revolute", "spherical")
    rng = np.random.default_rng(4)
    v = possible_speeds(model, q, active)
    tau = rng.normal(size=model.nv)
    a = model.constrained_dynamics(q, v, tau, active=active).accelerations
    # all joints drive: the smallest efforts of the same effect
    least = model.constrained_inverse_dynamics(q, v, a, active=active)
    assert np.linalg.norm(least.efforts) < np.linalg.norm(tau)
    again = model.constrained_dynamics(q, v, least.efforts, active=active)
    np.testing.assert_allclose(again.accelerations, a, atol=1e-6 * np.linalg.norm(a))
    G = model.constraint_jacobian(q, active=active)
    np.testing.assert_allclose(np.linalg.lstsq(G.T, least.efforts, rcond=None)[0], 0, atol=1e-6)
    # exactly as many drives as degrees of freedom: unique
    chosen = model.independent_coordinates(q, active=active).names
    unique = model.constrained_inverse_dynamics(q, v, a, actuated=chosen, active=active)
    assert set(np.flatnonzero(unique.efforts)) <= {model.speed_names.index(name) for name in chosen}
    again = model.constrained_dynamics(q, v, unique.efforts, active=active)
    np.testing.assert_allclose(again.accelerations, a, atol=1e-6 * np.linalg.norm(a))
    for name in active:
        np.testing.assert_allclose(
            unique.reactions[name], again.reactions[name], atol=1e-6 * np.linalg.norm(unique.reactions[name])
        )
    # a weight makes an effort dear
    k = int(np.argmax(np.linalg.norm(G, axis=0) * np.abs(least.efforts)))
    weighted = model.constrained_inverse_dynamics(q, v, a, active=active, weights={model.speed_names[k]: 1e6})
    assert abs(weighted.efforts[k]) < 1e-3 * abs(least.efforts[k])
    assert np.linalg.norm(weighted.efforts) > np.linalg.norm(least.efforts)


def test_independent_speeds_span_the_possible_motions():
    model, q = closed()
    active = ("revolute", "universal")
    v = possible_speeds(model, q, active)
    found = model.independent_coordinates(q, v, active=active)
    G = model.constraint_jacobian(q, active=active)
    assert found.E.shape == (model.nv, model.nv - 9)
    np.testing.assert_allclose(G @ found.E, 0, atol=1e-11 * np.linalg.norm(found.E))
    np.testing.assert_allclose(found.E @ v[found.indices], v, atol=1e-11 * np.linalg.norm(v))
    assert tuple(model.speed_names[k] for k in found.indices) == found.names
    # accelerations follow: v' = E v_i' + rate
    tau = np.random.default_rng(1).normal(size=model.nv)
    a = model.constrained_dynamics(q, v, tau, active=active).accelerations
    np.testing.assert_allclose(found.E @ a[found.indices] + found.rate, a, atol=1e-9 * np.linalg.norm(a))
    # and the minimal equations E^T M E v_i' = E^T (tau - bias - M rate)
    tree = tree_of(model)
    M, bias = tree.mass_matrix(q), tree.bias_forces(q, v)
    reduced = model.reduced_mass_matrix(q, active=active, independent=found.names)
    right = found.E.T @ (tau - bias - M @ found.rate)
    np.testing.assert_allclose(
        np.linalg.solve(reduced, right), a[found.indices], atol=1e-8 * np.linalg.norm(a)
    )


def test_changing_the_active_set_or_the_constraints_compiles_no_sweep(monkeypatch):
    from alembert.engine.kernel import Kernel

    built = []
    monkeypatch.setattr(
        Kernel,
        "_made",
        lambda self, *a, inner=Kernel._made: built.append(self.name) or inner(self, *a),
    )
    tree, _ = closed()
    tree = tree_of(tree).replace(gravity=(0.0, 0.0, -1.62), frames=())  # no other test has compiled it
    model, q = close(tree, ("revolute", "spherical", "prismatic"))
    v, tau = np.zeros(model.nv), np.ones(model.nv)
    model.forward_dynamics(q, v, tau)
    model.constrained_dynamics(q, v, tau, active=["spherical"])  # few rows: code for single states
    model.constrained_dynamics(q, v, tau, active=[])
    first = list(built)
    assert {"forward_dynamics", "constraint_terms", "constraint_solution"} <= set(first)
    for active in (["prismatic"], ["revolute"], ["prismatic", "spherical"]):
        model.constrained_dynamics(q, v, tau, active=active)
    assert built == first
    # another constraint set, another frame, another name: only the constraint equations are new
    other = model.replace(name="other", loops=model.loops[:1], frames=(*model.frames, Frame("new", "body2")))
    other.constrained_dynamics(q, v, tau)
    assert set(built[len(first) :]) == {"constraint_terms", "constraint_solution"}


def test_a_planar_mechanism_in_space():
    """Five rows per revolute loop, two of them in the plane; the reaction has no part out of it."""
    model = four_bars(2)
    q = np.zeros(model.nq)
    v = np.array([-1.0 if name.startswith("foot") else 1.0 for name in model.speed_names])
    found = model.constrained_dynamics(q, v, np.zeros(model.nv))
    for F in found.reactions.values():
        np.testing.assert_allclose(F[[0, 1, 2, 5]], 0, atol=100 * EPS)
    text = str(model.constraint_analysis(q))
    assert text == (
        "10 constraint rows of rank 4, 1 degrees of freedom left; redundant: 3 of 5 of 'window0', 3 of 5 of 'window1'"
    )


def test_inverse_dynamics_and_gravity_forces_of_models_with_constraints():
    """The efforts of all joints that give a motion which keeps the constraints: forward dynamics gives it back."""
    model, q = closed()
    model = model.replace(loops=model.loops[:2])
    v = possible_speeds(model, q)
    found = model.independent_coordinates(q, v)
    a = found.E @ np.random.default_rng(3).normal(size=found.E.shape[1]) + found.rate
    efforts = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        model.forward_dynamics(q, v, efforts), a, rtol=0, atol=1e-8 * np.linalg.norm(a)
    )
    out = np.empty(model.nv)
    assert model.inverse_dynamics(q, v, a, out=out) is out
    np.testing.assert_array_equal(out, efforts)
    zero = np.zeros(model.nv)
    holding = model.gravity_forces(q)
    np.testing.assert_allclose(
        model.forward_dynamics(q, zero, holding), 0, atol=1e-8 * np.linalg.norm(holding)
    )
    d = model.inverse_dynamics_derivatives(q, v, a)
    h, x = 1e-5, found.E @ np.ones(found.E.shape[1])
    change = (model.inverse_dynamics(q, v, a + h * x) - model.inverse_dynamics(q, v, a - h * x)) / (2 * h)
    np.testing.assert_allclose(d.da @ x, change, rtol=0, atol=1e-6 * np.linalg.norm(change))


def test_reactions_give_no_power():
    """To speeds that keep the constraints; to others, what the dense equations say: v^T G^T f."""
    model, q = closed()
    model = model.replace(loops=model.loops[:2])
    v = possible_speeds(model, q)
    result = model.constrained_dynamics(q, v, np.random.default_rng(4).normal(size=model.nv))
    power = model.constraint_power(q, v, result.reactions)
    assert set(power) == set(result.reactions)
    size = max(np.abs(x).max() for x in result.reactions.values())
    assert all(abs(x) < 1e-10 * size for x in power.values())
    other = np.random.default_rng(5).normal(size=model.nv)
    broken = model.constraint_power(q, other, result.reactions)
    given = 0.0
    tree = tree_of(model)
    for loop in model.loops:
        ends = {loop.frame_b: result.reactions[loop.name]}
        ends[loop.frame_a] = opposite(model, q, loop, result.reactions[loop.name])
        given += tree.power(q, other, np.zeros(model.nv), wrenches=ends)
    assert sum(broken.values()) == pytest.approx(given, rel=1e-9)
    many = model.constraint_power(np.stack([q, q]), other, result.reactions)
    np.testing.assert_allclose(many[model.loops[0].name], broken[model.loops[0].name], rtol=1e-12)


def test_threads_keep_minimal_sets_of_their_own():
    """What a thread chose must not change the bits of another: members of ensembles run side by side."""
    model = four_bars(2)
    q = model.assemble(model.neutral()).q
    names = tuple(loop.name for loop in model.loops)
    system = model.constrained_compute.rows.system("test", names)
    model.constrained_dynamics(q, *np.zeros((2, model.nv)))
    mine = system.kept
    with ThreadPoolExecutor(1) as pool:
        pool.submit(model.constrained_dynamics, q, *np.zeros((2, model.nv))).result()
        theirs = pool.submit(lambda: system.kept).result()
    assert mine is not None
    assert theirs is not None
    assert system.kept is mine is not theirs


def test_without_active_rows_results_do_not_depend_on_what_was_computed_before():
    """Runs whose constraints come and go have the same bits however they came to a state."""
    model, q = close(library.random_tree(3, bodies=5), ("revolute",), seed=2)
    v, tau = np.random.default_rng(1).normal(size=(2, model.nv))
    first = model.constrained_dynamics(q, v, tau, active=()).accelerations
    slopes = model.constrained_dynamics_derivatives(q, v, tau, active=()).dq
    again = model.constrained_dynamics(q, v, tau, active=()).accelerations
    assert np.array_equal(first, again)
    assert np.array_equal(slopes, model.constrained_dynamics_derivatives(q, v, tau, active=()).dq)

"""Constrained inverse dynamics by compiled choices: batches, single states and the choice for each state agree."""

import numpy as np
import pytest
from constraint_helpers import four_bars, parallelogram

import alembert as al
from alembert import library
from alembert.constraints import drives
from alembert.errors import ArgumentError, NumericalError
from alembert.model import Actuator, Coupling

COUNT = 23
# the compiled efforts lose eps / CLEAR^2 at most, and reactions are larger than the efforts by the lever arms
CLOSE = 1e-10


def arm(*couplings, **more):
    return library.make("arm7").replace(couplings=couplings, **more)


def joints():
    return [joint.name for joint in library.make("arm7").joints]


def gear():
    j = joints()
    return arm(Coupling("gear", j[-1], (j[-2],), (-2.0,), 0.1))


def gripper():
    j = joints()
    return arm(Coupling("one", j[-1], (j[0],), (1.0,)), Coupling("two", j[-2], (j[0],), (-0.5,)))


def differential():
    """A joint turns by what two others do."""
    j = joints()
    return arm(Coupling("carrier", j[2], (j[4], j[5]), (0.5, 0.5)))


def driven_gear():
    j = joints()
    return gear().replace(actuators=tuple(Actuator(name, name) for name in j[:-1]))


def redundant():
    """The third coupling follows from the others."""
    j = joints()
    pairs = ((j[1], j[0]), (j[2], j[1]), (j[2], j[0]))
    return arm(*(Coupling(f"c{k}", x, (y,), (1.0,)) for k, (x, y) in enumerate(pairs)))


def four_bar():
    return four_bars(1).replace(name="four_bar")  # with choices of its own


MODELS = [gear, gripper, differential, driven_gear, redundant, four_bar]


def states(model, count=COUNT, seed=0):
    rng = np.random.default_rng(seed)
    if model.loops:
        found = [parallelogram(model, angle, 1.3) for angle in rng.uniform(0.3, 2.8, count)]
        q, v = (np.array(x) for x in zip(*found, strict=True))
    else:
        E = model.independent_coordinates(model.neutral()).E
        start = model.assemble(model.neutral()).q
        q, v = start + rng.normal(size=(count, E.shape[1])) @ E.T, rng.normal(size=(count, E.shape[1])) @ E.T
    return q, v, model.forward_dynamics(q, v, rng.normal(size=(count, model.nv)))


def slowly(make, monkeypatch):
    """A model that chooses at every state, by dense factors."""
    monkeypatch.setattr(drives.Drives, "learn", lambda self, rows, free: None)
    return make()


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_single_states_and_choices_of_each_agree(make, weighted, monkeypatch):
    model = make()
    q, v, a = states(model)
    dear = {model.speed_names[0]: 7.0} if weighted else None
    batch = model.constrained_inverse_dynamics(q, v, a, weights=dear)
    with monkeypatch.context() as patched:
        each = slowly(make, patched).constrained_inverse_dynamics(q, v, a, weights=dear)
    size = np.max(np.abs(each.efforts))
    np.testing.assert_allclose(batch.efforts, each.efforts, atol=CLOSE * size)
    for name, reaction in each.reactions.items():
        np.testing.assert_allclose(batch.reactions[name], reaction, atol=CLOSE * size)
    if not weighted:
        together = model.inverse_dynamics(q, v, a)
        np.testing.assert_allclose(together, each.efforts, atol=CLOSE * size)
        single = [model.inverse_dynamics(*x) for x in zip(q, v, a, strict=True)]
        np.testing.assert_array_equal(single, together)
        # they do give the motion
        again = model.forward_dynamics(q, v, together)
        np.testing.assert_allclose(again, a, atol=1e-8 * np.max(np.abs(a)))
    shaped = model.inverse_dynamics(q[:6].reshape(2, 3, -1), v[0] * 0, a[0] * 0) if not model.loops else None
    assert shaped is None or shaped.shape == (2, 3, model.nv)
    assert model.inverse_dynamics(q[:0], v[:0], a[:0]).shape == (0, model.nv)


def test_efforts_are_the_known_ones_of_a_gear():
    """Virtual work of equal drives: the projection of the tree's efforts on the motions that the gear leaves."""
    model = gear()
    q, v, a = states(model)
    r = model.replace(couplings=()).inverse_dynamics(q, v, a)
    n = np.zeros(model.nv)
    n[-1], n[-2] = 1.0, 2.0  # the row of the gear
    expected = r - np.outer(r @ n, n) / (n @ n)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, a), expected, atol=1e-13 * np.max(np.abs(r)))
    reaction = model.constrained_inverse_dynamics(q, v, a).reactions["gear"]
    np.testing.assert_allclose(reaction, r @ n / (n @ n), atol=1e-13 * np.max(np.abs(r)))


def test_wrenches_and_parameters():
    builder = al.ModelBuilder("geared", gravity=(0, -9.81, 0))
    mass, ratio = builder.parameter("mass", 0.8), builder.parameter("ratio", -3.0)
    builder.body("l0", al.Inertia.point(mass, (0.5, 0, 0)), joint=al.Revolute(), joint_name="a")
    for k, name in enumerate("bc"):
        rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
        builder.body(
            f"l{k + 1}", rod, joint=al.Revolute(), parent=f"l{k}", placement=(1, 0, 0), joint_name=name
        )
    builder.coupling("gear", "c", ["b"], [ratio])
    model = builder.build()
    q, v, a = states(model)
    F, masses = np.random.default_rng(1).normal(size=(COUNT, 6)), np.linspace(1, 2, COUNT)
    options = {"wrenches": {"l2": F}, "parameters": {"mass": masses}}
    a = model.forward_dynamics(q, v, np.zeros(model.nv), **options)
    # what moves freely takes no efforts
    np.testing.assert_allclose(model.inverse_dynamics(q, v, a, **options), 0, atol=1e-11)
    one = model.inverse_dynamics(q[3], v[3], a[3], wrenches={"l2": F[3]}, parameters={"mass": masses[3]})
    np.testing.assert_allclose(one, 0, atol=1e-11)
    with pytest.raises(
        ArgumentError, match=r"^inverse_dynamics: parameters are given, but the model has none"
    ):
        gear().inverse_dynamics(*(x[0] for x in states(gear())), parameters={"mass": 1.0})


def test_states_that_the_choice_does_not_serve_have_one_of_their_own():
    """Near folding, other rows and speeds are chosen, in the middle of a batch and after it."""
    model = four_bar()
    fold = np.pi / 2
    angles = [1.0, fold + 1e-3, 2.0, fold - 1e-3, 0.7, fold + 1e-5]
    q, v = (np.array(x) for x in zip(*(parallelogram(model, x, 1.0) for x in angles), strict=True))
    a = model.forward_dynamics(q, v, np.ones(model.nv))
    both = model.inverse_dynamics(q, v, a)
    G = model.constraint_jacobian(q)
    r = model.replace(loops=()).inverse_dynamics(q, v, a)
    for k in range(len(angles)):
        # in the motions that are left, all singular values of G being above its rank's tolerance
        N = np.linalg.svd(G[k])[2][2:].T
        np.testing.assert_allclose(both[k], N @ N.T @ r[k], atol=1e-9 * np.max(np.abs(r[k])))


def test_what_is_wrong_is_said_as_for_one_state():
    model = gear()
    q, v, a = states(model)
    model.inverse_dynamics(q, v, a)  # a choice is there
    bad = a.copy()
    bad[5, -1] += 10.0
    with pytest.raises(ArgumentError, match=r"^inverse_dynamics: a breaks coupling 'gear'"):
        model.inverse_dynamics(q, v, bad)
    with pytest.raises(ArgumentError, match=r"^inverse_dynamics: coupling 'gear' is not closed \(state 5\)"):
        model.inverse_dynamics(q + bad - a, v, a)
    with pytest.raises(ArgumentError, match=r"^inverse_dynamics: v breaks coupling 'gear' \(state 5\)"):
        model.inverse_dynamics(q, v + bad - a, a)
    with pytest.raises(NumericalError, match=r"^inverse_dynamics: a is nan at entry 2"):
        model.inverse_dynamics(q[0], v[0], np.where(np.arange(model.nv) == 2, np.nan, a[0]))
    with pytest.raises(ArgumentError, match=r"^inverse_dynamics: q has shape"):
        model.inverse_dynamics(q[0, :3], v[0], a[0])
    few = {"actuated": [model.speed_names[0]]}
    for _ in range(2):
        with pytest.raises(NumericalError, match="cannot give this motion: 6 degrees of freedom are left"):
            model.constrained_inverse_dynamics(q, v, a, **few)
    # loops that were open when they were closed enough
    loose = model.constrained_inverse_dynamics(q + 1e-4 * (bad - a), v, a, closure_tolerance=1e-2).efforts
    np.testing.assert_allclose(loose[4], model.inverse_dynamics(q[4], v[4], a[4]), atol=1e-12)
    with pytest.raises(ArgumentError, match="is not closed"):
        model.constrained_inverse_dynamics(q + 1e-4 * (bad - a), v, a, closure_tolerance=1e-6)


def test_a_row_that_was_redundant_at_the_first_state_is_seen():
    """The choice at a fold has a row less; elsewhere it must not be used."""
    model = four_bar()
    q, v, a = states(model)
    right = model.inverse_dynamics(q, v, a)
    folded = four_bar()
    at, _ = parallelogram(folded, np.pi / 2, 0.0)
    zero = np.zeros(model.nv)
    folded.inverse_dynamics(at, zero, zero)
    with pytest.warns(al.AlembertWarning, match="but 1 at an earlier configuration, which was singular"):
        found = folded.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(found, right, atol=CLOSE * np.max(np.abs(right)))


def test_many_rows_are_not_unrolled(monkeypatch):
    monkeypatch.setattr(drives, "MOST_ROWS", 0)
    monkeypatch.setattr(drives, "kernel", None)
    model = gear()
    q, v, a = states(model, 3)
    assert np.isfinite(model.inverse_dynamics(q, v, a)).all()

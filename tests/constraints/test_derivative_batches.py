"""Derivatives of constrained dynamics by compiled functions and by dense factors, of batches and of single states."""

import dataclasses
import pickle

import numpy as np
import pytest
from constraint_helpers import four_bars, parallelogram
from test_drives import MODELS, gear, redundant, states

import alembert as al
from alembert.constraints import compiled, saddle, solver
from alembert.constraints.results import CLEAR
from alembert.constraints.system import ConstraintRows
from alembert.errors import ArgumentError, NumericalError
from alembert.model import Actuator

COUNT = 9
# compiled factors lose eps / CLEAR^2 at most
CLOSE = 1e-10


def arrays(found):
    """All of a result, by name."""
    if isinstance(found, np.ndarray):
        return {"": found}
    if isinstance(found, tuple):
        return {f"{k}{name}": x for k, part in enumerate(found) for name, x in arrays(part).items()}
    if isinstance(found, dict):
        return {f"{key}{name}": x for key, part in found.items() for name, x in arrays(part).items()}
    fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    return {f"{key}.{name}": x for key, part in fields.items() for name, x in arrays(part).items()}


def functions(model, free):
    """By name, of q, v, tau and a; one independent speed is prescribed in hybrid dynamics."""
    given = {free: 0.3}
    masks = np.array([0.0 if name == free else 1.0 for name in model.speed_names])
    frame = model.bodies[-1].name
    push = {frame: np.arange(6.0)}
    return {
        "forward": lambda q, v, tau, a: model.forward_dynamics_derivatives(q, v, tau, wrenches=push),
        "inverse": lambda q, v, tau, a: model.inverse_dynamics_derivatives(q, v, a, wrenches=push),
        "hybrid": lambda q, v, tau, a: model.hybrid_dynamics(q, v, accelerations=given, wrenches=push),
        "hybrid'": lambda q, v, tau, a: model.hybrid_dynamics_derivatives(q, v, accelerations=given),
        "jvp": lambda q, v, tau, a: model.jvp("forward_dynamics", (q, v, tau), (v, a, tau)),
        "vjp": lambda q, v, tau, a: model.vjp("inverse_dynamics", (q, v, a), tau),
        "product": lambda q, v, tau, a: model.jvp(
            "hybrid_dynamics", (q, v, tau, a, masks), (v, a, a, tau, 0.0 * masks)
        ),
    }


def near(found, expected):
    for name, x in arrays(expected).items():
        size = max(1.0, float(np.max(np.abs(x), initial=0.0)))
        np.testing.assert_allclose(arrays(found)[name], x, atol=CLOSE * size, rtol=CLOSE, err_msg=name)


def some(model):
    q, v, a = states(model, COUNT)
    return q, v, np.random.default_rng(5).normal(size=v.shape), a


@pytest.mark.parametrize("make", MODELS)
def test_batches_single_states_and_dense_factors_agree(make, monkeypatch):
    model = make()
    at = some(model)
    free = model.independent_coordinates(at[0][0]).names[0]
    quick = functions(model, free)
    with monkeypatch.context() as patched:
        patched.setattr(ConstraintRows, "solution_derivatives", None)
        other = pickle.loads(pickle.dumps(model)).replace(name="dense")
        for name, function in functions(other, free).items():
            dense = [function(*(x[k] for x in at)) for k in range(COUNT)]
            batch = quick[name](*at)
            for k in range(COUNT):
                one = quick[name](*(x[k] for x in at))
                near(one, dense[k])
                for key, x in arrays(dense[k]).items():
                    np.testing.assert_allclose(arrays(batch)[key][k], x, atol=CLOSE * (1 + np.max(np.abs(x))))
            # dense factors over a batch, and a batch of another shape
            near(function(*at), batch)
            deep = quick[name](*(x.reshape(3, 3, -1) for x in at))
            for key, x in arrays(batch).items():
                np.testing.assert_allclose(
                    arrays(deep)[key].reshape(x.shape), x, atol=CLOSE * (1 + np.max(np.abs(x)))
                )


@pytest.mark.parametrize("make", MODELS)
def test_hybrid_derivatives_by_the_compiled_function_are_those_of_numpy(make, monkeypatch):
    """`derivatives._quick_hybrid` against `respond`."""
    model = make()
    q, v, *_ = some(model)
    given = {model.independent_coordinates(q[0]).names[0]: 0.3}
    quick = model.hybrid_dynamics_derivatives(q, v, accelerations=given)
    monkeypatch.setattr(compiled, "PRESCRIBED", 0)
    near(quick, model.hybrid_dynamics_derivatives(q, v, accelerations=given))


def test_compiled_derivatives_serve_where_they_can():
    """The minimal set that is kept where rows vanish or all count, that of each state where there is a choice."""
    model = four_bars(2).replace(name="served")
    q, v = (np.array(x) for x in zip(*(parallelogram(model, x, 1.0) for x in (0.3, 0.5)), strict=True))
    tau = np.ones((2, model.nv))
    model.forward_dynamics(q, v, tau)
    system = model.constrained_compute.rows.system("test", None)
    solved = solver.accelerations(system, (q, v, tau), (), (), system.masks)
    assert solver.is_own_set(solved[3], 1e-2)
    near, far = (
        solver.accelerations(system, (q + off, v, tau), (), (), system.masks)[3] for off in (1e-9, 1e-3)
    )
    assert solver.is_own_set(near, 1e-2)
    assert not solver.is_own_set(near, 1e-11)  # the loops are open by some 1e-9
    assert not solver.is_own_set(far, 1e-2)
    other = redundant()
    q, v, tau, _ = some(other)
    other.forward_dynamics(q, v, tau)
    system = other.constrained_compute.rows.system("test", None)
    solved = solver.accelerations(system, (q, v, tau), (), (), system.masks)
    assert np.all(compiled.states_served(solved[3], 1e-2, pivot=CLEAR))
    assert not solver.is_own_set(solved[3], 1e-2)


def folding(name):
    model = four_bars(1).replace(name=name)
    angles = (0.3, np.pi / 2 + 1e-5, 0.4, np.pi / 2, 0.5)
    found = [parallelogram(model, angle, 0.0) for angle in angles]
    return model, *(np.array(x) for x in zip(*found, strict=True))


@pytest.mark.parametrize("name", ["forward_dynamics_derivatives", "inverse_dynamics_derivatives"])
def test_a_singular_state_of_a_batch_is_named_and_the_others_are_as_alone(name):
    model, q, v = folding(f"folding for {name}")
    zero = np.zeros(model.nv)
    with pytest.warns(al.AlembertWarning, match=r"have rank 1 at q = .*, state 3 and 2 elsewhere"):
        batch = getattr(model, name)(q, v, zero)
    for k in (0, 1, 2, 4):
        single = getattr(model, name)(q[k], v[k], zero)
        # near the fold, 1e-5 away from it, forces are large and lose as many digits
        loss = 1e5 if k == 1 else 1.0
        np.testing.assert_allclose(
            batch.dq[k], single.dq, atol=loss * CLOSE * (1 + np.max(np.abs(single.dq)))
        )


def test_states_in_the_order_of_their_rank():
    model, q, v = folding("unfolding")
    zero = np.zeros(model.nv)
    with pytest.warns(al.AlembertWarning, match=r"have rank 2 at q = .*, state 1 but 1 at an earlier"):
        model.forward_dynamics_derivatives(q[3:], v[3:], zero)


def test_what_is_not_driven_names_the_state():
    model, q, v = folding("undriven")
    driven = model.replace(actuators=(Actuator("motor", "foot0"),))
    with (
        pytest.warns(al.AlembertWarning, match="state 2 and 2 elsewhere"),
        pytest.raises(
            NumericalError, match=r"drives 1 of the 2 degrees of freedom .* \(state 2\); efforts exist"
        ),
    ):
        driven.inverse_dynamics_derivatives(q[[0, 2, 3]], v[[0, 2, 3]], np.zeros(model.nv))


def test_accelerations_that_contradict_name_the_state():
    model = gear()
    q, v, *_ = some(model)
    first, second = model.couplings[0].masters[0], model.couplings[0].joint
    wrong = np.where(np.arange(COUNT) == 4, 1.0, -2.0)
    with pytest.raises(ArgumentError, match=r"cannot all follow, by .* \(state 4\); prescribe fewer"):
        model.hybrid_dynamics(q, v, accelerations={first: 1.0, second: wrong[:, None]})


def test_what_is_not_a_number_is_named():
    model = gear()
    q, v, tau, a = some(model)
    names, bad = model.speed_names, np.array(a[0])
    bad[2] = np.nan
    for _ in range(2):  # the second time by compiled functions
        with pytest.raises(NumericalError, match="hybrid_dynamics: a is nan at entry 0"):
            model.hybrid_dynamics(q[0], v[0], accelerations={names[0]: np.nan})
        with pytest.raises(NumericalError, match="derivatives: tau is nan at entry 2"):
            model.forward_dynamics_derivatives(q[0], v[0], bad)
        with pytest.raises(NumericalError, match="derivatives: a is nan at entry 2"):
            model.inverse_dynamics_derivatives(q[0], v[0], bad)
        model.hybrid_dynamics(q[0], v[0], accelerations={names[0]: 0.1})
        model.forward_dynamics_derivatives(q[0], v[0], tau[0])
        model.inverse_dynamics_derivatives(q[0], v[0], a[0])


def test_a_locked_joint_of_a_batch():
    builder = al.ModelBuilder("gimballed")
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0.2, 0.1))
    builder.body("base", al.Inertia.box(2.0, (0.3, 0.4, 0.5)), joint=al.Gimbal(), joint_name="gimbal")
    builder.body("first", rod, joint=al.Revolute(), parent="base", joint_name="a")
    builder.body("second", rod, joint=al.Revolute(), parent="first", placement=(1, 0, 0), joint_name="b")
    builder.coupling("gear", "b", ["a"], [-2.0])
    model = builder.build()
    E = model.independent_coordinates(model.neutral()).E
    q, v = (x @ E.T for x in np.random.default_rng(0).normal(size=(2, 4, E.shape[1])))
    tau = np.ones(model.nv)
    q[2, 1] = np.pi / 2
    for _ in range(2):
        with pytest.warns(al.AlembertWarning, match="gimbal"):
            batch = model.forward_dynamics_derivatives(q, v, tau)
        assert np.isnan(batch.acceleration[2]).any()
        assert np.isnan(batch.dq[2]).any()
        for k in (0, 1, 3):
            near(batch.dq[k], model.forward_dynamics_derivatives(q[k], v[k], tau).dq)


def test_no_states():
    model = gear()
    q, v, _, a = some(model)
    for k in (slice(0, 0), 0, slice(0, 0)):  # first without a minimal set, in the end by compiled functions
        for function in (model.forward_dynamics_derivatives, model.inverse_dynamics_derivatives):
            assert function(q[k], v[k], a[k]).dq.shape == (*q[k].shape[:-1], model.nv, model.nv)
        found = model.hybrid_dynamics_derivatives(q[k], v[k], accelerations={model.speed_names[0]: 1.0})
        assert found.dq.shape == (*q[k].shape[:-1], 2, model.nv, model.nv)


def test_minimal_sets_of_a_batch_are_those_of_its_matrices():
    rng = np.random.default_rng(0)
    for m, n, r in ((5, 3, 2), (4, 9, 4), (12, 7, 5), (1, 1, 1), (24, 16, 9)):
        G = rng.normal(size=(20, m, r)) @ rng.normal(size=(20, r, n))
        G[::3, 0] = 0.0
        G[7] = 0.0
        groups = [slice(0, (m + 1) // 2), *([slice((m + 1) // 2, m)] if m > 1 else [])]
        chosen, margin = saddle.choose_each(G, groups, np.full(20, saddle.RANK))
        for k in range(20):
            one = saddle.choose(G[k], groups, saddle.RANK)
            np.testing.assert_array_equal(np.flatnonzero(chosen[k]), one.rows)
            np.testing.assert_allclose(margin[k], one.margin, rtol=1e-9)
            assert one.rank == np.linalg.matrix_rank(G[k])
    # equally far: the first ones, whatever rounding says
    turned = np.array([[1.0, -1, 0], [0, -1, 1], [-1, 0, 1]]) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for G in (turned, turned[[2, 0, 1]]):
        assert saddle.choose(G, [slice(0, 3)], saddle.RANK).rows.tolist() == [0, 1]
        assert saddle.choose_each(G[None], [slice(0, 3)], np.array([saddle.RANK]))[0].tolist() == [
            [True, True, False]
        ]

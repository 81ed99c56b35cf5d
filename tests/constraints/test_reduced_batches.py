"""The equation of motion in independent speeds: what a batch gives is what its states give one by one."""

import numpy as np
import pytest
from constraint_helpers import four_bars, parallelogram

import alembert as al
from alembert import library
from alembert.errors import NumericalError
from alembert.model import Coupling

COUNT = 7


def geared():
    j = [joint.name for joint in library.make("arm7").joints]
    return library.make("arm7").replace(
        couplings=(
            Coupling("gear", j[6], (j[5],), (-2.0,), 0.1),
            Coupling("sum", j[2], (j[3], j[4]), (0.5, 0.5)),
        )
    )


def states(model):
    rng = np.random.default_rng(2)
    if model.loops:
        found = [parallelogram(model, angle, rate) for angle, rate in rng.uniform(-1, 1, (COUNT, 2))]
        return tuple(np.array(x) for x in zip(*found, strict=True))
    E = model.independent_coordinates(model.neutral()).E
    start = model.assemble(model.neutral()).q
    return start + rng.normal(size=(COUNT, E.shape[1])) @ E.T, rng.normal(size=(COUNT, E.shape[1])) @ E.T


@pytest.mark.parametrize("make", [geared, lambda: four_bars(2)], ids=["geared", "four_bars"])
def test_batches(make):
    model = make()
    q, v = states(model)
    names = model.independent_coordinates(q[0]).names
    a = model.forward_dynamics(q, v, np.ones(model.nv))
    frame, place = model.bodies[-1].name, al.Placement((0.1, 0.2, 0.3), (0.8, 0.0, 0.6, 0.0))
    functions = [
        lambda q, v, a: model.mass_matrix(q, coordinates=names),
        lambda q, v, a: model.bias_forces(q, v, coordinates=names),
        lambda q, v, a: model.gravity_forces(q, coordinates=names),
        lambda q, v, a: model.coriolis_forces(q, v, coordinates=names),
        lambda q, v, a: model.independent_coordinates(q, v, independent=names).rate,
        lambda q, v, a: al.identify.regressor(model, q, v, a, coordinates=names).Y,
        lambda q, v, a: al.admittance(model, q, [frame, (frame, place), "world"]),
    ]
    for function in functions:
        batch = function(q, v, a)
        single = np.array([function(*x) for x in zip(q, v, a, strict=True)])
        # each state chooses its own rows (and of the admittance its own speeds), the batch those of the first
        np.testing.assert_allclose(batch, single, atol=1e-11 * np.max(np.abs(single)))
        np.testing.assert_array_equal(function(q.reshape(1, COUNT, -1), v[None], a[None])[0], batch)


def test_admittance_is_that_of_accelerations_due_to_wrenches():
    model = geared()
    q, _ = states(model)
    frame, zero = model.bodies[-1].name, np.zeros(model.nv)
    F = np.random.default_rng(1).normal(size=(COUNT, 6))
    caused = model.forward_dynamics(q, zero, zero, wrenches={frame: F}) - model.forward_dynamics(
        q, zero, zero
    )
    moved = (model.frame_jacobian(q, frame) @ caused[..., None])[..., 0]
    found = (al.admittance(model, q, [frame]) @ F[..., None])[..., 0]
    np.testing.assert_allclose(found, moved, atol=1e-10 * np.max(np.abs(moved)))


def test_states_within_a_batch_where_the_rank_is_another_are_seen():
    model = four_bars(1).replace(name="folding")
    fold = np.pi / 2
    q = np.array([parallelogram(model, angle, 0.0)[0] for angle in (0.3, fold + 1e-5, 0.4, fold)])
    # rows that served the first, but a condition of 1e5 at the second
    near = model.mass_matrix(q[:3], coordinates=["foot0"])
    single = np.array([model.mass_matrix(x, coordinates=["foot0"]) for x in q[:3]])
    np.testing.assert_allclose(near, single, rtol=1e-9)
    with (
        pytest.warns(al.AlembertWarning, match="the constraints have rank 1"),
        pytest.raises(NumericalError, match="do not determine the others at this configuration, state 3"),
    ):
        model.mass_matrix(q, coordinates=["foot0"])
    # a first state with a row less
    other = four_bars(1).replace(name="unfolding")
    with (
        pytest.warns(al.AlembertWarning, match="but 1 at an earlier configuration"),
        pytest.raises(NumericalError, match="do not determine the others at this configuration, state 1"),
    ):
        other.mass_matrix(q[::-1], coordinates="independent")


def test_admittance_over_parameters_that_place_the_frame():
    builder = al.ModelBuilder("geared", gravity=(0, -9.81, 0))
    length = builder.parameter("length", 1.0)
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("first", rod, joint=al.Revolute(), joint_name="a")
    builder.body("second", rod, joint=al.Revolute(), parent="first", placement=(length, 0, 0), joint_name="b")
    builder.frame("tip", "second", (length, 0, 0))
    builder.coupling("gear", "b", ["a"], [-2.0])
    model = builder.build()
    q, lengths = np.array([0.3, -0.6]), np.array([0.5, 1.0, 2.0])
    batch = al.admittance(model, q, ["tip"], parameters={"length": lengths})
    for found, value in zip(batch, lengths, strict=True):
        # one motion: Lambda = x x^T / m with x = J E, m = E^T M E
        E = np.array([1.0, -2.0])
        x = model.frame_jacobian(q, "tip", parameters={"length": value}) @ E
        m = E @ model.mass_matrix(q, parameters={"length": value}) @ E
        np.testing.assert_allclose(found, np.outer(x, x) / m, atol=1e-13)

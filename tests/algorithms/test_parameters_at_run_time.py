"""Named parameters are inputs of the compiled code."""

import dataclasses

import numpy as np
import pytest
from dynamics_helpers import ROUNDING, relative, states, tree

from alembert import Fixed, Friction, Inertia, ModelBuilder, Placement, Revolute
from alembert.algorithms.algorithm import Options
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, NumericalError


@pytest.fixture(scope="module")
def model():
    return tree("parameters")


def changed(model, seed, count=()):
    """All parameters within 20 % of their defaults."""
    rng = np.random.default_rng(seed)
    return {name: value * rng.uniform(0.8, 1.2, size=count) for name, value in model.parameters}


def test_parameters_are_in_all_parts_of_the_model(model):
    names = " ".join(model.parameter_values)
    for part in ("mass", "com", "place", "tilt", "stiffness", "viscous", "armature", "rotor", "g"):
        assert part in names


def test_given_parameters_are_those_of_a_model_with_other_defaults(model):
    q, v, x = states(model, 4)
    values = {name: float(value) for name, value in changed(model, 1).items()}
    other = model.replace(parameters=values)
    for name, given in {
        "forward_dynamics": (q, v, x),
        "inverse_dynamics": (q, v, x),
        "mass_matrix": (q,),
        "potential_energy": (q,),
        "momentum": (q, v),
    }.items():
        found = getattr(model, name)(*given, parameters=values)
        assert np.array_equal(found, getattr(other, name)(*given)), name
        assert not np.allclose(found, getattr(model, name)(*given)), name


def test_arrays_of_parameters_over_the_batch(model):
    q, v, tau = states(model, 5)
    values = changed(model, 2, count=5)
    found = model.forward_dynamics(q, v, tau, parameters=values)
    one_state = model.forward_dynamics(q[0], v[0], tau[0], parameters=values)
    assert one_state.shape == (5, model.nv)
    for k in range(5):
        own = {name: float(value[k]) for name, value in values.items()}
        np.testing.assert_array_equal(found[k], model.forward_dynamics(q[k], v[k], tau[k], parameters=own))
    np.testing.assert_array_equal(one_state[0], found[0])


def test_identities_hold_for_any_parameters(model):
    q, v, tau = states(model, 16)
    values = changed(model, 3, count=16)
    a = model.forward_dynamics(q, v, tau, parameters=values)
    M, bias = model.mass_matrix(q, parameters=values), model.bias_forces(q, v, parameters=values)
    product = (M @ a[..., None])[..., 0]
    assert relative(product + bias - tau, np.abs(product) + np.abs(bias)) < ROUNDING
    T = model.kinetic_energy(q, v, parameters=values)
    np.testing.assert_allclose(np.einsum("ki,kij,kj->k", v, M, v) / 2, T, rtol=ROUNDING)
    for method in ("factorise", "conjugate_gradients"):
        other = model.forward_dynamics(q, v, tau, parameters=values, method=method)
        condition = np.linalg.cond(M).max()
        assert relative(other - a, a) < ROUNDING * condition


def test_other_parameters_compile_nothing(model, monkeypatch):
    q, v, tau = states(model, 1)
    model.forward_dynamics(q[0], v[0], tau[0], parameters=changed(model, 99))
    built = []
    made = Kernel._made
    monkeypatch.setattr(Kernel, "_made", lambda self, *a: built.append(self) or made(self, *a))
    for seed in range(10):
        model.forward_dynamics(q[0], v[0], tau[0], parameters=changed(model, seed))
    assert built == []


def test_parameters_left_out_keep_their_defaults(model):
    q, v, tau = states(model, 1)
    name, value = model.parameters[0]
    default = model.forward_dynamics(q[0], v[0], tau[0])
    np.testing.assert_array_equal(
        model.forward_dynamics(q[0], v[0], tau[0], parameters={name: value}), default
    )
    np.testing.assert_array_equal(model.forward_dynamics(q[0], v[0], tau[0], parameters={}), default)


def test_messages(model):
    q, v, tau = (x[0] for x in states(model, 1))
    with pytest.raises(ArgumentError, match="forward_dynamics: no parameter 'mas1'"):
        model.forward_dynamics(q, v, tau, parameters={"mas1": 1.0})
    plain = tree("plain")
    with pytest.raises(ArgumentError, match="mass_matrix: parameters are given, but the model has none"):
        plain.mass_matrix(plain.neutral(), parameters={"mass": 1.0})
    with pytest.raises(ArgumentError, match="kinetic_energy: parameters are given, but the model has none"):
        plain.symbolic.kinetic_energy(plain.neutral(), np.zeros(plain.nv), parameters=[1.0])


def test_frames_at_arrays_of_parameters(model):
    """A frame whose place depends on parameters, each state of a batch with its own."""
    q, v, a = states(model, 4)
    values = changed(model, 5, count=4)
    name = next(n for n in model.parameter_values if n.startswith("tip")).partition("_")[0]
    F = np.random.default_rng(0).normal(size=6)

    def all_of(q, v, a, given):
        X = model.frame_pose(q, name, parameters=given)
        return (
            X.rotation,
            X.translation,
            model.frame_velocity(q, v, name, reference="world", parameters=given),
            model.frame_acceleration(q, v, a, name, parameters=given),
            model.frame_jacobian(q, name, point=(0.1, 0.2, 0.3), parameters=given),
            model.inverse_dynamics(q, v, a, wrenches={name: F}, parameters=given),
        )

    found = all_of(q, v, a, values)
    for k in range(4):
        own = {key: float(x[k]) for key, x in values.items()}
        for x, y in zip(found, all_of(q[k], v[k], a[k], own), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-12, atol=1e-12)
    for x, y in zip(found, all_of(q[:1], v[:1], a[:1], values), strict=True):
        assert x.shape == y.shape


@pytest.fixture(scope="module")
def lift():
    builder = ModelBuilder("lift")
    m, size, rub = (builder.parameter(name, 1.0) for name in ("m", "size", "rub"))
    tensor = (0.1 * size, 0.0, 0.1, 0.0, 0.0, 0.1)
    builder.body("beam", Inertia(m, (1, 0, 0), tensor), joint=Revolute((0, 1, 0)), friction=Friction((rub,)))
    return builder.build()


def test_unphysical_parameters_are_refused(lift):
    """In the words of the builder, with the first state of a batch; one bad state refuses all."""
    q = np.zeros(1)
    for given, message in {
        ("m", -2.0): "body 'beam': mass is -2, expected a positive number",
        ("size", -1.0): "body 'beam': inertia is not positive: principal moments (-0.1, 0.1, 0.1)",
        (
            "size",
            3.0,
        ): "body 'beam': inertia violates the triangle inequality: principal moments (0.1, 0.1, 0.3)",
        ("rub", -0.5): "joint 'beam_joint': viscous friction is -0.5, expected zero or more",
    }.items():
        with pytest.raises(ArgumentError) as caught:
            lift.gravity_forces(q, parameters=dict([given]))
        assert str(caught.value).startswith(f"gravity_forces: with the given parameters, {message}")
    with pytest.raises(ArgumentError) as caught:
        lift.mass_matrix(q, parameters={"m": np.array([[1.0, 2.0], [-1.0, -3.0]])})
    assert str(caught.value) == (
        "mass_matrix: with the given parameters (the first of 2, at (1, 0)), "
        "body 'beam': mass is -1, expected a positive number"
    )


def test_good_parameters_pass(lift):
    q = np.zeros(1)
    loads = np.linspace(0.0, 5.0, 11)[1:]
    for _ in range(2):  # the second time remembered
        found = lift.gravity_forces(q, parameters={"m": loads, "size": 1.9, "rub": 0.0})
        np.testing.assert_allclose(found[:, 0], -9.81 * loads, rtol=1e-14)
    with pytest.raises(NumericalError, match="parameters is nan at entry 0 \\(m\\)"):
        lift.gravity_forces(q, parameters={"m": np.nan})


def test_what_was_loaded_as_unphysical_stays_so(lift):
    """The way out: a model that breaks the rule at its defaults is not held to it."""
    flat = dataclasses.replace(lift, parameters=(("m", 1.0), ("size", 3.0), ("rub", 1.0)))
    assert np.isfinite(flat.gravity_forces(np.zeros(1), parameters={"size": 4.0})).all()


def welded(values=None):
    """Bodies welded in a row, each turned and shifted by parameters (or by their `values`)."""
    builder = ModelBuilder("welded")
    solid = Inertia.box(1.0, (0.1, 0.2, 0.3), (0.1, 0.0, 0.2))
    builder.body("base", solid, joint=Revolute((0, 0, 1)))
    parent = "base"
    for k in range(5):
        turn, shift, mass = (
            builder.parameter(f"{name}{k}", x) if values is None else values[f"{name}{k}"]
            for name, x in (("turn", 0.1 * k), ("shift", 0.2), ("mass", 1.0 + k))
        )
        place = Placement.from_rpy((turn, 0.3, turn), (shift, 0.1, 0.2))
        builder.body(f"weld{k}", solid.scaled(mass), joint=Fixed(), parent=parent, placement=place)
        parent = f"weld{k}"
    builder.frame("mark", parent, Placement((0.1, 0.2, 0.3)))
    builder.body("tip", solid, joint=Revolute((0, 1, 0)), parent=parent, placement=(0, 0, 0.1))
    return builder.build()


def test_parameters_through_a_row_of_welds():
    """Neither do their formulas nest, nor do they change what numbers give."""
    model = welded()
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 2))
    values = {name: rng.uniform(0.5, 1.5) for name in model.parameter_values}
    other = welded(values)
    wrenches = {"mark": rng.normal(size=6)}
    for name, given in {
        "forward_dynamics": (q, v, a),
        "inverse_dynamics": (q, v, a),
        "mass_matrix": (q,),
        "center_of_mass": (q,),
    }.items():
        more = {"wrenches": wrenches} if name.endswith("dynamics") else {}
        found = getattr(model, name)(*given, **more, parameters=values)
        np.testing.assert_allclose(found, getattr(other, name)(*given, **more), rtol=1e-11, atol=1e-12)
    X, Y = model.frame_pose(q, "mark", parameters=values), other.frame_pose(q, "mark")
    np.testing.assert_allclose(X.translation, Y.translation, rtol=1e-12)
    np.testing.assert_allclose(X.rotation, Y.rotation, atol=1e-14)
    J = model.symbolic.frame_jacobian(q, "mark", parameters=values).full()
    np.testing.assert_allclose(J, other.frame_jacobian(q, "mark"), atol=1e-13)
    assert model.symbolic.graph("inverse_dynamics", Options()).function.n_instructions() < 5000

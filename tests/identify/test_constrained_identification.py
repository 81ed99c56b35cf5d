"""Identification of models with couplings and loops, from the efforts of their drives."""

import functools

import numpy as np
import pytest

import alembert as al
from alembert import identify
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.identify import Measurements

RNG = 20


@functools.cache
def arm():
    """Two links and a gripper, the right finger of which mimics the left."""
    builder = al.ModelBuilder("gripper", gravity=(0, 0, -9.81))
    builder.body(
        "upper", al.Inertia(2.0, (0.02, 0, 0.2), (0.03, 0, 0.04, 0, 0, 0.01)), joint=al.Revolute((0, 1, 0)),
        joint_name="shoulder", friction=al.Friction(viscous=(0.4,)),
    )  # fmt: skip
    builder.body(
        "hand", al.Inertia(1.0, (0.01, 0, 0.1), (0.01, 0, 0.01, 0, 0, 0.005)), joint=al.Revolute((0, 1, 0)),
        joint_name="elbow", parent="upper", placement=(0, 0, 0.5),
    )  # fmt: skip
    for name, side in (("left", 1.0), ("right", -1.0)):
        builder.body(
            f"finger_{name}", al.Inertia.box(0.3, (0.02, 0.02, 0.06)), joint=al.Prismatic((side, 0, 0)),
            joint_name=name, parent="hand", placement=(0, 0, 0.2),
        )  # fmt: skip
    builder.coupling("mimic", "right", ["left"], [1.0])
    for joint in ("shoulder", "elbow", "left"):
        builder.actuator(joint, joint)
    model = builder.build()
    t = np.linspace(0.0, 10.0, 400)
    w = 2 * np.pi / 10 * np.arange(1, 6)
    rng = np.random.default_rng(1)
    q, v, a = np.zeros((3, len(t), 4))
    for k, size in enumerate((0.5, 0.6, 0.05)):
        c, s = size * rng.normal(size=(2, 5)) / 2
        q[:, k] = np.sin(np.outer(t, w)) @ s + np.cos(np.outer(t, w)) @ c
        v[:, k] = np.cos(np.outer(t, w)) @ (w * s) - np.sin(np.outer(t, w)) @ (w * c)
        a[:, k] = -np.sin(np.outer(t, w)) @ (w**2 * s) - np.cos(np.outer(t, w)) @ (w**2 * c)
    for x in (q, v, a):
        x[:, 3] = x[:, 2]
    return model, q, v, a


@functools.cache
def four_bar():
    """A motor at the crank; the crank turns round with varying speed."""
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    builder.body(
        "crank", al.Inertia.rod(1.0, (0, 0, 0), (0.3, 0, 0)), joint=al.Revolute(), joint_name="crank"
    )
    builder.body(
        "coupler", al.Inertia(1.5, (0.5, 0.1, 0), (0.02, 0, 0.1, 0, 0, 0.12)), joint=al.Revolute(),
        joint_name="coupler", parent="crank", placement=(0.3, 0, 0),
    )  # fmt: skip
    builder.body(
        "rocker", al.Inertia(2.0, (0.3, 0.05, 0), (0.02, 0, 0.1, 0, 0, 0.12)), joint=al.Revolute(),
        joint_name="rocker", placement=(0.8, 0, 0), friction=al.Friction(viscous=(0.5,)),
    )  # fmt: skip
    builder.frame("end", "coupler", (0.9, 0, 0)).frame("top", "rocker", (0.7, 0, 0))
    builder.loop("pin", al.Revolute(), "end", "top")
    builder.actuator("motor", "crank")
    model = builder.build()
    t = np.linspace(0.0, 8.0, 400)
    angle, rate = 1.0 + 3 * t + np.sin(2.1 * t), 3 + 2.1 * np.cos(2.1 * t)
    q = np.zeros((len(t), 3))
    q[0] = model.assemble([angle[0], -0.4, 1.6], fixed=["crank"]).q
    for k in range(1, len(t)):
        q[k] = model.assemble([angle[k], *q[k - 1, 1:]], fixed=["crank"]).q
    by = model.independent_coordinates(q, independent=["crank"])
    v = (by.E @ rate[:, None, None])[..., 0]
    by = model.independent_coordinates(q, v, independent=["crank"])
    a = (by.E @ (-(2.1**2) * np.sin(2.1 * t))[:, None, None])[..., 0] + by.rate
    return model, q, v, a


def measured(model, q, v, a, *, noise, off=0.0):
    """Efforts of the drives with noise, and states that are off by their own."""
    rng = np.random.default_rng(RNG)
    tau = model.constrained_inverse_dynamics(q, v, a).efforts
    driven = np.any(tau != 0, axis=0)
    tau = np.where(driven, tau + noise * rng.normal(size=tau.shape), 0.0)
    return Measurements(*(x + off * rng.normal(size=x.shape) for x in (q, v, a)), tau)


def wrong(model):
    """The same mechanism with other masses."""
    scale = dict(zip([body.name for body in model.bodies], (1.4, 0.7, 1.2, 0.8), strict=False))
    bodies = tuple(
        al.Body(b.name, b.inertia.scaled(scale[b.name])) if b.name in scale else b for b in model.bodies
    )
    return model.replace(bodies=bodies)


@pytest.mark.parametrize("case", [arm, four_bar])
def test_parameters_are_recovered(case):
    """Base parameters within five of their standard errors, and predictions of another motion to a fraction of the noise."""
    model, q, v, a = case()
    data = measured(model, q, v, a, noise=0.05)
    found = identify.identify(wrong(model), data, method="least_squares")
    true = identify.regressor(model, q[0], v[0], a[0]).pi[found.free]
    error = np.abs(found.base_values - found.base.values(true)) / found.base_standard_errors
    assert np.max(error) < 5, error
    assert found.excited == found.base.rank
    assert set(found.effort_names) <= {x.joint for x in model.actuators}
    np.testing.assert_allclose(found.noise, 0.05, rtol=0.15)
    # 400 samples: the rms of the error of a prediction is sqrt(parameters / samples) of the noise
    clean = identify.regressor(model, q, v, a, coordinates=found.effort_names).predict()
    left = np.sqrt(np.mean((found.predict(q, v, a) - clean) ** 2))
    assert left < 2 * 0.05 * np.sqrt(found.base.rank / len(q) / len(found.effort_names))
    assert "std error" in str(found)


@pytest.mark.parametrize("case", [arm, four_bar])
def test_consistent_inertias_are_found(case):
    """The identified model moves like the true one, though not every parameter can be told."""
    model, q, v, a = case()
    prior = wrong(model)
    found = identify.identify(prior, measured(model, q, v, a, noise=0.05))
    tau = model.constrained_inverse_dynamics(q[::20], v[::20], a[::20]).efforts
    off = [
        np.linalg.norm(m.forward_dynamics(q[::20], v[::20], tau) - a[::20]) / np.linalg.norm(a)
        for m in (prior, found.model)
    ]
    assert off[1] < 0.1 * off[0]


def test_states_that_are_off_the_constraints():
    """Noise of the encoders opens the loop; the nearest closed states serve."""
    model, q, v, a = four_bar()
    data = measured(model, q, v, a, noise=0.05, off=1e-4)
    found = identify.identify(wrong(model), data, method="least_squares")
    assert np.abs(model.constraint_residual(data.q)).max() > 1e-5
    assert np.abs(model.constraint_residual(found.data.q)).max() < 1e-12
    G, gamma = model.constraint_jacobian(found.data.q), model.constraint_bias(found.data.q, found.data.v)
    np.testing.assert_allclose((G @ found.data.a[..., None])[..., 0], -gamma, atol=1e-9)
    assert found.r_squared[0] > 0.99


def test_known_noise_weighs_the_equations():
    """The same noise given, or estimated: nearly the same estimates; a drive with infinite noise counts for nothing."""
    model, q, v, a = arm()
    data = measured(model, q, v, a, noise=0.05)
    given = Measurements(data.q, data.v, data.a, data.tau, noise=0.05)
    found = [identify.identify(wrong(model), x, method="least_squares") for x in (data, given)]
    # the finger's noise is the same in tau_left and in E^T tau, as no other drive is coupled to it; that of the
    # follower, which has no drive, adds to it: sqrt(2)
    np.testing.assert_allclose(found[1].noise, [0.05, 0.05, 0.05 * np.sqrt(2)], rtol=1e-9)
    np.testing.assert_allclose(
        found[1].base_values, found[0].base_values, atol=3 * np.max(found[0].base_standard_errors)
    )
    blind = Measurements(data.q, data.v, data.a, data.tau * [1, 1, 0, 0], noise=[0.05, 0.05, np.inf, np.inf])
    left = identify.identify(wrong(model), blind, method="least_squares")
    clean = identify.regressor(model, q, v, a, coordinates=left.effort_names).predict()
    np.testing.assert_allclose(left.predict(q, v, a)[:, :2], clean[:, :2], atol=0.1)


def test_base_parameters_are_those_of_the_closed_mechanism():
    """A chain driven at one joint by gears shows fewer parameters than free; a tree's are the same both ways."""
    model, q, v, a = four_bar()
    tree = model.replace(loops=())
    closed, free = identify.base_parameters(model), identify.base_parameters(tree)
    assert closed.rank <= free.rank
    Y = identify.regressor(model, q, v, a, coordinates=["crank"]).Y
    pi = identify.regressor(model, q[0], v[0], a[0]).pi
    np.testing.assert_allclose(
        closed.regressor(Y) @ closed.values(pi), Y @ pi, atol=1e-8 * np.abs(Y @ pi).max()
    )
    along = identify.base_parameters(model, states=(q, v, a))
    assert along.rank <= closed.rank


def test_refusals():
    model, q, v, a = four_bar()
    with pytest.raises(
        UnsupportedError, match=r"exciting_trajectory: model 'four_bar' has loops, couplings or eq"
    ):
        identify.exciting_trajectory(model, iterations=1)
    data = measured(model, q, v, a, noise=0.0)
    few = Measurements(data.q[:2], data.v[:2], data.a[:2], data.tau[:2])
    with pytest.raises(ArgumentError, match="identify: 2 samples of 1 efforts are 2 equations"):
        identify.identify(model, few)
    stretched = model.replace(
        frames=tuple(
            al.Frame(f.name, f.body, al.Placement((9.0, 0, 0))) if f.name == "end" else f
            for f in model.frames
        )
    )
    with pytest.raises(
        NumericalError, match=r"constraints of model 'four_bar' could not be closed from random"
    ):
        identify.base_parameters(stretched)

"""Y pi + known is inverse dynamics, for every joint type and everything that a joint carries."""

import numpy as np
import pytest

from alembert import Coupling, Fixed, Friction, Inertia, ModelBuilder, Placement, Revolute, Rotor, library
from alembert.errors import ArgumentError
from alembert.identify import from_log_cholesky, regression, regressor
from alembert.identify.regression import compile_regressor
from alembert.joints import REGISTRY
from alembert.sensitivity.regressor import TEN

# Both sides are sums of some hundred products over at most 13 bodies in a row; 1e-10 is far above their rounding.
TOLERANCE = 1e-10


def states(model, count=20, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def check(model, **options):
    q, v, a = states(model)
    expected = model.inverse_dynamics(q, v, a)
    found = regressor(model, q, v, a, **options)
    assert found.Y.shape == (len(q), model.nv, len(found.names))
    assert len(set(found.names)) == len(found.names)
    assert np.abs(found.predict() - expected).max() <= TOLERANCE * np.abs(expected).max()
    return found


@pytest.mark.parametrize("kind", [kind for kind in REGISTRY if kind != "fixed"])
def test_every_joint_type(kind):
    check(library.random_tree(2, bodies=3, kinds=[kind, "revolute"], attachments=True))


@pytest.mark.parametrize("seed", [5, 11])
def test_random_trees(seed):
    check(library.random_tree(seed, bodies=13, attachments=seed == 11))


def test_linear_in_the_parameters_of_the_model():
    """With parameters given at run time, the efforts change as Y times the change of pi."""
    model = library.random_tree(
        3, bodies=6, kinds=("revolute", "spherical"), attachments=True, parameters=True
    )
    q, v, a = states(model, 5)
    masses = {name: 1.7 * value for name, value in model.parameters if name.startswith(("mass", "viscous"))}
    assert masses
    found = regressor(model, q, v, a, parameters=masses)
    expected = model.inverse_dynamics(q, v, a, parameters=masses)
    assert np.abs(found.predict() - expected).max() <= TOLERANCE * np.abs(expected).max()
    before = regressor(model, q, v, a)
    assert np.any(found.pi != before.pi)
    change = found.Y @ (found.pi - before.pi)
    difference = expected - model.inverse_dynamics(q, v, a)
    assert np.abs(change - difference).max() <= TOLERANCE * np.abs(expected).max()


def test_the_same_columns_serve_any_inertias():
    """Y does not depend on pi: that of one model gives the efforts of another with other bodies."""
    model = library.random_tree(6, bodies=3, kinds=["free", "gimbal", "screw"])
    q, v, a = states(model)
    found = regressor(model, q, v, a)
    tens = from_log_cholesky(np.random.default_rng(1).normal(size=(3, 10)))
    for body, ten in zip(model.bodies, tens, strict=True):
        model = model.replace_body(body.name, inertia=Inertia.from_ten_vector(ten))
    expected = model.inverse_dynamics(q, v, a)
    assert np.abs(found.predict(tens.ravel()) - expected).max() <= TOLERANCE * np.abs(expected).max()


def test_large_trees_multiply_the_factors(monkeypatch):
    model = library.random_tree(2, bodies=3, kinds=["gimbal", "revolute"], attachments=True)
    q, v, a = states(model)
    unrolled = regressor(model, q, v, a)
    assert compile_regressor(model).unrolled
    compile_regressor.cache_clear()
    monkeypatch.setattr(regression, "UNROLLED", 0)
    assert not compile_regressor(model).unrolled
    factors = regressor(model, q, v, a)
    compile_regressor.cache_clear()
    assert np.abs(factors.Y - unrolled.Y).max() <= TOLERANCE * np.abs(unrolled.Y).max()
    one = regressor(model, q[0], v[0], a[0])
    assert np.abs(one.Y - unrolled.Y[0]).max() <= TOLERANCE * np.abs(unrolled.Y).max()


def test_names_values_and_order():
    model = library.arm7()
    found = regressor(model, *(np.zeros(7) for _ in range(3)))
    assert found.names[:10] == tuple(f"link1.{name}" for name in TEN)
    assert found.names[70:73] == ("joint1.viscous", "joint1.coulomb", "joint1.armature")
    np.testing.assert_allclose(found.pi[20:30], model.body("link3").inertia.ten_vector())
    assert found.pi[found.names.index("joint1.viscous")] == 1.2


def test_bodies_on_fixed_joints_count_with_what_carries_them():
    builder = ModelBuilder("welded")
    builder.body("arm", Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=Revolute((0, 1, 0)))
    builder.body(
        "tip", Inertia.sphere(2.0, 0.1), joint=Fixed(), parent="arm", placement=Placement((1.0, 0.0, 0.0))
    )
    model = builder.build()
    found = check(model)
    assert found.names == tuple(f"arm.{name}" for name in TEN)
    np.testing.assert_allclose(found.pi, model.total_inertia_of("arm").ten_vector(), atol=1e-15)


def test_include_adds_columns():
    model = library.acrobot()
    found = check(model, include=("viscous", "coulomb", "armature"), smoothing=0.1)
    _, v, a = states(model)
    names = list(found.names)
    joint = model.joints[1].name
    np.testing.assert_allclose(found.Y[:, 1, names.index(f"{joint}.viscous")], v[:, 1])
    np.testing.assert_allclose(
        found.Y[:, 1, names.index(f"{joint}.coulomb")], v[:, 1] / np.hypot(v[:, 1], 0.1)
    )
    np.testing.assert_allclose(found.Y[:, 1, names.index(f"{joint}.armature")], a[:, 1])


def test_several_rotors_have_columns_of_their_own():
    base = library.arm7(rotors=True)
    rotors = (Rotor(50.0, 1e-5, (1.0, 0.0, 0.0)), Rotor(-20.0, 2e-5, (0.0, 0.6, 0.8)))
    found = check(base.replace_joint("joint3", rotors=rotors))
    assert {"joint3.rotor1", "joint3.rotor2", "joint4.rotor"} <= set(found.names)


def test_coulomb_friction_uses_the_smoothing_of_the_model():
    model = library.pendulum().replace_joint("pivot", friction=Friction(coulomb=(0.3,), smoothing=0.5))
    check(model)


def test_batches_and_single_states_agree():
    model = library.two_link()
    q, v, a = states(model, 6)
    batch = regressor(model, q.reshape(2, 3, -1), v.reshape(2, 3, -1), a.reshape(2, 3, -1))
    assert batch.Y.shape[:2] == (2, 3)
    assert np.array_equal(batch.Y[1, 2], regressor(model, q[5], v[5], a[5]).Y)


def test_refusals():
    model = library.two_link()
    zero = np.zeros(2)
    with pytest.raises(ArgumentError, match=r"regressor: q has shape \(3,\), expected \(..., 2\)"):
        regressor(model, np.zeros(3), zero, zero)
    with pytest.raises(ArgumentError, match=r"include: no term 'viscos'; did you mean 'viscous'\?"):
        regressor(model, zero, zero, zero, include=("viscos",))
    with pytest.raises(ArgumentError, match=r"smoothing is 0.0, expected a positive speed"):
        regressor(model, zero, zero, zero, smoothing=0.0)
    with pytest.raises(ArgumentError, match=r"parameters are given, but the model has none"):
        regressor(model.replace(parameters=()), zero, zero, zero, parameters={"m": 1.0})


def test_refusals_of_parameters():
    model = library.random_tree(3, bodies=2, kinds=("revolute",), parameters=True)
    zero = np.zeros(2)
    with pytest.raises(ArgumentError, match="regressor: no parameter 'gg'"):
        regressor(model, zero, zero, zero, parameters={"gg": 1.0})
    with pytest.raises(ArgumentError, match=r"parameter 'g' has shape \(3,\), expected a number"):
        regressor(model, zero, zero, zero, parameters={"g": np.ones(3)})


def test_couplings_in_both_coordinates():
    """The tree's efforts, or those of the shoulder with the elbow turning twice as far."""
    model = library.two_link()
    coupled = model.replace(couplings=(Coupling("gear", "elbow", ("shoulder",), (2.0,)),))
    q, v, a = (np.array([x, 2 * x]) for x in (0.3, -0.5, 0.8))
    tau = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(regressor(coupled, q, v, a).predict(), tau, rtol=1e-12)
    found = regressor(coupled, q, v, a, coordinates=["shoulder"])
    np.testing.assert_allclose(found.predict(), [tau[0] + 2 * tau[1]], rtol=1e-12)
    with pytest.raises(ArgumentError, match="regressor: coordinates is 'both', expected 'all'"):
        regressor(coupled, q, v, a, coordinates="both")

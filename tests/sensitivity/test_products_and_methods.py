"""The value that `jvp` gives beside the derivative is that of the method of the same name, in its shape."""

import inspect

import numpy as np
import pytest

import alembert as al
from alembert import library
from alembert.algorithms.table import all_with

MODELS = {
    "tree": library.random_tree(3, bodies=2, kinds=("spherical", "revolute"), attachments=True),
    "one speed": library.pendulum(),
}
METHODS = [name for name in all_with("has_derivatives") if hasattr(al.Model, name)]
SEVERAL = ("hybrid_dynamics", "inverse_dynamics_derivatives", "frame_pose")


def state(model):
    rng = np.random.default_rng(1)
    q0, q1 = (model.random_configuration(rng) for _ in range(2))
    v, a, tau = rng.normal(size=(3, model.nv))
    return {"q": q0, "q0": q0, "q1": q1, "v": v, "dv": v, "x": v, "a": a, "tau": tau}


def test_the_list_is_complete():
    assert {"momentum", "momentum_matrix", "energy", "frame_jacobian", "integrate"} < set(METHODS)


@pytest.mark.parametrize("label", MODELS)
@pytest.mark.parametrize("name", [name for name in METHODS if name not in SEVERAL])
def test_value(name, label):
    model = MODELS[label]
    method = getattr(model, name)
    needed = [p.name for p in inspect.signature(method).parameters.values() if p.default is p.empty]
    frame = {"frame": model.bodies[-1].name} if "frame" in needed else {}
    at = [state(model)[key] for key in needed if key != "frame"]
    value, change = model.jvp(name, at, [np.zeros(model.nv) for _ in at], **frame)
    expected = method(*at, **frame)
    assert np.shape(value) == np.shape(change) == np.shape(expected)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-13)
    assert not np.any(change)


def test_value_of_a_pose():
    model = MODELS["tree"]
    q = state(model)["q"]
    (R, p), _ = model.jvp("frame_pose", (q,), (np.zeros(model.nv),), frame=model.bodies[-1].name)
    pose = model.frame_pose(q, model.bodies[-1].name)
    np.testing.assert_allclose(R, pose.rotation, atol=1e-14)
    np.testing.assert_allclose(p, pose.translation, atol=1e-14)


@pytest.mark.parametrize("lowering", ["specialised", "rolled"])
@pytest.mark.parametrize("label", MODELS)
def test_compiled_momentum_is_that_of_the_methods(label, lowering):
    model = MODELS[label]
    q, v = state(model)["q"], state(model)["v"]
    h = model.compile("momentum", lowering=lowering)(q, v)
    np.testing.assert_allclose(h, model.momentum(q, v), atol=1e-13)
    matrix = model.compile("momentum_matrix", lowering=lowering)(q)
    np.testing.assert_allclose(matrix, model.momentum_matrix(q), atol=1e-13)
    assert matrix.shape == (6, model.nv)


def test_energies_of_a_batch_are_numbers():
    model = MODELS["tree"]
    x = state(model)
    Q, V = np.tile(x["q"], (4, 1)), np.tile(x["v"], (4, 1))
    value, change = model.jvp("kinetic_energy", (Q, V), (V, V))
    assert value.shape == change.shape == (4,)
    np.testing.assert_allclose(value, model.kinetic_energy(Q, V), rtol=1e-13)


def test_parameters_that_a_builder_would_refuse_are_refused():
    builder = al.ModelBuilder("pendulum")
    m = builder.parameter("m", 2.0)
    builder.body("bob", al.Inertia.point(m, (0, 0, -1)), joint=al.Revolute(axis=(0, 1, 0)))
    model = builder.build()
    at, zero = ([0.3], [0.0], [0.0], [-1.0]), [0.0]
    expected = "body 'bob': mass is -1, expected a positive number"
    for name, call in {
        "jvp": lambda: model.jvp("forward_dynamics", at, (zero, zero, zero)),
        "vjp": lambda: model.vjp("forward_dynamics", at, [1.0]),
        "hessian": lambda: model.hessian("forward_dynamics", at, [1.0]),
        "second_derivatives": lambda: model.second_derivatives("forward_dynamics", at),
    }.items():
        with pytest.raises(al.ArgumentError) as caught:
            call()
        assert str(caught.value).startswith(f"{name}: with the given parameters")
        assert str(caught.value).endswith(expected)
    with pytest.raises(al.ArgumentError, match=r"expected \(\.\.\., 1\); the model has m"):
        model.jvp("forward_dynamics", ([0.3], zero, zero, [1.0, 2.0]), (zero, zero, zero))
    with pytest.raises(al.NumericalError, match=r"parameters is nan at entry 0 \(m\)"):
        model.jvp("forward_dynamics", ([0.3], zero, zero, [np.nan]), (zero, zero, zero))
    turned, _ = model.jvp("integrate", ([0.3], [0.1]), (zero, zero))  # takes no parameters
    assert turned == pytest.approx(0.4)


def test_too_few_arguments_are_named():
    model = MODELS["one speed"]
    with pytest.raises(al.ArgumentError) as caught:
        model.jvp("forward_dynamics", ([0.1], [0.0], [0.0]), ([1.0], [0.0]))
    assert str(caught.value) == (
        "jvp: forward_dynamics takes 3 arguments, got 2 in `along`; they are q, v, tau"
    )

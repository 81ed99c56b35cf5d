"""Tangent sweeps and their adjoints as loops over the bodies, against the differentiated unrolled algorithms."""

import numpy as np
import pytest

import alembert as al
from alembert.dynamics import directional_kernels
from alembert.dynamics.programs import PROGRAMS
from alembert.joints import REGISTRY
from alembert.sensitivity import traces


def products(model, mode, name, monkeypatch, most):
    monkeypatch.setattr(directional_kernels, "MOST_NODES", most)
    return directional_kernels.kernel(model, mode, name, None)


def arguments(model, kernel, rng):
    for a in kernel.arguments:
        if a.name == "q":
            yield np.array([model.random_configuration(rng) for _ in range(9)])
        elif a.name == "parameters":
            yield np.array([value for _, value in model.parameters])
        elif a.name == "free":
            yield (rng.random((9, *a.shape)) < 0.6).astype(float)
        else:
            yield rng.normal(size=(9, *a.shape))


def compare(model, mode, name, monkeypatch):
    rolled = products(model, mode, name, monkeypatch, 0)
    unrolled = products(model, mode, name, monkeypatch, 1000)
    assert rolled.key != unrolled.key
    given = list(arguments(model, rolled, np.random.default_rng(0)))
    found, expected = rolled(*given), unrolled(*given)
    for x, y in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
        # sums in another order: rounding, amplified by the condition of the mass matrix where it is inverted
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * max(np.abs(y).max(), 1e-12))


@pytest.mark.parametrize("kinds", [tuple(REGISTRY)[k::3] for k in range(3)], ids="-".join)
@pytest.mark.parametrize(
    ("mode", "name"),  # the adjoint of forward dynamics is made from that of inverse dynamics
    [("jvp", "hybrid_dynamics"), ("vjp", "hybrid_dynamics"), ("vjp", "forward_dynamics")],
)
def test_dynamics_of_every_joint_type(kinds, mode, name, monkeypatch):
    model = al.library.random_tree(3, bodies=len(kinds), kinds=kinds, attachments=True)
    compare(model, mode, name, monkeypatch)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "hybrid_dynamics"])
def test_tangent_of_every_algorithm_with_parameters(name, monkeypatch):
    model = al.library.random_tree(
        6, bodies=3, kinds=("revolute", "spherical"), attachments=True, parameters=True
    )
    compare(model, "jvp", name, monkeypatch)


@pytest.mark.parametrize(
    "name", [name for name, (program, _) in PROGRAMS.items() if traces.has_adjoint(program)]
)
@pytest.mark.parametrize("parameters", [True, False], ids=["parameters", "numbers"])
def test_adjoint_of_every_algorithm(name, parameters, monkeypatch):
    """Speeds, nodes and totals as results; parameters in masses, placements, axes, springs, friction and gravity."""
    kinds = ("revolute", "spherical") if parameters else ("free", "universal", "screw")
    model = al.library.random_tree(6, bodies=3, kinds=kinds, attachments=True, parameters=parameters)
    compare(model, "vjp", name, monkeypatch)


def test_wrenches_on_frames_of_large_models(monkeypatch):
    model = al.library.random_tree(8, bodies=4, kinds=("revolute", "universal"), attachments=True)
    rng = np.random.default_rng(2)
    q, v, tau = model.random_configuration(rng), *rng.normal(size=(2, model.nv))
    frames = (model.bodies[-1].name, model.bodies[1].name)
    F = {frame: rng.normal(size=6) for frame in frames}
    dF = {frames[0]: rng.normal(size=6)}
    zero, weight = np.zeros(model.nv), rng.normal(size=model.nv)
    d = model.forward_dynamics_derivatives(q, v, tau, wrenches=F)
    monkeypatch.setattr(directional_kernels, "MOST_NODES", 0)
    value, change = model.jvp(
        "forward_dynamics", (q, v, tau), (zero, zero, zero), wrenches=F, along_wrenches=dF
    )
    close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(value).max()}
    np.testing.assert_allclose(value, d.acceleration, **close)
    np.testing.assert_allclose(change, d.dwrenches[frames[0]] @ dF[frames[0]], **close)
    *gradients, by_frame = model.vjp("forward_dynamics", (q, v, tau), weight, wrenches=F)
    for gradient, jacobian in zip(gradients, (d.dq, d.dv, d.dtau), strict=True):
        np.testing.assert_allclose(gradient, weight @ jacobian, rtol=1e-9, atol=1e-9 * np.abs(jacobian).max())
    for frame in frames:
        np.testing.assert_allclose(by_frame[frame], weight @ d.dwrenches[frame], rtol=1e-9, atol=1e-9)


def test_a_chain_of_500():
    """Against the Jacobians, which are computed by rows."""
    model = al.library.chain(500)
    rng = np.random.default_rng(4)
    q, v, a, dq, dv, da, weight = rng.normal(size=(7, 500))
    d = model.inverse_dynamics_derivatives(q, v, a)
    _, change = model.jvp("inverse_dynamics", (q, v, a), (dq, dv, da))
    expected = d.dq @ dq + d.dv @ dv + d.da @ da
    size = max(np.abs(x).max() for x in (d.dq, d.dv, d.da))
    assert np.abs(change - expected).max() < 500 * 1e-15 * 500 * size
    gradients = model.vjp("inverse_dynamics", (q, v, a), weight)
    for gradient, jacobian in zip(gradients, (d.dq, d.dv, d.da), strict=True):
        assert np.abs(gradient - weight @ jacobian).max() < 500 * 1e-15 * 500 * size

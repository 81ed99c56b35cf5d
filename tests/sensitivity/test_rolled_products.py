"""Tangent sweeps and their adjoints as loops over the bodies, against the differentiated unrolled algorithms."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.algorithms import directional_kernels
from alembert.algorithms.table import TABLE
from alembert.errors import ArgumentError
from alembert.joints import REGISTRY
from alembert.sensitivity import adjoint_traces

PROGRAMS = {name: entry.sweeps for name, entry in TABLE.items() if entry.program}


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


def evaluated(kernel, given):
    """By CasADi, state by state: the graph is the reference here, and would take longer to compile than all the rest."""
    states = [x if x.ndim > len(a.shape) else [x] * 9 for x, a in zip(given, kernel.arguments, strict=True)]
    values = [kernel.source().function.call([ca.DM(x) for x in state]) for state in zip(*states, strict=True)]
    for k, result in enumerate(kernel.results):
        yield np.array([np.array(value[k].full()).reshape(result.shape) for value in values])


def compare(model, mode, name, monkeypatch):
    rolled = products(model, mode, name, monkeypatch, 0)
    unrolled = products(model, mode, name, monkeypatch, 1000)
    assert rolled.key != unrolled.key
    given = list(arguments(model, rolled, np.random.default_rng(0)))
    found, expected = rolled(*given), evaluated(unrolled, given)
    for x, y in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
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
    "name", [name for name, (program, _) in PROGRAMS.items() if adjoint_traces.has_adjoint(program)]
)
@pytest.mark.parametrize("parameters", [True, False], ids=["parameters", "numbers"])
def test_adjoint_of_every_algorithm(name, parameters, monkeypatch):
    """Speeds, nodes and totals as results; parameters in masses, placements, axes, springs, friction and gravity."""
    kinds = ("revolute", "spherical") if parameters else ("universal", "screw")
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


def test_a_hessian_of_a_hundred_bodies():
    """H d against differences of the weighted Jacobians along d, and wrong shapes refused as by small models."""
    model = al.library.chain(100)
    rng = np.random.default_rng(7)
    x, d = rng.normal(size=(2, 3, 100))
    weight = rng.normal(size=100)
    H = model.hessian("inverse_dynamics", x, weight)
    assert H.shape == (300, 300)
    np.testing.assert_array_equal(H, H.T)

    def gradient(s):
        found = model.inverse_dynamics_derivatives(*(x + s * d))
        return np.concatenate([weight @ y for y in (found.dq, found.dv, found.da)])

    h = 1e-3
    near, far = (gradient(s * h) - gradient(-s * h) for s in (1, 2))
    expected = (8 * near - far) / (12 * h)
    # fourth order: h^4 (1e-12) times a fifth derivative, larger by the number of bodies that a turn moves
    assert np.abs(H @ d.ravel() - expected).max() < 1e-7 * np.abs(expected).max()
    with pytest.raises(ArgumentError, match=r"hessian\(inverse_dynamics\): v has shape \(99,\), expected"):
        model.hessian("inverse_dynamics", (x[0], x[1][:99], x[2]), weight)
    batch = model.hessian("inverse_dynamics", (np.stack([x[0], d[0]]), x[1], x[2]), weight)
    np.testing.assert_allclose(batch[0], H, rtol=0, atol=1e-13 * np.abs(H).max())
    assert model.hessian("inverse_dynamics", (np.zeros((0, 100)), x[1], x[2]), weight).shape == (0, 300, 300)


def test_wrenches_on_frames_that_parameters_move(monkeypatch):
    """In loops over the bodies, against the differentiated unrolled graph."""
    builder = al.ModelBuilder("arm")
    reach, mass = builder.parameter("reach", 0.4), builder.parameter("mass", 1.5)
    for k in range(3):
        builder.body(
            f"link{k}",
            al.Inertia(mass, (0.0, 0.1, reach / 2), (0.1, 0.0, 0.1, 0.0, 0.0, 0.1)),
            joint=al.Spherical() if k == 1 else al.Revolute((0, 1, 0)),
            parent=f"link{k - 1}" if k else "world",
            placement=(0.0, 0.0, reach if k else 0.0),
        )
    builder.frame("hand", "link2", (reach, 0.1, 0.0))
    builder.frame("back", "link2", (-reach, 0.0, 0.0))
    builder.frame("side", "link0", (0.0, mass, 0.0))
    model = builder.build()
    rng = np.random.default_rng(3)
    at = [model.random_configuration(rng), *rng.normal(size=(2, model.nv)), np.array([0.5, 1.2])]
    along = [*rng.normal(size=(3, model.nv)), np.array([0.3, -0.7])]
    F = {frame: rng.normal(size=6) for frame in ("hand", "back", "side")}
    dF, weight = {"back": rng.normal(size=6)}, rng.normal(size=model.nv)
    for name in ("forward_dynamics", "inverse_dynamics"):
        found = []
        for most in (0, 1000):
            monkeypatch.setattr(directional_kernels, "MOST_NODES", most)
            monkeypatch.setattr(directional_kernels, "MOST_NODES_TWICE", most)
            m = model.replace()
            *gradients, by_frame = m.vjp(name, at, weight, wrenches=F)
            H = m.hessian(name, at, weight, wrenches=F)
            found.append(
                [*m.jvp(name, at, along, wrenches=F, along_wrenches=dF), *gradients, *by_frame.values(), H]
            )
        for x, y in zip(*found, strict=True):
            # rounding, amplified by the condition of the mass matrix
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * np.abs(y).max())


@pytest.mark.parametrize("name", ["forward_dynamics", "hybrid_dynamics"])
def test_hessians_from_that_of_inverse_dynamics(name, monkeypatch):
    """With wrenches, in batches, against straight code."""
    model = al.library.random_tree(6, bodies=3, kinds=("revolute", "universal"), attachments=True)
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, tau, a, *weights = rng.normal(size=(5, 3, model.nv))
    at, weight = (q, v, tau), weights[0]
    if name == "hybrid_dynamics":
        at, weight = (*at, a, (rng.random((3, model.nv)) < 0.6).astype(float)), tuple(weights)
    forces = {model.bodies[-1].name: rng.normal(size=(3, 6)), model.bodies[0].name: rng.normal(size=6)}
    found = {}
    for most in (0, 1000):
        monkeypatch.setattr(directional_kernels, "MOST_NODES_TWICE", most)
        found[most] = model.replace().hessian(name, at, weight, wrenches=forces)
    size = len(at) * model.nv + 12
    assert found[0].shape == (3, size, size)
    # rounding, amplified by the condition of the mass matrix
    np.testing.assert_allclose(found[0], found[1000], rtol=0, atol=1e-11 * np.abs(found[1000]).max())
    np.testing.assert_array_equal(found[0], np.swapaxes(found[0], -1, -2))


def test_the_hessian_of_forward_dynamics_of_a_chain_of_100_against_differences():
    model = al.library.chain(100)
    rng = np.random.default_rng(8)
    x, d = rng.normal(size=(2, 3, 100))
    weight = rng.normal(size=100)
    H = model.hessian("forward_dynamics", x, weight)

    def gradient(s):
        return np.concatenate(model.vjp("forward_dynamics", tuple(x + s * d), weight))

    h = 1e-4
    near, far = (gradient(s * h) - gradient(-s * h) for s in (1, 2))
    expected = (8 * near - far) / (12 * h)
    # rounding of the gradients (their size times 1e-16 times the condition, some 1e6) over h, and fourth order in h
    assert np.abs(H @ d.ravel() - expected).max() < 1e-6 * np.abs(expected).max()

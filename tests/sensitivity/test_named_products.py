"""Products with the Jacobians of algorithms on frames, of momentum and energy, and with respect to wrenches."""

import numpy as np
import pytest

import alembert as al
from alembert.algorithms import directional_kernels
from alembert.joints import REGISTRY

FRAME = "probe"
ALGORITHMS = {
    "frame_pose": (1, {"frame": FRAME}),
    "frame_velocity": (2, {"frame": FRAME, "reference": "world"}),
    "frame_acceleration": (3, {"frame": FRAME, "reference": "local_world_aligned"}),
    "frame_jacobian": (1, {"frame": FRAME}),
    "frame_jacobian_rate": (2, {"frame": FRAME}),
    "center_of_mass": (1, {}),
    "momentum": (2, {"about": "center_of_mass"}),
    "momentum_matrix": (1, {"about": "world"}),
    "energy": (2, {}),
}


def build(kinds):
    """The joints in question, and a frame off the origin of the last body."""
    model = al.library.random_tree(2, bodies=len(kinds), kinds=kinds, attachments=True, parameters=True)
    place = al.Placement.from_rpy((0.3, 0.2, 0.1), (0.1, -0.2, 0.3))
    return model.replace(frames=(*model.frames, al.Frame(FRAME, model.bodies[-1].name, place)))


@pytest.fixture(scope="module", params=[tuple(REGISTRY)[k::2] for k in range(2)], ids="-".join)
def tree(request):
    return build(request.param)


def flat(value):
    parts = [value.rotation, value.translation] if hasattr(value, "rotation") else [value]
    return np.concatenate([np.ravel(x) for x in parts])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_kinematics_with_respect_to_states_and_parameters(tree, name):
    count, options = ALGORITHMS[name]
    rng = np.random.default_rng(4)
    p = np.array([value for _, value in tree.parameters])
    at = [tree.random_configuration(rng), *rng.normal(size=(count - 1, tree.nv))]
    along = [*rng.normal(size=(count, tree.nv)), p * rng.normal(size=len(p))]
    value, change = tree.jvp(name, [*at, p], along, **options)
    values, changes = (x if isinstance(x, tuple) else (x,) for x in (value, change))
    method = getattr(tree, name)
    given = {key: x for key, x in options.items() if key != "frame"}

    def moved(s):
        x = [
            tree.integrate(at[0], s * along[0]),
            *(a + s * d for a, d in zip(at[1:], along[1:], strict=False)),
        ]
        named = dict(zip(tree.parameter_values, p + s * along[-1], strict=True))
        return flat(method(*x, *([FRAME] if "frame" in options else []), parameters=named, **given))

    np.testing.assert_allclose(flat_all(values), moved(0.0), rtol=1e-12, atol=1e-12)
    h = 1e-3
    near, far = (moved(s * h) - moved(-s * h) for s in (1, 2))
    expected = (8 * near - far) / (12 * h)
    # fourth order: h^4 times a fifth derivative, rounding 1e-16 / h
    scale = max(1.0, np.abs(expected).max(), np.abs(flat_all(values)).max())
    np.testing.assert_allclose(flat_all(changes), expected, atol=1e-8 * scale)

    weights = tuple(rng.normal(size=np.shape(x)) for x in values)
    gradients = tree.vjp(name, [*at, p], weights if len(weights) > 1 else weights[0], **options)
    total = sum(np.sum(g * d) for g, d in zip(gradients, along, strict=True))
    terms = np.abs(flat_all(weights) * flat_all(changes)).sum()
    assert total == pytest.approx(flat_all(weights) @ flat_all(changes), abs=1e-12 * max(1.0, terms))


def flat_all(parts):
    return np.concatenate([np.ravel(x) for x in parts])


def test_full_tensors_of_second_derivatives():
    model = al.library.two_link()
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, 5, 2))
    tensor = model.second_derivatives("inverse_dynamics", (q, v, a))
    assert tensor.shape == (5, 2, 6, 6)
    for k in range(2):
        np.testing.assert_array_equal(
            tensor[:, k], model.hessian("inverse_dynamics", (q, v, a), np.eye(2)[k])
        )
    h = 1e-5
    ahead, behind = (model.inverse_dynamics_derivatives(q + s, v, a).dq for s in ([h, 0], [-h, 0]))
    np.testing.assert_allclose(tensor[:, :, :2, 0], (ahead - behind) / (2 * h), atol=1e-7)
    pose = model.second_derivatives("frame_pose", (q[0],), frame="tip")
    assert [x.shape for x in pose] == [(9, 2, 2), (3, 2, 2)]


def test_refusals(tree):
    q = tree.neutral()
    zero = np.zeros(tree.nv)

    def refusal(call):
        with pytest.raises(al.ArgumentError) as caught:
            call()
        return str(caught.value)

    assert refusal(lambda: tree.jvp("frame_pose", (q,), (zero,))) == (
        "jvp: frame_pose needs frame=, the name of a frame"
    )
    assert refusal(lambda: tree.vjp("energy", (q, zero), [1.0], frame=FRAME)) == "vjp: energy takes no frame"
    assert refusal(lambda: tree.vjp("energy", (q, zero), [1.0], reference="world")) == (
        "vjp: energy takes no reference"
    )
    assert (
        refusal(lambda: tree.vjp("energy", (q, zero), [1.0], about="world")) == "vjp: energy takes no about"
    )
    assert refusal(lambda: tree.vjp("energy", (q, zero), [1.0], wrenches={FRAME: zero})) == (
        "vjp: energy takes no wrenches"
    )
    assert refusal(
        lambda: tree.jvp(
            "inverse_dynamics",
            (q, zero, zero),
            (zero, zero, zero),
            wrenches={FRAME: np.zeros(6)},
            along_wrenches={"prob": np.zeros(6)},
        )
    ) == ("jvp: along_wrenches: no wrench acts on 'prob'; did you mean 'probe'?")
    assert refusal(lambda: tree.second_derivatives("inverse_dynamics", (q, zero, zero), frames=FRAME)) == (
        "second_derivatives: no option 'frames'; there is wrenches, frame, reference, about"
    )
    assert refusal(lambda: tree.second_derivatives("inverse_dynamics", None)) == (
        "second_derivatives: inverse_dynamics takes a tuple of arguments, got None"
    )


@pytest.mark.parametrize("name", [*ALGORITHMS, "power"])
def test_compositions_of_sweeps(name, monkeypatch):
    """Loops over the bodies, and what follows from them, against the differentiated unrolled graph."""
    model = build(("revolute", "spherical", "free"))
    count, options = ALGORITHMS.get(name, (3, {"wrenches": {FRAME: np.arange(6.0)}}))
    rng = np.random.default_rng(5)
    p = np.array([value for _, value in model.parameters])
    at = [model.random_configuration(rng), *rng.normal(size=(count - 1, model.nv)), p]
    along = [*rng.normal(size=(count, model.nv)), rng.normal(size=len(p))]
    found = []
    for most in (0, 1000):
        monkeypatch.setattr(directional_kernels, "MOST_NODES", most)
        fresh = model.replace()
        value, change = fresh.jvp(name, at, along, **options)
        values, changes = (x if isinstance(x, tuple) else (x,) for x in (value, change))
        weights = tuple(np.cos(np.arange(np.size(x))).reshape(np.shape(x)) for x in values)
        gradients = fresh.vjp(name, at, weights if len(weights) > 1 else weights[0], **options)
        kinds = [
            fresh.compute.kernels[key].key.rsplit(":", 1)[1]
            for key in fresh.compute.kernels
            if key[1] == name
        ]
        assert set(kinds) == {"rolled" if most == 0 else "unrolled"}
        parts = [x for g in gradients for x in (g.values() if isinstance(g, dict) else [g])]
        found.append([*values, *changes, *parts])
    for x, y in zip(*found, strict=True):
        # sums in another order: rounding
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-13 * max(1.0, np.abs(y).max()))


def test_hessians_of_compositions(monkeypatch):
    """Of a frame's velocity, with weights inside that depend on the state."""
    model = build(("revolute", "spherical"))
    rng = np.random.default_rng(6)
    at = [model.random_configuration(rng), rng.normal(size=model.nv)]
    weight = rng.normal(size=6)
    for name, options in (
        ("frame_velocity", {"frame": FRAME, "reference": "world"}),
        ("momentum", {"about": "center_of_mass"}),
    ):
        found = []
        for most in (0, 1000):
            monkeypatch.setattr(directional_kernels, "MOST_NODES_TWICE", most)
            found.append(model.replace().hessian(name, at, weight, **options))
        np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-13 * np.abs(found[1]).max())

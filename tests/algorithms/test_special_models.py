"""Models and states at the edge: nothing moves, quaternions of any length, axes of parameters, very long chains."""

import numpy as np
import pytest

import alembert as al
from alembert.algorithms import derivative_kernels
from alembert.engine import outlet


@pytest.fixture(scope="module")
def satellite():
    builder = al.ModelBuilder("satellite")
    inertia = al.Inertia.box(2.0, (1, 0.5, 0.3), center=(0.1, 0.2, 0.3))
    builder.body("bus", inertia, joint=al.Free())
    builder.body("ball", inertia, joint=al.Spherical(), parent="bus")
    return builder.build()


def test_the_length_of_a_quaternion_does_not_matter(satellite):
    rng = np.random.default_rng(0)
    q, v, tau = satellite.random_configuration(rng), *rng.normal(size=(2, satellite.nv))
    longer = q.copy()
    longer[3:7] *= 2  # a power of two: no rounding
    longer[7:] *= 0.25
    np.testing.assert_array_equal(
        satellite.forward_dynamics(longer, v, tau), satellite.forward_dynamics(q, v, tau)
    )
    R = satellite.frame_pose(longer, "ball").rotation
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(satellite.difference(longer, q), 0, atol=1e-15)
    with pytest.raises(al.ArgumentError, match=r"the quaternion .* has length 2, expected 1"):
        satellite.check_configuration(longer)


@pytest.mark.parametrize("name", ["forward_dynamics", "frame_pose", "integrate", "jvp"])
def test_a_zero_quaternion_is_named(satellite, name):
    q, zero = np.zeros(satellite.nq), np.zeros(satellite.nv)
    calls = {
        "forward_dynamics": lambda: satellite.forward_dynamics(q, zero, zero),
        "frame_pose": lambda: satellite.frame_pose(q, "bus"),
        "integrate": lambda: satellite.integrate(q, zero),
        "jvp": lambda: satellite.jvp("forward_dynamics", (q, zero, zero), (zero, zero, zero)),
    }
    with pytest.raises(
        al.NumericalError, match=f"{name}: .* joint 'bus_joint': the quaternion .* has length 0"
    ):
        calls[name]()


def test_a_model_in_which_nothing_moves():
    builder = al.ModelBuilder("rock")
    builder.body("stone", al.Inertia.point(1.0, (1, 0, 0)), joint=al.Fixed())
    rock, none = builder.build(), np.zeros(0)
    assert rock.forward_dynamics(np.zeros((3, 0)), none, none).shape == (3, 0)
    assert rock.mass_matrix(none).shape == (0, 0)
    assert rock.forward_dynamics_derivatives(none, none, none).dq.shape == (0, 0)
    assert rock.energy(none, none) == 0.0
    np.testing.assert_array_equal(rock.momentum(none, none, about="world"), np.zeros(6))
    np.testing.assert_array_equal(rock.frame_pose(none, "stone").translation, np.zeros(3))
    with pytest.raises(
        al.NumericalError, match="center_of_mass: nothing that moves in the model 'rock' has mass"
    ):
        rock.center_of_mass(none)
    with pytest.raises(al.ArgumentError, match=r"forward_dynamics: q has shape \(2,\), expected \(..., 0\)"):
        rock.forward_dynamics([1, 2], none, none)


def test_what_is_welded_to_the_world_is_not_part_of_what_moves():
    builder = al.ModelBuilder("on a base")
    builder.body("base", al.Inertia.point(5.0, (1, 0, 2)), joint=al.Fixed())
    builder.body("arm", al.Inertia.point(1.0, (1, 0, 0)), joint=al.Revolute((0, 1, 0)), parent="base")
    model = builder.build()
    assert model.mass == 6.0
    np.testing.assert_allclose(model.center_of_mass([0.0]), [1, 0, 0])
    assert model.potential_energy([0.0]) == pytest.approx(0.0)


def test_an_axis_of_parameters_stays_a_unit_vector():
    builder = al.ModelBuilder("tilted")
    k = builder.parameter("k", 0.0)
    builder.body("arm", al.Inertia.point(1.0, (1, 0, 0)), joint=al.Revolute((k, 0, 1)))
    model = builder.build()
    assert model.mass_matrix([0.3]) == pytest.approx(1.0)
    assert model.mass_matrix([0.3], parameters={"k": 1.0}) == pytest.approx(0.5)  # about (1, 0, 1)/sqrt 2


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"])
def test_derivatives_by_rows_are_those_by_lanes(monkeypatch, name):
    """Matrices made state by state against straight code for every entry; branches, joints of any width, rotors."""
    model = al.library.random_tree(seed=5, bodies=6, attachments=True)
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    v, x = rng.normal(size=(2, 5, model.nv))
    monkeypatch.setattr(derivative_kernels, "BY_ROWS", 1000)
    lanes = derivative_kernels.kernel(model, name, wrenches=False, lowering="specialised")
    monkeypatch.setattr(derivative_kernels, "BY_ROWS", 1)
    rows = derivative_kernels.kernel(model, name, wrenches=False)
    # both solve with M: rounding times its condition number
    tolerance = 1e-14 * max(np.linalg.cond(M) for M in model.mass_matrix(q))
    for found, expected in zip(rows(q, v, x), lanes(q, v, x), strict=True):
        np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"])
def test_large_batches_of_derivatives_go_past_the_caches(monkeypatch, name):
    """Streamed results, to aligned and unaligned places, are those that go through the caches; strided ones too."""
    model = al.library.random_tree(seed=6, bodies=13, kinds=["revolute"])
    rng = np.random.default_rng(3)
    states = 20
    q, v, a = (np.array([rng.normal(size=model.nv) for _ in range(states)]) for _ in range(3))
    expected = model.compile(name, batch=True)(q, v, a)
    monkeypatch.setattr(outlet, "STREAMED_BYTES", 0)
    kernel = derivative_kernels.kernel(model, name, wrenches=False)
    kernel.key += "streamed"
    for shift in range(4):
        out = tuple(np.empty(y.size + shift)[shift:].reshape(y.shape) for y in expected)
        kernel(q, v, a, out=out)
        for x, y in zip(out, expected, strict=True):
            np.testing.assert_array_equal(x, y)
    strided = tuple(np.empty((*y.shape, 2))[..., 0] for y in expected)
    kernel(q, v, a, out=strided)
    for x, y in zip(strided, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_derivatives_by_rows_in_narrower_registers(monkeypatch, lanes):
    """Processors with shorter vectors cut the rows otherwise; the sums are the same."""
    model = al.library.random_tree(seed=8, bodies=12, kinds=("revolute", "spherical"))
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, tau = rng.normal(size=(2, 3, model.nv))
    name = "forward_dynamics_derivatives"
    expected = model.compile(name, batch=True)(q, v, tau)
    tolerance = 1e-14 * max(np.linalg.cond(M) for M in model.mass_matrix(q))  # both solve with M
    monkeypatch.setenv("ALEMBERT_LANES", str(lanes))
    kernel = derivative_kernels.kernel(model, name, wrenches=False)
    for found, wide in zip(kernel(q, v, tau), expected, strict=True):
        np.testing.assert_allclose(found, wide, atol=tolerance * np.abs(wide).max(), rtol=0)


def test_long_chains_have_derivatives_without_a_dense_factorisation():
    model = al.library.chain(90)
    rng = np.random.default_rng(5)
    q, v, tau = rng.normal(size=(3, model.nv))
    d = model.forward_dynamics_derivatives(q, v, tau)
    i = model.inverse_dynamics_derivatives(q, v, d.acceleration)
    for product, expected in ((i.da @ d.dq, -i.dq), (i.da @ d.dv, -i.dv), (i.da @ d.dtau, np.eye(90))):
        # the residual of a backward stable solution: rounding times the sizes of the factors
        size = np.abs(i.da).max() * max(np.abs(x).max() for x in (d.dq, d.dv, d.dtau))
        assert np.abs(product - expected).max() < 90 * 2.2e-16 * size


def test_products_cover_all_results_of_an_algorithm():
    model = al.library.two_link()
    rng = np.random.default_rng(2)
    q, v, tau, a = rng.normal(size=(4, 2))
    free = np.array([1.0, 0.0])
    (value, effort), (change, effort_change) = model.jvp(
        "hybrid_dynamics", (q, v, tau, a, free), (v, tau, a, q, 0 * free)
    )
    ahead = model.hybrid_dynamics(q, v, accelerations={"elbow": a[1]}, torques={"shoulder": tau[0]})
    np.testing.assert_allclose(value, ahead.accelerations)
    np.testing.assert_allclose(effort, ahead.efforts)
    w = rng.normal(size=(2, 2))
    gradients = model.vjp("hybrid_dynamics", (q, v, tau, a, free), (w[0], w[1]))
    directions = (v, tau, a, q)
    total = sum(g @ d for g, d in zip(gradients[:4], directions, strict=True))
    np.testing.assert_allclose(total, w[0] @ change + w[1] @ effort_change)
    with pytest.raises(
        al.ArgumentError, match=r"vjp: hybrid_dynamics has 2 results \(a, effort\); give a tuple"
    ):
        model.vjp("hybrid_dynamics", (q, v, tau, a, free), w[0])

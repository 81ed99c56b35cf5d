"""Forward dynamics by factorisation and by conjugate gradients: where the sweep fails, they fail alike."""

import warnings

import numpy as np
import pytest
from dynamics_helpers import states, tree

from alembert import Gimbal, Inertia, ModelBuilder, Revolute
from alembert.errors import AlembertWarning, ArgumentError, NumericalError

pytestmark = pytest.mark.parametrize("method", ["factorise", "conjugate_gradients"])


@pytest.fixture(scope="module")
def pair():
    """Two links; the mass of the second is a parameter."""
    builder = ModelBuilder("pair")
    m = builder.parameter("m", 1.0)
    inertia = Inertia(1.0, (0.1, 0.0, 0.0), Inertia.box(1.0, (0.1, 0.2, 0.1)).tensor)
    builder.body("upper", inertia, joint=Revolute((0, 0, 1)))
    builder.body("lower", inertia.scaled(m), joint=Revolute((0, 0, 1)), parent="upper", placement=(0.3, 0, 0))
    return builder.build()


@pytest.fixture(scope="module")
def gimbal():
    builder = ModelBuilder("gimbal")
    builder.body("top", Inertia.box(1.0, (0.1, 0.2, 0.3)), joint=Gimbal("zyx"), joint_name="neck")
    return builder.build()


@pytest.mark.parametrize("tau", [np.zeros(3), np.ones(3)])
def test_gimbal_lock(gimbal, method, tau):
    q = np.array([0.0, np.pi / 2, 0.0])
    told = []
    for route in ("sweep", method):
        with pytest.raises(NumericalError) as caught:
            gimbal.forward_dynamics(q, np.zeros(3), tau, method=route)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert told[0].startswith("forward_dynamics: the result is not finite; joint 'neck': gimbal lock")


def test_lock_and_nan_in_a_batch_are_one_report(gimbal, method):
    q = np.array([[0.1, 0.2, 0.3], [0.0, np.pi / 2, 0.0], [0.1, np.nan, 0.3], [0.3, 0.2, 0.1]])
    zero, tau = np.zeros(3), np.ones(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        a = gimbal.forward_dynamics(q, zero, tau, method=method)
    assert [w.category for w in caught] == [AlembertWarning]
    message = (
        "forward_dynamics: 2 of 4 states have no finite result, the first at 1; joint 'neck': gimbal lock"
    )
    assert str(caught[0].message).startswith(message)
    assert str(caught[0].message).endswith("; q is nan at entry 1 (neck.y2) (1, the first at 2)")
    assert caught[0].filename == __file__
    assert np.isnan(a[1:3]).all()
    np.testing.assert_allclose(a[[0, 3]], gimbal.forward_dynamics(q[[0, 3]], zero, tau), rtol=1e-10)


@pytest.mark.parametrize("tau", [(0.0, 0.0), (1.0, 0.0), (0.3, 1.0)])
def test_a_joint_that_moves_no_mass(pair, method, tau):
    mass = 0.0
    q, v = np.array([0.2, 0.5]), np.zeros(2)
    message = "forward_dynamics: the result is not finite; joint .lower_joint.: nothing that moves with lower_joint has"
    with pytest.raises(NumericalError, match=message):
        pair.forward_dynamics(q, v, tau, parameters={"m": mass}, method=method)
    with pytest.warns(
        AlembertWarning, match="1 of 3 states .* the first at 1; joint .lower_joint.: nothing that moves"
    ) as caught:
        a = pair.forward_dynamics(q, v, tau, parameters={"m": [1.0, mass, 2.0]}, method=method)
    assert len(caught) == 1
    assert np.isnan(a[1]).all()
    expected = pair.forward_dynamics(q, v, tau, parameters={"m": [1.0, 2.0]})
    np.testing.assert_allclose(a[[0, 2]], expected, rtol=1e-10, atol=1e-10)


def test_one_warning_for_what_is_not_finite(pair, method):
    q, v, tau = np.zeros((5, 2)), np.zeros((5, 2)), np.ones((5, 2))
    q[3, 1], v[4, 0] = np.nan, np.inf
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        a = pair.forward_dynamics(q, v, tau, method=method)
    assert len(caught) == 1
    assert (
        "forward_dynamics: 2 of 5 states have no finite result, the first at 3; q is nan at entry 1"
        in str(caught[0].message)
    )
    assert np.isfinite(a[:3]).all()
    assert np.isnan(a[3:]).all()


def test_arguments_are_those_of_forward_dynamics(pair, method):
    x = np.zeros(2)

    def refused(*given, **more):
        with pytest.raises(ArgumentError) as caught:
            pair.forward_dynamics(*given, method=method, **more)
        return str(caught.value)

    assert refused(x, x, x, out=np.empty(3)) == "forward_dynamics: out has shape (3,), expected (2,)"
    assert refused(x, x, x, out=np.empty(2, np.float32)).endswith("out has dtype float32, expected float64")
    assert refused(x, x, x, out=[0.0, 0.0]).startswith("forward_dynamics: out must have an array for")
    assert refused(x[:1], x, x).startswith("forward_dynamics: q has shape (1,), expected (..., 2)")
    assert refused(x, x[:1], x).startswith("forward_dynamics: v has shape (1,), expected (..., 2)")
    assert refused(x, x, "x").startswith("forward_dynamics: tau has dtype")
    assert refused(x, x, x, wrenches=[1]).startswith("forward_dynamics: wrenches is [1], expected a mapping")
    assert refused(x, x, x, parameters={"m": "x"}).startswith("forward_dynamics: parameter 'm' is 'x'")
    assert "q (2,), v (3,)" in refused(np.zeros((2, 2)), np.zeros((3, 2)), x)
    plain = pair.replace()
    assert plain.forward_dynamics(x, x, x, method=method, wrenches={}, parameters={}).shape == (2,)
    over = np.ones(2)
    expected = pair.forward_dynamics(x, x, over)
    assert pair.forward_dynamics(x, x, over, method=method, out=over) is over
    np.testing.assert_allclose(over, expected, rtol=1e-10)


def test_conjugate_gradients_that_do_not_converge_say_so(method, monkeypatch):
    """Products with another matrix each time: no residual gets small."""
    if method != "conjugate_gradients":
        return
    model = tree("plain")
    q, v, tau = (x[0] for x in states(model, 1))
    rng = np.random.default_rng(0)
    kernel = type(model.compute).kernel

    def noisy(self, name, **more):
        if name == "multiply_mass_matrix":
            return lambda q, x: x * np.exp(3 * rng.normal(size=x.shape))
        return kernel(self, name, **more)

    monkeypatch.setattr(type(model.compute), "kernel", noisy)
    with pytest.raises(
        NumericalError, match="conjugate gradients stopped after 270 products with the residual at"
    ):
        model.forward_dynamics(q, v, tau, method=method)

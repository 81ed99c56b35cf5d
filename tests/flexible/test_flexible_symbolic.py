"""On symbols flexible bodies have all derivatives; efforts are linear in EI, density and masses, and not in lengths."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.flexible import beam
from alembert.identify import regressor


@pytest.fixture(scope="module")
def model():
    builder = al.ModelBuilder("boom on a ball")
    EI, rho, L, m = (
        builder.parameter(name, x) for name, x in (("EI", 3.0), ("rho", 0.7), ("L", 1.2), ("m", 0.4))
    )
    builder.body("hub", al.Inertia.box(1.0, (1, 1, 1)), joint=al.Spherical(), joint_name="ball")
    boom = beam(L, rho, EI_z=EI, bending_y=2)
    builder.body("boom", boom, joint=al.Revolute((0, 1, 0)), joint_name="hinge", parent="hub")
    builder.body("load", al.Inertia.point(m), joint=al.Fixed(), parent="boom", node="tip")
    return builder.build()


@pytest.fixture(scope="module")
def state(model):
    rng = np.random.default_rng(3)
    q = model.integrate(model.neutral(), 0.1 * rng.normal(size=model.nv))
    return q, *rng.normal(size=(2, model.nv))


def test_symbolic_derivatives_are_those_of_numbers(model, state):
    symbols = [ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("x", model.nv))]
    push = {"load": np.array([0.1, 0.2, 0.3, 1.0, -1.0, 2.0])}
    pushed = {name: ca.DM(x) for name, x in push.items()}
    for name, last in (("inverse_dynamics_derivatives", "da"), ("forward_dynamics_derivatives", "dtau")):
        ours = getattr(model.symbolic, name)(*symbols, wrenches=pushed)
        numbers = getattr(model, name)(*state, wrenches=push)
        fields = ("dq", "dv", last)
        found = ca.Function("found", symbols, [getattr(ours, x) for x in fields])(*state)
        for field, x in zip(fields, found, strict=True):
            expected = getattr(numbers, field)
            # rounding times the condition of the mass matrix, some 1e4
            np.testing.assert_allclose(np.asarray(x), expected, atol=1e-10 * np.abs(expected).max())
    ours = model.symbolic.hybrid_dynamics_derivatives(*symbols[:2], accelerations={"hinge": symbols[2][0]})
    numbers = model.hybrid_dynamics_derivatives(*state[:2], accelerations={"hinge": state[2][0]})
    (found,) = ca.Function("found", symbols, [ours.dq[0]]).call([ca.DM(x) for x in state])
    np.testing.assert_allclose(np.asarray(found), numbers.dq[0], atol=1e-10 * np.abs(numbers.dq[0]).max())


def test_efforts_are_linear_in_stiffness_density_and_mass(model, state):
    found = regressor(model, *state, of=["EI", "rho", "m"])
    assert found.names == ("EI", "rho", "m")
    np.testing.assert_allclose(found.predict(), model.inverse_dynamics(*state), atol=1e-12)
    other = {"EI": 5.0, "rho": 0.2, "m": 1.0}
    np.testing.assert_allclose(
        found.predict([5.0, 0.2, 1.0]), model.inverse_dynamics(*state, parameters=other), atol=1e-12
    )
    longer = regressor(model, *state, of="EI", parameters={"L": 2.0, "EI": 1.0})
    expected = model.inverse_dynamics(*state, parameters={"L": 2.0, "EI": 1.0})
    np.testing.assert_allclose(longer.predict(), expected, atol=1e-12)


def test_messages(model, state):
    with pytest.raises(al.UnsupportedError, match="the efforts are not linear in the parameter 'L'"):
        regressor(model, *state, of=["EI", "L"])
    builder = al.ModelBuilder("product")
    m, r = builder.parameter("m", 2.0), builder.parameter("r", 0.5)
    builder.body("rod", al.Inertia(1.0, (0, 0, 0), (1, 0, 1, 0, 0, m * r)), joint=al.Revolute((0, 0, 1)))
    with pytest.raises(al.UnsupportedError, match="the efforts have products of the parameters 'm' and 'r'"):
        regressor(builder.build(), [0.0], [0.0], [1.0], of=["m", "r"])
    # a column that is small beside others, for its parameter is large: a hundredth of the effort all the same
    builder = al.ModelBuilder("stiff")
    m, E = builder.parameter("m", 1.0), builder.parameter("E", 1e9)
    spin = (1, 0, 1, 0, 0, m + 1e-20 * E * E)
    builder.body("rod", al.Inertia(1.0, (0, 0, 0), spin), joint=al.Revolute((0, 0, 1)))
    with pytest.raises(al.UnsupportedError, match="the efforts are not linear in the parameter 'E'"):
        regressor(builder.build(), [0.0], [0.0], [1.0], of=["m", "E"])
    with pytest.raises(al.ArgumentError, match="regressor: no parameter 'EJ'"):
        regressor(model, *state, of=["EJ"])
    with pytest.raises(al.ArgumentError, match="of names no parameters"):
        regressor(model, *state, of=[])
    with pytest.raises(al.ArgumentError, match="of names the parameter 'EI' more than once"):
        regressor(model, *state, of=["EI", "EI"])
    with pytest.raises(al.ArgumentError, match="include='viscous' adds columns to those of bodies"):
        regressor(model, *state, of=["EI"], include="viscous")
    with pytest.raises(al.UnsupportedError, match="take named parameters of the model"):
        regressor(model, *state)

"""The algorithms on CasADi expressions give what the compiled ones give."""

import casadi as ca
import numpy as np
import pytest
from dynamics_helpers import ROUNDING, states, tree

from alembert import Coupling, Inertia, ModelBuilder, Revolute
from alembert.errors import ArgumentError, UnsupportedError

ALGORITHMS = {
    "forward_dynamics": "qva",
    "inverse_dynamics": "qva",
    "bias_forces": "qv",
    "gravity_forces": "q",
    "coriolis_forces": "qv",
    "mass_matrix": "q",
    "solve_mass_matrix": "qa",
    "kinetic_energy": "qv",
    "potential_energy": "q",
    "integrate": "qv",
    "rate": "qv",
}


@pytest.fixture(scope="module")
def model():
    return tree("attached")


@pytest.fixture(scope="module")
def given(model):
    q, v, a = (x[0] for x in states(model, 1))
    return {"q": q, "v": v, "a": a}


def evaluated(kind, function, arrays):
    symbols = [kind.sym(f"x{k}", len(x)) for k, x in enumerate(arrays)]
    return ca.Function("f", symbols, [function(*symbols)])(*arrays).full()


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_expressions_and_compiled_code_agree(model, given, name, kind):
    arrays = [given[letter] for letter in ALGORITHMS[name]]
    found = evaluated(kind, getattr(model.symbolic, name), arrays)
    expected = np.atleast_1d(getattr(model, name)(*arrays))
    if expected.ndim == 1:
        found = found.ravel()
    # same instructions, but not fused: the rounding is another, amplified by the condition number when M is
    # solved
    amplified = (
        np.linalg.cond(model.mass_matrix(given["q"])) if name.startswith(("forward", "solve")) else 1.0
    )
    scale = np.abs(model.bias_forces(given["q"], given["v"])).max() if amplified == 1.0 else 0.0
    assert np.max(np.abs(found - expected)) < ROUNDING * amplified * (np.abs(expected).max() + scale)


def test_remaining_expressions(model, given):
    q, v, a = given["q"], given["v"], given["a"]
    free = (np.arange(model.nv) % 3 > 0).astype(float)
    x, y = ca.SX.sym("x", model.nv), ca.SX.sym("y", model.nv)
    accelerations, efforts = model.symbolic.hybrid_dynamics(q, v, x, y, free)
    found = ca.Function("f", [x, y], [accelerations, efforts])(a, 2 * a)
    expected = model.compile("hybrid_dynamics")(q, v, a, 2 * a, free)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.full().ravel(), other, rtol=1e-9, atol=1e-9 * np.abs(other).max())
    h = np.ravel(evaluated(ca.SX, model.symbolic.momentum, [q, v]))
    expected = model.momentum(q, v, about="world")
    np.testing.assert_allclose(h, expected, atol=ROUNDING * np.abs(expected).max())
    poses = evaluated(ca.SX, model.symbolic.poses, [q])
    np.testing.assert_allclose(poses, model._evaluate("poses", (q,)), atol=20 * ROUNDING)
    step = model.difference(q, model.integrate(q, 0.1 * v))
    np.testing.assert_allclose(step, 0.1 * v, atol=ROUNDING * 10)
    symbolic = np.ravel(evaluated(ca.SX, model.symbolic.difference, [q, model.integrate(q, 0.1 * v)]))
    np.testing.assert_allclose(symbolic, step, atol=ROUNDING * 10)


def test_numbers_in_numbers_out(model, given):
    T = model.symbolic.kinetic_energy(given["q"], given["v"])
    assert isinstance(T, ca.DM)
    np.testing.assert_allclose(float(T), model.kinetic_energy(given["q"], given["v"]), rtol=ROUNDING)


def test_derivatives_of_expressions(model, given):
    """dT/dv is the momentum of the speeds, M v."""
    v = ca.MX.sym("v", model.nv)
    gradient = ca.Function("g", [v], [ca.gradient(model.symbolic.kinetic_energy(given["q"], v), v)])
    expected = model.multiply_mass_matrix(given["q"], given["v"])
    np.testing.assert_allclose(
        gradient(given["v"]).full().ravel(), expected, atol=ROUNDING * np.abs(expected).max()
    )


def test_parameters_as_expressions():
    model = tree("parameters")
    q, v, tau = (x[0] for x in states(model, 1))
    p = ca.SX.sym("p", len(model.parameters))
    values = np.array([value for _, value in model.parameters]) * 1.1
    f = ca.Function("f", [p], [model.symbolic.forward_dynamics(q, v, tau, parameters=p)])
    named = dict(zip(model.parameter_values, values, strict=True))
    expected = model.forward_dynamics(q, v, tau, parameters=named)
    condition = np.linalg.cond(model.mass_matrix(q, parameters=named))
    np.testing.assert_allclose(
        f(values).full().ravel(), expected, atol=ROUNDING * condition * np.abs(expected).max()
    )
    default = model.symbolic.forward_dynamics(q, v, tau).full().ravel()
    np.testing.assert_allclose(default, model.forward_dynamics(q, v, tau), rtol=1e-9)


def test_loops_and_couplings_are_refused(model, given):
    one = [joint.name for joint in model.joints if joint.type.nv == 1][:2]
    coupled = model.replace(couplings=(Coupling("gear", one[0], (one[1],), (2.0,)),))
    with pytest.raises(UnsupportedError, match="forward_dynamics: the coupling 'gear' would be ignored"):
        coupled.symbolic.forward_dynamics(given["q"], given["v"], given["a"])


def refusal(function, *given, **more):
    with pytest.raises(ArgumentError) as caught:
        function(*given, **more)
    return str(caught.value)


def test_wrong_shapes_and_types_are_named():
    builder = ModelBuilder("two")
    mass = builder.parameter("m", 1.0)
    for name in ("a", "b"):
        builder.body(name, Inertia.box(1.0, (0.1, 0.2, 0.3)).scaled(mass), joint=Revolute((0, 0, 1)))
    symbolic = builder.build().symbolic
    x, y = ca.SX.sym("x", 2), np.zeros(2)
    wrong = {
        "(1, 1)": ca.SX.sym("x"),
        "(3, 1)": ca.MX.sym("x", 3),
        "(1, 2)": ca.DM.zeros(1, 2),
        "()": 1.0,
        "(3,)": np.zeros(3),
        "(2, 2)": np.zeros((2, 2)),
    }
    for shape, given in wrong.items():
        assert refusal(symbolic.forward_dynamics, given, y, y).startswith(
            f"forward_dynamics: q has shape {shape}, expected (2,)"
        )
        for name in ("integrate", "difference", "rate"):
            second = {"integrate": "dv", "difference": "q1", "rate": "v"}[name]
            message = refusal(getattr(symbolic, name), y, given)
            assert message.startswith(f"{name}: {second} has shape {shape}, expected (2,)")
    assert refusal(symbolic.bias_forces, y, 1.0).startswith("bias_forces: v has shape ()")
    assert refusal(symbolic.solve_mass_matrix, y, 1.0).startswith("solve_mass_matrix: x has shape ()")
    assert refusal(symbolic.hybrid_dynamics, y, y, y, 1.0, y).startswith("hybrid_dynamics: a has shape ()")
    message = refusal(symbolic.gravity_forces, y, parameters=x)
    assert message.startswith("gravity_forces: parameters has shape (2, 1), expected (1,)")
    for given in ("q", None, {"a": 1.0}, [x, ca.MX.sym("x")]):
        message = refusal(symbolic.gravity_forces, given)
        assert message.startswith("gravity_forces: q is ")
        assert message.endswith("expected numbers or a CasADi expression")
    message = refusal(symbolic.bias_forces, x, ca.MX.sym("v", 2))
    assert message == "bias_forces: q is SX, v is MX; expected expressions of one kind"
    for given in (x, [x[0], 1.0], ca.vertcat(x), np.zeros((2, 1)), [0, 1], (0.0, 1.0)):
        assert symbolic.bias_forces(given, y).shape == (2, 1)

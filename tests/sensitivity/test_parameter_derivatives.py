"""Full Jacobians with respect to named parameters (`sensitive_to`); every joint type is in tests/test_check.py."""

import dataclasses

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError


@pytest.fixture(scope="module")
def arm():
    """Spring, friction, axis, placements, and a frame for wrenches whose place is a parameter."""
    builder = al.ModelBuilder("arm")
    mass, reach = builder.parameter("mass", 2.0), builder.parameter("reach", 0.4)
    builder.parameter("tilt", 0.3)
    stiffness, viscous = builder.parameter("stiffness", 5.0), builder.parameter("viscous", 0.2)
    builder.body(
        "upper",
        al.Inertia(mass, (0.1, 0.0, reach / 2), (0.1, 0.0, 0.12, 0.0, 0.01, 0.05)),
        joint=al.Spherical(),
        joint_name="shoulder",
    )
    builder.body(
        "lower",
        al.Inertia(1.0, (0.2, 0.05, 0.0), (0.02, 0.0, 0.03, 0.0, 0.0, 0.04)),
        joint=al.Revolute(axis=(al.Expression("sin(tilt)"), al.Expression("cos(tilt)"), 0.0)),
        joint_name="elbow",
        parent="upper",
        placement=(0.0, 0.0, reach),
        spring=al.Spring((stiffness,)),
        friction=al.Friction(viscous=(viscous,)),
    )
    builder.frame("hand", "lower", (reach, 0.1, 0.0))
    return builder.build()


def states(model, count=3):
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, *rng.normal(size=(2, count, model.nv)), {"hand": rng.normal(size=(count, 6))}


def central(f, h=1e-3):
    """Fourth order: h^4 times a fifth derivative of order one (relative 1e-9 seen), rounding 1e-16 / h."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def by_differences(model, f):
    """By name, of f(parameters)."""
    values = model.parameter_values
    return {
        key: central(lambda h, key=key: f({**values, key: values[key] + h * values[key]})) / values[key]
        for key in values
    }


def compare(found, expected, rtol=1e-8):
    assert list(found) == list(expected)
    for key, x in expected.items():
        assert found[key].shape == x.shape
        np.testing.assert_allclose(found[key], x, rtol=0, atol=rtol * np.abs(x).max() + 1e-10, err_msg=key)


def test_batches_with_wrenches_against_differences(arm):
    q, v, x, push = states(arm)
    names = list(arm.parameter_values)
    i = arm.inverse_dynamics_derivatives(q, v, x, wrenches=push, sensitive_to=names)
    compare(
        i.dparameters,
        by_differences(arm, lambda p: arm.inverse_dynamics(q, v, x, wrenches=push, parameters=p)),
    )
    f = arm.forward_dynamics_derivatives(q, v, x, wrenches=push, sensitive_to=names)
    compare(
        f.dparameters,
        by_differences(arm, lambda p: arm.forward_dynamics(q, v, x, wrenches=push, parameters=p)),
    )
    given = {"accelerations": {"elbow": x[:, 3]}, "torques": {"shoulder": x[:, :3]}, "wrenches": push}
    h = arm.hybrid_dynamics_derivatives(q, v, sensitive_to=names, **given)

    def hybrid(p):
        result = arm.hybrid_dynamics(q, v, parameters=p, **given)
        return np.stack([result.accelerations, result.efforts], axis=-2)

    compare(h.dparameters, by_differences(arm, hybrid))


def test_values_of_parameters_one_state_and_a_choice(arm):
    """At other values than the defaults, which may differ between states; only what was asked for comes out."""
    q, v, x, push = states(arm)
    masses = np.array([1.0, 2.0, 3.0])
    d = arm.forward_dynamics_derivatives(
        q, v, x, wrenches=push, parameters={"mass": masses}, sensitive_to=["reach"]
    )
    assert list(d.dparameters) == ["reach"]
    for k in range(3):
        one = arm.forward_dynamics_derivatives(
            q[k],
            v[k],
            x[k],
            wrenches={"hand": push["hand"][k]},
            parameters={"mass": masses[k]},
            sensitive_to=("mass", "reach"),
        )
        assert one.dparameters["reach"].shape == (arm.nv,)
        np.testing.assert_allclose(one.dparameters["reach"], d.dparameters["reach"][k], rtol=1e-12)
    assert arm.forward_dynamics_derivatives(q, v, x).dparameters == {}


def test_masses_against_pinocchio():
    """Its regressor times the change of a body's ten-vector with its mass, (1, c, |c|^2 - c c^T)."""
    pin = pytest.importorskip("pinocchio")
    from alembert.model.io.convert import to_pinocchio
    from alembert.verify.in_pinocchio import in_pinocchio

    plain = al.library.random_tree(5, bodies=6, kinds=("revolute", "prismatic", "spherical", "free"))
    names = [f"m_{body.name}" for body in plain.bodies]
    model = plain.replace(
        parameters=tuple((name, body.inertia.mass) for name, body in zip(names, plain.bodies, strict=True)),
        bodies=tuple(
            dataclasses.replace(body, inertia=dataclasses.replace(body.inertia, mass=al.Expression(name)))
            for name, body in zip(names, plain.bodies, strict=True)
        ),
    )
    other = in_pinocchio(plain)
    rng = np.random.default_rng(0)
    q, v, a = plain.random_configuration(rng), *rng.normal(size=(2, plain.nv))
    theirs = to_pinocchio(plain, q, v, pin_model=other)
    _, a_pin = to_pinocchio(plain, q, a, pin_model=other)
    Y = pin.computeJointTorqueRegressor(other, other.createData(), *theirs, a_pin)
    d = model.inverse_dynamics_derivatives(q, v, a, sensitive_to=names)
    for k, (name, body) in enumerate(zip(names, plain.bodies, strict=True)):
        x, y, z = body.inertia.com
        ten = [1, x, y, z, y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
        expected = Y[:, 10 * k : 10 * k + 10] @ ten
        found = to_pinocchio(plain, q, d.dparameters[name], pin_model=other)[1]
        # rounding of some thousand operations
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


def test_messages(arm):
    q, v, x, _ = states(arm, 1)
    for method in (arm.inverse_dynamics_derivatives, arm.forward_dynamics_derivatives):
        with pytest.raises(ArgumentError, match=r"sensitive_to: no parameter 'masss'.*'mass'"):
            method(q, v, x, sensitive_to=["masss"])
        with pytest.raises(ArgumentError, match="sensitive_to is 'mass', expected a list of names"):
            method(q, v, x, sensitive_to="mass")
    with pytest.raises(ArgumentError, match=r"hybrid_dynamics_derivatives: sensitive_to: no parameter"):
        arm.hybrid_dynamics_derivatives(q, v, sensitive_to=["m"])
    with pytest.raises(ArgumentError, match="expected a list of names; values go into parameters"):
        arm.forward_dynamics_derivatives(q, v, x, sensitive_to={"mass": 2.0})

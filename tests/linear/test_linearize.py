"""The matrices of a linear model against differences of the nonlinear one, and what `linearize` refuses."""

import numpy as np
import pytest
from linear_helpers import (
    DIFFERENCES,
    GROUPS,
    close,
    differentiated,
    runge_kutta,
    state,
    tree,
    tree_with_parameters,
)

from alembert import Inertia, ModelBuilder, library
from alembert.errors import UnsupportedError
from alembert.joints import Free, Prismatic, Revolute, Spherical
from alembert.linear import linearize
from alembert.spatial.motion import ad
from refusals import refusal


@pytest.mark.parametrize("group", GROUPS)
def test_matrices_are_the_derivatives_of_the_accelerations(group):
    model = tree(group)
    q, v, tau = state(model)
    n = model.nv
    linear = linearize(model, q, v, tau)
    close(
        linear.A[n:, :n], differentiated(lambda e: model.forward_dynamics(model.integrate(q, e), v, tau), n)
    )
    close(linear.A[n:, n:], differentiated(lambda e: model.forward_dynamics(q, v + e, tau), n))
    close(linear.B[n:], differentiated(lambda e: model.forward_dynamics(q, v, tau + e), n))
    np.testing.assert_array_equal(linear.A[:n, n:], np.eye(n))
    np.testing.assert_array_equal(linear.B[:n], 0)
    np.testing.assert_array_equal(linear.C, np.eye(2 * n))
    assert linear.output_names == linear.state_names
    np.testing.assert_allclose(linear.mass_matrix, model.mass_matrix(q), atol=1e-9)


@pytest.mark.parametrize("group", GROUPS)
def test_neighbouring_motions_follow_the_linear_model(group):
    """Two motions that start a little apart stay apart as x' = A(t) x says, A taken along the nominal one."""
    model = tree(group)
    n = model.nv
    q, v, tau = state(model, seed=1)
    # Central differences in eps leave eps^2 = 1e-8 times third derivatives of the flow; the integration, of order four
    # with steps of 1 ms and rates up to 100/s, (0.1)^4/120 = 1e-6 of the fastest parts.
    duration, steps, eps = 0.04, 40, 1e-4
    nominal = runge_kutta(model, q, v, tau, duration=duration, steps=2 * steps)
    A = linearize(model, _unit(model, nominal[0]), nominal[1], tau).A
    assert A.shape == (2 * steps + 1, 2 * n, 2 * n)
    x = np.eye(2 * n)
    h = duration / steps
    for k in range(steps):
        a0, a1, a2 = A[2 * k : 2 * k + 3]
        k1 = a0 @ x
        k2 = a1 @ (x + h / 2 * k1)
        k3 = a1 @ (x + h / 2 * k2)
        k4 = a2 @ (x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    ends = []
    for sign in (1, -1):
        moved_q = model.integrate(q, sign * eps * np.eye(2 * n)[:, :n])
        moved_v = v + sign * eps * np.eye(2 * n)[:, n:]
        found = runge_kutta(model, moved_q, moved_v, tau, duration=duration, steps=2 * steps)
        error = model.difference(nominal[0][-1], found[0][-1])
        ends.append(np.concatenate([error, found[1][-1] - nominal[1][-1]], axis=-1).T)
    close(x, (ends[0] - ends[1]) / (2 * eps), 3e-6)


def _unit(model, q):
    """Integration leaves the unit quaternions by its own error; `linearize` is strict about them."""
    return model.integrate(q, np.zeros(model.nv))


@pytest.mark.parametrize("joint", [Free(), Spherical()])
def test_errors_turn_against_the_motion(joint):
    """On a group e' = dv - ad(v) e."""
    model = ModelBuilder("body").body("body", Inertia.box(2.0, (0.2, 0.3, 0.4)), joint=joint).build()
    q, v, _ = state(model, seed=3)
    full = np.concatenate([v, np.zeros(6 - model.nv)])
    expected = -np.asarray(ad(full), dtype=float)[: model.nv, : model.nv]
    np.testing.assert_allclose(linearize(model, q, v).A[: model.nv, : model.nv], expected, atol=1e-14)
    np.testing.assert_array_equal(linearize(model, q).A[: model.nv, : model.nv], 0)


# --- outputs ---------------------------------------------------------------------------------------------------


def values(model, frame, q, v, tau, parameters=None):
    """position, velocity, angular velocity, acceleration of a frame, from the model's own functions."""
    options = {"parameters": parameters}
    a = model.forward_dynamics(q, v, tau, **options)
    V = model.frame_velocity(q, v, frame, reference="local_world_aligned", **options)
    A = model.frame_acceleration(q, v, a, frame, reference="local_world_aligned", **options)
    own = model.frame_velocity(q, v, frame, **options)
    return np.concatenate([model.frame_pose(q, frame, **options).translation, V[3:], own[:3], A[3:], a])


QUANTITIES = ("position", "velocity", "angular_velocity", "acceleration")


def test_outputs_and_parameters():
    model = tree_with_parameters()
    n = model.nv
    q, v, tau = state(model, seed=5)
    frame = "tip5"
    names = (
        "mass1",
        "g",
        *[name for name in model.parameter_values if name.startswith(("tip5", "place", "tilt"))],
    )
    names = tuple(dict.fromkeys(name for name in names if name in model.parameter_values))
    given = {name: 1.05 * value for name, value in model.parameters}
    linear = linearize(
        model,
        q,
        v,
        tau,
        outputs=[*(f"frame:{frame}.{x}" for x in QUANTITIES), "a"],
        parameters=names,
        parameter_values=given,
    )
    at = values(model, frame, q, v, tau, given)
    np.testing.assert_allclose(linear.y, at, atol=1e-12 * np.abs(at).max())
    close(
        linear.C[:, :n],
        differentiated(lambda e: values(model, frame, model.integrate(q, e), v, tau, given), n),
    )
    close(linear.C[:, n:], differentiated(lambda e: values(model, frame, q, v + e, tau, given), n))
    close(linear.D, differentiated(lambda e: values(model, frame, q, v, tau + e, given), n))

    def shifted(e):
        return given | {name: given[name] * (1 + x) for name, x in zip(names, e, strict=True)}

    size = np.array([given[name] for name in names])
    count = len(names)
    F = differentiated(lambda e: values(model, frame, q, v, tau, shifted(e)), count) / size
    close(linear.F, F)
    close(linear.E[n:], F[-n:])
    np.testing.assert_array_equal(linear.E[:n], 0)
    assert linear.parameter_names == names


def test_rotation_is_the_small_turn_in_frame_axes():
    model = tree_with_parameters()
    n = model.nv
    q, v, tau = state(model, seed=6)
    linear = linearize(model, q, v, tau, outputs=["frame:tip4.pose"])
    J = model.frame_jacobian(q, "tip4")
    np.testing.assert_allclose(linear.C[3:, :n], J[:3], atol=1e-13)
    np.testing.assert_allclose(
        linear.C[:3, :n], model.frame_jacobian(q, "tip4", reference="local_world_aligned")[3:], atol=1e-13
    )
    np.testing.assert_array_equal(linear.C[:, n:], 0)
    np.testing.assert_allclose(linear.y[3:], 0, atol=1e-14)
    assert linear.output_names[2:4] == ("tip4.pose.position.z", "tip4.pose.rotation.x")
    assert linear.output_units[2:4] == ("m", "rad")


def instrumented():
    builder = ModelBuilder("instrumented")
    builder.body(
        "cart", Inertia.box(2.0, (0.2, 0.2, 0.2)), joint=Prismatic((1.0, 0.0, 0.0)), joint_name="slide"
    )
    builder.body(
        "ball",
        Inertia.box(1.0, (0.3, 0.2, 0.1)),
        joint=Spherical(),
        joint_name="socket",
        parent="cart",
        placement=(0.0, 0.0, 0.5),
    )
    builder.frame("tip", "ball", (0.1, 0.2, 0.3))
    for name, kind, target in (
        ("encoder", "joint_position", "slide"),
        ("attitude", "joint_position", "socket"),
        ("tacho", "joint_rate", "slide"),
        ("marker", "point", "tip"),
        ("tracker", "frame", "tip"),
        ("gyro", "gyro", "tip"),
        ("acc", "accelerometer", "tip"),
    ):
        builder.sensor(name, kind, target)
    return builder.build()


def test_sensors():
    model = instrumented()
    q, v, tau = state(model, seed=2)
    names = ["encoder", "attitude", "tacho", "marker", "sensor:tracker", "gyro", "acc"]
    linear = linearize(model, q, v, tau, outputs=names)
    frame = linearize(
        model,
        q,
        v,
        tau,
        outputs=["q", "v:slide", "frame:tip.position", "frame:tip.pose", "frame:tip.angular_velocity"],
    )
    np.testing.assert_array_equal(linear.C[:-3], frame.C)
    assert linear.output_names[:5] == ("encoder", "attitude.wx", "attitude.wy", "attitude.wz", "tacho")
    assert linear.output_names[-3:] == ("acc.x", "acc.y", "acc.z")
    R, g = model.frame_pose(q, "tip").rotation, np.array([0.0, 0.0, -9.81])

    def felt(q, v, tau):
        a = model.forward_dynamics(q, v, tau)
        A = model.frame_acceleration(q, v, a, "tip", reference="local_world_aligned")[3:]
        return model.frame_pose(q, "tip").rotation.T @ (A - g)

    np.testing.assert_allclose(linear.y[-3:], felt(q, v, tau), atol=1e-12)
    close(linear.C[-3:, : model.nv], differentiated(lambda e: felt(model.integrate(q, e), v, tau), model.nv))
    close(linear.D[-3:], differentiated(lambda e: felt(q, v, tau + e), model.nv))
    held = model.inverse_dynamics(q, np.zeros(4), np.zeros(4))
    at_rest = linearize(model, q, tau=held, outputs=["acc"])
    np.testing.assert_allclose(at_rest.y, -R.T @ g, atol=1e-12)  # held still, it feels the support


def test_a_frame_of_the_world_does_not_move():
    model = library.pendulum()
    linear = linearize(model, [0.3], outputs=["frame:world.position", "frame:tip.position"])
    np.testing.assert_array_equal(linear.C[:3], 0)
    np.testing.assert_allclose(linear.C[3:, 0], [np.cos(0.3), 0, np.sin(0.3)], atol=1e-15)


# --- inputs ----------------------------------------------------------------------------------------------------


def geared():
    builder = ModelBuilder("geared")
    ratio = builder.parameter("ratio", 50.0)
    builder.body(
        "arm", Inertia.box(1.0, (0.5, 0.1, 0.1)), joint=Revolute((0.0, 1.0, 0.0)), joint_name="shoulder"
    )
    builder.body(
        "rail",
        Inertia.box(0.5, (0.1, 0.1, 0.1)),
        joint=Prismatic((1.0, 0.0, 0.0)),
        joint_name="rail",
        parent="arm",
    )
    builder.actuator("motor", "shoulder", gear=ratio).actuator("rail", "rail", gear=2.0)
    return builder.build()


def test_inputs_default_to_the_actuators_with_their_gears():
    model = geared()
    linear = linearize(model, model.neutral())
    M = model.inverse_mass_matrix(model.neutral())
    assert linear.input_names == ("motor", "rail")
    np.testing.assert_allclose(linear.B[2:], M @ np.diag([50.0, 2.0]), rtol=1e-12)
    np.testing.assert_array_equal(linear.G, np.diag([50.0, 2.0]))
    other = linearize(model, model.neutral(), parameter_values={"ratio": np.array([10.0, 20.0])})
    np.testing.assert_allclose(other.B[:, 2:, 0], np.outer([10.0, 20.0], M[:, 0]), rtol=1e-12)
    assert other[1].parameter_values == {"ratio": 20.0}
    efforts = linearize(model, model.neutral(), inputs=["tau:rail", "shoulder"])
    assert efforts.input_names == ("rail", "shoulder")
    assert efforts.input_units == ("N", "N m")
    np.testing.assert_allclose(efforts.B[2:], M[:, ::-1], rtol=1e-12)


def test_names_of_states_and_units():
    model = instrumented()
    linear = linearize(model, model.neutral())
    assert linear.state_names[:2] == ("q:slide", "q:socket.wx")
    assert linear.state_names[4:6] == ("v:slide", "v:socket.wx")
    assert linear.state_units == ("m", "rad", "rad", "rad", "m/s", "rad/s", "rad/s", "rad/s")
    assert linear.input_units == ("N", "N m", "N m", "N m")


# --- refusals --------------------------------------------------------------------------------------------------


def test_refusals():
    model, m = geared(), instrumented()
    q = model.neutral()
    assert refusal(linearize, model, [0.0]) == "linearize: q has shape (1,), expected (..., 2)"
    assert refusal(linearize, model, q, inputs=["motr"]) == (
        "linearize: inputs: no joint or degree of freedom 'motr'; there is shoulder, rail"
    )
    assert refusal(linearize, model, q, inputs=["rail"]) == (
        "linearize: inputs: 'rail' is an actuator and a joint; write 'actuator:rail' or 'tau:rail'"
    )
    assert refusal(linearize, model, q, inputs=["actuator:moter"]) == (
        "linearize: inputs: no actuator 'moter'; did you mean 'motor'?"
    )
    assert refusal(linearize, model, q, inputs=["shoulder", "tau:shoulder"]) == (
        "linearize: inputs: 'shoulder' is named twice"
    )
    assert refusal(linearize, model, q, inputs=[3]) == "linearize: inputs is [3], expected a list of names"
    assert refusal(linearize, model, q, parameters=["rati"]) == (
        "linearize: parameters: no parameter 'rati'; did you mean 'ratio'?"
    )
    assert refusal(linearize, model, q, parameters={"ratio": 2.0}) == (
        "linearize: parameters is a mapping, expected the names of the parameters to differentiate for; values go into "
        "parameter_values"
    )
    assert (
        refusal(linearize, model, q, parameters=3) == "linearize: parameters is 3, expected a list of names"
    )
    assert refusal(linearize, model, q, inputs=3) == "linearize: inputs is 3, expected a list of names"
    assert refusal(linearize, model, q, parameter_values=[2.0]) == (
        "linearize: parameter_values is [2.0], expected a mapping from names to arrays"
    )
    message = refusal(linearize, model, q, tau=[1.0, 0.0], parameters=["ratio"], error=UnsupportedError)
    assert message.startswith("linearize: the gear of the input 'motor' depends on the parameter 'ratio'")
    assert linearize(model, q, tau=[0.0, 1.0], parameters="ratio").E.shape == (4, 1)
    for name in ("tip", "tip.y"):
        assert refusal(linearize, m, m.neutral(), outputs=[name]).endswith(
            "; for a frame write 'frame:tip.position'"
        )
    assert refusal(linearize, m, m.neutral(), outputs=["frame:tip.speed"]) == (
        "linearize: outputs: 'frame:tip.speed' is no quantity of a frame, expected 'frame:NAME.' and one of position, "
        "rotation, pose, velocity, angular_velocity, acceleration"
    )
    assert refusal(linearize, m, m.neutral(), outputs=["sensor:giro"]) == (
        "linearize: outputs: no sensor 'giro'; did you mean 'gyro'?"
    )
    assert refusal(linearize, m, m.neutral(), outputs=["q", "slide"]) == (
        "linearize: outputs: 'q:slide' is named twice"
    )
    assert refusal(linearize, m, 2 * m.neutral()).startswith(
        "linearize: joint 'socket': the quaternion (w, x, y, z) has length 2"
    )
    both = ModelBuilder("both").body(
        "body", Inertia.box(1.0, (1.0, 1.0, 1.0)), joint=Revolute(), joint_name="pin"
    )
    both = both.sensor("pin", "joint_position", "pin").build()
    assert refusal(linearize, both, [0.0], outputs=["pin"]) == (
        "linearize: outputs: 'pin' is a sensor and a joint; write 'sensor:pin' or 'q:pin'"
    )


def test_differences_are_as_accurate_as_they_say():
    assert abs(differentiated(lambda e: np.sin(1 + e), 1)[0, 0] - np.cos(1)) < 1e-3 * DIFFERENCES

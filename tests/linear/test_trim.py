"""Equilibria against closed forms, and what `trim` says when there are none."""

import numpy as np
import pytest

from alembert import Inertia, ModelBuilder, library
from alembert.errors import AlembertWarning, ArgumentError, NumericalError
from alembert.flexible import beam
from alembert.joints import Limits, Prismatic, Revolute, Spring
from alembert.linear import trim

G = 9.81


def refusal(*arguments, error=ArgumentError, **options):
    with pytest.raises(error) as caught:
        trim(*arguments, **options)
    return str(caught.value)


def balanced(found):
    """At rest the accelerations are zero, to the rounding of gravity."""
    a = found.model.forward_dynamics(found.q, found.v, found.tau)
    assert np.abs(a).max() < 1e-11
    return found


def test_a_pendulum_falls_to_the_nearest_equilibrium():
    model = library.pendulum()
    hanging = balanced(trim(model, q=[0.4]))
    np.testing.assert_allclose(hanging.q, 0, atol=1e-14)
    assert hanging.stability == "marginal"
    upright = balanced(trim(model, q=[3.0]))
    np.testing.assert_allclose(upright.q, np.pi, atol=1e-14)
    assert upright.stability == "unstable"
    np.testing.assert_allclose(np.sort(upright.eigenvalues().real), [-np.sqrt(G), np.sqrt(G)], rtol=1e-12)
    assert trim(library.pendulum(damping=0.1), q=[0.1]).stability == "stable"


def test_a_guess_where_nothing_pulls():
    """At a quarter turn the derivative of the torque vanishes, so that no descent direction is left."""
    found = balanced(trim(library.pendulum(), q=[np.pi / 2]))
    assert min(abs(found.q[0]), abs(found.q[0] - np.pi)) < 1e-12


def test_a_fixed_torque_and_a_fixed_angle():
    model = library.pendulum(mass=2.0, length=0.5)
    torque = 2.0 * G * 0.5 * np.sin(0.7)
    for name in ("tau:pivot", "motor", "actuator:motor"):
        found = balanced(trim(model, fixed={name: torque}))
        np.testing.assert_allclose(found.q, 0.7, rtol=1e-12)
    held = balanced(trim(model, fixed={"pivot": 0.7}))
    np.testing.assert_allclose(held.tau, torque, rtol=1e-12)
    assert held.inputs == {"motor": pytest.approx(torque)}
    assert held.free == ("actuator:motor",)
    np.testing.assert_allclose(trim(model, fixed={"q": [0.7]}, free="tau").tau, torque, rtol=1e-12)


def test_gears():
    builder = ModelBuilder("geared")
    ratio = builder.parameter("ratio", 20.0)
    builder.body(
        "bob", Inertia.point(1.0, (0, 0, -1.0)), joint=Revolute((0.0, -1.0, 0.0)), joint_name="pivot"
    )
    model = builder.actuator("motor", "pivot", gear=ratio).build()
    found = trim(model, fixed={"pivot": 0.3})
    assert found.inputs["motor"] == pytest.approx(G * np.sin(0.3) / 20)
    other = trim(model, fixed={"pivot": 0.3}, parameter_values={"ratio": 5.0})
    assert other.inputs["motor"] == pytest.approx(G * np.sin(0.3) / 5)
    assert other.linearize().B[1, 0] == pytest.approx(5.0)


def test_the_acrobot_balances_where_its_centre_of_mass_is_above_the_shoulder():
    """Underactuated: the elbow bent by 0.5, the shoulder and the motor free."""
    model = library.acrobot()
    found = balanced(trim(model, q=[1.5, 0.0], fixed={"elbow": 0.5}, free=["shoulder", "elbow_motor"]))
    assert abs(model.center_of_mass(found.q)[0]) < 1e-12
    assert model.center_of_mass(found.q)[2] > 0
    assert found.tau[0] == 0
    assert found.free == ("q:shoulder", "actuator:elbow_motor")


def test_what_is_left_open_stays_near_the_guess():
    """The cart may stand anywhere; two springs in a row share a load in one way only."""
    found = balanced(trim(library.cart_pole(), q=[0.8, 0.2]))
    np.testing.assert_allclose(found.q, [0.8, 0.0], atol=1e-12)


def test_nearest_point_of_a_family():
    """Elbow, shoulder and elbow torque free: of the balanced postures the nearest to the guess.

    The optimum makes the distance stationary along the family: its gradient is in the row space of J.
    """
    model = library.acrobot()
    guess = np.array([1.4, 0.3])
    found = balanced(trim(model, q=guess, free=["q", "elbow_motor"]))
    J = np.concatenate(
        [model.inverse_dynamics_derivatives(found.q, found.v, np.zeros(2)).dq, [[0.0], [-1.0]]], axis=1
    )
    away = np.concatenate([guess - found.q, [-found.tau[1]]])
    rest = away - J.T @ np.linalg.lstsq(J.T, away, rcond=None)[0]
    assert np.linalg.norm(rest) < 1e-8
    assert np.linalg.norm(away) < 1.0


def test_a_ball_joint_hangs_down_on_its_manifold():
    model = library.random_tree(3, bodies=1, kinds=("spherical",))
    q = model.integrate(model.neutral(), [0.5, -0.4, 0.3])
    found = balanced(trim(model, q=q))
    assert np.linalg.norm(found.q) == pytest.approx(1.0)
    c = model.center_of_mass(found.q) - model.frame_pose(found.q, model.bodies[0].name).translation
    np.testing.assert_allclose(c[:2], 0, atol=1e-12)
    some = trim(model, q=q, free=["joint1.wx", "joint1.wy", "tau:joint1.wz"])
    assert some.free == ("q:joint1.wx", "q:joint1.wy", "tau:joint1.wz")


def conical():
    builder = ModelBuilder("conical")
    builder.body(
        "shaft", Inertia.box(0.1, (0.1, 0.1, 0.1)), joint=Revolute((0.0, 0.0, 1.0)), joint_name="spin"
    )
    builder.body(
        "bob",
        Inertia.point(1.0, (0, 0, -1.0)),
        joint=Revolute((0.0, 1.0, 0.0)),
        joint_name="tilt",
        parent="shaft",
    )
    return builder.build()


def test_a_conical_pendulum_is_a_steady_motion():
    """Spin free at a fixed angle: w^2 = g / (l cos(angle)) for a point mass."""
    found = balanced(trim(conical(), v=[3.0, 0.0], fixed={"tilt": 0.6, "v:tilt": 0.0}, free=["v:spin"]))
    assert found.v[0] == pytest.approx(np.sqrt(G / np.cos(0.6)), rel=1e-12)
    assert "v:spin" in str(found)


@pytest.mark.parametrize("free", [["tilt"], None], ids=["tilt", "all coordinates"])
@pytest.mark.parametrize("rate", [3.3, 3.5, 3.8, 3.95, 4.0, 4.05, 4.2, 4.5, 6.0])
@pytest.mark.parametrize("guess", [0.5, -0.5, 0.9])
def test_the_nearest_of_several_steady_motions(rate, guess, free):
    """Turned at a fixed rate the pendulum may hang down or stand out to either side: cos(angle) = g / (l w^2).

    At 4 rad/s the moment that is missing grows from 0.5 rad outward at first, although the steady motion is there.
    """
    angle = np.arccos(G / rate**2)
    expected = min((0.0, angle, -angle, np.pi, -np.pi), key=lambda x: abs(x - guess))
    found = balanced(trim(conical(), q=[0.2, guess], v=[rate, 0.0], free=free))
    np.testing.assert_allclose(found.q, [0.2, expected], atol=1e-8)


def test_springs_and_weights():
    builder = ModelBuilder("scale")
    builder.body(
        "pan", Inertia.point(2.0, (0, 0, 0)), joint=Prismatic((0.0, 0.0, 1.0)), spring=Spring((50.0,))
    )
    found = balanced(trim(builder.build()))
    np.testing.assert_allclose(found.q, -2 * G / 50, rtol=1e-13)
    text = str(found)
    assert "q:pan_joint" in text
    assert "found with q:pan_joint free" in text


# --- failures --------------------------------------------------------------------------------------------------


def test_too_large_a_torque():
    model = library.pendulum()
    message = refusal(model, fixed={"motor": 12.0}, error=NumericalError)
    assert message == (
        "trim: no equilibrium found: joint 'pivot' lacks -2.19 N m at the best point, with q:pivot free; free an "
        "effort, or start from another guess"
    )


def test_too_few_free_quantities():
    message = refusal(library.two_link(), q=[0.3, 0.2], free=["elbow_motor"], error=NumericalError)
    assert message.startswith("trim: no equilibrium found: joint 'shoulder' lacks ")
    assert message.endswith(
        "with actuator:elbow_motor free; 1 free quantity cannot hold 2 degrees of freedom in general"
    )
    nothing = refusal(library.two_link(), q=[0.3, 0.2], free=[], error=NumericalError)
    assert "with nothing free" in nothing


def test_limits_are_told():
    builder = ModelBuilder("scale")
    builder.body(
        "pan",
        Inertia.point(2.0, (0, 0, 0)),
        joint=Prismatic((0.0, 0.0, 1.0)),
        spring=Spring((50.0,)),
        limits=Limits(lower=(-0.1,), upper=(0.1,), effort=(1.0,)),
    )
    model = builder.actuator("jack", "pan_joint", limits=(-5.0, 5.0)).build()
    with pytest.warns(AlembertWarning, match=r"trim: beyond limits at the equilibrium: pan_joint = -0.3924$"):
        trim(model)
    with pytest.warns(
        AlembertWarning, match=r"limits at the equilibrium: tau:pan_joint = 19.62, actuator:jack = 19.62$"
    ):
        trim(model, fixed={"pan_joint": 0.0})


def test_modes_of_a_body_are_fixed_by_name():
    """A beam under its own weight, straight: the wall carries what it would bend by, and the joint its weight."""
    builder = ModelBuilder("mast")
    builder.body("boom", beam(1.0, 2.0, EI_y=50.0, bending_z=2), joint=Revolute((0, 1, 0)))
    model = builder.build()
    for fixed in ({"q:boom": [0.0, 0.0]}, {"q:boom.bending_z_1": 0.0, "q:boom.bending_z_2": 0.0}):
        found = balanced(trim(model, fixed={**fixed, "q:boom_joint": 0.0}, free=["tau"]))
        np.testing.assert_array_equal(found.q, 0)
        # 2 kg, half a metre away
        assert abs(found.tau[0]) == pytest.approx(2.0 * G * 0.5, rel=1e-12)
    assert trim(model, fixed={"q:boom.bending_z_1": 0.0}).q[1] == 0
    message = refusal(
        model,
        fixed={"q:boom": [0.1, 0.0], "q:boom_joint": 0.0},
        free=["tau:boom_joint"],
        error=NumericalError,
    )
    assert message.startswith("trim: no equilibrium found: mode 'boom.bending_z_1' lacks ")


def test_conflicts_and_unknown_names():
    model = library.two_link()
    assert refusal(model, fixed={"elbow": 0.1}, free=["elbow"]) == (
        "trim: free: 'elbow' is both fixed and free (elbow)"
    )
    assert refusal(model, fixed={"elbow_motor": 0.1}, free=["elbow_motor"]) == (
        "trim: 'elbow_motor' is both fixed and free"
    )
    assert (
        refusal(model, fixed={"elbow": 0.1, "q:elbow": 0.2})
        == "trim: fixed: 'q:elbow' is fixed twice (elbow)"
    )
    assert refusal(model, free=["elbow_motor", "tau:elbow"]) == (
        "trim: the actuator 'elbow_motor' and tau:elbow are both named; an actuator gives all the effort of its degree "
        "of freedom"
    )
    assert refusal(model, free=["elbwo"]) == (
        "trim: free: no joint, degree of freedom or actuator 'elbwo'; did you mean 'elbow'?"
    )
    assert refusal(model, fixed={"actuator:x": 1.0}) == (
        "trim: fixed: no actuator 'x'; there is shoulder_motor, elbow_motor"
    )
    assert refusal(model, fixed={"elbow": [1.0, 2.0]}) == "trim: fixed: 'elbow' has shape (2,), expected (1,)"
    assert refusal(model, q=[0.0]) == "trim: q has shape (1,), expected (2,)"
    ball = library.random_tree(3, bodies=1, kinds=("spherical",))
    assert refusal(ball, fixed={"joint1.qx": 0.0}) == (
        "trim: fixed: 'joint1.qx': the coordinates of a spherical joint are only fixed together, 'joint1'; to fix some "
        "of its directions, leave them out of free"
    )
    assert refusal(ball, q=[2.0, 0, 0, 0]).startswith(
        "trim: joint 'joint1': the quaternion (w, x, y, z) has length 2"
    )
    named = ModelBuilder("named").body("b", Inertia.point(1.0, (0, 0, 1)), joint=Revolute(), joint_name="pin")
    assert refusal(named.actuator("pin", "pin").build(), free=["pin"]) == (
        "trim: free: 'pin' is a joint and an actuator; write 'q:pin' or 'actuator:pin'"
    )


def test_rounding_at_a_limit_is_no_warning():
    """Warnings are errors here."""
    from alembert import ModelBuilder
    from alembert.joints import Limits, Prismatic, Spring
    from alembert.model import Inertia

    builder = ModelBuilder("scale", gravity=(0, 0, -9.81))
    builder.body(
        "pan",
        Inertia.point(1.0, (0, 0, 0)),
        joint=Prismatic((0, 0, 1)),
        joint_name="pan",
        spring=Spring(stiffness=(9.81,)),
        limits=Limits(lower=(-1.0 + 1e-15,)),
    )
    assert trim(builder.build(), q=[-0.5]).q[0] == pytest.approx(-1.0)

"""Parts of linear models: exact where nothing that is left out acts on them, refused elsewhere."""

import numpy as np
import pytest

from alembert import Inertia, ModelBuilder, library
from alembert.errors import UnsupportedError
from alembert.flexible import beam
from alembert.joints import Free, Friction, Prismatic, Revolute, Spring
from alembert.linear import decoupled_pd, linearize, lqr, place_poles
from alembert.simulate import simulate
from refusals import refusal

ATTITUDE = ["attitude.wx", "attitude.wy", "attitude.wz"]


def space_robot(stiffness=0.0):
    """A free base with an arm of two links; no gravity."""
    builder = ModelBuilder("robot", gravity=(0, 0, 0))
    builder.body("base", Inertia.box(100.0, (1.0, 0.8, 0.6)), joint=Free(), joint_name="base")
    spring = {"spring": Spring((stiffness,))} if stiffness else {}
    for k, parent in ((1, "base"), (2, "link1")):
        place = (0.5 if k == 1 else 1.0, 0.1, 0.0)
        builder.body(
            f"link{k}",
            Inertia.box(10.0, (1.0, 0.1, 0.1), center=(0.5, 0, 0)),
            parent=parent,
            placement=place,
            joint=Revolute((0, 0, 1) if k == 1 else (0, 1, 0)),
            joint_name=f"arm{k}",
            **spring,
        )
        builder.actuator(f"motor{k}", f"arm{k}")
    return builder.build()


def spinning_wheels():
    model = library.satellite()
    v = np.zeros(model.nv)
    v[6:] = [50.0, -80.0, 120.0]
    return linearize(model, model.neutral(), v)


@pytest.mark.parametrize("wheels", ["still", "spinning"])
def test_attitude_of_a_satellite_is_a_part_of_its_own(wheels):
    """The poles of the whole under the part's regulator are those of the part and those that were left out."""
    model = library.satellite()
    linear = linearize(model, model.neutral()) if wheels == "still" else spinning_wheels()
    part = linear.reduced(ATTITUDE)
    assert part.state_names == tuple(f"{kind}:{name}" for kind in "qv" for name in ATTITUDE)
    assert len(part.left_out) == 12
    assert part.left_out[:2] == ("q:attitude.vx", "q:attitude.vy")
    regulator = lqr(part, [1.0] * 3 + [10.0] * 3, 1e-3)
    K = np.zeros((3, 18))
    K[:, [linear.state_names.index(name) for name in part.state_names]] = regulator.K
    closed = np.linalg.eigvals(linear.A - linear.B @ K)
    slow = np.sort_complex(closed[np.abs(closed) > 1e-3])
    np.testing.assert_allclose(slow, regulator.poles(), rtol=1e-7)
    assert np.abs(np.sort(np.abs(closed))[:12]).max() < 1e-6  # sqrt(eps): double zeros


def test_wheels_bring_a_tumbling_satellite_to_rest():
    """With total momentum: wheels take it up, whatever the linear model leaves out."""
    model = library.satellite()
    regulator = lqr(linearize(model, model.neutral()).reduced(ATTITUDE), [1.0] * 3 + [10.0] * 3, 1e-3)
    start = model.integrate(model.neutral(), [0.2, -0.1, 0.3, 0, 0, 0, 0, 0, 0])
    v = np.zeros(9)
    v[2] = 0.02
    run = simulate(model, start, v, duration=100.0, step=0.05, controller=regulator)
    assert np.abs(model.difference(model.neutral(), run.q[-1])[:3]).max() < 1e-6
    assert np.abs(run.v[-1][:3]).max() < 1e-6
    assert abs(run.v[-1][8]) > 1.0
    poles = -np.arange(1.0, 7.0)
    placed = place_poles(linearize(model, model.neutral()).reduced(ATTITUDE), poles)
    np.testing.assert_allclose(np.sort(placed.poles().real), np.sort(poles), rtol=1e-6)
    pd = decoupled_pd(linearize(model, model.neutral()).reduced(ATTITUDE), 0.1, 0.7)
    np.testing.assert_allclose(np.abs(pd.poles()), 0.1, rtol=1e-9)


def test_refusals_name_states_and_parts():
    model = library.satellite()
    linear = linearize(model, model.neutral())
    assert refusal(place_poles, linear, -np.arange(1.0, 19.0)) == (
        "place_poles: the inputs do not reach all of the state: rank 6 of 18 (tolerance 1e-10, margin 1); lost: "
        "q:attitude.vx, q:attitude.vy, q:attitude.vz, v:attitude.vx, v:attitude.vy, v:attitude.vz; 6 combinations of "
        "q:attitude.wx, q:attitude.wy, q:attitude.wz, q:spin_x, q:spin_y, q:spin_z, v:attitude.wx, v:attitude.wy, "
        "v:attitude.wz, v:spin_x, v:spin_y, v:spin_z. What they do not reach keeps its poles, 0 rad/s (12 times). Parts "
        "that nothing else acts on and the inputs reach: linear.reduced(['attitude.wx', 'attitude.wy', 'attitude.wz']) or "
        "linear.reduced(['spin_x', 'spin_y', 'spin_z'])"
    )
    assert refusal(linear.reduced, ["q:attitude.wx"]) == (
        "reduced: v:attitude.wx would be left out, but acts on what is kept (v:attitude.wx on q:attitude.wx by 1 of the "
        "largest entry of A); keep them too, or neglect= couplings up to that size"
    )
    assert refusal(linear.reduced, ["attitud"]).startswith(
        "reduced: states: no joint or degree of freedom 'attitud'"
    )
    assert refusal(linear.reduced, []) == "reduced: states is empty, expected names of states or joints"
    assert refusal(linear.reduced, 3) == "reduced: states is 3, expected a list of names"
    assert refusal(linear.reduced, inputs="motor") == (
        "reduced: inputs: the linear model has no 'motor'; did you mean 'motor_z'?"
    )
    assert refusal(linear.reduced, ATTITUDE, outputs=["q:spin_x"]) == (
        "reduced: the output 'q:spin_x' depends on q:spin_x, which is left out"
    )
    rates = linear.reduced(["v:attitude.wx"])
    assert refusal(rates.reduced, ["q:attitude.wx"]).startswith("reduced: states: no state 'q:attitude.wx'")
    sentence = "the part has displacements without their speeds, or speeds without displacements"
    assert sentence in refusal(rates.modes, error=UnsupportedError)
    assert sentence in refusal(decoupled_pd, rates, 1.0, 1.0, error=UnsupportedError)
    assert "poles [rad/s]: 0" in str(rates)


def test_nothing_is_reached_apart():
    """A pole on a cart that only a spring holds, and a weight that no input moves and that acts on it."""
    builder = ModelBuilder("carts", gravity=(0, 0, 0))
    builder.body(
        "a", Inertia.box(1.0, (1, 1, 1)), joint=Revolute((0, 0, 1)), joint_name="a", spring=Spring((1.0,))
    )
    builder.body(
        "b",
        Inertia.box(1.0, (1, 1, 1)),
        joint=Revolute((0, 0, 1)),
        joint_name="b",
        parent="a",
        spring=Spring((2.0,)),
    )
    model = builder.actuator("motor", "a", gear=0.0).build()
    text = refusal(place_poles, linearize(model, [0.0, 0.0]), [-1.0, -2.0, -3.0, -4.0])
    assert text.endswith(
        "No part of the state is free of what they do not reach; linearise with other inputs="
    )


def panelled(damping):
    """A hub with two panels on springs and a wheel; the panels' symmetric mode moves no wheel's axis."""
    builder = ModelBuilder("panels", gravity=(0, 0, 0))
    builder.body("hub", Inertia.box(500.0, (1.5, 1.5, 1.5)), joint=Free(), joint_name="hub")
    for name, side in (("left", 1), ("right", -1)):
        builder.body(
            name,
            Inertia.box(10.0, (1.0, 2.0, 0.05), center=(0, float(side), 0)),
            parent="hub",
            placement=(0, 0.75 * side, 0),
            joint=Revolute((1, 0, 0)),
            joint_name=name,
            spring=Spring((500.0,)),
            friction=Friction(viscous=(damping,)),
        )
    builder.body(
        "wheel", Inertia.cylinder(8.0, 0.2, 0.05), parent="hub", joint=Revolute((1, 0, 0)), joint_name="wheel"
    )
    return builder.actuator("motor", "wheel").build()


def test_what_is_stable_by_itself_may_be_part_of_it():
    """A wheel holds the hub's attitude about its axis, though it does not reach the panels' damped symmetric mode."""
    model = panelled(damping=2.0)
    linear = linearize(model, model.neutral())
    text = refusal(lqr, linear, 1.0)
    assert "reach, or are stable: linear.reduced(['hub.wx', 'left', 'right'])" in text
    part = linear.reduced(["hub.wx", "left", "right"])
    assert not part.controllable()
    assert lqr(part, 1.0).poles().real.max() < 0
    assert "the inputs reach: linear.reduced(" not in refusal(place_poles, part, [-1.0] * 6)
    swinging = panelled(damping=0.0)
    assert "'left'" not in refusal(lqr, linearize(swinging, swinging.neutral()), 1.0)


def test_a_part_with_modes_is_named_so_that_it_can_be_taken():
    builder = ModelBuilder("mast", gravity=(0, 0, 0))
    builder.body(
        "boom", beam(1.0, 1.0, EI_y=10.0, bending_z=2), joint=Revolute((0, 1, 0)), joint_name="hinge"
    )
    builder.body("other", Inertia.point(1.0), joint=Prismatic((1, 0, 0)))
    model = builder.build()
    linear = linearize(model, model.neutral(), inputs=["hinge"])
    message = refusal(lqr, linear, np.eye(8), np.eye(1))
    assert "linear.reduced(['hinge', 'boom'])" in message
    assert len(linear.reduced(["hinge", "boom"]).state_names) == 6


def test_a_model_that_rolls_is_printed():
    builder = ModelBuilder("wheel", gravity=(0, 0, 0))
    builder.body("slide", Inertia.box(1.0, (0.1, 0.1, 0.1)), joint=Prismatic((1, 0, 0)), joint_name="slide")
    builder.body(
        "turn",
        Inertia.box(1.0, (0.1, 0.1, 0.1)),
        joint=Revolute((0, 1, 0)),
        joint_name="turn",
        parent="slide",
    )
    builder.equation("roll", "x_dot - 0.5 * r_dot", {"x": "slide", "r": "turn"})
    model = builder.build()
    linear = linearize(model, [0.0, 0.0])
    assert len(linear.displacements) == 2
    assert len(linear.rates) == 1
    assert "poles [rad/s]: " in str(linear)


def test_arm_of_a_space_robot():
    """Efforts at the joints feel the inertia of an arm on a base that gives way, M_aa - M_ab M_bb^-1 M_ba."""
    model = space_robot(stiffness=30.0)
    q = model.neutral()
    linear = linearize(model, q)
    assert "linear.reduced(['arm1', 'arm2'])" in refusal(lqr, linear, 1.0)
    part = linear.reduced(["arm1", "arm2"])
    M = model.mass_matrix(q)
    apparent = M[6:, 6:] - M[6:, :6] @ np.linalg.solve(M[:6, :6], M[:6, 6:])
    np.testing.assert_allclose(part.mass_matrix, apparent, rtol=1e-10)
    np.testing.assert_allclose(part.B[2:], np.linalg.inv(apparent), rtol=1e-10)
    whole = [mode.frequency for mode in linear.modes() if mode.kind == "oscillation"]
    np.testing.assert_allclose(part.modes().frequencies, whole, rtol=1e-9)
    assert refusal(part.modes().motion, error=UnsupportedError).startswith(
        "motion: the linear model is a part that leaves out q:base.wx"
    )
    assert lqr(part, 1.0).poles().real.max() < 0


def test_inputs_and_outputs_are_chosen():
    linear = linearize(library.two_link(), [0.3, 0.4], outputs=["elbow", "frame:tip.position"])
    some = linear.reduced(inputs=["elbow_motor"], outputs=["tip.position.z", "q:elbow"])
    assert some.input_names == ("elbow_motor",)
    assert some.output_names == ("tip.position.z", "q:elbow")
    np.testing.assert_array_equal(some.B, linear.B[:, 1:])
    np.testing.assert_array_equal(some.C, linear.C[[3, 0]])
    np.testing.assert_array_equal(some.G, linear.G[:, 1:])
    assert some.left_out == ()


def test_parts_along_a_trajectory_and_neglected_couplings():
    model = library.satellite()
    v = np.zeros((3, 9))
    v[:, 6] = [0.0, 10.0, 20.0]
    batch = linearize(model, model.neutral(), v).reduced(ATTITUDE)
    one = linearize(model, model.neutral(), v[2]).reduced(ATTITUDE)
    np.testing.assert_allclose(batch[2].A, one.A)
    assert batch[2].left_out == one.left_out
    pole = linearize(library.cart_pole(), [0.0, 0.0])
    assert (
        pole.reduced(pole.state_names[1::2]).state_names == pole.state_names[1::2]
    )  # the cart's place acts on nothing
    arm = linearize(library.two_link(), [0.3, 0.4])
    assert refusal(arm.reduced, ["shoulder"]).startswith(
        "reduced: q:elbow would be left out, but acts on what is kept"
    )
    assert arm.reduced(["shoulder"], neglect=1.0).A.shape == (2, 2)


def test_an_output_is_told_in_its_own_units():
    """Beside the acceleration of a stiff mode, 1e11 per metre, an angle of 1 per radian is no rounding."""
    builder = ModelBuilder("two", gravity=(0, 0, -9.81))
    builder.body(
        "stiff",
        Inertia.point(1.0, (0, 0, 0)),
        joint=Prismatic((1.0, 0, 0)),
        joint_name="slide",
        spring=Spring((1e11,)),
    )
    builder.body("swing", Inertia.point(1.0, (0, 0, -1.0)), joint=Revolute((0, 1.0, 0)), joint_name="swing")
    linear = linearize(builder.build(), np.zeros(2), outputs=["q", "a"])
    assert linear.reduced(["slide"]).output_names == ("q:slide", "a:slide")
    assert linear.reduced(["swing"]).output_names == ("q:swing", "a:swing")
    assert refusal(linear.reduced, ["slide"], outputs=["q:swing"]) == (
        "reduced: the output 'q:swing' depends on q:swing, which is left out"
    )

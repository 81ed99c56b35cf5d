"""What the builder makes of parts in any order, and what it refuses."""

import numpy as np
import pytest

from alembert.errors import ModelError
from alembert.expression import Expression
from alembert.joints import Fixed, Free, Friction, Limits, Prismatic, Revolute, Rotor, Spherical, Spring
from alembert.model import (
    WORLD,
    Actuator,
    Box,
    Capsule,
    Cylinder,
    Inertia,
    Mesh,
    ModelBuilder,
    Placement,
    Sphere,
    Visual,
)
from refusals import model_refusal as refusal

BALL = Inertia.sphere(1.0, 0.1)


def arm():
    """Two bodies: upper on shoulder, lower on elbow."""
    builder = ModelBuilder("arm")
    builder.body("upper", BALL, joint=Revolute(), joint_name="shoulder")
    return builder.body(
        "lower", BALL, joint=Revolute(), joint_name="elbow", parent="upper", placement=(1, 0, 0)
    )


# --- order and defaults -------------------------------------------------------------------------------------


def test_parts_in_any_order_make_a_depth_first_tree():
    builder = ModelBuilder()
    builder.joint("j_leaf", Revolute(), parent="left", child="leaf")
    builder.joint("j_right", Revolute(), parent="root", child="right")
    builder.frame("tip", "leaf", (0, 0, 1))
    for name in ("leaf", "right", "left", "root", "other"):
        builder.body(name, BALL)
    builder.joint("j_left", Revolute(), parent="root", child="left")
    builder.joint("j_root", Free(), parent=WORLD, child="root")
    builder.joint("j_other", Free(), parent=WORLD, child="other")
    model = builder.build()
    assert [body.name for body in model.bodies] == ["root", "right", "left", "leaf", "other"]
    assert [joint.name for joint in model.joints] == ["j_root", "j_right", "j_left", "j_leaf", "j_other"]
    assert model.parents == (-1, 0, 0, 2, -1)


def test_the_order_of_bodies_does_not_matter_for_equality():
    builder = ModelBuilder("arm")
    builder.body("lower", BALL).body("upper", BALL)
    builder.joint("shoulder", Revolute(), parent=WORLD, child="upper")
    builder.joint("elbow", Revolute(), parent="upper", child="lower", placement=Placement((1, 0, 0)))
    assert builder.build() == arm().build()


def test_defaults():
    model = ModelBuilder().body("ball", BALL, joint=Free()).build()
    assert (model.name, model.gravity) == ("model", (0.0, 0.0, -9.81))
    assert model.joints[0].name == "ball_joint"
    assert ModelBuilder().build().nv == 0
    assert (
        Spring(1.0)
        == ModelBuilder().body("b", BALL, joint=Revolute(), spring=Spring(1)).build().joints[0].spring
    )


def test_a_builder_may_go_on_after_build():
    builder = arm()
    first = builder.build()
    second = builder.frame("tip", "lower").build()
    assert len(first.frames) == 0
    assert len(second.frames) == 1


def test_bare_numbers_and_arrays():
    builder = ModelBuilder(gravity=np.zeros(3))
    builder.body("b", BALL, joint=Spherical(), placement=np.ones(3), armature=np.full(3, 0.1))
    joint = builder.build().joints[0]
    assert joint.placement == Placement((1.0, 1.0, 1.0))
    assert joint.armature == (0.1, 0.1, 0.1)
    assert ModelBuilder().body("b", BALL, joint=Revolute(), armature=1).build().joints[0].armature == (1.0,)


# --- topology -----------------------------------------------------------------------------------------------


def test_cycles():
    builder = ModelBuilder()
    builder.body("base", BALL, joint=Free())
    for child, parent in (("a", "c"), ("b", "a"), ("c", "b"), ("tail", "a")):
        builder.body(child, BALL, joint=Revolute(), parent=parent)
    assert refusal(builder.build) == (
        "bodies form a cycle that does not hang from the world: a -> b -> c -> a"
    )
    itself = ModelBuilder().body("a", BALL, joint=Revolute(), parent="a")
    assert refusal(itself.build).endswith("a -> a")


def test_a_body_without_a_joint_is_a_second_root():
    assert refusal(arm().body("loose", BALL).build) == (
        "body 'loose' has no joint; every body hangs by one from the world or from another body "
        "(a Free joint for one that floats)"
    )


def test_a_body_is_moved_by_one_joint():
    builder = arm().joint("second", Prismatic(), parent=WORLD, child="lower")
    assert refusal(builder.build) == (
        "body 'lower' is moved by two joints, 'elbow' and 'second'; make one of them a loop joint"
    )


def test_the_world_does_not_move():
    builder = arm().joint("earth", Free(), parent="lower", child=WORLD)
    assert refusal(builder.build) == "joint 'earth' moves the world; it can only be a parent"


def test_joints_refer_to_bodies():
    builder = arm().body("hand", BALL, joint=Revolute(), parent="lowr")
    assert refusal(builder.build) == ("joint 'hand_joint' refers to the body 'lowr'; did you mean 'lower'?")
    builder = arm().joint("j", Revolute(), parent="upper", child="x")
    assert refusal(builder.build) == "joint 'j' refers to the body 'x'; there is world, upper, lower"


def test_joint_options_need_a_joint():
    assert refusal(ModelBuilder().body, "a", BALL, parent="b", armature=1.0) == (
        "body 'a' is given armature, parent but no joint="
    )
    assert refusal(ModelBuilder().joint, "j", "revolute", parent=WORLD, child="a") == (
        "joint 'j': type is 'revolute', expected a joint type such as Revolute()"
    )


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("add", "field"),
    [
        (lambda b: b.body("upper", BALL), "bodies"),
        (lambda b: b.joint("elbow", Fixed(), parent=WORLD, child="upper"), "joints"),
        (lambda b: b.frame("f", "upper").frame("f", "lower"), "frames"),
        (lambda b: b.loop("l", Revolute(), "upper", WORLD).loop("l", Revolute(), "lower", WORLD), "loops"),
        (lambda b: b.coupling("c", "elbow", ["shoulder"], [1]).coupling("c", "elbow", [], []), "couplings"),
        (lambda b: b.actuator("a", "elbow").actuator("a", "shoulder"), "actuators"),
        (lambda b: b.sensor("s", "gyro", "upper").sensor("s", "gyro", "lower"), "sensors"),
    ],
)
def test_names_are_unique(add, field):
    name = {"bodies": "upper", "joints": "elbow"}.get(field, field[0])
    assert refusal(add(arm()).build) == f"two {field} are called {name!r}; names must be unique"


def test_names_are_texts():
    assert refusal(lambda: arm().body("", BALL)) == "body has the name '', expected a non-empty text"
    assert refusal(lambda: arm().frame(3, "upper")) == "frame has the name 3, expected a non-empty text"


def test_names_that_are_taken():
    assert refusal(arm().body("world", BALL).build) == (
        "a body is called 'world'; that name is the inertial frame's"
    )
    for name in ("upper", "world"):
        assert refusal(arm().frame(name, "lower").build) == (
            f"frame {name!r} has the name of a body, which already is a frame"
        )


# --- references ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda b: b.frame("f", "lowe"), "frame 'f' is on the body 'lowe'; did you mean 'lower'?"),
        (
            lambda b: b.loop("l", Revolute(), "uper", WORLD),
            "loop 'l' refers to the frame 'uper'; did you mean 'upper'?",
        ),
        (
            lambda b: b.frame("f", "upper").loop("l", Revolute(), "f", "upper"),
            "loop 'l' joins two frames of the same body 'upper'",
        ),
        (
            lambda b: b.coupling("c", "elbow", ["sholder"], [1]),
            "coupling 'c' refers to the joint 'sholder'; did you mean 'shoulder'?",
        ),
        (
            lambda b: b.coupling("c", "elbow", ["elbow"], [1]),
            "coupling 'c' couples the joint 'elbow' to itself",
        ),
        (
            lambda b: b.body("x", BALL, joint=Free(), joint_name="float").coupling(
                "c", "elbow", ["float"], [1]
            ),
            "coupling 'c': joint 'float' has 6 degrees of freedom, expected 1",
        ),
        (
            lambda b: b.actuator("m", "wrist"),
            "actuator 'm' drives the joint 'wrist'; there is shoulder, elbow",
        ),
        (
            lambda b: b.actuator("m", "elbow", dof=1),
            "actuator 'm' drives dof 1 of joint 'elbow', which has 1",
        ),
        (
            lambda b: b.sensor("s", "gyro", "elbow"),
            "sensor 's' measures the frame 'elbow'; did you mean 'lower'?",
        ),
        (
            lambda b: b.sensor("s", "joint_rate", "hand"),
            "sensor 's' measures the joint 'hand'; there is shoulder, elbow",
        ),
    ],
)
def test_references_exist(add, message):
    assert refusal(add(arm()).build) == message


# --- numbers ------------------------------------------------------------------------------------------------


def test_unphysical_inertias():
    heavy = ModelBuilder().body("a", Inertia(-1.0), joint=Free())
    assert refusal(heavy.build) == "body 'a': mass is -1, expected a positive number"
    flat = ModelBuilder().body("a", Inertia(1.0, tensor=(1, 0, 1, 0, 0, 3)), joint=Free())
    assert refusal(flat.build) == (
        "body 'a': inertia violates the triangle inequality: principal moments (1, 1, 3), 3 > 1 + 1"
    )


def test_massless_leaf():
    def tree(**options):
        return arm().body("hand", joint=Spherical(), joint_name="wrist", parent="lower", **options)

    assert refusal(tree().build) == (
        "body 'hand' on the moving joint 'wrist' has no mass, nor has anything outboard of it; its "
        "acceleration would be undefined. Give it an inertia, an armature, or a fixed joint"
    )
    assert "no mass" in refusal(tree(armature=(1, 1, 0)).build)
    assert "no mass" in refusal(tree(rotors=[Rotor(1, 1)], armature=(0, 1, 0)).build)
    assert "no mass" in refusal(tree(armature=(0, 1, 1), rotors=[Rotor(0, 1)]).build)
    assert tree(armature=(0, 1, 1), rotors=[Rotor(10, 1)]).build().nv == 5
    assert tree().body("finger", BALL, joint=Fixed(), parent="hand").build().nv == 5
    assert arm().body("hand", joint=Fixed(), parent="lower").build().nv == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"limits": Limits(lower=(0, 0))},
            "joint 'j': lower limit has 2 entries, expected 1 for a revolute joint",
        ),
        (
            {"limits": Limits(upper=(0, 0))},
            "joint 'j': upper limit has 2 entries, expected 1 for a revolute joint",
        ),
        (
            {"limits": Limits(velocity=(0, 0))},
            "joint 'j': velocity limit has 2 entries, expected 1 for a revolute joint",
        ),
        (
            {"limits": Limits(effort=(0, 0))},
            "joint 'j': effort limit has 2 entries, expected 1 for a revolute joint",
        ),
        (
            {"spring": Spring((1, 1))},
            "joint 'j': spring stiffness has 2 entries, expected 1 for a revolute joint",
        ),
        (
            {"spring": Spring(1, (1, 1))},
            "joint 'j': spring rest has 2 entries, expected 1 for a revolute joint",
        ),
        (
            {"friction": Friction((1, 1))},
            "joint 'j': viscous friction has 2 entries, expected 1 for a revolute joint",
        ),
        (
            {"friction": Friction(coulomb=(1, 1))},
            "joint 'j': Coulomb friction has 2 entries, expected 1 for a revolute joint",
        ),
        ({"armature": (1, 1)}, "joint 'j': armature has 2 entries, expected 1 for a revolute joint"),
        ({"armature": -1}, "joint 'j': armature is -1.0, expected zero or more"),
        ({"rotors": [Rotor(1, 1, dof=1)]}, "joint 'j': rotor on dof 1, but a revolute joint has 1"),
        ({"placement": (0, 0)}, "translation has 2 entries, expected 3"),
    ],
)
def test_attachments_fit_the_joint(options, message):
    assert refusal(ModelBuilder().body, "b", BALL, joint=Revolute(), joint_name="j", **options) == message


def test_spring_rest_is_a_configuration():
    assert refusal(
        ModelBuilder().body, "b", BALL, joint=Spherical(), spring=Spring((1, 1, 1), (1, 1, 0, 0))
    ) == (
        "joint 'b_joint': spring rest: the quaternion (w, x, y, z) has length 1.41421356, expected 1; "
        "divide by its length"
    )


def test_other_parts():
    builder = ModelBuilder()
    assert refusal(builder.loop, "l", "ball", "a", "b") == (
        "loop 'l': type is 'ball', expected a joint type such as Revolute(), or a pair such as Distance(1.0)"
    )
    assert refusal(builder.coupling, "c", "j", ["k"], [1, 2]) == "coupling ratios has 2 entries, expected 1"
    assert refusal(builder.coupling, "c", "j", ["k"], [1], "x").startswith("coupling offset is 'x'")
    assert refusal(builder.sensor, "s", "taste", "b") == (
        "sensor 's' is of kind 'taste', expected one of joint_position, joint_rate, point, frame, "
        "gyro, accelerometer"
    )
    assert refusal(ModelBuilder, gravity=(0, 0)) == "gravity has 2 entries, expected 3"
    assert refusal(Actuator, "m", "j", gear=float("nan")) == (
        "actuator 'm': gear is nan, expected a finite number"
    )
    assert refusal(Actuator, "m", "j", dof="first") == "actuator 'm': dof is 'first', expected an index"
    assert refusal(Actuator, "m", "j", limits=3) == "actuator 'm': limits are 3, expected two numbers"
    for limits in ((1, -1), (float("nan"), 1)):
        low, high = (float(x) for x in limits)
        assert refusal(Actuator, "m", "j", limits=limits) == (
            f"actuator 'm': limits are {low} .. {high}, expected lower, upper"
        )


def test_shapes():
    assert Box([1, 2, 3]) == Box((1.0, 2.0, 3.0))
    assert refusal(Box, (1, 2)) == "box size has 2 entries, expected 3"
    assert refusal(Sphere, -1) == "sphere radius is -1.0, expected a number, zero or more"
    assert refusal(Cylinder, 1, Expression("l")) == "cylinder length is l, expected a number, zero or more"
    assert refusal(Capsule, float("nan"), 1) == "capsule radius[0] is nan, expected a finite number"
    assert refusal(Mesh, "a.stl", (1, 1)) == "mesh scale has 2 entries, expected 3"
    assert refusal(Visual, Sphere(1), color=(1, 0, 0)) == "color has 3 entries, expected 4"


# --- parameters ---------------------------------------------------------------------------------------------


def test_parameters_go_anywhere():
    builder = ModelBuilder("p", gravity=(0, 0, Expression("-g")))
    builder.parameter("g", 9.81)
    m, l, k, a = (builder.parameter(name, 0.5) for name in ("m", "l", "k", "a"))
    builder.body(
        "b",
        Inertia.rod(m, (0, 0, 0), (l, 0, 0)),
        joint=Revolute((Expression("cos(a)"), Expression("sin(a)"), 0)),
        placement=Placement.from_rpy((a, 0, 0), (l, 0, 0)),
        spring=Spring(k),
        friction=Friction(k * 2),
        armature=k,
        rotors=[Rotor(10, k / 100)],
    )
    model = builder.frame("tip", "b", (l, 0, 0)).actuator("motor", "b_joint", gear=k).build()
    assert model.parameter_values == {"g": 9.81, "m": 0.5, "l": 0.5, "k": 0.5, "a": 0.5}
    assert model.mass == 0.5
    assert model.value(model.gravity[2]) == -9.81
    assert model.replace(parameters={"m": 2}).mass == 2.0


def test_parameter_names():
    builder = ModelBuilder()
    assert refusal(builder.parameter, "2m", 1.0) == (
        "parameter name '2m' is not an identifier (letters, digits and _)"
    )
    for name in ("sin", "pi", "lambda", "True"):
        assert refusal(builder.parameter, name, 1.0) == (
            f"parameter name {name!r} has a meaning of its own in a formula; choose another"
        )
    builder.parameter("m", 1.0)
    assert refusal(builder.parameter, "m", 2.0) == "parameter 'm' is defined twice"
    assert refusal(builder.parameter, "n", Expression("m")) == (
        "parameter 'n' has the default m, expected a number"
    )
    assert refusal(builder.parameter, "n", float("nan")) == "parameter 'n' is nan, expected a finite number"
    assert builder.build().parameters == (("m", 1.0),)


@pytest.mark.parametrize(
    ("add", "what"),
    [
        (lambda b, x: b.body("c", Inertia.point(x), joint=Free()), "body 'c'"),
        (lambda b, x: b.body("c", BALL, joint=Free(), joint_name="j", placement=(x, 0, 0)), "joint 'j'"),
        (lambda b, x: b.body("c", BALL, joint=Revolute((x, 0, 0)), joint_name="j"), "joint 'j'"),
        (lambda b, x: b.frame("f", "upper", (x, 0, 0)), "frame 'f'"),
        (lambda b, x: b.loop("l", Revolute((x, 0, 0)), "lower", WORLD), "loop 'l'"),
        (lambda b, x: b.coupling("c", "elbow", ["shoulder"], [x]), "coupling 'c'"),
        (lambda b, x: b.actuator("m", "elbow", gear=x), "actuator 'm'"),
    ],
)
def test_parameters_are_defined(add, what):
    builder = arm()
    builder.parameter("mass", 1.0)
    add(builder, Expression("mas"))
    assert refusal(builder.build) == f"{what} uses the parameter 'mas'; did you mean 'mass'?"


def test_gravity_uses_defined_parameters():
    builder = ModelBuilder(gravity=(0, 0, Expression("g")))
    assert refusal(builder.build) == "gravity uses the parameter 'g'; there is none"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: {"joint": Revolute((x, 0, 1))}, "revolute axis is (-1.0, 0.0, 1.0) of length 1.41421"),
        (
            lambda x: {"joint": Revolute(), "armature": x},
            "joint 'j': armature is -1.0, expected zero or more",
        ),
        (lambda x: {"joint": Revolute(), "friction": Friction(x)}, "viscous friction is -1.0, expected zero"),
        (lambda x: {"joint": Revolute(), "rotors": [Rotor(1, x)]}, "rotor inertia is -1.0, expected zero"),
        (
            lambda x: {"joint": Revolute(), "placement": Placement(quaternion=(x, 1, 0, 0))},
            "quaternion (w, x, y, z) (-1.0, 1.0, 0.0, 0.0) has length 1.41421, expected 1",
        ),
        (
            lambda x: {"joint": Revolute(), "spring": Spring(1 / (x + 1))},
            "expression '1.0 / (x + 1.0)' has no value",
        ),
    ],
)
def test_parts_are_valid_at_the_default_parameters(make, message):
    builder = ModelBuilder()
    x = builder.parameter("x", -1.0)
    builder.body("b", BALL, joint_name="j", **make(x))
    assert refusal(builder.build).startswith(f"joint 'j' with the default parameters: {message}")


def test_inertias_are_physical_at_the_default_parameters():
    builder = ModelBuilder()
    builder.body("b", Inertia.sphere(builder.parameter("m", -1.0), 0.1), joint=Free())
    assert refusal(builder.build) == "body 'b': mass is -1, expected a positive number"


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda b: b.body("c", 2.0),
         "body 'c': inertia is 2.0, expected an Inertia, such as Inertia.box(mass, size), or a flexible body"),
        (lambda b: b.body("c", flexible=2.0), "body 'c': flexible is 2.0, expected a flexible body"),
        (lambda b: b.frame("f", "a", None), "translation is None, expected 3 numbers"),
        (lambda b: b.coupling("c", "a", None, [1.0]), "coupling 'c': masters is None, expected names of joints"),
        (lambda b: b.coupling("c", "a", [3], [1.0]), "coupling 'c': masters is [3], expected names of joints"),
    ],
)  # fmt: skip
def test_wrong_types_are_told(add, message):
    with pytest.raises(ModelError) as caught:
        add(ModelBuilder("m"))
    assert str(caught.value) == message


def test_a_coupling_of_one_joint():
    """One name and one ratio need no lists; a name is not taken for a list of letters."""
    models = []
    for masters, ratios in (("axle", -2.0), (["axle"], [-2.0])):
        builder = ModelBuilder("gears")
        for name in ("axle", "driven"):
            builder.body(name, Inertia.sphere(1.0, 0.1), joint=Revolute(), joint_name=name)
        models.append(builder.coupling("mesh", "driven", masters, ratios).build())
    assert models[0] == models[1]


def test_shapes_are_no_visuals():
    with pytest.raises(
        ModelError, match=r"body 'load': visuals\[0\] is Box.* expected a Visual.*al.Visual\(al.Box"
    ):
        ModelBuilder("m").body("load", Inertia.point(1.0), visuals=[Box((0.1, 0.1, 0.1))])

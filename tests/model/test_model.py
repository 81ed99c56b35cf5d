"""The finished model: topology, layout, identity, printing, changed copies."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import alembert as al
from alembert import library
from alembert.errors import ArgumentError, FileError, ModelError
from alembert.expression import Expression
from alembert.joints import Fixed, Free, Limits, Prismatic, Revolute, Spherical
from alembert.model import WORLD, Box, Coupling, Frame, Inertia, ModelBuilder, Placement, Sphere, Visual

BALL = Inertia.sphere(1.0, 0.1)


def branched():
    r"""world - base - trunk - left - left_tip
                  \- right
    \- other
    """
    builder = ModelBuilder("branched")
    builder.body("base", BALL, joint=Free(), joint_name="float")
    builder.body("trunk", BALL, joint=Spherical(), parent="base", joint_name="waist", placement=(0, 0, 1))
    builder.body("left", BALL, joint=Revolute(), parent="trunk", placement=(0, 1, 0))
    builder.body("left_tip", BALL, joint=Fixed(), parent="left", placement=(0, 1, 0))
    builder.body(
        "right", BALL, joint=Prismatic(), parent="trunk", placement=(0, -1, 0), limits=Limits(-1, 2, 3, 4)
    )
    builder.body("other", BALL, joint=Revolute(), limits=Limits(lower=-0.5))
    builder.frame("hand", "left_tip", (0, 0.1, 0)).frame("anchor", WORLD, (5, 0, 0))
    builder.loop("grip", Revolute(), "hand", "right").loop("rope", Spherical(), "other", "anchor")
    builder.coupling("gear", "right_joint", ["left_joint"], [2.0], 0.1)
    builder.actuator("motor", "left_joint").actuator("turn", "waist", dof=2)
    builder.sensor("imu", "gyro", "hand").sensor("encoder", "joint_position", "right_joint")
    return builder.build()


def refusal(error, function, *arguments, **options):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    return str(caught.value)


# --- topology -----------------------------------------------------------------------------------------------


def test_topology():
    model = branched()
    assert [body.name for body in model.bodies] == ["base", "trunk", "left", "left_tip", "right", "other"]
    assert model.parents == (-1, 0, 1, 2, 1, -1)
    assert model.parent("left") == "trunk"
    assert model.parent("base") == WORLD
    assert model.children("trunk") == ("left", "right")
    assert model.children(WORLD) == ("base", "other")
    assert model.children("right") == ()
    assert model.subtree("trunk") == ("trunk", "left", "left_tip", "right")
    assert model.subtree("other") == ("other",)
    assert model.subtree(WORLD) == tuple(body.name for body in model.bodies)
    assert model.path("left_tip", "right") == ("left_tip", "left", "trunk", "right")
    assert model.path("trunk", "left_tip") == ("trunk", "left", "left_tip")
    assert model.path("left", "base") == ("left", "trunk", "base")
    assert model.path("base", "other") == ("base", WORLD, "other")
    assert model.path("left", "left") == ("left",)
    assert model.depth("left_tip") == 4
    assert model.depth(WORLD) == 0
    assert model.branches == (("base", "trunk"), ("left", "left_tip"), ("right",), ("other",))


@pytest.mark.parametrize("seed", range(5))
def test_topology_of_random_trees(seed):
    model = library.random_tree(seed, bodies=15)
    assert sorted(name for run in model.branches for name in run) == sorted(b.name for b in model.bodies)
    for i, body in enumerate(model.bodies):
        assert model.parents[i] < i
        subtree = model.subtree(body.name)
        first = model.body_index(body.name)  # a subtree is a run of indices
        assert [model.body_index(name) for name in subtree] == list(range(first, first + len(subtree)))
        assert all(body.name in model.path(WORLD, name) for name in subtree)
        assert model.depth(body.name) == len(model.path(WORLD, body.name)) - 1
        assert all(model.parent(child) == body.name for child in model.children(body.name))


def test_layout_of_coordinates():
    model = branched()
    assert (model.nq, model.nv) == (7 + 4 + 3, 6 + 3 + 3)
    assert model.q_slice("waist") == slice(7, 11)
    assert model.v_slice("waist") == slice(6, 9)
    assert model.q_slice("left_tip_joint") == slice(12, 12)
    assert model.coordinate_names[7:12] == ("waist.qw", "waist.qx", "waist.qy", "waist.qz", "left_joint")
    assert model.speed_names[6:10] == ("waist.wx", "waist.wy", "waist.wz", "left_joint")
    assert len(model.coordinate_names) == model.nq
    parts = model.split(np.arange(model.nv))
    assert parts["right_joint"].tolist() == [10]
    assert "left_tip_joint" not in parts
    assert model.split(np.zeros((5, model.nq)))["float"].shape == (5, 7)


def test_limits_and_configurations():
    model = branched()
    np.testing.assert_array_equal(model.lower_limits[-2:], [-1, -0.5])
    np.testing.assert_array_equal(model.upper_limits[-2:], [2, np.inf])
    np.testing.assert_array_equal(model.velocity_limits[-2:], [3, np.inf])
    np.testing.assert_array_equal(model.effort_limits[-2:], [4, np.inf])
    assert model.lower_limits.shape == (model.nq,)
    assert model.effort_limits.shape == (model.nv,)
    with pytest.raises(ValueError, match="read-only"):
        model.lower_limits[0] = 0
    np.testing.assert_array_equal(model.neutral(), [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    q = model.random_configuration(3)
    np.testing.assert_array_equal(q, model.random_configuration(np.random.default_rng(3)))
    assert np.all((model.lower_limits <= q) & (q <= model.upper_limits))
    assert np.linalg.norm(q[7:11]) == pytest.approx(1)
    assert model.mass == 6.0
    empty = ModelBuilder().build()
    assert (empty.nq, empty.neutral().shape, empty.random_configuration().shape) == (0, (0,), (0,))
    assert empty.lower_limits.shape == (0,)


def test_questions_about_what_is_not_there():
    model = branched()
    assert refusal(ArgumentError, model.body, "trunc") == (
        "model 'branched' has no body 'trunc'; did you mean 'trunk'?"
    )
    assert refusal(ArgumentError, model.joint, "trunk").startswith(
        "model 'branched' has no joint 'trunk'; there is"
    )
    assert refusal(ArgumentError, model.frame, "hnd").endswith("has no frame 'hnd'; did you mean 'hand'?")
    for ask in (model.parent, model.children, model.subtree, model.depth, model.body_index, model.extract):
        assert refusal(ArgumentError, ask, "nobody").startswith("model 'branched' has no body 'nobody'")
    assert "has no body 'nobody'" in refusal(ArgumentError, model.path, "base", "nobody")
    assert "has no joint 'x'" in refusal(ArgumentError, model.q_slice, "x")
    assert refusal(ArgumentError, model.split, np.zeros(3)) == (
        "split: vector has shape (3,), expected (..., 14) or (..., 12)"
    )
    assert refusal(ArgumentError, model.split, 1.0).startswith("split: vector has shape ()")


def test_unknown_attributes_are_python_s_own_errors():
    """With the name and the object, from which Python suggests the nearest attribute."""
    model = branched()
    for name in ("forward_dynamic", "_forward"):
        with pytest.raises(AttributeError) as error:
            getattr(model, name)
        assert error.value.name == name
        assert error.value.obj is model


def test_frames_include_bodies_and_the_world():
    model = branched()
    assert model.frame("hand") == Frame("hand", "left_tip", Placement((0, 0.1, 0)))
    assert model.frame("base") == Frame("base", "base")
    assert model.frame(WORLD) == Frame(WORLD, WORLD)


# --- printing -----------------------------------------------------------------------------------------------


def test_print():
    builder = ModelBuilder("gantry")
    builder.parameter("load", 2.5)
    builder.body("cart", Inertia.point(1.0), joint=Prismatic(), joint_name="rail", limits=Limits(-2, 2))
    builder.body("arm", BALL, joint=Revolute(), parent="cart", limits=Limits(lower=-1.5))
    builder.body("hook", Inertia.point(Expression("load")), joint=Fixed(), parent="arm")
    builder.body("lamp", Inertia.point(0.1), joint=Fixed(), parent="cart")
    builder.body("wall", BALL, joint=Fixed()).frame("tip", "hook").actuator("motor", "rail")
    assert str(builder.build()) == "\n".join(
        [
            "gantry: 5 bodies, 2 degrees of freedom, 2 coordinates, 5.6 kg",
            "",
            "body           joint                 dof  mass [kg]  limits",
            "world",
            "├─ cart        rail (prismatic)      1    1          -2 .. 2",
            "│  ├─ arm      arm_joint (revolute)  1    1          -1.5 .. inf",
            "│  │  └─ hook  hook_joint (fixed)    0    2.5",
            "│  └─ lamp     lamp_joint (fixed)    0    0.1",
            "└─ wall        wall_joint (fixed)    0    1",
            "",
            "frames (1): tip",
            "actuators (1): motor",
            "parameters: load = 2.5",
        ]
    )


def test_print_other_parts():
    text = str(branched())
    assert "loops (2): grip, rope" in text
    assert "couplings (1): gear" in text
    assert "sensors (2): imu, encoder" in text
    assert "actuators (31): waist_z_motor, " in str(library.humanoid())
    assert repr(branched()) == "<Model 'branched': 6 bodies, 12 degrees of freedom>"
    assert str(ModelBuilder("empty").build()).startswith("empty: 0 bodies")


# --- identity -----------------------------------------------------------------------------------------------


def test_equal_content_is_an_equal_model():
    a, b = branched(), branched()
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b}) == 1
    assert a != a.replace(name="other")
    assert a != "branched"
    assert a != a.replace_body("left", inertia=Inertia.sphere(np.nextafter(1.0, 2.0), 0.1))


def test_pickles():
    model = library.random_tree(1, bodies=14, attachments=True, parameters=True)
    _ = model.parents, model.fingerprint  # cached values stay behind
    copy = pickle.loads(pickle.dumps(model))
    assert copy == model
    assert copy.joints == model.joints
    assert "parents" not in vars(copy)


def test_is_immutable():
    with pytest.raises(AttributeError):
        branched().name = "other"


@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_fingerprint_is_the_same_in_every_process(hash_seed):
    code = (
        "from alembert import library; "
        "print(library.random_tree(5, bodies=14, attachments=True, parameters=True).fingerprint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=True,
    )
    here = library.random_tree(5, bodies=14, attachments=True, parameters=True)
    assert done.stdout.strip() == here.fingerprint


# --- changed copies -----------------------------------------------------------------------------------------


def test_replace():
    model = branched()
    moon = model.replace(gravity=[0, 0, -1.62], name="moon")
    assert (moon.gravity, moon.name, model.name) == ((0.0, 0.0, -1.62), "moon", "branched")
    assert moon.replace(gravity=model.gravity, name="branched") == model
    assert refusal(ArgumentError, model.replace, gravty=1) == (
        "replace: no field 'gravty'; did you mean 'gravity'?"
    )
    assert refusal(ModelError, model.replace, gravity=(0, 0, float("nan"))) == (
        "gravity[2] is nan, expected a finite number"
    )
    tree = library.random_tree(0, parameters=True)
    assert refusal(ArgumentError, tree.replace, parameters={"h": 1.0}).startswith(
        "replace: no parameter 'h'; "
    )
    assert refusal(ModelError, tree.replace, parameters={"g": float("inf")}) == (
        "parameter 'g' is inf, expected a finite number"
    )
    assert tree.replace(parameters={"g": 1.6}).parameter_values == tree.parameter_values | {"g": 1.6}


def test_replace_is_checked_anew():
    model = branched()
    twice = (*model.couplings, Coupling("gear", "left_joint", ("right_joint",), (1.0,)))
    assert refusal(ModelError, model.replace, couplings=twice).startswith("two couplings are called 'gear'")
    assert refusal(ModelError, model.replace, bodies=model.bodies[:-1]) == (
        "joint 'other_joint' refers to the body 'other'; there is world, base, trunk, left, left_tip, right"
    )


def test_replace_body_and_joint():
    model = branched()
    heavy = model.replace_body("left", inertia=Inertia.sphere(5.0, 0.1))
    assert (heavy.mass, model.mass) == (10.0, 6.0)
    locked = model.replace(couplings=(), actuators=(), sensors=()).replace_joint("left_joint", type=Fixed())
    assert locked.nv == model.nv - 1
    assert "mass is -1" in refusal(ModelError, model.replace_body, "left", inertia=Inertia(-1.0))
    assert "has no joint 'x'" in refusal(ArgumentError, model.replace_joint, "x", type=Fixed())


def test_a_joint_may_be_moved_to_another_parent():
    model = branched().replace_joint("left_joint", parent="other")
    assert [body.name for body in model.bodies] == ["base", "trunk", "right", "other", "left", "left_tip"]
    assert model.parents == (-1, 0, 1, -1, 3, 4)
    assert refusal(ModelError, branched().replace_joint, "waist", parent="left_tip").startswith(
        "bodies form a cycle that does not hang from the world: "
    )


def test_extract():
    model = branched()
    part = model.extract("trunk", name="upper body")
    assert part.name == "upper body"
    assert [body.name for body in part.bodies] == ["trunk", "left", "left_tip", "right"]
    assert part.joint("waist").parent == WORLD
    assert part.joint("waist").placement == Placement()
    assert part.joint("left_joint") == model.joint("left_joint")
    assert [frame.name for frame in part.frames] == ["hand"]
    assert [loop.name for loop in part.loops] == ["grip"]
    assert [c.name for c in part.couplings] == ["gear"]
    assert [a.name for a in part.actuators] == ["motor", "turn"]
    assert [s.name for s in part.sensors] == ["imu", "encoder"]
    leaf = model.extract("right")
    assert leaf.name == "right"
    assert leaf.loops == leaf.couplings == leaf.actuators == ()
    assert [s.name for s in leaf.sensors] == ["encoder"]


def test_attach_twice_with_prefixes():
    base = ModelBuilder("base").body("plate", BALL, joint=Free()).frame("mount", "plate", (0, 0, 1)).build()
    arm = library.arm7()
    turned = Placement.from_rpy((0, 0, np.pi), (0.5, 0, 0))
    both = base.attach(arm, to="mount", prefix="left_").attach(
        arm, to="mount", placement=turned, prefix="right_"
    )
    assert both.name == "base"
    assert both.nv == 6 + 14
    assert both.mass == pytest.approx(1 + 2 * arm.mass)
    assert both.joint("left_joint1").parent == both.joint("right_joint1").parent == "plate"
    expected = Placement((0, 0, 1)) @ turned @ arm.joint("joint1").placement
    assert both.joint("right_joint1").placement == expected
    assert both.joint("left_joint2") == type(both.joint("left_joint2"))(
        **{**vars(arm.joint("joint2")), "name": "left_joint2", "parent": "left_link1", "child": "left_link2"}
    )
    assert both.frame("left_tool").body == "left_link7"
    assert [a.joint for a in both.actuators] == [
        f"{s}_joint{k}" for s in ("left", "right") for k in range(1, 8)
    ]
    assert refusal(ModelError, base.attach(arm, to="mount").attach, arm, to="mount") == (
        "two bodies are called 'link1'; names must be unique"
    )
    assert "has no frame 'mont'" in refusal(ArgumentError, base.attach, arm, to="mont")


def test_attach_brings_everything_along():
    base = ModelBuilder("base").body("plate", BALL, joint=Free()).frame("mount", "plate", (0, 0, 1)).build()
    both = base.attach(branched(), to="mount", prefix="a_")
    assert both.frame("a_anchor") == Frame("a_anchor", "plate", Placement((5, 0, 1)))
    assert [(x.name, x.frame_a, x.frame_b) for x in both.loops] == [
        ("a_grip", "a_hand", "a_right"),
        ("a_rope", "a_other", "a_anchor"),
    ]
    assert both.couplings[0] == Coupling("a_gear", "a_right_joint", ("a_left_joint",), (2.0,), 0.1)
    assert [s.target for s in both.sensors] == ["a_hand", "a_right_joint"]
    on_the_world = base.attach(branched(), to=WORLD, placement=Placement((9, 0, 0)), prefix="a_")
    assert on_the_world.joint("a_float").placement == Placement((9, 0, 0))


def test_attach_takes_the_other_world_to_where_it_is_mounted():
    builder = ModelBuilder("bar").body("rod", BALL, joint=Revolute())
    bar = builder.loop("close", Spherical(), "rod", WORLD).sensor("ground", "point", WORLD).build()
    base = ModelBuilder("base").body("plate", BALL, joint=Free()).frame("mount", "plate", (0, 0, 1)).build()
    plain = base.attach(bar, to="mount")
    assert (plain.loops[0].frame_b, plain.sensors[0].target) == ("mount", "mount")
    moved = base.attach(bar, to="mount", placement=Placement((1, 0, 0)), prefix="a_")
    assert moved.loops[0].frame_b == moved.sensors[0].target == "a_bar_mount"
    assert moved.frame("a_bar_mount") == Frame("a_bar_mount", "plate", Placement((1, 0, 1)))


def test_attach_shares_parameters_of_the_same_default():
    def rod(mass):
        builder = ModelBuilder("rod")
        return builder.body("rod", Inertia.point(builder.parameter("m", mass)), joint=Free()).build()

    both = rod(1.0).attach(rod(1.0), to="rod", prefix="b_")
    assert both.parameters == (("m", 1.0),)
    assert both.replace(parameters={"m": 3.0}).mass == 6.0
    assert refusal(ModelError, rod(1.0).attach, rod(2.0), to="rod", prefix="b_") == (
        "attach: both models have a parameter 'm', with different defaults"
    )


def test_merge_fixed_keeps_frames_mass_and_inertia():
    model = branched()
    merged = model.merge_fixed()
    assert [body.name for body in merged.bodies] == ["base", "trunk", "left", "right", "other"]
    assert (merged.mass, merged.nv, merged.nq) == (model.mass, model.nv, model.nq)
    assert merged.frame("left_tip") == Frame("left_tip", "left", Placement((0, 1, 0)))
    assert merged.frame("hand") == Frame("hand", "left", Placement((0, 1.1, 0)))
    assert merged.body("left").inertia == BALL + BALL.at(Placement((0, 1, 0)))
    assert merged.body("left").inertia == model.total_inertia_of("left")
    assert [loop.name for loop in merged.loops] == ["grip", "rope"]
    assert merged.merge_fixed() == merged


def test_merge_fixed_says_where_formulas_grow_too_long():
    builder = al.ModelBuilder()
    m = builder.parameter("m", 1.0)
    for _ in range(11):
        m = m + m
    builder.body("hub", al.Inertia.point(m, (0.1, 0.2, 0.3)), joint=al.Revolute())
    builder.body(
        "tank", al.Inertia.point(m, (m, 0.0, 0.0)), joint=al.Fixed(), parent="hub", placement=(1, 1, 0)
    )
    with pytest.raises(
        ModelError, match="merge_fixed: body 'tank' and 'hub', to which it is fixed: expression of"
    ):
        builder.build().merge_fixed()


def test_limits_take_scalars_of_numpy():
    assert al.Limits(lower=np.int64(-1), upper=np.float32(2)) == al.Limits(lower=-1, upper=2)


def test_merge_fixed_through_several_welds():
    turn = Placement.from_rpy((0.3, -0.4, 1.2), (0.1, 0.2, 0.3))
    shape = Visual(Box((1, 1, 1)), Placement((1, 0, 0)))
    rod = Inertia.rod(2.0, (0, 0, 0), (1, 2, 3))
    builder = ModelBuilder()
    builder.body("ground", BALL, joint=Fixed(), placement=turn)
    builder.body("a", rod, joint=Revolute(), parent="ground", placement=turn)
    builder.body("b", rod, joint=Fixed(), parent="a", placement=turn)
    builder.body("c", rod, joint=Fixed(), parent="b", placement=turn, visuals=[shape])
    builder.body("d", rod, joint=Revolute(), parent="c", placement=turn)
    model = builder.build()
    merged = model.merge_fixed()
    assert [body.name for body in merged.bodies] == ["a", "d"]
    assert merged.joint("a_joint").parent == WORLD
    assert merged.joint("a_joint").placement == turn @ turn
    assert merged.joint("d_joint").parent == "a"
    expected = (turn @ turn @ turn).pose()
    np.testing.assert_allclose(
        merged.joint("d_joint").placement.pose().matrix(), expected.matrix(), atol=1e-15
    )
    together = rod + rod.at(turn) + rod.at(turn @ turn)
    merged_inertia = merged.body("a").inertia
    np.testing.assert_allclose(merged_inertia.ten_vector(), together.ten_vector(), atol=1e-13)
    np.testing.assert_allclose(model.total_inertia_of("a").ten_vector(), together.ten_vector(), atol=1e-13)
    assert merged.body("a").visuals == (Visual(Box((1, 1, 1)), (turn @ turn) @ Placement((1, 0, 0))),)
    assert merged.frame("ground") == Frame("ground", WORLD, turn)
    assert merged.mass == model.mass - 1.0  # what is welded to the world moves with nothing


def test_merge_fixed_carries_expressions():
    builder = ModelBuilder()
    l = builder.parameter("l", 0.5)
    builder.body("a", BALL, joint=Revolute())
    builder.body("b", BALL, joint=Fixed(), parent="a", placement=(l, 0, 0))
    inertia = builder.build().merge_fixed().body("a").inertia
    for value in (0.5, 2.0):
        expected = BALL + BALL.at(Placement((value, 0, 0)))
        np.testing.assert_allclose(inertia.matrix({"l": value}), expected.matrix(), atol=1e-15)


# --- shapes of the world ------------------------------------------------------------------------------------


def with_floor():
    builder = ModelBuilder("stand")
    builder.world(visuals=[Visual(Box((2.0, 2.0, 0.1)), Placement((0.0, 0.0, -0.05)))])
    builder.body("post", joint=Fixed(), visuals=[Visual(Sphere(0.1))], placement=(0, 0, 1))
    return builder.body("arm", Inertia.sphere(1.0, 0.1), joint=Revolute(), parent="post").build()


def test_shapes_of_the_world_follow_the_model():
    model = with_floor()
    assert [v.shape for v in model.visuals] == [Box((2.0, 2.0, 0.1))]
    welded = model.merge_fixed()
    assert [(v.shape, v.placement.translation) for v in welded.visuals] == [
        (Box((2.0, 2.0, 0.1)), (0, 0, -0.05)),
        (Sphere(0.1), (0, 0, 1)),
    ]
    assert model.extract("arm").visuals == ()
    on_arm = model.attach(model, to="arm", placement=Placement((1, 0, 0)), prefix="b_")
    assert on_arm.visuals == model.visuals
    assert [v.placement.translation for v in on_arm.body("arm").visuals] == [(1, 0, -0.05)]
    beside = model.attach(model, to="world", placement=Placement((3, 0, 0)), prefix="b_")
    assert [v.placement.translation for v in beside.visuals] == [(0, 0, -0.05), (3, 0, -0.05)]


def test_shapes_of_the_world_in_files():
    from alembert.model.io.native import dumps, loads

    for syntax in ("toml", "yaml"):
        assert loads(dumps(with_floor(), syntax), syntax) == with_floor()
    text = 'format = "alembert-model"\nversion = 1\nvisuals = [{ sphere = { radius = 1 }, placement = ["a", 0, 0] }]\n'
    with pytest.raises(
        FileError, match=r"<text>:3: visuals\[0\].placement.*uses the parameter 'a'; there is none"
    ):
        loads(text)


def test_shapes_of_the_world_have_known_parameters():
    builder = ModelBuilder()
    builder.world(visuals=[Visual(Sphere(0.1), Placement((Expression("a"), 0, 0)))])
    with pytest.raises(ModelError, match=r"^a shape of the world uses the parameter 'a'; there is none$"):
        builder.build()


def test_vectors_by_name():
    model = library.satellite()
    q = model.configuration({"attitude.z": 2.0, "spin_x": 0.5})
    np.testing.assert_array_equal(q, [0, 0, 2, 1, 0, 0, 0, 0.5, 0, 0])
    many = model.configuration({"spin_y": np.arange(4.0), "attitude": [1, 2, 3, 1, 0, 0, 0]})
    assert many.shape == (4, model.nq)
    np.testing.assert_array_equal(many[3], [1, 2, 3, 1, 0, 0, 0, 0, 3, 0])
    np.testing.assert_array_equal(model.velocity({"attitude.wz": 0.1}), [0, 0, 0.1, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(model.configuration({}), model.neutral())
    for x in (q, many):
        np.testing.assert_array_equal(model.configuration(model.split(x)), x)


def test_a_last_dimension_of_one_by_name():
    """It is the joint's own, unless the others have just that batch."""
    model = library.satellite()
    angles = np.arange(4.0)
    column = model.configuration({"spin_x": angles[:, None], "spin_y": angles})
    assert column.shape == (4, model.nq)
    np.testing.assert_array_equal(column[:, 7], column[:, 8])
    attitude = np.broadcast_to([1.0, 2, 3, 1, 0, 0, 0], (4, 1, 7))
    grid = model.configuration({"spin_x": angles[:, None], "attitude": attitude})
    assert grid.shape == (4, 1, model.nq)
    np.testing.assert_array_equal(grid[:, 0, 7], angles)
    np.testing.assert_array_equal(model.configuration(model.split(grid)), grid)
    assert model.configuration({"spin_x": [0.5]}).shape == (model.nq,)


def coupled_model(*couplings, limits=None):
    builder = ModelBuilder("hand")
    parent = "world"
    for k in range(3):
        builder.body(
            f"b{k}",
            Inertia.box(1.0, (0.1, 0.1, 0.1)),
            joint=Revolute((0, 0, 1)),
            joint_name=f"j{k}",
            parent=parent,
            limits=Limits(lower=(-1.0,), upper=(1.0,)) if limits is None else limits[k],
        )
        parent = f"b{k}"
    for k, (joint, masters, ratios, offset) in enumerate(couplings):
        builder.coupling(f"c{k}", joint, masters, ratios, offset=offset)
    return builder.build()


def test_random_configurations_follow_couplings():
    chain = coupled_model(("j1", ("j0",), (2.0,), 0.1), ("j2", ("j1",), (-0.5,), 0.0))
    found = np.array([chain.random_configuration(seed) for seed in range(30)])
    np.testing.assert_allclose(found[:, 1], 0.1 + 2 * found[:, 0], atol=1e-14)
    np.testing.assert_allclose(found[:, 2], -0.5 * found[:, 1], atol=1e-14)
    assert np.abs(found).max() <= 1.0 + 1e-12
    assert np.ptp(found[:, 1]) > 1.0
    round_about = coupled_model(("j1", ("j0",), (1.0,), 0.0), ("j0", ("j1",), (1.0,), 0.0))
    q = round_about.random_configuration(3)
    assert q[0] == pytest.approx(q[1], abs=1e-14)
    narrow = [Limits(lower=(0.5,), upper=(1.0,)), Limits(lower=(0.0,), upper=(0.1,)), Limits()]
    far = coupled_model(("j1", ("j0",), (1.0,), 0.0), limits=narrow)
    q = far.random_configuration(0)
    assert q[0] == q[1]
    free = coupled_model()
    np.testing.assert_array_equal(
        free.random_configuration(5), np.random.default_rng(5).uniform(-1.0, 1.0, 3)
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], r"^configuration: got \[1.0\], expected a mapping from joints to numbers$"),
        ({"spin_w": 1}, "^configuration: no joint or coordinate 'spin_w'; did you mean 'spin_"),
        ({"attitude": [1, 2]}, r"'attitude' is \[1, 2\], expected 7 finite numbers \(attitude.x, attitude.y"),
        ({"spin_x": "half"}, r"'spin_x' is 'half', expected a finite number \(spin_x\)"),
        ({"spin_x": float("nan")}, "'spin_x' is nan, expected a finite number"),
        ({"spin_x": [1, 2], "spin_y": [1, 2, 3]}, r"batch dimensions \(2,\), \(3,\) do not go together"),
    ],
)
def test_vectors_by_name_are_checked(given, message):
    with pytest.raises(ArgumentError, match=message):
        library.satellite().configuration(given)

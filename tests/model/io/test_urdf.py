import numpy as np
import pytest
from reference_kinematics import poses

from alembert import (
    AlembertWarning,
    Coupling,
    Fixed,
    Free,
    Friction,
    Inertia,
    Limits,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
)
from alembert.model.elements import Box, Capsule, Cylinder, Mesh, Sphere
from alembert.model.io import load, save
from alembert.model.io.urdf import load_urdf
from alembert.spatial import so3

INERTIAL = (
    """<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>"""
)
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'


def link(name, inside=INERTIAL):
    return f'<link name="{name}">{inside}</link>\n'


def joint(name, kind, parent, child, inside=LIMIT):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>\n'


def robot(*parts, attributes='name="r"'):
    return f"<robot {attributes}>\n{''.join(parts)}</robot>"


def test_children_come_in_the_order_of_joint_names_depth_first():
    names = ["b", "a", "c", "a1"]
    model = load_urdf(
        robot(
            link("base"),
            *(link(f"L{name}") for name in names),
            joint("b", "revolute", "base", "Lb"),
            joint("c", "revolute", "base", "Lc"),
            joint("a1", "revolute", "Lb", "La1"),
            joint("a", "revolute", "base", "La"),
        )
    )
    assert [j.name for j in model.joints] == ["root_joint", "a", "b", "a1", "c"]
    assert model.name == "r"


def test_the_root_link_is_fixed_or_floats():
    text = robot(link("base"))
    assert load_urdf(text).joint("root_joint").type == Fixed()
    assert load_urdf(text, floating=True).joint("root_joint").type == Free()


def test_a_file_may_use_the_name_root_joint():
    model = load_urdf(robot(link("a"), link("b"), joint("root_joint", "revolute", "a", "b")))
    assert [j.name for j in model.joints] == ["root_joint_", "root_joint"]


def test_a_root_called_world_is_the_world():
    model = load_urdf(robot(link("world", ""), link("a"), joint("j", "continuous", "world", "a", "")))
    assert [body.name for body in model.bodies] == ["a"]
    assert model.joint("j").parent == "world"


def test_visuals_of_the_world_stay_and_its_mass_is_passed_over_with_a_warning():
    visual = '<visual><geometry><sphere radius="1"/></geometry></visual>'
    text = robot(link("world", INERTIAL + visual), link("a"), joint("j", "continuous", "world", "a", ""))
    with pytest.warns(AlembertWarning, match="mass of the link 'world'") as caught:
        model = load_urdf(text)
    assert model.mass == 2
    assert [visual.shape for visual in model.visuals] == [Sphere(1)]
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("kind", "inside", "type", "limits"),
    [
        (
            "revolute",
            '<axis xyz="0 1 0"/>' + LIMIT,
            Revolute((0.0, 1.0, 0.0)),
            Limits((-1,), (2,), (4,), (3,)),
        ),
        (
            "revolute",
            '<limit effort="3" velocity="inf"/>',
            Revolute((1.0, 0.0, 0.0)),
            Limits(0, 0, np.inf, 3),
        ),
        ("continuous", LIMIT, Revolute((1.0, 0.0, 0.0)), Limits((), (), (4,), (3,))),
        (
            "prismatic",
            LIMIT + '<axis xyz="0 0 -1"/>',
            Prismatic((0.0, 0.0, -1.0)),
            Limits((-1,), (2,), (4,), (3,)),
        ),
        ("fixed", LIMIT + '<axis xyz="0 0 0"/>', Fixed(), Limits()),
        ("floating", "", Free(), Limits()),
        ("planar", '<axis xyz="0 0 1"/>', Planar(), Limits()),
    ],
)
def test_joint_types(kind, inside, type, limits):
    model = load_urdf(robot(link("a"), link("b"), joint("j", kind, "a", "b", inside)))
    assert model.joint("j").type == type
    assert model.joint("j").limits == limits
    assert len(model.bodies) == 2


@pytest.mark.parametrize("axis", ["0 0 -1", "1 0 0", "0 -1 0", "0.6 0 0.8", "-0.48 0.6 0.64", ""])
def test_planar_joints_move_in_the_plane_normal_to_their_axis(axis):
    origin = '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'
    element = f'<axis xyz="{axis}"/>' if axis else ""
    model = load_urdf(robot(link("a"), link("b"), joint("j", "planar", "a", "b", origin + element)))
    X0 = poses(model, model.neutral())["b"]
    fixed = load_urdf(robot(link("a"), link("b"), joint("j", "fixed", "a", "b", origin)))
    expected = poses(fixed, np.zeros(0))["b"]
    np.testing.assert_allclose(X0.rotation, expected.rotation, atol=1e-15)
    np.testing.assert_allclose(X0.translation, expected.translation, atol=1e-15)
    normal = np.array([float(x) for x in (axis or "1 0 0").split()])
    X = poses(model, np.array([0.7, -0.4, 0.5]))["b"]
    moved = expected.inverse() @ X
    assert abs(normal @ moved.translation) < 1e-15
    np.testing.assert_allclose(np.linalg.norm(moved.translation), np.hypot(0.7, 0.4), rtol=1e-14)
    np.testing.assert_allclose(so3.log(moved.rotation), 0.5 * normal, atol=1e-15)
    assert model.mass == 4
    assert model.joint("j").type == Planar()


def test_mimic_becomes_a_coupling():
    mimic = LIMIT + '<mimic joint="j" multiplier="-2" offset="0.5"/>'
    plain = LIMIT + '<mimic joint="j"/>'
    model = load_urdf(
        robot(
            *(link(name) for name in "abcd"),
            joint("j", "revolute", "a", "b"),
            joint("k", "prismatic", "b", "c", mimic),
            joint("l", "revolute", "c", "d", plain),
        )
    )
    assert model.couplings == (
        Coupling("k", "k", ("j",), (-2.0,), 0.5),
        Coupling("l", "l", ("j",), (1.0,), 0.0),
    )


def test_dynamics_become_friction():
    def friction(dynamics):
        model = load_urdf(robot(link("a"), link("b"), joint("j", "revolute", "a", "b", LIMIT + dynamics)))
        return model.joint("j").friction

    assert friction('<dynamics damping="0.1" friction="0.2"/>') == Friction((0.1,), (0.2,))
    assert friction('<dynamics damping="0.1"/>') == Friction((0.1,), (0.0,))
    assert friction('<dynamics damping="0" friction="0"/>') is None


def test_inertia_is_turned_to_link_axes():
    inertial = """<inertial><origin xyz="1 2 3" rpy="0.3 -0.2 0.9"/><mass value="3"/>
        <inertia ixx="1" ixy="0.1" ixz="0.2" iyy="2" iyz="0.3" izz="2.5"/></inertial>"""
    inertia = load_urdf(robot(link("a", inertial))).body("a").inertia
    roll, pitch, yaw = (so3.exp(w) for w in np.diag([0.3, -0.2, 0.9]))
    R = yaw @ pitch @ roll
    I = np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    assert inertia.mass == 3
    assert inertia.com == (1, 2, 3)
    np.testing.assert_allclose(inertia.matrix(), R @ I @ R.T, atol=1e-15)


def test_an_origin_may_be_given_by_a_quaternion():
    def b(rotation):
        origin = f'<origin xyz="1 2 3" {rotation}/>'
        model = load_urdf(robot(link("a"), link("b"), joint("j", "fixed", "a", "b", origin)))
        return model.joint("j").placement

    assert b('quat_xyzw="0 0 0.6 0.8"').quaternion == (0.8, 0.0, 0.0, 0.6)
    np.testing.assert_allclose(
        b(f'rpy="0 0 {2 * np.arctan2(0.6, 0.8)}"').quaternion,
        b('quat_xyzw="0 0 0.6 0.8"').quaternion,
        atol=1e-16,
    )


def test_visuals_and_colours():
    visual = """<visual><origin xyz="0 0 1"/><geometry><{}/></geometry>{}</visual>"""
    text = robot(
        '<material name="red"><color rgba="1 0 0 1"/></material>',
        link(
            "a",
            visual.format('box size="1 2 3"', '<material name="red"/>')
            + visual.format(
                'cylinder radius="1" length="2"', '<material name="blue"><color rgba="0 0 1 1"/></material>'
            )
            + visual.format('capsule radius="1" length="2"', '<material name="blue"/>')
            + visual.format('sphere radius="1"', ""),
        ),
    )
    visuals = load_urdf(text).body("a").visuals
    assert [v.shape for v in visuals] == [Box((1, 2, 3)), Cylinder(1, 2), Capsule(1, 2), Sphere(1)]
    assert [v.color for v in visuals] == [(1, 0, 0, 1), (0, 0, 1, 1), (0, 0, 1, 1), None]
    assert visuals[0].placement.translation == (0, 0, 1)


# --- meshes ---------------------------------------------------------------------------------------

MESH = '<visual><geometry><mesh filename="{}" scale="1 1 2"/></geometry></visual>'


@pytest.mark.parametrize("scheme", ["package", "model"])
def test_packages_are_found_in_package_dirs_and_above_the_file(tmp_path, scheme):
    mesh = tmp_path / "ws" / "arm" / "meshes" / "a.stl"
    mesh.parent.mkdir(parents=True)
    mesh.touch()
    text = robot(link("a", MESH.format(f"{scheme}://arm/meshes/a.stl")))
    inside, outside = tmp_path / "ws" / "arm" / "urdf" / "a.urdf", tmp_path / "a.urdf"
    inside.parent.mkdir()
    for file in (inside, outside):
        file.write_text(text)
    for model in (
        load_urdf(inside),
        load_urdf(str(outside), package_dirs=[tmp_path / "ws"]),
        load_urdf(text, package_dirs=[str(tmp_path / "ws")]),
        load_urdf(text, package_dirs=[tmp_path / "ws" / "arm"]),
    ):
        assert model.body("a").visuals[0].shape == Mesh(str(mesh), (1, 1, 2))


def test_meshes_relative_to_the_file_and_by_absolute_name(tmp_path):
    (tmp_path / "a.stl").touch()
    (tmp_path / "a.urdf").write_text(
        robot(link("a", MESH.format("a.stl") + MESH.format(f"file://{tmp_path / 'a.stl'}")))
    )
    shapes = [visual.shape for visual in load_urdf(tmp_path / "a.urdf").body("a").visuals]
    assert shapes == [Mesh(str(tmp_path / "a.stl"), (1, 1, 2))] * 2


def test_missing_meshes_are_warned_about_once():
    names = ["package://nowhere/a.stl", "http://example.com/a.stl", "none.stl"]
    text = robot(link("a", "".join(MESH.format(name) for name in [*names, names[0]])))
    with pytest.warns(AlembertWarning, match="mesh files not found") as caught:
        model = load_urdf(text)
    assert len(caught) == 1
    assert all(name in str(caught[0].message) for name in names)
    assert "(2 times, first line 2)" in str(caught[0].message)
    assert [visual.shape.path for visual in model.body("a").visuals] == [*names, names[0]]


# --- warnings -------------------------------------------------------------------------------------


def test_what_is_passed_over_is_warned_about_once():
    text = robot(
        "<gazebo/><gazebo/>stray<transmission><x/></transmission>",
        link("a", INERTIAL + "<contact/>" + '<visual><geometry><sphere radius="1"/></geometry>'
             '<material name="none"/></visual>'),
        link("b"),
        link("c"),
        joint("j", "fixed", "a", "b", '<mimic joint="k"/><dynamics K="3"/>'),
        joint("k", "floating", "b", "c", LIMIT + "<calibration/><safety_controller/>"),
    )  # fmt: skip
    with pytest.warns(AlembertWarning) as caught:
        load_urdf(text)
    (message,) = [str(warning.message) for warning in caught]
    assert message == (
        "<text>: not read by Alembert: text in <robot> (line 2); "
        "<gazebo> in <robot> (2 times, first line 2); <transmission> in <robot> (line 2); "
        "<contact> in <link> (line 2); attribute 'K' of <dynamics> (line 5); "
        "material 'none', which has no colour (line 2); <mimic> of a fixed joint (line 5); "
        "<limit> of a floating joint (line 6)"
    )


def test_a_long_list_of_passed_over_things_is_cut():
    with pytest.warns(AlembertWarning, match=r"<g11> in <robot> \(line 2\); and 3 more$"):
        load_urdf(robot(*(f"<g{k}/>" for k in range(15)), link("a")))


def test_extensions_that_change_the_physics_are_left_out_on_request(tmp_path):
    path = tmp_path / "a.urdf"
    path.write_text(
        robot(
            '<gazebo reference="b"><springStiffness>3</springStiffness><mu1>1</mu1></gazebo>\n',
            link("a"),
            link("b"),
            joint("j", "revolute", "a", "b", LIMIT + '<dynamics damping="2" armature="0.1" K="3"/>'),
        )
    )
    with pytest.warns(AlembertWarning) as caught:
        model = load(path, strict=True, extensions="skip")
    assert [str(warning.message) for warning in caught] == [
        f"{path}: not supported and left out; it changes the physics (strict=True refuses it): "
        "<springStiffness> in <gazebo> (line 2); attribute 'armature' of <dynamics> (line 5)\n"
        "  not read by Alembert: <gazebo> in <robot> (line 2); attribute 'K' of <dynamics> (line 5)"
    ]
    assert model.joint("j").friction == Friction((2.0,), (0.0,))


def test_extensions_that_are_zero_are_only_not_read():
    text = robot(
        "<transmission><actuator><mechanicalReduction>50</mechanicalReduction>"
        '<drake:rotor_inertia value="0.0"/></actuator></transmission>'
        '<gazebo><turnGravityOff value="false"/></gazebo><mujoco><option viscosity="0" wind="0 0 0"/></mujoco>',
        link("a"),
        link("b"),
        joint("j", "revolute", "a", "b", LIMIT + '<dynamics armature="0"/>'),
    )
    with pytest.warns(AlembertWarning, match="^<text>: not read by Alembert: [^;]*transmission") as caught:
        load_urdf(text)
    assert len(caught) == 1


# --- unphysical inertia ---------------------------------------------------------------------------


def test_unphysical_inertia_is_kept_with_a_warning():
    inertial = INERTIAL.replace('izz="1"', 'izz="5"')
    text = robot(link("a", inertial), link("b", inertial), joint("j", "revolute", "a", "b"))
    with pytest.warns(
        AlembertWarning, match=r"unphysical inertia kept \(strict=True refuses it\): body 'a': .*triangle"
    ) as caught:
        model = load_urdf(text)
    assert len(caught) == 1
    assert (
        "body 'b': inertia violates the triangle inequality: principal moments (1, 1, 5), 5 > 1 + 1 (line 3)"
        in str(caught[0].message)
    )
    np.testing.assert_array_equal(model.body("b").inertia.matrix(), np.diag([1, 1, 5]))
    assert model.mass == 4


def test_massless_bodies_on_moving_joints_are_kept_on_request():
    text = robot(
        link("a"),
        link("b", ""),
        link("c", ""),
        joint("j", "fixed", "a", "b"),
        joint("k", "revolute", "b", "c"),
    )
    with pytest.warns(AlembertWarning, match="body 'c' on the moving joint 'k' has no mass"):
        model = load_urdf(text, unphysical="warn")
    assert model.mass == 2
    assert model.body("c").inertia.mass == 0


def test_moments_without_mass_are_kept_on_request():
    inertial = INERTIAL.replace('mass value="2"', 'mass value="0"')
    text = robot(link("a"), link("b", inertial), joint("j", "revolute", "a", "b"))
    with pytest.warns(AlembertWarning, match="body 'b': mass is 0 but the principal moments are"):
        model = load_urdf(text, unphysical="warn")
    assert model.body("b").inertia.mass == 0
    assert model.body("b").inertia.tensor[0] == 1


def test_what_is_kept_survives_copies_and_files(tmp_path):
    """A model read from a real file can be changed, merged, written and read again."""
    inertial = INERTIAL.replace('izz="1"', 'izz="5"')
    text = robot(
        link("a"), link("b", inertial), link("c", ""),
        joint("j", "revolute", "a", "b", LIMIT), joint("k", "revolute", "b", "c", LIMIT),
    )  # fmt: skip
    with pytest.warns(AlembertWarning, match="body 'c' on the moving joint 'k' has no mass"):
        model = load_urdf(text)
    assert [body.unphysical for body in model.bodies] == [False, True, True]
    assert model.replace(gravity=(0, 0, 0)).body("b").inertia == model.body("b").inertia
    assert model.merge_fixed().body("b").unphysical
    for name in ("a.toml", "a.yaml"):
        save(model, tmp_path / name)
        assert load(tmp_path / name) == model
    with pytest.raises(ModelError, match="mass is -1, expected a positive number"):
        model.replace_body("b", inertia=Inertia(-1.0, tensor=(1, 0, 1, 0, 0, 1)))


def test_what_the_file_says_otherwise_is_told():
    text = robot(
        link("a"), link("b"), link("c"),
        joint("j", "revolute", "a", "b", '<mimic joint="none"/><axis xyz="0 0 2"/>'),
        joint("k", "prismatic", "b", "c", '<limit lower="-1" upper="1"/>'),
    )  # fmt: skip
    with pytest.warns(AlembertWarning) as caught:
        model = load_urdf(text)
    (message,) = [str(warning.message) for warning in caught]
    assert message == (
        "<text>: read differently from what it says (strict=True refuses it): "
        "the axis of joint 'j' has length 2: it is normalised (line 5); "
        "joint 'j' is revolute and has no <limit>, which the format requires: it moves without limits (line 5); "
        "joint 'j' mimics the joint 'none'; there is j, k: it moves freely (line 5); "
        "<limit> has no attribute 'velocity': there is no such limit (line 6); "
        "<limit> has no attribute 'effort': there is no such limit (line 6)"
    )
    assert model.nv == 2
    assert model.couplings == ()
    np.testing.assert_array_equal(model.lower_limits, [-np.inf, -1])


def test_a_root_link_called_world_can_float():
    text = robot(link("world"), link("b"), joint("j", "continuous", "world", "b"))
    with pytest.warns(AlembertWarning, match="mass of the link 'world', which is the inertial frame"):
        assert load_urdf(text).nv == 1
    with pytest.warns(AlembertWarning, match="it is called 'world_link'"):
        model = load_urdf(text, floating=True)
    assert model.nv == 7
    assert model.joint("root_joint").child == "world_link"

"""URDF, MJCF, SDF and USD that we write: other programs and our readers find the same model, and what is lost is named."""

import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

import alembert as al
from alembert import AlembertWarning, UnsupportedError, convert, library

ROUNDING = 1e-10  # of accelerations: text keeps all digits, angles of rotations lose two or three


def tree(seed=1, kinds=("revolute", "prismatic", "fixed"), **options):
    return library.random_tree(seed, bodies=6, kinds=list(kinds), **options)


def drone(joint):
    """A free body with an arm."""
    builder = al.ModelBuilder("drone")
    inertia = al.Inertia.box(1.3, (0.2, 0.3, 0.4), (0.1, 0.0, 0.05))
    builder.body("hull", inertia, joint=al.Free(), joint_name="root")
    placement = al.Placement.from_rpy((0.3, -0.4, 1.0), (0.2, 0.1, 0.0))
    builder.body("arm", inertia, parent="hull", joint=joint, joint_name="arm", placement=placement)
    return builder.build()


def state(model, seed=0):
    rng = np.random.default_rng(seed)
    q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    return q, v, tau


@pytest.mark.parametrize("seed", [1, 2])
def test_urdf_in_pinocchio(tmp_path, seed):
    pin = pytest.importorskip("pinocchio")
    model, path = tree(seed), tmp_path / "tree.urdf"
    al.save(model, path)
    other = pin.buildModelFromUrdf(str(path))
    q, v, tau = state(model)
    there = convert.to_pinocchio(model, q, v, pin_model=other)
    force = convert.to_pinocchio(model, q, tau, pin_model=other)[1]
    a = pin.aba(other, other.createData(), *there, force)
    back = convert.from_pinocchio(model, there[0], a, pin_model=other)[1]
    np.testing.assert_allclose(back, model.forward_dynamics(q, v, tau), rtol=1e-7, atol=1e-7)


def test_urdf_read_back(tmp_path):
    model, path = tree(3), tmp_path / "tree.urdf"
    al.save(model, path)
    again = al.load(path)
    assert again.coordinate_names == model.coordinate_names
    given = state(model)
    expected = model.forward_dynamics(*given)
    np.testing.assert_allclose(again.forward_dynamics(*given), expected, rtol=1e-9, atol=ROUNDING)


def test_a_free_base(tmp_path):
    model, path = drone(al.Revolute((0.6, 0.0, 0.8))), tmp_path / "tree.urdf"
    with pytest.warns(AlembertWarning, match="URDF does not keep: free base, to be read with floating=True"):
        al.save(model, path)
    again = al.load(path, floating=True)
    given = state(model)
    np.testing.assert_allclose(
        again.forward_dynamics(*given), model.forward_dynamics(*given), rtol=1e-9, atol=ROUNDING
    )


def test_limits_friction_frames_and_what_is_lost(tmp_path):
    arm, path = library.arm7(), tmp_path / "arm.urdf"
    with pytest.warns(AlembertWarning) as said:
        al.save(arm, path)
    text = str(said[0].message)
    for what in (
        "armatures (joint1, joint2, joint3, joint4, joint5, ...)",
        "actuators (motor1",
        "round caps",
    ):
        assert what in text
    again = al.load(path)
    for which in ("lower", "upper", "velocity", "effort"):
        np.testing.assert_array_equal(again.space.limits(which), arm.space.limits(which))
    q = state(arm)[0]
    np.testing.assert_allclose(
        again.frame_pose(q, "tool").translation, arm.frame_pose(q, "tool").translation, atol=1e-14
    )
    assert again.joint("joint1").friction.viscous == arm.joint("joint1").friction.viscous


def test_mjcf_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model, path = tree(4, kinds=("revolute", "prismatic")), tmp_path / "tree.xml"
    al.save(model, path)
    other = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(other)
    q, v, tau = state(model)
    there = convert.to_mujoco(model, q, v, mj_model=other)
    data.qpos[:], data.qvel[:] = there
    data.qfrc_applied[:] = convert.to_mujoco(model, q, tau, mj_model=other)[1]
    other.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    mujoco.mj_forward(other, data)
    back = convert.from_mujoco(model, there[0], data.qacc.copy(), mj_model=other)[1]
    np.testing.assert_allclose(back, model.forward_dynamics(q, v, tau), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["pendulum", "two_link", "acrobot", "branched_acrobot", "cart_pole"])
def test_points_and_rods_in_mjcf(tmp_path, name):
    """MuJoCo refuses moving bodies without a moment about some axis; it has to read what is written all the same."""
    pytest.importorskip("mujoco")
    model, path = getattr(library, name)(), tmp_path / "model.xml"
    with pytest.warns(
        AlembertWarning, match="moments or masses of zero, raised by 1e-12 since MuJoCo refuses them"
    ):
        al.save(model, path)
    given = state(model)
    np.testing.assert_allclose(
        al.load(path).forward_dynamics(*given), model.forward_dynamics(*given), rtol=1e-9, atol=ROUNDING
    )


@pytest.mark.parametrize(("mass", "moment"), [(0.2, 0), (0, 0.1)])
def test_what_is_fixed_keeps_its_mass_and_its_moments_in_mjcf(tmp_path, mass, moment):
    """A point, which MuJoCo refuses on fixed bodies too; and moments without mass, as some URDFs have them."""
    pytest.importorskip("mujoco")
    source, path = tmp_path / "source.urdf", tmp_path / "model.xml"
    source.write_text(f"""<robot name="r"><link name="base"/>
      <link name="arm"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="sensor"><inertial><mass value="{mass}"/>
        <inertia ixx="{moment}" iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="a" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="1 0 0"/></joint>
      <joint name="s" type="fixed"><parent link="arm"/><child link="sensor"/><origin xyz="0 1 0"/></joint></robot>""")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)
        model = al.load(source)
        al.save(model, path)
    np.testing.assert_allclose(al.load(path).mass_matrix([0.3]), model.mass_matrix([0.3]), rtol=1e-9)


def test_mjcf_refuses_what_mujoco_cannot_read(tmp_path):
    pytest.importorskip("mujoco")
    builder = al.ModelBuilder("r", gravity=(0, 0, 0))
    odd = al.Inertia(0.1, (0, 0, 0), (1.0, 0, 1.0, 0, 0, 3.0))
    builder.body("odd", odd, joint=al.Revolute(), joint_name="turn", unphysical=True)
    builder.body("rest", al.Inertia.box(50.0, (1, 1, 1)), joint=al.Fixed(), parent="odd")
    model = builder.build()
    said = r"model.xml: MuJoCo refuses body 'odd', whose inertia no body can have; model.merge_fixed\(\) may join it"
    with pytest.raises(UnsupportedError, match=said):
        al.save(model, tmp_path / "model.xml")
    whole = model.merge_fixed()
    al.save(whole, tmp_path / "whole.xml")
    np.testing.assert_allclose(al.load(tmp_path / "whole.xml").mass_matrix([0.0]), model.mass_matrix([0.0]))


def test_several_joints_of_one_body_in_mjcf(tmp_path):
    """They are read as a chain through massless bodies, which is written and read again; so is a ball's spring."""
    pytest.importorskip("mujoco")
    source, path = tmp_path / "source.xml", tmp_path / "model.xml"
    source.write_text("""<mujoco><option><flag contact="disable"/></option><worldbody><body name="a">
      <joint name="slide" type="slide" axis="1 0 0"/><joint name="turn" axis="0 1 0" pos="0.1 0 0"/>
      <geom type="box" size="0.1 0.2 0.3" mass="2"/>
      <body name="b" pos="0 0 0.5"><joint name="ball" type="ball" pos="0 0 0.1" stiffness="3"/>
      <geom type="box" size="0.3 0.1 0.1" pos="0.1 0.2 0" mass="1"/></body></body></worldbody></mujoco>""")
    model = al.load(source)
    with pytest.warns(
        AlembertWarning, match=r"raised by 1e-12 since MuJoCo refuses them \(a/slide, a/turn, b/ball\)$"
    ):
        al.save(model, path)
    given = state(model)
    np.testing.assert_allclose(
        al.load(path).forward_dynamics(*given), model.forward_dynamics(*given), rtol=1e-9, atol=ROUNDING
    )


def test_mjcf_read_back(tmp_path):
    pytest.importorskip("mujoco")
    model, path = drone(al.Spherical()), tmp_path / "tree.xml"
    al.save(model, path)
    again = al.load(path)
    given = state(model)
    np.testing.assert_allclose(
        again.forward_dynamics(*given), model.forward_dynamics(*given), rtol=1e-8, atol=1e-9
    )


def test_mjcf_says_more_than_urdf(tmp_path):
    pytest.importorskip("mujoco")
    builder = al.ModelBuilder("geared", gravity=(0.0, 0.0, -1.6))
    inertia = al.Inertia.box(1.0, (0.2, 0.3, 0.4), (0.1, 0.0, 0.0))
    builder.body(
        "a",
        inertia,
        joint=al.Revolute((0, 0, 1)),
        joint_name="one",
        spring=al.Spring((3.0,), (0.2,)),
        armature=(0.1,),
        limits=al.Limits((-1.0,), (1.5,)),
    )
    builder.body(
        "b", inertia, parent="a", joint=al.Prismatic((1, 0, 0)), joint_name="two", placement=(1.0, 0, 0)
    )
    builder.actuator("motor", "one", limits=(-2.0, 2.0))
    model, path = builder.build(), tmp_path / "g.xml"
    al.save(model, path)
    again = al.load(path)
    given = state(model)
    np.testing.assert_allclose(again.forward_dynamics(*given), model.forward_dynamics(*given), rtol=1e-9)
    assert again.space.limits("upper")[0] == 1.5
    builder.coupling("gear", "two", ["one"], [0.5], 0.1)
    with pytest.warns(AlembertWarning, match="exactness of couplings"):
        al.save(builder.build(), path)
    with pytest.warns(
        AlembertWarning, match=r"springs \(one\); armatures \(one\); actuators \(motor\); gravity"
    ):
        al.save(builder.build(), tmp_path / "g.urdf")
    text = (tmp_path / "g.urdf").read_text()
    assert '<mimic joint="one" multiplier="0.5" offset="0.1"/>' in text


def test_limits_of_effort_in_mjcf(tmp_path):
    """They are forces of actuators at a joint there; those of joints with several degrees of freedom are told."""
    pytest.importorskip("mujoco")
    limits = al.Limits((-1.0,), (), velocity=(3.0,), effort=(2.5,))
    model, path = drone(al.Revolute()).replace_joint("arm", limits=limits), tmp_path / "drone.xml"
    with pytest.warns(AlembertWarning, match=r"MJCF does not keep: limits of speed \(arm\)$"):
        al.save(model, path)
    assert al.load(path).joint("arm").limits.effort == (2.5,)
    ball = drone(al.Spherical()).replace_joint("arm", limits=al.Limits(effort=(1.0, 1.0, 1.0)))
    with pytest.warns(AlembertWarning, match=r"MJCF does not keep: limits \(arm\)$"):
        al.save(ball, path)


@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".usda"])
def test_shapes_of_the_world_are_told(tmp_path, suffix):
    model = library.chain(2).replace(visuals=(al.Visual(al.Box((1.0, 1.0, 0.1))),))
    with pytest.warns(AlembertWarning, match=r"shapes of the world \(world\)"):
        al.save(model, tmp_path / f"m{suffix}")


def test_smoothing_of_friction_in_urdf(tmp_path):
    model = drone(al.Revolute()).replace_joint("arm", friction=al.Friction((0.4,), (0.1,), 0.2))
    with pytest.warns(AlembertWarning, match=r"smoothing of friction \(arm\)"):
        al.save(model, tmp_path / "m.urdf")


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_what_cannot_be_said_is_refused(tmp_path, suffix):
    from alembert.verify.mechanisms import four_bars

    path = tmp_path / f"m{suffix}"
    with pytest.raises(UnsupportedError, match="cannot say the universal joint"):
        al.save(library.random_tree(0, bodies=2, kinds=["universal"]), path)
    with pytest.raises(UnsupportedError, match="cannot say the loop"):
        al.save(four_bars(1), path)
    builder = al.ModelBuilder("boom")
    builder.body("boom", al.flexible.beam(length=1.0, rhoA=1.0, EI_z=1.0, bending_y=1), joint=al.Fixed())
    with pytest.raises(UnsupportedError, match="cannot say the flexible body 'boom'"):
        al.save(builder.build(), path)
    with pytest.raises(al.FileError, match="cannot be written"):
        al.save(library.chain(2), tmp_path / "nowhere" / f"m{suffix}")


def from_sdf(path):
    """A model from what the specification of SDF says about poses, inertias and axes; no reader of ours."""
    root = ElementTree.parse(path).getroot()
    assert (root.tag, root.get("version")) == ("sdf", "1.11")
    model = root.find("model")

    def numbers(element, tag):
        return [float(x) for x in element.findtext(tag).split()]

    joints = {joint.findtext("child"): joint for joint in model.iter("joint")}
    builder = al.ModelBuilder(model.get("name"))
    for link in model.iter("link"):
        name, pose = link.get("name"), link.find("pose")
        *xyz, roll, pitch, yaw = map(float, pose.text.split())
        inertial = link.find("inertial")
        entries = {x.tag: float(x.text) for x in inertial.find("inertia")}
        tensor = [entries[key] for key in ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")]
        inertia = al.Inertia(numbers(inertial, "mass")[0], numbers(inertial, "pose")[:3], tensor)
        joint, kind, more = joints.get(name), al.Free(), {}
        if joint is not None:
            assert joint.findtext("parent") == pose.get("relative_to", "world")
            axis = joint.find("axis")
            kind = {"ball": al.Spherical, "fixed": al.Fixed}.get(joint.get("type"), lambda: None)()
            if axis is not None:
                kind = {"revolute": al.Revolute, "prismatic": al.Prismatic}[joint.get("type")](
                    numbers(axis, "xyz")
                )
                dynamics = {x.tag: float(x.text) for x in axis.find("dynamics") or ()}
                more = {
                    "friction": al.Friction((dynamics.get("damping", 0.0),)),
                    "spring": al.Spring(
                        (dynamics.get("spring_stiffness", 0.0),), (dynamics.get("spring_reference", 0.0),)
                    ),
                }
        builder.body(
            name,
            inertia,
            joint=kind,
            joint_name="root" if joint is None else joint.get("name"),
            parent=pose.get("relative_to", "world"),
            placement=al.Placement.from_rpy((roll, pitch, yaw), xyz),
            **more,
        )
    return builder.build()


@pytest.mark.parametrize("seed", [1, 4])
def test_sdf_says_the_same_motion(tmp_path, seed):
    model, path = tree(seed, ("revolute", "prismatic", "spherical", "fixed")), tmp_path / "tree.sdf"
    al.save(model, path)
    again = from_sdf(path)
    given = state(model)
    assert again.coordinate_names == model.coordinate_names
    expected = model.forward_dynamics(*given)
    np.testing.assert_allclose(again.forward_dynamics(*given), expected, rtol=1e-9, atol=ROUNDING)


@pytest.mark.parametrize("name", ["arm7", "cart_pole", "chain"])
def test_sdf_in_drake(tmp_path, name):
    """A program of others reads it; it is large, and installed by hand: `pip install drake`."""
    parsing = pytest.importorskip("pydrake.multibody.parsing")
    from pydrake.multibody.plant import MultibodyPlant

    model, path = library.make(name), tmp_path / "model.sdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)  # armatures are lost, and added below
        al.save(model, path)
    plant = MultibodyPlant(0.0)
    parsing.Parser(plant).AddModels(str(path))
    plant.Finalize()
    context, q = plant.CreateDefaultContext(), model.random_configuration(1)
    joints = [plant.GetJointByName(joint.name) for joint in model.joints]
    for joint, value in zip(joints, q, strict=True):
        plant.SetPositions(context, np.concatenate([plant.GetPositions(context)[: joint.position_start()], [value],
                                                    plant.GetPositions(context)[joint.position_start() + 1 :]]))  # fmt: skip
    for body in model.bodies:
        X, ours = (
            plant.EvalBodyPoseInWorld(context, plant.GetBodyByName(body.name)),
            model.frame_pose(q, body.name),
        )
        np.testing.assert_allclose(X.translation(), ours.translation, atol=1e-12)
        np.testing.assert_allclose(X.rotation().matrix(), ours.rotation, atol=1e-12)
    order = [joint.velocity_start() for joint in joints]
    M = plant.CalcMassMatrixViaInverseDynamics(context)[np.ix_(order, order)]
    armature = [joint.armature[0] if joint.armature else 0.0 for joint in model.joints]
    np.testing.assert_allclose(M + np.diag(armature), model.mass_matrix(q), atol=1e-11)


def test_sdf_of_a_free_body_and_what_is_lost(tmp_path):
    model, path = drone(al.Revolute((0.6, 0.0, 0.8))), tmp_path / "tree.sdf"
    model = model.replace_joint(
        "arm",
        spring=al.Spring((2.0,), (0.3,)),
        friction=al.Friction((0.4,), (0.1,)),
        limits=al.Limits((-1.0,), (2.0,)),
        armature=(0.01,),
    ).replace(gravity=(0, 0, -1.6))
    with pytest.warns(AlembertWarning) as said:
        al.save(model, path)
    for what in (
        "SDF does not keep: smoothing of friction (arm)",
        "armatures (arm)",
        "gravity ((0.0, 0.0, -1.6))",
    ):
        assert what in str(said[0].message)
    text = path.read_text()
    for line in (
        "<lower>-1.0</lower>",
        "<friction>0.1</friction>",
        "<spring_reference>0.3</spring_reference>",
    ):
        assert line in text
    plain = model.replace_joint(
        "arm", friction=al.Friction((0.4,)), spring=al.Spring((2.0,), (0.3,)), armature=()
    ).replace(gravity=(0, 0, -9.81))
    given = state(model)
    np.testing.assert_allclose(
        from_sdf(path).forward_dynamics(*given),
        plain.forward_dynamics(*given),
        rtol=1e-9,
        atol=ROUNDING,
    )


def test_sdf_shapes_couplings_and_refusals(tmp_path):
    from alembert.verify.mechanisms import four_bars

    arm, path = library.arm7(), tmp_path / "arm.sdf"
    with pytest.warns(AlembertWarning, match="SDF does not keep: .*; armatures"):
        al.save(arm, path)
    assert path.read_text().count("<capsule>") == sum(len(body.visuals) for body in arm.bodies)
    assert '<frame name="tool" attached_to=' in path.read_text()
    builder = al.ModelBuilder("gear")
    for name in "ab":
        builder.body(name, al.Inertia.sphere(1.0, 0.5), joint=al.Revolute(), joint_name=name)
    coupled = builder.build().replace(couplings=(al.Coupling("gear", "b", ("a",), (-2.0,)),))
    al.save(coupled, path)
    assert '<mimic joint="a">' in path.read_text()
    for model, what in (
        (four_bars(1), "SDF cannot say the loop 'window0'"),
        (tree(1, ("universal",)), "SDF cannot say the universal joint"),
    ):
        with pytest.raises(UnsupportedError, match=what):
            al.save(model, path)
    with pytest.raises(al.ArgumentError, match=r"suffix '\.sdf', expected one of"):
        al.load(path)


def from_usd(path):
    """The model that Pixar's own library reads in a file, by what the schema UsdPhysics says of its prims."""
    pytest.importorskip("pxr", reason="USD is read by usd-core")
    from pxr import Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.Open(str(path))
    kinds = {"Revolute": al.Revolute, "Prismatic": al.Prismatic, "Spherical": al.Spherical, "Fixed": al.Fixed}

    def wxyz(x):
        q = np.array([x.GetReal(), *x.GetImaginary()], dtype=float)
        return q / np.linalg.norm(q)

    def turned(x):
        return np.array(al.Placement((0, 0, 0), tuple(wxyz(x))).pose().rotation, dtype=float)

    joints = {}
    for prim in stage.Traverse():
        if prim.IsA(UsdPhysics.Joint):
            joints[UsdPhysics.Joint(prim).GetBody1Rel().GetTargets()[0]] = prim
    scene = UsdPhysics.Scene(stage.GetPrimAtPath("/scene"))
    g = np.array(scene.GetGravityDirectionAttr().Get()) * scene.GetGravityMagnitudeAttr().Get()
    builder = al.ModelBuilder("read", gravity=tuple(g))
    for prim in stage.GetDefaultPrim().GetChildren():
        if not prim.HasAPI(UsdPhysics.RigidBodyAPI):
            continue
        mass = UsdPhysics.MassAPI(prim)
        R = turned(mass.GetPrincipalAxesAttr().Get())
        tensor = R @ np.diag(np.array(mass.GetDiagonalInertiaAttr().Get(), dtype=float)) @ R.T
        com = tuple(float(x) for x in mass.GetCenterOfMassAttr().Get())
        inertia = al.Inertia.from_matrix(mass.GetMassAttr().Get(), com, (tensor + tensor.T) / 2)
        given = joints.get(prim.GetPath())
        if given is None:
            X = np.array(UsdGeom.Xformable(prim).GetLocalTransformation()).T
            placement = al.Placement.from_matrix(X[:3, :3], tuple(X[:3, 3]))
            builder.body(prim.GetName(), inertia, joint=al.Free(), joint_name="root", placement=placement)
            continue
        joint, more = UsdPhysics.Joint(given), {}
        kind = given.GetTypeName().removeprefix("Physics").removesuffix("Joint")
        R0, R1 = turned(joint.GetLocalRot0Attr().Get()), turned(joint.GetLocalRot1Attr().Get())
        if kind in ("Revolute", "Prismatic"):
            turning = kind == "Revolute"
            drive = UsdPhysics.DriveAPI(given, "angular" if turning else "linear")
            unit = np.pi / 180 if turning else 1.0
            values = [
                float(x.Get() or 0.0)
                for x in (drive.GetStiffnessAttr(), drive.GetDampingAttr(), drive.GetTargetPositionAttr())
            ]
            more = {
                "spring": al.Spring((values[0] / unit,), (values[2] * unit,)),
                "friction": al.Friction((values[1] / unit,)),
            }
        made = kinds[kind](tuple(R1[:, 0])) if more else kinds[kind]()
        above = joint.GetBody0Rel().GetTargets()
        builder.body(
            prim.GetName(),
            inertia,
            joint=made,
            joint_name=given.GetName(),
            parent=above[0].name if above else "world",
            placement=al.Placement.from_matrix(
                R0 @ R1.T, tuple(float(x) for x in joint.GetLocalPos0Attr().Get())
            ),
            **more,
        )
    return builder.build(), stage


@pytest.mark.parametrize("seed", [1, 4])
def test_usd_says_the_same_motion(tmp_path, seed):
    model, path = tree(seed, ("revolute", "prismatic", "spherical", "fixed")), tmp_path / "tree.usda"
    al.save(model, path)
    again, stage = from_usd(path)
    from pxr import UsdGeom

    given = state(model)
    assert again.coordinate_names == model.coordinate_names
    # masses and frames of joints have single precision, 6e-8; mass matrices of six bodies are worse by a hundred
    np.testing.assert_allclose(
        again.forward_dynamics(*given), model.forward_dynamics(*given), rtol=1e-5, atol=1e-5
    )
    for body in model.bodies:  # where they are drawn: doubles
        X = model.frame_pose(model.neutral(), body.name)
        seen = np.array(
            UsdGeom.XformCache().GetLocalToWorldTransform(stage.GetPrimAtPath(f"/model/{body.name}"))
        ).T
        np.testing.assert_allclose(seen[:3, 3], X.translation, atol=1e-12)
        np.testing.assert_allclose(seen[:3, :3], X.rotation, atol=1e-12)


def test_usd_of_a_free_body_with_a_spring(tmp_path):
    model, path = drone(al.Revolute((0.6, 0.0, 0.8))), tmp_path / "drone.usda"
    model = model.replace_joint(
        "arm",
        spring=al.Spring((2.0,), (0.3,)),
        friction=al.Friction((0.4,)),
        limits=al.Limits((-1.0,), (2.0,)),
    ).replace(gravity=(0, 0, -1.6))
    al.save(model, path)
    again, stage = from_usd(path)
    given = state(model)
    np.testing.assert_allclose(
        again.forward_dynamics(*given), model.forward_dynamics(*given), rtol=1e-5, atol=1e-5
    )
    limit = stage.GetPrimAtPath("/model/joints/arm").GetAttribute("physics:upperLimit").Get()
    assert limit == pytest.approx(np.degrees(2.0), rel=1e-6)


def test_what_usd_loses_and_refuses(tmp_path):
    from alembert.verify.mechanisms import four_bars

    path = tmp_path / "arm.usda"
    with pytest.warns(AlembertWarning) as said:
        al.save(library.arm7(), path)
    for what in (
        "USD does not keep: ",
        "Coulomb friction (joint1",
        "limits (velocity) (joint1",
        "armatures",
        "actuators",
    ):
        assert what in str(said[0].message)
    text = path.read_text()
    assert text.startswith("#usda 1.0\n")
    assert text.count("def Capsule") == sum(len(body.visuals) for body in library.arm7().bodies)
    assert 'def Xform "tool"' in text
    builder = al.ModelBuilder('a "model"')
    for name in ("left.hand", "left hand", "1"):
        builder.body(name, al.Inertia.sphere(1.0, 0.5), joint=al.Revolute(), joint_name=f"{name}\n")
    with pytest.warns(AlembertWarning, match="names that are no identifiers"):
        al.save(builder.build(), path)
    text = path.read_text()
    for line in (
        'def Xform "left_hand" (',
        'def Xform "left_hand_2" (',
        'def Xform "_1" (',
        'displayName = "left.hand"',
        'displayName = "left hand\\n"',
        'displayName = "a \\"model\\""',
    ):
        assert line in text
    gear = al.ModelBuilder("gear")
    for name in "ab":
        gear.body(name, al.Inertia.sphere(1.0, 0.5), joint=al.Revolute(), joint_name=name)
    for model, what in (
        (four_bars(1), "USD cannot say the loop 'window0'"),
        (tree(1, ("universal",)), "USD cannot say the universal joint"),
        (
            gear.build().replace(couplings=(al.Coupling("gear", "b", ("a",), (-2.0,)),)),
            "USD cannot say the coupling 'gear'",
        ),
    ):
        with pytest.raises(UnsupportedError, match=what):
            al.save(model, path)
    with pytest.raises(al.ArgumentError, match=r"suffix '\.usda', expected one of"):
        al.load(path)

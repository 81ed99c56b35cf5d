"""Alembert's own format keeps every part of a model exactly, in TOML and in YAML."""

import dataclasses
import json
import os
import stat
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.flexible import beam
from alembert.joints import PAIRS, REGISTRY, JointType
from alembert.model.io import json_schema, load, native, save
from alembert.model.io.schema import PARTS

INF = float("inf")
SYNTAXES = ("toml", "yaml")
AXES = [(0.0, 0.0, 1.0), (0.6, 0.0, -0.8), (0.36, 0.48, 0.8)]


def crank(q: ca.SX) -> al.Pose:
    """A placement with operations of many kinds."""
    c, s = ca.cos(q[0]), ca.sin(q[0])
    R = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
    return al.Pose(R, ca.vertcat(0.1 * c, ca.tanh(q[0] * q[1]) + 1 / 3, ca.fmax(q[1], ca.atan2(s, c)) ** 3))


def samples(cls: type[JointType]) -> list[JointType]:
    """Joint types with their defaults, with other numbers, and with expressions."""
    if cls is al.Custom:
        return [al.Custom.from_function(crank, [("angle", "rad"), ("lift", "m")])]
    found = [cls()]
    for k, axis in enumerate(AXES[1:]):
        numbers = {
            field.name: tuple(np.roll(axis, j).tolist()) if isinstance(field.default, tuple) else 0.1 + k / 3
            for j, field in enumerate(dataclasses.fields(cls))
            if not field.metadata.get("structural")
        }
        found.append(cls(**numbers))
    symbolic = {
        field.name: (al.Expression("cos(alpha)"), 0.0, al.Expression("-sin(alpha)"))
        if isinstance(field.default, tuple)
        else al.Expression("0.5*pitch")
        for field in dataclasses.fields(cls)
        if not field.metadata.get("structural")
    }
    if len(symbolic) == 1 or "pitch" in symbolic:
        found.append(cls(**symbolic))
    if cls is al.Gimbal:
        found.append(al.Gimbal("zxz"))
    return found


ALL_SAMPLES = [sample for cls in REGISTRY.values() for sample in samples(cls)]


def one_joint_model(joint_type: JointType) -> al.Model:
    nq, nv = joint_type.nq, joint_type.nv
    builder = al.ModelBuilder("one joint", gravity=(0.1, -0.0, 1e-300))
    builder.parameter("alpha", 0.1)
    builder.parameter("pitch", 1 / 3)
    builder.parameter("k", 2.0)
    rest = joint_type.neutral().tolist()
    builder.body("arm", al.Inertia.box(1 / 3, (0.1, 0.2, 0.3), center=(1e-17, 0.1, -2.0)))
    builder.joint(
        "shoulder",
        joint_type,
        parent="world",
        child="arm",
        placement=al.Placement.from_rpy((0.1, 0.2, 0.3), (1 / 3, -0.0, 2e100)),
        limits=al.Limits((-INF,) * nq, (1 / 3,) * nq, (INF,) * nv, (1e308,) * nv),
        spring=al.Spring((al.Expression("k**2"),) * nv, tuple(rest)) if nv else None,
        friction=al.Friction((0.1,) * nv, (al.Expression("k"),) * nv, al.Expression("k/1000")),
        armature=(1e-5,) * nv,
        rotors=[al.Rotor(100.0, al.Expression("k*1e-4"), (0.0, 0.6, 0.8), dof) for dof in range(nv)],
    )
    return builder.build()


def full_model() -> al.Model:
    """Everything that can be in a model, with names that need quotes."""
    b = al.ModelBuilder('all "parts"\n', gravity=(0.0, al.Expression("-g"), 0.0))
    b.parameter("g", 9.81)
    b.parameter("m", 1e-3)
    b.parameter("l", 0.3)
    m, l = al.Expression("m"), al.Expression("l")
    visuals = [
        al.Visual(al.Box((1, 2, 3)), al.Placement((0, 0, l)), (1, 0, 0.5, 1)),
        al.Visual(al.Sphere(0.1)),
        al.Visual(al.Cylinder(0.1, 2)),
        al.Visual(al.Capsule(1, 0.1)),
        al.Visual(al.Mesh("meshes/ärm.stl", (0.001, 0.001, 0.001))),
        al.Visual(al.Mesh("other.obj")),
    ]
    b.body("base.plate", al.Inertia.rod(m, (0, 0, 0), (l, 0, 0)), joint=al.Free(), visuals=visuals)
    b.body(
        "yes", al.Inertia(1.0, (0.0, -0.0, 0.0), (1, 0, 1, 0, 0, 1)), joint=al.Revolute(), parent="base.plate"
    )
    b.body(
        "1e5", al.Inertia.sphere(2, 0.1), joint=al.Prismatic(), parent="yes", joint_name="日本\t☃\U0001f600"
    )
    b.body("ghost", joint=al.Fixed(), parent="1e5", joint_name="#joint = [1]", friction=al.Friction())
    b.body("null", al.Inertia.point(1, (0, 0, 1)), joint=al.Spherical(), joint_name="-")
    boom = beam(l, m, EI_z=al.Expression("g"), bending_y=1, damping=(0.1, 0.0), nodes={"mid": 0.5})
    b.body("boom", boom, joint=al.Revolute(), parent="null")
    b.body("load", al.Inertia.sphere(2, 0.1), joint=al.Revolute(), parent="boom", node="tip")
    b.frame("end", "boom", node="mid")
    b.frame("tip", "1e5", al.Placement.from_rpy((0, 0, l / 2), (0, 0, l)))
    b.frame("mark", "world")
    b.frame("same", "null", (0, 0, 1))
    for k, sample in enumerate(ALL_SAMPLES):
        if not any(isinstance(entry, al.Expression) for entry in sample.constants()):
            b.loop(f"loop{k}", sample, "tip", "same")
    b.coupling("gear", "yes_joint", ["日本\t☃\U0001f600"], [al.Expression("-2*l")], 0.25)
    b.equation("cam", ["s - l * cos(z)", "s_dot - z_dot"], {"s": "yes_joint", "z": "yes.z"}, "tip")
    b.actuator("motor", "yes_joint", gear=l, limits=(-1, INF))
    b.actuator("thruster", "base.plate_joint", dof=5)
    b.sensor("encoder", "joint_position", "yes_joint")
    b.sensor("imu", "gyro", "tip")
    return b.build()


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("joint_type", ALL_SAMPLES, ids=lambda t: t.kind)
def test_every_joint_type_round_trips(joint_type, syntax):
    model = one_joint_model(joint_type)
    text = native.dumps(model, syntax)
    assert native.loads(text, syntax) == model
    assert native.dumps(native.loads(text, syntax), syntax) == text


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_every_part_round_trips(syntax):
    model = full_model()
    again = native.loads(native.dumps(model, syntax), syntax)
    for field in dataclasses.fields(model):
        assert repr(getattr(again, field.name)) == repr(getattr(model, field.name)), field.name
    assert again == model
    assert hash(again) == hash(model)


def test_full_model_uses_every_section_and_field():
    """The round trips above cover what records there are: nothing is at its default everywhere."""
    model = full_model()
    document = native.plain_model(model)
    assert list(document) == ["format", "version", "name", "gravity", "parameters", *PARTS]
    joint = native.plain_model(one_joint_model(al.Revolute()))["joints"]["shoulder"]
    joint |= {"node": document["joints"]["load_joint"]["node"]}
    assert set(joint) == {field.name for field in dataclasses.fields(al.Joint)} - {"name"} | {"axis"}
    for section, (_, record) in PARTS.items():
        if section not in ("joints", "loops"):
            seen = {key for part in document[section].values() for key in part}
            fields = {field.name for field in dataclasses.fields(record)}
            assert seen == fields - {"name", "unphysical"}  # of loaded files: see test_urdf


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_random_numbers_round_trip(syntax):
    rng = np.random.default_rng(7)
    builder = al.ModelBuilder("random")
    parent = "world"
    for k in range(60):
        tensor = rng.normal(size=(3, 3)) * 10.0 ** rng.integers(-8, 8)
        S = tensor @ tensor.T
        inertia = al.Inertia.from_matrix(
            10.0 ** rng.uniform(-9, 9), rng.normal(size=3), np.trace(S) * np.eye(3) - S
        )
        quaternion = rng.normal(size=4)
        where = al.Placement(tuple(rng.normal(size=3)), tuple(quaternion / np.linalg.norm(quaternion)))
        axis = rng.normal(size=3)
        joint = al.Screw(tuple(axis / np.linalg.norm(axis)), rng.normal())
        builder.body(f"b{k}", inertia, joint=joint, parent=parent, placement=where)
        parent = f"b{k}" if k % 3 else "world"
    model = builder.build()
    assert native.loads(native.dumps(model, syntax), syntax) == model


def test_order_of_joints_is_kept():
    b = al.ModelBuilder()
    for name in ("z", "a", "m"):
        b.body(name, al.Inertia.point(1), joint=al.Prismatic())
    b.body("first", al.Inertia.point(1), joint=al.Prismatic(), parent="z")
    model = b.build()
    assert [body.name for body in native.loads(native.dumps(model)).bodies] == ["z", "first", "a", "m"]


def test_a_massless_body_keeps_its_centre():
    model = al.ModelBuilder().body("b", al.Inertia(0.0, (0, 0, 1)), joint=al.Fixed()).build()
    assert native.loads(native.dumps(model)) == model


def test_empty_model():
    model = al.ModelBuilder("nothing").build()
    assert native.loads(native.dumps(model)) == model
    assert native.loads('format = "alembert-model"\nversion = 1\n').name == "model"


HEAD = 'format = "alembert-model"\nversion = 1\n'
JOINT = '[joints.j]\ntype = "revolute"\nparent = "world"\nchild = "b"\n'


def body(inertia: str, joint: str = "") -> al.Model:
    return native.loads(f"{HEAD}[parameters]\nm = 2.0\n[bodies.b]\ninertia = {inertia}\n{JOINT}{joint}")


@pytest.mark.parametrize(
    ("text", "inertia"),
    [
        ("{ mass = 2 }", al.Inertia(2)),
        ('{ mass = "m", com = [0, 0, 1], tensor = [1, 0, 1, 0, 0, 1] }',
         al.Inertia(al.Expression("m"), (0, 0, 1), (1, 0, 1, 0, 0, 1))),
        ("{ point = { mass = 2, position = [1, 0, 0] } }", al.Inertia.point(2, (1, 0, 0))),
        ('{ rod = { mass = "m", start = [0, 0, 0], end = [0, 0, -1] } }',
         al.Inertia.rod(al.Expression("m"), (0, 0, 0), (0, 0, -1))),
        ("{ box = { mass = 1, size = [1, 2, 3] } }", al.Inertia.box(1, (1, 2, 3))),
        ("{ cylinder = { mass = 1, radius = 0.1, length = 2, axis = [1, 0, 0], center = [1, 0, 0] } }",
         al.Inertia.cylinder(1, 0.1, 2, (1, 0, 0), (1, 0, 0))),
        ("{ sphere = { mass = 1, radius = 0.1 } }", al.Inertia.sphere(1, 0.1)),
    ],
)  # fmt: skip
def test_inertia_shapes(text, inertia):
    assert body(text).bodies[0].inertia == inertia


@pytest.mark.parametrize(
    ("text", "placement"),
    [
        ("[1, 2, 3]", al.Placement((1, 2, 3))),
        ("{ translation = [1, 2, 3] }", al.Placement((1, 2, 3))),
        ("{}", al.Placement()),
        ("{ quaternion_wxyz = [0.6, 0, 0.8, 0] }", al.Placement((0, 0, 0), (0.6, 0, 0.8, 0))),
        ("{ rpy = [0.1, 0.2, 0.3] }", al.Placement.from_rpy((0.1, 0.2, 0.3))),
        ("{ rpy_deg = [0, 90, 0] }", al.Placement.from_rpy((0, np.pi / 2, 0))),
        ('{ rpy_deg = ["m", 0, 0] }', al.Placement.from_rpy((al.Expression("(m) * pi / 180"), 0, 0))),
        ("{ rotation_vector = [0.1, 0, 0.2] }", al.Placement.from_rotation_vector((0.1, 0, 0.2))),
        ("{ rotation_vector_deg = [0, 0, 180] }", al.Placement.from_rotation_vector((0, 0, np.pi))),
    ],
)
def test_placements(text, placement):
    assert body("{ mass = 1 }", f"placement = {text}").joints[0].placement == placement


def test_single_numbers_and_constant_formulas():
    joint = body(
        "{ mass = 1 }",
        'armature = 0.1\nlimits = { lower = "-pi/2", upper = "inf", velocity = [3], effort = inf }\n'
        'spring = { stiffness = "m" }\nfriction = { viscous = 1 }',
    ).joints[0]
    assert joint.limits == al.Limits((-np.pi / 2,), (INF,), (3.0,), (INF,))
    assert joint.armature == (0.1,)
    assert joint.spring == al.Spring((al.Expression("m"),))
    assert joint.friction == al.Friction((1.0,))


def test_yaml_aliases_are_values():
    text = """
format: alembert-model
version: 1
bodies:
  a: {inertia: &same {mass: 1, com: &c [0, 0, 1]}}
  b: {inertia: *same}
joints:
  a: {type: revolute, axis: [0, 1, 0], parent: world, child: a}
  b: {type: prismatic, parent: a, child: b, placement: *c}
"""
    model = native.loads(text, "yaml")
    assert model.bodies[0].inertia == model.bodies[1].inertia == al.Inertia(1, (0, 0, 1))
    assert model.joint("b").placement == al.Placement((0, 0, 1))


def test_a_new_joint_type_needs_no_change_here():
    @dataclasses.dataclass(frozen=True)
    class Cam(al.Prismatic):
        kind = "cam"
        teeth: int = 3

    model = al.ModelBuilder().body("b", al.Inertia.point(1), joint=Cam(teeth=5)).build()
    with pytest.raises(al.UnsupportedError, match="joint type Cam is not registered"):
        native.dumps(model)
    al.register(Cam)
    try:
        assert native.loads(native.dumps(model)) == model
        assert "CamJoint" in json_schema()["$defs"]
    finally:
        del REGISTRY["cam"]
    assert "CamJoint" not in json_schema()["$defs"]


def test_a_joint_type_may_not_reuse_a_key_of_joints():
    @dataclasses.dataclass(frozen=True)
    class Clash(al.Prismatic):
        kind = "clash"
        limits: float = 1.0

    al.register(Clash)
    try:
        with pytest.raises(
            al.ModelError, match="joint type 'clash' has a field 'limits', which every Joint has"
        ):
            json_schema()
    finally:
        del REGISTRY["clash"]


def test_json_schema_covers_the_registry():
    schema = json_schema()
    json.dumps(schema, allow_nan=False)
    kinds = {d["properties"]["type"]["const"] for name, d in schema["$defs"].items() if "LoopJoint" in name}
    assert kinds == set(REGISTRY) | set(PAIRS)
    assert set(schema["properties"]) == {
        "format",
        "version",
        "name",
        "gravity",
        "parameters",
        "visuals",
        *PARTS,
    }


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".toml", ".yaml", ".yml", ".TOML"])
def test_load_and_save(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    model = full_model()
    save(model, path)
    assert load(path) == load(str(path)) == model


def test_saving_replaces_whole_files(tmp_path):
    path = tmp_path / "model.toml"
    save(full_model(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~os.umask(os.umask(0o022))
    path.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    model = one_joint_model(al.Revolute())
    save(model, link)
    assert link.is_symlink()
    assert load(path) == model
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.toml", "model.toml"]


def test_a_failed_save_leaves_the_file(tmp_path, monkeypatch):
    path = tmp_path / "model.toml"
    model = full_model()
    save(model, path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(al.FileError, match=r"model\.toml: cannot be written: No space left on device"):
        save(one_joint_model(al.Revolute()), path)
    assert load(path) == model
    assert [p.name for p in tmp_path.iterdir()] == ["model.toml"]


def test_save_refuses(tmp_path):
    model = full_model()
    with pytest.raises(
        al.ArgumentError, match=r"a\.txt has the suffix '\.txt'; use one of \.toml, \.yaml, \.yml"
    ):
        save(model, tmp_path / "a.txt")
    with pytest.raises(al.ArgumentError, match="save: model is a str, expected a Model"):
        save("model", tmp_path / "a.toml")
    with pytest.raises(al.FileError, match=r"cannot be written: No such file or directory"):
        save(model, tmp_path / "no" / "a.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(al.FileError, match=r"folder\.toml: cannot be written: Is a directory"):
        save(model, tmp_path / "folder.toml")
    half = al.ModelBuilder("\ud800").build()
    with pytest.raises(
        al.ModelError, match=r"a text holds '\\ud800', half of a character, which no file can"
    ):
        save(half, tmp_path / "half.toml")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.toml"]


def test_load_refuses(tmp_path):
    with pytest.raises(
        al.ArgumentError, match=r"a\.obj has the suffix '\.obj', expected one of \.toml, .* \.urdf, \.xml"
    ):
        load("a.obj")
    with pytest.raises(al.ArgumentError, match="path is 3, expected a text or a Path"):
        load(3)
    with pytest.raises(al.ArgumentError, match=r"load: a\.toml takes no option 'floating'"):
        load("a.toml", floating=True)
    with pytest.raises(al.ArgumentError, match=r"takes no option 'floatin'; did you mean 'floating'\?"):
        load("a.urdf", floatin=True)
    with pytest.raises(al.FileError, match=r"none\.xml: cannot be read: No such file or directory"):
        load(tmp_path / "none.xml")
    with pytest.raises(al.ArgumentError, match="there is no syntax 'tom'; did you mean 'toml'"):
        native.loads("", "tom")


def test_xml_with_a_robot_is_urdf(tmp_path):
    path = Path(tmp_path / "robot.xml")
    path.write_text(
        '\ufeff<?xml version="1.0"?>\n<!-- <mujoco> -->\n<robot name="r"><link name="base"/></robot>'
    )
    assert load(path).name == "r"


def test_meshes_are_beside_the_file(tmp_path, monkeypatch):
    """Wherever we are; and written so that another folder finds them as well."""
    folder = tmp_path / "robot"
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "arm.stl").touch()
    b = al.ModelBuilder("r")
    b.body(
        "a", al.Inertia.sphere(1.0, 0.1), joint=al.Revolute(),
        visuals=[al.Visual(al.Mesh(p)) for p in ("meshes/arm.stl", "none.stl", str(folder / "meshes" / "arm.stl"))],
    )  # fmt: skip
    b.world(visuals=[al.Visual(al.Mesh("meshes/arm.stl", (2.0, 2.0, 2.0)))])

    def paths(model):
        return [x.shape.path for x in (*model.visuals, *model.body("a").visuals)]

    monkeypatch.chdir(folder)
    al.save(b.build(), "r.toml")
    text = (folder / "r.toml").read_text()
    assert text.count('path = "meshes/arm.stl"') == 3
    monkeypatch.chdir(tmp_path)
    model = al.load("robot/r.toml")
    found = "robot/meshes/arm.stl"
    assert paths(model) == [found, found, "none.stl", found]
    (tmp_path / "other").mkdir()
    al.save(model, "other/r.toml")
    assert 'path = "../robot/meshes/arm.stl"' in (tmp_path / "other" / "r.toml").read_text()
    again = paths(al.load(tmp_path / "other" / "r.toml"))
    assert [(tmp_path / p).resolve() for p in again[:2]] == [folder / "meshes" / "arm.stl"] * 2

"""Every refusal of a file names the file, the line and the path, and says what came and what was expected."""

import os
import re

import pytest

import alembert as al
from alembert.model.io import load, location, native, toml, yaml

GOOD = """\
format = "alembert-model"
version = 1
name = "arm"
gravity = [0, 0, -9.81]

[parameters]
m1 = 1.0
l1 = 0.5

[bodies.upper]
inertia = { mass = "m1", com = [0, 0, "-l1/2"], tensor = [0.1, 0, 0.1, 0, 0, 0.01] }
visuals = [
    { box = { size = [1, 1, 1] }, color = [1, 0, 0, 1] },
]

[bodies."fore arm".inertia]
rod = { mass = 1, start = [0, 0, 0], end = [0, 0, -1] }

[joints.shoulder]
type = "revolute"
axis = [0, 1, 0]
parent = "world"
child = "upper"
placement = { translation = [0, 0, 1], rpy_deg = [0, 90, 0] }
limits = { lower = -1, upper = 1, effort = inf }
spring = { stiffness = 3 }
friction = { viscous = 0.1 }
armature = 0.01

[[joints.shoulder.rotors]]
ratio = 50
inertia = 1e-4

[joints.elbow]
type = "spherical"
parent = "upper"
child = "fore arm"

[frames.tip]
body = "fore arm"

[frames.base]
body = "world"

[loops.closure]
type = "fixed"
frame_a = "tip"
frame_b = "base"

[actuators.motor]
joint = "shoulder"
limits = [-1, 1]

[sensors.encoder]
kind = "joint_position"
target = "shoulder"
"""

CASES = [
    # what is replaced, by what, the message after the file's name
    ('format = "alembert-model"', "", '1: format: is missing, expected "alembert-model"; this is no Alembert model'),
    ("version = 1", "version = 2", "2: version: is 2; this Alembert reads version 1: a newer"),
    ("version = 1", "version = true", "2: version: is true; this Alembert reads version 1"),
    ("version = 1", "", "1: version: is missing; this Alembert reads version 1"),
    ('name = "arm"', "name = 3", "3: name: is 3, expected a text"),
    ("[0, 0, -9.81]", "[0, 0]", "4: gravity: has 2 entries, expected 3"),
    ("[0, 0, -9.81]", '"down"', "4: gravity: is 'down', expected a list"),
    ("[0, 0, -9.81]", "[0, 0, nan]", "4: gravity[2]: is nan, expected a finite number"),
    ("[0, 0, -9.81]", '[0, 0, "g"]', "4: gravity[2]: uses the parameter 'g'; there is m1, l1"),
    ("[parameters]", "[parameter]", "6: parameter: unknown key 'parameter'; did you mean 'parameters'?"),
    ("[parameters]", "[forces]", "6: forces: unknown key 'forces'; a model has the springs and the friction of its joints; "
     "what else acts on it is given to each run: forces=[...] of simulate, or [task.forces.NAME] of a run file"),
    ("[parameters]", "[events]", "6: events: unknown key 'events'; they are given to each run: to simulate, or in [task]"),
    ("m1 = 1.0", "m1 = inf", "7: parameters.m1: is inf, expected a finite number"),
    ("m1 = 1.0", 'm1 = "l1"', "7: parameters.m1: is 'l1', expected a number or a formula of numbers"),
    ("m1 = 1.0", "m1 = 1e999", "7: parameters.m1: is inf, expected a finite number"),
    ("m1 = 1.0", "m1 = 1" + "0" * 400, "7: parameters.m1: is too large for a number"),
    ("m1 = 1.0", "m1 = [1]", "7: parameters.m1: is a list of 1, expected a number"),
    ("m1 = 1.0", "m1 = 1.0\n'a b' = 1", "8: parameters.'a b': parameter name 'a b' is not an identifier"),
    ("m1 = 1.0", "m1 = 1.0\npi = 1", "8: parameters.pi: parameter name 'pi' has a meaning of its own"),
    ('mass = "m1"', 'masss = "m1"', "11: bodies.upper.inertia.masss: unknown key 'masss'; did you mean 'mass'?"),
    ('mass = "m1", ', "", "11: bodies.upper.inertia: has com and tensor but no mass"),
    ('"m1"', '"m2"', "11: bodies.upper.inertia.mass: uses the parameter 'm2'; there is m1, l1"),
    ('"m1"', '"m1 +"', "11: bodies.upper.inertia.mass: expression 'm1 +' is not a formula"),
    ('"m1"', '"m1 - m1 - 1"',
     "11: bodies.upper.inertia.mass: body 'upper': mass is -1, expected a positive number"),
    ('"m1"', '"1/(m1 - 1)"', "11: bodies.upper.inertia.mass: expression '1 / (m1 - 1)' has no value at m1 = 1.0"),
    ('"m1"', '"__import__(1)"', "11: bodies.upper.inertia.mass: expression '__import__(1)' may hold numbers"),
    ('"m1"', "true", "11: bodies.upper.inertia.mass: is true, expected a number or a formula in quotes"),
    ('"m1"', "2026-01-01", "11: bodies.upper.inertia.mass: is datetime.date(2026, 1, 1), expected a number"),
    ("[0.1, 0, 0.1, 0, 0, 0.01]", "[0.1, 0, 0.1]", "11: bodies.upper.inertia.tensor: has 3 entries, expected 6"),
    ("0, 0, 0.01]", "0, 0, 0.5]",
     "11: bodies.upper.inertia: body 'upper': inertia violates the triangle inequality: principal moments"),
    ('inertia = { mass = "m1"', 'inertia = { point = { mass = 1 }, mass = "m1"',
     "11: bodies.upper.inertia: has both point and mass; a shape gives the whole inertia"),
    ("{ box =", "{ sphere = { radius = 1 }, box =",
     "13: bodies.upper.visuals[0]: has both box and sphere; one is enough"),
    ("box = { size = [1, 1, 1] }, ", "", "13: bodies.upper.visuals[0]: expected one of box, sphere, ellipsoid, cylinder"),
    ("[1, 1, 1]", "[1, 1]", "13: bodies.upper.visuals[0].box.size: box size has 2 entries, expected 3"),
    ("color = [1,", "colour = [1,",
     "13: bodies.upper.visuals[0].colour: unknown key 'colour'; did you mean 'color'?"),
    ("end = [0, 0, -1]", "edn = [0, 0, -1]", "17: bodies.'fore arm'.inertia.rod.edn: unknown key 'edn'; did"),
    (", end = [0, 0, -1]", "", "17: bodies.'fore arm'.inertia.rod.end: is missing"),
    ("rod = { mass = 1, start = [0, 0, 0], end = [0, 0, -1] }", "rod = 3",
     "17: bodies.'fore arm'.inertia.rod: is 3, expected a table"),
    ('"revolute"', '"revolut"', "20: joints.shoulder.type: is 'revolut'; did you mean 'revolute'?"),
    ('type = "revolute"', "", "19: joints.shoulder.type: is missing, expected one of "),
    ('"revolute"', "7", "20: joints.shoulder.type: is '7'; there is "),
    ("axis = [0, 1, 0]", "axes = [0, 1, 0]", "21: joints.shoulder.axes: unknown key 'axes'; did you mean 'axis'?"),
    ("axis = [0, 1, 0]", "axis = [0, 1, 1]", "21: joints.shoulder.axis: revolute axis is (0.0, 1.0, 1.0) of length"),
    ("axis = [0, 1, 0]", "axis = {x = 1}", "21: joints.shoulder.axis: is a table, expected a number or a list"),
    ("axis = [0, 1, 0]", "pitch = 1", "21: joints.shoulder.pitch: unknown key 'pitch'"),
    ('child = "upper"', "", "19: joints.shoulder.child: is missing"),
    ('child = "upper"', 'child = "uper"',
     "23: joints.shoulder.child: joint 'shoulder' refers to the body 'uper'; did you mean 'upper'?"),
    ('parent = "world"', 'parent = "fore arm"',
     "10: bodies.upper: bodies form a cycle that does not hang from the world: upper -> fore arm -> upper"),
    ("rpy_deg = [0, 90, 0]", "quaternion_wxyz = [1, 1, 0, 0]",
     "24: joints.shoulder.placement.quaternion_wxyz: quaternion (w, x, y, z) (1.0, 1.0, 0.0, 0.0) has length"),
    ("rpy_deg = [0, 90, 0]", "rpy = [0, 0, 0], rpy_deg = [0, 90, 0]",
     "24: joints.shoulder.placement: has both rpy and rpy_deg; one is enough"),
    ("rpy_deg = [0, 90, 0]", 'rotation_vector = [0, 0, "l1"]',
     "24: joints.shoulder.placement: rotation_vector takes numbers; for formulas use rpy"),
    ("placement = { translation = [0, 0, 1], rpy_deg = [0, 90, 0] }", "placement = [0, 0]",
     "24: joints.shoulder.placement: has 2 entries, expected 3"),
    ("placement = { translation = [0, 0, 1], rpy_deg = [0, 90, 0] }", "placement = 1",
     "24: joints.shoulder.placement: is 1, expected a table"),
    ("lower = -1", "lower = 2", "25: joints.shoulder.limits.lower: lower limit 2.0 is above the upper limit 1.0"),
    ("lower = -1", "lower = [-1, -1]",
     "25: joints.shoulder.limits.lower: joint 'shoulder': lower limit has 2 entries, expected 1"),
    ("effort = inf", "effort = -1", "25: joints.shoulder.limits.effort: limit effort is (-1.0,), expected zero"),
    ("effort = inf", "effort = nan", "25: joints.shoulder.limits.effort: limit effort is (nan,), NaN is no limit"),
    ("stiffness = 3", "rest = 3", "26: joints.shoulder.spring.stiffness: is missing"),
    ("viscous = 0.1", "viscous = -0.1", "27: joints.shoulder.friction.viscous: viscous friction is -0.1, expected"),
    ("armature = 0.01", "armature = [1, 2]",
     "28: joints.shoulder.armature: joint 'shoulder': armature has 2 entries, expected 1"),
    ("ratio = 50", 'ratio = "a"', "31: joints.shoulder.rotors[0].ratio: uses the parameter 'a'; there is m1, l1"),
    ("ratio = 50", "ratio = 50\ndof = 1.0", "32: joints.shoulder.rotors[0].dof: is 1.0, expected a whole number"),
    ("ratio = 50", "ratio = 50\ndof = 1", "30: joints.shoulder.rotors: joint 'shoulder': rotor on dof 1, but"),
    ('[frames.tip]\nbody = "fore arm"', '[frames.tip]\nbody = "forearm"',
     "40: frames.tip.body: frame 'tip' is on the body 'forearm'; did you mean 'fore arm'?"),
    ("[frames.base]", "[frames.upper]", "43: frames.upper.body: frame 'upper' has the name of a body"),
    ('frame_a = "tip"', 'frame_a = "tap"', "47: loops.closure.frame_a: loop 'closure' refers to the frame 'tap'; did"),
    ('joint = "shoulder"', 'joint = "soulder"', "51: actuators.motor.joint: actuator 'motor' drives the joint"),
    ('joint = "shoulder"', 'joint = "shoulder"\ndof = 3', "52: actuators.motor.dof: actuator 'motor' drives dof 3"),
    ("limits = [-1, 1]", "limits = [1, -1]", "52: actuators.motor.limits: actuator 'motor': limits are 1.0 .. -1.0"),
    ("limits = [-1, 1]", "limits = [1]", "52: actuators.motor.limits[1]: is missing"),
    ('"joint_position"', '"joint_positon"', "55: sensors.encoder.kind: is 'joint_positon', expected 'joint_position',"),
    ('target = "shoulder"', 'target = "elbo"', "56: sensors.encoder.target: sensor 'encoder' measures the joint"),
    ("name = ", "name == ", "3: not valid TOML: Invalid value"),
    ("[joints.elbow]", "[joints.shoulder]", "34: not valid TOML: Cannot declare ('joints', 'shoulder') twice"),
]  # fmt: skip


def message(text: str, syntax: str = "toml") -> str:
    with pytest.raises(al.FileError) as caught:
        native.loads(text, syntax, name="arm.toml")
    return str(caught.value)


def test_the_good_file_loads():
    model = native.loads(GOOD)
    assert model.nv == 4
    assert model.joint("shoulder").rotors[0].ratio == 50


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_errors_are_placed(old, new, expected):
    assert GOOD.count(old) >= 1
    said = message(GOOD.replace(old, new, 1))
    assert said.startswith(f"arm.toml:{expected}")


def test_several_errors_come_in_the_order_of_the_file():
    text = GOOD.replace('"m1"', '"mm"').replace("ratio = 50", "ratio = true").replace("type =", "typ =", 1)
    lines = message(text).splitlines()
    assert [line.split(": ")[0] for line in lines] == ["arm.toml:11", "arm.toml:19"]


def test_many_errors_are_cut_short():
    bodies = "".join(f"[bodies.b{k}]\nmass = 1\n" for k in range(9))
    lines = message(GOOD + bodies).splitlines()
    assert len(lines) == 6
    assert lines[-1] == "... and 4 more"


COUPLED = GOOD.replace('type = "spherical"', 'type = "revolute"') + (
    '[couplings.c]\njoint = "shoulder"\nmasters = ["elbow"]\nratios = [1]\n'
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('masters = ["elbow"]', 'masters = ["elbo"]', "59: couplings.c.masters: coupling 'c' refers to the joint"),
        ('masters = ["elbow"]', 'masters = ["shoulder"]', "58: couplings.c.joint: coupling 'c' couples the joint"),
        ("ratios = [1]", "ratios = [1, 2]", "60: couplings.c.ratios: coupling ratios has 2 entries, expected 1"),
        ("ratios = [1]", "ratios = [1]\noffset = []", "61: couplings.c.offset: is a list of 0, expected a number"),
        ('type = "revolute"\nparent = "upper"', 'type = "free"\nparent = "upper"',
         "59: couplings.c.masters: coupling 'c': joint 'elbow' has 6 degrees of freedom, expected 1"),
    ],
)  # fmt: skip
def test_couplings(old, new, expected):
    assert native.loads(COUPLED).couplings
    assert message(COUPLED.replace(old, new)).startswith(f"arm.toml:{expected}")


def test_massless_leaf_and_missing_joint_are_placed():
    text = 'format = "alembert-model"\nversion = 1\n[bodies.b]\n'
    assert message(text).startswith("arm.toml:3: bodies.b: body 'b' has no joint")
    joint = '[joints.j]\ntype = "prismatic"\nparent = "world"\nchild = "b"\n'
    assert message(text + joint).startswith(
        "arm.toml:3: bodies.b: body 'b' on the moving joint 'j' has no mass"
    )
    twice = text + "inertia = {mass = 1}\n" + joint + joint.replace("joints.j", "joints.k")
    assert message(twice).startswith("arm.toml:3: bodies.b: body 'b' is moved by two joints, 'j' and 'k'")


def test_gravity_of_the_builder_is_placed():
    text = 'format = "alembert-model"\nversion = 1\ngravity = [0, 0, 1e400]\n'
    assert message(text) == "arm.toml:3: gravity[2]: is inf, expected a finite number"


# --- TOML lines ---------------------------------------------------------------------------------------------


def test_lines_of_every_kind_of_toml():
    text = '''# comment
a = 1 # b = 2
"b.c" = """
x = 1 \\""" ""\\
"""""
'd' = [ # [
  1, "]", # ]
  { e = 1, f.g = [[2], [
3]] },
]
h . "i\\u0041" . j = true

[k.l]
m = \'\'\'
[no]\'\'\'\'
[[k.n]]
o = 1
[[k.n]]
[k.n.p]
q = 1e5
[[k.n.r]]
s = "\\"#"
[[k.n.r]]
s = {}
[k]
t = 1979-05-27 07:32:00
'''
    source = toml.parse(text, "x.toml")
    lines = {location.shown(place): line for place, line in source._lines.items()}

    def places(data, place=()):
        yield place
        items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
        for key, value in items:
            yield from places(value, (*place, key))

    assert set(source._lines) == set(places(source.data))
    expected = {
        "a": 2, "'b.c'": 3, "d": 6, "d[0]": 7, "d[1]": 7, "d[2]": 8, "d[2].f.g[1]": 8, "d[2].f.g[1][0]": 9,
        "h.iA.j": 11, "k.l": 13, "k.l.m": 14, "k.n[0].o": 17, "k.n[1]": 18, "k.n[1].p.q": 20,
        "k.n[1].r[0].s": 22, "k.n[1].r[1]": 23, "k.n[1].r[1].s": 24, "k.t": 26, "k": 13,
    }  # fmt: skip
    assert {key: lines[key] for key in expected} == expected
    assert source.line(("d", 2, "nothing")) == 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = [1", r"x.toml:1: not valid TOML: Unclosed array at the end of the document"),
        ("\n\nb = \n", r"x.toml:3: not valid TOML: Invalid value"),
        ("a = " + "[" * 5000, r"x.toml: tables and lists are nested more than 24 deep"),
        ("a = " + "[" * 30 + "]" * 30, r"x.toml: tables and lists are nested more than 24 deep"),
        ("a." * 30 + "b = 1", r"x.toml: tables and lists are nested more than 24 deep"),
        ("a = " + "1" * 5000, r"x.toml:1: not valid TOML: Exceeds the limit"),
        ("a = 1\na = 2", r"x.toml:2: not valid TOML: Cannot overwrite a value"),
        ("a = 2026-13-01", r"x.toml:1: not valid TOML: "),
    ],
)
def test_bad_toml(text, expected):
    with pytest.raises(al.FileError, match=re.escape(expected)):
        native.loads(text, name="x.toml")


# --- YAML ---------------------------------------------------------------------------------------------------

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("format: alembert-model\nversion: 1\nname: [", "x.yaml:3: not valid YAML: while parsing a flow node"),
        ("format: alembert-model\nversion: 1\nname: 3\n", "x.yaml:3: name: is 3, expected a text"),
        ("format: alembert-model\nversion: 1\nbodies:\n", "x.yaml:3: bodies: is empty, expected a table"),
        ("format: alembert-model\nversion: 1\nbodies:\n  b:\n    inertia:\n      mas: 1\n",
         "x.yaml:6: bodies.b.inertia.mas: unknown key 'mas'; did you mean 'mass'?"),
        ("format: alembert-model\nversion: 1\nbodies: {b: {visuals: [\n {box: {size: [1]}}]}}\n",
         "x.yaml:4: bodies.b.visuals[0].box.size: box size has 1 entries, expected 3"),
        ("- a", "x.yaml:1: the file is a list of 1, expected a table of a model's parts"),
        ("hello", "x.yaml:1: the file is 'hello', expected a table of a model's parts"),
        ("", "x.yaml:1: format: is missing"),
        ("a: b\na: c", "x.yaml:2: the key 'a' occurs twice"),
        ("a: 1\n1: c", "x.yaml:2: a key is '1', expected a text; put it in quotes"),
        ("[a]: 1", "x.yaml:1: a key is a list or table, expected a text; put it in quotes"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "x.yaml:3: merge keys (<<) are not read; write the values out"),
        ("a: !!python/object/apply:os.system [ls]", "x.yaml:1: the tag 'python/object/apply:os.system' is not"),
        ("\na: !thing 3", "x.yaml:2: the tag '!thing' is not allowed in a model file"),
        ("a: !!int x", "x.yaml:1: 'x' is no int"),
        ("a: !!float []", "x.yaml:1: "),
        ("a: *b", "x.yaml:1: not valid YAML: found undefined alias"),
        ("a: &x [*x]", "x.yaml: tables and lists are nested more than 24 deep"),
        ("[" * 500, "x.yaml: tables and lists are nested more than 24 deep"),
        ("a: b\n---\nc: d", "x.yaml:2: not valid YAML: expected a single document in the stream"),
        ("\na: \x07", "x.yaml:2: not valid YAML: special characters are not allowed"),
        (BOMB, ": aliases expand to more than 100000 values"),
    ],
)  # fmt: skip
def test_bad_yaml(text, expected):
    with pytest.raises(al.FileError) as caught:
        native.loads(text, "yaml", name="x.yaml")
    assert expected in str(caught.value)
    assert str(caught.value).startswith("x.yaml:")


def test_yaml_scalars():
    text = "{a: 0x1F, b: 0o17, c: 1_000, d: -.INF, e: 1e-5, f: yes, g: 2001-01-01, h: ~, i: 010, j: .nan, k: True}"
    data = yaml.parse(text, "x").data
    assert str(data.pop("j")) == "nan"
    assert data == {
        "a": 31, "b": 15, "c": 1000, "d": float("-inf"), "e": 1e-5, "f": "yes", "g": "2001-01-01", "h": None,
        "i": 10, "k": True,
    }  # fmt: skip


# --- files that are no text ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a = 1\nb = '\xff'", r"m\.toml:2: byte 0xff is not UTF-8"),
        (b"a = 1\n\n\0", r"m\.toml:3: holds a NUL byte; it is not a text file"),
        ("a = 1".encode("utf-16"), r"m\.toml:1: holds a NUL byte"),
    ],
)
def test_not_text(tmp_path, content, expected):
    path = tmp_path / "m.toml"
    path.write_bytes(content)
    with pytest.raises(al.FileError, match=expected):
        load(path)


def test_a_byte_order_mark_is_fine(tmp_path):
    path = tmp_path / "m.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load(path) == native.loads(GOOD)


def test_not_a_file(tmp_path):
    with pytest.raises(al.FileError, match=r"none\.yaml: cannot be read: No such file or directory"):
        load(tmp_path / "none.yaml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(al.FileError, match=r"folder\.toml: cannot be read: Is a directory"):
        load(tmp_path / "folder.toml")
    with pytest.raises(al.FileError, match="cannot be read: embedded null byte"):
        load("a\0b.toml")
    (tmp_path / "device.toml").symlink_to("/dev/null")
    with pytest.raises(al.FileError, match=r"device\.toml: is not a regular file"):
        load(tmp_path / "device.toml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_no_permission(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text(GOOD)
    path.chmod(0)
    with pytest.raises(al.FileError, match=r"m\.toml: cannot be read: Permission denied"):
        load(path)


@pytest.mark.parametrize("suffix", ["toml", "yaml"])
def test_large_files_are_not_read(tmp_path, suffix):
    path = tmp_path / f"m.{suffix}"
    with path.open("wb") as file:
        file.truncate(100_000_001)  # sparse
    with pytest.raises(al.FileError, match=rf"m\.{suffix}: has 100000001 bytes; at most \d+ are read"):
        load(path)

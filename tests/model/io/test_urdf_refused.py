"""Every refusal of the URDF and XML readers, with its message and place; damaged files by the hundred."""

import re
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_urdf import INERTIAL, LIMIT, joint, link, robot

from alembert import AlembertError, AlembertWarning, ArgumentError, FileError, Model, UnsupportedError
from alembert.model.io import xml
from alembert.model.io.urdf import load_urdf

TWO = link("a") + link("b")


def inertial(mass='<mass value="1"/>', inertia='<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'):
    return link("a", f"<inertial>{mass}{inertia}</inertial>")


def visual(inside):
    return link("a", f"<visual>{inside}</visual>")


def one(kind, inside=""):
    return TWO + joint("j", kind, "a", "b", inside)


REFUSED = [
    # the document
    ("<sdf/>", 1, "the root element is <sdf>, expected <robot>"),
    ("<robot>", 1, "not well-formed XML: no element found"),
    ("<robot>\n<link</robot>", 2, "not well-formed XML: not well-formed (invalid token)"),
    (robot(), 1, "the robot has no links"),
    (robot("<link/>"), 2, "<link> has no attribute 'name'"),
    (robot('<link name=" "/>'), 2, "<link> has an empty attribute 'name'"),
    (
        robot(f'<link name="{"x" * 1001}"/>'),
        2,
        "<link> attribute 'name' has 1001 characters; at most 1000 are allowed",
    ),
    # topology
    (robot(link("a"), link("a")), 3, "two links are called 'a' (first on line 2)"),
    (
        robot(TWO, joint("j", "fixed", "a", "b"), joint("j", "fixed", "a", "b")),
        5,
        "two joints are called 'j' (first on line 4)",
    ),
    (robot(TWO), 3, "links 'a' and 'b' both have no joint above them (2 roots), expected one root"),
    (
        robot(link("arm"), joint("j", "fixed", "arm", "arn")),
        3,
        "joint 'j' has the child link 'arn'; did you mean 'arm'?",
    ),
    (
        robot(link("arm"), joint("j", "fixed", "x", "arm")),
        3,
        "joint 'j' has the parent link 'x'; there is arm",
    ),
    (
        robot(TWO, joint("j", "fixed", "a", "b"), joint("k", "fixed", "a", "b")),
        5,
        "link 'b' is moved by two joints, 'j' and 'k'",
    ),
    (
        robot(TWO, joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")),
        5,
        "joints form a cycle: a -> b -> a",
    ),
    (
        robot(link("c"), TWO, joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")),
        6,
        "joints form a cycle",
    ),
    (robot(link("a"), joint("j", "fixed", "a", "a")), 3, "joints form a cycle: a -> a"),
    (
        robot(link("a"), link("world"), joint("j", "fixed", "a", "world")),
        3,
        "link 'world' is moved by a joint; that name is the inertial frame's",
    ),
    # joints
    (robot('<joint name="j" type="fixed"/>'), 2, "<joint> has no <parent>"),
    (robot('<joint name="j" type="fixed"><parent link="a"/></joint>'), 2, "<joint> has no <child>"),
    (robot('<joint name="j"/>'), 2, "<joint> has no attribute 'type'"),
    (robot(one("revolut", LIMIT)), 4, "joint 'j' is of type 'revolut'; did you mean 'revolute'?"),
    (robot(one("revolute")), 4, "joint 'j' is revolute and has no <limit>, which the format requires"),
    (robot(one("prismatic", "<limit/>")), 4, "<limit> has no attribute 'velocity'"),
    (
        robot(one("revolute", '<limit lower="2" upper="1" effort="1" velocity="1"/>')),
        4,
        "lower limit 2.0 is above the upper limit 1.0",
    ),
    (
        robot(one("continuous", '<limit effort="-1" velocity="1"/>')),
        4,
        "limit effort is (-1.0,), expected zero or more",
    ),
    (
        robot(one("revolute", LIMIT + '<axis xyz="0 0 2"/>')),
        4,
        "revolute axis is (0.0, 0.0, 2.0) of length 2, expected a unit vector; divide by its length: (0.0, 0",
    ),
    (robot(one("prismatic", LIMIT + '<axis xyz="0 0 0"/>')), 4, "an axis needs a direction"),
    (robot(one("planar", '<axis xyz="0 0 3"/>')), 4, "of length 3, expected a unit vector"),
    (robot(one("revolute", LIMIT + '<axis xyz="0 0"/>')), 4, "'xyz' is '0 0', expected 3 numbers, got 2"),
    (
        robot(one("revolute", LIMIT + "<origin/>\n<origin/>")),
        5,
        "<joint> has 2 <origin> elements, expected one (first on line 4)",
    ),
    (
        robot(one("continuous", '<dynamics damping="-1"/>')),
        4,
        "viscous friction is -1.0, expected zero or more",
    ),
    (robot(one("continuous", "<mimic/>")), 4, "<mimic> has no attribute 'joint'"),
    (
        robot(one("continuous", '<mimic joint="jj"/>')),
        4,
        "joint 'j' mimics the joint 'jj'; did you mean 'j'?",
    ),
    (robot(one("continuous", '<mimic joint="j"/>')), 4, "coupling 'j' couples the joint 'j' to itself"),
    (
        robot(link("c"), joint("k", "floating", "b", "c", ""), one("continuous", '<mimic joint="k"/>')),
        3,
        "joint 'k' has 6 degrees of freedom, expected 1",
    ),
    (
        robot(link("a"), link("b", ""), joint("j", "continuous", "a", "b", "")),
        3,
        "body 'b' on the moving joint 'j' has no mass, nor has anything outboard of it",
    ),
    # numbers
    (
        robot(inertial('<mass value="nan"/>')),
        2,
        "<mass> attribute 'value' has 'nan', expected a finite number",
    ),
    (
        robot(inertial('<mass value="1e999"/>')),
        2,
        "<mass> attribute 'value' has '1e999', which is out of range",
    ),
    (
        robot(inertial('<mass value="1_0"/>')),
        2,
        "<mass> attribute 'value' has '1_0', expected a finite number",
    ),
    (robot(inertial('<mass value=""/>')), 2, "<mass> attribute 'value' is '', expected 1 number, got 0"),
    (robot(inertial("<mass/>")), 2, "<mass> has no attribute 'value'"),
    (
        robot(one("fixed", '<origin xyz="1 inf 3"/>')),
        4,
        "<origin> attribute 'xyz' has 'inf', expected a finite number",
    ),
    (
        robot(one("fixed", '<origin quat_xyzw="1 2 3 4"/>')),
        4,
        "quaternion (w, x, y, z) (4.0, 1.0, 2.0, 3.0) has length 5.47723, expected 1",
    ),
    (
        robot(one("fixed", '<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>')),
        4,
        "<origin> has both rpy and quat_xyzw, expected one of them",
    ),
    # links
    (robot(inertial("")), 2, "<inertial> has no <mass>"),
    (robot(inertial(inertia="")), 2, "<inertial> has no <inertia>"),
    (robot(inertial(inertia='<inertia ixx="1"/>')), 2, "<inertia> has no attribute 'ixy'"),
    (
        robot(link("a", INERTIAL.replace('izz="1"', 'izz="3"'))),
        2,
        "body 'a': inertia violates the triangle inequality: principal moments (1, 1, 3), 3 > 1 + 1; "
        "without strict=True it is kept, with a warning",
    ),
    (robot(inertial('<mass value="-1"/>')), 2, "body 'a': mass is -1, expected a positive number"),
    (robot(visual("")), 2, "<visual> has no <geometry>"),
    (
        robot(visual("<geometry/>")),
        2,
        "<geometry> has 0 shapes, expected one of box, cylinder, capsule, sphere, mesh",
    ),
    (
        robot(visual('<geometry><sphere radius="-1"/></geometry>')),
        2,
        "<sphere> attribute 'radius' has '-1', expected 0 or more",
    ),
    (robot(visual("<geometry><mesh/></geometry>")), 2, "<mesh> has no attribute 'filename'"),
    (
        robot('<material name="m"><color rgba="1 1 1"/></material>'),
        2,
        "'rgba' is '1 1 1', expected 4 numbers, got 3",
    ),
]


@pytest.mark.parametrize(("text", "line", "message"), REFUSED, ids=[entry[2][:40] for entry in REFUSED])
def test_refused_with_file_line_and_reason(text, line, message):
    with pytest.raises(FileError) as caught:
        load_urdf(text, strict=True)
    assert str(caught.value).startswith(f"<text>:{line}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            robot('<xacro:include filename="x"/>', attributes='xmlns:xacro="x"'),
            "<text>:2: <xacro:include> is a macro of xacro; expand the file with xacro first",
        ),
        (robot(attributes='version="3.0"'), "<text>:1: URDF version '3.0' is not supported"),
        (
            robot(one("floating", '<dynamics damping="1"/>')),
            "<text>:4: <dynamics> of the floating joint 'j' is not supported: one coefficient for 6 degrees",
        ),
    ],
)
def test_unsupported(text, message):
    with pytest.raises(UnsupportedError, match=r"^" + re.escape(message)):
        load_urdf(text)


def test_negative_mass_is_never_admitted():
    with pytest.raises(FileError, match=r"^<text>:2: body 'a': mass is -1, expected a positive number$"):
        load_urdf(robot(inertial('<mass value="-1"/>')), unphysical="warn")


def test_arguments():
    with pytest.raises(ArgumentError, match="unphysical is 'ignore', expected 'error' or 'warn'"):
        load_urdf(robot(), unphysical="ignore")
    with pytest.raises(ArgumentError, match="model file is int, expected a path or a text starting with '<'"):
        load_urdf(3)


def test_floating_world():
    with pytest.raises(FileError, match=r"^<text>:2: floating=True, but the root link is called 'world'"):
        load_urdf(robot(link("world")), floating=True, strict=True)


# --- hostile files --------------------------------------------------------------------------------


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileError, match=r"none\.urdf: cannot be read: No such file or directory"):
        load_urdf(tmp_path / "none.urdf")
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        load_urdf(tmp_path)
    with pytest.raises(FileError, match="cannot be read: embedded null byte"):
        load_urdf("a\0b")


def test_large_files_are_refused_unread(tmp_path):
    path = tmp_path / "large.urdf"
    with path.open("wb") as stream:
        stream.truncate(xml.LARGEST_XML * 5)
    with pytest.raises(FileError, match=r"large\.urdf: has 100000000 bytes; at most 20000000 are read"):
        load_urdf(path)
    with pytest.raises(
        FileError, match="<text>: document of 20000001 characters; at most 20000000 are allowed"
    ):
        load_urdf("<" + " " * xml.LARGEST_XML)


def test_deep_files_are_refused():
    with pytest.raises(FileError, match=r"^<text>:101: elements nested deeper than 100 levels$"):
        load_urdf("<a>\n" * 100_000)


def test_files_of_many_elements_are_refused(monkeypatch):
    monkeypatch.setattr(xml, "MAX_ELEMENTS", 1000)
    with pytest.raises(FileError, match=r"^<text>:1: more than 1000 elements$"):
        load_urdf("<robot>" + "<a/>" * 2000 + "</robot>")


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE robot [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE robot SYSTEM "http://example.com/robot.dtd">',
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
    ],
)
def test_document_types_and_entities_are_refused(doctype):
    text = f'<?xml version="1.0"?>\n{doctype}\n<robot name="&a;"/>'
    with pytest.raises(FileError, match=r"^<text>:2: the document has a DOCTYPE"):
        load_urdf(text)


def test_entities_of_the_document_type_alone_are_unknown():
    with pytest.raises(FileError, match=r"^<text>:2: not well-formed XML: undefined entity"):
        load_urdf('<robot>\n<link name="&a;"/></robot>')


@pytest.mark.parametrize("encoding", ["nonsense", "utf-7", "shift_jis", "idna"])
def test_odd_encodings(tmp_path, encoding):
    path = tmp_path / "a.urdf"
    path.write_bytes(
        f'<?xml version="1.0" encoding="{encoding}"?><robot><link name="a\xe9"/></robot>'.encode("latin1")
    )
    with pytest.raises(FileError, match=r"a\.urdf:1: (unknown or unsupported encoding|not well-formed XML)"):
        load_urdf(path)


def test_other_encodings_are_read(tmp_path):
    path = tmp_path / "a.urdf"
    for encoding in ("latin1", "utf-16", "utf-8"):
        path.write_bytes(
            f'<?xml version="1.0" encoding="{encoding}"?><robot><link name="é"/></robot>'.encode(encoding)
        )
        assert load_urdf(path).bodies[0].name == "é"


def test_text_that_is_no_unicode():
    with pytest.raises(FileError, match=r"^<text>:2: text that is no valid Unicode$"):
        load_urdf('<robot>\n<link name="\ud800"/></robot>')


# --- extensions and places ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inside", "feature"),
    [
        *(
            (f'<transmission><actuator>\n<drake:{name} value="2"/></actuator></transmission>',
             f"<drake:{name}> in <actuator>")
            for name in ("rotor_inertia", "gear_ratio")
        ),
        *(
            (f"<gazebo>\n<{name}>1</{name}></gazebo>", f"<{name}> in <gazebo>")
            for name in ("springStiffness", "springReference", "turnGravityOff")
        ),
        ("<transmission>\n<motorInertia>1</motorInertia></transmission>", "<motorInertia> in <transmission>"),
        ('\n<loop_joint name="l"/>', "<loop_joint> in <robot>"),
        ('<mujoco>\n<option gravity="0 0 0"/></mujoco>', "attribute 'gravity' of <option>"),
        *(
            (link("b") + joint("j", "continuous", "a", "b", f'<dynamics {name}="1"/>'),
             f"attribute {name!r} of <dynamics>")
            for name in ("armature", "spring_stiffness", "spring_reference")
        ),
    ],
)  # fmt: skip
def test_extensions_that_change_the_physics(inside, feature):
    text = robot(inside, link("a"))
    with pytest.raises(UnsupportedError) as caught:
        load_urdf(text, strict=True)
    assert str(caught.value) == (
        f"<text>:3: {feature} changes the physics and is not supported; "
        "without strict=True it is left out, with a warning"
    )
    with pytest.warns(AlembertWarning) as warned:
        assert load_urdf(text).body("a").inertia.mass == 2
    assert str(warned[-1].message).partition("\n")[0] == (
        f"<text>: not supported and left out; it changes the physics (strict=True refuses it): {feature} (line 3)"
    )


def test_extensions_is_checked():
    with pytest.raises(ArgumentError, match=r"^extensions is 'warn', expected 'error' or 'skip'$"):
        load_urdf(robot(link("a")), extensions="warn")


@pytest.mark.parametrize("kind", ["continuous", "planar"])
def test_the_place_is_told_once(kind):
    with pytest.raises(FileError) as caught:
        load_urdf(robot(one(kind, '\n<axis xyz="0 x 1"/>')))
    assert str(caught.value) == "<text>:5: <axis> attribute 'xyz' has 'x', expected a finite number"


# --- damaged files --------------------------------------------------------------------------------

GOOD = robot(
    '<material name="red"><color rgba="1 0 0 1"/></material>\n',
    link(
        "base", INERTIAL + '<visual><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>'
    ),
    *(link(name) for name in ("upper", "lower", "hand", "cart", "finger")),
    joint("shoulder", "revolute", "base", "upper", LIMIT + '<axis xyz="0 1 0"/><dynamics damping="0.1"/>'),
    joint("elbow", "continuous", "upper", "lower", '<origin xyz="0 0 1" rpy="0.1 0.2 0.3"/>'),
    joint("wrist", "planar", "lower", "hand", '<axis xyz="1 0 0"/>'),
    joint("rail", "prismatic", "base", "cart"),
    joint("grip", "prismatic", "hand", "finger", LIMIT + '<mimic joint="rail" multiplier="2"/>'),
)
_PIECES = re.findall(r'[\w.-]+|"[^"]*"|.', GOOD, flags=re.DOTALL)
_NOISE = st.sampled_from([
    "", "<", ">", "/", '"', "'", "&", "=", " ", "0", "-1", "nan", "1e400", "inf", "link", "joint", "robot",
    "base", "upper", "fixed", "floating", "planar", "revolute", "\0", "é", "\ud800", "<!--", "<![CDATA[",
    "<?x?>", "]]>", "<!DOCTYPE a>", "<link name='x'/>", "1e99", "1 2 3", "0 0 0", "world", "a:b", "\n",
])  # fmt: skip


def _attempt(text: str) -> None:
    """A model, or an error of Alembert's that says where."""
    if not text.lstrip().startswith("<"):
        text = "<" + text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)
        try:
            assert isinstance(load_urdf(text), Model)
        except AlembertError as error:
            assert re.match(r"<text>:\d+: \S", str(error)), str(error)  # noqa: PT017


def test_the_undamaged_file_loads():
    assert load_urdf(GOOD).nv == 7


@pytest.mark.parametrize("part", range(4))
def test_truncated_files(part):
    for length in range(1 + part, len(GOOD), 4):
        with pytest.raises(FileError, match=r"^<text>:\d+: "):
            load_urdf(GOOD[:length])


@settings(
    max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
)
@given(
    st.lists(
        st.tuples(st.integers(0, len(_PIECES) - 1), _NOISE | st.integers(0, len(_PIECES) - 1)),
        min_size=1,
        max_size=4,
    )
)
def test_mutated_files(changes):
    pieces = list(_PIECES)
    for position, change in changes:
        pieces[position] = change if isinstance(change, str) else _PIECES[change]
    _attempt("".join(pieces))


_VALUE = _NOISE.filter(lambda s: not set(s) & set("<&\0\ud800")) | st.text("0123456789.-+e ", max_size=8)


@settings(
    max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
)
@given(st.lists(st.tuples(st.integers(0, 10_000), _VALUE), min_size=1, max_size=3))
def test_wrong_values(changes):
    """Well-formed files whose attributes have other values."""
    text = GOOD
    for index, value in changes:
        places = list(re.finditer(r'"[^"]*"', text))
        place = places[index % len(places)]
        text = text[: place.start()] + '"' + value.replace('"', "") + '"' + text[place.end() :]
    _attempt(text)


@settings(
    max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
)
@given(st.binary(max_size=200), st.integers(0, len(GOOD)))
def test_foreign_bytes(tmp_path_factory, noise, position):
    path = tmp_path_factory.getbasetemp() / "noise.urdf"
    content = GOOD.encode()
    path.write_bytes(content[:position] + noise + content[position + len(noise) :])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)
        try:
            load_urdf(path)
        except AlembertError as error:
            assert re.search(r"noise\.urdf:\d+: ", str(error))  # noqa: PT017

"""The document behind the editor: what its changes do to the file, and what is refused."""

from importlib import resources

import pytest

import alembert as al
from alembert.editor import ModelDocument, python_source
from alembert.editor.document import typed
from alembert.editor.server import forms
from alembert.errors import ArgumentError, FileError
from alembert.model.io.native import dumps, loads
from alembert.model.io.schema import PARTS

TEMPLATES = resources.files("alembert.study").joinpath("templates")
LINKED = """format = "alembert-model"
version = 1
name = "linked"

[parameters]
l = 0.5   # m

[bodies.a]
inertia = { point = { mass = 1, position = [0, 0, "-l"] } }
[bodies.b]
inertia = { sphere = { mass = 1, radius = "l/4" } }

[joints.a] # the name of its body too
type = "revolute"
parent = "world"
child = "a"
[joints.slide]
type = "prismatic"
parent = "a"
child = "b"
placement = { translation = [0, 0, "-l"] }

[frames.tip]
body = "b"

[couplings.rack]
joint = "slide"
masters = ["a"]
ratios = ["l"]

[equations.cam]
formulas = ["s - l * x"]
inputs = { s = "slide", x = "tip.x" }

[sensors.angle]
kind = "joint_position"
target = "a"
[sensors.place]
kind = "point"
target = "tip"
"""


@pytest.fixture
def linked(tmp_path):
    path = tmp_path / "linked.toml"
    path.write_text(LINKED)
    return ModelDocument.open(path)


def test_a_file_that_is_not_changed_is_saved_as_it_was(tmp_path):
    for name, raw in (
        ("plain", LINKED.encode()),
        ("windows", b"\xef\xbb\xbf" + LINKED.replace("\n", "\r\n").encode()),
    ):
        path = tmp_path / f"{name}.toml"
        path.write_bytes(raw)
        document = ModelDocument.open(path)
        document.change([{"put": ["bodies", "b", "inertia", "sphere", "mass"], "typed": "2.5"}])
        assert document.save().read_bytes() == raw.replace(b"{ mass = 1, radius", b"{ mass = 2.5, radius")
        document.undo()
        document.save()
        assert path.read_bytes() == raw


def test_names_are_changed_wherever_they_are_meant(linked):
    linked.rename("bodies", "a", "upper arm")
    assert linked.problems == ()
    assert linked.model.sensors[0].target == "a"  # that is the joint
    assert linked.model.joint("a").child == "upper arm"
    linked.rename("joints", "a", "shoulder")
    assert linked.model.couplings[0].masters == ("shoulder",)
    assert linked.model.sensors[0].target == "shoulder"
    linked.rename("joints", "slide", "rail")
    linked.rename("frames", "tip", "end")
    assert dict(linked.model.equations[0].inputs) == {"s": "rail", "x": "end.x"}
    assert linked.model.sensors[1].target == "end"
    linked.rename("parameters", "l", "length")
    assert linked.problems == ()
    assert linked.model.parameter_values == {"length": 0.5}
    assert 'formulas = ["s - length * x"]' in linked.text
    assert "length = 0.5   # m" in linked.text
    for step in range(5):
        assert linked.before, step
        linked.undo()
    assert linked.text == LINKED


def test_what_cannot_be_without_a_part_goes_with_it(linked):
    assert linked.remove("bodies", "b") == [
        "joint slide",
        "frame tip",
        "coupling rack",
        "equation cam",
        "sensor place",
    ]
    assert linked.problems == ()
    assert [body.name for body in linked.model.bodies] == ["a"]
    linked.undo()
    assert "body b" in linked.remove("joints", "slide")
    linked.undo()
    assert linked.remove("sensors", "place") == []
    assert linked.after == []


def test_a_model_is_made_from_nothing(tmp_path):
    document = ModelDocument.open(tmp_path / "my arm.toml")
    assert document.model.name == "my_arm"
    assert document.add("bodies") == "body1"
    assert document.add("bodies", parent="body1") == "body2"
    for section in ("frames", "actuators", "sensors", "couplings", "equations", "loops", "parameters"):
        document.add(section, parent="body2")
    assert document.problems == ()
    assert document.model.joint("body2_joint").placement.translation == (0.0, 0.0, -0.5)
    assert document.model.frame("frame1").body == "body2"
    assert len(document.model.loops) == 1
    document.move("body2", [0.1, 0.0, -0.25])
    assert document.model.joint("body2_joint").placement.translation == (0.1, 0.0, -0.75)
    document.save()
    assert al.load(tmp_path / "my arm.toml") == document.model


def test_errors_are_known_by_their_place(linked):
    before = linked.model
    linked.change([{"put": ["bodies", "a", "inertia", "point", "mass"], "typed": "-1"}])
    ((place, what),) = linked.problems
    assert place == ("bodies", "a", "inertia", "point", "mass")
    assert what == "body 'a': mass is -1, expected a positive number"
    assert linked.model is before  # for the picture
    linked.change([{"put": ["bodies", "a", "inertia", "point", "mass"], "typed": "2 * k"}])
    assert linked.problems[0][1].startswith("uses the parameter 'k'")
    linked.change([{"put": ["joints", "slide", "type"], "value": "slider"}])
    assert {place for place, _ in linked.problems} == {
        ("bodies", "a", "inertia", "point", "mass"),
        ("joints", "slide", "type"),
    }
    linked.change(
        [{"put": ["joints", "slide", "type"], "value": "prismatic"}, {"remove": ["joints", "slide", "none"]}]
    )
    linked.change([{"put": ["bodies", "a", "inertia", "point", "mass"], "typed": " 3 "}])
    assert linked.problems == ()
    assert linked.model.body("a").inertia.mass == 3


def test_what_is_typed_becomes_a_number_or_a_formula():
    assert typed({"a": ["1", "-2.50", " l/2 "], "b": "inf", "c": 4}) == {
        "a": [1, -2.5, "l/2"],
        "b": float("inf"),
        "c": 4,
    }
    assert typed("nan") == "nan"  # no number: the format says so


def test_the_same_number_is_not_written_again(linked):
    linked.change([{"put": ["parameters", "l"], "typed": "0.50"}])
    assert linked.text == LINKED
    linked.change([{"put": ["bodies", "a", "inertia", "point", "mass"], "typed": "1.0"}])
    assert linked.text == LINKED
    linked.change([{"put": ["couplings", "rack", "ratios"], "toml": '["l"] # the same'}])
    assert linked.text == LINKED
    assert linked.before == []


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda d: d.undo(), "undo: there is nothing to undo"),
        (lambda d: d.redo(), "redo: there is nothing to redo"),
        (lambda d: d.add("wheels"), "a model has no section 'wheels'"),
        (lambda d: d.add("joints"), "a joint is added together with its body"),
        (lambda d: d.add("bodies", parent="c"), "there is no body 'c'"),
        (lambda d: d.remove("bodies", "c"), "there is no body 'c'"),
        (lambda d: d.rename("bodies", "c", "d"), "there is no body 'c'"),
        (lambda d: d.rename("bodies", "a", " "), "a body needs a name"),
        (lambda d: d.rename("bodies", "a", "b"), "there is already a body 'b'"),
        (lambda d: d.rename("bodies", "a", "world"), "'world' is a name of its own"),
        (lambda d: d.change([{"put": [], "value": 1}]), r"place is \[\], expected a list of keys"),
        (lambda d: d.change([{"put": ["name"], "toml": "["}]), "not valid TOML: "),
        (lambda d: d.move("c", [0, 0, 1]), "body 'c' has no joint to be placed"),
        (
            lambda d: d.move("b", [0, 0, 1]),
            "joint 'slide' stands at the formula '-l', which dragging would replace; change it in the form",
        ),
        (lambda d: d.write("a = "), "linked.toml:1: not valid TOML: Invalid value"),
        (lambda d: d.save("../x.toml"), "'../x.toml' is no name for a model file"),
        (
            lambda d: ModelDocument.open(None).save(),
            "this model has no file yet; give it a name that ends with .toml",
        ),
        (lambda d: ModelDocument.open("none/x.toml"), "cannot be made: there is no folder none"),
    ],
)
def test_what_cannot_be_done_is_said(linked, act, message):
    with pytest.raises((ArgumentError, FileError), match=message):
        act(linked)
    assert linked.text == LINKED


def test_work_of_others_is_not_written_over(linked, tmp_path):
    linked.rename("bodies", "a", "c")
    other = LINKED.replace("0.5", "0.6")
    linked.path.write_text(other)
    with pytest.raises(
        FileError,
        match=r"linked.toml was changed by another program; save under another name, or write over it",
    ):
        linked.save()
    (tmp_path / "x.toml").write_text("")
    with pytest.raises(FileError, match=r"x.toml is there already; save under another name"):
        linked.save("x.toml")
    assert linked.path.read_text() == other
    assert linked.save("y.toml") == tmp_path / "y.toml"
    assert linked.save("linked.toml", over=True).read_text() == linked.text
    linked.path = tmp_path / "none" / "z.toml"
    with pytest.raises(FileError, match="cannot be written"):
        linked.save()


def test_other_formats_are_saved_as_toml(tmp_path):
    al.save(al.library.two_link(), tmp_path / "arm.yaml")
    document = ModelDocument.open(tmp_path / "arm.yaml")
    assert document.path == tmp_path / "arm.toml"
    assert document.saved is None
    assert al.load(document.save()) == al.load(tmp_path / "arm.yaml")


def test_files_of_other_kinds_are_refused(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('format = "alembert-study"\nversion = 1\n')
    with pytest.raises(
        FileError,
        match=r"study.toml:1: format: is 'alembert-study', .* this is no Alembert model: alembert run",
    ):
        ModelDocument.open(path)


def test_a_text_is_written_as_a_whole(linked):
    linked.write(LINKED.replace("0.5 ", "0.7 "))
    assert linked.model.parameter_values == {"l": 0.7}
    linked.undo()
    assert linked.text == LINKED


# --- Python -------------------------------------------------------------------------------------------------


def texts():
    for name in ("acrobot", "arm", "fourbar", "pendulum", "satellite"):
        yield TEMPLATES.joinpath(name, "model.toml").read_text(encoding="utf-8")
    yield LINKED
    yield dumps(al.library.random_tree(5))
    builder = al.ModelBuilder('bending "beam"')
    beam = al.flexible.beam(1.0, 0.2, EI_y=3.0, bending_z=1)
    builder.body("beam", beam, joint=al.Universal(), limits=al.Limits((-1, -1), (1, float("inf"))))
    builder.body("tip", al.Inertia.point(0.1), joint=al.Fixed(), parent="beam", node="tip")
    yield dumps(builder.build())


def test_the_python_makes_the_same_model():
    for text in texts():
        document = ModelDocument(None, text)
        source = python_source(document.model, document.data)
        made = {}
        exec(source, made)
        assert made["model"] == loads(text), source


# --- forms --------------------------------------------------------------------------------------------------


def test_every_field_of_every_part_has_a_place_in_its_form():
    import dataclasses

    from alembert.joints import PAIRS, REGISTRY

    found = forms()["sections"]
    for section, (_, record) in PARTS.items():
        own = {field.name for field in dataclasses.fields(record)} - {"name", "type"}
        kinds = found[section] if isinstance(found[section], dict) else {None: found[section]}
        for kind, fields in kinds.items():
            cls = (REGISTRY | PAIRS).get(kind)
            wanted = own | ({field.name for field in dataclasses.fields(cls)} if cls else set())
            assert {field["key"] for field in fields} == wanted, (section, kind)
    lower = next(f for f in found["joints"]["cylindrical"] if f["key"] == "limits")["fields"][0]
    assert (lower["labels"], lower["units"]) == (["angle", "distance"], ["rad", "m"])


def test_parameters_of_gravity_are_renamed_with_the_rest():
    head = 'format = "alembert-model"\nversion = 1\nname = "m\\n\U0001f600"\n'
    text = head + 'gravity = [0, 0, "-g"]\n[parameters]\ng = 1.62\n'
    document = ModelDocument(None, text)
    document.rename("parameters", "g", "moon")
    assert not document.problems
    assert 'gravity = [0, 0, "-moon"]' in document.text
    space = {}
    exec(python_source(document.model, document.data), space)
    assert space["model"] == document.model


def test_texts_and_names_without_end(tmp_path):
    """The page sends what it likes: no bare error."""
    deep = f'format = "alembert-model"\nversion = 1\nx = {"[" * 3000}{"]" * 3000}\n'
    with pytest.raises(FileError, match="nested more than 24 deep"):
        ModelDocument(None, deep)
    document = ModelDocument.open(tmp_path / "a.toml")
    with pytest.raises(FileError, match="nested more than 24 deep"):
        document.write(deep)
    long = f"{'n' * 400}.toml"
    with pytest.raises(FileError, match="cannot be written: File name too long"):
        document.save(long)
    with pytest.raises(FileError, match="cannot be written: File name too long"):
        ModelDocument.open(tmp_path / long)
    name = document.add("bodies")
    with pytest.raises(ArgumentError, match="nested without end"):
        document.change([{"put": ["bodies", name, "inertia"], "toml": "[" * 3000 + "]" * 3000}])
    document.rename("bodies", name, "b" * 400)
    assert not document.problems

"""Changes of a TOML text: all bytes but those of the change stay, and what cannot be changed is refused."""

import tomllib
from importlib import resources

import numpy as np
import pytest

from alembert.errors import UnsupportedError
from alembert.model.io import toml

TEMPLATES = resources.files("alembert.study").joinpath("templates")
TEXT = """# an arm
format = "alembert-model"   # the format
gravity = [0, 0, -9.81] # m/s^2

[bodies.rod] # the rod
inertia = { rod = { mass = 1.50, end = [0, 0, -1] } }  # kg

# not about rod

[bodies.disc.inertia]
cylinder = { mass = 2, radius = 0.1 }

# where it turns
[joints.hinge]
type = 'revolute'
limits.lower = -1
limits.upper = 1 # rad
masters = [
    "a",  # first
    "b",
]
"""


def changed(text, new):
    """The lines that differ."""
    old, new = text.splitlines(), new.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


@pytest.mark.parametrize(
    ("place", "value", "gone", "come"),
    [
        (("gravity", 2), -1.62, ["gravity = [0, 0, -9.81] # m/s^2"], ["gravity = [0, 0, -1.62] # m/s^2"]),
        (
            ("bodies", "rod", "inertia"),
            {"rod": {"mass": 1.5, "end": [0, 0, -2]}},
            ["inertia = { rod = { mass = 1.50, end = [0, 0, -1] } }  # kg"],
            ["inertia = { rod = { mass = 1.50, end = [0, 0, -2] } }  # kg"],
        ),
        (
            ("bodies", "rod", "inertia", "rod", "start"),
            [0, 0, "l"],
            ["inertia = { rod = { mass = 1.50, end = [0, 0, -1] } }  # kg"],
            ['inertia = { rod = { mass = 1.50, end = [0, 0, -1], start = [0, 0, "l"] } }  # kg'],
        ),
        (("bodies", "rod", "visuals"), [], [], ["visuals = []"]),
        (("bodies", "disc", "unphysical"), True, [], ["[bodies.disc]", "unphysical = true"]),
        (("bodies", "disc", "inertia", "com"), [0, 0, 1], [], ["com = [0, 0, 1]"]),
        (("bodies", "ball"), {"inertia": {"mass": 1}}, [], ["[bodies.ball]", "inertia = { mass = 1 }"]),
        (("frames", "tip"), {"body": "rod"}, [], ["[frames.tip]", 'body = "rod"']),
        (("joints", "hinge", "limits", "effort"), 3.0, [], ["limits.effort = 3.0"]),
        (
            ("joints", "hinge", "limits"),
            {"lower": -1, "upper": 2},
            ["limits.upper = 1 # rad"],
            ["limits.upper = 2 # rad"],
        ),
        (("joints", "hinge", "masters", 2), "c", [], ['    "c",']),
        (("joints", "hinge", "type"), "screw", ["type = 'revolute'"], ['type = "screw"']),
        (("parameters", "l"), 1.0, [], ["[parameters]", "l = 1.0"]),
    ],
)
def test_a_value_is_put_where_it_belongs(place, value, gone, come):
    for text in (TEXT, TEXT.replace("\n", "\r\n")):
        new = toml.put(text, place, value)
        assert changed(text, new) == (gone, come)
        assert toml.at(tomllib.loads(new), place) == value
        assert toml.put(new, place, value) == new
        assert ("\r\n" in new) == ("\r\n" in text)
        assert new.replace("\r\n", "").count("\r") == 0


@pytest.mark.parametrize(
    ("place", "gone"),
    [
        (
            ("bodies", "rod"),
            ["[bodies.rod] # the rod", "inertia = { rod = { mass = 1.50, end = [0, 0, -1] } }  # kg"],
        ),
        (("joints", "hinge", "limits"), ["limits.lower = -1", "limits.upper = 1 # rad"]),
        (("joints", "hinge", "masters", 1), ['    "b",']),
        (("bodies", "disc"), ["[bodies.disc.inertia]", "cylinder = { mass = 2, radius = 0.1 }"]),
        (("gravity",), ["gravity = [0, 0, -9.81] # m/s^2"]),
    ],
)
def test_what_is_removed_leaves_no_trace(place, gone):
    new = toml.remove(TEXT, place)
    assert changed(TEXT, new)[0] == gone
    assert toml.at(tomllib.loads(new), place) is toml.MISSING


def test_remarks_right_above_a_heading_go_with_it():
    new = toml.remove(TEXT, ("joints", "hinge"))
    assert "where it turns" not in new
    assert "not about rod" in new
    assert new.endswith("radius = 0.1 }\n")


def test_a_key_is_renamed_wherever_it_is_spelt():
    new = toml.rename(TEXT, ("bodies", "disc"), "a disc")
    assert changed(TEXT, new) == (["[bodies.disc.inertia]"], ['[bodies."a disc".inertia]'])
    new = toml.rename(TEXT, ("joints", "hinge", "limits"), "bounds")
    assert changed(TEXT, new)[1] == ["bounds.lower = -1", "bounds.upper = 1 # rad"]


@pytest.mark.parametrize("place", [("format", "x"), ("gravity", 7), ("gravity", "x")])
def test_what_cannot_be_changed_is_refused(place):
    with pytest.raises(
        UnsupportedError, match="this cannot be changed here; change it in the text of the file"
    ):
        toml.put(TEXT, place, 1)
    with pytest.raises(UnsupportedError, match="this cannot be changed here"):
        toml.remove(TEXT, place)


def places(data, place=()):
    yield place
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, entry in entries:
        yield from places(entry, (*place, key))


@pytest.mark.parametrize("name", ["fourbar", "satellite"])
def test_any_number_of_any_changes_says_what_it_should(name):
    """`toml.put` reads its own result and compares: here it must never have to refuse."""
    rng = np.random.default_rng(3)
    text = TEMPLATES.joinpath(name, "model.toml").read_text(encoding="utf-8")
    for k in range(60):
        data = tomllib.loads(text)
        found = [place for place in places(data) if place]
        place = found[rng.integers(len(found))]
        old = toml.at(data, place)
        if rng.random() < 0.2 and len(found) > 40:
            text = toml.remove(text, place)
        elif isinstance(old, dict):
            text = toml.put(
                text, (*place, f"key {rng.integers(9)}"), [{"a": 1.0}, "b", 3, [0.5], "c\n"][rng.integers(5)]
            )
        elif isinstance(old, list):
            text = toml.put(text, (*place, len(old)), old[0] if old else 1)
        elif isinstance(old, str):
            text = toml.put(text, place, "other")
        else:
            new = toml.put(text, place, k + 0.25)
            assert sum(a != b for a, b in zip(text.splitlines(), new.splitlines(), strict=True)) == 1
            text = new

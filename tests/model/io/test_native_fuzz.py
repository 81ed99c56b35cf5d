"""Damaged files end in a `FileError` that names the file, or load; never in another exception or warning."""

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import alembert as al
from alembert.model.io import load, native
from alembert.model.io.location import Source

TOML = """\
format = "alembert-model"
version = 1
gravity = [0, 0, "-g"]
[parameters]
g = 9.81
m = 1.0
[bodies.a]
inertia = { mass = "m", com = [0, 0, "-m/2"], tensor = [0.1, 0, 0.1, 0, 0, 0.01] }
visuals = [{ box = { size = [1, 1, 1] }, color = [1, 0, 0, 1] }, { mesh = { path = "a.stl" } }]
[bodies.b.inertia]
rod = { mass = 1, start = [0, 0, 0], end = [0, 0, -1] }
[joints.a]
type = "universal"
first = [1, 0, 0]
second = [0, 0.6, 0.8]
parent = "world"
child = "a"
placement = { translation = [0, 0, 1], rpy_deg = [0, 90, 0] }
limits = { lower = [-1, -inf], upper = [1, inf], effort = [10, 10] }
spring = { stiffness = [3, "m"], rest = [0.1, 0.2] }
friction = { viscous = [0.1, 0.1], coulomb = [1, 1], smoothing = 0.01 }
rotors = [{ ratio = 50, inertia = 1e-4, axis = [0, 0, 1], dof = 1 }]
[joints.b]
type = "custom"
labels = [["s", "m"]]
graph = "sq 0; const 0.0; const 1.0; -> 3 2 2 2 3 2 2 2 3 0 1 2"
parent = "a"
child = "b"
armature = 0.1
[frames.tip]
body = "b"
placement = [0, 0, 1]
[loops.l]
type = "fixed"
frame_a = "tip"
frame_b = "world"
[couplings.c]
joint = "b"
masters = []
ratios = []
[actuators.u]
joint = "a"
limits = [-1, inf]
[sensors.s]
kind = "gyro"
target = "tip"
"""
MODEL = native.loads(TOML)
YAML = native.dumps(MODEL, "yaml")
# fmt: off
JUNK = [
    "", "0", "-1", "1e999", "nan", "inf", "true", "[]", "{}", '"', '"x"', "[[1]]", "'world'", "0x",
    "1e-320", "1e300", '"m**m**m"', '"1/0"', '"sqrt(-m)"', '"9e99**9"', '"a"', "&a", "*a", "!!x", "<<:",
    "-> 0", "const nan", "\t", "\n", "2026-01-01", "99999999999999999999", "\\ud800", "\u2028", "\x7f",
    "\ufeff", "é", "~", "---", "...", "%YAML 1.1\n",
]
# fmt: on
FAST = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def outcome(read: Callable[[], al.Model]) -> al.Model | str:
    """The model, or the sentence with which it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return read()
        except al.FileError as error:
            return str(error)


def check(text: str, syntax: str) -> None:
    found = outcome(lambda: native.loads(text, syntax, name="fuzz.file"))
    if isinstance(found, str):
        assert re.match(r"fuzz\.file:(\d+:)? ", found), found
        assert len(found) < 5000
    else:
        assert native.loads(native.dumps(found, syntax), syntax) == found


@st.composite
def damaged(draw: Any, text: str) -> str:
    """Some cuts, copies and pieces of junk."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(st.sampled_from(JUNK) | st.text(max_size=3) | st.just(text[start:end] * 2))
        text = text[:start] + piece + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 4)) == 0 else text


@st.composite
def retyped(draw: Any, text: str) -> str:
    """A value, or a word of one, replaced by something else."""
    spots = list(re.finditer(r"[-+.\w]+|\"[^\"]*\"|\[[^\[\]]*\]", text))
    for _ in range(draw(st.integers(1, 2))):
        spot = draw(st.sampled_from(spots))
        text = text[: spot.start()] + draw(st.sampled_from(JUNK)) + text[spot.end() :]
    return text


@FAST
@given(damaged(TOML))
def test_damaged_toml(text):
    check(text, "toml")


@FAST
@given(retyped(TOML))
def test_retyped_toml(text):
    check(text, "toml")


@settings(FAST, max_examples=120)
@given(damaged(YAML) | retyped(YAML))
def test_damaged_yaml(text):
    check(text, "yaml")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["m", "a", "world"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["mass", "box", "a", "type"]), inner)
    ),
    max_leaves=6,
)


@st.composite
def wrong_types(draw: Any) -> dict[str, Any]:
    """The document with one part, at any depth, replaced by any value."""
    document = json.loads(json.dumps(native.plain_model(MODEL)))
    here: Any = document
    while True:
        key = draw(st.sampled_from(list(here) if isinstance(here, dict) else range(len(here))))
        if not isinstance(here[key], (dict, list)) or not here[key] or draw(st.integers(0, 3)) == 0:
            here[key] = draw(VALUES)
            return document
        here = here[key]


@FAST
@given(wrong_types())
def test_wrong_types(document):
    """Through the schema alone: YAML would only spell the same data."""
    found = outcome(lambda: native._model(Source("fuzz.file", document, dict)))
    assert not isinstance(found, str) or found.startswith("fuzz.file:1: ")


@settings(FAST, max_examples=100)
@given(data=st.data())
def test_damaged_bytes(tmp_path_factory, data):
    content = bytearray(TOML.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("fuzz") / "m.toml"
    path.write_bytes(content)
    found = outcome(lambda: load(path))
    assert not isinstance(found, str) or found.startswith(str(path))

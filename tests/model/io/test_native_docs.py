"""The page on the format is true: its examples load, its tables name what the schema has."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import alembert as al
from alembert.joints import REGISTRY
from alembert.model.elements import SENSOR_KINDS
from alembert.model.io import json_schema, load, native, save, toml, yaml
from alembert.model.io.location import DEEPEST

PAGE = (Path(__file__).parents[3] / "docs" / "format.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
HEAD = 'format = "alembert-model"\nversion = 1\n'


@pytest.mark.parametrize(("syntax", "text"), [block for block in BLOCKS if block[0] in ("toml", "yaml")])
def test_examples_load(syntax, text):
    """Those without a header are given one."""
    model = native.loads(text if "format" in text else HEAD + text, syntax)
    assert model.bodies
    assert native.loads(native.dumps(model, syntax), syntax) == model


def test_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pendulum.toml").write_text(next(text for syntax, text in BLOCKS if syntax == "toml"))
    for syntax, text in BLOCKS:
        if syntax == "python":
            exec(text, {"al": SimpleNamespace(load=load, save=save)})
    assert Path("pendulum.yaml").exists()


def test_messages_are_what_is_printed():
    (message,) = (text.strip() for syntax, text in BLOCKS if syntax == "text")
    with pytest.raises(al.FileError) as caught:
        native.loads(HEAD + "bodies.arm.inertia.mas = 1", name="arm.toml")
    assert str(caught.value) == message


def test_every_key_is_described():
    schema = json_schema()
    words = set(re.findall(r"`([\w]+)`", PAGE))
    for name, table in schema["$defs"].items():
        for key in table.get("properties", {}):
            assert key in words, f"{key} of {name} is not in docs/format.md"
    assert words >= set(schema["properties"])
    assert words >= set(REGISTRY)
    assert words >= set(SENSOR_KINDS)


def test_limits_are_those_of_the_code():
    assert f"nesting ({DEEPEST} levels)" in PAGE
    assert (toml.LARGEST, yaml.LARGEST) == (32_000_000, 4_000_000)
    assert "32 MB of TOML, 4 MB of YAML" in PAGE

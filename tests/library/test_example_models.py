"""The model files that are shipped are what the script writes, and hold the models of the library."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from alembert import library
from alembert.model.io import load

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    write = runpy.run_path(str(EXAMPLES / "make_models.py"))["write"]
    return {path.name: path for path in write(tmp_path_factory.mktemp("models"))}


def test_there_is_a_file_for_each_model(written):
    assert {path.name for path in (EXAMPLES / "models").glob("*.toml")} == set(written)


@pytest.mark.parametrize("name", library.names())
def test_files_are_current(name, written):
    new = written[f"{name}.toml"].read_text()
    shipped = (EXAMPLES / "models" / f"{name}.toml").read_text()
    hint = "run python examples/make_models.py"
    assert NUMBER.sub("#", shipped) == NUMBER.sub("#", new), hint
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (shipped, new)]
    # the last digits of sines and square roots differ between machines
    np.testing.assert_allclose(*numbers, rtol=1e-13, atol=1e-15, err_msg=hint)


@pytest.mark.parametrize("name", library.names())
def test_files_hold_the_models(name, written):
    assert load(written[f"{name}.toml"]) == library.make(name)
    assert load(EXAMPLES / "models" / f"{name}.toml").nv == library.make(name).nv

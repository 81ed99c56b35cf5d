"""Examples in docstrings are run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import alembert

NAMES = [
    info.name
    for info in pkgutil.walk_packages(alembert.__path__, "alembert.")
    if not info.name.endswith("__main__")
]
WITH_EXAMPLES = [
    name
    for name in NAMES
    if (spec := importlib.util.find_spec(name))
    and spec.origin
    and re.search(r"^\s*>>> ", Path(spec.origin).read_text(encoding="utf-8"), re.MULTILINE)
]


def test_there_are_examples():
    assert WITH_EXAMPLES


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    found = doctest.testmod(
        module, extraglobs=vars(alembert) | {"al": alembert}, optionflags=doctest.ELLIPSIS
    )
    assert found.failed == 0
    assert found.attempted > 0

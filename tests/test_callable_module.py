"""Packages that are functions too: how Python's help shows them."""

import inspect
import pydoc

import pytest

import alembert as al


@pytest.mark.parametrize(
    ("package", "function"),
    [
        (al.simulate, al.simulate.simulate),
        (al.identify, al.identify.identify),
        (al.operators, al.operators.operators),
        (al.view, al.view.view),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_help_begins_with_the_arguments(package, function):
    text = pydoc.render_doc(package, renderer=pydoc.plaintext)
    start = text[: text.index("PACKAGE CONTENTS" if hasattr(package, "__path__") else "CLASSES")]
    lines = [line.strip(" |") for line in start.splitlines()]
    for parameter in inspect.signature(function).parameters.values():
        assert f"{parameter}," in lines
    for line in inspect.cleandoc(function.__doc__).splitlines():
        assert line.strip() in start
    assert inspect.signature(package) == inspect.signature(function)

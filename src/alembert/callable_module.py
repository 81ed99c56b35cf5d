"""Packages that can be called: `al.identify(model, data)` next to `al.identify.Measurements`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Let a call of the package `name` be a call of `function`, its main one, and `help` begin with its arguments."""

    class CallableModule(ModuleType):
        __call__ = staticmethod(function)
        __signature__ = property(lambda self: inspect.signature(function))

    first, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n")
    package = sys.modules[name]
    package.__doc__ = "\n".join([first, "", _call(function), rest]).rstrip()
    package.__class__ = CallableModule


def _call(function: Callable[..., Any]) -> str:
    """The signature as text, an argument to a line."""
    lines, keywords = [f"{function.__name__}("], False
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            lines.append("    *,")
            keywords = True
        lines.append(f"    {parameter},")
    return "\n".join([*lines, f") -> {signature.return_annotation}"])

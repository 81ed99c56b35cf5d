"""Modules that can be called: `al.identify(model, data)` next to `al.identify.Measurements`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Let a call of the module `name` be a call of `function`, its main one."""

    class CallableModule(ModuleType):
        __doc__ = function.__doc__
        __call__ = staticmethod(function)
        __signature__ = property(lambda self: inspect.signature(function))

    sys.modules[name].__class__ = CallableModule

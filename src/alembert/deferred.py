"""Modules that are imported when something of them is first used.

What compiles is not needed where a kernel comes from the cache; leaving it out makes the first call of a process fast.

    if TYPE_CHECKING:
        from alembert.engine import codegen
    else:
        codegen = deferred("alembert.engine.codegen")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class deferred:
    """Stands for the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        self.__dict__[attribute] = value
        return value

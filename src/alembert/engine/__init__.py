"""Machine code for straight-line functions: lanes, threads, a cache, C export."""

from typing import TYPE_CHECKING, Any

from alembert.engine.kernel import Argument, Kernel

if TYPE_CHECKING:
    from alembert.engine.c_export import export_c
    from alembert.engine.source import FunctionSource, Source

__all__ = ["Argument", "FunctionSource", "Kernel", "Source", "export_c"]
_DEFERRED = {"FunctionSource": "source", "Source": "source", "export_c": "c_export"}


def __getattr__(name: str) -> Any:
    if name not in _DEFERRED:
        raise AttributeError(f"module 'alembert.engine' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"alembert.engine.{_DEFERRED[name]}"), name)

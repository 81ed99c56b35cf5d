"""Machine code for straight-line functions: lanes, threads, a cache, C export."""

from alembert.engine.c_export import export_c
from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource, Source

__all__ = ["Argument", "FunctionSource", "Kernel", "Source", "export_c"]

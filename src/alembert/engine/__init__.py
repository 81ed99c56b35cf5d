"""Machine code for straight-line functions: lanes, threads, a cache, C export."""

from alembert.engine.c_export import export_c
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.engine.loader import prepare

__all__ = ["Argument", "FunctionSource", "Kernel", "KernelSource", "export_c", "prepare"]

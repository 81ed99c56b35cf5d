"""From IR to object code, and from object code to addresses."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm

from alembert.engine import target as targets
from alembert.engine.target import Target


class Library:
    """Machine code in memory, as long as this object lives."""

    def __init__(self, code: bytes, target: Target):
        # The engine needs some module. It is one of LLVM's global context, because the garbage collector
        # might dispose of a context of its own before the engine.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), targets.machine(target))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def function(self, name: str) -> int:
        return int(self._engine.get_function_address(name))

    def variable(self, name: str) -> int:
        return int(self._engine.get_global_value_address(name))


def compile_ir(text: str, target: Target) -> bytes:
    """Object code of a module.

    The code is straight-line and has no repeated expressions, so LLVM's optimisation passes find nothing
    to do; the instruction selector, scheduler and register allocator do all the work.
    """
    targets.initialize()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = target.triple
    return bytes(targets.machine(target).emit_object(module))


@contextmanager
def patience(name: str, delay: float = 1.0) -> Iterator[None]:
    """Say on the terminal that a kernel is being compiled, when that takes longer than `delay` seconds."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    shown = threading.Event()

    def show() -> None:
        shown.set()
        sys.stderr.write(f"\ralembert: compiling {name} ...")
        sys.stderr.flush()

    timer = threading.Timer(delay, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if shown.is_set():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

"""From IR to machine code, and from machine code to addresses.

Machine code is an image (`alembert.engine.image`) where one can be made, and LLVM's object code elsewhere.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from alembert.deferred import deferred
from alembert.engine import target as targets
from alembert.engine.image import Image, is_image
from alembert.engine.target import Target

if TYPE_CHECKING:
    import llvmlite.binding as llvm

    from alembert.engine import link
else:
    llvm = deferred("llvmlite.binding")
    link = deferred("alembert.engine.link")


class Library:
    """Machine code in memory, as long as this object lives."""

    def __init__(self, code: bytes, target: Target):
        if is_image(code):
            self.function = self.variable = Image(code).address
            return
        # The engine needs some module. It is one of LLVM's global context, because the garbage collector
        # might dispose of a context of its own before the engine.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), targets.machine(target))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self.function = engine.get_function_address
        self.variable = engine.get_global_value_address


def compile_ir(text: str, target: Target) -> bytes:
    """Machine code of a module.

    The code is straight-line and has no repeated expressions, so LLVM's optimisation passes find nothing
    to do; the instruction selector, scheduler and register allocator do all the work.
    """
    targets.initialize()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = target.triple
    code = bytes(targets.machine(target).emit_object(module))
    return link.linked(code) or code


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

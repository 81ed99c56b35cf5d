"""From IR to machine code, and from machine code to addresses.

Machine code is an image (`alembert.engine.image`) where one can be made, and LLVM's object code elsewhere.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from alembert.deferred import deferred
from alembert.engine import shared, symbols
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
        for name in shared.called(code):
            llvm.add_symbol(name, symbols.address(name))
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), targets.machine(target))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self.function = engine.get_function_address
        self.variable = engine.get_global_value_address


def compile_ir(text: str, target: Target, *, quick: bool = False) -> bytes:
    """Machine code of a module.

    The code is straight-line and has no repeated expressions, so LLVM's optimisation passes find nothing
    to do; the instruction selector, scheduler and register allocator do all the work. `quick` leaves out what these do
    at leisure: vector code of 90 000 operations then takes 2.6 s instead of 6.2 to compile, and 1.5 times as long to run.
    """
    targets.initialize()
    module = llvm.parse_assembly(text + shared.declared(text), llvm.create_context())
    module.triple = target.triple
    code = bytes(targets.machine(target, level=0 if quick else 2).emit_object(module))
    return link.linked(code) or code


_SPOKEN: ContextVar[bool] = ContextVar("spoken", default=False)


@contextmanager
def spoken() -> Iterator[None]:
    """Within it, `patience` also says what it waits for where there is no terminal: a line each."""
    token = _SPOKEN.set(True)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


@contextmanager
def patience(name: str, delay: float = 1.0) -> Iterator[None]:
    """Say on the terminal that a kernel is being compiled, and for how long, from `delay` seconds on."""
    stream = sys.stderr
    terminal = stream is not None and stream.isatty()
    if stream is None or not (terminal or _SPOKEN.get()):
        yield
        return
    began, done, shown = time.monotonic(), threading.Event(), threading.Event()

    def show() -> None:
        line = f"alembert: compiling {name}, once ..."
        if done.wait(delay):
            return
        shown.set()
        stream.write(f"\r{line}" if terminal else f"{line}\n")
        stream.flush()
        while terminal and not done.wait(1.0):
            stream.write(f"\r{line} {time.monotonic() - began:.0f} s")
            stream.flush()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if shown.is_set() and terminal:
            stream.write("\r\x1b[K")
            stream.flush()

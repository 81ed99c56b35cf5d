"""What Alembert raises and warns, and how it takes Ctrl-C.

Every error derives from `AlembertError`, so that a caller can tell a mistake in a model or an argument
from a fault of the program. Messages say what came, what was expected, and what to do.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

_PACKAGE = str(Path(__file__).parent)


class AlembertError(Exception):
    """Anything Alembert refuses."""


class ModelError(AlembertError, ValueError):
    """A model that cannot be built: names, topology or physics do not add up."""


class FileError(ModelError):
    """A model file that cannot be read; the message starts with `file:line: path`."""


class ArgumentError(AlembertError, ValueError):
    """An argument of the wrong shape, type, name or value."""


class UnsupportedError(AlembertError, NotImplementedError):
    """A combination that no algorithm covers, or a package that is not installed; the message names it.

    The page on limits says what is not covered, and what to do instead. Tracebacks and the command line name it below
    the message, as a note.
    """

    page: ClassVar[str] = "docs/limits.md"
    """where to read on"""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        if "install" not in message:
            self.add_note(f"What is not covered, and what to do instead: {self.page}")


class NumericalError(AlembertError, ArithmeticError):
    """A computation that failed; the message says where and why."""


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system refuses while `path` is written becomes a `FileError` that names it."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error  # HDF5's own texts are long
        raise FileError(f"{os.fspath(path)}: cannot be written: {reason}") from None


def made_folder(path: str | os.PathLike[str]) -> Path:
    """A folder, made unless it is there; what the system refuses becomes a `FileError`."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made: {error.strerror or error}") from None
    return folder


class AlembertWarning(UserWarning):
    """Something was passed over: what does not change the physics, or what the caller asked to leave out."""


def warn(message: str) -> None:
    """An `AlembertWarning` at the line of the caller's program, however deep in the package it arises."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, AlembertWarning, stacklevel=level)


_pressed = False
"""whether Ctrl-C was pressed in the block of `interrupts_kept`"""
_block = ""
"""what the outermost such block does with it: "raises", or "returns" what it has"""


@contextmanager
def interrupts_kept(*, returns: bool = False) -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt also where CasADi has swallowed it: at the next `check_interrupt`, or at the end.

    CasADi tries one conversion of an argument after the other, and takes an exception within one of them for a failed
    conversion. A block that `returns` what it has calls `interrupt_taken` once it knows; within another block that raises,
    the exception follows all the same.
    """
    global _pressed, _block
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield  # somebody else looks after it
        return

    def raise_it(*_: Any) -> None:
        global _pressed
        _pressed = True
        raise KeyboardInterrupt

    _block = "returns" if returns else "raises"
    try:
        with handled_interrupts(raise_it):
            try:
                yield
            except Exception as error:
                if _pressed:  # CasADi has made another error of it
                    raise KeyboardInterrupt from error
                raise
        check_interrupt()
    finally:
        _pressed, _block = False, ""


def check_interrupt() -> None:
    """Raise the KeyboardInterrupt that was swallowed since `interrupts_kept` began; for loops that take long."""
    if _pressed and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def interrupt_noted() -> None:
    """Ctrl-C came to a handler that does not raise it: the block does, unless it returns what it has."""
    global _pressed
    _pressed = _block == "raises"


def interrupt_taken() -> None:
    """A solver has ended because of Ctrl-C, and returns its best iterate."""
    global _pressed
    _pressed = _pressed and _block != "returns"


@contextmanager
def handled_interrupts(handler: Callable[..., None]) -> Iterator[None]:
    """Signals come to the main thread only, and only there handlers may be set."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

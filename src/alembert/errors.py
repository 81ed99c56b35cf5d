"""What Alembert raises and warns.

Every error derives from `AlembertError`, so that a caller can tell a mistake in a model or an argument
from a fault of the program. Messages say what came, what was expected, and what to do.
"""

import sys
import warnings
from pathlib import Path

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
    """A combination that no algorithm covers; the message names both parts. What there is not: docs/limits.md."""


class NumericalError(AlembertError, ArithmeticError):
    """A computation that failed; the message says where and why."""


class AlembertWarning(UserWarning):
    """Something was passed over: what does not change the physics, or what the caller asked to leave out."""


def warn(message: str) -> None:
    """An `AlembertWarning` at the line of the caller's program, however deep in the package it arises."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, AlembertWarning, stacklevel=level)

"""C text in single precision: `float`, literals with an f, and the functions of the mathematics library that end in f.

All arithmetic of the text is then that of a processor with single-precision hardware (Cortex-M4F): nothing is promoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from alembert.arguments import choice
from alembert.errors import UnsupportedError

PRECISIONS = ("double", "float")
SINGLE_TOLERANCE = 1e-3
"""of test programs in single precision, relative to the largest expected element: more is not rounding alone, or a problem
that single precision does not serve"""
_COMMENT = re.compile(r"(/\*.*?\*/)", re.DOTALL)
_LITERAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])")


def checked_precision(function: str, precision: str) -> str:
    return choice(function, "precision", precision, PRECISIONS)


def in_single(function: str, text: str, calls: Iterable[str]) -> str:
    """Text that was written for `double`; `calls` are the library's functions in it. Comments stay as they are."""
    library = re.compile(rf"\b({'|'.join(sorted(set(calls)))})\(")
    parts = _COMMENT.split(text)
    for k in range(0, len(parts), 2):
        part = re.sub(r"\bdouble\b", "float", parts[k])
        part = library.sub(r"\1f(", part)
        parts[k] = _LITERAL.sub(lambda found: _literal(function, found.group(1)), part)
    return "".join(parts)


def _literal(function: str, text: str) -> str:
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(text)
    if not np.isfinite(single) or (single == 0) != (float(text) == 0):
        raise UnsupportedError(
            f"{function}: the code has the number {text}, which single precision does not hold; use precision='double'"
        )
    return f"{text}f"


def representable(values: np.ndarray) -> np.ndarray:
    """The nearest numbers of single precision."""
    return np.asarray(values, dtype=float).astype(np.float32).astype(float)

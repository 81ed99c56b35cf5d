"""Functions that differ in their numbers alone: a list of instructions is made for one, and serves the others.

The *form* of a function is all of it but its numbers: its operations, which constants are equal, and the constants that
change how it is simplified (0, 1, -1 and what is not finite). A model with other masses or lengths has functions of known
forms; then only the numbers in the list have to be changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from array import array
from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.engine import interpreter
from alembert.engine.code import Code
from alembert.engine.instructions import algorithm

FEWEST = 500  # instructions of a function worth to look for
MOST = 200
"""lists that are kept; some hundred kilobytes each"""
_SPECIAL = (0.0, 1.0, -1.0)

KNOWN: dict[tuple[object, ...], _Known] = {}


@dataclass(frozen=True)
class Form:
    """Of a function: what tells it from functions of other forms, and its numbers, each once."""

    key: bytes
    numbers: tuple[float, ...]
    algorithm: np.ndarray
    """its instructions, which are not to be looked for again"""


@dataclass(frozen=True)
class _Known:
    code: Code
    places: dict[str, tuple[np.ndarray, np.ndarray]]
    """for each list, words where numbers are, and which ones"""


def form_of(function: ca.Function) -> Form | None:
    """None where it is not worth it."""
    if not function.is_a("SXFunction") or function.n_instructions() < FEWEST:
        return None
    found = algorithm(function)
    table = found.copy()
    constant = np.flatnonzero(table[:, 0] == ca.OP_CONST)
    if np.any(table[:, 0] == ca.OP_ERFINV):  # it brings constants of its own
        return None
    classes: dict[str, int] = {}
    special: dict[int, str] = {}
    order = []
    for k in constant.tolist():
        value = function.instruction_constant(k)
        number = classes.setdefault(value.hex(), len(classes))
        if value in _SPECIAL or not math.isfinite(value):
            special[number] = value.hex()
        order.append(number)
    table[constant, 2], table[constant, 3] = order, 0
    sizes = [function.sparsity_in(k) for k in range(function.n_in())]
    sizes += [function.sparsity_out(k) for k in range(function.n_out())]
    shapes = [x.shape if x.is_dense() else (x.shape, x.colind(), x.row()) for x in sizes]
    digest = hashlib.sha256(table.tobytes())
    digest.update(repr((function.n_in(), shapes, special)).encode())
    return Form(digest.digest(), tuple(float.fromhex(x) for x in classes), found)


def remember(key: tuple[object, ...], form: Form, code: Code) -> None:
    """Keep the list of a function of this form."""
    which = {value.hex(): k for k, value in enumerate(form.numbers) if value not in _SPECIAL}
    places = {}
    for name, words in code.lists.items():
        start, count = interpreter.constants_of(words)
        at = start + 3 * np.arange(count)
        table = np.array(words, dtype=np.int32)
        values = table[np.stack([at + 1, at + 2], axis=1)].view("=f8").ravel().tolist() if count else []
        number = np.array([which.get(x.hex(), -1) for x in values], dtype=np.int64)
        places[name] = at[number >= 0] + 1, number[number >= 0]
    if len(KNOWN) >= MOST:
        KNOWN.clear()
    KNOWN[key] = _Known(code, places)


def recall(key: tuple[object, ...], form: Form) -> Code | None:
    """The list of a function of this form, with its own numbers."""
    known = KNOWN.get(key)
    if known is None:
        return None
    lists = {}
    for name, words in known.code.lists.items():
        table = np.array(words, dtype=np.int32)
        at, which = known.places[name]
        halves = (
            np.array(form.numbers)[which].view(np.int32).reshape(-1, 2)
            if len(which)
            else np.zeros((0, 2), int)
        )
        table[at], table[at + 1] = halves[:, 0], halves[:, 1]
        lists[name] = array("i", table.tobytes())
    return dataclasses.replace(known.code, lists=lists)

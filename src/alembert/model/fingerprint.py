"""A digest of a model's content: the same for equal models in every process, another for every other content.

Every first call of a process needs it to find its kernel, so models of thousands of bodies are read in columns rather
than body by body: all names, all masses, all first components of axes at once, which takes no Python code per number.
A column of values is written as

    the kinds of its values, where there are several, and which has which; then of each kind
    numbers                 their eight bytes
    tuples                  their lengths, and all their entries as one column
    records (dataclasses)   the class, and each field as a column
    anything else           its `repr`

from which the values can be told again, as their number is known. Numbers differ where their bits do: 0.0 and -0.0 too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import struct
from collections.abc import Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import Any

from alembert.errors import ArgumentError


def fingerprint(record: Any) -> str:
    """The digest of the fields of a record (a dataclass), whatever the class is called."""
    parts: list[bytes] = []
    for field in dataclasses.fields(record):
        parts.append(repr(field.name).encode())
        _column([getattr(record, field.name)], parts)
    return hashlib.blake2b(b"".join(parts), digest_size=32).hexdigest()


def _column(values: Sequence[Any], parts: list[bytes]) -> None:
    kinds = set(map(type, values))
    if len(kinds) == 1:
        _alike(kinds.pop(), values, parts)
    elif kinds:
        ordered = list(dict.fromkeys(map(type, values)))
        index = {kind: k for k, kind in enumerate(ordered)}
        parts.append(repr([index[type(x)] for x in values]).encode())
        for kind in ordered:
            _alike(kind, [x for x in values if type(x) is kind], parts)


def _alike(kind: type, values: Sequence[Any], parts: list[bytes]) -> None:
    """Values of the same kind."""
    head, fields = _described(kind)
    parts.append(head)
    if kind is float:
        parts.append(struct.pack(f"{len(values)}d", *values))
    elif kind is tuple:
        lengths = set(map(len, values))
        parts.append(repr(lengths if len(lengths) == 1 else list(map(len, values))).encode())
        _column(list(chain.from_iterable(values)), parts)
    elif fields is not None:
        for field in fields:
            _column(list(map(attrgetter(field), values)), parts)
    elif kind is not NoneType:
        parts.append(repr(list(values)).encode())


@cache
def _described(kind: type) -> tuple[bytes, tuple[str, ...] | None]:
    """What stands for a class, and the fields of its records, None of what is no record.

    Classes of Alembert are known by their names, since every kernel's key holds the source; of others, as of a joint that a
    user defines, the code counts.
    """
    name = f"{kind.__module__}.{kind.__qualname__}"
    if not dataclasses.is_dataclass(kind):
        return repr(name).encode(), None
    fields = tuple(field.name for field in dataclasses.fields(kind))
    return repr((name, fields, _foreign_code(kind))).encode(), fields


def _foreign_code(kind: type) -> str:
    if all(_is_ours(base) for base in kind.__mro__[:-1]):
        return ""
    from alembert.meaning import meaning

    try:
        return meaning(kind)
    except ArgumentError:  # who knows what it does: no kernel of another process is right for sure
        return os.urandom(16).hex()


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "alembert"

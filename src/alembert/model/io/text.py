"""How strings and numbers are written, alike in TOML and YAML."""

from __future__ import annotations

import re
from typing import Any

from alembert.errors import ModelError

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def is_word(text: str) -> bool:
    """Whether a key needs no quotes."""
    return _WORD.fullmatch(text) is not None


def quoted(text: str) -> str:
    """In double quotes, everything that does not print as an escape."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _code(c)) for c in text) + '"'


def _code(character: str) -> str:
    point = ord(character)
    if 0xD800 <= point < 0xE000:
        raise ModelError(f"a text holds {character!r}, half of a character, which no file can")
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def number(value: Any) -> str:
    """The shortest digits that read back to the same number, with a decimal point (YAML 1.1 wants one)."""
    if isinstance(value, (bool, int)):
        return str(value).lower()
    digits = repr(float(value))
    mantissa, e, exponent = digits.partition("e")
    return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else digits

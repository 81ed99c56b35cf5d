"""YAML: reading nodes with their lines into plain data, and writing.

No tag makes an object: the nodes of the parser are turned into tables, lists, texts and numbers here. Aliases
may be used; what they expand to is counted.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any

from alembert.errors import FileError
from alembert.model.io.location import DEEPEST, Place, Source, check_sizes, depth_error
from alembert.model.io.notes import is_word, number, quoted

LARGEST = 4_000_000  # bytes; the parser takes about ten seconds per megabyte
ALIASED = 100_000  # nodes that aliases may add
WIDEST = 120  # columns of what goes on one line

_TAG = "tag:yaml.org,2002:"
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def parse(text: str, name: str) -> Source:
    import ruamel.yaml
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            root = ruamel.yaml.YAML(typ="safe", pure=True).compose(io.StringIO(text))
    except RecursionError:
        raise depth_error(name) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        what = ", ".join(str(part) for part in (error.context, error.problem) if part)
        raise FileError(f"{name}:{line}: not valid YAML: {what}") from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise FileError(f"{name}:{line}: not valid YAML: {error.reason}") from None
    except YAMLError as error:
        raise FileError(f"{name}:1: not valid YAML: {error}") from None
    except Exception as error:  # on damaged input the parser also fails in ways that it does not name
        raise FileError(f"{name}:1: not valid YAML: {type(error).__name__} {error}") from None
    reader = _Reader(name, len(text) + ALIASED)
    data = {} if root is None else reader.value(root, ())
    check_sizes(name, [data])
    return Source(name, data, lambda: reader.lines)


class _Reader:
    def __init__(self, name: str, most: int) -> None:
        self.name = name
        self.left = most
        self.lines: dict[Place, int] = {}

    def value(self, node: Any, place: Place) -> Any:
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        self.lines.setdefault(place, node.start_mark.line + 1)
        self.left -= 1
        if self.left < 0:
            raise self.error(node, f"aliases expand to more than {ALIASED} values")
        if len(place) > DEEPEST:
            raise depth_error(self.name)
        tag = str(node.tag or "").removeprefix(_TAG)
        if isinstance(node, MappingNode) and tag == "map":
            return self.table(node, place)
        if isinstance(node, SequenceNode) and tag == "seq":
            return [self.value(entry, (*place, k)) for k, entry in enumerate(node.value)]
        return self.scalar(node, tag)

    def table(self, node: Any, place: Place) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            tag = str(key_node.tag or "").removeprefix(_TAG)
            if tag == "merge":
                raise self.error(key_node, "merge keys (<<) are not read; write the values out")
            if tag != "str" or not isinstance(key, str):
                shown = repr(key) if isinstance(key, str) else "a list or table"
                raise self.error(key_node, f"a key is {shown}, expected a text; put it in quotes")
            if key in table:
                raise self.error(key_node, f"the key {key!r} occurs twice")
            self.lines[(*place, key)] = key_node.start_mark.line + 1
            table[key] = self.value(value_node, (*place, key))
        return table

    def scalar(self, node: Any, tag: str) -> Any:
        text = node.value
        try:
            if tag in ("str", "timestamp"):
                return str(text)
            if tag == "null":
                return None
            if tag == "bool":
                return {"true": True, "false": False}[text.lower()]
            if tag == "int":
                digits = text.replace("_", "").lower()
                return int(digits, 0) if digits.lstrip("+-")[:2] in ("0x", "0o") else int(digits)
            if tag == "float":
                digits = text.replace("_", "").lower()
                special = digits.lstrip("+-") in (".inf", ".nan")
                return float(digits.replace(".", "") if special else digits)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self.error(node, f"{str(text)[:40]!r} is no {tag}") from None
        raise self.error(node, f"the tag {tag[:60]!r} is not allowed in a model file")

    def error(self, node: Any, what: str) -> FileError:
        return FileError(f"{self.name}:{node.start_mark.line + 1}: {what}")


def write(document: Mapping[str, Any]) -> str:
    """Tables as indented blocks, lists and small tables on one line."""
    return "\n".join(_block(document, 0)) + "\n"


def _block(table: Mapping[str, Any], depth: int) -> list[str]:
    pad = "  " * depth
    lines = []
    for key, value in table.items():
        line = f"{pad}{_key(key)}: {_flow(value)}"
        if isinstance(value, Mapping) and value and (depth < 2 or len(line) > WIDEST):
            lines += [f"{pad}{_key(key)}:", *_block(value, depth + 1)]
        elif isinstance(value, list) and len(line) > WIDEST:
            lines += [f"{pad}{_key(key)}:", *(f"{pad}  - {_flow(entry)}" for entry in value)]
        else:
            lines.append(line)
    return lines


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_flow(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(entry) for entry in value) + "]"
    if isinstance(value, str):
        return _key(value)
    return number(value).replace("inf", ".inf") if isinstance(value, float) else number(value)


def _key(text: str) -> str:
    return text if is_word(text) and text.lower() not in _RESERVED else quoted(text)

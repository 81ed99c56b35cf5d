"""Write what the pages in docs/api are about into them: signatures and first sentences, for readers without the built site.

`make docs` runs it; `tests/test_api_pages.py` holds the pages to it. The site shows the whole documentation of every
name instead: `hooks.py` leaves these sections out.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parent / "api"
BEGIN, END = "<!-- generated: in brief -->", "<!-- end: in brief -->"
SECTION = re.compile(rf"\n*{re.escape(BEGIN)}.*?{re.escape(END)}\n*", re.DOTALL)
_DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_LONGEST = 110  # characters of a signature
_ADDRESS = re.compile(r"<(?:function |object )?[^<>]* at 0x[0-9a-f]+>")


def page(text: str) -> str:
    """A page with its section, which stands at its end."""
    bare = SECTION.sub("\n", text).rstrip("\n")
    names = _DIRECTIVE.findall(bare)
    if not names:
        return text
    lines = [BEGIN, "", "## In brief", ""]
    for name in names:
        lines += _described(name)
    return "\n".join([bare, "", *lines, END, ""])


def _described(name: str) -> list[str]:
    found = _find(name)
    if inspect.ismodule(found):
        lines = [f"### `{name}`", "", *_sentence(found), ""]
        for key, member in _members(found):
            lines += _entry(key, member)
        return [*lines, ""]
    return [f"### `{name}`", "", *_entry(name.rpartition(".")[2], found), ""]


def _find(name: str) -> Any:
    """A module, or what is in one."""
    path, _, last = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(_find(path), last)


def _members(module: Any) -> list[tuple[str, Any]]:
    """Public functions and classes of a module, those of a package wherever they are written."""
    package = module.__name__.rpartition(".")[0] if not hasattr(module, "__path__") else module.__name__
    found = []
    for key in dir(module):
        member = getattr(module, key)
        own = str(getattr(member, "__module__", "")).startswith(
            package if hasattr(module, "__path__") else module.__name__
        )
        if not key.startswith("_") and own and (inspect.isclass(member) or inspect.isfunction(member)):
            found.append((key, member))
    return found


def _entry(name: str, member: Any) -> list[str]:
    text = " ".join(_sentence(member))
    lines = [f"- `{name}{_signature(member)}`" + (f": {text}" if text else "")]
    if inspect.isclass(member):
        for key, value in vars(member).items():
            if key.startswith("_"):
                continue
            inner = getattr(value, "__func__", value)
            if inspect.isfunction(inner):
                said = " ".join(_sentence(inner))
                lines.append(f"    - `{key}{_signature(inner)}`" + (f": {said}" if said else ""))
            elif isinstance(value, property) and value.__doc__:
                lines.append(f"    - `{key}`: {' '.join(_sentence(value))}")
    return lines


def _signature(member: Any) -> str:
    """Names and defaults; types are in the site and in the source."""
    try:
        found = inspect.signature(member)
    except (TypeError, ValueError):
        return ""
    plain = [
        p.replace(annotation=inspect.Parameter.empty) for n, p in found.parameters.items() if n != "self"
    ]
    text = str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    text = _ADDRESS.sub("...", " ".join(text.split()))
    return text if len(text) <= _LONGEST else text[: text.rfind(", ", 0, _LONGEST)] + ", ...)"


def _sentence(member: Any) -> list[str]:
    """The first sentence of the documentation."""
    doc = inspect.getdoc(member) or ""
    if inspect.isclass(member) and doc.startswith(f"{member.__name__}("):
        return []  # a dataclass without a text of its own
    first = " ".join(doc.partition("\n\n")[0].split())
    found = re.match(r".*?[.:](?= |$)", first)
    return [(found[0] if found else first).rstrip(":").replace("|", "\\|")] if first else []


def main() -> None:
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (new := page(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()

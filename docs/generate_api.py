"""Write what the pages in docs/api are about into them: signatures and documentation, for readers without the built site.

`make docs` runs it; `tests/test_api_pages.py` holds the pages to it. The site makes its own sections of the same texts, with
types and links: `hooks.py` leaves these out.
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
_ADDRESS = re.compile(r"<(?:function |object )?[^<>]* at 0x[0-9a-f]+>")


def page(text: str) -> str:
    """A page with its section, which stands at its end."""
    bare = SECTION.sub("\n", text).rstrip("\n")
    names = _DIRECTIVE.findall(bare)
    if not names:
        return text
    lines = [BEGIN, "", "## Reference", ""]
    for name in names:
        lines += _described(name)
    return "\n".join([bare, "", *lines, END, ""])


def _described(name: str) -> list[str]:
    found = _find(name)
    if inspect.ismodule(found):
        lines = [f"### `{name}`", "", _first(found), ""]
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
    lines = _item(name + _signature(member), member, "")
    if inspect.isclass(member):
        for key, value in vars(member).items():
            if key.startswith("_"):
                continue
            inner = getattr(value, "__func__", value)
            if inspect.isfunction(inner):
                lines += _item(key + _signature(inner), inner, "    ")
            elif isinstance(value, property) and value.__doc__:
                lines += _item(key, value, "    ")
    return lines


def _item(title: str, member: Any, indent: str) -> list[str]:
    """An entry of a list: the first paragraph behind the name, the others as they stand in the source below it."""
    first, _, rest = _text(member).partition("\n\n")
    first = " ".join(first.split()).replace("|", "\\|")
    lines = [f"{indent}- `{title}`" + (f": {first}" if first else "")]
    if rest:
        block = ["```text", *rest.rstrip().splitlines(), "```"]
        lines += ["", *(f"{indent}    {line}".rstrip() for line in block), ""]
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
    return _ADDRESS.sub("...", " ".join(text.split()))


def _text(member: Any) -> str:
    """The documentation; empty for a dataclass without a text of its own."""
    doc = inspect.getdoc(member) or ""
    return "" if inspect.isclass(member) and doc.startswith(f"{member.__name__}(") else doc


def _first(member: Any) -> str:
    return " ".join(_text(member).partition("\n\n")[0].split())


def main() -> None:
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (new := page(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()

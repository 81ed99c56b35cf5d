"""The house at a glance: packages, who imports whom, and the counts that keep it in order.

    python docs/house.py            write docs/house.md and docs/images/house.svg
    python docs/house.py --print    say the counts only

`tests/test_house.py` holds what must be zero. The counts of files read are taken by running the three calls with an empty
cache, in processes of their own.
"""

from __future__ import annotations

import ast
import gc
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent / "src" / "alembert"

TASKS = {
    "files read from `model.forward_dynamics` to machine code, nothing cached": """
import alembert.algorithms
m = al.library.two_link()
m.compute
call = lambda: m.forward_dynamics([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])
""",
    "files read for one step of `al.simulate`": """
m = al.library.two_link()
run = lambda: al.simulate(m, [0.1, 0.2], duration=0.01, step=0.01, integrator="rk4")
run()
call = run
""",
    "files read for `Problem.solve`": """
problem = al.optimal.Problem(al.library.two_link(), 1.0, start={"q": [-1.5, 0.0], "v": 0}, end={"q": [1.5, 0.0], "v": 0})
call = lambda: problem.solve(20)
call()
""",
}
"""what is run; the files in which a function of Alembert runs during `call()` are counted, but for those of VOCABULARY"""
VOCABULARY = ("errors", "expression", "spatial", "joints", "model")
"""the words in which all is written; a reader who follows a call does not open them"""

COUNT = """
import sys, json, os
import alembert as al
{task}
root = os.path.dirname(al.__file__) + os.sep
seen = set()
def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(root) and frame.f_code.co_flags & 1:  # no body of a module or a class
        seen.add(name[len(root):])
sys.setprofile(note)
call()
sys.setprofile(None)
print(json.dumps(sorted(seen)))
"""


@dataclass(frozen=True)
class Module:
    """One source file, read."""

    name: str
    """`model.io.urdf`; `model` for its `__init__`"""
    package: str
    """`model.io`; a module at the top is its own package"""
    tree: ast.Module
    lines: int
    nodes: tuple[ast.AST, ...]
    """all of the tree"""


@cache
def modules() -> tuple[Module, ...]:
    found = []
    gc.disable()  # the trees stay: looking through them again and again takes most of the time
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        inside = parts[:-1] if parts[-1] == "__init__" else parts
        text = path.read_text(encoding="utf-8")
        top = parts[0] if len(parts) > 1 else (inside[0] if inside else "alembert")
        package = "model.io" if parts[:2] == ("model", "io") else top
        tree = ast.parse(text)
        found.append(Module(".".join(inside), package, tree, len(text.splitlines()), tuple(ast.walk(tree))))
    gc.enable()
    return tuple(found)


def imported(module: Module) -> Iterator[tuple[str, int]]:
    """The modules of Alembert that one imports anywhere, in functions too, but for those only types need."""
    known = {m.name for m in modules()}
    is_package = any(m.name.startswith(f"{module.name}.") for m in modules()) or module.name == ""
    package = module.name.split(".") if module.name else []
    package = package if is_package else package[:-1]

    def visit(node: ast.AST) -> Iterator[tuple[str, int]]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.orelse:
                yield from visit(child)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "alembert":
                    yield alias.name.removeprefix("alembert").removeprefix("."), node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = ["alembert", *package[: len(package) - node.level + 1]] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            if source.partition(".")[0] == "alembert":
                inner = source.removeprefix("alembert").removeprefix(".")
                for alias in node.names:
                    below = f"{inner}.{alias.name}".removeprefix(".")
                    yield (below if below in known else inner), node.lineno
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                yield from visit(child)

    yield from visit(module.tree)


@cache
def packages() -> dict[str, tuple[int, int]]:
    """Files and lines of each package."""
    found: dict[str, tuple[int, int]] = {}
    for module in modules():
        files, lines = found.get(module.package, (0, 0))
        found[module.package] = files + 1, lines + module.lines
    return found


@cache
def edges() -> Counter[tuple[str, str]]:
    """How many imports go from one package to another."""
    home = {m.name: m.package for m in modules()}
    found: Counter[tuple[str, str]] = Counter()
    for module in modules():
        if module.package in ("alembert", "__main__"):  # the front door re-exports
            continue
        for target, _ in imported(module):
            other = home.get(target, "alembert")
            if other not in (module.package, "alembert"):
                found[module.package, other] += 1
    return found


DECLARED = {("model", "algorithms"), ("model", "constraints")}
"""the imports that go up: a model makes its `Compute` on first use"""


def knots() -> list[list[str]]:
    """Packages that import one another, in a circle of any length, but for the imports that are declared."""
    after: dict[str, set[str]] = defaultdict(set)
    for package, other in edges().keys() - DECLARED:
        after[package].add(other)
    reach: dict[str, set[str]] = {}
    for package in packages():
        seen: set[str] = set()
        todo = list(after[package])
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += after[one]
        reach[package] = seen
    circles = {
        frozenset(other for other in reach[package] if package in reach[other])
        for package in packages()
        if package in reach[package]
    }
    return sorted(sorted(circle) for circle in circles)


def twice() -> dict[str, list[str]]:
    """Public class names that stand for more than one class."""
    where: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].add(module.name)
    return {name: sorted(homes) for name, homes in sorted(where.items()) if len(homes) > 1}


def private() -> list[str]:
    """Uses of private members of other packages: `package.module, line n: _name of package`."""
    defined: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        for node in module.nodes:
            name = None
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = node.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                name = node.attr
            if name and _is_private(name):
                defined[name].add(module.package)
    found = []
    for module in modules():
        for node in module.nodes:
            names: list[str] = []
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                names = [] if own else [node.attr]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("alembert"):
                names = [alias.name for alias in node.names]
            for name in names:
                homes = defined.get(name, set())
                if _is_private(name) and homes and module.package not in homes:
                    found.append(f"{module.name}, line {node.lineno}: {name} of {', '.join(sorted(homes))}")
    return found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def alone() -> list[str]:
    """Modules that exactly one other module imports."""
    users: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        for target, _ in imported(module):
            if target != module.name:
                users[target].add(module.name)
    return sorted(name for name, by in users.items() if len(by) == 1 and name)


def files_read(task: str) -> list[str]:
    """The source files in which a function runs, in a process of its own with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [sys.executable, "-c", COUNT.format(task=task)],
            env={**_environment(), "ALEMBERT_CACHE": folder},
            capture_output=True,
            text=True,
            check=True,
        )
    found: list[str] = json.loads(result.stdout.splitlines()[-1])
    return [name for name in found if name.partition("/")[0].removesuffix(".py") not in VOCABULARY]


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT.parent)}


def counts() -> dict[str, int]:
    """The table of the page."""
    found = {what: len(files_read(task)) for what, task in TASKS.items()}
    found["source files"] = len(modules())
    found["source lines"] = sum(m.lines for m in modules())
    found["knots between packages, imports in functions counted"] = len(knots())
    found["public class names with two meanings"] = len(twice())
    found["uses of private members of other packages"] = len(private())
    found["modules with exactly one importer"] = len(alone())
    return found


def order() -> list[str]:
    """The packages, what is imported first."""
    left = {name for name in packages() if name not in ("alembert", "__main__")}
    after: dict[str, set[str]] = defaultdict(set)
    for package, other in edges().keys() - DECLARED:
        after[package].add(other)
    found: list[str] = []
    while left:
        ready = sorted(p for p in left if not (after[p] & left) - {p})
        if not ready:  # a knot: the one with the fewest imports first
            ready = [min(sorted(left), key=lambda p: len(after[p] & left))]
        found += ready
        left -= set(ready)
    return found


def picture() -> str:
    """Who imports whom: a row imports the columns; all marks below the diagonal means that there is no knot."""
    names = order()
    cell, left, top = 24, 110, 110
    size = cell * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + size + 10} {top + size + 10}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{left + size + 10}" height="{top + size + 10}" fill="white"/>',
    ]
    for i, name in enumerate(names):
        y, x = top + cell * i, left + cell * i
        shade = "#f4f5fb" if i % 2 else "white"
        parts.append(f'<rect x="{left}" y="{y}" width="{size}" height="{cell}" fill="{shade}"/>')
        parts.append(f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" fill="#c5cae9"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 16}" text-anchor="end">{name}</text>')
        parts.append(f'<text transform="translate({x + 16} {top - 6}) rotate(-60)">{name}</text>')
    for (package, other), number in sorted(edges().items()):
        if package in names and other in names:
            i, j = names.index(package), names.index(other)
            x, y = left + cell * j + cell / 2, top + cell * i
            color = "#303f9f" if j < i else "#c62828"
            parts.append(
                f'<text x="{x}" y="{y + 16}" text-anchor="middle" fill="{color}" font-size="10">{number}</text>'
            )
    return "\n".join([*parts, "</svg>\n"])


PAGE = """# The house at a glance

Written by `python docs/house.py`; not by hand. Packages stand in the order of their dependencies: a row imports the columns,
the number says how many imports there are. A number above the diagonal (red) would be a knot.

![Which package imports which](images/house.svg)

| package | files | lines |
|---|---|---|
{packages}

| counted | now |
|---|---|
{counts}
"""


def page() -> str:
    rows = [f"| `{name}` | {files} | {lines} |" for name, (files, lines) in sorted(packages().items())]
    numbers = [f"| {what} | {number} |" for what, number in counts().items()]
    return PAGE.format(packages="\n".join(rows), counts="\n".join(numbers))


if __name__ == "__main__":
    if "--print" in sys.argv:
        for what, number in counts().items():
            print(f"{number:7d}  {what}")
        for circle in knots():
            print("knot:", ", ".join(circle))
        if "--private" in sys.argv:
            print("\n".join(private()))
        if "--twice" in sys.argv:
            print("\n".join(f"{name}: {', '.join(homes)}" for name, homes in twice().items()))
    else:
        (DOCS / "images" / "house.svg").write_text(picture(), encoding="utf-8")
        (DOCS / "house.md").write_text(page(), encoding="utf-8")

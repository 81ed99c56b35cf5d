"""The dependency order of the packages: a module imports from its own package and from those above it."""

import ast
import inspect
from pathlib import Path

import pytest

import alembert

ORDER = [
    "errors",
    "arguments",
    "meaning",
    "own_source",
    "forking",
    "expression",
    "spatial",
    "joints",
    "model",
    "model.io",
    "convert",
    "library",
    "sweeps",
    "sensitivity",
    "engine",
    "lowering",
    "algorithms",
    "constraints",
    "operators",
    "reach",
    "view",
    "editor",
    "control",
    "linear",
    "check",
    "identify",
    "flexible",
    "simulate",
    "spacecraft",
    "optimal",
    "deploy",
    "verify",
    "study",
    "cli",
    "__main__",
]
ROOT = Path(alembert.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
LAZY_UPWARD = (
    ("model.model", "compute", "alembert.algorithms"),
    ("model.model", "constrained_compute", "alembert.constraints"),
)
"""What reaches up: a model makes its `Compute`, of one kind or the other, when it is first asked for."""


def dotted(path):
    """`model.io.urdf` for a file under the package, `` for its `__init__`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def unit(module):
    """The entry of ORDER that holds a module, given without the leading `alembert.`"""
    found = [name for name in ORDER if module == name or module.startswith(f"{name}.")]
    return max(found, key=len, default=None)


def imports(tree, module, is_package):
    """(imported module, innermost function, line) of every import of alembert that runs."""
    package = module.split(".") if module else []
    if not is_package:
        package = package[:-1]

    def visit(node, function):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.orelse:
                yield from visit(child, function)
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "alembert":
                    yield alias.name, function, node.lineno
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = ".".join(["alembert", *package[: len(package) - node.level + 1]])
                source = f"{base}.{node.module}" if node.module else base
            else:
                source = node.module or ""
            if source.split(".")[0] == "alembert":
                for alias in node.names:  # a name may itself be a module: from alembert import spatial
                    below = ROOT.joinpath(*source.split(".")[1:], alias.name)
                    is_module = below.with_suffix(".py").exists() or (below / "__init__.py").exists()
                    yield (f"{source}.{alias.name}" if is_module else source), function, node.lineno
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function)

    yield from visit(tree, None)


def violations(text, module, *, is_package=False):
    """Sentences about the imports of one module that go against the order."""
    own = unit(module)
    if module == "":
        return []
    if own is None:
        return [f"alembert.{module} belongs to no package of the order; add it to this list"]
    found = []
    for target, function, line in imports(ast.parse(text), module, is_package):
        if own == "cli" or (module, function, target) in LAZY_UPWARD:
            continue
        other = unit(target.removeprefix("alembert").removeprefix("."))
        if other is None or ORDER.index(other) > ORDER.index(own):
            found.append(f"alembert.{module}, line {line}: {own} may not import {target}")
    return found


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_modules_import_only_from_above(path):
    assert violations(path.read_text(), dotted(path), is_package=path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("spatial.so3", "from alembert.joints import Revolute"),
        ("joints.guides", "import alembert.model.model"),
        ("joints.guides", "def f():\n    from alembert import library"),
        ("model.model", "def f():\n    from alembert.algorithms import Compute"),
        ("model.builder", "from alembert.model.io import load"),
        ("model.builder", "from alembert.model import io"),
        ("model.builder", "from . import io"),
        ("model.builder", "from ..sweeps import forward"),
        ("sweeps.forward", "import alembert as al"),
        ("errors", "if True:\n    from alembert.expression import Expression"),
        ("novelty.thing", ""),
    ],
)
def test_the_check_finds_violations(module, text):
    assert len(violations(text, module)) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("model.model", "def compute():\n    from alembert.algorithms import Compute"),
        ("model.printing", "if TYPE_CHECKING:\n    from alembert.cli import main"),
        ("model.io.urdf", "from alembert.model import Model\nfrom . import xml\nfrom .. import builder"),
        ("cli.info", "import alembert\ndef f():\n    from alembert.view import show"),
        (
            "sweeps.forward",
            "import numpy\nfrom alembert.errors import ModelError\nfrom alembert import spatial",
        ),
    ],
)
def test_the_check_lets_the_rest_through(module, text):
    assert violations(text, module) == []


PUBLIC = [name for name in dir(alembert) if not name.startswith("_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_a_docstring(name):
    value = getattr(alembert, name)
    if not (inspect.ismodule(value) or inspect.isclass(value) or callable(value)):
        return  # a constant
    doc = inspect.cleandoc(value.__doc__ or "")
    generated = inspect.isclass(value) and doc.startswith(f"{value.__name__}(")  # that of a dataclass
    assert doc, f"alembert.{name} has no docstring"
    assert not generated, f"alembert.{name} has only the docstring that dataclasses make"


def test_no_submodule_hides_a_package():
    for name in PUBLIC:
        value = getattr(alembert, name)
        if inspect.ismodule(value):
            assert value.__name__ == f"alembert.{name}"

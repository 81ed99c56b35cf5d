"""The text of LLVM's intermediate language is written in the engine alone."""

import ast
import re
from pathlib import Path

import pytest

import alembert

ROOT = Path(alembert.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] != "engine"]
TEXT = re.compile(
    r"getelementptr|define (internal )?(void|i32|i64) @|declare .*@|br (label|i1) %|\bicmp (eq|ne|[su][lg][te]) |"
    r"\bfcmp o|= phi |\b(load|store) (double|i64|ptr|<)|call void @|\bptr %|\bi64 %|\bf(add|sub|mul|div|neg) (double|<)"
)


def written(text):
    """What of the intermediate language is in the strings of a module, but for its documentation."""
    tree = ast.parse(text)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documentation
        and TEXT.search(node.value)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_intermediate_code_outside_the_engine(path):
    assert written(path.read_text()) == []


def test_the_search_finds_some():
    assert len(written('x = f"call void @{f}(ptr %a)"\ny = "icmp eq i64 0, 1"')) >= 2
    assert len(written((ROOT / "engine" / "loops.py").read_text())) > 10

"""The code blocks of a page, and running them as a reader would: in order, in one namespace.

A `text output` block is what the python block before it prints. `python no-run` blocks are left out.
"""

import contextlib
import io
import re
from pathlib import Path

import numpy as np

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?")


def blocks(page: Path) -> list[tuple[str, str, int]]:
    """(words after the fence, text, line) of every block."""
    text = page.read_text(encoding="utf-8")
    return [(m[1].strip(), m[2], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]


def run(page: Path) -> int:
    """Run the python blocks of a page and compare what they print; how many were run."""
    namespace = {"__name__": "page"}
    count, printed = 0, ""
    for words, text, line in blocks(page):
        if words == "python":
            # as many empty lines before it as on the page, so that a traceback has the page's line
            code = compile("\n" * line + text, str(page), "exec")
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream):
                exec(code, namespace)
            count, printed = count + 1, stream.getvalue()
        elif words == "text output":
            compare(printed, text, f"{page.name}:{line}")
    return count


def compare(printed: str, expected: str, where: str) -> None:
    """Equal but for the last digits of numbers, which differ between machines."""
    ours, theirs = printed.rstrip(), expected.rstrip()
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs), (
        f"{where}: the page shows\n{theirs}\nprinted is\n{ours}"
    )
    numbers = [[float(x) for x in NUMBER.findall(text)] for text in (ours, theirs)]
    # shown with four digits or more: half a unit of the last one
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-4, err_msg=where)

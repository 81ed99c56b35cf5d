"""Alembert's own source files: machine code that an older version made must not be taken for that of this one.

Their content takes 5 ms to read and their states (size, times, inode) 1.5 ms, of a first call that takes some 15. A state
that was seen before therefore stands for the content that was read then, unless a file is so young that it could have
changed again within the clock's resolution. That is stricter than what Python asks of a file before it runs the bytecode
of an earlier import: the second in which it changed, and its size.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from typing import NamedTuple

IMPORTED = time.time_ns()
_YOUNG = 3 * 10**9  # ns; the coarsest clock of a file system ticks every two seconds
_ROOT = os.path.dirname(os.path.realpath(__file__))
_NO_KERNELS = {"cli", "io", "library", "study", "verify", "view", "__pycache__"}
"""packages that show, or make models and problems, whose content is in the keys of their kernels"""


class State(NamedTuple):
    text: str
    """another one whenever a file is, for all that the file system tells"""
    settled: bool
    """whether all files are old enough for that"""
    changed: bool
    """whether a file changed since this process imported Alembert"""


@functools.cache
def state() -> State:
    """That which the process found when it first asked."""
    return look()


def look() -> State:
    lines: list[str] = []
    last = 0
    for path, entry in _files(_ROOT):
        known = entry.stat()
        last = max(last, known.st_mtime_ns, known.st_ctime_ns)
        lines.append(f"{path} {known.st_size} {known.st_mtime_ns} {known.st_ctime_ns} {known.st_ino}")
    text = hashlib.blake2b("\n".join(lines).encode(), digest_size=32).hexdigest()
    return State(text, settled=last < time.time_ns() - _YOUNG, changed=last > IMPORTED)


@functools.cache
def content() -> str:
    """A digest of the files: any of them may change the code of a kernel, but for those in `_NO_KERNELS`."""
    result = hashlib.blake2b(digest_size=32)  # the faster one
    for path, entry in _files(_ROOT):
        with open(entry.path, "rb", buffering=0) as file:
            text = file.read()
        result.update(f"{path}\0{len(text)}\0".encode())
        result.update(text)
    return result.hexdigest()


def _files(folder: str, under: str = "") -> list[tuple[str, os.DirEntry[str]]]:
    """The files in an order of their own, with their paths in the package."""
    found = []
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(".py"):
            found.append((under + entry.name, entry))
        elif "." not in entry.name and entry.name not in _NO_KERNELS and entry.is_dir():
            found += _files(entry.path, f"{under}{entry.name}/")
    return found

"""Alembert's own source files: machine code that another version of them made must not be taken for that of this one.

The version's number does not tell one state of a development checkout from the next, so the files' content does: some
400 files, 7 ms. It is asked for with every kernel that is kept, and read again only where the size or the times of a file
have changed, which takes 1 ms to see.
"""

from __future__ import annotations

import functools
import hashlib
import os

_ROOT = os.path.dirname(os.path.realpath(__file__))
_NO_KERNELS = {"cli", "io", "library", "study", "verify", "view", "__pycache__"}
"""packages that show, or make models and problems, whose content is in the keys of their kernels"""


@functools.cache
def at_import() -> str:
    """The digest that this process found when it imported Alembert."""
    return digest()


def unchanged() -> bool:
    """Whether the files still are those that this process imports; otherwise it may run parts of two versions."""
    states = ((path, entry.stat()) for path, entry in _files(_ROOT))
    return (
        _digest_of(tuple((path, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in states))
        == at_import()
    )


@functools.lru_cache(maxsize=1)
def _digest_of(states: tuple[tuple[str, int, int, int], ...]) -> str:
    return digest()


def digest() -> str:
    """A digest of all files that may change the code of a kernel."""
    result = hashlib.blake2b(digest_size=32)
    for path, entry in _files(_ROOT):
        with open(entry.path, "rb", buffering=0) as opened:
            text = opened.read()
        result.update(f"{path}\0{len(text)}\0".encode())
        result.update(text)
    return result.hexdigest()


def _files(folder: str, under: str = "") -> list[tuple[str, os.DirEntry[str]]]:
    """The paths in the package, and what the disk has there, in an order of their own."""
    found: list[tuple[str, os.DirEntry[str]]] = []
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(".py"):
            found.append((under + entry.name, entry))
        elif "." not in entry.name and entry.name not in _NO_KERNELS and entry.is_dir():
            found += _files(entry.path, f"{under}{entry.name}/")
    return found


at_import()

"""Machine code as an image of the memory that it runs in, made by `alembert.engine.link`.

An image says how many bytes of it are run, read and written (whole pages each), where its functions and variables start,
and where it wants the addresses of functions outside. It works wherever in memory it lies.
"""

from __future__ import annotations

import ast
import ctypes
import mmap
from typing import NamedTuple

from alembert.engine import symbols

PAGE = 4096
_MAGIC = b"alembert-image-1 "
_RUN, _READ, _WRITE = 4, 1, 2  # mprotect's


class Layout(NamedTuple):
    sizes: tuple[int, int, int]
    entries: dict[str, int]
    """the offset of each function and variable"""
    holes: dict[str, int]
    """where the address of a function outside belongs"""


def written(layout: Layout, content: bytes) -> bytes:
    return _MAGIC + repr(tuple(layout)).encode() + b"\n" + content.rstrip(b"\0")


def is_image(code: bytes) -> bool:
    return code.startswith(_MAGIC)


class Image:
    """An image in memory, as long as this object lives."""

    def __init__(self, code: bytes):
        head, _, content = code[len(_MAGIC) :].partition(b"\n")
        layout = Layout(*ast.literal_eval(head.decode()))
        # Private: a forked process has its own copy of what is written.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, sum(layout.sizes), flags, mmap.PROT_READ | mmap.PROT_WRITE)
        self._memory[: len(content)] = content
        for name, place in layout.holes.items():
            self._memory[place : place + 8] = symbols.address(name).to_bytes(8, "little")
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._entries = layout.entries
        run, read, _ = layout.sizes
        _protect(self._start, run, _READ | _RUN)
        _protect(self._start + run, read, _READ)

    def address(self, name: str) -> int:
        return self._start + self._entries[name]


def _protect(start: int, size: int, allowed: int) -> None:
    if size and ctypes.CDLL(None, use_errno=True).mprotect(
        ctypes.c_void_p(start), ctypes.c_size_t(size), ctypes.c_int(allowed)
    ):
        raise OSError(
            ctypes.get_errno(), "the system does not let machine code be run that was made at run time"
        )

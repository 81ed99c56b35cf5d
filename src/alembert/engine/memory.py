"""Large results in memory that was used before.

The system gives new memory page by page and clears each, which for the derivatives of a batch takes longer than to compute
them. So the memory of large results that nobody refers to any more is kept for the next ones, up to `IDLE_BYTES` of it. It
belongs to a *lease*, the base of the array and of all views of it, and comes back when the lease ends.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

LARGE_BYTES = 1 << 18  # of a result; the allocator itself reuses less
GRAIN = 1 << 16  # bytes; blocks are multiples of it, so that batches of nearly one size share them
IDLE_BLOCKS = 64  # that are kept at most


def _most() -> int:
    """Bytes to keep at most: not more than the sixteenth part of the memory."""
    try:
        return min(1 << 29, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 16)
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return 1 << 28


IDLE_BYTES = _most()


class _Block:
    __slots__ = ("memory", "size")

    def __init__(self, size: int) -> None:
        self.memory = np.empty(size // 8, np.float64)
        self.size = size


_idle: list[_Block] = []
"""blocks that nobody uses, the oldest first; leases end at any time and in any thread: only single operations change it"""


class _Lease:
    """Lends a block to an array; what was there stays in it."""

    def __init__(self, block: _Block, shape: tuple[int, ...]) -> None:
        self._block = block
        memory = block.memory.__array_interface__
        self.__array_interface__: dict[str, Any] = {
            "data": memory["data"],
            "typestr": memory["typestr"],
            "shape": shape,
            "version": 3,
        }

    def __del__(self) -> None:
        if self._block.size > IDLE_BYTES:
            return
        _idle.append(self._block)
        while len(_idle) > IDLE_BLOCKS or sum(block.size for block in tuple(_idle)) > IDLE_BYTES:
            try:
                del _idle[0]
            except IndexError:  # another thread was faster
                return


def empty(shape: tuple[int, ...]) -> np.ndarray:
    """A large array of doubles with any content."""
    size = -(-8 * math.prod(shape) // GRAIN) * GRAIN
    return np.asarray(_Lease(_found(size) or _Block(size), shape))


def _found(size: int) -> _Block | None:
    for block in reversed(tuple(_idle)):
        if block.size == size:
            try:
                _idle.remove(block)
            except ValueError:  # another thread was faster
                continue
            return block
    return None

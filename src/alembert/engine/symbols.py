"""Where the functions are that machine code calls: those of the C library, and those that kernels share."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable

PREFIX = "alembert_c_"  # our names for the mathematical ones: LLVM must not fold or replace the calls
SHARED = "alembert_shared_"  # names of what `alembert.engine.shared` provides
_PROVIDERS: list[Callable[[str], int]] = []


def provide(shared: Callable[[str], int]) -> None:
    """Ask `shared` for names that begin with SHARED."""
    _PROVIDERS[:] = [shared]


@functools.cache
def address(symbol: str) -> int:
    """Where a function is; AttributeError when it is nowhere."""
    if symbol.startswith(SHARED):
        return _PROVIDERS[0](symbol)
    if symbol.startswith(PREFIX):
        function = getattr(_mathematics(), symbol.removeprefix(PREFIX))
    else:
        function = getattr(ctypes.CDLL(None), symbol)
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def _mathematics() -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    try:
        return ctypes.CDLL({"linux": "libm.so.6", "darwin": "libm.dylib"}[sys.platform])
    except (KeyError, OSError):  # another C library: looking for it takes a process of its own
        from ctypes.util import find_library

        return ctypes.CDLL(find_library("m"))

"""One thread of BLAS where matrices are small.

NumPy's and SciPy's OpenBLAS splits a factorisation of a hundred columns over all cores. Its threads wait for one another by
spinning: where other work keeps the cores busy, 200 such factorisations take a minute instead of a third of a second. It has
no switch that Python offers after its start, but the library has one.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LOCK = threading.Lock()
_users = 0
_before: list[int] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it, BLAS works on one thread, in the whole process; also a decorator. Without effect on another BLAS."""
    global _users
    with _LOCK:
        if _users == 0:
            _before[:] = [get() for get, _ in _libraries()]
            for _, put in _libraries():
                put(1)
        _users += 1
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            if _users == 0:
                for (_, put), count in zip(_libraries(), _before, strict=True):
                    put(count)


@functools.cache
def _libraries() -> tuple[tuple[Any, Any], ...]:
    """How many threads each OpenBLAS that comes with NumPy and SciPy has: to get, and to set."""
    found = []
    for package in ("numpy", "scipy"):
        spec = importlib.util.find_spec(package)
        folder = Path(str(spec.origin)).parents[1] / f"{package}.libs" if spec is not None else Path()
        for path in sorted(folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for end in ("64_", ""):
                names = [f"scipy_openblas_{verb}_num_threads{end}" for verb in ("get", "set")]
                if all(hasattr(library, name) for name in names):
                    found.append((getattr(library, names[0]), getattr(library, names[1])))
                    break
    return tuple(found)

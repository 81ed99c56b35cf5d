"""Processes that fork while another thread makes or loads machine code: the copy must not wait for one who is gone."""

from __future__ import annotations

import functools
import os
import sys
import threading


class _Compiling:
    """Entered by every thread that makes or loads machine code, or what makes it, and waited for by one that forks.

    In the copy of a process only the thread that forked goes on. What another one has locked there, a kernel, LLVM or a
    module that is being imported, would never be released.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._inside: list[int] = []

    def __enter__(self) -> None:
        with self._condition:
            self._inside.append(threading.get_ident())

    def __exit__(self, *error: object) -> None:
        with self._condition:
            self._inside.remove(threading.get_ident())
            self._condition.notify_all()

    def close(self) -> None:
        """Wait until no other thread is inside, and let none in."""
        self._condition.acquire()
        while any(thread != threading.get_ident() for thread in self._inside):
            self._condition.wait()

    def open(self) -> None:
        self._condition.release()


def _fresh_locks() -> None:
    """Python 3.11 has a lock in every cached property, which a thread that is gone may have held."""
    if not hasattr(functools.cached_property(len), "lock"):
        return
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "alembert":
            continue
        for cls in [x for x in vars(module).values() if isinstance(x, type) and x.__module__ == name]:
            for attribute in vars(cls).values():
                if isinstance(attribute, functools.cached_property):
                    attribute.lock = threading.RLock()  # type: ignore[attr-defined,unused-ignore]


COMPILING = _Compiling()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=COMPILING.close, after_in_parent=COMPILING.open, after_in_child=COMPILING.open)
    os.register_at_fork(after_in_child=_fresh_locks)

"""Flight tasks in C: functions of a shared library.

The function has the signature

    int task(double t, const double *in, double *out);

`in` has what the task reads, one message after the other in the order of `reads`, `out` what it writes, in the order of
`writes`, filled with what was written last. It returns 0, or a number that says what went wrong. It may keep nothing between
calls but in messages: a run that is resumed would not know of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
_DOUBLES = ctypes.POINTER(ctypes.c_double)


@dataclass(frozen=True)
class SharedFunction:
    """A function of a library on disk (`.so`, `.dylib`, `.dll`), for `FlightTask`: `reads` and `writes` are the task's.

    `writes` has the first values of its messages. An instance can be copied to other processes that have the library.
    """

    library: str
    name: str
    reads: tuple[str, ...]
    writes: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "library", str(Path(self.library).resolve()))
        object.__setattr__(self, "reads", (self.reads,) if isinstance(self.reads, str) else tuple(self.reads))
        first = {name: np.atleast_1d(np.asarray(x, dtype=float)) for name, x in self.writes.items()}
        object.__setattr__(self, "writes", first)
        self._entry()

    def _entry(self) -> Any:
        try:
            found = getattr(ctypes.CDLL(self.library), self.name)
        except OSError as error:
            raise ArgumentError(f"SharedFunction: {self.library} cannot be loaded: {error}") from None
        except AttributeError:
            raise ArgumentError(
                f'SharedFunction: {self.library} has no function {self.name!r}; is it declared extern "C" and exported?'
            ) from None
        found.argtypes, found.restype = [ctypes.c_double, _DOUBLES, _DOUBLES], ctypes.c_int
        return found

    def __call__(self, t: float, messages: Mapping[str, Array]) -> dict[str, Array]:
        given = np.concatenate([np.zeros(0), *(np.ravel(messages[name]) for name in self.reads)])
        out = np.concatenate(
            [np.zeros(0), *(np.ravel(messages.get(name, first)) for name, first in self.writes.items())]
        )
        status = self._entry()(t, given.ctypes.data_as(_DOUBLES), out.ctypes.data_as(_DOUBLES))
        if status:
            raise NumericalError(
                f"{self.name} of {Path(self.library).name} returned {status} at t = {t:.6g} s"
            )
        ends = np.cumsum([0, *(x.size for x in self.writes.values())])
        return {name: out[ends[k] : ends[k + 1]] for k, name in enumerate(self.writes)}

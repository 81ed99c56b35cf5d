"""Sparse elimination of any size, as a list of multiplications that one small compiled loop runs through.

A tape works on an array w. Its instructions are of three kinds,

    w[d] -= w[a] w[b],      w[d] = w[a] w[b],      w[d] = 1 / w[a]                                  (1)

and its cost is theirs: sparse factorisations and substitutions whose pattern is known in advance need nothing else. The
code is the same for all tapes, so that nothing is compiled anew for another pattern or size.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from alembert.engine.loader import Library, compile_ir
from alembert.engine.target import host

SUBTRACT, MULTIPLY, INVERT = range(3)
_LOOP = """\
{name}:
  %{name}_i = phi i64 [ %position, %segment ], [ %{name}_next, %{name} ]
  %{name}_pd = getelementptr i32, ptr %d, i64 %{name}_i
  %{name}_pa = getelementptr i32, ptr %a, i64 %{name}_i
  %{name}_pb = getelementptr i32, ptr %b, i64 %{name}_i
  %{name}_d = load i32, ptr %{name}_pd
  %{name}_a = load i32, ptr %{name}_pa
  %{name}_b = load i32, ptr %{name}_pb
  %{name}_wd = getelementptr double, ptr %w, i32 %{name}_d
  %{name}_wa = getelementptr double, ptr %w, i32 %{name}_a
  %{name}_wb = getelementptr double, ptr %w, i32 %{name}_b
  %{name}_x = load double, ptr %{name}_wa
  %{name}_y = load double, ptr %{name}_wb
{body}
  store double %{name}_r, ptr %{name}_wd
  %{name}_next = add i64 %{name}_i, 1
  %{name}_more = icmp slt i64 %{name}_next, %stop
  br i1 %{name}_more, label %{name}, label %done
"""
_BODIES = {
    "subtract": """\
  %{name}_p = fmul double %{name}_x, %{name}_y
  %{name}_o = load double, ptr %{name}_wd
  %{name}_r = fsub double %{name}_o, %{name}_p""",
    "multiply": "  %{name}_r = fmul double %{name}_x, %{name}_y",
    "invert": "  %{name}_r = fdiv double 1.0, %{name}_x",
}
_TEXT = """\
define void @tape(ptr %w, ptr %kind, ptr %end, i64 %count, ptr %d, ptr %a, ptr %b) #0 {{
entry:
  br label %segments
segments:
  %k = phi i64 [ 0, %entry ], [ %k_next, %done ]
  %position = phi i64 [ 0, %entry ], [ %stop, %done ]
  %over = icmp sge i64 %k, %count
  br i1 %over, label %leave, label %segment
segment:
  %p_kind = getelementptr i32, ptr %kind, i64 %k
  %p_end = getelementptr i64, ptr %end, i64 %k
  %this = load i32, ptr %p_kind
  %stop = load i64, ptr %p_end
  switch i32 %this, label %subtract [ i32 1, label %multiply
                                      i32 2, label %invert ]
{loops}
done:
  %k_next = add i64 %k, 1
  br label %segments
leave:
  ret void
}}
"""


class Tape:
    """InstructionList (1), collected with `subtract`, `multiply` and `invert`; `run` runs them all on an array."""

    def __init__(self) -> None:
        self._items: list[tuple[int, int, int, int]] = []

    def subtract(self, d: int, a: int, b: int) -> None:
        self._items.append((SUBTRACT, d, a, b))

    def multiply(self, d: int, a: int, b: int) -> None:
        self._items.append((MULTIPLY, d, a, b))

    def invert(self, d: int, a: int) -> None:
        self._items.append((INVERT, d, a, a))

    def __len__(self) -> int:
        return len(self._items)

    @functools.cached_property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        table = np.array(self._items, dtype=np.int32).reshape(-1, 4)
        kinds = table[:, 0]
        ends = np.flatnonzero(np.diff(kinds, append=-1) != 0) + 1
        return (
            np.ascontiguousarray(kinds[ends - 1]),
            ends.astype(np.int64),
            *(np.ascontiguousarray(table[:, k]) for k in (1, 2, 3)),
        )

    def run(self, w: np.ndarray) -> None:
        """Change `w` (contiguous doubles) in place."""
        if not self._items:
            return
        kinds, ends, d, a, b = self._arrays
        function, _ = _compiled()
        function(
            w.ctypes.data,
            kinds.ctypes.data,
            ends.ctypes.data,
            len(ends),
            d.ctypes.data,
            a.ctypes.data,
            b.ctypes.data,
        )


@functools.cache
def _compiled() -> tuple[ctypes._FuncPointer, Library]:
    target = host().compact()
    loops = "".join(_LOOP.format(name=name, body=body.format(name=name)) for name, body in _BODIES.items())
    library = Library(compile_ir(_TEXT.format(loops=loops) + target.attributes, target), ["tape"])
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 3)
    return kind(library.addresses["tape"]), library

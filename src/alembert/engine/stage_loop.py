"""A function run stage by stage over arrays: what the time sweep of optimal control needs.

The arrays have one entry per stage along their first axis. A stage may read or write the entry of the stage after
it (a shift of 1), so that what one stage leaves is what its neighbour takes: this is the recursion. The number of
stages is an argument at run time; the machine code depends on the function alone.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.engine import cache, codegen, fastcall, loader, program
from alembert.engine import target as targets
from alembert.engine.loader import Library

STEP = "alembert_stage"
ALIGNMENT = 64  # bytes; of the widest vector
SHARED = None
"""As a shift: one entry for all stages."""

Array = np.ndarray


class StageLoop:
    """`shifts` says for every input and then every output of `function` which entry a stage uses.

    With `stop`, the index of a scalar output, the loop ends at the first stage that leaves a number there which is
    not positive.
    """

    def __init__(
        self, function: ca.Function, shifts: Sequence[int | None], *, backward: bool, stop: int | None = None
    ) -> None:
        self.name = function.name()
        self._function, self._shifts = function, tuple(shifts)
        self._backward, self._stop = backward, stop
        self._sizes = [function.numel_in(k) for k in range(function.n_in())]
        self._sizes += [function.numel_out(k) for k in range(function.n_out())]
        self._code: Any = None

    def __call__(self, count: int, *arrays: Array) -> int:
        """Run over `count` stages; how many were run to the end (all, unless one stopped the loop)."""
        if self._code is None:
            self._code = self._compile()
        run, workspace = self._code
        for x, size, shift in zip(arrays, self._sizes, self._shifts, strict=True):
            entries = 1 if shift is None else count + shift if count else 0
            if not (x.flags.c_contiguous and x.dtype == np.float64 and x.size >= entries * size):
                raise AssertionError(f"{self.name}: array of shape {x.shape} for {entries} entries of {size}")
        table = (ctypes.c_int64 * len(arrays))(*(fastcall.address(x) for x in arrays))
        return int(run(count, table, _aligned(workspace)))

    def bind(self, count: int, arrays: Sequence[Array]) -> Callable[[], int]:
        """The loop on always the same arrays."""
        self(0, *arrays)
        run, _ = self._code
        workspace = np.empty(len(self._code[1]))
        table = (ctypes.c_int64 * len(arrays))(*(fastcall.address(x) for x in arrays))
        place, kept = _aligned(workspace), (arrays, workspace)

        def bound(_kept: Any = kept) -> int:
            return int(run(count, table, place))

        return bound

    def _compile(self) -> tuple[Any, Array]:
        target = targets.host()
        text = f"{self._function.serialize()}\0{self._shifts}\0{self._backward}\0{self._stop}"
        name = cache.digest("stage loop" + hashlib.sha256(text.encode()).hexdigest(), 1, target)
        found = cache.load(name)
        if found is None:
            with loader.patience(self.name):
                body = codegen.emit_function(
                    STEP, program.from_casadi(self._function, fuse=target.fused), 1, target
                )
                parts = [codegen.prelude(body.helpers, 1, body.target), body.text, self._loop()]
                found = {"workspace": body.workspace}, loader.compile_ir("".join(parts), target)
            cache.store(name, *found)
        properties, code = found
        library = Library(code, target)
        self._library = library  # keeps the machine code
        room = np.empty(properties["workspace"] + ALIGNMENT // 8)
        return _LOOP(library.function(f"{STEP}_loop")), room

    def _loop(self) -> str:
        entry, body, pointers = [], [], []
        for k, (size, shift) in enumerate(zip(self._sizes, self._shifts, strict=True)):
            entry += [
                f"%t{k} = getelementptr inbounds i64, ptr %table, i64 {k}",
                f"%b{k} = load ptr, ptr %t{k}",
            ]
            if shift is None:
                pointers.append(f"%b{k}")
                continue
            body += [
                f"%i{k} = add i64 %index, {shift}",
                f"%o{k} = mul i64 %i{k}, {size}",
                f"%p{k} = getelementptr inbounds double, ptr %b{k}, i64 %o{k}",
            ]
            pointers.append(f"%p{k}")
        order = "%index = sub i64 %last, %k" if self._backward else "%index = add i64 %k, 0"
        body = [order, *body, f"call void @{STEP}({', '.join(f'ptr {p}' for p in [*pointers, '%w'])})"]
        if self._stop is None:
            body.append("br label %after")
        else:
            place = pointers[self._function.n_in() + self._stop]
            body += [
                f"%flag = load double, ptr {place}",
                "%good = fcmp ogt double %flag, 0.0",
                "br i1 %good, label %after, label %end",
            ]
        lines = "\n  ".join
        return (
            f"define i64 @{STEP}_loop(i64 %count, ptr %table, ptr %w) #0 {{\nentry:\n  {lines(entry)}\n"
            "  %last = sub i64 %count, 1\n  br label %test\n"
            "test:\n  %k = phi i64 [0, %entry], [%next, %after]\n"
            "  %more = icmp slt i64 %k, %count\n  br i1 %more, label %stage, label %end\n"
            f"stage:\n  {lines(body)}\n"
            "after:\n  %next = add i64 %k, 1\n  br label %test\n"
            "end:\n  ret i64 %k\n}\n"
        )


def _aligned(workspace: Array) -> int:
    """The first address in the workspace where a vector may begin."""
    return -(-workspace.ctypes.data // ALIGNMENT) * ALIGNMENT


_LOOP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)

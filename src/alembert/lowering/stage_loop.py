"""A function run stage by stage over arrays: what the time sweep of optimal control needs.

The arrays have one entry per stage along their first axis. A stage may read or write the entry of the stage after
it (a shift of 1), so that what one stage leaves is what its neighbour takes: this is the recursion. The number of
stages is an argument at run time; the machine code depends on the function alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.engine import codegen, elimination, fastcall, loader, loops
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.elimination import EliminationSource
from alembert.engine.kernel import FEWEST_BOUND, address, shared_entry
from alembert.engine.loader import Module
from alembert.engine.target import Target

STEP = "alembert_stage"
ALIGNMENT = 64  # bytes; of the widest vector
SHARED = None
"""As a shift: one entry for all stages."""

Array = np.ndarray


class StageLoop:
    """`shifts` says for every input and then every output of the step which entry a stage uses.

    The step is a function, or any source of a kernel with a `key` for its content. With `stop`, the index of a scalar
    output, the loop ends at the first stage that leaves a number there which is not positive.
    """

    def __init__(
        self,
        step: ca.Function | KernelSource,
        shifts: Sequence[int | None],
        *,
        backward: bool,
        stop: int | None = None,
        key: str = "",
    ) -> None:
        self._source: KernelSource
        if isinstance(step, ca.Function):
            self._source, self._key, self.name = FunctionSource(step), str(step.serialize()), step.name()
        else:
            self._source, self._key, self.name = step, key, key
        inputs = list(self._source.input_sizes)
        self._sizes, self._shifts = [*inputs, *self._source.output_sizes], tuple(shifts)
        self._backward, self._stop = backward, None if stop is None else len(inputs) + stop
        self._code: Any = None
        self._work = 0  # operations of a stage
        self._left = math.inf  # of them until good code would have been better
        self._libraries: list[loader.Library] = []

    def __call__(self, count: int, *arrays: Array) -> int:
        """Run over `count` stages; how many were run to the end (all, unless one stopped the loop)."""
        run, workspace = self._made(count)
        for x, size, shift in zip(arrays, self._sizes, self._shifts, strict=True):
            entries = 1 if shift is None else count + shift if count else 0
            if not (x.flags.c_contiguous and x.dtype == np.float64 and x.size >= entries * size):
                raise AssertionError(f"{self.name}: array of shape {x.shape} for {entries} entries of {size}")
        table = (ctypes.c_int64 * len(arrays))(*(address(x) for x in arrays))
        return int(run(count, table, _aligned(workspace)))

    def bind(self, count: int, arrays: Sequence[Array]) -> Callable[[], int]:
        """The loop on always the same arrays."""
        self(0, *arrays)
        table = (ctypes.c_int64 * len(arrays))(*(address(x) for x in arrays))
        code, workspace = None, np.empty(0)
        good: Callable[[], int] | None = None

        def bound(_kept: Any = arrays) -> int:
            nonlocal code, workspace, good
            if good is not None:
                return good()
            run, room = self._made(count)
            if run is not code:
                code, workspace = run, np.empty(len(room))
            if self._left == math.inf:
                loop, kept = ctypes.cast(run, ctypes.c_void_p).value or 0, (table, workspace, self)
                words = count, ctypes.addressof(table), _aligned(workspace)
                good = fastcall.again(shared_entry("again"), loop, words, kept)
            return int(run(count, table, _aligned(workspace)))

        return bound

    def _made(self, count: int) -> tuple[Any, Array]:
        """The loop, to be run over so many stages now, and room for a workspace."""
        if self._code is not None:
            self._left -= count * self._work
            if self._left >= 0:
                return self._code
        text = f"{self._key}\0{self._shifts}\0{self._backward}\0{self._stop}"
        key = "stage loop" + hashlib.sha256(text.encode()).hexdigest()
        properties, library, self._left = loader.in_steps(
            key, 1, self.name, self._module, [f"{STEP}_loop"], at_once=self._code is not None
        )
        self._libraries.append(
            library
        )  # keeps the machine code, of others too that may run in another thread
        room = np.empty(properties["workspace"] + ALIGNMENT // 8)
        self._work = properties["work"]
        self._code = _LOOP(library.addresses[f"{STEP}_loop"]), room
        return self._code

    def _module(self, target: Target) -> Module:
        step = self._source.emit(STEP, 1, target)
        if 0 < step.listed < FEWEST_BOUND:
            step = self._source.emit(STEP, 1, target.compiling())
        loop = loops.stage_function(STEP, self._sizes, self._shifts, self._backward, self._stop)
        text = codegen.prelude(step) + step.text + loop
        properties = {"workspace": step.workspace, "work": step.work, "listed": step.listed}
        level = 0 if step.listed else 1  # around a list little is to be done
        return Module(text, step.constants, properties, level, step.lists)


def elimination_loop(n: int, m: int, columns: int, bounds: int) -> StageLoop:
    """The inward sweep in time on vectors along rows: `alembert.engine.elimination`."""
    source = EliminationSource(n, m, columns, bounds)
    shifts = [SHARED if name == "shift" else int(name in ("P", "z", "W")) for name in elimination.NAMES]
    shifts += [0] * len(elimination.RESULTS)
    last = len(elimination.RESULTS) - 1
    key = f"time_sweep_inward {n} {m} {columns} {bounds}"
    return StageLoop(source, shifts, backward=True, stop=last, key=key)


def _aligned(workspace: Array) -> int:
    """The first address in the workspace where a vector may begin."""
    return -(-workspace.ctypes.data // ALIGNMENT) * ALIGNMENT


_LOOP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)

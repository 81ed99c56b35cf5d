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

from alembert.engine import cache, codegen, elimination, fastcall, instructions, loader, loops
from alembert.engine.loader import Library
from alembert.engine.target import Target, host

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
        sizes = [function.numel_in(k) for k in range(function.n_in())]
        sizes += [function.numel_out(k) for k in range(function.n_out())]
        self._function = function
        place = None if stop is None else function.n_in() + stop
        self._describe(function.name(), sizes, shifts, backward, place)

    def _describe(
        self, name: str, sizes: Sequence[int], shifts: Sequence[int | None], backward: bool, stop: int | None
    ) -> None:
        """`stop` counts all arguments."""
        self.name, self._sizes, self._shifts = name, list(sizes), tuple(shifts)
        self._backward, self._stop = backward, stop
        self._code: Any = None

    def _identity(self) -> str:
        """What the code of a stage depends on."""
        return str(self._function.serialize())

    def _body(self, target: Target) -> tuple[str, int]:
        """IR of a stage with all that it needs, and the doubles of its workspace."""
        body = codegen.emit_function(
            STEP, instructions.from_casadi(self._function, fuse=target.fused), 1, target
        )
        return codegen.prelude(body.helpers, 1, body.target) + body.text, body.workspace

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
        target = host()
        text = f"{self._identity()}\0{self._shifts}\0{self._backward}\0{self._stop}"
        name = cache.digest("stage loop" + hashlib.sha256(text.encode()).hexdigest(), 1, target)
        found = cache.load(name)
        if found is None:
            with loader.patience(self.name):
                body, workspace = self._body(target)
                loop = loops.stage_function(STEP, self._sizes, self._shifts, self._backward, self._stop)
                found = {"workspace": workspace}, loader.compile_ir(body + loop, target)
            cache.store(name, *found)
        properties, code = found
        library = Library(code, [f"{STEP}_loop"])
        self._library = library  # keeps the machine code
        room = np.empty(properties["workspace"] + ALIGNMENT // 8)
        return _LOOP(library.addresses[f"{STEP}_loop"]), room


class EliminationLoop(StageLoop):
    """The inward sweep in time on vectors along rows: `alembert.engine.elimination`."""

    def __init__(self, n: int, m: int, columns: int, bounds: int) -> None:
        self._shape = (n, m, columns, bounds)
        shifts = [SHARED if name == "shift" else int(name in ("P", "z", "W")) for name in elimination.NAMES]
        count = len(elimination.NAMES) + len(elimination.RESULTS)
        shifts += [0] * len(elimination.RESULTS)
        self._describe("time_sweep_inward", elimination.sizes(*self._shape), shifts, True, count - 1)

    def _identity(self) -> str:
        return f"elimination {self._shape}"

    def _body(self, target: Target) -> tuple[str, int]:
        text, workspace = elimination.emit(STEP, *self._shape, target)
        return target.attributes + text, workspace


def _aligned(workspace: Array) -> int:
    """The first address in the workspace where a vector may begin."""
    return -(-workspace.ctypes.data // ALIGNMENT) * ALIGNMENT


_LOOP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)

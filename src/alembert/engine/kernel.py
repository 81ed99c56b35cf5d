"""Compiled functions on NumPy arrays.

A `Kernel` computes some results from some arguments, for one state or for a batch: arguments have leading
batch dimensions that follow NumPy's rules of broadcasting. It is compiled when it is first called, once
for single states and once for batches, unless the cache has it. Long straight code is interpreted until it has run
often enough that machine code of it pays (`alembert.engine.interpreter`). One state gives the same bits whichever
way it is computed.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from alembert.arguments import where_numbers_are
from alembert.engine import codegen, driver, fastcall, loader, memory
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.loader import Library, Module
from alembert.engine.target import Target, batch_symbol, entry_symbol, host, interpreter_symbol, leave_symbol
from alembert.errors import ArgumentError

BODY = "alembert_kernel"
THREAD_WORK = 2_000_000  # operations (one vector each) below which one more thread costs more than it saves
FEWEST = 400  # operations below which LLVM takes no longer than what surrounds them
FEWEST_BOUND = 50  # the same for batches, and where calls do not go through Python's checks
CALL = 10_000  # interpreted operations in the time of these checks (measured: 20 us)

Array = np.ndarray


class _Limit(threading.local):
    threads: int | None = None


_LIMIT = _Limit()


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Calls of kernels within it, from this thread, use at most so many threads unless they say otherwise."""
    before, _LIMIT.threads = _LIMIT.threads, count
    try:
        yield
    finally:
        _LIMIT.threads = before


@dataclass(frozen=True)
class Argument:
    """A named array with its trailing shape; `hint` ends the message when a wrong shape comes."""

    name: str
    shape: tuple[int, ...]
    hint: str = ""

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Kernel:
    """See the module's documentation.

    `key` identifies the content: equal keys mean equal code. `build` makes the content, when the cache
    does not have it. `alone`: batches go state by state, because what several need at a time would leave the caches.
    `bound`: it is there for `bind`, and called through Python's checks otherwise.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[Argument],
        results: Sequence[Argument],
        *,
        key: str,
        build: Callable[[], KernelSource],
        documentation: str = "",
        alone: bool = False,
        bound: bool = False,
    ):
        self.name = name
        self.alone, self.bound = alone, bound
        self._lanes = 1 if alone else host().lanes  # of batches
        self.arguments = tuple(arguments)
        self.results = tuple(results)
        self.key = key
        self._build = build
        self._source: KernelSource | None = None
        self._documentation = documentation
        self._lock = threading.RLock()
        self._compiled: dict[int, _Compiled] = {}
        self._function: Callable[..., Any] = self._first_call
        self.origin: tuple[Callable[..., Kernel], tuple[Any, ...]] | None = None
        """a function and its arguments that make this kernel again, elsewhere"""

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """The results for the given arguments: an array, or a tuple of arrays when there are several results.

        `out` is an array or a tuple of arrays to fill and return; `threads` bounds the threads that share
        a batch (None: as many as the machine has, when the batch is large enough to gain).
        """
        if out is None and threads is None:
            return self._function(*arrays)
        return self._evaluate(*arrays, out=out, threads=threads)

    def __reduce__(self) -> tuple[Callable[..., Kernel], tuple[Any, ...]]:
        if self.origin is None:
            raise TypeError(f"{self.name}: this kernel does not pickle; pickle the model, and compile there")
        return self.origin

    def __repr__(self) -> str:
        names = ", ".join(argument.name for argument in self.arguments)
        return f"<Kernel {self.name}({names}) -> {', '.join(result.name for result in self.results)}>"

    def prepare(self, lanes: int | None = None) -> Self:
        """Compile now: for batches, or with `lanes=1` for single states."""
        _ = self._machine_code(self._lanes if lanes is None else lanes, math.inf).batch
        return self

    @property
    def interpreted(self) -> bool:
        """Whether code for single states is there that is interpreted, or compiled in a hurry."""
        return 1 in self._compiled and self._compiled[1].left < math.inf

    def function(self) -> Callable[..., Any]:
        """The kernel as a plain function that behaves alike; the fastest way to call it for one state."""
        self._machine_code(1, math.inf)
        return self._function

    def bind(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """A function that computes `count` states on always the same arrays, read and written where they are.

        An array is C-contiguous and has one entry per state, or a single one for all.
        """
        lanes = 1 if count <= self._lanes // 2 else self._lanes
        blocks = -(-count // lanes)
        table: list[int] = []
        for x, a in zip((*inputs, *outputs), (*self.arguments, *self.results), strict=True):
            single = x.shape == a.shape
            if not (
                x.flags.c_contiguous and x.dtype == np.float64 and (single or x.shape == (count, *a.shape))
            ):
                raise ArgumentError(
                    f"{self.name}: {a.name} has shape {x.shape}, expected {(count, *a.shape)} or {a.shape}"
                )
            table += [address(x), 0 if single else 8 * a.size, 8]
        words = _words(len(table))(*table)
        kept = (inputs, outputs)
        good: Callable[[], int] | None = None

        def run(_kept: Any = kept) -> None:
            nonlocal good
            if good is not None:
                status = good()
            else:
                code = self._machine_code(lanes, blocks)  # kept until it has run
                status = code.batch(words, 0, count)
                good = code.again(words, count) if code.left == math.inf else None
            if status == NO_MEMORY:
                raise MemoryError(f"no memory for the workspace of {self.name}")

        _ = self._machine_code(lanes).batch
        return run

    def foresee(self, runs: float, count: int = 1) -> None:
        """Say that so many runs on `count` states follow, of which calls alone do not tell: one may go round and round."""
        lanes = 1 if count <= self._lanes // 2 else self._lanes
        self._machine_code(lanes, runs * -(-count // lanes))

    def fast(self, runs: float = math.inf) -> Callable[..., None]:
        """A function for tight loops: `f(*arguments, *results)` on one state, into the caller's arrays.

        `runs` says how much it will be used, in single runs; what is little is not worth to be compiled.
        """
        return self._machine_code(1, runs).into

    def _first_call(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """Stands for the compiled entry point until a single state comes."""
        if all(np.ndim(x) == len(a.shape) for x, a in zip(arrays, self.arguments, strict=False)):
            self._machine_code(1)
        return self._evaluate(*arrays, out=out, threads=threads)

    def checked(self, *arrays: Any, out: Any = None) -> tuple[Any, bool | None]:
        """The results, and whether all of them are finite; None where that was not found out on the way.

        Not finite may also mean that they are so large that sums of them are not.
        """
        return self._computed(arrays, out, None)

    def _evaluate(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        return self._computed(arrays, out, threads)[0]

    def _computed(self, arrays: Sequence[Any], out: Any, threads: int | None) -> tuple[Any, bool | None]:
        """Any arguments: convert, check, broadcast, compute."""
        if threads is not None and not (isinstance(threads, int) and threads > 0):
            raise ArgumentError(f"{self.name}: threads is {threads!r}, expected a positive integer or None")
        inputs = self.read(arrays)
        batch = self.batch_of(inputs)
        count = math.prod(batch)
        given = self.targets(out, batch)
        if given is not None and not _overlap(given, inputs):
            outputs = given
        else:
            outputs = [_empty(batch + result.shape) for result in self.results]
        finite = self._run(inputs, outputs, batch, count, threads) if count else True
        if given is not None:
            for target, value in zip(given, outputs, strict=True):
                if target is not value:
                    target[...] = value
            return out, finite
        values = tuple(x if x.ndim else x[()] for x in outputs)
        return values if len(values) != 1 else values[0], finite

    def _evaluate_into(self, *arrays: Any) -> None:
        """What `fast` does with arguments that it does not take as they are."""
        count = len(self.arguments)
        expected = [a.name for a in (*self.arguments, *self.results)]
        if len(arrays) != len(expected):
            raise ArgumentError(f"{self.name}: takes {_listed(expected, 'argument')}, got {len(arrays)}")
        inputs = self.read(arrays[:count])
        if self.batch_of(inputs) != ():
            raise ArgumentError(f"{self.name}: the fast function takes one state, not a batch")
        self._evaluate(*inputs, out=arrays[count:])

    def read(self, arrays: Sequence[Any]) -> list[Array]:
        """The arguments as arrays of numbers, their shapes checked."""
        if len(arrays) != len(self.arguments):
            names = _listed([argument.name for argument in self.arguments], "argument")
            raise ArgumentError(f"{self.name}: takes {names}, got {_counted(len(arrays), 'argument')}")
        return [self._input(argument, x) for argument, x in zip(self.arguments, arrays, strict=True)]

    def _input(self, argument: Argument, x: Any) -> Array:
        if _is_masked(x):
            raise ArgumentError(f"{self.name}: {argument.name} has masked entries, expected numbers")
        try:
            array = np.asarray(x)
        except (TypeError, ValueError) as error:
            kind = type(x).__name__
            raise ArgumentError(
                f"{self.name}: {argument.name} ({kind}) does not convert to an array"
            ) from error
        if array.dtype != np.float64 or not array.flags.aligned:
            if array.dtype.kind not in "fiu":
                raise ArgumentError(
                    f"{self.name}: {argument.name} has dtype {array.dtype}, expected real numbers{where_numbers_are(x)}"
                )
            array = array.astype(np.float64)
        rank = len(argument.shape)
        if array.ndim > 32:
            raise ArgumentError(f"{self.name}: {argument.name} has {array.ndim} dimensions, more than 32")
        if array.shape[array.ndim - rank :] != argument.shape or array.ndim < rank:
            expected = "(" + ", ".join(["...", *map(str, argument.shape)]) + ")"
            hint = f"; {argument.hint}" if argument.hint else ""
            raise ArgumentError(
                f"{self.name}: {argument.name} has shape {array.shape}, expected {expected}{hint}"
            )
        return array

    def batch_of(self, inputs: Sequence[Array]) -> tuple[int, ...]:
        """The shape of the batch that arguments make together."""
        shapes = [x.shape[: x.ndim - len(a.shape)] for x, a in zip(inputs, self.arguments, strict=True)]
        if not shapes or all(shape == shapes[0] for shape in shapes):
            return shapes[0] if shapes else ()
        try:
            return np.broadcast_shapes(*shapes)
        except (ValueError, RuntimeError):  # the latter: more dimensions than NumPy broadcasts
            listed = ", ".join(f"{a.name} {shape}" for a, shape in zip(self.arguments, shapes, strict=True))
            raise ArgumentError(f"{self.name}: the batch dimensions do not go together: {listed}") from None

    def targets(self, out: Any, batch: tuple[int, ...]) -> list[Array] | None:
        """The caller's arrays for the results, checked."""
        if out is None:
            return None
        given = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(self.results):
            names = _listed([result.name for result in self.results], "result")
            raise ArgumentError(
                f"{self.name}: out must have an array for {names}, got {_counted(len(given), 'array')}"
            )
        for k, (x, result) in enumerate(zip(given, self.results, strict=True)):
            label = f"{self.name}: out" if len(given) == 1 else f"{self.name}: out[{k}] ({result.name})"
            if not isinstance(x, np.ndarray):
                raise ArgumentError(f"{label} is a {type(x).__name__}, expected a NumPy array")
            if x.dtype != np.float64:
                raise ArgumentError(f"{label} has dtype {x.dtype}, expected float64")
            if x.shape != batch + result.shape:
                raise ArgumentError(f"{label} has shape {x.shape}, expected {batch + result.shape}")
            if not x.flags.writeable:
                raise ArgumentError(f"{label} is read-only")
        for k, x in enumerate(given):
            if any(np.may_share_memory(x, y) for y in given[:k]):
                raise ArgumentError(f"{self.name}: the arrays of out overlap")
        return given

    def _run(
        self,
        inputs: list[Array],
        outputs: list[Array],
        batch: tuple[int, ...],
        count: int,
        threads: int | None,
    ) -> bool | None:
        lanes = 1 if count <= self._lanes // 2 else self._lanes
        code = self._machine_code(lanes, -(-count // lanes), CALL)
        table: list[int] = []
        kept: list[Array] = []  # compact copies of arguments, until the end of the computation
        moves: list[tuple[Array, Array]] = []  # results of other layouts, and their compact copies
        for x, argument in zip(inputs, self.arguments, strict=True):
            layout = layout_of(x, batch, argument.shape)
            if layout is None or (lanes == 1 and layout[2] != 8):
                kept.append(np.ascontiguousarray(np.broadcast_to(x, batch + argument.shape)))
                layout = _compact(kept[-1], argument.size)
            table += layout
        for x, result in zip(outputs, self.results, strict=True):
            layout = layout_of(x, batch, result.shape)
            if layout is None or (lanes == 1 and layout[2] != 8) or not x.flags.aligned:
                moves.append((x, np.empty(x.shape, np.float64)))
                layout = _compact(moves[-1][1], result.size)
            table += layout
        finite = code.run(table, count, threads)
        for x, compact in moves:
            x[...] = compact
        return finite

    def _machine_code(self, lanes: int, runs: float = 0, beside: int = 0) -> _Compiled:
        """The code for so many lanes that is to be run `runs` times now, with what takes as long as operations `beside`."""
        code = self._compiled.get(lanes)
        if code is None or code.spend(runs, beside):
            with loader.COMPILING, self._lock:
                code = self._compiled.get(lanes)
                if code is None or code.spend(0, 0):
                    at_once = code is not None or runs > 2 * loader.RUNS
                    code = self._compiled[lanes] = self._made(lanes, at_once)
                    code.spend(runs, beside)
                    if lanes == 1 and code.call is not None:
                        self._function = code.call
        return code

    def _made(self, lanes: int, at_once: bool) -> _Compiled:
        key, build = f"{self.key}\0{self._signature()}", functools.partial(self._module, lanes)
        name = _entry(lanes)
        made = loader.in_steps(key, lanes, self.name, build, [name], at_once=at_once)
        return _Compiled(self, lanes, *made)

    def source(self) -> KernelSource:
        """What the kernel is made from; other kernels may take it in."""
        with loader.COMPILING, self._lock:
            if self._source is None:
                self._source = self._build()
            return self._source

    def _module(self, lanes: int, target: Target) -> Module:
        source = self.source()
        for kind, declared, sizes in (
            ("argument", self.arguments, source.input_sizes),
            ("result", self.results, source.output_sizes),
        ):
            if [a.size for a in declared] != list(sizes):
                listed = ", ".join(f"{a.name} {a.shape}" for a in declared)
                raise ArgumentError(
                    f"{self.name}: the {kind}s {listed} do not fit code with sizes {list(sizes)}"
                )
        fewest = FEWEST_BOUND if self.bound or lanes > 1 else FEWEST
        if isinstance(source, FunctionSource) and len(source) < fewest:
            target = target.compiling()
        body = source.emit(BODY, lanes, target)
        if 0 < body.listed < fewest:
            body = source.emit(BODY, lanes, target.compiling())
        properties = {"work": body.work, "listed": body.listed, "direct": body.direct}
        properties["workspace"] = body.workspace if body.pure or lanes > 1 else 0
        if body.pure:
            return Module("", {}, properties, lists=body.lists)
        count = len(self.arguments) + len(self.results)
        one = lanes == 1
        entry = fastcall.one_state(BODY, count, body.workspace) if one else driver.block_function(BODY, count)
        text = codegen.prelude(body), body.text, entry
        level = 0 if body.quick else 1 if one else 2
        return Module("".join(text), body.constants, properties, level, body.lists)

    def _signature(self) -> str:
        return repr(([a.shape for a in self.arguments], [a.shape for a in self.results], self.bound))


class _Compiled:
    """A kernel's machine code for one lane width; good code would be better after `left` operations."""

    def __init__(self, kernel: Kernel, lanes: int, properties: dict[str, int], library: Library, left: float):
        self.name, self.lanes = kernel.name, lanes
        self.work, self.left = properties["work"], left
        self.library, self._properties = library, properties
        self._sizes = [a.size for a in kernel.arguments], [a.size for a in kernel.results]
        self._one = ONE(library.addresses[_entry(1)]) if lanes == 1 and library.addresses else None
        self.call: Callable[..., Any] | None = None
        self.into: Callable[..., None] = kernel._evaluate_into
        count = len(kernel.arguments) + len(kernel.results)
        if count > fastcall.MOST or lanes > 1 or kernel.bound or left < math.inf or not fastcall.supported():
            return
        shapes = [a.shape for a in kernel.arguments], [a.shape for a in kernel.results]

        def bound(entry: str, fallback: Callable[..., Any]) -> Callable[..., Any]:
            own = library.addresses[_entry(1)], *shapes, kernel.name, kernel._documentation
            return fastcall.bind(shared_entry(entry), *own, fallback, library)

        self.call, self.into = bound("call", kernel._evaluate), bound("into", kernel._evaluate_into)

    @functools.cached_property
    def batch(self) -> Callable[[Any, int, int], int]:
        """The loop over a batch, which a machine compiles when its first batch comes."""
        return functools.partial(BATCH(batch_entry(self.lanes)), self._layout.ctypes.data)

    @functools.cached_property
    def _layout(self) -> Array:
        """What `alembert.engine.driver` has to know."""
        (inputs, outputs), properties = self._sizes, self._properties
        lanes, direct, addresses = self.lanes, properties["direct"], self.library.addresses
        leaves = [0] * (len(outputs) - direct)
        if addresses:
            code, words = addresses[_entry(lanes)], 0
            if lanes > 1 and not properties["listed"]:  # outlets take longer to compile than they save
                leaves = [leaving(size, lanes) for size in outputs[: len(leaves)]]
        else:
            code = loader.shared_function(interpreter_symbol(lanes, host()))
            (words,) = self.library.lists.values()
        given = code, words, inputs, outputs, lanes
        return driver.layout(*given, workspace=properties["workspace"], direct=direct, leaves=leaves)

    def again(self, table: ctypes.Array[ctypes.c_int64], count: int) -> Callable[[], int]:
        """The same over all `count` states of always the same arrays."""
        words = [self._layout.ctypes.data, ctypes.addressof(table), 0, count]
        kept = table, self._layout, self.library
        return fastcall.again(shared_entry("again"), batch_entry(self.lanes), words, kept)

    def spend(self, runs: float, beside: int) -> bool:
        """Count further runs and operations; whether good code would have been better."""
        if self.left < math.inf:
            self.left -= runs * self.work + beside
            return self.left < 0 or loader.is_preparing()
        return False

    def run(self, layouts: Sequence[int], count: int, threads: int | None) -> bool | None:
        """Whether the results are finite, where that is known."""
        table = _words(len(layouts))(*layouts)
        blocks = -(-count // self.lanes)
        if threads is None:
            threads = min(_LIMIT.threads or processors(), blocks * self.work // THREAD_WORK)
        threads = max(1, min(threads, blocks))
        if count == 1 and self._one is not None:
            arrays = layouts[:: driver.WORDS]
            statuses = [self._one(_words(len(arrays))(*arrays))]
        elif threads == 1:
            statuses = [self.batch(table, 0, count)]
        else:
            bounds = [min(count, blocks * k // threads * self.lanes) for k in range(threads + 1)]
            pool = _pool(threads - 1, os.getpid())
            others = [pool.submit(self.batch, table, *part) for part in itertools.pairwise(bounds[1:])]
            statuses = [self.batch(table, *bounds[:2]), *(other.result() for other in others)]
        if NO_MEMORY in statuses:
            raise MemoryError(f"no memory for the workspace of {self.name}")
        return None if self.lanes == 1 else NOT_FINITE not in statuses


def _entry(lanes: int) -> str:
    """What a kernel's machine code has for the outside."""
    return f"{BODY}_one" if lanes == 1 else f"{BODY}_block"


def leaving(size: int, lanes: int) -> int:
    """The function by which a result of so many elements leaves, 0 where it is too short for that."""
    if size < driver.LARGE:
        return 0
    return loader.shared_function(leave_symbol(size, lanes, host(), whole=True))


def batch_entry(lanes: int) -> int:
    """Where the loop over a batch is that all kernels share."""
    return loader.shared_function(batch_symbol(lanes, host()))


def shared_entry(entry: str) -> int:
    """Where an entry point is that all kernels share."""
    return loader.shared_function(entry_symbol(entry, host()))


NO_MEMORY, NOT_FINITE = 1, 2  # what the function for batches returns
BATCH = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ONE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


@functools.cache
def _words(count: int) -> type[ctypes.Array[ctypes.c_int64]]:
    return ctypes.c_int64 * count


@functools.cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads belong to the process that started them: a forked one needs its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="alembert")


@functools.cache
def processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_KNOWN_STRUCTURE = fastcall.supported()


def address(x: np.ndarray) -> int:
    """Where the first element is; NumPy's own ways to ask take some five times longer."""
    return int(
        ctypes.c_size_t.from_address(id(x) + fastcall.DATA).value if _KNOWN_STRUCTURE else x.ctypes.data
    )


def layout_of(x: Array, batch: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Address, stride over the batch and stride over the elements; None when a stride is not uniform."""
    rank = x.ndim - len(shape)
    if x.flags.c_contiguous and x.shape[:rank] == batch:
        return _compact(x, math.prod(shape))
    elements = _uniform(shape, x.strides[rank:], unused=8)
    own = x.shape[:rank]
    if own == batch:
        states = _uniform(batch, x.strides[:rank], unused=0)
    else:
        padding = len(batch) - rank
        strides = [0] * padding + [0 if n == 1 else s for n, s in zip(own, x.strides, strict=False)]
        states = _uniform(batch, strides, unused=0)
    if elements is None or states is None:
        return None
    return address(x), states, elements


def _compact(x: Array, size: int) -> tuple[int, int, int]:
    """The layout of a C-contiguous array."""
    return address(x), 8 * size, 8


def _uniform(shape: Sequence[int], strides: Sequence[int], unused: int) -> int | None:
    """The one stride that walks through all dimensions in C order."""
    result = expected = None
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if result is None:
            result = stride
        elif stride != expected:
            return None
        expected = n * stride
    return unused if result is None else result


def _overlap(outputs: Sequence[Array], inputs: Sequence[Array]) -> bool:
    return any(np.may_share_memory(x, y) for x in outputs for y in inputs)


def _empty(shape: tuple[int, ...]) -> Array:
    """An array with any content."""
    return np.empty(shape, np.float64) if 8 * math.prod(shape) < memory.LARGE_BYTES else memory.empty(shape)


def _is_masked(x: Any) -> bool:
    """Plain arrays are told first: to look into `np.ma` imports it, which takes some 8 ms of a first call."""
    if type(x) is np.ndarray or not isinstance(x, np.ndarray):
        return False
    return isinstance(x, np.ma.MaskedArray) and bool(np.any(x.mask))


def _listed(names: Sequence[str], noun: str) -> str:
    return f"{_counted(len(names), noun)} ({', '.join(names)})"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

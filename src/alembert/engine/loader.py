"""From IR to machine code, and from machine code to addresses; both by LLVM."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import itertools
import math
import os
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import llvmlite.binding as llvm

from alembert.engine import cache, driver, fastcall, interpreter, outlet, vectormath
from alembert.engine.target import (
    MATHEMATICS,
    TARGETS,
    Target,
    called_functions,
    declarations,
    host,
    parsed_symbol,
    shared_functions,
)
from alembert.forking import COMPILING as COMPILING


class Library:
    """Machine code in memory, as long as this object lives; `addresses` are those of its `names`, `lists` of its lists.

    `constants` are the numbers that its tables of constants get, `lists` those of instructions that it interprets. Without
    code it only keeps these.
    """

    def __init__(
        self,
        code: bytes,
        names: Iterable[str],
        constants: Mapping[str, Sequence[float]] | None = None,
        lists: Mapping[str, array[int]] | None = None,
    ):
        self._kept = lists or {}
        self.lists = {name: words.buffer_info()[0] for name, words in self._kept.items()}
        self.addresses: dict[str, int] = {}
        if not code:
            return
        with COMPILING:
            builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
            for name, address in _mathematics().items():
                builder.import_symbol(name, address)
            for name in called_functions(code):
                builder.import_symbol(name, shared_function(name))
            names = [*names, *(constants or {}), *self.lists]
            for name in names:
                builder.export_symbol(name)
            # JITLink places all sections in one piece of memory, so that relative addresses reach from any to any.
            self._tracker = builder.link(_linker(), f"alembert{next(_NUMBERS)}")
            self.addresses = {name: int(self._tracker[name]) for name in names}
            for name, values in (constants or {}).items():
                table = array("d", values)
                ctypes.memmove(self.addresses[name], table.tobytes(), table.itemsize * len(table))
            for name, place in self.lists.items():
                ctypes.c_int64.from_address(self.addresses[name]).value = place


_NUMBERS = itertools.count()
RUNS = 10_000
"""of interpreted code until it is compiled: it has then lost about a quarter of the time that this takes (measured)"""
AGAIN = 0.2
"""of these, for what another process has left in the cache"""
LONG_TEXT = 50_000  # characters of a module that takes LLVM 25 ms
PER_CHARACTER = (
    300  # operations of code compiled in a hurry that lose the time in which a character is compiled well
)


@functools.cache
def _linker() -> llvm.LLJIT:
    _initialize()
    return llvm.create_lljit_compiler(host().machine(), use_jit_link=True)


@dataclass(frozen=True)
class Module:
    """The text of a module, the numbers of its tables of constants, and what has to be known of it besides.

    It has no text where nothing has to be compiled: its list is run as it is.
    """

    text: str
    constants: Mapping[str, Sequence[float]]
    properties: dict[str, Any]
    level: int = 2
    lists: Mapping[str, array[int]] = field(default_factory=dict)


_preparing: set[object] = set()


@contextmanager
def prepare() -> Iterator[None]:
    """Compile all that is computed within to its best machine code at once, and keep it in the cache.

        with al.prepare():
            al.simulate(model, duration=0.01, ...)

    For programs with deadlines, and to fill the cache of a machine before it is used: a later process finds good code where
    it would have begun with interpreted code. Results have the same bits either way. It holds for all threads.
    """
    mark = object()
    _preparing.add(mark)
    try:
        yield
    finally:
        _preparing.discard(mark)


def is_preparing() -> bool:
    """Whether interpreted code is to be replaced at once: within `prepare`. Asked in every run: it reads no environment."""
    return bool(_preparing)


def may_interpret() -> bool:
    """Whether kernels may begin with interpreted code: unless ALEMBERT_INTERPRETER is `off`, or within `prepare`."""
    return not _preparing and os.environ.get("ALEMBERT_INTERPRETER", "").lower() != "off"


def library(
    name: str, title: str, target: Target, build: Callable[[], Module], names: Iterable[str]
) -> tuple[dict[str, Any], Library]:
    """Properties and machine code of what has this name in the cache, which `build` makes where the cache does not have it.

    The machine code itself is kept by the module's text, which does not have the constants: a model with other numbers, or
    another version of Alembert that makes the same text, finds it compiled.
    """
    found = cache.load(name)
    if found is not None:
        properties, numbers = found
        code = cache.load(properties["module"], cache.MODULE) if properties["module"] else ({}, b"")
        if code is not None:
            return properties, Library(code[1], names, *_tables(properties, numbers))
    with patience(title):
        module = build()
        content, code, kept = "", ({}, b""), True
        if module.text:
            content = cache.module_digest(module.text, module.level, target)
            code = cache.load(content, cache.MODULE)
        if code is None:
            code = {}, compile_ir(module.text, target, level=module.level)
            kept = cache.store(content, *code, cache.MODULE)
    properties = {**module.properties, "module": content}
    for kind, tables in (("tables", module.constants), ("lists", module.lists)):
        properties[kind] = {table: len(values) for table, values in tables.items()}
    if kept:
        numbers = array("d", itertools.chain(*module.constants.values())).tobytes()
        cache.store(name, properties, b"".join([numbers, *(x.tobytes() for x in module.lists.values())]))
    return properties, Library(code[1], names, module.constants, module.lists)


def in_steps(
    key: str,
    lanes: int,
    title: str,
    build: Callable[[Target], Module],
    names: Sequence[str],
    *,
    at_once: bool,
) -> tuple[dict[str, Any], Library, float]:
    """Code of what `key` identifies that is made quickly, or good machine code if it is wanted `at_once` or in the cache.

    With its properties, of which "listed" counts the interpreted operations, and how many operations to run until good
    code would have been better; infinite for good code.
    """
    target = host()
    if may_interpret() and not at_once and not cache.has(cache.digest(key, lanes, target)):
        target = target.interpreting()
    name = cache.digest(key, lanes, target)
    share = AGAIN if target.interprets and cache.has(name) else 1.0
    properties, found = library(name, title, target, lambda: _hurried(build(target), target), names)
    left = RUNS * properties["listed"] + PER_CHARACTER * properties["hurried"]
    return properties, found, share * left or math.inf


def _hurried(module: Module, target: Target) -> Module:
    """Beside interpreted code, what is long is compiled in a third of the time, and runs two or three times as long."""
    length = len(module.text)
    hurried = target.interprets and length > LONG_TEXT
    properties = {**module.properties, "hurried": length if hurried else 0}
    return replace(module, level=0 if hurried else module.level, properties=properties)


def _tables(
    properties: Mapping[str, Mapping[str, int]], content: bytes
) -> tuple[dict[str, array[float]], dict[str, array[int]]]:
    """What `library` has kept: constants, and lists of instructions."""
    found: dict[str, dict[str, Any]] = {"tables": {}, "lists": {}}
    start = 0
    for kind, code in (("tables", "d"), ("lists", "i")):
        for name, size in properties[kind].items():
            table = array(code)
            end = start + size * table.itemsize
            table.frombytes(content[start:end])
            found[kind][name], start = table, end
    return found["tables"], found["lists"]


def compile_ir(text: str, target: Target, *, level: int = 2) -> bytes:
    """Machine code of a module.

    The code is straight-line and has no repeated expressions, so LLVM's optimisation passes find nothing
    to do; the instruction selector, scheduler and register allocator do all the work. Code for one lane runs as fast with
    `level` 1, and compiles in four fifths of the time; vector code loses up to 3 % (measured). Level 0 leaves out what takes
    time: vector code of 90 000 operations then takes 2.6 s instead of 6.2 to compile, and 1.5 times as long to run.
    """
    with COMPILING:
        _initialize()
        module = llvm.parse_assembly(text + declarations(text), llvm.create_context())
        module.triple = target.triple
        return bytes(target.machine(level=level).emit_object(module))


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def _mathematics() -> dict[str, int]:
    """Where the functions of the C library are, by our names."""
    library = _mathematical_library()
    return {
        MATHEMATICS + name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        for name in vectormath.library_functions()
    }


def _mathematical_library() -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    try:
        return ctypes.CDLL({"linux": "libm.so.6", "darwin": "libm.dylib"}[sys.platform])
    except (KeyError, OSError):  # another C library
        return ctypes.CDLL(ctypes.util.find_library("m"))


_SHARED: dict[tuple[str, str, int, int], Library] = {}
_SHARED_LOCK = threading.RLock()


def shared_function(symbol: str) -> int:
    """Where a function of `alembert.engine.target` is; AttributeError when there is none of this name."""
    name = parsed_symbol(symbol)
    if name is not None and name.target not in TARGETS:  # it comes from the cache
        TARGETS.update({target.tag: target for target in (host(), host().compact())})
    target = name and TARGETS.get(name.target)
    if name is None or target is None:
        raise AttributeError(symbol)
    key = name[:4]
    with COMPILING, _SHARED_LOCK:  # what is replaced would be unmapped while kernels call it
        if key not in _SHARED:
            _SHARED[key] = _shared_library(target, *key[1:])
        return int(_SHARED[key].addresses[f"alembert_{name.function}"])


def _shared_library(target: Target, group: str, number: int, lanes: int) -> Library:
    key = f"shared {group} {number} {lanes}"
    found = cache.load(name := cache.digest(key, lanes, target), cache.SHARED)
    if found is None:
        text = _shared_text(target, group, number, lanes).replace("define internal", "define")
        found = {}, compile_ir(text, target)
        cache.store(name, *found, cache.SHARED)
    return Library(found[1], [f"alembert_{function}" for function in shared_functions(group)])


def _shared_text(target: Target, group: str, number: int, lanes: int) -> str:
    if group == "sincos":
        return target.attributes + vectormath.sincos_module(target.lanes, fused=target.fused)
    if group == "interpreter":
        return interpreter.module(number, target)
    if group == "entries":
        return target.attributes + fastcall.entry_points()
    if group == "packing":
        return target.attributes + driver.packing(number)
    return (
        target.attributes
        + outlet.leaving("alembert_leave", number, lanes, "#0", whole=group == "whole")
        + outlet.METADATA
    )


_SPOKEN: ContextVar[bool] = ContextVar("spoken", default=False)


@contextmanager
def spoken() -> Iterator[None]:
    """Within it, `patience` also says what it waits for where there is no terminal: a line each."""
    token = _SPOKEN.set(True)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


@contextmanager
def patience(name: str, delay: float = 1.0) -> Iterator[None]:
    """Say on the terminal that a kernel is being compiled, and for how long, from `delay` seconds on."""
    stream = sys.stderr
    terminal = stream is not None and stream.isatty()
    if stream is None or not (terminal or _SPOKEN.get()):
        yield
        return
    began, done, shown = time.monotonic(), threading.Event(), threading.Event()

    def show() -> None:
        line = f"alembert: compiling {name}, once ..."
        if done.wait(delay):
            return
        shown.set()
        stream.write(f"\r{line}" if terminal else f"{line}\n")
        stream.flush()
        while terminal and not done.wait(1.0):
            stream.write(f"\r{line} {time.monotonic() - began:.0f} s")
            stream.flush()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if shown.is_set() and terminal:
            stream.write("\r\x1b[K")
            stream.flush()

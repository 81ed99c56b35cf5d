"""Single states straight from Python to machine code.

For one state the work takes less time than checking arguments in Python. So the kernel gets two entry
points that Python calls directly (`METH_FASTCALL | METH_KEYWORDS`), written in IR and compiled with it:

    NAME_call(arguments...) -> new arrays
    NAME_into(arguments..., results...) -> None, filling the caller's arrays

They read the fields of the arrays themselves. Whatever is not exactly as they want it, an argument that
is a list, a batch, a transposed array, a keyword, is handed on to an ordinary Python function, the
fallback.

NumPy's array structure has had this layout since 1.0, and Python's object header has it in all builds
with the global lock; `supported` compares it all the same with what NumPy says before the entry points
are used.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from alembert.engine import driver

# PyArrayObject_fields, offsets in bytes
_TYPE, _DATA, _NDIM, _DIMENSIONS, _STRIDES, _DESCR, _FLAGS = 8, 16, 24, 32, 40, 56, 64
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400

# Indices into NumPy's C interface, part of its binary interface
_ARRAY_TYPE, _ARRAY_RETURN, _ARRAY_NEW = 2, 76, 94

_TABLE = (
    "array_type",
    "float64",
    "array_new",
    "array_return",
    "vectorcall",
    "incref",
    "decref",
    "tuple_new",
    "tuple_set",
    "none",
    "call_fallback",
    "into_fallback",
)
_NEW = "ptr (ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)"


def entry_points(
    name: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], workspace: int
) -> str:
    """IR of the two entry points for a one-lane body; arguments are given by their shapes."""
    shapes = [*inputs, *outputs]
    text = [f"@{name}_table = global [{len(_TABLE)} x i64] zeroinitializer\n"]
    for k, shape in enumerate(shapes):
        sizes = ", ".join(f"i64 {n}" for n in shape) or "i64 0"
        text.append(f"@{name}_shape{k} = internal constant [{max(1, len(shape))} x i64] [{sizes}]\n")
    text.append(_one_state(name, len(shapes), workspace))
    text.append(_call(name, inputs, outputs))
    text.append(_into(name, inputs, outputs))
    return "".join(text)


def _one_state(name: str, count: int, workspace: int) -> str:
    """`i32 NAME_one(data pointers)`: the body with a workspace of its own."""
    reserve, release = driver.scratch(8 * workspace, "  ret i32 1")
    parameters = ", ".join(f"ptr %x{k}" for k in range(count))
    arguments = f"{parameters}, ptr %scratch" if parameters else "ptr %scratch"
    return f"""\
define internal i32 @{name}_one({parameters}) noinline #0 {{
entry:
{reserve}
  call void @{name}({arguments})
{release}
  ret i32 0
}}
"""


def _call(name: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> str:
    code = _Lines(name, "call")
    code.check(inputs, [_CONTIGUOUS | _ALIGNED] * len(inputs))
    code.add(*(f"%x{k} = load ptr, ptr %da{k}" for k in range(len(inputs))))

    def discard(count: int) -> list[str]:
        return [f"call void %decref(ptr %r{j})" for j in range(count)]

    code.add(
        "%new = " + code.word("array_new"),
        "%decref = " + code.word("decref"),
        "%incref = " + code.word("incref"),
    )
    for k, shape in enumerate(outputs):
        code.add(
            "call void %incref(ptr %float64)",
            f"%r{k} = call ptr %new(ptr %array_type, ptr %float64, i32 {len(shape)}, "
            f"ptr @{name}_shape{len(inputs) + k}, ptr null, ptr null, i32 0, ptr null)",
            f"%failed{k} = icmp eq ptr %r{k}, null",
            f"br i1 %failed{k}, label %undo{k}, label %made{k}",
        )
        code.label(f"undo{k}", *discard(k), "ret ptr null")
        code.label(
            f"made{k}",
            f"%ra{k} = getelementptr i8, ptr %r{k}, i64 {_DATA}",
            f"%x{len(inputs) + k} = load ptr, ptr %ra{k}",
        )
    arguments = ", ".join(f"ptr %x{k}" for k in range(len(inputs) + len(outputs)))
    code.add(
        f"%status = call i32 @{name}_one({arguments})",
        "%bad = icmp ne i32 %status, 0",
        "br i1 %bad, label %refused, label %computed",
    )
    code.label("refused", *discard(len(outputs)), "br label %slow")
    code.label("computed", "%return = " + code.word("array_return"))
    results = []
    for k, shape in enumerate(outputs):
        if shape == ():
            code.add(f"%scalar{k} = call ptr %return(ptr %r{k})")
            results.append(f"%scalar{k}")
        else:
            results.append(f"%r{k}")
    if len(outputs) == 1:
        code.add(f"ret ptr {results[0]}")
    else:
        code.add(
            "%tuplenew = " + code.word("tuple_new"),
            "%tupleset = " + code.word("tuple_set"),
            f"%tuple = call ptr %tuplenew(i64 {len(outputs)})",
            "%notuple = icmp eq ptr %tuple, null",
            "br i1 %notuple, label %dropped, label %fill",
        )
        code.label("dropped", *(f"call void %decref(ptr {r})" for r in results), "ret ptr null")
        code.label(
            "fill",
            *(f"%set{k} = call i32 %tupleset(ptr %tuple, i64 {k}, ptr {r})" for k, r in enumerate(results)),
        )
        code.add("ret ptr %tuple")
    return code.function()


def _into(name: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> str:
    code = _Lines(name, "into")
    shapes = [*inputs, *outputs]
    plain = _CONTIGUOUS | _ALIGNED
    code.check(shapes, [plain] * len(inputs) + [plain | _WRITEABLE] * len(outputs))
    for k, shape in enumerate(shapes):
        code.add(
            f"%x{k} = load ptr, ptr %da{k}",
            f"%end{k} = getelementptr double, ptr %x{k}, i64 {math.prod(shape)}",
        )
    overlap = "false"
    for j, k in itertools.combinations(range(len(shapes)), 2):
        if k >= len(inputs):
            code.add(
                f"%before{j}_{k} = icmp ult ptr %x{j}, %end{k}",
                f"%after{j}_{k} = icmp ult ptr %x{k}, %end{j}",
                f"%both{j}_{k} = and i1 %before{j}_{k}, %after{j}_{k}",
                f"%any{j}_{k} = or i1 {overlap}, %both{j}_{k}",
            )
            overlap = f"%any{j}_{k}"
    code.add(f"br i1 {overlap}, label %slow, label %apart")
    arguments = ", ".join(f"ptr %x{k}" for k in range(len(shapes)))
    code.label(
        "apart",
        f"%status = call i32 @{name}_one({arguments})",
        "%bad = icmp ne i32 %status, 0",
        "br i1 %bad, label %slow, label %computed",
    )
    code.label(
        "computed",
        "%incref = " + code.word("incref"),
        "%none = " + code.word("none"),
        "call void %incref(ptr %none)",
    )
    code.add("ret ptr %none")
    return code.function()


class _Lines:
    """The text of one entry point."""

    def __init__(self, name: str, entry: str):
        self.name = name
        self.entry = entry
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        self.lines += lines

    def label(self, label: str, *lines: str) -> None:
        self.lines += [f"{label}:", *lines]

    def word(self, field: str) -> str:
        """Read a word of the table."""
        offset = 8 * _TABLE.index(field)
        return f"load ptr, ptr getelementptr (i8, ptr @{self.name}_table, i64 {offset})"

    def check(self, shapes: Sequence[tuple[int, ...]], flags: Sequence[int]) -> None:
        """Go to `slow` unless the arguments are contiguous arrays of doubles with these shapes."""
        self.add(
            f"%count = icmp eq i64 %nargs, {len(shapes)}",
            "%plain = icmp eq ptr %kwnames, null",
            "%start = and i1 %count, %plain",
            "br i1 %start, label %types, label %slow",
        )
        self.label("types", "%array_type = " + self.word("array_type"), "%float64 = " + self.word("float64"))
        good = "true"
        for k in range(len(shapes)):
            self.add(
                f"%aa{k} = getelementptr ptr, ptr %args, i64 {k}",
                f"%a{k} = load ptr, ptr %aa{k}",
                f"%ta{k} = getelementptr i8, ptr %a{k}, i64 {_TYPE}",
                f"%t{k} = load ptr, ptr %ta{k}",
                f"%tc{k} = icmp eq ptr %t{k}, %array_type",
                f"%tg{k} = and i1 {good}, %tc{k}",
            )
            good = f"%tg{k}"
        self.add(f"br i1 {good}, label %arrays, label %slow")
        self.label("arrays")
        good = "true"
        for k, (shape, flag) in enumerate(zip(shapes, flags, strict=True)):
            for field, offset, kind, target in (
                ("d", _DESCR, "ptr", "%float64"),
                ("n", _NDIM, "i32", str(len(shape))),
                ("f", _FLAGS, "i32", str(flag)),
            ):
                self.add(
                    f"%{field}p{k} = getelementptr i8, ptr %a{k}, i64 {offset}",
                    f"%{field}v{k} = load {kind}, ptr %{field}p{k}",
                )
                value = f"%{field}v{k}"
                if field == "f":
                    self.add(f"%fm{k} = and i32 {value}, {flag}")
                    value = f"%fm{k}"
                self.add(
                    f"%{field}c{k} = icmp eq {kind} {value}, {target}",
                    f"%{field}g{k} = and i1 {good}, %{field}c{k}",
                )
                good = f"%{field}g{k}"
            self.add(f"%da{k} = getelementptr i8, ptr %a{k}, i64 {_DATA}")
        self.add(f"br i1 {good}, label %sizes, label %slow")
        self.label("sizes")
        good = "true"
        for k, shape in enumerate(shapes):
            if shape:
                self.add(
                    f"%sp{k} = getelementptr i8, ptr %a{k}, i64 {_DIMENSIONS}",
                    f"%sv{k} = load ptr, ptr %sp{k}",
                )
            for j, size in enumerate(shape):
                self.add(
                    f"%sa{k}_{j} = getelementptr i64, ptr %sv{k}, i64 {j}",
                    f"%ss{k}_{j} = load i64, ptr %sa{k}_{j}",
                    f"%sc{k}_{j} = icmp eq i64 %ss{k}_{j}, {size}",
                    f"%sg{k}_{j} = and i1 {good}, %sc{k}_{j}",
                )
                good = f"%sg{k}_{j}"
        self.add(f"br i1 {good}, label %ready, label %slow")
        self.label("ready")

    def function(self) -> str:
        self.label(
            "slow",
            "%vectorcall = " + self.word("vectorcall"),
            "%fallback = " + self.word(f"{self.entry}_fallback"),
            "%answer = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr %kwnames)",
            "ret ptr %answer",
        )
        body = "\n  ".join(self.lines)
        head = f"define ptr @{self.name}_{self.entry}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #0 {{"
        return f"{head}\n  {body}\n}}\n"


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def bind(
    table: int,
    entries: dict[str, int],
    name: str,
    documentation: str,
    fallbacks: dict[str, Callable[..., Any]],
    owner: object,
) -> dict[str, Callable[..., Any]]:
    """The loaded entry points as Python functions, which keep `owner` (the machine code) alive."""
    words = dict(_addresses())
    for entry, fallback in fallbacks.items():
        words[f"{entry}_fallback"] = id(fallback)
    (ctypes.c_uint64 * len(_TABLE)).from_address(table)[:] = [words[field] for field in _TABLE]

    create = ctypes.pythonapi.PyCFunction_NewEx
    create.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    create.restype = ctypes.py_object
    functions = {}
    for entry, address in entries.items():
        fast_with_keywords = 0x80 | 0x02
        definition = _MethodDefinition(name.encode(), address, fast_with_keywords, documentation.encode())
        functions[entry] = create(
            ctypes.addressof(definition), (definition, tuple(fallbacks.values()), owner), None
        )
    return functions


@functools.cache
def _addresses() -> dict[str, int]:
    interface = _array_interface()
    python = ctypes.pythonapi

    def address(function: Any) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    return {
        "array_type": interface[_ARRAY_TYPE],
        "float64": id(np.dtype(np.float64)),
        "array_new": interface[_ARRAY_NEW],
        "array_return": interface[_ARRAY_RETURN],
        "vectorcall": address(python.PyObject_Vectorcall),
        "incref": address(python.Py_IncRef),
        "decref": address(python.Py_DecRef),
        "tuple_new": address(python.PyTuple_New),
        "tuple_set": address(python.PyTuple_SetItem),
        "none": id(None),
    }


def _array_interface() -> Any:
    """NumPy's table of C functions."""
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer.restype = ctypes.c_void_p
    return ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_size_t))


@functools.cache
def supported() -> bool:
    """Whether arrays and objects look in memory as the entry points expect."""
    if (
        sys.implementation.name != "cpython"
        or "t" in getattr(sys, "abiflags", "")  # no global lock: objects look different
        or ctypes.sizeof(ctypes.c_void_p) != 8
        or sys.platform == "win32"  # not tried there
    ):
        return False
    try:
        if _array_interface()[_ARRAY_TYPE] != id(np.ndarray):
            return False
        base = np.arange(24.0).reshape(2, 3, 4)
        frozen = base.copy()
        frozen.flags.writeable = False
        return all(
            _as_expected(x)
            for x in (base, frozen, base.T, base[:, 1], base[0, 0, ::-2], np.zeros(()), np.arange(3))
        )
    except (ImportError, AttributeError, ValueError):
        return False


def address(x: np.ndarray) -> int:
    """Where the first element is; NumPy's own ways to ask take some five times longer."""
    return int(ctypes.c_size_t.from_address(id(x) + _DATA).value if supported() else x.ctypes.data)


def _as_expected(x: np.ndarray) -> bool:
    def read(kind: Any, offset: int) -> Any:
        return kind.from_address(id(x) + offset).value

    def words(offset: int) -> tuple[int, ...]:
        return (
            tuple((ctypes.c_ssize_t * x.ndim).from_address(read(ctypes.c_size_t, offset))) if x.ndim else ()
        )

    return (
        read(ctypes.c_size_t, _TYPE) == id(np.ndarray)
        and read(ctypes.c_size_t, _DATA) == x.ctypes.data
        and read(ctypes.c_int, _NDIM) == x.ndim
        and words(_DIMENSIONS) == x.shape
        and words(_STRIDES) == x.strides
        and read(ctypes.c_size_t, _DESCR) == id(x.dtype)
        and read(ctypes.c_int, _FLAGS) == x.flags.num
    )

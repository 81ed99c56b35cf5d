"""Single states straight from Python to machine code.

For one state the work takes less time than checking arguments in Python. So kernels have two entry points that Python
calls directly (`METH_FASTCALL | METH_KEYWORDS`), written in IR, and one for arrays that are checked already:

    call(arguments...) -> new arrays
    into(arguments..., results...) -> None, filling the caller's arrays
    again() -> a number: machine code on always the same words; a call by ctypes takes five times longer

All kernels share their code. What is a kernel's own is `i32 NAME_one(ptr pointers)`, which runs the body on data that the
pointers lead to, and for `call` and `into` a table of words, an array that is the `self` of its functions: addresses and
numbers (`_TABLE`), and four words for each argument and result:

    number of dimensions, flags that the array must have, address of its shape, bytes

The entry points read the fields of the arrays themselves. Whatever is not exactly as they want it, an argument that is a
list, a batch, a transposed array, a keyword, is handed on to an ordinary Python function, the fallback. NumPy's array
structure has had its layout since 1.0, and Python's object header has it in all builds with the global lock; `supported`
compares it all the same with what NumPy says before it is relied on.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# PyArrayObject_fields, offsets in bytes
TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DESCR, FLAGS = 8, 16, 24, 32, 40, 56, 64
ARRAY_TYPE = 2
"""index into NumPy's C interface, part of its binary interface"""
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_ARRAY_RETURN, _ARRAY_NEW = 76, 94  # indices into NumPy's C interface, part of its binary interface
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
    "fallback",
    "one",
    "inputs",
    "outputs",
    "all",
    "scalars",
)
_AGAIN = ("leave", "return", "number", "code", "word_0", "word_1", "word_2", "word_3", "word_4")
_COUNTS = ("inputs", "outputs", "all", "scalars")
_WORDS = 4  # of an argument or a result
MOST = 64
"""arguments and results of a kernel with entry points"""
STACK_LIMIT = (
    32768 if sys.platform != "win32" else 0
)  # bytes; beyond it the scratch memory comes from the heap
ALIGNMENT = 64


def array_interface() -> Any:
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
        if array_interface()[ARRAY_TYPE] != id(np.ndarray):
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


def _as_expected(x: np.ndarray) -> bool:
    def read(kind: Any, offset: int) -> Any:
        return kind.from_address(id(x) + offset).value

    def words(offset: int) -> tuple[int, ...]:
        return (
            tuple((ctypes.c_ssize_t * x.ndim).from_address(read(ctypes.c_size_t, offset))) if x.ndim else ()
        )

    return (
        read(ctypes.c_size_t, TYPE) == id(np.ndarray)
        and read(ctypes.c_size_t, DATA) == x.ctypes.data
        and read(ctypes.c_int, NDIM) == x.ndim
        and words(DIMENSIONS) == x.shape
        and words(STRIDES) == x.strides
        and read(ctypes.c_size_t, DESCR) == id(x.dtype)
        and read(ctypes.c_int, FLAGS) == x.flags.num
    )


def scratch(size: int, out_of_memory: str) -> tuple[str, str]:
    """IR that reserves `%scratch`, aligned, in the entry block, and IR that releases it."""
    if size <= STACK_LIMIT:
        return f"  %scratch = alloca [{max(size, 8)} x i8], align {ALIGNMENT}", ""
    reserve = f"""\
  %heap = call ptr @malloc(i64 {size + ALIGNMENT})
  %refused = icmp eq ptr %heap, null
  br i1 %refused, label %nomemory, label %memory
nomemory:
{out_of_memory}
memory:
  %heapint = ptrtoint ptr %heap to i64
  %raised = add i64 %heapint, {ALIGNMENT - 1}
  %rounded = and i64 %raised, -{ALIGNMENT}
  %scratch = inttoptr i64 %rounded to ptr"""
    return reserve, "  call void @free(ptr %heap)"


def one_state(name: str, count: int, workspace: int) -> str:
    """IR of `i32 NAME_one(ptr pointers)`: the body with a workspace of its own; 1 where there is no memory for it."""
    reserve, release = scratch(8 * workspace, "  ret i32 1")
    loads = [
        f"  %a{k} = getelementptr ptr, ptr %pointers, i64 {k}\n  %x{k} = load ptr, ptr %a{k}"
        for k in range(count)
    ]
    arguments = ", ".join([*(f"ptr %x{k}" for k in range(count)), "ptr %scratch"])
    return "\n".join(
        [
            f"define i32 @{name}_one(ptr %pointers) #0 {{",
            "entry:",
            reserve,
            *loads,
            f"  call void @{name}({arguments})",
            release,
            "  ret i32 0",
            "}\n",
        ]
    )


def entry_points() -> str:
    """IR of `alembert_again`, `ptr alembert_call(ptr self, ptr args, i64 nargs, ptr kwnames)` and
    `alembert_into`."""
    return _again() + _entry("call", "inputs", _CALL) + _entry("into", "all", _INTO)


def _again() -> str:
    """Others may run while the machine code does. It may take less words than it is given, and leave half a number."""
    kinds = {name: "i64" if name.startswith("word") else "ptr" for name in _AGAIN}
    loads = "\n".join(
        f"  %{name}_at = getelementptr i64, ptr %table, i64 {k}\n  %{name} = load {kind}, ptr %{name}_at"
        for k, (name, kind) in enumerate(kinds.items())
    )
    return f"""
define ptr @alembert_again(ptr %self, ptr %nothing) #0 {{
  %table_at = getelementptr i8, ptr %self, i64 {DATA}
  %table = load ptr, ptr %table_at
{loads}
  %thread = call ptr %leave()
  %status = call i64 %code({", ".join(f"i64 %{name}" for name in kinds if name.startswith("word"))})
  call void %return(ptr %thread)
  %low = and i64 %status, 4294967295
  %answer = call ptr %number(i64 %low)
  ret ptr %answer
}}
"""


def _entry(name: str, count: str, body: str) -> str:
    """An entry point that begins with a check: arrays of doubles of the right shapes and flags; `%x` has their data."""
    head = f"""
define ptr @alembert_{name}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #0 {{
  %x = alloca [{MOST} x ptr], align 16
  %r = alloca [{MOST} x ptr], align 16
  %table_at = getelementptr i8, ptr %self, i64 {DATA}
  %table = load ptr, ptr %table_at
{_words("inputs", "outputs", "all")}
  %count = icmp eq i64 %nargs, %{count}
  %plain = icmp eq ptr %kwnames, null
  %start = and i1 %count, %plain
  br i1 %start, label %check, label %slow
check:
{_words("array_type", "float64")}
  br label %next
next:
  %i = phi i64 [0, %check], [%following, %fits]
  %more_i = icmp ult i64 %i, %{count}
  br i1 %more_i, label %argument, label %ready
argument:
  %a_at = getelementptr ptr, ptr %args, i64 %i
  %a = load ptr, ptr %a_at
  %type_at = getelementptr i8, ptr %a, i64 {TYPE}
  %type = load ptr, ptr %type_at
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %array_given, label %slow
array_given:
{_of_argument("i_", "%i", "ndim", "flags", "shape")}
  %descr_at = getelementptr i8, ptr %a, i64 {DESCR}
  %descr = load ptr, ptr %descr_at
  %ndim_of_at = getelementptr i8, ptr %a, i64 {NDIM}
  %ndim_of = load i32, ptr %ndim_of_at
  %flags_of_at = getelementptr i8, ptr %a, i64 {FLAGS}
  %flags_of = load i32, ptr %flags_of_at
  %wide_ndim = zext i32 %ndim_of to i64
  %wide_flags = zext i32 %flags_of to i64
  %has = and i64 %wide_flags, %i_flags
  %good_descr = icmp eq ptr %descr, %float64
  %good_ndim = icmp eq i64 %wide_ndim, %i_ndim
  %good_flags = icmp eq i64 %has, %i_flags
  %good_2 = and i1 %good_descr, %good_ndim
  %good_3 = and i1 %good_2, %good_flags
  br i1 %good_3, label %sizes, label %slow
sizes:
  %sizes_at = getelementptr i8, ptr %a, i64 {DIMENSIONS}
  %dimensions = load ptr, ptr %sizes_at
  br label %size
size:
  %s = phi i64 [0, %sizes], [%s_next, %one_size]
  %more_sizes = icmp ult i64 %s, %i_ndim
  br i1 %more_sizes, label %one_size, label %fits
one_size:
  %size_at = getelementptr i64, ptr %dimensions, i64 %s
  %size_of = load i64, ptr %size_at
  %expected_at = getelementptr i64, ptr %i_shape, i64 %s
  %expected = load i64, ptr %expected_at
  %same_size = icmp eq i64 %size_of, %expected
  %s_next = add i64 %s, 1
  br i1 %same_size, label %size, label %slow
fits:
  %given_at = getelementptr i8, ptr %a, i64 {DATA}
  %given = load ptr, ptr %given_at
  %place = getelementptr ptr, ptr %x, i64 %i
  store ptr %given, ptr %place
  %following = add i64 %i, 1
  br label %next
slow:
{_words("vectorcall", "fallback")}
  %answer = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
"""
    return head + body + "}\n"


def _words(*names: str) -> str:
    """IR that reads words of the table."""
    lines = []
    for name in names:
        kind = "i64" if name in _COUNTS else "ptr"
        lines.append(f"  %{name}_at = getelementptr i64, ptr %table, i64 {_TABLE.index(name)}")
        lines.append(f"  %{name} = load {kind}, ptr %{name}_at")
    return "\n".join(lines)


def _of_argument(prefix: str, index: str, *fields: str) -> str:
    """IR that reads words of an argument or a result."""
    lines = [
        f"  %{prefix}first = mul i64 {index}, {_WORDS}",
        f"  %{prefix}own = getelementptr i64, ptr %table, i64 %{prefix}first",
    ]
    for k, field in enumerate(("ndim", "flags", "shape", "bytes")):
        if field in fields:
            kind = "ptr" if field == "shape" else "i64"
            lines.append(
                f"  %{prefix}{field}_at = getelementptr i64, ptr %{prefix}own, i64 {len(_TABLE) + k}"
            )
            lines.append(f"  %{prefix}{field} = load {kind}, ptr %{prefix}{field}_at")
    return "\n".join(lines)


_CALL = f"""\
ready:
{_words("array_new", "array_return", "incref", "decref", "one", "tuple_new", "tuple_set", "scalars")}
  br label %new
new:
  %k = phi i64 [0, %ready], [%k_next, %made]
  %more = icmp ult i64 %k, %outputs
  br i1 %more, label %result, label %compute
result:
  %index = add i64 %k, %inputs
{_of_argument("", "%index", "ndim", "shape")}
  %short_ndim = trunc i64 %ndim to i32
  call void %incref(ptr %float64)
  %array = call ptr %array_new(
    ptr %array_type, ptr %float64, i32 %short_ndim, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %none_made = icmp eq ptr %array, null
  br i1 %none_made, label %undo, label %made
made:
  %r_at = getelementptr ptr, ptr %r, i64 %k
  store ptr %array, ptr %r_at
  %data_at = getelementptr i8, ptr %array, i64 {DATA}
  %data = load ptr, ptr %data_at
  %x_at = getelementptr ptr, ptr %x, i64 %index
  store ptr %data, ptr %x_at
  %k_next = add i64 %k, 1
  br label %new
compute:
  %status = call i32 %one(ptr %x)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %undo, label %good
good:
  %any = icmp ne i64 %scalars, 0
  br i1 %any, label %finish, label %computed
undo:
  %last = phi i64 [%k, %result], [%outputs, %compute], [%outputs, %several]
  %give_up = phi i1 [true, %result], [false, %compute], [true, %several]
  br label %drop
drop:
  %d = phi i64 [0, %undo], [%d_next, %dropped]
  %more_d = icmp ult i64 %d, %last
  br i1 %more_d, label %dropped, label %undone
dropped:
  %d_at = getelementptr ptr, ptr %r, i64 %d
  %d_array = load ptr, ptr %d_at
  call void %decref(ptr %d_array)
  %d_next = add i64 %d, 1
  br label %drop
undone:
  br i1 %give_up, label %give, label %slow
give:
  ret ptr null
finish:
  %f = phi i64 [0, %good], [%f_next, %finished]
  %more_f = icmp ult i64 %f, %outputs
  br i1 %more_f, label %scalar, label %computed
scalar:
  %f_index = add i64 %f, %inputs
{_of_argument("f_", "%f_index", "ndim")}
  %is_scalar = icmp eq i64 %f_ndim, 0
  br i1 %is_scalar, label %turn, label %finished
turn:
  %f_at = getelementptr ptr, ptr %r, i64 %f
  %f_array = load ptr, ptr %f_at
  %turned = call ptr %array_return(ptr %f_array)
  store ptr %turned, ptr %f_at
  br label %finished
finished:
  %f_next = add i64 %f, 1
  br label %finish
computed:
  %single = icmp eq i64 %outputs, 1
  br i1 %single, label %alone, label %several
alone:
  %only = load ptr, ptr %r
  ret ptr %only
several:
  %tuple = call ptr %tuple_new(i64 %outputs)
  %no_tuple = icmp eq ptr %tuple, null
  br i1 %no_tuple, label %undo, label %fill
fill:
  %t = phi i64 [0, %several], [%t_next, %filled]
  %more_t = icmp ult i64 %t, %outputs
  br i1 %more_t, label %filled, label %full
filled:
  %t_at = getelementptr ptr, ptr %r, i64 %t
  %t_array = load ptr, ptr %t_at
  %set = call i32 %tuple_set(ptr %tuple, i64 %t, ptr %t_array)
  %t_next = add i64 %t, 1
  br label %fill
full:
  ret ptr %tuple
"""

# Results that share memory with one another or with arguments are left to the fallback.
_INTO = f"""\
ready:
{_words("incref", "one", "none")}
  br label %outer
outer:
  %k = phi i64 [%inputs, %ready], [%k_next, %apart]
  %more = icmp ult i64 %k, %all
  br i1 %more, label %against, label %compute
against:
{_of_argument("k_", "%k", "bytes")}
  %k_at = getelementptr ptr, ptr %x, i64 %k
  %k_data = load ptr, ptr %k_at
  %k_end = getelementptr i8, ptr %k_data, i64 %k_bytes
  br label %inner
inner:
  %j = phi i64 [0, %against], [%j_next, %other]
  %more_j = icmp ult i64 %j, %k
  br i1 %more_j, label %other, label %apart
other:
{_of_argument("j_", "%j", "bytes")}
  %j_at = getelementptr ptr, ptr %x, i64 %j
  %j_data = load ptr, ptr %j_at
  %j_end = getelementptr i8, ptr %j_data, i64 %j_bytes
  %before = icmp ult ptr %j_data, %k_end
  %after = icmp ult ptr %k_data, %j_end
  %both = and i1 %before, %after
  %j_next = add i64 %j, 1
  br i1 %both, label %slow, label %inner
apart:
  %k_next = add i64 %k, 1
  br label %outer
compute:
  %status = call i32 %one(ptr %x)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %slow, label %computed
computed:
  call void %incref(ptr %none)
  ret ptr %none
"""


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Table(np.ndarray):
    """The words that an entry point reads; `kept` is what they point to."""

    kept: object


def bind(
    entry: int,
    one: int,
    inputs: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    name: str,
    documentation: str,
    fallback: Callable[..., Any],
    owner: object,
) -> Callable[..., Any]:
    """The function of a kernel: a shared `entry` point with a table of its own; it keeps `owner`, machine code, alive."""
    counts = {"inputs": len(inputs), "outputs": len(outputs), "all": len(inputs) + len(outputs)}
    counts["scalars"] = outputs.count(())
    known = {**_addresses(), "fallback": id(fallback), "one": one, **counts}
    shapes = [np.array(shape, dtype=np.int64) for shape in (*inputs, *outputs)]
    words = [known[field] for field in _TABLE]
    for k, shape in enumerate(shapes):
        flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if k >= len(inputs) else 0)
        words += [len(shape), flags, shape.ctypes.data, 8 * math.prod(shape.tolist())]
    return _made(_definition(name, entry, documentation), words, (shapes, fallback, owner))


def again(entry: int, code: int, arguments: Sequence[int], owner: object) -> Callable[[], int]:
    """A function that calls `code` with these words, at most five, and returns what that leaves: a number of 32 bits.

    `entry` is where `alembert_again` is; it keeps `owner` alive, what the words lead to.
    """
    given = [*arguments, *[0] * (5 - len(arguments))]
    if not supported():
        call = ctypes.CFUNCTYPE(ctypes.c_uint32, *[ctypes.c_int64] * len(given))(code)
        return lambda _kept=owner: int(call(*given))  # type: ignore[misc]
    words = [*(_addresses()[name] for name in _AGAIN[:3]), code, *given]
    return _made(_definition("again", entry, "", flags=_NO_ARGUMENTS), words, owner)


def _made(definition: _MethodDefinition, words: list[int], kept: object) -> Callable[..., Any]:
    """A function with a table of its own."""
    table = np.array(words, dtype=np.int64).view(_Table)
    table.kept = kept
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    create.restype = ctypes.py_object
    function: Callable[..., Any] = create(ctypes.addressof(definition), table, None)
    return function


_NO_ARGUMENTS, _FAST_WITH_KEYWORDS = 0x04, 0x80 | 0x02


@functools.cache
def _definition(
    name: str, entry: int, documentation: str, flags: int = _FAST_WITH_KEYWORDS
) -> _MethodDefinition:
    """Kept for good: a function reads it when it ends, and the collector may have emptied its table by then."""
    return _MethodDefinition(name.encode(), entry, flags, documentation.encode())


@functools.cache
def _addresses() -> dict[str, int]:
    interface = array_interface()
    python = ctypes.pythonapi

    def address(function: Any) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    return {
        "array_type": interface[ARRAY_TYPE],
        "float64": id(np.dtype(np.float64)),
        "array_new": interface[_ARRAY_NEW],
        "array_return": interface[_ARRAY_RETURN],
        "vectorcall": address(python.PyObject_Vectorcall),
        "incref": address(python.Py_IncRef),
        "decref": address(python.Py_DecRef),
        "tuple_new": address(python.PyTuple_New),
        "tuple_set": address(python.PyTuple_SetItem),
        "none": id(None),
        "leave": address(python.PyEval_SaveThread),
        "return": address(python.PyEval_RestoreThread),
        "number": address(python.PyLong_FromLongLong),
    }

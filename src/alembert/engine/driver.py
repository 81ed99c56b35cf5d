"""The loop over a batch, as LLVM IR.

`i32 NAME_batch(ptr table, i64 first, i64 last)` runs the body on the states first..last-1, in blocks of
W. Arrays of any layout come through the table, three words for each argument and then each result:

    address of the first state's first element, bytes between states (0: the same for all), bytes between
    elements

A block is packed into the layout of the body (element j of all lanes together), computed and unpacked, by functions that
all kernels share (`alembert.engine.target`); large results may leave by `alembert.engine.outlet` while the body
computes. In the last block the spare lanes repeat the last state; they compute the same bits and store them to the
same place, so that no lane needs a condition. The function returns 0, 1 when there is no memory for a
large workspace, or with several lanes 2 when a result may not be finite.
"""

from __future__ import annotations

from collections.abc import Sequence

from alembert.engine import outlet
from alembert.engine.fastcall import scratch
from alembert.engine.target import Code, leave_symbol, packing_symbol
from alembert.engine.vectormath import vector_type

WORDS = 3  # of the table, for each argument
LARGE = 32  # elements of a result from which on an outlet is faster than unpacking tiles (measured)


def batch_function(name: str, inputs: Sequence[int], outputs: Sequence[int], code: Code, lanes: int) -> str:
    """IR of the loop for a body with the given numbers of elements."""
    packed = outputs[: len(outputs) - code.direct]
    buffers = [_padded(size, lanes) for size in inputs]
    buffers += [_padded(size + 2 * lanes, lanes) for size in packed]
    outlets = range(len(buffers), len(buffers) + code.direct + 1)
    buffers += [outlet.SIZE] * len(outlets)
    offsets = [sum(buffers[:k]) for k in range(len(buffers) + 1)]
    # for interpreted code outlets take longer to compile than they save
    large = {size for size in packed if size >= LARGE} if lanes > 1 and not code.listed else set()
    reserve, release = scratch(8 * (offsets[-1] + code.workspace * lanes), "  ret i32 1")

    call = {x: packing_symbol(x, lanes, code.target) for x in ("place", "pack", "unpack", "check", "outlet")}
    lines = [f"define i32 @{name}_batch(ptr %table, i64 %first, i64 %last) #0 {{", "entry:", reserve]
    finite = [f"%finite{j}" for j, _ in enumerate(outlets)] if lanes > 1 else []
    for name_, j in zip(finite, outlets, strict=False):
        lines.append(f"  {name_} = getelementptr double, ptr %scratch, i64 {offsets[j] + outlet.FINITE}")
        lines.append(f"  store {vector_type(lanes)} zeroinitializer, ptr {name_}, align {8 * lanes}")
    if code.direct or large:
        lines += [
            "  %states = sub i64 %last, %first",
            f"  %bytes = mul i64 %states, {8 * sum(outputs)}",
            f"  %stream = icmp ugt i64 %bytes, {outlet.STREAMED_BYTES}",
        ]
    lines += [
        "  %none = icmp uge i64 %first, %last",
        "  br i1 %none, label %done, label %start",
        "start:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [%first, %start], [%next, %loop]",
        "  %left = sub i64 %last, %i",
        f"  %full = icmp uge i64 %left, {lanes}",
        f"  %valid = select i1 %full, i64 {lanes}, i64 %left",
        "  %again = icmp ne i64 %i, %first",
    ]
    pointers = []
    for k in range(len(inputs) + len(outputs)):
        for j, field in enumerate(("p", "b", "e")):
            lines.append(f"  %{field}a{k} = getelementptr i64, ptr %table, i64 {WORDS * k + j}")
            lines.append(f"  %{field}{k} = load {'ptr' if j == 0 else 'i64'}, ptr %{field}a{k}")
        lines.append(f"  %o{k} = mul i64 %i, %b{k}")
        lines.append(f"  %s{k} = getelementptr i8, ptr %p{k}, i64 %o{k}")
        lines.append(f"  %buffer{k} = getelementptr double, ptr %scratch, i64 {offsets[k]}")
        direct = f"ptr %buffer{k}, ptr %s{k}, i64 %b{k}, i64 %e{k}"
        if k >= len(inputs) + len(packed):
            more = f"i64 %valid, i64 {outputs[k - len(inputs)]}, i1 %stream"
            lines.append(f"  call void @{call['outlet']}({direct}, {more})")
            pointers.append(f"ptr %buffer{k}")
            continue
        if k < len(inputs):
            lines.append(
                f"  %x{k} = call ptr @{call['pack']}({direct}, i64 {inputs[k]}, i64 %valid, i1 %again)"
            )
        else:
            lines.append(f"  %x{k} = call ptr @{call['place']}({direct})")
        pointers.append(f"ptr %x{k}")
    lines.append(f"  %workspace = getelementptr double, ptr %scratch, i64 {offsets[-1]}")
    lines.append(f"  call void @{name}({', '.join([*pointers, 'ptr %workspace'])})")
    lines.append(f"  %outlet = getelementptr double, ptr %scratch, i64 {offsets[-2]}")
    for k, size in enumerate(packed, len(inputs)):
        where = f"ptr %s{k}, i64 %b{k}, i64 %e{k}"
        if size in large:
            leave = leave_symbol(size, lanes, code.target, whole=True)
            lines.append(
                f"  call void @{call['outlet']}(ptr %outlet, {where}, i64 %valid, i64 {size}, i1 %stream)"
            )
            lines.append(f"  call void @{leave}(ptr %buffer{k}, ptr %outlet, i64 0, i64 {size}, i64 {size})")
        else:
            lines.append(f"  call void @{call['unpack']}(ptr %buffer{k}, {where}, i64 {size}, i64 %valid)")
            if lanes > 1:
                lines.append(f"  call void @{call['check']}(ptr %buffer{k}, ptr %outlet, i64 {size})")
    lines += [
        f"  %next = add i64 %i, {lanes}",
        "  %more = icmp ult i64 %next, %last",
        "  br i1 %more, label %loop, label %done",
        "done:",
        *(["  fence seq_cst"] if code.direct or large else []),  # what was streamed, for other threads
        *_status(finite, lanes),
        release,
        "  ret i32 %status",
        "}\n",
    ]
    return "\n".join(lines)


def _status(finite: Sequence[str], lanes: int) -> list[str]:
    """IR of `%status`: 2 where a result was not finite."""
    lines, total = [], "zeroinitializer"
    T, B = vector_type(lanes), vector_type(lanes, "i1")
    for j, pointer in enumerate(finite):
        lines.append(f"  %seen{j} = load {T}, ptr {pointer}, align {8 * lanes}")
        lines.append(f"  %sum{j} = fadd {T} {total}, %seen{j}")
        total = f"%sum{j}"
    if not finite:
        return ["  %status = add i32 0, 0"]
    return [
        *lines,
        f"  %wrong = fcmp uno {T} {total}, zeroinitializer",
        f"  %bits = bitcast {B} %wrong to i{lanes}",
        f"  %any = icmp ne i{lanes} %bits, 0",
        "  %status = select i1 %any, i32 2, i32 0",
    ]


def _padded(size: int, lanes: int) -> int:
    """Doubles in the buffer of an argument: whole W-by-W tiles, aligned."""
    count = -(-size // lanes) * lanes * lanes
    return -(-count // 8) * 8


def packing(lanes: int) -> str:
    """IR of `pack`, `place` (where the body puts a result), `unpack`, `check` and `outlet`."""
    return (
        _MANY_LANES
        + _loop("tiles_in", lanes, lanes, _tile_in(lanes))
        + _loop("tiles_out", lanes, lanes, _tile_out(lanes))
        + _loop("elements_in", lanes, 1, _element_in(lanes))
        + _loop("elements_out", lanes, 1, _element_out(lanes))
        + outlet.checking(lanes)
        + outlet.opening(lanes)
    )


# Many lanes: contiguous elements go through tiles; an argument that all states share is packed once.
_MANY_LANES = """
define internal ptr @alembert_place(ptr %buffer, ptr %state, i64 %b, i64 %e) #0 {
  ret ptr %buffer
}
define internal ptr @alembert_pack(ptr %buffer, ptr %state, i64 %b, i64 %e,
                                  i64 %n, i64 %valid, i1 %again) #0 {
  %shared = icmp eq i64 %b, 0
  %packed = and i1 %shared, %again
  br i1 %packed, label %done, label %pack
pack:
  %unit = icmp eq i64 %e, 8
  br i1 %unit, label %tiles, label %elements
tiles:
  call void @alembert_tiles_in(ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid)
  br label %done
elements:
  call void @alembert_elements_in(ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid)
  br label %done
done:
  ret ptr %buffer
}
define internal void @alembert_unpack(ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid) #0 {
  %unit = icmp eq i64 %e, 8
  br i1 %unit, label %tiles, label %elements
tiles:
  call void @alembert_tiles_out(ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid)
  ret void
elements:
  call void @alembert_elements_out(ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid)
  ret void
}
"""


def _loop(name: str, lanes: int, step: int, body: list[str]) -> str:
    """IR of a loop over the elements `%j` of a block of states at `%state0`, `%state1`, ..."""
    states = ["%lastlane = sub i64 %valid, 1"]
    for k in range(lanes):
        states.append(f"%spare{k} = icmp ult i64 %lastlane, {k}")
        states.append(f"%lane{k} = select i1 %spare{k}, i64 %lastlane, i64 {k}")
        states.append(f"%shift{k} = mul i64 %lane{k}, %b")
        states.append(f"%state{k} = getelementptr i8, ptr %state, i64 %shift{k}")
    states_text, body_text = "\n  ".join(states), "\n  ".join(body)
    parameters = "ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid"
    return f"""
define internal void @alembert_{name}({parameters}) noinline #0 {{
entry:
  {states_text}
  br label %test
test:
  %j = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %j, %n
  br i1 %more, label %body, label %done
body:
  {body_text}
  %next = add i64 %j, {step}
  br label %test
done:
  ret void
}}
"""


def _element_in(lanes: int) -> list[str]:
    T = vector_type(lanes)
    lines = _element(lanes)
    value = "poison"
    for k in range(lanes):
        lines.append(f"%l{k} = load double, ptr %s{k}, align 8")
        if lanes > 1:
            lines.append(f"%v{k} = insertelement {T} {value}, double %l{k}, i64 {k}")
            value = f"%v{k}"
    return [*lines, f"store {T} {value if lanes > 1 else '%l0'}, ptr %p, align {8 * lanes}"]


def _element_out(lanes: int) -> list[str]:
    T = vector_type(lanes)
    lines = [*_element(lanes), f"%v = load {T}, ptr %p, align {8 * lanes}"]
    if lanes == 1:
        return [*lines, "store double %v, ptr %s0, align 8"]
    for k in range(lanes):
        lines.append(f"%l{k} = extractelement {T} %v, i64 {k}")
        lines.append(f"store double %l{k}, ptr %s{k}, align 8")
    return lines


def _element(lanes: int) -> list[str]:
    lines = ["%o = mul i64 %j, %e", f"%p = getelementptr {vector_type(lanes)}, ptr %buffer, i64 %j"]
    return lines + [f"%s{k} = getelementptr i8, ptr %state{k}, i64 %o" for k in range(lanes)]


def _tile_in(lanes: int) -> list[str]:
    T, B = vector_type(lanes), vector_type(lanes, "i1")
    load = f"call {T} @llvm.masked.load.v{lanes}f64.p0"
    transpose, columns = _transpose(lanes)
    return [
        *_tile(lanes),
        *(f"%r{k} = {load}(ptr %s{k}, i32 8, {B} %mask, {T} zeroinitializer)" for k in range(lanes)),
        *transpose,
        *(f"store {T} {column}, ptr %b{k}, align {8 * lanes}" for k, column in enumerate(columns)),
    ]


def _tile_out(lanes: int) -> list[str]:
    T, B = vector_type(lanes), vector_type(lanes, "i1")
    store = f"call void @llvm.masked.store.v{lanes}f64.p0"
    transpose, columns = _transpose(lanes)
    return [
        *_tile(lanes),
        *(f"%r{k} = load {T}, ptr %b{k}, align {8 * lanes}" for k in range(lanes)),
        *transpose,
        *(f"{store}({T} {column}, ptr %s{k}, i32 8, {B} %mask)" for k, column in enumerate(columns)),
    ]


def _tile(lanes: int) -> list[str]:
    """Addresses of the rows `%s` in the states and `%b` in the buffer; which elements exist."""
    V = vector_type(lanes, "i64")
    numbers = ", ".join(f"i64 {k}" for k in range(lanes))
    return [
        "%rest = sub i64 %n, %j",
        f"%rest0 = insertelement {V} poison, i64 %rest, i64 0",
        f"%restv = shufflevector {V} %rest0, {V} poison, <{lanes} x i32> zeroinitializer",
        f"%mask = icmp ult {V} <{numbers}>, %restv",
        f"%start = getelementptr {vector_type(lanes)}, ptr %buffer, i64 %j",
        *(f"%b{k} = getelementptr {vector_type(lanes)}, ptr %start, i64 {k}" for k in range(lanes)),
        *(f"%s{k} = getelementptr double, ptr %state{k}, i64 %j" for k in range(lanes)),
    ]


def _transpose(lanes: int) -> tuple[list[str], list[str]]:
    """IR that transposes the tile `%r`: blocks of 1, 2 and 4 lanes change places between pairs of rows."""
    T = vector_type(lanes)
    lines: list[str] = []
    rows = [f"%r{k}" for k in range(lanes)]
    distance = 1
    while distance < lanes:
        for i in range(lanes):
            if i & distance:
                continue
            j = i + distance
            low = [p if not p & distance else lanes + p - distance for p in range(lanes)]
            high = [p + distance if not p & distance else lanes + p for p in range(lanes)]
            a, b = rows[i], rows[j]
            for target, picks in ((i, low), (j, high)):
                name = f"%t{distance}_{target}"
                indices = ", ".join(f"i32 {p}" for p in picks)
                lines.append(f"{name} = shufflevector {T} {a}, {T} {b}, <{lanes} x i32> <{indices}>")
                rows[target] = name
        distance *= 2
    return lines, rows

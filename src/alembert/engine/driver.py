"""The loop over a batch, as LLVM IR.

`i32 NAME_batch(ptr table, i64 first, i64 last)` runs the body on the states first..last-1, in blocks of
W > 1. Arrays of any layout come through the table, three words for each argument and then each result:

    address of the first state's first element, bytes between states (0: the same for all), bytes between
    elements

A block is packed into the layout of the body (element j of all lanes together), computed and unpacked, by functions that
all kernels share (`alembert.engine.target`); large results may leave by `alembert.engine.outlet` while the body
computes. In the last block the spare lanes repeat the last state; they compute the same bits and store them to the
same place, so that no lane needs a condition. The function returns 0, 1 when there is no memory for a
large workspace, 2 when a result may not be finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from alembert.engine import outlet
from alembert.engine.fastcall import scratch
from alembert.engine.loops import Lines
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
    large = {size for size in packed if size >= LARGE} if not code.listed else set()
    reserve, release = scratch(8 * (offsets[-1] + code.workspace * lanes), "  ret i32 1")

    call = {x: packing_symbol(x, lanes, code.target) for x in ("pack", "unpack", "check", "outlet")}
    lines = [f"define i32 @{name}_batch(ptr %table, i64 %first, i64 %last) #0 {{", "entry:", reserve]
    finite = [f"%finite{j}" for j, _ in enumerate(outlets)]
    for name_, j in zip(finite, outlets, strict=True):
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
        elif k < len(inputs):
            lines.append(f"  call void @{call['pack']}({direct}, i64 {inputs[k]}, i64 %valid, i1 %again)")
        pointers.append(f"ptr %buffer{k}")
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
    """IR of `pack`, `unpack`, `check` and `outlet`.

    Contiguous elements go through tiles of as many as there are lanes; an argument that all states share is packed once.
    """
    return (
        _PACKING
        + _moving("tiles_in", lanes, lanes, _tile_in)
        + _moving("tiles_out", lanes, lanes, _tile_out)
        + _moving("elements_in", lanes, 1, _element_in)
        + _moving("elements_out", lanes, 1, _element_out)
        + outlet.checking(lanes)
        + outlet.opening(lanes)
    )


_PACKING = """
define internal void @alembert_pack(ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid, i1 %again) #0 {
  %shared = icmp eq i64 %b, 0
  %packed = and i1 %shared, %again
  br i1 %packed, label %done, label %pack
pack:
  %unit = icmp eq i64 %e, 8
  br i1 %unit, label %tiles, label %elements
tiles:
  call void @alembert_tiles_in(ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid)
  ret void
elements:
  call void @alembert_elements_in(ptr %buffer, ptr %state, i64 %b, i64 %e, i64 %n, i64 %valid)
  ret void
done:
  ret void
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


def _moving(name: str, lanes: int, step: int, body: Callable[[Lines, list[str], str, str], None]) -> str:
    """IR of a loop over the elements of a block of states; `body` gets the states, an element and its packed place."""
    w = Lines(lanes, fused=False)
    distances = [w.mul(lane, "%b") for lane in outlet.lanes_of(w, lanes)]
    states = [w.let(f"getelementptr i8, ptr %state, i64 {x}") for x in distances]
    element = w.loop("0", "%n", step=step)
    body(w, states, element.index, w.at("%buffer", w.mul(element.index, lanes)))
    w.end(element)
    numbers = ["%b", "%e", "%n", "%valid"]
    return w.function(f"alembert_{name}", ["%buffer", "%state"], "#0", numbers=numbers)


def _element_in(w: Lines, states: list[str], element: str, place: str) -> None:
    value = w.any
    for k, address in enumerate(_elements(w, states, element)):
        value = w.let(f"insertelement {w.T} {value}, double {w.scalar(address)}, i64 {k}")
    w.store(value, place)


def _element_out(w: Lines, states: list[str], element: str, place: str) -> None:
    for k, address in enumerate(_elements(w, states, element)):
        w.put(w.scalar(place, k), address)


def _elements(w: Lines, states: list[str], element: str) -> list[str]:
    """Where an element of each state is."""
    offset = w.mul(element, "%e")
    return [w.let(f"getelementptr i8, ptr {state}, i64 {offset}") for state in states]


def _tile_in(w: Lines, states: list[str], element: str, place: str) -> None:
    mask, call = _exist(w, element), f"call {w.T} @llvm.masked.load.{w.kind}.p0"
    addresses = [w.at(state, element) for state in states]
    rows = [w.let(f"{call}(ptr {x}, i32 8, {mask}, {w.T} zeroinitializer)") for x in addresses]
    for k, column in enumerate(outlet.transposed(w, rows)):
        w.store(column, place, k * w.width)


def _tile_out(w: Lines, states: list[str], element: str, place: str) -> None:
    mask, call = _exist(w, element), f"call void @llvm.masked.store.{w.kind}.p0"
    rows = [w.load(place, k * w.width) for k in range(w.width)]
    for state, column in zip(states, outlet.transposed(w, rows), strict=True):
        w.do(f"{call}({w.T} {column}, ptr {w.at(state, element)}, i32 8, {mask})")


def _exist(w: Lines, element: str) -> str:
    """Which elements of a tile there are."""
    V, numbers = vector_type(w.width, "i64"), ", ".join(f"i64 {k}" for k in range(w.width))
    one = w.let(f"insertelement {V} poison, i64 {w.sub('%n', element)}, i64 0")
    left = w.let(f"shufflevector {V} {one}, {V} poison, <{w.width} x i32> zeroinitializer")
    return f"{vector_type(w.width, 'i1')} {w.let(f'icmp ult {V} <{numbers}>, {left}')}"

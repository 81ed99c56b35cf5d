"""The loop over a batch, as LLVM IR.

`i32 alembert_batch(ptr layout, ptr table, i64 first, i64 last)` runs a body on the states first..last-1, in blocks of
W. It is the same for all kernels with so many lanes; what is a kernel's own is in its `layout`. Arrays of any layout come
through the table, three words for each argument and then each result:

    address of the first state's first element, bytes between states (0: the same for all), bytes between
    elements

A block is packed into the layout of the body (element j of all lanes together), computed and unpacked; large results may
leave by `alembert.engine.outlet` while the body computes, or after. In the last block the spare lanes repeat the last state;
they compute the same bits and store them to the same place, so that no lane needs a condition. With one lane nothing is
packed: elements follow each other. The function returns 0, 1 when there is no memory for a large workspace, or with several
lanes 2 when a result may not be finite.

The body is `void (ptr pointers, ptr list, ptr workspace)`: that of `block_function` or `alembert.engine.fastcall.one_state`,
which do not look at the list, or the interpreter itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from alembert.engine import outlet
from alembert.engine.fastcall import ALIGNMENT, STACK_LIMIT
from alembert.engine.loops import Lines
from alembert.engine.vectormath import vector_type

WORDS = 3  # of the table, for each argument
LARGE = 32  # elements of a result from which on an outlet is faster than unpacking tiles (measured)
_HEAD = ("code", "list", "inputs", "packed", "all", "bytes", "room", "outlet", "left")
_OWN = ("size", "buffer", "leave")
"""words of the layout, and of each argument and result in it"""


def layout(
    code: int,
    list_of: int,
    inputs: Sequence[int],
    outputs: Sequence[int],
    lanes: int,
    *,
    workspace: int,
    direct: int,
    leaves: Sequence[int],
) -> np.ndarray:
    """The words for a body at the address `code` with the given numbers of elements.

    The last `direct` results leave while it computes; `leaves` are addresses of the functions by which others do, or 0.
    """
    packed = len(outputs) - direct
    buffers = [_padded(size, lanes) for size in inputs]
    buffers += [_padded(size + 2 * lanes, lanes) for size in outputs[:packed]]
    buffers += [outlet.SIZE] * (direct + 1)
    if lanes == 1:
        buffers = [0] * len(buffers)
    starts = np.cumsum([0, *buffers]).tolist()
    count = len(inputs) + len(outputs)
    bytes_ = 8 * (starts[-1] + workspace * lanes)
    head = [code, list_of, len(inputs), len(inputs) + packed, count, bytes_]
    head += [8 * starts[-1], 8 * starts[-2], 8 * sum(outputs) if direct or any(leaves) else 0]
    own = zip(
        (*inputs, *outputs),
        (8 * x for x in starts),
        (*[0] * len(inputs), *leaves, *[0] * direct),
        strict=False,
    )
    return np.array([*head, *(word for row in own for word in row)], dtype=np.int64)


def block_function(name: str, count: int) -> str:
    """IR of `void NAME_block(ptr pointers, ptr list, ptr workspace)`."""
    loads = [
        f"  %a{k} = getelementptr ptr, ptr %pointers, i64 {k}\n  %x{k} = load ptr, ptr %a{k}"
        for k in range(count)
    ]
    arguments = ", ".join([*(f"ptr %x{k}" for k in range(count)), "ptr %w"])
    head = f"define void @{name}_block(ptr %pointers, ptr %list, ptr %w) #0 {{\nentry:"
    return "\n".join([head, *loads, f"  call void @{name}({arguments})", "  ret void", "}\n"])


def batch_function(lanes: int) -> str:
    """IR of `alembert_batch`."""
    head = "\n".join(
        f"  %{name}_at = getelementptr i64, ptr %layout, i64 {k}\n"
        f"  %{name} = load {'ptr' if name in ('code', 'list') else 'i64'}, ptr %{name}_at"
        for k, name in enumerate(_HEAD)
    )
    T, B = vector_type(lanes), vector_type(lanes, "i1")
    finite = f"%SIDE_finite = getelementptr double, ptr %SIDE_packed, i64 {outlet.FINITE}"
    if lanes == 1:
        begin, end, status = "  br label %first_block\nfirst_block:", "", "  %status = add i32 0, 0"
        pack = _each("in", "0", "%all", "start", "compute", _given("in") + _pointer("in", "state"))
        unpack = "  br label %computed"
    else:
        begin = f"""\
  %states = sub i64 %last, %first
  %leaving = mul i64 %states, %left
  %stream = icmp ugt i64 %leaving, {outlet.STREAMED_BYTES}
  %finite = getelementptr double, ptr %final, i64 {outlet.FINITE}
  store {T} zeroinitializer, ptr %finite, align {8 * lanes}
"""
        begin += _each("all_k", "0", "%all", "ready", "outlets", _own("all_k") + _pointer("all_k", "packed"))
        clear = f"  {finite}\n  store {T} zeroinitializer, ptr %SIDE_finite, align {8 * lanes}\n"
        begin += "outlets:\n" + _each("c", "%packed", "%all", "outlets", "first_block", _own("c") + clear)
        begin += "first_block:"
        into = "ptr %SIDE_packed, ptr %SIDE_state, i64 %SIDE_b, i64 %SIDE_e, i64 %SIDE_size, i64 %valid"
        out = "ptr %SIDE_state, i64 %SIDE_b, i64 %SIDE_e, i64 %valid, i64 %SIDE_size, i1 %stream"
        pack = _each(
            *("in", "0", "%inputs", "start", "direct"),
            _own("in") + _given("in") + f"  call void @alembert_pack({into}, i1 %again)\n",
        )
        pack += "direct:\n" + _each(
            *("d", "%packed", "%all", "direct", "compute"),
            _own("d") + _given("d") + f"  call void @alembert_outlet(ptr %SIDE_packed, {out})\n",
        )
        leave = f"""\
  %leaves = icmp ne ptr %SIDE_leave, null
  br i1 %leaves, label %leave, label %unpack
leave:
  call void @alembert_outlet(ptr %final, {out})
  call void %SIDE_leave(ptr %SIDE_packed, ptr %final, i64 0, i64 %SIDE_size, i64 %SIDE_size)
  br label %SIDE_end
unpack:
  call void @alembert_unpack({into})
  call void @alembert_check(ptr %SIDE_packed, ptr %final, i64 %SIDE_size)
"""
        unpack = _each(
            "out", "%inputs", "%packed", "compute", "computed", _own("out") + _given("out") + leave
        )
        look = f"""\
  {finite}
  %seen_one = load {T}, ptr %SIDE_finite, align {8 * lanes}
  %seen_so_far = load {T}, ptr %finite, align {8 * lanes}
  %seen_sum = fadd {T} %seen_so_far, %seen_one
  store {T} %seen_sum, ptr %finite, align {8 * lanes}
"""
        end = _each("s", "%packed", "%all", "done", "looked", _own("s") + look) + "looked:\n  fence seq_cst\n"
        status = f"""\
  %seen = load {T}, ptr %finite, align {8 * lanes}
  %wrong = fcmp uno {T} %seen, zeroinitializer
  %bits = bitcast {B} %wrong to i{lanes}
  %any = icmp ne i{lanes} %bits, 0
  %status = select i1 %any, i32 2, i32 0"""
    return f"""
define i32 @alembert_batch(ptr %layout, ptr %table, i64 %first, i64 %last) #0 {{
entry:
{head}
  %pointers = alloca ptr, i64 %all, align 16
  %small = icmp ule i64 %bytes, {STACK_LIMIT}
  br i1 %small, label %on_stack, label %on_heap
on_stack:
  %stack = alloca i8, i64 %bytes, align {ALIGNMENT}
  br label %ready
on_heap:
  %asked = add i64 %bytes, {ALIGNMENT}
  %heap = call ptr @malloc(i64 %asked)
  %refused = icmp eq ptr %heap, null
  br i1 %refused, label %no_memory, label %memory
no_memory:
  ret i32 1
memory:
  %heapint = ptrtoint ptr %heap to i64
  %raised = add i64 %heapint, {ALIGNMENT - 1}
  %rounded = and i64 %raised, -{ALIGNMENT}
  %aligned = inttoptr i64 %rounded to ptr
  br label %ready
ready:
  %scratch = phi ptr [%stack, %on_stack], [%aligned, %memory]
  %kept = phi ptr [null, %on_stack], [%heap, %memory]
  %workspace = getelementptr i8, ptr %scratch, i64 %room
  %final = getelementptr i8, ptr %scratch, i64 %outlet
{begin}
  br label %loop
loop:
  %i = phi i64 [%first, %first_block], [%next, %computed]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %start, label %done
start:
  %rest = sub i64 %last, %i
  %full = icmp uge i64 %rest, {lanes}
  %valid = select i1 %full, i64 {lanes}, i64 %rest
  %again = icmp ne i64 %i, %first
{pack}compute:
  call void %code(ptr %pointers, ptr %list, ptr %workspace)
{unpack}
computed:
  %next = add i64 %i, {lanes}
  br label %loop
done:
{end}{status}
  call void @free(ptr %kept)
  ret i32 %status
}}
"""


def _each(k: str, first: str, last: str, before: str, after: str, body: str) -> str:
    """IR of a loop over arguments and results from `first` to before `last`; in its body SIDE stands for the number."""
    text = f"""\
  br label %SIDE_test
SIDE_test:
  %SIDE = phi i64 [{first}, %{before}], [%SIDE_next, %SIDE_end]
  %SIDE_more = icmp ult i64 %SIDE, {last}
  br i1 %SIDE_more, label %SIDE_body, label %{after}
SIDE_body:
{body}  br label %SIDE_end
SIDE_end:
  %SIDE_next = add i64 %SIDE, 1
  br label %SIDE_test
"""
    return text.replace("SIDE", k)


def _own(k: str) -> str:
    """IR that reads the words of an argument or a result, and finds its place in the buffers."""
    text = f"  %{k}_own = mul i64 %{k}, {len(_OWN)}\n"
    for j, name in enumerate(_OWN, len(_HEAD)):
        text += f"  %{k}_{name}_word = add i64 %{k}_own, {j}\n"
        text += f"  %{k}_{name}_at = getelementptr i64, ptr %layout, i64 %{k}_{name}_word\n"
        text += f"  %{k}_{name} = load {'ptr' if name == 'leave' else 'i64'}, ptr %{k}_{name}_at\n"
    return text + f"  %{k}_packed = getelementptr i8, ptr %scratch, i64 %{k}_buffer\n"


def _given(k: str) -> str:
    """IR that reads the table's words of an argument or a result, and finds the state at hand."""
    text = f"  %{k}_given = mul i64 %{k}, {WORDS}\n"
    for j, name in enumerate(("p", "b", "e")):
        text += f"  %{k}_{name}_word = add i64 %{k}_given, {j}\n"
        text += f"  %{k}_{name}_at = getelementptr i64, ptr %table, i64 %{k}_{name}_word\n"
        text += f"  %{k}_{name} = load {'ptr' if name == 'p' else 'i64'}, ptr %{k}_{name}_at\n"
    text += f"  %{k}_shift = mul i64 %i, %{k}_b\n"
    return text + f"  %{k}_state = getelementptr i8, ptr %{k}_p, i64 %{k}_shift\n"


def _pointer(k: str, what: str) -> str:
    """IR that makes this what the body takes."""
    place = f"  %{k}_pointer = getelementptr ptr, ptr %pointers, i64 %{k}\n"
    return place + f"  store ptr %{k}_{what}, ptr %{k}_pointer\n"


def _padded(size: int, lanes: int) -> int:
    """Doubles in the buffer of an argument: whole W-by-W tiles, aligned."""
    count = -(-size // lanes) * lanes * lanes
    return -(-count // 8) * 8


def packing(lanes: int) -> str:
    """IR of `alembert_batch` and what it calls.

    Contiguous elements go through tiles of as many as there are lanes; an argument that all states share is packed once.
    """
    if lanes == 1:
        return batch_function(1)
    return (
        _PACKING
        + _moving("tiles_in", lanes, lanes, _tile_in)
        + _moving("tiles_out", lanes, lanes, _tile_out)
        + _moving("elements_in", lanes, 1, _element_in)
        + _moving("elements_out", lanes, 1, _element_out)
        + outlet.checking(lanes)
        + outlet.opening(lanes)
        + batch_function(lanes)
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

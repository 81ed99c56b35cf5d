"""From matrices of many states side by side to each state's own place in memory.

A matrix with an element of every lane together leaves through an *outlet*: an address for every lane, the distance of a
state's elements, and the way to go. Tiles of as many elements as lanes are transposed in registers and stored as whole
aligned vectors: a store across two cache lines costs several. Since the states' first elements are aligned differently, the
tile of a lane begins where its next whole vector does: element i of the tile comes from one of a few rows, chosen by the
bits of the lane's shift,

    r_i = x_(i + u + shift),    shift = sum of the bits 1, 2, 4 ... of each lane                         (1)

and the few elements before the first and after the last whole vector go one by one. Results that no cache will hold are
*streamed* past the caches, which saves the memory from reading what is then overwritten. A call takes the elements that have
become known since the last one, so that memory is busy while the next rows are computed; it reads at most two tiles of
those that were known before.

What leaves is checked on the way: 0 times the sum of its elements is zero, unless one of them is infinite or no number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from alembert.engine.loops import Lines
from alembert.engine.vectormath import vector_type

PLAIN, STREAMED, SCATTERED, ALIGNED = range(4)
METADATA = "!77 = !{i32 1}\n"  # of streamed stores
STREAMED_BYTES = 1 << 22
"""of results, beyond which they go past the caches: there to write them, and read them once, costs no more (measured)"""
FINITE = 16
"""where an outlet keeps zero for each lane, or NaN since a result was not finite (or sums of results overflowed)"""
SIZE = FINITE + 8
"""doubles in an outlet"""


def opening(lanes: int) -> str:
    """IR of `void alembert_outlet(ptr outlet, ptr state, i64 b, i64 e, i64 valid, i64 count, i1 stream)`.

    For `valid` states b bytes apart with `count` elements e bytes apart; spare lanes repeat the last state.
    """
    w = Lines(1, fused=False)
    first = w.let("ptrtoint ptr %state to i64")
    grain = w.let("or i64 %count, " + str(lanes))
    lowest = w.let(f"and i64 {grain}, {w.let(f'sub i64 0, {grain}')}")  # its lowest bit
    within = w.let(f"sub i64 {w.let(f'shl i64 {lowest}, 3')}, 1")
    off = "0"
    for k, lane in enumerate(lanes_of(w, lanes)):
        distance = w.let(f"mul i64 {lane}, %b")
        off = w.let(f"or i64 {off}, {distance}")
        address = w.let(f"add i64 {first}, {distance}")
        w.do(f"store i64 {address}, ptr {w.at('%outlet', k)}, align 8")
    w.do(f"store i64 %e, ptr {w.at('%outlet', lanes)}, align 8")
    fits = w.let(f"icmp eq i64 {w.let(f'and i64 {off}, {within}')}, 0")
    way = w.let(f"select i1 %stream, i64 {STREAMED}, i64 {ALIGNED}")
    way = w.let(f"select i1 {fits}, i64 {way}, i64 {PLAIN}")
    unit = w.let("icmp eq i64 %e, 8")
    way = w.let(f"select i1 {unit}, i64 {way}, i64 {SCATTERED}")
    w.do(f"store i64 {way}, ptr {w.at('%outlet', lanes + 1)}, align 8")
    near = w.let(f"icmp eq i64 %b, {w.let('shl i64 %count, 3')}")
    full = w.let(f"icmp eq i64 %valid, {lanes}")
    joined = w.let(f"zext i1 {w.let(f'and i1 {near}, {full}')} to i64")
    w.do(f"store i64 {joined}, ptr {w.at('%outlet', lanes + 2)}, align 8")
    pointers, numbers = ["%outlet", "%state"], ["%b", "%e", "%valid", "%count"]
    return w.function("alembert_outlet", pointers, "#0", numbers=numbers, flags=["%stream"], alike=pointers)


def lanes_of(w: Lines, lanes: int) -> list[str]:
    """For each lane the number of its state, of `%valid` ones: spare lanes have the last."""
    last = w.sub("%valid", 1)
    spare = [w.let(f"icmp ult i64 {last}, {k}") for k in range(lanes)]
    return [w.let(f"select i1 {x}, i64 {last}, i64 {k}") for k, x in enumerate(spare)]


def leaving(name: str, residue: int, lanes: int, attributes: str, *, whole: bool = False) -> str:
    """IR of `void NAME(ptr x, ptr outlet, i64 first, i64 last, i64 count)`: elements first..last-1 of `count` have become
    known. The code is for numbers of elements with this residue modulo the lanes.

    The memory at x has room for a tile more than the elements. `whole`: they are always all of them, at least two tiles, and
    there is room for two more. The vector across the end of a state and the beginning of the next, where this follows at
    once in memory, then goes as one.
    """
    w = Lines(lanes, fused=False)
    way = w.let(f"load i64, ptr {w.at('%outlet', lanes + 1)}, align 8")
    ways = {STREAMED: "streamed", SCATTERED: "scattered", ALIGNED: "aligned"}
    cases = " ".join(f"i64 {way}, label %{label}" for way, label in ways.items())
    w.do(f"switch i64 {way}, label %plain [{cases}]")
    w.label("plain")
    _plain(w, residue)
    w.do("ret void")
    for label in ("streamed", "aligned"):
        w.label(label)
        _aligned(w, residue, label, whole=whole)
        w.do("ret void")
    w.label("scattered")
    _scattered(w)
    return w.function(name, ["%x", "%outlet"], attributes, numbers=["%first", "%last", "%count"])


def _pointers(w: Lines) -> list[str]:
    return [w.let(f"load ptr, ptr {w.at('%outlet', k)}, align 8") for k in range(w.width)]


def _plain(w: Lines, residue: int) -> None:
    W = w.width
    lanes = _pointers(w)
    start = w.let(f"and i64 %first, {-W}")
    _check(w, "%first", "%last")
    tile = w.loop(start, w.let(f"sub nsw i64 %last, {W - 1}"), step=W)
    for lane, value in zip(lanes, transposed(w, _rows(w, tile.index, W)), strict=True):
        w.store(value, lane, tile.index, aligned=False)
    w.end(tile)
    if residue:
        w.branch(w.let("icmp eq i64 %last, %count"), "plain_rest", "plain_done")
        w.label("plain_rest")
        rest = w.let(f"sub nsw i64 %count, {residue}")
        for lane, value in zip(lanes, transposed(w, _rows(w, rest, W)), strict=True):
            w.store_first(value, residue, w.at(lane, rest))
        w.do("br label %plain_done")
        w.label("plain_done")


def _aligned(w: Lines, residue: int, label: str, *, whole: bool) -> None:
    W, I = w.width, vector_type(w.width, "i64")
    grain = math.gcd(residue, W)
    levels = [p for p in (4, 2, 1) if grain <= p < W]
    most = W - grain  # the largest shift
    addresses = w.let(f"load {I}, ptr %outlet, align 8")
    ahead = w.let(f"lshr {I} {w.let(f'sub {I} zeroinitializer, {addresses}')}, splat (i64 3)")
    heads = w.let(f"and {I} {ahead}, splat (i64 {W - 1})")
    uniform = w.let(f"and i64 {w.let(f'extractelement {I} {heads}, i64 0')}, {grain - 1}")
    masks = {
        p: w.let(f"icmp ne {I} {w.let(f'and {I} {heads}, splat (i64 {p})')}, zeroinitializer") for p in levels
    }
    shifts = w.let(f"and {I} {heads}, splat (i64 {-grain})")
    moved = w.let(f"add {I} {addresses}, {w.let(f'shl {I} {shifts}, splat (i64 3)')}")
    lanes = [w.let(f"extractelement {I} {moved}, i64 {k}") for k in range(W)]
    pointers = [w.let(f"inttoptr i64 {lane} to ptr") for lane in lanes]

    def begin(known: str) -> str:
        """Where the first tile begins that is not whole when so many elements are known."""
        beyond = w.let(f"sub nsw i64 {w.let(f'sub nsw i64 {known}, {most}')}, {uniform}")
        whole = w.let(f"and i64 {beyond}, {-W}")
        none = w.let(f"icmp slt i64 {beyond}, 0")
        return w.let(f"add nsw i64 {uniform}, {w.let(f'select i1 {none}, i64 0, i64 {whole}')}")

    end = begin("%last")
    past = ", !nontemporal !77" if label == "streamed" else ""

    def tiles(start: str, stop: str, targets: Sequence[str]) -> None:
        tile = w.loop(start, stop, [_finite(w)], step=W)
        rows = _rows(w, tile.index, W + most)
        checked = _with(w, rows[:W], tile.sums[0])
        for p in levels:
            rows = [w.choose(masks[p], rows[i + p], rows[i]) for i in range(len(rows) - p)]  # (1)
        for lane, value in zip(targets, transposed(w, rows), strict=False):
            w.do(f"store {w.T} {value}, ptr {w.at(lane, tile.index)}, align {8 * W}{past}")
        w.end(tile, [checked])
        _set_finite(w, tile.sums[0])

    tiles(begin("%first"), end, pointers)
    if whole:
        joined = w.let(f"load i64, ptr {w.at('%outlet', W + 2)}, align 8")
        w.branch(w.let(f"icmp eq i64 {joined}, 1"), f"{label}_joined", f"{label}_apart")
        w.label(f"{label}_joined")
        _check(w, "0", uniform)
        _check(w, end, "%count")
        following = ", ".join(f"i32 {(k + 1) % W}" for k in range(W))
        behind = w.at("%x", w.let(f"mul nsw i64 %count, {W}"))
        for i in range(2 * W):
            row = w.load("%x", i * W)
            turned = w.let(f"shufflevector {w.T} {row}, {w.T} poison, <{W} x i32> <{following}>")
            w.store(turned, behind, i * W)
        tiles(end, w.let(f"add nsw i64 {end}, {2 * W}"), pointers[:-1])
        first_state = w.let("load ptr, ptr %outlet, align 8")
        head = w.let(f"extractelement {I} {heads}, i64 0")
        last_state = w.let(f"load ptr, ptr {w.at('%outlet', W - 1)}, align 8")
        tail = w.let(f"add nsw i64 {end}, {w.let(f'extractelement {I} {shifts}, i64 {W - 1}')}")
        for lane, state, start, stop in ((0, first_state, "0", head), (W - 1, last_state, tail, "%count")):
            edge = w.loop(start, stop)
            place = w.let(f"add nsw i64 {w.let(f'mul nsw i64 {edge.index}, {W}')}, {lane}")
            w.put(w.scalar("%x", place), state, edge.index)
            w.end(edge)
        w.do("ret void")
        w.label(f"{label}_apart")
    begins = w.let(f"icmp slt i64 %first, {W}")
    ends = w.let("icmp eq i64 %last, %count")
    w.branch(w.let(f"or i1 {begins}, {ends}"), f"{label}_edges", f"{label}_done")
    w.label(f"{label}_edges")
    few = w.let(f"icmp slt i64 {uniform}, %last")
    _check(w, "%first", w.let(f"select i1 {few}, i64 {uniform}, i64 %last"))
    _check(w, w.let(f"select i1 {ends}, i64 {end}, i64 %last"), "%last")
    each = w.loop("0", str(W))
    target = w.let(f"load ptr, ptr {w.at('%outlet', each.index)}, align 8")
    address = w.let(f"ptrtoint ptr {target} to i64")
    before = w.let(f"lshr i64 {w.let(f'sub i64 0, {address}')}, 3")
    head = w.let(f"and i64 {before}, {W - 1}")
    tail = w.let(f"add nsw i64 {end}, {w.let(f'and i64 {head}, {-grain}')}")
    tail = w.let(f"select i1 {ends}, i64 {tail}, i64 %last")
    short = w.let(f"icmp slt i64 {head}, %last")
    head = w.let(f"select i1 {short}, i64 {head}, i64 %last")
    for first, last in (("%first", head), (tail, "%last")):
        edge = w.loop(first, last)
        place = w.let(f"add nsw i64 {w.let(f'mul nsw i64 {edge.index}, {W}')}, {each.index}")
        w.put(w.scalar("%x", place), target, edge.index)
        w.end(edge)
    w.end(each)
    w.do(f"br label %{label}_done")
    w.label(f"{label}_done")


def _scattered(w: Lines) -> None:
    W = w.width
    lanes = _pointers(w)
    step = w.let(f"load i64, ptr {w.at('%outlet', W)}, align 8")
    _check(w, "%first", "%last")
    element = w.loop("%first", "%last")
    distance = w.let(f"mul nsw i64 {element.index}, {step}")
    source = w.at("%x", w.let(f"mul nsw i64 {element.index}, {W}"))
    for k, lane in enumerate(lanes):
        target = w.let(f"getelementptr i8, ptr {lane}, i64 {distance}")
        w.put(w.scalar(source, k), target)
    w.end(element)


def _finite(w: Lines) -> str:
    return w.load("%outlet", FINITE)


def _set_finite(w: Lines, value: str) -> None:
    w.store(value, "%outlet", FINITE)


def _with(w: Lines, rows: Sequence[str], finite: str) -> str:
    """What is to be kept when these are looked at."""
    sums = list(rows)
    while len(sums) > 1:
        sums = [w.let(f"fadd {w.T} {a}, {b}") for a, b in zip(sums[::2], sums[1::2], strict=True)]
    return w.let(f"fadd {w.T} {finite}, {w.times(sums[0], 'zeroinitializer')}")


def _check(w: Lines, first: str, last: str) -> None:
    """Look at the rows first..last-1."""
    row = w.loop(first, last, [_finite(w)])
    w.end(row, [_with(w, _rows(w, row.index, 1), row.sums[0])])
    _set_finite(w, row.sums[0])


def checking(lanes: int) -> str:
    """IR of `void alembert_check(ptr x, ptr outlet, i64 count)`, for results that leave by other ways."""
    w = Lines(lanes, fused=False)
    _check(w, "0", "%count")
    return w.function("alembert_check", ["%x", "%outlet"], "#0", numbers=["%count"])


def _rows(w: Lines, first: str, count: int) -> list[str]:
    source = w.at("%x", w.let(f"mul nsw i64 {first}, {w.width}"))
    return [w.load(source, i * w.width) for i in range(count)]


def transposed(w: Lines, rows: Sequence[str]) -> list[str]:
    """A tile by columns: blocks of 1, 2 and 4 elements change places between pairs of rows."""
    W, T, rows = w.width, w.T, list(rows)
    distance = 1
    while distance < W:
        low = [p if not p & distance else W + p - distance for p in range(W)]
        high = [p + distance if not p & distance else W + p for p in range(W)]
        for i in (i for i in range(W) if not i & distance):
            a, b = rows[i], rows[i + distance]
            for target, picks in ((i, low), (i + distance, high)):
                indices = ", ".join(f"i32 {p}" for p in picks)
                rows[target] = w.let(f"shufflevector {T} {a}, {T} {b}, <{W} x i32> <{indices}>")
        distance *= 2
    return rows

"""From the object code of LLVM to an image of the memory that it is to run in.

LLVM could load its own objects, but to start it takes longer than everything else in the first call of a process from the
cache. What the code generator makes of our kernels is simple enough to be placed once, when it is compiled: for x86-64 in
the ELF format (System V ABI, AMD64 supplement, section 4.4), all references are relative,

    R_X86_64_PC32, R_X86_64_PLT32           S + A - P                                              (1)
    R_X86_64_GOTPCRELX and its kin          S + A - P, where the instruction loads an address       (2)

with S the symbol, A the addend and P the place. In (2) the load from a table of addresses becomes the computation of the
address (`mov` becomes `lea`), as in any linker. Calls that leave the image go through a jump at its end:

    jmp *[rip + 0]; the function's address, eight bytes that the loader fills in

An object with anything else is left to LLVM.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from alembert.engine import symbols
from alembert.engine.image import PAGE, Layout, written

_X86_64 = 62
_PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX = 2, 4, 9, 41, 42
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8
_GLOBAL, _ABSENT = 1, 0
_MOV, _LEA = 0x8B, 0x8D
_JUMP = b"\xff\x25\x00\x00\x00\x00"
_STEP = 16  # bytes from one jump to the next


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int

    def content(self, code: bytes) -> bytes:
        return code[self.offset : self.offset + self.size]


class _Symbol(NamedTuple):
    name: str
    binding: int
    section: int
    value: int


class _Unusual(Exception):
    """Something that only LLVM can load."""


def linked(code: bytes) -> bytes | None:
    """The image of an object; None when only LLVM can load it."""
    if code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", code, 18) != (_X86_64,):
        return None
    try:
        return _link(code)
    except (_Unusual, AttributeError):  # a symbol that is nowhere
        return None


def _link(code: bytes) -> bytes:
    sections = list(_sections(code))
    names = list(_symbols(code, sections))
    outside = sorted({symbol.name for symbol in names if symbol.section == _ABSENT and symbol.name})
    for name in outside:
        symbols.address(name)  # it is somewhere
    starts, jumps, sizes = _placed(sections, len(outside))
    targets = {name: jumps + _STEP * k for k, name in enumerate(outside)}

    image = bytearray(sum(sizes))
    for k, start in starts.items():
        if sections[k].kind != _NO_BITS:
            image[start : start + sections[k].size] = sections[k].content(code)
    for start in targets.values():
        image[start : start + len(_JUMP)] = _JUMP
    for section in sections:
        if section.kind == _RELOCATIONS and sections[section.info].flags & _ALLOC:
            _relocate(image, section.content(code), starts[section.info], names, starts, targets)

    entries = {
        symbol.name: starts[symbol.section] + symbol.value
        for symbol in names
        if symbol.binding == _GLOBAL and symbol.section in starts
    }
    holes = {name: start + len(_JUMP) for name, start in targets.items()}
    return written(Layout(sizes, entries, holes), bytes(image))


def _sections(code: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    for k in range(count):
        yield _Section(*struct.unpack_from("<IIQQQQIIQQ", code, table + size * k))


def _symbols(code: bytes, sections: Sequence[_Section]) -> Iterator[_Symbol]:
    (table,) = (section for section in sections if section.kind == _SYMBOLS)
    text = sections[table.link].content(code)
    for name, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", table.content(code)):
        yield _Symbol(text[name : text.index(b"\0", name)].decode(), info >> 4, section, value)


def _placed(sections: Sequence[_Section], count: int) -> tuple[dict[int, int], int, tuple[int, int, int]]:
    """Where each section starts, where the jumps do, and how much is run (the jumps too), read, and written."""
    starts: dict[int, int] = {}
    ends, place, jumps = [0], 0, 0
    for kind in (_EXECUTE, 0, _WRITE):
        for k, section in enumerate(sections):
            if section.flags & _ALLOC and section.flags & (_EXECUTE | _WRITE) == kind:
                starts[k] = _up(place, max(1, section.alignment))
                place = starts[k] + section.size
        if kind == _EXECUTE:
            jumps = _up(place, _STEP)
            place = jumps + _STEP * count
        place = _up(place, PAGE)
        ends.append(place)
    if any(section.flags & _ALLOC and k not in starts for k, section in enumerate(sections)):
        raise _Unusual("a section that is run and written")
    return starts, jumps, (ends[1], ends[2] - ends[1], ends[3] - ends[2])


def _up(place: int, alignment: int) -> int:
    return -(-place // alignment) * alignment


def _relocate(
    image: bytearray,
    entries: bytes,
    base: int,
    names: Sequence[_Symbol],
    starts: Mapping[int, int],
    jumps: Mapping[str, int],
) -> None:
    for offset, info, addend in struct.iter_unpack("<QQq", entries):
        kind, symbol, place = info & 0xFFFFFFFF, names[info >> 32], base + offset
        if symbol.section in starts:
            target = starts[symbol.section] + symbol.value
            if kind in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):  # (2)
                if image[place - 2] != _MOV or addend != -4:
                    raise _Unusual("a reference to a table of addresses that is not a load")
                image[place - 2] = _LEA
            elif kind not in (_PC32, _PLT32):
                raise _Unusual(f"relocation {kind}")
        elif symbol.section == _ABSENT and kind == _PLT32:
            target = jumps[symbol.name]
        else:
            raise _Unusual(f"relocation {kind} of {symbol.name}")
        struct.pack_into("<i", image, place, target + addend - place)  # (1)

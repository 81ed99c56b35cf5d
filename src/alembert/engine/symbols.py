"""Names of the functions that a module calls but does not hold.

Those of the C library's mathematics have a prefix, so that LLVM does not fold or replace the calls. Others are the same in
all kernels: what packs and unpacks the states of a batch, sines and cosines, and the interpreter of lists depend on the
processor and the number of lanes only, and take longer to compile than most kernels. A kernel calls them by a name that says
what and for which processor,

    alembert_shared_TARGET_GROUP_FUNCTION

and `alembert.engine.loader` compiles the group when such a name is first looked for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from alembert.engine.target import Target

MATHEMATICS = "alembert_c_"
_NAME = re.compile(r"alembert_shared_([0-9a-f]{8})_([a-z]+)([0-9]*)(?:of([0-9]+))?_([a-z]+)")
_STATES = "ptr, ptr, i64, i64"
_SIGNATURES = {
    "place": f"ptr ({_STATES})",
    "pack": f"ptr ({_STATES}, i64, i64, i1)",
    "unpack": f"void ({_STATES}, i64, i64)",
    "check": "void (ptr, ptr, i64)",
    "outlet": f"void ({_STATES}, i64, i64, i1)",
    "leave": "void (ptr, ptr, i64, i64, i64)",
    "sincos": "void (ptr, ptr, ptr, i64)",
    "run": "void (ptr, ptr, ptr)",
}
_INTRINSICS = {
    **dict.fromkeys(("llvm.sqrt", "llvm.floor", "llvm.ceil", "llvm.fabs"), "T (T)"),
    "llvm.copysign": "T (T, T)",
    "llvm.fma": "T (T, T, T)",
    "llvm.masked.load": "T (ptr, i32, B, T)",
    "llvm.masked.store": "void (T, ptr, i32, B)",
    "llvm.vector.reduce.or": "i1 (B)",
    "llvm.memcpy": "void (ptr, ptr, i64, i1)",
    "llvm.memset": "void (ptr, i8, i64, i1)",
    "malloc": "ptr (i64)",
    "free": "void (ptr)",
}
"""T is the vector that the name tells, B one of bits"""
_INTRINSIC = re.compile(
    rf"@(({'|'.join(map(re.escape, _INTRINSICS))})(?:\.(?:v(\d+))?[fi]\d+)?(?:\.p0)*(?:\.i64)?)\("
)
_DECLARED = re.compile(r"^ *declare [^@]*@([\w.]+)\(", re.MULTILINE)
TARGETS: dict[str, Target] = {}
"""by their tags, all that names were made for"""


class Shared(NamedTuple):
    """What the name of a shared function says."""

    target: str
    """the tag of the target"""
    group: str
    number: int
    lanes: int
    function: str


def sincos(target: Target) -> str:
    """The name of `alembert.engine.vectormath.sincos_array`."""
    return _symbol(target, "sincos", "sincos")


def packing(function: str, lanes: int, target: Target) -> str:
    """The name of a function of `alembert.engine.driver.packing`."""
    return _symbol(target, f"packing{lanes}", function)


def interpreter(lanes: int, target: Target) -> str:
    """The name of the function of `alembert.engine.interpreter.module`."""
    return _symbol(target, f"interpreter{lanes}", "run")


def leave(count: int, lanes: int, target: Target, *, whole: bool) -> str:
    """The name of `alembert.engine.outlet.leaving` for `count` elements."""
    kind = "whole" if whole else "part"
    return _symbol(target, f"{kind}{count % lanes}of{lanes}", "leave")


def _symbol(target: Target, group: str, function: str) -> str:
    TARGETS[target.tag] = target.compiling()
    return f"alembert_shared_{target.tag}_{group}_{function}"


def functions(group: str, lanes: int) -> list[str]:
    """What a group holds."""
    if group != "packing":
        return [{"sincos": "sincos", "interpreter": "run"}.get(group, "leave")]
    return ["place", "pack", "unpack", *(["check", "outlet"] if lanes > 1 else [])]


def declared(text: str) -> str:
    """IR that declares what a module calls of the shared functions, of LLVM's own and of the C library's memory."""
    signatures = {match.group(): _SIGNATURES[match.group(5)] for match in _NAME.finditer(text)}
    for match in _INTRINSIC.finditer(text):
        name, function, width = match.groups()
        T, B = (f"<{width} x {x}>" if width else x for x in ("double", "i1"))
        signatures[name] = _INTRINSICS[function].replace("T", T).replace("B", B)
    already = set(_DECLARED.findall(text))
    return "".join(
        f"declare {signature.replace('(', f'@{name}(', 1)}\n"
        for name, signature in sorted(signatures.items())
        if name not in already
    )


def called(code: bytes) -> set[str]:
    """The shared functions whose names an object holds."""
    return {match.group() for match in _NAME.finditer(code.decode("latin-1"))}


def parsed(symbol: str) -> Shared | None:
    """None where it is not the name of a shared function."""
    match = _NAME.fullmatch(symbol)
    if match is None:
        return None
    target, group, number, lanes, function = match.groups()
    return Shared(target, group, int(number or 0), int(lanes or 0), function)

"""Machine code that kernels have in common: compiled once for a machine, instead of into every kernel.

What packs and unpacks the states of a batch, and sines and cosines, depend on the processor and the number of lanes only.
They took longer to compile than most kernels themselves. A kernel calls them by a name that says what and for which
processor,

    alembert_shared_TARGET_GROUP_FUNCTION

and the group is compiled, or taken from the cache, when such a name is first looked for.
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from typing import TYPE_CHECKING

from alembert.collector import no_collecting
from alembert.deferred import deferred
from alembert.engine import cache, host, symbols
from alembert.engine.target import Target

if TYPE_CHECKING:
    from alembert.engine import driver, loader, outlet, vectormath
else:
    driver = deferred("alembert.engine.driver")
    loader = deferred("alembert.engine.loader")
    outlet = deferred("alembert.engine.outlet")
    vectormath = deferred("alembert.engine.vectormath")

_NAME = re.compile(rf"{symbols.SHARED}([0-9a-f]{{8}})_([a-z]+)([0-9]*)(?:of([0-9]+))?_([a-z]+)")
_STATES = "ptr, ptr, i64, i64"
_SIGNATURES = {
    "place": f"ptr ({_STATES})",
    "pack": f"ptr ({_STATES}, i64, i64, i1)",
    "unpack": f"void ({_STATES}, i64, i64)",
    "check": "void (ptr, ptr, i64)",
    "outlet": f"void ({_STATES}, i64, i64, i1)",
    "leave": "void (ptr, ptr, i64, i64, i64)",
    "sincos": "void (ptr, ptr, ptr, i64)",
}
_TARGETS: dict[str, Target] = {}
_LIBRARIES: dict[tuple[str, ...], loader.Library] = {}
_LOCK = threading.RLock()


def sincos(target: Target) -> str:
    """The name of `alembert.engine.vectormath.sincos_array`."""
    return _symbol(target, "sincos", "sincos")


def packing(function: str, lanes: int, target: Target) -> str:
    """The name of a function of `alembert.engine.driver.packing`."""
    return _symbol(target, f"packing{lanes}", function)


def leave(count: int, lanes: int, target: Target, *, whole: bool) -> str:
    """The name of `alembert.engine.outlet.leaving` for `count` elements."""
    kind = "whole" if whole else "part"
    return _symbol(target, f"{kind}{count % lanes}of{lanes}", "leave")


def declared(text: str) -> str:
    """IR that declares the functions from here that a module calls."""
    names = {match.group(): match.group(5) for match in _NAME.finditer(text)}
    return "".join(
        f"declare {_SIGNATURES[function].replace('(', f'@{name}(', 1)}\n"
        for name, function in sorted(names.items())
    )


def called(code: bytes) -> set[str]:
    """The functions from here whose names an object holds."""
    return {match.group() for match in _NAME.finditer(code.decode("latin-1"))}


def address(symbol: str) -> int:
    """Where a function is; AttributeError when there is no such function."""
    match = _NAME.fullmatch(symbol)
    target = match and _target(match.group(1))
    if not match or target is None:
        raise AttributeError(symbol)
    tag, group, number, lanes, function = match.groups()
    key = (tag, group, number, lanes or "")
    with _LOCK:  # what is replaced would be unmapped while kernels call it
        library = _LIBRARIES.get(key)
        if library is None:
            library = _LIBRARIES[key] = _library(target, group, int(number or 0), int(lanes or 0))
    return library.function(f"alembert_{function}")


def _symbol(target: Target, group: str, function: str) -> str:
    tag = _tag(target)
    _TARGETS[tag] = target
    return f"{symbols.SHARED}{tag}_{group}_{function}"


@functools.cache
def _tag(target: Target) -> str:
    return hashlib.blake2b(repr(target).encode(), digest_size=4).hexdigest()


def _target(tag: str) -> Target | None:
    """Also for a name that comes from the cache."""
    if tag not in _TARGETS:
        _TARGETS.update({_tag(target): target for target in (host.host(), host.host().compact())})
    return _TARGETS.get(tag)


def _library(target: Target, group: str, number: int, lanes: int) -> loader.Library:
    name = host.digest(f"shared {group} {number} {lanes} {target.lanes} {target.fused}", lanes, target)
    found = cache.load(name, cache.SHARED)
    if found is None:
        with no_collecting():
            text = _text(target, group, number, lanes)
            found = {}, loader.compile_ir(text.replace("define internal", "define"), target)
        host.store(name, *found, cache.SHARED)
    return loader.Library(found[1], target)


def _text(target: Target, group: str, number: int, lanes: int) -> str:
    if group == "sincos":
        return target.attributes + vectormath.sincos_module(target.lanes, fused=target.fused)
    if group == "packing":
        return target.attributes + driver.packing(number)
    return (
        target.attributes
        + outlet.leaving("alembert_leave", number, lanes, "#0", whole=group == "whole")
        + outlet.METADATA
    )


symbols.provide(address)

"""What the machine code of a kernel depends on besides the kernel: the processor, LLVM, CasADi, Alembert's own source.

LLVM knows the processor, but takes longer to start than everything else in the first call of a process. So what it said
is kept with the kernels, for as long as the machine runs (its boot has a number), NumPy sees the same instructions (a
program that emulates a processor may show others), and the same llvmlite is installed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from typing import Any

import casadi as ca
import llvmlite
import numpy as np

from alembert import own_source
from alembert.engine import cache
from alembert.engine import target as targets
from alembert.engine.target import Target


@functools.cache
def host() -> Target:
    """The processor of this machine."""
    return _surroundings()[0]


def digest(key: str, lanes: int, target: Target) -> str:
    """The name of a kernel in the cache."""
    parts = [key, str(lanes), target.triple, target.cpu, target.features, *_surroundings()[1]]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def store(name: str, properties: dict[str, Any], code: bytes, suffix: str = cache.KERNEL) -> None:
    """Keep machine code in the cache, unless the source changed while this process was running its older version."""
    before = own_source.state()
    if not before.changed and own_source.look().text == before.text:
        cache.store(name, properties, code, suffix)


@functools.cache
def _surroundings() -> tuple[Target, tuple[str, ...]]:
    """The processor, and what else every key holds."""
    state = own_source.state()
    name = _name(state.text)
    found = None if name is None else cache.load(name, cache.RECORD)
    if found is None:
        target = targets.ask()
        known = {"source": own_source.content(), "llvm": targets.llvm_version(), **dataclasses.asdict(target)}
        if name is not None and state.settled:
            cache.store(name, known, b"", cache.RECORD)
    else:
        known = dict(found[0])
    source, llvm = known.pop("source"), known.pop("llvm")
    if state.changed:  # what runs here is neither the old source nor the new one
        source = os.urandom(16).hex()
    return Target(**known), (source, llvm, ca.CasadiMeta.version())


def _name(source: str) -> str | None:
    """The record's name; None where nothing tells one boot, and so maybe one machine, from another."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read()
        package = os.path.dirname(llvmlite.__file__)
        installed = [os.stat(path) for path in (package, os.path.join(package, "binding"))]
        instructions = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    except (OSError, AttributeError, TypeError, ValueError):
        return None
    times = [(status.st_ino, status.st_mtime_ns, status.st_ctime_ns) for status in installed]
    parts = (boot, os.uname().machine, instructions, package, times, source)
    return hashlib.blake2b(repr(parts).encode(), digest_size=32).hexdigest()

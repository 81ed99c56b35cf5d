"""The machine that code is made for, and the functions that all code for it shares.

It is the processor that runs Alembert, unless the environment asks for less of it, so that tests see the arithmetic of other
machines: ALEMBERT_TARGET is `sse2`, `avx2` or `avx512`, and ALEMBERT_LANES the number of doubles in a vector (1, 2, 4, 8).

A module calls functions that it does not hold. Those of the C library's mathematics have a prefix, so that LLVM does not
fold or replace the calls. Others are the same in all kernels: what packs and unpacks the states of a batch, sines and
cosines, the interpreter of lists and the entry points for single states depend on the processor and the number of lanes
only, and take longer to compile than most kernels. A kernel calls them by a name that says what and for which processor,

    alembert_shared_TARGET_GROUP_FUNCTION

and `alembert.engine.loader` compiles the group when such a name is first looked for.

What a source of kernels emits.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import llvmlite
import llvmlite.binding as llvm

from alembert.errors import ArgumentError

_LESSER = {
    "sse2": ("x86-64", False, 2, ("sse2",)),
    "avx2": ("x86-64-v3", True, 4, ("avx2", "fma")),
    "avx512": ("x86-64-v4", True, 8, ("avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512cd")),
}
"""LLVM's name, whether multiply-adds are fused, lanes, and what the processor must have"""


@dataclass(frozen=True)
class Target:
    """A processor: its LLVM name and features, and what follows from them for code generation."""

    triple: str
    cpu: str
    features: str
    fused: bool  # has fused multiply-adds
    lanes: int  # doubles in a vector register
    interprets: bool = (
        False  # straight code runs from lists (`alembert.engine.interpreter`) and is not compiled
    )

    @property
    def attributes(self) -> str:
        """Function attributes, as group #0 of every module.

        LLVM prefers 256-bit vectors on most AVX-512 processors, because of clock limits; our code is almost
        all vector arithmetic and gains from the full width. With a frame pointer it can align the stack for values that
        do not fit into the registers: a store across two cache lines costs several (measured: a fifth of forward dynamics
        in batches).
        """
        return (
            f'attributes #0 = {{ nounwind "target-cpu"="{self.cpu}" "target-features"="{self.features}" '
            f'"prefer-vector-width"="{64 * self.lanes}" "no-trapping-math"="true" "frame-pointer"="all" }}\n'
        )

    @property
    def tag(self) -> str:
        """A short name, for those of functions; they are the same whether code is compiled or interpreted."""
        return _tag(self.compiling())

    def compiling(self) -> Target:
        return dataclasses.replace(self, interprets=False) if self.interprets else self

    def interpreting(self) -> Target:
        return dataclasses.replace(self, interprets=True)

    def compact(self) -> Target:
        """For long scalar code: without AVX-512, whose instructions are longer. Same bits, 10 % faster."""
        if self.lanes < 8:
            return self
        return dataclasses.replace(self, features=self.features + ",-avx512f", lanes=4)

    def machine(self, *, level: int = 2) -> llvm.TargetMachine:
        """LLVM's code generator for it."""
        return _machine(self.triple, self.cpu, self.features, level)


@functools.cache
def _machine(triple: str, cpu: str, features: str, level: int) -> llvm.TargetMachine:
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small", jit=True
    )


@functools.cache
def _tag(target: Target) -> str:
    return hashlib.blake2b(repr(target).encode(), digest_size=4).hexdigest()


def host() -> Target:
    """The processor of this machine, or what the environment says."""
    return _host(os.environ.get("ALEMBERT_TARGET", ""), os.environ.get("ALEMBERT_LANES", ""))


@functools.cache
def _host(name: str, lanes: str) -> Target:
    triple, features = llvm.get_process_triple(), llvm.get_host_cpu_features()
    if name:
        target = _lesser(name, triple, features)
    else:
        target = Target(
            triple=triple,
            cpu=llvm.get_host_cpu_name(),
            features=features.flatten(),
            fused=bool(features.get("fma")) or triple.startswith(("arm64", "aarch64")),
            lanes=8 if features.get("avx512f") else 4 if features.get("avx2") else 2,
        )
    if not lanes:
        return target
    if lanes not in ("1", "2", "4", "8"):
        raise ArgumentError(f"ALEMBERT_LANES is {lanes!r}, expected 1, 2, 4 or 8")
    return dataclasses.replace(target, lanes=int(lanes))


def _lesser(name: str, triple: str, features: llvm.FeatureMap) -> Target:
    if name not in _LESSER:
        raise ArgumentError(f"ALEMBERT_TARGET is {name!r}, expected one of {', '.join(_LESSER)}")
    cpu, fused, lanes, needed = _LESSER[name]
    missing = [feature for feature in needed if not features.get(feature)]
    if missing or not triple.startswith("x86_64"):
        raise ArgumentError(f"ALEMBERT_TARGET is {name}, which the processor of this machine does not have")
    return Target(triple=triple, cpu=cpu, features="", fused=fused, lanes=lanes)


def versions() -> tuple[str, str]:
    """Of llvmlite and of LLVM."""
    return llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info))


MATHEMATICS = "alembert_c_"
_NAME = re.compile(r"alembert_shared_([0-9a-f]{8})_([a-z]+)([0-9]*)(?:of([0-9]+))?_([a-z]+)")
_SIGNATURES = {
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


def sincos_symbol(target: Target) -> str:
    """The name of `alembert.engine.vectormath.sincos_array`."""
    return _symbol(target, "sincos", "sincos")


def batch_symbol(lanes: int, target: Target) -> str:
    """The name of `alembert.engine.driver.batch_function`."""
    return _symbol(target, f"packing{lanes}", "batch")


def interpreter_symbol(lanes: int, target: Target) -> str:
    """The name of the function of `alembert.engine.interpreter.module`."""
    return _symbol(target, f"interpreter{lanes}", "run")


def entry_symbol(function: str, target: Target) -> str:
    """The name of a function of `alembert.engine.fastcall.entry_points`."""
    return _symbol(target, "entries", function)


def leave_symbol(count: int, lanes: int, target: Target, *, whole: bool) -> str:
    """The name of `alembert.engine.outlet.leaving` for `count` elements."""
    kind = "whole" if whole else "part"
    return _symbol(target, f"{kind}{count % lanes}of{lanes}", "leave")


def _symbol(target: Target, group: str, function: str) -> str:
    TARGETS[target.tag] = target.compiling()
    return f"alembert_shared_{target.tag}_{group}_{function}"


def shared_functions(group: str) -> list[str]:
    """What a group holds."""
    if group == "entries":
        return ["call", "into", "again"]
    if group != "packing":
        return [{"sincos": "sincos", "interpreter": "run"}.get(group, "leave")]
    return ["batch"]


def declarations(text: str) -> str:
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


def called_functions(code: bytes) -> set[str]:
    """The shared functions whose names an object holds."""
    return {match.group() for match in _NAME.finditer(code.decode("latin-1"))}


def parsed_symbol(symbol: str) -> Shared | None:
    """None where it is not the name of a shared function."""
    match = _NAME.fullmatch(symbol)
    if match is None:
        return None
    target, group, number, lanes, function = match.groups()
    return Shared(target, group, int(number or 0), int(lanes or 0), function)


@dataclass(frozen=True)
class Code:
    """IR functions; the module still needs `prelude`."""

    text: str
    workspace: int  # vectors (of W doubles) in the workspace
    work: int  # operations for each call
    helpers: frozenset[tuple[str, int]]  # for `prelude`
    target: Target
    direct: int = 0  # the last results, which leave by an `alembert.engine.outlet`
    quick: bool = False  # to be compiled without optimisation
    constants: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """tables of numbers that the functions read, which get these when the machine code is loaded"""
    lists: Mapping[str, array[int]] = field(default_factory=dict)
    """of instructions that are interpreted; the functions have their addresses when the machine code is loaded"""
    listed: int = 0  # operations in these lists
    pure: bool = False  # the functions only run the one list that there is

"""The machine that code is made for.

It is the processor that runs Alembert, unless the environment asks for less of it, so that tests see the arithmetic of other
machines: ALEMBERT_TARGET is `sse2`, `avx2` or `avx512`, and ALEMBERT_LANES the number of doubles in a vector (1, 2, 4, 8).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from dataclasses import dataclass

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
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small", jit=True
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

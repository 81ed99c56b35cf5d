"""The machine that code is made for."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alembert.deferred import deferred
from alembert.engine.symbols import PREFIX, address

if TYPE_CHECKING:
    import llvmlite.binding as llvm

    from alembert.engine import vectormath
else:
    vectormath = deferred("alembert.engine.vectormath")
    llvm = deferred("llvmlite.binding")


@dataclass(frozen=True)
class Target:
    """The host's processor: its LLVM name and features, and what follows from them for code generation."""

    triple: str
    cpu: str
    features: str
    fused: bool  # has fused multiply-adds
    lanes: int  # doubles in a vector register

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

    def compact(self) -> Target:
        """For long scalar code: without AVX-512, whose instructions are longer. Same bits, 10 % faster."""
        if self.lanes < 8:
            return self
        return dataclasses.replace(self, features=self.features + ",-avx512f", lanes=4)


def ask() -> Target:
    """The host, as LLVM sees it; `alembert.engine.host` remembers it."""
    initialize()
    features = llvm.get_host_cpu_features()
    return Target(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        fused=bool(features.get("fma")) or llvm.get_process_triple().startswith(("arm64", "aarch64")),
        lanes=8 if features.get("avx512f") else 4 if features.get("avx2") else 2,
    )


def llvm_version() -> str:
    import llvmlite

    return " ".join([llvmlite.__version__, *map(str, llvm.llvm_version_info)])


@functools.cache
def initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in vectormath.library_functions():
        llvm.add_symbol(PREFIX + name, address(PREFIX + name))


def machine(target: Target, *, level: int = 2) -> llvm.TargetMachine:
    initialize()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="small", jit=True
    )

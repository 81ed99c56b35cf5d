"""Kernels as arm64 code, run by QEMU: `python tests/arm64.py` (needs ziglang, and qemu-aarch64 or qemu-aarch64-static).

Machine code of some models is made by LLVM for an arm64 processor, linked to a small program that holds states and what this
machine computes for them, and run. Explicit fused multiplications give the same bits on both, whatever the number of lanes.
Zig builds a C library for arm64 when it first links, which takes minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import alembert as al
from alembert.algorithms import kernels
from alembert.algorithms.table import TABLE
from alembert.deploy import compiler
from alembert.engine import codegen, vectormath
from alembert.engine.kernel import Kernel
from alembert.engine.target import Code, Target, declarations, sincos_symbol

TARGET = Target("aarch64-linux-gnu", "cortex-a72", "", True, 2)
MODELS = ("two_link", "arm7", "satellite", "humanoid")
ALGORITHMS = {"forward_dynamics": "qvt", "inverse_dynamics": "qvt", "mass_matrix": "q"}
MAIN = """
#include <math.h>
#include <stdio.h>
#include <string.h>
{declared}
void alembert_sincos(double *, double *, double *, long);
void {sincos}(double *x, double *s, double *c, long n) {{ alembert_sincos(x, s, c, n); }}
double alembert_c_sin(double x) {{ return sin(x); }}
double alembert_c_cos(double x) {{ return cos(x); }}
static _Alignas(64) double w[{workspace}];
void kernel({types}double *);

int main(void)
{{
  double worst = 0.0, size = 1e-300;
{copies}
  kernel({names}w);
  for (int i = 0; i < {count}; ++i) {{
    size = fmax(size, fabs(expected[i]));
    for (int l = 0; l < {lanes}; ++l) {{
      const double d = fabs(out[i * {lanes} + l] - expected[i]);
      if (!(d <= worst)) {{ worst = isnan(d) ? INFINITY : d; }}
    }}
  }}
  printf("%g\\n", worst / size);
  return 0;
}}
"""


def object_code(text: str) -> bytes:
    """Of a module of LLVM's IR, for arm64."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text + declarations(text), llvm.create_context())
    module.triple = TARGET.triple
    machine = llvm.Target.from_triple(TARGET.triple).create_target_machine(
        cpu=TARGET.cpu, features=TARGET.features, opt=2, reloc="pic", codemodel="small"
    )
    return bytes(machine.emit_object(module))


def kernel_of(model: al.Model, algorithm: str) -> Kernel:
    program, names = TABLE[algorithm].sweeps
    return kernels.program_kernel(model, model.compute.tree, program, list(names))


def compiled(kernel: Kernel, lanes: int) -> tuple[Code, bytes]:
    code = kernel.source().emit("kernel", lanes, TARGET)
    text = code.text.replace("define internal void @kernel(", "define void @kernel(")
    return code, object_code(codegen.prelude(code) + text)


def difference(
    kernel: Kernel, lanes: int, inputs: Sequence[np.ndarray], expected: np.ndarray, run: list[str]
) -> str:
    """The largest, relative to the largest expected number."""
    code, binary = compiled(kernel, lanes)
    sines = TARGET.attributes + vectormath.sincos_module(TARGET.lanes, fused=TARGET.fused)
    declared = []

    def array(name: str, values: Any, kind: str = "_Alignas(64) ") -> None:
        entries = ", ".join(float(x).hex() for x in np.ravel(values))
        declared.append(f"static {kind}double {name}[] = {{{entries}}};")

    for name, values in code.constants.items():
        declared.append(f"extern double {name}[];")
        array(f"own_{name}", values, "const ")
    for k, x in enumerate(inputs):  # element by element, lanes side by side
        array(f"in{k}", np.repeat(np.ravel(x)[:, None], lanes, 1))
    array("out", np.zeros(expected.size * lanes))
    array("expected", expected, "const ")
    names = [*(f"in{k}" for k in range(len(inputs))), "out"]
    main = MAIN.format(
        declared="\n".join(declared),
        sincos=sincos_symbol(TARGET),
        workspace=(code.workspace + 64) * lanes,
        types="double *, " * len(names),
        names="".join(f"{name}, " for name in names),
        copies="\n".join(f"  memcpy({x}, own_{x}, sizeof(own_{x}));" for x in code.constants),
        count=expected.size,
        lanes=lanes,
    )
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "main.c").write_text(main)
        (here / "kernel.o").write_bytes(binary)
        (here / "sines.o").write_bytes(object_code(sines.replace("define internal", "define")))
        files = [here / name for name in ("main.c", "kernel.o", "sines.o")]
        compiler.program("arm64", files, here / "program", "aarch64")
        return subprocess.run(
            [*run, str(here / "program")], capture_output=True, text=True, check=True
        ).stdout.strip()


def main() -> int:
    run, rng, worst = compiler.emulator("arm64", "aarch64"), np.random.default_rng(0), 0.0
    for name in MODELS:
        model = getattr(al.library, name)()
        state = {
            "q": model.random_configuration(rng),
            "v": rng.normal(size=model.nv),
            "t": rng.normal(size=model.nv),
        }
        for algorithm, letters in ALGORITHMS.items():
            given = [state[x] for x in letters]
            expected = np.asarray(getattr(model, algorithm)(*given))
            for lanes in (1, 2):
                found = difference(kernel_of(model, algorithm), lanes, given, expected, run)
                print(f"{name} {algorithm}, {lanes} lanes: {found}", flush=True)
                worst = max(worst, float(found))
    print(f"largest relative difference {worst:g}")
    return int(not worst < 1e-10)


if __name__ == "__main__":
    sys.exit(main())

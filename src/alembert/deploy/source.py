"""A model as C files for a controller board: derivatives, outputs, an integrator step, and a test with reference vectors."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.deploy import compiler
from alembert.deploy.c_program import CProgram, c_program
from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.simulate.schemes import SCHEMES, Now, StatePoint
from alembert.simulate.stepping import SchemeManifold

STATES = 5
"""that the test program compares"""
TOLERANCE = 1e-9
"""relative to the largest expected number: the rounding of another compiler, times what conditioning makes of it"""


@dataclass(frozen=True, eq=False)
class CSource:
    """What `c_source` wrote: the files, and what their functions cost."""

    files: tuple[Path, ...]
    """header, source, test program"""
    operations: Mapping[str, int]
    """arithmetic operations of each function, each sine or root counted as one"""
    arguments: Mapping[str, int]
    """numbers in q, v, u, p and y"""
    memory: int
    """bytes of automatic variables in arrays of the step; nothing else is kept, nothing allocated"""

    def __repr__(self) -> str:
        counted = ", ".join(f"{name} {self.operations[name]}" for name in ("derivatives", "step"))
        return f"<CSource {self.files[1].name}: operations of {counted}; {self.memory} bytes of arrays>"

    def check(self) -> str:
        """Compile the test program for this machine and run it: its last line, or an error with what differs."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / ("check.exe" if os.name == "nt" else "check")
            compiler.program("c_source", self.files[1:], target)
            found = subprocess.run([str(target)], capture_output=True, text=True, check=False)
        if found.returncode:
            raise compiler.CompilerError(f"c_source: the compiled code differs: {found.stdout.strip()}")
        return found.stdout.strip().splitlines()[-1]

    def object_size(self, board: str) -> int:
        """Compile the source for a board ("cortex-m4", "cortex-m7", "aarch64") or a platform; bytes of the object file."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "model.o"
            compiler.object_file("c_source", self.files[1], target, board)
            return target.stat().st_size


def c_source(
    model: Model,
    directory: str | os.PathLike[str],
    *,
    name: str = "model",
    integrator: str = "rk4",
    controller: ca.Function | None = None,
    inputs: Sequence[str] | None = None,
    forces: Any = (),
    frames: Sequence[str] = (),
    step: float = 1e-3,
) -> CSource:
    """Write a model with its integrator as C99: NAME.h, NAME.c and NAME_test.c.

    The functions are NAME_derivatives, NAME_outputs (of `frames`), NAME_tangent and NAME_step. `controller`, `inputs`,
    `forces` and `frames` are as in `al.deploy.fmu`. The test program holds what Python computes for some states and
    inputs, with steps of `step` seconds.
    """
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < float("inf"):
        raise ArgumentError(f"c_source: step is {step!r}, expected a positive time in seconds")
    program = c_program(
        "c_source",
        model,
        name,
        integrator=integrator,
        controller=controller,
        inputs=inputs,
        forces=forces,
        frames=frames,
    )
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        f"{name}.h": _header(program),
        f"{name}.c": f'/* Written by Alembert. */\n#include "{name}.h"\n\n{program.text}',
        f"{name}_test.c": _test(program, float(step)),
    }
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    return CSource(
        tuple(folder / file for file in texts),
        dict(program.operations),
        program.sizes,
        8 * sum(program.buffers.values()),
    )


def _header(program: CProgram) -> str:
    name, lines = program.prefix, []
    described = {"q": program.states, "v": program.speeds, "u": program.inputs, "p": program.parameters}
    for letter, signals in {**described, "y": program.outputs}.items():
        entries = ", ".join(f"{s.name}{f' [{s.unit}]' if s.unit else ''}" for s in signals) or "none"
        lines.append(f" *   {letter}[{len(signals)}]: {entries}".replace("*/", "* /"))
    prototypes = "\n".join(f"{line.split('{')[0].strip()};" for line in program.prototypes)
    guard = f"{name.upper()}_H"
    listed = "\n".join(lines)
    return f"""\
#ifndef {guard}
#define {guard}

/* Written by Alembert. t and h are single numbers; results must not overlap arguments.
{listed}
 */
#ifdef __cplusplus
extern "C" {{
#endif

{prototypes}

#ifdef __cplusplus
}}
#endif

#endif
"""


def _test(program: CProgram, h: float) -> str:
    """States, inputs, and what derivatives and ten steps make of them."""
    model, name, rng = program.model, program.prefix, np.random.default_rng(0)
    derivatives = program.functions["derivatives"]
    rows: dict[str, list[np.ndarray]] = {key: [] for key in ("q", "v", "u", "a", "q_end", "v_end")}
    p = np.array([s.start for s in program.parameters])
    manifold = SchemeManifold(model)
    for _ in range(STATES):
        q, v = model.random_configuration(rng), rng.uniform(-1, 1, model.nv)
        u = rng.uniform(-1, 1, len(program.inputs))

        def at(t: Any, q: Any, v: Any, u: Any = u) -> StatePoint:
            a = np.asarray(derivatives(t, q, v, u, p)[1]).ravel()
            return StatePoint(t, q, v, a)

        values = {"q": q, "v": v, "u": u, "a": at(0.0, q, v).a}
        for k in range(10):
            q, v, _ = SCHEMES[program.integrator].step(Now(k * h, q, v, ()), h, at, manifold)
        for key, x in {**values, "q_end": q, "v_end": v}.items():
            rows[key].append(np.asarray(x, dtype=float).ravel())

    def array(key: str, values: Sequence[np.ndarray]) -> str:
        body = ",\n  ".join("{" + (", ".join(repr(float(x)) for x in row) or "0.0") + "}" for row in values)
        return f"static const double {key}[{len(values)}][{max(1, len(values[0]))}] = {{\n  {body}\n}};"

    arrays = "\n".join(array(key, values) for key, values in rows.items())
    parameters = ", ".join(repr(float(x)) for x in p) or "0.0"
    nq, nv = model.nq, model.nv
    return f"""\
/* Written by Alembert: compares {name} with values computed when it was exported. */
#include "{name}.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

{arrays}
static const double p[] = {{{parameters}}};

static double off(const double *x, const double *expected, int n)
{{
  double worst = 0.0, scale = 1.0;
  int i;
  for (i = 0; i < n; ++i) {{
    const double d = fabs(x[i] - expected[i]);
    worst = d <= worst ? worst : d;
    if (fabs(expected[i]) > scale) {{ scale = fabs(expected[i]); }}
  }}
  return worst / scale;
}}

int main(void)
{{
  double worst = 0.0;
  int k, i;
  for (k = 0; k < {STATES}; ++k) {{
    double rate[{nq}], found[{nv}], x[{nq}], w[{nv}];
    const double start = 0.0, h = {h!r};
    {name}_derivatives(&start, q[k], v[k], u[k], p, rate, found);
    worst = fmax(worst, off(found, a[k], {nv}));
    memcpy(x, q[k], sizeof(x));
    memcpy(w, v[k], sizeof(w));
    for (i = 0; i < 10; ++i) {{
      const double t = i * h;
      {name}_step(&t, &h, u[k], p, x, w);
    }}
    worst = fmax(worst, fmax(off(x, q_end[k], {nq}), off(w, v_end[k], {nv})));
  }}
  printf("{name}: largest relative error %g\\n", worst);
  return worst <= {TOLERANCE!r} ? 0 : 1;
}}
"""

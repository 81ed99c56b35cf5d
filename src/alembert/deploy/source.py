"""A model as C files for a controller board: derivatives, outputs, an integrator step, and a test with reference vectors.

A controller alone as C, for the board that runs it: of what is measured, not of the model.
"""

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

from alembert.arguments import real
from alembert.deploy import compiler
from alembert.deploy.c_program import CProgram, c_program
from alembert.deploy.exported_system import Given
from alembert.engine.c_export import (
    SINGLE_TOLERANCE,
    c_function,
    c_number,
    checked_precision,
    export_c,
    representable,
    single_text,
)
from alembert.errors import ArgumentError, UnsupportedError, made_folder, writing
from alembert.model import Model
from alembert.simulate.actuators import JointDrives, checked
from alembert.simulate.bound_controllers import BoundController
from alembert.simulate.controllers import Sampled, as_controller


def c_controller(
    model: Model,
    controller: Any,
    directory: str | os.PathLike[str],
    *,
    name: str = "controller",
    drives: Mapping[str, Any] | None = None,
    precision: str = "double",
) -> CSource:
    """Write a sampled controller as C99 for the board that runs it: NAME.h, NAME.c and NAME_test.c.

        void NAME(const double *t, const double *y, const double *r, const double *x, double *u, double *x_next)

    `controller` is a sampled `StateSpace`, `GainSchedule` or `DynamicController` as `al.simulate` takes it for `model`; y is
    what it measures and u what it gives, in their order and units (see the header), r its set points that are numbers, x its
    states. At every sample call it, give u to the drives, and copy x_next to x. Limits, anti-windup and the point about
    which it was designed are inside; limits of `drives` count where it has none of its own. Arguments of no size are left
    out. `precision="float"` writes it in single precision, for boards without arithmetic of doubles; the test program tells
    how far one sample is from that in double precision.
    """
    law = controller.law if isinstance(controller, Sampled) else controller
    given = as_controller(law)
    if given is None:
        raise UnsupportedError(
            f"c_controller: the controller is {law!r}, expected a StateSpace, a GainSchedule or a DynamicController; "
            "c_source exports other laws together with the model"
        )
    if not given.is_sampled:
        raise ArgumentError(
            f"c_controller: {given.name!r} is continuous; al.control.c2d(K, dt) makes a sampled one of it"
        )
    try:
        bound = BoundController(given, model, JointDrives.of(model, checked(drives)) if drives else None, ())
    except ArgumentError as error:
        raise ArgumentError(str(error).replace("simulate:", "c_controller:", 1)) from None
    alone = bound.alone()
    f = alone.function
    kept = [k for k in range(f.n_in()) if f.numel_in(k)]
    symbols = [ca.SX.sym(f.name_in(k), f.numel_in(k)) for k in range(f.n_in())]
    made = [k for k in range(f.n_out()) if f.numel_out(k)]
    found = f.call(symbols)
    whole = ca.Function(
        "controller",
        [symbols[k] for k in kept],
        [found[k] for k in made],
        [f.name_in(k) for k in kept],
        [f.name_out(k) for k in made],
    )
    units = {key: f" [{unit}]" if unit else "" for key, unit in alone.measured.items()}
    descriptions = {
        "t": "time [s]",
        "y": ", ".join(f"{key}{units[key]}" for key in alone.measured),
        "r": ", ".join(f"{key}{units.get(key, '')}, at first {x!r}" for key, x in alone.set_points.items()),
        "x": f"states {', '.join(given.states)}; at first {given.initial().tolist()}",
        "u": ", ".join(given.outputs),
        "x_next": f"states at the next sample, {given.dt!r} s later",
    }
    rng = np.random.default_rng(0)
    sample = {"t": np.zeros(1), "y": rng.uniform(-1, 1, len(alone.measured)), "x": given.initial()}
    sample["r"] = np.array(list(alone.set_points.values()))
    names = [f.name_in(k) for k in kept]
    files = export_c(
        whole,
        name,
        Path(directory),
        sample=[sample[key] for key in names],
        descriptions={key: text for key, text in descriptions.items() if text},
        precision=precision,
    )
    operations = {"controller": c_function(whole, name)[1]}
    sizes = {key: whole.numel_in(k) for k, key in enumerate(names)}
    sizes |= {whole.name_out(k): whole.numel_out(k) for k in range(whole.n_out())}
    return CSource(tuple(files), operations, sizes, 0)


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
    """numbers in q, v, x, d, u, p and y"""
    memory: int
    """bytes of automatic variables in arrays of the step; nothing else is kept, nothing allocated"""

    def __repr__(self) -> str:
        shown = [name for name in ("derivatives", "step", "controller") if name in self.operations]
        counted = ", ".join(f"{name} {self.operations[name]}" for name in shown)
        return f"<CSource {self.files[1].name}: operations of {counted}; {self.memory} bytes of arrays>"

    def check(self, board: str = "") -> str:
        """Compile the test program for this machine and run it: its last line, or an error with what differs.

        With "aarch64" it is made for such a processor by Zig, and run by QEMU (`qemu-aarch64`, or `qemu-aarch64-static`).
        """
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / ("check.exe" if os.name == "nt" else "check")
            before = compiler.emulator("c_source", board) if board else []
            compiler.program("c_source", self.files[1:], target, board)
            found = subprocess.run([*before, str(target)], capture_output=True, text=True, check=False)
        if found.returncode:
            raise compiler.CompilerError(f"c_source: the compiled code differs: {found.stdout.strip()}")
        return found.stdout.strip().splitlines()[-1]

    def object_size(self, board: str) -> int:
        """Bytes of code and constants when compiled for a board ("cortex-m4", "cortex-m7", "aarch64") or a platform."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "model.o"
            compiler.object_file("c_source", self.files[1], target, board)
            return compiler.loaded_size(target)


def c_source(
    model: Model,
    directory: str | os.PathLike[str],
    *,
    name: str = "model",
    integrator: str = "rk4",
    controller: Any = None,
    inputs: Sequence[str] | None = None,
    drives: Mapping[str, Any] | None = None,
    sensors: Any = (),
    forces: Any = (),
    frames: Sequence[str] = (),
    q0: Any = None,
    v0: Any = None,
    step: float = 1e-3,
    precision: str = "double",
) -> CSource:
    """Write a model with its integrator as C99: NAME.h, NAME.c and NAME_test.c.

    The functions are NAME_derivatives, NAME_outputs (of `frames`), NAME_tangent and NAME_step; where sensors or sampled laws
    are, NAME_instant, to be called at every tick of their clock (NAME_TICK); where loops are, NAME_settle. All arguments are
    as in `al.deploy.fmu`. The test program holds what Python computes for some states and inputs, with steps of `step`
    seconds.

    `precision="float"` writes all of it in single precision, for boards without arithmetic of doubles; the test program
    tells how far its motions are from those in double precision. Loops need double precision, and so do clocks of sensors
    and sampled laws (`c_controller` writes these alone).
    """
    real("c_source", "step", step, "a positive time in seconds", over=0.0)
    single = checked_precision("c_source", precision) == "float"
    if single and isinstance(model, Model) and model.is_constrained:
        raise UnsupportedError(
            f"c_source: the model {model.name!r} has loops, couplings or equations, which are closed to less than single "
            "precision tells apart; use precision='double'"
        )
    given = Given(controller, inputs, drives, sensors, forces)
    program = c_program("c_source", model, name, given, integrator=integrator, frames=frames, q0=q0, v0=v0)
    if single and program.tick:
        raise UnsupportedError(
            "c_source: sensors or sampled laws have a clock that counts further than single precision does; use "
            "precision='double'"
        )
    folder = made_folder(directory)
    texts = {
        f"{name}.h": _header(program),
        f"{name}.c": f'/* Written by Alembert. */\n#include "{name}.h"\n\n{program.text}\n{start_text(program)}',
        f"{name}_test.c": _test(program, float(step), "float" if single else "double"),
    }
    if single:
        for file in (f"{name}.h", f"{name}.c"):
            texts[file] = single_text("c_source", texts[file])
    with writing(folder):
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
    return CSource(
        tuple(folder / file for file in texts),
        dict(program.operations),
        program.sizes,
        (4 if single else 8) * program.parts.arrays("step"),
    )


def _header(program: CProgram) -> str:
    name, lines = program.prefix, []
    described = {
        "q": program.states,
        "v": program.speeds,
        "x": program.more_states,
        "u": program.inputs,
        "p": program.parameters,
        "y": program.outputs,
    }
    for letter, signals in described.items():
        entries = ", ".join(f"{s.name}{f' [{s.unit}]' if s.unit else ''}" for s in signals) or "none"
        if signals or letter != "x":
            lines.append(f" *   {letter}[{len(signals)}]: {entries}".replace("*/", "* /"))
    if program.memory:
        lines.append(f" *   d[{len(program.memory)}]: what is remembered; {name}_start has its first values")
    prototypes = "\n".join(f"{line.split('{')[0].strip()};" for line in program.prototypes)
    constants = ""
    if program.tick:
        constants = f"/* seconds between two calls of {name}_instant; the first is at the start */\n"
        constants += f"#define {name.upper()}_TICK {program.tick!r}\n\n"
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

{constants}/* The values with which a run begins. */
void {name}_start(double *q, double *v{_more(program, "double *")});
{prototypes}

#ifdef __cplusplus
}}
#endif

#endif
"""


def _more(program: CProgram, kind: str) -> str:
    return "".join(f", {kind}{x}" for x in "xd" if program.sizes[x])


def start_text(program: CProgram) -> str:
    """The function with the start values."""
    starts = {letter: program.starts[letter] for letter in "qvxd" if program.starts[letter]}
    arrays = "\n".join(
        f"  static const double {letter}0[] = {{{', '.join(map(c_number, values))}}};"
        for letter, values in starts.items()
    )
    copies = "\n".join(f"  memcpy({letter}, {letter}0, sizeof({letter}0));" for letter in starts)
    return (
        f"void {program.prefix}_start(double *q, double *v{_more(program, 'double *')})\n"
        f"{{\n{arrays}\n{copies}\n}}\n"
    )


def _test(program: CProgram, h: float, real: str) -> str:
    """States, inputs, and what derivatives and ten steps make of them."""
    model, name, rng = program.model, program.prefix, np.random.default_rng(0)
    single = real == "float"
    taken = representable if single else np.array
    h = float(taken(np.array(h)))
    changing = [x for x in "qvxd" if program.sizes[x]]
    starts = {key: taken(np.array(values)) for key, values in program.starts.items()}
    rows: dict[str, list[np.ndarray]] = {
        x: [] for x in (*changing, "u", "a", *(f"{x}_end" for x in changing))
    }
    for _ in range(STATES):
        values = {key: x.copy() for key, x in starts.items()} | {"t": np.zeros(1), "h": np.array([h])}
        values["v"] = rng.uniform(-1, 1, model.nv)
        values["u"] = values["u"] + rng.uniform(-1, 1, len(program.inputs))
        if program.rows:
            program.parts.run("settle", values)
        else:
            values["q"] = model.random_configuration(rng)
        for key in ("q", "v", "u"):
            values[key] = taken(values[key])
        values |= {"rate": np.zeros(model.nq), "a": np.zeros(model.nv), "x_rate": values["x"].copy()}
        _derivatives(program, values)
        for key in (*changing, "u", "a"):
            rows[key].append(values[key].copy())
        for k in range(10):
            values["t"][0] = k * h
            if program.tick and k % 5 == 0:
                program.parts.run("instant", values)
            program.parts.run("step", values)
        for key in changing:
            rows[f"{key}_end"].append(values[key].copy())

    def array(key: str, values: Sequence[np.ndarray]) -> str:
        body = ",\n  ".join("{" + (", ".join(map(c_number, row)) or "0.0") + "}" for row in values)
        text = f"static const double {key}[{len(values)}][{max(1, len(values[0]))}] = {{\n  {body}\n}};"
        return single_text("c_source", text) if single and key in (*changing, "u") else text

    arrays = "\n".join(array(key, values) for key, values in rows.items())
    parameters = f"static const double p[] = {{{', '.join(map(c_number, starts['p'])) or '0.0'}}};"
    number, tolerance = c_number(h), TOLERANCE
    if single:
        parameters, number = (single_text("c_source", text) for text in (parameters, number))
        tolerance = SINGLE_TOLERANCE
    states = [x for x in changing if x in "qvx"]
    declared = ", ".join(f"{x}_now[{program.sizes[x]}]" for x in changing)
    copied = "\n".join(f"    memcpy({x}_now, {x}[k], sizeof({x}_now));" for x in changing)
    found = "".join(f", {x}[k]" for x in changing)
    rates = "rate, found" + (", x_rate" if program.sizes["x"] else "")
    moving = ", ".join(f"{x}_now" for x in changing)
    instant = ""
    if program.tick:
        instant = f"\n      if (i % 5 == 0) {{ {name}_instant(&t, q_now, v_now, u[k], p, d_now); }}"
    worst = "\n".join(
        f"    worst = fmax(worst, off({x}_now, {x}_end[k], {program.sizes[x]}));" for x in states
    )
    return f"""\
/* Written by Alembert: compares {name} with values computed when it was exported. */
#include "{name}.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

{arrays}
{parameters}

static double off(const {real} *x, const double *expected, int n)
{{
  double worst = 0.0, scale = 1.0;
  int i;
  for (i = 0; i < n; ++i) {{
    const double d = fabs((double)x[i] - expected[i]);
    if (!(d <= worst)) {{ worst = isnan(d) ? (double)INFINITY : d; }}
    if (fabs(expected[i]) > scale) {{ scale = fabs(expected[i]); }}
  }}
  return worst / scale;
}}

int main(void)
{{
  double worst = 0.0;
  int k, i;
  for (k = 0; k < {STATES}; ++k) {{
    {real} rate[{model.nq}], found[{model.nv}], {declared};
    const {real} start = 0, h = {number};
    {f"{real} x_rate[{program.sizes['x']}];" if program.sizes["x"] else ""}
    {name}_derivatives(&start{found}, u[k], p, {rates});
    worst = fmax(worst, off(found, a[k], {model.nv}));
{copied}
    for (i = 0; i < 10; ++i) {{
      const {real} t = ({real})i * h;{instant}
      {name}_step(&t, &h, u[k], p, {moving});
    }}
{worst}
  }}
  printf("{name}: largest relative error %g\\n", worst);
  return worst <= {tolerance!r} ? 0 : 1;
}}
"""


def _derivatives(program: CProgram, values: Mapping[str, np.ndarray]) -> None:
    """Into a (and q', x')."""
    if "derivatives" in program.parts.routines:
        return program.parts.run("derivatives", values)
    f = program.parts.functions["derivatives"]
    found = f.call([values[f.name_in(k)] for k in range(f.n_in())])
    for k, x in enumerate(found):
        values[f.name_out(k)][:] = np.asarray(x).ravel()
    return None

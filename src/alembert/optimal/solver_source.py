"""The solver of a prepared problem as C99: no allocation, no globals that change, nothing but the mathematics library."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from alembert.engine.c_export import c_function, c_number
from alembert.errors import ArgumentError, made_folder, writing
from alembert.optimal.solver_routine import FOUND, SolverRoutine, parts_of
from alembert.optimal.stages import Ends, Stages

Array = np.ndarray
SAMPLES = 4
"""solves of the test program, one after the other as a controller would do them"""
MOVED = 1e-3
"""share by which starts of the test program differ from sample to sample"""
TOLERANCE = 1e-6
"""of the test program, relative to the largest state or control: other compilers round otherwise, and iterates that end at
an error of the tolerance, by default 1e-6, may differ by as much"""


@dataclass(frozen=True, eq=False)
class SolverSource:
    """What `export_c` wrote."""

    files: tuple[Path, ...]
    """header, source, test program"""
    operations: int
    """arithmetic operations of an iteration with one sweep and one trial"""
    memory: int
    """bytes of memory and room, which the caller gives"""
    p: Mapping[str, tuple[int, int]]
    """where in p parameters, inputs, start and end are: first entry, and how many"""

    def __repr__(self) -> str:
        return f"<SolverSource {self.files[1].name}: {self.operations} operations an iteration, {self.memory} bytes>"


def write_solver(
    directory: str | os.PathLike[str],
    name: str,
    routine: SolverRoutine,
    given: Mapping[str, Array],
    duration: float,
    sample: Callable[[Array, Array], tuple[Array, Array]],
) -> SolverSource:
    """See `PreparedProblem.export_c`; `given` are p, limits, tables and memory to begin with, `sample` what Python finds."""
    if not (isinstance(name, str) and name.isidentifier() and name.isascii()):
        raise ArgumentError(f"export_c: {name!r} is not a name in C")
    folder = made_folder(directory)
    body, counts = [], {}
    for label, function in routine.parts.functions.items():
        text, counts[label] = c_function(function, f"{name}_in_{label}", static=True)
        body.append(text)
    solve = routine.parts.c_text("solve", f"{name}_in", static=True, room="room")
    places = _places(routine.stages)
    texts = {
        f"{name}.h": _header(name, routine, places),
        f"{name}.c": _source(name, routine, given, [*body, *solve]),
        f"{name}_test.c": _test(name, routine, given, duration, sample, places["start"]),
    }
    with writing(folder):
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
    return SolverSource(
        tuple(folder / file for file in texts),
        _operations(routine, counts),
        8 * (routine.sizes["memory"] + routine.parts.arrays("solve")),
        places,
    )


def _operations(routine: SolverRoutine, counts: Mapping[str, int]) -> int:
    each = ("condensed", "trial", "inward", "outward", "steps", "measure", "push", "settle", "barrier")
    count = routine.stages.count
    return sum(counts[label] * (count if label in each else 1) for label in counts)


def _places(stages: Stages) -> dict[str, tuple[int, int]]:
    problem = stages.problem
    ends = Ends(problem)
    inputs = sum(value.size for value in problem.input_values.values())
    sizes = {"parameters": len(problem.parameters) - inputs, "inputs": inputs}
    for which, rows in ends.rows.items():
        sizes[which] = sum(1 if row.about is None else len(row.point) for row in rows)
    found, start = {}, 0
    for label, size in sizes.items():
        found[label] = start, size
        start += size
    return found


def _p_names(stages: Stages) -> list[str]:
    problem = stages.problem
    names = [name for name, _ in problem.plant.parameters]
    for label, value in problem.input_values.items():
        names += [label] if value.size == 1 else [f"{label}[{k}]" for k in range(value.size)]
    for which, rows in Ends(problem).rows.items():
        for row in rows:
            count = 1 if row.about is None else len(row.point)
            names += [f"{which} {row.name}" + (f" [{k}]" if count > 1 else "") for k in range(count)]
    return names


def _listed(title: str, names: Sequence[str]) -> list[str]:
    """Lines of a comment: entries by number."""
    text = ", ".join(f"{k} {name}" for k, name in enumerate(names)) or "none"
    text = f"{title}: {text}".replace("*/", "* /")
    return textwrap.wrap(text, 110, initial_indent=" *   ", subsequent_indent=" *     ")


def _header(name: str, routine: SolverRoutine, places: Mapping[str, tuple[int, int]]) -> str:
    stages, sizes, upper = routine.stages, routine.sizes, name.upper()
    parts = parts_of(routine.memory_sizes)
    rows = [
        f"{end} of {row}" for row in (*stages.path_names, *stages.end_bounded) for end in ("lower", "upper")
    ]
    lines = [
        f" * At most {routine.iterations} iterations, tolerance {routine.tolerance:g}; {stages.count} intervals of",
        f" * '{stages.scheme.name}', {stages.chart.point} numbers of a state and {len(stages.u_names)} controls in each.",
        " *",
        *_listed(f"p[{upper}_P], by default {name}_p", _p_names(stages)),
        *_listed(f"limits[{upper}_LIMITS], by default {name}_limits", rows),
        *_listed(f"found[{len(FOUND)}]", FOUND),
        *_listed(
            "a state", [*stages.x_names] if stages.chart.point == len(stages.x_names) else ["its point"]
        ),
        *_listed("controls of an interval", stages.u_names),
    ]
    starts = "\n".join(
        f"#define {upper}_{label.upper()} {start} /* {count} numbers in p */"
        for label, (start, count) in places.items()
        if count
    )
    described = "\n".join(lines)
    return f"""\
#ifndef {upper}_H
#define {upper}_H

/* Written by Alembert: a solver of an optimal control problem. No allocation, no state but `memory`.
{described}
 */
#define {upper}_P {sizes["p"]}
#define {upper}_LIMITS {sizes["limits"]}
#define {upper}_MEMORY {sizes["memory"]}
#define {upper}_ROOM {routine.parts.arrays("solve")}
#define {upper}_FOUND {len(FOUND)}
#define {upper}_INTERVALS {stages.count}
{starts}
#define {upper}_STATE(memory, k) ((memory) + {parts["x"].start} + {stages.chart.point} * (k))
#define {upper}_CONTROLS(memory, k) ((memory) + {parts["u"].start} + {len(stages.u_names)} * (k))

#ifdef __cplusplus
extern "C" {{
#endif

extern const double {name}_p[];
extern const double {name}_limits[];

/* The solution that was known when this was written, to begin with. */
void {name}_start(double *memory);

/* One interval later; what was last is repeated. */
void {name}_shift(double *memory);

/* A few iterations from what is in memory; `room` may hold anything. found[6] is 1 where it converged. */
void {name}_solve(const double *p, double duration, const double *limits, double *memory, double *found, double *room);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _array(label: str, values: Array, kind: str = "static const") -> str:
    numbers = ", ".join(c_number(float(x)) for x in np.ravel(values)) or "0.0"
    wrapped = "\n".join(textwrap.wrap(numbers, 116, initial_indent="  ", subsequent_indent="  "))
    return f"{kind} double {label}[] = {{\n{wrapped}\n}};\n"


def _source(name: str, routine: SolverRoutine, given: Mapping[str, Array], body: Sequence[str]) -> str:
    parts = parts_of(routine.memory_sizes)
    N = routine.stages.count
    counts = {"x": N + 1, "costates": N + 1, "u": N, "z": N, "low": N, "high": N}
    moves = []
    for label, count in counts.items():
        size = (parts[label].stop - parts[label].start) // count
        if size and count > 1:
            at = f"memory + {parts[label].start}"
            moves.append(f"  memmove({at}, {at} + {size}, {(count - 1) * size} * sizeof(double));")
    functions = "\n".join(body)
    shift = "\n".join(moves)
    return f"""\
/* Written by Alembert. */
#include "{name}.h"

#include <math.h>
#include <string.h>

{_array(f"{name}_p", given["p"], "const")}
{_array(f"{name}_limits", given["limits"], "const")}
{_array(f"{name}_tables", given["tables"])}
{_array(f"{name}_memory", given["memory"])}
{functions}
void {name}_start(double *memory)
{{
  memcpy(memory, {name}_memory, sizeof({name}_memory));
}}

void {name}_shift(double *memory)
{{
{shift}
}}

void {name}_solve(const double *p, double duration, const double *limits, double *memory, double *found, double *room)
{{
  {name}_in_solve(p, &duration, limits, {name}_tables, memory, found, room);
}}
"""


def _test(
    name: str,
    routine: SolverRoutine,
    given: Mapping[str, Array],
    duration: float,
    sample: Callable[[Array, Array], tuple[Array, Array]],
    start: tuple[int, int],
) -> str:
    parts, upper = parts_of(routine.memory_sizes), name.upper()
    memory, numbers, expected = given["memory"], [], []
    rng = np.random.default_rng(0)
    for _ in range(SAMPLES):
        p = given["p"].copy()
        own = p[start[0] : sum(start)]
        if all(row.about is None for row in Ends(routine.stages.problem).rows["start"]):
            own += MOVED * np.maximum(1.0, np.abs(own)) * rng.uniform(-1, 1, len(own))
        memory, found = sample(p, memory)
        numbers.append(p)
        expected.append(np.concatenate([memory[: parts["u"].stop], found[[0, 6]]]))
    count = parts["u"].stop
    return f"""\
/* Written by Alembert: compares {name}_solve with what Python found when it was written. */
#include "{name}.h"

#include <math.h>
#include <stdio.h>

{_array("given", np.array(numbers))}
{_array("expected", np.array(expected))}
static double memory[{upper}_MEMORY], room[{upper}_ROOM], found[{upper}_FOUND];

int main(void)
{{
  double worst = 0.0;
  int k, i;
  {name}_start(memory);
  for (k = 0; k < {SAMPLES}; ++k) {{
    const double *e = expected + {count + 2} * k;
    double scale = 1e-300;
    {name}_solve(given + {upper}_P * k, {c_number(duration)}, {name}_limits, memory, found, room);
    for (i = 0; i < {count}; ++i) scale = fmax(scale, fabs(e[i]));
    for (i = 0; i < {count}; ++i) {{
      const double d = fabs(memory[i] - e[i]) / scale;
      worst = d <= worst ? worst : d;
    }}
    worst = fmax(worst, fabs(found[0] - e[{count}]) / fmax(1.0, fabs(e[{count}])));
    if (found[6] != e[{count + 1}]) worst = INFINITY;
  }}
  printf("{name}: largest relative difference %g\\n", worst);
  return worst <= {TOLERANCE!r} ? 0 : 1;
}}
"""

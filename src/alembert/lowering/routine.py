"""Routines: functions called one after the other on named arrays, as C text, as kernels and on numbers.

A routine is made of `Call`, `Copy`, `When`, `Repeat` and `Each` of `alembert.lowering.plan`; calls name functions, or other
routines, of the same program. `alembert.deploy.live_page` writes the same routines as WebAssembly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.lowering.plan import At, Buffer, Call, Copy, Each, Offset, Plan, Repeat, Step, When

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Routine:
    """`inputs` are read, `outputs` written (and read, where they are changed in place), `buffers` are its own."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: Mapping[str, int]
    """of all arrays"""
    steps: Sequence[Step]
    comment: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        return (*self.inputs, *self.outputs)

    @cached_property
    def buffers(self) -> dict[str, int]:
        return {name: size for name, size in self.sizes.items() if name not in self.arguments}

    @property
    def calls(self) -> list[str]:
        """All names that are called, those in conditions and repetitions once."""
        return [str(step.source) for step in flat(self.steps) if isinstance(step, Call)]


def flat(steps: Sequence[Step]) -> list[Step]:
    """With what is inside of `When`, `Repeat` and `Each`."""
    found: list[Step] = []
    for step in steps:
        found.append(step)
        if isinstance(step, When | Repeat | Each):
            found += flat(step.steps)
    return found


def place(buffer: Buffer) -> tuple[str, int]:
    """The array, and where in it; within `Each`, for the first record."""
    return (buffer, 0) if isinstance(buffer, str) else (buffer.buffer, buffer.start)


@dataclass(frozen=True, eq=False)
class Parts:
    """The functions and routines of a program, by name; routines call what comes before them."""

    functions: Mapping[str, ca.Function] = field(default_factory=dict)
    routines: Mapping[str, Routine] = field(default_factory=dict)

    def arguments(self, name: str) -> tuple[str, ...] | None:
        """Of a function or routine, inputs first; None where there is none of this name."""
        if name in self.routines:
            return self.routines[name].arguments
        f = self.functions.get(name)
        return None if f is None else (*f.name_in(), *f.name_out())

    def run(self, name: str, arrays: Mapping[str, Array]) -> None:
        """A routine on arrays of numbers, which it changes."""
        routine = self.routines[name]
        values = {label: np.zeros(size) for label, size in routine.buffers.items()}
        values |= {label: arrays[label] for label in routine.arguments}
        self._steps(routine, routine.steps, values)

    def _steps(
        self, routine: Routine, steps: Sequence[Step], values: Mapping[str, Array], turn: int = 0
    ) -> None:
        def part(buffer: Buffer, size: int | None = None) -> Array:
            label, start = place(buffer)
            start += turn * buffer.size if isinstance(buffer, At) else 0
            return values[label][start:] if size is None else values[label][start : start + size]

        for step in steps:
            if isinstance(step, When):
                if part(step.flag)[0] != 0:
                    self._steps(routine, step.steps, values, turn)
            elif isinstance(step, Each):
                turns = range(step.count)
                for k in reversed(turns) if step.backward else turns:
                    self._steps(routine, step.steps, values, k)
            elif isinstance(step, Repeat):
                for _ in range(step.most):
                    if part(step.flag)[0] != 0:
                        break
                    self._steps(routine, step.steps, values, turn)
            elif isinstance(step, Copy):
                size = self.copied(routine, step)
                part(step.target, size)[:] = 0.0 if step.source is None else part(step.source, size)
            else:
                assert isinstance(step, Call)
                self._call(str(step.source), [part(x) for x in step.inputs], [part(x) for x in step.outputs])

    def _call(self, name: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if name in self.routines:
            routine = self.routines[name]
            return self.run(name, dict(zip(routine.arguments, [*inputs, *outputs], strict=True)))
        f = self.functions[name]
        found = f.call([ca.DM(x[: f.numel_in(k)].reshape(f.size_in(k))) for k, x in enumerate(inputs)])
        for x, y in zip(outputs, found, strict=True):
            values = np.array(y, dtype=float).ravel()
            x[: len(values)] = values
        return None

    @staticmethod
    def copied(routine: Routine, step: Copy) -> int:
        """How many numbers."""
        if step.size is not None:
            return step.size
        label, start = place(step.source if step.source is not None else step.target)
        return routine.sizes[label] - start

    def plan(self, name: str) -> Plan:
        """A routine as a kernel's source: arguments of no size are left out, what changes in place comes in as NAME_in."""
        routine = self.routines[name]
        sources: dict[str, KernelSource] = {}
        inside: dict[str, int] = {}
        own = {label: label for label in routine.arguments}
        steps = self._inlined(routine, own, sources, inside)
        sizes = {label: routine.sizes[label] for label in routine.arguments if routine.sizes[label]}
        given = {label: size for label, size in sizes.items() if label in routine.inputs}
        results = {label: size for label, size in sizes.items() if label in routine.outputs}
        begin = [Copy(f"{label}_in", label) for label in results]
        incoming = {f"{label}_in": size for label, size in results.items()}
        return Plan({**given, **incoming}, results, inside, [*begin, *steps], sources)

    def _inlined(
        self,
        routine: Routine,
        own: Mapping[str, Buffer],
        sources: dict[str, KernelSource],
        inside: dict[str, int],
    ) -> list[Step]:
        """Steps with those of other routines in the place of their calls; `own` says what arguments are."""
        label = f"{routine.name}{len(inside)}:"
        inside |= {f"{label}{name}": max(1, size) for name, size in routine.buffers.items()}

        def other(buffer: Buffer) -> Buffer:
            name, start = place(buffer)
            base, more = place(own.get(name, f"{label}{name}"))
            if isinstance(buffer, At):
                return At(base, buffer.size, start + more)
            return Offset(base, start + more) if start + more else base

        def written(steps: Sequence[Step]) -> list[Step]:
            found: list[Step] = []
            for step in steps:
                if isinstance(step, When):
                    found.append(When(other(step.flag), written(step.steps)))
                elif isinstance(step, Each):
                    found.append(Each(step.count, written(step.steps), step.backward))
                elif isinstance(step, Repeat):
                    found.append(Repeat(written(step.steps), str(other(step.flag)), step.most))
                elif isinstance(step, Copy):
                    source = None if step.source is None else other(step.source)
                    found.append(Copy(source, other(step.target), self.copied(routine, step)))
                else:
                    assert isinstance(step, Call)
                    called, outputs = str(step.source), [other(x) for x in step.outputs]
                    if called in self.routines:
                        inner = self.routines[called]
                        given = [*(other(x) for x in step.inputs), *outputs]
                        names = dict(zip(inner.arguments, given, strict=True))
                        found += self._inlined(inner, names, sources, inside)
                        continue
                    f = self.functions[called]
                    kept = [k for k in range(f.n_in()) if f.numel_in(k)]
                    if called not in sources:
                        symbols = [ca.SX.sym(f"x{k}", *f.size_in(k)) for k in range(f.n_in())]
                        whole = ca.Function(called, [symbols[k] for k in kept], f.call(symbols))
                        sources[called] = FunctionSource(whole)
                    found.append(Call(called, [other(step.inputs[k]) for k in kept], outputs))
            return found

        return written(routine.steps)

    def operations(self, name: str, counts: Mapping[str, int]) -> int:
        """Of a routine, all conditions taken and everything repeated once."""
        found = 0
        for called in self.routines[name].calls:
            found += self.operations(called, counts) if called in self.routines else counts[called]
        return found

    def arrays(self, name: str) -> int:
        """How many numbers the arrays of a routine and of what it calls hold at most."""
        routine = self.routines[name]
        inner = [self.arrays(called) for called in routine.calls if called in self.routines]
        return sum(routine.buffers.values()) + max(inner, default=0)

    def c_text(self, name: str, prefix: str, *, static: bool = False, room: str = "") -> list[str]:
        """The lines of a C function; its own arrays are automatic, or parts of a last argument `room`."""
        routine = self.routines[name]
        labels = {label: label for label in routine.arguments}
        labels |= {
            label: label if label.isidentifier() and label.isascii() else f"own{k}"
            for k, label in enumerate(routine.buffers)
        }

        def at(buffer: Buffer) -> str:
            label, start = place(buffer)
            turn = f" + {buffer.size} * turn_" if isinstance(buffer, At) else ""
            return f"{labels[label]}{turn}" if not start else f"{labels[label]}{turn} + {start}"

        def first(buffer: Buffer) -> str:
            label, start = place(buffer)
            return f"{labels[label]}[{start}]"

        def lines(steps: Sequence[Step], indent: str) -> list[str]:
            found = []
            for step in steps:
                if isinstance(step, When):
                    found.append(f"{indent}if ({first(step.flag)} != 0.0) {{")
                    found += [*lines(step.steps, f"{indent}  "), f"{indent}}}"]
                elif isinstance(step, Repeat):
                    condition = f"round_ < {step.most} && {first(step.flag)} == 0.0"
                    found += [
                        f"{indent}{{",
                        f"{indent}  int round_;",
                        f"{indent}  for (round_ = 0; {condition}; ++round_) {{",
                    ]
                    found += [*lines(step.steps, f"{indent}    "), f"{indent}  }}", f"{indent}}}"]
                elif isinstance(step, Each):
                    turns = f"turn_ = 0; turn_ < {step.count}; ++turn_"
                    if step.backward:
                        turns = f"turn_ = {step.count - 1}; turn_ >= 0; --turn_"
                    found += [f"{indent}{{", f"{indent}  int turn_;", f"{indent}  for ({turns}) {{"]
                    found += [*lines(step.steps, f"{indent}    "), f"{indent}  }}", f"{indent}}}"]
                elif isinstance(step, Copy):
                    size = f"{self.copied(routine, step)} * sizeof(double)"
                    source = f"memset({at(step.target)}, 0, {size})"
                    if step.source is not None:
                        source = f"memmove({at(step.target)}, {at(step.source)}, {size})"
                    found.append(f"{indent}{source};")
                else:
                    assert isinstance(step, Call)
                    given = ", ".join(at(x) for x in (*step.inputs, *step.outputs))
                    found.append(f"{indent}{prefix}_{step.source}({given});")
            return found

        kinds = [f"const double *{x}" for x in routine.inputs] + [f"double *{x}" for x in routine.outputs]
        declared = [f"  double {labels[label]}[{max(1, size)}];" for label, size in routine.buffers.items()]
        if room:
            kinds.append(f"double *{room}")
            starts = accumulate(routine.buffers.values(), initial=0)
            declared = [
                f"  double *const {labels[label]} = {room} + {start};"
                for label, start in zip(routine.buffers, starts, strict=False)
            ]
        used = {place(x)[0] for step in flat(routine.steps) for x in _buffers(step)}
        return [
            *([f"/* {routine.comment} */"] if routine.comment else []),
            f"{'static ' if static else ''}void {prefix}_{name}({', '.join(kinds)})",
            "{",
            *declared,
            *(f"  (void){x};" for x in routine.arguments if x not in used),
            *lines(routine.steps, "  "),
            "}",
            "",
        ]


def _buffers(step: Step) -> list[Any]:
    if isinstance(step, Call):
        return [*step.inputs, *step.outputs]
    if isinstance(step, Copy):
        return [x for x in (step.source, step.target) if x is not None]
    return [step.flag] if isinstance(step, When | Repeat) else []

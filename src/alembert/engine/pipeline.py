"""Several sources one after the other in one kernel, some of them in a loop.

Each stage works on slices of named buffers: the kernel's arguments and results, or temporaries in its workspace. A stage
with a count runs that often, its slices moving on by their step: a solver written for one right-hand side then serves
all columns of a matrix without being unrolled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from alembert.engine.codegen import Code
from alembert.engine.source import Source
from alembert.engine.target import Target


@dataclass(frozen=True)
class Slice:
    """Part of a buffer, from `offset` on; in a loop it moves by `step` elements at a time."""

    buffer: str
    offset: int = 0
    step: int = 0


@dataclass(frozen=True)
class Stage:
    source: Source
    inputs: Sequence[Slice]
    outputs: Sequence[Slice]
    count: int = 1


class PipelineSource:
    """`arguments` and `results` give the buffers that come in and go out, with their sizes, in order."""

    def __init__(
        self,
        arguments: Mapping[str, int],
        results: Mapping[str, int],
        temporaries: Mapping[str, int],
        stages: Sequence[Stage],
    ) -> None:
        self.input_sizes = list(arguments.values())
        self.output_sizes = list(results.values())
        self._names = [*arguments, *results]
        self._inputs = len(arguments)
        self._temporaries = temporaries
        self._stages = stages

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        codes = [stage.source.emit(f"{name}_s{k}", lanes, target) for k, stage in enumerate(self._stages)]
        workspace = max((code.workspace for code in codes), default=0)
        pointers = {buffer: f"%b{k}" for k, buffer in enumerate(self._names)}
        lines = []
        for k, (buffer, size) in enumerate(self._temporaries.items()):
            pointers[buffer] = f"%t{k}"
            lines.append(f"%t{k} = getelementptr inbounds double, ptr %w, i64 {workspace * lanes}")
            workspace += size
        for k, stage in enumerate(self._stages):
            lines += _call(f"@{name}_s{k}", f"s{k}", stage, pointers, lanes)
        parameters = [f"ptr noalias %b{k}" for k in range(len(self._names))]
        text = [code.text for code in codes]
        text.append(
            f"define internal void @{name}({', '.join([*parameters, 'ptr noalias %w'])}) noinline #0 {{\nentry:\n  "
            + "\n  ".join([*lines, "ret void"])
            + "\n}\n"
        )
        work = sum(code.work * stage.count for code, stage in zip(codes, self._stages, strict=True))
        helpers = frozenset().union(*(code.helpers for code in codes))
        targets = [code.target for code in codes if code.target != target]
        return Code("".join(text), workspace, work, helpers, targets[0] if targets else target)


def _call(callee: str, label: str, stage: Stage, pointers: Mapping[str, str], lanes: int) -> list[str]:
    """One call, or a loop of calls over k = 0 ... count - 1."""
    lines: list[str] = []
    names = []
    for position, part in enumerate([*stage.inputs, *stage.outputs]):
        index, value = f"%{label}_i{position}", f"%{label}_p{position}"
        if stage.count > 1 and part.step:
            lines.append(f"{index}_m = mul nuw nsw i64 %{label}_k, {part.step * lanes}")
            lines.append(f"{index} = add nuw nsw i64 {index}_m, {part.offset * lanes}")
            where = index
        else:
            where = str(part.offset * lanes)
        lines.append(f"{value} = getelementptr inbounds double, ptr {pointers[part.buffer]}, i64 {where}")
        names.append(f"ptr {value}")
    lines.append(f"call void {callee}({', '.join([*names, 'ptr %w'])})")
    if stage.count <= 1:
        return lines
    head = [
        f"br label %{label}_head",
        f"{label}_head:",
        f"br label %{label}_loop",
        f"{label}_loop:",
        f"%{label}_k = phi i64 [0, %{label}_head], [%{label}_n, %{label}_loop]",
    ]
    tail = [
        f"%{label}_n = add nuw nsw i64 %{label}_k, 1",
        f"%{label}_c = icmp eq i64 %{label}_n, {stage.count}",
        f"br i1 %{label}_c, label %{label}_done, label %{label}_loop",
        f"{label}_done:",
    ]
    return [*head, *lines, *tail]

"""Several sources one after the other in one kernel.

Each stage works on named buffers: the kernel's arguments and results, or temporaries in its workspace. A `Stage` is a
source that runs once. `Columns` runs a function on every column of a matrix without unrolling that: a
solver written for one right-hand side then serves them all. When the kernel has one lane, the lanes of the vector
registers go to neighbouring columns instead; the operations and so the bits of the results are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from alembert.engine import codegen, program
from alembert.engine.codegen import Code, Spacing
from alembert.engine.source import Source
from alembert.engine.target import Target


@dataclass(frozen=True)
class Stage:
    """A source with the buffers for its inputs and outputs."""

    source: Source
    inputs: Sequence[str]
    outputs: Sequence[str]


@dataclass(frozen=True)
class Columns:
    """`function(shared, column, ...)` on the columns of one or more matrices side by side, into as many others.

    The matrices are by rows and all have `count` columns.
    """

    function: ca.Function
    shared: str
    sources: Sequence[str]
    results: Sequence[str]
    count: int


class PipelineSource:
    """`arguments` and `results` give the buffers that come in and go out, with their sizes, in order."""

    def __init__(
        self,
        arguments: Mapping[str, int],
        results: Mapping[str, int],
        temporaries: Mapping[str, int],
        stages: Sequence[Stage | Columns],
    ) -> None:
        self.input_sizes = list(arguments.values())
        self.output_sizes = list(results.values())
        self._names = [*arguments, *results]
        self._temporaries = temporaries
        self._stages = [stage for stage in stages if isinstance(stage, Stage) or stage.count]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        codes, calls, workspace, widths = [], [], 0, set()
        for k, stage in enumerate(self._stages):
            label = f"{name}_s{k}"
            if isinstance(stage, Stage):
                code = stage.source.emit(label, lanes, target)
                work, doubles = code.work, code.workspace * lanes
                calls.append([_call(label, [*stage.inputs, *stage.outputs])])
            else:
                width = min(target.lanes, stage.count) if lanes == 1 else lanes
                width = width if width in (1, lanes, target.lanes) else 1
                widths.add(width)
                code = _column_code(label, stage, lanes, width, target)
                work, doubles = code.work * -(-stage.count * lanes // width), code.workspace * width
                calls.append(_column_loop(label, f"s{k}", stage, lanes, width))
            codes.append((code, work))
            workspace = max(workspace, -(-doubles // lanes))
        lines = [
            f"%{buffer} = getelementptr inbounds double, ptr %b{k}, i64 0"
            for k, buffer in enumerate(self._names)
        ]
        for buffer, size in self._temporaries.items():
            workspace = -(-workspace * lanes // 8) * 8 // lanes
            lines.append(f"%{buffer} = getelementptr inbounds double, ptr %w, i64 {workspace * lanes}")
            workspace += size
        parameters = [f"ptr noalias %b{k}" for k in range(len(self._names))]
        body = "\n  ".join([*lines, *(line for call in calls for line in call), "ret void"])
        text = [code.text for code, _ in codes]
        text.append(
            f"define internal void @{name}({', '.join([*parameters, 'ptr noalias %w'])}) noinline #0 {{\n"
            f"entry:\n  {body}\n}}\n"
        )
        helpers = frozenset().union(*(code.helpers for code, _ in codes))
        others = [code.target for code, _ in codes if code.target != target]
        main = others[0] if others else target
        known = set(codegen.prelude(helpers, lanes, main).splitlines())
        for width in widths - {lanes}:
            more = codegen.prelude(frozenset(), width, target).splitlines()
            text.append("\n".join(x for x in more if x.startswith("declare") and x not in known) + "\n")
        return Code("".join(text), workspace, sum(work for _, work in codes), helpers, main)


def _call(label: str, buffers: Sequence[str]) -> str:
    return f"call void @{label}({', '.join(f'ptr %{buffer}' for buffer in [*buffers, 'w'])})"


def _column_code(label: str, stage: Columns, lanes: int, width: int, target: Target) -> Code:
    """The function for `width` columns or states at a time, with attributes of its own."""
    spacing = Spacing(stage.count * lanes, 8 * lanes, arguments=range(1, 1 + len(stage.sources)))
    code = codegen.emit_function(
        label,
        program.from_casadi(stage.function, fuse=target.fused),
        width,
        target,
        uniform=(0,) if width > lanes else (),
        spacing=spacing,
    )
    if width == lanes:
        return code
    group = f"#{label.rsplit('_s', 1)[-1]}9"
    text = code.text.replace(" #0 {", f" {group} {{") + target.attributes.replace("#0", group, 1)
    return dataclasses.replace(code, text=text, target=target)


def _column_loop(label: str, tag: str, stage: Columns, lanes: int, width: int) -> list[str]:
    """Blocks of columns from the left; the last block ends with the last column and may overlap the one before."""
    step = width // lanes
    final = stage.count - step
    buffers = [*stage.sources, *stage.results]
    moved = ", ".join(f"ptr %{tag}_p{k}" for k in range(len(buffers)))
    return [
        f"br label %{tag}_head",
        f"{tag}_head:",
        f"br label %{tag}_loop",
        f"{tag}_loop:",
        f"%{tag}_k = phi i64 [0, %{tag}_head], [%{tag}_next, %{tag}_loop]",
        f"%{tag}_o = mul nuw nsw i64 %{tag}_k, {lanes}",
        *(
            f"%{tag}_p{k} = getelementptr inbounds double, ptr %{buffer}, i64 %{tag}_o"
            for k, buffer in enumerate(buffers)
        ),
        f"call void @{label}(ptr %{stage.shared}, {moved}, ptr %w)",
        f"%{tag}_done = icmp eq i64 %{tag}_k, {final}",
        f"%{tag}_sum = add nuw nsw i64 %{tag}_k, {step}",
        f"%{tag}_over = icmp ugt i64 %{tag}_sum, {final}",
        f"%{tag}_next = select i1 %{tag}_over, i64 {final}, i64 %{tag}_sum",
        f"br i1 %{tag}_done, label %{tag}_end, label %{tag}_loop",
        f"{tag}_end:",
    ]

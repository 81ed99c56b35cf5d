"""Kernels that end with matrices.

A first part leaves tables; then functions that work on rows of matrices (`alembert.lowering.tree_matrices`) make the results
from them, and send these straight to where they belong, while the next ones are computed. Large matrices would otherwise go
through memory three times: as lanes, as packed blocks, as results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from alembert.engine import codegen
from alembert.engine.codegen import Code
from alembert.engine.target import Target
from alembert.engine.vectormath import suffix, vector_type
from alembert.lowering.pipeline import PipelineSource, Stage
from alembert.lowering.tree_matrices import LINE, Relations, TreeMatrices, padded

GROUP = "#7"  # of the attributes of what runs state by state


@dataclass(frozen=True)
class Ending:
    """IR of `void NAME(ptr table, ..., ptr result, ..., ptr scratch)`; with many lanes the results are outlets."""

    text: str
    scratch: int
    """elements"""
    work: int
    """for one state"""


class PerStateSource:
    """`results` come from the lanes, `matrices` (square, over the speeds) state by state out of the `tables`."""

    def __init__(
        self,
        arguments: Mapping[str, int],
        results: Mapping[str, int],
        tables: Mapping[str, int],
        matrices: Sequence[str],
        stages: Sequence[Stage],
        relations: Relations,
        end: Callable[[str, TreeMatrices], Ending],
        temporaries: Mapping[str, int] | None = None,
    ) -> None:
        self._given = (arguments, results, tables, matrices, stages, relations, end)
        sizes = {name: padded(size) for name, size in tables.items()}
        self._lanes = PipelineSource(arguments, {**results, **sizes}, temporaries or {}, stages)
        self._tables, self._results, self._matrices = list(sizes.values()), results, matrices
        self._relations, self._end = relations, end
        self.input_sizes = list(arguments.values())
        self.output_sizes = [*results.values(), *[relations.n**2] * len(matrices)]

    def after(
        self, arguments: Mapping[str, int], temporaries: Mapping[str, int], first: Stage, names: Sequence[str]
    ) -> PerStateSource:
        """With a stage before; `names` are now the buffers of what were the arguments, in order."""
        old, results, tables, matrices, stages, relations, end = self._given
        known = dict(zip(old, names, strict=True))
        moved = [
            dataclasses.replace(stage, inputs=[known.get(x, x) for x in stage.inputs]) for stage in stages
        ]
        return PerStateSource(
            arguments, results, tables, matrices, [first, *moved], relations, end, temporaries
        )

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        first = self._lanes.emit(f"{name}_lanes", lanes, target)
        tools = TreeMatrices(f"{name}_rows", self._relations, target, GROUP, lanes)
        ending = self._end(f"{name}_end", tools)
        text = [first.text, *tools.text, ending.text, target.attributes.replace("#0", GROUP, 1)]
        T, E = vector_type(target.lanes), vector_type(lanes)
        fma = f"declare {T} @llvm.fma.{suffix(target.lanes)}({T}, {T}, {T})\n"
        if fma not in codegen.prelude(first.helpers, lanes, first.target) + first.text:
            text.append(fma)
        inputs = [f"%i{k}" for k in range(len(self.input_sizes))]
        outputs = [f"%o{k}" for k in range(len(self.output_sizes))]
        start, lines, tables = padded(first.workspace), [], []
        for k, size in enumerate(self._tables):
            tables.append(f"%t{k}")
            lines.append(f"%t{k} = getelementptr inbounds {E}, ptr %w, i64 {start}")
            start += size
        lines.append(f"%rest = getelementptr inbounds {E}, ptr %w, i64 {start}")
        count = len(self._results)
        lines.append(f"call void @{name}_lanes({_listed([*inputs, *outputs[:count], *tables, '%w'])})")
        lines.append(f"call void @{name}_end({_listed([*tables, *outputs[count:], '%rest'])})")
        body = "\n  ".join([*lines, "ret void"])
        parameters = ", ".join(f"ptr noalias {p}" for p in [*inputs, *outputs, "%w"])
        text.append(f"define internal void @{name}({parameters}) noinline #0 {{\n  {body}\n}}\n")
        return dataclasses.replace(
            first,
            text="".join(text),
            work=first.work + ending.work * lanes,
            workspace=start + ending.scratch,
            direct=len(self._matrices) if lanes > 1 else 0,
        )


def _listed(pointers: Sequence[str]) -> str:
    return ", ".join(f"ptr {p}" for p in pointers)


class Scratch:
    """Regions of the scratch memory of an ending, as lines of IR."""

    def __init__(self, lanes: int) -> None:
        self.size = 0
        self.lines: list[str] = []
        self._element = vector_type(lanes)

    def take(self, name: str, size: int) -> None:
        self.lines.append(f"{name} = getelementptr inbounds {self._element}, ptr %scratch, i64 {self.size}")
        self.size += padded(size) + LINE  # neighbours do not share the last line

"""A loop of steps in machine code.

A step is a sequence of calls on named buffers: the state, the other arguments, and temporaries in the
workspace. The kernel runs `every` steps between one record and the next and leaves `count` records; both come
as numbers at run time, the same for all lanes. A `Repeat` runs calls until a flag is set in all lanes; calls
must leave the lanes alone that have theirs set, so that a lane's bits do not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from alembert.engine.codegen import Code
from alembert.engine.source import Source
from alembert.engine.target import Target
from alembert.engine.vectormath import vector_type

RECORDS = 32
"""room for records in one call of a kernel"""


@dataclass(frozen=True)
class Call:
    """One of the sources, on buffers; no buffer may be both read and written."""

    source: str
    inputs: Sequence[str]
    outputs: Sequence[str]


@dataclass(frozen=True)
class Copy:
    """The content of a buffer to another of the same size."""

    source: str
    target: str


@dataclass(frozen=True)
class Repeat:
    """Calls until the first entry of the buffer `flag` is not zero in any lane, at most `most` times."""

    calls: Sequence[Call | Copy]
    flag: str
    most: int


class LoopSource:
    """`arguments` start with the state and end with `every` and `count`; the step leaves the next state in `next`."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        arguments: Mapping[str, int],
        temporaries: Mapping[str, int],
        body: Sequence[Call | Copy | Repeat],
    ) -> None:
        self._sources, self._arguments, self._body = sources, arguments, body
        self._state = next(iter(arguments))
        size = arguments[self._state]
        self._temporaries = {"now": size, "next": size, **temporaries}
        self.input_sizes = list(arguments.values())
        self.output_sizes = [RECORDS * size]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        codes = {key: source.emit(f"{name}_{key}", lanes, target) for key, source in self._sources.items()}
        others = [code.target for code in codes.values() if code.target != target]
        main = others[0] if others else target
        workspace = max((code.workspace for code in codes.values()), default=0)
        lines = [
            f"%{key} = getelementptr inbounds double, ptr %a{k}, i64 0"
            for k, key in enumerate(self._arguments)
        ]
        for key, size in self._temporaries.items():
            workspace = -(-workspace // 8) * 8
            lines.append(f"%{key} = getelementptr inbounds double, ptr %w, i64 {workspace * lanes}")
            workspace += size
        writer = _Writer(name, {**self._arguments, **self._temporaries}, self._state, lanes)
        for entry in self._body:
            writer.write(entry)
        writer.copy("next", "now")
        size = 8 * lanes * self._arguments[self._state]
        parameters = ", ".join(f"ptr noalias %a{k}" for k in range(len(self._arguments)))
        setup, step = "\n  ".join(lines), "\n  ".join(writer.lines)
        text = f"""
define internal void @{name}({parameters}, ptr noalias %records, ptr noalias %w) noinline #0 {{
entry:
  {setup}
  %loop.every_number = load double, ptr %every, align 8
  %loop.count_number = load double, ptr %count, align 8
  %loop.steps = fptoui double %loop.every_number to i64
  %loop.rows = fptoui double %loop.count_number to i64
  call void @llvm.memcpy.p0.p0.i64(ptr %now, ptr %{self._state}, i64 {size}, i1 false)
  br label %loop.row
loop.row:
  %loop.i = phi i64 [0, %entry], [%loop.i_next, %loop.kept]
  %loop.some = icmp ult i64 %loop.i, %loop.rows
  br i1 %loop.some, label %loop.step, label %loop.done
loop.step:
  %loop.k = phi i64 [0, %loop.row], [%loop.k_next, %loop.stepped]
  %loop.more = icmp ult i64 %loop.k, %loop.steps
  br i1 %loop.more, label %loop.body, label %loop.kept
loop.body:
  {step}
  br label %loop.stepped
loop.stepped:
  %loop.k_next = add nuw nsw i64 %loop.k, 1
  br label %loop.step
loop.kept:
  %loop.offset = mul nuw nsw i64 %loop.i, {lanes * self._arguments[self._state]}
  %loop.place = getelementptr inbounds double, ptr %records, i64 %loop.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %loop.place, ptr %now, i64 {size}, i1 false)
  %loop.i_next = add nuw nsw i64 %loop.i, 1
  br label %loop.row
loop.done:
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
        helpers = frozenset().union(*(code.helpers for code in codes.values()))
        work = RECORDS * sum(codes[entry.source].work for entry in _calls(self._body))
        return Code("".join(code.text for code in codes.values()) + text, workspace, work, helpers, main)


class _Writer:
    """IR lines of the body of a step; the state is read from `now`."""

    def __init__(self, name: str, sizes: Mapping[str, int], state: str, lanes: int) -> None:
        self.name, self.sizes, self.state, self.lanes = name, sizes, state, lanes
        self.lines: list[str] = []
        self.loops = 0

    def write(self, entry: Call | Copy | Repeat) -> None:
        if isinstance(entry, Repeat):
            self.repeat(entry)
        elif isinstance(entry, Copy):
            self.copy(entry.source, entry.target)
        else:
            buffers = ["now" if key == self.state else key for key in (*entry.inputs, *entry.outputs, "w")]
            pointers = ", ".join(f"ptr %{key}" for key in buffers)
            self.lines.append(f"call void @{self.name}_{entry.source}({pointers})")

    def copy(self, source: str, target: str) -> None:
        size = 8 * self.lanes * self.sizes[source]
        self.lines.append(
            f"call void @llvm.memcpy.p0.p0.i64(ptr %{target}, ptr %{source}, i64 {size}, i1 false)"
        )

    def repeat(self, entry: Repeat) -> None:
        tag = f"repeat{self.loops}."
        self.loops += 1
        T, B = vector_type(self.lanes), vector_type(self.lanes, "i1")
        self.lines += [
            f"br label %{tag}_start",
            f"{tag}_start:",
            f"br label %{tag}",
            f"{tag}:",
            f"%{tag}_k = phi i64 [0, %{tag}_start], [%{tag}_next, %{tag}]",
        ]
        for call in entry.calls:
            self.write(call)
        self.lines += [
            f"%{tag}_flag = load {T}, ptr %{entry.flag}, align {8 * self.lanes}",
            f"%{tag}_open = fcmp oeq {T} %{tag}_flag, zeroinitializer"
            if self.lanes > 1
            else f"%{tag}_open = fcmp oeq double %{tag}_flag, 0.0",
        ]
        if self.lanes > 1:  # one bit for each lane
            self.lines.append(f"%{tag}_bits = bitcast {B} %{tag}_open to i{self.lanes}")
            self.lines.append(f"%{tag}_any = icmp ne i{self.lanes} %{tag}_bits, 0")
        else:
            self.lines.append(f"%{tag}_any = and i1 %{tag}_open, true")
        self.lines += [
            f"%{tag}_next = add nuw nsw i64 %{tag}_k, 1",
            f"%{tag}_left = icmp ult i64 %{tag}_next, {entry.most}",
            f"%{tag}_again = and i1 %{tag}_any, %{tag}_left",
            f"br i1 %{tag}_again, label %{tag}, label %{tag}_end",
            f"{tag}_end:",
        ]


def _calls(body: Sequence[Call | Copy | Repeat]) -> list[Call]:
    found = []
    for entry in body:
        if isinstance(entry, Repeat):
            found += 3 * _calls(entry.calls)
        elif isinstance(entry, Call):
            found.append(entry)
    return found

"""Loops over the nodes of a tree as IR: a table with a row of offsets for each node, and the code that goes through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Pointer:
    """An argument of a function: base pointer + column of the table + constant, in vectors (or doubles)."""

    base: str
    column: str
    shift: int = 0
    double: bool = False

    def moved(self, by: int) -> Pointer:
        return Pointer(self.base, self.column, self.shift + by, self.double)


class OffsetTable:
    """The offsets that a loop uses, one row of integers per node; columns that are alike are kept once."""

    def __init__(self, name: str, columns: dict[str, np.ndarray]) -> None:
        self.name, self._known = name, columns
        self._columns: list[np.ndarray] = []
        self._places: dict[bytes, int] = {}

    def place(self, column: str) -> int:
        values = self._known[column]
        key = values.tobytes()
        if key not in self._places:
            self._places[key] = len(self._columns)
            self._columns.append(values)
        return self._places[key]

    @property
    def width(self) -> int:
        return len(self._columns) + 1

    def data(self, order: np.ndarray, case: np.ndarray) -> str:
        """A row for each visit, of nodes in this `order`; its case comes last."""
        columns = [*(column[order] for column in self._columns), case]
        return constant_data(self.name, np.array(columns, dtype=np.int32).T)


class NodeLoop:
    """The IR of a loop over the rows of a table."""

    def __init__(self, T: str, table: OffsetTable) -> None:
        self.T, self.table = T, table
        self.lines: list[str] = []
        self.count = 0

    def line(self, text: str) -> str:
        name = f"%t{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def begin(self) -> None:
        self.lines += [
            "entry:",
            "  br label %loop",
            "loop:",
            "  %k = phi i64 [0, %entry], [%next, %tail]",
            "  %shift = mul i64 %k, WIDTH",
            f"  %row = getelementptr i32, ptr @{self.table.name}, i64 %shift",
        ]

    def cases(self, count: int, label: str = "visit") -> Iterator[int]:
        """A block of code for each case, chosen by the row."""
        row, after = ("%row", "tail") if label == "visit" else (f"%{label}_row", f"{label}_tail")
        if count > 1:
            case = self.line(f"load i32, ptr {self.line(f'getelementptr i32, ptr {row}, i64 CASE')}")
            labels = " ".join(f"i32 {k}, label %{label}_{k}" for k in range(1, count))
            self.lines.append(f"  switch i32 {case}, label %{label}_0 [{labels}]")
        else:
            self.lines.append(f"  br label %{label}_0")
        for k in range(count):
            self.lines.append(f"{label}_{k}:")
            yield k
            self.lines.append(f"  br label %{after}")

    def load(self, row: str, column: str) -> str:
        place = self.line(f"getelementptr i32, ptr {row}, i64 {self.table.place(column)}")
        return self.line(f"sext i32 {self.line(f'load i32, ptr {place}')} to i64")

    def add(self, a: str, b: str) -> str:
        return self.line(f"add i64 {a}, {b}")

    def at(self, base: str, index: str | int) -> str:
        return self.line(f"getelementptr {self.T}, ptr {base}, i64 {index}")

    def address(self, pointer: Pointer, row: str) -> str:
        kind = "double" if pointer.double else self.T
        place = self.line(f"getelementptr {kind}, ptr {pointer.base}, i64 {self.load(row, pointer.column)}")
        return self.shifted(place, pointer, pointer.shift)

    def shifted(self, place: str, pointer: Pointer, shift: int) -> str:
        kind = "double" if pointer.double else self.T
        return self.line(f"getelementptr {kind}, ptr {place}, i64 {shift}") if shift else place

    def call(self, function: str, arguments: Sequence[str]) -> None:
        self.lines.append(f"  call void @{function}({', '.join(f'ptr {p}' for p in arguments)})")

    def climb(self, c: str, first: str) -> None:
        """Begin the walk from the node to the root."""
        self.lines += [
            f"  br label %{c}_start",
            f"{c}_start:",
            f"  br label %{c}_test",
            f"{c}_test:",
            f"  %{c}_j = phi i64 [{first}, %{c}_start], [%{c}_next, %{c}_tail]",
            f"  %{c}_more = icmp sge i64 %{c}_j, 0",
            f"  br i1 %{c}_more, label %{c}_body, label %{c}_end",
            f"{c}_body:",
            f"  %{c}_shift = mul i64 %{c}_j, WIDTH",
            f"  %{c}_row = getelementptr i32, ptr @{self.table.name}, i64 %{c}_shift",
        ]

    def climbed(self, c: str) -> None:
        self.lines.append(f"{c}_tail:")
        following = self.load(f"%{c}_row", "parent")
        self.lines += [f"  %{c}_next = add i64 {following}, 0", f"  br label %{c}_test", f"{c}_end:"]

    def end(self) -> None:
        self.lines += [
            "tail:",
            "  %next = add i64 %k, 1",
            "  %more = icmp ult i64 %next, COUNT",
            "  br i1 %more, label %loop, label %done",
            "done:",
            "  ret void",
        ]

    def function(self, name: str, pointers: Sequence[str], count: int) -> str:
        """The text of the function that goes through so many rows."""
        width = self.table.width
        text = "\n".join(self.lines)
        text = text.replace("WIDTH", str(width)).replace("CASE", str(width - 1)).replace("COUNT", str(count))
        parameters = ", ".join(f"ptr noalias {p}" for p in pointers)
        return f"define internal void @{name}({parameters}) noinline #0 {{\n{text}\n}}\n"


def constant_data(name: str, values: np.ndarray) -> str:
    """IR of a constant array."""
    content = np.ascontiguousarray(values).view(np.uint8).ravel()
    if not content.size:
        content = np.zeros(8, dtype=np.uint8)
    text = _BYTES[content].tobytes().decode()
    return f'@{name} = internal constant [{content.size} x i8] c"{text}", align 64\n'


_BYTES = np.frombuffer("".join(f"\\{k:02X}" for k in range(256)).encode(), dtype=np.uint8).reshape(256, 3)

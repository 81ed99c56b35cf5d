"""Measured time series in CSV files, with names and units in the first line, as `Run.to_csv` writes them.

Columns: `time`, `q.NAME` for every coordinate, `tau.NAME` for every degree of freedom, and where they were
measured `v.NAME` and `a.NAME`. Units in brackets are allowed and not converted; other columns are left alone.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from alembert.errors import FileError
from alembert.model import Model
from alembert.model.io.location import read_text
from alembert.model.printing import unknown

Array = np.ndarray
LARGEST = 512_000_000  # bytes
_UNIT = re.compile(r"\s*\[[^\]]*\]\s*$")


def read_series(path: Path, model: Model) -> dict[str, Array]:
    """`time` (T,), `q` (T, nq), `tau` (T, nv), and `v`, `a` (T, nv) where the file has them."""
    head, rows = _table(path)
    wanted = {
        "q": model.coordinate_names,
        "tau": model.speed_names,
        "v": model.speed_names,
        "a": model.speed_names,
    }
    found = {"time": rows[:, _columns(path, head, ["time"])[0]]}
    for kind, names in wanted.items():
        columns = [f"{kind}.{name}" for name in names]
        if kind in ("v", "a") and not any(name in head for name in columns):
            continue
        found[kind] = rows[:, _columns(path, head, columns)]
    return found


def _table(path: Path) -> tuple[list[str], Array]:
    lines = csv.reader(read_text(path, LARGEST).splitlines())
    head = [_UNIT.sub("", name).strip() for name in next(lines, [])]
    if not head:
        raise FileError(f"{path}:1: is empty, expected a line with the names of the columns")
    rows = []
    for row in lines:
        if not row:
            continue
        if len(row) != len(head):
            raise FileError(f"{path}:{lines.line_num}: has {len(row)} values, expected {len(head)}")
        try:
            rows.append([float(cell) for cell in row])
        except ValueError as error:
            raise FileError(f"{path}:{lines.line_num}: {error}") from None
    return head, np.array(rows).reshape(len(rows), len(head))


def _columns(path: Path, head: list[str], names: Sequence[str]) -> list[int]:
    for name in names:
        if name not in head:
            raise FileError(f"{path}:1: " + unknown("has no column", name, head))
    return [head.index(name) for name in names]

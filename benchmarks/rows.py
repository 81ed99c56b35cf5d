"""One line of the table, and all that a run stores."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

BATCH = 4096


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure of ours, one of a peer, and what was aimed at for `measure`."""

    key: str
    label: str
    model: str
    ours: float
    """seconds, unless `unit` says otherwise"""
    unit: str = "s"
    peer: str = ""
    theirs: float | None = None
    measure: str = ""
    """what the goal is about: `ratio` (theirs / ours, more is better) or `ours` (less is better)"""
    goal: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.theirs / self.ours

    @property
    def reached(self) -> bool | None:
        if self.goal is None:
            return None
        return self.ours <= self.goal if self.measure == "ours" else (self.ratio or 0.0) >= self.goal


@dataclass
class Results:
    """All of a run, as it is stored."""

    date: str
    machine: dict[str, Any]
    versions: dict[str, str]
    quick: bool
    baseline: str
    rows: list[Row] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        content = asdict(self)
        for row, stored in zip(self.rows, content["rows"], strict=True):
            stored |= {"ratio": row.ratio, "reached": row.reached}
        return json.dumps(content, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Results:
        content = json.loads(text)
        rows = [
            Row(**{k: v for k, v in r.items() if k not in ("ratio", "reached")}) for r in content.pop("rows")
        ]
        return cls(**content, rows=rows)


def against(
    key: str,
    label: str,
    model: str,
    ours: float,
    peer: str,
    theirs: float | None,
    goal: float | None = None,
) -> Row:
    return Row(key, label, model, ours, peer=peer, theirs=theirs, measure="ratio", goal=goal)

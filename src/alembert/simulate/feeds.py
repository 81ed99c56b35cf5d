"""Tables over time on a model: which of them are compiled, looked up, or held between instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError
from alembert.model import WORLD, Model
from alembert.simulate.acting import Places, Terms
from alembert.simulate.tables import Table

Array = np.ndarray


@dataclass(frozen=True)
class EffortsAndTables:
    """Constant efforts (..., nv), and tables by joint."""

    numbers: Array
    tables: Mapping[str, Table]


class Feeds:
    """The tables of a run."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tables: list[tuple[str, Table]] = []
        """all of them, and what they are for"""
        self._efforts: list[tuple[Array, Table]] = []
        self.wrenches: list[WrenchTable] = []
        """those that are compiled, as elements that act"""
        self.held_wrenches: dict[str, Table] = {}

    def take_efforts(self, efforts: Mapping[str, Any]) -> dict[str, Any]:
        """What is not a table."""
        model = self.model
        for name, value in efforts.items():
            if isinstance(value, Table):
                width = model.joint(name).type.nv if name in model._joint_index else 1
                where = np.flatnonzero(
                    model.compute.by_name("simulate", {name: np.zeros(width)}, "efforts")[0]
                )
                if len(where) != value.width:
                    raise ArgumentError(
                        f"simulate: efforts: the table for {name!r} has width {value.width}, expected {len(where)}"
                    )
                self._efforts.append((where, value))
                self.tables.append((f"efforts {name!r}", value))
        return {name: value for name, value in efforts.items() if not isinstance(value, Table)}

    def take_wrenches(self, wrenches: Mapping[str, Any]) -> dict[str, Any]:
        """What is not a table, and tables that are too long, which are functions of time like any other."""
        left = {}
        for frame, table in wrenches.items():
            if not isinstance(table, Table):
                left[frame] = table
                continue
            if table.width != 6:
                raise ArgumentError(
                    f"simulate: wrenches: the table for {frame!r} has width {table.width}, expected 6: moment, then force"
                )
            self.tables.append((f"wrenches {frame!r}", table))
            if table.interpolation == "hold":
                self.held_wrenches[frame] = table
            elif table.is_compiled:
                self.wrenches.append(WrenchTable(frame, table))
            else:
                left[frame] = table
        return left

    def fed(self) -> ca.Function | None:
        """The efforts of tables that are compiled, as a function of t."""
        tables = [(where, table) for where, table in self._efforts if table.is_compiled]
        if not tables:
            return None
        t, total = ca.SX.sym("t"), ca.SX.zeros(self.model.nv)
        for where, table in tables:
            total[where.tolist()] = table.symbolic(t)
        return ca.Function("fed", [t], [total])

    @cached_property
    def long(self) -> list[tuple[Array, Table]]:
        return [
            (where, table)
            for where, table in self._efforts
            if not table.is_compiled and table.interpolation != "hold"
        ]

    @cached_property
    def _hold_tables(self) -> list[tuple[Array, Table]]:
        return [(where, table) for where, table in self._efforts if table.interpolation == "hold"]

    @property
    def acted_on(self) -> Array:
        """(nv,): where tables of efforts act."""
        found = np.zeros(self.model.nv, dtype=bool)
        for where, _ in self._efforts:
            found[where] = True
        return found

    def _read(self, tables: Sequence[tuple[Array, Table]], t: float) -> Array:
        total = np.zeros(self.model.nv)
        for where, table in tables:
            total[where] = table(t)
        return total

    def long_efforts(self, t: float) -> Array:
        """Of tables that are too long to be compiled."""
        return self._read(self.long, t)

    def held_efforts(self, t: float) -> Array:
        """Of tables that hold."""
        return self._read(self._hold_tables, t)

    def fed_efforts(self, time: Array) -> Array:
        """(N, nv): of tables that do not hold."""
        tables = [x for x in self._efforts if x[1].interpolation != "hold"]
        if not tables:
            return np.zeros((len(time), self.model.nv))
        return np.array([self._read(tables, float(t)) for t in time])

    @property
    def holds(self) -> bool:
        """Whether some table holds."""
        return any(table.interpolation == "hold" for _, table in self.tables)

    @cached_property
    def instants(self) -> Array:
        """Where tables that hold change."""
        found = [table.times for _, table in self.tables if table.interpolation == "hold"]
        return np.unique(np.concatenate([np.zeros(0), *found]))

    @cached_property
    def breaks(self) -> Array:
        """Where the equations are not smooth in time."""
        return np.unique(np.concatenate([np.zeros(0), *(table.breaks for _, table in self.tables)]))


@dataclass(frozen=True)
class WrenchTable:
    """A table of wrenches on a frame, in its axes, as one of the elements that act."""

    frame: str
    table: Table

    def check(self, model: Model) -> None:
        if model.frame(self.frame).body == WORLD:
            raise ArgumentError(f"simulate: wrench on frame {self.frame!r}, which does not move")

    def internal(self, model: Model) -> bool:
        return False

    def terms(self, at: Places) -> Terms:
        F, R = self.table.symbolic(at.t), at.pose(self.frame).rotation
        return Terms(efforts=at.efforts([(self.frame, ca.vertcat(R @ F[0:3], R @ F[3:6]))]))

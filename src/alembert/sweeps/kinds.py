"""Nodes in groups, each of which one piece of code can serve.

A *kind* is a structure whose constants are partly known: those that all its nodes share become numbers in the code, the
others are read from an array, or computed from the model's parameters first. Zeros and ones in the right
places (axis-aligned joints, placements that permute the axes) save much arithmetic, so nodes of one structure are
split by such patterns as long as the number of kinds stays small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.sweeps.node import Node, Structure
from alembert.sweeps.tree import Tree

LIMIT = 8  # kinds; each one costs compile time
_SPLITS = (
    ("rotation", "translation", "mass", "moment", "inertia", "joint", "rotor"),
    ("rotation", "translation", "joint"),
    ("rotation", "joint"),
    ("joint",),
    (),
)
"""The parts of the constants whose patterns tell kinds apart, finest first."""


@dataclass(frozen=True)
class Kind:
    structure: Structure
    nodes: np.ndarray
    """indices of the nodes, ascending"""
    numbers: tuple[float | None, ...]
    """constants that all nodes share; None for the others"""
    read: np.ndarray
    """indices of the constants that are read from an array"""
    computed: np.ndarray
    """indices of those that follow from the model's parameters"""
    values: np.ndarray
    """nodes x read"""
    expressions: tuple[ca.SX, ...]
    """for each node, the computed ones"""

    def node(self, read: ca.SX, computed: ca.SX) -> Node:
        """A node of this kind with symbols for its constants."""
        entries = [ca.SX(0.0 if number is None else number) for number in self.numbers]
        for symbols, indices in ((read, self.read), (computed, self.computed)):
            for k, index in enumerate(indices):
                entries[index] = symbols[k]
        return Node(self.structure, ca.vertcat(*entries))


def kinds(tree: Tree, parameters: ca.SX) -> list[Kind]:
    groups = list(_by_structure(tree, parameters))
    split = _SPLITS[-1]
    for split in _SPLITS:
        if sum(group.count(split) for group in groups) <= LIMIT:
            break
    return [kind for group in groups for kind in group.kinds(split)]


@dataclass(frozen=True)
class _Group:
    """All nodes of a structure."""

    structure: Structure
    nodes: np.ndarray
    values: np.ndarray
    """nodes x constants; NaN where a parameter enters"""
    expressions: dict[int, ca.SX]
    """the constants of the nodes that have parameters"""

    def _patterns(self, split: tuple[str, ...]) -> np.ndarray:
        """For each node, the number of its pattern."""
        columns, start = [], 0
        for name, size in self.structure.layout:
            if name in split:
                columns += range(start, start + size)
            start += size
        part = self.values[:, columns]
        codes = np.where(np.isin(part, (0.0, 1.0, -1.0)), part, 2.0)
        return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1) if columns else np.zeros(len(part))

    def count(self, split: tuple[str, ...]) -> int:
        return len(np.unique(self._patterns(split)))

    def kinds(self, split: tuple[str, ...]) -> Iterator[Kind]:
        patterns = self._patterns(split)
        for pattern in np.unique(patterns):
            member = np.flatnonzero(patterns == pattern)
            values = self.values[member]
            computed = np.isnan(values).any(axis=0)
            shared = (values == values[0]).all(axis=0)
            read = np.flatnonzero(~(computed | shared))
            nodes = self.nodes[member]
            expressions = []
            if computed.any():
                indices = np.flatnonzero(computed)
                for row, k in zip(values, nodes, strict=True):
                    found = self.expressions.get(int(k))
                    expressions.append(
                        ca.vertcat(*(ca.SX(row[j]) if found is None else found[int(j)] for j in indices))
                    )
            yield Kind(
                self.structure,
                nodes,
                tuple(float(x) if s else None for x, s in zip(values[0], shared, strict=True)),
                read,
                np.flatnonzero(computed),
                values[:, read],
                tuple(expressions),
            )


def _by_structure(tree: Tree, parameters: ca.SX) -> Iterator[_Group]:
    members: dict[Structure, list[int]] = {}
    for k, structure in enumerate(tree.structures):
        members.setdefault(structure, []).append(k)
    for structure, nodes in members.items():
        values = tree.numeric_constants(nodes)
        expressions: dict[int, ca.SX] = {}
        if values is None:
            rows = []
            for k in nodes:
                row = tree.numeric_constants([k])
                if row is None:
                    expressions[k] = constants = tree.constants(k, parameters)
                    entries = constants.elements()
                    row = np.array([[float(x) if x.is_constant() else np.nan for x in entries]])
                rows.append(row)
            values = np.vstack(rows)
        yield _Group(structure, np.array(nodes), values, expressions)

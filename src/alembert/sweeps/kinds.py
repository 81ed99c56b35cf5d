"""Nodes in groups, each of which one piece of code can serve.

A *kind* is a structure whose constants are partly known: zeros, and ones of placements and axes, that all its nodes share
are in the code, the others are read from an array, or computed from the model's parameters first; so the same code serves
other models. Zeros and ones in the right places (axis-aligned joints, placements that permute the axes) save much
arithmetic, so nodes of one structure are told apart by such patterns. But each kind costs compile time: patterns that differ
little, or the most alike where there are too many, are served together. Where there are too many structures, joints of one
type are given the same springs, friction, armature and rotors, of size zero where they have none. The structure of a node
includes what it hangs from: nodes on a rigid parent and on one with modes are never of one kind.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.joints import JointType
from alembert.sweeps.node import PLAIN, Carrier, Node, Structure
from alembert.sweeps.tree import Tree

LIMIT = 4  # kinds, as far as there are no more structures; more hardly run faster (measured)
STRUCTURES = 8  # beyond which joints of one type get the same structure
MANY = 60  # patterns to choose from
ALIKE = 2.0  # loss for each node at which patterns are not worth telling apart
_WEIGHTS = {"joint": 10.0, "rotation": 3.0, "translation": 1.0, "rotor": 1.0}
"""what a known zero or one is worth, by the part of the constants; elsewhere:"""
_WEIGHT = 0.25
_SPLITS = (
    ("rotation", "translation", "mass", "moment", "inertia", "joint", "rotor"),
    ("rotation", "translation", "joint"),
    ("rotation", "joint"),
    ("joint",),
    (),
)
"""the parts whose patterns are considered, finest first"""
_QUANTITIES = ("mass", "moment", "inertia")
"""parts in which a one is chance, and a zero is not"""
_ANY = 2.0  # in a pattern: not 0, 1 or -1


@dataclass(frozen=True)
class Kind:
    structure: Structure
    nodes: np.ndarray
    """indices of the nodes, ascending"""
    numbers: tuple[float | None, ...]
    """constants 0, 1 and -1 that all nodes share; None for the others, so that the code is for any"""
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


def kinds(tree: Tree) -> list[Kind]:
    """Of a tree, with its own symbols for the parameters; found once."""
    if "kinds" not in tree.found:
        tree.found["kinds"] = _kinds(tree, tree.parameter_symbols)
    return list(tree.found["kinds"])


def _kinds(tree: Tree, parameters: ca.SX) -> list[Kind]:
    groups = _by_structure(tree, parameters)
    split: tuple[str, ...] = ()
    for split in _SPLITS:
        if sum(len(group.patterns(split)) for group in groups) <= MANY:
            break
    clusters = dict(enumerate(cluster for group in groups for cluster in group.clusters(split)))
    losses = {(i, j): clusters[i].loss(clusters[j]) for i, j in itertools.combinations(clusters, 2)}
    while losses:
        i, j = min(losses, key=losses.__getitem__)
        count = len(clusters[i].members) + len(clusters[j].members)
        if losses[i, j] > ALIKE * count and (len(clusters) <= LIMIT or losses[i, j] == np.inf):
            break
        clusters[i] = clusters[i].merged(clusters.pop(j))
        losses = {pair: loss for pair, loss in losses.items() if not {i, j} & {*pair}}
        losses |= {(k, i): clusters[k].loss(clusters[i]) for k in clusters if k != i}
    return [cluster.group.kind(np.sort(cluster.members)) for cluster in clusters.values()]


@dataclass(frozen=True)
class _Cluster:
    """Nodes of one structure that are to be served together."""

    group: _Group
    members: np.ndarray
    pattern: np.ndarray

    def loss(self, other: _Cluster) -> float:
        """What is given up when the two are served together."""
        if self.group is not other.group:
            return np.inf
        weights = self.group.weights[self.pattern != other.pattern]
        return float(weights.sum()) * (len(self.members) + len(other.members))

    def merged(self, other: _Cluster) -> _Cluster:
        pattern = np.where(self.pattern == other.pattern, self.pattern, _ANY)
        return _Cluster(self.group, np.concatenate([self.members, other.members]), pattern)


@dataclass(frozen=True, eq=False)
class _Group:
    """All nodes of a structure."""

    structure: Structure
    nodes: np.ndarray
    values: np.ndarray
    """nodes x constants; NaN where a parameter enters"""
    expressions: dict[int, ca.SX]
    """the constants of the nodes that have parameters"""

    @cached_property
    def weights(self) -> np.ndarray:
        layout = self.structure.layout
        return np.concatenate([np.full(size, _WEIGHTS.get(name, _WEIGHT)) for name, size in layout])

    @cached_property
    def _plain(self) -> np.ndarray:
        """Which of the values save arithmetic where they stand: zeros, and ones where they are no chance."""
        layout = self.structure.layout
        ones = np.concatenate([np.full(size, name not in _QUANTITIES) for name, size in layout])
        return (self.values == 0.0) | (np.isin(self.values, PLAIN) & ones)

    def patterns(self, split: tuple[str, ...]) -> dict[bytes, list[int]]:
        """The nodes (as rows of `values`) by the pattern of their constants."""
        considered = np.concatenate([np.full(size, name in split) for name, size in self.structure.layout])
        known = self._plain & considered
        codes = np.where(known, self.values + 0.0, _ANY)
        found: dict[bytes, list[int]] = {}
        for k, row in enumerate(codes):
            found.setdefault(row.tobytes(), []).append(k)
        return found

    def clusters(self, split: tuple[str, ...]) -> Iterator[_Cluster]:
        for code, members in self.patterns(split).items():
            yield _Cluster(self, np.array(members), np.frombuffer(code))

    def kind(self, members: np.ndarray) -> Kind:
        values, nodes = self.values[members], self.nodes[members]
        computed = np.isnan(values).any(axis=0)
        shared = (values == values[0]).all(axis=0) & self._plain[members[0]]
        read = np.flatnonzero(~(computed | shared))
        expressions = []
        if computed.any():
            indices = np.flatnonzero(computed)
            for row, k in zip(values, nodes, strict=True):
                found = self.expressions.get(int(k))
                expressions.append(
                    ca.vertcat(*(ca.SX(row[j]) if found is None else found[int(j)] for j in indices))
                )
        return Kind(
            self.structure,
            nodes,
            tuple(float(x) if s else None for x, s in zip(values[0], shared, strict=True)),
            read,
            np.flatnonzero(computed),
            values[:, read],
            tuple(expressions),
        )


def _by_structure(tree: Tree, parameters: ca.SX) -> list[_Group]:
    members: dict[Structure, list[int]] = {}
    for k, structure in enumerate(tree.structures):
        members.setdefault(structure, []).append(k)
    groups = [_group(tree, structure, nodes, parameters) for structure, nodes in members.items()]
    if len(groups) <= STRUCTURES:
        return groups
    alike: dict[tuple[JointType, Carrier, str], list[_Group]] = {}
    for group in groups:
        s = group.structure
        alike.setdefault((s.joint, s.carrier, s.stiffening), []).append(group)
    return [_united(parts) for parts in alike.values()]


def _group(tree: Tree, structure: Structure, nodes: list[int], parameters: ca.SX) -> _Group:
    expressions: dict[int, ca.SX] = {}
    values = tree.numeric_constants(nodes)
    if values is None:
        rows, known = [], tree.named(parameters)
        for k in nodes:
            row = tree.numeric_constants([k])
            if row is None:
                expressions[k] = tree.constants(k, known)
                entries: list[Any] = expressions[k].elements()
                row = np.array([[float(x) if x.is_constant() else np.nan for x in entries]])
            rows.append(row)
        values = np.vstack(rows)
    return _Group(structure, np.array(nodes), values, expressions)


def _united(groups: list[_Group]) -> _Group:
    """Groups with the same type of joint, on the same kind of carrier, as one."""
    structures = [group.structure for group in groups]
    joint = structures[0].joint
    rotors = [dof for dof in range(joint.nv) for _ in range(max(s.rotors.count(dof) for s in structures))]
    union = Structure(
        joint,
        spring=any(s.spring for s in structures),
        viscous=any(s.viscous for s in structures),
        coulomb=any(s.coulomb for s in structures),
        armature=any(s.armature for s in structures),
        rotors=tuple(rotors),
        carrier=structures[0].carrier,
        stiffening=structures[0].stiffening,
        guarded=any(s.guarded for s in structures),
    )
    nothing = {"rest": joint.neutral(), "smoothing": np.ones(1)}  # zeros would be singular
    default = np.concatenate([nothing.get(name, np.zeros(size))[:size] for name, size in union.layout])
    values, expressions = [], {}
    for group in groups:
        places = _places(group.structure, union)
        rows = np.tile(default, (len(group.nodes), 1))
        rows[:, places] = group.values
        values.append(rows)
        for k, known in group.expressions.items():
            expressions[k] = ca.SX(default)
            for entry, place in enumerate(places):
                expressions[k][place] = known[entry]
    nodes = np.concatenate([group.nodes for group in groups])
    order = np.argsort(nodes)
    return _Group(union, nodes[order], np.vstack(values)[order], expressions)


def _places(structure: Structure, union: Structure) -> list[int]:
    """Where the constants of a structure are in those of one that has all it has."""
    starts, start = {}, 0
    for name, size in union.layout:
        starts[name], start = start, start + size
    found: list[int] = []
    for name, size in structure.layout:
        if name != "rotor":
            found += range(starts[name], starts[name] + size)
            continue
        for k, dof in enumerate(structure.rotors):
            rotor = union.rotors.index(dof) + structure.rotors[:k].count(dof)
            found += range(starts["rotor"] + 5 * rotor, starts["rotor"] + 5 * rotor + 5)
    return found

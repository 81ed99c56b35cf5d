"""The tree that the sweeps run over: the model's moving bodies.

Bodies on fixed joints are made one with what carries them, so that they cost nothing; every body of the model
keeps a constant placement on its node. Degrees of freedom are those of the model, in the same order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import UnsupportedError
from alembert.expression import Expression, Scalar, evaluate, names_in
from alembert.joints import Fixed, Friction
from alembert.joints.joint import ModalCoordinates
from alembert.joints.pair import normalised
from alembert.model import WORLD, Frame, Joint, Model, Placement
from alembert.model.inertia import Inertia
from alembert.model.modal import ModalBody, ModalNode
from alembert.model.placement import PlacementProduct, factored, plus, snap
from alembert.model.space import Owner
from alembert.spatial import RigidInertia, quaternion
from alembert.sweeps.node import RIGID, Carrier, Node, Structure

Where = Placement | PlacementProduct


@dataclass(frozen=True)
class Perch:
    """A node of a flexible body, where something hangs that moves with it."""

    body: ModalBody
    node: ModalNode


@dataclass(frozen=True)
class Tree:
    """The moving bodies of a model, as nodes.

    A flexible body is a node of its own below that of its joint, with the modes as its speeds; of its own nodes, those to
    which frames or bodies are fixed are nodes without speeds below it, the *stations*.
    """

    model: Model
    joints: tuple[Joint, ...]
    """one per node: the moving joints, and what stands for a joint of modes and stations"""
    parents: tuple[int, ...]
    flexible: tuple[ModalBody | None, ...]
    """the bodies whose modes are nodes"""
    places: tuple[Perch | None, ...]
    """where nodes hang that the modes of their parents move"""
    indices: Mapping[tuple[str, str], int]
    """the node that carries a body (name, "") or a station (name, node); -1 for the world"""

    @classmethod
    def of(cls, model: Model) -> Tree:
        joints: list[Joint] = []
        parents: list[int] = []
        flexible: list[ModalBody | None] = []
        places: list[Perch | None] = []
        indices = {(WORLD, ""): -1}
        stations = _stations(model)

        def add(joint: Joint, parent: int, body: ModalBody | None = None, place: Perch | None = None) -> int:
            joints.append(joint)
            parents.append(parent)
            flexible.append(body)
            places.append(place)
            return len(joints) - 1

        for body, joint in zip(model.bodies, model.joints, strict=True):
            if joint.type.nv:
                place = None
                if joint.node:
                    carrier = model.body(joint.parent).flexible
                    assert carrier is not None
                    place = Perch(carrier, carrier.node(joint.node))
                index = add(joint, indices[joint.parent, ""], place=place)
            else:
                index = indices[joint.parent, joint.node]
            if body.flexible is not None:
                modes = Joint(body.name, body.flexible.coordinates, joint.parent, body.name)
                index = add(modes, index, body=body.flexible)
                for name in stations.get(body.name, ()):
                    fixed = Joint(f"{body.name}.{name}", Fixed(), body.name, body.name)
                    station = Perch(body.flexible, body.flexible.node(name))
                    indices[body.name, name] = add(fixed, index, place=station)
            indices[body.name, ""] = index
        return cls(model, tuple(joints), tuple(parents), tuple(flexible), tuple(places), indices)

    @cached_property
    def has_modes(self) -> bool:
        return any(body is not None for body in self.flexible)

    @cached_property
    def mode_count(self) -> int:
        """The number of modes of all bodies together."""
        return sum(body.count for body in self.flexible if body is not None)

    @property
    def placements(self) -> tuple[Where, ...]:
        """X_PF of each node on its parent node (or on the world)"""
        return self._content[0]

    @property
    def ten_vectors(self) -> tuple[tuple[Scalar, ...], ...]:
        """mass, first and second moments of each node about its origin; welded bodies simply add up in them"""
        return self._content[1]

    @property
    def carriers(self) -> tuple[tuple[int, Where], ...]:
        """for each body of the model: its node (-1 for the world) and its placement on it"""
        return self._content[2]

    def carrier(self, frame: Frame) -> tuple[int, Where]:
        """The node that carries a frame (-1: it does not move) and the frame's placement on it."""
        if frame.body == WORLD:
            return -1, frame.placement
        if frame.node:
            return self.indices[frame.body, frame.node], frame.placement
        node, where = self.carriers[self.model.body_index(frame.body)]
        return node, frame.placement if where is _ORIGIN else where @ frame.placement

    @cached_property
    def _content(
        self,
    ) -> tuple[tuple[Where, ...], tuple[tuple[Scalar, ...], ...], tuple[tuple[int, Where], ...]]:
        """The constants, which a kernel from the cache does not need."""
        model = self.model
        placements: list[Where] = [_ORIGIN] * len(self)
        tens: list[tuple[Scalar, ...]] = [_NOTHING] * len(self)
        welded: dict[int, list[tuple[Inertia, Where]]] = {}
        carriers: dict[str, tuple[int, Where]] = {WORLD: (-1, _ORIGIN)}
        for body, joint in zip(model.bodies, model.joints, strict=True):
            index = self.indices[body.name, ""]
            carrier, offset = carriers[joint.parent]
            if joint.node:
                carrier, offset = self.indices.get((joint.parent, joint.node), carrier), _ORIGIN
            own = factored(joint.placement)
            where = own if offset is _ORIGIN else offset @ own
            if body.flexible is not None:
                carriers[body.name] = (index, _ORIGIN)
                placements[index - 1 if joint.type.nv else index] = where
                tens[index] = _integrals(body.flexible)
            elif joint.type.nv:
                carriers[body.name] = (index, _ORIGIN)
                placements[index] = where
                tens[index] = body.inertia.ten_vector()
            else:
                carriers[body.name] = (carrier, where)
                if carrier >= 0 and _is_text(body.inertia, where):
                    welded.setdefault(carrier, []).append((body.inertia, where))
                elif carrier >= 0:
                    assert isinstance(where, Placement)
                    if self.flexible[carrier] is not None:
                        raise UnsupportedError(
                            f"body {body.name!r} is fixed to the frame of the flexible body {joint.parent!r}; fix it to "
                            'one of its nodes (node="root"), where it is a body of its own'
                        )
                    added = body.inertia.at(where).ten_vector()
                    tens[carrier] = tuple(plus(a, b) for a, b in zip(tens[carrier], added, strict=True))
        for node, parts in welded.items():
            moments = _Moments(tens[node], tuple(parts))
            tens[node] = tuple(_Moment(moments, k) for k in range(10))
        return tuple(placements), tuple(tens), tuple(carriers[body.name] for body in model.bodies)

    def __len__(self) -> int:
        return len(self.joints)

    @cached_property
    def owners(self) -> tuple[Owner, ...]:
        """Who owns the coordinates and speeds of each node; stations have none."""
        return tuple(self._owner(k) for k in range(len(self)))

    def _owner(self, k: int) -> Owner:
        space, joint = self.model.space, self.joints[k]
        if self.flexible[k] is not None:
            return space.of_bodies[joint.name]
        if joint.type.nv:
            return space[self.model.joint_index(joint.name)]
        q, v = (x.stop for x in (space.of_bodies[joint.child].q, space.of_bodies[joint.child].v))
        return Owner(joint.name, joint.type, joint.limits, slice(q, q), slice(v, v))

    @cached_property
    def q_slices(self) -> tuple[slice, ...]:
        return tuple(owner.q for owner in self.owners)

    @cached_property
    def v_slices(self) -> tuple[slice, ...]:
        return tuple(owner.v for owner in self.owners)

    @cached_property
    def structures(self) -> tuple[Structure, ...]:
        known: dict[object, Structure] = {}
        return tuple(
            _structure(*parts, known)
            for parts in zip(self.joints, self.flexible, self.places, self._guarded(), strict=True)
        )

    def _guarded(self) -> list[bool]:
        """Whether each node moves a body that is displaced to second order."""
        found = [body is not None and body.is_consistent for body in self.flexible]
        for k in reversed(range(len(self))):
            if found[k] and self.parents[k] >= 0:
                found[self.parents[k]] = True
        return found

    @cached_property
    def found(self) -> dict[str, Any]:
        """What others found out about the tree, by name, and need again."""
        return {}

    @cached_property
    def parameter_symbols(self) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *(ca.SX.sym(name) for name, _ in self.model.parameters))

    def named(self, parameters: ca.SX) -> dict[str, ca.SX]:
        """The parameters by name."""
        entries: list[Any] = parameters.elements()
        return dict(zip(self.model.parameter_values, entries, strict=False))

    def constants(self, index: int, values: Mapping[str, ca.SX]) -> ca.SX:
        """The constants of a node with `SX` values for the parameters; numbers stay numbers."""
        pose = self.placements[index].symbolic_pose(values)
        entries = (*self.ten_vectors[index], *self._joint_constants(index))
        return ca.vertcat(
            ca.vec(ca.densify(pose.rotation).T),
            pose.translation,
            *(ca.SX(evaluate(entry, values)) for entry in entries),
        )

    def numeric_constants(self, indices: Sequence[int]) -> np.ndarray | None:
        """The constants of nodes of one structure by rows; None where one of them is an expression."""
        rows = []
        for k in indices:
            X = self.placements[k]
            if isinstance(X, PlacementProduct):
                return None
            rows.append((*X.quaternion, *X.translation, *self.ten_vectors[k], *self._joint_constants(k)))
        try:
            raw = np.array(rows, dtype=float)
        except TypeError:
            return None
        R = snap(quaternion.to_matrix(raw[:, 0:4].T)).reshape(3, 3, -1)
        return np.hstack([R.reshape(9, -1).T, raw[:, 4:]])

    def _joint_constants(self, index: int) -> tuple[Scalar, ...]:
        """What follows the inertia in the layout of the constants."""
        joint, structure = self.joints[index], self.structures[index]
        friction = joint.friction or _NO_FRICTION
        found = joint.type.constants()
        if joint.spring:
            rest = joint.spring.rest or tuple(float(x) for x in joint.type.neutral())
            found += (*joint.spring.stiffness, *rest)
        if structure.viscous:
            found += friction.viscous
        if structure.coulomb:
            found += (*friction.coulomb, friction.smoothing)
        if structure.armature:
            found += joint.armature
        for rotor in joint.rotors:
            found += (rotor.ratio, rotor.inertia, *normalised(rotor.axis))
        return found + self._modal_constants(index)

    def _modal_constants(self, index: int) -> tuple[Scalar, ...]:
        """In the order of the layouts of `Structure` and `Carrier`."""
        found: tuple[Scalar, ...] = ()
        body, place = self.flexible[index], self.places[index]
        if body is not None:
            found += _modal_integrals(body)
        if place is not None:
            node = place.node
            found += flattened((node.position, node.shapes, node.rotations))
            if place.body.stiffening == "consistent":
                found += flattened(node.foreshortening)
                found += () if node.turning is None else flattened(node.turning)
        return found

    def gravity(self, parameters: ca.SX) -> ca.SX:
        values = self.named(parameters)
        return ca.vertcat(*(ca.SX(evaluate(entry, values)) for entry in self.model.gravity))

    def nodes(self, parameters: ca.SX) -> list[Node]:
        known = not self.model.parameters or parameters is self.parameter_symbols
        return self._own_nodes if known else self._bound(parameters)

    @cached_property
    def _own_nodes(self) -> list[Node]:
        return self._bound(self.parameter_symbols)

    def _bound(self, parameters: ca.SX) -> list[Node]:
        values = self.named(parameters)
        return [Node(s, self.constants(k, values)) for k, s in enumerate(self.structures)]

    @cached_property
    def ancestors(self) -> tuple[tuple[int, ...], ...]:
        """For each node, itself and the nodes inboard of it, outermost first."""
        found: list[tuple[int, ...]] = []
        for k, parent in enumerate(self.parents):
            found.append((k, *(found[parent] if parent >= 0 else ())))
        return tuple(found)

    @cached_property
    def pairs(self) -> int:
        """How many pairs there are of a node and one inboard of it."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
        return sum(depths)

    @cached_property
    def support(self) -> np.ndarray:
        """(nodes + 1) x nv: whether a speed moves a node; the last row, for the world, is all false."""
        table = np.zeros((len(self) + 1, self.model.nv), dtype=bool)
        for k, chain in enumerate(self.ancestors):
            for j in chain:
                table[k, self.v_slices[j]] = True
        return table


_ORIGIN = Placement()
_NOTHING: tuple[Scalar, ...] = (0.0,) * 10


def _is_text(inertia: Inertia, where: Where) -> bool:
    """Whether moving the inertia would multiply expressions out."""
    if isinstance(where, PlacementProduct):
        return True
    entries = (inertia.mass, *inertia.com, *inertia.tensor, *where.translation)
    return bool(names_in(entries))


class _Moments:
    """The ten-vector of bodies that are welded together at places that depend on parameters."""

    def __init__(self, own: tuple[Scalar, ...], parts: tuple[tuple[Inertia, Where], ...]) -> None:
        self._own, self._parts = own, parts
        self._last: tuple[Any, tuple[Any, ...]] = (None, ())
        names = set(names_in(own))
        for inertia, where in parts:
            placements = where.parts if isinstance(where, PlacementProduct) else (where,)
            for x in placements:
                names |= names_in((x.translation, x.quaternion))
            names |= names_in((inertia.mass, inertia.com, inertia.tensor))
        self.names = frozenset(names)

    def at(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """All ten, for numbers or `SX`."""
        if self._last[0] is not values:
            symbolic = any(isinstance(x, ca.SX) for x in values.values())
            total = self._rigid(self._own, values)
            for inertia, where in self._parts:
                moved = self._rigid(inertia.ten_vector(), values)
                total = total + moved.transform(where.symbolic_pose(values))
            I = total.inertia
            tensor = (I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2])
            ten = (total.mass, *(total.moment[k] for k in range(3)), *tensor)
            self._last = (values, ten if symbolic else tuple(float(x) for x in ten))
        return self._last[1]

    @staticmethod
    def _rigid(ten: tuple[Scalar, ...], values: Mapping[str, Any]) -> RigidInertia:
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = (ca.SX(evaluate(x, values)) for x in ten)
        rows = (ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
        return RigidInertia(m, ca.vertcat(hx, hy, hz), ca.vertcat(*rows))


class _Moment(Expression):
    """An entry of them; there is no text of it."""

    def __init__(self, moments: _Moments, index: int) -> None:
        self._moments, self._index = moments, index
        self.text = f"moment {index} of the welded bodies {id(moments)}"

    @property
    def names(self) -> frozenset[str]:
        return self._moments.names

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        return self._moments.at(values)[self._index]


_NO_FRICTION = Friction()


def _stations(model: Model) -> dict[str, tuple[str, ...]]:
    """The nodes of flexible bodies to which frames and bodies are fixed, by body."""
    found: dict[str, dict[str, None]] = {}
    for frame in model.frames:
        if frame.node:
            found.setdefault(frame.body, {})[frame.node] = None
    for joint in model.joints:
        if joint.node and not joint.type.nv:
            found.setdefault(joint.parent, {})[joint.node] = None
    return {body: tuple(nodes) for body, nodes in found.items()}


def _integrals(body: ModalBody) -> tuple[Scalar, ...]:
    """Mass, first moment and second moment int x x' of the undeformed body, where rigid bodies have their ten-vector."""
    E = body.second_moment
    return (body.mass, *body.first_moment, E[0][0], E[0][1], E[1][1], E[0][2], E[1][2], E[2][2])


def _modal_integrals(body: ModalBody) -> tuple[Scalar, ...]:
    """In the order of the layout of `Structure`; what is symmetric in two modes has its lower triangle only."""
    n = body.count
    D, Tr = body.pair_products, body.foreshortening_products if body.is_consistent else None
    lower = [(k, l) for k in range(n) for l in range(k + 1)]
    products = [
        plus(D[k][l][i][j], Tr[k][l][i][j]) if Tr else D[k][l][i][j]
        for l in range(n)
        for k in range(n)
        for j in range(3)
        for i in range(3)
    ]
    mass = [plus(plus(D[k][l][0][0], D[k][l][1][1]), D[k][l][2][2]) for k, l in lower]
    matrices = [[matrix[k][l] for k, l in lower] for matrix in (body.stiffness, body.damping)]
    spins = [x for k in range(n) for l in range(k) for x in _vee(D[k][l])]
    found = flattened((body.shape_moments, body.shape_products))
    found += (*products, *spins, *mass, *matrices[0], *matrices[1])
    if Tr and body.foreshortening_moments:
        found += tuple(x for k, l in lower for x in body.foreshortening_moments[k][l])
        found += tuple(x for k, l in lower for x in _vee(Tr[k][l]))
    return found


def _vee(F: Sequence[Sequence[Scalar]]) -> tuple[Scalar, ...]:
    return tuple(F[i][j] - F[j][i] if F[j][i] else F[i][j] for i, j in ((2, 1), (0, 2), (1, 0)))


def flattened(values: Any) -> tuple[Scalar, ...]:
    if isinstance(values, tuple):
        return tuple(x for value in values for x in flattened(value))
    return (values,)


def _structure(
    joint: Joint, body: ModalBody | None, place: Perch | None, guarded: bool, known: dict[object, Structure]
) -> Structure:
    """The structure of a node; `known` keeps those of alike nodes."""
    friction = joint.friction or _NO_FRICTION
    options = (
        joint.spring is not None,
        any(x != 0.0 for x in friction.viscous),
        any(x != 0.0 for x in friction.coulomb),
        any(x != 0.0 for x in joint.armature),
        tuple(rotor.dof for rotor in joint.rotors),
    )
    carrier = RIGID
    if place is not None:
        turning = place.body.is_consistent and place.node.turning is not None
        carrier = Carrier(place.body.count, place.body.stiffening, turning)
    if body is not None:
        key: object = (body.count, body.stiffening, carrier, guarded)
        if key not in known:
            modes = ModalCoordinates(tuple(str(k) for k in range(body.count)), ("",) * body.count)
            known[key] = Structure(modes, carrier=carrier, stiffening=body.stiffening, guarded=guarded)
        return known[key]
    key = (type(joint.type), _shape(joint.type), options, carrier, guarded)
    if key not in known:
        template = joint.type.with_constants((0.0,) * len(joint.type.constants()))
        known[key] = Structure(template, *options, carrier=carrier, guarded=guarded)
    return known[key]


def _shape(joint: Any) -> tuple[object, ...]:
    """What joints of one class must have in common to have the same structure."""
    cls: Any = type(joint)
    numbers, others = _fields(cls)
    values = (getattr(joint, name) for name in numbers)
    sizes = (len(value) if isinstance(value, tuple) else -1 for value in values)
    return (*sizes, *(getattr(joint, name) for name in others))


@cache
def _fields(cls: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a joint type that hold numbers, and the others."""
    fields = [(field.name, bool(field.metadata.get("structural"))) for field in dataclasses.fields(cls)]
    return tuple(n for n, other in fields if not other), tuple(n for n, other in fields if other)

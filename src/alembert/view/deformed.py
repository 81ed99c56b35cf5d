"""Flexible bodies in pictures: pieces that move with their nodes.

For drawing, every node of a flexible body carries a body of its own, without mass and fixed to it, with a piece of the
picture: of a beam a length of tube about the node, of another body a ball with rods half way to its neighbours. So pages,
films and viewer draw what bends as they draw everything, by the poses of bodies. Coordinates stay those of the model.

Shapes for bodies that have none: capsules between joints, frames and centre of mass, or a box of equal inertia.

A box is drawn of bodies that float, of panels, and of what is no rod at the end of a tree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from alembert.expression import evaluate
from alembert.joints import Fixed
from alembert.model import (
    WORLD,
    Body,
    Box,
    Capsule,
    Cylinder,
    Frame,
    Inertia,
    Joint,
    ModalBody,
    Model,
    Placement,
    Sphere,
    Visual,
)
from alembert.model.checking import check

Array = np.ndarray

Color = tuple[float, ...]
COLORS = (
    (0.20, 0.44, 0.75, 1.0),
    (0.91, 0.55, 0.16, 1.0),
    (0.20, 0.62, 0.48, 1.0),
    (0.72, 0.36, 0.55, 1.0),
    (0.55, 0.58, 0.64, 1.0),
    (0.40, 0.66, 0.86, 1.0),
)
_DARK = (0.24, 0.26, 0.30, 1.0)
_THIN = 0.06  # of a typical link: the radius of a capsule
_ROD, _PANEL = (
    0.25,
    0.4,
)  # a body is a rod if its second edge is shorter than that of the longest; a panel: the third of the second


def palette(model: Model) -> list[Color]:
    """One colour per body: neighbours differ, and so do the branches of a tree."""
    found: list[Color] = []
    shades: list[int] = []
    for parent in model.parents:
        taken = {shades[parent]} if parent >= 0 else set()
        taken |= {shades[k] for k, other in enumerate(model.parents[: len(shades)]) if other == parent}
        shade = next((k for k in range(len(COLORS)) if k not in taken), len(shades) % len(COLORS))
        shades.append(shade)
        found.append(COLORS[shade])
    return found


def made_up_shapes(
    model: Model, body: int, values: Mapping[str, float], length: float, color: Color
) -> list[Visual]:
    """A mark of the joint, and the body itself."""
    radius = _THIN * length
    shapes: list[Visual] = []
    name = model.bodies[body].name
    inertia = model.bodies[body].inertia
    mass = float(evaluate(inertia.mass, values))
    com = np.array([float(evaluate(x, values)) for x in inertia.com])
    ends = [joint.placement.pose(values).translation for joint in model.joints if joint.parent == name]
    ends += [frame.placement.pose(values).translation for frame in model.frames if frame.body == name]
    ends = _distinct([end for end in ends if np.linalg.norm(end) > radius], radius)
    floating = model.joints[body].type.nv == 6 and model.joints[body].parent == WORLD
    edges, axes = _cuboid(inertia.matrix(values), mass) if mass > 0 else (np.zeros(3), np.eye(3))
    thin, middle, long = np.sort(edges)
    wide = middle > max(_ROD * long, 3 * radius)
    if mass > 0 and (
        floating
        or (wide and (not ends or thin < _PANEL * middle))
        or (not ends and np.linalg.norm(com) < 0.25 * radius)
    ):
        shapes.append(_box(edges, axes, com, radius, color))
        if not floating:  # what hangs on it, and the joint, may lie outside
            shapes += _struts([np.zeros(3), *ends], edges, axes, com, radius, color)
            ends = []
    elif not ends and mass > 0:
        ends = [2 * com]  # as if it were a rod from the joint
    shapes += [_rod(np.zeros(3), end, radius, color) for end in ends]
    if not shapes:
        shapes.append(Visual(Sphere(1.2 * radius), color=color))
    return joint_mark(model, body, values, radius) + shapes


def joint_mark(model: Model, body: int, values: Mapping[str, float], radius: float) -> list[Visual]:
    """A cylinder about an axis that turns, a box along one that slides, a sphere where there is more freedom."""
    joint = model.joints[body].type
    if joint.nv == 0 or joint.nv == 6:
        return []
    constants = [float(evaluate(x, values)) for x in joint.constants()]
    S = np.asarray(joint.with_constants(constants).subspace(joint.neutral()), dtype=float).reshape(6, -1)
    turning, sliding = S[:3, 0], S[3:, 0]
    if joint.nv > 1:
        return [Visual(Sphere(1.5 * radius), color=_DARK)]
    if np.linalg.norm(turning) > 1e-9:
        return [Visual(Cylinder(1.35 * radius, 3.0 * radius), along(turning, np.zeros(3)), _DARK)]
    return [Visual(Box((2.4 * radius, 2.4 * radius, 3.6 * radius)), along(sliding, np.zeros(3)), _DARK)]


def _struts(
    ends: list[Array], edges: Array, axes: Array, com: Array, radius: float, color: Color
) -> list[Visual]:
    """Rods from a box to those ends that lie outside of it."""
    found = []
    for end in ends:
        inside = com + axes @ np.clip(axes.T @ (end - com), -edges / 2, edges / 2)
        if np.linalg.norm(end - inside) > radius:
            found.append(_rod(inside, end, radius, color))
    return found


def _cuboid(tensor: Array, mass: float) -> tuple[Array, Array]:
    """Edges and axes of the cuboid with this inertia: Ixx = m (y^2 + z^2)/12 etc., x^2 = 6 (Iyy + Izz - Ixx)/m."""
    moments, axes = np.linalg.eigh(tensor)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return np.sqrt(np.maximum(6 * (moments.sum() - 2 * moments) / mass, 0.0)), axes


def _box(edges: Array, axes: Array, com: Array, radius: float, color: Color) -> Visual:
    """Not longer than five links: files have small parts with the inertia of large ones."""
    edges = np.clip(edges, 0.2 * radius, 5 / _THIN * radius)
    return Visual(Box(tuple(float(x) for x in edges)), Placement.from_matrix(axes, tuple(com)), color)


def _rod(start: Array, end: Array, radius: float, color: Color) -> Visual:
    length = float(np.linalg.norm(end - start))
    return Visual(Capsule(min(radius, 0.45 * length), length), along(end - start, (start + end) / 2), color)


def along(direction: Array, at: Any) -> Placement:
    """A frame at a point whose z axis has a direction."""
    z = direction / np.linalg.norm(direction)
    side = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(side, z)
    x /= np.linalg.norm(x)
    return Placement.from_matrix(np.column_stack([x, np.cross(z, x), z]), tuple(float(c) for c in at))


def _distinct(points: list[Array], apart: float) -> list[Array]:
    found: list[Array] = []
    for point in points:
        if all(np.linalg.norm(point - other) > apart for other in found):
            found.append(point)
    return found


THIN = 0.012
"""radius of a tube, by the extent of its body"""
THICK = 0.03
"""the same of segments"""
_KNOWN: WeakValueDictionary[str, Model] = WeakValueDictionary()


def piece(body: str, node: str) -> str:
    """The name of the body at a node."""
    return f"{body} at {node}"


def drawn(model: Model) -> Model:
    """The model with a body at every node of its flexible bodies; itself where it has none."""
    if not model.space.of_bodies:
        return model
    found = _KNOWN.get(model.fingerprint)
    if found is None:
        found = _KNOWN[model.fingerprint] = _with_pieces(model)
        _KNOWN[found.fingerprint] = found  # what is drawn is drawn as it is
    return found


def whole(model: Model) -> dict[str, str]:
    """Of the bodies at nodes, the flexible body that each is a piece of."""
    return {
        piece(body.name, node.name): body.name
        for body in model.bodies
        if body.flexible is not None
        for node in body.flexible.nodes
    }


def farthest(name: str, body: ModalBody, values: Mapping[str, float]) -> str:
    """The piece of a flexible body that is farthest from its frame."""
    places = {
        node.name: np.linalg.norm([float(evaluate(x, values)) for x in node.position]) for node in body.nodes
    }
    return piece(name, max(places, key=lambda node: places[node])) if places else name


def exaggerations(model: Model, q: Array) -> tuple[int, ...]:
    """Factors that make small deformations (N, nq) visible, up to a third of the length of a body."""
    share = 0.0
    for name, owner in model.space.of_bodies.items():
        body = model.body(name).flexible
        assert body is not None
        places, shapes = (
            np.array([_numbers(getattr(node, field), model) for node in body.nodes], dtype=float)
            for field in ("position", "shapes")
        )
        if not len(places):
            continue
        moved = np.abs(np.einsum("tk,pki->tpi", q[:, owner.q], shapes)).max(initial=0.0)
        extent = float(np.linalg.norm(np.ptp(places, axis=0))) or 1.0
        share = max(share, float(moved) / extent)
    if not share > 1e-9:
        return ()
    steps = [f * 10**k for k in range(7) for f in (2, 5, 10) if f * 10**k * share <= 0.35]
    return tuple(sorted(set(steps)))[-5:]


def _numbers(values: Any, model: Model) -> Any:
    if isinstance(values, tuple):
        return [_numbers(x, model) for x in values]
    return model.value(values)


def _with_pieces(model: Model) -> Model:
    bodies, joints = list(model.bodies), list(model.joints)
    welded = [
        joint for joint in joints if joint.node and not joint.type.nv and model.body(joint.child).flexible
    ]
    chained = {name for joint in welded for name in (joint.parent, joint.child)}
    for body, color in zip(model.bodies, palette(model), strict=True):
        if body.flexible is None:
            continue
        shapes = _shapes(body.flexible, model, color, THICK if body.name in chained else THIN)
        for node in body.flexible.nodes:
            name = piece(body.name, node.name)
            visuals = () if body.visuals else tuple(shapes[node.name])
            bodies.append(Body(name, Inertia(), visuals))
            joints.append(Joint(f"{name}.", Fixed(), body.name, name, node=node.name))
    frames = tuple(
        Frame(frame.name, piece(frame.body, frame.node), frame.placement) if frame.node else frame
        for frame in model.frames
    )
    return check(dataclasses.replace(model, bodies=tuple(bodies), joints=tuple(joints), frames=frames))


def _shapes(body: ModalBody, model: Model, color: Color, thickness: float) -> dict[str, list[Visual]]:
    """What each node carries, in its own axes."""
    places = {
        node.name: np.array([model.value(x) for x in node.position], dtype=float) for node in body.nodes
    }
    points = np.array(list(places.values())).reshape(-1, 3)
    extent = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
    radius = thickness * extent or 0.01
    found: dict[str, list[Visual]] = {name: [] for name in places}
    for a, b in _neighbours(places):
        for one, other in ((a, b), (b, a)):
            half = (places[other] - places[one]) / 2
            length = float(np.linalg.norm(half))
            if length > 0:
                found[one].append(Visual(Capsule(radius, length), along(half, half / 2), color))
    ball = radius if _is_line(points) else 2 * radius
    for name, visuals in found.items():
        if not visuals or ball > radius:
            found[name] = [*visuals, Visual(Sphere(ball), Placement(), color)]
    return found


def _is_line(points: Array) -> bool:
    sizes = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) if len(points) > 1 else np.zeros(1)
    return bool(len(sizes) > 1 and sizes[1] < 1e-6 * sizes[0])


def _neighbours(places: dict[str, Array]) -> Iterator[tuple[str, str]]:
    """Pairs of nodes that hold all together with the least length of rods."""
    names = list(places)
    reached = names[:1]
    left = names[1:]
    while left:
        pairs = [(float(np.linalg.norm(places[a] - places[b])), a, b) for a in reached for b in left]
        _, a, b = min(pairs, key=lambda pair: pair[0])
        yield a, b
        reached.append(b)
        left.remove(b)

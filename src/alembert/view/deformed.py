"""Flexible bodies in pictures: pieces that move with their nodes.

For drawing, every node of a flexible body carries a body of its own, without mass and fixed to it, with a piece of the
picture: of a beam a length of tube about the node, of another body a ball with rods half way to its neighbours. So pages,
films and viewer draw what bends as they draw everything, by the poses of bodies. Coordinates stay those of the model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from alembert.expression import evaluate
from alembert.joints import Fixed
from alembert.model import Body, Capsule, Frame, Inertia, Joint, ModalBody, Model, Placement, Sphere, Visual
from alembert.model.checking import check
from alembert.view.made_up import along, palette

Array = np.ndarray
Color = tuple[float, ...]
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

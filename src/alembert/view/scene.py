"""What is drawn of a model: shapes on bodies, frames, centres of mass, inertia ellipsoids, loops and sensors.

One description, without a window: the page, the live viewer and the tests read the same `Scene`. Everything hangs on
a body by its index (-1: the world) at a constant pose; where the bodies are is asked of the model (`body_poses`). Bodies
are those of the model, and those that carry the pieces of flexible ones (`alembert.view.deformed`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.algorithms import frames as frame_poses
from alembert.errors import FileError, warn
from alembert.model import WORLD, Box, Capsule, Cylinder, Ellipsoid, Mesh, Model, Sphere, Visual
from alembert.spatial import Pose
from alembert.view import meshes
from alembert.view.deformed import drawn, joint_mark, made_up_shapes, palette, whole
from alembert.view.meshes import Surface

Array = np.ndarray
GREY = (0.62, 0.65, 0.70, 1.0)
DARK = (0.24, 0.26, 0.30, 1.0)
MOST_TRIANGLES = 120_000  # of all meshes together: some megabytes in a page, and quick to draw
_THINNEST = 0.02  # of the largest half-axis of an ellipsoid: a rod's has no width


@dataclass(frozen=True, eq=False)
class ScenePart:
    """A shape on a body. `kind` is box, sphere, cylinder or mesh; unit shapes, made larger by `scale` along x, y, z.

    The unit box has edges 1, the unit sphere and cylinder radius 1, the cylinder length 1 along z.
    """

    kind: str
    body: int
    pose: Pose
    scale: tuple[float, float, float]
    color: tuple[float, float, float, float]
    mesh: int = -1
    """index in `Scene.meshes`"""
    made_up: bool = False

    @property
    def matrix(self) -> Array:
        """4 x 4, from the unit shape to the body."""
        M = np.eye(4)
        M[:3, :3] = self.pose.rotation * np.array(self.scale)
        M[:3, 3] = self.pose.translation
        return M


@dataclass(frozen=True, eq=False)
class NamedFrame:
    """A named place on a body: a frame, a sensor (`kind`), an end of a loop."""

    name: str
    body: int
    pose: Pose
    kind: str = ""


@dataclass(frozen=True, eq=False)
class Mass:
    """A body's centre of mass, and the ellipsoid of uniform density with the same mass and inertia."""

    body: int
    mass: float
    pose: Pose
    radii: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Scene:
    """All there is to draw. `length` is about the size of one link [m]; `up` is against gravity."""

    name: str
    bodies: tuple[str, ...]
    parts: tuple[ScenePart, ...]
    meshes: tuple[Surface, ...]
    frames: tuple[NamedFrame, ...]
    masses: tuple[Mass, ...]
    loops: tuple[tuple[NamedFrame, NamedFrame], ...]
    sensors: tuple[NamedFrame, ...]
    joints: tuple[NamedFrame, ...]
    up: tuple[float, float, float]
    gravity: float
    length: float


def scene(model: Model, *, parameters: Mapping[str, float] | None = None) -> Scene:
    """The scene of a model; shapes that its bodies do not have are made up from joints, frames and inertia."""
    values = model.parameter_values | dict(parameters or {})
    length = typical_length(model, values)
    pieces, model = whole(model), drawn(model)
    parts, surfaces = _parts(model, values, length, pieces)
    g = np.array([_number(x, values) for x in model.gravity])
    size = float(np.linalg.norm(g))
    up = -g / size if size else np.array([0.0, 0.0, 1.0])
    index = {WORLD: -1, **model.body_indices}

    def mark(name: str, frame: str, kind: str = "") -> NamedFrame:
        place = model.frame(frame)
        return NamedFrame(name, index[place.body], place.placement.pose(values), kind)

    return Scene(
        model.name,
        tuple(pieces.get(body.name, body.name) for body in model.bodies),
        tuple(parts),
        tuple(surfaces),
        tuple(mark(frame.name, frame.name) for frame in model.frames),
        tuple(_masses(model, values)),
        tuple((mark(x.name, x.frame_a), mark(x.name, x.frame_b)) for x in model.loops),
        tuple(
            mark(s.name, model.joint(s.target).child if s.of_joint else s.target, s.kind)
            for s in model.sensors
        ),
        tuple(
            NamedFrame(joint.name, index[joint.child], Pose.identity(), joint.type.kind)
            for joint in model.joints
            if joint.child not in pieces
        ),
        (float(up[0]), float(up[1]), float(up[2])),
        size,
        length,
    )


def body_poses(model: Model, q: Any, *, parameters: Mapping[str, Any] | None = None) -> tuple[Array, Array]:
    """Rotations (..., bodies, 3, 3) and origins (..., bodies, 3) of all bodies in the world."""
    model.check_configuration(q)
    model = drawn(model)
    X = model.compute.evaluate("poses", (q,), parameters=parameters, caller="view")
    found = [
        frame_poses.pose(X, *model.compute.locate("view", body.name, _scalars(parameters)))
        for body in model.bodies
    ]
    if not found:
        shape = X.shape[:-2]
        return np.zeros((*shape, 0, 3, 3)), np.zeros((*shape, 0, 3))
    return (
        np.stack([pose.rotation for pose in found], axis=-3),
        np.stack([pose.translation for pose in found], axis=-2),
    )


def _scalars(parameters: Mapping[str, Any] | None) -> dict[str, float] | None:
    if parameters is None:
        return None
    return {name: float(np.asarray(value).flat[0]) for name, value in parameters.items()}


def typical_length(model: Model, values: Mapping[str, float]) -> float:
    """About the length of a link [m]: the median distance between joints and frames on the same body, or its extent."""
    found = []
    for joint in model.joints:
        if joint.parent != WORLD:
            found.append(float(np.linalg.norm(joint.placement.pose(values).translation)))
    for frame in model.frames:
        found.append(float(np.linalg.norm(frame.placement.pose(values).translation)))
    for body in model.bodies:
        mass = _number(body.inertia.mass, values)
        if mass > 0:
            com = np.array([_number(x, values) for x in body.inertia.com])
            gyration = math.sqrt(max(np.trace(body.inertia.matrix(values)), 0.0) / 2 / mass)
            found.append(2 * float(np.linalg.norm(com)))
            found.append(2 * gyration)
    found = [x for x in found if x > 1e-6]
    return float(np.median(found)) if found else 1.0


# --- shapes -------------------------------------------------------------------------------------------------


def _parts(
    model: Model, values: Mapping[str, float], length: float, pieces: Mapping[str, str]
) -> tuple[list[ScenePart], list[Surface]]:
    parts: list[ScenePart] = []
    files = _Files()
    colors = palette(model)
    bare = not any(body.visuals for body in model.bodies if body.name not in pieces)
    for visual in model.visuals:
        parts += _visual_parts(visual, -1, values, files)
    for i, body in enumerate(model.bodies):
        own: list[ScenePart] = []
        for visual in body.visuals:
            own += _visual_parts(visual, i, values, files)
        heavy = _number(body.inertia.mass, values) > 0 and model.joints[i].type.nv > 0
        if body.flexible is not None and not own:
            marks = joint_mark(model, i, values, 0.03 * length)
            own = [part for v in marks for part in _visual_parts(v, i, values, files, made_up=True)]
        elif not own and body.name not in pieces and (bare or body.visuals or heavy):
            # not what is only a place on a body that is drawn
            shapes = made_up_shapes(model, i, values, length, colors[i])
            own = [part for v in shapes for part in _visual_parts(v, i, values, files, made_up=True)]
        parts += own + _anchor(model, i, values, length)
    files.warn()
    total = sum(len(surface.faces) for surface in files.surfaces)
    surfaces = files.surfaces
    if total > MOST_TRIANGLES:
        share = MOST_TRIANGLES / total
        surfaces = [meshes.simplified(s, max(40, int(share * len(s.faces)))) for s in surfaces]
    return parts, surfaces


def _anchor(model: Model, body: int, values: Mapping[str, float], length: float) -> list[ScenePart]:
    """A knob in the world where a joint holds a body to it, so that it does not hang from nothing."""
    joint = model.joints[body]
    if joint.parent != WORLD or not 0 < joint.type.nv < 6:
        return []
    size = 0.07 * length
    return [ScenePart("sphere", -1, joint.placement.pose(values), (size, size, size), DARK, made_up=True)]


def _visual_parts(
    visual: Visual, body: int, values: Mapping[str, float], files: _Files, *, made_up: bool = False
) -> list[ScenePart]:
    X = visual.placement.pose(values)
    given = None if visual.color is None else tuple(_unit(_number(x, values)) for x in visual.color)
    color: Any = given or GREY

    def part(kind: str, scale: Any, at: Pose = X, mesh: int = -1, color: Any = color) -> ScenePart:
        x, y, z = (float(entry) for entry in scale)
        return ScenePart(kind, body, at, (x, y, z), color, mesh, made_up)

    match visual.shape:
        case Box(size):
            return [part("box", size)]
        case Sphere(radius):
            return [part("sphere", (radius,) * 3)]
        case Ellipsoid(radii):
            return [part("sphere", radii)]
        case Cylinder(radius, length):
            return [part("cylinder", (radius, radius, length))]
        case Capsule(radius, length):
            ends = [X @ Pose(np.eye(3), np.array([0.0, 0.0, z])) for z in (-length / 2, length / 2)]
            caps = [part("sphere", (radius,) * 3, end) for end in ends]
            return [part("cylinder", (radius, radius, length)), *caps] if length > 0 else caps[:1]
        case Mesh(path, scale):
            factors = [_number(x, values) for x in scale]
            return [part("mesh", factors, X, k, given or own or GREY) for k, own in files.get(path)]
    return []


class _Files:
    """Each mesh file once; those that cannot be read are warned about together."""

    def __init__(self) -> None:
        self.surfaces: list[Surface] = []
        self._known: dict[str, list[tuple[int, Any]]] = {}
        self._problems: list[str] = []

    def get(self, path: str) -> list[tuple[int, Any]]:
        if path not in self._known:
            try:
                found = meshes.read(path)
            except FileError as error:
                self._problems.append(str(error))
                found = []
            first = len(self.surfaces)
            self.surfaces += found
            self._known[path] = [(first + k, surface.color) for k, surface in enumerate(found)]
        return self._known[path]

    def warn(self) -> None:
        if self._problems:
            more = f" (and {len(self._problems) - 1} more)" if len(self._problems) > 1 else ""
            warn(f"view: a mesh is drawn as a made-up shape: {self._problems[0]}{more}")


# --- masses -------------------------------------------------------------------------------------------------


def _masses(model: Model, values: Mapping[str, float]) -> list[Mass]:
    """Centres of mass and ellipsoids: with Ixx = m (b^2 + c^2)/5 etc., a^2 = 5 (Iyy + Izz - Ixx)/(2 m)."""
    found = []
    for i, body in enumerate(model.bodies):
        mass = _number(body.inertia.mass, values)
        if mass <= 0:
            continue
        com = np.array([_number(x, values) for x in body.inertia.com])
        moments, axes = np.linalg.eigh(body.inertia.matrix(values))
        if np.linalg.det(axes) < 0:
            axes[:, 0] *= -1
        squares = np.maximum(5 * (moments.sum() - 2 * moments) / (2 * mass), 0.0)
        radii = np.sqrt(squares)
        radii = np.maximum(radii, _THINNEST * radii.max(initial=0.0))
        a, b, c = (float(r) for r in radii)
        found.append(Mass(i, mass, Pose(axes, com), (a, b, c)))
    return found


def _number(value: Any, values: Mapping[str, float]) -> float:
    from alembert.expression import evaluate

    return float(evaluate(value, values))


def _unit(x: float) -> float:
    return min(max(x, 0.0), 1.0)

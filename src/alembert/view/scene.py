"""What is drawn of a model: shapes on bodies, frames, centres of mass, inertia ellipsoids, loops and sensors.

One description, without a window: the page, the live viewer and the tests read the same `Scene`. Everything hangs on
a body by its index (-1: the world) at a constant pose; where the bodies are is asked of the model (`body_poses`). Bodies
are those of the model, and those that carry the pieces of flexible ones (`alembert.view.deformed`).

Surfaces from mesh files: STL, OBJ and Collada (DAE) read here, other formats with trimesh where it is installed.

A mesh file is untrusted: it is read as data, without entities, references to other places or code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np

from alembert.algorithms import frames as frame_poses
from alembert.errors import FileError, warn
from alembert.model import WORLD, Box, Capsule, Cylinder, Ellipsoid, Mesh, Model, Sphere, Visual
from alembert.spatial import Pose
from alembert.view.deformed import drawn, joint_mark, made_up_shapes, palette, whole

Array = np.ndarray
LARGEST_FILE = 200_000_000  # bytes
MOST_NODES, MOST_TRIANGLES, MOST_LIBRARIES = 100_000, 20_000_000, 10
Color = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles: `vertices` (n, 3) in metres and `faces` (m, 3); the file's own colour where it has one."""

    vertices: Array
    faces: Array
    color: Color | None = None


def read_mesh(path: str | Path) -> list[Surface]:
    """The surfaces in a file; a `FileError` says why there are none."""
    name, path = path, Path(path)
    try:
        if not path.is_file():
            raise FileError(f"{name}: the mesh file is not there")
        if path.stat().st_size > LARGEST_FILE:
            raise FileError(
                f"{path}: the mesh file has {path.stat().st_size / 1e6:.0f} MB, expected at most 200"
            )
        reader = {".stl": _stl, ".obj": _obj, ".dae": _collada}.get(path.suffix.lower(), _with_trimesh)
        found = [_clean(surface) for surface in reader(path)]
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, IndexError, KeyError, AttributeError, TypeError, ElementTree.ParseError) as error:
        raise FileError(f"{path}: is no readable {path.suffix.lstrip('.').upper()} mesh: {error}") from None
    found = [surface for surface in found if len(surface.faces)]
    if not found:
        raise FileError(f"{path}: has no triangles")
    return found


def _clean(surface: Surface) -> Surface:
    """Equal vertices merged, triangles without area or with wrong indices dropped."""
    vertices = np.asarray(surface.vertices, dtype=np.float32).reshape(-1, 3)
    faces = np.asarray(surface.faces, dtype=np.int64).reshape(-1, 3)
    inside = np.all((faces >= 0) & (faces < len(vertices)), axis=1)
    if not np.all(np.isfinite(vertices)):
        raise ValueError("a vertex is not finite")
    unique, where = np.unique(vertices, axis=0, return_inverse=True)
    return Surface(unique, _proper(where.reshape(-1)[faces[inside]]), surface.color)


def _proper(faces: Array) -> Array:
    a, b, c = faces.T
    return faces[(a != b) & (b != c) & (c != a)]


def simplified(surface: Surface, triangles: int) -> Surface:
    """At most about so many triangles: vertices in a cell of a grid become their mean, the grid as fine as it may be."""
    if len(surface.faces) <= triangles:
        return surface
    low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
    size = max(float(np.max(high - low)), 1e-12)
    cells = math.sqrt(triangles / 2)  # a closed surface crosses about 6 cells^2 of them
    found = surface
    for _ in range(12):
        keys = np.floor((surface.vertices - low) / size * cells).astype(np.int64)
        _, where, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        where = where.reshape(-1)
        means = np.stack([np.bincount(where, surface.vertices[:, k]) / counts for k in range(3)], axis=1)
        faces = _proper(where[surface.faces])
        faces = np.unique(faces, axis=0) if len(faces) else faces
        found = Surface(means.astype(np.float32), faces, surface.color)
        if len(faces) <= triangles:
            break
        cells *= 0.8
    return found


# --- STL ----------------------------------------------------------------------------------------------------


def _stl(path: Path) -> list[Surface]:
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if len(data) == 84 + 50 * count:
        record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
        corners = np.frombuffer(data, record, count, 84)["corners"].reshape(-1, 3)
    else:
        words = data.decode("utf-8", "replace").split()
        places = [k for k, word in enumerate(words) if word == "vertex"]
        corners = np.array([[float(x) for x in words[k + 1 : k + 4]] for k in places]).reshape(-1, 3)
    if len(corners) % 3:
        raise ValueError("a facet has other than three corners")
    return [Surface(corners, np.arange(len(corners)).reshape(-1, 3))]


# --- OBJ ----------------------------------------------------------------------------------------------------


def _obj(path: Path) -> list[Surface]:
    vertices: list[list[float]] = []
    groups: dict[str, list[list[int]]] = {}
    colors: dict[str, Color] = {}
    material = ""
    libraries: set[str] = set()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        word, *rest = line.split() or [""]
        if word == "v":
            vertices.append([float(x) for x in rest[:3]])
        elif word == "f":
            corners = [int(entry.split("/")[0]) for entry in rest]
            corners = [k - 1 if k > 0 else len(vertices) + k for k in corners]
            groups.setdefault(material, []).extend(_fan(corners))
        elif word == "usemtl":
            material = " ".join(rest)
        elif (
            word == "mtllib" and (name := " ".join(rest)) not in libraries and len(libraries) < MOST_LIBRARIES
        ):
            libraries.add(name)
            colors |= _mtl(path, name)
    return [Surface(np.array(vertices), np.array(f), colors.get(name)) for name, f in groups.items()]


def _mtl(path: Path, name: str) -> dict[str, Color]:
    """Diffuse colours of a material library beside the file; one that is elsewhere is not read."""
    library = path.parent / Path(name).name
    colors: dict[str, Color] = {}
    if not library.is_file() or library.stat().st_size > LARGEST_FILE:
        return colors
    current = ""
    for line in library.read_text(encoding="utf-8", errors="replace").splitlines():
        word, *rest = line.split() or [""]
        if word == "newmtl":
            current = " ".join(rest)
        elif word == "Kd" and len(rest) >= 3:
            colors[current] = (*(min(max(float(x), 0.0), 1.0) for x in rest[:3]), 1.0)
    return colors


def _fan(corners: list[int]) -> list[list[int]]:
    return [[corners[0], corners[k], corners[k + 1]] for k in range(1, len(corners) - 1)]


# --- Collada ------------------------------------------------------------------------------------------------


def _collada(path: Path) -> list[Surface]:
    """Triangles and polygons under the nodes of the scene, in metres with z up, with plain diffuse colours."""
    text = path.read_bytes().decode("utf-8-sig")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares entities")
    root = ElementTree.fromstring(text)
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    ids = {element.get("id"): element for element in root.iter() if element.get("id")}
    unit = root.find("asset/unit")
    top = np.eye(4) * float(unit.get("meter", "1") if unit is not None else "1")
    up = (root.findtext("asset/up_axis") or "Y_UP").strip()
    if up == "Y_UP":
        top[:3, :3] = top[:3, :3] @ np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    elif up == "X_UP":
        top[:3, :3] = top[:3, :3] @ np.array([[0, -1.0, 0], [0, 0, -1.0], [1.0, 0, 0]])
    found: list[Surface] = []
    left = itertools.count(MOST_NODES, -1)
    triangles = 0
    for scene in root.findall("library_visual_scenes/visual_scene"):
        for node in scene.findall("node"):
            for surface in _collada_node(node, top, ids, 0, left):
                found.append(surface)
                triangles += len(surface.faces)
                if triangles > MOST_TRIANGLES:
                    raise ValueError(f"it has more than {MOST_TRIANGLES} triangles")
    if not found:  # a file without a scene
        for geometry in root.findall("library_geometries/geometry"):
            found += list(_collada_geometry(geometry, top, {}, ids))
    return found


def _collada_node(
    node: Any, above: Array, ids: dict[Any, Any], depth: int, left: Iterator[int]
) -> Iterator[Surface]:
    """The surfaces below a node; `left` counts how many more nodes may be visited, as one may be named many times."""
    if depth > 100:
        raise ValueError("its nodes are nested too deep")
    if next(left) == 0:
        raise ValueError(f"it has more than {MOST_NODES} nodes")
    T = above @ _collada_transform(node)
    for instance in node.findall("instance_geometry"):
        geometry = ids.get(unquote(instance.get("url", "")[1:]))
        if geometry is not None:
            bound = {m.get("symbol"): m.get("target", "")[1:] for m in instance.iter("instance_material")}
            yield from _collada_geometry(geometry, T, bound, ids)
    for child in node.findall("node"):
        yield from _collada_node(child, T, ids, depth + 1, left)
    for instance in node.findall("instance_node"):
        child = ids.get(instance.get("url", "")[1:])
        if child is not None:
            yield from _collada_node(child, T, ids, depth + 1, left)


def _collada_transform(node: Any) -> Array:
    T = np.eye(4)
    for element in node:
        step = np.eye(4)
        if element.tag not in ("matrix", "translate", "rotate", "scale"):
            continue
        x = _floats(element.text)
        if element.tag == "matrix":
            step = x.reshape(4, 4)
        elif element.tag == "translate":
            step[:3, 3] = x
        elif element.tag == "scale":
            step[:3, :3] = np.diag(x)
        else:
            axis, angle = x[:3] / max(np.linalg.norm(x[:3]), 1e-12), math.radians(x[3])
            skew = np.cross(np.eye(3), -axis)
            step[:3, :3] += math.sin(angle) * skew + (1 - math.cos(angle)) * skew @ skew
        T = T @ step
    return T


def _collada_geometry(
    geometry: Any, T: Array, bound: dict[Any, str], ids: dict[Any, Any]
) -> Iterator[Surface]:
    mesh = geometry.find("mesh")
    if mesh is None:
        return
    for part in mesh:
        if part.tag not in ("triangles", "polylist", "polygons"):
            continue
        inputs = part.findall("input")
        stride = max(int(i.get("offset", "0")) for i in inputs) + 1
        vertex = next(i for i in inputs if i.get("semantic") == "VERTEX")
        points = ids[vertex.get("source")[1:]]
        position = next(i for i in points.findall("input") if i.get("semantic") == "POSITION")
        xyz = _floats(ids[position.get("source")[1:]].findtext("float_array")).reshape(-1, 3)
        offset = int(vertex.get("offset", "0"))
        lists = [np.array((p.text or "").split(), dtype=np.int64)[offset::stride] for p in part.findall("p")]
        if part.tag == "triangles":
            faces = np.concatenate(
                [np.zeros((0, 3), dtype=np.int64), *(k[: len(k) // 3 * 3].reshape(-1, 3) for k in lists)]
            )
        else:
            if part.tag == "polylist":
                ends = np.cumsum([int(x) for x in (part.findtext("vcount") or "").split()])
                lists = np.split(lists[0], ends[:-1]) if lists and len(ends) else []
            faces = np.array([t for k in lists for t in _fan(k.tolist())])
        yield Surface(xyz @ T[:3, :3].T + T[:3, 3], faces, _collada_color(part.get("material"), bound, ids))


def _collada_color(symbol: str | None, bound: dict[Any, str], ids: dict[Any, Any]) -> Color | None:
    material = ids.get(bound.get(symbol) or symbol)
    instance = material.find("instance_effect") if material is not None else None
    effect = ids.get(instance.get("url", "")[1:]) if instance is not None else None
    text = effect.findtext(".//diffuse/color") if effect is not None else None
    if not text:
        return None
    color = np.clip(_floats(text), 0, 1)
    return (*(float(x) for x in color[:3]), 1.0) if len(color) >= 3 else None


def _floats(text: str | None) -> Array:
    return np.array((text or "").split(), dtype=float)


# --- others -------------------------------------------------------------------------------------------------


def _with_trimesh(path: Path) -> list[Surface]:
    try:
        import trimesh
    except ImportError:
        raise FileError(
            f"{path}: {path.suffix or 'files without a suffix'} meshes are read with trimesh, which is not installed; "
            'pip install "alembert[view]"'
        ) from None
    try:
        scene = trimesh.load(path, force="scene")
        return [Surface(np.asarray(m.vertices), np.asarray(m.faces)) for m in scene.dump()]
    except Exception as error:  # whatever the reader of some format raises
        raise FileError(f"{path}: cannot be read as a mesh: {error}") from None


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
        surfaces = [simplified(s, max(40, int(share * len(s.faces)))) for s in surfaces]
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
                found = read_mesh(path)
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

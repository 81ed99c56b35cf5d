"""The shapes that MuJoCo's viewer shows of a body, from its geoms."""

from __future__ import annotations

import numpy as np

from alembert.model.elements import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere, Visual
from alembert.model.io.mjcf_source import Contents
from alembert.model.placement import Placement

_TEXTURED = (0.66, 0.69, 0.72, 1.0)
_HIDDEN_GROUP = 3  # geom groups from here on are not shown by MuJoCo's viewer: collision shapes


def visuals(contents: Contents, body: int) -> list[Visual]:
    m = contents.m
    found = []
    for g in range(m.body_geomadr[body], m.body_geomadr[body] + m.body_geomnum[body]):
        if m.geom_group[g] >= _HIDDEN_GROUP:
            continue
        where = Placement(tuple(m.geom_pos[g]), tuple(m.geom_quat[g]))
        drawn = _shape(contents, g, where)
        material = int(m.geom_matid[g])
        color = m.mat_rgba[material] if material >= 0 else m.geom_rgba[g]
        if material >= 0 and np.any(m.mat_texid[material] >= 0) and np.all(color[:3] == 1):
            color = _TEXTURED  # of a texture, which is not drawn; white would outshine what stands on it
        if drawn:
            found.append(Visual(*drawn, tuple(float(x) for x in color)))
    return found


def _shape(contents: Contents, g: int, where: Placement) -> tuple[Shape, Placement] | None:
    kinds = contents.mujoco.mjtGeom
    a, b, c = (float(x) for x in contents.m.geom_size[g])
    kind = contents.m.geom_type[g]
    if kind == kinds.mjGEOM_MESH:
        return _mesh(contents, int(contents.m.geom_dataid[g]), where)
    if kind == kinds.mjGEOM_SPHERE:
        return Sphere(a), where
    if kind == kinds.mjGEOM_ELLIPSOID:
        return Ellipsoid((a, b, c)), where
    if kind == kinds.mjGEOM_CAPSULE:
        return Capsule(a, 2 * b), where
    if kind == kinds.mjGEOM_CYLINDER:
        return Cylinder(a, 2 * b), where
    if kind == kinds.mjGEOM_BOX:
        return Box((2 * a, 2 * b, 2 * c)), where
    if kind == kinds.mjGEOM_PLANE:
        # a thin plate below it; without end where a size is 0: far beyond what stands on it
        far, thin = 20 * float(contents.m.stat.extent), 1e-3 * float(contents.m.stat.extent)
        return Box((2 * a or far, 2 * b or far, thin)), where @ Placement((0.0, 0.0, -thin / 2))
    contents.notes.add(f"shape of {kinds(int(kind)).name.removeprefix('mjGEOM_').lower()} geoms")
    return None


def _mesh(contents: Contents, mesh: int, where: Placement) -> tuple[Shape, Placement] | None:
    """MuJoCo recentres meshes; the shape is the file's, placed back."""
    m = contents.m
    start = int(m.mesh_pathadr[mesh])
    name = m.paths[start : m.paths.index(b"\0", start)].decode() if start >= 0 else ""
    folder = contents.document.folder
    compiler = (e.attributes for e in contents.root.walk() if e.tag == "compiler")
    places = [d.get("meshdir") or d.get("assetdir") or "" for d in compiler]
    tried = [folder / place / name for place in (*places, "")] if folder and name else []
    path = next((path for path in tried if path.is_file()), None)
    if path is None:
        contents.notes.add("meshes without a file of their own")
        return None
    moved = Placement(tuple(m.mesh_pos[mesh]), tuple(m.mesh_quat[mesh]))
    return Mesh(str(path), tuple(float(x) for x in m.mesh_scale[mesh])), where @ moved.inverse()

"""The live viewer: a page served by viser to this machine only (see `Guard`), with sliders or a timeline for motions.

It runs beside the program: making a `Viewer` returns at once, `stop` ends it. Nodes of the scene are named by numbers,
and names of a model are only ever labels, which the page shows as text.
"""

from __future__ import annotations

import contextlib
import io
import threading
import webbrowser
from typing import Any, Self

import numpy as np

from alembert.errors import UnsupportedError
from alembert.spatial import quaternion
from alembert.view.animation import Animation
from alembert.view.deformed import drawn
from alembert.view.live_controls import Joints, Timeline
from alembert.view.page import Still
from alembert.view.scene import NamedFrame, Scene, ScenePart, body_poses, scene
from alembert.view.served import Guard

Array = np.ndarray


class Viewer:
    """A running viewer: `url`, `stop()`, and what the page can do, from the program as well."""

    def __init__(
        self, shown: Still | Animation, *, port: int | None = None, open_browser: bool = True
    ) -> None:
        try:
            import viser
        except ImportError:
            raise UnsupportedError(
                'view: viser is not installed; pip install "alembert[view]". Without it, write_html (alembert view FILE '
                "--html page.html) makes a page, and "
                "view(..., inline=True) shows one in a notebook"
            ) from None
        self.model = shown.model
        parameters = shown.parameters if isinstance(shown, Animation) else None
        self.scene: Scene = scene(self.model, parameters=parameters)
        self._guard = Guard()
        with _quietly(), self._guard.installed():
            self._server = viser.ViserServer(
                host="127.0.0.1", port=8080 if port is None else port, label="Alembert", verbose=False
            )
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._bodies: list[Any] = []
        self._layers: dict[str, list[Any]] = {}
        try:
            self._guard.try_out(self._server.get_port())
            self._build(shown)
        except BaseException:
            with _quietly():
                self._server.stop()
            raise
        if open_browser:
            webbrowser.open(self.url)

    def _build(self, shown: Still | Animation) -> None:
        self._draw_bodies()
        self._control: Timeline | Joints
        self._show = self._server.gui.add_folder("show")
        with self._show:
            self._switches()
        self._control = Timeline(self, shown) if isinstance(shown, Animation) else Joints(self, shown)
        self._look()

    # --- for programs ---------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address of the page; its token is needed to see and to move anything."""
        return f"http://127.0.0.1:{self._server.get_port()}/{self._guard.token}/"

    def stop(self) -> None:
        """End the server; the page stays as it is, without connection."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._control.stop()
            with _quietly():
                self._server.stop()

    def wait(self) -> None:
        """Until `stop` is called, or the user interrupts."""
        try:
            while not self._stopped.wait(0.5):
                pass
        except KeyboardInterrupt:
            self.stop()

    def set(self, q: Any) -> None:
        """Show a configuration."""
        R, p = body_poses(self.model, q)
        self._place(p, np.array([quaternion.from_matrix(x) for x in R]).reshape(-1, 4))

    def seek(self, t: float) -> None:
        """Show a motion at a time."""
        if not isinstance(self._control, Timeline):
            raise UnsupportedError("seek: the viewer shows a model at rest; view a result to have a timeline")
        self._control.seek(t)

    def body_position(self, body: str) -> Array:
        """Where a body is drawn now."""
        return np.array(self._bodies[drawn(self.model).body_index(body)].position)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "stopped" if self._stopped.is_set() else f"at {self.url}"
        return f"<Viewer of {self.model.name!r} {state}>"

    def _repr_html_(self) -> str:
        if self._stopped.is_set():
            return "<p>This viewer has stopped.</p>"
        return f'<iframe src="{self.url}" style="width: 100%; height: 560px; border: 0" title="alembert"></iframe>'

    # --- drawing --------------------------------------------------------------------------------------------

    def _draw_bodies(self) -> None:
        world = self._server.scene
        world.set_up_direction(self.scene.up)
        world.configure_default_lights(cast_shadow=True)
        self._bodies = [
            world.add_frame(f"/bodies/{k}", show_axes=False) for k in range(len(self.scene.bodies))
        ]
        world.add_frame("/bodies/world", show_axes=False)
        for k, part in enumerate(self.scene.parts):
            self._draw_part(f"{_node(part.body)}/shape{k}", part)
        L = self.scene.length
        axes = {"axes_length": 0.35 * L, "axes_radius": 0.012 * L}
        frames = [NamedFrame("world", -1, _identity())]
        frames += [NamedFrame(name, k, _identity()) for k, name in enumerate(self.scene.bodies)]
        for k, mark in enumerate([*frames, *self.scene.frames]):
            self._add("frames", world.add_frame(f"{_node(mark.body)}/frame{k}", **_at(mark.pose), **axes))
        total = sum(m.mass for m in self.scene.masses) or 1.0
        for k, m in enumerate(self.scene.masses):
            size = L * (0.035 + 0.06 * (m.mass / total) ** (1 / 3))
            node = _node(m.body)
            self._add(
                "centres of mass", world.add_icosphere(f"{node}/com{k}", size, (180, 83, 9), **_at(m.pose))
            )
            ellipsoid = world.add_icosphere(
                f"{node}/inertia{k}", 1.0, (124, 58, 237), scale=m.radii, opacity=0.3, **_at(m.pose)
            )
            self._add("inertia ellipsoids", ellipsoid)
        for k, mark in enumerate(self.scene.sensors):
            cube = world.add_box(
                f"{_node(mark.body)}/sensor{k}", (8, 145, 178), (0.1 * L,) * 3, **_at(mark.pose)
            )
            self._add("sensors", cube)
            label = world.add_label(f"{_node(mark.body)}/sensor_name{k}", mark.name, **_at(mark.pose))
            self._add("sensors", label)
        for k, ends in enumerate(self.scene.loops):
            for end, color, size in zip(ends, ((22, 163, 74), (220, 38, 38)), (0.07, 0.05), strict=True):
                ball = world.add_icosphere(
                    f"{_node(end.body)}/loop{k}_{size}", size * L, color, opacity=0.8, **_at(end.pose)
                )
                self._add("loops", ball)
        for k, name in enumerate(self.scene.bodies):
            self._add("names", world.add_label(f"/bodies/{k}/name", name))
        if self.scene.gravity:
            R = quaternion.from_matrix(_turn_z_to(np.array(self.scene.up)))
            self._grid = world.add_grid("/ground", 40 * L, 40 * L, cell_size=L, section_size=5 * L, wxyz=R)
            self._add("ground", self._grid)

    def _draw_part(self, name: str, part: ScenePart) -> None:
        world = self._server.scene
        color = tuple(round(255 * c) for c in part.color[:3])
        options: dict[str, Any] = {
            "opacity": part.color[3] if part.color[3] < 0.99 else None,
            **_at(part.pose),
        }
        x, y, z = part.scale
        if part.kind == "box":
            world.add_box(name, color, part.scale, **options)
        elif part.kind == "sphere":
            world.add_icosphere(name, 1.0, color, scale=part.scale, **options)
        elif part.kind == "cylinder":
            world.add_cylinder(name, 1.0, 1.0, color, scale=part.scale, **options)
        else:
            surface = self.scene.meshes[part.mesh]
            vertices = (surface.vertices * np.array([x, y, z])).astype(np.float32)
            world.add_mesh_simple(
                name, vertices, surface.faces, color=color, side="double", flat_shading=True, **options
            )

    def _add(self, layer: str, handle: Any) -> None:
        handle.visible = layer == "ground"
        self._layers.setdefault(layer, []).append(handle)

    def _switches(self) -> None:
        for layer, handles in self._layers.items():
            box = self._server.gui.add_checkbox(layer, layer == "ground")

            def change(_: Any, box: Any = box, handles: list[Any] = handles) -> None:
                for handle in handles:
                    handle.visible = box.value

            box.on_update(change)

    def _place(self, positions: Array, quaternions: Array) -> None:
        with self._lock, self._server.atomic():
            for body, p, q in zip(self._bodies, positions, quaternions, strict=True):
                body.position = p
                body.wxyz = q

    def _look(self) -> None:
        """From the side, at everything."""
        points = np.array([body.position for body in self._bodies] or [[0.0, 0.0, 0.0]], dtype=float)
        if isinstance(self._control, Timeline):
            frames = self._control.frames
            points = np.concatenate([points, frames.positions.reshape(-1, 3), *self._control.paths])
        low, high = points.min(axis=0), points.max(axis=0)
        distance = 1.2 * (float(np.linalg.norm(high - low)) + 2 * self.scene.length)
        center = (low + high) / 2
        up = np.array(self.scene.up)
        if self.scene.gravity:
            self._grid.position = tuple(up * (float(np.min(points @ up)) - 0.1 * self.scene.length))
        side = np.cross(up, [0.31, 0.95, 0.11])
        away = np.cross(side, up)
        away = -0.8 * away / np.linalg.norm(away) + 0.45 * side / np.linalg.norm(side) + 0.3 * up
        camera = self._server.initial_camera
        camera.position = tuple(center + away * distance)
        camera.look_at = tuple(center)
        camera.up = self.scene.up


# --- pieces -------------------------------------------------------------------------------------------------


def _quietly() -> contextlib.AbstractContextManager[Any]:
    """viser prints where it listens; here `url` says so."""
    return contextlib.redirect_stdout(io.StringIO())


def _node(body: int) -> str:
    return f"/bodies/{body if body >= 0 else 'world'}"


def _at(pose: Any) -> dict[str, Any]:
    return {
        "position": np.asarray(pose.translation),
        "wxyz": quaternion.from_matrix(np.asarray(pose.rotation)),
    }


def _identity() -> Any:
    from alembert.spatial import Pose

    return Pose.identity()


def _turn_z_to(up: Array) -> Array:
    side = np.eye(3)[int(np.argmin(np.abs(up)))]
    x = np.cross(side, up)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(up, x), up])

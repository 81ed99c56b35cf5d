"""The live viewer: a page served by viser to this machine only (see `Guard`), with sliders or a timeline for motions.

It runs beside the program: making a `Viewer` returns at once, `stop` ends it. Nodes of the scene are named by numbers,
and names of a model are only ever labels, which the page shows as text.

It offers to move the joints of a model by sliders (`Joints`) or by a handle: drag a frame, and the joints follow
(`Reaching`, by `al.reach`), within limits and with loops closed; and a motion by a timeline (`Timeline`).
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
import webbrowser
from typing import Any, Self

import numpy as np

from alembert.errors import AlembertError, UnsupportedError
from alembert.reach import pose, position, solver
from alembert.spatial import Pose, quaternion
from alembert.view.animation import Animation, Frames
from alembert.view.deformed import drawn
from alembert.view.page import Slider, Still, configuration, sliders
from alembert.view.scene import NamedFrame, Scene, ScenePart, body_poses, scene
from alembert.view.served import Guard

NOTHING = "nothing"
RESTARTS = 8
"""random starts, where the target is not reached from where the joints are"""
_FINE = 1e-6  # m, rad


class Reaching:
    """Chooses a frame, and shows its handle; with `turns` the frame turns with the handle, else only its origin follows."""

    def __init__(self, joints: Joints) -> None:
        self.joints, self.model = joints, joints.model
        gui = joints.viewer._server.gui
        names = [*(frame.name for frame in self.model.frames), *(body.name for body in self.model.bodies)]
        with gui.add_folder("reach"):
            self.choice = gui.add_dropdown("drag", (NOTHING, *dict.fromkeys(names)), initial_value=NOTHING)
            self.turns = gui.add_checkbox("orientation too", False)
            self.message = gui.add_text("result", "", disabled=True)
        self.handle: Any = None
        self._lock = threading.Lock()
        self.choice.on_update(lambda _: self.choose())
        self.turns.on_update(lambda _: self.choose())

    @property
    def frame(self) -> str:
        return str(self.choice.value)

    def choose(self) -> None:
        """The handle of another frame, or none."""
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        self.message.value = ""
        if self.frame == NOTHING:
            return
        viewer = self.joints.viewer
        self.handle = viewer._server.scene.add_transform_controls(
            "/reach",
            scale=1.5 * viewer.scene.length,
            disable_rotations=not self.turns.value,
            depth_test=False,
        )
        self.place()
        self.handle.on_update(lambda _: self.follow())

    def place(self) -> None:
        """Put the handle where its frame is."""
        if self.handle is not None:
            X = self.model.frame_pose(self.joints.q, self.frame)
            self.handle.position = np.asarray(X.translation)
            self.handle.wxyz = quaternion.from_matrix(np.asarray(X.rotation))

    def follow(self) -> None:
        """Move the joints so that the frame is at its handle, or as near as it gets."""
        if self.handle is None or not self._lock.acquire(blocking=False):
            return  # the next movement of the mouse asks again
        try:
            p = np.array(self.handle.position, dtype=float)
            R = quaternion.to_matrix(np.array(self.handle.wxyz, dtype=float))
            task = pose(self.frame, Pose(R, p)) if self.turns.value else position(self.frame, p)
            solve = solver(self.model, [task])
            given: dict[str, Any] = {"start": self.joints.q, "tolerance": _FINE, "quiet": True}
            found = solve(restarts=0, **given)
            if not found.reached:
                other = solve(restarts=RESTARTS, **given)
                found = other if other.reached else found
            self.message.value = "reached" if found.reached else found.message
            self.joints.show(found.q)
        except AlembertError as error:
            self.message.value = str(error)
        finally:
            self._lock.release()


Array = np.ndarray
SPEEDS = ("0.1×", "0.25×", "0.5×", "1×", "2×", "4×")
_FORCE, _TORQUE = (12, 166, 120), (217, 70, 166)
_TICK = 1 / 40  # s between frames that are sent


class Joints:
    """A slider per degree of freedom. Loops are closed again after every change, the changed joint held."""

    def __init__(self, viewer: Viewer, still: Still) -> None:
        self.viewer, self.model = viewer, still.model
        self.start = self.q = still.q
        gui = viewer._server.gui
        self._busy = False
        self._message: Any = None
        self.handles: list[tuple[Slider, Any]] = []
        with gui.add_folder("joints"):
            reset = gui.add_button("reset")
            for slider in sliders(self.model, self.q, viewer.scene.length):
                step = (slider.high - slider.low) / 1000 or 1e-6
                value = min(max(slider.value, slider.low), slider.high)
                handle = gui.add_slider(
                    f"{slider.name} [{slider.unit}]", slider.low, slider.high, step, value
                )
                handle.on_update(lambda _, slider=slider: self.changed(slider))
                self.handles.append((slider, handle))
            if self.model.loops or self.model.equations:
                self._message = gui.add_text("loops", "closed", disabled=True)
        reset.on_click(lambda _: self.reset())
        self.reaching = Reaching(self) if self.handles else None
        viewer.set(self.q)

    def values(self) -> Array:
        x = np.zeros(self.model.nv)
        for slider, handle in self.handles:
            x[slider.index] = handle.value
        return x

    def changed(self, slider: Slider) -> None:
        if self._busy:
            return
        q = configuration(self.model, self.start, self.values())
        if self.model.loops or self.model.equations:
            try:
                q = self.model.assemble(q, fixed=[self.model.speed_names[slider.index]]).q
                self._message.value = "closed"
            except AlembertError:
                self._message.value = "cannot be closed here"
            else:
                self._write_back(q, slider)
        self.q = q
        self.viewer.set(q)
        self._place_handle()

    def show(self, q: Array) -> None:
        """Joints that were moved in another way than by their sliders."""
        self._write_back(q, None)
        self.q = q
        self.viewer.set(q)

    def _place_handle(self) -> None:
        if self.reaching is not None:
            self.reaching.place()

    def _write_back(self, q: Array, but: Slider | None) -> None:
        """The sliders of the joints that the loops, or the hand, have moved."""
        self._busy = True
        moved = self.model.difference(self.start, q)
        for slider, handle in self.handles:
            if slider is not but:
                joint = self.model.joint(slider.joint)
                own = moved[slider.index]
                if joint.type.is_vector_space:
                    own = q[
                        self.model.q_slice(slider.joint).start
                        + slider.index
                        - self.model.v_slice(slider.joint).start
                    ]
                handle.value = float(np.clip(own, slider.low, slider.high))
        self._busy = False

    def reset(self) -> None:
        self._busy = True
        for slider, handle in self.handles:
            handle.value = min(max(slider.value, slider.low), slider.high)
        self._busy = False
        self.q = self.start
        self.viewer.set(self.q)
        self._place_handle()

    def stop(self) -> None:
        pass


class Timeline:
    """Play, speed, loop, time; trails and arrows; plots."""

    def __init__(self, viewer: Viewer, motion: Animation) -> None:
        self.viewer, self.motion = viewer, motion
        self.frames: Frames = motion.frames()
        self.time = float(self.frames.time[0])
        self.playing = False
        self._busy = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        start, end = float(self.frames.time[0]), float(self.frames.time[-1])
        gui = viewer._server.gui
        with gui.add_folder("motion", order=-1):
            self.button = gui.add_button("play")
            self.slider = gui.add_slider(
                "time [s]", start, max(end, start + 1e-9), max((end - start) / 1000, 1e-9), start
            )
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1×")
            self.loop = gui.add_checkbox("loop", True)
        self.button.on_click(lambda _: self.toggle())
        self.slider.on_update(lambda _: self._scrubbed())
        self._trails()
        self._arrows()
        self._plots()
        self.seek(start)

    def toggle(self) -> None:
        self.playing = not self.playing
        self.button.label = "pause" if self.playing else "play"
        if self.playing and self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="alembert-viewer")
            self._thread.start()

    def stop(self) -> None:
        self.playing = False
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def seek(self, t: float) -> None:
        times = self.frames.time
        self.time = float(np.clip(t, times[0], times[-1]))
        span = times[-1] - times[0]
        f = (self.time - times[0]) / span * (len(times) - 1) if span > 0 else 0.0
        a = min(int(f), len(times) - 1)
        b = min(a + 1, len(times) - 1)
        s = f - a
        p = self.frames.positions
        q = (1 - s) * self.frames.quaternions[a] + s * self.frames.quaternions[b]
        q = q / np.linalg.norm(q, axis=-1, keepdims=True)
        self.viewer._place((1 - s) * p[a] + s * p[b], q)
        self._place_arrows(a)
        self._busy = True
        self.slider.value = self.time
        self._busy = False

    def _scrubbed(self) -> None:
        if not self._busy and abs(self.slider.value - self.time) > 1e-12:
            self.seek(self.slider.value)

    def _run(self) -> None:
        before = time.monotonic()
        start, end = float(self.frames.time[0]), float(self.frames.time[-1])
        while not self._stopped.wait(_TICK):
            now = time.monotonic()
            if self.playing and end > start:
                t = self.time + (now - before) * float(self.speed.value.rstrip("×"))
                if t > end and not self.loop.value:
                    self.toggle()
                self.seek(start + (t - start) % (end - start) if t > end and self.loop.value else t)
            before = now

    def _trails(self) -> None:
        world = self.viewer._server.scene
        colors = ((217, 72, 15), (25, 113, 194), (43, 138, 62), (134, 46, 156))
        handles = []
        self.paths: list[Array] = []
        for k, (_, body, point) in enumerate(self.motion.trail_points()):
            R = np.array([quaternion.to_matrix(q) for q in self.frames.quaternions[:, body]])
            path = self.frames.positions[:, body] + R @ point
            self.paths.append(path)
            if len(path) > 1:
                segments = np.stack([path[:-1], path[1:]], axis=1).astype(np.float32)
                handles.append(
                    world.add_line_segments(
                        f"/trails/{k}",
                        segments,
                        colors[k % 4],
                        thickness=0.012 * self.viewer.scene.length,
                    )
                )
        self._layer("trails", handles)

    def _arrows(self) -> None:
        self.arrows = self.frames.arrows
        largest: dict[str, float] = {}
        for arrow in self.arrows:
            size = float(np.max(np.linalg.norm(arrow.vectors, axis=1)))
            largest[arrow.kind] = max(largest.get(arrow.kind, 0.0), size)
        self._scale = {kind: self.viewer.scene.length / size for kind, size in largest.items() if size > 0}
        self._arrow_handle: Any = None
        if self.arrows:
            colors = np.array(
                [_TORQUE if a.kind == "torque" else _FORCE for a in self.arrows], dtype=np.uint8
            )
            L = self.viewer.scene.length
            self._arrow_handle = self.viewer._server.scene.add_arrows(
                "/arrows",
                np.zeros((len(self.arrows), 2, 3), dtype=np.float32),
                colors,
                shaft_radius=0.02 * L,
                head_radius=0.05 * L,
                head_length=0.12 * L,
            )
            self._layer("forces and torques", [self._arrow_handle])

    def _place_arrows(self, frame: int) -> None:
        if self._arrow_handle is None:
            return
        points = np.zeros((len(self.arrows), 2, 3), dtype=np.float32)
        for k, arrow in enumerate(self.arrows):
            R = quaternion.to_matrix(self.frames.quaternions[frame, arrow.body])
            points[k, 0] = self.frames.positions[frame, arrow.body] + R @ np.array(arrow.point)
            points[k, 1] = points[k, 0] + R @ arrow.vectors[frame] * self._scale[arrow.kind]
        self._arrow_handle.points = points

    def _layer(self, name: str, handles: list[Any]) -> None:
        with self.viewer._show:
            box = self.viewer._server.gui.add_checkbox(name, True)

        def change(_: Any) -> None:
            for handle in handles:
                handle.visible = box.value

        box.on_update(change)

    def _plots(self) -> None:
        from alembert.view.figures import COLORS

        gui = self.viewer._server.gui
        for title, times, lines in self.motion.panels()[:8]:
            shown = dict(list(lines.items())[:8])
            with gui.add_folder(title, expand_by_default=False):
                gui.add_uplot(
                    (np.asarray(times, dtype=float), *(np.asarray(x, dtype=float) for x in shown.values())),
                    (
                        {"label": "t"},
                        *(
                            {
                                "label": name,
                                "stroke": COLORS[k],
                                "width": 2,
                                "dash": [[], [8, 3], [2, 3]][k % 3],
                            }
                            for k, name in enumerate(shown)
                        ),
                    ),
                    scales={"x": {"time": False}},
                    aspect=1.7,
                )


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

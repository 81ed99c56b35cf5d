"""A handle in the live viewer: drag a frame, and the joints follow (`al.reach`), within limits and with loops closed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import AlembertError
from alembert.reach import pose, position, solver
from alembert.spatial import Pose, quaternion

if TYPE_CHECKING:
    from alembert.view.live_controls import Joints

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

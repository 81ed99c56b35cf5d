"""A person in the loop: commands from the keyboard, a gamepad or the mouse, through a page in the browser.

The page asks once per frame: it sends where the sticks and keys are, each from -1 to 1, and gets the pose of every body. The
loop only reads and writes the newest values and never waits for the page. If the page is silent for `SILENCE` seconds
(closed, asleep, another window in front of it), commands are zero.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.view.page import Still, asset, scene_data
from alembert.view.scene import body_poses
from alembert.view.served import Served, ServedPage, page_text

Array = np.ndarray
PORT = 8070
SILENCE = 0.3
_SCRIPTS = ("three.min.js", "plot.js", "stage.js", "hand.js", "player.js", "pilot.js")
_STYLES = ("page.css",)


class BrowserLink(ServedPage):
    """For `al.deploy.realtime(..., inputs=list(link.names), link=link)`: a page that shows the model and commands it.

    `largest` has the names of the inputs (joints, or what a controller takes), and the command at full deflection of each.
    Only this machine is served. The page opens by itself; `wait()` waits until it is there.
    """

    def __init__(
        self,
        model: Model,
        largest: Mapping[str, float],
        *,
        q0: Any = None,
        port: int | None = None,
        open_browser: bool = True,
    ) -> None:
        if not isinstance(largest, Mapping) or not largest:
            raise ArgumentError(
                f"BrowserLink: largest is {largest!r}, expected inputs by name with their command at full deflection"
            )
        for name, value in largest.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ArgumentError(
                    f"BrowserLink: largest of {name!r} is {value!r}, expected a positive number"
                )
        self.model, self.names = model, tuple(str(name) for name in largest)
        self._largest = np.array([float(x) for x in largest.values()])
        self._still = Still(model, q0)
        self._command = np.zeros(len(self.names))
        self._heard = -math.inf
        self._now: tuple[float, Array] = (0.0, self._still.q)
        self._there = threading.Event()
        files: dict[str, Callable[[], str]] = {
            name: functools.partial(asset, name) for name in (*_SCRIPTS[:-1], *_STYLES)
        }
        own = resources.files("alembert.deploy").joinpath("assets", "pilot.js")
        self._served = Served(
            "BrowserLink",
            {
                "": lambda: page_text(model.name, _STYLES, _SCRIPTS, "Reading the model ..."),
                "pilot.js": lambda: own.read_text(encoding="utf-8"),
                **files,
            },
            answers={"scene": self._scene},
            actions={"exchange": self._exchange},
            port=port,
            first=PORT,
        )
        if open_browser:
            webbrowser.open(self.url)

    def wait(self, timeout: float | None = None) -> bool:
        """Until a page has sent something; whether it has."""
        return self._there.wait(timeout)

    def __repr__(self) -> str:
        return f"<BrowserLink to {self.model.name!r}, {', '.join(self.names)}, at {self.url}>"

    # --- the loop's side ------------------------------------------------------------------------------------

    def receive(self, u: Array) -> None:
        """The newest command; zero if the page is silent."""
        if len(u) != len(self.names):
            raise ArgumentError(
                f"realtime: the link to the browser has the inputs {', '.join(self.names)}, expected {len(u)}; "
                "give realtime inputs=list(link.names)"
            )
        u[:] = self._command if time.monotonic() - self._heard < SILENCE else 0.0

    def send(self, number: int, t: float, q: Array, v: Array) -> None:
        """What the page will show."""
        self._now = (t, q.copy())

    # --- the page's side ------------------------------------------------------------------------------------

    def _scene(self) -> dict[str, Any]:
        units = {}
        for joint in self.model.joints:
            if joint.type.nv == 1:
                units[joint.name] = "N m" if joint.type.speeds[0][1].startswith("rad") else "N"
        inputs = [
            {"name": name, "unit": units.get(name, ""), "largest": float(x)}
            for name, x in zip(self.names, self._largest, strict=True)
        ]
        return {"scene": scene_data(self._still), "inputs": inputs}

    def _exchange(self, action: dict[str, Any]) -> dict[str, Any]:
        given = action.get("u")
        fine = isinstance(given, list) and len(given) == len(self.names)
        # also whole numbers that no float can hold
        if fine and all(isinstance(x, int | float) and abs(x) <= sys.float_info.max for x in given or ()):
            self._command = np.clip(np.array(given, dtype=float), -1.0, 1.0) * self._largest
            self._heard = time.monotonic()
            self._there.set()
        t, q = self._now
        R, p = body_poses(self.model, q)
        poses = np.concatenate([R.reshape(len(R), 9), p], axis=1)
        return {"t": t, "poses": [float(f"{x:.7g}") for x in poses.ravel()]}

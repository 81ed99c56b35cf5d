"""A model in a notebook whose joints are Python's as well: moved by hand they are read, set in Python they move.

The picture is the stand-alone page in a sandbox (`alembert.view.page`), which exchanges slider values with the widget. Needs
anywidget, of the extra `notebook`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import numpy as np
import traitlets

from alembert.arguments import numbers
from alembert.errors import UnsupportedError
from alembert.model import Model
from alembert.view.page import Still, asset, configuration, page

Array = np.ndarray


class JointWidget(anywidget.AnyWidget):
    """Made by `al.view.widget`: `q` is where the joints are, as sliders and mouse have them; it can be set."""

    _esm = asset("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(560).tag(sync=True)
    x = traitlets.List(traitlets.Float()).tag(sync=True)
    """values of the sliders, one for each degree of freedom"""

    def __init__(self, model: Model, q: Any = None, *, height: int = 560, theme: str = "auto") -> None:
        still = Still(model, q)
        text = page([still], theme=theme, told=True)
        if model.nv == 0 or any(body.flexible is not None for body in model.bodies):
            raise UnsupportedError(
                f"widget: {model.name!r} has {'bodies that deform' if model.nv else 'no joint that moves'}; al.view(model) "
                "shows it without Python"
            )
        self._still = still
        super().__init__(page=text, height=int(height), x=still.values(still.q))

    @property
    def q(self) -> Array:
        """(nq,)"""
        return np.asarray(configuration(self._still.model, self._still.q, np.array(self.x)))

    @q.setter
    def q(self, value: Any) -> None:
        model = self._still.model
        q = numbers("widget", "q", value, model.nq, batch=False)
        model.space.check("widget", q)
        self.x = self._still.values(q)

    def on_move(self, function: Callable[[Array], Any]) -> None:
        """Call `function(q)` whenever the joints have moved, by hand or by Python."""
        self.observe(lambda _: function(self.q), names="x")

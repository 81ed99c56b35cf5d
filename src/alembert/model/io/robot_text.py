"""What the writers of URDF, MJCF, SDF and USD share: numbers as text, and a record of what a format cannot say.

A model is written with the values of its parameters. What would change its motion and cannot be written at all (a joint
type, a loop) is refused; the rest of what is lost is told in one warning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from alembert.errors import UnsupportedError, warn, writing
from alembert.expression import evaluate
from alembert.model.elements import WORLD, Coupling, Joint
from alembert.model.model import Model
from alembert.model.placement import Placement
from alembert.spatial import quaternion

GRAVITY = (0.0, 0.0, -9.81)


class Text:
    """The lines of an XML file."""

    def __init__(self) -> None:
        self.lines: list[str] = ['<?xml version="1.0"?>']
        self._depth = 0

    def open(self, tag: str, **attributes: Any) -> None:
        self.lines.append(f"{'  ' * self._depth}<{tag}{_attributes(attributes)}>")
        self._depth += 1

    def close(self, tag: str) -> None:
        self._depth -= 1
        self.lines.append(f"{'  ' * self._depth}</{tag}>")

    def put(self, tag: str, **attributes: Any) -> None:
        self.lines.append(f"{'  ' * self._depth}<{tag}{_attributes(attributes)}/>")

    def value(self, tag: str, content: Any, **attributes: Any) -> None:
        """An element that holds numbers or a text."""
        self.lines.append(
            f"{'  ' * self._depth}<{tag}{_attributes(attributes)}>{escape(text(content))}</{tag}>"
        )

    def write(self, path: str | Path) -> None:
        with writing(path):
            Path(path).write_text("\n".join([*self.lines, ""]), encoding="utf-8")


def _attributes(values: Mapping[str, Any]) -> str:
    return "".join(f" {name.rstrip('_')}={quoteattr(text(x))}" for name, x in values.items() if x is not None)


def text(x: Any) -> str:
    if isinstance(x, str):
        return x
    if isinstance(x, bool):
        return "true" if x else "false"
    return " ".join(repr(float(entry)) for entry in np.ravel(x))


class Writer:
    """The model at the values of its parameters, with what its new format loses."""

    def __init__(self, model: Model, path: str | Path, format: str) -> None:
        self.model, self.path, self.format = model, path, format
        self.values = model.parameter_values
        self.text = Text()
        self._lost: dict[str, list[str]] = {}
        self.bodies = {body.name: body for body in model.bodies}
        for body in model.bodies:
            if body.flexible is not None:
                self.refuse(f"the flexible body {body.name!r}")
        for loop in model.loops:
            self.refuse(f"the loop {loop.name!r}")
        for equation in model.equations:
            self.refuse(f"the equation {equation.name!r}")
        if self.values:
            self.lose("parameters, written with their values", list(self.values))

    def refuse(self, what: str) -> None:
        raise UnsupportedError(
            f"save: {self.path}: {self.format} cannot say {what}; Alembert's own format (.toml, .yaml) can"
        )

    def lose(self, what: str, names: Sequence[str]) -> None:
        if names:
            self._lost.setdefault(what, []).extend(names)

    def tell(self) -> None:
        """One warning for all that is lost."""
        if self._lost:
            listed = "; ".join(
                f"{what} ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
                for what, names in self._lost.items()
            )
            warn(f"save: {self.path}: {self.format} does not keep: {listed}")

    def single(self, coupling: Coupling) -> tuple[str, float, float]:
        """The joint that another one follows, the ratio and the offset."""
        if len(coupling.masters) != 1:
            self.refuse(f"the coupling {coupling.name!r} of several joints")
        (ratio,), (offset,) = self.numbers(coupling.ratios), self.numbers([coupling.offset])
        return coupling.masters[0], ratio, offset

    def numbers(self, entries: Sequence[Any]) -> tuple[float, ...]:
        return tuple(float(evaluate(x, self.values)) for x in entries)

    def rotation(self, placement: Placement) -> np.ndarray:
        return np.asarray(quaternion.to_matrix(np.array(self.numbers(placement.quaternion))))

    def children(self, body: str) -> list[Joint]:
        return [joint for joint in self.model.joints if joint.parent == body]

    def roots(self) -> list[Joint]:
        return self.children(WORLD)


def roll_pitch_yaw(R: np.ndarray) -> tuple[float, float, float]:
    """R = Rz(yaw) Ry(pitch) Rx(roll); where the pitch is a right angle, yaw is 0."""
    across = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], across)
    if across < 1e-9:
        return math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0
    return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])

"""Arms in sections, each of which follows a part of a reference curve (Naccarato and Hughes 1989, section 4.5).

The arm is cut at frames along it; a section is a model of its own with its loops, and is solved alone: the end of section k
is put onto the curve at s_k, seen from where section k - 1 has come to be. The effort grows with the number of sections, not
with its cube.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import choice, names, numbers
from alembert.errors import ArgumentError, NumericalError
from alembert.model import WORLD
from alembert.model.editing import between
from alembert.reach import tasks
from alembert.reach.curve import ReferenceCurve
from alembert.reach.solver import ReachSolver, solver
from alembert.spatial import Pose

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
MATCHES = ("position", "direction", "pose")


@dataclass(frozen=True, eq=False)
class Tracked:
    """An arm along curves: `q` (..., nq), and how far each frame is from its place on the curve."""

    model: Model
    q: Array
    places: Array
    """(..., frames): s of each frame"""

    def distance(self, frame: str, other: str) -> Array:
        """Between the origins of two frames, (...) [m]: the length of a member."""
        a, b = (self.model.frame_pose(self.q, name).translation for name in (frame, other))
        return np.asarray(np.linalg.norm(a - b, axis=-1))

    def __repr__(self) -> str:
        return f"<Tracked: {self.model.name} along {int(np.prod(self.q.shape[:-1], dtype=int))} curves>"


def track_curve(
    model: Model,
    curve: ReferenceCurve,
    frames: Sequence[str],
    *,
    base: str = WORLD,
    match: str = "position",
    axis: Any = (0.0, 0.0, 1.0),
    fractions: Any = None,
    twist: float = 0.0,
    start: Any = None,
    limits: bool = True,
    tolerance: float = 1e-9,
) -> Tracked:
    """Configurations in which `frames`, from the base to the tip of an arm, are on a reference curve: inverse kinematics.

    Any arm will do that is cut into sections by these frames: what lies between two of them has its own joints and loops.
    The curve starts at the frame `base`. `match` says what of a frame is to agree with the curve: its "position" (3
    numbers), its position and the "direction" of its `axis` (5), or its whole "pose" (6), z along the curve and with
    `twist` [rad] about it from base to tip; a section needs as many degrees of freedom. Frames are at `fractions` of the
    curve's length, by default evenly. The search begins at `start`, by default the neutral configuration, and goes from
    curve to curve where there are several. A section that does not get there is an error that says by how much.
    """
    name = "track_curve"
    chosen = names(name, "frames", frames)
    match = choice(name, "match", match, MATCHES)
    if not chosen:
        raise ArgumentError(f"{name}: frames is empty, expected the ends of the sections")
    where = (
        np.linspace(0.0, 1.0, len(chosen) + 1)[1:]
        if fractions is None
        else numbers(name, "fractions", fractions)
    )
    if where.shape != (len(chosen),) or not (where[0] > 0 and where[-1] <= 1 and np.all(np.diff(where) > 0)):
        raise ArgumentError(
            f"{name}: fractions is {fractions!r}, expected {len(chosen)} growing numbers up to 1"
        )
    q0 = model.neutral() if start is None else numbers(name, "start", start, model.nq, batch=False)
    model.space.check(name, q0)
    bodies = [model.frame(frame).body for frame in (base, *chosen)]
    sections = [
        _Section(model, below, above, frame, match, axis)
        for below, above, frame in zip(bodies[:-1], bodies[1:], chosen, strict=True)
    ]
    single = curve.vertices.ndim == 2
    many = curve.vertices.reshape(-1, *curve.vertices.shape[-2:])
    q, places, found = q0, [], []
    for number, vertices in enumerate(many):
        one = ReferenceCurve(vertices, curve.degree)
        s = one.at_fractions(where)
        X_base = model.frame_pose(q, base)
        _check_start(one, X_base)
        targets = (
            one.poses(s, base=X_base.rotation, twist=twist)
            if match == "pose"
            else Pose(np.stack([np.eye(3)] * len(s)), one.point(s))
        )
        tangents = one.tangent(s)
        for k, section in enumerate(sections):
            target = Pose(targets.rotation[k], targets.translation[k])
            missed = section.solve(model, q, target, tangents[k], limits, tolerance)
            if isinstance(missed, str):
                place = "" if single else f"curve {number} of {len(many)}: "
                raise NumericalError(
                    f"{name}: {place}section {k + 1} of {len(sections)}, to {chosen[k]!r}: {missed}; another start or "
                    "other fractions may help"
                )
            q = missed
        places.append(s)
        found.append(q)
    shape = curve.vertices.shape[:-2]
    return Tracked(
        model, np.array(found).reshape(*shape, model.nq), np.array(places).reshape(*shape, len(chosen))
    )


def _check_start(curve: ReferenceCurve, X: Pose) -> None:
    gap = float(np.linalg.norm(curve.point(0.0) - X.translation))
    if gap > 1e-6 * max(float(curve.length), 1e-12):
        raise ArgumentError(f"track_curve: the curve starts {gap:.3g} m away from the base of the arm")


class _Section:
    """Of the arm, between two bodies."""

    def __init__(self, arm: Model, below: str, above: str, frame: str, match: str, axis: Any) -> None:
        self.below, self.frame, self.match = below, frame, match
        model = between(arm, below, above)
        self.places = np.concatenate(
            [np.arange(s.start, s.stop) for s in (arm.q_slice(joint.name) for joint in model.joints)]
        )
        self.model = model
        self.by: ReachSolver = solver(model, self._tasks(axis))

    def _tasks(self, axis: Any) -> list[tasks.ReachTask]:
        if self.match == "pose":
            return [tasks.pose(self.frame, np.eye(4))]
        found = [tasks.position(self.frame, np.zeros(3))]
        if self.match == "direction":
            found.append(tasks.point_at(self.frame, np.zeros(3), axis=axis))
        return found

    def solve(
        self, arm: Model, q: Array, target: Pose, tangent: Array, limits: bool, tolerance: float
    ) -> Array | str:
        """q with the section on its place, or what is missing."""
        from_world = arm.frame_pose(q, self.below).inverse()
        X = from_world @ target
        given: list[Any] = [X if self.match == "pose" else X.translation]
        if self.match == "direction":
            given.append(X.translation + from_world.rotation @ tangent)
        found = self.by(
            *given, start=q[self.places], limits=limits, tolerance=tolerance, restarts=0, quiet=True
        )
        if not found.reached:
            return found.message
        q = q.copy()
        q[self.places] = found.q
        return q

"""What a phase takes over from the one before: continuity, jumps of the state, impacts, bodies that dock or part.

The state of a phase is made of entries: a state of a system, a coordinate or speed of a joint whose coordinates add, all
coordinates of one whose do not. Each goes on from the entry of the same name before, jumps by a function of the moment at
the end of the phase before, or is left to the phase's own `start`.

With M the mass matrix at an impact, J the Jacobian of the points that hit and e the restitution, the speeds become

    v^+ = v^- - M^-1 J' (J M^-1 J')^-1 (1 + e) J v^-                                                       (1)

Loops and prescribed joints take part: their rows G are added to J, with nothing on the right, so that G v^+ = G v^-.

Bodies that are joined to another tree keep their momentum as far as its joints let them: with M_b, J_b the inertia and the
Jacobian of body b in the new tree, and V_b its velocity before,

    (sum_b J_b' M_b J_b) v^+ = sum_b J_b' M_b V_b                                                          (2)

which is the motion nearest to the one before in the sense of kinetic energy: no energy is lost where nothing is locked.
Where the new tree has loops, it is the nearest of those that keep them closed: a gripper that closes, a latch that holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import real
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.optimal.closure import Closure, in_the_span, minimal_rows
from alembert.optimal.consistency import evaluated
from alembert.optimal.plant import Mechanics, Moment, Row, System
from alembert.optimal.problem import Problem
from alembert.sweeps.dynamics import Factor

Array = np.ndarray
Link = Callable[[Moment], Any]


@dataclass(frozen=True)
class Entry:
    """Some numbers of a point (q, v), or of the states of a system, that go on together."""

    key: str
    """"q elbow", "v base", "m" """
    names: tuple[str, ...]
    """of its tangent"""
    at: slice
    adds: bool
    """whether its numbers add"""

    @property
    def size(self) -> int:
        return self.at.stop - self.at.start


def entries(problem: Problem) -> list[Entry]:
    plant = problem.plant
    if isinstance(plant, System):
        return [Entry(name, (name,), slice(k, k + 1), True) for k, name in enumerate(plant.states)]
    found = []
    space, nq = plant.model.space, plant.model.nq
    for owner in space:
        labels = [f"q {name}" for name in owner.speed_names]
        if owner.type.is_vector_space:
            places = range(owner.q.start, owner.q.stop)
            found += [Entry(c, (c,), slice(k, k + 1), True) for c, k in zip(labels, places, strict=True)]
        elif labels:
            found.append(Entry(f"q {owner.name}", tuple(labels), owner.q, False))
    for k, name in enumerate(plant.model.speed_names):
        found.append(Entry(f"v {name}", (f"v {name}",), slice(nq + k, nq + k + 1), True))
    return found


class Linkage:
    """How the point at the start of `after` is made: for each of its entries a function of the moment before, or None.

    `given` are the user's: by entry, by joint ("q base", "v base"), or "q" and "v" for all joints.
    """

    def __init__(
        self, name: str, before: Problem, after: Problem, given: Mapping[str, Link | None], *, follow: bool
    ) -> None:
        self.name, self.before, self.after = name, before, after
        self.entries = entries(after)
        wholes = self._wholes()
        known = [entry.key for entry in self.entries]
        for key, value in given.items():
            if key not in known and key not in wholes:
                raise ArgumentError(unknown(f"Phases: links of {name!r}: no state", key, [*known, *wholes]))
            if value is not None and not callable(value):
                raise ArgumentError(
                    f"Phases: links of {name!r}: {key!r} is {value!r}, expected a function of the moment at the end of the "
                    "phase before, or None"
                )
        self.bodies = next((link for link in given.values() if isinstance(link, NewPlaces)), None)
        there = {entry.key: entry for entry in entries(before)} if follow else {}
        self.values: list[Link | None] = []
        for entry in self.entries:
            whole = next((key for key in wholes if key in given and _within(entry.at, wholes[key])), None)
            if entry.key in given:
                self.values.append(self._sized(entry.key, entry.size, given[entry.key]))
            elif whole is not None:
                self.values.append(self._part(whole, wholes[whole], entry, given[whole]))
            elif entry.key in there and there[entry.key].size == entry.size:
                self.values.append(same(there[entry.key].at))
            else:
                self.values.append(None)
        stated = {row.component: row for row in after.start if row.is_equation and row.component}
        self.stated: list[list[Row]] = []
        """of each entry that is linked to nothing, what the phase's own start says of it"""
        for entry, value in zip(self.entries, self.values, strict=True):
            rows = [stated[c] for c in entry.names if c in stated] if value is None else []
            self.stated.append(rows)
            if value is None and not entry.adds and len(rows) != len(entry.names):
                raise UnsupportedError(
                    f"Phases: {entry.key!r} of {name!r} goes on from nothing, and its coordinates do not add; give a link "
                    f"for it, or state it in the `start` of {name!r}"
                )

    def _wholes(self) -> dict[str, slice]:
        plant = self.after.plant
        if isinstance(plant, System):
            return {}
        model, nq = plant.model, plant.model.nq
        found = {"q": slice(0, nq), "v": slice(nq, nq + model.nv)}
        for owner in model.space:
            if owner.type.nv > 1:
                found[f"q {owner.name}"] = owner.q
                found[f"v {owner.name}"] = slice(nq + owner.v.start, nq + owner.v.stop)
        return found

    def _sized(self, key: str, size: int, link: Link | None) -> Link | None:
        if link is None:
            return None

        def value(s: Moment) -> ca.SX:
            def column() -> ca.SX:
                given = link(s)
                return ca.SX(ca.vertcat(*given) if isinstance(given, list | tuple) else given)

            found: ca.SX = evaluated(f"links of {self.name!r}: {key!r}", column, "Phases")
            if found.numel() != size:
                raise ArgumentError(
                    f"Phases: links of {self.name!r}: {key!r} has {found.numel()} entries, expected {size}"
                )
            return ca.SX(ca.reshape(found, size, 1))

        return value

    def _part(self, key: str, whole: slice, entry: Entry, link: Link | None) -> Link | None:
        value = self._sized(key, whole.stop - whole.start, link)
        if value is None:
            return None
        begin = entry.at.start - whole.start
        return lambda s: value(s)[begin : begin + entry.size]

    @property
    def free(self) -> list[Entry]:
        """Those that are to be found."""
        triples = zip(self.entries, self.values, self.stated, strict=True)
        return [entry for entry, value, rows in triples if value is None and not rows]

    @property
    def settled(self) -> set[str]:
        """Components of the start that hold by construction."""
        return {row.component for rows in self.stated for row in rows}

    def point(self, s: Moment, free: Sequence[ca.SX]) -> ca.SX:
        """(q, v) or states at the start, with values for the `free` entries."""
        parts, left = {}, list(free)
        for entry, value, rows in zip(self.entries, self.values, self.stated, strict=True):
            if value is not None:
                parts[entry.at.start] = value(s)
            elif rows and rows[0].point is not None:
                parts[entry.at.start] = ca.SX(np.asarray(rows[0].point, dtype=float))
            elif rows:
                parts[entry.at.start] = ca.SX(rows[0].lower)
            else:
                parts[entry.at.start] = left.pop(0)
        return ca.vertcat(*(parts[k] for k in sorted(parts)))


def _within(part: slice, whole: slice) -> bool:
    return whole.start <= part.start and part.stop <= whole.stop


def same(at: slice) -> Link:
    """Numbers of a point as they are."""

    def link(s: Moment) -> Any:
        return (s.states if "states" in s.__dict__ else ca.vertcat(s.q, s.v))[at]

    return link


# --- for models ---------------------------------------------------------------------------------------------------------


def impact(
    frame: str | Sequence[str],
    *,
    directions: Sequence[Sequence[float]] | None = None,
    restitution: float = 0.0,
) -> dict[str, Link]:
    """A link by which the origins of frames hit something fixed, (1): `links={"swing": impact("foot")}`.

    `directions` [world] are those in which they are stopped, by default all three that the model can move them in;
    `restitution` is the share of the speed with which they come back.
    """
    frames = [frame] if isinstance(frame, str) else list(frame)
    if not frames or not all(isinstance(name, str) for name in frames):
        raise ArgumentError(f"impact: frame is {frame!r}, expected the name of a frame, or several")
    real("impact", "restitution", restitution, "a number from 0 to 1", least=0.0, most=1.0)
    along = None if directions is None else np.atleast_2d(np.asarray(directions, dtype=float))
    if along is not None and (along.shape[1:] != (3,) or not np.isfinite(along).all()):
        raise ArgumentError(f"impact: directions is {directions!r}, expected vectors of three numbers")

    def speeds(s: Moment) -> ca.SX:
        if "model" not in s.__dict__:
            raise ArgumentError("impact: the phase before is of a System; impacts are of models")
        model, plant = s.model, s._plant
        for name in frames:
            if name not in model.frames_by_name:
                raise ArgumentError(unknown("impact: the model has no frame", name, model.frames_by_name))

        def jacobian(q: ca.SX, p: ca.SX) -> ca.SX:
            own = {"reference": "local_world_aligned", "parameters": plant.parameter_values(p)}
            found = [model.symbolic.frame_jacobian(q, name, **own)[3:, :] for name in frames]
            return ca.vertcat(*(J if along is None else ca.DM(along) @ J for J in found))

        closure = plant.closure
        kept = ca.SX(0, model.nv) if closure is None else closure.jacobian(s.q, s.parameters)
        J = jacobian(s.q, s.parameters)[_independent(plant, jacobian), :]
        A = ca.vertcat(J, kept)
        Y = plant.tree.symbolic.inverse_mass_matrix(s.q, parameters=s.model_parameters) @ A.T
        stopped = ca.vertcat((1 + float(restitution)) * (J @ s.v), ca.SX.zeros(kept.shape[0]))
        return s.v - Y @ Factor(A @ Y).solve(stopped)

    return {"v": speeds}


@dataclass(frozen=True, eq=False)
class NewPlaces:
    """The configuration of another tree of the same bodies, as a function of the moment before."""

    after: Model
    configuration: Link | None

    def __call__(self, s: Moment) -> ca.SX:
        if self.configuration is not None:
            return ca.SX(ca.vertcat(ca.SX(0, 1), ca.SX(self.configuration(s))))
        known = {owner.name: owner for owner in s.model.space}
        parts = []
        for owner in self.after.space:
            if owner.type.nq and (owner.name not in known or known[owner.name].type.nq != owner.type.nq):
                raise ArgumentError(
                    f"same_bodies: the model before has no joint {owner.name!r}; give the new q as `configuration`"
                )
            parts += [s.q[known[owner.name].q]] if owner.type.nq else []
        return ca.vertcat(ca.SX(0, 1), *parts)

    def jump(self, before: Model, q: Array, new: Array) -> tuple[str, float] | None:
        """The body that is farthest from where it was, and how far [m], where that is more than `JUMP` of the sizes.

        With a configuration of one's own the new tree may stand elsewhere: bodies are then seen from the first one.
        """
        names = [body.name for body in self.after.bodies]
        there, here = (
            np.array([_centre(model, at, name) for name in names])
            for model, at in ((before, q), (self.after, new))
        )
        if self.configuration is None:
            off = np.linalg.norm(here - there, axis=1)
        else:
            off = np.abs(np.linalg.norm(here - here[0], axis=1) - np.linalg.norm(there - there[0], axis=1))
        k = int(np.argmax(off))
        return (names[k], float(off[k])) if off[k] > JUMP * max(np.ptp(there), np.ptp(here)) else None


JUMP = 1e-4
"""of the way between bodies: what solvers and loops leave is much less"""


def same_bodies(after: Model, *, configuration: Link | None = None) -> dict[str, Link]:
    """A link to another tree of the same bodies, (2): docking, joints that lock, loops that close or open, release.

    Bodies are told by their names; `after` is the model of the phase that begins. `configuration` is its q as a function of
    the moment before; by default joints of the same name keep their coordinates. That the bodies then are where they were
    is for conditions at the end of the phase before; where they are not, the solution is no success.
    """
    if not isinstance(after, Model):
        raise ArgumentError(f"same_bodies: after is a {type(after).__name__}, expected the Model that begins")
    _check_bodies(after)
    tree = after.constrained_compute.rows.primary if after.is_constrained else after
    closure: Closure | None = None
    if after.is_constrained:
        q = after.integrate(after.neutral(), np.random.default_rng(1).uniform(0.1, 0.3, after.nv))
        closure = Closure(after, minimal_rows(after, np.asarray(after.assemble(q).q)), {})

    place = NewPlaces(after, configuration)

    def speeds(s: Moment) -> ca.SX:
        _check_bodies(s.model)
        before: Model = s._plant.tree
        q, pushed = place(s), ca.SX.zeros(after.nv)
        here = {body.name: body for body in s.model.bodies}
        if set(here) != set(after.body_indices):
            other = sorted(set(here) ^ set(after.body_indices))[0]
            raise ArgumentError(f"same_bodies: the body {other!r} is in one of the two models only")
        own: dict[str, Any] = {"reference": "local_world_aligned"}
        for body in after.bodies:
            (m, com), (mass, there) = (_mass_and_centre(b.inertia) for b in (here[body.name], body))
            if not np.isclose(m, mass, rtol=1e-9):
                raise ArgumentError(f"same_bodies: {body.name!r} has {m:g} kg before and {mass:g} kg after")
            V = before.symbolic.frame_velocity(s.q, s.v, body.name, **own, parameters=s.model_parameters)
            turned = before.symbolic.frame_pose(s.q, body.name, parameters=s.model_parameters).rotation
            J, R = (
                tree.symbolic.frame_jacobian(q, body.name, **own),
                tree.symbolic.frame_pose(q, body.name).rotation,
            )
            # about the centre of mass, in world axes: a body's frame is that of its joint, which may be another one now
            w, v = V[:3], V[3:] + ca.cross(V[:3], turned @ ca.DM(com))
            J_c = J[3:, :] - ca.skew(R @ ca.DM(there)) @ J[:3, :]
            inertia = R @ ca.DM(np.asarray(body.inertia.matrix(), dtype=float)) @ R.T
            pushed += J[:3, :].T @ (inertia @ w) + mass * J_c.T @ v
        v = tree.symbolic.solve_mass_matrix(q, pushed)
        if closure is None:
            return v
        return closure.allowed_speeds(0, q, v, tree.symbolic.inverse_mass_matrix(q), ca.SX(0, 1))

    return {"q": place, "v": speeds}


def _check_bodies(model: Model) -> None:
    if model.parameters or any(body.flexible is not None for body in model.bodies):
        raise UnsupportedError(
            "same_bodies: the model has parameters or bending bodies; give links of your own"
        )
    if model.is_constrained and not model.constrained_compute.rows.holonomic.all():
        raise UnsupportedError(
            "same_bodies: the model has constraints on speeds (rolling, skates), which optimal control does not cover"
        )
    for joint in model.joints:
        if any(x != 0.0 for x in joint.armature) or joint.rotors:
            raise UnsupportedError(
                f"same_bodies: the joint {joint.name!r} has a rotor (armature), whose momentum is of no body; make it one, "
                "or give links of your own"
            )


def _centre(model: Model, q: Array, name: str) -> Array:
    """Of mass, in the world."""
    pose = model.frame_pose(q, name)
    com = model.bodies[model.body_indices[name]].inertia.com
    return np.asarray(pose.translation + pose.rotation @ np.array(com, dtype=float))


def _mass_and_centre(inertia: Any) -> tuple[float, Array]:
    return float(inertia.mass), np.array(inertia.com, dtype=float)


def _independent(plant: Mechanics, jacobian: Callable[[ca.SX, ca.SX], ca.SX]) -> list[int]:
    """Rows of a Jacobian along which the model can move, loops closed, at a configuration drawn at random."""
    model, closure = plant.model, plant.closure
    q = model.integrate(model.neutral(), np.random.default_rng(1).uniform(0.2, 0.9, model.nv))
    if closure is not None and closure.loops:
        q = model.assemble(q).q
    at, p = ca.SX(np.asarray(q)), ca.SX([value for _, value in plant.parameters])
    kept = ca.SX(0, model.nv) if closure is None else closure.jacobian(at, p)
    values = ca.evalf(ca.densify(ca.vertcat(kept, jacobian(at, p)))).full()
    sizes = np.linalg.norm(values, axis=1)
    sizes[sizes <= 1e-9 * max(1.0, sizes.max(initial=0.0))] = np.inf  # rounding is no direction
    rows = values / sizes[:, None]
    first = kept.shape[0]
    found = [i for i in range(first, len(rows)) if not in_the_span(rows[i], rows[:i])]
    if not found:
        raise ArgumentError("impact: nothing moves these frames in these directions")
    return [i - first for i in found]

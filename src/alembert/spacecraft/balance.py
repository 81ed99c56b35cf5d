"""The balance of momentum of a run: all torques and forces from outside, integrated, against the change of momentum.

With H the angular momentum about the centre of mass c and P the linear one, both in world axes,

    H(t) - H(0) = integral of sum n_k + (p - c) x f_k,     P(t) - P(0) = integral of sum f_k                       (1)

over what acts from outside. In a tree that flies on a free joint the effort of a force on that joint is its whole wrench,
whatever body it acts on; motors inside, springs and friction have none there. So (1) is an independent check of
everything in
between: mass properties, gyroscopic terms, the integrator. It also says where momentum came from, source by source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from alembert.errors import ArgumentError, UnsupportedError
from alembert.joints import Free
from alembert.model import WORLD, Model
from alembert.simulate import Forces, Run
from alembert.simulate.elements import ForceLaw

Array = np.ndarray
_FEWEST = 5


@dataclass(frozen=True, eq=False)
class MomentumBalance:
    """(1) of a run: errors relative to the size of the momenta inside, and impulses from each source, (N, 3)."""

    time: Array
    angular_error: float
    linear_error: float
    angular: Array
    """H, (N, 3) [N m s]"""
    impulses: Mapping[str, Array]
    """angular, about the centre of mass, up to each record [N m s]"""
    torques: Mapping[str, Array]
    """about the centre of mass [N m]"""
    forces: Mapping[str, Array]
    """[N]"""

    def __str__(self) -> str:
        lines = [
            f"momentum balance: angular to {self.angular_error:.1e}, linear to {self.linear_error:.1e} of the momenta "
            "inside",
            f"  angular momentum {_vector(self.angular[0])} -> {_vector(self.angular[-1])} N m s",
        ]
        for name, impulse in self.impulses.items():
            peak = float(np.max(np.linalg.norm(self.torques[name], axis=-1)))
            lines.append(f"  {name}: {_vector(impulse[-1])} N m s, at most {peak:.3g} N m")
        return "\n".join(lines)


def _vector(x: Array) -> str:
    return "(" + ", ".join(f"{v:.6g}" for v in x) + ")"


def momentum_balance(run: Run, forces: Mapping[str, ForceLaw] | None = None) -> MomentumBalance:
    """Of a run of one motion, with a record at every step. `forces` are all that act from outside, by name: gravity,
    drag, ...

    What controllers and hardware push with (thrusters, torquers) is in the run. Between records torques are taken as
    smooth,
    and commands as held.
    """
    model = run.model
    if run.q.ndim > 2:
        raise UnsupportedError(
            "momentum_balance: one motion at a time; run the members of a batch one by one"
        )
    if run.has_mass_flow:
        raise UnsupportedError(
            "momentum_balance: mass leaves in this run, and momentum with it, which is not counted here"
        )
    if len(run.time) < _FEWEST:
        raise ArgumentError(f"momentum_balance: {len(run.time)} records, expected {_FEWEST} or more")
    longest = float(np.max(np.diff(run.time)))
    if run.step is not None and longest > 1.001 * run.step:
        raise ArgumentError(
            f"momentum_balance: a record every {longest:g} s and a step of {run.step:g} s; leave interval= out"
        )
    roots = [joint for joint in model.joints if joint.parent == WORLD]
    for joint in roots:
        if not isinstance(joint.type, Free):
            raise UnsupportedError(
                f"momentum_balance: joint {joint.name!r} holds the model to the world; its reaction is not known"
            )
    sources = {name: Forces(model, law) for name, law in (forces or {}).items()}
    parts = [_Part.of(model, roots, piece, sources) for piece in _pieces(run)]
    if not any(np.any(x) for part in parts for x in part.actuators):
        parts = [replace(part, actuators=()) for part in parts]
    names = [*sources, *(["actuators"] if parts[0].actuators else [])]
    h = np.concatenate([part.momenta[part.kept] for part in parts])
    torques: dict[str, Array] = {}
    pushes: dict[str, Array] = {}
    impulses: dict[str, Array] = {}
    for k, name in enumerate(names):
        found = [part.source(k) for part in parts]
        torques[name], pushes[name] = (
            np.concatenate([x[j][part.kept] for x, part in zip(found, parts, strict=True)]) for j in (0, 1)
        )
        impulses[name] = _gathered([x[2] for x in found], parts)
    total = sum(impulses.values(), np.zeros((len(run.time), 6)))
    columns = model.momentum_matrix(run.q)
    inside, moving = (
        float(np.max(np.sum(np.linalg.norm(columns[:, s], axis=1) * np.abs(run.v), axis=-1)))
        for s in (slice(0, 3), slice(3, 6))
    )
    off = h - h[0] - total
    return MomentumBalance(
        run.time,
        float(np.max(np.linalg.norm(off[:, :3], axis=-1)) / max(inside, 1e-300)),
        float(np.max(np.linalg.norm(off[:, 3:], axis=-1)) / max(moving, 1e-300)),
        h[:, :3],
        {name: x[:, :3] for name, x in impulses.items()},
        torques,
        pushes,
    )


@dataclass(frozen=True, eq=False)
class _Piece:
    """Records from one event to the next, with the states at both of them; `kept` are the records among them."""

    time: Array
    q: Array
    v: Array
    efforts: Array
    kept: Array


def _pieces(run: Run) -> list[_Piece]:
    """Between events: there slopes jump, though momentum does not."""
    found = []
    begin: tuple[float, Array, Array] | None = None
    start = 0
    ends = [*((event, first) for event, first in run.event_records()), (None, len(run.time))]
    for event, stop in ends:
        time, q, v, u = (x[start:stop] for x in (run.time, run.q, run.v, run.efforts))
        kept = np.ones(len(time), dtype=bool)
        held = run.efforts[max(start - 1, 0)]
        if begin is not None and (not len(time) or time[0] > begin[0]):
            time, q, v = (np.concatenate([[x], y]) for x, y in zip(begin, (time, q, v), strict=True))
            u, kept = np.concatenate([held[None], u]), np.r_[False, kept]
        if event is not None:
            if not len(time) or event.time > time[-1]:
                time, q, v = np.r_[time, event.time], np.vstack([q, event.q]), np.vstack([v, event.v])
                u = np.vstack([u, u[-1] if len(u) else held])
                kept = np.r_[kept, False]
            begin = (event.time, event.q_after, event.v_after)
        if len(time):
            found.append(_Piece(time, q, v, u, kept))
        start = stop
    return found


@dataclass(frozen=True, eq=False)
class _Part:
    """A piece with its momenta (n, 6), and moments and forces (n, 3) of each source; of actuators, impulses (n, 6) too."""

    time: Array
    kept: Array
    momenta: Array
    outside: tuple[tuple[Array, Array], ...]
    actuators: tuple[Array, ...]

    @classmethod
    def of(cls, model: Model, roots: Any, piece: _Piece, sources: Mapping[str, Forces]) -> _Part:
        time, q, v = piece.time, piece.q, piece.v
        near, slow = _at_rest(model, roots, q, v)
        h = np.concatenate([model.momentum(near, slow)[:, :3], model.momentum(q, v)[:, 3:]], axis=-1)
        outside = []
        for acting in sources.values():
            tau = np.stack([acting.efforts(q[k], v[k], t=float(time[k])) for k in range(len(time))])
            outside.append(_outside(model, roots, near, tau))
        n, f = _outside(model, roots, near, piece.efforts)
        held = _held(model, piece, roots, near, slow)
        return cls(time, piece.kept, h, tuple(outside), (n, f, held))

    def source(self, k: int) -> tuple[Array, Array, Array]:
        """Moments, forces, and impulses from the beginning of the piece on."""
        if k == len(self.outside):
            n, f, impulses = self.actuators
            return n, f, impulses
        n, f = self.outside[k]
        if len(self.time) < 2:
            return n, f, np.zeros((len(n), 6))
        both = np.concatenate([n, f], axis=-1)
        return n, f, CubicSpline(self.time, both).antiderivative()(self.time)


def _gathered(impulses: list[Array], parts: list[_Part]) -> Array:
    """Impulses of pieces, one after the other, at the records."""
    found, total = [], np.zeros(6)
    for x, part in zip(impulses, parts, strict=True):
        found.append((total + x)[part.kept])
        total = total + x[-1]
    return np.concatenate(found)


def flying_mass(model: Model, parameters: Mapping[str, float] | None = None) -> float:
    """The mass of all that flies on free joints, bodies with modes included."""
    columns = model.momentum_matrix(model.neutral(), parameters=parameters)
    return sum(
        float(np.linalg.norm(columns[3:, model.v_slice(joint.name).start + 3]))
        for joint in model.joints
        if joint.parent == WORLD and isinstance(joint.type, Free)
    )


def _at_rest(model: Model, roots: Any, q: Array, v: Array) -> tuple[Array, Array]:
    """The same motion seen from the first body: H about the centre of mass is not rounded by the size of an orbit."""
    near, slow = q.copy(), v.copy()
    first = model.frame_pose(q, roots[0].child)
    at = first.translation
    moving = np.einsum("kij,kj->ki", first.rotation, v[:, model.v_slice(roots[0].name)][:, 3:])
    for joint in roots:
        R = model.frame_pose(q, joint.child).rotation
        i, j = model.q_slice(joint.name).start, model.v_slice(joint.name).start
        near[:, i : i + 3] -= at
        slow[:, j + 3 : j + 6] -= np.einsum("kji,kj->ki", R, moving)
    return near, slow


def _outside(model: Model, roots: Any, q: Array, tau: Array) -> tuple[Array, Array]:
    """Moment about the centre of mass and force of efforts on the free joints, in world axes."""
    c = model.center_of_mass(q)
    n, f = np.zeros((len(q), 3)), np.zeros((len(q), 3))
    for joint in roots:
        X = model.frame_pose(q, joint.child)
        s = model.v_slice(joint.name)
        F = tau[:, s]
        force = np.einsum("kij,kj->ki", X.rotation, F[:, 3:])
        n += np.einsum("kij,kj->ki", X.rotation, F[:, :3]) + np.cross(X.translation - c, force)
        f += force
    return n, f


def _held(model: Model, piece: _Piece, roots: Any, q: Array, v: Array) -> Array:
    """(n, 6): impulses of efforts that stay as they are in body axes from a record to the next: by values and slopes at
    both ends.
    """
    h = np.diff(piece.time)[:, None]
    c, velocity = model.center_of_mass(q), model.momentum(q, v)[:, 3:] / flying_mass(model)
    angular, linear = np.zeros((len(q), 3)), np.zeros((len(q), 3))
    for joint in roots:
        X = model.frame_pose(q, joint.child)
        V = model.frame_velocity(q, v, joint.child, reference="local_world_aligned")
        w, F = V[:, :3], piece.efforts[:-1, model.v_slice(joint.name)]
        ends = []
        for s in (slice(None, -1), slice(1, None)):
            R = X.rotation[s]
            arm, moving = (X.translation - c)[s], (V[:, 3:] - velocity)[s]
            moment, force = np.einsum("kij,kj->ki", R, F[:, :3]), np.einsum("kij,kj->ki", R, F[:, 3:])
            turned = np.cross(w[s], force)
            n = moment + np.cross(arm, force)
            slope = np.cross(w[s], moment) + np.cross(moving, force) + np.cross(arm, turned)
            ends.append((n, slope, force, turned))
        (n0, d0, f0, e0), (n1, d1, f1, e1) = ends
        angular[1:] += h / 2 * (n0 + n1) + h**2 / 12 * (d0 - d1)
        linear[1:] += h / 2 * (f0 + f1) + h**2 / 12 * (e0 - e1)
    return np.cumsum(np.concatenate([angular, linear], axis=-1), axis=0)

"""The balance of momentum of a run: all torques and forces from outside, integrated, against the change of momentum.

With H the angular momentum about the centre of mass c and P the linear one, both in world axes,

    H(t) - H(0) = integral of sum n_k + (p - c) x f_k,     P(t) - P(0) = integral of sum f_k                       (1)

over what acts from outside. In a tree that flies on a free joint the effort of a force on that joint is its whole wrench,
whatever body it acts on; motors inside, springs and friction have none there. So (1) is an independent check of
everything in between: mass properties, gyroscopic terms, the integrator. It also says where momentum came from, source by
source.

Where mass leaves (`MassFlow`, pulses of thrusters with a tank) it takes along the momentum that it had on board: to (1)
comes the integral of dH/dm m' and of dP/dm m', at the places and speeds of the craft; the rest of what a jet carries is its
thrust, which is among the forces.

The level of microgravity at a place of a craft: what an accelerometer there feels, and how it compares with limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from alembert.errors import ArgumentError, UnsupportedError
from alembert.joints import Free
from alembert.model import WORLD, Model
from alembert.simulate import Forces, Run
from alembert.simulate.elements import ForceLaw

Array = np.ndarray

G0 = 9.80665
"""standard gravity [m/s^2]"""


@dataclass(frozen=True, eq=False)
class MicrogravityLevel:
    """`felt` (N, 3) [m/s^2] in the frame's axes at times (N,): acceleration less that of free fall there."""

    frame: str
    time: Array
    felt: Array

    @property
    def quasi_steady(self) -> Array:
        """(3,): the mean over the run, in millionths of g."""
        return np.trapezoid(self.felt, self.time, axis=0) / (self.time[-1] - self.time[0]) / G0 * 1e6

    @property
    def peak(self) -> float:
        """The largest size, in millionths of g."""
        return float(np.linalg.norm(self.felt, axis=-1).max() / G0 * 1e6)

    @property
    def rms(self) -> float:
        """Root of the mean square, in millionths of g."""
        square = np.sum(self.felt**2, axis=-1)
        mean = np.trapezoid(square, self.time) / (self.time[-1] - self.time[0])
        return float(np.sqrt(mean) / G0 * 1e6)

    def third_octaves(self) -> tuple[Array, Array]:
        """Middle frequencies [Hz] of thirds of octaves, and the root mean square in each, in millionths of g.

        Records must be equally far apart. What is below the first band is the quasi-steady part. By Parseval's theorem the
        squares of all bands and of what is below add up to the mean square without its mean.
        """
        h = np.diff(self.time)
        if len(h) < 8 or np.ptp(h) > 1e-6 * h.mean():
            raise ArgumentError(
                f"third_octaves: {len(self.time)} records from {h.min():.6g} to {h.max():.6g} s apart, expected 9 or more, "
                "equally far apart"
            )
        x = self.felt[:-1] - self.felt[:-1].mean(axis=0)
        n = len(x)
        power = np.sum(np.abs(np.fft.rfft(x, axis=0)) ** 2, axis=-1) / n**2
        power[1 : (n + 1) // 2] *= 2
        frequencies = np.fft.rfftfreq(n, h.mean())
        first = int(np.ceil(10 * np.log10(2 * frequencies[1])))
        last = int(np.floor(10 * np.log10(frequencies[-1])))
        middle = 10.0 ** (np.arange(first, last + 1) / 10)
        edge = 10.0**0.05
        found = [np.sqrt(power[(frequencies >= f / edge) & (frequencies < f * edge)].sum()) for f in middle]
        return middle, np.array(found) / G0 * 1e6

    def __str__(self) -> str:
        steady = ", ".join(f"{x:.3g}" for x in self.quasi_steady)
        return (
            f"microgravity at {self.frame!r}: mean ({steady}), root mean square {self.rms:.3g}, at most {self.peak:.3g} "
            "millionths of g"
        )


def microgravity(run: Run, frame: str) -> MicrogravityLevel:
    """What is felt at the origin of a frame in a run of one motion: thrust, turning, tides, drag, arms that move."""
    if run.q.ndim > 2:
        raise UnsupportedError("microgravity: one motion at a time; run the members of a batch one by one")
    run.model.frame(frame)
    values: Any = run.channel(f"frame:{frame}.specific_force").values
    return MicrogravityLevel(frame, run.time, values)


_FEWEST = 5
_LEFT = "mass that left"
CLOSED = 1e-10
"""of the momenta inside: a balance that leaves more is told to be open"""


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
    """about the centre of mass [N m]; mass that left has none"""
    forces: Mapping[str, Array]
    """[N]"""

    def __str__(self) -> str:
        lines = [
            f"momentum balance: angular to {self.angular_error:.1e}, linear to {self.linear_error:.1e} of the momenta "
            "inside",
            f"  angular momentum {_vector(self.angular[0])} -> {_vector(self.angular[-1])} N m s",
        ]
        for name, impulse in self.impulses.items():
            line = f"  {name}: {_vector(impulse[-1])} N m s"
            if name in self.torques:
                line += f", at most {float(np.max(np.linalg.norm(self.torques[name], axis=-1))):.3g} N m"
            lines.append(line)
        if max(self.angular_error, self.linear_error) > CLOSED:
            lines.append(
                f"  more than {CLOSED:.0e} is left: steps are long for this motion, or something acts that is not named here"
            )
        return "\n".join(lines)


def _vector(x: Array) -> str:
    return "(" + ", ".join(f"{v:.6g}" for v in x) + ")"


def momentum_balance(run: Run, forces: Mapping[str, ForceLaw] | None = None) -> MomentumBalance:
    """Of a run of one motion, with a record at every step. `forces` are all that act from outside, by name: gravity,
    drag, ...

    What controllers and hardware push with (thrusters, torquers) is in the run, and so is mass that left. Between records
    torques are taken as smooth, and commands of sampled laws as held.
    """
    model = run.model
    if run.q.ndim > 2:
        raise UnsupportedError(
            "momentum_balance: one motion at a time; run the members of a batch one by one"
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
    if not any(np.any(part.outside[-1].wrench) for part in parts):
        parts = [replace(part, outside=part.outside[:-1]) for part in parts]
    names = [*sources, "actuators"][: len(parts[0].outside)]
    h = np.concatenate([part.momenta[part.kept] for part in parts])
    wrenches = {
        name: np.concatenate([part.outside[k].wrench[part.kept] for part in parts])
        for k, name in enumerate(names)
    }
    impulses = {name: _gathered(parts, k) for k, name in enumerate(names)}
    if run.has_mass_flow:
        impulses[_LEFT] = run.carried(lambda p: _momenta(model, roots, run.q, run.v, p or {}))
    total = sum(impulses.values(), np.zeros((len(run.time), 6)))
    columns = model.momentum_matrix(run.q, parameters=run.parameters)
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
        {name: x[:, :3] for name, x in wrenches.items()},
        {name: x[:, 3:] for name, x in wrenches.items()},
    )


Parameters = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Records from one event to the next, with the states at both of them; `kept` are the records among them."""

    time: Array
    q: Array
    v: Array
    efforts: Array
    """(n, 2, nv): all of them, and those that are held"""
    kept: Array
    here: Parameters
    """from each record on"""
    until: Parameters
    """up to each record: of masses that fall by steps, what they were before"""
    rates: Parameters
    """of masses that fall smoothly"""


def _pieces(run: Run) -> list[_Piece]:
    """Between events: there slopes jump, though momentum does not. Where masses fall, events switch no constraints."""
    found = []
    begin: tuple[float, Array, Array] | None = None
    start = 0
    efforts = np.stack([run.efforts, run.held_efforts], axis=1)
    here, rates = run.parameters or {}, run.mass_rates
    stepwise = {name for name, x in here.items() if len(x) > 1 and name not in rates}
    until = {name: np.r_[x[:1], x[:-1]] if name in stepwise else x for name, x in here.items()}
    ends = [
        (event, first)
        for event, first in run.event_records()
        if not run.has_mass_flow
        or not (np.array_equal(event.q, event.q_after) and np.array_equal(event.v, event.v_after))
    ]
    for event, stop in [*ends, (None, len(run.time))]:
        time, q, v, u = (x[start:stop] for x in (run.time, run.q, run.v, efforts))
        kept = np.ones(len(time), dtype=bool)
        held = efforts[max(start - 1, 0)]
        if begin is not None and (not len(time) or time[0] > begin[0]):
            time, q, v = (np.concatenate([[x], y]) for x, y in zip(begin, (time, q, v), strict=True))
            u, kept = np.concatenate([held[None], u]), np.r_[False, kept]
        if event is not None:
            if not len(time) or event.time > time[-1]:
                time, q, v = np.r_[time, event.time], np.vstack([q, event.q]), np.vstack([v, event.v])
                u = np.concatenate([u, u[-1:] if len(u) else held[None]])
                kept = np.r_[kept, False]
            begin = (event.time, event.q_after, event.v_after)
        if len(time):
            at = [
                {name: x if len(x) == 1 else np.interp(time, run.time, x) for name, x in given.items()}
                for given in (here, until, rates)
            ]
            found.append(_Piece(time, q, v, u, kept, *at))
        start = stop
    return found


@dataclass(frozen=True, eq=False)
class _Source:
    """Moments about the centre of mass and forces (n, 6), and impulses from the beginning of a piece on (n, 6)."""

    wrench: Array
    impulse: Array


@dataclass(frozen=True, eq=False)
class _Part:
    """A piece with its momenta (n, 6) and what acts from outside; what is in the run comes last."""

    kept: Array
    momenta: Array
    outside: tuple[_Source, ...]

    @classmethod
    def of(cls, model: Model, roots: Any, piece: _Piece, sources: Mapping[str, Forces]) -> _Part:
        near, slow = _at_rest(model, roots, piece.q, piece.v, piece.here)
        outside = []
        for acting in sources.values():

            def wrench(given: Parameters, acting: Forces = acting) -> Array:
                return _outside(model, roots, near, _efforts(acting, piece, given), given)

            outside.append(_Source(wrench(piece.here), _integrated(piece, wrench)))
        every, held = piece.efforts[:, 0], piece.efforts[:, 1]
        smooth = _integrated(piece, lambda given: _outside(model, roots, near, every - held, given))
        commanded = _held(model, piece, roots, near, slow)
        outside.append(_Source(_outside(model, roots, near, every, piece.here), smooth + commanded))
        return cls(piece.kept, _momenta(model, roots, piece.q, piece.v, piece.here), tuple(outside))


def _efforts(acting: Forces, piece: _Piece, given: Parameters) -> Array:
    """(n, nv)"""
    return np.stack(
        [
            acting.efforts(
                piece.q[k], piece.v[k], t=float(t),
                parameters={name: float(x[min(k, len(x) - 1)]) for name, x in given.items()},
            )
            for k, t in enumerate(piece.time)
        ]
    )  # fmt: skip


def _integrated(piece: _Piece, wrench: Callable[[Parameters], Array]) -> Array:
    """(n, 6): of what is smooth between records; masses that fall by steps do so at records."""
    time, here = piece.time, wrench(piece.here)
    if len(time) < 2 or not np.any(here):
        return np.zeros(here.shape)
    if all(np.array_equal(x, piece.until[name]) for name, x in piece.here.items()):
        return scipy.interpolate.CubicSpline(time, here).antiderivative()(time)
    h = np.diff(time)[:, None]
    slopes = scipy.interpolate.CubicSpline(
        time, wrench({name: x[:1] for name, x in piece.here.items()})
    ).derivative()(time)
    each = h / 2 * (here[:-1] + wrench(piece.until)[1:]) + h**2 / 12 * (slopes[:-1] - slopes[1:])
    return np.concatenate([np.zeros((1, 6)), np.cumsum(each, axis=0)])


def _momenta(model: Model, roots: Any, q: Array, v: Array, given: Parameters) -> Array:
    """(n, 6): angular about the centre of mass, and linear."""
    near, slow = _at_rest(model, roots, q, v, given)
    angular = model.momentum(near, slow, parameters=given)[:, :3]
    return np.concatenate([angular, model.momentum(q, v, parameters=given)[:, 3:]], axis=-1)


def _gathered(parts: list[_Part], source: int) -> Array:
    """Impulses of pieces, one after the other, at the records."""
    found, total = [], np.zeros(6)
    for part in parts:
        x = part.outside[source].impulse
        found.append((total + x)[part.kept])
        total = total + x[-1]
    return np.concatenate(found)


def flying_mass(model: Model, parameters: Mapping[str, Any] | None = None) -> Any:
    """The mass of all that flies on free joints, bodies with modes included; an array where parameters are."""
    columns = model.momentum_matrix(model.neutral(), parameters=parameters)
    return sum(
        np.linalg.norm(columns[..., 3:, model.v_slice(joint.name).start + 3], axis=-1)
        for joint in model.joints
        if joint.parent == WORLD and isinstance(joint.type, Free)
    )


def _at_rest(model: Model, roots: Any, q: Array, v: Array, given: Parameters) -> tuple[Array, Array]:
    """The same motion seen from the first body: H about the centre of mass is not rounded by the size of an orbit."""
    near, slow = q.copy(), v.copy()
    first = model.frame_pose(q, roots[0].child, parameters=given)
    at = first.translation
    moving = np.einsum("kij,kj->ki", first.rotation, v[:, model.v_slice(roots[0].name)][:, 3:])
    for joint in roots:
        R = model.frame_pose(q, joint.child, parameters=given).rotation
        i, j = model.q_slice(joint.name).start, model.v_slice(joint.name).start
        near[:, i : i + 3] -= at
        slow[:, j + 3 : j + 6] -= np.einsum("kji,kj->ki", R, moving)
    return near, slow


def _outside(model: Model, roots: Any, q: Array, tau: Array, given: Parameters) -> Array:
    """(n, 6): moment about the centre of mass and force of efforts on the free joints, in world axes."""
    c = model.center_of_mass(q, parameters=given)
    n, f = np.zeros((len(q), 3)), np.zeros((len(q), 3))
    for joint in roots:
        X = model.frame_pose(q, joint.child, parameters=given)
        s = model.v_slice(joint.name)
        F = tau[:, s]
        force = np.einsum("kij,kj->ki", X.rotation, F[:, 3:])
        n += np.einsum("kij,kj->ki", X.rotation, F[:, :3]) + np.cross(X.translation - c, force)
        f += force
    return np.concatenate([n, f], axis=-1)


def _center(model: Model, q: Array, v: Array, given: Parameters, rates: Parameters) -> tuple[Array, Array]:
    """The centre of mass and its velocity (n, 3), which masses that leave change."""
    c = model.center_of_mass(q, parameters=given)
    moving = model.momentum(q, v, parameters=given)[:, 3:] / flying_mass(model, given)[..., None]
    for name, rate in rates.items():
        d = 1e-3 * float(np.max(given[name]))
        more, less = (model.center_of_mass(q, parameters={**given, name: given[name] + x}) for x in (d, -d))
        moving = moving + (more - less) / (2 * d) * rate[:, None]
    return c, moving


def _held(model: Model, piece: _Piece, roots: Any, q: Array, v: Array) -> Array:
    """(n, 6): impulses of efforts that stay as they are in body axes from a record to the next: by values and slopes at
    both ends.
    """
    impulses = np.zeros((len(q), 6))
    if len(q) < 2 or not np.any(piece.efforts[:, 1]):
        return impulses
    h = np.diff(piece.time)[:, None]
    sides = [
        (s, *_center(model, q, v, given, piece.rates))
        for s, given in ((slice(None, -1), piece.here), (slice(1, None), piece.until))
    ]
    for joint in roots:
        X = model.frame_pose(q, joint.child, parameters=piece.here)
        V = model.frame_velocity(q, v, joint.child, reference="local_world_aligned", parameters=piece.here)
        w, F = V[:, :3], piece.efforts[:-1, 1, model.v_slice(joint.name)]
        ends = []
        for s, c, velocity in sides:
            R = X.rotation[s]
            arm, moving = (X.translation - c)[s], (V[:, 3:] - velocity)[s]
            moment, force = np.einsum("kij,kj->ki", R, F[:, :3]), np.einsum("kij,kj->ki", R, F[:, 3:])
            turned = np.cross(w[s], force)
            slope = np.cross(w[s], moment) + np.cross(moving, force) + np.cross(arm, turned)
            value = np.concatenate([moment + np.cross(arm, force), force], axis=-1)
            ends.append((value, np.concatenate([slope, turned], axis=-1)))
        (y0, d0), (y1, d1) = ends
        impulses[1:] += h / 2 * (y0 + y1) + h**2 / 12 * (d0 - d1)
    return np.cumsum(impulses, axis=0)

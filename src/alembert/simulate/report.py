"""How well a run kept what the physics keeps, and whether it stayed within the limits of its model.

The work of all that puts energy into a model or takes it out: efforts, wrenches, prescribed motion, friction.

Runs with error control add it up along their steps, whatever the interval of their records. Over one step the power is
a polynomial through Gauss points of the dense output,

    P(t) = sum_k c_k L_k(x),    x = 2 (t - a)/(b - a) - 1,    W(t) = (b - a)/2 int_-1^x P dx         (1)

with Legendre polynomials L_k. Runs with fixed steps have it from their records, or from their steps where records are
further apart (`alembert.simulate.fixed_run.work_of_steps`).

Accelerations that jump within a step of error control: found, placed and told.

A law that jumps without telling (bang-bang, sign) makes error control reject step after step until one is so short that the
jump no longer matters. So a step much shorter than others, over which the accelerations change, is looked at: halved again
and again, a smooth change shrinks, a jump stays whole in one of the halves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.polynomial import legendre

from alembert.errors import NumericalError, warn
from alembert.model import Model
from alembert.simulate.adaptive import DenseStep
from alembert.simulate.chart_equation import Flow
from alembert.simulate.elements import function_kernel, state_symbols
from alembert.simulate.events import Topology
from alembert.simulate.simulation import Simulation
from alembert.simulate.variational import _friction

if TYPE_CHECKING:
    from alembert.simulate.result import Run


Array = np.ndarray
FEW, MANY = 4, 8
"""Gauss points of a step in which few records lie (its end counts), and of others (the way counts as well)"""


def power(
    system: Simulation,
    time: Array,
    q: Array,
    v: Array,
    given: Array,
    besides: Array | float = 0.0,
    *,
    controllers: Array | None = None,
    within: Array | None = None,
) -> Array:
    """(..., N), at times (N,): of the efforts `given`, friction, wrenches, and force elements without a potential.

    `besides` are efforts that act as well and whose work is counted elsewhere; from the states of `controllers` come
    masses that fall. Tables that hold are read at the times `within`.
    """
    masses = system.parameters_along(controllers) if system.feedback.flows else None
    total = given + friction_efforts(system, v, masses)
    known = given + besides
    if system.loads.elements is not None:
        kept, other, _, _ = system.loads.elements_at(time[:, None], q, v, along_time=True, parameters=masses)
        total, known = total + other, known + kept + other
    if system.loads.reading is not None:
        total = total + system.reading_efforts(time[:, None], q, v, known)
    found = np.sum(total * v, axis=-1)
    if system.loads.has_wrenches:
        zero = np.zeros(system.own.nv)
        for k, t in enumerate(time):
            x, y = q[..., k, :], v[..., k, :]
            wrenches = system.loads.wrenches_at(float(t), x, y, None if within is None else float(within[k]))
            found[..., k] += system.own.power(x, y, zero, wrenches=wrenches, parameters=system.own_parameters)
    return found


def friction_efforts(system: Simulation, v: Array, along: Mapping[str, Array] | None = None) -> Array:
    """(..., N, nv); `along` are parameters (..., N), where masses fall."""
    model = system.own
    if not system.dissipates:
        return np.zeros_like(v)

    def friction() -> ca.Function:
        _, _, speeds, p = state_symbols(model)
        return ca.Function("friction", [speeds, p], [_friction(model, p)(speeds)])

    key, given = f"{model.fingerprint}:friction", {"v": model.nv, "parameters": len(model.parameters) or None}
    results = {"effort": model.nv}
    kernel = model.compute.kept(key, lambda: function_kernel("friction", key, given, results, friction))
    if not model.parameters:
        return kernel(v)
    parameters = model.compute.parameter_array("simulate", along or system.own_parameters)
    return kernel(v, parameters if along or parameters.ndim == 1 else parameters[..., None, :])


class StepNotes:
    """What was done at the steps of a run whose records are further apart: efforts, all and those held, and states.

    States are noted where steps are made one by one (`single`); others can be made again.
    """

    def __init__(self, *, single: bool) -> None:
        self.single = single
        self.numbers: list[float] = []
        self.jumps: set[int] = set()
        """the steps from which on other efforts or wrenches act"""
        self._efforts: list[tuple[Array, Array]] = []
        self._states: list[tuple[Array, Array, Array]] = []
        self.topologies: list[Topology] = []
        """what held at each of the states"""

    def add(
        self, number: float, effort: Array, held: Array, q: Array, v: Array, x: Array, topology: Topology
    ) -> None:
        if self.single:
            self._states.append((q.copy(), v.copy(), x.copy()))
            self.topologies.append(topology)
        elif self._efforts and all(
            np.array_equal(x, y) for x, y in zip(self._efforts[-1], (effort, held), strict=True)
        ):
            return
        self.numbers.append(number)
        self._efforts.append((effort, held))

    def efforts_at(self, number: int) -> tuple[Array, Array]:
        """All efforts that are given as numbers, and those held of them, from a step on."""
        return self._efforts[max(0, bisect_right(self.numbers, number) - 1)]

    def cut(self) -> float:
        """Leave out a step that was noted in part; the number of the last one."""
        kept = min(len(self.numbers), len(self._efforts), *([len(self.topologies)] if self.single else []))
        del self.numbers[kept:], self._efforts[kept:], self._states[kept:], self.topologies[kept:]
        return self.numbers[-1] if kept else -1.0

    def states(self) -> tuple[Array, Array, Array, Array, Array]:
        """Numbers of steps, q, v, states of controllers and what was held, along the last axis but one."""
        q, v, controllers = (np.stack([x[k] for x in self._states], axis=-2) for k in (0, 1, 2))
        held = np.stack([np.broadcast_to(x, v.shape[:-2] + x.shape[-1:]) for _, x in self._efforts], axis=-2)
        return np.array(self.numbers), q, v, controllers, held


class Account:
    """The work along a run with error control; nothing is asked for where nothing does work."""

    def __init__(self, system: Simulation) -> None:
        self.system = system
        self.is_kept = not system.conserves_energy
        self.done = 0.0
        self._t = -np.inf

    def over(self, piece: DenseStep, flow: Flow, end: float, times: Array) -> list[float]:
        """Go on to `end`, at most that of the piece; the work up to each of the times in between."""
        a, b = max(self._t, piece.start), min(end, piece.end)
        if not self.is_kept or b <= a:
            return [self.done] * len(times)
        x, to_coefficients = _gauss(FEW if len(times) < FEW else MANY)
        t = a + (x + 1) * (b - a) / 2
        coefficients = legendre.legint(to_coefficients @ self._power(t, piece, flow), lbnd=-1)
        where = np.clip(2 * (np.append(times, b) - a) / (b - a) - 1, -1.0, 1.0)
        found = self.done + (b - a) / 2 * legendre.legval(where, coefficients)  # (1)
        self.done, self._t = float(found[-1]), b
        return found[:-1].tolist()

    def _power(self, times: Array, piece: DenseStep, flow: Flow) -> Array:
        (q, v), z = piece.at(times), piece.memory(times)
        efforts = flow.efforts_along(times, q, v, z)
        if efforts is None:
            efforts = np.array([flow.efforts(*row) for row in zip(times.tolist(), q, v, z, strict=True)])
        return power(self.system, times, q, v, efforts)


@cache
def _gauss(count: int) -> tuple[Array, Array]:
    """Points in (-1, 1), and the matrix from values there to coefficients of Legendre polynomials."""
    x, _ = legendre.leggauss(count)
    return x, np.linalg.inv(legendre.legvander(x, count - 1))


SHORT = 1e-3
"""of the longest step so far, or of a thousandth of the run: shorter ones are looked at"""
SEEN = 1e-3
"""of the accelerations: smaller jumps are not told"""
WHOLE, HALVINGS = 0.9, 12
"""what must be left of a change in one half, each time"""
PROBED, SLIDING, AROUND = 50, 5, 4.0 ** np.arange(5)
"""of short steps that follow one another each 50th is looked at, up to so many lengths before and after it; where 5 have a
jump that near, the motion stays where the law jumps, and would never get on"""


class Jumps:
    """What is found in a run."""

    def __init__(self, duration: float) -> None:
        self._longest, self._short, self._slid = duration / 1000, 0, 0
        self.count = 0
        self.first: tuple[float, bool] | None = None
        """the time of the first, and whether it is one of the time alone"""

    def look(self, name: str, flow: Flow, piece: DenseStep) -> None:
        length = piece.end - piece.start
        self._longest = max(self._longest, length)
        if length > SHORT * self._longest:
            self._short = self._slid = 0
            return
        self._short += 1
        found = _placed(_Path(flow, piece), np.array([piece.start, piece.end]))
        if found is not None:
            self.count += 1
            self.first = self.first or found
        if self._short % PROBED == 0:
            times = piece.end + length * np.concatenate([-AROUND[::-1], AROUND])
            self._slid += _placed(_Straight(flow, piece), times) is not None
        if self._slid == SLIDING:
            raise NumericalError(
                f"simulate: {name} cannot go on at t = {piece.end:.9g} s: the forces jump to and fro there, so that the "
                "motion slides along the place where they jump, in ever shorter steps; sample the controller (Sampled), "
                "make the jump a steep slope (tanh), or give a step and integrator='rk4'"
            )

    def tell(self, name: str, steps: int) -> None:
        """Warn of what was found; to be called once, at the end."""
        if self.first is None:
            return
        t, alone = self.first
        hint = (
            "give the controller its period (Sampled), or its times (breaks)"
            if alone
            else "make the place where it jumps an event, or the jump a steep slope (tanh)"
        )
        times = "once" if self.count == 1 else f"{self.count} times"
        warn(
            f"simulate: forces jump {times} without telling, first at t = {t:.9g} s: of {steps} steps {name} spent many "
            f"there, and what is shorter than a step may be missed; {hint}"
        )


class _Path:
    """Accelerations along a step."""

    def __init__(self, flow: Flow, piece: DenseStep) -> None:
        self.flow, self.piece = flow, piece

    def state(self, t: float) -> tuple[Array, Array, Array]:
        return *self.piece.at(t), self.piece.memory(t)

    def at(self, t: float, of: float | None = None) -> Array:
        """At a time and the state `of` another one."""
        return self.flow.slope(t, *self.state(t if of is None else of))[0]


class _Straight(_Path):
    """The same around the end of a step, as if the accelerations there stayed."""

    def __init__(self, flow: Flow, piece: DenseStep) -> None:
        super().__init__(flow, piece)
        self._end = super().state(piece.end)
        self._a = flow.slope(piece.end, *self._end)[0]

    def state(self, t: float) -> tuple[Array, Array, Array]:
        (q, v, z), dt = self._end, t - self.piece.end
        return self.flow.system.model.integrate(q, dt * v), v + dt * self._a, z


def _placed(path: _Path, times: Array) -> tuple[float, bool] | None:
    """When the accelerations jump between some times, and whether they do so with time alone; None where they do not."""
    at = path.at
    try:
        values = [at(float(t)) for t in times]
        changes = [_most(b - a) for a, b in pairwise(values)]
        k = int(np.argmax(changes))
        start, end, before, after = float(times[k]), float(times[k + 1]), values[k], values[k + 1]
        size = changes[k]
        if not size > SEEN * (_most(before) + _most(after)):
            return None
        for _ in range(HALVINGS):
            middle = (start + end) / 2
            between = at(middle)
            if _most(between - before) >= WHOLE * size:
                end, after = middle, between
            elif _most(after - between) >= WHOLE * size:
                start, before = middle, between
            else:
                return None
        alone = _most(at(end, start) - before) >= WHOLE * size
    except NumericalError:  # told by the scheme itself
        return None
    return end, bool(alone)


def _most(x: Array) -> float:
    return float(np.max(np.abs(x), initial=0.0))


ROUNDING = 1e-6
"""in SI units: less beyond a limit is not told"""


@dataclass(frozen=True)
class Report:
    """How well a run kept what the physics keeps. Numbers are the worst over the run (and the batch).

    `energy_error` is |E - E(0) - work| over the largest kinetic energy; with `work` None no work was done,
    otherwise it is the work of efforts, wrenches and friction up to the end. `momentum_error` is the largest
    change of the momentum over the size of its terms, angular and linear; None where something outside acts
    on the model.
    """

    integrator: str
    reason: str
    steps: int
    energy_start: float
    energy_error: float
    work: float | None
    momentum_error: tuple[float, float] | None
    quaternion_error: float | None
    constraint_error: float | None = None
    """the largest residual of loops and couplings [m, rad]"""
    event_energy: float | None = None
    """what events (impacts, docking) have added to the energy, counted in the balance; None without events"""
    work_error: float | None = None
    """with fixed steps in Python, so many that only records further apart are kept, how well the work is known from them,
    on the scale of `energy_error`; None where this is not what limits the balance"""
    spin_error: float | None = None
    """as `momentum_error`, of the angular momentum about the centre of mass; the other is about the world's origin"""
    energy_limit: float = np.inf
    """an `energy_error` beyond it means that the run is wrong somewhere"""
    beyond_limits: Mapping[str, float] = field(default_factory=dict)
    """by how much limits of the model were passed, where they were: coordinates, speeds (`v:`), efforts (`tau:`) and
    actuators (`actuator:`); a run does not keep them by itself"""
    passages: tuple[float, ...] = ()
    """times at which the motion went through places where loops and couplings lose rank"""
    stopped: str = ""
    """where and by which event the run ended before its time"""
    unfinished: int = 0
    """motions of a batch that are not finite to the end; the numbers are those of the others"""

    def __str__(self) -> str:
        lines = [f"{self.integrator}: {self.reason}", f"steps: {self.steps}"]
        if self.stopped:
            lines.append(self.stopped)
        if self.unfinished:
            lines.append(f"MOTIONS THAT ARE NOT FINITE TO THE END: {self.unfinished}; below are the others")
        if not self.is_balanced:
            lines.append(
                "THE BALANCE OF ENERGY IS BROKEN: do not trust this run; a smaller step or tolerance may help"
            )
        if self.work is None:
            lines.append(f"energy kept to {self.energy_error:.1e} of the largest kinetic energy")
        else:
            lines.append(
                f"energy and work ({self.work:.6g} J) balance to {self.energy_error:.1e} of the largest kinetic energy"
            )
        if self.work_error is not None:
            lines.append(
                f"  (the work is summed over the records, and known to {self.work_error:.1e} from them: a shorter interval "
                "tells more)"
            )
        if self.momentum_error is not None:
            angular, linear = self.momentum_error
            lines.append(f"momentum kept to {angular:.1e} (angular) and {linear:.1e} (linear) of its terms")
            if self.spin_error is not None:
                lines.append(
                    f"  about the world's origin; about the centre of mass to {self.spin_error:.1e} (angular)"
                )
        if self.quaternion_error is not None:
            lines.append(f"unit quaternions to {self.quaternion_error:.1e}")
        if self.constraint_error is not None:
            lines.append(f"loops and couplings closed to {self.constraint_error:.1e}")
        if self.passages:
            times = ", ".join(f"{t:.6g}" for t in self.passages[:5]) + (
                ", ..." if len(self.passages) > 5 else ""
            )
            lines.append(
                f"went through {len(self.passages)} singular places of loops and couplings (t = {times} s), where other "
                "motions branch off"
            )
        if self.beyond_limits:
            listed = ", ".join(f"{name} by {x:.3g}" for name, x in self.beyond_limits.items())
            kept = "positions are kept by JointStops or SoftStop, efforts by Drive(limit=...)"
            lines.append(f"limits of the model were passed: {listed} ({kept})")
        if self.event_energy:
            lines.append(f"events added {self.event_energy:.6g} J, which the balance counts")
        return "\n".join(lines)

    @property
    def is_balanced(self) -> bool:
        """Whether the energy is kept, or balances the work, as well as this integrator should."""
        return self.energy_error <= self.energy_limit


def report_of(run: Run) -> Report:
    model, system = run.model, run._system
    E = run.energy
    # next to rest, the rounding of the potential energy is what can be kept
    scale = max(_worst(run, run.kinetic_energy), 1e-9 * _worst(run, E), np.finfo(float).tiny)
    closed = system.conserves_energy
    error = E - E[..., :1] - (0.0 if closed else run.work) - run._jumps
    energy_error = _worst(run, error) / scale
    momentum, spin = None, None
    if _is_isolated(system, run.efforts) and all(event.internal for event in run.events):
        h = run.momentum
        moved = np.abs(h - h[..., :1, :])
        A = model.momentum_matrix(run.q, about="world", parameters=run.parameters)
        terms = np.einsum(
            "...ij,...j->...i", np.abs(A), np.abs(run.v)
        )  # the body at rest too may have parts that move
        parts = [slice(0, 3), slice(3, 6)]
        momentum = tuple(
            _worst(run, moved[..., s]) / max(_worst(run, terms[..., s]), np.finfo(float).tiny) for s in parts
        )
        centre = model.center_of_mass(run.q, parameters=run.parameters)
        own = h[..., :3] - np.cross(centre, h[..., 3:])
        spin = _worst(run, own - own[..., :1, :]) / max(_worst(run, terms[..., :3]), np.finfo(float).tiny)
    lengths = [
        np.abs(np.linalg.norm(run.q[..., [s.start + k for k in entries]], axis=-1) - 1)
        for s, entries in _quaternions(model)
    ]
    return Report(
        run.integrator,
        run.reason,
        run.steps,
        float(E[..., 0].flat[0]) if E.ndim > 1 else float(E[0]),
        energy_error,
        None if closed else float(np.asarray(run.work[..., -1]).flat[0]),
        momentum,  # type: ignore[arg-type]
        max((_worst(run, x) for x in lengths), default=None),
        _constraint_error(run) if system.constrained else None,
        float(run._jumps[-1]) if run.events else None,
        None if closed else _work_error(run, energy_error, scale),
        spin,
        run._energy_limit * max(1.0, run._slow / scale),
        _beyond_limits(run),
        run.passages,
        _stopped(run),
        int(np.count_nonzero(~_finished(run))),
    )


def _stopped(run: Run) -> str:
    start, end = run.time[0], run.time[-1]
    if not run.events or end - start > (1 - 1e-9) * run._settings.duration:
        return ""
    asked, name = start + run._settings.duration, run.events[-1].name
    return f"ended at t = {end:.6g} s, and not at {asked:.6g} s: event {name!r} stopped it"


def _finished(run: Run) -> Array:
    """(*batch,): which motions are finite to the end."""
    return np.isfinite(run.q[..., -1, :]).all(axis=-1)


def _worst(run: Run, x: Array) -> float:
    """The largest size of x (*batch, ...), by the motions that are finite to the end, if there are any."""
    finished = _finished(run)
    return float(np.fmax.reduce(np.abs(x[finished] if finished.any() else x), axis=None))


def _work_error(run: Run, energy_error: float, scale: float) -> float | None:
    """What half as many records change of the work, where this may be what is missing in the balance."""
    interval = run._settings.interval
    known = run._notes is not None or run._work is not None
    if known or run.step is None or interval is None or interval < 1.5 * run.step or len(run.time) < 5:
        return None
    from alembert.simulate.fixed_run import work_of_records

    coarse, fine = work_of_records(run, 2), work_of_records(run)[..., ::2]
    found = float(np.max(np.abs(fine - coarse))) / scale
    return found if found > 0.1 * energy_error else None


def _constraint_error(run: Run) -> float:
    """The largest residual of what holds, at any record."""
    system, worst = run._system, 0.0
    firsts = [first for first, _ in run._topologies] + [len(run.time)]
    for (first, topology), last in zip(run._topologies, firsts[1:], strict=True):
        if topology.active and last > first:
            values = {name: np.asarray(x) for name, x in topology.values.items()}
            q = run.q[..., first:last, :]
            residual = system.model.constraint_residual(
                np.where(np.isfinite(q).all(axis=-1, keepdims=True), q, q[..., :1, :]),
                active=topology.active,
                parameters={**(run.parameters or {}), **values} or None,
            )
            worst = max(worst, _worst(run, residual))
    return worst


def _beyond_limits(run: Run) -> dict[str, float]:
    """By name, how far the worst record is beyond a limit; rounding at a stop is none."""
    model = run.model
    given = run.efforts + run.required_efforts
    looked_at = [
        ("", model.coordinate_names, run.q, model.lower_limits, model.upper_limits),
        ("v:", model.speed_names, run.v, -model.velocity_limits, model.velocity_limits),
        ("tau:", model.speed_names, given, -model.effort_limits, model.effort_limits),
    ]
    driven = [(actuator.joint, actuator.dof) for actuator in model.actuators]
    for actuator in model.actuators:
        if driven.count((actuator.joint, actuator.dof)) == 1:  # which of several gives what is not known
            x = run.channel(f"actuator:{actuator.name}").values
            low, high = map(np.array, actuator.limits)
            looked_at.append(("actuator:", (actuator.name,), x, low, high))
    found: dict[str, float] = {}
    for prefix, names, x, low, high in looked_at:
        over = np.fmax.reduce(np.fmax(low - x, x - high).reshape(-1, len(names)), axis=0)
        found |= {f"{prefix}{name}": float(most) for name, most in zip(names, over, strict=True)}
    return {name: most for name, most in found.items() if most > ROUNDING}


def _quaternions(model: Model) -> list[tuple[slice, list[int]]]:
    """Joints with a unit quaternion, and its entries."""
    found = []
    for owner in model.space:
        labels = [label for label, _ in owner.type.coordinates]
        entries = [k for k, label in enumerate(labels) if label in ("qw", "qx", "qy", "qz")]
        if len(entries) == 4:
            found.append((owner.q, entries))
    return found


def _is_isolated(system: Simulation, efforts: Array) -> bool:
    """Nothing from outside acts: free joints to the world without anything on them, no gravity, no wrenches."""
    model = system.model
    if system.loads.has_wrenches or any(model.value(g) for g in model.gravity):
        return False
    if system.loads.reading is not None:
        return False
    if system.loads.elements is not None and not system.loads.elements.internal:
        return False
    for joint in model.joints:
        if joint.parent != "world":
            continue
        bare = not (joint.spring or joint.friction or joint.armature or joint.rotors)
        s = model.v_slice(joint.name)
        if joint.type.nv != 6 or not bare or np.any(efforts[..., s]) or np.any(system.prescribed[s]):
            return False
    return True

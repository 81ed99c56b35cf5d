"""`simulate`: check what is given, choose an integrator, run it, and warn of what shows that the result is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from alembert.algorithms.failures import heavy
from alembert.arguments import real, unknown
from alembert.errors import ArgumentError, NumericalError, UnsupportedError, warn
from alembert.model import Model
from alembert.model.modal import ModalBody
from alembert.model.model import check_model
from alembert.simulate import channels
from alembert.simulate.actuators import Drive
from alembert.simulate.adaptive import ADAPTIVE
from alembert.simulate.adaptive_run import Restart, run_adaptive
from alembert.simulate.choice import IMPLICIT, INTEGRATORS, choose, warn_of_long_steps
from alembert.simulate.fixed_run import run_fixed
from alembert.simulate.inputs import Inputs, Settings, Stabilisation
from alembert.simulate.records import check_times
from alembert.simulate.result import Run
from alembert.simulate.schedule import asked_in_python
from alembert.simulate.schemes import MULTISTEP
from alembert.simulate.simulation import Simulation

Array = np.ndarray
_CLOCK = 1e-3
"""of a step: the most by which the numbers of time may be apart"""
_LEAST_TOLERANCE = 2.3e-14
"""below a hundred units of rounding SciPy's integrators raise it themselves"""
ROUNDING = 1e-14
"""how far off the surface, relative to the size of a loop, a state may be without being put back on it"""
LOST = 1e-2
"""the same, of loops under error control: beyond it the motion is another one, and the run is refused"""
LOOKED_AT, FEW = 200, 10
"""records at which the balance is looked at when a run ends; with fewer, the largest kinetic energy is not known well"""
FAR = 0.3
"""of the extent of a flexible body: so deflected, the tip of a cantilever is off by some per cent"""
FAST = 0.1
"""of the first frequency: rates beyond which motion-induced stiffness matters"""
APART = 1e-3
"""of a coordinate or speed, or in SI units: a start that differs by more from that of a prescribed motion is told"""
WEAK = 0.1
"""of the best value on the way: where a singular value is less, the place is told"""


def simulate(
    model: Model,
    q0: Any = None,
    v0: Any = None,
    *,
    duration: float,
    step: float | None = None,
    interval: float | None = None,
    integrator: str = "auto",
    controller: Any = None,
    efforts: Any = None,
    wrenches: Mapping[str, Any] | None = None,
    prescribed: Mapping[str, Any] | None = None,
    drives: Mapping[str, Drive] | None = None,
    sensors: Any = (),
    events: Any = (),
    locked: Any = (),
    parameters: Mapping[str, Any] | None = None,
    gravity: Any = None,
    forces: Any = (),
    start: float = 0.0,
    tolerance: float = 1e-9,
    absolute_tolerance: float = 1e-11,
    stabilisation: str = "projection",
    stabilisation_rate: float = 20.0,
    record: Any = (),
    progress: bool | None = None,
) -> Run:
    """The motion from the state (q0, v0), or from a batch of states (..., nq), (..., nv).

    Args:
        model: what moves. Loops, couplings and equations are kept at every step, by
            projection or (variational) by the step itself.
        q0, v0: where it starts: arrays, or by joint (`{"elbow": 0.5}`), others neutral and at rest; neutral and at
            rest when left out.
        duration: how long [s], from `start`.
        step: of fixed-step schemes [s].
        interval: between records [s]; by default every step, or a thousandth of the duration with error
            control.
        integrator: one of `INTEGRATORS`, or "auto": the run's `reason` says what was chosen and why.
        controller: a function u(t, q, v) of one state (or `Batched(...)` of all motions of a batch at once), a
            `casadi.Function` of the same (compiled into the loop), `Sampled(...)`, a `StateSpace` or
            `DynamicController(...)` whose inputs and outputs are named after those of the model, or a list of them, whose
            efforts add up.
        efforts: constant efforts, (..., nv) or by joint; by joint also a `Table` over time.
        wrenches: by frame, constant (6,), a `Table`, or functions of (t, q, v): moment and force in the frame's axes.
        prescribed: joints that follow a motion: a number to stay at, a `casadi.Function` of t for the
            coordinates, a cubic `Table`, or a Python function of t that returns coordinates, speeds and accelerations.
            They begin where their motion does; a warning tells where `q0` and `v0` say otherwise.
        drives: by joint, how its drive carries out what controllers ask for (`efforts` pass it by); geared rotors become
            part of the model.
        sensors: `Measured` sensors, for `Sampled` controllers that read them, and for `run.measurements`.
        events: `Event`s to look for, at the ends of steps (and between them with error control), `JointStops` or
            `PlaneImpact`.
        locked: joints that are locked from the start, until an event releases them.
        parameters: values for the model's parameters; arrays go along the batch.
        gravity: another gravity than the model's: a vector, `CentralGravity` or `GravityGradient`.
        forces: force elements that act besides the model's springs and friction: `SpringDamper`, `Bushing`, `Drag`,
            `SoftStop`, `ForceElement`.
        start: the time at which the run begins [s].
        tolerance, absolute_tolerance: of schemes with error control, relative and in SI units. The latter is at least a
            thousandth of the former times the size of a coordinate (an orbit's radius).
        stabilisation: how closed loops stay so: "projection" (exact), "baumgarte" or "ggl" (feedback, see
            `alembert.simulate.closed_loops`) at `stabilisation_rate` [1/s].
        record: names of quantities for `run.recorded`, besides q, v and efforts: `frame:hand.position`, `energy`,
            `sensor:gyro@50` (50 a second), ...; see `alembert.simulate.channels`.
        progress: whether to show a bar (by default on terminals, when it takes longer than a second).
    """
    check_model("simulate", model)
    inputs = Inputs(
        controller,
        efforts,
        wrenches,
        prescribed,
        drives,
        sensors,
        events,
        locked,
        parameters,
        gravity,
        forces,
    )
    model = inputs.model(model)
    if not isinstance(integrator, str) or integrator not in ("auto", *INTEGRATORS):
        raise ArgumentError(unknown("simulate: no integrator", integrator, ("auto", *INTEGRATORS)))
    q, v, batch = _start(model, q0, v0, parameters)
    check_times("simulate", duration, step, interval)
    real("simulate", "start", start, "a time in seconds")
    apart = float(np.spacing(abs(start)))
    if apart > _CLOCK * min(step or duration, interval or duration):
        raise ArgumentError(
            f"simulate: start is {start!r} s, where numbers are {apart:.2g} s apart; expected a time nearer to zero"
        )
    least = f"a number of at least {_LEAST_TOLERANCE:g}"
    real("simulate", "tolerance", tolerance, least, least=_LEAST_TOLERANCE)
    real("simulate", "absolute_tolerance", absolute_tolerance, "a positive number", over=0.0)
    system = Simulation(model, inputs, batch)
    system.stabilisation = Stabilisation(stabilisation, stabilisation_rate)
    _check_motions("efforts", system.loads.efforts.shape, batch)
    _warn_of_drives(system)
    if batch and inputs.stops:
        raise UnsupportedError(
            "simulate: JointStops and a batch of motions do not go together; give SoftStop, or al.ensemble(model, "
            "{'q0': ..., 'v0': ...}, ...), which runs them one by one on all cores"
        )
    for stops in inputs.stops:
        q, v = stops.start(system, start, q, v)
    if inputs.locks and batch:
        raise UnsupportedError(
            "simulate: locked joints and a batch of motions do not go together; al.ensemble(model, {'q0': ..., 'v0': ...}, "
            "...) runs them one by one on all cores"
        )
    for lock in inputs.locks:
        v = lock.apply(system, start, q, v).v
    for what, table in system.loads.tables.all:
        table.check_range(what, start, start + duration)
    system.prescribed_motions.check(start, duration)
    _warn_of_prescribed(system, start, q, v)
    chosen, reason, given = integrator, "as asked", step
    if integrator == "auto":
        chosen, reason, step = choose(system, q, v, start, duration, step, interval)
    if system.bound_laws:
        steps = f"the integrator is {chosen!r}" if chosen in (*ADAPTIVE, *IMPLICIT, *MULTISTEP) else None
        why = steps or asked_in_python(system, system.watched_events)
        if why is not None:
            reason = (
                f"{reason}; sensors and laws are asked in Python between steps, not in machine code: {why}"
            )
    if system.switches and chosen in IMPLICIT:
        raise UnsupportedError(
            f"simulate: integrator {chosen!r} and a changing topology do not go together; choose 'rk4' or 'dop853'"
        )
    for k, flow in system.feedback.flows:
        if chosen in (*ADAPTIVE, *IMPLICIT):
            raise UnsupportedError(
                f"simulate: MassFlow and integrator {chosen!r} do not go together: masses fall in explicit steps; choose "
                "integrator='rk4' and a step"
            )
        flow.check(start, duration, system.x[..., k])
    settings = Settings(
        duration,
        step,
        interval,
        start,
        tolerance,
        absolute_tolerance,
        events=system.watched_events,
        record=channels.requests(model, record, system.feedback.states) if record else (),
        progress=progress,
        inputs=inputs,
    )
    if system.constrained:
        if chosen == "generalised_alpha":
            held = model.constrained_compute.rows.names[0]
            raise UnsupportedError(
                f"simulate: integrator {chosen!r} and a model with loops or couplings ({held!r}) do not go together; "
                "choose 'radau' if it is stiff, otherwise 'rk4' or 'dop853'"
            )
        if not model.is_constrained or system.surface.check_closed(q, v) > ROUNDING or system.prescribes:
            q, v = system.settled(start, q, v)
    if system.loads.reading is not None:
        system.surface.chosen(q, v, unique=True)
    system.stabilisation.check(model, chosen)
    if system.constrained and system.prescribes and stabilisation != "projection":
        raise UnsupportedError(
            f"simulate: prescribed motion and stabilisation {stabilisation!r} do not go together; choose 'projection'"
        )
    if batch and (chosen in ADAPTIVE or settings.events):
        what = f"integrator {chosen!r}" if chosen in ADAPTIVE else "events"
        other = ", or choose 'rk4' with a step" if not settings.events else ""
        raise UnsupportedError(
            f"simulate: {what} and a batch of motions do not go together: each motion would need steps of its own; "
            f"al.ensemble(model, {{'q0': ..., 'v0': ...}}, ...) runs them one by one on all cores{other}"
        )
    if chosen in ADAPTIVE:
        run = run_adaptive(system, q, v, chosen, reason, settings)
    elif step is None:
        raise ArgumentError(f"simulate: integrator {chosen!r} needs a step; give step=..., in seconds")
    else:
        run = run_fixed(system, chosen, reason, settings, (q, v, system.x), None)
    if run.step is not None and given is None:
        warn_of_long_steps(system, run.time, run.q, run.v, run.step)
    _warn_of_energy(run)
    _warn_of_stiffening(run)
    return run


def _check_motions(what: str, shape: tuple[int, ...], batch: tuple[int, ...]) -> None:
    """What is constant in time is one for all motions, or one for each."""
    given = shape[:-1]
    if len(given) > len(batch) or any(
        n not in (1, m) for n, m in zip(given[::-1], batch[::-1], strict=False)
    ):
        motions = f"a batch {batch} of motions" if batch else "one motion"
        raise ArgumentError(
            f"simulate: {what} has shape {shape} for {motions}, expected one of {shape[-1:]}, or one for each motion; what "
            "changes in time is a Table for each joint"
        )


def _start(
    model: Model, q0: Any, v0: Any, parameters: Mapping[str, Any] | None
) -> tuple[Array, Array, tuple[int, ...]]:
    q, v = (model.neutral() if q0 is None else q0), (np.zeros(model.nv) if v0 is None else v0)
    q = model.configuration(q) if isinstance(q, Mapping) else q
    v = model.velocity(v) if isinstance(v, Mapping) else v
    q = model.compute.numbers("simulate", "q0", q, model.nq, f"; the model has {model.nq} coordinates")
    v = model.compute.numbers("simulate", "v0", v, model.nv, f"; the model has {model.nv} degrees of freedom")
    for name, x, names in (("q0", q, model.coordinate_names), ("v0", v, model.speed_names)):
        if not np.all(np.isfinite(x)):
            entry = int(np.argwhere(~np.isfinite(x))[0][-1])
            raise ArgumentError(f"simulate: {name} is not finite at entry {entry} ({names[entry]})")
    for owner in model.space:
        problem = owner.type.problem(q[..., owner.q]) if owner.type.nq else None
        if problem:
            raise ArgumentError(f"simulate: q0: joint {owner.name!r}: {problem}")
    if q0 is not None and q.size:
        _warn_of_degrees(model, q)
    shapes = [q.shape[:-1], v.shape[:-1], *(np.shape(x) for x in (parameters or {}).values())]
    try:
        batch = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ArgumentError(
            f"simulate: the batch dimensions of q0 {shapes[0]}, v0 {shapes[1]} and the parameters do not go together"
        ) from None
    q = np.array(np.broadcast_to(q, (*batch, model.nq)))
    v = np.array(np.broadcast_to(v, (*batch, model.nv)))
    return q, v, batch


def _warn_of_degrees(model: Model, q: Array) -> None:
    """Tell angles at the start that look like degrees: whole numbers beyond a turn, or half a turn beyond a limit.

    Wheels that have turned for a while are not at whole numbers.
    """
    angles = np.array([unit == "rad" for unit in model.space.coordinate_units], dtype=bool)
    whole = (np.abs(q) > 2 * np.pi) & (np.round(2 * q) == 2 * q)
    beyond = (q > model.upper_limits + np.pi) | (q < model.lower_limits - np.pi)
    for told in (whole & angles, beyond & angles):
        if np.any(told):
            place = tuple(np.argwhere(told)[0])
            k, value = int(place[-1]), float(q[place])
            lower, upper = float(model.lower_limits[k]), float(model.upper_limits[k])
            limits = (
                f", limits {lower:.4g} .. {upper:.4g}" if np.isfinite(lower) or np.isfinite(upper) else ""
            )
            warn(
                f"simulate: q0: {model.coordinate_names[k]!r} starts at {value:g} rad{limits}; angles are in radians: "
                f"{value:g} degrees are {np.radians(value):.4g}"
            )
            return


def _resume(run: Run, k: int, duration: float) -> Run:
    settings, system, t = replace(run._settings, duration=duration), run._system, float(run.time[k])
    for what, table in system.loads.tables.all:
        table.check_range(what, t, t + duration)
    q, v = run.q[..., k, :], run.v[..., k, :]
    if run.integrator in ADAPTIVE:
        settings = replace(settings, origin=settings.first_start, start=t)
        restart = Restart.at(run._machine, run.time, k)
        system.topology = restart.mark.topology
        return run_adaptive(system, q, v, run.integrator, run.reason, settings, restart)
    system.topology = run.topology(k)
    states, snapshots = run._machine
    if k >= states.shape[-2]:
        assert run.controller_states is not None
        x = run.controller_states[..., k, : system.feedback.size]
        if system.loads.tables.holds:
            raise UnsupportedError(
                f"resume: an event stopped the run at t = {t:.9g} s, between two steps, where tables that hold do not begin "
                f"anew; go on from the record before (time={run.time[k - 1]:.9g}), or choose error control"
            )
        if system.sampled or system.instruments or system.has_memory:
            warn(
                f"resume: an event stopped the run at t = {t:.9g} s, between two steps: sensors, sampled controllers and "
                "drives begin anew there, with their first values; go on from a record before it, or choose error control"
            )
        return run_fixed(system, run.integrator, run.reason, replace(settings, start=t), (q, v, x), None)
    schedule, memory = snapshots[k] if snapshots else (None, None)
    return run_fixed(
        system, run.integrator, run.reason, settings, None, (states[..., k, :], schedule, memory)
    )


def _warn_of_drives(system: Simulation) -> None:
    """Warn where limits or lags of drives have nothing to carry out, and efforts are given beside them."""
    drives = system.drives
    if drives is None or system.inputs.controller is not None:
        return
    idle = np.isfinite(drives.limit) | np.isfinite(drives.rate) | (drives.lag > 0) | (drives.frequency > 0)
    past = np.flatnonzero(idle & system.loads.acted_on)
    if len(past):
        warn(
            f"simulate: efforts= act on {system.model.speed_names[past[0]]!r} past its drive, whose limit and lag are for "
            "what controllers command; give them as controller=lambda t, q, v: ... if the drive is to carry them out"
        )


def _warn_of_prescribed(system: Simulation, t: float, q: Array, v: Array) -> None:
    """Warn where joints that follow a motion are given another start than its own; neutral and at rest says nothing."""
    model, begun = system.model, system.imposed(t, q, v)
    for what, given, own, plain, names in (
        ("q0", q, begun[0], model.neutral(), model.coordinate_names),
        ("v0", v, begun[1], np.zeros(model.nv), model.speed_names),
    ):
        off = (np.abs(own - given) > APART * np.maximum(1.0, np.abs(own))) & (given != plain)
        if np.any(off):
            place = tuple(np.argwhere(off)[0])
            warn(
                f"simulate: {names[place[-1]]!r} is {given[place]:.6g} in {what}, but it is prescribed, by a motion that "
                f"begins at {own[place]:.6g}: the run begins there; give {what} so, or change the motion"
            )


def _warn_of_energy(run: Run) -> None:
    """Warn where the energy at some of the records shows that the run is wrong; nothing where it would take long to know."""
    system = run._system
    if (
        not run.model.nv
        or run.q.ndim > 2
        or len(run.time) < 2
        or (run.step is not None and not system.conserves_energy)
    ):
        return
    some = np.unique(np.linspace(0, len(run.time) - 1, LOOKED_AT).astype(int))
    q, v = run.q[some], run.v[some]
    kinetic = run.model.kinetic_energy(q, v, parameters=run.parameters)
    energy = kinetic + run.model.potential_energy(q, parameters=run.parameters)
    if system.loads.elements is not None:
        energy = energy + system.loads.elements_at(run.time[some][:, None], q, v, along_time=True)[3]
    work = 0.0 if run._work is None else run._work[some]
    error = np.abs(energy - energy[0] - work - run._jumps[some])
    scale = max(float(np.max(kinetic)), 1e-9 * float(np.max(np.abs(energy))), run._slow)
    limit = run._energy_limit
    if (
        len(run.time) < FEW
    ):  # it may have moved faster in between than at any record, all of which may be at rest
        between = run.model.difference(q[:-1], q[1:]) / np.diff(run.time)[:, None]
        means = run.model.kinetic_energy(q[:-1], between, parameters=run.parameters)
        scale = 3 * max(scale, float(np.max(means)), 1e-3 * float(np.max(np.abs(energy))))
    if not np.max(error) > limit * scale:
        return
    first = int(some[np.argmax(error > limit * scale)])
    told = "is not kept" if system.conserves_energy else "does not balance the work"
    message = (
        f"simulate: the energy {told}: by t = {run.time[first]:.6g} s it is off by {np.max(error) / scale:.1e} of the "
        f"largest kinetic energy; {_weak_point(run, some, first)}a smaller step or tolerance may help"
    )
    if system.constrained and run.step is None and system.conserves_energy and np.max(error) > LOST * scale:
        raise NumericalError(message)
    warn(message)


def _warn_of_stiffening(run: Run) -> None:
    """Warn where bodies without motion-induced stiffness turn so fast that it matters, or deflections are not small."""
    flexible = run.model.space.of_bodies
    if not flexible or any(np.ndim(x) for x in (run.parameters or {}).values()):
        return
    some = np.unique(np.linspace(0, len(run.time) - 1, LOOKED_AT).astype(int))
    q, v = run.q[..., some, :], run.v[..., some, :]
    for sentence in heavy(run.model, q, run.parameters):
        warn(f"simulate: {sentence}")
    for name, owner in flexible.items():
        body = run.model.body(name).flexible
        if body is None:
            continue
        _warn_of_deflection(run, name, body, q[..., owner.q])
        if body.is_consistent:
            continue
        motion = run.model.frame_velocity(q, v, name, parameters=run.parameters)
        rate = float(np.nanmax(np.linalg.norm(motion[..., :3], axis=-1), initial=0.0))
        first = float(body.frequencies(run.model.parameter_values)[0])
        if rate > FAST * first:
            warn(
                f"simulate: body {name!r} turns at up to {rate:.3g} rad/s, which is {rate / first:.2g} of its first "
                f"frequency ({first:.3g} rad/s, held at its frame), and its stiffening is {body.stiffening!r}: the "
                f"stiffness that its motion gives it is left out, which shows from {FAST:g} on; choose "
                "stiffening='consistent'"
            )


def _warn_of_deflection(run: Run, name: str, body: ModalBody, x: Array) -> None:
    """Of the nodes, from modal coordinates (..., modes), against the extent of the body."""
    values: dict[str, Any] = {**run.model.parameter_values, **(run.parameters or {})}
    if not body.nodes:
        return
    places, shapes = (
        np.array([body.node_array(node.name, field, values) for node in body.nodes])
        for field in ("position", "shapes")
    )
    extent = float(np.linalg.norm(np.ptp(places, axis=0)))
    moved = float(np.nanmax(np.linalg.norm(np.einsum("...k,pki->...pi", x, shapes), axis=-1)))
    if extent > 0 and moved > FAR * extent:
        warn(
            f"simulate: body {name!r} is displaced by up to {moved:.3g} m, which is {moved / extent:.2g} of its extent; "
            "modes describe small deflections: cut it into segments (al.flexible.beam(..., segments=4)), or distrust the "
            "result"
        )


def _weak_point(run: Run, some: Array, first: int) -> str:
    """Where joints or constraints come near to a singular place before the balance breaks."""
    system, model = run._system, run.model
    before = some[some <= first]
    for owner in (model.space[k] for k in range(len(model.joints))):
        S = [_smallest(owner.type.subspace(run.q[k, owner.q])) for k in before] if owner.type.nv > 1 else []
        if S and min(S) < WEAK:
            t = run.time[before[int(np.argmin(S))]]
            return f"joint {owner.name!r} comes near to a singular place at t = {t:.6g} s; "
    if not system.active:
        return ""
    G = model.constraint_jacobian(run.q[before], parameters=run.parameters) if not system.switches else None
    if G is None or not G.shape[-2]:
        return ""
    sizes = np.linalg.svd(G, compute_uv=False)
    rank = int(np.max(np.sum(sizes > 1e-8 * sizes[:, :1], axis=-1)))
    last = sizes[:, rank - 1] / sizes[:, 0]
    if np.min(last) > WEAK * np.max(last):
        return ""
    t = run.time[before[int(np.argmin(last))]]
    return (
        f"loops and couplings come near to losing rank at t = {t:.6g} s, where more than one motion may go on and the step "
        "decides which; "
    )


def _smallest(S: Array) -> float:
    sizes = np.linalg.svd(np.asarray(S, dtype=float), compute_uv=False)
    return float(sizes[-1] / sizes[0])

"""The integrators there are, and the choice of one of them."""

from __future__ import annotations

import math

import numpy as np

from alembert.errors import warn
from alembert.model.modal_checks import fastest_mode
from alembert.simulate import adaptive
from alembert.simulate.actuators import Lags
from alembert.simulate.adaptive import ADAPTIVE
from alembert.simulate.schedule import common_part, common_tick
from alembert.simulate.schemes import SCHEMES
from alembert.simulate.simulation import Simulation

Array = np.ndarray
IMPLICIT = ("variational", "generalised_alpha")
FIXED = (*SCHEMES, *IMPLICIT)
INTEGRATORS = (*FIXED, *ADAPTIVE)

MOST_VARIATIONAL = 60  # speeds; there compiling it takes half a minute
ACCURATE, MOST_PARTS = 0.05, 10
"""|eigenvalue| times step at which a step of order 4 is right to 1e-8, and the most steps between two instants"""
MOST_TICKS = 1000
"""of periods, delays and offsets that hardly have a common part: the most in a period that are steps"""
LONG = 0.5
"""|eigenvalue| times step beyond which a step of order 4 is off by more than LONG^5/120 = 3e-4 in a step"""
_PARTS_OF_A_RUN = 1000
"""explicit steps, at least, where there must be such: an rk4 error of 1e-13 for what is as smooth as a burn"""
STABLE = 2.0  # |eigenvalue| times step up to which explicit schemes are trusted


def integrators() -> list[tuple[str, int, str, str, str]]:
    """A table: name, order, kind, what it keeps beyond its order, when to choose it."""
    rows = [(s.name, s.order, "fixed step", s.keeps, s.choose) for s in SCHEMES.values()]
    rows.append(
        (
            "variational",
            2,
            "fixed step, implicit",
            "momentum to rounding; energy bounded over long times",
            "free or conservative motion, long runs; the default without efforts",
        )
    )
    rows.append(
        (
            "generalised_alpha",
            2,
            "fixed step, implicit",
            "nothing exactly; damps what is too fast for the step",
            "stiff systems at a given step",
        )
    )
    for name, (_, order, choose) in ADAPTIVE.items():
        kind = "error control, implicit" if name in adaptive.IMPLICIT else "error control"
        rows.append((name, order, kind, "all to the tolerance", choose))
    return rows


def choose(
    system: Simulation,
    q: Array,
    v: Array,
    start: float,
    duration: float,
    step: float | None,
    interval: float | None = None,
) -> tuple[str, str, float | None]:
    """An integrator, a sentence why, and the step: as it is given, or, for sampled controllers, one that suits them."""
    if step is None and not system.switches:
        sampled = _between_samples(system, q, v, start, (duration, interval or duration))
        if sampled is not None:
            return sampled
    why = _explicit_only(system)
    if why is not None:
        return _explicit(system, q, v, start, duration, step, interval, why)
    return *_by_the_motion(system, q, v, start, duration, step), step


def warn_of_long_steps(system: Simulation, time: Array, q: Array, v: Array, step: float) -> None:
    """Warn where a step that was chosen by the motion at the start is too long for what came after: at records (N, ...)."""
    if system.batch or not system.model.nv or not np.isfinite(v).all():
        return
    k = int(np.argmax(system.model.kinetic_energy(q, v, parameters=system.parameters)))
    fastest, _ = _eigenvalues(system, q[k], v[k], float(time[k]), always=True)
    for owner in system.model.space:
        if not owner.type.is_vector_space:  # a wheel may turn fast: nothing changes with its angle
            fastest = max(fastest, float(np.max(np.abs(v[k, owner.v][:3]))))
    if fastest * step > LONG:
        warn(
            f"simulate: the step of {step:g} s was chosen by the motion at the start; at t = {time[k]:.6g} s motions go at "
            f"{fastest:.3g}/s, for which it is too long: give a step of {ACCURATE / fastest:.2g} s or less, or an integrator"
        )


def _between_samples(
    system: Simulation, q: Array, v: Array, start: float, lengths: tuple[float, float]
) -> tuple[str, str, float] | None:
    """Fixed steps between the instants of sampled controllers, where these are so near that the motion is smooth between.

    Error control would begin anew at each of them. None where there are none, or steps would have to be much shorter: then
    error control finds its way through each span; so where drives remember, which fixed steps follow to second order only;
    or where the `lengths` (duration, interval), or the instants of tables that hold, are no multiples of a step.
    """
    if not system.sampled or system.has_memory:
        return None
    tick = common_tick(system.sampled, system.instruments)
    instants = system.loads.tables.instants - start
    if any(abs(x - round(x / tick) * tick) > 1e-9 * abs(x) for x in (*lengths, *instants[instants > 0])):
        return None
    fastest, damping = _fastest(system, q, v, start, always=True)
    period = min(law.period for law in system.sampled)
    parts = max(1, math.ceil(fastest * tick / ACCURATE))
    if parts > MOST_PARTS or damping * tick > STABLE or period > MOST_TICKS * tick:
        return None
    step = tick / parts
    return (
        "rk4",
        f"controllers are sampled, the fastest every {period:g} s: steps of {step:g} s from instant to instant, where error "
        f"control would begin anew at each of {lengths[0] / period:.0f} (give a step or an integrator for others)",
        step,
    )


def _explicit_only(system: Simulation) -> str | None:
    """Why there must be explicit fixed steps; None: there need not."""
    if system.feedback.flows:
        return "masses fall (MassFlow) in explicit steps"
    continuous = bool(system.laws) or system.feedback.is_compiled
    if system.drives is not None and continuous and len(Lags(system.drives).ramps):
        return "a drive without a lag limits the rate of a continuous controller, followed in explicit steps"
    return None


def _explicit(
    system: Simulation,
    q: Array,
    v: Array,
    start: float,
    duration: float,
    step: float | None,
    interval: float | None,
    why: str,
) -> tuple[str, str, float]:
    """Explicit fixed steps: as given, or so short that they are right to 1e-8 where all is smooth."""
    if step is not None:
        return "rk4", f"a step is given, and {why}", step
    fastest, _ = _fastest(system, q, v, start)
    instants = system.loads.tables.instants - start
    lengths = [interval or duration, duration, *instants[(instants > 0) & (instants < duration)].tolist()]
    if system.sampled or system.instruments:
        lengths.append(common_tick(system.sampled, system.instruments))
    wanted = min(duration / _PARTS_OF_A_RUN, ACCURATE / fastest if fastest else duration)
    span = common_part(lengths)
    if span < 1e-3 * wanted:  # odd instants: such steps are no choice, and that they do not fit is told
        span = lengths[0]
    step = span / math.ceil(span / wanted * (1 - 1e-12))
    return (
        "rk4",
        f"{why}: {step:g} s, by the fastest motion at the start and at most a "
        f"{_PARTS_OF_A_RUN}th of the run (give a step for another)",
        step,
    )


def _by_the_motion(
    system: Simulation, q: Array, v: Array, start: float, duration: float, step: float | None
) -> tuple[str, str]:
    if system.switches:
        reason = "a step is given" if step is not None else "no step is given: error control"
        return "dop853" if step is None else "rk4", f"{reason}; constraints begin or cease to hold on the way"
    mode, frequency = fastest_mode(system.model, system.model.parameter_values)
    told = f"the mode {mode!r} at {frequency:.3g} rad/s is too fast for explicit steps of {step or 0.0:g} s"
    fast = step is not None and frequency * step > STABLE
    if system.constrained:
        if fast:
            keeps = _takes_variational(system)
            return (
                "variational" if keeps else "radau",
                f"{told}; implicit ones keep what is slow, and the loops",
            )
        if step is not None:
            return "rk4", "a step is given; loops or couplings are kept by projection"
        return "dop853", "no step is given: error control; loops or couplings are kept by projection"
    fastest, damping = _eigenvalues(system, q, v, start)
    if step is not None:
        if fast:
            if system.prescribes:
                return "radau", f"{told}, and the motion of joints is prescribed"
            return "generalised_alpha", f"{told}; implicit ones damp it and keep what is slow"
        if not system.batch and fastest * step > STABLE:
            return "radau", (
                f"the fastest eigenvalue at the start, {fastest:.3g}/s, is too fast for explicit steps of {step:g} s"
            )
        if system.conserves_energy and system.model.nv <= MOST_VARIATIONAL:
            return (
                "variational",
                "nothing feeds energy in or takes it out, so a symplectic scheme keeps it best",
            )
        if system.conserves_energy:
            return (
                "rk4",
                f"a step is given; the variational scheme compiles long beyond {MOST_VARIATIONAL} speeds",
            )
        return "rk4", "a step is given and something drives or damps the motion"
    if damping * duration > 2e4 and damping > 20 * (fastest - damping if fastest > damping else 0.0):
        return "radau", f"stiff: motions decay within {1 / damping:.1e} s, over a run of {duration:g} s"
    return (
        "dop853",
        "no step is given: error control, of high order since the motion is smooth between samples",
    )


def _takes_variational(system: Simulation) -> bool:
    """Whether the variational scheme takes these constraints, and what acts."""
    rows = system.model.constrained_compute.rows if system.model.is_constrained else None
    return (
        rows is not None
        and bool(rows.holonomic.all())
        and not system.prescribes
        and system.loads.reading is None
        and system.stabilisation.method == "projection"
        and system.model.nv <= MOST_VARIATIONAL
    )


def _fastest(
    system: Simulation, q: Array, v: Array, start: float, *, always: bool = False
) -> tuple[float, float]:
    """The same, of the eigenvalues and of what turns."""
    fastest, damping = _eigenvalues(system, q, v, start, always=always)
    turning = np.array([unit == "rad/s" for unit in system.model.space.speed_units], dtype=bool)
    return max(fastest, float(np.max(np.abs(v[..., turning]), initial=0.0))), damping


def _eigenvalues(
    system: Simulation, q: Array, v: Array, start: float, *, always: bool = False
) -> tuple[float, float]:
    """The largest |eigenvalue| and the fastest decay at the start; zeros where nothing stiff can be, unless `always`."""
    model = system.model
    springy = any(joint.spring is not None or joint.friction is not None for joint in model.joints)
    springy = springy or always or system.loads.elements is not None or bool(model.space.of_bodies)
    if not (springy or system.law is not None) or system.batch or system.prescribes or model.nv > 60:
        return 0.0, 0.0
    effort = system.loads.efforts + system.command(start, q, v, system.x)
    if system.loads.elements is not None:
        effort = effort + sum(system.loads.elements_at(start, q, v)[:3])
    d = system.derivatives(start, q, v, effort)
    dq, dv = d.dq, d.dv
    tau, rates = system.slopes(start, q, v, system.x)
    nv, states = model.nv, len(rates)
    of_speeds = d.dtau @ tau
    of_speeds[:, : 2 * nv] += np.hstack([dq, dv])
    above = np.hstack([np.zeros((nv, nv)), np.eye(nv), np.zeros((nv, states))])
    values = np.linalg.eigvals(np.vstack([above, of_speeds, rates]))
    return float(np.max(np.abs(values))), float(max(0.0, np.max(-values.real)))

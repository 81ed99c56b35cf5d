"""The integrators there are, and the choice of one of them."""

from __future__ import annotations

import numpy as np

from alembert.simulate import adaptive
from alembert.simulate.adaptive import ADAPTIVE
from alembert.simulate.schemes import SCHEMES
from alembert.simulate.simulation import Simulation

Array = np.ndarray
IMPLICIT = ("variational", "generalised_alpha")
FIXED = (*SCHEMES, *IMPLICIT)
INTEGRATORS = (*FIXED, *ADAPTIVE)

MOST_VARIATIONAL = 60  # speeds; there compiling it takes half a minute
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
    system: Simulation, q: Array, v: Array, start: float, duration: float, step: float | None
) -> tuple[str, str]:
    """An integrator and a sentence why."""
    if system.switches:
        reason = "a step is given" if step is not None else "no step is given: error control"
        return "dop853" if step is None else "rk4", f"{reason}; constraints begin or cease to hold on the way"
    if system.constrained:
        if step is not None:
            return "rk4", "a step is given; loops or couplings are kept by projection"
        return "dop853", "no step is given: error control; loops or couplings are kept by projection"
    fastest, damping = _eigenvalues(system, q, v, start)
    if step is not None:
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


def _eigenvalues(system: Simulation, q: Array, v: Array, start: float) -> tuple[float, float]:
    """The largest |eigenvalue| and the fastest decay at the start; zeros where nothing stiff can be."""
    model = system.model
    springy = any(joint.spring is not None or joint.friction is not None for joint in model.joints)
    springy = springy or system.loads.elements is not None or bool(model.space.of_bodies)
    if not (springy or system.law is not None) or system.batch or system.prescribes or model.nv > 60:
        return 0.0, 0.0
    effort = system.loads.efforts + system.command(start, q, v, system.x)
    if system.loads.elements is not None:
        effort = effort + sum(system.loads.elements_at(start, q, v)[:3])
    d = model.forward_dynamics_derivatives(q, v, effort, parameters=system.parameters)
    dq, dv = d.dq, d.dv
    tau, rates = system.slopes(start, q, v, system.x)
    nv, states = model.nv, len(rates)
    of_speeds = d.dtau @ tau
    of_speeds[:, : 2 * nv] += np.hstack([dq, dv])
    above = np.hstack([np.zeros((nv, nv)), np.eye(nv), np.zeros((nv, states))])
    values = np.linalg.eigvals(np.vstack([above, of_speeds, rates]))
    return float(np.max(np.abs(values))), float(max(0.0, np.max(-values.real)))

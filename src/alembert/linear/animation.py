"""Modes to look at: the model swings about its point in the shape of each mode.

    q(t) = q0 (+) a Re(phi e^(i Omega t))                                            (1)

with an amplitude a that the eye can follow and without decay or growth, whatever the pole says: a mode is a shape.
Modes that do not oscillate swing as well, at one turn in two seconds; fast and slow ones are shown at that pace too,
and their notes say by what factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alembert.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from alembert.linear.linear_model import LinearModel
    from alembert.linear.modes import Mode
    from alembert.view import Motion

_PACE = 2.0  # s: period of what is shown slower or faster than it is
_EASY = (0.4, 5.0)  # s: periods that are shown as they are
_FRAMES = 60  # per turn
_ANGLE = 0.35  # rad: the largest one shown
_SHARE = 0.3  # of a link's length: the largest distance shown


def motion(linear: LinearModel, k: int, amplitude: float | None = None) -> Motion:
    """Mode number `k` (from 0) as a motion; `amplitude` is that of its largest displacement."""
    from alembert.view import Motion

    if linear.whole is not None and len(linear.whole.displacements) > len(linear.displacements):
        raise UnsupportedError(
            f"motion: the linear model is a part that leaves out {', '.join(linear.left_out)}, which move along; "
            "show the modes of the whole, linear.whole.modes()"
        )
    modes = linear.modes()
    if not -len(modes) <= k < len(modes):
        raise ArgumentError(f"motion: mode {k} of {len(modes)}, expected 0 to {len(modes) - 1}")
    mode = modes[k]
    period = mode.period if mode.kind == "oscillation" else np.inf
    shown = period if _EASY[0] <= period <= _EASY[1] else _PACE
    time = np.linspace(0.0, shown, _FRAMES + 1)  # one turn, which the page repeats
    phase = np.exp(2j * np.pi * time / shown)
    size = _amplitude(linear, mode) if amplitude is None else float(amplitude)
    moved = np.zeros((len(time), linear.model.nv))
    moved[:, list(linear.displacements)] = size * (phase[:, None] * mode.shape).real  # (1)
    q = linear.model.integrate(np.broadcast_to(linear.q, (len(time), linear.model.nq)), moved)
    parameters = {name: float(value) for name, value in linear.parameter_values.items()}
    if linear.model.is_constrained:
        q = linear.model.assemble(q, fixed=mode.names, parameters=parameters or None).q
    notes = {"pole": f"{mode.pole:.4g} rad/s" if mode.pole.imag else f"{mode.pole.real:.4g} rad/s"}
    if mode.kind == "oscillation":
        notes["frequency"] = f"{mode.frequency:.4g} rad/s, {mode.frequency / (2 * np.pi):.4g} Hz"
        notes["damping"] = f"{mode.damping + 0.0:.4g}, not shown"
    else:
        notes["kind"] = "rigid-body motion" if mode.kind == "rigid" else f"{_real(mode)} without oscillation"
    if shown != period and np.isfinite(period):
        factor = shown / period
        notes["shown"] = f"{factor:.3g} times slower" if factor > 1 else f"{1 / factor:.3g} times faster"
    number = k % len(modes) + 1
    return Motion(
        linear.model,
        time,
        q,
        series={"displacements": dict(zip(mode.names, moved[:, list(linear.displacements)].T, strict=True))},
        title=f"mode {number}: {_named(mode)}",
        notes=notes,
        parameters=parameters or None,
    )


def _amplitude(linear: LinearModel, mode: Mode) -> float:
    """As large as angles and distances on links stay easy to see."""
    from alembert.view.scene import typical_length

    model = linear.model
    units = [unit for joint in model.joints for _, unit in joint.type.speeds]
    length = _SHARE * typical_length(model, model.parameter_values | dict(linear.parameter_values))
    most = np.array([_ANGLE if units[i] == "rad/s" else length for i in linear.displacements])
    size = np.abs(mode.shape)
    return float(np.min(most[size > 0] / size[size > 0]))


def _named(mode: Mode) -> str:
    if mode.kind == "oscillation":
        return f"{mode.frequency / (2 * np.pi):.3g} Hz"
    return "rigid" if mode.kind == "rigid" else _real(mode)


def _real(mode: Mode) -> str:
    return f"{'decays' if mode.pole.real < 0 else 'grows'} in {1 / abs(mode.pole.real):.3g} s"

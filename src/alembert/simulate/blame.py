"""Which law of the user's gives numbers that are not finite, where a motion cannot go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from alembert.errors import AlembertError
from alembert.simulate.controllers import RUN_AWAY, AnswerError
from alembert.simulate.simulation import Simulation

Array = np.ndarray


def blame(system: Simulation, times: Sequence[float], q: Array, v: Array, x: Array) -> str:
    """The sentence for the first law that gives such numbers at a state and one of the times; empty where none does."""
    if q.ndim > 1 or not max(np.max(np.abs(q), initial=0.0), np.max(np.abs(v), initial=0.0)) < RUN_AWAY:
        return ""
    for t in times:
        try:
            for who, labels, found in _answers(system, t, q, v, x):
                bad = np.flatnonzero(~np.isfinite(found))
                if len(bad):
                    return f"{who} gives {found[bad[0]]} for {labels[bad[0]]!r} at t = {t:.9g} s"
        except AnswerError as error:
            return str(error).removeprefix("simulate: ")
        except AlembertError:  # of another kind: the reason of the caller stands
            return ""
    return ""


def _answers(
    system: Simulation, t: float, q: Array, v: Array, x: Array
) -> Iterator[tuple[str, Sequence[str], Array]]:
    model, loads = system.model, system.loads
    speeds = model.speed_names
    if system.prescribes:
        motion = system.prescribed_motions.at(t)
        for labels, found in zip((model.coordinate_names, speeds, speeds), motion, strict=True):
            yield "the prescribed motion", labels, found
    yield "a controller", speeds, system.command(t, q, v, x)
    for frame, wrench in (loads.wrenches_at(t, q, v) or {}).items():
        yield f"the wrench on {frame!r}", ("mx", "my", "mz", "fx", "fy", "fz"), np.asarray(wrench)
    if loads.elements is not None:
        kept, other, fed, _ = loads.elements_at(t, q, v)
        yield "a force", speeds, kept + other + fed

"""Steps of DMOC that turn a joint by half a turn.

Displacements of rotations are vectors shorter than pi: longer ones are those of the other way round, and motions made of
them keep the equations of the transcription without being near any motion of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alembert.optimal.dmoc import Dmoc

if TYPE_CHECKING:
    from alembert.optimal.outcome import Iterate
    from alembert.optimal.stages import Stages

NEARLY = 0.98
"""of pi, from where a solver that does not come to a solution is said to have been stopped by it"""


def largest(stages: Stages, it: Iterate) -> tuple[float, str]:
    """The largest turn within a step [rad] and its joint; 0 where no joint turns so."""
    model = stages.chart.model
    found = (0.0, "")
    if model is None or not isinstance(stages.scheme, Dmoc) or not np.isfinite(it.z).all():
        return found
    for joint, v in zip(model.joints, model._v_slices, strict=True):
        if joint.type.nq > joint.type.nv:  # turns come first
            turn = np.linalg.norm(it.z[:, v.start : v.start + 3], axis=1).max()
            found = max(found, (float(turn), joint.name))
    return found


def sentence(stages: Stages, it: Iterate) -> str:
    """What to say of it; empty where all turns are short."""
    turn, name = largest(stages, it)
    if turn < NEARLY * np.pi:
        return ""
    return f"{name} turns by {turn:.3g} rad within a step, where half a turn is the most that has a meaning: take more steps"


def is_beyond(stages: Stages, it: Iterate) -> bool:
    return largest(stages, it)[0] > np.pi

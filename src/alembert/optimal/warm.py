"""Multipliers to begin with, from the solution of a problem like this one.

A solution that is the guess brings its costates and the multipliers of its bounds and conditions. On other nodes costates
are interpolated, and multipliers along the path, which are integrals over a stage, keep their densities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from alembert.optimal.stages import Stages

Array = np.ndarray


@dataclass(frozen=True)
class Warm:
    """Of a cost that is not scaled; costates are in the chart of the stages."""

    costates: Array
    sigma: Array
    eta: Array
    low: Array
    high: Array
    end_low: Array
    end_high: Array


def warm(stages: Stages, given: Any) -> Warm | None:
    """From the solution `given`; None where it is no solution, or its stages have other states, controls or bounds."""
    outcome, other = getattr(given, "_outcome", None), getattr(given, "stages", None)
    if outcome is None or other is None or not given.success or not hasattr(outcome.iterate, "costates"):
        return None
    for name in ("x_names", "u_names", "z_names", "path_names", "start_names", "end_names", "end_bounded"):
        if getattr(other, name) != getattr(stages, name):
            return None
    if other.scheme.name != stages.scheme.name:
        return None
    it, scale = outcome.iterate, outcome.scale
    at = np.clip(np.searchsorted(other.nodes, stages.nodes[:-1] + 1e-9, side="right") - 1, 0, other.count - 1)
    width = (stages.numbers[:, 1] / other.numbers[at, 1])[:, None]
    once = ~np.isfinite(stages.lower[1:]).any(axis=0) & ~np.isfinite(stages.upper[1:]).any(axis=0)
    width = np.where(once, 1.0, width)
    costates = [np.interp(stages.nodes, other.nodes, column) for column in it.costates.T]
    found = Warm(
        np.column_stack(costates) / scale,
        *(it.sigma / scale, it.eta / scale),
        *(width * it.path.low[at] / scale, width * it.path.high[at] / scale),
        *(it.last.low / scale, it.last.high / scale),
    )
    return found if all(np.isfinite(a).all() for a in vars(found).values()) else None


def same_nodes(stages: Stages, given: Any) -> bool:
    """Whether also states, controls and z of the solution can be taken as they are."""
    return given.stages.count == stages.count and np.array_equal(given.stages.nodes, stages.nodes)

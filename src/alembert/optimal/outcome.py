"""What a solver of stages gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from alembert.optimal.barrier import Bounds
from alembert.optimal.iterations import Iteration

Array = np.ndarray


@dataclass
class Iterate:
    """Where the method is. `costates` has N + 1 rows, the first for the state at the start."""

    x: Array
    u: Array
    z: Array
    path: Bounds
    last: Bounds
    costates: Array
    sigma: Array
    eta: Array


@dataclass
class Residuals:
    """Per stage: r, c and d."""

    gap: Array
    implicit: Array
    path: Array


@dataclass
class Outcome:
    """What a solver returns; `status` is "solved", "acceptable", "stalled", "iterations", "interrupted" or "failed"."""

    status: str
    message: str
    iterate: Iterate
    cost: float
    infeasibility: float
    slope: float
    history: list[Iteration]
    gains: Array
    residuals: Residuals
    scale: float
    seconds: dict[str, float] = field(default_factory=dict)

"""What `reach` has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Reached:
    """Configurations, and how near each task is to being done, over the batch of the targets."""

    q: Array
    """(..., nq): where a task is out of reach, the nearest that was found"""
    reached: Array | bool
    """(...): whether all tasks of the first priority are done, and all loops closed"""
    measured: Array
    """(..., errors): those of `errors`, side by side"""
    units: Mapping[str, str]
    """of the errors, by their names"""
    tolerance: float
    attempts: Array | int
    """(...): starts that were tried"""
    iterations: Array | int
    """(...): of the start that is given"""
    first: tuple[str, ...]
    """the errors that `reached` asks for"""

    @cached_property
    def errors(self) -> Mapping[str, Array]:
        """(...) by task, in m or rad; of a pose `NAME: position` and `NAME: orientation`."""
        return {label: self.measured[..., k] for k, label in enumerate(self.units)}

    @property
    def out_of_reach(self) -> dict[str, Array]:
        """By how much tasks of any priority are missed, where they are, (...): zero elsewhere."""
        missed = {name: np.where(e > self.tolerance, e, 0.0) for name, e in self.errors.items()}
        return {name: e for name, e in missed.items() if np.any(e)}

    @property
    def message(self) -> str:
        """A sentence that names what was not reached, and by how much."""
        missed = {name: e for name, e in self.out_of_reach.items() if name in self.first}
        if np.all(self.reached):
            return "all tasks are reached"
        listed = ", ".join(
            f"{name} by {np.max(e):.3g} {self.units[name]}".rstrip() for name, e in missed.items()
        )
        if np.ndim(self.reached) == 0:
            return f"out of reach: {listed}"
        count, total = int(np.sum(~np.asarray(self.reached))), np.size(self.reached)
        return f"{count} of {total} targets are out of reach; at most: {listed}"

    def __repr__(self) -> str:
        return f"<Reached: {self.message}>"

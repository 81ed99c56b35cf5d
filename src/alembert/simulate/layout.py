"""The machine's state: one vector with all that the next step depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.simulate.schemes import Point

Array = np.ndarray


class Layout:
    """The number of the step, how many past points are known, then parts by name, in the order given.

    Every scheme has `q`. Multistep schemes have past points (q1, v1, a1), (q2, v2, a2) and so on, the newest first;
    models with loops have `chosen`, the rows of a minimal set of constraints (1, others 0).
    """

    def __init__(self, **sizes: int) -> None:
        self.names = tuple(sizes)
        ends = np.cumsum([2, *sizes.values()]).tolist()
        self._slices = {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(sizes)}
        self.size: int = ends[-1]

    @classmethod
    def with_past(cls, nq: int, nv: int, past: int, **more: int) -> Layout:
        points = {
            f"{name}{k + 1}": n for k in range(past) for name, n in zip("qva", (nq, nv, nv), strict=True)
        }
        return cls(q=nq, v=nv, **points, **more)

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def __contains__(self, name: str) -> bool:
        return name in self._slices

    def points(self, state: Any, past: int) -> tuple[Point, ...]:
        """The past points of a state, an `SX` vector or an array (..., size); their times are not kept."""

        def part(name: str) -> Any:
            return state[..., self[name]] if isinstance(state, np.ndarray) else state[self[name]]

        return tuple(Point(None, *(part(f"{x}{k + 1}") for x in "qva")) for k in range(past))

    def past(self, points: Sequence[Point]) -> dict[str, Any]:
        return {f"{x}{k + 1}": getattr(p, x) for k, p in enumerate(points) for x in "qva"}

    def symbolic(self, number: Any, known: Any, **parts: Any) -> ca.SX:
        """A state of `SX` from all its parts."""
        return ca.vertcat(number, known, *(parts[name] for name in self.names))

    def numeric(self, number: Any, known: Any, **parts: Array) -> Array:
        """A state, or a batch of them, from its parts; those that are not given are zero."""
        shapes = [np.shape(x)[:-1] for x in parts.values()]
        state = np.zeros((*np.broadcast_shapes(*shapes), self.size))
        state[..., 0], state[..., 1] = number, known
        for name, x in parts.items():
            state[..., self[name]] = x
        return state

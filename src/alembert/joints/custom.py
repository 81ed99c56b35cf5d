from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from alembert.errors import ModelError
from alembert.joints.joint import JointType, register, structural
from alembert.spatial import Pose
from alembert.spatial.arrays import Array


@register
@dataclass(frozen=True)
class Custom(JointType):
    """A joint given by its placement as a function of q; everything else follows by differentiation.

    Make one with `Custom.from_function`. The function is kept as a serialised CasADi graph, so that the model still
    pickles, compares and writes to files.
    """

    kind: ClassVar[str] = "custom"
    labels: tuple[tuple[str, str], ...] = structural()
    graph: str = structural()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple((str(label), str(unit)) for label, unit in self.labels))
        if not 1 <= len(self.labels) <= 6:
            raise ModelError(f"custom joint has {len(self.labels)} coordinates, expected 1 to 6")
        try:
            function = ca.Function.deserialize(self.graph)
            shapes = [function.size_in(0), function.size_out(0), function.size_out(1)]
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise ModelError(f"custom joint graph cannot be read: {str(error)[:200]}") from None
        if shapes != [(len(self.labels), 1), (3, 3), (3, 1)]:
            raise ModelError(f"custom joint graph maps {shapes[0]} to {shapes[1:]}, expected q to (3x3, 3x1)")

    @classmethod
    def from_function(cls, placement: Callable[[ca.SX], Pose], coordinates: Any) -> "Custom":
        """`placement(q)` takes an `SX` vector and returns a `Pose`; `coordinates` lists (label, unit) pairs."""
        labels = tuple((str(label), str(unit)) for label, unit in coordinates)
        q = ca.SX.sym("q", len(labels))
        X = placement(q)
        if not isinstance(X, Pose):
            raise ModelError(f"custom joint: placement(q) returned {type(X).__name__}, expected a Pose")
        R, p = ca.SX(X.rotation), ca.SX(X.translation)
        if R.shape != (3, 3) or p.shape != (3, 1):
            raise ModelError(f"custom joint: placement(q) has shapes {R.shape} and {p.shape}, expected 3x3 and 3")
        function = ca.Function("placement", [q], [ca.densify(R), ca.densify(p)])
        for sample in np.random.default_rng(0).uniform(-1, 1, size=(3, len(labels))):
            value = np.asarray(function(sample)[0])
            if not np.allclose(value.T @ value, np.eye(3), atol=1e-9) or np.linalg.det(value) < 0:
                raise ModelError(f"custom joint: the rotation at q = {sample} is not a rotation:\n{value}")
        return cls(labels, function.serialize())

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return self.labels

    def placement(self, q: Array) -> Pose:
        R, p = ca.Function.deserialize(self.graph)(q)
        if isinstance(q, ca.SX):
            return Pose(R, p)
        return Pose(np.asarray(R), np.asarray(p).ravel())

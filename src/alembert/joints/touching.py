"""The pair of two surfaces that touch: wheel and rail, cam and follower, a ball in a groove.

Surfaces are a(u, w) in frame a and b(s, t) in frame b, tangents A = da/d(u, w) and B = db/d(s, t). With the pose (R, p) of b
in a, and n the normal of a, they touch at the parameters for which

    A^T d = 0,    (R B)^T n = 0,        d = p + R b - a                                             (1)

found by Newton's method from the nearest points: of a to the origin of b, then of b to that point. There

    phi = n . d,      rows = (b x R^T n, R^T n)      (a force along the normal, at the point of contact)    (2)

The parameters move as well, but do not change phi: by (1), and since d is along n where it does not vanish.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from alembert.joints.pair import Pair, register_pair, structural
from alembert.joints.parametric import PointOnParametricSurface
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, as_array, is_symbolic

NEAR, STEPS = 2, 6
"""steps to the nearest points, and of Newton's method for (1): five reach rounding from within 0.3 radii of curvature"""
_CORNERS = ((-math.pi, -math.pi), (math.pi, math.pi))


@register_pair
@dataclass(frozen=True)
class TouchingSurfaces(Pair):
    """The surface (x, y, z)(u, w) of frame b touches that of frame a; the force is along their common normal.

    `surface_a` and `surface_b` are three formulas of u and w each, `start_*` and `end_*` the corners of the part that is
    sampled, `samples` along each of them; surfaces go on beyond it as their formulas do. One row; they slide freely.
    """

    kind: ClassVar[str] = "touching_surfaces"
    surface_a: tuple[str, ...] = structural()
    surface_b: tuple[str, ...] = structural()
    start_a: tuple[float, ...] = structural(default=_CORNERS[0])
    end_a: tuple[float, ...] = structural(default=_CORNERS[1])
    start_b: tuple[float, ...] = structural(default=_CORNERS[0])
    end_b: tuple[float, ...] = structural(default=_CORNERS[1])
    samples: int = structural(default=12)

    def __post_init__(self) -> None:
        for side in "ab":
            surface = self._surface(side)
            object.__setattr__(self, f"surface_{side}", surface.coordinates)
            object.__setattr__(self, f"start_{side}", surface.start)
            object.__setattr__(self, f"end_{side}", surface.end)

    def _surface(self, side: str) -> PointOnParametricSurface:
        formulas, start, end = (getattr(self, f"{what}_{side}") for what in ("surface", "start", "end"))
        return PointOnParametricSurface(formulas, start, end, self.samples)

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True,)

    def residual(self, X: Pose) -> Array:
        return self._evaluated(X)[0]

    def rows(self, X: Pose) -> Array:
        return self._evaluated(X)[1]

    def contact(self, X: Pose) -> Array:
        """The point of contact in b axes, and the normal of a there in a axes, (6,)."""
        return self._evaluated(X)[2]

    def sliding_point(self, X: Pose) -> Array | None:
        return self.contact(X)[:3]

    def _evaluated(self, X: Pose) -> tuple[Array, Array, Array]:
        """(2), and `contact`."""
        R, p = X.rotation, X.translation
        if is_symbolic(R, p):
            like = ca.SX(0)
            R, p = ca.densify(as_array(R, like=like)), ca.densify(as_array(p, like=like))
            phi, rows, where = _touching(self)(R, p)
            return phi, rows, where
        phi, rows, where = (np.asarray(x) for x in _touching(self)(R, p))
        return phi.ravel(), rows, where.ravel()


@cache
def _touching(pair: TouchingSurfaces) -> Any:
    """(R, p) -> phi, rows, contact"""
    R, p = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    a, b = pair._surface("a"), pair._surface("b")
    near = a.nearest(p, NEAR)
    far = b.nearest(R.T @ (a.at(near)[0] - p), NEAR)
    step = _newton(pair)
    x = ca.vertcat(near, far)
    for _ in range(STEPS):
        x = step(x, R, p)
    (c_a, A), (c_b, _) = a.at(x[:2]), b.at(x[2:])
    n = ca.cross(A[:, 0], A[:, 1])
    n = n / ca.norm_2(n)
    force = R.T @ n
    rows = ca.horzcat(ca.cross(c_b, force).T, force.T)
    outputs = [ca.dot(n, p + R @ c_b - c_a), rows, ca.vertcat(c_b, n)]
    return ca.Function("touching", [R, p], [ca.densify(x) for x in outputs])


@cache
def _newton(pair: TouchingSurfaces) -> Any:
    """One step of (1)."""
    x, R, p = ca.SX.sym("x", 4), ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    (c_a, A), (c_b, B) = pair._surface("a").at(x[:2]), pair._surface("b").at(x[2:])
    n = ca.cross(A[:, 0], A[:, 1])
    F = ca.vertcat(A.T @ (p + R @ c_b - c_a), (R @ B).T @ n)
    return ca.Function("step", [x, R, p], [x - ca.solve(ca.jacobian(F, x), F)])

"""What the algorithms return when it is more than one array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class HybridResult:
    """Accelerations and efforts of all degrees of freedom, the given ones among them."""

    accelerations: Array
    efforts: Array


@dataclass(frozen=True)
class InverseDerivatives:
    """Of the efforts with respect to q (tangent), v and a, (..., nv, nv); `da` is the mass matrix.

    `dwrenches` is with respect to each of the wrenches that were given, by frame, (..., nv, 6), `dparameters` with respect
    to the parameters that were asked for, by name, (..., nv).
    """

    dq: Array
    dv: Array
    da: Array
    dwrenches: Mapping[str, Array] = field(default_factory=dict)
    dparameters: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class ForwardDerivatives:
    """The accelerations (..., nv), and their derivatives (..., nv, nv); `dtau` is the inverse mass matrix.

    `dwrenches` is with respect to each of the wrenches that were given, by frame, (..., nv, 6), `dparameters` with respect
    to the parameters that were asked for, by name, (..., nv).
    """

    acceleration: Array
    dq: Array
    dv: Array
    dtau: Array
    dwrenches: Mapping[str, Array] = field(default_factory=dict)
    dparameters: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class HybridDerivatives:
    """Of all accelerations (first index 0) and efforts (1), (..., 2, nv, nv).

    `dgiven` is with respect to what is given for each degree of freedom: its acceleration where that is
    prescribed, its effort elsewhere. `dwrenches` is with respect to each of the wrenches that were given, by frame,
    (..., 2, nv, 6), `dparameters` with respect to the parameters that were asked for, by name, (..., 2, nv).
    """

    result: HybridResult
    dq: Array
    dv: Array
    dgiven: Array
    dwrenches: Mapping[str, Array] = field(default_factory=dict)
    dparameters: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Innovations:
    """M(q) = L D L^T, L = I + H phi K unit upper block triangular, D block diagonal; both (..., nv, nv)."""

    L: Array
    D: Array

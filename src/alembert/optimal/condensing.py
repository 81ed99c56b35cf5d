"""(1) and (2) of `alembert.optimal.evaluation` on arrays: for stages of many z, whose expressions would be too long.

Of a stage, with w = (x, u), the slopes C = [C_w G] of c, F of the gap, D of d and g of the cost, and the Hessian H of the
Lagrangian with the barrier, from Z = (z_0, Z_w) = -G^-1 (c, C_w) and H_z = H_zz Z_w + H_zw follow

    A, B: F_w + F_z Z_w,   Q, N, R: H_ww + H_wz Z_w + Z_w' H_z,   q, r: g_w + Z_w' g_z + H_z' z_0          (1)

`Evaluation._condensed_graph` has expressions of all of this; `tests/optimal/test_stage_derivatives.py` holds the two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

Array = np.ndarray


def eliminated(
    first: Callable[[], None],
    second: Callable[[], None],
    given: Mapping[str, Array],
    left: Mapping[str, Array],
) -> Callable[[], None]:
    """A function that computes (1) on always the same arrays.

    `first` leaves slopes and residuals in `given`, `second` the Hessian, from the multipliers "nu" there.
    """
    right, G, nu = given["right"], given["G"], given["nu"]
    count, columns, nz = right.shape
    n = given["F"].shape[1]
    Z = np.zeros((count, columns, nz))  # by columns, as LAPACK has them

    def run() -> None:
        first()
        for k in range(count):
            factor, order, failed = dgetrf(G[k].T)
            if failed:
                Z[k], nu[k] = np.nan, np.nan
                continue
            Z[k] = -dgetrs(factor, order, right[k].T, trans=1)[0].T
            nu[k] = -dgetrs(factor, order, given["along_z"][k])[0]
        second()
        z_0, Zw = Z[:, 0], Z[:, 1:]
        to_z = np.ascontiguousarray(Zw.transpose(0, 2, 1))
        bent = Zw @ given["H_zz"]
        half = (given["H_wz"] + 0.5 * bent) @ to_z
        H_z = given["H_wz"] + bent
        whole = given["H_ww"] + half + half.transpose(0, 2, 1)
        slope, slopes = given["g"], given["along"] + _times(right[:, 1:], nu)
        linear = slope[:, : columns - 1] + _times(Zw, slope[:, columns - 1 :]) + _times(H_z, z_0)
        moved = given["F"] + given["F_z"] @ to_z
        found = {
            **{"A": moved[:, :, :n], "B": moved[:, :, n:], "b": given["gap"] + _times(given["F_z"], z_0)},
            **{"Q": whole[:, :n, :n], "N": whole[:, :n, n:], "R": whole[:, n:, n:]},
            **{"q": linear[:, :n], "r": linear[:, n:], "slope_x": slopes[:, :n], "slope_u": slopes[:, n:]},
            **{
                "Z": to_z,
                "z_0": z_0,
                "D": given["D"] + given["D_z"] @ to_z,
                "d_0": _times(given["D_z"], z_0),
            },
            **{"H_z": H_z.transpose(0, 2, 1)},
        }
        for name, array in left.items():
            if name in found:
                array[...] = found[name]

    return run


def _times(M: Array, v: Array) -> Array:
    return np.matmul(M, v[:, :, None])[:, :, 0]

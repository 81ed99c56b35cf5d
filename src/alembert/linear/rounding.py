"""What of a linear model is rounding: how small a stiffness, or a pole, is none.

Entry by entry, A is known to some roundings of what it was made from: of its own size, and, where weights are in balance
(an arm with vertical axes), of the stiffness that the same weights have elsewhere,

    |dA| <= eps (|A| + [0 0; |M^-1| k 0]),      k = m g l u u^T,    u = 1 (rad), 1/l (m)                   (1)

with the mass m of all bodies and their largest distance l from the world's origin, about which derivatives are computed.
No state is compared with another one of other units or of another stiffness.

The number of poles that are zero is found without computing poles, since rounding moves double ones by its square root:
orthogonal coordinates in which the kernel of A comes first leave the rest of A with the other poles,

    Q^T A Q = [0 *; 0 A'],                                                                                  (2)

and so on with A' until it has no kernel (the staircase of Kublanovskaya).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from alembert.linear import quantities

if TYPE_CHECKING:
    from alembert.linear.linear_model import LinearModel

Array = np.ndarray
ROUNDINGS = 1e-12
"""what sums of some hundred terms may lose, 1e3 eps and some room"""
CLOUD = 1.5e-8
"""of the fastest pole: the square root of eps, below which stiffnesses do not reach; long chains of zeros (those of a
falling body) leave such poles, which (2) may take for others"""


def stiffness(linear: LinearModel) -> Array:
    """k of (1), for the displacements of a linear model."""
    model, n = linear.model, len(linear.displacements)
    parameters = {name: float(np.asarray(x)) for name, x in linear.parameter_values.items()}
    values = model.parameter_values | parameters
    g = float(np.linalg.norm([quantities.number(x, values) for x in model.gravity]))
    places = [
        model.frame_pose(linear.q, b.name, parameters=parameters or None).translation for b in model.bodies
    ]
    center = model.center_of_mass(linear.q, parameters=parameters or None)
    l = float(np.linalg.norm([*places, center], axis=-1).max(initial=0.0))
    if not g or not l or not n:
        return np.zeros((n, n))
    units = quantities.displacement_units(model)
    u = np.array([1.0 / l if units[k] == "m" else 1.0 for k in linear.displacements])
    return model.mass * g * l * np.outer(u, u)


def sizes(linear: LinearModel) -> Array:
    """What (1) has after eps, of the size of A."""
    n, m = len(linear.displacements), len(linear.rates)
    found = np.abs(linear.A)
    if n == m:
        found[n:, :n] += np.abs(np.linalg.inv(linear.mass_matrix)) @ stiffness(linear)
    return found


def zero_poles(A: Array, size: Array) -> int:
    """How many poles are zero, (2); `size` is that of the numbers that the entries were made from."""
    scale = _units(size)
    A, size = A * scale / scale[:, None], size * scale / scale[:, None]
    count = 0
    while len(A):
        found = kernel(A, size)
        if not found.shape[1]:
            break
        count += found.shape[1]
        rest = np.linalg.qr(found, mode="complete")[0][:, found.shape[1] :]
        A, size = rest.T @ A @ rest, np.abs(rest.T) @ size @ np.abs(rest)
    return count


def kernel(A: Array, size: Array) -> Array:
    """A basis of what A takes to zero but for rounding, (n, k); rows and columns count by their own size."""
    rows, columns = np.ones((2, len(A)))
    for _ in range(8):  # each time the largest entries come nearer to one
        scaled = size / rows[:, None] / columns
        rows *= np.sqrt(_or_one(scaled.max(axis=1)))
        columns *= np.sqrt(_or_one(scaled.max(axis=0)))
    _, s, Vt = np.linalg.svd(A / rows[:, None] / columns)
    rank = int(np.count_nonzero(s > ROUNDINGS * len(A)))
    found = Vt[rank:].T / columns[:, None]
    return found / _or_one(np.linalg.norm(found, axis=0))


def _units(size: Array) -> Array:
    """Scales of the states in which entries across the diagonal are alike."""
    return np.asarray(scipy.linalg.matrix_balance(size, permute=False, separate=True)[1][0])


def _or_one(x: Array) -> Array:
    return np.where(x > 0, x, 1.0)


def count_zero(poles: Array, A: Array, size: Array) -> int:
    """How many of the poles of A are zero: by (2), or so small that no model is so stiff."""
    tiny = np.abs(poles) <= CLOUD * np.abs(poles).max(initial=0.0)
    return max(zero_poles(A, size), int(np.count_nonzero(tiny)))


def settled_poles(linear: LinearModel) -> Array:
    """The eigenvalues of A by size; those that are zero but for rounding are zero."""
    poles = np.linalg.eigvals(linear.A)
    poles = poles[np.argsort(np.abs(poles), kind="stable")]
    poles[: count_zero(poles, linear.A, sizes(linear))] = 0.0
    return poles

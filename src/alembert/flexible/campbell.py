"""Campbell diagrams: how the frequencies of a spinning structure change with its rate, seen from the structure itself.

A joint turns steadily; the modes deflect until nothing accelerates; small motion about that, the joint held at its
rate, is

    M e'' + C e' + K e = 0,    C = d tau/dv, K = d tau/dq of inverse dynamics                                  (1)

with gyroscopic, centrifugal and motion-induced terms in C and K. With loops or equations (a shaft in two bearings) e moves
along them, e = Z y, and C and K come from the derivatives of the accelerations. From one rate to the next a mode is the
one whose shape it resembles most, by the assignment with the largest sum of

    MAC(a, b) = |a* M b|^2 / (a* M a  b* M b)                                                                  (2)

so that lines cross where modes do; of shapes that resemble alike, the one with the nearer pole. A whirl that the rate
overtakes goes on below the real axis: seen from the structure it turns back.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert import arguments
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.expression import floats
from alembert.model import Model
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
_STEPS = 30
_NEARER = 0.01
"""what the distance of poles weighs against the resemblance of shapes"""
_ALIKE = 1e-9
"""of directions that constraints leave, against rounding"""
_GROWS = 1e-6
"""of a pole's size: less is rounding of poles on the imaginary axis"""


@dataclass(frozen=True, eq=False)
class Campbell:
    """`poles` (rates x modes): of each pair the one above the real axis; real pairs by their growth.

    Columns are modes, followed through crossings, by frequency at the first rate (by frequency at each, if not tracked).
    Followed through zero, as a backward whirl that the rate overtakes, a pole is the one below the real axis from there on.
    """

    rates: Array
    poles: Array
    shapes: Array
    """rates x modes x speeds: the complex shapes, with the largest entry 1; zero at the joint that turns"""
    resemblance: Array
    """rates x modes: MAC of each shape with that at the rate before, 1 at the first; low where modes veer"""

    @property
    def frequencies(self) -> Array:
        """|Im| of the poles, rad/s, rates x modes."""
        return np.abs(self.poles.imag)

    @property
    def unstable_from(self) -> float | None:
        """The first of the rates at which something grows, None if nothing does."""
        grows = (self.poles.real > _GROWS * np.abs(self.poles).max()).any(axis=1)
        return float(self.rates[np.flatnonzero(grows)[0]]) if grows.any() else None

    def critical_rates(self, order: float = 1.0) -> list[float]:
        """Rates at which a frequency is `order` times the rate, by straight lines between the rates computed.

        Loads that stand still in space have order 1 as seen from the structure; those that turn with it, as unbalance
        does, have order 0.
        """
        found = []
        for side in (1.0, -1.0) if order else (1.0,):
            gap = side * self.poles.imag - order * self.rates[:, None]
            for column in gap.T:
                for k in np.flatnonzero((column[:-1] < 0) != (column[1:] < 0)):
                    part = column[k] / (column[k] - column[k + 1])
                    found.append(float(self.rates[k] + part * (self.rates[k + 1] - self.rates[k])))
        return sorted(rate for rate in found if rate)

    def plot(
        self, *, orders: tuple[float, ...] = (1.0, 2.0), path: str | PathLike[str] | None = None
    ) -> Figure:
        """Frequencies over the rate, with lines of the given orders; needs matplotlib. `path` saves it."""
        figure = figures.new_figure("plot", 7, 4.5)
        axes = figure.subplots()
        axes.plot(self.rates, self.frequencies, ".-", ms=3)
        for order in orders:
            axes.plot(self.rates, order * self.rates, "k--", lw=0.8)
            axes.annotate(f"{order:g}x", (self.rates[-1], order * self.rates[-1]))
        axes.set(xlabel="rate [rad/s]", ylabel="frequency [rad/s]", ylim=(0, 1.05 * self.frequencies.max()))
        return figures.save(figure, path)


def campbell(
    model: Model, joint: str, rates: Any, *, modes: int | None = None, tracked: bool = True
) -> Campbell:
    """Poles of the model while `joint` (one that turns) has each of the rates, rad/s; the lowest `modes` of them.

    Modes are followed by their shapes from rate to rate, through crossings; with `tracked` false they are in the order of
    their frequencies at each rate.
    """
    at = model.v_slice(joint)
    if at.stop - at.start != 1:
        raise ArgumentError(
            f"campbell: joint {joint!r} has {at.stop - at.start} speeds, expected one that turns"
        )
    if model.joint(joint).type.speeds[0][1] != "rad/s":
        raise ArgumentError(f"campbell: joint {joint!r} does not turn, expected one with a rate in rad/s")
    if modes is not None and (isinstance(modes, bool) or not isinstance(modes, int) or modes < 1):
        raise ArgumentError(f"campbell: modes is {modes!r}, expected a number of modes")
    speeds = np.atleast_1d(arguments.numbers("campbell", "rates", rates))
    if speeds.ndim != 1 or not speeds.size or not np.isfinite(speeds).all():
        raise ArgumentError(f"campbell: rates have shape {speeds.shape}, expected finite numbers (many,)")
    free = np.ones(model.nv, dtype=bool)
    free[at] = False
    if not free.any():
        raise ArgumentError("campbell: nothing but the joint moves")
    q = model.neutral()
    if model.is_constrained:
        q = model.assemble(q, fixed=[joint]).q
        _check_symmetry(model, joint, q, free)
    _check_gravity(model, at, free, q)
    found = []
    last: tuple[Array, Array] | None = None
    for rate in speeds:
        v = np.zeros(model.nv)
        v[at] = rate
        q = _settled(model, joint, q, v, free, float(rate))
        Z, M, C, K = _small_motion(model, joint, q, v, free)
        poles, shapes = pairs(Z.T @ M @ Z, C, K)
        shapes = Z @ shapes
        shapes = shapes / shapes[np.argmax(np.abs(shapes), axis=0), np.arange(len(poles))]
        mac = np.ones(len(poles))
        if last is not None:
            # of each pair both: a pole may go on through zero
            poles, shapes = np.concatenate([poles, poles.conj()]), np.hstack([shapes, shapes.conj()])
            alike = _resemblance(last[1], shapes, M)
            order = np.arange(len(last[0]))
            if tracked:
                far = np.abs(last[0][:, None] - poles) / max(np.abs(poles).max(), 1e-300)
                order = _assigned(alike - _NEARER * far)
            mac = alike[np.arange(len(order)), order]
            poles, shapes = poles[order], shapes[:, order]
        last = poles, shapes
        whole = np.zeros((len(poles), model.nv), dtype=complex)
        whole[:, free] = shapes.T
        found.append((poles, whole, mac))
    count = len(found[0][0]) if modes is None else min(modes, len(found[0][0]))
    kept = (np.array([each[k][:count] for each in found]) for k in range(3))
    return Campbell(speeds, *kept)


def _check_gravity(model: Model, at: slice, free: Array, q: Array) -> None:
    """Weight that turns against the structure lets nothing be steady."""
    if not np.any(floats(model.gravity, model.parameter_values)):
        return
    turn = np.zeros(model.nv)
    turn[at] = 1.0
    one, other = (model.gravity_forces(x)[free] for x in (q, model.integrate(q, turn)))
    if np.abs(one - other).max() > 1e-9 * np.abs(one).max():
        raise UnsupportedError(
            "campbell: gravity is not along the axis about which the structure turns, where nothing is steady; build the "
            "model with gravity=(0, 0, 0), or turn the axis"
        )


def _check_symmetry(model: Model, joint: str, q: Array, free: Array) -> None:
    """Loops and equations let the joint turn alone, and look the same at every angle: a bearing, not a hook."""
    turn = np.zeros(model.nv)
    turn[~free] = 1.0
    Z = scipy.linalg.null_space(model.constraint_jacobian(q)[:, free], rcond=_ALIKE)
    for angle in (0.0, 1.0, 2.0):
        turned = model.integrate(q, angle * turn)
        G = model.constraint_jacobian(turned)
        size = np.abs(G).max(initial=1e-300)
        gaps = (model.constraint_residual(turned), G @ turn / size, G[:, free] @ Z / size)
        if max(np.abs(gap).max(initial=0.0) for gap in gaps) > _ALIKE:
            raise UnsupportedError(
                f"campbell: loops or equations do not let {joint!r} turn alone, or change as it turns; hold the structure "
                "alike in all directions across its axis, as bearings do"
            )


def _small_motion(
    model: Model, joint: str, q: Array, v: Array, free: Array
) -> tuple[Array, Array, Array, Array]:
    """Z, the mass matrix in all free speeds, and C and K of (1) in y."""
    M = np.asarray(model.mass_matrix(q))[np.ix_(free, free)]
    if not model.is_constrained:
        d = model.inverse_dynamics_derivatives(q, v, np.zeros(model.nv))
        C, K = (np.asarray(x)[np.ix_(free, free)] for x in (d.dv, d.dq))
        return np.eye(len(M)), M, C, K
    Z = scipy.linalg.null_space(model.constraint_jacobian(q)[:, free], rcond=_ALIKE)
    if not Z.shape[1]:
        raise ArgumentError("campbell: nothing but the joint moves")
    slopes = model.hybrid_dynamics_derivatives(q, v, accelerations={joint: 0.0})
    C, K = (-Z.T @ M @ np.asarray(x[0])[np.ix_(free, free)] @ Z for x in (slopes.dv, slopes.dq))
    return Z, M, C, K


def _resemblance(before: Array, now: Array, M: Array) -> Array:
    """(2), of all shapes before (rows) and now (columns)."""
    products = np.abs(before.conj().T @ M @ now) ** 2
    sizes = [np.einsum("ik,ij,jk->k", x.conj(), M, x).real for x in (before, now)]
    return products / np.outer(*sizes)


def _assigned(score: Array) -> Array:
    """To each mode (rows) one column of another pair, for the largest sum; columns are poles and their conjugates."""
    n = len(score)
    both = np.stack([score[:, :n], score[:, n:]])
    order = scipy.optimize.linear_sum_assignment(both.max(axis=0), maximize=True)[1]
    return order + n * both.argmax(axis=0)[np.arange(n), order]


def pairs(M: Array, C: Array, K: Array) -> tuple[Array, Array]:
    """Poles of (1), one of each pair, by frequency, and their shapes by columns.

    A real pair counts as one of frequency zero, by its larger root.
    """
    n = len(M)
    X = np.linalg.solve(M, np.hstack([K, C]))
    poles, vectors = np.linalg.eig(np.block([[np.zeros((n, n)), np.eye(n)], [-X]]))
    real = np.abs(poles.imag) < 1e-9 * np.abs(poles).max()
    above = np.flatnonzero(~real & (poles.imag > 0))
    lone = np.flatnonzero(real)
    lone = lone[np.argsort(-poles[lone].real, kind="stable")][: n - len(above)]
    kept = np.concatenate([lone, above])
    found = np.where(real[kept], poles[kept].real, poles[kept])
    order = np.lexsort((-found.real, found.imag))
    shapes = vectors[:n, kept[order]]
    largest = shapes[np.argmax(np.abs(shapes), axis=0), np.arange(shapes.shape[1])]
    return found[order], shapes / largest


def _settled(model: Model, joint: str, q: Array, v: Array, free: Array, rate: float) -> Array:
    """The deflected shape that turns steadily: nothing accelerates while the joint is held at its rate."""
    zero = np.zeros(model.nv)
    size = 0.0
    for _ in range(_STEPS):
        Z, M, _, K = _small_motion(model, joint, q, v, free)
        if model.is_constrained:
            a = np.asarray(model.hybrid_dynamics(q, v, accelerations={joint: 0.0}).accelerations)[free]
            effort = -Z.T @ M @ a
        else:
            effort = np.asarray(model.inverse_dynamics(q, v, zero))[free]
        step = np.zeros(model.nv)
        step[free] = Z @ -np.linalg.lstsq(K, effort, rcond=1e-12)[0]
        size = float(np.abs(step).max())
        if not np.isfinite(size):
            break
        q = model.integrate(q, step)
        if model.is_constrained:
            q = model.project(q).q
        if size < 1e-10:
            return q
    raise NumericalError(
        f"campbell: at {rate:g} rad/s no steady shape was found; the last step was {size:.3g}. The structure may "
        "be past the rate at which it gives way"
    )

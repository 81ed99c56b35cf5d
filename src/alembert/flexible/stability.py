"""Where a structure loses its stability as a load grows, divergence (buckling) and flutter; and how its frequencies change
with the rate at which it turns.

    M q'' + D q' + K(p) q = 0                                                                                (1)

A conservative load makes K singular; a follower force makes it unsymmetric, and two frequencies meet.

Maps show where gains of loops keep a structure stable, with proof masses as absorbers or actuators. A proof mass m_a hangs
at a place of a structure by a spring k_a and a damper c_a; its housing adds a mass m_t there. Tuned to a mode of frequency
w with the participation phi of the place (unit modal mass), mu = m_a phi^2, mu_t = m_t phi^2:

    "equal"       w_a = w                                                                                    (2)
    "den hartog"  w_a = w/(1 + mu),   c_a = 2 m_a w_a sqrt(3 mu/(8 (1 + mu)))                                  (3)
    "minas"       w_a^2 = w^2 (1 + mu_t)/(1 + mu_t + mu)^2,  c_a^2 = m_a^2 w^2 mu (1 + mu_t)/(1 + mu_t + mu)^3   (4)

(Den Hartog, Mechanical Vibrations; Minas, Garcia and Inman 1989.)

Campbell diagrams are seen from the structure itself. A joint turns steadily; the modes deflect until nothing accelerates;
small motion about that, the joint held at its rate, is

    M e'' + C e' + K e = 0,    C = d tau/dv, K = d tau/dq of inverse dynamics                                  (5)

with gyroscopic, centrifugal and motion-induced terms in C and K. With loops or equations (a shaft in two bearings) e moves
along them, e = Z y, and C and K come from the derivatives of the accelerations. From one rate to the next a mode is the
one whose shape it resembles most, by the assignment with the largest sum of

    MAC(a, b) = |a* M b|^2 / (a* M a  b* M b)                                                                  (6)

so that lines cross where modes do; of shapes that resemble alike, the one with the nearer pole. A whirl that the rate
overtakes goes on below the real axis: seen from the structure it turns back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert import arguments
from alembert.control import SecondOrder
from alembert.errors import ArgumentError, NumericalError, UnsupportedError, warn
from alembert.expression import floats
from alembert.model import Model
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
_GROWTH = 1e-5
"""growth over frequency that counts: poles that meet on the axis are known to the square root of rounding"""
_STILL = 1e-7
"""of the largest pole: the double poles at zero of rigid motions are known to the square root of rounding"""
_STILL_UNDER_LOAD = 5e-4
"""likewise where a follower force makes them fourfold (what turns is pushed aside): a few fourth roots of rounding"""


@dataclass(frozen=True, eq=False)
class StabilityBoundary:
    """The smallest value of the parameter at which something grows."""

    value: float
    kind: str
    """"divergence" or "flutter" """
    pole: complex
    """just beyond"""


def stability_boundary(
    system: Callable[[float], SecondOrder], low: float, high: float, *, samples: int = 40, digits: int = 8
) -> StabilityBoundary | None:
    """The first loss of stability of `system(p)` between `low` and `high`, None if there is none at the samples.

    The range is sampled, then halved. Poles that grow by less than 1e-5 of the largest frequency seen so far do not count,
    nor do those of rigid motions: as many as are zero at `low`, while they are within rounding of it, which is 5e-4 of the
    largest frequency where loads follow.
    """
    if not (np.isfinite([low, high]).all() and low < high) or samples < 2:
        raise ArgumentError(f"stability_boundary: from {low!r} to {high!r} with {samples!r} samples")
    first = np.abs(_poles(system, low))
    reference = first.max()
    rigid = int(np.count_nonzero(first <= _STILL * reference))

    doubtful: list[float] = []

    def worst(p: float) -> complex | None:
        poles = _poles(system, p)
        poles = poles[np.argsort(np.abs(poles))]
        still = np.where(np.arange(len(poles)) < rigid, _STILL_UNDER_LOAD * reference, 0.0)
        doubtful.extend(poles[:rigid].real[poles[:rigid].real > _STILL * reference])
        scale = np.minimum(np.maximum(np.abs(poles), 1e-3 * np.abs(poles).min()), reference)
        grows = (poles.real > _GROWTH * scale) & (np.abs(poles) > still)
        return complex(poles[grows][np.argmax(poles[grows].real)]) if grows.any() else None

    if worst(low) is not None:
        raise ArgumentError(f"stability_boundary: the system is unstable at {low:g} already")
    found = _boundary(worst, low, high, samples, digits)
    rigid_growth = max((x for x in doubtful if x < _STILL_UNDER_LOAD * reference), default=0.0)
    if rigid_growth:
        warn(
            f"stability_boundary: rigid motions grow by up to {rigid_growth:.2g}/s, which rounding of loads that follow may "
            "do too, so they do not count; take them out of the system (or hold it) to know"
        )
    return found


def _boundary(
    worst: Callable[[float], complex | None], low: float, high: float, samples: int, digits: int
) -> StabilityBoundary | None:
    grid = np.linspace(low, high, samples + 1)
    for a, b in itertools.pairwise(grid):
        pole = worst(float(b))
        if pole is None:
            continue
        below, above = float(a), float(b)
        while above - below > 10.0**-digits * max(abs(above), abs(below)):
            middle = (below + above) / 2
            found = worst(middle)
            if found is None:
                below = middle
            else:
                above, pole = middle, found
        return StabilityBoundary(above, "divergence" if abs(pole.imag) < abs(pole.real) else "flutter", pole)
    return None


def _poles(system: Any, p: float) -> Array:
    s = system(p)
    if not isinstance(s, SecondOrder):
        raise ArgumentError(
            f"stability_boundary: system({p:g}) is {type(s).__name__}, expected a SecondOrder"
        )
    return pairs(s.M, s.D, s.K)[0]


RULES = ("equal", "den hartog", "minas")


def tuned_absorber(
    frequency: float, participation: float, mass: float, *, housing: float = 0.0, rule: str = "den hartog"
) -> tuple[float, float]:
    """Stiffness and damping of an absorber by one of the rules; (2) leaves the damping at zero."""
    what = "tuned_absorber"
    arguments.choice(what, "rule", rule, RULES)
    w, m = arguments.positive(what, "frequency", frequency), arguments.positive(what, "mass", mass)
    for name, value in (("participation", participation), ("housing", housing)):
        if not arguments.is_number(value):
            raise ArgumentError(f"{what}: {name} is {value!r}, expected a number")
    mu, mu_t = m * float(participation) ** 2, float(housing) * float(participation) ** 2
    if rule == "equal":
        return m * w**2, 0.0
    if rule == "den hartog":
        own = w / (1 + mu)
        return m * own**2, 2 * m * own * float(np.sqrt(3 * mu / (8 * (1 + mu))))
    whole = 1 + mu_t + mu
    return m * w**2 * (1 + mu_t) / whole**2, m * w * float(np.sqrt(mu * (1 + mu_t) / whole**3))


def with_proof_mass(
    system: SecondOrder,
    place: Any,
    mass: float,
    stiffness: float,
    damping: float = 0.0,
    *,
    housing: float = 0.0,
    name: str = "proof_mass",
) -> SecondOrder:
    """The structure with a proof mass at `place`, the row of its displacement by the positions (or a position's number).

    It has one position more, the place of the mass, and one input more, the force between the mass and the structure
    (positive on the structure).
    """
    n = system.size
    e = np.zeros(n)
    if isinstance(place, int | np.integer):
        if not 0 <= place < n:
            raise ArgumentError(f"with_proof_mass: place {place} of {n} positions")
        e[place] = 1.0
    else:
        e = arguments.numbers("with_proof_mass", "place", place, n, batch=False)
    m = arguments.positive("with_proof_mass", "mass", mass)
    if min(stiffness, damping, housing) < 0:
        raise ArgumentError(
            f"with_proof_mass: stiffness {stiffness!r}, damping {damping!r} and housing {housing!r}, expected none negative"
        )
    between = np.append(e, -1.0)

    def wide(A: Array) -> Array:
        return np.pad(A, ((0, 1), (0, 1)))

    M = wide(system.M)
    M[:n, :n] += housing * np.outer(e, e)
    M[n, n] = m
    return SecondOrder(
        M,
        wide(system.D) + damping * np.outer(between, between),
        wide(system.K) + stiffness * np.outer(between, between),
        np.hstack([np.pad(system.F, ((0, 1), (0, 0))), between[:, None]]),
        np.pad(system.C_q, ((0, 0), (0, 1))),
        np.pad(system.C_v, ((0, 0), (0, 1))),
        (*system.input_names, name),
        system.output_names,
    )


@dataclass(frozen=True, eq=False)
class StabilityMap:
    """The largest growth (real part of a pole, 1/s) for every pair of gains: gains of the first by rows."""

    gains: tuple[Array, Array]
    growth: Array
    names: tuple[str, str]

    @property
    def stable(self) -> Array:
        return self.growth < 0

    @property
    def best(self) -> tuple[float, float]:
        """The gains with the fastest decay of the slowest pole."""
        i, j = np.unravel_index(int(self.growth.argmin()), self.growth.shape)
        return float(self.gains[0][i]), float(self.gains[1][j])

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """Where it is stable, over the gains; needs matplotlib. `path` saves it."""
        figure = figures.new_figure("plot", 6, 5)
        axes = figure.subplots()
        size = np.abs(self.growth).max() or 1.0
        mesh = axes.pcolormesh(
            *self.gains, self.growth.T, cmap="RdBu_r", vmin=-size, vmax=size, shading="nearest"
        )
        axes.contour(*self.gains, self.growth.T, levels=[0.0], colors="k")
        axes.set(xlabel=figures.plain(self.names[0]), ylabel=figures.plain(self.names[1]))
        figure.colorbar(mesh, label="largest real part of a pole [1/s]")
        return figures.save(figure, path)


def stability_map(
    system: SecondOrder, first: Any, second: Any, *, outputs: Sequence[str], control: str
) -> StabilityMap:
    """Feedback u = g1 y1 + g2 y2 of two outputs (by name) to the input `control`, for all pairs of gains."""
    what = "stability_map"
    grids = tuple(np.atleast_1d(arguments.numbers(what, "gains", g)) for g in (first, second))
    rows = []
    for name in outputs:
        arguments.check_known(f"{what}: no output", name, system.output_names)
        rows.append(system.output_names.index(name))
    if len(rows) != 2:
        raise ArgumentError(f"{what}: {len(rows)} outputs, expected two")
    arguments.check_known(f"{what}: no input", control, system.input_names)
    b = system.F[:, [system.input_names.index(control)]]
    growth = np.empty((len(grids[0]), len(grids[1])))
    for i, g1 in enumerate(grids[0]):
        for j, g2 in enumerate(grids[1]):
            row = np.array([[g1, g2]])
            D, K = (A - b @ row @ C[rows] for A, C in ((system.D, system.C_v), (system.K, system.C_q)))
            growth[i, j] = pairs(system.M, D, K)[0].real.max()
    return StabilityMap((grids[0], grids[1]), growth, (outputs[0], outputs[1]))


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
    if modes is not None:
        arguments.whole("campbell", "modes", modes, "a number of modes")
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
    """Z, the mass matrix in all free speeds, and C and K of (5) in y."""
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
    """(6), of all shapes before (rows) and now (columns)."""
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
    """Poles of (5), one of each pair, by frequency, and their shapes by columns.

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

"""Linear models whose matrices depend on named parameters of the model, as linear fractional transformations.

About a state that is held (the inputs give what this takes), with a0 the accelerations there and r = inverse dynamics,

    M(p) dv' = -r_q(p) e - r_v(p) dv + G(p) du,        dy = h_q(p) e + h_v(p) dv + h_a(p) dv'                        (1)

Mass matrix, slopes and outputs of a tree are polynomials in masses, moments and lengths, of low degree: they are found by
interpolation on Chebyshev points, and written as a transformation parameter by parameter, each coefficient by its rank
(Belcastro 1989, for multilinear entries; Horner's scheme for powers),

    N(p) = N_0 + d (N_1 + d (N_2 + ...)),        [M -B; h_a H] = N(p)                                                (2)

so that M^-1, which is rational, costs no copies of its own: the first rows of (2) are solved for dv' within it. Where loops
or couplings hold, M is that of independent speeds, E_v' M E_v, which is a polynomial too while the parameters leave the
geometry of the loops as it is. Parameters that are no polynomials (angles) go as far as polynomials reach. Copies that do
nothing are taken out (`Uncertain.reduced`), over several orders of the parameters.

The result is compared with the linear model itself at all corners and at random values; what it misses is stated, and, where
it is more than rounding, becomes a full block of that size in Delta.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from alembert.arguments import check_known
from alembert.control.arguments import takes_systems
from alembert.control.interconnection import lft
from alembert.control.mu_bounds import DeltaBlock
from alembert.control.robustness import MuPeak, mu_peak
from alembert.control.statespace import StateSpace
from alembert.control.uncertain_lft import Uncertain, least_copies
from alembert.control.uncertain_systems import UncertainSystem
from alembert.errors import ArgumentError, UnsupportedError
from alembert.linear import reduction
from alembert.linear.linear_model import LinearModel
from alembert.linear.quantities import differentiate
from alembert.linear.quantities import outputs as output_rows
from alembert.model import Model

Array = np.ndarray
POINTS = 13
"""of interpolation along a parameter, to find its degree"""
ROUNDING = 1e-10
"""relative to the largest entry: a coefficient below it is none"""
SAMPLES, MOST_CORNERS = 40, 64
MOST_EVALUATIONS = 20_000


@dataclass(frozen=True)
class Certificate:
    """How a transformation compares with the linear models themselves, and with the fewest copies there can be."""

    samples: int
    error: float
    """the largest difference of an entry, relative to the largest entry of [A B; C D]"""
    worst: Mapping[str, float]
    """where"""
    copies: Mapping[str, int]
    least: Mapping[str, int]
    """copies that every transformation has, by the degree in each parameter"""
    residual: float
    """size of the full block that stands for what is missing; zero where the transformation is exact"""

    @property
    def exact(self) -> bool:
        return self.residual == 0

    def __str__(self) -> str:
        listed = ", ".join(f"{name} {n} (at least {self.least[name]})" for name, n in self.copies.items())
        told = (
            "exact to rounding"
            if self.exact
            else f"a full block of size {self.residual:.2e} stands for the rest"
        )
        at = ", ".join(f"{name} = {x:.4g}" for name, x in self.worst.items())
        return f"copies: {listed}; largest difference {self.error:.1e} in {self.samples} linear models, at {at}: {told}"


@dataclass(frozen=True, eq=False)
class UncertainLinearModel:
    """x' = A(p) x + B(p) u, y = C(p) x + D(p) u about a state of a model, for parameters p within ranges.

    `nominal` is the linear model at the means, with names, units and the point; `certificate` says how exact it is.
    """

    system: UncertainSystem
    nominal: LinearModel
    certificate: Certificate
    _family: Callable[[Mapping[str, Any]], LinearModel] = field(repr=False)

    def to_uncertain_system(self) -> UncertainSystem:
        """What `al.control` joins with other systems by the names of signals."""
        if not self.certificate.exact:
            raise UnsupportedError(
                "to_uncertain_system: the transformation has a residual, which only mu of this family takes in"
            )
        point = self.nominal.to_statespace()
        return dataclasses.replace(
            self.system,
            input_names=point.input_names,
            output_names=point.output_names,
            input_units=point.input_units,
            output_units=point.output_units,
        )

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        return self.system.matrix.ranges

    @property
    def copies(self) -> Mapping[str, int]:
        return self.system.matrix.copies

    @cached_property
    def blocks(self) -> list[DeltaBlock]:
        """Delta, for `mu_peak` and `dksyn`."""
        found = self.system.blocks
        if self.certificate.exact:
            return found
        n, (p, m) = self.system.order, self.nominal.D.shape
        return [*found, DeltaBlock("full", n + p, n + m, "rest")]

    def at(self, **values: float) -> StateSpace:
        """The system for some values of the parameters, by the transformation."""
        made = self.system.at(**values)
        return self.nominal.to_statespace().with_matrices(*made.matrices)

    def linear(self, **values: float) -> LinearModel:
        """The linear model itself at these values, its efforts those that hold the state there."""
        for name in values:
            check_known("linear: there is no parameter", name, self.ranges)
        return self._family({**_means(self.ranges), **values})

    def open(self) -> StateSpace:
        """The system from (w, u) to (z, y) that w = Delta z closes."""
        P, U = self.system.open(), self.system.matrix
        if self.certificate.exact:
            return P
        n, k = self.system.order, len(U.M11)
        p, m = self.nominal.D.shape
        size = self.certificate.residual
        B = np.hstack([P.B[:, :k], size * np.eye(n, n + p), P.B[:, k:]])
        C = np.vstack([P.C[:k], np.eye(n + m, n), P.C[k:]])
        D = np.zeros((k + n + m + p, k + n + p + m))
        D[:k, :k], D[:k, k + n + p :] = P.D[:k, :k], P.D[:k, k:]
        D[k + n : k + n + m, k + n + p :] = np.eye(m)
        D[k + n + m :, :k], D[k + n + m :, k + n + p :] = P.D[k:, :k], P.D[k:, k:]
        D[k + n + m :, k + n : k + n + p] = size * np.eye(p)
        return StateSpace(P.A, B, C, D)

    @takes_systems(gains=True)
    def closed(self, controller: StateSpace) -> StateSpace:
        """From w to z with u = K y: what `mu_peak` takes with `blocks`."""
        if controller.shape != (self.nominal.D.shape[1], self.nominal.D.shape[0]):
            raise ArgumentError(
                f"closed: the controller has shape {controller.shape}, expected u = K y with "
                f"{self.nominal.D.shape[1]} outputs and {self.nominal.D.shape[0]} inputs"
            )
        if controller.order and controller.is_discrete:
            raise ArgumentError(
                f"closed: the controller is sampled every {controller.dt:g} s, the linear models are continuous; use "
                "al.control.d2c(controller) with a delay of half a period, or al.certify, which does so"
            )
        return lft(self.open(), StateSpace(*controller.matrices))

    def seen(self) -> UncertainLinearModel:
        """The part that the outputs see: without states that act on no output, neither directly nor through others.

        Of a free-flying vehicle whose attitude is measured, its place and the turns of its wheels go; whatever a controller
        does with these outputs, it does to the whole just what it does to the part.
        """
        n, names = self.system.order, self.nominal.state_names
        rng = np.random.default_rng(2)
        tried = [
            self.at(**{name: float(rng.uniform(*x)) for name, x in self.ranges.items()}) for _ in range(8)
        ]
        A, seen = (np.max([np.abs(getattr(x, name)) for x in tried], axis=0) for name in "AC")
        keep = sorted(reduction.acting_on(A, np.flatnonzero(reduction.told(seen).any(axis=0))))
        if len(keep) == n:
            return self
        rows, columns = ([*keep, *range(n, size)] for size in self.system.matrix.shape)
        U = self.system.matrix
        part = Uncertain(
            U.M11, U.M12[:, columns], U.M21[rows], U.M22[np.ix_(rows, columns)], U.copies, U.ranges
        ).reduced()
        kept = [names[k] for k in keep]
        return UncertainLinearModel(
            UncertainSystem(_in_order(part, self.ranges), len(keep)),
            self.nominal.reduced(kept),
            self.certificate,
            lambda values: self._family(values).reduced(kept),
        )

    def mu(self, controller: StateSpace, *, tolerance: float = 1e-2) -> MuPeak:
        """The peak of mu of the closed loop, proven for all frequencies: below one, all parameters within the ranges are
        stable."""
        return mu_peak(self.closed(controller), self.blocks, tolerance=tolerance)

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in self.ranges.items())
        return f"<UncertainLinearModel of {self.nominal.model.name!r}: {self.system.order} states, {listed}>"

    def __str__(self) -> str:
        return f"{self!r}\n{self.certificate}"


def uncertain_linear_model(
    model: Model,
    ranges: Mapping[str, Any],
    linear: Callable[[Any, Mapping[str, Any]], LinearModel],
    q: Array,
    v: Array,
    tau: Array,
    values: Mapping[str, Any],
    outputs: Sequence[str],
) -> UncertainLinearModel:
    """`linear(tau, parameter values)` makes the linear model; (q, v, tau) is its point at `values`, defaults elsewhere."""
    checked = _checked(model, ranges)
    names = list(checked)
    if q.ndim > 1 or v.ndim > 1 or tau.ndim > 1:
        raise UnsupportedError(
            "linearize: uncertain and a batch of states do not go together; take one state"
        )
    means = _means(checked)
    held = linear(tau, values)
    a0 = held.a
    E_v = np.eye(model.nv)
    if model.is_constrained:
        E_v = model.constrained_compute.constraint_tangents(
            "linearize", q[None], v[None], {**model.parameter_values, **values}, ()
        )[0].E_v

    def physical(d: Array) -> dict[str, Any]:
        """Values of the parameters for d (..., k) between -1 and 1."""
        return {**values, **{name: _value(checked[name], d[..., k]) for k, name in enumerate(names)}}

    def change(p: Mapping[str, Any]) -> Array:
        """Of the efforts along the independent speeds, (..., k), for the same accelerations."""
        return (model.inverse_dynamics(q, v, a0, parameters=dict(p)) - rest) @ E_v

    rest = model.inverse_dynamics(q, v, a0, parameters=values)
    by_inputs = held.G @ np.linalg.pinv(E_v.T @ held.G)
    corners = np.array(
        list(itertools.islice(itertools.product((-1.0, 1.0), repeat=len(names)), MOST_CORNERS))
    )
    _check_held(model, E_v, by_inputs, change(physical(corners)), corners, physical)

    def family(p: Mapping[str, Any]) -> LinearModel:
        at = {**values, **p}
        return linear(tau + change(at) @ by_inputs.T, at)

    nominal = family(means)
    n, m = nominal.A.shape[-1], nominal.B.shape[-1]
    order = len(nominal.A)
    rows = output_rows(model, outputs, "linearize")
    solved = E_v.shape[1]

    def entries(d: Array) -> Array:
        """[M -B; h_a H] at (N, k)."""
        p = physical(d)
        states = [family(physical(x)) for x in d] if model.is_constrained else [family(p)]
        A, B, C, D = (
            np.broadcast_to(
                np.reshape([getattr(x, name) for x in states], (-1 if 0 not in size else 1, *size)),
                (len(d), *size),
            )
            for name, size in (("A", (n, n)), ("B", (n, m)), ("C", (len(rows), n)), ("D", (len(rows), m)))
        )
        M = E_v.T @ np.broadcast_to(model.mass_matrix(q, parameters=p), (len(d), model.nv, model.nv)) @ E_v
        h = differentiate(model, rows, q, v, a0, model.compute.parameter_array("linearize", p))
        h_a = np.broadcast_to(h.da @ E_v, (len(d), len(rows), solved))
        low = np.concatenate([A[:, -solved:], B[:, -solved:]], axis=-1)
        H = np.concatenate([C, D], axis=-1) - h_a @ low
        return np.concatenate([np.concatenate([M, -M @ low], -1), np.concatenate([h_a, H], -1)], axis=-2)

    coefficients = _polynomial(entries, len(names))
    best = None
    for way in itertools.islice(itertools.permutations(range(len(names))), 6):
        made = _transformation(
            np.moveaxis(coefficients, way, range(len(names))), [names[k] for k in way], checked
        )
        made = _solved(made, solved, nominal)
        if best is None or sum(made.copies.values()) < sum(best.copies.values()):
            best = made
    assert best is not None
    if not any(best.copies.values()):
        raise ArgumentError(f"linearize: uncertain: the linear model does not change with {', '.join(names)}")
    system = UncertainSystem(_in_order(best, checked), order)

    def whole(x: LinearModel) -> Array:
        return np.block([[x.A, x.B], [x.C, x.D]])

    rng = np.random.default_rng(0)
    tried = np.vstack([corners, rng.uniform(-1, 1, (SAMPLES, len(names)))])
    scale = float(np.abs(whole(nominal)).max())
    found = []
    for d in tried:
        p = {name: float(_value(checked[name], d[k])) for k, name in enumerate(names)}
        found.append((float(np.abs(system.matrix.at(**p) - whole(family(p))).max()) / scale, p))
    error, worst = max(found, key=lambda pair: pair[0])
    missing = 0.0
    if error > 1e-8:
        missing = 2 * max(
            float(np.linalg.norm(system.matrix.at(**p) - whole(family(p)), 2)) for _, p in found
        )
    least = least_copies(lambda **p: whole(family(p)), checked)
    certificate = Certificate(len(tried), error, worst, dict(system.matrix.copies), least, missing)
    return UncertainLinearModel(system, nominal, certificate, family)


# --- pieces -----------------------------------------------------------------------------------------------------


def _checked(model: Model, ranges: Any) -> dict[str, tuple[float, float]]:
    if not isinstance(ranges, Mapping) or not ranges:
        raise ArgumentError(
            f"linearize: uncertain is {ranges!r}, expected a mapping from parameters of the model to (low, high)"
        )
    known = list(model.parameter_values)
    found = {}
    for name, given in ranges.items():
        check_known("linearize: uncertain: the model has no parameter", name, known)
        try:
            low, high = (float(x) for x in given)
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if not (np.isfinite([low, high]).all() and low < high):
            raise ArgumentError(f"linearize: uncertain: {name!r} is {given!r}, expected (low, high)")
        found[name] = (low, high)
    return found


def _means(ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    return {name: (low + high) / 2 for name, (low, high) in ranges.items()}


def _value(limits: tuple[float, float], d: Any) -> Any:
    return (limits[0] + limits[1]) / 2 + (limits[1] - limits[0]) / 2 * d


def _check_held(
    model: Model,
    E_v: Array,
    by_inputs: Array,
    change: Array,
    corners: Array,
    physical: Callable[[Array], Mapping[str, Any]],
) -> None:
    """The inputs must give what holds the state at other values."""
    left = (change - change @ (E_v.T @ by_inputs).T) @ np.linalg.pinv(E_v)
    size = np.abs(left).max(initial=0.0)
    if size > 1e-9 * max(1.0, float(np.abs(change).max(initial=0.0))):
        k, dof = np.unravel_index(int(np.argmax(np.abs(left))), left.shape)
        p = physical(corners[k])
        at = ", ".join(f"{name} = {float(x):g}" for name, x in p.items() if np.ndim(x) == 0)
        raise UnsupportedError(
            f"linearize: at {at} the state is held only with {left[k, dof]:+.4g} more on {model.speed_names[dof]!r}, which "
            "no input gives: it is no equilibrium there. Choose a state that is one for all values, or inputs that hold it"
        )


def _polynomial(entries: Callable[[Array], Array], count: int) -> Array:
    """Coefficients (d_1 + 1, ..., d_k + 1, rows, columns) of powers, as far as rounding or `POINTS` allow."""
    rng = np.random.default_rng(1)
    x = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    others = rng.uniform(-0.7, 0.7, count)
    degrees = []
    for k in range(count):
        d = np.tile(others, (POINTS, 1))
        d[:, k] = x
        F = entries(d).reshape(POINTS, -1)
        sizes = np.abs(chebyshev.chebfit(x, F, POINTS - 1)).max(axis=1)
        large = np.flatnonzero(sizes > ROUNDING * np.abs(F).max())
        degrees.append(int(large[-1]) if len(large) else 0)
    total = int(np.prod([n + 1 for n in degrees]))
    if total > MOST_EVALUATIONS:
        raise UnsupportedError(
            f"linearize: uncertain: degrees {degrees} in {count} parameters take {total} linear models, expected at most "
            f"{MOST_EVALUATIONS}; give fewer parameters"
        )
    grids = [np.cos(np.pi * (np.arange(n + 1) + 0.5) / (n + 1)) for n in degrees]
    points = np.array(list(itertools.product(*grids)))
    F = entries(points)
    F = F.reshape(*(n + 1 for n in degrees), *F.shape[1:])
    for k, n in enumerate(degrees):
        to_powers = np.array(
            [
                np.pad(chebyshev.cheb2poly(row), (0, n + 1 - len(chebyshev.cheb2poly(row))))
                for row in np.eye(n + 1)
            ]
        )
        fit = np.linalg.solve(chebyshev.chebvander(grids[k], n), np.eye(n + 1))
        F = np.moveaxis(np.tensordot(to_powers.T @ fit, F, axes=(1, k)), 0, k)
    return np.where(np.abs(F) > ROUNDING * np.abs(F).max(), F, 0.0)


def _transformation(
    coefficients: Array, names: Sequence[str], ranges: Mapping[str, tuple[float, float]]
) -> Uncertain:
    """(2), the first parameter outermost. Most products of parameters have no coefficient."""
    if not names or not coefficients.any():
        M = coefficients.reshape(-1, *coefficients.shape[-2:])[0]
        return Uncertain(np.zeros((0, 0)), np.zeros((0, M.shape[1])), np.zeros((len(M), 0)), M, {}, {})
    used = int(np.flatnonzero(coefficients.any(axis=tuple(range(1, coefficients.ndim))))[-1])
    *lower, found = (_transformation(x, names[1:], ranges) for x in coefficients[: used + 1])
    for part in reversed(lower):
        found = part + _times(names[0], ranges[names[0]], found)
    return found


def _times(name: str, limits: tuple[float, float], X: Uncertain) -> Uncertain:
    """d X with the normalised parameter d."""
    whole = np.hstack([X.M22, X.M21])
    left, s, right = np.linalg.svd(whole, full_matrices=False)
    rank = int(np.count_nonzero(s > 1e-12 * max(float(s.max(initial=0.0)), 1e-300)))
    left, right = left[:, :rank], s[:rank, None] * right[:rank]
    m = X.shape[1]
    n = len(X.M11)
    copies = {name: rank, **{k: c for k, c in X.copies.items() if k != name}}
    own = X.copies.get(name, 0)
    places = [k for k, owner in enumerate(_owners(X)) if owner == name]
    others = [k for k in range(n) if k not in places]
    order = [*places, *others]
    M11 = np.block(
        [[np.zeros((rank, rank)), right[:, m:][:, order]], [np.zeros((n, rank)), X.M11[np.ix_(order, order)]]]
    )
    copies[name] = rank + own
    return Uncertain(
        M11,
        np.vstack([right[:, :m], X.M12[order]]),
        np.hstack([left, np.zeros((len(left), n))]),
        np.zeros(X.shape),
        copies,
        {**X.ranges, name: limits},
    ).reduced()


def _owners(X: Uncertain) -> list[str]:
    return [name for name, n in X.copies.items() for _ in range(n)]


def _solved(N: Uncertain, nv: int, nominal: LinearModel) -> Uncertain:
    """[A B; C D] from (2): the first rows solved for dv'."""
    a, b = N.M12[:, :nv], N.M12[:, nv:]
    c, rest = N.M21[:nv], N.M21[nv:]
    M0, R0 = N.M22[:nv, :nv], -N.M22[:nv, nv:]
    h_a, H = N.M22[nv:, :nv], N.M22[nv:, nv:]
    into, out = np.linalg.solve(M0, R0), np.linalg.solve(M0, c)
    above = np.hstack([nominal.A[:-nv], nominal.B[:-nv]])  # e' = N e + dv, whatever the parameters
    return Uncertain(
        N.M11 - a @ out,
        b + a @ into,
        np.vstack([np.zeros((len(above), len(N.M11))), -out, rest - h_a @ out]),
        np.vstack([above, into, H + h_a @ into]),
        N.copies,
        N.ranges,
    ).reduced()


def _in_order(U: Uncertain, ranges: Mapping[str, tuple[float, float]]) -> Uncertain:
    """The parameters in the order in which they were given; those without copies stay known."""
    owners = _owners(U)
    order = [k for name in ranges for k, owner in enumerate(owners) if owner == name]
    return Uncertain(
        U.M11[np.ix_(order, order)],
        U.M12[order],
        U.M21[:, order],
        U.M22,
        {name: owners.count(name) for name in ranges},
        dict(ranges),
    )

"""What a structure does, before it flies: a report in numbers, frequency responses, and what measured ones say of it.

Responses of structures of many unknowns come from their lowest modes and what the others do statically:

    G(jw) = C [ sum_k phi_k phi_k' / (w_k^2 - w^2 + 2 j zeta_k w_k w) + K^-1 - sum_k phi_k phi_k' / w_k^2 ] F        (1)

The last two terms are the residual flexibility of the modes left out (quasi-static correction). Of a free structure K^-1 F
is its deformation while the forces accelerate it as a whole (inertia relief), and C a / (j w)^2 of that acceleration a is
added.

Stiffness, damping and modes are found from measured responses, with standard errors. Parameters p are found by least
squares of the residuals r(p) = predicted - measured (real and imaginary parts); with the Jacobian J there, N residuals and
n parameters, their covariance is

    s^2 (J' J)^-1,     s^2 = r' r / (N - n)                                                                    (2)

where n counts all that is fitted. A frequency response has the modes of (3), whose residues R_k and static remainder are
linear and are solved for inside:

    H(jw) = sum_k R_k / (w_k^2 - w^2 + 2 j zeta_k w_k w) + S                                                   (3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert import arguments
from alembert.control.responses import FrequencyResponse
from alembert.errors import ArgumentError, NumericalError, warn
from alembert.flexible.component_modes import directed, effective_masses, normal_modes, residual
from alembert.flexible.finite_elements import FiniteElements, modes_up_to

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class StructureReport:
    """Rigid motions without strain, mass properties, the lowest modes; effective masses where it is held at a node."""

    size: int
    nodes: int
    strain: Array
    """|K R| over |K| |R| for x, y, z, rx, ry, rz: rounding where the motion is free, more where something holds it"""
    mass: Array
    """by accelerations along x, y and z: the same where all mass moves in all directions"""
    points_mass: float
    """the sum of the masses at the points"""
    center: Array
    inertia: Array
    """about the centre of mass"""
    free_frequencies: Array
    """of the whole, nothing held, rad/s; zeros first"""
    mechanisms: int
    """motions without strain beyond the rigid ones; negative where some of these are held"""
    held_frequencies: Array
    """of the structure held at the attachment"""
    effective_masses: Array
    """share of each held mode in mass (x, y, z) and inertia about the attachment (rx, ry, rz): modes x 6"""
    rounding: float
    """the strain below which nothing holds it"""

    @property
    def rigid(self) -> int:
        """Of the six rigid motions, how many are without strain."""
        return int((self.strain < self.rounding).sum())

    @property
    def problems(self) -> tuple[str, ...]:
        """In sentences; empty for a structure that can fly."""
        found = []
        names = ("x", "y", "z", "rx", "ry", "rz")
        if self.rigid < 6:
            which = ", ".join(
                f"{n} ({s:.1e})" for n, s in zip(names, self.strain, strict=True) if s >= self.rounding
            )
            found.append(
                f"rigid motions strain it: {which}; it is held to ground, or its elements or node places are wrong"
            )
        if self.mechanisms > 0:
            found.append(
                f"{self.mechanisms} motions besides the rigid ones are without strain: mechanisms, or loose parts"
            )
        spread = np.ptp(self.mass)
        if spread > 1e-3 * self.mass.max():
            found.append(
                "the mass is not the same along x, y and z: " + ", ".join(f"{m:.6g}" for m in self.mass)
            )
        if abs(self.points_mass - self.mass.mean()) > 1e-3 * self.mass.max():
            found.append(
                f"the nodes' masses add up to {self.points_mass:.6g} kg, the rigid motions say {self.mass.mean():.6g}"
            )
        if np.linalg.eigvalsh(self.inertia)[0] < -1e-9 * np.abs(self.inertia).max():
            found.append("the inertia tensor is not positive")
        return tuple(found)

    def __str__(self) -> str:
        lines = [
            f"{self.nodes} nodes, {self.size} unknowns",
            f"rigid motions without strain: {self.rigid} of 6 (largest residual {self.strain.max():.1e})",
            f"mass {self.mass.mean():.6g} kg, sum over the nodes {self.points_mass:.6g} kg",
            "centre of mass " + ", ".join(f"{c:.6g}" for c in self.center) + " m",
            "inertia about it "
            + ", ".join(f"{c:.6g}" for c in np.diag(self.inertia))
            + " kg m^2 (xx, yy, zz)",
            "free modes [Hz] " + ", ".join(f"{w / (2 * np.pi):.4g}" for w in self.free_frequencies),
        ]
        if len(self.held_frequencies):
            lines += ["held modes [Hz], effective mass x, y, z and inertia rx, ry, rz [%]"]
            for w, share in zip(self.held_frequencies, self.effective_masses, strict=True):
                lines.append(f"  {w / (2 * np.pi):10.4g}  " + "".join(f"{100 * s:7.2f}" for s in share))
            lines.append(
                "         sum  " + "".join(f"{100 * s:7.2f}" for s in self.effective_masses.sum(axis=0))
            )
        return "\n".join(lines + [f"PROBLEM: {sentence}" for sentence in self.problems])


def structure_report(fe: FiniteElements, attachment: Any, modes: int) -> StructureReport:
    m = np.diag(fe.rigid_mass)[:3]
    c = fe.center
    about = fe.rigid_mass[3:, 3:] - fe.mass * (c @ c * np.eye(3) - np.outer(c, c))
    w, shapes = _modes(fe, 6 + modes, np.arange(fe.size))
    free_energy = np.einsum("ij,ij->j", shapes, fe.K @ shapes)
    size_energy = np.einsum("ij,ij->j", np.abs(shapes), abs(fe.K) @ np.abs(shapes))
    loose = free_energy < 1e-13 * size_energy
    rigid_part = fe.floating
    if rigid_part.size:
        overlap = (
            rigid_part
            @ np.linalg.lstsq(rigid_part.T @ (fe.M @ rigid_part), rigid_part.T @ (fe.M @ shapes), rcond=None)[
                0
            ]
        )
        loose |= np.einsum("ij,ij->j", overlap, fe.M @ overlap) > 1 - 1e-6
    free = int(loose.sum())
    held, shares = np.zeros(0), np.zeros((0, 6))
    if attachment is not None:
        others, _ = fe.held(fe.unknowns(attachment))
        if (fe.M.diagonal()[others] > 0).any():
            held, kept = _modes(fe, modes, others)
            shares = effective_masses(fe, kept, attachment)
    rigid = (
        int(np.linalg.matrix_rank(rigid_part.T @ (fe.M @ rigid_part), hermitian=True))
        if rigid_part.size
        else 0
    )  # with mass
    return StructureReport(
        fe.size, len(fe.positions), fe.strain, m, float(fe.points.mass.sum()), c, about, np.where(loose, 0.0, w),
        free - rigid, held, shares, fe.rounding,
    )  # fmt: skip


def _modes(fe: FiniteElements, count: int, free: Array) -> tuple[Array, Array]:
    """The lowest with the other unknowns held, as far as there are; what moves without strain has zero frequency."""
    squares, V = modes_up_to(fe.K[free][:, free], fe.M[free][:, free], min(count, len(free)), True)
    shapes = np.zeros((fe.size, len(squares)))
    shapes[free] = V
    return np.sqrt(np.maximum(squares, 0.0)), shapes


_FAR = 3.0
"""times a guess, and critical damping, that a fit may come to"""


def structure_response(
    fe: FiniteElements,
    forces: Mapping[str, tuple[Any, str]],
    sensors: Mapping[str, tuple[Any, str]],
    frequency: Any,
    *,
    held: Any,
    modes: int = 20,
    damping_ratio: Any = 0.005,
) -> FrequencyResponse:
    """(1) for forces and displacements by name with a node (or nodes) and directions.

    The nodes `held` are at rest; None lets the structure float, but for what fixed nodes or springs to ground hold.
    """
    floats = held is None and fe.floating.size > 0
    w = np.atleast_1d(arguments.numbers("structure_response", "frequency", frequency))
    if w.ndim != 1 or not ((w >= 0) & np.isfinite(w)).all() or (floats and (w == 0).any()):
        raise ArgumentError(
            f"structure_response: frequency is {frequency!r}, expected finite numbers, "
            + ("above zero for a structure that floats" if floats else "none below zero")
        )
    F, inputs = _rows(fe, "forces", forces)
    C, outputs = _rows(fe, "sensors", sensors)
    found = normal_modes(fe, modes, held=held)
    Phi = found.shapes
    own = np.sqrt(np.einsum("ij,ij->j", Phi, fe.K @ Phi))
    zeta = np.broadcast_to(np.asarray(damping_ratio, dtype=float), own.shape)
    if not (zeta >= 0).all() or ((zeta == 0).any() and np.isin(w, own).any()):
        raise ArgumentError(
            f"structure_response: damping_ratio is {damping_ratio!r}, expected positive numbers"
        )
    c, f = C @ Phi, F @ Phi
    weights = 1 / (own**2 - w[:, None] ** 2 + 2j * zeta * own * w[:, None])
    response = np.einsum("wk,ok,ik->woi", weights, c, f, optimize=True)
    rest, a = residual(fe, F.T, Phi, held)
    response += C @ rest
    if floats:
        response -= C @ a / w[:, None, None] ** 2
    return FrequencyResponse(w, response, outputs, inputs)


def _rows(fe: FiniteElements, what: str, places: Mapping[str, Any]) -> tuple[Array, tuple[str, ...]]:
    found = directed(fe, f"structure_response: {what}", places)
    if not found:
        raise ArgumentError("structure_response: no forces or no sensors")
    all_names = [name for name, _, _ in found]
    names = tuple(f"{name}_{d}" if all_names.count(name) > 1 else name for name, d, _ in found)
    return np.array([row for _, _, row in found]), names


@dataclass(frozen=True, eq=False)
class ResponseFit:
    """Parameters by name with standard errors, as far as noise that is alike at all points makes them."""

    values: dict[str, float]
    errors: dict[str, float]
    noise: float
    """s, the standard deviation of a residual"""
    covariance: Array

    def __str__(self) -> str:
        width = max(map(len, self.values))
        return "\n".join(f"{k:{width}} {v:.6g} +- {self.errors[k]:.2g}" for k, v in self.values.items())


def fit_response(
    predict: Callable[[dict[str, float]], Any], measured: Any, start: Mapping[str, float]
) -> ResponseFit:
    """Parameters of `predict(values)`, such as EI and a damping ratio, from a measured response, real or complex.

    All parameters are positive; `start` is a guess of each, within a factor of some. For responses with sharp peaks fit
    logarithms: predict and measured alike.
    """
    if not callable(predict):
        raise ArgumentError(f"fit_response: predict is {predict!r}, expected a function of a dict of values")
    y = np.asarray(measured)
    if y.dtype.kind not in "fiuc" or not np.isfinite(y).all():
        raise ArgumentError("fit_response: measured is expected as finite numbers, real or complex")
    names = list(arguments.mapping("fit_response", "start", start))
    if not names or y.size < len(names):
        raise ArgumentError(f"fit_response: {y.size} measured numbers for {len(names)} parameters")
    x0 = np.array([arguments.positive("fit_response", f"start {name!r}", start[name]) for name in names])

    def residual(x: Array) -> Array:
        p = np.asarray(predict(dict(zip(names, np.exp(x).tolist(), strict=True))))
        if p.shape != y.shape:
            raise ArgumentError(f"fit_response: predict gives shape {p.shape}, measured is {y.shape}")
        return _real(p - y)

    return _solved("fit_response", residual, np.log(x0), names, np.exp)


def fit_modes(frequency: Any, response: Any, guesses: Any, *, damping: float = 0.01) -> ResponseFit:
    """Frequencies and damping ratios of the modes near `guesses` (rad/s) from a frequency response: omega_1, zeta_1, ...

    `response` is (frequencies,) or (frequencies, outputs, inputs); all of its entries share the poles of (3).
    """
    w = np.atleast_1d(arguments.numbers("fit_modes", "frequency", frequency))
    given = np.asarray(response)
    if given.dtype.kind != "c" or given.shape[:1] != w.shape or not np.isfinite(given).all():
        raise ArgumentError(
            f"fit_modes: response has shape {given.shape} and type {given.dtype}, expected finite complex numbers "
            f"({len(w)}, ...), a row for each frequency; amplitudes alone do not do"
        )
    H = given.astype(complex).reshape(len(w), -1)
    near = np.sort(np.atleast_1d(arguments.numbers("fit_modes", "guesses", guesses)))
    n = len(near)
    if w.ndim != 1 or 2 * len(w) <= 4 * n + 2:
        raise ArgumentError(f"fit_modes: {len(w)} frequencies for {n} modes; there is too little")
    if not n or not (near > 0).all():
        raise ArgumentError(f"fit_modes: guesses are {near}, expected positive frequencies")
    if (np.diff(near) == 0).any():
        raise ArgumentError(f"fit_modes: guesses are {near}, expected one for each mode")

    start = np.log(np.concatenate([near, np.full(n, arguments.positive("fit_modes", "damping", damping))]))

    def residual(x: Array) -> Array:
        own, zeta = np.exp(x[:n]), np.exp(x[n:])
        basis = 1 / (own**2 - w[:, None] ** 2 + 2j * zeta * own * w[:, None])
        A = np.hstack([basis / np.abs(basis).max(axis=0), np.ones((len(w), 1))])
        wide = np.vstack([A.real, A.imag])  # residues are real
        R = np.linalg.lstsq(wide, np.vstack([H.real, H.imag]), rcond=None)[0]
        return _real(A @ R - H)

    names = [f"omega_{k + 1}" for k in range(n)] + [f"zeta_{k + 1}" for k in range(n)]
    inside = (n + 1) * H.shape[1]  # residues and remainders
    low, high = np.full(2 * n, -np.inf), np.full(2 * n, np.log(_FAR))
    low[:n], high[:n] = start[:n] - np.log(_FAR), start[:n] + np.log(_FAR)
    found = _solved("fit_modes", residual, start, names, np.exp, inside, (low, high))
    ends = np.log(list(found.values.values()))
    for k in np.flatnonzero((ends < low + 1e-3) | (ends > high - 1e-3)) % n:
        raise NumericalError(
            f"fit_modes: no mode near {near[k]:.6g} rad/s is seen in this response; leave it out, or guess closer"
        )
    for k in range(n):
        zeta = f"zeta_{k + 1}"
        if 3 * found.errors[zeta] > found.values[zeta]:
            warn(
                f"fit_modes: the mode near {near[k]:.6g} rad/s may be none: its damping is {found.values[zeta]:.2g} +- "
                f"{found.errors[zeta]:.2g}; where two guesses are for one mode leave one out"
            )
    return found


def _real(r: Array) -> Array:
    r = np.ravel(r)
    return np.concatenate([r.real, r.imag]) if np.iscomplexobj(r) else r


def _solved(
    what: str,
    residual: Callable[[Array], Array],
    x0: Array,
    names: list[str],
    back: Callable[[Array], Array],
    inside: int = 0,
    bounds: tuple[Any, Any] = (-np.inf, np.inf),
) -> ResponseFit:
    """`inside`: how many further parameters the residuals are least with."""
    first = residual(x0)
    if not np.isfinite(first).all():
        raise NumericalError(f"{what}: the prediction at the start is not finite")
    scale = np.linalg.norm(first) or 1.0
    found = scipy.optimize.least_squares(
        lambda x: residual(x) / scale, x0, bounds=bounds, x_scale="jac", xtol=1e-12, ftol=1e-14, gtol=1e-12
    )
    if not found.success:
        raise NumericalError(f"{what}: least squares did not converge: {found.message}")
    J, r = found.jac * scale, found.fun * scale
    s2 = float(r @ r) / max(len(r) - len(x0) - inside, 1)
    singular = np.linalg.svd(J, compute_uv=False)
    if singular[-1] <= 1e-7 * singular[0]:
        raise NumericalError(
            f"{what}: the response does not tell the parameters {', '.join(names)} apart; measure at more places or fix some"
        )
    values = back(found.x)
    covariance = s2 * np.linalg.inv(J.T @ J) * np.outer(values, values)  # of logarithms, times the values
    errors = np.sqrt(np.diag(covariance))
    return ResponseFit(
        dict(zip(names, values.tolist(), strict=True)),
        dict(zip(names, errors.tolist(), strict=True)),
        float(np.sqrt(s2)),
        covariance,
    )

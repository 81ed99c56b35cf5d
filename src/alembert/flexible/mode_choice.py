"""Which modes to keep: by mass, by frequency, by what actuators do to them and sensors see of them; and whether they are
enough, over the configurations of a mechanism.

A mode of unit mass with the participations b = phi' F of the actuators and c = C phi of the sensors (positions) has, lightly
damped, the Hankel singular value and the H2 norm (Gawronski, Dynamics and Control of Structures, 1998)

    gamma = |b| |c| / (4 zeta omega^2),     h2 = |b| |c| / (2 sqrt(zeta omega) omega)                          (1)

and its answer to a constant force is |b| |c| / omega^2. With L = [int phi, int x x phi] the identities of Hughes say that
for all modes of a body that is held, L' L is its mass matrix as a rigid body; for some modes, what they carry of it.

For completeness, a model with many modes is the reference. Its small motion at rest about a configuration q,

    M(q) e'' + K e = 0,                                                                                      (2)

restricted to the modes that are kept, has frequencies that are too high; by how much depends on q. Where the error is
largest, each mode that was left out is tried: the one that lowers the error most would help most.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.arguments import check_known, choice, numbers, real, whole
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import evaluate
from alembert.flexible.component_modes import (
    ComponentModes,
    directed,
    effective_masses,
    frequencies,
    orthonormal,
)
from alembert.flexible.finite_elements import FiniteElements
from alembert.model import Model
from alembert.model.modal import ModalBody, Stiffening
from alembert.spatial.arrays import skew

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ModeRanking:
    """Measures of each mode, by ascending frequency."""

    modes: ComponentModes
    frequencies: Array
    masses: Array
    """shares in mass and inertia, modes x 6"""
    hankel: Array
    """(1); zero without actuators and sensors"""
    h2: Array
    static: Array

    def best(self, count: int) -> ComponentModes:
        """The `count` modes with the largest Hankel singular values."""
        if not 0 < count <= self.modes.count:
            raise ArgumentError(f"best: {count!r} of {self.modes.count} modes")
        return self.modes.only(np.sort(np.argsort(-self.hankel, kind="stable")[:count]).tolist())

    def up_to(self, frequency: float) -> ComponentModes:
        """Those up to a frequency, rad/s."""
        keep = np.flatnonzero(self.frequencies <= frequency)
        if not len(keep):
            raise ArgumentError(
                f"up_to: no mode up to {frequency:g} rad/s; the first is at {self.frequencies[0]:.6g} rad/s"
            )
        return self.modes.only(keep.tolist())

    def heavy(self, share: float) -> ComponentModes:
        """As few as carry the given share of what all of these carry, of mass and inertia each."""
        real("heavy", "share", share, "a number above 0, at most 1", over=0.0, most=1.0)
        keep: set[int] = set()
        for column in self.masses.T:
            total = column.sum()
            order = np.argsort(-column, kind="stable")
            need = int(np.searchsorted(np.cumsum(column[order]), share * total * (1 - 1e-12))) + 1
            if total > 1e-9:
                keep |= set(order[:need].tolist())
        return self.modes.only(sorted(keep))

    def __str__(self) -> str:
        lines = ["mode      Hz   mass x, y, z, inertia rx, ry, rz [%]           Hankel        H2"]
        for k, name in enumerate(self.modes.names):
            shares = "".join(f"{100 * s:7.2f}" for s in self.masses[k])
            lines.append(
                f"{name:8} {self.frequencies[k] / 2 / np.pi:8.4g} {shares} {self.hankel[k]:9.3g} {self.h2[k]:9.3g}"
            )
        return "\n".join(lines)


def rank_modes(
    fe: FiniteElements,
    modes: ComponentModes,
    *,
    attachment: Any,
    actuators: Mapping[str, tuple[Any, str]] | None = None,
    sensors: Mapping[str, tuple[Any, str]] | None = None,
    damping_ratio: float = 0.005,
) -> ModeRanking:
    """Measures of the modes of a structure for actuators and sensors.

    These are given by name with a node (or nodes) and directions, ("tip", "y z"). Without sensors they are where the
    actuators are.
    """
    found = orthonormal(fe, modes)
    w = frequencies(fe, found)

    def participation(what: str, places: Any) -> Array:
        rows = [row for _, _, row in directed(fe, f"rank_modes: {what}", places)]
        return np.reshape(rows, (len(rows), fe.size)) @ found.shapes

    b = participation("actuators", actuators or {})
    c = participation("sensors", sensors) if sensors is not None else b
    both = np.linalg.norm(b, axis=0) * np.linalg.norm(c, axis=0)
    real("rank_modes", "damping_ratio", damping_ratio, "a positive number", over=0.0)
    z = float(damping_ratio)
    return ModeRanking(
        found,
        w,
        effective_masses(fe, found, attachment),
        both / (4 * z * w**2),
        both / (2 * np.sqrt(z * w) * w),
        both / w**2,
    )


def carried_mass(body: ModalBody) -> Array:
    """What the modes of a body carry of its mass matrix as a rigid body about its frame: six shares, 0 to 1, ascending.

    Turning and moving along the principal directions of L' Me^-1 L against the whole: shares near 1 say that the modes move
    all that a rigid motion of the frame moves. The least of them is that of the motion which the modes follow least.
    """
    Ek, S = body.array("shape_products"), body.array("shape_moments")
    Cr = np.stack([Ek[:, 1, 2] - Ek[:, 2, 1], Ek[:, 2, 0] - Ek[:, 0, 2], Ek[:, 0, 1] - Ek[:, 1, 0]], axis=1)
    L = np.hstack([Cr, S])
    E, s, m = body.array("second_moment"), body.array("first_moment"), float(body.array("mass"))
    rigid = np.block([[np.trace(E) * np.eye(3) - E, skew(s)], [skew(s).T, m * np.eye(3)]])
    # directions without mass, such as turning a rod about itself, have no share
    values, V = np.linalg.eigh(rigid)
    keep = values > 1e-10 * values.max()
    V = V[:, keep] / np.sqrt(values[keep])
    part = V.T @ L.T @ scipy.linalg.solve(body.modal_mass(), L, assume_a="pos") @ V
    return np.clip(np.linalg.eigvalsh((part + part.T) / 2), 0.0, None)


@dataclass(frozen=True, eq=False)
class Completeness:
    """Frequencies of the system (configurations x modes, rad/s) with all modes, and with those that are kept."""

    configurations: Array
    full: Array
    kept: Array
    helps: tuple[tuple[str, float], ...]
    """modes that were left out (body.mode), with the worst error there if one were added; the best first"""

    @property
    def errors(self) -> Array:
        """Relative errors of the frequencies."""
        return self.kept / self.full - 1

    @property
    def worst(self) -> tuple[float, int, int]:
        """The largest error, and the numbers of its configuration and mode, from 0."""
        at, mode = np.unravel_index(int(self.errors.argmax()), self.errors.shape)
        return float(self.errors[at, mode]), int(at), int(mode)

    def __str__(self) -> str:
        error, at, mode = self.worst
        place = ", ".join(f"{x:.4g}" for x in self.configurations[at])
        lines = [
            f"{len(self.full)} configurations, {self.full.shape[1]} system modes",
            f"worst error {100 * error:.3g} % in mode {mode + 1} ({self.full[at, mode]:.5g} rad/s)",
            f"at configuration {at}: q = {place}",
        ]
        if self.helps:
            lines.append(f"most would help {self.helps[0][0]}: {100 * self.helps[0][1]:.3g} % there")
        return "\n".join(lines)


def completeness(
    model: Model,
    keep: Mapping[str, int | Sequence[str]],
    configurations: Any,
    *,
    modes: int = 4,
    joints: str = "locked",
) -> Completeness:
    """Errors of the lowest `modes` system modes when each body keeps some of its modes.

    `model` has many modes; `keep` says for each flexible body how many of its first modes, or which, are kept (bodies left
    out keep all). `configurations` (many, nq) are those of the joints; modal coordinates in them are taken as zero.
    Joints are "locked", or "free" with their springs.
    """
    choice("completeness", "joints", joints, ("locked", "free"))
    if model.loops or model.couplings:
        raise UnsupportedError("completeness: models with loops or couplings are not scanned; open the loops")
    owners = model.space.of_bodies
    if not owners:
        raise ArgumentError("completeness: the model has no flexible bodies")
    whole("completeness", "modes", modes, "a positive integer")
    q = np.atleast_2d(numbers("completeness", "configurations", configurations)).copy()
    if not isinstance(keep, Mapping):
        raise ArgumentError(
            f"completeness: keep is {keep!r}, expected bodies with how many modes, or which, as {{'boom': 2}}"
        )
    if q.ndim != 2 or q.shape[1] != model.nq or not len(q) or not np.isfinite(q).all():
        raise ArgumentError(
            f"completeness: configurations have shape {q.shape}, expected finite numbers (many, {model.nq})"
        )
    kept = np.ones(model.nv, dtype=bool)
    names: dict[int, str] = {}
    for name, owner in owners.items():
        q[:, owner.q] = 0.0
        body = next(b for b in model.bodies if b.name == name).flexible
        assert body is not None
        places = range(owner.v.start, owner.v.stop)
        names |= {k: f"{name}.{mode}" for k, mode in zip(places, body.modes, strict=True)}
        if name in keep:
            kept[owner.v] = _chosen(name, body.modes, keep[name])
    for name in keep:
        check_known("completeness: no flexible body", name, owners)
    K = _stiffness(model)
    elastic = np.zeros(model.nv, dtype=bool)
    elastic[list(names)] = True
    free = elastic if joints == "locked" else np.ones(model.nv, dtype=bool)
    M = model.mass_matrix(q)
    full, part = (
        _frequencies(M, K, np.flatnonzero(which), modes if joints == "locked" else None)
        for which in (free, free & kept)
    )
    if joints == "free":  # rigid motions are the same with any modes
        rigid = int((full < 1e-6 * full.max()).sum(axis=1).max())
        full, part = full[:, rigid:], part[:, rigid:]
    count = min(modes, part.shape[1])
    if not count:
        raise ArgumentError("completeness: no modes are kept")
    found = Completeness(q, full[:, :count], part[:, :count], ())
    _, at, _ = found.worst
    tried = []
    for k in np.flatnonzero(elastic & ~kept):
        with_it = free & kept
        with_it[k] = True
        w = _frequencies(M[[at]], K, np.flatnonzero(with_it), None)[0]
        w = w[len(w) - (part.shape[1] + 1) :] if joints == "free" else w
        tried.append((names[int(k)], float((w[:count] / found.full[at] - 1).max())))
    tried.sort(key=lambda pair: pair[1])
    return Completeness(q, found.full, found.kept, tuple(tried))


def _chosen(name: str, modes: Sequence[str], keep: Any) -> Array:
    if isinstance(keep, int) and not isinstance(keep, bool):
        if not 0 <= keep <= len(modes):
            raise ArgumentError(f"completeness: keep {keep} of the {len(modes)} modes of {name!r}")
        return np.arange(len(modes)) < keep
    if isinstance(keep, bool | float | str) or keep is None:
        raise ArgumentError(
            f"completeness: keep {keep!r} of {name!r}, expected a number of modes or their names"
        )
    for mode in keep:
        check_known(f"completeness: {name!r} has no mode", mode, modes)
    return np.isin(np.array(modes), list(keep))


def _stiffness(model: Model) -> Array:
    """Of modes and springs of joints, without weight."""
    K = np.zeros((model.nv, model.nv))
    values = model.parameter_values
    for body in model.bodies:
        if body.flexible is not None:
            at = model.space.of_bodies[body.name].v
            K[at, at] = body.flexible.array("stiffness", values)
    for joint in model.joints:
        if joint.spring is not None:
            at = model.v_slice(joint.name)
            springs = [float(evaluate(k, values)) for k in joint.spring.stiffness]
            K[at, at] += np.diag(np.broadcast_to(springs, at.stop - at.start))
    return K


def _frequencies(M: Array, K: Array, at: Array, count: int | None) -> Array:
    """Of (2), ascending, for each configuration."""
    k = K[np.ix_(at, at)]
    upper = None if count is None or count >= len(at) else (0, count - 1)
    found = [
        scipy.linalg.eigh(k, m[np.ix_(at, at)], eigvals_only=True, subset_by_index=upper, check_finite=False)
        for m in M
    ]
    return np.sqrt(np.maximum(np.array(found).reshape(len(M), -1), 0.0))


def with_stiffening(model: Model, stiffening: Stiffening, bodies: Sequence[str] | None = None) -> Model:
    """The same model with its flexible `bodies` (all of them) `consistent`, `inconsistent` or `ruthless`.

    Runs of the levels side by side show whether motion-induced stiffness matters.
    """
    known = tuple(model.space.of_bodies)
    if not known:
        raise ArgumentError(f"with_stiffening: the model {model.name!r} has no flexible bodies")
    for name in bodies or ():
        check_known("with_stiffening: no flexible body", name, known)
    found = model
    for name in known if bodies is None else bodies:
        flexible = model.body(name).flexible
        assert flexible is not None
        found = found.replace_body(name, flexible=dataclasses.replace(flexible, stiffening=stiffening))
    return found

"""Drives for a prescribed motion of points of a flexible mechanism, also where the points move the wrong way first.

Joints a are driven, all other coordinates (modes, free joints) are not. Over times from before to after the motion,

    ID_p(q, q', q'') = 0,    y(q) = y_wanted(t)                                                              (1)

with q at rest at both ends is a boundary value problem; it has a bounded solution although (1) as an initial value
problem has parts that grow (zeros in the right half plane), because those are given from the end. Derivatives in time are
differences of order four, Newton's method takes the exact derivatives of inverse dynamics, and the drives are ID_a.

Of linear systems, stable inversion: the tip of a flexible arm moves the wrong way first: its transfer function from the
joint has zeros in the right half plane, and the causal inverse grows without bound. Over all times from before to after the
motion there is a bounded input,

    u(jw) = G(jw)^-1 y(jw),                                                                                  (2)

which begins before the motion does (Bayo 1987). Rest-to-rest motions of systems with rigid modes are inverted by their
accelerations, u = (-w^2 G)^-1 y'', which come back to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert import arguments
from alembert.arguments import check_known
from alembert.control import SecondOrder, StateSpace
from alembert.control.arguments import read_system
from alembert.control.responses import ResponseEvaluator
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.model import Model

Array = np.ndarray
_STEPS = 40
_TIGHT = 1e-10
"""of the largest coordinate: where Newton's steps end"""
_STILL = 1e-12
"""of the largest output: motions smaller than that are rounding, and nothing moves"""
_DIED = 0.05
"""of the largest drive: what may be left of it at the ends beyond what holds the mechanism there"""


@dataclass(frozen=True, eq=False)
class MotionInversion:
    """Coordinates, speeds, accelerations and efforts over `t`, which begins before and ends after the motion."""

    t: Array
    q: Array
    v: Array
    a: Array
    efforts: Array
    """of all coordinates; zero where nothing drives"""
    lead: float
    """how long before the motion the drives begin to act (one percent of their largest change), s"""


def invert_motion(
    model: Model,
    outputs: Sequence[str],
    t: Any,
    wanted: Any,
    *,
    drives: Sequence[str] | None = None,
    q: Any = None,
    before: float | None = None,
    after: float | None = None,
) -> MotionInversion:
    """The motion of a mechanism from rest to rest whose `outputs` are as `wanted` (times, outputs) at equally spaced times.

    An output is a place of a frame in world axes, "tip.x", "tip.y" or "tip.z". `drives` are the joints that are driven, by
    default all, with as many degrees of freedom as there are outputs. The outputs stay where they are before and after
    `t`, where drives act early and modes ring out: by default as long as the motion. `q` is a guess of the coordinates at
    the start. Undamped mechanisms ring for ever: with `after` short they end at rest nevertheless, by their drives. Outputs
    that are constant are held at rest.
    """
    what = "invert_motion"
    if model.is_constrained:
        raise UnsupportedError(
            f"{what}: models with loops, couplings or equations are not taken; open the loops"
        )
    if not all(owner.type.is_vector_space for owner in model.space):
        raise UnsupportedError(f"{what}: joints whose coordinates do not add (free, spherical) are not taken")
    rows = [_place(what, model, name) for name in outputs]
    driven = _driven(what, model, drives)
    times = arguments.numbers(what, "t", t)
    if times.ndim != 1 or len(times) < 5 or not np.allclose(np.diff(times), times[1] - times[0], rtol=1e-6):
        raise ArgumentError(f"{what}: t has shape {times.shape}, expected five and more equally spaced times")
    h = float(times[1] - times[0])
    y = arguments.numbers(what, "wanted", wanted)
    y = y[:, None] if y.ndim == 1 else y
    if not np.isfinite(y).all():
        raise ArgumentError(f"{what}: wanted has entries that are not finite")
    if y.shape != (len(times), len(rows)) or driven.sum() != len(rows) or not h > 0:
        raise ArgumentError(
            f"{what}: wanted has shape {np.shape(wanted)}, with {len(rows)} outputs and {driven.sum()} driven "
            f"degrees of freedom; expected ({len(times)}, {len(rows)}) and as many drives as outputs"
        )
    lead, tail = _steps(what, times, before=before, after=after)
    whole = np.concatenate([np.repeat(y[:1], lead, axis=0), y, np.repeat(y[-1:], tail, axis=0)])
    still = bool(np.ptp(y, axis=0).max() <= _STILL * np.abs(y).max())
    if still:
        whole = np.repeat(y[:1], len(whole), axis=0)
    problem = _Problem(model, rows, driven, whole, h)
    q = problem.guess(model.neutral() if q is None else np.asarray(q, dtype=float))
    q = q if still else problem.solved(q)
    v, a = (0 * q, 0 * q) if still else problem.slopes(q)
    efforts = np.where(driven, model.inverse_dynamics(q, v, a), 0.0)
    grid = times[0] + h * (np.arange(len(q)) - lead)
    if still:
        return MotionInversion(grid, q, v, a, efforts, 0.0)
    held = np.linspace(0, 1, len(q))[:, None] * (efforts[-1] - efforts[0]) + efforts[0]
    change = np.abs(efforts - held).max(axis=1)
    ends = max(change[:3].max(), change[-3:].max())
    if ends > _DIED * change.max():
        raise NumericalError(
            f"{what}: the drives have not died out at the ends ({ends / change.max():.2g} of their largest); give more time "
            f"before ({lead * h:g} s) or after ({tail * h:g} s)"
        )
    acts = int(np.argmax(change > 0.01 * change.max()))
    return MotionInversion(grid, q, v, a, efforts, float(max(0.0, times[0] - grid[acts])))


def _steps(what: str, times: Array, **spans: float | None) -> list[int]:
    """How many steps the spans of time are; without one, as many as the motion has."""
    for name, given in spans.items():
        if given is not None and not (isinstance(given, int | float) and 0 <= given < np.inf):
            raise ArgumentError(f"{what}: {name} is {given!r}, expected seconds of zero or more")
    h, whole = times[1] - times[0], times[-1] - times[0]
    return [int(np.ceil((whole if given is None else given) / h)) for given in spans.values()]


def _place(what: str, model: Model, name: str) -> tuple[str, int]:
    frame, _, axis = name.rpartition(".")
    if axis not in ("x", "y", "z"):
        raise ArgumentError(f"{what}: output {name!r}, expected FRAME.x, FRAME.y or FRAME.z")
    model.frame(frame)
    return frame, "xyz".index(axis)


def _driven(what: str, model: Model, drives: Sequence[str] | None) -> Array:
    found = np.zeros(model.nv, dtype=bool)
    for name in model.joint_indices if drives is None else drives:
        check_known(f"{what}: no joint", name, model.joint_indices)
        found[model.v_slice(name)] = True
    return found


class _Problem:
    """(1) on a grid."""

    def __init__(self, model: Model, rows: list[tuple[str, int]], driven: Array, y: Array, h: float) -> None:
        self.model, self.rows, self.driven, self.y, self.h = model, rows, driven, y, h
        self.first, self.second = _differences(len(y), h)

    def slopes(self, q: Array) -> tuple[Array, Array]:
        return self.first @ q, self.second @ q

    def places(self, q: Array) -> tuple[Array, Array]:
        """Outputs (..., outputs) and their Jacobians (..., outputs, nv)."""
        y, J = [], []
        for frame, axis in self.rows:
            y.append(self.model.frame_pose(q, frame).translation[..., axis])
            J.append(self.model.frame_jacobian(q, frame, reference="local_world_aligned")[..., 3 + axis, :])
        return np.stack(y, axis=-1), np.stack(J, axis=-2)

    def residual(self, q: Array, v: Array, a: Array) -> Array:
        """(times, nv): undriven rows of inverse dynamics, then the outputs."""
        tau = self.model.inverse_dynamics(q, v, a)[..., ~self.driven]
        return np.concatenate([tau, self.places(q)[0] - self.y], axis=-1)

    def guess(self, q: Array) -> Array:
        """At rest at each instant, one after the other."""
        found = np.empty((len(self.y), self.model.nv))
        zero = np.zeros(self.model.nv)
        for k, y in enumerate(self.y):
            if k and np.array_equal(y, self.y[k - 1]):
                found[k] = q
                continue
            for _ in range(_STEPS):
                tau = self.model.inverse_dynamics(q, zero, zero)[~self.driven]
                dq = self.model.inverse_dynamics_derivatives(q, zero, zero).dq[~self.driven]
                place, J = self.places(q)
                step = np.linalg.lstsq(np.vstack([dq, J]), -np.concatenate([tau, place - y]), rcond=None)[0]
                q = q + step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
                if np.abs(step).max() < 1e-11 and np.abs(place - y).max() < 1e-9 * max(1.0, np.abs(y).max()):
                    break
            else:
                raise NumericalError(
                    f"invert_motion: no configuration at rest has the outputs {', '.join(f'{x:.4g}' for x in y)} (instant "
                    f"{k} of {len(self.y)}); they may be out of reach, or the guess q of the start too far away"
                )
            found[k] = q
        return found

    def solved(self, q: Array) -> Array:
        """Newton's method; both ends stay at rest."""
        N, n = q.shape
        inner = slice(1, N - 1)
        passive = np.flatnonzero(~self.driven)
        size = np.inf
        for _ in range(_STEPS):
            v, a = self.slopes(q)
            r = self.residual(q, v, a)[inner].ravel()
            d = self.model.inverse_dynamics_derivatives(q[inner], v[inner], a[inner])
            _, J = self.places(q[inner])
            A = scipy.sparse.csr_array((r.size, N * n))
            for matrices, slope in ((d.dq, None), (d.dv, self.first), (d.da, self.second)):
                rows = np.concatenate([matrices[:, passive], J if slope is None else 0 * J], axis=1)
                block = scipy.sparse.block_diag(list(rows), format="csr")
                at = scipy.sparse.eye_array(N, format="csr")[inner] if slope is None else slope[inner]
                A = A + block @ scipy.sparse.kron(at, scipy.sparse.eye_array(n), format="csr")
            step = np.zeros(N * n)
            step[n:-n] = scipy.sparse.linalg.spsolve(A[:, n:-n].tocsc(), -r)
            size = float(np.abs(step).max())
            if not np.isfinite(size):
                break
            q = q + step.reshape(N, n)
            if size < _TIGHT * max(1.0, float(np.abs(q).max())):
                return q
        raise NumericalError(
            f"invert_motion: Newton's method did not end; its last step was {size:.3g}. Give a slower motion, a finer "
            "grid, or drives that can hold the outputs"
        )


def _differences(count: int, h: float) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """First and second derivatives on a grid, of order four; the motion is at rest beyond the ends."""
    found = []
    for weights, scale in (((1, -8, 0, 8, -1), 12 * h), ((-1, 16, -30, 16, -1), 12 * h**2)):
        A = scipy.sparse.lil_array((count, count))
        for k in range(count):
            for shift, w in zip(range(-2, 3), weights, strict=True):
                A[k, min(max(k + shift, 0), count - 1)] += w / scale
        found.append(A.tocsr())
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class StableInversion:
    """Inputs `u` (times, inputs) over `t`, which begins before and ends after the motion."""

    t: Array
    u: Array
    lead: float
    """how long before the motion the input begins to act (one percent of its largest), s"""


def stable_inversion(
    system: StateSpace | SecondOrder,
    t: Any,
    acceleration: Any,
    *,
    before: float | None = None,
    after: float | None = None,
) -> StableInversion:
    """The input that gives the outputs (as many as inputs) the accelerations over equally spaced times, from rest to rest.

    `acceleration` (times,) or (times, outputs) is zero outside of `t`. Time is added `before` and `after` for what
    comes early and what rings out: by default as long as the motion.
    """
    what = "stable_inversion"
    G = read_system(what, "system", system)
    if G.is_discrete:
        raise ArgumentError(
            f"{what}: the system is sampled every {G.dt:g} s, expected one in continuous time; al.control.d2c makes one"
        )
    times = arguments.numbers(what, "t", t)
    steps = np.diff(times)
    if times.ndim != 1 or len(times) < 4 or not np.allclose(steps, steps[0], rtol=1e-6) or not steps[0] > 0:
        raise ArgumentError(f"{what}: t has shape {times.shape}, expected equally spaced times")
    a = arguments.numbers(what, "acceleration", acceleration)
    a = a[:, None] if a.ndim == 1 else a
    m = G.B.shape[1]
    if G.C.shape[0] != m:
        raise ArgumentError(f"{what}: {G.C.shape[0]} outputs and {m} inputs, expected as many")
    if a.shape != (len(times), m) or not np.isfinite(a).all():
        raise ArgumentError(
            f"{what}: acceleration has shape {np.shape(acceleration)}, expected finite numbers ({len(times)}, {m})"
        )
    h = float(steps[0])
    lead, tail = _steps(what, times, before=before, after=after)
    n = lead + len(times) + tail
    wide = np.zeros((n, m))
    wide[lead : lead + len(times)] = a
    w = 2 * np.pi * np.fft.rfftfreq(n, h)
    # at rest the response of rigid modes is that just above zero
    s = 1j * np.where(w == 0, 1e-3 * w[1], w)
    response = ResponseEvaluator(G.A, G.B, G.C, G.D)(s) * (s**2)[:, None, None]
    size = np.linalg.svd(response, compute_uv=False)
    if not np.isfinite(response).all() or (size[:, -1] <= 1e-12 * size.max()).any():
        k = int(np.argmin(size[:, -1])) if np.isfinite(response).all() else 0
        raise NumericalError(
            f"{what}: at {w[k]:g} rad/s the system gives no output: a zero on the imaginary axis (or an undamped pole) "
            "leaves no bounded input; choose another output, or add damping"
        )
    u = np.fft.irfft(np.linalg.solve(response, np.fft.rfft(wide, axis=0)[:, :, None])[:, :, 0], n, axis=0)
    ends = max(np.abs(u[:2]).max(), np.abs(u[-2:]).max())
    if ends > 0.05 * np.abs(u).max():
        raise NumericalError(
            f"{what}: the input has not died out at the ends ({ends / np.abs(u).max():.2g} of its largest); give more time "
            f"before ({lead * h:g} s) or after ({tail * h:g} s)"
        )
    grid = times[0] + h * (np.arange(n) - lead)
    acts = np.abs(u).max(axis=1) > 0.01 * np.abs(u).max()
    return StableInversion(grid, u, float(max(0.0, times[0] - grid[int(np.argmax(acts))])))

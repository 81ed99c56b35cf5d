"""One page about a controller: what holds for all values of uncertain parameters, what breaks first, and by which of them.

The same named parameters go through four questions:

1. margins of the nominal loop, one input at a time and all at once (disk margins);
2. mu over all frequencies: up to which size of the ranges stability is proven, and the parameters that first break it;
3. the slowest decay within the ranges, by search over the linear models; and how far each parameter may go alone;
4. the motion of the nonlinear model from a displaced start, for corners, random values and the worst cases of 2 and 3.

States that the controller does not see, and that act on nothing it sees, are left out of 1 to 3 and of what has to settle in
4: the place of a free-flying vehicle, the turns of its wheels. They may drift; where they are unstable by themselves, the
controller does not hold.

A sampled controller is a system in continuous time with a delay of half a period in 1 and 2, and itself in 3 and 4.
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.control import (
    DiskMargin,
    MuPeak,
    StateSpace,
    append,
    c2d,
    d2c,
    disk_margins,
    feedback,
    multiloop_disk_margin,
    pade,
)
from alembert.errors import AlembertWarning, ArgumentError, NumericalError
from alembert.linear import LinearModel, Regulator, UncertainLinearModel, linearize
from alembert.linear.quantities import find
from alembert.model import Model
from alembert.simulate import DynamicController, Ensemble, ensemble
from alembert.study.certificate import FAR, AloneRange, LoopCertificate

if TYPE_CHECKING:
    pass

Array = np.ndarray
SAMPLES = 200
SETTLED = 0.3
"""of the motion at first: what may be left of it at the end"""
SLOWED = 0.95
"""of the largest change in a fifth of a motion: what the last fifth may change; an even drift has as much there"""
DRIFT = 1e-5
"""of the entries of A: a real part below it is that of a double pole at zero, which rounding by 1e-10 moves so far"""


def certify(
    model: Model,
    controller: Any,
    uncertain: Mapping[str, Any],
    *,
    q: Any = None,
    v: Any = None,
    tau: Any = None,
    disturbance: Any = 0.01,
    holding: str = "means",
    duration: float | None = None,
    step: float | None = None,
    members: int = 60,
    seed: int = 0,
    tolerance: float = 0.05,
    progress: bool | None = None,
) -> LoopCertificate:
    """Whether a controller holds a model for all values of named parameters; see the module's documentation.

    Args:
        controller: a `StateSpace` u = K y or `DynamicController` whose signals are named after those of the model, or a
            `Regulator`.
        uncertain: parameters of the model and their ranges, `{"payload": (1, 5)}`.
        q: the point; by default that of the controller's linear model.
        v: its speeds.
        tau: its efforts.
        disturbance: the displacement from which the nonlinear runs start, (nv,) or one number for all.
        holding: whose efforts hold the point in these runs: those of the "means", so that the controller must also make up
            for a weight that it does not know, or those of "each" member, as in the linear models.
        duration: of these runs [s]; by default from the poles of the loop.
        step: of their integration [s].
        members: how many runs, corners and worst cases among them.
        tolerance: of the peak of mu.
    """
    if holding not in ("means", "each"):
        raise ArgumentError(f"certify: holding is {holding!r}, expected 'means' or 'each'")
    law, about = _controller(model, controller)
    point = [
        x if x is not None else None if about is None else getattr(about, name)
        for name, x in (("q", q), ("v", v), ("tau", tau))
    ]
    if point[0] is None:
        raise ArgumentError("certify: the point is not known: give q=, or a controller with about=linear")
    K = law.law
    measured = [k for k, name in enumerate(K.input_names) if find(model, name, "certify") is not None]
    K = K[:, measured]
    inputs = [name if _acts(model, name) else f"wrench:{name}" for name in K.output_names]
    whole = linearize(model, *point, inputs=inputs, outputs=list(K.input_names), uncertain=uncertain)
    family = whole.seen()
    nominal = whole.nominal
    if law.about is None:
        own: dict[str, Any] = {"inputs": (), "outputs": (), "states": (), "dt": 0.0}
        law = dataclasses.replace(law, about=nominal, **own)
    plain = StateSpace(K.A, K.B, K.C, K.D, K.dt)
    continuous = _continuous(plain)

    def decay(values: Mapping[str, float]) -> float:
        """The largest real part of a pole [1/s]."""
        G = StateSpace(*family.at(**values).matrices)
        if not plain.is_discrete:
            return float(feedback(G, plain, sign=1).poles().real.max(initial=-np.inf))
        z = np.abs(feedback(c2d(G, plain.dt), plain, sign=1).poles()).max(initial=0.0)
        return float(np.log(max(z, 1e-300)) / plain.dt)

    means = {name: (low + high) / 2 for name, (low, high) in family.ranges.items()}
    nominal_decay = decay(means)
    margins: tuple[DiskMargin, ...] = ()
    multiloop = peak = None
    if nominal_decay < 0:
        loop = -(continuous * StateSpace(*family.nominal.to_statespace().matrices))
        try:
            margins = disk_margins(loop)
            multiloop = multiloop_disk_margin(loop, tolerance=tolerance) if len(margins) > 1 else margins[0]
            peak = family.mu(continuous, tolerance=tolerance)
        except NumericalError:  # stable only as it is sampled
            peak = None
    worst = _slowest(decay, family.ranges, seed)
    alone = tuple(_alone(decay, name, family.ranges, means) for name in family.ranges)
    if peak is not None and not _bears_out(decay, peak, family.ranges, alone, seed):
        peak = None  # an unstable model within what was to be proven: nothing is claimed
    cases = _cases(family, worst, peak, members, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)  # motions that run away are told on the page
        runs = _fly(
            model,
            law,
            nominal,
            family,
            cases,
            holding,
            disturbance,
            duration,
            step,
            plain,
            nominal_decay,
            seed,
            progress,
        )
    there = np.isfinite(runs.q).all(axis=-1)
    moved = np.full(runs.v.shape, np.nan)
    moved[there] = model.difference(nominal.q, runs.q[there])
    moved = moved[..., list(family.nominal.displacements)]
    deviations = np.abs(moved).max(axis=-1)
    held = tuple(_settles(moved[k]) for k in range(len(cases)))
    left_out = tuple(x for x in nominal.state_names if x not in family.nominal.state_names)
    grown = max(_growth(whole, left_out, values) for kind, values in cases if kind in ("means", "corner"))
    return LoopCertificate(
        family,
        left_out,
        grown,
        law,
        continuous,
        margins,
        multiloop,
        peak,
        worst,
        decay(worst),
        nominal_decay,
        alone,
        runs,
        tuple(f"{kind}: {LoopCertificate._at(values)}" for kind, values in cases),
        tuple(values for _, values in cases),
        deviations,
        held,
    )


# --- pieces ---------------------------------------------------------------------------------------------------------


def _controller(model: Model, given: Any) -> tuple[DynamicController, LinearModel | None]:
    if isinstance(given, Regulator):
        at = given.linear
        gains = StateSpace(
            np.zeros((0, 0)),
            np.zeros((0, len(at.state_names))),
            np.zeros((len(at.input_names), 0)),
            -given.K,
            input_names=at.state_names,
            output_names=at.input_names,
        )
        return DynamicController(gains, about=at), at
    law = DynamicController(given) if isinstance(given, StateSpace) else given
    if not isinstance(law, DynamicController) or not isinstance(law.law, StateSpace):
        raise ArgumentError(
            f"certify: controller is {given!r}, expected a StateSpace, a DynamicController of one, or a Regulator; of a "
            "schedule certify each of its systems at its own point"
        )
    return law, law.about


def _acts(model: Model, name: str) -> bool:
    return (
        name in {a.name for a in model.actuators} or name in model.joint_indices or name in model.speed_names
    )


def _continuous(K: StateSpace) -> StateSpace:
    if not K.is_discrete:
        return K
    delay = pade(K.dt / 2, 2)
    return append(*[delay] * K.shape[0]) * d2c(K, method="tustin")


def _slowest(decay: Any, ranges: Mapping[str, tuple[float, float]], seed: int) -> dict[str, float]:
    """The values of slowest decay: corners, random ones, and a search from the best of them."""
    names = list(ranges)
    low, high = (np.array([ranges[name][k] for name in names]) for k in (0, 1))
    rng = np.random.default_rng(seed)
    shares = [*itertools.islice(itertools.product((0.0, 1.0), repeat=len(names)), 64)]
    tried = np.vstack([shares, rng.uniform(size=(SAMPLES, len(names)))])
    cost = lambda s: -decay(dict(zip(names, (low + np.clip(s, 0, 1) * (high - low)).tolist(), strict=True)))  # noqa: E731
    values = [cost(s) for s in tried]
    best = tried[int(np.argmin(values))]
    found = scipy.optimize.minimize(
        cost, best, method="Nelder-Mead", options={"maxfev": 60 * len(names), "xatol": 1e-4}
    )
    s = np.clip(found.x, 0, 1) if found.fun < min(values) else best
    return dict(zip(names, (low + s * (high - low)).tolist(), strict=True))


def _bears_out(
    decay: Any,
    peak: MuPeak,
    ranges: Mapping[str, tuple[float, float]],
    alone: Sequence[AloneRange],
    seed: int,
) -> bool:
    """Whether a search finds no unstable model within the ranges that mu gives."""
    size = min(1 / peak.upper, FAR) * (1 - 1e-3) if peak.upper > 0 else FAR
    if any(x.reach < size for x in alone):
        return False
    scaled = {}
    for name, (low, high) in ranges.items():
        mean, half = (low + high) / 2, (high - low) / 2 * size
        scaled[name] = (max(mean - half, 1e-3 * low) if low > 0 else mean - half, mean + half)
    try:
        return bool(decay(_slowest(decay, scaled, seed)) < 0)
    except NumericalError:
        return False


def _alone(
    decay: Any, name: str, ranges: Mapping[str, tuple[float, float]], means: Mapping[str, float]
) -> AloneRange:
    low, high = ranges[name]
    mean, half = (low + high) / 2, (high - low) / 2

    def stable(x: float) -> bool:
        try:
            return bool(decay({**means, name: x}) < 0)
        except NumericalError:
            return False

    ends = []
    for sign in (-1.0, 1.0):
        last = (
            FAR if sign > 0 or low <= 0 else min(FAR, (mean - 1e-3 * low) / half)
        )  # masses and lengths stay positive
        marks = np.linspace(0, last, 41)[1:]
        gone = next((x for x in marks if not stable(mean + sign * x * half)), None)
        if gone is None or not stable(mean):
            ends.append(sign * np.inf if gone is None else mean)
            continue
        good, bad = gone - marks[0], gone
        for _ in range(30):
            middle = (good + bad) / 2
            good, bad = (middle, bad) if stable(mean + sign * middle * half) else (good, middle)
        ends.append(mean + sign * good * half)
    return AloneRange(name, float(ends[0]), float(ends[1]), (low, high))


def _cases(
    family: UncertainLinearModel, worst: Mapping[str, float], peak: MuPeak | None, members: int, seed: int
) -> list[tuple[str, dict[str, float]]]:
    """What each run is, and its parameters."""
    ranges = family.ranges
    found = [
        ("means", {name: (low + high) / 2 for name, (low, high) in ranges.items()}),
        ("slowest decay", dict(worst)),
    ]
    if peak is not None and peak.delta is not None:
        owners = [name for name, n in family.copies.items() for _ in range(n)]
        d = dict(zip(owners, np.diag(peak.delta).real, strict=False))
        values = {
            name: float(np.clip((low + high) / 2 + (high - low) / 2 * d.get(name, 0.0), low, high))
            for name, (low, high) in ranges.items()
        }
        found.append(("mu-worst", values))
    corners = itertools.islice(itertools.product((0, 1), repeat=len(ranges)), 16)
    found += [
        ("corner", {name: ranges[name][k] for name, k in zip(ranges, corner, strict=True)})
        for corner in corners
    ]
    rng = np.random.default_rng(seed)
    while len(found) < members:
        found.append(("random", {name: float(rng.uniform(*limits)) for name, limits in ranges.items()}))
    return found


def _fly(
    model: Model,
    law: DynamicController,
    nominal: LinearModel,
    family: UncertainLinearModel,
    cases: Sequence[tuple[str, Mapping[str, float]]],
    holding: str,
    disturbance: Any,
    duration: float | None,
    step: float | None,
    K: StateSpace,
    decay: float,
    seed: int,
    progress: bool | None,
) -> Ensemble:
    G = StateSpace(*family.nominal.to_statespace().matrices)
    loop = feedback(G, _continuous(K), sign=1).poles()
    fastest = float(np.abs(loop).max(initial=1.0))
    for _, values in cases[:20]:  # what is lighter is faster
        other = StateSpace(*family.at(**values).matrices)
        fastest = max(
            fastest, float(np.abs(feedback(other, _continuous(K), sign=1).poles()).max(initial=0.0))
        )
    slow = float(np.clip(-decay, 1e-2, None))
    duration = float(duration) if duration is not None else min(8 / slow, 200.0)
    if step is None:
        step = min(0.3 / fastest, duration / 200)
        step = K.dt / np.ceil(K.dt / step) if K.is_discrete else step
    count = max(1, round(duration / step))
    every = max(1, count // 200)
    count = -(-count // every) * every
    size = np.broadcast_to(np.asarray(disturbance, dtype=float), (model.nv,))
    start = model.integrate(nominal.q, np.array(size))
    if model.is_constrained:
        start = model.assemble(start).q
    names = list(cases[0][1])
    vary = {
        "q0": np.tile(start, (len(cases), 1)),
        "v0": np.tile(nominal.v, (len(cases), 1)),
        "parameters": {name: [values[name] for _, values in cases] for name in names},
    }
    if holding == "each":
        vary["efforts"] = np.array([family.linear(**values).tau - nominal.tau for _, values in cases])
    return ensemble(
        model,
        vary,
        duration=count * step,
        step=step,
        interval=every * step,
        controller=law,
        integrator="rk4",
        seed=seed,
        progress=progress,
    )


def _settles(moved: Array) -> bool:
    """Whether a motion (N, nv) comes to rest: what is left of it in its last fifth, compared with its first one; and how
    much the last one still changes, compared with any: what drifts or grows slowly is far from its end at first as well."""
    if not np.isfinite(moved).all():
        return False
    away = np.abs(moved - moved[-1]).max(axis=-1)
    part = max(1, len(away) // 5)
    changes = [float(np.ptp(x, axis=0).max()) for x in np.array_split(moved, 5) if len(x)]
    small = away[-part:].max() <= SETTLED * max(float(away[:part].max()), 1e-12)
    return bool(small and changes[-1] <= SLOWED * max(*changes, 1e-12))


def _growth(whole: UncertainLinearModel, names: Sequence[str], values: Mapping[str, float]) -> float:
    """The largest real part of the poles of these states, which act on no others; zero where it is none."""
    at = [whole.nominal.state_names.index(name) for name in names]
    A = whole.at(**values).A[np.ix_(at, at)]
    found = float(np.linalg.eigvals(A).real.max(initial=0.0)) if at else 0.0
    return found if found > DRIFT * np.abs(A).max(initial=0.0) else 0.0

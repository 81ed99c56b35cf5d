"""A motion to show: a model along a trajectory, with what is plotted and what pushes beside it.

Results offer one by a method `motion()`; anybody can make one from times and configurations. For drawing, a motion is
cut into frames: enough for a smooth picture, few enough for a page. Between records that are far apart the
configuration moves along the shortest path on its manifold, so that bodies stay connected.

`read_motion` reads stored ones, records that `run.save` or `to_csv` wrote.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from alembert.arguments import unknown
from alembert.errors import ArgumentError, FileError
from alembert.expression import evaluate
from alembert.model import Model
from alembert.model.io import netcdf
from alembert.model.io.location import read_text
from alembert.view.deformed import drawn, exaggerations, farthest
from alembert.view.scene import body_poses

Array = np.ndarray
Series = Mapping[str, Any]
RATE = 60.0  # frames per second of a smooth picture
MOST_FRAMES = 30_000
BUDGET = 2_000_000  # bytes of poses before base64: 14 per body and frame
MOST_POINTS = 2000  # of a plotted line
_EFFORTS = ("effort", "efforts", "torque", "torques", "force", "forces")


@dataclass(frozen=True, eq=False)
class Arrow:
    """A force or a torque on a body, in body axes: `vectors` (times, 3) at `point`."""

    name: str
    kind: str
    """force or torque"""
    body: int
    point: tuple[float, float, float]
    vectors: Array


@dataclass(frozen=True, eq=False)
class Curves:
    """A plot: `lines` by name over `x`, the time or what `over` names."""

    title: str
    x: Array
    lines: Mapping[str, Array]
    over: str = ""


@dataclass(frozen=True, eq=False)
class CurvePage:
    """What a page shows of a result that has no model: plots over the time and `notes`."""

    title: str
    duration: float
    curves: Sequence[Curves]
    notes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Animation:
    """`time` (N,) and `q` (N, nq); `efforts` (N, nv) become arrows and, unless `series` says otherwise, a plot.

    `series` maps the title of a plot to its lines: `{"energy [J]": {"kinetic": T, "potential": V}}`, or to one array
    (N,) or (N, k). `wrenches` maps frames to (N, 6), moment and force in the frame's axes. `notes` are shown in a small
    table. `trails` names the frames or bodies whose paths are drawn; None: the ends of the tree. `curves` are further plots.
    """

    model: Model
    time: Any
    q: Any
    efforts: Any = None
    series: Mapping[str, Series | Any] = field(default_factory=dict)
    wrenches: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
    trails: Sequence[str] | None = None
    parameters: Mapping[str, float] | None = None
    curves: Sequence[Curves] = ()

    def __post_init__(self) -> None:
        model = self.model
        if not isinstance(model, Model):
            raise ArgumentError(f"Animation: model is a {type(model).__name__}, expected a Model")
        time = _array("time", self.time)
        if time.ndim != 1 or len(time) < 1 or np.any(np.diff(time) < 0):
            raise ArgumentError(
                f"Animation: time has shape {time.shape}, expected times (N,) that do not decrease"
            )
        n = len(time)
        q = _array("q", self.q)
        if q.shape != (n, model.nq):
            raise ArgumentError(
                f"Animation: q has shape {q.shape}, expected {(n, model.nq)}: one configuration per time"
            )
        model.check_configuration(q)
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "q", q)
        if self.efforts is not None:
            efforts = _array("efforts", self.efforts)
            if efforts.shape != (n, model.nv):
                raise ArgumentError(
                    f"Animation: efforts have shape {efforts.shape}, expected {(n, model.nv)}"
                )
            object.__setattr__(self, "efforts", efforts)
        for frame, wrench in self.wrenches.items():
            model.frame(frame)
            if np.shape(wrench) != (n, 6):
                raise ArgumentError(
                    f"Animation: wrench on {frame!r} has shape {np.shape(wrench)}, expected {(n, 6)}"
                )
        object.__setattr__(self, "series", {title: _lines(title, x, n) for title, x in self.series.items()})
        if self.trails is not None:
            for name in self.trails:
                model.frame(name)

    # --- frames ---------------------------------------------------------------------------------------------

    def frames(self, *, rate: float = RATE) -> Frames:
        """Poses at about `rate` frames per second."""
        factors = exaggerations(self.model, self.q)
        bodies = max(len(drawn(self.model).bodies), 1) * (1 + len(factors))
        most = int(np.clip(BUDGET / (14 * bodies), 100, MOST_FRAMES))
        times, q, efforts, wrenches = self._resampled(_frame_times(self.time, rate, most))
        levels = {}
        for factor in (1, *factors):
            larger = q.copy()
            for owner in self.model.space.of_bodies.values():
                larger[:, owner.q] *= factor
            R, p = body_poses(self.model, larger, parameters=self.parameters)
            levels[factor] = (p, _continuous_quaternions(R))
        return Frames(times, *levels.pop(1), self._arrows(q, efforts, wrenches), levels)

    def _resampled(self, times: Array) -> tuple[Array, Array, Array | None, dict[str, Array]]:
        """Configurations between records by the geodesic, efforts held (or between samples, linear)."""
        k = np.clip(np.searchsorted(self.time, times, side="right") - 1, 0, len(self.time) - 1)
        following = np.minimum(k + 1, len(self.time) - 1)
        span = self.time[following] - self.time[k]
        share = np.where(span > 0, (times - self.time[k]) / np.where(span > 0, span, 1.0), 0.0)[:, None]
        q = self.q[k]
        if self.model.nq and np.any(share > 1e-9):
            q = self.model.integrate(q, share * self.model.difference(q, self.q[following]))
        blend = lambda x: x[k] + share * (x[following] - x[k])  # noqa: E731
        wrenches = {name: blend(_array("wrench", x)) for name, x in self.wrenches.items()}
        return times, q, None if self.efforts is None else blend(self.efforts), wrenches

    def _arrows(self, q: Array, efforts: Array | None, wrenches: Mapping[str, Array]) -> tuple[Arrow, ...]:
        model, found = drawn(self.model), []
        values = model.parameter_values | dict(self.parameters or {})
        for i, joint in enumerate(model.joints):
            owner = model.space[i]
            s = owner.v
            if efforts is None or not joint.type.nv or not np.any(efforts[:, s]):
                continue
            constants = [float(evaluate(x, values)) for x in joint.type.constants()]
            type = joint.type.with_constants(constants)
            F = _joint_wrench(type, q[:, owner.q], efforts[:, s])
            found += _split(joint.name, i, (0.0, 0.0, 0.0), F)
        for name, F in wrenches.items():
            frame = model.frame(name)
            if frame.body not in model.body_indices:
                continue
            X = frame.placement.pose(values)
            turned = np.concatenate([F[:, :3] @ X.rotation.T, F[:, 3:] @ X.rotation.T], axis=1)
            x, y, z = (float(c) for c in X.translation)
            found += _split(name, model.body_indices[frame.body], (x, y, z), turned)
        return tuple(found)

    def panels(self) -> list[tuple[str, Array, dict[str, Array]]]:
        """(title, times, lines by name) of every plot, thinned to what a plot can show."""
        series = dict(self.series)
        if self.efforts is not None and not any(
            word in _EFFORTS for title in series for word in title.split()
        ):
            series = {**self._effort_series(), **series}
        if len(self.time) <= MOST_POINTS:
            return [(title, self.time, dict(lines)) for title, lines in series.items()]
        edges = np.linspace(0, len(self.time) - 1, MOST_POINTS // 2 + 1).astype(int)
        times = np.append(
            self.time[np.stack([edges[:-1], (edges[:-1] + edges[1:]) // 2], axis=1)], self.time[-1]
        )
        return [
            (title, times, {name: _envelope(x, edges) for name, x in lines.items()})
            for title, lines in series.items()
        ]

    def _effort_series(self) -> dict[str, dict[str, Array]]:
        """Torques and forces that are not zero all along."""
        units = list(self.model.space.speed_units)
        found: dict[str, dict[str, Array]] = {}
        for name, unit, x in zip(self.model.speed_names, units, self.efforts.T, strict=True):
            if np.any(x):
                found.setdefault("torques [N m]" if unit == "rad/s" else "forces [N]", {})[name] = x
        return found

    def trail_points(self) -> list[tuple[str, int, Array]]:
        """(name, body, point in body axes) of the paths to draw."""
        names = _ends(self.model) if self.trails is None else self.trails
        model = drawn(self.model)
        values = model.parameter_values | dict(self.parameters or {})
        found = []
        for name in names:
            frame = model.frame(name)
            if frame.body in model.body_indices:
                body = model.body_indices[frame.body]
                point = frame.placement.pose(values).translation
                flexible = model.bodies[body].flexible
                if self.trails is None and frame.name == frame.body and flexible is not None:
                    body, point = model.body_index(farthest(frame.body, flexible, values)), np.zeros(3)
                elif self.trails is None and frame.name == frame.body:
                    inertia = model.bodies[body].inertia
                    com = np.array([float(evaluate(x, values)) for x in inertia.com])
                    point = 2 * com if model.joints[body].type.nv == 1 else com  # the far end of a rod
                found.append((name, body, point))
        return found


@dataclass(frozen=True, eq=False)
class Frames:
    """`positions` (T, bodies, 3) and `quaternions` (T, bodies, 4), scalar first, without jumps of sign."""

    time: Array
    positions: Array
    quaternions: Array
    arrows: tuple[Arrow, ...]
    exaggerated: Mapping[int, tuple[Array, Array]] = field(default_factory=dict)
    """the same with the deformations of flexible bodies so many times larger"""


def as_animation(thing: Any) -> Animation:
    """A motion, or that of a result; `ArgumentError` otherwise."""
    if isinstance(thing, Animation):
        return thing
    if isinstance(thing, Model):
        raise ArgumentError(
            f"view: the model {thing.name!r} does not move by itself; simulate it, or give a result"
        )
    maker = getattr(thing, "motion", None)
    if callable(maker):
        made = maker()
        if isinstance(made, Animation):
            return made
    hint = "; its modes() move" if hasattr(thing, "modes") else ""
    raise ArgumentError(f"view: {type(thing).__name__} is neither a model nor a result with a motion{hint}")


# --- pieces -------------------------------------------------------------------------------------------------


def _array(what: str, value: Any) -> Array:
    try:
        x = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"Animation: {what} is {value!r}, expected numbers") from None
    if not np.all(np.isfinite(x)):
        raise ArgumentError(f"Animation: {what} has entries that are not finite")
    return x


def _lines(title: str, value: Any, n: int) -> dict[str, Array]:
    """Lines (N,) by name."""
    given = dict(value) if isinstance(value, Mapping) else None
    if given is None:
        x = np.asarray(value, dtype=float)
        plain = title.split("[")[0].strip()
        given = (
            {plain: x}
            if x.ndim == 1
            else {f"{plain} {k + 1}": x[:, k] for k in range(x.shape[-1] if x.ndim == 2 else 0)}
        )
        if x.ndim not in (1, 2):
            raise ArgumentError(
                f"Animation: series {title!r} has shape {x.shape}, expected ({n},) or ({n}, k)"
            )
    found = {}
    for name, line in given.items():
        x = np.asarray(line, dtype=float)
        if x.shape != (n,):
            raise ArgumentError(
                f"Animation: series {title!r}, line {str(name)!r} has shape {x.shape}, expected ({n},)"
            )
        found[str(name)] = x
    return found


def _frame_times(time: Array, rate: float, most: int) -> Array:
    """Evenly spaced; at least two, at most `most`."""
    span = float(time[-1] - time[0])
    if span <= 0:
        return time[:1]
    count = int(np.clip(np.ceil(span * rate) + 1, 2, most))
    return np.linspace(time[0], time[-1], count)


def _envelope(x: Array, edges: Array) -> Array:
    """The least and the greatest of every interval, in the order in which they come: no peak is lost by thinning."""
    found = []
    for a, b in itertools.pairwise(edges):
        part = x[a:b]
        good = np.isfinite(part)
        if not good.any():
            found += [np.nan, np.nan]
            continue
        low, high = (
            int(np.argmin(np.where(good, part, np.inf))),
            int(np.argmax(np.where(good, part, -np.inf))),
        )
        found += [part[min(low, high)], part[max(low, high)]]
    return np.array([*found, x[-1]])


def _continuous_quaternions(R: Array) -> Array:
    """(T, n, 4) of rotations (T, n, 3, 3); each nearest to the one before."""
    if R.shape[1] == 0:
        return np.zeros((*R.shape[:2], 4))
    q = (
        scipy.spatial.transform.Rotation.from_matrix(R.reshape(-1, 3, 3))
        .as_quat(scalar_first=True)
        .reshape(*R.shape[:2], 4)
    )
    turns = np.where(np.sum(q[1:] * q[:-1], axis=-1) < 0, -1.0, 1.0)
    q[1:] *= np.cumprod(turns, axis=0)[..., None]
    return q


def _joint_wrench(type: Any, q: Array, efforts: Array) -> Array:
    """The wrench in span S with S^T F = tau, F = S (S^T S)^-1 tau: what a motor along the axes puts on the child."""
    if type.bias(q[0], np.ones(type.nv)) is None:  # S is constant
        S = np.asarray(type.subspace(q[0]), dtype=float).reshape(6, -1)
        return efforts @ np.linalg.pinv(S.T).T
    F = np.empty((len(q), 6))
    for k, x in enumerate(q):
        S = np.asarray(type.subspace(x), dtype=float).reshape(6, -1)
        F[k] = np.linalg.pinv(S.T) @ efforts[k]
    return F


def _split(name: str, body: int, point: tuple[float, float, float], F: Array) -> list[Arrow]:
    found = []
    for kind, x in (("torque", F[:, :3]), ("force", F[:, 3:])):
        if np.any(np.abs(x) > 1e-12):
            found.append(Arrow(name, kind, body, point, x))
    return found


def _ends(model: Model) -> list[str]:
    """Frames on the last bodies of the branches, or these bodies; at most eight."""
    leaves = [body.name for body in model.bodies if not model.children(body.name)]
    on = {frame.body: frame.name for frame in model.frames if frame.body in leaves}
    return [on.get(leaf, leaf) for leaf in leaves][:8]


SUFFIXES = (".nc", ".csv")
LARGEST = 512_000_000  # bytes of a CSV file
_UNIT = re.compile(r"\s*\[[^\]]*\]\s*$")


def read_motion(path: str | os.PathLike[str], model: Model | None = None) -> Animation:
    """The motion in a file of records: netCDF (.nc), which holds its model, or CSV, for which `model` is needed."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ArgumentError(
            f"view: {path} has the suffix {path.suffix!r}, expected one of {', '.join(SUFFIXES)}"
        )
    if path.suffix.lower() == ".nc":
        return _netcdf(path, model)
    if model is None:
        raise ArgumentError(f"view: {path} holds records without a model; name the model as well")
    found = read_series(path, model)
    return _motion(path, model, found["time"], found["q"], found.get("v"), found.get("tau"))


def _netcdf(path: Path, model: Model | None) -> Animation:
    data = netcdf.read(path, "view")
    if model is None:
        text = data.attrs.get("model_toml")
        if not isinstance(text, str) or not text:
            raise ArgumentError(f"view: {path} holds records without a model; name the model as well")
        from alembert.model.io.native import loads

        model = loads(text, name=f"{path}: model_toml")
    q, time = netcdf.array(data, "q", path), netcdf.array(data, "time", path, 1)
    v, tau = (netcdf.array(data, name, path) if name in data else None for name in ("v", "tau"))
    for name, x, width in (
        ("q", q, q.shape[-1] if q.ndim else 0),
        ("v", v, model.nv),
        ("tau", tau, model.nv),
    ):
        if x is not None and (x.ndim < 2 or x.shape != (*q.shape[:-2], len(time), width)):
            expected = (*q.shape[:-2], len(time), width)
            raise FileError(
                f"{path}: variable {name!r} has shape {x.shape}, expected {expected}: {len(time)} records of {model.name!r}"
            )
    first = (0,) * (q.ndim - 2)
    return _motion(
        path, model, time, q[first], None if v is None else v[first], None if tau is None else tau[first]
    )


def read_series(
    path: Path, model: Model, needed: Sequence[str] = ("q",), others: Sequence[str] = ("v", "tau")
) -> dict[str, Array]:
    """Of a CSV file as `Run.to_csv` writes it: `time` (T,); of `q` (T, nq), `v`, `a` and `tau` (T, nv) what is `needed`, and
    those of the `others` that it has. Units in brackets are not converted; what is empty there is refused."""
    lines, rows = csv.reader(read_text(path, LARGEST).splitlines()), []
    try:
        head = [_UNIT.sub("", entry).strip() for entry in next(lines, [])]
        if not head:
            raise FileError(f"{path}:1: is empty, expected a line with the names of the columns")
        for row in filter(None, lines):
            if len(row) != len(head):
                raise FileError(f"{path}:{lines.line_num}: has {len(row)} values, expected {len(head)}")
            rows.append([float(cell or "nan") for cell in row])
    except (ValueError, csv.Error) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}:{lines.line_num}: {error}") from None
    if not rows:
        raise FileError(f"{path}: has no records below the names of the columns")
    table = np.array(rows)

    def columns(names: Sequence[str]) -> Array:
        for name in names:
            if name not in head:
                raise FileError(f"{path}:1: {unknown('has no column', name, head)}")
        found = table[:, [head.index(name) for name in names]]
        for k, column in np.argwhere(~np.isfinite(found))[:1]:
            raise FileError(
                f"{path}: {names[column]!r} of record {k + 1} is {found[k, column]:g}, expected a number"
            )
        return np.asarray(found)

    found = {"time": columns(["time"])[:, 0]}
    for kind in (*needed, *others):
        names = [f"{kind}.{x}" for x in (model.coordinate_names if kind == "q" else model.speed_names)]
        if kind in needed or any(name in head for name in names):
            found[kind] = columns(names)
    return found


def _motion(path: Path, model: Model, time: Any, q: Any, v: Any, tau: Any) -> Animation:
    if q.shape[-1] != model.nq:
        raise ArgumentError(
            f"view: {path} has {q.shape[-1]} coordinates, the model {model.name!r} {model.nq}"
        )
    series: dict[str, Any] = {}
    if v is not None:
        kinetic, potential = model.kinetic_energy(q, v), model.potential_energy(q)
        series["energy [J]"] = {"kinetic": kinetic, "potential": potential, "total": kinetic + potential}
    plain = [
        (name, unit, x)
        for name, unit, x in zip(model.coordinate_names, model.space.coordinate_units, q.T, strict=True)
        if unit in ("rad", "m")
    ]
    for unit, title in (("rad", "angles [rad]"), ("m", "positions [m]")):
        lines = {name: x for name, u, x in plain if u == unit}
        if lines:
            series[title] = lines
    return Animation(model, time, q, efforts=tau, series=series, title=f"{model.name}: {path.name}")

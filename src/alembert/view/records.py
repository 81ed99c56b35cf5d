"""Stored motions: records that `run.save` or `to_csv` wrote, read back to be shown."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

from alembert.arguments import unknown
from alembert.errors import ArgumentError, FileError
from alembert.model import Model
from alembert.model.io import netcdf
from alembert.model.io.location import read_text
from alembert.view.animation import Animation

SUFFIXES = (".nc", ".csv")
LARGEST = 512_000_000  # bytes of a CSV file


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
    return _csv(path, model)


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


def _csv(path: Path, model: Model) -> Animation:
    try:
        rows = list(csv.reader(read_text(path, LARGEST).splitlines()))
        head = [entry.partition(" [")[0].strip() for entry in rows[0]]
        table = np.array([[float(entry) for entry in row] for row in rows[1:] if row])
    except (ValueError, IndexError, csv.Error) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: is no readable table of records: {error}") from None
    if table.ndim != 2 or table.shape[1] != len(head):
        raise FileError(f"{path}: its rows do not have {len(head)} entries each, as its header has")

    def columns(prefix: str, names: tuple[str, ...], *, needed: bool) -> Any:
        wanted = [f"{prefix}.{name}" for name in names]
        missing = [name for name in wanted if name not in head]
        if missing and needed:
            raise FileError(f"{path}: {unknown('has no column', missing[0], head)}")
        return None if missing else table[:, [head.index(name) for name in wanted]]

    if "time" not in head:
        raise FileError(f"{path}: {unknown('has no column', 'time', head)}")
    q = columns("q", model.coordinate_names, needed=True)
    v = columns("v", model.speed_names, needed=False)
    tau = columns("tau", model.speed_names, needed=False)
    return _motion(path, model, table[:, head.index("time")], q, v, tau)


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
        for (name, unit), x in zip(_named(model, "coordinates"), q.T, strict=True)
        if unit in ("rad", "m")
    ]
    for unit, title in (("rad", "angles [rad]"), ("m", "positions [m]")):
        lines = {name: x for name, u, x in plain if u == unit}
        if lines:
            series[title] = lines
    return Animation(model, time, q, efforts=tau, series=series, title=f"{model.name}: {path.name}")


def _named(model: Model, which: str) -> list[tuple[str, str]]:
    units = list(model.space.coordinate_units if which == "coordinates" else model.space.speed_units)
    return list(zip(model.coordinate_names, units, strict=True))

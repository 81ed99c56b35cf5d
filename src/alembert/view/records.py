"""Stored motions: records that `run.save` or `to_csv` wrote, read back to be shown."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

from alembert.errors import ArgumentError, FileError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.view.motion import Motion

SUFFIXES = (".nc", ".csv")


def read_motion(path: str | os.PathLike[str], model: Model | None = None) -> Motion:
    """The motion in a file of records: netCDF (.nc), which holds its model, or CSV, for which `model` is needed."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ArgumentError(
            f"view: {path} has the suffix {path.suffix!r}, expected one of {', '.join(SUFFIXES)}"
        )
    if not path.is_file():
        raise FileError(f"{path}: cannot be read: No such file or directory")
    if path.suffix.lower() == ".nc":
        return _netcdf(path, model)
    if model is None:
        raise ArgumentError(f"view: {path} holds records without a model; name the model as well")
    return _csv(path, model)


def _netcdf(path: Path, model: Model | None) -> Motion:
    try:
        import xarray
    except ImportError:
        raise UnsupportedError('view: xarray is not installed; pip install "alembert[data]"') from None
    try:
        with xarray.open_dataset(path) as data:
            data.load()
    except (OSError, ValueError) as error:
        # xarray goes on with advice on its backends
        raise FileError(f"{path}: is no readable netCDF file: {str(error).partition('. ')[0]}") from None
    if model is None:
        text = data.attrs.get("model_toml")
        if not text:
            raise ArgumentError(f"view: {path} holds records without a model; name the model as well")
        from alembert.model.io.native import loads

        model = loads(text, name=f"{path}: model_toml")
    for name in ("q", "time"):
        if name not in data:
            raise FileError(f"{path}: has no variable {name!r}, expected records of a simulation")
    q = np.asarray(data["q"].values, dtype=float)
    tau = np.asarray(data["tau"].values, dtype=float) if "tau" in data else None
    v = np.asarray(data["v"].values, dtype=float) if "v" in data else None
    first = (0,) * (q.ndim - 2)
    return _motion(
        path,
        model,
        data["time"].values,
        q[first],
        None if v is None else v[first],
        None if tau is None else tau[first],
    )


def _csv(path: Path, model: Model) -> Motion:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        head = [entry.partition(" [")[0].strip() for entry in rows[0]]
        table = np.array([[float(entry) for entry in row] for row in rows[1:] if row])
    except (OSError, UnicodeDecodeError, ValueError, IndexError) as error:
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


def _motion(path: Path, model: Model, time: Any, q: Any, v: Any, tau: Any) -> Motion:
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
    return Motion(model, time, q, efforts=tau, series=series, title=f"{model.name}: {path.name}")


def _named(model: Model, which: str) -> list[tuple[str, str]]:
    units = [unit for joint in model.joints for _, unit in getattr(joint.type, which)]
    return list(zip(model.coordinate_names, units, strict=True))

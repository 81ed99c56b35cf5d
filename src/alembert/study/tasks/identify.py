"""The task `identify`: the parameters of a model from measurements in a CSV file, as `Run.to_csv` writes them.

Columns: `time`, `q.NAME` for every coordinate, `tau.NAME` for every degree of freedom, and where they were
measured `v.NAME` and `a.NAME`. Units in brackets are allowed and not converted; other columns are left alone.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from alembert.arguments import unknown
from alembert.errors import FileError
from alembert.model import Model
from alembert.model.io.location import read_text
from alembert.study.report import Grid, save_figure
from alembert.study.task import (
    PLOT,
    AtState,
    Count,
    Number,
    OptionError,
    OutputFile,
    Positive,
    Setting,
    Task,
    TaskResult,
)
from alembert.study.tasks.linearize import write_json

if TYPE_CHECKING:
    from alembert.identify import Identification, Measurements


Array = np.ndarray
LARGEST = 512_000_000  # bytes
_UNIT = re.compile(r"\s*\[[^\]]*\]\s*$")


class IdentifyTask(Task):
    """Estimate inertias, frictions, armatures and rotors of a model from measured motions and efforts."""

    KEYS: ClassVar = {
        "model": "its name",
        "method": "consistent or least_squares",
        "samples": "that were used",
        "condition": "number of the base regressor; below 30 is well excited",
        "base_parameters": "how many there are",
        "excited": "how many of them the data determine",
        "excitation": "a sentence on that",
        "estimates": "prior, value, standard_error and informed (0 to 1) of each parameter, by name",
        "rms": "of the residuals, by degree of freedom",
        "r_squared": "explained share of the variance, by degree of freedom; null where nothing varies",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile((".json", ".csv"), "estimates with standard errors", "estimates.json"),
        "model": OutputFile((".toml", ".yaml", ".yml"), "the identified model", "identified.toml"),
        "plot": OutputFile(PLOT, "measured and predicted efforts"),
    }

    type: Literal["identify"] = "identify"
    data: str = Field(
        description="A CSV file with the columns time, q.NAME, tau.NAME, and v.NAME and a.NAME where measured."
    )
    method: Literal["consistent", "least_squares"] = Field(
        default="consistent", description="Bodies that can exist, or the plain linear estimate."
    )
    include: list[Literal["viscous", "coulomb", "armature"]] = Field(
        default=[], description="Terms to identify on every joint, also where the model has none."
    )
    fixed: list[str] = Field(default=[], description="Bodies and joints that keep their values.")
    prior_spread: Positive = Field(
        default=1.0, description="How far the model may be off, as the logarithm of a factor."
    )
    cutoff: Positive | None = Field(
        default=None, description="Of a Butterworth filter before differentiating, Hz."
    )
    window: Count = Field(
        default=31,
        description="Samples of the local polynomials that differentiate, where no cutoff is given.",
    )
    noise: dict[str, Number] = Field(
        default={}, description="Standard deviation of the efforts by degree of freedom; otherwise estimated."
    )

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.identify import identify

        path = setting.folder / self.data
        result = identify(
            model,
            self._measurements(model, path),
            method=self.method,
            include=self.include,
            fixed=self.fixed,
            prior_spread=self.prior_spread,
        )
        data = _data(result)
        tables = (result.effort_table(), result.table(), result.base_table())
        return TaskResult(
            data,
            (
                *(Grid.from_rich(table) for table in tables),
                f"{len(result.data)} samples; {result.excitation}",
            ),
            files={
                "save": partial(_save, data),
                "model": partial(_save_model, result),
                "plot": partial(_plot, result),
            },
            figures={"Efforts": lambda: result.plot()["efforts"]},
            inputs=(path,),
        )

    def _measurements(self, model: Model, path: Path) -> Measurements:
        from alembert.identify import Measurements

        series = read_series(path, model)
        if not np.any(series["tau"]):
            raise OptionError(
                ("data",), f"all efforts in {self.data} are zero: nothing tells how heavy the bodies are"
            )
        noise = None
        if self.noise:
            values = AtState().speeds(model, "noise", {name: (x,) for name, x in self.noise.items()})
            noise = np.where(values > 0, values, np.inf)
        if "a" in series and "v" in series:
            return Measurements(
                series["q"], series["v"], series["a"], series["tau"], noise=noise, time=series["time"]
            )
        return Measurements.from_time_series(
            model,
            series["time"],
            series["q"],
            series["tau"],
            v=series.get("v"),
            cutoff=self.cutoff,
            filter="butterworth" if self.cutoff is not None else "savitzky_golay",
            window=self.window,
            noise=noise,
        )


def _data(result: Identification) -> dict[str, Any]:
    speeds = result.effort_names
    return {
        "model": result.prior_model.name,
        "method": result.method,
        "samples": len(result.data),
        "condition": float(result.condition),
        "base_parameters": int(result.base.rank),
        "excited": int(result.excited),
        "excitation": result.excitation,
        "estimates": {
            result.names[k]: {
                "prior": float(result.prior[k]),
                "value": float(result.values[k]),
                "standard_error": _finite(result.standard_errors[k]),
                "informed": float(result.informed[k]),
            }
            for k in result.free
        },
        "rms": dict(zip(speeds, result.rms.tolist(), strict=True)),
        "r_squared": {
            speed: None if x != x else x for speed, x in zip(speeds, result.r_squared.tolist(), strict=True)
        },
    }


def _finite(x: float) -> float | str:
    return float(x) if abs(x) < float("inf") else "inf"


def _save(data: dict[str, Any], path: Path) -> None:
    if path.suffix == ".json":
        write_json(data, path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["parameter", "prior", "value", "standard_error", "informed"])
        for name, entry in data["estimates"].items():
            writer.writerow([name, *entry.values()])


def _save_model(result: Identification, path: Path) -> None:
    from alembert.model.io import save

    save(result.model, path)


def _plot(result: Identification, path: Path) -> None:

    save_figure(lambda: result.plot()["efforts"], path)


def read_series(path: Path, model: Model) -> dict[str, Array]:
    """`time` (T,), `q` (T, nq), `tau` (T, nv), and `v`, `a` (T, nv) where the file has them."""
    head, rows = _table(path)
    wanted = {
        "q": model.coordinate_names,
        "tau": model.speed_names,
        "v": model.speed_names,
        "a": model.speed_names,
    }
    found = {"time": rows[:, _columns(path, head, ["time"])[0]]}
    for kind, names in wanted.items():
        columns = [f"{kind}.{name}" for name in names]
        if kind in ("v", "a") and not any(name in head for name in columns):
            continue
        found[kind] = rows[:, _columns(path, head, columns)]
    return found


def _table(path: Path) -> tuple[list[str], Array]:
    lines = csv.reader(read_text(path, LARGEST).splitlines())
    head = [_UNIT.sub("", name).strip() for name in next(lines, [])]
    if not head:
        raise FileError(f"{path}:1: is empty, expected a line with the names of the columns")
    rows = []
    for row in lines:
        if not row:
            continue
        if len(row) != len(head):
            raise FileError(f"{path}:{lines.line_num}: has {len(row)} values, expected {len(head)}")
        try:
            rows.append([float(cell) for cell in row])
        except ValueError as error:
            raise FileError(f"{path}:{lines.line_num}: {error}") from None
    return head, np.array(rows).reshape(len(rows), len(head))


def _columns(path: Path, head: list[str], names: Sequence[str]) -> list[int]:
    for name in names:
        if name not in head:
            raise FileError(f"{path}:1: " + unknown("has no column", name, head))
    return [head.index(name) for name in names]

"""The task `identify`: the parameters of a model from measurements in a CSV file."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from alembert.model import Model
from alembert.study.data import read_series
from alembert.study.parts import Grid
from alembert.study.task import (
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
from alembert.study.tasks.simulate import PLOT
from alembert.study.tasks.trim import write_json

if TYPE_CHECKING:
    from alembert.identify import Identification, Measurements


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
    from alembert.study import figures

    figures.save(lambda: result.plot()["efforts"], path)

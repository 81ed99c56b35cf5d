"""The tasks `trim`, a state without accelerations; `linearize`, a linear model about a state or an equilibrium; `identify`,
the parameters of a model from measurements in a CSV file, as `Run.to_csv` writes them.

Columns of that file: `time`, `q.NAME` for every coordinate, `tau.NAME` for every degree of freedom, and where they were
measured `v.NAME` and `a.NAME`. Units in brackets are allowed and not converted; other columns are left alone.
"""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy
from pydantic import Field

from alembert.model import Model
from alembert.study.report import Grid, ReportPart, save_figure
from alembert.study.task import (
    PLOT,
    AtState,
    Count,
    Number,
    Numbers,
    OptionError,
    OutputFile,
    Positive,
    Setting,
    Task,
    TaskResult,
    by_joint,
)

if TYPE_CHECKING:
    from alembert.identify import Identification, Measurements
    from alembert.linear import LinearModel


class TrimOptions(AtState):
    """A task that may look for an equilibrium; the state is the guess."""

    fixed: dict[str, Number] = Field(
        default={},
        description="Values to hold while looking: elbow, q:elbow, v:elbow, tau:elbow, actuator:motor.",
    )
    free: list[str] | None = Field(
        default=None,
        description="What may change: names as in `fixed`, wrench:foot, wrench:foot.fz, or q, v, tau, actuators; "
        "all coordinates that are not fixed.",
    )
    wrenches: dict[str, Numbers] = Field(
        default={}, description="Moment and force on frames, in the axes of the frame: six numbers each."
    )

    def equilibrium(self, model: Model) -> Any:
        from alembert.linear import trim

        return trim(
            model,
            q=self.coordinates(model),
            v=self.speeds(model),
            tau=self.speeds(model, "effort"),
            fixed=self.fixed or None,
            free=self.free,
            parameter_values=self.parameter_values(model),
            wrenches=self.wrenches,
        )


class TrimTask(TrimOptions):
    """Find an equilibrium, or a steady motion."""

    KEYS: ClassVar = {
        "model": "its name",
        "q": "coordinates, by joint",
        "v": "speeds, by joint",
        "tau": "efforts, by joint",
        "inputs": "of actuators that were free or fixed, by name",
        "wrenches": "moment and force on frames, by name",
        "free": "what was allowed to change",
        "residual": "largest effort that is missing",
        "stability": "stable, unstable or marginal, by the poles",
        "poles": "[real, imaginary] of each, rad/s",
        "iterations": "that were needed",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {"save": OutputFile((".json",), "the equilibrium", "equilibrium.json")}

    type: Literal["trim"] = "trim"

    def run(self, model: Model, setting: Setting) -> TaskResult:
        found = self.equilibrium(model)
        data = {
            "model": model.name,
            "q": by_joint(model, found.q),
            "v": by_joint(model, found.v),
            "tau": by_joint(model, found.tau),
            "inputs": dict(found.inputs),
            "wrenches": {frame: F.tolist() for frame, F in found.wrenches.items()},
            "free": list(found.free),
            "residual": float(abs(found.residual).max(initial=0.0)),
            "stability": found.stability,
            "poles": [[p.real, p.imag] for p in found.eigenvalues().tolist()],
            "iterations": found.iterations,
        }
        return TaskResult(
            data,
            (Grid.from_rich(found.__rich__()), f"{found.stability}; efforts missing: {data['residual']:.1e}"),
            files={"save": partial(write_json, data)},
        )


def write_json(data: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


_MATRICES = ("A", "B", "C", "D", "E", "F")
_SHOWN = 8
"""states up to which matrices are printed"""


class LinearizeTask(TrimOptions):
    """The linear model x' = A x + B u, y = C x + D u about a state or an equilibrium, with its modes."""

    KEYS: ClassVar = {
        "model": "its name",
        "q": "coordinates of the point, by joint",
        "v": "speeds, by joint",
        "tau": "efforts, by joint",
        "wrenches": "moment and force on frames, by name",
        "states": "their names",
        "inputs": "their names",
        "outputs": "their names",
        "parameters": "those of the columns of E and F",
        "A": "matrix, and so B, C, D, E (states by parameters), F (outputs by parameters)",
        "B": "",
        "C": "",
        "D": "",
        "E": "",
        "F": "",
        "poles": "[real, imaginary] of each, rad/s",
        "modes": "kind, pole, frequency (rad/s), damping, shape (by degree of freedom) of each; none where something rolls",
        "controllable": "whether the inputs reach all of the state",
        "observable": "whether the outputs tell all of it",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile((".json", ".npz", ".mat"), "matrices and names", "linear.json"),
        "bode": OutputFile(PLOT, "frequency responses"),
        "poles": OutputFile(PLOT, "poles in the plane"),
        "html": OutputFile((".html",), "an animation of the modes, one file for the browser"),
    }

    type: Literal["linearize"] = "linearize"
    trim: bool = Field(
        default=False, strict=True, description="Find an equilibrium first, from the state as a guess."
    )
    inputs: list[str] | None = Field(
        default=None,
        description="Actuators, joints, degrees of freedom, wrench:tool or wrench:tool.fz; the actuators, or all efforts.",
    )
    outputs: list[str] = Field(
        default=[], description="q:elbow, v:elbow, a sensor, frame:hand.position, ...; the whole state."
    )
    sensitivities: list[str] = Field(
        default=[], description="Parameters of the model for the matrices E and F."
    )

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.linear import linearize

        options = {"inputs": self.inputs, "outputs": self.outputs, "parameters": self.sensitivities}
        parts: list[ReportPart] = []
        if self.trim or self.free is not None or self.fixed:
            point = self.equilibrium(model)
            linear = point.linearize(**options)
            parts += [Grid.from_rich(point.__rich__()), f"{point.stability}\n"]
        else:
            linear = linearize(  # type: ignore[call-overload]
                model,
                self.coordinates(model),
                self.speeds(model),
                self.speeds(model, "effort"),
                parameter_values=self.parameter_values(model),
                wrenches=self.wrenches,
                **options,
            )
        data = _data(linear)
        reached = linear.controllable(), linear.observable()
        data |= {"controllable": bool(reached[0]), "observable": bool(reached[1])}
        return TaskResult(
            data,
            (*parts, *_parts(linear), f"controllable: {reached[0]}\nobservable: {reached[1]}"),
            files={
                "save": partial(_save, linear, data),
                "bode": partial(save_figure, partial(linear.plot, "bode")),
                "poles": partial(save_figure, partial(linear.plot, "poles")),
                "html": lambda path: linear.modes().to_html(path),
            },
            figures={"Poles": partial(linear.plot, "poles"), "Responses": partial(linear.plot, "bode")},
        )


def _data(linear: LinearModel) -> dict[str, Any]:
    model = linear.model
    return {
        "model": model.name,
        **{key: by_joint(model, getattr(linear, key)) for key in ("q", "v", "tau")},
        "wrenches": {frame: F.tolist() for frame, F in linear.wrenches.items()},
        "states": list(linear.state_names),
        "inputs": list(linear.input_names),
        "outputs": list(linear.output_names),
        "parameters": list(linear.parameter_names),
        **{name: getattr(linear, name).tolist() for name in _MATRICES},
        "poles": [[p.real, p.imag] for p in linear.poles().tolist()],
        "modes": [
            {
                "kind": mode.kind,
                "pole": [mode.pole.real, mode.pole.imag],
                "frequency": mode.frequency,
                "damping": None if np.isnan(mode.damping) else mode.damping,
                "shape": {
                    name: [x.real, x.imag] for name, x in zip(mode.names, mode.shape.tolist(), strict=True)
                },
            }
            for mode in (linear.modes() if linear.has_modes else ())
        ],
    }


def _parts(linear: LinearModel) -> list[ReportPart]:
    found: list[ReportPart] = [linear.remark] if linear.remark else []
    if linear.has_modes:
        found += [Grid.from_rich(linear.modes().__rich__())]
    if len(linear.state_names) <= _SHOWN:
        shown = ["A", "B"]
        if linear.output_names != linear.state_names:
            shown += ["C", *(["D"] if np.any(linear.D) else [])]
        shown += ["E", "F"] if linear.parameter_names else []
        found += [Grid.from_rich(linear.table(name)) for name in shown]
    return found


def _save(linear: LinearModel, data: dict[str, Any], path: Path) -> None:
    if path.suffix == ".json":
        write_json(data, path)
        return
    names = {key: np.array(data[key], dtype=str) for key in ("states", "inputs", "outputs", "parameters")}
    arrays = {name: getattr(linear, name) for name in (*_MATRICES, "q", "v", "tau")}
    if path.suffix == ".npz":
        np.savez(path, **(arrays | names))
        return
    cells = {key: np.array(data[key], dtype=object) for key in names}
    scipy.io.savemat(path, arrays | cells)
    with path.open("r+b") as file:  # the header would say when
        file.write(b"MATLAB 5.0 MAT-file, by Alembert".ljust(116))


Array = np.ndarray


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
        data = _identified(result)
        tables = (result.effort_table(), result.table(), result.base_table())
        return TaskResult(
            data,
            (
                *(Grid.from_rich(table) for table in tables),
                f"{len(result.data)} samples; {result.excitation}",
            ),
            files={
                "save": partial(_save_identified, data),
                "model": partial(_save_model, result),
                "plot": partial(_plot, result),
            },
            figures={"Efforts": lambda: result.plot()["efforts"]},
            inputs=(path,),
        )

    def _measurements(self, model: Model, path: Path) -> Measurements:
        from alembert.identify import Measurements
        from alembert.view.animation import read_series

        series = read_series(path, model, ("q", "tau"), ("v", "a"))
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


def _identified(result: Identification) -> dict[str, Any]:
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


def _save_identified(data: dict[str, Any], path: Path) -> None:
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

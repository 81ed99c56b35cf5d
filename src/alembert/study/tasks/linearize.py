"""The task `linearize`: a linear model about a state or an equilibrium.

The task `trim`: find a state without accelerations.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy
from pydantic import Field

from alembert.model import Model
from alembert.study.report import Grid, ReportPart, save_figure
from alembert.study.task import PLOT, AtState, Number, Numbers, OutputFile, Setting, TaskResult, by_joint

if TYPE_CHECKING:
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

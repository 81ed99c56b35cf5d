"""The task `optimise`: drive a model from one state to another at the least cost."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from alembert.model import Model
from alembert.model.io import netcdf
from alembert.study.report import Grid, save_figure
from alembert.study.task import (
    PLOT,
    Count,
    FromState,
    Numbers,
    OptionError,
    OutputFile,
    Positive,
    Setting,
    TaskResult,
    check_joint,
    fill,
)


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


_COSTS = {"effort": "half the integral of the squared efforts", "duration": "s"}
Time: Any = Annotated[
    tuple[Positive, ...],
    BeforeValidator(_listed, json_schema_input_type=float | list[float]),
    Field(max_length=2),
]


class OptimiseTask(FromState):
    """Find the motion and the efforts of least cost from one state to another."""

    KEYS: ClassVar = {
        "model": "its name",
        "success": "whether it is a solution to the tolerance",
        "status": "of the solver, a word",
        "message": "of the solver, a sentence",
        "cost": "of the solution",
        "duration": "s",
        "steps": "intervals of time",
        "iterations": "that were needed",
        "infeasibility": "largest violation of a constraint",
        "transcription": "that was used",
        "solver": "that was used",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile(
            (".csv", ".nc", ".npz"),
            "coordinates, speeds and efforts over time; .npz is a guess",
            "solution.csv",
        ),
        "plot": OutputFile(PLOT, "coordinates, speeds and controls over time"),
        "html": OutputFile((".html",), "an animation with plots, one file for the browser"),
    }

    type: Literal["optimise"] = "optimise"
    time: Time = Field(
        default=(2.0,), description="How long, in seconds; or [shortest, longest], to be found."
    )
    end: dict[str, Numbers] = Field(
        default={}, description="Coordinates at the end, by joint; those of other joints are free."
    )
    end_speed: dict[str, Numbers] = Field(
        default={}, description="Speeds at the end, by joint; others are zero."
    )
    free: list[str] = Field(default=[], description="Joints whose speeds at the end are free.")
    cost: Literal["effort", "duration"] = Field(
        default="effort", description="Half the integral of the squared controls, or the time that it takes."
    )
    steps: Count = Field(default=100, description="Intervals of time.")
    actuated: list[str] | None = Field(
        default=None, description="Joints or actuators that have a control; the actuators, or all joints."
    )
    limits: bool = Field(default=True, strict=True, description="Keep the limits of the model.")
    periodic: bool = Field(default=False, strict=True, description="End as it starts.")
    transcription: str | None = Field(
        default=None, description="dmoc, euler, midpoint, trapezoidal, hermite-simpson, radau, ..."
    )
    solver: str = Field(default="sweep", description="sweep, ipopt, fatrop, or highs for linear problems.")
    tolerance: Positive = Field(default=1e-8, description="Of the solver.")
    iterations: Count = Field(default=500, description="At most.")
    guess: str | None = Field(
        default=None,
        description="Where to start: a solution that was saved as .npz; straight from start to end.",
    )

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert import optimal
        from alembert.optimal.report import convergence

        problem = optimal.Problem(
            model,
            self.time[0] if len(self.time) == 1 else tuple(self.time),
            start={"q": self.coordinates(model), "v": self.speeds(model)},
            end=None if self.periodic and not self.end else self._end(model),
            cost=getattr(optimal, self.cost)(),
            limits="model" if self.limits else None,
            actuated=self.actuated,
            periodic=self.periodic,
            parameters=self.parameter_values(model),
        )
        solution = problem.solve(
            self.steps,
            transcription=self.transcription,
            solver=self.solver,
            tolerance=self.tolerance,
            iterations=self.iterations,
            guess=None if self.guess is None else setting.folder / self.guess,
            progress=bool(setting.progress),  # a line per iteration, when asked for
        )
        data = {
            "model": model.name,
            "success": bool(solution.success),
            "status": str(solution.status),
            "message": str(solution.message),
            "cost": float(solution.cost),
            "duration": float(solution.duration),
            "steps": int(solution.steps),
            "iterations": int(solution.iterations),
            "infeasibility": float(solution.infeasibility),
            "transcription": str(solution.transcription),
            "solver": str(solution.solver),
        }
        rows = [
            ("cost", f"{data['cost']:.9g} ({_COSTS[self.cost]})"),
            ("duration", f"{data['duration']:.6g} s, {data['steps']} steps ({data['transcription']})"),
            ("iterations", f"{data['iterations']} ({data['solver']})"),
            ("constraints", f"kept to {data['infeasibility']:.1e}"),
            ("check", str(solution.check)),
        ]
        held = [
            name for name, y in solution.multipliers.items() if np.ndim(y) and np.abs(y).max(initial=0) > 1e-4
        ]
        if held:
            rows.append(("limits reached", ", ".join(held)))
        head = ("", "least", "largest", "limits")
        parts = [
            Grid.of(f"{model.name}: {data['status']}", ("", ""), rows, left=2),
            Grid.of("Ranges", head, solution.ranges(), left=1),
        ]
        text = [] if solution.success else [str(solution.diagnosis())]
        if solution.success and solution.message not in ("solved", "converged"):
            text.append(str(solution.message))
        return TaskResult(
            data,
            (*parts, *text),
            files={
                "save": partial(_save, solution),
                "plot": partial(save_figure, solution.plot),
                "html": partial(_animate, solution),
            },
            figures={"Solution": solution.plot, "Convergence": partial(convergence, solution)},
            ok=bool(solution.success),
        )

    def _end(self, model: Model) -> dict[str, Any]:
        fill(model, model.neutral(), ("end",), self.end, model.q_slice)
        fill(model, np.zeros(model.nv), ("end_speed",), self.end_speed, model.v_slice)
        joints = {joint.name: joint.type for joint in model.joints if joint.type.nv}
        for name in self.free:
            check_joint(model, name, ("free",))
            if name not in joints:
                raise OptionError(("free",), f"names {name!r}, a joint that does not move")
        speeds = {
            name: list(self.end_speed.get(name, (0.0,) * type.nv))
            for name, type in joints.items()
            if name not in self.free
        }
        positions = {name: list(values) for name, values in self.end.items()}
        return {"q": _single(positions), "v": _single(speeds)}


def _single(values: dict[str, list[float]]) -> dict[str, Any]:
    return {name: x[0] if len(x) == 1 else x for name, x in values.items()}


def _save(solution: Any, path: Path) -> None:
    if path.suffix == ".npz":
        solution.save(path)
        return
    if path.suffix == ".nc":
        netcdf.write(solution.to_xarray(), path)
        return
    from alembert.linear import quantities

    model = solution.model
    efforts = _efforts(solution)
    places = list(model.space.coordinate_units)
    names = [
        f"{kind}.{name} [{unit}]" if unit else f"{kind}.{name}"
        for kind, labels, units in (
            ("q", model.coordinate_names, places),
            ("v", model.speed_names, quantities.speed_units(model)),
            ("tau", model.speed_names, quantities.effort_units(model)),
        )
        for name, unit in zip(labels, units, strict=True)
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time [s]", *names])
        for row in np.column_stack([solution.time, solution.q, solution.v, efforts]):
            writer.writerow([repr(float(x)) for x in row])


def _efforts(solution: Any) -> Any:
    """At every time, the last one repeated where they belong to intervals."""
    efforts = np.asarray(solution.efforts)
    missing = len(solution.time) - len(efforts)
    return np.concatenate([efforts, np.repeat(efforts[-1:], missing, axis=0)]) if missing else efforts


def _animate(solution: Any, path: Path) -> None:
    solution.to_html(path, title=solution.model.name)

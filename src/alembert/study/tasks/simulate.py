"""The task `simulate`: let a model move from a state."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from alembert.model import Model
from alembert.model.io.schema import Vector
from alembert.study import figures
from alembert.study.laws import laws
from alembert.study.parts import Grid
from alembert.study.task import AtState, OutputFile, Positive, Setting, TaskResult, by_joint
from alembert.study.tasks.scenario import Scenario

PLOT = (".png", ".svg", ".pdf")


class SimulateTask(Scenario, AtState):
    """Let a model move from a state, and report how well energy and momentum were kept."""

    KEYS: ClassVar = {
        "model": "its name",
        "integrator": "that was used",
        "reason": "why",
        "step": "of fixed-step integrators, s, otherwise null",
        "steps": "how many were made",
        "records": "how many were kept",
        "time": "at the end, s",
        "q": "coordinates at the end, by joint",
        "v": "speeds at the end, by joint",
        "energy_start": "J",
        "energy_error": "largest, of the largest kinetic energy",
        "work": "done by efforts and friction, J, or null where there is none",
        "momentum_error": "largest change, angular and linear, of its terms; null where something acts from outside",
        "quaternion_error": "largest, or null",
        "constraint_error": "of loops and couplings, largest, or null",
        "beyond_limits": "by how much limits of the model were passed, by name",
        "measurements": "by sensor, how many samples there were, and the last",
        "events": "name and time of each, in their order",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile((".csv", ".nc"), "records of coordinates, speeds and efforts", "records.csv"),
        "plot": OutputFile(PLOT, "coordinates and speeds over time"),
        "html": OutputFile((".html",), "an animation with plots, one file for the browser"),
    }

    type: Literal["simulate"] = "simulate"
    time: Positive = Field(default=10.0, description="How long, in seconds.")
    step: Positive | None = Field(default=None, description="Of fixed-step integrators, in seconds.")
    interval: Positive | None = Field(
        default=None, description="Between records, in seconds; every step, or a thousandth of the time."
    )
    integrator: str = Field(default="auto", description="Its name; auto chooses and says why.")
    tolerance: Positive = Field(default=1e-9, description="Of integrators with error control, relative.")
    absolute_tolerance: Positive = Field(default=1e-11, description="The same, in SI units.")
    gravity: Vector | None = Field(default=None, description="Another one than the model's, m/s^2.")

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.simulate import simulate

        if self.gravity is not None:
            model = model.replace(gravity=self.gravity)
        parameters = self.parameter_values(model)
        q, v = self.closed(model, self.coordinates(model), self.speeds(model), parameters)
        extra = laws(self.controllers, self.events, model, parameters, setting, self.sensors)
        run = simulate(
            model,
            q,
            v,
            duration=self.time,
            step=self.step,
            interval=self.interval,
            integrator=self.integrator,
            efforts=self.speeds(model, "effort"),
            controller=extra.controllers or None,
            events=extra.events,
            parameters=parameters,
            tolerance=self.tolerance,
            absolute_tolerance=self.absolute_tolerance,
            progress=setting.progress,
            **self.along(model),
        )
        report = run.report
        data = {
            "model": model.name,
            "integrator": report.integrator,
            "reason": report.reason,
            "step": run.step,
            "steps": report.steps,
            "records": len(run.time),
            "time": float(run.time[-1]),
            "q": by_joint(model, run.q[-1]),
            "v": by_joint(model, run.v[-1]),
            "energy_start": report.energy_start,
            "energy_error": report.energy_error,
            "work": report.work,
            "momentum_error": report.momentum_error,
            "quaternion_error": report.quaternion_error,
            "constraint_error": report.constraint_error,
            "beyond_limits": report.beyond_limits,
            "measurements": {
                name: {
                    "samples": len(x.time),
                    "last": np.asarray(x.values)[-1].tolist() if len(x.time) else None,
                }
                for name, x in run.measurements.items()
            },
            "events": [{"name": event.name, "time": event.time} for event in run.events],
        }
        units = list(model.space.coordinate_units)
        rows = zip(model.coordinate_names, (f"{x:.9g}" for x in run.q[-1]), units, strict=True)
        end = Grid.of(f"at {run.time[-1]:g} s", ("coordinate", "value", "unit"), rows)
        log = [Grid.of("events", ("event", "at [s]"), [(e.name, f"{e.time:.9g}") for e in run.events])]
        return TaskResult(
            data,
            (str(report), *(log if run.events else []), end),
            files={
                "save": run.save,
                "plot": partial(figures.save, run.plot),
                "html": run.to_html,
            },
            figures={"Motion": run.plot},
            inputs=extra.inputs,
        )

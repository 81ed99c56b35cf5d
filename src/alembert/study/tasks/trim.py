"""The task `trim`: find a state without accelerations."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from alembert.model import Model
from alembert.study.parts import Grid
from alembert.study.task import AtState, Number, Numbers, OutputFile, Setting, TaskResult, by_joint


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

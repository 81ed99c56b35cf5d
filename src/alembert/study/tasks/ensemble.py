"""The task `ensemble`: many motions with drawn starts, efforts and parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from alembert.model import Model
from alembert.model.io.schema import FileTable
from alembert.study.report import Grid, save_figure
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
    TaskResult,
    check_parameter,
    inside,
)
from alembert.study.tasks.simulate import Scenario

if TYPE_CHECKING:
    from alembert.simulate import Ensemble as Result

Array = np.ndarray


class SpreadEntry(FileTable):
    """Standard deviations (or half widths) of what is drawn; what is not named is the same for all."""

    position: dict[str, Numbers] = Field(
        default={}, description="By joint, along its degrees of freedom, rad or m."
    )
    speed: dict[str, Numbers] = Field(default={}, description="By joint.")
    effort: dict[str, Numbers] = Field(default={}, description="By joint.")
    parameters: dict[str, Number] = Field(default={}, description="By name.")


class EnsembleTask(Scenario, AtState):
    """Simulate many motions that differ by chance, repeatably."""

    KEYS: ClassVar = {
        "model": "its name",
        "members": "how many motions",
        "failed": "number and reason of each that failed",
        "seed": "of the draws",
        "time": "at the end, s",
        "mean_q": "of the coordinates at the end, by name",
        "deviation_q": "standard deviation of the coordinates at the end, by name",
        "mean_v": "of the speeds at the end, by name",
        "deviation_v": "standard deviation of the speeds at the end, by name",
        "events": "by name, how many members met it, and the mean of their first times, s",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile(
            (".csv", ".nc"), "means and deviations over time (.csv), or all members (.nc)", "ensemble.csv"
        ),
        "plot": OutputFile(PLOT, "medians and bands over time"),
    }

    type: Literal["ensemble"] = "ensemble"
    members: Count = Field(default=100, description="How many motions.")
    seed: int = Field(
        default=0, strict=True, ge=0, description="Of the draws; the same seed gives the same bits."
    )
    time: Positive = Field(default=10.0, description="How long, in seconds.")
    step: Positive = Field(default=0.001, description="Of the integrator, in seconds.")
    interval: Positive | None = Field(
        default=None, description="Between records, in seconds; only the start and the end."
    )
    integrator: str = Field(default="rk4", description="Its name; those with fixed steps are the fastest.")
    backend: Literal["threads", "batch", "processes", "dask"] = Field(
        default="threads", description="What computes: all cores, one core, processes, or a Dask cluster."
    )
    checkpoint: str | None = Field(
        default=None,
        description="A folder for finished blocks, relative to the file; a run that was killed goes on.",
    )
    distribution: Literal["normal", "uniform"] = Field(
        default="normal", description="Of the draws; the spread of uniform ones is their half width."
    )
    spread: SpreadEntry = Field(default=SpreadEntry(), description="What is drawn, and how widely.")

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.simulate import ensemble

        for k, event in enumerate(self.events):
            if self.spread.parameters and event.quantity and not _is_state(model, event.quantity):
                raise OptionError(
                    ("events", k, "quantity"),
                    f"{event.quantity!r} may depend on parameters, which differ between members; expected a coordinate or a "
                    "speed",
                )
        checkpoint = None if self.checkpoint is None else setting.folder / self.checkpoint
        if checkpoint is not None and not inside(setting.folder, checkpoint):
            raise OptionError(
                ("checkpoint",), f"is {self.checkpoint!r}, which leads out of the folder of the run file"
            )
        options, files = self.along(model, self.parameter_values(model), setting)
        result = ensemble(
            model,
            self._vary(model),
            members=self.members,
            duration=self.time,
            step=self.step,
            interval=self.interval,
            integrator=self.integrator,
            seed=self.seed,
            backend=self.backend,
            checkpoint=checkpoint,
            progress=setting.progress,
            **options,
        )
        (q, v), (dq, dv) = result.mean(), result.deviation()
        happened = _happened(result)
        data = {
            "model": model.name,
            "members": len(result.q),
            "failed": {str(k): why for k, why in result.failures.items()},
            "seed": self.seed,
            "time": float(result.time[-1]),
            "mean_q": _named(model.coordinate_names, q),
            "deviation_q": _named(model.coordinate_names, dq),
            "mean_v": _named(model.speed_names, v),
            "deviation_v": _named(model.speed_names, dv),
            "events": happened,
        }
        rows = [
            (f"{kind}.{name}", f"{a:.6g}", f"{b:.3g}")
            for kind, names, mean, spread in (
                ("q", model.coordinate_names, q, dq),
                ("v", model.speed_names, v, dv),
            )
            for name, a, b in zip(names, mean[-1], spread[-1], strict=True)
        ]
        text = f"{len(result.q)} members, seed {self.seed}, {len(result.failures)} failed"
        met = [(name, str(count), f"{first:.6g}") for name, (count, first) in happened.items()]
        log = [Grid.of("events", ("event", "members", "first, mean [s]"), met)] if met else []
        failed = [f"member {k}: {why}" for k, why in list(result.failures.items())[:5]]
        return TaskResult(
            data,
            (
                "\n".join([text, *failed]),
                Grid.of(f"at {result.time[-1]:g} s", ("", "mean", "deviation"), rows),
                *log,
            ),
            files={
                "save": result.save,
                "plot": partial(save_figure, result.plot),
            },
            figures={"Members": result.plot} if len(result.time) > 2 else {},
            seeds={"ensemble": self.seed},
            inputs=files,
        )

    def _vary(self, model: Model) -> Callable[[np.random.Generator], dict[str, Any]]:
        """Draws a member; always the same numbers in the same order, whatever is spread."""
        q, v, tau = self.coordinates(model), self.speeds(model), self.speeds(model, "effort")
        values = model.parameter_values | (self.parameter_values(model) or {})
        widths = [self._width(model, which) for which in ("position", "speed", "effort")]
        for name in self.spread.parameters:
            check_parameter(model, name, ("spread", "parameters", name))
        uniform = self.distribution == "uniform"

        def draw(rng: np.random.Generator, count: int) -> Array:
            return rng.uniform(-1.0, 1.0, size=count) if uniform else rng.normal(size=count)

        def vary(rng: np.random.Generator) -> dict[str, Any]:
            dq, dv, dtau = (width * draw(rng, model.nv) for width in widths)
            chances = dict(zip(values, draw(rng, len(values)), strict=True))
            drawn = {
                name: x + self.spread.parameters.get(name, 0.0) * chances[name] for name, x in values.items()
            }
            q0, v0 = self.closed(model, model.integrate(q, dq), v + dv, drawn)
            return {"q0": q0, "v0": v0, "efforts": tau + dtau, "parameters": drawn}

        return vary

    def _width(self, model: Model, which: str) -> Array:
        try:
            return (
                self.speeds(model, which, getattr(self.spread, which))
                if which != "position"
                else (self.speeds(model, "spread", self.spread.position))
            )
        except OptionError as error:
            raise OptionError(("spread", which, *error.place[1:]), error.what) from None


def _happened(result: Result) -> dict[str, tuple[int, float]]:
    """By name, how many members met an event, and the mean of the times at which they first did."""
    times: dict[str, list[float]] = {}
    for log in result.events.values():
        for name in dict.fromkeys(event.name for event in log):
            times.setdefault(name, []).append(next(event.time for event in log if event.name == name))
    return {name: (len(found), float(np.mean(found))) for name, found in sorted(times.items())}


def _is_state(model: Model, text: str) -> bool:
    """Whether a quantity is read off q or v."""
    kind, colon, rest = text.partition(":")
    known = {*model.joint_indices, *model.coordinate_names, *model.speed_names}
    return text in known or (bool(colon) and kind in ("q", "v") and rest in known)


def _named(names: tuple[str, ...], x: Array) -> dict[str, float]:
    return dict(zip(names, x[-1].tolist(), strict=True))

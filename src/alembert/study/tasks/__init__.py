"""The tasks of run files and commands, by name; here that of `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from alembert.model import Model
from alembert.study.report import Grid
from alembert.study.task import Count, OutputFile, Positive, Setting, Task, TaskResult
from alembert.study.tasks.analysis import IdentifyTask, LinearizeTask, TrimTask
from alembert.study.tasks.mission import MissionTask
from alembert.study.tasks.motion import EnsembleTask, SimulateTask
from alembert.study.tasks.optimise import OptimiseTask

if TYPE_CHECKING:
    from alembert.verify import Results


class VerifyTask(Task):
    """Compare what Alembert computes with published values, closed forms and other programs; no model is needed."""

    KEYS: ClassVar = {
        "program": "that computed",
        "cases": "how many were run",
        "bad": "names of those that failed",
        "status": "of each case, by name",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile((".json",), "statuses and checks"),
        "html": OutputFile((".html",), "a page with a plot per case"),
    }
    NEEDS_MODEL: ClassVar = False

    type: Literal["verify"] = "verify"
    cases: list[str] = Field(default=[], description="Names; * and ? stand for others. All.")
    tags: list[str] = Field(default=[], description="Only cases with all of these tags.")
    files: list[str] = Field(
        default=[], description="Cases of one's own, .py or .toml, relative to the file."
    )
    program: str = Field(
        default="alembert", description="Which program computes: alembert, pinocchio, mujoco."
    )
    jobs: Count | None = Field(default=None, description="Processes; one per core.")
    timeout: Positive = Field(default=600.0, description="Of one case, s.")

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.verify import discover, run, select

        own = [setting.folder / name for name in self.files]
        chosen = select(discover(own), self.cases, self.tags)
        results = run(chosen, program=self.program, jobs=self.jobs, timeout=self.timeout)
        bad = [outcome.name for outcome in results.outcomes if outcome.status in ("failed", "error")]
        data = {
            "program": self.program,
            "cases": len(results.outcomes),
            "bad": bad,
            "status": {outcome.name: outcome.status for outcome in results.outcomes},
        }
        rows = [(outcome.name, outcome.status, outcome.message) for outcome in results.outcomes]
        text = f"{len(rows)} cases, {len(bad)} bad" + (f": {', '.join(bad)}" if bad else "")
        return TaskResult(
            data,
            (Grid.of("cases", ("case", "status", ""), rows, left=3), text),
            files={"save": lambda path: _save(results, path), "html": lambda path: _page(results, path)},
            inputs=tuple(own),
            ok=not bad,
        )


def _save(results: Results, path: Path) -> Any:
    path.write_text(results.to_json(), encoding="utf-8")


def _page(results: Results, path: Path) -> Any:
    from alembert.verify.report import page

    path.write_text(page(results), encoding="utf-8")


TASKS: dict[str, type[Task]] = {
    "simulate": SimulateTask,
    "ensemble": EnsembleTask,
    "trim": TrimTask,
    "linearize": LinearizeTask,
    "identify": IdentifyTask,
    "optimise": OptimiseTask,
    "mission": MissionTask,
    "verify": VerifyTask,
}
"""a new task is a class here: run files, their schema and their reference know it by that"""

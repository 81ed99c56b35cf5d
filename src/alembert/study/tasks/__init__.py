"""The tasks of run files and commands, by name."""

from __future__ import annotations

from alembert.study.task import Task
from alembert.study.tasks.ensemble import EnsembleTask
from alembert.study.tasks.identify import IdentifyTask
from alembert.study.tasks.linearize import LinearizeTask, TrimTask
from alembert.study.tasks.mission import MissionTask
from alembert.study.tasks.optimise import OptimiseTask
from alembert.study.tasks.simulate import SimulateTask
from alembert.study.tasks.verify import VerifyTask

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

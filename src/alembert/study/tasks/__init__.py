"""The tasks of run files and commands, by name."""

from __future__ import annotations

from alembert.study.task import Task
from alembert.study.tasks.ensemble import Ensemble
from alembert.study.tasks.identify import Identify
from alembert.study.tasks.linearize import Linearize
from alembert.study.tasks.optimise import Optimise
from alembert.study.tasks.simulate import Simulate
from alembert.study.tasks.trim import Trim
from alembert.study.tasks.verify import Verify

TASKS: dict[str, type[Task]] = {
    "simulate": Simulate,
    "ensemble": Ensemble,
    "trim": Trim,
    "linearize": Linearize,
    "identify": Identify,
    "optimise": Optimise,
    "verify": Verify,
}
"""a new task is a class here: run files, their schema and their reference know it by that"""

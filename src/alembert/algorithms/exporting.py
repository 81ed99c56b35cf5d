"""The algorithms of a model as C source: names, a description of the arguments, and a state to test with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms.algorithm import Options
from alembert.engine.c_export import export_c

if TYPE_CHECKING:
    from alembert.model import Model


def export(
    model: Model, graph_name: str, options: Options, directory: str | Path, *, name: str, at: Any = None
) -> list[Path]:
    """`name` is that of the function; `at` a configuration to test with, where not any will do."""
    graph = model.symbolic.graph(graph_name, options)
    rng = np.random.default_rng(0)
    names: list[str] = []
    described: dict[str, str] = {}
    sample: list[np.ndarray] = []
    frames = iter(options.wrenches)
    speeds: Any = None
    for argument in graph.inputs:
        label, known = argument.name, ", ".join(model.speed_names)
        value = rng.uniform(-1.0, 1.0, argument.shape)
        if label in ("q", "q0", "q1"):
            known = ", ".join(model.coordinate_names)
            value = model.random_configuration(rng) if at is None else np.asarray(at, dtype=float)
        elif label == "parameters":
            known = ", ".join(model.parameter_values)
            value = np.array(list(model.parameter_values.values()))
        elif label == "free":
            known = "1 for speeds that tau drives, 0 for those that follow a"
            value = (rng.uniform(size=argument.shape) < 0.5).astype(float)
        elif label.startswith("wrench on "):
            frame = next(frames)
            label, known = f"wrench_{_identifier(frame)}", f"moment, then force on {frame}, in its axes"
        elif label == "v" and at is not None:
            value = speeds = model.project(at, value).v  # that open no loop
        elif label == "a" and at is not None:  # after v
            by = model.independent_coordinates(at, speeds)
            value = by.E @ value[by.indices] + by.rate
        names.append(label)
        described[label] = known
        sample.append(value)
    return export_c(
        graph.function,
        name,
        directory,
        argument_names=names,
        sample=sample,
        descriptions=described,
    )


def _identifier(frame: str) -> str:
    return re.sub(r"\W", "_", frame, flags=re.ASCII)

"""Cases without code: a TOML file that names a model, an algorithm, its arguments and the number expected.

[[case]]
name = "gripper_at_rest"
source = "data sheet of the arm, table 3"
model = "arm.urdf"                  # next to this file, or the name of a model of alembert.library
algorithm = "inverse_dynamics"
arguments = { q = [0, 1], v = [0, 0], a = [0, 0] }
published = [12.3, 4.5]
tolerance = 0.05
reason = "half a unit of the last digit"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from alembert import library
from alembert.errors import FileError
from alembert.model import Model
from alembert.model.io import load
from alembert.model.printing import unknown
from alembert.verify.case import KINDS, Case, Check

ALGORITHMS = (
    "forward_dynamics", "inverse_dynamics", "bias_forces", "gravity_forces", "coriolis_forces", "mass_matrix",
    "inverse_mass_matrix", "center_of_mass", "momentum", "kinetic_energy", "potential_energy", "energy",
    "frame_velocity", "frame_acceleration", "frame_jacobian", "constraint_residual", "simulate",
)  # fmt: skip
REQUIRED = {"name", "source", "model", "algorithm", "published", "tolerance", "reason"}
OPTIONAL = {"title", "kind", "tags", "arguments", "missing", "result"}


def cases_of_toml(path: Path) -> list[Case]:
    """The cases of a file; anything that is not understood is refused, by its name."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"verify: {path}: {error}") from error
    for key in content:
        if key != "case":
            raise FileError(f"verify: {path}: {key!r} is not known; expected [[case]]")
    return [_case(path, entry) for entry in content.get("case", [])]


def _case(path: Path, entry: dict[str, Any]) -> Case:
    where = f"verify: {path}, case {entry.get('name', '(without a name)')!r}"
    for key in entry:
        if key not in REQUIRED | OPTIONAL:
            raise FileError(unknown(f"{where}: no entry", key, sorted(REQUIRED | OPTIONAL)))
    if lacking := sorted(REQUIRED - set(entry)):
        raise FileError(f"{where}: {', '.join(lacking)} missing")
    if entry["algorithm"] not in ALGORITHMS:
        raise FileError(unknown(f"{where}: no algorithm", entry["algorithm"], ALGORITHMS))
    if entry.get("kind", "published") not in KINDS:
        raise FileError(unknown(f"{where}: no kind", entry["kind"], KINDS))
    return Case(
        name=entry["name"],
        title=entry.get("title", f"{entry['algorithm']} of {entry['model']}"),
        source=entry["source"],
        kind=entry.get("kind", "published"),
        function=_computation(path, entry),
        tags=tuple(entry.get("tags", ())),
        parameters=entry.get("arguments", {}),
        missing=entry.get("missing", ""),
    )


def _computation(path: Path, entry: dict[str, Any]) -> Callable[..., Iterator[Check]]:
    def compute(**arguments: Any) -> Iterator[Check]:
        model = _model(path, entry["model"])
        if entry["algorithm"] == "simulate":
            from alembert.simulate import simulate

            run = simulate(model, **arguments)
            value = np.asarray(getattr(run, entry.get("result", "q")))[-1]
        else:
            value = np.asarray(getattr(model, entry["algorithm"])(**arguments))
        published = np.asarray(entry["published"], dtype=float)
        yield Check(entry["algorithm"], value, published, entry["tolerance"], entry["reason"])

    return compute


def _model(path: Path, name: str) -> Model:
    return library.make(name) if name in library.names() else load(path.parent / name)

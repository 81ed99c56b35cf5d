"""Finding cases: those of the package, of installed packages (entry points `alembert.cases`), and of users' files.

Cases without code are in a TOML file that names a model, an algorithm, its arguments and the number expected:

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

import fnmatch
import importlib
import importlib.util
import pkgutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from alembert import library
from alembert.errors import ArgumentError, FileError
from alembert.model import Model
from alembert.model.io import load
from alembert.model.printing import unknown
from alembert.verify.case import KINDS, Case, Check

GROUP = "alembert.cases"
"""entry points of other packages: each names a module (or a package of modules) with cases"""


def discover(files: Sequence[str | Path] = ()) -> dict[str, Case]:
    """All cases by name: those of the package in alphabetical order, then the others in the order of their files."""
    own: dict[str, Case] = {}
    for part in _with_submodules(importlib.import_module("alembert.verify.cases")):
        _add(own, _cases_in(part), part.__name__)
    found = dict(sorted(own.items()))
    for point in entry_points(group=GROUP):
        for part in _installed(point):
            _add(found, _cases_in(part), part.__name__)
    for file in files:
        _add(found, _from_file(Path(file)), str(file))
    return found


def find(name: str, origin: str) -> Case:
    """A case again, in another process."""
    path = Path(origin)
    source = (
        _from_file(path) if path.suffix in (".py", ".toml") else _cases_in(importlib.import_module(origin))
    )
    return next(case for case in source if case.name == name)


def select(cases: dict[str, Case], names: Sequence[str] = (), tags: Sequence[str] = ()) -> list[Case]:
    """Those with one of the names (`*` and `?` stand for others) and with all the tags."""
    chosen = list(cases.values())
    if names:
        chosen = []
        for name in names:
            matching = [case for case in cases.values() if fnmatch.fnmatchcase(case.name, name)]
            if not matching:
                raise ArgumentError(unknown("verify: no case", name, list(cases)))
            chosen += [case for case in matching if case not in chosen]
    known = {tag for case in cases.values() for tag in (*case.tags, case.kind)}
    for tag in tags:
        if tag not in known:
            raise ArgumentError(unknown("verify: no tag", tag, sorted(known)))
        chosen = [case for case in chosen if tag in (*case.tags, case.kind)]
    return chosen


def _with_submodules(module: ModuleType) -> Iterable[ModuleType]:
    yield module
    for info in sorted(pkgutil.iter_modules(getattr(module, "__path__", [])), key=lambda info: info.name):
        yield from _with_submodules(importlib.import_module(f"{module.__name__}.{info.name}"))


def _installed(point: EntryPoint) -> list[ModuleType]:
    """The modules that an entry point names."""
    try:
        return list(_with_submodules(point.load()))
    except Exception as error:
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "a package"
        raise FileError(
            f"verify: the cases of {package} ({point.name} = {point.value}) do not load: "
            f"{type(error).__name__}: {error}"
        ) from error


def _cases_in(module: ModuleType) -> list[Case]:
    found = [value for value in vars(module).values() if isinstance(value, Case)]
    return [case for case in found if case.origin == module.__name__]  # not those it has imported


def _add(found: dict[str, Case], cases: Iterable[Case], where: str) -> None:
    for case in cases:
        if case.name in found:
            raise ArgumentError(
                f"verify: the case {case.name!r} is in {found[case.name].origin} and in {where}; rename one"
            )
        found[case.name] = case


def _from_file(path: Path) -> list[Case]:
    if not path.is_file():
        raise FileError(f"verify: {path} is not a file; expected cases in .py or .toml")
    path = path.resolve()
    if path.suffix == ".toml":
        cases = cases_of_toml(path)
    elif path.suffix == ".py":
        cases = _cases_in(_module_of(path))
    else:
        raise FileError(f"verify: {path} ends in {path.suffix!r}; expected cases in .py or .toml")
    if not cases:
        raise FileError(
            f"verify: {path} has no cases; put the decorator `alembert.verify.case` on a function"
        )
    return [replace(case, origin=str(path)) for case in cases]


def _module_of(path: Path) -> ModuleType:
    name = f"alembert_cases_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that what its functions define can be pickled
    try:
        # not from the compiled file that Python keeps: one that was edited within a second counts as the same
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except Exception as error:
        raise FileError(f"verify: {path} does not run: {type(error).__name__}: {error}") from error
    return module


# --- cases without code ------------------------------------------------------------------------------------------

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

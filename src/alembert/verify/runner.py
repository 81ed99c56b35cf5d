"""Finding cases and running them.

Cases are those of the package, of installed packages (entry points `alembert.cases`), and of users' files. They run in this
process, or in worker processes that may fail without taking the others along. Cases without code are in a TOML file that
names a model, an algorithm, its arguments and the number expected:

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
import multiprocessing as mp
import os
import pkgutil
import sys
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from alembert import library
from alembert.errors import AlembertWarning, ArgumentError, FileError, UnsupportedError
from alembert.model import Model
from alembert.model.io import load
from alembert.model.printing import unknown
from alembert.verify.case import KINDS, Case, Check, Plot, Skipped
from alembert.verify.programs import ARGUMENTS, program_named
from alembert.verify.results import CaseResult, Results, results

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


TIMEOUT = 600.0  # s; the slowest case takes some tens of seconds on a busy machine

Done = Callable[[CaseResult], None]


def run_case(case: Case, program: str = "alembert") -> CaseResult:
    """Run a case here and now; whatever it raises is its outcome."""
    begin = time.perf_counter()
    checks: list[Check] = []
    plots: list[Plot] = []

    def outcome(status: str, message: str = "") -> CaseResult:
        seconds = time.perf_counter() - begin
        return CaseResult.of(
            case, program, status=status, message=message, seconds=seconds, checks=checks, plots=plots
        )

    asked = program_named(program)
    for package in (*case.needs, asked.package):
        if importlib.util.find_spec(package) is None:
            known = {p.package: p.distribution for group in ARGUMENTS.values() for p in group.values()}
            return outcome(
                "skipped", f"{package} is not installed (pip install {known.get(package, package)})"
            )
    options = dict(case.parameters)
    if not case.is_posed_to(program):
        return outcome("skipped", f"not posed to {program}")
    if case.argument is not None:
        options[case.argument] = ARGUMENTS[case.argument][program]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlembertWarning)
            for item in case.function(**options):
                (plots if isinstance(item, Plot) else checks).append(item)  # type: ignore[arg-type]
    except Skipped as reason:
        return outcome("skipped", str(reason))
    except UnsupportedError as error:
        if program != "alembert":
            return outcome("skipped", str(error))
        return outcome("error", f"UnsupportedError: {error}")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return outcome("error", f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})")
    if not checks:
        return outcome("error", "the case has checked nothing")
    try:
        bad = [check.what for check in checks if not check.passed]
        return outcome("failed", f"beyond the tolerance: {', '.join(bad)}") if bad else outcome("passed")
    except Exception as error:
        checks = []
        return outcome("error", f"{type(error).__name__}: {error}")


def run(
    cases: Sequence[Case],
    *,
    program: str = "alembert",
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    done: Done | None = None,
) -> Results:
    """Run cases in `jobs` processes (by default one per core); `done` hears of each outcome as it comes.

    A case that crashes its process, or that takes longer than `timeout` seconds, is an error of its own.
    """
    begin = time.perf_counter()
    program_named(program)
    count = max(1, min(jobs or os.cpu_count() or 1, len(cases)))
    found: dict[str, CaseResult] = {}
    # slow cases first, so that none of them is left for the end
    waiting = sorted(cases, key=lambda case: not case.slow)[::-1]
    workers: list[_Worker] = []

    def settle(case: Case, outcome: CaseResult) -> None:
        found[case.name] = outcome
        if done is not None:
            done(outcome)

    try:
        workers = [_Worker() for _ in range(count)]
        while waiting or any(worker.case for worker in workers):
            for worker in workers:
                if worker.case is None and waiting:
                    worker.start(waiting.pop(), program)
            now = time.perf_counter()
            busy = [worker for worker in workers if worker.case]
            limit = min(worker.begin + timeout - now for worker in busy)
            ready = wait([worker.pipe for worker in busy], max(limit, 0.0))
            for worker in busy:
                assert worker.case is not None
                case, late = worker.case, time.perf_counter() - worker.begin > timeout
                if worker.pipe in ready:
                    outcome = worker.result()
                    if outcome is None:
                        code = worker.replace()
                        outcome = CaseResult.of(
                            case, program, status="error", message=f"its process ended with code {code}"
                        )
                elif late:
                    worker.replace()
                    outcome = CaseResult.of(
                        case, program, status="error", message=f"stopped after {timeout:g} s", seconds=timeout
                    )
                else:
                    continue
                worker.case = None
                settle(case, outcome)
    finally:
        for worker in workers:
            worker.stop()
    return results([found[case.name] for case in cases], program, time.perf_counter() - begin)


class _Worker:
    """A process that runs one case after the other."""

    def __init__(self) -> None:
        self.case: Case | None = None
        self.begin = 0.0
        self._open()

    def _open(self) -> None:
        context = mp.get_context("spawn")  # a fork of a process with threads may hang
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there,), daemon=True)
        self.process.start()
        there.close()

    def start(self, case: Case, program: str) -> None:
        self.case, self.begin = case, time.perf_counter()
        self.pipe.send((case.name, case.origin, program))

    def result(self) -> CaseResult | None:
        """None if the process is gone."""
        try:
            found: CaseResult = self.pipe.recv()
            return found
        except (EOFError, ConnectionError):
            return None

    def replace(self) -> int | None:
        self.stop()
        code = self.process.exitcode
        self._open()
        return code

    def stop(self) -> None:
        self.pipe.close()
        self.process.join(0.2)
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def _serve(pipe: Connection) -> None:
    """The life of a worker: cases in, outcomes out, until the pipe closes. What cases print goes nowhere."""
    from alembert.verify.runner import find

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    while True:
        try:
            name, origin, program = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        case: Any = find(name, origin)
        pipe.send(run_case(case, program))

"""Running cases: one in this process, or many in worker processes that may fail without taking the others along."""

from __future__ import annotations

import importlib.util
import multiprocessing as mp
import os
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from alembert.errors import AlembertWarning, UnsupportedError
from alembert.verify.case import Case, Check, Plot, Skipped
from alembert.verify.programs import ARGUMENTS, program_named
from alembert.verify.results import CaseResult, Results, results

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
                        case,
                        program,
                        status="error",
                        message=f"stopped after {timeout:g} s",
                        seconds=timeout,
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
    from alembert.verify.registry import find

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

"""The tests with the arithmetic of other machines: `make test-machines`, or `python tests/machines.py --help`.

Results may differ in the last bit from one processor to the next, with the number of lanes and of threads; no test may
hang on it, nor on the order in which tests run. Each *machine* below is the whole suite, or the part of it that is named,
under one such change. A table says what each run gave; the exit code is 1 if one failed.

As a plugin of pytest (`-p machines`) this file gives the option `--shuffle`.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SEED = 1
"""of the order of the tests, where none is given"""


@dataclass(frozen=True)
class Machine:
    """What is changed: variables of the environment, options of pytest, the cores it may use."""

    says: str
    variables: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    cores: int | None = None


def machines(seed: int = SEED) -> dict[str, Machine]:
    found = {"here": Machine("as `make test` does it")}
    for core in ("Haswell", "Zen", "SkylakeX", "Sandybridge"):
        found[core.lower()] = Machine(f"OpenBLAS as on {core}", {"OPENBLAS_CORETYPE": core})
    for target in ("sse2", "avx2"):
        found[target] = Machine(f"kernels for processors with {target.upper()}", {"ALEMBERT_TARGET": target})
    for lanes in (1, 2, 4, 8):
        found[f"lanes-{lanes}"] = Machine(f"kernels of {lanes} lanes", {"ALEMBERT_LANES": str(lanes)})
    for threads in (1, 2):
        blas = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        found[f"threads-{threads}"] = Machine(f"batches and BLAS on {threads} cores", blas, cores=threads)
    found["shuffled"] = Machine(f"in another order (seed {seed})", {}, (f"--shuffle={seed}",))
    for core, target, lanes in (("Haswell", "avx2", 2), ("Sandybridge", "sse2", 1)):
        variables = {"OPENBLAS_CORETYPE": core, "ALEMBERT_TARGET": target, "ALEMBERT_LANES": str(lanes)}
        found[f"{core.lower()}-{target}-{lanes}"] = Machine(
            f"{core}, {target.upper()}, lanes {lanes}, one core, shuffled",
            variables | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            (f"--shuffle={seed + 1}",),
            cores=1,
        )
    return found


@dataclass(frozen=True)
class Result:
    """What one run gave."""

    name: str
    summary: str
    failed: tuple[str, ...]
    seconds: float
    code: int


def run(name: str, machine: Machine, targets: Sequence[str], options: Sequence[str], folder: Path) -> Result:
    """Run pytest under the machine; what it prints goes to a file of its name."""
    begin = time.monotonic()
    path = os.pathsep.join(filter(None, (str(ROOT / "tests"), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "machines"]
    command += [*options, *machine.options, *targets]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.log", "w", encoding="utf-8") as file:
        done = subprocess.run(
            [*command, "-ra", "-o", "addopts=--strict-markers"],
            cwd=ROOT,
            env={**os.environ, **machine.variables, "PYTHONPATH": path},
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
            preexec_fn=(lambda: _use_cores(machine.cores)) if machine.cores else None,
        )
    text = (folder / f"{name}.log").read_text(encoding="utf-8")
    failed = tuple(re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.M))
    return Result(name, _summary(text), failed, time.monotonic() - begin, done.returncode)


def _use_cores(count: int | None) -> None:
    """Kernels share a batch among the cores that a process may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def _summary(text: str) -> str:
    """The counts of pytest's last line."""
    found = re.findall(
        r"\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed)\b", text.rstrip().rpartition("\n")[2]
    )
    return ", ".join(found) or "no summary; see the log"


def table(results: Sequence[Result], known: Mapping[str, Machine]) -> str:
    rows = [("machine", "", "result", "s")]
    rows += [(r.name, known[r.name].says, r.summary, f"{r.seconds:.0f}") for r in results]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines += [f"{r.name}: {test}" for r in results for test in r.failed]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="files or folders of tests; all by default")
    parser.add_argument(
        "--machine", action="append", metavar="NAME", help="one of them (may be repeated); all by default"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of the shuffled order")
    parser.add_argument("--jobs", default="auto", help="processes of pytest-xdist; 0 for none")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "machines", help="for the logs")
    parser.add_argument("--list", action="store_true", help="show the machines")
    given = parser.parse_args(arguments)
    known = machines(given.seed)
    if given.list:
        print("\n".join(f"{name:12} {machine.says}" for name, machine in known.items()))
        return 0
    wrong = [name for name in given.machine or () if name not in known]
    if wrong:
        parser.error(f"no machine {wrong[0]!r}; there are {', '.join(known)}")
    options = () if given.jobs == "0" else ("-n", given.jobs, "--dist", "worksteal")
    results = []
    for name in given.machine or known:
        results.append(run(name, known[name], given.targets, options, given.folder))
        print(f"{name}: {results[-1].summary} in {results[-1].seconds:.0f} s", flush=True)
    print("\n" + table(results, known))
    return int(any(result.code for result in results))


def pytest_addoption(parser: Any) -> None:
    says = "run the files, and the tests of each, in another order"
    parser.addoption("--shuffle", type=int, metavar="SEED", help=says)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Files stay together, so that what their tests share is made once."""
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    rng = random.Random(seed)
    files: dict[Path, list[Any]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    groups = list(files.values())
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
    items[:] = [item for group in groups for item in group]


def pytest_runtest_logreport(report: Any) -> None:
    """A failure is in the log at once: such a run takes long, and may be stopped before its summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed so far: {report.nodeid}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

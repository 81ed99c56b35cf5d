"""What came out of a run: the result of each case, where and when, and the file that keeps them."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from alembert.errors import FileError
from alembert.model.io.location import read_text
from alembert.model.printing import printable
from alembert.verify.case import Case, Check, Plot

PACKAGES = ("alembert", "numpy", "scipy", "casadi", "llvmlite", "pin", "mujoco", "control")
FORMAT = 1
LARGEST = 100_000_000  # bytes of a file


@dataclass(frozen=True)
class Quantity:
    """A check, as plain numbers."""

    what: str
    ours: Any
    published: Any
    difference: float
    tolerance: Any
    reason: str
    margin: float
    passed: bool

    @classmethod
    def of(cls, check: Check) -> Quantity:
        plain = (np.asarray(x, dtype=float).tolist() for x in (check.ours, check.published, check.tolerance))
        ours, published, tolerance = plain
        return cls(
            check.what,
            ours,
            published,
            check.difference,
            tolerance,
            " ".join(check.reason.split()),
            check.margin,
            check.passed,
        )


@dataclass(frozen=True)
class CaseResult:
    """One case: passed, failed, skipped, or an error, with the sentence that says why."""

    name: str
    title: str
    source: str
    kind: str
    tags: tuple[str, ...]
    missing: str
    details: str
    parameters: dict[str, Any]
    status: str
    message: str
    seconds: float
    program: str
    quantities: tuple[Quantity, ...] = ()
    plots: tuple[Plot, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        case: Case,
        program: str,
        *,
        status: str,
        message: str = "",
        seconds: float = 0.0,
        checks: Sequence[Check] = (),
        plots: Sequence[Plot] = (),
    ) -> CaseResult:
        return cls(
            case.name,
            case.title,
            case.source,
            case.kind,
            case.tags,
            case.missing,
            case.details,
            dict(case.parameters),
            status,
            message,
            seconds,
            program,
            tuple(Quantity.of(check) for check in checks),
            tuple(plots),
        )

    @property
    def bad(self) -> bool:
        return self.status in ("failed", "error")


@dataclass(frozen=True)
class Results:
    """The results of all cases of a run, and where and when it was."""

    outcomes: tuple[CaseResult, ...]
    program: str
    machine: dict[str, str]
    versions: dict[str, str]
    date: str
    seconds: float

    @property
    def bad(self) -> bool:
        return any(outcome.bad for outcome in self.outcomes)

    def only(self, outcomes: Iterable[CaseResult]) -> Results:
        """Some of the outcomes, of the same run, with the time that these took."""
        some = tuple(outcomes)
        return replace(self, outcomes=some, seconds=sum(outcome.seconds for outcome in some))

    @property
    def summary(self) -> str:
        counts = {
            status: sum(o.status == status for o in self.outcomes)
            for status in ("passed", "failed", "error", "skipped")
        }
        words = ", ".join(
            f"{n} {'errors' if status == 'error' and n != 1 else status}" for status, n in counts.items() if n
        )
        plural = "" if len(self.outcomes) == 1 else "s"
        return f"{len(self.outcomes)} case{plural}: {words or 'none'} in {self.seconds:.0f} s"

    def to_json(self) -> str:
        """Everything but the plots; numbers that are not finite as texts."""
        content = {"format": FORMAT, **asdict(self)}
        for outcome in content["outcomes"]:
            del outcome["plots"]
        return json.dumps(_plain(content), indent=2, allow_nan=False) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Results that `alembert verify --save FILE` has written."""
        try:
            text = read_text(path, LARGEST)
        except FileError as error:
            raise FileError(
                f"verify: {path} does not hold results of `alembert verify --save`: {error}"
            ) from None
        try:
            content = _shown(json.loads(text))
            if content.pop("format") != FORMAT:
                raise FileError(f"verify: {path} was written in another format; run that version again")
            outcomes = tuple(
                CaseResult(
                    **{
                        **outcome,
                        "tags": tuple(outcome["tags"]),
                        "quantities": tuple(Quantity(**_numbers(q)) for q in outcome["quantities"]),
                    }
                )
                for outcome in content.pop("outcomes")
            )
            return cls(outcomes=outcomes, **content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"verify: {path} does not hold results of `alembert verify --save`") from error


def _shown(value: Any) -> Any:
    """Data of a file without characters that a terminal would obey."""
    if isinstance(value, dict):
        return {printable(key): _shown(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_shown(entry) for entry in value]
    return printable(value) if isinstance(value, str) else value


def results(outcomes: Sequence[CaseResult], program: str, seconds: float) -> Results:
    """Outcomes with the date, the machine and the versions of what computed them."""
    return Results(
        tuple(outcomes),
        program,
        _machine(),
        _versions(),
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        seconds,
    )


def _machine() -> dict[str, str]:
    """No name or address: what matters is what computes."""
    import os

    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(key): _plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(value) for value in x]
    if isinstance(x, np.ndarray):
        return _plain(x.tolist())
    if isinstance(x, np.generic):
        return _plain(x.item())
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)
    return x if isinstance(x, str | int | float | bool | None) else str(x)


def _numbers(quantity: dict[str, Any]) -> dict[str, Any]:
    """The texts `inf` and `nan` back into numbers."""

    def number(x: Any) -> Any:
        if isinstance(x, list):
            return [number(y) for y in x]
        return float(x)

    keys = ("ours", "published", "difference", "tolerance", "margin")
    return {**quantity, **{key: number(quantity[key]) for key in keys}}


AGREE = 1.0
"""times the tolerance of a quantity: what two results may be apart and still be the same"""


@dataclass(frozen=True)
class QuantityPair:
    """A quantity in both results; None where one of them has no such quantity."""

    case: str
    what: str
    first: Quantity | None
    second: Quantity | None
    note: str

    @property
    def apart(self) -> float:
        """The largest difference of the two, infinite when they cannot be compared."""
        if self.first is None or self.second is None:
            return float("nan")
        x, y = (np.asarray(q.ours, dtype=float) for q in (self.first, self.second))
        return float(np.max(np.abs(x - y), initial=0.0)) if x.shape == y.shape else float("inf")

    @property
    def verdict(self) -> str:
        """`same` within the tolerances of both, `differs`, or why there is nothing to compare."""
        if self.first is None or self.second is None:
            return self.note
        if self.first.passed != self.second.passed:
            return "better" if self.first.passed else "worse"
        x, y = (np.asarray(q.ours, dtype=float) for q in (self.first, self.second))
        if x.shape != y.shape:
            return "differs"
        allowed = np.asarray(self.first.tolerance, float) + np.asarray(self.second.tolerance, float)
        return "same" if np.all(np.abs(x - y) <= AGREE * allowed) else "differs"


def compare(first: Results, second: Results) -> list[QuantityPair]:
    """Quantity by quantity, those of `first` in its order, then what only `second` has."""
    theirs = {outcome.name: outcome for outcome in second.outcomes}
    pairs: list[QuantityPair] = []
    for outcome in first.outcomes:
        pairs += _pairs(outcome, theirs.pop(outcome.name, None))
    for outcome in theirs.values():
        pairs.append(QuantityPair(outcome.name, outcome.title, None, None, "new there"))
    return pairs


def _pairs(one: CaseResult, other: CaseResult | None) -> list[QuantityPair]:
    if other is None:
        return [QuantityPair(one.name, one.title, None, None, "not there")]
    if not one.quantities or not other.quantities:
        short_one = one if not one.quantities else other
        return [QuantityPair(one.name, one.title, None, None, f"{short_one.status}: {short_one.message}")]
    theirs = {quantity.what: quantity for quantity in other.quantities}
    return [
        QuantityPair(one.name, quantity.what, quantity, theirs.get(quantity.what), "not there")
        for quantity in one.quantities
    ]

"""Ensembles: many motions with drawn starts, parameters and efforts, in blocks that survive an interruption.

Every member draws from a generator of its own, seeded by the ensemble's seed and the member's number, and has
the same bits alone, in any block and on any number of threads. So a block that is there already need not be
computed again: with a `checkpoint` folder each finished block is written under a name that says what it
holds, at once or not at all, and a run that was killed goes on with the blocks that are missing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import AlembertWarning, ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.simulate.choice import FIXED
from alembert.simulate.controllers import Sampled
from alembert.simulate.progress import Progress
from alembert.simulate.run import simulate

if TYPE_CHECKING:
    from xarray import Dataset

Array = np.ndarray
Vary = Callable[[np.random.Generator], Mapping[str, Any]]
"""Draws a member: any of `q0`, `v0`, `efforts` and `parameters` (by name)."""

DRAWN = ("q0", "v0", "efforts", "parameters")
BLOCK = 256


@dataclass(frozen=True, repr=False)
class Ensemble:
    """`time` (N,), `q` (members, N, nq), `v` (members, N, nv); `failures` says which members failed, and why.

    Records of a failed member are NaN from where it failed; statistics leave it out.
    """

    model: Model
    time: Array
    q: Array
    v: Array
    parameters: Mapping[str, Array]
    failures: Mapping[int, str]
    seed: int
    computed: int
    """members that were computed in this run; the others came from the checkpoint"""
    _options: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"<Ensemble of {self.model.name!r}: {len(self.q)} members, {len(self.failures)} failed>"

    @property
    def good(self) -> Array:
        """The members that did not fail."""
        return np.array([k for k in range(len(self.q)) if k not in self.failures], dtype=int)

    def mean(self) -> tuple[Array, Array]:
        """Of coordinates and speeds, (N, nq) and (N, nv); the components of quaternions are averaged as they are."""
        return self.q[self.good].mean(axis=0), self.v[self.good].mean(axis=0)

    def deviation(self) -> tuple[Array, Array]:
        """Standard deviations of coordinates and speeds."""
        return self.q[self.good].std(axis=0), self.v[self.good].std(axis=0)

    def quantiles(self, probabilities: Any) -> tuple[Array, Array]:
        q, v = (np.quantile(x[self.good], probabilities, axis=0) for x in (self.q, self.v))
        return q, v

    def to_xarray(self) -> Dataset:
        """With names; needs xarray (pip install alembert[data])."""
        import xarray

        model = self.model
        return xarray.Dataset(
            {
                "q": (["member", "time", "coordinate"], self.q),
                "v": (["member", "time", "speed"], self.v),
                "failed": ("member", np.isin(np.arange(len(self.q)), list(self.failures))),
                **{name: ("member", values) for name, values in self.parameters.items()},
            },
            {
                "time": ("time", self.time, {"units": "s"}),
                "coordinate": list(model.coordinate_names),
                "speed": list(model.speed_names),
            },
            {"model": model.name, "seed": self.seed, "fingerprint": model.fingerprint},
        )


def ensemble(
    model: Model,
    vary: Vary,
    *,
    members: int,
    duration: float,
    step: float,
    q0: Any = None,
    v0: Any = None,
    interval: float | None = None,
    integrator: str = "rk4",
    controller: Any = None,
    efforts: Any = None,
    seed: int = 0,
    block: int = BLOCK,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Ensemble:
    """Simulate `members` motions; `vary(rng)` draws what differs between them.

    Args:
        vary: gives any of `q0`, `v0`, `efforts` and `parameters` (a mapping) for one member, from a generator
        of its own. q0, v0, efforts: where `vary` gives none; q0 is neutral by default. integrator: one with
        fixed steps. interval: between records [s]; by default only the start and the end. seed: of the whole
        ensemble. block: members that are computed together, on lanes and threads. checkpoint: a folder for
        finished blocks; call again with the same arguments to go on after an interruption. options:
        `wrenches`, `drives`, `gravity` and `prescribed`, as for `simulate`.
    """
    for name, value in (("members", members), ("block", block)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ArgumentError(f"ensemble: {name} is {value!r}, expected a positive integer")
    if integrator not in FIXED:
        raise UnsupportedError(
            f"ensemble: integrator {integrator!r} and an ensemble do not go together; choose one of {', '.join(FIXED)}"
        )
    if not callable(vary):
        raise ArgumentError(f"ensemble: vary is {vary!r}, expected a function of a random generator")
    if "gravity" in options:
        model = model.replace(gravity=options.pop("gravity"))
    _ = model.symbolic  # makes the model's algorithms known
    given = {
        "q0": model.neutral() if q0 is None else np.asarray(q0, dtype=float),
        "v0": np.zeros(model.nv) if v0 is None else np.asarray(v0, dtype=float),
        "efforts": np.zeros(model.nv) if efforts is None else efforts,
    }
    fixed = {
        "duration": duration,
        "step": step,
        "interval": duration if interval is None else interval,
        "integrator": integrator,
        "controller": controller,
        **options,
    }
    blocks = _Blocks(model, vary, given, fixed, seed, None if checkpoint is None else Path(checkpoint))
    results, computed = [], 0
    with Progress(f"ensemble of {model.name}", shown=progress) as bar:
        for first in range(0, members, block):
            found, new = blocks.result(range(first, min(members, first + block)))
            results.append(found)
            computed += new
            bar.at(min(members, first + block) / members)
    failures: dict[int, str] = {}
    for found in results:
        failures |= found["failures"]
    names = [key for key in results[0] if key.startswith("parameter:")]
    return Ensemble(
        model,
        results[0]["time"],
        np.concatenate([found["q"] for found in results]),
        np.concatenate([found["v"] for found in results]),
        {key.removeprefix("parameter:"): np.concatenate([r[key] for r in results]) for key in names},
        failures,
        seed,
        computed,
        fixed,
    )


class _Blocks:
    """Draws, computes, writes and reads blocks of members."""

    def __init__(
        self,
        model: Model,
        vary: Vary,
        given: Mapping[str, Any],
        fixed: Mapping[str, Any],
        seed: int,
        folder: Path | None,
    ) -> None:
        self.model, self.vary, self.given, self.fixed, self.seed = model, vary, given, fixed, seed
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        texts = [model.fingerprint, *(f"{key}={_text(value)}" for key, value in sorted(fixed.items()))]
        self.key = hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def result(self, members: range) -> tuple[dict[str, Any], int]:
        """The block, and how many members had to be computed for it."""
        draws, reasons = self.draw(members)
        path = None
        if self.folder is not None:
            digest = hashlib.sha256(self.key.encode())
            for key, value in sorted(draws.items()):
                digest.update(key.encode() + np.ascontiguousarray(value).tobytes())
            path = self.folder / f"block-{members.start:08d}-{members.stop:08d}-{digest.hexdigest()[:24]}.npz"
            found = _read(path)
            if found is not None:
                return found, 0
        found = self.compute(members, draws, reasons)
        if path is not None:
            _write(path, found)
        return found, len(members)

    def draw(self, members: range) -> tuple[dict[str, Array], dict[int, str]]:
        rows: dict[str, list[Array]] = {key: [] for key in ("q0", "v0", "efforts")}
        parameters: dict[str, list[float]] = {f"parameter:{name}": [] for name, _ in self.model.parameters}
        reasons: dict[int, str] = {}
        for member in members:
            drawn: Mapping[str, Any] = {}
            try:
                drawn = self.vary(np.random.default_rng([self.seed, member]))
            except Exception as error:
                reasons[member] = f"vary raised {type(error).__name__}: {error}"
            for key in drawn:
                if key not in DRAWN:
                    raise ArgumentError(unknown("ensemble: vary gives", key, DRAWN))
            for key, values in rows.items():
                values.append(self._numbers(key, drawn.get(key, self.given[key])))
            chosen = drawn.get("parameters", {})
            for name in chosen:
                if name not in self.model.parameter_values:
                    raise ArgumentError(
                        unknown("ensemble: vary: no parameter", name, self.model.parameter_values)
                    )
            for name, default in self.model.parameters:
                parameters[f"parameter:{name}"].append(float(chosen.get(name, default)))
        found = {key: np.array(values) for key, values in rows.items()}
        return found | {key: np.array(values) for key, values in parameters.items()}, reasons

    def _numbers(self, key: str, value: Any) -> Array:
        model = self.model
        if isinstance(value, Mapping):
            return model._by_name("ensemble", value, key)[1]
        return model._numbers("ensemble", key, value, model.nq if key == "q0" else model.nv, batch=False)

    def compute(
        self, members: range, draws: Mapping[str, Array], reasons: Mapping[int, str]
    ) -> dict[str, Any]:
        parameters = {
            key.removeprefix("parameter:"): values
            for key, values in draws.items()
            if key.startswith("parameter:")
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlembertWarning)  # members that fail are listed by name instead
            run = simulate(
                self.model,
                draws["q0"],
                draws["v0"],
                efforts=draws["efforts"],
                parameters=parameters or None,
                progress=False,
                **self.fixed,
            )
        failures = dict(reasons)
        for k, member in enumerate(members):
            good = np.isfinite(run.q[k]).all(axis=-1) & np.isfinite(run.v[k]).all(axis=-1)
            if member in reasons:
                run.q[k], run.v[k] = np.nan, np.nan
            elif not good.all():
                last = run.time[max(int(np.argmin(good)) - 1, 0)]
                failures[member] = f"the motion is not finite after t = {last:.9g} s"
        kept = {key: values for key, values in draws.items() if key.startswith("parameter:")}
        return {"time": run.time, "q": run.q, "v": run.v, "failures": failures, **kept}


def _text(value: Any) -> str:
    """What an option is, for the name of a block: functions by their code."""
    if isinstance(value, ca.Function):
        return str(value.serialize())
    if isinstance(value, Sampled):
        return f"Sampled({_text(value.law)}, {value.period}, {value.delay}, {value.quantum}, {value.offset})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(x) for x in value)}]"
    if isinstance(value, Mapping):
        return str({key: _text(x) for key, x in value.items()})
    if isinstance(value, np.ndarray):
        return f"{value.shape}{value.tobytes().hex()}"
    code = getattr(value, "__code__", None)
    if code is not None:
        return f"{value.__qualname__}{code.co_code.hex()}{code.co_consts}{code.co_names}"
    return repr(value)


def _write(path: Path, found: Mapping[str, Any]) -> None:
    """All of the file or nothing: under another name first, then moved."""
    failures = found["failures"]
    arrays = {key: value for key, value in found.items() if key != "failures"}
    arrays["failed"] = np.array(sorted(failures), dtype=np.int64)
    arrays["reasons"] = np.array([failures[k] for k in sorted(failures)], dtype=np.str_)
    handle, name = tempfile.mkstemp(prefix=".block-", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read(path: Path) -> dict[str, Any] | None:
    """A block, None where there is none; one that is damaged counts as none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found: dict[str, Any] = {key: file[key] for key in file.files}
        failed, reasons = found.pop("failed"), found.pop("reasons")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    found["failures"] = {int(k): str(reason) for k, reason in zip(failed, reasons, strict=True)}
    return found

"""`alembert bench MODEL`: how fast a model's algorithms are here; `alembert cache`: the compiled kernels on disk."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.cli import console
from alembert.cli.app import PROGRAM, Command, CommandGroup, Json, app, command, describe
from alembert.cli.models import Floating, PackageDirs, Strict, argument, complete_model, load_model, option
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.study.report import Grid

if TYPE_CHECKING:
    from alembert.model import Model


ROUND = 0.002
"""s of one repeat: shorter than a slice of the scheduler, so that the least of many is one that nobody interrupted"""

ALGORITHMS = (
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "energy",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
)


@dataclass(frozen=True)
class BenchRow:
    """Seconds of one algorithm."""

    algorithm: str
    first: float
    call: float
    state: float
    """in a batch, on all cores"""
    alone: float
    """in a batch, on one core"""
    peer: float | None


@command(
    "bench",
    panel=PROGRAM,
    examples=[
        ("alembert bench", "the 7-dof arm of the library"),
        ("alembert bench humanoid --batch 16384", "another model, larger batches"),
        ("alembert bench robot.urdf --json", "for programs"),
    ],
    keys={
        "model": "its name",
        "nv": "degrees of freedom",
        "batch": "states in a batch",
        "machine": "processor, cores and load (processes that wanted to run in the last minute)",
        "peer": "the program that was measured beside, or null, and why",
        "algorithms": "by name: first_call_s (compiled or from the cache), call_us, peer_call_us, "
        "batch_us (per state, all cores), batch_one_core_us",
    },
)
def bench(
    model: Annotated[
        str, argument("MODEL", "A file or a model of the library; arm7.", complete=complete_model)
    ] = "arm7",
    batch: Annotated[int, option("STATES", "In one call.")] = 1024,
    repeats: Annotated[int, option("COUNT", "The least of so many is taken.")] = 30,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
) -> None:
    """Measure the algorithms of a model: microseconds per call, and per state in a batch."""
    for name, value in (("--batch", batch), ("--repeats", repeats)):
        if value < 1:
            raise ArgumentError(f"{name} {value}: expected a positive whole number")
    found = load_model(model, floating, package_dir, strict)
    peer, why = _pinocchio(found)
    rows = []
    for name in ALGORITHMS:
        with console.working(f"{found.name}: {name}"):
            rows.append(_measure(found, name, batch, repeats, peer))
    data = {
        "model": found.name,
        "nv": found.nv,
        "batch": batch,
        "machine": _machine(),
        "peer": why,
        "algorithms": {
            row.algorithm: {
                "first_call_s": row.first,
                "call_us": 1e6 * row.call,
                "batch_us": 1e6 * row.state,
                "batch_one_core_us": 1e6 * row.alone,
                "peer_call_us": None if row.peer is None else 1e6 * row.peer,
            }
            for row in rows
        },
    }
    console.answer(data, as_json, _table(found, rows, batch, peer is not None), why, _conditions())


def _table(model: Model, rows: list[BenchRow], batch: int, with_peer: bool) -> Grid:
    head = ["algorithm", "first call [s]", "call [us]", "batch, one core", "batch, all cores"]
    lines = [
        [r.algorithm, f"{r.first:.2f}", *(f"{1e6 * x:.3g}" for x in (r.call, r.alone, r.state))] for r in rows
    ]
    if with_peer:
        head += ["Pinocchio [us]", "ratio"]
        for line, r in zip(lines, rows, strict=True):
            line += ["", ""] if r.peer is None else [f"{1e6 * r.peer:.3g}", f"{r.peer / r.call:.1f}"]
    return Grid.of(
        f"{model.name}, {model.nv} degrees of freedom; called from Python, batches of {batch} per state",
        head,
        lines,
    )


def _conditions() -> str:
    machine = _machine()
    load = machine["load"]
    busy = (
        f"; the load is {load:.1f}: times may be too long" if load and load > 0.5 * machine["cores"] else ""
    )
    return f"{machine['processor']}, {machine['cores']} cores; the least of the repeats{busy}"


def _machine() -> dict[str, Any]:
    from alembert.engine.target import host

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": host().cpu,
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "load": load,
    }


def _measure(model: Model, name: str, batch: int, repeats: int, peer: Any) -> BenchRow:

    from alembert.engine.kernel import limit_threads

    function = getattr(model, name)
    count = {"mass_matrix": 1, "energy": 2}.get(name, 3)
    many = _states(model, name, batch)[:count]
    one = tuple(x[0] for x in many)
    start = perf_counter()
    function(*one)
    first = perf_counter() - start
    with limit_threads(1):
        alone = best(lambda: function(*many), repeats) / batch
    other = None
    if peer is not None and name in peer:
        call = peer[name]
        other = best(lambda: call(*one), repeats)
    return BenchRow(
        name,
        first,
        best(lambda: function(*one), repeats),
        best(lambda: function(*many), repeats) / batch,
        alone,
        other,
    )


def _states(model: Model, name: str, batch: int) -> tuple[Any, Any, Any]:
    """Random ones; of a model with loops or couplings one at which they are closed, over and over."""
    import numpy as np

    rng = np.random.default_rng(0)
    if not model.is_constrained:
        q = np.array([model.random_configuration(rng) for _ in range(batch)])
        return q, *rng.normal(size=(2, batch, model.nv))
    v, x = rng.normal(size=(2, model.nv))
    for guess in (model.neutral(), *(model.random_configuration(rng) for _ in range(20))):
        try:
            state = model.assemble(guess, v)
        except NumericalError:
            continue
        if name.startswith("inverse"):
            x = model.forward_dynamics(state.q, state.v, x)
        return tuple(np.tile(part, (batch, 1)) for part in (state.q, state.v, x))  # type: ignore[return-value]
    raise NumericalError(f"bench: no configuration was found at which the loops of {model.name!r} are closed")


def best(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of a call: the least of the repeats, each of as many calls as the clock needs."""
    call()
    rounds, least, done = 1, float("inf"), 0
    while done < repeats:
        start = perf_counter()
        for _ in range(rounds):
            call()
        took = perf_counter() - start
        if took < ROUND and rounds < 1_000_000:
            rounds *= 2
            continue
        least = min(least, took / rounds)
        done += 1
    return least


def _pinocchio(model: Model) -> tuple[dict[str, Callable[..., Any]] | None, str]:
    """Pinocchio's functions of the same model, in its coordinates, and a sentence about them."""
    if find_spec("pinocchio") is None:
        return None, "Pinocchio is not installed; it would be measured beside (pip install pin)"
    import pinocchio as pin

    try:
        from alembert.verify.in_pinocchio import in_pinocchio

        other = in_pinocchio(model)
    except UnsupportedError as error:
        return None, f"no peer: {error}"
    import numpy as np

    data, q = other.createData(), pin.neutral(other)
    v, x = np.random.default_rng(0).normal(size=(2, other.nv))
    functions = {
        "forward_dynamics": lambda *_: pin.aba(other, data, q, v, x),
        "inverse_dynamics": lambda *_: pin.rnea(other, data, q, v, x),
        "mass_matrix": lambda *_: pin.crba(other, data, q),
        "forward_dynamics_derivatives": lambda *_: pin.computeABADerivatives(other, data, q, v, x),
        "inverse_dynamics_derivatives": lambda *_: pin.computeRNEADerivatives(other, data, q, v, x),
    }
    return functions, f"peer: Pinocchio {pin.__version__}, called from Python"


describe(
    "cache",
    panel=PROGRAM,
    examples=[
        ("alembert cache", "where the kernels are, how many, how large"),
        ("alembert cache clear", "remove them; they are compiled again when needed"),
    ],
    keys={
        "folder": "where the kernels are, or null when the cache is off",
        "kernels": "how many there are",
        "bytes": "their size",
        "removed": "(clear, and alone) how many were removed",
    },
)
cache = typer.Typer(cls=CommandGroup, invoke_without_command=True)
app.add_typer(cache, name="cache")


@cache.callback()
def _cache(context: typer.Context, as_json: Json = False) -> None:
    """Show or clear the compiled kernels kept on disk."""
    if context.invoked_subcommand is None:
        show(as_json)


@cache.command(cls=Command)
def show(as_json: Json = False) -> None:
    """Where the kernels are, how many, and how large."""
    from alembert.engine import cache as kernels

    folder = kernels.directory()
    entries, size = ([], 0) if folder is None else (kernels.entries(), kernels.size())
    text = f"{folder}: {_count(len(entries))}, {size / 1e6:.1f} MB" if folder else "the cache is off"
    console.answer({"folder": folder, "kernels": len(entries), "bytes": size}, as_json, text)


@cache.command(cls=Command)
def clear(as_json: Json = False) -> None:
    """Remove all kernels; they are compiled again when needed."""
    from alembert.engine import cache as kernels

    removed = kernels.clear()
    console.answer({"removed": removed}, as_json, f"removed {_count(removed)}")


def _count(kernels: int) -> str:
    return f"{kernels} kernel{'' if kernels == 1 else 's'}"

"""Ensembles: many motions with drawn starts, parameters and efforts, anywhere, that survive an interruption.

Every member draws from a generator of its own, seeded by the ensemble's seed and the member's number, and has
the same bits alone, in any block, on any number of threads, in other processes and on a cluster. So a block
that is there already need not be computed again: with a `checkpoint` folder each finished block is written,
and a run that was killed goes on with the blocks that are missing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alembert.arguments import check_known, whole
from alembert.errors import ArgumentError, NumericalError, warn
from alembert.model import Model
from alembert.model.model import check_model
from alembert.simulate import channels
from alembert.simulate.adaptive import ADAPTIVE
from alembert.simulate.choice import INTEGRATORS
from alembert.simulate.ensembles import backends as disk
from alembert.simulate.ensembles.backends import Backend, Checkpoint, backend
from alembert.simulate.ensembles.members import (
    Draws,
    Question,
    Vary,
    ignore_what_is_recorded,
    numbers,
    swept,
)
from alembert.simulate.ensembles.members import MemberBlock as MemberBlock
from alembert.simulate.ensembles.result import Ensemble as Ensemble
from alembert.simulate.ensembles.result import Statistics as Statistics
from alembert.simulate.feedback import states_of
from alembert.simulate.inputs import Table, no_table_alone
from alembert.simulate.records import (
    Progress,
    check_records,
    check_steps,
    check_times,
    tell_many_members,
)

LARGEST, SMALLEST, PARTS = 256, 8, 32
"""members in a block, and into how many blocks a small ensemble is cut"""
ATTEMPTS = 3
"""workers that a block may lose before its members count as failed"""


def ensemble(
    model: Model,
    vary: Vary | Mapping[str, Any],
    *,
    members: int | None = None,
    duration: float,
    step: float | None = None,
    q0: Any = None,
    v0: Any = None,
    interval: float | None = None,
    integrator: str = "rk4",
    controller: Any = None,
    efforts: Any = None,
    seed: int = 0,
    backend: str = "threads",
    workers: int | None = None,
    cluster: Any = None,
    block: int | None = None,
    checkpoint: str | Path | None = None,
    keep: bool = True,
    monitor: Callable[[Statistics], None] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Ensemble:
    """Simulate many motions; `vary` says what differs between them.

    Args:
        vary: a function of a random generator, one of its own for each of the `members`, that gives any of
            `q0`, `v0`, `efforts` and `parameters` (a mapping); or, for a sweep, a mapping of the same with a
            row for each member.
        q0, v0, efforts: where `vary` gives none, arrays or by joint; q0 is neutral by default. An effort may be a `Table`.
        integrator: any. Those with fixed steps run in the lanes of the vector registers, those with error
            control (and runs with `events`) one member after the other.
        interval: between records [s]; by default only the start and the end.
        seed: of the whole ensemble: of what `vary` draws, and of the noise of `sensors`.
        backend: "threads" (all cores), "batch" (one core), "processes", or "dask". The results are the same.
        workers: threads or processes; by default one for each core.
        cluster: with "dask", the scheduler's address, a `distributed.Client` or a cluster object; by default
            a cluster is started on this machine and closed at the end.
        block: members that are computed and written together.
        checkpoint: a folder for finished blocks; call again with the same arguments to go on after an
            interruption.
        keep: whether to keep all motions; without them there are the statistics.
        monitor: is called with the statistics so far, whenever a block has come.
        progress: whether to show a bar (by default on terminals, when it takes longer than a second).
        options: all others of `simulate`, as `wrenches`, `drives`, `gravity`, `prescribed`, `events` and `record`, whose
            quantities are in `recorded` for all members.
    """
    check_model("ensemble", model)
    check_known("ensemble: no integrator", integrator, INTEGRATORS)
    if integrator not in ADAPTIVE and step is None:
        raise ArgumentError(f"ensemble: integrator {integrator!r} needs a step; give step=..., in seconds")
    if isinstance(vary, Mapping):
        vary, members = swept(vary, members)
    elif not callable(vary):
        raise ArgumentError(
            f"ensemble: vary has type {type(vary).__name__!r}, expected a function of a random generator that returns what "
            "differs ({'q0': ...}), or a mapping for a sweep; states side by side go into simulate as a batch (..., nq)"
        )
    for name, value in (("members", members), ("block", 1 if block is None else block)):
        whole("ensemble", name, value, "a positive integer")
    seed = whole("ensemble", "seed", seed, "zero or a positive integer", least=0)
    if monitor is not None and not callable(monitor):
        raise ArgumentError(f"ensemble: monitor is {monitor!r}, expected a function of statistics")
    assert members is not None
    wanted = channels.requests(model, options.get("record", ()), states_of(controller))
    tables: dict[str, Table] = {}
    if isinstance(efforts, Table):
        raise ArgumentError(no_table_alone("ensemble", model))
    if isinstance(efforts, Mapping):
        tables = {name: x for name, x in efforts.items() if isinstance(x, Table)}
        efforts = {name: x for name, x in efforts.items() if name not in tables}
    given = {
        "q0": numbers(model, "q0", model.neutral() if q0 is None else q0),
        "v0": numbers(model, "v0", np.zeros(model.nv) if v0 is None else v0),
        "efforts": numbers(model, "efforts", np.zeros(model.nv) if efforts is None else efforts),
    }
    check_times("ensemble", duration, step, interval)
    interval = duration if interval is None else interval
    if step is not None:
        check_steps("ensemble", duration, step)
    if keep:
        check_records(
            "ensemble",
            duration,
            interval,
            members * (model.nq + model.nv),
            hint=", fewer members, or keep=False",
        )
    fixed = {
        "duration": duration,
        "step": step,
        "interval": interval,
        "integrator": integrator,
        "controller": controller,
        **options,
    }
    parts = blocks(members, block)
    run = _Ensemble(
        Question(model, fixed, seed, tables),
        Draws(model, vary, given, seed),
        parts,
        None
        if checkpoint is None
        else Checkpoint(
            Path(checkpoint),
            model.fingerprint,
            {
                **fixed,
                **({"tables": tables} if tables else {}),
                "noise": seed if fixed.get("sensors") else None,
            },
        ),
    )
    tell_many_members(members, duration, step)
    with warnings.catch_warnings():
        ignore_what_is_recorded()
        gathered = run.gather(backend, workers, cluster, keep, monitor, progress)
    return Ensemble(
        model,
        gathered.time,
        members,
        gathered.failures,
        gathered.events,
        {name: np.concatenate(values) for name, values in gathered.parameters.items()},
        seed,
        run.computed,
        gathered.statistics,
        (np.concatenate(gathered.q), np.concatenate(gathered.v)) if keep else None,
        tuple(one.of_members(gathered.time, gathered.recorded[one.name]) for one in wanted) if keep else (),
    )


@dataclass
class _Gathered:
    """Blocks put together, in the order of the members."""

    time: np.ndarray
    statistics: Statistics
    q: list[np.ndarray] = field(default_factory=list)
    v: list[np.ndarray] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    events: dict[int, Any] = field(default_factory=dict)
    parameters: dict[str, list[np.ndarray]] = field(default_factory=dict)
    recorded: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def add(self, members: range, block: MemberBlock, *, keep: bool) -> None:
        self.failures |= block.failures
        self.events |= block.events
        for name, values in block.parameters.items():
            self.parameters.setdefault(name, []).append(values)
        good = [k for k, member in enumerate(members) if member not in block.failures]
        x = np.concatenate([block.q[good], block.v[good]], axis=-1)
        self.statistics.add(x, members=len(members), failed=len(block.failures))
        if keep:
            self.q.append(block.q)
            self.v.append(block.v)
            for name, values in block.recorded.items():
                self.recorded.setdefault(name, []).append(values)


def blocks(members: int, size: int | None = None) -> list[range]:
    """The members that are computed together; whoever computes them, so that statistics have the same bits.

    Unless a size is given the first blocks are small, so that all workers begin while the driver draws, and so are the last,
    so that they end together: with equal blocks one of two workers would idle for half a block on average.
    """
    if size is not None:
        sizes = [size] * -(-members // size)
    else:
        size = min(LARGEST, max(SMALLEST, -(-members // (PARTS * SMALLEST)) * SMALLEST))
        halves = [size // part // SMALLEST * SMALLEST for part in (2, 4, 8) if size // part >= SMALLEST]
        first, last = halves[::-1], [x for x in halves for _ in range(2)]
        between, rest = divmod(members - sum(first) - sum(last), size)
        if between < 0:  # too few for that
            return blocks(members, size)
        sizes = [*first, *[size] * between, *([rest] if rest else []), *last]
    ends = np.minimum(np.cumsum(sizes), members).tolist()
    return [range(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]


ENOUGH = 8
"""members after which an ensemble is judged"""


def _stop_if_alike(failures: Mapping[int, str], done: int, total: int) -> None:
    """Raise where most members fail by the same error in the user's functions, which no further member would mend."""
    if done < min(ENOUGH, total):
        return
    kinds: dict[str, list[int]] = {}
    for member, reason in failures.items():
        kind = reason.partition(":")[0]
        if kind.endswith(("Error", "Exception")) and not kind.endswith("NumericalError"):
            kinds.setdefault(kind, []).append(member)
    for alike in kinds.values():
        if 2 * len(alike) > done:
            raise NumericalError(
                f"ensemble: {len(alike)} of the first {done} members failed alike, so the run was stopped; member "
                f"{alike[0]}: {failures[alike[0]]}"
            )


class _Ensemble:
    """A question, its members in blocks, and where finished blocks are kept."""

    def __init__(
        self, question: Question, draws: Draws, parts: list[range], checkpoint: Checkpoint | None
    ) -> None:
        self.question, self.draws, self.parts, self.checkpoint = question, draws, parts, checkpoint
        self.computed = 0

    def gather(
        self,
        name: str,
        workers: int | None,
        cluster: Any,
        keep: bool,
        monitor: Callable[[Statistics], None] | None,
        progress: bool | None,
    ) -> _Gathered:
        gathered: _Gathered | None = None
        slow = False
        total = self.parts[-1].stop
        with (
            self._interrupts_told(),
            backend(name, self.question, workers, cluster) as where,
            Progress(f"ensemble of {self.question.model.name}", shown=progress) as bar,
        ):
            for members, block in self._blocks(where):
                if gathered is None:
                    shape = len(block.time), block.q.shape[-1] + block.v.shape[-1]
                    gathered = _Gathered(block.time, Statistics(shape))
                gathered.add(members, block, keep=keep)
                _stop_if_alike(gathered.failures, members.stop, total)
                if block.slow and not slow:
                    slow = True
                    warn(
                        f"ensemble: members {members.start} to {members.stop - 1} (and others alike) were computed one "
                        f"after the other, which takes longer: together they failed with {block.slow}"
                    )
                failed = f", {len(gathered.failures)} failed" if gathered.failures else ""
                bar.at(members.stop / total, f"{members.stop} of {total} members{failed}")
                if monitor is not None:
                    monitor(gathered.statistics)
        assert gathered is not None
        return gathered

    @contextmanager
    def _interrupts_told(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            interrupted = KeyboardInterrupt()  # the other may have the run of one block
            interrupted.add_note(
                "ensemble: finished blocks are in the checkpoint; call again with the same arguments to go on"
                if self.checkpoint is not None
                else "ensemble: nothing is kept; with checkpoint=... what is finished is"
            )
            raise interrupted from None

    def _blocks(self, where: Backend) -> Iterator[tuple[range, MemberBlock]]:
        """All blocks in order; those ahead are computed meanwhile, as many as keep the workers busy."""
        ahead = 2 * where.workers + 1
        running: dict[Future[MemberBlock], _Task] = {}
        suspects: list[_Task] = []
        found: dict[int, MemberBlock] = {}
        sent = 0
        for k, members in enumerate(self.parts):
            while k not in found:
                while (
                    not suspects and sent < len(self.parts) and len(running) < ahead and sent < k + 4 * ahead
                ):
                    if where.grace and len(running) > where.workers:  # there is enough for them to do
                        time.sleep(where.grace)
                    task, block = self._prepare(self.parts[sent])
                    if block is not None:
                        found[sent] = block
                    else:
                        task.number = sent
                        running[where.submit(*task.block)] = task
                    sent += 1
                if suspects and not running:  # one at a time, to see with whom workers die
                    task = suspects.pop(0)
                    running[where.submit(*task.block)] = task
                if k not in found:
                    self._receive(where, running, suspects, found)
            yield members, found.pop(k)

    def _prepare(self, members: range) -> tuple[_Task, MemberBlock | None]:
        """What has to be computed, or the block if it is there."""
        draws, reasons = self.draws.of(members)
        path = None if self.checkpoint is None else self.checkpoint.path(members, draws)
        model = self.question.model
        block = None if path is None else disk.read(path, members, model.nq, model.nv)
        return _Task((members, draws, reasons), path), block

    def _receive(
        self,
        where: Backend,
        running: dict[Future[MemberBlock], _Task],
        suspects: list[_Task],
        found: dict[int, MemberBlock],
    ) -> None:
        """Wait for a block. When workers die, all that were under way are suspects, and go on one at a time.

        A block with which a worker dies alone is tried `ATTEMPTS` times, then its members one by one.
        """
        alone = len(running) == 1
        died = False
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            try:
                block = future.result()
            except CancelledError:
                raise NumericalError(
                    "ensemble: the cluster is gone; blocks that were finished are in the checkpoint, if there is one: call "
                    "again with the same arguments to go on"
                ) from None
            except BrokenExecutor:
                died = True
            except Exception as error:
                if type(error).__name__ != "KilledWorker":  # Dask's: it has tried several times itself
                    raise
                task.attempts = ATTEMPTS
            else:
                self._keep(task, block, found)
                continue
            task.attempts += alone
            if task.attempts < ATTEMPTS:
                suspects.append(task)
            elif len(task.block[0]) > 1:
                suspects += task.members()
            else:
                self._keep(task, _lost(self.question, task), found, computed=False)
        if died:
            suspects += running.values()
            running.clear()
            where.renew()
        suspects.sort(key=lambda task: task.block[0].start)

    def _keep(
        self, task: _Task, block: MemberBlock, found: dict[int, MemberBlock], *, computed: bool = True
    ) -> None:
        """A block that is finished; parts of one are put together when the last has come."""
        if computed:
            self.computed += len(task.block[0])
        if task.whole is None:
            if task.path is not None and computed:
                disk.write(task.path, block)
            found[task.number] = block
            return
        task.parts[task.block[0].start] = block
        if len(task.parts) == len(task.whole):
            found[task.number] = MemberBlock.joined([task.parts[k] for k in task.whole])


@dataclass
class _Task:
    block: tuple[range, dict[str, np.ndarray], dict[int, str]]
    path: Path | None
    number: int = 0
    attempts: int = 0
    whole: range | None = None
    """the members of the block of which this is one"""
    parts: dict[int, MemberBlock] = field(default_factory=dict)
    """the members of that block that are finished, shared by its tasks"""

    def members(self) -> list[_Task]:
        """A task for each member, not to be written: the next run tries the block again."""
        members, draws, reasons = self.block
        parts: dict[int, MemberBlock] = {}
        return [
            _Task(
                (
                    range(k, k + 1),
                    {name: x[k - members.start : k - members.start + 1] for name, x in draws.items()},
                    {k: reasons[k]} if k in reasons else {},
                ),
                None,
                self.number,
                whole=members,
                parts=parts,
            )
            for k in members
        ]


def _lost(question: Question, task: _Task) -> MemberBlock:
    """Members whose workers died with them; not written, so that the next run tries again."""
    members, draws, reasons = task.block
    reason = f"the worker died, {ATTEMPTS} times in a row, with member {members.start} alone"
    return question.one_by_one(members, draws, {**dict.fromkeys(members, reason), **reasons})

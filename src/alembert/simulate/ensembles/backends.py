"""Where blocks of members are computed: here, on threads, in processes, or on a Dask cluster.

All of them take a block's draws and give its answer; which one it was does not show in the answer. Processes
and Dask get the question as bytes with every block and keep it, with its compiled code, until another comes:
a worker that dies and is replaced needs nothing that only the old one had.

Blocks on disk: each under a name that says what it holds, written at once or not at all.

The name has a digest of the question (the model, every option, functions by what they do) and of all numbers
drawn. A block that is there under its name therefore is the answer, whoever computed it and when.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pickle
import signal
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np

from alembert.arguments import check_known, whole
from alembert.engine.kernel import limit_threads, processors
from alembert.errors import ArgumentError, FileError, NumericalError, UnsupportedError
from alembert.meaning import meaning
from alembert.simulate.ensembles.members import MemberBlock, Question, ignore_what_is_recorded


class Checkpoint:
    """A folder of blocks for one question."""

    def __init__(self, folder: Path, model: str, options: Mapping[str, Any]) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"ensemble: checkpoint {folder}: is no folder that can be written: {error.strerror}"
            ) from None
        texts = [model, *(f"{key}={meaning(value)}" for key, value in sorted(options.items()))]
        self.key = hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def path(self, members: range, draws: Mapping[str, np.ndarray]) -> Path:
        digest = hashlib.sha256(self.key.encode())
        for key, value in sorted(draws.items()):
            digest.update(key.encode() + np.ascontiguousarray(value).tobytes())
        return self.folder / f"block-{members.start:08d}-{members.stop:08d}-{digest.hexdigest()[:24]}.npz"


def write(path: Path, block: MemberBlock) -> None:
    """All of the file or nothing: under another name first, then moved."""
    try:
        handle, name = tempfile.mkstemp(prefix=".block-", suffix=".part", dir=path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **block.to_arrays())  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise _cannot_write(path, error) from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _cannot_write(path: Path, error: OSError) -> FileError:
    return FileError(
        f"ensemble: checkpoint {path.parent}: cannot be written: {error.strerror}; blocks that are there stay, call again "
        "with the same arguments to go on"
    )


def read(path: Path, members: range, nq: int, nv: int) -> MemberBlock | None:
    """A block, None where there is none; one that is damaged, or is no block of these members, counts as none."""
    try:
        stored = path.stat().st_size
        with np.load(path, allow_pickle=False) as file:
            if sum(entry.file_size for entry in file.zip.infolist()) > stored:  # blocks are not compressed
                return None
            block = MemberBlock.from_arrays({key: file[key] for key in file.files})
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        EOFError,
        NotImplementedError,
        zipfile.BadZipFile,
    ):
        return None
    return block if block.fits(members, nq, nv) else None


BACKENDS = ("batch", "threads", "processes", "dask")
GRACE = 0.003
Submit = Callable[[range, Mapping[str, np.ndarray], Mapping[int, str]], "Future[MemberBlock]"]


class Backend:
    """`submit` a block; `workers` compute at a time; `renew` after workers have died.

    `grace` [s] is how long a worker here takes from one block to the next. If the driver drew members meanwhile, the two
    would hand the interpreter's lock to and fro a thousand times a second, with a core idle each time.
    """

    def __init__(
        self, submit: Submit, workers: int, renew: Callable[[], None] | None = None, grace: float = 0.0
    ) -> None:
        self.submit, self.workers, self.grace = submit, workers, grace
        self.renew = renew or (lambda: None)


@contextmanager
def backend(name: str, question: Question, workers: int | None, cluster: Any) -> Iterator[Backend]:
    check_known("ensemble: no backend", name, BACKENDS)
    if workers is not None:
        whole("ensemble", "workers", workers, "a positive integer")
    if cluster is not None and name != "dask":
        raise ArgumentError(f"ensemble: cluster is given with backend {name!r}; it goes with backend='dask'")
    opened = {"batch": _batch, "threads": _threads, "processes": _processes}.get(name)
    if opened is not None:
        with opened(question, workers or processors()) as found:
            yield found
    else:
        with _dask(question, workers, cluster) as found:
            yield found


# --- here ---------------------------------------------------------------------------------------------------------


def _alone(question: Question, *block: Any) -> MemberBlock:
    """On one core: as many blocks are computed at a time as there are workers."""
    with limit_threads(1):
        return question.answer(*block)


@contextmanager
def _batch(question: Question, workers: int) -> Iterator[Backend]:
    def submit(*block: Any) -> Future[MemberBlock]:
        future: Future[MemberBlock] = Future()
        try:
            future.set_result(_alone(question, *block))
        except BaseException as error:
            future.set_exception(error)
        return future

    yield Backend(submit, 1)


@contextmanager
def _threads(question: Question, workers: int) -> Iterator[Backend]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ensemble")
    try:
        yield Backend(functools.partial(pool.submit, _alone, question), workers, grace=GRACE)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# --- elsewhere ----------------------------------------------------------------------------------------------------


def _packed(question: Question) -> tuple[str, bytes]:
    """A question for another process; functions defined anywhere, where cloudpickle is installed."""
    try:
        import cloudpickle as pickler  # comes with Dask
    except ImportError:
        pickler = pickle
    try:
        packed = pickler.dumps(question)
    except Exception as error:
        raise UnsupportedError(
            f"ensemble: a controller or another option cannot be sent to other processes ({error}); define it at the top of "
            "a module, or choose backend='threads'"
        ) from None
    return hashlib.sha256(packed).hexdigest(), packed


_QUESTIONS: dict[str, Question] = {}
"""the last that this process was asked, by its digest"""


def _unpacked(digest: str, packed: bytes) -> Question:
    if digest not in _QUESTIONS:
        ignore_what_is_recorded()
        _QUESTIONS.clear()
        _QUESTIONS[digest] = pickle.loads(packed)  # the driver's own bytes
    return _QUESTIONS[digest]


UNGUARDED = (
    "ensemble: the worker processes could not start. They import the script that starts them: put the call of ensemble "
    "under if __name__ == '__main__':, or choose backend='threads'"
)
POOL_ERRORS = (OSError, RuntimeError)
"""of a pool without workers: they were dead before their pipe was written, or there can be none; what the model and its
controllers raise comes with the result"""


def _refuse_importing() -> None:
    """A worker that imports an unguarded script arrives here again."""
    if getattr(current_process(), "_inheriting", False):
        raise UnsupportedError(UNGUARDED)


def _end_with_driver() -> None:
    """A worker whose driver is killed ends at once, in the middle of a block if need be."""
    parent = parent_process()
    if parent is None:
        return

    def follow() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, name="follow the driver", daemon=True).start()


def _remote(digest: str, packed: bytes, *block: Any) -> MemberBlock:
    return _alone(_unpacked(digest, packed), *block)


def _start(pool: ProcessPoolExecutor) -> None:
    """Wait for the first worker; where there is none, say why."""
    started: list[Any] = []
    try:
        first = pool.submit(os.getpid)
        started = list((getattr(pool, "_processes", None) or {}).values())
        first.result()
    except (BrokenExecutor, *POOL_ERRORS) as error:
        for process in started:
            process.join(1.0)
        signals = [-process.exitcode for process in started if (process.exitcode or 0) < 0]
        killed = [
            number for number in signals if number != signal.SIGTERM
        ]  # by which a broken pool ends the others
        if killed:
            raise NumericalError(
                f"ensemble: a worker process was killed while it started (signal {killed[0]}): there may be too little "
                "memory for so many; give fewer workers=..., or choose backend='threads'"
            ) from None
        raise UnsupportedError(UNGUARDED) from error


@contextmanager
def _processes(question: Question, workers: int) -> Iterator[Backend]:
    _refuse_importing()
    digest, packed = _packed(question)
    pools: list[ProcessPoolExecutor] = []

    def renew() -> None:
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        pools[:] = [ProcessPoolExecutor(workers, get_context("spawn"), initializer=_end_with_driver)]

    def submit(*block: Any) -> Future[MemberBlock]:
        try:
            return pools[0].submit(_remote, digest, packed, *block)
        except POOL_ERRORS:
            lost: Future[MemberBlock] = Future()
            lost.set_exception(BrokenExecutor())
            return lost

    renew()
    try:
        _start(pools[0])
        yield Backend(submit, workers, renew)
    finally:
        # waits for a broken pool too: its thread closes the pipe by which the interpreter, if it ends now, wakes it
        pools[0].shutdown(wait=True, cancel_futures=True)


def _credentials() -> Any:
    """A key and a certificate of this run's own: whoever has not got them can neither send work nor read results."""
    from distributed import Security

    try:
        return Security.temporary()
    except ImportError:
        raise UnsupportedError(
            "ensemble: backend 'dask' starts a cluster that only this run can use, and needs the package cryptography for "
            'its key; pip install "alembert[cluster]", or give cluster=...'
        ) from None


@contextmanager
def _dask(question: Question, workers: int | None, cluster: Any) -> Iterator[Backend]:
    """On a cluster: an address, a `distributed.Client` or a cluster object; None starts one on this machine."""
    try:
        from dask import config
        from distributed import Client, LocalCluster
    except ImportError:
        raise UnsupportedError(
            "ensemble: backend 'dask' needs Dask; pip install \"alembert[cluster]\""
        ) from None
    own: Any = None
    given = isinstance(cluster, Client)
    if cluster is None:
        _refuse_importing()
        pages: dict[str, list[str]] = {
            "distributed.scheduler.http.routes": [],
            "distributed.worker.http.routes": [],
        }
        try:
            with config.set(pages):  # no pages, which know no certificates
                cluster = own = LocalCluster(
                    n_workers=workers or processors(),
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    protocol="tls://",
                    security=_credentials(),
                    silence_logs=logging.CRITICAL,
                )
        except RuntimeError:
            raise UnsupportedError(UNGUARDED) from None
    client = cluster if given else Client(cluster)
    if own is not None:
        client.run(_end_with_driver)
    digest, packed = _packed(question)
    executor = client.get_executor(pure=False)
    try:
        threads = sum(client.nthreads().values())
        yield Backend(lambda *block: executor.submit(_remote, digest, packed, *block), max(1, threads))
    finally:
        with suppress(Exception):  # the cluster may be gone
            executor.shutdown(wait=False)
        if not given:
            client.close()
        if own is not None:
            own.close()

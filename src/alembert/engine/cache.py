"""Machine code kept between runs.

The cache is a directory of files, one for each kernel and lane width. ALEMBERT_CACHE names the directory,
or is `off`. Since the files hold machine code, they are only read from a directory that belongs to the
user and that nobody else can write; otherwise Alembert warns once and works without a cache. A file's
name is a digest of everything that its content depends on. It is written under a temporary name and moved
into place, so that a reader sees all of it or nothing, and carries a checksum, so that a damaged file is
noticed and built again. Any failure to write is ignored.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from alembert.errors import AlembertWarning

SIZE_LIMIT = 512 * 1024**2  # bytes; the least recently used entries go first
KERNEL, RECORD, SHARED = (
    ".alo",
    ".als",
    ".alc",
)  # suffixes: machine code; what all kernels depend on; what they share
_MAGIC = b"alembert-object-2\n"
_MOST = {RECORD: 20, SHARED: 200}  # files of a suffix


class Entry(NamedTuple):
    """One file of the cache."""

    path: Path
    size: int  # bytes
    used: float  # seconds since the epoch


def directory() -> Path | None:
    """Where the cache is, whether or not it exists yet; None when it is switched off."""
    setting = os.environ.get("ALEMBERT_CACHE", "")
    if setting.lower() == "off":
        return None
    if setting:
        return Path(setting).expanduser()
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "alembert" / "cache"
        )
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "alembert"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alembert"


def load(name: str, suffix: str = KERNEL) -> tuple[dict[str, Any], bytes] | None:
    """The properties and machine code of an entry; None when it is not there, or not whole."""
    folder = _trusted()
    if folder is None:
        return None
    path = f"{folder}/{name}{suffix}"
    try:
        with open(path, "rb", buffering=0) as file:
            if not _private(os.fstat(file.fileno())):
                return None
            data = file.read()
    except OSError:
        return None
    size = len(_MAGIC) + hashlib.sha256().digest_size
    checksum, content = data[len(_MAGIC) : size], data[size:]
    if not data.startswith(_MAGIC) or hashlib.sha256(content).digest() != checksum:
        return None
    head, _, code = content.partition(b"\n")
    with contextlib.suppress(OSError):
        os.utime(path)
    return ast.literal_eval(head.decode()), code


def store(name: str, properties: dict[str, Any], code: bytes, suffix: str = KERNEL) -> None:
    """`properties` are literals."""
    folder = _trusted(create=True)
    if folder is None:
        return
    content = repr(properties).encode() + b"\n" + code
    data = _MAGIC + hashlib.sha256(content).digest() + content
    import tempfile

    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp", delete=False) as file:
            temporary = file.name
            file.write(data)
        os.replace(temporary, folder / (name + suffix))
        if suffix in _MOST:
            _forget(folder, suffix)
        elif _due(name, len(data)):
            _trim(folder)
    except OSError:
        if temporary is not None:
            _remove(Path(temporary))


def entries() -> list[Entry]:
    """What the cache holds, most recently used first."""
    folder = directory()
    if folder is None:
        return []
    return sorted(_scan(folder), key=lambda entry: entry.used, reverse=True)


def size() -> int:
    """Bytes in the cache."""
    return sum(entry.size for entry in entries())


def clear() -> int:
    """Remove all entries; how many there were."""
    found = entries()
    folder = directory()
    others = [] if folder is None else [entry for suffix in _MOST for entry in _scan(folder, suffix)]
    for entry in (*found, *others):
        _remove(entry.path)
    return len(found)


def _scan(folder: Path, suffix: str = KERNEL) -> Iterator[Entry]:
    try:
        paths = [path for path in folder.iterdir() if path.suffix == suffix]
    except OSError:
        return
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        yield Entry(path, status.st_size, status.st_mtime)


def _due(name: str, size: int) -> bool:
    """Whether this entry is the one that counts what there is: on average once in a 64th of the limit.

    Looking at all entries costs 0.3 s when a full cache has 20 000 of them, which is more than most kernels take to
    compile. A digest is as good as a random number, and needs nothing that processes would have to share.
    """
    return int(name[:12], 16) / 16**12 < size / (SIZE_LIMIT / 64)


def _trim(folder: Path) -> None:
    """Remove the least recently used entries beyond the size limit."""
    found = sorted(_scan(folder), key=lambda entry: entry.used)
    excess = sum(entry.size for entry in found) - SIZE_LIMIT
    for entry in found:
        if excess <= 0:
            break
        _remove(entry.path)
        excess -= entry.size


def _forget(folder: Path, suffix: str) -> None:
    """Remove all but the most recently used ones; every edit of Alembert and every boot make a new one."""
    for entry in sorted(_scan(folder, suffix), key=lambda entry: entry.used)[: -_MOST[suffix]]:
        _remove(entry.path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _trusted(*, create: bool = False) -> Path | None:
    """The directory, if machine code from it can be trusted."""
    folder = directory()
    if folder is None:
        return None
    try:
        if create:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:
        return None
    problem = _problem(status)
    if problem is not None:
        _warn(str(folder), problem)
        return None
    return folder


def _problem(status: os.stat_result) -> str | None:
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a directory"
    return None if _private(status) else "it belongs to another user, or others can write to it"


def _private(status: os.stat_result) -> bool:
    if sys.platform == "win32":  # the directories of a user's profile are private there
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def _warn(folder: str, problem: str) -> None:
    advice = "set ALEMBERT_CACHE to a private directory, or to off"
    message = f"the cache of compiled kernels in {folder} is not used: {problem}; {advice}"
    warnings.warn(message, AlembertWarning, stacklevel=2)

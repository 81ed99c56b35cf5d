"""Machine code kept between runs.

The cache is a directory of files: one for each kernel and lane width, with its constants, and one for each module of machine
code, which kernels that differ in their constants alone have in common. ALEMBERT_CACHE names the directory, or is `off`.
Since the files hold machine code, they are only read from a directory that belongs to the
user and that nobody else can write; otherwise Alembert warns once and works without a cache. A file's
name is a digest of everything that its content depends on. It is written under a temporary name and moved
into place, so that a reader sees all of it or nothing, and carries a checksum of its name and content, so that a damaged
file, or that of another kernel under this name, is noticed and built again. Any failure to write is ignored.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca

from alembert.engine.target import Target, versions
from alembert.errors import AlembertWarning
from alembert.meaning import AT_IMPORT

SIZE_LIMIT = 512 * 1024**2  # bytes; the least recently used entries go first
KERNEL, MODULE, SHARED, _TEMPORARY = ".alo", ".alm", ".alc", ".tmp"
"""suffixes: kernels, their machine code, what all of them call, what is being written"""
_ABANDONED = 3600.0  # s; a temporary file this old belongs to a process that was killed
_MAGIC = b"alembert-object-4\n"


class CacheFile(NamedTuple):
    """One file of the cache."""

    path: Path
    size: int  # bytes
    used: float  # seconds since the epoch


def digest(key: str, lanes: int, target: Target) -> str:
    """The name of machine code: `key` says what it computes, the rest by which processor and with which software."""
    parts = [key, str(lanes), repr(target), *versions(), ca.CasadiMeta.version(), AT_IMPORT]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def module_digest(text: str, level: int, target: Target) -> str:
    """The name of the machine code that LLVM makes of a text; Alembert's own version does not matter."""
    parts = [text, str(level), repr(target.compiling()), *versions()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def directory() -> Path | None:
    """Where the cache is, whether or not it exists yet; None when it is switched off, or its place is not known."""
    setting = os.environ.get("ALEMBERT_CACHE", "")
    if setting.lower() == "off":
        return None
    try:
        return Path(setting).expanduser() if setting else _default()
    except RuntimeError:  # no such user, or one without a home: a container with any user number
        _warn(setting or "the user's home", "there is no such home directory")
        return None


def _default() -> Path:
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
    if not data.startswith(_MAGIC) or _checksum(name + suffix, content) != checksum:
        return None
    head, _, code = content.partition(b"\n")
    with contextlib.suppress(OSError):
        os.utime(path)
    return ast.literal_eval(head.decode()), code


def has(name: str) -> bool:
    """Whether there is a kernel of this name, whole or not."""
    folder = _trusted()
    return folder is not None and os.path.exists(f"{folder}/{name}{KERNEL}")


def store(name: str, properties: dict[str, Any], code: bytes, suffix: str = KERNEL) -> bool:
    """Keep an entry, whose `properties` are literals; whether it is kept."""
    folder = _trusted(create=True)
    if folder is None:
        return False
    content = repr(properties).encode() + b"\n" + code
    data = _MAGIC + _checksum(name + suffix, content) + content
    temporary = None
    try:
        _sweep(folder)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=_TEMPORARY, delete=False) as file:
            temporary = file.name
            file.write(data)
        os.replace(temporary, folder / (name + suffix))
        if _due(name, len(data)):
            _trim(folder)
        return True
    except OSError:
        if temporary is not None:
            _remove(Path(temporary))
        return False


def _checksum(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def entries() -> list[CacheFile]:
    """The kernels in the cache, most recently used first."""
    folder = directory()
    if folder is None:
        return []
    return sorted(_scan(folder, KERNEL), key=lambda entry: entry.used, reverse=True)


def size() -> int:
    """Bytes in the cache."""
    folder = directory()
    return 0 if folder is None else sum(entry.size for entry in _scan(folder, KERNEL, MODULE, SHARED))


def clear() -> int:
    """Remove all entries; how many there were."""
    found = entries()
    folder = directory()
    others = [] if folder is None else _scan(folder, MODULE, SHARED, _TEMPORARY)
    for entry in (*found, *others):
        _remove(entry.path)
    return len(found)


def _scan(folder: Path, *suffixes: str) -> Iterator[CacheFile]:
    try:
        paths = [path for path in folder.iterdir() if path.suffix in suffixes]
    except OSError:
        return
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        yield CacheFile(path, status.st_size, status.st_mtime)


def _due(name: str, size: int) -> bool:
    """Whether this entry is the one that counts what there is: on average once in a 64th of the limit.

    Looking at all entries costs 0.3 s when a full cache has 20 000 of them, which is more than most kernels take to
    compile. A digest is as good as a random number, and needs nothing that processes would have to share.
    """
    return int(name[:12], 16) / 16**12 < size / (SIZE_LIMIT / 64)


def _trim(folder: Path) -> None:
    """Remove the least recently used entries beyond the size limit."""
    found = sorted(_scan(folder, KERNEL, MODULE, SHARED), key=lambda entry: entry.used)
    excess = sum(entry.size for entry in found) - SIZE_LIMIT
    for entry in found:
        if excess <= 0:
            break
        _remove(entry.path)
        excess -= entry.size


@functools.cache
def _sweep(folder: Path) -> None:
    """Remove what killed processes left, once in a process."""
    for entry in _scan(folder, _TEMPORARY):
        if entry.used < time.time() - _ABANDONED:
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

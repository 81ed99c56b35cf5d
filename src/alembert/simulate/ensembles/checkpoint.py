"""Blocks on disk: each under a name that says what it holds, written at once or not at all.

The name has a digest of the question (the model, every option, functions by what they do) and of all numbers
drawn. A block that is there under its name therefore is the answer, whoever computed it and when.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from alembert.errors import FileError
from alembert.meaning import meaning
from alembert.simulate.ensembles.members import MemberBlock


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

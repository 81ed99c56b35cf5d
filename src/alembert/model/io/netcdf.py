"""netCDF files, which others may have damaged or made: read whole, within bounds, or a `FileError` that names the file."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alembert.errors import AlembertError, FileError, UnsupportedError, writing

if TYPE_CHECKING:
    from xarray import Dataset

LARGEST = 8_000_000_000
"""Bytes of all variables, as they are in memory"""


def imported_xarray(function: str) -> Any:
    """The module; `function` is who needs it, for the message if it is not installed."""
    try:
        import xarray
    except ImportError:
        raise UnsupportedError(f'{function}: xarray is not installed; pip install "alembert[data]"') from None
    return xarray


def read(path: str | os.PathLike[str], function: str) -> Dataset:
    """The content of a file; `function` is who needs it, for the message if xarray is not installed."""
    xarray = imported_xarray(function)
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(mode):
        raise FileError(f"{path}: is not a regular file")
    with damage_told(path, "is no readable netCDF file"):
        _check_sum(path)
    with damage_told(path, "is no readable netCDF file"), xarray.open_dataset(path) as data:
        size = sum(int(variable.nbytes) for variable in data.variables.values())
        if size > LARGEST:
            raise FileError(f"{path}: would take {size} bytes; at most {LARGEST} are read")
        return data.load()


def write(data: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a data set, and behind what others read, a checksum of it.

    In memory first: where the disk is full, HDF5 closes its file again and again, and crashes.
    """
    buffer = io.BytesIO()
    store = imported_xarray("save").backends.H5NetCDFStore.open(buffer, mode="w", lock=False)
    data.dump_to_store(store)
    store.close()
    content = buffer.getbuffer()
    with writing(path), open(path, "wb") as file:
        file.write(content)
        file.write(_MARK + hashlib.sha256(content).digest())


def _check_sum(path: Path) -> None:
    """A `FileError` for a file of ours whose content has changed; HDF5 may not return from such a file."""
    size, whole = len(_MARK) + hashlib.sha256().digest_size, hashlib.sha256()
    with path.open("rb") as file:
        left = path.stat().st_size - size
        while left > 0 and (part := file.read(min(left, 1 << 20))):
            whole.update(part)
            left -= len(part)
        end = file.read(size)
    if end.startswith(_MARK) and end != _MARK + whole.digest():
        raise FileError(f"{path}: is damaged: its content is not what was written")


_MARK = b"\nalembert sha256 "


@contextmanager
def damage_told(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Whatever fails inside is a `FileError` that names the file: on damaged data, libraries raise what they happen to."""
    try:
        yield
    except AlembertError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()).partition(". ")[0]  # xarray goes on with advice on its backends
        raise FileError(f"{os.fspath(path)}: {what}: {type(error).__name__}: {reason[:300]}") from None


def unzipped(content: bytes, largest: int) -> bytes:
    """The content of compressed bytes; a `ValueError` where it has more than `largest` bytes."""
    unzip = zlib.decompressobj()
    text = unzip.decompress(content, largest)
    if not unzip.eof:
        raise ValueError(f"it is cut off, or has more than {largest} bytes")
    return text


def array(data: Any, name: str, path: str | os.PathLike[str], dimensions: int | None = None) -> Any:
    """A variable's numbers, or a `FileError` where it is missing or has another form."""
    import numpy as np

    if name not in data:
        raise FileError(f"{os.fspath(path)}: has no variable {name!r}, expected records of a simulation")
    with damage_told(path, f"variable {name!r} does not hold numbers"):
        found = np.asarray(data[name].values, dtype=float)
    if dimensions is not None and found.ndim != dimensions:
        raise FileError(
            f"{os.fspath(path)}: variable {name!r} has {found.ndim} dimensions, expected {dimensions}"
        )
    return found

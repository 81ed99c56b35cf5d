"""The numbers of a flexible body in a file beside the model's: an `.npz` of NumPy, named in the model with its SHA-256.

Its arrays are the fields of `ModalBody` by their names; those of the nodes are stacked, `nodes.shapes` and so on, with
`nodes.name`. Where only some nodes have a field, `nodes.mass.of` says which. Texts (modes, units,
stiffening) stay in the model's file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from alembert.errors import FileError
from alembert.expression import Expression
from alembert.model.io.location import read_bytes
from alembert.model.modal import MassBeyond, ModalBody, ModalNode

LARGEST = 1_000_000_000
"""bytes of a side file, and of its arrays in memory"""
TEXTS = ("modes", "units", "stiffening")
"""fields of a flexible body that stay in the model's file"""
NUMBERS = tuple(field.name for field in dataclasses.fields(ModalBody) if field.name not in (*TEXTS, "nodes"))
_BEYOND = tuple(f"beyond.{field.name}" for field in dataclasses.fields(MassBeyond))
OF_NODES = (
    *(field.name for field in dataclasses.fields(ModalNode) if field.name not in ("name", "beyond")),
    *_BEYOND,
)


def has_formulas(body: ModalBody) -> bool:
    """Whether some of its numbers are expressions of parameters, which only a text can hold."""
    parts = [(body, NUMBERS), *((node, OF_NODES) for node in body.nodes)]
    return any(_has_expression(_field(part, name)) for part, names in parts for name in names)


def pack(body: ModalBody) -> bytes:
    """The content of a side file; the same body gives the same bytes."""
    arrays: dict[str, np.ndarray] = {}
    for name in NUMBERS:
        if getattr(body, name) is not None:
            arrays[name] = np.array(getattr(body, name), dtype=float)
    arrays["nodes.name"] = np.array([node.name for node in body.nodes], dtype=str)
    for name in OF_NODES:
        values = [_field(node, name) for node in body.nodes]
        rows = [k for k, value in enumerate(values) if value is not None]
        if rows:
            arrays[f"nodes.{name}"] = np.array([values[k] for k in rows], dtype=float)
        if 0 < len(rows) < len(values):
            arrays[f"nodes.{name}.of"] = np.array(rows)
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unpack(path: Path, expected: str | None, texts: Mapping[str, Any]) -> ModalBody:
    """The body whose numbers are in a file with the expected SHA-256; `texts` are the fields that the model's file gives."""
    content = read_bytes(path, LARGEST)
    found = digest(content)
    if expected is None:
        raise FileError(
            f'{path}: its sha256 is not given; if this is the file that you mean, add sha256 = "{found}"'
        )
    if found != expected.lower():
        raise FileError(
            f"{path}: the file has changed since the model was written: its sha256 is {found}, the model expects {expected}"
            "; bring the old file back, save the model again, or, if the new numbers are meant, write the new sha256"
        )
    arrays = _arrays(path, content)
    known = {*NUMBERS, "nodes.name"} | {f"nodes.{name}{end}" for name in OF_NODES for end in ("", ".of")}
    for name in arrays:
        if name not in known:
            raise FileError(f"{path}: array {name!r} is no field of a flexible body")
    names = [str(name) for name in np.ravel(arrays.get("nodes.name", ()))]
    nodes: list[dict[str, Any]] = [{"name": name} for name in names]
    for name in OF_NODES:
        if f"nodes.{name}" not in arrays:
            continue
        rows = arrays.get(f"nodes.{name}.of", np.arange(len(names)))
        values = arrays[f"nodes.{name}"].tolist()
        if len(rows) != len(values) or np.any((rows < 0) | (rows >= len(names))):
            raise FileError(
                f"{path}: array 'nodes.{name}' has {len(values)} entries for {len(rows)} of {len(names)} nodes"
            )
        for k, value in zip(rows, values, strict=True):
            nodes[int(k)][name] = value
    required = [field.name for field in dataclasses.fields(ModalNode) if field.default is dataclasses.MISSING]
    for node in nodes:
        beyond = {name.removeprefix("beyond."): node.pop(name) for name in _BEYOND if name in node}
        for name in [*required, *(_BEYOND if beyond else ())]:
            if name not in node and name.removeprefix("beyond.") not in beyond:
                raise FileError(f"{path}: node {node['name']!r} has no {name}")
        node["beyond"] = MassBeyond(**beyond) if beyond else None
    fields = {name: arrays[name].tolist() for name in NUMBERS if name in arrays}
    for field in dataclasses.fields(ModalBody):
        if field.default is dataclasses.MISSING and field.name not in {*fields, *texts}:
            raise FileError(f"{path}: has no array {field.name!r}; expected the fields of a flexible body")
    return ModalBody(**texts, **fields, nodes=tuple(ModalNode(**node) for node in nodes))


def _arrays(path: Path, content: bytes) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > LARGEST:
            raise FileError(f"{path}: its arrays would take {size} bytes; at most {LARGEST} are read")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: is no readable .npz file of NumPy: {error}") from None
    for name, array in arrays.items():
        expected = {"nodes.name": "U", "of": "iu"}.get(
            name if name == "nodes.name" else name.rpartition(".")[2], "f"
        )
        if array.dtype.kind not in expected:
            raise FileError(f"{path}: array {name!r} is of type {array.dtype}, expected {_KINDS[expected]}")
        if expected == "f" and not np.isfinite(array).all():
            at = [int(k) for k in np.argwhere(~np.isfinite(array))[0]]
            raise FileError(f"{path}: array {name!r} has a number at {at} that is not finite")
    return arrays


_KINDS = {"U": "texts", "iu": "whole numbers", "f": "floats"}


def _field(part: Any, name: str) -> Any:
    """A field, or a field of one (`beyond.mass`), or None."""
    for key in name.split("."):
        part = None if part is None else getattr(part, key)
    return part


def _has_expression(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_expression, value))
    return isinstance(value, Expression)

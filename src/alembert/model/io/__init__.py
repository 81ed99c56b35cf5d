"""Model files: one module per format, and `load` and `save`, which choose by the file's suffix."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from alembert.arguments import check_known
from alembert.errors import ArgumentError
from alembert.model.io.location import LARGEST_XML, read_bytes
from alembert.model.model import Model

NATIVE = (".toml", ".yaml", ".yml")
URDF = (".urdf",)
MJCF = (".xml", ".mjcf")
SDF = (".sdf",)
USD = (".usda",)
"""these two are written only"""

_PROLOGUE = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->", re.DOTALL)
_ROOT = re.compile(rb"<([\w:.-]+)")


def load(path: str | os.PathLike[str], *, strict: bool = False, **options: Any) -> Model:
    """The model in a file, by its suffix.

    `.toml`, `.yaml`, `.yml` are Alembert's own format; `.urdf` takes `floating=`, `package_dirs=`,
    `unphysical=` and `extensions=` (see `load_urdf`); `.xml` and `.mjcf` are MJCF and take `unphysical=` and
    `actuators=` (see `load_mjcf`), or URDF when the root is `<robot>`.

    Files of real robots are read with one warning that names what was kept, changed or left out; `strict=True`
    refuses what is unphysical or would change the physics. Alembert's own format is always strict.
    """
    reader = _reader(path)
    known = [name for name, p in inspect.signature(reader).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        check_known(f"load: {os.fspath(path)} takes no option", name, known)
    if "strict" in known:
        options["strict"] = strict
    return reader(path, **options)


def save(model: Model, path: str | os.PathLike[str], *, side_files: bool = False) -> None:
    """Write a model in Alembert's own format, as TOML (`.toml`) or YAML (`.yaml`, `.yml`), as URDF,
    as MJCF (`.xml`), as SDF or as USD (`.usda`).

    With `side_files` the numbers of each flexible body go into a file beside it (`arm.boom.npz` for the body `boom` of
    `arm.toml`), whose SHA-256 the model's file keeps; bodies with formulas of parameters stay in the model's file.

    What URDF, MJCF, SDF and USD cannot say is refused (joint types, loops) or named in one warning (springs, rotors, ...).
    """
    suffix = _suffix(path)
    if side_files and suffix not in NATIVE:
        raise ArgumentError(
            f"save: side_files are of Alembert's own format, {', '.join(NATIVE)}; came {os.fspath(path)}"
        )
    if suffix in NATIVE:
        from alembert.model.io.native import save_native

        save_native(model, path, side_files=side_files)
        return
    from alembert.model.io.robot_writers import MjcfWriter, SdfWriter, UrdfWriter, Writer
    from alembert.model.io.usd_writer import UsdWriter

    writers: dict[tuple[str, ...], type[Writer]] = {
        URDF: UrdfWriter,
        MJCF: MjcfWriter,
        SDF: SdfWriter,
        USD: UsdWriter,
    }
    for suffixes, writer in writers.items():
        if suffix in suffixes:
            writer(model, Path(path)).write()
            return
    raise ArgumentError(f"save: {os.fspath(path)} has the suffix {suffix!r}; {_SAVED}")


_SAVED = f"use one of {', '.join(NATIVE + URDF + MJCF + SDF + USD)}"


def json_schema() -> dict[str, Any]:
    """The JSON schema of Alembert's own format."""
    from alembert.model.io.schema import json_schema

    return json_schema()


def _reader(path: str | os.PathLike[str]) -> Callable[..., Model]:
    suffix = _suffix(path)
    if suffix in NATIVE:
        from alembert.model.io.native import load_native

        return load_native
    if suffix in URDF or (suffix in MJCF and _root_element(path) == b"robot"):
        from alembert.model.io.urdf import load_urdf

        return load_urdf
    if suffix in MJCF:
        from alembert.model.io.mjcf import load_mjcf

        return load_mjcf
    known = ", ".join(NATIVE + URDF + MJCF)
    if Path(path).is_dir():
        raise ArgumentError(f"load: {os.fspath(path)} is a folder, expected a file: {known}")
    raise ArgumentError(f"load: {os.fspath(path)} has the suffix {suffix!r}, expected one of {known}")


def _suffix(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).suffix.lower()
    except TypeError:
        raise ArgumentError(f"path is {path!r}, expected a text or a Path") from None


def _root_element(path: str | os.PathLike[str]) -> bytes:
    """The name of the first element, from the beginning of an XML file."""
    start = read_bytes(path, LARGEST_XML)[:65536]
    at = 3 if start.startswith(b"\xef\xbb\xbf") else 0
    while found := _PROLOGUE.match(start, at):
        at = found.end()
    root = _ROOT.match(start, at)
    return root.group(1) if root else b""

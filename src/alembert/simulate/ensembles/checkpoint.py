"""Blocks on disk: each under a name that says what it holds, written at once or not at all.

The name has a digest of the question (the model, every option, functions by what they do) and of all numbers
drawn. A block that is there under its name therefore is the answer, whoever computed it and when.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import re
import tempfile
import types
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError
from alembert.simulate.ensembles.members import Block


class Checkpoint:
    """A folder of blocks for one question."""

    def __init__(self, folder: Path, model: str, options: Mapping[str, Any]) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        texts = [model, *(f"{key}={meaning(value)}" for key, value in sorted(options.items()))]
        self.key = hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def path(self, members: range, draws: Mapping[str, np.ndarray]) -> Path:
        digest = hashlib.sha256(self.key.encode())
        for key, value in sorted(draws.items()):
            digest.update(key.encode() + np.ascontiguousarray(value).tobytes())
        return self.folder / f"block-{members.start:08d}-{members.stop:08d}-{digest.hexdigest()[:24]}.npz"


def write(path: Path, block: Block) -> None:
    """All of the file or nothing: under another name first, then moved."""
    handle, name = tempfile.mkstemp(prefix=".block-", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **block.to_arrays())  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: Path) -> Block | None:
    """A block, None where there is none; one that is damaged counts as none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return Block.from_arrays({key: file[key] for key in file.files})
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


# --- what an option means -----------------------------------------------------------------------------------------

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def meaning(value: Any, seen: tuple[int, ...] = ()) -> str:
    """A text that is the same in every process for the same value: functions by code, closure and globals."""
    if id(value) in seen:
        return f"<again {seen.index(id(value))}>"
    inner = (*seen, id(value))
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype != object:
            return f"array({array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()})"
    if isinstance(value, ca.Function):
        return f"casadi({value.serialize()})"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(meaning(x, inner) for x in value)}]"
    if isinstance(value, set | frozenset):
        return f"set({sorted(meaning(x, inner) for x in value)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {meaning(x, inner)}' for key, x in value.items())}}}"
    if isinstance(value, types.FunctionType):
        return _function(value, inner)
    if isinstance(value, types.MethodType):
        return f"method({meaning(value.__func__, inner)}, {meaning(value.__self__, inner)})"
    if isinstance(value, functools.partial):
        return f"partial({meaning([value.func, value.args, value.keywords], inner)})"
    if isinstance(value, types.BuiltinFunctionType | np.ufunc):
        return f"builtin {getattr(value, '__module__', '')}.{value.__name__}"
    return _object(value, inner)


def _function(value: types.FunctionType, seen: tuple[int, ...]) -> str:
    code = value.__code__
    parts = [value.__qualname__, _code(code)]
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    parts += [meaning(x, seen) for x in (value.__defaults__, value.__kwdefaults__, cells)]
    if not (value.__module__ or "").startswith("alembert"):  # its version is in the model's fingerprint
        known = value.__globals__
        for name in sorted(_names(code)):
            if name in known:
                parts.append(f"{name}={meaning(known[name], seen)}")
    return f"function({', '.join(parts)})"


def _code(code: types.CodeType) -> str:
    constants = [_code(x) if isinstance(x, types.CodeType) else repr(x) for x in code.co_consts]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_varnames}"


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _object(value: Any, seen: tuple[int, ...]) -> str:
    if isinstance(value, type):
        own = {
            key: x for key, x in vars(value).items() if isinstance(x, types.FunctionType | int | float | str)
        }
        here = not value.__module__.startswith(("alembert", "numpy", "builtins", "scipy", "casadi"))
        return f"class {value.__module__}.{value.__qualname__}{meaning(own, seen) if here else ''}"
    fingerprint = getattr(value, "fingerprint", None)
    if isinstance(fingerprint, str):
        return fingerprint
    if hasattr(value, "__dict__"):
        kind = _object(type(value), seen)
        return f"{kind}({meaning(dict(sorted(vars(value).items())), seen)})"
    text = repr(value)
    if not _ADDRESS.search(text):
        return f"{type(value).__qualname__}:{text}"
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception:
        raise ArgumentError(
            f"ensemble: a checkpoint needs to know what {text} does, to tell whether a block answers the question; use "
            "functions, casadi.Function or objects with attributes"
        ) from None

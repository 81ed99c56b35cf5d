"""What options mean, and what Alembert's own source says, as texts: the same in every process for the same value.

So a checkpoint tells whether a block answers the question, a run that goes on whether it is still the same, and the cache
whether a kernel is of this version.

What a kernel is made of is known only after it has been made, and to make it is what the cache saves; so its key names the
model and the algorithm, and the version of Alembert that makes the kernel. The version's number does not tell one state of a
development checkout from the next, so the content of the files does, read once when Alembert is imported: 7 ms.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import os
import pickle
import re
import sys
import types
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError

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
        return _module(value, set(), seen)
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
    modules = [x for x in cells if isinstance(x, types.ModuleType)]
    cells = [x for x in cells if not isinstance(x, types.ModuleType)]
    parts += [meaning(x, seen) for x in (value.__defaults__, value.__kwdefaults__, cells)]
    parts += [_module(x, _names(code), seen) for x in modules]
    if _package(value) != "alembert":  # its own source is in the keys of kernels
        known, names = value.__globals__, _names(code)
        for name in sorted(names):
            if isinstance(known.get(name), types.ModuleType):
                parts.append(f"{name}={_module(known[name], names, seen)}")
            elif name in known:
                parts.append(f"{name}={meaning(known[name], seen)}")
        parts += [_module(module, names, seen) for module in _imported(code)]
    return f"function({', '.join(parts)})"


def _module(module: types.ModuleType, names: set[str], seen: tuple[int, ...]) -> str:
    """A user's module by those of its entries that a function names, or by its file where it names none of them."""
    text = f"module {module.__name__}"
    if _is_installed(module) or id(module) in seen:
        return text
    inner = (*seen, id(module))
    used = sorted(name for name in names if name in vars(module) and not name.startswith("__"))
    for name in used:
        x = vars(module)[name]
        part = _module(x, names, inner) if isinstance(x, types.ModuleType) else meaning(x, inner)
        text += f", {name}={part}"
    file = getattr(module, "__file__", None)
    if not used and file:
        try:
            with open(file, "rb") as content:
                text += f" {hashlib.sha256(content.read()).hexdigest()}"
        except OSError:
            raise ArgumentError(
                f"ensemble: a checkpoint needs the file of module {module.__name__!r}, {file}"
            ) from None
    return f"{text};"


def _is_installed(module: types.ModuleType) -> bool:
    """Part of Python, or of a package that is known by its name."""
    package = module.__name__.partition(".")[0]
    file = getattr(module, "__file__", None) or ""
    return (
        package in _KNOWN
        or package in sys.stdlib_module_names
        or "site-packages" in file
        or "dist-packages" in file
    )


def _code(code: types.CodeType) -> str:
    constants = [_code(x) if isinstance(x, types.CodeType) else repr(x) for x in code.co_consts]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_varnames}"


def _imported(code: types.CodeType) -> list[types.ModuleType]:
    """Modules that a function imports itself."""
    found = []
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME" and one.argval:
            try:
                found.append(importlib.import_module(one.argval))
            except ImportError:
                continue  # whoever calls it is told
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _imported(constant)
    return found


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _class(value: type, seen: tuple[int, ...]) -> str:
    name = f"class {value.__module__}.{value.__qualname__}"
    if _package(value) in _KNOWN:
        return name
    own = {}
    for key, x in vars(value).items():
        if isinstance(x, staticmethod | classmethod):
            x = x.__func__
        elif isinstance(x, property):
            x = (x.fget, x.fset)
        elif isinstance(x, functools.cached_property):
            x = x.func
        if isinstance(x, types.FunctionType | tuple | bool | int | float | str):
            own[key] = x
    return f"{name}({[meaning(base, seen) for base in value.__bases__]}, {meaning(own, seen)})"


_KNOWN = {"alembert", "numpy", "builtins", "scipy", "casadi", "abc", "typing"}
"""packages whose classes are known by their names"""


def _package(value: Any) -> str:
    return (value.__module__ or "").partition(".")[0]


def _object(value: Any, seen: tuple[int, ...]) -> str:
    if isinstance(value, type):
        return _class(value, seen)
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


_NO_KERNELS = {"cli", "io", "library", "study", "verify", "view", "__pycache__"}
"""packages that show, or make models and problems, whose content is in the keys of their kernels"""


def digest(root: str) -> str:
    """A digest of all files under `root` that may change the code of a kernel."""
    result = hashlib.blake2b(digest_size=32)
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _NO_KERNELS)
        for name in sorted(name for name in names if name.endswith(".py")):
            path = os.path.join(folder, name)
            with open(path, "rb", buffering=0) as opened:
                text = opened.read()
            result.update(f"{os.path.relpath(path, root)}\0{len(text)}\0".encode())
            result.update(text)
    return result.hexdigest()


AT_IMPORT = digest(os.path.dirname(os.path.realpath(__file__)))

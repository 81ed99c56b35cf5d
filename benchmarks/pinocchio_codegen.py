"""Pinocchio's robot-specific C: its algorithms on CasADi's scalars, written as C and compiled with gcc -O3.

The wheel has no CasADi bindings in Python, but the headers are there, and CasADi's wheel has its C++ library: a small
generator is compiled once.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import casadi
import numpy as np

from benchmarks import timing
from benchmarks.models import pinocchio_model, states_in_pinocchio
from benchmarks.pinocchio_cpp import as_text, build
from benchmarks.timing import Effort

_HERE = Path(__file__).parent
_BUILD = _HERE.parent / "build" / "benchmarks"
FLAGS = ("-O3", "-march=native")
NAMES = {
    "forward_dynamics": "forward",
    "inverse_dynamics": "inverse",
    "forward_dynamics_derivatives": "forward_derivatives",
    "inverse_dynamics_derivatives": "inverse_derivatives",
}
LARGEST = 1_000_000  # bytes of C in one function that gcc -O3 compiles in less than some minutes


@functools.cache
def generator() -> Path | None:
    folder = Path(casadi.__file__).parent
    links = ("-L" + str(folder), "-lcasadi", f"-Wl,-rpath,{folder}")
    return build("pinocchio_codegen.cpp", ("-std=c++17", "-O0", "-DNDEBUG", "-w"), libraries=links)


@functools.cache
def library(name: str) -> tuple[ctypes.CDLL, tuple[str, ...]] | None:
    """The functions of a robot, compiled, and which algorithms they are."""
    make, compiler = generator(), shutil.which(os.environ.get("CC", "gcc"))
    if make is None or compiler is None:
        return None
    tree = as_text(pinocchio_model(name), states_in_pinocchio(name, 1), timing.QUICK)
    key = hashlib.sha256(f"{make.name}{tree}{FLAGS}{(_HERE / 'generated_loop.c').read_text()}".encode())
    folder = _BUILD / f"generated_{name}_{key.hexdigest()[:16]}"
    if not (folder / "library.so").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([str(make), str(folder)], input=tree, text=True, check=True, capture_output=True)
        print(f"compiling Pinocchio's C for {name} (once, a minute or more)", flush=True)
        files = [file for file in sorted(folder.glob("*.c")) if file.stat().st_size < LARGEST]
        objects = []
        for file in [*files, _HERE / "generated_loop.c"]:
            objects.append(str(folder / f"{file.stem}.o"))
            subprocess.run([compiler, *FLAGS, "-fPIC", "-c", str(file), "-o", objects[-1]], check=True)
        partial = folder / "library.partial"
        subprocess.run([compiler, "-shared", *objects, "-lm", "-o", str(partial)], check=True)
        partial.rename(folder / "library.so")
    there = tuple(key for key, stem in NAMES.items() if (folder / f"{stem}.o").exists())
    return ctypes.CDLL(str(folder / "library.so")), there


def run(name: str, effort: Effort, count: int = 64) -> dict[str, Any] | None:
    """Seconds per call of each algorithm, and the accelerations of the first state."""
    made = library(name)
    if made is None:
        return None
    functions, there = made
    nv = pinocchio_model(name).nv
    q, v, x = (np.ascontiguousarray(part) for part in states_in_pinocchio(name, count))
    results = [np.empty(nv * nv) for _ in range(3)]
    pointers = (ctypes.c_void_p * 3)(*(r.ctypes.data for r in results))
    found: dict[str, Any] = {}
    for algorithm in there:
        stem = NAMES[algorithm]
        sizes = [ctypes.c_longlong() for _ in range(4)]
        getattr(functions, f"{stem}_work")(*map(ctypes.byref, sizes))
        iw, w = (np.empty(max(1, size.value)) for size in sizes[2:])
        addresses = [ctypes.c_void_p(a.ctypes.data) for a in (q, v, x)]
        lengths = [ctypes.c_long(n) for n in (q.shape[1], nv, count)]
        rest = (pointers, ctypes.c_void_p(iw.ctypes.data), ctypes.c_void_p(w.ctypes.data))
        call = functools.partial(functions.run, getattr(functions, stem), *addresses, *lengths, *rest)
        found[algorithm] = timing.best(call, effort, count)
        if algorithm == "forward_dynamics":
            lengths[-1] = ctypes.c_long(1)
            functions.run(getattr(functions, stem), *addresses, *lengths, *rest)
            found["accelerations"] = results[0][:nv].copy()
    return found

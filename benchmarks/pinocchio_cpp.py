"""Pinocchio's C++ in a C++ loop, compiled here from the headers in its wheel (Eigen's come with CasADi's).

Nothing of the prebuilt library is used, so that -march=native reaches everything. Data holds four tensors of
nv^3 numbers for
second derivatives, 32 GB at nv = 1000; the copy of its header that is compiled leaves them empty.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import casadi
import numpy as np
import pinocchio as pin

from benchmarks.models import States, pinocchio_model, states_in_pinocchio
from benchmarks.timing import Effort

_HERE = Path(__file__).parent
_BUILD = _HERE.parent / "build" / "benchmarks"
FLAGS = ("-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-w")
_DEFINES = (  # as Pinocchio's own CMake files say
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)


@functools.cache
def program() -> Path | None:
    """The compiled loop; None where a compiler or a header is missing."""
    return build("pinocchio_loop.cpp", FLAGS)


def build(name: str, flags: Sequence[str], *, libraries: Sequence[str] = ()) -> Path | None:
    """A program made of one file here and Pinocchio's headers, built once in some minutes."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    headers = Path(pin.__file__).parents[4] / "include"
    casadi_headers = Path(casadi.__file__).parent / "include"
    data = headers / "pinocchio" / "src" / "multibody" / "data.hxx"
    if compiler is None or not data.exists() or not (casadi_headers / "eigen3").exists():
        return None
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    source = _HERE / name
    texts = [source.read_text(), (_HERE / "pinocchio_tree.hpp").read_text()]
    content = "\0".join([*texts, version, pin.__version__, *flags, *libraries, _processor()])
    result = _BUILD / f"{source.stem}_{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    if result.exists():
        return result
    patched = _BUILD / "include" / "pinocchio" / "src" / "multibody" / "data.hxx"
    patched.parent.mkdir(parents=True, exist_ok=True)
    patched.write_text(data.read_text().replace("(model.nv, model.nv, model.nv)", "(0, 0, 0)"))
    print(f"compiling {name} (once, some minutes)", flush=True)
    folders = (_BUILD / "include", headers, casadi_headers / "eigen3", casadi_headers)
    partial = result.with_suffix(".partial")
    command = [compiler, *flags, *_DEFINES, *(f"-I{x}" for x in folders), str(source), "-o", str(partial)]
    found = subprocess.run([*command, *libraries], capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"{name} does not compile:\n{found.stderr[:2000]}")
        return None
    partial.rename(result)
    return result


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("flags")), "")


def run(name: str, effort: Effort, count: int = 64, kept: int = 1) -> dict[str, float] | None:
    """Seconds per call of the dynamics (forward: the faster of its two conventions) and of their derivatives.

    These also with a copy of the matrices of each state, `kept` of them.
    """
    binary = program()
    if binary is None:
        return None
    given = states_in_pinocchio(name, count)
    text = as_text(pinocchio_model(name), given, effort, kept)
    found = subprocess.run([str(binary)], input=text, capture_output=True, text=True, check=True)
    first, second = found.stdout.splitlines()
    local, world, inverse, *derivatives, _ = (1e-6 * float(x) for x in first.split())
    names = [f"{x}_dynamics_derivatives" for x in ("forward", "inverse")]
    return {
        "forward_dynamics": min(local, world),
        "inverse_dynamics": inverse,
        **dict(zip([*names, *(f"{name}/kept" for name in names)], derivatives, strict=True)),
        "accelerations": np.array([float(x) for x in second.split()]),  # type: ignore[dict-item]
    }


def as_text(model: Any, given: States, effort: Effort, kept: int = 1) -> str:
    lines = [str(model.njoints - 1)]
    for k in range(1, model.njoints):
        X, Y = model.jointPlacements[k], model.inertias[k]
        I = Y.inertia
        numbers = [0.0, 0.0, 0.0, *X.rotation.ravel(), *X.translation, Y.mass, *Y.lever]
        numbers += [I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
        lines.append(
            f"{model.parents[k]} {model.joints[k].shortname()} " + " ".join(map(repr, map(float, numbers)))
        )
    lines.append(f"{len(given.q)} {effort.seconds} {effort.repeats} {kept}")
    for state in zip(*given, strict=True):
        lines.append(" ".join(repr(float(x)) for part in state for x in part))
    return "\n".join(lines) + "\n"

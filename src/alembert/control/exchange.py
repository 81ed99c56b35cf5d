"""Systems to and from python-control, SciPy and MATLAB files.

python-control takes no `.` or `:` in names: they become `_`. MATLAB's own `ss` objects cannot be read outside of
MATLAB; a file with the matrices A, B, C, D (and Ts, or dt) can, and is what `save_mat` writes.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import ArgumentError, FileError, UnsupportedError


@takes_systems()
def to_control(G: StateSpace, *, name: str | None = None) -> Any:
    """A python-control `StateSpace`; `name` is that of the whole system there."""
    return _python_control("to_control").ss(
        *G.matrices,
        G.dt,
        states=_plain(G.state_names),
        inputs=_plain(G.input_names),
        outputs=_plain(G.output_names),
        name=None if name is None else _plain([name])[0],
    )


def from_control(system: Any) -> StateSpace:
    """From a python-control `StateSpace` or `TransferFunction`."""
    control = _python_control("from_control")
    if isinstance(system, control.TransferFunction):
        from alembert.control.transfer import tf

        num, den = system.num_list, system.den_list
        made = tf(
            [list(map(np.asarray, row)) for row in num],
            [list(map(np.asarray, row)) for row in den],
            _dt(system.dt),
        )
        return made.renamed(inputs=system.input_labels, outputs=system.output_labels)
    if not isinstance(system, control.StateSpace):
        raise ArgumentError(
            f"from_control: {type(system).__name__} is no StateSpace or TransferFunction of python-control"
        )
    return StateSpace(
        system.A,
        system.B,
        system.C,
        system.D,
        _dt(system.dt),
        input_names=tuple(system.input_labels),
        output_names=tuple(system.output_labels),
        state_names=tuple(system.state_labels),
    )


@takes_systems()
def to_scipy(G: StateSpace) -> Any:
    """A `scipy.signal.StateSpace`."""
    return (
        scipy.signal.StateSpace(*G.matrices, dt=G.dt)
        if G.is_discrete
        else scipy.signal.StateSpace(*G.matrices)
    )


def from_scipy(system: Any) -> StateSpace:
    """From any system of `scipy.signal` (`lti` or `dlti`)."""
    if not hasattr(system, "to_ss"):
        raise ArgumentError(f"from_scipy: {type(system).__name__} is no system of scipy.signal")
    found = system.to_ss()
    if not (np.any(found.A) or np.any(found.B) or np.any(found.C)):  # SciPy gives gains a state of their own
        return StateSpace(np.zeros((0, 0)), None, None, found.D, _dt(found.dt))
    return StateSpace(found.A, found.B, found.C, found.D, _dt(found.dt))


def load_mat(path: str | os.PathLike[str]) -> StateSpace:
    """From a .mat file with A, B and C, and perhaps D, Ts (or dt), E (`dssdata`), and the names that `save_mat` writes."""
    try:
        content = scipy.io.loadmat(path)
    except (OSError, ValueError, NotImplementedError, scipy.io.matlab.MatReadError) as error:
        raise FileError(f"load_mat: {os.fspath(path)}: {error}") from None
    found = {name: value for name, value in content.items() if not name.startswith("__")}
    if missing := [name for name in "ABC" if name not in found]:
        raise FileError(
            f"load_mat: {os.fspath(path)} has no {', '.join(missing)}; it has {', '.join(found) or 'nothing'}. In MATLAB: "
            "[A,B,C,D,Ts] = ssdata(sys); save('file.mat', 'A', 'B', 'C', 'D', 'Ts')"
        )
    A, B, C = (_dense(path, name, found[name]) for name in "ABC")
    D = _dense(path, "D", found["D"]) if np.size(found.get("D", ())) else np.zeros((len(C), B.shape[1]))
    dt = np.ravel(found.get("Ts", found.get("dt", 0.0)))
    rate = float(dt[0]) if len(dt) else 0.0
    if np.size(found.get("E", ())):  # dss: E x' = A x + B u
        from alembert.control.descriptor import Descriptor

        made = Descriptor(_dense(path, "E", found["E"]), A, B, C, D, rate).to_statespace()
    else:
        made = StateSpace(A, B, C, D, rate)
    signals = {
        name: tuple(str(x).strip() for x in _texts(found[name]))
        for name in (f"{kind}_{what}" for kind in ("input", "output", "state") for what in ("names", "units"))
        if name in found
    }
    fitting: dict[str, Any] = {k: x for k, x in signals.items() if len(x) == len(getattr(made, k))}
    return dataclasses.replace(made, **fitting)


def _texts(cells: Any) -> list[str]:
    """Of a cell array, or of a matrix of letters."""
    return [str(x.item() if np.size(x) == 1 else "") for x in (np.asarray(cell) for cell in np.ravel(cells))]


@takes_systems()
def save_mat(G: StateSpace, path: str | os.PathLike[str]) -> None:
    """Matrices, names, units and Ts; `ss(A, B, C, D, Ts)` makes the system of them in MATLAB."""
    names = {
        f"{kind}_{what}": np.array(getattr(G, f"{kind}_{what}"), dtype=object)
        for kind in ("input", "output", "state")
        for what in ("names", "units")
    }
    scipy.io.savemat(path, {**dict(zip("ABCD", G.matrices, strict=True)), "Ts": G.dt, **names})


def _python_control(function: str) -> Any:
    try:
        import control
    except ImportError:
        raise UnsupportedError(
            f"{function}: python-control is not installed; pip install alembert[control]"
        ) from None
    return control


def _dense(path: str | os.PathLike[str], name: str, x: Any) -> np.ndarray:
    try:
        return arguments.matrix("load_mat", name, x.toarray() if scipy.sparse.issparse(x) else x)
    except ArgumentError as error:
        raise FileError(f"load_mat: {os.fspath(path)}: {str(error).partition(': ')[2]}") from None


def _dt(dt: Any) -> float:
    if dt is True:
        raise ArgumentError(
            "from_control: the system is sampled at an unknown rate (dt is True); give it one"
        )
    return 0.0 if dt is None else float(dt)


def _plain(names: Sequence[str]) -> list[str]:
    """Still different from each other."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[.:\[\],\s]", "_", name)
        while plain in found:
            plain += "_"
        found.append(plain)
    return found

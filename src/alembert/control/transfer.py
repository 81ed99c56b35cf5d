"""Systems from transfer functions, from zeros and poles, and delays; to and from python-control, SciPy and MATLAB files.

A column of transfer functions with a common denominator is realised in controller form,

    G = (b_1 s^(n-1) + ... + b_n) / (s^n + a_1 s^(n-1) + ... + a_n) + D,      A = [-a; shift],  B = e_1,  C = b      (1)

whose states are then scaled by powers of two, which a companion matrix needs. Zeros and poles become sections of
first and second order one after the other, in which no digits are lost.

A delay exp(-s T) is replaced by its diagonal Pade fraction N(-s)/N(s) (all-pass; equal to exp(-s T) to the order 2 n),

    N(s) = sum_k c_k (s T)^k,    c_0 = 1,    c_k = c_(k-1) (n - k + 1) / (k (2 n - k + 1))                           (2)

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

from alembert.arguments import is_number
from alembert.control import arguments
from alembert.control.arguments import takes_systems
from alembert.control.interconnection import append, series, static
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, FileError, UnsupportedError

Array = np.ndarray


def tf(
    numerator: Any, denominator: Any = 1.0, dt: float = 0.0, *, inputs: Any = None, outputs: Any = None
) -> StateSpace:
    """A system from polynomials, highest power first: `tf([1], [1, 0.5, 4])`.

    With several outputs and inputs the numerator is a list of rows of polynomials, and the denominator too, or one
    polynomial for all entries. A number stands for a constant polynomial.
    """
    rows = _rows(numerator)
    if rows is None:
        found = _column([polynomial("tf", numerator)], polynomial("tf", denominator), dt)
    else:
        below = _rows(denominator)
        den = below if below is not None else [[denominator] * len(row) for row in rows]
        if [len(row) for row in rows] != [len(row) for row in den] or len({len(row) for row in rows}) != 1:
            raise ArgumentError("tf: numerator and denominator have rows of different lengths")
        columns = []
        for j in range(len(rows[0])):
            nums = [polynomial("tf", row[j]) for row in rows]
            dens = [polynomial("tf", row[j]) for row in den]
            if all(np.array_equal(dens[0], d) for d in dens):
                columns.append(_column(nums, dens[0], dt))
            else:
                each = append(*(_column([num], d, dt) for num, d in zip(nums, dens, strict=True)))
                columns.append(each * np.ones((len(rows), 1)))
        side = append(*columns)
        found = series(side, static(np.tile(np.eye(len(rows)), len(columns)), dt=dt))
    return found.balanced_scales().renamed(
        inputs=arguments.names("tf", "inputs", inputs, found.shape[1], "u"),
        outputs=arguments.names("tf", "outputs", outputs, found.shape[0], "y"),
    )


def zpk(zeros: Any, poles: Any, gain: float, dt: float = 0.0) -> StateSpace:
    """gain times (s - zeros) over (s - poles), one input and one output, as a cascade of small sections."""
    z, p = (_sections("zpk", name, x) for name, x in (("zeros", zeros), ("poles", poles)))
    order = lambda sections: sum(len(x) - 1 for x in sections)  # noqa: E731
    if order(z) > order(p):
        raise ArgumentError(
            f"zpk: {order(z)} zeros and {order(p)} poles; a system has no more zeros than poles"
        )
    found = static(float(gain), dt=dt)
    for den in p:  # the nearest zeros go with each pair of poles
        num = np.array([1.0])
        size = np.sort_complex(np.roots(den))[-1]
        while len(num) < len(den):
            fit = [s for s in z if len(num) + len(s) - 1 <= len(den)]
            if not fit:
                break
            best = min(fit, key=lambda s: abs(np.sort_complex(np.roots(s))[-1] - size))
            z = [s for s in z if s is not best]
            num = np.polymul(num, best)
        found = series(found, _column([num], den, dt))
    if z:  # a pair of zeros that fits no single section
        return tf(gain * _product(_sections("zpk", "zeros", zeros)), _product(p), dt)
    return found.balanced_scales()


def pade(delay: float, order: int = 3) -> StateSpace:
    """(2), for a delay in seconds."""
    if not (delay >= 0 and np.isfinite(delay)) or order < 1 or order != int(order):
        raise ArgumentError(
            f"pade: delay {delay!r} of order {order!r}; expected seconds of zero or more, and an order from 1"
        )
    if delay == 0:
        return static(1.0)
    n = int(order)
    c = [1.0]
    for k in range(1, n + 1):
        c.append(c[-1] * (n - k + 1) / (k * (2 * n - k + 1)) * delay)
    den = np.array(c[::-1])
    return tf(den * (-1.0) ** np.arange(n, -1, -1), den)


def times_polynomial(G: StateSpace, coefficients: Any) -> StateSpace:
    """(c_0 s^k + ... + c_k) G(s), where G falls off fast enough for the product to be proper.

    s G = C s x = C A x + C B u where D is zero, and so on.                                                        (3)
    """
    c = polynomial("times_polynomial", coefficients)[::-1]
    C, D = G.C, G.D
    C_sum, D_sum = c[0] * C, c[0] * D
    size = max(1.0, float(np.abs(G.A).max(initial=0.0)))
    for k, factor in enumerate(c[1:], 1):
        if np.abs(D).max(initial=0.0) > 1e-12 * size**k * max(1.0, float(np.abs(G.B).max(initial=0.0))):
            raise ArgumentError(
                f"times_polynomial: a polynomial of degree {len(c) - 1} times this system is not proper; its gain falls off "
                f"with s^-{k - 1} only"
            )
        C, D = C @ G.A, C @ G.B
        C_sum, D_sum = C_sum + factor * C, D_sum + factor * D
    return G.with_matrices(G.A, G.B, C_sum, D_sum)


def weight_of(function: str, name: str, W: Any, size: int, dt: float = 0.0) -> StateSpace:
    """A weight of signals: a system, (numerator, denominator), a matrix or a number; of one signal, it is taken for each."""
    if isinstance(W, tuple):
        try:
            W = tf(*W)
        except ArgumentError as error:
            raise ArgumentError(f"{function}: {name}: {str(error).partition(': ')[2]}") from None
    W = W if isinstance(W, StateSpace) else static(np.eye(size) * W if is_number(W) else W, dt=dt)
    return append(*([W] * size)) if W.shape == (1, 1) and size > 1 else W


def polynomial(function: str, value: Any) -> Array:
    """Coefficients, highest power first, without leading zeros."""
    x = np.atleast_1d(arguments.numbers(function, "a polynomial", value))
    if x.ndim != 1 or not len(x):
        raise ArgumentError(
            f"{function}: a polynomial has shape {x.shape}, expected coefficients, highest power first"
        )
    x = np.trim_zeros(x, "f")
    return x if len(x) else np.zeros(1)


def _column(nums: Sequence[Array], den: Array, dt: float) -> StateSpace:
    """(1)"""
    n = len(den) - 1
    if den[0] == 0:
        raise ArgumentError("tf: the denominator is zero")
    longest = max(len(num) for num in nums)
    if longest > n + 1:
        raise ArgumentError(
            f"tf: the numerator has degree {longest - 1}, the denominator {n}: not proper, and no system in state space; "
            "`augment` takes such weights of y as (numerator, denominator)"
        )
    padded = np.array([np.concatenate([np.zeros(n + 1 - len(num)), num]) for num in nums]) / den[0]
    a = den[1:] / den[0]
    D = padded[:, :1]
    if n == 0:
        return static(D, dt=dt)
    A = np.vstack([0 - a[None], np.eye(n - 1, n)])  # no zeros below zero
    return StateSpace(A, np.eye(n, 1), padded[:, 1:] - D * a, D, dt)


def _rows(value: Any) -> list[list[Any]] | None:
    """Rows of entries, or None for one polynomial."""
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return [list(row) for row in value]
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple, np.ndarray)):
        return [list(row) for row in value]
    return None


def _sections(function: str, name: str, roots: Any) -> list[Array]:
    """Polynomials of first and second order with these roots."""
    left = list(arguments.complex_numbers(function, name, roots).ravel())
    found = []
    while left:
        r = left.pop(0)
        if abs(r.imag) <= 1e-14 * abs(r):
            found.append(np.array([1.0, -r.real]))
            continue
        partner = min(range(len(left)), key=lambda k: abs(left[k] - np.conj(r)), default=None)
        if partner is None or abs(left[partner] - np.conj(r)) > 1e-8 * abs(r):
            raise ArgumentError(f"{function}: {name} has {r:.6g} without its conjugate")
        left.pop(partner)
        found.append(np.array([1.0, -2 * r.real, abs(r) ** 2]))
    return found


def _product(sections: Sequence[Array]) -> Array:
    found = np.array([1.0])
    for section in sections:
        found = np.polymul(found, section)
    return found


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
    except NotImplementedError:
        raise FileError(
            f"load_mat: {os.fspath(path)} is of MATLAB's version 7.3, which is not read; save it there with '-v7': "
            "save('file.mat', 'A', 'B', 'C', 'D', 'Ts', '-v7')"
        ) from None
    except (OSError, ValueError, scipy.io.matlab.MatReadError) as error:
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
        from alembert.control.system_forms import Descriptor

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

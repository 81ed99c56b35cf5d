"""A linear system in state space, with names.

    x' = A x + B u,    y = C x + D u            continuous, dt = 0                                           (1)
    x+ = A x + B u,    y = C x + D u            sampled every dt seconds                                     (2)

Matrices are real and dense. Signals have names and units: systems are joined by them (`connect`), parts are taken by
them (`G["angle", "torque"]`), and messages name them. Operators are those of transfer matrices: `G2 * G1` is G1
followed by G2, `G + H` adds outputs; numbers and matrices count as static systems.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import is_number, told_elsewhere
from alembert.control import arguments
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.control.norms import PeakGain
    from alembert.control.reachability import Reachability
    from alembert.control.responses import FrequencyResponse, TimeResponse

Array = np.ndarray
_POLES_SHOWN = 24  # in notebooks


@told_elsewhere(
    {
        **{name: f'G.plot("{name}")' for name in ("bode", "nyquist", "nichols")},
        "step": "G.step_response()",
        "impulse": "G.impulse_response()",
        "norm": "G.h2_norm() or G.hinf_norm()",
    }
)
@dataclass(frozen=True, eq=False)
class StateSpace:
    """(1) or (2); `D` left out is zero, names left out are u0, y0, x0 and so on."""

    A: Array
    B: Array
    C: Array
    D: Array = None  # type: ignore[assignment]
    dt: float = 0.0
    """seconds from sample to sample; 0 is continuous time"""
    input_names: tuple[str, ...] = None  # type: ignore[assignment]
    output_names: tuple[str, ...] = None  # type: ignore[assignment]
    state_names: tuple[str, ...] = None  # type: ignore[assignment]
    input_units: tuple[str, ...] = None  # type: ignore[assignment]
    output_units: tuple[str, ...] = None  # type: ignore[assignment]
    state_units: tuple[str, ...] = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # anything that can be read as a matrix, or as names

        def __init__(
            self,
            A: Any,
            B: Any,
            C: Any,
            D: Any = None,
            dt: float = 0.0,
            input_names: Any = None,
            output_names: Any = None,
            state_names: Any = None,
            input_units: Any = None,
            output_units: Any = None,
            state_units: Any = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        what, put = "StateSpace", object.__setattr__
        A = arguments.square(what, "A", self.A) if np.size(self.A) else np.zeros((0, 0))
        n = len(A)
        if n == 0 and self.D is not None:
            D = arguments.matrix(what, "D", self.D)
            B, C = np.zeros((0, D.shape[1])), np.zeros((D.shape[0], 0))
        else:
            B = arguments.matrix(what, "B", self.B, rows=n)
            C = arguments.matrix(what, "C", self.C, columns=n)
            D = np.zeros((len(C), B.shape[1]))
            if self.D is not None and not (np.ndim(self.D) == 0 and self.D == 0):
                D = arguments.matrix(what, "D", self.D, rows=len(C), columns=B.shape[1])
        dt = -1.0 if isinstance(self.dt, bool) else float(arguments.numbers(what, "dt", self.dt))
        if dt < 0:
            raise ArgumentError(
                f"StateSpace: dt is {self.dt}, expected seconds from sample to sample, or 0 (continuous)"
            )
        for name, value in (("A", A), ("B", B), ("C", C), ("D", D), ("dt", dt)):
            put(self, name, value)
        for kind, letter, count in (
            ("input", "u", D.shape[1]),
            ("output", "y", D.shape[0]),
            ("state", "x", n),
        ):
            argument = f"{kind}_names"
            put(self, argument, arguments.names(what, argument, getattr(self, argument), count, letter))
            argument = f"{kind}_units"
            put(self, argument, arguments.units(what, argument, getattr(self, argument), count))

    # --- sizes, parts and coordinates ------------------------------------------------------------------------

    @property
    def matrices(self) -> tuple[Array, Array, Array, Array]:
        return self.A, self.B, self.C, self.D

    @property
    def order(self) -> int:
        """The number of states."""
        return len(self.A)

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, inputs)"""
        return self.D.shape[0], self.D.shape[1]

    @property
    def is_discrete(self) -> bool:
        return self.dt > 0

    @property
    def is_stable(self) -> bool:
        """Whether all poles lie strictly in the left half-plane (inside the unit circle)."""
        return bool(np.all(self.decay() < 0))

    def decay(self) -> Array:
        """Of every pole what must be negative: its real part, or its modulus less one."""
        p = np.linalg.eigvals(self.A)
        return np.abs(p) - 1 if self.is_discrete else p.real

    def __getitem__(self, key: Any) -> StateSpace:
        """Outputs and inputs by name, number, slice or list: `G["angle", :]`, `G[0, 1]`."""
        if not isinstance(key, tuple) or len(key) != 2:
            raise ArgumentError(f"StateSpace: [{key!r}] is not understood, expected [outputs, inputs]")
        rows = arguments.picked("StateSpace", "outputs", self.output_names, key[0])
        columns = arguments.picked("StateSpace", "inputs", self.input_names, key[1])
        return dataclasses.replace(
            self,
            B=self.B[:, columns],
            C=self.C[rows],
            D=self.D[np.ix_(rows, columns)],
            input_names=arguments.distinct(self.input_names[k] for k in columns),
            output_names=arguments.distinct(self.output_names[k] for k in rows),
            input_units=tuple(self.input_units[k] for k in columns),
            output_units=tuple(self.output_units[k] for k in rows),
        )

    def renamed(
        self, *, inputs: Sequence[str] | str | None = None, outputs: Sequence[str] | str | None = None
    ) -> StateSpace:
        """The same system with other names of signals."""
        return dataclasses.replace(
            self,
            input_names=self.input_names if inputs is None else _listed(inputs),
            output_names=self.output_names if outputs is None else _listed(outputs),
        )

    def with_matrices(self, A: Array, B: Array, C: Array, D: Array | None = None) -> StateSpace:
        """A system with the signals of this one; its states have no names where their number changed."""
        same = len(A) == self.order
        return StateSpace(
            A,
            B,
            C,
            self.D if D is None else D,
            self.dt,
            input_names=self.input_names,
            output_names=self.output_names,
            input_units=self.input_units,
            output_units=self.output_units,
            state_names=self.state_names if same else None,
            state_units=self.state_units if same else None,
        )

    def transformed(self, T: Any) -> StateSpace:
        """With the states z = T^-1 x: (T^-1 A T, T^-1 B, C T, D)."""
        T = arguments.matrix("transformed", "T", T, self.order, self.order)
        try:
            inverse = np.linalg.inv(T)
        except np.linalg.LinAlgError:
            raise ArgumentError("transformed: T is singular, expected new coordinates of the state") from None
        made = self.with_matrices(inverse @ self.A @ T, inverse @ self.B, self.C @ T)
        plain = tuple(f"z{k}" for k in range(self.order))
        return dataclasses.replace(made, state_names=plain, state_units=("",) * self.order)

    def balanced_scales(self) -> StateSpace:
        """With the states in other units (powers of two), so that A, B and C have entries of like size; exact."""
        if not self.order:
            return self
        scale = state_scales(self.A, self.B, self.C)
        A, B, C = self.A * scale / scale[:, None], self.B / scale[:, None], self.C * scale
        return dataclasses.replace(self, A=A, B=B, C=C)

    # --- algebra ---------------------------------------------------------------------------------------------

    def __mul__(self, other: Any) -> StateSpace:
        from alembert.control.interconnection import product

        other = _operand(other)
        if is_number(other):
            return self.with_matrices(self.A, self.B * other, self.C, self.D * other)
        return product(other, self)

    def __rmul__(self, other: Any) -> StateSpace:
        from alembert.control.interconnection import product

        other = _operand(other)
        return self * other if is_number(other) else product(self, other)

    __matmul__ = __mul__
    __rmatmul__ = __rmul__
    __array_priority__ = 1000  # a matrix times a system is a system
    __array_ufunc__ = None

    def __add__(self, other: Any) -> StateSpace:
        from alembert.control.interconnection import parallel

        other = _operand(other)
        if is_number(other):
            return self.with_matrices(self.A, self.B, self.C, self.D + other)
        return parallel(self, other)

    __radd__ = __add__

    def __neg__(self) -> StateSpace:
        return self.with_matrices(self.A, self.B, -self.C, -self.D)

    def __sub__(self, other: Any) -> StateSpace:
        return self + -_operand(other)

    def __rsub__(self, other: Any) -> StateSpace:
        return -self + other

    def __truediv__(self, number: float) -> StateSpace:
        if number == 0:
            raise ArgumentError("StateSpace: a system divided by zero")
        return self * (1.0 / number)

    def __rtruediv__(self, number: Any) -> StateSpace:
        return number * self.inverse()

    def __pow__(self, times: int) -> StateSpace:
        """The system so many times in series; -1 is the inverse."""
        if not isinstance(times, (int, np.integer)) or self.shape[0] != self.shape[1]:
            raise ArgumentError(
                f"StateSpace: shape {self.shape} to the power {times!r}, expected a square system and a whole number"
            )
        base = self if times >= 0 else self.inverse()
        found = StateSpace(np.zeros((0, 0)), None, None, np.eye(len(self.D)), self.dt)
        for k in range(abs(times)):
            found = base * found if k else base
        return found

    def inverse(self) -> StateSpace:
        """(A - B D^-1 C, B D^-1, -D^-1 C, D^-1); D has to be square and regular."""
        if self.shape[0] != self.shape[1] or np.linalg.matrix_rank(self.D) < len(self.D):
            raise ArgumentError(
                f"inverse: D has shape {self.shape} and rank {np.linalg.matrix_rank(self.D)}; only a system with a square, "
                "regular D has a proper inverse"
            )
        E = np.linalg.inv(self.D)
        made = StateSpace(self.A - self.B @ E @ self.C, self.B @ E, -E @ self.C, E, self.dt)
        return dataclasses.replace(
            made,
            input_names=self.output_names,
            output_names=self.input_names,
            input_units=self.output_units,
            output_units=self.input_units,
            state_names=self.state_names,
            state_units=self.state_units,
        )

    def adjoint(self) -> StateSpace:
        """G(-s)^T, or G(1/z)^T of a sampled system whose A is regular."""
        if not self.is_discrete:
            made = StateSpace(-self.A.T, -self.C.T, self.B.T, self.D.T, self.dt)
        else:
            try:
                F = np.linalg.inv(self.A.T)
            except np.linalg.LinAlgError:
                raise NumericalError(
                    "adjoint: the sampled system has a pole at zero, its adjoint is not proper"
                ) from None
            made = StateSpace(F, -F @ self.C.T, self.B.T @ F, self.D.T - self.B.T @ F @ self.C.T, self.dt)
        return dataclasses.replace(made, input_names=self.output_names, output_names=self.input_names)

    def dual(self) -> StateSpace:
        """G(s)^T."""
        made = StateSpace(self.A.T, self.C.T, self.B.T, self.D.T, self.dt)
        return dataclasses.replace(made, input_names=self.output_names, output_names=self.input_names)

    # --- what is read off it ---------------------------------------------------------------------------------

    def poles(self) -> Array:
        """The eigenvalues of A, by real part and then imaginary part."""
        return np.sort_complex(np.linalg.eigvals(self.A))

    def zeros(self) -> Array:
        """Transmission zeros: where the system matrix loses rank; see `alembert.control.reachability`."""
        from alembert.control.reachability import transmission_zeros

        return transmission_zeros(self)

    def controllable(self, *, tolerance: float = 1e-10) -> Reachability:
        """Whether the inputs reach all of the state, and what they do not reach."""
        from alembert.control.reachability import reachability

        return reachability(self.A, self.B, self.state_names, tolerance)

    def observable(self, *, tolerance: float = 1e-10) -> Reachability:
        """Whether the outputs tell all of the state, and what they do not see."""
        from alembert.control.reachability import reachability

        return reachability(self.A.T, self.C.T, self.state_names, tolerance)

    def minimal(self, *, tolerance: float = 1e-10) -> StateSpace:
        """Without the states that inputs do not reach or outputs do not see; in orthogonal coordinates."""
        from alembert.control.reachability import minimal

        return minimal(self, tolerance)

    def dc_gain(self) -> Array:
        """G(0), or G(1) of a sampled system."""
        try:
            return self.at(1.0 if self.is_discrete else 0.0).real
        except NumericalError:
            raise NumericalError(
                f"dc_gain: the system integrates, it has a pole at {1 if self.is_discrete else 0}"
            ) from None

    def at(self, s: complex) -> Array:
        """G(s) = C (s - A)^-1 B + D at one point of the complex plane."""
        try:
            return np.asarray(self.C @ np.linalg.solve(s * np.eye(self.order) - self.A, self.B) + self.D)
        except np.linalg.LinAlgError:
            raise NumericalError(f"at: {s:.6g} is a pole, the response is infinite there") from None

    def frequency_response(self, frequency: Any) -> FrequencyResponse:
        """G(jw), or G(exp(jw dt)), at frequencies in rad/s."""
        from alembert.control.responses import frequency_response

        return frequency_response(self, frequency)

    def simulate(self, t: Any, u: Any = None, x0: Any = None, *, hold: str = "zero") -> TimeResponse:
        """The response to inputs (times, inputs), exact for inputs that are held ("zero") or joined by lines ("first")."""
        from alembert.control.responses import simulate

        return simulate(self, t, u, x0, hold)

    def step_response(self, t: Any = None, *, input: Any = 0) -> TimeResponse:
        """To one input that goes to one at t = 0, at times `t` or until the time `t` (by default, of slow poles)."""
        from alembert.control.responses import step_response

        return step_response(self, t, input)

    def impulse_response(self, t: Any = None, *, input: Any = 0) -> TimeResponse:
        """To a unit impulse of one input at t = 0 (its direct part D is left out), or a unit sample."""
        from alembert.control.responses import impulse_response

        return impulse_response(self, t, input)

    def h2_norm(self) -> float:
        """The root of the output's mean square under unit white noise; infinite where it is."""
        from alembert.control.norms import h2_norm

        return h2_norm(self)

    def hinf_norm(self, *, tolerance: float = 1e-9) -> PeakGain:
        """The largest gain over all frequencies; infinite for an unstable system."""
        from alembert.control.norms import hinf_norm

        return hinf_norm(self, tolerance=tolerance)

    def gramians(self) -> tuple[Array, Array]:
        """(P, Q) of a stable system: what inputs reach and what outputs see."""
        from alembert.control.gramian import gramians

        return gramians(self)

    def hankel_singular_values(self) -> Array:
        """Of a stable system, largest first."""
        from alembert.control.gramian import hankel_singular_values

        return hankel_singular_values(self)

    def sampled(self, dt: float, *, method: str = "zoh", prewarp: float | None = None) -> StateSpace:
        """Discrete in time; see `alembert.control.responses`."""
        from alembert.control.responses import c2d

        return c2d(self, dt, method=method, prewarp=prewarp)

    def continuous(self, *, method: str = "zoh", prewarp: float | None = None) -> StateSpace:
        """The continuous system that `sampled` made this one of."""
        from alembert.control.responses import d2c

        return d2c(self, method=method, prewarp=prewarp)

    def plot(self, kind: str = "bode", **options: Any) -> Figure:
        """A figure: "bode", "sigma", "nyquist", "nichols", "step", "poles" or "margins"; needs matplotlib."""
        from alembert.control.plots import plot

        return plot(self, kind, **options)

    def _repr_html_(self) -> str:
        """In notebooks: inputs, outputs, and the poles, slowest first."""
        from alembert.view.figures import result_html, table

        poles = self.poles()
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.log(poles.astype(complex)) / self.dt if self.dt else poles.astype(complex)
            frequency = np.abs(s)
            damping = -s.real / frequency
        rows = [
            [f"{poles[k]:.5g}", *(f"{x[k]:.5g}" if np.isfinite(x[k]) else "" for x in (frequency, damping))]
            for k in np.argsort(frequency)[:_POLES_SHOWN]
        ]
        lines = [f"inputs: {', '.join(self.input_names)}", f"outputs: {', '.join(self.output_names)}"]
        if self.order > _POLES_SHOWN:
            lines.append(f"{self.order} poles, of which the first {_POLES_SHOWN} are listed")
        body = table(("pole", "frequency [rad/s]", "damping ratio"), rows) if rows else ""
        return result_html(repr(self)[1:-1], lines, body=body)

    def __repr__(self) -> str:
        counts = [
            f"{count} {what}{'s' * (count != 1)}"
            for what, count in (("state", self.order), ("input", self.shape[1]), ("output", self.shape[0]))
        ]
        return f"<StateSpace: {', '.join(counts)}, {f'every {self.dt:g} s' if self.dt else 'continuous'}>"


def _listed(names: Sequence[str] | str) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _operand(value: Any) -> Any:
    """A number or a system, perhaps with uncertain elements, of what stands beside * and + and -."""
    if is_number(value):
        return value
    if arguments.has_elements(value):
        from alembert.control.uncertain_systems import as_uncertain_system

        return as_uncertain_system(value)
    return arguments.read_system("StateSpace", "an operand", value, True)


def state_scales(A: Array, B: Array, C: Array) -> Array:
    """Powers of two; with the states in these units rows and columns of [A B; C 0] are alike, as for eigenvalues."""
    scale = np.ones(len(A))
    for _ in range(20):
        rows = np.abs(A).sum(axis=1) - np.abs(np.diag(A)) + np.abs(B).sum(axis=1)
        columns = np.abs(A).sum(axis=0) - np.abs(np.diag(A)) + np.abs(C).sum(axis=0)
        known = (rows > 0) & (columns > 0)
        ratio = np.where(known, rows, 1.0) / np.where(known, columns, 1.0)
        step = np.exp2(np.round(np.log2(ratio) / 2))
        if np.all(step == 1):
            break
        A, B, C, scale = A * step / step[:, None], B / step[:, None], C * step, scale * step
    return scale

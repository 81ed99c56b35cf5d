"""Controllers with states: linear systems, schedules of them, filters and observers, on the signals of a model by name.

A continuous one is integrated together with the motion, a sampled one goes from sample to sample (x+ in the place of x'):

    x' = A x + B e + L (w - u),    u = u0 + C x + D e,    w = clip(u, low, high)                                    (1)

e are what is measured, less its value at the point about which the controller was designed (or less its set point), and
references; w goes to the efforts. L keeps the state from running away while an output is at its limit: by default B D^+
where D has a right inverse D^+ and that makes A - L C stable (Hanus, Kinnaert and Henrotte 1987, "Conditioning technique, a
general anti-windup and bumpless transfer method"), otherwise the gain of a filter that estimates x from w (Astrom and
Rundqwist 1989, "Integrator windup and how to avoid it"). For a controller that is an observer with state feedback, the
plant's B as L makes the observer see what really acts. In a schedule that switches, the systems that wait have the filter's
term with the outputs of the one at work, so that u goes on without a bump when they take over.

All of it is one CasADi function, so that it is compiled into the loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known
from alembert.control.riccati import care, dare
from alembert.control.scheduling import GainSchedule
from alembert.control.statespace import StateSpace
from alembert.errors import AlembertError, ArgumentError
from alembert.linear.linear_model import LinearModel

Array = np.ndarray
SYSTEMS = (StateSpace, GainSchedule)
FASTER = 10.0
"""than the fastest pole of a controller: so fast may its state be made to follow"""


@dataclass(frozen=True, eq=False)
class DynamicController:
    """A controller with states for `simulate` and `ensemble`: u = K y, with the signs of `al.control.lqg`.

    Args:
        law: a `StateSpace` or `GainSchedule`, whose inputs are named after outputs of the model (as `al.linearize` names
            them: `q:elbow`, `gyro.x`, `hand.position.z`) or after `references`, and its outputs after actuators, joints or
            wrenches (`hand.fz`); or a `casadi.Function` of (t, y, x) that gives u and x' (x+ with `dt`), with `inputs`,
            `outputs` and `states`.
        about: the linear model it was designed with: what it measures are deviations from its point, and the efforts there
            are added. Without it, signals count as they are.
        references: by name, numbers, formulas of the model's parameters, `Table`s or a `casadi.Function` of t. Under
            the name of something measured, its set point; otherwise an input of the law.
        limits: by output, a largest size or (low, high); where none are given, those of the drives.
        anti_windup: "auto", "off", or the matrix L of (1).
        start: the states at the start, zero when left out.
        name: of its states in records, where there are several controllers.
        inputs, outputs, states, dt: of a `casadi.Function`: names, and seconds between samples (0: continuous).
    """

    law: Any
    about: LinearModel | None = None
    references: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    anti_windup: Any = "auto"
    start: Any = None
    name: str = "controller"
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    states: Sequence[str] = ()
    dt: float = 0.0

    def __post_init__(self) -> None:
        if self.about is not None and not isinstance(self.about, LinearModel):
            raise ArgumentError(
                f"DynamicController: about is {self.about!r}, expected what al.linearize gives"
            )
        if self.about is not None and self.about.batch:
            raise ArgumentError(
                f"DynamicController: about is a batch of shape {self.about.batch}, expected one point, linear[0]"
            )
        for what in ("references", "limits"):
            if not isinstance(getattr(self, what), Mapping):
                raise ArgumentError(
                    f"DynamicController: {what} is {getattr(self, what)!r}, expected a mapping"
                )
        law = self.law
        if isinstance(law, SYSTEMS):
            given = self.inputs or self.outputs or self.states or self.dt
            if given:
                raise ArgumentError(
                    "DynamicController: inputs, outputs, states and dt are those of the system; do not give them again"
                )
            object.__setattr__(self, "inputs", law.input_names)
            object.__setattr__(self, "outputs", law.output_names)
            object.__setattr__(self, "states", _state_names(law))
            object.__setattr__(self, "dt", law.dt)
        elif isinstance(law, ca.Function):
            for what in ("inputs", "outputs", "states"):
                x = getattr(self, what)
                object.__setattr__(self, what, (x,) if isinstance(x, str) else tuple(x))
            sizes = [law.numel_in(k) for k in range(law.n_in())]
            results = [law.numel_out(k) for k in range(law.n_out())]
            n, m, k = len(self.inputs), len(self.outputs), len(self.states)
            if sizes != [1, n, k] or results != [m, k]:
                raise ArgumentError(
                    f"DynamicController: law maps sizes {sizes} to {results}, expected a casadi.Function of t (1), y ({n}) "
                    f"and x ({k}) that gives u ({m}) and {'the next x' if self.dt else 'its rate'} ({k})"
                )
        else:
            raise ArgumentError(
                f"DynamicController: law is {law!r}, expected a StateSpace, a GainSchedule or a casadi.Function"
            )
        self.initial()
        if not (isinstance(self.anti_windup, str) and self.anti_windup in ("auto", "off")):
            L = np.asarray(self.anti_windup)
            if L.dtype.kind not in "fi" or L.shape != (len(self.states), len(self.outputs)):
                raise ArgumentError(
                    f"DynamicController: anti_windup is {self.anti_windup!r}, expected 'auto', 'off' or a matrix of shape "
                    f"({len(self.states)}, {len(self.outputs)})"
                )

    @property
    def is_sampled(self) -> bool:
        return self.dt > 0

    def changed(self, **fields: Any) -> DynamicController:
        """A copy with other fields; what a system says itself is not given again."""
        own: dict[str, Any] = {"inputs": (), "outputs": (), "states": (), "dt": 0.0}
        return dataclasses.replace(self, **{**(own if isinstance(self.law, SYSTEMS) else {}), **fields})

    def initial(self) -> Array:
        """The states at the start."""
        n = len(self.states)
        if self.start is None:
            return np.zeros(n)
        given = self.start
        if isinstance(given, Mapping):
            for name in given:
                check_known("DynamicController: start: no state", name, self.states)
            given = [given.get(name, 0.0) for name in self.states]
        try:
            x = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            x = np.full(n + 1, np.nan)
        if x.shape != (n,) or not np.isfinite(x).all():
            raise ArgumentError(f"DynamicController: start is {self.start!r}, expected {n} numbers")
        return x


def as_controller(law: Any) -> DynamicController | None:
    """A system as a controller with the defaults; None where it is something else."""
    if isinstance(law, DynamicController):
        return law
    return DynamicController(law) if isinstance(law, SYSTEMS) else None


def _state_names(law: StateSpace | GainSchedule) -> tuple[str, ...]:
    if isinstance(law, StateSpace):
        return law.state_names
    if law.interpolation == "linear":
        return law.systems[0].state_names
    return tuple(
        f"{name}@{x:g}" for x, K in zip(law.values, law.systems, strict=True) for name in K.state_names
    )


def tracking_gain(system: StateSpace, *, conditioned: bool = True) -> Array:
    """L of (1), so that A - L C is stable: B D^+ (`conditioned`) where it can be, otherwise the gain of a filter."""
    A, B, C, D = system.matrices
    n = system.order
    if not n:
        return np.zeros((0, system.shape[0]))

    def stable(L: Array) -> bool:
        p = np.linalg.eigvals(A - L @ C)
        return bool(np.all(np.abs(p) < 1 - 1e-9) if system.is_discrete else np.all(p.real < 0))

    if (
        conditioned
        and D.shape[0] <= D.shape[1]
        and np.linalg.matrix_rank(D, tol=1e-8 * max(np.abs(D).max(initial=0.0), 1e-300)) == len(D)
    ):
        L = B @ np.linalg.pinv(D)
        if stable(L):
            return L
    own = float(np.abs(np.linalg.eigvals(A)).max())
    scale = max(float(np.linalg.norm(B) * np.linalg.norm(C)) ** 2, 1e-12)
    noise = B @ B.T + 1e-6 * max(float(np.linalg.norm(B)) ** 2, 1e-12) * np.eye(n)
    for rough in 10.0 ** np.arange(
        -4, 9
    ):  # the quickest that does not make the controller much stiffer than it is
        solve: Callable[..., Any] = dare if system.is_discrete else care
        try:
            L = solve(A.T, C.T, noise, rough * scale * np.eye(len(C))).K.T
        except AlembertError:
            break
        fastest = float(np.abs(np.linalg.eigvals(A - L @ C)).max())
        if stable(L) and (system.is_discrete or not own or fastest <= FASTER * own):
            return np.asarray(L)
    return np.zeros((n, system.shape[0]))


def distinct_names(controllers: Sequence[DynamicController]) -> list[DynamicController]:
    """The same, no two of one name."""
    found: list[DynamicController] = []
    for one in controllers:
        taken = {other.name for other in found}
        name, k = one.name, 2
        while name in taken:
            name, k = f"{one.name}_{k}", k + 1
        found.append(one if name == one.name else one.changed(name=name))
    return found

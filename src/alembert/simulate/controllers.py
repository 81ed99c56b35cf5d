"""What drives the joints: controllers, in continuous time or sampled.

A continuous controller is a function u(t, q, v) that gives efforts: an array (..., nv), or a mapping from
joints or degrees of freedom to efforts. A CasADi function is compiled into the loop. A `Sampled` controller
is asked at fixed instants only and its answer held, like flight software. All controllers add up. At equal
times they are asked in the order in which they are given.

A law that jumps at known times says so by an attribute `breaks`, an array of them: error control then steps from one to the
next, instead of searching for what is not smooth.

A Python function is asked for one motion of a batch after the other: it may take q apart as q[0], q[1]. One that is in
`Batched(...)` is asked for all of them at once. A sampled one in `SymbolicLaw(...)` is written on expressions: where all
sensors and sampled controllers of a run are expressions, steps go from instant to instant in machine code.

Controllers with states: linear systems, schedules of them, filters and observers, on the signals of a model by name.

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
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known, check_takes, mapping, names, real
from alembert.control.riccati import care, dare
from alembert.control.scheduling import GainSchedule
from alembert.control.statespace import StateSpace
from alembert.errors import AlembertError, ArgumentError, NumericalError
from alembert.linear.linear_model import LinearModel
from alembert.model import Model
from alembert.simulate.elements import Places, state_symbols

if TYPE_CHECKING:
    pass


Array = np.ndarray
RUN_AWAY = 1e8
"""coordinates and speeds beyond which a motion is lost itself, and what laws make of it is not their fault"""
Law = Callable[[float, Array, Array], Any]


@dataclass(frozen=True)
class Batched:
    """A Python function that takes states of a batch, q (..., nq) and v (..., nv), and gives a row for each of them."""

    law: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.law):
            raise ArgumentError(f"Batched: law is {self.law!r}, expected a function of t, q and v")

    def __call__(self, *given: Any) -> Any:
        return self.law(*given)


@dataclass(frozen=True, eq=False)
class SymbolicLaw:
    """A sampled law on expressions: `law(t, messages)` or, with the true state, `law(t, messages, at)`, on `casadi.SX`.

    It is asked once, with symbols as long as what it reads, and gives "efforts" and all that it posts, as a mapping. `at`
    has q, v, and the frames of the model (`at.pose("hand")`, `at.efforts([("hand", wrench)])`). What depends on values is
    a `casadi.if_else`. `check(t, messages, q, v)` may raise an error for numbers that the law cannot work with (it then
    gives NaN): it is asked at each instant, or in machine code where the motion ceased to be finite.
    """

    law: Callable[..., Mapping[str, Any]]
    check: Callable[..., None] | None = None

    def __post_init__(self) -> None:
        if not callable(self.law):
            raise ArgumentError(f"SymbolicLaw: law is {self.law!r}, expected a function of t and messages")


@dataclass(frozen=True)
class Estimating:
    """A sampled law that takes what the sensors that it `expects`, by name, delivered last for measured just now."""

    law: Callable[..., Any]
    expects: Mapping[str, Any]

    def __call__(self, *given: Any) -> Any:
        return self.law(*given)


@dataclass(frozen=True)
class Sampled:
    """A control law asked every `period` [s], from `offset` on; its answer acts `delay` [s] later, in steps of `quantum`.

    Before its first answer acts, it gives nothing. With `reads`, names of sensors, the law is a function of t and of
    what they delivered last, a mapping from their names to arrays (a `casadi.Function` takes the arrays one by one, in the
    order of `reads`); it is not asked before all of them have delivered.

    With `posts`, messages by name with their first values, the law returns a mapping: of what it posts, and of its efforts
    under "efforts". Messages are read as sensors are, by laws that come later at the same instant or, with a delay, `delay`
    later; what a law posts and reads itself is its memory. With `state` the law also gets the true q and v, behind what it
    reads. A `casadi.Function` that posts names its results after what it posts and "efforts"; a law in `SymbolicLaw(...)` is
    written on expressions.

    A sampled system (`StateSpace`, `GainSchedule`, `DynamicController`) knows its period and what it reads.
    """

    law: Any
    period: float = 0.0
    delay: float = 0.0
    quantum: float = 0.0
    offset: float = 0.0
    reads: tuple[str, ...] = ()
    posts: Mapping[str, Any] = field(default_factory=dict)
    state: bool = False

    def __post_init__(self) -> None:
        if hasattr(self.law, "dt"):
            self._check_rate(float(self.law.dt))
        elif not callable(self.law) and not isinstance(self.law, SymbolicLaw):
            raise ArgumentError(
                f"Sampled: law is {self.law!r}, expected a function of t, q and v, or a sampled system"
            )
        reads = (self.reads,) if isinstance(self.reads, str) else self.reads
        object.__setattr__(self, "reads", names("Sampled", "reads", reads))
        real("Sampled", "period", self.period, "a positive time in seconds", over=0.0)
        for name in ("delay", "quantum", "offset"):
            real("Sampled", name, getattr(self, name), "zero or a positive number", least=0.0)
        first = {
            name: np.atleast_1d(np.asarray(x, dtype=float))
            for name, x in mapping("Sampled", "posts", self.posts).items()
        }
        object.__setattr__(self, "posts", first)
        if (self.posts or self.state) and isinstance(self.law, Batched):
            raise ArgumentError(
                "Sampled: posts and state are for functions of one motion, or in SymbolicLaw(...), not in Batched(...)"
            )
        if isinstance(self.law, ca.Function) and (self.posts or self.state):
            self._wrap(self.law)
        elif not isinstance(self.law, ca.Function | SymbolicLaw) and not hasattr(self.law, "dt"):
            given = (
                ("t", "readings", *("q", "v")[: 2 * self.state])
                if self.reads or self.posts
                else ("t", "q", "v")
            )
            check_takes("Sampled: law", self.law, *given)
        wanted = 1 + (len(self.reads) or 2)
        if isinstance(self.law, ca.Function) and (self.law.n_in() != wanted or self.law.n_out() != 1):
            listed = ", ".join(self.reads) or "q and v"
            raise ArgumentError(
                f"Sampled: law is a casadi.Function of {self.law.n_in()} arguments that gives {self.law.n_out()} results, "
                f"expected {wanted} (t, {listed}) and 1"
            )

    def _wrap(self, function: ca.Function) -> None:
        """A function whose results are posted by their names."""
        names = [f"{name!r}" for name in function.name_out() if name not in (*self.posts, "efforts")]
        wanted = 1 + len(self.reads) + 2 * self.state
        if names or function.n_in() != wanted:
            listed = ", ".join(("t", *self.reads, *("q", "v")[: 2 * self.state]))
            raise ArgumentError(
                f"Sampled: law is a casadi.Function of {function.n_in()} arguments that gives "
                f"{', '.join(map(repr, function.name_out()))}, expected {wanted} ({listed}) and results named after what it "
                f"posts, {', '.join(self.posts) or 'none'}, or 'efforts'"
            )

        def law(t: ca.SX, m: Mapping[str, ca.SX], at: Places | None = None) -> dict[str, ca.SX]:
            given = [t, *(m[name] for name in self.reads), *(() if at is None else (at.q, at.v))]
            found = function(*given)
            return dict(
                zip(function.name_out(), found if isinstance(found, tuple) else (found,), strict=True)
            )

        object.__setattr__(self, "law", SymbolicLaw(law))

    def _check_rate(self, dt: float) -> None:
        if not dt:
            raise ArgumentError(
                f"Sampled: law is a continuous system; al.control.c2d(K, {self.period or 0.01:g}) makes a sampled one of it"
            )
        if self.period and abs(self.period - dt) > 1e-9 * dt:
            raise ArgumentError(
                f"Sampled: period is {self.period:g} s, the law was made for samples every {dt:g} s"
            )
        if self.reads:
            raise ArgumentError("Sampled: a system reads what its inputs are named after; leave reads out")
        object.__setattr__(self, "period", dt)

    def ask(self, t: float, *states: Any) -> Any:
        """What the law answers: to q and v, or to a mapping of what its sensors delivered."""
        if not isinstance(self.law, ca.Function):
            return self.law(t, *states)
        given = [states[0][name] for name in self.reads] if self.reads else states
        for k, x in enumerate(given, start=1):
            if self.law.numel_in(k) != np.size(x):
                what = self.reads[k - 1] if self.reads else "qv"[k - 1]
                raise ArgumentError(
                    f"simulate: a sampled casadi.Function takes {self.law.numel_in(k)} entries of {what!r}, expected "
                    f"{np.size(x)}"
                )
        return np.array(self.law(t, *given), dtype=float).ravel()


@dataclass(frozen=True, eq=False)
class BoundLaw:
    """A law on expressions, with the sizes of what it reads: function(t, q, v, p, *reads) gives `names`."""

    given: Sampled
    function: ca.Function
    names: tuple[str, ...]

    @classmethod
    def of(cls, model: Model, given: Sampled, sizes: Mapping[str, int | None]) -> BoundLaw:
        law = given.law
        assert isinstance(law, SymbolicLaw)
        t, q, v, p = state_symbols(model)
        read = {}
        for name in given.reads:
            size = sizes[name]
            if size is None:
                raise ArgumentError(
                    f"simulate: a law in SymbolicLaw(...) reads {name!r}, whose number of entries is not known before the "
                    "run; give its sensor an attribute `entries`, or the law as a Python function"
                )
            read[name] = ca.SX.sym(name, size)
        answer = law.law(t, read, Places(model, t, q, v, p)) if given.state else law.law(t, read)
        if not isinstance(answer, Mapping):
            raise ArgumentError(
                f"simulate: a law in SymbolicLaw(...) returned {answer!r}, expected results by name"
            )
        wanted = {name: x.size for name, x in given.posts.items()}
        for name in (*answer, *wanted):
            size = wanted.get(name, model.nv if name == "efforts" else None)
            if name not in answer or size is None or ca.SX(answer[name]).numel() != size:
                listed = ", ".join(f"{x} ({n})" for x, n in wanted.items())
                came = ca.SX(answer[name]).numel() if name in answer else "no"
                raise ArgumentError(
                    f"simulate: a law in SymbolicLaw(...) returned {came} entries of {name!r}, expected efforts "
                    f"({model.nv}) or what it posts: {listed or 'nothing'}"
                )
        function = ca.Function(
            "law", [t, q, v, p, *read.values()], [ca.densify(ca.SX(x)) for x in answer.values()]
        )
        return cls(given, function, tuple(answer))

    def ask(
        self, t: float, readings: Mapping[str, Array], q: Array, v: Array, p: Array
    ) -> tuple[Array, dict[str, Array]]:
        """Efforts (*batch, nv) and messages (*batch, n), all motions at once."""
        batch = q.shape[:-1]
        check = getattr(self.given.law, "check", None)
        if check is not None:
            for k in np.ndindex(*batch):
                read = {name: _row(readings[name], batch, k) for name in self.given.reads}
                check(t, read, q[k], v[k])
        given = [q, v, p, *(readings[name] for name in self.given.reads)]
        found = columns(self.function, t, given, batch)
        posted = dict(zip(self.names, found, strict=True))
        return posted.pop("efforts", np.zeros((*batch, v.shape[-1]))), posted


def columns(function: ca.Function, t: float, given: Any, batch: tuple[int, ...]) -> list[Array]:
    """A function of (t, ...) on all motions of a batch: arrays (..., n) in, (*batch, n) out."""
    count = int(np.prod(batch)) if batch else 1
    flat = [np.broadcast_to(x, (*batch, x.shape[-1])).reshape(count, -1).T for x in given]
    found = function(np.full((1, count), t), *flat)
    found = found if isinstance(found, tuple) else (found,)
    return [np.array(x, dtype=float).T.reshape(*batch, -1) for x in found]


def to_multiples(x: Any, quantum: float) -> Any:
    """The multiples of a quantum nearest to x, halves upwards, of numbers or expressions; x itself without a quantum."""
    if not quantum:
        return x
    share = x / quantum + 0.5
    return quantum * (ca.floor(share) if isinstance(share, ca.SX) else np.floor(share))


def _row(x: Array, batch: tuple[int, ...], k: tuple[int, ...]) -> Array:
    return np.array(np.broadcast_to(x, (*batch, x.shape[-1]))[k])


def ask_with_posts(
    model: Model,
    given: Sampled,
    t: float,
    readings: Mapping[str, Array],
    q: Array,
    v: Array,
    parameters: Array,
) -> tuple[Array, dict[str, Array]]:
    """Efforts (*batch, nv) and messages (*batch, n) of a law that posts, or that gets the true state.

    A law that says `takes_parameters` gets those of the run as well, at the end.
    """
    batch = q.shape[:-1]
    efforts = np.zeros((*batch, model.nv))
    posted: dict[str, Array] = {}
    for k in np.ndindex(*batch):
        read = {
            name: np.array(np.broadcast_to(readings[name], (*batch, readings[name].shape[-1]))[k])
            for name in given.reads
        }
        states = (q[k], v[k]) if given.state else ()
        if getattr(given.law, "takes_parameters", False):
            states = (*states, parameters[k] if parameters.ndim > 1 else parameters)
        answer = given.law(t, read, *states) if given.reads or given.posts else given.law(t, *states)
        if not isinstance(answer, Mapping) or not given.posts:
            answer = {"efforts": answer}
        for name, x in answer.items():
            if name == "efforts":
                efforts[k] = efforts_from(model, x, "a sampled controller")
            elif name not in given.posts:
                raise ArgumentError(
                    f"simulate: a sampled controller returned {name!r}, expected 'efforts' or what it posts: "
                    f"{', '.join(given.posts)}"
                )
            else:
                values = np.asarray(x, dtype=float)
                if values.shape != given.posts[name].shape:
                    raise ArgumentError(
                        f"simulate: a sampled controller posted {name!r} of shape {values.shape}, expected "
                        f"{given.posts[name].shape}"
                    )
                posted.setdefault(name, np.zeros((*batch, values.size)))[k] = values
    return efforts, posted


def for_each(
    law: Callable[..., Any], t: float, *states: Any, batch: tuple[int, ...], read: Callable[[Any], Array]
) -> Array:
    """What a Python function gives for the states, arrays (*batch, n) or mappings of such; `read` makes arrays of answers.

    A function that is written for one state may run on a batch and mean something else: q[0] would be the first motion.
    """
    if not batch:
        return read(law(t, *states))
    if isinstance(law, Batched):
        x = read(law(t, *states))
        if x.shape[:-1] not in ((), batch):
            raise ArgumentError(
                f"simulate: a function in Batched(...) returned shape {x.shape}, expected {(*batch, x.shape[-1])}: a row "
                "for each motion"
            )
        return x

    def of(x: Any, k: tuple[int, ...]) -> Any:
        if isinstance(x, Mapping):
            return {name: of(value, k) for name, value in x.items()}
        return np.array(np.broadcast_to(x, (*batch, np.shape(x)[-1]))[k])

    rows = [read(law(t, *(of(x, k) for x in states))) for k in np.ndindex(*batch)]
    for row in rows:
        if row.ndim != 1:
            raise ArgumentError(
                f"simulate: a function of one state returned shape {row.shape}, expected ({row.shape[-1]},)"
            )
    return np.stack(rows).reshape(*batch, len(rows[0]))


class AnswerError(NumericalError):
    """A law of the user's gives numbers that are not finite."""


def check_answer(model: Model, who: str, t: float, q: Array, v: Array, x: Array) -> None:
    """Refuse efforts (..., nv) that are not finite, of motions that are not lost themselves; of a batch, of most of it."""
    if (x.ndim == 1 and math.isfinite(sum(x.tolist()))) or np.isfinite(x).all():
        return
    sane = np.all(np.abs(q) < RUN_AWAY, axis=-1) & np.all(np.abs(v) < RUN_AWAY, axis=-1)
    bad = np.asarray(sane & ~np.isfinite(x).all(axis=-1))
    count = np.count_nonzero(bad)
    if 2 * count > bad.size:
        first = np.broadcast_to(x, (*bad.shape, x.shape[-1]))[bad].reshape(-1, x.shape[-1])[0]
        k = int(np.flatnonzero(~np.isfinite(first))[0])
        of = f" in {count} of {bad.size} motions" if bad.ndim else ""
        raise AnswerError(
            f"simulate: {who} gives {first[k]} for {model.speed_names[k]!r} at t = {t:.9g} s{of}"
        )


def efforts_of(
    model: Model, law: Callable[..., Any], t: float, *states: Any, batch: tuple[int, ...], who: str
) -> Array:
    """What a controller asks for, (nv,) or (*batch, nv)."""
    return for_each(law, t, *states, batch=batch, read=lambda answer: efforts_from(model, answer, who))


def efforts_from(model: Model, answer: Any, who: str) -> Array:
    """What a controller returned, as an array (..., nv)."""
    if isinstance(answer, Mapping):
        return model.compute.by_name("simulate", answer, f"efforts of {who}")[1]
    if answer is None:
        raise ArgumentError(
            f"simulate: {who} returned None, expected efforts, ({model.nv},); is a return missing?"
        )
    try:
        x = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"simulate: {who} returned {answer!r}, expected efforts, ({model.nv},)") from None
    if x.ndim == 0 and model.nv == 1:
        return x[None]
    if x.ndim == 0 or x.shape[-1] != model.nv:
        raise ArgumentError(
            f"simulate: {who} returned shape {x.shape}, expected (..., {model.nv}) efforts, or a mapping from "
            "joints to efforts"
        )
    return x


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
                f"DynamicController: law is {told_law(law)}, expected a StateSpace, a GainSchedule or a casadi.Function"
                f"{where_the_law_is(law)}"
            )
        if not isinstance(self.name, str):
            raise ArgumentError(f"DynamicController: name is {self.name!r}, expected a name")
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


def told_law(given: Any) -> str:
    """What came in the place of a law: designs by their kind, without their numbers."""
    return f"of type {type(given).__name__}" if where_the_law_is(given) else repr(given)


def where_the_law_is(given: Any) -> str:
    """What to give instead of a design, for the end of a message; empty where nothing is known."""
    if callable(getattr(given, "controller", None)) and not isinstance(given.controller, SYSTEMS):
        return f"; the controller of this {type(given).__name__} is its .controller(...)"
    if isinstance(getattr(given, "controller", None), SYSTEMS):
        feedback = "; al.linear.lqr(linear, Q, R) makes one about its point" if hasattr(given, "K") else ""
        return (
            f"; the controller of this {type(given).__name__} is its .controller, about the point of the linear model: "
            f"DynamicController(design.controller, about=linear){feedback}"
        )
    return ""


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

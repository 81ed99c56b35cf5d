"""Fuzzing of calls: every method of a model with odd arguments, which must be refused in a sentence or give finite numbers.

An *attack* draws the arguments of one method from a seed, mostly good ones, so that more than one kind of trouble is met.
The arguments are known by their names, so that a new method is met without being listed here. Anything but an error of
Alembert, or results that are finite (states of a batch that have none are told by a warning), is a finding.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from alembert.errors import AlembertError, AlembertWarning
from alembert.joints import Free, Revolute, Spherical
from alembert.model import Inertia, Model, ModelBuilder, Placement
from alembert.model.methods import Methods
from alembert.verify.mechanisms import four_bars, parallelogram

Array = np.ndarray
State = tuple[Model, Array, Array]
"""a model, and a state that closes its loops"""
NOT_CALLED = ("compile", "export_c", "second_derivatives")
"""what computes nothing with numbers, and what is others again"""
PRODUCTS = ("jvp", "vjp", "hessian")
COMPILED = {"forward_dynamics": 3, "mass_matrix": 1, "momentum": 2}
"""algorithms whose products are called (each is compiled), and how many arguments they take"""


@functools.cache
def planar() -> State:
    """A four-bar."""
    model = four_bars(1)
    return model, *parallelogram(model, 0.4, 0.7)


@functools.cache
def spatial() -> State:
    """A free body and a ball joint with quaternions, a loop, a coupling and a parameter."""
    builder = ModelBuilder("fuzzed")
    mass = builder.parameter("mass", 2.0)
    box = Inertia.box(1.0, (0.2, 0.3, 0.4))
    builder.body("base", Inertia.box(mass, (0.2, 0.3, 0.4)), joint=Free(), joint_name="float")
    builder.body(
        "left", box, joint=Revolute((0, 1, 0)), joint_name="hip", parent="base", placement=(0.3, 0, 0)
    )
    builder.body("right", box, joint=Spherical(), joint_name="ball", parent="left", placement=(0.4, 0, 0))
    builder.body(
        "wheel", box, joint=Revolute((0, 0, 1)), joint_name="gear", parent="base", placement=(0, 0.5, 0)
    )
    builder.frame("tip", "right", (0.3, 0, 0))
    builder.frame("anchor", "base", (0.8, 0, 0.3))
    builder.loop("shackle", Spherical(), "tip", "anchor")
    builder.coupling("mesh", "gear", ["hip"], [2.0])
    model = builder.build()
    q = model.assemble(model.configuration({"hip": 0.3})).q
    return model, q, model.project(q, np.linspace(-0.2, 0.3, model.nv)).v


@functools.cache
def tree() -> State:
    """The same without what closes it."""
    model, q, v = spatial()
    return model.replace(name="open", loops=(), couplings=()), q, v


MODELS: dict[str, Callable[[], State]] = {"planar": planar, "spatial": spatial, "tree": tree}


def methods() -> list[str]:
    """Of models, those that are called."""
    found = [name for name, x in vars(Methods).items() if callable(x) and not name.startswith("_")]
    return [name for name in found if name not in NOT_CALLED]


class OddArguments:
    """Draws arguments by their names."""

    def __init__(self, state: State, seed: int) -> None:
        self.model, self.q, self.v = state
        self.rng = np.random.default_rng(seed)
        self.product = ""
        self.a = self.model.forward_dynamics(self.q, self.v, np.zeros(self.model.nv))

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def often(self, good: Any, *odd: Any) -> Any:
        return good if self.rng.random() < 0.6 else self.pick(*odd)

    def numbers(self, good: Any) -> Any:
        x = np.array(good, dtype=float)
        k = self.rng.integers(len(x))
        broken, batch = x.copy(), np.tile(x, (3, 1))
        broken[k] = self.pick(np.nan, np.inf, -np.inf, 1e200, -1e160)
        batch[1] = broken
        return self.often(
            x,
            broken,
            0 * x,
            batch,
            np.tile(x, (3, 1)),
            np.tile(x, (2, 1, 1)),
            np.zeros((0, len(x))),
            np.zeros((2, 0, len(x))),
            x[:-1],
            x[None, :, None],
            np.zeros(()),
            x.tolist(),
            x.reshape((1,) * 30 + (-1,)),
            x.reshape((1,) * 40 + (-1,)),
            x.astype(complex),
            x.astype(object),
            np.ma.masked_invalid(broken),
            [["a"] * len(x)],
            None,
            "q",
            {},
            True,
        )

    def names(self, *known: str) -> Any:
        some = [*known][: 1 + self.rng.integers(len(known))]
        return self.often(
            some,
            None,
            [],
            (),
            known[0],
            ["nobody"],
            [["nested"]],
            [1],
            3,
            {known[0]: 1},
            [None],
            some * 2,
            iter(some),
            b"x",
        )

    def draw(self, name: str, method: str) -> Any:
        """An argument; those that are not known are a mistake of this table."""
        own: Callable[..., Any] | None = getattr(self, f"_{name}", None)
        if own is None:
            raise NotImplementedError(f"{method}: no arguments are drawn for {name!r}")
        return own(method)

    # --- by name -----------------------------------------------------------------------------------------------

    def _q(self, method: str) -> Any:
        return self.numbers(self.q)

    _q0 = _q1 = _q

    def _v(self, method: str) -> Any:
        return self.numbers(self.pick(self.v, self.v, self.v, 0 * self.v, self.rng.normal(size=len(self.v))))

    _x = _dv = _v

    def _a(self, method: str) -> Any:
        """Such as the constraints allow, at the good state."""
        return self.numbers(self.a)

    def _tau(self, method: str) -> Any:
        return self.pick(None, self._a(method)) if method == "control_forces" else self._a(method)

    def _active(self, method: str) -> Any:
        known = self.model.constrained_compute.rows.names if self.model.is_constrained else ("none",)
        return self.pick(None, None, self.names(*known))

    def _dofs(self) -> Any:
        return self.names(*self.model.speed_names, self.model.joints[0].name)

    def _held(self, method: str) -> Any:
        return self.often((), self._dofs(), self._dofs())

    _fixed = _held

    def _independent(self, method: str) -> Any:
        return self.often(None, self._dofs())

    def _actuated(self, method: str) -> Any:
        return self._dofs() if self.rng.random() < 0.4 else None

    def _parameters(self, method: str) -> Any:
        named = {name: value for name, value in self.model.parameters}
        return self.often(
            None,
            {},
            named,
            {"nobody": 1.0},
            {3: 1.0},
            3,
            [],
            "mass",
            {name: np.nan for name in named},
            {name: -1.0 for name in named},
            {name: None for name in named},
            {name: np.ones((2, 2)) for name in named},
            {name: np.zeros(0) for name in named},
        )

    def _wrenches(self, method: str) -> Any:
        frame = self.pick(*(body.name for body in self.model.bodies), "world")
        return self.often(
            None,
            {},
            {frame: np.ones(6)},
            {frame: np.full(6, np.nan)},
            {frame: np.full(6, 1e300)},
            {frame: np.ones((3, 6))},
            {frame: np.ones((0, 6))},
            {frame: 1.0},
            {frame: None},
            {"x": 1},
            {3: np.ones(6)},
            3,
            [frame],
            "x",
        )

    _along_wrenches = _wrenches

    def _weights(self, method: str) -> Any:
        first = self.model.speed_names[0]
        return self.often(
            None,
            {first: 2.0},
            {"nobody": 1.0},
            {first: np.nan},
            {first: 0.0},
            {first: -1.0},
            {first: np.inf},
            {first: "x"},
            {first: [1.0, 2.0]},
            {3: 1.0},
            3,
            [first],
        )

    def _motions(self, method: str) -> Any:
        known = self.model.constrained_compute.rows.names if self.model.is_constrained else ()
        name = self.pick(*self.model.speed_names, *known)
        value = self.pick(
            0.0,
            1.0,
            1.0,
            1.0,
            [1.0],
            np.nan,
            1e300,
            np.ones(3),
            np.ones((3, 1)),
            [1.0, 2.0, 3.0],
            np.zeros(0),
            "x",
            None,
        )
        one = self.model.joints[0].name
        return self.often(
            self.pick({name: value}, {one: np.zeros(self.model.joint(one).type.nv)}),
            {},
            None,
            [name],
            3,
            {3: value},
            {"nobody": 1.0},
            {name: value, self.model.speed_names[0]: 1.0},
        )

    _accelerations = _torques = _motions

    def _actuators(self, method: str) -> Any:
        rows = np.eye(self.model.nv)[:2]
        return self.often(
            None, [self.model.speed_names[0]], self._dofs(), rows, np.nan * rows, rows[0], rows * 0, rows[:0]
        )

    def _reactions(self, method: str) -> Any:
        known = self.model.constrained_compute.rows.names if self.model.is_constrained else ("none",)
        return self.often(
            {known[0]: np.ones(6)},
            {},
            None,
            {"nobody": 1.0},
            {known[0]: np.nan * np.ones(6)},
            {known[0]: np.ones(5)},
            {known[0]: "x"},
            {3: 1.0},
            3,
            [known[0]],
        )

    def _closure_tolerance(self, method: str) -> Any:
        return self.often(
            1e-2, 1e-3, 0.1, 0.0, -1.0, np.nan, np.inf, "x", None, [1e-2], 1e-2j, np.array(1e-3)
        )

    def _tolerance(self, method: str) -> Any:
        return self.often(1e-9, 1e-3, 0.0, -1.0, np.nan, np.inf, "x", None, [1e-9])

    def _method(self, method: str) -> Any:
        known = (
            ("augmented", "reduced", "least norm") if method == "control_forces" else ("sweep", "factorise")
        )
        return self.often(self.pick(*known), "other", "", None, 3, [known[0]])

    def _coordinates(self, method: str) -> Any:
        return self.often("all", "independent", "independent", "some", self._dofs(), 3, None, [])

    def _sensitive_to(self, method: str) -> Any:
        named = [name for name, _ in self.model.parameters]
        return self.often((), named, named * 2, ["nobody"], "mass", [3], [["mass"]], None, 3)

    def _frame(self, method: str) -> Any:
        body = self.pick(*(body.name for body in self.model.bodies))
        if method in PRODUCTS:
            return self.pick(None, None, None, body, "nobody", 3)
        return self.often(body, "world", "nobody", "", None, 3, [body], (body, Placement()), b"base")

    def _point(self, method: str) -> Any:
        return self.pick(None, None, self.numbers(np.ones(3)))

    def _reference(self, method: str) -> Any:
        known = self.pick("local", "world", "local_world_aligned")
        if method in PRODUCTS:
            known = self.pick(None, None, None, known)
        return self.often(known, "other", 3, ["local"], "")

    def _about(self, method: str) -> Any:
        known = self.pick("center_of_mass", "world")
        if method in PRODUCTS:
            known = self.pick(None, None, None, known)
        return self.often(known, "other", 3, ["world"], "")

    def _out(self, method: str) -> Any:
        nv = self.model.nv
        shape = (nv, nv) if method == "mass_matrix" else (nv,)
        good = np.empty(shape)
        return self.pick(
            None, None, None, good, np.empty(shape, np.float32), np.empty((3, *shape)), [0.0] * nv, 3
        )

    # --- products ----------------------------------------------------------------------------------------------

    def _name(self, method: str) -> Any:
        self.product = self.pick(*COMPILED)
        return self.often(self.product, "nothing", "", None, 3, ["forward_dynamics"])

    def _at(self, method: str) -> Any:
        state = [self._q(method), self._v(method), self._a(method)][: COMPILED[self.product]]
        return self.often(state, state[:1], state * 2, [], None, 3, "qva", self.q)

    def _along(self, method: str) -> Any:
        state = [self._v(method), self._v(method), self._a(method)][: COMPILED[self.product]]
        return self.often(state, state[:1], [], None, 3, self.v)

    def _weight(self, method: str) -> Any:
        nv = self.model.nv
        good = {"mass_matrix": np.eye(nv), "momentum": np.ones(6)}.get(self.product, self.v)
        return self.often(good, self.numbers(self.v), np.ones(6), np.eye(nv), (), None, "x", (self.v, self.v))


def arguments(state: State, method: str, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Of one call; options are often left out."""
    odd = OddArguments(state, seed)
    by_place: list[Any] = []
    options: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(getattr(Methods, method)).parameters.items())[1:]:
        value = odd.draw(name, method)
        if parameter.kind is not parameter.KEYWORD_ONLY:
            by_place.append(value)
        elif parameter.default is parameter.empty or odd.rng.random() < 0.5:
            options[name] = value
    return tuple(by_place), options


def _arrays(result: Any) -> Iterator[Array]:
    if dataclasses.is_dataclass(result):
        for f in dataclasses.fields(result):
            yield from _arrays(getattr(result, f.name))
    elif isinstance(result, Mapping):
        for value in result.values():
            yield from _arrays(value)
    elif isinstance(result, tuple | list):
        for value in result:
            yield from _arrays(value)
    elif isinstance(result, np.ndarray | np.generic | float):
        yield np.asarray(result)


def attack(model: str | State, method: str, seed: int) -> tuple[str | None, bool]:
    """What is wrong with a call, and whether it gave a result."""
    state = MODELS[model]() if isinstance(model, str) else model
    given, options = arguments(state, method, seed)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = getattr(state[0], method)(*given, **options)
        except AlembertError:
            return None, False
        except Exception as error:
            return f"{type(error).__name__}: {error}: {method}{given} {options}", False
    finite = all(np.isfinite(x).all() for x in _arrays(result) if x.dtype.kind in "fc")
    said = any(issubclass(w.category, AlembertWarning) and "finite" in str(w.message) for w in told)
    others = [w for w in told if not issubclass(w.category, AlembertWarning)]
    if others:
        return f"{others[0].category.__name__}: {others[0].message}: {method}{given} {options}", finite
    return None if finite or said else f"not finite, in silence: {method}{given} {options}", finite

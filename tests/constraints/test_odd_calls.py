"""Odd input to every method of models with constraints: an error of the package, or finite results; nothing in silence.

States of a batch that have no result are NaN, with a warning that says so. The calls are drawn with fixed seeds.
"""

import dataclasses
import functools
import warnings
from collections.abc import Mapping

import numpy as np
import pytest
from constraint_helpers import four_bars, parallelogram

import alembert as al

CALLS = 40
"""of each method and model"""


@functools.cache
def planar():
    """A four-bar, with a state that closes it."""
    model = four_bars(1)
    return model, *parallelogram(model, 0.4, 0.7)


@functools.cache
def spatial():
    """A free body and a ball joint with quaternions, a loop, a coupling and a parameter."""
    builder = al.ModelBuilder("fuzzed")
    mass = builder.parameter("mass", 2.0)
    box = al.Inertia.box(1.0, (0.2, 0.3, 0.4))
    builder.body("base", al.Inertia.box(mass, (0.2, 0.3, 0.4)), joint=al.Free(), joint_name="float")
    builder.body(
        "left", box, joint=al.Revolute((0, 1, 0)), joint_name="hip", parent="base", placement=(0.3, 0, 0)
    )
    builder.body("right", box, joint=al.Spherical(), joint_name="ball", parent="left", placement=(0.4, 0, 0))
    builder.body(
        "wheel", box, joint=al.Revolute((0, 0, 1)), joint_name="gear", parent="base", placement=(0, 0.5, 0)
    )
    builder.frame("tip", "right", (0.3, 0, 0))
    builder.frame("anchor", "base", (0.8, 0, 0.3))
    builder.loop("shackle", al.Spherical(), "tip", "anchor")
    builder.coupling("mesh", "gear", ["hip"], [2.0])
    model = builder.build()
    q = model.assemble(model.configuration({"hip": 0.3})).q
    return model, q, model.project(q, np.linspace(-0.2, 0.3, model.nv)).v


MODELS = {"planar": planar, "spatial": spatial}


class Odd:
    """Arguments: mostly good, so that more than one kind of trouble is met."""

    def __init__(self, model, q, v, seed):
        self.model, self.q, self.v, self.rng = model, q, v, np.random.default_rng(seed)
        self.a = model.forward_dynamics(q, v, np.zeros(model.nv))

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def often(self, good, *odd):
        return good if self.rng.random() < 0.6 else self.pick(*odd)

    def numbers(self, good):
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
            x.astype(complex),
            [["a"] * len(x)],
            None,
            "q",
        )

    def configuration(self):
        return self.numbers(self.q)

    def speeds(self):
        return self.numbers(self.pick(self.v, self.v, self.v, 0 * self.v, self.rng.normal(size=len(self.v))))

    def accelerations(self):
        """Such as the constraints allow, at the good state."""
        return self.numbers(self.a)

    def names(self, *known):
        some = [*known][: 1 + self.rng.integers(len(known))]
        return self.often(
            some, None, [], known[0], ["nobody"], [["nested"]], [1], 3, {known[0]: 1}, [None], some * 2
        )

    def active(self):
        return self.pick(None, None, self.names(*self.model.constrained_compute.rows.names))

    def dofs(self):
        return self.names(*self.model.speed_names, self.model.joints[0].name)

    def parameters(self):
        named = {name: value for name, value in self.model.parameters}
        return self.often(
            None,
            {},
            named,
            {"nobody": 1.0},
            3,
            {name: np.nan for name in named},
            {name: -1.0 for name in named},
        )

    def wrenches(self):
        frame = self.pick(*(body.name for body in self.model.bodies))
        return self.often(
            None,
            {},
            {frame: np.ones(6)},
            {frame: np.full(6, np.nan)},
            {frame: np.ones((3, 6))},
            {frame: 1.0},
            {"x": 1},
            3,
        )

    def weights(self):
        return self.often(
            None, {self.model.speed_names[0]: 2.0}, {"nobody": 1.0}, {self.model.speed_names[0]: np.nan}, 3
        )

    def motions(self):
        name = self.pick(*self.model.speed_names, *self.model.constrained_compute.rows.names)
        value = self.pick(
            0.0,
            1.0,
            1.0,
            1.0,
            [1.0],
            np.nan,
            np.ones(3),
            np.ones((3, 1)),
            [1.0, 2.0, 3.0],
            np.zeros(0),
            "x",
            None,
        )
        return self.often(
            {name: value}, {}, None, [name], {"nobody": 1.0}, {name: value, self.model.speed_names[0]: 1.0}
        )

    def actuators(self):
        rows = np.eye(self.model.nv)[:2]
        return self.often(
            None, [self.model.speed_names[0]], self.dofs(), rows, np.nan * rows, rows[0], rows * 0
        )

    def reactions(self):
        names = self.model.constrained_compute.rows.names
        return self.often(
            {names[0]: np.ones(6)},
            {},
            {"nobody": 1.0},
            {names[0]: np.nan * np.ones(6)},
            {names[0]: "x"},
            3,
            [names[0]],
        )


def calls(x):
    """Every method with its arguments, drawn anew."""
    state = {"active": x.active(), "parameters": x.parameters()}
    loaded = state | {"wrenches": x.wrenches()}
    driven = {"actuated": x.dofs() if x.rng.random() < 0.4 else None, "weights": x.weights()}
    q, v, a = x.configuration(), x.speeds(), x.accelerations()
    named = {"parameters": state["parameters"]}
    sensitive = {
        "sensitive_to": x.often((), [n for n, _ in x.model.parameters], ["nobody"], "mass", [3], [["mass"]])
    }
    coordinates = {"coordinates": x.often("all", "independent", "independent", "some", x.dofs(), 3, None)}
    return {
        "constrained_dynamics": ((q, v, a), loaded),
        "constrained_dynamics_derivatives": ((q, v, a), loaded | sensitive),
        "constrained_inverse_dynamics": ((q, v, a), loaded | driven),
        "constrained_inverse_dynamics_derivatives": ((q, v, a), loaded | driven | sensitive),
        "constraint_power": ((q, v, x.reactions()), named),
        "control_forces": (
            (q, v, x.pick(None, a)),
            loaded
            | {
                "motions": x.motions(),
                "actuators": x.actuators(),
                "method": x.often("augmented", "reduced", "least norm", "other", None, ["augmented"]),
            },
        ),
        "impulse": ((q, v), state | {"held": x.often((), x.dofs(), x.dofs())}),
        "constraint_analysis": (
            (q,),
            state | {"tolerance": x.often(1e-9, 1e-3, 0.0, np.nan, "x", None, -1.0)},
        ),
        "independent_coordinates": ((q, x.pick(None, v)), state | {"independent": x.often(None, x.dofs())}),
        "reduced_mass_matrix": ((q,), state | {"independent": x.often(None, x.dofs())}),
        "constraint_residual": ((q,), state),
        "constraint_jacobian": ((q,), state),
        "constraint_bias": ((q, v), state),
        "assemble": ((q, x.pick(None, v)), state | {"fixed": x.often((), x.dofs()), "weights": x.weights()}),
        "project": ((q, x.pick(None, v)), state),
        "forward_dynamics": (
            (q, v, a),
            named | {"wrenches": loaded["wrenches"], "method": x.pick("sweep", "factorise")},
        ),
        "inverse_dynamics": ((q, v, a), named | {"wrenches": loaded["wrenches"]}),
        "hybrid_dynamics": ((q, v), named | {"wrenches": loaded["wrenches"], "accelerations": x.motions()}),
        "forward_dynamics_derivatives": ((q, v, a), named | {"wrenches": loaded["wrenches"]}),
        "inverse_dynamics_derivatives": ((q, v, a), named),
        "bias_forces": ((q, v), named | coordinates),
        "mass_matrix": ((q,), named | coordinates),
        "solve_mass_matrix": ((q, v), named | coordinates),
    }


METHODS = list(calls(Odd(*planar(), 0)))


def arrays(result):
    if dataclasses.is_dataclass(result):
        return [x for f in dataclasses.fields(result) for x in arrays(getattr(result, f.name))]
    if isinstance(result, Mapping):
        return [x for value in result.values() for x in arrays(value)]
    if isinstance(result, tuple):
        return [x for value in result for x in arrays(value)]
    if result is None or isinstance(result, str):
        return []
    return [np.asarray(result)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_odd_input(model, method):
    own = MODELS[model]()
    good = 0
    for seed in range(CALLS):
        arguments, options = calls(Odd(*own, seed))[method]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                result = getattr(own[0], method)(*arguments, **options)
            except al.AlembertError:
                continue
            except Exception as error:
                pytest.fail(f"{type(error).__name__}: {error} at seed {seed}: {method}{arguments} {options}")
        finite = all(np.isfinite(x).all() for x in arrays(result) if x.dtype.kind == "f")
        said = any(issubclass(w.category, al.AlembertWarning) and "finite" in str(w.message) for w in told)
        assert finite or said, f"not finite at seed {seed}: {method}{arguments} {options}"
        good += finite
    assert good, "no call gets through"

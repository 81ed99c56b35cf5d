"""From mechanisms to uncertain linear models, and controllers flown in them."""

from functools import reduce

import numpy as np
import scipy

from alembert import control
from alembert.control import parameter
from alembert.joints import Prismatic, Revolute, Spring
from alembert.linear import linearize
from alembert.model import Inertia, Model, ModelBuilder
from alembert.simulate import simulate
from alembert.verify.case import Check, Items, case

EXACT = "rounding times the condition of the mass matrix"
WHOLE = "a whole number"
BELCASTRO = """Belcastro, Chang, Fischl, A methodology for formulating a minimal uncertainty model for robust control
    system design and analysis, Third Annual Conference on Aerospace Computational Control, 1989: example """


def _slide(
    builder: ModelBuilder, name: str, mass: object, parent: str = "world", spring: object = None
) -> None:
    builder.body(
        name,
        Inertia.point(mass),  # type: ignore[arg-type]
        joint=Prismatic((1, 0, 0)),
        joint_name=name,
        parent=parent,
        spring=None if spring is None else Spring((spring,)),  # type: ignore[arg-type]
    )


def _compared(found: object, model: Model) -> Items:
    yield Check("largest difference from linear models", found.certificate.error, 0.0, 1e-10, EXACT)  # type: ignore[attr-defined]


@case(
    source="Least copies of named parameters, by the rank of Loewner matrices: pendulum",
    kind="identity",
    tags=("control",),
)
def control_copies_pendulum() -> Items:
    """A pendulum, m l^2 q'' + m g l q = u: the mass once, the length twice."""
    builder = ModelBuilder("pendulum")
    m, length = builder.parameter("m", 1.0), builder.parameter("l", 1.0)
    builder.body(
        "bob", Inertia.point(m, (0, 0, -1.0 * length)), joint=Revolute((0, 1, 0)), joint_name="hinge"
    )
    model = builder.build()
    found = linearize(model, [0.0], uncertain={"m": (0.5, 2.0), "l": (0.5, 1.5)})
    yield Check("copies of m and l", [found.copies["m"], found.copies["l"]], [1, 2], 0, WHOLE)
    yield from _compared(found, model)


@case(
    source="Least copies of named parameters, by the rank of Loewner matrices: two masses",
    kind="identity",
    tags=("control",),
)
def control_copies_two_masses() -> Items:
    """Both masses and the spring once."""
    builder = ModelBuilder("masses", gravity=(0, 0, 0))
    m1, m2, k = (builder.parameter(name, 1.0) for name in ("m1", "m2", "k"))
    _slide(builder, "first", m1)
    _slide(builder, "second", m2, "first", k)
    model = builder.build()
    ranges = {name: (0.5, 2.0) for name in ("m1", "m2", "k")}
    found = linearize(model, [0.0, 0.0], inputs=["first"], outputs=["q"], uncertain=ranges)
    yield Check("copies of m1, m2 and k", [found.copies[name] for name in ranges], [1, 1, 1], 0, WHOLE)
    yield from _compared(found, model)


@case(
    source="Least copies of named parameters, by the rank of Loewner matrices: cart and pole",
    kind="identity",
    tags=("control",),
)
def control_copies_cart_pole() -> Items:
    """Upright, the force on the cart: cart, pole and length once."""
    builder = ModelBuilder("cart_pole")
    M, m, length = builder.parameter("M", 1.0), builder.parameter("m", 0.3), builder.parameter("l", 0.5)
    _slide(builder, "cart", M)
    builder.body(
        "pole",
        Inertia.point(m, (0, 0, length)),
        joint=Revolute((0, 1, 0)),
        joint_name="hinge",
        parent="cart",
    )
    model = builder.build()
    ranges = {"M": (0.5, 2.0), "m": (0.1, 0.5), "l": (0.3, 0.7)}
    found = linearize(model, [0.0, 0.0], inputs=["cart"], outputs=["q"], uncertain=ranges)
    yield Check("copies of M, m and l", [found.copies[name] for name in ranges], [1, 1, 1], 0, WHOLE)
    yield from _compared(found, model)


@case(
    source="Least copies of named parameters, by the rank of Loewner matrices: chain of six masses",
    kind="identity",
    tags=("control",),
)
def control_copies_chain() -> Items:
    """Six masses and six springs from a wall on: twelve numbers, each once."""
    builder = ModelBuilder("chain", gravity=(0, 0, 0))
    masses = [builder.parameter(f"m{k}", 1.0) for k in range(6)]
    springs = [builder.parameter(f"k{k}", 1.0) for k in range(6)]
    parent = "world"
    for k in range(6):
        _slide(builder, f"mass{k}", masses[k], parent, springs[k])
        parent = f"mass{k}"
    model = builder.build()
    ranges = {f"{x}{k}": (0.5, 2.0) for x in "mk" for k in range(6)}
    found = linearize(model, np.zeros(6), inputs=["mass5"], outputs=["q"], uncertain=ranges)
    yield Check("copies of each", [found.copies[name] for name in ranges], [1] * 12, 0, WHOLE)
    yield from _compared(found, model)


@case(source=BELCASTRO + "7.3", kind="published", tags=("control",))
def control_belcastro_oscillator() -> Items:
    """An oscillator, 1/(s^2 + 2 sigma s + omega^2): sigma once, omega twice."""
    sigma, omega = parameter("sigma", 0.1, 0.3), parameter("omega", 0.8, 1.4)
    found = control.uncertain_system([[0, 1], [-1 * omega * omega, -2 * sigma]], [[0], [1]], [[1, 0]])
    copies = [found.matrix.copies["sigma"], found.matrix.copies["omega"]]
    yield Check("copies of sigma and omega", copies, [1, 2], 0, WHOLE)
    made = found.at(sigma=0.13, omega=1.31)
    yield Check("A", made.A, [[0, 1], [-(1.31**2), -0.26]], 1e-12, "rounding")


@case(source=BELCASTRO + "7.2", kind="published", tags=("control",))
def control_belcastro_pole_pair() -> Items:
    """A pair of poles, (b1 s^2 + b2 s + b3) / ((s + t1)(s + t2)), with five parameters: six copies."""
    t1, t2 = parameter("t1", 0.5, 1.5), parameter("t2", 2.0, 3.0)
    b1, b2, b3 = (parameter(f"b{k}", 0.8, 1.2) for k in (1, 2, 3))
    x1, x2, u = np.eye(3)[:, None, :]
    both = t2 * x1 + x2  # (s + t2) x1, of which t1 is used once
    rate = -1 * (t1 * both) - t2 * x2 + u
    y = b1 * rate + b2 * x2 + b3 * x1
    found = control.uncertain([[x2], [rate], [y]])
    names = ("t1", "t2", "b1", "b2", "b3")
    yield Check("copies in all", sum(found.copies.values()), 6, 0, WHOLE)
    p = {"t1": 0.7, "t2": 2.9, "b1": 0.9, "b2": 1.1, "b3": 0.83}
    A = np.array([[0, 1], [-p["t1"] * p["t2"], -p["t1"] - p["t2"]]])
    C = [p["b3"] + p["b1"] * A[1, 0], p["b2"] + p["b1"] * A[1, 1], p["b1"]]
    yield Check("A and C", found.at(**p)[1:, :2], [A[1], C[:2]], 1e-12, "rounding")
    yield Check("parameters", len(names), 5, 0, WHOLE)


@case(source=BELCASTRO + "7.1", kind="published", tags=("control",))
def control_belcastro_factors() -> Items:
    """Belcastro's example 7.1, a product of factors with eleven parameters: each is needed once.

    (e1 s + e2)(e3 s + e4)(b1 s^2 + b2 s + b3) / ((s + l1)(s + l2)(s^2 + a1 s + a2))
    """
    names = ("l1", "l2", "a1", "a2", "e1", "e2", "e3", "e4", "b1", "b2", "b3")
    l1, l2, a1, a2, e1, e2, e3, e4, b1, b2, b3 = (
        parameter(name, 1.0 + 0.1 * k, 1.4 + 0.1 * k) for k, name in enumerate(names)
    )
    x1, x2, x3, x4, u = np.eye(5)[:, None, :]
    r1 = u - l1 * x1
    first = e1 * r1 + e2 * x1  # what the first factor gives
    r2 = first - l2 * x2
    second = e3 * r2 + e4 * x2
    r4 = second - a1 * x4 - a2 * x3
    found = control.uncertain([[r1], [r2], [x4], [r4], [b1 * r4 + b2 * x4 + b3 * x3]])
    yield Check("copies of each", [found.copies[name] for name in names], [1] * 11, 0, WHOLE)
    p = {name: 1.05 + 0.13 * k for k, name in enumerate(names)}
    made = found.at(**p)
    s = np.array([0.3j, 1.0 + 2.0j, -0.4 + 0.7j])
    response = [
        made[4, :4] @ np.linalg.solve(x * np.eye(4) - made[:4, :4], made[:4, 4]) + made[4, 4] for x in s
    ]
    above = (p["e1"] * s + p["e2"]) * (p["e3"] * s + p["e4"]) * (p["b1"] * s**2 + p["b2"] * s + p["b3"])
    below = (s + p["l1"]) * (s + p["l2"]) * (s**2 + p["a1"] * s + p["a2"])
    yield Check("response / formula", np.abs(response / (above / below)), np.ones(3), 1e-12, "rounding")


def _masses() -> Model:
    builder = ModelBuilder("masses", gravity=(0, 0, 0))
    k = builder.parameter("k", 1.0)
    _slide(builder, "first", 1.0)
    _slide(builder, "second", 1.0, "first", k)
    builder.frame("end", "second")
    return builder.build()


def _design(plant: control.StateSpace) -> control.StateSpace:
    T = np.array(
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1.0]]
    )  # places from relative coordinates
    through = np.linalg.solve(T, np.array([[0.0], [0], [0], [1]]))
    return control.lqg(plant, T.T @ np.diag([0.0, 1, 0, 0]) @ T, 0.1, 1.0, 0.01, through=through).controller


@case(
    source="""Two-mass-spring benchmark (Wie, Bernstein, American Control Conference 1992), LQG with weights of its own:
    the stiffness as a named parameter of the mechanism""",
    kind="reference",
    tags=("control",),
)
def control_real_parameter_margin() -> Items:
    """The peak of mu for one real parameter is where the loop loses its stability, at k = 0.9421823041."""
    model = _masses()
    family = linearize(
        model, [0.0, 0.0], inputs=["first"], outputs=["end.position.x"], uncertain={"k": (0.9, 1.1)}
    )
    K = _design(family.nominal.to_statespace())
    peak = family.mu(K, tolerance=0.01)
    expected = 0.1 / (1 - 0.9421823041)
    yield Check(
        "peak of mu",
        peak.upper,
        expected * 1.01,
        0.011 * expected,
        "the tolerance of the peak, and its steps of 0.5 %",
    )
    yield Check.holds("what is proven is true", peak.upper >= expected, WHOLE)


@case(
    source="Exponential of the closed loop: two masses under LQG, flown", kind="identity", tags=("control",)
)
def control_flown_continuously() -> Items:
    """An exactly linear mechanism with its controller follows the exponential of the closed loop."""
    model = _masses()
    plant = linearize(model, [0.0, 0.0], inputs=["first"], outputs=["end.position.x"]).to_statespace()
    K = _design(plant)
    run = simulate(model, [0.2, 0.1], duration=5.0, step=0.01, controller=K, integrator="rk4", interval=0.5)
    A = np.block([[plant.A, plant.B @ K.C], [K.B @ plant.C, K.A]])
    start = np.concatenate([[0.2, 0.1], np.zeros(6)])
    there = np.array([scipy.linalg.expm(A * t) @ start for t in run.time])
    assert run.controller_states is not None
    found = np.hstack([run.q, run.v, run.controller_states])
    yield Check(
        "states of plant and controller", found, there, 1e-6, "500 steps of order 4 with poles of size 3"
    )


@case(
    source="Powers of the sampled closed loop: two masses under sampled LQG, flown",
    kind="identity",
    tags=("control",),
)
def control_flown_in_samples() -> Items:
    """What is held between samples makes the mechanism an exactly sampled system."""
    model, h = _masses(), 0.1
    plant = control.c2d(
        linearize(model, [0.0, 0.0], inputs=["first"], outputs=["end.position.x"]).to_statespace(), h
    )
    K = _design(plant)
    run = simulate(model, [0.2, 0.1], duration=5.0, controller=K, integrator="dop853", interval=h)
    A = np.block([[plant.A, plant.B @ K.C], [K.B @ plant.C, K.A]])
    start = np.concatenate([[0.2, 0.1], np.zeros(6)])
    there = reduce(lambda rows, _: [*rows, A @ rows[-1]], range(50), [start])
    expected = np.array(there)[:, :4]
    yield Check(
        "states of the plant",
        np.hstack([run.q, run.v]),
        expected,
        1e-7,
        "a hundred times the tolerance of a step",
    )

"""Frequencies and poles of linear models, and a bound on pointing errors."""

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from alembert import library
from alembert.joints import Prismatic, Spring
from alembert.linear import linearize
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.papers import acc1989


@case(
    source="""Pendulum on a cart: w^2 = g (M + m) / (M l) hanging, poles +-w upright (Friedland, Control System
    Design, 1986, example 2E)""",
    kind="closed form",
    tags=("linearisation",),
    parameters={"cart": 1.0, "pole": 0.3, "length": 0.5, "gravity": 9.81},
)
def cart_pole_poles(cart: float, pole: float, length: float, gravity: float) -> Items:
    """Poles of a cart-pole, hanging and upright."""
    model = library.cart_pole(cart_mass=cart, pole_mass=pole, pole_length=length)
    w = np.sqrt(gravity * (cart + pole) / (cart * length))
    hanging = linearize(model, [0.0, 0.0])
    upright = linearize(model, [0.0, np.pi])
    reason = "a double pole at zero: sqrt(eps) for it, rounding for the others"
    yield Check("hanging: imaginary part", np.max(np.linalg.eigvals(hanging.A).imag), w, 1e-12, reason)
    yield Check(
        "upright: real parts", np.sort(np.linalg.eigvals(upright.A).real)[[0, -1]], (-w, w), 1e-7, reason
    )


@case(
    source="""A fixed-free chain of equal masses and springs: w_j = 2 sqrt(k/m) sin((2j - 1) pi / (4N + 2))
    (Routh, Advanced Rigid Dynamics, ch. IX)""",
    kind="closed form",
    tags=("linearisation",),
    parameters={"count": 8, "mass": 0.5, "stiffness": 30.0},
)
def spring_chain(count: int, mass: float, stiffness: float) -> Items:
    """Frequencies of masses and springs in a row."""
    builder = ModelBuilder("row", gravity=(0, 0, 0))
    parent = WORLD
    for k in range(count):
        body = Inertia.box(mass, (0.1, 0.1, 0.1))
        builder.body(f"m{k}", body, joint=Prismatic((1, 0, 0)), parent=parent, spring=Spring((stiffness,)))
        parent = f"m{k}"
    model = builder.build()
    found = linearize(model, np.zeros(count)).modes().frequencies
    j = np.arange(1, count + 1)
    expected = 2 * np.sqrt(stiffness / mass) * np.sin((2 * j - 1) * np.pi / (4 * count + 2))
    yield Check("frequencies [rad/s]", found, expected, 1e-11, "rounding times the condition of the modes")
    yield Plot("mode", "[rad/s]", (Line("closed form", j, expected), Line("ours", j, found, "points")))


@case(
    source=acc1989(
        "Balakrishnan",
        "(3.4)",
    ),
    kind="published",
    tags=("linearisation", "acc1989"),
    parameters={"actuator_noise": 0.02, "sensor_noise": 0.005, "masses": 5, "mass": 1.3, "stiffness": 40.0},
)
def balakrishnan_bound(
    actuator_noise: float, sensor_noise: float, masses: int, mass: float, stiffness: float
) -> Items:
    """Mean square response under rate feedback: sqrt(d_s d_o) times the static compliance.

    Direct feedback u = -sqrt(d_s/d_o) v reaches the bound; (3.4) is printed with the response squared. On a chain of
    masses and springs instead of the paper's beam, by Lyapunov's equation of the linear model.
    """
    builder = ModelBuilder("chain", gravity=(0, 0, 0))
    parent = WORLD
    for k in range(masses):
        builder.body(
            f"m{k}",
            Inertia.box(mass, (0.1, 0.1, 0.1)),
            joint=Prismatic((1, 0, 0)),
            parent=parent,
            spring=Spring((stiffness,)),
        )
        parent = f"m{k}"
    model = builder.build()
    linear = linearize(model, model.neutral())
    tip = np.ones(masses)  # a force on the last mass does work on every relative displacement
    gain = np.sqrt(actuator_noise / sensor_noise)
    force = np.concatenate([np.zeros(masses), np.linalg.solve(model.mass_matrix(model.neutral()), tip)])
    rate = np.concatenate([np.zeros(masses), tip])
    closed = linear.A - gain * np.outer(force, rate)
    intensity = actuator_noise + gain**2 * sensor_noise
    P = solve_continuous_lyapunov(closed, -intensity * np.outer(force, force))
    place = np.concatenate([tip, np.zeros(masses)])
    expected = np.sqrt(actuator_noise * sensor_noise) * masses / stiffness
    yield Check(
        "mean square of the tip [m^2]",
        place @ P @ place,
        expected,
        1e-13,
        "Lyapunov's equation of ten states; rounding",
    )

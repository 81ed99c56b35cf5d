"""The double pendulum of textbooks."""

import numpy as np

from alembert.joints import Revolute
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, case
from alembert.verify.programs import Program
from alembert.verify.random_models import ROUNDING_REASON, states


@case(
    source="""Two point masses on massless rods, Lagrange's equations (Landau, Lifshitz, Mechanics, section 5,
    problem 1)""",
    kind="closed form",
    tags=("tree",),
    parameters={"m": (1.3, 0.7), "l": (0.9, 1.4), "gravity": 9.81, "count": 20},
)
def double_pendulum_equations(
    program: Program, m: tuple[float, float], l: tuple[float, float], gravity: float, count: int
) -> Items:
    """Mass matrix, inverse dynamics and potential of the double pendulum, in relative angles."""
    builder = ModelBuilder("double")
    axis = (0.0, -1.0, 0.0)
    builder.body("one", Inertia.point(m[0], (0, 0, -l[0])), joint=Revolute(axis), joint_name="a")
    tip = Inertia.point(m[1], (0, 0, -l[1]))
    builder.body("two", tip, joint=Revolute(axis), joint_name="b", parent="one", placement=(0, 0, -l[0]))
    model = builder.build()
    dynamics = program.load(model)
    M = np.empty((2, count, 2, 2))
    tau = np.empty((2, count, 2))
    U = np.empty((2, count))
    for k, (q, v, a) in enumerate(zip(*states(model, count), strict=True)):
        c, s = np.cos(q[1]), np.sin(q[1])
        cross = m[1] * l[0] * l[1]
        inner = m[1] * l[1] ** 2 + cross * c
        M[0, k] = [
            [(m[0] + m[1]) * l[0] ** 2 + m[1] * l[1] ** 2 + 2 * cross * c, inner],
            [inner, m[1] * l[1] ** 2],
        ]
        coriolis = np.array([-cross * s * (2 * v[0] * v[1] + v[1] ** 2), cross * s * v[0] ** 2])
        weight = m[1] * l[1] * np.sin(q[0] + q[1])
        tau[0, k] = (
            M[0, k] @ a
            + coriolis
            + gravity * np.array([(m[0] + m[1]) * l[0] * np.sin(q[0]) + weight, weight])
        )
        U[0, k] = -gravity * ((m[0] + m[1]) * l[0] * np.cos(q[0]) + m[1] * l[1] * np.cos(q[0] + q[1]))
        M[1, k], tau[1, k], U[1, k] = (
            dynamics.mass_matrix(q),
            dynamics.inverse_dynamics(q, v, a),
            dynamics.potential_energy(q),
        )
    yield Check("mass matrices", M[1], M[0], 1e-13, ROUNDING_REASON)
    yield Check("inverse dynamics", tau[1], tau[0], 1e-12, ROUNDING_REASON)
    yield Check("potential energies", U[1], U[0], 1e-13, ROUNDING_REASON)

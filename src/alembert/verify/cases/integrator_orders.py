"""Orders of all fixed-step integrators."""

import numpy as np

from alembert.joints import Revolute, Spherical
from alembert.model import Inertia, ModelBuilder, Placement
from alembert.simulate import integrators, simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.motion import motion


@case(
    source="""Order of each scheme as its theory states it (Hairer, Nørsett, Wanner, Solving Ordinary Differential
    Equations I; Munthe-Kaas 1999 on manifolds)""",
    kind="published",
    tags=("simulation", "tree"),
    parameters={"duration": 0.4, "steps": (20, 40, 80)},
)
def integrator_orders(duration: float, steps: tuple[int, ...]) -> Items:
    """Orders by regression, on a spherical and a revolute joint under gravity."""
    orders = {name: order for name, order, kind, *_ in integrators() if kind.startswith("fixed step")}
    builder = ModelBuilder("ball")
    builder.body(
        "arm", Inertia.box(1.0, (0.2, 0.3, 0.5), (0, 0.1, -0.3)), joint=Spherical(), joint_name="ball"
    )
    place = Placement.from_rpy((0.3, -0.2, 0.5), (0.1, 0.2, -0.3))
    tip = Inertia.box(1.0, (0.2, 0.3, 0.5))
    builder.body("tip", tip, joint=Revolute((0.6, 0.8, 0)), joint_name="hinge", parent="arm", placement=place)
    model = builder.build()
    rng = np.random.default_rng(1)
    q0, v0 = model.integrate(model.neutral(), rng.uniform(-0.4, 0.4, 4)), rng.uniform(-1.0, 1.0, 4)
    _, q, v = motion(model, model, q0, v0, duration=duration, records=2)
    lines = []
    for name in orders:
        errors = []
        for n in steps:
            run = simulate(
                model, q0, v0, duration=duration, step=duration / n, integrator=name, progress=False
            )
            errors.append(float(np.linalg.norm(np.r_[model.difference(q[-1], run.q[-1]), run.v[-1] - v[-1]])))
        h = duration / np.array(steps)
        slope = float(np.polyfit(np.log(h), np.log(errors), 1)[0])
        reason = "regression over three steps; starting values of Adams schemes raise it a little"
        yield Check(f"{name}: order", slope, orders[name], 0.25, reason)
        lines.append(Line(name, h, errors))
    yield Plot("step [s]", "error", tuple(lines), log_x=True, log_y=True)

"""Orders and energies of integrators."""

import numpy as np

from alembert import library
from alembert.joints import Revolute, Spherical
from alembert.model import Inertia, ModelBuilder, Placement
from alembert.simulate import integrators, simulate
from alembert.simulate.schemes import ADAMS_BASHFORTH, ADAMS_MOULTON
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.motion import motion
from alembert.verify.papers import acc1989


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


@case(
    source=acc1989(
        "Kasahara, Honda, Narita",
        "integration formulas",
    ),
    kind="published",
    tags=("simulation", "acc1989"),
)
def oscar_integrators() -> Items:
    """Weights of the Adams formulas; the paper's "trapezoidal" rule is the one of Adams and Bashforth of order 2."""

    def weights(values: object) -> list[float]:
        return [float(x) for x in values]  # type: ignore[attr-defined]

    reason = "fractions"
    yield Check("x += h (3 f - f')/2", weights(ADAMS_BASHFORTH[2]), (1.5, -0.5), 0.0, reason)
    printed = np.array([55, -59, 37, -9]) / 24
    yield Check("AB4: (55, -59, 37, -9)/24", weights(ADAMS_BASHFORTH[4]), printed, 1e-16, reason)
    printed = np.array([9, 19, -5, 1]) / 24
    yield Check("AM4: (9, 19, -5, 1)/24", weights(ADAMS_MOULTON), printed, 1e-16, reason)


@case(
    source="""Leyendecker, Ober-Blöbaum, Marsden, Ortiz (2010), section 3; Hairer, Lubich, Wanner, Geometric
    Numerical Integration (2006), ch. VI: no drift of the energy, error of order h^2""",
    kind="published",
    tags=("tree", "simulation"),
    parameters={"duration": 200.0, "step": 0.02},
)
def variational_energy(duration: float, step: float) -> Items:
    """The energy of a double pendulum over ten thousand steps: bounded, without drift, of order h^2."""
    model = library.two_link()
    worst = []
    for h in (step, step / 2):
        run = simulate(
            model,
            [-1.2, 0.3],
            duration=duration,
            step=h,
            interval=0.2,
            integrator="variational",
            progress=False,
        )
        error = run.energy - run.energy[0]
        half = len(error) // 2
        worst.append(float(np.max(np.abs(error))))
        drift = abs(float(np.mean(error[half:]) - np.mean(error[:half]))) / worst[-1]
        yield Check(
            f"h = {h:g}: drift of the mean / error", drift, 0.0, 0.1, "no trend: the two halves agree"
        )
    order = np.log2(worst[0] / worst[1])
    yield Check("order", order, 2.0, 0.2, "from two steps")
    yield Plot("t [s]", "change of energy [J]", (Line("", run.time, error),))

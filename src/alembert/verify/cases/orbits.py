"""Motion in orbit and near it."""

import numpy as np

from alembert.joints import Revolute, Translational
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import CentralGravity, GravityGradient, simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Kepler's laws: period 2 pi sqrt(a^3/mu), and the anomaly from M = E - e sin E (Curtis, Orbital
    Mechanics, ch. 3)""",
    kind="closed form",
    tags=("tree", "simulation"),
    parameters={"semi_axis": 1.0, "eccentricity": 0.5, "mu": 1.0},
)
def kepler_orbit(semi_axis: float, eccentricity: float, mu: float) -> Items:
    """A point on an elliptic orbit, a quarter of the period and a whole one after the pericentre."""
    builder = ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("craft", Inertia(1.0, (0, 0, 0), (1e-9, 0, 1e-9, 0, 0, 1e-9)), joint=Translational())
    model = builder.build()
    a, e = semi_axis, eccentricity
    period = 2 * np.pi * np.sqrt(a**3 / mu)
    run = simulate(
        model,
        [a * (1 - e), 0, 0],
        [0, np.sqrt(mu / a * (1 + e) / (1 - e)), 0],
        duration=period,
        interval=period / 200,
        integrator="dop853",
        gravity=CentralGravity(mu),
        tolerance=1e-12,
        absolute_tolerance=1e-13,
        progress=False,
    )
    E = np.pi / 2
    for _ in range(50):  # Newton's method on Kepler's equation
        E -= (E - e * np.sin(E) - np.pi / 2) / (1 - e * np.cos(E))
    quarter = (a * (np.cos(E) - e), a * np.sqrt(1 - e**2) * np.sin(E))
    reason = "error control at 1e-12; errors along the track grow as 3 pi of that of the energy"
    yield Check("a quarter of the period on", run.q[50, :2], quarter, 1e-9, reason)
    yield Check("back after a period", run.q[-1, :2], (a * (1 - e), 0.0), 1e-9, reason)
    yield Plot("x", "y", (Line("", run.q[:, 0], run.q[:, 1]),))


@case(
    source="""Clohessy, Wiltshire, Terminal guidance system for satellite rendezvous, J. Aerospace Sci. 27 (1960):
    a push along the track""",
    kind="published",
    tags=("tree", "simulation"),
    parameters={"rate": 1.1e-3, "push": 0.3},
)
def clohessy_wiltshire(rate: float, push: float) -> Items:
    """Relative motion after a push along a circular orbit, in axes that do not turn."""
    builder = ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("bus", Inertia.box(10.0, (1, 1, 1)), joint=Translational())
    model = builder.build()
    run = simulate(
        model,
        [0, 0, 0],
        [0, push, 0],
        duration=2 * np.pi / rate,
        gravity=GravityGradient(rate),
        tolerance=1e-11,
        absolute_tolerance=1e-12,
        progress=False,
    )
    t, n = run.time, rate
    x, y = 2 * push / n * (1 - np.cos(n * t)), push / n * (4 * np.sin(n * t) - 3 * n * t)
    c, s = np.cos(n * t), np.sin(n * t)
    expected = np.stack([c * x - s * y, s * x + c * y], axis=-1)
    yield Check("place [m]", run.q[:, :2], expected, 1e-6, "error control at 1e-11 of some 5 km")
    yield Plot(
        "radial [m]",
        "along the track [m]",
        (Line("", c * run.q[:, 0] + s * run.q[:, 1], c * run.q[:, 1] - s * run.q[:, 0]),),
    )


@case(
    source="""Pitch of a satellite in the gravity gradient: frequency n sqrt(3 (Jx - Jz)/Jy) (Hughes, Spacecraft
    Attitude Dynamics, sec. 9.2)""",
    kind="closed form",
    tags=("tree", "simulation"),
    parameters={"rate": 1e-3, "moments": (30.0, 12.0, 20.0), "small": 1e-3},
)
def gravity_gradient_libration(rate: float, moments: tuple[float, float, float], small: float) -> Items:
    """Small pitch of a body that looks down, over a period of its libration."""
    xx, yy, zz = moments  # z along the orbit's normal, y away from the centre
    builder = ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("bus", Inertia(10.0, (0, 0, 0), (xx, 0, yy, 0, 0, zz)), joint=Revolute())
    model = builder.build()
    w = rate * np.sqrt(3 * (xx - yy) / zz)
    run = simulate(
        model,
        [small],
        [rate],
        duration=2 * np.pi / w,
        gravity=GravityGradient(rate, radial=(0, 1, 0)),
        tolerance=1e-11,
        absolute_tolerance=1e-14,
        progress=False,
    )
    pitch = run.q[:, 0] - rate * run.time
    expected = small * np.cos(w * run.time)
    yield Check(
        "pitch [rad]",
        pitch,
        expected,
        2 * small**3 + 1e-8 * small,
        "the nonlinear period is longer by 1/16 of the angle's square",
    )
    yield Plot("t [s]", "pitch [rad]", (Line("", run.time, pitch),))

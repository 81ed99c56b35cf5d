"""The satellite of the flagship and its mission: the model, the planned turn, the law, the flight software.

A hub with three wheels carries two panels that bend and an antenna on a four-bar linkage. It has to roll by 60 degrees in a
low orbit and point again without shaking its panels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alembert import control, optimal
from alembert import spacecraft as sc
from alembert.errors import NumericalError
from alembert.flexible import beam
from alembert.joints import Fixed, Free, Friction, Revolute, Spring
from alembert.linear import LinearModel, linearize
from alembert.model import Inertia, Model, ModelBuilder, Placement
from alembert.simulate import Table

Array = np.ndarray
AXES = "xyz"
WHEELS = tuple(f"wheel_{a}" for a in AXES)
INERTIA, TORQUE, SPEED = 0.05, 2.0, 600.0
"""of a wheel: kg m^2; at most: N m, rad/s"""
TRACKER, GYRO, GYRO_WALK = 2e-5, 6e-6, 1e-8
"""noise of the star tracker [rad], of the gyro [rad/sqrt(s)] and of its bias [rad/s/sqrt(s)]"""
RANGES = {"stiffness": (50.0, 70.0), "antenna": (10.0, 14.0)}
"""bending stiffness of the panels [N m^2], mass of the antenna [kg]"""
TURN = np.radians(60.0)
PHASE, NODES = 14.0, 56
"""of each of the three phases of the turn: seconds, intervals"""
STEP, SAMPLE, LENGTH = 0.02, 0.1, 60.0
"""of a flight [s]: integrator, controller, end"""


def vehicle(modes: int = 2, *, rolls_only: bool = False) -> Model:
    """The satellite with so many bending modes of each panel; `rolls_only`: on a pivot, its antenna fixed, to plan with."""
    builder = ModelBuilder("orbiter", gravity=(0, 0, 0))
    stiffness, antenna = builder.parameter("stiffness", 60.0), builder.parameter("antenna", 12.0)
    size = (1.2, 1.2, 1.4)
    if rolls_only:
        builder.body("hub", Inertia.box(300.0, size), joint=Revolute((1, 0, 0)), joint_name="roll")
    else:
        builder.body("hub", Inertia.box(300.0, size), joint=Free(), joint_name="flight")
        builder.sensor("gyro", "gyro", "hub")
        for name, axis in zip(WHEELS, np.eye(3), strict=True):
            sc.reaction_wheel(builder, name, "hub", axis, inertia=INERTIA, torque=TORQUE, speed=SPEED)
    for side, y, sign in (("left", -0.6, -1.0), ("right", 0.6, 1.0)):
        panel = beam(length=4.0, rhoA=3.0, EI_y=stiffness, bending_y=0, bending_z=modes, damping=(0.0, 0.03))
        half = np.sqrt(0.5)
        builder.body(
            side,
            panel,
            joint=Fixed(),
            joint_name=f"{side}_root",
            parent="hub",
            placement=Placement((0, y, 0), (half, 0, 0, sign * half)),
        )
        builder.frame(f"{side}_tip", side, node="tip")
    dish = Inertia.rod(antenna, (0, 0, 0), (1.2, 0, 0))
    if rolls_only:
        builder.body("dish", dish, joint=Fixed(), parent="hub", placement=(0.6, 0, 0.4))
        return builder.build()
    hinge = Revolute((0, 1, 0))
    builder.body(
        "crank",
        Inertia.rod(1.0, (0, 0, 0), (0.2, 0, 0)),
        joint=hinge,
        joint_name="drive",
        parent="hub",
        placement=(0.6, 0, -0.2),
        spring=Spring((300.0,)),
        friction=Friction((8.0,)),
    )
    builder.body(
        "rod",
        Inertia.rod(1.5, (0, 0, 0), (0, 0, 0.6)),
        joint=hinge,
        joint_name="pin",
        parent="crank",
        placement=(0.2, 0, 0),
    )
    builder.body("dish", dish, joint=hinge, joint_name="hinge", parent="hub", placement=(0.6, 0, 0.4))
    builder.frame("rod_end", "rod", (0, 0, 0.6)).frame("lug", "dish", (0.2, 0, 0))
    builder.frame("focus", "dish", (1.2, 0, 0))
    builder.loop("lug_pin", hinge, "rod_end", "lug")
    return builder.build()


@dataclass(frozen=True, eq=False)
class Turn:
    """The planned turn: at `time`, the angle [rad], the rate [rad/s], and the torque on the hub over the interval [N m]."""

    time: Array
    angle: Array
    rate: Array
    torque: Array
    cost: float
    iterations: int


def plan() -> Turn:
    """The turn with the least effort, its motor off in the middle, the panels still at the end: in three phases."""
    model = vehicle(1, rolls_only=True)
    rest = {"q": {"roll": TURN, "left": 0.0, "right": 0.0}, "v": 0}

    def phase(**conditions: Any) -> optimal.Problem:
        return optimal.Problem(model, PHASE, cost=optimal.effort(), **conditions)

    parts = {
        "spin up": phase(start={"q": model.neutral(), "v": 0}),
        "coast": phase(limits={"tau": {"roll": (0.0, 0.0)}}),
        "stop": phase(end=rest),
    }
    solution = optimal.Phases(parts).solve(NODES, transcription="dmoc", progress=False)
    if not solution.success:
        raise NumericalError(f"flagship: the turn was not found: {solution.message}")
    found = [solution[name] for name in parts]

    def joined(of: Callable[[Any], Array], last: float) -> Array:
        return np.concatenate([*(of(x)[:NODES] for x in found), [last]])

    return Turn(
        joined(lambda x: x.time, 3 * PHASE),
        joined(lambda x: x.q[:, 0], TURN),
        joined(lambda x: x.v[:, 0], 0.0),
        joined(lambda x: x.controls[:, 0], 0.0),
        solution.cost,
        solution.iterations,
    )


def hurried() -> Turn:
    """The same turn for comparison as one gives it by hand: full torque one way, none, the other way; equal durations."""
    inertia = float(vehicle(1, rolls_only=True).mass_matrix(np.zeros(3))[0, 0])
    torque = TURN * inertia / (2 * PHASE**2)
    time = np.linspace(0.0, 3 * PHASE, 3 * NODES + 1)
    push = torque * ((time < PHASE).astype(float) - (time >= 2 * PHASE) * (time < 3 * PHASE))
    h = time[1] - time[0]
    rate = np.concatenate([[0.0], np.cumsum(push[:-1]) * h]) / inertia
    angle = np.concatenate([[0.0], np.cumsum((rate[:-1] + rate[1:]) / 2) * h])
    return Turn(time, angle, rate, push, 0.5 * float(np.sum(push[:-1] ** 2) * h), 0)


def attitude_law(model: Model) -> tuple[control.StateSpace, LinearModel]:
    """Angles and rates to the motors, sampled, with a roll-off above the panels' first frequencies; and its linear model."""
    signals = [*(f"q:flight.w{a}" for a in AXES), *(f"gyro.{a}" for a in AXES)]
    linear = linearize(model, model.neutral(), inputs=list(WHEELS), outputs=[*signals[:3], "gyro"])
    moments = np.diag(np.diag(model.mass_matrix(model.neutral())[:3, :3]))
    bandwidth, damping, corner = 0.3, 0.9, 8.0
    gains = np.hstack([bandwidth**2 * moments, 2 * damping * bandwidth * moments])
    lag = -corner * np.eye(3)
    K = control.StateSpace(
        lag, corner * gains, np.eye(3), np.zeros((3, 6)), input_names=signals, output_names=WHEELS
    )
    return control.c2d(K, SAMPLE, method="tustin"), linear


@dataclass(frozen=True, eq=False)
class Mission:
    """Where and how it flies; `options` are those of `simulate` and `ensemble`."""

    model: Model
    q0: Array
    v0: Array
    sources: Mapping[str, Any]
    """what acts from outside, for the balance of momentum"""
    options: Mapping[str, Any] = field(repr=False)


def wheels() -> list[sc.ReactionWheel]:
    """What the flight software knows of them."""
    return [
        sc.ReactionWheel(name, tuple(axis), INERTIA, TORQUE, SPEED)
        for name, axis in zip(WHEELS, np.eye(3).tolist(), strict=True)
    ]


def mission(model: Model, law: control.StateSpace, turn: Turn) -> Mission:
    """In a sun-synchronous orbit: star tracker, gyro, filter, and the law that follows the turn, ten times a second."""
    epoch, orbit = sc.Epoch.of("2026-03-01T12:00:00"), sc.Orbit.circular(600e3, 97.8)
    space = sc.Environment(epoch, sc.Encke(orbit))
    surfaces = [*sc.box("hub", (1.2, 1.2, 1.4))]
    gravity, drag = space.gravity(degree=2), space.drag(surfaces)
    q0, v0 = space.start(model, orbit, attitude="inertial")
    sensors = [
        sc.star_tracker("stars", "hub", space, period=SAMPLE, noise=TRACKER),
        sc.gyro("rate", "hub", period=SAMPLE, noise_density=GYRO, walk_density=GYRO_WALK),
    ]
    zero = np.zeros_like(turn.angle)
    half = turn.angle / 2
    software = sc.FlightSoftware(
        (
            sc.estimate(period=SAMPLE, tracker_noise=TRACKER, gyro_noise=GYRO, gyro_walk=GYRO_WALK),
            sc.follow(
                wheels(),
                law,
                attitude=Table(
                    turn.time, np.stack([np.cos(half), np.sin(half), zero, zero], axis=1), outside="hold"
                ),
                rate=Table(turn.time, np.stack([turn.rate, zero, zero], axis=1), outside="hold"),
                torque=Table(turn.time, np.stack([-turn.torque, zero, zero], axis=1), "hold", "hold"),
            ),
        )
    )
    hardware = sc.Hardware(model, {"wheels": wheels()}, period=SAMPLE)
    options = {
        "duration": LENGTH,
        "step": STEP,
        "integrator": "rk4",
        "controller": software.controllers(hardware, sensors),
        "gravity": gravity,
        "forces": drag,
        "sensors": sensors,
        "progress": False,
    }
    return Mission(model, q0, v0, {"gravity": gravity, "drag": drag}, options)

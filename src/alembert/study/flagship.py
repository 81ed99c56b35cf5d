"""One satellite, the whole way: from a model file to a controller that is proven, flown and dispersed, told on one page.

A hub with three wheels carries two panels that bend and an antenna on a four-bar linkage. It has to roll by 60 degrees in a
low orbit and point again without shaking its panels. `fly(folder)` does, one after the other, what an engineer would:

1. write the model to a file, and read it;
2. its modes, and what more modes of the panels would change;
3. linear models for all values of the panels' stiffness and the antenna's mass, as one transformation;
4. a sampled attitude controller, and a proof that it holds for these values (`al.certify`);
5. the turn: spin up, coast with the motors off, stop, with the least effort and still panels at the end (three phases);
6. the flight: gravity of the Earth with its gradient and drag; flight software with star tracker, gyro and a Kalman filter;
7. the same with the parameters that mu found worst, and a thousand times with random ones;
8. the balances of energy and momentum, which use none of the above.

Every number on the page comes from the run that wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from alembert import control, optimal
from alembert import spacecraft as sc
from alembert.errors import NumericalError, made_folder, writing
from alembert.flexible import beam
from alembert.joints import Fixed, Free, Friction, Revolute, Spring
from alembert.linear import LinearModel, linearize
from alembert.model import Inertia, Model, ModelBuilder, Placement
from alembert.model.io import load, save
from alembert.simulate import DynamicController, Ensemble, Table, ensemble, simulate
from alembert.study import report
from alembert.study.certification import LoopCertificate, certify
from alembert.study.report import Grid
from alembert.verify.case import Line, Plot
from alembert.verify.report import STYLE, plot
from alembert.view import Animation
from alembert.view.page import page

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


RIGID, BASILISK = "2.4 us", "32 us"
"""a rigid satellite of the same make-up in a period of 0.1 s with one step, on 18 November 2026, in both programs (Basilisk
2.12): docs/spacecraft.md, `python -m benchmarks --only mission`"""


@dataclass(frozen=True, eq=False)
class Story:
    """What `fly` has found, all that its page tells; and where the page is."""

    path: Path
    model: Model
    few: Array
    many: Array
    """frequencies of the modes [rad/s], with two and six bending modes in each panel"""
    certificate: LoopCertificate
    turns: Mapping[str, Turn]
    flights: Mapping[str, Any]
    """runs by name: "planned", "by hand", "worst" """
    worst: Mapping[str, float]
    worst_of: str
    dispersed: Ensemble
    balance: sc.MomentumBalance
    seconds: Mapping[str, float]
    """by stage, compiling included"""
    alone: float
    """processor time of a sample of one flight, nothing left to compile [s]"""
    title: str = "A flexible satellite, proven and flown"

    @cached_property
    def summary(self) -> list[tuple[str, str]]:
        """what -> value, for the terminal"""
        model, flights, certificate = self.model, self.flights, self.certificate
        planned, by_hand = flights["planned"], flights["by hand"]
        after = _quiet(planned.time)
        still, shaken = (_bending(model, x.q[after]).max() for x in (planned, by_hand))
        ends = _error(model, self.dispersed.q[:, -1])
        proven = (
            "nothing is proven"
            if certificate.mu is None
            else f"{1 / certificate.mu.upper:.2f} times the ranges"
        )
        return [
            ("proven stable for", proven),
            (
                "turn",
                f"{np.degrees(TURN):.0f} deg in {3 * PHASE:.0f} s, {_error(model, planned.q[-1]):.1e} deg left at the end",
            ),
            ("panels after it", f"shake by {still:.2f} mm; {shaken:.2f} mm after a turn planned by hand"),
            (
                f"{len(ends)} dispersed flights",
                f"error at the end: median {np.median(ends):.1e} deg, largest {ends.max():.1e} deg",
            ),
            (
                "balances",
                f"angular momentum to {self.balance.angular_error:.0e}, energy to {planned.report.energy_error:.0e}",
            ),
        ]


def fly(
    folder: str | Path,
    *,
    members: int = 1000,
    ranges: Mapping[str, tuple[float, float]] = RANGES,
    told: Callable[[str], None] | None = None,
) -> Story:
    """Fly the mission and write `orbiter.toml`, `orbiter.html` and the blocks of the ensemble into a folder.

    `ranges` are those of uncertain parameters; `told` is called with the name of each stage before it begins.
    """
    folder = made_folder(folder)
    clock = _Clock(told)
    with clock("the model, from a file"):
        save(vehicle(), folder / "orbiter.toml")
        model = load(folder / "orbiter.toml")
    with clock("modes"):
        few, many = (_frequencies(vehicle(n)) for n in (2, 6))
    with clock("controller and proof"):
        law, linear = attitude_law(model)
        certificate = certify(
            model,
            DynamicController(law, about=linear),
            ranges,
            members=min(20, members),
            disturbance=0.002,
            progress=False,
        )
    with clock("the turn"):
        turns = {"planned": plan(), "by hand": hurried()}
    missions = {name: mission(model, law, turn) for name, turn in turns.items()}
    with clock("flights"):
        flights = {name: simulate(model, x.q0, x.v0, **x.options) for name, x in missions.items()}
        worst_of, worst = _worst(certificate)
        there = missions["planned"]
        flights["worst"] = simulate(model, there.q0, there.v0, parameters=worst, **there.options)
        short, long = (_processor_time(there, length) for length in (SAMPLE, LENGTH))
        alone = (long - short) / (LENGTH / SAMPLE - 1)
    with clock("dispersions"):
        dispersed = _dispersed(there, ranges, members, folder / "members")
    with clock("balances"):
        balance = sc.momentum_balance(flights["planned"], there.sources)
    found = Story(
        folder / "orbiter.html",
        model,
        few,
        many,
        certificate,
        turns,
        flights,
        worst,
        worst_of,
        dispersed,
        balance,
        clock.seconds,
        alone,
    )
    with clock("page"):
        text = tell(found)
    with writing(found.path):
        found.path.write_text(text, encoding="utf-8")
    return found


class _Clock:
    """Seconds by stage."""

    def __init__(self, told: Callable[[str], None] | None) -> None:
        self.told = told
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        if self.told is not None:
            self.told(stage)
        begin = perf_counter()
        yield
        self.seconds[stage] = perf_counter() - begin


def _frequencies(model: Model) -> Array:
    """Of the modes that are no rigid motion [rad/s]."""
    found = linearize(model, model.neutral(), inputs=list(WHEELS)).modes()
    return np.array(sorted(mode.frequency for mode in found if mode.frequency > 1e-3))


def _processor_time(there: Mission, duration: float) -> float:
    """Of a flight of this length [s]."""
    begin = process_time()
    simulate(there.model, there.q0, there.v0, **{**there.options, "duration": duration})
    return process_time() - begin


def _worst(certificate: LoopCertificate) -> tuple[str, dict[str, float]]:
    """The values that mu names, within the ranges; those of slowest decay where it names none."""
    for kind, values in zip(certificate.cases, certificate.values, strict=True):
        if kind.startswith("mu-worst"):
            return "that mu found worst", dict(values)
    return "of slowest decay", dict(certificate.worst)


def _dispersed(
    there: Mission, ranges: Mapping[str, tuple[float, float]], members: int, checkpoint: Path
) -> Ensemble:
    n = there.model.nv

    def vary(rng: np.random.Generator) -> dict[str, Any]:
        kick = np.zeros(n)
        kick[:3] = rng.normal(0.0, 5e-4, 3)
        values = {name: rng.uniform(*limits) for name, limits in ranges.items()}
        return {"parameters": values, "v0": there.v0 + kick}

    return ensemble(
        there.model, vary, members=members, q0=there.q0, interval=0.5, checkpoint=checkpoint, **there.options
    )


# --- the page ------------------------------------------------------------------------------------------------------


def _error(model: Model, q: Array) -> Array:
    """Of the attitude [deg], (...,)."""
    turned = model.neutral()
    goal = model.integrate(turned, np.r_[TURN, np.zeros(model.nv - 1)])
    return np.degrees(np.linalg.norm(model.difference(q, goal)[..., :3], axis=-1))


def _estimate_error(model: Model, run: Any) -> tuple[Array, Array]:
    """Times, and the angle between the attitude that the filter knows and the true one [arc seconds]."""
    known = run.measurements["attitude"]
    rows = np.round(known.time / STEP).astype(int)
    true, seen = run.q[rows][:, model.q_slice("flight")][:, 3:], known.values[:, :4]
    apart = np.minimum(np.linalg.norm(seen - true, axis=1), np.linalg.norm(seen + true, axis=1))
    return known.time, np.degrees(4 * np.arcsin(apart / 2)) * 3600


def _bending(model: Model, q: Array) -> Array:
    """Largest deflection of a tip by the first modes [mm], (...,)."""
    columns = [model.coordinate_names.index(f"{side}.bending_z_1") for side in ("left", "right")]
    return 1e3 * np.abs(q[..., columns]).max(axis=-1)


def _quiet(time: Array) -> Array:
    """The part of a flight after the turn."""
    return np.asarray(time > 3 * PHASE + 1.0)


def tell(found: Story) -> str:
    model, certificate = found.model, found.certificate
    held = "holds" if certificate.ok else "does not hold"
    parts = [
        f"<style>{STYLE}</style>",
        "<h1>A flexible satellite, from a model file to a controller that is proven and flown</h1>",
        "<p class=lead>Three wheels, two panels that bend, an antenna on a closed linkage. The numbers on this page come "
        "from the run that wrote it.</p>",
        _table("In short", ("", ""), found.summary, left=2),
        "<h2>The flight</h2>",
        _sentence(
            "Turn the picture with the mouse; the cursor of the plots is the time of the animation. The second tab is the "
            f"flight with the parameters {found.worst_of}, the third a turn planned by hand, after which the panels go on "
            "shaking."
        ),
        _framed(page([_animation(found, name) for name in ("planned", "worst", "by hand")], title="orbiter")),
        "<h2>The model</h2>",
        _sentence("Read from orbiter.toml, which stands beside this page."),
        f"<pre>{escape(str(model))}</pre>",
        "<h2>Modes</h2>",
        _sentence(
            "Frequencies of the whole satellite in rad/s, with two bending modes of each panel, as it flies, and with six."
        ),
        _table(
            "",
            ("mode", "two", "six", "change"),
            [
                [k + 1, f"{a:.4f}", f"{b:.4f}", f"{100 * (a / b - 1):+.2f} %"]
                for k, (a, b) in enumerate(zip(found.few, found.many, strict=False))
            ],
        ),
        f"<h2>The controller {held}</h2>",
        _sentence(
            f"Angles and rates, every {SAMPLE:g} s, to the three motors. Uncertain are "
            + "; ".join(
                f"{name}, {low:g} to {high:g}" for name, (low, high) in certificate.family.ranges.items()
            )
            + "."
        ),
        report.bullets([*certificate.holds, *certificate.breaks, str(certificate.family.certificate)]),
        _sentence(
            "The proof takes angles and rates as known. In flight they come from the filter, whose errors are below; the "
            "effect of its delay is in the flights, not in the proof."
        ),
        *(grid.html() for grid in certificate.tables()),
        "<h2>The turn</h2>",
        _sentence(
            f"The plan uses a smaller model, which only rolls and has one mode in each panel. Three phases of {PHASE:g} s: "
            "spin up, coast with the motor off, stop; with the least effort, and the panels at rest at the end "
            f"({found.turns['planned'].iterations} iterations of DMOC). It is flown in the whole model, with two modes."
        ),
        _plot("torque on the hub [N m]", [Line(name, x.time, x.torque) for name, x in found.turns.items()]),
        _plot(
            "largest tip deflection [mm]",
            [Line(name, x.time, _bending(model, x.q)) for name, x in found.flights.items()],
        ),
        "<h2>Flight software</h2>",
        _sentence(
            f"Every {SAMPLE:g} s a Kalman filter takes a sample of the star tracker ({np.degrees(TRACKER) * 3600:.1f} arc "
            f"seconds of noise on each axis) and of the gyro. The law follows the planned turn, within the limits of the "
            "wheels. The error of the estimated attitude:"
        ),
        _plot(
            "error of the estimate [arc seconds]",
            [Line(name, *_estimate_error(model, x)) for name, x in found.flights.items()],
        ),
        "<h2>Dispersions</h2>",
        _sentence(
            f"{len(found.dispersed.q)} flights with random stiffness, antenna mass, initial rates and sensor noise. "
            "Finished blocks are kept in the folder members: a run that is stopped goes on from there."
        ),
        _envelope(found),
        "<h2>Balances</h2>",
        f"<pre>{escape(str(found.balance))}\n{escape(str(found.flights['planned'].report))}</pre>",
        "<h2>What it took</h2>",
        _table("", ("stage", "seconds"), [[k, f"{s:.1f}"] for k, s in found.seconds.items()]),
        _sentence("Wall clock, compiling included where this machine had not compiled it before."),
        _table(
            "",
            (f"{SAMPLE:g} s of flight, processor time", ""),
            [
                [
                    f"this satellite: panels that bend, closed linkage, filter; {round(SAMPLE / STEP)} steps",
                    f"{1e6 * found.alone:.0f} us",
                ],
                ["for comparison, a hub with three wheels and two rigid panels, one step: Alembert", RIGID],
                ["the same in Basilisk", BASILISK],
            ],
            left=2,
        ),
        _sentence(
            "The first line is from this run. The other two were measured side by side on 18 November 2026, by "
            "python -m benchmarks --only mission."
        ),
    ]
    return report.page("A flexible satellite", parts)


def _animation(found: Story, name: str) -> Animation:
    model, run = found.model, found.flights[name]
    every = slice(None, None, 5)
    q, v = run.q[every], run.v[every]
    speeds = [model.v_slice(x).start for x in WHEELS]
    titles = {
        "planned": "Planned turn",
        "worst": "With the worst parameters",
        "by hand": "Turn planned by hand",
    }
    notes = {"left at the end": f"{_error(model, q[-1]):.1e} deg"}
    if name == "worst":
        notes |= {key: f"{value:.4g}" for key, value in found.worst.items()}
    here = q.copy()
    here[:, :3] = 0.0  # the picture goes with the satellite
    return Animation(
        model,
        run.time[every],
        here,
        series={
            "left to turn [deg]": {"angle": _error(model, q)},
            "tip deflection [mm]": {"largest": _bending(model, q)},
            "wheel speeds [rad/s]": dict(zip(WHEELS, v[:, speeds].T, strict=True)),
        },
        title=titles[name],
        notes=notes,
        trails=["left_tip", "right_tip", "focus"],
        parameters=found.worst if name == "worst" else None,
    )


def _envelope(found: Story) -> str:
    runs, model = found.dispersed, found.model
    error, bend = _error(model, runs.q), _bending(model, runs.q)
    rows = []
    after = _quiet(runs.time)
    for what, x in (
        ("error at the end [deg]", error[:, -1]),
        ("panels after the turn [mm]", bend[:, after].max(axis=1)),
    ):
        rows.append([what, *(f"{np.quantile(x, p):.3g}" for p in (0.5, 0.95, 1.0))])
    lines = [
        Line(label, runs.time, np.quantile(bend, p, axis=0))
        for label, p in (("median", 0.5), ("95 %", 0.95), ("largest", 1.0))
    ]
    return _table("", ("", "median", "95 %", "largest"), rows) + _plot(
        "tip deflection of all flights [mm]", lines
    )


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], *, left: int = 1) -> str:
    return Grid.of(title, head, rows, left=left).html()


def _sentence(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _plot(label: str, lines: Sequence[Line]) -> str:
    return f"<div>{plot(Plot('time [s]', label, tuple(lines)))}</div>"


def _framed(text: str) -> str:
    """A page within this one."""
    return f'<iframe title="animation" srcdoc="{escape(text)}" style="width:100%;height:44rem;border:0"></iframe>'

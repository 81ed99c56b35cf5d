"""`alembert demo`: motions worth looking at, on one page that opens without network or server.

A scene is a function that computes a motion and says how well it went. To add one, write a function that returns a
`DemoScene` and list it in `SCENES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from alembert.arguments import unknown
from alembert.cli import console
from alembert.cli.app import STUDIES, Json, command
from alembert.cli.console import argument, option
from alembert.errors import AlembertWarning, ArgumentError, NumericalError, made_folder
from alembert.study.report import Grid

if TYPE_CHECKING:
    from alembert.model import Model
    from alembert.study.flagship import Story


Array = np.ndarray


@dataclass(frozen=True, eq=False)
class DemoScene:
    """A motion to look at, and lines about it for the terminal and the page."""

    title: str
    model: Model
    time: Array
    q: Array
    series: Mapping[str, Mapping[str, Array]]
    """plots: title -> lines"""
    summary: Sequence[tuple[str, str]]
    """what -> value"""
    about: str = ""
    """a sentence or two for the page"""
    options: Mapping[str, Any] = field(default_factory=dict)
    """more for `alembert.view.Animation`: efforts, trails, ..."""


def acrobot() -> DemoScene:
    """An acrobot swings up with the least effort: two rods, one motor between them."""
    from alembert import library, optimal
    from alembert.simulate import simulate

    model = library.acrobot()
    problem = optimal.Problem(
        model,
        4.0,
        start={"q": [-np.pi / 2, 0.0], "v": 0},
        end={"q": [np.pi / 2, 0.0], "v": 0},
        cost=optimal.effort(),
    )
    solution = _solve(problem, 200)
    found = _solved(solution)
    # upright is unstable: the torques alone would miss it, the feedback that the solver gives with them does not
    run = simulate(
        model,
        solution.q[0],
        solution.v[0],
        duration=4.0,
        step=0.004,
        interval=0.02,
        integrator="rk4",
        controller=solution.controller(),
        progress=False,
    )
    left = float(np.abs(run.q[-1] - [np.pi / 2, 0.0]).max())
    return DemoScene(
        "An acrobot swings up",
        model,
        run.time,
        run.q,
        {"energy [J]": _energies(model, run), "angles [rad]": _named(model.coordinate_names, run.q)},
        [
            *found,
            ("simulated", f"with the feedback of the solution it ends {left:.0e} rad from upright"),
            ("torque", f"up to {np.abs(run.efforts).max():.1f} N m, at the elbow only"),
        ],
        "Two rods and one motor, between them. A way up within 4 s with little effort, found by optimal control and "
        "followed in a simulation: it has to swing to gather the energy.",
        {"efforts": run.efforts, "trails": ["tip"]},
    )


def satellite() -> DemoScene:
    """A satellite turns by its momentum wheels, from rest to rest, with the least effort."""
    from alembert import optimal

    model = _template("satellite")
    target = np.array([0.9, -0.6, 1.5])  # rad: rotation vector to turn by
    goal = model.integrate(model.neutral(), np.r_[target, np.zeros(model.nv - 3)])
    wheels = [f"spin_{axis}" for axis in "xyz"]

    def left(k: int) -> Callable[[Any], Any]:
        """A component of the rotation that is left: twice the vector part of conj(goal) * q."""
        w, *u = goal[3:7]
        i, j = (k + 1) % 3, (k + 2) % 3

        def component(s: Any) -> Any:
            a = s.position("attitude")[3:7]
            return 2 * (w * a[1 + k] - a[0] * u[k] - u[i] * a[1 + j] + u[j] * a[1 + i])

        return component

    # the wheels at rest are enough: without momentum the body rests with them
    end = {"v": dict.fromkeys(wheels, 0.0), **{f"turn {'xyz'[k]}": (left(k), 0.0) for k in range(3)}}
    problem = optimal.Problem(
        model, 10.0, start={"q": model.neutral(), "v": 0}, end=end, cost=optimal.effort()
    )
    solution = _solve(problem, 60)
    momentum = float(np.abs(model.momentum(solution.q, solution.v, about="world")).max())
    angle = np.linalg.norm(model.difference(solution.q, goal)[:, :3], axis=-1)
    speeds = solution.v[:, [model.v_slice(name).start for name in wheels]]
    return DemoScene(
        "A satellite turns by its wheels",
        model,
        solution.time,
        solution.q,
        {"wheel speeds [rad/s]": _named(wheels, speeds), "left to turn [rad]": {"angle": angle}},
        [
            ("turned by", f"{np.linalg.norm(target):.2f} rad, {angle[-1]:.0e} rad left"),
            *_solved(solution),
            ("check", str(solution.check)),
            (
                "total momentum",
                f"zero to {momentum:.0e} N m s; a wheel has up to {0.2 * np.abs(speeds).max():.1f}",
            ),
        ],
        "Nothing outside to push against: the three wheels take up what the body needs to turn, and give it back. "
        "The optimal turn keeps the total momentum at zero to rounding.",
        {"efforts": _held(solution.efforts), "trails": ["panel_end", "antenna"]},
    )


def whip() -> DemoScene:
    """A chain of 12 links falls; nothing damps it."""
    from alembert import library
    from alembert.simulate import simulate

    model = coloured(library.chain(12, axes=((0.0, -1.0, 0.0),), length=0.25, mass=0.2))
    run = simulate(model, np.zeros(12), duration=10.0, interval=0.01, progress=False)
    tip = np.linalg.norm(np.gradient(model.frame_pose(run.q, "tip").translation, run.time, axis=0), axis=-1)
    return DemoScene(
        "A chain of 12 links falls",
        model,
        run.time,
        run.q,
        {"energy [J]": _energies(model, run), "speed of the tip [m/s]": {"tip": tip}},
        [
            ("integrator", f"{run.integrator}, {run.steps} steps"),
            ("energy", f"kept to {run.report.energy_error:.0e} of the largest kinetic energy"),
            ("tip", f"up to {tip.max():.1f} m/s"),
        ],
        "Let go from the horizontal, it cracks like a whip, and soon moves chaotically. Nothing damps it, and the "
        "integrator adds nothing: the total energy stays a flat line.",
        {"trails": ["tip"]},
    )


def throw() -> DemoScene:
    """An arm throws a ball as fast as its muscles let it, in a time that is found."""
    from alembert.optimal import examples

    solution = examples.pitcher().solve(progress=False)
    model = solution.problem.model
    assert model is not None
    if not solution.success:
        raise NumericalError(f"demo: the solver did not succeed: {solution.message}")
    speed = np.linalg.norm(
        np.gradient(model.frame_pose(solution.q, "hand").translation, solution.time, axis=0), axis=-1
    )
    impulses = np.diff(solution.time) * solution.efforts[:, 0]
    lost = float(np.abs(np.diff(solution.momenta[:, 0]) - impulses).max())
    return DemoScene(
        "An arm throws a ball",
        model,
        solution.time,
        solution.q,
        {
            "speed of the hand [m/s]": {"hand": speed},
            "torques [N m]": _named(solution.problem.plant.controls, _held(solution.controls)),
        },
        [
            (
                "found",
                f"{solution.iterations} iterations, {solution.steps} steps, {solution.duration:.3f} s in all",
            ),
            ("hand", f"up to {speed.max():.0f} m/s"),
            ("momentum", f"changes about the vertical by the torso's torque alone, to {lost:.0e} N m s"),
        ],
        "Torso, shoulder and elbow with the strength of a grown man, from rest; the way and its time are found together by "
        "discrete mechanics (DMOC), which keeps the balance of momentum in every step. Play it slowly.",
        {"efforts": _held(solution.efforts), "trails": ["hand"]},
    )


def linkage() -> DemoScene:
    """A four-bar linkage turns, its loop closed all the time."""
    from alembert.simulate import simulate

    model = _template("fourbar")
    state = model.assemble([1.2, -1.0, 1.6], [12.0, 0.0, 0.0], fixed=["drive"])
    run = simulate(model, state.q, state.v, duration=6.0, step=0.004, interval=0.02, progress=False)
    report = run.report
    return DemoScene(
        "A four-bar linkage turns freely",
        model,
        run.time,
        run.q,
        {"speeds [rad/s]": _named(model.speed_names, run.v), "energy [J]": _energies(model, run)},
        [
            ("integrator", f"{report.integrator}, {run.steps} steps, projected onto the loop"),
            ("loop", f"closed to {report.constraint_error:.0e} m"),
            ("energy", f"kept to {report.energy_error:.0e} of the largest kinetic energy"),
        ],
        "A closed loop: crank, coupler and rocker on two fixed pivots, turning freely after a push. The line is the "
        "path of the coupler's tip.",
        {"trails": ["pen"]},
    )


def spin_up() -> DemoScene:
    """Three equal booms are spun up, each with another model of what rotation does to bending; one is wrong."""
    import casadi as ca

    from alembert.flexible import beam
    from alembert.joints import Revolute
    from alembert.model import ModelBuilder
    from alembert.simulate import simulate

    builder = ModelBuilder("booms", gravity=(0, 0, 0))
    levels = ("consistent", "ruthless", "inconsistent")
    for k, level in enumerate(levels):
        boom = beam(length=10.0, rhoA=1.2, EI_z=1.4e4, bending_y=3, stiffening=level)
        joint, where = Revolute((0, 0, 1)), (0, 0, 3.0 * k)
        builder.body(level, boom, joint=joint, joint_name=f"hub_{k + 1}", placement=where)
        builder.frame(f"{level}_tip", level, node="tip")
    model = builder.build()
    t = ca.SX.sym("t")
    angle = 6 / 15 * (t**2 / 2 + (7.5 / np.pi) ** 2 * (ca.cos(np.pi * t / 7.5) - 1))
    turn = ca.Function("turn", [t], [angle])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)  # that two of them are wrong here is what is shown
        run = simulate(
            model,
            model.neutral(),
            duration=8.6,
            step=0.005,
            interval=0.02,
            integrator="rk4",
            prescribed={f"hub_{k + 1}": turn for k in range(3)},
            progress=False,
        )
    shapes = np.array(boom.node("tip").shapes)[:, 1]
    columns = {
        name: [k for k, x in enumerate(model.coordinate_names) if x.startswith(f"{name}.")] for name in levels
    }
    tips = {name: run.q[:, columns[name]] @ shapes for name in levels}
    return DemoScene(
        "Three booms are spun up",
        model,
        run.time,
        run.q,
        {"deflection of the tip [m]": tips},
        [
            ("consistent", f"bends by {1e3 * abs(tips['consistent']).max():.0f} mm, then comes back"),
            (
                "ruthless",
                f"by {1e3 * abs(tips['ruthless']).max():.0f} mm: no stiffening, and no softening either",
            ),
            (
                "inconsistent",
                f"is at {abs(tips['inconsistent'][-1]):.1f} m after {run.time[-1]:.1f} s, and goes on",
            ),
        ],
        "To 6 rad/s in 15 s, the first half of it. Rotation stretches a boom and so stiffens it. A model without that, as "
        "most programs have it, feels only that the centrifugal force grows with the deflection, and diverges. Alembert "
        "warns about it.",
        {"trails": [f"{level}_tip" for level in levels]},
    )


def coloured(chain: Model) -> Model:
    """Thicker, and from blue to orange along the chain."""
    from alembert.model import Capsule

    bodies = []
    for body, s in zip(chain.bodies, np.linspace(0.0, 1.0, len(chain.bodies)), strict=True):
        first, last = np.array([0.13, 0.33, 0.66, 1.0]), np.array([0.96, 0.55, 0.13, 1.0])
        color = tuple(float(c) for c in first + s * (last - first))
        visuals = tuple(
            replace(v, shape=Capsule(0.024, v.shape.length), color=color)
            for v in body.visuals
            if isinstance(v.shape, Capsule)
        )
        bodies.append(replace(body, visuals=visuals))
    return chain.replace(bodies=tuple(bodies))


def _energies(model: Model, motion: Any) -> dict[str, Array]:
    kinetic, potential = model.kinetic_energy(motion.q, motion.v), model.potential_energy(motion.q)
    return {"kinetic": kinetic, "potential": potential, "total": kinetic + potential}


def _named(names: Sequence[str], x: Array) -> dict[str, Array]:
    return dict(zip(names, x.T, strict=True))


def _held(efforts: Array) -> Array:
    """Efforts of intervals at the times between them, the last one repeated."""
    return np.concatenate([efforts, efforts[-1:]])


def _solve(problem: Any, steps: int) -> Any:
    """Twice: the first time on a machine is spent on compiling, the second tells how long solving takes."""
    problem.solve(steps, progress=False)
    return problem.solve(steps, progress=False)


def _solved(solution: Any) -> list[tuple[str, str]]:
    """How a solution of optimal control was found."""
    if not solution.success:
        raise NumericalError(f"demo: the solver did not succeed: {solution.message}")
    return [
        ("cost", f"{solution.cost:.6g}, the half integral of squared torques, over {solution.duration:g} s"),
        (
            "iterations",
            f"{solution.iterations} in {solution.seconds['total']:.2g} s once compiled, {solution.steps} steps",
        ),
    ]


def _template(name: str) -> Model:
    """The model that `alembert new` writes."""
    from importlib import resources

    from alembert.model.io.native import loads

    path = resources.files("alembert.study").joinpath("templates", name, "model.toml")
    return loads(path.read_text(encoding="utf-8"), name=f"{name}/model.toml")


SCENES: dict[str, Callable[[], DemoScene]] = {
    "acrobot": acrobot,
    "satellite": satellite,
    "spin_up": spin_up,
    "throw": throw,
    "whip": whip,
    "linkage": linkage,
}


FLAGSHIP, PLAY = "flagship", "play"
OTHERS = {
    FLAGSHIP: "A flexible satellite, from a model file to a controller that is proven, flown and dispersed.",
    PLAY: "A chain that is simulated in the browser: drag it, change gravity and damping.",
}
"""scenes with a page of their own"""


def _complete_scene(incomplete: str) -> list[str]:
    return [*SCENES, *OTHERS]


@command(
    "demo",
    panel=STUDIES,
    examples=[
        ("alembert demo", "all scenes on one page, demo-output/index.html"),
        (
            "alembert demo flagship",
            "a satellite from its model file to a controller proven and flown: orbiter.html",
        ),
        ("alembert demo satellite --folder /tmp/look", "one scene, elsewhere"),
        ("alembert demo --list", "what there is"),
    ],
    keys={
        "page": "the file to open in a browser",
        "seconds": "that it took",
        "scenes": "title, seconds and summary of each, by name (with --list: what each is about)",
    },
)
def demo(
    scene: Annotated[
        list[str] | None, argument("SCENE", "Which (see --list); all.", complete=_complete_scene)
    ] = None,
    folder: Annotated[Path, option("FOLDER", "Where the page goes.")] = Path("demo-output"),
    members: Annotated[int, option("N", "Dispersed flights of the flagship.", min=1)] = 1000,
    list_: Annotated[bool, typer.Option("--list", help="Say what there is.")] = False,
    as_json: Json = False,
) -> None:
    """Solve some hard and beautiful problems, and write one page to look at them in a browser."""
    if list_:
        known = {name: (make.__doc__ or "").partition("\n")[0] for name, make in SCENES.items()}
        known |= OTHERS
        console.answer({"scenes": known}, as_json, Grid.of("scenes", ("name", ""), known.items(), left=2))
        return
    asked = list(scene or [*SCENES, *OTHERS])
    for name in asked:
        if name not in (*SCENES, *OTHERS):
            raise ArgumentError(unknown("demo: there is no scene", name, [*SCENES, *OTHERS]))
    chosen = [name for name in asked if name not in OTHERS]
    begin = perf_counter()
    made: dict[str, DemoScene] = {}
    data: dict[str, Any] = {}
    for name in chosen:
        start = perf_counter()
        with console.working(f"{(SCENES[name].__doc__ or name).partition('.')[0]} ..."):
            made[name] = SCENES[name]()
        seconds = perf_counter() - start
        data[name] = {"title": made[name].title, "seconds": seconds, "summary": dict(made[name].summary)}
        if not as_json:
            rows = [*made[name].summary, ("computed in", f"{seconds:.1f} s, compiling included")]
            console.show(Grid.of(made[name].title, ("", ""), rows, left=2), "")
    pages = [write(list(made.values()), folder / "index.html")] if made else []
    if PLAY in asked:
        start = perf_counter()
        with console.working("A page that simulates ..."):
            pages.append(play(folder / "play.html"))
        about = {"title": OTHERS[PLAY], "seconds": perf_counter() - start, "summary": {}}
        data[PLAY] = about | {"page": str(pages[-1])}
    if FLAGSHIP in asked:
        flown = _fly(folder, members, as_json)
        pages.append(flown.path)
        told = {"title": flown.title, "seconds": sum(flown.seconds.values()), "summary": dict(flown.summary)}
        data[FLAGSHIP] = told | {"page": str(flown.path)}
    seconds = perf_counter() - begin
    listed = ", ".join(str(path) for path in pages)
    text = f"Open in a browser: {listed}. ({seconds:.0f} s)"
    console.answer({"page": str(pages[0]), "seconds": seconds, "scenes": data}, as_json, text)


def _fly(folder: Path, members: int, as_json: bool) -> Story:
    from alembert.study.flagship import fly

    with console.working("A flexible satellite: the model ...") as say:
        story = fly(folder, members=members, told=lambda stage: say(f"A flexible satellite: {stage} ..."))
    if not as_json:
        taken = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in story.seconds.items())
        rows = [*story.summary, ("seconds", taken)]
        console.show(Grid.of(story.title, ("", ""), rows, left=2), "")
    return story


def play(path: Path) -> Path:
    """A page that simulates a chain of 12 links in the browser, 1000 steps a second."""
    from alembert import library
    from alembert.deploy import live_page

    made_folder(path.parent)
    chain = coloured(library.chain(12, axes=((0.0, -1.0, 0.0),), length=0.25, mass=0.2))
    return live_page(chain, path, title="A chain to play with")


def write(scenes: list[DemoScene], path: Path) -> Path:
    """One page with a tab for each scene."""
    from alembert.view import Animation, write_page

    made_folder(path.parent)
    motions = [
        Animation(
            scene.model,
            scene.time,
            scene.q,
            series=scene.series,
            title=scene.title,
            notes={"": scene.about, **dict(scene.summary)},
            **scene.options,
        )
        for scene in scenes
    ]
    return write_page(path, motions, title="Alembert")

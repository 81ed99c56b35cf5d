"""Random starts: 15 kinds of optimal control problems from ten random guesses each, by the sweep and by IPOPT.

Both solve the same stages, with the same compiled functions, tolerance and guesses. A guess is the straight one, bent by
waves as large as the states themselves move, with controls and durations drawn over their range. A solve counts where it
converges within `LIMIT` seconds; times are those of the processor for the solver alone, functions included, without
compiling: all functions are compiled to their best code before (`al.prepare`), for both.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import alembert as al
from alembert.deploy import compiler
from alembert.optimal import Phases, Problem, System, duration, effort, examples, running, terminal
from alembert.optimal import guess as guesses
from benchmarks.environments import peer_python
from benchmarks.rows import Row, against

Array = np.ndarray
DO_MPC = ("do-mpc==5.1.2",)
STARTS = 10
LIMIT = 5.0
"""s of one solve"""
SPREAD = 0.5
"""of the range of a state: the size of the waves"""
WAVES, POINTS = 3, 21
WORSE = 1.01
"""times the best cost of a kind that any solve has found: beyond, it is another optimum"""


@dataclass(frozen=True)
class Kind:
    """`known` leads to a solution: its range says how large random guesses are."""

    problem: Any
    steps: int
    options: dict[str, Any] = field(default_factory=dict)
    known: Any = None


@dataclass(frozen=True)
class Tally:
    """What a solver has made of the starts of a kind."""

    solved: int
    best: int
    """of them with the least cost that was found"""
    seconds: float
    """median of those that solved it"""
    iterations: float
    again: int
    """those that were solved from another start than the one given"""


def rows(*, quick: bool) -> list[Row]:
    found = []
    for name in KINDS:
        sweep, ipopt = study(name, 3 if quick else STARTS)
        label = f"random starts: {sweep.solved} solved, IPOPT {ipopt.solved}"
        found.append(against(f"starts {name}", label, name, sweep.seconds, "IPOPT", ipopt.seconds, 5.0))
    return [*found, *samples()]


def samples(count: int = 60) -> list[Row]:
    """Samples of a predictive controller: a cart-pole with 40 intervals in a new state, disturbed in each of them.

    By the solver in Python, by the compiled one, and by that as C, which is called on the same numbers as the kernel.
    """
    cost = effort(1e-2) + running(lambda s: 10 * (s.q[0] - s.target[0]) ** 2 + 10 * s.q[1] ** 2)
    given: dict[str, Any] = {"start": {"q": [0.0, 0.1], "v": 0}, "inputs": {"target": [0.0]}}
    problem = Problem(al.library.cart_pole(), 2.0, **given, limits={"tau": 20.0}, cost=cost)
    prepared, rng, seconds = problem.prepare(40), np.random.default_rng(0), []
    plan = prepared.solve(tolerance=1e-6)
    for _ in range(count):
        start = {"q": plan.q[1] + rng.normal(0, 0.02, 2), "v": plan.v[1] + rng.normal(0, 0.05, 2)}
        began = time.process_time()
        plan = prepared.solve(start=start, guess=plan, shift=0.05, tolerance=1e-6)
        seconds.append(time.process_time() - began)
    solver, result, compiled = prepared.compile(iterations=8, guess=plan), None, []
    for _ in range(count + 20):  # the first ones also compile
        states = plan.q[1] + rng.normal(0, 0.02, 2), plan.v[1] + rng.normal(0, 0.05, 2)
        began = time.process_time()
        result = solver.solve(start=dict(zip("qv", states, strict=True)), before=result, shift=1)
        compiled.append(time.process_time() - began)
    label = "sample of predictive control, N = 40"
    found = [
        Row("sample", label, "cart_pole", float(np.median(seconds)), measure="ours", goal=1e-3),
        _against_do_mpc(f"{label}, compiled", float(np.median(compiled[20:])), count),
    ]
    return [*found, *_as_c(solver, count)]


def _against_do_mpc(label: str, ours: float, count: int) -> Row:
    """The same samples by do-mpc, in an environment of its own; without a peer where that cannot be made."""
    python = peer_python("do_mpc", DO_MPC)
    if python is None:
        return Row("compiled sample", label, "cart_pole", ours, measure="ours", goal=1e-3)
    script = str(Path(__file__).parent / "do_mpc_samples.py")
    run = subprocess.run([str(python), script, str(count)], capture_output=True, text=True, check=True)
    theirs = json.loads(run.stdout.splitlines()[-1])
    name = f"do-mpc, {theirs['solved']} of {count} solved"
    return against("compiled sample", label, "cart_pole", ours, name, theirs["median"], 20.0)


def _as_c(solver: al.optimal.CompiledSolver, count: int) -> list[Row]:
    """The solver as C against the kernel in this process, in turns; nothing where there is no compiler."""
    if not compiler.has_compiler():
        return []
    numbers = solver.numbers()
    with tempfile.TemporaryDirectory() as folder:
        source = solver.export_c(folder)
        library = Path(folder) / "solver.so"
        compiler.shared_library("benchmarks", source.files[1:2], library, compiler.this_platform())
        own = ctypes.CDLL(str(library)).solver_solve
    pointer = ctypes.POINTER(ctypes.c_double)
    own.argtypes = [pointer, ctypes.c_double, *[pointer] * 4]
    room, found = np.zeros(source.memory // 8), np.zeros(8)
    times: dict[str, list[float]] = {"C": [], "kernel": []}
    kernel = solver.kernel.fast()
    for _ in range(count):
        memory, left = numbers["memory"].copy(), np.empty_like(numbers["memory"])
        given = [x.ctypes.data_as(pointer) for x in (numbers["limits"], memory, found, room)]
        began = time.process_time()
        own(numbers["p"].ctypes.data_as(pointer), float(numbers["duration"][0]), *given)
        middle = time.process_time()
        kernel(*numbers.values(), left, found)
        times["C"].append(middle - began)
        times["kernel"].append(time.process_time() - middle)
    ours, theirs = (float(np.median(times[name])) for name in ("C", "kernel"))
    return [against("sample as C", "sample as C", "cart_pole", ours, "kernel in process", theirs, 1 / 1.2)]


def table(date: str) -> str:
    """For docs/optimal-control.md."""
    lines = [
        f"Of {STARTS} random starts each, run of {date}:",
        "",
        "| kind | solved: sweep | IPOPT | best optimum: sweep | IPOPT | iterations: sweep | IPOPT | time: sweep | IPOPT |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in KINDS:
        one, two = study(name)
        solved = f"{one.solved}" + (f" ({one.again} from another start)" if one.again else "")
        counts = f"{two.solved} | {one.best} | {two.best} | {one.iterations:.0f} | {two.iterations:.0f}"
        lines.append(
            f"| {name} | {solved} | {counts} | {1e3 * one.seconds:.1f} ms | {1e3 * two.seconds:.1f} ms |"
        )
    return "\n".join(lines)


def study(name: str, starts: int = STARTS) -> tuple[Tally, Tally]:
    """Both solvers on the same starts."""
    kind = KINDS[name]()
    with al.prepare():
        drawn = list(draws(kind, starts, np.random.default_rng(list(name.encode()))))
        runs = {solver: [_solve(kind, start, solver) for start in drawn] for solver in ("sweep", "ipopt")}
    costs = [run[1] for each in runs.values() for run in each if run[0]]
    least = min(costs, default=np.nan)
    near = least + (WORSE - 1) * max(abs(least), 1e-6)
    tallies = []
    for each in runs.values():
        good = [run for run in each if run[0]]
        seconds, iterations = (float(np.median([run[k] for run in good])) if good else np.nan for k in (2, 3))
        again = sum("; begun from" in run[4] for run in good)
        tallies.append(Tally(len(good), sum(run[1] <= near for run in good), seconds, iterations, again))
    return tallies[0], tallies[1]


def _solve(kind: Kind, start: Any, solver: str) -> tuple[bool, float, float, int, str]:
    more: dict[str, Any] = {"solver": solver, "time_limit": LIMIT, "guess": start, "progress": False}
    found = kind.problem.solve(kind.steps, **kind.options | more)
    return found.converged, found.cost, found.seconds["processor"], found.iterations, found.message


def draws(kind: Kind, count: int, rng: np.random.Generator) -> Iterator[Any]:
    """Random guesses; the first solve of the kind, from what is known of it, also compiles."""
    known = kind.problem.solve(kind.steps, **kind.options | {"guess": kind.known})
    if isinstance(kind.problem, Phases):
        for _ in range(count):
            yield {
                name: _bent(kind.problem.phases[name], known[name], rng, straight=False)
                for name in kind.problem.phases
            }
        return
    for _ in range(count):
        yield _bent(kind.problem, known, rng, straight=True)


def _bent(problem: Problem, known: Any, rng: np.random.Generator, *, straight: bool) -> Any:
    """A straight motion with waves; `known` is a solution."""
    chart, where = problem.plant.chart, np.linspace(0, 1, POINTS)
    points = known.x
    ways = chart.difference(np.repeat(points[:1], len(points), axis=0), points)
    span = np.ptp(ways, axis=0)
    ends = np.linspace(points[0], points[-1], POINTS)
    base = guesses.straight(problem).at(problem, where) if straight else ends
    waves = sum(
        rng.normal(size=len(span)) / k * np.sin(np.pi * k * where)[:, None] for k in range(1, WAVES + 1)
    )
    x = chart.move(base, SPREAD * span * waves)
    T = float(known.duration)
    if problem.is_free:
        room = 0.05 * (problem.longest - problem.shortest)
        T = float(np.clip(T * 2 ** rng.uniform(-1, 1), problem.shortest + room, problem.longest - room))
    u = known.controls
    low, high = u.min(axis=0, initial=np.inf), u.max(axis=0, initial=-np.inf)
    draw = [rng.uniform(size=(2, 1, u.shape[1])) for _ in range(2)]
    controls = low + (high - low) * (draw[0][0] + (draw[0][1] - draw[0][0]) * where[:, None])
    given = {"time": T * where, "controls": controls}
    if problem.model is None:
        return given | {"x": x}
    return given | {"q": x[:, : problem.model.nq], "v": x[:, problem.model.nq :]}


# --- kinds ------------------------------------------------------------------------------------------------------------


def _of(example: examples.Example, steps: int, **more: Any) -> Kind:
    options = {k: v for k, v in example.options.items() if k not in ("guess", "nodes")}
    return Kind(example.problem, steps, options | more, example.options.get("guess"))


def least_time() -> Kind:
    """Bang-bang: an oscillator of van der Pol to another state in the least time, with one switch."""
    system = System(["x", "y"], ["u"], lambda s: [s.y, -s.x - s.y * (s.x**2 - 1) + s.u])
    ends = {"start": {"x": -0.4, "y": 0.6}, "end": {"x": 0.6, "y": 0.4}}
    problem = Problem(system, (0.5, 4.0), **ends, limits={"u": 1.0}, cost=duration())  # type: ignore[arg-type]
    return Kind(problem, 40, {"transcription": "rk4"})


def two_burns() -> Kind:
    """Phases: burn, coast, burn from a circular orbit to a higher one."""

    def rates(s: Any, thrust: bool) -> list[Any]:
        push, turn = (s.a * ca.sin(s.u), s.a * ca.cos(s.u)) if thrust else (0, 0)
        gains = s.a**2 / 1.5 if thrust else 0 * s.a
        return [s.vr, s.vt**2 / s.r - 1 / s.r**2 + push, -s.vr * s.vt / s.r + turn, gains]

    names = ["r", "vr", "vt", "a"]
    burning = System(names, ["u"], lambda s: rates(s, True))
    coasting = System(names, [], lambda s: rates(s, False))
    spent = running(lambda s: s.a)
    first = Problem(burning, (0.5, 5.0), start={"r": 1, "vr": 0, "vt": 1, "a": 0.1}, cost=spent)
    last = Problem(burning, (0.3, 4.0), end={"r": 3, "vr": 0, "vt": 3**-0.5}, cost=spent)
    flight = Phases({"burn": first, "coast": Problem(coasting, (2.0, 12.0)), "last burn": last})
    known = {
        "burn": {"time": [0, 2.2], "x": [[1, 0, 1, 0.1], [1.2, 0.2, 1.05, 0.12]], "controls": [[0.4], [0.5]]},
        "coast": {"time": [0, 7.0], "x": [[1.2, 0.2, 1.05, 0.12], [2.9, 0.05, 0.45, 0.12]]},
        "last burn": {
            "time": [0, 1.3],
            "x": [[2.9, 0.05, 0.45, 0.12], [3, 0, 0.577, 0.13]],
            "controls": [[0.0], [0.0]],
        },
    }
    return Kind(flight, 20, known=known)


def periodic() -> Kind:
    """A driven pendulum that follows a reference and ends as it began."""
    system = System(["q", "v"], ["u"], lambda s: [s.v, -9.81 * ca.sin(s.q) - 0.2 * s.v + s.u])
    cost = running(lambda s: (s.q - 2 * ca.sin(2 * np.pi * s.t)) ** 2 + 1e-3 * s.u**2)
    return Kind(Problem(system, 1.0, cost=cost, periodic=True, limits={"u": 30.0}), 40)


def design() -> Kind:
    """A pendulum swings up; its length is found with the motion."""
    system = System(
        ["q", "w"], ["u"], lambda s: [s.w, -9.81 / s.l * ca.sin(s.q) + s.u / s.l**2], parameters={"l": 1.0}
    )
    ends: dict[str, Any] = {"start": {"q": 0, "w": 0}, "end": {"q": np.pi, "w": 0}}
    cost = effort() + terminal(lambda s: 20 / s.l)
    problem = Problem(system, 2.0, **ends, cost=cost, design={"l": (0.3, 3.0)}, limits={"u": 12.0})
    return Kind(problem, 50)


def stiff() -> Kind:
    """Nothing happens for most of the time, and a rate is a thousand times as fast as another."""
    system = System(["y", "z"], ["u"], lambda s: [-(s.y**3) + s.z, 1e3 * (s.u - s.z)])
    cost = running(lambda s: s.y**2 + s.u**2)
    problem = Problem(system, 40.0, start={"y": 1, "z": 0}, end={"y": 1.5}, cost=cost)
    half = np.concatenate([np.linspace(0, 5, 31)[:-1], np.linspace(5, 20, 20)]) / 40
    nodes = np.concatenate([half, 1 - half[-2::-1]])
    known = {"time": [0, 5, 35, 40], "x": [[1, 0], [0, 0], [0, 0], [1.5, 0]]}
    return Kind(problem, len(nodes) - 1, {"transcription": "radau", "nodes": nodes}, known)


def cart_pole() -> Kind:
    """Swing-up with a weak motor on a short track: bounds on states and controls."""
    ends: dict[str, Any] = {"start": {"q": [0, 0], "v": 0}, "end": {"q": [0, np.pi], "v": 0}}
    model = al.library.cart_pole()
    return Kind(Problem(model, 2.0, **ends, limits={"q": {"slide": (-1.0, 1.0)}, "tau": {"slide": 20.0}}), 50)


def heading() -> Kind:
    """An equation along the path: a boat of speed one in a current, with its heading as a unit vector."""
    boat = System(["x", "y"], ["a", "b"], lambda s: [s.a - s.y, s.b])
    ends: dict[str, Any] = {"start": {"x": 3.66, "y": -1.86}, "end": {"x": 0, "y": 0}}
    path = {"heading": (lambda s: s.a**2 + s.b**2, 1.0, 1.0)}
    problem = Problem(boat, (2.0, 10.0), **ends, path=path, cost=duration())
    known = {"time": [0, 5], "x": [[3.66, -1.86], [0, 0]], "controls": [[-0.26, 0.97], [-0.5, -0.87]]}
    return Kind(problem, 40, {"transcription": "rk4"}, known)


def discs() -> Kind:
    """Obstacles: a mass in the plane between three discs."""
    mass = System(["x", "y", "vx", "vy"], ["ax", "ay"], lambda s: [s.vx, s.vy, s.ax, s.ay])
    ends: dict[str, Any] = {
        "start": {"x": 0, "y": 0, "vx": 0, "vy": 0},
        "end": {"x": 4, "y": 0, "vx": 0, "vy": 0},
    }
    places = ((1.0, 0.2, 0.5), (2.0, -0.4, 0.6), (3.0, 0.3, 0.5))
    path: dict[str, Any] = {
        f"disc {k}": (lambda s, x=x, y=y: (s.x - x) ** 2 + (s.y - y) ** 2, r**2, np.inf)
        for k, (x, y, r) in enumerate(places)
    }
    return Kind(Problem(mass, 3.0, **ends, path=path), 40, {"transcription": "rk4"})


def chain() -> Kind:
    """An integral is given: a chain of length 4 hangs between two points."""
    line = System(["y"], ["slope"], lambda s: [s.slope])
    length = {"length": (lambda s: ca.sqrt(1 + s.slope**2), 4.0, 4.0)}
    problem = Problem(
        line,
        1.0,
        start={"y": 1},
        end={"y": 3},
        limits={"slope": 20.0, "y": (0, 10)},
        integrals=length,
        cost=running(lambda s: s.y * ca.sqrt(1 + s.slope**2)),
    )
    x = np.linspace(0, 1, 21)
    known = {"time": x, "x": (8 * x * (x / 2 - 0.25) + 1)[:, None], "controls": (8 * (x - 0.25))[:, None]}
    return Kind(problem, 50, {"transcription": "radau"}, known)


KINDS: dict[str, Callable[[], Kind]] = {
    "free time": lambda: _of(examples.brachistochrone(), 40),
    "state bound": lambda: _of(examples.bryson_denham(), 50),
    "bang-bang": least_time,
    "singular arc": lambda: _of(examples.goddard(), 60),
    "periodic": periodic,
    "obstacles": discs,
    "arm round a disc": lambda: _of(examples.obstacle(), 40),
    "design parameter": design,
    "integral": chain,
    "path equation": heading,
    "stiff": stiff,
    "loop": lambda: _of(examples.four_bar(), 30),
    "phases": two_burns,
    "swing-up with bounds": cart_pole,
    "attitude": lambda: _of(examples.satellite(), 30),
}

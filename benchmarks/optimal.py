"""Optimal control: time per iteration and to a solution, against IPOPT and FATROP through CasADi, and Crocoddyl's FDDP.

The acrobot's peers are written by hand: closed equations of motion, multiple shooting, `expand`. They are evaluated by
CasADi's virtual machine, and take fewer operations than the graph of a general model would.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import alembert as al
from alembert.optimal import Problem, Solution, effort, terminal
from alembert.optimal import guess as guesses
from alembert.optimal.evaluation import Evaluation
from alembert.optimal.interior_point import InteriorPoint
from alembert.optimal.schemes import scheme
from alembert.optimal.stages import cut
from benchmarks import timing
from benchmarks.environments import peer_python
from benchmarks.rows import Row, against
from benchmarks.timing import Effort

Array = np.ndarray
DURATION = 4.0
HANGING, UPRIGHT = np.array([-np.pi / 2, 0.0]), np.array([np.pi / 2, 0.0])
TOLERANCE, MOST = 1e-8, 500
STARTS = 20
AS_GOOD = 1.01
"""times the other's cost"""
LENGTHS = (50, 100, 200, 400, 800, 1600)
WEIGHT = 1e3
"""of the distance from the goal of the reach, since FDDP has no conditions at the end"""
REACH = np.array([[0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8], [0.8, 0.3, 0.4, -1.2, 0.3, 1.9, 0.2]])
_PACKAGES = ("crocoddyl==3.2.1", "pin==4.0.0")


def rows(effort_: Effort, *, quick: bool, notes: dict[str, Any]) -> list[Row]:
    found = [row for N in ((100,) if quick else (100, 500)) for row in _per_iteration(N, quick, notes)]
    found += _to_a_solution(4 if quick else STARTS, notes)
    found += _growth(LENGTHS[:4] if quick else LENGTHS, 3 if quick else 7)
    return found + _against_crocoddyl(effort_, quick, notes)


# --- the acrobot ----------------------------------------------------------------------------------------------------


def acrobot() -> Problem:
    """Swing-up of two uniform rods of 1 kg and 1 m in 4 s, only the elbow driven."""
    model = al.library.acrobot(lengths=(1.0, 1.0))
    return Problem(model, DURATION, start={"q": HANGING, "v": 0}, end={"q": UPRIGHT, "v": 0})


def _acceleration(x: Any, u: Any, g: float) -> Any:
    """The equations of motion, as one would write them by hand."""
    q1, q2, w1, w2 = x[0], x[1], x[2], x[3]
    c, s = ca.cos(q2) / 2, ca.sin(q2) / 2
    m11, m12, m22 = 5 / 3 + 2 * c, 1 / 3 + c, 1 / 3
    low = g / 2 * ca.cos(q1 + q2)
    r1 = s * w2 * (2 * w1 + w2) - 1.5 * g * ca.cos(q1) - low
    r2 = u - s * w1 * w1 - low
    d = m11 * m22 - m12 * m12
    return ca.vertcat((m22 * r1 - m12 * r2) / d, (m11 * r2 - m12 * r1) / d)


class Plain:
    """The swing-up by multiple shooting in CasADi: unknowns x_0, u_0, x_1, ..., x_N; RK4; `expand`."""

    def __init__(self, N: int, solver: str) -> None:
        model: Any = acrobot().model
        g = float(np.abs(np.ravel(model.gravity)).max())
        _check_by_hand(g)
        h = DURATION / N
        x, u = ca.SX.sym("x", 4), ca.SX.sym("u")
        f = ca.Function("f", [x, u], [ca.vertcat(x[2:], _acceleration(x, u, g))])
        k1 = f(x, u)
        k2 = f(x + h / 2 * k1, u)
        k3 = f(x + h / 2 * k2, u)
        k4 = f(x + h * k3, u)
        step = ca.Function("step", [x, u], [x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
        xs, us = [ca.MX.sym("x", 4) for _ in range(N + 1)], [ca.MX.sym("u") for _ in range(N)]
        w, equations, cost = [], [], ca.MX(0)
        for k in range(N):
            w += [xs[k], us[k]]
            equations.append(xs[k + 1] - step(xs[k], us[k]))
            if k == 0:
                equations.append(xs[0] - np.r_[HANGING, 0, 0])
            cost += h / 2 * us[k] ** 2
        all_equations = ca.vertcat(*equations, xs[N] - np.r_[UPRIGHT, 0, 0])
        options: dict[str, Any] = {"expand": True, "print_time": False, "error_on_fail": False}
        options["show_eval_warnings"] = False
        own = {"tol": TOLERANCE, "max_iter": MOST, "print_level": 0}
        if solver == "ipopt":
            options["ipopt"] = own | {"sb": "yes"}
        else:
            options |= {"structure_detection": "auto", "equality": [True] * all_equations.numel()}
            options["fatrop"] = own
        self.N = N
        problem = {"x": ca.vertcat(*w, xs[N]), "f": cost, "g": all_equations}
        self._solve = ca.nlpsol("plain", solver, problem, options)

    def solve(self, q: Array, v: Array) -> tuple[float, int, float, bool]:
        """Seconds, iterations, cost and success from a motion at the nodes, with no controls."""
        start = np.append(np.hstack([q[:-1], v[:-1], np.zeros((self.N, 1))]).ravel(), [*q[-1], *v[-1]])
        began = time.perf_counter()
        found = self._solve(x0=start, lbg=0, ubg=0)
        seconds = time.perf_counter() - began
        stats = self._solve.stats()
        return seconds, max(1, int(stats["iter_count"])), float(found["f"]), bool(stats["success"])


def _check_by_hand(g: float) -> None:
    x, u = np.array([0.3, 0.4, 0.5, 0.6]), 0.7
    model = acrobot().model
    assert model is not None
    theirs = ca.DM(_acceleration(ca.DM(x), u, g)).full()[:, 0]
    ours = model.forward_dynamics(x[:2], x[2:], [0.0, u])
    if not np.allclose(theirs, ours, rtol=1e-10):
        raise RuntimeError(f"acrobot: the equations of motion differ:\n{ours}\n{theirs}")


def motion(N: int, rng: np.random.Generator | None = None) -> tuple[Array, Array]:
    """Straight from hanging to upright, with `rng` perturbed by half a radian of two sines."""
    share = np.linspace(0, 1, N + 1)[:, None]
    q = HANGING + share * (UPRIGHT - HANGING)
    v = np.tile((UPRIGHT - HANGING) / DURATION, (N + 1, 1))
    for k in (1, 2):
        size = 0.5 * rng.normal(size=2) if rng is not None else np.zeros(2)
        q = q + size * np.sin(k * np.pi * share)
        v = v + size * k * np.pi / DURATION * np.cos(k * np.pi * share)
    return q, v


def _ours(problem: Problem, q: Array, v: Array, transcription: str, iterations: int = MOST) -> Solution:
    times = np.linspace(0, DURATION, len(q))
    guess = {"time": times, "q": q, "v": v, "controls": np.zeros((len(q), 1))}
    return problem.solve(
        len(q) - 1, transcription=transcription, hessian="exact", guess=guess, progress=False,
        tolerance=TOLERANCE, iterations=iterations,
    )  # fmt: skip


def _each(solution: Solution) -> float:
    return solution.seconds["total"] / max(1, solution.iterations)


def _per_iteration(N: int, quick: bool, notes: dict[str, Any]) -> list[Row]:
    problem, (q, v) = acrobot(), motion(N)
    peers = {name: Plain(N, name) for name in ("ipopt", "fatrop")}
    calls: list[Callable[[], float]] = []
    ends = []
    for name in ("rk4", "dmoc"):
        first = _ours(problem, q, v, name)  # compiles
        ends.append(f"{name.upper()} {_ended(first)}")
        calls.append(lambda name=name: _each(_ours(problem, q, v, name)))  # type: ignore[misc]

    for name, peer in peers.items():
        _, count, cost, success = peer.solve(q, v)
        ends.append(
            f"{name.upper()} {'solved' if success else 'not solved'} after {count} at the cost {cost:.6g}"
        )
    sentence = f"Swing-up from the straight start, N = {N}, iterations and costs: {'; '.join(ends)}."
    notes["optimal_straight"] = f"{notes.get('optimal_straight', '')} {sentence}".strip()

    def theirs(name: str) -> float:
        seconds, count, _, _ = peers[name].solve(q, v)
        return seconds / count

    calls += [lambda name=name: theirs(name) for name in peers]  # type: ignore[misc]
    rk4, dmoc, ipopt, fatrop = timing.best_of_each(calls, 2 if quick else 9 if N <= 100 else 4)
    found = []
    for name, ours in (("RK4", rk4), ("DMOC", dmoc)):
        label = f"swing-up, {name}, N = {N}, exact Hessian, per iteration"
        key = f"optimal/{name.lower()}/{N}"
        found += [
            against(f"{key}/ipopt", label, "acrobot", ours, "CasADi + IPOPT, RK4", ipopt, 10.0),
            against(f"{key}/fatrop", label, "acrobot", ours, "CasADi + FATROP, RK4", fatrop, 8.0),
        ]
    return found


def _to_a_solution(count: int, notes: dict[str, Any]) -> list[Row]:
    N, rng = 100, np.random.default_rng(0)
    problem, peer = acrobot(), Plain(100, "ipopt")
    starts = [motion(N, rng) for _ in range(count)]
    names, turns = ("rk4", "dmoc"), 2
    for name in names:
        _ours(problem, *starts[0], name, 2)  # compiles
    runs = []  # of all programs in turn; the lesser time of the turns
    for q, v in starts:
        tried = []
        for _ in range(turns):
            solutions = [_ours(problem, q, v, name) for name in names]
            ours = [(s.seconds["total"], s.iterations, s.cost, s.success) for s in solutions]
            tried.append([*ours, peer.solve(q, v)])
        runs.append([min(column) for column in zip(*tried, strict=True)])
    taken = np.array(runs, dtype=float)  # start, program, (seconds, iterations, cost, success)
    theirs = taken[:, -1]
    found = []
    sentences = []
    for k, name in enumerate(names):
        seconds, cost, success = taken[:, k, 0], taken[:, k, 2], taken[:, k, 3] > 0
        both = success & (theirs[:, 3] > 0)
        good = both & (cost <= AS_GOOD * theirs[:, 2])
        medians = ""
        if both.any():
            medians = (
                f", median costs {np.median(cost[both]):.1f} and {np.median(theirs[both, 2]):.1f}, median times to "
                f"them {1e3 * np.median(seconds[both]):.0f} ms and {1e3 * np.median(theirs[both, 0]):.0f} ms"
            )
        sentences.append(
            f"Swing-up from {count} random starts, {name.upper()}: ours succeeded from {success.sum()}, IPOPT from "
            f"{int(theirs[:, 3].sum())}, both from {both.sum()}{medians}; from {good.sum()} of these ours cost at most "
            f"{100 * (AS_GOOD - 1):.0f} % more."
        )
        if good.any():
            label = f"swing-up, {name.upper()}, N = {N}, to a solution as good, median of {good.sum()} of {count} starts"
            mine, other = np.median(seconds[good]), np.median(theirs[good, 0])
            key = f"optimal/{name}/solution"
            found.append(
                against(key, label, "acrobot", float(mine), "CasADi + IPOPT, RK4", float(other), 5.0)
            )
    notes["optimal_starts"] = " ".join(sentences)
    return found


def _growth(lengths: tuple[int, ...], turns: int) -> list[Row]:
    problem = acrobot()
    _ours(problem, *motion(lengths[0]), "rk4", 2)
    calls = [lambda N=N: _each(_ours(problem, *motion(N), "rk4", 20)) for N in lengths]
    taken = timing.best_of_each(calls, turns)
    exponent = float(np.polyfit(np.log(lengths), np.log(taken), 1)[0])
    label = f"growth of the time per iteration with N from {lengths[0]} to {lengths[-1]}, exponent"
    found = [Row("optimal/exponent", label, "acrobot", exponent, unit="x", measure="ours", goal=1.1)]
    found += [
        Row("optimal/length", f"swing-up, RK4, N = {N}, per iteration", "acrobot", seconds)
        for N, seconds in zip(lengths, taken, strict=True)
    ]
    peaks = [_peak(problem, N) for N in lengths]
    exponent = float(np.polyfit(np.log(lengths), np.log(peaks), 1)[0])
    label = f"growth of the memory with N from {lengths[0]} to {lengths[-1]}, exponent ({peaks[-1] / 1e6:.1f} MB at last)"
    return [*found, Row("optimal/memory", label, "acrobot", exponent, unit="x", measure="ours", goal=1.1)]


def _peak(problem: Problem, N: int) -> int:
    """Bytes that a solve holds at most."""
    q, v = motion(N)
    tracemalloc.start()
    try:
        _ours(problem, q, v, "rk4", 5)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- the reach ------------------------------------------------------------------------------------------------------


def reach() -> Problem:
    """A 7-dof arm moves in 1 s to rest near a goal."""
    goal = REACH[1]

    def miss(s: Any) -> Any:
        return WEIGHT / 2 * (ca.sumsqr(s.q - goal) + ca.sumsqr(s.v))

    return Problem(
        al.library.arm7(friction=False),
        1.0,
        start={"q": REACH[0], "v": 0},
        cost=effort() + terminal(miss),
        limits=None,
    )


def _reach_guess() -> dict[str, Array]:
    speed = np.tile(REACH[1] - REACH[0], (2, 1))
    return {"time": np.array([0.0, 1.0]), "q": REACH, "v": speed, "controls": np.zeros((2, 7))}


def _stage_derivatives(problem: Problem, N: int, exact: bool, effort_: Effort) -> float:
    """Seconds per stage of what an iteration of the sweep in time needs; blocks that never change are made once a solve."""
    stages = cut(problem, scheme("euler"), N)
    method = InteriorPoint(stages, Evaluation(stages, exact=exact), iterations=1)
    method.solve(*guesses.place(stages, guesses.make(problem, _reach_guess())))
    return timing.best(method.newton._condense, effort_, N)


def _against_crocoddyl(effort_: Effort, quick: bool, notes: dict[str, Any]) -> list[Row]:
    N, problem = 100, reach()
    kinds = {"gauss-newton": "Gauss-Newton", "exact": "exact Hessian"}

    def solve(hessian: Any, iterations: int = 200) -> Solution:
        return problem.solve(
            N,
            transcription="euler",
            hessian=hessian,
            guess=_reach_guess(),
            progress=False,
            iterations=iterations,
        )

    for hessian in kinds:
        solve(hessian, 2)
    each: dict[str, list[float]] = {hessian: [] for hessian in kinds}
    stage: dict[str, list[float]] = {hessian: [] for hessian in kinds}
    theirs: list[dict[str, Any]] = []
    words = []
    for turn in range(1 if quick else 3):
        other = _crocoddyl(problem, N, notes)
        theirs += [other] if other is not None else []
        for hessian in kinds:
            solutions = [solve(hessian) for _ in range(3)]
            each[hessian].append(min(map(_each, solutions)))
            stage[hessian].append(_stage_derivatives(problem, N, hessian == "exact", effort_))
            if turn == 0:
                words.append(f"{kinds[hessian]} {_ended(solutions[0])}")
    if theirs:
        end = "stopped" if theirs[0]["converged"] else "did not converge"
        words.append(f"FDDP {end} after {theirs[0]['iterations']} at the cost {theirs[0]['cost']:.6g}")
    notes["optimal_reach"] = f"Reach, iterations and costs: {'; '.join(words)}."
    iteration = min((t["iteration"] for t in theirs), default=None)
    derivatives = min((t["stage"] for t in theirs), default=None)
    found = []
    for hessian, word in kinds.items():
        label = f"reach, Euler, N = {N}, {word}, per iteration"
        goal = 2.5 if theirs else None
        key = f"optimal/reach/{hessian}"
        found.append(against(key, label, "arm7", min(each[hessian]), "Crocoddyl FDDP", iteration, goal))
    for hessian, word in kinds.items():
        label = f"reach, derivatives of a stage, {word}"
        goal = 10.0 if theirs and hessian == "gauss-newton" else None
        key, peer = f"optimal/stage/{hessian}", "Crocoddyl calc + calcDiff"
        found.append(against(key, label, "arm7", min(stage[hessian]), peer, derivatives, goal))
    return found


def _ended(solution: Solution) -> str:
    end = "solved" if solution.success else "not solved"
    return f"{end} after {solution.iterations} at the cost {solution.cost:.6g}"


def _crocoddyl(problem: Problem, N: int, notes: dict[str, Any]) -> dict[str, Any] | None:
    """The same reach in Crocoddyl, in its own process; None where it cannot be installed."""
    python = _environment(notes)
    if python is None:
        return None
    model: Any = problem.model
    bodies = []
    for body, joint in zip(model.bodies, model.joints, strict=True):
        X, inertia = joint.placement.pose({}), body.inertia
        bodies.append(
            {
                "rotation": np.asarray(X.rotation).tolist(),
                "translation": np.ravel(X.translation).tolist(),
                "mass": float(inertia.mass),
                "com": [float(c) for c in inertia.com],
                "tensor": [float(c) for c in inertia.tensor],
                "armature": float(joint.armature[0]),
            }
        )
    rng = np.random.default_rng(2)
    q, v, tau = rng.normal(size=(3, model.nv))
    given = {"bodies": bodies, "start": REACH[0].tolist(), "goal": REACH[1].tolist(), "weight": WEIGHT}
    given |= {
        "steps": N,
        "duration": 1.0,
        "repeats": 5,
        "q": q.tolist(),
        "v": v.tolist(),
        "tau": tau.tolist(),
    }
    script = Path(__file__).with_name("crocoddyl_reach.py")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.json"
        file.write_text(json.dumps(given))
        run = subprocess.run(
            [str(python), str(script), str(file)], capture_output=True, text=True, check=True
        )
    found = json.loads(run.stdout.splitlines()[-1])
    ours = model.forward_dynamics(q, v, tau)
    if not np.allclose(ours, found["accelerations"], rtol=1e-8, atol=1e-8 * np.abs(ours).max()):
        raise RuntimeError(f"arm7: Crocoddyl's accelerations differ:\n{ours}\n{found['accelerations']}")
    return found


def _environment(notes: dict[str, Any]) -> Path | None:
    """The Python of an environment that has Crocoddyl with the Pinocchio that it works with; made if there is none."""
    python = peer_python("crocoddyl", _PACKAGES)
    if python is None:
        notes["without_crocoddyl"] = (
            f"{' with '.join(_PACKAGES)} could not be installed; its rows have no peer."
        )
    return python

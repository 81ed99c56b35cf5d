"""The iterations of `solver="sweep"` as one routine: no Python inside, no allocation, a fixed number of steps at most.

It is made of the very functions that `alembert.optimal.newton` calls, in the same order:

    begin     slacks for the multipliers of the solution before, and a barrier that suits the errors that are left
    advance   the linear-quadratic problem, shifted until it has a minimum; the longest step; the filter line search
    judge     linearise, errors, the next barrier

What happens seldom is left out: second-order corrections, restoration, the refinement of steps, acceleration and estimates
of multipliers. Where no length of a step is taken, the iterate stays, and the next step is shifted more.

Nothing here branches: a problem that is done goes on with steps of length zero, a sweep or a trial that was good is
computed again with the same result. So problems may be the lanes of vectors, and each gets the bits it would get alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Kernel
from alembert.errors import UnsupportedError
from alembert.lowering.plan import At, Buffer, Call, Copy, Each, Offset, Repeat, Step
from alembert.lowering.routine import Parts, Routine, flat
from alembert.optimal import tuning
from alembert.optimal.evaluation import Evaluation, end_row_kernels
from alembert.optimal.search_graphs import (
    BOUNDS,
    begin_function,
    bounds_function,
    decided,
    decision_functions,
)
from alembert.optimal.time_sweep import (
    closing_function,
    end_kernels,
    inward_function,
    outward_function,
)

LARGEST_UNROLLED = 50
"""states and inputs of a stage; beyond, the straight-line code of its elimination is too long"""
MOST_SHIFTS = 16
"""sweeps in a step: from the first shift on, each is 8 or 100 times the one before"""
MOST_TRIALS = 14
"""lengths of a step: the last one is 1e-4 of the first"""
FOUND = ("cost", "infeasibility", "slope", "error", "barrier", "iterations", "converged", "step")
"""the numbers of the result"""
RESULT = ("steepest", "error", "mu", "iterations", "done", "alpha")
"""where those are from that are not of `here`"""


class SolverRoutine:
    """The routine `solve` of the stages of `evaluation`, with at most so many `iterations`, in `parts`.

    Arguments: `p` of the stages, `duration`, `limits` (lower and upper of every row along the path and at the end),
    `tables` (`table_sizes`); in place `memory` (`memory_sizes`), and `found`.
    """

    def __init__(self, evaluation: Evaluation, iterations: int, tolerance: float) -> None:
        self.evaluation, self.stages = evaluation, evaluation.stages
        self.iterations, self.tolerance = iterations, tolerance
        stages = self.stages
        N, (n, m, nz, nd), point = stages.count, stages.sizes, stages.chart.point
        first, last, rows = len(stages.start_names), len(stages.end_names), len(stages.end_bounded)
        if n + m > LARGEST_UNROLLED:
            raise UnsupportedError(
                f"prepared.compile: stages have {n} states and {m} controls, together more than {LARGEST_UNROLLED}; "
                "prepared.solve takes any number"
            )
        equal = stages.lower == stages.upper
        if equal.any() or (stages.end_lower == stages.end_upper).any():
            names = [*np.array(stages.path_names)[equal.any(axis=0)], *stages.end_bounded]
            raise UnsupportedError(
                f"prepared.compile: {str(names[0])!r} is an equation along the path; prepared.solve takes these"
            )
        self.memory_sizes = {
            **{"x": (N + 1) * point, "u": N * m, "z": N * nz, "low": N * nd, "high": N * nd},
            **{"end_low": rows, "end_high": rows, "costates": (N + 1) * n, "sigma": first, "eta": last},
        }
        self.table_sizes = {
            **{"fractions": 2 * N, "there": N * nd, "units": len(self._units()), "scale": 1},
            "end_units": 2 * n + first + last + rows,
        }
        columns = 1 + last
        condensed: dict[str, int] = {r.name: r.size for r in evaluation.condensed.results}
        bounds = dict.fromkeys((*(f"own_{name}" for name in BOUNDS), "there", "d", "push", "gained"), nd)
        moved = dict.fromkeys(("d_0", "ds", "dlow", "dhigh", "new_slack", "new_d", "new_low", "new_high"), nd)
        self._each = condensed | bounds | moved | dict.fromkeys(("low", "high"), nd)
        self._each |= {"x": point, "new_x": point, "u": m, "new_u": m, "step_u": m, "s": 3, "fractions": 2}
        self._each |= dict.fromkeys(("z", "new_z", "dz", "left"), nz)
        self._each |= dict.fromkeys(("costates", "step_x", "step_costates", "gap"), n)
        self._each |= {"P": n * n, "y": n * columns, "W": last * columns, "K": m * n, "k": m * columns}
        """numbers for each stage, or node"""
        self._once = dict.fromkeys(
            ("rows", "new_rows", "end_ds", "end_gained", "end_dlow", "end_dhigh"), rows
        )
        self._once |= {f"end_{name}": rows for name in (*BOUNDS, "low_now", "high_now", "there")}
        self._once |= {f"new_end_{name}": rows for name in ("slack", "low", "high")}
        self._once |= {
            "c_0": first,
            "new_c_0": first,
            "C_0": first * n,
            "step_sigma": first,
            "end_D": rows * n,
        }
        self._once |= {"c": last, "new_c": last, "C": last * n, "step_eta": last, "weights": columns}
        self._once |= {
            "H_0": n * n,
            "squares": n * n,
            "gradient": n,
            "errors": 7,
            "here": 4,
            "trial": 4,
            "longest": 3,
        }
        """numbers of the ends, and of all stages together"""
        self.sizes: dict[str, int] = {
            "p": len(stages.parameters),
            "duration": 1,
            "limits": 2 * (nd + rows),
            "tables": sum(self.table_sizes.values()),
            "memory": sum(self.memory_sizes.values()),
            "found": len(FOUND),
        }
        self._functions: dict[str, ca.Function] = {}
        self._places: dict[str, Buffer] = {
            name: Offset(whole, start)
            for whole, sizes in (("memory", self.memory_sizes), ("tables", self.table_sizes))
            for name, start in zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False)
        }
        steps = self._solve()
        routine = Routine(
            "solve", ("p", "duration", "limits", "tables"), ("memory", "found"), self.sizes, steps
        )
        self.parts = Parts(self._functions, {"solve": routine})

    def _units(self) -> range:
        n, m, nz, nd = self.stages.sizes
        return range(n + m + 2 * nz + nd)

    # --- buffers and calls ---------------------------------------------------------------------------------------

    def buffer(self, name: str, size: int = 1) -> Buffer:
        """Where numbers are; `size` is of those that are in no table."""
        if name in self._places:
            return self._places[name]
        if name not in self.sizes:
            each, nodes = self._each.get(name), self.stages.count + 1
            self.sizes[name] = self._once.get(name, size) if each is None else nodes * each
        return name

    def _record(self, name: str, after: int = 0) -> At:
        """That of the stage whose turn it is, or so many after it."""
        place, size = self.buffer(name), self._each[name]
        whole, start = (place, 0) if isinstance(place, str) else (place.buffer, place.start)
        return At(whole, size, start + after * size)

    def _last(self, name: str, count: int | None = None) -> Offset:
        """The record of the last node, or the one after `count` others."""
        at = self._record(name, self.stages.count if count is None else count)
        return Offset(at.buffer, at.start)

    def _count(self, name: str) -> int:
        """How many records there are."""
        if name not in self._each:
            return 1
        return self.stages.count + (name in ("x", "costates", "step_x", "step_costates"))

    def _size(self, name: str) -> int:
        return self._count(name) * (self._each | self._once)[name]

    def _call(
        self, name: str, function: ca.Function, inputs: Sequence[Buffer], outputs: Sequence[Buffer]
    ) -> Call:
        known = self._functions.setdefault(name, function)
        assert known is function or known.n_in() == function.n_in()
        return Call(name, inputs, outputs)

    def own(self, name: str, inputs: Mapping[str, int], outputs: Mapping[str, int], graph: object) -> Call:
        """A function of named vectors on the buffers of these names, into others."""
        if name not in self._functions:
            symbols = {key: ca.SX.sym(key, size) for key, size in inputs.items()}
            found = [ca.densify(ca.SX(x)) for x in graph(**symbols)]  # type: ignore[operator]
            self._functions[name] = ca.Function(name, list(symbols.values()), found)
        given = [self.buffer(key, size) for key, size in inputs.items()]
        return Call(name, given, [self.buffer(key, size) for key, size in outputs.items()])

    def _constant(self, name: str, buffer: str, values: Sequence[float]) -> Call:
        return self.own(name, {}, {buffer: len(values)}, lambda: [ca.SX(list(values))])

    def _decide(self, name: str) -> list[Step]:
        for step in flat(steps := decided(name, self.buffer)):
            if isinstance(step, Call):
                self._functions.setdefault(str(step.source), decision_functions()[str(step.source)])
        return steps

    def _kernel(
        self, name: str, kernel: Kernel, places: Mapping[str, Buffer], results: Mapping[str, Buffer]
    ) -> Call:
        source = kernel.source()
        assert isinstance(source, FunctionSource)
        if name not in self._functions:
            self._functions[name] = source.function
        return Call(
            name, [places[a.name] for a in kernel.arguments], [results[r.name] for r in kernel.results]
        )

    def _stage_places(self) -> dict[str, Buffer]:
        """Where the arguments of the kernels of stages are."""
        record, own = self._record, {"dx": "step_x", "du": "step_u", "costate": "costates"}
        names = ("x", "u", "z", "s", "d", "dz", "ds", "slope_x", "slope_u", "g", "Z", "z_0", "D", "d_0")
        places: dict[str, Buffer] = {
            x: record(own.get(x, x)) for x in (*names, "dx", "du", "dlow", "dhigh", "gained")
        }
        places |= {x: self.buffer(x) for x in ("p", "units", "scale", "alpha", "mu", "inner", "dual")}
        places |= {"after": record("x", 1), "dafter": record("step_x", 1), "costate": record("costates", 1)}
        return places | {name: record(f"own_{name}") for name in BOUNDS}

    def _end_places(self) -> dict[str, Buffer]:
        """The same of the two ends."""
        own = {"x_0": "x", "s_0": "s", "dx_0": "step_x", "costate_0": "costates", "units": "end_units"}
        own |= {"D": "end_D", "g": "gradient", "d": "rows", "low": "end_low_now", "high": "end_high_now"}
        own |= {name: f"end_{name}" for name in (*BOUNDS, "ds", "gained", "dlow", "dhigh") if name not in own}
        names = (
            "p",
            "scale",
            "sigma",
            "eta",
            "alpha",
            "dual",
            "mu",
            "gradient",
            "C",
            "c",
            "weights",
            "penalty",
        )
        places: dict[str, Buffer] = {name: self.buffer(own.get(name, name)) for name in (*own, *names)}
        places |= {"x": self._last("x"), "s": self._last("s", self.stages.count - 1)}
        return places | {"dx": self._last("step_x"), "costate": self._last("costates")}

    # --- the solver ----------------------------------------------------------------------------------------------

    def _solve(self) -> list[Step]:
        stages, decide = self.stages, self._decide
        N, (n, _, _, nd) = stages.count, stages.sizes
        first, last, rows = len(stages.start_names), len(stages.end_names), len(stages.end_bounded)
        settings = (self.tolerance, tuning.BARRIER, (N + 1) * n + first + last, N * nd, float(last > 0))
        where = self._stage_places()
        numbers = _function(
            "numbers", {"part": 2, "duration": 1}, lambda part, duration: [ca.vertcat(part, duration)]
        )
        bound = bounds_function(nd)
        marks = ("lower", "upper", "has_lower", "has_upper", "held")
        units_d = Offset("tables", _start(self._places["units"]) + len(self._units()) - nd)
        units_rows = Offset("tables", self.sizes["tables"] - rows)
        at_zero: tuple[str, ...] = (
            "step_x",
            "step_u",
            "dz",
            "ds",
            "gained",
            "own_slack",
            "own_low",
            "own_high",
        )
        at_zero += ("end_ds", "end_gained", "end_slack")
        prepared: list[Step] = [
            Each(
                N,
                [
                    self._call("numbers", numbers, [self._record("fractions"), "duration"], [where["s"]]),
                    self._call(
                        "bounds",
                        bound,
                        ["limits", self._record("there"), units_d],
                        [where[mark] for mark in marks],
                    ),
                ],
            ),
            self.own("ones", {}, {"end_there": rows, "inner": 1}, lambda: [ca.SX.ones(rows), 1]),
            self._call(
                "end_bounds",
                bounds_function(rows),
                [Offset("limits", 2 * nd), self.buffer("end_there"), units_rows],
                [self.buffer(f"end_{mark}") for mark in marks],
            ),
            Copy(None, self.buffer("alpha"), 1),
            *(Copy(None, self.buffer(name), self._size(name)) for name in at_zero if self._size(name)),
            *self._trial(),
            *self._copy([("d", "new_d"), ("rows", "new_rows")]),
            self._constant("settings", "settings", settings),
            *(self._constant(name, name, [value]) for name, value in (
                ("mu", self.tolerance / 11), ("rho", 1e2), ("remembered", 0), ("floor", 0), ("iterations", 0),
            )),
            *self._enter(),
            *self._linearise(),
            *self._trial(),
            *self._measure(),
            *decide("first_barrier"),
            *self._enter(),
            *self._trial(),
            *self._take_trial(),
            *decide("new_filter"),
            *self._linearise(),
            *self._measure(),
            *decide("judge"),
        ]  # fmt: skip
        iteration = [*self._advance(), *self._linearise(), *self._measure(), *decide("judge")]
        ended: list[Step] = [
            *self._copy([("low", "own_low"), ("high", "own_high")]),
            *self._copy([("end_low", "end_low_now"), ("end_high", "end_high_now")]),
            self.own("result", {"here": 4, **dict.fromkeys(RESULT, 1)}, {"found": len(FOUND)}, _found),
        ]
        return [*prepared, Repeat(iteration, "done", self.iterations), *ended]

    def _copy(self, pairs: Sequence[tuple[str, str]]) -> list[Step]:
        """From the second to the first."""
        return [
            Copy(self.buffer(source), self.buffer(target), self._size(target))
            for target, source in pairs
            if self._size(target)
        ]

    def _enter(self) -> list[Step]:
        """Slacks and multipliers for the barrier mu."""
        N, nd, rows = self.stages.count, self.stages.sizes[3], len(self.stages.end_bounded)
        where = self._stage_places()
        marks = ("lower", "upper", "has_lower", "has_upper")
        found: list[Step] = []
        if nd:
            given = [where["d"], self._record("low"), self._record("high"), where["mu"]]
            given += [where[mark] for mark in marks]
            left = [where[name] for name in ("slack", "low", "high")]
            found.append(Each(N, [self._call("begin", begin_function(nd), given, left)]))
        if rows:
            end = [self.buffer(name) for name in ("rows", "end_low", "end_high")]
            end += [where["mu"], *(self.buffer(f"end_{mark}") for mark in marks)]
            left = [self.buffer(f"end_{name}") for name in ("slack", "low_now", "high_now")]
            found.append(self._call("end_begin", begin_function(rows), end, left))
        return found

    def _linearise(self) -> list[Step]:
        e, N, n = self.evaluation, self.stages.count, self.stages.sizes[0]
        results: dict[str, Buffer] = {r.name: self._record(r.name) for r in e.condensed.results}
        own = {"slope": "gradient", "D": "end_D", "found": "errors"}
        at_ends = {r.name: self.buffer(own.get(r.name, r.name)) for r in e.ends.results if r.name != "H"}
        return [
            Each(N, [self._kernel("condensed", e.condensed, self._stage_places(), results)]),
            self._kernel("ends", e.ends, self._end_places(), at_ends | {"H": self._last("Q")}),
            self.own("curved", {"Q": n * n, "H_0": n * n}, {"Q_0": n * n}, lambda Q, H_0: [Q + H_0]),
            Copy(self.buffer("Q_0"), self.buffer("Q"), n * n),
        ]

    def _measure(self) -> list[Step]:
        e, N = self.evaluation, self.stages.count
        where = self._stage_places() | {"costate": self._record("costates")}
        call = self._kernel("measure", e.measure, where, {"found": self.buffer("stage_found", 7)})
        return [Each(N, [call, *self._fold("errors", "stage_found", ">>>>+++")])]

    def _fold(self, total: str, entry: str, kinds: str) -> list[Step]:
        """`entry` of a stage into `total`."""
        size = len(kinds)
        operations = {"+": lambda a, b: a + b, ">": ca.fmax, "<": ca.fmin}
        graph = lambda **g: [  # noqa: E731
            ca.vertcat(*(operations[kind](g[total][k], g[entry][k]) for k, kind in enumerate(kinds)))
        ]
        call = self.own(f"fold_{total}", {total: size, entry: size}, {f"{total}_next": size}, graph)
        return [call, Copy(self.buffer(f"{total}_next", size), self.buffer(total, size), size)]

    def _trial(self) -> list[Step]:
        """Functions at `alpha` of the step, into new_...; and what a line search looks at, into `trial`."""
        e, N, record = self.evaluation, self.stages.count, self._record
        results: dict[str, Buffer] = {
            f"{name}_new": record(f"new_{name}") for name in ("x", "u", "z", "slack")
        }
        results |= {"gap": record("gap"), "implicit": record("left"), "path": record("new_d")}
        results["total"] = self.buffer("stage_total", 4)
        own = {"starts": "new_c_0", "equations": "new_c", "rows": "new_rows", "slack_new": "new_end_slack"}
        at_ends = {name: self.buffer(place) for name, place in own.items()}
        at_ends |= {"x_new": self._last("new_x"), "total": self.buffer("trial")}
        return [
            self._kernel("ends_trial", e.ends_trial, self._end_places(), at_ends),
            Each(
                N,
                [
                    self._kernel("trial", e.trial, self._stage_places(), results),
                    *self._fold("trial", "stage_total", "+++>"),
                ],
            ),
        ]

    def _take_trial(self) -> list[Step]:
        pairs = [("x", "new_x"), ("u", "new_u"), ("z", "new_z"), ("own_slack", "new_slack")]
        pairs += [("end_slack", "new_end_slack"), ("d", "new_d"), ("rows", "new_rows"), ("here", "trial")]
        return self._copy(pairs)

    def _advance(self) -> list[Step]:
        """A step, and the iterate that it leads to."""
        decide, where, end = self._decide, self._stage_places(), self._end_places()
        N, (n, m, _, nd) = self.stages.count, self.stages.sizes
        first, last = len(self.stages.start_names), len(self.stages.end_names)
        rows, record, e = len(self.stages.end_bounded), self._record, self.evaluation
        slope, move, settle, barrier = end_row_kernels(n, rows)
        steps: list[Step] = [self._kernel("end_barrier", barrier, end, {"barrier": self.buffer("barrier")})]
        if nd:
            at_stage: list[Step] = [
                self._kernel("barrier", e.barrier, where, {"barrier": self.buffer("stage_barrier")}),
                *self._fold("barrier", "stage_barrier", "+"),
                self._kernel("push", e.push, where, {"push": record("push")}),
            ]
            steps.append(Each(N, at_stage))
        _, finishing = end_kernels(n, m, last)
        outward: list[Buffer] = [record(name) for name in ("A", "B", "b", "K", "k")]
        outward += [record("P", 1), record("y", 1), self.buffer("weights"), record("step_x")]
        left = [record("step_u"), record("step_x", 1), record("step_costates", 1)]
        end_moves = {name: end[name] for name in ("ds", "dlow", "dhigh")} | {"limits": self.buffer("longest")}
        moves = {name: where[name] for name in ("dz", "ds", "dlow", "dhigh")}
        moves["limits"] = self.buffer("stage_limits", 3)
        steps += [
            self._kernel("end_slope", slope, end, {"q": self._last("q")}),
            *decide("with_barrier"),
            Copy(self.buffer("floor"), self.buffer("shift"), 1),
            self._constant("no_minimum", "is_minimum", [0.0]),
            Repeat(self._sweep(first, last), "is_minimum", MOST_SHIFTS),
            self.own("keep_shift", {"shift": 1, "remembered": 1}, {"kept_shift": 1}, _kept_shift),
            Copy(self.buffer("kept_shift"), self.buffer("remembered"), 1),
            Each(N, [self._call("outward", outward_function(n, m, 1 + last), outward, left)]),
            self._kernel(
                "finishing", finishing, end | {"x": self._last("step_x")}, {"end": self.buffer("step_eta")}
            ),
            self._kernel("end_steps", move, end, end_moves),
            Each(
                N,
                [self._kernel("steps", e.steps, where, moves), *self._fold("longest", "stage_limits", "<<+")],
            ),
            *self._in_time(),
            *decide("lengths"),
            Repeat([*self._trial(), *decide("look")], "is_taken", MOST_TRIALS),
            *decide("accept"),
            self.own("count", {"iterations": 1, "done": 1}, {"counted": 1}, _counted),
            Copy(self.buffer("counted"), self.buffer("iterations"), 1),
        ]
        if nd:
            settled: dict[str, Buffer] = {"low_new": record("new_low"), "high_new": record("new_high")}
            moved = where | {"slack": record("new_slack")}
            steps.append(Each(N, [self._kernel("settle", e.settle, moved, settled)]))
        if rows:
            settled = {"low_new": self.buffer("new_end_low"), "high_new": self.buffer("new_end_high")}
            moved = end | {"slack": self.buffer("new_end_slack")}
            steps.append(self._kernel("end_settle", settle, moved, settled))
        for target, source in (
            *(("x", "new_x"), ("u", "new_u"), ("z", "new_z"), ("own_slack", "new_slack")),
            *(("own_low", "new_low"), ("own_high", "new_high"), ("end_slack", "new_end_slack")),
            *(("end_low_now", "new_end_low"), ("end_high_now", "new_end_high"), ("d", "new_d")),
            *(("rows", "new_rows"), ("costates", "step_costates"), ("sigma", "step_sigma")),
            *(("eta", "step_eta"), ("here", "trial")),
        ):
            if self._size(source):
                steps.append(self._moved(target, source))
        return steps

    def _moved(self, target: str, source: str) -> Step:
        """What a step makes of the iterate: multipliers go along it, all else is where the trial was."""
        size = (self._each | self._once)[source]
        each, count = source in self._each, self._count(target)
        along = target in ("costates", "sigma", "eta")
        name = f"move_{'along' if along else 'to'}_{size}"

        def graph(go: ca.SX, alpha: ca.SX, old: ca.SX, new: ca.SX) -> list[ca.SX]:
            there = old + alpha * (new - old) if along else new
            return [ca.vertcat(*(ca.if_else(go, there[k], old[k]) for k in range(size)))]

        function = self._functions.get(name) or _function(
            name, {"go": 1, "alpha": 1, "old": size, "new": size}, graph
        )
        old, new = (self._record(x) if each else self.buffer(x) for x in (target, source))
        moved = self.buffer("moved", max((self._each | self._once).values()))
        call = self._call(name, function, [self.buffer("go"), "alpha", old, new], [moved])
        return Each(count, [call, Copy(moved, old, size)])

    def _sweep(self, first: int, last: int) -> list[Step]:
        """The linear-quadratic problem from the end to the start, and whether it has a minimum."""
        N, (n, m, _, nd), record = self.stages.count, self.stages.sizes, self._record
        opening, _ = end_kernels(n, m, last)
        places = self._end_places() | {name: self.buffer(name) for name in ("squares", "rho", "shift")}
        places |= {"Q": self._last("Q"), "q": self._last("q"), "R": self._last("R", N - 1)}
        left: dict[str, Buffer] = {"P": self._last("P"), "z": self._last("y"), "W": self._last("W")}
        left["penalty"] = self.buffer("penalty")
        given: list[Buffer] = [record(name) for name in ("A", "B", "b", "Q", "N", "R", "q", "r", "D", "push")]
        given += [self.buffer("shift"), *(record(name, 1) for name in ("P", "y", "W"))]
        found: list[Buffer] = [*(record(name) for name in ("P", "y", "W", "K", "k")), self.buffer("pivot")]
        closed = self._call(
            "closing",
            closing_function(n, first, last),
            [self.buffer(name) for name in ("P", "y", "W", "C_0", "c_0")],
            [self.buffer(x) for x in ("step_x", "step_sigma", "weights", "step_costates", "closed")],
        )
        C = ca.SX.sym("C", last, n)
        squares = ca.Function("squares", [C], [ca.densify(ca.tril2symm(ca.tril(C.T @ C)))])
        return [
            self._call("squares", squares, [places["C"]], [places["squares"]]),
            self._kernel("opening", opening, places, left),
            self._constant("not_yet", "definite", [1.0]),
            Each(
                N,
                [
                    self._call("inward", inward_function(n, m, 1 + last, nd), given, found),
                    self.own("pivots", {"pivot": 1, "definite": 1}, {"still_definite": 1}, _still_definite),
                    Copy(self.buffer("still_definite"), self.buffer("definite"), 1),
                ],
                backward=True,
            ),
            closed,
            *self._decide("next_shift"),
        ]

    def _in_time(self) -> list[Step]:
        """Durations limit steps as well."""
        stages, found = self.stages, []
        own = {"x": stages.chart.point, "step_x": stages.sizes[0], "units": stages.sizes[0]}
        for _, j in stages.clocks:
            graph = lambda x, step_x, units, j=j: [x[stages.point_place(0, j)], units[j] * step_x[j]]  # noqa: E731
            found += [self.own("clock", own, {"span": 1, "change": 1}, graph), *self._decide("in_time")]
        return found


def _function(name: str, inputs: Mapping[str, int], graph: object) -> ca.Function:
    symbols = {key: ca.SX.sym(key, size) for key, size in inputs.items()}
    found = [ca.densify(ca.SX(x)) for x in graph(**symbols)]  # type: ignore[operator]
    return ca.Function(name, list(symbols.values()), found)


def _kept_shift(shift: ca.SX, remembered: ca.SX) -> list[ca.SX]:
    return [ca.if_else(shift > 0, shift, remembered)]


def _still_definite(pivot: ca.SX, definite: ca.SX) -> list[ca.SX]:
    return [definite * (pivot > 0)]


def _counted(iterations: ca.SX, done: ca.SX) -> list[ca.SX]:
    return [iterations + ca.logic_not(done)]


def _found(here: ca.SX, **numbers: ca.SX) -> list[ca.SX]:
    """The numbers of the result."""
    return [ca.vertcat(here[2], here[3], *(numbers[name] for name in RESULT))]


def _start(place: Buffer) -> int:
    return 0 if isinstance(place, str) else place.start


def parts_of(sizes: Mapping[str, int], first: int = 0) -> dict[str, slice]:
    """Where in a vector its parts are, from `first` on."""
    starts = np.cumsum([first, *sizes.values()]).tolist()
    return {name: slice(a, b) for name, (a, b) in zip(sizes, pairwise(starts), strict=True)}

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

    def buffer(self, name: str, size: int) -> Buffer:
        if name in self._places:
            return self._places[name]
        self.sizes[name] = max(self.sizes.get(name, 0), size)
        return name

    def _record(self, name: str, size: int, start: int = 0) -> At:
        """Of a buffer with one record for each stage, that of the stage whose turn it is, or of the next one."""
        place = self.buffer(name, (self.stages.count + 1) * size)
        own = 0 if isinstance(place, str) else place.start
        return At(name if isinstance(place, str) else place.buffer, size, own + start)

    def _after(self, name: str, size: int, count: int) -> Offset:
        """What follows `count` records."""
        place = self._record(name, size)
        return Offset(place.buffer, place.start + count * size)

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
        stages = self.stages
        (n, m, nz, nd), point, record = stages.sizes, stages.chart.point, self._record
        places: dict[str, Buffer] = {
            **{"x": record("x", point), "u": record("u", m), "z": record("z", nz)},
            **{"after": record("x", point, point), "s": record("s", 3), "p": "p"},
            **{key: self.buffer(key, 1) for key in ("scale", "alpha", "mu", "inner", "dual")},
            "units": self._places["units"],
            "costate": record("costates", n, n),
            **{"dx": record("step_x", n), "du": record("step_u", m), "dz": record("dz", nz)},
            **{"dafter": record("step_x", n, n), "ds": record("ds", nd), "d": record("d", nd)},
            **{
                "slope_x": record("slope_x", n),
                "slope_u": record("slope_u", m),
                "g": record("g", n + m + nz),
            },
            **{"Z": record("Z", nz * (n + m)), "z_0": record("z_0", nz), "D": record("D", nd * (n + m))},
            **{"d_0": record("d_0", nd), "dlow": record("dlow", nd), "dhigh": record("dhigh", nd)},
            "gained": record("none", nd),
        }
        return places | {name: record(f"own_{name}", nd) for name in BOUNDS}

    # --- the solver ----------------------------------------------------------------------------------------------

    def _solve(self) -> list[Step]:
        stages, decide = self.stages, self._decide
        N, (n, m, _, nd) = stages.count, stages.sizes
        first, last, rows = len(stages.start_names), len(stages.end_names), len(stages.end_bounded)
        settings = (self.tolerance, tuning.BARRIER, (N + 1) * n + first + last, N * nd, float(last > 0))
        self.buffer("none", max(N * nd, (N + 1) * n, N * m, rows, 1))
        where = self._stage_places()
        numbers = _function(
            "numbers", {"part": 2, "duration": 1}, lambda part, duration: [ca.vertcat(part, duration)]
        )
        bound = bounds_function(nd)
        marks = ("lower", "upper", "has_lower", "has_upper", "held")
        units_d = Offset("tables", _start(self._places["units"]) + len(self._units()) - nd)
        units_rows = Offset("tables", self.sizes["tables"] - rows)
        prepared: list[Step] = [
            Each(
                N,
                [
                    self._call("numbers", numbers, [self._record("fractions", 2), "duration"], [where["s"]]),
                    self._call(
                        "bounds",
                        bound,
                        ["limits", self._record("there", nd), units_d],
                        [where[mark] for mark in marks],
                    ),
                ],
            ),
            self.own("ones", {}, {"all_rows": rows, "inner": 1}, lambda: [ca.SX.ones(rows), 1]),
            self._call(
                "end_bounds",
                bounds_function(rows),
                [Offset("limits", 2 * nd), self.buffer("all_rows", rows), units_rows],
                [self.buffer(f"end_{mark}", rows) for mark in marks],
            ),
            *(Copy(None, self.buffer(name, size), size) for name, size in (
                ("alpha", 1), ("none", self.sizes["none"]), ("step_x", (N + 1) * n), ("step_u", N * m),
                ("dz", N * stages.sizes[2]), ("ds", N * nd), ("end_ds", rows), ("own_slack", N * nd),
                ("end_slack", rows), ("own_low", N * nd), ("own_high", N * nd),
            ) if size),
            *self._trial(),
            *self._copy([("d", "new_d", N * nd), ("rows", "new_rows", rows)]),
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
            *self._copy([("low", "own_low", N * nd), ("high", "own_high", N * nd)]),
            *self._copy([("end_low", "end_low_now", rows), ("end_high", "end_high_now", rows)]),
            self.own("result", {"here": 4, **dict.fromkeys(RESULT, 1)}, {"found": len(FOUND)}, _found),
        ]
        return [*prepared, Repeat(iteration, "done", self.iterations), *ended]

    def _copy(self, pairs: Sequence[tuple[str, str, int]]) -> list[Step]:
        """From the second to the first."""
        return [
            Copy(self.buffer(source, size), self.buffer(target, size), size)
            for target, source, size in pairs
            if size
        ]

    def _enter(self) -> list[Step]:
        """Slacks and multipliers for the barrier mu."""
        N, nd, rows = self.stages.count, self.stages.sizes[3], len(self.stages.end_bounded)
        where = self._stage_places()
        marks = ("lower", "upper", "has_lower", "has_upper")
        found: list[Step] = []
        if nd:
            given = [where["d"], self._record("low", nd), self._record("high", nd), where["mu"]]
            given += [where[mark] for mark in marks]
            left = [where[name] for name in ("slack", "low", "high")]
            found.append(Each(N, [self._call("begin", begin_function(nd), given, left)]))
        if rows:
            end = [self.buffer(name, rows) for name in ("rows", "end_low", "end_high")]
            end += [where["mu"], *(self.buffer(f"end_{mark}", rows) for mark in marks)]
            left = [self.buffer(f"end_{name}", rows) for name in ("slack", "low_now", "high_now")]
            found.append(self._call("end_begin", begin_function(rows), end, left))
        return found

    def _end_places(self) -> dict[str, Buffer]:
        stages = self.stages
        N, n, point = stages.count, stages.sizes[0], stages.chart.point
        rows = len(stages.end_bounded)
        places: dict[str, Buffer] = {
            **{"x_0": self._places["x"], "s_0": self.buffer("s", 3), "x": self._after("x", point, N)},
            **{"s": self._after("s", 3, N - 1), "p": "p", "scale": self._places["scale"]},
            **{
                "units": self._places["end_units"],
                "sigma": self._places["sigma"],
                "eta": self._places["eta"],
            },
            **{"costate_0": self._places["costates"], "costate": self._after("costates", n, N)},
            **{"dx_0": self.buffer("step_x", n), "dx": self._after("step_x", n, N)},
            **{"ds": self.buffer("end_ds", rows), "alpha": "alpha", "mu": "mu"},
        }
        names = {"low": "low_now", "high": "high_now"}
        return places | {name: self.buffer(f"end_{names.get(name, name)}", rows) for name in BOUNDS}

    def _linearise(self) -> list[Step]:
        e, N, n = self.evaluation, self.stages.count, self.stages.sizes[0]
        first, last = len(self.stages.start_names), len(self.stages.end_names)
        rows = len(self.stages.end_bounded)
        results: dict[str, Buffer] = {r.name: self._record(r.name, r.size) for r in e.condensed.results}
        at_ends: dict[str, Buffer] = {
            **{"c_0": self.buffer("c_0", first), "C_0": self.buffer("C_0", first * n)},
            **{"H_0": self.buffer("H_0", n * n), "c": self.buffer("c", last)},
            **{"C": self.buffer("C", last * n), "slope": self.buffer("gradient", n)},
            **{"D": self.buffer("end_D", rows * n), "H": self._after("Q", n * n, N)},
            "found": self.buffer("errors", 7),
        }
        return [
            Each(N, [self._kernel("condensed", e.condensed, self._stage_places(), results)]),
            self._kernel("ends", e.ends, self._end_places(), at_ends),
            self.own("curved", {"Q": n * n, "H_0": n * n}, {"Q_0": n * n}, lambda Q, H_0: [Q + H_0]),
            Copy(self.buffer("Q_0", n * n), self.buffer("Q", n * n), n * n),
        ]

    def _measure(self) -> list[Step]:
        e, N = self.evaluation, self.stages.count
        where = self._stage_places() | {"costate": self._record("costates", self.stages.sizes[0])}
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
        e, N, point = self.evaluation, self.stages.count, self.stages.chart.point
        n, m, nz, nd = self.stages.sizes
        first, last = len(self.stages.start_names), len(self.stages.end_names)
        rows, record = len(self.stages.end_bounded), self._record
        results: dict[str, Buffer] = {
            **{"x_new": record("new_x", point), "u_new": record("new_u", m), "z_new": record("new_z", nz)},
            **{"slack_new": record("new_slack", nd), "gap": record("gap", n), "implicit": record("left", nz)},
            **{"path": record("new_d", nd), "total": self.buffer("stage_total", 4)},
        }
        at_ends: dict[str, Buffer] = {
            **{"x_new": self._after("new_x", point, N), "slack_new": self.buffer("new_end_slack", rows)},
            **{"starts": self.buffer("new_c_0", first), "equations": self.buffer("new_c", last)},
            **{"rows": self.buffer("new_rows", rows), "total": self.buffer("trial", 4)},
        }
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
        N, point, rows = self.stages.count, self.stages.chart.point, len(self.stages.end_bounded)
        _, m, nz, nd = self.stages.sizes
        pairs = [("x", "new_x", (N + 1) * point), ("u", "new_u", N * m), ("z", "new_z", N * nz)]
        pairs += [("own_slack", "new_slack", N * nd), ("end_slack", "new_end_slack", rows)]
        pairs += [("d", "new_d", N * nd), ("rows", "new_rows", rows), ("here", "trial", 4)]
        return self._copy(pairs)

    def _advance(self) -> list[Step]:
        """A step, and the iterate that it leads to."""
        decide, where = self._decide, self._stage_places()
        N, (n, m, nz, nd), point = self.stages.count, self.stages.sizes, self.stages.chart.point
        first, last = len(self.stages.start_names), len(self.stages.end_names)
        rows, record, e = len(self.stages.end_bounded), self._record, self.evaluation
        bounds = [where[name] for name in BOUNDS]
        end = self._end_places()
        end_bounds = [end[name] for name in BOUNDS]
        at_end: dict[str, Buffer] = {
            **{"dx": self._after("step_x", n, N), "D": self.buffer("end_D", rows * n)},
            **{"g": self.buffer("gradient", n), "gradient": self.buffer("gradient", n)},
            **{"d": self.buffer("rows", rows), "mu": where["mu"], "gained": self.buffer("none", rows)},
        }
        at_end |= {name: end[name] for name in BOUNDS}
        slope, move, settle, barrier = end_row_kernels(n, rows)
        steps: list[Step] = [
            self._kernel("end_barrier", barrier, at_end, {"barrier": self.buffer("barrier", 1)})
        ]
        if nd:
            of_stage: dict[str, Buffer] = {"barrier": self.buffer("stage_barrier", 1)}
            at_stage: list[Step] = [
                self._kernel("barrier", e.barrier, where, of_stage),
                *self._fold("barrier", "stage_barrier", "+"),
                self._kernel("push", e.push, where, {"push": record("push", nd)}),
            ]
            steps.append(Each(N, at_stage))
        steps += [
            self._kernel("end_slope", slope, at_end, {"q": self._after("q", n, N)}),
            *decide("with_barrier"),
            Copy(self.buffer("floor", 1), self.buffer("shift", 1), 1),
            self._constant("no_minimum", "is_minimum", [0.0]),
            Repeat(self._sweep(first, last), "is_minimum", MOST_SHIFTS),
            self.own("keep_shift", {"shift": 1, "remembered": 1}, {"kept_shift": 1}, _kept_shift),
            Copy(self.buffer("kept_shift", 1), self.buffer("remembered", 1), 1),
        ]
        columns = 1 + last
        outward: list[Buffer] = [record("A", n * n), record("B", n * m), record("b", n), record("K", m * n)]
        outward += [
            record("k", m * columns),
            record("P", n * n, n * n),
            record("y", n * columns, n * columns),
        ]
        outward += [self.buffer("weights", columns), record("step_x", n)]
        left = [record("step_u", m), record("step_x", n, n), record("step_costates", n, n)]
        _, finishing = end_kernels(n, m, last)
        places = {
            "C": self.buffer("C", last * n),
            "c": self.buffer("c", last),
            "x": self._after("step_x", n, N),
        }
        places |= {"weights": self.buffer("weights", columns), "penalty": self.buffer("penalty", 1)}
        moves: dict[str, Buffer] = {
            **{"dz": where["dz"], "ds": where["ds"], "dlow": where["dlow"], "dhigh": where["dhigh"]},
            "limits": self.buffer("stage_limits", 3),
        }
        steps += [
            Each(N, [self._call("outward", outward_function(n, m, columns), outward, left)]),
            self._kernel("finishing", finishing, places, {"end": self.buffer("step_eta", last)}),
            self._kernel(
                "end_steps",
                move,
                at_end,
                {
                    **{"ds": self.buffer("end_ds", rows), "dlow": self.buffer("end_dlow", rows)},
                    **{"dhigh": self.buffer("end_dhigh", rows), "limits": self.buffer("longest", 3)},
                },
            ),
            Each(
                N,
                [self._kernel("steps", e.steps, where, moves), *self._fold("longest", "stage_limits", "<<+")],
            ),
            *self._in_time(),
            *decide("lengths"),
            Repeat([*self._trial(), *decide("look")], "is_taken", MOST_TRIALS),
            *decide("accept"),
            self.own("count", {"iterations": 1, "done": 1}, {"counted": 1}, _counted),
            Copy(self.buffer("counted", 1), self.buffer("iterations", 1), 1),
        ]
        if nd:
            given = [where["dlow"], where["dhigh"], where["alpha"], where["dual"], where["mu"]]
            given += [record("new_slack", nd), *bounds[1:]]
            settled: list[Buffer] = [record("new_low", nd), record("new_high", nd)]
            steps.append(Each(N, [self._kernel_at("settle", e.settle, given, settled)]))
        if rows:
            given = [self.buffer("end_dlow", rows), self.buffer("end_dhigh", rows), where["alpha"]]
            given += [where["dual"], where["mu"], self.buffer("new_end_slack", rows), *end_bounds[1:]]
            settled = [self.buffer("new_end_low", rows), self.buffer("new_end_high", rows)]
            steps.append(self._kernel_at("end_settle", settle, given, settled))
        moved = [("x", "new_x", point, N + 1), ("u", "new_u", m, N), ("z", "new_z", nz, N)]
        moved += [
            ("own_slack", "new_slack", nd, N),
            ("own_low", "new_low", nd, N),
            ("own_high", "new_high", nd, N),
        ]
        moved += [("end_slack", "new_end_slack", rows, 1), ("end_low_now", "new_end_low", rows, 1)]
        moved += [
            ("end_high_now", "new_end_high", rows, 1),
            ("d", "new_d", nd, N),
            ("rows", "new_rows", rows, 1),
        ]
        moved += [("costates", "step_costates", n, N + 1), ("sigma", "step_sigma", first, 1)]
        moved += [("eta", "step_eta", last, 1), ("here", "trial", 4, 1)]
        for target, source, each, count in moved:
            if each:
                steps.append(self._moved(target, source, each, count))
        return steps

    def _kernel_at(
        self, name: str, kernel: Kernel, inputs: Sequence[Buffer], outputs: Sequence[Buffer]
    ) -> Call:
        source = kernel.source()
        assert isinstance(source, FunctionSource)
        return self._call(name, self._functions.get(name, source.function), inputs, outputs)

    def _moved(self, target: str, source: str, size: int, count: int) -> Step:
        """What a step makes of the iterate: multipliers go along it, all else is where the trial was."""
        along = target in ("costates", "sigma", "eta")
        name = f"move_{'along' if along else 'to'}_{size}"

        def graph(go: ca.SX, alpha: ca.SX, old: ca.SX, new: ca.SX) -> list[ca.SX]:
            there = old + alpha * (new - old) if along else new
            return [ca.vertcat(*(ca.if_else(go, there[k], old[k]) for k in range(size)))]

        function = self._functions.get(name) or _function(
            name, {"go": 1, "alpha": 1, "old": size, "new": size}, graph
        )
        old: Buffer = self._record(target, size) if count > 1 else self.buffer(target, size)
        new: Buffer = self._record(source, size) if count > 1 else self.buffer(source, size)
        moved = self.buffer("moved", size)
        call = self._call(name, function, [self.buffer("go", 1), "alpha", old, new], [moved])
        return Each(count, [call, Copy(moved, old, size)])

    def _sweep(self, first: int, last: int) -> list[Step]:
        """The linear-quadratic problem from the end to the start, and whether it has a minimum."""
        N, (n, m, _, nd), record = self.stages.count, self.stages.sizes, self._record
        columns = 1 + last
        opening, _ = end_kernels(n, m, last)
        places: dict[str, Buffer] = {
            **{
                "Q": self._after("Q", n * n, N),
                "q": self._after("q", n, N),
                "R": self._after("R", m * m, N - 1),
            },
            **{"C": self.buffer("C", last * n), "c": self.buffer("c", last)},
            **{"rho": self.buffer("rho", 1), "shift": self.buffer("shift", 1)},
        }
        left: dict[str, Buffer] = {
            **{"P": self._after("P", n * n, N), "z": self._after("y", n * columns, N)},
            **{"W": self._after("W", last * columns, N), "penalty": self.buffer("penalty", 1)},
        }
        given: list[Buffer] = [
            *(record("A", n * n), record("B", n * m), record("b", n), record("Q", n * n), record("N", n * m)),
            *(record("R", m * m), record("q", n), record("r", m), record("D", nd * (n + m))),
            *(record("push", nd), self.buffer("shift", 1), record("P", n * n, n * n)),
            *(record("y", n * columns, n * columns), record("W", last * columns, last * columns)),
        ]
        found: list[Buffer] = [
            *(record("P", n * n), record("y", n * columns), record("W", last * columns), record("K", m * n)),
            *(record("k", m * columns), self.buffer("pivot", 1)),
        ]
        closing = closing_function(n, first, last)
        closed = self._call(
            "closing",
            closing,
            [
                *(self.buffer("P", n * n), self.buffer("y", n * columns), self.buffer("W", last * columns)),
                *(self.buffer("C_0", first * n), self.buffer("c_0", first)),
            ],
            [
                *(self.buffer("step_x", n), self.buffer("step_sigma", first)),
                *(self.buffer("weights", columns), self.buffer("step_costates", n), self.buffer("closed", 1)),
            ],
        )
        return [
            self._kernel("opening", opening, places, left),
            self._constant("not_yet", "definite", [1.0]),
            Each(
                N,
                [
                    self._call("inward", inward_function(n, m, columns, nd), given, found),
                    self.own("pivots", {"pivot": 1, "definite": 1}, {"still_definite": 1}, _still_definite),
                    Copy(self.buffer("still_definite", 1), self.buffer("definite", 1), 1),
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


def parts_of(sizes: Mapping[str, int]) -> dict[str, slice]:
    """Where in a vector its parts are."""
    starts = np.cumsum([0, *sizes.values()]).tolist()
    return {name: slice(a, b) for name, (a, b) in zip(sizes, pairwise(starts), strict=True)}

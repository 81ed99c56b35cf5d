"""A model as a C program: derivatives, outputs, their tangents and an integrator step; no Python, no allocation, no globals.

    derivatives   t, q, v, [x], [d], u, p -> q', v', [x']
    outputs       t, q, v, [x], [d], u, p -> y
    tangent       the same and directions of q, v, [x], u, p -> directions of q', v', [x'], y
    step          t, h, u, p; q, v, [x] in place, [d]
    instant       t, q, v, [x], u, p; d in place: what sensors and sampled laws do at a tick of their clock
    settle        p; q, v, d in place: back to where loops are closed

u are efforts of the joints, or what a controller takes, and p the parameters of the model. x are states that are integrated
along and d what is remembered (`alembert.deploy.exported_system`); they are arguments only where there are some. The step is
one of `alembert.simulate.schemes`, cut where it asks for accelerations, so that the dynamics are there once and are called.

Loops, couplings and equations are those of `alembert.simulate.closed_loops`: d begins with the mask of a minimal set of
rows. Where the set does not serve at a state, another is chosen; where none serves, accelerations are NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known, names
from alembert.constraints import compiled, saddle
from alembert.constraints.results import RANK
from alembert.deploy.exported_system import ExportedSystem, Given, Signal, exported_system
from alembert.engine.c_export import c_function
from alembert.errors import ArgumentError, UnsupportedError
from alembert.lowering.plan import Call, Copy, Offset, Repeat, Step, When
from alembert.lowering.routine import Parts, Routine
from alembert.model import Model
from alembert.simulate import closed_loops
from alembert.simulate.schemes import SCHEMES, Now, StatePoint
from alembert.simulate.step_code import SchemeManifold, Segments
from alembert.spatial import quaternion

INTEGRATORS = tuple(name for name, scheme in SCHEMES.items() if not scheme.past)
PLACES = ("x", "y", "z", "qw", "qx", "qy", "qz")
PUBLIC = ("derivatives", "outputs", "tangent", "step", "instant", "settle")
LARGEST = 10_000
"""cost of the constraints above which C that chooses their rows by itself grows too long"""


@dataclass(frozen=True, eq=False)
class CProgram:
    """The text of a C file, and the signals of its functions, all called `PREFIX_...`."""

    model: Model
    prefix: str
    text: str
    integrator: str
    states: tuple[Signal, ...]
    speeds: tuple[Signal, ...]
    more_states: tuple[Signal, ...]
    """x"""
    memory: tuple[float, ...]
    """d at the start"""
    inputs: tuple[Signal, ...]
    parameters: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    tick: float = 0.0
    """seconds between calls of `instant`"""
    rows: int = 0
    """of loops, couplings and equations"""
    operations: Mapping[str, int] = field(default_factory=dict)
    """of each function"""
    parts: Parts = field(default_factory=Parts)
    prototypes: tuple[str, ...] = ()
    """of the functions that others may call"""

    @property
    def sizes(self) -> dict[str, int]:
        parts = {
            "q": self.states,
            "v": self.speeds,
            "x": self.more_states,
            "d": self.memory,
            "u": self.inputs,
            "p": self.parameters,
            "y": self.outputs,
        }
        return {name: len(part) for name, part in parts.items()}

    @property
    def starts(self) -> dict[str, list[float]]:
        """q, v, x, d, u and p at the start."""
        parts = {
            "q": self.states,
            "v": self.speeds,
            "x": self.more_states,
            "u": self.inputs,
            "p": self.parameters,
        }
        found = {name: [s.start for s in part] for name, part in parts.items()}
        return {**found, "d": list(self.memory)}


def c_program(
    function: str,
    model: Model,
    prefix: str,
    given: Given,
    *,
    integrator: str = "rk4",
    frames: Sequence[str] = (),
    q0: Any = None,
    v0: Any = None,
    tangents: bool = True,
    more: Callable[[Model, ca.SX, ca.SX, ca.SX, ca.SX], ca.SX] | None = None,
    commands: Sequence[Signal] = (),
) -> CProgram:
    """See the module. `function` is what messages call the caller.

    `more(model, q, v, w, p)` gives further efforts, of inputs w called `commands`, which come before all others in u.
    """
    _check(function, model, integrator)
    _identifier(function, prefix)
    system = exported_system(function, model, given)
    q_start, v_start = _start(function, system, q0, v0)
    makers = _Maker(function, system, integrator, frames, more, commands, tangents=tangents)
    outputs = makers.outputs
    memory = [*makers.first_choice(q_start), *system.starts, *([0.0] if system.tick else [])]
    made = makers.parts()
    prototypes: list[str] = []
    operations: dict[str, int] = {}
    text = ["#include <math.h>\n#include <string.h>\n"]
    for name, f in made.functions.items():
        code, count = c_function(f, f"{prefix}_{name}", static=name not in PUBLIC)
        text.append(code)
        operations[name] = count
        if name in PUBLIC:
            prototypes.append(code.split("\n", 1)[0])
    for name in made.routines:
        lines = made.c_text(name, prefix, static=name not in PUBLIC)
        operations[name] = made.operations(name, operations)
        text.append("\n".join(lines))
        if name in PUBLIC:
            prototypes.append(next(line for line in lines if line.startswith("void")))
    space = model.space
    return CProgram(
        system.model,
        prefix,
        "\n".join(text),
        integrator,
        _signals(model.coordinate_names, space.coordinate_units, q_start),
        _signals(model.speed_names, space.speed_units, v_start),
        system.states,
        tuple(float(x) for x in memory),
        (*commands, *system.inputs),
        tuple(Signal(name, "", value) for name, value in model.parameter_values.items()),
        outputs,
        system.tick,
        makers.rows,
        operations,
        made,
        tuple(prototypes),
    )


def _signals(labels: Sequence[str], units: Sequence[str], starts: np.ndarray) -> tuple[Signal, ...]:
    return tuple(Signal(*entry) for entry in zip(labels, units, starts.tolist(), strict=True))


def _check(function: str, model: Model, integrator: str) -> None:
    if not isinstance(model, Model):
        raise ArgumentError(f"{function}: model is {model!r}, expected a Model")
    check_known(f"{function}: no integrator", integrator, INTEGRATORS)
    if model.nv == 0:
        raise ArgumentError(f"{function}: nothing moves in the model {model.name!r}")
    rows = model.constrained_compute.rows
    if model.is_constrained and (rows.cost > LARGEST or not closed_loops.compiles(model)):
        raise UnsupportedError(
            f"{function}: the model {model.name!r} has {len(rows.names)} loops, couplings and equations with {rows.count} "
            "rows, too many for straight code; leave some of them out"
        )


def _identifier(function: str, prefix: str) -> None:
    if not re.fullmatch(r"[A-Za-z]\w*", prefix, flags=re.ASCII):
        raise ArgumentError(f"{function}: {prefix!r} is not a name in C; use letters, digits and underscores")


def _start(function: str, system: ExportedSystem, q0: Any, v0: Any) -> tuple[np.ndarray, np.ndarray]:
    model, found = system.model, []
    for what, given, default in (("q0", q0, model.neutral()), ("v0", v0, np.zeros(model.nv))):
        if isinstance(given, Mapping):
            given = model.configuration(given) if what == "q0" else model.velocity(given)
        x = default if given is None else np.asarray(given, dtype=float)
        if x.shape != default.shape or not np.all(np.isfinite(x)):
            raise ArgumentError(
                f"{function}: {what} has shape {x.shape}, expected {default.shape} finite numbers"
            )
        found.append(x)
    model.space.check(function, found[0])
    if model.is_constrained:
        return system.simulation.settled(0.0, found[0], found[1])
    return found[0], found[1]


class _Maker:
    """The functions and routines of a program."""

    def __init__(
        self,
        function: str,
        system: ExportedSystem,
        integrator: str,
        frames: Sequence[str],
        more: Callable[[Model, ca.SX, ca.SX, ca.SX, ca.SX], ca.SX] | None,
        commands: Sequence[Signal],
        *,
        tangents: bool,
    ) -> None:
        self.function, self.system, self.model, self.integrator = function, system, system.model, integrator
        self.tangents, self.more, self.commands = tangents, more, len(commands)
        model = self.model
        self.constraints = model.constrained_compute.rows if model.is_constrained else None
        self.rows = self.constraints.count if self.constraints is not None else 0
        self.sizes = {
            "t": 1,
            "q": model.nq,
            "v": model.nv,
            "x": len(system.states),
            "d": self.rows + system.memory + bool(system.tick),
            "u": self.commands + len(system.inputs),
            "p": system.own_parameters,
        }
        self.symbols = {name: ca.SX.sym(name, size) for name, size in self.sizes.items()}
        self.given = [name for name in self.sizes if self.sizes[name] or name in "tqvup"]
        """the arguments that there are"""
        s = self.symbols
        self.own_u = s["u"][self.commands :]
        self.p = system.parameters(self.own_u, s["p"])
        self.y, self.outputs = self._outputs(frames)
        self.results = {"rate": model.nq, "a": model.nv}
        if self.sizes["x"]:
            self.results["x_rate"] = self.sizes["x"]

    def _outputs(self, frames: Sequence[str]) -> tuple[ca.SX, tuple[Signal, ...]]:
        """Positions and quaternions of frames."""
        rows, signals, model = [ca.SX(0, 1)], [], self.model
        for frame in names(self.function, "frames", frames):
            model.compute.locate(self.function, frame, None)
            X = model.symbolic.frame_pose(
                self.symbols["q"], frame, parameters=self.p if model.parameters else None
            )
            rows += [X.translation, quaternion.from_matrix(X.rotation)]
            signals += [Signal(f"frame.{frame}.{x}", "m" if k < 3 else "") for k, x in enumerate(PLACES)]
        return ca.densify(ca.vertcat(*rows)), tuple(signals)

    def first_choice(self, q: np.ndarray) -> list[float]:
        """A minimal set of rows at the start."""
        if self.constraints is None:
            return []
        return (
            np.array(self._choice()(q, self.system.simulation.parameter_array()), dtype=float)
            .ravel()
            .tolist()
        )

    # --- all parts --------------------------------------------------------------------------------------------------

    def parts(self) -> Parts:
        functions: dict[str, ca.Function] = {}
        routines: dict[str, Routine] = {}
        s = self.symbols
        given = {name: s[name] for name in self.given}
        rate, a, x_rate, bad = self._motion()
        results = {"rate": rate, "a": a, **({"x_rate": x_rate} if "x_rate" in self.results else {})}
        if self.constraints is None:
            functions["derivatives"] = _function("derivatives", given, results)
        else:
            chosen = s["d"][: self.rows]
            mask = ca.SX.sym("mask", self.rows)
            moved = {key: ca.substitute(ca.SX(x), chosen, mask) for key, x in {**results, "bad": bad}.items()}
            functions["motion"] = _function("motion", {**given, "mask": mask}, moved)
            functions["choose"] = self._choice()
            functions["guard"] = self._guard()
            routines["derivatives"] = self._guarded()
            self._settling(functions, routines)
        functions["outputs"] = _function("outputs", given, {"y": self.y})
        if self.tangents:
            functions["tangent"] = _tangent(given, {**results, "y": self.y})
        if self.system.instants is not None:
            self._instant(functions, routines)
        self._step(functions, routines)
        return Parts(functions, routines)

    def _motion(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """q', v', x', and whether the rows of loops do not serve."""
        s, model = self.symbols, self.model
        t, q, v, x, d = (s[name] for name in "tqvxd")
        p = self.p
        effort, x_rate = self.system.effort(t, q, v, x, d[self.rows :], self.own_u, p)
        if self.more is not None:
            effort = effort + self.more(model, q, v, s["u"][: self.commands], p)
        rate = model.space.rate(q, v)
        if self.constraints is None:
            a = model.symbolic.forward_dynamics(q, v, effort, parameters=p if model.parameters else None)
            return rate, a, x_rate, ca.SX(0)
        masks = (d[: self.rows], np.ones(self.rows))
        a, _, _, status = compiled.symbolic_state(self.constraints, masks, {"q": q, "v": v, "tau": effort}, p)
        good = compiled.symbolic_served(status, closed_loops.STAGE)
        return rate, a, x_rate, ca.logic_not(good)

    # --- loops ------------------------------------------------------------------------------------------------------

    def _all_parameters(self) -> dict[str, ca.SX]:
        """Parameters of the copy as one argument."""
        return {"all_p": ca.SX.sym("all_p", len(self.model.parameters))}

    def _choice(self) -> ca.Function:
        """(q, all_p) -> the mask of a minimal set of rows."""
        assert self.constraints is not None
        q, p = ca.SX.sym("q", self.model.nq), self._all_parameters()
        graph = self.constraints.graph
        G = ca.substitute(
            ca.sparsify(graph.found.jacobian),
            ca.vertcat(graph.q, graph.parameters),
            ca.vertcat(q, p["all_p"]),
        )
        mask = saddle.symbolic_choice(G, self.constraints.slice_list, RANK)
        return _function("choose", {"q": q, **p}, {"mask": mask})

    def _guard(self) -> ca.Function:
        a, bad = ca.SX.sym("a_found", self.model.nv), ca.SX.sym("bad")
        return _function(
            "guard", {"a_found": a, "bad": bad}, {"a": ca.if_else(bad, ca.SX.nan(self.model.nv), a)}
        )

    def _joined(self) -> list[Step]:
        """The parameters of the copy, from p and u."""
        count, points = self.sizes["p"], self.system.set_points
        found: list[Step] = [Copy("p", "all_p", count)] if count else []
        if points.stop > points.start:
            source = Offset("u", self.commands + points.start)
            found.append(Copy(source, Offset("all_p", count), points.stop - points.start))
        return found

    def _guarded(self) -> Routine:
        """Accelerations by the rows that are kept, or by others."""
        found = {"rate": "rate", "a": "a_found", "x_rate": "x_rate"}
        out = [found[name] for name in self.results]
        sizes = {**{name: self.sizes[name] for name in self.given}, **self.results}
        sizes |= {"a_found": self.model.nv, "bad": 1, "mask": self.rows, "all_p": len(self.model.parameters)}
        steps: list[Step] = [
            Call("motion", [*self.given, "d"], [*out, "bad"]),
            When(
                "bad",
                [
                    *self._joined(),
                    Call("choose", ["q", "all_p"], ["mask"]),
                    Call("motion", [*self.given, "mask"], [*out, "bad"]),
                ],
            ),
            Call("guard", ["a_found", "bad"], ["a"]),
        ]
        return Routine("derivatives", tuple(self.given), tuple(self.results), sizes, steps)

    def _settling(self, functions: dict[str, ca.Function], routines: dict[str, Routine]) -> None:
        assert self.constraints is not None
        model, n = self.model, 2 + self.model.nq + self.model.nv
        back, mask, p = ca.SX.sym("back", n), ca.SX.sym("mask", self.rows), self._all_parameters()
        q, v = back[2 : 2 + model.nq], back[2 + model.nq :]
        x, y, status = compiled.symbolic_projection(
            self.constraints, (mask, np.ones(self.rows)), q, v, p["all_p"]
        )
        nearer = closed_loops.approach(model)(back, x, y, status)
        functions["nearer"] = _function(
            "nearer", {"back": back, "mask": mask, **p}, {"back_next": ca.SX(nearer)}
        )
        q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
        functions["begin"] = _function("begin", {"q": q, "v": v}, {"back": ca.vertcat(0, ca.inf, q, v)})
        failed = ca.logic_not(ca.logic_and(back[0], back[1] < ca.inf))
        ended = ca.if_else(failed, ca.SX.nan(n - 2), back[2:])
        functions["ended"] = _function(
            "ended", {"back": back}, {"q": ended[: model.nq], "v": ended[model.nq :], "bad": failed}
        )
        tried: list[Step] = [
            Call("begin", ["q", "v"], ["back"]),
            Repeat(
                [Call("nearer", ["back", "d", "all_p"], ["back_next"]), Copy("back_next", "back")],
                "back",
                closed_loops.MOST_CLOSING,
            ),
            Call("ended", ["back"], ["q_end", "v_end", "bad"]),
        ]
        sizes = {name: self.sizes[name] for name in "upqvd"}
        sizes |= {
            "all_p": len(model.parameters),
            "back": n,
            "back_next": n,
            "q_end": model.nq,
            "v_end": model.nv,
            "bad": 1,
        }
        steps: list[Step] = [
            *self._joined(),
            *tried,
            When("bad", [Call("choose", ["q", "all_p"], ["d"]), *tried]),
            Copy("q_end", "q"),
            Copy("v_end", "v"),
        ]
        routines["settle"] = Routine(
            "settle",
            ("u", "p"),
            ("q", "v", "d"),
            sizes,
            steps,
            "Back to where loops are closed; NaN where that fails. d keeps which rows are used.",
        )

    # --- instants ---------------------------------------------------------------------------------------------------

    def _instant(self, functions: dict[str, ca.Function], routines: dict[str, Routine]) -> None:
        instants, model = self.system.instants, self.model
        assert instants is not None
        labels: dict[str, str] = {}
        for name, f in instants.functions.items():
            labels[name] = f"at_{name}"
            kept = [k for k in range(f.n_in()) if f.numel_in(k)]
            symbols = [ca.SX.sym(f"in{k}", f.numel_in(k)) for k in range(f.n_in())]
            found = f.call(symbols)
            functions[labels[name]] = _function(
                labels[name],
                {f"in{k}": symbols[k] for k in kept},
                {f"out{k}": x for k, x in enumerate(found)},
            )
        q, v, flight = 1, 1 + model.nq, 1 + model.nq + model.nv
        number = self.rows + instants.size
        n = ca.SX.sym("n")
        functions["count"] = _function("count", {"n": n}, {"following": n + 1})
        steps: list[Step] = [
            *self._joined(),
            Copy(Offset("d", number), "state", 1),
            Copy("q", Offset("state", q), model.nq),
            Copy("v", Offset("state", v), model.nv),
            Copy(Offset("d", self.rows), Offset("state", flight), instants.size),
            Copy(None, "step", 1),
            *_renamed(instants.steps("state", q, v, flight), labels, {"parameters": "all_p", "start": "t"}),
            Copy(Offset("state", flight), Offset("d", self.rows), instants.size),
            Call("count", ["state"], [Offset("d", number)]),
        ]
        sizes = {name: self.sizes[name] for name in ("t", "q", "v", "u", "p", "d")}
        sizes |= {
            "all_p": len(model.parameters),
            "state": flight + instants.size,
            "step": 1,
            **instants.temporaries,
        }
        routines["instant"] = Routine(
            "instant",
            ("t", "q", "v", "u", "p"),
            ("d",),
            sizes,
            steps,
            f"Every {self.system.tick!r} s, from the start on: sensors measure, sampled laws are asked, answers act.",
        )

    # --- the step ---------------------------------------------------------------------------------------------------

    def _step(self, functions: dict[str, ca.Function], routines: dict[str, Routine]) -> None:
        """The functions between two calls of the derivatives, and the routine that calls them."""
        model, nv = self.model, self.model.nv
        h, x = ca.SX.sym("h"), ("x",) if self.sizes["x"] else ()
        moved = ("t", "q", "v", *x)
        trace = Segments({"h": h, **{name: self.symbols[name] for name in moved}})
        known = trace.known

        def at(time: Any, configuration: Any, speeds: Any) -> StatePoint:
            k = sum(name.startswith("a_") for name in known)
            values = time, configuration, speeds[:nv], speeds[nv:]
            trace.segment(
                f"stage{k}", {f"{name}_{k}": part for name, part in zip(moved, values, strict=False)}
            )
            given = [f"{name}_{k}" if name in moved else name for name in self.given]
            trace.body.append(Call("derivatives", given, [f"{name}_{k}" for name in self.results]))
            trace.add_buffers(**{f"{name}_{k}": size for name, size in self.results.items()})
            v = ca.vertcat(*(known[f"{name}_{k}"] for name in moved[2:]))
            a = ca.vertcat(*(known[f"{name}_{k}"] for name in self.results if name != "rate"))
            return StatePoint(known[f"t_{k}"], known[f"q_{k}"], v, a)

        now = Now(known["t"], known["q"], ca.vertcat(*(known[name] for name in moved[2:])), ())
        manifold = SchemeManifold(model, symbolic=True)
        q1, v1, _ = SCHEMES[self.integrator].step(now, h, at, manifold)
        trace.segment("finish", {"q_next": q1, "v_next": v1[:nv], **{f"{name}_next": v1[nv:] for name in x}})
        functions |= trace.functions
        steps = [*trace.body, *(Copy(f"{name}_next", name) for name in moved[1:])]
        changed = [name for name in "qvxd" if self.sizes[name]]
        if self.constraints is not None:
            steps.append(Call("settle", ["u", "p"], ["q", "v", "d"]))
        routines["step"] = Routine(
            "step",
            ("t", "h", "u", "p"),
            tuple(changed),
            {**{name: self.sizes[name] for name in self.given}, "h": 1, **trace.temporaries},
            steps,
            f"One step of {self.integrator}: {', '.join(x for x in changed if x != 'd')} are advanced by h.",
        )


def _function(name: str, arguments: Mapping[str, ca.SX], results: Mapping[str, ca.SX]) -> ca.Function:
    outputs = [ca.densify(ca.SX(x)) for x in results.values()]
    return ca.Function(name, list(arguments.values()), outputs, list(arguments), list(results))


def _tangent(arguments: Mapping[str, ca.SX], results: Mapping[str, ca.SX]) -> ca.Function:
    moved = [name for name in arguments if name not in ("t", "d")]
    seeds = {f"d_{name}": ca.SX.sym(f"d_{name}", arguments[name].numel()) for name in moved}
    at, along = ca.vertcat(*(arguments[name] for name in moved)), ca.vertcat(*seeds.values())
    found = {f"d_{name}": ca.jtimes(x, at, along) if x.numel() else x for name, x in results.items()}
    return _function("tangent", {**arguments, **seeds}, found)


def _renamed(steps: Sequence[Step], functions: Mapping[str, str], buffers: Mapping[str, str]) -> list[Step]:
    """The same with other names of functions and buffers."""

    def other(buffer: Any) -> Any:
        if isinstance(buffer, Offset):
            return Offset(buffers.get(buffer.buffer, buffer.buffer), buffer.start)
        return buffers.get(buffer, buffer)

    found: list[Step] = []
    for step in steps:
        if isinstance(step, When):
            found.append(When(other(step.flag), _renamed(step.steps, functions, buffers)))
        elif isinstance(step, Call):
            inputs, outputs = ([other(x) for x in part] for part in (step.inputs, step.outputs))
            found.append(Call(functions[str(step.source)], inputs, outputs))
        else:
            assert isinstance(step, Copy)
            found.append(Copy(other(step.source), other(step.target), step.size))
    return found

"""From a scheme and a model to a kernel that makes many steps.

The machine's state is described in `alembert.simulate.step_code`. Running the scheme on symbols cuts it at every
evaluation of the dynamics: what lies between two cuts becomes one small function, while the dynamics, the controller and
the prescribed motion are there once and are called.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.algorithms import kernels
from alembert.algorithms.table import TABLE
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import RECORDS, Call, Offset, Step, recorded
from alembert.model import Model
from alembert.simulate import schemes
from alembert.simulate.closed_loops import ClosedLoops, ReactionLoads
from alembert.simulate.elements import Elements, Sizes, function_kernel
from alembert.simulate.schedule import CompiledSchedule
from alembert.simulate.schemes import Now, Scheme, StatePoint
from alembert.simulate.symmetries import FreeRoots, without_angles
from alembert.sweeps.form import ModelForm

Array = np.ndarray


class Layout:
    """The number of the step, how many past points are known, then parts by name, in the order given.

    Every scheme has `q`. Multistep schemes have past points (q1, v1, a1), (q2, v2, a2) and so on, the newest first;
    models with loops have `chosen`, the rows of a minimal set of constraints (1, others 0).
    """

    def __init__(self, **sizes: int) -> None:
        self.names = tuple(sizes)
        ends = np.cumsum([2, *sizes.values()]).tolist()
        self._slices = {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(sizes)}
        self.size: int = ends[-1]

    @classmethod
    def with_past(cls, nq: int, nv: int, states: int, past: int, **more: int) -> Layout:
        """Speeds are followed by the `states` of controllers, x; past points have both in v and a."""
        width = nv + states
        points = {
            f"{name}{k + 1}": n
            for k in range(past)
            for name, n in zip("qva", (nq, width, width), strict=True)
        }
        return cls(q=nq, v=nv, **({"x": states} if states else {}), **points, **more)

    def moving(self, state: Any) -> Any:
        """Speeds and, behind them, the states of controllers: what schemes take as v."""
        s = slice(self["v"].start, self["x"].stop if "x" in self else self["v"].stop)
        return state[..., s] if isinstance(state, np.ndarray) else state[s]

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def __contains__(self, name: str) -> bool:
        return name in self._slices

    def points(self, state: Any, past: int) -> tuple[StatePoint, ...]:
        """The past points of a state, an `SX` vector or an array (..., size); their times are not kept."""

        def part(name: str) -> Any:
            return state[..., self[name]] if isinstance(state, np.ndarray) else state[self[name]]

        return tuple(StatePoint(None, *(part(f"{x}{k + 1}") for x in "qva")) for k in range(past))

    def past(self, points: Sequence[StatePoint]) -> dict[str, Any]:
        return {f"{x}{k + 1}": getattr(p, x) for k, p in enumerate(points) for x in "qva"}

    def symbolic(self, number: Any, known: Any, **parts: Any) -> ca.SX:
        """A state of `SX` from all its parts."""
        return ca.vertcat(number, known, *(parts[name] for name in self.names))

    def numeric(self, number: Any, known: Any, **parts: Array) -> Array:
        """A state, or a batch of them, from its parts; those that are not given are zero."""
        shapes = [np.shape(x)[:-1] for x in parts.values()]
        state = np.zeros((*np.broadcast_shapes(*shapes), self.size))
        state[..., 0], state[..., 1] = number, known
        for name, x in parts.items():
            state[..., self[name]] = x
        return state


class SchemeManifold:
    """The configurations as schemes see them whose v has the states of controllers behind the speeds.

    On arrays (..., nq) and (..., nv), or on expressions.
    """

    def __init__(self, model: Model, *, symbolic: bool = False) -> None:
        self._of = model.space if symbolic else model
        self._nv = model.nv
        self._chart_rate = model.space.chart_rate if symbolic else chart_kernel(model, "chart_rate")

    def _own(self, x: Any) -> Any:
        return np.ascontiguousarray(x[..., : self._nv]) if isinstance(x, np.ndarray) else x[: self._nv]

    def integrate(self, q: Any, e: Any) -> Any:
        return self._of.integrate(q, self._own(e))

    def difference(self, q0: Any, q1: Any) -> Any:
        return self._of.difference(q0, q1)

    def chart_rate(self, e: Any, v: Any) -> Any:
        """What stands behind the speeds stays as it is."""
        rate = self._chart_rate(self._own(e), self._own(v))
        if isinstance(v, np.ndarray):
            return np.concatenate([rate, v[..., self._nv :]], axis=-1) if v.shape[-1] > self._nv else rate
        return ca.vertcat(rate, v[self._nv :])


def chart_kernel(model: Model, name: str) -> Kernel:
    """`chart_rate` (e, v), or `chart_derivatives` (e, v): d(T v)/de, T and T^-1."""
    key, nv, m = f"{model.fingerprint}:{name}", model.nv, model.space

    def function() -> ca.Function:
        e, v = ca.SX.sym("e", nv), ca.SX.sym("v", nv)
        rate = m.chart_rate(e, v)
        slopes = [ca.jacobian(rate, e), ca.jacobian(rate, v), m.chart_jacobian(e)]
        return ca.Function(name, [e, v], [rate] if name == "chart_rate" else slopes)

    results: Sizes = dict.fromkeys(("rate_e", "rate_v", "jacobian"), (nv, nv))
    if name == "chart_rate":
        results = {"rate": nv}
    return model.compute.kept(key, lambda: function_kernel(name, key, {"e": nv, "v": nv}, results, function))


@dataclass(frozen=True)
class StepModel:
    """What is simulated, as far as the machine code knows it.

    `controller(t, q, v, x, p)` gives efforts in addition to those given as numbers, and x' of its `states` x; `motion(t)`
    gives q, v and a of the degrees of freedom that are not `free`. Both are CasADi functions of `SX`. `elements` is what
    else acts, `reading` what depends on reactions, `sampling` the sensors and sampled laws.
    """

    model: Model
    wrenches: bool = False
    controller: ca.Function | None = None
    states: int = 0
    motion: ca.Function | None = None
    prescribed: tuple[bool, ...] = ()
    elements: Elements | None = None
    sampling: CompiledSchedule | None = None
    reading: ReactionLoads | None = None
    flows: tuple[tuple[int, int], ...] = ()
    """states of controllers that are parameters of the model, with their numbers there: masses that fall"""
    burnt: tuple[tuple[int, int, str], ...] = ()
    """of these, those of which a message of a law says how much is gone, with its name"""
    form: ModelForm | None = None
    """where the code takes the numbers of the model as parameters, so that models of one form share it"""

    def at_present(self, parameters: Any, x: Any) -> Any:
        """Parameters with the masses as they are; on `SX`."""
        if not self.flows:
            return parameters
        found = ca.SX(parameters)
        for state, place in self.flows:
            found[place] = x[state]
        return found

    @property
    def shared(self) -> Model:
        """Whose equations the expressions are: the form, or the model."""
        return self.model if self.form is None else self.form.model

    @property
    def tree(self) -> Model:
        """The model without loops, couplings and equations."""
        return tree_of(self.model)

    @property
    def rows(self) -> dict[str, int]:
        """The part of the machine's state that closed loops need: a minimal set of their rows."""
        return {"chosen": self.model.constrained_compute.rows.count} if self.model.is_constrained else {}

    @property
    def remembered(self) -> dict[str, int]:
        """The part of the machine's state that sensors and sampled laws need."""
        return {"remembered": self.sampling.size} if self.sampling is not None else {}

    @property
    def arguments(self) -> list[Argument]:
        model = self.model
        found = [Argument("effort", (model.nv,))]
        if self.wrenches:
            found.append(Argument("wrench", (len(model.compute.tree), 6)))
        if count := len(self.shared.parameters):
            found.append(Argument("parameters", (count,)))
        return found if self.sampling is None else found + self.sampling.arguments

    @cached_property
    def key(self) -> str:
        texts = [self.shared.fingerprint, str(self.wrenches), str(self.prescribed), str(self.flows or "")]
        texts.append(str(self.burnt or ""))
        for function in (self.controller, self.motion):
            texts.append(function.serialize() if function is not None else "")
        texts += [x.key if x is not None else "" for x in (self.elements, self.sampling, self.reading)]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def all_efforts(self, effort: Any, t: Any, q: Any, v: Any, x: Any, parameters: Any) -> tuple[Any, Any]:
        """Efforts given as numbers, those of the controller and of what else acts; and x'; on `SX`."""
        total, rate = effort, ca.SX(0, 1)
        parameters = self.at_present(parameters, x)
        if self.controller is not None:
            u, rate = self.controller(t, q, v, x, parameters)
            total = total + ca.SX(u)
        if self.elements is not None:
            total = total + self.elements.total(t, q, v, parameters)
        return total, ca.SX(rate)

    def symbols(self) -> dict[str, ca.SX]:
        """What `all_efforts` takes."""
        model = self.model
        sizes = {"effort": model.nv, "t": 1, "q": model.nq, "v": model.nv, "x": self.states}
        sizes["parameters"] = len(model.parameters)
        return {name: ca.SX.sym(name, size) for name, size in sizes.items()}

    @property
    def is_one_function(self) -> bool:
        """Whether efforts and accelerations are made of expressions altogether (not of loops over bodies)."""
        program, _ = TABLE["forward_dynamics"].sweeps
        return self.motion is None and not kernels.is_rolled(self.model.compute.tree, program, "auto")

    def accelerations(self, free_roots: FreeRoots) -> ca.Function:
        """(effort, t, q, v, x, parameters, wrench) -> a and x': what acts and what it does, with the same poses."""
        symbols, tree = self.symbols(), self.model.compute.tree
        total, rate = self.all_efforts(*symbols.values())
        q, v, x = (symbols[key] for key in ("q", "v", "x"))
        p = self.at_present(symbols["parameters"], x)
        still, away = free_roots.symbolic_apart(v)
        given = {"q": q if self.wrenches else without_angles(tree, q, p), "v": still, "tau": total}
        inputs = [x for x in symbols.values() if x.numel()]
        if self.wrenches:
            given["wrench"] = ca.SX.sym("wrench", len(tree), 6)
            inputs.append(given["wrench"])
        program, _ = TABLE["forward_dynamics"].sweeps
        (a,) = kernels.program_graph(tree, program, tuple(given))(*given.values(), p)
        results = [ca.vec(a) - away, *([rate] if self.states else [])]
        return ca.Function("accelerations", inputs, [ca.densify(x) for x in results])

    def dynamics(self) -> tuple[KernelSource, list[str], list[str]]:
        """Source of the accelerations, and the names of its inputs and outputs."""
        name = "hybrid_dynamics" if self.motion is not None else "forward_dynamics"
        program, names = TABLE[name].sweeps
        given = [*names, "wrench"] if self.wrenches else list(names)
        kernel = kernels.program_kernel(self.model, self.model.compute.tree, program, given)
        inputs = [*given, "parameters"] if self.model.parameters else given
        outputs = ["a", "all_effort"] if self.motion is not None else ["a"]
        return kernel.source(), inputs, outputs


def tree_of(model: Model) -> Model:
    """The model without loops, couplings and equations."""
    return model.constrained_compute.rows.primary if model.is_constrained else model


def override(plant: StepModel, x: Any, given: Any, *, of_q: bool) -> Any:
    """The entries of x (over q or v) that are prescribed, replaced; on `SX`."""
    parts = []
    model = plant.model
    for owner in model.space:
        s = owner.q if of_q else owner.v
        if owner.type.nv:
            parts.append(given[s] if plant.prescribed[owner.v.start] else x[s])
    return ca.vertcat(*parts)


class Segments:
    """A computation on symbols that calls what is no expression: functions of what lies between the calls, and all calls."""

    def __init__(self, known: Mapping[str, ca.SX]) -> None:
        """`known` are the buffers that come in."""
        self.known = dict(known)
        self.functions: dict[str, ca.Function] = {}
        self.temporaries: dict[str, int] = {}
        self.body: list[Step] = []

    def add_buffers(self, **sizes: int) -> None:
        """Buffers that a call fills: known from here on."""
        self.temporaries |= sizes
        self.known |= {name: ca.SX.sym(name, size) for name, size in sizes.items()}

    def segment(self, label: str, values: Mapping[str, Any]) -> None:
        """A function from what is known to new buffers."""
        everything = ca.vertcat(*(ca.vec(ca.SX(x)) for x in values.values()))
        used = {name: x for name, x in self.known.items() if _depends(everything, x)}
        sizes = {name: ca.SX(x).numel() for name, x in values.items()}
        everything = ca.cse(everything)
        ends = np.cumsum([0, *sizes.values()]).tolist()
        parts = [ca.densify(everything[a:b]) for a, b in itertools.pairwise(ends)]
        labels = [f"{name}_out" for name in values]
        self.functions[label] = ca.Function(label, list(used.values()), parts, list(used), labels)
        self.body.append(Call(label, tuple(used), tuple(values)))
        self.add_buffers(**sizes)


class Tracer(Segments):
    """Runs a scheme on symbols and writes down the calls."""

    def __init__(self, plant: StepModel, layout: Layout) -> None:
        state, start, step = ca.SX.sym("state", layout.size), ca.SX.sym("start"), ca.SX.sym("step")
        super().__init__({"state": state, "start": start, "step": step})
        self.plant, self.layout = plant, layout
        self.kernels: dict[str, KernelSource] = {}
        model = plant.model
        if plant.flows:
            self.known["parameters"] = ca.SX.sym("parameters", len(model.parameters))
        self.loops = None
        if model.is_constrained:
            self.loops = ClosedLoops(
                model, wrenches=plant.wrenches, held=plant.prescribed, reading=plant.reading
            )
        if self.loops is not None:
            self.kernels |= self.loops.sources
            self.temporaries |= self.loops.temporaries
            masks = [state[layout["chosen"]], ca.SX.ones(plant.rows["chosen"])]
            self.functions["masks"] = ca.Function("masks", [state], masks)
            self.body.append(Call("masks", ("state",), ("chosen", "active")))
        self.free_roots = FreeRoots(model, np.array(plant.prescribed or [False] * model.nv))
        """what reads reactions may read the velocity as well"""
        if plant.reading is not None:
            self.free_roots.roots.clear()
        self.joined = self.loops is None and plant.is_one_function
        if self.joined:
            self.functions["accelerations"] = plant.accelerations(self.free_roots)
        elif self.loops is None:
            self.kernels["dynamics"], self.inputs, self.outputs = plant.dynamics()
        if not self.joined and (plant.controller is not None or plant.elements is not None):
            symbols = plant.symbols()
            total, rate = plant.all_efforts(*symbols.values())
            given = [x for x in symbols.values() if x.numel()]
            found = [ca.densify(ca.cse(total)), *([ca.densify(rate)] if plant.states else [])]
            self.functions["controller"] = ca.Function("controller", given, found)
        self.effort = "effort"
        sampling = plant.sampling
        if sampling is not None:
            self.kernels |= sampling.sources
            self.temporaries |= sampling.temporaries
            if sampling.acting:
                self.effort = "total_effort"
                self.temporaries[self.effort] = model.nv
                self.functions["total"] = sampling.total()
                held = Offset("state", layout["remembered"].start)
                self.body.append(Call("total", ("effort", held), (self.effort,)))
        if plant.motion is not None and self.loops is None:
            free = 1.0 - np.array(plant.prescribed, dtype=float)
            self.functions["free"] = ca.Function("free", [], [ca.SX(free)])
            self.temporaries |= {"free": model.nv, "all_effort": model.nv}
            self.body.append(Call("free", (), ("free",)))

    @property
    def sources(self) -> dict[str, KernelSource]:
        return self.kernels | {name: FunctionSource(f) for name, f in self.functions.items()}

    def at(self, t: ca.SX, q: ca.SX, v: ca.SX) -> StatePoint:
        plant, model = self.plant, self.plant.model
        k = sum(key.startswith("a_") for key in self.known)
        t_k, q_k, v_k, a_k = (f"{key}_{k}" for key in "tqva")
        v, x = v[: model.nv], v[model.nv :]
        values = {t_k: t, q_k: q, v_k: v}
        if plant.motion is not None:
            q_p, v_p, a_p = plant.motion(t)
            values[q_k] = override(plant, q, q_p, of_q=True)
            values[v_k] = override(plant, v, v_p, of_q=False)
            values[f"given_{k}"] = a_p
        states = (f"x_{k}",) if plant.states else ()
        rates = dict.fromkeys((f"rate_{k}",) if plant.states else (), plant.states)
        values |= dict.fromkeys(states, x)
        parameters = "parameters"
        if plant.flows:
            parameters = f"parameters_{k}"
            values[parameters] = plant.at_present(self.known["parameters"], x)
        speeds = v_k
        apart = bool(self.free_roots.roots) and not self.joined
        if apart:
            speeds = f"u_{k}"
            values[speeds], values[f"away_{k}"] = self.free_roots.symbolic_apart(values[v_k])
        self.segment(f"stage{k}", values)
        effort = self.effort
        given = (effort, t_k, q_k, v_k, *states, *((parameters,) if model.parameters else ()))
        if self.joined:
            wrench = ("wrench",) if plant.wrenches else ()
            self.body.append(Call("accelerations", (*given, *wrench), (a_k, *rates)))
        elif "controller" in self.functions:
            effort = f"tau_{k}"
            self.temporaries[effort] = model.nv
            self.body.append(Call("controller", given, (effort, *rates)))
        if self.loops is not None:
            self.body += self.loops.accelerations(t_k, q_k, speeds, effort, a_k, f"given_{k}")
        elif not self.joined:
            buffers = {
                "q": q_k,
                "v": speeds,
                "tau": effort,
                "a_given": f"given_{k}",
                "parameters": parameters,
            }
            inputs = [buffers.get(key, key) for key in self.inputs]
            self.body.append(Call("dynamics", inputs, [a_k, *self.outputs[1:]]))
        self.add_buffers(**{a_k: model.nv}, **rates)
        t, q, v, a = (self.known[name] for name in (t_k, q_k, v_k, a_k))
        if apart:
            a = a - self.known[f"away_{k}"]
        moving = ca.vertcat(v, *(self.known[x] for x in states))
        return StatePoint(t, q, moving, ca.vertcat(a, *(self.known[rate] for rate in rates)))

    def chart_rates(self) -> None:
        """The rates at the time `start` where q = integrate(base, e), into `rate`; and, into `q_at`, `v_at` and `total`, the
        state with its prescribed part and all efforts but those of the drives of prescribed motion."""
        layout, plant, state = self.layout, self.plant, self.known["state"]
        e, moving = state[layout["e"]], layout.moving(state)
        space, nv = plant.model.space, plant.model.nv
        at = self.at(self.known["start"], space.integrate(state[layout["q"]], e), moving)
        total = "tau_0" if "controller" in self.functions else self.effort
        efforts = [total] if plant.reading is None else [total, "load"]
        self.known |= {name: ca.SX.sym(name, nv) for name in efforts}
        rate = ca.vertcat(space.chart_rate(e, moving[:nv]), at.a)
        acting = sum((self.known[name] for name in efforts[1:]), self.known[efforts[0]])
        self.segment("rates", {"rate": rate, "q_at": at.q, "v_at": at.v[:nv], "total": acting})

    def settled(self) -> None:
        """The state (q, v) with its prescribed part at the time `start`, and loops closed around it, into `back`."""
        plant, state, layout = self.plant, self.known["state"], self.layout
        q, v = state[layout["q"]], state[layout["v"]]
        assert self.loops is not None
        if plant.motion is not None:
            q_p, v_p, _ = plant.motion(self.known["start"])
            q, v = override(plant, q, q_p, of_q=True), override(plant, v, v_p, of_q=False)
        self.segment("moved", {"q_end": q, "v_end": v})
        self.body += self.loops.projection("q_end", "v_end")

    def run(self, scheme: Scheme, *, starting: bool) -> None:
        layout, plant = self.layout, self.plant
        state, h = self.known["state"], self.known["step"]
        past = layout.points(state, scheme.past)
        t = self.known["start"] + state[0] * h
        now = Now(t, state[layout["q"]], layout.moving(state), past)
        step = schemes.START if starting else scheme.step
        q, v, first = step(now, h, self.at, SchemeManifold(plant.model, symbolic=True))
        v, x = v[: plant.model.nv], v[plant.model.nv :]
        if plant.motion is not None:
            q_p, v_p, _ = plant.motion(self.known["start"] + (state[0] + 1) * h)
            q, v = override(plant, q, q_p, of_q=True), override(plant, v, v_p, of_q=False)
        known = state[1] + 1 if starting else state[1]
        parts = layout.past((first, *past)[: scheme.past])
        if plant.states:
            parts["x"] = x
        if self.loops is not None:
            nq = plant.model.nq
            self.segment("moved", {"q_end": q, "v_end": v})
            self.body += self.loops.projection("q_end", "v_end")
            back = self.known["back"] = ca.SX.sym("back", self.temporaries["back"])
            done = ca.vertcat(back[2:])
            done = ca.if_else(back[0], done, ca.SX.nan(done.numel()))
            q, v = done[:nq], done[nq:]
            parts["chosen"] = state[layout["chosen"]]
        if plant.sampling is not None:
            parts["remembered"] = state[layout["remembered"]]
        self.segment("finish", {"next": layout.symbolic(state[0] + 1, known, q=q, v=v, **parts)})
        del self.temporaries["next"]
        if plant.sampling is not None:
            places = (layout[name].start for name in ("q", "v", "remembered"))
            if plant.flows:
                self.segment("mass", {"parameters_end": plant.at_present(self.known["parameters"], x)})
            self.body += plant.sampling.steps(
                "next", *places, parameters="parameters_end" if plant.flows else "parameters"
            )
            for k, place, message in plant.burnt:
                full, gone = ca.SX.sym("parameters", len(plant.model.parameters)), ca.SX.sym("burnt")
                self.functions[f"left{k}"] = ca.Function("left", [full, gone], [full[place] - gone])
                told = plant.sampling.at(f"reading:{message}", "next", layout["remembered"].start)
                self.body.append(
                    Call(f"left{k}", ("parameters", told), (Offset("next", layout["x"].start + k),))
                )


def _depends(expression: ca.SX, x: ca.SX) -> bool:
    return bool(expression.numel()) and bool(ca.depends_on(expression, x))


def arguments(plant: StepModel, size: int) -> list[Argument]:
    """What a stepping kernel takes."""
    numbers = [Argument(name, (1,)) for name in ("start", "step")]
    last = [Argument(name, (1,)) for name in ("every", "count")]
    return [Argument("state", (size,)), *numbers, *plant.arguments, *last]


def scheme_layout(plant: StepModel, scheme: Scheme, *, closed: bool = True) -> Layout:
    """With `closed`, the compiled steps keep the loops of the model closed."""
    rows = {**(plant.rows if closed else {}), **plant.remembered}
    return Layout.with_past(plant.model.nq, plant.model.nv, plant.states, scheme.past, **rows)


def stepping_kernel(plant: StepModel, scheme: Scheme, *, starting: bool = False) -> Kernel:
    """`state, start, step, effort, [wrench], [parameters], every, count` -> records (RECORDS, size).

    With `starting` it steps by the Runge-Kutta scheme and collects the past points that the scheme needs.
    """
    layout = scheme_layout(plant, scheme)
    given = arguments(plant, layout.size)

    def build() -> KernelSource:
        tracer = Tracer(plant, layout)
        tracer.run(scheme, starting=starting)
        return recorded(tracer.sources, {a.name: a.size for a in given}, tracer.temporaries, tracer.body)

    kind = "start" if starting else "step"
    return kept_steps(plant, f"{scheme.name}:{kind}", given, layout.size, build)


def kept_steps(
    plant: StepModel, kind: str, given: list[Argument], size: int, build: Callable[[], KernelSource]
) -> Kernel:
    """A stepping kernel, kept with the model or its form."""
    key = f"simulate:{plant.key}:{kind}"
    results = [Argument("records", (RECORDS, size))]
    return plant.shared.compute.kept(key, lambda: Kernel("simulate", given, results, key=key, build=build))

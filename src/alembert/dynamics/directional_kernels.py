"""Products with Jacobians, and second derivatives, of every algorithm: their functions and kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np

from alembert.dynamics import kernels
from alembert.dynamics.frames import check_about, check_reference
from alembert.dynamics.graphs import GRAPHS, TAKES_WRENCHES, Options
from alembert.dynamics.programs import NEED_TREE, PROGRAMS
from alembert.engine.kernel import Argument, Kernel
from alembert.engine.pipeline import PipelineSource, Stage
from alembert.engine.rolled import RolledSource
from alembert.engine.source import FunctionSource, Source
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.printing import unknown
from alembert.sensitivity import directional, traces
from alembert.sweeps import INVERSE_DYNAMICS, Program

if TYPE_CHECKING:
    from alembert.model import Model

Mode = Literal["jvp", "vjp", "hessian"]
MOST_NODES = 24
"""of which the products are unrolled; that takes some 70 ms of compiling for each, loops less than 1 s for any number"""
_NOT = {"admittance", "hybrid_dynamics_derivatives", "forward_dynamics_derivatives"}
KNOWN = tuple(dict.fromkeys((*PROGRAMS, *(name for name in GRAPHS if name not in _NOT))))
"""algorithms that can be differentiated"""


@dataclass(frozen=True)
class Algorithm:
    """One algorithm to differentiate: a function with its arguments (those named q are configurations)."""

    name: str
    options: Options | None
    inputs: tuple[Argument, ...]
    results: tuple[Argument, ...]

    @property
    def turned(self) -> list[bool]:
        return [a.name in ("q", "q0", "q1") for a in self.inputs]

    @property
    def with_parameters(self) -> bool:
        return bool(self.inputs) and self.inputs[-1].name == "parameters"


def options(
    model: Model,
    mode: str,
    name: str,
    *,
    wrenches: Sequence[str],
    frame: str | None,
    reference: Any,
    about: str | None,
) -> Options | None:
    """None for the plain algorithm; refuses what does not go together."""
    if name not in KNOWN:
        raise ArgumentError(unknown(f"{mode}: no algorithm", name, KNOWN))
    if (frame is not None) != name.startswith("frame_"):
        raise ArgumentError(
            f"{mode}: {name} needs frame=, the name of a frame"
            if frame is None
            else f"{mode}: {name} takes no frame"
        )
    if reference is not None and frame is None:
        raise ArgumentError(f"{mode}: {name} takes no reference")
    if about is not None and not name.startswith("momentum"):
        raise ArgumentError(f"{mode}: {name} takes no about")
    if wrenches and name not in TAKES_WRENCHES:
        raise ArgumentError(f"{mode}: {name} takes no wrenches")
    if not (wrenches or frame is not None or about is not None or name not in PROGRAMS):
        return None
    found = Options(wrenches=tuple(wrenches))
    if frame is not None:
        model._carrier(frame)
        found = replace(found, frame=frame)
    if reference is not None:
        check_reference(mode, reference)
        found = replace(found, reference=reference)
    if about is not None:
        check_about(mode, about)
        found = replace(found, about=about)
    return found


def algorithm(model: Model, mode: str, name: str, options: Options | None) -> tuple[Algorithm, ca.Function]:
    """Unrolled."""
    if options is None:
        found = plain(model, name)
        program, names = PROGRAMS[name]
        return found, model.symbolic.function(program, names)
    graph = model.symbolic.graph(name, options)
    return Algorithm(name, options, graph.inputs, graph.results), graph.function


def plain(model: Model, name: str, *, on_nodes: bool = False) -> Algorithm:
    """`on_nodes`: with the wrenches on all nodes as a further input."""
    program, names = _given(name, on_nodes)
    inputs = kernels.arguments(model, model._tree, program, names)
    return Algorithm(name, None, tuple(inputs), tuple(kernels.results(model, model._tree, program)))


def _given(name: str, on_nodes: bool) -> tuple[Program, tuple[str, ...]]:
    program, names = PROGRAMS[name]
    return program, (*names, "wrench") if on_nodes else names


def kernel(model: Model, mode: Mode, name: str, options: Options | None, *, on_nodes: bool = False) -> Kernel:
    if model.is_constrained and name in NEED_TREE:
        raise UnsupportedError(
            f"{mode}: {name} of a model with loops, couplings or equations: its methods jvp, vjp and hessian take "
            "forward_dynamics, inverse_dynamics and hybrid_dynamics through them"
        )
    found = (
        plain(model, name, on_nodes=on_nodes) if options is None else algorithm(model, mode, name, options)[0]
    )
    inputs, outputs = arguments(model, mode, found)

    rolled = options is None and is_rolled(model, mode, name)

    def build() -> Source:
        if not rolled or mode == "hessian":
            return FunctionSource(function(model, mode, name, options))
        if mode == "vjp" and name == "forward_dynamics":
            return _forward_vjp_source(model, on_nodes)
        program, names = _given(name, on_nodes)
        return RolledSource(program, model._tree, names, mode)

    places = [model._carrier(x) for x in (*options.wrenches, options.frame)] if options else []
    how = "rolled" if rolled else "unrolled"
    key = f"{model.fingerprint}:{mode}:{name}:{on_nodes}:{options!r}:{places!r}:{how}"
    return Kernel(f"{mode}({name})", inputs, outputs, key=key, build=build)


def constrained_kernel(model: Model, mode: Mode, called: str, name: str, options: Options) -> Kernel:
    """Of the graph of an algorithm of models with loops, `called` something, by a given minimal set of constraint rows."""
    inputs, outputs = arguments(model, mode, algorithm(model, mode, name, options)[0])
    places = [model._carrier(x) for x in options.wrenches]
    key = f"{model.fingerprint}:{mode}:{name}:{options!r}:{places!r}"
    return Kernel(
        f"{mode}({called})",
        inputs,
        outputs,
        key=key,
        build=lambda: FunctionSource(function(model, mode, name, options)),
    )


def is_rolled(model: Model, mode: Mode, name: str) -> bool:
    """Whether to differentiate the loops over the bodies rather than code for each of them."""
    tree = model._tree
    program, _ = PROGRAMS[name]
    if len(tree) <= MOST_NODES or mode == "hessian":
        return False
    return mode == "jvp" or traces.has_adjoint(program)


def _forward_vjp_source(model: Model, on_nodes: bool) -> Source:
    """The gradient of weight . a, with mu = M^-1 weight, is mu and minus the gradient of mu . (inverse dynamics at a).

    Less work than the adjoint of the articulated sweep, whose inward half it saves.
    """
    tree, n = model._tree, model.nv
    forward = kernels.program_source(tree, *_given("forward_dynamics", on_nodes), "auto")
    solve = kernels.program_source(tree, *PROGRAMS["solve_mass_matrix"], "rolled")
    inverse = RolledSource(INVERSE_DYNAMICS, tree, _given("inverse_dynamics", on_nodes)[1], "vjp")
    more = {"wrench": 6 * len(tree)} if on_nodes else {}
    tail = {"parameters": len(model.parameters)} if model.parameters else {}
    results = {"dq": n, "dv": n} | {f"d{name}": size for name, size in (more | tail).items()}
    g = [ca.SX.sym("g", size) for size in results.values()]
    minus = FunctionSource(ca.Function("minus", g, [-x for x in g]))
    opposite = {f"g_{name}": size for name, size in results.items()}
    stages = [
        Stage(forward, ["q", "v", "tau", *more, *tail], ["a"]),
        Stage(solve, ["q", "weight", *tail], ["dtau"]),
        Stage(
            inverse,
            ["q", "v", "a", *more, *tail, "dtau"],
            ["g_dq", "g_dv", "g_da", *(f"g_d{name}" for name in (more | tail))],
        ),
        Stage(minus, list(opposite), list(results)),
    ]
    ordered = {"dq": n, "dv": n, "dtau": n, **{f"d{name}": size for name, size in (more | tail).items()}}
    return PipelineSource(
        {"q": model.nq, "v": n, "tau": n, **more, **tail, "weight": n},
        ordered,
        {"a": n, "g_da": n, **opposite},
        stages,
    )


def arguments(model: Model, mode: Mode, found: Algorithm) -> tuple[list[Argument], list[Argument]]:
    """What goes into the function of a derivative and what comes out."""
    tangents = [
        Argument(f"d{a.name}", (model.nv,) if is_q else a.shape)
        for a, is_q in zip(found.inputs, found.turned, strict=True)
    ]
    if mode == "jvp":
        changes = [Argument(f"d{r.name}", r.shape) for r in found.results]
        return [*found.inputs, *tangents], [*found.results, *changes]
    weights = [Argument(f"weight of {r.name}", r.shape) for r in found.results]
    if mode == "vjp":
        return [*found.inputs, *weights], tangents
    size = sum(a.size for a in (tangents[:-1] if found.with_parameters else tangents))
    return [*found.inputs, *weights], [Argument("hessian", (size, size))]


def function(model: Model, mode: Mode, name: str, options: Options | None) -> ca.Function:
    found, f = algorithm(model, mode, name, options)
    inputs, _ = arguments(model, mode, found)
    symbols = [ca.SX.sym("x", *a.shape) for a in inputs]
    values, more = symbols[: len(found.inputs)], symbols[len(found.inputs) :]
    tree = model._tree
    if mode == "jvp":
        value, change = directional.jvp(f, tree, found.turned, values, more)
        made = [*_split(value, found.results), *_split(change, found.results)]
    elif mode == "vjp":
        made = directional.vjp(f, tree, found.turned, values, directional.stacked(more))
    else:
        weight, held = directional.stacked(more), int(found.with_parameters)
        made = [directional.hessian(f, tree, found.turned, values, weight, held)]
    return ca.Function(f"{mode}_{name}", symbols, [ca.densify(x) for x in made])


def weights(function: str, found: Sequence[Argument], weight: Any, name: str) -> tuple[Any, ...]:
    """One weight for each result of an algorithm."""
    if len(found) == 1:
        if found[0].shape == (1,) and isinstance(weight, int | float | np.generic | np.ndarray):
            x = np.asarray(weight)
            return (
                x if x.shape[-1:] == (1,) else x[..., None],
            )  # energies are numbers, without the dimension
        return (weight,)
    if not isinstance(weight, tuple) or len(weight) != len(found):
        names = ", ".join(result.name for result in found)
        raise ArgumentError(
            f"{function}: {name} has {len(found)} results ({names}); give a tuple of {len(found)} weights"
        )
    return weight


def gathered(mode: str, frames: Sequence[str], along: Mapping[str, Any] | None) -> list[Any]:
    """The directions of wrenches, zero for those not named."""
    given = dict(along or {})
    for frame in given:
        if frame not in frames:
            raise ArgumentError(unknown(f"{mode}: along_wrenches: no wrench acts on", frame, frames))
    return [given.get(frame, [0.0] * 6) for frame in frames]


def _split(column: ca.SX, results: Sequence[Argument]) -> list[ca.SX]:
    """The results out of one column, by columns each."""
    found, start = [], 0
    for result in results:
        part = column[start : start + result.size]
        start += result.size
        found.append(ca.reshape(part, *result.shape) if len(result.shape) == 2 else part)
    return found

"""Products with Jacobians, and second derivatives, of every algorithm: their functions and kernels.

Hessians of large models come from products along all directions. With g the gradient of weight . result, its changes along
each direction in turn, which the tangent of the adjoint gives (`alembert.algorithms.compositions`), are the rows of D in

    H = (D + D^T) / 2,    D_ij = d/ds g_j(x + s e_i)                                                  (1)

For configurations x + s e_i is integrate(q, s e_i). D is not symmetric where turns about different axes do not commute; the
second derivative of f(integrate(q, e)) with respect to e is its symmetric part, since t -> integrate(q, t e) has the
constant velocity e.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np

from alembert.algorithms import compositions, kernels
from alembert.algorithms.algorithm import Options, graph_inputs, graph_results
from alembert.algorithms.compositions import Composition
from alembert.algorithms.frames import check_about, check_reference
from alembert.algorithms.table import TABLE, find
from alembert.arguments import check_known
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, UnsupportedError
from alembert.sensitivity import adjoint_traces, products

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray


class RolledHessian:
    """(1): called like the kernel `front` of the unrolled Hessian, which is never compiled."""

    def __init__(self, front: Kernel, inner: Kernel, changes: Sequence[int]) -> None:
        self.arguments, self.results, self.name = front.arguments, front.results, front.name
        self._front, self._inner, self._changes = front, inner, changes

    def checked(self, *given: Any) -> tuple[Array, None]:
        """As of kernels: whether the results are finite is not found out on the way."""
        return self(*given), None

    def __call__(self, *given: Any) -> Array:
        arrays = self._front.read(given)
        self._front.batch_of(arrays)
        count = sum(self._changes)
        own = [np.expand_dims(x, x.ndim - len(a.shape)) for x, a in zip(arrays, self.arguments, strict=True)]
        directions = np.split(np.eye(count), np.cumsum(self._changes)[:-1], axis=1)
        rest = self._inner.arguments[len(own) + len(directions) :]
        moved = [
            d.reshape(count, *a.shape)
            for d, a in zip(directions, self._inner.arguments[len(own) :], strict=False)
        ]
        found = self._inner(*own, *moved, *(np.zeros(a.shape) for a in rest))
        parts = found if isinstance(found, tuple) else (found,)
        D = np.concatenate(
            [
                x.reshape(*x.shape[: x.ndim - len(r.shape)], r.size)
                for x, r in zip(parts, self._inner.results, strict=True)
            ],
            axis=-1,
        )
        return (D + np.swapaxes(D, -1, -2)) / 2


Mode = Literal["jvp", "vjp", "hessian"]
MOST_NODES = 24
"""of which the products are unrolled; that takes some 70 ms of compiling for each, loops less than 1 s for any number"""
MOST_NODES_TWICE = 8
"""of which second derivatives are unrolled"""


@dataclass(frozen=True)
class Differentiable:
    """An algorithm to differentiate: a function with its arguments (those named q are configurations)."""

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
    algorithm = find(mode, name, "has_derivatives")
    if (frame is not None) != algorithm.on_frame:
        raise ArgumentError(
            f"{mode}: {name} needs frame=, the name of a frame"
            if frame is None
            else f"{mode}: {name} takes no frame"
        )
    if reference is not None and frame is None:
        raise ArgumentError(f"{mode}: {name} takes no reference")
    if about is not None and "about" not in algorithm.options:
        raise ArgumentError(f"{mode}: {name} takes no about")
    if wrenches and not algorithm.takes_wrenches:
        raise ArgumentError(f"{mode}: {name} takes no wrenches")
    if not (wrenches or frame is not None or about is not None or algorithm.program is None):
        return None
    found = Options(wrenches=tuple(wrenches))
    if frame is not None:
        model.compute.carrier(frame)
        found = replace(found, frame=frame)
    if reference is not None:
        check_reference(mode, reference)
        found = replace(found, reference=reference)
    if about is not None:
        check_about(mode, about)
        found = replace(found, about=about)
    return found


def algorithm(model: Model, name: str, options: Options | None) -> tuple[Differentiable, ca.Function]:
    """Unrolled."""
    if options is None:
        found = plain(model, name)
        program, names = TABLE[name].sweeps
        return found, model.compute.symbolic.function(program, names)
    graph = model.compute.symbolic.graph(name, options)
    return Differentiable(name, options, graph.inputs, graph.results), graph.function


def plain(model: Model, name: str) -> Differentiable:
    program, names = TABLE[name].sweeps
    inputs = kernels.arguments(model, model.compute.tree, program, names)
    return Differentiable(
        name, None, tuple(inputs), tuple(kernels.results(model, model.compute.tree, program))
    )


def kernel(model: Model, mode: Mode, name: str, options: Options | None) -> Kernel:
    _check_tree(model, mode, name)
    c = composed(model, mode, name, options)
    found = _algorithm(model, name, options, c)
    inputs, outputs = arguments(model, mode, found)

    def build() -> KernelSource:
        if c is None or mode == "hessian":
            closed = _closed(model, mode, name) if options is None else None
            return closed or FunctionSource(function(model, mode, name, options))
        return (compositions.tangent(c) if mode == "jvp" else compositions.adjoint(c)).source()

    key = _key(model, mode, name, options, "unrolled" if c is None or mode == "hessian" else "rolled")
    return Kernel(f"{mode}({name})", inputs, outputs, key=key, build=build)


def _closed(model: Model, mode: Mode, name: str) -> KernelSource | None:
    """The code of a product in closed form, with a part for each body; None where there is no such form."""
    tree = model.compute.tree
    if mode == "hessian" or TABLE[name].program is None or not len(tree) or tree.has_modes:
        return None
    program, names = TABLE[name].sweeps
    if mode == "jvp":
        found = products.tangent(program, names, parameters=bool(model.parameters))
    else:
        found = products.adjoint(program, names, parameters=bool(model.parameters))
    return kernels.program_source(model.compute.tree, *found, "specialised") if found else None


def hessian_kernel(model: Model, name: str, options: Options | None) -> Any:
    """Called like the kernel of the unrolled Hessian; of large models, made of products along all directions."""
    c = composed(model, "hessian", name, options)
    if c is None:
        return kernel(model, "hessian", name, options)
    _check_tree(model, "hessian", name)
    found = _algorithm(model, name, options, c)
    inputs, outputs = arguments(model, "hessian", found)
    front = Kernel(f"hessian({name})", inputs, outputs, key="", build=c.source)
    held = ["parameters"] if found.with_parameters else []
    whole = compositions.tangent(compositions.adjoint(c, held))
    count = len(found.inputs) - len(held)
    changes = replace(whole, results=whole.results[count:])
    moved = [
        Argument(f"d{a.name}", (model.nv,) if is_q else a.shape)
        for a, is_q in zip(found.inputs, found.turned, strict=True)
    ]
    weights = [replace(a, name=f"d{a.name}") for a in inputs[len(found.inputs) :]]
    results = [replace(a, name=f"change {k}") for k, a in enumerate(moved[:count])]
    key = _key(model, "hessian", name, options, "rolled")
    inner = Kernel(f"hessian({name})", [*inputs, *moved, *weights], results, key=key, build=changes.source)
    return RolledHessian(front, inner, [a.size for a in moved[:count]])


def composed(model: Model, mode: Mode, name: str, options: Options | None) -> Composition | None:
    """What an algorithm is composed of, where its derivatives are loops over the bodies; None where they are unrolled."""
    if len(model.compute.tree) <= (MOST_NODES_TWICE if mode == "hessian" else MOST_NODES):
        return None
    if options is not None:
        return compositions.of_graph(model, TABLE[name], options)
    program = TABLE[name].sweeps[0]
    if mode != "jvp" and (
        not adjoint_traces.has_adjoint(program) or (program.pairs and model.compute.tree.has_modes)
    ):
        return None
    return compositions.of_program(model, TABLE[name])


def _algorithm(model: Model, name: str, options: Options | None, c: Composition | None) -> Differentiable:
    """Without making the graph of a large model."""
    if options is None:
        return plain(model, name)
    if c is None:
        return algorithm(model, name, options)[0]
    inputs, _ = graph_inputs(model, TABLE[name], options)
    return Differentiable(name, options, tuple(inputs), graph_results(TABLE[name], c.shapes))


def _key(model: Model, mode: Mode, name: str, options: Options | None, how: str) -> str:
    places = [model.compute.carrier(x) for x in (*options.wrenches, options.frame)] if options else []
    return f"{model.fingerprint}:{mode}:{name}:{options!r}:{places!r}:{how}"


def _check_tree(model: Model, mode: Mode, name: str) -> None:
    if model.is_constrained and TABLE[name].needs_tree:
        raise UnsupportedError(
            f"{mode}: {name} of a model with loops, couplings or equations: its methods jvp, vjp and hessian take "
            "forward_dynamics, inverse_dynamics and hybrid_dynamics through them"
        )


def arguments(model: Model, mode: Mode, found: Differentiable) -> tuple[list[Argument], list[Argument]]:
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
    found, f = algorithm(model, name, options)
    inputs, _ = arguments(model, mode, found)
    symbols = [ca.SX.sym("x", *a.shape) for a in inputs]
    values, more = symbols[: len(found.inputs)], symbols[len(found.inputs) :]
    tree = model.compute.tree
    if mode == "jvp":
        value, change = products.jvp(f, tree, found.turned, values, more)
        made = [*_split(value, found.results), *_split(change, found.results)]
    elif mode == "vjp":
        made = products.vjp(f, tree, found.turned, values, products.stacked(more))
    else:
        weight, held = products.stacked(more), int(found.with_parameters)
        made = [products.hessian(f, tree, found.turned, values, weight, held)]
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


def check_choice(dfree: Any) -> None:
    """Refuse a direction of `free` of hybrid dynamics."""
    if np.any(dfree):
        raise ArgumentError("jvp: dfree is not zero: which speeds are free is a choice that does not vary")


def gathered(frames: Sequence[str], along: Mapping[str, Any] | None) -> list[Any]:
    """The directions of wrenches, zero for those not named."""
    given = dict(along or {})
    for frame in given:
        check_known("jvp: along_wrenches: no wrench acts on", frame, frames)
    return [given.get(frame, [0.0] * 6) for frame in frames]


def _split(column: ca.SX, results: Sequence[Argument]) -> list[ca.SX]:
    """The results out of one column, by columns each."""
    found, start = [], 0
    for result in results:
        part = column[start : start + result.size]
        start += result.size
        found.append(ca.reshape(part, *result.shape) if len(result.shape) == 2 else part)
    return found

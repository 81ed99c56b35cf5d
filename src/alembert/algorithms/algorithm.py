"""An algorithm: one record of what it takes and gives, and its graph on `SX` for expressions and for C source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca

from alembert import sweeps
from alembert.algorithms import kernels
from alembert.algorithms.frames import Reference
from alembert.engine.kernel import Argument, Kernel
from alembert.sensitivity.mass_factor import Pattern
from alembert.spatial import Motion, Pose
from alembert.sweeps import Program, Tree, expressions
from alembert.sweeps.node import Record
from alembert.sweeps.program import outward, unroll

if TYPE_CHECKING:
    from alembert.model import Model


Results = dict[str, ca.SX]
Build = Callable[["Model", bool, kernels.Lowering], Kernel]
"""of the kernel of a model's algorithm, with or without wrenches on the nodes"""


@dataclass(frozen=True)
class Options:
    """What makes another graph of the same algorithm, rather than being an input of it."""

    frame: str = "world"
    reference: Reference = "local"
    point: bool = False
    """whether a point on the frame is an input"""
    about: str = "center_of_mass"
    wrenches: tuple[str, ...] = ()
    """the frames on which wrenches act, an input each"""
    free: tuple[bool, ...] | None = None
    """which speeds are free in hybrid dynamics; None makes it an input"""
    frames: tuple[tuple[int, Any], ...] = ()
    """nodes and placements, for the admittance"""
    chosen: tuple[int, ...] = ()
    """rows of constraints in the minimal set"""
    active: tuple[int, ...] = ()
    """rows of the constraints that hold"""
    independent: tuple[int, ...] = ()
    """speeds that determine the others"""
    drives: tuple[tuple[int, ...], tuple[float, ...]] = ((), ())
    """speeds that are driven in inverse dynamics, and their weights"""
    guarded: bool = False
    """NaN where the minimal set does not serve"""


@dataclass(frozen=True)
class GraphInputs:
    """What the graph of an algorithm is made from."""

    tree: Tree
    options: Options
    given: Mapping[str, ca.SX]
    wrenches: Mapping[str, ca.SX]
    p: ca.SX

    def run(self, program: Program, **more: ca.SX) -> dict[str, ca.SX]:
        """The results of a program, for the inputs of the algorithm or others."""
        given = {**self.given, **more}
        if self.wrenches and "wrench" in program.given:
            given["wrench"] = self.wrench_rows
        if not len(self.tree) and program.total:
            return kernels.totals_of_nothing(program)
        return expressions(program, self.tree, given, self.p)

    @cached_property
    def parameters(self) -> dict[str, ca.SX]:
        return {name: self.p[k] for k, (name, _) in enumerate(self.tree.model.parameters)}

    @cached_property
    def wrench_rows(self) -> ca.SX:
        """(n, 6): what acts on the nodes, in their axes."""
        rows = ca.SX(len(self.tree), 6)
        for frame, F in self.wrenches.items():
            node, X = self.locate(frame)
            rows[node, :] += kernels.carried(X, F).T
        return rows

    def locate(self, frame: str) -> tuple[int, Pose]:
        node, placement = self.tree.model.compute.carrier(frame)
        return node, placement.symbolic_pose(self.parameters)

    def inverse(self, M: ca.SX) -> ca.SX:
        """Of the mass matrix."""
        pattern = Pattern(self.tree)
        return solved(pattern, pattern.factor(M), ca.SX.eye(self.tree.model.nv))

    @cached_property
    def moved(self) -> tuple[list[Record], Record]:
        """Records with poses, and with velocities and accelerations as far as speeds and accelerations are given."""
        steps = [sweep for name, sweep in _MOTIONS if name in self.given]
        program = Program(
            "motion", {name: _EXTENTS[name] for name, _ in _MOTIONS}, tuple(steps), gravity=False
        )
        return unroll(program, self.tree, self.given, self.p)

    @cached_property
    def at(self) -> tuple[Record, Pose, int]:
        """The record of the body that carries the frame, the frame's pose on it, and the index of its node."""
        node, X_BC = self.locate(self.options.frame)
        if self.options.point:
            X_BC = X_BC @ Pose(ca.SX.eye(3), self.given["point"])
        records, base = self.moved
        return (records[node] if node >= 0 else base), X_BC, node

    def refer(self, X_WC: Pose, V: Motion) -> Motion:
        """(1)"""
        if self.options.reference == "local":
            return V
        if self.options.reference == "world":
            return X_WC.motion(V)
        return Motion(X_WC.rotation @ V.angular, X_WC.rotation @ V.linear)


_EXTENTS: dict[str, Any] = {"q": "q", "v": "v", "a": "v"}
_MOTIONS = (
    ("q", outward(sweeps.dynamics.place)),
    ("q", outward(sweeps.dynamics.place_in_world)),
    ("q", outward(sweeps.dynamics.subspace_in_world)),
    ("v", outward(sweeps.dynamics.move)),
    ("a", outward(sweeps.dynamics.accelerate)),
)


def solved(pattern: Pattern, factor: ca.SX, columns: ca.SX) -> ca.SX:
    if not columns.shape[1]:
        return columns
    return ca.horzcat(*(pattern.solve(factor, columns[:, k]) for k in range(columns.shape[1])))


@dataclass(frozen=True)
class Algorithm:
    """What an algorithm takes and gives, what computes it, and what it refuses.

    Expressions, kernels, derivatives, C source, checks and tests are made from this record: a new algorithm is one entry of
    `alembert.algorithms.table`.
    """

    name: str
    inputs: tuple[str, ...]
    """as its callers know them: q, q0 and q1 are configurations, the others nv wide"""
    program: Program | None = None
    """the sweeps that compute it"""
    program_inputs: tuple[str, ...] = ()
    """what the program calls the inputs, where that is something else"""
    graph: Callable[[GraphInputs], Results] | None = None
    """makes its results on expressions, where those of the program are not what it gives"""
    symbols: tuple[str, ...] = ()
    """its inputs on expressions, where they are others"""
    kernel: Build | None = None
    """compiles it, where neither its program nor its graph is compiled as it stands"""
    takes_wrenches: bool = False
    takes_parameters: bool = True
    options: tuple[str, ...] = ()
    """what makes another algorithm of it: frame, reference, about"""
    gives_matrices: bool = False
    """whether its results are matrices, also where a model has one speed and they have one column"""
    gives_number: bool = False
    solves: bool = False
    """whether it solves for accelerations, which are infinite where a joint has lost a degree of freedom"""
    needs_tree: bool = False
    """whether loops, couplings and equations change it; the terms of the equation of motion are those of the tree"""
    held: str = ""
    """the algorithm that computes it on models with constraints"""
    instead: str = ""
    """what to use on models with constraints"""
    known_as: Mapping[str, str] = field(default_factory=dict)
    """how callers name inputs in messages, where they do not give them as such"""
    has_kernel: bool = True
    """whether `compile` gives it"""
    has_derivatives: bool = True
    has_source: bool = True
    """whether it can be written as C"""
    is_method: bool = True
    """whether models have a method of this name; others stand behind methods"""

    def __post_init__(self) -> None:
        if not self.program_inputs:
            object.__setattr__(self, "program_inputs", self.inputs)

    @property
    def sweeps(self) -> tuple[Program, tuple[str, ...]]:
        """The program and the names of its inputs."""
        assert self.program is not None, self.name
        return self.program, self.program_inputs

    @property
    def on_frame(self) -> bool:
        return "frame" in self.options

    def expressions(self, s: GraphInputs) -> Results:
        """The results on expressions."""
        if self.graph is not None:
            return self.graph(s)
        program, inside = self.sweeps
        names = zip(inside, self.inputs, strict=True)
        return s.run(program, **{name: s.given[label] for name, label in names if name != label})


@dataclass(frozen=True)
class Graph:
    """An algorithm with its inputs and the names of its results."""

    inputs: tuple[Argument, ...]
    function: ca.Function
    results: tuple[Argument, ...]


def graph(model: Model, algorithm: Algorithm, options: Options) -> Graph:
    """The graph of an algorithm; the parameters are its last input, where the model has any."""
    inputs, names = graph_inputs(model, algorithm, options)
    takes_parameters = bool(inputs) and inputs[-1].name == "parameters"
    symbols = [ca.SX.sym(f"x{k}", *a.shape) for k, a in enumerate(inputs)]
    p = ca.SX(0, 1)
    if takes_parameters:  # with which the tree has its nodes already
        symbols[-1] = p = model.compute.tree.parameter_symbols
    wrenches = symbols[len(names) : len(names) + len(options.wrenches)]
    found = algorithm.expressions(
        GraphInputs(
            model.compute.tree,
            options,
            dict(zip(names, symbols, strict=False)),
            dict(zip(options.wrenches, wrenches, strict=True)),
            p,
        )
    )
    outputs = [ca.densify(value) for value in found.values()]
    labels = [f"x{k}" for k in range(len(inputs))]
    function = ca.Function(algorithm.name, symbols, outputs, labels, list(found))
    shapes = {key: x.shape for key, x in found.items()}
    return Graph(tuple(inputs), function, graph_results(algorithm, shapes))


def graph_results(algorithm: Algorithm, shapes: Mapping[str, tuple[int, int]]) -> tuple[Argument, ...]:
    """The results of an algorithm: columns, but for those that are matrices."""
    of_matrices = algorithm.gives_matrices
    return tuple(Argument(key, x if of_matrices or x[1] > 1 else x[:1]) for key, x in shapes.items())


def graph_inputs(
    model: Model, algorithm: Algorithm, options: Options
) -> tuple[list[Argument], tuple[str, ...]]:
    """All inputs of an algorithm, and the names of those that are neither wrenches nor the parameters."""
    names = algorithm.symbols or algorithm.inputs
    if options.point:
        names = (*names, "point")
    if algorithm.name == "hybrid_dynamics" and options.free is None:
        names = (*names, "free")
    inputs = [_argument(model, key) for key in names]
    inputs += [Argument(f"wrench on {frame!r}", (6,), "moment, then force") for frame in options.wrenches]
    if model.parameters and algorithm.takes_parameters:
        known = ", ".join(key for key, _ in model.parameters)
        inputs.append(Argument("parameters", (len(model.parameters),), f"the model has {known}"))
    return inputs, names


def _argument(model: Model, name: str) -> Argument:
    if name == "point":
        return Argument(name, (3,))
    extent: Any = "q" if name in ("q", "q0", "q1") else "v"
    return Argument(name, (model.nq if extent == "q" else model.nv,), kernels.hint(model, extent))

"""The compiled constraint equations of a model, and the tree underneath them.

The tree (the *primary* system) is a model of its own without loops, couplings, frames and devices. Models that
differ only in these share it, and with it all compiled sweeps: a change of constraints compiles at most the constraint
equations, a change of the active ones nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from weakref import WeakValueDictionary

import casadi as ca
import numpy as np

from alembert.constraints import compiled
from alembert.constraints.equations import columns, equations
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.model import Model

_PRIMARIES: WeakValueDictionary[str, Model] = WeakValueDictionary()


def primary(model: Model) -> Model:
    """The model's tree alone, shared by all models that have the same."""
    bodies = tuple(dataclasses.replace(body, visuals=()) for body in model.bodies)
    bare = dataclasses.replace(
        model,
        name="tree",
        bodies=bodies,
        frames=(),
        loops=(),
        couplings=(),
        equations=(),
        actuators=(),
        sensors=(),
        visuals=(),
    )
    return _PRIMARIES.setdefault(bare.fingerprint, bare)


def tree_kernel(tree: Model, *, wrenches: bool) -> Kernel:
    """The factored mass matrix and what drives the tree; kept with it."""
    key = ("factored_tree", wrenches)
    if key not in tree.compute.kernels:
        tree.compute.kernels[key] = compiled.tree_kernel(tree, wrenches=wrenches)
    return tree.compute.kernels[key]


def jacobian_places(model: Model, slices: Sequence[slice]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries of G that the kernel gives: all that need not vanish."""
    rows, places = [], []
    for at, touched in zip(slices, columns(model.compute.tree), strict=True):
        own = np.arange(at.start, at.stop)
        rows.append(np.repeat(own, len(touched)))
        places.append(np.tile(touched, len(own)))
    return np.concatenate([np.arange(0), *rows]), np.concatenate([np.arange(0), *places])


def terms_kernel(model: Model, slices: Sequence[slice]) -> Kernel:
    """(q, v) -> phi, entries of G, gamma, T^T; see `equations` and `jacobian_places`."""
    rows, places = jacobian_places(model, slices)
    count = slices[-1].stop
    inputs = [Argument("q", (model.nq,)), Argument("v", (model.nv,))]
    if model.parameters:
        inputs.append(Argument("parameters", (len(model.parameters),)))
    results = [
        Argument("residual", (count,)),
        Argument("jacobian", (len(rows),)),
        Argument("bias", (count,)),
        Argument("basis", (count, 6)),
    ]

    def build() -> KernelSource:
        symbols = [ca.SX.sym(a.name, *a.shape) for a in inputs]
        values = symbols if model.parameters else [*symbols, ca.SX(0, 1)]
        found = equations(model.compute.tree, *values)
        entries = [found.jacobian[int(i), int(j)] for i, j in zip(rows, places, strict=True)]
        outputs = [found.residual, ca.vertcat(ca.SX(0, 1), *entries), found.bias, found.basis]
        return FunctionSource(ca.Function("constraint_terms", symbols, [ca.densify(x) for x in outputs]))

    return Kernel(
        "constraint_terms", inputs, results, key=f"{model.fingerprint}:constraint_terms", build=build
    )

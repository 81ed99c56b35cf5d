"""Tangent sweeps as loops: derivatives of a traced program along directions.

A trace (`alembert.sweeps.visits`) is a list of loops over the nodes, each with one function per kind of node, the visit.
Differentiating the visits differentiates the program, for any number of nodes: every visit also computes the change of its
results along the change of its inputs, and whatever a node keeps, passes on or adds is kept, passed and added together with
its change. For the adjoints see `alembert.sensitivity.adjoint_traces`.

Reference: `jvp` of `alembert.sensitivity.products`, on the unrolled program; held equal by
tests/sensitivity/test_rolled_products.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import UnsupportedError
from alembert.sweeps.kinds import Kind
from alembert.sweeps.program import Extent, Pairs, Program
from alembert.sweeps.visits import (
    ADDED,
    INNER,
    OWN,
    PAIRED,
    PAIRED_BARS,
    PASSED,
    READ,
    SHARED,
    PairsAdjoint,
    PairsTrace,
    Trace,
    Visit,
    elements,
)

Scalars = list[ca.SX]


@dataclass(frozen=True)
class DifferentiatedTrace:
    """What a rolled source is made of; `inputs` in the order of the kernel's arguments."""

    program: Program
    kinds: list[Kind]
    trace: Trace
    inputs: tuple[str, ...]


def weight_of(name: str) -> str:
    return f"weight of {name}"


def tangent(
    program: Program, kinds: Sequence[Kind], trace: Trace, given: Sequence[str], parameters: ca.SX
) -> DifferentiatedTrace:
    """Results and their changes, for the inputs and their directions (d + name).

    `given` are all inputs, also those that only the world's parts depend on: the parameters and weights of totals.
    """
    if trace.ends is not None:
        raise UnsupportedError(f"{program.name}: gradients with respect to parameters have no tangent sweep")
    extents: dict[str, Extent] = dict(program.given)
    for name in (name for name in given if name in program.given):
        extents[f"d{name}"] = "v" if program.given[name] == "q" else program.given[name]
    result: dict[str, Extent] = dict(program.result)
    result |= {f"d{name}": extent for name, extent in program.result.items()}
    total = (*program.total, *(f"d{name}" for name in program.total))
    pairs = program.pairs
    if pairs:
        pairs = Pairs((*pairs.names, *(f"d{name}" for name in pairs.names)), pairs.visit)
    tail = ("parameters",) if parameters.numel() else ()
    world_given = {**dict.fromkeys(tail, parameters), **trace.starts}
    changes = {f"d{name}": ca.SX.sym("d", x.numel()) for name, x in world_given.items()}
    at = [x for symbols in world_given.values() for x in elements(symbols)]
    along = [x for symbols in changes.values() for x in elements(symbols)]

    def moved(values: Scalars) -> Scalars:
        """Values that follow from the parameters, with their changes."""
        return _mixed(values, _slopes(values, at, along))

    joints = [kind.structure.joint for kind in kinds]
    visit = _Tangent(program)
    loops = [
        replace(
            loop,
            visits=[visit(x, joint) for x, joint in zip(loop.visits, joints, strict=True)],
            world=moved(loop.world),
            own_start=[2 * x for x in loop.own_start],
            shared_start=2 * loop.shared_start,
            paired_start=[2 * x for x in loop.paired_start],
            gathered=2 * loop.gathered,
        )
        for loop in trace.loops
    ]
    totals = {name: (i, _part(visit(x, None), name)) for name, (i, x) in trace.totals.items()}
    totals |= {f"d{name}": (i, _part(visit(x, None), f"d{name}")) for name, (i, x) in trace.totals.items()}
    paired = None
    if trace.pairs:
        paired = PairsTrace(
            [visit(x, joint) for x, joint in zip(trace.pairs.own, joints, strict=True)],
            trace.pairs.form,
            {key: visit(x, None) for key, x in trace.pairs.visits.items()},
            [2 * size for size in trace.pairs.sizes],
        )
    back = trace.back
    if back:
        back = PairsAdjoint(
            back.before,
            back.form,
            {key: visit(x, None) for key, x in back.visits.items()},
            [2 * size for size in back.sizes],
        )
    wider = [
        replace(
            kind,
            computed=np.repeat(kind.computed, 2),
            expressions=tuple(ca.vertcat(ca.SX(0, 1), *moved(elements(x))) for x in kind.expressions),
        )
        for kind in kinds
    ]
    inputs = (*given, *(f"d{name}" for name in given))
    return DifferentiatedTrace(
        replace(program, given=extents, result=result, total=total, pairs=pairs),
        wider,
        Trace(
            loops,
            [2 * x for x in trace.own_sizes],
            moved(trace.shared),
            totals,
            paired,
            {**trace.starts, **changes},
            back,
        ),
        inputs,
    )


class _Tangent:
    def __init__(self, program: Program) -> None:
        self._given = program.given

    def __call__(self, visit: Visit, joint: Any) -> Visit:
        inputs: dict[str, Scalars] = {}
        at: Scalars = []
        along: Scalars = []
        for label, symbols in visit.inputs.items():
            if label == READ:
                inputs[label] = symbols
                continue
            at += symbols
            if label in self._given or label[:-2] in self._given:  # a side of the block of a matrix
                inputs[label] = symbols
                if self._given.get(label) == "q":
                    change = ca.SX.sym("d", joint.nv)
                    along += elements(ca.densify(joint.rate(ca.vertcat(*symbols), change)))
                else:
                    change = ca.SX.sym("d", len(symbols))
                    along += elements(change)
                inputs[f"d{label}"] = elements(change)
            else:
                changes = elements(ca.SX.sym("d", len(symbols)))
                along += changes
                inputs[label] = _mixed(symbols, changes)
        outputs: dict[str, Scalars] = {}
        slopes = iter(_slopes([x for values in visit.outputs.values() for x in values], at, along))
        for label, values in visit.outputs.items():
            own = [next(slopes) for _ in values]
            if label in _KEPT:
                outputs[label] = _mixed(values, own)
            else:
                outputs[label], outputs[f"d{label}"] = values, own
        return Visit(inputs, outputs)


_KEPT = (OWN, SHARED, PASSED, ADDED, PAIRED, PAIRED_BARS, INNER + PAIRED_BARS)


def _part(visit: Visit, name: str) -> Visit:
    return Visit(visit.inputs, {name: visit.outputs[name]})


def _mixed(values: Sequence[ca.SX], changes: Sequence[ca.SX]) -> Scalars:
    """Each value followed by its change."""
    return [x for pair in zip(values, changes, strict=True) for x in pair]


def _slopes(values: Scalars, at: Scalars, along: Scalars) -> Scalars:
    """The change of values along a direction."""
    if not values or not at:
        return [ca.SX(0)] * len(values)
    return elements(ca.densify(ca.jtimes(ca.vertcat(*values), ca.vertcat(*at), ca.vertcat(*along))))

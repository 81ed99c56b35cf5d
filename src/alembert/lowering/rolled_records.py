"""The own records of a trace in pieces, so that memory whose content nobody reads any more is used again.

A scalar of a node's record lives from the loop that writes it to the last one that reads it. Scalars that a node writes
and reads for the last time in the same loops make a *piece*, an area of its own. On a chain the inward loop of
forward dynamics then puts what it keeps where the node before it has just read what the outward loop had left: the
records of a long chain take half the memory and stay in the cache for twice as many bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca

from alembert.sweeps.visits import OWN, Loop, Trace, Visit


@dataclass(frozen=True, order=True)
class Piece:
    """`last` is the number of loops for what is read after them."""

    written: int
    last: int

    @property
    def label(self) -> str:
        return f"{OWN} {self.written} {self.last}"


def in_pieces(trace: Trace) -> tuple[Trace, dict[Piece, list[int]]]:
    """The trace with an area for each piece instead of the own record, and the pieces' sizes in every kind."""
    lives = [_lives(trace, kind) for kind in range(len(trace.own_sizes))]
    pieces = sorted({piece for kind in lives for piece in kind})
    sizes = {piece: [kind.count(piece) for kind in lives] for piece in pieces}

    def divided(visit: Visit, kind: int, start: int) -> Visit:
        own = visit.inputs.get(OWN, [])
        inputs = {label: values for label, values in visit.inputs.items() if label != OWN}
        outputs = {label: values for label, values in visit.outputs.items() if label != OWN}
        inputs |= _by_piece(lives[kind][: len(own)], own)
        written = visit.outputs.get(OWN, [])
        outputs |= _by_piece(lives[kind][start : start + len(written)], written)
        used = _used(visit)
        inputs = {
            label: values
            for label, values in inputs.items()
            if not label.startswith(OWN) or any(x.element_hash() in used for x in values)
        }
        return Visit(inputs, outputs)

    def loop_in_pieces(loop: Loop) -> Loop:
        visits = [divided(visit, k, loop.own_start[k]) for k, visit in enumerate(loop.visits)]
        return replace(loop, visits=visits)

    pairs = trace.pairs
    if pairs:
        pairs = replace(pairs, own=[divided(visit, k, 0) for k, visit in enumerate(pairs.own)])
    return replace(trace, loops=[loop_in_pieces(loop) for loop in trace.loops], pairs=pairs), sizes


def _lives(trace: Trace, kind: int) -> list[Piece]:
    """The piece of each scalar in a kind's record."""
    written = [0] * trace.own_sizes[kind]
    last = [0] * trace.own_sizes[kind]
    for i, loop in enumerate(trace.loops):
        start = loop.own_start[kind]
        for p in range(start, start + len(loop.visits[kind].outputs.get(OWN, []))):
            written[p] = last[p] = i
    readers = [(i, loop.visits[kind]) for i, loop in enumerate(trace.loops)]
    if trace.pairs:
        readers.append((len(trace.loops), trace.pairs.own[kind]))
    for i, visit in readers:
        used = _used(visit)
        for p, symbol in enumerate(visit.inputs.get(OWN, [])):
            if symbol.element_hash() in used:
                last[p] = i
    return [Piece(*life) for life in zip(written, last, strict=True)]


def _by_piece(pieces: Sequence[Piece], values: Sequence[ca.SX]) -> dict[str, list[ca.SX]]:
    found: dict[str, list[ca.SX]] = {}
    for piece, value in zip(pieces, values, strict=True):
        found.setdefault(piece.label, []).append(value)
    return found


def _used(visit: Visit) -> set[int]:
    """The hashes of the symbols in what a visit gives out."""
    values = [x for part in visit.outputs.values() for x in part]
    return {symbol.element_hash() for symbol in ca.symvar(ca.vertcat(ca.SX(0, 1), *values))}

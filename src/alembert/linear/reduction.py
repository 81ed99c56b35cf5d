"""Part of a linear model: some of its states, inputs and outputs.

States k that the others d do not act on are a linear model of their own,

    [x_k']   [A_kk   0 ] [x_k]   [B_k]
    [x_d'] = [A_dk A_dd] [x_d] + [B_d] u,       poles(A) = poles(A_kk) and poles(A_dd)                      (1)

so that a regulator of x_k does to the whole just what it does to the part, and x_d goes along. Wheels on a free base are the
example: they turn it, but total momentum and the centre of mass are beyond their reach. The attitude is a part by itself,
and the wheels take up the momentum.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert import arguments
from alembert.arguments import check_known, unknown
from alembert.control.reachability import Reachability, reachability
from alembert.errors import ArgumentError
from alembert.linear import quantities

if TYPE_CHECKING:
    from alembert.linear.linear_model import LinearModel

Array = np.ndarray
_ROUNDING = 1e-10  # of the largest entry of A: smaller ones do not couple states


def reduced(linear: LinearModel, states: Any, inputs: Any, outputs: Any, neglect: float) -> LinearModel:
    """(1)"""
    keep = list(range(len(linear.state_names)))
    if states is not None:
        keep = sorted(set(_states(linear, arguments.names("reduced", "states", states, or_one=True))))
    drop = [k for k in range(len(linear.state_names)) if k not in keep]
    _check_coupling(linear, keep, drop, neglect)
    chosen = _picked(linear.input_names, inputs, "inputs")
    seen = told(linear.C, neglect)[..., drop]
    blind = np.any(seen, axis=(*range(seen.ndim - 2), -1))
    rows = [k for k in range(len(linear.output_names)) if not blind[k]]
    if outputs is not None:
        rows = _picked(linear.output_names, outputs, "outputs")
        for k in rows:
            if blind[k]:
                of = linear.state_names[
                    drop[int(np.argmax(seen[..., k, :].any(axis=tuple(range(seen.ndim - 2)))))]
                ]
                raise ArgumentError(
                    f"reduced: the output {linear.output_names[k]!r} depends on {of}, which is left out"
                )
    n = len(linear.displacements)
    places = [k for k in keep if k < n]
    speeds = [k - n for k in keep if k >= n]
    mass = linear.mass_matrix
    if len(speeds) < len(linear.rates):  # the inertia that efforts feel while the rest goes along
        mass = np.linalg.inv(np.linalg.inv(mass)[..., speeds, :][..., speeds])
    at = np.asarray(keep, dtype=int)
    return dataclasses.replace(
        linear,
        A=linear.A[..., at[:, None], at],
        B=linear.B[..., at, :][..., chosen],
        C=linear.C[..., rows, :][..., at],
        D=linear.D[..., rows, :][..., chosen],
        E=linear.E[..., at, :],
        F=linear.F[..., rows, :],
        G=linear.G[..., chosen],
        y=linear.y[..., rows],
        state_names=tuple(linear.state_names[k] for k in keep),
        state_units=tuple(linear.state_units[k] for k in keep),
        input_names=tuple(linear.input_names[k] for k in chosen),
        input_units=tuple(linear.input_units[k] for k in chosen),
        output_names=tuple(linear.output_names[k] for k in rows),
        output_units=tuple(linear.output_units[k] for k in rows),
        mass_matrix=mass,
        displacements=tuple(linear.displacements[k] for k in places),
        rates=tuple(linear.rates[k] for k in speeds),
        wrench_inputs=tuple(
            (chosen.index(k), frame, c) for k, frame, c in linear.wrench_inputs if k in chosen
        ),
        whole=linear.whole or linear,
    )


def advice(linear: LinearModel, reached: Reachability, *, stable: bool = False) -> str:
    """What the inputs do not reach, with the poles that stay as they are, and parts that they do reach.

    `stable`: parts may also have what inputs do not reach and is stable by itself.
    """
    poles = np.linalg.eigvals(reached.lost @ linear.A @ reached.lost.T)
    listed = "; ".join(
        _counted(np.sort_complex(np.where(np.abs(poles) < 1e-6 * _size(linear.A), 0.0, poles)))
    )
    text = f"{reached}. What they do not reach keeps its poles, {listed}"
    found = [f"linear.reduced({part})" for part in parts(linear, stable=stable)]
    if found:
        which = "reach, or are stable" if stable else "reach"
        return f"{text}. Parts that nothing else acts on and the inputs {which}: {' or '.join(found)}"
    return f"{text}. No part of the state is free of what they do not reach; linearise with other inputs="


def parts(linear: LinearModel, *, stable: bool = False) -> list[list[str]]:
    """Largest sets of degrees of freedom that are a part by (1) and are reached, begun at the first one and at the last."""

    def reached(at: Array) -> bool:
        A = linear.A[at[:, None], at]
        found = reachability(A, linear.B[at], tuple(linear.state_names[k] for k in at), 1e-10)
        if found or not stable or not found.rank:
            return bool(found)
        return bool(np.linalg.eigvals(found.lost @ A @ found.lost.T).real.max() < -1e-6 * _size(linear.A))

    n, m = len(linear.displacements), len(linear.rates)
    dofs = sorted({*linear.displacements, *linear.rates})
    found: list[list[str]] = []
    for order in (dofs, dofs[::-1]):
        kept: set[int] = set()
        for dof in order:
            own = [k for k in range(n + m) if (*linear.displacements, *linear.rates)[k] == dof]
            trial = acting_on(linear.A, kept | set(own))
            at = np.array(sorted(trial))
            if len(trial) > len(kept) and reached(at):
                kept = trial
        names = _short(linear, kept)
        if names and names not in found:
            found.append(names)
    return found


def told(C: Array, neglect: float = _ROUNDING) -> Array:
    """Which states each output tells of (..., outputs, states): each in its own units, beside others however stiff."""
    rows = np.abs(C).max(axis=-1, keepdims=True, initial=1.0)
    return np.abs(C) > neglect * np.minimum(rows, _size(C))


def acting_on(A: Array, states: Iterable[int]) -> set[int]:
    """These states with all that act on them, directly or through others."""
    couples = np.abs(A) > _ROUNDING * _size(A)
    found = {int(k) for k in states}
    while True:
        more = found | {int(k) for k in np.flatnonzero(couples[sorted(found)].any(axis=0))}
        if more == found:
            return found
        found = more


def _short(linear: LinearModel, kept: set[int]) -> list[str]:
    """Names that stand for the states: of joints, bodies with modes or degrees of freedom where they are all there."""
    names = [linear.state_names[k] for k in sorted(kept)]
    found: list[str] = []
    for owner in linear.model.space:
        dofs = owner.speed_names
        both = [d for d in dofs if f"q:{d}" in names and f"v:{d}" in names]
        found += [owner.name] if dofs and len(both) == len(dofs) else both
        found += [f"{kind}:{d}" for d in dofs for kind in "qv" if f"{kind}:{d}" in names and d not in both]
    return found


def _states(linear: LinearModel, names: Sequence[str]) -> list[int]:
    found = []
    known = {name: k for k, name in enumerate(linear.state_names)}
    for name in names:
        kind, rest = quantities.split(name, ("q", "v"), "reduced", "states")
        dofs = quantities.degrees_of_freedom(linear.model, rest, "reduced", "states")
        labels = [f"{k}:{linear.model.speed_names[dof]}" for k in (kind or "qv") for dof in dofs]
        here = [known[label] for label in labels if label in known]
        if not here:
            raise ArgumentError(unknown("reduced: states: no state", name, linear.state_names))
        found += here
    return found


def _check_coupling(linear: LinearModel, keep: list[int], drop: list[int], neglect: float) -> None:
    if not keep:
        raise ArgumentError("reduced: states is empty, expected names of states or joints")
    block = np.abs(linear.A[..., keep, :][..., drop]) / max(_size(linear.A), np.finfo(float).tiny)
    block = block.max(axis=tuple(range(block.ndim - 2))) if block.size else np.zeros((len(keep), 0))
    acting = np.flatnonzero((block > neglect).any(axis=0))
    if len(acting):
        on, by = np.unravel_index(int(np.argmax(block)), block.shape)
        listed = ", ".join(linear.state_names[drop[k]] for k in acting)
        raise ArgumentError(
            f"reduced: {listed} would be left out, but act{'s' * (len(acting) == 1)} on what is kept "
            f"({linear.state_names[drop[by]]} on {linear.state_names[keep[on]]} by {block[on, by]:.3g} of the largest entry "
            "of A); keep them too, or neglect= couplings up to that size"
        )


def _picked(known: Sequence[str], names: Any, argument: str) -> list[int]:
    if names is None:
        return list(range(len(known)))
    found = []
    for name in arguments.names("reduced", argument, names, or_one=True):
        check_known(f"reduced: {argument}: the linear model has no", name, known)
        found.append(known.index(name))
    return found


def _size(A: Array) -> float:
    return float(np.abs(A).max(initial=0.0))


def _counted(poles: Array) -> list[str]:
    """Each pole once, with how often it is there."""
    labels = [f"{p.real + 0.0:.4g}" if abs(p.imag) <= 1e-9 * abs(p) else f"{p:.4g}" for p in poles]
    return [
        f"{label} rad/s" + (f" ({labels.count(label)} times)" if labels.count(label) > 1 else "")
        for label in dict.fromkeys(labels)
    ]

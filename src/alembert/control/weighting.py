"""Mixed sensitivity: a plant with weights, as synthesis takes it.

    e = w - G u,      z = [W1 e; W2 u; W3 G u],      y = e                                                          (1)

so that z = [W1 S; W2 K S; W3 T] w with S = (1 + G K)^-1 and T = 1 - S, for u = K y. A W3 that is not proper
(s^2/40000, say) is a pair (numerator, denominator): its polynomial part acts on the states of G, s (C x) = C A x + C
B u and so on, as long as the product with G is proper.

Weights of LQG that depend on frequency make the cost E |W_y C x|^2 + |W_u u|^2 (Gupta 1980, "Frequency-shaped cost
functionals: extension of linear-quadratic-Gaussian design methods", J. Guidance and Control 3): `weighted_lqg`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alembert.control import arguments
from alembert.control.gramian import semidefinite_root
from alembert.control.interconnection import append, common_dt, series, static
from alembert.control.statespace import StateSpace
from alembert.control.synthesis import Synthesis, h2syn
from alembert.control.system_arguments import takes_systems
from alembert.control.transfer import polynomial, tf, times_polynomial, weight_of
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


@takes_systems()
def augment(G: StateSpace, W1: Any = None, W2: Any = None, W3: Any = None) -> StateSpace:
    """(1); a weight with one input and output is taken for every signal, None leaves its row of z out.

    The outputs of the result are z1, z2, z3 (numbered) and the measurements e; its inputs are w and the inputs of G.
    Controls and measurements of `hinfsyn` and `h2syn` are then `G.input_names` and how many outputs G has.
    """
    p, m = G.shape
    weights = [_weight(name, W, k) for name, W, k in (("W1", W1, p), ("W2", W2, m))]
    proper, extra = _split(W3, p, G)
    A, B, C, D = G.matrices
    rows_C, rows_D = (
        [-C, np.zeros((m, len(A))), C],
        [
            np.hstack([np.eye(p), -D]),
            np.hstack([np.zeros((m, p)), np.eye(m)]),
            np.hstack([np.zeros((p, p)), D]),
        ],
    )
    systems = [*weights, proper]
    keep = [k for k, W in enumerate(systems) if W is not None]
    chosen = [W for W in systems if W is not None]
    if not keep and extra is None:
        raise ArgumentError("augment: no weight was given, expected W1, W2 or W3")
    common_dt("augment", [G, *chosen])
    parts_C = [rows_C[k] for k in keep]
    parts_D = [rows_D[k] for k in keep]
    if extra is not None:
        parts_C.append(extra.C)
        parts_D.append(np.hstack([np.zeros((p, p)), extra.D]))
        chosen.append(static(np.eye(p), dt=G.dt))
    base = StateSpace(
        A,
        np.hstack([np.zeros((len(A), p)), B]),
        np.vstack([*parts_C, -C]),
        np.vstack([*parts_D, np.hstack([np.eye(p), -D])]),
        G.dt,
        state_names=G.state_names,
        input_names=tuple(
            [*(f"w{k}" for k in range(p)), *(f"u:{n}" if n.startswith("w") else n for n in G.input_names)]
        ),
    )
    found = series(base, append(*chosen, static(np.eye(p), dt=G.dt)))
    if extra is not None and proper is not None:  # both parts of W3 make one signal
        count = found.shape[0] - p
        join = np.eye(count + p)
        join[count - 2 * p : count - p, count - p : count] = np.eye(p)
        found = series(found, static(np.delete(join, np.s_[count - p : count], axis=0), dt=G.dt))
    names = [f"z{k}" for k in range(found.shape[0] - p)] + [f"e{k}" for k in range(p)]
    return found.renamed(outputs=names, inputs=base.input_names)


@takes_systems()
def weighted_lqg(
    plant: StateSpace,
    output_weight: Any,
    control_weight: Any,
    process: Any,
    sensor: Any,
    *,
    through: Any = None,
    disturbance: Any = None,
) -> Synthesis:
    """LQG with weights that depend on frequency: E |W_y C x|^2 + |W_u u|^2 is least (Gupta 1980).

    `output_weight` and `control_weight` are systems, (numerator, denominator), matrices or numbers; that of the controls
    must have a direct part. `process`, `sensor` and `through` are those of `lqe`; `disturbance` is a stable system that
    colours the noise of the process. An H2 problem (`h2syn`): the controller has the states of the weights too, and
    `norm` squared is the cost.
    """
    what = "weighted_lqg"
    n, (p, m) = plant.order, plant.shape
    G, W = arguments.process_noise(what, plant, process, through)
    k = len(W)
    V = arguments.weight(what, "sensor", sensor, plant.output_names, definite=True)
    given = (("output_weight", output_weight, p), ("control_weight", control_weight, m))
    Wy, Wu = (_system(what, name, x, size) for name, x, size in given)
    colour = _system(what, "disturbance", np.eye(k) if disturbance is None else disturbance, k)
    common_dt(what, [plant, Wy, Wu, colour])
    zero = np.zeros
    base = StateSpace(
        plant.A,
        np.hstack([G, zero((n, p)), plant.B]),
        np.vstack([plant.C, zero((m, n)), plant.C]),
        np.block(
            [
                [zero((p, k + p)), plant.D],
                [zero((m, k + p)), np.eye(m)],
                [zero((p, k)), semidefinite_root(V), plant.D],
            ]
        ),
        plant.dt,
        state_names=plant.state_names,
    )
    first = append(colour * static(semidefinite_root(W), dt=colour.dt), static(np.eye(p + m), dt=plant.dt))
    P = series(first, base, append(Wy, Wu, static(np.eye(p), dt=plant.dt)))
    inputs = [*(f"w{i}" for i in range(k)), *(f"v{i}" for i in range(p)), *plant.input_names]
    outputs = [*(f"z{i}" for i in range(P.shape[0] - p)), *plant.output_names]
    P = P.renamed(inputs=arguments.distinct(inputs), outputs=arguments.distinct(outputs))
    try:
        return h2syn(P, controls=m, measurements=p)
    except NumericalError as error:
        raise NumericalError(f"{what}: {str(error).partition(': ')[2]}") from None


def _weight(name: str, W: Any, size: int) -> StateSpace | None:
    return None if W is None else _system("augment", name, W, size)


def _system(function: str, name: str, W: Any, size: int) -> StateSpace:
    """A stable weight of `size` signals."""
    W = weight_of(function, name, W, size)
    if W.shape[1] != size:
        raise ArgumentError(f"{function}: {name} has {W.shape[1]} inputs, expected 1 or {size}")
    if not W.is_stable:
        pole = np.linalg.eigvals(W.A)[int(np.argmax(W.decay()))]
        raise ArgumentError(
            f"{function}: {name} is not stable, it has the pole {pole + 0.0:.6g}, which no controller reaches; move it to "
            "the left, 1/s to 1/(s + 1e-4), or shape the loop with it (`ncfsyn`)"
        )
    return W


def _split(W: Any, size: int, G: StateSpace) -> tuple[StateSpace | None, StateSpace | None]:
    """The proper part of W3, and its polynomial part times G."""
    if not isinstance(W, tuple):
        return _weight("W3", W, size), None
    num, den = (polynomial("augment", x) for x in W)
    if len(num) <= len(den):
        return _weight("W3", W, size), None
    if G.is_discrete:
        raise ArgumentError("augment: W3 is not proper, and the plant is sampled")
    quotient, rest = np.polydiv(num, den)
    try:
        extra = times_polynomial(G, quotient)
    except ArgumentError as error:
        raise ArgumentError(f"augment: W3 G is not proper: {str(error).partition(': ')[2]}") from None
    proper = _weight("W3", tf(rest, den), size) if np.any(rest) else None
    return proper, extra

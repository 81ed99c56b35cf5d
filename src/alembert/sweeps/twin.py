"""Forward dynamics stated as an optimal control problem (D'Eleuterio and Damaren 1991).

The accelerations of the bodies are the states, those of the joints the inputs, the forces between bodies the
costates, and Gibbs' function is the cost. With A_0 the accelerations that the bodies would have at a = 0
(gravity included) and x = A - A_0 what the joints add to them, (14)-(18) of the paper become

    x = Ad(X_PB)^-1 x_P + S a                                                               (1)
    J = sum  1/2 x^T M x + h^T x + 1/2 a^T J_r a + x_P^T (r; 0) a - t^T a                   (2)
    h = M A_0 + V x* M V - w  + (w_P x r v; 0) of the rotors that the body carries          (3)
    t = tau + own(q, v) - r^T w'_0P                                                         (4)

h is the force that inverse dynamics finds at a = 0, and t what it lacks there. J is zero at a = 0, and

    dJ/da = M(q) a + bias(q, v) - tau,    J = 1/2 a^T M(q) a - a^T (tau - bias)             (5)

so that the accelerations that minimise J are those that occur: Gibbs' form of Gauss' principle.

A body with modes has a stage of its own, whose state is the acceleration of its frame and those of its modes, 6 + n
entries, and whose inputs are the latter; what hangs on it follows both by Ad(X)^-1 [1, T] (`alembert.sweeps.node`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.spatial import Force
from alembert.spatial.arrays import cross
from alembert.sweeps import modal
from alembert.sweeps.dynamics import accelerate, joint_effort, move, newton_euler, place
from alembert.sweeps.linear_quadratic import LQProblem, Stage
from alembert.sweeps.node import Record
from alembert.sweeps.operators import describe
from alembert.sweeps.program import Program, counterpart, inward, outward, unroll
from alembert.sweeps.tree import Tree


def accelerate_at_zero(b: Record) -> None:
    """A_0"""
    b.a = ca.SX(b.node.nv, 1)
    accelerate(b)


def lacking(b: Record) -> None:
    """(4)"""
    b.t = b.tau - joint_effort(b, ca.SX(b.node.nv, 1))


def gather_gyroscopic(b: Record) -> None:
    """The last term of (3)."""
    r = b.rotor_momentum()
    if r is not None:
        b.deliver(f=Force(cross(b.receive("V").angular, r @ b.v), ca.SX(3, 1)))


def remaining(b: Record) -> None:
    """(3), whole"""
    b.h = b.f.vector()


@counterpart(accelerate_at_zero)
def accelerate_modes_at_zero(b: Record) -> None:
    b.a = ca.SX(b.node.nv, 1)
    modal.accelerate(b)


@counterpart(lacking)
def lacking_of_modes(b: Record) -> None:
    b.t = b.tau + modal.own_effort(b)


@counterpart(gather_gyroscopic)
def gather_nothing(b: Record) -> None:
    """Modes have no rotors."""


@counterpart(remaining)
def remaining_of_modes(b: Record) -> None:
    b.h = ca.vertcat(b.f.vector(), b.f_m)


LINEAR_QUADRATIC = Program(
    "linear_quadratic",
    {"q": "q", "v": "v", "tau": "v", "wrench": "node6"},
    (
        outward(place),
        outward(move),
        outward(accelerate_at_zero),
        outward(newton_euler),
        outward(lacking),
        inward(gather_gyroscopic),
        outward(describe),
        outward(remaining),
    ),
)


def forward_dynamics_as_lq(model: Model, q: Any, v: Any, tau: Any, *, wrench: Any = None) -> LQProblem:
    """(1)-(4) at one state, one stage per moving body; `solve_lq` finds the accelerations as its inputs.

    `wrench` holds external wrenches (moving bodies, 6), each in its body's axes about the body's origin. Stages form a
    tree: a model with loops or couplings is refused.
    """
    model.compute.check_tree("forward_dynamics_as_lq")
    return _problem(model, q, v, tau, wrench)


def _problem(model: Model, q: Any, v: Any, tau: Any, wrench: Any) -> LQProblem:
    tree, function = _function(model)
    given = _checked(model, tree, q=q, v=v, tau=tau, wrench=wrench)
    defaults = np.array([value for _, value in model.parameters])
    values = [value.full() for value in function.call([*map(ca.DM, given), ca.DM(defaults)])]
    widths: list[int] = []
    stages = []
    for k, parent in enumerate(tree.parents):
        phi, M, S, h, t, reflected, coupling = values[len(_PARTS) * k : len(_PARTS) * (k + 1)]
        # on the frame of a body with modes, which do not move it, there are no forces on these
        missing = (widths[parent] if parent >= 0 else 6) - len(phi)
        A, N = (np.vstack([x, np.zeros((missing, x.shape[1]))]) for x in (phi, coupling))
        stages.append(Stage(A.T, S, M, h=h[:, 0], t=t[:, 0], R=np.diag(reflected[:, 0]), N=N, parent=parent))
        widths.append(len(M))
    return LQProblem(stages, np.zeros(6))


def gibbs_function(model: Model, q: Any, v: Any, a: Any, tau: Any, *, wrench: Any = None) -> float:
    """(2): Gibbs' function less its value at a = 0. Least, over a, at the accelerations that occur.

    With loops and couplings, least over those that keep them (Gauss).
    """
    problem = _problem(model, q, v, tau, wrench)
    x = np.asarray(a, dtype=float)
    if x.shape != (model.nv,):
        raise ArgumentError(f"gibbs_function: a has shape {x.shape}, expected ({model.nv},)")
    return problem.cost([x[s] for s in Tree.of(model).v_slices])


_PARTS = ("phi", "M", "S", "h", "t", "reflected", "coupling")


@lru_cache(maxsize=32)
def _function(model: Model) -> tuple[Tree, ca.Function]:
    tree = Tree.of(model)
    sizes = {"q": (model.nq,), "v": (model.nv,), "tau": (model.nv,), "wrench": (len(tree), 6)}
    given = {name: ca.SX.sym(name, *size) for name, size in sizes.items()}
    records, _ = unroll(LINEAR_QUADRATIC, tree, given, tree.parameter_symbols)
    inputs = [*given.values(), tree.parameter_symbols]
    outputs = [ca.densify(getattr(record, name)) for record in records for name in _PARTS]
    return tree, ca.Function("linear_quadratic", inputs, outputs)


def _checked(model: Model, tree: Tree, **given: Any) -> list[np.ndarray]:
    shapes = {"q": (model.nq,), "v": (model.nv,), "tau": (model.nv,), "wrench": (len(tree), 6)}
    found = []
    for name, shape in shapes.items():
        x = np.zeros(shape) if given[name] is None else np.asarray(given[name], dtype=float)
        if x.shape != shape:
            raise ArgumentError(f"forward_dynamics_as_lq: {name} has shape {x.shape}, expected {shape}")
        found.append(x)
    return found

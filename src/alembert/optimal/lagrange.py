"""The form of a problem with Lagrange multipliers, for comparison with the smallest one.

Leyendecker, Ober-Bloebaum, Marsden and Ortiz (2009), (10) and (14): in the redundant coordinates x of
`alembert.optimal.dmoc`, with the n - m degrees of freedom left by m constraints g (6 of each body, 3 of a
spherical, 5 of a revolute joint) with the Jacobian G,

    D_2 L_d(x_{k-1}, x_k) + D_1 L_d(x_k, x_{k+1}) - h G(x_k)' lambda_k + f+_{k-1} + f-_k = 0,    k = 1 ... N-1   (1)
    g(x_k) = 0,    k = 1 ... N-1                                                                              (2)
    x_0 = F(q_0),    M x'_0 = -D_1 L_d(x_0, x_1) + h/2 G' lambda_0 - f-_0                                      (3)
    x_N = F(q_N),    M x'_N = Q(x_N) [D_2 L_d(x_{N-1}, x_N) + f+_{N-1}]                                        (4)

With a force for each coordinate (`forces="redundant"`), as the paper counts, there are (2N + 1) n + N m variables and
(N + 3) n + (N - 1) m equations: 6798 and 4455 for the satellite with N = 50, where the paper prints 4555, and 3641 and
2422 for the pitcher with N = 35, as it prints. Half of (4) repeats the other half; with the forces of the joints, to be
solved, the end has multipliers lambda_N as the start has, and the solution is that of `transcription="dmocc"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.joints import Free, Revolute, Spherical
from alembert.optimal.dmoc import Directors
from alembert.optimal.plant import Mechanics, Moment
from alembert.optimal.problem import Problem

Array = np.ndarray
Forces = Literal["joints", "redundant"]


@dataclass(frozen=True)
class LagrangeSolution:
    """Coordinates `x` (N + 1, n), `controls` (N, ...) and `multipliers` (N + 1, m)."""

    status: str
    cost: float
    x: Array
    controls: Array
    multipliers: Array
    iterations: int


@dataclass(frozen=True)
class LagrangeForm:
    """A built problem; `variables` and `equations` are counted on it."""

    problem: Problem
    steps: int
    forces: str
    bodies: Directors
    w: ca.MX
    cost: ca.MX
    g: ca.MX
    unpack: ca.Function

    @property
    def variables(self) -> int:
        return self.w.numel()

    @property
    def equations(self) -> int:
        return self.g.numel()

    def solve(self, *, tolerance: float = 1e-8, iterations: int = 500) -> LagrangeSolution:
        """With IPOPT, from the straight guess."""
        own = {"print_level": 0, "sb": "yes", "tol": tolerance, "max_iter": iterations}
        options: dict[str, Any] = {"expand": True, "print_time": False, "error_on_fail": False, "ipopt": own}
        parts: dict[str, Any] = {"x": self.w, "f": self.cost, "g": self.g}
        solver = ca.nlpsol("lagrange", "ipopt", parts, options)
        found = solver(x0=self.guess(), lbg=0, ubg=0)
        x, u, multipliers = (part.full().T for part in self.unpack(found["x"]))
        stats = solver.stats()
        status = "solved" if stats["success"] else str(stats["return_status"])
        return LagrangeSolution(status, float(found["f"]), x, u, multipliers, int(stats["iter_count"]))

    def guess(self) -> Array:
        """Configurations straight from start to end, no forces."""
        from alembert.optimal.guess import straight

        model = self.problem.model
        assert model is not None
        q = straight(self.problem).at(self.problem, np.linspace(0, 1, self.steps + 1))[:, : model.nq]
        x = self.place(q)
        return np.concatenate([x.ravel(), np.zeros(self.variables - x.size)])

    def place(self, q: Array) -> Array:
        """The redundant coordinates of configurations (..., nq)."""
        model = self.problem.model
        assert model is not None
        s = ca.SX.sym("q", model.nq)
        f = ca.Function("place", [s], [self.bodies.place(s)])
        return f.map(len(q))(q.T).full().T


def lagrange_form(problem: Problem, steps: int, *, forces: Forces = "joints") -> LagrangeForm:
    """Build the form with multipliers of a problem whose ends are stated for all joints, q and v.

    For models without loops, springs and friction, with revolute, spherical and free joints; the cost may depend on
    the controls only. `forces="redundant"` has one for each coordinate instead of those of the joints, and their
    effort as the cost.
    """
    model = problem.model
    if model is None:
        raise UnsupportedError("lagrange_form: for models, not for a System")
    if forces not in ("joints", "redundant"):
        raise ArgumentError(f"lagrange_form: forces is {forces!r}, expected 'joints' or 'redundant'")
    _check(problem)
    assert isinstance(problem.plant, Mechanics)
    bodies = Directors(model, ca.SX(problem.parameters))
    n, N, h = bodies.size, int(steps), problem.shortest / steps
    x, y = ca.SX.sym("x", n), ca.SX.sym("y", n)
    constraints = ca.Function("g", [x], [_constraints(bodies, x)])
    m = constraints.numel_out(0)
    controls = len(problem.plant.controls) if forces == "joints" else n
    u, l = ca.SX.sym("u", controls), ca.SX.sym("l", m)
    L = bodies.lagrangian(x, y, ca.SX(h))
    G = ca.jacobian(constraints(x), x)
    slopes = ca.Function("slopes", [x, y], [ca.gradient(L, x), ca.gradient(L, y)])
    B = _actuation(problem, bodies, x) if forces == "joints" else ca.SX.eye(n)
    force = ca.Function("force", [x, u], [h / 2 * (B @ u)])
    closing = ca.Function("closing", [x, l], [h * (G.T @ l)])
    M = bodies.mass_matrix()
    counted = forces == "redundant"
    rate = ca.Function("rate", [u], [_rate(problem, u) if forces == "joints" else ca.sumsqr(u) / 2])

    nodes = N if counted else N + 1  # with multipliers, from the first
    w: Any = ca.MX.sym("w", (N + 1) * n + N * controls + nodes * m)
    xs = ca.reshape(w[: (N + 1) * n], n, N + 1)
    us = ca.reshape(w[(N + 1) * n : (N + 1) * n + N * controls], controls, N)
    ls = ca.reshape(w[(N + 1) * n + N * controls :], m, nodes)
    left, right = slopes.map(N)(xs[:, :N], xs[:, 1:])  # D_1, D_2 of each interval
    minus, plus = force.map(N)(xs[:, :N], us), force.map(N)(xs[:, 1:], us)
    held = closing.map(nodes)(xs[:, :nodes], ls)
    final = right[:, -1] + plus[:, -1]
    final = _projected(M, G, x)(xs[:, N], final) if counted else final - held[:, -1] / 2
    first, first_rate, last, last_rate = _ends(problem, bodies)
    mass = ca.DM(ca.Function("M", [], [M])()["o0"])
    rows = [
        xs[:, 0] - first,
        left[:, 0] - held[:, 0] / 2 + minus[:, 0] + mass @ first_rate,
        ca.vec(right[:, :-1] + left[:, 1:] - held[:, 1:N] + plus[:, :-1] + minus[:, 1:]),
        ca.vec(constraints.map(N - 1)(xs[:, 1:-1])) if N > 1 else ca.MX(0, 1),
        xs[:, N] - last,
        final - mass @ last_rate,
    ]
    cost = h * ca.sum2(rate.map(N)(us))
    unpack = ca.Function("unpack", [w], [xs, us, ls])
    return LagrangeForm(problem, N, forces, bodies, w, cost, ca.vertcat(*rows), unpack)


def _projected(M: ca.SX, G: ca.SX, x: ca.SX) -> ca.Function:
    """Q of (15) there."""
    momentum = ca.SX.sym("momentum", M.shape[0])
    MG = ca.solve(M, G.T)
    return ca.Function("Q", [x, momentum], [momentum - G.T @ ca.solve(G @ MG, MG.T @ momentum)])


def _check(problem: Problem) -> None:
    model = problem.model
    assert model is not None
    model.compute.check_tree("lagrange_form")
    if problem.is_free or problem.periodic or problem.path or any(problem.limits.values()):
        raise UnsupportedError(
            "lagrange_form: free durations, periodic motions, limits and paths are not covered; give a duration, "
            "and limits=None"
        )
    names = {f"{what} {name}" for what in "qv" for name in model.speed_names}
    for which, rows in (("start", problem.start), ("end", problem.end)):
        missing = names - {row.component for row in rows if row.is_equation}
        if missing:
            raise ArgumentError(f"lagrange_form: the {which} does not state {sorted(missing)[0]!r}")
    for name in model.space.of_bodies:
        raise UnsupportedError(f"lagrange_form does not take flexible bodies, as {name!r} is; choose 'dmocc'")
    problem.refuse_additions("lagrange_form")
    for joint in model.joints:
        if joint.type.nv and not isinstance(joint.type, Revolute | Spherical | Free):
            raise UnsupportedError(
                f"lagrange_form: joint {joint.name!r} is {type(joint.type).__name__}; expected revolute, spherical or free"
            )
        if joint.spring is not None or joint.friction is not None:
            raise UnsupportedError(f"lagrange_form: joint {joint.name!r} has a spring or friction")


def _constraints(bodies: Directors, x: ca.SX) -> ca.SX:
    """g: directors are orthonormal, joints hold."""
    rows: list[ca.SX] = []
    for k, (node, parent) in enumerate(zip(bodies.nodes, bodies.tree.parents, strict=True)):
        origin, R = bodies.split(x, k)
        rows += [ca.dot(R[:, i], R[:, j]) - (i == j) for i in range(3) for j in range(i, 3)]
        if node.nv == 6:
            continue
        base, frame = bodies.split(x, parent)
        rows += ca.vertsplit(origin - base - frame @ node.placement.translation)
        if node.nv == 1:
            axis = _axis(bodies, k)
            around = np.linalg.svd(axis[None])[2][1:]
            turned = frame @ node.placement.rotation @ ca.DM(axis)
            rows += [ca.dot(turned, R @ ca.DM(m)) for m in around]
    return ca.vertcat(*rows)


def _axis(bodies: Directors, k: int) -> Array:
    kind: Any = bodies.tree.joints[k].type
    return np.asarray(kind.axis, dtype=float)


def _actuation(problem: Problem, bodies: Directors, x: ca.SX) -> ca.SX:
    """B of (5) and (42) there: a torque t on a body is 1/2 t x d_I on its directors."""
    assert isinstance(problem.plant, Mechanics)
    columns = []
    for dof in problem.plant.driven:
        k = next(i for i, s in enumerate(bodies.tree.v_slices) if s.start <= dof < s.stop)
        node, parent, own = bodies.nodes[k], bodies.tree.parents[k], dof - bodies.tree.v_slices[k].start
        column = ca.SX.zeros(bodies.size)
        _, R = bodies.split(x, k)
        if node.nv == 6 and own >= 3:
            column[12 * k : 12 * k + 3] = R[:, own - 3]
        else:
            if node.nv == 1:
                axis = _axis(bodies, k)
                torque = R @ ca.DM(axis)
            else:
                torque = R[:, own]
            for body, sign in ((k, 1.0), (parent, -1.0)):
                if body < 0:
                    continue
                _, directors = bodies.split(x, body)
                for i in range(3):
                    at = 12 * body + 3 + 3 * i
                    column[at : at + 3] += sign / 2 * ca.cross(torque, directors[:, i])
        columns.append(column)
    return ca.horzcat(*columns)


def _rate(problem: Problem, u: ca.SX) -> ca.SX:
    assert isinstance(problem.plant, Mechanics)
    try:
        own = {"_controls": problem.plant.controls, "tau": problem.plant.effort(u)}
        return problem.cost.rate(Moment(controls=u, duration=problem.shortest, **own))
    except AttributeError as error:
        raise UnsupportedError(f"lagrange_form: the cost may depend on controls only: {error}") from None


def _ends(problem: Problem, bodies: Directors) -> tuple[Array, Array, Array, Array]:
    """F(q) and its rate at the start and at the end."""
    from alembert.optimal.guess import straight

    model = problem.model
    assert model is not None
    q, d, v = ca.SX.sym("q", model.nq), ca.SX.sym("d", model.nv), ca.SX.sym("v", model.nv)
    moved = ca.jtimes(bodies.place(model.space.integrate(q, d)), d, v)
    f = ca.Function("f", [q, d, v], [bodies.place(q), moved])
    found: list[Array] = []
    for rows, point in zip((problem.start, problem.end), straight(problem).points, strict=True):
        stated = {row.component: row.lower for row in rows}
        speeds = np.array([stated[f"v {name}"] for name in model.speed_names])
        found += [part.full() for part in f(point[: model.nq], np.zeros(model.nv), speeds)]
    return found[0], found[1], found[2], found[3]

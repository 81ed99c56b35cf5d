"""Every public method of the dynamics on models with mimic joints, gears, a differential and a loop.

The table is checked against the registry of methods, so that none is forgotten. Each is compared with dense equations of
the tree and the constraint Jacobian (which is itself compared with differences of the residual), or refuses with a sentence.
"""

import functools

import casadi as ca
import every_derivative  # noqa: F401  (enters the checks of derivatives into the table)
import numpy as np
import pytest
from constraint_helpers import dense_solution
from every_method import DIFFERENCE, MECHANISMS, TABLE, case_of, covers, near, slope

import alembert as al
from alembert import identify
from alembert.algorithms.symbolic import Symbolic
from alembert.algorithms.table import TABLE as ALGORITHMS
from alembert.constraints.symbolic import ConstrainedSymbolic
from alembert.errors import UnsupportedError
from alembert.model.methods import Methods


@pytest.fixture(scope="module", params=MECHANISMS, ids=lambda f: f.__name__)
def case(request, tmp_path_factory):
    return case_of(request.param, tmp_path_factory.mktemp("model"))


@covers("constraint_residual", "constraint_jacobian", "constraint_bias")
def _(c):
    """Away from the surface too: G is the derivative of the residual where that vanishes, gamma of G v always."""
    near(c.model.constraint_residual(c.q), 0, 1e-12)
    near(slope(lambda s: c.model.constraint_residual(c.model.integrate(c.q, s * c.x))), c.G @ c.x, DIFFERENCE)
    rate = slope(lambda s: c.model.constraint_jacobian(c.model.integrate(c.q, s * c.v)) @ c.v)
    near(c.gamma, rate, DIFFERENCE)


@covers("forward_dynamics", "constrained_dynamics")
def _(c):
    wrenches = {c.frame: c.F}
    a, f = dense_solution(c.model, c.q, c.v, c.tau, wrenches=wrenches)
    found = c.model.constrained_dynamics(c.q, c.v, c.tau, wrenches=wrenches)
    near(found.accelerations, a)
    near(c.model.forward_dynamics(c.q, c.v, c.tau, wrenches=wrenches), a)
    near(c.model.forward_dynamics(c.q, c.v, c.tau, wrenches=wrenches, method="factorise"), a)
    near(c.G @ found.accelerations + c.gamma, 0)
    near(c.N.T @ f, 0)  # what is left of the tree's equation are reactions: they do no work
    with pytest.raises(UnsupportedError, match="method 'conjugate_gradients' is for models without loops"):
        c.model.forward_dynamics(c.q, c.v, c.tau, method="conjugate_gradients")


@covers("inverse_dynamics", "constrained_inverse_dynamics")
def _(c):
    """Driven by all joints, the smallest efforts with N^T u = N^T (M a + h)."""
    wanted = c.M @ c.a + c.h
    near(c.model.inverse_dynamics(c.q, c.v, c.a), np.linalg.pinv(c.N.T) @ c.N.T @ wanted)
    found = c.model.constrained_inverse_dynamics(c.q, c.v, c.a, actuated=c.free)
    near(c.N.T @ found.efforts, c.N.T @ wanted)
    assert {c.model.speed_names[k] for k in np.flatnonzero(found.efforts)} <= set(c.free)
    near(c.model.forward_dynamics(c.q, c.v, found.efforts), c.a)


@covers(
    "mass_matrix", "inverse_mass_matrix", "solve_mass_matrix", "multiply_mass_matrix", "reduced_mass_matrix"
)
def _(c):
    m, q, x = c.model, c.q, c.x
    near(m.mass_matrix(q), c.M)
    near(m.inverse_mass_matrix(q) @ c.M, np.eye(m.nv))
    near(c.M @ m.solve_mass_matrix(q, x), x)
    near(m.multiply_mass_matrix(q, x), c.M @ x)
    for names in ("independent", c.free):
        by = m.independent_coordinates(q)
        M_i = by.E.T @ c.M @ by.E
        y = x[: len(c.free)]
        near(m.mass_matrix(q, coordinates=names), M_i)
        near(m.reduced_mass_matrix(q), M_i)
        near(m.inverse_mass_matrix(q, coordinates=names) @ M_i, np.eye(len(M_i)))
        near(M_i @ m.solve_mass_matrix(q, y, coordinates=names), y)
        near(m.multiply_mass_matrix(q, y, coordinates=names), M_i @ y)
        # its inverse is the response of the closed mechanism, the tree's is not
        near(by.E @ m.inverse_mass_matrix(q, coordinates=names) @ by.E.T, c.A)
    assert np.abs(m.inverse_mass_matrix(q) - c.A).max() > 1e-3 * np.abs(c.A).max()
    out = np.empty((len(c.free), len(c.free)))
    assert m.mass_matrix(q, coordinates="independent", out=out) is out
    two = m.mass_matrix(np.stack([q, q]), coordinates=c.free)
    near(two, np.stack([M_i, M_i]))


@covers("bias_forces", "coriolis_forces", "gravity_forces")
def _(c):
    m, q, v, wrenches = c.model, c.q, c.v, {c.frame: c.F}
    near(m.bias_forces(q, v), c.h)
    near(m.coriolis_forces(q, v), c.tree.coriolis_forces(q, v))
    near(m.gravity_forces(q), c.tree.gravity_forces(q))
    by = m.independent_coordinates(q, v)
    h = by.E.T @ (c.tree.bias_forces(q, v, wrenches=wrenches) + c.M @ by.rate)
    near(m.bias_forces(q, v, wrenches=wrenches, coordinates="independent"), h)
    near(
        m.coriolis_forces(q, v, coordinates=c.free),
        by.E.T @ (c.tree.coriolis_forces(q, v) + c.M @ by.rate),
    )
    near(m.gravity_forces(q, coordinates=c.free), by.E.T @ c.tree.gravity_forces(q))
    # (E^T M E) a_i + h_i = E^T tau is the motion
    a_i = m.solve_mass_matrix(q, by.E.T @ c.tau - h, coordinates="independent")
    near(by.E @ a_i + by.rate, m.forward_dynamics(q, v, c.tau, wrenches=wrenches))


@covers("independent_coordinates")
def _(c):
    by = c.model.independent_coordinates(c.q, c.v)
    near(c.G @ by.E, 0)
    near(by.E @ c.v[by.indices], c.v)
    near(c.G @ by.rate + c.gamma, 0)
    assert by.E.shape[1] == c.N.shape[1]


@covers("hybrid_dynamics", "control_forces")
def _(c):
    """The first independent speed follows a motion, the others efforts."""
    one = c.free[0]
    k = c.model.speed_names.index(one)
    given = {name: c.tau[j] for j, name in enumerate(c.model.speed_names) if name != one}
    found = c.model.hybrid_dynamics(c.q, c.v, accelerations={one: 0.7}, torques=given)
    a = c.model.forward_dynamics(c.q, c.v, found.efforts)
    near(found.accelerations, a)
    near(a[k], 0.7)
    near(np.delete(found.efforts, k), np.delete(c.tau, k))
    wanted = c.model.control_forces(c.q, c.v, found.efforts * 0, motions={one: 0.7}, actuators=[one])
    near(wanted.accelerations[k], 0.7)
    near(c.model.forward_dynamics(c.q, c.v, wanted.efforts), wanted.accelerations)


@covers("constraint_power")
def _(c):
    power = c.model.constraint_power(c.q, c.v, c.model.constrained_dynamics(c.q, c.v, c.tau).reactions)
    near(list(power.values()), 0)


@covers("impulse")
def _(c):
    """v+ = N (N^T M N)^-1 N^T M v."""
    near(c.model.impulse(c.q, c.x).velocities, c.A @ c.M @ c.x)


@covers("constraint_analysis", "is_constrained")
def _(c):
    found = c.model.constraint_analysis(c.q)
    assert c.model.is_constrained
    assert found.rank == c.model.nv - c.N.shape[1] == np.linalg.matrix_rank(c.G)
    assert found.degrees_of_freedom == c.N.shape[1]


@covers("assemble", "project")
def _(c):
    off = c.model.integrate(c.q, 0.01 * c.x)
    for found in (c.model.assemble(off, c.x), c.model.project(off, c.x)):
        near(c.model.constraint_residual(found.q), 0, 1e-11)
        near(c.model.constraint_jacobian(found.q) @ found.v, 0, 1e-11)
        assert np.linalg.norm(c.model.difference(found.q, off)) < 0.1


TREE = {
    "center_of_mass": lambda m, c: m.center_of_mass(c.q),
    "check_configuration": lambda m, c: m.check_configuration(c.q),
    "difference": lambda m, c: m.difference(c.q, m.integrate(c.q, 0.1 * c.x)),
    "energy": lambda m, c: m.energy(c.q, c.v),
    "frame_acceleration": lambda m, c: m.frame_acceleration(c.q, c.v, c.a, c.frame),
    "frame_jacobian": lambda m, c: m.frame_jacobian(c.q, c.frame),
    "frame_jacobian_rate": lambda m, c: m.frame_jacobian_rate(c.q, c.v, c.frame),
    "frame_pose": lambda m, c: m.frame_pose(c.q, c.frame).matrix(),
    "frame_velocity": lambda m, c: m.frame_velocity(c.q, c.v, c.frame),
    "integrate": lambda m, c: m.integrate(c.q, c.x),
    "kinetic_energy": lambda m, c: m.kinetic_energy(c.q, c.v),
    "momentum": lambda m, c: m.momentum(c.q, c.v),
    "momentum_matrix": lambda m, c: m.momentum_matrix(c.q),
    "potential_energy": lambda m, c: m.potential_energy(c.q),
    "power": lambda m, c: m.power(c.q, c.v, c.tau),
    "rate": lambda m, c: m.rate(c.q, c.v),
}
"""functions of the state, whatever holds"""


@covers(*TREE)
def _(c):
    for function in TREE.values():
        found, expected = (function(m, c) for m in (c.model, c.tree))
        if expected is not None:
            near(found, expected)


@covers("check_tree")
def _(c):
    kind, name = ("loop", "pin") if c.model.loops else ("coupling", c.model.couplings[0].name)
    with pytest.raises(UnsupportedError, match=f"x: the {kind} '{name}' would be ignored"):
        c.model.compute.check_tree("x")


@covers("compile", "export_c")
def _(c):
    """Constrained dynamics both ways with `at`; everything else is of the tree, or refuses."""
    m, at = c.model, {"at": c.q}
    near(m.compile("forward_dynamics", **at)(c.q, c.v, c.tau), m.forward_dynamics(c.q, c.v, c.tau))
    near(m.compile("inverse_dynamics", **at)(c.q, c.v, c.a), m.inverse_dynamics(c.q, c.v, c.a))
    kernel = m.compile("constrained_inverse_dynamics", actuated=c.free, wrenches=[c.frame], **at)
    found = kernel(c.q, c.v, c.a, c.F)
    expected = m.constrained_inverse_dynamics(c.q, c.v, c.a, actuated=c.free, wrenches={c.frame: c.F})
    near(found[0], expected.efforts)
    near(c.G.T @ found[1] + found[0], c.M @ c.a + c.h - c.J.T @ c.F)
    for spoilt in ((c.q + 0.3 * c.x, c.v, c.a), (c.q, c.v, c.a + np.linalg.pinv(c.G) @ c.G @ c.x)):
        assert np.isnan(kernel(*spoilt, c.F)[0]).all()
    for name, entry in ALGORITHMS.items():
        held = name in ("forward_dynamics", "inverse_dynamics")
        if entry.needs_tree and not held:
            with pytest.raises(UnsupportedError, match=f"{name}: the .* would be ignored"):
                m.compile(name, **at)
    near(m.compile("mass_matrix")(c.q), c.M)


@covers("symbolic")
def _(c):
    """Every method on expressions: those of the tree, or through the constraints with `at`, or refused."""
    m, s, at = c.model, c.model.symbolic, {"at": c.q}
    near(_column(s.constrained_dynamics(c.q, c.v, c.tau, **at)[0]), m.forward_dynamics(c.q, c.v, c.tau))
    efforts, f = s.constrained_inverse_dynamics(c.q, c.v, c.a, actuated=c.free, wrenches={c.frame: c.F}, **at)
    expected = m.constrained_inverse_dynamics(c.q, c.v, c.a, actuated=c.free, wrenches={c.frame: c.F})
    near(_column(efforts), expected.efforts)
    near(c.G.T @ _column(f) + _column(efforts), c.M @ c.a + c.h - c.J.T @ c.F)
    by, expected = s.independent_coordinates(c.q, c.v, **at), m.independent_coordinates(c.q, c.v)
    near(by.E.full(), expected.E)
    near(_column(by.rate), expected.rate)
    y = c.x[: len(c.free)]
    for name, given, short in (
        ("mass_matrix", (), ()),
        ("inverse_mass_matrix", (), ()),
        ("solve_mass_matrix", (c.x,), (y,)),
        ("multiply_mass_matrix", (c.x,), (y,)),
        ("bias_forces", (c.v,), (c.v,)),
        ("coriolis_forces", (c.v,), (c.v,)),
        ("gravity_forces", (), ()),
    ):
        for coordinates, values, options in (("all", given, {}), (c.free, short, at)):
            found = getattr(s, name)(c.q, *values, coordinates=coordinates, **options).full()
            wanted = getattr(m, name)(c.q, *values, coordinates=coordinates)
            near(found.reshape(wanted.shape), wanted)
    for name in REFUSED_ON_SYMBOLS:
        given = {"hybrid": (c.q, c.v), "admittan": (c.q, [c.frame])}.get(
            name[: 6 if name.startswith("h") else 8], (c.q, c.v, c.x)
        )
        with pytest.raises(UnsupportedError, match=f"{name}: the .* would be ignored"):
            getattr(s, name)(*given)
    for name in ("jvp", "vjp"):
        given = ((c.q, c.v, c.tau),) * 2 if name == "jvp" else ((c.q, c.v, c.tau), c.x)
        with pytest.raises(UnsupportedError, match=f"{name}: forward_dynamics of a model with loops"):
            getattr(s, name)("forward_dynamics", *given)
    q = ca.SX.sym("q", m.nq)
    for name, function in TREE.items():
        if name in ("check_configuration", "frame_pose", "difference"):
            continue
        near(_column(function(s, c)), np.ravel(function(c.tree, c), order="F"))
    assert s.poses(q).shape[1] == 12


REFUSED_ON_SYMBOLS = (
    "forward_dynamics",
    "inverse_dynamics",
    "hybrid_dynamics",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
    "hybrid_dynamics_derivatives",
    "admittance",
)
ON_SYMBOLS = {
    *("constrained_dynamics", "constrained_inverse_dynamics", "independent_coordinates"),
    *("mass_matrix", "inverse_mass_matrix", "solve_mass_matrix", "multiply_mass_matrix"),
    *(
        "bias_forces",
        "coriolis_forces",
        "gravity_forces",
        "jvp",
        "vjp",
        "hessian",
        "function",
        "graph",
        "poses",
    ),
    *("innovations", "diagonalising_velocities", "velocities_from_diagonal"),
}
"""what the check above meets by name, and factors of the tree's mass matrix"""


def _column(x):
    return np.asarray(ca.DM(x)).ravel(order="F")


# --- functions of a model -------------------------------------------------------------------------------------


def _factors(c):
    found = al.innovations(c.model, c.q)
    near(found.L @ found.D @ found.L.T, c.M)
    n = al.diagonalising_velocities(c.model, c.q, c.v)
    near(0.5 * n @ found.D @ n, c.model.kinetic_energy(c.q, c.v))
    near(al.velocities_from_diagonal(c.model, c.q, n), c.v)
    near(al.operators(c.model, c.q).mass_matrix.dense(), c.M)


def _admittance(c):
    """That of the closed mechanism."""
    near(al.admittance(c.model, c.q, [c.frame]), c.J @ c.A @ c.J.T)
    place = al.Placement((0.1, 0.0, 0.0))
    found = al.admittance(c.model, np.stack([c.q, c.q]), [c.frame, (c.frame, place)])
    near(found[1, :6, :6], c.J @ c.A @ c.J.T)
    X = al.operators(c.tree, c.q).jacobian([c.frame, (c.frame, place)]).dense()
    near(found[0], X @ c.A @ X.T)


def _gibbs(c):
    """Least, over accelerations that keep the constraints, at those that occur."""
    a = c.model.forward_dynamics(c.q, c.v, c.tau)
    least = al.gibbs_function(c.model, c.q, c.v, a, c.tau)
    d = c.N @ np.ones(c.N.shape[1])
    near(al.gibbs_function(c.model, c.q, c.v, a + d, c.tau) - least, 0.5 * d @ c.M @ d)
    with pytest.raises(UnsupportedError, match=r"forward_dynamics_as_lq: the .* would be ignored"):
        al.forward_dynamics_as_lq(c.model, c.q, c.v, c.tau)


def _regressor(c):
    r = identify.regressor(c.model, c.q, c.v, c.x)
    near(r.predict(), c.tree.inverse_dynamics(c.q, c.v, c.x))
    by = c.model.independent_coordinates(c.q)
    r = identify.regressor(c.model, c.q, c.v, c.a, coordinates="independent")
    near(r.predict(), by.E.T @ (c.M @ c.a + c.h))
    assert r.Y.shape[:-1] == (len(c.free),)


def _linearize(c):
    """The matrices are the derivatives of the motion along the constraints, in the independent coordinates chosen."""
    zero, m = np.zeros(c.model.nv), c.model
    linear = al.linearize(m, c.q, zero, c.tau)
    n = c.N.shape[1]
    names = [name.removeprefix("v:") for name in linear.state_names[n:]]
    by = m.independent_coordinates(c.q, independent=names)
    d = m.forward_dynamics_derivatives(c.q, zero, c.tau)
    near(linear.A[n:, :n], (d.dq @ by.E)[by.indices])
    near(linear.A[n:, n:], (d.dv @ by.E)[by.indices])
    near(linear.A[:n], np.hstack([np.zeros((n, n)), np.eye(n)]))


def _simulate(c):
    """One short step is the acceleration; the constraints are kept."""
    run = al.simulate(c.model, c.q, c.v, duration=0.1, step=0.001, integrator="rk4", efforts=c.tau)
    near(run.accelerations[0], dense_solution(c.model, c.q, c.v, c.tau)[0])
    assert run.report.constraint_error < 1e-11
    assert run.report.energy_error < 1e-6


FUNCTIONS = {
    "innovations": _factors,
    "admittance": _admittance,
    "gibbs_function": _gibbs,
    "regressor": _regressor,
    "linearize": _linearize,
    "simulate": _simulate,
}


@pytest.mark.parametrize("name", {check: name for name, check in reversed(TABLE.items())}.values())
def test_methods(name, case):
    """By the first of the methods that a check covers."""
    TABLE[name](case)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, case):
    FUNCTIONS[name](case)


@functools.cache
def public(*classes):
    return {name for part in classes for name in vars(part) if not name.startswith("_")}


def test_no_method_is_left_out():
    assert public(Methods) - {"compute", "constrained_compute"} == set(TABLE) - {
        "check_tree",
        "is_constrained",
    }
    known = ON_SYMBOLS | set(REFUSED_ON_SYMBOLS) | set(TREE)
    assert public(Symbolic, ConstrainedSymbolic) - known == {"call"}  # any of them, by name

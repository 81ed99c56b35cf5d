"""Every public method of the dynamics on models with mimic joints, gears, a differential and a loop.

The table is checked against the registry of methods, so that none is forgotten. Each is compared with dense equations of
the tree and the constraint Jacobian (which is itself compared with differences of the residual), or refuses with a sentence.
"""

import dataclasses
import functools
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from constraint_helpers import dense_solution, tree_of
from scipy.linalg import null_space

import alembert as al
from alembert import identify
from alembert.dynamics import Dynamics
from alembert.dynamics.api import GRAPH_OF
from alembert.dynamics.programs import ALGORITHMS
from alembert.dynamics.symbolic import Symbolic
from alembert.errors import UnsupportedError

NEAR = 1e-9
"""relative to the terms: mechanisms of a few bodies, condition numbers up to some 1e4, rounding"""
DIFFERENCE = 1e-6
"""central differences with steps of 1e-5: h^2 and eps / h of the terms, which are some tens here"""

GRIPPER = """
<robot name="gripper_arm">
  <link name="base"/>
  {links}
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="5"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="hand"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.5"/><limit lower="-2" upper="2" effort="50" velocity="5"/>
    <dynamics damping="0.3" friction="0.1"/></joint>
  <joint name="left" type="prismatic"><parent link="hand"/><child link="finger_left"/><axis xyz="1 0 0"/>
    <origin xyz="0 0 0.3"/><limit lower="0" upper="0.05" effort="20" velocity="1"/></joint>
  <joint name="right" type="prismatic"><parent link="hand"/><child link="finger_right"/><axis xyz="-1 0 0"/>
    <origin xyz="0 0 0.3"/><limit lower="0" upper="0.05" effort="20" velocity="1"/>
    <mimic joint="left" multiplier="1.0" offset="0.0"/></joint>
</robot>
"""
LINK = """<link name="{name}"><inertial><origin xyz="{x} 0.01 {z}"/><mass value="{m}"/>
  <inertia ixx="{i}" ixy="0" ixz="0" iyy="{i}" iyz="0" izz="{i}"/></inertial></link>"""


def mimic(path):
    """An arm with a gripper whose right finger mimics the left, from URDF."""
    names = {"upper": (0.0, 0.25, 2.0, 0.05), "hand": (0.02, 0.1, 1.0, 0.01)}
    names |= {"finger_left": (0.0, 0.03, 0.2, 1e-4), "finger_right": (0.01, 0.03, 0.25, 2e-4)}
    links = "".join(LINK.format(name=n, x=x, z=z, m=m, i=i) for n, (x, z, m, i) in names.items())
    file = path / "gripper.urdf"
    file.write_text(GRIPPER.format(links=links))
    return al.load(file), np.array([0.4, -0.7, 0.02, 0.02])


def gear(path):
    """A motor that turns a link through a gear, on a link that swings."""
    builder = al.ModelBuilder("geared", gravity=(0, -9.81, 0))
    rod = al.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0))
    builder.body("arm", rod, joint=al.Revolute(), joint_name="arm")
    builder.body(
        "rotor", al.Inertia.cylinder(0.3, 0.05, 0.04), joint=al.Revolute(), joint_name="motor", parent="arm"
    )
    builder.body("link", rod, joint=al.Revolute(), joint_name="link", parent="arm", placement=(0.5, 0, 0))
    builder.coupling("gear", "motor", ["link"], [-12.0], offset=0.3)
    return builder.build(), np.array([0.5, 0.3 + 12 * 0.2, -0.2])


def differential(path):
    """A carrier that turns by half the sum of its two wheels."""
    builder = al.ModelBuilder("differential", gravity=(0, -9.81, 0))
    disc = al.Inertia.cylinder(1.0, 0.2, 0.05)
    for name in ("left", "right"):
        builder.body(name, disc, joint=al.Revolute(), joint_name=name)
    builder.body(
        "carrier", al.Inertia.rod(2.0, (0, 0, 0), (0.6, 0, 0)), joint=al.Revolute(), joint_name="carrier"
    )
    builder.coupling("differential", "carrier", ["left", "right"], [0.5, 0.5])
    return builder.build(), np.array([0.3, 0.7, 0.5])


def four_bar(path):
    """Bars of different lengths, a loop closed by a revolute joint; a drive at the crank."""
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    lengths = {"crank": 0.4, "coupler": 1.0, "rocker": 0.8}
    bars = {n: al.Inertia.rod(l, (0, 0, 0), (l, 0, 0)) for n, l in lengths.items()}
    builder.body("crank", bars["crank"], joint=al.Revolute(), joint_name="crank")
    builder.body(
        "coupler",
        bars["coupler"],
        joint=al.Revolute(),
        joint_name="coupler",
        parent="crank",
        placement=(0.4, 0, 0),
    )
    builder.body("rocker", bars["rocker"], joint=al.Revolute(), joint_name="rocker", placement=(0.9, 0, 0))
    builder.frame("end", "coupler", (1.0, 0, 0)).frame("top", "rocker", (0.8, 0, 0))
    builder.loop("pin", al.Revolute(), "end", "top")
    model = builder.build()
    return model, model.assemble([1.0, -0.3, 1.7], fixed=["crank"]).q


@pytest.fixture(scope="module", params=[mimic, gear, differential, four_bar], ids=lambda f: f.__name__)
def case(request, tmp_path_factory):
    """A model, a state on its constraints, and the dense oracle."""
    model, q = request.param(tmp_path_factory.mktemp("model"))
    rng = np.random.default_rng(5)
    G, tree = model.constraint_jacobian(q), tree_of(model)
    N = null_space(G, rcond=1e-9)
    v = N @ rng.normal(size=N.shape[1])
    gamma = model.constraint_bias(q, v)
    a = N @ rng.normal(size=N.shape[1]) - np.linalg.pinv(G, rcond=1e-9) @ gamma
    tau, x = rng.normal(size=(2, model.nv))
    frame = model.bodies[-1].name
    M, h = tree.mass_matrix(q), tree.bias_forces(q, v)
    A = N @ np.linalg.solve(N.T @ M @ N, N.T)
    return SimpleNamespace(
        model=model, tree=tree, q=q, v=v, a=a, tau=tau, x=x, G=G, gamma=gamma, N=N, A=A, M=M, h=h, frame=frame,
        F=rng.normal(size=6), J=tree.frame_jacobian(q, frame), free=tuple(model.independent_coordinates(q).names),
    )  # fmt: skip


def near(found, expected, tolerance=NEAR):
    expected = np.asarray(expected)
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance * (1 + np.abs(expected).max(initial=0))
    )


def slope(function, *along, h=1e-5):
    """The derivative of function(s) at 0, by central differences."""
    return (np.asarray(function(h)) - np.asarray(function(-h))) / (2 * h)


def moved(c, d, s):
    return c.model.assemble(c.model.integrate(c.q, s * d)).q


# --- the table ------------------------------------------------------------------------------------------------

TABLE = {}


def covers(*names):
    def enter(check):
        for name in names:
            assert name not in TABLE, name
            TABLE[name] = check
        return check

    return enter


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


@covers("forward_dynamics_derivatives", "constrained_dynamics_derivatives")
def _(c):
    """Along the constraints: the state moves on them. dtau is N (N^T M N)^-1 N^T."""
    wrenches = {c.frame: c.F}
    d = c.model.forward_dynamics_derivatives(c.q, c.v, c.tau, wrenches=wrenches)
    full = c.model.constrained_dynamics_derivatives(c.q, c.v, c.tau, wrenches=wrenches)
    near(d.dtau, c.A)
    near(full.dq, d.dq)
    near(d.dwrenches[c.frame], c.A @ c.J.T)
    _along(c, d, lambda q, v: c.model.forward_dynamics(q, v, c.tau, wrenches=wrenches))


@covers("inverse_dynamics_derivatives", "constrained_inverse_dynamics_derivatives")
def _(c):
    wrenches = {c.frame: c.F}
    d = c.model.inverse_dynamics_derivatives(c.q, c.v, c.a, wrenches=wrenches)
    smallest = np.linalg.pinv(c.N.T) @ c.N.T
    near(d.da, smallest @ c.M)
    near(d.dwrenches[c.frame], -smallest @ c.J.T)
    full = c.model.constrained_inverse_dynamics_derivatives(c.q, c.v, c.a, wrenches=wrenches)
    near(full.dv, d.dv)
    step = c.N @ np.ones(c.N.shape[1])

    def efforts(s):
        """Driven by all joints, from the dense equations at the acceleration a, which need not keep the constraints."""
        q = moved(c, step, s)
        N = null_space(c.model.constraint_jacobian(q), rcond=1e-9)
        r = c.tree.inverse_dynamics(q, c.v, c.a, wrenches=wrenches)
        return np.linalg.pinv(N.T) @ N.T @ r

    along = slope(lambda s: c.model.difference(c.q, moved(c, step, s)))
    near(d.dq @ along, slope(efforts), DIFFERENCE)
    fast = slope(lambda s: smallest @ c.tree.inverse_dynamics(c.q, c.v + s * c.x, c.a, wrenches=wrenches))
    near(d.dv @ c.x, fast, DIFFERENCE)


def _along(c, d, function):
    """dq, dv against differences on the constraint surface."""
    step = c.N @ np.ones(c.N.shape[1])

    def state(s):
        q = moved(c, step, s)
        G = c.model.constraint_jacobian(q)
        return q, c.v - np.linalg.pinv(G, rcond=1e-9) @ G @ c.v

    dq = slope(lambda s: c.model.difference(c.q, state(s)[0]))
    dv = slope(lambda s: state(s)[1])
    near(d.dq @ dq + d.dv @ dv, slope(lambda s: function(*state(s))), 10 * DIFFERENCE)
    fast = c.N @ np.arange(1.0, c.N.shape[1] + 1)
    near(d.dv @ fast, slope(lambda s: function(c.q, c.v + s * fast)), DIFFERENCE)


@covers("hybrid_dynamics_derivatives")
def _(c):
    one = c.free[0]
    k = c.model.speed_names.index(one)
    given = {name: c.tau[j] for j, name in enumerate(c.model.speed_names) if name != one}
    d = c.model.hybrid_dynamics_derivatives(c.q, c.v, accelerations={one: 0.7}, torques=given)

    def both(q, v):
        found = c.model.hybrid_dynamics(q, v, accelerations={one: 0.7}, torques=given)
        return np.stack([found.accelerations, found.efforts])

    _along(c, d, both)
    changed = slope(
        lambda s: np.stack(
            dataclasses.astuple(
                c.model.hybrid_dynamics(c.q, c.v, accelerations={one: 0.7 + s}, torques=given)
            )
        )
    )
    near(d.dgiven[..., k], changed, DIFFERENCE)


@covers("jvp", "vjp")
def _(c):
    """Of forward, inverse and hybrid dynamics through the constraints, of the terms those of the tree."""
    wrenches, rng = {c.frame: c.F}, np.random.default_rng(1)
    for name, third, d in (
        ("forward_dynamics", c.tau, c.model.forward_dynamics_derivatives(c.q, c.v, c.tau, wrenches=wrenches)),
        ("inverse_dynamics", c.a, c.model.inverse_dynamics_derivatives(c.q, c.v, c.a, wrenches=wrenches)),
    ):
        last = d.dtau if name == "forward_dynamics" else d.da
        matrices = [d.dq, d.dv, last, d.dwrenches[c.frame]]
        along = [rng.normal(size=A.shape[1]) for A in matrices]
        at = (c.q, c.v, third)
        moved_ = {c.frame: along[3]}
        value, change = c.model.jvp(name, at, along[:3], wrenches=wrenches, along_wrenches=moved_)
        near(value, getattr(c.model, name)(*at, wrenches=wrenches))
        near(change, sum(A @ x for A, x in zip(matrices, along, strict=True)))
        *gradients, by_frame = c.model.vjp(name, at, c.x, wrenches=wrenches)
        for found, A in zip([*gradients, by_frame[c.frame]], matrices, strict=True):
            near(found, c.x @ A)
    at = (c.q, c.v)
    for mode in ("jvp", "vjp"):
        given = at if mode == "jvp" else c.x
        for found, expected in zip(
            getattr(c.model, mode)("bias_forces", at, given),
            getattr(c.tree, mode)("bias_forces", at, given),
            strict=True,
        ):
            near(found, expected)
    _hybrid_products(c, wrenches, rng)


def _hybrid_products(c, wrenches, rng):
    """Against differences of hybrid dynamics while the state moves on the constraints, and what is given changes."""
    n, one = c.model.nv, c.model.speed_names.index(c.free[0])
    free = np.ones(n)
    free[one] = 0
    step, dtau, da = c.N @ np.ones(c.N.shape[1]), *rng.normal(size=(2, n))
    dF, w = rng.normal(size=6), rng.normal(size=(2, n))

    def at(s):
        q = moved(c, step, s)
        G = c.model.constraint_jacobian(q)
        return q, c.v - np.linalg.pinv(G, rcond=1e-9) @ G @ c.v, c.tau + s * dtau, c.a + s * da, free

    def both(s):
        q, v, tau, a, _ = at(s)
        found = c.model.hybrid_dynamics(
            q,
            v,
            accelerations={c.free[0]: a[one]},
            torques={x: tau[k] for k, x in enumerate(c.model.speed_names) if k != one},
            wrenches={c.frame: c.F + s * dF},
        )
        return np.stack(dataclasses.astuple(found))

    along = (
        slope(lambda s: c.model.difference(c.q, at(s)[0])),
        slope(lambda s: at(s)[1]),
        dtau,
        da,
        0 * free,
    )
    name, here = "hybrid_dynamics", (c.q, c.v, c.tau, c.a, free)
    value, change = c.model.jvp(name, here, along, wrenches=wrenches, along_wrenches={c.frame: dF})
    near(value, both(0))
    near(change, slope(both), 10 * DIFFERENCE)
    *gradients, by_frame = c.model.vjp(name, here, tuple(w), wrenches=wrenches)
    dots = [g @ x for g, x in zip([*gradients, by_frame[c.frame]], [*along, dF], strict=True)]
    near(sum(dots), np.sum(w * np.asarray(change)))
    near(gradients[2][one], 0)  # the effort of what is prescribed is found, not given
    near(gradients[3], gradients[3] * (1 - free))
    # all free: forward dynamics
    _, (da_, dtau_) = c.model.jvp(name, (*here[:4], 0 * free + 1), along)
    near(da_, c.model.jvp("forward_dynamics", here[:3], along[:3])[1])
    near(dtau_, dtau)


@covers("hessian", "second_derivatives")
def _(c):
    """Of forward, inverse and hybrid dynamics, symmetric, the derivative of the gradient; of the terms those of the tree."""
    at = (c.q, c.v, c.tau)
    H = c.model.hessian("forward_dynamics", at, c.x)
    near(H, H.T)
    tensor = c.model.second_derivatives("forward_dynamics", at)
    near(np.tensordot(c.x, tensor, axes=1), H)
    # linear in tau: d2/dtau2 = 0, and d2/(dv dtau) = 0 (friction aside, which does not depend on tau)
    n = c.model.nv
    near(H[2 * n :, n:], 0)
    near(c.model.hessian("kinetic_energy", at[:2], 1.0), c.tree.hessian("kinetic_energy", at[:2], 1.0))
    free = np.ones(n)
    free[[c.model.speed_names.index(x) for x in c.free]] = 0
    _hessian_along(c, "inverse_dynamics", (c.a,), c.x)
    _hessian_along(c, "hybrid_dynamics", (c.tau, c.a, free), (c.x, c.tau))
    _hessian_along(c, "hybrid_dynamics", (c.tau, c.a, 0 * free + 1), (c.x, c.tau))
    with pytest.raises(
        UnsupportedError, match="hessian: inverse_dynamics_derivatives of a model with loops, couplings"
    ):
        c.model.hessian("inverse_dynamics_derivatives", at, c.x)


def _hessian_along(c, name, given, weight):
    """Against differences of the gradient (which comes from the constrained system) along the constraints."""
    n, wrenches = c.model.nv, {c.frame: c.F}
    at = (c.q, c.v, *given)
    H = c.model.hessian(name, at, weight, wrenches=wrenches)
    near(H, H.T)
    tensor = c.model.second_derivatives(name, at, wrenches=wrenches)
    parts = zip(weight, tensor, strict=True) if isinstance(tensor, tuple) else [(weight, tensor)]
    near(sum(np.tensordot(w, x, axes=1) for w, x in parts), H)
    near(H[2 * n :, n:], 0)  # linear in what is given and the wrench, apart from the configuration
    near(c.model.hessian(name, (np.stack([c.q, c.q]), *at[1:]), weight, wrenches=wrenches)[1], H)
    step, rng = c.N @ np.ones(c.N.shape[1]), np.random.default_rng(2)
    fast, dF = c.N @ rng.normal(size=c.N.shape[1]), rng.normal(size=6)
    changes = rng.normal(size=(len(given), n)) * [[k < 2] for k in range(len(given))]  # free is a choice

    def state(s):
        q = moved(c, step, s)
        G = c.model.constraint_jacobian(q)
        v = c.v + s * fast
        v = v - np.linalg.pinv(G, rcond=1e-9) @ G @ v
        return q, v, *(x + s * d for x, d in zip(given, changes, strict=True))

    def gradient(s):
        *found, by_frame = c.model.vjp(name, state(s), weight, wrenches={c.frame: c.F + s * dF})
        return np.concatenate([*found, by_frame[c.frame]])

    along = np.concatenate(
        [slope(lambda s: c.model.difference(c.q, state(s)[0])), slope(lambda s: state(s)[1]), *changes, dF]
    )
    near(H @ along, slope(gradient), 10 * DIFFERENCE)


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
        c.model.check_tree("x")


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
    for name in ALGORITHMS:
        if name in GRAPH_OF:
            continue
        if name in ("hybrid_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
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
    homes = ("alembert.dynamics.", "alembert.constraints.")
    parts = [part for part in Dynamics.__mro__ if part.__module__.startswith(homes)]
    assert public(*parts) == set(TABLE)
    known = ON_SYMBOLS | set(REFUSED_ON_SYMBOLS) | set(TREE)
    assert public(Symbolic) - known == set()

"""Derivatives through constraints beyond those of states: parameters, inverse dynamics, Hessians, and compiled code."""

import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest
from constraint_helpers import tree_of

import alembert as al
from alembert.errors import ArgumentError, NumericalError, UnsupportedError

NAMES = ("length", "mass", "ratio", "offset")


@pytest.fixture(scope="module")
def linkage():
    """A four-bar with a geared wheel: a length, a mass, a ratio and the place of a loop's frame are parameters."""
    builder = al.ModelBuilder("linkage", gravity=(0, -9.81, 0))
    length, mass = builder.parameter("length", 1.1), builder.parameter("mass", 0.8)
    ratio, offset = builder.parameter("ratio", 2.0), builder.parameter("offset", 0.05)
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("crank", al.Inertia.point(mass, (0.5, 0, 0)), joint=al.Revolute(), joint_name="crank")
    builder.body(
        "coupler", rod, joint=al.Revolute(), parent="crank", placement=(length, 0, 0), joint_name="coupler"
    )
    builder.body("rocker", rod, joint=al.Revolute(), placement=(1, 0, 0), joint_name="rocker")
    builder.body(
        "wheel",
        al.Inertia.cylinder(1.0, 0.1, 0.02),
        joint=al.Revolute(),
        placement=(0, 0, 1),
        joint_name="wheel",
    )
    builder.frame("end", "coupler", (1, offset, 0))
    builder.frame("top", "rocker", (1, 0, 0))
    builder.loop("pin", al.Revolute(), "end", "top")
    builder.coupling("gear", "wheel", ["crank"], [ratio])
    return builder.build()


@pytest.fixture(scope="module")
def state(linkage):
    q = linkage.assemble([1.3, -1.2, 1.4, 2.6], fixed=["crank"]).q
    v = linkage.assemble(q, [1.5, 0, 0, 0], fixed=["crank"]).v
    return q, v, np.array([0.7, -0.2, 0.4, 0.1])


def chosen_rows(m, q):
    return m.constrained_compute.rows.system("test", None).masks_at("test", q)[0] > 0


def accelerations(m, q, v, tau, rows, parameters=None, wrenches=None):
    """The dense equations of the chosen rows: no tolerance, no choice."""
    tree = tree_of(m)
    M = tree.mass_matrix(q, parameters=parameters)
    bias = tree.bias_forces(q, v, parameters=parameters, wrenches=wrenches)
    R = m.constraint_jacobian(q, parameters=parameters)[rows]
    gamma = m.constraint_bias(q, v, parameters=parameters)[rows]
    K = np.block([[M, -R.T], [R, np.zeros((len(R), len(R)))]])
    return np.linalg.solve(K, np.concatenate([tau - bias, -gamma]))[: m.nv]


def central(f, h=1e-5):
    """Fourth order: error h^4, rounding 1e-15/h."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_forward_dynamics(linkage, state, name):
    q, v, tau = state
    push = {"end": np.array([0.1, 0.2, 0.3, 1.0, -2.0, 0.5])}
    d = linkage.constrained_dynamics_derivatives(q, v, tau, wrenches=push, sensitive_to=NAMES)
    rows, p = chosen_rows(linkage, q), linkage.parameter_values
    assert rows.sum() == 3
    expected = central(lambda h: accelerations(linkage, q, v, tau, rows, {name: p[name] + h}, push), 1e-4)
    np.testing.assert_allclose(
        d.dparameters[name], expected, rtol=0, atol=1e-8 * (1 + np.abs(expected).max())
    )


def test_products_along_parameters(linkage, state):
    """jvp and vjp take the vector of parameters as they do for trees."""
    q, v, tau = state
    d = linkage.constrained_dynamics_derivatives(q, v, tau, sensitive_to=NAMES)
    matrix = np.stack([d.dparameters[name] for name in NAMES], axis=-1)
    rng = np.random.default_rng(0)
    dq, dv, dtau, w = rng.normal(size=(4, 4))
    dp = rng.normal(size=4)
    p = np.array([*linkage.parameter_values.values()])
    _, change = linkage.jvp("forward_dynamics", (q, v, tau, p), (dq, dv, dtau, dp))
    np.testing.assert_allclose(change, d.dq @ dq + d.dv @ dv + d.dtau @ dtau + matrix @ dp, rtol=1e-10)
    back = linkage.vjp("forward_dynamics", (q, v, tau), w)
    assert len(back) == 4  # as for a tree with parameters
    np.testing.assert_allclose(back[3], matrix.T @ w, rtol=1e-12)


def test_hybrid_products(linkage, state):
    """Along parameters, against differences with the minimal set held; batches; one speed of each set prescribed."""
    q, v, tau = state
    name, n, rng = "hybrid_dynamics", linkage.nv, np.random.default_rng(3)
    k = linkage.speed_names.index(linkage.independent_coordinates(q).names[0])
    free, given = np.ones(n), rng.normal(size=n)
    free[k] = 0
    push, rows = {"end": np.array([0.1, 0.2, 0.3, 1.0, -2.0, 0.5])}, chosen_rows(linkage, q)
    p, dp, zero = np.array([*linkage.parameter_values.values()]), rng.normal(size=4), np.zeros(n)
    at = (q, v, tau, given, free)

    def both(h):
        """The effort that gives the acceleration, which it changes linearly."""
        values = dict(zip(linkage.parameter_values, p + h * dp, strict=True))

        def motion(x):
            return accelerations(linkage, q, v, tau * free + x * (1 - free), rows, values, push)

        a, per = motion(0.0), motion(1.0) - motion(0.0)
        effort = (given[k] - a[k]) / per[k]
        return np.concatenate([a + effort * per, tau * free + effort * (1 - free)])

    value, change = linkage.jvp(name, (*at, p), (*[zero] * 5, dp), wrenches=push)
    expected = central(both, 1e-4)
    np.testing.assert_allclose(np.concatenate(value), both(0.0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        np.concatenate(change), expected, rtol=0, atol=1e-8 * (1 + np.abs(expected).max())
    )
    weights = rng.normal(size=(2, n))
    back = linkage.vjp(name, at, tuple(weights), wrenches=push)
    assert [x.shape for x in back[:-1]] == [(n,)] * 5 + [(4,)]
    assert back[-1]["end"].shape == (6,)
    np.testing.assert_allclose(back[5] @ dp, weights.ravel() @ np.concatenate(change), rtol=1e-9)
    np.testing.assert_array_equal(back[4], 0)
    along = rng.normal(size=(4, n))
    one = linkage.jvp(name, at, (*along, zero), wrenches=push)
    for two in (
        linkage.jvp(name, (np.stack([q, q]), *at[1:]), (*along, zero), wrenches=push),
        linkage.jvp(name, (*at[:4], np.stack([free, free])), (*along, zero), wrenches=push),
        linkage.jvp(name, at, (np.stack([along[0], along[0]]), *along[1:], zero), wrenches=push),
    ):
        for part in range(2):
            np.testing.assert_allclose(two[1][part][1], one[1][part], rtol=1e-10, atol=1e-10)
    pair = linkage.vjp(
        name, (*at[:2], np.stack([tau, tau]), *at[3:]), (np.stack([weights[0]] * 2), weights[1])
    )
    np.testing.assert_allclose(pair[2][1], linkage.vjp(name, at, tuple(weights))[2], rtol=1e-10, atol=1e-10)


def test_parameters_without_active_constraints(linkage, state):
    q, v, tau = state
    d = linkage.constrained_dynamics_derivatives(q, v, tau, active=[], sensitive_to=["mass"])
    tree = linkage.replace(loops=(), couplings=())
    m = linkage.parameter_values["mass"]
    expected = central(lambda h: tree.forward_dynamics(q, v, tau, parameters={"mass": m + h}), 1e-4)
    np.testing.assert_allclose(d.dparameters["mass"], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("actuated", [["crank"], ["crank", "rocker", "wheel"]])
def test_inverse_dynamics(linkage, state, actuated):
    """Differences of the efforts that the conditions of optimality give, by dense solution."""
    q, v, _ = state
    found = linkage.independent_coordinates(q, v)
    a = found.E @ np.ones(found.E.shape[1]) + found.rate
    weights = {"rocker": 3.0}
    options = {"actuated": actuated, "weights": weights}
    d = linkage.constrained_inverse_dynamics_derivatives(q, v, a, sensitive_to=NAMES, **options)
    direct = linkage.constrained_inverse_dynamics(q, v, a, **options).efforts
    np.testing.assert_allclose(d.efforts, direct, rtol=0, atol=1e-9)
    rows, tree = chosen_rows(linkage, q), linkage.replace(loops=(), couplings=())
    driven = [linkage.v_slice(name).start for name in actuated]
    w = np.array([3.0 if name == "rocker" else 1.0 for name in actuated])

    def efforts(q, v, a, parameters=None):
        r = tree.inverse_dynamics(q, v, a, parameters=parameters)
        R = linkage.constraint_jacobian(q, parameters=parameters)[rows]
        S = np.eye(4)[:, driven]
        n, m = len(driven), len(R)
        K = np.zeros((n + m + 4, n + m + 4))
        K[:n, :n], K[:n, n + m :], K[n + m :, :n] = np.diag(w), S.T, S
        K[n : n + m, n + m :], K[n + m :, n : n + m] = R, R.T
        u = np.zeros(4)
        u[driven] = np.linalg.solve(K, np.concatenate([np.zeros(n + m), r]))[:n]
        return u

    for k, e in enumerate(np.eye(4)):
        for matrix, f in (
            (d.dq, lambda h, e=e: efforts(q + h * e, v, a)),
            (d.dv, lambda h, e=e: efforts(q, v + h * e, a)),
            (d.da, lambda h, e=e: efforts(q, v, a + h * e)),
        ):
            np.testing.assert_allclose(matrix[:, k], central(f, 1e-4), rtol=0, atol=1e-7)
    for name, value in linkage.parameter_values.items():
        expected = central(lambda h, name=name, value=value: efforts(q, v, a, {name: value + h}), 1e-4)
        np.testing.assert_allclose(d.dparameters[name], expected, rtol=0, atol=1e-7)
    batch = linkage.constrained_inverse_dynamics_derivatives(np.stack([q, q]), v, a, **options)
    np.testing.assert_allclose(batch.dq[1], d.dq, rtol=1e-12, atol=1e-12)


def test_hessian_and_second_derivatives(linkage, state):
    """Differences of the first derivatives, with the minimal set held (that of the state)."""
    q, v, tau = state
    w = np.array([0.3, -1.0, 0.5, 0.2])
    H = linkage.hessian("forward_dynamics", (q, v, tau), w)
    assert H.shape == (12, 12)
    np.testing.assert_allclose(H, H.T, rtol=0, atol=1e-9 * np.abs(H).max())
    rows = chosen_rows(linkage, q)

    def gradient(x):
        def value(y):
            return w @ accelerations(linkage, y[:4], y[4:8], y[8:], rows)

        return np.array([central(lambda h, e=e: value(x + h * e), 1e-3) for e in np.eye(12)])

    x = np.concatenate([q, v, tau])
    expected = np.array([central(lambda h, e=e: gradient(x + h * e), 1e-3) for e in np.eye(12)])
    np.testing.assert_allclose(H, expected, rtol=0, atol=2e-6 * np.abs(expected).max())  # h^4 and 1e-15/h^2
    tensor = linkage.second_derivatives("forward_dynamics", (q, v, tau))
    assert tensor.shape == (4, 12, 12)
    np.testing.assert_allclose(np.einsum("i,ijk->jk", w, tensor), H, rtol=0, atol=1e-10 * np.abs(H).max())
    batch = linkage.hessian("forward_dynamics", (np.stack([q, q]), v, tau), w)
    np.testing.assert_allclose(batch[1], H, rtol=1e-9, atol=1e-9)
    pushed = linkage.hessian("forward_dynamics", (q, v, tau), w, wrenches={"end": np.ones(6)})
    assert pushed.shape == (18, 18)


def test_hessian_of_inverse_dynamics(linkage, state):
    """Differences of the efforts by dense solution, in all directions, also those that leave the constraints."""
    q, v, a = state
    w = np.array([0.3, -1.0, 0.5, 0.2])
    rows = chosen_rows(linkage, q)
    H = linkage.hessian("inverse_dynamics", (q, v, a), w)

    def value(x):
        y = [linkage.integrate(q, x[:4]), v + x[4:8], a + x[8:]]
        R = linkage.constraint_jacobian(y[0])[rows]
        N = np.linalg.svd(R)[2][len(R) :].T
        return w @ np.linalg.pinv(N.T) @ N.T @ tree_of(linkage).inverse_dynamics(*y)

    rng = np.random.default_rng(0)
    for d in rng.normal(size=(3, 12)):
        h = 1e-3
        f = [value(s * h * d) for s in (-2, -1, 0, 1, 2)]
        expected = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * h**2)
        np.testing.assert_allclose(d @ H @ d, expected, rtol=0, atol=1e-6 * np.abs(H).max())  # h^4, 1e-15/h^2
    p = np.array([*linkage.parameter_values.values()])
    heavy = linkage.hessian("inverse_dynamics", (q, v, a, p * [1, 2, 1, 1]), w)
    assert heavy.shape == H.shape
    assert not np.allclose(heavy, H)
    al.check.derivatives(linkage, "inverse_dynamics", states=2, second=True, show=False).raise_if_above()


def test_a_batch_that_needs_two_choices():
    """A bead on a circle: at its right y moves freely, at its top x does."""
    builder = al.ModelBuilder("bead", gravity=(0, -9.81, 0))
    builder.body("carriage", al.Inertia.point(0.1, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)), joint_name="x")
    builder.body(
        "bead",
        al.Inertia.point(1, (0, 0, 0)),
        joint=al.Prismatic((0, 1, 0)),
        joint_name="y",
        parent="carriage",
    )
    model = builder.equation("circle", "x**2 + y**2 - 1", {"x": "x", "y": "y"}).build()
    q, zero = np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2)
    for one in q:
        assert np.isfinite(model.hessian("inverse_dynamics", (one, zero, zero), zero)).all()
    assert model.hessian("forward_dynamics", (q, zero, zero), zero).shape == (2, 6, 6)
    with pytest.raises(
        NumericalError, match="hessian: the constraint rows or speeds that are independent at the first state"
    ):
        model.hessian("inverse_dynamics", (q, zero, zero), zero)
    with pytest.raises(ArgumentError, match=r"hessian: v breaks .*circle"):
        model.hessian("inverse_dynamics", (q[0], np.ones(2), zero), zero)
    with pytest.raises(
        ArgumentError, match="hessian: takes at least one state, to choose constraint rows at"
    ):
        model.hessian("inverse_dynamics", (np.zeros((0, 2)), zero, zero), zero)


@pytest.mark.parametrize("names", [["length"], ["mass", "ratio", "offset"]])
def test_linear_models_with_parameters(linkage, names):
    """E and F keep the loops closed: states of the independent joint stay, the others follow the parameter."""
    q0 = linkage.assemble([1.3, -1.2, 1.4, 2.6], fixed=["crank"]).q
    v0 = linkage.assemble(q0, [1.5, 0, 0, 0], fixed=["crank"]).v
    tau = np.array([0.7, 0.0, 0.0, 0.1])
    linear = al.linearize(
        linkage, q0, v0, tau, parameters=names, outputs=["q:rocker", "v:rocker", "a:rocker"]
    )
    (free,) = linear.displacements
    joint = linkage.speed_names[free]
    for k, name in enumerate(names):
        value = linkage.parameter_values[name]

        def at(h, name=name, value=value):
            p = {name: value + h}
            q = linkage.assemble(q0, fixed=[joint], parameters=p).q
            v = linkage.assemble(q, v0, fixed=[joint], parameters=p).v
            a = linkage.constrained_dynamics(q, v, tau, parameters=p).accelerations
            return np.array([v[free], a[free], q[2], v[2], a[2]])

        change = central(at, 1e-4)
        np.testing.assert_allclose(linear.E[:, k], change[:2], rtol=0, atol=1e-7)
        np.testing.assert_allclose(linear.F[:, k], change[2:], rtol=0, atol=1e-7)


def test_compiled_dynamics(linkage, state):
    """The same accelerations, forces and wrenches as the method; NaN off the surface."""
    q, v, tau = state
    p = np.array([*linkage.parameter_values.values()])
    kernel = linkage.compile("forward_dynamics", at=q)
    result = linkage.constrained_dynamics(q, v, tau)
    np.testing.assert_allclose(kernel(q, v, tau, p), result.accelerations, rtol=1e-10, atol=1e-10)
    batch = linkage.compile("constrained_dynamics", at=q, batch=True)
    a, forces, wrenches = batch(np.stack([q] * 9), v, tau, p)
    assert a.shape == (9, 4)
    np.testing.assert_allclose(a[8], result.accelerations, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(wrenches[4, 0], result.reactions["pin"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(forces[0, -1], result.reactions["gear"], rtol=0, atol=1e-9)
    assert np.isnan(kernel(q + np.array([0.5, 0, 0, 0]), v, tau, p)).all()
    push = np.arange(6.0)
    with_push = linkage.compile("forward_dynamics", at=q, wrenches=["end"])
    expected = linkage.constrained_dynamics(q, v, tau, wrenches={"end": push}).accelerations
    np.testing.assert_allclose(with_push(q, v, tau, push, p), expected, rtol=1e-9, atol=1e-9)


def test_symbolic_with_wrenches(linkage, state):
    q, v, tau = state
    push = np.arange(6.0)
    x = [ca.SX.sym(name, 4) for name in ("q", "v", "tau")]
    a, _ = linkage.symbolic.constrained_dynamics(*x, at=q, wrenches={"end": push})
    expected = linkage.constrained_dynamics(q, v, tau, wrenches={"end": push}).accelerations
    found = np.asarray(ca.Function("a", x, [a])(q, v, tau)).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    "name",
    [
        "forward_dynamics",
        "constrained_dynamics",
        "inverse_dynamics",
        "constrained_inverse_dynamics",
        "mass_matrix",
    ],
)
def test_exported_c(linkage, state, tmp_path, name):
    """The exported test program compares the compiled C with values of Python."""
    drives = {"actuated": linkage.independent_coordinates(state[0]).names} if "inverse" in name else {}
    of_motion = {} if name == "mass_matrix" else {"at": state[0], "wrenches": ["end"]}
    files = linkage.export_c(name, tmp_path, **of_motion, **drives)
    assert [file.name for file in files] == [f"{name}.h", f"{name}.c", f"{name}_test.c"]
    program = tmp_path / "test"
    sources = [str(tmp_path / f"{name}{ending}.c") for ending in ("", "_test")]
    subprocess.run(["cc", "-std=c99", "-O1", *sources, "-lm", "-o", str(program)], check=True)
    done = subprocess.run([str(program)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "nan" not in done.stdout


def test_messages(linkage, state):
    q, v, tau = state
    with pytest.raises(ArgumentError, match=r"sensitive_to: no parameter 'lenght'.*'length'"):
        linkage.constrained_dynamics_derivatives(q, v, tau, sensitive_to=["lenght"])
    with pytest.raises(ArgumentError, match="sensitive_to is 'length', expected a list of names"):
        linkage.constrained_dynamics_derivatives(q, v, tau, sensitive_to="length")
    with pytest.raises(ArgumentError, match=r"compile: forward_dynamics of a model with loops.* needs at="):
        linkage.compile("forward_dynamics")
    with pytest.raises(ArgumentError, match=r"export_c: forward_dynamics of a model with loops.* needs at="):
        linkage.export_c("forward_dynamics", "unused")
    with pytest.raises(ArgumentError, match="compile: at is for the dynamics of models with loops"):
        linkage.compile("mass_matrix", at=q)
    with pytest.raises(
        ArgumentError, match="compile: forward_dynamics takes no actuated joints and no weights"
    ):
        linkage.compile("forward_dynamics", at=q, actuated=["wheel"])
    with pytest.raises(UnsupportedError, match="hybrid_dynamics: the loop 'pin' would be ignored"):
        linkage.compile("hybrid_dynamics", at=q)
    with pytest.raises(
        UnsupportedError, match="compile: forward_dynamics of a model with loops cannot be rolled"
    ):
        linkage.compile("forward_dynamics", at=q, lowering="rolled")
    arm = al.library.pendulum()
    with pytest.raises(ArgumentError, match="compile: at is for the dynamics of models with loops"):
        arm.compile("forward_dynamics", at=[0.0])
    with pytest.raises(ArgumentError, match="export_c: at is for the dynamics of models with loops"):
        arm.export_c("forward_dynamics", "unused", at=[0.0])
    with pytest.raises(ArgumentError, match="export_c: constrained_dynamics is for models with loops"):
        arm.export_c("constrained_dynamics", "unused", at=[0.0])
    with pytest.raises(ArgumentError, match="hessian: forward_dynamics takes 4 arguments, got 2"):
        linkage.hessian("forward_dynamics", (q, v), tau)
    with pytest.raises(ArgumentError, match="jvp: forward_dynamics takes 4 arguments, got 2"):
        linkage.jvp("forward_dynamics", (q, v, tau), (q, v))
    with pytest.raises(
        NumericalError, match=r"\('wheel'\) drives 1 of the 2 degrees of freedom .* have no derivative"
    ):
        linkage.constrained_inverse_dynamics_derivatives(
            q, v, tau, actuated=["wheel"], active=["pin"], closure_tolerance=1.0
        )


def test_products_with_what_is_not_finite(linkage, state):
    q, v, tau = state
    bad = np.full((3, linkage.nv), 1.0)
    bad[1, 2] = np.inf
    with pytest.raises(NumericalError, match=r"jvp: the result is not finite; dv is inf at entry 2"):
        linkage.jvp("forward_dynamics", (q, v, tau), (v, bad[1], tau))
    with pytest.raises(NumericalError, match=r"vjp: the result is not finite; weight of a is inf at entry 2"):
        linkage.vjp("forward_dynamics", (q, v, tau), bad[1])
    with pytest.warns(al.AlembertWarning, match="1 of 3 states have no finite result, the first at 1"):
        _, change = linkage.jvp("forward_dynamics", (q, v, tau), (v, bad, tau))
    assert np.isfinite(change[[0, 2]]).all()


def test_messages_of_products(linkage, state):
    q, v, tau = state
    zero, free = 0 * v, np.ones(4)
    at = (q, v, tau, zero, free)

    def refusal(mode, *arguments, **options):
        with pytest.raises(ArgumentError) as caught:
            getattr(linkage, mode)("hybrid_dynamics", *arguments, **options)
        return str(caught.value)

    along = [zero] * 5
    assert refusal("jvp", at, (*along[:4], free)) == (
        "jvp: dfree is not zero: which speeds are free is a choice that does not vary"
    )
    assert refusal("jvp", (*at[:4], 0.5 * free), along).startswith(
        "jvp: free is [0.5 0.5 0.5 0.5], expected 1 for"
    )
    assert refusal("jvp", (*at[:4], np.eye(4)), along).startswith(
        "jvp: free differs between states; of a model"
    )
    assert refusal("jvp", at, zero).startswith("jvp: hybrid_dynamics takes a tuple of arguments, got array")
    assert refusal("vjp", at[:3], (zero, zero)) == "vjp: hybrid_dynamics takes 6 arguments, got 3"
    assert refusal("vjp", at, zero).startswith("vjp: hybrid_dynamics has 2 results (a, effort); give a tuple")
    assert refusal("vjp", at, (zero, zero[:3])) == "vjp: weight of effort has shape (3,), expected (..., 4)"
    assert refusal("jvp", at, (zero[:2], *along[1:])) == "jvp: dq has shape (2,), expected (..., 4)"
    assert refusal("jvp", (np.stack([q, q]), *at[1:]), (np.zeros((3, 4)), *along[1:])) == (
        "jvp: the batch dimensions do not go together: the state (2,), dq (3,)"
    )
    assert refusal("jvp", at, along, frame="end") == "jvp: hybrid_dynamics takes no frame"
    assert refusal("vjp", at, (zero, zero), about="world") == "vjp: hybrid_dynamics takes no about"
    assert refusal("hessian", (*at[:4], np.eye(4)), (zero, zero)).startswith(
        "hessian: free differs between states"
    )
    assert refusal("hessian", at[:4], (zero, zero)) == "hessian: hybrid_dynamics takes 6 arguments, got 4"
    resting = (q, zero, tau, zero, 0 * free)
    with pytest.raises(
        UnsupportedError, match=r"^hessian: the accelerations of .* depend on each other through"
    ):
        linkage.hessian("hybrid_dynamics", resting, (zero, zero))


def test_parameters_by_the_methods_that_trees_have(linkage, state):
    """forward, inverse and hybrid dynamics, through the loop, against the products along each parameter."""
    q, v, tau = state
    d = linkage.forward_dynamics_derivatives(q, v, tau, sensitive_to=NAMES)
    expected = linkage.constrained_dynamics_derivatives(q, v, tau, sensitive_to=NAMES)
    for name in NAMES:
        np.testing.assert_array_equal(d.dparameters[name], expected.dparameters[name])
    i = linkage.inverse_dynamics_derivatives(q, v, d.acceleration, sensitive_to=NAMES)
    inverse = linkage.constrained_inverse_dynamics_derivatives(q, v, d.acceleration, sensitive_to=NAMES)
    np.testing.assert_array_equal(i.dparameters["length"], inverse.dparameters["length"])
    given = {"accelerations": {"crank": 0.4}}
    h = linkage.hybrid_dynamics_derivatives(q, v, **given, sensitive_to=["mass", "ratio"])
    free, a_given, zero = np.array([0.0, 1, 1, 1]), np.array([0.4, 0, 0, 0]), np.zeros(4)
    for name in ("mass", "ratio"):
        along = np.eye(4)[NAMES.index(name)]
        p = np.array([value for _, value in linkage.parameters])
        at, directions = (q, v, zero, a_given, free, p), (zero, zero, zero, zero, zero, along)
        _, change = linkage.jvp("hybrid_dynamics", at, directions)
        np.testing.assert_allclose(h.dparameters[name], np.stack(change), rtol=1e-9, atol=1e-9)

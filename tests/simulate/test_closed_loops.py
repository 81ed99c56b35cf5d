"""Models with loops and couplings, kept by projection after every step."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from simulate_helpers import slope

import alembert as al
from alembert import study
from alembert.errors import AlembertError, UnsupportedError
from alembert.lowering.plan import RECORDS
from alembert.simulate import simulate
from alembert.simulate.inputs import Inputs
from alembert.simulate.simulation import Simulation
from alembert.simulate.step_code import StepModel
from alembert.simulate.stepper import Stepper
from alembert.simulate.variational import DiscreteMechanics, closed


@pytest.fixture(scope="module")
def four_bar():
    """IFToMM benchmark A02 with two windows: all bars of 1 m and 1 kg, one degree of freedom."""
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    up, along = al.Inertia.rod(1.0, (0, 0, 0), (0, 1, 0)), al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    hinge = al.Revolute((0, 0, 1))
    for k in range(3):
        builder.body(f"v{k}", up, joint=hinge, placement=(float(k), 0, 0), joint_name=f"foot{k}")
        builder.frame(f"top{k}", f"v{k}", (0, 1, 0))
    for k in range(2):
        builder.body(f"h{k}", along, joint=hinge, parent=f"v{k}", placement=(0, 1, 0), joint_name=f"head{k}")
        builder.frame(f"end{k}", f"h{k}", (1, 0, 0))
        builder.loop(f"loop{k}", al.Revolute((0, 0, 1)), f"end{k}", f"top{k + 1}")
    return builder.build()


def start(m):
    v = np.zeros(m.nv)
    for k in range(3):
        v[m.v_slice(f"foot{k}")] = -1.0
    for k in range(2):
        v[m.v_slice(f"head{k}")] = 1.0
    return np.zeros(m.nq), v


@pytest.fixture(scope="module")
def template():
    """A four-bar linkage whose lengths are parameters."""
    return al.load(Path(study.__file__).parent / "templates" / "fourbar" / "model.toml")


def test_variational_with_loops_and_parameters(template):
    """At their defaults or given: the same bits, in a batch and going on; second order."""
    m = template
    q0 = np.stack([m.assemble([x, 0, 0]).q for x in (0.9, 1.0)])
    exact = simulate(m, q0[0], duration=0.4, integrator="dop853").q[-1]
    steps, errors = (0.02, 0.01, 0.005), []
    for h in steps:
        run = simulate(m, q0[0], duration=0.4, step=h, integrator="variational")
        errors.append(np.abs(run.q[-1] - exact).max())
    assert slope(errors, steps) == pytest.approx(2.0, abs=0.1)
    options = {"duration": 0.4, "step": 0.005, "integrator": "variational"}
    given = simulate(m, q0[0], parameters=dict(m.parameters), **options)
    batch = simulate(m, q0, **options)
    parts = simulate(m, q0[0], **options | {"duration": 0.2}).resume(0.2)
    for q, v in ((given.q, given.v), (batch.q[0], batch.v[0])):
        np.testing.assert_array_equal(q, run.q)
        np.testing.assert_allclose(v, run.v, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(parts.q[-1], run.q[-1])


def test_schemes_that_do_not_take_loops_say_what_does(template):
    q0 = template.assemble([0.9, 0, 0]).q
    for name, message in (
        ("generalised_alpha", "choose 'radau' if it is stiff"),
        ("ida", "choose 'cvode' or 'radau'"),
    ):
        with pytest.raises(UnsupportedError, match=f"integrator '{name}' and a model with loops .*{message}"):
            simulate(template, q0, duration=0.1, step=0.01, integrator=name)


def test_python_controllers_on_loops_in_batches(template):
    """Steps in Python project a batch: each motion as far as it needs alone."""
    m = template
    q0 = np.stack([m.assemble([x, 0, 0]).q for x in (0.9, 1.0, 1.3)])
    options = {
        "duration": 0.4,
        "step": 0.01,
        "integrator": "rk4",
        "controller": lambda t, q, v: {"drive": -q[0]},
    }
    batch = simulate(m, q0, **options)
    for k in range(3):
        np.testing.assert_array_equal(batch.q[k], simulate(m, q0[k], **options).q)


def test_four_bar(four_bar):
    """B0 after 10 s and the energy, from the benchmark; loops closed to rounding at every record."""
    m = four_bar
    run = simulate(m, *start(m), duration=10.0, interval=0.1, tolerance=1e-10)
    assert run.integrator == "dop853"
    X = m.frame_pose(run.q[-1], "top0")
    assert X.translation[:2] == pytest.approx((0.3284581115, 0.9445185382), abs=1e-6)
    assert run.energy == pytest.approx(np.full(len(run.time), 35.835), abs=1e-6)
    assert run.report.constraint_error < 1e-10
    assert "loops and couplings closed to" in str(run.report)


@pytest.mark.parametrize("integrator", ["radau", "bdf", "cvode", "cvode_adams", "rk45"])
def test_other_integrators_on_a_closed_loop(four_bar, integrator):
    """All agree with dop853 to their tolerance, and end on the surface."""
    m = four_bar
    reference = simulate(m, *start(m), duration=1.0, interval=0.25, tolerance=1e-11)
    run = simulate(m, *start(m), duration=1.0, interval=0.25, integrator=integrator, tolerance=1e-7,
                   absolute_tolerance=1e-8)  # fmt: skip
    # multistep formulas keep the error of a step, not of the run, below the tolerance
    np.testing.assert_allclose(run.q, reference.q, rtol=0, atol=1e-4)
    assert run.report.constraint_error < 1e-12


def test_rk4_on_a_closed_loop(four_bar):
    run = simulate(four_bar, *start(four_bar), duration=0.5, step=0.01)
    assert run.integrator == "rk4"
    assert run.report.energy_error < 1e-6
    assert run.report.constraint_error < 1e-10


def test_compiled_steps_are_those_of_python(four_bar):
    """The same scheme with loops in machine code and in Python: rounding apart."""
    m = four_bar
    for integrator in ("semi_implicit_euler", "midpoint", "rk4", "adams_bashforth4"):
        options = {"duration": 0.3, "step": 0.01, "integrator": integrator}
        compiled = simulate(m, *start(m), efforts={"foot0": 3.0}, **options)
        python = simulate(m, *start(m), controller=lambda t, q, v: {"foot0": 3.0}, **options)
        np.testing.assert_allclose(compiled.q, python.q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(compiled.v, python.v, rtol=0, atol=1e-11)
        assert compiled.report.constraint_error < 1e-14


def on_surface(m, seed):
    q, v = start(m)
    rng = np.random.default_rng(seed)
    state = m.assemble(m.integrate(q, 0.2 * rng.normal(size=m.nv)))
    return state.q, m.project(state.q, v * rng.uniform(0.5, 2.0)).v


@pytest.mark.parametrize("integrator", ["rk4", "adams_moulton4", "variational"])
def test_a_batch_has_the_bits_of_its_motions(four_bar, integrator):
    m = four_bar
    states = [on_surface(m, seed) for seed in range(11)]
    options = {"duration": 0.2, "step": 0.01, "integrator": integrator}
    batch = simulate(m, np.array([q for q, _ in states]), np.array([v for _, v in states]), **options)
    for k in (0, 4, 10):
        alone = simulate(m, *states[k], **options)
        np.testing.assert_array_equal(batch.q[k], alone.q)
    again = alone.resume(0.1, time=0.1)
    np.testing.assert_array_equal(again.q, alone.q[10:])


def test_variational_with_loops(four_bar):
    """Second order; closed at every node; energy bounded."""
    m = four_bar
    q0, v0 = start(m)
    reference = simulate(m, q0, v0, duration=0.5, interval=0.5, tolerance=1e-11, integrator="dop853")
    steps, errors = [0.02, 0.01, 0.005], []
    for h in steps:
        run = simulate(m, q0, v0, duration=0.5, step=h, integrator="variational")
        errors.append(np.linalg.norm(np.r_[run.q[-1] - reference.q[-1], run.v[-1] - reference.v[-1]]))
        assert run.report.constraint_error < 4e-15  # rounding of a few m and rad
        np.testing.assert_allclose(run.v[0], v0, rtol=0, atol=1e-13)
    assert slope(errors, steps) == pytest.approx(2, abs=0.1)
    long = simulate(m, q0, v0, duration=40.0, step=0.01, integrator="variational")
    error = np.abs(long.energy - long.energy[0])
    quarter = len(error) // 4
    assert np.max(error[-quarter:]) < 2 * np.max(error[:quarter])
    assert long.report.constraint_error < 1e-13  # the bars turn round; angles are rounded at some tens of rad


@pytest.fixture(scope="module")
def gripper():
    """A free body that holds a four-bar linkage with a spring, in space, without gravity."""
    builder = al.ModelBuilder("gripper", gravity=(0, 0, 0))
    builder.body("bus", al.Inertia.box(3.0, (0.4, 0.6, 0.9)), joint=al.Free(), joint_name="base")
    up, along = al.Inertia.rod(0.5, (0, 0, 0), (0, 1, 0)), al.Inertia.rod(0.5, (0, 0, 0), (1, 0, 0))
    hinge = al.Revolute((0, 0, 1))
    for k in range(2):
        spring = al.Spring((2.0,)) if k == 0 else None
        builder.body(f"v{k}", up, joint=hinge, parent="bus", placement=(float(k), 0, 0.3), joint_name=f"foot{k}",
                     spring=spring)  # fmt: skip
    builder.body("h", along, joint=hinge, parent="v0", placement=(0, 1, 0), joint_name="head")
    builder.frame("end", "h", (1, 0, 0)).frame("top", "v1", (0, 1, 0))
    builder.loop("loop", hinge, "end", "top")
    return builder.build()


def floating(m):
    v = np.r_[0.3, -0.2, 0.4, 0.1, 0.2, -0.1, -1.0, -1.0, 1.0]
    state = m.project(m.neutral(), v)
    return state.q, state.v


def test_momentum_with_loops(gripper):
    """Impulses of loops are internal: both momenta are kept to rounding, also under internal drives."""
    m = gripper
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    u = ca.SX.zeros(m.nv)
    u[m.v_slice("head")] = ca.sin(3 * t)
    law = ca.Function("law", [t, q, v], [u])
    for controller in (None, law):
        run = simulate(
            m, *floating(m), duration=10.0, step=0.01, controller=controller, integrator="variational"
        )
        h = run.momentum
        # 1000 steps, each solved to rounding; errors add up like a random walk
        assert np.max(np.abs(h - h[0])) < 1e-12 * np.max(np.abs(h))
        assert max(run.report.momentum_error) < 1e-12
        assert run.report.constraint_error < 1e-14
    assert np.ptp(run.q[:, m.q_slice("foot0")]) > 0.5


def test_condition_with_loops_does_not_depend_on_the_step(gripper):
    """It tends to that of [M, -G^T; G, 0]."""
    m = gripper
    q0, v0 = floating(m)
    plant = StepModel(m)
    mechanics = DiscreteMechanics(plant, ca.SX(0, 1), None)
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    q, p, e = (ca.SX.sym(name, n) for name, n in (("q", m.nq), ("p", m.nv), ("e", m.nv)))
    w = ca.SX.sym("w", plant.rows["chosen"])
    balance = h * mechanics.residual(t, q, p, e, h, ca.SX.zeros(m.nv))
    residual, f = closed(m, q, mechanics.manifold.integrate(q, e), balance, w, ca.SX(0, 1))
    J = ca.Function("J", [t, q, p, e, h, w, f], [ca.jacobian(residual, ca.vertcat(e, f))])
    rows = m.constrained_compute.rows.system("test", None)
    _, terms = m.constrained_compute.constraint_terms("test", q0, {"v": v0}, None, None)
    chosen = np.zeros(plant.rows["chosen"])
    chosen[rows.chosen(terms, 0).rows] = 1.0
    zero = np.zeros(f.numel())
    found = [
        np.linalg.cond(np.asarray(J(0, q0, np.zeros(m.nv), x * v0, x, chosen, zero)))
        for x in (1e-2, 1e-4, 1e-6)
    ]
    np.testing.assert_allclose(found, found[-1], rtol=0.02)
    assert found[-1] < 1e4


def test_a_minimal_set_that_does_not_serve_is_replaced(four_bar):
    """Rows that say too little: the step finds others, and goes where it goes with good ones."""
    m = four_bar
    q, v = start(m)
    system = Simulation(m, Inputs(controller=None, drives=None), ())
    for integrator in ("rk4", "variational"):
        stepper = Stepper(system, integrator, 0.01, 0.0, held=False)
        good = stepper.initial(q, v)
        bad = good.copy()
        bad[stepper.layout["chosen"]] = 0.0
        if (
            integrator == "variational"
        ):  # rows chosen that depend on each other: the equations have no solution
            bad[stepper.layout["chosen"]] = 1.0
        found = []
        for state in (good, bad):
            out = np.empty((RECORDS, len(state)))
            stepper.advance(state, 2, 3, system.loads.efforts, None, out)
            found.append(out[:3, stepper.layout["q"]])
        np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-13)


def test_rolling_is_refused_by_the_variational_scheme():
    m = al.library.two_link()
    a, b = m.coordinate_names
    m = m.replace(equations=(al.Equation("gear", ("a_dot - 2 * b_dot",), {"a": a, "b": b}),))
    with pytest.raises(
        UnsupportedError, match=r"'variational' and rolling \(equation 'gear'\) do not go together"
    ):
        simulate(m, [0.1, 0.2], [1.0, 0.5], duration=1.0, step=0.1, integrator="variational")
    run = simulate(m, [0.1, 0.2], [1.0, 0.5], duration=1.0, step=0.1, integrator="rk4")
    np.testing.assert_allclose(
        run.q[:, 0] - 2 * run.q[:, 1], -0.3, rtol=0, atol=1e-3
    )  # nothing holds positions
    np.testing.assert_allclose(run.v[:, 0], 2 * run.v[:, 1], rtol=0, atol=1e-12)


def test_coupled_joints():
    """Two wheels geared together turn like one with both inertias."""
    builder = al.ModelBuilder("gear", gravity=(0, 0, 0))
    for name in "ab":
        builder.body(
            name, al.Inertia.cylinder(1.0, 0.5, 0.1, (0, 0, 1)), joint=al.Revolute((0, 0, 1)), joint_name=name
        )
    m = builder.build().replace(couplings=(al.Coupling("gear", "b", ("a",), (-2.0,)),))
    run = simulate(m, [0.1, -0.2], duration=1.0, step=0.05, efforts={"a": 1.0})
    inertia = 0.125 * (1 + 4)
    np.testing.assert_allclose(run.q[:, 0], 0.1 + run.time**2 / (2 * inertia), rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.q[:, 1], -2 * run.q[:, 0], rtol=0, atol=1e-12)


def test_refusals(four_bar):
    q, v = start(four_bar)
    with pytest.raises(
        UnsupportedError, match=r"integrator 'generalised_alpha' and a model with loops .*'loop0'"
    ):
        simulate(four_bar, q, v, duration=1.0, step=0.1, integrator="generalised_alpha")
    with pytest.raises(UnsupportedError, match="integrator 'ida' and a model with loops or couplings do not"):
        simulate(four_bar, q, v, duration=1.0, integrator="ida")
    q[0] = 0.3
    with pytest.raises(AlembertError, match="loop"):
        simulate(four_bar, q, v, duration=1.0)

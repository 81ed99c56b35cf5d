"""Controllers with states: against the linear closed loop, exact sampled simulation, and equations solved elsewhere."""

import re

import casadi as ca
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from scipy.spatial.transform import Rotation

import alembert as al
from alembert import control
from alembert.simulate import Drive, DynamicController, Event, Measured, Sampled, Table, load_run, simulate


@pytest.fixture(scope="module")
def linear(masses):
    return al.linearize(masses, [0.0, 0.0], inputs=["a"], outputs=["q:a", "q:b"])


@pytest.fixture(scope="module")
def design(linear):
    return control.lqg(
        linear.to_statespace(), [2, 1, 0.1, 0.1], 0.2, [1, 1], [1e-2, 1e-2], through=np.eye(4)[:, 2:]
    )


START = {"q0": [0.3, -0.1], "v0": [0.0, 0.2]}


def exact(plant, K, x0, time):
    """x of the plant and of the controller, by the exponential of the closed loop."""
    A = np.block([[plant.A + plant.B @ K.D @ plant.C, plant.B @ K.C], [K.B @ plant.C, K.A]])
    z0 = np.concatenate([x0, np.zeros(K.order)])
    return np.array([scipy.linalg.expm(A * t) @ z0 for t in time])


ORDERS = {"semi_implicit_euler": 1, "midpoint": 2, "rk4": 4, "adams_bashforth3": 3, "adams_moulton4": 4, "variational": 2,
          "generalised_alpha": 2}  # fmt: skip


@pytest.mark.parametrize("integrator", ORDERS)
def test_steps_converge_to_the_linear_closed_loop(masses, linear, design, integrator):
    K, plant = design.controller, linear.to_statespace()
    errors = []
    for step in (0.02, 0.01):
        run = simulate(masses, **START, duration=1.0, step=step, controller=K, integrator=integrator)
        z = exact(plant, K, [0.3, -0.1, 0.0, 0.2], run.time[-1:])[0]
        found = np.concatenate([run.q[-1], run.v[-1], run.controller_states[-1]])
        errors.append(np.max(np.abs(found - z)))
    order = np.log2(errors[0] / errors[1])
    assert order == pytest.approx(ORDERS[integrator], abs=0.35)  # the next term of the error, at these steps
    assert errors[1] < (4 * 0.01) ** ORDERS[integrator]  # poles of size 4


@pytest.mark.parametrize("integrator", ["dop853", "radau", "bdf"])
def test_error_control_follows_the_linear_closed_loop(masses, linear, design, integrator):
    K, plant = design.controller, linear.to_statespace()
    run = simulate(masses, **START, duration=2.0, interval=0.1, controller=K, integrator=integrator, tolerance=1e-9,
                   absolute_tolerance=1e-10)  # fmt: skip
    z = exact(plant, K, [0.3, -0.1, 0.0, 0.2], run.time)
    limit = (
        1e-6 if integrator == "bdf" else 1e-7
    )  # errors of steps add up, to some hundred tolerances with BDF
    np.testing.assert_allclose(np.hstack([run.q, run.v, run.controller_states]), z, rtol=0, atol=limit)
    u = z[:, 4:] @ K.C.T + z[:, :2] @ K.D.T
    np.testing.assert_allclose(run.efforts[:, :1], u, rtol=0, atol=1e3 * limit)


def test_a_state_feedback_flies_by_the_names_of_its_states(masses):
    """u = -K x as a controller: the closed loop A - B K."""
    linear = al.linearize(masses, [0.0, 0.0], inputs=["a"])
    found = control.lqr(linear, [2, 1, 0.1, 0.1], 0.2)
    run = simulate(
        masses, START["q0"], START["v0"], duration=1.0, controller=found.controller, integrator="dop853"
    )
    end = scipy.linalg.expm(found.plant.A - found.plant.B @ found.K) @ np.concatenate(
        [START["q0"], START["v0"]]
    )
    np.testing.assert_allclose(np.concatenate([run.q[-1], run.v[-1]]), end, atol=1e-8)  # tolerances of 1e-9


def test_steps_in_python_are_those_of_the_machine(masses, design):
    options = {**START, "duration": 0.5, "step": 0.01}
    for integrator in ("rk4", "adams_bashforth3"):
        one = simulate(masses, controller=design.controller, integrator=integrator, **options)
        both = [design.controller, lambda t, q, v: [0.0, 0.0]]
        other = simulate(masses, controller=both, integrator=integrator, **options)
        np.testing.assert_allclose(other.q, one.q, rtol=0, atol=1e-14)
        np.testing.assert_allclose(other.controller_states, one.controller_states, rtol=0, atol=1e-13)


def test_sampled_lqg_against_an_exact_sampled_simulation(masses, linear):
    h = 0.05
    plant = control.c2d(linear.to_statespace(), h)
    K = control.lqg(
        plant, [2, 1, 0.1, 0.1], 0.2, [1e-3, 1e-3], [1e-4, 1e-4], through=np.eye(4)[:, 2:]
    ).controller
    x, z, rows = np.array([0.3, -0.1, 0.0, 0.2]), np.zeros(4), []
    for _ in range(41):
        y = plant.C @ x
        rows.append(np.concatenate([x, K.A @ z + K.B @ y]))
        u = K.C @ z + K.D @ y
        x, z = plant.A @ x + plant.B @ u, K.A @ z + K.B @ y
    for integrator, options in (("rk4", {"step": 0.005}), ("dop853", {})):
        run = simulate(
            masses, **START, duration=2.0, interval=h, controller=K, integrator=integrator, **options
        )
        found = np.hstack([run.q, run.v, run.controller_states])
        limit = 1e-8  # of RK4: 400 steps, each off by (|pole| h)^5 / 120 with |pole| near 2
        np.testing.assert_allclose(found[:-1], rows[:-1], rtol=0, atol=limit)
        np.testing.assert_allclose(found[-1, :4], rows[-1][:4], rtol=0, atol=limit)


def test_small_motions_about_a_point_are_those_of_the_linear_model():
    """Upright cart and pole: the point's displacement and efforts are put in by `about`."""
    model = al.library.cart_pole()
    linear = al.linearize(model, [0.2, np.pi], outputs=["q"])
    K = control.lqg(linear.to_statespace(), [1, 5, 1, 1], 0.1, 1.0, [1e-3, 1e-3]).controller
    size = 1e-4
    run = simulate(model, [0.2 + size, np.pi - size], duration=2.0, step=0.005, integrator="rk4",
                   controller=DynamicController(K, about=linear))  # fmt: skip
    z = exact(linear.to_statespace(), K, [size, -size, 0, 0], run.time)
    deviations = np.hstack([run.q - [0.2, np.pi], run.v, run.controller_states])
    # sine and cosine leave out terms of third order; the motion is some ten times its start
    np.testing.assert_allclose(deviations, z, rtol=0, atol=100 * size**2)
    moved = simulate(model, [0.2, np.pi], duration=12.0, step=0.005, integrator="rk4",
                     controller=DynamicController(K, about=linear, references={"q:slide": 0.5}))  # fmt: skip
    assert moved.q[-1] == pytest.approx([0.5, np.pi], abs=1e-2)


# --- states in records, in files and in batches ------------------------------------------------------------------


def test_states_are_channels(masses, design):
    K = design.controller
    run = simulate(
        masses, **START, duration=0.2, step=0.01, controller=K, record=["controller", "controller:q:a^"]
    )
    channel = run.recorded["controller"]
    assert channel.components == K.state_names
    np.testing.assert_array_equal(channel.values, run.controller_states)
    np.testing.assert_array_equal(run.recorded["controller:q:a^"].values[:, 0], run.controller_states[:, 0])
    sampled = DynamicController(control.c2d(K, 0.05), name="flight")
    both = simulate(masses, **START, duration=0.2, step=0.01, controller=[DynamicController(K), sampled])
    assert both.channel("controller:flight").components == tuple(f"flight.{x}" for x in K.state_names)
    assert both.controller_states.shape == (21, 8)
    with pytest.raises(al.ArgumentError, match=r"no state of a controller 'flght'"):
        both.channel("controller:flght")
    with pytest.raises(al.ArgumentError, match=r"no controller has states"):
        simulate(masses, duration=0.1, step=0.01, record="controller")


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_runs_go_on_with_the_same_bits(masses, design, tmp_path, integrator, sampled):
    K = control.c2d(design.controller, 0.04) if sampled else design.controller
    options = {**START, "step": 0.01, "interval": 0.02, "controller": K, "integrator": integrator}
    whole = simulate(masses, duration=0.4, **options)
    begun = simulate(masses, duration=0.2, **options)
    begun.save(tmp_path / "run.nc")
    for rest in (begun.resume(0.2), load_run(tmp_path / "run.nc", controller=K).resume(0.2)):
        np.testing.assert_array_equal(rest.q, whole.q[10:])
        np.testing.assert_array_equal(rest.controller_states, whole.controller_states[10:])


@pytest.mark.parametrize("sampled", [False, True])
def test_members_of_an_ensemble_are_single_runs(masses, design, sampled):
    K = control.c2d(design.controller, 0.04) if sampled else design.controller
    options = {
        "duration": 0.4,
        "step": 0.01,
        "interval": 0.1,
        "integrator": "rk4",
        "controller": K,
        "record": "controller",
    }
    given = {"q0": [[0.1, 0.0], [0.2, 0.1], [0.0, 0.3]], "parameters": {"mass": [1.0, 2.0, 4.0]}}
    found = al.ensemble(masses, given, backend="batch", **options)
    for k in range(3):
        one = simulate(masses, given["q0"][k], parameters={"mass": given["parameters"]["mass"][k]}, **options)
        np.testing.assert_array_equal(found.q[k], one.q)
        recorded = found.recorded["controller"]
        np.testing.assert_array_equal(recorded.values[k], one.controller_states)


def test_events_in_a_step_leave_the_states_alone(masses, linear, design):
    """An event that changes nothing, and one that stops: the states are those of the motion there."""
    K = design.controller
    options = {**START, "duration": 1.0, "step": 0.01, "integrator": "rk4", "controller": K}
    plain = simulate(masses, **options)
    seen = Event(lambda t, q, v: q[0] - 0.25, name="seen", action="note")
    np.testing.assert_array_equal(simulate(masses, **options, events=seen).q, plain.q)
    stopped = simulate(masses, **options, events=Event(lambda t, q, v: q[0] - 0.25, name="stop"))
    z = exact(linear.to_statespace(), K, [0.3, -0.1, 0.0, 0.2], stopped.time[-1:])[0]
    np.testing.assert_allclose(stopped.controller_states[-1], z[4:], rtol=0, atol=1e-6)
    assert stopped.resume(0.1).controller_states[0] == pytest.approx(stopped.controller_states[-1])


def test_the_work_is_the_energy(masses, design):
    for options in ({"step": 0.01, "integrator": "rk4", "interval": 0.1}, {"integrator": "dop853"}):
        run = simulate(masses, **START, duration=1.0, controller=design.controller, **options)
        gained = run.energy - run.energy[0]
        np.testing.assert_allclose(run.work, gained, rtol=0, atol=1e-6)  # Simpson's rule over steps of 0.01 s


# --- limits, set points, schedules ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cart():
    builder = al.ModelBuilder("cart", gravity=(0, 0, 0))
    builder.body("cart", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="x",
                 friction=al.Friction(viscous=(1.0,)))  # fmt: skip
    return builder.build()


def pid(kp=4.0, ki=2.0, kd=3.0, tau=0.05):
    """From place and reference to the force."""
    A, B = np.diag([0.0, -1 / tau]), np.array([[1.0], [1 / tau]])
    C, D = np.array([[ki, -kd / tau]]), np.array([[kp + kd / tau]])
    K = control.StateSpace(A, B, C, D, input_names=["e"], output_names=["x"], state_names=["sum", "slope"])
    return control.connect(K, control.summing("e", ["r", "-q:x"]), inputs=["r", "q:x"], outputs=["x"])


def test_anti_windup(cart):
    """Against (1) solved by SciPy; the state that is kept from running away overshoots less."""
    K, limit = pid(), 1.5
    found = {}
    for anti in ("auto", "off"):
        law = DynamicController(K, references={"r": 4.0}, limits={"x": limit}, anti_windup=anti)
        found[anti] = simulate(
            cart, duration=12.0, interval=0.1, controller=law, integrator="radau", tolerance=1e-8
        )
    assert found["auto"].q.max() < 4.0 + 0.5 * (found["off"].q.max() - 4.0)
    L = K.B[:, :1] / K.D[0, 0]  # Hanus: the reference that would just reach the limit

    def rate(t, s):
        y = np.array([4.0, s[0]])
        u = (K.C @ s[2:] + K.D @ y)[0]
        w = np.clip(u, -limit, limit)
        return [s[1], w - s[1], *(K.A @ s[2:] + K.B @ y + L[:, 0] * (w - u))]

    other = scipy.integrate.solve_ivp(
        rate, (0, 12), np.zeros(4), method="Radau", rtol=1e-8, atol=1e-10, dense_output=True
    )
    run = found["auto"]
    np.testing.assert_allclose(run.q[:, 0], other.sol(run.time)[0], rtol=0, atol=1e-5)
    drives = simulate(
        cart,
        duration=12.0,
        interval=0.1,
        integrator="radau",
        tolerance=1e-8,
        drives={"x": Drive(limit=limit)},
        controller=DynamicController(K, references={"r": 4.0}),
    )
    np.testing.assert_allclose(
        drives.q, found["auto"].q, rtol=0, atol=1e-5
    )  # the limit of the drive is known


def test_switching_without_a_bump(cart):
    """A second controller takes over with other gains: what waits follows, so that the force goes on."""
    slow, fast = pid(2.0, 0.5, 2.0), pid(8.0, 4.0, 5.0)
    schedule = control.GainSchedule("t", [0.0, 3.0], [slow, fast], interpolation="switch")
    law = DynamicController(schedule, references={"r": 1.0})
    for options in ({"integrator": "dop853"}, {"integrator": "rk4", "step": 0.002}):
        run = simulate(cart, duration=6.0, interval=0.01, controller=law, **options)
        before = (slow.C @ run.controller_states[300, :2] + slow.D @ [1.0, run.q[300, 0]])[0]
        # the same controller, had it run beside the first from the start without following
        seen = np.column_stack([np.ones(301), run.q[:301, 0]])
        alone = fast.simulate(run.time[:301], seen, hold="first").y[-1, 0]
        assert abs(run.efforts[300, 0] - before) < 0.2 * abs(
            alone - before
        )  # it follows with a lag while things move
    only = simulate(
        cart, duration=3.0, interval=0.01, controller=DynamicController(slow, references={"r": 1.0})
    )
    np.testing.assert_allclose(run.q[:300], only.q[:300], rtol=0, atol=1e-6)


def test_gains_that_differ_blend_within_a_span(cart):
    """A direct part jumps where laws are switched; interpolated over a tenth of a second it takes that long."""
    soft, hard = (control.static([[-k]]).renamed(inputs=["q:x"], outputs=["x"]) for k in (1.0, 3.0))
    switched = control.GainSchedule("t", [0.0, 1.0], [soft, hard], interpolation="switch")
    blended = control.GainSchedule("t", [0.0, 1.0, 1.1], [soft, soft, hard])
    jumps = []
    for schedule in (switched, blended):
        run = simulate(cart, [1.0], duration=2.0, step=0.01, controller=schedule)
        jumps.append(np.abs(np.diff(run.efforts[:, 0])).max())
    assert jumps[0] > 1.0
    assert jumps[1] < 0.15 * jumps[0]  # a tenth of it each sample, and what the motion adds


def test_a_schedule_by_a_signal(cart):
    """Gains that grow with the place: against the same law as a Python function."""
    systems = [control.static([[-k]]).renamed(inputs=["q:x"], outputs=["x"]) for k in (1.0, 3.0)]
    schedule = control.GainSchedule("q:x", [0.0, 2.0], systems)
    assert schedule.at(0.5).D[0, 0] == -1.5
    run = simulate(cart, [1.8], duration=3.0, step=0.01, integrator="rk4", controller=schedule)
    other = simulate(cart, [1.8], duration=3.0, step=0.01, integrator="rk4",
                     controller=lambda t, q, v: -(1 + np.clip(q[:1], 0, 2)) * q[:1])  # fmt: skip
    np.testing.assert_allclose(run.q, other.q, rtol=0, atol=1e-12)


def test_a_schedule_by_a_reference(cart):
    """What is not measured, as a flight condition that is known over time; its set points keep their meaning."""
    gains = [control.static([[-k]]).renamed(inputs=["q:x"], outputs=["x"]) for k in (1.0, 5.0)]
    mach = Table([0.0, 1.0], [0.0, 1.0], "linear", outside="hold")
    law = DynamicController(
        control.GainSchedule("mach", [0.0, 2.0], gains), references={"mach": mach, "q:x": 0.1}
    )
    run = simulate(cart, [0.3], duration=1.0, step=0.01, controller=law)
    expected = -(1 + 2 * run.time) * (run.q[:, 0] - 0.1)
    np.testing.assert_allclose(run.efforts[:, 0], expected, rtol=1e-12, atol=1e-14)


def test_references_over_time_and_functions_with_states(cart):
    table = Table([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], outside="hold")
    linear = simulate(
        cart, duration=3.0, interval=0.1, controller=DynamicController(pid(), references={"r": table})
    )
    t, y, x = ca.SX.sym("t"), ca.SX.sym("y", 2), ca.SX.sym("x", 2)
    K = pid()
    law = ca.Function("law", [t, y, x], [ca.DM(K.C) @ x + ca.DM(K.D) @ y, ca.DM(K.A) @ x + ca.DM(K.B) @ y])
    own = DynamicController(
        law, inputs=["r", "q:x"], outputs="x", states=["sum", "slope"], references={"r": table}
    )
    other = simulate(cart, duration=3.0, interval=0.1, controller=own)
    np.testing.assert_allclose(other.q, linear.q, rtol=0, atol=1e-9)


def test_lagging_drives_and_states(cart):
    """A lag behind the controller: with steps and with error control the same motion."""
    law, drives = DynamicController(pid(), references={"r": 1.0}), {"x": Drive(lag=0.1)}
    fine = simulate(
        cart, duration=2.0, interval=0.1, controller=law, drives=drives, integrator="radau", tolerance=1e-9
    )
    errors = []
    for step in (0.004, 0.002):
        run = simulate(
            cart, duration=2.0, interval=0.1, step=step, controller=law, drives=drives, integrator="rk4"
        )
        errors.append(np.abs(run.q - fine.q).max())
    assert errors[1] < 0.35 * errors[0]  # commands are held over steps: second order
    assert errors[1] < 1e-3


@pytest.mark.parametrize(
    ("drive", "sampled", "also"),
    [
        (Drive(lag=0.1), False, ()),
        (Drive(lag=0.1), True, ()),
        (Drive(rate=1.0), False, ()),
        (Drive(limit=0.5), True, ()),
        (Drive(limit=0.5), False, (lambda t, q, v: [0.0],)),
    ],
)
def test_pushes_are_not_carried_out_by_drives(cart, drive, sampled, also):
    """The push at a frame moves the joint of a drive: it was part of what the drive made late, or cut off."""
    push = control.static([[-20.0]]).renamed(inputs=["q:x"], outputs=["cart.fx"])
    law = control.c2d(push, 0.01) if sampled else push
    with pytest.raises(al.UnsupportedError, match="pushes at a frame, and the drive of 'x' would carry out"):
        simulate(cart, [0.3], duration=0.1, step=0.01, controller=[law, *also], drives={"x": drive})


def test_pushes_beside_drives(cart):
    """A limit holds for what is asked of the drive alone; a push in `wrenches` goes with every drive."""
    push = control.static([[-20.0]]).renamed(inputs=["q:x"], outputs=["cart.fx"])
    options = {"duration": 1.0, "interval": 0.1, "integrator": "dop853", "tolerance": 1e-10}
    limited = simulate(cart, [0.3], controller=push, drives={"x": Drive(limit=0.5)}, **options)
    free = simulate(cart, [0.3], controller=push, **options)
    np.testing.assert_allclose(limited.q, free.q, rtol=0, atol=1e-12)

    def tip(t, q, v):
        return [0, 0, 0, -20 * q[0], 0, 0]

    ask = control.static([[-4.0]]).renamed(inputs=["q:x"], outputs=["x"])
    lagging = simulate(
        cart, [0.3], controller=ask, drives={"x": Drive(lag=0.1)}, wrenches={"cart": tip}, **options
    )
    exact = scipy.integrate.solve_ivp(
        lambda t, z: [z[1], z[2] - 20 * z[0] - z[1], (-4 * z[0] - z[2]) / 0.1],
        (0, 1),
        [0.3, 0, 0],
        rtol=1e-11,
        atol=1e-12,
    )
    np.testing.assert_allclose(lagging.q[-1, 0], exact.y[0, -1], rtol=0, atol=1e-8)


# --- sensors and rates ----------------------------------------------------------------------------------------------


def test_samples_of_sensors(masses, design):
    """A sampled controller that reads noisy sensors is one of the truth where noise is nothing; late samples act later."""
    K = control.c2d(design.controller, 0.05).renamed(inputs=["place", "stretch"])
    sensors = [Measured("place", 0.05), Measured("stretch", 0.05)]
    options = {**START, "duration": 1.0, "step": 0.01, "integrator": "rk4"}
    read = simulate(masses, controller=K, sensors=sensors, **options)
    truth = simulate(masses, controller=K, **options)
    np.testing.assert_array_equal(read.q, truth.q)
    late = simulate(masses, controller=Sampled(K, delay=0.02), sensors=sensors, **options)
    assert late.efforts[1, 0] == 0.0
    assert late.efforts[2, 0] == read.efforts[0, 0]
    noisy = simulate(
        masses, controller=K, sensors=[Measured("place", 0.05, noise=0.01), sensors[1]], **options
    )
    assert 1e-4 < np.abs(noisy.q - read.q).max() < 0.1


def test_what_is_refused(masses, cart, linear, design):
    K = design.controller
    short = {"duration": 0.1, "step": 0.01}
    wrong = {
        "reads what is no output of the model and no reference: 'q:c'": K.renamed(inputs=["q:a", "q:c"]),
        "acts on what is no actuator, degree of freedom or wrench: 'motor'": K.renamed(outputs=["motor"]),
        "takes 'q:a' in deg, the model gives it in m": control.StateSpace(*K.matrices, input_names=K.input_names,
            output_names=K.output_names, input_units=["deg", "m"]),
        "gives 'a' in N m, the model takes it in N": control.StateSpace(*K.matrices, input_names=K.input_names,
            output_names=K.output_names, output_units=["N m"]),
        "references: it has no input 'r'": DynamicController(K, references={"r": 1.0}),
        "limits: it has no output 'b'": DynamicController(K, limits={"b": 1.0}),
        "the limit of 'a' is (2.0": DynamicController(K, limits={"a": (2.0, 1.0)}),
        "the limit of 'a' is -2.0, expected a positive": DynamicController(K, limits={"a": -2.0}),
        "controller is of type LQG, expected a function u(t, q, v), a casadi.Function, a StateSpace, "
        "DynamicController(...) or Sampled(...); the controller of this LQG is its .controller": design,
        "the reference 'q:a' is": DynamicController(K, references={"q:a": "far"}),
    }  # fmt: skip
    for message, law in wrong.items():
        with pytest.raises(al.ArgumentError, match=re.escape(message)):
            simulate(masses, controller=law, **short)
    with pytest.raises(al.UnsupportedError, match=r"takes the acceleration 'end.acceleration.x'"):
        simulate(masses, controller=K.renamed(inputs=["q:a", "end.acceleration.x"]), **short)
    named = K.renamed(inputs=["place", "stretch"])
    with pytest.raises(
        al.ArgumentError,
        match=r"is continuous, the sensor 'place' gives a sample every 0.02 s; take al.control.c2d",
    ):
        simulate(masses, controller=named, sensors=Measured("place", 0.02), **short)
    with pytest.raises(
        al.ArgumentError, match=r"takes a sample every 0.01 s, the sensor 'place' gives one every 0.02 s"
    ):
        simulate(masses, controller=control.c2d(named, 0.01), sensors=Measured("place", 0.02), **short)
    with pytest.raises(al.ArgumentError, match=r"Sampled: law is a continuous system; al.control.c2d"):
        Sampled(K, 0.01)
    with pytest.raises(
        al.ArgumentError, match=r"Sampled: period is 0.02 s, the law was made for samples every 0.01 s"
    ):
        Sampled(control.c2d(K, 0.01), 0.02)
    with pytest.raises(al.ArgumentError, match=r"leave reads out"):
        Sampled(control.c2d(K, 0.01), reads="place")
    with pytest.raises(
        al.ArgumentError,
        match=r"about is a linear model of 'masses' with 2 coordinates, expected one of 'cart'",
    ):
        simulate(cart, controller=DynamicController(K, about=linear), **short)


def test_what_a_controller_refuses(design):
    K = design.controller
    with pytest.raises(al.ArgumentError, match=r"start is .* expected 4 numbers"):
        DynamicController(K, start=[1.0])
    with pytest.raises(al.ArgumentError, match=r"DynamicController: name is 3, expected a name"):
        DynamicController(K, name=3)
    with pytest.raises(al.ArgumentError, match=r"start: no state 'z'"):
        DynamicController(K, start={"z": 1.0})
    with pytest.raises(
        al.ArgumentError, match=r"anti_windup is .* expected 'auto', 'off' or a matrix of shape"
    ):
        DynamicController(K, anti_windup="on")
    with pytest.raises(al.ArgumentError, match=r"law is 3, expected a StateSpace"):
        DynamicController(3)
    with pytest.raises(al.ArgumentError, match=r"are those of the system; do not give them again"):
        DynamicController(K, inputs=["q:a"])
    with pytest.raises(al.ArgumentError, match=r"about is 3, expected what al.linearize gives"):
        DynamicController(K, about=3)
    with pytest.raises(al.ArgumentError, match=r"references is 3, expected a mapping"):
        DynamicController(K, references=3)
    t, y, x = ca.SX.sym("t"), ca.SX.sym("y", 2), ca.SX.sym("x", 1)
    with pytest.raises(al.ArgumentError, match=r"law maps sizes \[1, 2, 1\] to \[1, 1\], expected"):
        DynamicController(ca.Function("f", [t, y, x], [x, x]), inputs=["q:a"], outputs=["a"], states=["s"])


def test_what_a_schedule_refuses():
    one, two = (control.static([[k]]) for k in (1.0, 2.0))
    with pytest.raises(al.ArgumentError, match=r"values are .* expected one for each, ascending"):
        control.GainSchedule("t", [1.0, 0.0], [one, two])
    with pytest.raises(al.ArgumentError, match=r"systems\[1\] has input_names"):
        control.GainSchedule("t", [0.0, 1.0], [one, two.renamed(inputs=["other"])])
    with pytest.raises(al.ArgumentError, match=r"interpolation='switch' takes others"):
        control.GainSchedule("t", [0.0, 1.0], [one, control.tf([1], [1, 1])])
    with pytest.raises(al.ArgumentError, match=r"interpolation is 'cubic'"):
        control.GainSchedule("t", [0.0, 1.0], [one, two], interpolation="cubic")
    with pytest.raises(al.ArgumentError, match=r"systems\[0\] is 1"):
        control.GainSchedule("t", [0.0], [1])
    with pytest.raises(al.ArgumentError, match=r"signal is ''"):
        control.GainSchedule("", [0.0], [one])


def test_states_of_continuous_and_sampled_controllers_with_an_event():
    """The work knows the continuous ones among them."""
    model = al.library.two_link()
    first, second = (joint.name for joint in model.joints)
    named = {joint: {"input_names": (f"v:{joint}",), "output_names": (joint,)} for joint in (first, second)}
    laws = [
        DynamicController(control.StateSpace([[-9.0]], [[4.0]], [[-3.0]], [[-0.2]], **named[first])),
        DynamicController(
            control.StateSpace([[0.9]], [[0.4]], [[-3.0]], [[-0.2]], dt=0.006, **named[second])
        ),
    ]
    event = Event(lambda t, q, v: t - 0.0413, "mark", 1, "note")
    run = simulate(
        model, [0.3, 0.2], duration=0.06, integrator="rk4", step=1e-3, controller=laws, events=event
    )
    assert run.controller_states.shape[-1] == 2
    # an rk4 step of 1 ms, and Simpson's rule over steps
    assert run.report.energy_error < 1e-7


def test_a_schedule_on_samples_of_attitudes_is_the_law_by_hand():
    """Encoder of a ball joint, gyro, star tracker: with delays, noise and resolution, about a point that is not neutral."""
    builder = al.ModelBuilder("pod")
    gear = builder.parameter("gear", 2.0)
    builder.body("arm", al.Inertia.point(2.0, (0.4, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name="a")
    builder.body(
        "pod", al.Inertia(1.0, (0.1, 0, 0.2), (0.1, 0, 0.1, 0, 0, 0.1)), joint=al.Spherical(), joint_name="s",
        parent="arm", placement=(0.5, 0, 0),
    )  # fmt: skip
    builder.frame("tip", "pod", (0.1, 0, 0.3)).actuator("motor", "a", gear=gear)
    for name, kind, target in (
        ("angle", "joint_position", "a"), ("ball", "joint_position", "s"), ("gyro", "gyro", "tip"), ("star", "frame", "tip"),
    ):  # fmt: skip
        builder.sensor(name, kind, target)
    model = builder.build()
    q = model.integrate(model.neutral(), [0.3, 0.2, -0.1, 0.4])
    sensors = [
        Measured("angle", 0.02, delay=0.02, quantum=0.01, bias=0.003),
        Measured("ball", 0.01, delay=0.01, noise=0.01),
        Measured("gyro", 0.02, noise=0.02),
        Measured("star", 0.005, delay=0.015, noise=0.005),
    ]
    linear = al.linearize(
        model,
        q,
        None,
        model.gravity_forces(q),
        inputs=["motor"],
        outputs=[f"sensor:{x.name}" for x in sensors],
    )
    reads = ("angle", "ball.wx", "ball.wy", "gyro.x", "star.rotation.x", "star.rotation.z")
    assert set(reads) <= set(linear.output_names)
    B = [[1, 0.5, -0.2, 0.3, 0.1, 0.2], [0.2, -0.4, 0.3, -0.1, 0.5, 0.2]]
    gains = np.array([[2.0, 1, 0.5, 0.7, 0.3, 0.2]])
    systems = [
        control.c2d(
            control.StateSpace([[-3.0 * g, 1], [0, -6.0]], B, [[g, 2 * g]], -g * gains, input_names=reads,
                               output_names=("motor",)),
            0.02,
        )
        for g in (1.0, 2.5, 1.5)
    ]  # fmt: skip
    schedule = control.GainSchedule("ball.wy", [-0.2, -0.05, 0.2], systems)
    law = DynamicController(
        schedule, references={"angle": 0.25}, about=linear, limits={"motor": 9.0}, anti_windup="off"
    )
    zero = [0.25, *(linear.y[linear.output_names.index(name)] for name in reads[1:])]
    ball, star = q[model.q_slice("s")], Rotation.from_matrix(model.frame_pose(q, "tip").rotation)

    def turn(first, now):
        return (first.inv() * Rotation.from_quat(np.roll(now, -1))).as_rotvec()

    seen = []

    def by_hand(t, m):
        s = turn(Rotation.from_quat(np.roll(ball, -1)), m["ball"])
        r = turn(star, m["star"][3:])
        y = np.array([m["angle"][0], s[0], s[1], m["gyro"][0], r[0], r[2]]) - zero
        K = schedule.at(s[1])
        seen.append(s[1])
        u = np.clip(K.C @ m["x"] + K.D @ y + linear.tau[0] / 2.0, -9.0, 9.0)
        return {"x": K.A @ m["x"] + K.B @ y, "efforts": [2.0 * u[0], *linear.tau[1:]]}

    own = Sampled(
        by_hand,
        period=0.02,
        delay=0.004,
        reads=("angle", "ball", "gyro", "star", "x"),
        posts={"x": np.zeros(2)},
    )
    runs = [
        simulate(
            model,
            q,
            [0.1, 0.2, -0.3, 0.1],
            duration=0.4,
            step=1e-3,
            integrator="rk4",
            controller=x,
            sensors=sensors,
        )
        for x in (Sampled(law, delay=0.004), own)
    ]
    assert min(seen) < -0.05 < max(seen)  # more than one piece of the schedule
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-13)  # the same arithmetic in another order

"""What acts on exported models moves them as in `al.simulate`: loops, controllers with states and samples, drives."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, FileError, UnsupportedError, control
from alembert.constraints import saddle
from alembert.deploy import compiler
from alembert.deploy.c_program import c_program
from alembert.deploy.exported_system import Given, exported_system
from alembert.simulate import Drive, DynamicController, MassFlow, Measured, Sampled, SymbolicLaw
from alembert.simulate.actuators import JointDrives, Lags
from alembert.verify.mechanisms import four_bars

H = 2e-3


START = {"q0": [0.3, -0.1], "v0": [0.0, 0.2]}


def moved(program, steps, h=H, **changes):
    """q, v and x after so many steps, by the program's own functions on numbers."""
    values = {key: np.array(x, dtype=float) for key, x in program.starts.items()}
    values |= {"t": np.zeros(1), "h": np.array([h])}
    for key, x in changes.items():
        values[key][:] = x
    every = round(program.tick / h) if program.tick else 0
    for k in range(steps):
        values["t"][0] = k * h
        if every and k % every == 0:
            program.parts.run("instant", values)
        program.parts.run("step", values)
    return values


def lag(dt=0.0):
    """A lead-lag law on both coordinates, at a = 1 if so told."""
    K = control.StateSpace(
        [[-8.0]],
        [[1.0, 0.5]],
        [[20.0]],
        [[-6.0, 1.0]],
        input_names=("q:a", "q:b"),
        output_names=("a",),
        state_names=("s",),
    )
    return control.c2d(K, dt) if dt else K


def test_controllers_with_states_and_set_points(masses, tmp_path):
    law = DynamicController(lag(), references={"q:a": 0.2}, limits={"a": 0.8}, start=[0.05])
    program = c_program("test", masses, "m", Given(law), **START)
    assert [(s.name, s.unit, s.start) for s in program.inputs] == [("reference.q:a", "m", 0.2)]
    assert [s.name for s in program.more_states] == ["controller.s"]
    laws = [
        DynamicController(lag(), references={"q:a": x}) for x in (0.2, 0.3, 0.4)
    ]  # each set point has its unit
    signals = c_program("test", masses, "m", Given(laws), **START).inputs
    assert [(s.unit, s.start) for s in signals] == [("m", 0.2), ("m", 0.3), ("m", 0.4)]
    names = ["reference.q:a", "reference.controller.q:a", "reference.controller.q:a.2"]
    assert [s.name for s in signals] == names
    found = moved(program, 200)
    run = al.simulate(masses, **START, duration=0.4, step=H, integrator="rk4", controller=law)
    np.testing.assert_allclose(found["q"], run.q[-1], atol=1e-12)  # the same operations
    np.testing.assert_allclose(found["x"], run.controller_states[-1], atol=1e-12)
    # another set point is another input
    other = DynamicController(lag(), references={"q:a": -0.5}, limits={"a": 0.8}, start=[0.05])
    run = al.simulate(masses, **START, duration=0.4, step=H, integrator="rk4", controller=other)
    np.testing.assert_allclose(moved(program, 200, u=-0.5)["q"], run.q[-1], atol=1e-12)
    if compiler.has_compiler():
        made = al.deploy.c_source(masses, tmp_path, controller=law, **START)
        assert made.arguments == {"q": 2, "v": 2, "x": 1, "d": 0, "u": 1, "p": 1, "y": 0}
        assert made.check().startswith("model: largest relative error")


def test_samples_delays_quanta_messages_and_saturation(masses, tmp_path):
    """Sensors with delay and resolution, a sampled system that reads them, a law that posts to another, drives."""

    def counting(t, m):
        return {"beat": 0.5 * m["beat"] + m["place"]}

    given = {
        "controller": [
            Sampled(DynamicController(lag(0.01), references={"q:b": 0.1}), delay=0.004),
            Sampled(SymbolicLaw(counting), period=0.02, reads=("place", "beat"), posts={"beat": [0.0]}),
            Sampled(
                SymbolicLaw(lambda t, m: {"efforts": ca.vertcat(-m["beat"], 0)}),
                period=0.01,
                reads=("beat",),
                quantum=0.01,
            ),
        ],
        "sensors": [Measured("place", 0.01, quantum=1e-3, delay=0.006, bias=0.02)],
    }
    program = c_program("test", masses, "m", Given(**given), **START)
    assert program.tick == 0.002
    found = moved(program, 150)
    run = al.simulate(masses, **START, duration=0.3, step=H, integrator="rk4", **given)
    np.testing.assert_allclose(found["q"], run.q[-1], atol=1e-12)
    given["drives"] = {"a": Drive(limit=0.3)}
    program = c_program("test", masses, "m", Given(**given), **START)
    limited = moved(program, 150)["q"]
    run = al.simulate(masses, **START, duration=0.3, step=H, integrator="rk4", **given)
    np.testing.assert_allclose(limited, run.q[-1], atol=1e-12)
    assert abs(limited - found["q"]).max() > 1e-3
    if compiler.has_compiler():
        made = al.deploy.c_source(masses, tmp_path, **given, **START)
        assert "MODEL_TICK 0.002" in made.files[0].read_text()
        assert made.check().startswith("model: largest relative error")


def test_drives_with_lags_are_states(masses):
    law = ca.Function(
        "law", [ca.SX.sym("t"), q := ca.SX.sym("q", 2), v := ca.SX.sym("v", 2)], [-8 * q - 2 * v]
    )
    drives = {
        "a": Drive(lag=0.02, limit=1.5, rate=30.0),
        "b": Drive(frequency=40.0, damping_ratio=0.6, rate=20.0),
    }
    program = c_program("test", masses, "m", Given(law, drives=drives), **START)
    assert [s.name for s in program.more_states] == ["drive.a", "drive.b", "drive.b.rate"]
    found = moved(program, 400, h=5e-4)
    run = al.simulate(
        masses, **START, duration=0.2, integrator="dop853", tolerance=1e-10, controller=law, drives=drives
    )
    # of the corners where rates are clipped: each is passed within a step, an error of the order of its square
    np.testing.assert_allclose(found["q"], run.q[-1], atol=1e-6)
    # symbols against numbers
    lags, rng = Lags(JointDrives.of(masses, drives)), np.random.default_rng(3)
    z, u = ca.SX.sym("z", lags.size), ca.SX.sym("u", 2)
    f = ca.Function("f", [z, u], list(lags.symbolic(z, u)))
    for _ in range(20):
        at, command = rng.uniform(-40, 40, lags.size), rng.uniform(-3, 3, 2)
        given, rates = (np.asarray(x).ravel() for x in f(at, command))
        np.testing.assert_allclose(given, lags.given(at, command))
        np.testing.assert_allclose(rates, lags.rates(at, command), rtol=1e-14)


def test_pushes_at_frames_are_not_cut_by_limits_of_drives(masses):
    """They were in exported programs: there a limit held for what was asked and pushed together."""
    push = control.static([[-6.0, 0.0]]).renamed(inputs=["q:a", "q:b"], outputs=["end.fx"])
    hold = control.static([[-4.0, -1.0]]).renamed(inputs=["q:a", "q:b"], outputs=["a"])
    given = {"controller": [push, hold], "drives": {"a": Drive(limit=0.3), "b": Drive(limit=0.1)}}
    program = c_program("test", masses, "m", Given(given["controller"], drives=given["drives"]), **START)
    run = al.simulate(masses, **START, duration=0.4, step=H, integrator="rk4", **given)
    assert np.abs(run.efforts[:, 1]).max() > 1.0  # ten times the limit
    np.testing.assert_allclose(moved(program, 200)["q"], run.q[-1], atol=1e-12)  # the same operations


def test_loops_and_couplings_turn_round_and_stay_closed(crank, tmp_path):
    """With a sampled law on the crank; where the rows that are kept do not serve, others are taken."""
    model, start = crank
    law = ca.Function(
        "law",
        [ca.SX.sym("t"), ca.SX.sym("q", 4), v := ca.SX.sym("v", 4)],
        [ca.vertcat(2 * (9 - v[0]), 0, 0, 0)],
    )
    given = {"controller": Sampled(law, period=0.02)}
    program = c_program("test", model, "bar", Given(**given), **start)
    assert program.rows == model.constrained_compute.rows.count
    found = moved(program, 400)
    run = al.simulate(model, **start, duration=0.8, step=H, integrator="rk4", interval=0.1, **given)
    assert run.q[-1, 0] - start["q0"][0] > 2 * np.pi
    # the same operations; another branch or other rows would be far away, or off the surface
    np.testing.assert_allclose(found["q"], run.q[-1], atol=1e-10)
    none = np.array(program.memory)
    none[: program.rows] = 0.0
    none[0] = 1.0
    np.testing.assert_allclose(moved(program, 3, d=none)["q"], moved(program, 3)["q"], rtol=1e-12)
    open_loop = moved(program, 1, q=start["q0"] + [0, 1.5, 0, 0])
    assert np.isnan(open_loop["q"]).all()
    if compiler.has_compiler():
        assert al.deploy.c_source(model, tmp_path, **given, **start).check().startswith("model: largest")


@pytest.mark.parametrize("version", [2, 3])
def test_units_with_loops_states_and_samples(crank, tmp_path, version):
    """Co-simulation as `al.simulate` steps; in model exchange ticks are events, and loops are closed by events."""
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    if not compiler.has_compiler():
        pytest.skip("no C compiler")
    model, start = crank
    slow = control.StateSpace(
        [[-3.0]], [[1.0]], [[2.0]], [[-4.0]], input_names=("v:crank",), output_names=("crank",)
    )
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    damped = ca.Function("law", [ca.SX.sym("t"), q, v], [ca.vertcat(0, 0, -v[2], 0)])
    given = {
        "controller": [
            DynamicController(slow, references={"v:crank": 9.0}),
            Sampled(damped, period=0.02, delay=0.01),
        ],
        "drives": {"crank": Drive(limit=6.0)},
    }
    path = al.deploy.fmu(model, tmp_path / "crank.fmu", version=version, step=H, **start, **given)
    assert validate_fmu(str(path)) == []
    run = al.simulate(model, **start, duration=0.5, step=H, interval=0.05, integrator="rk4", **given)
    options = {"stop_time": 0.5, "output_interval": 0.05, "relative_tolerance": 1e-9}
    for kind, within in (
        ("CoSimulation", 1e-10),
        ("ModelExchange", 1e-5),
    ):  # of CVode over events, and of rk4
        found = fmpy.simulate_fmu(str(path), fmi_type=kind, **options)
        rows = np.searchsorted(found["time"], run.time - 1e-9)
        q = np.column_stack([found[f"q.{name}"] for name in model.coordinate_names])[rows]
        np.testing.assert_allclose(q, run.q, atol=within)
        states = found["controller.x0"][rows]
        np.testing.assert_allclose(states, run.controller_states[:, 0], atol=within)


def test_rows_are_chosen_as_by_numbers():
    rng = np.random.default_rng(1)
    groups = [slice(0, 4), slice(4, 7)]
    G = ca.SX.sym("G", 7, 4)
    f = ca.Function("f", [G], [saddle.symbolic_choice(G, groups, 1e-9)])
    for _ in range(20):
        A = rng.normal(size=(7, 4))
        A[rng.integers(7)] = A[rng.integers(7)]
        A[rng.integers(7)] = 0.0
        expected = saddle.choose_each(A[None], groups, np.array([1e-9]))[0][0]
        np.testing.assert_array_equal(np.asarray(f(A)).ravel().astype(bool), expected)


def test_set_points_are_no_parameters_of_the_model():
    """A parameter that is called as a set point would be keeps its value."""
    builder = al.ModelBuilder("named")
    mass = builder.parameter("set_point_1", 2.0)
    builder.body("cart", al.Inertia.point(mass), joint=al.Prismatic((1, 0, 0)), joint_name="a")
    K = control.StateSpace([[-1.0]], [[1.0]], [[1.0]], input_names=("q:a",), output_names=("a",))
    found = exported_system("test", builder.build(), Given(DynamicController(K, references={"q:a": 0.3})))
    assert found.model.parameters == (("set_point_1", 2.0), ("set_point_2", 0.3))


def test_what_is_refused(masses, tmp_path):
    burning = MassFlow([al.spacecraft.Thruster("main", "second", (1, 0, 0), 1.0)], "mass")
    with pytest.raises(UnsupportedError, match="the controller burns 'mass', and masses that change"):
        al.deploy.c_source(masses, tmp_path, controller=burning)
    for options, message in (
        ({"controller": Sampled(lambda t, q, v: q, period=0.01)}, "which cannot be compiled; give a casadi"),
        ({"drives": {"a": Drive(limit=1.0)}}, "carry out what a controller commands, and there is none"),
        ({"sensors": [Measured("place", 0.01, noise=0.1)]}, "'place' has noise, a walk or lost samples"),
        ({"drives": {"a": Drive(rate=2.0)}}, "the drive of 'a' has a limited rate and no lag"),
        (
            {"sensors": [Measured(al.Sensor("felt", "accelerometer", "second"), 0.01)]},
            "the sensor 'felt' is no expression of the state",
        ),
    ):
        with pytest.raises(UnsupportedError, match=message):
            al.deploy.c_source(masses, tmp_path, **options)
    with pytest.raises(ArgumentError, match="c_source: 'controller' reads what is no output"):
        al.deploy.c_source(masses, tmp_path, controller=control.StateSpace([[-1.0]], [[1.0]], [[1.0]]))
    with pytest.raises(ArgumentError, match="the reference 'q:a' is 'high', expected a number, a formula"):
        al.deploy.c_source(masses, tmp_path, controller=DynamicController(lag(), references={"q:a": "high"}))
    with pytest.raises(ArgumentError, match="c_source: inputs has 'a' twice, expected each once"):
        al.deploy.c_source(masses, tmp_path, inputs=["a", "b", "a"])
    (tmp_path / "taken").write_text("")
    with pytest.raises(FileError, match="taken: cannot be made: "):
        al.deploy.c_source(masses, tmp_path / "taken")
    with pytest.raises(FileError, match=r"m\.fmu: cannot be written: there is no folder "):
        al.deploy.fmu(masses, tmp_path / "nowhere" / "m.fmu")
    with pytest.raises(ArgumentError, match="'1st' is not a name in C"):
        al.deploy.c_controller(masses, lag(0.01), tmp_path, name="1st")
    with pytest.raises(ArgumentError, match="nothing moves"):
        al.deploy.c_source(al.ModelBuilder("empty").build(), tmp_path)
    with pytest.raises(UnsupportedError, match="too many for straight code"):
        al.deploy.c_source(four_bars(70), tmp_path)

"""Sensors and sampled laws in machine code do what the schedule does in Python."""

import itertools

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError
from alembert.model.elements import SENSOR_KINDS
from alembert.simulate import Measured, Sampled, SymbolicLaw, fixed_run, stepper


def pendulum():
    builder = al.ModelBuilder("pendulum", gravity=(0, 0, -9.81))
    builder.body(
        "a", al.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)), joint=al.Revolute((0, 1, 0)), joint_name="j"
    )
    return builder.build()


MODEL = pendulum()


def sensors(seed=3):
    return [
        Measured(al.Sensor("angle", "joint_position", "j"), 0.02, noise=0.01, walk=0.003, delay=0.03, seed=seed),
        Measured(al.Sensor("rate", "gyro", "a"), 0.03, noise=0.01, offset=0.01, quantum=0.001, seed=seed),
    ]  # fmt: skip


def laws():
    """Different rates, delays longer and shorter than periods, memory, and efforts in steps."""

    def think(t, m):
        return {"mean": 0.9 * m["mean"] + 0.1 * m["angle"], "count": m["count"] + 1}

    def act(t, m):
        return {"efforts": -5 * m["mean"] - 0.5 * m["rate"][1] + 0.001 * m["count"]}

    return [
        Sampled(
            SymbolicLaw(think), 0.02, reads=("mean", "angle", "count"), posts={"mean": 0.0, "count": 0.0}, delay=0.05
        ),
        Sampled(SymbolicLaw(act), 0.05, reads=("mean", "rate", "count"), delay=0.06, quantum=0.01),
    ]  # fmt: skip


def fly(**options):
    given = {"duration": 1.0, "sensors": sensors(), "controller": laws(), **options}
    q = given.pop("q0", {"j": 0.5})
    return al.simulate(MODEL, q, step=0.01, integrator="rk4", progress=False, **given)


def in_python(monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(fixed_run, "compiled_schedule", lambda *given: None)
        return fly(**options)


def test_machine_code_goes_the_way_of_the_schedule(monkeypatch):
    """Both round a dozen products a step differently, at most; over 100 steps of a stable motion that stays below 1e-13."""
    run, other = fly(), in_python(monkeypatch)
    assert np.allclose(run.q, other.q, rtol=0, atol=1e-13)
    assert np.allclose(run.efforts, other.efforts, rtol=0, atol=1e-12)
    assert set(run.measurements) == {"angle", "rate", "mean", "count"} == set(other.measurements)
    for name, samples in other.measurements.items():
        assert np.allclose(run.measurements[name].time, samples.time, rtol=0, atol=1e-12)
        assert np.allclose(run.measurements[name].values, samples.values, rtol=0, atol=1e-12)
    assert np.allclose(run.work, other.work, rtol=0, atol=1e-12)


def test_that_laws_are_asked_in_python_is_told_with_the_reason():
    event = al.simulate.Event(lambda t, q, v: t - 0.5, "half time", 1, "note")
    assert "Python" not in fly(duration=0.1).reason
    for options, why in (
        ({"events": [event]}, "there is an event ('half time')"),
        ({"controller": [*laws(), lambda t, q, v: [0.0]]}, "something that acts is a Python function"),
        ({"drives": {"j": al.simulate.Drive(1.0)}}, "there are drives"),
        (
            {"sensors": [*sensors(), Measured(al.Sensor("f", "accelerometer", "a"), 0.02)]},
            "the sensor 'f' is no",
        ),
        ({"controller": [*laws(), Sampled(lambda t, q, v: [0.0], 0.02)]}, "is a Python function"),
    ):
        told = fly(duration=0.1, **options).reason
        assert "; sensors and laws are asked in Python between steps, not in machine code: " in told
        assert why in told


def four_bar():
    builder = al.ModelBuilder("four-bar", gravity=(0, 0, -9.81))
    hinge = al.Revolute((0, 1, 0))
    link = al.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0))
    builder.body("a", link, joint=hinge, joint_name="j")
    builder.body("b", link, joint=hinge, joint_name="k", parent="a", placement=(1.0, 0, 0))
    builder.body("c", link, joint=hinge, joint_name="l", placement=(1.3, 0, 0))
    builder.frame("end", "b", (1.0, 0, 0)).frame("pin", "c", (1.0, 0, 0))
    builder.loop("closed", hinge, "end", "pin")
    return builder.build()


def test_loops_go_the_way_of_the_schedule(monkeypatch):
    """As without loops; steps that need other rows of the loop, or none in machine code, keep what laws remember."""
    model = four_bar()
    q0 = model.project(np.array([-1.2, 1.2, -1.5])).q
    given = [
        Measured(al.Sensor("angle", "joint_position", "j"), 0.02, noise=0.01, walk=0.003, delay=0.03, seed=3),
        Measured(al.Sensor("rate", "gyro", "a"), 0.03, noise=0.01, offset=0.01, quantum=0.001, seed=3),
    ]

    def think(t, m):
        return {"mean": 0.9 * m["mean"] + 0.1 * m["angle"], "lost": ca.SX.nan(1)}

    def act(t, m):
        return {"efforts": ca.vertcat(-5 * (m["mean"] + 1.5) - 0.5 * m["rate"][1], 0, 0)}

    laws = [
        Sampled(SymbolicLaw(think), 0.02, reads=("mean", "angle"), posts={"mean": -1.0, "lost": 0.0}, delay=0.05),
        Sampled(SymbolicLaw(act), 0.05, reads=("mean", "rate"), delay=0.06, quantum=0.01),
    ]  # fmt: skip

    def fly():
        return al.simulate(
            model, q0, duration=1.0, step=0.01, integrator="rk4", sensors=given, controller=laws, progress=False
        )  # fmt: skip

    run = fly()
    with monkeypatch.context() as patch:
        patch.setattr(fixed_run, "compiled_schedule", lambda *_: None)
        other = fly()
    with monkeypatch.context() as patch:  # every third step is lost in machine code
        run_kernel, count = stepper.Stepper._run, itertools.count()

        def lose(kernel, arguments, out):
            run_kernel(kernel, arguments, out)
            h, every, number = (float(arguments[k][0]) for k in (2, -2, -1))
            if h and (every * number > 1 or next(count) % 6 < 2):
                out[..., 2] = np.nan

        patch.setattr(stepper.Stepper, "_run", staticmethod(lose))
        mended = fly()
    assert next(count) > 100
    for found in (run, mended):
        # the loop is closed to 1e-12 by both ways, and a hundred steps carry that on
        assert np.allclose(found.q, other.q, rtol=0, atol=1e-10)
        assert np.allclose(found.efforts, other.efforts, rtol=0, atol=1e-9)
        for name, samples in other.measurements.items():
            assert np.allclose(found.measurements[name].time, samples.time, rtol=0, atol=1e-12)
            assert np.allclose(
                found.measurements[name].values, samples.values, rtol=0, atol=1e-9, equal_nan=True
            )


def test_records_and_resumed_runs_do_not_change_the_way():
    run, sparse = fly(), fly(interval=0.1)
    assert np.array_equal(run.q[::10], sparse.q)
    # the work of steps is counted by Simpson's rule over steps, held efforts exactly: nothing else acts
    assert np.allclose(run.work[::10], sparse.work, rtol=0, atol=1e-12)
    again = run.resume(0.3, time=0.5)
    assert np.array_equal(again.q, run.q[50:81])
    told = run.measurements["count"]
    assert again.measurements["count"].values[0] == told.values[np.isclose(told.time, 0.5)]


def test_samples_between_records_are_told():
    """Where records are further apart than samples, the newest are kept, and that is said once."""
    run, sparse = fly(), fly(interval=0.1)
    with pytest.warns(
        al.AlembertWarning, match=r"measurements\['angle'\] has 11 of 51 samples, the newest at each record"
    ):
        kept = sparse.measurements["angle"]
    all_of_them = run.measurements["angle"]
    assert np.array_equal(kept.values, all_of_them.values[::5])
    assert len(sparse.measurements["angle"].time) == 11  # not twice
    assert len(run.resume(0.3, time=0.5).measurements["angle"].time) == 16


def every_kind():
    """Sensors of all kinds but the accelerometer, which needs accelerations, on joints that turn in space."""
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    builder.body("base", al.Inertia.box(5.0, (1, 2, 3)), joint=al.Free(), joint_name="flight")
    builder.body(
        "hand", al.Inertia.box(1.0, (1, 0.5, 0.3)), joint=al.Spherical(), joint_name="wrist", parent="base",
        placement=(0.5, 0.2, 0.1),
    )  # fmt: skip
    builder.frame("tip", "hand", al.Placement((0.3, 0.1, 0.2), (0.8, 0.0, 0.6, 0.0)))
    targets = {
        kind: "wrist" if kind.startswith("joint") else "tip"
        for kind in SENSOR_KINDS
        if kind != "accelerometer"
    }
    return builder.build(), [
        Measured(al.Sensor(kind, kind, target), 0.02, noise=0.01, bias=0.02, walk=0.01, seed=5)
        for kind, target in targets.items()
    ]


def test_kinds_of_sensors_are_the_same_in_machine_code(monkeypatch):
    """Rounding of some dozen products: 1e-14."""
    model, given = every_kind()
    law = Sampled(
        SymbolicLaw(lambda t, m: {"seen": m["gyro"][0]}), 0.02, reads=("gyro",), posts={"seen": 0.0}
    )
    v = np.random.default_rng(3).normal(size=model.nv)
    options = {
        "duration": 0.2,
        "step": 0.02,
        "integrator": "rk4",
        "sensors": given,
        "controller": law,
        "progress": False,
    }
    run = al.simulate(model, None, v, **options)
    with monkeypatch.context() as patch:
        patch.setattr(fixed_run, "compiled_schedule", lambda *_: None)
        other = al.simulate(model, None, v, **options)
    assert set(run.measurements) == set(other.measurements) == {*(x.name for x in given), "seen"}
    for name in run.measurements:
        a, b = run.measurements[name].values, other.measurements[name].values
        assert np.allclose(a, b, rtol=0, atol=1e-13), name


def test_halves_of_a_quantum_go_up_everywhere(monkeypatch):
    """The pendulum begins half a quantum from zero, and the effort is half of one: both ways agree on the next multiple."""
    options = {
        "sensors": [Measured(al.Sensor("angle", "joint_position", "j"), 0.02, quantum=1.0)],
        "controller": Sampled(
            SymbolicLaw(lambda t, m: {"efforts": 0.25 * m["angle"]}), 0.02, reads=("angle",), quantum=0.5
        ),
        "duration": 0.02,
    }
    for run in (fly(**options), in_python(monkeypatch, **options)):
        assert run.measurements["angle"].values[0, 0] == 1.0
        assert run.efforts[0, 0] == 0.5


def test_a_motion_does_not_depend_on_its_batch():
    """Lanes have the same bits, and the noise of a motion follows from its seed."""
    q = np.array([[0.5], [0.4], [0.3]])
    run = fly(q0=q, sensors=sensors(seed=np.array([3, 4, 5])))
    alone = fly(q0=q[1], sensors=sensors(seed=4))
    assert np.array_equal(run.q[1], alone.q)
    assert np.array_equal(run.measurements["angle"].values[1], alone.measurements["angle"].values)


def test_a_function_of_casadi_posts_by_its_names(monkeypatch):
    t, x, q, v = ca.SX.sym("t"), ca.SX.sym("x"), ca.SX.sym("q"), ca.SX.sym("v")
    law = ca.Function("law", [t, x, q, v], [x + 1, -2 * q - v], ["t", "x", "q", "v"], ["count", "efforts"])
    given = {
        "controller": Sampled(law, 0.1, reads=("count",), posts={"count": 0.0}, state=True),
        "sensors": (),
    }
    run = fly(**given)
    assert run.measurements["count"].values[:, 0].tolist() == list(range(1, 12))
    assert np.allclose(run.q, in_python(monkeypatch, **given).q, rtol=0, atol=1e-14)


def test_a_law_says_what_it_cannot_work_with(monkeypatch):
    def check(t, m, q, v):
        if abs(q[0]) > 1.0:
            raise ArgumentError(f"too far at {t:.2f} s")

    def act(t, m, at):
        return {"efforts": ca.if_else(ca.fabs(at.q[0]) > 1.0, ca.SX.nan(1), 20.0)}

    controller = Sampled(SymbolicLaw(act, check), 0.05, state=True)
    for run in (fly, lambda **x: in_python(monkeypatch, **x)):
        with pytest.raises(ArgumentError, match=r"too far at 0\.\d\d s"):
            run(controller=controller, sensors=())


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (lambda t, m: 3, "returned 3, expected results by name"),
        (lambda t, m: {"x": m["angle"]}, "returned 1 entries of 'x', expected efforts .1. or what it posts: y .2."),
        (lambda t, m: {"efforts": 0}, "returned no entries of 'y'"),
        (lambda t, m: {"y": ca.SX(3, 1)}, "returned 3 entries of 'y'"),
    ],
)  # fmt: skip
def test_bad_laws(law, message):
    with pytest.raises(ArgumentError, match=message):
        fly(controller=Sampled(SymbolicLaw(law), 0.1, reads=("angle",), posts={"y": np.zeros(2)}))


def test_bad_calls():
    with pytest.raises(ArgumentError, match="SymbolicLaw: law is 3"):
        SymbolicLaw(3)
    t = ca.SX.sym("t")
    with pytest.raises(
        ArgumentError, match=r"of 1 arguments that gives 'z', expected 2 .t, angle. and results named"
    ):
        Sampled(ca.Function("f", [t], [t], ["t"], ["z"]), 0.1, reads=("angle",), posts={"y": 0.0})

    class Odd:
        name, width = "odd", 1

        def check(self, model):
            pass

        def observe(self, model, t, q, v, error, chance, parameters):
            return q + error

    law = SymbolicLaw(lambda t, m: {"efforts": m["odd"]})
    with pytest.raises(ArgumentError, match="'odd', whose number of entries is not known"):
        fly(controller=Sampled(law, 0.1, reads=("odd",)), sensors=[Measured(Odd(), 0.1)])


def test_a_step_chosen_at_the_start_is_judged_at_the_end():
    """A law spins a body up to where steps from sample to sample are too long; one that stays slow is left in peace."""
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("craft", al.Inertia.box(10.0, (1, 2, 3)), joint=al.Free(), joint_name="flight")
    model = builder.build()

    def spin(torque):
        law = Sampled(SymbolicLaw(lambda t, m: {"efforts": ca.vertcat(torque, 0, 0, 0, 0, 0)}), 0.5)
        return al.simulate(model, None, [0, 0.01, 0, 0, 0, 0], duration=10.0, controller=law, progress=False)

    with pytest.warns(
        al.AlembertWarning, match=r"step of 0\.5 s was chosen by the motion at the start; at t = 10 s"
    ):
        spin(10.0)
    assert spin(0.01).integrator == "rk4"

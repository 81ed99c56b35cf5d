"""Runs from files: what goes on from a file, at any time, has the bits of a run that was never interrupted."""

import casadi as ca
import numpy as np
import pytest
from simulate_helpers import model, state

import alembert as al
from alembert.errors import AlembertWarning, ArgumentError, FileError
from alembert.simulate import (
    Drive,
    Event,
    JointStops,
    Measured,
    Sampled,
    SpringDamper,
    Table,
    load_run,
    simulate,
)
from alembert.simulate.adaptive import ADAPTIVE
from alembert.simulate.choice import FIXED

xarray = pytest.importorskip("xarray")


def equal(whole, rest, at):
    """`rest` begins at `at` and has the records that `whole` has from there on."""
    k = int(np.argmin(np.abs(whole.time - at)))
    for name in ("time", "q", "v", "efforts"):
        axis = -1 if name == "time" else -2
        expected = np.take(getattr(whole, name), range(k, len(whole.time)), axis=axis)
        np.testing.assert_array_equal(getattr(rest, name), expected)
    for name, channel in rest.recorded.items():
        np.testing.assert_array_equal(
            channel.values, whole.recorded[name].values[..., -channel.values.shape[-2] :, :]
        )
    for name, x in rest.measurements.items():
        late = whole.measurements[name].time > at + 1e-9
        np.testing.assert_array_equal(x.values[x.time > at + 1e-9], whole.measurements[name].values[late])


def interrupted(m, q0, v0, tmp_path, *, lasting, stopped, at, given, **options):
    """Whole, and from a file that a shorter run has left, from its end and from before."""
    whole = simulate(m, q0, v0, duration=lasting, **given, **options)
    simulate(m, q0, v0, duration=stopped, **given, **options).save(tmp_path / "run.nc")
    found = load_run(tmp_path / "run.nc", **given)
    assert found.model.fingerprint == whole.model.fingerprint
    for t in (stopped, at):
        equal(whole, found.resume(lasting - t, time=t), t)
    return found


def feel(t, read):
    return -3.0 * read["angle"] - 0.5 * read["rate"]


def swing(t, q, v):
    return {"elbow": np.sin(3 * t) - v[1]}


def remembering():
    """Two rates, delays, noise with a walk, lags and a limited rate: all that has a memory."""
    sensors = [
        Measured(
            al.Sensor("angle", "joint_position", "shoulder"), 0.02, noise=0.01, walk=0.02, delay=0.02, seed=4
        ),
        Measured(al.Sensor("rate", "joint_rate", "shoulder"), 0.01, noise=0.05, quantum=1e-3, seed=5),
    ]
    law = Sampled(
        lambda t, read: {"shoulder": feel(t, read)}, period=0.02, delay=0.03, reads=("angle", "rate")
    )
    slow = Sampled(swing, period=0.05, quantum=0.01)
    drives = {"shoulder": Drive(frequency=20.0, damping_ratio=0.6, limit=5.0), "elbow": Drive(rate=8.0)}
    return {"sensors": sensors, "controller": [law, slow], "drives": drives}


@pytest.mark.parametrize("integrator", ["rk4", "variational", "adams_bashforth4", "dop853", "radau"])
def test_all_that_remembers(tmp_path, integrator):
    options = {"interval": 0.05, "record": ["energy", "frame:tip.position@10"], "integrator": integrator}
    if integrator in FIXED:
        options["step"] = 0.005
    m = al.library.two_link()
    given = remembering() | {"forces": SpringDamper("world", "tip", stiffness=4.0, damping=0.2)}
    interrupted(m, [0.4, -0.3], None, tmp_path, lasting=0.6, stopped=0.4, at=0.1, given=given, **options)


@pytest.mark.parametrize("integrator", [*FIXED, *ADAPTIVE])
def test_every_integrator(tmp_path, integrator):
    """From a file of a free body with a sprung boom, under a controller that is compiled."""
    m, (q0, v0) = model("craft"), state("craft")
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    law = ca.Function("law", [t, q, v], [-0.1 * v * ca.cos(t)])
    options = {"interval": 0.25, "tolerance": 1e-6, "integrator": integrator}
    if integrator in FIXED:
        options["step"] = 0.025
    interrupted(m, q0, v0, tmp_path, lasting=2.0, stopped=1.25, at=0.5, given={"controller": law}, **options)


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_topology_and_stops(tmp_path, integrator):
    """A joint that bounces, comes to rest at its limit and leaves it again; what is noted is in the log."""
    m = al.library.pendulum()
    m = m.replace_joint(m.joints[0].name, limits=al.Limits(lower=(-0.5,), upper=(0.6,)))
    push = Table([0.0, 1.5, 1.6, 4.0], [8.0, 8.0, -8.0, -8.0])
    events = [JointStops(restitution=0.3), Event(lambda t, q, v: q[0], "lowest", action="note")]
    given = {"events": events, "efforts": {m.joints[0].name: push}}
    options = {"interval": 0.05, "integrator": integrator, "tolerance": 1e-7}
    if integrator in FIXED:
        options["step"] = 0.01
    found = interrupted(m, [-0.1], None, tmp_path, lasting=2.5, stopped=1.8, at=1.3, given=given, **options)
    assert {event.name for event in found.events} >= {f"{m.joints[0].name} leaves its limit", "lowest"}
    rest = found.resume(1.2, time=1.3)
    assert all(event.time > 1.3 for event in rest.events)
    with pytest.raises(ArgumentError, match=r"the table goes from 0 to 4 s, the run from 1.8 to 4.8 s"):
        found.resume(3.0)


def test_batches_with_parameters(tmp_path):
    builder = al.ModelBuilder("pair")
    mass = builder.parameter("mass", 1.0)
    builder.body("a", al.Inertia.point(mass, (0, 0, -1)), joint=al.Revolute((0, 1, 0)), joint_name="a")
    builder.body(
        "b", al.Inertia.point(0.5, (0, 0, -1)), joint=al.Prismatic((1, 0, 0)), joint_name="b", parent="a"
    )
    given = {
        "parameters": {"mass": np.array([0.5, 1.0, 2.0])},
        "drives": {"a": Drive(lag=0.1)},
        "controller": swing_a,
    }
    interrupted(builder.build(), np.full((3, 2), 0.3), None, tmp_path, lasting=0.4, stopped=0.3, at=0.2, given=given,
                step=0.01, integrator="rk4")  # fmt: skip


def swing_a(t, q, v):
    return -2.0 * q


@pytest.mark.parametrize("integrator", ["rk4", "variational", "dop853", "bdf"])
def test_loops(tmp_path, integrator):
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    up, along = al.Inertia.rod(1.0, (0, 0, 0), (0, 1, 0)), al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    hinge = al.Revolute((0, 0, 1))
    for k in range(2):
        builder.body(f"v{k}", up, joint=hinge, placement=(float(k), 0, 0), joint_name=f"foot{k}")
        builder.frame(f"top{k}", f"v{k}", (0, 1, 0))
    builder.body("h", along, joint=hinge, parent="v0", placement=(0, 1, 0), joint_name="head")
    builder.frame("end", "h", (1, 0, 0))
    builder.loop("loop", hinge, "end", "top1")
    m = builder.build()
    v = np.zeros(m.nv)
    for name, speed in (("foot0", -1.0), ("foot1", -1.0), ("head", 1.0)):
        v[m.v_slice(name)] = speed
    options = {"interval": 0.05, "integrator": integrator, "tolerance": 1e-7}
    if integrator in FIXED:
        options["step"] = 0.01
    interrupted(m, np.zeros(m.nq), v, tmp_path, lasting=0.4, stopped=0.3, at=0.1, given={}, **options)


def test_a_run_that_an_event_has_stopped(tmp_path):
    m = al.library.pendulum()
    given = {"events": Event(lambda t, q, v: q[0], "lowest", direction=-1)}
    run = simulate(m, [0.5], duration=3.0, interval=0.1, **given)
    run.save(tmp_path / "run.nc")
    found = load_run(tmp_path / "run.nc", **given)
    on, again = run.resume(1.0), found.resume(1.0)
    np.testing.assert_array_equal(on.q, again.q)
    assert on.time[0] == run.time[-1]
    assert len(on.time) > 5  # it does not stop at once


def test_numbers_are_in_the_file(tmp_path):
    m = al.library.two_link()
    given = {
        "efforts": {"elbow": 1.0},
        "gravity": (0, 0, -1.62),
        "wrenches": {"tip": np.array([0, 0, 0, 1.0, 0, 0])},
    }
    run = simulate(m, [0.1, 0.2], duration=0.2, step=0.01, integrator="rk4", **given)
    run.save(tmp_path / "run.nc")
    found = load_run(tmp_path / "run.nc")
    np.testing.assert_array_equal(found.resume(0.1, time=0.1).q, run.q[10:])
    np.testing.assert_array_equal(found.energy, run.energy)
    assert str(found.report) == str(run.report)


def test_what_is_refused(tmp_path):
    m = al.library.two_link()
    path = tmp_path / "run.nc"
    run = simulate(m, [0.1, 0.2], duration=0.1, step=0.01, controller=swing, drives={"elbow": Drive(lag=0.1)})
    run.save(path)
    with pytest.raises(
        ArgumentError, match=r"had controller=\.\.\., which a file does not hold; give it again"
    ):
        load_run(path)
    with pytest.raises(ArgumentError, match="load_run: no option 'control', expected some of controller"):
        load_run(path, control=swing)
    with pytest.warns(
        AlembertWarning, match=r"load_run: controller: not known to be the same as in the run in"
    ):
        load_run(path, controller=lambda t, q, v: -q, drives={"elbow": Drive(lag=0.1)})
    with pytest.warns(AlembertWarning, match=r"load_run: drives, efforts: not known"):
        load_run(path, controller=swing, drives={"elbow": Drive(lag=0.2)}, efforts=[1.0, 0.0])
    good = {"controller": swing, "drives": {"elbow": Drive(lag=0.1)}}
    assert load_run(path, model=m, **good).model.fingerprint == run.model.fingerprint
    with pytest.raises(ArgumentError, match="load_run: model is another than that of the run in"):
        load_run(path, model=m.replace(gravity=(0, 0, 0)), **good)
    data = xarray.load_dataset(path)
    run.to_xarray().to_netcdf(tmp_path / "plain.nc")
    with pytest.raises(FileError, match="is no run that can go on"):
        load_run(tmp_path / "plain.nc", **good)
    data.assign(restart=("cut", data.restart.values[:-7])).to_netcdf(tmp_path / "cut.nc")
    with pytest.raises(FileError, match="its restart data are damaged"):
        load_run(tmp_path / "cut.nc", **good)
    (tmp_path / "no.nc").write_text("no")
    with pytest.raises(FileError, match="is no readable netCDF file"):
        load_run(tmp_path / "no.nc", **good)
    del data.attrs["model_toml"]
    data.to_netcdf(tmp_path / "bare.nc")
    with pytest.raises(ArgumentError, match=r"does not hold its model, expected model=\.\.\."):
        load_run(tmp_path / "bare.nc", **good)


def test_what_begins_anew_after_a_stop_between_two_steps_is_told():
    """Error control goes on as if nothing had been; fixed steps have no instants of the samples any more."""
    builder = al.ModelBuilder("cart", gravity=(0, 0, 0))
    builder.body("cart", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="x")
    model = builder.build()
    law = al.simulate.Sampled(lambda t, q, v: [1.0 if round(t / 0.1) % 2 == 0 else -0.5], 0.1)
    stop = al.simulate.Event(lambda t, q, v: q[0] - 0.105, "there", 1, "stop")
    whole = al.simulate(model, duration=1.5, controller=law, integrator="dop853")
    run = al.simulate(model, duration=2.0, controller=law, events=stop, integrator="dop853").resume(0.5)
    assert run.v[-1, 0] == pytest.approx(np.interp(run.time[-1], whole.time, whole.v[:, 0]), abs=1e-9)
    stopped = al.simulate(model, duration=2.0, step=0.01, controller=law, events=stop, integrator="rk4")
    with pytest.warns(
        AlembertWarning, match="between two steps: sensors, sampled controllers and drives begin anew"
    ):
        stopped.resume(0.5)
    free = al.simulate(model, None, [1.0], duration=2.0, step=0.01, events=stop, integrator="rk4")
    free.resume(0.5)  # nothing to tell


def test_tables_that_hold_after_a_stop_between_two_steps():
    arm, table = al.library.two_link(), al.simulate.Table([0.0, 0.1, 0.3], [1.0, -1.0, 2.0], "hold", "hold")
    stop = al.simulate.Event(lambda t, q, v: t - 0.20037)
    given = {"duration": 0.4, "efforts": {"elbow": table}, "events": stop, "progress": False}
    run = simulate(arm, step=0.01, integrator="rk4", **given)
    with pytest.raises(
        al.UnsupportedError,
        match=r"stopped the run at t = 0.20037 s, between two steps, .* before \(time=0.2\), or choose error control",
    ):
        run.resume(0.1)
    assert run.resume(0.1, time=0.19).time[-1] == run.time[-1]  # where it stops again
    assert simulate(arm, integrator="dop853", **given).resume(0.1).time[-1] == pytest.approx(0.30037)

"""A run beside a measurement: errors, fit, delay, and refusals."""

import matplotlib as mpl
import numpy as np
import pytest

import alembert as al

mpl.use("agg")


def pendulum_run():
    model = al.library.pendulum()
    return model, al.simulate(model, [0.5], [0.0], duration=2.0, interval=0.01)


def test_a_run_beside_measurements(tmp_path):
    model, run = pendulum_run()
    name = f"q:{model.joints[0].name}"
    t = run.time[:-10:2]
    rng = np.random.default_rng(0)
    noisy = np.interp(t, run.time, run.q[:, 0]) + rng.normal(scale=0.01, size=len(t))
    found = al.compare(run, {"time": t, name: noisy})
    (signal,) = found.signals
    assert signal.unit == "rad"
    assert signal.rms == pytest.approx(0.01, rel=0.3)  # of 95 samples: a standard error of 7 %
    assert 0.9 < signal.fit < 1.0
    assert signal.delay == 0.0
    late = al.compare(run, {"time": t, name: np.interp(t + 0.06, run.time, run.q[:, 0])})
    assert late.signals[0].delay == pytest.approx(0.06, abs=0.021)
    assert found.worst is signal
    assert found[signal.name] is signal
    assert "late" in str(found)
    assert found.plot(path=tmp_path / "compared.png").axes
    # the other way round: efforts by inverse dynamics of the measured motion
    q, v = run.q, run.v
    a = np.gradient(v[:, 0], run.time)[:, None]
    efforts = model.inverse_dynamics(q, v, a)
    back = al.compare({"time": run.time, "effort": efforts}, {"time": run.time, "effort": 0 * efforts})
    assert back["effort"].largest[0] < 1e-1
    assert al.compare({"time": [0.0], "x": [[1.0, 2]]}, {"time": [0.0], "x": [[1.0, 2]]})["x.1"].fit == 1.0


def test_components_have_names_of_their_own():
    """Those of a frame begin with the channel; a constant is not late."""
    model = al.library.pendulum()
    joint = model.joints[0].name
    place = f"frame:{model.bodies[-1].name}.position"
    run = al.simulate(model, [0.5], [0.0], duration=1.0, interval=0.01, record=[place])
    measured = {"time": run.time, f"q:{joint}": run.q, f"v:{joint}": run.v, place: run.channel(place).values}
    found = al.compare(run, measured)
    names = [signal.name for signal in found.signals]
    assert names == [joint, f"v:{joint}", f"{place}.x", f"{place}.y", f"{place}.z"]
    assert all(signal.delay == 0.0 for signal in found.signals)


def test_bad_comparisons_are_refused():
    model, run = pendulum_run()
    name = f"q:{model.joints[0].name}"
    t = np.linspace(0.0, 1.0, 5)
    many = al.simulate(model, np.zeros((2, 1)), np.zeros((2, 1)), duration=0.1, step=0.05)
    for call, message in (
        (lambda: al.compare(run, {"x": t}), "measured is expected as a mapping with the times"),
        (lambda: al.compare(run, {"time": t}), "no signals besides the time"),
        (
            lambda: al.compare(run, {"time": "now", name: t}),
            "the time of measured is 'now', expected numbers",
        ),
        (lambda: al.compare(run, {"time": t, name: "x"}), f"measured '{name}' is 'x', expected numbers"),
        (lambda: al.compare(run, {"time": t[::-1], name: t}), "expected increasing numbers"),
        (lambda: al.compare(run, {"time": t, name: t[1:]}), r"expected finite numbers \(5, ...\)"),
        (lambda: al.compare(run, {"time": 9 * t, name: t}), "is measured from 0 to 9 s"),
        (lambda: al.compare(run, {"time": t, name: np.zeros((5, 2))}), "2 components measured, 1 computed"),
        (lambda: al.compare({"time": t}, {"time": t, "x": t}), "computed has no 'x'"),
        (lambda: al.compare(many, {"time": [0.0], name: [0.0]}), "the run is a batch"),
        (lambda: al.compare({"time": t, "x": t}, {"time": t, "x": t})["y"], "no signal 'y'; there is x"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()

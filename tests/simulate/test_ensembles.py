"""Ensembles: reproducible members, checkpoints that survive a kill, failures that are named."""

import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

import alembert as al
from alembert.errors import AlembertWarning, ArgumentError, FileError, NumericalError, UnsupportedError
from alembert.simulate import ensemble, simulate
from alembert.simulate.ensembles import backends, blocks
from alembert.simulate.stepper import Stepper


@pytest.fixture(scope="module")
def model():
    builder = al.ModelBuilder("pair")
    mass = builder.parameter("mass", 1.0)
    builder.body("a", al.Inertia.point(mass, (0, 0, -1)), joint=al.Revolute((0, 1, 0)), joint_name="a")
    builder.body("b", al.Inertia.point(0.5, (0, 0, -1)), joint=al.Revolute((0, 1, 0)), joint_name="b", parent="a",
                 placement=(0, 0, -1))  # fmt: skip
    return builder.build()


def vary(rng):
    return {
        "q0": rng.normal(scale=0.5, size=2),
        "v0": rng.normal(size=2),
        "parameters": {"mass": rng.uniform(0.5, 2)},
    }


OPTIONS = {"duration": 0.5, "step": 0.01, "seed": 3}


def test_members_do_not_depend_on_the_blocks(model):
    one = ensemble(model, vary, members=25, block=7, **OPTIONS)
    other = ensemble(model, vary, members=40, block=40, **OPTIONS)
    np.testing.assert_array_equal(one.q, other.q[:25])
    drawn = vary(np.random.default_rng([3, 11]))
    alone = simulate(model, drawn["q0"], drawn["v0"], parameters=drawn["parameters"], duration=0.5, step=0.01,
                     interval=0.5, integrator="rk4")  # fmt: skip
    np.testing.assert_array_equal(alone.q, one.q[11])
    assert one.parameters["mass"][11] == drawn["parameters"]["mass"]
    assert np.any(ensemble(model, vary, members=5, **OPTIONS | {"seed": 4}).q != one.q[:5])
    mean, deviation = one.mean()[0], one.deviation()[0]
    np.testing.assert_allclose(mean, one.q.mean(axis=0))
    assert np.all(deviation[-1] > 0)
    assert one.quantiles([0.1, 0.9])[0].shape == (2, 2, 2)
    assert repr(one) == "<Ensemble of 'pair': 25 members, 0 failed>"


@pytest.mark.parametrize("seed", [0, 2**32 - 1, 2**32, 2**70 + 5])
def test_a_member_draws_from_a_generator_of_its_own(model, seed):
    found = ensemble(
        model, lambda rng: {"q0": rng.spawn(1)[0].normal(size=2)}, members=9, **OPTIONS | {"seed": seed}
    )
    for member in (0, 8):
        expected = np.random.default_rng([seed, member]).spawn(1)[0].normal(size=2)
        np.testing.assert_array_equal(found.q[member, 0], expected)


@pytest.mark.parametrize("members", [1, 7, 8, 300, 1023, 10_000, 100_001])
def test_blocks(members):
    """All members in order; small ones last, so that workers end together."""
    parts = blocks(members)
    assert [k for part in parts for k in part] == list(range(members))
    assert max(map(len, parts)) <= 256
    if members >= 1000:
        assert len(parts[-1]) <= max(map(len, parts)) / 4
    assert [len(part) for part in blocks(10, 4)] == [4, 4, 2]


def test_records_by_name(model, tmp_path):
    """Together, one by one and from a checkpoint: what each member records alone."""
    options = {
        **OPTIONS,
        "interval": 0.05,
        "record": ["frame:b.position@10", "energy"],
        "members": 10,
        "block": 5,
    }
    together = ensemble(model, vary, checkpoint=tmp_path, **options)
    again = ensemble(model, vary, checkpoint=tmp_path, **options)
    assert again.computed == 0
    place, energy = together.recorded["frame:b.position"], together.recorded["energy"]
    assert place.values.shape == (10, 6, 3)
    assert energy.values.shape == (10, 11, 1)
    drawn = vary(np.random.default_rng([3, 7]))
    alone = simulate(model, drawn["q0"], drawn["v0"], parameters=drawn["parameters"], duration=0.5, step=0.01,
                     interval=0.05, integrator="rk4", record=options["record"])  # fmt: skip
    for name, channel in together.recorded.items():
        np.testing.assert_array_equal(channel.values, again.recorded[name].values)
        np.testing.assert_array_equal(channel.values[7], alone.recorded[name].values)
        np.testing.assert_array_equal(channel.time, alone.recorded[name].time)
    fall = al.simulate.Event(lambda t, q, v: q[0], "fall", action="stop")
    stopped = ensemble(model, vary, events=fall, **options)
    for member, (event,) in stopped.events.items():
        lasts = energy.time <= event.time
        np.testing.assert_allclose(
            stopped.recorded["energy"].values[member][lasts], energy.values[member][lasts]
        )
        assert np.isnan(stopped.recorded["energy"].values[member][~lasts]).all()
    data = together.to_xarray()
    assert data["frame:b.position"].shape == (10, 6, 3)
    assert data["energy"].attrs["units"] == "J"
    with pytest.raises(ArgumentError, match=r"the motions were not kept \(keep=False\)"):
        _ = ensemble(model, vary, keep=False, **options).recorded


def test_checkpoint(model, tmp_path):
    options = {"members": 20, "block": 5, **OPTIONS}
    whole = ensemble(model, vary, **options)
    first = ensemble(model, vary, checkpoint=tmp_path, **options)
    files = sorted(tmp_path.iterdir())
    assert (first.computed, len(files)) == (20, 4)
    files[1].unlink()
    files[2].write_bytes(files[2].read_bytes()[:100])  # damaged
    again = ensemble(model, vary, checkpoint=tmp_path, **options)
    assert again.computed == 10
    for run in (first, again):
        np.testing.assert_array_equal(run.q, whole.q)
        np.testing.assert_array_equal(run.v, whole.v)
    other = ensemble(model, vary, checkpoint=tmp_path, **options | {"step": 0.005})
    assert other.computed == 20  # another question, another answer


LONG = {"members": 48, "block": 2, "duration": 4.0, "step": 4e-5}
"""24 blocks, long enough to be interrupted"""


def start(rng):
    return {"q0": rng.normal(size=2)}


@pytest.fixture(scope="module")
def whole():
    """Of `LONG`, uninterrupted."""
    return ensemble(al.library.two_link(), start, **LONG)


SCRIPT = '''
import sys, time
import alembert as al
sys.path.insert(0, sys.argv[2])
from test_ensembles import LONG, start

def hold(statistics):
    """Until it is killed, after two blocks: no more than 20 are sent ahead of the next, so some are never computed."""
    if statistics.members == 4:
        time.sleep(1000)

if __name__ == "__main__":
    options = {"backend": sys.argv[3], "workers": 2, "monitor": hold}
    al.ensemble(al.library.two_link(), start, checkpoint=sys.argv[1], **options, **LONG)
'''


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
@pytest.mark.parametrize("backend", ["threads", "dask"])
def test_killed_and_resumed(whole, tmp_path, backend):
    """The driver really killed: its workers end with it, what was finished is used, and the data are those of an
    uninterrupted run, bit for bit."""
    if backend == "dask":
        pytest.importorskip("distributed")
    psutil = pytest.importorskip("psutil")
    script, folder = tmp_path / "driver.py", tmp_path / "blocks"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder), str(Path(__file__).parent), backend]
    )
    begin = time.monotonic()
    while len(list(folder.glob("block-*.npz"))) < 2 and time.monotonic() - begin < 100:
        time.sleep(0.005)
        assert process.poll() is None
    workers = psutil.Process(process.pid).children(recursive=True)
    assert bool(workers) == (backend == "dask")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(folder.glob("block-*.npz")))
    assert 2 <= finished < 24
    resumed = ensemble(al.library.two_link(), start, checkpoint=folder, **LONG)
    assert resumed.computed == 48 - 2 * finished
    same(whole, resumed)
    assert not psutil.wait_procs(workers, timeout=30)[1]


def test_a_batch_without_any_motion_left_takes_no_further_steps(model, monkeypatch):
    steps, step = [], Stepper.python_step
    monkeypatch.setattr(Stepper, "python_step", lambda *given: (steps.append(1), step(*given))[1])
    options = {"members": 3, "duration": 5.0, "step": 0.01, "interval": 1.0, "block": 3, "backend": "batch"}
    run = ensemble(model, vary, controller=lambda t, q, v: 1e3 * v, **options)
    assert len(run.failures) == 3
    assert np.isnan(run.q[:, -3:]).all()
    assert 0 < len(steps) < 20


def test_failed_members_are_named(model, tmp_path):
    def wild(rng):
        x = rng.uniform()
        if x < 0.2:
            raise RuntimeError("no luck")
        return {"v0": [1e6, -1e6] if x > 0.7 else [0.1, 0.1]}

    options = {"members": 30, "duration": 20.0, "step": 0.2, "integrator": "midpoint", "checkpoint": tmp_path}
    for _ in range(2):  # computed, then read
        run = ensemble(model, wild, **options)
        reasons = set(run.failures.values())
        assert "vary raised RuntimeError: no luck" in reasons
        assert any(reason.startswith("the motion is not finite after t = ") for reason in reasons)
        assert np.isfinite(run.q[run.good]).all()
        assert np.isnan(run.q[list(run.failures)]).any(axis=(1, 2)).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"members": 0}, ArgumentError, "ensemble: members is 0, expected a positive integer"),
        ({"seed": -1}, ArgumentError, "ensemble: seed is -1, expected zero or a positive integer"),
        ({"integrator": "euler"}, ArgumentError, "ensemble: no integrator 'euler'"),
        ({"step": None}, ArgumentError, "ensemble: integrator 'rk4' needs a step; give step=..., in seconds"),
        ({"backend": "threats"}, ArgumentError, "ensemble: no backend 'threats'; did you mean 'threads'?"),
        ({"workers": 0}, ArgumentError, "ensemble: workers is 0, expected a positive integer"),
        (
            {"cluster": "tcp://127.0.0.1:1"},
            ArgumentError,
            "ensemble: cluster is given with backend 'threads'; it goes with backend='dask'",
        ),
        ({"vary": {"q": [1]}}, ArgumentError, "ensemble: vary gives 'q'"),
        (
            {"vary": {"q0": [0.0, 1.0]}},
            ArgumentError,
            "ensemble: vary: q0 has shape (2,), expected one row for each member",
        ),
        (
            {"vary": {"q0": np.zeros((4, 2)), "parameters": {"mass": [1.0, 2.0]}}},
            ArgumentError,
            "ensemble: vary: the members do not agree (q0: 4, parameter 'mass': 2, members: 3)",
        ),
        (
            {"vary": 3},
            ArgumentError,
            "ensemble: vary has type 'int', expected a function of a random generator",
        ),
        ({"vary": lambda rng: {"q": 1}}, ArgumentError, "ensemble: vary gives 'q'"),
        ({"vary": lambda rng: {"parameters": {"m": 1}}}, ArgumentError, "ensemble: vary: no parameter 'm'"),
        ({"vary": lambda rng: {"q0": [1]}}, ArgumentError, "ensemble: q0 has shape (1,), expected (2,)"),
    ],
)
def test_messages(model, options, error, message):
    given = {"vary": vary, "members": 3, **OPTIONS} | options
    with pytest.raises(error) as caught:
        ensemble(model, **given)
    assert str(caught.value).startswith(message)


BACKENDS = [("batch", 1), ("threads", 2), ("processes", 2)]


@pytest.fixture(scope="module")
def cluster():
    """Two workers on loopback, closed at the end."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def same(one, other):
    np.testing.assert_array_equal(one.q, other.q)
    np.testing.assert_array_equal(one.v, other.v)
    assert one.failures == other.failures
    for x, y in ((one.mean(), other.mean()), (one.deviation(), other.deviation())):
        np.testing.assert_array_equal(x[0], y[0])


def wild(rng):
    x = rng.uniform()
    if x < 0.1:
        raise RuntimeError("no luck")
    return {"q0": rng.normal(size=2), "v0": [1e6, -1e6] if x > 0.9 else [0.1, 0.1]}


def test_all_backends_give_the_same_bits(model, cluster):
    """Failures and statistics among them."""
    options = {
        "members": 45,
        "duration": 4.0,
        "step": 0.1,
        "interval": 0.4,
        "block": 10,
        "integrator": "midpoint",
    }
    runs = [ensemble(model, wild, backend=name, workers=n, **options) for name, n in BACKENDS]
    several = [
        ensemble(model, wild, backend=name, workers=3, **options | {"members": 310, "block": None})
        for name in ("batch", "threads")
    ]
    same(*several)
    runs.append(ensemble(model, wild, backend="dask", cluster=cluster, **options))
    assert 0 < len(runs[0].failures) < 20
    for run in runs[1:]:
        same(runs[0], run)


def test_error_control_and_events_member_by_member(model):
    """Each member has steps of its own; what stops it is in its log, and it has the bits that it has alone."""
    touch = al.simulate.Event(lambda t, q, v: q[0] - 0.2, "touch", direction=1)
    options = {"duration": 1.0, "interval": 0.25, "integrator": "dop853", "events": [touch]}
    run = ensemble(model, vary, members=12, seed=3, block=5, backend="threads", **options)
    drawn = vary(np.random.default_rng([3, 7]))
    alone = simulate(model, drawn["q0"], drawn["v0"], parameters=drawn["parameters"], **options)
    rows = int(np.isfinite(run.q[7, :, 0]).sum())
    np.testing.assert_array_equal(run.q[7, :rows], alone.q[:rows])
    assert not run.failures
    assert 0 < len(run.events) < 12
    for member, (record,) in run.events.items():
        assert record.q[0] == pytest.approx(0.2, abs=1e-8)
        assert np.isnan(run.q[member][run.time > record.time]).all()
    assert run.statistics.count[0] == 12
    assert run.statistics.count[-1] == 12 - len(run.events)


def test_what_events_tell_survives_the_checkpoint(tmp_path):
    """Impulses and energies of impacts."""
    builder = al.ModelBuilder("drop")
    limits = al.Limits(lower=(0.0,))
    builder.body(
        "ball", al.Inertia.point(2.0), joint=al.Prismatic((0, 0, 1)), joint_name="fall", limits=limits
    )
    options = {"duration": 0.6, "step": 0.01, "events": al.simulate.JointStops(0.5), "checkpoint": tmp_path}
    runs = [ensemble(builder.build(), {"q0": [[0.5], [1.0]]}, **options) for _ in range(2)]
    assert [run.computed for run in runs] == [2, 0]
    for member in (0, 1):
        for first, again in zip(*(run.events[member] for run in runs), strict=True):
            assert first.quantities["impulse"] == again.quantities["impulse"] > 0
            assert (first.energy, first.internal) == (again.energy, again.internal)


def test_events_survive_the_checkpoint(model, tmp_path):
    touch = al.simulate.Event(lambda t, q, v: q[0] - 0.2, "touch", direction=1)
    options = {"members": 12, "duration": 1.0, "step": 0.01, "events": [touch], "checkpoint": tmp_path}
    first, again = ensemble(model, vary, **options), ensemble(model, vary, **options)
    assert (first.computed, again.computed) == (12, 0)
    assert list(first.events) == list(again.events)
    for member, log in first.events.items():
        np.testing.assert_array_equal(log[0].v, again.events[member][0].v)
        assert log[0].time == again.events[member][0].time


def test_one_that_raises_does_not_spoil_the_others(model):
    def fussy(t, q, v):
        if np.any(q > 0.7):
            raise RuntimeError("too far")
        return np.zeros_like(v)

    run = ensemble(model, vary, members=20, controller=fussy, **OPTIONS)
    free = ensemble(model, vary, members=20, **OPTIONS)
    assert 0 < len(run.failures) < 20
    assert set(run.failures.values()) == {"RuntimeError: too far"}
    # the steps of Python and of machine code differ by fused operations
    np.testing.assert_allclose(run.q[run.good], free.q[run.good], atol=1e-12)


def test_noise_differs_between_members_and_not_between_blocks(tmp_path):
    """Sensors of a feedback loop: seeds follow from the ensemble's and the member's number alone."""
    m = al.library.satellite()

    def law(t, read):
        y = read["rate_gyro"]
        return np.concatenate([np.zeros((*y.shape[:-1], 6)), -40.0 * y], axis=-1)

    options = {
        "duration": 1.0,
        "step": 0.05,
        "controller": al.simulate.Sampled(law, period=0.1, reads="rate_gyro"),
        "sensors": [al.simulate.Measured("rate_gyro", 0.1, noise=0.01)],
    }
    same_start = {"v0": np.zeros((9, m.nv))}
    one = ensemble(m, same_start, block=4, checkpoint=tmp_path, **options)
    other = ensemble(m, same_start, block=9, backend="batch", **options)
    np.testing.assert_array_equal(one.q, other.q)
    assert len(np.unique(one.v[:, -1, 6])) == 9
    again = ensemble(m, same_start, block=4, checkpoint=tmp_path, seed=1, **options)
    assert again.computed == 9
    assert not np.any(one.v[:, -1, 6] == again.v[:, -1, 6])
    with pytest.raises(ArgumentError, match="ensemble: sensors: seed is an array, expected a number"):
        ensemble(m, same_start, **options | {"sensors": al.simulate.Measured("rate_gyro", 0.1, seed=[1, 2])})


def test_sweep(model):
    masses = np.linspace(0.5, 2.0, 7)
    run = ensemble(model, {"parameters": {"mass": masses}, "q0": np.full((7, 2), 0.3)}, **OPTIONS)
    np.testing.assert_array_equal(run.parameters["mass"], masses)
    alone = simulate(model, [0.3, 0.3], parameters={"mass": masses[5]}, duration=0.5, step=0.01, interval=0.5,
                     integrator="rk4")  # fmt: skip
    np.testing.assert_array_equal(run.q[5], alone.q)


def test_statistics_while_running(model):
    seen = []
    kept = ensemble(model, vary, members=600, block=50, **OPTIONS)
    run = ensemble(
        model,
        vary,
        members=600,
        block=50,
        keep=False,
        monitor=lambda s: seen.append((s.members, s.mean()[-1].copy())),
        **OPTIONS,
    )
    assert [members for members, _ in seen] == list(range(50, 601, 50))
    np.testing.assert_allclose(seen[3][1][:2], kept.q[:200, -1].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(run.mean()[0], kept.q.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(run.deviation()[1], kept.v.std(axis=0), rtol=1e-11)
    with pytest.raises(ArgumentError, match=r"the motions were not kept \(keep=False\); mean\(\), deviation"):
        run.q
    ranks = (kept.q[:, -1, 0] <= run.quantiles(0.9)[0][-1, 0]).mean()
    assert ranks == pytest.approx(0.9, abs=run.statistics.rank_error + 1 / 600)


def test_statistics_of_many():
    """Mean and deviation as NumPy has them; quantiles to the rank that is promised, without keeping the values."""
    from alembert.simulate.ensembles import Statistics

    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=(20_000, 2, 3)) + 1e3
    x[::7, 1] = np.nan  # motions that have ended
    statistics = Statistics((2, 3))
    for first in range(0, len(x), 333):
        statistics.add(x[first : first + 333], members=333, failed=0)
    np.testing.assert_allclose(statistics.mean(), np.nanmean(x, axis=0), rtol=1e-13)
    np.testing.assert_allclose(statistics.deviation(), np.nanstd(x, axis=0), rtol=1e-9)
    p = np.array([0.01, 0.25, 0.5, 0.99])
    found = statistics.quantiles(p)
    assert found.shape == (4, 2, 3)
    assert 0 < statistics.rank_error < 0.01
    for k, column in np.ndindex(4, 3):
        for row in (0, 1):
            values = x[:, row, column]
            rank = np.mean(values[np.isfinite(values)] <= found[k, row, column])
            # NaN take up to one place in seven of a sorted buffer
            assert rank == pytest.approx(p[k], abs=8 / 6 * statistics.rank_error)
    few = Statistics((1, 1))
    assert np.isnan(few.mean()).all()
    assert np.isnan(few.quantiles(0.5)).all()
    few.add(np.arange(101.0)[:, None, None], members=101, failed=0)
    assert few.rank_error == 0
    assert few.quantiles(0.5)[0, 0] == 50
    with pytest.raises(ArgumentError, match="quantiles: probabilities are 2, expected 0 to 1"):
        few.quantiles(2)


def test_checkpoints_know_what_functions_mean(model, tmp_path):
    """A gain in a closure or in the module, a default, code: each makes another question."""

    def law(gain, power=1):
        def u(t, q, v):
            return -gain * q**power

        return u

    options = {"members": 4, "checkpoint": tmp_path, **OPTIONS}
    counts = [
        ensemble(model, vary, controller=c, **options).computed
        for c in (law(1.0), law(1.0), law(2.0), law(2.0, 3), law(2.0, 3))
    ]
    assert counts == [4, 0, 4, 4, 0]


def test_checkpoint_refuses_what_it_cannot_know(model, tmp_path):
    class Opaque:
        __slots__ = ("lock",)

        def __call__(self, t, q, v):
            return np.zeros_like(v)

        def __reduce__(self):
            raise TypeError

    with pytest.raises(ArgumentError, match=r"ensemble: a checkpoint needs to know what .* does"):
        ensemble(model, vary, members=2, controller=Opaque(), checkpoint=tmp_path, **OPTIONS)


def deadly(t, q, v):
    """Ends the process where one of the angles is large."""
    if np.any(np.abs(q) > 1.2):
        os._exit(9)
    return np.zeros_like(v)


def test_members_that_kill_their_worker(model, tmp_path, monkeypatch):
    """Tried several times, then recorded; the other blocks are there, and the failed ones are tried again."""
    monkeypatch.setattr("alembert.simulate.ensembles.ATTEMPTS", 2)  # each needs a new process
    options = {"members": 4, "block": 2, "backend": "processes", "workers": 1, "duration": 0.1, "step": 0.01}
    sweep = {"q0": np.array([[0.1, 0.1], [0.2, 0.1], [1.5, 0.0], [0.3, 0.1]])}
    run = ensemble(model, sweep, controller=deadly, checkpoint=tmp_path, **options)
    assert run.failures == {2: "the worker died, 2 times in a row, with member 2 alone"}
    assert np.isfinite(run.q[[0, 1, 3]]).all()
    assert len(list(tmp_path.glob("block-*.npz"))) == 1


def test_what_cannot_be_sent(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(UnsupportedError, match="a controller or another option cannot be sent to other proc"):
        ensemble(
            model,
            vary,
            members=2,
            controller=lambda t, q, v: 0 * v,
            backend="processes",
            workers=1,
            **OPTIONS,
        )


@pytest.mark.parametrize("backend", ["processes", "dask"])
def test_a_script_without_guard(tmp_path, backend):
    """Workers import the script; the message says what to do."""
    script = tmp_path / "script.py"
    script.write_text(
        "import alembert as al\n"
        "options = {'members': 3, 'duration': 1.0, 'step': 0.1, 'workers': 1}\n"
        f"al.ensemble(al.library.pendulum(), lambda rng: {{}}, backend={backend!r}, **options)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    said, where = done.stderr.rstrip().splitlines()[-2:]
    assert said.startswith(
        "alembert.errors.UnsupportedError: ensemble: the worker processes could not start. They import the script"
    )
    assert where.endswith("docs/limits.md")


class Pool(ThreadPoolExecutor):
    """In place of a pool of processes: `submit` raises what it is given, call by call, until there is no more."""

    def __init__(self, *errors):
        super().__init__(1)
        self.errors, self.waited = list(errors), False

    def submit(self, *call):
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        return super().submit(*call)

    def shutdown(self, wait=True, **options):
        self.waited = wait
        super().shutdown(wait, **options)


@pytest.mark.parametrize(
    "error",
    [
        OSError(9, "Bad file descriptor"),
        BrokenPipeError(),
        RuntimeError("after shutdown"),
        BrokenProcessPool(),
    ],
)
def test_workers_that_die_while_they_are_started(model, monkeypatch, error):
    """How the pool says so depends on how far it has come. The pool's own thread has ended before the message: a
    script that ends with it would otherwise write into the pipe this thread closes, and print that last."""
    pool = Pool(error)
    monkeypatch.setattr(backends, "ProcessPoolExecutor", lambda *_, **__: pool)
    with pytest.raises(
        UnsupportedError, match=r"ensemble: the worker processes could not start\. They import"
    ):
        ensemble(model, vary, members=2, backend="processes", workers=1, **OPTIONS)
    assert pool.waited


def test_a_pool_that_breaks_between_two_blocks(model, monkeypatch):
    """The block it does not take is sent to the next one."""
    pools = [Pool(None, None, OSError(9, "Bad file descriptor")), Pool()]
    monkeypatch.setattr(backends, "ProcessPoolExecutor", lambda *_, **__: pools.pop(0))
    run = ensemble(model, vary, members=6, block=2, backend="processes", workers=1, **OPTIONS)
    assert not pools
    np.testing.assert_array_equal(run.q, ensemble(model, vary, members=6, **OPTIONS).q)


def test_what_a_controller_raises_in_a_worker_stays_what_it_is(model, monkeypatch):
    def unplugged(t, q, v):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(backends, "ProcessPoolExecutor", lambda *_, **__: Pool())
    with pytest.raises(NumericalError, match=r"member 0: OSError: \[Errno 9\] Bad file descriptor"):
        ensemble(model, vary, members=2, controller=unplugged, backend="processes", workers=1, **OPTIONS)


def test_members_that_fail_alike_stop_the_run(model):
    """A slip in a controller is told at once, not after all members."""
    asked = []

    def slip(t, q, v):
        asked.append(t)
        return undefined_gain * v  # noqa: F821

    with pytest.raises(
        NumericalError,
        match=r"ensemble: \d+ of the first \d+ members failed alike, so the run was stopped; member 0: NameError: name "
        "'undefined_gain' is not defined",
    ):
        ensemble(model, vary, members=2000, controller=slip, **OPTIONS)
    assert len(asked) < 500

    def unlucky(rng):
        raise ValueError("nothing to draw")

    with pytest.raises(NumericalError, match="member 0: vary raised ValueError: nothing to draw"):
        ensemble(model, unlucky, members=3, **OPTIONS)


def test_members_that_can_only_be_computed_one_by_one_are_told(model):
    def alone(t, q, v):
        if np.ndim(q) > 1:
            raise TypeError("one state only")
        return -0.1 * np.asarray(v)

    law = al.simulate.Batched(alone)
    with pytest.warns(
        AlembertWarning,
        match="one after the other, which takes longer: together they failed with TypeError: one",
    ):
        run = ensemble(model, vary, members=10, controller=law, **OPTIONS)
    assert not run.failures
    np.testing.assert_array_equal(run.q, ensemble(model, vary, members=10, controller=alone, **OPTIONS).q)


def test_pose_sensors_run_together(model):
    """No warning that members were computed one by one."""
    m = model.replace(sensors=(al.Sensor("pose", "frame", "b"),))
    sensors = [al.simulate.Measured("pose", 0.01, noise=1e-3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = ensemble(m, vary, members=12, sensors=sensors, **OPTIONS)
    assert not run.failures


def test_tables_of_efforts(model):
    """As `simulate` takes them, besides constant efforts of other joints, drawn or given."""
    push = al.simulate.Table([0.0, 0.3, 0.5], [0.0, 1.0, -1.0])
    run = ensemble(model, vary, members=6, efforts={"a": push, "b": 0.2}, **OPTIONS)
    drawn = vary(np.random.default_rng([3, 4]))
    alone = simulate(model, drawn["q0"], drawn["v0"], parameters=drawn["parameters"], interval=0.5, integrator="rk4",
                     efforts={"a": push, "b": 0.2}, duration=0.5, step=0.01)  # fmt: skip
    np.testing.assert_array_equal(run.q[4], alone.q)
    assert np.any(run.q != ensemble(model, vary, members=6, efforts={"b": 0.2}, **OPTIONS).q)


def test_checkpoints_that_cannot_be_written(model, tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(FileError, match=r"checkpoint .*file: is no folder that can be written: File exists"):
        ensemble(model, vary, members=2, checkpoint=file, **OPTIONS)
    with pytest.raises(FileError, match="is no folder that can be written: Not a directory"):
        ensemble(model, vary, members=2, checkpoint=file / "below", **OPTIONS)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("alembert.simulate.ensembles.backends.os.fsync", full)
    with pytest.raises(
        FileError, match="cannot be written: No space left on device; blocks that are there stay"
    ):
        ensemble(model, vary, members=2, checkpoint=tmp_path / "full", **OPTIONS)
    assert not list((tmp_path / "full").iterdir())


def test_forged_blocks_are_computed_again(model, tmp_path):
    first = ensemble(model, vary, members=3, checkpoint=tmp_path, **OPTIONS)
    (path,) = tmp_path.glob("block-*.npz")
    good = dict(np.load(path))
    forged = {
        "q": good["q"][:, :, :1],
        "v": np.zeros(3),
        "time": np.float64(1.0),
        "slow": np.zeros((3, 3)),
        "event_times": np.zeros(4),
        "event_states": np.zeros((0,)),
        "failed": np.array([7]),
        "reasons": np.array(["a", "b"]),
        "parameter:mass": np.array(["one", "two", "three"]),
    }
    for name, value in forged.items():
        np.savez(path, **{**good, name: value})
        again = ensemble(model, vary, members=3, checkpoint=tmp_path, **OPTIONS)
        assert again.computed == (3 if name != "event_states" else again.computed)
        np.testing.assert_array_equal(again.q, first.q)
    np.savez(path, **{**good, "time": np.full_like(good["time"], np.nan)})
    assert ensemble(model, vary, members=3, checkpoint=tmp_path, **OPTIONS).computed == 3
    np.savez_compressed(path, **{**good, "recorded:bomb": np.zeros(10**7)})
    assert ensemble(model, vary, members=3, checkpoint=tmp_path, **OPTIONS).computed == 3


def test_checkpoints_follow_functions_of_other_modules(model, tmp_path, monkeypatch):
    """A law that calls one of another module, by attribute or imported on the way, has other results when that changes."""
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "laws_of_mine.py"
    file.write_text("GAIN = 1.0\ndef damping(v):\n    return -GAIN * v\n")
    import laws_of_mine

    def by_attribute(t, q, v):
        return laws_of_mine.damping(v)

    def by_import(t, q, v):
        import laws_of_mine as laws

        return laws.damping(v)

    options = {"members": 2, "checkpoint": tmp_path / "blocks", **OPTIONS}
    for law in (by_attribute, by_import):
        first = ensemble(model, vary, controller=law, **options)
        assert ensemble(model, vary, controller=law, **options).computed == 0
        monkeypatch.setattr(laws_of_mine, "GAIN", 2.0)
        other = ensemble(model, vary, controller=law, **options)
        assert other.computed == 2
        assert np.any(other.q != first.q)
        monkeypatch.undo()
        monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_a_worker_that_is_killed_while_it_starts(model, monkeypatch):
    """The message is not that of a script without guard."""

    class Killed:
        def __init__(self, *_, **__):
            self._processes = {1: self}
            self.exitcode = -9

        def submit(self, *_):
            lost = Future()
            lost.set_exception(BrokenProcessPool())
            return lost

        def join(self, timeout):
            pass

        def shutdown(self, **_):
            pass

    monkeypatch.setattr(backends, "ProcessPoolExecutor", Killed)
    with pytest.raises(NumericalError, match=r"a worker process was killed while it started \(signal 9\)"):
        ensemble(model, vary, members=2, backend="processes", workers=1, **OPTIONS)


DRIVER = """
import os
import time
import alembert as al

FOLDER = {folder!r}

def slow(t, q, v):
    open(os.path.join(FOLDER, f"worker-{{os.getpid()}}"), "w").close()
    time.sleep(0.2)
    return 0 * v

if __name__ == "__main__":
    al.ensemble(al.library.pendulum(), lambda rng: {{}}, members=200, controller=slow, backend="processes", workers=2,
                duration=60.0, step=0.1, block=100)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_workers_end_with_a_killed_driver(tmp_path):
    """In the middle of a block, which would take them minutes."""
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("cloudpickle")
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(folder=str(tmp_path)))
    process = subprocess.Popen([sys.executable, str(script)])
    begin = time.monotonic()
    busy = []
    while time.monotonic() - begin < 100 and len(busy) < 2:
        time.sleep(0.1)
        busy = [path.name.removeprefix("worker-") for path in tmp_path.glob("worker-*")]
    workers = [psutil.Process(int(pid)) for pid in busy]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert workers
    assert not psutil.wait_procs(workers, timeout=60)[1]


def test_a_cluster_of_our_own_takes_work_from_us_alone(model, monkeypatch):
    """A client without the run's certificate is turned away."""
    distributed = pytest.importorskip("distributed")
    made = []

    class Recorded(distributed.LocalCluster):
        def __init__(self, **options):
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(distributed, "LocalCluster", Recorded)
    with backends.backend("dask", backends.Question(model, {}), 1, None):
        address = made[0].scheduler_address
        assert address.startswith("tls://127.0.0.1")
        with pytest.raises((OSError, TimeoutError)):
            distributed.Client(address.replace("tls://", "tcp://"), timeout=3)


def test_dask_is_optional(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        UnsupportedError, match=r'backend \'dask\' needs Dask; pip install "alembert\[cluster\]"'
    ):
        ensemble(model, vary, members=2, backend="dask", **OPTIONS)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_a_dask_worker_is_killed(whole, cluster, tmp_path):
    """Really killed while it computes: the cluster goes on, and so do the bits."""
    pids = list(cluster.run(os.getpid).values())
    killed = []

    def kill(statistics):
        if statistics.members >= 8 and not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    run = ensemble(
        al.library.two_link(),
        start,
        backend="dask",
        cluster=cluster,
        monitor=kill,
        checkpoint=tmp_path,
        **LONG,
    )
    assert killed
    assert pids[0] not in cluster.run(os.getpid).values()
    same(whole, run)
    assert len(list(tmp_path.glob("block-*.npz"))) == 24


def test_xarray(model):
    pytest.importorskip("xarray")
    data = ensemble(model, vary, members=4, interval=0.1, **OPTIONS).to_xarray()
    assert data.q.dims == ("member", "time", "coordinate")
    assert data.mass.shape == (4,)


def test_a_full_disk(tmp_path):
    """In a process of its own: where HDF5 meets a full disk, it may crash some time later."""
    script = tmp_path / "full.py"
    script.write_text("""
import resource, signal, sys
import alembert as al
run = al.simulate(al.library.pendulum(), [0.1], duration=0.1, step=0.01)
many = al.ensemble(run.model, {"q0": [[0.1], [0.2]]}, duration=0.1, step=0.01)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
for save in (run.save, many.save):
    for name in ("x.nc", "x.csv"):
        try:
            save(name)
        except al.FileError as error:
            print(error)
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines() == [
        f"{name}: cannot be written: File too large" for name in ("x.nc", "x.csv", "x.nc", "x.csv")
    ]
    assert not done.stderr


def test_save(model, tmp_path, monkeypatch):
    pytest.importorskip("xarray")
    import xarray

    run = ensemble(model, vary, members=5, interval=0.1, **OPTIONS)
    with xarray.open_dataset(run.save(tmp_path / "all.nc")) as data:
        np.testing.assert_array_equal(data["q"].values, run.q)
        assert list(data["failure"].values) == 5 * [""]
    rows = np.loadtxt(run.save(tmp_path / "means.csv"), delimiter=",", skiprows=1)
    np.testing.assert_array_equal(rows[:, 1:3], run.mean()[0])
    with pytest.raises(ArgumentError, match=r"save: all.txt ends with '.txt', expected .nc or .csv"):
        run.save(tmp_path / "all.txt")
    with pytest.raises(FileError, match="cannot be written: No such file or directory"):
        run.save(tmp_path / "none" / "means.csv")
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(UnsupportedError, match="to_xarray: xarray is not installed; pip install"):
        run.to_xarray()

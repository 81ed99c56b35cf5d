"""Ensembles: reproducible members, checkpoints that survive a kill, failures that are named."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.simulate import ensemble, simulate


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


SCRIPT = """
import sys
import numpy as np
import alembert as al
from alembert.simulate import ensemble

def vary(rng):
    return {"q0": rng.normal(size=2)}

folder = sys.argv[1] if sys.argv[1] != "none" else None
run = ensemble(al.library.two_link(), vary, members=96, block=8, duration=4.0, step=2e-5, checkpoint=folder)
np.savez(sys.argv[2], q=run.q, v=run.v, computed=run.computed)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_killed_and_resumed(tmp_path):
    """Really killed: what was finished is used, and the data are those of an uninterrupted run, bit for bit."""
    folder = tmp_path / "blocks"
    command = [sys.executable, "-c", SCRIPT]
    subprocess.run([*command, "none", str(tmp_path / "whole.npz")], check=True, timeout=120)
    process = subprocess.Popen([*command, str(folder), str(tmp_path / "never.npz")])
    begin = time.monotonic()
    while len(list(folder.glob("block-*.npz"))) < 2 and time.monotonic() - begin < 100:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(folder.glob("block-*.npz")))
    assert 2 <= finished <= 12
    subprocess.run([*command, str(folder), str(tmp_path / "resumed.npz")], check=True, timeout=120)
    with np.load(tmp_path / "whole.npz") as whole, np.load(tmp_path / "resumed.npz") as resumed:
        assert resumed["computed"] == 96 - 8 * finished
        np.testing.assert_array_equal(whole["q"], resumed["q"])
        np.testing.assert_array_equal(whole["v"], resumed["v"])


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
        (
            {"integrator": "dop853"},
            UnsupportedError,
            "ensemble: integrator 'dop853' and an ensemble do not go together",
        ),
        ({"vary": 3}, ArgumentError, "ensemble: vary is 3, expected a function of a random generator"),
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


def test_xarray(model):
    pytest.importorskip("xarray")
    data = ensemble(model, vary, members=4, interval=0.1, **OPTIONS).to_xarray()
    assert data.q.dims == ("member", "time", "coordinate")
    assert data.mass.shape == (4,)

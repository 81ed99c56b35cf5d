"""The benchmark of steps calls the compiled loop itself; it must be the motion that `al.simulate` gives."""

import sys
from pathlib import Path

import numpy as np
import pytest

import alembert as al

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.simulation import STEP, Steps


@pytest.mark.parametrize("integrator", ["variational", "midpoint", "rk4"])
def test_steps_of_the_benchmark_are_those_of_runs(integrator):
    model = al.library.arm7()
    q, v = model.neutral(), np.full(model.nv, 0.1)
    run = al.simulate(model, q, v, duration=20 * STEP, step=STEP, integrator=integrator)
    assert np.array_equal(Steps(model, integrator, q, v, 20).run(), run.q[-1])

"""Optima over transcriptions, orders and nodes; other published ones are cases of `alembert.verify` (tag `optimal`)."""

import numpy as np
import pytest

from alembert.optimal import Problem, System, examples


@pytest.mark.parametrize(
    ("transcription", "error"),
    [("midpoint", 3e-4), ("trapezoidal", 1e-3), ("hermite-simpson", 1e-5), ("radau", 1e-5)],
)
def test_bryson_denham(transcription, error):
    """min 1/2 int a^2 with x below 1/9: J = 4. Errors are those of the order of each method with 200 steps."""
    solution = examples.bryson_denham().solve(200, transcription=transcription)
    assert solution.success
    assert solution.cost == pytest.approx(4, abs=error)
    assert solution.state("x").max() <= 1 / 9 + 1e-8
    assert solution.check.largest < 2e-5  # h^2 for the trapezoidal rule, which has v linear; others are exact


@pytest.mark.parametrize(
    ("transcription", "order"),
    [("euler", 1), ("midpoint", 2), ("trapezoidal", 2), ("hermite-simpson", 4), ("rk4", 2)],
)
def test_hager_converges_with_the_order(transcription, order):
    """1/2 int 1.25 y^2 + y u + u^2 = e^2 sinh 2/(1 + e^2)^2. Explicit steps hold the control: order 2 at most."""
    example = examples.hager()
    problem, exact = example.problem, example.published
    steps = np.array([10, 20, 40])
    errors = [
        abs(problem.solve(int(N), transcription=transcription, tolerance=1e-12).cost - exact) for N in steps
    ]
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope > order - 0.1
    assert exact == pytest.approx(0.3807970780, abs=1e-10)


def test_hypersensitive_on_uneven_nodes():
    """Betts, example 10.7: all happens near the ends of 10000 s; 6.7241 is published, 6.724113810 a reference."""
    solution = examples.hypersensitive().solve()
    assert solution.success
    assert solution.cost == pytest.approx(6.724113810, abs=1e-4)  # the last published digit


def test_the_check_tells_unstable_motions_from_wrong_ones():
    """y' = 8 y + u over 2 s: what a step is off grows 3000 times and more; with y' = -y + u it does not grow."""
    for rate, unstable in ((8.0, True), (-1.0, False)):
        system = System(["y"], ["u"], lambda s, rate=rate: [rate * s.y + s.u])
        check = Problem(system, 2.0, start={"y": 1}, end={"y": 0}).solve(40, transcription="midpoint").check
        assert check.is_unstable == unstable
        assert ("The motion is unstable: follow it with solution.controller()" in str(check)) == unstable
        assert 0 < check.one_interval <= check.largest

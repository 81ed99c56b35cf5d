"""Meshes that refine themselves: jumps of controls, smooth motions, optima of a mesh, and what cannot be reached."""

import casadi as ca
import numpy as np
import pytest

from alembert.errors import ArgumentError
from alembert.optimal import Problem, System, examples, running


@pytest.mark.parametrize("transcription", ["hermite-simpson", "rk4"])
def test_a_switch_is_put_on_the_mesh(transcription):
    """The lander on the Moon: fuel 2 sqrt(17), one switch at 1.415403750 s of 4.164140834 s (closed form)."""
    system = System(["h", "v"], ["u"], lambda s: [s.v, s.u - 1.5])
    ends = {"start": {"h": 10, "v": -2}, "end": {"h": 0, "v": 0}}
    problem = Problem(system, (1.0, 10.0), **ends, limits={"u": (0, 3)}, cost=running(lambda s: s.u))
    solution = problem.solve(12, transcription=transcription, accuracy=1e-6)
    assert solution.success
    assert solution.cost == pytest.approx(2 * np.sqrt(17), rel=1e-5)  # ten times what was asked for
    assert solution.steps < 100  # an even mesh would need thousands
    assert np.abs(solution.time - 1.415403750).min() < 1e-2
    assert [m.steps for m in solution.meshes] == sorted({m.steps for m in solution.meshes})
    assert all(m.jumps for m in solution.meshes[:2])
    assert solution.meshes[-1].estimate <= 1e-6


def test_a_smooth_motion():
    example = examples.hager()
    solution = example.problem.solve(4, accuracy=1e-7)
    assert solution.cost == pytest.approx(example.published, rel=1e-7)
    assert solution.accuracy.worst <= 1e-7


def test_an_optimum_of_the_mesh_is_left_behind():
    """The hanging chain, COPS: 5.0685 (r), from a mesh whose own optimum is 4.83."""
    chain = System(["x", "E"], ["u"], lambda s: [s.u, ca.sqrt(1 + s.u**2)])
    ends = {"start": {"x": 1, "E": 0}, "end": {"x": 3, "E": 4}}
    problem = Problem(chain, 1.0, **ends, cost=running(lambda s: s.x * ca.sqrt(1 + s.u**2)))
    solution = problem.solve(20, transcription="radau", accuracy=1e-4)
    assert solution.success
    assert solution.cost == pytest.approx(5.068480111, abs=1e-4)


def test_what_is_not_reached_is_told():
    """Also where the cost stays by chance: with 4 and 5 intervals it is 4.99 instead of 4."""
    solution = examples.bryson_denham().problem.solve(4, transcription="rk4", accuracy=1e-12, tolerance=1e-6)
    assert abs(solution.cost - 4.0) < 0.1
    assert "the accuracy that was asked for is not reached" in solution.message
    assert len(solution.meshes) > 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"accuracy": 0.0}, "accuracy is 0.0, expected a share of the motion and of the cost"),
        ({"accuracy": 1e-3, "transcription": "splines"}, "accuracy is for meshes; with splines raise"),
    ],
)
def test_refused(given, said):
    with pytest.raises(ArgumentError, match=said):
        examples.hager().problem.solve(4, **given)

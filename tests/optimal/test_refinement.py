"""Meshes that refine themselves: jumps of controls, smooth motions, optima of a mesh, and what cannot be reached."""

import casadi as ca
import numpy as np
import pytest

from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Phases, Problem, System, examples, running
from alembert.optimal.schemes import RADAU, scheme


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


VAN_DER_POL = Problem(
    System(["x", "y"], ["u"], lambda s: [s.y, (1 - s.x**2) * s.y - s.x + s.u]),
    5.0,
    start={"x": 1, "y": 0},
    cost=running(lambda s: (s.x**2 + s.y**2 + s.u**2) / 2),
)
LEAST = 1.43347621128
"""60 intervals of order 9 and of order 11, which agree to 1e-13"""


def test_order_instead_of_nodes():
    """What takes 194 intervals of order 5. The first mesh says how smooth the controls are in its intervals."""
    solution = VAN_DER_POL.solve(10, accuracy=1e-9, refine="hp", tolerance=1e-11)
    assert solution.success
    assert solution.cost == pytest.approx(LEAST, rel=1e-9)
    assert solution.steps < 60
    assert solution.meshes[0].order == 5
    assert solution.meshes[-1].order > 5
    by_phase = Phases({"all": VAN_DER_POL}).solve(10, accuracy=1e-6, refine="hp")
    assert by_phase.cost == pytest.approx(LEAST, rel=1e-6)
    assert by_phase.meshes[-1]["all"].order > 5


@pytest.mark.parametrize("points", sorted({*RADAU.values()}))
def test_orders_of_radau(points):
    """Butcher's B(2s - 1) and C(s), which give the order 2s - 1 (Hairer and Wanner, IV.5.6); rounding of the solution of
    Vandermonde's equations, whose condition is below 1e5."""
    tableau = scheme(f"radau-{2 * points - 1}").tableau
    a, b, c = (np.array(x) for x in (tableau.a, tableau.b, tableau.c))
    assert c[-1] == pytest.approx(1, abs=1e-11)
    for k in range(1, 2 * points):
        assert b @ c ** (k - 1) == pytest.approx(1 / k, abs=1e-11)
    for k in range(1, points + 1):
        np.testing.assert_allclose(a @ c ** (k - 1), c**k / k, atol=1e-11)


def test_rates_of_controls_of_high_degree():
    """The slope of a control of degree 3 is largest within an interval: it keeps its bound there too."""
    problem = VAN_DER_POL.replace(limits={"rate": {"u": 0.5}})
    solution = problem.solve(10, transcription="radau-7")
    assert solution.converged
    u = solution.control_within(np.arange(10)[:, None], np.linspace(0, 1, 41))[..., 0]
    slopes = np.diff(u, axis=1) / (0.5 / 40)
    assert np.abs(slopes).max() == pytest.approx(0.5, abs=1e-6)  # kept, and made use of: solved to 1e-8


def test_a_singular_arc_is_refined():
    """Goddard's rocket, whose height 1.0128369 is known (Dolan, More and Munson: 1.01283): several controls in each
    interval of a singular arc are less and less determined as intervals become short."""
    example = examples.goddard()
    solution = example.problem.solve(20, accuracy=1e-5, transcription="radau")
    assert solution.success
    assert -solution.cost == pytest.approx(1.0128369, rel=1e-5)
    assert "thrust is singular: refined by rk4" in solution.message
    assert solution.meshes[-1].estimate <= 1e-5


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
    assert solution.status == "inaccurate"
    assert solution.converged
    assert not solution.success
    assert solution.estimate == solution.meshes[-1].estimate > 1e-11
    assert ": inaccurate, " in repr(solution)


def test_a_near_miss_is_acceptable():
    """As with the tolerance: ten times the accuracy is the border."""
    problem = examples.hager().problem
    reached = problem.solve(10, accuracy=1e-4)
    assert (reached.success, reached.status) == (True, "solved")
    assert reached.estimate <= 1e-4
    reached.refined(reached.meshes, 1e-4, 9e-4, "9.0e-04 after 10 meshes")
    assert (reached.success, reached.status) == (True, "acceptable")
    reached.refined(reached.meshes, 1e-4, 1.1e-3, "1.1e-03 after 10 meshes")
    assert (reached.success, reached.status, reached.converged) == (False, "inaccurate", True)


def test_all_meshes_share_the_time_limit():
    problem = examples.van_der_pol().problem
    assert problem.solve(10, accuracy=1e-6).success  # compiled
    short = problem.solve(10, accuracy=1e-13, time_limit=0.02)
    assert not short.success
    assert sum(s.iterations for s in short.meshes) < 100
    assert short.status in ("time", "inaccurate")
    assert "time" in short.message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"accuracy": 0.0}, "accuracy is 0.0, expected a share of the motion and of the cost"),
        ({"accuracy": 1e-3, "transcription": "splines"}, "accuracy is for meshes; with splines raise"),
        ({"accuracy": 1e-3, "refine": "p"}, "refine is 'p', expected 'h' .* or 'hp'"),
        ({"accuracy": 1e-3, "refine": "hp", "transcription": "rk4"}, "'rk4' has one order only; choose"),
        ({"transcription": "radau-4"}, "no transcription 'radau-4'; did you mean 'radau-"),
    ],
)
def test_refused(given, said):
    with pytest.raises((ArgumentError, UnsupportedError), match=said):
        examples.hager().problem.solve(4, **given)


def test_phases_that_are_exact_keep_their_mesh():
    """A coast along straight lines is exact on any mesh, and a push with the least effort, whose force is linear, on the
    first one, which halving it once shows; the oscillator between them gets the intervals."""
    push = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    coast = System(["x", "v"], [], lambda s: [s.v, 0])
    oscillator = System(["x", "v"], ["u"], lambda s: [s.v, (1 - s.x**2) * s.v - s.x + s.u])
    phases = Phases(
        {
            "push": Problem(push, 1.0, start={"x": 0, "v": 0}, end={"x": 0.3}),
            "coast": Problem(coast, 1.0),
            "swing": Problem(oscillator, 4.0, end={"x": 0, "v": 0}, cost=running(lambda s: s.u**2 + s.x**2)),
        }
    )
    solution = phases.solve(10, accuracy=1e-6)
    assert solution.success
    steps = {name: [mesh[name].steps for mesh in solution.meshes] for name in phases.phases}
    assert set(steps["coast"]) == {10}
    assert set(steps["push"]) == {10, 20}
    assert steps["swing"][-1] > 40
    everywhere = phases.solve({"push": 80, "coast": 80, "swing": 160})
    assert solution.cost == pytest.approx(everywhere.cost, rel=1e-6)

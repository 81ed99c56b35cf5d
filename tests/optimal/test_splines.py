"""B-splines of the driven joints, the others integrated (Sohl and Bobrow 2001, section 5)."""

import os
import signal
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.optimal import Problem, System, duration, effort, running, solve_splines, terminal
from alembert.optimal.splines.conditions import SplineRows
from alembert.optimal.splines.shooting import Shooting
from alembert.optimal.splines.solution import Found
from alembert.optimal.splines.trust_region import TrustRegion
from alembert.verify.mechanisms import four_bars, parallelogram

UPRIGHT = np.pi / 2


def acrobot(q1=-1.0, T=3.0, **more):
    ends = {"start": {"q": [q1, 0], "v": 0}, "end": {"q": [UPRIGHT, 0], "v": 0}}
    return Problem(al.library.acrobot(), T, **ends | more)


def satellite():
    """With a single rotor: with three, its derivatives take four times as long to compile."""
    builder = al.ModelBuilder("satellite", gravity=(0, 0, 0))
    inertia = al.Inertia(300.0, (0.0, 0.1, 0.0), (30.0, 0.0, 40.0, 0.0, 0.0, 50.0))
    builder.body("main", inertia, joint=al.Free(), joint_name="attitude")
    rotor = al.Inertia(10.0, (0.0, 0.0, 0.1), (0.5, 0.0, 0.8, 0.0, 0.0, 0.5))
    builder.body(
        "rotor",
        rotor,
        joint=al.Revolute((0.6, 0.8, 0)),
        joint_name="spin",
        parent="main",
        placement=(1, 0, 0),
    )
    model = builder.build()
    rest = {"q": model.neutral(), "v": 0}
    return Problem(model, (1.0, 3.0), start=rest, actuated=["spin"], cost=effort() + duration())


def linkage():
    """A four-bar, driven at its first foot."""
    model = four_bars(1)
    q, _ = parallelogram(model, 0.5, 0)
    ends = {"start": {"q": q, "v": 0}, "end": {"q": {"foot0": -0.5}, "v": 0}}
    return Problem(model, 1.0, **ends, actuated=["foot0"])


def swayed(**more):
    """A joint that follows a motion, and one that is driven."""
    return Problem(
        al.library.two_link(),
        **{
            "duration": 1.0,
            "prescribed": {"shoulder": lambda t: 0.5 * ca.sin(3 * t)},
            "start": {"q": {"elbow": 0}, "v": {"elbow": 0}},
            "end": {"q": {"elbow": 1.0}, "v": {"elbow": 0}},
            **more,
        },
    )


PROBLEMS = {
    "all driven": lambda: Problem(
        al.library.two_link(), (1.0, 3.0), start={"q": [0, 0], "v": 0}, end={"q": [1, 0], "v": 0}
    ),
    "passive joint, free time": lambda: acrobot(
        T=(1.0, 3.0),
        limits={"tau": 10, "v": 5, "rate": 20},
        cost=effort() + terminal(lambda s: s.q[0] ** 2 * s.v[1]),
    ),
    "path": lambda: acrobot(T=2.0, path={"height": (lambda s: s.q[0] + s.tau[1], -3, 3)}),
    "passive free body": satellite,
    "free start, periodic": lambda: Problem(al.library.acrobot(), (1.0, 3.0), periodic=True),
    "loop": linkage,
    "prescribed": lambda: swayed(duration=(1.0, 3.0)),
}


def somewhere(problem, control_points=7):
    shooting = Shooting(problem, 20, control_points, 5)
    z = 0.3 * np.random.default_rng(0).normal(size=shooting.unknowns)
    if problem.is_free:
        z[-1] = 2.0
    return SplineRows(shooting), z


@pytest.mark.parametrize("name", PROBLEMS)
def test_slopes_are_those_of_differences(name):
    """Central differences with 1e-5 leave about 1e-9 relative to the largest slope."""
    rows, z = somewhere(PROBLEMS[name]())
    J, gradient, h = rows.jacobian(z), rows.gradient(z), 1e-5
    for k, along in enumerate(np.eye(len(z))):
        difference = (rows.values(z + h * along) - rows.values(z - h * along)) / (2 * h)
        np.testing.assert_allclose(J[:, k], difference, atol=1e-7 * max(1.0, np.abs(J).max()))
        difference = (rows.motion(z + h * along).cost - rows.motion(z - h * along).cost) / (2 * h)
        assert gradient[k] == pytest.approx(difference, abs=1e-7 * max(1.0, np.abs(gradient).max()))


@pytest.mark.parametrize("name", PROBLEMS)
def test_adjoints_are_tangents(name):
    """Backward and forward sweeps are the same derivative: they agree to rounding."""
    rows, z = somewhere(PROBLEMS[name]())
    J, gradient = rows.jacobian(z), rows.gradient(z)
    y = np.random.default_rng(1).normal(size=len(J))
    both = 0.7 * gradient + y @ J
    np.testing.assert_allclose(rows.lagrangian(z, 0.7, y).z, both, atol=1e-12 * np.abs(both).max())


def test_a_backward_sweep_does_not_know_the_number_of_control_points():
    """Its code is the same for 7 and 30."""
    few, many = (somewhere(acrobot(), K)[0] for K in (7, 30))
    texts = [rows.slopes._backward._key for rows in (few, many)]
    assert texts[0] == texts[1]
    assert (len(few.names), few.shooting.unknowns) == (6, 7)  # 4 at the end and the cost


def test_arm_converges_to_the_optimum_from_above():
    """The 2R arm of section 5.1. Spaces of 8, 12 and 20 control points; the first is in no other, but close to one."""
    problem = Problem(
        al.library.two_link(), 1.0, start={"q": [0, 0], "v": 0}, end={"q": [UPRIGHT, 0], "v": 0}
    )
    best = problem.solve(400)
    found = [solve_splines(problem, 100, control_points=K, guess=best) for K in (8, 12, 20)]
    assert all(s.success for s in found)
    above = [s.cost / best.cost - 1 for s in found]
    assert above[0] > above[1] > above[2] > -1e-4  # DMOC with 400 steps is of order 2
    assert above[2] < 0.01
    np.testing.assert_allclose(found[2].q, best.q[::4], atol=0.05)


@pytest.mark.parametrize("q1", [-1.0, -1.3])
def test_acrobot_swings_up(q1):
    """Section 5.2: kept conditions, efforts that an independent simulation turns into the same motion."""
    solution = solve_splines(acrobot(q1))
    assert solution.status == "solved"
    np.testing.assert_allclose(solution.q[0], [q1, 0], atol=1e-9)
    np.testing.assert_allclose(solution.q[-1], [UPRIGHT, 0], atol=1e-6)
    np.testing.assert_allclose(solution.v[[0, -1]], 0, atol=1e-6)
    assert solution.violations() == []
    assert "every constraint is kept" in solution.diagnosis()
    # the unstable motion multiplies what order 4 leaves in the efforts between nodes
    assert solution.check.largest < 1e-2
    finer = solve_splines(acrobot(q1), 400, guess=solution)
    assert finer.cost == pytest.approx(solution.cost, rel=1e-5)
    assert finer.check.largest < solution.check.largest / 4
    # the same optimum, from other rules: the effort's integral
    N = finer.steps
    tau = finer.node_controls[:, 0] ** 2 / 2
    simpson = (tau[0] + tau[-1] + 4 * tau[1::2].sum() + 2 * tau[2:-1:2].sum()) * finer.duration / N / 3
    assert finer.cost == pytest.approx(simpson, rel=1e-5)


def test_branched_acrobot_swings_up():
    """Section 5.3."""
    problem = Problem(
        al.library.branched_acrobot(),
        3.0,
        start={"q": [-1.0, 0, 0], "v": 0},
        end={"q": [UPRIGHT, 0, 0], "v": 0},
    )
    solution = solve_splines(problem, 100, control_points=10)
    assert solution.success
    np.testing.assert_allclose(solution.q[-1], [UPRIGHT, 0, 0], atol=1e-6)
    np.testing.assert_allclose(solution.v[-1], 0, atol=1e-6)
    assert solution.efforts.shape == (100, 3)
    np.testing.assert_array_equal(solution.efforts[:, 0], 0)


def test_limits_hold_at_the_nodes_and_the_time_is_found():
    free = solve_splines(acrobot(), 100, control_points=12)
    largest = 0.9 * np.abs(free.node_controls).max()
    problem = acrobot(T=(2.0, 4.0), limits={"tau": largest}, cost=effort() + duration(5.0))
    solution = solve_splines(problem, 100, control_points=12, guess=free)
    assert solution.success
    assert np.abs(solution.node_controls).max() <= largest + 1e-6
    assert 2.0 <= solution.duration <= 4.0
    open_time = acrobot(T=(2.0, 4.0), cost=effort() + duration(5.0))
    assert solve_splines(open_time, 100, control_points=12, guess=free).cost < free.cost + 15.0
    assert solution.dimensions() == (13, 6)  # driven q and v at the start, four conditions at the end


def test_what_others_have_too(tmp_path):
    solution = solve_splines(acrobot(), 60, control_points=12)
    solution.save(tmp_path / "motion.npz")
    again = solve_splines(acrobot(), 60, control_points=12, guess=tmp_path / "motion.npz")
    assert again.cost == pytest.approx(solution.cost, rel=1e-6)
    assert "solved: cost" in solution.summary()
    assert "60 steps of splines" in repr(solution)
    np.testing.assert_allclose(solution.control_at(solution.time), solution.node_controls, atol=1e-9)
    assert solution.momenta.shape == (61, 2)
    np.testing.assert_allclose(solution.motion().efforts[:, 1], solution.node_controls[:, 0], atol=1e-9)
    assert solution.costates.shape == (60, 2)
    with pytest.raises(UnsupportedError, match="gains: trust region gives none"):
        _ = solution.gains
    with pytest.raises(UnsupportedError, match="arcs: splines are smooth all along"):
        _ = solution.arcs


def test_by_solve_with_progress_and_interruption():
    lines = []

    def stop(i):
        lines.append(i)
        if i.number == 2:
            raise KeyboardInterrupt

    options = {"transcription": "splines", "control_points": 12}
    solution = acrobot().solve(60, **options, progress=stop)
    assert solution.status == "interrupted"
    assert "this is the best iterate that was reached" in solution.message
    assert [i.number for i in lines] == [0, 1, 2]
    assert solution.iterations == 2
    assert np.isfinite(solution.cost)
    stopped = acrobot().solve(20, solver="ipopt", progress=stop)
    assert stopped.status == "interrupted"
    for wrong in ({"solver": "fatrop"}, {"nodes": [0, 1]}, {"hessian": "exact"}):
        with pytest.raises(UnsupportedError, match="leave solver, nodes and hessian out"):
            acrobot().solve(60, **options, **wrong)
    with pytest.raises(ArgumentError, match="`control_points` is for transcription='splines'"):
        acrobot().solve(60, control_points=12)


def test_interrupt_by_signal():
    """Ctrl-C while IPOPT works; the handler is as before afterwards."""
    before = signal.getsignal(signal.SIGINT)

    def press(i):
        if i.number == 1:
            os.kill(os.getpid(), signal.SIGINT)

    solution = acrobot().solve(20, solver="ipopt", progress=press)
    assert solution.status == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before


def test_multipliers_are_slopes_of_the_cost():
    """dJ/d(end) = -y, from solutions with the end moved by 1e-4 to both sides: differences leave 4e-5."""
    options = {"control_points": 10, "tolerance": 1e-10}

    def moved(by):
        return acrobot(end={"q": [UPRIGHT + by, 0], "v": 0})

    best = solve_splines(moved(0.0), 60, **options)
    plus, minus = (solve_splines(moved(by), 60, guess=best, **options).cost for by in (1e-4, -1e-4))
    assert best.multipliers["end q shoulder"] == pytest.approx(-(plus - minus) / 2e-4, rel=1e-3)
    # the slope of the Lagrangian vanishes; IPOPT scales with the largest gradient (100)
    assert np.abs(best._adjoint.z).max() < 1e-6


def with_parameters(**values):
    """An acrobot with a mass and a length as parameters."""
    builder = al.ModelBuilder("acrobot")
    mass, length = builder.parameter("mass", 1.0), builder.parameter("length", 1.0)
    hinge = al.Revolute((0.0, -1.0, 0.0))
    for name, joint, parent, place in (
        ("upper", "shoulder", "world", (0, 0, 0)),
        ("lower", "elbow", "upper", (length, 0, 0)),
    ):
        inertia = al.Inertia(mass, (0.5, 0, 0), (1e-3, 0, 0.1, 0, 0, 0.1))
        builder.body(name, inertia, joint=hinge, joint_name=joint, parent=parent, placement=place)
    ends = {"start": {"q": [-1.0, 0], "v": 0}, "end": {"q": [UPRIGHT, 0], "v": 0}}
    return Problem(builder.build(), 3.0, **ends, actuated=["elbow"], parameters=values)


def test_sensitivity_of_the_cost():
    """The slope along a mass and a length, from solutions with others: differences of 1e-4 leave 1e-6."""

    def solved(guess=None, **parameters):
        problem = with_parameters(**parameters)
        return solve_splines(problem, 60, control_points=10, tolerance=1e-10, guess=guess)

    best = solved()
    slopes = best.sensitivities()
    for name in ("mass", "length"):
        plus, minus = (solved(best, **{name: 1.0 + by}).cost for by in (1e-4, -1e-4))
        assert slopes[name] == pytest.approx((plus - minus) / 2e-4, rel=1e-4)


@pytest.fixture(scope="module")
def best():
    return solve_splines(with_parameters(), 60, control_points=10)


@pytest.mark.parametrize("name", ["mass", "length"])
@pytest.mark.parametrize("by", [1e-4, -1e-4, 1e-3, 1e-2])
def test_a_warm_start_stays_at_its_solution(best, name, by):
    """The cost changes by its slope times the change, plus its curvature (below 1e4) times the square."""
    near = solve_splines(with_parameters(**{name: 1 + by}), 60, control_points=10, guess=best)
    assert near.success
    assert near.iterations <= 12
    expected = best.cost + by * best.sensitivities()[name]
    assert near.cost == pytest.approx(expected, abs=1e4 * by**2 + 1e-6)


def test_a_cold_search_does_not_hang_on_the_last_bit():
    """Changes of the guess by rounding lead to the same optimum, the best that is known of this problem."""
    problem = with_parameters()
    time = np.linspace(0, 3, 61)
    q = np.outer(1 - time / 3, [-1.0, 0.0]) + np.outer(time / 3, [UPRIGHT, 0.0])
    costs = []
    for seed in range(4):
        noise = 1e-12 * np.random.default_rng(seed).normal(size=q.shape)
        found = solve_splines(problem, 60, control_points=10, guess={"time": time, "q": q + noise})
        assert found.success
        costs.append(found.cost)
    np.testing.assert_allclose(costs, 22.116293, rtol=1e-6)


class Plane:
    """What a search asks of its rows, for functions of two unknowns."""

    def __init__(self, cost, g, lower, upper):
        z = ca.SX.sym("z", 2)
        sigma, y = ca.SX.sym("sigma"), ca.SX.sym("y", len(lower))
        f, rows = cost(z), ca.vertcat(*g(z))
        slope = ca.gradient(sigma * f + ca.dot(y, rows), z)
        self.f = ca.Function("f", [z], [f, rows, ca.gradient(f, z), ca.jacobian(rows, z)])
        self.slope = ca.Function("slope", [z, sigma, y], [slope])
        self.lower, self.upper = np.array(lower, dtype=float), np.array(upper, dtype=float)

    def motion(self, z):
        return SimpleNamespace(cost=float(self.f(z)[0]))

    def values(self, z):
        return self.f(z)[1].full()[:, 0]

    def gradient(self, z):
        return self.f(z)[2].full()[:, 0]

    def jacobian(self, z):
        return self.f(z)[3].full()

    def lagrangian(self, z, sigma, y):
        return SimpleNamespace(z=self.slope(z, sigma, y).full()[:, 0])


@pytest.mark.parametrize(
    ("cost", "g", "lower", "upper", "start", "expected"),
    [
        # the valley of Rosenbrock, free; on a circle (Lagrange: z_2 = z_1^2 there); with an active bound
        (
            lambda z: 100 * (z[1] - z[0] ** 2) ** 2 + (1 - z[0]) ** 2,
            lambda z: [z[0]],
            [-5],
            [5],
            [-1.2, 1],
            [1, 1],
        ),
        (lambda z: z[0] + z[1], lambda z: [z[0] ** 2 + z[1] ** 2], [2], [2], [3.0, -0.1], [-1, -1]),
        (
            lambda z: (z[0] - 2) ** 2 + (z[1] - 1) ** 2,
            lambda z: [z[0] ** 2 - z[1], z[0] + z[1]],
            [-np.inf] * 2,
            [0, 2],
            [2, 2],
            [1, 1],
        ),
        # Maratos: full steps along the circle raise both cost and what the row misses
        (
            lambda z: 2 * (z[0] ** 2 + z[1] ** 2 - 1) - z[0],
            lambda z: [z[0] ** 2 + z[1] ** 2],
            [1],
            [1],
            [np.cos(0.1), np.sin(0.1)],
            [1, 0],
        ),
        # a saddle at the start, where the slope vanishes along the row
        (lambda z: -z[0] * z[1], lambda z: [z[0] - z[1], z[0]], [0, -1], [0, 1], [1e-3, 1e-3], [1, 1]),
    ],
)
def test_trust_region(cost, g, lower, upper, start, expected):
    free = np.full(2, np.inf)
    method = TrustRegion(Plane(cost, g, lower, upper), -free, free, 1e-9, lambda *_: False)
    end = method.run(np.array(start, dtype=float), 60)
    assert end.status == "solved"
    np.testing.assert_allclose(end.z, expected, atol=1e-7)


def test_trust_region_within_bounds_of_the_unknowns():
    """The first one gains more of what the row leaves to both, until the second is at its bound."""
    plane = Plane(lambda z: (z[0] - 3) ** 2 - z[1], lambda z: [z[0] + z[1]], [-np.inf], [2.0])
    method = TrustRegion(plane, np.array([-np.inf, 0.0]), np.array([np.inf, 0.5]), 1e-9, lambda *_: False)
    end = method.run(np.array([0.0, 2.0]), 60)
    assert end.status == "solved"
    np.testing.assert_allclose(end.z, [2.0, 0.0], atol=1e-7)


def test_trust_region_says_that_rows_contradict():
    plane = Plane(lambda z: z[0] ** 2, lambda z: [z[0], z[0]], [0.0, 1.0], [0.0, 1.0])
    free = np.full(2, np.inf)
    end = TrustRegion(plane, -free, free, 1e-8, lambda *_: False).run(np.zeros(2), 60)
    assert end.status in ("infeasible", "iterations")
    assert end.error > 0.1


def test_loops_stay_closed():
    """The parallelogram of `test_closure`, whose optimum is that of one body: 74.4445550 (Radau, 40 steps)."""
    solution = solve_splines(linkage(), 40, control_points=16)
    assert solution.success
    assert np.abs(solution.model.constraint_residual(solution.q)).max() < 1e-12
    G = solution.model.constraint_jacobian(solution.q)
    assert np.abs(np.einsum("kij,kj->ki", G, solution.v)).max() < 1e-12
    assert solution.cost == pytest.approx(74.4445550, rel=1e-4)
    assert solution.check.largest < 1e-3


def test_prescribed_joints():
    """The same motion as by collocation of order 4."""
    problem = swayed()
    solution = solve_splines(problem, 40)
    reference = problem.solve(40, transcription="hermite-simpson")
    assert solution.cost == pytest.approx(reference.cost, rel=1e-5)
    np.testing.assert_allclose(solution.q[:, 0], 0.5 * np.sin(3 * solution.time), atol=1e-14)
    np.testing.assert_allclose(solution.q, reference.q, atol=1e-3)


def test_rates_of_controls():
    solution = solve_splines(acrobot(limits={"rate": 60.0}), 60, control_points=12)
    assert solution.success
    rates = np.diff(solution.node_controls[:, 0]) / np.diff(solution.time)
    assert np.abs(rates).max() == pytest.approx(60.0, rel=1e-6)
    assert "bounds that hold somewhere: rate of elbow" in solution.diagnosis()
    assert solution.multipliers["rate of elbow"].shape == (60,)


def test_periodic_motion_finds_the_start_of_passive_joints():
    """Swinging an acrobot's elbow: the shoulder's start is found so that all returns."""
    cost = effort(0.01) + running(lambda s: 50 * (s.q[1] - 0.5 * ca.sin(2 * np.pi * s.t)) ** 2)
    near = {"q": {"shoulder": (-2.0, -1.0)}}
    problem = Problem(al.library.acrobot(), 1.0, cost=cost, periodic=True, start=near)
    solution = solve_splines(problem, 60, control_points=12)
    assert solution.success
    np.testing.assert_allclose(solution.q[-1], solution.q[0], atol=1e-7)
    np.testing.assert_allclose(solution.v[-1], solution.v[0], atol=1e-7)
    assert np.ptp(solution.q[:, 1]) > 0.5


def test_continuation_and_warm_start():
    """Each from the one before; the same number of control points is taken over as it is."""
    found = acrobot().continuation("duration", [3.0, 3.3], 60, transcription="splines", control_points=12)
    assert found.success
    again = found.last.problem.solve(60, transcription="splines", control_points=12, guess=found.last)
    assert again.iterations <= 2
    assert again.cost == pytest.approx(found.last.cost, rel=1e-9)


def test_diagnosis_names_what_is_wrong():
    high = {
        "tip": (lambda s: s.frame("tip").translation[2] - s.t, 1.0)
    }  # what has the time is not settled before
    wrong = acrobot(end={"q": [UPRIGHT, 0], "v": 0, **high})
    text = solve_splines(wrong, 40, control_points=8, iterations=40).diagnosis()
    assert "end tip cannot be changed apart from end q shoulder, end q elbow" in text
    assert "contradicts them (at t = 3 s, by" in text
    small = {"small": (lambda s: 1e-8 * s.q[1], 0.0)}
    unscaled = acrobot(end={"q": {"shoulder": UPRIGHT}, "v": 0, **small})
    text = solve_splines(unscaled, 40, control_points=8, iterations=40).diagnosis()
    assert "end small is badly scaled: its gradient is 1.0e-08 at t = 3 s" in text


def test_diagnosis_locates_what_is_not_finite():
    solution = solve_splines(acrobot(), 40, control_points=8, iterations=1)
    z = solution.unknowns.copy()
    z[3] = 1e200
    rows = solution._rows
    lost = type(solution)(rows, Found(z, solution._multipliers, "stalled", []), {})
    assert not lost.success
    assert "the motion is not finite: q shoulder from t = " in lost.diagnosis()
    assert "not finite" in str(lost.violations()[0])


def test_an_end_out_of_reach_is_said():
    solution = solve_splines(acrobot(limits={"tau": 0.01}), 40, control_points=8, iterations=30)
    assert not solution.success
    assert solution.violations()
    assert "the worst:" in solution.diagnosis()
    short = solve_splines(acrobot(), 40, control_points=8, iterations=1)
    assert short.status == "iterations"
    assert "raise `iterations`" in short.message


def whole_satellite():
    model = al.library.satellite()
    return Problem(model, 1.0, actuated=[joint.name for joint in model.joints if joint.type.nv])


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (lambda: Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0), "for models, not for a System"),
        (lambda: acrobot(limits={"tau": (1.0, 1.0)}), "'tau elbow' is to have one value all along"),
        (whole_satellite, "the driven joint .* and B-splines are for joints whose"),
    ],
)
def test_refused(problem, message):
    with pytest.raises(UnsupportedError, match=message):
        solve_splines(problem())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps is 0, expected a whole number of at least 1"),
        ({"degree": 2}, "degree is 2, expected a whole number of at least 3; accelerations"),
        ({"control_points": 5}, "control_points is 5, expected a whole number of at least 6"),
        ({"iterations": True}, "iterations is True"),
        ({"tolerance": 0}, "tolerance is 0, expected a number between 0 and 1"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ArgumentError, match=message):
        solve_splines(acrobot(), **options)


def test_a_driven_joint_that_the_loop_determines():
    problem = linkage().replace(actuated=["foot0", "foot1"])
    with pytest.raises(ArgumentError, match="the loops and couplings determine a driven joint"):
        solve_splines(problem)


def test_a_guess_that_runs_away():
    guess = {"time": [0, 1.5, 3], "q": [[0, 0], [0, 1e100], [0, 0]]}
    with pytest.raises(
        NumericalError, match=r"the motion of the guess is not finite \(.* from t = .* s on\)"
    ):
        solve_splines(acrobot(), 20, guess=guess)

"""General solvers on compiled functions: derivatives, multipliers, and how they are watched and stopped."""

import os
import re
import signal

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Phases, Problem, System, duration, effort, terminal
from alembert.optimal import guess as guesses
from alembert.optimal.forms import has_smallest, smallest, staged
from alembert.optimal.interior_point import near_solution
from alembert.optimal.nlp import _reason
from alembert.optimal.schemes import scheme
from alembert.optimal.stages import cut


def reach():
    """Free time, bounds, a path constraint, a parameter, conditions by functions."""
    model = al.library.two_link()
    return Problem(
        model,
        (0.4, 1.5),
        start={"q": [-0.5, 0.2], "v": 0},
        end={"height": (lambda s: s.frame("tip").translation[2], (0.3, np.inf)), "v": 0},
        limits={"tau": 80.0, "v": 15.0},
        path={"low": (lambda s: s.frame("tip").translation[2], -1.9, np.inf)},
        cost=effort() + terminal(lambda s: 3 * s.duration + ca.sumsqr(s.q)),
    )


def ball(turns=(0.3, -0.5, 0.8)):
    """A body on a spherical joint, from one attitude to another."""
    builder = al.ModelBuilder("ball", gravity=(0.0, 0.0, -9.81))
    inertia = al.Inertia(1.0, (0.1, 0.0, -0.3), (0.3, 0.0, 0.25, 0.0, 0.0, 0.2))
    builder.body("ball", inertia, joint=al.Spherical(), joint_name="socket")
    model = builder.build()
    end = model.integrate(model.neutral(), np.array(turns))
    return Problem(model, 1.0, start={"q": model.neutral(), "v": 0}, end={"q": end, "v": 0}, limits=None)


def forms(problem, transcription, steps):
    stages = cut(problem, scheme(transcription), steps)
    x, u, z = guesses.place(stages, guesses.make(problem, None))
    found = [staged(stages, x, u, z)]
    return [*found, smallest(stages, x, u)] if has_smallest(stages) else found


@pytest.mark.parametrize(
    ("make", "transcription", "steps"),
    [
        *((reach, "dmoc", 10), (reach, "hermite-simpson", 10), (reach, "radau", 3), (reach, "euler", 4)),
        *((ball, "dmoc", 3), (ball, "rk4", 2)),
    ],
)
def test_derivatives(make, transcription, steps):
    """Along a random direction, against central differences: errors of order 1e-12 curvature + 1e-16 / 1e-6."""
    rng = np.random.default_rng(0)
    for form in forms(make(), transcription, steps):
        program, h = form.program, 1e-6
        w = form.start + 0.05 * rng.normal(size=program.size)
        d, y, sigma = rng.normal(size=program.size), rng.normal(size=program.rows), 0.7
        (f0, g0, *_), (f1, g1, *_) = program.first(w - h * d), program.first(w + h * d)
        before, after = program.slope(w - h * d, sigma, y), program.slope(w + h * d, sigma, y)
        f, g, slope, jacobian = program.first(w)
        assert (f, g.tolist()) == (program.values(w)[0], program.values(w)[1].tolist())
        assert slope @ d == pytest.approx((f1 - f0) / (2 * h), rel=1e-6)
        J = ca.DM(program.jacobian, jacobian).full()
        np.testing.assert_allclose(J @ d, (g1 - g0) / (2 * h), atol=1e-6 * np.abs(J).max())
        H = ca.DM(program.hessian, program.second(w, sigma, y)).full()
        whole, places = program.mirrored()
        both = ca.DM(whole, program.second(w, sigma, y)[places]).full()
        np.testing.assert_array_equal(both, H + np.triu(H, 1).T)
        np.testing.assert_allclose(both @ d, (after - before) / (2 * h), atol=1e-6 * np.abs(H).max())


@pytest.mark.parametrize("transcription", ["dmoc", "rk4"])
def test_no_edge_at_half_a_turn(transcription):
    """Rows change as little as the attitudes do, also where these are pi from those of the guess: 1e-6 times slopes, which
    are below 1e3 here."""
    form = forms(ball(), transcription, 3)[0]
    x, u, z = form.unpack(form.start)
    model, rows = form.stages.problem.model, []
    for angle in np.linspace(np.pi - 5e-6, np.pi + 5e-6, 11):
        turned = x.copy()
        turned[1:-1, :4] = model.integrate(x[1:-1, :4], np.array([0.6, 0.0, 0.8]) * angle)
        rows.append(form.program.values(staged(form.stages, turned, u, z).start)[1])
    assert np.abs(np.diff(rows, axis=0)).max() < 1e-3


def test_nearly_solved():
    """What rounding errors stop within ten times the tolerance is a solution; beyond, it says how far it is from one."""
    assert near_solution(9e-8, 1e-8) == (
        "acceptable",
        "stopped at the error 9.0e-08: rounding allows no better step",
    )
    status, message = near_solution(2e-7, 1e-8)
    assert status == "stalled"
    assert "stopped at the error 2.0e-07, which is more than 10 times the tolerance" in message
    found = al.optimal.examples.swing_up().solve(12, solver="fatrop", tolerance=1e-15)
    assert found.status in ("acceptable", "stalled")
    assert "stopped at the error" in found.message
    assert found.cost == pytest.approx(al.optimal.examples.swing_up().solve(12).cost, rel=1e-9)


def test_what_is_known_of_a_point_is_used_again(monkeypatch):
    form = forms(ball(), "dmoc", 3)[1]
    calls = []
    run = form.program._run
    monkeypatch.setattr(form.program, "_run", lambda what, w: (calls.append(what), run(what, w)))
    w = form.start.copy()
    form.program.values(w), form.program.values(w), form.program.first(w), form.program.values(w)
    form.program.first(w), form.program.values(w + 1)
    assert calls == ["values", "first", "values"]


def test_costates_on_manifolds():
    """Charts about a straight guess are not those at the solution: multipliers must leave in the latter.

    The two solvers get different forms of DMOC, whose rows have different multipliers.
    """
    problem = ball()
    one, two = (problem.solve(6, solver=solver, tolerance=1e-10) for solver in ("ipopt", "fatrop"))
    assert one.success
    assert two.success
    np.testing.assert_allclose(one.q, two.q, atol=1e-8)
    size = np.abs(one.costates).max()
    np.testing.assert_allclose(one.costates, two.costates, atol=1e-7 * size)  # both to 1e-10 of their slopes
    for name, value in one.multipliers.items():
        np.testing.assert_allclose(two.multipliers[name], value, atol=1e-7 * size, err_msg=name)


@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
@pytest.mark.parametrize("how", ["raised", "pressed"])
def test_interrupting(solver, how):
    seen = []

    def report(iteration):
        seen.append(iteration)
        if iteration.number == 3:
            if how == "raised":
                raise KeyboardInterrupt
            os.kill(os.getpid(), signal.SIGINT)

    problem = reach()
    handler = signal.getsignal(signal.SIGINT)
    stopped = problem.solve(10, solver=solver, progress=report)
    assert signal.getsignal(signal.SIGINT) is handler
    assert (stopped.status, stopped.iterations) == ("interrupted", 3)
    best = min(seen, key=lambda i: i.infeasibility)  # none of them keeps all to 1e-6
    assert best.infeasibility > 1e-6
    assert stopped.cost == pytest.approx(best.cost)
    assert stopped.infeasibility == pytest.approx(best.infeasibility)
    assert "this is the best iterate so far" in stopped.message
    assert problem.solve(10, solver=solver, progress=False).success


@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
def test_errors_on_the_way_come_back(solver):
    def report(iteration):
        if iteration.number == 2:
            raise ZeroDivisionError("in the user's own function")

    with pytest.raises(ZeroDivisionError, match="in the user's own function"):
        reach().solve(10, solver=solver, progress=report)


@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
def test_few_iterations(solver):
    stopped = reach().solve(10, solver=solver, iterations=2, progress=False)
    assert (stopped.status, stopped.message) == ("iterations", "stopped after 2 iterations")
    assert np.isfinite(stopped.cost)


def test_fatrop_says_in_words_why_it_stopped():
    """Its return code is a number; two ends that contradict each other it cannot meet."""
    ends = {"start": {"q": [0.0, 0.0], "v": 0}, "end": {"q": [1.0, 0.0], "v": 0}}
    impossible = Problem(al.library.two_link(), 1.0, **ends, limits={"tau": 0.01})
    found = impossible.solve(6, solver="fatrop", iterations=50)
    assert not found.success
    assert not re.fullmatch(r"fatrop: -?\d*", found.message)
    assert _reason("fatrop", 1, 0.5).startswith(
        "fatrop stopped without a solution (its return code is 1) at the error 5.0e-01"
    )
    assert _reason("ipopt", "Infeasible_Problem_Detected", 0.5) == "ipopt: Infeasible_Problem_Detected"


def test_what_ipopt_finds_infeasible_is_called_so():
    problem = Problem(
        al.library.cart_pole(), 2.0, start={"q": [0, np.pi], "v": 0}, end={"q": 0, "v": 0}, limits={"tau": 1}
    )
    solution = problem.solve(40, solver="ipopt")
    assert solution.status == "infeasible"
    assert (
        "ipopt: no motion near here keeps all constraints (Infeasible_Problem_Detected)" in solution.message
    )


def test_options_of_the_solvers_themselves(capfd):
    cart = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}
    problem = Problem(cart, (0.2, 5.0), **ends, limits={"u": 1.0}, cost=duration())
    for solver, own in (("ipopt", {"mu_strategy": "adaptive"}), ("fatrop", {"mu_init": 1e-6})):
        plain, other = (problem.solve(10, solver=solver, options=given) for given in (None, own))
        assert other.converged
        assert other.cost == pytest.approx(plain.cost, abs=1e-6)
        assert [i.cost for i in other.history] != [i.cost for i in plain.history]
    both = Phases({"go": problem}).solve(10, solver="ipopt", options={"mu_strategy": "adaptive"})
    assert both.converged
    for solver, given, said in (
        (
            "ipopt",
            {"speed": 1},
            r"ipopt does not take the options \{'speed': 1\}: No such IPOPT option: speed",
        ),
        ("fatrop", {"speed": 1}, r"fatrop does not take the options \{'speed': 1\}: speed"),
        ("fatrop", {"mu_init": "big"}, "fatrop does not take the options .*: type mismatch"),
        ("ipopt", {"mu_strategy": "none"}, "does not take the options .* Invalid options were detected"),
        ("ipopt", {"max_iter": 3}, "options: 'max_iter' is the argument `iterations`"),
        ("ipopt", 3, "options is 3, expected values by the names that ipopt has for them"),
        ("sweep", {"tol": 1}, "options are for solver='ipopt' and 'fatrop', and this is 'sweep'"),
    ):
        with pytest.raises((ArgumentError, UnsupportedError), match=said):
            problem.solve(10, solver=solver, options=given)
    capfd.readouterr()  # IPOPT explains its options itself

"""What the sweep in time gets from the stages: derivatives by way of the bodies, and blocks that are computed once."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.optimal import Problem, effort, guess, running
from alembert.optimal import evaluation as evaluation_module
from alembert.optimal.evaluation import Evaluation
from alembert.optimal.newton import Newton
from alembert.optimal.schemes import scheme
from alembert.optimal.stage_derivatives import eliminated
from alembert.optimal.stages import cut

CURVED = running(lambda s: 0.1 * ca.sumsqr(s.v) + ca.cos(s.q[-1]))


def linear(stages, exact=False):
    """At a point off the guess, so that no residual vanishes."""
    x, u, z = guess.place(stages, guess.make(stages.problem, None))
    rng = np.random.default_rng(3)
    x = stages.chart.move(x, 0.3 * rng.normal(size=(len(x), stages.chart.tangent)))
    evaluation = Evaluation(stages, exact=exact)
    found = Newton(stages, evaluation, x, u + rng.normal(size=u.shape), z, 0.1, scaled=False)
    found.linearise()
    return found


@pytest.mark.parametrize(
    ("make", "name"),
    [(al.library.satellite, "euler"), (al.library.two_link, "rk4"), (al.library.cart_pole, "midpoint")],
)
def test_derivatives_by_way_of_the_bodies(make, name):
    """They are those of automatic differentiation, also where configurations are on a manifold and bounds have slopes."""
    problem = Problem(make(), 1.0, cost=effort() + CURVED, limits={"tau": 5.0})
    stages = cut(problem, scheme(name), 4)
    assert stages.opened is not None
    own = linear(stages)
    plain = replace(stages, opened=None)
    evaluation = Evaluation(plain, exact=False)
    labels = [a.name for a in evaluation.condensed.arguments]
    inputs = [ca.SX.sym(a.name, *a.shape) for a in evaluation.condensed.arguments]
    graph = evaluation._condensed_graph(dict(zip(labels, inputs, strict=True)))
    function = ca.Function("plain", inputs, [*graph[:2], graph[14]])
    it = own.it
    for k in range(stages.count):
        bounds = [a[k] for a in it.path.arrays]
        given = [it.x[k], it.u[k], it.z[k], it.x[k + 1], stages.numbers[k], stages.parameters]
        A, B, g = function(*given, own.units.parts[0].stage, it.costates[k + 1], 1.0, *bounds)
        np.testing.assert_allclose(
            own.linear.A[k], A.full(), rtol=1e-11, atol=1e-11
        )  # rounding, slopes up to 100
        np.testing.assert_allclose(own.linear.B[k], B.full(), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(own._g[k], g.full()[:, 0], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((al.library.arm7, "euler"), (al.library.acrobot, "rk4"), (al.library.cart_pole, "radau")),
        *((al.library.satellite, "euler"), (al.library.satellite, "midpoint")),
    ],
)
def test_curvature_by_way_of_the_bodies(make, name):
    """The exact Hessian is that of automatic differentiation, with slopes of bounds and of z in it."""
    problem = Problem(make(), 1.0, cost=effort() + CURVED, limits={"tau": 5.0})
    stages = cut(problem, scheme(name), 4)
    assert stages.opened is not None
    assert stages.opened.has_second
    graphs = []
    for which in (stages, replace(stages, opened=None)):
        evaluation = Evaluation(which, exact=True)
        symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in evaluation.condensed.arguments}
        found = evaluation._condensed_graph(symbols)
        graphs.append(ca.Function("graph", list(symbols.values()), found))
    rng = np.random.default_rng(4)
    at = [rng.normal(size=graphs[0].size_in(k)) for k in range(graphs[0].n_in())]
    for one, two in zip(*(f.call(at) for f in graphs), strict=True):
        one, two = ca.DM(one).full(), ca.DM(two).full()
        # rounding, after the elimination of z
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-10 * max(1.0, np.abs(two).max(initial=0.0)))


@pytest.mark.parametrize(
    ("make", "name", "exact"),
    [
        *((al.library.satellite, "midpoint", True), (al.library.acrobot, "radau", True)),
        *((al.library.acrobot, "radau", False), (al.library.cart_pole, "trapezoidal", True)),
    ],
)
def test_many_unknowns_are_eliminated_on_arrays(make, name, exact, monkeypatch):
    """Where expressions of it would be long, z is eliminated on arrays, with the same results."""
    cost = effort() + CURVED + running(lambda s: ca.sumsqr(s.v) ** 2)
    stages = cut(Problem(make(), 1.0, cost=cost, limits={"tau": 5.0}), scheme(name), 2)
    rng, found = np.random.default_rng(7), []
    for largest in (0, np.inf):
        monkeypatch.setattr(evaluation_module, "LARGEST_STRAIGHT", largest)
        evaluation = Evaluation(stages, exact=exact)
        if not found:
            inputs = evaluation.condensed.arguments
            given = {a.name: rng.uniform(0.5, 1.5, size=(2, *a.shape)) for a in inputs}
        left = {a.name: np.zeros((2, *a.shape)) for a in evaluation.condensed.results}
        evaluation.condense(2, given, left)()
        found.append(left)
        assert bool(evaluation.condensed._compiled) == (largest > 0)  # what is long is not made
    for label, straight in found[1].items():
        # rounding, after the elimination of z
        atol = 1e-9 * max(1.0, np.abs(straight).max(initial=0.0))
        np.testing.assert_allclose(found[0][label], straight, rtol=0, atol=atol, err_msg=label)


def test_singular_slopes_of_z_leave_nothing_finite():
    """As divisions by zero do in expressions: no step is taken from there."""
    count, nz = 2, 3
    sizes = {"gap": (1,), "right": (3, nz), "G": (nz, nz), "F": (1, 2), "F_z": (1, nz), "D": (0, 2)}
    sizes |= {"D_z": (0, nz), "g": (2 + nz,), "along": (2,), "along_z": (nz,), "nu": (nz,)}
    sizes |= {"H_ww": (2, 2), "H_wz": (2, nz), "H_zz": (nz, nz)}
    given = {name: np.ones((count, *shape)) for name, shape in sizes.items()}
    given["G"][0] = np.eye(nz)
    left = {"A": np.zeros((count, 1, 1)), "Z": np.zeros((count, nz, 2))}
    eliminated(lambda: None, lambda: None, given, left)()
    assert all(np.isfinite(array[0]).all() and np.isnan(array[1]).all() for array in left.values())

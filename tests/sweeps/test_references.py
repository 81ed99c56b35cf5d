"""What is written a second time to be fast, against the steps that it stands for.

Each module names its reference in its docstring. Those of `alembert.lowering` are in tests/lowering/test_fast_paths.py.
"""

import importlib
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from alembert import library
from alembert.sensitivity import products
from alembert.sensitivity.mass_factor import Pattern
from alembert.sweeps import FORWARD_DYNAMICS, MASS_MATRIX, Tree, dynamics, expressions
from alembert.sweeps import program as programs
from alembert.sweeps.operators import INNOVATIONS

EPS = np.finfo(float).eps
TESTS = Path(__file__).parents[1]
FAST = (
    ("sweeps.dynamics", "P - U D^-1 U^T", "sweeps/test_references.py"),
    ("sensitivity.mass_factor", "alembert.sweeps.operators", "sweeps/test_references.py"),
    ("sensitivity.inverse_dynamics", "alembert.sweeps.dynamics", "sensitivity/test_derivatives.py"),
    ("sensitivity.products", "alembert.sensitivity.traces", "sensitivity/test_products.py"),
    ("sensitivity.inverse_dynamics", "alembert.sensitivity.products", "sensitivity/test_curvature.py"),
    ("sensitivity.traces", "alembert.sensitivity.products", "sensitivity/test_rolled_products.py"),
    ("sensitivity.adjoint_traces", "alembert.sensitivity.products", "sensitivity/test_rolled_products.py"),
    ("sensitivity.regressor", "alembert.sweeps.dynamics", "sensitivity/test_regressor.py"),
)
"""a module, a reference that it names, and the tests that hold the two equal"""


@pytest.mark.parametrize(("name", "reference", "tests"), FAST)
def test_the_reference_is_named(name, reference, tests):
    text = importlib.import_module(f"alembert.{name}").__doc__
    _, found, sentence = text.partition("Reference: ")
    assert found, f"{name}: the docstring names no reference"
    assert reference in sentence
    assert f"tests/{tests}" in sentence
    assert (TESTS / tests).exists()


def model():
    """Every type of joint, also such as have no armature."""
    return library.random_tree(7, bodies=12)


def function(program, tree):
    sizes = {"q": (tree.model.nq,), "v": (tree.model.nv,), "node6": (len(tree), 6)}
    given = {name: ca.SX.sym(name, *sizes[extent]) for name, extent in program.given.items()}
    found = expressions(program, tree, given, tree.parameter_symbols)
    return ca.Function("f", [*given.values()], [ca.densify(value) for value in found.values()])


def inputs(f, model, rng):
    return [model.random_configuration(rng), *(rng.normal(size=f.size_in(k)) for k in range(1, f.n_in()))]


@pytest.mark.parametrize("derived", ["dynamics", "tangent", "adjoint"])
def test_entries_that_are_known_without_arithmetic(derived, monkeypatch):
    """P_a S = 0, W S = 1, S^T z_a = tau: written down, or computed like all the others.

    Both round P A + z, whose terms are as large as the mass matrix times the accelerations; 1e4 for its condition number.
    """
    tree = Tree.of(model())
    program = FORWARD_DYNAMICS
    if derived != "dynamics":
        program = getattr(products, derived)(program, tuple(program.given))[0]
    fast = function(program, tree)
    monkeypatch.setattr(programs, "GRAPHS", {})
    for module in (dynamics, products):
        monkeypatch.setattr(module, "unit_columns", lambda S: [])
    plain = function(program, tree)
    assert fast.n_instructions() < plain.n_instructions()
    rng = np.random.default_rng(1)
    for _ in range(5):
        x = inputs(fast, tree.model, rng)
        for one, other in zip(fast.call(x), plain.call(x), strict=True):
            scale = max(np.abs(other.full()).max(initial=0.0), 1.0)
            np.testing.assert_allclose(one.full(), other.full(), rtol=0, atol=1e4 * 100 * EPS * scale)


def test_inertias_in_two_turns_where_the_placement_permutes_axes(monkeypatch):
    tree = Tree.of(library.arm7())
    fast = function(FORWARD_DYNAMICS, tree)
    monkeypatch.setattr(programs, "GRAPHS", {})
    monkeypatch.setattr(dynamics, "_to_parent", lambda P, b: P.transform(b.X))
    plain = function(FORWARD_DYNAMICS, tree)
    assert fast.n_instructions() < plain.n_instructions()
    rng = np.random.default_rng(2)
    for _ in range(5):
        x = inputs(fast, tree.model, rng)
        one, other = fast(*x).full(), plain(*x).full()
        np.testing.assert_allclose(one, other, rtol=0, atol=1e4 * 100 * EPS * np.abs(other).max())


def test_the_factor_along_the_tree_is_that_of_the_innovations():
    """M = L^T D L and M = [1 + H phi K] D [1 + H phi K]^T: with one speed per joint there is but one such factor."""
    tree = Tree.of(
        library.random_tree(4, bodies=9, kinds=("revolute", "prismatic", "screw"), attachments=True)
    )
    q = ca.SX.sym("q", tree.model.nq)
    p, symbols = Pattern(tree), tree.parameter_symbols
    M = expressions(MASS_MATRIX, tree, {"q": q}, symbols)["matrix"]
    found = expressions(INNOVATIONS, tree, {"q": q}, symbols)
    f = ca.Function("f", [q], [p.factor(M), found["L"], found["D"], ca.densify(M)])
    at = tree.model.random_configuration(np.random.default_rng(3))
    factor, L, D, dense = (x.full() for x in f(at))
    n = tree.model.nv
    own = np.eye(n)
    for (k, i), place in p.positions.items():
        own[k, i] = factor[place, 0]
    np.testing.assert_allclose(own.T, L, rtol=0, atol=1e3 * EPS * np.abs(L).max())
    np.testing.assert_allclose(1 / factor[len(p.positions) :, 0], np.diag(D), rtol=1e3 * EPS)
    b = np.random.default_rng(4).normal(size=n)
    condition = np.linalg.cond(dense)
    x = ca.DM(p.solve(ca.SX(factor), ca.SX(b))).full()[:, 0]
    np.testing.assert_allclose(
        x, np.linalg.solve(dense, b), rtol=0, atol=100 * EPS * condition * np.abs(x).max()
    )
    X = ca.DM(p.inverse(ca.SX(factor))).full()
    np.testing.assert_allclose(X @ dense, np.eye(n), rtol=0, atol=100 * EPS * condition)

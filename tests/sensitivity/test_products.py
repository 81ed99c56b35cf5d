"""Products with Jacobians in closed form against differentiated sweeps, for every type of joint."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.algorithms import directional_kernels, kernels
from alembert.algorithms.table import TABLE
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError
from alembert.joints import REGISTRY
from alembert.sensitivity import products

PROGRAMS = {name: entry.sweeps for name, entry in TABLE.items() if entry.program}

CLOSED = [name for name, (program, names) in PROGRAMS.items() if products.tangent(program, names)]
DYNAMICS = ("inverse_dynamics", "forward_dynamics", "hybrid_dynamics")


def closed(model, mode, program, names):
    return (products.tangent if mode == "jvp" else products.adjoint)(program, names)


def arguments(model, inputs, rng, count=7):
    for a in inputs:
        if a.name == "q":
            yield np.array([model.random_configuration(rng) for _ in range(count)])
        elif a.name == "free":
            yield (rng.random((count, *a.shape)) < 0.6).astype(float)
        elif a.name == "dfree":
            yield np.zeros((count, *a.shape))
        else:
            yield rng.normal(size=(count, *a.shape))


def differentiated(model, mode, program, names):
    """The unrolled program by automatic differentiation: its arguments, results and function."""
    tree = model.compute.tree
    inputs = kernels.arguments(model, tree, program, names)
    algorithm = directional_kernels.Differentiable(
        program.name, None, tuple(inputs), tuple(kernels.results(model, tree, program))
    )
    f = kernels.function(program.name, inputs, tree, kernels.program_graph(tree, program, names))
    given, results = directional_kernels.arguments(model, mode, algorithm)
    x = [ca.SX.sym("x", *a.shape) for a in given]
    at, more = x[: len(inputs)], x[len(inputs) :]
    if mode == "jvp":
        value, change = products.jvp(f, tree, algorithm.turned, at, more)
        found = [ca.vertcat(value, change)]
    else:
        found = products.vjp(f, tree, algorithm.turned, at, products.stacked(more))
    return given, results, ca.Function("product", x, [products.stacked([x.T for x in found])])


def compare(model, mode, program, names, lowering):
    given, results, f = differentiated(model, mode, program, names)
    found = closed(model, mode, program, names)
    kernel = Kernel(
        mode,
        given,
        results,
        key=f"{model.fingerprint}:{mode}:{program.name}:{names}:{lowering}:test",
        build=lambda: kernels.program_source(model.compute.tree, *found, lowering),
    )
    values = list(arguments(model, given, np.random.default_rng(1)))
    got = kernel(*values)
    for k in range(len(values[0])):
        expected = f(*(x[k] for x in values)).full().ravel()
        parts = np.split(expected, np.cumsum([r.size for r in results])[:-1])
        for r, part, x in zip(results, parts, got if isinstance(got, tuple) else (got,), strict=True):
            if r.name != "dfree":
                # rounding, amplified by the condition of the mass matrix where it is inverted
                size = max(np.abs(part).max(initial=0.0), 1.0)
                np.testing.assert_allclose(x[k].ravel(), part, rtol=0, atol=1e-11 * size, err_msg=r.name)


@pytest.mark.parametrize("kinds", [tuple(REGISTRY)[k::3] for k in range(3)], ids="-".join)
@pytest.mark.parametrize("mode", ["jvp", "vjp"])
@pytest.mark.parametrize("name", DYNAMICS)
def test_every_joint_type(kinds, mode, name):
    """With springs, friction, armature and rotors; `test_rolled_products` compares the loops with this."""
    model = al.library.random_tree(3, bodies=len(kinds), kinds=kinds, attachments=True)
    compare(model, mode, *PROGRAMS[name], "specialised")


@pytest.mark.parametrize("mode", ["jvp", "vjp"])
@pytest.mark.parametrize("name", [name for name in CLOSED if name not in DYNAMICS])
def test_every_program_of_these_sweeps(mode, name):
    model = al.library.random_tree(
        4, bodies=4, kinds=("revolute", "spherical", "universal"), attachments=True
    )
    compare(model, mode, *PROGRAMS[name], "specialised")


@pytest.mark.parametrize("mode", ["jvp", "vjp"])
@pytest.mark.parametrize("name", DYNAMICS)
def test_wrenches_on_all_bodies(mode, name):
    model = al.library.random_tree(5, bodies=2, kinds=("revolute", "gimbal"), attachments=True)
    program, names = PROGRAMS[name]
    compare(model, mode, program, (*names, "wrench"), "rolled")


def test_those_of_the_dynamics_are_in_closed_form():
    assert {"bias_forces", "gravity_forces", "multiply_mass_matrix", "solve_mass_matrix", *DYNAMICS} <= {
        *CLOSED
    }
    model = al.library.random_tree(4, bodies=3, kinds=("revolute",))
    kernel = model.compute.directional_kernel("vjp", "forward_dynamics")
    closed_, plain = (
        kernel.source().function,
        directional_kernels.function(model, "vjp", "forward_dynamics", None),
    )
    assert closed_.n_instructions() < plain.n_instructions()
    assert products.adjoint(*PROGRAMS["forward_dynamics"], parameters=True) is None
    assert products.tangent(*PROGRAMS["forward_dynamics"], parameters=True) is None


def test_which_speeds_are_free_is_a_choice():
    model = al.library.random_tree(4, bodies=3, kinds=("revolute", "spherical"))
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, tau, a, w, z = rng.normal(size=(5, model.nv))
    free = (np.arange(model.nv) % 2).astype(float)
    zero = np.zeros(model.nv)
    with pytest.raises(ArgumentError, match="jvp: dfree is not zero: which speeds are free is a choice that"):
        model.jvp("hybrid_dynamics", (q, v, tau, a, free), (zero, zero, zero, zero, free))
    gradients = model.vjp("hybrid_dynamics", (q, v, tau, a, free), (w, z))
    np.testing.assert_array_equal(gradients[4], 0.0)
    # efforts of prescribed speeds and accelerations of free ones are not read
    np.testing.assert_array_equal(gradients[2][free == 0], 0.0)
    np.testing.assert_array_equal(gradients[3][free == 1], 0.0)


def test_batches_have_the_bits_of_single_states():
    model = al.library.random_tree(6, bodies=2, kinds=("revolute", "universal"), attachments=True)
    for mode in ("jvp", "vjp"):
        kernel = model.compute.directional_kernel(mode, "hybrid_dynamics")
        values = list(arguments(model, kernel.arguments, np.random.default_rng(3), count=9))
        together = kernel(*values)
        for k in range(9):
            for x, y in zip(together, kernel(*(x[k] for x in values)), strict=True):
                np.testing.assert_array_equal(x[k], y)

"""Trees that the operators and the optimal-control twin are tested on, at a random state each."""

import functools
from types import SimpleNamespace

import casadi as ca
import numpy as np

from alembert import library, sweeps
from alembert.operators import operators

EPS = float(np.finfo(float).eps)

# Both sides of an identity are products of a few operators, each a sum of some hundreds of terms of either
# sign. A product rounds by about eps times the product of the norms of its factors (measured: at most 1.4
# times); 20 leaves room for other machines.
ROUNDING = 20 * EPS

PLAIN = ("chain", "branched", "floating")
"""Without armature and rotors, as 002 has it."""
ALL = (*PLAIN, "attached", "floating_attached")
SEEDS = {
    "chain": {"seed": 21, "branching": 0.0},
    "branched": {"seed": 22, "branching": 0.6},
    "floating": {"seed": 23, "branching": 0.5, "floating": True},
    "attached": {"seed": 24, "attachments": True},
    "floating_attached": {"seed": 25, "attachments": True, "floating": True},
}


@functools.cache
def case(name):
    """A tree with every joint type, its operators and mass matrix at a configuration, and a random state."""
    model = library.random_tree(bodies=13, **SEEDS[name])
    rng = np.random.default_rng(len(name))
    q = _away_from_lock(model, rng)
    v, a, tau = rng.normal(size=(3, model.nv))
    tree = sweeps.Tree.of(model)
    mass_matrix = evaluate(sweeps.MASS_MATRIX, model, q=q)["matrix"]
    return SimpleNamespace(
        model=model, tree=tree, q=q, v=v, a=a, tau=tau, mass_matrix=mass_matrix, ops=operators(model, q)
    )


def evaluate(program, model, **given):
    """All results of a program at numbers, by CasADi's own machine."""
    key = program.name, model.name, tuple(given)
    if key not in _FUNCTIONS:
        tree = sweeps.Tree.of(model)
        symbols = {name: ca.SX.sym(name, *np.shape(value)) for name, value in given.items()}
        found = sweeps.expressions(program, tree, symbols, tree.parameter_symbols)
        outputs = [ca.densify(value) for value in found.values()]
        function = ca.Function("program", [*symbols.values(), tree.parameter_symbols], outputs)
        _FUNCTIONS[key] = tuple(found), function
    names, function = _FUNCTIONS[key]
    numbers = [ca.DM(np.asarray(value, dtype=float)) for value in given.values()]
    values = function.call([*numbers, ca.DM([value for _, value in model.parameters])])
    return {name: value.full() for name, value in zip(names, values, strict=True)}


_FUNCTIONS = {}


def norm(operator):
    matrix = operator if isinstance(operator, np.ndarray) else operator.dense()
    return np.linalg.norm(matrix, 2 if matrix.ndim == 2 else None) if matrix.size else 0.0


def assert_equal(left, right, *factors):
    """Equal up to the rounding of a product of these factors."""
    left, right = (x if isinstance(x, np.ndarray) else x.dense() for x in (left, right))
    bound = ROUNDING * float(np.prod([norm(factor) for factor in factors]))
    error = float(np.max(np.abs(left - right), initial=0.0))
    assert error <= bound, f"differs by {error:.3g}, allowed {bound:.3g}"


def _away_from_lock(model, rng):
    """Gimbal joints at least 0.2 rad from where D is singular."""
    while True:
        q = model.random_configuration(rng)
        middles = [
            (joint.type.sequence, q[model.q_slice(joint.name)][1])
            for joint in model.joints
            if joint.type.kind == "gimbal"
        ]
        sines = [abs(np.sin(x) if s[0] == s[2] else np.cos(x)) for s, x in middles]
        if min(sines, default=1.0) > 0.2:
            return q

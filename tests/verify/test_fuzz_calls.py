"""Odd arguments to every method of models with and without loops: an error of the package, or finite results."""

import numpy as np
import pytest

import alembert as al
from alembert.verify import fuzz_calls
from alembert.verify.fuzz_calls import MODELS, arguments, attack, methods, spatial

CALLS = 14
"""of each method and model; `make fuzz` has the time for others"""
LONG = ("hessian",)
"""compiles for seconds: `make fuzz` has it"""


@pytest.mark.parametrize("model", MODELS)
def test_odd_arguments(model):
    found = [
        attack(model, method, seed) for method in methods() if method not in LONG for seed in range(CALLS)
    ]
    wrong = [message for message, _ in found if message is not None]
    assert not wrong, wrong[:3]
    # odd is not hopeless: some calls get through, others are refused
    assert 0.2 < np.mean([fine for _, fine in found]) < 0.8


@pytest.mark.parametrize(
    ("model", "method", "seed"),
    [
        ("planar", "project", 50011),
        ("planar", "project", 50276),
        ("spatial", "project", 51417),
        ("spatial", "difference", 50107),
        ("tree", "frame_acceleration", 50156),
        ("tree", "frame_velocity", 50175),
        ("spatial", "frame_jacobian_rate", 53319),
        ("planar", "momentum", 50233),
        ("tree", "momentum_matrix", 50376),
        ("spatial", "frame_jacobian", 50376),
        ("spatial", "kinetic_energy", 50426),
        ("tree", "solve_mass_matrix", 50023),
        ("tree", "multiply_mass_matrix", 51308),
        ("spatial", "bias_forces", 60162),
        ("planar", "jvp", 61531),
        ("spatial", "constrained_dynamics_derivatives", 50133),
        ("spatial", "control_forces", 50080),
        ("planar", "hybrid_dynamics", 50145),
        ("planar", "power", 51739),
    ],
)
def test_what_was_found(model, method, seed):
    """Infinite states told by NumPy, or not at all; batches that do not go together told by Python."""
    assert attack(model, method, seed)[0] is None


def test_numbers_that_overflow_have_a_sentence():
    model, q, v = fuzz_calls.tree()
    far, fast = q.copy(), 1e200 * np.ones_like(v)
    far[0] = 1e200
    with pytest.raises(al.NumericalError, match="frame_velocity: the result is not finite; numbers overflow"):
        model.frame_velocity(far, fast, "base", reference="world")
    with pytest.raises(al.NumericalError, match="momentum: the result is not finite"):
        model.momentum(far, fast)
    bad = np.where(np.arange(len(v)) == 2, np.inf, v)
    with pytest.raises(
        al.NumericalError, match="solve_mass_matrix: the result is not finite; x is not finite at entry 2"
    ):
        model.solve_mass_matrix(q, bad, coordinates="independent")
    with pytest.raises(
        al.ArgumentError, match="multiply_mass_matrix: the batch dimensions do not go together"
    ):
        model.multiply_mass_matrix(np.tile(q, (3, 1)), np.tile(v, (2, 1)), coordinates="independent")


def test_arguments_are_drawn_for_all_methods():
    for method in methods():
        given, options = arguments(spatial(), method, 0)
        assert given or options


def test_what_is_not_known_is_a_mistake():
    with pytest.raises(NotImplementedError, match="momentum: no arguments are drawn for 'colour'"):
        fuzz_calls.OddArguments(spatial(), 0).draw("colour", "momentum")


def test_bare_errors_and_silence_are_findings(monkeypatch):
    def bare(self, q, v, *, about="", parameters=None):
        raise KeyError("bare")

    monkeypatch.setattr(fuzz_calls.Methods, "momentum", bare)
    assert "KeyError: 'bare'" in attack("planar", "momentum", 1)[0]
    monkeypatch.setattr(fuzz_calls.Methods, "momentum", lambda self, q, v: np.array([np.nan]))
    assert attack("planar", "momentum", 1)[0].startswith("not finite, in silence")


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "x", None, [1e-2]])
def test_closure_tolerance_is_a_positive_number(value):
    model, q, v = spatial()
    with pytest.raises(al.ArgumentError, match=r"closure_tolerance is .*expected"):
        model.constrained_dynamics(q, v, 0 * v, closure_tolerance=value)
    with pytest.raises(al.ArgumentError, match="impulse: closure_tolerance"):
        model.impulse(q, v, closure_tolerance=value)

"""The algorithms of a model by name: the program that computes each, and its arguments in order."""

from __future__ import annotations

from alembert import sweeps
from alembert.sensitivity.inverse_dynamics import INVERSE_DYNAMICS_DERIVATIVES
from alembert.sweeps import Program

PROGRAMS: dict[str, tuple[Program, tuple[str, ...]]] = {
    "forward_dynamics": (sweeps.FORWARD_DYNAMICS, ("q", "v", "tau")),
    "inverse_dynamics": (sweeps.INVERSE_DYNAMICS, ("q", "v", "a")),
    "hybrid_dynamics": (sweeps.HYBRID_DYNAMICS, ("q", "v", "tau", "a_given", "free")),
    "bias_forces": (sweeps.INVERSE_DYNAMICS, ("q", "v")),
    "gravity_forces": (sweeps.GRAVITY_FORCES, ("q",)),
    "coriolis_forces": (sweeps.CORIOLIS_FORCES, ("q", "v")),
    "mass_matrix": (sweeps.MASS_MATRIX, ("q",)),
    "multiply_mass_matrix": (sweeps.CORIOLIS_FORCES, ("q", "a")),
    "solve_mass_matrix": (sweeps.SOLVE_MASS_MATRIX, ("q", "tau")),
    "poses": (sweeps.POSES, ("q",)),
    "velocities": (sweeps.VELOCITIES, ("q", "v")),
    "accelerations": (sweeps.ACCELERATIONS, ("q", "v", "a")),
    "subspaces": (sweeps.SUBSPACES, ("q",)),
    "kinetic_energy": (sweeps.KINETIC_ENERGY, ("q", "v")),
    "potential_energy": (sweeps.POTENTIAL_ENERGY, ("q",)),
    "composite": (sweeps.COMPOSITE, ("q",)),
    "world_momentum": (sweeps.MOMENTUM, ("q", "v")),
    "world_momentum_rows": (sweeps.MOMENTUM_MATRIX, ("q",)),
    "inverse_dynamics_derivatives": (INVERSE_DYNAMICS_DERIVATIVES, ("q", "v", "a")),
}
ALGORITHMS = (*PROGRAMS, "momentum", "momentum_matrix", "forward_dynamics_derivatives")
"""what has a kernel: the programs, and what is composed of several"""
NUMBERS = {"kinetic_energy", "potential_energy", "energy", "power"}
"""whose result is one number"""
LABELS = {"solve_mass_matrix": {"tau": "x"}, "multiply_mass_matrix": {"a": "x"}}
"""what callers know the inputs of a program as, where it is something else"""
INVERTING = {"forward_dynamics", "forward_dynamics_derivatives", "hybrid_dynamics", "solve_mass_matrix"}
NEED_TREE = {
    "hybrid_dynamics_derivatives",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
    "forward_dynamics",
    "inverse_dynamics",
    "hybrid_dynamics",
}
"""what loops and couplings change; the terms of the equation of motion are those of the tree in any case"""

"""The generalised-alpha scheme on Lie groups (Bruels, Cardona and Arnold 2012), implicit, of order 2.

It damps what is too fast for the step, down to the spectral radius rho per step at infinite frequency, and leaves
slow motion alone. With accelerations a and their weighted means b,

    (1 - m) b_1 + m b_0 = (1 - f) a_1 + f a_0                                       (1)
    q_1 = integrate(q_0, h v_0 + h^2 ((1/2 - beta) b_0 + beta b_1))                 (2)
    v_1 = v_0 + h ((1 - gamma) b_0 + gamma b_1)                                     (3)
    inverse_dynamics(q_1, v_1, a_1) = tau_1                                         (4)

(4) is solved for a_1. The machine's state is (number of the step, 0, q, v, a, b).
"""

from __future__ import annotations

import casadi as ca

from alembert.engine.codegen import KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import UnsupportedError
from alembert.simulate.layout import Layout
from alembert.simulate.newton import newton_loop
from alembert.simulate.stepping import Plant, arguments, kept_kernel
from alembert.simulate.tangent import SymbolicManifold
from alembert.sweeps import INVERSE_DYNAMICS

RHO = 0.8  # spectral radius at infinite frequency
M, F = (2 * RHO - 1) / (RHO + 1), RHO / (RHO + 1)
GAMMA = 0.5 + F - M
BETA = (GAMMA + 0.5) ** 2 / 4


def layout(plant: Plant) -> Layout:
    return Layout(q=plant.model.nq, **dict.fromkeys("vab", plant.model.nv))


def stepping_kernel(plant: Plant) -> Kernel:
    """As `alembert.simulate.stepping.stepping_kernel`, on the state described above."""
    if any(plant.prescribed):
        raise UnsupportedError(
            "simulate: prescribed motion and integrator 'generalised_alpha' do not go together; choose 'rk4'"
        )
    size = layout(plant).size
    given = arguments(plant, size)
    return kept_kernel(plant, "generalised_alpha", given, size, lambda: _source(plant, layout(plant), given))


def _source(plant: Plant, layout: Layout, given: list[Argument]) -> KernelSource:
    symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in given[:-2]}
    state, h = symbols["state"], symbols["step"]
    q0, v0, a0, b0 = (state[layout[name]] for name in ("q", "v", "a", "b"))
    a1 = ca.SX.sym("a1", plant.model.nv)
    b1 = ((1 - F) * a1 + F * a0 - M * b0) / (1 - M)  # (1)
    q1 = SymbolicManifold(plant.model).integrate(q0, h * v0 + h**2 * ((0.5 - BETA) * b0 + BETA * b1))  # (2)
    v1 = v0 + h * ((1 - GAMMA) * b0 + GAMMA * b1)  # (3)
    more = [name for name in ("wrench", "parameters") if name in symbols]
    names = ("q", "v", "a", "wrench") if "wrench" in more else ("q", "v", "a")
    inverse = plant.model.symbolic.function(INVERSE_DYNAMICS, names)
    required = inverse(q1, v1, a1, *(symbols[name] for name in more))
    t1 = symbols["start"] + (state[0] + 1) * h
    tau = plant.all_efforts(symbols["effort"], t1, q1, v1, symbols.get("parameters", ca.SX(0, 1)))
    return newton_loop(
        {a.name: a.size for a in given},
        symbols,
        a1,
        predicted=a0,
        residual=required - tau,  # (4)
        following=layout.symbolic(state[0] + 1, state[1], q=q1, v=v1, a=a1, b=b1),
    )

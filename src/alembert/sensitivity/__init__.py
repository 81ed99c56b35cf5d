"""Exact sensitivities: derivatives of the dynamics, linearisation, parameters."""

from alembert.sensitivity.inverse_dynamics import INVERSE_DYNAMICS_DERIVATIVES as INVERSE_DYNAMICS_DERIVATIVES

"""Spline shooting: the driven joints follow B-splines, the others are integrated (Sohl and Bobrow 2001)."""

from alembert.optimal.splines.solution import SplineSolution as SplineSolution
from alembert.optimal.splines.solution import solve_splines as solve_splines

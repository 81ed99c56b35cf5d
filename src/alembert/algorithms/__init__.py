"""What makes a model compute: its algorithms on arrays, compiled, and on CasADi expressions."""

from alembert.algorithms.api import Dynamics as Dynamics

"""What makes a model compute: its algorithms on arrays, compiled, and on CasADi expressions."""

from alembert.dynamics.api import Dynamics as Dynamics

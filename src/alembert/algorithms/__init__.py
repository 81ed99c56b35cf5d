"""What makes a model compute: its algorithms on arrays, compiled, and on CasADi expressions."""

from alembert.algorithms.compute import Compute as Compute

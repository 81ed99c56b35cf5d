"""Optimal control: problems, transcriptions, and solvers that sweep in time.

problem = al.optimal.Problem(model, 2.0, start={"q": q0, "v": 0}, end={"q": q1, "v": 0}, cost=al.optimal.effort())
solution = problem.solve(steps=100)
"""

from alembert.arguments import tell_wrong_types as _tell_wrong_types
from alembert.optimal import examples as examples
from alembert.optimal.analysis import Accuracy as Accuracy
from alembert.optimal.analysis import Arc as Arc
from alembert.optimal.compiled_solver import CompiledResult as CompiledResult
from alembert.optimal.compiled_solver import CompiledSolver as CompiledSolver
from alembert.optimal.conditions import Cost as Cost
from alembert.optimal.conditions import duration as duration
from alembert.optimal.conditions import effort as effort
from alembert.optimal.conditions import final_momentum as final_momentum
from alembert.optimal.conditions import running as running
from alembert.optimal.conditions import terminal as terminal
from alembert.optimal.conditions import tracking as tracking
from alembert.optimal.dynamic_programming import FeedbackOnGrid as FeedbackOnGrid
from alembert.optimal.dynamic_programming import JumpNoise as JumpNoise
from alembert.optimal.dynamic_programming import dynamic_programming as dynamic_programming
from alembert.optimal.lagrange import LagrangeForm as LagrangeForm
from alembert.optimal.lagrange import LagrangeSolution as LagrangeSolution
from alembert.optimal.lagrange import lagrange_form as lagrange_form
from alembert.optimal.links import impact as impact
from alembert.optimal.links import same_bodies as same_bodies
from alembert.optimal.mesh import MeshErrors as MeshErrors
from alembert.optimal.moving_horizon import MovingHorizonEstimator as MovingHorizonEstimator
from alembert.optimal.moving_horizon import WindowEstimate as WindowEstimate
from alembert.optimal.phases import Cases as Cases
from alembert.optimal.phases import Phases as Phases
from alembert.optimal.phases import through as through
from alembert.optimal.phases_solution import PhasesSolution as PhasesSolution
from alembert.optimal.plant import Moment as Moment
from alembert.optimal.plant import System as System
from alembert.optimal.predictive import PredictiveController as PredictiveController
from alembert.optimal.predictive import PredictiveSample as PredictiveSample
from alembert.optimal.prepared import PreparedProblem as PreparedProblem
from alembert.optimal.problem import Problem as Problem
from alembert.optimal.refinement import MeshRound as MeshRound
from alembert.optimal.schemes import SCHEMES as SCHEMES
from alembert.optimal.solution import Solution as Solution
from alembert.optimal.solution import Solved as Solved
from alembert.optimal.solve import Continuation as Continuation
from alembert.optimal.solve import continuation as continuation
from alembert.optimal.solve import solve as solve
from alembert.optimal.solver_source import SolverSource as SolverSource
from alembert.optimal.splines import SplineSolution as SplineSolution
from alembert.optimal.splines import solve_splines as solve_splines
from alembert.optimal.systems import model_system as model_system
from alembert.optimal.systems import table as table

_tell_wrong_types(__name__)

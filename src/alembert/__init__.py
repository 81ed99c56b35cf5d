"""Alembert: computational control of articulated systems by recursive sweeps.

import alembert as al

model = al.load("arm.urdf")
a = model.forward_dynamics(q, v, tau)
"""

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from alembert import meaning as _meaning

# isort: split
from alembert import library as library
from alembert import spatial as spatial
from alembert.errors import AlembertError as AlembertError
from alembert.errors import AlembertWarning as AlembertWarning
from alembert.errors import ArgumentError as ArgumentError
from alembert.errors import FileError as FileError
from alembert.errors import ModelError as ModelError
from alembert.errors import NumericalError as NumericalError
from alembert.errors import UnsupportedError as UnsupportedError
from alembert.expression import Expression as Expression
from alembert.joints import *  # noqa: F403
from alembert.model import *  # noqa: F403
from alembert.model.io import load as load
from alembert.model.io import save as save
from alembert.spatial import Pose as Pose

if _TYPE_CHECKING:
    from alembert import check as check
    from alembert import control as control
    from alembert import convert as convert
    from alembert import deploy as deploy
    from alembert import flexible as flexible
    from alembert import linear as linear
    from alembert import optimal as optimal
    from alembert import spacecraft as spacecraft
    from alembert import verify as verify
    from alembert.constraints.connected import Connected as Connected
    from alembert.constraints.connected import Link as Link
    from alembert.deploy import realtime as realtime
    from alembert.engine import prepare as prepare
    from alembert.identify import identify as identify
    from alembert.linear import linearize as linearize
    from alembert.linear import trim as trim
    from alembert.operators import admittance as admittance
    from alembert.operators import diagonalising_velocities as diagonalising_velocities
    from alembert.operators import innovations as innovations
    from alembert.operators import operators as operators
    from alembert.operators import velocities_from_diagonal as velocities_from_diagonal
    from alembert.reach import reach as reach
    from alembert.simulate import compare as compare
    from alembert.simulate import ensemble as ensemble
    from alembert.simulate import simulate as simulate
    from alembert.study.certification import certify as certify
    from alembert.sweeps.linear_quadratic import LQProblem as LQProblem
    from alembert.sweeps.linear_quadratic import solve_lq as solve_lq
    from alembert.sweeps.twin import forward_dynamics_as_lq as forward_dynamics_as_lq
    from alembert.sweeps.twin import gibbs_function as gibbs_function
    from alembert.view import view as view

__version__ = "0.2.0"

_ON_FIRST_USE = {
    "Connected": "alembert.constraints.connected",
    "LQProblem": "alembert.sweeps.linear_quadratic",
    "Link": "alembert.constraints.connected",
    "admittance": "alembert.operators",
    "certify": "alembert.study.certification",
    "check": "alembert.check",
    "compare": "alembert.simulate",
    "control": "alembert.control",
    "convert": "alembert.convert",
    "deploy": "alembert.deploy",
    "diagonalising_velocities": "alembert.operators",
    "ensemble": "alembert.simulate",
    "flexible": "alembert.flexible",
    "forward_dynamics_as_lq": "alembert.sweeps.twin",
    "gibbs_function": "alembert.sweeps.twin",
    "identify": "alembert.identify",
    "innovations": "alembert.operators",
    "linear": "alembert.linear",
    "linearize": "alembert.linear",
    "operators": "alembert.operators",
    "optimal": "alembert.optimal",
    "prepare": "alembert.engine",
    "reach": "alembert.reach",
    "realtime": "alembert.deploy",
    "simulate": "alembert.simulate",
    "solve_lq": "alembert.sweeps.linear_quadratic",
    "spacecraft": "alembert.spacecraft",
    "trim": "alembert.linear",
    "velocities_from_diagonal": "alembert.operators",
    "view": "alembert.view",
    "verify": "alembert.verify",
}
"""what computes, by where it is: the compiler takes longer to import than models do"""


_ELSEWHERE = {
    "lqr": "al.linear.lqr(linear, Q, R), or al.control.lqr of a system",
    "place": "al.linear.place_poles(linear, poles), or al.control.place of a system",
    "place_poles": "al.linear.place_poles(linear, poles)",
    **{
        name: f"al.control.{name}" for name in ("StateSpace", "tf", "zpk", "lqe", "lqg", "hinfsyn", "margins")
    },
    "ss": "al.control.StateSpace",
    "Problem": "al.optimal.Problem",
    "Event": "al.simulate.Event",
    "inverse_kinematics": "al.reach(model, tasks)",
    "ik": "al.reach(model, tasks)",
    "Orbit": "al.spacecraft.Orbit",
    "linearise": "al.linearize",
}
"""what users look for at the top"""

_PACKAGES = {"errors", "joints", "library", "model", "spatial"}


def __getattr__(name: str) -> _Any:
    if name not in _ON_FIRST_USE:
        hint = f"; it is {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        message = f"module 'alembert' has no attribute {name!r}{hint}"
        raise AttributeError(message, name=name, obj=_sys.modules[__name__])
    module = _import_module(_ON_FIRST_USE[name])
    value = module if module.__name__ == f"alembert.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What users need: packages that only serve others do not get in the way of completion."""
    own = {name for name, x in globals().items() if type(x) is not type(_meaning) or name in _PACKAGES}
    return sorted({*own, *_ON_FIRST_USE})

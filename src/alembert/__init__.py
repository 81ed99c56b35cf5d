"""Alembert: computational control of articulated systems by recursive sweeps.

    import alembert as al

    model = al.load("arm.urdf")
    a = model.forward_dynamics(q, v, tau)
"""

from alembert import check as check
from alembert import library as library
from alembert import linear as linear
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
from alembert.linear import linearize as linearize
from alembert.linear import trim as trim
from alembert.model import *  # noqa: F403
from alembert.model.io import load as load
from alembert.model.io import save as save
from alembert.spatial import Pose as Pose

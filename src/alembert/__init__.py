"""Alembert: computational control of articulated systems by recursive sweeps."""

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
from alembert.spatial import Pose as Pose

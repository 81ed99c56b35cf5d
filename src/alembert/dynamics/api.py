"""The numerical algorithms of a model, as its methods."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from alembert.constraints import Constraints
from alembert.dynamics import kernels
from alembert.dynamics.arguments import Arguments
from alembert.dynamics.configurations import Configurations
from alembert.dynamics.derivatives import Derivatives
from alembert.dynamics.energy import Energy
from alembert.dynamics.equations_of_motion import EquationsOfMotion
from alembert.dynamics.evaluation import Evaluation
from alembert.dynamics.failures import Failures
from alembert.dynamics.kinematics import Kinematics
from alembert.dynamics.programs import ALGORITHMS, PROGRAMS
from alembert.dynamics.symbolic import Symbolic
from alembert.engine.c_export import export_c
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, FileError
from alembert.model.printing import unknown

if TYPE_CHECKING:
    from alembert.model import Model


class Dynamics(
    EquationsOfMotion,
    Kinematics,
    Energy,
    Configurations,
    Derivatives,
    Constraints,
    Evaluation,
    Arguments,
    Failures,
):
    """Mixed into `Model`. Arrays have leading batch dimensions everywhere: (nv,) or (..., nv).

    Speeds, efforts and derivatives live in tangent space (nv wide). `wrenches` maps frame names to (..., 6) moments
    and forces that act on the body at the frame's origin, in the frame's axes. `parameters` maps names to numbers or
    arrays over the batch; parameters not named keep their defaults.
    """

    @cached_property
    def symbolic(self: Model) -> Symbolic:
        """The algorithms on CasADi expressions."""
        return Symbolic(self, self._tree)

    def compile(
        self: Model, name: str, *, batch: bool = False, lowering: kernels.Lowering = "auto"
    ) -> Kernel:
        """The kernel of an algorithm, compiled: call it, or use its `fast()` handle in tight loops.

        `lowering` is "specialised" (code for each body: fastest), "rolled" (loops over the bodies: compiles in
        the same time for any number of them), or "auto", by the size of the tree.
        """
        if name not in ALGORITHMS:
            raise ArgumentError(unknown("compile: no algorithm", name, ALGORITHMS))
        self.check_tree(name)
        return self._kernel(name, lowering=lowering).prepare(None if batch else 1)

    def export_c(self: Model, name: str, directory: str | Path) -> list[Path]:
        """Write an algorithm as C99 into a directory: NAME.c, NAME.h and a test program; returns the files."""
        if name not in PROGRAMS:
            raise ArgumentError(unknown("export_c: no algorithm", name, PROGRAMS))
        self.check_tree(name)
        program, names = PROGRAMS[name]
        if not isinstance(directory, str | PathLike):
            raise ArgumentError(f"export_c: directory is {directory!r}, expected a path")
        try:
            return export_c(self.symbolic.function(program, names), name, directory)
        except OSError as error:
            raise FileError(f"{directory}: cannot be written: {error.strerror or error}") from None

"""The numerical algorithms of a model, as its methods."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from alembert.constraints import Constraints
from alembert.deferred import deferred
from alembert.dynamics.arguments import Arguments
from alembert.dynamics.configurations import Configurations
from alembert.dynamics.derivatives import Derivatives
from alembert.dynamics.energy import Energy
from alembert.dynamics.equations_of_motion import EquationsOfMotion
from alembert.dynamics.evaluation import Evaluation
from alembert.dynamics.failures import Failures
from alembert.dynamics.frames import Reference, check_about, check_reference
from alembert.dynamics.kinematics import Kinematics
from alembert.dynamics.programs import ALGORITHMS
from alembert.errors import ArgumentError, FileError
from alembert.model import WORLD
from alembert.model.printing import unknown

if TYPE_CHECKING:
    from alembert.dynamics import exporting, graphs, kernels, symbolic
    from alembert.dynamics.symbolic import Symbolic
    from alembert.engine.kernel import Kernel
    from alembert.model import Model
else:
    exporting = deferred("alembert.dynamics.exporting")
    graphs = deferred("alembert.dynamics.graphs")
    kernels = deferred("alembert.dynamics.kernels")
    symbolic = deferred("alembert.dynamics.symbolic")


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
        return symbolic.Symbolic(self, self._tree)

    def compile(
        self: Model,
        name: str,
        *,
        wrenches: Sequence[str] = (),
        batch: bool = False,
        lowering: kernels.Lowering = "auto",
    ) -> Kernel:
        """The kernel of an algorithm, compiled: call it, or use its `fast()` handle in tight loops.

        For each frame of `wrenches` it takes a wrench (..., 6) after the other arguments; the parameters, where the
        model has any, come last. `lowering` is "specialised" (code for each body: fastest), "rolled" (loops over the
        bodies: compiles in the same time for any number of them), or "auto", by the size of the tree.
        """
        if name not in ALGORITHMS:
            raise ArgumentError(unknown("compile: no algorithm", name, ALGORITHMS))
        self.check_tree(name)
        frames = self._wrench_frames("compile", name, wrenches)
        kernel = self._kernel(name, wrenches=bool(frames), lowering=lowering)
        if frames:
            kernel = kernels.with_wrenches(self, kernel, frames)
        return kernel.prepare(None if batch else 1)

    def export_c(
        self: Model,
        name: str,
        directory: str | Path,
        *,
        wrenches: Sequence[str] = (),
        frame: str | None = None,
        reference: Reference = "local",
        about: str = "center_of_mass",
    ) -> list[Path]:
        """Write an algorithm as C99 into a directory: NAME.c, NAME.h and a test program; returns the files.

        Arguments and results are those of `model.symbolic`. For each frame of `wrenches` the function takes a wrench
        (moment, then force) as `wrench_FRAME`. Algorithms on frames need `frame`; `reference` and `about` are as in
        the methods.
        """
        if name not in exporting.EXPORTED:
            raise ArgumentError(unknown("export_c: no algorithm", name, exporting.EXPORTED))
        if not isinstance(directory, str | PathLike):
            raise ArgumentError(f"export_c: directory is {directory!r}, expected a path")
        check_reference("export_c", reference)
        check_about("export_c", about)
        if (frame is not None) != name.startswith("frame_"):
            wanted = "needs a frame" if frame is None else "takes no frame"
            raise ArgumentError(f"export_c: {name} {wanted}")
        options = graphs.Options(
            frame=frame or WORLD,
            reference=reference,
            about=about,
            wrenches=self._wrench_frames("export_c", name, wrenches),
        )
        try:
            return exporting.export(self, name, options, directory)
        except OSError as error:
            raise FileError(f"{directory}: cannot be written: {error.strerror or error}") from None

    def _wrench_frames(self: Model, function: str, name: str, wrenches: Sequence[str]) -> tuple[str, ...]:
        if isinstance(wrenches, str) or not all(isinstance(frame, str) for frame in wrenches):
            raise ArgumentError(f"{function}: wrenches is {wrenches!r}, expected a list of frames")
        frames = tuple(wrenches)
        if frames and name not in graphs.TAKES_WRENCHES:
            raise ArgumentError(f"{function}: {name} takes no wrenches")
        for k, frame in enumerate(frames):
            self._check_moves(function, frame)
            if frame in frames[:k]:
                raise ArgumentError(f"{function}: wrenches: {frame!r} is named twice")
        return frames

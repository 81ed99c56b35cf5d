"""`Compute`: what a model computes, as kernels, on symbols and as C source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import compositions, kernels, symbolic
from alembert.algorithms.algorithm import Algorithm, Options
from alembert.algorithms.derivatives import Derivatives
from alembert.algorithms.frames import Reference, check_about, check_reference
from alembert.algorithms.table import find
from alembert.engine.c_export import export_c
from alembert.errors import ArgumentError, writing
from alembert.model import WORLD

if TYPE_CHECKING:
    from alembert.algorithms.kernels import Lowering
    from alembert.algorithms.symbolic import Symbolic
    from alembert.engine.kernel import Kernel
    from alembert.model import Model


def export(
    model: Model,
    graph_name: str,
    options: Options,
    directory: str | Path,
    *,
    name: str,
    at: Any = None,
    precision: str = "double",
) -> list[Path]:
    """`name` is that of the function; `at` a configuration to test with, where not any will do."""
    graph = model.compute.symbolic.graph(graph_name, options)
    rng = np.random.default_rng(0)
    names: list[str] = []
    described: dict[str, str] = {}
    sample: list[np.ndarray] = []
    frames = iter(options.wrenches)
    speeds: Any = None
    for argument in graph.inputs:
        label, known = argument.name, ", ".join(model.speed_names)
        value = rng.uniform(-1.0, 1.0, argument.shape)
        if label in ("q", "q0", "q1"):
            known = ", ".join(model.coordinate_names)
            value = model.random_configuration(rng) if at is None else np.asarray(at, dtype=float)
        elif label == "parameters":
            known = ", ".join(model.parameter_values)
            value = np.array(list(model.parameter_values.values()))
        elif label == "free":
            known = "1 for speeds that tau drives, 0 for those that follow a"
            value = (rng.uniform(size=argument.shape) < 0.5).astype(float)
        elif label.startswith("wrench on "):
            frame = next(frames)
            label, known = f"wrench_{_identifier(frame)}", f"moment, then force on {frame}, in its axes"
        elif label == "v" and at is not None:
            value = speeds = model.project(at, value).v  # that open no loop
        elif label == "a" and at is not None:  # after v
            by = model.independent_coordinates(at, speeds)
            value = by.E @ value[by.indices] + by.rate
        names.append(label)
        described[label] = known
        sample.append(value)
    return export_c(
        graph.function,
        name,
        directory,
        argument_names=names,
        sample=sample,
        descriptions=described,
        precision=precision,
    )


def _identifier(frame: str) -> str:
    return re.sub(r"\W", "_", frame, flags=re.ASCII)


class Compute(Derivatives):
    """What computes for one model: kernels, the reading of arguments, and what is said where a result is not finite.

    The public methods are those of `alembert.model.methods`, where their arguments and results are described.
    """

    @cached_property
    def symbolic(self) -> Symbolic:
        """The algorithms on CasADi expressions."""
        return symbolic.Symbolic(self.model, self.tree)

    def compile(
        self,
        name: str,
        wrenches: Sequence[str],
        batch: bool,
        lowering: Lowering,
        at: Any,
        actuated: Sequence[str] | None,
        weights: Mapping[str, float] | None,
    ) -> Kernel:
        kernels.check_lowering(name, lowering)
        kernel = self.compiled_kernel(name, wrenches, lowering, at, actuated, weights)
        if not isinstance(batch, bool):
            raise ArgumentError(f"compile: batch is {batch!r}, expected True or False")
        again = {"wrenches": tuple(wrenches), "batch": batch, "lowering": lowering}
        kernel.origin = (
            _compiled,
            (self.model, name, again | {"at": at, "actuated": actuated, "weights": weights}),
        )
        return kernel.prepare(None if batch else 1)

    def compiled_kernel(
        self,
        name: str,
        wrenches: Sequence[str],
        lowering: Lowering,
        at: Any,
        actuated: Sequence[str] | None,
        weights: Mapping[str, float] | None,
    ) -> Kernel:
        """That of an algorithm, with wrenches on some frames."""
        self._refuse_options("compile", at, actuated, weights)
        algorithm = _of_tree("compile", name, "has_kernel")
        frames = self.wrench_frames("compile", algorithm, wrenches)
        if frames and algorithm.program is None and algorithm.kernel is None:
            return compositions.kernel(self.model, algorithm, Options(wrenches=frames), lowering)
        kernel = self.kernel(name, wrenches=bool(frames), lowering=lowering)
        return kernels.with_wrenches(self.model, kernel, frames) if frames else kernel

    def export_c(
        self,
        name: str,
        directory: str | Path,
        wrenches: Sequence[str],
        frame: str | None,
        reference: Reference,
        about: str,
        at: Any,
        actuated: Sequence[str] | None,
        weights: Mapping[str, float] | None,
        precision: str,
    ) -> list[Path]:
        algorithm = _of_tree("export_c", name, "has_source")
        check_directory(directory)
        self._refuse_options("export_c", at, actuated, weights)
        check_reference("export_c", reference)
        check_about("export_c", about)
        if (frame is not None) != algorithm.on_frame:
            wanted = "needs a frame" if frame is None else "takes no frame"
            raise ArgumentError(f"export_c: {name} {wanted}")
        options = Options(
            frame=frame or WORLD,
            reference=reference,
            about=about,
            wrenches=self.wrench_frames("export_c", algorithm, wrenches),
        )
        return self.exported(name, options, directory, name, None, precision)

    def exported(
        self, graph: str, options: Options, directory: str | Path, name: str, at: Any, precision: str
    ) -> list[Path]:
        with writing(directory):
            return export(self.model, graph, options, directory, name=name, at=at, precision=precision)

    @staticmethod
    def _refuse_options(function: str, at: Any, actuated: Any, weights: Any) -> None:
        for what, value in (("at", at), ("actuated", actuated), ("weights", weights)):
            if value is not None:
                raise ArgumentError(
                    f"{function}: {what} is for the dynamics of models with loops, couplings or equations"
                )

    def wrench_frames(self, function: str, algorithm: Algorithm, wrenches: Sequence[str]) -> tuple[str, ...]:
        """The frames on which wrenches act, an input each."""
        if isinstance(wrenches, str) or not all(isinstance(frame, str) for frame in wrenches):
            raise ArgumentError(f"{function}: wrenches is {wrenches!r}, expected a list of frames")
        frames = tuple(wrenches)
        if frames and not algorithm.takes_wrenches:
            raise ArgumentError(f"{function}: {algorithm.name} takes no wrenches")
        for k, frame in enumerate(frames):
            self.check_moves(function, frame)
            if frame in frames[:k]:
                raise ArgumentError(f"{function}: wrenches: {frame!r} is named twice")
        return frames


def _compiled(model: Model, name: str, options: dict[str, Any]) -> Kernel:
    """Kernels pickle as what they were made from: machine code stays with the machine."""
    return model.compile(name, **options)


def check_directory(directory: Any) -> None:
    if not isinstance(directory, str | PathLike):
        raise ArgumentError(f"export_c: directory is {directory!r}, expected a path")


def _of_tree(function: str, name: str, what: str) -> Algorithm:
    """As `find`; says of the algorithms that are for constraints that there are none."""
    if isinstance(name, str) and name in ("constrained_dynamics", "constrained_inverse_dynamics"):
        raise ArgumentError(
            f"{function}: {name} is for models with loops, couplings or equations; this has none"
        )
    return find(function, name, what)

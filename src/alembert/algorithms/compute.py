"""`Compute`: what a model computes, as kernels, on symbols and as C source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import kernels, symbolic
from alembert.algorithms.algorithm import Options
from alembert.algorithms.constrained_graphs import CONSTRAINED
from alembert.algorithms.derivatives import Derivatives
from alembert.algorithms.frames import Reference, check_about, check_reference
from alembert.algorithms.table import TABLE, find
from alembert.engine.c_export import export_c
from alembert.errors import ArgumentError, FileError, UnsupportedError
from alembert.model import WORLD

if TYPE_CHECKING:
    from alembert.algorithms.kernels import Lowering
    from alembert.algorithms.symbolic import Symbolic
    from alembert.engine.kernel import Kernel
    from alembert.model import Model


def export(
    model: Model, graph_name: str, options: Options, directory: str | Path, *, name: str, at: Any = None
) -> list[Path]:
    """`name` is that of the function; `at` a configuration to test with, where not any will do."""
    graph = model.symbolic.graph(graph_name, options)
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

    def kernel(self, name: str, *, wrenches: bool = False, lowering: Lowering = "auto") -> Kernel:
        """Of the tree, which models with other constraints share."""
        if not self.model.is_constrained:
            return super().kernel(name, wrenches=wrenches, lowering=lowering)
        key: tuple[Any, ...] = (name, wrenches) if lowering == "auto" else (name, wrenches, lowering)
        if key not in self.kernels:
            tree = self.constraint_rows.primary.compute
            self.kernels[key] = tree.kernel(name, wrenches=wrenches, lowering=lowering)
        return self.kernels[key]

    def compile(
        self,
        name: str,
        *,
        wrenches: Sequence[str] = (),
        batch: bool = False,
        lowering: Lowering = "auto",
        at: Any = None,
        actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Kernel:
        kernels.check_lowering(name, lowering)
        if self._takes_constraints(name):
            options = self._constrained_graph_options(
                "compile", name, at, self._wrench_frames("compile", name, wrenches), actuated, weights
            )
            if lowering == "rolled":
                raise UnsupportedError(f"compile: {name} of a model with loops cannot be rolled")
            kernel = kernels.graph_kernel(self.model, _held(name), options, name)
        else:
            self._refuse_options("compile", at, actuated, weights)
            algorithm = find("compile", name, "has_kernel")
            frames = self._wrench_frames("compile", name, wrenches)
            if frames and algorithm.program is None and algorithm.kernel is None:
                kernel = kernels.graph_kernel(self.model, name, Options(wrenches=frames), name)
            else:
                kernel = self.kernel(name, wrenches=bool(frames), lowering=lowering)
                if frames:
                    kernel = kernels.with_wrenches(self.model, kernel, frames)
        if not isinstance(batch, bool):
            raise ArgumentError(f"compile: batch is {batch!r}, expected True or False")
        again = {"wrenches": tuple(wrenches), "batch": batch, "lowering": lowering}
        kernel.origin = (
            _compiled,
            (self.model, name, again | {"at": at, "actuated": actuated, "weights": weights}),
        )
        return kernel.prepare(None if batch else 1)

    def export_c(
        self,
        name: str,
        directory: str | Path,
        *,
        wrenches: Sequence[str] = (),
        frame: str | None = None,
        reference: Reference = "local",
        about: str = "center_of_mass",
        at: Any = None,
        actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> list[Path]:
        constrained = self._takes_constraints(name)
        if not constrained:
            find("export_c", name, "has_source")
        if not isinstance(directory, str | PathLike):
            raise ArgumentError(f"export_c: directory is {directory!r}, expected a path")
        if constrained:
            options = self._constrained_graph_options(
                "export_c", name, at, self._wrench_frames("export_c", name, wrenches), actuated, weights
            )
            return self._exported(_held(name), options, directory, name, at)
        self._refuse_options("export_c", at, actuated, weights)
        check_reference("export_c", reference)
        check_about("export_c", about)
        if (frame is not None) != TABLE[name].on_frame:
            wanted = "needs a frame" if frame is None else "takes no frame"
            raise ArgumentError(f"export_c: {name} {wanted}")
        options = Options(
            frame=frame or WORLD,
            reference=reference,
            about=about,
            wrenches=self._wrench_frames("export_c", name, wrenches),
        )
        return self._exported(name, options, directory, name, None)

    def _exported(
        self, graph: str, options: Options, directory: str | Path, name: str, at: Any
    ) -> list[Path]:
        try:
            return export(self.model, graph, options, directory, name=name, at=at)
        except OSError as error:
            raise FileError(f"{directory}: cannot be written: {error.strerror or error}") from None

    def _takes_constraints(self, name: str) -> bool:
        """Whether an algorithm holds the constraints of the model (or is only for models that have some)."""
        if not isinstance(name, str):
            return False
        if name in CONSTRAINED:
            return CONSTRAINED[name].is_method and CONSTRAINED[name].has_kernel
        return self.model.is_constrained and name in TABLE and TABLE[name].needs_tree

    @staticmethod
    def _refuse_options(function: str, at: Any, actuated: Any, weights: Any) -> None:
        for what, value in (("at", at), ("actuated", actuated), ("weights", weights)):
            if value is not None:
                raise ArgumentError(
                    f"{function}: {what} is for the dynamics of models with loops, couplings or equations"
                )

    def _constrained_graph_options(
        self,
        function: str,
        name: str,
        at: Any,
        wrenches: tuple[str, ...],
        actuated: Sequence[str] | None,
        weights: Mapping[str, float] | None,
    ) -> Options:
        """Those of the dynamics of a model with loops; refuses what there is none of."""
        if not self.model.is_constrained:
            raise ArgumentError(
                f"{function}: {name} is for models with loops, couplings or equations; this has none"
            )
        if _held(name) not in CONSTRAINED or not CONSTRAINED[_held(name)].has_kernel:
            self.check_tree(name)
        if self.constraint_rows.solution is None:
            raise UnsupportedError(
                f"{function}: {name}: the constraints of model {self.model.name!r} are too many for code without loops "
                f"({len(self.constraint_rows.parts)}); the methods of the model take them"
            )
        if at is None:
            raise ArgumentError(
                f"{function}: {name} of a model with loops, couplings or equations needs at=, a configuration that closes "
                "them (model.assemble finds one): the rows that count are chosen there"
            )
        if "inverse" in name:
            found = symbolic.inverse_options(self.model, function, at, actuated, weights)
        else:
            self._refuse_drives(function, name, actuated, weights)
            found = symbolic.constrained_options(self.model, function, at)
        return Options(wrenches=wrenches, guarded=True, **found)

    @staticmethod
    def _refuse_drives(function: str, name: str, actuated: Any, weights: Any) -> None:
        if actuated is not None or weights is not None:
            raise ArgumentError(f"{function}: {name} takes no actuated joints and no weights")

    def _wrench_frames(self, function: str, name: str, wrenches: Sequence[str]) -> tuple[str, ...]:
        if isinstance(wrenches, str) or not all(isinstance(frame, str) for frame in wrenches):
            raise ArgumentError(f"{function}: wrenches is {wrenches!r}, expected a list of frames")
        frames = tuple(wrenches)
        if frames and not (CONSTRAINED | TABLE)[name].takes_wrenches:
            raise ArgumentError(f"{function}: {name} takes no wrenches")
        for k, frame in enumerate(frames):
            self.check_moves(function, frame)
            if frame in frames[:k]:
                raise ArgumentError(f"{function}: wrenches: {frame!r} is named twice")
        return frames


def _compiled(model: Model, name: str, options: dict[str, Any]) -> Kernel:
    """Kernels pickle as what they were made from: machine code stays with the machine."""
    return model.compile(name, **options)


def _held(name: str) -> str:
    """The algorithm behind one of models with constraints."""
    return name if name in CONSTRAINED else TABLE[name].held

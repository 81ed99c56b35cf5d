"""What acts on the joints and frames of a model in a run, besides controllers: efforts, wrenches, tables, force elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from alembert.model import Model
from alembert.simulate.controllers import for_each
from alembert.simulate.elements import Elements
from alembert.simulate.inputs import Inputs, as_sequence
from alembert.simulate.tables import EffortsAndTables, TimeTables

Array = np.ndarray


class Loads:
    """`efforts` are constant, (..., nv). `parameters` gives the values of the model's parameters at present."""

    def __init__(self, model: Model, inputs: Inputs, parameters: Callable[[], Array]) -> None:
        self.model, self._parameters = model, parameters
        self.tables = TimeTables(model)
        self.efforts = self._efforts(inputs.efforts)
        self._sort_wrenches(inputs.wrenches or {})
        field = [] if inputs.field is None else [inputs.field]
        elements = [*as_sequence(inputs.forces), *field, *self.tables.wrenches]
        fed = self.tables.fed()
        self.elements = Elements(model, elements, fed) if elements or fed is not None else None

    @property
    def acted_on(self) -> Array:
        """(nv,): where constant efforts, or tables of them, act."""
        constant = np.any(self.efforts != 0, axis=tuple(range(self.efforts.ndim - 1)))
        return constant | self.tables.acted_on

    def _efforts(self, efforts: Any) -> Array:
        model = self.model
        if efforts is None:
            return np.zeros(model.nv)
        if isinstance(efforts, Mapping):
            efforts = self.tables.take_efforts(efforts)
            return model.compute.by_name("simulate", efforts, "efforts")[1]
        if isinstance(efforts, EffortsAndTables):
            self.tables.take_efforts(efforts.tables)
            efforts = efforts.numbers
        return model.compute.numbers("simulate", "efforts", efforts, model.nv)

    def _sort_wrenches(self, wrenches: Mapping[str, Any]) -> None:
        left = self.tables.take_wrenches(wrenches)
        self.wrench_laws = {frame: law for frame, law in left.items() if callable(law)}
        self.wrenches = {frame: value for frame, value in left.items() if not callable(value)}
        for frame in wrenches:
            self.model.frame(frame)

    @property
    def has_wrenches(self) -> bool:
        """Wrenches that come as numbers; those of compiled tables are among what acts."""
        return bool(self.wrenches or self.wrench_laws or self.tables.held_wrenches)

    def wrenches_at(self, t: float, q: Array, v: Array, within: float | None = None) -> dict[str, Any] | None:
        """Tables that hold are read at the time `within` the step or span, whatever stage t is."""
        if not self.has_wrenches:
            return None
        held = {
            frame: table(t if within is None else within)
            for frame, table in self.tables.held_wrenches.items()
        }
        given = {
            frame: for_each(law, t, q, v, batch=q.shape[:-1], read=partial(self._wrench, frame))
            for frame, law in self.wrench_laws.items()
        }
        return {**self.wrenches, **held, **given}

    def _wrench(self, frame: str, answer: Any) -> Array:
        hint = ": moment, then force"
        return self.model.compute.numbers("simulate", f"wrench on {frame!r}", answer, 6, hint)

    def _given(self, t: Any, q: Array, v: Array, *, along_time: bool = False) -> list[Array]:
        given = [np.atleast_1d(np.asarray(t, dtype=float)), q, v]
        if self.model.parameters:
            p = self._parameters()
            given.append(p[..., None, :] if along_time and p.ndim > 1 else p)
        return given

    def elements_at(
        self, t: Any, q: Array, v: Array, *, along_time: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        """Efforts of potentials, other efforts, efforts of compiled tables, and the potential (...,)."""
        assert self.elements is not None
        kept, other, fed, U = self.elements.kernel("numbers")(*self._given(t, q, v, along_time=along_time))
        return kept, other, fed, U[..., 0]

    def slopes(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """d/dq (tangent) and d/dv of the efforts of force elements."""
        assert self.elements is not None
        dq, dv = self.elements.kernel("slopes")(*self._given(t, q, v))
        return dq, dv

    def wrench_array(self, t: float, q: Array, v: Array, parameters: Mapping[str, Any] | None) -> Array:
        """(..., nodes, 6) for the compiled loop."""
        found = self.wrenches_at(t, q, v)
        assert found is not None
        return self.model.compute.wrench_array("simulate", found, parameters)

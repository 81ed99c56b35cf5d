"""Inertias that no body can have, and massless tips on moving joints: refused, or kept with a warning."""

from __future__ import annotations

import dataclasses

from alembert.errors import ArgumentError, FileError, ModelError
from alembert.model.builder import ModelBuilder, check
from alembert.model.inertia import Inertia
from alembert.model.io.notes import Notes
from alembert.model.model import Model


class Gate:
    """Lets inertias through to the builder; with `warn`, bad ones by a stand-in that `build` replaces."""

    def __init__(self, file: str, unphysical: str) -> None:
        if unphysical not in ("error", "warn"):
            raise ArgumentError(f"unphysical is {unphysical!r}, expected 'error' or 'warn'")
        self._warn = unphysical == "warn"
        self._kept: dict[str, Inertia] = {}
        self._massless: dict[str, Inertia] = {}
        self._notes = Notes(file, "unphysical inertia kept as asked")

    def admit(self, body: str, inertia: Inertia, where: str, line: int | None) -> Inertia:
        """What to give to the builder, or a `FileError` at `where`."""
        problem = inertia.problem()
        if problem is None:
            if self._warn and inertia.mass == 0:
                self._massless[body] = inertia
                return Inertia.point(1.0)
            return inertia
        if not self._warn:
            raise FileError(f"{where}: body {body!r}: {problem}; unphysical='warn' loads it all the same")
        if inertia.mass < 0:  # type: ignore[operator]
            raise FileError(f"{where}: body {body!r}: {problem}")
        self._kept[body] = inertia
        self._notes.add(f"body {body!r}: {problem}", line)
        return Inertia.point(inertia.mass or 1.0, inertia.com)

    def build(self, builder: ModelBuilder) -> Model:
        """The model with the inertias as they came."""
        model = _with(builder.build(), self._massless)
        try:
            check(model)
        except ModelError as error:
            self._notes.add(str(error))
        self._notes.warn()
        return _with(model, self._kept)


def _with(model: Model, inertias: dict[str, Inertia]) -> Model:
    if not inertias:
        return model
    bodies = (dataclasses.replace(b, inertia=inertias.get(b.name, b.inertia)) for b in model.bodies)
    return dataclasses.replace(model, bodies=tuple(bodies))

"""The levels of a flexible model: all its bodies, or some of them, with another stiffening."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from alembert.arguments import unknown
from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.model.modal import Stiffening


def with_stiffening(model: Model, stiffening: Stiffening, bodies: Sequence[str] | None = None) -> Model:
    """The same model with its flexible `bodies` (all of them) `consistent`, `inconsistent` or `ruthless`.

    Runs of the levels side by side show whether motion-induced stiffness matters.
    """
    known = tuple(model.space.of_bodies)
    if not known:
        raise ArgumentError(f"with_stiffening: the model {model.name!r} has no flexible bodies")
    for name in bodies or ():
        if name not in known:
            raise ArgumentError(unknown("with_stiffening: no flexible body", name, known))
    found = model
    for name in known if bodies is None else bodies:
        flexible = model.body(name).flexible
        assert flexible is not None
        found = found.replace_body(name, flexible=dataclasses.replace(flexible, stiffening=stiffening))
    return found

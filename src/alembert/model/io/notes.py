"""What a loader keeps, changes or passes over, told in one warning per file; inertias that no body can have."""

from __future__ import annotations

import dataclasses

from alembert.errors import ArgumentError, FileError, warn
from alembert.model.builder import ModelBuilder
from alembert.model.checking import massless_tips
from alembert.model.elements import Visual
from alembert.model.inertia import Inertia
from alembert.model.model import Model

UNPHYSICAL = "unphysical inertia kept (strict=True refuses it)"
LEFT_OUT = "not supported and left out; it changes the physics (strict=True refuses it)"
CHANGED = "read differently from what it says (strict=True refuses it)"
MESHES = "mesh files not found (package_dirs= says where packages are)"
UNREAD = "not read by Alembert"
_SHOWN = 12


class Notes:
    """Counts what a file has and a model does not; `warn` names each once, with the first place it was met."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[str, dict[str, tuple[int, int | None]]] = {
            heading: {} for heading in (UNPHYSICAL, CHANGED, LEFT_OUT, MESHES, UNREAD)
        }

    def add(self, what: str, line: int | None = None, heading: str = UNREAD) -> None:
        count, first = self._found[heading].get(what, (0, line))
        self._found[heading][what] = (count + 1, first)

    def warn(self) -> None:
        """One `AlembertWarning` with a line per heading, or none when there is nothing to say."""
        told = [f"{heading}: {_listed(found)}" for heading, found in self._found.items() if found]
        if told:
            warn(f"{self._file}: " + "\n  ".join(told))


def _listed(found: dict[str, tuple[int, int | None]]) -> str:
    parts = []
    for what, (count, line) in list(found.items())[:_SHOWN]:
        where = "" if line is None else f"line {line}"
        times = "" if count == 1 else f"{count} times" + (", first " if where else "")
        parts.append(f"{what} ({times}{where})" if times or where else what)
    if len(found) > _SHOWN:
        parts.append(f"and {len(found) - _SHOWN} more")
    return "; ".join(parts)


class InertiaFilter:
    """Gives the inertias of a file to the builder: bad ones are refused, or kept and noted.

    Without `keep`, an inertia that no body can have, or none at all on a moving body, is an error. With it, such a body
    is marked as `unphysical`; a negative mass is refused all the same.
    """

    def __init__(self, notes: Notes, *, keep: bool) -> None:
        self._notes, self._keep = notes, keep
        self._massless: dict[str, int | None] = {}

    def add_body(
        self,
        builder: ModelBuilder,
        name: str,
        inertia: Inertia,
        *,
        where: str,
        line: int | None = None,
        visuals: list[Visual] | None = None,
    ) -> None:
        """The body with its inertia, or a `FileError` at `where`."""
        problem = inertia.problem()
        if problem and (not self._keep or inertia.mass < 0):  # type: ignore[operator]
            hint = "" if inertia.mass < 0 else "; without strict=True it is kept, with a warning"  # type: ignore[operator]
            raise FileError(f"{where}: body {name!r}: {problem}{hint}")
        if problem:
            self._notes.add(f"body {name!r}: {problem}", line, UNPHYSICAL)
        elif self._keep and inertia.mass == 0:
            self._massless[name] = line
        builder.body(name, inertia, visuals=visuals or (), unphysical=bool(problem) or name in self._massless)

    def build(self, builder: ModelBuilder) -> Model:
        """The model, in which only those bodies without mass are marked that a joint cannot move."""
        model = builder.build()
        tips = massless_tips(model)
        for name, line in self._massless.items():
            if name in tips:
                self._notes.add(tips[name], line, UNPHYSICAL)
        bodies = (
            dataclasses.replace(body, unphysical=False)
            if body.name in self._massless and body.name not in tips
            else body
            for body in model.bodies
        )
        return dataclasses.replace(model, bodies=tuple(bodies)) if self._massless else model


def keeps(option: str | None, name: str, strict: bool, lenient: str) -> bool:
    """Whether an option such as unphysical="warn" asks for leniency; None: as `strict` says."""
    if option not in (None, "error", lenient):
        raise ArgumentError(f"{name} is {option!r}, expected 'error' or {lenient!r}")
    return not strict if option is None else option == lenient

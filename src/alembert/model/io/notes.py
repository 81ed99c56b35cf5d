"""What a loader passes over, gathered into one warning per file."""

from __future__ import annotations

from alembert.errors import warn

_SHOWN = 12


class Notes:
    """Counts features that were passed over; `warn` names each once, with the first place it was met."""

    def __init__(self, file: str, sentence: str) -> None:
        self._file = file
        self._sentence = sentence
        self._found: dict[str, tuple[int, int | None]] = {}

    def add(self, what: str, line: int | None = None) -> None:
        count, first = self._found.get(what, (0, line))
        self._found[what] = (count + 1, first)

    def warn(self) -> None:
        """One `AlembertWarning`, or none when nothing was passed over."""
        if not self._found:
            return
        parts = []
        for what, (count, line) in list(self._found.items())[:_SHOWN]:
            where = "" if line is None else f"line {line}"
            times = "" if count == 1 else f"{count} times" + (", first " if where else "")
            parts.append(f"{what} ({times}{where})" if times or where else what)
        if len(self._found) > _SHOWN:
            parts.append(f"and {len(self._found) - _SHOWN} more")
        message = f"{self._file}: {self._sentence}: {'; '.join(parts)}"
        warn(message)

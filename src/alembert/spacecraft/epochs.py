"""Instants and their time scales: TT, TDB, TAI and UTC.

    TAI = UTC + leap seconds,    TT = TAI + 32.184 s,
    TDB = TT + 0.001657 s sin(g) + 0.000022 s sin(L),   g = 357.53 deg + 0.98560028 deg/day d                 (1)

with d the days since J2000 (Astronomical Almanac, section B; (1) is right to some 10 microseconds from 1980 to 2050). An
epoch is kept as a whole day and a fraction of seconds, so that it is exact to 1e-11 s whatever the century.
"""

from __future__ import annotations

import datetime as _datetime
import math
from dataclasses import dataclass

from alembert.errors import ArgumentError

DAY = 86400.0
J2000 = 2451545
"""the Julian day that began at noon of 1 January 2000"""
TABLE_DATE = "2025-07-07"
"""IERS Bulletin C 70: no leap second up to the end of June 2026; later bulletins had none to add when this was written"""
_TRUSTED = 2035
"""the General Conference on Weights and Measures (2022, resolution 4) lets UTC go without leap seconds by then"""
_LEAPS = (
    (1972, 1, 10), (1972, 7, 11), (1973, 1, 12), (1974, 1, 13), (1975, 1, 14), (1976, 1, 15), (1977, 1, 16),
    (1978, 1, 17), (1979, 1, 18), (1980, 1, 19), (1981, 7, 20), (1982, 7, 21), (1983, 7, 22), (1985, 7, 23),
    (1988, 1, 24), (1990, 1, 25), (1991, 1, 26), (1992, 7, 27), (1993, 7, 28), (1994, 7, 29), (1996, 1, 30),
    (1997, 7, 31), (1999, 1, 32), (2006, 1, 33), (2009, 1, 34), (2012, 7, 35), (2015, 7, 36), (2017, 1, 37),
)  # fmt: skip
"""(year, month, TAI - UTC in seconds from the first day of that month on), IERS Bulletin C"""
SCALES = ("UTC", "TT", "TAI", "TDB")


@dataclass(frozen=True, order=True)
class Epoch:
    """An instant: `day` counts days from noon of 1 January 2000 TT, and `seconds` go on from there, in TT.

    >>> Epoch.of("2026-03-01T12:00:00").utc
    '2026-03-01T12:00:00.000Z'
    """

    day: int
    seconds: float

    @classmethod
    def of(cls, text: str, scale: str = "UTC") -> Epoch:
        """From a date and time as ISO 8601 writes them, in one of the scales UTC, TT, TAI or TDB."""
        if scale not in SCALES:
            raise ArgumentError(f"Epoch: scale is {scale!r}, expected one of {', '.join(SCALES)}")
        day, seconds = _read(text)
        if scale == "UTC":
            return cls._normal(day, seconds + leap_seconds(day, text) + 32.184)
        if scale == "TAI":
            return cls._normal(day, seconds + 32.184)
        found = cls._normal(day, seconds)
        return found if scale == "TT" else found + (-_tdb_minus_tt(found))

    @classmethod
    def _normal(cls, day: int, seconds: float) -> Epoch:
        more = math.floor(seconds / DAY)
        return cls(day + more, seconds - more * DAY)

    def __add__(self, seconds: float) -> Epoch:
        return Epoch._normal(self.day, self.seconds + seconds)

    def __sub__(self, other: Epoch) -> float:
        """Seconds of TT between two epochs."""
        return (self.day - other.day) * DAY + (self.seconds - other.seconds)

    @property
    def days(self) -> float:
        """Days of TT since J2000."""
        return self.day + self.seconds / DAY

    @property
    def tdb_days(self) -> float:
        """Days of TDB since J2000."""
        return self.day + (self.seconds + _tdb_minus_tt(self)) / DAY

    @property
    def utc_days(self) -> tuple[int, float]:
        """UTC since noon of 1 January 2000, as whole days of 86400 s and seconds."""
        day, seconds = self.day, self.seconds - 32.184
        civil = math.floor((seconds + 43200.0) / DAY) + day
        leap = leap_seconds(civil, str(self))
        if (seconds - leap + 43200.0) / DAY + day < civil:
            leap = leap_seconds(civil - 1, str(self))
        found = Epoch._normal(day, seconds - leap)
        return found.day, found.seconds

    @property
    def utc(self) -> str:
        """As ISO 8601 writes it, to the millisecond."""
        day, seconds = self.utc_days
        at = _datetime.datetime(2000, 1, 1, 12) + _datetime.timedelta(days=day, seconds=round(seconds, 3))
        return at.isoformat(timespec="milliseconds") + "Z"

    @property
    def year(self) -> float:
        """As a decimal of Julian years."""
        return 2000.0 + self.days / 365.25

    def __str__(self) -> str:
        return f"J2000 + {self.day} d + {self.seconds:.6f} s TT"


def leap_seconds(day: int, what: str = "") -> int:
    """TAI - UTC on a civil day, which counts from 1 January 2000; refused where the table does not know it."""
    at = _datetime.date(2000, 1, 1).toordinal() + day
    date = _datetime.date.fromordinal(at) if at > 0 else _datetime.date.min
    found = [leap for year, month, leap in _LEAPS if date >= _datetime.date(year, month, 1)]
    if not found or date.year >= _TRUSTED:
        raise ArgumentError(
            f"Epoch: {what or date.isoformat()} is outside the table of leap seconds, 1972 to {_TRUSTED - 1} (as of "
            f"{TABLE_DATE}); give the epoch in TT, which needs no table"
        )
    return found[-1]


def _tdb_minus_tt(epoch: Epoch) -> float:
    g = math.radians(357.53 + 0.98560028 * epoch.days)
    L = math.radians(246.11 + 0.90251792 * epoch.days)
    return 0.001657 * math.sin(g) + 0.000022 * math.sin(L)


def _read(text: str) -> tuple[int, float]:
    """Civil days since 1 January 2000, and seconds since noon of that day (negative before it)."""
    try:
        plain = text.strip().removesuffix("Z")
        date_text, _, time_text = plain.partition("T" if "T" in plain else " ")
        date = _datetime.date.fromisoformat(date_text)
        hours, minutes, seconds = (*time_text.split(":"), "0", "0", "0")[:3] if time_text else ("0", "0", "0")
        h, m, s = int(hours), int(minutes), float(seconds)
    except (ValueError, AttributeError):
        raise ArgumentError(f"Epoch: {text!r} is no date and time, expected as 2026-03-01T12:00:00") from None
    leap = h == 23 and m == 59 and 60 <= s < 61
    if not (0 <= h < 24 and 0 <= m < 60 and (0 <= s < 60 or leap)):
        raise ArgumentError(f"Epoch: {text!r} has no such time of day, expected 00:00:00 to 23:59:60")
    return date.toordinal() - _datetime.date(2000, 1, 1).toordinal(), 3600.0 * (h - 12) + 60.0 * m + s

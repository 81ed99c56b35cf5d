"""Epochs, axes and places of Sun and Moon against ERFA, the library of the IAU's standards."""

import math
from datetime import datetime, timedelta, timezone

import erfa
import numpy as np
import pytest

from alembert import ArgumentError
from alembert.spacecraft import Epoch, astronomy, geodetic, lvlh
from alembert.spacecraft.astronomy import ARCSECOND, EarthAxes

EPOCHS = ["1990-06-21T03:00:00", "2004-11-30T23:59:59.5", "2026-03-01T12:00:00", "2033-08-17T18:30:00"]


def julian(text):
    date, time = text.split("T")
    year, month, day = (int(x) for x in date.split("-"))
    hour, minute, second = time.split(":")
    return erfa.dtf2d("UTC", year, month, day, int(hour), int(minute), float(second))


@pytest.mark.parametrize("text", EPOCHS)
@pytest.mark.filterwarnings("ignore:.*dubious year")
def test_scales_agree_with_erfa(text):
    tt = erfa.taitt(*erfa.utctai(*julian(text)))
    epoch = Epoch.of(text)
    assert epoch.days == pytest.approx(float((tt[0] - 2451545.0) + tt[1]), abs=1e-11)
    tdb = erfa.dtdb(*tt, 0.0, 0.0, 0.0, 0.0)
    assert (epoch.tdb_days - epoch.days) * 86400 == pytest.approx(float(tdb), abs=5e-5)  # (1) of epochs
    assert epoch.utc.startswith(text[:19])
    assert Epoch.of(text, "TT") - epoch == pytest.approx(-float(erfa.dat(1990, 6, 21, 0)) - 32.184, abs=20)


def test_a_leap_second_is_a_second_long():
    before, leap, after = (
        Epoch.of(x) for x in ("2016-12-31T23:59:59", "2016-12-31T23:59:60", "2017-01-01T00:00:00")
    )
    assert (leap - before, after - leap) == pytest.approx((1.0, 1.0), abs=1e-9)
    assert (after + 0.25).utc == "2017-01-01T00:00:00.250Z"
    assert (before + 0.25).utc == "2016-12-31T23:59:59.250Z"


def test_epochs_keep_their_digits():
    start = Epoch.of("2026-03-01T00:00:00")
    assert (start + 1e9 + 1e-9) - (start + 1e9) == pytest.approx(1e-9, rel=0.02)  # 86400 s has 1.5e-11 s
    assert Epoch.of("2026-03-01T00:00:00", "TDB") < Epoch.of("2026-03-01T00:01:00", "TDB")


@pytest.mark.parametrize(
    ("text", "scale", "message"),
    [
        ("1960-01-01T00:00:00", "UTC", "outside the table of leap seconds, 1972 to 2034"),
        ("2040-01-01T00:00:00", "UTC", "give the epoch in TT"),
        ("tomorrow", "UTC", "no date and time"),
        ("2026-03-01T25:00:00", "UTC", "no such time of day"),
        ("2026-03-01", "UT2", "expected one of 'UTC', 'TT', 'TAI', 'TDB'"),
    ],
)
def test_unknown_epochs_are_refused(text, scale, message):
    with pytest.raises(ArgumentError, match=message):
        Epoch.of(text, scale)


@pytest.mark.parametrize("text", EPOCHS)
@pytest.mark.filterwarnings("ignore:.*dubious year")
def test_earth_axes_agree_with_the_whole_theory(text):
    utc = julian(text)
    tt = erfa.taitt(*erfa.utctai(*utc))
    whole = erfa.c2t06a(*tt, *utc, 0.0, 0.0)  # UT1 = UTC, no polar motion
    ours = EarthAxes.at(Epoch.of(text)).fixed(0.0)
    error = np.arccos(min(1.0, (np.trace(ours @ whole.T) - 1) / 2))
    assert error < 0.15 * ARCSECOND  # nutation left out: terms below 0.012", and 2000 against 1980
    later = erfa.c2t06a(tt[0], tt[1] + 0.5, utc[0], utc[1] + 0.5, 0.0, 0.0)
    moved = EarthAxes.at(Epoch.of(text)).fixed(43200.0)
    assert (
        np.arccos(min(1.0, (np.trace(moved @ later.T) - 1) / 2)) < 0.4 * ARCSECOND
    )  # 0.2" a day, and the day's drift


@pytest.mark.parametrize("text", EPOCHS)
@pytest.mark.filterwarnings("ignore:.*dubious year")
def test_sun_and_moon_agree_with_erfa(text):
    tt = erfa.taitt(*erfa.utctai(*julian(text)))
    days = Epoch.of(text).tdb_days
    helio, _ = erfa.epv00(*tt)
    sun = -np.array(helio["p"]) * 149597870700.0
    ours = np.array(astronomy.sun(days)).ravel()
    assert np.linalg.norm(ours / np.linalg.norm(ours) - sun / np.linalg.norm(sun)) < math.radians(0.012)
    assert np.linalg.norm(ours) == pytest.approx(np.linalg.norm(sun), rel=3e-4)
    moon = np.array(erfa.moon98(*tt)["p"]) * 149597870700.0
    ours = np.array(astronomy.moon(days)).ravel()
    assert np.linalg.norm(ours / np.linalg.norm(ours) - moon / np.linalg.norm(moon)) < math.radians(0.1)
    assert np.linalg.norm(ours) == pytest.approx(np.linalg.norm(moon), abs=7e5)


def test_geodetic_places_agree_with_erfa():
    rng = np.random.default_rng(1)
    places = rng.normal(size=(50, 3))
    places *= (rng.uniform(6.38e6, 8e6, 50) / np.linalg.norm(places, axis=1))[:, None]
    longitude, latitude, height = erfa.gc2gd(1, places)
    ours = geodetic(places)
    assert np.allclose(ours, np.stack([latitude, longitude, height], -1), rtol=0, atol=[1e-11, 1e-12, 1e-7])


def test_local_axes():
    R = lvlh([7e6, 0, 0], [0, 7500.0, 0])
    assert np.allclose(R, np.array([[0, 0, -1], [1, 0, 0], [0, -1, 0]]))


def test_dates_of_python():
    """Those without a zone are UTC."""
    east = timezone(timedelta(hours=2))
    for instant in (datetime(2026, 3, 1, 12, 0), datetime(2026, 3, 1, 14, 0, tzinfo=east)):
        assert Epoch.of(instant) == Epoch.of("2026-03-01T12:00:00")


def test_a_text_may_say_its_scale():
    assert Epoch.of("2045-03-01T12:00:00 TT") == Epoch.of("2045-03-01T12:00:00", "TT")
    with pytest.raises(ArgumentError, match="says its scale, and scale is 'TAI'"):
        Epoch.of("2045-03-01T12:00:00 TT", "TAI")
    with pytest.raises(ArgumentError, match="'TT' is no date and time"):
        Epoch.of("TT")
    with pytest.raises(ArgumentError, match="neither UTC nor where the Earth's rotation has come to"):
        _ = Epoch.of("2045-03-01T12:00:00 TT").utc

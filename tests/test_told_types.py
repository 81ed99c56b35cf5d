"""Calls that fail by a wrong type say which argument it was, in a sentence; calls that work are left alone."""

from __future__ import annotations

import contextlib
import inspect
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import AlembertError
from alembert.arguments import Numbers, Vector, _telling
from alembert.errors import ArgumentError, NumericalError


def spans(
    length: float,
    count: int = 1,
    name: str = "",
    *,
    at: Vector = (0, 0, 0),
    weights: Numbers = None,
    parts: Sequence[str] = (),
    ends: tuple[float, float] = (0.0, 1.0),
    by_name: Mapping[str, float] | None = None,
    joint: al.Revolute | None = None,
    path: str | Path = "",
    anything: Any = None,
) -> Any:
    raise anything or TypeError("bare")


told = _telling(spans, "spans")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"length": "1 m"}, "spans: length is '1 m', expected a number"),
        ({"length": None}, "spans: length is None, expected a number"),
        ({"length": float("nan")}, "spans: length is nan, expected a number"),
        ({"length": [1.0]}, r"spans: length is \[1.0\], expected a number"),
        ({"length": 1, "count": 2.0}, "spans: count is 2.0, expected a whole number"),
        ({"length": 1, "count": True}, "spans: count is True, expected a whole number"),
        ({"length": 1, "name": 3}, "spans: name is 3, expected a text"),
        ({"length": 1, "at": (1, 2)}, r"spans: at is \(1, 2\), expected three numbers"),
        ({"length": 1, "weights": [1, "a"]}, r"spans: weights is \[1, 'a'\], expected numbers"),
        ({"length": 1, "weights": [[1], [2, 3]]}, r"spans: weights is .*, expected numbers"),
        ({"length": 1, "parts": "abc"}, "spans: parts is 'abc', expected a list of names"),
        ({"length": 1, "parts": [1]}, r"spans: parts is \[1\], expected a list of names"),
        ({"length": 1, "ends": (1.0, 2.0, 3.0)}, "spans: ends is .*, expected a list of 2 numbers"),
        ({"length": 1, "by_name": [1]}, r"spans: by_name is \[1\], expected a mapping or None"),
        ({"length": 1, "joint": "hinge"}, "spans: joint is 'hinge', expected a Revolute or None"),
        ({"length": 1, "path": 3}, "spans: path is 3, expected a text or a path"),
        ({"length": np.zeros((200, 200))}, "spans: length has type 'ndarray', expected a number"),
    ],
)
def test_the_argument_is_named(given, message):
    with pytest.raises(ArgumentError, match=f"^{message}$"):
        told(**given)


def test_what_is_right_is_not_accused():
    x = ca.SX.sym("x")
    right = {"at": np.ones(3), "weights": [x, 2.0], "parts": ["a"], "by_name": {"a": 1.0}, "path": Path("x")}
    with pytest.raises(TypeError, match="bare"):
        told(np.float32(2), np.int64(3), "b", **right)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'length'"):
        told()
    with pytest.raises(TypeError, match="unexpected keyword argument 'dt'") as error:
        told(1.0, dt=0.1)
    names = "length, count, name and by name at=, weights=, parts=, ends=, by_name=, joint=, path=, anything="
    assert error.value.__notes__ == [f"spans takes {names}"]
    with pytest.raises(ArgumentError, match="as it was"):  # our own sentences know more
        told("x", anything=ArgumentError("as it was"))
    with pytest.raises(NumericalError, match="spans: numbers overflow; look at the units of what is given"):
        told(1.0, anything=OverflowError("int too large"))


def test_functions_stay_what_they_are():
    gyro = al.spacecraft.gyro
    assert pickle.loads(pickle.dumps(gyro)) is gyro
    assert list(inspect.signature(gyro).parameters)[:2] == ["name", "frame"]
    assert inspect.getdoc(gyro).startswith(inspect.getdoc(inspect.unwrap(gyro))[:20])


WRONG = (None, "x", float("nan"), -1.0, float("inf"), [], [1.0], {}, object())
HUB = al.ModelBuilder("hub")
HUB.body("hub", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free())
MAKERS = {
    "reaction_wheel": ((HUB, "hub", "w", (0, 0, 1)), {"inertia": 0.01, "mass": 1.0}),
    "hinged_panel": ((HUB, "p", "hub", 2.0, (1.0, 2.0)), {"at": (0.5, 0, 0)}),
    "gyro": (("g", "hub"), {"period": 0.1}),
    "rest_to_rest": (([0.0, 1.0], [0.0, 1.0]), {}),
    "sun_synchronous": ((600e3,), {}),
    "geodetic": (([7e6, 0, 0],), {}),
    "gains": (([1.0, 2.0, 3.0], 0.1), {}),
    "box": (("hub", (1, 1, 1)), {}),
}


@pytest.mark.parametrize("name", MAKERS)
def test_spacecraft(name):
    """Whatever stands in the place of an argument: it works, or is refused with a sentence."""
    given, more = MAKERS[name]
    make = getattr(al.spacecraft, name)
    names = list(inspect.signature(make).parameters)
    right = dict(zip(names, given, strict=False)) | more
    for changed in right:
        for wrong in WRONG:
            if changed in ("builder",) or (changed in ("name", "body", "parent", "frame") and wrong == "x"):
                continue
            with contextlib.suppress(AlembertError):
                make(**{**right, changed: wrong})


def test_structures():
    fl = al.flexible
    section = fl.CrossSection.tube(7e10, 2700.0, 0.05, 0.002)
    nodes = {"a": (0, 0, 0), "b": (1, 0, 0)}
    frame = fl.framework(nodes, [fl.Member("a", "b", section)])
    for call, message in (
        (lambda: fl.framework(nodes, []), "framework: there are no members"),
        (
            lambda: fl.CrossSection.tube(7e10, 2700.0, 0.05, 0.002, nu=-1),
            "nu is -1, expected Poisson's ratio",
        ),
        (lambda: frame.held(None), "unknowns are None, expected their numbers"),
        (lambda: frame.held("a"), "unknowns are 'a', expected their numbers"),
        (
            lambda: fl.residual_modes(frame, {}, fl.normal_modes(frame, 2, held="a"), held="a"),
            "none are given",
        ),
        (lambda: fl.completeness(None, {}, []), "completeness: model is None, expected a Model"),
        (
            lambda: fl.tuned_absorber(1.0, "x", 1.0),
            "tuned_absorber: participation is 'x', expected a number",
        ),
        (
            lambda: fl.tuned_absorber(1.0, float("nan"), 1.0),
            "tuned_absorber: participation is nan, expected a number",
        ),
    ):
        with pytest.raises(AlembertError, match=message):
            call()


def test_uncertain_numbers():
    m = al.control.parameter("m", 1.0, 2.0)
    for wrong in (float("nan"), "x", None):
        with pytest.raises(ArgumentError, match=r"at: m is .*, expected finite numbers"):
            (1 / m).at(m=wrong)

"""What a new process sees of a model before any of its algorithms has been used."""

import inspect
import subprocess
import sys

import pytest

import alembert as al
from alembert.errors import ArgumentError
from alembert.identify import base_parameters, exciting_trajectory, regressor
from alembert.linear import linearize, trim
from alembert.model.io.native import dumps

HEAD = "import alembert as al, alembert.identify, alembert.linear, numpy as np; m = al.library.acrobot(); z = np.zeros(2); "
FIRST = {  # what other modules ask of a model, as the first thing in a process
    "dir": "assert {'forward_dynamics', 'jvp'} < set(dir(m))",
    "regressor": "al.identify.regressor(m, z, z, z)",
    "base_parameters": "al.identify.base_parameters(m)",
    "linearize": "al.linearize(m, z)",
    "trim": "al.trim(m)",
    "check": "al.check.derivatives(m, 'gravity_forces', states=0, show=False)",
    "compute": "m.compute.numbers('f', 'x', z, 2)",
}


@pytest.mark.parametrize("name", FIRST)
def test_is_possible_as_the_first_thing_in_a_process(name):
    done = subprocess.run([sys.executable, "-c", HEAD + FIRST[name]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_not_there_is_an_attribute_error():
    for name in ("nonsense", "_nonsense", "__nonsense__"):
        assert not hasattr(al.library.acrobot(), name)


@pytest.mark.parametrize(
    ("name", "call"),
    {
        "linearize": lambda: linearize("arm.urdf", [0.0]),
        "trim": lambda: trim("arm.urdf"),
        "identify": lambda: al.identify("arm.urdf", None),
        "regressor": lambda: regressor("arm.urdf", 0, 0, 0),
        "base_parameters": lambda: base_parameters("arm.urdf"),
        "exciting_trajectory": lambda: exciting_trajectory("arm.urdf"),
        "check.derivatives": lambda: al.check.derivatives("arm.urdf"),
        "save": lambda: dumps("arm.urdf"),
    }.items(),
)
def test_what_is_no_model_is_refused(name, call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value) == (f"{name}: model is a str, expected a Model; al.load reads one from a file")


def test_modules_that_are_called_show_the_signature_of_what_they_call():
    assert list(inspect.signature(al.identify).parameters)[:2] == ["model", "data"]

"""What kernels share is found by name: from this process, from the cache, and when LLVM loads the code."""

import dataclasses
import subprocess
import sys
import textwrap

import casadi as ca
import numpy as np
import pytest
from engine_helpers import Lanes, evaluated, same_bits

from alembert.engine import cache, host, loader, shared, symbols

KEPT = []  # machine code that a kernel may still call


@pytest.fixture
def nothing_shared(monkeypatch):
    """As in a new process."""
    KEPT.append(shared._LIBRARIES)
    monkeypatch.setattr(shared, "_LIBRARIES", {})
    monkeypatch.setattr(shared, "_TARGETS", {})
    symbols.address.cache_clear()
    yield
    KEPT.append(shared._LIBRARIES)
    symbols.address.cache_clear()


def function(size):
    """With sines, and as many results as two of the ways out need."""
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [ca.sin(x), ca.vertcat(*(x[k % 3] * (k + 1) for k in range(size)))])


@pytest.mark.parametrize("size", range(33, 41))
@pytest.mark.parametrize("by_llvm", [False, True])
def test_every_number_of_results_with_and_without_images(nothing_shared, monkeypatch, size, by_llvm):
    """The code for large results depends on what is left of them by the lanes."""
    if by_llvm:
        monkeypatch.setattr(loader.link, "linked", lambda code: None)
    x = np.random.default_rng(size).normal(size=(21, 3))
    f = function(size)
    lanes = host.host().lanes
    for y, expected in zip(Lanes(f, lanes)(x), evaluated(f, x), strict=True):
        np.testing.assert_allclose(
            y, expected, rtol=4e-16
        )  # sines differ from CasADi's by a unit in the last place
    found = {group for _, group, *_ in shared._LIBRARIES}
    assert found == {"sincos", "packing", *(["whole"] if lanes > 1 else [])}


def test_compiled_once(nothing_shared):
    x = np.random.default_rng(0).normal(size=(21, 3))
    one = Lanes(function(40), 1)(x)
    libraries = dict(shared._LIBRARIES)
    compiled = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "_library", lambda *given: compiled.append(given))
        other = Lanes(function(41), 1)(x)
    assert not compiled
    assert libraries == shared._LIBRARIES
    assert same_bits(one[1], other[1][:, :40])


def test_another_processor_has_its_own(nothing_shared):
    target = host.host()
    plain = dataclasses.replace(target, fused=not target.fused)
    assert shared.sincos(plain) != shared.sincos(target)
    assert symbols.address(shared.sincos(plain)) != symbols.address(shared.sincos(target))


@pytest.mark.parametrize("name", ["alembert_shared_", "alembert_shared_00000000_packing8_pack"])
def test_what_is_not_there(nothing_shared, name):
    with pytest.raises(AttributeError, match=name):
        symbols.address(name)


def test_from_the_cache(cache_directory):
    """By a process that has compiled nothing; and one that finds the kernel there but not what it shares."""
    code = """
        import sys
        import numpy as np
        from alembert import library
        model = library.chain(3)
        q = np.linspace(0, 1, 60).reshape(20, 3)
        print(model.mass_matrix(q).tobytes().hex(), model.forward_dynamics(q, q, q)[3].tobytes().hex())
        print("llvmlite.binding" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]

    def run():
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    first, second = run(), run()
    assert (first[1], second[1]) == ("True", "False")
    files = list(cache_directory.glob(f"*{cache.SHARED}"))
    assert files
    assert not {path.name for path in files} & {entry.path.name for entry in cache.entries()}
    for path in files:
        path.unlink()
    third = run()
    assert third[1] == "True"
    assert first[0] == second[0] == third[0]
    assert cache.clear()
    assert not list(cache_directory.iterdir())

"""What kernels share is found by name: from this process, and from the cache."""

import dataclasses
import subprocess
import sys
import textwrap

import casadi as ca
import numpy as np
import pytest
from engine_helpers import Lanes, evaluated, same_bits

from alembert.engine import cache, loader, target
from alembert.engine.target import host, sincos_symbol

KEPT = []  # machine code that a kernel may still call


@pytest.fixture
def nothing_shared(monkeypatch):
    """As in a new process."""
    KEPT.append(loader._SHARED)
    monkeypatch.setattr(loader, "_SHARED", {})
    monkeypatch.setattr(loader, "TARGETS", {})
    monkeypatch.setattr(target, "TARGETS", loader.TARGETS)
    yield
    KEPT.append(loader._SHARED)


def function(size):
    """With sines, and as many results as two of the ways out need."""
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [ca.sin(x), ca.vertcat(*(x[k % 3] * (k + 1) for k in range(size)))])


@pytest.mark.parametrize("size", range(33, 41))
def test_every_number_of_results(nothing_shared, size):
    """The code for large results depends on what is left of them by the lanes."""
    x = np.random.default_rng(size).normal(size=(21, 3))
    f = function(size)
    lanes = host().lanes
    for y, expected in zip(Lanes(f, lanes)(x), evaluated(f, x), strict=True):
        np.testing.assert_allclose(
            y, expected, rtol=4e-16
        )  # sines differ from CasADi's by a unit in the last place
    found = {group for _, group, *_ in loader._SHARED}
    assert found == {"sincos", "packing", *(["whole"] if lanes > 1 else [])}


def test_compiled_once(nothing_shared):
    x = np.random.default_rng(0).normal(size=(21, 3))
    one = Lanes(function(40), 1)(x)
    libraries = dict(loader._SHARED)
    compiled = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "_shared_library", lambda *given: compiled.append(given))
        other = Lanes(function(41), 1)(x)
    assert not compiled
    assert libraries == loader._SHARED
    assert same_bits(one[1], other[1][:, :40])


def test_another_processor_has_its_own(nothing_shared):
    target = host()
    plain = dataclasses.replace(target, fused=not target.fused)
    assert sincos_symbol(plain) != sincos_symbol(target)
    addresses = [loader.shared_function(sincos_symbol(x)) for x in (plain, target)]
    assert addresses[0] != addresses[1]


@pytest.mark.parametrize("name", ["alembert_shared_", "alembert_shared_00000000_packing8_pack"])
def test_what_is_not_there(nothing_shared, name):
    with pytest.raises(AttributeError, match=name):
        loader.shared_function(name)


def test_from_the_cache(cache_directory):
    """By a process that has compiled nothing; and one that finds the kernel there but not what it shares."""
    code = """
        import numpy as np
        from alembert import library
        from alembert.engine import loader
        compile_ir, compiled = loader.compile_ir, []
        loader.compile_ir = lambda *given, **options: compiled.append(given) or compile_ir(*given, **options)
        model = library.chain(3)
        q = np.linspace(0, 1, 60).reshape(20, 3)
        print(model.mass_matrix(q).tobytes().hex(), model.forward_dynamics(q, q, q)[3].tobytes().hex())
        print(bool(compiled))
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

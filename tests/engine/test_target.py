"""The machine that code is made for, and the environment that asks for another one."""

import numpy as np
import pytest
from engine_helpers import evaluated, kernel_of, pendulum_like, same_bits

from alembert.engine import cache
from alembert.engine.target import host
from alembert.errors import ArgumentError

x86 = pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="names of x86-64's vectors")


@pytest.fixture
def plain(monkeypatch):
    for name in ("ALEMBERT_LANES", "ALEMBERT_TARGET"):
        monkeypatch.delenv(name, raising=False)


def test_lanes_of_the_host(plain):
    assert host().lanes in (2, 4, 8)


def values(monkeypatch, target, lanes):
    """A kernel's results for one state and for a batch."""
    monkeypatch.setenv("ALEMBERT_TARGET", target)
    monkeypatch.setenv("ALEMBERT_LANES", lanes)
    function = pendulum_like(5)
    rng = np.random.default_rng(1)
    states = [rng.normal(size=(37, function.numel_in(k))) for k in range(function.n_in())]
    kernel = kernel_of(function)
    batch = kernel(*(x.reshape(37, *a.shape) for x, a in zip(states, kernel.arguments, strict=True)))
    batch = batch if isinstance(batch, tuple) else (batch,)
    single = kernel(*(x[3].reshape(a.shape) for x, a in zip(states, kernel.arguments, strict=True)))
    single = single if isinstance(single, tuple) else (single,)
    for one, many, expected in zip(single, batch, evaluated(function, *states), strict=True):
        assert same_bits(one, many[3])
        many = many.reshape(37, -1)
        np.testing.assert_allclose(many, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    return batch


@pytest.mark.parametrize("lanes", ["1", "2", "4", "8"])
def test_the_number_of_lanes_does_not_change_a_bit(plain, monkeypatch, lanes):
    usual = values(monkeypatch, "", "")
    for x, y in zip(usual, values(monkeypatch, "", lanes), strict=True):
        assert same_bits(x, y)
    assert host().lanes == int(lanes)


@x86
@pytest.mark.parametrize(("target", "lanes"), [("sse2", 2), ("avx2", 4), ("avx512", 8)])
def test_lesser_processors(plain, monkeypatch, target, lanes):
    features = host().features
    if (target == "avx512" and "+avx512f" not in features) or (target == "avx2" and "+avx2" not in features):
        monkeypatch.setenv("ALEMBERT_TARGET", target)
        with pytest.raises(
            ArgumentError, match=f"ALEMBERT_TARGET is {target}, which the processor of this machine"
        ):
            host()
        return
    values(monkeypatch, target, "")
    assert (host().lanes, host().fused) == (lanes, target != "sse2")


@x86
def test_a_model_on_the_least_processor(plain, monkeypatch):
    """Loops over bodies, rows of matrices and straight code, without fused multiply-adds."""
    import alembert as al

    def results():
        model = al.library.random_tree(3, bodies=9, kinds=("revolute", "spherical"))
        rng = np.random.default_rng(0)
        q = np.array([model.random_configuration(rng) for _ in range(5)])
        v, tau = rng.normal(size=(2, 5, model.nv))
        found = [
            model.compile("forward_dynamics", lowering=kind, batch=True)(q, v, tau)
            for kind in ("rolled", "specialised")
        ]
        derivatives = model.compile("forward_dynamics_derivatives", batch=True)
        return [*found, model.mass_matrix(q), *derivatives(q, v, tau)]

    usual = results()
    monkeypatch.setenv("ALEMBERT_TARGET", "sse2")
    # some thousand roundings, amplified by the condition of the mass matrix (some hundreds)
    for x, y in zip(usual, results(), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-10 * np.abs(x).max())


def test_each_has_its_own_code(plain, monkeypatch):
    names = {cache.digest("a", 1, host())}
    for lanes in ("1", "2", "4", "8"):
        monkeypatch.setenv("ALEMBERT_LANES", lanes)
        names.add(cache.digest("a", 1, host()))
    assert len(names) == 4  # one of them is the machine's own


def test_wrong_names_are_refused(plain, monkeypatch):
    monkeypatch.setenv("ALEMBERT_TARGET", "z80")
    with pytest.raises(ArgumentError, match="ALEMBERT_TARGET is 'z80', expected one of sse2, avx2, avx512"):
        host()
    monkeypatch.setenv("ALEMBERT_TARGET", "")
    monkeypatch.setenv("ALEMBERT_LANES", "3")
    with pytest.raises(ArgumentError, match="ALEMBERT_LANES is '3', expected 1, 2, 4 or 8"):
        host()

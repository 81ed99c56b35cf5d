"""The one table of algorithms: every use of an algorithm follows from its record."""

import inspect

import numpy as np
import pytest

import alembert as al
from alembert import sweeps
from alembert.algorithms.algorithm import Algorithm
from alembert.algorithms.table import TABLE, added
from alembert.constraints import ConstrainedCompute
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.methods import Methods

MODEL = al.library.random_tree(seed=4, bodies=5, parameters=True)


def lagrangian(s):
    return {"L": s.run(sweeps.KINETIC_ENERGY)["T"] - s.run(sweeps.POTENTIAL_ENERGY)["E"]}


NEW = {
    "lagrangian": Algorithm("lagrangian", ("q", "v"), graph=lagrangian, gives_number=True),
    "weight": Algorithm("weight", ("q",), sweeps.GRAVITY_FORCES),
}
KNOWN = {
    "lagrangian": lambda m, q, v: m.kinetic_energy(q, v) - m.potential_energy(q),
    "weight": lambda m, q, v: m.gravity_forces(q),
}


@pytest.mark.parametrize("name", NEW)
def test_one_entry_makes_an_algorithm_known_everywhere(name, tmp_path):
    """Compiled, on expressions, differentiated in all ways, checked, and as C source, from its record alone."""
    rng = np.random.default_rng(0)
    q, v = MODEL.random_configuration(rng), rng.normal(size=MODEL.nv)
    model = MODEL.replace(name=name)
    with added(NEW[name]) as entry:
        given = (q, v)[: len(entry.inputs)]
        p = np.array(list(model.parameter_values.values()))
        expected = np.ravel(KNOWN[name](model, q, v))
        near = {"rtol": 1e-12, "atol": 1e-12 * np.abs(expected).max()}
        np.testing.assert_allclose(np.ravel(model.compile(name)(*given, p)), expected, **near)
        np.testing.assert_allclose(model.symbolic.call(name, *given).full()[:, 0], expected, **near)
        directions = rng.normal(size=(len(given), model.nv))
        value, change = (np.ravel(x) for x in model.jvp(name, given, list(directions)))
        np.testing.assert_allclose(value, expected, **near)
        w = rng.normal(size=len(expected))
        weight = w if len(w) > 1 else w[0]
        gradients = model.vjp(name, given, weight)
        total = sum(g @ d for g, d in zip(gradients, directions, strict=False))
        assert total == pytest.approx(w @ change, rel=1e-10, abs=1e-10)
        assert model.hessian(name, given, weight).shape == (len(given) * model.nv,) * 2
        al.check.derivatives(model, name, states=1, show=False).raise_if_above()
        files = model.export_c(name, tmp_path)
        assert {file.name for file in files} >= {f"{name}.c", f"{name}.h"}
        with pytest.raises(ArgumentError, match=f"{name} takes no wrenches"):
            model.compile(name, wrenches=[model.bodies[-1].name])
    fresh = MODEL.replace(name=f"no {name}")
    for use in (fresh.compile, lambda x: fresh.jvp(x, given, given), lambda x: fresh.symbolic.call(x, q)):
        with pytest.raises(ArgumentError, match=f"no algorithm '{name}'"):
            use(name)


def test_every_method_of_the_table_is_one_of_models():
    methods = {name for name in vars(Methods) if not name.startswith("_")}
    assert {name for name, entry in TABLE.items() if entry.is_method} <= methods
    assert not {name for name, entry in TABLE.items() if not entry.is_method} & methods


@pytest.mark.parametrize("name", [name for name, entry in TABLE.items() if entry.is_method])
def test_methods_take_what_the_record_says(name):
    taken = inspect.signature(getattr(Methods, name)).parameters
    entry = TABLE[name]
    assert ("wrenches" in taken) == entry.takes_wrenches
    assert ("parameters" in taken) == entry.takes_parameters
    assert {key for key in ("frame", "reference", "about") if key in taken} == set(entry.options)


@pytest.mark.parametrize("name", ["energy", "center_of_mass", "inverse_mass_matrix", "power"])
def test_algorithms_without_a_program_of_their_own_compile_as_well(name):
    model = al.library.random_tree(seed=4, bodies=5)
    rng = np.random.default_rng(1)
    state = {
        "q": model.random_configuration(rng),
        "v": rng.normal(size=model.nv),
        "tau": rng.normal(size=model.nv),
    }
    given = [state[key] for key in TABLE[name].inputs]
    expected = getattr(model, name)(*given)
    near = {"rtol": 1e-12, "atol": 1e-12 * np.abs(expected).max()}
    for lowering in ("specialised", "rolled"):
        found = model.compile(name, lowering=lowering)(*given)
        np.testing.assert_allclose(np.squeeze(found), expected, **near)
    if TABLE[name].takes_wrenches:
        frame, F = model.bodies[-1].name, rng.normal(size=6)
        expected = getattr(model, name)(*given, wrenches={frame: F})
        found = np.squeeze(model.compile(name, wrenches=[frame])(*given, F))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(UnsupportedError, match="cannot be rolled"):
        model.compile("integrate", lowering="rolled")


def test_methods_and_what_computes_take_the_same_arguments():
    """The public methods of a model hand their arguments on, in order, options by name; defaults stand there alone."""
    elsewhere = {"inverse_mass_matrix"}  # without coordinates
    for name, method in vars(Methods).items():
        inner = getattr(ConstrainedCompute, name, None)
        if name.startswith("_") or not inspect.isfunction(inner) or name in elsewhere:
            continue
        outer = list(inspect.signature(method).parameters)[1:]
        own = list(inspect.signature(inner).parameters.values())[1:]
        if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD:
            own.pop()
            outer = outer[: len(own)]
        assert outer == [p.name for p in own], name
        assert all(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in own), name

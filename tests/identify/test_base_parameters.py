"""Which combinations of parameters the efforts depend on."""

import numpy as np
import pytest

from alembert import ArgumentError, Fixed, Inertia, ModelBuilder, Revolute, Rotor, library
from alembert.errors import AlembertWarning
from alembert.identify import base_parameters, regressor


def test_a_pendulum_has_three():
    """About a horizontal axis: the moment of inertia about it and two first moments (by gravity)."""
    found = base_parameters(library.pendulum())
    assert found.base_names == ("bob.mcx", "bob.mcz", "bob.Iyy")
    assert found.alone == found.base_names
    assert found.combined == ()
    assert set(found.unidentifiable) == {
        f"bob.{x}" for x in ("mass", "mcy", "Ixx", "Ixy", "Ixz", "Iyz", "Izz")
    }


def test_without_gravity_only_its_moment_of_inertia_shows():
    assert base_parameters(library.pendulum().replace(gravity=(0, 0, 0))).base_names == ("bob.Iyy",)


def test_of_a_model_that_does_not_move_there_are_none():
    builder = ModelBuilder("block")
    builder.body("block", Inertia.sphere(1.0, 0.1), joint=Fixed())
    found = base_parameters(builder.build())
    assert (found.rank, found.names) == (0, ())


def test_about_a_vertical_axis_too():
    builder = ModelBuilder("turntable")
    builder.body("disc", Inertia.cylinder(1.0, 0.2, 0.1), joint=Revolute((0, 0, 1)), joint_name="spindle")
    assert base_parameters(builder.build()).base_names == ("disc.Izz",)


def test_armature_and_rotor_join_the_moment_of_inertia():
    model = library.pendulum().replace_joint(
        "pivot", armature=(0.1,), rotors=(Rotor(10.0, 1e-3, (0, -1, 0)),)
    )
    found = base_parameters(model)
    assert found.base_names[2] == "bob.Iyy + pivot.armature + 100 pivot.rotor"
    assert found.combined == ("bob.Iyy", "pivot.armature", "pivot.rotor")


def test_the_mass_of_the_second_link_joins_the_first():
    """Planar 2R arm with links of length l: mcx1 + l m2, Iyy1 + l^2 m2, as in every textbook."""
    found = base_parameters(library.two_link(lengths=(0.7, 1.0)))
    assert found.rank == 6
    assert found.base_names[0] == "upper.mcx + 0.7 lower.mass"
    assert found.base_names[2] == "upper.Iyy + 0.49 lower.mass"


def test_friction_is_identifiable_by_itself():
    found = base_parameters(library.arm7())
    assert {f"joint{k}.{term}" for k in range(1, 8) for term in ("viscous", "coulomb")} <= set(found.alone)
    assert found.condition < 100
    inertial = [name for name in found.base_names if "viscous" not in name and "coulomb" not in name]
    # One for the first link, seven for each of the others, and the armatures that are not regrouped.
    assert len(inertial) == 1 + 6 * 7 + 5


@pytest.mark.parametrize("seed", [11, 21])
def test_they_give_the_same_efforts(seed):
    """Y pi = Y_I K pi for any pi, at states that were not used; 1e-9 since K has entries of some hundreds."""
    model = library.random_tree(seed, bodies=7, attachments=True)
    found = base_parameters(model)
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(9)])
    v, a = rng.normal(size=(2, 9, model.nv))
    r = regressor(model, q, v, a)
    pi = rng.normal(size=len(r.pi))
    efforts = r.Y @ pi
    assert np.abs(found.regressor(r.Y) @ found.values(pi) - efforts).max() < 1e-9 * np.abs(efforts).max()
    W = found.regressor(regressor(model, *_more(model)).Y).reshape(-1, found.rank)
    assert np.linalg.matrix_rank(W / np.linalg.norm(W, axis=0)) == found.rank


def _more(model):
    rng = np.random.default_rng(99)
    q = np.array([model.random_configuration(rng) for _ in range(80)])
    return (q, *(3 * rng.normal(size=(2, 80, model.nv))))


def test_the_gap_between_rank_and_rounding_is_wide():
    for model in (library.arm7(rotors=True), library.cart_pole(), library.satellite()):
        s = base_parameters(model).singular_values
        rank = base_parameters(model).rank
        assert s[rank - 1] > 1e-4 * s[0]
        assert np.all(s[rank:] < 1e-12 * s[0])


def test_a_motion_may_show_less():
    """Only the second joint moves, and slowly enough that speeds squared do not matter: less is found."""
    model = library.two_link()
    t = np.linspace(0, 2, 60)
    q = np.stack([0 * t, np.sin(3 * t)], axis=-1)
    v = np.stack([0 * t, 3 * np.cos(3 * t)], axis=-1)
    a = np.stack([0 * t, -9 * np.sin(3 * t)], axis=-1)
    assert base_parameters(model, states=(q, v, a)).rank < base_parameters(model).rank


def test_printing():
    text = str(base_parameters(library.pendulum()))
    assert text.startswith("3 base parameters of 10\n  bob.mcx\n")
    assert "without effect: bob.mass" in text


def test_refusals():
    model = library.two_link()
    with pytest.raises(ArgumentError, match="tolerance is 2, expected a number between 0 and 1"):
        base_parameters(model, tolerance=2)
    bad = np.full((3, 2), np.nan)
    with (
        pytest.warns(AlembertWarning, match="regressor: 3 of 3 states have no finite result"),
        pytest.raises(ArgumentError, match="the regressor is not finite at some of the states"),
    ):
        base_parameters(model, states=(bad, bad, bad))

"""Bodies of point masses: what their tables say, and what is refused."""

import dataclasses

import numpy as np
import pytest

import alembert as al
from alembert.flexible import particles, random_particles

TABLE = {"stiffness": [[2.0]], "rotations": np.zeros((2, 1, 3)), "foreshortening": np.zeros((2, 1, 1, 3))}


def two_points(**changes):
    given = {**TABLE, **changes}
    shapes = given.pop("shapes", [[[0.0, 1.0, 0.0]], [[0.0, 2.0, 0.0]]])
    masses = given.pop("masses", [1.0, 3.0])
    return particles(masses, [[1.0, 0, 0], [2.0, 0, 0]], shapes, **given)


def test_integrals_of_two_points():
    body = two_points(names=["near", "far"])
    assert body.mass == 4.0
    assert body.first_moment == (7.0, 0.0, 0.0)
    assert body.modal_mass()[0, 0] == 13.0
    assert body.node("far").mass == 3.0
    assert body.frequencies()[0] == pytest.approx(np.sqrt(2 / 13), rel=1e-14)


def test_a_seed_gives_the_same_body_and_files_keep_it(tmp_path):
    body = random_particles(3, points=4, modes=3)
    assert body == random_particles(np.random.default_rng(3), points=4, modes=3)
    builder = al.ModelBuilder("cloud")
    builder.body("cloud", body, joint=al.Free())
    model = builder.build()
    al.save(model, tmp_path / "cloud.toml")
    assert al.load(tmp_path / "cloud.toml") == model


def test_the_mass_matrix_in_numbers_is_that_of_the_sweeps():
    """`ModalBody.mass_matrix` states (1)-(4) of the sweeps in NumPy: equal but for rounding (sums of some tens of terms)."""
    body = random_particles(1, modes=3)
    builder = al.ModelBuilder("cloud")
    builder.body("cloud", body, joint=al.Free())
    model = builder.build()
    q = model.neutral()
    x = q[model.space.of_bodies["cloud"].q] = np.array([0.1, -0.2, 0.15])
    np.testing.assert_allclose(body.mass_matrix(x), model.mass_matrix(q), atol=1e-13 * body.mass * 10)
    for level in ("inconsistent", "ruthless"):
        other = dataclasses.replace(body, stiffening=level)
        assert np.linalg.eigvalsh(other.mass_matrix(10 * x))[0] > 0
        assert other.least_inertia(10 * x) > 0


@pytest.mark.parametrize(
    ("field", "place", "words"),
    [
        ("mass", (), r"mass is .*, but the masses of its 5 nodes give"),
        ("first_moment", (1,), r"first_moment\[1\] is .*, but the masses of its 5 nodes give"),
        ("second_moment", (0, 0), r"second_moment\[0, 0\] is .* give .*same axes and units"),
        ("shape_moments", (1, 2), r"shape_moments\[1, 2\] is"),
        ("shape_products", (0, 1, 2), r"shape_products\[0, 1, 2\] is"),
        ("foreshortening_products", (1, 1, 0, 2), r"foreshortening_products\[1, 1, 0, 2\] is"),
    ],
)
def test_integrals_that_do_not_fit_the_table_are_refused(field, place, words):
    body = random_particles(2)
    wrong = np.array(getattr(body, field))
    wrong[place] += 1e-3 * np.abs(wrong).max()
    builder = al.ModelBuilder("cloud")
    builder.body(
        "cloud", dataclasses.replace(body, **{field: wrong if place else float(wrong)}), joint=al.Free()
    )
    with pytest.raises(al.ModelError, match=f"body 'cloud': {words}"):
        builder.build()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"masses": [1.0]}, r"have the shapes \(1,\), \(2, 3\) and \(2, 1, 3\), expected \(points,\)"),
        ({"masses": [1.0, -3.0]}, r"the mass of 'p1' is .*-3.0.*, expected a number that is not negative"),
        ({"names": ["one"]}, "1 names for 2 points"),
        ({"rotations": np.zeros((2, 2, 3))}, r"rotations have the shape \(2, 2, 3\), expected \(2, 1, 3\)"),
        (
            {"foreshortening": np.zeros((2, 1, 3))},
            r"foreshortening has the shape \(2, 1, 3\), expected \(2, 1, 1, 3\)",
        ),
        ({"foreshortening": None}, "stiffening='consistent' needs foreshortening_moments"),
        (
            {"turning": np.zeros((2, 1, 3))},
            r"turning has the shape \(2, 1, 3\), expected \(2, 1, 1, 3\)",
        ),
        (
            {"turning": np.ones((2, 1, 1, 3)), "attachment": "p0"},
            "node 'p0' turns to second order; attach it where turning is zero",
        ),
        ({"attachment": "far"}, "no node 'far' to attach it at; there are 'p0', 'p1'"),
    ],
)
def test_messages(changes, words):
    with pytest.raises(al.ModelError, match=words):
        two_points(**changes)


def test_random_bodies_have_fewer_modes_than_freedoms():
    with pytest.raises(al.ModelError, match=r"points=1, modes=3, expected whole numbers and fewer modes"):
        random_particles(0, points=1, modes=3)

"""Modes as motions: the shape, about the point, on loops that stay closed."""

from importlib import resources

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError
from alembert.model.io.native import loads
from alembert.view import Animation


def hanging():
    return al.linearize(al.library.two_link(), [-np.pi / 2, 0.0])


def test_a_mode_swings_in_its_shape():
    linear = hanging()
    modes = linear.modes()
    for k, mode in enumerate(modes):
        motion = modes.motion(k, amplitude=0.1)
        assert isinstance(motion, Animation)
        moved = motion.q - linear.q
        np.testing.assert_allclose(moved[0], 0.1 * mode.shape, atol=1e-15)
        np.testing.assert_allclose(moved[30], -0.1 * mode.shape, atol=1e-15)  # half a turn later
        np.testing.assert_allclose(moved[-1], moved[0], atol=1e-15)  # it can be repeated
        assert motion.time[-1] == pytest.approx(mode.period)  # between 0.4 and 5 s: as it is
    assert np.abs(modes.motion(1).q - linear.q).max() == pytest.approx(0.35)


def test_fast_modes_are_slowed_and_it_is_said():
    model = al.library.pendulum(length=0.001)
    motion = al.linearize(model, model.neutral()).modes().motion()
    assert motion.time[-1] == 2.0
    assert motion.notes["shown"].endswith("times slower")


def test_shapes_of_unstable_pairs_are_shown_once():
    modes = al.linearize(al.library.pendulum(), [np.pi]).modes()
    assert [mode.kind for mode in modes] == ["real", "real"]
    (motion,) = modes.motions()
    assert "grows in" in motion.title or "decays in" in motion.title


def test_loops_stay_closed():
    path = resources.files("alembert.study").joinpath("templates", "fourbar", "model.toml")
    model = loads(path.read_text(encoding="utf-8"))
    q = model.assemble([1.2, -1.0, 1.6], fixed=["drive"]).q
    motion = al.linearize(model, q).modes().motion()
    # the tolerance of assembly
    np.testing.assert_allclose(model.constraint_residual(motion.q), 0, atol=1e-9)
    assert np.ptp(motion.q, axis=0).min() > 0.01


def test_pages_and_views(tmp_path):
    modes = hanging().modes()
    text = modes.to_html(tmp_path / "modes.html").read_text(encoding="utf-8")
    assert "Modes of two_link" in text
    assert text.count('"title":"mode ') == 2
    shown = al.view(modes, inline=True)
    assert shown.html.count('"title":"mode ') == 2


def test_refusals():
    modes = hanging().modes()
    with pytest.raises(ArgumentError, match=r"^motion: mode 2 of 2, expected 0 to 1$"):
        modes.motion(2)
    empty = al.linearize(al.ModelBuilder().body("a", joint=al.Fixed()).build(), []).modes()
    with pytest.raises(ArgumentError, match=r"^view: Modes is empty$"):
        al.view(empty, inline=True)

"""Some of the fuzzing in every run of the tests, and that findings shrink to a file that shows them."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from alembert.joints import REGISTRY
from alembert.verify import fuzz as fuzzing
from alembert.verify import fuzz_files
from alembert.verify.fuzz import broken, draw, draw_tree, fuzz, properties_of, shrunk, stored, write
from alembert.verify.fuzz_properties import TREES, Property

SEEDS = (2, 7, 14)  # small trees, and one mechanism with loops; `make fuzz` has the time for others
FILES = 25  # damaged ones of each kind


@pytest.mark.parametrize("seed", SEEDS)
def test_properties_hold(seed):
    model = draw(seed)
    names = properties_of(model)
    wrong = {name: message for name in names if (message := broken(name, model, seed, None, 3)) is not None}
    assert not wrong, (seed, wrong)


def test_trees_meet_the_whole_registry():
    met = {joint.type.kind for seed in range(60) for joint in draw_tree(seed).joints}
    assert met == set(REGISTRY)


def no_screws(model, q, v, x):
    """A property with a fault: it breaks on screws, and only on those with friction."""
    bad = any(joint.type.kind == "screw" and joint.friction for joint in model.joints)
    return float(bad), 0.5


def with_screw():
    """A seed whose tree has such a joint, among others."""
    for seed in range(0, 1000, 5):
        model = draw_tree(seed)
        if no_screws(model, None, None, None)[0] and len(model.bodies) > 3:
            return seed, model
    raise AssertionError("no such tree")


def test_findings_shrink_to_a_file(tmp_path, monkeypatch):
    seed, model = with_screw()
    (finding, *_) = fuzz(iter([seed]), properties={"no_screws": Property(no_screws)})
    assert finding.name == "no_screws"
    assert finding.message == "error 1, limit 0.5"
    assert len(finding.model.bodies) < len(model.bodies)
    chain = [joint for joint in finding.model.joints if joint.type.kind == "screw"]
    assert len(chain) == 1
    assert chain[0].friction
    assert not any(joint.spring or joint.rotors or joint.armature for joint in finding.model.joints)
    leaves = {joint.child for joint in finding.model.joints} - {
        joint.parent for joint in finding.model.joints
    }
    assert leaves == {chain[0].child}
    place = write(finding, tmp_path)
    assert stored(place) == finding.model
    # the script runs the property by its name, on the model of the file
    monkeypatch.setitem(TREES, "no_screws", Property(no_screws))
    script = (place / "reproduce.py").read_text().replace("SystemExit", "RuntimeError")
    with pytest.raises(RuntimeError):
        exec(compile(script, str(place / "reproduce.py"), "exec"), {"__file__": str(place / "reproduce.py")})


def test_what_does_not_apply_is_no_case():
    """Pinocchio has no modes: nothing is found, and nothing is counted."""
    model = next(m for m in map(draw_tree, range(50)) if m.space.of_bodies)
    counted = Counter()
    assert broken("pinocchio", model, 1, None, 3, None, counted) is None
    assert broken("kinetic_energy", model, 1, None, 3, None, counted) is None
    assert counted == {"kinetic_energy": 3}


def test_an_exception_is_a_finding():
    def raises(model, q, v, x):
        if len(model.bodies) > 1:
            raise ValueError("two are too many")
        return 0.0, 1.0

    finding = shrunk("raises", draw(7), 7, {"raises": Property(raises)})
    assert finding.message == "ValueError: two are too many"
    assert len(finding.model.bodies) == 2


def test_a_model_that_no_file_holds_is_pickled(tmp_path):
    model = next(
        m for m in (draw_tree(seed) for seed in range(50)) if any(j.type.kind == "custom" for j in m.joints)
    )
    place = write(fuzzing.Finding("momentum", 1, model, "x"), tmp_path)
    assert stored(place).nv == model.nv


def test_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "alembert.verify.fuzz", "--minutes", "0", "--seed", "2", "--folder", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout


def test_limits_are_limits():
    """NaN does not pass."""
    assert broken("nan", draw(2), 2, {"nan": Property(lambda *_: (np.nan, 1.0))}) == "error nan, limit 1"


@pytest.mark.parametrize("seed", [41, 132, 135])
def test_trees_whose_last_body_is_fixed_to_the_world(seed):
    model = draw(seed)
    for name in ("frame_jacobians", "wrenches_are_efforts"):
        assert broken(name, model, seed) is None


@pytest.mark.parametrize("suffix", fuzz_files.kinds())
def test_damaged_files_are_read_or_refused_with_their_name(suffix, tmp_path):
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    found = {seed: wrong for seed in range(FILES) if (wrong := fuzz_files.attack(suffix, seed, tmp_path))}
    assert not found


def test_states_keep_away_from_half_turns_of_springs():
    """There the energy of a spring jumps from one way round to the other: no property of the program."""
    model = next(
        m
        for m in map(draw_tree, range(200))
        if any(j.spring is not None and j.type.kind == "free" for j in m.joints)
    )
    joint = next(j for j in model.joints if j.spring and j.type.kind == "free")
    at = model.q_slice(joint.name)
    q, _, _ = fuzzing.states_of(model, 400, 1)
    assert np.abs(q[:, at][:, 3:] @ np.array(joint.spring.rest[3:])).min() > 0.01


def test_closed_states_keep_away_from_singular_ones():
    """The neutral configuration of this mechanism has a row less than others: there accelerations contradict each other."""
    model = fuzzing.draw(31000189)
    assert fuzzing.broken("pickled", model, 31000189, samples=6) is None

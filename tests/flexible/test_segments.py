"""Beams cut into segments: large deflections, nodes of the whole, and the loads in sections."""

import numpy as np
import pytest

import alembert as al
from alembert.flexible import beam

QUARTER = 2 / np.pi  # of a circle: where a beam of length 1 ends that a tip moment of pi / 2 EI has bent


def rolled(segments, moment):
    """The tip of a beam of unit length and stiffness under a moment there, and the model."""
    builder = al.ModelBuilder("rolled", gravity=(0, 0, 0))
    builder.body("beam", beam(1.0, 1.0, EI_z=1.0, segments=segments), joint=al.Fixed())
    builder.frame("tip", "beam", node="tip")
    model = builder.build()
    q = model.neutral()
    for share in (0.5, 1.0):
        q = al.trim(model, q=q, wrenches={"tip": np.array([0, 0, share * moment, 0, 0, 0])}).q
    return model.frame_pose(q, "tip").translation, model


def test_a_beam_bent_to_a_quarter_circle():
    """A segment that bends by h errs by h^4 of its length: the tip by h^3."""
    errors = []
    for k in (2, 4):
        tip, _ = rolled(k, np.pi / 2)
        errors.append(np.linalg.norm(tip - [QUARTER, QUARTER, 0]))
    assert errors[1] < errors[0] / 6
    assert errors[1] < 3e-3


def test_nodes_of_the_whole_are_nodes_of_segments():
    chain = beam(2.0, 0.7, EI_z=3.0, EI_y=2.0, segments=4, nodes={"camera": 0.6}, tip=al.Inertia.point(0.5))
    assert [segment.mass for segment in chain.segments] == pytest.approx([0.35, 0.35, 0.35, 0.85])
    builder = al.ModelBuilder("chain")
    builder.body("boom", chain, joint=al.Revolute((0, 0, 1)), joint_name="pin")
    builder.body(
        "load", al.Inertia.point(1.0), joint=al.Revolute(), joint_name="wrist", parent="boom", node="tip"
    )
    for node in ("camera", "0.5", "tip", "root"):
        builder.frame(f"at {node}", "boom", node=node)
    model = builder.build()
    assert [body.name for body in model.bodies] == ["boom", "boom_2", "boom_3", "boom_4", "load"]
    for node, x in (("camera", 1.2), ("0.5", 1.0), ("tip", 2.0), ("root", 0.0)):
        np.testing.assert_allclose(
            model.frame_pose(model.neutral(), f"at {node}").translation, [x, 0, 0], atol=1e-12
        )
    assert model.frame("at 0.5").body == "boom_2"
    assert model.joint("wrist").parent == "boom_4"


def test_messages():
    with pytest.raises(al.ModelError, match="segments is 0, expected a number of segments"):
        beam(1.0, 1.0, EI_z=1.0, segments=0)
    with pytest.raises(al.ModelError, match="segments=2 and ends='free'"):
        beam(1.0, 1.0, EI_z=1.0, segments=2, ends="free")
    with pytest.raises(al.ModelError, match=r"with segments give damping=\(a, b\)"):
        beam(1.0, 1.0, EI_z=1.0, segments=2, damping_ratio=0.01)
    with pytest.raises(al.ModelError, match="length is None, expected a positive number"):
        beam(None, 1.0, EI_z=1.0, segments=2)
    builder = al.ModelBuilder("chain")
    builder.body("boom", beam(1.0, 1.0, EI_z=1.0, segments=2), joint=al.Fixed())
    builder.frame("eye", "boom", node="middle")
    with pytest.raises(
        al.ModelError, match="frame 'eye' is at the node 'middle' of 'boom', which has 'root', 'tip'"
    ):
        builder.build()


def test_loads_in_the_sections_of_a_cantilever():
    """A force at the tip: constant shear, a moment that grows to the root; half the work is in the strain."""
    body = beam(2.0, 0.3, EI_z=5.0, ends="craig-bampton")
    builder = al.ModelBuilder("cantilever", gravity=(0, 0, 0))
    builder.body("beam", body, joint=al.Fixed())
    builder.frame("tip", "beam", node="tip")
    model = builder.build()
    rest = al.trim(model, wrenches={"tip": np.array([0, 0, 0, 0, 1e-4, 0])})
    run = al.simulate(model, rest.q, duration=0.01, interval=0.01, step=0.01)
    for node, x in (("root", 0.0), ("0.5", 1.0), ("tip", 2.0)):
        load = run.channel(f"section:beam.{node}")
        assert load.components[2:5] == ("moment.z", "force.x", "force.y")
        np.testing.assert_allclose(load.values[0], [0, 0, 1e-4 * (2.0 - x), 0, 1e-4, 0], atol=1e-10)
    deflection = 1e-4 * 2.0**3 / (3 * 5.0)
    assert run.channel("strain_energy:beam").values[0, 0] == pytest.approx(1e-4 * deflection / 2, rel=1e-6)
    assert run.channel("beam").values.shape == (2, 2)
    for name, message in (
        ("section:beam.middle", "no section of a beam 'beam.middle'"),
        ("strain_energy:boom", "no flexible body 'boom'; there is beam"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            run.channel(name)


def test_sections_of_timoshenko_and_of_parameters():
    """The stiffness of a section times its strain, whichever way the beam was made."""
    thick = beam(1.0, 1.0, EI_z=2.0, rhoI_z=1e-3, kGA_y=7.0, ends="craig-bampton")
    loads = thick.node_array("0.5", "loads")
    tip = thick.node_array("tip", "shapes")[:, 1]
    K = thick.array("stiffness")
    q = np.linalg.solve(K, tip)  # under a unit force at the tip
    np.testing.assert_allclose(q @ loads, [0, 0, 0.5, 0, 1.0, 0], atol=1e-9)
    values = {"L": 1.3, "EI": 2.0}
    named = beam(al.Expression("L"), 1.0, EI_z=al.Expression("EI"), bending_y=2)
    plain = beam(1.3, 1.0, EI_z=2.0, bending_y=2)
    np.testing.assert_allclose(
        named.node_array("0.3", "loads", values), plain.node_array("0.3", "loads"), rtol=1e-7, atol=1e-7
    )

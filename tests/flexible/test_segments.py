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


def test_rigid_segments_have_joints_with_springs():
    """Twist and bending both ways; nodes at the joints and between them, the mass and the tip of the whole."""
    spatial = {
        "EI_y": 2.0,
        "EI_z": 3.0,
        "GJ": 1.0,
        "rhoI_y": 0.01,
        "rhoI_z": 0.02,
        "mass_offset": (0.1, -0.2),
    }
    chain = beam(2.0, 0.7, **spatial, segments=4, rigid=True, tip=al.Inertia.point(0.5), damping=(0.0, 0.01))
    builder = al.ModelBuilder("chain")
    builder.body("boom", chain, joint=al.Revolute((0, 0, 1)), joint_name="pin")
    builder.body(
        "load", al.Inertia.point(1.0), joint=al.Revolute(), joint_name="wrist", parent="boom", node="tip"
    )
    turned = al.Placement.from_rpy((0, 0, 0.3), (0, 0.1, 0))
    for node in ("0.1", "0.5", "0.9", "tip", "root"):
        builder.frame(f"at {node}", "boom", turned, node=node)
    model = builder.build()
    assert model.nv == 2 + 4 * 3
    assert model.mass == pytest.approx(1.4 + 0.5 + 1.0)
    for node, x in (("0.1", 0.2), ("0.5", 1.0), ("0.9", 1.8), ("tip", 2.0), ("root", 0.0)):
        pose = model.frame_pose(model.neutral(), f"at {node}")
        np.testing.assert_allclose(pose.translation, [x, 0.1, 0], atol=1e-12)
        np.testing.assert_allclose(pose.rotation[1, 0], np.sin(0.3))
    assert [model.frame(f"at {node}").body for node in ("0.1", "0.5", "tip")] == ["boom", "boom_3", "boom_5"]
    joint = model.joint("boom_2_joint")
    np.testing.assert_allclose(joint.spring.stiffness, np.array([1.0, 2.0, 3.0]) / 0.5)
    np.testing.assert_allclose(joint.friction.viscous, 0.01 * np.array([1.0, 2.0, 3.0]) / 0.5)


def test_rigid_segments_take_parameters():
    builder = al.ModelBuilder("chain", gravity=(0, 0, 0))
    L, EI = builder.parameter("L", 2.0), builder.parameter("EI", 3.0)
    builder.body("boom", beam(L, 0.5, EI_z=EI, segments=2, rigid=True), joint=al.Fixed())
    given = builder.build()
    q = np.array([0.1, -0.2])
    for values in ({}, {"L": 1.5, "EI": 2.0}):
        numbers = {"L": 2.0, "EI": 3.0} | values
        builder = al.ModelBuilder("chain", gravity=(0, 0, 0))
        chain = beam(numbers["L"], 0.5, EI_z=numbers["EI"], segments=2, rigid=True)
        builder.body("boom", chain, joint=al.Fixed())
        for found in ("mass_matrix", "potential_energy"):
            ours = getattr(given, found)(q, parameters=values)
            np.testing.assert_allclose(ours, getattr(builder.build(), found)(q), rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"EI_z": 1.0, "EA": 1.0}, "rigid segments bend and twist at their joints; EA is of modal ones"),
        ({"EI_z": 1.0, "bending_y": 1}, "at their joints; bending_y is of modal ones"),
        ({}, "rigid segments need the stiffness of their joints: EI_y, EI_z or GJ"),
        ({"GJ": 1.0}, "torsion needs the sections' moments of inertia"),
        ({"EI_z": -1.0}, "EI_z is -1.0, expected a positive number"),
        (
            {"EI_z": 1.0, "damping": (0.1, 0.0)},
            "joints between rigid segments take b K; a M is of modal ones",
        ),
        ({"EI_z": 1.0, "mass_offset": 0.1}, "mass_offset is 0.1, expected two numbers, y and z"),
        ({"EI_z": 1.0, "nodes": {"eye": 2.0}}, "node 'eye' is at 2.0, expected a fraction of the length"),
        ({"EI_z": 1.0, "segments": None}, "rigid=True is of segments; give their number"),
    ],
)
def test_messages_of_rigid_segments(arguments, message):
    with pytest.raises(al.ModelError, match=message):
        beam(1.0, 1.0, **({"segments": 2, "rigid": True} | arguments))


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
    wrenches = {"tip": np.array([0, 0, 0, 0, 1e-4, 0])}
    rest = al.trim(model, wrenches=wrenches)
    run = al.simulate(model, rest.q, duration=0.01, interval=0.01, step=0.01, wrenches=wrenches)
    for node, x in (("root", 0.0), ("0.5", 1.0), ("tip", 2.0)):
        load = run.channel(f"section:beam.{node}")
        assert load.components[2:5] == ("moment.z", "force.x", "force.y")
        np.testing.assert_allclose(
            load.values[0], [0, 0, 1e-4 * (2.0 - x), 0, 1e-4, 0], atol=1e-8
        )  # slopes of 4e-5
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

"""Flexible bodies in pictures: pieces at their nodes, exaggerated where they bend little."""

import numpy as np

import alembert as al
from alembert.flexible import beam
from alembert.view import Animation
from alembert.view.deformed import drawn
from alembert.view.page import page, slider_programs
from alembert.view.scene import body_poses, scene


def arm():
    builder = al.ModelBuilder("arm")
    builder.body(
        "link", beam(1.0, 1.0, EI_z=1.0, bending_y=2), joint=al.Revolute((0, 0, 1)), joint_name="pin"
    )
    builder.body(
        "hand",
        al.Inertia.sphere(0.2, 0.1),
        joint=al.Revolute(),
        joint_name="wrist",
        parent="link",
        node="tip",
    )
    builder.frame("eye", "link", (0.0, 0.1, 0.0), node="0.5")
    return builder.build()


def test_pieces_are_where_the_nodes_are():
    model = arm()
    shown, picture = drawn(model), scene(model)
    assert shown.coordinate_names == model.coordinate_names
    assert drawn(shown) is shown
    assert set(picture.bodies) == {"link", "hand"}  # pieces go by the name of the whole
    q = np.array([0.3, 0.1, 0.02, 0.0])
    R, p = body_poses(model, q)
    at = shown.body_index("link at tip")
    np.testing.assert_allclose(p[at], p[shown.body_index("hand")], atol=1e-12)
    (eye,) = picture.frames
    np.testing.assert_allclose(
        p[eye.body] + R[eye.body] @ eye.pose.translation, model.frame_pose(q, "eye").translation, atol=1e-12
    )
    tubes = [
        part for part in picture.parts if picture.bodies[part.body] == "link" and part.kind == "cylinder"
    ]
    assert len(tubes) >= 20  # both halves of ten lengths


def test_small_deformations_can_be_exaggerated():
    model = arm()
    q = np.array([[0.0, 0.001, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0]])
    frames = Animation(model, [0.0, 0.1], q).frames()
    assert max(frames.exaggerated) in (200, 500)
    tip = drawn(model).body_index("link at tip")
    factor, (positions, _) = max(frames.exaggerated.items())
    moved = frames.positions[0, tip, 1]
    np.testing.assert_allclose(positions[0, tip, 1], factor * moved, rtol=1e-9)
    assert '"levels"' in page([Animation(model, [0.0, 0.1], q)])
    assert '"levels"' not in page([Animation(model, [0.0, 0.1], 0 * q)])


def test_sliders_bend_the_modes():
    model = arm()
    program = slider_programs(model, model.neutral(), 1.0)
    (slider,) = (s for s in program.sliders if s.name == "link.bending_y_1")
    assert (slider.low, slider.high) == (-0.3, 0.3)


def test_other_bodies_are_balls_and_rods():
    rng = np.random.default_rng(0)
    x, phi = rng.normal(size=(4, 3)), 0.1 * rng.normal(size=(4, 1, 3))
    nodes = [
        al.model.ModalNode(f"p{k}", x[k], phi[k], np.zeros((1, 3)), np.zeros((1, 1, 3))) for k in range(4)
    ]
    body = al.model.ModalBody.of_points(
        np.ones(4), x, phi, stiffness=[[1.0]], nodes=nodes, foreshortening=np.zeros((4, 1, 1, 3))
    )
    builder = al.ModelBuilder("truss")
    builder.body("truss", body, joint=al.Free())
    kinds = [part.kind for part in scene(builder.build()).parts]
    assert kinds.count("cylinder") == 6  # three rods, each in two halves

"""What is drawn: shapes where the model says, made-up ones where it says nothing, ellipsoids of equal inertia."""

import dataclasses
import struct

import numpy as np
import pytest

import alembert as al
from alembert.errors import AlembertWarning, FileError
from alembert.library.random_tree import FACTORIES
from alembert.view.page import OPERATIONS, configuration, slider_programs
from alembert.view.scene import Surface, body_poses, read_mesh, scene, simplified

MODELS = ["pendulum", "acrobot", "cart_pole", "arm7", "humanoid", "satellite", "random_tree"]


def without_visuals(model):
    bodies = [dataclasses.replace(body, visuals=()) for body in model.bodies]
    return model.replace(bodies=bodies, visuals=())


@pytest.mark.parametrize("name", MODELS)
def test_every_body_is_drawn(name):
    model = al.library.make(name)
    for shown in (model, without_visuals(model)):
        drawn = scene(shown)
        assert {part.body for part in drawn.parts} >= set(range(len(model.bodies)))
        assert all(np.all(np.isfinite(part.matrix)) for part in drawn.parts)
        assert all(min(part.scale) > 0 for part in drawn.parts)
    assert all(part.made_up for part in scene(without_visuals(model)).parts)


def test_shapes_are_where_the_model_says():
    builder = al.ModelBuilder("shapes")
    at = al.Placement.from_rpy((0.1, 0.2, 0.3), (1.0, 2.0, 3.0))
    visuals = [
        al.Visual(al.Box((1.0, 2.0, 3.0)), at, (1.0, 0.5, 0.0, 0.4)),
        al.Visual(al.Capsule(0.1, 0.8)),
        al.Visual(al.Ellipsoid((0.1, 0.2, 0.3))),
    ]
    builder.body("a", al.Inertia.point(1.0), joint=al.Free(), visuals=visuals)
    parts = scene(builder.build()).parts
    assert [part.kind for part in parts] == ["box", "cylinder", "sphere", "sphere", "sphere"]
    np.testing.assert_allclose(parts[0].matrix[:3, :3] / [1, 2, 3], at.pose().rotation, atol=1e-15)
    np.testing.assert_allclose(parts[0].matrix[:3, 3], [1, 2, 3])
    assert parts[0].color == (1.0, 0.5, 0.0, 0.4)
    np.testing.assert_allclose([part.matrix[2, 3] for part in parts[2:4]], [-0.4, 0.4])
    assert parts[4].scale == (0.1, 0.2, 0.3)


def test_ellipsoids_have_the_inertia_of_the_body():
    """A solid ellipsoid of the same mass: I = m/5 (b^2 + c^2, ...) in its axes."""
    rng = np.random.default_rng(3)
    builder = al.ModelBuilder("bodies")
    for k in range(5):
        points = rng.normal(size=(20, 3)) * [1.0, 0.5, 0.3]
        mass = 1.0 + k
        c = points.mean(axis=0)
        d = points - c
        tensor = mass / 20 * (np.sum(d * d) * np.eye(3) - d.T @ d)
        builder.body(f"b{k}", al.Inertia.from_matrix(mass, c, tensor), joint=al.Free())
    model = builder.build()
    for body, m in zip(model.bodies, scene(model).masses, strict=True):
        a, b, c = (r * r for r in m.radii)
        R = m.pose.rotation
        tensor = R @ np.diag([b + c, a + c, a + b]) @ R.T * m.mass / 5
        np.testing.assert_allclose(tensor, body.inertia.matrix(), rtol=1e-12, atol=1e-12)


def test_loops_and_sensors_are_marked():
    drawn = scene(al.library.satellite())
    assert {s.kind for s in drawn.sensors} == {"frame", "gyro", "joint_rate"}
    assert drawn.gravity == 0
    assert drawn.up == (0.0, 0.0, 1.0)
    builder = al.ModelBuilder("bar", gravity=(0.0, -9.81, 0.0))
    builder.body("a", al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute((0, 0, 1)))
    builder.frame("end", "a", (1.0, 0.0, 0.0)).frame("pin", "world", (1.0, 0.0, 0.0))
    builder.loop("closing", al.Spherical(), "pin", "end")
    drawn = scene(builder.build())
    ((a, b),) = drawn.loops
    assert (a.body, b.body) == (-1, 0)
    assert drawn.up == (0.0, 1.0, 0.0)


# --- sliders without a server -------------------------------------------------------------------------------


def interpreted(program, x):
    """What the page computes, from the same instructions."""
    functions = {
        "assign": lambda a, b: a,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "neg": lambda a, b: -a,
        "sin": lambda a, b: np.sin(a),
        "cos": lambda a, b: np.cos(a),
        "sq": lambda a, b: a * a,
        "sqrt": lambda a, b: np.sqrt(a),
        "twice": lambda a, b: 2 * a,
        "inv": lambda a, b: 1 / a,
        "fabs": lambda a, b: abs(a),
        "fmin": min,
        "fmax": max,
        "lt": lambda a, b: float(a < b),
        "le": lambda a, b: float(a <= b),
        "not": lambda a, b: float(not a),
        "if_else_zero": lambda a, b: b if a else 0.0,
    }
    w, out = np.zeros(program.registers), {}
    with np.errstate(all="ignore"):  # branches that are not taken may divide by zero
        for op, result, a, b in program.code.tolist():
            match OPERATIONS[op]:
                case "const":
                    w[result] = program.constants[a]
                case "input":
                    w[result] = x[a]
                case "output":
                    out[result] = w[a]
                case name:
                    w[result] = functions[name](w[a], w[b])
    return np.array([out[k] for k in range(len(out))]).reshape(-1, 12)


def joint_model(kind):
    rng = np.random.default_rng(7)
    builder = al.ModelBuilder(kind)
    builder.body("a", al.Inertia.sphere(1.0, 0.1), joint=al.library.example_joint(kind, rng))
    builder.body(
        "b", al.Inertia.sphere(1.0, 0.1), joint=al.Revolute((0, 0, 1)), parent="a", placement=(1, 0, 0)
    )
    return builder.build()


@pytest.mark.parametrize("kind", list(FACTORIES))
def test_sliders_move_every_joint_type(kind):
    model = joint_model(kind)
    rng = np.random.default_rng(1)
    start = model.random_configuration(rng)
    program = slider_programs(model, start, 1.0)
    assert [s.name for s in program.sliders] == list(model.speed_names)
    x = np.array([rng.uniform(s.low, s.high) for s in program.sliders])
    R, p = body_poses(model, configuration(model, start, x))
    rows = interpreted(program.poses, x)
    # the same operations in another order: some rounding of numbers of order one
    np.testing.assert_allclose(rows[:, :9].reshape(-1, 3, 3), R, atol=1e-13)
    np.testing.assert_allclose(rows[:, 9:], p, atol=1e-13)
    rows = interpreted(program.poses, [s.value for s in program.sliders])
    np.testing.assert_allclose(rows[:, 9:], body_poses(model, start)[1], atol=1e-13)


def test_sliders_respect_limits_and_couplings():
    builder = al.ModelBuilder("gripper")
    for name in ("left", "right"):
        limits = al.Limits((-0.1,), (0.4,)) if name == "left" else al.Limits()
        builder.body(name, al.Inertia.point(1.0, (1, 0, 0)), joint=al.Revolute((0, 0, 1)), limits=limits)
    builder.coupling("mirror", "right_joint", ("left_joint",), (-1.0,), 0.2)
    model = builder.build()
    joints = [joint.name for joint in model.joints]
    start = model.assemble(np.zeros(2)).q
    program = slider_programs(model, start, 1.0)
    (slider,) = program.sliders
    assert (slider.joint, slider.low, slider.high, slider.limited) == (joints[0], -0.1, 0.4, True)
    q = configuration(model, start, np.array([0.3, 0.0]))
    np.testing.assert_allclose(q, [0.3, -0.1])
    np.testing.assert_allclose(
        interpreted(program.poses, [0.3, 0.0])[:, 9:], body_poses(model, q)[1], atol=1e-14
    )


# --- meshes -------------------------------------------------------------------------------------------------

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype=float)
FACES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]


def binary_stl():
    facets = b"".join(struct.pack("<12fH", 0, 0, 0, *CORNERS[f].ravel(), 0) for f in FACES)
    return bytes(80) + struct.pack("<I", len(FACES)) + facets


def ascii_stl():
    lines = ["solid s"]
    for f in FACES:
        lines += ["facet normal 0 0 0", "outer loop", *(f"vertex {x} {y} {z}" for x, y, z in CORNERS[f])]
        lines += ["endloop", "endfacet"]
    return "\n".join([*lines, "endsolid s"]).encode()


def obj():
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
    return "\n".join([*lines, *(f"f {' '.join(f'{k + 1}//1' for k in f)}" for f in FACES)]).encode()


DAE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="{unit}"/><up_axis>{up}</up_axis></asset>
<library_effects><effect id="e"><profile_COMMON><technique sid="t"><phong><diffuse><color>1 0.5 0 1</color></diffuse></phong>
</technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="f" count="12">{numbers}</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="4" material="s"><input semantic="VERTEX" source="#v" offset="0"/><p>{faces}</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="sc"><node><translate>0 0 1</translate><instance_geometry url="#g"><bind_material>
<technique_common><instance_material symbol="s" target="#m"/></technique_common></bind_material></instance_geometry></node>
</visual_scene></library_visual_scenes></COLLADA>"""


def dae(unit=1, up="Z_UP"):
    numbers = " ".join(str(x) for x in CORNERS.ravel())
    return DAE.format(
        unit=unit, up=up, numbers=numbers, faces=" ".join(str(k) for f in FACES for k in f)
    ).encode()


def volume(surface):
    a, b, c = (surface.vertices[surface.faces[:, k]].astype(float) for k in range(3))
    return np.sum(np.cross(a, b) * c) / 6


@pytest.mark.parametrize(
    ("suffix", "content"),
    [("stl", binary_stl()), ("STL", ascii_stl()), ("obj", obj()), ("dae", dae()), ("dae", dae(1, "Y_UP"))],
)
def test_mesh_files(tmp_path, suffix, content):
    path = tmp_path / f"tetrahedron.{suffix}"
    path.write_bytes(content)
    (surface,) = read_mesh(path)
    assert surface.vertices.shape == (4, 3)
    assert surface.faces.shape == (4, 3)
    assert abs(volume(surface)) == pytest.approx(1.0)
    if suffix == "dae":
        assert surface.color == (1.0, 0.5, 0.0, 1.0)


def test_collada_units_axes_and_nodes(tmp_path):
    path = tmp_path / "a.dae"
    path.write_bytes(dae(0.001, "Y_UP"))
    (surface,) = read_mesh(path)
    # (x, y, z + 1) mm with y up becomes (x, -(z + 1), y)
    np.testing.assert_allclose(surface.vertices.min(axis=0), [0, -0.004, 0], atol=1e-9)
    np.testing.assert_allclose(surface.vertices.max(axis=0), [0.001, -0.001, 0.002], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.stl", b"solid nothing", "has no triangles"),
        ("a.obj", b"v 0 0 0\nf 1 2 3", "has no triangles"),
        ("a.dae", b"<!DOCTYPE x [<!ENTITY a 'b'>]><COLLADA/>", "no readable DAE mesh: it declares entities"),
        ("a.dae", b"<COLLADA", "no readable DAE mesh"),
        ("a.obj", b"v 0 nan 0\nv 1 0 0\nv 0 1 0\nf 1 2 3", "a vertex is not finite"),
    ],
)
def test_bad_mesh_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_mesh(path)
    with pytest.raises(FileError, match="the mesh file is not there"):
        read_mesh(tmp_path / "none.stl")


def test_simplified_meshes_keep_their_size():
    """A sphere of 20000 triangles as at most 2000: the bounding box stays within a cell."""
    n = 100
    theta, phi = np.meshgrid(np.linspace(0, np.pi, n + 1), np.linspace(0, 2 * np.pi, n, endpoint=False))
    vertices = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=-1)
    index = np.arange(vertices[..., 0].size).reshape(theta.shape)
    a, b = index[:, :-1], np.roll(index, -1, axis=0)[:, :-1]
    c, d = index[:, 1:], np.roll(index, -1, axis=0)[:, 1:]
    faces = np.concatenate([np.stack([a, c, b], -1).reshape(-1, 3), np.stack([b, c, d], -1).reshape(-1, 3)])
    small = simplified(Surface(vertices.reshape(-1, 3), faces), 2000)
    assert 500 < len(small.faces) <= 2000
    np.testing.assert_allclose(np.abs(small.vertices).max(axis=0), 1.0, atol=0.1)
    assert volume(small) == pytest.approx(4 * np.pi / 3, rel=0.1)


def test_a_missing_mesh_is_replaced_with_a_warning(tmp_path):
    builder = al.ModelBuilder("m")
    visual = al.Visual(al.Mesh(str(tmp_path / "none.stl")))
    builder.body("a", al.Inertia.box(1.0, (1, 2, 3)), joint=al.Free(), visuals=[visual])
    model = builder.build()
    with pytest.warns(
        AlembertWarning,
        match=r"a mesh is drawn as a made-up shape: [^:]*none.stl: the mesh file is not there",
    ):
        drawn = scene(model)
    assert [part.kind for part in drawn.parts] == ["box"]
    np.testing.assert_allclose(sorted(drawn.parts[0].scale), [1, 2, 3])


def test_a_mesh_is_drawn_once_however_often_it_is_used(tmp_path):
    (tmp_path / "t.stl").write_bytes(binary_stl())
    builder = al.ModelBuilder("m")
    for name in "ab":
        visual = al.Visual(al.Mesh(str(tmp_path / "t.stl"), (1, 1, 0.5)))
        builder.body(name, al.Inertia.box(1.0, (1, 2, 3)), joint=al.Free(), visuals=[visual])
    drawn = scene(builder.build())
    assert len(drawn.meshes) == 1
    assert [part.mesh for part in drawn.parts] == [0, 0]
    assert drawn.parts[0].scale == (1.0, 1.0, 0.5)


def test_panels_are_drawn_as_panels():
    """A body without shapes that is flat or compact is the box of its inertia, joined to its joint."""
    builder = al.ModelBuilder("panels")
    builder.body("hub", al.Inertia.box(100, (1, 1, 1)), joint=al.Free())
    for name, size, com in (
        ("panel", (4.0, 1.5, 0.03), (2.5, 0, 0)),
        ("door", (1.0, 0.05, 2.0), (0.5, 0, 1)),
    ):
        builder.body(
            name,
            al.Inertia.box(5, size, com),
            joint=al.Revolute((0, 1, 0)),
            parent="hub",
            placement=(0.5, 0, 0),
        )
    builder.body("rod", al.Inertia.rod(1.0, (0, 0, 0), (2, 0, 0)), joint=al.Revolute((0, 1, 0)), parent="hub")
    drawn = al.view.scene(builder.build())
    for k, size in ((1, (0.03, 1.5, 4.0)), (2, (0.05, 1.0, 2.0))):
        (box,) = [part for part in drawn.parts if part.body == k and part.kind == "box"]
        assert sorted(box.scale) == pytest.approx(size, rel=1e-6)
    assert not [part for part in drawn.parts if part.body == 3 and part.kind == "box"]

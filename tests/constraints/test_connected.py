"""Arms that hold an object, a leg on a support, a tool on a robot: several models, connected without rebuilding any."""

import functools

import numpy as np
import pytest

import alembert as al
from alembert import library


def body(name, mass=2.0, handles=2):
    builder = al.ModelBuilder(name)
    inertia = al.Inertia.box(mass, (0.3, 0.2, 0.1))
    builder.body("body", inertia, joint=al.Free())
    for k in range(handles):
        builder.frame(
            f"handle{k}", "body", al.Placement.from_rpy((0.1 * k, 0.2, 0.3), (0.15 - 0.3 * k, 0.02, 0.05))
        )
    return builder.build()


@functools.cache
def arm(joints, seed=0):
    """A serial chain with `joints` revolute joints; its last body has the frame `tip`."""
    chain = library.random_tree(20 + seed, bodies=joints, kinds=("revolute",), branching=0)
    return chain.replace(
        frames=(*chain.frames, al.Frame("hand", chain.bodies[-1].name, al.Placement((0.1, 0, 0.2))))
    )


def held(sizes, types):
    """Arms that hold one object, the state at which all grips are closed, and their speeds."""
    rng = np.random.default_rng(1)
    models = {f"arm{k}": arm(n, k) for k, n in enumerate(sizes)} | {
        "object": body("object", handles=len(sizes))
    }
    states = {name: [m.random_configuration(k), np.zeros(m.nv)] for k, (name, m) in enumerate(models.items())}
    q0 = states["object"][0]
    links = []
    for k, kind in enumerate(types):
        # place a frame on the object where the hand is
        m = models[f"arm{k}"]
        X = models["object"].frame_pose(q0, "body").inverse() @ m.frame_pose(states[f"arm{k}"][0], "hand")
        frames = tuple(f for f in models["object"].frames if f.name != f"handle{k}")
        models["object"] = models["object"].replace(
            frames=(*frames, al.Frame(f"handle{k}", "body", al.Placement.from_pose(X)))
        )
        links.append(al.Link(f"grip{k}", kind, f"arm{k}:hand", f"object:handle{k}"))
    team = al.Connected(models, links)
    whole = team.combined()
    q = np.concatenate([states[name][0] for name in models])
    G = whole.constraint_jacobian(q)
    v = rng.normal(size=whole.nv)
    v = v - np.linalg.lstsq(G, G @ v, rcond=1e-10)[0]
    v = v - np.linalg.lstsq(G, G @ v, rcond=1e-10)[0]
    start = 0
    for name, m in models.items():
        states[name][1] = v[start : start + m.nv]
        start += m.nv
    return team, states, whole, q, v


CASES = [
    ((6, 7), (al.Fixed(), al.Revolute())),
    ((4, 6), (al.Fixed(), al.Fixed())),  # an arm that cannot move its hand in every way
    ((3, 3, 3), (al.Spherical(), al.Spherical(), al.Spherical())),
]


@pytest.mark.parametrize(("sizes", "types"), CASES)
def test_arms_with_an_object_agree_with_one_model(sizes, types):
    team, states, whole, q, v = held(sizes, types)
    for residual in team.residuals(states).values():
        assert np.max(np.abs(residual), initial=0.0) < 1e-13
    rng = np.random.default_rng(3)
    efforts = {name: rng.normal(size=m.nv) for name, m in team.models.items() if name != "object"}
    tau = np.concatenate([efforts.get(name, np.zeros(m.nv)) for name, m in team.models.items()])
    expected = whole.constrained_dynamics(q, v, tau)
    for options in ({}, {"reference": "object"}):
        found = team.accelerations(states, efforts, **options)
        a = np.concatenate([found.accelerations[name] for name in team.models])
        np.testing.assert_allclose(a, expected.accelerations, atol=1e-8 * np.linalg.norm(a))
        for name, wrench in found.wrenches.items():
            np.testing.assert_allclose(
                wrench, expected.reactions[name], atol=1e-7 * (1 + np.linalg.norm(wrench))
            )


def test_known_forces_in_free_directions_and_known_relative_accelerations():
    """A motor and a brake at the contact: the same as efforts and wrenches on the models by themselves."""
    team, states, whole, q, v = held((7, 6), (al.Revolute(), al.Fixed()))
    h, alpha = np.array([1.5]), np.array([0.3, -0.1, 0.2, 0.05, 0.1])
    found = team.accelerations(states, forces={"grip0": h}, relative={"grip0": alpha})
    again = team.accelerations(states, forces={"grip0": h}, relative={"grip0": alpha}, reference="object")
    for name in team.models:
        np.testing.assert_allclose(found.accelerations[name], again.accelerations[name], atol=1e-8)
    a = np.concatenate([found.accelerations[name] for name in team.models])
    rows = whole.constraint_jacobian(q, active=["grip0"]) @ a + whole.constraint_bias(q, v, active=["grip0"])
    np.testing.assert_allclose(rows, alpha, atol=1e-9)
    # the wrench has the known moment about the joint's axis, and the object moves as it says
    np.testing.assert_allclose(found.wrenches["grip0"][2], 1.5, rtol=1e-12)
    box = team.models["object"]
    wrenches = {"handle0": found.wrenches["grip0"], "handle1": found.wrenches["grip1"]}
    alone = box.forward_dynamics(*states["object"], np.zeros(6), wrenches=wrenches)
    np.testing.assert_allclose(found.accelerations["object"], alone, atol=1e-9 * np.linalg.norm(alone))


def test_a_support_whose_motion_is_known():
    """A leg whose base follows a given motion, standing on nothing but its hold on an object."""
    leg = library.random_tree(5, bodies=4, kinds=("revolute",), branching=0, floating=True)
    leg = leg.replace(frames=(*leg.frames, al.Frame("foot", leg.bodies[-1].name, al.Placement((0, 0, 0.1)))))
    base = leg.joints[0].name
    q, v = leg.random_configuration(1), np.zeros(leg.nv)
    box = body("box", handles=0)
    X = box.frame_pose(box.neutral(), "body").inverse() @ leg.frame_pose(q, "foot")
    box = box.replace(frames=(al.Frame("hold", "body", al.Placement.from_pose(X)),))
    team = al.Connected({"leg": leg, "box": box}, [al.Link("grip", al.Spherical(), "leg:foot", "box:hold")])
    states = {"leg": (q, v), "box": (box.neutral(), np.zeros(6))}
    motion = np.array([0.1, 0.2, -0.1, 1.0, 0.5, -0.3])
    for options in ({}, {"reference": "box"}):
        found = team.accelerations(states, prescribed={"leg": {base: motion}}, **options)
        np.testing.assert_allclose(found.accelerations["leg"][:6], motion, atol=1e-12)
        whole = team.combined()
        names = {f"leg/{base}": motion}
        expected = whole.hybrid_dynamics(np.r_[q, box.neutral()], np.zeros(whole.nv), accelerations=names)
        a = np.concatenate([found.accelerations["leg"], found.accelerations["box"]])
        np.testing.assert_allclose(a, expected.accelerations, atol=1e-8 * np.linalg.norm(a))


def test_another_tool_builds_nothing_for_the_robot(monkeypatch):
    from alembert.engine.kernel import Kernel

    built = []
    made = Kernel._made
    monkeypatch.setattr(Kernel, "_made", lambda self, *a: built.append(self) or made(self, *a))
    robot = arm(6, 9).replace(name="robot of this test", gravity=(0.0, 0.0, -3.7))
    tools = [body(f"tool {m}", m) for m in (0.5, 1.5)]
    grip = al.Link("grip", al.Fixed(), "robot:hand", "tool:body")
    q, v = robot.random_configuration(0), np.zeros(6)
    X = robot.frame_pose(q, "hand")
    place = np.concatenate([X.translation, al.Placement.from_pose(X).quaternion])
    first = al.Connected({"robot": robot, "tool": tools[0]}, [grip])
    states = {"robot": (q, v), "tool": (place, np.zeros(6))}
    a = first.accelerations(states).accelerations["robot"]
    of_robot = {id(kernel) for kernel in robot.compute.kernels.values()}
    assert of_robot & {id(kernel) for kernel in built}
    count = len(robot.compute.kernels)
    second = first.release("grip").connect(grip, tool=tools[1])
    built.clear()
    b = second.accelerations(states).accelerations["robot"]
    assert not of_robot & {id(kernel) for kernel in built}
    assert len(robot.compute.kernels) == count
    assert all(kernel.name != "constraint_rows" for kernel in built)
    assert np.linalg.norm(a - b) > 1e-3
    # letting go builds nothing at all
    built.clear()
    alone = second.release("grip").accelerations(states)
    np.testing.assert_allclose(alone.accelerations["robot"], robot.forward_dynamics(q, v, v), atol=1e-12)
    assert built == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: al.Link("x", 3, "a:b", "c:d"), r"^Link 'x': type is 3, expected a joint type or a pair"),
        (
            lambda: al.Link("x", al.Distance(al.Expression("l")), "a:b", "c:d"),
            r"^Link 'x': the distance depends on parameters",
        ),
        (lambda: al.Connected({"a:b": arm(6)}), r"^Connected: the model name 'a:b' has a colon"),
        (
            lambda: al.Connected({"a": arm(6)}, [al.Link("x", al.Fixed(), "a:hand", "b:c")]),
            r"^Connected: link 'x' refers to the model 'b'",
        ),
        (
            lambda: al.Connected({"a": arm(6)}, [al.Link("x", al.Fixed(), "a:hand", "a:world")] * 2),
            r"^Connected: two links have the same name$",
        ),
        (lambda: al.Connected({"a": arm(6)}).release("x"), r"^Connected.release: no link 'x'"),
        (
            lambda: al.Connected({"a": arm(6)}).accelerations({}),
            r"^Connected: states has no 'a', expected \(q, v\) for every model$",
        ),
        (lambda: _one().accelerations(_STATE, {"b": 1}), r"^accelerations: efforts: no model 'b'"),
        (lambda: _one().accelerations(_STATE, forces={"y": 1}), r"^accelerations: forces: no link 'y'"),
        (
            lambda: _one().accelerations(_STATE, forces={"x": 1.0}),
            r"^accelerations: forces: 'x' has shape \(1,\), expected \(0,\)$",
        ),
        (
            lambda: _one(al.Distance(1.0)).accelerations(_STATE, forces={"x": 1.0}),
            r"^accelerations: forces: link 'x' is a distance",
        ),
        (lambda: _one().accelerations(_STATE, reference="b"), r"^accelerations: reference: no model 'b'"),
        (
            lambda: _one().accelerations(_STATE, reference="a"),
            r"^accelerations: reference: 'a' is no single free body$",
        ),
        (
            lambda: al.Connected({"a": _coupled()}),
            r"^Connected: the model 'a' has constraints of its own; make them links$",
        ),
        (
            lambda: al.Connected(
                {"a": arm(6), "o": body("o")},
                [al.Link(n, al.Spherical(), "a:hand", f"o:handle{k}") for k, n in enumerate("xy")],
            ).accelerations(
                {"a": (np.zeros(6), np.zeros(6)), "o": (body("o").neutral(), np.zeros(6))}, reference="o"
            ),
            r"^accelerations: reference: link 'y' is not the only one between 'o' and one other model; leave reference out$",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(al.ArgumentError, match=message):
        make()


_STATE = {"a": (np.full(6, 0.3), np.zeros(6))}


def _one(kind=None):
    return al.Connected({"a": arm(6)}, [al.Link("x", kind or al.Fixed(), "a:world", "a:hand")])


def _coupled():
    from alembert.model import Coupling

    names = [joint.name for joint in arm(6).joints]
    return arm(6).replace(couplings=(Coupling("c", names[0], (names[1],), (1.0,)),))

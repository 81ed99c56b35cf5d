"""For `test_every_method`: mechanisms with a state and a dense oracle each, and the table of checks by method."""

from types import SimpleNamespace

import numpy as np
from constraint_helpers import tree_of
from scipy.linalg import null_space

import alembert as al

NEAR = 1e-9
"""relative to the terms: mechanisms of a few bodies, condition numbers up to some 1e4, rounding"""
DIFFERENCE = 1e-6
"""central differences with steps of 1e-5: h^2 and eps / h of the terms, which are some tens here"""

GRIPPER = """
<robot name="gripper_arm">
  <link name="base"/>
  {links}
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="5"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="hand"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.5"/><limit lower="-2" upper="2" effort="50" velocity="5"/>
    <dynamics damping="0.3" friction="0.1"/></joint>
  <joint name="left" type="prismatic"><parent link="hand"/><child link="finger_left"/><axis xyz="1 0 0"/>
    <origin xyz="0 0 0.3"/><limit lower="0" upper="0.05" effort="20" velocity="1"/></joint>
  <joint name="right" type="prismatic"><parent link="hand"/><child link="finger_right"/><axis xyz="-1 0 0"/>
    <origin xyz="0 0 0.3"/><limit lower="0" upper="0.05" effort="20" velocity="1"/>
    <mimic joint="left" multiplier="1.0" offset="0.0"/></joint>
</robot>
"""
LINK = """<link name="{name}"><inertial><origin xyz="{x} 0.01 {z}"/><mass value="{m}"/>
  <inertia ixx="{i}" ixy="0" ixz="0" iyy="{i}" iyz="0" izz="{i}"/></inertial></link>"""


def mimic(path):
    """An arm with a gripper whose right finger mimics the left, from URDF."""
    names = {"upper": (0.0, 0.25, 2.0, 0.05), "hand": (0.02, 0.1, 1.0, 0.01)}
    names |= {"finger_left": (0.0, 0.03, 0.2, 1e-4), "finger_right": (0.01, 0.03, 0.25, 2e-4)}
    links = "".join(LINK.format(name=n, x=x, z=z, m=m, i=i) for n, (x, z, m, i) in names.items())
    file = path / "gripper.urdf"
    file.write_text(GRIPPER.format(links=links))
    return al.load(file), np.array([0.4, -0.7, 0.02, 0.02])


def gear(path):
    """A motor that turns a link through a gear, on a link that swings."""
    builder = al.ModelBuilder("geared", gravity=(0, -9.81, 0))
    rod = al.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0))
    builder.body("arm", rod, joint=al.Revolute(), joint_name="arm")
    builder.body(
        "rotor", al.Inertia.cylinder(0.3, 0.05, 0.04), joint=al.Revolute(), joint_name="motor", parent="arm"
    )
    builder.body("link", rod, joint=al.Revolute(), joint_name="link", parent="arm", placement=(0.5, 0, 0))
    builder.coupling("gear", "motor", ["link"], [-12.0], offset=0.3)
    return builder.build(), np.array([0.5, 0.3 + 12 * 0.2, -0.2])


def differential(path):
    """A carrier that turns by half the sum of its two wheels."""
    builder = al.ModelBuilder("differential", gravity=(0, -9.81, 0))
    disc = al.Inertia.cylinder(1.0, 0.2, 0.05)
    for name in ("left", "right"):
        builder.body(name, disc, joint=al.Revolute(), joint_name=name)
    builder.body(
        "carrier", al.Inertia.rod(2.0, (0, 0, 0), (0.6, 0, 0)), joint=al.Revolute(), joint_name="carrier"
    )
    builder.coupling("differential", "carrier", ["left", "right"], [0.5, 0.5])
    return builder.build(), np.array([0.3, 0.7, 0.5])


def four_bar(path):
    """Bars of different lengths, a loop closed by a revolute joint; a drive at the crank."""
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    lengths = {"crank": 0.4, "coupler": 1.0, "rocker": 0.8}
    bars = {n: al.Inertia.rod(l, (0, 0, 0), (l, 0, 0)) for n, l in lengths.items()}
    builder.body("crank", bars["crank"], joint=al.Revolute(), joint_name="crank")
    builder.body(
        "coupler",
        bars["coupler"],
        joint=al.Revolute(),
        joint_name="coupler",
        parent="crank",
        placement=(0.4, 0, 0),
    )
    builder.body("rocker", bars["rocker"], joint=al.Revolute(), joint_name="rocker", placement=(0.9, 0, 0))
    builder.frame("end", "coupler", (1.0, 0, 0)).frame("top", "rocker", (0.8, 0, 0))
    builder.loop("pin", al.Revolute(), "end", "top")
    model = builder.build()
    return model, model.assemble([1.0, -0.3, 1.7], fixed=["crank"]).q


MECHANISMS = (mimic, gear, differential, four_bar)


def case_of(mechanism, folder):
    """A model, a state on its constraints, and the dense oracle."""
    model, q = mechanism(folder)
    rng = np.random.default_rng(5)
    G, tree = model.constraint_jacobian(q), tree_of(model)
    N = null_space(G, rcond=1e-9)
    v = N @ rng.normal(size=N.shape[1])
    gamma = model.constraint_bias(q, v)
    a = N @ rng.normal(size=N.shape[1]) - np.linalg.pinv(G, rcond=1e-9) @ gamma
    tau, x = rng.normal(size=(2, model.nv))
    frame = model.bodies[-1].name
    M, h = tree.mass_matrix(q), tree.bias_forces(q, v)
    A = N @ np.linalg.solve(N.T @ M @ N, N.T)
    return SimpleNamespace(
        model=model, tree=tree, q=q, v=v, a=a, tau=tau, x=x, G=G, gamma=gamma, N=N, A=A, M=M, h=h, frame=frame,
        F=rng.normal(size=6), J=tree.frame_jacobian(q, frame), free=tuple(model.independent_coordinates(q).names),
    )  # fmt: skip


def near(found, expected, tolerance=NEAR):
    expected = np.asarray(expected)
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance * (1 + np.abs(expected).max(initial=0))
    )


def slope(function, *along, h=1e-5):
    """The derivative of function(s) at 0, by central differences."""
    return (np.asarray(function(h)) - np.asarray(function(-h))) / (2 * h)


def moved(c, d, s):
    return c.model.assemble(c.model.integrate(c.q, s * d)).q


TABLE = {}


def covers(*names):
    def enter(check):
        for name in names:
            assert name not in TABLE, name
            TABLE[name] = check
        return check

    return enter

"""The same questions put to Pinocchio, MuJoCo and Exudyn."""

import dataclasses

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, Skipped, family
from alembert.verify.mechanisms import four_bars, parallelogram
from alembert.verify.programs import DYNAMICS
from alembert.verify.random_models import states

case = family("differential")


@case(
    source="Pinocchio (Carpentier and others 2019): aba, rnea, crba on random trees of its joint types",
    kind="independent program",
    tags=("tree", "random"),
    needs=("pinocchio",),
)
def pinocchio_random_trees(count: int = 300) -> Items:
    """Forward and inverse dynamics, mass matrix and energies on random trees, fixed and floating."""
    from alembert.verify.in_pinocchio import JOINTS

    yield from _against("pinocchio", (*JOINTS, "fixed"), count)


@case(
    source="Exudyn (Gerstmayr 2023): mass matrix and forces of its kinematic tree",
    kind="independent program",
    tags=("tree", "random"),
    needs=("exudyn",),
)
def exudyn_random_trees(count: int = 300) -> Items:
    """Forward and inverse dynamics and mass matrix on random trees of hinges and slides."""
    from alembert.verify.in_exudyn import JOINTS

    yield from _against("exudyn", tuple(JOINTS), count, floating=(False,), energy=False)


def _against(
    name: str,
    kinds: tuple[str, ...],
    count: int,
    *,
    floating: tuple[bool, ...] = (False, True),
    energy: bool = True,
) -> Items:
    reason = "1e-10 is 5e5 eps: another order of operations, condition numbers up to 1e6"
    for floats in floating:
        model = library.random_tree(21 + floats, bodies=13, kinds=kinds, floating=floats)
        other = DYNAMICS[name].load(model)
        q, v, x = states(model, count)
        label = "floating" if floats else "fixed"
        theirs = np.array([other.forward_dynamics(*s) for s in zip(q, v, x, strict=True)])
        yield Check(
            f"{label}: accelerations", _error(model.forward_dynamics(q, v, x), theirs), 0.0, 1e-10, reason
        )
        theirs = np.array([other.inverse_dynamics(*s) for s in zip(q, v, x, strict=True)])
        yield Check(f"{label}: efforts", _error(model.inverse_dynamics(q, v, x), theirs), 0.0, 1e-10, reason)
        few = q[:20]
        theirs = np.array([other.mass_matrix(s) for s in few])
        yield Check(f"{label}: mass matrices", _error(model.mass_matrix(few), theirs), 0.0, 1e-10, reason)
        if not energy:
            continue
        theirs = np.array([other.potential_energy(s) for s in few])
        ours = model.potential_energy(few)
        yield Check(
            f"{label}: change of potential",
            np.max(np.abs((ours - ours[0]) - (theirs - theirs[0]))) / np.max(np.abs(ours)),
            0.0,
            1e-10,
            reason,
        )


def _error(found: np.ndarray, expected: np.ndarray) -> float:
    """Relative to the size of the vector or matrix, state by state."""
    axes = tuple(range(1, np.ndim(found)))
    return float(np.max(np.abs(found - expected).max(axis=axes) / np.abs(expected).max(axis=axes)))


ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
    "solo12": ("solo_description/robots/solo12.urdf", True),
}


@case(
    source="""Pinocchio (Carpentier and others 2019): aba and rnea on robots of example-robot-data, each program
    reading the URDF file""",
    kind="independent program",
    tags=("tree",),
    needs=("pinocchio",),
)
def pinocchio_robots(count: int = 100) -> Items:
    """Forward and inverse dynamics of robots read from their files."""
    import warnings
    from pathlib import Path

    import pinocchio as pin

    from alembert.errors import AlembertWarning
    from alembert.model.io.convert import accelerations_to_pinocchio, to_pinocchio
    from alembert.model.io.urdf import load_urdf

    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    if not folder.is_dir():
        raise Skipped("the robots are not installed (pip install example-robot-data)")
    reason = "1e-10 is 5e5 eps: condition numbers up to 1e6 (light hands on heavy trunks)"
    for name, (path, floating) in ROBOTS.items():
        file = folder / path
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlembertWarning)
            model = load_urdf(file, floating=floating, unphysical="warn")
        # Pinocchio's algorithms know neither the friction nor the mimic joints of the file
        joints = tuple(dataclasses.replace(joint, friction=None) for joint in model.joints)
        model = dataclasses.replace(model, joints=joints, couplings=())
        root = [pin.JointModelFreeFlyer()] if floating else []
        other = pin.buildModelFromUrdf(str(file), *root)
        data = other.createData()
        q, v, x = states(model, count)
        qp, vp = to_pinocchio(model, q, v, pin_model=other)
        _, xp = to_pinocchio(model, q, x, pin_model=other)
        theirs = np.array([pin.aba(other, data, *s).copy() for s in zip(qp, vp, xp, strict=True)])
        ours = accelerations_to_pinocchio(model, q, v, model.forward_dynamics(q, v, x), pin_model=other)
        error = np.max(np.abs(ours - theirs).max(axis=1) / np.abs(theirs).max(axis=1))
        yield Check(f"{name}: accelerations", error, 0.0, 1e-10, reason)


@case(
    source="Pinocchio (Carpentier, Mansard 2018): computeABADerivatives on a seven-joint arm",
    kind="independent program",
    tags=("tree", "sensitivity"),
    needs=("pinocchio",),
)
def pinocchio_derivatives(count: int = 50) -> Items:
    """Derivatives of forward dynamics with respect to configuration, speeds and efforts."""
    import pinocchio as pin

    from alembert.verify.in_pinocchio import in_pinocchio

    model = library.arm7()
    model = model.replace(
        joints=tuple(dataclasses.replace(j, friction=None, spring=None, rotors=()) for j in model.joints)
    )
    other = in_pinocchio(model)
    data = other.createData()
    q, v, tau = states(model, count)
    found = model.forward_dynamics_derivatives(q, v, tau)
    theirs = []
    for state in zip(q, v, tau, strict=True):
        pin.computeABADerivatives(other, data, *state)
        theirs.append((data.ddq_dq.copy(), data.ddq_dv.copy(), data.Minv.copy()))
    reason = "1e-9: condition number of the arm times rounding of some thousand operations"
    for k, (name, ours) in enumerate((("dq", found.dq), ("dv", found.dv), ("dtau", found.dtau))):
        expected = np.array([t[k] for t in theirs])
        if name == "dtau":
            expected = np.triu(expected) + np.swapaxes(np.triu(expected, 1), -1, -2)
        error = np.max(np.abs(ours - expected)) / np.max(np.abs(expected))
        yield Check(f"{name}: relative difference", error, 0.0, 1e-9, reason)


@case(
    source="""Pinocchio (Carpentier and others 2021): constraintDynamics on the N-four-bar mechanism (IFToMM A02)""",
    kind="independent program",
    tags=("loops", "iftomm"),
    needs=("pinocchio",),
)
def pinocchio_loops(windows: tuple[int, ...] = (1, 3)) -> Items:
    """Accelerations of four-bars; a pin in the plane is a point contact in space there, one row of it redundant."""
    import pinocchio as pin

    from alembert.verify.in_pinocchio import in_pinocchio

    for count in windows:
        model = four_bars(count)
        other = in_pinocchio(model.replace(loops=()))
        at = {joint.child: other.getJointId(joint.name) for joint in model.joints}
        contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        post, beam = (pin.SE3(np.eye(3), np.array(p)) for p in ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0)))
        for i in range(count):
            contact = pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D,
                other,
                at[f"post{i + 1}"],
                post,
                at[f"beam{i}"],
                beam,
                pin.ReferenceFrame.LOCAL,
            )
            contacts.append(contact)
            contact_data.append(contact.createData())
        data = other.createData()
        pin.initConstraintDynamics(other, data, contacts, contact_data)
        q, v = parallelogram(model, 0.4, -0.8)
        tau = np.random.default_rng(0).normal(size=model.nv)
        settings = pin.ProximalSettings(1e-14, 1e-10, 20)
        expected = pin.constraintDynamics(other, data, q, v, tau, contacts, contact_data, settings)
        found = model.constrained_dynamics(q, v, tau).accelerations
        error = np.max(np.abs(found - expected)) / np.linalg.norm(expected)
        yield Check(
            f"N = {count}: relative difference",
            error,
            0.0,
            1e-10,
            "proximal iterations there, regularised by 1e-10",
        )


@case(
    source="""MuJoCo (Todorov, Erez, Tassa 2012): mj_forward, mj_inverse, mj_fullM on random trees of its joint
    types, without contacts""",
    kind="independent program",
    tags=("tree", "random"),
    needs=("mujoco",),
)
def mujoco_random_trees(count: int = 300) -> Items:
    """Forward and inverse dynamics, mass matrix and energies on random trees, fixed and floating."""
    yield from _against("mujoco", ("revolute", "prismatic", "spherical", "fixed"), count)


@case(
    source="MuJoCo (Todorov, Erez, Tassa 2012): mj_forward on the humanoid of alembert.library",
    kind="independent program",
    tags=("tree",),
    needs=("mujoco",),
)
def mujoco_humanoid(count: int = 200) -> Items:
    """Accelerations of a floating humanoid."""
    model = library.humanoid()
    plain = [dataclasses.replace(j, friction=None, spring=None, rotors=(), armature=()) for j in model.joints]
    model = model.replace(joints=tuple(plain))
    other = DYNAMICS["mujoco"].load(model)
    q, v, tau = states(model, count)
    theirs = np.array([other.forward_dynamics(*s) for s in zip(q, v, tau, strict=True)])
    ours = model.forward_dynamics(q, v, tau)
    error = np.max(np.abs(ours - theirs).max(axis=1) / np.abs(theirs).max(axis=1))
    yield Check("relative difference", error, 0.0, 1e-10, "5e5 eps: condition numbers up to 1e5")

"""MJCF, compiled by the optional `mujoco` package and read from the compiled model.

Bodies keep their names and their frames: `model.frame("arm")` is MuJoCo's body frame. MuJoCo moves a body by
several joints, each about an anchor p_k in body axes and from a reference position r_k,

    X_PB = X_body  prod_k  T(p_k) J_k(q_k - r_k) T(-p_k),                                        (1)

which becomes a chain of joints through massless bodies called `BODY/JOINT`. As J(q - r) = J(-r) J(q), the
constant J(-r) goes into the placement and **q is MuJoCo's qpos** (see `convert` for the free joint's speeds).
When the last anchor is not the body's origin, a fixed joint `BODY/anchor` leads from it to the body.

    armature, damping, frictionloss, stiffness and springref, ranges   the joint's
    motors on joints       actuators of gear times gain; other actuators are refused, or left out on request
    sites                  frames (`NAME_site` where a body has the name)
    connect, weld          loops with a spherical or fixed joint; rigid here, soft in MuJoCo
    joint equality         a coupling when linear, otherwise an equation
    tendon equality        of tendons over joints, or straight ones over sites, an equation; two sites at a fixed length a
                           distance
    contacts               not modelled, with a warning
    keyframes, qpos0       not kept: `mjcf_keyframes.keyframes` reads them

Tendons with a force of their own, flexes, fluid forces, gravity compensation, plugins and mocap bodies are
refused.

The states that an MJCF file names: MuJoCo's initial configuration and its keyframes.

The shapes that MuJoCo's viewer shows of a body, from its geoms.

MuJoCo's equality constraints as couplings, equations and loops.

joint       a coupling when linear, otherwise an equation
connect     a loop with a spherical joint
weld        a loop with a fixed joint
tendon      over joints, or straight between sites: an equation; two sites at a fixed length: a distance
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np

from alembert.errors import FileError, ModelError
from alembert.joints import (
    Distance,
    Fixed,
    Free,
    Friction,
    JointType,
    Limits,
    Prismatic,
    Revolute,
    Spherical,
    Spring,
)
from alembert.model.builder import ModelBuilder
from alembert.model.elements import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere, Visual
from alembert.model.inertia import Inertia
from alembert.model.io import mjcf_source, xml
from alembert.model.io.convert import from_mujoco
from alembert.model.io.mjcf_source import Contents, names_of
from alembert.model.io.notes import LEFT_OUT, InertiaFilter, Notes, keeps
from alembert.model.model import Model
from alembert.model.placement import Placement


def add_equalities(contents: Contents, builder: ModelBuilder) -> None:
    made = _Equalities(contents, builder)
    m, kinds = contents.m, contents.mujoco.mjtEq
    if contents.disabled("EQUALITY") or contents.disabled("CONSTRAINT"):
        return
    for i, name in enumerate(names_of(m, "equality")):
        if not m.eq_active0[i]:
            contents.notes.add(f"equality {name!r}, which is not active")
            continue
        kind = int(m.eq_type[i])
        if kind == int(kinds.mjEQ_JOINT):
            made.add_coupling(i, name)
        elif kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            made.add_loop(i, name, weld=kind == int(kinds.mjEQ_WELD))
        elif kind == int(kinds.mjEQ_TENDON):
            made.add_tendon_equality(i, name)
        else:
            what = kinds(kind).name.removeprefix("mjEQ_").lower()
            contents.unsupported(f"equality {name!r} of type {what}", name)


def held_tendons(contents: Contents) -> set[int]:
    """Those of active equalities."""
    m = contents.m
    held = [
        i for i in range(m.neq) if m.eq_type[i] == int(contents.mujoco.mjtEq.mjEQ_TENDON) and m.eq_active0[i]
    ]
    return {int(k) for i in held for k in (m.eq_obj1id[i], m.eq_obj2id[i])}


class _Equalities:
    """Adds them one by one."""

    def __init__(self, contents: Contents, builder: ModelBuilder) -> None:
        self.contents, self.builder = contents, builder

    def add_coupling(self, i: int, name: str) -> None:
        """y - y0 = a0 + a1 (x - x0) with MuJoCo's reference positions x0, y0."""
        m = self.contents.m
        joint, master = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        a0, a1, *higher = (float(x) for x in m.eq_data[i, :5])
        y0 = float(m.qpos0[m.jnt_qposadr[joint]])
        if any(higher) and master >= 0:
            x0 = float(m.qpos0[m.jnt_qposadr[master]])
            formula = f"y - {y0!r} - ({_polynomial((a0, a1, *higher), f'(x - {x0!r})')})"
            self.builder.equation(
                name, formula, {"x": self.contents.joints[master], "y": self.contents.joints[joint]}
            )
            return
        if master < 0:
            self.builder.coupling(name, self.contents.joints[joint], (), (), y0 + a0)
            return
        x0 = float(m.qpos0[m.jnt_qposadr[master]])
        self.builder.coupling(
            name, self.contents.joints[joint], (self.contents.joints[master],), (a1,), y0 + a0 - a1 * x0
        )

    def add_tendon_equality(self, i: int, name: str) -> None:
        """L1 - L1(0) = polynomial of L2 - L2(0), with the lengths at MuJoCo's reference configuration."""
        m = self.contents.m
        first, second = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        coefficients = tuple(float(x) for x in m.eq_data[i, :5])
        length = float(m.tendon_length0[first]) + coefficients[0]
        wraps = self.wraps(first, name)
        if second < 0 and len(wraps) == 2 and wraps[0][0] == "site" and length > 0:
            self.builder.loop(name, Distance(length), *(self.contents.sites[k] for _, k, _ in wraps))
            return
        inputs: dict[str, str] = {}
        total = f"{self.tendon_length(wraps, inputs)} - {length!r}"
        if second >= 0:
            L0 = float(m.tendon_length0[second])
            other = f"({self.tendon_length(self.wraps(second, name), inputs)} - {L0!r})"
            total += f" - ({_polynomial((0.0, *coefficients[1:]), other)})"
        self.builder.equation(name, total, inputs)

    def wraps(self, tendon: int, equality: str) -> list[tuple[str, int, float]]:
        """What a tendon runs over: joints with their coefficients, or sites."""
        m, found = self.contents.m, []
        for k in range(int(m.tendon_adr[tendon]), int(m.tendon_adr[tendon] + m.tendon_num[tendon])):
            kind = self.contents.mujoco.mjtWrap(int(m.wrap_type[k])).name.removeprefix("mjWRAP_").lower()
            if kind not in ("joint", "site"):
                self.contents.unsupported(f"equality {equality!r} of a tendon over a {kind}", equality)
            found.append((kind, int(m.wrap_objid[k]), float(m.wrap_prm[k])))
        return found

    def tendon_length(self, wraps: list[tuple[str, int, float]], inputs: dict[str, str]) -> str:
        """As a formula; what its names stand for goes into `inputs`."""
        if wraps[0][0] == "joint":
            inputs |= {f"q{k}": self.contents.joints[k] for _, k, _ in wraps}
            return "(" + " + ".join(f"({coefficient!r}) * q{k}" for _, k, coefficient in wraps) + ")"
        for _, k, _ in wraps:
            inputs |= {f"{axis}{k}": f"{self.contents.sites[k]}.{axis}" for axis in "xyz"}
        pieces = []
        for (_, a, _), (_, b, _) in itertools.pairwise(wraps):
            squares = " + ".join(f"({axis}{a} - {axis}{b})**2" for axis in "xyz")
            pieces.append(f"sqrt({squares})")
        return "(" + " + ".join(pieces) + ")"

    def add_loop(self, i: int, name: str, *, weld: bool) -> None:
        m = self.contents.m
        ends = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
        if m.eq_objtype[i] == self.contents.mujoco.mjtObj.mjOBJ_SITE:
            frames = [self.contents.sites[k] for k in ends]
        else:
            data = [float(x) for x in m.eq_data[i]]
            places = (
                [Placement(tuple(data[3:6]), tuple(data[6:10])), Placement(tuple(data[0:3]))]
                if weld
                else [Placement(tuple(data[0:3])), Placement(tuple(data[3:6]))]
            )
            frames = [f"{name}/a", f"{name}/b"]
            for frame, body, place in zip(frames, ends, places, strict=True):
                self.builder.frame(frame, self.contents.bodies[body], place)
        self.builder.loop(name, Fixed() if weld else Spherical(), *frames)


def _polynomial(coefficients: tuple[float, ...], x: str) -> str:
    return " + ".join(
        f"({c!r})" + f" * {x}" * min(k, 1) + (f"**{k}" if k > 1 else "") for k, c in enumerate(coefficients)
    )


Array = np.ndarray


def keyframes(model: Model, source: str | os.PathLike[str]) -> dict[str, tuple[Array, Array]]:
    """(q, v) by name, for the model that `load` made of the same file; "qpos0" is where MuJoCo starts.

    `model.neutral()` is another configuration where joints have a `ref`, and where free bodies do not start at the origin.
    """
    document = xml.read(source)
    mjcf_source.safe(document)
    compiled, _ = mjcf_source.compiled(document)
    states: dict[str, tuple[Any, Any]] = {"qpos0": (compiled.qpos0, np.zeros(compiled.nv))}
    for k, name in enumerate(mjcf_source.names_of(compiled, "key")):
        states[name] = (compiled.key_qpos[k], compiled.key_qvel[k])
    return {name: from_mujoco(model, q, v, mj_model=compiled) for name, (q, v) in states.items()}


_TEXTURED = (0.66, 0.69, 0.72, 1.0)
_HIDDEN_GROUP = 3  # geom groups from here on are not shown by MuJoCo's viewer: collision shapes


def visuals(contents: Contents, body: int) -> list[Visual]:
    m = contents.m
    found = []
    for g in range(m.body_geomadr[body], m.body_geomadr[body] + m.body_geomnum[body]):
        if m.geom_group[g] >= _HIDDEN_GROUP:
            continue
        where = Placement(tuple(m.geom_pos[g]), tuple(m.geom_quat[g]))
        drawn = _shape(contents, g, where)
        material = int(m.geom_matid[g])
        color = m.mat_rgba[material] if material >= 0 else m.geom_rgba[g]
        if material >= 0 and np.any(m.mat_texid[material] >= 0) and np.all(color[:3] == 1):
            color = _TEXTURED  # of a texture, which is not drawn; white would outshine what stands on it
        if drawn:
            found.append(Visual(*drawn, tuple(float(x) for x in color)))
    return found


def _shape(contents: Contents, g: int, where: Placement) -> tuple[Shape, Placement] | None:
    kinds = contents.mujoco.mjtGeom
    a, b, c = (float(x) for x in contents.m.geom_size[g])
    kind = contents.m.geom_type[g]
    if kind == kinds.mjGEOM_MESH:
        return _mesh(contents, int(contents.m.geom_dataid[g]), where)
    if kind == kinds.mjGEOM_SPHERE:
        return Sphere(a), where
    if kind == kinds.mjGEOM_ELLIPSOID:
        return Ellipsoid((a, b, c)), where
    if kind == kinds.mjGEOM_CAPSULE:
        return Capsule(a, 2 * b), where
    if kind == kinds.mjGEOM_CYLINDER:
        return Cylinder(a, 2 * b), where
    if kind == kinds.mjGEOM_BOX:
        return Box((2 * a, 2 * b, 2 * c)), where
    if kind == kinds.mjGEOM_PLANE:
        # a thin plate below it; without end where a size is 0: far beyond what stands on it
        far, thin = 20 * float(contents.m.stat.extent), 1e-3 * float(contents.m.stat.extent)
        return Box((2 * a or far, 2 * b or far, thin)), where @ Placement((0.0, 0.0, -thin / 2))
    contents.notes.add(f"shape of {kinds(int(kind)).name.removeprefix('mjGEOM_').lower()} geoms")
    return None


def _mesh(contents: Contents, mesh: int, where: Placement) -> tuple[Shape, Placement] | None:
    """MuJoCo recentres meshes; the shape is the file's, placed back."""
    m = contents.m
    start = int(m.mesh_pathadr[mesh])
    name = m.paths[start : m.paths.index(b"\0", start)].decode() if start >= 0 else ""
    folder = contents.document.folder
    compiler = (e.attributes for e in contents.root.walk() if e.tag == "compiler")
    places = [d.get("meshdir") or d.get("assetdir") or "" for d in compiler]
    tried = [folder / place / name for place in (*places, "")] if folder and name else []
    path = next((path for path in tried if path.is_file()), None)
    if path is None:
        contents.notes.add("meshes without a file of their own")
        return None
    moved = Placement(tuple(m.mesh_pos[mesh]), tuple(m.mesh_quat[mesh]))
    return Mesh(str(path), tuple(float(x) for x in m.mesh_scale[mesh])), where @ moved.inverse()


def load_mjcf(
    source: str | os.PathLike[str],
    *,
    strict: bool = False,
    unphysical: str | None = None,
    actuators: str | None = None,
) -> Model:
    """The model in an MJCF file, or in a text that starts with `<`.

    Actuators other than motors on joints (servos, muscles, tendon drives) are left out, and inertias that no body can have
    are kept, with one warning that names them. `strict=True` refuses such files; `actuators` ("skip" or "error") and
    `unphysical` ("warn" or "error") choose for each alone. Raises `FileError` for files that
    MuJoCo or the checks refuse, `UnsupportedError` for what would change the physics and is not covered.
    """
    document = xml.read(source)
    notes = Notes(document.file)
    inertias = InertiaFilter(notes, keep=keeps(unphysical, "unphysical", strict, "warn"))
    skip = keeps(actuators, "actuators", strict, "skip")
    root = mjcf_source.safe(document)
    compiled, remarks = mjcf_source.compiled(document)
    reader = _Reader(compiled, document, root, notes, inertias, skip_actuators=skip)
    try:
        reader.refuse_unsupported()
        reader.builder.world(visuals=visuals(reader, 0))
        for body in range(1, reader.m.nbody):
            reader.add_body(body)
        reader.add_sites()
        add_equalities(reader, reader.builder)
        reader.add_actuators()
        reader.add_sensors()
        model = inertias.build(reader.builder)
    except FileError:  # has its place already
        raise
    except ModelError as error:
        raise FileError(f"{reader.where_mentioned(str(error))}: {error}") from None
    reader.note_contacts()
    for remark in remarks:
        reader.notes.add(f"what MuJoCo remarks: {remark}")
    if reader.m.nkey:
        reader.notes.add("keyframes, which alembert.convert.keyframes reads", reader.line_of("key"))
    notes.warn()
    return model


class _Reader(Contents):
    """Carries one compiled model over to a builder."""

    def __init__(
        self,
        m: Any,
        document: xml.Document,
        root: xml.Element,
        notes: Notes,
        inertias: InertiaFilter,
        *,
        skip_actuators: bool,
    ) -> None:
        super().__init__(m, document, root, notes)
        self.inertias = inertias
        self.skip_actuators = skip_actuators
        gravity = np.zeros(3) if self.disabled("GRAVITY") else m.opt.gravity
        self.builder = ModelBuilder(m.names.split(b"\0", 1)[0].decode(), gravity=tuple(gravity))

    def refuse_unsupported(self) -> None:
        m = self.m
        for size, what, tag in (
            ("nflex", "a flex (deformable body)", "flexcomp"),
            ("nplugin", "a plugin", "plugin"),
            ("nmocap", "a mocap body", "body"),
            ("nplastic", "plasticity", "elasticity"),
        ):
            if getattr(m, size, 0):
                self.unsupported(what, tag=tag)
        if m.opt.density or m.opt.viscosity:
            drag = f"drag by a fluid (density {m.opt.density:g}, viscosity {m.opt.viscosity:g})"
            self.unsupported(drag, tag="option")
        for i in np.flatnonzero(m.body_gravcomp):
            self.unsupported(f"gravity compensation of body {self.bodies[i]!r}", self.bodies[i])
        for k, name in enumerate(names_of(m, "tendon")):
            for what in ("stiffness", "damping", "frictionloss", "limited", "armature"):
                if np.any(self.field(f"tendon_{what}", k)) or np.any(self.field(f"tendon_{what}poly", k)):
                    self.unsupported(f"tendon {name!r} with {what}", name)
            if k not in held_tendons(self):
                self.notes.add(f"tendon {name!r}, which exerts no force")

    # --- bodies and joints ------------------------------------------------------------------------

    def add_body(self, i: int) -> None:
        m, name = self.m, self.bodies[i]
        own = Placement(tuple(m.body_ipos[i]), tuple(m.body_iquat[i]))
        Ixx, Iyy, Izz = m.body_inertia[i]
        inertia = Inertia(m.body_mass[i], tensor=(Ixx, 0.0, Iyy, 0.0, 0.0, Izz)).at(own)
        self.inertias.add_body(self.builder, name, inertia, where=self.where(name), visuals=visuals(self, i))
        parent = self.bodies[m.body_parentid[i]]
        where = Placement(tuple(m.body_pos[i]), tuple(m.body_quat[i]))
        first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
        if count == 0:
            self.builder.joint(
                self.unused(f"{name}_joint"), Fixed(), parent=parent, child=name, placement=where
            )
            return
        for j in range(first, first + count):
            type, anchor, to_zero = self.joint_geometry(j)
            if isinstance(type, Free):
                where = Placement()
            where = where @ Placement(anchor) @ to_zero
            last = j == first + count - 1
            child = name if last and not any(anchor) else f"{name}/{self.joints[j]}"
            if child != name:
                self.builder.body(child)
            self.add_joint(j, type, parent, child, where)
            parent, where = child, Placement(tuple(-x for x in anchor))
        if parent != name:
            self.builder.joint(
                self.unused(f"{name}/anchor"), Fixed(), parent=parent, child=name, placement=where
            )

    def unused(self, name: str) -> str:
        while name in self.joints:
            name += "_"
        return name

    def joint_geometry(self, j: int) -> tuple[JointType, tuple[float, ...], Placement]:
        """The type, the anchor in body axes, and J(-r) of (1)."""
        kinds = self.mujoco.mjtJoint
        kind, anchor = self.m.jnt_type[j], tuple(float(x) for x in self.m.jnt_pos[j])
        axis = tuple(float(x) for x in self.m.jnt_axis[j])
        back = tuple(-float(self.m.qpos0[self.m.jnt_qposadr[j]]) * x for x in axis)
        if kind == kinds.mjJNT_FREE:
            return Free(), (0.0, 0.0, 0.0), Placement()
        if kind == kinds.mjJNT_BALL:
            return Spherical(), anchor, Placement()
        if kind == kinds.mjJNT_SLIDE:  # a translation has no centre
            return Prismatic(axis), (0.0, 0.0, 0.0), Placement(back)
        return Revolute(axis), anchor, Placement.from_rotation_vector(back) if any(back) else Placement()

    def add_joint(self, j: int, type: JointType, parent: str, child: str, where: Placement) -> None:
        m, name = self.m, self.joints[j]
        dofs = slice(m.jnt_dofadr[j], m.jnt_dofadr[j] + type.nv)
        for what, array, rows in (
            ("a damping polynomial", "dof_dampingpoly", dofs),
            ("a stiffness polynomial", "jnt_stiffnesspoly", j),
        ):
            if np.any(getattr(m, array, np.zeros((m.nv + m.njnt, 1)))[rows]):
                self.unsupported(f"joint {name!r} with {what}", name)
        armature = tuple(float(x) for x in m.dof_armature[dofs])
        viscous = () if self.disabled("DAMPER") else tuple(float(x) for x in m.dof_damping[dofs])
        dry = self.disabled("FRICTIONLOSS") or self.disabled("CONSTRAINT")
        coulomb = () if dry else tuple(float(x) for x in m.dof_frictionloss[dofs])
        stiffness = 0.0 if self.disabled("SPRING") else float(m.jnt_stiffness[j])
        if isinstance(type, Free):
            # componentwise in world axes there, in body axes here: only isotropic damping is the same
            for what, value in (
                ("armature", any(armature)),
                ("frictionloss", any(coulomb)),
                ("stiffness", stiffness),
            ):
                if value:
                    self.unsupported(f"free joint {name!r} with {what}", name)
        spring = None
        if stiffness:
            start = m.jnt_qposadr[j]
            spring = Spring((stiffness,) * type.nv, tuple(m.qpos_spring[start : start + type.nq]))
        rubs = any(viscous) or any(coulomb)
        self.builder.joint(
            name,
            type,
            parent=parent,
            child=child,
            placement=where,
            limits=self.limits(j, type),
            spring=spring,
            friction=Friction(viscous if any(viscous) else (), coulomb if any(coulomb) else ())
            if rubs
            else None,
            armature=armature if any(armature) else (),
        )

    def limits(self, j: int, type: JointType) -> Limits:
        m, name = self.m, self.joints[j]
        lower: tuple[float, ...] = ()
        upper: tuple[float, ...] = ()
        effort: tuple[float, ...] = ()
        if m.jnt_limited[j] and not self.disabled("LIMIT"):
            if type.nv == 1:
                lower, upper = (float(m.jnt_range[j, 0]),), (float(m.jnt_range[j, 1]),)
            else:
                self.notes.add(f"range of the ball joint {name!r}")
        if self.field("jnt_actfrclimited", j).any():
            low, high = (float(x) for x in m.jnt_actfrcrange[j])
            if type.nv == 1 and low == -high:
                effort = (high,)
            else:
                self.notes.add(f"actuatorfrcrange of joint {name!r}, which is not symmetric")
        return Limits(lower, upper, effort=effort)

    # --- what hangs on bodies and joints ----------------------------------------------------------

    def add_sites(self) -> None:
        m = self.m
        for i, name in enumerate(self.sites):
            where = Placement(tuple(m.site_pos[i]), tuple(m.site_quat[i]))
            self.builder.frame(name, self.bodies[m.site_bodyid[i]], where)

    def add_actuators(self) -> None:
        if self.disabled("ACTUATION"):
            return
        for i, name in enumerate(names_of(self.m, "actuator")):
            if self.m.opt.disableactuator & (1 << int(self.m.actuator_group[i])):
                continue
            problem = self.add_motor(i, name)
            if problem and self.skip_actuators:
                self.notes.add(f"actuator {name!r} with {problem}", heading=LEFT_OUT)
            elif problem:
                self.unsupported(
                    f"actuator {name!r} with {problem} (without strict=True it is left out), which", name
                )

    def add_motor(self, i: int, name: str) -> str | None:
        """Add a motor on one degree of freedom, or say why this actuator is none."""
        m, mujoco = self.m, self.mujoco
        for what, enum, value in (
            ("transmission", mujoco.mjtTrn, m.actuator_trntype[i]),
            ("dynamics", mujoco.mjtDyn, m.actuator_dyntype[i]),
            ("gain", mujoco.mjtGain, m.actuator_gaintype[i]),
            ("bias", mujoco.mjtBias, m.actuator_biastype[i]),
        ):
            if int(value) != 0:  # joint, none, fixed, none
                kind = enum(int(value)).name.split("_", 1)[1].lower()
                servo = " (a servo of position or velocity)" if (what, kind) == ("bias", "affine") else ""
                return f"{what} {kind}{servo}"
        for what in ("delay", "damping", "dampingpoly", "armature"):
            if np.any(self.field(f"actuator_{what}", i)):
                return what
        joint = int(m.actuator_trnid[i, 0])
        gears = [float(x) for x in m.actuator_gear[i]]
        kinds = mujoco.mjtJoint
        free = m.jnt_type[joint] == kinds.mjJNT_FREE
        if free:
            if any(gears[0:3]):
                return "a force in world axes"
            used = gears[3:6]
        else:
            used = gears[0:3] if m.jnt_type[joint] == kinds.mjJNT_BALL else gears[0:1]
        driven = [k for k, gear in enumerate(used) if gear]
        if len(driven) > 1:
            return f"gear {tuple(used)} on several degrees of freedom"
        dof = driven[0] if driven else 0
        gain = float(m.actuator_gainprm[i, 0])
        low, high = -np.inf, np.inf
        if m.actuator_ctrllimited[i] and not self.disabled("CLAMPCTRL"):
            low, high = (float(x) for x in m.actuator_ctrlrange[i])
        if m.actuator_forcelimited[i] and gain:
            a, b = sorted(float(x) / gain for x in m.actuator_forcerange[i])
            low, high = max(low, a), min(high, b)
        self.builder.actuator(
            name, self.joints[joint], dof=dof, gear=used[dof] * gain, limits=(float(low), float(high))
        )
        return None

    def add_sensors(self) -> None:
        m, kinds, objects = self.m, self.mujoco.mjtSensor, self.mujoco.mjtObj
        of_joints = {
            int(kinds.mjSENS_JOINTPOS): "joint_position",
            int(kinds.mjSENS_BALLQUAT): "joint_position",
            int(kinds.mjSENS_JOINTVEL): "joint_rate",
            int(kinds.mjSENS_BALLANGVEL): "joint_rate",
        }
        of_frames = {
            int(kinds.mjSENS_FRAMEPOS): "point",
            int(kinds.mjSENS_GYRO): "gyro",
            int(kinds.mjSENS_ACCELEROMETER): "accelerometer",
        }
        frames = {int(objects.mjOBJ_SITE): self.sites, int(objects.mjOBJ_XBODY): self.bodies}
        for i, name in enumerate(names_of(m, "sensor")):
            kind, what, target = int(m.sensor_type[i]), int(m.sensor_objtype[i]), int(m.sensor_objid[i])
            if kind in of_joints:
                self.builder.sensor(name, of_joints[kind], self.joints[target])
            elif kind in of_frames and what in frames and m.sensor_refid[i] < 0:
                self.builder.sensor(name, of_frames[kind], frames[what][target])
            else:
                self.notes.add(f"sensors of type {kinds(kind).name.removeprefix('mjSENS_').lower()}")

    def note_contacts(self) -> None:
        m = self.m
        if self.disabled("CONTACT") or self.disabled("CONSTRAINT"):
            return
        solid = (m.geom_contype != 0) | (m.geom_conaffinity != 0)
        if m.npair or len(set(m.geom_bodyid[solid].tolist())) > 1:
            self.notes.add("contacts, which are not modelled")

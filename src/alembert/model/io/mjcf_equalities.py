"""MuJoCo's equality constraints as couplings, equations and loops.

joint       a coupling when linear, otherwise an equation
connect     a loop with a spherical joint
weld        a loop with a fixed joint
tendon      over joints, or straight between sites: an equation; two sites at a fixed length: a distance
"""

from __future__ import annotations

import itertools

from alembert.joints import Distance, Fixed, Spherical
from alembert.model.builder import ModelBuilder
from alembert.model.io.mjcf_source import Contents, names_of
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

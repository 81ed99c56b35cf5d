"""MuJoCo's compiled model of an MJCF file: what is checked before, and the names in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from alembert.errors import FileError, UnsupportedError
from alembert.model.io import xml
from alembert.model.io.notes import Notes

MAX_INCLUDES = 1000


def mujoco_package() -> Any:
    try:
        import mujoco
    except ImportError:
        raise UnsupportedError('MJCF needs the mujoco package: pip install "alembert[mjcf]"') from None
    return mujoco


def safe(document: xml.Source) -> xml.Element:
    """The root element, after checking that this file and those it includes are small, plain XML."""
    root = xml.parse(document)
    if root.tag != "mujoco":
        hint = "; use load_urdf for a URDF" if root.tag == "robot" else ""
        root.fail(f"the root element is <{root.tag}>, expected <mujoco>{hint}")
    if document.folder is None:
        return root
    seen: set[Path] = set()
    waiting = [(document.folder, root)]
    while waiting:
        folder, element = waiting.pop()
        for part in element.walk():
            name = part.attributes.get("file", "")
            if part.tag not in ("include", "model") or not name:
                continue
            for path in (document.folder / name, folder / name):
                if path in seen or not path.is_file():
                    continue
                seen.add(path)
                if len(seen) > MAX_INCLUDES:
                    part.fail(f"more than {MAX_INCLUDES} included files")
                waiting.append((path.parent, xml.parse(xml.read(path))))
    return root


def compiled(document: xml.Source) -> tuple[Any, list[str]]:
    """The compiled model and MuJoCo's warnings, which would go to a file in the working directory."""
    mujoco = mujoco_package()
    remarks: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: remarks.append(" ".join(message.split())))
    try:
        if document.path is None:
            return mujoco.MjModel.from_xml_string(document.content.decode()), remarks
        return mujoco.MjModel.from_xml_path(str(document.path)), remarks
    except (ValueError, mujoco.FatalError) as error:
        message = " ".join(str(error).split())
        found = re.search(r"[Ll]ine(?: number=)? ?(\d+)", message)
        where = f"{document.file}:{found[1]}" if found else document.file
        raise FileError(f"{where}: MuJoCo refuses it: {message}") from None
    finally:
        mujoco.set_mju_user_warning(before)


def names_of(m: Any, kind: str, fallback: list[str] | None = None) -> list[str]:
    """Unique names of all objects of a kind; unnamed ones get `fallback` or kind and number."""
    mujoco = mujoco_package()
    code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    count = {"joint": "njnt", "equality": "neq", "actuator": "nu"}.get(kind, f"n{kind}")
    if kind == "actuator" and hasattr(m, "nactuator"):  # one actuator may have several inputs since MuJoCo 4
        count = "nactuator"
    given = [mujoco.mj_id2name(m, code, i) for i in range(getattr(m, count))]
    taken = set(given)
    names = []
    for i, name in enumerate(given):
        if not name:
            name = fallback[i] if fallback else f"{kind}{i}"
            while name in taken:
                name += "_"
            taken.add(name)
        names.append(name)
    return names


def joint_names(mj_model: Any) -> list[str]:
    """The names that `load_mjcf` gives to the joints; unnamed ones are called after their body."""
    bodies = names_of(mj_model, "body")
    fallback = []
    for i in range(mj_model.njnt):
        body = int(mj_model.jnt_bodyid[i])
        number = i - int(mj_model.body_jntadr[body])
        several = int(mj_model.body_jntnum[body]) > 1
        fallback.append(f"{bodies[body]}_joint{number}" if several else f"{bodies[body]}_joint")
    return names_of(mj_model, "joint", fallback)


class Contents:
    """A compiled model `m` with the names of its parts, the file's elements, and notes of what is passed over."""

    def __init__(self, m: Any, document: xml.Source, root: xml.Element, notes: Notes) -> None:
        self.mujoco = mujoco_package()
        self.m = m
        self.document = document
        self.root = root
        self.notes = notes
        self.bodies = names_of(m, "body")
        self.joints = joint_names(m)
        self.sites = [f"{name}_site" if name in self.bodies else name for name in names_of(m, "site")]

    def disabled(self, what: str) -> bool:
        return bool(self.m.opt.disableflags & int(getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{what}")))

    def unsupported(self, what: str, name: str | None = None) -> NoReturn:
        """Refuse a feature, with the line of the first element of that name."""
        lines = (e.line for e in self.root.walk() if name and e.attributes.get("name") == name)
        line = next(lines, None)
        where = self.document.file if line is None else f"{self.document.file}:{line}"
        raise UnsupportedError(f"{where}: {what} is not supported")

    def line_of(self, tag: str) -> int | None:
        return next((element.line for element in self.root.walk() if element.tag == tag), None)

    def field(self, name: str, index: int) -> np.ndarray:
        """An array's row, zero where this version of MuJoCo has no such array."""
        return np.atleast_1d(getattr(self.m, name)[index]) if hasattr(self.m, name) else np.zeros(1)

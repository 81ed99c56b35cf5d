"""MuJoCo's compiled model of an MJCF file: what is checked before, and the names in it."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from alembert.errors import FileError, UnsupportedError
from alembert.model.io import xml
from alembert.model.io.notes import Notes

MAX_INCLUDES = 1000
MAX_EXPANDED = 100_000  # elements
MAX_VALUES = 40_000_000  # of a height field, a texture, a grid
MAX_ASSET = 200_000_000  # bytes


def mujoco_package() -> Any:
    try:
        import mujoco
    except ImportError:
        raise UnsupportedError('MJCF needs the mujoco package: pip install "alembert[mjcf]"') from None
    return mujoco


def safe(document: xml.Document) -> xml.Element:
    """The root element, after checking that what MuJoCo will read is plain XML, and small when it is expanded."""
    root = xml.parse(document)
    if root.tag != "mujoco":
        hint = "; use load_urdf for a URDF" if root.tag == "robot" else ""
        root.fail(f"the root element is <{root.tag}>, expected <mujoco>{hint}")
    files = _Files(document, root)
    for path, part in list(files.roots.items()):
        for element in part.walk():
            _check_sizes(element)
            files.check(element, path.parent if path else None)
    count = files.expanded(root, document.folder)
    if count > MAX_EXPANDED:
        root.fail(
            f"<replicate>, <include> and <attach> expand to {count} elements; at most {MAX_EXPANDED} are read"
        )
    return root


_PRODUCTS = {
    "hfield": ("nrow", "ncol"),
    "texture": ("width", "height"),
    "flexcomp": ("count",),
    "composite": ("count",),
}
"""Attributes whose numbers, multiplied, say how many values an element has, and are bounded by `MAX_VALUES`"""

_COUNTS = {
    "nkey": 10_000,
    "params": 1_000,
    "dim": 10_000,
    "nsample": 100_000,
    "memory": 4_000_000_000,
    "nuserdata": 1_000_000,
} | (
    dict.fromkeys(("njmax", "nconmax", "nstack"), 10_000_000)
    | {
        f"nuser_{kind}": 1_000
        for kind in ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor")
    }
)
"""Largest values of attributes that say how much is allocated"""

_NUMBER = re.compile(r"([+-]?[\d.]+(?:e[+-]?\d+)?)([KMGTPE]?)", re.IGNORECASE)
_UNITS = {"": 1, **{unit: 1024.0 ** (k + 1) for k, unit in enumerate("KMGTPE")}}


def _check_sizes(element: xml.Element) -> None:
    product = 1.0
    for name in _PRODUCTS.get(element.tag, ()):
        for number in _sizes(element.attributes.get(name, "")):
            product *= max(number, 1.0)
    if product > MAX_VALUES:
        element.fail(f"<{element.tag}> has {product:.3g} values; at most {MAX_VALUES} are read")
    for name, largest in _COUNTS.items():
        for number in _sizes(element.attributes.get(name, "")):
            if number > largest:
                element.fail(f"<{element.tag}> attribute {name!r} is {number:g}; at most {largest} is read")


def _sizes(text: str) -> list[float]:
    """The numbers in an attribute, also with a unit such as 10M; what is none is for MuJoCo to refuse."""
    found = []
    for word in text.split():
        match = _NUMBER.fullmatch(word)
        if match is not None:
            with suppress(ValueError):
                found.append(float(match[1]) * _UNITS[match[2].upper()])
    return found


class _Files:
    """The documents that an MJCF file is made of, and the other files that it names."""

    def __init__(self, document: xml.Document, root: xml.Element) -> None:
        self.roots: dict[Path | None, xml.Element] = {document.path: root}
        self._folder = document.folder
        self._sizes: dict[Path, int] = {}
        self._read(document.folder, root)
        compilers = [e.attributes for part in self.roots.values() for e in part.walk() if e.tag == "compiler"]
        names = {d.get(key, "") for d in compilers for key in ("assetdir", "meshdir", "texturedir")}
        self._asset_folders = [Path(name) for name in sorted(names | {""})]

    def _read(self, folder: Path | None, root: xml.Element) -> None:
        waiting = [(folder, root)]
        while waiting:
            folder, part = waiting.pop()
            for element in part.walk():
                for path in self._documents(element, folder):
                    if path in self.roots:
                        continue
                    if len(self.roots) > MAX_INCLUDES:
                        element.fail(f"more than {MAX_INCLUDES} included files")
                    self.roots[path] = xml.parse(xml.read(path))
                    waiting.append((path.parent, self.roots[path]))

    def _documents(self, element: xml.Element, folder: Path | None) -> list[Path]:
        """What an <include> or a <model> may mean: files beside the first document, or beside this one."""
        name = element.attributes.get("file", "")
        if element.tag not in ("include", "model") or not name or folder is None or self._folder is None:
            return []
        paths = dict.fromkeys((self._folder / name, folder / name))
        return [path for path in paths if path.exists() and not path.is_dir()]

    def check(self, element: xml.Element, folder: Path | None) -> None:
        """Refuse pipes, devices and files without end, which MuJoCo would read."""
        if folder is None or self._folder is None:
            return
        for key, name in element.attributes.items():
            if not key.startswith("file") or element.tag in ("include", "model") or "\0" in name:
                continue
            for start in {self._folder, folder}:
                for place in self._asset_folders:
                    path = start / place / name
                    if not path.exists() or path.is_dir():
                        continue
                    if not path.is_file():
                        element.fail(f"{path}: is not a regular file")
                    if path.stat().st_size > MAX_ASSET:
                        element.fail(f"{path}: has {path.stat().st_size} bytes; at most {MAX_ASSET} are read")
                    width, height = _png_size(path)
                    if width * height > MAX_VALUES:
                        element.fail(f"{path}: has {width} x {height} pixels; at most {MAX_VALUES} are read")

    def expanded(self, element: xml.Element, folder: Path | None, depth: int = 0) -> int:
        """How many elements there are once everything is put in place; never much more than `MAX_EXPANDED`."""
        if depth > MAX_INCLUDES // 10:
            element.fail("included files are nested too deep")
        total = 1
        for child in element.children:
            total += self.expanded(child, folder, depth)
            if total > MAX_EXPANDED:
                break
        for path in self._documents(element, folder) if element.tag == "include" else ():
            total += self._size(path, depth)
        if element.tag == "attach":
            models = [e for part in self.roots.values() for e in part.walk() if e.tag == "model"]
            named = element.attributes.get("model")
            for model in models:
                if model.attributes.get("name", named) == named:
                    folders = {p.parent for p in self.roots if p is not None}
                    total += sum(self._size(p, depth) for f in folders for p in self._documents(model, f))
        if element.tag == "replicate":
            total *= max(
                [1, *(int(x) for x in _sizes(element.attributes.get("count", "")) if math.isfinite(x))]
            )
        return total

    def _size(self, path: Path, depth: int) -> int:
        if path not in self._sizes:
            self._sizes[path] = 0  # of a file that includes itself, which MuJoCo refuses
            self._sizes[path] = self.expanded(self.roots[path], path.parent, depth + 1)
        return self._sizes[path]


def _png_size(path: Path) -> tuple[int, int]:
    """Of a picture, read from its head; (0, 0) of other files."""
    with path.open("rb") as file:
        head = file.read(24)
    if not head.startswith(b"\x89PNG") or len(head) < 24:
        return 0, 0
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def compiled(document: xml.Document) -> tuple[Any, list[str]]:
    """The compiled model and MuJoCo's warnings, which would go to a file in the working directory."""
    mujoco = mujoco_package()
    remarks: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: remarks.append(" ".join(message.split())))
    try:
        if document.path is None:
            return mujoco.MjModel.from_xml_string(document.content.decode()), remarks
        return mujoco.MjModel.from_xml_path(str(document.path)), remarks
    except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        message = " ".join(str(error).split())
        found = re.search(r"[Ll]ine(?: number=)? ?(\d+)", message)
        where = f"{document.file}:{found[1] if found else 1}"
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

    def __init__(self, m: Any, document: xml.Document, root: xml.Element, notes: Notes) -> None:
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

    def unsupported(self, what: str, name: str | None = None, *, tag: str | None = None) -> NoReturn:
        """Refuse a feature, with the line of the first element of that name or tag."""
        raise UnsupportedError(f"{self.where(name, tag)}: {what} is not supported")

    def where(self, name: str | None = None, tag: str | None = None) -> str:
        """File and line of the first element of a name or a tag, else of the root."""
        for element in self.root.walk():
            if (name and element.attributes.get("name") == name) or (tag and element.tag == tag):
                return element.where
        return self.root.where

    def where_mentioned(self, message: str) -> str:
        """File and line of the element whose name a message has in quotes."""
        quoted = re.findall(r"'([^']*)'", message)
        names = [
            name for text in quoted for name in (text, text.partition("/")[0], text.removesuffix("_joint"))
        ]
        known = {
            e.attributes["name"]: e for e in reversed(list(self.root.walk())) if e.attributes.get("name")
        }
        return next((known[name].where for name in names if name in known), self.root.where)

    def line_of(self, tag: str) -> int | None:
        return next((element.line for element in self.root.walk() if element.tag == tag), None)

    def field(self, name: str, index: int) -> np.ndarray:
        """An array's row, zero where this version of MuJoCo has no such array."""
        return np.atleast_1d(getattr(self.m, name)[index]) if hasattr(self.m, name) else np.zeros(1)

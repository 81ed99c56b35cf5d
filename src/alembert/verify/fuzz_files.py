"""Fuzzing of files: models, results and checkpoints are damaged at random; every reader must load them or say what is wrong.
Entries of the cache of machine code are damaged as well: none of them may be taken but as it was written.

An *attack* writes a damaged file from a seed and reads it. Anything but success or an error of Alembert that names the file
is a finding, and so is a reading that takes longer than `PATIENCE`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from alembert import library
from alembert.engine import cache
from alembert.errors import AlembertError, AlembertWarning
from alembert.model.io import load
from alembert.model.io.native import dumps

PATIENCE = 60.0  # s
MEMBERS = 4  # of the ensemble whose checkpoint is damaged
_PIECES = (
    *(
        b"",
        b"0",
        b"-1",
        b"1e308",
        b"1e999",
        b"nan",
        b"inf",
        b"9" * 400,
        b"0x" + b"f" * 99,
        b'"',
        b"'",
        b"<",
        b">",
        b"&",
    ),
    *(
        b"[" * 40,
        b"{",
        b"]",
        b"}",
        b"=",
        b".",
        b"a." * 40,
        b"\n",
        b"\t",
        b"\0",
        b"\x1b[2J",
        b"\xff",
        b"\xc2\x9b",
        b"world",
    ),
    *(
        "é\u202e".encode(),
        b"x" * 3000,
        b"&#27;",
        b"<!ENTITY a 'b'>",
        b"../",
        b"!!python/object",
        b"true",
        b"null",
    ),
)
_URDF = """<robot name="r"><material name="m"><color rgba="1 0 0 1"/></material><link name="a"/>
<link name="b"><inertial><origin xyz="0 0 1" rpy="0 0.1 0"/><mass value="2"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<visual><geometry><box size="1 1 1"/></geometry><material name="m"/></visual></link><gazebo><mu1>1</mu1></gazebo>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/><origin xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="2" velocity="3"/><dynamics damping="0.1" friction="0"/></joint></robot>"""
_MJCF = """<mujoco model="m"><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
<body name="a" pos="0 0 1"><joint name="h" axis="0 1 0" range="-1 1" limited="true" damping="0.1"/><geom size="0.1"/>
<site name="s" pos="0 0 1"/><replicate count="2" offset="1 0 0"><body><joint type="ball"/><geom type="box" size="1 1 1"/>
</body></replicate></body></worldbody><actuator><motor name="u" joint="h" gear="3"/></actuator>
<sensor><gyro site="s"/></sensor></mujoco>"""


@functools.cache
def _originals() -> dict[str, bytes]:
    """Files of every kind that is read, by suffix."""
    model = library.acrobot()
    found = {
        ".toml": dumps(model).encode(),
        ".yaml": dumps(library.cart_pole(), "yaml").encode(),
        ".urdf": _URDF.encode(),
        ".xml": _MJCF.encode(),
    }
    try:
        from alembert.simulate import simulate

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.nc"
            simulate(model, duration=0.1, step=0.02, integrator="rk4").save(path)
            found[".nc"] = path.read_bytes()
    except ModuleNotFoundError:  # without the extra for data there are no such results
        pass
    with tempfile.TemporaryDirectory() as folder:
        _ensemble(folder)
        (block,) = Path(folder).glob("block-*.npz")
        found[".npz"] = block.read_bytes()
    with _cache() as folder:
        if cache.store(_ENTRY, _PROPERTIES, _CODE):
            found[cache.KERNEL] = (folder / f"{_ENTRY}{cache.KERNEL}").read_bytes()
    return found


_ENTRY, _PROPERTIES, _CODE = "e" * 64, {"lanes": 1, "names": ["f"]}, bytes(range(256)) * 4


@contextlib.contextmanager
def _cache() -> Iterator[Path]:
    """A cache of machine code in an empty folder."""
    before = os.environ.get("ALEMBERT_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ALEMBERT_CACHE"] = folder
        try:
            yield Path(folder)
        finally:
            os.environ.pop("ALEMBERT_CACHE")
            if before is not None:
                os.environ["ALEMBERT_CACHE"] = before


def _ensemble(folder: str) -> Any:
    from alembert.simulate import ensemble

    starts = np.linspace(-1.0, 1.0, MEMBERS)[:, None] * np.ones(2)
    options: Any = {"duration": 0.1, "step": 0.02, "integrator": "rk4", "workers": 1, "checkpoint": folder}
    return ensemble(library.acrobot(), {"q0": starts}, **options)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with some bytes changed, pieces put in, taken out, doubled or moved, or its end cut off."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 8))):
        at, size = int(rng.integers(0, len(data) + 1)), int(rng.integers(1, 60))
        match int(rng.integers(0, 6)):
            case 0:
                data[at : at + 1] = bytes([int(rng.integers(0, 256))])
            case 1:
                data[at:at] = _PIECES[int(rng.integers(0, len(_PIECES)))]
            case 2:
                data[at : at + size] = _PIECES[int(rng.integers(0, len(_PIECES)))]
            case 3:
                del data[at : at + size]
            case 4:
                data[at:at] = data[at : at + size]
            case _:
                other = int(rng.integers(0, len(data) + 1))
                data[at : at + size], data[other : other + size] = (
                    data[other : other + size],
                    data[at : at + size],
                )
    return bytes(data[: int(rng.integers(0, len(data) + 1))]) if rng.random() < 0.1 else bytes(data)


def read_model(path: Path) -> Any:
    return load(path)


def read_result(path: Path) -> Any:
    from alembert.simulate import load_run
    from alembert.view import read_motion

    try:
        return load_run(path)
    finally:
        read_motion(path)


def read_checkpoint(path: Path) -> Any:
    """A block of an ensemble: what is damaged counts as none, and is computed again."""
    from alembert.simulate.ensembles import backends

    return backends.read(path, range(MEMBERS), 2, 2)


def read_entry(path: Path) -> Any:
    """An entry of the cache, under the name of the one that it was made of."""
    with _cache() as folder:
        place = folder / f"{_ENTRY}{cache.KERNEL}"
        place.write_bytes(path.read_bytes())
        place.chmod(0o600)
        found = cache.load(_ENTRY)
    if found is not None and found != (_PROPERTIES, _CODE):
        raise AssertionError("damaged machine code was taken for whole")
    return found


READERS: dict[str, Callable[[Path], Any]] = {
    ".toml": read_model,
    ".yaml": read_model,
    ".urdf": read_model,
    ".xml": read_model,
    ".nc": read_result,
    ".npz": read_checkpoint,
    cache.KERNEL: read_entry,
}


def attack(suffix: str, seed: int, folder: Path) -> str | None:
    """Read a damaged file of a kind; what is wrong with the answer, None if nothing is. The file stays in the folder."""
    path = folder / f"damaged-{seed}{suffix}"
    path.write_bytes(damaged(_originals()[suffix], np.random.default_rng(seed)))
    begin = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("ignore", AlembertWarning)
            READERS[suffix](path)
    except AlembertError as error:
        if str(path) not in str(error):
            return f"names no file: {type(error).__name__}: {error}"
    except Exception as error:  # whatever it is, it is what is looked for
        return f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - begin
    return f"took {seconds:.0f} s" if seconds > PATIENCE else None


def kinds() -> list[str]:
    return list(_originals())

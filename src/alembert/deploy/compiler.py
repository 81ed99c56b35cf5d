"""C compilers: Zig's, which cross-compiles for every platform (the extra `deploy`), or the system's for this machine."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from alembert.arguments import check_known, unknown
from alembert.errors import AlembertError, ArgumentError

TARGETS = {
    "x86_64-linux": ("x86_64-linux-gnu.2.17", ".so"),
    "aarch64-linux": ("aarch64-linux-gnu.2.17", ".so"),
    "x86_64-windows": ("x86_64-windows-gnu", ".dll"),
    "x86_64-darwin": ("x86_64-macos", ".dylib"),
    "aarch64-darwin": ("aarch64-macos", ".dylib"),
}
"""by platform: what Zig calls it, and how its shared libraries end"""
BOARDS = {
    "cortex-m4": ["-target", "thumb-linux-musleabihf", "-mcpu=cortex_m4"],
    "cortex-m7": ["-target", "thumb-linux-musleabihf", "-mcpu=cortex_m7"],
    "aarch64": ["-target", "aarch64-linux-musl"],
}
"""objects that use nothing of a system but the mathematics library; musl's headers declare it"""


EMULATED = {"aarch64": ("qemu-aarch64", "qemu-aarch64-static")}
"""boards whose programs can be run here, by what"""


class CompilerError(AlembertError, RuntimeError):
    """No compiler, or one that refused."""


def this_platform() -> str:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    system = {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux")
    return f"{machine}-{system}"


def has_zig() -> bool:
    return importlib.util.find_spec("ziglang") is not None


def has_compiler() -> bool:
    """Whether this machine's own code can be compiled."""
    return has_zig() or _system() is not None


def _system() -> str | None:
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def shared_library(function: str, sources: Sequence[Path], target: Path, where: str) -> None:
    """Compile and link sources for a platform."""
    options = ["-shared", "-O2", "-std=c99", "-ffp-contract=fast", "-s"]
    libraries = []
    if "windows" not in where:
        options, libraries = [*options, "-fPIC"], ["-lm"]
    _run(function, [*_for(function, where), *options, "-o", str(target), *map(str, sources), *libraries])


def program(function: str, sources: Sequence[Path], target: Path, board: str = "") -> None:
    """Compile and link a program for this machine, or for a board whose programs are emulated."""
    options = ["-O2", "-std=c99", "-o", str(target), *map(str, sources), "-lm"]
    command = [*_for_board(function, board), "-static"] if board else _for(function, this_platform())
    _run(function, [*command, *options])


def emulator(function: str, board: str) -> list[str]:
    """What runs programs for a board here."""
    check_known(f"{function}: no emulator for", board, EMULATED)
    found = next((x for name in EMULATED[board] if (x := shutil.which(name))), None)
    if found is None:
        raise CompilerError(f"{function}: programs for {board} need {' or '.join(EMULATED[board])} here")
    return [found]


def loaded_size(target: Path) -> int:
    """Bytes of code and constants in an object file; of the whole file where it is no ELF file."""
    data = target.read_bytes()
    if data[:4] != b"\x7fELF":
        return len(data)
    wide = data[4] == 2
    at, size, count = (
        struct.unpack_from("<Q", data, 40)[0] if wide else struct.unpack_from("<I", data, 32)[0],
        *struct.unpack_from("<HH", data, 58 if wide else 46),
    )
    found = 0
    for k in range(count):
        kind = struct.unpack_from("<I", data, at + k * size + 4)[0]
        flags, _, _, length = struct.unpack_from("<4Q" if wide else "<4I", data, at + k * size + 8)
        if flags & 2 and kind == 1:  # what is loaded, and has bytes in the file
            found += length
    return int(found)


def object_file(function: str, source: Path, target: Path, where: str) -> None:
    """Compile one file for a platform, or for a board without an operating system."""
    command = _for(function, where) if where in TARGETS else _for_board(function, where)
    _run(function, [*command, "-O2", "-std=c99", "-c", "-o", str(target), str(source)])


def _for(function: str, where: str) -> list[str]:
    check_known(f"{function}: no platform", where, TARGETS)
    system = _system()
    if where == this_platform() and system is not None:
        return [system]
    if not has_zig():
        raise CompilerError(
            f"{function}: no compiler for {where}; pip install 'alembert[deploy]' brings one for all platforms (ziglang)"
        )
    return [*_ZIG, "-target", TARGETS[where][0]]


def _for_board(function: str, board: str) -> list[str]:
    if board not in BOARDS:
        raise ArgumentError(unknown(f"{function}: no board", board, (*BOARDS, *TARGETS)))
    if not has_zig():
        raise CompilerError(f"{function}: boards need Zig's compiler; pip install 'alembert[deploy]'")
    return [*_ZIG, *BOARDS[board]]


_ZIG = [sys.executable, "-m", "ziglang", "cc"]


def _run(function: str, command: Sequence[str]) -> None:
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if found.returncode:
        raise CompilerError(f"{function}: the compiler failed:\n{found.stderr.strip()[-2000:]}")

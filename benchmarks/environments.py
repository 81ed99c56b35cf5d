"""Environments of peers that do not live beside each other, made where they are needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "build"


def peer_python(name: str, packages: Sequence[str]) -> Path | None:
    """The Python of an environment with `packages`, of which the module `name` is one; None where that cannot be made."""
    folder = _FOLDER / name
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not _has(python, name):
        try:
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder)],
                [str(python), "-m", "pip", "install", "--quiet", *packages],
            ):
                subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            shutil.rmtree(folder, ignore_errors=True)
    return python if _has(python, name) else None


def _has(python: Path, name: str) -> bool:
    if not python.exists():
        return False
    return subprocess.run([str(python), "-c", f"import {name}"], capture_output=True).returncode == 0

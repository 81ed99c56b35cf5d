"""Machine code for arm64 is made from the same text; `tests/arm64.py` runs it under QEMU."""

import struct
import sys
from pathlib import Path

import pytest

import alembert as al

sys.path.insert(0, str(Path(__file__).parents[1]))
from arm64 import compiled, kernel_of

EM_AARCH64 = 183


@pytest.mark.parametrize("lanes", [1, 2])
def test_object_code_for_arm64(lanes):
    code, binary = compiled(kernel_of(al.library.two_link(), "forward_dynamics"), lanes)
    assert binary[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", binary, 18)[0] == EM_AARCH64
    assert b"kernel" in binary
    assert code.workspace >= 0

"""Alembert's own source files, as part of the key of what is cached: code that another version made is not taken for ours.

What a kernel is made of is known only after it has been made, and to make it is what the cache saves; so its key names the
model and the algorithm, and the version of Alembert that makes the kernel. The version's number does not tell one state of a
development checkout from the next, so the content of the files does, read once when Alembert is imported: 7 ms.
"""

from __future__ import annotations

import hashlib
import os

_NO_KERNELS = {"cli", "io", "library", "study", "verify", "view", "__pycache__"}
"""packages that show, or make models and problems, whose content is in the keys of their kernels"""


def digest(root: str) -> str:
    """A digest of all files under `root` that may change the code of a kernel."""
    result = hashlib.blake2b(digest_size=32)
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _NO_KERNELS)
        for name in sorted(name for name in names if name.endswith(".py")):
            path = os.path.join(folder, name)
            with open(path, "rb", buffering=0) as opened:
                text = opened.read()
            result.update(f"{os.path.relpath(path, root)}\0{len(text)}\0".encode())
            result.update(text)
    return result.hexdigest()


AT_IMPORT = digest(os.path.dirname(os.path.realpath(__file__)))

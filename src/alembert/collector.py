"""Work that makes many lasting objects, without Python's search for garbage among them.

The search starts whenever enough objects are new and looks at all there are. While modules are imported or expressions
are built nearly all new objects stay, so it finds nothing and takes a tenth to a third of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collecting() -> Iterator[None]:
    """Pause the collector, unless it is off anyway."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

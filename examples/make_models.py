"""Write the models of `alembert.library` as files: `python examples/make_models.py [FOLDER]`.

A test holds the files of `examples/models` to what this script writes.
"""

import sys
from pathlib import Path

from alembert import library
from alembert.model.io import save

FOLDER = Path(__file__).parent / "models"


def write(folder: Path) -> list[Path]:
    """One file per model; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in library.names():
        path = folder / f"{name}.toml"
        save(library.make(name), path)
        paths.append(path)
    return paths


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(path)

"""Models by the text that names them: a file, or a model of the library with its options.

Files to begin with: a model and a study that run as they are, with comments.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from alembert import library
from alembert.arguments import check_known
from alembert.errors import ArgumentError, FileError, writing
from alembert.model import Model
from alembert.model.io import MJCF, NATIVE, URDF, load

PREFIX = "library:"
SUFFIXES = NATIVE + URDF + MJCF


def find_model(
    text: str,
    *,
    folder: Path | None = None,
    floating: bool = False,
    package_dirs: Sequence[Path] = (),
    strict: bool = False,
) -> tuple[Model, Path | None]:
    """The model, and its file where it has one.

    `arm.urdf` is a file (relative to `folder`), `library:acrobot` or a bare `acrobot` a model of the library;
    its options come after commas: `library:chain,n=20`.
    """
    options: dict[str, Any] = {}
    if floating:
        options["floating"] = True
    if package_dirs:
        options["package_dirs"] = list(package_dirs)
    path = Path(text) if folder is None else folder / text
    is_file = not text.startswith(PREFIX) and (
        path.suffix.lower() in SUFFIXES or len(Path(text).parts) > 1 or path.is_file()
    )
    if not is_file:
        if options:
            raise ArgumentError(f"{text}: --floating and --package-dir are for URDF files")
        return _of_library(text.removeprefix(PREFIX), bare=not text.startswith(PREFIX)), None
    if not path.exists() and (near := _nearest_file(path)):
        raise FileError(f"{path}: cannot be read: No such file or directory; did you mean {near.name!r}?")
    return load(path, strict=strict, **options), path


def _of_library(text: str, *, bare: bool) -> Model:
    name, *given = text.split(",")
    if name not in library.names():
        suffix = Path(name).suffix
        if bare and suffix:
            raise ArgumentError(
                f"{name} has the suffix {suffix!r}, expected a model file ({', '.join(SUFFIXES)}) "
                "or the name of a model of the library"
            )
        what = "is no model of the library"
        close = difflib.get_close_matches(name, library.names(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there is {', '.join(library.names())}"
        raise ArgumentError(f"{name!r} {'is no file and no model of the library' if bare else what}; {hint}")
    known = inspect.signature(getattr(library, name)).parameters
    options: dict[str, Any] = {}
    for entry in given:
        key, equals, value = entry.partition("=")
        if not equals:
            raise ArgumentError(
                f"library:{text}: {entry!r} is no option, expected NAME=VALUE after the comma"
            )
        check_known(f"library:{name} has no option", key, known)
        options[key] = _value(f"library:{text}", key, value)
    return library.make(name, **options)


def _value(where: str, key: str, text: str) -> Any:
    """A number, true or false; what else functions take is for Python."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ArgumentError(f"{where}: {key} is {text!r}, expected a number, true or false")


def _nearest_file(path: Path) -> Path | None:
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix.lower() in SUFFIXES]
    except OSError:
        return None
    close = difflib.get_close_matches(path.name, names, n=1)
    return path.with_name(close[0]) if close else None


TEMPLATES = {
    "pendulum": "one body on a hinge; let it swing",
    "acrobot": "two rods, one motor; the linear model about upright",
    "arm": "three joints and an uncertain payload; an ensemble",
    "satellite": "a free body with momentum wheels; momentum kept to rounding",
    "fourbar": "a closed loop; let it turn",
}
_STUDY = """# Let the model move from where it stands. Run it with: alembert run study.toml
# Other tasks are ensemble, trim, linearize and identify; `alembert new pendulum` shows them in comments.
format = "alembert-study"
version = 1
name = "{name}"
model = "model.toml"

[task]
type = "simulate"
time = 2.0              # s
step = 0.002            # s
interval = 0.02         # s, between records
integrator = "rk4"
# position = {{ {joint} = 0.1 }}    # joints: {joints}

[outputs]
save = "records.csv"
"""


def names() -> tuple[str, ...]:
    """What `create` knows: the projects with comments, and the models of the library."""
    return (*TEMPLATES, *(name for name in library.names() if name not in TEMPLATES))


def create(name: str, folder: Path, *, replace: bool = False) -> list[Path]:
    """Write model.toml and study.toml into a folder."""
    check_known("new: there is no project", name, names())
    contents = _template(name) if name in TEMPLATES else _project_of(name)
    paths = {folder / file: text for file, text in contents.items()}
    there = [path for path in paths if path.exists()]
    if there and not replace:
        raise FileError(f"{there[0]}: is there already; choose another folder, or --force to write over it")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            path.write_text(text, encoding="utf-8")
    return list(paths)


def _template(name: str) -> dict[str, str]:
    folder = resources.files("alembert.study").joinpath("templates", name)
    return {file: folder.joinpath(file).read_text(encoding="utf-8") for file in ("model.toml", "study.toml")}


def _project_of(name: str) -> dict[str, str]:
    from alembert.model.io.native import dumps

    model = library.make(name)
    joints = [joint.name for joint in model.joints if joint.type.nv]
    title = (getattr(library, name).__doc__ or name).strip().partition("\n")[0]
    listed = ", ".join(joints[:8]) + (", ..." if len(joints) > 8 else "")
    single = next((joint.name for joint in model.joints if joint.type.nq == 1), joints[0])
    return {
        "model.toml": f"# {title}\n# Look at it with: alembert info model.toml\n{dumps(model)}",
        "study.toml": _STUDY.format(name=model.name, joint=single, joints=listed),
    }

"""Files to begin with: a model and a study that run as they are, with comments."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from alembert import library
from alembert.arguments import check_known
from alembert.errors import FileError, writing

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
    contents = _template(name) if name in TEMPLATES else _of_library(name)
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


def _of_library(name: str) -> dict[str, str]:
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

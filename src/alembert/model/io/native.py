"""Alembert's own format: models as TOML or YAML, written and read without loss.

Reading goes file -> plain data (`toml`, `yaml`) -> records (`schema`) -> builder -> model; every error is
given the file, line and path of what caused it.
"""

from __future__ import annotations

import dataclasses
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from alembert.arguments import unknown
from alembert.errors import ArgumentError, ModelError, UnsupportedError, writing
from alembert.expression import Expression
from alembert.joints import PAIRS, REGISTRY, Pair
from alembert.model.builder import ModelBuilder
from alembert.model.elements import Mesh, Visual
from alembert.model.inertia import Inertia
from alembert.model.io import schema, side_file, toml, yaml
from alembert.model.io.location import Place, PlacedError, Source, read_text
from alembert.model.io.notes import explanations, is_word, walk
from alembert.model.io.schema import FORMAT, PARTS, VERSION, check_format, described
from alembert.model.model import Model, check_model
from alembert.model.placement import Placement

SYNTAX: dict[str, ModuleType] = {"toml": toml, "yaml": yaml, "yml": yaml}
_MOST_ERRORS = 5


def load_native(path: str | os.PathLike[str]) -> Model:
    """The model in a `.toml`, `.yaml` or `.yml` file; mesh files are sought beside it."""
    syntax = _syntax(Path(path).suffix.removeprefix("."))
    return _model(syntax.parse(read_text(path, syntax.LARGEST), os.fspath(path)), Path(path).parent)


def save_native(model: Model, path: str | os.PathLike[str], *, side_files: bool = False) -> None:
    """Write a model; the file appears whole or not at all.

    With `side_files` the numbers of flexible bodies go into files of their own beside it, first.
    """
    path = Path(path)
    check_model("save", model)
    syntax = _syntax(path.suffix.removeprefix("."))
    document = plain_model(model)
    for part in (document, *document.get("bodies", {}).values()):
        for mesh in (visual["mesh"] for visual in part.get("visuals", ()) if "mesh" in visual):
            mesh["path"] = _seen_from(path.parent, mesh["path"])
    files = _set_aside(model, document, path) if side_files else {}
    text = syntax.write(document)
    with writing(path):
        for name, content in files.items():
            write_whole(path.with_name(name), content)
        write_whole(path, text.encode())


def loads(text: str, syntax: str = "toml", *, name: str = "<text>", folder: Path | None = None) -> Model:
    """The model in a text; `name` stands for the file in messages, and `folder` is where its side files and meshes are."""
    return _model(_syntax(syntax).parse(text, name), folder)


def dumps(model: Model, syntax: str = "toml") -> str:
    """A model as text, in the form that `loads` reads back to an equal model."""
    check_model("save", model)
    return _syntax(syntax).write(plain_model(model))


def _syntax(name: str) -> ModuleType:
    try:
        return SYNTAX[name.lower()]
    except KeyError:
        raise ArgumentError(unknown("there is no syntax", name, SYNTAX)) from None


# --- reading ------------------------------------------------------------------------------------------------


def _model(source: Source, folder: Path | None = None) -> Model:
    """`folder` is where side files and meshes are."""
    _check_header(source)
    document = _validated(source, folder)
    with _located(source, ("gravity",)):
        options = {"gravity": document.gravity} if "gravity" in document.model_fields_set else {}
        builder = ModelBuilder(document.name, **options)
    for name, value in (document.parameters or {}).items():
        with _located(source, ("parameters", name)):
            builder.parameter(name, value)
    with _located(source, ("visuals",)):
        builder.world(visuals=_placed(document.visuals or (), folder))
    for section, (add, record) in PARTS.items():
        for name, part in (getattr(document, section) or {}).items():
            with _located(source, (section, name)):
                fields = _fields(record, part.given())
                if fields.get("visuals"):
                    fields["visuals"] = _placed(fields["visuals"], folder)
                getattr(builder, add)(name, **fields)
    try:
        return builder.build()
    except ModelError as error:
        raise source.error(_place_of(str(error), source.data), str(error)) from error


def _placed(visuals: Sequence[Visual], folder: Path | None) -> tuple[Visual, ...]:
    """Meshes that are found beside the model's file, by a path from where we are; others keep their name."""

    def found(visual: Visual) -> Visual:
        shape = visual.shape
        if folder is None or not isinstance(shape, Mesh) or not _is_file(folder / shape.path):
            return visual
        return dataclasses.replace(visual, shape=dataclasses.replace(shape, path=str(folder / shape.path)))

    return tuple(map(found, visuals))


def _seen_from(folder: Path, path: str) -> str:
    """The path of a mesh from another folder, where its file is there; an absolute path stays so, unless it is within."""
    if not _is_file(Path(path)):
        return path
    relative = Path(os.path.relpath(path, folder))
    return path if Path(path).is_absolute() and ".." in relative.parts else relative.as_posix()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name no file can have
        return False


def _check_header(source: Source) -> None:
    data = source.data
    if not isinstance(data, dict):
        raise source.error((), f"the file is {described(data)}, expected a table of a model's parts")
    check_format(source, FORMAT, VERSION)


def _validated(source: Source, folder: Path | None) -> Any:
    try:
        context = {"parameters": _parameters(source.data), "folder": folder}
        return schema.document().model_validate(source.data, context=context)
    except ValidationError as invalid:
        errors = explanations(invalid, source.data, kinds=_kinds, refine=_refined)
        errors.sort(key=lambda error: source.line(error[0]))
        lines = [source.sentence(place, what) for place, what in errors[:_MOST_ERRORS]]
        if len(errors) > _MOST_ERRORS:
            lines.append(f"... and {len(errors) - _MOST_ERRORS} more")
        raise PlacedError("\n".join(lines), errors) from None


def _parameters(data: Mapping[str, Any]) -> dict[str, float | None]:
    """The default of each parameter, None for one that will be refused."""
    table = data.get("parameters")
    found: dict[str, float | None] = dict.fromkeys(table if isinstance(table, dict) else ())
    for name in found:
        with suppress(ValueError):
            found[name] = schema.default_value(data["parameters"][name])
    return found


def _kinds(place: Place) -> list[str]:
    return [*REGISTRY, *PAIRS] if place[:1] == ("loops",) else list(REGISTRY)


def _fields(record: type, given: dict[str, Any]) -> dict[str, Any]:
    """A part's fields, those of the joint type gathered into the type."""
    kind = given.pop("type", None)
    if kind is None:
        return given
    cls: type[Pair] = REGISTRY[kind] if kind in REGISTRY else PAIRS[kind]
    constants = {f.name: given.pop(f.name) for f in dataclasses.fields(cls) if f.name in given}
    return {"type": cls(**constants), **given}


@contextmanager
def _located(source: Source, place: Place) -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        _, value = walk(place, source.data)
        raise source.error(_refined(place, value, str(error)), str(error)) from error


def _place_of(message: str, data: Mapping[str, Any]) -> Place:
    """The part that a message of the builder names first."""
    found: list[tuple[int, Place]] = []
    for section, (kind, _) in PARTS.items():
        for name in data.get(section) or ():
            for mention in (f"{kind} {name!r}", f": {name} -> "):
                if (position := message.find(mention)) >= 0:
                    found.append((position, (section, name)))
    if not found:
        starts = {"gravity": ("gravity",), "a shape of the world": ("visuals",)}
        return next((place for start, place in starts.items() if message.startswith(start)), ())
    _, place = min(found, key=lambda item: item[0])
    return _refined(place, walk(place, data)[1], message)


def _refined(place: Place, table: Any, message: str) -> Place:
    """The key inside a part that a message talks about, by its name or by its value."""
    kind = PARTS[str(place[0])][0] if place and place[0] in PARTS else ""
    return _sought(place, table, message.replace(f"{kind} {place[1]!r}", "", 1) if kind else message)


def _sought(place: Place, table: Any, message: str) -> Place:
    for token in re.finditer(r"(?:\w+ )?(['\"])(?P<text>.*?)\1|(?P<word>\w+)", message):
        text, word = token["text"], token["word"]
        for key, value in _keys(table):
            name = str(key[-1])
            named = word in (name, name.partition("_")[0], name.removesuffix("s"))
            if named or (text is not None and (value == text or (isinstance(value, list) and text in value))):
                return _sought((*place, *key), value, message[token.end() :])
    return place


def _keys(table: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """All keys below a table, the nearest first."""
    level = [((*place, key), value) for key, value in table.items()] if isinstance(table, dict) else []
    yield from level
    for key, value in level:
        yield from _keys(value, key)


# --- writing ------------------------------------------------------------------------------------------------


def plain_model(model: Model) -> dict[str, Any]:
    """A model as tables, lists, texts and numbers: the content of its file."""
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": model.name}
    document["gravity"] = [_plain(entry) for entry in model.gravity]
    if model.parameters:
        document["parameters"] = dict(model.parameters)
    if model.visuals:
        document["visuals"] = _plain(model.visuals)
    for section in PARTS:
        parts = {part.name: _table(part, omit=_follows(part)) for part in getattr(model, section)}
        if parts:
            document[section] = parts
    return document


def _follows(part: Any) -> tuple[str, ...]:
    """Fields that are not written: the name is the key, the inertia of a flexible body is that of its modes at rest."""
    return ("name", "inertia") if getattr(part, "flexible", None) is not None else ("name",)


def _set_aside(model: Model, document: dict[str, Any], path: Path) -> dict[str, bytes]:
    """Side files by their names, named in the document; bodies with formulas of parameters stay in it."""
    files: dict[str, bytes] = {}
    for k, body in enumerate(model.bodies):
        if body.flexible is None or side_file.has_formulas(body.flexible):
            continue
        name = f"{path.stem}.{body.name if is_word(body.name) else k}.npz"
        files[name] = side_file.pack(body.flexible)
        table = document["bodies"][body.name]["flexible"]
        texts = {key: table[key] for key in side_file.TEXTS if key in table}
        document["bodies"][body.name]["flexible"] = {
            "file": name,
            "sha256": side_file.digest(files[name]),
            **texts,
        }
    return files


def _plain(value: Any) -> Any:
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Placement):
        table = _table(value)
        return {"quaternion_wxyz" if key == "quaternion" else key: entry for key, entry in table.items()}
    if isinstance(value, Inertia):
        return {"mass": _plain(value.mass), **_table(value)}
    if dataclasses.is_dataclass(value):
        return _table(value)
    raise UnsupportedError(f"the file format has no way to write {value!r}")


def _table(record: Any, omit: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a record that differ from their defaults; -0.0 is not 0.0 here."""
    table: dict[str, Any] = {}
    kind: type = type(record)
    choices = schema.choice_fields(kind)
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name in omit or repr(value) == repr(field.default):
            continue
        if isinstance(value, Pair):
            table |= {"type": _kind(value)}
            table |= {
                f.name: _plain(getattr(value, f.name))
                for f in dataclasses.fields(value)
                if not (f.default == "" and getattr(value, f.name) == "")
            }
        elif (kind, field.name) in schema.NAMED:
            table[field.name] = dict(value)
        elif field.name in choices:
            table[type(value).__name__.lower()] = _plain(value)
        else:
            table[field.name] = _plain(value)
    return table


def _kind(joint_type: Pair) -> str:
    if type(joint_type) not in (REGISTRY.get(joint_type.kind), PAIRS.get(joint_type.kind)):
        raise UnsupportedError(
            f"joint type {type(joint_type).__name__} is not registered; files can only hold registered types"
        )
    return joint_type.kind


def write_whole(path: Path, content: bytes) -> None:
    """A file that appears whole or not at all."""
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

"""The stand-alone page: one HTML file with picture, plots and controls, that opens from disk without network or server.

Names come from model files and are not trusted. They enter the page only as JSON in a block that no browser runs, with
every character escaped that could end the block, and leave it only as text. A content security policy allows just the
scripts of this package, by their hashes, so that nothing else can run.

Sliders without a server: the poses of all bodies are a program that the page runs. The same steps that the kernels are made
of, unrolled to `SX`, give a list of instructions, so every joint type can be moved there, without a second implementation of
any. A slider is a coordinate where coordinates simply add, and a tangent displacement from the given configuration elsewhere
(rotation vectors of free and spherical joints). Couplings are followed. For loops and equations there is a second program,
of their residuals phi(x) and of d phi / d x, with which the page keeps them closed by Newton's method.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert import sweeps
from alembert.constraints.equations import equations
from alembert.errors import ArgumentError, writing
from alembert.joints.joint import ModalCoordinates
from alembert.model import Model
from alembert.spatial import Pose
from alembert.view.animation import RATE, Animation, CurvePage, Curves, Frames, as_animation
from alembert.view.deformed import drawn
from alembert.view.scene import NamedFrame, Scene, body_poses, scene

Array = np.ndarray
MOST_INSTRUCTIONS = 60_000
OPERATIONS = tuple(
    """const input output assign add sub mul div neg sin cos tan asin acos atan atan2 sq sqrt twice inv fabs sign lt le eq
    ne not and or if_else_zero fmin fmax pow constpow exp log floor ceil sinh cosh tanh fmod copysign hypot""".split()  # noqa: SIM905
)
_BENT = 0.3  # how far modes bend by sliders: radians, or of the length of a link
_CODES = {getattr(ca, f"OP_{name.upper()}"): k for k, name in enumerate(OPERATIONS)}


@dataclass(frozen=True)
class Slider:
    """`index` in the program's input; `value` is where it starts."""

    name: str
    joint: str
    unit: str
    low: float
    high: float
    value: float
    index: int
    """of the degree of freedom"""
    limited: bool


@dataclass(frozen=True, eq=False)
class PoseProgram:
    """`code` (n, 4): operation, result, operands."""

    inputs: int
    registers: int
    code: Array
    constants: Array


@dataclass(frozen=True, eq=False)
class SliderPrograms:
    """`poses` gives 12 numbers per body, rotation by rows, then origin; `closing` phi, then d phi / d x by columns."""

    sliders: tuple[Slider, ...]
    poses: PoseProgram
    closing: PoseProgram | None


def sliders(model: Model, q: Any, length: float) -> tuple[Slider, ...]:
    """One per degree of freedom that no coupling prescribes."""
    _, p = body_poses(model, q)
    far = max(2 * length, float(np.linalg.norm(p.max(axis=0) - p.min(axis=0))) if len(p) else 0.0)
    coupled = {coupling.joint for coupling in model.couplings}
    found = []
    names = model.speed_names
    for joint in model.space:
        sq, sv = joint.q, joint.v
        if joint.name in coupled:
            continue
        for k, (_, unit) in enumerate(joint.type.speeds):
            unit = unit.removesuffix("/s")
            reach = np.pi if unit == "rad" else far
            if isinstance(joint.type, ModalCoordinates):
                reach = _BENT * (1.0 if unit == "rad" else length)
            low, high, value, limited = -reach, reach, 0.0, False
            if joint.type.is_vector_space:
                value = float(q[sq.start + k])
                below = model.lower_limits[sq.start + k]
                above = model.upper_limits[sq.start + k]
                limited = bool(np.isfinite(below) or np.isfinite(above))
                low = float(below) if np.isfinite(below) else min(low, value, above - 2 * reach)
                high = float(above) if np.isfinite(above) else max(high, value, low + 2 * reach)
                low, high = min(low, value), max(high, value)
            index = sv.start + k
            found.append(
                Slider(names[index], joint.name, unit, float(low), float(high), value, index, limited)
            )
    return tuple(found)


def configuration(model: Model, start: Array, x: Any) -> Any:
    """q from slider values x (nv): x itself where coordinates add, start moved by x elsewhere; couplings followed."""
    symbolic = isinstance(x, ca.SX)
    parts: dict[str, Any] = {}
    for joint in model.space:
        sq, sv = joint.q, joint.v
        if joint.type.nv == 0:
            continue
        if joint.type.is_vector_space:
            parts[joint.name] = x[sv]
        else:
            q0 = ca.SX(start[sq]) if symbolic else start[sq]
            parts[joint.name] = joint.type.integrate(q0, x[sv])
    for _ in model.couplings:  # a master may itself be coupled
        for coupling in model.couplings:
            total = model.value(coupling.offset)
            for master, ratio in zip(coupling.masters, coupling.ratios, strict=True):
                total = total + model.value(ratio) * parts[master][0]
            parts[coupling.joint] = ca.vertcat(total) if symbolic else np.array([float(total)])
    if symbolic:
        return ca.vertcat(ca.SX(0, 1), *parts.values())
    return np.concatenate([np.zeros(0), *parts.values()])


def slider_programs(model: Model, q: Any, length: float) -> SliderPrograms | None:
    """The program and its sliders; None where it would be too long, or nothing moves."""
    if model.nv == 0:
        return None
    model = drawn(model)
    start = np.asarray(q, dtype=float)
    x = ca.SX.sym("x", model.nv)
    q = configuration(model, start, x)
    numbers = ca.SX([value for _, value in model.parameters])
    given = [q, numbers] if model.parameters else [q]
    nodes = model.symbolic.function(sweeps.POSES, ("q",))(*given)
    rows = []
    for body in model.bodies:
        node, offset = model.compute.locate("view", body.name, None)
        R, p = ca.SX(offset.rotation), ca.SX(offset.translation)
        if node >= 0:
            R_W, p_W = ca.reshape(nodes[node, :9], 3, 3).T, nodes[node, 9:].T
            R, p = R_W @ R, p_W + R_W @ p
        rows += [ca.vec(R.T), p]
    poses = _instructions(ca.Function("poses", [x], [ca.densify(ca.vertcat(*rows))]))
    if poses is None:
        return None
    closing = None
    if model.loops or model.equations:
        phi = equations(model.compute.tree, q, ca.SX(model.nv, 1), numbers).residual
        slope = ca.jacobian(phi, x)
        closing = _instructions(ca.Function("closing", [x], [ca.densify(ca.vertcat(phi, ca.vec(slope)))]))
    return SliderPrograms(sliders(model, start, length), poses, closing)


def _instructions(function: ca.Function) -> PoseProgram | None:
    n = function.n_instructions()
    if n > MOST_INSTRUCTIONS:
        return None
    code = np.zeros((n, 4), dtype=np.int32)
    constants: list[float] = []
    for k in range(n):
        op = function.instruction_id(k)
        if op not in _CODES:
            return None
        inputs, outputs = function.instruction_input(k), function.instruction_output(k)
        if op == ca.OP_CONST:
            code[k] = (_CODES[op], outputs[0], len(constants), 0)
            constants.append(function.instruction_constant(k))
        elif op == ca.OP_INPUT:
            code[k] = (_CODES[op], outputs[0], inputs[1], 0)
        elif op == ca.OP_OUTPUT:
            code[k] = (_CODES[op], outputs[1], inputs[0], 0)
        else:
            code[k] = (_CODES[op], outputs[0], inputs[0], inputs[1] if len(inputs) > 1 else 0)
    return PoseProgram(function.size1_in(0), function.sz_w(), code, np.array(constants))


THEMES = ("auto", "light", "dark")
STYLES = ("page.css",)
SCRIPTS = ("three.min.js", "plot.js", "stage.js", "hand.js", "player.js", "start.js")
_LARGEST = 32767


def write_html(
    path: str | os.PathLike[str],
    model: Model,
    time: Any = None,
    q: Any = None,
    *,
    title: str = "",
    theme: str = "auto",
    autoplay: bool = True,
    **options: Any,
) -> Path:
    """Write a page of a model along a trajectory: `time` (N,) and `q` (N, nq).

    `options` are those of `Animation`: `efforts` (N, nv), `series`, `wrenches`, `notes`, `trails`, `parameters`. Without
    `time` the page has the model at `q` (the neutral configuration by default) and a slider for every joint.
    """
    shown: Any
    if time is None:
        if options:
            raise ArgumentError(f"write_html: {next(iter(options))} is given without time")
        shown = Still(model, q, title)
    else:
        shown = Animation(model, time, q, title=title, **options)
    return write_page(path, [shown], title=title, theme=theme, autoplay=autoplay)


def write_page(
    path: str | os.PathLike[str],
    shown: Iterable[Any],
    *,
    title: str = "",
    theme: str = "auto",
    autoplay: bool = True,
) -> Path:
    """Write one page with several scenes, each in its tab: models, results and motions."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(
            f"a page is HTML, and {path.name!r} does not end with .html; plot(path=...) writes pictures, and to_film films"
        )
    text = page(shown, title=title, theme=theme, autoplay=autoplay)
    with writing(path):
        path.write_text(text, encoding="utf-8")
    return path


def page(
    shown: Iterable[Any], *, title: str = "", theme: str = "auto", autoplay: bool = True, told: bool = False
) -> str:
    """The text of a page; `told` is for one inside a widget, which is told where joints are."""
    title, data = page_data(
        [shown] if isinstance(shown, Model | Animation) else shown, title, theme, autoplay=autoplay
    )
    live = any("live" in s for s in data["scenes"])
    names = (*SCRIPTS[:-1], *(("live.js",) if live else ()), SCRIPTS[-1], *(("framed.js",) if told else ()))
    scripts = [asset(name) for name in names]
    style = asset(*STYLES)
    allowed = " 'wasm-unsafe-eval'" if live else ""
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(s) for s in scripts)}{allowed}; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    guard = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    block = f'<script type="application/json" id="data">{_json(data)}</script>'
    ends = [block, *(f"<script>{script}</script>" for script in scripts)]
    return _document(title, [guard, f"<style>{style}</style>"], "", ends)


def page_text(title: str, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A page that is served, whose scripts ask for everything else."""
    tags = [f'<link rel="stylesheet" href="{html.escape(name)}">' for name in styles]
    tags += [f'<script defer src="{html.escape(name)}"></script>' for name in scripts]
    return _document(title, tags, '<p class="problem">Reading the model ...</p>', [])


def _document(title: str, head: Sequence[str], main: str, ends: Sequence[str]) -> str:
    title = html.escape(title)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{title}</title>",
            *head,
            "</head>",
            "<body>",
            f"<header><h1>{title}</h1></header>",
            f"<main>{main}</main>",
            "<noscript>This page needs JavaScript.</noscript>",
            *ends,
            "</body>",
            "</html>",
            "",
        ]
    )


def page_data(
    shown: Iterable[Any], title: str = "", theme: str = "auto", *, autoplay: bool = False
) -> tuple[str, dict[str, Any]]:
    """The title of a page, and what `assets/start.js` shows."""
    if theme not in THEMES:
        raise ArgumentError(f"theme is {theme!r}, expected one of {', '.join(THEMES)}")
    scenes = [scene_data(thing) for thing in shown]
    if not scenes:
        raise ArgumentError("write_page: there is nothing to show")
    titles = {s["title"]: s.get("name", s["title"]) for s in scenes}
    title = title or " and ".join(titles if len(titles) < 4 else dict.fromkeys(titles.values()))
    return title, {"scenes": scenes, "theme": theme, "autoplay": bool(autoplay)}


class Still:
    """A model at rest, with sliders; `q` None is the neutral configuration. `live` is what `assets/live.js` reads."""

    def __init__(
        self, model: Model, q: Any = None, title: str = "", *, live: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"view: model is a {type(model).__name__}, expected a Model")
        self.model, self.title, self.live = model, title, live
        self.q = start(model) if q is None else configuration_of(model, q)

    def values(self, q: Array) -> list[float]:
        """Of the sliders at q: coordinates where these add, displacements from the start elsewhere."""
        moved, found = self.model.difference(self.q, q), np.zeros(self.model.nv)
        for o in self.model.space:
            found[o.v] = q[o.q] if o.type.is_vector_space else moved[o.v]
        return [float(value) for value in found]


def configuration_of(model: Model, q: Any) -> Array:
    """Given as an array, or by joint."""
    if isinstance(q, Mapping):
        q = model.configuration(q)
    q = model.compute.numbers("view", "q", q, model.nq, batch=False)
    model.check_configuration(q)
    return q


def start(model: Model) -> Array:
    """The neutral configuration, moved into the limits and onto loops where that is possible."""
    from alembert.errors import AlembertError

    q = np.clip(model.neutral(), model.lower_limits, model.upper_limits)
    if model.is_constrained:
        rng = np.random.default_rng(0)  # the same picture every time
        for spread in (0.0, 0.3, 0.6, 0.6, 1.0, 1.0):  # stretched links close from neither side
            try:
                return model.assemble(model.integrate(q, spread * rng.standard_normal(model.nv))).q
            except AlembertError:
                continue
    return q  # with the loops open, if they cannot be closed


def pose_numbers(model: Model, q: Any) -> list[float]:
    """Of all bodies, one after the other: the rotation by rows, then the origin."""
    R, p = body_poses(model, q)
    return _rounded(np.concatenate([R.reshape(len(R), 9), p], axis=1))


# --- data ---------------------------------------------------------------------------------------------------


NOT_DRAWN = ("meshes", "parts", "frames", "masses", "sensors", "loops", "arrows", "trails")
"""what a page without a picture has none of"""


def scene_data(thing: Any) -> dict[str, Any]:
    """What the scripts of a page draw: a model with sliders, or a motion."""
    if isinstance(thing, Model):
        thing = Still(thing)
    if isinstance(thing, Still):
        drawn = scene(thing.model)
        return {
            **_drawn(drawn),
            "title": thing.title or thing.model.name,
            **_sliders(thing.model, thing.q, drawn),
            "panels": [],
            "trails": [],
            "notes": [],
            **({"live": thing.live} if thing.live else {}),
        }
    if isinstance(thing, CurvePage):
        return {
            **{name: [] for name in NOT_DRAWN},
            "title": thing.title,
            "plain": True,
            "motion": {"start": 0.0, "end": thing.duration, "count": 2, "positions": "", "quaternions": ""},
            "posing": None,
            "panels": [_panel(curves) for curves in thing.curves],
            "notes": _notes(thing.notes.items()),
        }
    motion = as_animation(thing)
    drawn = scene(motion.model, parameters=motion.parameters)
    frames, riding = _riding(motion.frames(), drawn.length, motion.model)
    return {
        **_drawn(drawn),
        "title": motion.title or motion.model.name,
        "motion": _frames(frames),
        "posing": None,
        "panels": [
            *(
                {**_panel(Curves(*panel)), "thinned": len(panel[1]) < len(motion.time)}
                for panel in motion.panels()
            ),
            *map(_panel, motion.curves),
        ],
        "arrows": [_arrow(arrow) for arrow in frames.arrows],
        "trails": [
            {"name": name, "body": body, "point": [float(x) for x in point]}
            for name, body, point in motion.trail_points()
        ],
        "notes": _notes((*motion.notes.items(), *riding, *_coarse(frames))),
    }


def _panel(curves: Curves) -> dict[str, Any]:
    lines = [{"name": name, **_packed(line)} for name, line in curves.lines.items()]
    return {"title": curves.title, "over": curves.over, "time": _packed(curves.x), "lines": lines}


def _notes(given: Iterable[tuple[str, Any]]) -> list[list[str]]:
    return [[str(key), _note(value)] for key, value in given]


def _riding(frames: Frames, length: float, model: Model) -> tuple[Frames, list[tuple[str, str]]]:
    """Let the picture move with the first body where a page could not tell places on it: in an orbit, say.

    Positions in pages are 16-bit parts of the box around the motion, and browsers draw in single precision.
    """
    p = frames.positions
    if not p.size:
        return frames, []
    own = p - p[:, :1]
    size = max(length, float(np.max(np.abs(own))))
    if np.max(np.ptp(p, axis=(0, 1))) < WIDE * size and np.max(np.abs(p)) < FAR * size:
        return frames, []
    levels = {factor: (x - x[:, :1], turned) for factor, (x, turned) in frames.exaggerated.items()}
    told = f"moves with {model.bodies[0].name!r}; where it is, the plots show"
    return dataclasses.replace(frames, positions=own, exaggerated=levels), [("picture", told)]


WIDE, FAR = 3e3, 1e5
"""sizes of a model: how far it may move, and be away, for steps of a twentieth and of a hundredth of its size"""


def _coarse(frames: Frames) -> list[tuple[str, str]]:
    """A word where a long motion has fewer frames than eyes want: in between, bodies move along straight lines."""
    span = float(frames.time[-1] - frames.time[0])
    rate = (len(frames.time) - 1) / span if span > 0 else RATE
    return (
        [] if rate > 20 or len(frames.time) < 2 else [("picture", f"{rate:.3g} frames per second of motion")]
    )


def _frames(frames: Frames) -> dict[str, Any]:
    """Poses as int16: positions in the box around the motion, entries of unit quaternions."""
    levels = [{"factor": factor, **_poses(*poses)} for factor, poses in frames.exaggerated.items()]
    return {
        "start": float(frames.time[0]),
        "end": float(frames.time[-1]),
        "count": len(frames.time),
        **_poses(frames.positions, frames.quaternions),
        **({"levels": levels} if levels else {}),
    }


def _poses(positions: Array, quaternions: Array) -> dict[str, Any]:
    low, high = _bounds(positions)
    middle, scale = (low + high) / 2, np.maximum((high - low) / (2 * _LARGEST), 1e-300)
    return {
        "positions": _base64(np.round((positions - middle) / scale).astype("<i2")),
        "scale": scale.tolist(),
        "offset": middle.tolist(),
        "quaternions": _base64(np.round(quaternions * _LARGEST).astype("<i2")),
    }


def _sliders(model: Model, q: Array, drawn: Scene) -> dict[str, Any]:
    """The program of the poses; the poses themselves where there is none."""
    program = slider_programs(model, q, drawn.length)
    if program is None:
        return {"posing": None, "arrows": [], "motion": _frames(Animation(model, [0.0], [q]).frames())}
    return {
        "motion": None,
        "arrows": [],
        "posing": {
            "operations": list(OPERATIONS),
            "poses": _listed(program.poses),
            "closing": program.closing and _listed(program.closing),
            "open": program.closing is None and bool(model.loops or model.equations),
            "length": drawn.length,
            "sliders": [vars(s) for s in program.sliders],
        },
    }


def _listed(program: PoseProgram) -> dict[str, Any]:
    return {
        "inputs": program.inputs,
        "registers": program.registers,
        "code": _base64(program.code.astype("<i4")),
        "constants": _base64(program.constants.astype("<f8")),
    }


def _drawn(drawn: Scene) -> dict[str, Any]:
    def mark(m: NamedFrame) -> dict[str, Any]:
        return {"name": m.name, "body": m.body, "kind": m.kind, "matrix": _matrix(m.pose)}

    return {
        "name": drawn.name,
        "bodies": list(drawn.bodies),
        "up": list(drawn.up),
        "gravity": drawn.gravity,
        "length": drawn.length,
        "parts": [
            {
                "kind": part.kind,
                "body": part.body,
                "mesh": part.mesh,
                "matrix": _rounded(part.matrix),
                "color": [round(float(c), 4) for c in part.color],
            }
            for part in drawn.parts
        ],
        "meshes": [_mesh(surface.vertices, surface.faces) for surface in drawn.meshes],
        "frames": [mark(m) for m in drawn.frames],
        "masses": [
            {"body": m.body, "mass": m.mass, "matrix": _matrix(m.pose), "radii": list(m.radii)}
            for m in drawn.masses
        ],
        "sensors": [mark(m) for m in drawn.sensors],
        "loops": [[mark(a), mark(b)] for a, b in drawn.loops],
    }


def _mesh(vertices: Array, faces: Array) -> dict[str, Any]:
    low, high = vertices.min(axis=0).astype(float), vertices.max(axis=0).astype(float)
    middle, scale = (low + high) / 2, np.maximum((high - low) / (2 * _LARGEST), 1e-300)
    return {
        "vertices": _base64(np.round((vertices - middle) / scale).astype("<i2")),
        "offset": middle.tolist(),
        "scale": scale.tolist(),
        "extent": [*high.tolist(), *low.tolist()],
        "faces": _base64(faces.astype("<u4")),
    }


def _arrow(arrow: Any) -> dict[str, Any]:
    largest = float(np.max(np.abs(arrow.vectors)))
    scale = largest / _LARGEST
    return {
        "name": arrow.name,
        "kind": arrow.kind,
        "body": arrow.body,
        "point": list(arrow.point),
        "scale": scale,
        "largest": float(np.max(np.linalg.norm(arrow.vectors, axis=1))),
        "data": _base64(np.round(arrow.vectors / scale).astype("<i2")),
    }


def _packed(x: Array) -> dict[str, Any]:
    """int16 with scale and offset; what is not finite is a gap."""
    x = np.asarray(x, dtype=float)
    good = np.isfinite(x)
    low, high = (float(x[good].min()), float(x[good].max())) if good.any() else (0.0, 0.0)
    offset = (low + high) / 2
    scale = max((high - low) / (2 * _LARGEST), 1e-300)
    codes = np.round((np.where(good, x, offset) - offset) / scale)
    return {"data": _base64(np.where(good, codes, -32768).astype("<i2")), "scale": scale, "offset": offset}


def _bounds(p: Array) -> tuple[Array, Array]:
    flat = p.reshape(-1, 3)
    if not len(flat):
        return np.zeros(3), np.zeros(3)
    return flat.min(axis=0), flat.max(axis=0)


def _matrix(pose: Pose) -> list[float]:
    M = np.eye(4)
    M[:3, :3], M[:3, 3] = pose.rotation, pose.translation
    return _rounded(M)


def _rounded(M: Array) -> list[float]:
    return [float(f"{x:.7g}") for x in M.ravel()]


def _note(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def _base64(x: Array) -> str:
    return base64.b64encode(np.ascontiguousarray(x).tobytes()).decode()


# --- text ---------------------------------------------------------------------------------------------------


def _json(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the block it stands in: ASCII only, and no angle brackets or ampersands."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def asset(name: str) -> str:
    """A script or a style that pages are made of."""
    text = resources.files("alembert.view").joinpath("assets", name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

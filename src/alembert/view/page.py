"""The stand-alone page: one HTML file with picture, plots and controls, that opens from disk without network or server.

Names come from model files and are not trusted. They enter the page only as JSON in a block that no browser runs, with
every character escaped that could end the block, and leave it only as text. A content security policy allows just the
scripts of this package, by their hashes, so that nothing else can run.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import math
import os
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from alembert.errors import ArgumentError, writing
from alembert.model import Model
from alembert.spatial import Pose
from alembert.view.animation import RATE, Animation, Frames, as_animation
from alembert.view.scene import NamedFrame, Scene, scene
from alembert.view.sliders import OPERATIONS, PoseProgram, slider_programs

Array = np.ndarray
THEMES = ("auto", "light", "dark")
_SCRIPTS = ("three.min.js", "plot.js", "stage.js", "hand.js", "player.js", "start.js")
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
    text = page(shown, title=title, theme=theme, autoplay=autoplay)
    path = Path(path)
    with writing(path):
        path.write_text(text, encoding="utf-8")
    return path


def page(
    shown: Iterable[Any], *, title: str = "", theme: str = "auto", autoplay: bool = True, told: bool = False
) -> str:
    """The text of a page; `told` is for one inside a widget, which is told where joints are."""
    if theme not in THEMES:
        raise ArgumentError(f"theme is {theme!r}, expected one of {', '.join(THEMES)}")
    scenes = [scene_data(thing) for thing in ([shown] if isinstance(shown, Model | Animation) else shown)]
    if not scenes:
        raise ArgumentError("write_page: there is nothing to show")
    title = title or " and ".join(dict.fromkeys(s["title"] for s in scenes))
    data = {"scenes": scenes, "theme": theme, "autoplay": bool(autoplay)}
    live = any("live" in s for s in scenes)
    names = (*_SCRIPTS[:-1], *(("live.js",) if live else ()), _SCRIPTS[-1], *(("framed.js",) if told else ()))
    scripts = [asset(name) for name in names]
    style = asset("page.css")
    allowed = " 'wasm-unsafe-eval'" if live else ""
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(s) for s in scripts)}{allowed}; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    heading = html.escape(title)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{heading}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f'<header><h1>{heading}</h1><div class="end"><button type="button" id="theme" title="dark or light">'
            '<span aria-hidden="true">◐</span> Theme</button></div></header>',
            "<main></main>",
            "<noscript>This page needs JavaScript.</noscript>",
            f'<script type="application/json" id="data">{_json(data)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


class Still:
    """A model at rest, with sliders; `q` None is the neutral configuration. `live` is what `assets/live.js` reads."""

    def __init__(
        self, model: Model, q: Any = None, title: str = "", *, live: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"view: model is a {type(model).__name__}, expected a Model")
        self.model, self.title, self.live = model, title, live
        self.q = start(model) if q is None else np.asarray(q, dtype=float)
        model.check_configuration(self.q)
        if self.q.ndim != 1:
            raise ArgumentError(f"view: q has shape {self.q.shape}, expected ({model.nq},)")


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


# --- data ---------------------------------------------------------------------------------------------------


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
    motion = as_animation(thing)
    drawn = scene(motion.model, parameters=motion.parameters)
    frames, riding = _riding(motion.frames(), drawn.length, motion.model)
    return {
        **_drawn(drawn),
        "title": motion.title or motion.model.name,
        "motion": _frames(frames),
        "posing": None,
        "panels": [
            {
                "title": title,
                "time": _packed(times),
                "lines": [{"name": name, **_packed(line)} for name, line in lines.items()],
            }
            for title, times, lines in motion.panels()
        ],
        "arrows": [_arrow(arrow) for arrow in frames.arrows],
        "trails": [
            {"name": name, "body": body, "point": [float(x) for x in point]}
            for name, body, point in motion.trail_points()
        ],
        "notes": [
            [str(key), _note(value)] for key, value in (*motion.notes.items(), *riding, *_coarse(frames))
        ],
    }


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
            "poses": _instructions(program.poses),
            "closing": program.closing and _instructions(program.closing),
            "open": program.closing is None and bool(model.loops or model.equations),
            "length": drawn.length,
            "sliders": [vars(s) for s in program.sliders],
        },
    }


def _instructions(program: PoseProgram) -> dict[str, Any]:
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
    return {
        "data": _base64(np.where(good, codes, -32768).astype("<i2")),
        "scale": scale,
        "offset": offset,
    }


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

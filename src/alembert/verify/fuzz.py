"""Differential fuzzing: random models x random states x every algorithm, against identities and oracles.

    python -m alembert.verify.fuzz --minutes 10 --folder build/fuzz

A tree is drawn over the whole registry of joints, with or without springs, friction, armature, rotors and a floating base;
in a third of them some bodies deform. Every fifth model has loops, and may have a coupling. A *property* takes a model and
states (q, v, x) and gives an error and the limit that it must keep; a property at one state of a model is a *case*. What
breaks a property is shrunk: bodies, loops, attachments and frames are taken away while it still breaks. The small model is
written as a file, next to a script that shows the failure. A fifth of the time goes to damaged files (see `fuzz_files`):
models, results and checkpoints; another to odd arguments of all methods (`fuzz_calls`).
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alembert import library
from alembert.errors import AlembertError, AlembertWarning
from alembert.joints import REGISTRY, Limits
from alembert.model import Model
from alembert.model.io import load, save
from alembert.spatial import quaternion
from alembert.verify.fuzz_properties import LOOPS, TREES, DoesNotApply, Property, closed_states, draw_closed
from alembert.verify.random_models import states, with_modes

Array = np.ndarray
SAMPLES = 6  # states of each model


def properties_of(model: Model) -> Mapping[str, Property]:
    """Those of trees, or of mechanisms with loops."""
    return LOOPS if model.is_constrained else TREES


def states_of(model: Model, count: int, seed: int) -> tuple[Array, Array, Array]:
    """Random ones; they close the loops of a model that has any."""
    if model.is_constrained:
        return closed_states(model, count, seed)
    q, v, x = states(model, count, seed)
    return _off_half_turns(model, q), v, x


def _off_half_turns(model: Model, q: Array) -> Array:
    """Attitudes under springs a little away from half a turn from rest, where the shorter way round, and so the spring's
    energy, jumps.
    """
    first = {"free": 3, "spherical": 0}  # of the quaternion, w first
    for joint in model.joints:
        if joint.spring is not None and joint.type.kind in first:
            begin = first[joint.type.kind]
            at = slice(model.q_slice(joint.name).start + begin, model.q_slice(joint.name).stop)
            rest = np.asarray(joint.spring.rest or (0.0,) * begin + (1.0, 0.0, 0.0, 0.0), dtype=float)[begin:]
            turned = np.stack([quaternion.multiply(quaternion.conjugate(rest), x) for x in q[:, at]])
            near = np.abs(turned[:, 0]) < 0.02
            turned[near, 0] = 0.05
            turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
            q[near, at] = np.stack([quaternion.multiply(rest, x) for x in turned])[near]
    return q


# --- models ---------------------------------------------------------------------------------------------------


def draw(seed: int) -> Model:
    """A tree of two to eight bodies, over the whole registry or a few kinds of it; every fifth model has loops."""
    return draw_closed(seed) if seed % 5 == 4 else draw_tree(seed)


def draw_tree(seed: int) -> Model:
    rng = np.random.default_rng(seed)
    kinds = list(REGISTRY)
    if rng.random() < 0.5:
        kinds = [str(kind) for kind in rng.permutation(kinds)[: rng.integers(2, 5)]]
    if set(kinds) == {"fixed"}:
        kinds.append("revolute")
    model = library.random_tree(
        seed,
        bodies=int(rng.integers(2, 9)),
        kinds=kinds,
        floating=bool(rng.random() < 0.3),
        branching=float(rng.uniform(0, 0.8)),
        attachments=bool(rng.random() < 0.5),
    )
    if np.random.default_rng((seed, 1)).random() < 1 / 3:
        model = with_modes(model, seed)
    return model if model.nv else draw_tree(seed + 1_000_000)


@dataclass(frozen=True)
class Finding:
    """A property that a model breaks at some states."""

    name: str
    seed: int
    model: Model
    message: str
    samples: int = SAMPLES
    """how many states"""


def broken(
    name: str,
    model: Model,
    seed: int,
    properties: Mapping[str, Property] | None = None,
    samples: int = SAMPLES,
    drawn: tuple[Array, Array, Array] | None = None,
    counted: Counter[str] | None = None,
) -> str | None:
    """What is wrong with a property on a model, at states `drawn` from the seed; None if it holds, or does not apply.

    The states that were put to it are `counted`.
    """
    chosen = (properties or properties_of(model))[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlembertWarning)
            error, limit = chosen.at(model, *(drawn or states_of(model, samples, seed)))
    except DoesNotApply:
        return None
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"
    if counted is not None:
        counted[name] += min(samples, chosen.states)
    return None if error <= limit else f"error {error:.3g}, limit {limit:.3g}"


def fuzz(
    seeds: Iterator[int],
    *,
    minutes: float | None = None,
    samples: int = SAMPLES,
    properties: Mapping[str, Property] | None = None,
    told: Callable[[str], None] | None = None,
    counted: Counter[str] | None = None,
) -> Iterator[Finding]:
    """Models of the seeds, one after the other, until the time is over; findings are shrunk, cases `counted`."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    for seed in seeds:
        model = draw(seed)
        if told is not None:
            told(f"seed {seed}: {len(model.bodies)} bodies, {model.nv} degrees of freedom")
        drawn = states_of(model, samples, seed)
        for name in properties or properties_of(model):
            if broken(name, model, seed, properties, samples, drawn, counted) is not None:
                yield shrunk(name, model, seed, properties, samples)
            if end is not None and time.monotonic() > end:
                return


# --- shrinking ------------------------------------------------------------------------------------------------


def shrunk(
    name: str,
    model: Model,
    seed: int,
    properties: Mapping[str, Property] | None = None,
    samples: int = SAMPLES,
) -> Finding:
    """The smallest model found, by taking parts away one at a time, on which the property still breaks."""
    message = broken(name, model, seed, properties, samples) or ""
    closed, found = model.is_constrained, True
    while found:
        found = False
        for smaller in _smaller(model):
            if smaller.nv == 0 or smaller.is_constrained != closed:
                continue
            wrong = broken(name, smaller, seed, properties, samples)
            if wrong is not None:
                model, message, found = smaller, wrong, True
                break
    return Finding(name, seed, model, message, samples)


_NOTHING: dict[str, Any] = {
    "rotors": (),
    "armature": (),
    "friction": None,
    "spring": None,
    "limits": Limits(),
}


def _smaller(model: Model) -> Iterator[Model]:
    for loop in model.loops:
        yield model.replace(loops=tuple(other for other in model.loops if other != loop))
    if model.couplings:
        yield model.replace(couplings=())
    parents = {joint.parent for joint in model.joints}
    tied = {name for coupling in model.couplings for name in (coupling.joint, *coupling.masters)}
    used = {model.frame(name).body for loop in model.loops for name in (loop.frame_a, loop.frame_b)}
    used |= {model.joint(name).child for name in tied}
    for body in reversed(model.bodies):
        if body.name not in parents | used and len(model.bodies) > 1:
            yield _without(model, body.name)
    for joint in model.joints:
        for part, nothing in _NOTHING.items():
            if getattr(joint, part) != nothing:
                yield model.replace_joint(joint.name, **{part: nothing})
    for body in model.bodies:
        if body.flexible is not None and body.name not in parents and not model.frames:
            yield model.replace_body(body.name, flexible=None)
    if model.frames and not model.loops:
        yield model.replace(frames=())


def _without(model: Model, name: str) -> Model:
    kept = [joint for joint in model.joints if joint.child != name]
    names = {joint.name for joint in kept}
    return model.replace(
        bodies=tuple(body for body in model.bodies if body.name != name),
        joints=tuple(kept),
        frames=tuple(frame for frame in model.frames if frame.body != name),
        actuators=tuple(a for a in model.actuators if a.joint in names),
        sensors=(),
    )


SCRIPT = '''"""Shows the finding {name!r}: {message}"""

from pathlib import Path

from alembert.verify.fuzz import properties_of, states_of, stored

model = stored(Path(__file__).parent)
error, limit = properties_of(model)[{name!r}].at(model, *states_of(model, {samples}, {seed}))
print(f"error {{error:.3g}}, limit {{limit:.3g}}")
raise SystemExit(not error <= limit)
'''


def write(finding: Finding, folder: Path) -> Path:
    """The model as a file (custom joints: pickled), and a script that shows the finding."""
    place = folder / f"{finding.name}-{finding.seed}"
    place.mkdir(parents=True, exist_ok=True)
    try:
        save(finding.model, place / "model.toml")
        if load(place / "model.toml") != finding.model:
            raise AlembertError("the file does not give the model back")
    except AlembertError:
        (place / "model.toml").unlink(missing_ok=True)
        (place / "model.pickle").write_bytes(pickle.dumps(finding.model))
    message = finding.message.replace('"""', "'''")
    script = SCRIPT.format(name=finding.name, seed=finding.seed, samples=finding.samples, message=message)
    (place / "reproduce.py").write_text(script, encoding="utf-8")
    return place


def stored(folder: Path) -> Model:
    """The model of a finding."""
    file = folder / "model.toml"
    if file.exists():
        return load(file)
    model: Any = pickle.loads((folder / "model.pickle").read_bytes())
    assert isinstance(model, Model)
    return model


def main() -> int:
    """The command line; 1 if anything was found."""
    import argparse
    import itertools

    parser = argparse.ArgumentParser(prog="python -m alembert.verify.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument("--seed", type=int, default=None, help="of the first tree; by default from the clock")
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"states of each model ({SAMPLES})")
    parser.add_argument("--folder", type=Path, default=Path("fuzz"), help="for findings (fuzz)")
    options = parser.parse_args()
    first = int(time.time()) if options.seed is None else options.seed
    count, cases, began = 0, Counter[str](), time.monotonic()
    for finding in fuzz(
        itertools.count(first),
        minutes=0.6 * options.minutes,
        samples=options.samples,
        told=print,
        counted=cases,
    ):
        count += 1
        place = write(finding, options.folder)
        print(f"{finding.name}: {finding.message}\n{finding.model}\n-> {place}")
    hours = (time.monotonic() - began) / 3600
    print(f"{cases.total():,} cases, {cases.total() / hours:,.0f} an hour")
    count += _damaged_files(first, 0.2 * options.minutes, options.folder)
    count += _odd_calls(first, 0.2 * options.minutes)
    print(f"{count} findings" if count else "nothing found")
    return int(count > 0)


def _odd_calls(first: int, minutes: float) -> int:
    """Odd arguments to all methods until the time is over; how many were answered badly."""
    from alembert.verify.fuzz_calls import MODELS, attack, methods

    end, count, seed = time.monotonic() + 60 * minutes, 0, first
    while time.monotonic() < end:
        for model in MODELS:
            for method in methods():
                if (wrong := attack(model, method, seed)[0]) is not None:
                    count += 1
                    print(f"seed {seed}, model {model!r}: {wrong}")
        seed += 1
    print(f"{(seed - first) * len(MODELS) * len(methods())} odd calls")
    return count


def _damaged_files(first: int, minutes: float, folder: Path) -> int:
    """Attacks by files until the time is over; those that were answered badly stay in the folder. How many there were."""
    from alembert.verify.fuzz_files import attack, kinds

    end, count, seed = time.monotonic() + 60 * minutes, 0, first
    folder.mkdir(parents=True, exist_ok=True)
    while time.monotonic() < end:
        for suffix in kinds():
            path = folder / f"damaged-{seed}{suffix}"
            if (wrong := attack(suffix, seed, folder)) is None:
                path.unlink()
                continue
            count += 1
            print(f"{path}: {wrong}")
        seed += 1
    print(f"{seed - first} damaged files of each of {', '.join(kinds())}")
    return count


if __name__ == "__main__":
    raise SystemExit(main())

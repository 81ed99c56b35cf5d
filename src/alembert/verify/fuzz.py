"""Differential fuzzing: random trees x random states x every algorithm, against identities and oracles.

    python -m alembert.verify.fuzz --minutes 10 --folder build/fuzz

A tree is drawn over the whole registry of joints, with or without springs, friction, armature, rotors and a floating base;
in a third of them some bodies deform. A *property* takes a model and a state (q, v, x) and gives an error and the limit
that it must keep. What breaks a property is shrunk: bodies, attachments and frames are taken away while it still breaks.
The small model is written as a file, next to a script that shows the failure. A fifth of the time goes to damaged files
(see `fuzz_files`): models, results and checkpoints; another to odd arguments of all methods (`fuzz_calls`).
"""

from __future__ import annotations

import dataclasses
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert import library
from alembert.errors import AlembertError, AlembertWarning
from alembert.joints import REGISTRY, Limits
from alembert.model import Model
from alembert.model.io import load, save
from alembert.verify.programs import PROGRAMS
from alembert.verify.random_models import (
    EPS,
    RATE,
    ROUNDING,
    friction_effort,
    rate_along,
    relative,
    states,
    times,
    with_modes,
)

Array = np.ndarray
Measured = tuple[float, float]
"""an error, and its limit"""
Property = Callable[[Model, Array, Array, Array], Measured]

PROPERTIES: dict[str, Property] = {}
SAMPLES = 6  # states per tree


def property_(function: Property) -> Property:
    PROPERTIES[function.__name__] = function
    return function


# --- identities -----------------------------------------------------------------------------------------------


@property_
def forward_undoes_inverse(model: Model, q: Array, v: Array, x: Array) -> Measured:
    a = model.forward_dynamics(q, v, x)
    terms = np.abs(model.multiply_mass_matrix(q, a)) + np.abs(model.bias_forces(q, v)) + np.abs(x)
    return relative(model.inverse_dynamics(q, v, a) - x, terms), ROUNDING


@property_
def equation_of_motion(model: Model, q: Array, v: Array, x: Array) -> Measured:
    product, bias = times(model.mass_matrix(q), x), model.bias_forces(q, v)
    error = product + bias - model.inverse_dynamics(q, v, x)
    return relative(error, np.abs(product) + np.abs(bias) + EPS), ROUNDING


@property_
def kinetic_energy(model: Model, q: Array, v: Array, x: Array) -> Measured:
    T = model.kinetic_energy(q, v)
    return float(np.max(np.abs(np.sum(v * times(model.mass_matrix(q), v), axis=-1) / 2 / T - 1))), ROUNDING


@property_
def bias_has_its_parts(model: Model, q: Array, v: Array, x: Array) -> Measured:
    coriolis, rest = model.coriolis_forces(q, v), model.bias_forces(q, 0 * v)
    error = model.bias_forces(q, v) - coriolis - rest - friction_effort(model, v)
    return relative(
        error, np.abs(coriolis) + np.abs(rest) + np.abs(friction_effort(model, v)) + EPS
    ), ROUNDING


@property_
def coriolis_power(model: Model, q: Array, v: Array, x: Array) -> Measured:
    half = rate_along(lambda q, v: model.mass_matrix(q), model, q, v, 0 * v) / 2
    work = np.sum(v * model.coriolis_forces(q, v), axis=-1)
    size = np.sum(np.abs(v) * times(np.abs(model.mass_matrix(q)) + np.abs(half), np.abs(v)), axis=-1)
    return float(np.max(np.abs(work - np.sum(v * times(half, v), axis=-1)) / size)), RATE


@property_
def gradient_of_the_potential(model: Model, q: Array, v: Array, x: Array) -> Measured:
    change = rate_along(lambda q, v: model.potential_energy(q), model, q, v, 0 * v)
    bias = model.bias_forces(q, 0 * v)
    size = np.sum(np.abs(bias * v), axis=-1) + np.abs(model.potential_energy(q)) + 1.0
    return float(np.max(np.abs(change - np.sum(bias * v, axis=-1)) / size)), RATE


@property_
def methods_agree(model: Model, q: Array, v: Array, x: Array) -> Measured:
    expected = model.forward_dynamics(q, v, x)
    size = np.linalg.cond(model.mass_matrix(q)) * (np.linalg.norm(expected, axis=-1) + EPS)
    found = model.forward_dynamics(q, v, x, method="factorise")
    return float(np.max(np.linalg.norm(found - expected, axis=-1) / size)), ROUNDING


@property_
def mass_matrix_solved(model: Model, q: Array, v: Array, x: Array) -> Measured:
    M, a = model.mass_matrix(q), model.solve_mass_matrix(q, x)
    size = np.linalg.norm(M, axis=(-1, -2)) * np.linalg.norm(a, axis=-1)
    return float(np.max(np.linalg.norm(times(M, a) - x, axis=-1) / size)), ROUNDING


@property_
def hybrid_satisfies_the_equation_of_motion(model: Model, q: Array, v: Array, x: Array) -> Measured:
    free = (np.cumsum(np.abs(x), axis=-1) % 1.0 < 0.5).astype(float)
    a, effort = model.compile("hybrid_dynamics", batch=True)(q, v, x, x[..., ::-1], free)
    product, bias = times(model.mass_matrix(q), a), model.bias_forces(q, v)
    given = np.where(free > 0.5, effort - x, a - x[..., ::-1])
    if np.any(given != 0):
        return float("inf"), ROUNDING
    return relative(product + bias - effort, np.abs(product) + np.abs(bias) + np.abs(x) + EPS), ROUNDING


@property_
def momentum(model: Model, q: Array, v: Array, x: Array) -> Measured:
    h, A = model.momentum(q, v, about="world"), model.momentum_matrix(q, about="world")
    return relative(h - times(A, v), np.linalg.norm(A, axis=-1) * np.abs(v).max()), ROUNDING


def _last_that_moves(model: Model) -> str:
    """The last body that a moving joint carries; one that is fixed to the world takes no wrench."""
    moving: dict[str, bool] = {}
    for joint in model.joints:
        moving[joint.child] = joint.type.nv > 0 or moving.get(joint.parent, False)
    return [name for name, moves in moving.items() if moves][-1]


@property_
def frame_jacobians(model: Model, q: Array, v: Array, x: Array) -> Measured:
    frame = _last_that_moves(model)
    worst = 0.0
    for reference in ("local", "world", "local_world_aligned"):
        J = model.frame_jacobian(q, frame, reference=reference)
        V = model.frame_velocity(q, v, frame, reference=reference)
        size = np.linalg.norm(J, axis=(-1, -2)) * np.linalg.norm(v, axis=-1) + EPS
        worst = max(worst, float(np.max(np.linalg.norm(times(J, v) - V, axis=-1) / size)))
    return worst, ROUNDING


@property_
def wrenches_are_efforts(model: Model, q: Array, v: Array, x: Array) -> Measured:
    frame, F = _last_that_moves(model), np.arange(1.0, 7.0)
    tau = model.inverse_dynamics(q, v, x)
    change = tau - model.inverse_dynamics(q, v, x, wrenches={frame: F})
    J = model.frame_jacobian(q, frame)
    size = np.abs(tau) + np.linalg.norm(J, axis=(-1, -2))[:, None] * 10.0
    return relative(change - np.swapaxes(J, -1, -2) @ F, size), ROUNDING


@property_
def configurations_form_a_manifold(model: Model, q: Array, v: Array, x: Array) -> Measured:
    dv = 0.5 * v / (1.0 + np.abs(v).max())
    back = model.difference(q, model.integrate(q, dv))
    return float(np.max(np.abs(back - dv), initial=0.0)), 1e-12


@property_
def derivatives_are_differences(model: Model, q: Array, v: Array, x: Array) -> Measured:
    d = model.forward_dynamics_derivatives(q, v, x)
    dq, dv = 0.3 * x / np.abs(x).max(), 0.3 * v / np.abs(v).max()
    h = 1e-4

    def at(k: int) -> Array:
        return model.forward_dynamics(model.integrate(q, k * h * dq), v + k * h * dv, x)

    change = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
    found = times(d.dq, dq) + times(d.dv, dv)
    terms = np.linalg.norm(found, axis=-1) + np.linalg.norm(at(0), axis=-1) * np.linalg.cond(
        model.mass_matrix(q)
    )
    # Coulomb friction is smoothed over speeds s: (h/s)^4 of it is left
    return float(np.max(np.linalg.norm(found - change, axis=-1) / terms)), 1e-6


@property_
def products_are_adjoint(model: Model, q: Array, v: Array, x: Array) -> Measured:
    worst = 0.0
    for state in zip(q[:2], v[:2], x[:2], strict=True):
        along = (state[1], state[2], state[1])
        _, change = model.jvp("forward_dynamics", state, along)
        gradients = model.vjp("forward_dynamics", state, state[2])
        left = float(np.dot(state[2], change))
        parts = [float(np.dot(g, d)) for g, d in zip(gradients, along, strict=True)]
        size = sum(abs(part) for part in parts) + abs(left) + float(np.abs(change) @ np.abs(state[2]))
        size *= float(np.linalg.cond(model.mass_matrix(state[0]))) ** 0.5
        worst = max(worst, abs(left - sum(parts)) / (size + EPS))
    return worst, 1e-10


# --- oracles --------------------------------------------------------------------------------------------------


@property_
def alone_as_in_a_batch(model: Model, q: Array, v: Array, x: Array) -> Measured:
    batch = model.forward_dynamics(q, v, x)
    alone = np.array([model.forward_dynamics(*state) for state in zip(q, v, x, strict=True)])
    return float(np.sum(batch != alone)), 0.0


@property_
def rolled_code(model: Model, q: Array, v: Array, x: Array) -> Measured:
    found = model.compile("forward_dynamics", batch=True, lowering="rolled")(q, v, x)
    expected = model.forward_dynamics(q, v, x)
    size = np.linalg.cond(model.mass_matrix(q)) * (np.linalg.norm(expected, axis=-1) + EPS)
    return float(np.max(np.linalg.norm(found - expected, axis=-1) / size)), ROUNDING


@property_
def casadi_machine(model: Model, q: Array, v: Array, x: Array) -> Measured:
    s = [ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("x", model.nv))]
    function = ca.Function("f", s, [model.symbolic.inverse_dynamics(*s)])
    found = np.array([function(*state).full().ravel() for state in zip(q, v, x, strict=True)])
    expected = model.inverse_dynamics(q, v, x)
    size = np.abs(expected) + np.abs(model.bias_forces(q, v)) + np.abs(times(model.mass_matrix(q), x)) + EPS
    return relative(found - expected, size), ROUNDING


@property_
def file_and_back(model: Model, q: Array, v: Array, x: Array) -> Measured:
    if any(joint.type.kind == "custom" for joint in model.joints):
        return 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.toml"
        save(model, path)
        return float(load(path) != model), 0.0


@property_
def pickled(model: Model, q: Array, v: Array, x: Array) -> Measured:
    other = pickle.loads(pickle.dumps(model))
    return float(np.sum(other.forward_dynamics(q, v, x) != model.forward_dynamics(q, v, x))), 0.0


def _other(name: str, model: Model, q: Array, v: Array, x: Array) -> Measured:
    """Another program, where it is installed and has such joints; none has modes."""
    if model.space.of_bodies:
        return 0.0, 0.0
    plain = model.replace(
        joints=tuple(
            dataclasses.replace(j, spring=None, friction=None, rotors=(), armature=()) for j in model.joints
        )
    )
    try:
        other = PROGRAMS[name].load(plain)
    except (ImportError, AlembertError):
        return 0.0, 0.0
    theirs = np.array([other.inverse_dynamics(*state) for state in zip(q, v, x, strict=True)])
    ours = plain.inverse_dynamics(q, v, x)
    size = np.abs(times(plain.mass_matrix(q), x)) + np.abs(plain.bias_forces(q, v)) + EPS
    return relative(ours - theirs, size), 1e-11


@property_
def pinocchio(model: Model, q: Array, v: Array, x: Array) -> Measured:
    return _other("pinocchio", model, q, v, x)


@property_
def mujoco(model: Model, q: Array, v: Array, x: Array) -> Measured:
    return _other("mujoco", model, q, v, x)


# --- trees ----------------------------------------------------------------------------------------------------


def draw(seed: int) -> Model:
    """A tree of two to eight bodies, over the whole registry or a few kinds of it."""
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
    return model if model.nv else draw(seed + 1_000_000)


@dataclass(frozen=True)
class Finding:
    """A property that a model breaks at some states."""

    name: str
    seed: int
    model: Model
    message: str


def broken(
    name: str, model: Model, seed: int, properties: Mapping[str, Property] | None = None
) -> str | None:
    """What is wrong with a property on a model, at states drawn from the seed; None if it holds."""
    q, v, x = states(model, SAMPLES, seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlembertWarning)
            error, limit = (properties or PROPERTIES)[name](model, q, v, x)
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"
    return None if error <= limit else f"error {error:.3g}, limit {limit:.3g}"


def fuzz(
    seeds: Iterator[int],
    *,
    minutes: float | None = None,
    properties: Mapping[str, Property] | None = None,
    told: Callable[[str], None] | None = None,
) -> Iterator[Finding]:
    """Trees of the seeds, one after the other, until the time is over; findings are shrunk."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    for seed in seeds:
        model = draw(seed)
        if told is not None:
            told(f"seed {seed}: {len(model.bodies)} bodies, {model.nv} degrees of freedom")
        for name in properties or PROPERTIES:
            if broken(name, model, seed, properties) is not None:
                yield shrunk(name, model, seed, properties)
            if end is not None and time.monotonic() > end:
                return


# --- shrinking ------------------------------------------------------------------------------------------------


def shrunk(name: str, model: Model, seed: int, properties: Mapping[str, Property] | None = None) -> Finding:
    """The smallest model found, by taking parts away one at a time, on which the property still breaks."""
    message = broken(name, model, seed, properties) or ""
    found = True
    while found:
        found = False
        for smaller in _smaller(model):
            wrong = broken(name, smaller, seed, properties) if smaller.nv else None
            if wrong is not None:
                model, message, found = smaller, wrong, True
                break
    return Finding(name, seed, model, message)


_NOTHING: dict[str, Any] = {
    "rotors": (),
    "armature": (),
    "friction": None,
    "spring": None,
    "limits": Limits(),
}


def _smaller(model: Model) -> Iterator[Model]:
    parents = {joint.parent for joint in model.joints}
    for body in reversed(model.bodies):
        if body.name not in parents and len(model.bodies) > 1:
            yield _without(model, body.name)
    for joint in model.joints:
        for part, nothing in _NOTHING.items():
            if getattr(joint, part) != nothing:
                yield model.replace_joint(joint.name, **{part: nothing})
    for body in model.bodies:
        if body.flexible is not None and body.name not in parents and not model.frames:
            yield model.replace_body(body.name, flexible=None)
    if model.frames:
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

from alembert.verify.fuzz import PROPERTIES, SAMPLES, states, stored

model = stored(Path(__file__).parent)
q, v, x = states(model, SAMPLES, {seed})
error, limit = PROPERTIES[{name!r}](model, q, v, x)
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
    script = SCRIPT.format(name=finding.name, seed=finding.seed, message=message)
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
    parser.add_argument("--folder", type=Path, default=Path("fuzz"), help="for findings (fuzz)")
    options = parser.parse_args()
    first = int(time.time()) if options.seed is None else options.seed
    count = 0
    for finding in fuzz(itertools.count(first), minutes=0.6 * options.minutes, told=print):
        count += 1
        place = write(finding, options.folder)
        print(f"{finding.name}: {finding.message}\n{finding.model}\n-> {place}")
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

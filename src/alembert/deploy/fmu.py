"""Functional Mock-up Units (FMI 2 and 3): a model as a file that other simulators run, as co-simulation and model exchange.

All numbers of an instance are in one array; the value reference of a variable is its place in it:

    time, q, v, x, q', v', x', inputs, parameters, outputs

The C code is that of `alembert.deploy.c_program` and of `fmi.c`, the same for both versions. Sampled laws and sensors have
time events in model exchange; loops are closed again at a step that leaves them open, by an event that changes the states.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from alembert.arguments import real
from alembert.deploy import compiler
from alembert.deploy.c_program import CProgram, c_program
from alembert.deploy.exported_system import UNITS, Given, base_units
from alembert.engine.c_export import c_number
from alembert.errors import ArgumentError, FileError, writing
from alembert.model import Model

RUNTIME = Path(__file__).parent / "assets" / "fmi.c"
FOLDERS = {2: {"x86_64-linux": "linux64", "x86_64-windows": "win64", "x86_64-darwin": "darwin64"}, 3: {}}
"""of binaries, where they are not called like the platform"""
ROLES = {
    "state": {"causality": "output", "variability": "continuous", "initial": "exact"},
    "derivative": {"causality": "local", "variability": "continuous", "initial": "calculated"},
    "input": {"causality": "input", "variability": "continuous"},
    "parameter": {"causality": "parameter", "variability": "tunable", "initial": "exact"},
    "output": {"causality": "output", "variability": "continuous", "initial": "calculated"},
}
CLONES = """\
#include <math.h>
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("default", "fma")))
#else
#define CLONES
#endif
"""
"""a second version of the large functions for processors that have fused multiplications: a fifth faster"""
STRUCTURE = {
    "Output": ("state", "output"),
    "ContinuousStateDerivative": ("derivative",),
    "InitialUnknown": ("derivative", "output"),
}
"""by the name of FMI 3: which variables are listed"""
STRUCTURE2 = {
    "Output": "Outputs",
    "ContinuousStateDerivative": "Derivatives",
    "InitialUnknown": "InitialUnknowns",
}
"""the names of FMI 2"""


@dataclass(frozen=True)
class Variable:
    """One number of an FMU; `kind` is state, derivative, input, parameter or output."""

    name: str
    reference: int
    kind: str
    unit: str
    start: float | None = None
    of: int = -1
    """of a derivative, the reference of its state"""


def fmu(
    model: Model,
    path: str | os.PathLike[str],
    *,
    version: int = 2,
    step: float = 1e-3,
    integrator: str = "rk4",
    controller: Any = None,
    inputs: Sequence[str] | None = None,
    drives: Mapping[str, Any] | None = None,
    sensors: Any = (),
    forces: Any = (),
    frames: Sequence[str] = (),
    q0: Any = None,
    v0: Any = None,
    platforms: Sequence[str] | None = None,
    name: str = "",
    stop: float = 10.0,
) -> Path:
    """Write a model as an FMU, for co-simulation and for model exchange; the path.

    In co-simulation it integrates by itself, with `integrator` in steps of at most `step` seconds. `controller`, `drives`,
    `sensors` and `forces` are as in `al.simulate`, as far as they are expressions: `casadi.Function`s, `StateSpace`s,
    `DynamicController`s, schedules, `Sampled` ones of these or of a `SymbolicLaw`; drives with lags and limits; sensors
    without noise. A `casadi.Function` may take inputs behind t, q, v, which `inputs` names. Inputs are the efforts of all
    joints, or of those in `inputs`; with controllers, what these take, and their set points that are given as numbers
    (`reference.NAME`). Parameters are those of the model. Outputs are all coordinates and speeds (`q.NAME`, `v.NAME`), the
    states of controllers and drives, and position and quaternion of `frames`. Directional derivatives are exact. Loops are
    kept closed. `q0` and `v0` are the start values.

    `platforms` are some of x86_64-linux, aarch64-linux, x86_64-windows, x86_64-darwin and aarch64-darwin: by default this
    machine's own, by its C compiler. Others (and machines without one) need the extra `deploy`, ziglang, which takes minutes
    for the first FMU of a platform. The C source is always inside; with no platforms it is alone.
    """
    if version not in (2, 3):
        raise ArgumentError(f"fmu: version is {version!r}, expected 2 or 3")
    real("fmu", "step", step, "a positive time in seconds", over=0.0)
    target = Path(path)
    if target.suffix != ".fmu":
        raise ArgumentError(f"fmu: {target} should end in .fmu")
    if not target.parent.is_dir():
        raise FileError(f"{target}: cannot be written: there is no folder {target.parent}")
    identifier = name or re.sub(r"\W", "_", model.name, flags=re.ASCII)
    identifier = identifier if identifier[:1].isalpha() else f"model_{identifier}"
    given = Given(controller, inputs, drives, sensors, forces)
    program = c_program("fmu", model, identifier, given, integrator=integrator, frames=frames, q0=q0, v0=v0)
    where = [compiler.this_platform()] if platforms is None else list(platforms)
    variables = _variables(program)
    source = _source(program, variables, step)
    token = hashlib.sha256(f"{version}\0{source}".encode()).hexdigest()[:32]
    description = _description(version, program, variables, f"{{{token}}}", step, stop)
    source = source.replace("@TOKEN@", f"{{{token}}}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.c"
        file.write_text(source, encoding="utf-8")
        binaries: dict[str, Path] = {}
        for entry in where:
            library = Path(folder) / entry / f"{identifier}{compiler.TARGETS.get(entry, ('', ''))[1]}"
            library.parent.mkdir(exist_ok=True)
            compiler.shared_library("fmu", [file], library, entry)
            binaries[f"binaries/{FOLDERS[version].get(entry, entry)}/{library.name}"] = library
        with writing(target), zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("modelDescription.xml", description)
            archive.writestr("sources/model.c", source)
            if version == 3:
                archive.writestr("sources/buildDescription.xml", _build_description(identifier))
            for place, library in binaries.items():
                archive.write(library, place)
    return target


def _variables(program: CProgram) -> list[Variable]:
    found: list[Variable] = []

    def add(name: str, kind: str, unit: str, start: float | None = None, of: int = -1) -> None:
        found.append(Variable(name, 1 + len(found), kind, unit, start, of))

    labels = (
        ("q.", "rate.", program.states),
        ("v.", "a.", program.speeds),
        ("", "rate.", program.more_states),
    )
    for label, _, signals in labels:
        for signal in signals:
            add(f"{label}{signal.name}", "state", signal.unit, signal.start)
    for _, label, signals in labels:
        for signal in signals:
            add(f"{label}{signal.name}", "derivative", _per_second(signal.unit), of=1 + _derivatives(found))
    for kind, signals in (
        ("input", program.inputs),
        ("parameter", program.parameters),
        ("output", program.outputs),
    ):
        for signal in signals:
            add(signal.name, kind, signal.unit, None if kind == "output" else signal.start)
    return found


def _derivatives(variables: Sequence[Variable]) -> int:
    return sum(x.kind == "derivative" for x in variables)


def _per_second(unit: str) -> str:
    return f"{unit}2" if unit.endswith("/s") else f"{unit}/s" if unit in UNITS else ""


def _source(program: CProgram, variables: Sequence[Variable], step: float) -> str:
    """What is called MODEL_... takes d and r of `fmi.c`."""
    sizes, name = program.sizes, program.prefix
    starts = ", ".join(c_number(x.start or 0.0) for x in variables)
    constants = {f"N{letter.upper()}": size for letter, size in sizes.items()}
    more = {"ROWS": program.rows, "TICKS": int(bool(program.tick)), "TICK": repr(program.tick)}
    defined = "\n".join(
        f"#define {key} {value}"
        for key, value in {**constants, **more, "STEP": repr(float(step)), "MODEL_NAME": f'"{name}"'}.items()
    )
    places = {"q": "AT_Q", "v": "AT_V", "x": "AT_X", "u": "AT_U", "p": "AT_P"}
    results = {"rate": "AT_RATE", "a": "AT_A", "x_rate": "AT_XR", "y": "AT_Y"}

    def array(argument: str) -> str:
        if argument in ("t", "h", "d"):
            return {"t": "(r)", "h": "(h)", "d": "(m_d)"}[argument]
        if argument.startswith("d_"):
            return f"(dr) + {(places | results)[argument[2:]]}"
        return f"(r) + {(places | results)[argument]}"

    macros = []
    heads = {"tangent": "m_d, r, dr", "step": "t, h, m_d, r"}
    for key in ("derivatives", "outputs", "tangent", "step", "settle", "instant"):
        arguments = program.parts.arguments(key)
        if arguments is not None:
            given = ", ".join("(t)" if key == "step" and x == "t" else array(x) for x in arguments)
            macros.append(f"#define MODEL_{key}({heads.get(key, 'm_d, r')}) {name}_{key}({given})")
    memory = ", ".join(map(c_number, [*program.memory, 0.0]))
    return "\n".join(
        [
            "/* Written by Alembert. */",
            CLONES,
            re.sub(rf"^void (?={name}_)", "CLONES void ", program.text, flags=re.MULTILINE),
            defined,
            *macros,
            f"static const double STARTS[] = {{0.0, {starts}}};",
            f"static const double MEMORY[] = {{{memory}}};",
            RUNTIME.read_text(encoding="utf-8"),
        ]
    )


def _attributes(**values: Any) -> str:
    texts = {k: ("true" if v is True else "false" if v is False else str(v)) for k, v in values.items()}
    return "".join(f" {name}={quoteattr(value)}" for name, value in texts.items())


def _units(variables: Sequence[Variable]) -> list[str]:
    lines = []
    for unit in sorted({x.unit for x in variables if x.unit}):
        base = base_units(unit)
        inner = f">{_tag('BaseUnit', base)}</Unit>" if base is not None else "/>"
        lines.append(f"    <Unit{_attributes(name=unit)}{inner}")
    return ["  <UnitDefinitions>", *lines, "  </UnitDefinitions>"] if lines else []


def _tag(name: str, attributes: Mapping[str, Any], inner: str = "") -> str:
    start = f"<{name}{_attributes(**attributes)}"
    return f"{start}>{inner}</{name}>" if inner else f"{start}/>"


def _description(
    version: int, program: CProgram, variables: Sequence[Variable], token: str, step: float, stop: float
) -> str:
    second = version == 2
    saved = "FMUstate" if second else "FMUState"
    common: dict[str, Any] = {
        "modelIdentifier": program.prefix,
        f"canGetAndSet{saved}": True,
        f"canSerialize{saved}": True,
        f"providesDirectionalDerivative{'' if second else 's'}": True,
    }
    files = _tag("SourceFiles", {}, _tag("File", {"name": "model.c"})) if second else ""
    told = "completedIntegratorStepNotNeeded" if second else "needsCompletedIntegratorStep"
    exchange = {**common, told: (not program.rows) if second else bool(program.rows)}
    about = {"fmiVersion": f"{version}.0", "modelName": program.model.name or program.prefix}
    about |= {("guid" if second else "instantiationToken"): token, "generationTool": "Alembert"}
    about |= {"variableNamingConvention": "flat"} | ({"numberOfEventIndicators": "0"} if second else {})
    experiment = {"startTime": 0.0, "stopTime": float(stop), "stepSize": float(step)}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<fmiModelDescription{_attributes(**about)}>",
        f"  {_tag('ModelExchange', exchange, files)}",
        f"  {_tag('CoSimulation', {**common, 'canHandleVariableCommunicationStepSize': True}, files)}",
        *_units(variables),
        f"  {_tag('DefaultExperiment', experiment)}",
        "  <ModelVariables>",
    ]
    if not second:
        time = {"name": "time", "valueReference": 0, "causality": "independent", "variability": "continuous"}
        lines.append(f"    {_tag('Float64', time)}")
    index = {x.reference: k + 1 if second else x.reference for k, x in enumerate(variables)}
    for x in variables:
        value: dict[str, Any] = {"unit": x.unit} if x.unit else {}
        value |= {"start": repr(float(x.start))} if x.start is not None else {}
        value |= {"derivative": index[x.of]} if x.kind == "derivative" else {}
        own = {"name": x.name, "valueReference": x.reference, **ROLES[x.kind]}
        line = _tag("ScalarVariable", own, _tag("Real", value)) if second else _tag("Float64", own | value)
        lines.append(f"    {line}")
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    for label, kinds in STRUCTURE.items():
        members = [index[x.reference] for x in variables if x.kind in kinds]
        if second and members:
            entries = "".join(_tag("Unknown", {"index": k}) for k in members)
            lines.append(f"    {_tag(STRUCTURE2[label], {}, entries)}")
        elif members:
            lines += [f"    {_tag(label, {'valueReference': k})}" for k in members]
    return "\n".join([*lines, "  </ModelStructure>", "</fmiModelDescription>", ""])


def _build_description(identifier: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<fmiBuildDescription fmiVersion="3.0">\n'
        f"  <BuildConfiguration{_attributes(modelIdentifier=identifier)}>\n"
        '    <SourceFileSet language="C99"><SourceFile name="model.c"/></SourceFileSet>\n'
        '    <Library name="m"/>\n'
        "  </BuildConfiguration>\n"
        "</fmiBuildDescription>\n"
    )

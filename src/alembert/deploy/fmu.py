"""Functional Mock-up Units (FMI 2 and 3): a model as a file that other simulators run, as co-simulation and model exchange.

All numbers of an instance are in one array; the value reference of a variable is its place in it:

    time, q, v, q', v', inputs, parameters, outputs

The C code is that of `alembert.deploy.c_program` and of `fmi.c`, the same for both versions.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import casadi as ca

from alembert.deploy import compiler
from alembert.deploy.c_program import CProgram, c_program
from alembert.errors import ArgumentError
from alembert.model import Model

RUNTIME = Path(__file__).parent / "assets" / "fmi.c"
FOLDERS = {
    2: {"x86_64-linux": "linux64", "x86_64-windows": "win64", "x86_64-darwin": "darwin64"},
    3: {},
}
"""of binaries, where they are not called like the platform"""
UNITS = {
    "rad": {"rad": 1},
    "m": {"m": 1},
    "rad/s": {"rad": 1, "s": -1},
    "m/s": {"m": 1, "s": -1},
    "rad/s2": {"rad": 1, "s": -2},
    "m/s2": {"m": 1, "s": -2},
    "N.m": {"kg": 1, "m": 2, "s": -2},
    "N": {"kg": 1, "m": 1, "s": -2},
}


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
    controller: ca.Function | None = None,
    inputs: Sequence[str] | None = None,
    forces: Any = (),
    frames: Sequence[str] = (),
    q0: Any = None,
    v0: Any = None,
    platforms: Sequence[str] | None = None,
    name: str = "",
    stop: float = 10.0,
) -> Path:
    """Write a model as an FMU, for co-simulation and for model exchange; the path.

    In co-simulation it integrates by itself, with `integrator` in steps of at most `step` seconds. Inputs are the efforts
    of all joints, or of those in `inputs`; with a `controller`, a `casadi.Function` of t, q, v (and inputs, which `inputs`
    names), what that takes. Parameters are those of the model. Outputs are all coordinates and speeds (`q.NAME`, `v.NAME`),
    and position and quaternion of `frames`. Directional derivatives are exact. `forces` are force elements as in
    `al.simulate`; `q0` and `v0` the start values.

    `platforms` are some of x86_64-linux, aarch64-linux, x86_64-windows, x86_64-darwin and aarch64-darwin: by default this
    machine's own, by its C compiler. Others (and machines without one) need the extra `deploy`, ziglang, which takes minutes
    for the first FMU of a platform. The C source is always inside; with no platforms it is alone.
    """
    if version not in (2, 3):
        raise ArgumentError(f"fmu: version is {version!r}, expected 2 or 3")
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < float("inf"):
        raise ArgumentError(f"fmu: step is {step!r}, expected a positive time in seconds")
    target = Path(path)
    if target.suffix != ".fmu":
        raise ArgumentError(f"fmu: {target} should end in .fmu")
    identifier = name or re.sub(r"\W", "_", model.name, flags=re.ASCII)
    identifier = identifier if identifier[:1].isalpha() else f"model_{identifier}"
    program = c_program(
        "fmu",
        model,
        identifier,
        integrator=integrator,
        controller=controller,
        inputs=inputs,
        forces=forces,
        frames=frames,
        q0=q0,
        v0=v0,
    )
    where = [compiler.this_platform()] if platforms is None else list(platforms)
    variables = _variables(program)
    source = _source(program, variables, step)
    token = hashlib.sha256(f"{version}\0{source}".encode()).hexdigest()[:32]
    description = (_description2 if version == 2 else _description3)(
        program, variables, f"{{{token}}}", step, stop
    )
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
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("modelDescription.xml", description)
            archive.writestr("sources/model.c", source)
            if version == 3:
                archive.writestr("sources/buildDescription.xml", _build_description(identifier))
            for place, library in binaries.items():
                archive.write(library, place)
    return target


def _variables(program: CProgram) -> list[Variable]:
    found: list[Variable] = []
    at = 1
    nq, nv = len(program.states), len(program.speeds)
    for kind, signals, prefix in (("state", program.states, "q."), ("state", program.speeds, "v.")):
        for signal in signals:
            found.append(Variable(f"{prefix}{signal.name}", at, kind, signal.unit, signal.start))
            at += 1
    for k, signal in enumerate((*program.states, *program.speeds)):
        label = "rate." if k < nq else "a."
        found.append(Variable(f"{label}{signal.name}", at, "derivative", _per_second(signal.unit), of=1 + k))
        at += 1
    for kind, signals in (
        ("input", program.inputs),
        ("parameter", program.parameters),
        ("output", program.outputs),
    ):
        for signal in signals:
            start = None if kind == "output" else signal.start
            found.append(Variable(signal.name, at, kind, signal.unit, start))
            at += 1
    assert at == 1 + 2 * (nq + nv) + len(program.inputs) + len(program.parameters) + len(program.outputs)
    return found


def _per_second(unit: str) -> str:
    return {"rad/s": "rad/s2", "m/s": "m/s2", "rad": "rad/s", "m": "m/s"}.get(unit, "")


def _source(program: CProgram, variables: Sequence[Variable], step: float) -> str:
    sizes = program.sizes
    starts = ", ".join(repr(float(x.start or 0.0)) for x in variables)
    constants = {
        "NQ": sizes["q"],
        "NV": sizes["v"],
        "NU": sizes["u"],
        "NP": sizes["p"],
        "NY": sizes["y"],
        "STEP": repr(float(step)),
        "MODEL_NAME": f'"{program.prefix}"',
    }
    defined = "\n".join(f"#define {name} {value}" for name, value in constants.items())
    renamed = "\n".join(
        f"#define MODEL_{name} {program.prefix}_{name}"
        for name in ("derivatives", "outputs", "tangent", "step")
    )
    return "\n".join(
        [
            "/* Written by Alembert. */",
            program.text,
            defined,
            renamed,
            f"static const double STARTS[] = {{0.0, {starts}}};",
            RUNTIME.read_text(encoding="utf-8"),
        ]
    )


def _attributes(**values: Any) -> str:
    texts = {k: ("true" if v is True else "false" if v is False else str(v)) for k, v in values.items()}
    return "".join(f" {name}={quoteattr(value)}" for name, value in texts.items())


def _units(variables: Sequence[Variable]) -> list[str]:
    lines = []
    for unit in sorted({x.unit for x in variables if x.unit}):
        base = f"<BaseUnit{_attributes(**UNITS[unit])}/>" if unit in UNITS else ""
        lines.append(
            f"    <Unit{_attributes(name=unit)}>{base}</Unit>"
            if base
            else f"    <Unit{_attributes(name=unit)}/>"
        )
    return ["  <UnitDefinitions>", *lines, "  </UnitDefinitions>"] if lines else []


def _roles(x: Variable) -> dict[str, str]:
    return {
        "state": {"causality": "output", "variability": "continuous", "initial": "exact"},
        "derivative": {"causality": "local", "variability": "continuous", "initial": "calculated"},
        "input": {"causality": "input", "variability": "continuous"},
        "parameter": {"causality": "parameter", "variability": "tunable", "initial": "exact"},
        "output": {"causality": "output", "variability": "continuous", "initial": "calculated"},
    }[x.kind]


def _description2(
    program: CProgram, variables: Sequence[Variable], token: str, step: float, stop: float
) -> str:
    common = _attributes(modelIdentifier=program.prefix, canGetAndSetFMUstate=True, canSerializeFMUstate=True)
    files = '<SourceFiles><File name="model.c"/></SourceFiles>'
    exact = _attributes(providesDirectionalDerivative=True)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<fmiModelDescription"
        + _attributes(
            fmiVersion="2.0",
            modelName=program.model.name or program.prefix,
            guid=token,
            generationTool="Alembert",
            variableNamingConvention="flat",
            numberOfEventIndicators=0,
        )
        + ">",
        f'  <ModelExchange{common}{exact} completedIntegratorStepNotNeeded="true">{files}</ModelExchange>',
        f'  <CoSimulation{common}{exact} canHandleVariableCommunicationStepSize="true">{files}</CoSimulation>',
        *_units(variables),
        f"  <DefaultExperiment{_attributes(startTime=0.0, stopTime=float(stop), stepSize=float(step))}/>",
        "  <ModelVariables>",
    ]
    index = {x.reference: k + 1 for k, x in enumerate(variables)}
    for x in variables:
        real: dict[str, Any] = {"unit": x.unit} if x.unit else {}
        if x.start is not None:
            real["start"] = repr(float(x.start))
        if x.kind == "derivative":
            real["derivative"] = index[x.of]
        own = _attributes(name=x.name, valueReference=x.reference, **_roles(x))
        lines.append(f"    <ScalarVariable{own}><Real{_attributes(**real)}/></ScalarVariable>")
    unknowns = {
        "Outputs": [x for x in variables if x.kind in ("state", "output")],
        "Derivatives": [x for x in variables if x.kind == "derivative"],
        "InitialUnknowns": [x for x in variables if x.kind in ("derivative", "output")],
    }
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    for label, members in unknowns.items():
        if members:
            entries = "".join(f"<Unknown{_attributes(index=index[x.reference])}/>" for x in members)
            lines.append(f"    <{label}>{entries}</{label}>")
    return "\n".join([*lines, "  </ModelStructure>", "</fmiModelDescription>", ""])


def _description3(
    program: CProgram, variables: Sequence[Variable], token: str, step: float, stop: float
) -> str:
    common = _attributes(
        modelIdentifier=program.prefix,
        canGetAndSetFMUState=True,
        canSerializeFMUState=True,
        providesDirectionalDerivatives=True,
    )
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<fmiModelDescription"
        + _attributes(
            fmiVersion="3.0",
            modelName=program.model.name or program.prefix,
            instantiationToken=token,
            generationTool="Alembert",
            variableNamingConvention="flat",
        )
        + ">",
        f"  <ModelExchange{common}/>",
        f'  <CoSimulation{common} canHandleVariableCommunicationStepSize="true"/>',
        *_units(variables),
        f"  <DefaultExperiment{_attributes(startTime=0.0, stopTime=float(stop), stepSize=float(step))}/>",
        "  <ModelVariables>",
        '    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>',
    ]
    for x in variables:
        more: dict[str, Any] = {"unit": x.unit} if x.unit else {}
        if x.start is not None:
            more["start"] = repr(float(x.start))
        if x.kind == "derivative":
            more["derivative"] = x.of
        lines.append(
            f"    <Float64{_attributes(name=x.name, valueReference=x.reference, **_roles(x), **more)}/>"
        )
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    for label, kinds in (
        ("Output", ("state", "output")),
        ("ContinuousStateDerivative", ("derivative",)),
        ("InitialUnknown", ("derivative", "output")),
    ):
        lines += [
            f"    <{label}{_attributes(valueReference=x.reference)}/>" for x in variables if x.kind in kinds
        ]
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

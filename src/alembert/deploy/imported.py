"""FMUs from other tools in `al.simulate`: co-simulation units (FMI 2 and 3) as controllers and force elements.

A unit and the model exchange numbers every `period`, as a master of co-simulation does. At the instant t_k

    the unit goes from t_(k-1) to t_k with the inputs of t_(k-1),  gets its inputs of t_k,  and tells its outputs,

which act until t_(k+1). So the error of the coupling is of first order in the period, and a unit that is a sampled
controller itself, made for this period, is met exactly.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import shutil
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known, mapping, unknown
from alembert.deploy.exported_system import base_units
from alembert.errors import AlembertError, ArgumentError, NumericalError, UnsupportedError
from alembert.linear import quantities
from alembert.linear.quantities import Output, expressions, find
from alembert.model import Model
from alembert.simulate.controllers import Sampled

Array = np.ndarray
REAL = ("Real", "Float64")


class UnitError(AlembertError, RuntimeError):
    """A unit that does not load, or does not step."""


@dataclass(frozen=True)
class UnitVariable:
    """A number that a unit takes or gives."""

    name: str
    causality: str
    """input, output, parameter or local"""
    unit: str
    start: float | None
    description: str
    reference: int = field(repr=False, default=0)
    base: Mapping[str, float] | None = field(repr=False, default=None)
    """exponents of base units, and their factor"""


@dataclass(frozen=True, eq=False)
class ImportedUnit:
    """A co-simulation unit that was read by `load_fmu`; `controller` puts it into a simulation."""

    path: Path
    version: int
    variables: Mapping[str, UnitVariable]
    step: float | None
    """what its author suggests"""
    _description: Any = field(repr=False)
    _folder: str = field(repr=False)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._of("input")

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._of("output")

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._of("parameter")

    def _of(self, causality: str) -> tuple[str, ...]:
        return tuple(x.name for x in self.variables.values() if x.causality == causality)

    def __repr__(self) -> str:
        counts = f"{len(self.inputs)} inputs, {len(self.outputs)} outputs, {len(self.parameters)} parameters"
        return f"<ImportedUnit {self.path.name}: FMI {self.version}, {counts}>"

    def controller(
        self,
        model: Model,
        *,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        period: float | None = None,
        parameters: Mapping[str, float] | None = None,
        name: str = "",
    ) -> Sampled:
        """The unit as a controller or a force element of `al.simulate(model, ..., controller=...)`.

        Args:
            model: what is simulated.
            inputs: by input of the unit, what of the model it gets, as `al.linearize` names outputs (`q:elbow`, `v:elbow`,
                `gyro.x`, `hand.position.z`), or a number. Others keep their start values.
            outputs: by output of the unit, what it acts on: a joint, a degree of freedom, an actuator or a wrench
                (`hand.fz`, in axes of the frame); or such a name and a factor, ("elbow", 0.5). Others are recorded only.
            period: between two exchanges [s]; by default the step that the unit suggests.
            parameters: values for the unit's parameters.
            name: of its outputs in `run.measurements`; by default that of the file.

        A run starts the unit anew; it cannot be resumed, nor can one unit serve a batch of motions: give `al.ensemble` a
        unit for each.
        """
        if period is None:
            period = self.step
        if period is None or isinstance(period, bool) or not (math.isfinite(period) and period > 0):
            raise ArgumentError(
                f"load_fmu: {self.path.name}: period is {period!r}, expected a positive time in seconds"
            )
        started = {key: float(x) for key, x in mapping("load_fmu", "parameters", parameters).items()}
        for key in started:
            self._known(key, self.parameters, "parameter")
        reads: dict[str, Output] = {}
        for key, source in mapping("load_fmu", "inputs", inputs).items():
            self._known(key, self.inputs, "input")
            if isinstance(source, int | float | np.number) and math.isfinite(source):
                started[key] = float(source)
                continue
            row = find(model, str(source), "load_fmu")
            if row is None or row.kind == "a" or row.quantity in ("acceleration", "specific_force"):
                listed = [f"q:{x}" for x in model.speed_names]
                raise ArgumentError(
                    unknown(
                        f"load_fmu: {self.path.name}: {key!r} gets what is no output:", str(source), listed
                    )
                )
            self._same_unit(key, row.unit, str(source))
            reads[key] = row
        acts: dict[str, tuple[str, float]] = {}
        for key, target in mapping("load_fmu", "outputs", outputs).items():
            self._known(key, tuple(self.variables), "output")
            where, factor = target if isinstance(target, tuple) else (target, 1.0)
            candidate, unit = self._target(model, where)
            if not isinstance(target, tuple):
                self._same_unit(key, unit, where)
            acts[key] = (candidate, float(factor))
        law = UnitLaw(self, model, started, reads, acts, float(period), name or self.path.stem)
        return Sampled(law, period=float(period), posts={law.name: np.zeros(len(law.told))}, state=True)

    def _target(self, model: Model, name: str) -> tuple[str, str]:
        """What an output acts on as `quantities.inputs` calls it, and its unit."""
        for candidate in (name, f"wrench:{name}"):
            try:
                found = efforts_of(model, [candidate], model.neutral())
            except ArgumentError:
                continue
            if len(found.names) == 1:
                return candidate, found.units[0]
        raise ArgumentError(
            unknown(
                f"load_fmu: {self.path.name} acts on what is no actuator, degree of freedom or wrench:",
                name,
                [*quantities.actuators(model), *model.space.joint_speed_names],
            )
        )

    def _known(self, name: str, names: tuple[str, ...], kind: str) -> None:
        check_known(f"load_fmu: {self.path.name} has no {kind}", name, names)

    def _same_unit(self, name: str, unit: str, other: str) -> None:
        theirs, ours = self.variables[name].base, base_units(unit)
        if theirs is not None and ours is not None and theirs != {**ours, "factor": 1.0}:
            raise ArgumentError(
                f"load_fmu: {self.path.name}: {name!r} is in {self.variables[name].unit}, {other!r} in {unit}; for an "
                "output give a factor, ('joint', 0.5)"
            )


def efforts_of(
    model: Model, names: list[str], q: Array, parameters: Array | None = None
) -> quantities.InputColumns:
    """tau = matrix u at a configuration."""
    values = dict(model.parameter_values)
    if parameters is not None:
        values = dict(zip(values, parameters.tolist(), strict=True))
    return quantities.inputs(model, names, values, "load_fmu", q)


def load_fmu(path: str | os.PathLike[str]) -> ImportedUnit:
    """Read a co-simulation unit of FMI 2 or 3; its binary must be for this machine. Needs FMPy, of the extra `deploy`.

    A unit is a program: it does what its author wrote. Load only what you trust.
    """
    file = Path(path)
    if importlib.util.find_spec("fmpy") is None:
        raise UnitError("load_fmu: needs FMPy; pip install 'alembert[deploy]'")
    if not file.is_file():
        raise ArgumentError(f"load_fmu: there is no file {file}")
    import fmpy

    try:
        description = fmpy.read_model_description(str(file))
    except Exception as error:  # FMPy raises bare exceptions of many kinds for damaged files
        raise UnitError(f"load_fmu: {file.name} is not readable as an FMU: {error}") from None
    version = int(str(description.fmiVersion)[0])
    if version not in (2, 3) or description.coSimulation is None:
        raise UnsupportedError(
            f"load_fmu: {file.name} is FMI {description.fmiVersion}"
            f"{'' if description.coSimulation is not None else ' for model exchange only'}, expected co-simulation of FMI 2 "
            "or 3"
        )
    platforms = [x for x in fmpy.supported_platforms(str(file)) if x != "c-code"]
    if not {fmpy.platform, fmpy.platform_tuple} & set(platforms):
        raise UnsupportedError(
            f"load_fmu: {file.name} has binaries for {', '.join(platforms) or 'no platform'}, none for {fmpy.platform_tuple}"
        )
    units = {unit.name: unit.baseUnit for unit in description.unitDefinitions or []}
    variables = {
        x.name: UnitVariable(
            x.name,
            x.causality or "local",
            _unit(x),
            None if x.start is None else float(x.start),
            x.description or "",
            int(x.valueReference),
            _exponents(units.get(_unit(x))),
        )
        for x in description.modelVariables
        if x.type in REAL and not getattr(x, "dimensions", None)
    }
    experiment = description.defaultExperiment
    step = None if experiment is None or experiment.stepSize is None else float(experiment.stepSize)
    folder = fmpy.extract(str(file))
    found = ImportedUnit(file, version, variables, step, description, folder)
    weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found


def _unit(variable: Any) -> str:
    own = variable.unit or (variable.declaredType.unit if variable.declaredType is not None else None)
    return str(own or "")


def _exponents(base: Any) -> dict[str, float] | None:
    if base is None:
        return None
    names = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
    found = {name: float(getattr(base, name)) for name in names if getattr(base, name)}
    return {**found, "factor": float(base.factor)}


class UnitLaw:
    """A unit at its instants: `law(t, messages, q, v, parameters)` for `Sampled`."""

    takes_parameters = True

    def __init__(
        self,
        unit: ImportedUnit,
        model: Model,
        started: Mapping[str, float],
        reads: Mapping[str, Output],
        acts: Mapping[str, tuple[str, float]],
        period: float,
        name: str,
    ) -> None:
        self.unit, self.model, self.started, self.acts = unit, model, dict(started), dict(acts)
        self.period, self.name = period, name
        self.reads = [unit.variables[key].reference for key in reads]
        self.told = list(dict.fromkeys([*unit.outputs, *acts]))
        """what is recorded, in this order"""
        q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
        p = ca.SX.sym("p", len(model.parameters))
        rows = expressions(model, list(reads.values()), q, v, p, about=model.neutral())
        signals = ca.Function("signals", [q, v, p], [ca.vertcat(ca.SX(0, 1), *rows)])
        self._signals = signals
        self._targets = [where for where, _ in acts.values()]
        self._factors = np.array([factor for _, factor in acts.values()])
        found = efforts_of(model, self._targets, model.neutral()) if acts else None
        steady = found is not None and not found.wrenches and not model.parameters
        self._columns = found.matrix if found is not None and steady else None
        self._slave: Any = None
        self._first = self._last = math.nan

    def __call__(
        self, t: float, messages: Mapping[str, Array], q: Array, v: Array, parameters: Array | None = None
    ) -> dict[str, Array]:
        if math.isnan(self._first) or t == self._first:
            self._start(t)
        elif abs(t - self._last - self.period) > 1e-6 * self.period:
            raise ArgumentError(
                f"simulate: the unit {self.unit.path.name} is at t = {self._last:g} s and is asked for t = {t:g} s, "
                f"expected {self._last + self.period:g} s: a run with a unit cannot be resumed or be one of a batch; "
                "start it anew, with unit.controller(...) once more"
            )
        else:
            self._do("doStep", self._last, self.period)
        self._last = t
        if self.reads:
            p = self.model.compute.parameter_defaults if parameters is None else parameters
            y = np.array(self._signals(q, v, p)).ravel()
            self._write(self.reads, y.tolist())
        told = np.array(self._read([self.unit.variables[key].reference for key in self.told]))
        if not np.isfinite(told).all():
            k = int(np.flatnonzero(~np.isfinite(told))[0])
            raise NumericalError(
                f"simulate: the unit {self.unit.path.name} gives {self.told[k]} = {told[k]} at t = {t:g} s"
            )
        efforts = np.zeros(self.model.nv)
        if self.acts:
            pushes = self._factors * [told[self.told.index(key)] for key in self.acts]
            matrix = self._columns
            if matrix is None:
                matrix = efforts_of(self.model, self._targets, q, parameters).matrix
            efforts = matrix @ pushes
        return {"efforts": efforts, self.name: told}

    def _start(self, t: float) -> None:
        """A new instance, at its start values."""
        import fmpy.fmi2
        import fmpy.fmi3

        description = self.unit._description
        second = self.unit.version == 2
        kind = fmpy.fmi2.FMU2Slave if second else fmpy.fmi3.FMU3Slave
        token = description.guid if second else description.instantiationToken
        self._slave = slave = kind(
            guid=token,
            unzipDirectory=self.unit._folder,
            modelIdentifier=description.coSimulation.modelIdentifier,
            instanceName=self.name,
        )
        self._do("instantiate")
        weakref.finalize(self, _end, slave)
        if second:
            self._do("setupExperiment", startTime=t)
            self._do("enterInitializationMode")
        else:
            self._do("enterInitializationMode", startTime=t)
        if self.started:
            references = [self.unit.variables[key].reference for key in self.started]
            self._write(references, list(self.started.values()))
        self._do("exitInitializationMode")
        self._first = t

    def _do(self, function: str, *given: Any, **named: Any) -> Any:
        try:
            return getattr(self._slave, function)(*given, **named)
        except Exception as error:  # FMPy raises a bare Exception for what a unit refuses
            raise UnitError(f"simulate: the unit {self.unit.path.name} refuses {function}: {error}") from None

    def _write(self, references: list[int], values: list[float]) -> None:
        self._do("setReal" if self.unit.version == 2 else "setFloat64", references, values)

    def _read(self, references: list[int]) -> list[float]:
        if not references:
            return []
        return list(self._do("getReal" if self.unit.version == 2 else "getFloat64", references))


def _end(slave: Any) -> None:
    """Free an instance; a unit that refuses this has nothing to tell any more."""
    with contextlib.suppress(Exception):
        slave.terminate()
        slave.freeInstance()

"""What an identification found.

What speaks against an estimate: efforts it does not explain, parameters that no body can have.

Signs, units and zeros that are not those of the model are the usual reasons. They show in two ways: the residuals are as
large as the efforts, or least squares fits well but with negative masses, inertias or frictions, which no consistent
estimate can follow.

Figures of an identification, with matplotlib.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from alembert.arguments import check_known
from alembert.errors import ModelError, made_folder
from alembert.identify.base import BaseParameters
from alembert.identify.measurements import Measurements
from alembert.identify.regression import SMOOTHING, regressor
from alembert.joints import Friction
from alembert.model import Body, Inertia, Joint, Model, printing
from alembert.sensitivity.regressor import Parameter
from alembert.sweeps import Tree
from alembert.view.figures import new_figure, plain, save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

Array = np.ndarray
CAUSES = "Are signs, units, zeros of coordinates and gear ratios of the data those of the model?"
_EXPLAINED = 0.2  # the share of an effort's variance below which it is as good as not explained
_FAR = 3.0  # residuals of the consistent estimate against those of least squares, and errors of negative parameters
_POSITIVE = (0, 4, 6, 9)  # mass and moments of inertia in a ten-vector


def doubts(result: Identification) -> list[str]:
    """One for the efforts that are not explained, one for parameters that contradict any body."""
    found = []
    noise = result.noise if result.data.noise is not None else np.zeros(len(result.effort_names))
    measured = np.isfinite(result.noise)
    share = np.where(np.isnan(result.r_squared), 1.0, result.r_squared)
    poor = measured & (share < _EXPLAINED) & (result.rms > _FAR * noise)
    if np.any(poor):
        listed = ", ".join(f"{result.effort_names[k]!r} (R^2 = {share[k]:.2g})" for k in np.flatnonzero(poor))
        found.append(f"the estimate does not explain the efforts of {listed}. {CAUSES}")
    columns = [result.columns[k] for k in result.free]
    against = impossible(result.base, columns, result.base_values, result.base_standard_errors)
    worse = measured & (result.rms > _FAR * result.noise)
    if against and np.any(worse) and not found:
        k = int(np.argmax(np.where(worse, result.rms / result.noise, 0.0)))
        found.append(
            f"no bodies have the parameters that fit best ({against}): the residual of {result.effort_names[k]!r} is "
            f"{result.rms[k]:.3g}, that of least squares {result.noise[k]:.3g}. {CAUSES}"
        )
    return found


def impossible(base: BaseParameters, columns: Sequence[Parameter], values: Array, errors: Array) -> str:
    """The base parameters that are sums of positive ones and come out negative beyond their errors, the worst first."""
    positive = np.array([c.kind != "inertia" or c.index in _POSITIVE for c in columns])
    sums = np.all((base.K >= 0) & (positive | (base.K == 0)), axis=1)
    ratio = np.where(sums & np.isfinite(errors), -values / np.where(errors > 0, errors, np.inf), 0.0)
    worst = np.argsort(-ratio)[:2]
    return ", ".join(f"{base.base_names[k]} = {values[k]:.3g}" for k in worst if ratio[k] > _FAR)


_ROUNDING = 1e-12  # of an effort: it does not vary by less


@dataclass(frozen=True, eq=False)
class Identification:
    """The estimates with their standard errors, how well the data determine them, and the identified model."""

    prior_model: Model
    method: str
    columns: tuple[Parameter, ...]
    data: Measurements
    effort_names: tuple[str, ...]
    """the speeds whose efforts are explained: all, or independent ones where loops or couplings hold"""
    measured: Array
    """(T, nv): their measured efforts"""
    prior: Array
    """(parameters,): the values of the prior model"""
    values: Array
    """(parameters,): the estimates"""
    standard_errors: Array
    """(parameters,): zero where a value was held, inf where the data say nothing and no prior acts"""
    informed: Array
    """(parameters,): the share of the prior variance that the data took away, 0 to 1"""
    free: Array
    """indices of the parameters that were identified"""
    base: BaseParameters
    """of the free parameters"""
    base_prior: Array
    base_values: Array
    """the least-squares estimates of the base parameters"""
    base_standard_errors: Array
    base_consistent: Array
    """the base parameters of `values`"""
    noise: Array
    """(nv,): standard deviation of each effort, given or estimated"""
    residuals: Array
    """(T, nv): measured less predicted efforts"""
    condition: float
    """of the weighted, scaled base regressor: below 30 is well excited, above 100 poorly"""
    excited: int
    """how many directions of base parameters the data determine"""
    include: tuple[str, ...] = ()
    smoothing: float = SMOOTHING

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def estimate(self, name: str) -> tuple[float, float]:
        """Value and standard error of a parameter."""
        check_known("estimate: no parameter", name, self.names)
        k = self.names.index(name)
        return float(self.values[k]), float(self.standard_errors[k])

    @cached_property
    def rms(self) -> Array:
        """(nv,): root mean square of the residuals."""
        return np.sqrt(np.mean(self.residuals**2, axis=0))

    @cached_property
    def r_squared(self) -> Array:
        """(nv,): the share of each effort's variance that the estimates explain; NaN where it does not vary."""
        total = np.var(self.measured, axis=0)
        total = np.where(total > (_ROUNDING * np.abs(self.measured).max(axis=0)) ** 2, total, 0.0)
        left = np.mean(self.residuals**2, axis=0)
        return np.where(total > 0, 1 - left / np.where(total > 0, total, 1.0), np.nan)

    @property
    def excitation(self) -> str:
        """A sentence on how well the motion determines the parameters."""
        missing = self.base.rank - self.excited
        if missing:
            return (
                f"the motion leaves {missing} of {self.base.rank} base parameters undetermined; "
                "move more joints, faster, from more places"
            )
        quality = "well" if self.condition < 30 else "fairly" if self.condition < 100 else "poorly"
        return f"all {self.base.rank} base parameters are {quality} excited, condition number {self.condition:.3g}"

    @cached_property
    def model(self) -> Model:
        """The prior model with the identified values.

        What is welded to a moving body is counted in that body's inertia and becomes massless itself.
        """
        try:
            return _identified(self)
        except ModelError as error:
            raise ModelError(
                f"identify: least squares gives parameters that no body has: {error}. method='consistent' gives bodies"
            ) from None

    def predict(self, q: Any, v: Any, a: Any) -> Array:
        """The efforts of other motions, by the estimates; those of `effort_names` where loops or couplings hold."""
        coordinates = self.effort_names if self.prior_model.is_constrained else "all"
        options = {"include": self.include, "smoothing": self.smoothing}
        return regressor(self.prior_model, q, v, a, coordinates=coordinates, **options).predict(self.values)  # type: ignore[arg-type]

    def table(self) -> Table:
        """All identified parameters."""
        rows = (
            (
                self.names[k],
                f"{self.prior[k]:.5g}",
                f"{self.values[k]:.5g}",
                f"{self.standard_errors[k]:.2g}",
                f"{100 * self.informed[k]:.0f} %",
            )
            for k in self.free
        )
        columns = ("parameter", "prior", "estimate", "std error", "from data")
        return printing.table(f"{self.prior_model.name}: parameters ({self.method})", columns, rows)

    def base_table(self) -> Table:
        """The base parameters, by least squares and as they come out of the estimates."""
        found = (self.base_prior, self.base_values, self.base_standard_errors, self.base_consistent)
        rows = (
            (name if len(name) < 60 else name[:56] + " ...", f"{p:.5g}", f"{x:.5g}", f"{e:.2g}", f"{y:.5g}")
            for name, p, x, e, y in zip(self.base.base_names, *found, strict=True)
        )
        columns = ("base parameter", "prior", "least squares", "std error", self.method)
        return printing.table(f"{self.prior_model.name}: base parameters", columns, rows)

    def effort_table(self) -> Table:
        """How well the efforts are explained."""
        found = zip(self.effort_names, self.noise, self.rms, self.r_squared, strict=True)
        rows = (
            (name, f"{noise:.3g}", f"{rms:.3g}", "-" if np.isnan(r2) else f"{r2:.5f}")
            for name, noise, rms, r2 in found
        )
        return printing.table("efforts", ("speed", "noise", "rms residual", "R^2"), rows)

    def __str__(self) -> str:
        tables = printing.as_text(self.table(), self.base_table(), self.effort_table())
        return f"{tables}\n{len(self.data)} samples; {self.excitation}"

    def _repr_html_(self) -> str:
        return printing.html_text(str(self))

    def __repr__(self) -> str:
        return (
            f"<Identification of {self.prior_model.name!r}: {len(self.free)} parameters, {self.excitation}>"
        )

    def plot(self, folder: str | Path | None = None) -> dict[str, Figure]:
        """Figures "efforts", "residuals" and "parameters"; written as PNG files when a folder is given."""
        return _figures(self, folder)


def _identified(result: Identification) -> Model:
    model = result.prior_model
    tree = Tree.of(model)
    free = {result.names[k] for k in result.free}
    bodies = {body.name: body for body in model.bodies}
    joints = {joint.name: joint for joint in model.joints}
    for k, joint in enumerate(tree.joints):
        if f"{joint.child}.mass" in free:
            for body, (node, _) in zip(model.bodies, tree.carriers, strict=True):
                if node == k:
                    bodies[body.name] = dataclasses.replace(bodies[body.name], inertia=Inertia())
            ten = result.values[10 * k : 10 * k + 10]
            bodies[joint.child] = _with_inertia(bodies[joint.child], ten)
        joints[joint.name] = _with_terms(joint, k, result)
    return model.replace(
        bodies=tuple(bodies[body.name] for body in model.bodies),
        joints=tuple(joints[joint.name] for joint in model.joints),
    )


def _with_inertia(body: Body, ten: Array) -> Body:
    return dataclasses.replace(body, inertia=Inertia.from_ten_vector(tuple(float(x) for x in ten)))


def _with_terms(joint: Joint, node: int, result: Identification) -> Joint:
    free = set(result.free.tolist())
    found: dict[str, dict[int, float]] = {}
    for k, column in enumerate(result.columns):
        if column.node == node and column.kind != "inertia" and k in free:
            found.setdefault(column.kind, {})[column.index] = float(result.values[k])
    changes: dict[str, Any] = {}
    if "viscous" in found or "coulomb" in found:
        friction = joint.friction or Friction(smoothing=result.smoothing)
        changes["friction"] = Friction(
            tuple(found["viscous"].values()) if "viscous" in found else friction.viscous,
            tuple(found["coulomb"].values()) if "coulomb" in found else friction.coulomb,
            friction.smoothing,
        )
    if "armature" in found:
        changes["armature"] = tuple(found["armature"].values())
    if "rotor" in found:
        changes["rotors"] = tuple(
            dataclasses.replace(rotor, inertia=found["rotor"][i]) for i, rotor in enumerate(joint.rotors)
        )
    return dataclasses.replace(joint, **changes) if changes else joint


_MEASURED, _PREDICTED, _PRIOR = "#8a8f98", "#c2410c", "#1d4ed8"


def _figures(result: Identification, folder: str | Path | None) -> dict[str, Figure]:
    made = {"efforts": _efforts(result), "residuals": _residuals(result), "parameters": _parameters(result)}
    if folder is not None:
        where = made_folder(folder)
        for name, figure in made.items():
            save(figure, where / f"{name}.png")
    return made


def _grid(count: int, title: str, height: float = 2.0) -> tuple[Any, list[Any]]:
    columns = 1 if count == 1 else 2
    rows = -(-count // columns)
    figure = new_figure("plot", 11, 0.6 + height * rows)
    figure.suptitle(plain(title))
    axes = list(np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel())
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def _efforts(result: Identification) -> Figure:
    """Measured and predicted efforts over time."""
    data = result.data
    t, label = (np.arange(len(data)), "sample") if data.time is None else (data.time, "time [s]")
    predicted = result.measured - result.residuals
    model, names = result.prior_model, result.effort_names
    speeds = list(model.space.speed_units)
    of_all = {
        name: "N m" if unit.startswith("rad") else "N"
        for name, unit in zip(model.speed_names, speeds, strict=True)
    }
    units = [of_all[name] for name in names]  # those of independent speeds, where loops are closed
    figure, axes = _grid(len(names), f"{result.prior_model.name}: measured and predicted efforts")
    for k, (axis, name) in enumerate(zip(axes, names, strict=True)):
        axis.plot(t, result.measured[:, k], ".", ms=2, color=_MEASURED, label="measured")
        axis.plot(t, predicted[:, k], "-", lw=1, color=_PREDICTED, label="predicted")
        share = result.r_squared[k]
        quality = "constant" if np.isnan(share) else f"R² = {share:.4f}"
        axis.set_title(plain(f"{name}   {quality}"), fontsize=9, loc="left")
        axis.margins(x=0)
        axis.set_ylabel(units[k], fontsize=8)
        if k >= len(names) - 2:
            axis.set_xlabel(label)
    axes[0].legend(fontsize=8, loc="upper right")
    return figure


def _residuals(result: Identification) -> Figure:
    """Residuals in units of the noise, against the normal distribution."""
    names = result.effort_names
    figure, axes = _grid(len(names), f"{result.prior_model.name}: residuals / noise", 1.8)
    x = np.linspace(-4, 4, 200)
    for k, (axis, name) in enumerate(zip(axes, names, strict=True)):
        scaled = result.residuals[:, k] / result.noise[k]
        axis.hist(np.clip(scaled, -4, 4), bins=48, range=(-4, 4), density=True, color=_MEASURED, alpha=0.7)
        axis.plot(x, np.exp(-x * x / 2) / np.sqrt(2 * np.pi), lw=1, color=_PREDICTED)
        axis.set_title(plain(f"{name}   noise {result.noise[k]:.3g}"), fontsize=9, loc="left")
        axis.set_yticks([])
        if k >= len(names) - 2:
            axis.set_xlabel("residual / noise")
    return figure


def _parameters(result: Identification) -> Figure:
    """Base parameters: estimates less prior with two standard errors, and the consistent ones."""
    groups = _in_groups(result)
    scale = _scales(result, groups)
    figure, axes = _grid(
        len(groups),
        f"{result.prior_model.name}: base parameters, change from the prior\n"
        "relative to the largest first or second moment of the body, or to the joint parameter itself",
        2.4,
    )
    for axis, (title, members) in zip(axes, groups, strict=True):
        at = np.arange(len(members))
        values, errors = result.base_values[members], result.base_standard_errors[members]
        shown = np.where(np.isfinite(errors), 2 * errors, 0.0) / scale[members]
        axis.axhline(0, lw=0.6, color="black")
        change = (values - result.base_prior[members]) / scale[members]
        axis.errorbar(at, change, yerr=np.minimum(shown, 10), fmt="o", ms=3, lw=1, capsize=2, color=_PRIOR)
        found = (result.base_consistent[members] - result.base_prior[members]) / scale[members]
        axis.plot(at, found, "_", ms=9, mew=1.5, color=_PREDICTED)
        reach = 1.2 * max(0.1, float(np.abs(np.concatenate([change, found])).max()))
        axis.set_ylim(-reach, reach)
        names = [result.base.names[result.base.independent[k]] for k in members]
        axis.set_xticks(
            at, [plain(name.removeprefix(f"{title}.")) for name in names], rotation=60, fontsize=7, ha="right"
        )
        axis.set_title(plain(title), fontsize=9, loc="left")
    axes[0].plot([], [], "o", ms=3, color=_PRIOR, label="least squares ± 2 std errors")
    axes[0].plot([], [], "_", ms=9, mew=1.5, color=_PREDICTED, label=result.method)
    axes[0].legend(fontsize=7, loc="lower right")
    return figure


def _in_groups(result: Identification) -> list[tuple[str, list[int]]]:
    """Base parameters by body, then those of all joints, at most 24 to a panel."""
    groups: dict[str, list[int]] = {}
    for k, column in enumerate(_columns(result)):
        name = column.name.rsplit(".", 1)[0] if column.kind == "inertia" else "joints"
        groups.setdefault(name, []).append(k)
    panels = []
    for name, members in groups.items():
        for start in range(0, len(members), 24):
            panels.append((name, members[start : start + 24]))
    return panels


def _scales(result: Identification, groups: list[tuple[str, list[int]]]) -> np.ndarray:
    columns = _columns(result)
    size = np.maximum(np.abs(result.base_values), np.abs(result.base_prior))
    scale = size.copy()
    for _, members in groups:
        for order in range(3):  # masses, first moments, second moments
            alike = [
                k
                for k in members
                if columns[k].kind == "inertia" and (columns[k].index > 0) + (columns[k].index > 3) == order
            ]
            scale[alike] = size[alike].max(initial=0.0)
    return np.where(scale > 0, scale, 1.0)


def _columns(result: Identification) -> list[Parameter]:
    """The parameters that stand for the base parameters."""
    return [result.columns[k] for k in result.free[result.base.independent]]

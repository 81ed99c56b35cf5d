"""A case: where a number comes from, how it is computed here, and how close the two have to be.

A case is a function that yields `Check`s (and `Plot`s), under the decorator `case`:

    @case(
        source="Huygens, Horologium oscillatorium (1673), part IV",
        kind="closed form",
        tags=("tree", "simulation"),
    )
    def pendulum_period(length=1.0, gravity=9.81):
        '''Period of small swings.'''
        ...
        yield Check("period [s]", ours, published, tolerance=1e-9, reason="error control at 1e-12")

Its name is that of the function, its title the docstring's first line, its data the defaults of its arguments (`parameters`
of the decorator take their place). A function with an argument `program` (dynamics), `systems` (linear systems) or
`flights` computes with whichever program it is given (see `alembert.verify.programs`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alembert.arguments import check_known
from alembert.errors import ArgumentError
from alembert.verify.programs import ARGUMENTS

Array = np.ndarray

KINDS = {
    "closed form": "a formula that is known",
    "published": "numbers or equations in print",
    "reference": "numbers computed elsewhere, to the digits shown",
    "independent program": "another program's result, or another formulation written out here",
    "identity": "two ways to the same number",
}
"""what a result is compared with"""

TAGS = {
    "tree": "open trees",
    "loops": "closed loops and couplings",
    "linearisation": "linear models and regulators",
    "sensitivity": "derivatives and regressors",
    "simulation": "motion in time",
    "operators": "spatial operators and the sweep in time",
    "differential": "against another program",
    "random": "on random models",
    "iftomm": "the IFToMM library of benchmark problems",
    "acc1989": "Third Annual Conference on Aerospace Computational Control, Oxnard 1989 (JPL 89-45)",
    "optimal": "optimal control",
    "control": "control design on linear systems",
    "flexible": "bodies with modes",
    "spacecraft": "attitude, environment and devices in orbit",
}
"""tags of the cases that come with the package; users may have their own"""


@dataclass(frozen=True)
class Check:
    """One quantity: what came out, what was expected, and how far apart they may be (absolute, entry by entry)."""

    what: str
    ours: Any
    published: Any
    tolerance: Any
    reason: str

    def __post_init__(self) -> None:
        if np.iscomplexobj(self.ours) or np.iscomplexobj(self.published):
            raise ArgumentError(
                f"Check: {self.what!r} is complex; give real and imaginary parts, x.view(float)"
            )

    @property
    def difference(self) -> float:
        """The largest, over all entries."""
        return float(np.max(self._differences(), initial=0.0))

    @property
    def passed(self) -> bool:
        return bool(np.all(self._differences() <= np.asarray(self.tolerance, dtype=float)))

    @property
    def margin(self) -> float:
        """The difference in units of the tolerance; one is the limit."""
        d, tolerance = np.broadcast_arrays(self._differences(), np.asarray(self.tolerance, dtype=float))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(d == 0, 0.0, d / tolerance)
        return float(np.max(ratio, initial=0.0))

    @classmethod
    def holds(cls, what: str, holds: Any, reason: str) -> Check:
        """Something that is so, or is not."""
        return cls(what, float(holds), 1.0, 0.0, reason)

    @classmethod
    def converging(
        cls,
        what: str,
        at: Callable[[int], Any],
        n: int,
        published: Any,
        digits: Any,
        *,
        fewer: int | None = None,
        order: int = 2,
    ) -> Check:
        """Of what converges with a number n (of modes, of segments), at least like n^-order.

        The error with fewer, by default half as many, then is at least (n/fewer)^order times as large, so that what is left
        is not more than the last change over (n/fewer)^order - 1; `digits` is a unit of the last digit of the reference.
        """
        few = fewer or n // 2
        less, ours = (np.asarray(at(k), dtype=float) for k in (few, n))
        reason = f"what is left, from the change between {few} and {n}, where errors shrink at least like n^-{order}"
        return cls(what, ours, published, np.abs(ours - less) / ((n / few) ** order - 1) + digits, reason)

    def _differences(self) -> Array:
        ours, published = (np.asarray(x, dtype=float) for x in (self.ours, self.published))
        if ours.shape != published.shape and published.ndim:
            raise ArgumentError(
                f"Check: {self.what!r} has shape {ours.shape}, and {published.shape} was expected"
            )
        return np.where(np.isfinite(ours), np.abs(ours - published), np.inf)


class Skipped(Exception):
    """Raised by a case that cannot run here, with the sentence that says why."""


@dataclass(frozen=True)
class Line:
    """Points of a plot, joined (`style` "line") or not ("points")."""

    label: str
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    style: str = "line"


@dataclass(frozen=True)
class Plot:
    """What a case shows in the report."""

    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False

    @classmethod
    def line(
        cls, x_label: str, y_label: str, x: Any, y: Any, *, log_x: bool = False, log_y: bool = False
    ) -> Plot:
        """One line, which needs no name."""
        return cls(x_label, y_label, (Line("", x, y),), log_x, log_y)


Items = Iterator[Check | Plot]
"""what the function of a case yields"""


@dataclass(frozen=True)
class Case:
    """A case as it is registered."""

    name: str
    title: str
    source: str
    kind: str
    function: Callable[..., Iterable[Check | Plot]] = field(repr=False)
    tags: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    missing: str = ""
    """what the source leaves out; the case then uses only what the source supports"""
    needs: tuple[str, ...] = ()
    """packages (import names) without which it is skipped"""
    slow: bool = False
    """takes more than some seconds"""
    origin: str = ""
    """the module or file that it was found in"""

    def __post_init__(self) -> None:
        check_known(f"case {self.name!r}: no kind", self.kind, KINDS)
        if not self.source.strip():
            raise ArgumentError(f"case {self.name!r}: source is empty, expected where the number comes from")

    @property
    def argument(self) -> str | None:
        """Which argument is a program: `program` (dynamics), `systems` (linear systems), `flights`, or none."""
        taken = inspect.signature(self.function).parameters
        return next((name for name in ARGUMENTS if name in taken), None)

    def is_posed_to(self, program: str) -> bool:
        """Whether a program is asked; all cases are posed to Alembert."""
        return program == "alembert" or (self.argument is not None and program in ARGUMENTS[self.argument])

    @property
    def details(self) -> str:
        """The docstring below its first line."""
        text = inspect.getdoc(self.function) or ""
        return text.partition("\n")[2].strip()


def case(
    *,
    source: str,
    kind: str,
    tags: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    missing: str = "",
    needs: Sequence[str] = (),
    slow: bool = False,
) -> Callable[[Callable[..., Iterable[Check | Plot]]], Case]:
    """Make a case of a function; see the module's docstring."""

    def made(function: Callable[..., Iterable[Check | Plot]]) -> Case:
        title = (inspect.getdoc(function) or function.__name__).partition("\n")[0].rstrip(".")
        taken = inspect.signature(function).parameters
        data = {name: x.default for name, x in taken.items() if x.default is not x.empty}
        return Case(
            name=function.__name__,
            title=title,
            source=" ".join(source.split()),
            kind=kind,
            function=function,
            tags=tuple(tags),
            parameters={**data, **(parameters or {})},
            missing=" ".join(missing.split()),
            needs=tuple(needs),
            slow=slow,
            origin=function.__module__,
        )

    return made


def family(*common: str) -> Callable[..., Callable[[Callable[..., Iterable[Check | Plot]]], Case]]:
    """`case` for a file whose cases have some tags in `common`; `tags` then are those that a case has besides."""

    def of_family(
        *, tags: Sequence[str] = (), **options: Any
    ) -> Callable[[Callable[..., Iterable[Check | Plot]]], Case]:
        return case(tags=(*common, *tags), **options)

    return of_family


JPL1989 = "Proc. 3rd Annual Conf. Aerospace Computational Control (JPL 89-45), 1989"
SCRIPT = "an independent script in double precision, written for this case"
SOA = "Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra for multibody system dynamics (1992)"
IFTOMM = "IFToMM library of computational benchmark problems"
DMOC = (
    "Leyendecker, Ober-Blöbaum, Marsden, Ortiz, Discrete mechanics and optimal control for constrained systems "
    "(2009/2010)"
)
SOHL_BOBROW = "Sohl, Bobrow, A recursive multibody dynamics and sensitivity algorithm for branched kinematic chains (2001)"
COPS = "Dolan, More, Munson, Benchmarking optimization software with COPS 3.0 (2004)"
CHIANG_SAFONOV = (
    "Chiang, Safonov, Robust-Control Toolbox demonstrations, Third Annual Conference on Aerospace Computational "
    "Control 1989"
)
SKOGESTAD = "Skogestad, Postlethwaite, Multivariable Feedback Control, 2nd edition 2005"

ACC1989 = {
    "Balakrishnan": ("Minimum attainable RMS attitude error using co-located rate sensors", 449),
    "Bless, Hodges, Calise": ("A finite element based method for solution of optimal control problems", 342),
    "Chen, Ou": (
        "Development of efficient computer program for dynamic simulation of telerobotic manipulation",
        248,
    ),
    "Chou": ("A nearly-linear computational-cost scheme for the forward dynamics of an N-body pendulum", 88),
    "Fijany, Bejczy": (
        "Parallel algorithms and architecture for computation of manipulator forward dynamics",
        200,
    ),
    "Fijany, Jain": (
        "A unifying framework for rigid multibody dynamics and serial and parallel computational issues",
        199,
    ),
    "Ider (control forces)": (
        "Modeling of control forces for kinematical constraints in the dynamics of multibody systems",
        382,
    ),
    "Ider (joint drives)": (
        "Determination of joint drives for stable end-effector motion in flexible robotic systems",
        421,
    ),
    "Kasahara, Honda, Narita": ("Parallel processing of real-time dynamic systems simulation on OSCAR", 170),
    "Keat": ("Simulation studies using multibody dynamics code DART", 446),
    "Lan, Ge": (
        "Application of numerical optimization techniques to control system design for nonlinear dynamic models of aircraft",
        394,
    ),
    "Lilly, Orin": ("Efficient dynamic simulation for multiple chain robotic mechanisms", 73),
    "Lin, Yae": ("Recursive linearization of multibody dynamics equations of motion", 57),
    "Naccarato, Hughes": (
        "An inverse kinematics algorithm for a highly redundant variable-geometry-truss manipulator",
        407,
    ),
    "Nikravesh, Gim, Arabyan, Rein": (
        "Systematic generation of multibody equations of motion suitable for recursive and parallel manipulation",
        43,
    ),
    "Hanson": ("Parallel and vector computation for stochastic optimal control applications", 184),
    "Psiaki": ("An algorithm for the solution of dynamic linear programs", 327),
    "Rodriguez": ("An innovations approach to decoupling of multibody dynamics and control", 71),
}
"""Proceedings of the 3rd Annual Conference on Aerospace Computational Control, vol. 1 (JPL 89-45): title and page"""


def acc1989(authors: str, where: str) -> str:
    """A paper of the 1989 conference, and what of it a case uses."""
    title, page = ACC1989[authors]
    return (
        f"{authors.partition(' (')[0]}, {title}, 3rd Annual Conf. on Aerospace Computational Control (1989), "
        f"p. {page}: {where}"
    )

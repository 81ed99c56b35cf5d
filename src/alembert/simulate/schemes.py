"""Fixed-step schemes for q' = rate(q, v), v' = a(t, q, v) on the configuration manifold.

Each scheme is written once. It works on arrays, and on expressions from which the compiled loop is made
(`alembert.simulate.step_code`). A *point* is a time, a state and its accelerations; `at(t, q, v)` makes one.

Commutator-free Runge-Kutta (Celledoni, Marthinsen and Owren 2003): slopes of q are body velocities, displacements
are composed by `integrate` instead of added. With V_j the velocities of the stages,

    q_i = integrate(... integrate(q, h sum_j alpha_ij V_j) ..., ...)                (1)

and where configurations simply add, the sums of the factors are the classical tableau.

Linear multistep in the chart about the newest configuration q_n (see `alembert.model.space`):

    e_j = difference(q_n, q_j),   f_j = T(e_j) v_j,   e = h sum_j b_j f_j           (2)

which is an ordinary multistep method for the smooth equation e' = T(e) v, so that its order holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol


class Manifold(Protocol):
    """What the schemes need of the configurations; on arrays or on expressions."""

    def integrate(self, q: Any, e: Any) -> Any: ...

    def difference(self, q0: Any, q1: Any) -> Any: ...

    def chart_rate(self, e: Any, v: Any) -> Any:
        """e' of the chart about q, with speeds v there: (2) of `alembert.model.space`."""
        ...


class StatePoint(NamedTuple):
    t: Any
    q: Any
    v: Any
    a: Any


class Now(NamedTuple):
    """Where a step starts: the state, and the points before it, the newest first."""

    t: Any
    q: Any
    v: Any
    past: tuple[StatePoint, ...]


At = Callable[[Any, Any, Any], StatePoint]
Step = Callable[[Now, Any, At, Manifold], tuple[Any, Any, StatePoint]]
"""Gives the next q and v, and the point at which the step started."""


@dataclass(frozen=True)
class Tableau:
    """A Runge-Kutta tableau of fractions; `factors` splits each row for (1), the first factor applied first."""

    name: str
    a: tuple[tuple[Fraction, ...], ...]
    b: tuple[Fraction, ...]
    factors: tuple[tuple[tuple[Fraction, ...], ...], ...] = ()

    @property
    def c(self) -> tuple[Fraction, ...]:
        return tuple(sum(row, Fraction(0)) for row in self.a)

    def order(self) -> int:
        """The largest order up to 4 whose conditions (Hairer, Norsett and Wanner, II.2) the tableau fulfils."""
        a, b, c, n = self.a, self.b, self.c, range(len(self.b))
        ac = [sum((a[i][j] * c[j] for j in range(i)), Fraction(0)) for i in n]
        ac2 = [sum((a[i][j] * c[j] ** 2 for j in range(i)), Fraction(0)) for i in n]
        aac = [sum((a[i][j] * ac[j] for j in range(i)), Fraction(0)) for i in n]

        def holds(values: Sequence[Fraction], target: str) -> bool:
            return sum((x * y for x, y in zip(b, values, strict=True)), Fraction(0)) == Fraction(target)

        conditions = (
            holds([Fraction(1) for _ in n], "1"),
            holds(c, "1/2"),
            holds([x * x for x in c], "1/3") and holds(ac, "1/6"),
            holds([x**3 for x in c], "1/4")
            and holds([x * y for x, y in zip(c, ac, strict=True)], "1/8")
            and holds(ac2, "1/12")
            and holds(aac, "1/24"),
        )
        return next((k for k, good in enumerate(conditions) if not good), 4)


def _fractions(text: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(entry) for entry in text.split())


MIDPOINT = Tableau("midpoint", (_fractions(""), _fractions("1/2")), _fractions("0 1"))
CLASSICAL = Tableau(
    "rk4",
    (_fractions(""), _fractions("1/2"), _fractions("0 1/2"), _fractions("0 0 1")),
    _fractions("1/6 1/3 1/3 1/6"),
    factors=(
        (),
        (_fractions("1/2"),),
        (_fractions("0 1/2"),),
        (_fractions("1/2"), _fractions("-1/2 0 1")),
        (_fractions("1/4 1/6 1/6 -1/12"), _fractions("-1/12 1/6 1/6 1/4")),
    ),
)
"""Its factors are those of Celledoni, Marthinsen and Owren's method of order 4; the last line is the result."""

ADAMS_BASHFORTH = {
    2: _fractions("3/2 -1/2"),
    3: _fractions("23/12 -4/3 5/12"),
    4: _fractions("55/24 -59/24 37/24 -3/8"),
}
"""Weights of the newest point and those before it, by order."""
ADAMS_MOULTON = _fractions("3/8 19/24 -5/24 1/24")
"""Of order 4: weights of the predicted point, the newest, and those before it."""


def runge_kutta(tableau: Tableau) -> Step:
    factors = tableau.factors or tuple((row,) if row else () for row in (*tableau.a, tableau.b))
    times = [float(c) for c in tableau.c]
    a, b = [_floats(row) for row in tableau.a], _floats(tableau.b)
    ways = list(dict.fromkeys(row[:n] for row in factors for n in range(1, len(row) + 1)))
    # of each way: the way without its last factor, and that factor; numbered, since hashing fractions takes long
    steps = [(ways.index(way[:-1]) if len(way) > 1 else -1, _floats(way[-1])) for way in ways]
    ends = [ways.index(row) if row else -1 for row in factors]

    def step(now: Now, h: Any, at: At, m: Manifold) -> tuple[Any, Any, StatePoint]:
        points: list[StatePoint] = []
        moved: dict[int, Any] = {-1: now.q}

        def displaced(way: int) -> Any:
            """(1); configurations on the way are shared between stages."""
            if way not in moved:
                before, weights = steps[way]
                moved[way] = m.integrate(displaced(before), h * _weighted(weights, [p.v for p in points]))
            return moved[way]

        for c, weights, row, end in zip(times, a, factors, ends, strict=False):
            t = now.t if c == 0 else now.t + c * h
            v = now.v if not points else now.v + h * _weighted(weights, [p.a for p in points])
            points.append(at(t, displaced(end), v))
            if len(row) <= 1:
                moved[end] = points[-1].q
        v = now.v + h * _weighted(b, [p.a for p in points])
        return displaced(ends[-1]), v, points[0]

    return step


def semi_implicit_euler(now: Now, h: Any, at: At, m: Manifold) -> tuple[Any, Any, StatePoint]:
    start = at(now.t, now.q, now.v)
    v = start.v + h * start.a
    return m.integrate(start.q, h * v), v, start


def adams_bashforth(order: int) -> Step:
    def step(now: Now, h: Any, at: At, m: Manifold) -> tuple[Any, Any, StatePoint]:
        start = at(now.t, now.q, now.v)
        points = [start, *now.past][:order]
        e = h * _combined(ADAMS_BASHFORTH[order], _chart_rates(points, m))
        v = start.v + h * _combined(ADAMS_BASHFORTH[order], [p.a for p in points])
        return m.integrate(start.q, e), v, start

    return step


def adams_moulton(now: Now, h: Any, at: At, m: Manifold) -> tuple[Any, Any, StatePoint]:
    """Predict by Adams-Bashforth 4, evaluate, correct by Adams-Moulton 4; the next step evaluates again."""
    start = at(now.t, now.q, now.v)
    points = [start, *now.past][:4]
    rates, accelerations = _chart_rates(points, m), [p.a for p in points]
    e = h * _combined(ADAMS_BASHFORTH[4], rates)
    v = start.v + h * _combined(ADAMS_BASHFORTH[4], accelerations)
    ahead = at(now.t + h, m.integrate(start.q, e), v)
    e = h * _combined(ADAMS_MOULTON, [m.chart_rate(e, ahead.v), *rates[:3]])
    v = start.v + h * _combined(ADAMS_MOULTON, [ahead.a, *accelerations[:3]])
    return m.integrate(start.q, e), v, start


def _chart_rates(points: Sequence[StatePoint], m: Manifold) -> list[Any]:
    """f_j of (2)."""
    q = points[0].q
    return [points[0].v, *(m.chart_rate(m.difference(q, p.q), p.v) for p in points[1:])]


def _floats(weights: Sequence[Fraction]) -> list[float]:
    return [float(w) for w in weights]


def _combined(weights: Sequence[Fraction], values: Sequence[Any]) -> Any:
    return _weighted(_floats(weights), values)


def _weighted(weights: Sequence[float], values: Sequence[Any]) -> Any:
    """The weighted sum; terms of weight zero are left out."""
    terms = [x if w == 1 else w * x for w, x in zip(weights, values, strict=True) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


@dataclass(frozen=True)
class Scheme:
    """`past` is how many earlier points a step needs; until there are so many, `START` steps."""

    name: str
    order: int
    step: Step
    past: int = 0
    keeps: str = "nothing exactly"
    choose: str = ""


START = runge_kutta(CLASSICAL)
SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme(
            "semi_implicit_euler",
            1,
            semi_implicit_euler,
            keeps="energy nearly, where the mass matrix is constant",
            choose="real time: one evaluation per step",
        ),
        Scheme("midpoint", 2, runge_kutta(MIDPOINT), choose="quick looks"),
        Scheme("rk4", 4, START, choose="smooth motion at a given step; the default with efforts"),
        *(
            Scheme(
                f"adams_bashforth{k}",
                k,
                adams_bashforth(k),
                k - 1,
                choose="one evaluation per step, smooth motion",
            )
            for k in (2, 3, 4)
        ),
        Scheme("adams_moulton4", 4, adams_moulton, 3, choose="two evaluations per step, smooth motion"),
    )
}
MULTISTEP = tuple(scheme.name for scheme in SCHEMES.values() if scheme.past)

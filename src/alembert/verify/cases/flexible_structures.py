"""Structures of finite elements: component modes, trusses in print, spinning frames.

L = EI = rhoA = 1 unless said. References to more digits than the meshes give are closed forms or computed by two methods.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from alembert.control import DesignPoint, DesignSlope, SecondOrder, StateSpace, codesign, lightest
from alembert.control.gramian import lyapunov
from alembert.flexible import (
    ComponentModes,
    CrossSection,
    FiniteElements,
    LumpedMass,
    Member,
    constraint_modes,
    craig_bampton,
    framework,
    frequencies,
    normal_modes,
    orthonormal,
    relative,
    residual_modes,
    structure_body,
)
from alembert.joints import Fixed
from alembert.model import Inertia, ModelBuilder, Placement
from alembert.verify.case import JPL1989, Check, Items, family
from alembert.verify.cases.flexible_beams import on_a_hub, rates, small_motion, spun

case = family("flexible")

Array = np.ndarray
UNIT = CrossSection(1.0, 1e6, 1.0, 1.0, 1.0)
MESH = "cubic elements: (omega h^2)^2/720 of each frequency"


def straight(
    count: int, *, length: float = 1.0, section: CrossSection = UNIT, planar: bool = True, tip: float = 0.0
) -> FiniteElements:
    """A beam along x; planar ones bend along y."""
    nodes = {k: (length * k / count, 0.0, 0.0) for k in range(count + 1)}
    members = [Member(k, k + 1, section) for k in range(count)]
    masses = [LumpedMass(count, Inertia.point(tip))] if tip else []
    fixed = {k: "x z rx ry" for k in nodes} if planar else {}
    return framework(nodes, members, masses=masses, fixed=fixed)


@case(
    source="Craig and Bampton (1968): one beam with 0 to 4 fixed-interface modes, computed by two methods",
    kind="reference",
)
def craig_bampton_of_a_mesh() -> Items:
    """A component of finite elements, its tip an interface: the first cantilever mode, and free of everything."""
    fe = straight(40)
    found = [frequencies(fe, craig_bampton(fe, 0, {"tip": 40}, n))[0] for n in range(5)]
    expected = [3.532731543, 3.517235412, 3.516220519, 3.516069788, 3.516034285]
    yield Check("cantilever [rad/s]", found, expected, 1e-7, MESH)
    free = []
    for n in range(4):
        modes = constraint_modes(fe, {"root": 0, "tip": 40})
        if n:
            modes = modes + normal_modes(fe, n, held=[0, 40])
        free.append(frequencies(fe, modes)[2])
    yield Check(
        "free-free [rad/s]", free, [26.83281573, 22.453836664, 22.453836664, 22.382472002], 2e-6, MESH
    )


@case(
    source="MacNeal (1971), Rubin (1975): free modes with and without residual modes, computed by polynomials",
    kind="reference",
)
def residual_modes_of_a_free_beam() -> Items:
    """Free modes are poor for a clamped beam; residual modes of its ends mend them at once."""
    fe = straight(60)

    def first(count: int, ends: bool) -> float:
        modes = normal_modes(fe, 2).only(range(count))
        if ends:
            modes = modes + residual_modes(fe, {"root": (0, "y rz"), "tip": (60, "y rz")}, modes)
        return float(frequencies(fe, orthonormal(fe, relative(fe, modes, 0)))[0])

    yield Check(
        "two free modes [rad/s]", first(2, False), 4.762827264, 2e-6, "the slope of a mode on 60 elements"
    )
    found = [first(n, True) for n in range(3)]
    yield Check("with residuals [rad/s]", found, [3.51602068, 3.516015412, 3.516015278], 1e-7, MESH)


@case(
    source="Two Craig-Bampton halves with 0, 1, 2 fixed-interface modes, computed by two methods",
    kind="reference",
    tags=("tree",),
)
def two_halves() -> Items:
    """A beam of two bodies that are joined: the second cantilever mode."""
    section = CrossSection(1.0, 1e6, 1e4, 1.0, 1e4)
    found = []
    for n in range(3):
        half = straight(12, length=0.5, section=section, planar=False)
        flat = [k for k, d in enumerate(half.dofs[:, 1]) if d in (1, 5)]
        modes = craig_bampton(half, 0, {"tip": 12}, 0).only([1, 5])
        if n:
            held = _embedded(half, flat, normal_modes(straight(12, length=0.5), n, held=[0, 12]))
            modes = modes + held
        body = structure_body(half, modes, attachment=0, nodes={"tip": 12})
        builder = ModelBuilder("halves", gravity=(0, 0, 0))
        builder.body("inner", body, joint=Fixed())
        builder.body("outer", body, joint=Fixed(), parent="inner", node="tip")
        found.append(rates(*small_motion(builder.build()))[1])
    yield Check("mode 2 [rad/s]", found, [22.221474474, 22.064935083, 22.036497813], 5e-5, MESH)


@case(
    source="An arm with a locked elbow is a linear structure: its mesh as a whole against two bodies with component modes",
    kind="independent program",
    tags=("tree",),
)
def arm_against_a_linear_structure(elbow: float = 0.7) -> Items:
    """Fixed geometry: with all component modes two bodies at an angle have the frequencies of the assembled elements."""
    section, count = CrossSection(1.0, 1e3, 1.0, 2.0, 1.0, rhoI_y=0.01, rhoI_z=0.01), 2
    along, across = np.array([1.0, 0.0, 0.0]), np.array([np.cos(elbow), np.sin(elbow), 0.0])
    nodes = {k: (min(k, count) * along + max(k - count, 0) * across) / count for k in range(2 * count + 1)}
    whole = framework(nodes, [Member(k, k + 1, section) for k in range(2 * count)])
    M, K = (A[6:, 6:].toarray() for A in (whole.M, whole.K))  # the first node is held
    expected = np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True))
    link = straight(count, section=section, planar=False)
    modes = craig_bampton(link, 0, {"tip": count}, 6)
    body = structure_body(link, modes, attachment=0, nodes={"tip": count})
    builder = ModelBuilder("arm", gravity=(0, 0, 0))
    builder.body("inner", body, joint=Fixed())
    turned = Placement.from_rpy((0, 0, elbow))
    builder.body("outer", body, joint=Fixed(), parent="inner", node="tip", placement=turned)
    found = rates(*small_motion(builder.build()))
    yield Check(
        "all 24 frequencies [rad/s]", found, expected, 1e-7 * expected, "rounding times the condition, 1e6"
    )


def _embedded(fe: FiniteElements, at: Sequence[int], modes: ComponentModes) -> ComponentModes:
    shapes = np.zeros((fe.size, modes.count))
    shapes[list(at)] = modes.shapes
    return ComponentModes(shapes, modes.names)


@case(
    source="Beam of finite elements at 12 rad/s: flap and lag, computed by two methods",
    kind="reference",
    tags=("tree",),
)
def spinning_elements() -> Items:
    """Motion-induced stiffness from the geometric stiffness of the elements, extrapolated in the mesh."""
    found = []
    for count in (10, 20):
        fe = straight(count, planar=False)
        body = structure_body(fe, normal_modes(fe, 14, held=0), attachment=0, nodes={"tip": count})
        found.append(spun(body, 12.0)[:2])
    # axial forces are constant in each element: an error of order 2, halved twice; what is left is of order 4
    lag, flap = (4 * found[1] - found[0]) / 3
    yield Check("flap [rad/s]", flap, 13.17015049, 3e-3, "seven modes each way, and order 4 of the mesh")
    yield Check("lag [rad/s]", lag, 5.42704928, 8e-3, "the same; lag^2 = flap^2 - rate^2")
    soft = dataclasses.replace(body, stiffening="inconsistent")
    model = on_a_hub(soft, 0.0)
    M, _, K = small_motion(model, model.velocity({"shaft": 12.0}), held=("shaft",))
    squares = np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real)[:2] + np.array([144.0, 0.0])
    reason = "at rest; lag^2 is less by rate^2: it diverges"
    yield Check("inconsistent, squares [1/s^2]", squares, [3.5160152685**2] * 2, 1e-4, reason)


_DRAPER = {
    1: (0, 0, 10.165), 2: (-5, -2.887, 2), 3: (5, -2.887, 2), 4: (0, 5.7735, 2), 5: (-6, -1.1547, 0),
    6: (-4, -4.6188, 0), 7: (4, -4.6188, 0), 8: (6, -1.1547, 0), 9: (2, 5.7735, 0), 10: (-2, 5.7735, 0),
}  # fmt: skip
_BARS = ((1, 2), (1, 3), (1, 4), (2, 3), (3, 4), (2, 4), (2, 5), (2, 6), (3, 7), (3, 8), (4, 9), (4, 10))
_A2 = (73.091, 53.545, 15.268, 10.704, 5.375, 6.209, 8.610, 0.124, 13.250, 9.332, 0.1, 0.1)
_WEIGHT = 386.09
"""in/s^2"""


def draper(areas: Sequence[float]) -> FiniteElements:
    """DRAPER I, a tetrahedron of twelve bars on three bipods, in inches, pounds and seconds."""
    nodes = {k: 12.0 * np.array(x) for k, x in _DRAPER.items()}
    bars = [
        Member(a, b, CrossSection(0.1 / _WEIGHT * area, 20000.0 * area), kind="bar")
        for (a, b), area in zip(_BARS, areas, strict=True)
    ]
    return framework(nodes, bars, fixed=range(5, 11))


@case(
    source=f"Integrated control-structure design of DRAPER I, {JPL1989}: open-loop responses, Table 2 (column a2)",
    kind="published",
    tags=("control", "acc1989"),
    missing="the figure with the geometry; node places are those of the literature, in feet, which give all printed weights",
)
def draper_truss() -> Items:
    """Mean squares of the vertex under white forces for three areas, and the weight of an optimal design."""
    found = []
    for area in (120.0, 90.0, 60.0):
        fe = draper([area] * 12)
        M, K = fe.M.toarray(), fe.K.toarray()
        F = np.zeros((fe.size, 2))
        F[fe.unknowns(1, "x y"), [0, 1]] = 1.0
        G = SecondOrder(M, 0.1 * M + 0.001 * K, K, F, F.T).to_statespace()
        found.append(np.trace(G.C @ lyapunov(G.A, G.B @ G.B.T) @ G.C.T))
    yield Check(
        "mean squares [1e-5 in^2]", 1e5 * np.array(found), [2.067, 3.674, 8.266], 6e-4, "printed digits"
    )
    weight = _WEIGHT * draper(_A2).points.mass.sum()
    yield Check("weight, Table 2 a2 [lb]", weight, 2077.3, 0.05, "printed digits")


class _Truss:
    """DRAPER I with areas as variables: matrices are linear in them. Actuators along the bipods, rates there measured."""

    def __init__(self, fixed: Mapping[str, float] | None = None) -> None:
        self.fixed = dict(fixed or {})
        one = draper([1.0] * 12)
        self.n = one.size
        more = [draper(1.0 + np.eye(12)[k]) for k in range(12)]
        self.M, self.K = (
            np.array([getattr(x, c).toarray() - getattr(one, c).toarray() for x in more]) for c in "MK"
        )
        self.weights = _WEIGHT * np.array([x.points.mass.sum() - one.points.mass.sum() for x in more])
        self.vertex = np.zeros((self.n, 2))
        self.vertex[one.unknowns(1, "x y"), [0, 1]] = 1.0
        self.along = np.zeros((self.n, 6))
        for k, (a, b) in enumerate(_BARS[6:]):
            d = np.array(_DRAPER[b], float) - np.array(_DRAPER[a], float)
            self.along[one.unknowns(a, "x y z"), k] = d / np.linalg.norm(d)

    def point(
        self, areas: Any, response: float = 1.0, effort: float = 1.0, *, slopes: bool = False
    ) -> DesignPoint:
        a, n = np.asarray(areas, dtype=float), self.n
        M, K = np.tensordot(a, self.M, 1), np.tensordot(a, self.K, 1)
        S = np.linalg.solve(M, np.hstack([K, 0.1 * M + 0.001 * K, self.along, self.vertex]))
        A = np.block([[np.zeros((n, n)), np.eye(n)], [-S[:, :n], -S[:, n : 2 * n]]])
        none = np.zeros((n, 6))
        plant = StateSpace(A, np.vstack([none, S[:, 2 * n : 2 * n + 6]]), np.hstack([none.T, self.along.T]))
        Q = np.concatenate([np.any(self.vertex, axis=1) / response, np.zeros(n)])
        noise = np.vstack([none[:, :2], S[:, -2:]])
        moved = self._slopes(M, S) if slopes else None
        return DesignPoint(plant, noise, Q, 1 / effort, float(a @ self.weights), slopes=moved)

    def _slopes(self, M: Array, S: Array) -> dict[str, DesignSlope]:
        """M S = right, so that M dS = d(right) - dM S."""
        n = self.n
        right = np.zeros((12, n, S.shape[1]))
        right[:, :, :n], right[:, :, n : 2 * n] = self.K, 0.1 * self.M + 0.001 * self.K
        moved = np.linalg.solve(M, right - self.M @ S)
        A = np.zeros((12, 2 * n, 2 * n))
        A[:, n:] = -moved[:, :, : 2 * n]
        low = np.concatenate([np.zeros((12, n, 8)), moved[:, :, 2 * n :]], axis=1)
        return {
            f"a{k + 1}": DesignSlope(A[k], low[k, :, :6], 0.0, low[k, :, 6:], structure=self.weights[k])
            for k in range(12)
        }

    def __call__(self, **areas: float) -> DesignPoint:
        given = {**self.fixed, **areas}
        return self.point([given[f"a{k}"] for k in range(1, 13)], slopes=True)


@case(
    source=f"McLaren, Slater, A disturbance model for control/structure optimization, {JPL1989}: Tables 4, 5, 9 and 10",
    kind="published",
    tags=("control", "acc1989"),
    missing="the figure with the geometry; the damping of the modes: that of the open-loop responses is taken, which fits",
)
def draper_codesign() -> Items:
    """The lightest DRAPER I whose vertex and actuators stay within mean squares of 1e-4 in^2 and 50."""
    printed = (33.742, 11.179, 17.761, 3.745, 4.167, 4.634, 6.621, 5.070, 0.1, 0.1, 5.357, 0.1)
    named = {f"a{k}": x for k, x in enumerate(printed, 1)}
    truss = _Truss({k: x for k, x in named.items() if x == 0.1})
    free = {k: x for k, x in named.items() if x > 0.1}
    found = lightest(
        truss, dict.fromkeys(free, (0.1, 150.0)), effort=50.0, response=1e-4, start=free, iterations=60
    )
    yield Check(
        "weight, state feedback [lb]",
        found.structure,
        961.3,
        10.0,
        "printed areas miss the response by 2 % here, and weight goes like its root",
    )
    # the printed areas with output feedback, and gains that are best for this multiplier
    areas = np.array(
        [23.272, 28.426, 22.333, 13.401, 13.472, 14.662, 3.130, 0.850, 13.294, 13.149, 0.849, 3.069]
    )
    yield Check("weight, output feedback [lb]", float(areas @ truss.weights), 1503.4, 0.05, "printed digits")
    multiplier = 0.634
    printed_truss = truss.point(areas, 1e-4, 50.0 / multiplier)
    best = codesign(
        lambda none: dataclasses.replace(printed_truss, slopes={"none": DesignSlope()}),
        {"none": (0.0, 1.0)},
        share=1.0,
        feedback="output",
    )
    point = truss.point(areas)
    K = best.controller.D @ point.plant.C
    X = lyapunov(point.plant.A + point.plant.B @ K, point.disturbance @ point.disturbance.T)
    mean_squares = [np.sum(np.asarray(point.Q) * np.diag(X)) / 1e-4, np.trace(K @ X @ K.T) / 50.0]
    yield Check(
        "both limits are met", mean_squares, [1.0, 1.0], 0.01, "three digits of the multiplier and of areas"
    )


@case(
    source=f"Balakrishnan, Minimum attainable RMS attitude error using co-located rate sensors, {JPL1989}, (3.5)",
    kind="published",
    tags=("control", "acc1989"),
)
def co_located_bound() -> Items:
    """No feedback does better than rate feedback at the tip of a cantilever: sqrt(d_s d_o) times the static compliance."""
    d_s, d_o, L, EI = 0.02, 0.005, 2.0, 3.0
    fe = straight(6, length=L, section=CrossSection(1.0, 1e6, EI, EI, 1.0), tip=0.7)
    free, _ = fe.held(fe.unknowns(0))
    M, K = (A[free][:, free].toarray() for A in (fe.M, fe.K))
    tip = np.zeros((len(free), 1))
    tip[np.flatnonzero(free == fe.unknowns(6, "y")[0])] = 1.0
    gain = np.sqrt(d_s / d_o)
    G = SecondOrder(M, gain * tip @ tip.T, K, tip, tip.T).to_statespace()
    # noise of the actuator, and that of the sensor through the gain
    noise = (d_s + gain**2 * d_o) * G.B @ G.B.T
    found = float((G.C @ lyapunov(G.A, noise) @ G.C.T)[0, 0])
    expected = np.sqrt(d_s * d_o) * L**3 / (3 * EI)
    yield Check(
        "mean square of the tip [m^2]", found, expected, 1e-9, "rounding times the condition of K, 1e6"
    )

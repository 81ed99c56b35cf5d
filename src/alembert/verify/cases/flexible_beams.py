"""Single beams: spinning, loaded, reduced, in loops; each level of stiffening where it matters.

L = EI = rhoA = 1 unless said. References are roots of characteristic equations, or solutions of the differential equations
by two methods, to the digits shown. Matrices of small motion come from the equations of motion on symbols.
"""

import dataclasses
import functools
from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.flexible import beam, campbell
from alembert.joints import Fixed, PointOnLine, Revolute, Universal
from alembert.linear import trim
from alembert.model import Inertia, ModalBody, Model, ModelBuilder, Placement
from alembert.model.elements import SegmentChain
from alembert.model.modal import Stiffening
from alembert.verify.case import Check, Items, family

case = family("flexible")

Array = np.ndarray
DIGITS = "digits of the reference"
TINY = Inertia(1.0, (0, 0, 0), (1.0, 0, 1.0, 0, 0, 1.0))
HUB = Inertia(1.0, (0, 0, 0), (0.1, 0, 0.1, 0, 0, 0.1))


def small_motion(
    model: Model, v: Array | None = None, held: tuple[str, ...] = (), force: tuple[str, Array] | None = None
) -> tuple[Array, Array, Array]:
    """M, C and K about the neutral configuration (and steady speeds), under a dead force on a frame."""
    n = model.nv
    e, w, a = (ca.SX.sym(name, n) for name in "ewa")
    q = model.space.integrate(ca.SX(model.neutral()), e)
    tau = model.symbolic.inverse_dynamics(q, w, a)
    if force is not None:
        place = model.symbolic.frame_pose(q, force[0]).translation
        tau = tau - ca.gradient(ca.dot(ca.DM(force[1]), place), e)
    matrices = [ca.densify(ca.jacobian(tau, x)) for x in (a, w, e)]
    found = ca.Function("small", [e, w, a], matrices)(0, 0 if v is None else v, 0)
    free = np.ones(n, dtype=bool)
    for name in held:
        free[model.v_slice(name)] = False
    M, C, K = (np.asarray(x)[np.ix_(free, free)] for x in found)
    return M, C, K


def rates(M: Array, C: Array, K: Array) -> Array:
    """Frequencies, rad/s, ascending, without those at rest."""
    n = len(M)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    found = np.sort(scipy.linalg.eigvals(A).imag)
    return found[found > 1e-3]


def on_a_hub(body: ModalBody, radius: float = 0.0, hub: Inertia = TINY) -> Model:
    builder = ModelBuilder("hub", gravity=(0, 0, 0))
    builder.body("hub", hub, joint=Revolute((0, 0, 1)), joint_name="shaft")
    builder.body("beam", body, joint=Fixed(), parent="hub", placement=(radius, 0, 0))
    builder.frame("tip", "beam", node="tip")
    return builder.build()


def clamped(body: ModalBody | SegmentChain, gravity: float = 0.0, across: float = 0.0) -> Model:
    builder = ModelBuilder("clamped", gravity=(gravity, 0, -across))
    builder.body("beam", body, joint=Fixed())
    builder.frame("tip", "beam", node="tip")
    return builder.build()


def spun(body: ModalBody, rate: float, radius: float = 0.0) -> Array:
    model = on_a_hub(body, radius)
    return rates(*small_motion(model, model.velocity({"shaft": rate}), held=("shaft",)))


def least_square(body: ModalBody, rate: float, radius: float) -> float:
    """The least K/M at a rate: negative where the beam diverges."""
    model = on_a_hub(body, radius)
    M, _, K = small_motion(model, model.velocity({"shaft": rate}), held=("shaft",))
    return float(np.linalg.eigvals(np.linalg.solve(M, K)).real.min())


@case(
    source="Beams pinned at the root: tan x = tanh x; pinned and hanging at gravity 5, computed by two methods",
    kind="closed form",
    tags=("tree",),
)
def pinned_beam() -> Items:
    """A beam on a hinge: the rigid motion, and the bending that goes with it."""

    def first(gravity: float, modes: int = 8, level: Stiffening = "consistent") -> Array:
        builder = ModelBuilder("pinned", gravity=(gravity, 0, 0))
        body = beam(1.0, 1.0, EI_z=1.0, bending_y=modes, ends="pinned", stiffening=level)
        builder.body("beam", body, joint=Revolute((0, 0, 1)), joint_name="pin")
        return rates(*small_motion(builder.build()))[:2]

    # shapes are right to 1e-9 of frequencies of up to 50
    yield Check("pinned-free [rad/s]", first(0.0), [15.4182057170, 49.9648620318], 1e-7, DIGITS)
    expected = [2.7316359, 16.8406235]
    yield Check.converging("hanging [rad/s]", lambda n: first(5.0, n), 8, expected, 1e-7)
    # without foreshortening weight acts to first order on the shape sin bx/sin b + sinh bx/sinh b, seen from the root
    b = 3.926602312047919
    x, w = np.polynomial.legendre.leggauss(40)
    x, w = (x + 1) / 2, w / 2
    bare = np.sin(b * x) / np.sin(b) + np.sinh(b * x) / np.sinh(b)
    shape = bare - b * (1 / np.sin(b) + 1 / np.sinh(b)) * x
    M = np.array([[1 / 3, w @ (x * shape)], [w @ (x * shape), w @ shape**2]])
    K = np.array([[5.0 / 2, 5.0 * w @ shape], [5.0 * w @ shape, w @ bare**2 * b**4]])
    alone = np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True))
    soft = first(5.0, 1, "inconsistent")
    yield Check("hanging, inconsistent, one mode [rad/s]", soft, alone, 1e-7, "integrals of its shape")
    yield Check("second, too low by 3.2 rad/s", expected[1] - soft[1], 3.244, 1e-3, "tension is left out")


@case(
    source="Flap of a spinning beam, hub radius 0 and 1, and lag at 12 rad/s, computed by two methods",
    kind="reference",
    tags=("tree",),
)
def flap_and_lag() -> Items:
    """Motion-induced stiffness at three rates and two hub radii, and what is left of it without foreshortening."""

    def flap(n: int, radius: float) -> list[float]:
        out = beam(1.0, 1.0, EI_y=1.0, bending_z=n)
        return [spun(out, rate, radius)[0] for rate in (2.0, 6.0, 12.0)]

    def lag(n: int) -> list[float]:
        across = beam(1.0, 1.0, EI_z=1.0, bending_y=n)
        return [spun(across, 12.0, radius)[0] for radius in (0.0, 1.0)]

    for radius, expected in (
        (0.0, (4.13731957, 7.36037302, 13.17015049)),
        (1.0, (4.83368887, 10.44386587, 19.72154194)),
    ):
        what = f"flap, radius {radius:g} [rad/s]"
        yield Check.converging(what, functools.partial(flap, radius=radius), 12, expected, 1e-8)
    yield Check.converging("lag at 12 rad/s [rad/s]", lag, 12, [5.42704928, 15.65053406], 1e-8)

    def higher(n: int) -> Array:
        return spun(beam(1.0, 1.0, EI_y=1.0, bending_z=n), 12.0)[1:3]

    yield Check.converging(
        "second and third flap at 12 rad/s [rad/s]", higher, 12, [37.6031123, 79.6144785], 1e-7
    )
    soft = beam(1.0, 1.0, EI_y=1.0, bending_z=12, stiffening="inconsistent")
    for radius in (0.0, 1.0):
        what = f"flap, inconsistent, radius {radius:g} [rad/s]"
        yield Check(what, spun(soft, 12.0, radius)[0], 3.5160152685, 1e-8, "that of the beam at rest")
        across = beam(1.0, 1.0, EI_z=1.0, bending_y=12, stiffening="inconsistent")
        what = f"lag, inconsistent, radius {radius:g}: its square [1/s^2]"
        yield Check(what, least_square(across, 12.0, radius), 3.5160152685**2 - 144, 1e-7, "it diverges")


def _with_half_a_mass() -> float:
    """The first root of the cantilever with half of its mass at the tip besides."""

    def equation(x: float) -> float:
        c, s, C, S = np.cos(x), np.sin(x), np.cosh(x), np.sinh(x)
        return float(c * C + 1 - x / 2 * (s * C - c * S))

    return float(scipy.optimize.brentq(equation, 1.0, 1.8, xtol=1e-14))


@case(
    source="Beam of EI = 1 on a hub of radius 0.1 at 3 rad/s with a tip mass of 0.5, computed by two methods",
    kind="reference",
    tags=("tree",),
)
def spinning_beam_with_a_tip_mass() -> Items:
    """Flap and lag where most of the tension comes from the tip."""

    def first(n: int) -> list[float]:
        planes: tuple[dict[str, Any], ...] = ({"EI_y": 1.0, "bending_z": n}, {"EI_z": 1.0, "bending_y": n})
        return [spun(beam(1.0, 1.0, **plane, tip=Inertia.point(0.5)), 3.0, 0.1)[0] for plane in planes]

    yield Check.converging("flap, lag [rad/s]", first, 8, [3.96666800, 2.59508286], 1e-8)
    soft = beam(
        1.0, 1.0, EI_y=1.0, bending_z=8, tip=Inertia.point(0.5), stiffening="inconsistent"
    )  # whose tension is left out
    hard = beam(1.0, 1.0, EI_y=1.0, bending_z=8, tip=Inertia.point(0.5))
    at_rest = spun(hard, 0.0)[0]
    yield Check("flap, inconsistent [rad/s]", spun(soft, 3.0, 0.1)[0], at_rest, 1e-9, "that at rest")
    across = beam(1.0, 1.0, EI_z=1.0, bending_y=8, tip=Inertia.point(0.5), stiffening="inconsistent")
    square = least_square(across, 3.0, 0.1)
    yield Check("lag, inconsistent: its square [1/s^2]", square, at_rest**2 - 9, 1e-8, "it diverges")
    # 1.875... of a beam with half its mass at the tip: cos x cosh x + 1 = x / 2 (sin x cosh x - cos x sinh x)
    yield Check("at rest [rad/s]", at_rest, _with_half_a_mass() ** 2, 1e-8, "characteristic equation")


@case(
    source="Cantilever whose sections have their mass beside the shear centre: transfer matrix of bending and torsion",
    kind="closed form",
    tags=("tree",),
)
def bending_with_torsion() -> Items:
    """Modes bend and twist at once; by modes of bending and of torsion, and by rigid segments."""
    offset, GJ, gyration = 0.2, 0.5, 0.03

    def boundary(omega: float) -> float:
        """The determinant of moment, force and torque at the tip per those at the root; w, slopes, theta, slope."""
        square, A = omega**2, np.zeros((6, 6))
        A[0, 1] = A[1, 2] = A[2, 3] = A[4, 5] = 1.0
        A[3, 0], A[3, 4] = square, square * offset
        A[5, 0], A[5, 4] = -square * offset / GJ, -square * (gyration + offset**2) / GJ
        return float(np.linalg.det(scipy.linalg.expm(A)[np.ix_([2, 3, 5], [2, 3, 5])]))

    between = np.linspace(1.0, 22.0, 200)
    signs = np.sign([boundary(x) for x in between])
    at = np.flatnonzero(signs[1:] != signs[:-1])
    expected = [scipy.optimize.brentq(boundary, between[k], between[k + 1], xtol=1e-12) for k in at]
    beside: dict[str, Any] = {"EI_y": 1.0, "GJ": GJ, "rhoI_z": gyration, "mass_offset": (offset, 0.0)}

    def modes(n: int) -> Array:
        return rates(*small_motion(clamped(beam(1.0, 1.0, **beside, bending_z=n, torsion=n))))[:4]

    def segments(n: int) -> Array:
        return rates(*small_motion(clamped(beam(1.0, 1.0, **beside, segments=n, rigid=True))))[:2]

    yield Check.converging("four frequencies [rad/s]", modes, 8, expected, 1e-10)
    yield Check.converging("two, by rigid segments [rad/s]", segments, 8, expected[:2], 1e-10, order=1)


@case(
    source="Flap at 12 rad/s by one to six cantilever modes (Rayleigh and Ritz)",
    kind="reference",
    tags=("tree",),
)
def few_modes() -> Items:
    """How flap converges with the number of modes."""
    found = [spun(beam(1.0, 1.0, EI_y=1.0, bending_z=n), 12.0)[0] for n in (1, 2, 3, 4, 6)]
    expected = [13.5721333, 13.2796620, 13.2035626, 13.1829201, 13.1728102]
    yield Check("flap [rad/s]", found, expected, 1e-7, DIGITS)
    soft = [spun(beam(1.0, 1.0, EI_y=1.0, bending_z=n, stiffening="inconsistent"), 12.0)[0] for n in (1, 6)]
    yield Check("inconsistent [rad/s]", soft, 3.5160152685, 1e-8, "that at rest, with any number of modes")


@case(source="A chain or string that spins: (flap/rate)^2 = k (2k - 1)", kind="closed form", tags=("tree",))
def spinning_string() -> Items:
    """A beam without stiffness, hinged at its root, is held by its tension alone."""

    def squares(n: int, level: Stiffening = "consistent") -> Array:
        builder = ModelBuilder("string", gravity=(0, 0, 0))
        builder.body("hub", TINY, joint=Revolute((0, 0, 1)), joint_name="shaft")
        string = beam(1.0, 1.0, EI_y=1e-9, bending_z=n, ends="pinned", stiffening=level)
        builder.body("string", string, joint=Revolute((0, 1, 0)), joint_name="hinge", parent="hub")
        model = builder.build()
        found = rates(*small_motion(model, model.velocity({"shaft": 1.0}), held=("shaft",))) ** 2
        return found[found > 1e-4]

    # a stiffness of 1e-9 where there is none adds some 1e-7 to the third
    yield Check.converging("(flap/rate)^2", lambda n: squares(n)[:3], 12, [1.0, 6.0, 15.0], 1e-6)
    reason = "no tension holds the others; a stiffness of 1e-9 is left: 1e-9 (k + 1/4)^4 pi^4, k = 2"
    yield Check("inconsistent", squares(2, "inconsistent"), [1.0], 3e-6, reason)


@case(
    source="A cantilever under a dead force along it: compression pi^2/8, tension 5 (characteristic equation)",
    kind="closed form",
    tags=("tree",),
)
def dead_load_at_the_tip() -> Items:
    """A load at a node acts on the foreshortening there."""

    def first(n: int, force: float) -> Array:
        model = clamped(beam(1.0, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton"))
        return rates(*small_motion(model, force=("tip", np.array([force, 0, 0]))))[:2]

    for what, force, expected in (
        ("compression", -(np.pi**2) / 8, [2.5345602161, 21.1051723546]),
        ("tension", 5.0, [5.7681990202, 25.4059097040]),
    ):
        at = functools.partial(first, force=force)
        yield Check.converging(f"{what} [rad/s]", at, 12, expected, 1e-9)
    soft = clamped(beam(1.0, 1.0, EI_z=1.0, bending_y=4, stiffening="inconsistent"))
    unloaded = [3.5160152685, 22.0344915647]
    for what, force in (("compression", -(np.pi**2) / 8), ("tension", 5.0)):
        found = rates(*small_motion(soft, force=("tip", np.array([force, 0, 0]))))[:2]
        yield Check(f"inconsistent, {what} [rad/s]", found, unloaded, 1e-8, "the load does nothing to it")


@case(
    source="""Prandtl (1899), Michell (1899): a flat cantilever on edge buckles at 4.0126 sqrt(EI GJ)/L^2 under a force;
    under its own weight at 12.85 sqrt(EI GJ)/L^3 (Timoshenko and Gere, Theory of elastic stability)""",
    kind="closed form",
    tags=("tree",),
)
def lateral_buckling() -> Items:
    """Bending and torsion of one body go together at second order: J_-1/4(P/2) = 0."""

    def critical(n: int, level: Stiffening = "consistent") -> float:
        body = beam(1.0, 1.0, EI_z=1.0, GJ=1.0, rhoI_y=0.01, bending_y=n, torsion=n, stiffening=level)
        at_rest, loaded = (
            small_motion(clamped(body), force=("tip", np.array([0.0, 0.0, load])))[2] for load in (0.0, 1.0)
        )
        most = scipy.linalg.eigh(at_rest - loaded, at_rest, eigvals_only=True)[-1]
        return 1 / float(most) if most > 1e-9 else np.inf

    half = scipy.optimize.brentq(lambda x: float(scipy.special.jv(-0.25, x)), 1.5, 2.5, xtol=1e-14)
    yield Check.converging("buckling load", critical, 4, 2 * half, 1e-9)
    never, why = critical(2, "inconsistent") == np.inf, "forces across it do nothing to its stiffness"
    yield Check.holds("inconsistent, never buckles", never, why)

    def by_weight(segments: int) -> float:
        """The least rhoA g at which a beam cut into segments buckles under its own weight."""
        body = beam(1.0, 1.0, EI_z=1.0, GJ=1.0, rhoI_y=0.01, torsion=1, segments=segments)
        light, heavy = (small_motion(clamped(body, across=g))[2] for g in (0.0, 1.0))
        return 1 / float(scipy.linalg.eigh(light - heavy, light, eigvals_only=True)[-1])

    yield Check.converging("under its own weight, segments", by_weight, 3, 12.85, 5e-3, fewer=2)


@case(
    source="Hub of inertia 0.1 with a beam: zeros from the torque to the tip, +-11.186642724, +-60.4516958636",
    kind="closed form",
    tags=("tree", "linearisation"),
)
def zeros_of_a_flexible_arm() -> Items:
    """Real zeros from the torque to the tip: not minimum phase; to the hub's own angle, those of the cantilever."""

    def zeros(n: int, output: str) -> Array:
        """s^2 where [[M s^2 + K, b], [c, 0]] is singular."""
        model = on_a_hub(beam(1.0, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton"), hub=HUB)
        M, _, K = small_motion(model)
        e = ca.SX.sym("e", model.nv)
        tip = ca.jacobian(model.symbolic.frame_pose(e, "tip").translation[1], e)
        moved = np.asarray(ca.Function("tip", [e], [ca.densify(tip)])(0))
        c, b = (moved if output == "tip" else np.eye(model.nv)[:1]), np.eye(model.nv)[:, :1]
        S, T = (np.block([[X, B], [C, np.zeros((1, 1))]]) for X, B, C in ((K, b, c), (-M, 0 * b, 0 * c)))
        found = scipy.linalg.eigvals(S, T)
        found = found[np.isfinite(found) & (np.abs(found) < 1e5)]
        return np.sort(found.real)

    def real(n: int) -> Array:
        squares = zeros(n, "tip")
        return np.sqrt(squares[squares > 1.0])[:2]

    def imaginary(n: int) -> Array:
        squares = zeros(n, "hub")
        return np.sqrt(-squares[squares < -1.0][::-1])[:3]

    yield Check.converging("torque to tip [1/s]", real, 14, [11.186642724, 60.4516958636], 1e-9, fewer=10)
    cantilever = [3.5160152685, 22.0344915647, 61.6972144135]
    yield Check.converging("torque to hub [rad/s]", imaginary, 14, cantilever, 1e-9)


@case(
    source="Craig and Bampton's component modes of a uniform beam, by exact shapes: cantilever and free-free",
    kind="reference",
    tags=("tree",),
)
def component_modes() -> Items:
    """One component with 0 to 4 fixed modes, and two halves put together."""
    whole = [
        rates(*small_motion(clamped(beam(1.0, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton"))))[0]
        for n in range(5)
    ]
    expected = [3.532731543, 3.517235412, 3.516220519, 3.516069788, 3.516034285]
    yield Check("one component [rad/s]", whole, expected, 1e-8, DIGITS)
    found = []
    for n in range(3):
        half = beam(0.5, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton")
        builder = ModelBuilder("halves", gravity=(0, 0, 0))
        builder.body("first", half, joint=Fixed())
        builder.body("second", half, joint=Fixed(), parent="first", node="tip")
        found.append(rates(*small_motion(builder.build()))[1])
    expected = [22.221474474, 22.064935083, 22.036497813]
    yield Check("two halves, second mode [rad/s]", found, expected, 1e-7, DIGITS)
    bare = rates(*small_motion(clamped(beam(1.0, 1.0, EI_z=1.0, bending_y=2, ends="free"))))[0]
    yield Check("two free modes, clamped [rad/s]", bare, 4.762827264, 1e-8, DIGITS)


@case(
    source="Clamped and pinned beam, tan x = tanh x; the support carries 3/8 of a uniform load",
    kind="closed form",
    tags=("loops",),
)
def propped_cantilever() -> Items:
    """A closed loop on a flexible body: its tip is held on a line."""
    weight = 1e-3

    def propped(n: int, gravity: float = 0.0) -> Model:
        builder = ModelBuilder("propped", gravity=(0, -gravity, 0))
        builder.body("beam", beam(1.0, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton"), joint=Fixed())
        builder.frame("tip", "beam", node="tip")
        builder.equation("support", "y", {"y": "tip.y"})
        return builder.build()

    def found(n: int) -> Array:
        model = propped(n)
        M, _, K = small_motion(dataclasses.replace(model, equations=()))
        Z = scipy.linalg.null_space(model.constraint_jacobian(np.zeros(model.nq)))
        return np.sqrt(scipy.linalg.eigh(Z.T @ K @ Z, Z.T @ M @ Z, eigvals_only=True))[:2]

    model = propped(4, weight)
    rest = trim(model)
    zero = np.zeros(model.nv)
    force = model.constrained_dynamics(rest.q, zero, zero).reactions["support"][0]
    yield Check("share of the support", force / weight, 3 / 8, 1e-7, "the square of the slope, 1e-4")
    yield Check.converging("frequencies [rad/s]", found, 4, [15.4182057170, 49.9648620318], 1e-9)


@case(
    source="Rayleigh's shaft of steel (E 2.1e11, rho 7800), L 1, radius 0.02, pinned ends, at 2000 rad/s: closed form",
    kind="closed form",
    tags=("loops",),
)
def whirling_shaft() -> Items:
    """Rotary inertia of the sections makes forward and backward whirl differ; the far end is held by an equation."""
    E, rho, r, rate = 2.1e11, 7800.0, 0.02, 2000.0
    A, I = np.pi * r**2, np.pi * r**4 / 4
    properties: dict[str, Any] = {"EI_y": E * I, "EI_z": E * I, "rhoI_y": rho * I, "rhoI_z": rho * I}

    def spindle(n: int) -> ModelBuilder:
        builder = ModelBuilder("shaft", gravity=(0, 0, 0))
        builder.body("spindle", TINY, joint=Revolute((1, 0, 0)), joint_name="spin")
        shaft = beam(1.0, rho * A, **properties, bending_y=n, bending_z=n, ends="craig-bampton")
        bearing = Universal((0, 1, 0), (0, 0, 1))
        builder.body("shaft", shaft, joint=bearing, joint_name="bearing", parent="spindle")
        builder.frame("end", "shaft", node="tip")
        return builder

    def whirl(n: int) -> list[float]:
        model = spindle(n).build()
        M, C, K = small_motion(model, model.velocity({"spin": rate}), held=("spin",))
        e = ca.SX.sym("e", model.nv)
        held = ca.jacobian(model.symbolic.frame_pose(e, "end").translation[1:], e)
        G = np.asarray(ca.Function("rows", [e], [ca.densify(held)])(0))[:, 1:]
        Z = scipy.linalg.null_space(G)
        turning = rates(Z.T @ M @ Z, Z.T @ C @ Z, Z.T @ K @ Z)
        # in axes that turn, forward whirl is seen at the difference of the rates, of either sign, and backward at their sum
        forward = np.concatenate([rate - turning, rate + turning])
        backward = turning[turning > rate] - rate
        near = ((forward, 513.83), (backward, 509.89), (forward, 2052.3), (backward, 2036.6))
        return [float(x[np.argmin(np.abs(x - at))]) for x, at in near]

    expected = [513.8318709, 509.8879217, 2052.2827527, 2036.5534824]
    yield Check.converging("forward, backward, one and two waves [rad/s]", whirl, 6, expected, 1e-7)

    def diagram(n: int) -> Array:
        """The same by `campbell`, the far end on a line: seen from the shaft, forward whirl is slower by the rate."""
        builder = spindle(n)
        builder.loop("far", PointOnLine((1, 0, 0)), "world", "end")
        seen = campbell(builder.build(), "spin", [rate], modes=4).frequencies[0]
        both = (rate - seen, seen - rate)
        return np.array([x[np.argmin(np.abs(x - near))] for x, near in zip(both, expected, strict=False)])

    yield Check.converging(
        "forward, backward, in two bearings [rad/s]", diagram, 3, expected[:2], 1e-7, fewer=1
    )


@case(
    source="A beam in a frame that is rotated: the same frequencies whatever the axes of the body",
    kind="identity",
    tags=("tree",),
)
def beams_in_space() -> Items:
    """Two equal beams at a right angle in space: bending of one is torsion of the other."""
    body = beam(1.0, 1.0, EI_y=1.0, EI_z=1.0, GJ=0.8, rhoI_y=1e-4, rhoI_z=1e-4, ends="craig-bampton")
    found = []
    for turn in ((0, 0, np.pi / 2), (0, -np.pi / 2, 0)):
        builder = ModelBuilder("corner", gravity=(0, 0, 0))
        builder.body("first", body, joint=Fixed())
        placement = Placement.from_rpy(turn)
        builder.body("second", body, joint=Fixed(), parent="first", node="tip", placement=placement)
        found.append(rates(*small_motion(builder.build()))[:6])
    yield Check("frequencies [rad/s]", found[0], found[1], 1e-9, "rounding")

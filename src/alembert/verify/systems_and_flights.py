"""Questions on linear systems and on flights of one rigid body, put to Alembert and to python-control or Basilisk."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from alembert import control
from alembert.control import StateSpace
from alembert.errors import UnsupportedError
from alembert.joints import Spherical
from alembert.model import Inertia
from alembert.simulate import simulate
from alembert.simulate.forces import EARTH
from alembert.spacecraft import Encke, Environment, Orbit
from alembert.spacecraft.astronomy import EQUATOR
from alembert.verify.mechanisms import one_body, principal

Array = np.ndarray
T = TypeVar("T")


class InAlembert:
    """What `alembert.control` answers."""

    def lqr(self, G: StateSpace, Q: Any, R: Any) -> Array:
        return control.lqr(G, Q, R).K

    def filter_gain(self, G: StateSpace, W: Any, V: Any) -> Array:
        """Of noise with the intensity W at the inputs, and V at the outputs."""
        return control.lqe(G, W, V).L

    def h2_norm(self, G: StateSpace) -> float:
        return G.h2_norm()

    def hinf_norm(self, G: StateSpace) -> float:
        return G.hinf_norm().gain

    def hankel_singular_values(self, G: StateSpace) -> Array:
        return G.hankel_singular_values()

    def zeros(self, G: StateSpace) -> Array:
        return G.zeros()

    def sampled(self, G: StateSpace, dt: float) -> StateSpace:
        return G.sampled(dt)

    def crossover_margins(self, G: StateSpace) -> tuple[float, float]:
        """Gain (a factor) and phase [deg]."""
        found = control.margins(G)
        return found.gain, found.phase_deg


class InPythonControl:
    """What python-control answers; some of it needs slycot."""

    def __init__(self) -> None:
        import control as ct

        self._ct: Any = ct

    def _system(self, G: StateSpace) -> Any:
        return self._ct.ss(G.A, G.B, G.C, G.D, G.dt)

    def _asked(self, what: str, question: Callable[[], T]) -> T:
        """Its own errors of what is not there."""
        try:
            return question()
        except (NotImplementedError, ImportError, self._ct.ControlArgument) as error:
            raise UnsupportedError(f"python-control: {what}: {error}") from error

    def lqr(self, G: StateSpace, Q: Any, R: Any) -> Array:
        sampled = self._ct.dlqr if G.dt else self._ct.lqr
        return np.asarray(sampled(self._system(G), Q, R)[0])

    def filter_gain(self, G: StateSpace, W: Any, V: Any) -> Array:
        return np.asarray(self._ct.lqe(G.A, G.B, G.C, W, V)[0])

    def h2_norm(self, G: StateSpace) -> float:
        return float(self._asked("H2 norm", lambda: self._ct.norm(self._system(G), 2)))

    def hinf_norm(self, G: StateSpace) -> float:
        return float(self._asked("H-infinity norm", lambda: self._ct.norm(self._system(G), "inf")))

    def hankel_singular_values(self, G: StateSpace) -> Array:
        return np.asarray(self._asked("Hankel singular values", lambda: self._ct.hsvd(self._system(G))))

    def zeros(self, G: StateSpace) -> Array:
        return np.asarray(self._asked("zeros", lambda: self._system(G).zeros()))

    def sampled(self, G: StateSpace, dt: float) -> StateSpace:
        found = self._ct.c2d(self._system(G), dt)
        return StateSpace(found.A, found.B, found.C, found.D, dt)

    def crossover_margins(self, G: StateSpace) -> tuple[float, float]:
        gain, phase, *_ = self._ct.margin(self._system(G))
        return float(gain), float(phase)


class OwnFlights:
    """What `alembert.simulate` and `alembert.spacecraft` answer."""

    def tumble(self, moments: tuple[float, ...], rate: Any, duration: float) -> tuple[Array, Array]:
        """Attitude (wxyz) and rate in body axes [rad/s] of a free body, which starts with its axes along the world's."""
        model = one_body("brick", principal(100.0, moments), Spherical(), "attitude").build()
        run = simulate(model, None, rate, duration=duration, integrator="dop853", tolerance=1e-12)
        return run.q[-1], run.v[-1]

    def orbit(self, orbit: Orbit, j2: float, duration: float, step: float) -> tuple[Array, Array]:
        """Position [m] and velocity [m/s] from the Earth's centre."""
        environment = Environment(world=Encke(orbit))
        model = one_body("ball", Inertia.box(100.0, (1, 1, 1))).build()
        q, v = environment.start(model, orbit, attitude="inertial")
        run = simulate(
            model, q, v, duration=duration, step=step, interval=duration, integrator="rk4",
            gravity=environment.gravity(harmonics={2: j2}, gradient=False),
        )  # fmt: skip
        r, u = environment.inertial(run)
        return r[-1], u[-1]


class InBasilisk:
    """What Basilisk answers, by its integrator of order 4 with steps of 10 ms or less for attitudes."""

    def tumble(self, moments: tuple[float, ...], rate: Any, duration: float) -> tuple[Array, Array]:
        craft = _Craft(np.diag(moments))
        craft.hub.omega_BN_BInit = [[float(x)] for x in rate]
        state = craft.after(duration, 0.01)
        return _quaternion(np.array(state.sigma_BN)), np.array(state.omega_BN_B)

    def orbit(self, orbit: Orbit, j2: float, duration: float, step: float) -> tuple[Array, Array]:
        craft = _Craft(np.eye(3))
        craft.add_earth(j2)
        r, v = orbit.state()
        craft.hub.r_CN_NInit = [[float(x)] for x in r]
        craft.hub.v_CN_NInit = [[float(x)] for x in v]
        state = craft.after(duration, step)
        return np.array(state.r_BN_N), np.array(state.v_BN_N)


class _Craft:
    """A spacecraft of Basilisk, with all that must live as long as it."""

    def __init__(self, inertia: Array) -> None:
        from Basilisk.simulation import spacecraft
        from Basilisk.utilities import SimulationBaseClass

        self._simulation = SimulationBaseClass.SimBaseClass()
        self._craft = spacecraft.Spacecraft()
        self._craft.ModelTag = "craft"
        self.hub = self._craft.hub
        self.hub.mHub = 100.0
        self.hub.IHubPntBc_B = inertia.tolist()
        self._kept: list[Any] = []

    def add_earth(self, j2: float) -> None:
        from Basilisk.simulation import gravityEffector, spacecraft

        earth = gravityEffector.GravBodyData()
        earth.planetName, earth.isCentralBody, earth.mu = "earth_planet_data", True, EARTH
        earth.radEquator = EQUATOR
        field = gravityEffector.SphericalHarmonicsGravityModel()
        field.maxDeg, field.muBody, field.radEquator = 2, EARTH, EQUATOR
        field.cBar = gravityEffector.MultiArray([[1.0], [0.0, 0.0], [-j2 / np.sqrt(5), 0.0, 0.0]])
        field.sBar = gravityEffector.MultiArray([[0.0], [0.0, 0.0], [0.0, 0.0, 0.0]])
        earth.gravityModel = field
        self._craft.gravField.gravBodies = spacecraft.GravBodyVector([earth])
        self._kept += [earth, field]

    def after(self, duration: float, step: float) -> Any:
        """With steps of whole nanoseconds, `step` or up to half of it, the last of which ends with the duration."""
        end, most = round(duration * 1e9), math.ceil(duration / step)
        steps = min(range(most, 2 * most), key=lambda n: (end % n, n))
        process = self._simulation.CreateNewProcess("process")
        process.addTask(self._simulation.CreateNewTask("dynamics", end // steps))
        self._simulation.AddModelToTask("dynamics", self._craft)
        self._simulation.InitializeSimulation()
        self._simulation.ConfigureStopTime(end)
        self._simulation.ExecuteSimulation()
        return self._craft.scStateOutMsg.read()


def _quaternion(sigma: Array) -> Array:
    """(wxyz) of modified Rodrigues parameters."""
    square = float(sigma @ sigma)
    return np.r_[1 - square, 2 * sigma] / (1 + square)

"""A satellite in Basilisk: hub, three wheels, two hinged panels, J2, drag, gravity gradient, sensors, a 10 Hz controller.

Run alone (python benchmarks/basilisk_satellite.py) it prints the processor time of one period of 0.1 s, in seconds: the mean
over a long run without recorders. The least of some runs counts.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

STEP = 0.1
MU, EQUATOR, J2 = 3.986004418e14, 6378137.0, 1.08262668e-3
MASS, SIZE = 300.0, (1.0, 1.2, 1.5)
PANEL, LENGTH, WIDTH = 12.0, 2.5, 1.0


def simulation() -> tuple[Any, list[Any]]:
    """The simulation, and all that must not be collected while it lives."""
    from Basilisk.architecture import messaging
    from Basilisk.fswAlgorithms import attTrackingError, hillPoint, mrpFeedback, rwMotorTorque
    from Basilisk.simulation import (
        GravityGradientEffector,
        exponentialAtmosphere,
        facetDragDynamicEffector,
        gravityEffector,
        hingedRigidBodyStateEffector,
        imuSensor,
        reactionWheelStateEffector,
        simpleNav,
        spacecraft,
        starTracker,
    )
    from Basilisk.utilities import SimulationBaseClass, macros, simIncludeRW

    sim = SimulationBaseClass.SimBaseClass()
    process = sim.CreateNewProcess("process")
    process.addTask(sim.CreateNewTask("dynamics", macros.sec2nano(STEP)))
    kept: list[Any] = []

    def add(model: Any, name: str) -> Any:
        model.ModelTag = name
        sim.AddModelToTask("dynamics", model)
        kept.append(model)
        return model

    craft = spacecraft.Spacecraft()
    craft.ModelTag = "craft"
    x, y, z = SIZE
    craft.hub.mHub = MASS
    craft.hub.IHubPntBc_B = (MASS / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])).tolist()
    r = EQUATOR + 500e3
    craft.hub.r_CN_NInit = [[r], [0.0], [0.0]]
    speed = float(np.sqrt(MU / r))
    craft.hub.v_CN_NInit = [[0.0], [speed * np.cos(1.7)], [speed * np.sin(1.7)]]
    craft.hub.sigma_BNInit = [[0.1], [0.2], [-0.3]]
    craft.hub.omega_BN_BInit = [[0.001], [-0.001], [0.001]]
    kept.append(craft)

    earth = gravityEffector.GravBodyData()
    earth.planetName, earth.isCentralBody, earth.mu = "earth_planet_data", True, MU
    earth.radEquator = EQUATOR
    field = gravityEffector.SphericalHarmonicsGravityModel()
    field.maxDeg, field.muBody, field.radEquator = 2, MU, EQUATOR
    C20 = -J2 / np.sqrt(5)
    field.cBar = gravityEffector.MultiArray([[1.0], [0.0, 0.0], [C20, 0.0, 0.0]])
    field.sBar = gravityEffector.MultiArray([[0.0], [0.0, 0.0], [0.0, 0.0, 0.0]])
    earth.gravityModel = field
    craft.gravField.gravBodies = spacecraft.GravBodyVector([earth])
    kept += [earth, field]

    wheels = reactionWheelStateEffector.ReactionWheelStateEffector()
    factory = simIncludeRW.rwFactory()
    for axis in np.eye(3):
        factory.create("Honeywell_HR16", axis.tolist(), Omega=10.0, maxMomentum=50.0)
    factory.addToSpacecraft("wheels", wheels, craft)
    kept += [wheels, factory]
    for sign in (1.0, -1.0):
        panel = hingedRigidBodyStateEffector.HingedRigidBodyStateEffector()
        panel.mass, panel.d, panel.k, panel.c = PANEL, LENGTH / 2, 60.0, 0.4
        local = PANEL / 12 * np.diag([WIDTH**2, LENGTH**2, LENGTH**2 + WIDTH**2])
        panel.IPntS_S = local.tolist()
        panel.r_HB_B = [[0.0], [0.6 * sign], [0.0]]
        panel.dcm_HB = [[0.0, -sign, 0.0], [sign, 0.0, 0.0], [0.0, 0.0, 1.0]]
        panel.ModelTag = f"panel{sign:+.0f}"
        craft.addStateEffector(panel)
        add(panel, panel.ModelTag)

    air = add(exponentialAtmosphere.ExponentialAtmosphere(), "air")
    air.planetRadius, air.baseDensity, air.scaleHeight = EQUATOR, 4e-12, 60e3
    air.addSpacecraftToModel(craft.scStateOutMsg)
    drag = facetDragDynamicEffector.FacetDragDynamicEffector()
    drag.ModelTag = "drag"
    for axis, area in zip(np.eye(3), (y * z, x * z, x * y), strict=True):
        for sign in (1.0, -1.0):
            drag.addFacet(area, 2.2, (sign * axis).tolist(), (sign * axis * 0.5).tolist())
    for sign in (1.0, -1.0):
        drag.addFacet(LENGTH * WIDTH, 2.2, [0.0, 0.0, 1.0], [0.0, 1.85 * sign, 0.0])
        drag.addFacet(LENGTH * WIDTH, 2.2, [0.0, 0.0, -1.0], [0.0, 1.85 * sign, 0.0])
    drag.atmoDensInMsg.subscribeTo(air.envOutMsgs[0])
    craft.addDynamicEffector(drag)
    gradient = GravityGradientEffector.GravityGradientEffector()
    gradient.ModelTag = "gradient"
    gradient.addPlanetName(earth.planetName)
    craft.addDynamicEffector(gradient)
    sim.AddModelToTask("dynamics", craft)
    sim.AddModelToTask("dynamics", wheels)
    sim.AddModelToTask("dynamics", drag)
    sim.AddModelToTask("dynamics", gradient)
    kept += [drag, gradient]

    stars = add(starTracker.StarTracker(), "stars")
    stars.scStateInMsg.subscribeTo(craft.scStateOutMsg)
    stars.PMatrix = (5e-5 * np.eye(3)).tolist()
    stars.setWalkBounds([[1e-3]] * 3)
    imu = add(imuSensor.ImuSensor(), "imu")
    imu.scStateInMsg.subscribeTo(craft.scStateOutMsg)
    imu.PMatrixGyro = (1e-5 * np.eye(3)).tolist()
    imu.setWalkBoundsGyro([[1e-4]] * 3)
    nav = add(simpleNav.SimpleNav(), "nav")
    nav.scStateInMsg.subscribeTo(craft.scStateOutMsg)
    nav.PMatrix = (1e-6 * np.eye(18)).tolist()
    nav.walkBounds = [[1e-3]] * 18

    aim = add(hillPoint.hillPoint(), "aim")
    aim.transNavInMsg.subscribeTo(nav.transOutMsg)
    error = add(attTrackingError.attTrackingError(), "error")
    error.attNavInMsg.subscribeTo(nav.attOutMsg)
    error.attRefInMsg.subscribeTo(aim.attRefOutMsg)
    inertia = messaging.VehicleConfigMsgPayload()
    inertia.ISCPntB_B = (np.diag([120.0, 90.0, 110.0])).ravel().tolist()
    vehicle = messaging.VehicleConfigMsg().write(inertia)
    law = add(mrpFeedback.mrpFeedback(), "law")
    law.K, law.Ki, law.P, law.integralLimit = 3.5, -1.0, 30.0, 0.0
    law.guidInMsg.subscribeTo(error.attGuidOutMsg)
    law.vehConfigInMsg.subscribeTo(vehicle)
    axes = factory.getConfigMessage()
    law.rwParamsInMsg.subscribeTo(axes)
    law.rwSpeedsInMsg.subscribeTo(wheels.rwSpeedOutMsg)
    motors = add(rwMotorTorque.rwMotorTorque(), "motors")
    motors.controlAxes_B = np.eye(3).ravel().tolist()
    motors.rwParamsInMsg.subscribeTo(axes)
    motors.vehControlInMsg.subscribeTo(law.cmdTorqueOutMsg)
    wheels.rwMotorCmdInMsg.subscribeTo(motors.rwMotorTorqueOutMsg)
    kept += [vehicle, axes, inertia]
    return sim, kept


def main(repeats: int = 3, span: float = 1000.0) -> None:
    from Basilisk.utilities import macros

    sim, kept = simulation()
    sim.InitializeSimulation()
    end, best = 10.0, np.inf
    sim.ConfigureStopTime(macros.sec2nano(end))
    sim.ExecuteSimulation()
    for _ in range(repeats):
        end += span
        sim.ConfigureStopTime(macros.sec2nano(end))
        start = time.process_time()
        sim.ExecuteSimulation()
        best = min(best, (time.process_time() - start) / (span / STEP))
    assert kept
    print(best)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

"""The brachistochrone and the climb of an F-4 in least time with Dymos, in an environment of its own.

What is printed last is JSON: seconds of processor time of a first and of a second solve, and the times found.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")
began = time.process_time()

import dymos as dm  # type: ignore[import-not-found]  # noqa: E402
import openmdao.api as om  # type: ignore[import-not-found]  # noqa: E402
from dymos.examples.brachistochrone.brachistochrone_ode import BrachistochroneODE  # type: ignore[import-not-found]  # noqa: E402
from dymos.examples.min_time_climb.min_time_climb_ode import MinTimeClimbODE  # type: ignore[import-not-found]  # noqa: E402
from dymos.examples.min_time_climb.prop.max_thrust_comp import THR_DATA  # type: ignore[import-not-found]  # noqa: E402

imported = time.process_time() - began


def _problem(phase: dm.Phase) -> om.Problem:
    p = om.Problem(model=om.Group())
    p.driver = om.ScipyOptimizeDriver(optimizer="SLSQP", tol=1e-9, maxiter=300, disp=False)
    p.driver.declare_coloring(show_summary=False)
    trajectory = dm.Trajectory()
    trajectory.add_phase("phase", phase)
    p.model.add_subsystem("trajectory", trajectory)
    return p


def brachistochrone() -> tuple[om.Problem, dm.Phase]:
    phase = dm.Phase(ode_class=BrachistochroneODE, transcription=dm.GaussLobatto(num_segments=10))
    p = _problem(phase)
    phase.set_time_options(fix_initial=True, duration_bounds=(0.5, 10))
    for name, fixed in (("x", True), ("y", True), ("v", False)):
        phase.add_state(name, fix_initial=True, fix_final=fixed)
    phase.add_control("theta", units="deg", lower=0.01, upper=179.9)
    phase.add_parameter("g", units="m/s**2", val=9.80665)
    phase.add_objective("time", loc="final")
    p.setup()
    phase.set_time_val(initial=0.0, duration=2.0)
    for name, values in (("x", [0, 10]), ("y", [10, 5]), ("v", [0, 9.9])):
        phase.set_state_val(name, values)
    phase.set_control_val("theta", [5, 100.5])
    return p, phase


def climb() -> tuple[om.Problem, dm.Phase]:
    phase = dm.Phase(
        ode_class=MinTimeClimbODE, transcription=dm.GaussLobatto(num_segments=15, compressed=True)
    )
    p = _problem(phase)
    p.driver.options["tol"] = 1e-6
    phase.set_time_options(fix_initial=True, duration_bounds=(50, 400), duration_ref=100.0)
    for name, low, high, ref, unit, rate in (
        ("r", 0, 1e6, 1e3, "m", "flight_dynamics.r_dot"),
        ("h", 0, 2e4, 1e2, "m", "flight_dynamics.h_dot"),
        ("v", 10.0, None, 1e2, "m/s", "flight_dynamics.v_dot"),
        ("gam", -1.5, 1.5, 1.0, "rad", "flight_dynamics.gam_dot"),
        ("m", 10.0, 1e5, 1e3, "kg", "prop.m_dot"),
    ):
        given = {
            "lower": low,
            "upper": high,
            "ref": ref,
            "defect_ref": ref,
            "units": unit,
            "rate_source": rate,
        }
        phase.add_state(name, fix_initial=True, **given)
    phase.add_control("alpha", units="deg", lower=-8.0, upper=8.0, rate_continuity=True, targets=["alpha"])
    for name, value, unit in (("S", 49.2386, "m**2"), ("Isp", 1600.0, "s"), ("throttle", 1.0, None)):
        phase.add_parameter(name, val=value, units=unit, opt=False, targets=[name])
    phase.add_boundary_constraint("h", loc="final", equals=20000, scaler=1e-3)
    phase.add_boundary_constraint("aero.mach", loc="final", equals=1.0)
    phase.add_boundary_constraint("gam", loc="final", equals=0.0)
    phase.add_path_constraint(name="h", lower=100.0, upper=20000, ref=20000)
    phase.add_path_constraint(name="aero.mach", lower=0.1, upper=1.8)
    phase.add_objective("time", loc="final", ref=100.0)
    p.model.linear_solver = om.DirectSolver()
    p.setup()
    phase.set_time_val(initial=0.0, duration=350)
    for name, values in (
        *(("r", [0.0, 5e4]), ("h", [100.0, 2e4]), ("v", [135.964, 283.159])),
        *(("gam", [0.0, 0.0]), ("m", [19030.468, 1e4])),
    ):
        phase.set_state_val(name, values)
    phase.set_control_val("alpha", [0.0, 0.0])
    return p, phase


def main() -> dict:
    data = {name: values.tolist() for name, values in THR_DATA.items()}
    found: dict = {"import": imported, "thrust": data}
    for make in (brachistochrone, climb):
        seconds, wall, times = [], [], []
        for _ in range(2):
            began, clock = time.process_time(), time.perf_counter()
            p, phase = make()
            dm.run_problem(p, run_driver=True, simulate=False, make_plots=False)
            seconds.append(time.process_time() - began)
            wall.append(time.perf_counter() - clock)
            times.append(float(phase.get_val("t").ravel()[-1]))
        found[make.__name__] = {"seconds": seconds, "wall": wall, "time": times}
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
    sys.stdout.flush()

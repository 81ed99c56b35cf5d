"""Samples of a predictive controller with do-mpc, in an environment of its own: the cart-pole of `starts.samples`.

The first argument says how many samples. What is printed last is JSON: the median of their seconds of processor time, and
how many were solved. Its transcription is its own (collocation of degree 2), its solver IPOPT, with the tolerance of ours.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import casadi as ca  # noqa: E402
import do_mpc  # type: ignore[import-not-found]  # noqa: E402
import numpy as np  # noqa: E402

CART, POLE, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81
"""of the cart-pole of the library"""
STEPS, STEP = 40, 0.05


def accelerations(angle: ca.SX, rate: ca.SX, force: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Of the cart and of the angle from hanging down; a point mass on a massless rod."""
    sine, cosine = ca.sin(angle), ca.cos(angle)
    cart = (force + POLE * sine * (LENGTH * rate**2 + GRAVITY * cosine)) / (CART + POLE * sine**2)
    return cart, -(cart * cosine + GRAVITY * sine) / LENGTH


def controller() -> tuple[do_mpc.model.Model, do_mpc.controller.MPC]:
    model = do_mpc.model.Model("continuous")
    x, angle, v, rate = (model.set_variable("_x", name) for name in ("x", "angle", "v", "rate"))
    force = model.set_variable("_u", "force")
    target = model.set_variable("_p", "target")
    cart, turn = accelerations(angle, rate, force)
    for name, value in (("x", v), ("angle", rate), ("v", cart), ("rate", turn)):
        model.set_rhs(name, value)
    model.setup()
    mpc = do_mpc.controller.MPC(model)
    quiet = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": 0, "ipopt.tol": 1e-6}
    mpc.set_param(n_horizon=STEPS, t_step=STEP, n_robust=0, store_full_solution=False, nlpsol_opts=quiet)
    cost = 10 * (x - target) ** 2 + 10 * angle**2
    mpc.set_objective(lterm=cost + 0.5e-2 * force**2, mterm=0 * angle)
    mpc.bounds["lower", "_u", "force"], mpc.bounds["upper", "_u", "force"] = -20.0, 20.0
    values = mpc.get_p_template(1)
    values["_p", 0] = 0.0
    mpc.set_p_fun(lambda t: values)
    mpc.setup()
    return model, mpc


def main(count: int) -> dict[str, float]:
    _, mpc = controller()
    s, force = ca.SX.sym("s", 4), ca.SX.sym("force")
    cart, turn = accelerations(s[1], s[3], force)
    ode = {"x": s, "p": force, "ode": ca.vertcat(s[2], s[3], cart, turn)}
    move = ca.integrator("move", "cvodes", ode, 0, STEP)
    state, rng = np.array([0.0, 0.1, 0.0, 0.0]), np.random.default_rng(0)
    mpc.x0 = state
    mpc.set_initial_guess()
    u = mpc.make_step(state)
    seconds, solved = [], 0
    for _ in range(count):
        state = move(x0=state, p=u)["xf"].full()[:, 0]
        state += np.concatenate([rng.normal(0, 0.02, 2), rng.normal(0, 0.05, 2)])
        began = time.process_time()
        u = mpc.make_step(state)
        seconds.append(time.process_time() - began)
        solved += bool(mpc.solver_stats["success"])
    return {"median": float(np.median(seconds)), "solved": solved}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))

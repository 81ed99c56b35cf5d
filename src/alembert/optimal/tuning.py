"""The constants of `solver="sweep"`, in one place, each with its reason.

Those of the filter, of shifts and of scales are from Waechter and Biegler (Math. Program. 106, 2006) and the defaults of
their program IPOPT, where not said otherwise; the others are of the method at hand.
"""

import numpy as np

# --- when to stop -----------------------------------------------------------------------------------------------------

ACCEPTABLE = 10.0
"""times the tolerance, an error that still counts as a solution where rounding allows no better one"""
HOPELESS = 1e4
"""times the tolerance, the error below which `PATIENCE` iterations without progress end a solve; above, they may be a
detour"""
PATIENCE = 15
"""iterations in a row that do not make the error smaller; as many as IPOPT waits at its acceptable level"""
KEPT = 1e-6
"""residual below which an iterate counts as feasible, when the best one is looked for"""
EXACTLY = 1e-12
"""the largest residual after which, with momenta or with equations along the path, no further step is made: they are to be
kept to rounding errors"""

# --- the filter (Waechter and Biegler) --------------------------------------------------------------------------------

G_THETA, G_PHI, ETA = 1e-5, 1e-8, 1e-8
"""gamma_theta and gamma_phi of (3), eta of (4) in `alembert.optimal.search_graphs`"""
S_THETA, S_PHI = 1.1, 2.3
"""the exponents of theta and of the slope in the switch between (3) and (4)"""
DURATION = 0.5
"""share of a free duration by which a step may change it: nothing else is as linear as it is in the cost, and as far from it
in the motion"""
FILTER = 32
"""pairs that it remembers, of which the oldest gives way: of the random starts of 15 kinds of problems, all but those of the
singular arc (70) have fewer (run of 2026-11-19)"""
SHORTEST = 0.05
"""safety factor of the least length of a step"""
GROWTH, FREE_GROWTH = 100.0, 1e3
"""factors of theta_0, and of the filter's `smallest`, up to which a step may make the constraints worse: a filter
alone lets them explode for a little less cost, and then may not find back"""
LARGEST_RISE = 5.0
"""orders of magnitude by which the objective may rise in a step"""
ROUNDING = 10 * float(np.finfo(float).eps)
"""of an objective, relative to its size: the functions of a stage are sums of some tens of terms"""
CORRECTED, DESCENT = 0.9, 0.1
"""the factor by which a corrected step must reduce the infeasibility, or the share of the slope's promise by which it must
reduce the objective. Without the latter random starts of the swing-up take 69 iterations instead of 49 (median of 19, run
of 2026-11-18)"""
CORRECTIONS = 4
"""second-order corrections of a step"""
PROGRESS = 0.99
"""the factor by which each correction must reduce the infeasibility"""

# --- shifts of the Hessian --------------------------------------------------------------------------------------------

FIRST_SHIFT, LEAST_SHIFT, LARGEST_SHIFT = 1e-4, 1e-20, 1e20
"""the first one that is tried where the sweep finds no minimum, the least, and the one at which a step is given up"""
LARGEST_RHO = 1e6
"""the weight of conditions at the end that is tried before a shift: beyond, rounding hides the cost"""
SHORT, SHORTER = 0.3, 0.01
"""shares of a step below which the quadratic model did not hold, and the next shifts are raised, as a trust region would be
narrowed. Without the first, random starts of the swing-up take 69 iterations, not 54 (mean of 19, run of 2026-11-18)"""
NEARLY_KEPT = 0.1
"""the largest residual, in units, up to which the first of them counts. Without it one of twenty random starts of an acrobot
is lost; with 0.03 to 0.3 iterations are much the same"""
LEAST_FLOOR, SHORT_FLOOR, LARGEST_FLOOR = 1e-4, 0.1, 1e2
"""the least shift that is so raised, and the largest by each of both, in units of the scaled cost: steps with large ones are
safe and many. With 1e2 for both, a hanging chain did not end in 500 iterations on one of 16 meshes"""
RAISED, LOWERED = 4.0, 4.0
"""the factors by which it is raised, and lowered after a full step"""
HARDLY, MOST_HARDLY, EARLY = 0.05, 3, 10
"""share of a step below which it hardly leads on, and how many such steps in a row, up to which iteration, show that trials
should not settle z. With these, 16 problems of DMOC from their default guesses (acrobots by up to 1 rad, and others) take
441 iterations in all instead of 1476; the random starts of six kinds of problems take 4 % fewer (runs of 2026-11-18)"""

# --- restoration of feasibility ---------------------------------------------------------------------------------------

RESTORED = 0.9
"""factor by which a restoration reduces the infeasibility before the filter is asked again"""
RESTORING = 1e3
"""weight of the conditions at the end against the barrier in a restoration; IPOPT's weight of residuals"""
LONGEST_RESTORATION = 200
"""its most steps"""
SHORTEST_RESTORING = 1e-8
"""the shortest step of a restoration: where not even that reduces the infeasibility, its slope vanishes"""
CHOKED, MOST_CHOKED = 1e-2, 10
"""the length below which a step of a restoration leads nowhere, and how many of them in a row end it"""
LONGEST_DETOUR = 20
"""steps of a restoration in a row that leave the least infeasibility so far as it is, after which it ends"""
LEAST_DAMPING, LARGEST_DAMPING = 1e-8, 1e8
"""of steps of a restoration: the weight of their squared length"""
SAME = 1e-6
"""relative difference of the infeasibilities at which two restorations in a row end, below which no third one is made"""
MOST_RETURNS = 4
"""how often the method goes back to a more feasible iterate"""
RETURNED = 3.0
"""the shift with which it then begins, to the power of how often it went back: each time shorter steps"""
SAFE = 10.0
"""the infeasibility, in the filter's `smallest`, below which the latest iterate counts as one to go back to"""

# --- scales, multipliers and refinement -------------------------------------------------------------------------------

COST = 10.0
"""the size of the cost in the sense of `scaling.cost_size`, to which it is scaled: a hundred times the first barrier, so
that bounds do not outweigh it in the first steps. With 1 and with 100 all examples but the satellite with two wheels take
iterations that differ by less than half, those of the pitcher, which has several optima, by twice (run of 2026-11-17)"""
LARGEST_ESTIMATE = 1e3
"""multipliers of least squares that are larger are not trusted, and zero is taken, as in IPOPT"""
LOST = 1e7
"""the slope of the Lagrangian beyond which multipliers are of no use, and are estimated anew: those of the scaled cost are
of the order of one, or some thousands where the guess says nothing of the cost. With 1e6 one of twenty random starts of the
acrobot is lost, with 1e8 the satellite with two wheels takes three times the iterations (run of 2026-11-18)"""
LEAST_COST = 1e-3
"""of the scaled cost: where the least cost is 0, or nearly, products of multipliers and distances need not be smaller yet"""
ROUNDED = 1e-3
"""share of the errors of an iterate that rounding in the weights of bounds may leave: beyond, a step is refined once"""
ROUNDS, ENOUGH = 4, 1e-3
"""corrections of the multipliers of equations in a step, and the share of what they began with, or of the residuals of the
iterate, at which they end"""
SETTLED = 1e-3
"""share of the largest gap between stages, below which the residuals of (1) of the stages need no correction"""
WARM = 1e-4
"""the barrier in terms of the squared error of a warm start: a solution starts below its tolerance"""
FARTHEST_WARM = 10.0
"""the slope of the Lagrangian beyond which a warm start is none"""

# --- acceleration of Gauss-Newton steps (Anderson) --------------------------------------------------------------------

DEPTH = 4
"""steps that are remembered: older ones were taken where other linearised equations held"""
LEAST = 1e-14
"""squared sine of the angle to what later steps have taught, below which an earlier one is left out"""

# --- barrier ----------------------------------------------------------------------------------------------------------

BARRIER = 0.1
"""mu at the beginning"""
HELD = 1 / float(np.sqrt(np.finfo(float).eps))
"""of (3) of `alembert.optimal.barrier`: a step leaves 1/HELD of the change of the multipliers in the equations, and rounding
leaves HELD times its own size in the slopes, here as much of one as of the other. With 1e10 rounding decided whether the
sweep found a minimum, and a path equation with 'radau' took up to 422 iterations instead of 22 (run of 2026-11-18)"""
NARROW = 1e6
"""times the squared width between two bounds, the largest barrier there: wider than a sharp one would be the room"""
NEAR = 100.0
"""factor by which multipliers to begin with may differ from those of (1)"""
PUSH = 1e-2
"""of a bound's size, or of the width between two: how far inside slacks start (Waechter and Biegler 2006, 3.6)"""
FARTHEST = 1e10
"""factor by which multipliers of bounds may differ from mu / distance (Waechter and Biegler 2006, (16))"""

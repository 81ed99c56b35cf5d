"""The null space and multipliers."""

import numpy as np

from alembert import library
from alembert.optimal import Problem, lagrange_form
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Leyendecker, Ober-Blöbaum, Marsden, Ortiz, Discrete mechanics and optimal control for constrained systems "
    "(2009/2010), Figure 8 left, Remarks 7.1 and 7.3",
    kind="published",
    tags=("optimal", "tree"),
    missing="4555 equations are printed for the satellite, where the counting that gives the pitcher's 2422 gives 4455",
)
def dmocc_forms() -> Items:
    """DMOCC with multipliers has the printed size and the solution of the null space method, which converges to DMOC's."""
    for name, steps, count in (("satellite", 50, (6798, 4455)), ("pitcher", 35, (3641, 2422))):
        model = getattr(library, name)()
        rest = {"q": model.neutral(), "v": 0}
        form = lagrange_form(
            Problem(model, 5.0, start=rest, end=rest, limits=None), steps, forces="redundant"
        )
        yield Check(f"{name}: variables", form.variables, count[0], 0, "counted on the built problem")
        yield Check(f"{name}: equations", form.equations, count[1], 0, "counted on the built problem")
    model = library.two_link()
    problem = Problem(model, 1.0, start={"q": [0, 0], "v": 0}, end={"q": [0.4, 0.3], "v": 0}, limits=None)
    small = problem.solve(10, transcription="dmocc", solver="ipopt")
    form = lagrange_form(problem, 10)
    large = form.solve()
    apart = np.abs(large.x - form.place(small.q)).max()
    yield Check("multipliers and null space [m]", apart, 0.0, 1e-8, "both solved to 1e-8")
    grids, found = np.array([10, 20, 40]), []
    for N in grids:
        one, two = (problem.solve(int(N), transcription=t, solver="ipopt") for t in ("dmoc", "dmocc"))
        found.append(np.abs(one.q - two.q).max())
    order = -np.polyfit(np.log(grids), np.log(found), 1)[0]
    yield Check("order of DMOCC to DMOC", order, 2.0, 0.2, "three grids")
    yield Plot("N", "|q - q| [rad]", (Line("", grids.astype(float), np.array(found)),), log_y=True)

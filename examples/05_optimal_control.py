"""Optimal control: published problems, each solved by the sweep in time, on one page.

Run `python examples/05_optimal_control.py [OUTPUT_FOLDER] [NAME ...]`. It takes some seconds (minutes when
kernels are compiled for the first time), prints a table, and leaves `demo-output/optimal.html` with the motions, to open
in a browser. Names choose among the problems, which are written down in `alembert/optimal/examples.py`.
"""

import sys
from pathlib import Path
from time import perf_counter

from alembert.optimal.examples import EXAMPLES
from alembert.view import write_page

OUTPUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output")


USUAL = (
    "swing up",
    "acrobot",
    "branched acrobot",
    "obstacle",
    "satellite",
    "brachistochrone",
    "bryson denham",
)


def main():
    names = sys.argv[2:] or USUAL
    OUTPUT.mkdir(parents=True, exist_ok=True)
    motions = []
    print("| problem | cost | duration [s] | steps | iterations | seconds |")
    print("|---|---|---|---|---|---|")
    for name in names:
        begin = perf_counter()
        solution = EXAMPLES[name]().solve()
        assert solution.success, solution.diagnosis()
        print(
            f"| {name} | {solution.cost:.8g} | {solution.duration:.6g} | {solution.steps} | "
            f"{solution.iterations} | {perf_counter() - begin:.1f} |",
            flush=True,
        )
        if solution.model is not None:
            motions.append(solution.motion((EXAMPLES[name].__doc__ or "").split(":")[0]))
    if motions:
        print(f"The page is {write_page(OUTPUT / 'optimal.html', motions, title='Optimal control')}.")


if __name__ == "__main__":
    main()

"""The table on the terminal and the page in the documentation, both from the stored results."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.rows import BATCH, Results, Row


def quantity(value: float, unit: str) -> str:
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit != "s":
        return f"{value:.3f}"
    for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value / 1e-6:.3f} us"


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    return f"<= {quantity(row.goal, row.unit)}" if row.measure == "ours" else f">= {row.goal:g}x"


def _reached(row: Row) -> str:
    return {None: "", True: "reached", False: "not reached"}[row.reached]


def _cells(row: Row) -> list[str]:
    theirs = "" if row.theirs is None else quantity(row.theirs, row.unit)
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    return [
        row.label,
        row.model,
        quantity(row.ours, row.unit),
        row.peer,
        theirs,
        ratio,
        _goal(row),
        _reached(row),
    ]


_HEADER = ["what", "model", "Alembert", "against", "takes", "ratio", "goal", ""]


def show(results: Results, console: Console) -> None:
    table = Table(*_HEADER, title=f"Benchmarks, {results.date}")
    for row in results.rows:
        style = {None: "", True: "green", False: "red"}[row.reached]
        table.add_row(*_cells(row), style=style)
    console.print(table)
    console.print(_machine_line(results))
    for note in _absent(results):
        console.print(note)


def _machine_line(results: Results) -> str:
    m, v = results.machine, results.versions
    return (
        f"Measured on {results.date}: {m['cpu']}, {m['cores']} cores, {m['lanes']} doubles per vector, "
        f"{m['system']}; Python {m['python']}, Alembert {v['alembert']}, Pinocchio {v['pin']}, "
        f"MuJoCo {v['mujoco']}, "
        f"CasADi {v['casadi']}, llvmlite {v['llvmlite']}"
        + (" (quick run: figures are rough)" if results.quick else "")
        + "."
        + _load(results)
    )


def _absent(results: Results) -> list[str]:
    return [
        results.notes[key]
        for key in (
            "without",
            "without_threads",
            "without_generated",
            "without_crocoddyl",
            "optimal_straight",
            "optimal_starts",
            "optimal_reach",
        )
        if key in results.notes
    ]


def _load(results: Results) -> str:
    """The run itself keeps one processor busy, two of them for a moment."""
    load, cores = results.notes["load"], results.machine["cores"]
    if load <= 1.5:
        return ""
    return (
        f" Other work was running (load average up to {load:.1f} on {cores} cores): times of threads and first "
        "calls, which cannot be taken between interruptions, are too long."
    )


def _markdown(rows: list[Row], header: list[str] = _HEADER) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(_cells(row)) + " |" for row in rows]


def page(results: Results) -> str:
    """docs/benchmarks.md"""
    with_goal = [row for row in results.rows if row.goal is not None]
    others = [row for row in results.rows if row.goal is None and row.key not in ("peak", "chain")]
    chains = [row for row in results.rows if row.key in ("chain", "exponent")]
    reached = sum(bool(row.reached) for row in with_goal)
    cpp = results.baseline == "Pinocchio C++"
    lines = [
        "# Benchmarks",
        "",
        "This page is written by `make bench` (`python -m benchmarks`) from the figures that it stores under",
        "`benchmarks/results`. " + _machine_line(results),
        "",
        "Each figure of another program was measured in the same run, in turn with ours; one core unless",
        "said, the least of several repeats. A ratio is their time over ours. The models are the same in",
        "all programs: `panda7` is a 7-dof arm, `talos` a humanoid with a free base (38 degrees of",
        "freedom), chains have revolute joints about two axes in turn. Friction is left out, because",
        "Pinocchio's algorithms do not have it. The run stops if Pinocchio's accelerations and ours differ.",
        "First calls are timed in fresh processes that import nothing but Alembert and NumPy, the start of the",
        "engine included; where another model was called before, the row says so. Steps are those of the",
        "compiled loop; MuJoCo's loop is its",
        "`rollout`, without contacts and limits, Exudyn's its explicit solver on a kinematic tree. Ensembles are",
        "whole runs, drawing included; Dask's two workers are up before. The run stops if the motions of the",
        "programs differ.",
        "",
    ]
    if cpp:
        lines += [
            '"Pinocchio C++" is its `aba` (the faster of its two conventions) or `rnea` in a C++ loop,',
            f"compiled here from the headers with `{results.notes['flags']}`; the unused third-order",
            "tensors of its `Data` were left empty, since they would take 32 GB at n = 1000. Our kernel time is that of the",
            "kernel's own loop over states in machine code, copies of inputs and results included. Pinocchio's",
            "generated C is `aba`, `rnea` and their derivatives on CasADi's scalars, written as C for the one robot",
            "and compiled with gcc; functions of more than a megabyte of C are left out.",
        ]
    else:
        lines += [
            "There was no C++ compiler: Pinocchio was called from Python, which costs it about 1 us per call."
        ]
    if any(row.key.startswith("optimal/") for row in results.rows):
        lines += [
            "",
            "Optimal control: the swing-up is of an acrobot of two rods (1 kg, 1 m) in 4 s; IPOPT and FATROP get it by",
            "multiple shooting with hand-written equations of motion, `expand`, and are timed without building. The reach",
            "is the library's `arm7` without friction, with a weight on the final distance, since FDDP has no end",
            "conditions. Kernels are compiled before. The swing-up has many local optima: costs are compared below.",
        ]
    lines += [
        "",
        "## Goals",
        "",
        f"{reached} of {len(with_goal)} reached.",
        "",
        *_markdown(with_goal),
        "",
        *_absent(results),
        "",
        "## Other figures",
        "",
        *_markdown(others),
        "",
        "## Chains",
        "",
        *_markdown(chains),
    ]
    if results.notes.get("left_out"):
        lengths = ", ".join(map(str, results.notes["left_out"]))
        lines += [
            "",
            f"Chains of {lengths} were left out: compiling a shorter one took more than the patience for it.",
        ]
    lines += ["", "## Distance from the machine's peak", "", *_peak(results), ""]
    return "\n".join(lines)


def _peak(results: Results) -> list[str]:
    peak = results.notes["peak_gflops"]
    lines = [
        f"One core did {peak:.1f} Gflop/s of fused multiply-adds in registers (a fused one counts as two, "
        f"{results.notes['peak_width']} lanes).",
        f"The batch kernel of forward dynamics ({BATCH} states) against it, counting additions,",
        "multiplications, divisions and roots as one operation each, sines and cosines as none:",
        "",
        "| model | operations per state | sines and cosines | Gflop/s | share of peak |",
        "|---|---|---|---|---|",
    ]
    for row in results.rows:
        if row.key == "peak":
            count = results.notes["operations"][row.model]
            lines.append(
                f"| {row.model} | {count['arithmetic']} | {count['sin and cos']} | {row.ours * peak:.1f} | "
                f"{100 * row.ours:.0f} % |"
            )
    lines += [
        "",
        "An addition or multiplication that does not fuse with another takes the slot of a fused one and",
        "counts half.",
    ]
    return lines

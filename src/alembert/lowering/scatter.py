"""A function whose results go to some rows of a table that is zero elsewhere, of any size."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from alembert.engine import codegen, program
from alembert.engine.codegen import Code
from alembert.engine.target import Target
from alembert.engine.zeros import zero_function


class ScatterSource:
    """Result k of `function` becomes row `rows[k]` of a table with `count` rows, the kernel's one result."""

    def __init__(self, function: ca.Function, rows: Sequence[int], count: int) -> None:
        self.function, self.rows = function, rows
        self.width = function.numel_out(0)
        self.input_sizes = [function.numel_in(k) for k in range(function.n_in())]
        self.output_sizes = [count * self.width]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        inner, zero = f"{name}_rows", f"{name}_zero"
        places = {k: range(self.width * row, self.width * (row + 1)) for k, row in enumerate(self.rows)}
        code = codegen.emit_function(
            inner, program.from_casadi(self.function, fuse=target.fused), lanes, target, places=places
        )
        inputs = [f"ptr %i{k}" for k in range(len(self.input_sizes))]
        arguments = ", ".join([*inputs, *["ptr %o"] * len(self.rows), "ptr %w"])
        text = f"""\
{zero_function(zero, lanes * self.output_sizes[0])}\
define internal void @{name}({", ".join([*inputs, "ptr %o", "ptr %w"])}) noinline #0 {{
  call void @{zero}(ptr %o)
  call void @{inner}({arguments})
  ret void
}}
"""
        return Code(code.text + text, code.workspace, code.work, code.helpers, code.target)

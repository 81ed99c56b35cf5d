import casadi as ca
import pytest

from alembert.engine import instructions
from alembert.errors import UnsupportedError


def operations(p: instructions.InstructionList) -> list[int]:
    return [op for op, needed in zip(p.op, p.needed(), strict=True) if needed]


def test_repeated_expressions_are_computed_once():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    f = ca.Function("f", [x, y], [ca.sin(x * y) + 1, ca.sin(y * x) + 2])
    assert operations(instructions.read(f)).count(ca.OP_SIN) == 1


def test_a_product_that_only_feeds_a_sum_is_fused():
    x, y, z = (ca.SX.sym(n) for n in "xyz")
    f = ca.Function("f", [x, y, z], [x * y + z, z - x * z, x * x - y])
    assert sorted(op for op in operations(instructions.from_casadi(f)) if op < 0) == sorted(
        [instructions.FMA, instructions.FNMA, instructions.FMS]
    )
    assert not any(op < 0 for op in operations(instructions.from_casadi(f, fuse=False)))


def test_a_product_with_another_use_is_kept():
    x, y, z = (ca.SX.sym(n) for n in "xyz")
    f = ca.Function("f", [x, y, z], [x * y + z, x * y])
    assert not any(op < 0 for op in operations(instructions.from_casadi(f)))


def test_a_choice_is_one_selection():
    x, y, z = (ca.SX.sym(n) for n in "xyz")
    f = ca.Function("f", [x, y, z], [ca.if_else(x < y, z, x * z), ca.if_else(x, 0.0, y)])
    found = operations(instructions.from_casadi(f, fuse=False))
    assert found.count(instructions.SELECT) == 1
    assert found.count(ca.OP_IF_ELSE_ZERO) == 1  # of the one with a zero


def test_common_denominators_are_inverted_once():
    x, d = ca.SX.sym("x", 6), ca.SX.sym("d")
    f = ca.Function("f", [x, d], [x / d])
    assert operations(instructions.from_casadi(f)).count(ca.OP_DIV) == 1
    alone = ca.Function("f", [x, d], [x[0] / d])
    assert operations(instructions.from_casadi(alone)).count(ca.OP_MUL) == 0


def test_zeros_of_both_signs_stay_apart():
    p = instructions.InstructionList(input_sizes=[])
    assert p.constant(0.0) != p.constant(-0.0)


def test_unknown_operation_is_named():
    x = ca.SX.sym("x")
    f = ca.Function("probe", [x], [x.printme(3)])
    with pytest.raises(UnsupportedError, match=r"probe: no machine code for the CasADi operation PRINTME"):
        instructions.read(f)


def test_free_symbols_are_named():
    x, y = ca.SX.sym("x"), ca.SX.sym("gain")
    f = ca.Function("probe", [x], [x * y], {"allow_free": True})
    with pytest.raises(UnsupportedError, match=r"probe: the expressions contain free symbols: gain"):
        instructions.read(f)


def test_matrix_functions_are_expanded_or_refused():
    x = ca.MX.sym("x", 3)
    assert len(instructions.read(ca.Function("f", [x], [ca.dot(x, x)]))) > 3
    A, b = ca.MX.sym("A", 2, 2), ca.MX.sym("b", 2)
    with pytest.raises(UnsupportedError, match=r"probe: machine code needs scalar \(SX\) expressions"):
        instructions.read(ca.Function("probe", [A, b], [ca.solve(A, b)]))
    table = ca.interpolant("table", "linear", [[0.0, 1.0, 2.0]], [0.0, 1.0, 4.0])
    with pytest.raises(UnsupportedError, match=r"operation CALL"):
        instructions.read(ca.Function("probe", [b], [table(b[0])]))


def test_shared_divisions_of_a_few_elements_of_a_long_input():
    """Numbers of elements may be larger than there are instructions."""
    x = ca.SX.sym("x", 90)
    program = instructions.from_casadi(ca.Function("f", [x], [ca.vertcat(x[80] / x[81], x[82] / x[81])]))
    assert program.op.count(ca.OP_DIV) == 1
    read = {(a, b) for op, a, b in zip(program.op, program.a, program.b, strict=True) if op == ca.OP_INPUT}
    assert read == {(0, 80), (0, 81), (0, 82)}

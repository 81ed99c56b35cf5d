"""Machine code as LLVM loads it, and what the user sees of compiling: a line when it takes long."""

import ctypes
import io
import math
import os
import subprocess
import sys
import textwrap
import time
from contextlib import redirect_stderr

import pytest

from alembert.engine import loader
from alembert.engine.target import host


class Terminal(io.StringIO):
    def isatty(self):
        return True


def wait_for(stream, text, patience=60.0):
    until = time.monotonic() + patience
    while text not in stream.getvalue() and time.monotonic() < until:
        time.sleep(0.005)
    assert text in stream.getvalue()


def test_a_long_compile_says_so_and_wipes_the_line():
    with redirect_stderr(Terminal()) as terminal, loader.patience("forward_dynamics", delay=0.01):
        wait_for(terminal, "alembert: compiling forward_dynamics, once ...")
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_the_line_goes_when_compiling_fails():
    with redirect_stderr(Terminal()) as terminal, pytest.raises(KeyError), loader.patience("f", delay=0.01):
        wait_for(terminal, "compiling f")
        raise KeyError
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_short_compile_says_nothing():
    with redirect_stderr(Terminal()) as terminal, loader.patience("f", delay=60.0):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stream", [None, io.StringIO()], ids=["none", "file"])
def test_only_terminals_are_told(stream):
    with redirect_stderr(stream), loader.patience("f", delay=0.0):
        time.sleep(0.05)
    assert stream is None or stream.getvalue() == ""


def test_a_line_for_files_where_progress_is_asked_for():
    with redirect_stderr(io.StringIO()) as stream, loader.spoken(), loader.patience("f", delay=0.01):
        wait_for(stream, "alembert: compiling f, once ...\n")
    assert "\r" not in stream.getvalue()


def library(text, *names):
    return loader.Library(loader.compile_ir(text, host()), names)


def called(code, *arguments):
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(arguments))
    return kind(code.addresses["f"])(*arguments)


MODULES = {
    "constants": "define double @f(double %x) {\n  %y = fmul double %x, 1.25\n  ret double %y\n}\n",
    "a call": """
        define internal double @g(double %x) noinline {
          %y = fadd double %x, 0.125
          ret double %y
        }
        define double @f(double %x) {
          %y = call double @g(double %x)
          ret double %y
        }
    """,
    "a call of the C library": """
        declare double @alembert_c_atan2(double, double)
        define double @f(double %x) {
          %y = call double @alembert_c_atan2(double %x, double 3.0)
          ret double %y
        }
    """,
    "memory": """
        declare ptr @malloc(i64)
        declare void @free(ptr)
        declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
        define double @f(double %x) {
          %p = call ptr @malloc(i64 80000)
          call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 80000, i1 false)
          %last = getelementptr double, ptr %p, i64 9999
          %zero = load double, ptr %last
          %y = fsub double %zero, %x
          call void @free(ptr %p)
          ret double %y
        }
    """,
    "variables": """
        @start = global double 4.0
        @sum = global double 0.0
        @big = internal global [10000 x double] zeroinitializer, align 64
        define double @f(double %x) {
          %a = load double, ptr @start
          %b = load double, ptr @sum
          %last = getelementptr double, ptr @big, i64 9999
          store double %x, ptr %last
          %c = load double, ptr %last
          %s = fadd double %a, %b
          %y = fadd double %s, %c
          store double %y, ptr @sum
          %z = load double, ptr @sum
          ret double %z
        }
    """,
    "a switch": """
        define double @f(double %x) {
          %k = fptosi double %x to i64
          switch i64 %k, label %other [
            i64 0, label %a
            i64 1, label %b
            i64 2, label %c
            i64 3, label %d
            i64 4, label %e
          ]
        a: ret double 1.5
        b: ret double 0.5
        c: ret double 7.5
        d: ret double 3.25
        e: ret double 2.25
        other: ret double -1.0
        }
    """,
}


EXPECTED = {
    "constants": lambda x: 1.25 * x,
    "a call": lambda x: x + 0.125,
    "a call of the C library": lambda x: math.atan2(x, 3.0),
    "memory": lambda x: -x,
    "variables": lambda x: 4.0 + x,
    "a switch": lambda x: [1.5, 0.5, 7.5, 3.25, 2.25][int(x)] if 0 <= x < 5 else -1.0,
}


@pytest.mark.parametrize("what", MODULES)
def test_what_it_calls_and_refers_to_is_found(what):
    for x in (2.0, 2.7, -1.5):
        assert called(library(MODULES[what], "f"), x) == EXPECTED[what](x)


def test_addresses_in_data_are_found():
    text = """
        @a = internal constant double 1.5
        @b = internal constant double 2.5
        @table = global [2 x ptr] [ptr @a, ptr @b]
        define double @f(double %x) {
          %k = fptosi double %x to i64
          %e = getelementptr ptr, ptr @table, i64 %k
          %p = load ptr, ptr %e
          %y = load double, ptr %p
          ret double %y
        }
    """
    assert called(library(text, "f"), 1.0) == 2.5


def test_a_function_that_is_nowhere():
    text = "declare double @alembert_nowhere()\n" + MODULES["constants"]
    text += "define double @h() {\n  %y = call double @alembert_nowhere()\n  ret double %y\n}\n"
    with pytest.raises(RuntimeError, match="Failed to materialize symbols"):
        library(text, "h")


def test_variables_belong_to_their_library():
    one, other = (library(MODULES["variables"], "f", "sum") for _ in "ab")
    assert [called(one, 1.0) for _ in range(3)] == [5.0, 10.0, 15.0]
    assert called(other, 1.0) == 5.0
    assert ctypes.c_double.from_address(one.addresses["sum"]).value == 15.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_both_written_and_run():
    code = library(MODULES["variables"], "f", "sum")
    allowed = {}
    with open("/proc/self/maps") as file:
        for line in file:
            span, rights, *_ = line.split()
            first, last = (int(x, 16) for x in span.split("-"))
            for name in ("f", "sum"):
                if first <= code.addresses[name] < last:
                    allowed[name] = rights
    assert allowed == {"f": "r-xp", "sum": "rw-p"}


def test_memory_of_libraries_that_are_gone_is_given_back():
    text = (
        MODULES["variables"]
        .replace("[10000 x double]", "[1000000 x double]")
        .replace("i64 9999", "i64 999999")
    )
    code = loader.compile_ir(text, host())
    for _ in range(300):  # 2.4 GB
        assert called(loader.Library(code, ["f"]), 1.0) == 5.0


FORK = """
    import os, sys, threading, time
    import casadi as ca, numpy as np
    from alembert.engine import Argument, FunctionSource, Kernel, loader

    def kernel(name, size):
        x = ca.SX.sym("x", 40)
        def build():
            A = ca.reshape(x[:36], 6, 6) + 10 * ca.SX.eye(6)
            for _ in range(size):
                A = ca.inv(A) + A
            return FunctionSource(ca.Function("f", [x], [ca.vec(A)]))
        return Kernel(name, [Argument("x", (40,))], [Argument("y", (36,))], key=name, build=build)

    slow, quick = kernel("slow", 6), kernel("quick", 0)
    x, begun = np.linspace(0, 1, 40), threading.Event()
    build = slow._build
    slow._build = lambda: begun.set() or build()
    thread = threading.Thread(target=slow, args=(x,))
    thread.start()
    begun.wait()
    time.sleep(float(sys.argv[1]))
    child = os.fork()
    if child == 0:
        same = np.array_equal(slow(x), kernel("slow", 6)(x)) and quick(x).shape == (36,)
        os._exit(0 if same else 1)
    print(os.waitpid(child, 0)[1])
    thread.join()
    print(np.isfinite(slow(x)).all())
"""


FORK_OF_A_MODEL = """
    import os, sys, threading, time
    import numpy as np
    from alembert import library
    from alembert.engine import loader

    model = library.humanoid()
    zero = np.zeros(model.nv)
    compute = lambda: model.forward_dynamics(model.neutral(), zero, zero)
    model.compute.tree
    thread = threading.Thread(target=compute)
    thread.start()
    while not loader.COMPILING._inside:
        time.sleep(0.001)
    time.sleep(float(sys.argv[1]))
    child = os.fork()
    if child == 0:
        os._exit(0 if np.isfinite(compute()).all() and model.mass_matrix(model.neutral()).any() else 1)
    print(os.waitpid(child, 0)[1])
    thread.join()
    print(np.isfinite(compute()).all())
"""


FORK_AT_FIRST = """
    import os, sys, threading, time
    from alembert import forking, library

    model = library.two_link()
    thread = threading.Thread(target=lambda: model.compute.tree)
    thread.start()
    time.sleep(float(sys.argv[1]))  # while it imports what computes
    child = os.fork()
    if child == 0:
        os._exit(0 if len(model.compute.tree) == 2 else 1)
    print(os.waitpid(child, 0)[1])
    thread.join()
    print(len(model.compute.tree) == 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize(
    ("program", "delay"),
    [(FORK, "0"), (FORK, "0.4"), (FORK_OF_A_MODEL, "0"), (FORK_OF_A_MODEL, "0.1"), (FORK_AT_FIRST, "0.02")],
)
def test_a_process_forked_while_a_thread_compiles(delay, program):
    """The copy compiles the same kernel, and others: it waits for nobody who is gone."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), delay],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert found.stdout.split() == ["0", "True"]

"""Machine code placed by ourselves: the same as what LLVM loads."""

import ctypes
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest

import alembert as al
from alembert.engine import host as hosts
from alembert.engine import image, link, loader, symbols

pytestmark = pytest.mark.skipif(
    not hosts.host().triple.startswith("x86_64") or sys.platform != "linux",
    reason="images are made of ELF objects for x86-64",
)


def objects(text):
    """The module as LLVM's object and as our image (None where there is none)."""
    target = hosts.host()
    with pytest.MonkeyPatch.context() as patch:
        leave_to_llvm(patch)
        plain = loader.compile_ir(text, target)
    return plain, link.linked(plain)


def leave_to_llvm(patch):
    patch.setattr(loader, "link", SimpleNamespace(linked=lambda code: None))


def called(code, *arguments):
    library = loader.Library(code, hosts.host())
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(arguments))
    return kind(library.function("f"))(*arguments)


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


@pytest.mark.parametrize("what", MODULES)
def test_an_image_does_what_the_object_does(what):
    plain, placed = objects(MODULES[what])
    assert image.is_image(placed)
    for x in (2.0, 2.7, -1.0):
        assert called(placed, x) == called(plain, x)
    for name in ("malloc", "alembert_c_atan2"):
        assert symbols.address(name) != 0


def test_what_it_cannot_place_is_left_to_llvm():
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
    plain, placed = objects(text)
    assert placed is None
    assert loader.compile_ir(text, hosts.host()) == plain
    assert called(plain, 1.0) == 2.5


def test_a_function_that_is_nowhere_is_left_to_llvm():
    text = "declare double @alembert_nowhere()\n" + MODULES["constants"] + "; \n"
    text += "define double @h() {\n  %y = call double @alembert_nowhere()\n  ret double %y\n}\n"
    assert objects(text)[1] is None


@pytest.mark.parametrize("code", [b"", b"MZ", b"\x7fELF\x01\x01" + bytes(60), b"\x7fELF\x02\x01" + bytes(60)])
def test_other_formats_are_left_to_llvm(code):
    assert link.linked(code) is None


def test_variables_belong_to_their_image():
    """Twice the same code, and a process forked from this one, do not share what they write."""
    _, placed = objects(MODULES["variables"])
    one, other = (loader.Library(placed, hosts.host()) for _ in "ab")
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    assert [f(one.function("f"))(1.0) for _ in range(3)] == [5.0, 10.0, 15.0]
    assert f(other.function("f"))(1.0) == 5.0
    assert ctypes.c_double.from_address(one.variable("sum")).value == 15.0


def test_nothing_is_both_written_and_run():
    _, placed = objects(MODULES["variables"])
    library = loader.Library(placed, hosts.host())
    allowed = {}
    with open("/proc/self/maps") as file:
        for line in file:
            span, rights, *_ = line.split()
            first, last = (int(x, 16) for x in span.split("-"))
            for name in ("f", "sum"):
                if first <= library.function(name) < last:
                    allowed[name] = rights
    assert allowed == {"f": "r-xp", "sum": "rw-p"}


@pytest.mark.parametrize("lowering", ["specialised", "rolled"])
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics_derivatives", "mass_matrix"])
def test_kernels_are_images_with_the_same_bits(name, lowering, monkeypatch):
    monkeypatch.setenv("ALEMBERT_CACHE", "off")
    model = al.library.random_tree(4, bodies=6, attachments=True)
    compiled, objects, made = loader.compile_ir, {}, []

    def both(text, target, **options):
        with pytest.MonkeyPatch.context() as patch:
            leave_to_llvm(patch)
            objects[text] = compiled(text, target, **options)
        made.append(link.linked(objects[text]))
        return made[-1]

    monkeypatch.setattr(loader, "compile_ir", both)
    kernel = model.compile(name, lowering=lowering)
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(20)])
    rest = [rng.standard_normal((20, a.shape[0])) for a in kernel.arguments[1:]]
    found = [kernel(q, *rest), kernel(q[0], *(x[0] for x in rest))]
    assert len(made) >= 2  # and what kernels share, if they are the first here
    assert all(image.is_image(code) for code in made)

    monkeypatch.setattr(loader, "compile_ir", lambda text, target, **options: objects[text])
    again = al.library.random_tree(4, bodies=6, attachments=True).compile(name, lowering=lowering)
    for x, y in zip(found, [again(q, *rest), again(q[0], *(x[0] for x in rest))], strict=True):
        for a, b in zip(*((z if isinstance(z, tuple) else (z,)) for z in (x, y)), strict=True):
            assert np.array_equal(a, b)


def test_llvm_is_not_imported_for_a_cached_kernel(cache_directory):
    code = """
        import sys
        import numpy as np
        from alembert import library
        model = library.chain(3)
        print(model.forward_dynamics(np.array([0.1, 0.2, 0.3]), np.zeros(3), np.zeros(3)).tolist())
        print("llvmlite.binding" in sys.modules)
        print("numpy.ma" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines() for _ in "ab"
    )
    assert (first[1], second[1]) == ("True", "False")
    assert second[2] == "False"  # as slow to import
    assert first[0] == second[0]


def test_a_system_that_does_not_run_new_code_says_so():
    with pytest.raises(OSError, match="does not let machine code be run that was made at run time"):
        image._protect(1, image.PAGE, 0)  # no page starts there

import gc
import os

import pytest

# Before NumPy is imported, here and in the workers: tests run side by side, and a BLAS that splits the small matrices
# they have over all cores in every worker takes five times as long (OpenBLAS, two workers on two cores).
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_configure(config):
    """Not in pyproject.toml: the filter imports the package, and NumPy with it, before this file is read."""
    config.addinivalue_line("filterwarnings", "error::alembert.errors.AlembertWarning")
    gc.disable()  # until all tests are collected: what they are made of stays, and there is much of it


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def chromium():
    """One headless browser for all tests."""
    from alembert.view import film

    if film.find() is None:
        pytest.skip("pages are looked at in Chromium or Chrome, and none of them is installed")
    with film.Browser(width=720, height=480, timeout=120) as running:
        yield running


@pytest.fixture(scope="session")
def masses():
    """Two masses on a line with a spring between them: exactly linear, the force on the first, q the relative place."""
    import alembert as al

    builder = al.ModelBuilder("masses", gravity=(0, 0, 0))
    builder.parameter("mass", 2.0)
    builder.body("first", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="a")
    builder.body(
        "second",
        al.Inertia.point(al.Expression("mass")),
        joint=al.Prismatic((1, 0, 0)),
        joint_name="b",
        parent="first",
        spring=al.Spring((3.0,)),
        friction=al.Friction(viscous=(0.05,)),
    )
    builder.frame("end", "second")
    builder.sensor("place", "joint_position", "a")
    builder.sensor("stretch", "joint_position", "b")
    return builder.build()

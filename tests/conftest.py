import os

# Before NumPy is imported, here and in the workers: tests run side by side, and a BLAS that splits the small matrices
# they have over all cores in every worker takes five times as long (OpenBLAS, two workers on two cores).
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_configure(config):
    """Not in pyproject.toml: the filter imports the package, and NumPy with it, before this file is read."""
    config.addinivalue_line("filterwarnings", "error::alembert.errors.AlembertWarning")

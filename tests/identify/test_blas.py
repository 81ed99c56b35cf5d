"""One thread of BLAS for small matrices: within the block, nested, and as before behind it."""

import numpy as np
import pytest

from alembert.identify import identification


def counts():
    return [get() for get, _ in identification._libraries()]


@pytest.fixture
def two_threads():
    before = counts()
    for _, put in identification._libraries():
        put(2)
    yield
    for (_, put), count in zip(identification._libraries(), before, strict=True):
        put(count)


def test_the_libraries_of_the_wheels_are_found():
    """NumPy's wheels on Linux bring OpenBLAS; builds with another BLAS are left alone."""
    name = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    if name != "scipy-openblas":
        pytest.skip(f"NumPy was built with {name}")
    assert counts()


def test_one_thread_and_back(two_threads):
    several = counts()
    with identification.one_thread():
        assert set(counts()) <= {1}
        with identification.one_thread():
            assert set(counts()) <= {1}
        assert set(counts()) <= {1}
    assert counts() == several


def test_back_after_an_error(two_threads):
    several = counts()

    @identification.one_thread()
    def fails():
        raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert counts() == several

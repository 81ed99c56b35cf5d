import gc

import pytest

from alembert.collector import no_collecting


def test_the_collector_is_as_it_was():
    assert gc.isenabled()
    with no_collecting(), no_collecting():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), no_collecting():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with no_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

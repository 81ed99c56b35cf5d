"""What a call is refused with."""

from functools import partial

import pytest

from alembert.errors import ArgumentError, ModelError


def refusal(function, *arguments, error=ArgumentError, **options):
    """The sentence of the error."""
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    return str(caught.value)


model_refusal = partial(refusal, error=ModelError)

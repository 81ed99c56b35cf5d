"""Example models, each a function of its data: `library.acrobot()`, or by name `library.make("acrobot")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alembert.arguments import check_known
from alembert.arguments import tell_wrong_types as _tell_wrong_types
from alembert.library.examples import acrobot as acrobot
from alembert.library.examples import arm7 as arm7
from alembert.library.examples import branched_acrobot as branched_acrobot
from alembert.library.examples import cart_pole as cart_pole
from alembert.library.examples import chain as chain
from alembert.library.examples import humanoid as humanoid
from alembert.library.examples import pendulum as pendulum
from alembert.library.examples import pitcher as pitcher
from alembert.library.examples import satellite as satellite
from alembert.library.examples import truss_arm as truss_arm
from alembert.library.examples import two_link as two_link
from alembert.library.random_tree import example_joint as example_joint
from alembert.library.random_tree import random_tree as random_tree
from alembert.model import Model

_tell_wrong_types(__name__)

_MODELS: dict[str, Callable[..., Model]] = {
    "pendulum": pendulum,
    "two_link": two_link,
    "acrobot": acrobot,
    "branched_acrobot": branched_acrobot,
    "cart_pole": cart_pole,
    "arm7": arm7,
    "humanoid": humanoid,
    "satellite": satellite,
    "pitcher": pitcher,
    "chain": chain,
    "truss_arm": truss_arm,
    "random_tree": random_tree,
}


def __dir__() -> list[str]:
    return sorted([*_MODELS, "example_joint", "make", "names"])


def names() -> tuple[str, ...]:
    """The models that `make` knows."""
    return tuple(_MODELS)


def make(name: str, **options: Any) -> Model:
    """A model by its name, with the options of the function of that name."""
    check_known("library.make: no model", name, _MODELS)
    return _MODELS[name](**options)

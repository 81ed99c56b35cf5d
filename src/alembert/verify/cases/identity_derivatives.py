"""An identity on random trees."""

from alembert import library
from alembert.check import derivatives as check_derivatives
from alembert.joints import REGISTRY
from alembert.verify.case import Check, Items, case


@case(
    source="""Derivatives of inverse, forward and hybrid dynamics (Sohl, Bobrow 2001; Singh, Russell, Wensing
    2022) against automatic differentiation""",
    kind="identity",
    tags=("tree", "sensitivity", "random"),
    parameters={"seed": 4, "samples": 2},
    slow=True,
)
def identity_derivatives(seed: int, samples: int) -> Items:
    """Closed-form derivatives, tangent and adjoint products, on trees that have every joint type between them."""
    kinds = tuple(REGISTRY)
    for part in range(2):
        model = library.random_tree(seed + part, bodies=6, kinds=kinds[part::2], attachments=True)
        found = check_derivatives(
            model,
            ["inverse_dynamics", "forward_dynamics", "hybrid_dynamics"],
            states=samples,
            show=False,
        )
        reason = "relative to the derivative; some hundred operations more than the function, rounding 1e-12"
        yield Check(f"tree {part + 1}: largest relative error", found.largest, 0.0, 1e-9, reason)

"""Static modal derivatives: how shapes change with the deflection, as shapes of their own.

The strain energy of third order of members that are displaced by u is 1/2 u' K_g(u) u, with the geometric stiffness K_g,
linear in u. A structure that is displaced by q_k phi_k + 1/2 q_k q_l theta_kl at rest but for forces on the phi_k has

    K theta_kl = -(K_g(phi_k) phi_l + K_g(phi_l) phi_k + g_kl),      u . g_kl = phi_k' K_g(u) phi_l for all u     (1)

(Idelsohn and Cardona 1985; Wu and Tiso 2016). For bending g alone is not zero, and theta_kl is the foreshortening chi_kl
that `structure_body` takes along in every body; as shapes with coordinates of their own they let a body stretch as it bends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alembert.errors import ModelError
from alembert.flexible.component_modes import ComponentModes, interface
from alembert.flexible.finite_elements import FiniteElements, solver

Array = np.ndarray


def modal_derivatives(fe: FiniteElements, modes: ComponentModes, *, held: Any) -> ComponentModes:
    """The shapes theta_kl, k <= l, of a structure that is held at an interface, where the modes vanish.

    Needs a framework, whose members know their axial forces: `modes + modal_derivatives(fe, modes, held=root)` is a basis
    for bodies that bend far enough to stretch.
    """
    forces = fe.geometric
    gradient = getattr(forces, "gradient", None)
    if forces is None or gradient is None:
        raise ModelError(
            "modal_derivatives: the structure has no members that know their axial forces; build it with framework()"
        )
    root = interface(fe, held)
    V = modes.shapes
    moved = np.abs(V[root.unknowns]).max(initial=0.0)
    if moved > 1e-9 * np.abs(V).max():
        raise ModelError(
            f"modal_derivatives: the modes move what is held, by up to {moved:.3g} of {np.abs(V).max():.3g}; take "
            "modes with the same interface held"
        )
    free, _ = fe.held(root.unknowns)
    stiff = [forces(column) for column in V.T]
    pairs = [(k, l) for k in range(V.shape[1]) for l in range(k, V.shape[1])]
    loads = np.array(
        [-(stiff[k] @ V[:, l] + stiff[l] @ V[:, k] + gradient(V[:, k], V[:, l])) for k, l in pairs]
    )
    found = np.zeros((fe.size, len(pairs)))
    found[free] = solver(fe.K[free][:, free], "modal_derivatives: the structure held")(loads.T[free])
    return ComponentModes(found, tuple(f"{modes.names[k]}_by_{modes.names[l]}" for k, l in pairs))

"""Small structures for the tests of finite elements."""

import numpy as np

import alembert as al

fl = al.flexible
UNIT = fl.CrossSection(1.0, 1e6, 1.0, 1.0, 1.0)
"""a beam of EI = rhoA = 1, all but inextensible"""
TUBE = fl.CrossSection.of(70e9, 2700.0, 1e-4, I_y=1e-8, I_z=3e-9, G=26e9, J=2e-8)


def straight(count, section=UNIT, *, length=1.0, planar=False, fixed=(), **options):
    """A beam along x of `count` elements; planar ones bend along y."""
    fixed = {k: "x z rx ry" for k in range(count + 1)} if planar else fixed
    nodes = {k: (length * k / count, 0, 0) for k in range(count + 1)}
    return fl.framework(nodes, [fl.Member(k, k + 1, section) for k in range(count)], fixed=fixed, **options)


def mast(bays, pitch=1.0, radius=0.3):
    """A triangular truss of bars along x."""
    nodes = {}
    for b in range(bays + 1):
        for k in range(3):
            turn = 2 * np.pi * k / 3
            nodes[f"{b}{'abc'[k]}"] = (pitch * b, radius * np.cos(turn), radius * np.sin(turn))
    bar = fl.CrossSection.of(70e9, 2700.0, 1e-5)
    members = []
    for b in range(bays + 1):
        for i, j in ("ab", "bc", "ca"):
            members.append(fl.Member(f"{b}{i}", f"{b}{j}", bar, kind="bar"))
            if b < bays:
                members += [fl.Member(f"{b}{i}", f"{b + 1}{k}", bar, kind="bar") for k in (i, j)]
    return fl.framework(nodes, members)


def component(count=12):
    """A beam by Craig and Bampton: nodes 0 and 8, and `count` modes between them."""
    fe = straight(8, TUBE)
    ends = np.concatenate([fe.unknowns(0), fe.unknowns(8)])
    inner, _ = fe.held(ends)
    T = np.zeros((fe.size, 12 + count))
    T[ends, np.arange(12)] = 1.0
    K = fe.K.toarray()
    T[np.ix_(inner, range(12))] = -np.linalg.solve(K[np.ix_(inner, inner)], K[np.ix_(inner, ends)])
    T[:, 12:] = fl.normal_modes(fe, count, held=[0, 8]).shapes
    dofs = [(0, k) for k in range(6)] + [(1, k) for k in range(6)] + [(-1, -1)] * count
    return fe, fl.FiniteElements.of_matrices(
        T.T @ fe.M @ T, T.T @ K @ T, fe.positions[[0, 8]], np.array(dofs), names=["0", "8"]
    )

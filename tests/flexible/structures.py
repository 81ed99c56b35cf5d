"""Small structures for the tests of finite elements."""

import numpy as np

import alembert as al

fl = al.flexible
UNIT = fl.CrossSection(1.0, 1e6, 1.0, 1.0, 1.0)
"""a beam of EI = rhoA = 1, all but inextensible"""


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

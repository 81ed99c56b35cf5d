"""An independent account of trees of bodies made of point masses that deform.

The account knows positions only: every point as a function of the configuration. Differentiated twice they give
d'Alembert's equations, sum of m J' (r'' - g) = tau, with no spatial algebra in them.
"""

import casadi as ca
import numpy as np

import alembert as al
from alembert.spatial import Pose, so3


def rigid_points(rng, points=4):
    m, x = rng.uniform(0.1, 1.0, points), rng.normal(size=(points, 3))
    E = np.einsum("p,pi,pj->ij", m, x, x)
    I = np.trace(E) * np.eye(3) - E
    ten = (m.sum(), *(m @ x), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2])
    return al.Inertia.from_ten_vector(ten), (m, x, np.zeros((points, 0, 3)))


class Account:
    """Efforts of a model whose bodies are the given points, by name; without foreshortening."""

    def __init__(self, model, points):
        self.model, self.points = model, points
        nq, nv = model.nq, model.nv
        q, v, a, e = (ca.SX.sym(x, n) for x, n in (("q", nq), ("v", nv), ("a", nv), ("e", nv)))
        space = model.space
        masses, r = self._positions(space.integrate(q, e))
        J = ca.substitute(ca.jacobian(r, e), e, ca.SX.zeros(nv))
        acceleration = J @ a + ca.jtimes(J @ v, q, space.rate(q, v))
        g = np.tile(np.array(model.gravity, dtype=float), len(masses))
        weight = np.repeat(masses, 3)
        tau = J.T @ (ca.DM(weight) * (acceleration - ca.DM(g)))
        for body in model.bodies:
            if body.flexible is not None:
                o = space.of_bodies[body.name]
                tau[o.v] += ca.DM(body.flexible.array("stiffness")) @ q[o.q]
                tau[o.v] += ca.DM(body.flexible.array("damping")) @ v[o.v]
        self.efforts = ca.Function("efforts", [q, v, a], [tau])

    def _positions(self, q):
        poses, masses, places = {al.model.WORLD: Pose(ca.SX.eye(3), ca.SX(3, 1))}, [], []
        for body, joint, owner in zip(
            self.model.bodies,
            self.model.joints,
            (self.model.space[k] for k in range(len(self.model.joints))),
            strict=True,
        ):
            X = poses[joint.parent]
            if joint.node:
                flexible = self.model.body(joint.parent).flexible
                node, qm = flexible.node(joint.node), q[self.model.space.of_bodies[joint.parent].q]
                moved = ca.DM(np.array(node.position)) + ca.DM(np.array(node.shapes).T) @ qm
                X = X @ Pose(so3.exp(ca.DM(np.array(node.rotations).T) @ qm), moved)
            X = X @ joint.placement.symbolic_pose({}) @ joint.type.placement(q[owner.q])
            poses[body.name] = X
            m, x, phi = self.points[body.name]
            own = q[self.model.space.of_bodies[body.name].q] if body.flexible is not None else ca.SX(0, 1)
            for k in range(len(m)):
                local = ca.DM(x[k]) + (ca.DM(phi[k].T) @ own if own.numel() else 0)
                masses.append(m[k])
                places.append(X.rotation @ local + X.translation)
        return masses, ca.vertcat(*places)

"""Several models that hold each other: arms and an object, legs and a support, a robot and its tool.

Every model keeps its own compiled sweeps; connecting it to others, letting go or taking another tool builds nothing for
it. With the accelerations of each model alone, a_k, and rows G_k of the links on its speeds,

    Lambda = sum G_k M_k^-1 G_k^T,    Lambda f = alpha - gamma - sum G_k a_k - Lambda_h,                        (1)
    v'_k = a_k + M_k^-1 (G_k^T f + J_k^T h)                                                                  (2)

alpha are known relative accelerations along the rows, h known wrenches in the free directions of a link (friction, a motor
at the contact), Lambda_h what the latter do to the rows. Lilly and Orin ("Efficient dynamic simulation of multiple chain
robotic systems") solve for the acceleration a0 of one reference member that all chains hold instead: with the chain's
inverse inertia L at its tip, and rows B of the contact,

    f = P - R a0,    R = B^T (B L B^T)^-1 B,    P likewise,    [I0 + sum X^T R X] a0 = sum X^T P + w0          (3)

always of size 6. Directions in which a chain cannot move its tip (fewer than six joints, a singular arm) join (3) as rows on
a0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known, unknown
from alembert.constraints.equations import pair_rows, rate_of_rows
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, NumericalError
from alembert.expression import Expression, names_in
from alembert.joints import Free, JointType, Pair
from alembert.model import LoopJoint, Model, ModelBuilder
from alembert.spatial import Ad, Motion, Pose

Array = np.ndarray
_KERNELS: dict[str, Kernel] = {}
_RANK = 1e-10
_PLACE = np.r_[1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]


@dataclass(frozen=True)
class Link:
    """Frame b of one model moves relative to frame a of another as the pair allows; frames are given as "model:frame"."""

    name: str
    type: Pair
    a: str
    b: str

    def __post_init__(self) -> None:
        if not isinstance(self.type, Pair) or not self.type.closes_loops:
            raise ArgumentError(
                f"Link {self.name!r}: type is {self.type!r}, expected a joint type or a pair that closes loops"
            )
        if names_in(tuple(self.type.constants())):
            raise ArgumentError(
                f"Link {self.name!r}: the {self.type.kind} depends on parameters, expected numbers"
            )


@dataclass(frozen=True, eq=False)
class ConnectedResult:
    """Accelerations by model, and by link the wrench on b at frame b, in its axes (a gets its opposite)."""

    accelerations: Mapping[str, Array]
    wrenches: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Of one link at a state: phi, gamma, B (b axes), X_ab, and G by model."""

    residual: Array
    gamma: Array
    B: Array
    X_ab: Pose
    G: dict[str, Array]


class Connected:
    """Models by name, and the links that hold them together; `connect` and `release` give others without compiling."""

    def __init__(self, models: Mapping[str, Model], links: Sequence[Link] = ()) -> None:
        self.models = dict(models)
        self.links = {link.name: link for link in links}
        if len(self.links) < len(links):
            raise ArgumentError("Connected: two links have the same name")
        for name, model in self.models.items():
            if ":" in name:
                raise ArgumentError(
                    f"Connected: the model name {name!r} has a colon, which separates models from frames"
                )
            if model.is_constrained:
                raise ArgumentError(
                    f"Connected: the model {name!r} has constraints of its own; make them links"
                )
        self._ends = {link.name: tuple(self._end(link, end) for end in (link.a, link.b)) for link in links}

    def _end(self, link: Link, end: str) -> tuple[str, str]:
        model, colon, frame = end.partition(":")
        if not colon or model not in self.models:
            raise ArgumentError(
                unknown(f"Connected: link {link.name!r} refers to the model", model, self.models)
            )
        self.models[model].frame(frame)
        return model, frame

    def connect(self, *links: Link, **models: Model) -> Connected:
        """With more links, and more (or other) models."""
        return Connected({**self.models, **models}, [*self.links.values(), *links])

    def release(self, *names: str) -> Connected:
        """Without some links; models that nothing holds stay."""
        for name in names:
            check_known("Connected.release: no link", name, self.links)
        return Connected(self.models, [link for name, link in self.links.items() if name not in names])

    def combined(self, name: str = "connected") -> Model:
        """The same as one model, with the links as loops: names have the model's before them, "model/name"."""
        whole = ModelBuilder(name, gravity=next(iter(self.models.values())).gravity).build()
        for key, model in self.models.items():
            whole = whole.attach(model, to="world", prefix=f"{key}/")
        loops = [
            LoopJoint(
                link.name, link.type, *(f if f == "world" else f"{m}/{f}" for m, f in self._ends[link.name])
            )
            for link in self.links.values()
        ]
        return whole.replace(loops=tuple(loops))

    # --- dynamics -------------------------------------------------------------------------------------------

    def residuals(self, states: Mapping[str, Any]) -> dict[str, Array]:
        """By link what is to vanish for it to be closed."""
        q_v = self._states(states)
        return {name: self._rows(name, q_v).residual for name in self.links}

    def accelerations(
        self,
        states: Mapping[str, Any],
        efforts: Mapping[str, Any] | None = None,
        *,
        forces: Mapping[str, Any] | None = None,
        relative: Mapping[str, Any] | None = None,
        prescribed: Mapping[str, Mapping[str, Any]] | None = None,
        reference: str | None = None,
    ) -> ConnectedResult:
        """The motion of all models together.

        Args:
            states: (q, v) by model.
            efforts: by model; zero where left out.
            forces: by link, known forces in the joint's free directions (one per speed of its type), on b.
            relative: by link, known accelerations of b relative to a along the rows.
            prescribed: by model, joints whose accelerations are known (a support that moves): {"leg": {"base": a}}.
            reference: the model that all links hold; solves for its six accelerations (3). It is one free body.
        """
        q_v = self._states(states)
        for what, given in (("efforts", efforts), ("prescribed", prescribed)):
            for key in given or {}:
                check_known(f"accelerations: {what}: no model", key, self.models)
        for what, given in (("forces", forces), ("relative", relative)):
            for key in given or {}:
                check_known(f"accelerations: {what}: no link", key, self.links)
        free, respond = {}, {}
        for name, model in self.models.items():
            tau = (efforts or {}).get(name, np.zeros(model.nv))
            tau = model.compute.numbers("accelerations", f"efforts: {name!r}", tau, model.nv, batch=False)
            known = (prescribed or {}).get(name)
            free[name], respond[name] = self._alone(name, *q_v[name], tau, known)
        rows = {name: self._rows(name, q_v) for name in self.links}
        pushes = {name: self._push(name, rows[name], (forces or {}).get(name)) for name in self.links}
        alpha = {
            name: np.broadcast_to(np.asarray((relative or {}).get(name, 0.0), dtype=float), r.residual.shape)
            for name, r in rows.items()
        }
        for name, h in pushes.items():
            if h is not None:
                for key, J in self._jacobians(name, q_v).items():
                    free[key] = free[key] + respond[key](J.T @ h)
        if reference is None:
            a, f = self._by_links(rows, free, respond, alpha)
        else:
            a, f = self._by_reference(reference, rows, free, respond, alpha)
        wrenches = {}
        for name, r in rows.items():
            wrench = r.B.T @ f[name]
            known_push = pushes[name]
            wrenches[name] = wrench if known_push is None else wrench + known_push
        return ConnectedResult(a, wrenches)

    def _by_links(
        self, rows: Any, free: Any, respond: Any, alpha: Any
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """(1), (2); of several forces with the same effect the smallest."""
        starts = np.cumsum([0, *(len(r.residual) for r in rows.values())])
        total = int(starts[-1])
        Lambda, b = np.zeros((total, total)), np.zeros(total)
        G = {name: np.zeros((total, model.nv)) for name, model in self.models.items()}
        for k, (name, r) in enumerate(rows.items()):
            at = slice(int(starts[k]), int(starts[k + 1]))
            b[at] = alpha[name] - r.gamma
            for key, block in r.G.items():
                G[key][at] += block
        for key, block in G.items():
            b -= block @ free[key]
            Lambda += block @ respond[key](block.T)
        f = _least(Lambda, b)
        left = np.abs(Lambda @ f - b)
        if np.max(left, initial=0.0) > 1e-7 * (np.max(np.abs(b), initial=0.0) + 1e-12):
            raise NumericalError("accelerations: the links contradict each other: no forces keep all of them")
        a = {key: free[key] + respond[key](block.T @ f) for key, block in G.items()}
        return a, {name: f[int(starts[k]) : int(starts[k + 1])] for k, name in enumerate(rows)}

    def _by_reference(
        self, reference: str, rows: Any, free: Any, respond: Any, alpha: Any
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """(3)"""
        self._check_reference(reference)
        I0, w0 = np.linalg.inv(respond[reference](np.eye(6))), free[reference]
        matrix, right = I0.copy(), I0 @ w0
        parts, blocked, wanted = {}, [], []
        for name, r in rows.items():
            key = next(m for m, _ in self._ends[name] if m != reference)
            G_0, G_k = r.G[reference], r.G[key]
            L = G_k @ respond[key](G_k.T)  # B L B^T
            d = alpha[name] - r.gamma - G_k @ free[key]
            values, U = np.linalg.eigh((L + L.T) / 2)
            good = values > _RANK * max(values[-1], 1e-300)
            inverse = (U[:, good] / values[good]) @ U[:, good].T
            matrix += G_0.T @ inverse @ G_0
            right += G_0.T @ inverse @ d
            blocked.append(U[:, ~good].T @ G_0)
            wanted.append(U[:, ~good].T @ d)
            parts[name] = (key, inverse, d, U[:, ~good])
        N, e = np.vstack(blocked), np.concatenate(wanted)
        whole = np.block([[matrix, -N.T], [N, np.zeros((len(N), len(N)))]])
        answer = _least(whole, np.concatenate([right, e]), symmetric=False)
        a0, extra = answer[:6], answer[6:]
        a, f = {reference: a0}, {}
        start = 0
        for name, r in rows.items():
            key, inverse, d, null = parts[name]
            count = null.shape[1]
            f[name] = inverse @ (d - r.G[reference] @ a0) + null @ extra[start : start + count]
            start += count
            a[key] = a.get(key, free[key]) + respond[key](r.G[key].T @ f[name])
        for key in self.models:
            a.setdefault(key, free[key])
        return a, f

    def _check_reference(self, reference: str) -> None:
        model = self.models.get(reference)
        if model is None:
            raise ArgumentError(unknown("accelerations: reference: no model", reference, self.models))
        if model.nv != 6 or not isinstance(model.joints[0].type, Free):
            raise ArgumentError(f"accelerations: reference: {reference!r} is no single free body")
        seen: set[str] = set()
        for name, ends in self._ends.items():
            others = [m for m, _ in ends if m != reference]
            if len(others) != 1 or others[0] in seen:
                raise ArgumentError(
                    f"accelerations: reference: link {name!r} is not the only one between {reference!r} and one other "
                    "model; leave reference out"
                )
            seen.add(others[0])

    # --- inside ---------------------------------------------------------------------------------------------

    def _states(self, states: Mapping[str, Any]) -> dict[str, tuple[Array, Array]]:
        found = {}
        for name, model in self.models.items():
            if name not in states:
                raise ArgumentError(f"Connected: states has no {name!r}, expected (q, v) for every model")
            q, v = states[name]
            found[name] = (
                model.compute.numbers("Connected", f"q of {name!r}", q, model.nq, batch=False),
                model.compute.numbers("Connected", f"v of {name!r}", v, model.nv, batch=False),
            )
        return found

    def _alone(
        self, name: str, q: Array, v: Array, tau: Array, known: Mapping[str, Any] | None
    ) -> tuple[Array, Any]:
        """Accelerations of a model without links, and what efforts on it add to them."""
        model = self.models[name]
        if not known:
            a = model.forward_dynamics(q, v, tau)

            def respond(x: Array) -> Array:
                return model.solve_mass_matrix(q, x.T).T

            return a, respond
        held, a_given = model.compute.by_name("accelerations", known, "prescribed")
        a = model.compute.evaluate("hybrid_dynamics", (q, v, tau, a_given, (~held).astype(float)))[0]
        loose = np.flatnonzero(~held)
        inverse = np.zeros((model.nv, model.nv))
        inverse[np.ix_(loose, loose)] = np.linalg.inv(model.mass_matrix(q)[np.ix_(loose, loose)])
        return a, lambda x: inverse @ x

    def _rows(self, name: str, q_v: dict[str, tuple[Array, Array]]) -> _Rows:
        link = self.links[name]
        X, V, A, J = [], [], [], []
        for model, frame in self._ends[name]:
            m, (q, v) = self.models[model], q_v[model]
            X.append(m.frame_pose(q, frame))
            V.append(m.frame_velocity(q, v, frame))
            A.append(m.frame_jacobian_rate(q, v, frame))
            J.append(m.frame_jacobian(q, frame, reference="world"))
        signature = repr(_signature(link.type))
        if signature not in _KERNELS:
            _KERNELS[signature] = _pair_kernel(link.type, signature)
        constants = np.array([_number(x) for x in link.type.constants()])
        poses = [_flat(x) for x in X]
        phi, B, B_W, gamma = _KERNELS[signature](*poses, *V, *A, _PLACE, _PLACE, constants)
        G: dict[str, Array] = {}
        for (model, _), jacobian, sign in zip(self._ends[name], J, (-1.0, 1.0), strict=True):
            G[model] = G.get(model, 0.0) + sign * (B_W @ jacobian)
        return _Rows(phi, gamma, B, X[0].inverse() @ X[1], G)

    def _jacobians(self, name: str, q_v: dict[str, tuple[Array, Array]]) -> dict[str, Array]:
        """From a wrench on b (in its axes) to efforts: J_b of b's model, and of a's with the opposite sign."""
        (model_a, frame_a), (model_b, frame_b) = self._ends[name]
        X_b = self.models[model_b].frame_pose(q_v[model_b][0], frame_b)
        into = Ad(X_b.inverse())
        found: dict[str, Array] = {}
        for model, frame, sign in ((model_b, frame_b, 1.0), (model_a, frame_a, -1.0)):
            J = self.models[model].frame_jacobian(q_v[model][0], frame, reference="world")
            found[model] = found.get(model, 0.0) + sign * (into @ J)
        return found

    def _push(self, name: str, rows: _Rows, h: Any) -> Array | None:
        """The wrench of known forces in the free directions of a link, S h."""
        if h is None:
            return None
        joint = self.links[name].type
        if not isinstance(joint, JointType):
            raise ArgumentError(
                f"accelerations: forces: link {name!r} is a {joint.kind}, which has no free directions of its own"
            )
        given = np.atleast_1d(np.asarray(h, dtype=float))
        if given.shape != (joint.nv,):
            raise ArgumentError(
                f"accelerations: forces: {name!r} has shape {given.shape}, expected ({joint.nv},)"
            )
        # an orthonormal basis of the free directions: the complement of the rows
        _, _, Vt = np.linalg.svd(rows.B)
        S = joint.subspace(joint.fit(rows.X_ab))
        basis = Vt[len(rows.B) :].T
        # forces that do the work h . v on the joint's speeds, and none against the rows
        return basis @ np.linalg.solve(np.asarray(S).T @ basis, given)


def _least(A: Array, b: Array, *, symmetric: bool = True) -> Array:
    """The smallest solution, rows and columns brought to unit diagonal first where that is meant."""
    if not len(A):
        return np.zeros(0)
    scale = 1 / np.sqrt(np.maximum(np.abs(np.diag(A)), 1e-300)) if symmetric else np.ones(len(A))
    scale = np.where(np.abs(np.diag(A)) > 1e-12 * np.max(np.abs(A)), scale, 1.0) if symmetric else scale
    return scale * np.linalg.lstsq(A * scale[:, None] * scale, scale * b, rcond=_RANK)[0]


def _signature(pair: Pair) -> Any:
    """What makes code: the type, its structural fields, and which constants are zero (columns that vanish)."""
    fixed = tuple(
        (f.name, getattr(pair, f.name)) for f in dataclasses.fields(pair) if f.metadata.get("structural")
    )
    return type(pair).__module__, type(pair).__qualname__, pair.kind, fixed, len(pair.constants())


def _number(x: Any) -> float:
    return float(x.evaluate({})) if isinstance(x, Expression) else float(x)


def _flat(X: Pose) -> Array:
    return np.concatenate([np.asarray(X.rotation).ravel(), np.asarray(X.translation).ravel()])


def _pair_kernel(pair: Pair, signature: str) -> Kernel:
    """Rows of a pair from the motion of the two bodies: phi, B, B Ad(X_Wb)^-1 and gamma."""
    m, c = len(pair.holonomic), len(pair.constants())
    names = {
        "X_a": 12,
        "X_b": 12,
        "V_a": 6,
        "V_b": 6,
        "A_a": 6,
        "A_b": 6,
        "C_a": 12,
        "C_b": 12,
        "constants": c,
    }
    inputs = [Argument(name, (size,)) for name, size in names.items()]
    results = [Argument("phi", (m,)), Argument("B", (m, 6)), Argument("B_W", (m, 6)), Argument("gamma", (m,))]

    def build() -> FunctionSource:
        x = {name: ca.SX.sym(name, size) for name, size in names.items()}
        bodies = {end: _pose(x[f"X_{end}"]) for end in "ab"}
        X_Wa, X_Wb = (X @ _pose(x[f"C_{end}"]) for end, X in bodies.items())
        V_a, V_b, A_a, A_b = (
            bodies[name[-1]].motion(Motion.from_vector(x[name])) for name in ("V_a", "V_b", "A_a", "A_b")
        )
        X = X_Wa.inverse() @ X_Wb
        V = X_Wb.motion_inverse(V_b - V_a).vector()
        rows = pair_rows(pair, x["constants"], X)
        B = rows.of_pairs[0]
        turned = rate_of_rows(
            lambda poses, _: pair_rows(pair, x["constants"], poses[0], residual=False), [X], [V]
        )
        gamma = B @ X_Wb.motion_inverse(A_b - A_a + V_b.cross(V_a)).vector() + turned
        inverse = ca.horzcat(
            *(X_Wb.motion_inverse(Motion.from_vector(e)).vector() for e in ca.horzsplit(ca.SX.eye(6)))
        )
        outputs = [rows.residual, B, B @ inverse, gamma]
        return FunctionSource(ca.Function("pair", list(x.values()), [ca.densify(y) for y in outputs]))

    return Kernel("constraint_rows", inputs, results, key=f"pair:{signature}", build=build)


def _pose(x: ca.SX) -> Pose:
    return Pose(ca.reshape(x[:9], 3, 3).T, x[9:])

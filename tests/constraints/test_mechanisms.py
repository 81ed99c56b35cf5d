"""Published mechanisms: Nikravesh's matrices, slider-crank, four-bar, N four-bars, Bricard, Andrews' squeezer."""

import functools

import numpy as np
import pytest
from constraint_helpers import Z, four_bars, integrate, parallelogram

from alembert import Inertia, ModelBuilder, Placement, Prismatic, Revolute


def test_nikravesh_matrices():
    """Nikravesh, Gim, Arabyan and Rein: a prismatic joint and four parallel revolutes, cut at the last.

    D* B is printed as 3 x 4 with two equal rows, C as two of them, and E = [[1, 0], [0, 1], [0, -1], [0, 1]]. The
    geometry is not printed; the columns u x d determine it: u is normal to all of them, and d = c x u.
    """
    root = np.sqrt(2)
    printed = np.array([[0, 0, -root, -root], [0, 0, -root, -root], [0, -root, -root, 0]])
    u = np.array([1.0, -1.0, 0.0]) / root
    to_cut = [np.cross(printed[:, k], u) for k in range(1, 4)]  # from R2, R3, R4 to the cut
    at = [-d for d in to_cut]  # with the cut at the origin
    builder = ModelBuilder("nikravesh")
    block = Inertia.box(1.0, (0.2, 0.2, 0.2))
    builder.body("carriage", block, joint=Prismatic((1, 0, 0)), joint_name="T1")
    previous, origin = "carriage", np.zeros(3)
    for k in range(3):
        builder.body(
            f"link{k + 2}",
            block,
            joint=Revolute(tuple(u)),
            joint_name=f"R{k + 2}",
            parent=previous,
            placement=tuple(at[k] - origin),
        )
        previous, origin = f"link{k + 2}", at[k]
    builder.frame("cut", previous, tuple(-origin))
    builder.loop("R5", Revolute(tuple(u)), "carriage", "cut")
    model = builder.build()
    q = np.zeros(4)
    G = model.constraint_jacobian(q)
    assert G.shape == (5, 4)
    np.testing.assert_allclose(G[:2], 0, atol=1e-15)  # parallel axes stay parallel: 5 x 4 becomes 3 x 4
    from alembert.joints.closure import across

    basis = np.column_stack([*across(u), u])
    np.testing.assert_allclose(basis @ G[2:], printed, atol=1e-14)
    analysis = model.constraint_analysis(q)
    assert (analysis.rank, analysis.degrees_of_freedom, analysis.redundant) == (2, 2, {"R5": 3})
    found = model.independent_coordinates(q, independent=["T1", "R2"])
    np.testing.assert_allclose(found.E, [[1, 0], [0, 1], [0, -1], [0, 1]], atol=1e-14)
    own = model.independent_coordinates(q)
    assert "T1" in own.names


def test_slider_crank():
    """Crank r, rod l, slider on the x axis: x = r cos t + sqrt(l^2 - r^2 sin^2 t), and Newton's law for point masses."""
    r, l, m = 0.3, 1.0, 2.0
    builder = ModelBuilder("slider_crank", gravity=(0, 0, 0))
    builder.body("crank", Inertia.point(1.0, (r, 0, 0)), joint=Revolute(Z), joint_name="crank")
    light = Inertia.point(1e-9, (l, 0, 0))
    builder.body("rod", light, joint=Revolute(Z), joint_name="pin", parent="crank", placement=(r, 0, 0))
    builder.body("slider", Inertia.box(m, (0.1, 0.1, 0.1)), joint=Prismatic((1, 0, 0)), joint_name="slide")
    builder.frame("eye", "rod", (l, 0, 0))
    builder.loop("gudgeon", Revolute(Z), "slider", "eye")
    model = builder.build()
    t, w = 0.7, 3.0

    def slide(t):
        return r * np.cos(t) + np.sqrt(l**2 - (r * np.sin(t)) ** 2)

    beta = -np.arcsin(r * np.sin(t) / l) - t
    state = model.assemble([t, beta + 0.1, slide(t) - 0.05], [w, 0, 0], fixed=["crank"])
    np.testing.assert_allclose(state.q, [t, beta, slide(t)], atol=1e-12)
    h = 1e-4
    dx = (8 * (slide(t + h) - slide(t - h)) - (slide(t + 2 * h) - slide(t - 2 * h))) / (12 * h)
    ddx = (16 * (slide(t + h) + slide(t - h)) - (slide(t + 2 * h) + slide(t - 2 * h)) - 30 * slide(t)) / (
        12 * h**2
    )
    np.testing.assert_allclose(state.v[2], dx * w, rtol=1e-10)
    # crank: m_c r^2 w' + m x' x'' = tau with x'' = ddx w^2 + dx w'
    tau = 0.8
    dw = (tau - m * dx * ddx * w**2) / (1.0 * r**2 + m * dx**2)
    found = model.constrained_dynamics(state.q, state.v, [tau, 0, 0])
    # second differences: eps/h^2 = 2e-8; the rod's 1e-9 kg
    np.testing.assert_allclose(found.accelerations[0], dw, rtol=1e-6)
    np.testing.assert_allclose(found.accelerations[2], ddx * w**2 + dx * dw, rtol=1e-6)
    # the rod has no mass: the pin force pulls along it, and moves the slider. Wrench on the rod's eye, in rod axes
    F = found.reactions["gudgeon"]
    np.testing.assert_allclose(F[[0, 1, 2, 5]], 0, atol=1e-12)
    assert abs(F[4]) < 1e-6 * abs(F[3])
    angle = t + state.q[1]
    np.testing.assert_allclose(-F[3] * np.cos(angle), m * (ddx * w**2 + dx * dw), rtol=1e-6)


def test_four_bar_parallelogram():
    """All posts turn alike and beams translate: one equation, I t'' = g s sin t, with I = sum of m."""
    for windows in (1, 2):
        model = four_bars(windows)
        t, w = 0.6, -1.3
        q, v = parallelogram(model, t, w)
        found = model.constrained_dynamics(q, v, np.zeros(model.nv))
        posts, beams = windows + 1, windows
        inertia, moment = posts / 3 + beams, posts / 2 + beams
        expected = 9.81 * moment * np.sin(t) / inertia  # angle from upright, turning to -x
        np.testing.assert_allclose(found.accelerations, parallelogram(model, 0, expected)[1], rtol=1e-12)
        assert model.constraint_analysis(q).degrees_of_freedom == 1
        np.testing.assert_allclose(
            model.reduced_mass_matrix(q, independent=["foot0"]), [[inertia]], rtol=1e-13
        )


def test_four_bar_against_freudenstein():
    """Unequal bars: Freudenstein's equation relates the two cranks."""
    a, b, c, d = 0.4, 1.1, 0.9, 1.0  # crank, coupler, rocker, ground
    builder = ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    builder.body("crank", Inertia.rod(1.0, (0, 0, 0), (a, 0, 0)), joint=Revolute(Z), joint_name="in")
    builder.body(
        "coupler",
        Inertia.rod(1.0, (0, 0, 0), (b, 0, 0)),
        joint=Revolute(Z),
        joint_name="pin",
        parent="crank",
        placement=(a, 0, 0),
    )
    builder.body(
        "rocker",
        Inertia.rod(1.0, (0, 0, 0), (c, 0, 0)),
        joint=Revolute(Z),
        joint_name="out",
        placement=(d, 0, 0),
    )
    builder.frame("end", "coupler", (b, 0, 0)).frame("head", "rocker", (c, 0, 0))
    builder.loop("joint", Revolute(Z), "head", "end")
    model = builder.build()
    for crank in np.linspace(0, 2 * np.pi, 7):
        state = model.assemble([crank, 0.5 - crank, 1.5], fixed=["in"])
        t, p = state.q[0], state.q[2]
        left = d / a * np.cos(p) - d / c * np.cos(t) + (a * a - b * b + c * c + d * d) / (2 * a * c)
        assert abs(left - np.cos(t - p)) < 1e-11
        assert state.residual < 1e-12
    # energy along the motion: order 4, so small steps give much
    state = model.assemble([0.3, 0.5, 1.5], [2.0, 0, 0], fixed=["in"])
    before = model.energy(state.q, state.v)
    q, v = integrate(model, state.q, state.v, 0.5, 100)
    assert abs(model.energy(q, v) - before) < 1e-6


def test_n_four_bar_starts_as_published_and_keeps_its_energy():
    """IFToMM A02, N = 2: from upright with B0 at +1 m/s; 35.835 J. Then against the pendulum that it is."""
    model = four_bars(2)
    q, v = parallelogram(model, 0.0, -1.0)
    np.testing.assert_allclose(model.energy(q, v), 35.835, rtol=1e-12)
    np.testing.assert_allclose(
        model.frame_velocity(q, v, "top0", reference="local_world_aligned")[3:], [1, 0, 0], atol=1e-15
    )
    steps, duration = 100, 0.5
    end_q, end_v = integrate(model, q, v, duration, steps)
    # the one equation t'' = k sin t, in many small steps
    k, t, w = 9.81 * (1.5 + 2) / (1 + 2), 0.0, -1.0
    h = duration / 2000
    for _ in range(2000):
        k1, l1 = w, k * np.sin(t)
        k2, l2 = w + h / 2 * l1, k * np.sin(t + h / 2 * k1)
        k3, l3 = w + h / 2 * l2, k * np.sin(t + h / 2 * k2)
        k4, l4 = w + h * l3, k * np.sin(t + h * k3)
        t, w = t + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), w + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
    expected_q, expected_v = parallelogram(model, t, w)
    np.testing.assert_allclose(end_q, expected_q, atol=1e-7)
    np.testing.assert_allclose(end_v, expected_v, atol=1e-6)
    np.testing.assert_allclose(model.energy(end_q, end_v), 35.835, rtol=1e-7)


def test_n_four_bar_after_ten_seconds():
    """IFToMM A02, N = 2: B0 at t = 10 s, through the singular positions with all bars in line."""
    model = four_bars(2)
    q, v = parallelogram(model, 0.0, -1.0)
    q, v = integrate(model, q, v, 10.0, 4000)
    place = model.frame_pose(q, "top0").translation
    speed = model.frame_velocity(q, v, "top0", reference="local_world_aligned")[3:]
    # order 4 at h = 2.5 ms: some 1e-9 by halving the step; the reference has ten digits
    np.testing.assert_allclose(place, [0.3284581115, 0.9445185382, 0], atol=3e-9)
    np.testing.assert_allclose(speed, [1.4230514702, -0.4948688455, 0], atol=3e-8)
    np.testing.assert_allclose(model.energy(q, v), 35.835, rtol=1e-9)
    np.testing.assert_allclose(model.constraint_residual(q), 0, atol=1e-12)


def test_the_flat_four_bar_is_singular():
    """All bars in one line: from there posts may turn alike or against each other."""
    model = four_bars(1).replace(name="flat")
    q, v = parallelogram(model, 0.5, 0.0)
    tau = np.zeros(model.nv)
    model.constrained_dynamics(q, v, tau)
    flat, _ = parallelogram(model, np.pi / 2, 0.0)
    assert model.constraint_analysis(flat).degrees_of_freedom == 2
    with pytest.warns(
        UserWarning,
        match=r"rank 1 at q = \[.*\] and 2 elsewhere: it is a singular configuration of 'window0'",
    ):
        model.constrained_dynamics(flat, v, tau)
    # moving through it is another matter: near by, the digits are still there
    close, v = parallelogram(model, np.pi / 2 - 1e-5, 1.0)
    a = model.constrained_dynamics(close, v, tau).accelerations
    inertia, moment = 2 / 3 + 1, 1 + 1
    expected = 9.81 * moment * np.sin(np.pi / 2 - 1e-5) / inertia
    np.testing.assert_allclose(a, parallelogram(model, 0, expected)[1], rtol=1e-5)


def test_a_singular_start_is_found_out():
    model = four_bars(1).replace(name="flat at first")
    flat, v = parallelogram(model, np.pi / 2, 0.0)
    tau = np.zeros(model.nv)
    model.constraint_analysis(flat)
    model.forward_dynamics(flat, v, tau)
    q, v = parallelogram(model, 0.5, 0.3)
    with pytest.warns(
        UserWarning,
        match=r"rank 2 at q = .* but 1 at an earlier configuration, which was singular for 'window0'",
    ):
        a = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, rtol=1e-10)


@functools.cache
def bricard():
    """IFToMM A04: five rods of 1 m through the corners of a cube's hexagon, axes y z x y z x."""
    points = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
    axes = np.array([(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)], dtype=float)
    builder = ModelBuilder("bricard", gravity=(0, -9.81, 0))
    parent, origin = "world", np.zeros(3)
    for k in range(5):
        along = points[k + 1] - points[k]
        size = np.where(along != 0, 1.0, 0.1)
        rod = Inertia.box(1.0, tuple(size)).at(Placement(tuple(along / 2)))
        builder.body(
            f"rod{k}",
            rod,
            joint=Revolute(tuple(axes[k])),
            joint_name=f"hinge{k}",
            parent=parent,
            placement=tuple(points[k] - origin),
        )
        parent, origin = f"rod{k}", points[k]
    builder.frame("end", parent, tuple(points[5] - origin)).frame("wall", "world", tuple(points[5]))
    builder.loop("last", Revolute(tuple(axes[5])), "wall", "end")
    return builder.build()


def test_bricard_is_redundant_and_moves():
    model = bricard()
    q = np.zeros(5)
    found = model.constraint_analysis(q)
    assert (found.rows, found.rank, found.degrees_of_freedom, found.redundant) == (5, 4, 1, {"last": 1})
    assert str(found) == "5 constraint rows of rank 4, 1 degrees of freedom left; redundant: 1 of 5 of 'last'"
    tau = np.zeros(5)
    with pytest.warns(UserWarning, match="not unique: 1 of the 5 rows of 'last' follow from the others"):
        first = model.constrained_dynamics(q, np.zeros(5), tau)
    assert np.linalg.norm(first.accelerations) > 1
    G = model.constraint_jacobian(q)
    np.testing.assert_allclose(G @ first.accelerations, 0, atol=1e-13)
    before = model.energy(q, np.zeros(5))
    end_q, end_v = integrate(model, q, np.zeros(5), 0.4, 80)
    assert np.linalg.norm(end_q) > 0.3
    assert model.constraint_analysis(end_q).rank == 4
    assert abs(model.energy(end_q, end_v) - before) < 1e-6
    np.testing.assert_allclose(model.constraint_residual(end_q), 0, atol=1e-12)


def squeezer():
    """Andrews' squeezer as seven bodies in a tree with three loops (data: IVP test set)."""
    builder = ModelBuilder("squeezer", gravity=(0, 0, 0))
    m = [0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498]
    I = [2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5]
    xa, ya, xb, yb = -0.06934, -0.00227, -0.03635, 0.03273
    d, da, e, ea, rr, ra = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
    ss, sa, sb, ta, tb = 0.035, 0.01874, 0.01043, 0.02308, 0.00916
    u, ua, ub, zf, zt, fa = 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421

    def plane(k, x, y):
        return Inertia(m[k], (x, y, 0.0), (I[k], 0, I[k], 0, 0, I[k]))

    def hinge(name, k, com, parent, at, angle=0.0):
        builder.body(
            f"K{k + 1}", plane(k, *com), joint=Revolute(Z), joint_name=name, parent=parent,
            placement=Placement.from_rpy((0, 0, angle), (*at, 0.0)),
        )  # fmt: skip

    # the crank along x at beta = 0; the rod points back from the pin by pi: -d cos(beta + theta)
    hinge("beta", 0, (ra, 0), "world", (0, 0))
    hinge("theta", 1, (-da, 0), "K1", (rr, 0))
    # body 3 at B: its point at ss (sin g, -cos g) meets the rod's end
    hinge("gamma", 2, (sb, -sa), "world", (xb, yb))
    # bodies 4/5 from A: end of 5 at zt (cos de, sin de), then 4 by e (sin(ph+de), -cos(ph+de))
    hinge("delta", 4, (ta, tb), "world", (xa, ya))
    hinge("phi", 3, (e - ea, 0), "K5", (zt, 0), -np.pi / 2)
    # bodies 7/6 from A: end of 7 at u (sin ep, -cos ep), then 6 by zf (cos(om+ep), sin(om+ep))
    hinge("epsilon", 6, (-ub, -ua), "world", (xa, ya))
    hinge("omega", 5, (zf - fa, 0), "K7", (0, -u))
    builder.frame("rod_end", "K2", (-d, 0, 0)).frame("gamma_end", "K3", (0, -ss, 0)).frame(
        "spring", "K3", (SD, -SC, 0)
    )
    builder.frame("phi_end", "K4", (e, 0, 0)).frame("omega_end", "K6", (zf, 0, 0))
    for end in ("gamma_end", "phi_end", "omega_end"):
        builder.loop(end, Revolute(Z), "rod_end", end)
    return builder.build()


SC, SD = 0.018, 0.02
Q0 = {
    "beta": -0.0617138900142764496,
    "theta": 0.0,
    "gamma": 0.455279819163070380,
    "phi": 0.222668390165885885,
    "delta": 0.487364979543842550,
    "omega": -0.222668390165885885,
    "epsilon": 1.23054744454982119,
}


def test_andrews_squeezer():
    model = squeezer()
    q = np.array([Q0[name] for name in model.coordinate_names])
    assert np.max(np.abs(model.constraint_residual(q))) < 1e-15
    found = model.constraint_analysis(q)
    assert (found.rank, found.degrees_of_freedom) == (6, 1)
    # the spring from (xc, yc), c0 = 4530, l0 = 0.07785, pulls at its point of body 3; 0.033 N m drive the crank
    X = model.frame_pose(q, "spring")
    pull = np.array([0.014, 0.072, 0.0]) - X.translation
    length = np.linalg.norm(pull)
    force = X.rotation.T @ (4530 * (length - 0.07785) / length * pull)
    tau = np.where(np.array(model.speed_names) == "beta", 0.033, 0.0)
    a = model.forward_dynamics(q, np.zeros(7), tau, wrenches={"spring": np.r_[0, 0, 0, force]})
    at = dict(zip(model.speed_names, a, strict=True))
    # digits of the published values; the printed coordinates have 16
    np.testing.assert_allclose(at["beta"], 14222.4439199541, rtol=1e-12)
    np.testing.assert_allclose(at["theta"], -10666.8329399656, rtol=1e-12)


def test_andrews_squeezer_squeezes():
    """To t = 0.03 s (published to some 1e-8); energy grows by the drive's work."""
    model = squeezer()
    names = model.coordinate_names
    tau = np.where(np.array(names) == "beta", 0.033, 0.0)

    def spring(q):
        X = model.frame_pose(q, "spring")
        pull = np.array([0.014, 0.072, 0.0]) - X.translation
        length = np.linalg.norm(pull)
        return X.rotation.T @ (4530 * (length - 0.07785) / length * pull), 4530 * (length - 0.07785) ** 2 / 2

    def accelerations(q, v):
        return model.forward_dynamics(q, v, tau, wrenches={"spring": np.r_[0, 0, 0, spring(q)[0]]})

    q = start = np.array([Q0[name] for name in names])
    v = np.zeros(7)
    steps = 600
    h = 0.03 / steps
    for _ in range(steps):
        a1 = accelerations(q, v)
        v2, q2 = v + h / 2 * a1, q + h / 2 * v
        a2 = accelerations(q2, v2)
        v3, q3 = v + h / 2 * a2, q + h / 2 * v2
        a3 = accelerations(q3, v3)
        v4, q4 = v + h * a3, q + h * v3
        a4 = accelerations(q4, v4)
        state = model.project(q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4))
        q, v = state.q, state.v
    published = {
        "beta": 15.81077119629904,
        "theta": -15.75637105984298,
        "gamma": 0.04082224013073101,
        "phi": -0.5347301163226948,
        "delta": 0.5244099658805304,
        "omega": 0.5347301163226948,
        "epsilon": 1.048080741042263,
    }
    # 1000 steps give 2e-8, 2000 give 2e-9: at order 4, 600 steps give 2e-7
    np.testing.assert_allclose(q, [published[name] for name in names], atol=1e-6)
    work = 0.033 * (q - start)[names.index("beta")]
    gained = model.kinetic_energy(q, v) + spring(q)[1] - spring(start)[1]
    np.testing.assert_allclose(gained, work, rtol=1e-6)

"""Papers that several cases cite, once: author, title, first page."""

from __future__ import annotations

JPL1989 = "Proc. 3rd Annual Conf. Aerospace Computational Control (JPL 89-45), 1989"
SCRIPT = "an independent script in double precision, written for this case"
SOA = "Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra for multibody system dynamics (1992)"
IFTOMM = "IFToMM library of computational benchmark problems"
DMOC = (
    "Leyendecker, Ober-Blöbaum, Marsden, Ortiz, Discrete mechanics and optimal control for constrained systems "
    "(2009/2010)"
)
SOHL_BOBROW = "Sohl, Bobrow, A recursive multibody dynamics and sensitivity algorithm for branched kinematic chains (2001)"
COPS = "Dolan, More, Munson, Benchmarking optimization software with COPS 3.0 (2004)"
CHIANG_SAFONOV = (
    "Chiang, Safonov, Robust-Control Toolbox demonstrations, Third Annual Conference on Aerospace Computational "
    "Control 1989"
)
SKOGESTAD = "Skogestad, Postlethwaite, Multivariable Feedback Control, 2nd edition 2005"

ACC1989 = {
    "Balakrishnan": ("Minimum attainable RMS attitude error using co-located rate sensors", 449),
    "Bless, Hodges, Calise": ("A finite element based method for solution of optimal control problems", 342),
    "Chen, Ou": (
        "Development of efficient computer program for dynamic simulation of telerobotic manipulation",
        248,
    ),
    "Chou": (
        "A nearly-linear computational-cost scheme for the forward dynamics of an N-body pendulum",
        88,
    ),
    "Fijany, Bejczy": (
        "Parallel algorithms and architecture for computation of manipulator forward dynamics",
        200,
    ),
    "Fijany, Jain": (
        "A unifying framework for rigid multibody dynamics and serial and parallel computational issues",
        199,
    ),
    "Ider (control forces)": (
        "Modeling of control forces for kinematical constraints in the dynamics of multibody systems",
        382,
    ),
    "Ider (joint drives)": (
        "Determination of joint drives for stable end-effector motion in flexible robotic systems",
        421,
    ),
    "Kasahara, Honda, Narita": (
        "Parallel processing of real-time dynamic systems simulation on OSCAR",
        170,
    ),
    "Keat": ("Simulation studies using multibody dynamics code DART", 446),
    "Lan, Ge": (
        "Application of numerical optimization techniques to control system design for nonlinear dynamic models of aircraft",
        394,
    ),
    "Lilly, Orin": ("Efficient dynamic simulation for multiple chain robotic mechanisms", 73),
    "Lin, Yae": ("Recursive linearization of multibody dynamics equations of motion", 57),
    "Naccarato, Hughes": (
        "An inverse kinematics algorithm for a highly redundant variable-geometry-truss manipulator",
        407,
    ),
    "Nikravesh, Gim, Arabyan, Rein": (
        "Systematic generation of multibody equations of motion suitable for recursive and parallel manipulation",
        43,
    ),
    "Hanson": ("Parallel and vector computation for stochastic optimal control applications", 184),
    "Psiaki": ("An algorithm for the solution of dynamic linear programs", 327),
    "Rodriguez": ("An innovations approach to decoupling of multibody dynamics and control", 71),
}
"""Proceedings of the 3rd Annual Conference on Aerospace Computational Control, vol. 1 (JPL 89-45): title and page"""


def acc1989(authors: str, where: str) -> str:
    """A paper of the 1989 conference, and what of it a case uses."""
    title, page = ACC1989[authors]
    return (
        f"{authors.partition(' (')[0]}, {title}, 3rd Annual Conf. on Aerospace Computational Control (1989), "
        f"p. {page}: {where}"
    )

"""Linear systems in state space: analysis, synthesis and reduction, without a multibody model.

    import alembert as al

    G = al.control.tf([1], [1, 0.1, 1])
    G.hinf_norm().gain, G.poles(), G.zeros()

`al.linearize(model, q)` gives linear models of mechanisms; the functions here take them as they are.
"""

import sys as _sys
from inspect import isclass as _isclass
from inspect import isfunction as _isfunction
from typing import TYPE_CHECKING as _TYPE_CHECKING

from alembert.arguments import tell_wrong_types as _tell_wrong_types
from alembert.control.codesign import Design as Design
from alembert.control.codesign import DesignPoint as DesignPoint
from alembert.control.codesign import DesignSlope as DesignSlope
from alembert.control.codesign import LightestDesign as LightestDesign
from alembert.control.codesign import ParetoFront as ParetoFront
from alembert.control.codesign import codesign as codesign
from alembert.control.codesign import lightest as lightest
from alembert.control.codesign import pareto as pareto
from alembert.control.coprime_factors import LoopShaping as LoopShaping
from alembert.control.coprime_factors import coprime as coprime
from alembert.control.coprime_factors import gap as gap
from alembert.control.coprime_factors import ncf_margin as ncf_margin
from alembert.control.coprime_factors import ncfsyn as ncfsyn
from alembert.control.coprime_factors import nu_gap as nu_gap
from alembert.control.gramian import gramians as gramians
from alembert.control.gramian import hankel_singular_values as hankel_singular_values
from alembert.control.hinf import MuSynthesis as MuSynthesis
from alembert.control.hinf import dksyn as dksyn
from alembert.control.hinf import hinfsyn as hinfsyn
from alembert.control.interconnection import append as append
from alembert.control.interconnection import connect as connect
from alembert.control.interconnection import feedback as feedback
from alembert.control.interconnection import lft as lft
from alembert.control.interconnection import parallel as parallel
from alembert.control.interconnection import series as series
from alembert.control.interconnection import static as static
from alembert.control.interconnection import summing as summing
from alembert.control.interconnection import upper_lft as upper_lft
from alembert.control.mu_bounds import DeltaBlock as DeltaBlock
from alembert.control.mu_bounds import MuBounds as MuBounds
from alembert.control.mu_bounds import mu as mu
from alembert.control.norms import PeakGain as PeakGain
from alembert.control.norms import h2_norm as h2_norm
from alembert.control.norms import hinf_norm as hinf_norm
from alembert.control.norms import linf_norm as linf_norm
from alembert.control.polynomials import RobustPolynomial as RobustPolynomial
from alembert.control.polynomials import affine_polynomial as affine_polynomial
from alembert.control.polynomials import interval_polynomial as interval_polynomial
from alembert.control.polynomials import multilinear_polynomial as multilinear_polynomial
from alembert.control.quadratic import LQG as LQG
from alembert.control.quadratic import KalmanFilter as KalmanFilter
from alembert.control.quadratic import LinearEstimate as LinearEstimate
from alembert.control.quadratic import SquareRootKalman as SquareRootKalman
from alembert.control.quadratic import StateFeedback as StateFeedback
from alembert.control.quadratic import lqe as lqe
from alembert.control.quadratic import lqg as lqg
from alembert.control.quadratic import lqr as lqr
from alembert.control.quadratic import ltr as ltr
from alembert.control.quadratic import observer_controller as observer_controller
from alembert.control.quadratic import output_ltr as output_ltr
from alembert.control.quadratic import sampled_lqe as sampled_lqe
from alembert.control.quadratic import sampled_lqg as sampled_lqg
from alembert.control.quadratic import sampled_lqr as sampled_lqr
from alembert.control.reachability import PolePlacement as PolePlacement
from alembert.control.reachability import Reachability as Reachability
from alembert.control.reachability import place as place
from alembert.control.reachability import place_by_outputs as place_by_outputs
from alembert.control.reduced_order import ReducedLQG as ReducedLQG
from alembert.control.reduced_order import reduced_lqg as reduced_lqg
from alembert.control.reduction import ReducedSystem as ReducedSystem
from alembert.control.reduction import balanced_truncation as balanced_truncation
from alembert.control.reduction import frequency_limited_truncation as frequency_limited_truncation
from alembert.control.reduction import hankel_optimal as hankel_optimal
from alembert.control.reduction import modal_truncation as modal_truncation
from alembert.control.reduction import reduce_controller as reduce_controller
from alembert.control.reduction import split_stable as split_stable
from alembert.control.reduction import stochastic_truncation as stochastic_truncation
from alembert.control.reduction import weighted_truncation as weighted_truncation
from alembert.control.responses import FrequencyResponse as FrequencyResponse
from alembert.control.responses import StepInfo as StepInfo
from alembert.control.responses import TimeResponse as TimeResponse
from alembert.control.responses import c2d as c2d
from alembert.control.responses import d2c as d2c
from alembert.control.responses import step_info as step_info
from alembert.control.riccati import RiccatiSolution as RiccatiSolution
from alembert.control.riccati import care as care
from alembert.control.riccati import dare as dare
from alembert.control.robustness import DiskMargin as DiskMargin
from alembert.control.robustness import Margins as Margins
from alembert.control.robustness import MuPeak as MuPeak
from alembert.control.robustness import MuResponse as MuResponse
from alembert.control.robustness import RootLocus as RootLocus
from alembert.control.robustness import StabilityMargin as StabilityMargin
from alembert.control.robustness import disk_margins as disk_margins
from alembert.control.robustness import margins as margins
from alembert.control.robustness import mu_peak as mu_peak
from alembert.control.robustness import mu_response as mu_response
from alembert.control.robustness import multiloop_disk_margin as multiloop_disk_margin
from alembert.control.robustness import root_locus as root_locus
from alembert.control.robustness import stability_margin as stability_margin
from alembert.control.robustness import worst_case_gain as worst_case_gain
from alembert.control.scheduling import GainSchedule as GainSchedule
from alembert.control.spectral_synthesis import WienerHopf as WienerHopf
from alembert.control.spectral_synthesis import wiener_hopf as wiener_hopf
from alembert.control.statespace import StateSpace as StateSpace
from alembert.control.structured import ControllerStructure as ControllerStructure
from alembert.control.structured import Goal as Goal
from alembert.control.structured import Tuned as Tuned
from alembert.control.structured import affine as affine
from alembert.control.structured import fixed_order as fixed_order
from alembert.control.structured import pid as pid
from alembert.control.structured import tune as tune
from alembert.control.synthesis import Synthesis as Synthesis
from alembert.control.synthesis import augment as augment
from alembert.control.synthesis import h2syn as h2syn
from alembert.control.synthesis import weighted_lqg as weighted_lqg
from alembert.control.system_forms import Descriptor as Descriptor
from alembert.control.system_forms import LargeReduction as LargeReduction
from alembert.control.system_forms import LargeSystem as LargeSystem
from alembert.control.system_forms import LowRankGramian as LowRankGramian
from alembert.control.system_forms import SecondOrder as SecondOrder
from alembert.control.system_forms import descriptor_of_second_order as descriptor_of_second_order
from alembert.control.transfer import from_control as from_control
from alembert.control.transfer import from_scipy as from_scipy
from alembert.control.transfer import load_mat as load_mat
from alembert.control.transfer import pade as pade
from alembert.control.transfer import save_mat as save_mat
from alembert.control.transfer import tf as tf
from alembert.control.transfer import to_control as to_control
from alembert.control.transfer import to_scipy as to_scipy
from alembert.control.transfer import zpk as zpk
from alembert.control.uncertain_lft import Uncertain as Uncertain
from alembert.control.uncertain_lft import least_copies as least_copies
from alembert.control.uncertain_lft import parameter as parameter
from alembert.control.uncertain_lft import saturation as saturation
from alembert.control.uncertain_lft import sector as sector
from alembert.control.uncertain_lft import uncertain as uncertain
from alembert.control.uncertain_lft import unmodelled as unmodelled
from alembert.control.uncertain_systems import UncertainSystem as UncertainSystem
from alembert.control.uncertain_systems import uncertain_system as uncertain_system


def __dir__() -> list[str]:
    return sorted(name for name, x in globals().items() if (_isfunction(x) or _isclass(x)) and name[0] != "_")


_MATLAB = {
    "ss": "StateSpace(A, B, C, D)",
    "frd": "G.frequency_response(frequencies)",
    **{name: f'G.plot("{name}")' for name in ("bode", "nyquist", "nichols")},
    "step": "G.step_response()",
    "impulse": "G.impulse_response()",
    "lsim": "G.simulate(...)",
    "stepinfo": "step_info(G)",
    "rlocus": "root_locus(G)",
    "margin": "margins(L)",
    "allmargin": "margins(L)",
    "diskmargin": "disk_margins(L)",
    "pole": "G.poles()",
    "zero": "G.zeros()",
    "tzero": "G.zeros()",
    "damp": "G.poles()",
    "dcgain": "G.dc_gain()",
    "minreal": "G.minimal()",
    "ctrb": "G.controllable()",
    "obsv": "G.observable()",
    "gram": "G.gramians()",
    "hsvd": "G.hankel_singular_values()",
    "hinfnorm": "G.hinf_norm()",
    "norm": "G.h2_norm() or G.hinf_norm()",
    "dlqr": "lqr(G, Q, R) of a sampled G",
    "kalman": "lqe(...)",
    "icare": "care(...)",
    "idare": "dare(...)",
    "augw": "augment(...)",
    "mixsyn": "augment(...) and hinfsyn(...)",
    "balred": "balanced_truncation(...)",
    "systune": "tune(...)",
    "hinfstruct": "tune(...)",
    "ureal": "parameter(...)",
    "ultidyn": "unmodelled(...)",
    "uss": "uncertain_system(...)",
    "mussv": "mu(...)",
    "musyn": "dksyn(...)",
    "sumblk": "summing(...)",
}
"""what functions of MATLAB and of python-control are here"""


if not _TYPE_CHECKING:  # types know what there is

    def __getattr__(name: str) -> object:
        here = _MATLAB.get(name, "")
        if name[:1] != "_" and hasattr(StateSpace, name):
            call = "(...)" if callable(getattr(StateSpace, name)) else ""
            here = f"G.{name}{call}, with G a system"
        message = f"module {__name__!r} has no attribute {name!r}" + (f"; it is {here}" if here else "")
        raise AttributeError(message, name=name, obj=_sys.modules[__name__])


_tell_wrong_types(__name__)

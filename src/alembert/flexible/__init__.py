"""Modal bodies from what engineers have: beams, tables of point masses, members of frameworks, finite elements."""

from alembert.flexible.abaqus import read_abaqus as read_abaqus
from alembert.flexible.ansys import read_ansys as read_ansys
from alembert.flexible.beam import beam as beam
from alembert.flexible.component_modes import ComponentModes as ComponentModes
from alembert.flexible.component_modes import attachment_modes as attachment_modes
from alembert.flexible.component_modes import constraint_modes as constraint_modes
from alembert.flexible.component_modes import craig_bampton as craig_bampton
from alembert.flexible.component_modes import effective_masses as effective_masses
from alembert.flexible.component_modes import frequencies as frequencies
from alembert.flexible.component_modes import guyan as guyan
from alembert.flexible.component_modes import improved_reduction as improved_reduction
from alembert.flexible.component_modes import interface as interface
from alembert.flexible.component_modes import modal_derivatives as modal_derivatives
from alembert.flexible.component_modes import normal_modes as normal_modes
from alembert.flexible.component_modes import orthonormal as orthonormal
from alembert.flexible.component_modes import relative as relative
from alembert.flexible.component_modes import residual_modes as residual_modes
from alembert.flexible.finite_element_body import structure_body as structure_body
from alembert.flexible.finite_elements import FiniteElements as FiniteElements
from alembert.flexible.finite_elements import MassPoints as MassPoints
from alembert.flexible.finite_elements import UnitSystem as UnitSystem
from alembert.flexible.framework import CrossSection as CrossSection
from alembert.flexible.framework import LumpedMass as LumpedMass
from alembert.flexible.framework import Member as Member
from alembert.flexible.framework import NodeSpring as NodeSpring
from alembert.flexible.framework import framework as framework
from alembert.flexible.mbdyn import read_mbdyn as read_mbdyn
from alembert.flexible.mode_choice import Completeness as Completeness
from alembert.flexible.mode_choice import ModeRanking as ModeRanking
from alembert.flexible.mode_choice import carried_mass as carried_mass
from alembert.flexible.mode_choice import completeness as completeness
from alembert.flexible.mode_choice import rank_modes as rank_modes
from alembert.flexible.mode_choice import with_stiffening as with_stiffening
from alembert.flexible.motion_inversion import MotionInversion as MotionInversion
from alembert.flexible.motion_inversion import StableInversion as StableInversion
from alembert.flexible.motion_inversion import invert_motion as invert_motion
from alembert.flexible.motion_inversion import stable_inversion as stable_inversion
from alembert.flexible.nastran import read_nastran as read_nastran
from alembert.flexible.particles import particles as particles
from alembert.flexible.particles import random_particles as random_particles
from alembert.flexible.section_loads import section_loads as section_loads
from alembert.flexible.sid import read_sid as read_sid
from alembert.flexible.stability import Campbell as Campbell
from alembert.flexible.stability import StabilityBoundary as StabilityBoundary
from alembert.flexible.stability import StabilityMap as StabilityMap
from alembert.flexible.stability import campbell as campbell
from alembert.flexible.stability import stability_boundary as stability_boundary
from alembert.flexible.stability import stability_map as stability_map
from alembert.flexible.stability import tuned_absorber as tuned_absorber
from alembert.flexible.stability import with_proof_mass as with_proof_mass
from alembert.flexible.structure_report import StructureReport as StructureReport
from alembert.flexible.structure_response import ResponseFit as ResponseFit
from alembert.flexible.structure_response import fit_modes as fit_modes
from alembert.flexible.structure_response import fit_response as fit_response
from alembert.flexible.structure_response import structure_response as structure_response

__all__ = [
    "Campbell",
    "Completeness",
    "ComponentModes",
    "CrossSection",
    "FiniteElements",
    "LumpedMass",
    "MassPoints",
    "Member",
    "ModeRanking",
    "MotionInversion",
    "NodeSpring",
    "ResponseFit",
    "StabilityBoundary",
    "StabilityMap",
    "StableInversion",
    "StructureReport",
    "UnitSystem",
    "attachment_modes",
    "beam",
    "campbell",
    "carried_mass",
    "completeness",
    "constraint_modes",
    "craig_bampton",
    "effective_masses",
    "fit_modes",
    "fit_response",
    "framework",
    "frequencies",
    "guyan",
    "improved_reduction",
    "interface",
    "invert_motion",
    "modal_derivatives",
    "normal_modes",
    "orthonormal",
    "particles",
    "random_particles",
    "rank_modes",
    "read_abaqus",
    "read_ansys",
    "read_mbdyn",
    "read_nastran",
    "read_sid",
    "relative",
    "residual_modes",
    "section_loads",
    "stability_boundary",
    "stability_map",
    "stable_inversion",
    "structure_body",
    "structure_response",
    "tuned_absorber",
    "with_proof_mass",
    "with_stiffening",
]
from alembert.arguments import tell_wrong_types as _tell_wrong_types

_tell_wrong_types(__name__)

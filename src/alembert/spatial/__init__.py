"""Spatial algebra on NumPy floats and CasADi `SX` alike: rotations, poses, motions, forces, inertias."""

from alembert.spatial import arrays as arrays
from alembert.spatial import quaternion as quaternion
from alembert.spatial import se3 as se3
from alembert.spatial import series as series
from alembert.spatial import so3 as so3
from alembert.spatial.motion import ArticulatedInertia as ArticulatedInertia
from alembert.spatial.motion import Force as Force
from alembert.spatial.motion import Motion as Motion
from alembert.spatial.motion import RigidInertia as RigidInertia
from alembert.spatial.motion import ad as ad
from alembert.spatial.motion import ad_dual as ad_dual
from alembert.spatial.se3 import Ad as Ad
from alembert.spatial.se3 import Ad_dual as Ad_dual
from alembert.spatial.se3 import Pose as Pose

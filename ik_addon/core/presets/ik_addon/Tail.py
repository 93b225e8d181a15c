"""Stiff at its root, loose at its tip."""

import math

import bpy

profile = bpy.context.window_manager.ik_addon_profile

# Root
joint = profile.joints.add()
joint.bend = (math.radians(-35), math.radians(35))
joint.side = (math.radians(-35), math.radians(35))
joint.twist = (math.radians(-15), math.radians(15))
joint.limited = {"bend", "side", "twist"}
joint.stiffness = (0.6, 0.6, 0.6)
# Middle
joint = profile.joints.add()
joint.bend = (math.radians(-40), math.radians(40))
joint.side = (math.radians(-40), math.radians(40))
joint.twist = (math.radians(-15), math.radians(15))
joint.limited = {"bend", "side", "twist"}
joint.stiffness = (0.3, 0.3, 0.3)
# Tip
joint = profile.joints.add()
joint.bend = (math.radians(-50), math.radians(50))
joint.side = (math.radians(-50), math.radians(50))
joint.twist = (math.radians(-15), math.radians(15))
joint.limited = {"bend", "side", "twist"}

profile.spread = True
profile.use_limits = True

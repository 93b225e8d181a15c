"""Each joint bends a little; the lower ones are stiffer."""

import math

import bpy

profile = bpy.context.window_manager.ik_addon_profile

# Lowest
joint = profile.joints.add()
joint.bend = (math.radians(-25), math.radians(25))
joint.side = (math.radians(-20), math.radians(20))
joint.twist = (math.radians(-15), math.radians(15))
joint.limited = {"bend", "side", "twist"}
joint.stiffness = (0.4, 0.4, 0.4)
# Highest
joint = profile.joints.add()
joint.bend = (math.radians(-30), math.radians(30))
joint.side = (math.radians(-25), math.radians(25))
joint.twist = (math.radians(-35), math.radians(35))
joint.limited = {"bend", "side", "twist"}
joint.stiffness = (0.1, 0.1, 0.1)

profile.spread = True
profile.use_limits = True

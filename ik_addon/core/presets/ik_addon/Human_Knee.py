"""A hinge that bends one way, below a hip."""

import math

import bpy

profile = bpy.context.window_manager.ik_addon_profile

# Hip: forward is negative, opposite to the bend of the knee
joint = profile.joints.add()
joint.bend = (math.radians(-120), math.radians(30))
joint.side = (math.radians(-45), math.radians(45))
joint.twist = (math.radians(-45), math.radians(45))
joint.limited = {"bend", "side", "twist"}
# Knee
joint = profile.joints.add()
joint.from_straight = True
joint.bend = (math.radians(0), math.radians(150))
joint.limited = {"bend"}
joint.locked = {"side", "twist"}
# Ankle
joint = profile.joints.add()
joint.bend = (math.radians(-30), math.radians(45))
joint.side = (math.radians(-25), math.radians(25))
joint.limited = {"bend", "side"}
joint.locked = {"twist"}

profile.use_limits = True

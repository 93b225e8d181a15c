"""A knuckle that also spreads a little, followed by hinges."""

import math

import bpy

profile = bpy.context.window_manager.ik_addon_profile

# Knuckle
joint = profile.joints.add()
joint.bend = (math.radians(-30), math.radians(90))
joint.side = (math.radians(-15), math.radians(15))
joint.limited = {"bend", "side"}
joint.locked = {"twist"}
# Middle joint
joint = profile.joints.add()
joint.from_straight = True
joint.bend = (math.radians(0), math.radians(110))
joint.limited = {"bend"}
joint.locked = {"side", "twist"}
# Last joint
joint = profile.joints.add()
joint.from_straight = True
joint.bend = (math.radians(-10), math.radians(85))
joint.limited = {"bend"}
joint.locked = {"side", "twist"}

profile.use_limits = True

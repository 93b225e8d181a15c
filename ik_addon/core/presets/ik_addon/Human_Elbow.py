"""A hinge that bends one way; the forearm twists, the shoulder is free."""

import math

import bpy

profile = bpy.context.window_manager.ik_addon_profile

# Shoulder
joint = profile.joints.add()
# Elbow: from straight to the hand at the shoulder; the forearm turns the palm
joint = profile.joints.add()
joint.from_straight = True
joint.bend = (math.radians(0), math.radians(150))
joint.twist = (math.radians(-85), math.radians(85))
joint.limited = {"bend", "twist"}
joint.locked = {"side"}
# Wrist
joint = profile.joints.add()
joint.bend = (math.radians(-70), math.radians(70))
joint.side = (math.radians(-30), math.radians(30))
joint.limited = {"bend", "side"}
joint.locked = {"twist"}

profile.use_limits = True

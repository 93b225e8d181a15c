"""Free to curl any way; no joint folds onto its neighbor."""

import math

import bpy

profile = bpy.context.window_manager.ik_addon_profile

# Each joint
joint = profile.joints.add()
joint.bend = (math.radians(-75), math.radians(75))
joint.side = (math.radians(-75), math.radians(75))
joint.limited = {"bend", "side"}

profile.use_limits = True
profile.solver = "EVEN_BEND"
profile.iterations = 200

"""All joints are free."""

import bpy

profile = bpy.context.window_manager.ik_addon_profile

# Each joint
joint = profile.joints.add()

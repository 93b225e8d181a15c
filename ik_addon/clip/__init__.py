"""A clip as a whole: where feet touch, how they stand still, and how the hips help them. Arrays, no bpy."""

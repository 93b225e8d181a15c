"""A clip as a whole: where feet touch, how they stand still there, and what the hips do for it. Arrays, no bpy."""

"""How Blender stores a pose: bones, channels, keyframes."""

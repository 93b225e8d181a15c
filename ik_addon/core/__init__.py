"""What Blender stores: bones, channels, keyframes, settings, the FK store; and versions, translation, presets."""

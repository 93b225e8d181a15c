"""What users read, in the language of their Blender."""

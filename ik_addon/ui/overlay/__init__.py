"""The viewport overlay: read from the pose, turned into geometry without gpu, then drawn."""

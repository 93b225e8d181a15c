"""What is drawn over the viewport: read from the pose, made into geometry without gpu, then drawn."""

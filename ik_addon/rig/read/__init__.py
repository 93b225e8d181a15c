"""Read evaluated armatures and F-curves into the arrays of a frame."""

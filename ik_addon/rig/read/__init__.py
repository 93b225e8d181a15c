"""From evaluated armatures and F-curves to the arrays of a frame."""

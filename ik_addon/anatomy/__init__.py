"""Read anatomy from a skeleton at rest: limbs, spines, hands and feet, and the sides to which they bend."""

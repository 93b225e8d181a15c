"""What a skeleton at rest is the skeleton of: limbs, spines, hands and feet, and the sides to which they bend."""

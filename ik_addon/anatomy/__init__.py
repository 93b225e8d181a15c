"""What a skeleton at rest is the skeleton of: limbs, spines, hands and feet."""

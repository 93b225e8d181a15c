"""Two bones within limits, and a foot or hand, in closed form."""

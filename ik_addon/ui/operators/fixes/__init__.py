"""One-click fixes for problems that messages report."""

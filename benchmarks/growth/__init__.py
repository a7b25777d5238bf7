"""How speed and memory grow, and where the curves bend."""

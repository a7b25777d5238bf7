"""One training in several processes: speed, losses, and what a killed process does."""

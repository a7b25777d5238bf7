"""One training in several processes: speed, losses and killed processes."""

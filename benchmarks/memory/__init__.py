"""Loading time, memory and growth."""
